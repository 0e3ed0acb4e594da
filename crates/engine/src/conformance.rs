//! The suite every engine must pass: over generated workloads, the same bytes as the naive twin,
//! whatever the set budget and the blocks of the input.
//!
//! Keeps: a case is a pure function of its seed, so a failure names everything needed to see it
//! again. A session that waits for its machine is waited for on its ticket, and counts as hung only
//! after seconds without a sign of life, however many polls that takes.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use lithify_base::{Error, ErrorKind, Result};
use lithify_env::{Mono, Rt};
use lithify_merge::certify::{Certifier, Mode};
use lithify_merge::naive;
use lithify_merge::workload::{Case, Choices};
use lithify_merge::{Carry, Ledger, Products, Recipe};

pub use lithify_merge::naive::{OutFile, Output};
pub use lithify_merge::workload::{Features, Size};

use crate::{BlockSet, CpuEngine, Engine, Fault, Item, Offer, Progress, Refusal, Session};

/// An engine that brings no products for so long is hung: no case takes a machine a second.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long a ticket is waited for before the engine is polled again.
const LOOK: Duration = Duration::from_secs(1);

/// What a suite asks of an engine.
#[derive(Clone, Copy, Debug)]
pub struct Profile {
    /// Bounds of its cases.
    pub size: Size,
    /// What is in them.
    pub features: Features,
    /// Every batch must end with a set, as it must from all engines that may fail.
    pub whole_sets: bool,
}

impl Profile {
    /// For the reference engine: everything, and batches may end anywhere.
    pub fn reference(size: Size) -> Profile {
        Profile { size, features: Features::All, whole_sets: false }
    }
    /// For an engine that takes everything and may fail.
    pub fn everything(size: Size) -> Profile {
        Profile { size, features: Features::All, whole_sets: true }
    }
    /// For an engine that takes what devices take, and may fail.
    pub fn device(size: Size) -> Profile {
        Profile { size, features: Features::Device, whole_sets: true }
    }
    /// For the same, with blocks that are compressed with LZ4.
    pub fn lz4(size: Size) -> Profile {
        Profile { size, features: Features::Lz4, whole_sets: true }
    }
    /// For the same, where keys go on with the bytes of tags.
    pub fn tag_keys(size: Size) -> Profile {
        Profile { size, features: Features::TagKeys, whole_sets: true }
    }
}

/// What one session came to.
#[derive(Clone, Debug, PartialEq)]
pub struct Ran {
    /// Its output, certified in full.
    pub output: Output,
    /// Its ledger.
    pub ledger: Ledger,
    /// Sets that the engine merged.
    pub here: u64,
    /// Sets that the CPU merged, after the engine had given up.
    pub on_cpu: u64,
}

/// Runs one session to its end, by this engine alone.
///
/// # Errors
/// What the session failed with, what certification refused, or that the engine hung.
pub fn run(
    engine: &dyn Engine,
    rt: &dyn Rt,
    recipe: &Arc<Recipe>,
    sets: Vec<BlockSet>,
    whole_sets: bool,
) -> Result<Ran> {
    Drive::new(engine, rt, recipe, whole_sets, false)?.run(sets)
}

/// A session at work.
struct Drive<'a> {
    rt: &'a dyn Rt,
    recipe: &'a Arc<Recipe>,
    session: Box<dyn Session>,
    whole_sets: bool,
    /// The CPU may go on where the engine gives up.
    helped: bool,
    certifier: Certifier,
    ran: Ran,
    /// The end of the last set, and the sets offered since.
    carry: Option<Carry>,
    kept: VecDeque<BlockSet>,
    last_sign: Mono,
}

impl<'a> Drive<'a> {
    fn new(
        engine: &dyn Engine,
        rt: &'a dyn Rt,
        recipe: &'a Arc<Recipe>,
        whole_sets: bool,
        helped: bool,
    ) -> Result<Drive<'a>> {
        Ok(Drive {
            rt,
            recipe,
            session: engine.open(recipe.clone()).map_err(refused)?,
            whole_sets,
            helped,
            certifier: Certifier::new(Mode::Full),
            ran: Ran { output: Output::default(), ledger: Ledger::default(), here: 0, on_cpu: 0 },
            carry: None,
            kept: VecDeque::new(),
            last_sign: rt.now(),
        })
    }

    fn run(mut self, sets: Vec<BlockSet>) -> Result<Ran> {
        let mut sets = VecDeque::from(sets);
        let mut products = Products::default();
        let mut by_cpu = false;
        loop {
            match sets.pop_front() {
                None => self.session.seal(),
                Some(set) => match self.session.offer(set.clone()) {
                    Offer::Taken => self.kept.push_back(set),
                    Offer::Full(_) => sets.push_front(set),
                },
            }
            let progress = self.session.poll(&mut products);
            match progress {
                Progress::Failed(Fault::Engine(_) | Fault::Unsuitable(_))
                    if self.helped && !by_cpu =>
                {
                    by_cpu = true;
                    self.session = match self.carry.clone() {
                        None => CpuEngine.open(self.recipe.clone()),
                        Some(carry) => CpuEngine.resume(self.recipe.clone(), carry),
                    }
                    .map_err(refused)?;
                    self.kept.drain(..).rev().for_each(|set| sets.push_front(set));
                    continue;
                }
                Progress::Failed(fault) => return Err(fault.error().clone()),
                _ => {}
            }
            self.take(&products, by_cpu, matches!(progress, Progress::Done(_)))?;
            match progress {
                Progress::Done(ledger) => {
                    self.certifier.finish(&ledger)?;
                    return Ok(Ran { ledger: *ledger, ..self.ran });
                }
                Progress::Pending(ticket) => {
                    self.rt.park(&ticket, Some(self.rt.now() + LOOK));
                }
                _ => {}
            }
            if self.rt.now().since(self.last_sign) > PATIENCE {
                self.session.cancel();
                return Err(internal("the engine hangs"));
            }
        }
    }

    fn take(&mut self, products: &Products, by_cpu: bool, done: bool) -> Result<()> {
        let Some(last) = products.items().last() else { return Ok(()) };
        if self.whole_sets && !by_cpu && !done && !matches!(last, Item::SetDone(_)) {
            return Err(internal("a batch ends in the middle of a set"));
        }
        self.certifier.read(self.recipe, products)?;
        self.ran.output.absorb(products);
        self.last_sign = self.rt.now();
        for item in products.items() {
            let Item::SetDone(ended) = item else { continue };
            if self.kept.pop_front().is_none_or(|set| set.no != ended.no) {
                return Err(internal("a set ends that was not begun"));
            }
            self.carry = Some((*ended.carry).clone());
            *if by_cpu { &mut self.ran.on_cpu } else { &mut self.ran.here } += 1;
        }
        Ok(())
    }
}

