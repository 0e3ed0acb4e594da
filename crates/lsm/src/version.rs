//! The tree at one moment: seven levels of runs. Immutable; [`Version::apply`] is the only way to
//! make another one, and it accepts an edit only if the result keeps invariants V1 and V3 to V5.
//!
//! A clone costs a few reference counts. An edit rebuilds the runs it touches and shares the rest.

use std::sync::{Arc, OnceLock};

use lithify_base::{Comparator, ComparatorRef, FileId, Key, KeyRange, MAX_LEVELS, Pos};

use crate::bucket::BucketMap;
use crate::check::{self, Violation};
use crate::edit::Edit;
use crate::file::FileRef;
use crate::index;
use crate::level::Level;
use crate::run::Run;

/// Per run of a level (newest first) and file, the bytes of the next level that overlap it.
type Overlaps = Arc<OnceLock<Box<[Box<[u64]>]>>>;

/// An immutable set of runs.
#[derive(Clone)]
pub struct Version {
    order: ComparatorRef,
    levels: [Level; MAX_LEVELS],
    buckets: Option<Arc<BucketMap>>,
    cursors: [Option<Key>; MAX_LEVELS],
    log_number: u64,
    overlaps: [Overlaps; MAX_LEVELS],
}

impl Version {
    /// A tree without files.
    pub fn empty(order: ComparatorRef) -> Version {
        Version {
            order,
            levels: Default::default(),
            buckets: None,
            cursors: Default::default(),
            log_number: 0,
            overlaps: Default::default(),
        }
    }

    /// The version after `edit`.
    ///
    /// # Errors
    /// The invariant that the result would break: a deleted file that is not there or an added
    /// one that is (V5), a position outside the tree (V5), bounds in the wrong order (V3), files
    /// of one position that overlap (V1) or share a user key (V4), a flush spread over strata
    /// (V13), a bucket map out of order (V14). `self` is unchanged.
    pub fn apply(&self, edit: &Edit) -> Result<Version, Violation> {
        let order = &*self.order;
        check::edit_is_inside(edit)?;
        check::flush_is_whole(self, edit)?;
        check::ids_are_new(self, edit)?;
        let mut next = self.clone();
        for l in 0..MAX_LEVELS {
            let touched = |p: Pos| usize::from(p.level) == l;
            if edit.deletes.iter().any(|d| touched(d.0)) || edit.adds.iter().any(|a| touched(a.pos))
            {
                next.levels[l] = apply_level(&self.levels[l], l as u8, edit, order)?;
            }
        }
        if let Some(map) = &edit.bucket_hint {
            next = next.with_buckets(map.clone())?;
        }
        if let Some(n) = edit.log_number {
            next.log_number = next.log_number.max(n);
        }
        for (l, key) in &edit.cursors {
            if let Some(c) = next.cursors.get_mut(usize::from(*l)) {
                *c = Some(key.clone());
            }
        }
        for l in 0..MAX_LEVELS {
            let below = (l + 1).min(MAX_LEVELS - 1);
            if !next.levels[l].same(&self.levels[l])
                || !next.levels[below].same(&self.levels[below])
            {
                next.overlaps[l] = Overlaps::default();
            }
        }
        Ok(next)
    }

    /// The same tree with another bucket map.
    ///
    /// # Errors
    /// A bucket map out of order (V14).
    pub fn with_buckets(self, map: Arc<BucketMap>) -> Result<Version, Violation> {
        check::buckets_cover(&map, &*self.order)?;
        Ok(Version { buckets: Some(map), ..self })
    }

