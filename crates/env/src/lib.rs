//! The injectable world: files, time, threads, randomness and locks.
//!
//! Every other room meets the machine through the traits of this crate, so that a simulation can
//! put another world behind them: [`Fs`] and [`File`] for storage, [`Rt`] for time, seeds, threads
//! and waiting, [`sync`] for locks and atomics. The real world lives in [`os`], a plain
//! in-memory file system in [`MemFs`]; [`FaultFs`] wraps either to make it misbehave,
//! [`CappedFs`] to keep few files open, [`SharedFs`] to open each once and keep it, and [`WatchedFs`] to know which calls hang.
//!
//! Keeps: no call here holds a lock of this crate across another room's code, but for how urgent a waiting job is and which
//! files a cap on descriptors has to keep, which are asked under one; a failed call is
//! typed as an [`IoError`] that says which operation on which path failed, and nothing is retried
//! behind the caller's back except an interrupted system call, an open in another way where the file system refuses the first,
//! and under a cap an open that found no descriptor.
//!
//! Leaves to others: what files mean, when to sync them, and how to react to a failure.

pub mod buf;
mod capped;
pub mod clock;
pub mod fault;
pub mod fs;
pub mod io;
pub mod limiter;
pub mod mem;
mod oneshot;
pub mod os;
mod pool;
pub mod random;
pub mod region;
pub mod rt;
mod shared;
mod slots;
pub mod sync;
mod ticket;
pub mod watch;

pub use buf::{BufPart, BufPool, IoBuf, Parted};
pub use capped::{CappedFs, Closable};
pub use clock::Mono;
pub use fault::{Fault, FaultFs, Op};
pub use fs::{
    Advice, DirEnt, EntryKind, File, FileRef, Fs, FsRef, IoError, IoResult, LockGuard, Mapped,
    OpenOpts, read_exact_at, read_full_at, write_all_at,
};
pub use io::{PendingIo, Stretch, spawn_read, spawn_write, spawn_write_part};
pub use limiter::{Lane, RateLimiter, Tuning};
pub use mem::MemFs;
pub use oneshot::{Receiver, Sender, oneshot};
pub use os::bytes::{SharedBytes, Slabs, SlotPool};
pub use os::heap::trim_heap;
pub use os::holders::{LockHolder, lock_holders};
pub use os::posix::PosixFs;
pub use os::processors;
pub use os::rt::{OsRt, RtOptions};
pub use pool::OutOfMemory;
pub use random::Random;
pub use region::{Region, RegionPool};
pub use rt::{Class, Job, Rt, RtRef, SharedUrgency, Step, Urgency, Wake, panic_message};
pub use shared::SharedFs;
pub use ticket::Ticket;
pub use watch::{Hanging, WatchedFs};

/// The world one database lives in: its file system and its runtime.
///
/// Cloning is cheap, and every clone is the same world.
#[derive(Clone)]
pub struct Env {
    /// Where the files are.
    pub fs: FsRef,
    /// Who keeps time, hands out seeds and runs background jobs.
    pub rt: RtRef,
}

impl Env {
    /// The real machine: [`PosixFs`] and an [`OsRt`] with worker threads as `options` say.
    pub fn os(options: RtOptions) -> Self {
        Self { fs: sync::Arc::new(PosixFs::new()), rt: sync::Arc::new(OsRt::new(options)) }
    }

    /// Real threads over an empty [`MemFs`]: the usual world of a test.
    pub fn in_memory(options: RtOptions) -> Self {
        Self { fs: sync::Arc::new(MemFs::new()), rt: sync::Arc::new(OsRt::new(options)) }
    }
}
