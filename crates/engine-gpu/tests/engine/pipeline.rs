//! Sets in flight: copies in both directions and kernels go on at once, over a device whose stages take the time that
//! given rates say, on a clock that these tests turn.

use std::sync::Arc;
use std::time::Duration;

use lithify_engine::conformance::{Profile, run, suite};
use lithify_engine::stream::{Stream, StreamShape};
use lithify_engine::{BlockSet, Engine, Item, Offer, Products, Progress, Session};
use lithify_engine_gpu::paced::{Paced, Rates, Usage};
use lithify_engine_gpu::predict::{Assumed, Work, predict};
use lithify_engine_gpu::{Emu, GpuEngine, GpuOptions};
use lithify_env::sync::Mutex;
use lithify_env::sync::atomic::{AtomicU64, Ordering};
use lithify_env::{Class, Job, Mono, OsRt, Rt, RtOptions, RtRef, Step, Ticket, Wake};
use lithify_format::xxph3::xxph3_64;
use lithify_merge::naive;
use lithify_merge::workload::{Case, Features};

use crate::common::*;

/// A clock that goes on when all wait, and the one job on it.
#[derive(Default)]
struct Virtual {
    ns: Arc<AtomicU64>,
    job: Mutex<Option<Box<dyn Job>>>,
}

impl Virtual {
    /// Steps the job until it waits; goes on to when it looks again, unless a caller is `woken` by then. False if it waits for
    /// others alone.
    fn go_on(&self, woken: impl Fn() -> bool) -> bool {
        let mut slot = self.job.lock();
        let Some(job) = &mut *slot else { return false };
        loop {
            match job.step() {
                Step::More => {}
                Step::WaitUntil(ticket, at) => {
                    if !ticket.is_done() && !woken() {
                        self.ns.fetch_max(at.0, Ordering::Relaxed);
                    }
                    return true;
                }
                Step::Wait(ticket) => return ticket.is_done(),
                Step::Done => {
                    *slot = None;
                    return false;
                }
            }
        }
    }
}

impl Rt for Virtual {
    fn now(&self) -> Mono {
        Mono(self.ns.load(Ordering::Relaxed))
    }
    fn wall_seconds(&self) -> u64 {
        0
    }
    fn seed(&self, _who: &str) -> u64 {
        0
    }
    fn spawn(&self, _class: Class, job: Box<dyn Job>) {
        *self.job.lock() = Some(job);
    }
    fn park(&self, ticket: &Ticket, deadline: Option<Mono>) -> Wake {
        while !ticket.is_done() {
            if deadline.is_some_and(|at| at <= self.now()) {
                return Wake::TimedOut;
            }
            let waits = !self.go_on(|| ticket.is_done());
            assert!(!waits || ticket.is_done(), "pump and session wait for each other");
        }
        Wake::Done
    }
    fn thread_cpu(&self) -> Duration {
        Duration::ZERO
    }
    fn threads(&self, _class: Class) -> usize {
        1
    }
}

/// Stored bytes of a set; the rates of a device for sets of 64 MiB are scaled down with it.
const SET: u64 = 256 << 10;
/// 45 GB/s up, 100 for kernels, 45 down, and 150 microseconds for the 22 or so calls of a set.
fn rates() -> Rates {
    rates_by(SET as f64 / (64 << 20) as f64)
}
fn rates_by(scale: f64) -> Rates {
    let (up, kernels) = (45.0 * scale, 100.0 * scale);
    // What is open of a block is not scaled down.
    Rates { up, down: up, kernels, call_ns: 7000.0, with_commands: 32 << 10 }
}

/// An engine with so many units over the emulator, paced.
struct Bench {
    rt: Arc<Virtual>,
    usage: Arc<Mutex<Usage>>,
    engine: GpuEngine,
}

fn bench(units: u8, arenas: u64, set_bytes: u64) -> Bench {
    let memory = u64::from(units) * 8 * (set_bytes * 4);
    let options = GpuOptions { units, set_bytes, memory, arenas, ..GpuOptions::default() };
    bench_with(rates(), options)
}

fn bench_with(rates: Rates, options: GpuOptions) -> Bench {
    let rt = Arc::new(Virtual::default());
    let ns = rt.ns.clone();
    let now = Box::new(move || ns.load(Ordering::Relaxed));
    let device = Paced::new(Emu::new(2), rates, now);
    let usage = device.usage();
    let runtime: RtRef = rt.clone();
    let engine = GpuEngine::on(&runtime, Box::new(device), options).unwrap();
    Bench { rt, usage, engine }
}

/// A job of about so many sets with values of `value` bytes.
fn job(sets: u64, value: usize, set_bytes: u64) -> (Case, Vec<BlockSet>) {
    let entries = (sets * set_bytes) as usize / (value + 20);
    let case = Case::uniform(7, 4, entries, 16, value).unwrap();
    let sets = case.sets(set_bytes);
    (case, sets)
}

