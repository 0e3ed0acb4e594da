//! A session: the sets of one part, in line for the units of a device.
//!
//! ```text
//!  offered -> staged, sent -> announced: joined the output -> its blocks are here: handed out
//!                                          | carry
//!                                          v
//!                                 the set behind it goes on
//! ```
//! Keeps: one carry, that of `Offload`. A set joins the output once all but its finished blocks is here, so the next
//! one need not wait for them; it counts when they are here, too, so each batch of products is one whole set.
//! Whatever goes wrong ends the session: the host goes on with the CPU from the last carry it was handed, which also names
//! a block that is bad. What the device does not merge, or has no room for, is [`Fault::Unsuitable`], all else
//! [`Fault::Engine`].
//! Leaves to others: what happens on the device (`pump`, `unit`), and the host's own proofs.

use std::collections::VecDeque;

use lithify_base::{Error, ErrorKind, Result};
use lithify_engine::{Fault, Offer, Progress, Session};
use lithify_env::Ticket;
use lithify_env::sync::Arc;
use lithify_merge::offload::{Joined, Tables};
use lithify_merge::{BlockSet, Carry, Offload, Products, Recipe};

use crate::Shared;
use crate::line::SetNo;
use crate::returned::{Announced, made};
use crate::stage::Staged;
use crate::unit::{Job, Trouble};

/// The sets of one part.
pub(crate) struct GpuSession {
    shared: Arc<Shared>,
    recipe: Arc<Recipe>,
    tables: Arc<Tables>,
    offload: Offload,
    /// Its number in the line.
    no: u64,
    flights: VecDeque<Flight>,
    sealed: bool,
    over: bool,
}

/// A set between the host and the device.
struct Flight {
    set: BlockSet,
    /// Blocks that the device decodes, once it is staged; those that it compressed, once it has joined the output.
    decoded: u64,
    encoded: u64,
    at: Stage,
}

enum Stage {
    /// It is to be staged.
    Grounded,
    /// It is in line, or on a unit.
    Sent(SetNo),
    /// It is part of the output, and its blocks are on their way.
    Joined(SetNo, Box<Joined>),
    /// It has no output.
    Stopped(Trouble),
}

impl GpuSession {
    pub(crate) fn new(
        shared: Arc<Shared>,
        recipe: Arc<Recipe>,
        carry: Option<Carry>,
    ) -> Result<GpuSession> {
        let offload = Offload::begin(recipe.clone(), carry)?;
        let tables = Arc::new(offload.tables().clone());
        let no = shared.line.lock().enter();
        let flights = VecDeque::new();
        Ok(GpuSession { shared, recipe, tables, offload, no, flights, sealed: false, over: false })
    }

    fn advance(&mut self, out: &mut Products) -> Result<Progress, Trouble> {
        if self.over {
            return Err(Trouble::Set(Error::invalid("this session is over")));
        }
        if self.flights.is_empty() {
            if !self.sealed {
                return Ok(Progress::Starved);
            }
            self.over = true;
            // What `finish` refuses is a matter of the recipe, which the CPU refuses, too.
            let ledger = self.offload.finish(out).map_err(Trouble::Set)?;
            return Ok(Progress::Done(Box::new(ledger)));
        }
        // Before it looks, so that no news is missed.
        let ticket = self.shared.line.lock().ticket_of(self.no);
        let joined = self.join()?;
        let handed_out = self.hand_out(out)?;
        if joined || handed_out || self.take_off() {
            return Ok(Progress::More);
        }
        Ok(self.wait(ticket))
    }

    /// Where the pump is no job, sessions turn it.
    fn wait(&self, ticket: Ticket) -> Progress {
        match self.shared.turn() {
            Some(_) => Progress::More,
            None => Progress::Pending(ticket),
        }
    }

    /// The first set that has not joined the output does, if it was announced; the one behind it goes on.
    fn join(&mut self) -> Result<bool, Trouble> {
        let mut rest = self.flights.iter_mut().skip_while(|f| matches!(f.at, Stage::Joined(..)));
        let Some(flight) = rest.next() else { return Ok(false) };
        let Stage::Sent(no) = flight.at else { return Ok(false) };
        let announced = self.shared.line.lock().take_announced(no);
        match announced {
            Ok(None) => return Ok(false),
            Err(trouble) => flight.at = Stage::Stopped(trouble),
            Ok(Some(announced)) => {
                let joined = join(&mut self.offload, &self.recipe, flight.set.no, &announced)?;
                flight.encoded = announced.compressed();
                flight.at = Stage::Joined(no, Box::new(joined));
                if let Some(Flight { at: Stage::Sent(next), .. }) = rest.next() {
                    let carry = Box::new(self.offload.carry().clone());
                    self.shared.line.lock().set_carry(*next, carry);
                }
            }
        }
        Ok(true)
    }

