//! L0 goes down once enough of it is gathered to be worth what lies below: for each stretch of keys the
//! idle runs over it, and the level to which they go the cheapest.
//!
//! The worth of a job is counted in bytes that come one level down, and its cost in bytes that it moves.
//! A job that goes two levels down at once takes what is between along, and writes it once instead of
//! twice:
//!
//! ```text
//!   L0  300M   to L1: 300M come down one level, 300M + 64M are moved: 0.82
//!   L1   64M   to L2: 300M come down two and 64M one, 300M + 64M + 320M are moved: 0.97, so there
//!   L2  320M
//! ```
//!
//! While compactions have no time to spare, level 0 is gathered in lots (Silver and Meal, 1973): it goes down once a byte
//! more would cost more than one has cost so far. What a byte has cost is what lies below, which all bytes of the lot share,
//! and having been merged in place; what one more costs is to be merged in place, once the depth is used up.
//!
//! By that alone level 0 would go on growing where writers are as fast as the machine sustains: a byte more is the cheaper
//! the more there are, and what is merged in place is merged again and again, which the cost of one more does not show. So
//! lots end once level 0 has half of what lies below, and as many bytes as the memtables that stop writers by their number;
//! and, whatever lies below, once its bytes slow writers down. Then the stretch of keys that is most worth goes down, one after the other and with merges in place between, so that all
//! ranges go at different times, and none makes the others deep. How deep level 0 may be for that grows with what it has, or
//! it would never be shallow enough where writers are faster than the machine sustains:
//!
//! ```text
//!   L0 has of what lies below   one goes down while L0 is less deep than
//!                       0.5     the depth that slows writers (20 runs)
//!                       1       1.25 times that               (25)
//!                       2       1.75                          (35)
//! ```

use std::ops::ControlFlow::{self, Continue};
use std::rc::Rc;

use lithify_base::{FileId, JobId, Level, Pos};
use lithify_lsm::FileRef;
use lithify_lsm::index::Interval;

use crate::measures::score::{self, must_drain};
use crate::measures::stall::l0_bytes_slowdown;
use crate::nouns::files::bytes;
use crate::nouns::guard::Guard;
use crate::nouns::score::Score;
use crate::nouns::spec::{Candidate, Kind, Prio, Reason};
use crate::nouns::stretch::{Down, Gathered};
use crate::nouns::view::View;
use crate::rule::closure::close;
use crate::rule::offers::Offers;
use crate::steps::among_l0::{INTRA_MIN, cheapest};
use crate::steps::descent::is_move;
use crate::steps::{l0, rest};

/// Most stretches that are worked out in one round.
const STRETCHES_MAX: usize = 32;
/// Level 0 must shrink from this part of the depth at which writers are slowed down, percent.
const DEEP: u64 = 80;
/// Level 0 is gathered in lots until it has this part of the bytes of the levels it goes to, percent.
const GATHERED_MOST: u128 = 50;
/// And until it has as many bytes as so many memtables, or as those that stop writers by their number if these are fewer.
const GATHERED_LEAST: u32 = 36;
/// Levels below the base level to which L0 may go at once. A second one gains nothing in the lab.
const LEVELS_SKIPPED: Level = 1;
/// No job over so many memtables skips a level where many compactions are of use: what gathers over it finds its way
/// locked, and what it holds could go down as several jobs.
const SKIPS_MOST: u64 = 16;

/// What is due in L0, the most worth first, ties in the order of depth.
pub(crate) fn gathered(view: &View) -> Vec<Rc<Gathered>> {
    let full = score::l0_score(view) >= Score::ONE;
    let least = match (must_drain(view), full) {
        (true, _) => 1,
        (false, true) => 2.min(view.options.l0_trigger()),
        (false, false) => view.options.l0_trigger(),
    };
    let mut due: Vec<&Interval> =
        view.l0_intervals().iter().filter(|i| i.idle_depth >= least).collect();
    due.sort_by_key(|i| std::cmp::Reverse(i.idle_depth));
    let mut seen = Vec::new();
    let mut all = Vec::new();
    for interval in due {
        if all.len() == STRETCHES_MAX {
            break;
        }
        // Two stretches over the same oldest file cannot both go down: the deeper one may.
        let Some((oldest, found)) = stretch(view, interval, &seen) else { continue };
        if !seen.contains(&oldest) {
            seen.push(oldest);
            all.push(found);
        }
    }
    all.sort_by_key(|g| std::cmp::Reverse(g.down.as_ref().map(|d| d.worth)));
    all
}

