//! The units of a card: their commands, in order, and what is done about one that does not answer.

use std::collections::VecDeque;

use lithify_base::Error;

use crate::card::Card;
use crate::stream::{
    Command, ENDING, KEY_MAX, RESTARTS_MAX, RING, VALUE_END, VERSION, WAYS_MAX, register,
};

use super::Sched;
use super::slots::{Cargo, Slot, SlotNo, Stage, Trouble};

/// Sets that hang before the card gets no more work.
const HANGS_MAX: u32 = 2;
/// Commands that a unit has at once: it goes on with the next one without the host.
const COMMANDS: usize = 2;

const _: () = assert!(COMMANDS < RING as usize);

/// A unit, as far as its commands tell.
#[derive(Debug, Default)]
pub(super) struct Unit {
    /// Commands written and commands known to be finished.
    pub(super) written: u32,
    pub(super) done: u32,
    /// Slots of those in between.
    pub(super) running: VecDeque<SlotNo>,
    /// It is being reset, and has until then, in card time. It gets no command.
    pub(super) resetting: Option<u64>,
}

impl Sched {
    /// Enables a unit whose reset is through: what is written before that is lost. False if it takes too long.
    pub(super) fn is_ready(&mut self, unit: usize) -> bool {
        let Some(until) = self.units[unit].resetting else { return true };
        if self.card.read(unit, register::STATE) & register::IS_RESETTING != 0 {
            return self.card.now() <= until;
        }
        self.card.write(unit, register::CONTROL, register::ENABLE);
        self.units[unit].resetting = None;
        true
    }

    /// Looks which commands a unit has finished.
    pub(super) fn collect(&mut self, unit: usize) {
        if self.units[unit].running.is_empty() {
            return;
        }
        let done = self.card.read(unit, register::DONE);
        let state = &mut self.units[unit];
        // A card that counts what it was not given is not believed; the deadline ends that.
        let new = done.wrapping_sub(state.done);
        if new as usize > state.running.len() {
            return;
        }
        for _ in 0..new {
            let state = &mut self.units[unit];
            state.done = state.done.wrapping_add(1);
            let Some(slot) = state.running.pop_front() else { return };
            self.finished(slot);
        }
    }

    /// A unit says that it is done with a set: its last records are fetched.
    fn finished(&mut self, slot: SlotNo) {
        let s = &mut self.slots[slot.0];
        let Some(work) = &mut s.work else { return };
        if s.owner.is_none() {
            s.work = None;
            return;
        }
        work.stage = Stage::Returning;
        self.fetch(slot, Cargo::Ending, self.size.output - ENDING, ENDING);
    }

    /// Gives commands to units that have room, first come first served. Of units that have as little to do, the one that was
    /// given least gets the next, so that all of a card are used.
    pub(super) fn dispatch(&mut self) {
        while let Some(&slot) = self.queue.front() {
            let free = |u: &usize| {
                let unit = &self.units[*u];
                unit.resetting.is_none() && unit.running.len() < COMMANDS
            };
            let load = |&u: &usize| (self.units[u].running.len(), self.units[u].written);
            let few = (0..self.units.len()).filter(free).min_by_key(load);
            let Some(unit) = few else { return };
            self.queue.pop_front();
            self.command(slot, unit);
        }
    }

    fn command(&mut self, slot: SlotNo, unit: usize) {
        let deadline = self.deadline(self.ahead(unit));
        let s = &mut self.slots[slot.0];
        let Some(work) = &mut s.work else { return };
        let command = Command {
            input: s.at,
            output: s.at + self.size.input as u64,
            in_bytes: work.in_bytes as u32,
            out_bytes: self.size.output as u32,
            tag: work.tag,
        };
        let state = &mut self.units[unit];
        let no = state.written;
        state.written = no.wrapping_add(1);
        state.running.push_back(slot);
        work.stage = Stage::Running { unit };
        let takes = (10.0 * work.predicted as f64 * self.shape.cycle_ns) as u64;
        work.deadline = deadline.saturating_add(takes);
        let at = Command::register(no);
        for (i, word) in (0u32..).zip(command.to_words()) {
            self.card.write(unit, at + 4 * i, word);
        }
        self.card.write(unit, register::DOORBELL, no.wrapping_add(1));
    }

