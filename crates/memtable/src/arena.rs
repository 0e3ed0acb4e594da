//! Memory that only grows: chunks from a pool, and the records written into them.
//!
//! Keeps: a record, once appended, is never written again and stays where it is until the arena
//! is dropped; so a [`Rec`] may be shared with any thread after a release/acquire hand-over.
//! Leaves to others: order, visibility (the index publishes records), budgets.
//!
//! Record: `tag u64 | key length u32 | value length u32 | key | value`, aligned to 8 bytes, in
//! the byte order of the machine because it never leaves memory.

use std::alloc::Layout;
use std::cell::UnsafeCell;
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::Arc;

use lithify_base::Tag;

use crate::sync::{AtomicUsize, Mutex, Ordering};

/// A piece of memory that an arena fills. Dropping it gives the memory back to its pool.
///
/// # Safety
/// `base` must always answer the same address, aligned to 64 bytes, of `bytes` writable bytes
/// that nobody else touches until the chunk is dropped, and that stay put when it is moved.
pub unsafe trait ArenaChunk: Send {
    /// Start of the memory.
    fn base(&self) -> NonNull<u8>;
    /// Size in bytes.
    fn bytes(&self) -> usize;
}

/// Where arenas get their chunks, ideally memory that was touched before.
pub trait ArenaPool: Send + Sync + 'static {
    /// A chunk of at least `bytes` bytes with any content.
    fn chunk(&self, bytes: usize) -> Box<dyn ArenaChunk>;
}

const LINE: usize = 64;
const RECORD_HEADER: usize = 16;
const CHUNK_MIN: usize = 64 << 10;
const CHUNK_MAX: usize = 2 << 20;

/// Chunks from the global allocator. Returned chunks of the common size are kept for reuse.
pub struct HeapPool {
    idle: Arc<Mutex<Vec<HeapMemory>>>,
    keep: usize,
}

impl HeapPool {
    /// A pool that keeps up to `keep_bytes` of returned memory.
    pub fn new(keep_bytes: usize) -> Arc<HeapPool> {
        Arc::new(HeapPool { idle: Arc::default(), keep: keep_bytes / CHUNK_MAX })
    }
}

impl ArenaPool for HeapPool {
    fn chunk(&self, bytes: usize) -> Box<dyn ArenaChunk> {
        let reused = if bytes == CHUNK_MAX { self.idle.lock().pop() } else { None };
        let memory = reused.unwrap_or_else(|| HeapMemory::new(bytes));
        Box::new(HeapChunk { memory: Some(memory), home: self.idle.clone(), keep: self.keep })
    }
}

struct HeapMemory {
    base: NonNull<u8>,
    layout: Layout,
}

impl HeapMemory {
    fn new(bytes: usize) -> HeapMemory {
        let layout = Layout::from_size_align(bytes.max(LINE), LINE).expect("chunk size overflows");
        // SAFETY: the layout has a non-zero size.
        let base = unsafe { std::alloc::alloc(layout) };
        let Some(base) = NonNull::new(base) else { std::alloc::handle_alloc_error(layout) };
        HeapMemory { base, layout }
    }
}

impl Drop for HeapMemory {
    fn drop(&mut self) {
        // SAFETY: allocated in `new` with this layout, freed once.
        unsafe { std::alloc::dealloc(self.base.as_ptr(), self.layout) }
    }
}

// SAFETY: plain memory with one owner.
unsafe impl Send for HeapMemory {}

struct HeapChunk {
    memory: Option<HeapMemory>,
    home: Arc<Mutex<Vec<HeapMemory>>>,
    keep: usize,
}

impl HeapChunk {
    fn memory(&self) -> &HeapMemory {
        self.memory.as_ref().expect("taken only by drop")
    }
}

// SAFETY: the allocation is aligned to a line, owned by this chunk and freed after it.
unsafe impl ArenaChunk for HeapChunk {
    fn base(&self) -> NonNull<u8> {
        self.memory().base
    }
    fn bytes(&self) -> usize {
        self.memory().layout.size()
    }
}

