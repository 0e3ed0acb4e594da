//! The scheduler of a card: slots, units, transfers, and the time that all of it would take.
//!
//! ```text
//!  free -> held -> loading -> [head] -> queued -> running -> status -> open block -> records, payloads -> ended -> free
//! ```
//!
//! Keeps: memory has a bound, whatever the jobs are: slots have fixed sizes, on the card and on the host, and each
//! buffer is counted (`memory`). A slot belongs to one set from staging to decoding. What a card does late,
//! twice or not at all ends in an error of that set: a completion that is not awaited is forgotten, one that does
//! not come is missed after ten times its time, and a card whose clock stands is given up. Card time is
//! computed from reservations in the order of offers and from cycles that units report, never measured.
//! Leaves to others: what is in the slots (`stage`, `returned`), what follows from an error (`session`), and how
//! large sets are to be (`control`, which is told of each).
//!
//! Chapters: `slots`, `units`, `back` for what comes back, `time`, `turns`. Here are sessions, and the way to the
//! card.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use lithify_base::{Error, ErrorKind};
use lithify_engine::memory::{EngineMemory, MemoryShare};
use lithify_env::sync::Arc;

use crate::card::{Card, Shape, Transfer};
use crate::control::{Controller, Sample};
use crate::memory::Buffer;
use crate::stage::{Head, Staged};
use crate::stream::{BEAT, DESCRIPTORS_AT, STALLS, register};

mod back;
mod slots;
mod time;
mod turns;
mod units;

pub(crate) use slots::{Ended, Hold, SlotSize, Trouble};
pub use time::Link;
pub(crate) use time::Timetable;

use slots::{Cargo, Slot, SlotNo, Stage, Work};
use turns::Turns;
use units::{Unit, take_over};

/// Cycles that a set may take beyond ten times what is predicted, and a transfer beyond ten times its time.
const GRACE_CYCLES: u64 = 1_000_000;
/// Nanoseconds that a poll of a simulated card takes the thread that drives it: more than it does.
const POLL_NS: f64 = 10e6;
/// Polls in which the clock of a card may stand while something is under way: one that is simulated moves at each,
/// and on one that is real no two polls are in the same nanosecond.
const STANDS_MAX: u32 = 10_000;
/// Nanoseconds of the search in the indexes that finds where a set ends: assumed, for `control`, as card time
/// holds nothing that was measured.
pub(crate) const CUT_NS: f64 = 50_000.0;

/// Counters of a card, for reports.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Counters {
    pub(crate) sets: u64,
    pub(crate) cycles: u64,
    pub(crate) stalls: [u64; STALLS.len()],
    pub(crate) bytes_to_card: u64,
    pub(crate) bytes_from_card: u64,
    pub(crate) hangs: u32,
    pub(crate) stale: u64,
}

/// The buffers on the host.
#[derive(Debug, Default)]
struct Buffers {
    /// Counts all of them.
    bytes: Arc<EngineMemory>,
    /// What counts those that the card has, by their transfers.
    away: BTreeMap<u64, MemoryShare>,
}

/// The card and everything that is on it.
pub(crate) struct Sched {
    card: Box<dyn Card>,
    shape: Shape,
    size: SlotSize,
    slots: Vec<Slot>,
    units: Vec<Unit>,
    queue: VecDeque<SlotNo>,
    turns: Turns,
    buffers: Buffers,
    /// The card's clock at the last poll, and polls since it moved.
    clock: (u64, u32),
    next: u64,
    /// N and W of the units.
    built: (usize, usize),
    times: Timetable,
    /// Says how large sets are to be.
    pub(crate) control: Controller,
    /// Why it gets no more work.
    quarantine: Option<String>,
    pub(crate) counters: Counters,
}

