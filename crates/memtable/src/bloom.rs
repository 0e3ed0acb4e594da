//! A blocked Bloom filter over user keys: one cache line per key, so that a lookup of an absent
//! key ends after one miss.
//!
//! Keeps: a key that was added is found by every reader to whom its addition happened before
//! (the writer publishes sequence numbers after adding).
//! Leaves to others: hashing. More keys than expected only raise the rate of false positives.
//!
//! A filter is made for few keys, and grows once, before the first key is added: a table that nothing
//! is written to has one line. A reader that meets the change sees the old line, the first of the new
//! ones, or the new ones in full, and no key in any of them.
//!
//! The upper half of a 64-bit hash chooses a line of 512 bits, the lower half six bits in it
//! (Putze, Sanders and Singler, "Cache-, hash- and space-efficient Bloom filters", 2007).

use crate::arena::{Arena, prefetch};
use crate::sync::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};

/// Bits per expected key: about 1% false positives.
const BITS_PER_KEY: usize = 10;
/// Bits set per key.
const PROBES: u32 = 6;
/// Spreads the lower half of the hash over the probes: an odd number near 2^32 / golden ratio.
const STRIDE: u32 = 0x9e37_79b9;

/// Words of a line.
const LINE: usize = 8;
/// Most lines: 256 GiB, or an eighth of what 32 bits address.
const LINES_MAX: usize = if usize::BITS > 32 { u32::MAX as usize } else { 1 << 23 };

/// The filter.
pub(crate) struct Bloom {
    /// There are at least this many lines behind `words`: stored after it, loaded before it.
    lines: AtomicUsize,
    words: AtomicPtr<AtomicU64>,
}

impl Bloom {
    /// Memory of a filter for about `keys` keys, in bytes.
    pub(crate) fn bytes(keys: usize) -> usize {
        Bloom::lines(keys) * LINE * size_of::<AtomicU64>()
    }
    fn lines(keys: usize) -> usize {
        // More lines than half a hash can choose are of no use.
        keys.saturating_mul(BITS_PER_KEY).div_ceil(64 * LINE).clamp(1, LINES_MAX)
    }

    /// A filter for about `keys` keys, its memory in `arena`.
    ///
    /// # Safety
    /// As [`Arena::words`]; and the filter is not used after the arena is dropped.
    pub(crate) unsafe fn new(arena: &Arena, keys: usize) -> Bloom {
        let lines = Bloom::lines(keys);
        // SAFETY: by the contract.
        let words = unsafe { arena.words(lines * LINE) };
        Bloom { lines: AtomicUsize::new(lines), words: AtomicPtr::new(words.as_ptr()) }
    }
    /// Makes it one for about `keys` keys, not fewer than before. Readers may be about.
    ///
    /// # Safety
    /// As [`Bloom::new`], with the same arena; and no key was added.
    pub(crate) unsafe fn grow(&self, arena: &Arena, keys: usize) {
        let lines = Bloom::lines(keys);
        // SAFETY: by the contract.
        let words = unsafe { arena.words(lines * LINE) };
        self.words.store(words.as_ptr(), Ordering::Release);
        self.lines.store(lines, Ordering::Release);
    }
    #[inline(always)]
    fn line(&self, hash: u64) -> &[AtomicU64; LINE] {
        let lines = self.lines.load(Ordering::Acquire);
        let words = self.words.load(Ordering::Acquire);
        let line = (u64::from((hash >> 32) as u32) * lines as u64) >> 32;
        // SAFETY: `line < lines`, and there are as many whole lines behind `words`, initialised, in an
        // arena that lives as long as the filter is used.
        unsafe { &*words.add(line as usize * LINE).cast() }
    }
    /// Asks for the line of a key that will be added soon.
    #[inline(always)]
    pub(crate) fn prefetch(&self, hash: u64) {
        prefetch(self.line(hash).as_ptr().cast());
    }
    /// Adds a key. No other thread may add at the same time: bits are set without an atomic
    /// read-modify-write.
    #[inline]
    pub(crate) fn add(&self, hash: u64) {
        let line = self.line(hash);
        for (word, bit) in probes(hash) {
            let old = line[word].load(Ordering::Relaxed);
            line[word].store(old | bit, Ordering::Relaxed);
        }
    }
    /// Adds a key while others may add, too.
    #[inline]
    pub(crate) fn add_shared(&self, hash: u64) {
        let line = self.line(hash);
        for (word, bit) in probes(hash) {
            // Most bits of a well-filled line are set, and asking costs less than setting.
            if line[word].load(Ordering::Relaxed) & bit == 0 {
                line[word].fetch_or(bit, Ordering::Relaxed);
            }
        }
    }
    /// False if the key was certainly not added.
    #[inline]
    pub(crate) fn may_contain(&self, hash: u64) -> bool {
        let line = self.line(hash);
        probes(hash).all(|(word, bit)| line[word].load(Ordering::Relaxed) & bit != 0)
    }
}

/// Word and bit of each probe: nine bits from the top of a multiplicative sequence.
#[inline(always)]
fn probes(hash: u64) -> impl Iterator<Item = (usize, u64)> {
    let mut h = hash as u32;
    (0..PROBES).map(move |_| {
        h = h.wrapping_mul(STRIDE);
        ((h >> 29) as usize, 1 << (h >> 23 & 63))
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use xxhash_rust::xxh3::xxh3_64;

    use super::*;
    use crate::arena::HeapPool;

    #[test]
    fn absent_keys_are_nearly_always_refused() {
        let keys = if cfg!(miri) { 200 } else { 20_000u64 };
        let hash = |i: u64| xxh3_64(&i.to_le_bytes());
        let arena = Arena::new(Arc::new(HeapPool), 0);
        // SAFETY: one thread, and the arena outlives the filter.
        let bloom = unsafe { Bloom::new(&arena, keys as usize) };
        (0..keys).for_each(|i| bloom.add(hash(i)));
        assert!((0..keys).all(|i| bloom.may_contain(hash(i))));
        let wrong = (keys..2 * keys).filter(|&i| bloom.may_contain(hash(i))).count();
        assert!((wrong as f64) < 0.02 * keys as f64, "{wrong} of {keys}");
    }
}
