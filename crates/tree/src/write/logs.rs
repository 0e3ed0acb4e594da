//! Logs from their beginning to their end, and what happens when one fails.
//!
//! A log whose sync failed, or that could not be cut back after a failed write, is *lost*: no one knows which of its bytes
//! a reopen will find, and syncing them again would prove nothing, as the system may have forgotten them. All that was
//! acknowledged is still in memtables; these are flushed, and the edit of the last flush says that no log up to the lost
//! one counts any more. From then on the write that met the failure can never appear, and the next one begins a new log. If
//! that fails, too, its outcome is unknown. Where only space is missing, the flush is tried again and again; until it works
//! the log is *given up but not replaced*, and writes fail before anything of them exists: behind a lost log nothing could
//! be promised. Any other failure ends writing.
//!
//! ```text
//!   7.log  acked, acked, group?     sync fails
//!   7.sst  acked, acked             written, synced
//!   MANIFEST  +7.sst, logs from 9   synced: 7.log is never read again -> NotCommitted
//! ```
//! An ended log is made durable and closed in the background once that is asked for: by a synced write, a new family, a close,
//! or the edit of a flush. If all it held is in tables before, as it is where a program does not sync, then it is closed as it
//! is, and deleted: its bytes need not go to the disk at all. However slow syncs are, no more logs are open than those that
//! count, and one.
//!
//! With several families the edit of a flush waits until every log below its own is durable, and the flushes that replace a
//! lost log are of all families, with edits that take effect together (`docs/internals/families.md`). Where a log fails
//! that was being closed, or while transactions are prepared, that ends writing, and what the log holds shows at the next
//! open.
//!
//! Keeps: no sync is repeated on a lost log. A synced write is acknowledged only when every log before its own is durable,
//! or all that log held is in tables. No write follows a lost log that still counts.
//! Leaves to others: what goes into a log (`write`), its bytes (`lithify_files::wal`).

use lithify_base::zoo::{self, Bug};
use lithify_base::{Error, ErrorKind, Result};
use lithify_control::MemId;
use lithify_env::sync::Arc;
use lithify_env::sync::atomic::Ordering;
use lithify_files::wal::WalWriter;

use super::ended::Ended;
use super::log::{Closing, GivenUp, Log};
use super::room::fresh_memtables;
use crate::family::OpenFamily;
use crate::shell::Shell;
use lithify_writes::errors::{self, Full};

impl Shell {
    /// Begins the log of the active memtable. If that fails, its number is burnt and nothing of
    /// the write exists.
    pub(super) fn create_wal(&self, log: &mut Log) -> Result<WalWriter> {
        let number = log.wal_number;
        let made = match log.made.take() {
            Some(made) => Ok(made),
            None => self.shared.resources.new_log(number),
        };
        match made {
            Ok(made) => {
                self.shared.log_made(number);
                Ok(WalWriter::begin(made, log.before.as_ref(), log.next_seq - 1))
            }
            Err(e) => {
                log.wal_number = self.shared.next_file();
                // Logs have rising numbers.
                log.next_wal = None;
                self.shared.writes.log_now.store(log.wal_number.0, Ordering::Release);
                Err(errors::not_begun(e))
            }
        }
    }

    /// Ends the part of the log of the active memtable. It is made durable when that is asked for, and at once where it will be:
    /// by a program that syncs, and by the edits of flushes where there are several families. Otherwise its memtable is
    /// flushed meanwhile, and writing its bytes once more would only keep the disk from that.
    pub(super) fn close_wal(&self, log: &mut Log, mut wal: WalWriter) {
        log.closing.retain(|c| !c.ended.is_over());
        let before = log.closing.last().map(|c| c.ended.done().clone());
        let end = wal.end().expect("a log that has ended says so again");
        let at_once = wal.synced() > 0 || !log.is_alone();
        let closing = Closing { mem: log.families[0].id, end, ended: Ended::new(wal, before) };
        let number = closing.end.number();
        self.shared.log_ended(number, &closing.ended);
        log.forget_unneeded(&self.shared.writes.prepared);
        log.kept.push_back((number.0, closing.end.record.size));
        log.closing.push(closing.clone());
        if at_once {
            self.begin_closing(log);
        }
        let mut all = self.shared.writes.closing.lock();
        all.retain(|c| !c.ended.is_over());
        all.push(closing);
    }

    /// Has the logs of earlier memtables made durable in the background.
    fn begin_closing(&self, log: &Log) {
        log.closing.iter().for_each(|c| c.ended.begin(&self.shared.resources.env.rt));
    }

