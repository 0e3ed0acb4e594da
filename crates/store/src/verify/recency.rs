//! Invariant R over a whole family, by reading all of it: along the order in which reads look,
//! the sequence numbers of one user key strictly fall, range deletions over the key included.
//!
//! All runs are merged by user key, the logs first. Of each key every run gives an interval of
//! numbers; R holds if each interval lies below all intervals of newer runs.
//!
//! ```text
//!   run      numbers of key k     least so far
//!   logs     90                   90
//!   L0.7     71, 74               71
//!   L1.0     75          <- 75 >= 71: a read finds 74 first, and 75 never
//! ```
//!
//! RocksDB stores a range deletion in each table that it writes under it, and may cut the versions of one
//! key over two tables. Such a deletion counts in the newest run that has it over the key, and what it
//! hides there no longer counts at all: no read can tell.

use lithify_base::{ComparatorRef, Error, FileId, MAX_SEQ, Seq, Tag};
use lithify_lsm::{FileMeta, FileRef, Version};
use lithify_merge::tombstone::Fragments;
use lithify_tables::sst::{TableIter, TableReader};

use super::logs::Logged;
use super::{Look, open_table};

/// Broken keys listed; what is beyond is counted.
const LISTED_MAX: u64 = 64;

/// The range deletions of one table, inside its bounds.
pub(super) struct Deletions(Fragments);

impl Deletions {
    pub(super) fn of(table: &TableReader, file: &FileMeta) -> Deletions {
        Deletions(table.tombstones_of(file))
    }
}

/// One run in the merge.
struct Source<'a> {
    name: String,
    points: Points<'a>,
    deletions: Fragments,
}

enum Points<'a> {
    /// Sorted keys of the logs.
    Logs(std::vec::IntoIter<&'a Logged>, Option<&'a Logged>),
    /// The rest of a run's files and the open one.
    Run { files: std::slice::Iter<'a, FileRef>, open: Option<Box<TableIter>> },
}

/// What a run says of one key.
struct Said {
    least: Seq,
    most: Seq,
    /// Tag of its newest point entry.
    newest: Option<Tag>,
}

