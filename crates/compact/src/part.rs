//! One part of a compaction at work: the merge of the inputs' entries in one range of user keys,
//! from the first read to the last sync. Most compactions have a single part, which has all keys.
//!
//! ```text
//!   Merge <-> (wait for a read or a write) -> Finish <-> (wait for syncs) -> built
//! ```
//!
//! A step of `Merge` offers the sets that have arrived, polls the relay for one slice of work, and
//! hands what came out, certified, to the sink. It waits only if the engine starves for input or waits for
//! its machine, or the sink has too many writes under way.

use lithify_base::Result;
use lithify_env::{Lane, Step, Ticket};
use lithify_merge::{Ledger, Products};

use crate::feed::Feed;
use crate::job_control::PartControl;
use crate::relay::{LOOK, Relay, Relayed, Suspect};
use crate::route::Place;
use crate::sink::Sink;

/// A part at work.
pub(crate) struct PartJob {
    stage: Stage,
    control: PartControl,
}

enum Stage {
    Merge(Box<Merging>),
    Finish(Box<Sink>, Box<Ledger>, Option<Place>),
    Over,
}

/// How far a step came.
pub(crate) enum Advance {
    /// The part goes on.
    Step(Step),
    /// Its files are built and synced; they are removed with the sink. An engine other than the CPU that took
    /// part comes along.
    Built(Box<Sink>, Box<Ledger>, Option<Place>),
    /// An engine was found out, or is a suspect: the part is to be done anew, by the CPU. Its files are gone.
    Anew(Option<Suspect>),
}

/// Everything the merge needs while it goes on.
struct Merging {
    feed: Feed,
    relay: Relay,
    products: Products,
    /// Bytes read and written since the last step.
    moved: usize,
    /// Bytes of all sets read.
    read: u64,
    sink: Sink,
}

impl PartJob {
    /// A part whose merge is `relay`, of what `feed` reads. `control` counts what it has done.
    pub(crate) fn new(relay: Relay, feed: Feed, sink: Sink, control: PartControl) -> PartJob {
        let products = Products::default();
        let merging = Merging { feed, relay, products, moved: 0, read: 0, sink };
        PartJob { stage: Stage::Merge(Box::new(merging)), control }
    }

    /// One step. The part is of no use after an error.
    pub(crate) fn advance(&mut self) -> Result<Advance> {
        match std::mem::replace(&mut self.stage, Stage::Over) {
            Stage::Merge(mut merging) => match merging.advance(&self.control)? {
                Merged::Step(step) => {
                    self.stage = Stage::Merge(merging);
                    Ok(Advance::Step(step))
                }
                Merged::Done(ledger) => {
                    let by = merging.relay.into_place();
                    self.stage = Stage::Finish(Box::new(merging.sink), ledger, by);
                    Ok(Advance::Step(Step::More))
                }
                Merged::Anew => {
                    self.control.retreat(merging.read);
                    Ok(Advance::Anew(merging.relay.into_suspect()))
                }
            },
            Stage::Finish(mut sink, ledger, by) => match sink.finish()? {
                Some(ticket) => {
                    self.stage = Stage::Finish(sink, ledger, by);
                    Ok(Advance::Step(Step::Wait(ticket)))
                }
                None => Ok(Advance::Built(sink, ledger, by)),
            },
            Stage::Over => unreachable!("a part that is over makes no more steps"),
        }
    }
}

enum Merged {
    Step(Step),
    Done(Box<Ledger>),
    Anew,
}

impl Merging {
    fn advance(&mut self, control: &PartControl) -> Result<Merged> {
        if let Some(ticket) = self.sink.must_wait()? {
            return Ok(Merged::Step(Step::Wait(ticket)));
        }
        if let Some(wait) = self.sink.context().pace(std::mem::take(&mut self.moved), Lane::Rest) {
            return Ok(Merged::Step(wait));
        }
        let waiting_for = self.offer(control)?;
        let relayed = self.relay.poll(&mut self.products, self.sink.phase())?;
        self.moved += self.products.arena().len();
        self.sink.take(&mut self.products)?;
        Ok(match relayed {
            Relayed::More => Merged::Step(Step::More),
            Relayed::Starved => Merged::Step(match waiting_for {
                Some(ticket) => Step::Wait(ticket),
                None => Step::More,
            }),
            Relayed::Pending(ticket) => {
                // An engine that has room is given its next set before it is asked again.
                let look = self.sink.context().env.rt.now() + LOOK;
                Merged::Step(Step::WaitUntil(waiting_for.unwrap_or(ticket), look))
            }
            Relayed::Copying(ticket) => {
                Merged::Step(Step::WaitUntil(ticket, self.sink.context().env.rt.now() + LOOK))
            }
            Relayed::Done(ledger) => {
                // The job that moves bytes next waits for it.
                self.sink.context().pace(self.moved, Lane::Rest);
                Merged::Done(ledger)
            }
            Relayed::Anew => Merged::Anew,
        })
    }

    /// Hands arrived sets to the engine while it has room; the read to wait for, if that is
    /// what is missing.
    fn offer(&mut self, control: &PartControl) -> Result<Option<Ticket>> {
        loop {
            self.feed.read_ahead(|| self.relay.wants())?;
            if let Some(short) = self.feed.shortage() {
                self.relay.cut_short(short);
            }
            if !self.relay.has_room()? {
                return Ok(None);
            }
            if self.feed.is_spent() {
                self.relay.seal()?;
                return Ok(None);
            }
            match self.feed.next_set()? {
                Ok(set) => {
                    self.moved += set.bytes() as usize;
                    self.read += set.bytes();
                    control.advance(set.bytes());
                    self.relay.offer(set)?;
                }
                Err(ticket) => return Ok(Some(ticket)),
            }
        }
    }
}
