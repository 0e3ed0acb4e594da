//! What is known of every key while many threads write, and what a read may show.
//!
//! Each writer owns the keys of its prefix and numbers its operations 1, 2, 3, ...; one is begun
//! after the one before was acknowledged. A value names the operation that wrote it, and the board
//! remembers the last changes of each key. A read of one moment, however many keys it looks at,
//! shows the keys of a writer as they were right after *one* of its operations: one between the
//! last that was acknowledged before the read began and the last that was begun before it ended.
//!
//! ```text
//!   operation   1: put a   2: put a, put b   3: delete a      acknowledged 1, begun 3
//!   a = 1, b = none   after 1         a = 2, b = none   after none of them: a torn batch
//!   a = 2, b = 2      after 2         a = 1, b = 2      the same
//! ```

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

pub const WRITERS: usize = 4;
/// Keys of a writer.
pub const KEYS: usize = 1500;
/// Changes of a key that are remembered: far more than happen to it during one look.
const REMEMBERED: usize = 400;

/// The operation whose value a key shows; `None` if it shows nothing.
pub type Shown = Option<u64>;

/// The key of a slot; slots are numbered in key order, over all writers.
pub fn name(slot: usize) -> Vec<u8> {
    format!("w{}/{:05}", slot / KEYS, slot % KEYS).into_bytes()
}

/// The slot of a key.
pub fn slot_of(key: &[u8]) -> Option<usize> {
    let text = std::str::from_utf8(key).ok()?.strip_prefix('w')?;
    let (writer, n) = text.split_once('/')?;
    let slot = writer.parse::<usize>().ok()? * KEYS + n.parse::<usize>().ok()?;
    (name(slot) == key).then_some(slot)
}

/// The slots of a writer.
pub fn slots_of(writer: usize) -> Range<usize> {
    writer * KEYS..(writer + 1) * KEYS
}

/// The value that operation `op` of its writer gives a slot.
pub fn value(slot: usize, op: u64) -> Vec<u8> {
    let mut v = op.to_be_bytes().to_vec();
    v.extend((slot as u32).to_be_bytes());
    let len = (slot * 31 + op as usize * 7) % 300;
    v.extend((0..len).map(|i| (op as usize + slot + i * 7) as u8));
    v
}

/// The operation that wrote `found`, which must be exactly what it wrote.
fn operation(slot: usize, found: &[u8]) -> Result<u64, String> {
    let op = found.first_chunk::<8>().map(|n| u64::from_be_bytes(*n));
    match op.filter(|&op| value(slot, op) == found) {
        Some(op) => Ok(op),
        None => Err(format!("{}: no operation wrote this: {found:?}", named(slot))),
    }
}

fn named(slot: usize) -> String {
    String::from_utf8(name(slot)).expect("keys are text")
}

/// The last changes of one key, oldest first: the operation, and whether it deleted.
#[derive(Default)]
struct History {
    changes: VecDeque<(u64, bool)>,
    forgotten: bool,
}

impl History {
    /// What the key shows right after `op`; `None` if that is forgotten.
    fn after(&self, op: u64) -> Option<Shown> {
        match self.changes.partition_point(|c| c.0 <= op).checked_sub(1) {
            Some(i) => {
                let (by, deleted) = self.changes[i];
                Some((!deleted).then_some(by))
            }
            None => (!self.forgotten).then_some(None),
        }
    }
}

/// Everything that is known.
pub struct Board {
    begun: Vec<AtomicU64>,
    acknowledged: Vec<AtomicU64>,
    slots: Vec<Mutex<History>>,
    /// Keys read and judged.
    pub reads: AtomicU64,
    /// Keys that could not be judged, because too much had happened to them meanwhile.
    pub unjudged: AtomicU64,
}

/// What each writer had reached.
pub type Reached = [u64; WRITERS];

impl Board {
    pub fn new() -> Board {
        let counters = || (0..WRITERS).map(|_| AtomicU64::new(0)).collect();
        Board {
            begun: counters(),
            acknowledged: counters(),
            slots: (0..WRITERS * KEYS).map(|_| Mutex::default()).collect(),
            reads: AtomicU64::new(0),
            unjudged: AtomicU64::new(0),
        }
    }

    /// To be asked before a read begins.
    pub fn acknowledged(&self) -> Reached {
        std::array::from_fn(|w| self.acknowledged[w].load(Ordering::SeqCst))
    }
    /// To be asked after a read (or the taking of its snapshot) has ended.
    pub fn begun(&self) -> Reached {
        std::array::from_fn(|w| self.begun[w].load(Ordering::SeqCst))
    }

    /// Number of the writer's next operation.
    pub fn next(&self, writer: usize) -> u64 {
        self.begun[writer].load(Ordering::SeqCst) + 1
    }
    /// Notes what operation `op` is about to do to keys, each of them once.
    pub fn begin(&self, writer: usize, op: u64, changes: impl Iterator<Item = (usize, bool)>) {
        for (slot, deleted) in changes {
            let mut history = self.slots[slot].lock().unwrap();
            history.changes.push_back((op, deleted));
            if history.changes.len() > REMEMBERED {
                history.changes.pop_front();
                history.forgotten = true;
            }
        }
        self.begun[writer].store(op, Ordering::SeqCst);
    }
    pub fn acknowledge(&self, writer: usize, op: u64) {
        self.acknowledged[writer].store(op, Ordering::SeqCst);
    }

    /// The last value that the slot had before what it shows after `op`: what a broken read might
    /// find.
    pub fn older_than(&self, slot: usize, op: u64) -> Option<Vec<u8>> {
        let history = self.slots[slot].lock().unwrap();
        let at = history.changes.partition_point(|c| c.0 <= op);
        let older = history.changes.iter().take(at.saturating_sub(1)).rev().find(|c| !c.1);
        older.map(|c| value(slot, c.0))
    }
}

/// A look at keys as of one moment: which moments of each writer are still possible.
pub struct Look<'a> {
    board: &'a Board,
    from: Reached,
    possible: [Vec<bool>; WRITERS],
}

impl<'a> Look<'a> {
    /// A look that began after `from` was acknowledged and ended before anything beyond `to` was
    /// begun.
    pub fn new(board: &'a Board, from: Reached, to: Reached) -> Look<'a> {
        let possible = std::array::from_fn(|w| vec![true; (to[w] - from[w]) as usize + 1]);
        Look { board, from, possible }
    }

    /// Judges what a slot shows, together with all that this look has seen before.
    pub fn judge(&mut self, slot: usize, found: Option<&[u8]>) -> Result<Shown, String> {
        let shown = found.map(|v| operation(slot, v)).transpose()?;
        let writer = slot / KEYS;
        let (from, possible) = (self.from[writer], &mut self.possible[writer]);
        let history = self.board.slots[slot].lock().unwrap();
        let mut forgotten = false;
        for (i, alive) in possible.iter_mut().enumerate() {
            match history.after(from + i as u64) {
                Some(expected) => *alive &= expected == shown,
                None => forgotten = true,
            }
        }
        let counter = if forgotten { &self.board.unjudged } else { &self.board.reads };
        counter.fetch_add(1, Ordering::Relaxed);
        if possible.contains(&true) {
            return Ok(shown);
        }
        let all: Vec<_> = history.changes.iter().rev().take(8).collect();
        Err(format!(
            "{} shows {shown:?}, which fits no moment from {from} to {}; its last changes, with \
             the mark of a deletion: {all:?}",
            named(slot),
            from + possible.len() as u64 - 1,
        ))
    }
}
