//! Transactions that are prepared and not over: what each would write, and which log says so.
//!
//! What is prepared is durable without being visible, so no table will ever hold it: the log that does must stay
//! until the transaction is over, and durably so. Its end stands in a log, too, and counts as durable once no family
//! needs that log any more.
//!
//! ```text
//!   5.log  [prepared "pay"]  puts       its puts are flushed: families need logs from 6 on, "pay" needs 5
//!   6.log  [ended "pay" | ...]  puts    5 stays: a crash may still take away what 6 says of "pay"
//!   7.log                               all of 6 is flushed: 5 and 6 go with the next edit
//! ```
//! The manifest says from which log on sections count, and a log is deleted only once it says so.
//!
//! Keeps: names are unique among what is open. A log that holds an open section is never below
//! [`Prepared::kept_from`].
//! Leaves to others: writing logs and manifest (`lithify_tree`), what transactions are (`lithify_layers`).

use std::collections::BTreeMap;

use lithify_base::zoo::{self, Bug};
use lithify_base::{Error, Result, Seq, memory};
use lithify_env::sync::{Arc, Mutex};
use lithify_journal::wal::{BatchBuilder, RecordWriter};

/// Those of one database.
#[derive(Debug, Default)]
pub struct Prepared(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    open: BTreeMap<Vec<u8>, Section>,
    /// Of each that is over, the log that holds its section, and the newest that may say how it ended.
    over: Vec<(u64, u64)>,
    /// What the manifest says: the first log that holds a section; 0 for none.
    told: u64,
}

/// What was prepared under a name, and which log holds it.
#[derive(Clone, Debug)]
pub struct Section {
    log: u64,
    writes: Arc<BatchBuilder>,
}

impl Section {
    /// What the transaction would write.
    pub fn writes(&self) -> &BatchBuilder {
        &self.writes
    }
}

impl Prepared {
    /// Refuses a name that another one has.
    ///
    /// # Errors
    /// `InvalidArgument`.
    pub fn check_free(&self, name: &[u8]) -> Result<()> {
        if !self.0.lock().open.contains_key(name) {
            return Ok(());
        }
        Err(Error::invalid(format!(
            "another transaction is prepared as \"{}\"; commit or roll back that one, or take another name",
            name.escape_ascii()
        )))
    }
    /// Notes that log `log` holds what the transaction `name` would write.
    pub fn begin(&self, name: &[u8], log: u64, writes: BatchBuilder) {
        let section = Section { log, writes: Arc::new(writes) };
        self.0.lock().open.insert(name.to_vec(), section);
    }
    /// Notes that `name` is over, and that a log up to `log` says so.
    pub fn end(&self, name: &[u8], log: u64) {
        let mut state = self.0.lock();
        if let Some(open) = state.open.remove(name) {
            state.over.push((open.log, log));
        }
    }
    /// What is open under `name`.
    pub fn section(&self, name: &[u8]) -> Option<Section> {
        self.0.lock().open.get(name).cloned()
    }
    /// Notes that `name` is not over after all.
    pub fn reopen(&self, name: &[u8], section: Section) {
        self.0.lock().open.insert(name.to_vec(), section);
    }
    /// True if none is open.
    pub fn is_empty(&self) -> bool {
        self.0.lock().open.is_empty()
    }
    /// How many are open.
    pub fn len(&self) -> usize {
        self.0.lock().open.len()
    }
    /// What is open, by name.
    pub fn open(&self) -> Vec<(Vec<u8>, Section)> {
        let state = self.0.lock();
        state.open.iter().map(|(name, section)| (name.clone(), section.clone())).collect()
    }
    /// The first log that a transaction needs while families need those from `needed` on; 0 for none.
    pub fn first_log(&self, needed: u64) -> u64 {
        if zoo::on(Bug::PreparedLogGone) {
            return 0;
        }
        let mut state = self.0.lock();
        state.over.retain(|(_, ended)| *ended >= needed && !zoo::on(Bug::EndForgotten));
        let over = state.over.iter().map(|(log, _)| *log);
        state.open.values().map(|open| open.log).chain(over).min().unwrap_or(0)
    }
    /// Notes what the manifest says durably.
    pub fn tell(&self, first_log: u64) {
        self.0.lock().told = first_log;
    }
    /// Log `number` holds all that is open, and the manifest says so.
    pub fn moved_to(&self, number: u64) {
        let mut state = self.0.lock();
        state.open.values_mut().for_each(|open| open.log = number);
        state.told = number;
    }
    /// The first log that stays while families need those from `needed` on.
    pub fn kept_from(&self, needed: u64) -> u64 {
        let told = self.0.lock().told;
        let needs = |log: u64| if log == 0 { needed } else { log.min(needed) };
        needs(told).min(needs(self.first_log(needed)))
    }

    /// A log of all open sections and nothing else, behind write `last`; `None` if there are none.
    ///
    /// # Errors
    /// `LimitExceeded` if there is no memory.
    pub fn log(&self, last: Seq) -> Result<Option<Vec<u8>>> {
        let open = self.open();
        let (mut records, mut bytes) = (RecordWriter::new(), Vec::new());
        for (name, section) in &open {
            let mut section = BatchBuilder::section(section.writes(), name)?;
            section.set_sequence(last + 1);
            let room = RecordWriter::max_encoded_len(section.byte_len());
            memory::reserve(&mut bytes, room, "a log of what is prepared")?;
            records.append(section.as_bytes(), &mut bytes);
        }
        Ok((!open.is_empty()).then_some(bytes))
    }
}

#[cfg(test)]
mod tests;
