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
use lithify_env::{OutOfMemory, Region, RegionPool};

use crate::sync::{AtomicU64, AtomicUsize, Ordering, Traced};

/// A piece of memory that an arena fills. Dropping it gives the memory back to its pool.
///
/// # Safety
/// `base` must always answer the same address, aligned to 64 bytes, of `bytes` writable bytes
/// that nothing else touches until the chunk is dropped, and that stay put when it is moved.
pub unsafe trait ArenaChunk: Send {
    /// Start of the memory.
    fn base(&self) -> NonNull<u8>;
    /// Size in bytes.
    fn bytes(&self) -> usize;
}

/// Where arenas get their chunks.
pub trait ArenaPool: Send + Sync + 'static {
    /// A chunk of at least `bytes` bytes with any content.
    ///
    /// # Errors
    /// If there is no memory.
    fn chunk(&self, bytes: usize) -> Result<Box<dyn ArenaChunk>, OutOfMemory>;
    /// The size below which chunks cost as much as this size, in bytes.
    fn granule(&self) -> usize;
}

const LINE: usize = 64;
/// Tag and lengths.
const RECORD_FACTS: usize = 16;
const RECORD_HEADER: usize = RECORD_FACTS + size_of::<Traced>();
const RECORD_ALIGN: usize = 8;
/// Largest piece that is asked for: so that padding added to it wraps nothing around, and a chunk for
/// it is one that an allocator can be asked for.
const PIECE_MAX: usize = isize::MAX as usize - 2 * LINE;
const _: () = assert!(align_of::<Traced>() <= RECORD_ALIGN);
const CHUNK_MIN: usize = 16 << 10;
/// One huge page: a writer that takes the first chunks of a pool waits until the system has found its pages. With four at a time that
/// took up to 20 ms.
const CHUNK_MAX: usize = 2 << 20;
/// Chunks that an arena of the expected size consists of: what is unused of the last is idle.
const CHUNKS_EXPECTED: usize = 16;

/// Pre-faulted huge pages that are used again: memory for real tables.
impl ArenaPool for RegionPool {
    fn chunk(&self, bytes: usize) -> Result<Box<dyn ArenaChunk>, OutOfMemory> {
        Ok(Box::new(self.get(bytes)?))
    }
    fn granule(&self) -> usize {
        2 << 20
    }
}

// SAFETY: a region is owned memory, aligned to 2 MiB, at an address that never changes. The
// region itself never touches it.
unsafe impl ArenaChunk for Region {
    fn base(&self) -> NonNull<u8> {
        NonNull::new(self.as_ptr()).expect("a region is never empty")
    }
    fn bytes(&self) -> usize {
        self.len()
    }
}

/// Chunks from the global allocator, for small tables and for tools that know no huge pages.
#[derive(Clone, Copy, Debug, Default)]
pub struct HeapPool;

struct HeapChunk {
    base: NonNull<u8>,
    layout: Layout,
}

impl ArenaPool for HeapPool {
    fn chunk(&self, bytes: usize) -> Result<Box<dyn ArenaChunk>, OutOfMemory> {
        let none = OutOfMemory { bytes };
        let layout = Layout::from_size_align(bytes.max(LINE), LINE).map_err(|_| none)?;
        // SAFETY: the layout has a non-zero size.
        let base = NonNull::new(unsafe { std::alloc::alloc(layout) }).ok_or(none)?;
        Ok(Box::new(HeapChunk { base, layout }))
    }
    fn granule(&self) -> usize {
        LINE
    }
}

impl Drop for HeapChunk {
    fn drop(&mut self) {
        // SAFETY: allocated by `chunk` with this layout, freed once.
        unsafe { std::alloc::dealloc(self.base.as_ptr(), self.layout) }
    }
}

// SAFETY: plain memory with one owner.
unsafe impl Send for HeapChunk {}

