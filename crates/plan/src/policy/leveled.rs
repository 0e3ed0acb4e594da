//! One run per level. A level over its target gives its best file to the next level, together with
//! what lies under it there; jobs on disjoint key ranges run at the same time.
//!
//! Keeps: L1 and below have only their base run. Leaves to others: conflicts (`relation`), the
//! piling up of L0 (`hybrid`).
//!
//! ```text
//!   L1.0  a---f g---m n---z      L1 is over target; n..z has the least below it, but job 1
//!   L2.0  a-d   g-i k-p=======z  holds p..z. The next seed a..f is free: L1[a..f] L2[a..d] -> L2
//! ```

use lithify_base::{JobId, KeyRange, Level, Pos};
use lithify_lsm::FileRef;

use crate::closure::close;
use crate::policy::Policy;
use crate::relation::hull;
use crate::score::{self, Score};
use crate::seed::CompactionPri;
use crate::spec::{Candidate, Kind, Prio, Reason};
use crate::view::View;

/// Files one move may take along (RocksDB's `kMaxMultiTrivialMove`).
const MOVE_FILES_MAX: usize = 4;

/// Wishes for one level in one round: enough that a late rejection does not hide the level.
const WISHES_PER_LEVEL: usize = 4;

/// The policy `leveled`: L0 is merged into the base level as soon as it has a run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Leveled;

impl Policy for Leveled {
    fn propose(&self, view: &View, out: &mut Vec<Candidate>) {
        by_rank(view, &L0Rules { instead: |_| None, when_blocked: |_, _| None }, out);
    }
}

/// What a policy does with L0 besides sending it down.
pub(crate) struct L0Rules {
    /// A better idea than going down, although the way is free.
    pub(crate) instead: fn(&View) -> Option<Candidate>,
    /// What to do while L0 cannot go down.
    pub(crate) when_blocked: fn(&View, Blocked) -> Option<Candidate>,
}

/// Wishes of all levels in the order of their scores. If L0 is due and cannot go down, the base
/// level gives nothing to the next one either, since it would keep locking what L0 waits for.
pub(crate) fn by_rank(view: &View, l0: &L0Rules, out: &mut Vec<Candidate>) {
    if view.options.disable_auto {
        return;
    }
    let mut l0_waits = false;
    for (level, score) in score::ranked(view) {
        if score < Score::ONE {
            break;
        }
        if level == 0 {
            match l0_to_base(view, score, l0) {
                Ok(wish) => out.push(wish),
                Err(blocked) => {
                    l0_waits = true;
                    out.extend((l0.when_blocked)(view, blocked));
                }
            }
        } else if !(l0_waits && level == view.targets.base) {
            level_down(view, level, score, out);
        }
    }
}

/// Why L0 cannot go down: the job in the way, if it is one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Blocked(pub(crate) Option<JobId>);

/// L0 into the base level: one job at a time, with all L0 files that hang together.
fn l0_to_base(view: &View, score: Score, l0: &L0Rules) -> Result<Candidate, Blocked> {
    if let Some(k) = view.flights().iter().find(|k| k.inputs.iter().any(|f| f.pos.level == 0)) {
        return Err(Blocked(Some(k.id)));
    }
    let base = Pos::base(view.targets.base);
    let reason = l0_reason(view, score);
    if let Some(files) = l0_move(view, base) {
        return Ok(Candidate::merge(Kind::Move, files, base, reason).at_prio(Prio::High));
    }
    if let Some(wish) = (l0.instead)(view) {
        return Ok(wish);
    }
    let inputs = close(view.version, &l0_component(view), base);
    if let Some(by) = inputs.iter().find_map(|f| view.holder(f.id)) {
        return Err(Blocked(Some(by)));
    }
    let Some(range) = hull(&inputs, view.order()) else { return Err(Blocked(None)) };
    if let Some(k) =
        view.flights().iter().find(|k| k.out == base && k.hull.overlaps(&range, view.order()))
    {
        return Err(Blocked(Some(k.id)));
    }
    let kind = if is_move(view, &inputs, base) { Kind::Move } else { Kind::Down };
    Ok(Candidate::merge(kind, inputs, base, reason).at_prio(Prio::High))
}

