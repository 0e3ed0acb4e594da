//! Page-aligned memory straight from the system.
//!
//! From 2 MiB on, memory comes as an anonymous mapping aligned to 2 MiB and advised to use huge
//! pages: direct IO from such a buffer costs a fraction of the processor time, because the kernel
//! pins one page instead of 512. What lasts (`Pages::lasting`) has ordinary pages. Pieces from 16 KiB
//! on are mappings as well, so that what is given back goes back: allocators keep large pieces, and
//! aligned ones leave holes. Smaller ones come from the allocator, aligned to 4 KiB.
//!
//! Memory of others (`Pages::lent`) counts as such as well, for as long as it is held.
//!
//! Keeps: every byte is initialised from the start (zero, but for lent memory), so safe code may look at all of it.
//! All `unsafe` code of this crate is in this file, `bytes`, `heap` and `mapped`.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ffi::c_void;
use std::ptr::{self, NonNull};
// The standard library's, also under a model checker: what is laid over memory of the system must be
// a word, and the checkers' atomics are more than that.
use std::sync::atomic::AtomicU32;

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

use crate::sync::Arc;

/// Alignment of all memory, and the unit of small pieces.
pub(crate) const PAGE: usize = 4096;
/// Alignment and unit of large pieces: the huge page of x86-64 and of arm64 with 4 KiB pages.
pub(crate) const HUGE: usize = 2 << 20;
/// Pieces from here on come from the system.
const MAPPED: usize = 16 << 10;
/// Longest piece, with room for its alignment.
const LEN_MAX: usize = isize::MAX as usize + 1 - 2 * HUGE;
const _: () = assert!(HUGE.is_multiple_of(PAGE) && MAPPED <= HUGE);
const _: () = assert!(size_of::<AtomicU32>() == 4);

/// Owned, initialised, page-aligned memory; empty or a multiple of [`PAGE`] long.
#[derive(Debug)]
pub(crate) struct Pages {
    base: NonNull<u8>,
    len: usize,
    /// Whose the memory is, if it is lent.
    owner: Option<Owner>,
}

/// One of the parts that several threads fill at once, side by side in the pages of `T`.
pub(crate) struct Part<T> {
    base: NonNull<u8>,
    len: usize,
    /// Keeps the pages.
    #[expect(dead_code, reason = "is dropped with the part")]
    of: Arc<T>,
}

/// What owns pages whose parts are filled. It is out of reach until all of them are dropped.
pub(crate) struct Whole<T>(Arc<T>);

// SAFETY: each part has bytes that no other has, and nothing else looks at them while there are parts.
unsafe impl<T: Send + Sync> Send for Part<T> {}
// SAFETY: through a shared reference nothing of it can be reached.
unsafe impl<T: Send + Sync> Sync for Part<T> {}

impl<T> Part<T> {
    /// All of it.
    pub(crate) fn as_mut_slice(&mut self) -> &mut [u8] {
        // SAFETY: `parts` took the range out of pages that `of` keeps, whose bytes are initialised; no other part has a byte of
        // it, and `Whole` gives their owner back only when this part is gone.
        unsafe { std::slice::from_raw_parts_mut(self.base.as_ptr(), self.len) }
    }
}

impl<T> Whole<T> {
    /// What owns the pages; or this again, while there are parts.
    pub(crate) fn take(self) -> Result<T, Whole<T>> {
        Arc::try_unwrap(self.0).map_err(Whole)
    }
}

