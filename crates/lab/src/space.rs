//! The key space and what it holds: keys are numbers, files are histograms over equal cells.
//!
//! Keeps: inside a cell, and inside the part of it that a file covers, keys are spread evenly and
//! independently of other files; so `n` of `K` keys in one file and `m` in another are together
//! `K (1 - (1 - n/K) (1 - m/K))` different ones.
//! Leaves to others: where outputs are cut ([`crate::merge`]).
//!
//! Worked example, a cell of 1000 keys: 200 of them in one file and 500 in another are
//! 1000 (1 - 0.8 x 0.5) = 600 after a merge, so 100 entries went.

use std::ops::Range;

use lithify_base::Key;

/// Most keys, and most cells: what they are multiplied to fits 64 bits.
pub const KEYS_MAX: u64 = 9_999_999_999;
pub(crate) const CELLS_MAX: u32 = 1 << 20;

/// Keys `0..keys` in `cells` cells.
#[derive(Clone, Copy, Debug)]
pub struct Space {
    /// Number of different keys.
    pub keys: u64,
    /// Number of cells, at least 1.
    pub cells: u32,
}

impl Space {
    /// A space of `keys` keys, in at most `cells` cells.
    pub fn new(keys: u64, cells: u32) -> Space {
        let keys = keys.clamp(1, KEYS_MAX);
        let most = u32::try_from(keys).unwrap_or(u32::MAX);
        Space { keys, cells: cells.clamp(1, most.min(CELLS_MAX)) }
    }
    /// The first key of a cell; of the cell behind the last one, the end of the space.
    pub fn start(&self, cell: u32) -> u64 {
        self.keys * u64::from(cell) / u64::from(self.cells)
    }
    /// The keys of a cell.
    pub fn cell(&self, cell: u32) -> Range<u64> {
        self.start(cell)..self.start(cell + 1)
    }
    /// The cell that holds `key`.
    pub fn cell_of(&self, key: u64) -> u32 {
        let near = key * u64::from(self.cells) / self.keys;
        let near = (near as u32).min(self.cells - 1);
        // Rounding puts a cell's first key at most one cell too low.
        if near + 1 < self.cells && self.start(near + 1) <= key { near + 1 } else { near }
    }
}

/// Key number `number` as the tree knows it: ten digits, so that traces can be read.
pub fn key(number: u64) -> Key {
    Key::from(format!("{number:010}").as_bytes())
}

/// The number of a key made by [`key`].
pub fn number(key: &[u8]) -> u64 {
    key.iter().fold(0, |n, digit| n * 10 + u64::from(digit - b'0'))
}

/// What a file holds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Content {
    /// The keys it covers; entries lie anywhere inside.
    pub keys: Range<u64>,
    /// The cell of its first key.
    pub first: u32,
    /// Entries per cell from `first` on.
    pub counts: Vec<f64>,
}

impl Content {
    /// Entries.
    pub fn entries(&self) -> f64 {
        self.counts.iter().sum()
    }
    /// The part of cell `cell` that the file covers, and its entries there.
    pub fn part(&self, cell: u32, space: &Space) -> (Range<u64>, f64) {
        let whole = space.cell(cell);
        let part = whole.start.max(self.keys.start)..whole.end.min(self.keys.end);
        (part, self.counts[(cell - self.first) as usize])
    }
    /// Adds `count` entries between `keys`, which lie in one cell at or behind all before.
    pub fn push(&mut self, keys: Range<u64>, count: f64, space: &Space) {
        let cell = space.cell_of(keys.start);
        if self.counts.is_empty() {
            (self.first, self.keys) = (cell, keys.clone());
        }
        self.keys.end = keys.end;
        self.counts.resize((cell - self.first + 1) as usize, 0.0);
        *self.counts.last_mut().expect("just made") += count;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_is_in_its_cell() {
        for (keys, cells) in [(1, 1), (7, 3), (1000, 64), (1 << 33, 4096), (5, 100)] {
            let space = Space::new(keys, cells);
            assert_eq!((space.start(0), space.start(space.cells)), (0, keys));
            for cell in 0..space.cells {
                let of = space.cell(cell);
                assert!(!of.is_empty());
                assert_eq!((space.cell_of(of.start), space.cell_of(of.end - 1)), (cell, cell));
            }
        }
    }

    #[test]
    fn keys_are_numbers_in_order() {
        assert_eq!(number(&key(77)), 77);
        assert!(key(999) < key(1_000));
    }
}
