//! Bytes that many own together, in slots of memory that is used again: cached blocks and what is read.
//!
//! An allocator keeps blocks of all sizes side by side with everything else, in an arena for each thread,
//! and gives pages back when nothing on them is left; so what a cache of single allocations takes is up
//! to twice what it counts. Here blocks have memory of their own, by size, and what is free beyond a
//! small part goes back to the system page by page.
//!
//! Keeps: every byte is initialised (zero, or what an earlier owner left), so safe code may look at all
//! of them; bytes change only while they have one owner. With pages of 4 KiB [`SlotPool::resident`] is at least what the
//! system counts for the pool; larger ones stay longer.
//! Leaves to others: which slot is free and which page goes back (`slots`).

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::fmt;
use std::ops::{Deref, Range};
use std::ptr::{self, NonNull};
// The standard library's, also under a model checker: the count lies in memory of the system.
use std::sync::atomic::{AtomicU32, Ordering, fence};

use super::pages::{PAGE, Pages};
use crate::pool::OutOfMemory;
use crate::slots::{CLASSES, Place, SLAB, SLOT_MIN, Shelf, class_of, slot_bytes};
use crate::sync::atomic::AtomicUsize;
use crate::sync::{Arc, Mutex};

/// Bytes in front of what is held, so that it begins at a line of the processor's cache.
const HEAD: usize = 64;
/// Bytes that the processor fetches at once.
const LINE: usize = 64;
/// From here on, memory outside a pool is a mapping, which goes back when it is freed.
const MAPPED: usize = 64 << 10;
/// Owners at most: far more than threads and blocks, far below an overflow.
const OWNERS_MAX: u32 = u32::MAX / 2;
const _: () = assert!(size_of::<Head>() <= HEAD && align_of::<Head>() <= HEAD);
const _: () = assert!(SLOT_MIN > HEAD);

/// What lies in front of the bytes.
struct Head {
    owners: AtomicU32,
    home: Home,
}

/// Where the memory goes when its last owner does.
enum Home {
    /// A slot of the pool.
    Slot { pool: Arc<SlotPool>, class: u16, place: Place },
    /// Pages, counted by the pool if there is one.
    Pages { pages: Pages, pool: Option<Arc<SlotPool>> },
    /// The allocator, which gave so many bytes.
    Heap(usize),
}

/// Bytes with any number of owners; cloning copies none.
pub struct SharedBytes {
    head: NonNull<Head>,
    len: u32,
}

// SAFETY: bytes are changed only through `get_mut`, which needs the only owner, and owners are counted
// by an atomic; what the head holds besides may go to any thread.
unsafe impl Send for SharedBytes {}
// SAFETY: as above.
unsafe impl Sync for SharedBytes {}

impl SharedBytes {
    /// `len` zeros outside any pool.
    ///
    /// # Errors
    /// If the system has no memory, or `len` is 4 GiB or more.
    pub fn zeroed(len: usize) -> Result<SharedBytes, OutOfMemory> {
        let (short, total) = measured(len)?;
        match total {
            MAPPED.. => SharedBytes::mapped(short, total, None),
            _ => SharedBytes::allocated(short, total),
        }
    }

    fn allocated(len: u32, total: usize) -> Result<SharedBytes, OutOfMemory> {
        let none = OutOfMemory { bytes: total };
        let layout = layout(total).ok_or(none)?;
        // SAFETY: the layout has a nonzero size.
        let base = NonNull::new(unsafe { alloc_zeroed(layout) }).ok_or(none)?;
        // SAFETY: `total` bytes of zeros, aligned to `HEAD`, that nothing else knows of.
        Ok(unsafe { SharedBytes::born(base, len, Home::Heap(total)) })
    }

    fn mapped(
        len: u32,
        total: usize,
        pool: Option<Arc<SlotPool>>,
    ) -> Result<SharedBytes, OutOfMemory> {
        let pages = Pages::lasting(total).ok_or(OutOfMemory { bytes: total })?;
        if let Some(pool) = &pool {
            pool.resident.fetch_add(pages.len(), Ordering::Relaxed);
        }
        let base = NonNull::new(pages.base_ptr()).expect("pages are somewhere");
        // SAFETY: `total` bytes or more, aligned to a page, that only `pages` owns, and the head takes it.
        Ok(unsafe { SharedBytes::born(base, len, Home::Pages { pages, pool }) })
    }

