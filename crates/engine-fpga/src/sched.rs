//! The scheduler of a card: slots, units, transfers, and the time that all of it would take.
//!
//! ```text
//!  free -> held -> loading -> [head] -> queued -> running -> status -> records, payloads -> ended -> free
//! ```
//!
//! Keeps: memory has a bound, whatever the jobs are: slots have fixed sizes, on the card and on the host, and each
//! buffer is counted (`memory`). A slot belongs to one set from staging to decoding. What a card does late,
//! twice or not at all ends in an error of that set: a completion that is not awaited is forgotten, one that does
//! not come is missed after ten times its time, and a card whose clock stands is given up. Card time is
//! computed from reservations in the order of offers and from cycles that units report, never measured.
//! Leaves to others: what is in the slots (`stage`, `returned`), and what follows from an error (`session`).

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use lithify_base::{Error, ErrorKind};
use lithify_env::sync::Arc;

use crate::card::{Card, Completion, Shape, Transfer};
use crate::memory::{Buffer, Held, HostBytes};
use crate::returned::{Output, Tail};
use crate::stage::{Head, Staged};
use crate::stream::{
    BEAT, Code, Command, ENDING, KEY_MAX, RESTARTS_MAX, RING, Record, STALLS, VALUE_END, VERSION,
    WAYS_MAX, beats, register,
};

mod time;
mod turns;

pub use time::Link;

use time::Timetable;
use turns::Turns;

/// Cycles that a set may take beyond ten times what is predicted, and a transfer beyond ten times its time.
const GRACE_CYCLES: u64 = 1_000_000;
/// Sets that hang before the card gets no more work.
const HANGS_MAX: u32 = 2;
/// Nanoseconds that a poll of a simulated card takes the thread that drives it: more than it does.
const POLL_NS: f64 = 10e6;
/// Polls in which the clock of a card may stand while something is under way: one that is simulated moves at each,
/// and on one that is real no two polls are in the same nanosecond.
const STANDS_MAX: u32 = 10_000;
/// Commands that a unit has at once: it goes on with the next one without the host.
const COMMANDS: usize = 2;

/// Sizes of a slot, on the card and of its buffers on the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SlotSize {
    /// Bytes of the input part.
    pub(crate) input: usize,
    /// Bytes of the output part.
    pub(crate) output: usize,
}

impl SlotSize {
    /// For sets of so many stored bytes.
    pub(crate) fn of(set_bytes: u64) -> SlotSize {
        let set = set_bytes as usize;
        SlotSize { input: beats(2 * set), output: beats(2 * set + set / 2 + (64 << 10)) }
    }
    /// Both parts.
    pub(crate) fn bytes(self) -> usize {
        self.input + self.output
    }
}

const _: () = assert!((64 << 10) % BEAT == 0 && COMMANDS < RING as usize);

/// Which slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct SlotNo(usize);

/// A slot while a session holds it: worth nothing once it is given back, though the slot has a next holder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hold {
    slot: SlotNo,
    no: u64,
}

/// Why a set has no output.
#[derive(Clone, Debug)]
pub(crate) enum Trouble {
    /// The unit's code for it.
    Code(Code),
    /// What came back is damaged, or the link is.
    Damaged(Error),
    /// Something did not come in time.
    Hung,
    /// The card gets no more work.
    Quarantined,
}

/// A set's output, its payloads checked.
#[derive(Debug)]
pub(crate) struct Ended {
    /// Status and records.
    pub(crate) output: Output,
    /// All payloads but the open one, as they lie in the slot.
    pub(crate) payloads: Buffer,
    /// The open payload, with its pad.
    pub(crate) open: Buffer,
}

/// What a transfer brings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cargo {
    Areas,
    Head,
    Ending,
    Records,
    Open,
    Payloads,
}

/// Where a set is.
#[derive(Debug)]
enum Stage {
    /// Its entry areas are on their way, or there.
    Loaded,
    /// Header and side way are on their way.
    Heading,
    /// It waits for a unit.
    Queued,
    /// A unit has its command.
    Running { unit: usize },
    /// The unit is done; the last records are on their way.
    Returning,
    /// Records, the open block and, behind them, the finished blocks are on their way.
    Fetching(Box<Tail>),
    /// Records and the open block are here: the carry is as good as known.
    Closing(Box<Output>),
    /// All is here, or lost.
    Ended,
}