impl Drop for HeapChunk {
    fn drop(&mut self) {
        if let Some(memory) = self.memory.take()
            && memory.layout.size() == CHUNK_MAX
        {
            let mut idle = self.home.lock();
            if idle.len() < self.keep {
                idle.push(memory);
            }
        }
    }
}

/// One appended entry: a pointer that is only made by [`Arena::append`] or read back from a slot
/// that holds one.
#[derive(Clone, Copy)]
pub(crate) struct Rec<'t> {
    at: NonNull<u8>,
    arena: PhantomData<&'t [u8]>,
}

// SAFETY: a record is immutable once a `Rec` of it exists, so sharing it is sharing `&[u8]`.
unsafe impl Send for Rec<'_> {}
// SAFETY: as above.
unsafe impl Sync for Rec<'_> {}

impl<'t> Rec<'t> {
    /// The record at `at`.
    ///
    /// # Safety
    /// `at` comes from [`Rec::as_ptr`] of a record whose arena lives for `'t`, and writing that
    /// record happened before this call.
    #[inline(always)]
    pub(crate) unsafe fn from_ptr(at: NonNull<u8>) -> Rec<'t> {
        Rec { at, arena: PhantomData }
    }
    #[inline(always)]
    pub(crate) fn as_ptr(self) -> *mut u8 {
        self.at.as_ptr()
    }
    /// Sequence number and kind.
    #[inline(always)]
    pub(crate) fn tag(self) -> Tag {
        // SAFETY: the header of a complete record, aligned to 8 bytes.
        Tag(unsafe { self.at.cast::<u64>().read() })
    }
    #[inline(always)]
    fn lengths(self) -> (usize, usize) {
        // SAFETY: the header is 16 bytes, so two u32 lie behind the tag.
        let [k, v] = unsafe { self.at.add(8).cast::<[u32; 2]>().read() };
        (k as usize, v as usize)
    }
    /// User key.
    #[inline(always)]
    pub(crate) fn user(self) -> &'t [u8] {
        let (k, _) = self.lengths();
        // SAFETY: `append` wrote `k` key bytes behind the header; immutable for `'t`.
        unsafe { std::slice::from_raw_parts(self.at.add(RECORD_HEADER).as_ptr(), k) }
    }
    /// Value.
    #[inline(always)]
    pub(crate) fn value(self) -> &'t [u8] {
        let (k, v) = self.lengths();
        // SAFETY: `append` wrote `v` value bytes behind the key; immutable for `'t`.
        unsafe { std::slice::from_raw_parts(self.at.add(RECORD_HEADER + k).as_ptr(), v) }
    }
    /// Asks for the first three lines of the record: header, key and the start of the value.
    #[inline(always)]
    pub(crate) fn prefetch(self) {
        for line in 0..3 {
            prefetch(self.at.as_ptr().wrapping_add(line * LINE));
        }
    }
}

/// Asks the machine to bring a line into cache. Any address is allowed.
#[inline(always)]
pub(crate) fn prefetch(at: *const u8) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: a prefetch never faults, whatever the address.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(at.cast());
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = at;
}

/// The arena of one memtable.
pub(crate) struct Arena {
    state: UnsafeCell<State>,
    pool: Arc<dyn ArenaPool>,
    chunk_bytes: usize,
    used: AtomicUsize,
    reserved: AtomicUsize,
}

struct State {
    chunks: Vec<Box<dyn ArenaChunk>>,
    free: *mut u8,
    left: usize,
}

// SAFETY: `state` is touched only through the unsafe `allocate` and `append`, whose contract is
// one caller at a time, and by drop, which is exclusive. The counters are atomic.
unsafe impl Sync for Arena {}
// SAFETY: the chunks are `Send`, and `free` points into them.
unsafe impl Send for Arena {}

