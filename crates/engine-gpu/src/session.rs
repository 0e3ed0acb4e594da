//! A session: the sets of one part, one after the other on a unit of the device.
//!
//! Keeps: one carry, that of `Offload`. A set counts when all of it is here and `Offload` took it, so each batch
//! of products is one whole set. Whatever goes wrong ends the session with [`Fault::Engine`]: the host goes on
//! with the CPU from the last carry, which also names a block that is bad.
//! Leaves to others: what happens on the device (`unit`), and the host's own proofs.

use std::collections::VecDeque;

use lithify_base::{Error, ErrorKind, Result};
use lithify_engine::{Fault, Offer, Progress, Session};
use lithify_env::sync::Arc;
use lithify_merge::{BlockSet, Carry, Offload, Products, Recipe};

use crate::Shared;
use crate::stage::Staged;
use crate::unit::{Trouble, Turn, Unit};

/// Sets a session holds, the one on the device included.
const SETS: usize = 2;

/// The sets of one part.
pub(crate) struct GpuSession {
    shared: Arc<Shared>,
    recipe: Arc<Recipe>,
    offload: Offload,
    unit: Unit,
    /// The first one is on the unit, if that is not idle.
    sets: VecDeque<BlockSet>,
    sealed: bool,
    over: bool,
}

impl GpuSession {
    pub(crate) fn new(
        shared: Arc<Shared>,
        recipe: Arc<Recipe>,
        carry: Option<Carry>,
    ) -> Result<GpuSession> {
        let offload = match carry {
            None => Offload::new(recipe.clone())?,
            Some(carry) => Offload::resume(recipe.clone(), carry)?,
        };
        let unit = Unit::new(shared.options.memory);
        let sets = VecDeque::new();
        Ok(GpuSession { shared, recipe, offload, unit, sets, sealed: false, over: false })
    }

    fn advance(&mut self, out: &mut Products) -> Result<Progress, Trouble> {
        if self.over {
            return Err(Trouble::Set(Error::invalid("this session is over")));
        }
        let Some(set) = self.sets.front() else {
            if !self.sealed {
                return Ok(Progress::Starved);
            }
            self.over = true;
            // What `finish` refuses is a matter of the recipe, which the CPU refuses, too.
            let ledger = self.offload.finish(out).map_err(Trouble::Set)?;
            return Ok(Progress::Done(Box::new(ledger)));
        };
        if self.unit.is_idle() {
            let staged = Staged::new(set).map_err(Trouble::Set)?;
            let normalised = staged.normalised;
            let mut device = self.shared.device()?;
            self.unit.start(&mut **device, &self.recipe, &self.offload, set, staged)?;
            drop(device);
            self.shared.staged(normalised);
            return Ok(Progress::More);
        }
        let mut device = self.shared.device()?;
        let turn = self.unit.turn(&mut **device, &self.recipe, &self.offload, set)?;
        drop(device);
        if let Turn::Made(made) = turn {
            // It refuses what cannot be; and tombstones that no file can store, which are the recipe's.
            self.offload.set_done(*made, out).map_err(|e| match e.kind() {
                ErrorKind::Internal => Trouble::Device(e),
                _ => Trouble::Set(e),
            })?;
            if let Some(set) = self.sets.pop_front() {
                self.shared.merged(set.bytes());
            }
        }
        Ok(Progress::More)
    }
}

impl Session for GpuSession {
    fn offer(&mut self, set: BlockSet) -> Offer {
        if self.sets.len() >= SETS || self.sealed {
            return Offer::Full(set);
        }
        self.sets.push_back(set);
        Offer::Taken
    }
    fn seal(&mut self) {
        self.sealed = true;
    }
    fn poll(&mut self, out: &mut Products) -> Progress {
        out.clear();
        match self.advance(out) {
            Ok(progress) => progress,
            Err(trouble) => {
                out.clear();
                self.over = true;
                self.shared.failed(&trouble);
                let error = trouble.error();
                // A device that is lost or wrong is no reason to doubt the input, nor is one that is right.
                let error = match error.kind() {
                    ErrorKind::Internal => error,
                    _ => Error::new(ErrorKind::Internal, "a set on the GPU").caused_by(error),
                };
                Progress::Failed(Fault::Engine(error))
            }
        }
    }
    fn cancel(self: Box<Self>) {}
}

impl Drop for GpuSession {
    fn drop(&mut self) {
        self.shared.close(&mut self.unit);
    }
}