/// Cuts the pages that `of` owns and `pages` tells, from their first byte, into parts of these lengths.
///
/// # Panics
/// If they have fewer bytes.
pub(crate) fn parts<T>(
    of: T,
    pages: impl FnOnce(&T) -> &Pages,
    lens: &[usize],
) -> (Whole<T>, Vec<Part<T>>) {
    let of = Arc::new(of);
    let pages = pages(&of);
    let all = lens.iter().try_fold(0usize, |sum, len| sum.checked_add(*len));
    assert!(all.is_some_and(|all| all <= pages.len), "the parts have more bytes than there are");
    let (mut at, mut parts) = (0, Vec::with_capacity(lens.len()));
    for &len in lens {
        // SAFETY: `at + len` lies within the pages, by the assertion.
        let base = unsafe { pages.base.add(at) };
        parts.push(Part { base, len, of: of.clone() });
        at += len;
    }
    (Whole(of), parts)
}

/// The owner of lent memory, which `Pages` gives back to where it came from. Not a `Box`: that must not be moved while there are
/// pointers to what lies in it.
#[derive(Debug)]
struct Owner(NonNull<dyn Lender>);

/// Memory that its owner lends.
pub(crate) trait Lender: AsMut<[u8]> + Send {}
impl<T: AsMut<[u8]> + Send> Lender for T {}

impl std::fmt::Debug for dyn Lender {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Lender")
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        // SAFETY: `Pages::lent` made the pointer of a box, and this is its only owner.
        drop(unsafe { Box::from_raw(self.0.as_ptr()) });
    }
}

// SAFETY: the memory is owned by this value alone and has no thread affinity.
unsafe impl Send for Pages {}
// SAFETY: through a shared reference the memory is only read, except by the holders of
// `base_ptr`, who answer for their own synchronisation.
unsafe impl Sync for Pages {}

impl Pages {
    /// No memory.
    pub(crate) const fn empty() -> Self {
        Self { base: NonNull::dangling(), len: 0, owner: None }
    }

    /// At least `len` bytes of zeros, in huge pages from [`HUGE`] on; `None` if the system has none to give.
    pub(crate) fn zeroed(len: usize) -> Option<Self> {
        if len < HUGE { Self::lasting(len) } else { map_huge(len.checked_next_multiple_of(HUGE)?) }
    }

    /// The same without huge pages: for what lives long, of which the last huge page may be nearly empty.
    pub(crate) fn lasting(len: usize) -> Option<Self> {
        if len == 0 {
            return Some(Self::empty());
        }
        // No slice is longer; with 32 bits the system may map more.
        let len = len.checked_next_multiple_of(PAGE).filter(|len| *len <= LEN_MAX)?;
        if len < MAPPED {
            // SAFETY: the layout has a nonzero size.
            let base = unsafe { alloc_zeroed(Self::layout(len)) };
            return Some(Self { base: NonNull::new(base)?, len, owner: None });
        }
        Some(Self { base: NonNull::new(map(len)?)?, len, owner: None })
    }

    /// The whole pages of memory that its owner lends, who is dropped with them.
    pub(crate) fn lent(owner: Box<dyn Lender>) -> Self {
        let mut owner = Owner(NonNull::from(Box::leak(owner)));
        // SAFETY: the pointer is that of a box, and no one else has it. The slice is borrowed of the owner, which nothing
        // touches until it is dropped, after the last use of these pages.
        let bytes = unsafe { owner.0.as_mut() }.as_mut();
        let start = bytes.as_ptr().addr();
        let before = (start.next_multiple_of(PAGE) - start).min(bytes.len());
        let bytes = &mut bytes[before..];
        let len = bytes.len() / PAGE * PAGE;
        Self { base: NonNull::from(bytes).cast(), len, owner: Some(owner) }
    }

    /// How small pieces are allocated: `len` is a multiple of `PAGE` below `MAPPED`.
    fn layout(len: usize) -> Layout {
        Layout::from_size_align(len, PAGE).expect("a few pages are a valid layout")
    }

    /// Bytes owned.
    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    /// First byte, for those who synchronise access themselves.
    pub(crate) const fn base_ptr(&self) -> *mut u8 {
        self.base.as_ptr()
    }

