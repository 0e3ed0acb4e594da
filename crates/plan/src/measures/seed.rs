//! In which order the files of a level are considered for compaction, by the priority in use
//! ([`CompactionPri`]).
//!
//! Only the best [`SEEDS_KEPT`] are sorted out. Ties go to the smallest key, so that the order is
//! a function of the tree alone.

use lithify_base::{Key, Level};
use lithify_lsm::{FileRef, Run, Version};

use crate::nouns::options::PlanOptions;
use crate::nouns::pri::CompactionPri;
use crate::nouns::spec::{JobSpec, Kind};
use crate::nouns::view::View;

/// Files of one level that are sorted for one plan.
pub const SEEDS_KEPT: usize = 128;

/// Idle seeds of one level that are tried before the next level gets its turn.
pub const SEEDS_TRIED: usize = 50;

/// The best files of the `wanted` runs of `level` that no job held when the plan began. The oldest stratum first: a
/// newer one cannot pass it. A file may have become locked since.
pub(crate) fn order_seeds(
    view: &View,
    level: Level,
    wanted: impl Fn(&Run) -> bool,
) -> Vec<FileRef> {
    let order = view.order();
    let mut out = Vec::new();
    let runs = view.version.level(level).runs();
    for (r, run) in runs.iter().enumerate().rev().filter(|(_, run)| wanted(run)) {
        let overlaps = view.version.overlap_below(level, r);
        let start = match (view.options.pri, view.version.cursor(level)) {
            (CompactionPri::RoundRobin, Some(key)) => run.lower_bound(key, order),
            _ => 0,
        };
        let mut keyed: Vec<(u64, u32)> = Vec::with_capacity(run.files().len());
        for (i, f) in run.files().iter().enumerate() {
            if view.is_idle(f) {
                let key = match view.options.pri {
                    CompactionPri::MinOverlappingRatio => ratio(overlaps[i], f.compensated_bytes()),
                    CompactionPri::ByCompensatedSize => u64::MAX - f.compensated_bytes(),
                    CompactionPri::OldestLargestSeqFirst => f.seqs.1,
                    CompactionPri::OldestSmallestSeqFirst => f.seqs.0,
                    // Files before the cursor come last.
                    CompactionPri::RoundRobin => u64::from(i < start),
                };
                keyed.push((key, i as u32));
            }
        }
        let room = SEEDS_KEPT - out.len();
        if keyed.len() > room {
            keyed.select_nth_unstable(room - 1);
            keyed.truncate(room);
        }
        keyed.sort_unstable();
        out.extend(keyed.iter().map(|&(_, i)| run.files()[i as usize].clone()));
        if out.len() == SEEDS_KEPT {
            break;
        }
    }
    out
}

/// `overlap / size` in 1/1024.
fn ratio(overlap: u64, size: u64) -> u64 {
    let r = (u128::from(overlap) << 10) / u128::from(size.max(1));
    u64::try_from(r).unwrap_or(u64::MAX)
}

/// Where the round-robin priority goes on once `spec` has committed: at the file after its inputs
/// of the upper level, or at the first one again. For the edit of that commit; `None` for other
/// priorities and for jobs that do not take seeds from a level.
pub fn cursor_after(
    version: &Version,
    options: &PlanOptions,
    spec: &JobSpec,
) -> Option<(Level, Key)> {
    if options.pri != CompactionPri::RoundRobin || !matches!(spec.kind, Kind::Down | Kind::Move) {
        return None;
    }
    let inputs = spec.inputs.iter().filter_map(|&id| version.file(id));
    let from = inputs.clone().map(|f| f.pos).min()?;
    if from.level == 0 {
        return None;
    }
    let run = version.run(from)?;
    let last = inputs.filter_map(|f| run.index_of(f.id)).max()?;
    let next =
        run.files().get(last + 1).map_or_else(|| Key::from(&b""[..]), |f| f.range.lo.clone());
    Some((from.level, next))
}

impl View<'_> {
    /// Idle files of `level` in the order in which they should be compacted. A caller tries
    /// [`SEEDS_TRIED`] of those that it may take.
    pub fn seeds(&self, level: Level) -> impl Iterator<Item = &FileRef> {
        let all = self.seeds[usize::from(level)].get_or_init(|| order_seeds(self, level, |_| true));
        all.iter().filter(|f| self.is_idle(f))
    }
}
