//! The writes of an open database once more, out of its logs: from a number on, in the order in which they
//! became visible, each commit group whole.
//!
//! What is read are the logs that may still be needed. A log goes once all it held is in tables, so a
//! reader that lags behind a flush meets a gap, which is an error, never a skipped write; so are writes
//! that skipped the log. Damage below what was synced is an error of its own, as the writes behind it are lost.
//!
//! ```text
//!   published 9; 12.log holds 4..9       since 5: the group that holds 5, and what follows
//!                                        since 2: gap (4 is the first there is)
//! ```
//! Keeps: numbers of what is handed out follow each other without a hole. Nothing that readers cannot see
//! yet is shown. A log that was lost is not read: a write that failed may stand in it.
//! Leaves to others: which logs there are (`lithify_tree`), the form of a log (`lithify_journal::wal`).

use std::collections::VecDeque;

use lithify_base::{Error, ErrorKind, FileId, Result, Seq, shown_path};
use lithify_files::dir::FileName;
use lithify_files::wal::read_log;
use lithify_journal::wal::tail::LoggedBatch;
use lithify_journal::wal::{Promise, SeqRule, WalWalk};
use lithify_tree::{Batch, ReadableLogs, Shell};

use crate::batch::WriteBatch;
use crate::db::Db;

/// Bytes of groups that are taken out of a log at a time. A log is read whole for that, so what a reader
/// holds meanwhile is about a memtable.
const AHEAD: usize = 8 << 20;

/// The writes from a number on: see [`Db::updates_since`]. Its iteration ends where the database is now; asked
/// again later, it goes on with what was written since.
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

impl Db {
    /// The writes of all column families from number `since` on, in the order in which they became visible,
    /// out of the logs: for copies of the database elsewhere. Each write has a number; a batch takes as many
    /// as it has entries. The first batch is the one that has `since` in it.
    ///
    /// The logs go back to the oldest write that is in no table yet. What was flushed, or skipped the log,
    /// is missing there, and that is an error, never a gap: take a checkpoint then, and begin behind its
    /// [last number](crate::Stats::last_sequence). Writers that wrote at the same time may be in one batch.
    ///
    /// ```
    /// # fn main() -> lithify::Result<()> {
    /// # let dir = std::env::temp_dir().join(format!("lithify-updates-{}", std::process::id()));
    /// # let db = lithify::Db::open(&dir, lithify::Settings::default())?;
    /// use lithify::BatchEntry;
    ///
    /// let seen = db.snapshot().sequence();
    /// db.put(b"apple", b"red")?;
    /// let mut updates = db.updates_since(seen + 1)?;
    /// let (number, batch) = updates.next().unwrap()?;
    /// assert_eq!(number, seen + 1);
    /// assert!(batch.entries().eq([BatchEntry::Put(0, b"apple", b"red")]));
    /// assert!(updates.next().is_none()); // until there is more:
    /// db.delete(b"apple")?;
    /// assert_eq!(updates.next().unwrap()?.0, seen + 2);
    /// # db.close()?;
    /// # std::fs::remove_dir_all(&dir).ok();
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `NotFound` if there is no such write yet, or not in the logs any more; `ReadOnly` for a handle that
    /// only reads; `Stalled` while a log that was lost is replaced; `Corruption` if it stood in a part of a log
    /// that was synced and is damaged; `Io`.
    pub fn updates_since(&self, since: u64) -> Result<Updates> {
        let logs = self.shell.readable_logs()?;
        if since > logs.published {
            let what = format!(
                "there is no write number {since} yet; the last one is {}: ask again later",
                logs.published
            );
            return Err(Error::new(ErrorKind::NotFound, what));
        }
        let mut updates = Updates {
            shell: self.shell.clone(),
            // Numbers begin with 1.
            next: since.max(1),
            first: true,
            ahead: VecDeque::new(),
            over: false,
        };
        // A gap is told at once, where the caller can still begin otherwise.
        updates.read_ahead(&logs)?;
        Ok(updates)
    }
}

impl Updates {
    /// Looks into the logs if there is something new.
    fn read_more(&mut self) -> Result<()> {
        self.shell.check_open()?;
        if self.next > self.shell.published() {
            return Ok(());
        }
        let logs = self.shell.readable_logs()?;
        self.read_ahead(&logs)
    }

    /// Takes more groups out of `logs`, if there are some.
    fn read_ahead(&mut self, logs: &ReadableLogs) -> Result<()> {
        let ReadableLogs { dir, numbers, published } = logs;
        if self.next > *published {
            return Ok(());
        }
        let (mut next, mut bytes, mut rot) = (self.next, 0, None);
        for &number in numbers {
            let file = FileName::Wal(number);
            // One that is gone meanwhile held nothing that is needed, or leaves a gap.
            let Some(read) = read_log(dir, FileId(number))? else { continue };
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
                    return self.gap(batch.first_seq, rot);
                }
                if bytes > AHEAD {
                    return Ok(());
                }
                bytes += batch.record.payload.len();
                self.take(&batch).map_err(|e| e.in_file(shown_path(&dir.path_of(file))))?;
                next = end;
            }
            // It hides no write that is in a later log.
            if let Err(e) = walk.verdict(&Promise::default()).into_result(0) {
                rot = Some(e.in_file(shown_path(&dir.path_of(file))));
            }
        }
        match self.ahead.is_empty() {
            true => self.gap(published.saturating_add(1), rot),
            false => Ok(()),
        }
    }

    fn take(&mut self, batch: &LoggedBatch<'_>) -> Result<()> {
        let taken = Batch::of_logged(&batch.view()?, &batch.record.payload)?;
        self.ahead.push_back((batch.first_seq, taken));
        Ok(())
    }

    /// What comes next is in no log, or behind `rot` in one. What was taken out before is handed out first.
    fn gap(&self, there: Seq, rot: Option<Error>) -> Result<()> {
        if !self.ahead.is_empty() {
            return Ok(());
        }
        if let Some(rot) = rot {
            return Err(rot);
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
    /// The number of the first write of a batch, and the batch.
    type Item = Result<(u64, WriteBatch)>;

    /// The next batch; `None` if there is none yet. After an error, which ends it, there is none.
    fn next(&mut self) -> Option<Result<(u64, WriteBatch)>> {
        if self.over {
            return None;
        }
        if self.ahead.is_empty()
            && let Err(error) = self.read_more()
        {
            self.over = true;
            return Some(Err(error));
        }
        let (first, batch) = self.ahead.pop_front()?;
        self.next = first + batch.len() as u64;
        self.first = false;
        Some(Ok((first, WriteBatch::of(batch))))
    }
}

impl std::fmt::Debug for Updates {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Updates(from {})", self.next)
    }
}