/// One set on the card.
#[derive(Debug)]
struct Work {
    stage: Stage,
    tag: u64,
    /// Transfers under way, by their ids.
    under_way: BTreeMap<u64, Cargo>,
    /// Missed if nothing happens until then, in card time.
    deadline: u64,
    /// Cycles that it is expected to take.
    predicted: u64,
    in_bytes: usize,
    ending: Buffer,
    records: Buffer,
    open: Buffer,
    payloads: Buffer,
    ended: Option<Result<Output, Trouble>>,
    /// In computed card time: when its input is there, and when its open block is back.
    ready_at: f64,
    known_at: f64,
    /// When all of its output was.
    back_at: f64,
}

#[derive(Debug, Default)]
struct Slot {
    /// Where it is in the card's memory.
    at: u64,
    owner: Option<u64>,
    /// The number of that hold.
    hold: u64,
    work: Option<Work>,
    /// The host's buffer for entry areas, while no transfer has it.
    areas: Buffer,
    /// When it was given back, in computed card time.
    free_at: f64,
}

#[derive(Debug, Default)]
struct Unit {
    /// Commands written and commands known to be finished.
    written: u32,
    done: u32,
    /// Slots of those in between.
    running: VecDeque<SlotNo>,
    /// It is being reset, and has until then, in card time. It gets no command.
    resetting: Option<u64>,
}

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

