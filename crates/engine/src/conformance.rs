//! The suite every engine must pass: over generated workloads, the same bytes as the naive twin,
//! whatever the set budget and the blocks of the input.
//!
//! Keeps: a case is a pure function of its seed, so a failure names everything needed to see it
//! again.

use std::sync::Arc;

use lithify_base::{Error, ErrorKind, Result};
use lithify_merge::certify::{Certifier, Mode};
use lithify_merge::naive::Output;
use lithify_merge::{Ledger, Products, Recipe};

use crate::{BlockSet, Engine, Offer, Progress};

/// Polls without progress after which an engine counts as hung.
const PATIENCE: u32 = 10_000;

/// Runs one session to its end and returns its output, certified in full.
///
/// # Errors
/// What the session failed with, what certification refused, or that the engine hung.
pub fn run(
    engine: &dyn Engine,
    recipe: &Arc<Recipe>,
    sets: Vec<BlockSet>,
) -> Result<(Output, Ledger)> {
    let mut session = engine
        .open(recipe.clone())
        .map_err(|r| Error::new(ErrorKind::Unsupported, r.to_string()))?;
    let mut certifier = Certifier::new(Mode::Full);
    let mut output = Output::default();
    let mut products = Products::default();
    let mut sets = sets.into_iter();
    let mut next = sets.next();
    let mut idle = 0;
    loop {
        match next.take() {
            Some(set) => match session.offer(set) {
                Offer::Taken => next = sets.next(),
                Offer::Full(set) => next = Some(set),
            },
            None => session.seal(),
        }
        let progress = session.poll(&mut products);
        if let Progress::Failed(fault) = &progress {
            return Err(fault.error().clone());
        }
        certifier.read(recipe, &products)?;
        output.absorb(&products);
        idle = if matches!(progress, Progress::Pending) { idle + 1 } else { 0 };
        if let Progress::Done(ledger) = progress {
            certifier.finish(&ledger)?;
            return Ok((output, *ledger));
        }
        if idle > PATIENCE {
            session.cancel();
            return Err(Error::new(ErrorKind::Internal, "the engine hangs"));
        }
    }
}
