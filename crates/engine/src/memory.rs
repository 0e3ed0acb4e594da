//! The memory that an engine has on the host: one counter of all its buffers, from the one that a set is staged
//! in to the one whose blocks are handed out.
//!
//! Keeps: a buffer counts with its capacity from before it is filled until it is dropped, wherever it is meanwhile:
//! at a session, in a slot, in a queue of the device, even of a set that was given up, or at the host's job.
//! Leaves to others: how many there may be. Copies of the open block, two of a session at most, are
//! not counted, nor are keys and filter hashes, which belong to the host's half of each engine.

use lithify_env::sync::Arc;
use lithify_env::sync::atomic::{AtomicU64, Ordering};
use lithify_merge::products::Lent;

/// Bytes of all buffers of an engine.
#[derive(Debug, Default)]
pub struct EngineMemory {
    now: AtomicU64,
    most: AtomicU64,
}

impl EngineMemory {
    /// How many there are now.
    pub fn now(&self) -> u64 {
        self.now.load(Ordering::Relaxed)
    }
    /// The most that there were at once.
    pub fn most(&self) -> u64 {
        self.most.load(Ordering::Relaxed)
    }
    /// Counts so many bytes until the value is dropped.
    pub fn hold(self: &Arc<EngineMemory>, bytes: usize) -> MemoryShare {
        let mut held = MemoryShare { of: Some(self.clone()), bytes: 0 };
        held.set(bytes);
        held
    }
}

/// Bytes that count until it is dropped.
#[derive(Debug, Default)]
pub struct MemoryShare {
    of: Option<Arc<EngineMemory>>,
    bytes: u64,
}

impl MemoryShare {
    /// Whether it counts anything.
    pub fn is_counted(&self) -> bool {
        self.of.is_some()
    }
    /// Counts so many bytes instead.
    pub fn set(&mut self, bytes: usize) {
        let before = std::mem::replace(&mut self.bytes, bytes as u64);
        let Some(of) = &self.of else { return };
        let now = of.now.fetch_add(self.bytes, Ordering::Relaxed) + self.bytes;
        of.now.fetch_sub(before, Ordering::Relaxed);
        of.most.fetch_max(now - before, Ordering::Relaxed);
    }
}

impl Drop for MemoryShare {
    fn drop(&mut self) {
        self.set(0);
    }
}

/// Blocks that are handed out, and count until the host gives them back.
pub struct LentMemory {
    blocks: Box<dyn Lent>,
    #[expect(dead_code, reason = "counts until it is dropped")]
    held: MemoryShare,
}

impl LentMemory {
    /// `blocks`, counted by `held`.
    pub fn new(blocks: Box<dyn Lent>, held: MemoryShare) -> LentMemory {
        LentMemory { blocks, held }
    }
}

impl Lent for LentMemory {
    fn bytes(&self) -> &[u8] {
        self.blocks.bytes()
    }
    fn bytes_mut(&mut self) -> &mut [u8] {
        self.blocks.bytes_mut()
    }
}
