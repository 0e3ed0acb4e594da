//! Opening the inputs of a compaction, several at once: each table that is not open yet costs a read of
//! its tail, each with an index in parts a read of those, samples for a dictionary a read each, and on
//! a slow disk a job of many small inputs would spend more time on one after the other than on the
//! merge.

use std::collections::VecDeque;

use lithify_base::{Error, ErrorKind, Result};
use lithify_env::sync::Arc;
use lithify_env::{Class, Job, Receiver, Sender, SharedUrgency, Step, Ticket, Urgency, oneshot};
use lithify_lsm::FileRef;
use lithify_tables::sst::FullIndex;

use crate::context::JobContext;

/// Tables being opened at once. Each takes a multiple of its tail while it is decoded.
const AT_ONCE: usize = 8;

/// Tables on their way to being open.
pub(crate) struct Opening {
    context: Arc<JobContext>,
    urgency: SharedUrgency,
    /// Not asked for yet.
    rest: VecDeque<FileRef>,
    asked: VecDeque<(FileRef, Receiver<Result<Opened>>)>,
    open: Inputs,
    /// Bytes of blocks to be taken from each table as samples.
    sampled: u64,
}

/// What the inputs of a compaction are known by.
#[derive(Default)]
pub(crate) struct Inputs {
    /// The tables, open, in the order in which they were given.
    pub(crate) tables: Vec<(FileRef, Arc<FullIndex>)>,
    /// Blocks of theirs.
    pub(crate) samples: Vec<Vec<u8>>,
}

/// What is read of one table.
type Opened = (Arc<FullIndex>, Vec<Vec<u8>>);

impl Opening {
    /// Of all `files`, with about `sampled` bytes of blocks as samples of what they hold.
    pub(crate) fn new(
        context: Arc<JobContext>,
        urgency: SharedUrgency,
        files: &[FileRef],
        sampled: u64,
    ) -> Opening {
        Opening {
            context,
            urgency,
            rest: files.iter().cloned().collect(),
            asked: VecDeque::new(),
            open: Inputs::default(),
            sampled: sampled / (files.len() as u64).max(1),
        }
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
            let (table, samples) = opened.take().ok_or_else(lost)??;
            self.open.tables.push((file, table));
            self.open.samples.extend(samples);
        }
    }

    /// What was opened.
    pub(crate) fn into_inputs(self) -> Inputs {
        self.open
    }

    fn ask(&mut self, file: FileRef) {
        let (sender, receiver) = oneshot();
        match self.context.tables.get(&file) {
            // One that is open has to be read from for counts, for an index in parts, and for samples.
            Some(table) if table.is_full_index_resident() && self.sampled == 0 => {
                sender.send(FullIndex::of(table).map(|full| (Arc::new(full), Vec::new())));
            }
            _ => {
                let (context, urgency) = (self.context.clone(), self.urgency.clone());
                let job =
                    OpenOne { context, urgency, file: file.clone(), sampled: self.sampled, sender };
                self.context.env.rt.spawn(Class::Io, Box::new(job));
            }
        }
        self.asked.push_back((file, receiver));
    }
}

/// Opens one table.
struct OpenOne {
    context: Arc<JobContext>,
    urgency: SharedUrgency,
    file: FileRef,
    sampled: u64,
    sender: Sender<Result<Opened>>,
}

impl OpenOne {
    fn open(&self) -> Result<Opened> {
        let full = FullIndex::of(self.context.tables.open(&self.file)?)?;
        let samples = full.samples(self.sampled)?;
        Ok((Arc::new(full), samples))
    }
}

impl Job for OpenOne {
    fn step(&mut self) -> Step {
        self.sender.send(self.open());
        Step::Done
    }
    fn urgency(&self) -> Urgency {
        self.urgency.get()
    }
    fn panicked(&mut self, message: String) {
        self.sender.send(Err(Error::new(ErrorKind::Internal, message)));
    }
}
