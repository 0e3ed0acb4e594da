//! The driver of a real card does to its bus what the engine does to the model: the same registers and transfers in the same
//! order. Behind the bus is the model, as no card is at hand.

use lithify_engine::conformance::run;
use lithify_engine_fpga::card::{Card, Completion, Shape, Transfer};
use lithify_engine_fpga::stream::register;
use lithify_engine_fpga::xdma::{Bus, PIECE, XdmaCard, XdmaOptions};
use lithify_engine_fpga::{FpgaEngine, FpgaOptions, ModelCard, ModelOptions};
use lithify_env::sync::atomic::{AtomicU64, Ordering};
use lithify_env::sync::{Arc, Mutex};
use lithify_merge::naive;
use lithify_merge::workload::Case;

use crate::common::*;

/// What was done to a card, without what was only looked at.
#[derive(Clone, Debug, PartialEq)]
enum Deed {
    Register(usize, u32, u32),
    ToCard(u64, Vec<u8>),
    FromCard(u64, Vec<u8>),
}

type Deeds = Arc<Mutex<Vec<Deed>>>;

/// The model, and a log of what is done to it.
struct Logged {
    card: ModelCard,
    deeds: Deeds,
}

impl Card for Logged {
    fn shape(&self) -> Shape {
        self.card.shape()
    }
    fn read(&mut self, unit: usize, register: u32) -> u32 {
        self.card.read(unit, register)
    }
    fn write(&mut self, unit: usize, register: u32, value: u32) {
        self.deeds.lock().push(Deed::Register(unit, register, value));
        self.card.write(unit, register, value);
    }
    fn send(&mut self, transfer: Transfer) {
        self.deeds.lock().push(Deed::ToCard(transfer.at, transfer.buffer.clone()));
        self.card.send(transfer);
    }
    fn fetch(&mut self, transfer: Transfer) {
        self.card.fetch(transfer);
    }
    fn poll(&mut self, cycles: u64, ended: &mut Vec<Completion>) {
        self.card.poll(cycles, ended);
    }
    fn now(&self) -> u64 {
        self.card.now()
    }
}

/// A bus with the model behind it, which goes on whenever it is looked at.
struct Wire {
    card: ModelCard,
    deeds: Deeds,
    clock: Arc<AtomicU64>,
    /// Accesses after which nothing answers.
    left: u64,
}

impl Wire {
    fn answers(&mut self) -> bool {
        self.left = self.left.saturating_sub(1);
        self.left > 0
    }
    fn moved(&mut self) -> Completion {
        let mut ended = Vec::new();
        self.card.poll(200, &mut ended);
        self.clock.store(self.card.now(), Ordering::Relaxed);
        ended.pop().unwrap_or(Completion { id: 0, buffer: Vec::new(), arrived: false })
    }
}

impl Bus for Wire {
    fn register(&mut self, at: u64) -> Option<u32> {
        self.moved();
        self.answers().then(|| self.card.read((at / 4096) as usize, (at % 4096) as u32))
    }
    fn set_register(&mut self, at: u64, value: u32) -> bool {
        let (unit, register) = ((at / 4096) as usize, (at % 4096) as u32);
        self.deeds.lock().push(Deed::Register(unit, register, value));
        self.card.write(unit, register, value);
        self.answers()
    }
    fn write_memory(&mut self, at: u64, bytes: &[u8]) -> bool {
        assert!(bytes.len() <= PIECE);
        self.deeds.lock().push(Deed::ToCard(at, bytes.to_vec()));
        self.card.send(Transfer { id: 1, at, buffer: bytes.to_vec() });
        self.moved().arrived && self.answers()
    }
    fn read_memory(&mut self, at: u64, bytes: &mut [u8]) -> bool {
        assert!(bytes.len() <= PIECE);
        self.card.fetch(Transfer { id: 1, at, buffer: bytes.to_vec() });
        let came = self.moved();
        bytes.copy_from_slice(&came.buffer);
        self.deeds.lock().push(Deed::FromCard(at, came.buffer));
        came.arrived && self.answers()
    }
}

fn card(set: u64) -> ModelOptions {
    let memory = 3 * (5 * set as usize + (128 << 10));
    ModelOptions { units: 1, ways: 8, width: 32, mhz: 200.0, memory }
}