    /// Cycles that a unit is expected to need for what it has.
    fn ahead(&self, unit: usize) -> u64 {
        let work = |slot: &SlotNo| self.slots[slot.0].work.as_ref().map_or(0, |w| w.predicted);
        self.units[unit].running.iter().map(work).sum()
    }

    /// Ends sets whose transfer or unit is late.
    pub(super) fn miss(&mut self) {
        let now = self.card.now();
        let late = |slot: &Slot| slot.work.as_ref().is_some_and(|w| w.waits() && w.deadline < now);
        while let Some(no) = self.slots.iter().position(late) {
            let unit = match self.slots[no].work.as_ref().map(|w| &w.stage) {
                Some(&Stage::Running { unit, .. }) => Some(unit),
                _ => None,
            };
            self.counters.hangs += 1;
            if let Some(unit) = unit {
                self.restart(unit);
            }
            self.end(SlotNo(no), Err(Trouble::Hung));
            if self.counters.hangs >= HANGS_MAX {
                return self.give_up("the card did not answer in time, and not for the first time");
            }
        }
    }

    /// Resets a unit. What it had besides the set that hung waits for a unit again.
    fn restart(&mut self, unit: usize) {
        self.card.write(unit, register::CONTROL, register::ABORT);
        self.card.write(unit, register::CONTROL, register::RESET);
        let fresh = Unit { resetting: Some(self.deadline(0)), ..Unit::default() };
        let running = std::mem::replace(&mut self.units[unit], fresh).running;
        for slot in running.into_iter().rev() {
            let s = &mut self.slots[slot.0];
            if s.owner.is_none() {
                s.work = None;
            } else if let Some(work) = &mut s.work {
                work.stage = Stage::Queued;
                self.queue.push_front(slot);
            }
        }
    }
}

/// Looks at the units of a card and resets them; N of the smallest.
pub(super) fn take_over(card: &mut dyn Card, units: usize) -> Result<usize, Error> {
    let mut ways = usize::MAX;
    for unit in 0..units {
        let identity = card.read(unit, register::IDENTITY);
        if identity != register::IDENTITY_IS {
            return Err(Error::unsupported(format!(
                "unit {unit} of the card says {identity:#010x}, which is no compaction unit"
            )));
        }
        let version = card.read(unit, register::VERSION);
        if version != u32::from(VERSION) {
            return Err(Error::unsupported(format!(
                "unit {unit} of the card has version {version} of the stream, and this driver {VERSION}: \
                     load the bitstream that belongs to this release"
            )));
        }
        let (n, ring) = (card.read(unit, register::WAYS), card.read(unit, register::RING));
        if !(1..=WAYS_MAX as u32).contains(&n) || ring != RING {
            return Err(Error::unsupported(format!(
                "unit {unit} of the card has {n} ways and a ring of {ring} commands, and this driver knows \
                 1 to {WAYS_MAX} ways and a ring of {RING}: load the bitstream that belongs to this release"
            )));
        }
        // What is staged keeps these limits, and a unit of others would take it for something else.
        for (at, due) in [
            (register::KEY_MAX, KEY_MAX as u32),
            (register::VALUE_LG, VALUE_END.trailing_zeros()),
            (register::RESTARTS_MAX, RESTARTS_MAX as u32),
        ] {
            let limit = card.read(unit, at);
            if limit != due {
                return Err(Error::unsupported(format!(
                    "unit {unit} of the card has the limit {limit} in register {at:#05x}, and this driver \
                     {due}: load the bitstream that belongs to this release"
                )));
            }
        }
        ways = ways.min(n as usize);
        card.write(unit, register::CONTROL, register::RESET);
    }
    Ok(ways)
}