pub(crate) fn l0_reason(view: &View, score: Score) -> Reason {
    let (runs, trigger) = (view.idle_runs(0).count() as u32, view.options.l0_trigger());
    if runs >= trigger { Reason::L0Runs { runs, trigger } } else { Reason::L0Bytes { score } }
}

/// The oldest file of L0 and every L0 file that its range reaches, directly or through others.
fn l0_component(view: &View) -> Vec<FileRef> {
    let order = view.order();
    let Some(oldest) = view.version.level(0).runs().last() else { return Vec::new() };
    let mut range: KeyRange = oldest.files()[0].range.clone();
    loop {
        let files: Vec<FileRef> = view.version.overlapping(0, &range).cloned().collect();
        match hull(&files, order) {
            Some(wider) if wider != range => range = wider,
            _ => return files,
        }
    }
}

/// The oldest L0 files that can simply change their level: each extends the range of those before
/// it on one side, and nothing in the base level lies under them.
pub(crate) fn l0_move(view: &View, base: Pos) -> Option<Vec<FileRef>> {
    if view.version.level(base.level).is_empty() {
        return None;
    }
    let order = view.order();
    let mut files: Vec<FileRef> = Vec::new();
    let mut range: Option<KeyRange> = None;
    'files: for run in view.version.level(0).runs().iter().rev() {
        for f in run.files() {
            let wider = match &range {
                Some(r) if r.overlaps(&f.range, order) => break 'files,
                Some(r) => r.hull(&f.range, order),
                None => f.range.clone(),
            };
            let free = view.version.overlapping(base.level, &wider).next().is_none();
            if !free || !view.is_idle(f) || view.is_promised(base, &wider) {
                break 'files;
            }
            files.push(f.clone());
            range = Some(wider);
        }
    }
    // Levels between L0 and the base level must not be jumped over.
    let clear = |f: &FileRef| {
        (1..base.level).all(|l| view.version.overlapping(l, &f.range).next().is_none())
    };
    files.truncate(
        files.iter().take_while(|f| clear(f) && light_below(view, f, base.level)).count(),
    );
    (!files.is_empty()).then_some(files)
}

/// Wishes of a level below L0: its best seeds that nothing plainly blocks.
fn level_down(view: &View, level: Level, score: Score, out: &mut Vec<Candidate>) {
    let to = Pos::base(level + 1);
    let drains = view.targets.unnecessary.is_some_and(|u| level <= u);
    let reason = if drains { Reason::Drain { level } } else { Reason::LevelBytes { level, score } };
    let most = out.len() + WISHES_PER_LEVEL;
    for seed in view.seeds(level) {
        if out.len() >= most {
            return;
        }
        let inputs = close(view.version, std::slice::from_ref(seed), to);
        if !view.all_idle(&inputs) {
            continue;
        }
        let Some(range) = hull(&inputs, view.order()) else { continue };
        if view.is_promised(to, &range) {
            continue;
        }
        if is_move(view, &inputs, to) {
            let files = more_to_move(view, seed, to);
            out.push(Candidate::merge(Kind::Move, files, to, reason.clone()));
        } else {
            let inputs = more_inputs(view, inputs, to);
            out.push(Candidate::merge(Kind::Down, inputs, to, reason.clone()));
        }
    }
}

/// True if the inputs can change their level without being rewritten: they are files of one run
/// (nothing at the output), and each overlaps little of the level below the output.
pub(crate) fn is_move(view: &View, inputs: &[FileRef], to: Pos) -> bool {
    let Some(first) = inputs.first() else { return false };
    first.pos != to
        && inputs.iter().all(|f| f.pos == first.pos)
        && inputs.iter().all(|f| light_below(view, f, to.level))
}

/// True if a file that moves to `level` would not become too expensive to move on from there.
fn light_below(view: &View, f: &FileRef, level: Level) -> bool {
    let below = level + 1;
    let overlap = match view.has_level(below) {
        true => view.version.overlapping_bytes(below, &f.range),
        false => 0,
    };
    f.bytes.saturating_add(overlap) <= view.options.max_job_bytes()
}

