//! The suite every engine must pass: over generated workloads, the same bytes as the naive twin,
//! whatever the set budget and the blocks of the input.
//!
//! Keeps: a case is a pure function of its seed, so a failure names everything needed to see it
//! again.

use std::sync::Arc;

use lithify_base::{Error, ErrorKind, Result};
use lithify_merge::certify::{Certifier, Mode};
use lithify_merge::naive::{self, Output};
use lithify_merge::workload::{Case, Choices, Size};
use lithify_merge::{Carry, Ledger, Products, Recipe};

use crate::{BlockSet, Engine, Item, Offer, Progress, Session};

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

/// What a suite found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Cases run to the end and found equal.
    pub equal: u64,
    /// Cases the engine refused at open, as it may.
    pub refused: u64,
}

/// Runs generated cases through an engine and compares every byte with the naive twin: key
/// lengths 0 to 300, values up to `size.value`, 1 to 16 runs, all kinds, snapshots, range
/// tombstones, splits, codecs, and for each case several ways to cut its input into sets.
///
/// # Errors
/// Internal, naming the seed of the first case that differs; or what the session failed with.
pub fn suite(engine: &dyn Engine, seeds: std::ops::Range<u64>, size: Size) -> Result<Report> {
    let mut report = Report::default();
    for seed in seeds {
        let case = Case::generate(seed, size)?;
        if engine.open(case.recipe.clone()).map(Session::cancel).is_err() {
            report.refused += 1;
            continue;
        }
        let (expected, ledger) = naive::compact(&case.recipe, case.entries())?;
        let dice = &mut Choices::new(seed);
        let cuts = [case.sets(1), case.sets(u64::MAX), case.sets_by(|| 1 + dice.bits() % 20_000)];
        for sets in cuts {
            let (output, seen) = run(engine, &case.recipe, sets).map_err(|e| at_seed(seed, e))?;
            if output != expected || seen != ledger || !output.is_closed() {
                let e = Error::new(ErrorKind::Internal, "output differs from the naive twin");
                return Err(at_seed(seed, e));
            }
        }
        report.equal += 1;
    }
    Ok(report)
}

/// Stops after every set and goes on with a fresh session of the other engine: carries must be
/// interchangeable.
///
/// # Errors
/// As [`suite`].
pub fn handover(
    one: &dyn Engine,
    other: &dyn Engine,
    seeds: std::ops::Range<u64>,
    size: Size,
) -> Result<()> {
    for seed in seeds {
        let case = Case::generate(seed, size)?;
        let (expected, _) = naive::compact(&case.recipe, case.entries())?;
        let output = relay(&[one, other], &case).map_err(|e| at_seed(seed, e))?;
        if output != expected {
            let e = Error::new(ErrorKind::Internal, "a handover left a trace in the output");
            return Err(at_seed(seed, e));
        }
    }
    Ok(())
}

fn relay(engines: &[&dyn Engine], case: &Case) -> Result<Output> {
    let refused = |r: crate::Refusal| Error::new(ErrorKind::Unsupported, r.to_string());
    let mut output = Output::default();
    let mut products = Products::default();
    let mut carry: Option<Carry> = None;
    let sets = case.sets(3000);
    let last = sets.len();
    if last == 0 {
        return Ok(run(engines[0], &case.recipe, sets)?.0);
    }
    for (i, set) in sets.into_iter().enumerate() {
        let engine = engines[i % engines.len()];
        let recipe = case.recipe.clone();
        let mut session = match carry.take() {
            None => engine.open(recipe).map_err(refused)?,
            Some(carry) => engine.resume(recipe, carry).map_err(refused)?,
        };
        if let Offer::Full(_) = session.offer(set) {
            return Err(Error::new(ErrorKind::Internal, "a fresh session has no room for a set"));
        }
        if i + 1 == last {
            session.seal();
        }
        loop {
            let progress = session.poll(&mut products);
            output.absorb(&products);
            let done = products.items().iter().rev().find_map(|item| match item {
                Item::SetDone(done) => Some((*done.carry).clone()),
                _ => None,
            });
            carry = done.or(carry);
            match progress {
                Progress::Failed(fault) => return Err(fault.error().clone()),
                Progress::Done(_) | Progress::Starved => break,
                Progress::More | Progress::Pending => {}
            }
        }
    }
    Ok(output)
}

fn at_seed(seed: u64, e: Error) -> Error {
    Error::new(e.kind(), format!("conformance seed {seed}")).caused_by(e)
}

#[cfg(test)]
mod tests;
