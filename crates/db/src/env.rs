//! The world that a database lives in: its files, its threads and its clock. [`Builder::env`] takes
//! another one than this machine's, [`Env::in_memory`] for tests or one that a program implements.
//!
//! [`Builder::env`]: crate::Builder::env

pub use lithify_env::{
    Advice, Class, DirEnt, EntryKind, Env, File, FileRef, Fs, FsRef, IoError, IoResult, Job,
    LockGuard, MemFs, Mono, OpenOpts, OsRt, PosixFs, Rt, RtOptions, RtRef, SharedUrgency, Step,
    Ticket, Urgency, Wake,
};
