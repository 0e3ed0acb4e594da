//! DownForce: when a level is over target and every usual job is blocked by a lock, move data down
//! anyway, as a new stratum stacked on top of the blocked run (3.3, 3.4).
//!
//! Keeps: A0 data never moves up; G1 to G6, without which stacking only defers work: a failed guard
//! leaves the level waiting, and the wait reaches writers through L0. Leaves to others: conflicts
//! and after-edges (`relation`), commit order (`control`), merging extra runs again (`intra`).
//!
//! ```text
//!   L1.0  a=====m n-----z     job 1 merges L1.0[a..m] with L2.0[a..p]; L1 is over target again.
//!   L2.0  a========p q--z     L1.0[n..z] needs L2.0[a..p], which is locked: L1.0[n..z] -> L2.1
//! ```

use std::fmt;

use lithify_base::{KeyRange, Level, MAX_LEVELS, Pos};
use lithify_lsm::{FileRef, picture::readable};

use crate::closure::close;
use crate::options::DfWhen;
use crate::policy::composed::Round;
use crate::policy::leveled::{is_move, l0_move, l0_reason, more_inputs, more_to_move};
use crate::relation::hull;
use crate::score::{self, Score};
use crate::spec::{Candidate, JobState, Kind, Prio, Reason};
use crate::view::View;

/// Connected parts of L0 that are tried in one round.
const PARTS_TRIED: usize = 8;

/// Why data is not stacked although its usual way is blocked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Guard {
    /// G1: nobody waits for it.
    Calm {
        /// The need of the level.
        need: Score,
    },
    /// G3: the next level has as many extra bytes as it may.
    ExtraBytes {
        /// The next level.
        level: Level,
        /// Bytes there and promised.
        bytes: u64,
        /// The bound.
        max: u64,
    },
    /// G3: as many runs of the next level cover a key as may.
    Depth {
        /// The next level.
        level: Level,
        /// Runs with the new one.
        depth: u32,
        /// The bound.
        max: u32,
    },
    /// G4: reads of the range would look at too many runs.
    ReadAmp {
        /// Runs of all levels with the new one.
        depth: u32,
        /// The bound.
        max: u32,
    },
    /// G5: the disk may not have room for everything in flight.
    Disk {
        /// Bytes promised.
        promised: u64,
        /// Bytes free.
        free: u64,
    },
    /// G6: too many jobs, or too many bytes, wait to commit already.
    Waiting {
        /// Built jobs that wait.
        jobs: u32,
        /// Their bytes.
        bytes: u64,
    },
}

/// The guards that do not depend on which files are stacked: G1, G3 by bytes, G5, G6. The slot of
/// G2 is the planner's, and its usual job is looked for before.
pub fn may_stack(view: &View, level: Level, need: Score) -> Result<(), Guard> {
    let options = view.options;
    // A way that is blocked for one bucket is free for others and soon for this one, so a slot that
    // stacks there takes work from others later: worth it only to save writers from being stopped.
    let pressed = match options.policy.has_buckets() {
        true => view.version.max_depth(0) >= options.l0_urgent(),
        false => view.is_pressed(),
    };
    if need < Score::ONE || (options.df_when == DfWhen::Pressure && !pressed) {
        return Err(Guard::Calm { need });
    }
    let to = below(view, level);
    if !options.policy.is_tiered() {
        let max = options.max_extra_bytes(view.targets.bytes(to));
        let bytes = view.extra_bytes(to);
        if bytes > max {
            return Err(Guard::ExtraBytes { level: to, bytes, max });
        }
    }
    let written = view.flights().iter().filter(|k| k.kind != Kind::Move);
    let promised = written.map(|k| k.bytes()).fold(0, u64::saturating_add);
    let free = view.limits.disk_free;
    if u128::from(promised) * 6 > u128::from(free) * 5 {
        return Err(Guard::Disk { promised, free });
    }
    let waiting = || view.flights().iter().filter(|k| k.state == JobState::WaitDeps);
    let (jobs, bytes) = (waiting().count() as u32, waiting().map(|k| k.bytes()).sum::<u64>());
    if jobs > options.max_waiting_jobs
        || bytes > options.level_base_bytes.max(options.max_job_bytes())
    {
        return Err(Guard::Waiting { jobs, bytes });
    }
    Ok(())
}

/// The guards that do: depth in the next level (G3) and in all levels (G4). A job that takes more
/// runs away than the one it adds never makes reads worse.
pub fn stays_readable(
    view: &View,
    inputs: &[FileRef],
    range: &KeyRange,
    to: Level,
) -> Result<(), Guard> {
    let options = view.options;
    if !options.policy.is_tiered() {
        let (depth, max) =
            (view.depth_over(to, range) + 1, options.max_depth(to, view.targets.base));
        if depth > max {
            return Err(Guard::Depth { level: to, depth, max });
        }
    }
    let mut runs: Vec<Pos> = inputs.iter().map(|f| f.pos).collect();
    runs.sort_unstable();
    runs.dedup();
    let before: u32 = (0..MAX_LEVELS as u8).map(|l| view.depth_over(l, range)).sum();
    let (depth, max) = (before + 1, options.max_read_amp);
    match runs.len() > 1 || depth <= max {
        true => Ok(()),
        false => Err(Guard::ReadAmp { depth, max }),
    }
}