impl Sched {
    /// Takes a card over: its units are reset, and enabled once that is through.
    ///
    /// # Errors
    /// Unsupported, naming what it is, if the card is none that this driver knows, or too small.
    pub(crate) fn new(
        mut card: Box<dyn Card>,
        slots: usize,
        size: SlotSize,
        link: Link,
        control: Controller,
        first_tag: u64,
    ) -> Result<Sched, Error> {
        let shape = card.shape();
        let needed = slots.saturating_mul(size.bytes()) as u64;
        if shape.units == 0 || slots == 0 {
            return Err(Error::invalid("an FPGA engine needs at least one unit and one slot"));
        }
        if !(shape.cycle_ns > 0.0 && shape.cycle_ns.is_finite()) {
            return Err(Error::invalid("the clock of a card's units is above 0, and finite"));
        }
        if size.input > u32::MAX as usize || size.output > u32::MAX as usize {
            return Err(Error::invalid("sets of an FPGA engine have to be below 1.6 GiB"));
        }
        if shape.memory < needed {
            let has = shape.memory;
            return Err(Error::unsupported(format!(
                "the card has {has} bytes of memory, and {slots} slots need {needed}: take smaller sets or \
                 fewer slots"
            )));
        }
        let ways = take_over(&mut *card, shape.units)?;
        let width = (card.read(0, register::WIDTH) as usize).clamp(16, BEAT);
        let until = card.now().saturating_add((GRACE_CYCLES as f64 * shape.cycle_ns) as u64);
        let unit = || Unit { resetting: Some(until), ..Unit::default() };
        let slot = |i: usize| Slot { at: (i * size.bytes()) as u64, ..Slot::default() };
        Ok(Sched {
            slots: (0..slots).map(slot).collect(),
            units: (0..shape.units).map(|_| unit()).collect(),
            queue: VecDeque::new(),
            turns: Turns::default(),
            buffers: Buffers::default(),
            clock: (0, 0),
            next: first_tag,
            built: (ways, width),
            times: Timetable::new(link, shape.units),
            control,
            quarantine: None,
            counters: Counters::default(),
            card,
            shape,
            size,
        })
    }

    /// N of the units.
    pub(crate) fn ways(&self) -> usize {
        self.built.0
    }
    /// Sizes of a slot.
    pub(crate) fn size(&self) -> SlotSize {
        self.size
    }
    /// The counter of all buffers on the host.
    pub(crate) fn host_bytes(&self) -> &Arc<EngineMemory> {
        &self.buffers.bytes
    }
    /// Bytes of the card's memory that slots have.
    pub(crate) fn card_bytes(&self) -> usize {
        self.slots.len() * self.size.bytes()
    }
    /// Why the card gets no more work, if so.
    pub(crate) fn quarantine(&self) -> Option<&str> {
        self.quarantine.as_deref()
    }
    /// Slots that no set holds.
    pub(crate) fn free_slots(&self) -> usize {
        self.slots.iter().filter(|slot| slot.owner.is_none() && slot.work.is_none()).count()
    }
    /// Nanoseconds of card time until all that was done is through, and for how many of them links and
    /// units were at work.
    pub(crate) fn times(&self) -> &Timetable {
        &self.times
    }
    /// Nanoseconds of a cycle.
    pub(crate) fn cycle_ns(&self) -> f64 {
        self.shape.cycle_ns
    }

    /// A session begins: a number to hold slots by.
    pub(crate) fn enter(&mut self) -> u64 {
        let session = self.number();
        self.turns.enter(session);
        session
    }

    /// A session ends, and gives back every slot that it holds, whatever it knows of it: after a panic it may
    /// hold one that no set of it names.
    pub(crate) fn leave(&mut self, session: u64) {
        for no in 0..self.slots.len() {
            if self.slots[no].owner == Some(session) {
                self.free(SlotNo(no));
            }
        }
        self.turns.leave(session);
    }

    /// Whether a session but this one waits for its first slot.
    pub(crate) fn others_wait(&self, session: u64) -> bool {
        self.turns.others_wait(session)
    }