    /// Hands the first set out if it is whole.
    fn hand_out(&mut self, out: &mut Products) -> Result<bool, Trouble> {
        let no = match self.flights.front().map(|flight| &flight.at) {
            Some(Stage::Joined(no, _)) => *no,
            Some(Stage::Stopped(trouble)) => return Err(trouble.clone()),
            _ => return Ok(false),
        };
        let Some(blocks) = self.shared.line.lock().take_blocks(no)? else { return Ok(false) };
        if let Some(Flight { set, decoded, encoded, at: Stage::Joined(_, joined) }) =
            self.flights.pop_front()
        {
            joined.hand_out(blocks, out).map_err(Trouble::Device)?;
            self.shared.merged(set.bytes(), decoded, encoded);
        }
        Ok(true)
    }

    /// Stages the next set.
    fn take_off(&mut self) -> bool {
        let mut known = true;
        for flight in &mut self.flights {
            match &flight.at {
                Stage::Joined(..) => {}
                Stage::Sent(_) => known = false,
                Stage::Stopped(_) => return false,
                Stage::Grounded => {
                    flight.at = match Staged::new(&flight.set, |bytes| self.shared.stock.has(bytes))
                    {
                        Err(error) => Stage::Stopped(Trouble::Set(error)),
                        Ok(staged) => {
                            self.shared.staged(flight.set.bytes(), staged.normalised);
                            flight.decoded = staged.decoded;
                            let (recipe, tables) = (self.recipe.clone(), self.tables.clone());
                            let job = Job { recipe, tables, staged };
                            let carry = known.then(|| Box::new(self.offload.carry().clone()));
                            Stage::Sent(self.shared.line.lock().send(self.no, job, carry))
                        }
                    };
                    return true;
                }
            }
        }
        false
    }
}

/// A set joins the output before its finished blocks are here.
fn join(
    offload: &mut Offload,
    recipe: &Recipe,
    no: u32,
    announced: &Announced,
) -> Result<Joined, Trouble> {
    let (made, open) = made(recipe, &offload.open(), no, announced)?;
    // It refuses what cannot be; and tombstones that no file can store, which are the recipe's.
    offload.join(made, &open).map_err(|e| match e.kind() {
        ErrorKind::Internal => Trouble::Device(e),
        _ => Trouble::Set(e),
    })
}

/// What the host is told of a trouble.
fn fault(trouble: Trouble) -> Fault {
    let is_unsuitable = trouble.is_unsuitable();
    let (Trouble::Set(error) | Trouble::Device(error)) = trouble;
    if is_unsuitable {
        return Fault::Unsuitable(error);
    }
    // A device that is lost or wrong is no reason to doubt the input, nor is one that is right.
    Fault::Engine(match error.kind() {
        ErrorKind::Internal => error,
        _ => Error::new(ErrorKind::Internal, "a set on the GPU").caused_by(error),
    })
}

impl Session for GpuSession {
    fn offer(&mut self, set: BlockSet) -> Offer {
        if self.flights.len() > usize::from(self.shared.options.units) || self.sealed {
            return Offer::Full(set);
        }
        self.flights.push_back(Flight { set, decoded: 0, encoded: 0, at: Stage::Grounded });
        Offer::Taken
    }
    fn seal(&mut self) {
        self.sealed = true;
    }
    fn poll(&mut self, out: &mut Products) -> Progress {
        out.clear();
        let advanced = self.advance(out).map_err(|trouble| {
            self.over = true;
            self.shared.failed(&trouble);
            fault(trouble)
        });
        Progress::or_fault(advanced, out)
    }
    fn cancel(self: Box<Self>) {}
}

impl Drop for GpuSession {
    fn drop(&mut self) {
        self.shared.line.lock().leave(self.no);
        while self.shared.turn() == Some(true) {}
    }
}
