//! The writes of an open database once more, out of its logs: from a number on, in the order in which they
//! became visible, each commit group whole.
//!
//! What is read are the logs that may still be needed. A log goes once all it held is in tables, so a
//! reader that lags behind a flush meets a gap, which is an error, never a skipped write; so are writes
//! that skipped the log.
//!
//! ```text
//!   published 9; 12.log holds 4..9       since 5: the group that holds 5, and what follows
//!                                        since 2: gap (4 is the first there is)
//! ```
//! Keeps: numbers of what is handed out follow each other without a hole. Nothing that readers cannot see
//! yet is shown. A log that was lost is not read: a write that failed may stand in it.
//! Leaves to others: the form of a log (`lithify_journal::wal`), deleting logs (`upkeep`).

use std::collections::VecDeque;

use lithify_base::{Error, ErrorKind, Result, Seq, shown_path};
use lithify_files::dir::FileName;
use lithify_files::wal::LOG_MAX;
use lithify_journal::wal::tail::LoggedBatch;
use lithify_journal::wal::{SeqRule, WalWalk};
use lithify_writes::batch::Batch;

use crate::shell::Shell;
use crate::write::Held;

/// Bytes of groups that are taken out of a log at a time. A log is read whole for that, so what a reader
/// holds meanwhile is about a memtable.
const AHEAD: usize = 8 << 20;

/// A reader of the writes from a number on. Its iteration ends where the database is now; asked again
/// later, it goes on with what was written since.
pub struct Updates {
    shell: Shell,
    /// Number of the next write to hand out.
    next: Seq,
    /// Nothing was handed out yet, so that the first group may begin before `next`.
    first: bool,
    /// Taken out of the logs, and not handed out.
    ahead: VecDeque<(Seq, Batch)>,
    /// It met an error, which ends it.
    over: bool,
}

impl Shell {
    /// A reader of the writes from number `since` on, of all families.
    ///
    /// # Errors
    /// `NotFound` if no write has this number yet, or the logs hold it no more; `ReadOnly` for a handle
    /// that only reads; `Io`, `Corruption` of a log.
    pub fn updates(&self, since: Seq) -> Result<Updates> {
        self.check_open()?;
        if self.shared.is_read_only_handle() {
            let what = "a handle that only reads has no logs of its own; open it with `open`";
            return Err(Error::new(ErrorKind::ReadOnly, what));
        }
        let published = self.published();
        if since > published {
            let what = format!(
                "there is no write number {since} yet; the last one is {published}: ask again later"
            );
            return Err(Error::new(ErrorKind::NotFound, what));
        }
        let mut updates = Updates {
            shell: self.clone(),
            // Numbers begin with 1.
            next: since.max(1),
            first: true,
            ahead: VecDeque::new(),
            over: false,
        };
        // A gap is told at once, where the caller can still begin otherwise.
        updates.read_ahead()?;
        Ok(updates)
    }

    /// Numbers of the logs that may be read, oldest first, with all they hold in their files; and the last
    /// number that is visible.
    fn readable_logs(&self) -> Result<(Vec<u64>, Seq)> {
        let mut held = Held::new(self, self.take_turn()?);
        let log = held.log();
        if log.given_up.is_some() {
            let what = "a log was lost, and what it held is on its way into tables; try again";
            return Err(Error::new(ErrorKind::Stalled, what));
        }
        if let Some(wal) = &mut log.wal {
            wal.write_out()?;
        }
        let first = self.shared.first_log();
        let logs = self.shared.writes.logs.lock();
        let numbers = logs.iter().map(|log| log.number.0).filter(|number| *number >= first);
        let numbers = numbers.collect();
        drop(logs);
        Ok((numbers, self.published()))
    }
}

impl Updates {
    /// Takes more groups out of the logs, if there are some.
    fn read_ahead(&mut self) -> Result<()> {
        self.shell.check_open()?;
        if self.next > self.shell.published() {
            return Ok(());
        }
        let (logs, published) = self.shell.readable_logs()?;
        let (mut next, mut bytes) = (self.next, 0);
        for number in logs {
            let file = FileName::Wal(number);
            // One that is gone meanwhile held nothing that is needed, or leaves a gap.
            let dir = self.shell.shared.resources.dir.clone();
            let Some(read) = dir.read_sparse(file, LOG_MAX)? else { continue };
            let mut walk = WalWalk::over(read.bytes(), number, SeqRule::Rising);
            while let Some(batch) = walk.next_batch()? {
                let end = batch.first_seq.saturating_add(u64::from(batch.count));
                if end <= next || batch.count == 0 {
                    continue;
                }
                if end > published.saturating_add(1) {
                    return Ok(());
                }
                let fits = batch.first_seq == next
                    || (self.first && next == self.next && batch.first_seq < next);
                if !fits {
                    return self.gap(batch.first_seq);
                }
                if bytes > AHEAD {
                    return Ok(());
                }
                bytes += batch.record.payload.len();
                self.take(&batch).map_err(|e| e.in_file(shown_path(&dir.path_of(file))))?;
                next = end;
            }
        }
        match self.ahead.is_empty() {
            true => self.gap(published.saturating_add(1)),
            false => Ok(()),
        }
    }

    fn take(&mut self, batch: &LoggedBatch<'_>) -> Result<()> {
        let taken = Batch::from_encoded(&batch.record.payload)?;
        self.ahead.push_back((batch.first_seq, taken));
        Ok(())
    }

    /// What comes next is in no log. What was taken out before is handed out first.
    fn gap(&self, there: Seq) -> Result<()> {
        if !self.ahead.is_empty() {
            return Ok(());
        }
        let what = format!(
            "the logs hold write {} no more, and go on with {there}: it went into a table, or skipped \
             the log; take a checkpoint and begin with its number",
            self.next
        );
        Err(Error::new(ErrorKind::NotFound, what))
    }
}

impl Iterator for Updates {
    /// The number of a commit group's first write, and its writes.
    type Item = Result<(Seq, Batch)>;

    fn next(&mut self) -> Option<Result<(Seq, Batch)>> {
        if self.over {
            return None;
        }
        if self.ahead.is_empty()
            && let Err(error) = self.read_ahead()
        {
            self.over = true;
            return Some(Err(error));
        }
        let (first, batch) = self.ahead.pop_front()?;
        self.next = first + batch.len() as u64;
        self.first = false;
        Some(Ok((first, batch)))
    }
}

impl std::fmt::Debug for Updates {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Updates(from {})", self.next)
    }
}
