//! One part of a compaction at work: the merge of the inputs' entries in one range of user keys,
//! from the first read to the last sync. Most compactions have a single part, which has all keys.
//!
//! ```text
//!   Merge <-> (wait for a read or a write) -> Finish <-> (wait for syncs) -> built
//! ```
//!
//! A step of `Merge` offers the sets that have arrived, polls the engine for one slice of work,
//! certifies what came out and hands it to the sink. It waits only if the engine starves for
//! input or the sink has too many writes under way.

use std::time::Duration;

use lithify_base::{Error, Result};
use lithify_engine::{Engine, Offer, Progress, Session};
use lithify_env::sync::Arc;
use lithify_env::{Lane, Step, Ticket};
use lithify_merge::certify::{Certifier, Mode};
use lithify_merge::{BlockSet, Ledger, Products, Recipe};

use crate::feed::Feed;
use crate::reins::PartReins;
use crate::sink::Sink;

/// How long the engine's machine is waited for before it is looked at again.
const LOOK: Duration = Duration::from_secs(1);

/// A part at work.
pub(crate) struct PartJob {
    stage: Stage,
    reins: PartReins,
}

enum Stage {
    Merge(Box<Merging>),
    Finish(Box<Sink>, Box<Ledger>),
    Over,
}

/// How far a step came.
pub(crate) enum Advance {
    /// The part goes on.
    Step(Step),
    /// Its files are built and synced; they are removed with the sink.
    Built(Box<Sink>, Box<Ledger>),
}

/// Everything the merge needs while it goes on.
struct Merging {
    engine: Arc<dyn Engine>,
    recipe: Arc<Recipe>,
    feed: Feed,
    session: Box<dyn Session>,
    /// A set the session had no room for.
    held: Option<BlockSet>,
    sealed: bool,
    products: Products,
    /// Bytes read and written since the last step.
    moved: usize,
    /// None if the output is taken on trust, to measure what this costs.
    certifier: Option<Certifier>,
    sink: Sink,
}

impl PartJob {
    /// A part that merges what `feed` reads by `recipe`. `reins` count what it has done.
    pub(crate) fn new(
        engine: Arc<dyn Engine>,
        recipe: Arc<Recipe>,
        feed: Feed,
        sink: Sink,
        trusted: bool,
        reins: PartReins,
    ) -> Result<PartJob> {
        let caps = engine.caps();
        let session = engine.open(recipe.clone()).map_err(|refusal| {
            Error::unsupported(format!("engine {} refused: {refusal}", caps.name))
        })?;
        let mode = if caps.certify_fully { Mode::Full } else { Mode::Meta };
        let merging = Merging {
            engine,
            recipe,
            feed,
            session,
            held: None,
            sealed: false,
            products: Products::default(),
            moved: 0,
            certifier: (!trusted).then(|| Certifier::new(mode)),
            sink,
        };
        Ok(PartJob { stage: Stage::Merge(Box::new(merging)), reins })
    }

    /// One step. The part is of no use after an error.
    pub(crate) fn advance(&mut self) -> Result<Advance> {
        match std::mem::replace(&mut self.stage, Stage::Over) {
            Stage::Merge(mut merging) => match merging.advance(&self.reins)? {
                Merged::Step(step) => {
                    self.stage = Stage::Merge(merging);
                    Ok(Advance::Step(step))
                }
                Merged::Done(ledger) => {
                    self.stage = Stage::Finish(Box::new(merging.finish(&ledger)?), ledger);
                    Ok(Advance::Step(Step::More))
                }
            },
            Stage::Finish(mut sink, ledger) => match sink.finish()? {
                Some(ticket) => {
                    self.stage = Stage::Finish(sink, ledger);
                    Ok(Advance::Step(Step::Wait(ticket)))
                }
                None => Ok(Advance::Built(sink, ledger)),
            },
            Stage::Over => unreachable!("nobody steps a part that is over"),
        }
    }
}

enum Merged {
    Step(Step),
    Done(Box<Ledger>),
}

impl Merging {
    fn advance(&mut self, reins: &PartReins) -> Result<Merged> {
        if let Some(ticket) = self.sink.must_wait()? {
            return Ok(Merged::Step(Step::Wait(ticket)));
        }
        if let Some(wait) = self.sink.shop().pace(std::mem::take(&mut self.moved), Lane::Rest) {
            return Ok(Merged::Step(wait));
        }
        let waiting_for = self.offer(reins)?;
        let progress = self.session.poll(&mut self.products);
        if let Some(certifier) = &mut self.certifier {
            certifier.read(&self.recipe, &self.products)?;
        }
        self.moved += self.products.arena().len();
        self.sink.take(&mut self.products)?;
        match progress {
            Progress::More => Ok(Merged::Step(Step::More)),
            Progress::Starved => Ok(Merged::Step(match waiting_for {
                Some(ticket) => Step::Wait(ticket),
                None => Step::More,
            })),
            Progress::Pending(ticket) => {
                let look = self.sink.shop().env.rt.now() + LOOK;
                Ok(Merged::Step(Step::WaitUntil(ticket, look)))
            }
            Progress::Done(ledger) => {
                // Whoever comes next waits for it.
                self.sink.shop().pace(self.moved, Lane::Rest);
                Ok(Merged::Done(ledger))
            }
            Progress::Failed(fault) => Err(fault.error().clone()),
        }
    }

    /// Hands arrived sets to the session while it has room; the read to wait for, if that is
    /// what is missing.
    fn offer(&mut self, reins: &PartReins) -> Result<Option<Ticket>> {
        while !self.sealed {
            self.feed.read_ahead(|| self.engine.caps())?;
            let set = match self.held.take() {
                Some(set) => set,
                None if self.feed.is_spent() => {
                    self.session.seal();
                    self.sealed = true;
                    break;
                }
                None => match self.feed.next_set()? {
                    Ok(set) => {
                        self.moved += set.bytes() as usize;
                        reins.advance(set.bytes());
                        set
                    }
                    Err(ticket) => return Ok(Some(ticket)),
                },
            };
            if let Offer::Full(set) = self.session.offer(set) {
                self.held = Some(set);
                break;
            }
        }
        Ok(None)
    }

    fn finish(self, ledger: &Ledger) -> Result<Sink> {
        if let Some(certifier) = self.certifier {
            certifier.finish(ledger)?;
        }
        Ok(self.sink)
    }
}