/// What goes down over one stretch, and the oldest idle file there; `None` if that is one of `seen`.
fn stretch(view: &View, interval: &Interval, seen: &[FileId]) -> Option<(FileId, Rc<Gathered>)> {
    if let Some(known) = view.stretches.get(interval) {
        return Some(known);
    }
    let runs = view.version.level(0).runs();
    let covering: Vec<FileRef> = interval.covering(runs, view.order()).cloned().collect();
    let idle: Vec<FileRef> = covering.iter().filter(|f| view.is_idle(f)).cloned().collect();
    let oldest = idle.last().map(|f| f.id).filter(|id| !seen.contains(id))?;
    let mut looked_at: Vec<FileId> = covering.iter().map(|f| f.id).collect();
    let found = match score::is_resting(view) {
        true => rest::way(view, interval, covering, &mut looked_at),
        false => {
            let down = best_way(view, &idle, &mut looked_at);
            let full = down.as_ref().filter(|_| view.load.is_full());
            let lot = full.and_then(|d| lot(view, &idle, d));
            Gathered { interval: interval.clone(), down, lot, in_place: None }
        }
    };
    Some((oldest, view.stretches.keep(oldest, looked_at, found)))
}

/// From which depth on level 0 must shrink.
fn deep(view: &View) -> u32 {
    let depth = u64::from(view.options.l0_slowdown) * DEEP / 100;
    u32::try_from(depth).unwrap_or(u32::MAX).max(1)
}

/// Says so if a byte more in this lot costs less than one in it has cost so far.
fn lot(view: &View, idle: &[FileRef], down: &Down) -> Option<Guard> {
    let all = idle.iter().map(|f| f.bytes).fold(0, u64::saturating_add);
    let flush = idle.first().map_or(0, |f| f.bytes).max(1);
    let merged = idle.iter().filter(|f| f.bytes > 2 * flush).map(|f| f.bytes);
    let below = bytes(&down.inputs).saturating_sub(all);
    let so_far = Score::ratio(merged.fold(below, u64::saturating_add), all);
    let next = match idle.len() < deep(view) as usize {
        true => Score::default(),
        false => {
            let window = first_few(idle);
            let room = flush.saturating_mul(window.len() as u64 - 1);
            Score::ratio(window.iter().map(|f| f.bytes).fold(0, u64::saturating_add), room)
        }
    };
    (next < so_far).then_some(Guard::Lot { so_far, next })
}

/// True if level 0 has so much that the next stretch goes down, whether or not a byte more would cost less: where it has the part of
/// what lies below, and is not small, or so much that writers are paced by its bytes. Not while it is so deep that the job might
/// make it deep enough to stop writers; nor while half of the compactions that are of use take from it, as the others are to merge
/// in place meanwhile.
fn has_enough(view: &View) -> bool {
    let base = view.targets.base;
    let deepest = (base + LEVELS_SKIPPED).min(view.options.last_level());
    let below: u64 = (base..=deepest).map(|level| view.version.bytes(level)).sum();
    let all = view.version.bytes(0);
    let memtables = u64::from(view.options.l0_stop.min(GATHERED_LEAST));
    let least = view.options.memtable_bytes.saturating_mul(memtables);
    let has = u128::from(all) * 100 / u128::from(below).max(1);
    if (has < GATHERED_MOST || all < least) && all < l0_bytes_slowdown(view.options) {
        return false;
    }
    let over = has.saturating_sub(GATHERED_MOST);
    let going = view.flights().iter().filter(|f| f.from() == 0 && f.out.level > 0).count();
    // Half as much deeper as it has more.
    let depth = u128::from(view.options.l0_slowdown) * (200 + over) / 200;
    u128::from(view.version.max_depth(0)) < depth && going < (view.load.useful as usize / 2).max(1)
}

/// True if what goes to the level below `base` costs less than what goes to `base` and from there on, as far as that is
/// over its target.
fn is_cheaper_deeper(view: &View, base: Level, inputs: &[FileRef]) -> bool {
    let under = inputs.iter().filter(|f| f.pos.level > base).map(|f| f.bytes).sum::<u64>();
    let here = view.version.bytes(0).saturating_add(view.version.bytes(base));
    let over = here.saturating_sub(view.targets.bytes(base));
    u128::from(under) * u128::from(here) < u128::from(over) * u128::from(bytes(inputs))
}

/// True if a job with these inputs would keep other compactions from what they could do: there are at least two thirds as
/// many of use as there are ranges of L0.
fn is_too_long(view: &View, inputs: &[FileRef]) -> bool {
    let ranges = view.version.buckets().map_or(1, |map| map.len()) as u64;
    let useful = u64::from(view.load.useful);
    let many = useful > 1 && 3 * useful >= 2 * ranges;
    many && bytes(inputs) > view.options.memtable_bytes.saturating_mul(SKIPS_MOST)
}

/// The level to which these files of L0 go the cheapest, of those that are free. Adds the files whose locks it looks at.
pub(crate) fn best_way(
    view: &View,
    files: &[FileRef],
    looked_at: &mut Vec<FileId>,
) -> Option<Down> {
    let base = view.targets.base;
    let filled = (1..=view.options.last_level()).rev().find(|&l| !view.version.level(l).is_empty());
    let deepest = filled.unwrap_or(base).clamp(base, base.saturating_add(LEVELS_SKIPPED));
    let mut best: Option<Down> = None;
    for to in base..=deepest.min(view.options.last_level()) {
        let inputs = close(view.version, files, Pos::base(to));
        looked_at.extend(inputs.iter().map(|f| f.id));
        if !view.all_idle(&inputs) || to > base && is_too_long(view, &inputs) {
            break;
        }
        // Levels above the base level have no part of the way.
        let levels = |f: &FileRef| u64::from(to - f.pos.level.max(base - 1).min(to));
        let down = inputs.iter().map(|f| f.bytes.saturating_mul(levels(f)));
        let worth = Score::ratio(down.fold(0, u64::saturating_add), bytes(&inputs));
        let better = match (&best, view.load.written) {
            (None, _) => true,
            (Some(best), true) => worth > best.worth,
            (Some(_), false) => is_cheaper_deeper(view, base, &inputs),
        };
        if better {
            best = Some(Down { worth, inputs, to });
        }
    }
    best
}

