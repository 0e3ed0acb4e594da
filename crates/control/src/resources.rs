//! What the start of jobs depends on besides the tree: room on the disk, callers that wait, the time,
//! and what was learnt of files and jobs.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};

use lithify_base::{FileId, JobId};
use lithify_plan::{Layers, Prio};

use crate::load::Meter;
use crate::relief::Reliefs;

/// What cores took of a disk that they share: one of them, or all together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// Bytes that compactions at work may still write.
    pub promised: u64,
    /// Bytes of the tables that were committed, ever.
    pub made: u64,
    /// Compactions at work.
    pub running: u64,
    /// Cores that have a compaction at work.
    pub busy: u64,
}

impl Taken {
    // Sums that wrap are right again once the parts are taken out.
    fn plus(self, other: Taken) -> Taken {
        Taken {
            promised: self.promised.wrapping_add(other.promised),
            made: self.made.wrapping_add(other.made),
            running: self.running.wrapping_add(other.running),
            busy: self.busy.wrapping_add(other.busy),
        }
    }
    fn without(self, part: Taken) -> Taken {
        Taken {
            promised: self.promised.wrapping_sub(part.promised),
            made: self.made.wrapping_sub(part.made),
            running: self.running.wrapping_sub(part.running),
            busy: self.busy.wrapping_sub(part.busy),
        }
    }
}

/// This core among those that share the disk.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Share {
    /// Bytes of the tables that it committed.
    made: u64,
    /// What it counts for in the sum of all.
    told: Taken,
    /// What the others took; `None` before that was told.
    others: Option<Taken>,
}

/// What is remembered from one start of jobs to the next.
#[derive(Clone, Debug)]
pub(crate) struct Resources {
    /// Callers that wait for background work to end. Until the shell says how many, one may.
    pub(crate) awaited: usize,
    /// When a memtable was frozen last.
    pub(crate) frozen_at: Option<u64>,
    /// Bytes that tables may still take, as last looked up, less what was written since.
    pub(crate) disk_free: u64,
    /// The same of the disk alone, whatever the budget.
    pub(crate) disk: u64,
    /// A compaction is in the tree since: what it made obsolete may be gone, or not.
    pub(crate) stale: bool,
    pub(crate) share: Share,
    /// What the tree of this install is like; worked out when the disk has little room.
    pub(crate) layers: Cell<Option<(u64, Layers)>>,
    /// Files that came out whole when they were to be cut in parts.
    pub(crate) uncut: BTreeSet<FileId>,
    /// The time as last read, in seconds since 1970; 0 before.
    pub(crate) wall: u64,
    /// Jobs more urgent than they were made, with how urgent.
    pub(crate) raised: BTreeMap<JobId, Prio>,
    /// How many compactions are of use, and what their bytes cost.
    pub(crate) meter: Meter,
    /// When level 0 gets shorter.
    pub(crate) reliefs: Reliefs,
    /// The target of the base level as set, where the one in use follows the load.
    pub(crate) base_bytes: Option<u64>,
}

impl Resources {
    /// Of a tree whose flushes were cut into so many ranges.
    pub(crate) fn new(buckets: usize) -> Resources {
        Resources {
            awaited: 1,
            frozen_at: None,
            disk_free: u64::MAX,
            disk: u64::MAX,
            stale: false,
            share: Share::default(),
            layers: Cell::new(None),
            uncut: BTreeSet::new(),
            wall: 0,
            raised: BTreeMap::new(),
            meter: Meter::of(buckets),
            reliefs: Reliefs::default(),
            base_bytes: None,
        }
    }

    /// The room was looked up.
    pub(crate) fn look(&mut self, left: u64, disk: u64) {
        (self.disk_free, self.disk, self.stale) = (left, disk, false);
    }

    /// Bytes that compactions of others over the same disk may still write.
    pub(crate) fn promised_to_others(&self) -> u64 {
        self.share.others.map_or(0, |others| others.promised)
    }

    /// Compactions that others have at work over the same disk, and how many others have any.
    pub(crate) fn at_work_elsewhere(&self) -> (usize, usize) {
        self.share.others.map_or((0, 0), |others| (others.running as usize, others.busy as usize))
    }

    /// All cores together took this of the disk.
    pub(crate) fn know_all(&mut self, all: Taken) {
        let others = all.without(self.share.told);
        if let Some(before) = self.share.others.filter(|before| *before != others) {
            let made = others.made.wrapping_sub(before.made);
            self.spent(made);
            // What they held may be free by now, or not.
            self.stale |= self.disk < u64::MAX && (made > 0 || others.promised < before.promised);
        }
        self.share.others = Some(others);
    }

    /// Puts what this core took, with how many compactions are at work and what they were promised, into the sum of all.
    pub(crate) fn tell(&mut self, promised: u64, running: u64, all: &mut Taken) {
        let now = Taken { promised, made: self.share.made, running, busy: running.min(1) };
        *all = all.without(self.share.told).plus(now);
        self.share.told = now;
    }

    /// Tables with these bytes are in the tree since.
    pub(crate) fn wrote(&mut self, bytes: u64) {
        self.share.made = self.share.made.wrapping_add(bytes);
        self.spent(bytes);
    }

    fn spent(&mut self, bytes: u64) {
        // A file system that can't tell says that it has all there may be.
        if self.disk < u64::MAX {
            self.disk = self.disk.saturating_sub(bytes);
        }
        if self.disk_free < u64::MAX {
            self.disk_free = self.disk_free.saturating_sub(bytes);
        }
    }
}
