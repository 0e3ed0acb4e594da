//! Which blocks were read lately and not kept.
//!
//! A full cache evicts one block for each that it takes. One that is never asked for again is then a loss, and it costs: the memory
//! of what is evicted was touched long ago, so the next block is read into memory that no cache of the processor has. So a full
//! cache takes a block only when it is read for the second time within a while. (TinyLFU, Einziger, Friedman and Manes,
//! "TinyLFU: a highly efficient cache admission policy", ACM ToS 2017, calls such a thing a doorkeeper.)
//!
//! Keeps: 16 bits for each of four times as many blocks as the cache is about to hold; what is noted goes when another block is
//! noted in its place, which is chosen by its hash. Equal runs on one thread note the same.

use std::hash::{BuildHasher, Hash};

use lithify_env::sync::atomic::{AtomicU16, Ordering};
use rustc_hash::FxBuildHasher;

/// Places for each block that the cache is about to hold.
const PLACES: usize = 4;
const PLACES_MIN: usize = 1 << 10;
/// With blocks of 4 KiB, those of a cache of 4 GiB.
const PLACES_MAX: usize = 1 << 22;

/// Marks of what was missed.
pub(super) struct Missed {
    marks: Box<[AtomicU16]>,
}

impl Missed {
    /// For a cache of about `blocks` blocks.
    pub(super) fn new(blocks: usize) -> Missed {
        let wanted = blocks.saturating_mul(PLACES).clamp(PLACES_MIN, PLACES_MAX);
        let marks = (0..wanted.next_power_of_two()).map(|_| AtomicU16::new(0)).collect();
        Missed { marks }
    }

    /// Notes `key`; whether it was noted already.
    #[inline]
    pub(super) fn note(&self, key: &impl Hash) -> bool {
        let hash = FxBuildHasher.hash_one(key);
        // 0 is no mark.
        let mark = (hash >> 48) as u16 | 1;
        let place = &self.marks[hash as usize & (self.marks.len() - 1)];
        // Two threads at once lose a note at most.
        let before = place.load(Ordering::Relaxed);
        if before != mark {
            place.store(mark, Ordering::Relaxed);
        }
        before == mark
    }

    /// Bytes that it takes.
    pub(super) fn memory(&self) -> usize {
        size_of_val(&*self.marks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_noted_is_known_until_others_take_its_place() {
        let missed = Missed::new(0);
        let key = |n: u64| (n % 7, n << 12);
        assert!((0..200).filter(|n| missed.note(&key(*n))).count() < 10);
        let known = (0..200).filter(|n| missed.note(&key(*n))).count();
        assert!((150..=200).contains(&known), "{known}");
        (1000..21_000).for_each(|n| _ = missed.note(&key(n)));
        let known = (0..200).filter(|n| missed.note(&key(*n))).count();
        assert!(known < 10, "{known}");
    }

    #[test]
    fn places_follow_the_size_of_the_cache() {
        assert_eq!(Missed::new(10).memory(), 2 * PLACES_MIN);
        assert_eq!(Missed::new(10_000).memory(), 2 << 16);
        assert_eq!(Missed::new(usize::MAX).memory(), 2 * PLACES_MAX);
    }
}
