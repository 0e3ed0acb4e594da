//! A card: some units behind registers, memory that host and units share, and two queues of transfers.
//!
//! Keeps: who drives a card sees the registers of `docs/formats/hw-stream.md`, and nothing else of what is
//! behind them; so a model, a simulation and a real card are driven by the same code. A buffer that was handed
//! to a queue belongs to the card until its completion brings it back.
//! Leaves to others: what is sent, in which order, and what is believed (`sched`, `session`).

use std::ops::Range;

/// What a card is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shape {
    /// Units.
    pub units: usize,
    /// Bytes of memory.
    pub memory: u64,
    /// Nanoseconds of a cycle: of card time, which is computed and never measured.
    pub cycle_ns: f64,
    /// Cycles for which [`Card::poll`] is to be called: a few milliseconds of the caller's time.
    pub pace: u64,
}

/// One direction of one buffer.
#[derive(Debug)]
pub struct Transfer {
    /// Chosen by the host; comes back with the completion.
    pub id: u64,
    /// Address in the card's memory, a multiple of 64.
    pub at: u64,
    /// The host's side of it, all of it.
    pub buffer: Vec<u8>,
}

/// A transfer that has ended.
#[derive(Debug)]
pub struct Completion {
    /// The host's number.
    pub id: u64,
    /// The buffer, as it was or as it was filled.
    pub buffer: Vec<u8>,
    /// The bytes arrived, as far as the card knows.
    pub arrived: bool,
}

/// A card. One thread at a time drives it.
pub trait Card: Send {
    /// What it is. Never changes.
    fn shape(&self) -> Shape;
    /// Reads a register of a unit; all ones if there is no such unit, or no card any more.
    fn read(&mut self, unit: usize, register: u32) -> u32;
    /// Writes a register of a unit.
    fn write(&mut self, unit: usize, register: u32, value: u32);
    /// Queues a buffer on its way to the card. Transfers of one direction end in the order in which they began.
    fn send(&mut self, transfer: Transfer);
    /// Queues a buffer to be filled from the card's memory.
    fn fetch(&mut self, transfer: Transfer);
    /// Moves on by about so many cycles, if the card is simulated, and appends the transfers that have ended.
    /// Never waits.
    fn poll(&mut self, cycles: u64, ended: &mut Vec<Completion>);
    /// Nanoseconds of card time since it was powered on.
    fn now(&self) -> u64;
}

/// Where `len` bytes at `at` lie in `memory` bytes; none if they do not.
pub(crate) fn place(at: u64, len: usize, memory: usize) -> Option<Range<usize>> {
    let start = usize::try_from(at).ok()?;
    let end = start.checked_add(len)?;
    (end <= memory).then_some(start..end)
}
