//! Step 7: generated sets through a session, pinned to pinned; and the way there, for other steps.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, anyhow, bail};
use lithify_engine::stream::{Stream, StreamShape};
use lithify_engine::{BlockSet, Bytes, Engine, Offer, Products, Progress, Recipe, Ticket};
use lithify_engine_gpu::{GpuEngine, GpuOptions};
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
    certified(machine, engine, job, Mode::Sums)
}

/// The same, and so much is certified.
fn certified(machine: &Machine, engine: &dyn Engine, job: &Job, mode: Mode) -> Result<Ran> {
    let mut sets = job.sets.clone().into_iter();
    let (stored, of) = (job.sets.iter().map(BlockSet::bytes).sum(), job.sets.len() as u64);
    let mut waited = 0.0;
    let mut session = match engine.open(job.recipe.clone()) {
        Ok(session) => session,
        Err(refusal) => bail!("{refusal}"),
    };
    let (mut certifier, mut products) = (Certifier::new(mode), Products::default());
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
/// the units between them; MiB of a set. As `8:16:1:8`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct How {
    sessions: usize,
    units: u8,
    engines: u8,
    mib: u64,
}

/// A row of so many sessions, units and engines, with sets of so many MiB.
const fn how(sessions: usize, units: u8, engines: u8, mib: u64) -> How {
    How { sessions, units, engines, mib }
}

impl FromStr for How {
    type Err = anyhow::Error;

    fn from_str(of: &str) -> Result<How> {
        let parts: Vec<u8> = of.split(':').map(str::parse).collect::<Result<_, _>>()?;
        match parts.as_slice() {
            &[sessions, units, engines, mib]
                if sessions.min(engines).min(mib) > 0 && units >= engines =>
            {
                Ok(how(sessions.into(), units, engines, mib.into()))
            }
            _ => bail!(
                "{of}: SESSIONS:UNITS:ENGINES:MIB, at least one of each, a unit for each engine"
            ),
        }
    }
}

impl fmt::Display for How {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}:{}", self.sessions, self.units, self.engines, self.mib)
    }
}

impl How {
    /// What a figure is called.
    fn name(&self, value: usize) -> String {
        let mut name = format!("v{value}");
        name +=
            &if self.sessions > 1 { format!("_{}_sessions", self.sessions) } else { String::new() };
        name += &match usize::from(self.units) {
            1 => "_one_unit".to_owned(),
            units if self.sessions > 1 && units != 2 * self.sessions => format!("_{units}_units"),
            _ => String::new(),
        };
        name +=
            &if self.engines > 1 { format!("_{}_engines", self.engines) } else { String::new() };
        name + &if self.mib == 8 { String::new() } else { format!("_{}mib", self.mib) }
    }
}

/// What is measured of sets that go through.
#[derive(Clone, Copy, Default)]
struct Rate {
    /// GB/s of stored input.
    gb_per_s: f64,
    /// Share of the time in which the first session's thread did not wait.
    busy: f64,
    /// Shares of the time in which the first engine's sets were on their way up, in kernels, on their way down.
    stages: [f64; 3],
}

/// Seconds of an engine's sets in each stage, so far.
fn stages(engine: &dyn Engine) -> [f64; 3] {
    let report = engine.report();
    ["up_seconds", "kernels_seconds", "down_seconds"]
        .map(|name| report.iter().find(|(of, _)| *of == name).map_or(0.0, |(_, seconds)| *seconds))
}

/// Jobs that a session's thread does one after the other: what a job's first and last sets wait for is a small part then.
const JOBS: u64 = 4;

/// The engines of a row, each with the job's input in its own memory. Sessions of one engine have the same input.
fn engines(
    machine: &Machine,
    job: &Job,
    how: How,
    copied: &mut usize,
) -> Result<Vec<(GpuEngine, Job)>> {
    let set = machine.size(how.mib << 20, 64 << 10);
    (0..how.engines)
        .map(|_| {
            let options = machine.options(how.units / how.engines, set);
            // As in a store that tunes its sets, moments are noted; here there is one size to choose from.
            let engine = machine.engine(GpuOptions { tuned: Some((set, set)), ..options })?;
            let (job, left) = job.in_place(machine, &engine)?;
            *copied += left;
            Ok((engine, job))
        })
        .collect()
}

