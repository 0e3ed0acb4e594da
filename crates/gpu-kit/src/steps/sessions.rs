//! Step 7: generated sets through a session, pinned to pinned; and the way there, for other steps.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, bail};
use lithify_engine::stream::{Stream, StreamShape};
use lithify_engine::{BlockSet, Bytes, Engine, Offer, Products, Progress, Recipe, Ticket};
use lithify_format::compress::Codec;
use lithify_merge::certify::{Certifier, Mode};
use lithify_merge::workload::{BlockStyle, Case};

use super::Found;
use crate::machine::Machine;

/// Sets of one part.
pub(crate) struct Job {
    recipe: Arc<Recipe>,
    sets: Vec<BlockSet>,
}

impl Job {
    /// Eight runs with values of `value` bytes, keys of 16, about `bytes` together, in sets of `set` bytes.
    pub(crate) fn new(value: usize, bytes: u64, set: u64) -> Result<Job> {
        let mut stream = Stream::new(StreamShape { runs: 8, key: 16, value, bytes, seed: 1 });
        let recipe = Arc::new(Recipe { filter: true, ..Recipe::clone(&stream.recipe) });
        let mut sets = Vec::new();
        while let Some(one) = stream.next_set(set, u16::MAX)? {
            sets.push(one);
        }
        Ok(Job { recipe, sets })
    }
}

impl Job {
    /// About `bytes` of entries with values of 128 bytes that repeat themselves, in blocks that are compressed with LZ4, and so
    /// is what comes out: one set. Bytes of its entries beside it.
    pub(crate) fn lz4(bytes: u64) -> Result<(Job, u64)> {
        const VALUE: usize = 128;
        const PERIOD: usize = 48;
        let entries = bytes / (VALUE as u64 + 24);
        let mut case = Case::uniform(1, 8, entries as usize, 16, VALUE)?;
        for e in case.runs.iter_mut().flatten() {
            let (once, again) = e.value.split_at_mut(PERIOD);
            again.iter_mut().zip(once.iter().cycle()).for_each(|(to, from)| *to = *from);
        }
        let style = BlockStyle { codec: Codec::Lz4, ..BlockStyle::default() };
        case.blocks = case.runs.iter().map(|run| style.encode(run)).collect::<Result<_, _>>()?;
        let recipe = Recipe { codec: Codec::Lz4, ..Recipe::clone(&case.recipe) };
        let job = Job { recipe: Arc::new(recipe), sets: case.sets(u64::MAX) };
        Ok((job, entries * (VALUE as u64 + 24)))
    }
}

/// How often memory for an input is asked for: the pump takes it from the device meanwhile.
const ASKED: usize = 1000;

impl Job {
    /// The same with its blocks in memory that the engine lends, one piece for each run of a set, as the feed of a compaction reads
    /// them; how many pieces stay where they are, as there was none.
    pub(crate) fn in_place(&self, machine: &Machine, engine: &dyn Engine) -> Result<(Job, usize)> {
        let (mut sets, mut left) = (self.sets.clone(), 0);
        for run in sets.iter_mut().flat_map(|set| &mut set.runs) {
            let all: usize = run.blocks.iter().map(|block| block.bytes.len()).sum();
            let mut lent = engine.input_buffer(all);
            for _ in 0..ASKED {
                if lent.is_some() {
                    break;
                }
                // Where the pump is no job a session turns it.
                drop(engine.open(self.recipe.clone()));
                let at = machine.rt.now() + Duration::from_millis(1);
                machine.rt.park(&Ticket::new(), Some(at));
                lent = engine.input_buffer(all);
            }
            let Some(mut buffer) = lent.filter(|buffer| buffer.capacity() >= all) else {
                left += 1;
                continue;
            };
            buffer.clear();
            run.blocks.iter().for_each(|block| buffer.extend_from_slice(block.bytes.as_slice()));
            let (bytes, mut at) = (Bytes::new(Arc::new(buffer)), 0);
            let mut blocks = run.blocks.to_vec();
            for block in &mut blocks {
                let end = at + block.bytes.len();
                block.bytes = bytes.slice(at..end)?;
                at = end;
            }
            run.blocks = blocks.into();
        }
        Ok((Job { recipe: self.recipe.clone(), sets }, left))
    }
}

/// What a job took.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Ran {
    pub(crate) seconds: f64,
    pub(crate) stored: u64,
    pub(crate) sets: u64,
}

/// Sends a job through a session on this thread, and certifies what comes out by sums.
pub(crate) fn through(machine: &Machine, engine: &dyn Engine, job: &Job) -> Result<Ran> {
    let mut sets = job.sets.clone().into_iter();
    let (stored, of) = (job.sets.iter().map(BlockSet::bytes).sum(), job.sets.len() as u64);
    let start = machine.seconds();
    let mut session = match engine.open(job.recipe.clone()) {
        Ok(session) => session,
        Err(refusal) => bail!("{refusal}"),
    };
    let (mut certifier, mut products) = (Certifier::new(Mode::Sums), Products::default());
    let mut held = None;
    let mut sealed = false;
    loop {
        while !sealed {
            match held.take().or_else(|| sets.next()) {
                None => {
                    session.seal();
                    sealed = true;
                }
                Some(set) => {
                    if let Offer::Full(set) = session.offer(set) {
                        held = Some(set);
                        break;
                    }
                }
            }
        }
        let progress = session.poll(&mut products);
        certifier.read(&job.recipe, &products)?;
        match progress {
            Progress::Done(ledger) => {
                certifier.finish(&ledger)?;
                return Ok(Ran { seconds: machine.seconds() - start, stored, sets: of });
            }
            Progress::Failed(fault) => bail!("{}", fault.error()),
            Progress::Pending(ticket) => drop(machine.rt.park(&ticket, None)),
            Progress::More | Progress::Starved => {}
        }
    }
}

/// The best rate of some rounds, GB/s of stored input.
fn rate(machine: &Machine, value: usize, units: u8, set: u64, copied: &mut usize) -> Result<f64> {
    let job = Job::new(value, machine.size(1 << 30, 1 << 20), set)?;
    let mut best: f64 = 0.0;
    for _ in 0..machine.size(3, 1) {
        let engine = machine.engine(machine.options(units, set))?;
        let (job, left) = job.in_place(machine, &engine)?;
        *copied += left;
        let ran = through(machine, &engine, &job)?;
        best = best.max(ran.stored as f64 / ran.seconds / 1e9);
    }
    Ok(best)
}

pub(crate) fn run(machine: &Machine) -> Result<Found> {
    let (mut found, mut copied) = (Found::default(), 0);
    let mib = |full: u64| machine.size(full << 20, 64 << 10);
    for value in machine.asked.values(&[32, 64, 128, 256, 1024]) {
        found.figure(format!("v{value}"), rate(machine, value, 3, mib(32), &mut copied)?);
    }
    found.figure("v128_one_unit", rate(machine, 128, 1, mib(32), &mut copied)?);
    for (units, set) in [(2, 32), (4, 32), (3, 8), (3, 64), (3, 128)] {
        if !machine.asked.quick {
            let name = format!("v128_{units}_units_{set}mib");
            found.figure(name, rate(machine, 128, units, mib(set), &mut copied)?);
        }
    }
    found.note(match copied {
        0 => "input lies in pinned memory from the start; the thread of the session certifies by sums".to_owned(),
        n => format!("{n} pieces of input had no pinned memory, and the pump copied them into some"),
    });
    Ok(found)
}
