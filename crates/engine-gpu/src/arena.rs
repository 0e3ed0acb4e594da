//! Memory of the host that a GPU copies from and to: owned by one value, whatever it came from.
//!
//! Keeps: nothing shows the bytes while a copy may read or write them; that is its owner's matter (`card`), as
//! only the owner knows of copies.
//! Leaves to others: where the memory comes from, and giving it back (`Driver::pin`, `Driver::unpin`).

use std::ptr::NonNull;

/// A stretch of memory, for as long as it is not given back. Dropping it leaks it.
#[derive(Debug)]
pub struct Pinned {
    at: NonNull<u8>,
    len: usize,
}

// SAFETY: it owns its bytes, as a `Box<[u8]>` does.
unsafe impl Send for Pinned {}
// SAFETY: a shared one gives shared bytes only.
unsafe impl Sync for Pinned {}

impl Pinned {
    /// Takes memory that is there until it is given back.
    pub fn new(bytes: &'static mut [u8]) -> Pinned {
        Pinned { at: NonNull::from(&mut *bytes).cast(), len: bytes.len() }
    }
    /// Its length in bytes.
    pub fn size(&self) -> usize {
        self.len
    }
    /// Where it begins: for copies.
    pub fn at(&self) -> NonNull<u8> {
        self.at
    }
    /// All of it.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: `new` took these bytes for good, and no one else has them; the owner of this value asks only
        // while no copy is under way.
        unsafe { std::slice::from_raw_parts(self.at.as_ptr(), self.len) }
    }
    /// All of it, to be changed.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and it is borrowed for writing.
        unsafe { std::slice::from_raw_parts_mut(self.at.as_ptr(), self.len) }
    }
}

/// The other end of an arena, for a driver that tests play: it copies late, as a GPU does.
///
/// It is sound for as long as the arena's owner does what `card` is tested for: shows no bytes while a copy is
/// under way. On one thread.
#[cfg(feature = "testing")]
#[derive(Clone, Debug)]
pub struct FarEnd {
    at: NonNull<u8>,
    len: usize,
}

// SAFETY: it is used on one thread at a time, by tests.
#[cfg(feature = "testing")]
unsafe impl Send for FarEnd {}

#[cfg(feature = "testing")]
impl FarEnd {
    /// Of an arena.
    pub fn new(of: &Pinned) -> FarEnd {
        FarEnd { at: of.at, len: of.len }
    }
    /// What a part of it holds now; nothing where it ends before.
    pub fn read(&self, part: std::ops::Range<usize>) -> Vec<u8> {
        // SAFETY: a played driver leaks what it hands out, so the bytes are there.
        let all = unsafe { std::slice::from_raw_parts(self.at.as_ptr(), self.len) };
        all.get(part).unwrap_or_default().to_vec()
    }
    /// Writes from a place on, as far as there is room.
    pub fn write(&mut self, at: usize, bytes: &[u8]) {
        let n = bytes.len().min(self.len.saturating_sub(at));
        let from = bytes.as_ptr();
        // SAFETY: as above; `n` bytes from `at` on lie inside.
        unsafe { std::ptr::copy_nonoverlapping(from, self.at.as_ptr().add(at.min(self.len)), n) };
    }
}