    /// The order of user keys.
    pub fn order(&self) -> &dyn Comparator {
        &*self.order
    }
    /// The order of user keys, to keep.
    pub fn comparator(&self) -> &ComparatorRef {
        &self.order
    }
    /// A level. Panics if `level` is not below [`MAX_LEVELS`].
    pub fn level(&self, level: u8) -> &Level {
        &self.levels[usize::from(level)]
    }
    /// The run at a position.
    pub fn run(&self, pos: Pos) -> Option<&Run> {
        self.levels.get(usize::from(pos.level))?.run(pos.stratum)
    }
    /// All runs, newest first: the order in which a read must look at them.
    pub fn runs_newest_first(&self) -> impl DoubleEndedIterator<Item = &Run> {
        self.levels.iter().flat_map(|l| l.runs())
    }
    /// The files that may hold `key`, newest first, at most one per run.
    pub fn runs_covering<'a>(&'a self, key: &'a [u8]) -> impl Iterator<Item = &'a FileRef> {
        self.runs_newest_first().filter_map(move |r| r.find(key, &*self.order))
    }
    /// All files, newest run first.
    pub fn files(&self) -> impl DoubleEndedIterator<Item = &FileRef> {
        self.runs_newest_first().flat_map(|r| r.files())
    }
    /// Number of files.
    pub fn file_count(&self) -> usize {
        self.levels.iter().map(Level::file_count).sum()
    }
    /// The file with this number, wherever it is.
    pub fn file(&self, id: FileId) -> Option<&FileRef> {
        self.runs_newest_first().find_map(|r| r.file(id))
    }
    /// Bytes of a level.
    pub fn bytes(&self, level: u8) -> u64 {
        self.level(level).bytes()
    }
    /// Bytes of all levels.
    pub fn all_bytes(&self) -> u64 {
        self.levels.iter().map(Level::bytes).fold(0, u64::saturating_add)
    }
    /// Number of runs of `level` that cover `key`.
    pub fn depth(&self, level: u8, key: &[u8]) -> u32 {
        self.level(level).runs().iter().filter(|r| r.find(key, &*self.order).is_some()).count()
            as u32
    }
    /// The largest depth over all keys.
    pub fn max_depth(&self, level: u8) -> u32 {
        self.level(level).max_depth()
    }
    /// The files of `level` that overlap `range`, newest run first, each run in key order.
    pub fn overlapping<'a>(
        &'a self,
        level: u8,
        range: &'a KeyRange,
    ) -> impl Iterator<Item = &'a FileRef> {
        self.level(level).runs().iter().flat_map(move |r| r.overlapping(range, &*self.order))
    }
    /// Bytes of the files of `level` that overlap `range`.
    pub fn overlapping_bytes(&self, level: u8, range: &KeyRange) -> u64 {
        let runs = self.level(level).runs().iter();
        runs.map(|r| r.overlapping_bytes(range, &*self.order)).sum()
    }
    /// For run `run` (newest first) of `level`, per file the bytes of the next level it overlaps.
    /// Found once for each pair of levels and shared by all versions that have the same pair.
    pub fn overlap_below(&self, level: u8, run: usize) -> &[u64] {
        let l = usize::from(level);
        let all = self.overlaps[l].get_or_init(|| match self.levels.get(l + 1) {
            Some(next) => index::overlap_bytes(&self.levels[l], next, &*self.order),
            None => self.levels[l].runs().iter().map(|r| vec![0; r.files().len()].into()).collect(),
        });
        &all[run]
    }
    /// The deepest level that has files.
    pub fn deepest_level(&self) -> Option<u8> {
        (0..MAX_LEVELS as u8).rev().find(|&l| !self.level(l).is_empty())
    }
    /// The bucket map, if there is one.
    pub fn buckets(&self) -> Option<&Arc<BucketMap>> {
        self.buckets.as_ref()
    }
    /// Where the round-robin priority goes on in `level`.
    pub fn cursor(&self, level: u8) -> Option<&Key> {
        self.cursors[usize::from(level)].as_ref()
    }
    /// Write-ahead logs with smaller numbers are not needed by this column family.
    pub fn log_number(&self) -> u64 {
        self.log_number
    }
}

/// One level after `edit`: untouched runs are shared, touched ones are merged anew.
fn apply_level(
    level: &Level,
    number: u8,
    edit: &Edit,
    order: &dyn Comparator,
) -> Result<Level, Violation> {
    let mut adds: Vec<FileRef> = Vec::new();
    for a in edit.adds.iter().filter(|a| a.pos.level == number) {
        check::bounds_are_ordered(a, order)?;
        adds.push(Arc::new(a.clone()));
    }
    let mut deletes: Vec<_> = edit.deletes.iter().filter(|d| d.0.level == number).collect();
    deletes.sort_unstable();
    adds.sort_by(|a, b| a.pos.cmp(&b.pos).then_with(|| order.compare(&a.range.lo, &b.range.lo)));
    let mut strata: Vec<Pos> = level.runs().iter().map(|r| r.pos).collect();
    strata.extend(adds.iter().map(|a| a.pos));
    strata.extend(deletes.iter().map(|d| d.0));
    strata.sort_unstable();
    strata.dedup();

    let mut runs = Vec::with_capacity(strata.len());
    let (mut adds, mut deletes) = (adds.into_iter().peekable(), deletes.into_iter().peekable());
    for pos in strata {
        let mut new: Vec<FileRef> = Vec::new();
        while let Some(f) = adds.next_if(|f| f.pos == pos) {
            new.push(f);
        }
        let mut dead: Vec<FileId> = Vec::new();
        while let Some(d) = deletes.next_if(|d| d.0 == pos) {
            dead.push(d.1);
        }
        let old = level.run(pos.stratum);
        if let (Some(old), true, true) = (old, new.is_empty(), dead.is_empty()) {
            runs.push(old.clone());
            continue;
        }
        let files = merge_run(old, &dead, new, pos, order)?;
        if !files.is_empty() {
            check::run_is_disjoint(&files, order)?;
            runs.push(Run::new(pos, files));
        }
    }
    Ok(Level::new(runs, order))
}

/// The files of one run after the deletions `dead` (sorted) and the additions `new` (by key).
fn merge_run(
    old: Option<&Run>,
    dead: &[FileId],
    new: Vec<FileRef>,
    pos: Pos,
    order: &dyn Comparator,
) -> Result<Vec<FileRef>, Violation> {
    for &id in dead {
        if old.and_then(|r| r.file(id)).is_none() {
            return Err(Violation::new("V5", format!("deleted file {id} is not at {pos}")));
        }
    }
    let kept = old.map_or(&[][..], Run::files);
    let mut files = Vec::with_capacity(kept.len() + new.len());
    let mut new = new.into_iter().peekable();
    for f in kept.iter().filter(|f| dead.binary_search(&f.id).is_err()) {
        while let Some(n) = new.next_if(|n| order.compare(&n.range.lo, &f.range.lo).is_lt()) {
            files.push(n);
        }
        files.push(f.clone());
    }
    files.extend(new);
    Ok(files)
}

impl std::fmt::Debug for Version {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&crate::picture::summary(self))
    }
}
