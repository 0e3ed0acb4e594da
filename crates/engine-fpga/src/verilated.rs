//! The units of `hw/rtl` themselves, cycle by cycle, as Verilator makes a program of them: a card with units side
//! by side and a memory that answers late, in an order of its own, and now and then not at all for a while.
//!
//! Keeps: one owner of each simulation, so no two threads are ever inside of one. Units that are at work go
//! through each cycle together; one that rests is not simulated. A breach of the bus's rules is a fault of the
//! hardware: from then on the card is gone.
//!
//! Each unit has a port to the memory of its own, and ports do not slow each other down, as a real card's would.
//! Leaves to others: what runs on it. `hw/tb/shim.cpp` is the other side.

use std::collections::VecDeque;

use crate::card::{Card, Completion, Shape, Transfer, place};
use crate::stream::register;

/// Cycles that a poll simulates: some milliseconds.
const PACE: u64 = 2_000;

/// A shape that was compiled in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VerilatedShape {
    /// N = 4, W = 16: for quick tests.
    N4W16,
    /// N = 8, W = 32: the default unit.
    N8W32,
}

/// How a card is simulated.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct VerilatedOptions {
    /// Which unit.
    pub shape: VerilatedShape,
    /// How many of them, at least 1.
    pub units: usize,
    /// Clock, MHz, for card time.
    pub mhz: f64,
    /// Bytes of memory.
    pub memory: usize,
    /// Of latencies, of what is withheld and of what registers hold before reset.
    pub seed: u64,
    /// Cycles that an access to memory takes, least and most.
    pub latency: (u64, u64),
    /// In so many of 100 cycles memory withholds what it has or does not take what it is given.
    pub withheld: u32,
}

/// A simulation on the other side.
#[repr(C)]
struct Raw {
    _private: [u8; 0],
}

/// The functions of one shape.
struct Shim {
    create: unsafe extern "C" fn(u64, u64, u64, u64, u32) -> *mut Raw,
    beside: unsafe extern "C" fn(*const Raw, u64, u64, u64, u32) -> *mut Raw,
    destroy: unsafe extern "C" fn(*mut Raw),
    read_register: unsafe extern "C" fn(*mut Raw, u32) -> u32,
    write_register: unsafe extern "C" fn(*mut Raw, u32, u32),
    write_memory: unsafe extern "C" fn(*mut Raw, u64, *const u8, u64) -> i32,
    read_memory: unsafe extern "C" fn(*const Raw, u64, *mut u8, u64) -> i32,
    together: unsafe extern "C" fn(*const *mut Raw, u64, u64),
    cycles: unsafe extern "C" fn(*const Raw) -> u64,
    breaches: unsafe extern "C" fn(*const Raw) -> u64,
}

macro_rules! shim {
    ($name:ident, $prefix:literal) => {
        mod $name {
            use super::{Raw, Shim};

            unsafe extern "C" {
                #[link_name = concat!($prefix, "_create")]
                fn create(bytes: u64, seed: u64, least: u64, most: u64, withheld: u32) -> *mut Raw;
                #[link_name = concat!($prefix, "_beside")]
                fn beside(
                    of: *const Raw,
                    seed: u64,
                    least: u64,
                    most: u64,
                    withheld: u32,
                ) -> *mut Raw;
                #[link_name = concat!($prefix, "_destroy")]
                fn destroy(raw: *mut Raw);
                #[link_name = concat!($prefix, "_read_register")]
                fn read_register(raw: *mut Raw, at: u32) -> u32;
                #[link_name = concat!($prefix, "_write_register")]
                fn write_register(raw: *mut Raw, at: u32, word: u32);
                #[link_name = concat!($prefix, "_write_memory")]
                fn write_memory(raw: *mut Raw, at: u64, bytes: *const u8, n: u64) -> i32;
                #[link_name = concat!($prefix, "_read_memory")]
                fn read_memory(raw: *const Raw, at: u64, bytes: *mut u8, n: u64) -> i32;
                #[link_name = concat!($prefix, "_together")]
                fn together(raws: *const *mut Raw, n: u64, cycles: u64);
                #[link_name = concat!($prefix, "_cycles")]
                fn cycles(raw: *const Raw) -> u64;
                #[link_name = concat!($prefix, "_breaches")]
                fn breaches(raw: *const Raw) -> u64;
            }

            pub(super) static SHIM: Shim = Shim {
                create,
                beside,
                destroy,
                read_register,
                write_register,
                write_memory,
                read_memory,
                together,
                cycles,
                breaches,
            };
        }
    };
}

shim!(n4w16, "n4w16");
shim!(n8w32, "n8w32");

/// A unit of the card.
struct Unit {
    raw: *mut Raw,
    /// Cycles that passed while nothing ran, which are not simulated.
    idle: u64,
    doorbell: u32,
}

/// The card.
pub struct VerilatedCard {
    shim: &'static Shim,
    units: Vec<Unit>,
    options: VerilatedOptions,
    /// Towards the card, and the transfer.
    queue: VecDeque<(bool, Transfer)>,
}

// SAFETY: the simulations have no thread of their own and no state outside of what their `raw` point to, which
// no other card has, and all their functions are called through `&mut self` or, where they change nothing, `&self`
// of a type that is not `Sync`: they may move to another thread between two calls, together.
unsafe impl Send for VerilatedCard {}