    /// All bytes.
    #[inline]
    pub(crate) fn as_slice(&self) -> &[u8] {
        // SAFETY: `base` is valid for `len` initialised bytes (or dangling with `len` 0) and they
        // live as long as `self`.
        unsafe { std::slice::from_raw_parts(self.base.as_ptr(), self.len) }
    }

    /// All bytes, to be written.
    #[inline]
    pub(crate) fn as_mut_slice(&mut self) -> &mut [u8] {
        // SAFETY: as in `as_slice`; the exclusive borrow of `self` makes the access exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.base.as_ptr(), self.len) }
    }

    /// Gives the memory of some whole pages back; they are zero when they are next looked at. Where the system's pages are
    /// larger, those that lie inside only: it would take the rest of a page as well.
    ///
    /// # Safety
    /// Nothing else looks at these bytes meanwhile.
    ///
    /// # Panics
    /// If the range is not of whole pages inside, or the memory is no mapping.
    pub(crate) unsafe fn forget(&self, range: std::ops::Range<usize>) {
        assert!(self.len >= MAPPED && self.owner.is_none(), "the memory is no mapping of its own");
        assert!(range.start <= range.end && range.end <= self.len);
        assert!(range.start.is_multiple_of(PAGE) && range.end.is_multiple_of(PAGE));
        let range = inner(&range, rustix::param::page_size());
        if range.is_empty() {
            return;
        }
        // SAFETY: inside the mapping, which is private and anonymous. A failure leaves the bytes as they are.
        unsafe {
            let start = self.base.as_ptr().add(range.start).cast();
            let _ = madvise(start, range.len(), Advice::LinuxDontNeed);
        }
    }

    /// Makes the system back every page with memory now instead of at first use.
    pub(crate) fn prefault(&mut self) {
        if self.len == 0 {
            return;
        }
        let base = self.base.as_ptr();
        // SAFETY: the range is owned memory; populating it changes no byte.
        let populated = unsafe { madvise(base.cast(), self.len, Advice::LinuxPopulateWrite) };
        if populated.is_err() {
            for page in self.as_mut_slice().chunks_mut(PAGE) {
                let first = &mut page[0];
                // SAFETY: `first` is a valid exclusive reference. Volatile, because writing back
                // what was read would otherwise be removed.
                unsafe { ptr::write_volatile(first, ptr::read_volatile(first)) };
            }
        }
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        let base = self.base.as_ptr();
        if self.owner.is_some() {
            return;
        }
        match self.len {
            0 => {}
            // SAFETY: `zeroed` allocated with the same layout, since `len` is below `MAPPED`.
            len if len < MAPPED => unsafe { dealloc(base, Self::layout(len)) },
            // SAFETY: exactly this range was mapped by `zeroed`, and no reference is left.
            len => unsafe { unmap(base, len) },
        }
    }
}

/// Fresh zeroed pages, `len` bytes.
fn map(len: usize) -> Option<*mut u8> {
    let protection = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: a fresh private mapping at an address the system picks touches no other memory.
    let raw = unsafe { mmap_anonymous(ptr::null_mut(), len, protection, MapFlags::PRIVATE) };
    Some(raw.ok()?.cast())
}

/// Maps `len` bytes, a multiple of [`HUGE`], aligned to it: maps one huge page more than needed
/// and gives back what lies before and after the aligned part.
fn map_huge(len: usize) -> Option<Pages> {
    let reserved = len.checked_add(HUGE)?;
    let raw = map(reserved)?;
    let before = raw.addr().next_multiple_of(HUGE) - raw.addr();
    let after = HUGE - before;
    // SAFETY: `before <= HUGE < reserved`; the cut-off parts are inside the fresh mapping, whole
    // pages, and disjoint from the `len` bytes kept.
    let base = unsafe {
        let base = raw.add(before);
        if before > 0 {
            unmap(raw, before);
        }
        if after > 0 {
            unmap(base.add(len), after);
        }
        // Advice only: without huge pages the memory works the same, slower.
        let _ = madvise(base.cast(), len, Advice::LinuxHugepage);
        base
    };
    Some(Pages { base: NonNull::new(base)?, len, owner: None })
}