/// A round of `jobs` jobs for each session.
fn round(
    machine: &Machine,
    engines: &[(GpuEngine, Job)],
    how: How,
    mode: Mode,
    jobs: u64,
) -> Result<Rate> {
    let before = stages(&engines[0].0);
    let start = machine.seconds();
    let [stored, waited] = std::thread::scope(|scope| -> Result<[f64; 2]> {
        let one = |no: usize| -> Result<Ran> {
            let (engine, job) = &engines[no % engines.len()];
            let mut all = Ran::default();
            for _ in 0..jobs {
                let ran = certified(machine, engine, job, mode)?;
                all.waited += ran.waited;
                all.stored += ran.stored;
            }
            Ok(all)
        };
        let others: Vec<_> = (1..how.sessions).map(|no| scope.spawn(move || one(no))).collect();
        let Ran { mut stored, waited, .. } = one(0)?;
        for other in others {
            stored += other.join().map_err(|_| anyhow!("a session panicked"))??.stored;
        }
        Ok([stored as f64, waited])
    })?;
    let seconds = machine.seconds() - start;
    let mut stages = stages(&engines[0].0);
    stages.iter_mut().zip(before).for_each(|(all, before)| *all = (*all - before) / seconds);
    Ok(Rate { gb_per_s: stored / seconds / 1e9, busy: 1.0 - waited / seconds, stages })
}

/// Finds the best of some rounds of a row. The same engines serve all of them, and take their memory in a first round that does
/// not count, as a store at work has it. Where there are several sessions, once more with metadata certified alone: the session's
/// thread looks at no block then, as in a store, where those that copy blocks out find their sums.
fn row(
    machine: &Machine,
    job: &Job,
    how: How,
    name: &str,
    copied: &mut usize,
    found: &mut Found,
) -> Result<()> {
    let engines = engines(machine, job, how, copied)?;
    round(machine, &engines, how, Mode::Sums, 1)?;
    let modes = [("", Mode::Sums), ("_meta", Mode::Meta)];
    for (suffix, mode) in &modes[..usize::from(how.sessions > 1) + 1] {
        let mut best = Rate::default();
        for _ in 0..machine.size(3, 1) {
            let rate = round(machine, &engines, how, *mode, machine.size(JOBS, 1))?;
            if rate.gb_per_s > best.gb_per_s {
                best = rate;
            }
        }
        found.figure(format!("{name}{suffix}_busy"), best.busy);
        for (stage, share) in ["up", "kernels", "down"].iter().zip(best.stages) {
            found.figure(format!("{name}{suffix}_{stage}_share"), share);
        }
        found.figure(format!("{name}{suffix}"), best.gb_per_s);
    }
    Ok(())
}

/// What is measured for values of 128 bytes, by size of sets.
const MOST_ROWS: [How; 8] = [
    how(1, 1, 1, 8),
    how(1, 3, 1, 8),
    how(8, 16, 1, 8),
    how(8, 16, 2, 8),
    how(12, 24, 3, 8),
    how(1, 3, 1, 16),
    how(12, 24, 3, 16),
    how(12, 24, 3, 32),
];
/// For other ones.
const ROWS: [How; 4] = [how(1, 3, 1, 8), how(8, 16, 1, 8), how(12, 24, 3, 8), how(12, 24, 3, 16)];

pub(crate) fn run(machine: &Machine) -> Result<Found> {
    let (mut found, mut copied) = (Found::default(), 0);
    for value in machine.asked.values(&[32, 64, 128, 256, 1024]) {
        let rows: &[How] = match (machine.asked.rows.as_slice(), value) {
            ([], _) if machine.asked.quick => &[how(1, 3, 1, 8)],
            ([], 128) => &MOST_ROWS,
            ([], _) => &ROWS,
            (asked, _) => asked,
        };
        for of_size in rows.chunk_by(|one, next| one.mib == next.mib) {
            let set = machine.size(of_size[0].mib << 20, 64 << 10);
            let job = Job::new(value, machine.size(1 << 30, 256 << 10), set)?;
            for &how in of_size {
                row(machine, &job, how, &how.name(value), &mut copied, &mut found)?;
            }
        }
    }
    found.note(match copied {
        0 => {
            "input lies in pinned memory from the start; the thread of a session certifies by sums, or, \
             where it says meta, by metadata"
                .to_owned()
        }
        n => {
            format!("{n} pieces of input had no pinned memory, and the pump copied them into some")
        }
    });
    Ok(found)
}
