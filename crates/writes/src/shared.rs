//! Memory for memtables that several databases share, with one bound for all of them.
//!
//! Keeps: once the memtables that are being filled take seven eighths of the bound, or half of it while all memtables take
//! all of it, the largest of them is frozen, whichever database has it. Each database looks, and the one that has it freezes it:
//! a writer before its write, or the upkeep job of a database without one. What is frozen stays counted until
//! its memory is given back, or its database is closed.
//! Leaves to others: when a database looks and how it freezes (`lithify_tree`); blocks (`SharedCache`); buffers, of
//! which each database has its own.

use lithify_env::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use lithify_env::sync::{Arc, Mutex, Weak};
use lithify_env::{OutOfMemory, Ticket};
use lithify_memtable::{ArenaChunk, ArenaPool, HeapPool};
use lithify_tables::cache::SharedCache;

/// Smallest memtables that are kept in regions: these are pieces of 2 MiB, which smaller ones would
/// not fill.
const REGION_MIN: u64 = 2 << 20;
/// The first pieces of all memtables that are being filled take at most this part of the bound.
const FIRST_PIECES: u64 = 4;
/// A memtable that is frozen for the others has at least this part of what each could have of the bound. Where those that
/// have more can't be frozen, a write would else make a table of a few bytes each time.
const WORTH_IT: u64 = 8;

/// A bound on what the memtables of all databases that are opened with it take together. Clones are the same bound. It may
/// outlive its databases.
#[derive(Clone)]
pub struct SharedMemtables(Arc<Pot>);

struct Pot {
    limit: AtomicU64,
    stalls: AtomicBool,
    /// Bytes that memtables have taken, whether filled, flushed or only read by now.
    all: AtomicU64,
    /// Bytes of those that are being filled, and how many these are.
    filling: AtomicU64,
    count: AtomicU64,
    members: Mutex<Vec<Weak<Member>>>,
    /// Completed and replaced when there is more room.
    freed: Mutex<Ticket>,
    /// Whose capacity they take from, too.
    cache: Option<SharedCache>,
}

impl SharedMemtables {
    /// A bound of `bytes` bytes, 0 for none. If `stalls`, writes wait while all of it is taken and something is being
    /// flushed; else they go on meanwhile, and more may be taken for as long.
    pub fn new(bytes: u64, stalls: bool) -> SharedMemtables {
        SharedMemtables::of(bytes, stalls, None)
    }
    /// The same, where what memtables take counts against the capacity of `cache` as well, whose blocks make room.
    pub fn within_cache(bytes: u64, stalls: bool, cache: &SharedCache) -> SharedMemtables {
        SharedMemtables::of(bytes, stalls, Some(cache.clone()))
    }
    fn of(bytes: u64, stalls: bool, cache: Option<SharedCache>) -> SharedMemtables {
        SharedMemtables(Arc::new(Pot {
            limit: AtomicU64::new(bytes),
            stalls: AtomicBool::new(stalls),
            all: AtomicU64::new(0),
            filling: AtomicU64::new(0),
            count: AtomicU64::new(0),
            members: Mutex::default(),
            freed: Mutex::default(),
            cache,
        }))
    }
    /// The bound in bytes.
    pub fn limit(&self) -> u64 {
        self.0.limit.load(Ordering::Relaxed)
    }
    /// Changes it, also while databases are open.
    pub fn set_limit(&self, bytes: u64) {
        self.0.limit.store(bytes, Ordering::Relaxed);
        self.0.freed();
    }
    /// Whether writes wait while all of it is taken.
    pub fn stalls(&self) -> bool {
        self.0.stalls.load(Ordering::Relaxed)
    }
    /// Changes that.
    pub fn set_stalls(&self, stalls: bool) {
        self.0.stalls.store(stalls, Ordering::Relaxed);
        self.0.freed();
    }
    /// Bytes that memtables of open databases take now, those included that were flushed and that iterators still hold.
    pub fn usage(&self) -> u64 {
        self.0.all.load(Ordering::Relaxed)
    }
    /// One more database.
    pub fn join(&self) -> Arc<Member> {
        let member = Arc::new(Member {
            pot: self.0.clone(),
            taken: AtomicU64::new(0),
            filling: AtomicU64::new(0),
            count: AtomicU64::new(0),
            largest: AtomicU64::new(0),
            able: AtomicBool::new(false),
            flushes: AtomicBool::new(false),
        });
        let mut members = self.0.members.lock();
        members.retain(|member| member.strong_count() > 0);
        members.push(Arc::downgrade(&member));
        member
    }
}

