//! One file of a level goes down to the next one, with what must come along: the ordinary job of
//! every policy whose levels have targets.
//!
//! For each seed in the order of the priority in use: extra runs over it come along where that is
//! cheap, since they would be rewritten into their own base first otherwise (case B); else it goes
//! alone. With nothing at the output it moves unread, with up to three neighbours; else more files of
//! its run come along where they cost nothing, or in a sweep (round-robin).
//!
//! ```text
//!   L1.0  a---f g---m n---z      L1 is over target; n..z has the least below it, but job 1
//!   L2.0  a-d   g-i k-p=======z  holds p..z. The next seed a..f is free: L1[a..f] L2[a..d] -> L2
//! ```

use std::ops::ControlFlow::{self, Continue};

use lithify_base::{Level, Pos};
use lithify_lsm::FileRef;

use crate::measures::seed::SEEDS_TRIED;
use crate::nouns::files::{bytes, hull};
use crate::nouns::pri::CompactionPri;
use crate::nouns::score::Score;
use crate::nouns::spec::{Candidate, Kind, Reason};
use crate::nouns::view::View;
use crate::rule::closure::close;
use crate::rule::offers::Offers;

/// Files one move may take along (RocksDB's `kMaxMultiTrivialMove`).
const MOVE_FILES_MAX: usize = 4;

/// What is told of a level that finds no job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    /// Wishes that the rule refused, at most so many; then the level is left.
    Refused(usize),
    /// The best seed that is locked, after all others.
    BestLocked,
}

/// The descent of one level below L0.
pub(crate) struct Descent<'f> {
    /// The level.
    pub(crate) level: Level,
    /// Its score or need, at least [`Score::ONE`].
    pub(crate) need: Score,
    /// True of files that should stay where they are for now.
    pub(crate) stays: &'f dyn Fn(&FileRef) -> bool,
    /// What is told.
    pub(crate) told: Told,
}

impl Descent<'_> {
    /// Offers the best seeds until one is taken.
    pub(crate) fn run(&self, view: &View, offers: &mut Offers) -> ControlFlow<()> {
        let to = Pos::base(self.level + 1);
        let reason = self.reason(view);
        let mut locked = None;
        let mut refused = 0;
        for seed in view.seeds(self.level).filter(|f| !(self.stays)(f)).take(SEEDS_TRIED) {
            let alone = Some(vec![seed.clone()]);
            for seeds in [with_extras(view, seed), alone].into_iter().flatten() {
                if self.told == Told::Refused(refused) {
                    return Continue(());
                }
                let inputs = close(view.version, &seeds, to);
                let large = seeds.len() > 1 && bytes(&inputs) > view.options.max_job_bytes();
                if large || !view.all_idle(&inputs) {
                    locked.get_or_insert(inputs);
                    continue;
                }
                if hull(&inputs, view.order()).is_none_or(|range| view.is_promised(to, &range)) {
                    continue;
                }
                let (kind, inputs) = self.with_company(view, seed, seeds.len(), inputs);
                let wish = Candidate::merge(kind, inputs, to, reason.clone());
                match self.told {
                    Told::BestLocked => offers.attempt(wish)?,
                    Told::Refused(_) => offers.offer(wish)?,
                }
                refused += 1;
            }
        }
        match (self.told, locked) {
            (Told::BestLocked, Some(inputs)) => {
                offers.offer(Candidate::merge(Kind::Down, inputs, to, reason))
            }
            _ => Continue(()),
        }
    }

    fn reason(&self, view: &View) -> Reason {
        let level = self.level;
        match view.targets.unnecessary.is_some_and(|u| level <= u) {
            true => Reason::Drain { level },
            false => Reason::LevelBytes { level, score: self.need },
        }
    }

    /// What comes along with `inputs`, the closure of `seed` and of the extra files over it, `seeds`
    /// in all.
    fn with_company(
        &self,
        view: &View,
        seed: &FileRef,
        seeds: usize,
        inputs: Vec<FileRef>,
    ) -> (Kind, Vec<FileRef>) {
        let to = Pos::base(self.level + 1);
        if is_move(view, &inputs, to) {
            return (Kind::Move, more_to_move(view, seed, to));
        }
        if seeds > 1 || seed.pos.stratum.0 > 0 {
            return (Kind::Down, inputs);
        }
        let more = more_inputs(view, inputs.clone(), to);
        let stays = |f: &FileRef| f.pos == seed.pos && f.id != seed.id && (self.stays)(f);
        (Kind::Down, if more.iter().any(stays) { inputs } else { more })
    }
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

/// True if the inputs can change their level without being rewritten: they are files of one run
/// (nothing at the output) in the directory of the output level, and each overlaps little of the level below it.
pub(crate) fn is_move(view: &View, inputs: &[FileRef], to: Pos) -> bool {
    let Some(first) = inputs.first() else { return false };
    first.pos != to
        && inputs.iter().all(|f| f.pos == first.pos && view.options.may_stay(f.place, to.level))
        && inputs.iter().all(|f| light_below(view, f, to.level))
}

/// True if a file that moves to `level` would not become too expensive to move on from there.
pub(crate) fn light_below(view: &View, f: &FileRef, level: Level) -> bool {
    let below = level + 1;
    let overlap = match view.has_level(below) {
        true => view.version.overlapping_bytes(below, &f.range),
        false => 0,
    };
    f.bytes.saturating_add(overlap) <= view.options.max_job_bytes()
}

/// Neighbours of a file that moves, to the right and then to the left, that can move with it.
fn more_to_move(view: &View, seed: &FileRef, to: Pos) -> Vec<FileRef> {
    let order = view.order();
    let Some(run) = view.version.run(seed.pos) else { return vec![seed.clone()] };
    let Some(at) = run.index_of(seed.id) else { return vec![seed.clone()] };
    let (mut from, mut end) = (at, at + 1);
    let mut range = seed.range.clone();
    let mut total = seed.bytes;
    let mut fits = |f: &FileRef| {
        let wider = range.hull(&f.range, order);
        let ok = view.is_idle(f)
            && view.options.may_stay(f.place, to.level)
            && total.saturating_add(f.bytes) <= view.options.max_job_bytes()
            && close(view.version, std::slice::from_ref(f), to).len() == 1
            && view.version.overlapping(to.level, &wider).next().is_none()
            && !view.is_promised(to, &wider)
            && light_below(view, f, to.level);
        if ok {
            total += f.bytes;
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
fn more_inputs(view: &View, inputs: Vec<FileRef>, to: Pos) -> Vec<FileRef> {
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
        && bytes(&more) <= view.options.max_job_bytes()
        && view.all_idle(&more);
    let clear = hull(&more, order).is_some_and(|r| !view.is_promised(to, &r));
    if fits && clear { more } else { inputs }
}
