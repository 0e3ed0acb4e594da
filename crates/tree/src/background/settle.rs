//! Settling: a directory that RocksDB opens.
//!
//! RocksDB keeps one run in each level but the topmost, and reads tables of format version 2 and
//! later. Whatever is otherwise is merged; a tree that is like that already stays as it is.
//!
//! ```text
//!   L1.1  a---d     p--s           a..f and p..t are merged, each by itself; h..n stays
//!   L1.0    c--f h--n p----t
//! ```
//!
//! Leaves to others: how a range comes into one run (`lithify_plan`, manual requests).

use std::collections::BTreeSet;

use lithify_base::{Error, ErrorKind, FileId, KeyRange, Result};
use lithify_env::sync::atomic::Ordering;
use lithify_plan::ManualRequest;

use crate::shell::Shell;

/// Oldest format version of tables that RocksDB still reads.
const FORMAT_READ: u32 = 2;

/// Why a table keeps RocksDB from opening the directory.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reason {
    /// It is not in its level's one run, or a part of another table.
    Place,
    /// Its format is too old.
    Format,
}

impl Shell {
    /// Brings the tree into a form that RocksDB opens. Nothing is compacted on its own from here on.
    pub(crate) fn settle(&self) -> Result<()> {
        self.set_auto_compaction(false);
        self.flush()?;
        self.wait_idle(None)?;
        let mut before: Option<BTreeSet<FileId>> = None;
        loop {
            let stretches = self.unsettled()?;
            let files: BTreeSet<FileId> =
                stretches.iter().flat_map(|s| s.files.iter().copied()).collect();
            if files.is_empty() {
                return Ok(());
            }
            // Each round replaces every one of them.
            if before.is_some_and(|before| !before.is_disjoint(&files)) {
                let what = "a compaction left files where they were; nothing is lost";
                return Err(Error::new(ErrorKind::Internal, what));
            }
            for stretch in stretches {
                let request = ManualRequest {
                    up_to: Some(self.shared.writes.published.load(Ordering::Acquire)),
                    rewrite_before: stretch.rewrite.then(|| self.shared.next_file()),
                    ..ManualRequest::new(Some(stretch.range))
                };
                self.serve(request, None)?;
            }
            before = Some(files);
        }
    }

    /// The stretches of keys in which something is to be done, apart from each other.
    fn unsettled(&self) -> Result<Vec<Stretch>> {
        let sv = self.super_version();
        let order = self.order();
        let mut found = Vec::new();
        for file in sv.tree.version.files() {
            let misplaced = file.pos.level > 0 && file.pos.stratum.0 > 0 || file.backing.is_some();
            let reason = match misplaced {
                true => Some(Reason::Place),
                false => {
                    let old = self.family.tables.open(file)?.format_version() < FORMAT_READ;
                    old.then_some(Reason::Format)
                }
            };
            found.extend(reason.map(|reason| (file.range.clone(), file.id, reason)));
        }
        found.sort_by(|a, b| order.compare(&a.0.lo, &b.0.lo));
        let mut stretches: Vec<Stretch> = Vec::new();
        for (range, id, reason) in found {
            let rewrite = reason == Reason::Format;
            match stretches.last_mut().filter(|s| s.range.overlaps(&range, order)) {
                Some(last) => {
                    last.range = last.range.hull(&range, order);
                    last.files.push(id);
                    last.rewrite |= rewrite;
                }
                None => stretches.push(Stretch { range, files: vec![id], rewrite }),
            }
        }
        Ok(stretches)
    }
}

/// Keys that are to be compacted.
struct Stretch {
    range: KeyRange,
    files: Vec<FileId>,
    /// Even what is in its place.
    rewrite: bool,
}
