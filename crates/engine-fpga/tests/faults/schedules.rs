//! Sessions of one card under chosen schedules: two units side by side, a unit that hangs, one that dies, a session
//! that is dropped. Run by `cargo xtask shuttle`.
//!
//! Keeps: no scenario can pass without its card. The card of a scenario holds back what units have done until
//! what the scenario is about has come to be, and then sets are counted by where they were merged.

use std::collections::VecDeque;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering as Plain};

use lithify_engine::conformance::Output;
use lithify_engine::{Engine, Offer, Progress, Session};
use lithify_engine_fpga::card::{Card, Completion, Shape, Transfer};
use lithify_engine_fpga::stream::register;
use lithify_engine_fpga::{FpgaEngine, FpgaOptions, ModelCard, ModelOptions};
use lithify_env::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use lithify_env::sync::{Arc, Mutex};
use lithify_merge::workload::Case;
use lithify_merge::{BlockSet, Ledger, Products, naive};
use lithify_testkit::schedules::{explore, thread};

use crate::common::figure;

const UNITS: usize = 2;
/// Bytes that a set may have. They are cut smaller, so that each fits a slot with its replay.
const SET: u64 = 16 << 10;
/// Cycles that a poll moves the card on by: a set takes some polls.
const PACE: u64 = 100;
/// The command whose unit breaks: of two sessions one has had a set before.
const FATAL: u32 = 5;

/// Parts, their sets and what the CPU makes of them.
type Part = (Case, Vec<BlockSet>, (Output, Ledger));

fn parts() -> &'static [Part; 3] {
    static PARTS: OnceLock<[Part; 3]> = OnceLock::new();
    PARTS.get_or_init(|| {
        [1, 2, 3].map(|seed| {
            let case = Case::uniform(seed, 2, 60, 16, 400).unwrap();
            let sets = case.sets(SET / 4);
            assert!((4..8).contains(&sets.len()), "{} sets", sets.len());
            let expected = naive::compact(&case.recipe, case.entries()).unwrap();
            (case, sets, expected)
        })
    })
}

/// Sets of the first so many parts.
fn sets_of(n: usize) -> u64 {
    parts().iter().take(n).map(|(_, sets, _)| sets.len() as u64).sum()
}

/// What the card has seen, and what it waits for.
#[derive(Default)]
struct Seen {
    /// Both units have had a set at once.
    together: AtomicBool,
    /// At some moment one set came, one was on a unit and one went back.
    overlapped: AtomicBool,
    /// Nothing is said to be done before this.
    released: AtomicBool,
    /// Commands given.
    commands: AtomicU32,
}

/// How a card breaks.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Breaks {
    Never,
    /// The unit that gets the command [`FATAL`] does not end it.
    Hangs,
    /// It is gone with that command.
    Dies,
}

/// A card that takes its time: one transfer of each direction in a poll, and a set is several polls on its unit. What the
/// first set of a unit came to is said when both units have one and the scenario has released it.
struct SlowCard {
    inner: ModelCard,
    seen: Arc<Seen>,
    breaks: Breaks,
    sends: VecDeque<Transfer>,
    fetches: VecDeque<Transfer>,
    /// By unit: commands given, and said to be done.
    given: [u32; UNITS],
    said: [u32; UNITS],
    broken: Option<usize>,
}

impl SlowCard {
    fn new(seen: Arc<Seen>, breaks: Breaks) -> SlowCard {
        let memory = 2 * UNITS * (5 * SET as usize + (64 << 10));
        let options = ModelOptions { units: UNITS, memory, ..ModelOptions::default() };
        SlowCard {
            inner: ModelCard::new(options),
            seen,
            breaks,
            sends: VecDeque::new(),
            fetches: VecDeque::new(),
            given: [0; UNITS],
            said: [0; UNITS],
            broken: None,
        }
    }
    fn has_work(&self, unit: usize) -> bool {
        self.given[unit] != self.said[unit]
    }
    fn is_dead(&self) -> bool {
        self.breaks == Breaks::Dies && self.broken.is_some()
    }
}

impl Card for SlowCard {
    fn shape(&self) -> Shape {
        Shape { pace: PACE, ..self.inner.shape() }
    }

    fn read(&mut self, unit: usize, at: u32) -> u32 {
        if self.is_dead() && self.broken == Some(unit) {
            return register::NO_CARD;
        }
        let value = self.inner.read(unit, at);
        if at != register::DONE {
            return value;
        }
        let together = (0..UNITS).all(|unit| self.has_work(unit));
        self.seen.together.fetch_or(together, SeqCst);
        let waits = !self.seen.together.load(SeqCst) || !self.seen.released.load(SeqCst);
        if !waits && self.broken != Some(unit) {
            self.said[unit] = value;
        }
        self.said[unit]
    }