/// The level that `level` gives its data to.
pub(crate) fn below(view: &View, level: Level) -> Level {
    if level == 0 && !view.options.policy.is_tiered() { view.targets.base } else { level + 1 }
}

/// Above every stratum of `level`: a closure to there stays in the levels before.
pub(crate) fn above_all(level: Level) -> Pos {
    Pos::new(level, u32::MAX)
}

/// The best seed of a level that can be merged into the base of the next one. Extra runs over it
/// come along where that is cheap: they would be rewritten into their own base first otherwise
/// (case B). False if there is none.
pub(crate) fn down(round: &mut Round, level: Level, need: Score) -> bool {
    let view = round.view;
    let to = Pos::base(level + 1);
    let drains = view.targets.unnecessary.is_some_and(|u| level <= u);
    let reason = match drains {
        true => Reason::Drain { level },
        false => Reason::LevelBytes { level, score: need },
    };
    let avoids_buckets = round.shape.buckets && level == view.targets.base;
    let mut first = None;
    for seed in view.seeds(level) {
        if avoids_buckets && yields_to_bucket(round, seed) {
            continue;
        }
        for seeds in [with_extras(view, seed), Some(vec![seed.clone()])].into_iter().flatten() {
            let inputs = close(view.version, &seeds, to);
            let large = seeds.len() > 1 && bytes(&inputs) > view.options.max_job_bytes();
            if large || !view.all_idle(&inputs) {
                first.get_or_insert(inputs);
                continue;
            }
            let wish = if is_move(view, &inputs, to) {
                let files = more_to_move(view, seed, to);
                Candidate::merge(Kind::Move, files, to, reason.clone())
            } else if seeds.len() == 1 && seed.pos.stratum.0 == 0 {
                let more = more_inputs(view, inputs.clone(), to);
                let yields = |f: &FileRef| {
                    f.pos == seed.pos
                        && f.id != seed.id
                        && avoids_buckets
                        && yields_to_bucket(round, f)
                };
                let files = if more.iter().any(yields) { inputs } else { more };
                Candidate::merge(Kind::Down, files, to, reason.clone())
            } else {
                Candidate::merge(Kind::Down, inputs, to, reason.clone())
            };
            if round.offer(wish) {
                return true;
            }
        }
    }
    if let Some(inputs) = first {
        round.refuse(Candidate::merge(Kind::Down, inputs, to, reason), None);
    }
    false
}

/// The seed with all newer files of its level over it; `None` if there are none.
fn with_extras(view: &View, seed: &FileRef) -> Option<Vec<FileRef>> {
    let over = view.version.overlapping(seed.pos.level, &seed.range);
    let mut files: Vec<FileRef> = over.filter(|f| f.pos.is_newer_than(seed.pos)).cloned().collect();
    if files.is_empty() {
        return None;
    }
    files.push(seed.clone());
    Some(files)
}

/// True if a file of the base level lies under L0 data that is about to come down on it, and is not
/// what makes that expensive: merging it down now would only lock it.
fn yields_to_bucket(round: &Round, seed: &FileRef) -> bool {
    let order = round.view.order();
    round
        .bucket_jobs
        .iter()
        .any(|j| j.below_bytes <= 2 * j.l0_bytes && j.hull.overlaps(&seed.range, order))
}

/// The best seed of a level that can be stacked on top of the next one.
pub(crate) fn stacked(round: &mut Round, level: Level, need: Score) {
    let view = round.view;
    let global = may_stack(view, level, need);
    for seed in view.seeds(level) {
        let mut inputs = close(view.version, std::slice::from_ref(seed), above_all(level + 1));
        inputs.retain(|f| view.is_idle(f));
        let wish = stack_wish(inputs, level, level + 1, need);
        if let Err(guard) = &global {
            return round.refuse(wish, Some(guard.clone()));
        }
        if !try_stack(round, wish, level + 1) {
            continue;
        }
        return;
    }
}

fn stack_wish(inputs: Vec<FileRef>, level: Level, to: Level, need: Score) -> Candidate {
    Candidate::stack(Kind::Df, inputs, to, Reason::Stacked { level, need })
}

/// Offers a stacking wish if reads can bear it. True if it was taken.
pub(crate) fn try_stack(round: &mut Round, wish: Candidate, to: Level) -> bool {
    let view = round.view;
    let Some(range) = hull(&wish.inputs, view.order()) else { return false };
    match stays_readable(view, &wish.inputs, &range, to) {
        Ok(()) => round.offer(wish),
        Err(guard) => {
            round.refuse(wish, Some(guard));
            false
        }
    }
}

