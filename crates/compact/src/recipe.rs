//! From a job and the tree at issue to the recipe that decides its output bytes.

use lithify_base::zoo::{self, Bug};
use lithify_base::{
    Comparator, FilterContext, FilterJob, Key, KeyRange, Pos, Result, Seq, filter_of,
};
use lithify_env::sync::Arc;
use lithify_format::compress::Codec;
use lithify_lsm::{FileRef, Version};
use lithify_merge::recipe::Density;
use lithify_merge::tombstone::{Fragments, RangeTombstone};
use lithify_merge::{InUse, Recipe, UserFilter};
use lithify_plan::Kind;
use lithify_tables::sst::FullIndex;

use crate::context::JobContext;

/// The input files of one position, in key order: one sorted sequence of entries.
pub(crate) struct InputRun {
    pub(crate) pos: Pos,
    pub(crate) files: Vec<(FileRef, Arc<FullIndex>)>,
}

/// Groups inputs (newest position first, each in key order) by position.
pub(crate) fn input_runs(inputs: Vec<(FileRef, Arc<FullIndex>)>) -> Vec<InputRun> {
    let mut runs: Vec<InputRun> = Vec::new();
    for (file, reader) in inputs {
        match runs.last_mut() {
            Some(run) if run.pos == file.pos => run.files.push((file, reader)),
            _ => runs.push(InputRun { pos: file.pos, files: vec![(file, reader)] }),
        }
    }
    runs
}

/// Whether all tables record how many entries each of their blocks has.
pub(crate) fn counted(runs: &[InputRun]) -> bool {
    let inputs = runs.iter().flat_map(|run| &run.files).map(|(_, input)| input);
    inputs.flat_map(|input| input.block_fences().next()).all(|first| first.counts.is_some())
}

/// For data of an input at `pos`: where older data may lie that is not an input. Inputs of other
/// jobs in flight are still in the tree, so they count (parallel-compaction 2.5).
pub(crate) fn in_use(version: &Version, runs: &[InputRun], pos: Pos, hull: &KeyRange) -> InUse {
    let order = version.order();
    let is_input = |f: &FileRef| {
        runs.iter().any(|r| r.pos == f.pos && r.files.iter().any(|(input, _)| input.id == f.id))
    };
    let mut ranges: Vec<KeyRange> = version
        .runs_newest_first()
        .filter(|run| run.pos.is_older_than(pos))
        .flat_map(|run| match run.overlapping(hull, order) {
            [first, ..] if zoo::on(Bug::OtherBucketForgotten) => std::slice::from_ref(first),
            all => all,
        })
        .filter(|f| !is_input(f))
        .map(|f| f.range.clone())
        .collect();
    ranges.sort_by(|a, b| order.compare(&a.lo, &b.lo));
    InUse::Ranges(union(ranges, order))
}

/// Merges sorted ranges that touch or overlap.
fn union(ranges: Vec<KeyRange>, order: &dyn Comparator) -> Vec<KeyRange> {
    let mut out: Vec<KeyRange> = Vec::new();
    for range in ranges {
        match out.last_mut() {
            Some(last) if !last.is_before(&range, order) => *last = last.hull(&range, order),
            _ => out.push(range),
        }
    }
    out
}

/// All range tombstones of the inputs, each inside the bounds of its file and with its run.
pub(crate) fn tombstones(runs: &[InputRun], order: &dyn Comparator) -> Fragments {
    let files = (0u16..).zip(runs).flat_map(|(no, run)| run.files.iter().map(move |f| (no, f)));
    let sources =
        files.filter(|(_, (file, _))| file.range_deletes > 0).map(|(no, (file, input))| {
            match zoo::on(Bug::InputUnclamped) {
                true => (no, input.table().stored_tombstones().clone()),
                false => (no, input.table().tombstones_of(file)),
            }
        });
    Fragments::union(sources, order)
}

/// What a stored byte of the inputs comes to at most; none if a table does not say.
fn density(runs: &[InputRun]) -> Option<Density> {
    let of = |file: &FileRef, compression: &str| {
        let data = file.bytes.saturating_sub(file.tail_bytes);
        let of = Density::of(data, file.entries, file.raw_key_bytes, file.raw_value_bytes)?;
        Some(if compression == Codec::None.name() { of.uncompressed() } else { of })
    };
    // One of range tombstones alone has no blocks.
    let mut files = runs
        .iter()
        .flat_map(|run| &run.files)
        .filter(|(file, _)| file.entries > 0 || file.bytes > file.tail_bytes);
    files.try_fold(Density::default(), |most, (file, input)| {
        Some(most.max(of(file, &input.table().properties().compression)?))
    })
}

/// The recipe of a compaction into `out`.
pub(crate) fn compaction(
    context: &JobContext,
    version: &Version,
    runs: &[InputRun],
    plan: &lithify_plan::JobSpec,
    snapshots: Vec<Seq>,
) -> Result<Recipe> {
    let mut recipe = Recipe::new(runs.len() as u16);
    recipe.order = context.order.clone();
    recipe.snapshots = snapshots;
    let above = |pos| if zoo::on(Bug::DeeperLevelsOnly) { Pos::base(plan.out.level) } else { pos };
    recipe.in_use = runs.iter().map(|r| in_use(version, runs, above(r.pos), &plan.hull)).collect();
    recipe.tombstones = tombstones(runs, &*context.order);
    recipe.hard_splits = plan.cuts.hard.clone();
    recipe.soft_splits = plan.cuts.soft.clone();
    let inputs: usize = runs.iter().map(|run| run.files.len()).sum();
    let full = inputs == version.files().count();
    let job = FilterJob::new(plan.out.level, full, plan.kind == Kind::Manual);
    recipe.user_filter = context.filter.as_ref().map(|filter| UserFilter {
        filter: filter_of(filter, &job),
        context: FilterContext {
            level: plan.out.level,
            bottommost: recipe.in_use.iter().all(|used| *used == InUse::none()),
            now: context.env.rt.wall_seconds(),
        },
    });
    recipe.file_bytes = plan.cuts.target_bytes.max(u64::from(context.output.block_bytes));
    recipe.density = density(runs);
    encode(context, &mut recipe, plan.out.level);
    recipe.check()?;
    Ok(recipe)
}

/// The recipe of a flush: older data may lie anywhere, so nothing is elided or zeroed, and the
/// user's filter is not asked.
pub(crate) fn flush(
    context: &JobContext,
    raw: Vec<RangeTombstone>,
    splits: Vec<Key>,
    snapshots: Vec<Seq>,
    level: u8,
) -> Result<Recipe> {
    let mut recipe = Recipe::new(1);
    recipe.order = context.order.clone();
    recipe.snapshots = snapshots;
    recipe.tombstones = Fragments::for_snapshots(raw, &recipe.snapshots, &*context.order);
    recipe.hard_splits = splits;
    recipe.file_bytes = u64::MAX;
    recipe.drop_tombstones = false;
    recipe.zero_seqs = false;
    encode(context, &mut recipe, level);
    recipe.check()?;
    Ok(recipe)
}

/// What flushes and compactions have in common.
fn encode(context: &JobContext, recipe: &mut Recipe, level: u8) {
    context.output.encode(recipe, level);
    recipe.operator = context.operator.clone();
}
