//! What is done while the disk is short of room: the narrowest jobs that free some.
//!
//! Every policy wishes for jobs that suit its shape, and each of them may need more room than there
//! is: a job may write as much as it reads, and what it reads goes only when it commits. A tree full of
//! values that were overwritten would then wait for room for ever. So once nothing is in flight and no
//! wish fits, whatever the policy, this looks for
//!
//! 1. a **pair**: one file and what lies under it in the nearest older run that has its keys, merged
//!    into that run; of all pairs the one with the fewest bytes;
//! 2. a **cut**: where no pair fits, one file of the smallest pair is written anew where it is, in
//!    several files, so that the next pairs are narrower.
//!
//! ```text
//!   L0.9  a-----------z 64K     room for 150K: no policy's job fits. L0.9 with L0.8 does (128K), and
//!   L0.8  a-----------z 64K     leaves 20K of 128K if most of it was overwritten.
//!   L1.1  a-----------z 200K    With room for 100K no pair would fit: L0.9 is cut in parts of a..f, g..m,
//!   L1.0  a-----------z 300K    n..z, then L0.8, and pairs of parts fit.
//! ```
//!
//! Each pair takes an entry nearer to the oldest run of its key, and each cut makes a file smaller (one
//! that came out whole is not cut again, [`View::uncut`]), so that this comes to an end; then nothing
//! lies over anything, and there is nothing to free.
//!
//! **A budget may be exceeded by one such job of each column family**, of twice the largest file at most: otherwise a
//! database that is over its budget already could never come back below. A job that fits nowhere is
//! tried as a last resort if it may well drop most of what it reads: if a disk would have room for a
//! quarter of it, or there is a range deletion above.
//!
//! The other half is `measures::room`: writers are stopped while there still is room for such a job.
//! Leaves to others: conflicts (`rule`), and who runs what when (`control`).

use lithify_base::{Key, Pos};
use lithify_lsm::{FileRef, Run, Version};

use crate::measures::stall;
use crate::nouns::options::PolicyKind;
use crate::nouns::spec::{Candidate, CutPolicy, Kind, Prio, Reason};
use crate::nouns::view::View;
use crate::rule::closure::close;

/// A file below this size is only cut where other files begin, bytes.
const CUT_LEAST: u64 = 16 << 10;
/// Parts that a file is cut into, about.
const CUT_PARTS: u64 = 4;
/// On a full disk a job is tried if it fits once it drops all but this share of what it reads.
const HOPED_SHARE: u64 = 4;

/// True if the lack of room keeps the tree from getting better: then a narrow job is looked for.
/// `lacking` says that a wish was refused for room, and `with_room` whether there would be a wish if there
/// were room enough.
pub(crate) fn is_wanted(view: &View, lacking: bool, with_room: impl FnOnce() -> bool) -> bool {
    let o = view.options;
    let may = view.flights().is_empty() && !o.disable_auto && o.policy != PolicyKind::Fifo;
    let all = || (0..=o.last_level()).map(|l| view.version.bytes(l)).fold(0, u64::saturating_add);
    let pressed = || stall::is_pressed(view.version, view.mem, view.options);
    let held_up = || view.limits.disk_free < all() && pressed() && with_room();
    may && (view.limits.short || lacking || held_up())
}

/// One file with what lies under it in the nearest older run.
struct Pair {
    bytes: u64,
    /// The newer file.
    upper: FileRef,
    /// Both sides, the upper first.
    inputs: Vec<FileRef>,
    to: Pos,
}

impl Pair {
    fn lower(&self) -> &[FileRef] {
        &self.inputs[1..]
    }
}

