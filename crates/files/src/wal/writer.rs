//! One open log: commit groups in, log records out, with seals between them.
//!
//! [`append`](WalWriter::append) gathers in memory, [`write_out`](WalWriter::write_out) hands
//! everything gathered to the operating system in one call, [`sync`](WalWriter::sync) makes it
//! durable.
//!
//! Keeps: the file holds whole groups in order. A write that fails is cut off again, so the group
//! it was for can never become visible and the next one may succeed. A failed sync is final: the
//! log is *poisoned*, every later call fails, and nothing is synced twice.
//! Leaves to others: who may write (one thread at a time), and what to do with a poisoned log.
//!
//! ```text
//!   append(1..3)  append(4)      write_out          append(5..6)       write_out fails
//!   file |                       file | 1..3 | 4    file | 1..3 | 4    file | 1..3 | 4   (cut)
//!   buf  | 1..3 | 4              buf  |             buf  | 5..6        buf  |            (undone)
//! ```
//! Groups that were acknowledged while still gathered ([`keep`](WalWriter::keep)) stay in the
//! buffer after a failure and go out with the next write: order holds at every level.

use lithify_base::zoo::{self, Bug};
use lithify_base::{Error, ErrorKind, FileId, Result, Seq, memory};
use lithify_env::sync::Arc;
use lithify_env::{FileRef, IoError, OpenOpts, write_all_at};
use lithify_journal::wal::batch::BATCH_HEADER;
use lithify_journal::wal::record::HEADER_SIZE;
use lithify_journal::wal::seal::head_of;
use lithify_journal::wal::{Predecessor, RecordWriter, Seal, SealReason};

use super::chain::{Link, WalEnd};
use crate::dir::{Dir, FileName, typed};

/// Gathered bytes beyond which `append` writes by itself.
const BUFFER_BYTES: usize = 256 << 10;
/// Capacity that the buffer keeps after a write, for the next groups.
const BUFFER_KEPT: usize = 4 * BUFFER_BYTES;
/// Size of a seal record.
pub(super) const SEAL_BYTES: u64 = (HEADER_SIZE + Seal::ENCODED_LEN) as u64;

/// A log being written. Owned by the writer whose turn it is.
#[derive(Debug)]
pub struct WalWriter {
    file: Handle,
    mapped: bool,
    number: FileId,
    records: RecordWriter,
    /// Bytes of the file from `written` on that are still in memory.
    buffer: Vec<u8>,
    /// End of what is in the file: whole records only. A mapped file goes on with zeros.
    written: u64,
    /// Every byte below is durable.
    synced: u64,
    /// The largest promise among this log's seals.
    sealed: u64,
    last_seq: Seq,
    /// What this log's seals say of its predecessor record.
    head: u32,
    /// What `buffer` was before the group that is not acknowledged yet.
    undo: Option<Undo>,
    ended: Option<WalEnd>,
    poison: Option<Error>,
    link: Arc<Link>,
}

/// A log that nothing was written to yet, with a name that is durable. It may be made long before it is begun: a crash
/// in between leaves an empty log, which says nothing.
#[derive(Debug)]
pub struct NewLog {
    number: FileId,
    file: Handle,
    mapped: bool,
}

impl NewLog {
    /// Makes log `number` and its name durable. What is written to a `mapped` one is copied, in place of a call each time.
    ///
    /// # Errors
    /// `Io`, `NoSpace`: there is no such log; trying again is fine.
    pub fn make(dir: &Dir, number: FileId, mapped: bool) -> Result<NewLog> {
        let name = FileName::Wal(number.0);
        let opts = if mapped { OpenOpts::write().mapped() } else { OpenOpts::write() };
        let file = Handle(dir.create_file(name, opts)?);
        if !zoo::on(Bug::NoDirSync)
            && let Err(e) = dir.sync()
        {
            // The name may or may not last; without it a second try can make the file anew.
            let _ = dir.remove(name);
            return Err(e);
        }
        Ok(NewLog { number, file, mapped })
    }
    /// Number of the log.
    pub fn number(&self) -> FileId {
        self.number
    }
}

/// An open file that can be shown.
struct Handle(FileRef);

impl std::fmt::Debug for Handle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.path().fmt(f)
    }
}

/// The writer's state before a group.
#[derive(Clone, Copy, Debug)]
struct Undo {
    buffered: usize,
    records: RecordWriter,
    sealed: u64,
    last_seq: Seq,
}

impl WalWriter {
    /// Begins `log`. `before` is how the log before ended; `last_seq` is the last sequence number given out
    /// before this log (above that of `before` if writes skipped the log). The opening records are gathered,
    /// not written.
    pub fn begin(log: NewLog, before: Option<&WalEnd>, last_seq: Seq) -> WalWriter {
        let NewLog { number, file, mapped } = log;
        let mut wal = WalWriter {
            file,
            mapped,
            number,
            records: RecordWriter::new(),
            buffer: Vec::new(),
            written: 0,
            synced: 0,
            sealed: 0,
            last_seq,
            head: 0,
            undo: None,
            ended: None,
            poison: None,
            link: Link::after(before),
        };
        if let Some(before) = before {
            assert!(before.record.log_number < number.0, "logs are numbered upwards");
            before.record.append(&mut wal.records, &mut wal.buffer);
        }
        wal.head = head_of(&wal.buffer);
        // Marks the log as ours and says where its numbers begin.
        wal.push_seal(SealReason::Group);
        wal
    }

