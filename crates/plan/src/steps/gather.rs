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

use std::ops::ControlFlow::{self, Continue};

use lithify_base::{Comparator, Level, Pos};
use lithify_lsm::FileRef;
use lithify_lsm::index::Interval;

use crate::measures::score;
use crate::nouns::files::bytes;
use crate::nouns::guard::Guard;
use crate::nouns::score::Score;
use crate::nouns::spec::{Candidate, Kind, Prio, Reason};
use crate::nouns::view::View;
use crate::rule::closure::close;
use crate::rule::offers::Offers;
use crate::steps::among_l0::INTRA_MIN;
use crate::steps::buckets::must_drain;
use crate::steps::descent::is_move;

/// Most stretches that are worked out in one round.
const STRETCHES_MAX: usize = 32;
/// Levels below the base level to which L0 may go at once. A second one gains nothing in the lab.
const LEVELS_SKIPPED: Level = 1;

/// The idle runs of L0 over one stretch of keys, and where they go best.
#[derive(Clone, Debug)]
pub(crate) struct Gathered {
    /// Where the stretch begins.
    pub(crate) interval: Interval,
    /// The way down; `None` while it is locked.
    pub(crate) down: Option<Down>,
}

/// A way down.
#[derive(Clone, Debug)]
pub(crate) struct Down {
    /// Bytes that come one level down per byte moved.
    pub(crate) worth: Score,
    /// All that goes.
    inputs: Vec<FileRef>,
    to: Level,
}

impl Down {
    /// True if a file overlaps what goes down.
    pub(crate) fn reaches(&self, file: &FileRef, order: &dyn Comparator) -> bool {
        self.inputs.iter().any(|f| f.range.overlaps(&file.range, order))
    }
}

/// What is due in L0, the most worth first, ties in the order of depth.
pub(crate) fn gathered(view: &View) -> Vec<Gathered> {
    let full = score::l0_score(view) >= Score::ONE;
    let least = match (must_drain(view), full) {
        (true, _) => 1,
        (false, true) => 2.min(view.options.l0_trigger()),
        (false, false) => view.options.l0_trigger(),
    };
    let mut due: Vec<&Interval> =
        view.l0_intervals().iter().filter(|i| i.idle_depth >= least).collect();
    due.sort_by_key(|i| std::cmp::Reverse(i.idle_depth));
    let runs = view.version.level(0).runs();
    let mut oldest = Vec::new();
    let mut all: Vec<Gathered> = Vec::new();
    for interval in due {
        if all.len() == STRETCHES_MAX {
            break;
        }
        let covering = interval.covering(runs, view.order());
        let idle: Vec<FileRef> = covering.filter(|f| view.is_idle(f)).cloned().collect();
        // Two stretches over the same oldest file cannot both go down: the deeper one may.
        let Some(last) = idle.last().filter(|f| !oldest.contains(&f.id)) else { continue };
        oldest.push(last.id);
        all.push(Gathered { interval: interval.clone(), down: best_way(view, &idle) });
    }
    all.sort_by_key(|g| std::cmp::Reverse(g.down.as_ref().map(|d| d.worth)));
    all
}

/// The level to which these files of L0 go the cheapest, of those that are free.
fn best_way(view: &View, files: &[FileRef]) -> Option<Down> {
    let base = view.targets.base;
    let filled = (1..=view.options.last_level()).rev().find(|&l| !view.version.level(l).is_empty());
    let deepest = filled.unwrap_or(base).clamp(base, base.saturating_add(LEVELS_SKIPPED));
    let mut best: Option<Down> = None;
    for to in base..=deepest.min(view.options.last_level()) {
        let inputs = close(view.version, files, Pos::base(to));
        if !view.all_idle(&inputs) {
            break;
        }
        // Levels above the base level have no part of the way.
        let levels = |f: &FileRef| u64::from(to - f.pos.level.max(base - 1).min(to));
        let down = inputs.iter().map(|f| f.bytes.saturating_mul(levels(f)));
        let worth = Score::ratio(down.fold(0, u64::saturating_add), bytes(&inputs));
        if best.as_ref().is_none_or(|b| worth > b.worth) {
            best = Some(Down { worth, inputs, to });
        }
    }
    best
}

/// Offers what is worth `price` at least. Tells the best of what is not.
pub(crate) fn down(
    view: &View,
    all: &[Gathered],
    price: Score,
    offers: &mut Offers,
) -> ControlFlow<()> {
    for g in all {
        let Some(down) = &g.down else { continue };
        let wish = wish(view, g, down);
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
    let reason = Reason::Bucket { runs: g.interval.idle_depth, trigger: view.options.l0_trigger() };
    Candidate::merge(kind, down.inputs.clone(), to, reason).at_prio(Prio::High)
}

/// Offers the newest runs of each stretch that is `depth` runs deep, merged in place: as many as make the bytes per
/// removed run the fewest.
pub(crate) fn in_place(
    view: &View,
    all: &[Gathered],
    depth: u32,
    offers: &mut Offers,
) -> ControlFlow<()> {
    let runs = view.version.level(0).runs();
    for g in all.iter().filter(|g| g.interval.depth >= depth) {
        let newest = g.interval.covering(runs, view.order()).skip_while(|f| !view.is_idle(f));
        let files: Vec<FileRef> = newest.take_while(|f| view.is_idle(f)).cloned().collect();
        let window = cheapest(&files);
        let Some(oldest) = window.last().filter(|_| window.len() >= INTRA_MIN) else { continue };
        let out = oldest.pos;
        let inputs = close(view.version, window, out);
        let reason = Reason::L0Blocked { runs: g.interval.depth, by: None };
        offers.attempt(Candidate::merge(Kind::IntraL0, inputs, out, reason).at_prio(Prio::High))?;
    }
    Continue(())
}

/// The first of `files`, as long as each one more makes the bytes per removed run fewer.
fn cheapest(files: &[FileRef]) -> &[FileRef] {
    let (mut sum, mut per_removed) = (files.first().map_or(0, |f| f.bytes), u64::MAX);
    for (removed, f) in files.iter().enumerate().skip(1) {
        sum = f.bytes.saturating_add(sum);
        let cost = sum / removed as u64;
        if cost > per_removed {
            return &files[..removed];
        }
        per_removed = cost;
    }
    files
}
