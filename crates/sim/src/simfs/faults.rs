//! What goes wrong on a simulated disk, and when.
//!
//! Keeps: a fault counts the calls and syncs since it was set, and it is known how often and where in
//! the log it struck.
//! Leaves to others: what a call that fails leaves behind.

use lithify_env::Random;
use rustix::io::Errno;

use super::{Raw, SimFs, used};
use crate::disk::Forgets;

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A sync of a file or directory fails.
    Sync {
        /// Which one, counted from 0 over all of both.
        nth: u64,
        /// What is left of the bytes.
        forgets: Forgets,
        /// How it fails.
        with: Errno,
        /// All later ones fail, too; else it is reported once, and the next one claims success.
        sticky: bool,
    },
    /// A call fails.
    Call {
        /// Which one, counted from 0 over all calls.
        nth: u64,
        /// How.
        with: Errno,
        /// All later ones fail, too.
        sticky: bool,
    },
    /// A call does what it is asked for, and then says that it failed, as where the answer of a network's file
    /// system is lost.
    CallAfter {
        /// Which one, counted from 0 over all calls; those that change nothing on the disk are left alone.
        nth: u64,
        /// What it says.
        with: Errno,
        /// All later ones do, too.
        sticky: bool,
    },
    /// A transfer moves one byte, or half of its bytes.
    Short {
        /// Which one, counted from 0 over all calls; others than transfers are left alone.
        nth: u64,
        /// All later ones are cut short, too.
        sticky: bool,
    },
    /// Files can hold no more bytes than these together.
    Full(u64),
    /// A sync of a file or directory fails, and from then on there is no room for anything more.
    SyncThenFull {
        /// Which sync, counted from 0 over all of both.
        nth: u64,
        /// What is left of the bytes.
        forgets: Forgets,
    },
}

/// What is set to go wrong, and what has.
#[derive(Default)]
pub(super) struct Faults {
    /// Syncs of files and directories asked for so far.
    syncs: u64,
    /// Calls that can fail made so far.
    calls: u64,
    fault: Option<Fault>,
    /// Calls and syncs before the fault was set: it counts from there.
    before: (u64, u64),
    /// How often the fault struck.
    struck: u64,
    /// The fault that is set has struck.
    has_struck: bool,
    /// Something struck since all was well.
    troubled: bool,
    /// Where in the log one struck first.
    first_strike: Option<usize>,
    /// Draws lengths of transfers that are cut short.
    lengths: Option<Random>,
}

impl SimFs {
    /// Something goes wrong from now on; its calls and syncs count from here.
    pub fn set_fault(&self, fault: Fault) {
        self.0.lock().faults.set(fault);
    }

    /// Bytes in all files that have a name.
    pub fn used(&self) -> u64 {
        used(&self.0.lock().disk)
    }

    /// Nothing goes wrong any more.
    pub fn heal(&self) {
        let faults = &mut self.0.lock().faults;
        (faults.fault, faults.troubled) = (None, false);
    }

    /// Calls made and syncs asked for so far.
    pub fn counts(&self) -> (u64, u64) {
        let faults = &self.0.lock().faults;
        (faults.calls, faults.syncs)
    }

    /// How often something went wrong so far.
    pub fn struck(&self) -> u64 {
        self.0.lock().faults.struck
    }

    /// Whether what is set to go wrong has done so.
    pub fn has_struck(&self) -> bool {
        self.0.lock().faults.has_struck
    }

    /// Whether anything went wrong since [`SimFs::heal`], or ever.
    pub fn is_troubled(&self) -> bool {
        self.0.lock().faults.troubled
    }

    /// Whether all that is wrong now is that files may not grow.
    pub fn is_full(&self) -> bool {
        self.0.lock().faults.most_bytes().is_some()
    }

    /// Position in the log at which something went wrong first.
    pub fn first_strike(&self) -> Option<usize> {
        self.0.lock().faults.first_strike
    }

    /// Transfers are cut short now and then, by lengths that follow from `seed`.
    pub fn shorten(&self, seed: u64) {
        self.0.lock().faults.lengths = Some(Random::from_seed(seed));
    }
}

impl Faults {
    fn set(&mut self, fault: Fault) {
        (self.before, self.has_struck) = ((self.calls, self.syncs), false);
        self.fault = Some(fault);
    }

    /// It struck, with the log `at` entries long.
    pub(super) fn strike(&mut self, at: usize) {
        self.struck += 1;
        (self.has_struck, self.troubled) = (true, true);
        self.first_strike.get_or_insert(at);
    }

    /// A call is made.
    ///
    /// # Errors
    /// The one that is set for it.
    pub(super) fn call(&mut self, at: usize) -> Raw<()> {
        let nth = self.calls - self.before.0;
        self.calls += 1;
        match self.fault {
            Some(Fault::Call { nth: n, with, sticky }) if n == nth || (sticky && n < nth) => {
                self.strike(at);
                Err(with)
            }
            _ => Ok(()),
        }
    }

    /// A call has changed the disk.
    ///
    /// # Errors
    /// The one that is set for it.
    pub(super) fn changed(&mut self, at: usize) -> Raw<()> {
        // This call is counted already.
        let now = self.calls - self.before.0 - 1;
        match self.fault {
            Some(Fault::CallAfter { nth, with, sticky }) if nth == now || (sticky && nth < now) => {
                self.strike(at);
                Err(with)
            }
            _ => Ok(()),
        }
    }

    /// How many of `wanted` bytes a transfer moves.
    pub(super) fn shortened(&mut self, wanted: usize, at: usize) -> usize {
        if let Some(Fault::Short { nth, sticky }) = self.fault {
            // This call is counted already.
            let now = self.calls - self.before.0 - 1;
            let hit = wanted > 1 && (now == nth || (sticky && nth < now));
            if hit {
                self.strike(at);
            }
            return match hit {
                true if now.is_multiple_of(2) => 1,
                true => wanted / 2,
                false => wanted,
            };
        }
        let Some(random) = &mut self.lengths else { return wanted };
        match wanted > 1 && random.one_in(4) {
            true => 1 + random.below(wanted as u64 - 1) as usize,
            false => wanted,
        }
    }

    /// What all files together may hold, if there is a bound.
    pub(super) fn most_bytes(&self) -> Option<u64> {
        match self.fault {
            Some(Fault::Full(most)) => Some(most),
            _ => None,
        }
    }

    /// A sync is asked for: whether it fails, what becomes of the bytes, and how. `used` says how many
    /// bytes all files hold.
    pub(super) fn sync(
        &mut self,
        at: usize,
        used: impl FnOnce() -> u64,
    ) -> Option<(Forgets, Errno)> {
        let nth = self.syncs - self.before.1;
        self.syncs += 1;
        match self.fault {
            Some(Fault::Sync { nth: n, forgets, with, sticky })
                if n == nth || (sticky && n < nth) =>
            {
                self.strike(at);
                Some((forgets, with))
            }
            Some(Fault::SyncThenFull { nth: n, forgets }) if n == nth => {
                self.strike(at);
                self.fault = Some(Fault::Full(used()));
                Some((forgets, Errno::IO))
            }
            _ => None,
        }
    }
}
