//! Level 0 by stretches of keys, and what was worked out of them, kept while one plan goes on: a job that is
//! accepted changes only the stretches whose files it takes.

use std::cell::{OnceCell, RefCell};
use std::rc::Rc;

use lithify_base::{Comparator, FileId, Level};
use lithify_lsm::FileRef;
use lithify_lsm::index::{self, Interval};

use crate::nouns::guard::Guard;
use crate::nouns::score::Score;

/// The idle runs of L0 over one stretch of keys, and where they go best.
#[derive(Clone, Debug)]
pub(crate) struct Gathered {
    /// Where the stretch begins.
    pub(crate) interval: Interval,
    /// The way down; `None` while it is locked.
    pub(crate) down: Option<Down>,
    /// Why more is gathered first, if it is.
    pub(crate) lot: Option<Guard>,
    /// What is merged in place to come to rest.
    pub(crate) in_place: Option<Vec<FileRef>>,
}

impl Gathered {
    /// The way down, if it is worth `price` and nothing more is gathered first.
    pub(crate) fn goes(&self, price: Score) -> Option<&Down> {
        let waits = self.lot.is_some() && price > Score::default();
        self.down.as_ref().filter(|d| !waits && d.worth >= price)
    }
}

/// A way down.
#[derive(Clone, Debug)]
pub(crate) struct Down {
    /// Bytes that come one level down per byte moved.
    pub(crate) worth: Score,
    /// All that goes.
    pub(crate) inputs: Vec<FileRef>,
    /// Where it goes.
    pub(crate) to: Level,
}

impl Down {
    /// True if a file overlaps what goes down.
    pub(crate) fn reaches(&self, file: &FileRef, order: &dyn Comparator) -> bool {
        self.inputs.iter().any(|f| f.range.overlaps(&file.range, order))
    }
}

/// A stretch that was worked out.
#[derive(Clone, Debug)]
struct Known {
    /// The oldest idle file over it.
    oldest: FileId,
    /// The files whose locks were looked at, sorted.
    looked_at: Vec<FileId>,
    gathered: Rc<Gathered>,
}

/// The stretches that were worked out so far. A view fills it while it is read.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stretches {
    /// The elementary intervals of L0, once they were asked for.
    pub(crate) intervals: OnceCell<Vec<Interval>>,
    known: RefCell<Vec<Known>>,
}

impl Stretches {
    /// What is known of the stretch that begins where `interval` does, and the oldest idle file over it.
    pub(crate) fn get(&self, interval: &Interval) -> Option<(FileId, Rc<Gathered>)> {
        let all = self.known.borrow();
        let begins = |k: &&Known| {
            let at = &k.gathered.interval;
            at.from_lo == interval.from_lo && at.lo == interval.lo
        };
        all.iter().find(begins).map(|k| (k.oldest, k.gathered.clone()))
    }

    /// Keeps what was worked out by the locks of the files in `looked_at`.
    pub(crate) fn keep(
        &self,
        oldest: FileId,
        mut looked_at: Vec<FileId>,
        gathered: Gathered,
    ) -> Rc<Gathered> {
        looked_at.sort_unstable();
        let gathered = Rc::new(gathered);
        self.known.borrow_mut().push(Known { oldest, looked_at, gathered: gathered.clone() });
        gathered
    }

    /// Some idle files are locked now.
    pub(crate) fn lock(&mut self, locked: &[FileRef], order: &dyn Comparator) {
        if let Some(intervals) = self.intervals.get_mut() {
            let of_l0 = locked.iter().filter(|f| f.pos.level == 0);
            of_l0.for_each(|f| index::lock(intervals, f, order));
        }
        let is_locked = |k: &Known| locked.iter().any(|f| k.looked_at.binary_search(&f.id).is_ok());
        self.known.get_mut().retain(|k| !is_locked(k));
    }
}
