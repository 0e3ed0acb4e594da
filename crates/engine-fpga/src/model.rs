//! The model: a card in plain Rust, exact to every byte that a unit writes.
//!
//! Keeps: for the same input slot the output slot is that of the hardware stream's page, pads and untouched
//! bytes included; only the figures of time differ, which follow a formula here. Its own code: it shares the
//! format's sums and hashes with the kernel, and none of its merge, drop rules or encoder, so that comparing
//! the two means something.
//! Leaves to others: the time of the link (`sched`), and faults (`faulty`).

use std::collections::VecDeque;

use crate::card::{Card, Completion, Shape, Transfer, place};
use crate::stream::{self, Code, Command, register};

mod cost;
mod pace;
mod set;

pub use cost::Cost;
pub use set::run;

use set::Run;

/// What a model is built as.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ModelOptions {
    /// Units.
    pub units: usize,
    /// N: data ways of a unit, at most 16.
    pub ways: usize,
    /// W: bytes of a beat inside a unit: 16, 32 or 64.
    pub width: usize,
    /// Clock of the units, MHz.
    pub mhz: f64,
    /// Bytes of memory.
    pub memory: usize,
}

impl Default for ModelOptions {
    /// Two units of N = 8 and W = 32 at 200 MHz, and memory for three slots each.
    fn default() -> ModelOptions {
        ModelOptions { units: 2, ways: 8, width: 32, mhz: 200.0, memory: 128 << 20 }
    }
}

/// Cycles that a poll moves a model on by: some milliseconds of work.
const PACE: u64 = 20_000;

/// Cycles that a reset takes: hardware waits for its memory bus.
const RESET: u64 = 100;

/// The card.
pub struct ModelCard {
    options: ModelOptions,
    memory: Vec<u8>,
    units: Vec<Unit>,
    queue: VecDeque<(Way, Transfer)>,
    cycles: u64,
}

/// Of a transfer.
enum Way {
    In,
    Out,
}

/// One unit: its registers and what it is at.
#[derive(Default)]
struct Unit {
    enabled: bool,
    mask: u32,
    pending: u32,
    doorbell: u32,
    done: u32,
    last_code: u32,
    cycles: u64,
    busy: u64,
    beats_read: u64,
    beats_written: u64,
    ring: Vec<u32>,
    run: Option<Box<Run>>,
    /// Cycles until a reset is through.
    resetting: u64,
}

impl ModelCard {
    /// A card that was just powered on, its memory zeroed.
    pub fn new(options: ModelOptions) -> ModelCard {
        let units = (0..options.units).map(|_| Unit::default()).collect();
        let memory = vec![0; options.memory];
        ModelCard { options, memory, units, queue: VecDeque::new(), cycles: 0 }
    }

    /// All of its memory, to look at.
    pub fn memory(&self) -> &[u8] {
        &self.memory
    }

    fn transfer(&mut self, way: &Way, mut transfer: Transfer) -> Completion {
        let at = place(transfer.at, transfer.buffer.len(), self.memory.len());
        if let Some(at) = at.clone() {
            match way {
                Way::In => self.memory[at].copy_from_slice(&transfer.buffer),
                Way::Out => transfer.buffer.copy_from_slice(&self.memory[at]),
            }
        }
        Completion { id: transfer.id, buffer: transfer.buffer, arrived: at.is_some() }
    }
}

impl Card for ModelCard {
    fn shape(&self) -> Shape {
        Shape {
            units: self.units.len(),
            memory: self.memory.len() as u64,
            cycle_ns: 1000.0 / self.options.mhz,
            pace: PACE,
        }
    }

    fn read(&mut self, unit: usize, at: u32) -> u32 {
        match self.units.get(unit) {
            Some(unit) => unit.read(at, &self.options),
            None => register::NO_CARD,
        }
    }

    fn write(&mut self, unit: usize, at: u32, value: u32) {
        if let Some(unit) = self.units.get_mut(unit) {
            unit.write(at, value, &mut self.memory);
        }
    }

    fn send(&mut self, transfer: Transfer) {
        self.queue.push_back((Way::In, transfer));
    }

    fn fetch(&mut self, transfer: Transfer) {
        self.queue.push_back((Way::Out, transfer));
    }

    fn poll(&mut self, cycles: u64, ended: &mut Vec<Completion>) {
        while let Some((way, transfer)) = self.queue.pop_front() {
            let completion = self.transfer(&way, transfer);
            ended.push(completion);
        }
        self.cycles += cycles;
        for unit in &mut self.units {
            unit.work(cycles, &self.options, &mut self.memory);
        }
    }

    fn now(&self) -> u64 {
        (self.cycles as f64 * 1000.0 / self.options.mhz) as u64
    }
}