    /// The first owner of the memory at `base`.
    ///
    /// # Safety
    /// `base` is aligned to [`HEAD`], and `HEAD + len` initialised bytes from there are this value's alone
    /// until `home` has them back.
    unsafe fn born(base: NonNull<u8>, len: u32, home: Home) -> SharedBytes {
        let head = base.cast::<Head>();
        // SAFETY: as promised; a head fits into what is in front of the bytes.
        unsafe { head.write(Head { owners: AtomicU32::new(1), home }) };
        SharedBytes { head, len }
    }

    #[inline]
    fn head(&self) -> &Head {
        // SAFETY: written by `born`, and alive as long as an owner is.
        unsafe { self.head.as_ref() }
    }

    #[inline]
    fn bytes(&self) -> NonNull<u8> {
        // SAFETY: `born` was promised `HEAD + len` bytes.
        unsafe { self.head.cast::<u8>().add(HEAD) }
    }

    /// The bytes, to be changed, while this is their only owner.
    #[inline]
    pub fn get_mut(&mut self) -> Option<&mut [u8]> {
        // As in `drop`: what other owners did with the bytes happened before.
        if self.head().owners.load(Ordering::Acquire) != 1 {
            return None;
        }
        // SAFETY: `len` initialised bytes, and the exclusive borrow is of their only owner.
        Some(unsafe { std::slice::from_raw_parts_mut(self.bytes().as_ptr(), self.len as usize) })
    }

    /// Lets the processor fetch the first and the last `lines` lines of its caches of `range`, which are read soon. A
    /// hint.
    #[inline]
    pub fn prefetch(&self, range: Range<usize>, lines: usize) {
        let bytes = self.get(range).unwrap_or_default();
        bytes.chunks(LINE).take(lines).for_each(|line| prefetch(line.as_ptr()));
        bytes.rchunks(LINE).take(lines).for_each(|line| prefetch(line.as_ptr()));
    }

    /// Whether their memory is among `slabs` of their pool. Memory that is no slot is among none.
    pub fn lies_in(&self, slabs: &Slabs) -> bool {
        match &self.head().home {
            Home::Slot { class, place, .. } => {
                let chosen = &slabs.chosen[usize::from(*class)];
                chosen.get(place.slab as usize).is_some_and(|slab| *slab)
            }
            Home::Pages { .. } | Home::Heap(_) => false,
        }
    }

    /// Bytes of memory that are kept for them.
    pub fn memory(&self) -> usize {
        match &self.head().home {
            Home::Slot { class, .. } => slot_bytes(usize::from(*class)),
            Home::Pages { pages, .. } => pages.len(),
            Home::Heap(total) => *total,
        }
    }

    /// Gives the memory back; the last owner calls it.
    #[cold]
    fn end(&mut self) {
        // SAFETY: no other owner is left, so the head is read once and for the last time.
        let home = unsafe { ptr::read(&raw const (*self.head.as_ptr()).home) };
        match home {
            Home::Slot { pool, class, place } => pool.give(usize::from(class), place),
            Home::Pages { pages, pool } => {
                if let Some(pool) = pool {
                    pool.resident.fetch_sub(pages.len(), Ordering::Relaxed);
                }
            }
            Home::Heap(total) => {
                let layout = layout(total).expect("it was allocated with it");
                // SAFETY: `allocated` got it with this layout, and no owner is left.
                unsafe { dealloc(self.head.as_ptr().cast(), layout) }
            }
        }
    }
}

impl Clone for SharedBytes {
    #[inline]
    fn clone(&self) -> SharedBytes {
        // A new owner comes from one that is there, which keeps the memory alive: no order is needed.
        let owners = self.head().owners.fetch_add(1, Ordering::Relaxed);
        assert!(owners < OWNERS_MAX, "bytes with 2^31 owners");
        SharedBytes { head: self.head, len: self.len }
    }
}

impl Drop for SharedBytes {
    #[inline]
    fn drop(&mut self) {
        if self.head().owners.fetch_sub(1, Ordering::Release) == 1 {
            // What every other owner did happened before the memory goes.
            fence(Ordering::Acquire);
            self.end();
        }
    }
}

