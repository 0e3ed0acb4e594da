//! A driver for a real card, as thin as it can be: registers and memory behind positioned reads and writes. **It has never run on
//! a card**: none was at hand. What is tested is that it does to its bus, in order, what the engine does to the model.
//!
//! Xilinx's XDMA driver for Linux shows a card as character devices: `user`, the registers, 4 KiB for each unit;
//! `h2c_0` and `c2h_0`, the card's memory for writing and for reading. Another driver, VFIO say, would be a second [`Bus`].
//!
//! Keeps: no transfer is under way outside of [`Card::poll`], and one poll moves at most [`PIECE`] bytes in each direction, which
//! takes a Gen3 x16 link some 0.1 ms. So the buffers of a card that is given up are the host's alone. After a
//! write of a register that failed the card counts as gone; of a transfer that failed `sched` decides.
//! Leaves to others: everything that is decided (`sched`, `session`), opening devices, and the clock.

use std::collections::VecDeque;

use lithify_env::sync::Arc;
use lithify_env::{FileRef, read_exact_at, write_all_at};

use crate::card::{Card, Completion, Shape, Transfer, place};
use crate::stream::register;

/// Bytes of a transfer that one poll moves at most: a multiple of 64.
pub const PIECE: usize = 1 << 20;
/// Bytes of registers that a unit has.
const UNIT: u64 = 4096;
/// Units that are looked for.
const UNITS_MAX: usize = 16;

/// What carries registers and memory: positioned reads and writes that are whole or have failed.
pub trait Bus: Send {
    /// A register; none if it could not be read. `at` is a multiple of 4.
    fn register(&mut self, at: u64) -> Option<u32>;
    /// Writes a register; false if that failed.
    fn set_register(&mut self, at: u64, value: u32) -> bool;
    /// Writes bytes to the card's memory; false if that failed.
    fn write_memory(&mut self, at: u64, bytes: &[u8]) -> bool;
    /// Fills bytes from the card's memory; false if that failed.
    fn read_memory(&mut self, at: u64, bytes: &mut [u8]) -> bool;
}

/// The devices of XDMA, open.
pub struct XdmaBus {
    /// `xdmaN_user`.
    pub user: FileRef,
    /// `xdmaN_h2c_0`.
    pub to_card: FileRef,
    /// `xdmaN_c2h_0`.
    pub from_card: FileRef,
}

impl Bus for XdmaBus {
    fn register(&mut self, at: u64) -> Option<u32> {
        let mut word = [0; 4];
        read_exact_at(&*self.user, &mut word, at).ok()?;
        Some(u32::from_le_bytes(word))
    }
    fn set_register(&mut self, at: u64, value: u32) -> bool {
        write_all_at(&*self.user, &value.to_le_bytes(), at).is_ok()
    }
    fn write_memory(&mut self, at: u64, bytes: &[u8]) -> bool {
        write_all_at(&*self.to_card, bytes, at).is_ok()
    }
    fn read_memory(&mut self, at: u64, bytes: &mut [u8]) -> bool {
        read_exact_at(&*self.from_card, bytes, at).is_ok()
    }
}

/// What is known of a card besides its registers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct XdmaOptions {
    /// Bytes of its memory that units and host share, from address 0 on.
    pub memory: u64,
    /// Clock of its units, MHz.
    pub mhz: f64,
}

/// A transfer, and how many of its bytes have moved.
struct Moving {
    transfer: Transfer,
    moved: usize,
}

/// The card.
pub struct XdmaCard {
    bus: Box<dyn Bus>,
    options: XdmaOptions,
    units: usize,
    /// To the card and from it, oldest first.
    queues: [VecDeque<Moving>; 2],
    /// Nanoseconds since any moment.
    clock: Arc<dyn Fn() -> u64 + Send + Sync>,
    gone: bool,
}

impl XdmaCard {
    /// A card behind a bus, with as many units as say what they are. `clock` tells nanoseconds.
    pub fn new(
        mut bus: Box<dyn Bus>,
        options: XdmaOptions,
        clock: Arc<dyn Fn() -> u64 + Send + Sync>,
    ) -> XdmaCard {
        let mut is_unit = |unit: &usize| {
            let at = *unit as u64 * UNIT + u64::from(register::IDENTITY);
            bus.register(at) == Some(register::IDENTITY_IS)
        };
        let units = (0..UNITS_MAX).take_while(|unit| is_unit(unit)).count();
        let queues = [VecDeque::new(), VecDeque::new()];
        XdmaCard { bus, options, units, queues, clock, gone: false }
    }

    fn at(&self, unit: usize, register: u32) -> Option<u64> {
        let exists = !self.gone && unit < self.units && u64::from(register) < UNIT;
        exists.then(|| unit as u64 * UNIT + u64::from(register))
    }

    /// Moves a piece of the oldest transfer of a direction; the transfer, if that was the last one of it.
    fn advance(&mut self, to_card: bool) -> Option<Completion> {
        let moving = self.queues[usize::from(!to_card)].front_mut()?;
        let (all, memory) = (moving.transfer.buffer.len(), self.options.memory as usize);
        let rest = moving.moved..all.min(moving.moved + PIECE);
        let at = moving.transfer.at.saturating_add(moving.moved as u64);
        let inside = !self.gone && place(moving.transfer.at, all, memory).is_some();
        let bytes = &mut moving.transfer.buffer[rest.clone()];
        let arrived = inside
            && match to_card {
                true => self.bus.write_memory(at, bytes),
                false => self.bus.read_memory(at, bytes),
            };
        moving.moved = rest.end;
        if arrived && moving.moved < all {
            return None;
        }
        let Moving { transfer, .. } = self.queues[usize::from(!to_card)].pop_front()?;
        Some(Completion { id: transfer.id, buffer: transfer.buffer, arrived })
    }
}

impl Card for XdmaCard {
    fn shape(&self) -> Shape {
        Shape {
            units: self.units,
            memory: self.options.memory,
            cycle_ns: 1000.0 / self.options.mhz,
            // Its units go on by themselves.
            pace: 0,
        }
    }

    fn read(&mut self, unit: usize, register: u32) -> u32 {
        let at = self.at(unit, register);
        at.and_then(|at| self.bus.register(at)).unwrap_or(register::NO_CARD)
    }

    fn write(&mut self, unit: usize, register: u32, value: u32) {
        if let Some(at) = self.at(unit, register) {
            self.gone |= !self.bus.set_register(at, value);
        }
    }

    fn send(&mut self, transfer: Transfer) {
        self.queues[0].push_back(Moving { transfer, moved: 0 });
    }

    fn fetch(&mut self, transfer: Transfer) {
        self.queues[1].push_back(Moving { transfer, moved: 0 });
    }

    fn poll(&mut self, _: u64, ended: &mut Vec<Completion>) {
        for to_card in [true, false] {
            ended.extend(self.advance(to_card));
        }
    }

    fn now(&self) -> u64 {
        (self.clock)()
    }
}
