//! Arena memory: one stretch of pre-faulted huge pages.
//!
//! A [`Region`] hands out its address and nothing else: its owner carves it up and answers for
//! who writes what when. A [`RegionPool`] keeps freed regions warm for the next memtable.

use crate::os::pages::{HUGE, Pages};
use crate::pool::{OutOfMemory, PagePool};
use crate::sync::Arc;

/// Owned memory with a fixed address, aligned to 2 MiB and backed by real pages from the start.
///
/// All bytes are initialised: zeros in a fresh region, anything in a recycled one.
#[derive(Debug)]
pub struct Region {
    pages: Pages,
    pool: Option<Arc<PagePool>>,
}

impl Region {
    /// A fresh region of at least `len` bytes (a multiple of 2 MiB), zeroed.
    pub fn new(len: usize) -> Result<Self, OutOfMemory> {
        let mut pages = Pages::zeroed(len.max(HUGE)).ok_or(OutOfMemory { bytes: len })?;
        pages.prefault();
        Ok(Self { pages, pool: None })
    }

    /// The first byte. Valid for reads and writes of [`Region::len`] bytes while the region
    /// lives; the caller synchronises access and never makes two exclusive references meet.
    pub fn as_ptr(&self) -> *mut u8 {
        self.pages.base_ptr()
    }

    /// Length in bytes.
    #[expect(clippy::len_without_is_empty, reason = "a region is never empty")]
    pub fn len(&self) -> usize {
        self.pages.len()
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        if let Some(pool) = &self.pool {
            pool.give(std::mem::replace(&mut self.pages, Pages::empty()));
        }
    }
}

/// Regions that come back when dropped; clones share one pool.
#[derive(Clone, Debug)]
pub struct RegionPool(Arc<PagePool>);

impl RegionPool {
    /// A pool that keeps idle regions as long as these and those in use fit into `budget` bytes.
    pub fn new(budget: usize) -> Self {
        Self(PagePool::new(budget, true))
    }

    /// A region of at least `len` bytes, recycled if possible.
    pub fn get(&self, len: usize) -> Result<Region, OutOfMemory> {
        let pages = self.0.take(len.max(HUGE))?;
        Ok(Region { pages, pool: Some(Arc::clone(&self.0)) })
    }

    /// Changes the budget; idle regions beyond it go at once.
    pub fn set_budget(&self, bytes: usize) {
        self.0.set_budget(bytes);
    }

    /// Bytes of the regions now held by users.
    pub fn in_use(&self) -> usize {
        self.0.in_use()
    }

    /// Bytes of the regions kept for the next user.
    pub fn idle(&self) -> usize {
        self.0.idle()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regions_are_aligned_and_come_back() {
        let fresh = Region::new(1).unwrap();
        assert_eq!((fresh.len(), fresh.as_ptr().addr() % HUGE), (HUGE, 0));

        let pool = RegionPool::new(3 * HUGE);
        let region = pool.get(2 * HUGE).unwrap();
        let at = region.as_ptr();
        assert_eq!((pool.in_use(), pool.idle()), (2 * HUGE, 0));
        drop(region);
        assert_eq!((pool.in_use(), pool.idle()), (0, 2 * HUGE));
        assert_eq!(pool.get(HUGE).unwrap().as_ptr(), at);
        pool.set_budget(0);
        assert_eq!(pool.idle(), 0);
    }
}
