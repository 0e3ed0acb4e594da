//! Sections of prepared transactions while logs are read: which are open, and what takes effect when.
//!
//! ```text
//!   [begin | put a 1 | prepared "pay"]   open: pay
//!   [put b 2, committed "pay"]           takes effect: put b 2, put a 1
//!   [ended "pay"]                        open: none; a mark of a name that is not open says nothing
//! ```
//! Keeps: what a batch brings into effect is in its own order, and numbered from its own number on.
//! Leaves to others: which logs are read, and from where on. A section whose log is not needed any more may be
//! missing: what it committed is in tables.

use std::collections::BTreeMap;

use lithify_base::{Error, MAX_SEQ, Result};

use super::batch::{BatchBuilder, BatchView, Mark, Op};

/// What is prepared, by the name of its transaction.
#[derive(Debug, Default)]
pub struct Sections(BTreeMap<Vec<u8>, BatchBuilder>);

impl Sections {
    /// Takes note of the marks of `batch`, the next one of the logs. What takes effect with it; `None` for
    /// one without marks: its entries.
    ///
    /// # Errors
    /// `LimitExceeded` if there is no memory; `Corruption` for numbers that can't be.
    pub fn take(&mut self, batch: &BatchView<'_>) -> Result<Option<BatchBuilder>> {
        if !batch.is_marked() {
            return Ok(None);
        }
        let mut effect = BatchBuilder::new();
        effect.set_sequence(batch.sequence());
        // What stands in a section goes there.
        let mut section: Option<BatchBuilder> = None;
        for op in batch.iter_all() {
            match op {
                Op::Mark(Mark::Begin) => section = Some(BatchBuilder::new()),
                Op::Mark(Mark::Prepared(name)) => {
                    self.0.insert(name.to_vec(), section.take().unwrap_or_default());
                }
                Op::Mark(Mark::Committed(name)) => {
                    if let Some(section) = self.0.remove(name) {
                        effect.try_reserve(section.count() as usize, section.byte_len())?;
                        effect.append(&section);
                    }
                }
                Op::Mark(Mark::Ended(name)) => drop(self.0.remove(name)),
                Op::Write(op) => {
                    let to = section.as_mut().unwrap_or(&mut effect);
                    to.try_reserve(1, op.key.len() + op.value.len())?;
                    to.add(&op);
                }
                Op::LogData(note) => {
                    let to = section.as_mut().unwrap_or(&mut effect);
                    to.try_reserve(1, note.len())?;
                    to.log_data(note);
                }
            }
        }
        if effect.sequence() + u64::from(effect.count()) > MAX_SEQ + 1 {
            let what = "what a prepared transaction commits has numbers beyond the largest";
            return Err(Error::corruption(what));
        }
        Ok(Some(effect))
    }

    /// What is open, by name.
    pub fn into_open(self) -> BTreeMap<Vec<u8>, BatchBuilder> {
        self.0
    }
    /// Names of those that are open.
    pub fn names(&self) -> impl Iterator<Item = &[u8]> {
        self.0.keys().map(Vec::as_slice)
    }
}

#[cfg(test)]
mod tests;