impl Arena {
    /// An arena that expects to hold `expected` bytes.
    pub(crate) fn new(pool: Arc<dyn ArenaPool>, expected: usize) -> Arena {
        Arena {
            state: UnsafeCell::new(State {
                chunks: Vec::new(),
                free: std::ptr::null_mut(),
                left: 0,
            }),
            pool,
            chunk_bytes: (expected / 8).next_power_of_two().clamp(CHUNK_MIN, CHUNK_MAX),
            used: AtomicUsize::new(0),
            reserved: AtomicUsize::new(0),
        }
    }

    /// Bytes handed out, with padding and the unused ends of full chunks.
    pub(crate) fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }
    /// Bytes taken from the pool.
    pub(crate) fn reserved(&self) -> usize {
        self.reserved.load(Ordering::Relaxed)
    }

    /// `bytes` bytes of any content, aligned to `align`, a power of two up to 64.
    ///
    /// # Safety
    /// Only the table's one writer may call this, never two threads at a time.
    pub(crate) unsafe fn allocate(&self, bytes: usize, align: usize) -> NonNull<u8> {
        debug_assert!(align.is_power_of_two() && align <= LINE);
        // SAFETY: exclusive by the contract.
        let state = unsafe { &mut *self.state.get() };
        let pad = (state.free as usize).wrapping_neg() & (align - 1);
        if pad + bytes <= state.left {
            // SAFETY: `pad + bytes` bytes are left in the current chunk.
            let at = unsafe { state.free.add(pad) };
            // SAFETY: as above; one past the end is allowed.
            state.free = unsafe { at.add(bytes) };
            state.left -= pad + bytes;
            self.account(pad + bytes);
            // SAFETY: inside a chunk, hence not null.
            return unsafe { NonNull::new_unchecked(at) };
        }
        self.refill(state, bytes)
    }

    /// As `allocate`, from a new chunk. A large piece gets a chunk of its own and leaves the
    /// current one open.
    #[cold]
    fn refill(&self, state: &mut State, bytes: usize) -> NonNull<u8> {
        let own = bytes > self.chunk_bytes / 4;
        let chunk = self.pool.chunk(if own { bytes } else { self.chunk_bytes });
        let (base, size) = (chunk.base(), chunk.bytes());
        assert!(size >= bytes && base.as_ptr() as usize % LINE == 0, "pool broke its promise");
        self.reserved.store(self.reserved() + size, Ordering::Relaxed);
        state.chunks.push(chunk);
        if own {
            self.account(size);
        } else {
            self.account(state.left + bytes);
            // SAFETY: `bytes <= size`, so this stays inside or one past the chunk.
            state.free = unsafe { base.as_ptr().add(bytes) };
            state.left = size - bytes;
        }
        base
    }

    fn account(&self, bytes: usize) {
        self.used.store(self.used() + bytes, Ordering::Relaxed);
    }

    /// Writes a record.
    ///
    /// # Safety
    /// As [`allocate`](Arena::allocate).
    ///
    /// # Panics
    /// If key or value is 4 GiB or longer.
    #[inline]
    pub(crate) unsafe fn append(&self, tag: Tag, user: &[u8], value: &[u8]) -> Rec<'_> {
        let lengths = [user.len(), value.len()]
            .map(|n| u32::try_from(n).expect("keys and values are shorter than 4 GiB"));
        // SAFETY: the caller is the one writer.
        let at = unsafe { self.allocate(RECORD_HEADER + user.len() + value.len(), 8) };
        // SAFETY: the allocation holds the header, the key and the value, is aligned to 8 bytes
        // and not shared yet.
        unsafe {
            at.cast::<u64>().write(tag.0);
            at.add(8).cast::<[u32; 2]>().write(lengths);
            let body = at.add(RECORD_HEADER).as_ptr();
            body.copy_from_nonoverlapping(user.as_ptr(), user.len());
            body.add(user.len()).copy_from_nonoverlapping(value.as_ptr(), value.len());
            Rec::from_ptr(at)
        }
    }
}
