//! The memory that an engine has on the host: one counter of all its buffers, from the one that a set is staged
//! in to the one whose blocks are handed out.
//!
//! Keeps: a buffer counts with its capacity from before it is filled until it is dropped, wherever it is meanwhile:
//! at a session, in a slot, in a queue of the card, even of a set that was given up, or at the host's job.
//! Leaves to others: how many there are (`sched`). Copies of the open block, two of a session at most, are
//! not counted, nor are keys and filter hashes, which belong to the host's half of each engine.

use lithify_env::sync::Arc;
use lithify_env::sync::atomic::{AtomicU64, Ordering};
use lithify_merge::products::Lent;

/// Bytes of all buffers of an engine.
#[derive(Debug, Default)]
pub(crate) struct HostBytes {
    now: AtomicU64,
    most: AtomicU64,
}

impl HostBytes {
    /// How many there are now.
    pub(crate) fn now(&self) -> u64 {
        self.now.load(Ordering::Relaxed)
    }
    /// The most that there were at once.
    pub(crate) fn most(&self) -> u64 {
        self.most.load(Ordering::Relaxed)
    }
    /// Counts so many bytes until the value is dropped.
    pub(crate) fn hold(self: &Arc<HostBytes>, bytes: usize) -> Held {
        let mut held = Held { of: Some(self.clone()), bytes: 0 };
        held.set(bytes);
        held
    }
    /// Counts a buffer.
    pub(crate) fn buffer(self: &Arc<HostBytes>, bytes: Vec<u8>) -> Buffer {
        let held = self.hold(bytes.capacity());
        Buffer { bytes, held }
    }
}

/// Bytes that count until it is dropped.
#[derive(Debug, Default)]
pub(crate) struct Held {
    of: Option<Arc<HostBytes>>,
    bytes: u64,
}

impl Held {
    /// Counts so many instead.
    fn set(&mut self, bytes: usize) {
        let before = std::mem::replace(&mut self.bytes, bytes as u64);
        let Some(of) = &self.of else { return };
        let now = of.now.fetch_add(self.bytes, Ordering::Relaxed) + self.bytes;
        of.now.fetch_sub(before, Ordering::Relaxed);
        of.most.fetch_max(now - before, Ordering::Relaxed);
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.set(0);
    }
}

/// A buffer that counts.
#[derive(Debug, Default)]
pub(crate) struct Buffer {
    bytes: Vec<u8>,
    held: Held,
}

impl Buffer {
    /// Its bytes.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
    /// Whether it counts.
    pub(crate) fn is_counted(&self) -> bool {
        self.held.of.is_some()
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
    pub(crate) fn part(self) -> (Vec<u8>, Held) {
        (self.bytes, self.held)
    }
    /// Bytes that a transfer has brought back.
    pub(crate) fn back(bytes: Vec<u8>, held: Held) -> Buffer {
        let mut buffer = Buffer { bytes, held };
        buffer.count();
        buffer
    }
}

/// Blocks that are handed out, and count until the host gives them back.
pub(crate) struct HandedOut {
    blocks: Box<dyn Lent>,
    #[expect(dead_code, reason = "counts until it is dropped")]
    held: Held,
}

impl HandedOut {
    /// `blocks`, counted by `held` from now on.
    pub(crate) fn new(blocks: Box<dyn Lent>, mut held: Held) -> HandedOut {
        held.set(blocks.bytes().len());
        HandedOut { blocks, held }
    }
}

impl Lent for HandedOut {
    fn bytes(&self) -> &[u8] {
        self.blocks.bytes()
    }
    fn bytes_mut(&mut self) -> &mut [u8] {
        self.blocks.bytes_mut()
    }
}
