//! Recycling of page memory, under a cap.
//!
//! Fresh memory costs its first touch (a page fault and a page of zeros), which is more than most
//! uses of a buffer cost afterwards; so memory given back is kept for the next taker.
//!
//! Keeps: memory in use plus memory kept idle stays within the budget whenever the memory in use
//! alone does. The budget never refuses memory: who must not exceed it asks [`PagePool::in_use`]
//! first. The most recently used piece goes out first, being the likeliest in cache.
//!
//! Leaves to others: clearing. A recycled piece holds what its last user left.

use std::collections::BTreeMap;
use std::fmt;

use crate::os::pages::{HUGE, PAGE, Pages};
use crate::sync::{Arc, Mutex};

/// The system gave no memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfMemory {
    /// How much was asked for.
    pub bytes: usize,
}

impl fmt::Display for OutOfMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the system has no {} bytes of memory left", self.bytes)
    }
}

impl std::error::Error for OutOfMemory {}

/// Page memory, shared by many users.
#[derive(Debug)]
pub(crate) struct PagePool {
    /// Whether fresh memory is touched before it is handed out.
    prefault: bool,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    budget: usize,
    in_use: usize,
    idle_bytes: usize,
    /// Idle pieces by length; emptied lists stay, there are few lengths.
    idle: BTreeMap<usize, Vec<Pages>>,
}

impl PagePool {
    pub(crate) fn new(budget: usize, prefault: bool) -> Arc<Self> {
        let state = State { budget, in_use: 0, idle_bytes: 0, idle: BTreeMap::new() };
        Arc::new(Self { prefault, state: Mutex::new(state) })
    }

    /// At least `bytes`, recycled if a piece of up to twice the size is idle.
    pub(crate) fn take(&self, bytes: usize) -> Result<Pages, OutOfMemory> {
        if bytes == 0 {
            return Ok(Pages::empty());
        }
        let wanted = size_class(bytes).ok_or(OutOfMemory { bytes })?;
        let mut state = self.state.lock();
        if let Some(pages) = state.reuse(wanted) {
            return Ok(pages);
        }
        // Counted before it exists, so that others see the budget shrink.
        state.in_use += wanted;
        let excess = state.shed();
        drop(state);
        drop(excess);
        match self.fresh(wanted) {
            Some(pages) => Ok(pages),
            None => {
                self.state.lock().in_use -= wanted;
                Err(OutOfMemory { bytes })
            }
        }
    }

    /// New memory; if there is none, gives up everything idle and asks once more.
    fn fresh(&self, wanted: usize) -> Option<Pages> {
        let mut pages = Pages::zeroed(wanted).or_else(|| {
            self.trim();
            Pages::zeroed(wanted)
        })?;
        debug_assert_eq!(pages.len(), wanted, "a size class is a length Pages can have");
        if self.prefault {
            pages.prefault();
        }
        Some(pages)
    }

    /// Takes a piece back.
    pub(crate) fn give(&self, pages: Pages) {
        let bytes = pages.len();
        if bytes == 0 {
            return;
        }
        let mut state = self.state.lock();
        state.in_use -= bytes;
        state.idle_bytes += bytes;
        state.idle.entry(bytes).or_default().push(pages);
        let excess = state.shed();
        drop(state);
        drop(excess);
    }

    /// Gives all idle memory back to the system.
    pub(crate) fn trim(&self) {
        let mut state = self.state.lock();
        state.idle_bytes = 0;
        let idle = std::mem::take(&mut state.idle);
        drop(state);
        drop(idle);
    }

    pub(crate) fn set_budget(&self, bytes: usize) {
        let mut state = self.state.lock();
        state.budget = bytes;
        let excess = state.shed();
        drop(state);
        drop(excess);
    }

    pub(crate) fn in_use(&self) -> usize {
        self.state.lock().in_use
    }

    pub(crate) fn idle(&self) -> usize {
        self.state.lock().idle_bytes
    }
}

impl State {
    fn reuse(&mut self, wanted: usize) -> Option<Pages> {
        let fitting = self.idle.range_mut(wanted..=wanted.saturating_mul(2));
        let pages = fitting.filter_map(|(_, list)| list.pop()).next()?;
        self.idle_bytes -= pages.len();
        self.in_use += pages.len();
        Some(pages)
    }

