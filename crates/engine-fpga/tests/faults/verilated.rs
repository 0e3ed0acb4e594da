//! The unit of `hw/rtl`, simulated cycle by cycle: the engine over it conforms, and each slot that it writes is
//! that of the model.

use lithify_engine::conformance::*;
use lithify_engine::{CpuEngine, Engine};
use lithify_engine_fpga::card::{Card, Completion, Shape, Transfer};
use lithify_engine_fpga::model::{Cost, run};
use lithify_engine_fpga::stream::*;
use lithify_engine_fpga::verilated::{VerilatedCard, VerilatedOptions, VerilatedShape};
use lithify_engine_fpga::{FpgaEngine, FpgaOptions};
use lithify_env::sync::Arc;
use lithify_env::sync::atomic::{AtomicU64, Ordering};
use lithify_merge::workload::Size;

use crate::common::*;

/// A card whose every set the model merges, too, and whose output slots are compared.
struct Compared {
    inner: VerilatedCard,
    ways: usize,
    ring: Vec<u32>,
    done: u32,
    /// Sets compared, the cycles that they took, and those that the formula says.
    sets: Arc<AtomicU64>,
    cycles: [Arc<AtomicU64>; 2],
}

impl Compared {
    fn bytes(&mut self, at: u64, n: u32) -> Vec<u8> {
        self.inner.fetch(Transfer { id: u64::MAX, at, buffer: vec![0; n as usize] });
        let mut ended = Vec::new();
        self.inner.poll(0, &mut ended);
        let [Completion { buffer, arrived: true, .. }] = &mut ended[..] else {
            panic!("{ended:?}")
        };
        std::mem::take(buffer)
    }

    fn compare(&mut self, no: u32) {
        let at = ((Command::register(no) - register::COMMANDS) / 4) as usize;
        let command = Command::read(&self.ring[at..]);
        let input = self.bytes(command.input, command.in_bytes);
        let seen = self.bytes(command.output, command.out_bytes);
        // What is not written is as it was.
        let mut due = seen.clone();
        let code =
            run(&input, &mut due, self.ways, Cost::new(if self.ways == 4 { 16 } else { 32 }));
        let end = seen.len();
        let statuses = [&seen, &due].map(|slot| Status::read(&slot[end - STATUS..]).unwrap());
        assert_eq!(statuses[0].code, code);
        if code != Code::Ok {
            return;
        }
        let timeless = end - STATUS + 208;
        let same = seen[..timeless].iter().zip(&due).position(|(a, b)| a != b);
        assert_eq!(same, None, "first byte that differs\n{:?}\n{:?}", statuses[0], statuses[1]);
        self.sets.fetch_add(1, Ordering::Relaxed);
        for (all, status) in self.cycles.iter().zip(statuses) {
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
            while self.done != value {
                self.compare(self.done);
                self.done = self.done.wrapping_add(1);
            }
        }
        value
    }
    fn write(&mut self, unit: usize, at: u32, value: u32) {
        if let Some(word) = at.checked_sub(register::COMMANDS) {
            self.ring[word as usize / 4] = value;
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
        self.inner.poll(cycles, ended);
    }
    fn now(&self) -> u64 {
        self.inner.now()
    }
}

/// Cases for a unit of few ways: short, with values that are not.
const FEW: Size = Size { entries: 40, value: 300 };

struct Bench {
    engine: FpgaEngine,
    sets: Arc<AtomicU64>,
    cycles: [Arc<AtomicU64>; 2],
}

fn bench(shape: VerilatedShape, seed: u64, latency: (u64, u64), withheld: u32) -> Bench {
    let options = FpgaOptions { set_bytes: 128 << 10, ..FpgaOptions::default() };
    let memory = options.card_bytes(1);
    let inner =
        VerilatedCard::new(VerilatedOptions { shape, mhz: 200.0, memory, seed, latency, withheld });
    let (sets, cycles): (Arc<AtomicU64>, [Arc<AtomicU64>; 2]) = Default::default();
    let ways = if shape == VerilatedShape::N4W16 { 4 } else { 8 };
    let (counted, timed) = (sets.clone(), cycles.clone());
    let card = Compared { inner, ways, ring: vec![0; 256], done: 0, sets: counted, cycles: timed };
    Bench { engine: over(Box::new(card), options), sets, cycles }
}

impl Bench {
    fn check(&self, least: u64) {
        let compared = self.sets.load(Ordering::Relaxed);
        assert!(compared >= least, "{compared} slots were compared");
        assert_eq!((figure(&self.engine, "quarantine"), figure(&self.engine, "hangs")), (0, 0));
        assert_eq!((figure(&self.engine, "cpu_wrong"), figure(&self.engine, "retries")), (0, 0));
    }
}

#[test]
fn the_small_unit_conforms_and_is_as_the_model() {
    let n = seeds("LITHIFY_FPGA_VERILATED", 30);
    let calm = bench(VerilatedShape::N4W16, 1, (20, 60), 0);
    let report = suite(&calm.engine, &FixedRt, 0..n, Profile::device(FEW)).unwrap();
    assert_eq!((report.equal, report.refused, report.on_cpu), (n, 0, 0));
    calm.check(2 * n);
    let [seen, formula] = calm.cycles.each_ref().map(|n| n.load(Ordering::Relaxed));
    let sets = calm.sets.load(Ordering::Relaxed);
    println!("n4w16: {sets} sets, {seen} cycles, {formula} by formula");

    let late = bench(VerilatedShape::N4W16, 2, (1, 400), 50);
    let report = suite(&late.engine, &FixedRt, 0..n / 3, Profile::tag_keys(FEW)).unwrap();
    assert_eq!((report.equal, report.refused, report.on_cpu), (n / 3, 0, 0));
    late.check(n / 3);
}

#[test]
fn the_default_unit_conforms_and_is_as_the_model() {
    let n = seeds("LITHIFY_FPGA_VERILATED", 30) / 3;
    let unit = bench(VerilatedShape::N8W32, 3, (20, 60), 25);
    let report = suite(&unit.engine, &FixedRt, 0..n, Profile::device(FEW)).unwrap();
    assert_eq!((report.equal, report.refused, report.on_cpu), (n, 0, 0));
    unit.check(2 * n);
}

#[test]
fn the_small_unit_and_the_cpu_take_turns() {
    let n = seeds("LITHIFY_FPGA_VERILATED", 30) / 3;
    let unit = bench(VerilatedShape::N4W16, 4, (1, 100), 25);
    let engine: &dyn Engine = &unit.engine;
    handover(engine, &CpuEngine, &FixedRt, 0..n, Profile::device(FEW)).unwrap();
    unit.check(1);
}
