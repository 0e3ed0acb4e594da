//! Merging inside a level: extra runs among themselves while their base is locked (`IntraDf`), and
//! extra runs into their base (`IntraLevel`, case A), a rectangle of keys at a time.
//!
//! ```text
//!   L1.3     c------m         window L1.2, L1.3 over c..m: one run at L1.2
//!   L1.2  a-------k           (L1.2[a..k] comes whole: strata in between are always closed)
//!   L1.1  a=====f             locked, so the window ends above it
//!   L1.0  a=====f g--------z
//! ```
//!
//! Explicit strata allow any window: unlike sublevels that are ordered by sequence number, it need
//! not reach up to the newest run.

use std::ops::ControlFlow::{self, Continue};

use lithify_base::{Level, Pos};
use lithify_lsm::index::{self, Interval};
use lithify_lsm::{FileRef, Run};

use crate::measures::{score, stall};
use crate::nouns::files::bytes;
use crate::nouns::options::DfWhen;
use crate::nouns::score::Score;
use crate::nouns::spec::{Candidate, Kind, Prio, Reason};
use crate::nouns::view::View;
use crate::rule::closure::close;
use crate::rule::offers::Offers;

/// Windows over one interval that are tried.
const WINDOWS_TRIED: usize = 10;
/// Intervals of one level that are tried.
const INTERVALS_TRIED: usize = 8;
/// Extra files of one level that are looked at for their rectangles.
const RECTANGLES_TRIED: usize = 32;

/// Offers extra runs at their budget: merged in place where the base is locked, else into it. When the
/// whole tree is too deep, all extra runs are.
pub(crate) fn at_budget(view: &View, offers: &mut Offers) -> ControlFlow<()> {
    let deep = is_deep(view);
    for level in 1..=view.options.last_level() {
        let depth = view.version.max_depth(level);
        let full = depth >= view.options.max_depth(level, view.targets.base);
        if depth >= 2 && (deep || full) {
            into_base(view, level, Prio::Depth, offers)?;
            among_extras(view, level, Prio::Depth, offers)?;
        }
    }
    Continue(())
}

/// True if reads look at three quarters of the runs they may.
fn is_deep(view: &View) -> bool {
    u64::from(stall::read_amp(view.version)) * 4 >= u64::from(view.options.max_read_amp) * 3
}

/// Offers extra runs of the levels that are not over target, when nothing more urgent is left. Under
/// pressure only where that is cheap, as the threads may soon be needed; but rather any work than
/// none while writers wait.
pub(crate) fn settle(view: &View, offers: &mut Offers) -> ControlFlow<()> {
    for level in 1..=view.options.last_level() {
        if view.version.level(level).runs().len() < 2 {
            continue;
        }
        if level == view.options.last_level() || score::need(view, level) < Score::ONE {
            into_base(view, level, Prio::Settle, offers)?;
        }
        if view.options.df_when == DfWhen::Always {
            among_extras(view, level, Prio::Settle, offers)?;
        }
    }
    Continue(())
}

/// The best rectangle of extra runs with their base: the most extra bytes per byte of the base.
fn into_base(view: &View, level: Level, prio: Prio, offers: &mut Offers) -> ControlFlow<()> {
    let to = Pos::base(level);
    let calm = prio > Prio::Settle || !view.is_pressed() || view.flights().is_empty();
    let mut all: Vec<(u64, Vec<FileRef>)> = Vec::new();
    let extras = view.version.level(level).runs().iter().filter(|r| r.pos != to);
    let files = extras.rev().flat_map(|r| r.files()).filter(|f| view.is_idle(f));
    for f in files.take(RECTANGLES_TRIED) {
        let Some(inputs) = rectangle(view, f, to) else { continue };
        let base: u64 = inputs.iter().filter(|f| f.pos == to).map(|f| f.bytes).sum();
        let extra = bytes(&inputs) - base;
        if calm || extra.saturating_mul(2) >= base {
            let gain = u128::from(extra) * 1024 / u128::from(base.max(1));
            all.push((gain as u64, inputs));
        }
    }
    all.sort_by_key(|&(gain, _)| std::cmp::Reverse(gain));
    for (_, inputs) in all {
        let one_run = inputs.iter().all(|f| f.pos == inputs[0].pos && f.pos != to);
        let kind = if one_run { Kind::Move } else { Kind::IntraLevel };
        let reason = Reason::Extras { level, depth: view.version.max_depth(level) };
        offers.attempt(Candidate::merge(kind, inputs, to, reason).at_prio(prio))?;
    }
    Continue(())
}

/// An extra file with what is over it, closed down to the base; the file alone with what is under
/// it, if that would be too much. `None` if any of it is locked.
fn rectangle(view: &View, file: &FileRef, to: Pos) -> Option<Vec<FileRef>> {
    let over = view.version.overlapping(to.level, &file.range);
    let all: Vec<FileRef> = over.filter(|f| !f.pos.is_older_than(file.pos)).cloned().collect();
    let inputs = close(view.version, &all, to);
    if view.all_idle(&inputs) && bytes(&inputs) <= view.options.max_job_bytes() {
        return Some(inputs);
    }
    let inputs = close(view.version, std::slice::from_ref(file), to);
    view.all_idle(&inputs).then_some(inputs)
}

/// Extra runs of `level` among themselves, where most of them cover a key.
fn among_extras(view: &View, level: Level, prio: Prio, offers: &mut Offers) -> ControlFlow<()> {
    let runs = view.version.level(level).runs();
    let extras = &runs[..runs.iter().take_while(|r| r.pos != Pos::base(level)).count()];
    if extras.len() < 2 {
        return Continue(());
    }
    let mut deep = index::intervals(extras, view.order(), |id| view.holder(id).is_some());
    deep.retain(|i| i.idle_depth >= 2);
    deep.sort_by_key(|i| std::cmp::Reverse(i.idle_depth));
    for interval in deep.iter().take(INTERVALS_TRIED) {
        let Some((inputs, out)) = window(view, extras, interval, 2) else { continue };
        let reason = Reason::Extras { level, depth: interval.depth + 1 };
        offers.attempt(Candidate::merge(Kind::IntraDf, inputs, out, reason).at_prio(prio))?;
    }
    Continue(())
}

/// The longest stretch of neighbouring idle runs over an interval, at least `min` of them, closed
/// down to its oldest run, where the output goes. Shorter ones are tried where a closure needs a
/// locked file or takes too much.
pub(crate) fn window(
    view: &View,
    runs: &[Run],
    interval: &Interval,
    min: usize,
) -> Option<(Vec<FileRef>, Pos)> {
    let covering: Vec<&FileRef> = interval.covering(runs, view.order()).collect();
    let mut stretches: Vec<&[&FileRef]> =
        covering.split(|f| !view.is_idle(f)).filter(|s| s.len() >= min).collect();
    stretches.sort_by_key(|s| std::cmp::Reverse(s.len()));
    let longest = stretches.first()?;
    let lengths = (min..=longest.len()).rev();
    let windows = lengths.flat_map(|n| longest.windows(n)).take(WINDOWS_TRIED);
    for files in windows {
        let seeds: Vec<FileRef> = files.iter().map(|f| (*f).clone()).collect();
        let out = seeds.last()?.pos;
        let inputs = close(view.version, &seeds, out);
        if view.all_idle(&inputs) && bytes(&inputs) <= view.options.max_job_bytes() {
            return Some((inputs, out));
        }
    }
    None
}