/// Seconds of the virtual clock for a job, and its usage; the output is that of the naive twin.
fn seconds(bench: &Bench, case: &Case, sets: Vec<BlockSet>) -> f64 {
    let began = bench.rt.now();
    let ran = run(&bench.engine, &*bench.rt, &case.recipe, sets, true)
        .unwrap_or_else(|e| panic!("{e}: {:?}", bench.engine.evidence()));
    let took = bench.rt.now().since(began).as_secs_f64();
    let (output, ledger) = naive::compact(&case.recipe, case.entries()).unwrap();
    assert!(ran.output == output && ran.ledger == ledger);
    assert_eq!(bench.usage.lock().early, 0, "an arena was given back under a copy");
    took
}

/// Seconds that the formula predicts for a job on such a device.
fn formula(units: u8, case: &Case, sets: &[BlockSet]) -> f64 {
    let ledger = naive::compact(&case.recipe, case.entries()).unwrap().1;
    let stored = sets.iter().map(BlockSet::bytes).sum::<u64>() as f64;
    let (entries, value) = (ledger.entries_in as f64, 128.0);
    let touched = 5.0 * stored / entries + value + 316.0;
    let memory = rates().kernels * touched * entries / stored;
    let Rates { up, down, call_ns, .. } = rates();
    let assumed = Assumed { up, down, memory, call_ns, ..Assumed::default() };
    let kept = ledger.entries_out as f64 / entries;
    let set_bytes = stored / sets.len() as f64;
    let work = Work { stored, entries, value, kept, units: f64::from(units), set_bytes, lz4: None };
    predict(&work, &assumed).ns / 1e9
}

/// The share of the time in which the busiest stage was at work.
fn busiest(units: u8) -> f64 {
    let (case, sets) = job(48, 128, SET);
    let bench = bench(units, 64 << 20, SET);
    let predicted = formula(units, &case, &sets);
    let took = seconds(&bench, &case, sets);
    println!("{units} units: the formula says {:.1} ms", predicted * 1e3);
    assert!((predicted / took - 1.0).abs() < 0.1, "{predicted} {took}");
    let busy = bench.usage.lock().busy_ns;
    let share = busy.iter().fold(0.0, |a: f64, b| a.max(*b)) / 1e9 / took;
    println!(
        "{units} units: {:.1} ms of the clock, up, kernels, down at work for {:.1?} ms, the busiest {:.1}%",
        took * 1e3,
        busy.map(|ns| ns / 1e6),
        share * 100.0
    );
    share
}

#[test]
fn three_units_keep_the_slowest_stage_at_work() {
    let (one, three) = (busiest(1), busiest(3));
    assert!(three >= 0.9, "{three}");
    assert!(one <= 0.55, "{one}");
}

/// What a paced device makes is what any makes, sets of all sizes, codecs and forms.
#[test]
fn cases_in_flight() {
    let bench = bench(3, 64 << 20, SET);
    let n = seeds(60);
    for seed in 0..n {
        let case = Case::with(5000 + seed, SMALL, Features::Device).unwrap();
        seconds(&bench, &case, case.sets(1 + seed * 97 % 4000));
    }
    assert!(figure(&bench.engine, "device_sets") > 4 * n);
    while bench.rt.go_on(|| false) {}
    assert_eq!(bench.usage.lock().memory[0], 0, "memory of the device is given back");
}

/// The same on threads, and nothing of the engine is left when it ends.
#[test]
fn a_pump_on_a_thread_of_its_own() {
    let rt: RtRef = Arc::new(OsRt::new(RtOptions::default()));
    let engine = GpuEngine::on(&rt, Box::new(Emu::new(3)), GpuOptions::default()).unwrap();
    let n = seeds(30);
    let report = suite(&engine, &*rt, 0..n, Profile::device(SMALL)).unwrap();
    assert_eq!((report.equal, report.on_cpu), (n, 0), "{:?}", engine.evidence());
    assert_eq!(figure(&engine, "arena_bytes"), 0);
    drop(engine);
    assert_eq!(Arc::strong_count(&rt), 1, "the pump still has its runtime");
}

/// A session at work.
struct Part {
    session: Box<dyn Session>,
    sets: std::vec::IntoIter<BlockSet>,
    next: Option<BlockSet>,
    /// What it waits for.
    waits: Option<Ticket>,
    /// When it was through.
    end: Option<Mono>,
}