    /// Takes idle pieces out, largest first, until the budget holds. The caller drops them after
    /// the lock: giving memory back to the system is slow.
    fn shed(&mut self) -> Vec<Pages> {
        let mut excess = Vec::new();
        while self.idle_bytes > 0 && self.in_use + self.idle_bytes > self.budget {
            let lists = self.idle.values_mut().rev();
            let Some(pages) = lists.filter_map(Vec::pop).next() else { break };
            self.idle_bytes -= pages.len();
            excess.push(pages);
        }
        excess
    }
}

/// The length handed out for `bytes`: a power of two up to 2 MiB, then four steps per doubling
/// (multiples of 2 MiB), so that little is wasted and pieces still find a second user.
fn size_class(bytes: usize) -> Option<usize> {
    if bytes <= HUGE {
        return Some(bytes.next_power_of_two().max(PAGE));
    }
    let below = (bytes.checked_next_power_of_two()? / 2).max(HUGE);
    bytes.checked_next_multiple_of((below / 4).max(HUGE))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1 << 20;

    #[test]
    fn size_classes_step_up_and_waste_little() {
        let pairs = [
            (1, PAGE),
            (PAGE, PAGE),
            (PAGE + 1, 2 * PAGE),
            (MIB + 1, 2 * MIB),
            (2 * MIB, 2 * MIB),
            (2 * MIB + 1, 4 * MIB),
            (5 * MIB, 6 * MIB),
            (8 * MIB, 8 * MIB),
            (17 * MIB, 20 * MIB),
            (63 * MIB, 64 * MIB),
        ];
        for (bytes, class) in pairs {
            assert_eq!(size_class(bytes), Some(class), "{bytes}");
        }
        assert_eq!(size_class(usize::MAX), None);
    }

    #[test]
    fn memory_given_back_is_handed_out_again() {
        let pool = PagePool::new(8 * MIB, false);
        let mut pages = pool.take(MIB).unwrap();
        let base = pages.base_ptr().addr();
        pages.as_mut_slice()[0] = 77;
        assert_eq!((pool.in_use(), pool.idle()), (MIB, 0));
        pool.give(pages);
        assert_eq!((pool.in_use(), pool.idle()), (0, MIB));
        let pages = pool.take(MIB / 2).unwrap();
        assert_eq!((pages.base_ptr().addr(), pages.as_slice()[0]), (base, 77));
        pool.give(pages);
        assert_ne!(pool.take(MIB / 2 - 1).unwrap().len(), 0);
        let small = pool.take(PAGE).unwrap();
        assert_eq!(small.len(), PAGE, "a piece far too large stays idle");
    }

    #[test]
    fn idle_memory_never_breaks_the_budget() {
        let pool = PagePool::new(3 * MIB, false);
        let pieces: Vec<_> = (0..5).map(|_| pool.take(MIB).unwrap()).collect();
        assert_eq!(pool.in_use(), 5 * MIB, "the budget refuses nothing");
        pieces.into_iter().for_each(|pages| pool.give(pages));
        assert_eq!((pool.in_use(), pool.idle()), (0, 3 * MIB));
        let large = pool.take(2 * MIB).unwrap();
        assert_eq!((pool.in_use(), pool.idle()), (2 * MIB, MIB));
        pool.set_budget(2 * MIB);
        assert_eq!(pool.idle(), 0);
        pool.give(large);
        let budget = pool.state.lock().budget;
        assert_eq!((budget, pool.idle()), (2 * MIB, 2 * MIB));
        pool.trim();
        assert_eq!(pool.idle(), 0);
    }

    #[test]
    fn a_refused_request_leaves_the_accounts_even() {
        let pool = PagePool::new(MIB, false);
        pool.give(pool.take(PAGE).unwrap());
        assert_eq!(pool.take(1 << 56).unwrap_err(), OutOfMemory { bytes: 1 << 56 });
        assert_eq!(pool.take(usize::MAX).unwrap_err(), OutOfMemory { bytes: usize::MAX });
        assert_eq!(pool.in_use(), 0);
    }
}
