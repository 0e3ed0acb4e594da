//! What damaged logs still hold.
//!
//! In front of the first damage everything counts, as in any replay. Behind it a record is taken
//! only if it was promised to be synced: then it was a write that its caller was told is safe,
//! and the hole before it is rot. Behind damage that no promise covers, which is how a crash leaves
//! a log, nothing is taken: what stands there may have reached the disk out of order, and the
//! database never showed it after a crash.
//!
//! ```text
//!   5.log  1..4 | x | 7..9 | seal: synced up to here | 10 | x | 12
//!          taken  hole taken                           taken  not taken
//! ```
//! A promise of any later log vouches for all of the logs before it.

use std::collections::BTreeMap;

use lithify_base::{Error, Kind, Result, Seq, Tag};
use lithify_format::wal::{
    BatchView, Found, Predecessor, RecordKind, RecordReader, SeqRule, WalWalk,
};
use lithify_merge::tombstone::RangeTombstone;

use super::{DEFAULT_CF, Lost, Salvage};
use crate::dir::{Dir, FileName};
use crate::wal::{LOG_MAX, log_numbers};

/// A point entry of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoggedEntry {
    /// User key.
    pub key: Vec<u8>,
    /// Value, operand, or nothing for a deletion.
    pub value: Vec<u8>,
    /// Number and kind.
    pub tag: Tag,
}

impl LoggedEntry {
    /// Its sequence number.
    pub fn seq(&self) -> Seq {
        self.tag.seq()
    }
}

/// A log that was read into memory.
struct Log {
    number: u64,
    bytes: Vec<u8>,
    /// Every byte below was promised to be synced.
    promised: u64,
    /// Where the first damage is, if any.
    damage: Option<(u64, String)>,
}

impl Salvage {
    /// Takes the logs from number `from` on. `known` is what the manifest says of their sizes.
    pub(super) fn logs(&mut self, dir: &Dir, from: u64, known: &BTreeMap<u64, Option<u64>>) {
        let numbers = log_numbers(dir, from).unwrap_or_default();
        for (&number, _) in known.range(from..).filter(|(n, _)| !numbers.contains(n)) {
            self.lost.push(Lost::file(FileName::Wal(number), "the manifest names it"));
        }
        let mut logs: Vec<Log> = Vec::new();
        for number in numbers {
            match read(dir, number, known.get(&number).copied().flatten()) {
                Ok(log) => logs.push(log),
                Err(e) => self.lost.push(Lost::file(FileName::Wal(number), e.to_string())),
            }
        }
        let vouched = logs.iter().rposition(|log| log.promised > 0);
        let mut last = 0;
        for (i, mut log) in logs.into_iter().enumerate() {
            if vouched.is_some_and(|v| i < v) {
                log.promised = u64::MAX;
            }
            let whole = self.log(&log, &mut last);
            if !whole && vouched.is_none_or(|v| i >= v) {
                let later = log_numbers(dir, log.number + 1).unwrap_or_default();
                for number in later {
                    let what = "it follows a log that a crash tore, and promises nothing";
                    self.lost.push(Lost::file(FileName::Wal(number), what));
                }
                return;
            }
        }
    }

    /// Takes one log; false if unpromised bytes of it were left out.
    fn log(&mut self, log: &Log, last: &mut Seq) -> bool {
        let name = FileName::Wal(log.number);
        let mut reader = RecordReader::new(&log.bytes, Some(log.number));
        let first_damage = log.damage.as_ref().map_or(u64::MAX, |(at, _)| *at);
        let mut hole: Option<(u64, String)> = None;
        loop {
            let record = match reader.next_record() {
                Found::Record(record) => record,
                Found::Damage(damage) => {
                    hole.get_or_insert((damage.offset, damage.what.to_string()));
                    match reader.resume() {
                        true => continue,
                        false => break,
                    }
                }
                Found::Refused(e) => {
                    self.notes.push(format!("{name}: {e}"));
                    hole.get_or_insert((reader.good_end(), e.to_string()));
                    break;
                }
                Found::End => break,
            };
            if record.offset >= first_damage && record.offset >= log.promised {
                hole = hole.or_else(|| log.damage.clone());
                break;
            }
            if record.kind != RecordKind::Data {
                continue;
            }
            match self.batch(&record.payload, last) {
                Ok(()) => {
                    if let Some((from, what)) = hole.take() {
                        self.hole(name, from, record.offset, what);
                    }
                }
                Err(e) => {
                    hole.get_or_insert((record.offset, e.to_string()));
                }
            }
        }
        let end = log.bytes.len() as u64;
        if end < log.promised && log.promised != u64::MAX {
            let missing = log.promised - end;
            self.hole(name, end, log.promised, format!("{missing} promised bytes are missing"));
        }
        let Some((from, what)) = hole else { return true };
        self.hole(name, from, end, what);
        log.promised >= end
    }

    fn hole(&mut self, name: FileName, from: u64, to: u64, what: String) {
        let bytes = to.saturating_sub(from);
        self.lost.push(Lost { offset: Some(from), bytes, ..Lost::file(name, what) });
    }

    fn batch(&mut self, payload: &[u8], last: &mut Seq) -> Result<()> {
        let batch = BatchView::parse(payload)?;
        let first = batch.sequence();
        if first <= *last {
            let what = format!("write {first} does not follow write {last}");
            return Err(Error::corruption(what));
        }
        for (seq, op) in (first..).zip(batch.iter()) {
            if op.cf != DEFAULT_CF {
                continue;
            }
            match op.kind {
                Kind::RangeDelete => self.deletions.push(RangeTombstone {
                    lo: op.key.into(),
                    hi: op.value.into(),
                    seq,
                    run: 0,
                }),
                kind => self.logged.push(LoggedEntry {
                    key: op.key.to_vec(),
                    value: op.value.to_vec(),
                    tag: Tag::new(seq, kind),
                }),
            }
        }
        self.batches += 1;
        *last = (first + u64::from(batch.count())).saturating_sub(1).max(*last);
        Ok(())
    }
}

fn read(dir: &Dir, number: u64, synced: Option<u64>) -> Result<Log> {
    let bytes = dir.read_whole(FileName::Wal(number), LOG_MAX)?.unwrap_or_default();
    let mut walk = WalWalk::new(&bytes, number, SeqRule::Rising);
    // A feature this version lacks ends the log, too.
    let refused = loop {
        match walk.next_batch() {
            Ok(Some(_)) => {}
            Ok(None) => break None,
            Err(e) => break Some(e),
        }
    };
    let found = walk.findings();
    let damage = found.damage.map(|d| (d.offset, d.what.to_string()));
    let damage = damage.or_else(|| Some((found.good_end, refused?.to_string())));
    Ok(Log { number, promised: found.sealed.max(synced.unwrap_or(0)), damage, bytes })
}

/// Whether a log from number `from` on begins with the name of one that is not there.
pub(super) fn is_broken_chain(dir: &Dir, from: u64) -> bool {
    let numbers = log_numbers(dir, from).unwrap_or_default();
    numbers.iter().any(|&number| {
        let bytes = dir.read_whole(FileName::Wal(number), LOG_MAX).ok().flatten();
        let bytes = bytes.unwrap_or_default();
        let Found::Record(first) = RecordReader::new(&bytes, Some(number)).next_record() else {
            return false;
        };
        let before = match first.kind {
            RecordKind::Predecessor => Predecessor::decode(&first.payload).ok(),
            _ => None,
        };
        before.is_some_and(|p| p.log_number >= from && !numbers.contains(&p.log_number))
    })
}
