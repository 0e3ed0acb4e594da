//! Step 7: generated sets through a session, pinned to pinned; and the way there, for other steps.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, anyhow, bail};
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
    /// Seconds that the session's thread waited.
    pub(crate) waited: f64,
    pub(crate) stored: u64,
    pub(crate) sets: u64,
}

/// Sends a job through a session on this thread, and certifies what comes out by sums.
pub(crate) fn through(machine: &Machine, engine: &dyn Engine, job: &Job) -> Result<Ran> {
    let mut sets = job.sets.clone().into_iter();
    let (stored, of) = (job.sets.iter().map(BlockSet::bytes).sum(), job.sets.len() as u64);
    let mut waited = 0.0;
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
                return Ok(Ran { waited, stored, sets: of });
            }
            Progress::Failed(fault) => bail!("{}", fault.error()),
            Progress::Pending(ticket) => {
                let start = machine.seconds();
                machine.rt.park(&ticket, None);
                waited += machine.seconds() - start;
            }
            Progress::More | Progress::Starved => {}
        }
    }
}

/// How sets go through a device: so many sessions at once, each on a thread of its own, by so many engines, which have
/// the units between them; bytes of a set.
#[derive(Clone, Copy)]
struct How {
    sessions: usize,
    units: u8,
    engines: u8,
    set: u64,
}

/// What is measured of sets that go through.
#[derive(Clone, Copy, Default)]
struct Rate {
    /// GB/s of stored input.
    gb_per_s: f64,
    /// Share of the time in which the first session's thread did not wait.
    busy: f64,
}

/// The best of some rounds. The same engines serve all of them, and take their memory in a first round that does not count, as
/// a store at work has it. Sessions of one engine have the same input.
fn rate(machine: &Machine, job: &Job, how: How, copied: &mut usize) -> Result<Rate> {
    let mut engines = Vec::new();
    for _ in 0..how.engines {
        let engine = machine.engine(machine.options(how.units / how.engines, how.set))?;
        let (job, left) = job.in_place(machine, &engine)?;
        *copied += left;
        engines.push((engine, job));
    }
    let mut best = Rate::default();
    for round in 0..machine.size(4, 2) {
        let start = machine.seconds();
        let [stored, waited] = std::thread::scope(|scope| -> Result<[f64; 2]> {
            let one = |no: usize| {
                let (engine, job) = &engines[no % engines.len()];
                through(machine, engine, job)
            };
            let others: Vec<_> = (1..how.sessions).map(|no| scope.spawn(move || one(no))).collect();
            let Ran { mut stored, waited, .. } = one(0)?;
            for other in others {
                stored += other.join().map_err(|_| anyhow!("a session panicked"))??.stored;
            }
            Ok([stored as f64, waited])
        })?;
        let seconds = machine.seconds() - start;
        let rate = Rate { gb_per_s: stored / seconds / 1e9, busy: 1.0 - waited / seconds };
        if round > 0 && rate.gb_per_s > best.gb_per_s {
            best = rate;
        }
    }
    Ok(best)
}

/// How many sessions, units and engines.
type Rows = &'static [(usize, u8, u8)];

pub(crate) fn run(machine: &Machine) -> Result<Found> {
    let (mut found, mut copied) = (Found::default(), 0);
    let quick = machine.asked.quick;
    for value in machine.asked.values(&[32, 64, 128, 256, 1024]) {
        // By MiB of a set.
        let rows: &[(u64, Rows)] = match value {
            _ if quick => &[(8, &[(1, 3, 1)])],
            128 => &[
                (8, &[(1, 1, 1), (1, 3, 1), (8, 16, 1), (8, 16, 2)]),
                (16, &[(1, 3, 1), (8, 16, 1), (8, 16, 2), (12, 24, 3)]),
                (32, &[(8, 16, 1), (12, 24, 3)]),
            ],
            _ => &[(8, &[(1, 3, 1), (8, 16, 1)]), (16, &[(8, 16, 2), (12, 24, 3)])],
        };
        for (mib, rows) in rows {
            let set = machine.size(mib << 20, 64 << 10);
            let job = Job::new(value, machine.size(1 << 30, 256 << 10), set)?;
            for &(sessions, units, engines) in *rows {
                let how = How { sessions, units, engines, set };
                let rate = rate(machine, &job, how, &mut copied)?;
                let mut name = format!("v{value}");
                name += &if sessions > 1 { format!("_{sessions}_sessions") } else { String::new() };
                name += if units == 1 { "_one_unit" } else { "" };
                name += &if engines > 1 { format!("_{engines}_engines") } else { String::new() };
                name += &if *mib != 8 { format!("_{mib}mib") } else { String::new() };
                found.figure(format!("{name}_busy"), rate.busy);
                found.figure(name, rate.gb_per_s);
            }
        }
    }
    found.note(match copied {
        0 => {
            "input lies in pinned memory from the start; the thread of a session certifies by sums"
                .to_owned()
        }
        n => {
            format!("{n} pieces of input had no pinned memory, and the pump copied them into some")
        }
    });
    Ok(found)
}