    /// Waits until the writes in the logs of earlier memtables are on stable storage: a synced
    /// write promises everything before it, too. What a lost log held is so once it is in tables.
    ///
    /// # Errors
    /// As [`Shell::replace_log`], if they are not.
    pub(crate) fn sync_closing(&self, log: &mut Log) -> Result<()> {
        self.begin_closing(log);
        let all = std::mem::take(&mut log.closing);
        for closing in &all {
            self.shared.resources.env.rt.park(closing.ended.done(), None);
        }
        if log.given_up.is_some() && log.refused().is_none() {
            return self.wait_replaced(log);
        }
        for closing in all {
            if let Err(lost) = closing.ended.result() {
                self.note("log_lost", &[("cause", lost.to_string().into())]);
                if !log.is_alone() {
                    return Err(self.not_replaced(log, lost, &errors::several()));
                }
                self.check_nothing_prepared()
                    .map_err(|e| self.not_replaced(log, lost.clone(), &e))?;
                let shell = self.shared.shell(log.families[0].family.clone());
                if let Err(e) = shell.wait_flushed(Some(closing.mem)) {
                    // The log of now follows the lost one, and goes with it.
                    let cause = self.give_up_log(log).err().unwrap_or(e);
                    return Err(self.not_replaced(log, lost, &cause));
                }
                closing.end.set_superseded();
                let others = |c: &Closing| c.end.number() != closing.end.number();
                self.shared.writes.closing.lock().retain(others);
            }
        }
        Ok(())
    }

    /// Gives up the log of the active memtable, which is `lost`, and brings what it holds into
    /// tables. What is not in the memtable yet will never have been.
    ///
    /// # Errors
    /// `OutcomeUnknown` if that fails, too. The database is read-only from now on, unless only space
    /// is missing: then writes go on once the flush has found some.
    pub(crate) fn replace_log(&self, log: &mut Log, lost: Error) -> Result<()> {
        self.note("log_lost", &[("cause", lost.to_string().into())]);
        let replaced = self.give_up_log(log).and_then(|()| self.wait_replaced(log));
        replaced.map_err(|e| self.not_replaced(log, lost, &e))
    }

    /// Freezes the memtables whose log is lost, so that they are flushed: those of all families, even
    /// empty ones, as the edit of a flush says where a family's logs begin. An iterator or a reader
    /// never waits for that; other writers do, as for a stop.
    fn give_up_log(&self, log: &mut Log) -> Result<()> {
        self.recall(log)?;
        self.check_nothing_prepared()?;
        log.wal = None;
        let all: Vec<usize> = (0..log.families.len()).collect();
        let fresh = fresh_memtables(log, &all, &self.shared.resources.arenas)?;
        let mems: Vec<_> = log.families.iter().map(|f| (f.family.clone(), f.id)).collect();
        if !log.is_alone() {
            self.expect_group(log.wal_number, mems.iter().map(|(family, _)| family.cf).collect());
        }
        log.given_up = Some(GivenUp { mems });
        self.swap_memtables(log, fresh);
        Ok(())
    }

    /// What is prepared is in no table, and a log that is lost may be between it and what ends it.
    fn check_nothing_prepared(&self) -> Result<()> {
        match self.shared.needs_sections() {
            false => Ok(()),
            true => Err(errors::prepared()),
        }
    }

    /// All that lost logs held is in tables, and the edit that says so is durable.
    fn log_replaced(&self, log: &mut Log) {
        self.begin_closing(log);
        for closing in log.closing.drain(..) {
            self.shared.resources.env.rt.park(closing.ended.done(), None);
        }
        log.given_up = None;
        self.shared.writes.closing.lock().clear();
        // The next log continues none.
        log.before = None;
        self.note("log_replaced", &[]);
    }

    /// Nothing is written behind a lost log before all it held is in tables.
    ///
    /// # Errors
    /// Why it is not, as yet; nothing of the write exists. `Stalled` if it only takes a moment and
    /// the caller does not want to wait.
    pub(crate) fn check_replaced(&self, log: &mut Log, no_wait: bool) -> Result<()> {
        if zoo::on(Bug::ResumedTooSoon) {
            log.given_up = None;
        }
        while let Some(GivenUp { mems }) = &log.given_up {
            for (family, last) in mems {
                if family.super_version().mems.iter().any(|m| m.id <= *last) {
                    family.gate.check_flushes(no_wait)?;
                }
            }
            // A flush that fails is trouble, which its gate knows.
            let _ = self.wait_replaced(log);
        }
        Ok(())
    }

    /// Waits until all that a log held that was given up is in tables, or a flush fails.
    fn wait_replaced(&self, log: &mut Log) -> Result<()> {
        let Some(GivenUp { mems }) = &log.given_up else { return Ok(()) };
        let shell = |(f, last): &(Arc<OpenFamily>, MemId)| (self.shared.shell(f.clone()), *last);
        let mems: Vec<_> = mems.iter().map(shell).collect();
        self.wait_all_flushed(&mems)?;
        self.log_replaced(log);
        Ok(())
    }

    /// The log may hold the write, or not, and what it held before is not in tables because of
    /// `flush`. The end of writing, unless space is all that is missing.
    fn not_replaced(&self, log: &mut Log, lost: Error, flush: &Error) -> Error {
        let full = flush.kind() == ErrorKind::NoSpace && log.refused().is_none();
        let error = errors::not_replaced(lost, if full { Full::Yes } else { Full::No });
        if !full {
            // A close tells of it again.
            let mems = log.families.iter().map(|f| (f.family.clone(), f.id)).collect();
            log.given_up.get_or_insert(GivenUp { mems });
            self.shared.go_read_only(error.clone());
        }
        error
    }
}