/// A word that is zero in every child forked from now on, whatever its parent wrote; it is never given
/// back. `None` where the system has no such memory (Linux has since 4.14).
pub(crate) fn wiped_by_fork() -> Option<&'static AtomicU32> {
    let page = map(PAGE)?;
    // SAFETY: the page is ours alone, and nothing is in it yet.
    if unsafe { madvise(page.cast(), PAGE, Advice::LinuxWipeOnFork) }.is_err() {
        // SAFETY: the mapping from above, of which no reference was made.
        unsafe { unmap(page, PAGE) };
        return None;
    }
    // SAFETY: zeroed, aligned to a page, never unmapped, and reached through this atomic only. That
    // the system zeroes it in a child is a store like any other, before the child's first load.
    Some(unsafe { &*page.cast::<AtomicU32>() })
}

/// Gives a mapped range back.
///
/// # Safety
/// The range is a page-aligned part of a mapping owned by the caller and is not used again.
unsafe fn unmap(base: *mut u8, len: usize) {
    // SAFETY: as promised by the caller. A failure leaks the range, which is harmless.
    let _ = unsafe { munmap(base.cast::<c_void>(), len) };
}

/// The pages of `page` bytes that lie in `range` as a whole.
fn inner(range: &std::ops::Range<usize>, page: usize) -> std::ops::Range<usize> {
    let start = range.start.next_multiple_of(page);
    start..(range.end / page * page).max(start)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A system with larger pages takes all of a page that is named in part, and with it what lies beside.
    #[test]
    fn larger_pages_are_given_back_whole_or_not() {
        assert_eq!(inner(&(4096..12_288), 4096), 4096..12_288);
        assert!(inner(&(0..4096), 16_384).is_empty());
        assert!(inner(&(4096..28_672), 16_384).is_empty());
        assert_eq!(inner(&(4096..65_536), 16_384), 16_384..65_536);
        assert_eq!(inner(&(0..196_608), 65_536), 0..196_608);
    }

    #[test]
    fn memory_is_aligned_zeroed_and_writable() {
        for len in [
            1,
            PAGE,
            PAGE + 1,
            MAPPED - 1,
            MAPPED,
            MAPPED + 1,
            HUGE - PAGE,
            HUGE - 1,
            HUGE,
            HUGE + 1,
            5 * HUGE,
        ] {
            let mut pages = Pages::zeroed(len).unwrap();
            let align = if len >= HUGE { HUGE } else { PAGE };
            assert!(pages.len() >= len && pages.len().is_multiple_of(align), "{len}");
            assert_eq!(pages.base_ptr().addr() % align, 0, "{len}");
            assert!(pages.as_slice().iter().all(|&byte| byte == 0), "{len}");
            pages.prefault();
            pages.as_mut_slice().fill(7);
            assert!(pages.as_slice().iter().all(|&byte| byte == 7), "{len}");
        }
    }

    #[test]
    fn prefaulting_keeps_the_content() {
        let mut pages = Pages::zeroed(3 * PAGE).unwrap();
        pages.as_mut_slice().fill(9);
        pages.prefault();
        assert!(pages.as_slice().iter().all(|&byte| byte == 9));
    }

    #[test]
    fn what_lasts_takes_no_whole_huge_pages() {
        let pages = Pages::lasting(HUGE + 1).unwrap();
        assert_eq!(pages.len(), HUGE + PAGE);
        assert!(pages.as_slice().iter().all(|&byte| byte == 0));
    }

    #[test]
    fn nothing_and_too_much() {
        assert_eq!(Pages::zeroed(0).unwrap().as_slice(), b"");
        assert!(Pages::zeroed(usize::MAX).is_none());
        assert!(Pages::zeroed(1 << 56).is_none());
    }
}