impl std::fmt::Debug for SharedMemtables {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SharedMemtables({} of {} bytes)", self.usage(), self.limit())
    }
}

impl Pot {
    fn take(&self, bytes: u64) {
        self.all.fetch_add(bytes, Ordering::Relaxed);
        self.cache.iter().for_each(|cache| cache.charge(bytes));
    }
    fn give_back(&self, bytes: u64) {
        self.all.fetch_sub(bytes, Ordering::Relaxed);
        self.cache.iter().for_each(|cache| cache.discharge(bytes));
        self.freed();
    }
    fn freed(&self) {
        std::mem::take(&mut *self.freed.lock()).complete();
    }
    fn is_full(&self, limit: u64) -> bool {
        self.all.load(Ordering::Relaxed) >= limit
    }
    /// Whether one of those that are being filled is to be frozen.
    fn is_too_full(&self, limit: u64) -> bool {
        let filling = self.filling.load(Ordering::Relaxed);
        filling > limit / 8 * 7 || (filling > limit / 2 && self.is_full(limit))
    }
    /// The least that a memtable has which is frozen for the others.
    fn least(&self, limit: u64) -> u64 {
        limit / self.count.load(Ordering::Relaxed).max(1) / WORTH_IT
    }
    fn any(&self, is: impl Fn(&Member) -> bool) -> bool {
        self.members.lock().iter().filter_map(Weak::upgrade).any(|member| is(&member))
    }
}

/// What one database has of it.
pub struct Member {
    pot: Arc<Pot>,
    /// Bytes that all its memtables have taken; 0 once it is closed.
    taken: AtomicU64,
    /// Bytes of its memtables that are being filled, how many they are, and the largest that can be frozen. Only the holder
    /// of its write turn changes them.
    filling: AtomicU64,
    count: AtomicU64,
    largest: AtomicU64,
    /// It can freeze its memtables.
    able: AtomicBool,
    /// It has frozen ones that are not flushed yet.
    flushes: AtomicBool,
}

impl Member {
    fn take(&self, bytes: u64) {
        self.taken.fetch_add(bytes, Ordering::Relaxed);
        self.pot.take(bytes);
    }
    /// Gives back what a memtable took, unless that was done when the database was closed.
    fn give_back(&self, bytes: u64) {
        let less = |taken: u64| taken.checked_sub(bytes);
        if self.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_ok() {
            self.pot.give_back(bytes);
        }
    }

    /// What the memtables that are being filled take now, each in bytes, and whether it can be frozen.
    pub fn fills(&self, each: impl Iterator<Item = (u64, bool)>) {
        let (mut sum, mut count, mut largest) = (0, 0, 0);
        for (bytes, can) in each {
            (sum, count) = (sum + bytes, count + 1);
            largest = if can { bytes.max(largest) } else { largest };
        }
        self.largest.store(largest, Ordering::Relaxed);
        let change = |mine: &AtomicU64, all: &AtomicU64, new: u64| {
            let old = mine.load(Ordering::Relaxed);
            if old != new {
                mine.store(new, Ordering::Relaxed);
                // Modulo 2^64, so that less is the same as more.
                all.fetch_add(new.wrapping_sub(old), Ordering::Relaxed);
            }
        };
        change(&self.filling, &self.pot.filling, sum);
        change(&self.count, &self.pot.count, count);
    }

    /// Whether it can freeze its memtables.
    pub fn set_able(&self, able: bool) {
        if self.able.load(Ordering::Relaxed) != able {
            self.able.store(able, Ordering::Relaxed);
        }
    }

    /// Some of its memtables were frozen just now.
    pub fn froze(&self) {
        self.flushes.store(true, Ordering::SeqCst);
    }

    /// Looks at whether some are not flushed yet. One that is frozen while `is` looks is not missed.
    pub fn look_at_flushes(&self, is: impl FnOnce() -> bool) {
        self.flushes.store(false, Ordering::SeqCst);
        if is() {
            self.flushes.store(true, Ordering::SeqCst);
        }
    }

    /// The database is closed: what handles and iterators still hold of it is not the others' matter.
    pub fn leave(&self) {
        self.set_able(false);
        self.flushes.store(false, Ordering::SeqCst);
        self.fills(std::iter::empty());
        self.pot.give_back(self.taken.swap(0, Ordering::Relaxed));
    }