impl Deref for SharedBytes {
    type Target = [u8];
    #[inline]
    fn deref(&self) -> &[u8] {
        // SAFETY: `len` initialised bytes that nothing changes while there is a shared borrow of an owner.
        unsafe { std::slice::from_raw_parts(self.bytes().as_ptr(), self.len as usize) }
    }
}

impl AsRef<[u8]> for SharedBytes {
    #[inline]
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl fmt::Debug for SharedBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SharedBytes({} of {})", self.len, self.memory())
    }
}

/// Lets the processor fetch the line of its caches that `at` is in. A hint: no effect on the result, whatever is there.
#[inline]
fn prefetch(at: *const u8) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: a prefetch reads nothing that the program could see, and never faults.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(at.cast());
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = at;
}

/// `len` in short, and with the head in front.
fn measured(len: usize) -> Result<(u32, usize), OutOfMemory> {
    let none = OutOfMemory { bytes: len };
    let total = len.checked_add(HEAD).ok_or(none)?;
    Ok((u32::try_from(len).map_err(|_| none)?, total))
}

fn layout(total: usize) -> Option<Layout> {
    Layout::from_size_align(total, HEAD).ok()
}

/// Memory for [`SharedBytes`], in slots by size.
pub struct SlotPool {
    shelves: [Mutex<Rack>; CLASSES],
    /// Bytes of pages that may be resident.
    resident: AtomicUsize,
    /// How many free slots of each shelf are warm.
    warm: [AtomicUsize; CLASSES],
    /// Their bytes.
    idle: AtomicUsize,
    idle_max: AtomicUsize,
    /// The shelf that lets go of a warm slot next.
    next: AtomicUsize,
}

/// Some slabs of a [`SlotPool`].
#[derive(Debug)]
pub struct Slabs {
    /// For each shelf which of its slabs; later ones are not.
    chosen: Vec<Vec<bool>>,
}

/// A shelf and the memory of its slabs.
struct Rack {
    shelf: Shelf,
    slabs: Vec<Pages>,
}

impl SlotPool {
    /// A pool that keeps up to `idle_max` bytes of free slots for the next taker.
    pub fn new(idle_max: usize) -> Arc<SlotPool> {
        let rack =
            |class| Mutex::new(Rack { shelf: Shelf::new(slot_bytes(class)), slabs: Vec::new() });
        Arc::new(SlotPool {
            shelves: std::array::from_fn(rack),
            resident: AtomicUsize::new(0),
            warm: std::array::from_fn(|_| AtomicUsize::new(0)),
            idle: AtomicUsize::new(0),
            idle_max: AtomicUsize::new(idle_max),
            next: AtomicUsize::new(0),
        })
    }

    /// `len` bytes with any content. Pieces below 2 KiB come from the allocator, those above 128 KiB
    /// are mappings of their own.
    ///
    /// # Errors
    /// If the system has no memory, or `len` is 4 GiB or more.
    pub fn get(self: &Arc<SlotPool>, len: usize) -> Result<SharedBytes, OutOfMemory> {
        let (short, total) = measured(len)?;
        if total <= SLOT_MIN {
            return SharedBytes::allocated(short, total);
        }
        let Some(class) = class_of(total) else {
            return SharedBytes::mapped(short, total, Some(Arc::clone(self)));
        };
        let (base, place) = self.take(class).ok_or(OutOfMemory { bytes: len })?;
        let home = Home::Slot { pool: Arc::clone(self), class: class as u16, place };
        // SAFETY: the slot is `slot_bytes(class)`, at least `total`, initialised bytes, a multiple of 64
        // from the start of a page, and no other owner's until `give`.
        Ok(unsafe { SharedBytes::born(base, short, home) })
    }