    /// Number of the log.
    pub fn number(&self) -> FileId {
        self.number
    }
    /// Size of the log in bytes, gathered ones included.
    pub fn size(&self) -> u64 {
        self.written + self.buffer.len() as u64
    }
    /// Bytes that are in the file: what a copy may take.
    pub fn written(&self) -> u64 {
        self.written
    }
    /// Every byte below is durable.
    pub fn synced(&self) -> u64 {
        self.synced
    }
    /// Last sequence number in the log, or before it if it is empty.
    pub fn last_seq(&self) -> Seq {
        self.last_seq
    }
    /// True after a failure that leaves the file's content unknown. Nothing can be written any
    /// more.
    pub fn poisoned(&self) -> bool {
        self.poison.is_some()
    }

    /// Gathers one group: `payload` is a batch whose numbers end at `last_seq`. Calls the
    /// operating system only if much was gathered. A seal goes first if more is durable than the
    /// log says so far.
    ///
    /// The group is acknowledged by the next successful [`write_out`](Self::write_out) or
    /// [`sync`](Self::sync), by [`keep`](Self::keep), or by the next `append`.
    ///
    /// # Errors
    /// `NoSpace`, `NotCommitted`: the group is undone. `LimitExceeded` if there is no memory for it:
    /// nothing was gathered. `Internal` if its numbers don't follow
    /// those of the log; nothing was gathered. Else as the log was poisoned.
    pub fn append(&mut self, payload: &[u8], last_seq: Seq) -> Result<()> {
        self.check_open()?;
        let first = first_seq(payload);
        if first != self.last_seq + 1 || last_seq + 1 < first {
            return Err(self.out_of_order(first));
        }
        // Before anything changed: a seal may go first.
        let room = RecordWriter::max_encoded_len(payload.len())
            + RecordWriter::max_encoded_len(Seal::ENCODED_LEN)
            + HEADER_SIZE;
        memory::reserve(&mut self.buffer, room, "the log")?;
        self.undo = Some(Undo {
            buffered: self.buffer.len(),
            records: self.records,
            sealed: self.sealed,
            last_seq: self.last_seq,
        });
        if self.promise() > self.sealed {
            self.push_seal(SealReason::Group);
        }
        self.records.append(payload, &mut self.buffer);
        self.last_seq = last_seq;
        if self.buffer.len() > BUFFER_BYTES { self.write_out() } else { Ok(()) }
    }

    /// Acknowledges what was gathered: a later failure no longer undoes it.
    pub fn keep(&mut self) {
        self.undo = None;
    }

    /// Hands everything gathered to the operating system, in one call.
    ///
    /// # Errors
    /// `NoSpace`, `NotCommitted`: the file is as before and the group that was not acknowledged
    /// is undone; other gathered groups stay gathered. `OutcomeUnknown`: the log is poisoned.
    pub fn write_out(&mut self) -> Result<()> {
        self.check_poison()?;
        if !self.buffer.is_empty() {
            if let Err(e) = write_all_at(&*self.file.0, &self.buffer, self.written) {
                return Err(self.cut_back(e));
            }
            self.written += self.buffer.len() as u64;
            self.buffer.clear();
            self.buffer.shrink_to(BUFFER_KEPT);
        }
        self.undo = None;
        Ok(())
    }

    /// Makes everything appended so far durable.
    ///
    /// # Errors
    /// As [`write_out`](Self::write_out); `OutcomeUnknown` and a poisoned log if the sync fails.
    pub fn sync(&mut self) -> Result<()> {
        self.write_out()?;
        if self.synced == self.written || zoo::on(Bug::AckBeforeFsync) {
            return Ok(());
        }
        let mut synced = self.file.0.sync_data();
        if zoo::on(Bug::SyncAgain) && synced.is_err() {
            synced = self.file.0.sync_data();
        }
        match synced {
            Ok(()) => {
                self.synced = self.written;
                Ok(())
            }
            Err(e) => Err(self.poison_with(e, "the log could not be synced")),
        }
    }

    /// Says that numbers up to `last_seq` were given to writes that skipped the log. Stays
    /// gathered if the next group is undone.
    ///
    /// # Errors
    /// As the log was poisoned; `Internal` if the number is behind the log.
    pub fn seal_gap(&mut self, last_seq: Seq) -> Result<()> {
        self.check_open()?;
        if last_seq < self.last_seq {
            return Err(self.out_of_order(last_seq));
        }
        self.keep();
        self.last_seq = last_seq;
        self.push_seal(SealReason::Group);
        Ok(())
    }

    /// Says what is durable now, for a log that is not written to. No effect if it says so
    /// already. The seal is gathered, not written.
    ///
    /// # Errors
    /// As the log was poisoned.
    pub fn seal_idle(&mut self) -> Result<()> {
        self.check_open()?;
        if self.promise() > self.sealed {
            self.keep();
            self.push_seal(SealReason::Idle);
        }
        Ok(())
    }

