//! The unit of `hw/rtl`, simulated cycle by cycle: the engine over it conforms, and each slot that it writes is
//! that of the model.

use lithify_engine::conformance::*;
use lithify_engine::{CpuEngine, Engine};
use lithify_engine_fpga::card::{Card, Completion, Shape, Transfer};
use lithify_engine_fpga::model::{self, Cost};
use lithify_engine_fpga::stream::*;
use lithify_engine_fpga::verilated::{VerilatedCard, VerilatedOptions, VerilatedShape};
use lithify_engine_fpga::{FpgaEngine, FpgaOptions};
use lithify_env::sync::Arc;
use lithify_env::sync::atomic::{AtomicU64, Ordering};
use lithify_merge::naive;
use lithify_merge::workload::{Case, Features, Size};

use crate::common::*;
use crate::scheduling::together;

/// A card whose every set the model merges, too, and whose output slots are compared.
struct Compared {
    inner: VerilatedCard,
    ways: usize,
    units: Vec<Seen>,
    /// Of the engine, and ended while a slot was looked at.
    others: Vec<Completion>,
    counts: Arc<Counts>,
}

/// What a unit was given, and how much of it was compared.
struct Seen {
    ring: Vec<u32>,
    done: u32,
}

/// Sets compared of each unit, the cycles that all took, and those that the formula says.
struct Counts {
    sets: Vec<AtomicU64>,
    cycles: [AtomicU64; 2],
}

impl Counts {
    fn sets(&self) -> u64 {
        self.sets.iter().map(|n| n.load(Ordering::Relaxed)).sum()
    }
}

impl Compared {
    fn bytes(&mut self, at: u64, n: u32) -> Vec<u8> {
        self.inner.fetch(Transfer { id: u64::MAX, at, buffer: vec![0; n as usize] });
        self.inner.poll(0, &mut self.others);
        let mine = self.others.pop().expect("the transfer that was asked for last ends last");
        assert!(mine.id == u64::MAX && mine.arrived, "{mine:?}");
        mine.buffer
    }

    fn compare(&mut self, unit: usize, no: u32) {
        let at = ((Command::register(no) - register::COMMANDS) / 4) as usize;
        let command = Command::read(&self.units[unit].ring[at..]);
        let input = self.bytes(command.input, command.in_bytes);
        let seen = self.bytes(command.output, command.out_bytes);
        // What is not written is as it was.
        let mut due = seen.clone();
        let code = model::run(
            &input,
            &mut due,
            self.ways,
            Cost::new(if self.ways == 4 { 16 } else { 32 }),
        );
        let end = seen.len();
        let statuses = [&seen, &due].map(|slot| Status::read(&slot[end - STATUS..]).unwrap());
        assert_eq!(statuses[0].code, code);
        if code != Code::Ok {
            return;
        }
        let timeless = end - STATUS + 208;
        let same = seen[..timeless].iter().zip(&due).position(|(a, b)| a != b);
        assert_eq!(same, None, "first byte that differs\n{:?}\n{:?}", statuses[0], statuses[1]);
        self.counts.sets[unit].fetch_add(1, Ordering::Relaxed);
        for (all, status) in self.counts.cycles.iter().zip(statuses) {
            all.fetch_add(status.cycles, Ordering::Relaxed);
        }
    }
}

impl Card for Compared {
    fn shape(&self) -> Shape {
        self.inner.shape()
    }
    fn read(&mut self, unit: usize, at: u32) -> u32 {
        let value = self.inner.read(unit, at);
        if at == register::DONE && value != register::NO_CARD {
            while self.units[unit].done != value {
                self.compare(unit, self.units[unit].done);
                self.units[unit].done = self.units[unit].done.wrapping_add(1);
            }
        }
        value
    }
    fn write(&mut self, unit: usize, at: u32, value: u32) {
        if let Some(word) = at.checked_sub(register::COMMANDS) {
            self.units[unit].ring[word as usize / 4] = value;
        }
        self.inner.write(unit, at, value);
    }
    fn send(&mut self, transfer: Transfer) {
        self.inner.send(transfer);
    }
    fn fetch(&mut self, transfer: Transfer) {
        self.inner.fetch(transfer);
    }
    fn poll(&mut self, cycles: u64, ended: &mut Vec<Completion>) {
        ended.append(&mut self.others);
        self.inner.poll(cycles, ended);
    }
    fn now(&self) -> u64 {
        self.inner.now()
    }
}

/// Cases for a unit of few ways: short, with values that are not.
const FEW: Size = Size { entries: 40, value: 300 };

/// Cases of several sets.
const MORE: Size = Size { entries: 200, value: 300 };

struct Bench {
    engine: FpgaEngine,
    counts: Arc<Counts>,
}

/// A card of so many units whose memory takes `latency` cycles and withholds in `withheld` of 100.
fn bench(
    (shape, units): (VerilatedShape, usize),
    seed: u64,
    latency: (u64, u64),
    withheld: u32,
) -> Bench {
    let options = FpgaOptions { set_bytes: 128 << 10, ..FpgaOptions::default() };
    let memory = options.card_bytes(units);
    let options_of_card =
        VerilatedOptions { shape, units, mhz: 200.0, memory, seed, latency, withheld };
    let ways = if shape == VerilatedShape::N4W16 { 4 } else { 8 };
    let sets = (0..units).map(|_| AtomicU64::default()).collect();
    let counts = Arc::new(Counts { sets, cycles: Default::default() });
    let card = Compared {
        inner: VerilatedCard::new(options_of_card),
        ways,
        units: (0..units).map(|_| Seen { ring: vec![0; 256], done: 0 }).collect(),
        others: Vec::new(),
        counts: counts.clone(),
    };
    Bench { engine: over(Box::new(card), options), counts }
}