    fn number(&mut self) -> u64 {
        self.next = self.next.wrapping_add(1);
        self.next
    }

    /// A free slot for a session, if it is its turn, with the buffer for its entry areas: of several the one that
    /// was free first.
    pub(crate) fn acquire(&mut self, session: u64) -> Option<(Hold, Buffer)> {
        if self.quarantine.is_some() || !self.turns.ask(session, self.free_slots()) {
            return None;
        }
        let free = |&i: &usize| self.slots[i].owner.is_none() && self.slots[i].work.is_none();
        let first = |a: &usize, b: &usize| {
            self.slots[*a].free_at.total_cmp(&self.slots[*b].free_at).then(a.cmp(b))
        };
        let at = (0..self.slots.len()).filter(free).min_by(first)?;
        let no = self.number();
        let slot = &mut self.slots[at];
        (slot.owner, slot.hold) = (Some(session), no);
        let mut areas = std::mem::take(&mut slot.areas);
        if !areas.is_counted() {
            areas = Buffer::new(&self.buffers.bytes, Vec::new());
        }
        Some((Hold { slot: SlotNo(at), no }, areas))
    }

    /// The slot of a hold, unless it was given back.
    fn held(&self, hold: Hold) -> Option<SlotNo> {
        let slot = self.slots.get(hold.slot.0)?;
        (slot.owner.is_some() && slot.hold == hold.no).then_some(hold.slot)
    }

    /// The set in the slot of a hold.
    fn held_work(&self, hold: Hold) -> Option<&Work> {
        self.slots[self.held(hold)?.0].work.as_ref()
    }

    /// Gives a slot back. What a unit still does for it comes to its end first.
    pub(crate) fn release(&mut self, hold: Hold) {
        if let Some(slot) = self.held(hold) {
            self.free(slot);
        }
    }

    fn free(&mut self, slot: SlotNo) {
        let Some(s) = self.slots.get_mut(slot.0) else { return };
        let owner = s.owner.take();
        if let Some(owner) = owner {
            self.turns.gave_back(owner);
        }
        self.queue.retain(|&queued| queued != slot);
        let Some(work) = &mut s.work else { return };
        s.free_at = s.free_at.max(work.back_at);
        if let Some(owner) = owner {
            self.turns.freed(owner, work.back_at);
        }
        match work.stage {
            // It has a command; the slot is free when that is done.
            Stage::Running { .. } => {}
            _ => s.work = None,
        }
    }

    /// Gives a slot back that was not used, with its buffer.
    pub(crate) fn give_back(&mut self, hold: Hold, areas: Buffer) {
        if let Some(slot) = self.held(hold) {
            self.slots[slot.0].areas = areas;
            self.free(slot);
        }
    }

    /// Sends the entry areas of a staged set to its slot, and their descriptors. False if that is not to be had, or
    /// a unit is at work on it.
    pub(crate) fn load(&mut self, hold: Hold, staged: &mut Staged) -> bool {
        let Some(slot) = self.held(hold) else { return false };
        let work = self.slots[slot.0].work.as_ref();
        if work.is_some_and(|work| matches!(work.stage, Stage::Running { .. })) {
            return false;
        }
        let predicted = self.predict(staged);
        let tag = self.number();
        let areas = std::mem::take(&mut staged.areas);
        let owner = self.slots[slot.0].owner;
        let freed_at = owner.map_or(0.0, |owner| self.turns.freed_at(owner));
        let ready_at = self.times.send(staged.areas_len, freed_at.max(self.slots[slot.0].free_at));
        let sample = Sample {
            bytes: staged.stored,
            cut_ns: CUT_NS,
            to_card_ns: self.times.link().in_ns(staged.areas_len),
            unit_ns: 0.0,
            from_card_ns: 0.0,
            parts: 1,
        };
        self.slots[slot.0].work = Some(Work {
            stage: Stage::Loaded,
            tag,
            under_way: BTreeMap::new(),
            deadline: 0,
            predicted,
            in_bytes: staged.bytes(),
            ending: Buffer::default(),
            records: Buffer::default(),
            open: Buffer::default(),
            payloads: Buffer::default(),
            ended: None,
            sample,
            ready_at,
            known_at: ready_at,
            back_at: ready_at,
        });
        self.send(slot, Cargo::Areas, DESCRIPTORS_AT, areas);
        true
    }

