//! The invariants of a version, each a function named after what it demands and numbered as in the
//! design: V1 disjoint strata, V3 ordered bounds, V4 no straddling key, V5 one place per file,
//! V6 data never moves up, V13 flushes are whole, V14 buckets cover, V15 stall depth.
//!
//! V1, V3, V4, V5, V13 and V14 are checked by every [`Version::apply`]; [`all`] walks a whole
//! version, for `verify` and for tests. V2, V9 and V10 need bytes and live in `store`; V7, V8 and
//! V12 speak of jobs and live in `plan` and `control`.

use std::fmt;

use lithify_base::{Comparator, FileId, MAX_LEVELS, Pos};

use crate::bucket::BucketMap;
use crate::edit::Edit;
use crate::file::{FileMeta, FileRef};
use crate::index;
use crate::version::Version;

/// A broken invariant: which one, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Number of the invariant, for example `V1`.
    pub name: &'static str,
    /// What was found, as a sentence.
    pub text: String,
}

impl Violation {
    /// A violation of invariant `name`.
    pub fn new(name: &'static str, text: impl Into<String>) -> Violation {
        Violation { name, text: text.into() }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.text)
    }
}

impl std::error::Error for Violation {}

/// V1 and V4: the files of one position are disjoint, so no user key is in two of them.
/// `files` are sorted by their first key.
pub fn run_is_disjoint(files: &[FileRef], order: &dyn Comparator) -> Result<(), Violation> {
    for w in files.windows(2) {
        let (a, b) = (&w[0], &w[1]);
        if a.range.is_before(&b.range, order) {
            continue;
        }
        let (x, y, pos) = (a.id, b.id, a.pos);
        return Err(if order.compare(&a.range.hi.key, &b.range.lo).is_eq() {
            Violation::new("V4", format!("one user key is in files {x} and {y} of {pos}"))
        } else {
            Violation::new("V1", format!("files {x} and {y} of {pos} overlap"))
        });
    }
    Ok(())
}

/// V3: the bounds of a file are in order and not empty.
pub fn bounds_are_ordered(f: &FileMeta, order: &dyn Comparator) -> Result<(), Violation> {
    if f.range.hi.is_before(&f.range.lo, order) {
        return Err(Violation::new("V3", format!("file {} ends before it begins", f.id)));
    }
    if f.seqs.0 > f.seqs.1 {
        return Err(Violation::new("V3", format!("file {} has its seqs in the wrong order", f.id)));
    }
    Ok(())
}

/// V5, positions: every file of the edit is at a level that exists.
pub fn edit_is_inside(edit: &Edit) -> Result<(), Violation> {
    let all = edit.adds.iter().map(|a| (a.pos, a.id)).chain(edit.deletes.iter().copied());
    for (pos, id) in all {
        if usize::from(pos.level) >= MAX_LEVELS {
            return Err(Violation::new("V5", format!("file {id} is at {pos}, outside the tree")));
        }
    }
    Ok(())
}

/// V5, identity: an added file is nowhere else, in the version or in the edit.
pub fn ids_are_new(version: &Version, edit: &Edit) -> Result<(), Violation> {
    let twice = |id: FileId| Violation::new("V5", format!("file {id} is at two positions"));
    let mut dead: Vec<FileId> = edit.deletes.iter().map(|d| d.1).collect();
    dead.sort_unstable();
    let mut ids: Vec<FileId> = edit.adds.iter().map(|a| a.id).collect();
    ids.sort_unstable();
    if let Some(w) = ids.windows(2).find(|w| w[0] == w[1]) {
        return Err(twice(w[0]));
    }
    // Each look-up asks every run; on an empty tree (recovery's first edit) there is none.
    for id in ids {
        if dead.binary_search(&id).is_err() && version.file(id).is_some() {
            return Err(twice(id));
        }
    }
    Ok(())
}

