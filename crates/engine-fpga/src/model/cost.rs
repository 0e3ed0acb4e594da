//! What a set costs a unit in cycles, by formula.
//!
//! Ways are taken apart side by side, and encoder, hasher and weigher follow them at their own pace with queues in between.
//! So a set takes as long as the slowest of these, and what passes before its first entry and behind its last one. Ways that are
//! still being filled keep them waiting (`pace`). What it leaves out: a value that is longer than its way's queue comes from one
//! way alone, and no faster than memory answers.
//! `cargo xtask fpga cycles` holds the formula against simulated units.
//!
//! Worked example: 4,000 survivors of W = 32 with keys of 16 bytes, values of 1,024 and nothing shared. The encoder takes one
//! cycle for lengths and key and 32 for the value, 132,000 in all; the weigher 32 rounds and two more for the value's last 32
//! bytes, 136,000 in all, and so much is charged.

use crate::stream::BEAT;

/// Bytes that the weigher takes in a round, which is a cycle of one of its engines.
const ROUND: usize = 32;
/// Bytes of a block's last word, which counts its restart points.
const FOOTER: usize = 4;

/// What things cost in cycles. One cycle is a beat of W bytes at each stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cost {
    width: usize,
}

impl Cost {
    /// From the command to the first entry, and from the last one to the status record, besides the tables: over a
    /// memory that answers after 100 cycles.
    pub const FIXED: u64 = 1_030;

    /// Of a unit whose beats have `width` bytes.
    pub fn new(width: usize) -> Cost {
        Cost { width: width.max(16) }
    }

    /// Cycles to read header and tables of so many bytes. Memory beats have 64 bytes whatever W is.
    pub fn tables(bytes: usize) -> u64 {
        bytes.div_ceil(64) as u64
    }

    /// Cycles to take an entry apart up to its value, whose key has so many bytes in common with the one before: its key is written
    /// row by row.
    pub fn key_decoded(self, shared: usize, unshared: usize) -> u64 {
        2 + self.touched(shared, unshared).max(1)
    }

    /// Cycles to encode a survivor whose lengths take `lengths` bytes. What of the key's first row fits behind them goes with them.
    pub fn kept(self, lengths: usize, shared: usize, unshared: usize, value: usize) -> u64 {
        let lead = self.lead(lengths, shared, unshared);
        1 + self.touched(shared + lead, unshared - lead) + self.rows(value)
    }

    /// Cycles to let an entry go.
    pub fn dropped(self, value: usize) -> u64 {
        if value == 0 { 0 } else { 1 + self.rows(value) }
    }

    /// Cycles to end a block with so many restart points.
    pub fn block(self, restarts: usize) -> u64 {
        restarts as u64 + 1
    }

    /// Cycles for which the bytes behind a block wait: its payload had so many, tail included, and the next block begins with an entry that
    /// shares nothing. Words of W bytes become beats of 64, and a beat is let go when it is known whether it is the last: so the
    /// last one takes a cycle more, and another if it is not full, while the next word is put together. A footer across two words takes
    /// the packer a cycle, too.
    pub fn turned(self, payload: usize, lengths: usize, unshared: usize, value: usize) -> u64 {
        let footer = u64::from((payload - FOOTER) % self.width + FOOTER > self.width);
        let words = payload.div_ceil(self.width);
        let last = 1 + u64::from(!words.is_multiple_of(BEAT.div_ceil(self.width)));
        // Pieces until the next word is whole: lengths and key, then a row of the key or of the value.
        let lead = self.lead(lengths, 0, unshared);
        let row = if unshared > lead { self.width - lead } else { self.width };
        let second = row.min(if unshared > lead { unshared - lead } else { value });
        let pieces = match lengths + lead {
            one if one == self.width => 1,
            one if one + second >= self.width => 2,
            _ => 3,
        };
        footer + (1 + last).saturating_sub(pieces)
    }

    /// Bytes of a key that go with its lengths.
    fn lead(self, lengths: usize, shared: usize, unshared: usize) -> usize {
        (self.width - shared % self.width).min(self.width - lengths).min(unshared)
    }

    /// Rounds to weigh an entry with a value of so many bytes: 16 bytes from each end at a time, then 32 and a tail of 32, then stripes of 128 before those.
    pub fn rounds(self, value: usize) -> u64 {
        (match value {
            0..=32 => 1,
            33..=64 => 2,
            65..=128 => 4,
            129..=255 => value / ROUND + 2,
            _ => value / 128 * 4 + value % 128 / ROUND + 2,
        }) as u64
    }

    /// Cycles to hash a user key of so many bytes: pairs of 8 bytes, 16 bytes a cycle, and once more the time of a product where one needs the other.
    pub fn hashed(self, key: usize) -> u64 {
        const PRODUCT: usize = 9;
        (match key {
            4..=8 => 3 + PRODUCT,
            0..=16 => 2,
            17..=32 => 3,
            33..=64 => 5,
            65..=96 => 7,
            97..=128 => 9,
            _ => 2 + key / 16 + PRODUCT,
        }) as u64
    }

    /// Engines that weigh: one for each 32 bytes of W, and at least one.
    pub fn engines(self) -> u64 {
        self.width.div_ceil(ROUND) as u64
    }

    /// Beats of so many bytes of a value.
    pub fn rows(self, bytes: usize) -> u64 {
        bytes.div_ceil(self.width) as u64
    }

    /// Rows of W bytes that `bytes` from `at` on lie in.
    fn touched(self, at: usize, bytes: usize) -> u64 {
        if bytes == 0 {
            return 0;
        }
        ((at + bytes).div_ceil(self.width) - at / self.width) as u64
    }
}