/// Neighbours of a file that moves, to the right and then to the left, that can move with it.
pub(crate) fn more_to_move(view: &View, seed: &FileRef, to: Pos) -> Vec<FileRef> {
    let order = view.order();
    let Some(run) = view.version.run(seed.pos) else { return vec![seed.clone()] };
    let Some(at) = run.index_of(seed.id) else { return vec![seed.clone()] };
    let (mut from, mut end) = (at, at + 1);
    let mut range = seed.range.clone();
    let mut bytes = seed.bytes;
    let mut fits = |f: &FileRef| {
        let wider = range.hull(&f.range, order);
        let ok = view.is_idle(f)
            && bytes.saturating_add(f.bytes) <= view.options.max_job_bytes()
            && close(view.version, std::slice::from_ref(f), to).len() == 1
            && view.version.overlapping(to.level, &wider).next().is_none()
            && !view.is_promised(to, &wider)
            && light_below(view, f, to.level);
        if ok {
            bytes += f.bytes;
            range = wider;
        }
        ok
    };
    while end - from < MOVE_FILES_MAX && run.files().get(end).is_some_and(&mut fits) {
        end += 1;
    }
    while from > 0 && end - from < MOVE_FILES_MAX && fits(&run.files()[from - 1]) {
        from -= 1;
    }
    run.files()[from..end].to_vec()
}

/// What a seed with its closure takes along besides, by the priority in use.
pub(crate) fn more_inputs(view: &View, inputs: Vec<FileRef>, to: Pos) -> Vec<FileRef> {
    match view.options.pri {
        CompactionPri::RoundRobin => sweep(view, inputs, to),
        _ => more_for_free(view, inputs, to),
    }
}

/// The round-robin order is a sweep: files to the right of the seed come along, one after the other, as
/// long as the level keeps its target and the job its size limit. So a level far over its target is
/// taken down by one wide job, which neighbours share the files below of, and not by many small ones.
fn sweep(view: &View, inputs: Vec<FileRef>, to: Pos) -> Vec<FileRef> {
    let seed = &inputs[0];
    let Some(run) = view.version.run(seed.pos) else { return inputs };
    let Some(at) = run.index_of(seed.id) else { return inputs };
    let spare = view.spare_bytes(seed.pos.level);
    let bytes = |files: &[FileRef]| files.iter().map(|f| f.bytes).fold(0, u64::saturating_add);
    let mut best = inputs;
    for end in at + 2..=run.files().len() {
        let upper = &run.files()[at..end];
        if bytes(upper) > spare || !view.is_idle(&run.files()[end - 1]) {
            break;
        }
        let more = close(view.version, upper, to);
        let clear = hull(&more, view.order()).is_some_and(|r| !view.is_promised(to, &r));
        if bytes(&more) > view.options.max_job_bytes() || !clear || !view.all_idle(&more) {
            break;
        }
        best = more;
    }
    best
}

/// More files of the upper level that fit over the files of the lower one that are read anyway:
/// taken along if that reads no more of the lower level and stays under the size limit.
fn more_for_free(view: &View, inputs: Vec<FileRef>, to: Pos) -> Vec<FileRef> {
    let order = view.order();
    let seed = inputs[0].pos;
    let Some(range) = hull(&inputs, order) else { return inputs };
    let Some(run) = view.version.run(seed) else { return inputs };
    let wider = run.overlapping(&range, order);
    let upper = inputs.iter().filter(|f| f.pos == seed).count();
    if wider.len() <= upper {
        return inputs;
    }
    let more = close(view.version, wider, to);
    let fits = more.len() - wider.len() == inputs.len() - upper
        && more.iter().map(|f| f.bytes).sum::<u64>() <= view.options.max_job_bytes()
        && view.all_idle(&more);
    let clear = hull(&more, order).is_some_and(|r| !view.is_promised(to, &r));
    if fits && clear { more } else { inputs }
}