    /// Cycles that a set may take: a beat of the narrowest unit for each of its bytes, and as much for entries.
    fn predict(&self, staged: &Staged) -> u64 {
        staged.bytes() as u64 + 8 * staged.areas_count() as u64 + 2000
    }

    /// How long the card is expected to be at work on all that it has and on `bytes` of sets more, in time of
    /// the thread that drives it.
    pub(crate) fn predicted(&self, bytes: u64) -> Duration {
        let works = self.slots.iter().filter_map(|slot| slot.work.as_ref());
        let all = works.map(|work| work.in_bytes as u64).sum::<u64>() + bytes;
        // Two beats for each one of values: lengths, keys and ends of blocks.
        let cycles = 2 * all / self.built.1 as u64 + GRACE_CYCLES / 100;
        let nanos = match self.shape.pace {
            0 => cycles as f64 * self.shape.cycle_ns,
            pace => cycles as f64 / pace as f64 * POLL_NS,
        };
        Duration::from_nanos(nanos as u64)
    }

    /// The tag of the set in a slot.
    pub(crate) fn tag(&self, hold: Hold) -> u64 {
        self.held_work(hold).map_or(0, |work| work.tag)
    }

    /// Sends what depends on the carry. The set runs on the next unit that is free. `known_at` is when its
    /// carry was known, in computed card time. A set that has ended meanwhile is not started: `take` says how.
    pub(crate) fn start(&mut self, hold: Hold, head: Head, known_at: f64) {
        let Some(slot) = self.held(hold) else { return };
        let loaded = |work: &Work| matches!(work.stage, Stage::Loaded);
        if !self.slots[slot.0].work.as_ref().is_some_and(loaded) {
            return;
        }
        let bytes = head.parts.iter().map(|(_, part)| part.len()).sum();
        let ready = self.times.send_first(bytes, self.times.after_host(known_at));
        let Some(work) = &mut self.slots[slot.0].work else { return };
        work.ready_at = work.ready_at.max(ready);
        work.predicted += head.in_bytes.saturating_sub(work.in_bytes) as u64;
        work.in_bytes = head.in_bytes;
        let head_ns = self.times.link().in_ns(bytes);
        work.sample.to_card_ns += head_ns;
        work.sample.unit_ns = self.times.link().host_ns + head_ns;
        work.stage = Stage::Heading;
        for (at, part) in head.parts {
            let part = Buffer::new(&self.buffers.bytes, part);
            self.send(slot, Cargo::Head, at, part);
        }
    }

    /// Sends a buffer to a place in the input part of a slot.
    fn send(&mut self, slot: SlotNo, cargo: Cargo, at: usize, buffer: Buffer) {
        let (buffer, held) = buffer.part();
        self.counters.bytes_to_card += buffer.len() as u64;
        let id = self.expect(slot, cargo, buffer.len(), held);
        let at = self.slots[slot.0].at + at as u64;
        self.card.send(Transfer { id, at, buffer });
    }

    /// Fetches bytes from the output part of a slot.
    fn fetch(&mut self, slot: SlotNo, cargo: Cargo, at: usize, len: usize) {
        self.counters.bytes_from_card += len as u64;
        let held = self.buffers.bytes.hold(len);
        let id = self.expect(slot, cargo, len, held);
        let at = self.slots[slot.0].at + (self.size.input + at) as u64;
        self.card.fetch(Transfer { id, at, buffer: vec![0; len] });
    }

