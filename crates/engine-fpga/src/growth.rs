//! How much larger sets are in a slot than in their files: what a codec saved, and the tables before the areas; and what comes
//! out of them, where keys are shortened less. Sets are cut by stored bytes, and both parts of a slot have room for a fixed
//! number of decoded ones.
//!
//! Keeps: sets that are cut by it fit, once some of like kind were seen; the first ones of data that compresses
//! to less than half go to the CPU, and are counted as such.
//! Leaves to others: the size that suits the pipeline (`Caps::set_bytes` is the smaller of the two).
//!
//! Worked example: a slot of 8 MiB, sets of 4 MiB whose blocks compress to a third. The first is found to be too
//! large: sets are taken to grow threefold, and the next is cut at 2.4 MiB. It holds 7.2 MiB and fits.

use crate::sched::SlotSize;

/// The part of a slot that sets are to fill at most, as not all sets grow alike.
const FILL: f64 = 0.9;
/// A set that did not fit grows at least twofold; how much more is not known, so the next one is cut this much
/// smaller.
const STEP: f64 = 1.5;
/// Sets are not taken to grow more: one with values that are larger than a slot says nothing of others.
const MOST: f64 = 32.0;

/// What sets take of both parts of a slot.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Room {
    /// What is sent.
    pub(crate) input: Growth,
    /// What comes back, with its records.
    pub(crate) output: Growth,
}

impl Room {
    /// Stored bytes of sets that fit a slot, at most `wanted`.
    pub(crate) fn fitting(self, wanted: u64, slot: SlotSize) -> u64 {
        self.output.fitting(self.input.fitting(wanted, slot.input), slot.output)
    }
}

/// Decoded bytes for each stored byte, as far as is known.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Growth(f64);

impl Default for Growth {
    fn default() -> Growth {
        Growth(1.0)
    }
}

impl Growth {
    /// A set of `stored` bytes took so many bytes of its part of a slot, or did not fit.
    pub(crate) fn note(&mut self, stored: u64, plain: Option<usize>) {
        match plain {
            Some(plain) => self.fitted(stored, plain as u64),
            None => self.missed(),
        }
    }
    fn fitted(&mut self, stored: u64, plain: u64) {
        let seen = plain as f64 / stored.max(1) as f64;
        // At once up, slowly down.
        self.0 = if seen > self.0 { seen } else { 0.75 * self.0 + 0.25 * seen }.clamp(1.0, MOST);
    }
    fn missed(&mut self) {
        self.0 = (self.0.max(2.0) * STEP).min(MOST);
    }
    /// Stored bytes of sets that fit into `slot` bytes, at most `wanted`.
    fn fitting(self, wanted: u64, slot: usize) -> u64 {
        let fits = FILL * slot as f64 / self.0;
        wanted.min(fits as u64).max(1)
    }
}
