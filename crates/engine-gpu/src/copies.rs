//! Copies that a queue was asked for and of which the driver does not know yet.
//!
//! A GPU's copy engine stands still between two copies: for 7.6 us on an H100, where a MiB takes 23. Between copies that one call
//! asks for it does not. So the copies of a queue wait here until something else is asked of the queue, and go to the driver in one call.
//! Keeps: what waits together goes one way, and none writes where another one reads or writes: the driver may make such copies in
//! any order. The order of all else is that in which it was asked for.
//! Leaves to others: whether a copy stays inside of its memory, and when an arena is at rest (`card`).

use std::collections::BTreeMap;
use std::ops::Range;

use lithify_merge::Bytes;

use crate::device::Queue;

/// Most copies of one call.
const MOST: usize = 64;

/// A copy that was asked for.
pub(crate) enum Asked {
    /// To the GPU, from a part of an arena.
    Up { arena: u64, part: Range<usize>, to: u64 },
    /// To the GPU, from where bytes were read.
    Sent { bytes: Bytes, to: u64 },
    /// From the GPU, to a part of an arena.
    Down { from: u64, arena: u64, part: Range<usize> },
}

impl Asked {
    pub(crate) fn is_down(&self) -> bool {
        matches!(self, Asked::Down { .. })
    }
    fn len(&self) -> usize {
        match self {
            Asked::Up { part, .. } | Asked::Down { part, .. } => part.len(),
            Asked::Sent { bytes, .. } => bytes.len(),
        }
    }
    /// The arena, if it is about one.
    fn arena(&self) -> Option<u64> {
        match self {
            Asked::Up { arena, .. } | Asked::Down { arena, .. } => Some(*arena),
            Asked::Sent { .. } => None,
        }
    }
    /// Where it writes: an arena, or the GPU.
    fn writes(&self) -> (Option<u64>, Range<u64>) {
        match self {
            Asked::Up { to, .. } | Asked::Sent { to, .. } => {
                (None, *to..to.saturating_add(self.len() as u64))
            }
            Asked::Down { arena, part, .. } => (Some(*arena), part.start as u64..part.end as u64),
        }
    }
    /// Whether both may be made in any order.
    fn goes_with(&self, other: &Asked) -> bool {
        let ((memory, one), (of, two)) = (self.writes(), other.writes());
        let is_apart = memory != of || one.end <= two.start || two.end <= one.start;
        self.is_down() == other.is_down() && is_apart
    }
}

/// Those of all queues.
#[derive(Default)]
pub(crate) struct Waiting(BTreeMap<Queue, Vec<Asked>>);

impl Waiting {
    /// Whether one more may wait with those of its queue.
    pub(crate) fn suits(&self, queue: Queue, one: &Asked) -> bool {
        let of = self.0.get(&queue).map_or(&[][..], Vec::as_slice);
        of.len() < MOST && of.iter().all(|other| other.goes_with(one))
    }
    /// One more waits. A copy of nothing is none.
    pub(crate) fn add(&mut self, queue: Queue, one: Asked) {
        if one.len() > 0 {
            self.0.entry(queue).or_default().push(one);
        }
    }
    /// Those of a queue, to be made.
    pub(crate) fn take(&mut self, queue: Queue) -> Vec<Asked> {
        self.0.remove(&queue).unwrap_or_default()
    }
    /// A queue in which a copy waits; with an arena, one of that.
    pub(crate) fn queue(&self, arena: Option<u64>) -> Option<Queue> {
        let is_of = |asked: &Asked| arena.is_none() || asked.arena() == arena;
        self.0.iter().find(|(_, of)| of.iter().any(is_of)).map(|(queue, _)| *queue)
    }
}