// SAFETY: the allocation is aligned to a line, owned by this chunk and freed after it.
unsafe impl ArenaChunk for HeapChunk {
    fn base(&self) -> NonNull<u8> {
        self.base
    }
    fn bytes(&self) -> usize {
        self.layout.size()
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
    #[inline(always)]
    fn traced(&self) -> &Traced {
        // SAFETY: `append` made it there.
        unsafe { self.at.add(RECORD_FACTS).cast().as_ref() }
    }
    /// Sequence number and kind.
    #[inline(always)]
    pub(crate) fn tag(self) -> Tag {
        self.traced().read();
        // SAFETY: the header of a complete record, aligned to 8 bytes.
        Tag(unsafe { self.at.cast::<u64>().read() })
    }
    #[inline(always)]
    fn lengths(self) -> (usize, usize) {
        self.traced().read();
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
    /// The next chunk, if it was asked for already.
    spare: Option<Box<dyn ArenaChunk>>,
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
        let chunk_bytes = (expected / CHUNKS_EXPECTED).next_power_of_two();
        let chunk_bytes = chunk_bytes.clamp(CHUNK_MIN, CHUNK_MAX).max(pool.granule());
        Arena {
            state: UnsafeCell::new(State {
                chunks: Vec::new(),
                spare: None,
                free: std::ptr::null_mut(),
                left: 0,
            }),
            pool,
            chunk_bytes,
            used: AtomicUsize::new(0),
            reserved: AtomicUsize::new(0),
        }
    }

    /// Takes the first `bytes` bytes from the heap, for the empty parts of a new table. Many tables are
    /// never written to, and those take no chunk of the pool.
    ///
    /// # Safety
    /// As [`allocate`](Arena::allocate); nothing is allocated yet.
    ///
    /// # Errors
    /// If there is no memory.
    pub(crate) unsafe fn seed(&self, bytes: usize) -> Result<(), OutOfMemory> {
        // SAFETY: exclusive by the contract.
        let state = unsafe { &mut *self.state.get() };
        let chunk = HeapPool.chunk(bytes)?;
        (state.free, state.left) = (chunk.base().as_ptr(), chunk.bytes());
        self.reserved.store(self.reserved() + chunk.bytes(), Ordering::Relaxed);
        state.chunks.push(chunk);
        Ok(())
    }

    /// Bytes handed out, with padding and the unused ends of full chunks.
    pub(crate) fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }
    /// Bytes taken from the pool.
    pub(crate) fn reserved(&self) -> usize {
        self.reserved.load(Ordering::Relaxed)
    }

    /// `bytes` bytes of any content, aligned to `align`.
    ///
    /// # Safety
    /// Never two threads at a time: the table's one writer may call this, or several that hold one and
    /// the same lock. `align` is a power of two up to 64, `bytes` at most [`PIECE_MAX`].
    pub(crate) unsafe fn allocate(&self, bytes: usize, align: usize) -> NonNull<u8> {
        debug_assert!(align.is_power_of_two() && align <= LINE && bytes <= PIECE_MAX);
        // SAFETY: exclusive by the contract.
        let state = unsafe { &mut *self.state.get() };
        let pad = (state.free as usize).wrapping_neg() & (align - 1);
        // The sum does not wrap around, by the contract.
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

    /// As `allocate`, from a new chunk. Of the old and the new chunk the one with more space left
    /// stays open, so that a large value does not end a chunk that was just begun.
    #[cold]
    fn refill(&self, state: &mut State, bytes: usize) -> NonNull<u8> {
        let spare = state.spare.take_if(|spare| spare.bytes() >= bytes);
        let chunk = match spare {
            Some(chunk) => chunk,
            None => self.take(bytes).unwrap_or_else(|none| panic!("write buffer: {none}")),
        };
        let (base, size) = (chunk.base(), chunk.bytes());
        state.chunks.push(chunk);
        let rest = size - bytes;
        self.account(bytes + rest.min(state.left));
        if rest > state.left {
            // SAFETY: `bytes <= size`, so this stays inside or one past the chunk.
            state.free = unsafe { base.as_ptr().add(bytes) };
            state.left = rest;
        }
        base
    }

    /// A chunk of at least `bytes` bytes.
    fn take(&self, bytes: usize) -> Result<Box<dyn ArenaChunk>, OutOfMemory> {
        let chunk = self.pool.chunk(bytes.max(self.chunk_bytes))?;
        let (base, size) = (chunk.base(), chunk.bytes());
        assert!(size >= bytes && base.addr().get().is_multiple_of(LINE), "a pool keeps its word");
        self.reserved.store(self.reserved() + size, Ordering::Relaxed);
        Ok(chunk)
    }

    /// Sees to it that the next allocations, of `bytes` bytes together with their padding, need no
    /// chunk that the pool might not have.
    ///
    /// # Safety
    /// As [`allocate`](Arena::allocate).
    ///
    /// # Errors
    /// If the pool has none; the arena is as it was.
    #[inline]
    pub(crate) unsafe fn try_reserve(&self, bytes: usize) -> Result<(), OutOfMemory> {
        // SAFETY: exclusive by the contract.
        let state = unsafe { &mut *self.state.get() };
        // What does not fit any more goes to the spare chunk as a whole; of the two, the one with
        // more space left takes the rest.
        if bytes <= state.left || state.spare.as_ref().is_some_and(|spare| spare.bytes() >= bytes) {
            return Ok(());
        }
        let spare = self.take(bytes)?;
        if let Some(smaller) = state.spare.replace(spare) {
            self.reserved.store(self.reserved() - smaller.bytes(), Ordering::Relaxed);
        }
        Ok(())
    }

    /// `len` zeroed words, aligned to a line.
    ///
    /// # Safety
    /// As [`allocate`](Arena::allocate), `len` words taking at most [`PIECE_MAX`] bytes.
    pub(crate) unsafe fn words(&self, len: usize) -> NonNull<AtomicU64> {
        let bytes = len.checked_mul(size_of::<AtomicU64>()).expect("a filter is a piece of memory");
        // SAFETY: by the contract.
        let base = unsafe { self.allocate(bytes, LINE) };
        // SAFETY: allocated with this size and not shared yet; zero is a valid atomic.
        #[cfg(not(loom))]
        unsafe {
            base.write_bytes(0, bytes)
        };
        // SAFETY: as above; loom's atomics are made one by one.
        #[cfg(loom)]
        (0..len).for_each(|i| unsafe { base.cast::<AtomicU64>().add(i).write(AtomicU64::new(0)) });
        base.cast()
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
    /// If key or value is 4 GiB or longer, or there is no memory for both.
    #[inline]
    pub(crate) unsafe fn append(&self, tag: Tag, user: &[u8], value: &[u8]) -> Rec<'_> {
        let (lengths, bytes) = measured(user, value);
        // SAFETY: the caller is the one writer; a record is no longer than a piece can be.
        let at = unsafe { self.allocate(bytes, RECORD_ALIGN) };
        // SAFETY: freshly allocated with this size and alignment.
        unsafe { write_record(at, tag, lengths, user, value) }
    }

    /// Cuts off a piece for `entries` records with `bytes` bytes of keys and values together.
    ///
    /// # Safety
    /// As [`allocate`](Arena::allocate), but for any length.
    ///
    /// # Errors
    /// If there is no memory; the arena is as it was.
    pub(crate) unsafe fn slab(&self, entries: usize, bytes: usize) -> Result<Slab, OutOfMemory> {
        let headers = entries.checked_mul(RECORD_HEADER + RECORD_ALIGN - 1);
        let left = headers.and_then(|headers| bytes.checked_add(headers));
        let Some(left) = left.filter(|left| *left <= PIECE_MAX) else {
            return Err(OutOfMemory { bytes: usize::MAX });
        };
        // SAFETY: by the contract. The padding of the piece is reserved with it.
        unsafe { self.try_reserve(left + RECORD_ALIGN)? };
        // SAFETY: by the contract; `left` was compared above.
        Ok(Slab { free: unsafe { self.allocate(left, RECORD_ALIGN) }, left })
    }
}

/// A piece of an arena that one thread writes records into, while others have pieces of their own.
pub(crate) struct Slab {
    free: NonNull<u8>,
    left: usize,
}

// SAFETY: the piece belongs to the slab alone.
unsafe impl Send for Slab {}

impl Slab {
    /// Writes a record into the piece.
    ///
    /// # Safety
    /// The slab is of `arena`.
    ///
    /// # Panics
    /// If there is no room left, or key or value is 4 GiB or longer.
    #[inline]
    pub(crate) unsafe fn append<'t>(
        &mut self,
        _arena: &'t Arena,
        tag: Tag,
        user: &[u8],
        value: &[u8],
    ) -> Rec<'t> {
        let (lengths, bytes) = measured(user, value);
        let padded = bytes.next_multiple_of(RECORD_ALIGN).min(self.left);
        assert!(bytes <= padded, "a writer adds no more than it said");
        let at = self.free;
        // SAFETY: `padded` bytes are left behind `free`; one past the end is allowed.
        self.free = unsafe { at.add(padded) };
        self.left -= padded;
        // SAFETY: `bytes` bytes of the piece that no other entry has, aligned because the piece began
        // aligned and only whole multiples were taken off it, the last one excepted.
        unsafe { write_record(at, tag, lengths, user, value) }
    }
}