    /// Whether its largest memtable is the one to be frozen, so that the others have room.
    #[inline]
    pub fn is_to_freeze(&self) -> bool {
        let limit = self.pot.limit.load(Ordering::Relaxed);
        limit > 0 && self.pot.is_too_full(limit) && self.has_the_largest(limit)
    }

    /// Whether it may have that one, now that it can freeze what it could not when it said so last.
    pub fn may_have_to_freeze(&self) -> bool {
        let limit = self.pot.limit.load(Ordering::Relaxed);
        limit > 0
            && self.pot.is_too_full(limit)
            && self.filling.load(Ordering::Relaxed) >= self.pot.least(limit)
    }

    #[cold]
    fn has_the_largest(&self, limit: u64) -> bool {
        let mine = self.largest.load(Ordering::Relaxed);
        let larger = |other: &Member| {
            other.able.load(Ordering::Relaxed) && other.largest.load(Ordering::Relaxed) > mine
        };
        mine >= self.pot.least(limit) && !self.pot.any(larger)
    }

    /// What a write waits for, if it has to: that memtables which are being flushed, or which one of the databases is
    /// about to freeze, give their memory back. What only iterators hold is not waited for.
    #[inline]
    pub fn has_to_wait(&self) -> Option<Ticket> {
        let limit = self.pot.limit.load(Ordering::Relaxed);
        let stalls = self.pot.stalls.load(Ordering::Relaxed) && limit > 0;
        if stalls && self.pot.is_full(limit) { self.what_comes(limit) } else { None }
    }

    #[cold]
    fn what_comes(&self, limit: u64) -> Option<Ticket> {
        // Taken first: what is freed from here on completes it.
        let freed = self.pot.freed.lock().clone();
        let (least, too_full) = (self.pot.least(limit), self.pot.is_too_full(limit));
        let comes = |member: &Member| {
            let freezes = too_full
                && member.able.load(Ordering::Relaxed)
                && member.largest.load(Ordering::Relaxed) >= least;
            freezes || member.flushes.load(Ordering::SeqCst)
        };
        (self.pot.is_full(limit) && self.pot.any(comes)).then_some(freed)
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.leave();
    }
}

/// Where the memtables of one database have their memory.
#[derive(Clone)]
pub struct Arenas {
    regions: Arc<dyn ArenaPool>,
    /// Who counts it for other databases.
    pub shared: Option<Arc<Member>>,
}

impl Arenas {
    /// Those of a database that takes large memtables from `regions`.
    pub fn new(regions: Arc<dyn ArenaPool>, shared: Option<&SharedMemtables>) -> Arenas {
        Arenas { regions, shared: shared.map(SharedMemtables::join) }
    }

    /// Memory for a memtable of about `bytes` bytes, and the bytes that it is to expect: with others about, what it takes
    /// first is small against the bound.
    pub fn of(&self, bytes: u64) -> (Arc<dyn ArenaPool>, u64) {
        let pool = |bytes| match bytes < REGION_MIN {
            true => Arc::new(HeapPool) as Arc<dyn ArenaPool>,
            false => self.regions.clone(),
        };
        let Some(member) = &self.shared else { return (pool(bytes), bytes) };
        let limit = match member.pot.limit.load(Ordering::Relaxed) {
            0 => u64::MAX,
            limit => limit,
        };
        let each = limit / FIRST_PIECES / member.pot.count.load(Ordering::Relaxed).max(1);
        let bytes = bytes.min(each);
        let (pool, member) = (pool(bytes), member.clone());
        (Arc::new(Counted { pool, member, bytes: AtomicU64::new(0) }), bytes)
    }
}

/// The memory of one memtable, counted from the first piece on until it is given back.
struct Counted {
    pool: Arc<dyn ArenaPool>,
    member: Arc<Member>,
    bytes: AtomicU64,
}

impl ArenaPool for Counted {
    fn chunk(&self, bytes: usize) -> Result<Box<dyn ArenaChunk>, OutOfMemory> {
        let chunk = self.pool.chunk(bytes)?;
        self.bytes.fetch_add(chunk.bytes() as u64, Ordering::Relaxed);
        self.member.take(chunk.bytes() as u64);
        Ok(chunk)
    }
    fn granule(&self) -> usize {
        self.pool.granule()
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.member.give_back(self.bytes.load(Ordering::Relaxed));
    }
}