/// The narrowest job that frees room and may run in the room there is. Nothing is in flight.
pub(crate) fn wish(view: &View) -> Option<Candidate> {
    let (left, disk) = (view.limits.disk_free, view.limits.disk);
    let mut pairs = pairs(view.version);
    // Settings may have fewer levels now than the tree was made with.
    pairs.retain(|pair| view.has_level(pair.to.level));
    let smallest = pairs.first()?;
    let largest = view.version.files().map(|f| f.bytes).max().unwrap_or(0);
    let room = left.max(disk.min(largest.saturating_mul(2)));
    let merge = |pair: &Pair| {
        let reason = Reason::ShortOfRoom { left };
        Candidate::merge(Kind::Upkeep, pair.inputs.clone(), pair.to, reason).at_prio(Prio::High)
    };
    if smallest.bytes <= room {
        return Some(merge(smallest));
    }
    let cut = pairs.iter().find_map(|pair| to_cut(view, pair, room));
    if let Some(file) = cut {
        let (to, reason) = (file.pos, Reason::ShortOfRoom { left });
        return Some(Candidate::merge(Kind::Upkeep, vec![file], to, reason).at_prio(Prio::High));
    }
    let hoped = |pair: &&Pair| pair.bytes / HOPED_SHARE <= disk || pair.upper.range_deletes > 0;
    pairs.iter().find(hoped).map(merge)
}

/// All pairs, those of the fewest bytes first.
fn pairs(version: &Version) -> Vec<Pair> {
    let order = version.order();
    let runs: Vec<&Run> = version.runs_newest_first().collect();
    let mut pairs = Vec::new();
    for (at, run) in runs.iter().enumerate() {
        for f in run.files() {
            let under = runs[at + 1..].iter().find(|r| !r.overlapping(&f.range, order).is_empty());
            let Some(under) = under else { continue };
            let inputs = close(version, std::slice::from_ref(f), under.pos);
            let bytes = inputs.iter().map(|f| f.bytes).fold(0, u64::saturating_add);
            pairs.push(Pair { bytes, upper: f.clone(), inputs, to: under.pos });
        }
    }
    pairs.sort_by_key(|p| p.bytes);
    pairs
}

/// The file of a pair that is better cut before the pair is merged: the upper one where it lies over
/// several, else the larger.
fn to_cut(view: &View, pair: &Pair, room: u64) -> Option<FileRef> {
    let divides = |f: &&FileRef| {
        f.bytes <= room && f.entries > 1 && view.uncut.is_none_or(|uncut| !uncut.contains(&f.id))
    };
    match pair.lower() {
        [_, _, ..] => Some(&pair.upper).filter(divides).cloned(),
        lower => {
            let both = std::iter::once(&pair.upper).chain(lower).filter(divides);
            both.filter(|f| f.bytes >= CUT_LEAST).max_by_key(|f| f.bytes).cloned()
        }
    }
}

/// Where the output of such a job is cut: into files no larger than a flush makes, so that what comes
/// after is narrow, too; that of a cut where the files below begin, and in parts.
pub(crate) fn cuts(view: &View, inputs: &[FileRef], cuts: &mut CutPolicy) {
    let options = view.options;
    let target = options.file_bytes.min(options.memtable_bytes).max(CUT_LEAST);
    cuts.target_bytes = cuts.target_bytes.min(target);
    cuts.parts = 1;
    if let [file] = inputs {
        cuts.target_bytes = cuts.target_bytes.min(file.bytes / CUT_PARTS).max(1);
        cuts.hard = begins_inside(view.version, file);
    }
    cuts.soft_min_bytes = cuts.soft_min_bytes.min(cuts.target_bytes);
}

/// Keys inside a file at which the files of the nearest older run begin, and its last key, so that there
/// are at least two parts.
fn begins_inside(version: &Version, file: &FileRef) -> Vec<Key> {
    let order = version.order();
    let older = version.runs_newest_first().filter(|r| r.pos.is_older_than(file.pos));
    let under = older.map(|r| r.overlapping(&file.range, order)).find(|files| !files.is_empty());
    let begins = under.into_iter().flatten().map(|f| f.range.lo.clone());
    let mut keys: Vec<Key> = begins.filter(|k| order.compare(k, &file.range.lo).is_gt()).collect();
    if file.range.hi.inclusive {
        let last = &file.range.hi.key;
        if keys.last().is_none_or(|k| order.compare(k, last).is_lt())
            && order.compare(last, &file.range.lo).is_gt()
        {
            keys.push(last.clone());
        }
    }
    keys
}