/// The card and everything that is on it.
pub(crate) struct Sched {
    card: Box<dyn Card>,
    shape: Shape,
    size: SlotSize,
    slots: Vec<Slot>,
    units: Vec<Unit>,
    queue: VecDeque<SlotNo>,
    turns: Turns,
    /// What counts the buffers that the card has, by their transfers.
    away: BTreeMap<u64, Held>,
    host_bytes: Arc<HostBytes>,
    /// The card's clock at the last poll, and polls since it moved.
    clock: (u64, u32),
    next: u64,
    /// N and W of the units.
    built: (usize, usize),
    times: Timetable,
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
        first_tag: u64,
    ) -> Result<Sched, Error> {
        let shape = card.shape();
        let needed = slots.saturating_mul(size.bytes()) as u64;
        if shape.units == 0 || slots == 0 {
            return Err(Error::invalid("an FPGA engine needs at least one unit and one slot"));
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
            away: BTreeMap::new(),
            host_bytes: Arc::default(),
            clock: (0, 0),
            next: first_tag,
            built: (ways, width),
            times: Timetable::new(link, shape.units),
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
    pub(crate) fn host_bytes(&self) -> &Arc<HostBytes> {
        &self.host_bytes
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

    /// A free slot for a session, if it is its turn, with the buffer for its entry areas.
    pub(crate) fn acquire(&mut self, session: u64) -> Option<(Hold, Buffer)> {
        if self.quarantine.is_some() || !self.turns.ask(session, self.free_slots()) {
            return None;
        }
        let at = self.slots.iter().position(|s| s.owner.is_none() && s.work.is_none())?;
        let no = self.number();
        let slot = &mut self.slots[at];
        (slot.owner, slot.hold) = (Some(session), no);
        let mut areas = std::mem::take(&mut slot.areas);
        if !areas.is_counted() {
            areas = self.host_bytes.buffer(Vec::new());
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
        if let Some(owner) = s.owner.take() {
            self.turns.gave_back(owner);
        }
        self.queue.retain(|&queued| queued != slot);
        let Some(work) = &mut s.work else { return };
        s.free_at = s.free_at.max(work.back_at);
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

    /// Sends the entry areas of a staged set to its slot. False if that is not to be had, or a unit is at work
    /// on it.
    pub(crate) fn load(&mut self, hold: Hold, staged: &mut Staged) -> bool {
        let Some(slot) = self.held(hold) else { return false };
        let work = self.slots[slot.0].work.as_ref();
        if work.is_some_and(|work| matches!(work.stage, Stage::Running { .. })) {
            return false;
        }
        let predicted = self.predict(staged);
        let tag = self.number();
        let areas = std::mem::take(&mut staged.areas);
        let ready_at = self.times.send(staged.areas_len, self.slots[slot.0].free_at);
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
            ready_at,
            known_at: ready_at,
            back_at: ready_at,
        });
        self.send(slot, Cargo::Areas, staged.areas_at as u64, areas);
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
    pub(crate) fn start(&mut self, hold: Hold, head: Head, side_at: usize, known_at: f64) {
        let Some(slot) = self.held(hold) else { return };
        let loaded = |work: &Work| matches!(work.stage, Stage::Loaded);
        if !self.slots[slot.0].work.as_ref().is_some_and(loaded) {
            return;
        }
        let bytes = head.tables.len() + head.side.len();
        let ready = self.times.send(bytes, self.times.after_host(known_at));
        let Some(work) = &mut self.slots[slot.0].work else { return };
        work.ready_at = work.ready_at.max(ready);
        work.in_bytes = head.in_bytes;
        work.predicted += head.side.len() as u64;
        work.stage = Stage::Heading;
        if !head.side.is_empty() {
            let side = self.host_bytes.buffer(head.side);
            self.send(slot, Cargo::Head, side_at as u64, side);
        }
        let tables = self.host_bytes.buffer(head.tables);
        self.send(slot, Cargo::Head, 0, tables);
    }

    /// Sends a buffer to a place in the input part of a slot.
    fn send(&mut self, slot: SlotNo, cargo: Cargo, at: u64, buffer: Buffer) {
        let (buffer, held) = buffer.part();
        self.counters.bytes_to_card += buffer.len() as u64;
        let id = self.expect(slot, cargo, buffer.len(), held);
        let at = self.slots[slot.0].at + at;
        self.card.send(Transfer { id, at, buffer });
    }

    /// Fetches bytes from the output part of a slot.
    fn fetch(&mut self, slot: SlotNo, cargo: Cargo, at: usize, len: usize) {
        self.counters.bytes_from_card += len as u64;
        let held = self.host_bytes.hold(len);
        let id = self.expect(slot, cargo, len, held);
        let at = self.slots[slot.0].at + (self.size.input + at) as u64;
        self.card.fetch(Transfer { id, at, buffer: vec![0; len] });
    }

    /// A transfer is under way from now on, of a buffer that `held` counts.
    fn expect(&mut self, slot: SlotNo, cargo: Cargo, len: usize, held: Held) -> u64 {
        let id = self.number();
        self.away.insert(id, held);
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

    /// A transfer has ended.
    fn complete(&mut self, completion: Completion) {
        let Completion { id, buffer, arrived } = completion;
        let buffer = Buffer::back(buffer, self.away.remove(&id).unwrap_or_default());
        let awaits =
            |slot: &Slot| slot.work.as_ref().is_some_and(|w| w.under_way.contains_key(&id));
        let Some(no) = self.slots.iter().position(awaits) else {
            // Late, twice, or of a set that was given up.
            self.counters.stale += 1;
            return;
        };
        let deadline = self.deadline(0);
        let slot = &mut self.slots[no];
        let Some(work) = &mut slot.work else { return };
        let Some(cargo) = work.under_way.remove(&id) else { return };
        work.deadline = work.deadline.max(deadline);
        match cargo {
            Cargo::Areas => slot.areas = buffer,
            Cargo::Head => {}
            Cargo::Ending => work.ending = buffer,
            Cargo::Records => work.records = buffer,
            Cargo::Open => work.open = buffer,
            Cargo::Payloads => work.payloads = buffer,
        }
        if !arrived {
            let error = Error::new(ErrorKind::Io, "a transfer failed");
            return self.end(SlotNo(no), Err(Trouble::Damaged(error)));
        }
        let left = || work.under_way.values().all(|&cargo| cargo == Cargo::Payloads);
        if matches!(work.stage, Stage::Fetching(_)) && left() {
            self.close(SlotNo(no));
        }
        if self.slots[no].work.as_ref().is_some_and(|work| work.under_way.is_empty()) {
            self.arrived(SlotNo(no));
        }
    }

    /// All transfers of a set have ended.
    fn arrived(&mut self, slot: SlotNo) {
        let Some(work) = &mut self.slots[slot.0].work else { return };
        match &work.stage {
            Stage::Heading => {
                work.stage = Stage::Queued;
                self.queue.push_back(slot);
            }
            Stage::Returning => {
                let tail = Tail::read(work.ending.bytes(), work.tag, self.size.output);
                self.fetch_rest(slot, tail);
            }
            Stage::Closing(output) => {
                let checked = output.check(work.payloads.bytes()).map_err(Trouble::Damaged);
                let output = (**output).clone();
                self.end(slot, checked.map(|()| output));
            }
            Stage::Loaded
            | Stage::Queued
            | Stage::Running { .. }
            | Stage::Fetching(_)
            | Stage::Ended => {}
        }
    }

    /// Records and the open block are here.
    fn close(&mut self, slot: SlotNo) {
        let Some(work) = &mut self.slots[slot.0].work else { return };
        let Stage::Fetching(tail) = &work.stage else { return };
        let output = Output::read(tail, work.records.bytes(), work.ending.bytes());
        match output.and_then(|output| output.check_open(work.open.bytes()).map(|()| output)) {
            Ok(output) => {
                work.stage = Stage::Closing(Box::new(output));
            }
            Err(error) => self.end(slot, Err(Trouble::Damaged(error))),
        }
    }

    /// The open block of a set that is on its way back, and its record, once they are here.
    pub(crate) fn open_of(&self, hold: Hold) -> Option<(&Record, &[u8])> {
        let work = self.held_work(hold)?;
        let output = match (&work.stage, &work.ended) {
            (Stage::Closing(output), _) => output,
            (_, Some(Ok(output))) => output,
            _ => return None,
        };
        Some((&output.open, work.open.bytes().get(..output.open.bytes as usize)?))
    }

    /// The last records are here: fetches what else there is.
    fn fetch_rest(&mut self, slot: SlotNo, tail: Result<Tail, Error>) {
        let mut tail = match tail {
            Err(e) => return self.end(slot, Err(Trouble::Damaged(e))),
            Ok(tail) if tail.status.code != Code::Ok => {
                return self.end(slot, Err(Trouble::Code(tail.status.code)));
            }
            Ok(tail) => tail,
        };
        if let Some(work) = &self.slots[slot.0].work {
            // No sum covers this figure, and later than that the set would have been missed.
            let most = work.predicted.saturating_mul(10).saturating_add(GRACE_CYCLES);
            tail.status.cycles = tail.status.cycles.min(most);
        }
        let output = self.size.output;
        let (open_at, payloads) = (tail.open.at as usize, tail.status.payload_bytes as usize);
        let records = (tail.records_at(output), tail.records_len());
        let ready = self.slots[slot.0].work.as_ref().map_or(0.0, |work| work.ready_at);
        let ran = self.times.run(ready, tail.status.cycles as f64 * self.shape.cycle_ns);
        let known_at = self.times.receive(ENDING + records.1 + payloads - open_at, ran);
        let back_at = self.times.receive(open_at, known_at);
        if let Some(work) = &mut self.slots[slot.0].work {
            (work.known_at, work.back_at) = (known_at, back_at);
            work.stage = Stage::Fetching(Box::new(tail));
        }
        self.fetch(slot, Cargo::Open, open_at, payloads - open_at);
        self.fetch(slot, Cargo::Records, records.0, records.1);
        self.fetch(slot, Cargo::Payloads, 0, open_at);
    }

    /// A set is over.
    fn end(&mut self, slot: SlotNo, how: Result<Output, Trouble>) {
        self.queue.retain(|&queued| queued != slot);
        let s = &mut self.slots[slot.0];
        let Some(work) = &mut s.work else { return };
        if let Ok(output) = &how {
            self.counters.sets += 1;
            let cycles = &mut self.counters.cycles;
            *cycles = cycles.saturating_add(output.status.cycles);
            for (all, n) in self.counters.stalls.iter_mut().zip(output.status.stalls) {
                *all += u64::from(n);
            }
        }
        work.under_way.clear();
        work.stage = Stage::Ended;
        work.ended = Some(how);
        if s.owner.is_none() {
            s.work = None;
        }
    }

    /// Enables a unit whose reset is through: what is written before that is lost. False if it takes too long.
    fn is_ready(&mut self, unit: usize) -> bool {
        let Some(until) = self.units[unit].resetting else { return true };
        if self.card.read(unit, register::STATE) & register::IS_RESETTING != 0 {
            return self.card.now() <= until;
        }
        self.card.write(unit, register::CONTROL, register::ENABLE);
        self.units[unit].resetting = None;
        true
    }

    /// Looks which commands a unit has finished.
    fn collect(&mut self, unit: usize) {
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

    /// Gives commands to units that have room, first come first served.
    fn dispatch(&mut self) {
        while let Some(&slot) = self.queue.front() {
            let free = |u: &usize| {
                let unit = &self.units[*u];
                unit.resetting.is_none() && unit.running.len() < COMMANDS
            };
            let few =
                (0..self.units.len()).filter(free).min_by_key(|&u| self.units[u].running.len());
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
    fn miss(&mut self) {
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

impl Work {
    /// The card is to do something for it.
    fn waits(&self) -> bool {
        matches!(self.stage, Stage::Running { .. }) || !self.under_way.is_empty()
    }
}

/// A slot that a session believes to hold is not its any more. The set is merged anew.
#[cold]
fn gone() -> Error {
    Error::new(ErrorKind::Internal, "a slot of the card was taken from the set in it")
}

/// Looks at the units of a card and resets them; N of the smallest.
fn take_over(card: &mut dyn Card, units: usize) -> Result<usize, Error> {
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
