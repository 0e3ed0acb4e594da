//! The policy `adaptive`: every job has a worth, and starts if that is the price of its bytes.
//!
//! The worth of a job that goes down is counted in bytes that come one level down per byte that it reads
//! or writes; the price is part of the view ([`Load`](crate::Load)) and follows what limits the machine.
//! While bytes cost nothing every job that is due starts, and many narrow ones at once. As the device,
//! or the processors, fill, only jobs that are worth their bytes start: level 0 is gathered until enough of
//! it goes down at once, a level over its target waits for files with little below them, and threads stay
//! idle. Depth has a worth of its own: where writers would soon be held up and the way down is not
//! worth it, runs of level 0 are merged in place.
//!
//! 1. extra runs, where their depth is at its budget (a tree that another policy left);
//! 2. files of level 0 that can simply change their level;
//! 3. level 0, if that is worth the price and no lot is gathered (`steps/gather.rs`); while writers rest, what brings
//!    it to rest with the fewest bytes (`steps/rest.rs`);
//! 4. under load, where it is deep, and only there: in place, else down at any price;
//! 5. levels over their targets, by rank, the files that are worth the price;
//! 6. extra runs into their base.

use std::cell::RefCell;
use std::ops::ControlFlow::{self, Continue};
use std::rc::Rc;

use lithify_base::{Level, Pos};
use lithify_lsm::FileRef;

use crate::measures::stall::Verdict;
use crate::measures::{score, stall};
use crate::nouns::guard::Guard;
use crate::nouns::score::Score;
use crate::nouns::spec::{Candidate, Kind, Prio, Reason};
use crate::nouns::stretch::Gathered;
use crate::nouns::view::View;
use crate::rule::closure::close;
use crate::rule::offers::{Offers, Policy};
use crate::steps::descent::{Descent, Told};
use crate::steps::gather;
use crate::steps::{extras, l0};

/// The policy `adaptive`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Adaptive;

impl Policy for Adaptive {
    fn propose(&self, view: &View, offers: &mut Offers) -> ControlFlow<()> {
        if view.options.disable_auto {
            return Continue(());
        }
        Round { view, price: price(view), gathered: gather::gathered(view) }.run(offers)
    }
}

/// The price of a byte. None while writers wait for anything but memtables and level 0's depth, such as room on the disk, or the
/// number of runs in level 0, which may be many where it is not deep: what they wait for may be any job.
fn price(view: &View) -> Score {
    if view.limits.short {
        return Score::default();
    }
    let stall = stall::stall(view.version, view.mem, view.options);
    let is_deep = stall.verdict < Verdict::Stop || stall.l0_depth >= view.options.l0_stop;
    match stall.cause {
        Some(stall::Cause::L0Files) if !is_deep => Score::default(),
        None | Some(stall::Cause::L0Files | stall::Cause::MemtableLimit) => {
            Score(view.load.price.into())
        }
        Some(_) => Score::default(),
    }
}

/// One round of wishes.
struct Round<'v> {
    view: &'v View<'v>,
    price: Score,
    gathered: Vec<Rc<Gathered>>,
}

impl Round<'_> {
    fn run(&self, offers: &mut Offers) -> ControlFlow<()> {
        let view = self.view;
        extras::at_budget(view, offers)?;
        if score::l0_score(view) >= Score::ONE {
            l0::offer_move(view, l0::reason(view), Prio::High, offers)?;
        }
        gather::down(view, &self.gathered, self.price, offers)?;
        gather::to_rest(view, &self.gathered, offers)?;
        if !score::is_resting(view) {
            gather::in_place(view, &self.gathered, offers)?;
            gather::at_any_price(view, &self.gathered, offers)?;
        }
        score::by_rank(view)
            .into_iter()
            .filter(|&(level, _)| level > 0)
            .try_for_each(|(level, need)| self.level_down(level, need, offers))?;
        extras::settle(view, offers)
    }

    /// The files of a level over its target that are worth the price, unless they are about to be merged
    /// with what comes down on them. Tells the best of those that are not.
    fn level_down(&self, level: Level, need: Score, offers: &mut Offers) -> ControlFlow<()> {
        let view = self.view;
        let dear: RefCell<Option<(FileRef, Score)>> = RefCell::new(None);
        let stays = |f: &FileRef| {
            let below = view.version.overlapping_bytes(level + 1, &f.range);
            let worth = Score::ratio(f.bytes, f.bytes.saturating_add(below));
            if worth < self.price {
                dear.borrow_mut().get_or_insert_with(|| (f.clone(), worth));
            }
            worth < self.price || level == view.targets.base && self.comes_down_upon(f)
        };
        Descent { level, need, stays: &stays, told: Told::BestLocked }.run(view, offers)?;
        if let Some((file, worth)) = dear.take() {
            let to = Pos::base(level + 1);
            let inputs = close(view.version, &[file], to);
            let wish =
                Candidate::merge(Kind::Down, inputs, to, Reason::LevelBytes { level, score: need });
            offers.hold_back(wish, Guard::Price { worth, price: self.price });
        }
        Continue(())
    }

    /// True if a job of level 0 that is worth the price, and not gathered further, takes the file along.
    fn comes_down_upon(&self, file: &FileRef) -> bool {
        let order = self.view.order();
        self.gathered.iter().filter_map(|g| g.goes(self.price)).any(|d| d.reaches(file, order))
    }
}
