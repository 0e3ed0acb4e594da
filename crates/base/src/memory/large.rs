//! Bytes that grow: in a `Vec` while they are few, and then in a mapping of their own.

use std::ops::{Deref, DerefMut};

use memmap2::MmapMut;

use super::LARGE;

/// Owned bytes that grow at their end. From 64 KiB on they lie in an anonymous mapping, of which pages take memory
/// once they are written; so it grows by doubling, and dropping it gives all of it back.
#[derive(Debug, Default)]
pub struct LargeBytes {
    /// All bytes while there is no mapping, and empty from then on.
    few: Vec<u8>,
    many: Option<MmapMut>,
    /// How many of the mapping's bytes are held.
    len: usize,
}

impl LargeBytes {
    /// No bytes, and no memory.
    pub const fn new() -> LargeBytes {
        LargeBytes { few: Vec::new(), many: None, len: 0 }
    }

    /// Bytes held.
    #[inline]
    pub fn len(&self) -> usize {
        if self.many.is_some() { self.len } else { self.few.len() }
    }

    /// True if there are none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Appends bytes.
    #[inline]
    pub fn extend_from_slice(&mut self, bytes: &[u8]) {
        let at = self.len();
        self.lengthen(at + bytes.len());
        self[at..].copy_from_slice(bytes);
    }

    /// Has at least `len` bytes be held. Those that are new are zero, or what lay there before [`clear`](LargeBytes::clear).
    #[inline]
    pub fn lengthen(&mut self, len: usize) {
        if len <= self.len() {
            return;
        }
        match &self.many {
            Some(map) if len <= map.len() => self.len = len,
            None if len < LARGE => {
                if len > self.few.capacity() {
                    let room = len.max(2 * self.few.capacity()).min(LARGE - 1);
                    self.few.reserve_exact(room - self.few.len());
                }
                self.few.resize(len, 0);
            }
            _ => self.move_to(len),
        }
    }

    /// Holds none any more, and keeps the memory.
    pub fn clear(&mut self) {
        self.few.clear();
        self.len = 0;
    }

    /// Moves to a mapping with room for `len` bytes, and holds so many.
    #[cold]
    fn move_to(&mut self, len: usize) {
        let room = len.max(2 * self.len()).next_multiple_of(LARGE);
        match MmapMut::map_anon(room) {
            Ok(mut map) => {
                map[..self.len()].copy_from_slice(self);
                *self = LargeBytes { few: Vec::new(), many: Some(map), len };
            }
            // Without a mapping the allocator may have memory still; if not, it ends the process as for any list.
            Err(_) => {
                let mut few = Vec::with_capacity(room);
                few.extend_from_slice(self);
                few.resize(len, 0);
                *self = LargeBytes { few, many: None, len: 0 };
            }
        }
    }
}

impl Deref for LargeBytes {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match &self.many {
            Some(map) => &map[..self.len],
            None => &self.few,
        }
    }
}

impl DerefMut for LargeBytes {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        match &mut self.many {
            Some(map) => &mut map[..self.len],
            None => &mut self.few,
        }
    }
}

impl From<&[u8]> for LargeBytes {
    fn from(bytes: &[u8]) -> LargeBytes {
        let mut copy = LargeBytes::new();
        copy.extend_from_slice(bytes);
        copy
    }
}

impl Clone for LargeBytes {
    fn clone(&self) -> LargeBytes {
        LargeBytes::from(&self[..])
    }
}

impl PartialEq for LargeBytes {
    fn eq(&self, other: &LargeBytes) -> bool {
        self[..] == other[..]
    }
}

impl Eq for LargeBytes {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_are_what_a_vec_would_be_across_the_move_to_a_mapping() {
        let (mut ours, mut plain) = (LargeBytes::new(), Vec::new());
        for n in 0..3000_usize {
            let more: Vec<u8> = (0..n % 97).map(|i| (n + i) as u8).collect();
            ours.extend_from_slice(&more);
            ours.extend_from_slice(&[n as u8]);
            plain.extend_from_slice(&more);
            plain.push(n as u8);
            assert_eq!(ours.len(), plain.len());
        }
        assert!(ours.many.is_some() && ours[..] == plain[..]);
        assert_eq!(ours.clone(), ours);
    }

    #[test]
    fn new_bytes_are_zero_and_used_memory_is_used_again() {
        for len in [1, LARGE - 1, LARGE, 3 * LARGE + 1] {
            let mut bytes = LargeBytes::new();
            bytes.lengthen(len);
            assert!(bytes.len() == len && bytes.iter().all(|byte| *byte == 0), "{len}");
            bytes.fill(7);
            bytes.lengthen(1);
            assert_eq!(bytes.len(), len, "lengthening never shortens");
            bytes.clear();
            assert!(bytes.is_empty());
            let room = bytes.many.as_ref().map(|map| map.as_ptr());
            bytes.lengthen(len);
            assert_eq!((bytes.len(), bytes.many.as_ref().map(|map| map.as_ptr())), (len, room));
        }
    }

    #[test]
    fn bytes_from_64_kib_on_lie_in_a_mapping_of_their_own() {
        let mut bytes = LargeBytes::from(&[1; LARGE - 1][..]);
        assert!(bytes.many.is_none());
        bytes.extend_from_slice(&[2]);
        assert!(bytes.many.is_some() && bytes.few.capacity() == 0 && bytes[LARGE - 1] == 2);
    }
}