/// V5, locks: no file is an input of two jobs. `inputs` are those of all jobs in flight.
pub fn inputs_are_disjoint<'a>(
    inputs: impl Iterator<Item = &'a [FileId]>,
) -> Result<(), Violation> {
    let mut all: Vec<FileId> = inputs.flatten().copied().collect();
    all.sort_unstable();
    match all.windows(2).find(|w| w[0] == w[1]) {
        Some(w) => Err(Violation::new("V5", format!("file {} is in two jobs", w[0]))),
        None => Ok(()),
    }
}

/// V6: data never moves up; `out` is not newer than any input.
pub fn moves_down(out: Pos, inputs: &[FileRef]) -> Result<(), Violation> {
    match inputs.iter().find(|f| out.is_newer_than(f.pos)) {
        Some(f) => {
            Err(Violation::new("V6", format!("{out} is newer than input {} at {}", f.id, f.pos)))
        }
        None => Ok(()),
    }
}

/// V13: a flush adds all its files to one stratum of level 0, and nothing else adds to it. So does an
/// ingestion, whose other files may go deeper.
pub fn flush_is_whole(version: &Version, edit: &Edit) -> Result<(), Violation> {
    let level0 = || edit.adds.iter().filter(|a| a.pos.level == 0);
    let Some(first) = level0().next().filter(|_| edit.is_flush()) else {
        return Ok(());
    };
    if let Some(other) = level0().find(|a| a.pos != first.pos) {
        let text = format!("one flush adds to {} and {}", first.pos, other.pos);
        return Err(Violation::new("V13", text));
    }
    if version.run(first.pos).is_some() {
        return Err(Violation::new("V13", format!("two flushes share {}", first.pos)));
    }
    Ok(())
}

/// V14: bounds strictly increase and every bucket has its statistics.
pub fn buckets_cover(map: &BucketMap, order: &dyn Comparator) -> Result<(), Violation> {
    if map.bounds.windows(2).any(|w| order.compare(&w[0], &w[1]).is_ge()) {
        return Err(Violation::new("V14", "bucket bounds do not increase"));
    }
    if map.stats.len() != map.len() {
        let text = format!("{} buckets have {} statistics", map.len(), map.stats.len());
        return Err(Violation::new("V14", text));
    }
    Ok(())
}

/// V15: the depth that stalls are decided on is the depth one gets by asking every bound.
/// Depth changes only where a file begins, so asking there is enough.
pub fn depth_is_true(version: &Version, level: u8) -> Result<(), Violation> {
    let asked = version.level(level).files().map(|f| version.depth(level, &f.range.lo)).max();
    let (kept, asked) = (version.max_depth(level), asked.unwrap_or(0));
    if kept != asked {
        return Err(Violation::new(
            "V15",
            format!("depth of L{level} is kept as {kept}, is {asked}"),
        ));
    }
    Ok(())
}

/// Every invariant that a version alone can show.
pub fn all(version: &Version) -> Result<(), Violation> {
    let order = version.order();
    let mut ids: Vec<FileId> = Vec::with_capacity(version.file_count());
    for run in version.runs_newest_first() {
        for f in run.files() {
            bounds_are_ordered(f, order)?;
            if f.pos != run.pos {
                let text = format!("file {} says {} and is at {}", f.id, f.pos, run.pos);
                return Err(Violation::new("V5", text));
            }
            ids.push(f.id);
        }
        run_is_disjoint(run.files(), order)?;
    }
    ids.sort_unstable();
    if let Some(w) = ids.windows(2).find(|w| w[0] == w[1]) {
        return Err(Violation::new("V5", format!("file {} is at two positions", w[0])));
    }
    for l in 0..MAX_LEVELS as u8 {
        depth_is_true(version, l)?;
        debug_assert_eq!(version.max_depth(l), index::max_depth(version.level(l).runs(), order));
    }
    version.buckets().map_or(Ok(()), |map| buckets_cover(map, order))
}
