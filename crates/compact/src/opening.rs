//! Opening the inputs of a compaction, all at once: each table that is not open yet costs a read of
//! its tail, and on a slow disk a job of many small inputs would spend more time on one after the
//! other than on the merge.

use lithify_base::{Error, ErrorKind, Result};
use lithify_env::sync::{Arc, Mutex};
use lithify_env::{Class, Job, SharedUrgency, Step, Ticket, Urgency};
use lithify_lsm::FileRef;
use lithify_store::sst::TableReader;

use crate::workshop::Workshop;

/// Tables on their way to being open, in the order in which they were asked for.
pub(crate) struct Opening(Vec<Asked>);

struct Asked {
    file: FileRef,
    ticket: Ticket,
    found: Found,
}

type Found = Arc<Mutex<Option<Result<Arc<TableReader>>>>>;

impl Opening {
    /// Asks for all `files`.
    pub(crate) fn start(
        shop: &Arc<Workshop>,
        urgency: &SharedUrgency,
        files: &[FileRef],
    ) -> Opening {
        let ask = |file: &FileRef| {
            let (ticket, found) = (Ticket::new(), Found::default());
            let asked = Asked { file: file.clone(), ticket: ticket.clone(), found: found.clone() };
            match shop.tables.get(file) {
                Some(reader) => {
                    *found.lock() = Some(Ok(reader));
                    ticket.complete();
                }
                None => {
                    let urgency = urgency.clone();
                    let (shop, file) = (shop.clone(), file.clone());
                    let rt = shop.env.rt.clone();
                    let job = OpenOne { shop, file, urgency, ticket, found };
                    rt.spawn(Class::Io, Box::new(job));
                }
            }
            asked
        };
        Opening(files.iter().map(ask).collect())
    }

    /// What to wait for, if a table is not open yet.
    pub(crate) fn must_wait(&self) -> Option<Ticket> {
        self.0.iter().find(|a| !a.ticket.is_done()).map(|a| a.ticket.clone())
    }

    /// The open tables.
    pub(crate) fn finish(self) -> Result<Vec<(FileRef, Arc<TableReader>)>> {
        let lost = || Error::new(ErrorKind::Internal, "a table was opened without a result");
        let take = |a: Asked| Ok((a.file, a.found.lock().take().ok_or_else(lost)??));
        self.0.into_iter().map(take).collect()
    }
}

/// Opens one table.
struct OpenOne {
    shop: Arc<Workshop>,
    file: FileRef,
    urgency: SharedUrgency,
    ticket: Ticket,
    found: Found,
}

impl OpenOne {
    fn end(&self, result: Result<Arc<TableReader>>) {
        *self.found.lock() = Some(result);
        self.ticket.complete();
    }
}

impl Job for OpenOne {
    fn step(&mut self) -> Step {
        self.end(self.shop.tables.open(&self.file));
        Step::Done
    }
    fn urgency(&self) -> Urgency {
        self.urgency.get()
    }
    fn panicked(&mut self, message: String) {
        self.end(Err(Error::new(ErrorKind::Internal, message)));
    }
}
