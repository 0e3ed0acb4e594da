//! Buffers of a card on the host, which count among the memory of the engine.
//!
//! Keeps: a buffer counts with its capacity, also while a transfer has its bytes.
//! Leaves to others: how many there are (`sched`).

use lithify_engine::memory::{EngineMemory, MemoryShare};
use lithify_env::sync::Arc;

/// A buffer that counts.
#[derive(Debug, Default)]
pub(crate) struct Buffer {
    bytes: Vec<u8>,
    held: MemoryShare,
}

impl Buffer {
    /// Counts a buffer.
    pub(crate) fn new(of: &Arc<EngineMemory>, bytes: Vec<u8>) -> Buffer {
        let held = of.hold(bytes.capacity());
        Buffer { bytes, held }
    }
    /// Its bytes.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
    /// Whether it counts.
    pub(crate) fn is_counted(&self) -> bool {
        self.held.is_counted()
    }
    /// Its bytes, to be filled; [`count`](Buffer::count) follows.
    pub(crate) fn filled(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }
    /// Counts what it has become.
    pub(crate) fn count(&mut self) {
        self.held.set(self.bytes.capacity());
    }
    /// Its bytes for a transfer, and what counts them until they come back.
    pub(crate) fn part(self) -> (Vec<u8>, MemoryShare) {
        (self.bytes, self.held)
    }
    /// Bytes that a transfer has brought back.
    pub(crate) fn back(bytes: Vec<u8>, held: MemoryShare) -> Buffer {
        let mut buffer = Buffer { bytes, held };
        buffer.count();
        buffer
    }
}