    fn write(&mut self, unit: usize, at: u32, value: u32) {
        match at {
            register::DOORBELL => {
                self.given[unit] = value;
                let before = self.seen.commands.fetch_add(1, SeqCst);
                if self.breaks != Breaks::Never && before + 1 == FATAL {
                    self.broken = Some(unit);
                }
            }
            register::CONTROL if value & register::RESET != 0 => {
                (self.given[unit], self.said[unit]) = (0, 0);
                // A reset mends a unit that hangs.
                self.broken = self.broken.filter(|&of| of != unit || self.is_dead());
            }
            _ => {}
        }
        self.inner.write(unit, at, value);
    }

    fn send(&mut self, transfer: Transfer) {
        self.sends.push_back(transfer);
    }

    fn fetch(&mut self, transfer: Transfer) {
        self.fetches.push_back(transfer);
    }

    fn poll(&mut self, cycles: u64, ended: &mut Vec<Completion>) {
        let works = |unit: &usize| self.has_work(*unit) && self.broken != Some(*unit);
        let at_work = (0..UNITS).any(|unit| works(&unit));
        let (coming, going) = (!self.sends.is_empty(), !self.fetches.is_empty());
        self.seen.overlapped.fetch_or(at_work && coming && going, SeqCst);
        if self.is_dead() {
            return;
        }
        // When all that could go on waits for a unit that hangs, time goes by.
        let stands = self.broken.is_some() && !at_work && !coming && !going;
        if let Some(transfer) = self.sends.pop_front() {
            self.inner.send(transfer);
        }
        if let Some(transfer) = self.fetches.pop_front() {
            self.inner.fetch(transfer);
        }
        self.inner.poll(if stands { 1000 * cycles } else { cycles }, ended);
    }

    fn now(&self) -> u64 {
        self.inner.now()
    }
}

/// An engine over such a card, with two slots a unit, and what its card sees.
fn engine(breaks: Breaks) -> (Arc<FpgaEngine>, Arc<Seen>) {
    let seen = Arc::new(Seen::default());
    let options = FpgaOptions { slots: 2, set_bytes: SET, ..FpgaOptions::default() };
    let card = Box::new(SlowCard::new(seen.clone(), breaks));
    (Arc::new(FpgaEngine::new(card, options).expect("the card suits")), seen)
}

/// A session, and what it has been given and has made.
struct Driver {
    session: Box<dyn Session>,
    sets: VecDeque<BlockSet>,
    output: Output,
    products: Products,
}

impl Driver {
    fn new(engine: &FpgaEngine, part: usize) -> Driver {
        let (case, sets, _) = &parts()[part];
        Driver {
            session: engine.open(case.recipe.clone()).expect("it suits"),
            sets: sets.clone().into(),
            output: Output::default(),
            products: Products::default(),
        }
    }

    /// One poll; the ledger when it was the last one.
    fn poll(&mut self) -> Option<Ledger> {
        while let Some(set) = self.sets.pop_front() {
            if let Offer::Full(set) = self.session.offer(set) {
                self.sets.push_front(set);
                break;
            }
        }
        if self.sets.is_empty() {
            self.session.seal();
        }
        let progress = self.session.poll(&mut self.products);
        self.output.absorb(&self.products);
        match progress {
            Progress::Done(ledger) => return Some(*ledger),
            Progress::Failed(fault) => panic!("{}", fault.error()),
            _ => {}
        }
        // As a part's job does after each step.
        thread::yield_now();
        None
    }

    /// Polls until all is done, which has to be what the CPU makes of the part.
    fn finish(mut self, part: usize) {
        let ledger = (0..100_000).find_map(|_| self.poll()).expect("the part ends");
        assert!((self.output, ledger) == parts()[part].2, "other bytes than the CPU's");
    }
}

/// One thread for each of the first so many parts; these in the order in which they ended.
fn together(engine: &Arc<FpgaEngine>, n: usize) -> Vec<usize> {
    let ended = Arc::new(Mutex::new(Vec::new()));
    let thread = |part| {
        let (engine, ended) = (engine.clone(), ended.clone());
        thread::spawn(move || {
            Driver::new(&engine, part).finish(part);
            ended.lock().push(part);
        })
    };
    let threads: Vec<_> = (0..n).map(thread).collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    let ended = ended.lock().clone();
    ended
}

