//! The logs that may be read once more, as they are now.
//!
//! Keeps: a log that was lost is not among them, since a write that failed may stand in it.
//! Leaves to others: reading them (`Updates` of `lithify`), deleting them (`upkeep`).

use lithify_base::{Error, ErrorKind, Result, Seq};
use lithify_files::Dir;

use crate::shell::Shell;
use crate::write::Held;

/// Logs with all that was written to them in their files.
pub struct ReadableLogs {
    /// Where they lie.
    pub dir: Dir,
    /// Their numbers, oldest first.
    pub numbers: Vec<u64>,
    /// The last number that is visible.
    pub published: Seq,
}

impl Shell {
    /// The logs that may still be needed. One may go at any time, as all it held is in tables.
    ///
    /// # Errors
    /// `ShuttingDown`; `ReadOnly` for a handle that only reads; `Stalled` while a log that was lost is
    /// replaced; `Io` if what was gathered can't be written.
    pub fn readable_logs(&self) -> Result<ReadableLogs> {
        self.check_open()?;
        if self.shared.is_read_only_handle() {
            let what = "a handle that only reads has no logs of its own; open it with `open`";
            return Err(Error::new(ErrorKind::ReadOnly, what));
        }
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
        let dir = self.shared.resources.dir.clone();
        Ok(ReadableLogs { dir, numbers, published: self.published() })
    }
}
