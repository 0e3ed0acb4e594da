//! Two-phase commit: what a transaction would write goes into the log as a section, durable and not visible, and
//! what comes of it follows.
//!
//! Keeps: a section is in the log of a number that [`Prepared`](lithify_files::wal::Prepared) knows before
//! another write is made; that a transaction is over is noted there under the turn that logs it, so that a copy made
//! under the turn has it either way, once.
//! Leaves to others: which logs stay for that; names and locks of transactions (`lithify_layers`).

use lithify_base::Result;
use lithify_env::sync::atomic::Ordering;
use lithify_journal::wal::{BatchBuilder, BatchView};

use super::{Held, Own};
use crate::options::WriteOptions;
use crate::settings::Durability;
use crate::shell::Shell;
use lithify_writes::batch::Batch;

impl Shell {
    /// Writes `batch` into the log as what transaction `name` would write. No read sees it.
    ///
    /// # Errors
    /// `InvalidArgument` if another one is prepared under that name; else as
    /// [`write_batch`](Shell::write_batch).
    pub fn prepare(&self, name: &[u8], batch: &Batch, options: &WriteOptions) -> Result<()> {
        let prepared = &self.shared.writes.prepared;
        let own = batch.encoded();
        self.check_batch(own)?;
        let kept = own.copied()?;
        let section = BatchBuilder::section(own, name)?;
        let mut held = Held::new(self, self.take_turn()?);
        self.pass_gates(&mut held, Own::Batch(own), options.no_wait)?;
        let log = held.log();
        self.check_replaced(log, options.no_wait)?;
        prepared.check_free(name)?;
        // What is prepared fills no memtable, but the log.
        self.make_room(log)?;
        log.group = section;
        self.log_group(log, self.logged(options))?;
        prepared.begin(name, log.wal_number.0, kept);
        Ok(())
    }

    /// Writes `batch`, if there is one, as what transaction `name` commits, or rolls it back. It is not prepared any
    /// more then.
    ///
    /// # Errors
    /// As [`write_batch`](Shell::write_batch): it stays prepared. With `OutcomeUnknown` the next open shows what came
    /// of it.
    pub fn end_prepared(
        &self,
        name: &[u8],
        batch: Option<&Batch>,
        options: &WriteOptions,
    ) -> Result<()> {
        let prepared = &self.shared.writes.prepared;
        let mut end = BatchBuilder::new();
        end.try_reserve(1, name.len() + batch.map_or(0, Batch::byte_len))?;
        end.end_prepared(name);
        batch.into_iter().for_each(|batch| end.append(batch.encoded()));
        let options = WriteOptions { durability: Some(self.logged(options)), ..*options };
        let section = prepared.section(name);
        let over = || {
            prepared.end(name, self.shared.writes.log_now.load(Ordering::Acquire));
            Ok(())
        };
        let not_over = || section.into_iter().for_each(|section| prepared.reopen(name, section));
        self.write_if(&end, &options, over, not_over)
    }

    /// What was prepared under `name` and is not over; nothing if there is none.
    ///
    /// # Errors
    /// `LimitExceeded` without memory for a copy.
    pub fn prepared(&self, name: &[u8]) -> Result<Batch> {
        let section = self.shared.writes.prepared.section(name);
        let writes = section.map(|section| section.writes().copied()).transpose()?;
        Ok(Batch::of(writes.unwrap_or_default()))
    }

    /// Gives `each` the name and the writes of what was prepared and is not over.
    pub fn each_prepared(&self, mut each: impl FnMut(&[u8], &BatchView<'_>)) {
        for (name, section) in self.shared.writes.prepared.open() {
            each(&name, &section.writes().view());
        }
    }

    /// What the log does not hold is not prepared, whatever other writes do.
    fn logged(&self, options: &WriteOptions) -> Durability {
        self.durability(options).max(Durability::Buffered)
    }
}
