//! Byte buffers that direct IO can take as they are.
//!
//! [`IoBuf`] appends like a `Vec<u8>`, and its first byte is always aligned to 4 KiB (to 2 MiB
//! and on huge pages from that size on), so a block builder's output needs no copy on its way to
//! the disk. [`BufPool`] recycles buffers, because the first touch of fresh memory costs more
//! than filling it.
//!
//! ```
//! use lithify_env::BufPool;
//!
//! let pool = BufPool::new(64 << 20);
//! let mut buf = pool.get(8192);
//! buf.extend_from_slice(b"a block");
//! let pad = buf.pad_to(4096);       // a direct file takes whole blocks only
//! assert_eq!((buf.len(), pad), (4096, 4089));
//! assert_eq!(pool.in_use(), 8192);
//! drop(buf);
//! assert_eq!((pool.in_use(), pool.idle()), (0, 8192));
//! ```

use std::fmt;
use std::ops::{Deref, DerefMut};

use crate::os::pages::{self, Pages};
use crate::pool::{OutOfMemory, PagePool};
use crate::sync::Arc;

/// An owned, growable, page-aligned byte buffer.
pub struct IoBuf {
    pages: Pages,
    len: usize,
    pool: Option<Arc<PagePool>>,
}

impl IoBuf {
    /// An empty buffer without memory.
    pub const fn new() -> Self {
        Self { pages: Pages::empty(), len: 0, pool: None }
    }

    /// An empty buffer for at least `capacity` bytes, outside any pool.
    ///
    /// # Panics
    /// If the system has no memory; see [`IoBuf::try_with_capacity`].
    pub fn with_capacity(capacity: usize) -> Self {
        Self::try_with_capacity(capacity).unwrap_or_else(|error| panic!("{error}"))
    }

    /// The same, with an error where there is no memory.
    pub fn try_with_capacity(capacity: usize) -> Result<Self, OutOfMemory> {
        let mut buf = Self::new();
        buf.try_reserve(capacity)?;
        Ok(buf)
    }

    /// An empty buffer in memory that `owner` lends, of which it has the whole pages. When the buffer is dropped, or
    /// moves to more memory, the owner is. `owner` is asked for its bytes once.
    pub fn lent(owner: Box<impl AsMut<[u8]> + Send + 'static>) -> Self {
        Self { pages: Pages::lent(owner), len: 0, pool: None }
    }

    /// Bytes it can hold before it moves to more memory.
    #[inline]
    pub fn capacity(&self) -> usize {
        self.pages.len()
    }

    /// The bytes held.
    #[inline]
    pub fn as_slice(&self) -> &[u8] {
        &self.pages.as_slice()[..self.len]
    }

    /// The bytes held, to be changed.
    #[inline]
    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        &mut self.pages.as_mut_slice()[..self.len]
    }

    /// The memory behind the bytes held: written first, then taken in with [`IoBuf::set_len`].
    #[inline]
    pub fn spare_mut(&mut self) -> &mut [u8] {
        &mut self.pages.as_mut_slice()[self.len..]
    }

    /// Appends `bytes`, growing if needed.
    ///
    /// # Panics
    /// If it must grow and the system has no memory; [`IoBuf::try_reserve`] before avoids that.
    #[inline]
    pub fn extend_from_slice(&mut self, bytes: &[u8]) {
        self.reserve(bytes.len());
        let end = self.len + bytes.len();
        self.pages.as_mut_slice()[self.len..end].copy_from_slice(bytes);
        self.len = end;
    }

    /// Appends zeros up to the next multiple of `alignment` and returns how many.
    ///
    /// # Panics
    /// As [`IoBuf::extend_from_slice`], and for an alignment of 0.
    pub fn pad_to(&mut self, alignment: usize) -> usize {
        let end = self.len.next_multiple_of(alignment);
        let pad = end - self.len;
        self.reserve(pad);
        self.pages.as_mut_slice()[self.len..end].fill(0);
        self.len = end;
        pad
    }

    /// Cuts its memory, from the first byte, into parts of these lengths, which several threads may fill at once. It is
    /// [back](Parted::whole) once all of them are dropped.
    ///
    /// # Panics
    /// If they are longer than the capacity together.
    pub fn parts(self, lens: &[usize]) -> (Parted, Vec<BufPart>) {
        let (whole, parts) = pages::parts(self, |buf| &buf.pages, lens);
        (Parted(whole), parts.into_iter().map(BufPart).collect())
    }

    /// Keeps the first `len` bytes; no effect if there are fewer.
    pub fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }

    /// Drops all bytes and keeps the memory.
    pub fn clear(&mut self) {
        self.len = 0;
    }

    /// Makes the buffer `len` bytes long. Bytes beyond the old length are what was last written
    /// there, by this user or an earlier one of a pool: the caller overwrites them.
    ///
    /// # Panics
    /// If `len` exceeds the capacity.
    pub fn set_len(&mut self, len: usize) {
        assert!(len <= self.capacity(), "length {len} exceeds capacity {}", self.capacity());
        self.len = len;
    }

    /// Makes room for `additional` more bytes.
    ///
    /// # Panics
    /// If the system has no memory.
    #[inline]
    pub fn reserve(&mut self, additional: usize) {
        if additional > self.capacity() - self.len {
            self.try_grow(additional).unwrap_or_else(|error| panic!("{error}"));
        }
    }

    /// Makes room for `additional` more bytes, with an error where there is no memory.
    pub fn try_reserve(&mut self, additional: usize) -> Result<(), OutOfMemory> {
        if additional > self.capacity() - self.len { self.try_grow(additional) } else { Ok(()) }
    }

    /// Moves to at least twice the memory, so that appending costs constant time on average.
    #[cold]
    fn try_grow(&mut self, additional: usize) -> Result<(), OutOfMemory> {
        let needed = self.len.saturating_add(additional);
        let bytes = needed.max(self.capacity().saturating_mul(2));
        let mut larger = match &self.pool {
            Some(pool) => pool.take(bytes)?,
            None => Pages::zeroed(bytes).ok_or(OutOfMemory { bytes })?,
        };
        larger.as_mut_slice()[..self.len].copy_from_slice(self.as_slice());
        let smaller = std::mem::replace(&mut self.pages, larger);
        if let Some(pool) = &self.pool {
            pool.give(smaller);
        }
        Ok(())
    }
}

