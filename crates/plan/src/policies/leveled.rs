//! One run per level. A level over its target gives its best file to the next level, together with
//! what lies under it there (`steps::descent`); jobs on disjoint key ranges run at
//! the same time.
//!
//! Keeps: what it sends down makes no extra run, and extra runs that are there go into their base. Leaves to
//! others: conflicts (`rule`), the piling up of L0 (`hybrid`).

use std::ops::ControlFlow::{self, Continue};

use lithify_base::{JobId, Pos};

use crate::measures::score;
use crate::nouns::files::hull;
use crate::nouns::score::Score;
use crate::nouns::spec::{Candidate, Prio};
use crate::nouns::view::View;
use crate::rule::offers::{Offers, Policy};
use crate::steps::descent::{Descent, Told};
use crate::steps::{extras, l0};

/// Refused wishes of one level in one round: enough that a late rejection does not hide the level.
const REFUSED_PER_LEVEL: usize = 4;

/// The policy `leveled`: L0 is merged into the base level as soon as it has a run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Leveled;

impl Policy for Leveled {
    fn propose(&self, view: &View, offers: &mut Offers) -> ControlFlow<()> {
        by_rank(view, &L0Rules { instead: |_| None, when_blocked: |_, _| None }, offers)
    }
}

/// What a policy does with L0 besides sending it down.
pub(super) struct L0Rules {
    /// A better idea than going down, although the way is free.
    pub(super) instead: fn(&View) -> Option<Candidate>,
    /// What to do while L0 cannot go down; the job in the way, if it is one.
    pub(super) when_blocked: fn(&View, Option<JobId>) -> Option<Candidate>,
}

/// Offers wishes of all levels in the order of their scores. If L0 is due and cannot go down, the base
/// level gives nothing to the next one either, since it would keep locking what L0 waits for.
pub(super) fn by_rank(view: &View, rules: &L0Rules, offers: &mut Offers) -> ControlFlow<()> {
    if view.options.disable_auto {
        return Continue(());
    }
    let mut l0_waits = false;
    for (level, need) in score::ranked(view) {
        if need < Score::ONE {
            break;
        }
        if level == 0 {
            l0_waits = l0_to_base(view, rules, offers)? == Way::Blocked;
        } else if !(l0_waits && level == view.targets.base) {
            let told = Told::Refused(REFUSED_PER_LEVEL);
            Descent { level, need, stays: &|_| false, told }.run(view, offers)?;
        }
    }
    // What came from outside, or from another policy: it is debt, and writers may wait for its end.
    extras::settle(view, offers)
}

/// Whether L0 could go down, for all that is plain to see.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Free,
    Blocked,
}

/// Offers L0 into the base level: one job at a time, with all L0 files that hang together.
fn l0_to_base(view: &View, rules: &L0Rules, offers: &mut Offers) -> ControlFlow<(), Way> {
    let at_work = view.flights().iter().find(|k| k.inputs.iter().any(|f| f.pos.level == 0));
    if let Some(k) = at_work {
        return blocked(view, Some(k.id), rules, offers);
    }
    let reason = l0::reason(view);
    l0::offer_move(view, reason.clone(), Prio::High, offers)?;
    if let Some(wish) = (rules.instead)(view) {
        offers.offer(wish)?;
        return Continue(Way::Free);
    }
    let oldest = view.version.level(0).runs().last().and_then(|r| r.files().first());
    let files = oldest.map(|f| l0::connected(view, f).1).unwrap_or_default();
    let wish = l0::wish(view, &files, reason, Prio::High);
    let base = Pos::base(view.targets.base);
    let holder = wish.inputs.iter().find_map(|f| view.holder(f.id));
    let Some(range) = hull(&wish.inputs, view.order()) else {
        return blocked(view, holder, rules, offers);
    };
    match holder.or_else(|| view.promise(base, &range).map(|k| k.id)) {
        None => {
            offers.offer(wish)?;
            Continue(Way::Free)
        }
        by => blocked(view, by, rules, offers),
    }
}

fn blocked(
    view: &View,
    by: Option<JobId>,
    rules: &L0Rules,
    offers: &mut Offers,
) -> ControlFlow<(), Way> {
    offers.offer_all((rules.when_blocked)(view, by))?;
    Continue(Way::Blocked)
}
