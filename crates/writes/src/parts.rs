//! Batches of a group that are inserted by those who brought them, side by side: what is handed out, and
//! how it comes back.

use lithify_base::Seq;
use lithify_env::sync::{Arc, Mutex};
use lithify_env::{Rt, Ticket};
use lithify_journal::wal::BatchView;
use lithify_memtable::SharedWriter;

use crate::mems::insert_batch;
use crate::turn::Waiter;
use lithify_reports::reentry::Mark;

/// A batch that a waiter may insert, or the holder takes back.
pub struct Part {
    /// A share of the memtable's writer, until it is back.
    writer: Option<SharedWriter>,
    /// Number of its first entry.
    first: Seq,
    /// Those it is one of.
    crew: Arc<InsertGroup>,
    /// On the thread that inserts it.
    mark: Mark,
}

/// Those who insert batches of one group.
struct InsertGroup {
    /// How far they are.
    state: Mutex<State>,
    /// Complete once all are done.
    home: Ticket,
}

/// How far those who insert batches of one group are.
struct State {
    /// Parts that are out, and one for the holder.
    at_work: usize,
    /// Shares that are back.
    back: Vec<SharedWriter>,
    /// A part was not inserted as a whole.
    torn: bool,
}

impl InsertGroup {
    /// One of them is done, and says how it went.
    fn leave(&self, report: impl FnOnce(&mut State)) {
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
    pub fn insert(mut self, batch: &BatchView<'_>) {
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

/// The parts of a group that were handed out, and to whom.
pub struct Handed<'a, T> {
    crew: Arc<InsertGroup>,
    waiters: Vec<&'a Waiter<T>>,
    rt: &'a dyn Rt,
    mark: Mark,
    /// The holder counts as at work.
    open: bool,
}

impl<'a, T> Handed<'a, T> {
    /// None yet. Parts are inserted under `mark`.
    pub fn new(rt: &'a dyn Rt, mark: Mark) -> Handed<'a, T> {
        let state = State { at_work: 1, back: Vec::new(), torn: false };
        let crew = Arc::new(InsertGroup { state: Mutex::new(state), home: Ticket::new() });
        Handed { crew, waiters: Vec::new(), rt, mark, open: true }
    }
    /// Asks `waiter` to insert its batch from number `first` on.
    pub fn ask(&mut self, waiter: &'a Waiter<T>, writer: SharedWriter, first: Seq) {
        self.crew.state.lock().at_work += 1;
        self.waiters.push(waiter);
        waiter.ask(Part { writer: Some(writer), first, crew: self.crew.clone(), mark: self.mark });
    }
    /// Inserts what no waiter has begun, the last first, because they were woken in order; how many
    /// had begun.
    pub fn insert_the_rest(&self) -> usize {
        let mut begun = 0;
        for waiter in self.waiters.iter().rev() {
            match waiter.take_part() {
                Some(part) => part.insert(&waiter.batch.view()),
                None => begun += 1,
            }
        }
        begun
    }
    /// Waits for all who are at work; what they used, or `None` if something is missing.
    pub fn gather(&mut self) -> Option<Vec<SharedWriter>> {
        if std::mem::take(&mut self.open) {
            self.crew.leave(|_| ());
            self.rt.park(&self.crew.home, None);
        }
        let mut state = self.crew.state.lock();
        (!state.torn).then(|| std::mem::take(&mut state.back))
    }
}

impl<T> Drop for Handed<'_, T> {
    fn drop(&mut self) {
        // If the holder panicked: no thread begins a part or is at one after this.
        self.waiters.iter().for_each(|waiter| drop(waiter.take_part()));
        self.gather();
    }
}