/// A buffer whose parts are being filled.
pub struct Parted(pages::Whole<IoBuf>);

impl Parted {
    /// The buffer, as it was but for what the parts were filled with.
    ///
    /// # Errors
    /// Itself, while there are parts.
    pub fn whole(self) -> Result<IoBuf, Parted> {
        self.0.take().map_err(Parted)
    }
}

/// A part of a buffer, filled by one thread while others fill others.
pub struct BufPart(pages::Part<IoBuf>);

impl AsMut<[u8]> for BufPart {
    fn as_mut(&mut self) -> &mut [u8] {
        self.0.as_mut_slice()
    }
}

impl fmt::Debug for Parted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Parted")
    }
}

impl fmt::Debug for BufPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BufPart")
    }
}

impl Drop for IoBuf {
    fn drop(&mut self) {
        if let Some(pool) = &self.pool {
            pool.give(std::mem::replace(&mut self.pages, Pages::empty()));
        }
    }
}

impl Default for IoBuf {
    fn default() -> Self {
        Self::new()
    }
}

impl Deref for IoBuf {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        self.as_slice()
    }
}

impl DerefMut for IoBuf {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        self.as_mut_slice()
    }
}

impl AsRef<[u8]> for IoBuf {
    fn as_ref(&self) -> &[u8] {
        self.as_slice()
    }
}

impl AsMut<[u8]> for IoBuf {
    fn as_mut(&mut self) -> &mut [u8] {
        self.as_mut_slice()
    }
}

impl From<&[u8]> for IoBuf {
    fn from(bytes: &[u8]) -> Self {
        let mut buf = Self::new();
        buf.extend_from_slice(bytes);
        buf
    }
}

impl fmt::Debug for IoBuf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IoBuf")
            .field("len", &self.len)
            .field("capacity", &self.capacity())
            .field("pooled", &self.pool.is_some())
            .finish()
    }
}

/// Recycled buffers; clones share one pool.
#[derive(Clone, Debug)]
pub struct BufPool(Arc<PagePool>);

impl BufPool {
    /// A pool that keeps idle buffers as long as these and those in use fit into `budget` bytes.
    pub fn new(budget: usize) -> Self {
        Self(PagePool::new(budget, false))
    }

    /// An empty buffer for at least `capacity` bytes; its memory returns when it is dropped.
    /// Never waits: users that must stay within the budget look at [`BufPool::in_use`] before.
    ///
    /// # Panics
    /// If the system has no memory; see [`BufPool::try_get`].
    pub fn get(&self, capacity: usize) -> IoBuf {
        self.try_get(capacity).unwrap_or_else(|error| panic!("{error}"))
    }

    /// The same, with an error where there is no memory.
    pub fn try_get(&self, capacity: usize) -> Result<IoBuf, OutOfMemory> {
        Ok(IoBuf { pages: self.0.take(capacity)?, len: 0, pool: Some(Arc::clone(&self.0)) })
    }

    /// Changes the budget; idle buffers beyond it go at once.
    pub fn set_budget(&self, bytes: usize) {
        self.0.set_budget(bytes);
    }

    /// Capacity of the buffers now held by users, in bytes.
    pub fn in_use(&self) -> usize {
        self.0.in_use()
    }

    /// Capacity of the buffers kept for the next user, in bytes.
    pub fn idle(&self) -> usize {
        self.0.idle()
    }

    /// Gives all idle memory back to the system.
    pub fn trim(&self) {
        self.0.trim();
    }
}

#[cfg(test)]
mod tests;
