//! Slots, and the set in each of them.

use std::collections::BTreeMap;

use lithify_base::Error;

use crate::control::Sample;
use crate::memory::Buffer;
use crate::returned::{Output, Tail};
use crate::stream::{BEAT, Code, beats};

/// Sizes of a slot, on the card and of its buffers on the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SlotSize {
    /// Bytes of the input part.
    pub(crate) input: usize,
    /// Bytes of the output part.
    pub(crate) output: usize,
}

impl SlotSize {
    /// For sets of so many stored bytes.
    pub(crate) const fn of(set_bytes: u64) -> SlotSize {
        let set = set_bytes as usize;
        SlotSize { input: beats(2 * set), output: beats(2 * set + set / 2 + OUTPUT_MORE) }
    }
    /// Both parts.
    pub(crate) const fn bytes(self) -> usize {
        self.input + self.output
    }
}

/// What an output part has besides two and a half sets.
const OUTPUT_MORE: usize = 64 << 10;

/// Both parts are whole beats, and a slot has four and a half sets and that.
const _: () = {
    let slot = SlotSize::of(4 << 20);
    assert!(OUTPUT_MORE.is_multiple_of(BEAT));
    assert!(slot.bytes() == 9 * (2 << 20) + OUTPUT_MORE);
    // Two units with three slots each: the memory that the page of this room promises.
    assert!(6 * slot.bytes() <= 110 << 20);
};

/// Which slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SlotNo(pub(super) usize);

/// A slot while a session holds it: worth nothing once it is given back, though the slot has a next holder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hold {
    pub(super) slot: SlotNo,
    pub(super) no: u64,
}

/// Why a set has no output.
#[derive(Clone, Debug)]
pub(crate) enum Trouble {
    /// The unit's code for it.
    Code(Code),
    /// What came back is damaged, or the link is.
    Damaged(Error),
    /// Something did not come in time.
    Hung,
    /// The card gets no more work.
    Quarantined,
}

/// A set's output, its payloads checked.
#[derive(Debug)]
pub(crate) struct Ended {
    /// Status and records.
    pub(crate) output: Output,
    /// All payloads but the open one, as they lie in the slot.
    pub(crate) payloads: Buffer,
    /// The open payload, with its pad.
    pub(crate) open: Buffer,
}

/// What a transfer brings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cargo {
    Areas,
    Head,
    Ending,
    Records,
    Open,
    Payloads,
}

/// Where a set is.
#[derive(Debug)]
pub(super) enum Stage {
    /// Its entry areas are on their way, or there.
    Loaded,
    /// Header and side way are on their way.
    Heading,
    /// It waits for a unit.
    Queued,
    /// A unit has its command.
    Running { unit: usize },
    /// The unit is done; the last records are on their way.
    Returning,
    /// The open block and, behind it, records and finished blocks are on their way. Once the open block is here the carry
    /// is as good as known.
    Fetching(Box<Tail>),
    /// All is here, or lost.
    Ended,
}

/// One set on the card.
#[derive(Debug)]
pub(super) struct Work {
    pub(super) stage: Stage,
    pub(super) tag: u64,
    /// Transfers under way, by their ids.
    pub(super) under_way: BTreeMap<u64, Cargo>,
    /// Missed if nothing happens until then, in card time.
    pub(super) deadline: u64,
    /// Cycles that it is expected to take.
    pub(super) predicted: u64,
    pub(super) in_bytes: usize,
    pub(super) ending: Buffer,
    pub(super) records: Buffer,
    pub(super) open: Buffer,
    pub(super) payloads: Buffer,
    pub(super) ended: Option<Result<Output, Trouble>>,
    /// What `control` will learn of it, as far as it is known.
    pub(super) sample: Sample,
    /// In computed card time: when its input is there, and when its open block is back.
    pub(super) ready_at: f64,
    pub(super) known_at: f64,
    /// When all of its output was.
    pub(super) back_at: f64,
}

impl Work {
    /// The card is to do something for it.
    pub(super) fn waits(&self) -> bool {
        matches!(self.stage, Stage::Running { .. }) || !self.under_way.is_empty()
    }
}

#[derive(Debug, Default)]
pub(super) struct Slot {
    /// Where it is in the card's memory.
    pub(super) at: u64,
    pub(super) owner: Option<u64>,
    /// The number of that hold.
    pub(super) hold: u64,
    pub(super) work: Option<Work>,
    /// The host's buffer for entry areas, while no transfer has it.
    pub(super) areas: Buffer,
    /// When it was given back, in computed card time.
    pub(super) free_at: f64,
}
