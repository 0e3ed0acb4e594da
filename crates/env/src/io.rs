//! Transfers that run beside their caller.
//!
//! [`spawn_read`] and [`spawn_write`] hand a buffer to a job of [`Class::Io`] and return at once;
//! the [`PendingIo`] gives the buffer back with the result. Each job makes one system call per
//! step and loops over short results, so a simulation may put anything in between.
//!
//! Keeps: the ticket completes exactly once, also when the job panics, finds no thread or is
//! dropped with its runtime; the buffer always comes back.

use std::io;
use std::ops::Range;

use crate::buf::IoBuf;
use crate::fs::{File, FileRef, IoError, IoResult, Transfer};
use crate::oneshot::{Receiver, Sender, oneshot};
use crate::rt::{Class, Job, Rt, SharedUrgency, Step, Urgency};
use crate::sync::Arc;
use crate::ticket::Ticket;

/// A buffer and how its transfer ended.
type Outcome = (IoBuf, IoResult<usize>);

/// A transfer on its way.
#[must_use = "the buffer and the result come back through `take`"]
#[derive(Debug)]
pub struct PendingIo(Receiver<Outcome>);

impl PendingIo {
    /// Completes when the transfer has ended.
    pub fn ticket(&self) -> &Ticket {
        self.0.ticket()
    }

    /// Whether the transfer has ended.
    pub fn is_done(&self) -> bool {
        self.0.is_done()
    }

    /// The buffer and the number of bytes moved. A read buffer is cut to that number, which is
    /// less than asked for only at the end of the file.
    ///
    /// # Panics
    /// If the transfer has not ended.
    pub fn take(self) -> (IoBuf, IoResult<usize>) {
        self.0.take().expect("take is called after the ticket is complete")
    }

    /// Parks until the transfer has ended, then takes it.
    pub fn wait(self, rt: &dyn Rt) -> (IoBuf, IoResult<usize>) {
        rt.park(self.ticket(), None);
        self.take()
    }
}

/// Reads `len` bytes at `offset` into the front of `buf`, whose bytes are replaced. The transfer
/// is as urgent as `urgency` says while it waits.
///
/// # Panics
/// If `buf` cannot grow to `len` bytes; a buffer of that capacity does not need to.
pub fn spawn_read(
    rt: &dyn Rt,
    urgency: &SharedUrgency,
    file: FileRef,
    mut buf: IoBuf,
    offset: u64,
    len: usize,
) -> PendingIo {
    buf.clear();
    buf.reserve(len);
    buf.set_len(len);
    TransferJob::start(rt, urgency, file, buf, offset, Direction::Read)
}

/// Writes all of `buf` at `offset`, as urgently as `urgency` says while it waits.
pub fn spawn_write(
    rt: &dyn Rt,
    urgency: &SharedUrgency,
    file: FileRef,
    buf: IoBuf,
    offset: u64,
) -> PendingIo {
    TransferJob::start(rt, urgency, file, buf, offset, Direction::Write)
}

/// Memory that several writes are made from, which no one changes any more.
pub type Stretch = Arc<dyn AsRef<[u8]> + Send + Sync>;

/// Writes a part of `from` at `offset`, as urgently as `urgency` says while it waits. The buffer that comes back is
/// an empty one; `from` is let go of when the transfer has ended.
///
/// # Panics
/// If `part` reaches out of `from`.
pub fn spawn_write_part(
    rt: &dyn Rt,
    urgency: &SharedUrgency,
    file: FileRef,
    from: &Stretch,
    part: Range<usize>,
    offset: u64,
) -> PendingIo {
    assert!((**from).as_ref().get(part.clone()).is_some(), "a part of the stretch");
    let part = Some((from.clone(), part));
    TransferJob::begin(rt, urgency, file, (IoBuf::new(), part), offset, Direction::Write)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    Read,
    Write,
}

/// One transfer as a step machine: More until the last byte, then Done.
struct TransferJob {
    urgency: SharedUrgency,
    file: FileRef,
    buf: IoBuf,
    /// What is written in place of the buffer, if so.
    part: Option<(Stretch, Range<usize>)>,
    offset: u64,
    direction: Direction,
    transfer: Transfer,
    outcome: Sender<Outcome>,
}

impl TransferJob {
    fn start(
        rt: &dyn Rt,
        urgency: &SharedUrgency,
        file: FileRef,
        buf: IoBuf,
        offset: u64,
        direction: Direction,
    ) -> PendingIo {
        TransferJob::begin(rt, urgency, file, (buf, None), offset, direction)
    }

    fn begin(
        rt: &dyn Rt,
        urgency: &SharedUrgency,
        file: FileRef,
        (buf, part): (IoBuf, Option<(Stretch, Range<usize>)>),
        offset: u64,
        direction: Direction,
    ) -> PendingIo {
        let (outcome, pending) = oneshot();
        let transfer = Transfer::default();
        let urgency = urgency.clone();
        let job = Self { urgency, file, buf, part, offset, direction, transfer, outcome };
        rt.spawn(Class::Io, Box::new(job));
        PendingIo(pending)
    }

    fn advance(&mut self) -> IoResult<bool> {
        let file: &dyn File = &*self.file;
        match self.direction {
            Direction::Read => self.transfer.read(file, self.buf.as_mut_slice(), self.offset),
            Direction::Write => {
                let bytes = match &self.part {
                    Some((from, part)) => &(**from).as_ref()[part.clone()],
                    None => self.buf.as_slice(),
                };
                self.transfer.write(file, bytes, self.offset)
            }
        }
    }

    fn end(&mut self, result: IoResult<usize>) {
        if self.outcome.is_sent() {
            return;
        }
        self.part = None;
        let mut buf = std::mem::take(&mut self.buf);
        if self.direction == Direction::Read {
            buf.truncate(*result.as_ref().unwrap_or(&0));
        }
        self.outcome.send((buf, result));
    }

    fn fail(&mut self, message: String) {
        let op = match self.direction {
            Direction::Read => "read_at",
            Direction::Write => "write_at",
        };
        let error = IoError::new(op, self.file.path(), io::Error::other(message));
        self.end(Err(error));
    }
}

impl Job for TransferJob {
    fn step(&mut self) -> Step {
        match self.advance() {
            Ok(false) => return Step::More,
            Ok(true) => self.end(Ok(self.transfer.done())),
            Err(error) => self.end(Err(error)),
        }
        Step::Done
    }

    fn urgency(&self) -> Urgency {
        self.urgency.get()
    }

    fn panicked(&mut self, message: String) {
        self.fail(message);
    }
}

impl Drop for TransferJob {
    fn drop(&mut self) {
        if !self.outcome.is_sent() {
            self.fail("the runtime stopped before the transfer ended".to_owned());
        }
    }
}