    /// Ends the log: writes out what was gathered and says how the log will end once it is
    /// closed. Nothing may be appended from now on, and the next log may begin.
    ///
    /// # Errors
    /// As [`write_out`](Self::write_out); the log has not ended then and nothing is lost.
    pub fn end(&mut self) -> Result<WalEnd> {
        if let Some(end) = &self.ended {
            return Ok(end.clone());
        }
        self.keep();
        self.write_out()?;
        let fill = self.records.fill_before_special(Seal::ENCODED_LEN) as u64;
        let record = Predecessor {
            log_number: self.number.0,
            size: self.written + fill + SEAL_BYTES,
            last_seq: self.last_seq,
        };
        let end = WalEnd { record, link: self.link.clone() };
        self.ended = Some(end.clone());
        Ok(end)
    }

    /// Ends the log if need be, makes it durable, seals it, and makes the seal durable; how many bytes of it are durable now. A
    /// seal that finds no room is left out: every write is durable, which is what counts.
    ///
    /// # Errors
    /// As [`sync`](Self::sync). What was acknowledged at a lower level may be lost.
    pub fn close(mut self) -> Result<u64> {
        let end = self.end()?;
        if zoo::on(Bug::ClosedUnsynced) {
            self.link.set_durable();
            return Ok(self.written);
        }
        self.sync()?;
        self.push_seal(SealReason::Close);
        assert_eq!(self.size(), end.record.size, "the end is where the next log says it is");
        if self.mapped && self.write_out().is_ok() {
            // Zeros that stay behind the end do no harm.
            let _ = self.file.0.set_len(self.written);
        }
        match self.sync() {
            Err(e) if self.poisoned() => return Err(e),
            Ok(()) | Err(_) => self.link.set_durable(),
        }
        Ok(self.synced)
    }

    /// Closes a log that counts no more, because all that it and those before it held is in tables: as
    /// it is, for it will not be read.
    pub fn abandon(self) {
        self.link.set_superseded();
    }

    /// What a seal may promise now: it vouches for the logs before this one, too.
    fn promise(&self) -> u64 {
        if self.synced > 0 && self.link.before_is_durable() { self.synced } else { 0 }
    }

    fn push_seal(&mut self, reason: SealReason) {
        let (at, synced) = (self.size(), self.promise());
        let seal = Seal {
            reason,
            log_number: self.number.0,
            offset: at,
            synced,
            last_seq: self.last_seq,
            head: Some(self.head),
        };
        seal.append(&mut self.records, &mut self.buffer);
        self.sealed = synced;
    }

    /// After a failed write: takes back what it may have left in the file. The cut is durable before the caller hears of
    /// the failure, and before anything is written in its place. A power loss could undo it otherwise: the refused group
    /// would be back, or, with the length of what was written later, one that ends with zeros would be whole.
    fn cut_back(&mut self, cause: IoError) -> Error {
        if self.file.0.set_len(self.written).is_err() {
            return self.poison_with(cause, "the log could not be written, nor cut back");
        }
        if let Err(e) = self.file.0.sync_data() {
            return self.poison_with(e, "a cut of the log could not be synced");
        }
        self.synced = self.written;
        if let Some(undo) = self.undo.take() {
            self.buffer.truncate(undo.buffered);
            self.records = undo.records;
            self.sealed = undo.sealed;
            self.last_seq = undo.last_seq;
        }
        let (kind, what) = if cause.is_no_space() {
            (ErrorKind::NoSpace, "the disk is full and nothing was written; free space, try again")
        } else {
            (ErrorKind::NotCommitted, "the log could not be written and is as before; try again")
        };
        Error::new(kind, what).in_file(self.file.0.path().display()).caused_by(typed(cause))
    }

    fn poison_with(&mut self, cause: IoError, what: &str) -> Error {
        let what = format!("{what}; whether the last writes survive shows at the next open");
        let error = Error::new(ErrorKind::OutcomeUnknown, what)
            .in_file(self.file.0.path().display())
            .caused_by(typed(cause));
        self.poison = Some(error.clone());
        error
    }

    fn check_poison(&self) -> Result<()> {
        self.poison.clone().map_or(Ok(()), Err)
    }

    fn check_open(&self) -> Result<()> {
        self.check_poison()?;
        match self.ended {
            None => Ok(()),
            Some(_) => {
                Err(Error::new(ErrorKind::Internal, format!("log {} has ended", self.number)))
            }
        }
    }

    fn out_of_order(&self, first: Seq) -> Error {
        let last = self.last_seq;
        let what = format!("log {} ends at write {last} and was given {first}", self.number);
        Error::new(ErrorKind::Internal, what)
    }
}

/// First sequence number of a batch.
fn first_seq(payload: &[u8]) -> Seq {
    assert!(payload.len() >= BATCH_HEADER, "a group is a batch");
    payload.first_chunk().map_or(0, |b| u64::from_le_bytes(*b))
}