impl Bench {
    fn check(&self, least: u64) {
        let compared = self.counts.sets();
        assert!(compared >= least, "{compared} slots were compared");
        assert_eq!((figure(&self.engine, "quarantine"), figure(&self.engine, "hangs")), (0, 0));
        assert_eq!((figure(&self.engine, "cpu_wrong"), figure(&self.engine, "retries")), (0, 0));
    }
}

#[test]
fn the_small_unit_conforms_and_is_as_the_model() {
    let n = seeds("LITHIFY_FPGA_VERILATED", 30);
    let calm = bench((VerilatedShape::N4W16, 1), 1, (20, 60), 0);
    let report = suite(&calm.engine, &FixedRt, 0..n, Profile::device(FEW)).unwrap();
    assert_eq!((report.equal, report.refused, report.on_cpu), (n, 0, 0));
    calm.check(2 * n);
    let [seen, formula] = calm.counts.cycles.each_ref().map(|n| n.load(Ordering::Relaxed));
    let sets = calm.counts.sets();
    println!("n4w16: {sets} sets, {seen} cycles, {formula} by formula");

    let late = bench((VerilatedShape::N4W16, 1), 2, (1, 400), 50);
    let report = suite(&late.engine, &FixedRt, 0..n / 3, Profile::tag_keys(FEW)).unwrap();
    assert_eq!((report.equal, report.refused, report.on_cpu), (n / 3, 0, 0));
    late.check(n / 3);
}

#[test]
fn the_default_unit_conforms_and_is_as_the_model() {
    let n = seeds("LITHIFY_FPGA_VERILATED", 30) / 3;
    let unit = bench((VerilatedShape::N8W32, 1), 3, (20, 60), 25);
    let report = suite(&unit.engine, &FixedRt, 0..n, Profile::device(FEW)).unwrap();
    assert_eq!((report.equal, report.refused, report.on_cpu), (n, 0, 0));
    unit.check(2 * n);
}

#[test]
fn the_small_unit_and_the_cpu_take_turns() {
    let n = seeds("LITHIFY_FPGA_VERILATED", 30) / 3;
    let unit = bench((VerilatedShape::N4W16, 1), 4, (1, 100), 25);
    let engine: &dyn Engine = &unit.engine;
    handover(engine, &CpuEngine, &FixedRt, 0..n, Profile::device(FEW)).unwrap();
    unit.check(1);
}

/// Units side by side over one memory: each set is as the model has it, whichever unit has it, and parts that are
/// merged at once come out as each does by the CPU.
#[test]
fn units_side_by_side_make_what_the_cpu_makes() {
    let n = seeds("LITHIFY_FPGA_VERILATED", 30) / 3;
    for (shape, units, withheld) in [(VerilatedShape::N4W16, 3, 25), (VerilatedShape::N8W32, 2, 0)]
    {
        let card = bench((shape, units), 5, (1, 200), withheld);
        // Some whose sets take a unit several polls, so that others are at work meanwhile, and some small ones.
        let cases = |round: u64| -> Vec<(Case, u64)> {
            let plain = |seed| (Case::uniform(seed, 3, 160, 16, 1000).unwrap(), 48 << 10);
            let mixed = |seed| (Case::with(seed, MORE, Features::Device).unwrap(), 4 << 10);
            // Sets that touch a range tombstone are the CPU's, and those of more runs than ways.
            let suits = |(case, _): &(Case, u64)| {
                case.recipe.tombstones.is_empty() && case.recipe.runs <= 4
            };
            let mixed = (700 + 100 * round..).map(mixed).filter(suits).take(2);
            (0..units as u64 + 1).map(|i| plain(10 * round + i)).chain(mixed).collect()
        };
        let (mut all, mut left) = (0, 0);
        for round in 0..n.div_ceil(3) {
            let cases = cases(round);
            let parts: Vec<_> = cases.iter().map(|(case, set)| (case, case.sets(*set))).collect();
            all += parts.iter().map(|(_, sets)| sets.len()).sum::<usize>() as u64;
            let ran = together(&card.engine, &parts);
            for ((case, sets), ran) in parts.into_iter().zip(ran) {
                let by_cpu = run(&CpuEngine, &FixedRt, &case.recipe, sets, true).unwrap();
                assert_eq!(ran, (by_cpu.output, by_cpu.ledger));
                assert_eq!(ran, naive::compact(&case.recipe, case.entries()).unwrap());
            }
            left = figure(&card.engine, "cpu_sets");
        }
        card.check(all - left);
        assert!(10 * left <= all, "{left} of {all} sets on the CPU");
        let shares = card.counts.sets.iter().map(|n| n.load(Ordering::Relaxed));
        let shares: Vec<u64> = shares.collect();
        println!("{shape:?} x {units}: {shares:?} of {all} sets");
        assert!(shares.iter().all(|&n| 8 * n >= all), "{shares:?} of {all}");
    }
}