impl Part {
    fn new(bench: &Bench, case: &Case, sets: Vec<BlockSet>) -> Part {
        let session = bench.engine.open(case.recipe.clone()).unwrap_or_else(|e| panic!("{e}"));
        Part { session, sets: sets.into_iter(), next: None, waits: None, end: None }
    }
    /// Whether it waits for nothing any more.
    fn is_woken(&self) -> bool {
        self.end.is_none() && self.waits.as_ref().is_none_or(Ticket::is_done)
    }
    /// Polls it until it waits.
    fn go_on(&mut self, now: &dyn Fn() -> Mono) {
        let mut products = Products::default();
        while self.end.is_none() {
            match self.next.take().or_else(|| self.sets.next()) {
                None => self.session.seal(),
                Some(set) => {
                    if let Offer::Full(set) = self.session.offer(set) {
                        self.next = Some(set);
                    }
                }
            }
            match self.session.poll(&mut products) {
                Progress::Pending(ticket) if ticket.is_done() => {}
                Progress::Pending(ticket) => {
                    self.waits = Some(ticket);
                    return;
                }
                Progress::Done(_) => self.end = Some(now()),
                Progress::Failed(fault) => panic!("{}", fault.error()),
                Progress::More | Progress::Starved => {}
            }
        }
    }
}

#[test]
fn sessions_share_the_units() {
    let bench = bench(3, 64 << 20, SET);
    let (case, sets) = job(30, 128, SET);
    let mut parts = [0, 1].map(|_| Part::new(&bench, &case, sets.clone()));
    while parts.iter().any(|part| part.end.is_none()) {
        parts.iter_mut().for_each(|part| part.go_on(&|| bench.rt.now()));
        bench.rt.go_on(|| parts.iter().any(Part::is_woken));
    }
    let [one, other] = parts.map(|part| part.end.unwrap().0 as f64);
    println!("two sessions: {:.1} and {:.1} ms", one / 1e6, other / 1e6);
    assert!((one / other - 1.0).abs() < 0.1, "{one} {other}");
}

#[test]
fn no_more_sessions_than_units() {
    let bench = bench(2, 64 << 20, SET);
    let (case, sets) = job(1, 128, SET);
    let one = Part::new(&bench, &case, sets.clone());
    let other = Part::new(&bench, &case, sets.clone());
    let reason = refusal(bench.engine.open(case.recipe.clone()));
    assert!(reason.contains("busy with 2 parts"), "{reason}");
    drop(one);
    drop(other);
    Part::new(&bench, &case, sets).go_on(&|| bench.rt.now());
}

/// A session that ends in the middle leaves its units to others, once copies that are under way have ended.
#[test]
fn a_session_that_is_dropped_leaves_nothing_behind() {
    let (case, sets) = job(6, 128, SET);
    for polls in 0..40 {
        let bench = bench(3, 64 << 20, SET);
        let mut part = Part::new(&bench, &case, sets.clone());
        for _ in 0..polls {
            part.go_on(&|| bench.rt.now());
            bench.rt.go_on(|| part.is_woken());
        }
        drop(part);
        seconds(&bench, &case, sets.clone());
        while bench.rt.go_on(|| false) {}
        let usage = *bench.usage.lock();
        assert_eq!((usage.early, usage.memory[0]), (0, 0), "after {polls} polls: {usage:?}");
        assert_eq!(figure(&bench.engine, "arena_bytes"), 0, "after {polls} polls");
    }
}

/// What a job came to whose sets are cut one by one, each as large as the engine then says.
struct Cut {
    /// Bytes of the sets that it asked for.
    sizes: Vec<u64>,
    /// The share of the time in which the busiest stage was at work: of all, and from the twentieth set on.
    busiest: f64,
    after: f64,
    /// The time of kernels that the engine told, over what it was.
    told: f64,
    /// Of its output.
    hash: u64,
}