    /// A transfer is under way from now on, of a buffer that `held` counts.
    fn expect(&mut self, slot: SlotNo, cargo: Cargo, len: usize, held: MemoryShare) -> u64 {
        let id = self.number();
        self.buffers.away.insert(id, held);
        let deadline = self.deadline(len as u64);
        if let Some(work) = &mut self.slots[slot.0].work {
            work.under_way.insert(id, cargo);
            work.deadline = work.deadline.max(deadline);
        }
        id
    }

    /// Ten times so many cycles from now, and some grace.
    fn deadline(&self, cycles: u64) -> u64 {
        let cycles = cycles.saturating_mul(10).saturating_add(GRACE_CYCLES);
        self.card.now().saturating_add((cycles as f64 * self.shape.cycle_ns) as u64)
    }

    /// Parts whose sets the links carry at once.
    fn parts(&self) -> usize {
        self.turns.holders().clamp(1, self.units.len())
    }

    /// How a set in a slot ended, if it has.
    pub(crate) fn take(&mut self, hold: Hold) -> Option<Result<Ended, Trouble>> {
        let slot = self.held(hold);
        let Some(work) = slot.and_then(|slot| self.slots[slot.0].work.as_mut()) else {
            return Some(Err(Trouble::Damaged(gone())));
        };
        let Some(ended) = work.ended.take() else {
            // It was started after the card was given up: nothing moves it on any more.
            return self.quarantine.is_some().then_some(Err(Trouble::Quarantined));
        };
        let payloads = std::mem::take(&mut work.payloads);
        let open = std::mem::take(&mut work.open);
        Some(ended.map(|output| Ended { output, payloads, open }))
    }

    /// When the open block of a set was back, in computed card time.
    pub(crate) fn known_at(&self, hold: Hold) -> f64 {
        self.held_work(hold).map_or(0.0, |work| work.known_at)
    }

    /// The entry areas of a set that is to be tried on another slot.
    pub(crate) fn areas_back(&mut self, hold: Hold) -> Buffer {
        let slot = self.held(hold);
        slot.map(|slot| std::mem::take(&mut self.slots[slot.0].areas)).unwrap_or_default()
    }

    /// Moves everything on by a slice of time.
    pub(crate) fn poll(&mut self) {
        if self.quarantine.is_some() {
            return;
        }
        if (0..self.units.len())
            .any(|u| self.card.read(u, register::IDENTITY) != register::IDENTITY_IS)
        {
            return self.give_up("the card is gone: its registers are no longer those of a unit");
        }
        let mut ended = Vec::new();
        self.card.poll(self.shape.pace, &mut ended);
        for completion in ended {
            self.complete(completion);
        }
        for unit in 0..self.units.len() {
            if !self.is_ready(unit) {
                return self.give_up("a unit of the card does not come out of its reset");
            }
            self.collect(unit);
        }
        self.dispatch();
        self.miss();
        self.look_at_clock();
    }

    /// Nothing is ever late on a card whose clock stands, so it is given up.
    fn look_at_clock(&mut self) {
        let now = self.card.now();
        let (before, polls) = self.clock;
        let waits = self.slots.iter().any(|slot| slot.work.as_ref().is_some_and(Work::waits));
        self.clock = if now == before && waits { (now, polls + 1) } else { (now, 0) };
        if self.clock.1 > STANDS_MAX {
            self.counters.hangs += 1;
            self.give_up("the card did not answer, and its clock stands");
        }
    }

    /// From now on the card gets no work; everything on it is lost.
    pub(crate) fn give_up(&mut self, why: &str) {
        if self.quarantine.is_none() {
            self.quarantine = Some(why.to_owned());
        }
        for no in 0..self.slots.len() {
            self.end(SlotNo(no), Err(Trouble::Quarantined));
        }
    }
}

/// A slot that a session believes to hold is not its any more. The set is merged anew.
#[cold]
fn gone() -> Error {
    Error::new(ErrorKind::Internal, "a slot of the card was taken from the set in it")
}