/// What a suite found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Cases run to the end and found equal.
    pub equal: u64,
    /// Cases the engine refused at open, as it may.
    pub refused: u64,
    /// Sets of equal cases that the engine merged; each case is cut in three ways.
    pub here: u64,
    /// Sets of equal cases that the CPU merged because the engine gave up ([`Fault::Engine`],
    /// [`Fault::Unsuitable`]), as it may.
    pub on_cpu: u64,
}

/// Runs generated cases through an engine and compares every byte with the naive twin: values up to
/// `size.value`, 1 to 16 runs, snapshots, range tombstones, splits, checksums, and unless `features` leave them
/// out keys of 0 to 300 bytes, all kinds and codecs; for each case several ways to cut its input into sets.
/// Where the engine gives up the CPU goes on from its last carry, and the output is compared all the same.
///
/// # Errors
/// Internal, naming the seed of the first case that differs; or what the session failed with.
pub fn suite(
    engine: &dyn Engine,
    rt: &dyn Rt,
    seeds: std::ops::Range<u64>,
    profile: Profile,
) -> Result<Report> {
    let mut report = Report::default();
    for seed in seeds {
        let case = Case::with(seed, profile.size, profile.features)?;
        if engine.open(case.recipe.clone()).map(Session::cancel).is_err() {
            report.refused += 1;
            continue;
        }
        let (expected, ledger) = naive::compact(&case.recipe, case.entries())?;
        let dice = &mut Choices::new(seed);
        let cuts = [case.sets(1), case.sets(u64::MAX), case.sets_by(|| 1 + dice.bits() % 20_000)];
        for sets in cuts {
            let drive = Drive::new(engine, rt, &case.recipe, profile.whole_sets, true);
            let ran = drive.and_then(|drive| drive.run(sets)).map_err(|e| at_seed(seed, e))?;
            if ran.output != expected || ran.ledger != ledger || !ran.output.is_closed() {
                return Err(at_seed(seed, internal("output differs from the naive twin")));
            }
            report.here += ran.here;
            report.on_cpu += ran.on_cpu;
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
    rt: &dyn Rt,
    seeds: std::ops::Range<u64>,
    profile: Profile,
) -> Result<()> {
    for seed in seeds {
        let case = Case::with(seed, profile.size, profile.features)?;
        let (expected, _) = naive::compact(&case.recipe, case.entries())?;
        let output = in_turns(&[one, other], rt, &case).map_err(|e| at_seed(seed, e))?;
        if output != expected {
            return Err(at_seed(seed, internal("a handover left a trace in the output")));
        }
    }
    Ok(())
}

fn in_turns(engines: &[&dyn Engine], rt: &dyn Rt, case: &Case) -> Result<Output> {
    let mut output = Output::default();
    let mut products = Products::default();
    let mut carry: Option<Carry> = None;
    let sets = case.sets(3000);
    let last = sets.len();
    if last == 0 {
        return Ok(run(engines[0], rt, &case.recipe, sets, false)?.output);
    }
    for (i, set) in sets.into_iter().enumerate() {
        let engine = engines[i % engines.len()];
        let recipe = case.recipe.clone();
        let mut session = match carry.take() {
            None => engine.open(recipe).map_err(refused)?,
            Some(carry) => engine.resume(recipe, carry).map_err(refused)?,
        };
        if let Offer::Full(_) = session.offer(set) {
            return Err(internal("a fresh session has no room for a set"));
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
                Progress::More => {}
                Progress::Pending(ticket) => {
                    rt.park(&ticket, Some(rt.now() + LOOK));
                }
            }
        }
    }
    Ok(output)
}

fn refused(refusal: Refusal) -> Error {
    Error::new(ErrorKind::Unsupported, refusal.to_string())
}

fn internal(what: &str) -> Error {
    Error::new(ErrorKind::Internal, what)
}

fn at_seed(seed: u64, e: Error) -> Error {
    Error::new(e.kind(), format!("conformance seed {seed}")).caused_by(e)
}
