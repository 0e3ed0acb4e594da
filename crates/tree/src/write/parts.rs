//! A batch of a group that is inserted by the one that brought it, side by side with the others.

use lithify_base::Seq;
use lithify_env::Ticket;
use lithify_env::sync::{Arc, Mutex};
use lithify_journal::wal::BatchView;
use lithify_memtable::SharedWriter;

use super::mems::insert_batch;
use crate::reentry::Mark;

/// A batch that a waiter may insert, or the holder takes back.
pub(crate) struct Part {
    pub(super) writer: Option<SharedWriter>,
    pub(super) first: Seq,
    pub(super) crew: Arc<InsertGroup>,
    pub(super) mark: Mark,
}

/// Those who insert batches of one group.
pub(super) struct InsertGroup {
    pub(super) state: Mutex<State>,
    /// Complete once all are done.
    pub(super) home: Ticket,
}

pub(super) struct State {
    /// Parts that are out, and one for the holder.
    pub(super) at_work: usize,
    pub(super) back: Vec<SharedWriter>,
    /// A part was not inserted as a whole.
    pub(super) torn: bool,
}

impl InsertGroup {
    pub(super) fn leave(&self, report: impl FnOnce(&mut State)) {
        let mut state = self.state.lock();
        report(&mut state);
        state.at_work -= 1;
        if state.at_work == 0 {
            drop(state);
            self.home.complete();
        }
    }
}

impl Part {
    /// Inserts `batch`, which the part was made for.
    pub(crate) fn insert(mut self, batch: &BatchView<'_>) {
        let _at = self.mark.set();
        // Until it is back, the part counts as torn: a comparator may panic.
        let mut writer = self.writer.take().expect("a part is inserted once");
        insert_batch(&mut writer, batch, self.first);
        self.writer = Some(writer);
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        let writer = self.writer.take();
        self.crew.leave(|state| match writer {
            Some(writer) => state.back.push(writer),
            None => state.torn = true,
        });
    }
}