    /// A slot of `class`; `None` if the system has no memory for another slab.
    fn take(&self, class: usize) -> Option<(NonNull<u8>, Place)> {
        let mut rack = self.shelves[class].lock();
        let taken = match rack.shelf.take() {
            Some(taken) => taken,
            None => {
                let slab = Pages::zeroed(SLAB)?;
                rack.slabs.push(slab);
                rack.shelf.add_slab();
                rack.shelf.take().expect("a slab has slots")
            }
        };
        let place = taken.place;
        self.resident.fetch_add(taken.fresh * PAGE, Ordering::Relaxed);
        if taken.warm {
            self.warm[class].fetch_sub(1, Ordering::Relaxed);
            self.idle.fetch_sub(slot_bytes(class), Ordering::Relaxed);
        }
        let at = rack.shelf.offset(place);
        let base = NonNull::new(rack.slabs[place.slab as usize].base_ptr())?;
        // SAFETY: a slot lies within its slab.
        Some((unsafe { base.add(at) }, place))
    }

    /// Takes a slot back. Its memory stays, as its size is in use; where more is free than is kept, others lose theirs.
    fn give(&self, class: usize, place: Place) {
        let bytes = slot_bytes(class);
        let mut rack = self.shelves[class].lock();
        if bytes > self.idle_max.load(Ordering::Relaxed) {
            return self.let_go(&mut rack, place);
        }
        rack.shelf.give_warm(place);
        self.warm[class].fetch_add(1, Ordering::Relaxed);
        self.idle.fetch_add(bytes, Ordering::Relaxed);
        drop(rack);
        self.cool();
    }

    /// Gives back what is free beyond what is kept: one slot of each shelf in turn, the one that has lain there
    /// longest. Otherwise sizes that were in use once would keep their memory, and those in use now lose it each time.
    fn cool(&self) {
        for _ in 0..2 * CLASSES {
            if self.idle.load(Ordering::Relaxed) <= self.idle_max.load(Ordering::Relaxed) {
                return;
            }
            let class = self.next.fetch_add(1, Ordering::Relaxed) % CLASSES;
            if self.warm[class].load(Ordering::Relaxed) == 0 {
                continue;
            }
            let mut rack = self.shelves[class].lock();
            if let Some(place) = rack.shelf.oldest_warm() {
                self.warm[class].fetch_sub(1, Ordering::Relaxed);
                self.idle.fetch_sub(slot_bytes(class), Ordering::Relaxed);
                self.let_go(&mut rack, place);
            }
        }
    }

    /// Lets go of the memory of a slot that is neither taken nor warm any more.
    fn let_go(&self, rack: &mut Rack, place: Place) {
        let pages = rack.shelf.give(place);
        if !pages.is_empty() {
            self.resident.fetch_sub(pages.len() * PAGE, Ordering::Relaxed);
            let range = pages.start * PAGE..pages.end * PAGE;
            // SAFETY: no slot that is taken or warm touches these pages, and none is taken from the shelf
            // before its lock, which the caller holds, is free.
            unsafe { rack.slabs[place.slab as usize].forget(range) };
        }
    }

    /// The emptiest slabs of each shelf: all but the fullest ones, which together have at least `keep` of `of` parts of what
    /// is in use. A cache that must give back much memory at once drops what lies in them. Blocks that it drops by use are
    /// spread over all slabs, which frees slots, but few whole pages.
    pub fn emptiest(&self, keep: u64, of: u64) -> Slabs {
        let of_shelf = |rack: &Mutex<Rack>| {
            let in_use: Vec<u64> = rack.lock().shelf.in_use().collect();
            let all: u64 = in_use.iter().sum();
            let kept = u128::from(all) * u128::from(keep) / u128::from(of.max(1));
            let mut fullest: Vec<usize> = (0..in_use.len()).collect();
            fullest.sort_by_key(|&slab| std::cmp::Reverse(in_use[slab]));
            let mut chosen = vec![true; in_use.len()];
            let mut so_far = 0;
            for slab in fullest {
                if so_far >= kept {
                    break;
                }
                so_far += u128::from(in_use[slab]);
                chosen[slab] = false;
            }
            chosen
        };
        Slabs { chosen: self.shelves.iter().map(of_shelf).collect() }
    }

    /// Bytes of pages that are or were in use and did not go back.
    pub fn resident(&self) -> usize {
        self.resident.load(Ordering::Relaxed)
    }

    /// Changes how much is kept for the next taker; what is kept beyond it goes as slots come back.
    pub fn set_idle_max(&self, bytes: usize) {
        self.idle_max.store(bytes, Ordering::Relaxed);
    }
}

impl fmt::Debug for SlotPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SlotPool").field("resident", &self.resident()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
