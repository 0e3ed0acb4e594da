//! What time and contents ask for, when no level does: files go down that are old, that are full of
//! deletions, or that stand between the store and its bound on space.
//!
//! In this order, and after all wishes of the policy that shapes the tree:
//!
//! 1. **time to live** (`ttl_seconds`): a file above the bottom whose oldest data is older goes down,
//!    with what lies under it. Its data keeps its age, so it goes on to the bottom, where deletions
//!    and what they hide are dropped: so a deletion takes effect on the disk in bounded time;
//! 2. **marked files**: files with many deletions in a row, or in all, are marked when they are made,
//!    and go down the same way;
//! 3. **periodic**: a file that was made `periodic_seconds` ago goes down too; one at the bottom is
//!    rewritten where it is, to drop what newer settings or released snapshots allow to drop;
//! 4. **space**: the newer runs hold more than `max_space_amp_percent` of the oldest run's bytes. The
//!    level with most of them gives its best file to the next one. All of those bytes are taken for
//!    obsolete, as if nothing new had been written, which bounds what really is.
//!
//! ```text
//!   L0.9  a--z          ttl 1 h, L5[a..f] holds data of two hours ago: it goes to L6 with L6[a..k],
//!   L5.0  a-f* g--z     whatever the scores. Its output is at the bottom and nothing is left to do.
//!   L6.0  a----k l-z
//! ```
//!
//! The bottom of a file is the deepest level with files; one that has nothing older under it in its
//! level stays there. `fifo` drops by age instead. Each job makes a new file or takes one
//! down, so the work ends.

use std::ops::ControlFlow::{self, Continue};

use lithify_base::{Level, Pos};
use lithify_lsm::{FileRef, Run};

use crate::measures::age::is_older;
use crate::measures::seed::{SEEDS_TRIED, order_seeds};
use crate::nouns::files::hull;
use crate::nouns::spec::{Candidate, Kind, Prio, Reason};
use crate::nouns::view::View;
use crate::rule::closure::close;
use crate::rule::offers::{Offers, Policy};

/// Files that one rule tries before the next has its turn: those before are locked.
const TRIED: usize = 16;

/// The policy beside each that shapes a tree and keeps its data.
#[derive(Clone, Copy, Debug, Default)]
pub struct Upkeep;

impl Policy for Upkeep {
    fn propose(&self, view: &View, offers: &mut Offers) -> ControlFlow<()> {
        if view.options.disable_auto {
            return Continue(());
        }
        let (ttl, period) = (view.options.ttl_seconds, view.options.periodic_seconds);
        let down = |f: &FileRef, reason| below(view, f).and_then(|to| wish(view, f, to, reason));
        let goes = |f: &FileRef| below(view, f).is_some();
        let aged = |f: &FileRef| is_older(f.oldest_ancestor, ttl, view.now) && goes(f);
        if ttl > 0 {
            let old = Reason::Old { seconds: ttl };
            offers.offer_all(first(view, |_| true, aged, |f| down(f, old.clone())))?;
        }
        let marked = |f: &FileRef| f.marked && goes(f);
        offers.offer_all(first(view, Run::has_marked, marked, |f| down(f, Reason::Marked)))?;
        let due = |f: &FileRef| is_older(f.created, period, view.now);
        let anew = |f: &FileRef| {
            wish(view, f, below(view, f).unwrap_or(f.pos), Reason::Periodic { seconds: period })
        };
        if period > 0 {
            offers.offer_all(first(view, |_| true, due, anew))?;
        }
        offers.offer_all(too_much_space(view))
    }
}

/// The first wish for an idle file of the kind, the deepest files first: what is above would come
/// upon them. Only runs that `may_have` one are looked through: a tree has many files, and is planned
/// for after every event.
fn first(
    view: &View,
    may_have: impl Fn(&Run) -> bool,
    is: impl Fn(&FileRef) -> bool,
    wish: impl Fn(&FileRef) -> Option<Candidate>,
) -> Option<Candidate> {
    let runs = view.version.runs_newest_first().rev().filter(|r| may_have(r));
    let files = runs.flat_map(|r| r.files());
    files.filter(|f| is(f) && view.is_idle(f)).take(TRIED).find_map(wish)
}

/// Where a file goes next; `None` at the bottom.
fn below(view: &View, f: &FileRef) -> Option<Pos> {
    let last = view.options.last_level();
    let next = (f.pos.level + 1..=last).find(|&l| !view.version.level(l).is_empty());
    match next {
        Some(level) => Some(Pos::base(level)),
        None if f.pos.level == 0 => Some(Pos::base(view.targets.base)),
        None => (f.pos.stratum.0 > 0).then(|| Pos::base(f.pos.level)),
    }
}

/// A file with what lies under it, unless something of it is at work.
fn wish(view: &View, f: &FileRef, to: Pos, reason: Reason) -> Option<Candidate> {
    let inputs = close(view.version, std::slice::from_ref(f), to);
    let range = hull(&inputs, view.order())?;
    let free = view.all_idle(&inputs) && !view.is_promised(to, &range);
    free.then(|| Candidate::merge(Kind::Upkeep, inputs, to, reason).at_prio(Prio::Low))
}

/// The level with most bytes above the oldest run gives its best file away, if they are too many.
fn too_much_space(view: &View) -> Option<Candidate> {
    let limit = view.options.max_space_amp_percent;
    if limit == 0 {
        return None;
    }
    let mut runs = view.version.runs_newest_first();
    let oldest = runs.next_back()?;
    let all = runs.map(Run::bytes).fold(0, u64::saturating_add);
    let coming = view.flights().iter().filter(|k| k.out == oldest.pos);
    let coming = coming.flat_map(|k| &k.inputs).filter(|f| f.pos != oldest.pos);
    let newer = all.saturating_sub(coming.map(|f| f.bytes).fold(0, u64::saturating_add));
    let percent = u128::from(newer) * 100 / u128::from(oldest.bytes().max(1));
    if percent <= u128::from(limit) {
        return None;
    }
    let mut levels: Vec<Level> = (0..=oldest.pos.level).collect();
    levels.sort_by_key(|&l| std::cmp::Reverse(view.version.bytes(l)));
    let percent = u64::try_from(percent).unwrap_or(u64::MAX);
    let newer = |l: Level| order_seeds(view, l, |run| run.pos != oldest.pos).into_iter();
    let idle = |l: Level| newer(l).filter(|f| view.is_idle(f)).take(SEEDS_TRIED);
    let mut seeds = levels.into_iter().flat_map(idle).take(TRIED);
    seeds.find_map(|f| wish(view, &f, below(view, &f)?, Reason::SizeAmp { percent, limit }))
}