impl Look<'_> {
    /// Merges the runs of `version` and the logs. `deletions` of a table; `None` if it could not
    /// be read, and is left out.
    pub(super) fn recency<'a>(
        &mut self,
        order: &ComparatorRef,
        version: &'a Version,
        deletions: &dyn Fn(FileId) -> Option<&'a Deletions>,
        logged: &'a [Logged],
    ) {
        let mut sources = vec![of_logs(logged, order)];
        for run in version.runs_newest_first() {
            let files =
                run.files().iter().filter_map(|f| deletions(f.id)).map(|d| (0, d.0.clone()));
            sources.push(Source {
                name: format!("{}", run.pos),
                deletions: Fragments::union(files, &**order),
                points: Points::Run { files: run.files().iter(), open: None },
            });
        }
        for source in &mut sources {
            self.start(source, order, deletions);
        }
        let (mut broken, mut key) = (0, Vec::new());
        while least_key(&sources, order, &mut key) {
            let mut least = MAX_SEQ + 1;
            let mut newest: Option<Tag> = None;
            let (mut covered, mut met) = (0, Vec::new());
            for source in &mut sources {
                let said = self.said(source, &key, order, deletions, &mut met);
                let Some(said) = said else { continue };
                if said.most >= least {
                    broken += 1;
                    if broken <= LISTED_MAX {
                        let what = format!(
                            "R: key {} has write {} in {}, and a newer run has {least}",
                            key.escape_ascii(),
                            said.most,
                            source.name,
                        );
                        let e = Error::corruption(what).in_file(self.dir.path().display());
                        self.report.damage(e);
                    }
                }
                least = least.min(said.least);
                newest = newest.max(said.newest);
                let over = source.deletions.covering_seq(&key, MAX_SEQ, &**order);
                covered = covered.max(over.unwrap_or(0));
            }
            let value = newest.filter(|t| t.kind().is_some_and(|k| !k.is_delete()));
            self.report.keys += u64::from(value.is_some_and(|t| t.seq() >= covered));
        }
        if broken > LISTED_MAX {
            let what = format!("R: {} more keys are not listed", broken - LISTED_MAX);
            self.report.damage(Error::corruption(what).in_file(self.dir.path().display()));
        }
    }

    /// What `source` says of `key`; moves it past the key. `met` has the range deletions over it that
    /// newer runs have.
    fn said<'a>(
        &mut self,
        source: &mut Source<'a>,
        key: &[u8],
        order: &ComparatorRef,
        deletions: &dyn Fn(FileId) -> Option<&'a Deletions>,
        met: &mut Vec<Seq>,
    ) -> Option<Said> {
        let mut said: Option<Said> = None;
        let mut note = |seq: Seq, tag: Option<Tag>| match &mut said {
            None => said = Some(Said { least: seq, most: seq, newest: tag }),
            Some(said) => {
                said.least = said.least.min(seq);
                said.most = said.most.max(seq);
                said.newest = said.newest.max(tag);
            }
        };
        let newest = source.deletions.covering_seq(key, MAX_SEQ, &**order);
        if let Some(seq) = newest
            && !met.contains(&seq)
        {
            note(seq, None);
            met.push(seq);
        }
        while let Some((user, tag)) = source.points.now()
            && order.compare(user, key).is_eq()
        {
            if newest.is_none_or(|deleted| tag.seq() >= deleted) {
                note(tag.seq(), Some(tag));
            }
            self.step(source, order, deletions);
        }
        said
    }

    fn start<'a>(
        &mut self,
        source: &mut Source<'a>,
        order: &ComparatorRef,
        deletions: &dyn Fn(FileId) -> Option<&'a Deletions>,
    ) {
        if let Points::Run { .. } = source.points {
            self.next_file(&mut source.points, order, deletions);
        }
    }

    fn step<'a>(
        &mut self,
        source: &mut Source<'a>,
        order: &ComparatorRef,
        deletions: &dyn Fn(FileId) -> Option<&'a Deletions>,
    ) {
        match &mut source.points {
            Points::Logs(rest, now) => *now = rest.next(),
            Points::Run { open, .. } => {
                // A block that can't be read was reported, and the rest of its table is left out.
                if !open.as_mut().is_some_and(|iter| iter.next()) {
                    self.next_file(&mut source.points, order, deletions);
                }
            }
        }
    }

    /// Opens the next file of a run that has entries.
    fn next_file<'a>(
        &mut self,
        points: &mut Points<'a>,
        order: &ComparatorRef,
        deletions: &dyn Fn(FileId) -> Option<&'a Deletions>,
    ) {
        let Points::Run { files, open } = points else { return };
        *open = None;
        for file in files.by_ref() {
            self.advance(file.bytes);
            if deletions(file.id).is_none() {
                continue;
            }
            if let Ok(table) = open_table(self.dir, file, order) {
                let mut iter = TableIter::new(table);
                iter.set_fill_cache(false);
                if iter.seek_to_first() {
                    *open = Some(Box::new(iter));
                    return;
                }
            }
        }
    }
}

impl Points<'_> {
    fn now(&self) -> Option<(&[u8], Tag)> {
        match self {
            Points::Logs(_, now) => now.and_then(Logged::point).map(|k| (k.user, k.tag)),
            Points::Run { open, .. } => {
                open.as_ref().filter(|i| i.valid()).map(|i| (i.user_key(), i.tag()))
            }
        }
    }
}

fn of_logs<'a>(logged: &'a [Logged], order: &ComparatorRef) -> Source<'a> {
    let mut points: Vec<&Logged> = logged.iter().filter(|l| l.point().is_some()).collect();
    points.sort_by(|a, b| match (a.point(), b.point()) {
        (Some(a), Some(b)) => a.cmp(b, &**order),
        _ => std::cmp::Ordering::Equal,
    });
    let ranges = logged.iter().filter_map(|l| match l {
        Logged::Range(deletion) => Some(deletion.clone()),
        Logged::Point(..) => None,
    });
    let mut rest = points.into_iter();
    let now = rest.next();
    Source {
        name: "the logs".to_owned(),
        points: Points::Logs(rest, now),
        deletions: Fragments::newest(ranges, &**order),
    }
}

/// Puts the smallest key that any source stands on into `key`; false at the end of all.
fn least_key(sources: &[Source<'_>], order: &ComparatorRef, key: &mut Vec<u8>) -> bool {
    let keys = sources.iter().filter_map(|s| s.points.now().map(|(user, _)| user));
    match keys.min_by(|a, b| order.compare(a, b)) {
        Some(least) => {
            key.clear();
            key.extend_from_slice(least);
            true
        }
        None => false,
    }
}