/// L0 as a level without buckets: down, else stacked.
pub(crate) fn l0(round: &mut Round, prio: Prio) {
    l0_down(round, prio);
    if !round.is_done() && round.shape.stacks {
        l0_stacked(round, prio);
    }
}

/// Files of L0 that hang together, oldest first, and can go to the base level.
pub(crate) fn l0_down(round: &mut Round, prio: Prio) {
    let view = round.view;
    let base = Pos::base(view.targets.base);
    let reason = l0_reason(view, score::l0_score(view));
    if let Some(files) = l0_move(view, base) {
        let wish = Candidate::merge(Kind::Move, files, base, reason.clone()).at_prio(prio);
        if round.offer(wish) {
            return;
        }
    }
    for part in l0_parts(view) {
        let inputs = close(view.version, oldest_share(view, &part, base), base);
        let kind = if is_move(view, &inputs, base) { Kind::Move } else { Kind::Down };
        let wish = Candidate::merge(kind, inputs, base, reason.clone()).at_prio(prio);
        if round.offer(wish.clone()) {
            return;
        }
        round.refuse(wish, None);
    }
}

/// As many of the oldest runs of a part as outweigh what they are merged with below. One job of a
/// deep L0 would hold all of L0 and the base level for as long as it takes, and nothing could be
/// stacked meanwhile; of two, the second is stacked while the first goes down. All of them if the
/// rest would not be due.
fn oldest_share<'p>(view: &View, part: &'p [FileRef], base: Pos) -> &'p [FileRef] {
    let Some(range) = hull(part, view.order()) else { return part };
    let below = view.version.overlapping_bytes(base.level, &range);
    let enough = below.max(view.options.level_base_bytes);
    let trigger = view.options.l0_trigger() as usize;
    let runs: Vec<&[FileRef]> = part.chunk_by(|a, b| a.pos == b.pos).collect();
    let (mut taken, mut files) = (0, 0);
    for (n, run) in runs.iter().rev().enumerate() {
        if taken >= enough && runs.len() - n >= trigger {
            return &part[part.len() - files..];
        }
        taken = bytes(run).saturating_add(taken);
        files += run.len();
    }
    part
}

/// The same, stacked on top of the base level, without what is on its way already.
pub(crate) fn l0_stacked(round: &mut Round, prio: Prio) {
    let view = round.view;
    let to = view.targets.base;
    let need = score::need(view, 0);
    let global = may_stack(view, 0, need);
    for part in l0_parts(view) {
        let mut inputs = close(view.version, &part, above_all(to));
        inputs.retain(|f| view.is_idle(f));
        let wish = stack_wish(inputs, 0, to, need).at_prio(prio);
        if let Err(guard) = &global {
            return round.refuse(wish, Some(guard.clone()));
        }
        if try_stack(round, wish, to) {
            return;
        }
    }
}

/// The connected parts of L0 that have idle files, by their oldest idle file. A part is all files
/// that reach each other through overlaps.
fn l0_parts(view: &View) -> Vec<Vec<FileRef>> {
    let order = view.order();
    let mut parts: Vec<(KeyRange, Vec<FileRef>)> = Vec::new();
    for run in view.version.level(0).runs().iter().rev() {
        for f in run.files().iter().filter(|f| view.is_idle(f)) {
            if parts.len() == PARTS_TRIED {
                break;
            }
            if parts.iter().all(|(range, _)| !range.overlaps(&f.range, order)) {
                parts.push(connected(view, f));
            }
        }
    }
    parts.into_iter().map(|(_, files)| files).collect()
}

fn connected(view: &View, seed: &FileRef) -> (KeyRange, Vec<FileRef>) {
    let mut range = seed.range.clone();
    loop {
        let files: Vec<FileRef> = view.version.overlapping(0, &range).cloned().collect();
        match hull(&files, view.order()) {
            Some(wider) if wider != range => range = wider,
            _ => return (range, files),
        }
    }
}

/// Bytes of some files.
pub(crate) fn bytes(files: &[FileRef]) -> u64 {
    files.iter().fold(0, |s, f| s.saturating_add(f.bytes))
}

impl fmt::Display for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Guard::Calm { need } => write!(f, "G1: no pressure, need {need}"),
            Guard::ExtraBytes { level, bytes, max } => {
                let (bytes, max) = (readable(*bytes), readable(*max));
                write!(f, "G3: L{level} has {bytes} of extra runs, at most {max}")
            }
            Guard::Depth { level, depth, max } => {
                write!(f, "G3: {depth} runs of L{level} would cover a key, at most {max}")
            }
            Guard::ReadAmp { depth, max } => {
                write!(f, "G4: {depth} runs would cover a key, at most {max}")
            }
            Guard::Disk { promised, free } => {
                let (promised, free) = (readable(*promised), readable(*free));
                write!(f, "G5: {promised} promised, {free} free")
            }
            Guard::Waiting { jobs, bytes } => {
                write!(f, "G6: {jobs} built jobs with {} wait", readable(*bytes))
            }
        }
    }
}