/// Seeds of two units of a card differ by this.
const NEXT_SEED: u64 = 0x9e37_79b9_7f4a_7c15;

impl VerilatedCard {
    /// A card that was just powered on and reset, its memory zeroed.
    pub fn new(options: VerilatedOptions) -> VerilatedCard {
        let shim = match options.shape {
            VerilatedShape::N4W16 => &n4w16::SHIM,
            VerilatedShape::N8W32 => &n8w32::SHIM,
        };
        let VerilatedOptions { memory, seed, latency: (least, most), withheld, .. } = options;
        let (memory, most) = (memory as u64, most.max(least));
        // SAFETY: takes numbers, and returns a simulation of its own that only `destroy` frees.
        let first = unsafe { (shim.create)(memory, seed, least, most, withheld) };
        let unit = |raw: *mut Raw| {
            assert!(!raw.is_null(), "a simulation is there or the program has ended");
            Unit { raw, idle: 0, doorbell: 0 }
        };
        let mut units = vec![unit(first)];
        for no in 1..options.units as u64 {
            let seed = seed.wrapping_add(no.wrapping_mul(NEXT_SEED));
            // SAFETY: as for `create`; `first` is alive, and its memory is freed with the last unit.
            units.push(unit(unsafe { (shim.beside)(first, seed, least, most, withheld) }));
        }
        VerilatedCard { shim, units, options, queue: VecDeque::new() }
    }

    fn transfer(&mut self, to_card: bool, mut transfer: Transfer) -> Completion {
        let n = transfer.buffer.len();
        let fits = place(transfer.at, n, self.options.memory).is_some();
        let raw = self.units[0].raw;
        let refused = match to_card {
            _ if !fits => 1,
            // SAFETY: the buffer has `n` bytes to read, and the other side compares place and length with
            // its memory, which is that of all units.
            true => unsafe {
                (self.shim.write_memory)(raw, transfer.at, transfer.buffer.as_ptr(), n as u64)
            },
            // SAFETY: the buffer has `n` bytes to write, and is borrowed by nothing else.
            false => unsafe {
                (self.shim.read_memory)(raw, transfer.at, transfer.buffer.as_mut_ptr(), n as u64)
            },
        };
        Completion { id: transfer.id, buffer: transfer.buffer, arrived: refused == 0 }
    }

    fn is_broken(&self) -> bool {
        // SAFETY: `raw` is alive until the drop; the call reads a number.
        self.units.iter().any(|unit| unsafe { (self.shim.breaches)(unit.raw) > 0 })
    }

    /// Whether a unit has nothing to do.
    fn rests(&mut self, unit: usize) -> bool {
        let resetting = self.read(unit, register::STATE) & register::IS_RESETTING != 0;
        !resetting && self.read(unit, register::DONE) == self.units[unit].doorbell
    }
}

impl Drop for VerilatedCard {
    fn drop(&mut self) {
        for unit in &self.units {
            // SAFETY: made by `create` or `beside`, freed once, and not used afterwards.
            unsafe { (self.shim.destroy)(unit.raw) }
        }
    }
}

impl Card for VerilatedCard {
    fn shape(&self) -> Shape {
        Shape {
            units: self.units.len(),
            memory: self.options.memory as u64,
            cycle_ns: 1000.0 / self.options.mhz,
            pace: PACE,
        }
    }

    fn read(&mut self, unit: usize, at: u32) -> u32 {
        if at > 0xfff || self.is_broken() {
            return register::NO_CARD;
        }
        let Some(unit) = self.units.get(unit) else { return register::NO_CARD };
        // SAFETY: `raw` is alive until the drop, and an address of 12 bits is a register.
        unsafe { (self.shim.read_register)(unit.raw, at) }
    }

    fn write(&mut self, unit: usize, at: u32, value: u32) {
        let Some(unit) = self.units.get_mut(unit).filter(|_| at <= 0xfff) else { return };
        match at {
            register::DOORBELL => unit.doorbell = value,
            register::CONTROL if value & register::RESET != 0 => unit.doorbell = 0,
            _ => {}
        }
        // SAFETY: as for reading.
        unsafe { (self.shim.write_register)(unit.raw, at, value) }
    }

    fn send(&mut self, transfer: Transfer) {
        self.queue.push_back((true, transfer));
    }

    fn fetch(&mut self, transfer: Transfer) {
        self.queue.push_back((false, transfer));
    }

    fn poll(&mut self, cycles: u64, ended: &mut Vec<Completion>) {
        while let Some((to_card, transfer)) = self.queue.pop_front() {
            let completion = self.transfer(to_card, transfer);
            ended.push(completion);
        }
        let mut working = Vec::new();
        for unit in 0..self.units.len() {
            match self.rests(unit) {
                true => self.units[unit].idle += cycles,
                false => working.push(self.units[unit].raw),
            }
        }
        // SAFETY: each is alive until the drop, and there are so many of them, no two the same.
        unsafe { (self.shim.together)(working.as_ptr(), working.len() as u64, cycles) }
    }

    fn now(&self) -> u64 {
        // SAFETY: `raw` is alive until the drop; the call reads a number.
        let passed = |unit: &Unit| unsafe { (self.shim.cycles)(unit.raw) } + unit.idle;
        let most = self.units.iter().map(passed).max().unwrap_or_default();
        (most as f64 * 1000.0 / self.options.mhz) as u64
    }
}
