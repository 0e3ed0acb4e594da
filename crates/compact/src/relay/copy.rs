//! A batch that a machine made is copied into memory of the host's, by several threads at once.
//!
//! Copying takes longer than all else that the thread of a part does beside a machine, and any thread can do it. So blocks
//! go in parts to the threads for input and output, each of which also finds the sums of what it copied; the part
//! waits for them as it does for reads.
//!
//! Keeps: products are whole again before anything of them is looked at, or are dropped. A panic over a part is an
//! error of the batch.
//! Leaves to others: what is copied where (`merge::loan`), and whether sums are right (the certifier).

use lithify_base::{Error, ErrorKind, Result};
use lithify_env::sync::atomic::{AtomicUsize, Ordering};
use lithify_env::sync::{Arc, Mutex};
use lithify_env::{
    BufPart, BufPool, Class, IoBuf, Job, Parted, RtRef, SharedUrgency, Step, Ticket, Urgency,
};
use lithify_format::checksum::ChecksumKind;
use lithify_merge::loan::{Loan, LoanPart};
use lithify_merge::products::PAGE;
use lithify_merge::{Lent, Products};

/// Where batches are copied: by whose threads, in parts of how many bytes, how urgently, and to whose memory.
pub(crate) struct Copier {
    pub(crate) part: usize,
    pub(crate) rt: RtRef,
    pub(crate) urgency: SharedUrgency,
    pub(crate) buffers: BufPool,
}

/// Products, or what will be some.
pub(super) enum Copied {
    Whole(Products),
    UnderWay(Copying),
}

/// Products whose blocks are under way.
pub(super) struct Copying {
    products: Products,
    loan: Arc<Loan>,
    buffer: Parted,
    desk: Arc<Desk>,
}

/// Where parts are told of.
struct Desk {
    /// By part, the sums that were found.
    found: Mutex<Vec<Option<Result<Vec<u32>>>>>,
    left: AtomicUsize,
    done: Ticket,
}

impl Copier {
    /// Copies what was lent of `products`, or begins to; their files go on `phase` bytes behind a page. Sums are found if
    /// `kind` says which.
    ///
    /// # Errors
    /// LimitExceeded if the system has no memory.
    pub(super) fn begin(
        &self,
        mut products: Products,
        phase: usize,
        kind: Option<ChecksumKind>,
    ) -> Result<Copied> {
        let Some(loan) = products.recall(phase) else { return Ok(Copied::Whole(products)) };
        let bytes = loan.bytes();
        let no_memory = |e| Error::new(ErrorKind::LimitExceeded, format!("{e}"));
        let mut buffer = self.buffers.try_get(bytes).map_err(no_memory)?;
        buffer.set_len(bytes);
        let parts = loan.parts(self.part);
        if let [part] = &parts[..] {
            let sums = loan.copy(part, &mut buffer, kind);
            products.settle(loan, Box::new(Room(buffer)), sums);
            return Ok(Copied::Whole(products));
        }
        let lens: Vec<usize> = parts.iter().map(LoanPart::bytes).collect();
        let (buffer, places) = buffer.parts(&lens);
        let (loan, done) = (Arc::new(loan), Ticket::new());
        let left = AtomicUsize::new(parts.len());
        let found = Mutex::new(parts.iter().map(|_| None).collect());
        let desk = Arc::new(Desk { found, left, done });
        for (no, (part, to)) in parts.into_iter().zip(places).enumerate() {
            let work = Some(Work { loan: loan.clone(), part, to });
            let (desk, urgency) = (desk.clone(), self.urgency.clone());
            self.rt.spawn(Class::Io, Box::new(CopyJob { work, kind, no, desk, urgency }));
        }
        Ok(Copied::UnderWay(Copying { products, loan, buffer, desk }))
    }
}

impl Copying {
    /// Completes when all parts are copied.
    pub(super) fn ticket(&self) -> &Ticket {
        &self.desk.done
    }

    /// How far behind a page its last block ends, and with it the file that is open then.
    pub(super) fn end(&self) -> usize {
        self.loan.bytes() % PAGE
    }

    /// The products, once all parts are copied.
    ///
    /// # Errors
    /// Internal if that panicked.
    pub(super) fn finish(self) -> Result<Products> {
        let Copying { mut products, loan, buffer, desk } = self;
        let lost = || Error::new(ErrorKind::Internal, "a part of a batch was not copied");
        let mut sums = Vec::new();
        for found in desk.found.lock().drain(..) {
            sums.append(&mut found.ok_or_else(lost)??);
        }
        let buffer = buffer.whole().map_err(|_| lost())?;
        let loan = Arc::try_unwrap(loan).map_err(|_| lost())?;
        products.settle(loan, Box::new(Room(buffer)), sums);
        Ok(products)
    }
}

/// What is copied.
struct Work {
    loan: Arc<Loan>,
    part: LoanPart,
    to: BufPart,
}

/// Copies a part.
struct CopyJob {
    /// Until it is done.
    work: Option<Work>,
    kind: Option<ChecksumKind>,
    no: usize,
    desk: Arc<Desk>,
    urgency: SharedUrgency,
}

impl CopyJob {
    /// Tells of the part, of which nothing is held any more.
    fn tell(&self, found: Option<Result<Vec<u32>>>) {
        if let Some(place) = self.desk.found.lock().get_mut(self.no) {
            *place = found;
        }
    }
}

impl Job for CopyJob {
    fn step(&mut self) -> Step {
        if let Some(Work { loan, part, mut to }) = self.work.take() {
            let found = loan.copy(&part, to.as_mut(), self.kind);
            drop((loan, to));
            self.tell(Some(Ok(found)));
        }
        Step::Done
    }
    fn urgency(&self) -> Urgency {
        self.urgency.get()
    }
    fn panicked(&mut self, message: String) {
        self.tell(Some(Err(Error::new(ErrorKind::Internal, message))));
    }
}

impl Drop for CopyJob {
    fn drop(&mut self) {
        // Also where the runtime drops it before it has run.
        self.work = None;
        if self.desk.left.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.desk.done.complete();
        }
    }
}

/// A buffer that blocks of a machine are copied into, certified in, and written from.
struct Room(IoBuf);

impl Lent for Room {
    fn bytes(&self) -> &[u8] {
        &self.0
    }
    fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.0
    }
}
