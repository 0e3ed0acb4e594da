//! When a unit gets to each entry, if its ways have to be filled first and wait for room later.
//!
//! All ways are read over one port, burst by burst in turn, so each gets its share only, and an entry may be wanted before it
//! has come. That shows with values that are longer than a burst, and where a unit takes nearly as much as the port brings: then
//! queues take most of a set to fill. A burst is asked for when the one two before it has been taken apart, and a way waits
//! until values of its own have been taken.
//!
//! Keeps: times are cycles since the first entries have come, and never go back.
//! Leaves to others: what a step costs (`cost`), which entry comes next (`set`).
//!
//! Worked example: eight ways of W = 32, values of 4,096 bytes. A round of bursts takes 8 x 32 = 256 cycles, so the second entry of
//! a way has come after two more rounds, 512 cycles. If the first three entries are of one way, the encoder, which needs 130 cycles
//! for each, waits for the third until 1,024.

use std::collections::VecDeque;

/// Bytes of a burst, and cycles that it takes on the port.
const BURST: u64 = 2048;
const BURST_CYCLES: u64 = 32;
/// Words of W bytes that the queue of a way's values has, and bytes of the one before its decoder.
const VALUE_WORDS: u64 = 512;
const WORDS_BYTES: u64 = 4096;
/// The burst two before one has to be taken apart, or it has no room.
const _: () = assert!(WORDS_BYTES == 2 * BURST);

/// Of one way.
#[derive(Debug, Default)]
pub(super) struct WayPace {
    /// Cycles in which each way gets a burst.
    round: u64,
    /// The last burst that was looked at, when it came, and when the one before it had been taken apart.
    burst: u64,
    came: u64,
    left: u64,
    /// Bytes taken apart.
    bytes: u64,
    /// When the last entry had been taken apart, and when its key had.
    decoded: u64,
    key: u64,
    /// Words of the values that were taken last, and when; `words` of them together.
    taken: VecDeque<(u64, u64)>,
    words: u64,
}

impl WayPace {
    /// One of so many ways that have entries.
    pub(super) fn new(ways: usize) -> WayPace {
        WayPace { round: BURST_CYCLES * ways as u64, ..WayPace::default() }
    }

    /// The next entry of `bytes` is taken apart in so many cycles, and its value in so many more.
    pub(super) fn parsed(&mut self, bytes: usize, key_cycles: u64, value_cycles: u64) {
        self.key = self.decoded.max(self.came()) + key_cycles;
        self.bytes += bytes as u64;
        self.decoded = self.key + value_cycles;
    }

    /// The entry's value of so many words was taken at that cycle.
    pub(super) fn took(&mut self, words: u64, at: u64) {
        self.decoded = self.decoded.max(self.came());
        self.taken.push_back((words, at));
        self.words += words;
        while self.words > VALUE_WORDS
            && let Some((words, at)) = self.taken.pop_front()
        {
            self.words -= words;
            // Of a value that is longer than the queue the end is still inside.
            let there = if self.taken.is_empty() { at.saturating_sub(VALUE_WORDS) } else { at };
            self.decoded = self.decoded.max(there);
        }
    }

    /// When the key of the entry that waits was there.
    pub(super) fn key(&self) -> u64 {
        self.key
    }
    /// When all so far had been taken apart.
    pub(super) fn decoded(&self) -> u64 {
        self.decoded
    }

    /// When what comes next has come.
    fn came(&mut self) -> u64 {
        while self.burst < self.bytes / BURST {
            self.burst += 1;
            self.came = (self.came + self.round).max(self.left);
            self.left = self.decoded;
        }
        self.came
    }
}

/// Of what all ways share: encoder and weigher take entries in one order.
#[derive(Debug, Default)]
pub(super) struct Pace {
    /// When the encoder had put out what was taken, and the weigher had weighed it, in units of `parts` to a cycle.
    encoded: u64,
    weighed: u64,
    parts: u64,
}

impl Pace {
    /// With so many engines to weigh.
    pub(super) fn new(engines: u64) -> Pace {
        Pace { parts: engines.max(1), ..Pace::default() }
    }

    /// An entry whose key was there at `key` is taken: in so many cycles by the encoder, rounds by the weigher. When that is over.
    pub(super) fn take(&mut self, key: u64, cycles: u64, rounds: u64) -> u64 {
        self.encoded = self.encoded.max(key) + cycles;
        self.weighed = self.weighed.max(key * self.parts) + rounds;
        self.over()
    }

    /// When all that was taken is through.
    pub(super) fn over(&self) -> u64 {
        self.encoded.max(self.weighed.div_ceil(self.parts))
    }
}
