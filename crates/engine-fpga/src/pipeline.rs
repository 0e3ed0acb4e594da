//! A prediction: the card time of a stream of block sets, from rates alone.
//!
//! Keeps: the same reservations and the same control of sizes as the engine's, without a byte of data, so a
//! job of any size takes no memory and milliseconds. What it says is predicted, and a test holds it against
//! the card time of the engine over the model.
//! Leaves to others: what a unit does with a set; its line `fixed + bytes x ns` is an argument.

use std::collections::VecDeque;

use lithify_engine::{Caps, CpuEngine, Engine};

use crate::control::{Buffer, Controller, Sample};
use crate::growth::Room;
use crate::model::Cost;
use crate::sched::{CUT_NS, Link, SlotSize, Timetable};
use crate::stream::{BEAT, DESCRIPTOR, DESCRIPTORS_AT, ENDING, RECORD};

/// Sets of a part that are cut besides those on the card: one waits at the session, and one in front of it.
const CUT_AHEAD: usize = 2;
/// Bytes of a block, whose descriptors and records are counted.
const BLOCK: u64 = 4096;

/// A card and what streams through it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pipeline {
    /// How the card is attached.
    pub link: Link,
    /// Units of the card.
    pub units: usize,
    /// Slots for each unit.
    pub slots: usize,
    /// Sets of a part on the card at once; 1 is no pipeline.
    pub in_flight: usize,
    /// Parts side by side. The sets of each are merged one after the other.
    pub parts: usize,
    /// Nanoseconds of a unit for a set without entries.
    pub unit_fixed_ns: f64,
    /// Nanoseconds of a unit for a stored byte.
    pub unit_ns_per_byte: f64,
    /// Bytes that come out for each that goes in.
    pub kept: f64,
    /// Who decides how large sets are.
    pub buffer: Buffer,
    /// Stored bytes of the first set.
    pub set_bytes: u64,
    /// Stored bytes of the largest set.
    pub set_max: u64,
    /// Nanoseconds of the search for the end of a set: fixed, and for each of its bytes.
    pub cut_ns: (f64, f64),
}

impl Default for Pipeline {
    /// Two units of 200 MHz that take 31 bytes a cycle, two parts, 4 MiB sets.
    fn default() -> Pipeline {
        Pipeline {
            link: Link::GEN3_X16,
            units: 2,
            slots: 3,
            in_flight: 3,
            parts: 2,
            unit_fixed_ns: 2_300.0,
            unit_ns_per_byte: 5.0 / 31.0,
            kept: 1.0,
            buffer: Buffer::Static,
            set_bytes: 4 << 20,
            set_max: 4 << 20,
            cut_ns: (CUT_NS, 0.0),
        }
    }
}

/// What a stream would take.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Predicted {
    /// Nanoseconds until the last byte is back.
    pub ns: f64,
    /// Sets.
    pub sets: u64,
    /// Stored bytes of the last set that was not the rest of a part; 0 without one.
    pub set_bytes: u64,
    /// Nanoseconds that the link towards the card was at work, the units together, and the link from the card.
    pub busy: [f64; 3],
}

/// A part on its way.
#[derive(Debug, Default)]
struct Part {
    /// Bytes that no set has yet.
    left: u64,
    /// Sets that are cut and wait for a slot.
    cut: VecDeque<u64>,
    /// Sets on the card that have not begun: their bytes, their slots and when they are loaded.
    loaded: VecDeque<(u64, usize, f64)>,
    /// When its last carry was known, and when the output of its last set was back.
    known: f64,
    back: f64,
}

impl Pipeline {
    /// Streams `bytes` of input in all, the parts equally large.
    pub fn stream(&self, bytes: u64) -> Predicted {
        let (units, parts) = (self.units.max(1), self.parts.max(1));
        let slots = units * self.slots.max(1);
        let slot = SlotSize::of(self.set_max);
        let most = self.buffer.most(self.set_max, slot.input);
        let mut control = Controller::new(self.buffer, slots, units, self.set_bytes, most);
        let mut times = Timetable::new(self.link, units);
        // When each slot is free; none while a set that has not begun lies in it.
        let mut free: Vec<Option<f64>> = vec![Some(0.0); slots];
        let mut of = Predicted::default();
        let part = || Part { left: bytes / parts as u64, ..Part::default() };
        let mut parts: Vec<Part> = (0..parts).map(|_| part()).collect();
        loop {
            parts.iter_mut().for_each(|part| self.cut(part, slot, &mut control));
            self.load(&mut parts, &mut free, &mut times);
            let ready = |part: &Part| part.loaded.front().map(|set| part.known.max(set.2));
            let next = (0..parts.len()).filter(|&i| ready(&parts[i]).is_some()).min_by(|&a, &b| {
                ready(&parts[a]).unwrap_or(0.0).total_cmp(&ready(&parts[b]).unwrap_or(0.0))
            });
            let Some(i) = next else { break };
            let active = parts.iter().filter(|p| !p.loaded.is_empty()).count().min(units);
            let part = &mut parts[i];
            let Some((bytes, slot, loaded)) = part.loaded.pop_front() else { break };
            let sample = self.merge(part, bytes, loaded, active, &mut times);
            free[slot] = Some(part.back);
            control.learn(&sample);
            of.sets += 1;
            if part.left > 0 || !part.cut.is_empty() {
                of.set_bytes = bytes;
            }
        }
        of.ns = times.end;
        of.busy = [times.in_busy(), times.units_busy(), times.out_busy()];
        of
    }