/// The lengths of key and value as a record has them, and the bytes that it takes, at most
/// [`PIECE_MAX`].
#[inline(always)]
fn measured(user: &[u8], value: &[u8]) -> ([u32; 2], usize) {
    let lengths = [user.len(), value.len()]
        .map(|n| u32::try_from(n).expect("keys and values are shorter than 4 GiB"));
    // Key and value may be the same bytes: where addresses have 32 bits their sum may wrap around.
    let bytes = RECORD_HEADER as u64 + u64::from(lengths[0]) + u64::from(lengths[1]);
    let fitting = usize::try_from(bytes).ok().filter(|bytes| *bytes <= PIECE_MAX);
    (lengths, fitting.expect("a record fits into memory"))
}

/// Writes a record at `at`.
///
/// # Safety
/// `at` is aligned to 8 bytes, with room for header, key and value in an arena that lives for `'t`,
/// and no other thread touches it yet. `lengths` are those of `user` and `value`.
#[inline(always)]
unsafe fn write_record<'t>(
    at: NonNull<u8>,
    tag: Tag,
    lengths: [u32; 2],
    user: &[u8],
    value: &[u8],
) -> Rec<'t> {
    // SAFETY: by the contract.
    unsafe {
        at.cast::<u64>().write(tag.0);
        at.add(8).cast::<[u32; 2]>().write(lengths);
        at.add(RECORD_FACTS).cast::<Traced>().write(Traced::default());
        let body = at.add(RECORD_HEADER).as_ptr();
        body.copy_from_nonoverlapping(user.as_ptr(), user.len());
        body.add(user.len()).copy_from_nonoverlapping(value.as_ptr(), value.len());
        let rec = Rec::from_ptr(at);
        rec.traced().write();
        rec
    }
}