/// Offers what is worth `price` at least. Tells the best of what is not.
pub(crate) fn down(
    view: &View,
    all: &[Rc<Gathered>],
    price: Score,
    offers: &mut Offers,
) -> ControlFlow<()> {
    let has_lots = price > Score::default() && all.iter().any(|g| g.lot.is_some());
    let in_lots = has_lots && !has_enough(view);
    for g in all {
        let Some(down) = &g.down else { continue };
        let wish = wish(view, g, down);
        if let Some(lot) = g.lot.as_ref().filter(|_| in_lots) {
            offers.hold_back(wish, lot.clone());
            continue;
        }
        if down.worth < price {
            offers.hold_back(wish, Guard::Price { worth: down.worth, price });
            return Continue(());
        }
        offers.offer(wish)?;
    }
    Continue(())
}

fn wish(view: &View, g: &Gathered, down: &Down) -> Candidate {
    let to = Pos::base(down.to);
    let kind = if is_move(view, &down.inputs, to) { Kind::Move } else { Kind::L0Bucket };
    let reason = l0::stretch_reason(view, g.interval.idle_depth);
    Candidate::merge(kind, down.inputs.clone(), to, reason).at_prio(Prio::High)
}

/// Offers what is deep even without the runs that jobs hold, whatever it is worth. What is not deep gains writers
/// nothing: where the deepest runs are locked, the others still wait until they are worth their bytes.
pub(crate) fn at_any_price(
    view: &View,
    all: &[Rc<Gathered>],
    offers: &mut Offers,
) -> ControlFlow<()> {
    let depth = deep(view);
    let there: Vec<_> = all.iter().filter(|g| g.interval.idle_depth >= depth).cloned().collect();
    down(view, &there, Score::default(), offers)
}

/// Offers the newest runs of each stretch that is deep, the deepest first, merged in place: as many as make the bytes per
/// removed run the fewest. All stretches become deep together while a long job goes down, and writers wait for the deepest.
pub(crate) fn in_place(view: &View, all: &[Rc<Gathered>], offers: &mut Offers) -> ControlFlow<()> {
    let (all_runs, depth) = (view.version.level(0).runs(), deep(view));
    let mut there: Vec<_> = all.iter().filter(|g| g.interval.depth >= depth).collect();
    there.sort_by_key(|g| std::cmp::Reverse(g.interval.depth));
    for g in there {
        let newest = g.interval.covering(all_runs, view.order()).skip_while(|f| !view.is_idle(f));
        let files: Vec<FileRef> = newest.take_while(|f| view.is_idle(f)).cloned().collect();
        let window = first_few(&files);
        let Some(oldest) = window.last().filter(|_| window.len() >= INTRA_MIN) else { continue };
        let out = oldest.pos;
        let inputs = close(view.version, window, out);
        let runs = g.interval.depth;
        let reason = match g.down {
            Some(_) => Reason::L0Deep { runs, limit: depth },
            None => Reason::L0Blocked { runs, by: in_the_way(view, g) },
        };
        offers.attempt(Candidate::merge(Kind::IntraL0, inputs, out, reason).at_prio(Prio::High))?;
    }
    Continue(())
}

/// The job that holds what a stretch would go down with.
fn in_the_way(view: &View, g: &Gathered) -> Option<JobId> {
    let runs = view.version.level(0).runs();
    let idle = g.interval.covering(runs, view.order()).filter(|f| view.is_idle(f));
    let idle: Vec<FileRef> = idle.cloned().collect();
    let inputs = close(view.version, &idle, Pos::base(view.targets.base));
    inputs.iter().find_map(|f| view.holder(f.id))
}

/// Offers what is merged in place because level 0 comes to rest so the cheapest.
pub(crate) fn to_rest(view: &View, all: &[Rc<Gathered>], offers: &mut Offers) -> ControlFlow<()> {
    for g in all {
        let Some(files) = &g.in_place else { continue };
        let Some(oldest) = files.last() else { continue };
        let inputs = close(view.version, files, oldest.pos);
        let (runs, trigger) = (files.len() as u32, view.options.l0_trigger());
        let reason = Reason::Runs { level: 0, runs, trigger };
        offers.attempt(Candidate::merge(Kind::IntraL0, inputs, oldest.pos, reason))?;
    }
    Continue(())
}

/// The first of `files`, as long as each one more makes the bytes per removed run fewer.
fn first_few(files: &[FileRef]) -> &[FileRef] {
    &files[..cheapest(files.iter().map(|f| f.bytes), u64::MAX).0]
}
