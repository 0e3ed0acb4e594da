//! Storage that fails: what breaks, which errors that excuses, and the life after.
//!
//! Keeps: an error is excused only while something is broken, and only one that says so honestly.
//! Leaves to others: how a disk fails (`simfs`).

use lithify::{Error, ErrorKind};
use rustix::io::Errno;

use super::timed::Opened;
use super::{Violation, World, failed};
use crate::disk::Forgets;
use crate::simfs::Fault;

impl World {
    /// Storage fails from now on, or soon, once or for good.
    pub(super) fn break_something(&mut self) {
        let sticky = self.dice.choose(2, "sticky") == 1;
        let whole = [Forgets::Keeps, Forgets::Reverts, Forgets::Delays];
        // What was added later comes last, so that older plans mean what they did.
        let fault = match self.dice.choose(6, "what breaks") {
            0 => {
                let forgets = *self.dice.pick(&whole, "forgets");
                let nth = u64::from(self.dice.choose(6, "sync"));
                Fault::Sync { nth, forgets, with: Errno::IO, sticky }
            }
            1 => {
                let nth = u64::from(self.dice.choose(40, "call"));
                Fault::Call { nth, with: Errno::IO, sticky }
            }
            2 => {
                let more = u64::from(self.dice.choose(60, "room")) << 10;
                Fault::Full(self.fs.used() + more)
            }
            3 => {
                let forgets = *self.dice.pick(&whole, "forgets");
                Fault::SyncThenFull { nth: u64::from(self.dice.choose(6, "sync")), forgets }
            }
            4 => {
                let nth = u64::from(self.dice.choose(6, "sync"));
                let forgets = match self.dice.choose(4, "forgets") {
                    0 => Forgets::Keeps,
                    _ => Forgets::Partly(self.dice.choose(1 << 16, "pages")),
                };
                let with = *self.dice.pick(&[Errno::NOSPC, Errno::IO], "errno");
                Fault::Sync { nth, forgets, with, sticky }
            }
            _ => {
                let nth = u64::from(self.dice.choose(40, "call"));
                Fault::CallAfter { nth, with: Errno::IO, sticky }
            }
        };
        self.only_full = !self.shaken && matches!(fault, Fault::SyncThenFull { .. });
        self.fs.set_fault(fault);
        self.shaken = true;
    }

    /// What an error means: a violation, unless storage failed and the error is one that says so
    /// honestly.
    pub(super) fn excuse(&self, what: &str, error: &Error) -> Result<(), Violation> {
        let honest = matches!(
            error.kind(),
            ErrorKind::Io
                | ErrorKind::NoSpace
                | ErrorKind::NotCommitted
                | ErrorKind::OutcomeUnknown
                | ErrorKind::ReadOnly
                | ErrorKind::Stalled
        );
        if self.shaken && honest { Ok(()) } else { Err(failed(what, error)) }
    }

    /// Storage works again, and the database is opened anew. What it holds is a state it may
    /// hold: everything durable, whatever was refused not.
    pub(super) fn recover(&mut self) -> Result<(), Violation> {
        self.recover_with(self.journal.writes())
    }

    /// The same where the write begun last is in doubt.
    pub(super) fn recover_in_doubt(&mut self) -> Result<(), Violation> {
        self.recover_with(self.journal.writes() - 1)
    }

    /// The same where each of the first `told` writes was acknowledged or refused.
    fn recover_with(&mut self, told: usize) -> Result<(), Violation> {
        self.views.clear();
        self.following = None;
        self.marks = self.marks();
        match self.db.take().map(Opened::close) {
            // Whatever was acknowledged is durable; a write in doubt may still be on its way.
            Some(Ok(())) => {
                let acknowledged = self.journal.last_of(told);
                self.journal.durable_at(self.fs.position(), acknowledged);
            }
            Some(Err(e)) => self.excuse("a close", &e)?,
            None => {}
        }
        let begun = self.fs.position();
        if let Err(e) = self.open_home().map(|db| self.db = Some(db)) {
            self.excuse("an open", &e)?;
            self.fs.heal();
            self.open()?;
        }
        self.fs.heal();
        (self.shaken, self.only_full) = (false, false);
        let seen = self.take_over()?;
        if self.journal.find(begun, false, seen).is_none() {
            let (least, most) = self.journal.bounds(begun, false);
            return Violation::new(format!(
                "opened again after storage failed, it holds state {:?}, where {least} to {most} \
                 may be the last",
                self.journal.find_anywhere(seen)
            ));
        }
        self.journal.begun(self.model.sums(), begun);
        self.journal.synced(self.fs.position());
        self.no_panics()
    }
}