fn wired(set: u64, left: u64) -> (Box<dyn Card>, Deeds) {
    let (deeds, clock) = (Deeds::default(), Arc::new(AtomicU64::new(0)));
    let options = XdmaOptions { memory: card(set).memory as u64, mhz: 200.0 };
    let model = ModelCard::new(card(set));
    let bus = Wire { card: model, deeds: deeds.clone(), clock: clock.clone(), left };
    let now = move || clock.load(Ordering::Relaxed);
    (Box::new(XdmaCard::new(Box::new(bus), options, Arc::new(now))), deeds)
}

/// Registers written and pieces sent, one after the other.
fn of(deeds: &Deeds) -> Vec<Deed> {
    let all = deeds.lock().clone();
    let mut pieces = Vec::new();
    for deed in all {
        match deed {
            Deed::ToCard(at, bytes) => {
                let piece = |(i, bytes): (usize, &[u8])| {
                    Deed::ToCard(at + (i * PIECE) as u64, bytes.to_vec())
                };
                pieces.extend(bytes.chunks(PIECE).enumerate().map(piece));
            }
            Deed::FromCard(..) => {}
            deed => pieces.push(deed),
        }
    }
    pieces
}

/// One set at a time, so that nothing depends on how long something took.
#[test]
fn a_session_does_the_same_to_a_bus_and_to_the_model() {
    let set = 3 << 20;
    let options = FpgaOptions { slots: 3, in_flight: 1, set_bytes: set, ..FpgaOptions::default() };
    let case = Case::uniform(5, 4, 9_000, 16, 1000).unwrap();
    let (expected, _) = naive::compact(&case.recipe, case.entries()).unwrap();
    let by =
        |engine: &FpgaEngine| run(engine, &FixedRt, &case.recipe, case.sets(set), true).unwrap();
    let deeds = Deeds::default();
    let logged = Logged { card: ModelCard::new(card(set)), deeds: deeds.clone() };
    let by_model = FpgaEngine::new(Box::new(logged), options).unwrap();
    assert_eq!(by(&by_model).output, expected);
    let (driver, on_bus) = wired(set, u64::MAX);
    let by_driver = FpgaEngine::new(driver, options).unwrap();
    assert_eq!(by(&by_driver).output, expected);
    assert_eq!((figure(&by_driver, "cpu_sets"), figure(&by_driver, "hangs")), (0, 0));

    // A unit is enabled when its reset is through, whatever is sent meanwhile.
    let enables = |deed: &Deed| matches!(deed, Deed::Register(_, register::CONTROL, _));
    let (control, a): (Vec<Deed>, Vec<Deed>) = of(&deeds).into_iter().partition(enables);
    let (on_wire, b): (Vec<Deed>, Vec<Deed>) = of(&on_bus).into_iter().partition(enables);
    assert_eq!(control, on_wire);
    let first = a.iter().zip(&b).position(|(a, b)| a != b);
    assert_eq!((first, a.len()), (None, b.len()));
    let large = a.iter().any(|deed| matches!(deed, Deed::ToCard(_, bytes) if bytes.len() == PIECE));
    assert!(large, "no transfer had more than one piece");
}

/// Whatever access is the last one that succeeds: the CPU's bytes.
#[test]
fn a_bus_that_fails_costs_time_only() {
    let set = 64 << 10;
    let options = FpgaOptions { set_bytes: set, ..FpgaOptions::default() };
    let case = Case::uniform(6, 4, 1_500, 16, 200).unwrap();
    let (expected, _) = naive::compact(&case.recipe, case.entries()).unwrap();
    let mut ran = 0;
    for left in (30..600).step_by(19) {
        let (driver, _) = wired(set, left);
        let Ok(engine) = FpgaEngine::new(driver, options) else { continue };
        let made = run(&engine, &FixedRt, &case.recipe, case.sets(set), true);
        match made {
            Ok(made) => assert_eq!(made.output, expected, "{left} accesses"),
            // Refused, as the card was given up before it began.
            Err(e) => assert!(e.to_string().contains("the card gets no more work"), "{e}"),
        }
        ran += 1;
    }
    assert!(ran > 5, "{ran} cards were taken over");
}