    /// Cuts as many sets of a part ahead as there may be.
    fn cut(&self, part: &mut Part, slot: SlotSize, control: &mut Controller) {
        while part.left > 0
            && part.loaded.len() + part.cut.len() < self.in_flight.max(1) + CUT_AHEAD
        {
            let wanted = Room::default().fitting(control.set_bytes(), slot);
            // As the bench and the feed of a compaction cut sets.
            let last_bytes = self.buffer.last_bytes(wanted);
            let caps = Caps { set_bytes: wanted, last_bytes, ..CpuEngine.caps() };
            let mut bytes = caps.next_bytes(part.left).min(part.left);
            // As sets are cut: what is left is split evenly rather than in one and a little.
            if part.left > bytes && part.left < bytes + bytes / 2 {
                bytes = part.left.div_ceil(2);
            }
            part.left -= bytes;
            part.cut.push_back(bytes);
            control.offered(bytes);
        }
    }

    /// Loads as many sets ahead as there may be: each part its first before any its second.
    fn load(&self, parts: &mut [Part], free: &mut [Option<f64>], times: &mut Timetable) {
        for ahead in 0..self.in_flight.max(1) {
            for part in parts.iter_mut() {
                if part.loaded.len() != ahead || part.cut.is_empty() {
                    continue;
                }
                let slot = (0..free.len())
                    .filter_map(|i| free[i].map(|at| (at, i)))
                    .min_by(|a, b| a.0.total_cmp(&b.0));
                let Some((at, slot)) = slot else { return };
                let Some(bytes) = part.cut.pop_front() else { continue };
                free[slot] = None;
                // The flight before has to be back before this one is staged.
                let from = if ahead + 1 == self.in_flight.max(1) { part.back } else { 0.0 };
                let loaded = times.send(Self::loads(bytes), at.max(from));
                part.loaded.push_back((bytes, slot, loaded));
            }
        }
    }

    /// What is sent of a set before its carry is known: its blocks, and a descriptor of each.
    fn loads(bytes: u64) -> usize {
        (bytes + bytes / BLOCK * DESCRIPTOR as u64) as usize
    }

    /// Merges a set of a part.
    fn merge(
        &self,
        part: &mut Part,
        bytes: u64,
        loaded: f64,
        active: usize,
        times: &mut Timetable,
    ) -> Sample {
        let link = self.link;
        // Half a block is replayed on average, and half a block is open.
        let half = BLOCK as usize / 2;
        let head = DESCRIPTORS_AT + BEAT + half;
        let out = (bytes as f64 * self.kept) as u64;
        let rest = (out + out / BLOCK * RECORD as u64) as usize;
        let takes = self.unit_fixed_ns + bytes as f64 * self.unit_ns_per_byte;
        let sent = times.send_first(head, times.after_host(part.known));
        let ran = times.run(sent.max(loaded), takes);
        let ended = times.receive_first(ENDING, ran);
        part.known = times.receive_first(half, ended);
        part.back = times.receive(rest, part.known);
        let (head_ns, known_ns) = (link.in_ns(head), link.out_ns(ENDING) + link.out_ns(half));
        Sample {
            bytes,
            cut_ns: self.cut_ns.0 + self.cut_ns.1 * bytes as f64,
            to_card_ns: link.in_ns(Self::loads(bytes)) + head_ns,
            unit_ns: link.host_ns + head_ns + takes + known_ns,
            from_card_ns: known_ns + link.out_ns(rest),
            parts: active,
        }
    }
}

/// Levels of logic between two registers of a unit of 8 ways and 32 bytes, of which its clock is estimated.
pub const LEVELS: u32 = 12;
/// Cycles of a set without entries, as the model counts them.
pub const FIXED_CYCLES: f64 = Cost::FIXED as f64;

/// MHz of a unit with so many levels of logic, at 0.12 ns a level and 0.35 ns for the way to each and to the
/// register. It is an estimate over a mapped netlist: no vendor's tool has placed anything.
pub fn estimated_mhz(levels: u32) -> f64 {
    let n = f64::from(levels);
    1000.0 / (0.12 * n + 0.35 * (n + 1.0))
}