/// Figures of an engine that have to be 0.
fn nothing(engine: &FpgaEngine, figures: &[&str]) {
    for name in figures {
        assert_eq!(figure(engine, name), 0, "{name}: {:?}", engine.report());
    }
}

const WELL: [&str; 6] =
    ["cpu_sets", "retries", "mispredicted", "hangs", "quarantine", "stale_completions"];

/// Two units work side by side, and sets are loaded, merged and stored at once: the card does every set, each once.
#[test]
fn two_units_side_by_side() {
    static RAN: [AtomicUsize; 2] = [AtomicUsize::new(0), AtomicUsize::new(0)];
    parts();
    explore("two units side by side", || {
        let (engine, seen) = engine(Breaks::Never);
        seen.released.store(true, SeqCst);
        let ended = together(&engine, 2);
        assert_eq!(figure(&*engine, "unit_sets"), sets_of(2), "{:?}", engine.report());
        assert_eq!(u64::from(seen.commands.load(SeqCst)), sets_of(2));
        nothing(&engine, &WELL);
        assert_eq!(figure(&*engine, "slots_free"), 2 * UNITS as u64);
        assert!(seen.together.load(SeqCst));
        RAN[usize::from(seen.overlapped.load(SeqCst))].fetch_add(1, Plain::Relaxed);
        ended
    });
    let [without, with] = RAN.each_ref().map(|ran| ran.load(Plain::Relaxed));
    // A few schedules say little.
    assert!(
        with + without < 20 || with > without,
        "overlap in {with} schedules, none in {without}"
    );
}

/// A unit does not end what it has, while the other one goes on: that set is the CPU's, and no other, though a second
/// one may wait behind it. Three parts, so that one does.
#[test]
fn a_unit_hangs_beside_another() {
    parts();
    explore("a unit hangs beside another", || {
        let (engine, seen) = engine(Breaks::Hangs);
        seen.released.store(true, SeqCst);
        let ended = together(&engine, 3);
        let count = |name| figure(&*engine, name);
        assert_eq!((count("hangs"), count("cpu_hung")), (1, 1), "{:?}", engine.report());
        let sets = (count("unit_sets"), count("cpu_sets"));
        assert_eq!(sets, (sets_of(3) - 1, 1), "{:?}", engine.report());
        nothing(&engine, &["retries", "quarantine"]);
        assert_eq!(count("slots_free"), 2 * UNITS as u64);
        (ended, seen.commands.load(SeqCst))
    });
}

/// A unit is gone in the middle of a set: what was done counts, and the CPU does the rest.
#[test]
fn a_unit_dies_beside_another() {
    parts();
    explore("a unit dies beside another", || {
        let (engine, seen) = engine(Breaks::Dies);
        seen.released.store(true, SeqCst);
        let ended = together(&engine, 2);
        let count = |name| figure(&*engine, name);
        let (done, left) = (count("unit_sets"), count("cpu_sets"));
        assert!(done > 0 && left > 0 && done + left == sets_of(2), "{:?}", engine.report());
        assert_eq!((count("quarantine"), seen.commands.load(SeqCst)), (1, FATAL));
        nothing(&engine, &["retries", "hangs", "cpu_wrong", "cpu_damaged"]);
        assert_eq!(count("slots_free"), 2 * UNITS as u64);
        (ended, done)
    });
}

/// A session is dropped while a unit has a set of it: another one beside it, and one that comes afterwards, get every set
/// from the card.
#[test]
fn a_session_is_dropped_in_mid_set() {
    parts();
    explore("a session is dropped in mid-set", || {
        let (engine, seen) = engine(Breaks::Never);
        let beside = {
            let engine = engine.clone();
            thread::spawn(move || Driver::new(&engine, 0).finish(0))
        };
        let mut dropped = Driver::new(&engine, 1);
        while !seen.together.load(SeqCst) {
            assert!(dropped.poll().is_none());
        }
        drop(dropped);
        seen.released.store(true, SeqCst);
        let free = figure(&*engine, "slots_free");
        Driver::new(&engine, 1).finish(1);
        beside.join().unwrap();
        assert_eq!(figure(&*engine, "unit_sets"), sets_of(2), "{:?}", engine.report());
        assert_eq!(u64::from(seen.commands.load(SeqCst)), sets_of(2) + 1);
        nothing(&engine, &["cpu_sets", "retries", "mispredicted", "hangs", "quarantine"]);
        assert_eq!(figure(&*engine, "slots_free"), 2 * UNITS as u64);
        free
    });
}
