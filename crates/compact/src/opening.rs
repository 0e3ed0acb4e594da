//! Opening the inputs of a compaction, several at once: each table that is not open yet costs a read of
//! its tail, each with an index in parts a read of those, and on a slow disk a job of many small inputs would spend more time on one after the
//! other than on the merge.

use std::collections::VecDeque;

use lithify_base::{Error, ErrorKind, Result};
use lithify_env::sync::Arc;
use lithify_env::{Class, Job, Receiver, Sender, SharedUrgency, Step, Ticket, Urgency, oneshot};
use lithify_lsm::FileRef;
use lithify_store::sst::FullIndex;

use crate::workshop::Workshop;

/// Tables being opened at once. Each takes a multiple of its tail while it is decoded.
const AT_ONCE: usize = 8;

/// Tables on their way to being open.
pub(crate) struct Opening {
    shop: Arc<Workshop>,
    urgency: SharedUrgency,
    /// Not asked for yet.
    rest: VecDeque<FileRef>,
    asked: VecDeque<(FileRef, Receiver<Result<Arc<FullIndex>>>)>,
    /// Open, in the order in which they were given.
    open: Vec<(FileRef, Arc<FullIndex>)>,
}

impl Opening {
    /// Of all `files`.
    pub(crate) fn new(shop: Arc<Workshop>, urgency: SharedUrgency, files: &[FileRef]) -> Opening {
        let rest = files.iter().cloned().collect();
        Opening { shop, urgency, rest, asked: VecDeque::new(), open: Vec::new() }
    }

    /// What to wait for before the next call; `None` when all tables are open.
    pub(crate) fn advance(&mut self) -> Result<Option<Ticket>> {
        loop {
            while self.asked.len() < AT_ONCE
                && let Some(file) = self.rest.pop_front()
            {
                self.ask(file);
            }
            let Some((_, first)) = self.asked.front() else { return Ok(None) };
            if !first.is_done() {
                return Ok(Some(first.ticket().clone()));
            }
            let (file, opened) = self.asked.pop_front().expect("it is there");
            let lost = || Error::new(ErrorKind::Internal, "a table was opened without a result");
            self.open.push((file, opened.take().ok_or_else(lost)??));
        }
    }

    /// The open tables.
    pub(crate) fn into_tables(self) -> Vec<(FileRef, Arc<FullIndex>)> {
        self.open
    }

    fn ask(&mut self, file: FileRef) {
        let (sender, receiver) = oneshot();
        match self.shop.tables.get(&file) {
            // One that is open may have to be read from, if its index is in parts.
            Some(table) if table.is_index_resident() => {
                sender.send(FullIndex::of(table).map(Arc::new))
            }
            _ => {
                let (shop, urgency) = (self.shop.clone(), self.urgency.clone());
                let job = OpenOne { shop, urgency, file: file.clone(), sender };
                self.shop.env.rt.spawn(Class::Io, Box::new(job));
            }
        }
        self.asked.push_back((file, receiver));
    }
}

/// Opens one table.
struct OpenOne {
    shop: Arc<Workshop>,
    urgency: SharedUrgency,
    file: FileRef,
    sender: Sender<Result<Arc<FullIndex>>>,
}

impl Job for OpenOne {
    fn step(&mut self) -> Step {
        let opened = self.shop.tables.open(&self.file);
        self.sender.send(opened.and_then(FullIndex::of).map(Arc::new));
        Step::Done
    }
    fn urgency(&self) -> Urgency {
        self.urgency.get()
    }
    fn panicked(&mut self, message: String) {
        self.sender.send(Err(Error::new(ErrorKind::Internal, message)));
    }
}
