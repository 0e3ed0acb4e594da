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
use std::ops::Range;

use lithify_base::{CfId, Error, FileId, Kind, Result, Seq, Tag};
use lithify_files::dir::{Dir, FileName, Sparse};
use lithify_files::wal::{log_numbers, read_log};
use lithify_journal::manifest::ManifestState;
use lithify_journal::wal::{
    BatchBuilder, BatchView, Found, Predecessor, RecordKind, RecordReader, Sections, SeqRule,
    WalWalk,
};
use lithify_merge::tombstone::RangeTombstone;

use super::Lost;

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

/// What the logs hold of one column family.
#[derive(Default)]
pub(super) struct Logged {
    /// The first log that has something of it.
    pub(super) log: u64,
    /// In the order they were written.
    pub(super) entries: Vec<LoggedEntry>,
    pub(super) deletions: Vec<RangeTombstone>,
}

/// What the logs of a directory hold.
#[derive(Default)]
pub(super) struct Logs {
    pub(super) families: BTreeMap<CfId, Logged>,
    pub(super) batches: u64,
    /// Number of the last write that was taken.
    pub(super) last: Seq,
    pub(super) lost: Vec<Lost>,
    pub(super) notes: Vec<String>,
    /// Of transactions that are prepared.
    sections: Sections,
}

/// A log that was read into memory.
struct Log {
    number: u64,
    bytes: Sparse,
    /// Every byte below was promised to be synced.
    promised: u64,
    /// Where the first damage is, if any.
    damage: Option<(u64, String)>,
}

impl Logs {
    /// Takes the logs that `state` needs, and of them what it needs; without one, all.
    pub(super) fn take(dir: &Dir, state: Option<&ManifestState>) -> Logs {
        let mut logs = Logs::default();
        logs.take_from(dir, state.map_or(0..u64::MAX, ManifestState::logs), state);
        let open = logs.sections.names().map(|name| {
            format!(
                "transaction \"{}\" was prepared and neither committed nor rolled back; what it would \
                 write is left out",
                name.escape_ascii()
            )
        });
        logs.notes.extend(open.collect::<Vec<_>>());
        logs
    }

    fn take_from(&mut self, dir: &Dir, wanted: Range<u64>, state: Option<&ManifestState>) {
        let none = BTreeMap::new();
        let known = state.map_or(&none, |state| &state.wals);
        let numbers = log_numbers(dir, wanted.clone()).unwrap_or_default();
        for (&number, _) in known.range(wanted.clone()).filter(|(n, _)| !numbers.contains(n)) {
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
        for (i, mut log) in logs.into_iter().enumerate() {
            if vouched.is_some_and(|v| i < v) {
                log.promised = u64::MAX;
            }
            let whole = self.log(&log, state);
            if !whole && vouched.is_none_or(|v| i >= v) {
                let later = log_numbers(dir, log.number + 1..wanted.end).unwrap_or_default();
                for number in later {
                    let what = "it follows a log that a crash tore, and promises nothing";
                    self.lost.push(Lost::file(FileName::Wal(number), what));
                }
                return;
            }
        }
    }

    /// Takes one log; false if unpromised bytes of it were left out.
    fn log(&mut self, log: &Log, state: Option<&ManifestState>) -> bool {
        let name = FileName::Wal(log.number);
        let mut reader = RecordReader::over(log.bytes.bytes(), Some(log.number));
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
            match self.batch(&record.payload, log.number, state) {
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
        let end = log.bytes.len();
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

    fn batch(&mut self, payload: &[u8], log: u64, state: Option<&ManifestState>) -> Result<()> {
        let logged = BatchView::parse(payload)?;
        let effect = self.sections.take(&logged)?;
        let batch = effect.as_ref().map_or(logged, BatchBuilder::view);
        let first = batch.sequence();
        if first <= self.last {
            let what = format!("write {first} does not follow write {}", self.last);
            return Err(Error::corruption(what));
        }
        for (seq, op) in (first..).zip(batch.iter()).filter(|(_, op)| needs(state, op.cf, log)) {
            let new = || Logged { log, ..Logged::default() };
            let logged = self.families.entry(op.cf).or_insert_with(new);
            match op.kind {
                Kind::RangeDelete => logged.deletions.push(RangeTombstone {
                    lo: op.key.into(),
                    hi: op.value.into(),
                    seq,
                    run: 0,
                }),
                kind => logged.entries.push(LoggedEntry {
                    key: op.key.to_vec(),
                    value: op.value.to_vec(),
                    tag: Tag::new(seq, kind),
                }),
            }
        }
        self.batches += 1;
        self.last = (first + u64::from(batch.count())).saturating_sub(1).max(self.last);
        Ok(())
    }
}

/// Whether what `log` holds of a family counts: it has not flushed past that log, and was not dropped. One
/// whose number is above all that `state` knows was made later.
fn needs(state: Option<&ManifestState>, cf: CfId, log: u64) -> bool {
    state.is_none_or(|state| match state.families.get(&cf) {
        Some(family) => log >= family.log_number,
        None => cf.0 > state.max_cf,
    })
}

fn read(dir: &Dir, number: u64, synced: Option<u64>) -> Result<Log> {
    let bytes = read_log(dir, FileId(number))?.unwrap_or_default();
    let mut walk = WalWalk::over(bytes.bytes(), number, SeqRule::Rising);
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

/// Whether one of the `wanted` logs begins with the name of one that is not there.
pub(super) fn is_broken_chain(dir: &Dir, wanted: Range<u64>) -> bool {
    let from = wanted.start;
    let numbers = log_numbers(dir, wanted).unwrap_or_default();
    numbers.iter().any(|&number| {
        let bytes = read_log(dir, FileId(number)).ok().flatten();
        let bytes = bytes.unwrap_or_default();
        let Found::Record(first) = RecordReader::over(bytes.bytes(), Some(number)).next_record()
        else {
            return false;
        };
        let before = match first.kind {
            RecordKind::Predecessor => Predecessor::decode(&first.payload).ok(),
            _ => None,
        };
        before.is_some_and(|p| p.log_number >= from && !numbers.contains(&p.log_number))
    })
}
