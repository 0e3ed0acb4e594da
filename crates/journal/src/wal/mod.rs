//! The write-ahead log: RocksDB's log records, write batches, seals, and the tail rule.
//!
//! [`record`] turns payloads into 32 KiB blocks and back, [`batch`] is the payload of a write,
//! [`seal`] holds the two payloads that bind a log to itself and to its predecessor, and
//! [`tail`] walks a whole log and decides where it ends: cleanly, torn, or corrupt.
//!
//! Keeps: everything is a pure function of bytes. The manifest uses the same records.
//! Leaves to others: files, syncing, group commit, replay into memtables.

pub mod batch;
pub mod bytes;
pub mod reader;
pub mod record;
pub mod seal;
mod sections;
pub mod tail;

pub use batch::{BatchBuilder, BatchMark, BatchOp, BatchView, Mark, Op};
pub use bytes::{LogBytes, Stretch};
pub use reader::{Found, Record, RecordKind, RecordReader};
pub use record::RecordWriter;
pub use seal::{Predecessor, Seal, SealReason};
pub use sections::Sections;
pub use tail::{Damage, Promise, SeqRule, Verdict, WalWalk, What};
