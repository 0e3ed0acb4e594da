//! A run: the files of one position. They are disjoint and sorted, so one binary search finds the
//! only file that can hold a key.
//!
//! The search first compares the first eight bytes of the file ends as integers, kept in one flat
//! array, and looks at whole keys only where those tie. With 18,000 files that is 15 steps inside
//! 144 KB instead of 45 dependent cache misses. Any order but the bytewise one skips that step.

use std::sync::Arc;

use lithify_base::{Comparator, FileId, KeyRange, Pos};

use crate::file::FileRef;

/// Disjoint files of one position, sorted by key.
#[derive(Clone, Debug)]
pub struct Run {
    /// Position of every file here.
    pub pos: Pos,
    files: Arc<[FileRef]>,
    /// First eight bytes of each file's end key, big-endian and zero-padded.
    heads: Arc<[u64]>,
    /// Bytes of the files before each one, and of all of them at the end.
    sums: Arc<[u64]>,
    compensated: u64,
    marked: bool,
    /// File numbers, sorted, with the index of each.
    ids: Arc<[(FileId, u32)]>,
}

/// First eight bytes of a key as an integer that sorts like the key.
fn head(key: &[u8]) -> u64 {
    let mut h = [0; 8];
    let n = key.len().min(8);
    h[..n].copy_from_slice(&key[..n]);
    u64::from_be_bytes(h)
}

impl Run {
    /// A run of files that are already sorted and disjoint; `Version::apply` checks that.
    pub(crate) fn new(pos: Pos, files: Vec<FileRef>) -> Run {
        let heads = files.iter().map(|f| head(&f.range.hi.key)).collect();
        let mut sums = Vec::with_capacity(files.len() + 1);
        let mut sum = 0u64;
        sums.push(0);
        for f in &files {
            sum = sum.saturating_add(f.bytes);
            sums.push(sum);
        }
        let mut ids: Vec<_> = files.iter().enumerate().map(|(i, f)| (f.id, i as u32)).collect();
        ids.sort_unstable();
        let compensated = files.iter().fold(0u64, |s, f| s.saturating_add(f.compensated_bytes()));
        Run {
            compensated,
            marked: files.iter().any(|f| f.marked),
            pos,
            files: files.into(),
            heads,
            sums: sums.into(),
            ids: ids.into(),
        }
    }

    /// The files, in key order. Never empty inside a version.
    pub fn files(&self) -> &[FileRef] {
        &self.files
    }

    /// Bytes of all files.
    pub fn bytes(&self) -> u64 {
        self.sums.last().copied().unwrap_or(0)
    }

    /// Bytes of all files, deletions weighted up.
    pub fn compensated_bytes(&self) -> u64 {
        self.compensated
    }

    /// True if a file is marked to be compacted soon.
    pub fn has_marked(&self) -> bool {
        self.marked
    }

    /// Index of the first file that does not end before `key`; the number of files if all do.
    pub fn lower_bound(&self, key: &[u8], order: &dyn Comparator) -> usize {
        let (mut from, mut to) = (0, self.files.len());
        if order.is_bytewise() {
            let h = head(key);
            from = self.heads.partition_point(|&x| x < h);
            to = from + self.heads[from..].partition_point(|&x| x == h);
        }
        from + self.files[from..to].partition_point(|f| f.range.hi.is_before(key, order))
    }

    /// The only file whose range contains `key`, if there is one.
    pub fn find(&self, key: &[u8], order: &dyn Comparator) -> Option<&FileRef> {
        let f = self.files.get(self.lower_bound(key, order))?;
        order.compare(&f.range.lo, key).is_le().then_some(f)
    }

    /// Indexes of the files that overlap `range`.
    pub fn overlapping_span(
        &self,
        range: &KeyRange,
        order: &dyn Comparator,
    ) -> std::ops::Range<usize> {
        let from = self.lower_bound(&range.lo, order);
        // The first file that begins past the end lies at or right after the one holding the end.
        let mut to = self.lower_bound(&range.hi.key, order).max(from);
        if self.files.get(to).is_some_and(|f| !range.hi.is_before(&f.range.lo, order)) {
            to += 1;
        }
        from..to
    }

    /// The files that overlap `range`, in key order.
    pub fn overlapping(&self, range: &KeyRange, order: &dyn Comparator) -> &[FileRef] {
        &self.files[self.overlapping_span(range, order)]
    }

    /// Bytes of the files that overlap `range`.
    pub fn overlapping_bytes(&self, range: &KeyRange, order: &dyn Comparator) -> u64 {
        let span = self.overlapping_span(range, order);
        self.sums[span.end] - self.sums[span.start]
    }

    /// The file with this number, if it is here.
    pub fn file(&self, id: FileId) -> Option<&FileRef> {
        self.index_of(id).map(|i| &self.files[i])
    }

    /// Index of the file with this number, if it is here.
    pub fn index_of(&self, id: FileId) -> Option<usize> {
        let at = self.ids.binary_search_by_key(&id, |e| e.0).ok()?;
        Some(self.ids[at].1 as usize)
    }
}