fn cut_as_it_says(options: GpuOptions) -> Cut {
    // Blocks are not scaled down, so sets are less than above.
    let bench = bench_with(rates_by(1.0 / 64.0), options);
    let shape = StreamShape { runs: 2, key: 16, value: 512, bytes: 20 << 20, seed: 3 };
    let mut stream = Stream::new(shape);
    let recipe = stream.recipe.clone();
    let mut session = bench.engine.open(recipe.clone()).unwrap_or_else(|e| panic!("{e}"));
    let (mut next, mut products) = (None, Products::default());
    let mut cut = Cut { sizes: Vec::new(), busiest: 0.0, after: 0.0, told: 0.0, hash: 0 };
    let mut began = Vec::new();
    loop {
        let set = next.take().or_else(|| {
            let caps = bench.engine.caps_for(&recipe);
            if [0, 20].contains(&cut.sizes.len()) {
                began.push((bench.rt.now(), bench.usage.lock().busy_ns));
            }
            cut.sizes.push(caps.set_bytes);
            stream.next_set(caps.set_bytes, caps.ways).unwrap()
        });
        match set {
            None => session.seal(),
            Some(set) => {
                if let Offer::Full(set) = session.offer(set) {
                    next = Some(set);
                }
            }
        }
        let progress = session.poll(&mut products);
        for item in products.items() {
            if let Item::Block(block) = item {
                let of_block = xxph3_64(products.block(block));
                cut.hash =
                    (cut.hash ^ of_block).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
            }
        }
        match progress {
            Progress::Done(_) => break,
            Progress::Failed(fault) => panic!("{}", fault.error()),
            Progress::Pending(ticket) => drop(bench.rt.park(&ticket, None)),
            Progress::More | Progress::Starved => {}
        }
    }
    let busy = bench.usage.lock().busy_ns;
    let share = |&(began, before): &(Mono, [f64; 3])| {
        let took = bench.rt.now().since(began).as_secs_f64();
        busy.iter().zip(before).map(|(busy, before)| busy - before).fold(0.0, f64::max) / 1e9 / took
    };
    (cut.busiest, cut.after) = (share(&began[0]), share(&began[1]));
    let told = bench.engine.report();
    let row = |name| told.iter().find(|row| row.0 == name).unwrap().1;
    cut.told = row("kernels_seconds") * 1e9 / busy[1];
    // Rates and times are of the same sets, all of which have come back.
    let timed = row("kernels_seconds") * row("kernels_gb_per_s") * 1e9;
    for (seconds, rate) in [("up_seconds", "up_gb_per_s"), ("down_seconds", "down_gb_per_s")] {
        assert!((row(seconds) * row(rate) * 1e9 - timed).abs() <= 1e-6 * timed, "{told:?}");
    }
    // With what lies between blocks on their way up.
    assert!(timed <= 1.05 * row("device_bytes"), "{told:?}");
    assert_eq!(timed > 0.0, cut.told > 0.0, "{told:?}");
    assert_eq!(row("units_free"), 3.0, "{told:?}");
    cut
}

/// Sizes of sets follow what their stages take: from wherever they begin to about the same, where they stay; and not a
/// byte of the output depends on them.
#[test]
fn sets_become_as_large_as_is_worth_it() {
    let options = |first: u64, tuned| GpuOptions {
        set_bytes: first,
        tuned,
        memory: 3 * 16 * (2 << 20),
        arenas: 64 << 20,
        ..GpuOptions::default()
    };
    let fixed = cut_as_it_says(options(64 << 10, None));
    assert!(fixed.sizes.iter().all(|size| *size == 64 << 10), "{:?}", fixed.sizes);
    println!("fixed at {}: the busiest stage {:.1}%", 64 << 10, 100.0 * fixed.busiest);
    // 4, 32 and 64 MiB, scaled down.
    let mut ends = Vec::new();
    for first in [64 << 10, 512 << 10, 1 << 20] {
        let cut = cut_as_it_says(options(first, Some((64 << 10, 1 << 20))));
        let mut sizes = cut.sizes.clone();
        sizes.dedup();
        let end = *sizes.last().unwrap();
        let settled = cut.sizes.iter().rev().take_while(|size| **size == end).count();
        let tried = cut.sizes.len() - settled;
        println!(
            "{sizes:?}, settled after {tried} of {} sets; the busiest stage {:.1}%, {:.1}% from the twentieth set on",
            cut.sizes.len(),
            100.0 * cut.busiest,
            100.0 * cut.after
        );
        assert_eq!((sizes[0], cut.hash), (first, fixed.hash));
        assert!(sizes.len() > 1 && tried <= 20, "{:?}", cut.sizes);
        assert!(cut.busiest > 0.85 && cut.busiest > fixed.busiest, "{}", cut.busiest);
        assert!(cut.after > 0.93, "{}", cut.after);
        assert!((cut.told - 1.0).abs() < 0.02, "kernels took {} of what was told", cut.told);
        ends.push(end as f64);
    }
    let (least, most) = ends.iter().fold((f64::MAX, 0.0f64), |(a, b), x| (a.min(*x), b.max(*x)));
    assert!(most / least < 1.5, "{ends:?}");
}

/// A job forty times as large as all arenas stays within them.
#[test]
fn memory_is_bounded_whatever_the_size_of_the_job() {
    const ARENAS: u64 = 256 << 10;
    let (case, sets) = job(160, 1000, 64 << 10);
    let stored: u64 = sets.iter().map(BlockSet::bytes).sum();
    assert!(stored >= 40 * ARENAS, "{stored}");
    let bench = bench(3, ARENAS, 64 << 10);
    seconds(&bench, &case, sets);
    let (most, memory) = (bench.engine.arenas_most(), bench.usage.lock().memory[1]);
    println!(
        "{stored} B of input: at most {most} B of arenas, of {ARENAS} B; {memory} B of the device"
    );
    assert!(most <= ARENAS + ARENAS / 10, "{most}");
    assert!(memory <= 3 * 8 * 4 * (64 << 10), "{memory}");
}
