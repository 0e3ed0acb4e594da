//! A host in small: it certifies and proves what an engine hands out, and goes on with the CPU.

use std::collections::VecDeque;

use lithify_base::{Error, Result};
use lithify_engine::conformance::Output;
use lithify_engine::{BlockSet, Carry, CpuEngine, Engine, Item, Ledger, Offer, Products, Progress};
use lithify_merge::certify::{Certifier, Mode};
use lithify_merge::prove::{self, Claim};
use lithify_merge::workload::Case;

/// What a part came to.
#[derive(Debug)]
pub(crate) struct Part {
    pub(crate) output: Output,
    pub(crate) ledger: Ledger,
    /// Sets that the engine merged.
    pub(crate) here: u64,
    /// The engine gave up, or was refused.
    pub(crate) gave_up: bool,
    /// What it handed out was disproved.
    pub(crate) disproved: Option<Error>,
}

/// Runs a part. Where the engine gives up the CPU goes on from the last carry; where it is disproved the CPU
/// does the whole part again.
pub(crate) fn part(engine: &dyn Engine, case: &Case, sets: Vec<BlockSet>) -> Part {
    let mut part = run(engine, case, sets.clone());
    if let Some(error) = part.disproved.take() {
        engine.disown(&error);
        part = Part { disproved: Some(error), ..run(&CpuEngine, case, sets) };
    }
    part
}

fn run(engine: &dyn Engine, case: &Case, sets: Vec<BlockSet>) -> Part {
    let (output, ledger) = (Output::default(), Ledger::default());
    let mut part = Part { output, ledger, here: 0, gave_up: false, disproved: None };
    if let Err(error) = attempt(engine, case, sets, &mut part) {
        part.disproved = Some(error);
    }
    part
}

fn attempt(engine: &dyn Engine, case: &Case, sets: Vec<BlockSet>, part: &mut Part) -> Result<()> {
    let recipe = &case.recipe;
    let mut session = engine.open(recipe.clone()).or_else(|_| {
        part.gave_up = true;
        CpuEngine.open(recipe.clone())
    });
    let mut certifier = Certifier::new(Mode::Full);
    let (mut sets, mut kept): (VecDeque<_>, VecDeque<BlockSet>) = (sets.into(), VecDeque::new());
    let mut carry: Option<Carry> = None;
    let mut products = Products::default();
    loop {
        let Ok(open) = &mut session else { panic!("the CPU takes everything") };
        match sets.pop_front() {
            None => open.seal(),
            Some(set) => match open.offer(set.clone()) {
                Offer::Taken => kept.push_back(set),
                Offer::Full(_) => sets.push_front(set),
            },
        }
        let progress = open.poll(&mut products);
        if let Progress::Failed(fault) = progress {
            assert!(!part.gave_up, "the CPU fails: {}", fault.error());
            part.gave_up = true;
            kept.drain(..).rev().for_each(|set| sets.push_front(set));
            session = match carry.clone() {
                None => CpuEngine.open(recipe.clone()),
                Some(carry) => CpuEngine.resume(recipe.clone(), carry),
            };
            continue;
        }
        certifier.read(recipe, &products)?;
        // Small sets: the CPU, too, hands out whole ones.
        let claims = [Claim::from(&products)];
        part.output.absorb(&products);
        if let Progress::Done(ledger) = progress {
            certifier.finish(&ledger)?;
            prove::end(recipe, carry.as_ref(), &claims, &ledger)?;
            part.ledger = *ledger;
            return Ok(());
        }
        if let Some(Item::SetDone(done)) = products.items().last() {
            let set = kept.pop_front().expect("a set was offered");
            prove::set(recipe, carry.as_ref(), set, &claims)?;
            carry = Some((*done.carry).clone());
            part.here += u64::from(!part.gave_up);
        }
    }
}