impl Unit {
    fn read(&self, at: u32, options: &ModelOptions) -> u32 {
        let half = |value: u64, from: u32| (value >> (8 * (at - from))) as u32;
        match at {
            register::IDENTITY => register::IDENTITY_IS,
            register::VERSION => u32::from(stream::VERSION),
            register::WAYS => options.ways as u32,
            register::WIDTH => options.width as u32,
            register::KEY_MAX => stream::KEY_MAX as u32,
            register::VALUE_LG => stream::VALUE_END.trailing_zeros(),
            register::RESTARTS_MAX => stream::RESTARTS_MAX as u32,
            register::RING => stream::RING,
            register::CONTROL => u32::from(self.enabled),
            register::STATE => {
                let busy = if self.run.is_some() { register::IS_BUSY } else { 0 };
                let reset = if self.resetting > 0 { register::IS_RESETTING } else { 0 };
                reset | busy | if self.enabled { register::IS_ENABLED } else { 0 }
            }
            0x048 => self.mask,
            register::PENDING => self.pending,
            register::DOORBELL => self.doorbell,
            register::DONE => self.done,
            register::LAST_CODE => self.last_code,
            0x060 | 0x064 => half(self.cycles, register::CYCLES),
            0x068 | 0x06c => half(self.busy, register::BUSY),
            0x070 | 0x074 => half(self.beats_read, register::BEATS_READ),
            0x078 | 0x07c => half(self.beats_written, register::BEATS_WRITTEN),
            _ => self.ring.get(ring_word(at)).copied().unwrap_or_default(),
        }
    }

    fn write(&mut self, at: u32, value: u32, memory: &mut [u8]) {
        match at {
            register::CONTROL => {
                self.enabled = value & register::ENABLE != 0;
                if value & register::ABORT != 0
                    && let Some(run) = self.run.take()
                {
                    let run = run.abort();
                    self.finish(&run, memory);
                }
                if value & register::RESET != 0 {
                    self.run = None;
                    self.resetting = RESET;
                }
            }
            0x048 => self.mask = value,
            register::PENDING => self.pending &= !value,
            register::DOORBELL => self.doorbell = value,
            _ if (register::COMMANDS..0x800).contains(&at) => {
                self.ring.resize(256, 0);
                if let Some(word) = self.ring.get_mut(ring_word(at)) {
                    *word = value;
                }
            }
            _ => {}
        }
    }

    /// Moves on by so many cycles.
    fn work(&mut self, cycles: u64, options: &ModelOptions, memory: &mut [u8]) {
        self.cycles += cycles;
        if self.resetting > 0 {
            self.resetting = self.resetting.saturating_sub(cycles);
            if self.resetting == 0 {
                // What was written meanwhile is gone as well.
                *self = Unit::default();
            }
            return;
        }
        let mut left = cycles;
        while left > 0 {
            if self.run.is_none() {
                if !self.enabled || self.done == self.doorbell {
                    return;
                }
                self.start(options, memory);
            }
            let Some(mut run) = self.run.take() else { continue };
            let used = run.step(left);
            self.busy += used;
            left = left.saturating_sub(used.max(1));
            if run.is_over() {
                self.finish(&run, memory);
            } else {
                self.run = Some(run);
            }
        }
    }

    /// Takes the next command of the ring.
    fn start(&mut self, options: &ModelOptions, memory: &[u8]) {
        let at = ring_word(Command::register(self.done));
        let command = Command::read(self.ring.get(at..).unwrap_or_default());
        let input = place(command.input, command.in_bytes as usize, memory.len());
        let output = place(command.output, command.out_bytes as usize, memory.len());
        let (Some(input), Some(_), true) = (input, output, command.is_sound()) else {
            self.done = self.done.wrapping_add(1);
            self.last_code = Code::Header as u32;
            self.pending |= register::NO_RECORD;
            return;
        };
        self.beats_read += (input.len() / stream::BEAT) as u64;
        let cost = Cost::new(options.width);
        self.run = Some(Box::new(Run::new(command, memory[input].to_vec(), options.ways, cost)));
    }

    fn finish(&mut self, run: &Run, memory: &mut [u8]) {
        let command = run.command();
        if let Some(at) = place(command.output, command.out_bytes as usize, memory.len()) {
            self.beats_written += run.store(&mut memory[at]);
        }
        if run.code() != Code::Ok {
            self.last_code = run.code() as u32;
        }
        self.pending |= 1;
        self.done = self.done.wrapping_add(1);
    }
}

/// Which word of the ring a register is.
fn ring_word(at: u32) -> usize {
    (at.wrapping_sub(register::COMMANDS) / 4) as usize
}
