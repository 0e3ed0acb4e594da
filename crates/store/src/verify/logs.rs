//! The logs: the chain that they form, and each of them by itself, so that damage in one does
//! not hide what is in the next.

use std::collections::BTreeMap;
use std::ops::Range;

use lithify_base::{CfId, Error, FileId, InternalKey, Key, Kind, Result, Seq, Tag};
use lithify_files::dir::FileName;
use lithify_files::wal::{OnRot, log_numbers, read_log, replay};
use lithify_journal::manifest::ManifestState;
use lithify_journal::wal::tail::LoggedBatch;
use lithify_journal::wal::{Promise, Sections, SeqRule, Verdict, WalWalk};
use lithify_merge::tombstone::RangeTombstone;

use super::{Look, newest_log};

/// Keys of a family that only logs hold.
pub(super) enum Logged {
    /// A key and the tag of one of its versions.
    Point(Key, Tag),
    /// A range deletion.
    Range(RangeTombstone),
}

/// A log to be looked at by itself.
struct Log {
    number: u64,
    /// What the manifest says of its length.
    synced: Option<u64>,
    /// Whether its writes are in no table yet.
    needed: bool,
    /// Whether the chain ended in it, so its end was reported.
    told: bool,
}

impl Look<'_> {
    /// Bytes of the logs that are needed.
    pub(super) fn log_bytes(&self, state: &ManifestState) -> u64 {
        let logs = state.logs();
        let needed = self.listed.iter().filter(|entry| match entry.file {
            Some(FileName::Wal(n)) => logs.contains(&n),
            _ => false,
        });
        needed.map(|entry| entry.len).sum()
    }

    /// Checks the logs; what they hold, by family.
    pub(super) fn logs(&mut self, state: &ManifestState) -> BTreeMap<CfId, Vec<Logged>> {
        let Range { start: from, end } = state.logs();
        let (mut logged, mut sections) = (BTreeMap::new(), Sections::default());
        let replayed = replay(self.dir, from..end, &state.wals, OnRot::Refuse, |number, batch| {
            self.report.batches += 1;
            collect(state, number, batch, &mut logged)?;
            let effect = sections.take(&batch.view()?)?;
            let count = effect.map_or(batch.count, |effect| effect.count());
            Ok(batch.first_seq + u64::from(count))
        });
        let mut told = None;
        match replayed {
            Ok(replay) => {
                if let Some(cut) = replay.cut {
                    let name = self.path(FileName::Wal(cut.log));
                    let what = format!(
                        "the log ends here: {} bytes behind are no whole writes, or follow some \
                         that are missing, and none of them was promised to be synced",
                        cut.dropped_bytes
                    );
                    self.report.torn(Error::corruption(what).at(cut.at).in_file(name));
                    told = Some(cut.log);
                }
                for number in replay.passed {
                    self.report.orphans.push(FileName::Wal(number).to_string());
                }
            }
            Err(e) => {
                let named = |n: &u64| e.file() == Some(self.path(FileName::Wal(*n)).as_str());
                let numbers = log_numbers(self.dir, from..end).unwrap_or_default();
                told = numbers.into_iter().find(named);
                self.report.damage(e.in_file(self.dir.path().display()));
            }
        }
        // The newest log stays until there is another one, even if all of it is in tables.
        let witness = newest_log(&self.listed, end).filter(|&n| n < from).unwrap_or(from);
        for number in log_numbers(self.dir, witness..end).unwrap_or_default() {
            let synced = state.wals.get(&number).copied().flatten();
            let (needed, told) = (number >= from, told == Some(number));
            if let Err(e) = self.log(Log { number, synced, needed, told }) {
                self.report.damage(e.in_file(self.path(FileName::Wal(number))));
            }
        }
        self.above_tables(state, &logged);
        logged
    }

    /// One log by itself.
    fn log(&mut self, log: Log) -> Result<()> {
        let Log { number, synced, needed, told } = log;
        let path = self.path(FileName::Wal(number));
        let Some(bytes) = read_log(self.dir, FileId(number))? else {
            return Ok(());
        };
        self.report.logs += u64::from(needed);
        self.report.bytes += bytes.len();
        let mut walk = WalWalk::over(bytes.bytes(), number, SeqRule::Rising);
        while walk.next_batch()?.is_some() {}
        let found = walk.findings();
        let verdict = walk.verdict(&Promise { synced: synced.unwrap_or(0), end: None });
        match verdict {
            Verdict::Corruption { .. } if !told => {
                if let Err(e) = verdict.into_result(found.len) {
                    self.report.damage(e.in_file(&path));
                }
            }
            Verdict::TornTail { cut_at } if !told => {
                let what = match found.damage {
                    Some(damage) => damage.what.to_string(),
                    None => "the log is cut short".to_owned(),
                };
                self.report.torn(Error::corruption(what).at(cut_at).in_file(&path));
            }
            _ => {}
        }
        // Nothing is written behind the seal that closes a log.
        let beyond = synced.is_some_and(|end| end < found.len) || walk.was_closed();
        if beyond && found.damage.is_none() && found.good_end < found.len {
            let what = format!("{} bytes follow the end of the log", found.len - found.good_end);
            self.report.damage(Error::corruption(what).at(found.good_end).in_file(&path));
        }
        // The zeros that a log goes on with were looked at, too.
        self.advance(self.dir.len_of(FileName::Wal(number))?.unwrap_or(found.len));
        Ok(())
    }

    /// What logs still hold is newer than all tables, in databases of ours.
    fn above_tables(&mut self, state: &ManifestState, logged: &BTreeMap<CfId, Vec<Logged>>) {
        for (cf, entries) in logged {
            let Some(family) = state.families.get(cf) else { continue };
            let ours = family.files.values().filter(|f| f.counts.is_some());
            let flushed = ours.map(|f| f.largest_seq).max();
            let first = entries.iter().map(Logged::seq).min();
            if let (Some(flushed), Some(first)) = (flushed, first)
                && first <= flushed
            {
                self.report.family = Some(family.name.clone());
                self.report.damage(
                    Error::corruption(format!(
                        "the logs hold write {first}, and tables write {flushed}: flushed writes \
                         are still in a log that is needed, or an older log was put back"
                    ))
                    .in_file(self.dir.path().display()),
                );
                self.report.family = None;
            }
        }
    }
}

