//! The conditions under which a policy stacks data over a locked way, each with the figures that
//! broke it. Where they are checked is `steps::stacking`.

use std::fmt;

use lithify_base::Level;
use lithify_lsm::picture::readable;

use crate::nouns::score::Score;

/// Why data is not stacked although its usual way is blocked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Guard {
    /// G1: no writer waits for it.
    Calm {
        /// The need of the level.
        need: Score,
    },
    /// G3: the next level has as many extra bytes as it may.
    ExtraBytes {
        /// The next level.
        level: Level,
        /// Bytes there and promised.
        bytes: u64,
        /// The bound.
        max: u64,
    },
    /// G3: as many runs of the next level cover a key as may.
    Depth {
        /// The next level.
        level: Level,
        /// Runs with the new one.
        depth: u32,
        /// The bound.
        max: u32,
    },
    /// G4: reads of the range would look at too many runs.
    ReadAmp {
        /// Runs of all levels with the new one.
        depth: u32,
        /// The bound.
        max: u32,
    },
    /// G5: the disk may not have room for everything in flight.
    Disk {
        /// Bytes promised.
        promised: u64,
        /// Bytes free.
        free: u64,
    },
    /// It brings fewer bytes down than those that it moves cost now.
    Price {
        /// Bytes that come one level down per byte moved.
        worth: Score,
        /// The least that is worth it.
        price: Score,
    },
    /// More of level 0 is gathered first: a byte more costs less than one has cost so far.
    Lot {
        /// Bytes moved per byte gathered.
        so_far: Score,
        /// The same for the next one.
        next: Score,
    },
    /// G6: too many jobs, or too many bytes, wait to commit already.
    Waiting {
        /// Built jobs that wait.
        jobs: u32,
        /// Their bytes.
        bytes: u64,
    },
}

impl fmt::Display for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Guard::Calm { need } => write!(f, "G1: no pressure, need {need}"),
            Guard::ExtraBytes { level, bytes, max } => {
                let (bytes, max) = (readable(*bytes), readable(*max));
                write!(f, "G3: L{level} has {bytes} of extra runs, at most {max}")
            }
            Guard::Depth { level, depth, max } => {
                write!(f, "G3: {depth} runs of L{level} would cover a key, at most {max}")
            }
            Guard::ReadAmp { depth, max } => {
                write!(f, "G4: {depth} runs would cover a key, at most {max}")
            }
            Guard::Disk { promised, free } => {
                let (promised, free) = (readable(*promised), readable(*free));
                write!(f, "G5: {promised} promised, {free} free")
            }
            Guard::Price { worth, price } => {
                write!(
                    f,
                    "each byte it moves takes {worth} bytes a level down, the price is {price}"
                )
            }
            Guard::Lot { so_far, next } => write!(
                f,
                "more is gathered first: a byte more costs {next}, one so far has cost {so_far}"
            ),
            Guard::Waiting { jobs, bytes } => {
                write!(f, "G6: {jobs} built jobs with {} wait", readable(*bytes))
            }
        }
    }
}
