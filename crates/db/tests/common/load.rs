//! A mixed load whose every operation follows from (seed, writer, index), so that a parent that
//! killed the process can say what each acknowledged operation wrote.
//!
//! Each writer owns the keys of its prefix and works through its operations one by one. Values
//! name the operation that wrote them.

use lithify::{Db, Durability, Result, WriteBatch, WriteOptions};

/// Keys of a writer: few, so that versions pile up, or more, so that levels do.
fn keys(round: u64) -> u32 {
    150 << (round % 4)
}

/// One operation.
#[derive(Clone, Debug)]
pub enum Op {
    /// Sets (`Some`) or deletes (`None`) keys, atomically.
    Write { changes: Vec<(Vec<u8>, Option<Vec<u8>>)>, durability: Durability },
    /// Deletes the keys from the first on that are below the second.
    DeleteRange { from: Vec<u8>, to: Vec<u8>, durability: Durability },
    /// Flushes the memtable.
    Flush,
    /// Compacts the writer's keys.
    Compact,
}

impl Op {
    /// How far it had travelled when it was acknowledged; `None` if it wrote nothing.
    pub fn durability(&self) -> Option<Durability> {
        match self {
            Op::Write { durability, .. } | Op::DeleteRange { durability, .. } => Some(*durability),
            Op::Flush | Op::Compact => None,
        }
    }
    /// True if a kill after its acknowledgement must keep it and all before it.
    pub fn keeps_on_kill(&self) -> bool {
        self.durability().is_none_or(|d| d >= Durability::Os)
    }
}

/// The prefix of a writer's keys.
pub fn prefix(writer: u8) -> Vec<u8> {
    format!("w{writer}/").into_bytes()
}

fn key(writer: u8, n: u32) -> Vec<u8> {
    format!("w{writer}/{n:04}").into_bytes()
}

/// The value that operation `index` of `round` gives its `part`-th key.
fn value(round: u64, index: u32, part: usize, len: usize) -> Vec<u8> {
    let mut v = Vec::with_capacity(len + 16);
    v.extend_from_slice(&round.to_be_bytes());
    v.extend_from_slice(&index.to_be_bytes());
    v.extend_from_slice(&(part as u32).to_be_bytes());
    v.extend((0..len).map(|i| (index as usize + part + i * 7) as u8));
    v
}

/// The operation of `round` that wrote `value`.
pub fn index_of(value: &[u8], round: u64) -> Option<u32> {
    let (head, rest) = value.split_first_chunk::<8>()?;
    let index = rest.first_chunk::<4>()?;
    (u64::from_be_bytes(*head) == round).then(|| u32::from_be_bytes(*index))
}

/// Operation `index` of `writer` in a round.
pub fn op(round: u64, writer: u8, index: u32) -> Op {
    let mut rng = fastrand::Rng::with_seed(
        round.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ u64::from(writer) << 48 ^ u64::from(index),
    );
    let logged = |rng: &mut fastrand::Rng| match rng.u8(0..20) {
        0 => Durability::Sync,
        1..9 => Durability::Os,
        _ => Durability::Buffered,
    };
    let put = |rng: &mut fastrand::Rng, part: usize| {
        let len = match rng.u8(0..30) {
            0 => 3000,
            1..4 => 0,
            _ => rng.usize(0..200),
        };
        (key(writer, rng.u32(0..keys(round))), Some(value(round, index, part, len)))
    };
    match rng.u16(0..1000) {
        0..450 => Op::Write { changes: vec![put(&mut rng, 0)], durability: logged(&mut rng) },
        450..640 => {
            let changes = vec![put(&mut rng, 0)];
            Op::Write { changes, durability: Durability::NoWal }
        }
        640..800 => {
            let changes = vec![(key(writer, rng.u32(0..keys(round))), None)];
            let durability = if rng.u8(0..5) == 0 { Durability::NoWal } else { logged(&mut rng) };
            Op::Write { changes, durability }
        }
        800..960 => {
            let count = rng.usize(1..12);
            let changes = (0..count)
                .map(|part| match rng.u8(0..4) {
                    0 => (key(writer, rng.u32(0..keys(round))), None),
                    _ => put(&mut rng, part),
                })
                .collect();
            Op::Write { changes, durability: logged(&mut rng) }
        }
        960..997 => {
            let from = rng.u32(0..keys(round));
            let to = (from + rng.u32(0..20)).min(keys(round));
            Op::DeleteRange {
                from: key(writer, from),
                to: key(writer, to),
                durability: logged(&mut rng),
            }
        }
        997..999 => Op::Flush,
        _ => Op::Compact,
    }
}

/// Carries out an operation.
pub fn run(db: &Db, writer: u8, op: &Op) -> Result<()> {
    match op {
        Op::Write { changes, durability } => match &changes[..] {
            [(key, Some(value))] => db.put_opt(key, value, &WriteOptions::at(*durability)),
            [(key, None)] => db.delete_opt(key, &WriteOptions::at(*durability)),
            several => {
                let mut batch = WriteBatch::new();
                for (key, value) in several {
                    match value {
                        Some(value) => batch.put(key, value)?,
                        None => batch.delete(key)?,
                    }
                }
                db.write_opt(&batch, &WriteOptions::at(*durability))
            }
        },
        Op::DeleteRange { from, to, durability } => {
            let mut batch = WriteBatch::new();
            batch.delete_range(from, to)?;
            db.write_opt(&batch, &WriteOptions::at(*durability))
        }
        Op::Flush => db.flush(),
        Op::Compact => {
            let (from, mut to) = (prefix(writer), prefix(writer));
            to.push(0xff);
            db.compact_range(Some(&from), Some(&to))
        }
    }
}