impl Logged {
    fn seq(&self) -> Seq {
        match self {
            Logged::Point(_, tag) => tag.seq(),
            Logged::Range(deletion) => deletion.seq,
        }
    }
    /// The internal key, for sorting.
    pub(super) fn point(&self) -> Option<InternalKey<'_>> {
        match self {
            Logged::Point(user, tag) => Some(InternalKey { user, tag: *tag }),
            Logged::Range(_) => None,
        }
    }
}

/// Adds what families need of a batch in log `number`: some may have flushed past it.
fn collect(
    state: &ManifestState,
    number: u64,
    batch: &LoggedBatch<'_>,
    logged: &mut BTreeMap<CfId, Vec<Logged>>,
) -> Result<()> {
    let needs = |cf: &CfId| state.families.get(cf).is_some_and(|f| f.log_number <= number);
    for (seq, op) in (batch.first_seq..).zip(batch.view()?.iter()) {
        if !needs(&op.cf) {
            continue;
        }
        let entry = match op.kind {
            Kind::RangeDelete => {
                let (lo, hi) = (op.key.into(), op.value.into());
                Logged::Range(RangeTombstone { lo, hi, seq, run: 0 })
            }
            kind => Logged::Point(op.key.into(), Tag::new(seq, kind)),
        };
        logged.entry(op.cf).or_default().push(entry);
    }
    Ok(())
}
