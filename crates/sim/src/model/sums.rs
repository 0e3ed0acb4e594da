//! Values that expire, and what a state adds up to while they do.
//!
//! Such a value has the second at which it was written at its end, as it has in tables: it is part of
//! the sum up to the last second at which it shows, and its time is part of its hash.
//!
//! Leaves to others: what is added (`model`).

use std::collections::BTreeMap;

/// Seconds after which the values of a family expire; 0 is never. Values of a family that is not
/// named here have no times.
pub type Lifetimes = BTreeMap<String, u64>;

/// The last second at which a value that has a time shows.
pub fn shows_until(value: &[u8], lifetime: u64) -> u64 {
    match lifetime {
        0 => LASTS,
        seconds => u64::from(written_at(value)) + seconds,
    }
}

/// The second at which a value that has a time was written.
pub(super) fn written_at(value: &[u8]) -> u32 {
    let time = value.last_chunk().expect("a value has its time at its end");
    u32::from_le_bytes(*time)
}

/// The second after all others.
pub(super) const LASTS: u64 = u64::MAX;

/// What a state adds up to, at each second.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    /// What stays.
    lasting: u64,
    /// What expires, by the last second at which it shows.
    until: BTreeMap<u64, u64>,
}

impl Sums {
    /// The sum of what shows at this second.
    pub fn at(&self, second: u64) -> u64 {
        self.until.range(second..).map(|(_, sum)| *sum).fold(self.lasting, u64::wrapping_add)
    }

    pub(super) fn add(&mut self, until: u64, sum: u64) {
        if until == LASTS {
            self.lasting = self.lasting.wrapping_add(sum);
            return;
        }
        let there = self.until.entry(until).or_default();
        *there = there.wrapping_add(sum);
        if *there == 0 {
            self.until.remove(&until);
        }
    }
}

/// The sum of what was there at some second.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    /// The sum.
    pub sum: u64,
    /// Seconds since 1970.
    pub second: u64,
}

impl Seen {
    pub(super) fn is(self, sums: &Sums) -> bool {
        sums.at(self.second) == self.sum
    }
}
