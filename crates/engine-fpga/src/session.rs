//! A session: the sets of one part, on units of the card where they suit it, else on the merge kernel.
//!
//! ```text
//!  offered -> staged, loading -> started (the carry is known) -> ended -> decoded -> handed out
//!                 |                                    once more on another slot |
//!                 +--- not suitable ---> kernel, from the last carry <-----------+ twice
//! ```
//!
//! Keeps: one carry, that of `Offload`, whichever of the two merged the last set; and what a unit made is decoded
//! whole before it counts. A fault of the card costs time only: its set is merged by the kernel, from the carry
//! before it. After two sets in a row that do not suit a unit the part stays on the kernel.
//! Leaves to others: what happens on the card (`sched`), and the host's own proofs.

use std::collections::VecDeque;
use std::time::Duration;

use lithify_base::{Error, ErrorKind, Result};
use lithify_engine::memory::{EngineMemory, LentMemory};
use lithify_engine::{Fault, Offer, Progress, Session};
use lithify_env::sync::Arc;
use lithify_merge::ledger::Rule;
use lithify_merge::offload::{Drops, Made};
use lithify_merge::prove::{self, Claim};
use lithify_merge::{BlockSet, Carry, Item, Kernel, Lent, Offload, Products, Recipe, Work};

use crate::returned::{Output, check_keys};
use crate::sched::{Ended, Hold, Trouble};
use crate::stage::{OnCpu, Staged, Standing, stage};
use crate::stream::Code;
use crate::{Chore, Shared};

/// Sets that do not suit a unit, in a row, after which the part stays on the kernel.
const NOT_SUITED_MAX: u32 = 2;
/// Polls that a set waits for a slot before the kernel takes it.
const SLOT_PATIENCE: u32 = 10_000;
/// Nanoseconds that a byte takes the host, at most: to stage and to decode it, or to merge it.
const HOST_NS: u64 = 20;
/// Input bytes that the kernel merges in a poll.
const SLICE_BYTES: u64 = 1 << 20;

/// The sets of one part.
pub(crate) struct FpgaSession {
    shared: Arc<Shared>,
    recipe: Arc<Recipe>,
    /// Its number at the scheduler.
    no: u64,
    machine: Machine,
    waiting: VecDeque<BlockSet>,
    flights: VecDeque<Flight>,
    not_suited: u32,
    /// A unit's output was wrong: each further set is proven.
    proving: bool,
    host_bytes: Arc<EngineMemory>,
    /// When the last carry was known, in computed card time.
    known_at: f64,
    sealed: bool,
    over: bool,
}

/// What goes on from the last carry.
enum Machine {
    /// Units, with the host's half here.
    Units(Box<Offload>),
    /// The kernel at work on one set.
    Kernel(Box<Kernel>),
    /// The kernel, to the end of the part.
    Settled(Box<Kernel>),
    /// Taken out while it is exchanged, and after an error.
    None,
}

/// A set between the host and the card.
struct Flight {
    set: BlockSet,
    at: Stage,
    /// It was tried before.
    again: bool,
    /// What it was started on is what the set before it left.
    confirmed: bool,
    /// What it leaves to the set behind it, by its open block, and when that was known; looked at once.
    leaves: Option<Option<(Standing, f64)>>,
}

enum Stage {
    /// It waits for a slot, for so many polls so far.
    Grounded(u32),
    /// Its areas are in a slot, or on their way.
    Loaded(Hold, Box<Staged>),
    /// It was started.
    Started(Hold, Box<Staged>, Standing),
    /// The kernel has to merge it.
    Refused(OnCpu),
}

impl FpgaSession {
    /// A session that goes on from `carry`, or begins.
    pub(crate) fn new(
        shared: Arc<Shared>,
        recipe: Arc<Recipe>,
        carry: Option<Carry>,
    ) -> Result<FpgaSession> {
        let offload = Offload::begin(recipe.clone(), carry)?;
        let mut sched = shared.sched.lock();
        let (no, host_bytes) = (sched.enter(), sched.host_bytes().clone());
        drop(sched);
        Ok(FpgaSession {
            host_bytes,
            shared,
            recipe,
            no,
            machine: Machine::Units(Box::new(offload)),
            waiting: VecDeque::new(),
            flights: VecDeque::new(),
            not_suited: 0,
            proving: false,
            known_at: 0.0,
            sealed: false,
            over: false,
        })
    }

    fn advance(&mut self, out: &mut Products) -> Result<Progress> {
        if self.over {
            return Err(Error::new(ErrorKind::InvalidArgument, "this session is over"));
        }
        if matches!(self.machine, Machine::Settled(_)) {
            return self.advance_settled(out);
        }
        if matches!(self.machine, Machine::Kernel(_)) {
            self.work(out)?;
            return Ok(Progress::More);
        }
        self.take_off();
        if self.flights.is_empty() {
            if !self.sealed {
                return Ok(Progress::Starved);
            }
            self.over = true;
            let Machine::Units(offload) = &mut self.machine else { return Err(lost()) };
            return Ok(Progress::Done(Box::new(offload.finish(out)?)));
        }
        self.fly(out)?;
        Ok(Progress::More)
    }

    /// All further sets are the kernel's.
    fn advance_settled(&mut self, out: &mut Products) -> Result<Progress> {
        let Machine::Settled(kernel) = &mut self.machine else { return Err(lost()) };
        match kernel.work(SLICE_BYTES)? {
            Work::More => return Ok(Progress::More),
            Work::SetDone => {
                kernel.drain(out);
                return Ok(Progress::More);
            }
            Work::Idle => {}
        }
        if let Some(set) = self.waiting.pop_front() {
            self.shared.count(Some(OnCpu::Settled), &set);
            kernel.begin(set)?;
            return Ok(Progress::More);
        }
        if !self.sealed {
            return Ok(Progress::Starved);
        }
        self.over = true;
        let ledger = kernel.finish()?;
        kernel.drain(out);
        Ok(Progress::Done(Box::new(ledger)))
    }

    /// The kernel's work on the set that no unit merged.
    fn work(&mut self, out: &mut Products) -> Result<()> {
        let Machine::Kernel(kernel) = &mut self.machine else { return Err(lost()) };
        if kernel.work(SLICE_BYTES)? != Work::SetDone {
            return Ok(());
        }
        kernel.drain(out);
        let Some(Item::SetDone(done)) = out.items().last() else { return Err(lost()) };
        let carry = (*done.carry).clone();
        if self.not_suited >= NOT_SUITED_MAX || self.shared.sched.lock().quarantine().is_some() {
            self.leave_card();
            let Machine::Kernel(kernel) = std::mem::replace(&mut self.machine, Machine::None)
            else {
                return Err(lost());
            };
            self.machine = Machine::Settled(kernel);
            return Ok(());
        }
        let offload = Offload::resume(self.recipe.clone(), carry)?;
        self.machine = Machine::Units(Box::new(offload));
        Ok(())
    }

    /// Sets under way go back to those that wait, and this session needs no slot any more.
    fn leave_card(&mut self) {
        for flight in std::mem::take(&mut self.flights).into_iter().rev() {
            self.waiting.push_front(flight.set);
        }
        self.shared.sched.lock().leave(self.no);
    }

    /// Stages sets that wait, as many as there may be under way.
    fn take_off(&mut self) {
        while self.flights.len() < self.shared.options.in_flight
            && let Some(set) = self.waiting.pop_front()
        {
            self.flights.push_back(Flight {
                set,
                at: Stage::Grounded(0),
                again: false,
                confirmed: false,
                leaves: None,
            });
        }
        for i in 0..self.flights.len() {
            if matches!(self.flights[i].at, Stage::Grounded(_)) {
                self.stage(i);
                // Staging is the work of this poll.
                return;
            }
        }
    }

    /// Sets behind the first one give their slots back: they wait for it, and it for a slot or for the CPU.
    fn ground_later(&mut self) {
        for flight in self.flights.iter_mut().skip(1) {
            if let Stage::Loaded(slot, _) | Stage::Started(slot, ..) = &flight.at {
                self.shared.sched.lock().release(*slot);
                flight.at = Stage::Grounded(0);
                flight.leaves = None;
            }
        }
    }

    fn stage(&mut self, i: usize) {
        let Machine::Units(offload) = &self.machine else { return };
        let flight = &mut self.flights[i];
        let mut sched = self.shared.sched.lock();
        if sched.quarantine().is_some() {
            flight.at = Stage::Refused(OnCpu::Quarantine);
            return;
        }
        let Some((slot, buffer)) = sched.acquire(self.no) else {
            drop(sched);
            let Stage::Grounded(polls) = &mut flight.at else { return };
            *polls += 1;
            if *polls > SLOT_PATIENCE {
                flight.at = Stage::Refused(OnCpu::Busy);
            } else if i == 0 {
                self.ground_later();
            }
            return;
        };
        let (ways, size) = (sched.ways(), sched.size());
        // Other sessions go on meanwhile.
        drop(sched);
        let staged = self.shared.during(Chore::Staging, || {
            stage(&self.recipe, offload.tables(), &flight.set, ways, size.input, buffer)
        });
        match &staged {
            Ok(staged) => {
                let (stored, plain) = (flight.set.bytes(), staged.bytes());
                self.shared.note_room(|room| room.input.note(stored, Some(plain)));
            }
            Err((OnCpu::Large, _)) => {
                let stored = flight.set.bytes();
                self.shared.note_room(|room| room.input.note(stored, None));
            }
            Err(_) => {}
        }
        let mut sched = self.shared.sched.lock();
        flight.at = match staged {
            Ok(mut staged) => match sched.load(slot, &mut staged) {
                true => Stage::Loaded(slot, Box::new(staged)),
                false => {
                    sched.release(slot);
                    Stage::Refused(OnCpu::Damaged)
                }
            },
            Err((why, buffer)) => {
                sched.give_back(slot, buffer);
                Stage::Refused(why)
            }
        };
    }

    /// Moves the card on, and the first set under way with it.
    fn fly(&mut self, out: &mut Products) -> Result<()> {
        self.confirm();
        self.start_first();
        self.shared.sched.lock().poll();
        self.start_second();
        let mut sched = self.shared.sched.lock();
        let Some(flight) = self.flights.front_mut() else { return Ok(()) };
        let ended = match &flight.at {
            Stage::Started(slot, ..) => {
                let ended = sched.take(*slot);
                if ended.is_some() {
                    self.known_at = sched.known_at(*slot);
                }
                ended
            }
            Stage::Refused(why) => {
                let why = *why;
                drop(sched);
                return self.give_to_kernel(why);
            }
            Stage::Grounded(_) | Stage::Loaded(..) => None,
        };
        drop(sched);
        match ended {
            None => Ok(()),
            Some(Ok(ended)) => self.decode(&ended, out),
            Some(Err(trouble)) => self.fail(&trouble),
        }
    }

    /// A set that was started on what the open block before it promised counts only if the carry is that.
    fn confirm(&mut self) {
        let Machine::Units(offload) = &self.machine else { return };
        let flight = self.flights.front_mut().filter(|flight| !flight.confirmed);
        let Some(flight) = flight else { return };
        let Stage::Started(slot, _, standing) = &flight.at else { return };
        if *standing == Standing::of(&offload.open(), &self.recipe) {
            flight.confirmed = true;
            return;
        }
        self.shared.sched.lock().release(*slot);
        self.shared.mispredicted();
        flight.at = Stage::Grounded(0);
    }

    /// Starts the first set, whose carry is known.
    fn start_first(&mut self) {
        let Machine::Units(offload) = &self.machine else { return };
        let Some(flight) = self.flights.front_mut() else { return };
        if matches!(flight.at, Stage::Loaded(..)) {
            let standing = Standing::of(&offload.open(), &self.recipe);
            flight.start(&self.shared, &self.recipe, offload, standing, self.known_at);
            flight.confirmed = true;
        }
    }

    /// Starts the second set once the open block of the first one is here, while the rest comes back and is
    /// decoded.
    fn start_second(&mut self) {
        let Machine::Units(offload) = &self.machine else { return };
        let mut flights = self.flights.iter_mut();
        let (Some(first), Some(second)) = (flights.next(), flights.next()) else { return };
        let (Stage::Started(slot, _, before), true) = (&first.at, first.confirmed) else { return };
        if !matches!(second.at, Stage::Loaded(..)) {
            return;
        }
        if first.leaves.is_none() {
            let sched = self.shared.sched.lock();
            let Some((record, open)) = sched.open_of(*slot) else { return };
            // Other sessions go on while it is parsed.
            let (record, open, known_at) = (*record, open.to_vec(), sched.known_at(*slot));
            drop(sched);
            let after = Standing::after(before, &record, &open, &self.recipe);
            first.leaves = Some(after.map(|standing| (standing, known_at)));
        }
        if let Some((standing, known_at)) = first.leaves.clone().flatten() {
            second.start(&self.shared, &self.recipe, offload, standing, known_at);
        }
    }

    /// The first set came back without a visible fault.
    fn decode(&mut self, ended: &Ended, out: &mut Products) -> Result<()> {
        let Machine::Units(offload) = &mut self.machine else { return Err(lost()) };
        let Some(flight) = self.flights.front() else { return Err(lost()) };
        let Stage::Started(slot, staged, standing) = &flight.at else { return Err(lost()) };
        let slot = *slot;
        let Ok((payloads, open)) = parts(ended) else { return self.again(OnCpu::Damaged) };
        let drops = drops(&ended.output);
        let before = self.proving.then(|| offload.carry().clone());
        // What it is decoded to lies beside what came back.
        let mut held = self.host_bytes.hold(ended.payloads.bytes().len() + open.len());
        let made = self.shared.during(Chore::Decoding, || {
            ended.output.check_counts(&self.recipe, &staged.entries, staged.bytes_in)?;
            let made = Made::decode(offload, flight.set.no, &payloads, open, drops)?;
            check_keys(&flight.set.keys, &standing.replay, &payloads, open)?;
            held.set(made.arena.bytes().len());
            let arena: Box<dyn Lent> = Box::new(LentMemory::new(made.arena, held));
            offload.set_done(Made { arena, ..made }, out)
        });
        let done = made.and_then(|()| {
            let Some(before) = &before else { return Ok(()) };
            prove::set(&self.recipe, Some(before), flight.set.clone(), &[Claim::from(&*out)])
        });
        if let Err(error) = done {
            out.clear();
            self.shared.note(&error);
            self.shared.sched.lock().release(slot);
            return self.disprove(before);
        }
        self.shared.sched.lock().release(slot);
        if let Some(flight) = self.flights.pop_front() {
            self.shared.count(None, &flight.set);
            let (stored, bytes) = (flight.set.bytes(), ended.output.bytes());
            self.shared.note_room(|room| room.output.note(stored, Some(bytes)));
        }
        self.not_suited = 0;
        Ok(())
    }

    /// What a unit made of the first set is wrong; `before` is the carry before it if it looked right, and
    /// was merged again. From now on every set is.
    fn disprove(&mut self, before: Option<Carry>) -> Result<()> {
        if let Some(before) = before {
            let why = "what a unit made was wrong, and not for the first time";
            self.shared.sched.lock().give_up(why);
            let offload = Offload::resume(self.recipe.clone(), before)?;
            self.machine = Machine::Units(Box::new(offload));
        }
        self.proving = true;
        self.give_to_kernel(OnCpu::Wrong)
    }

    /// The first set has no output.
    fn fail(&mut self, trouble: &Trouble) -> Result<()> {
        match trouble {
            Trouble::Code(code @ (Code::Link | Code::Header | Code::Aborted)) => {
                self.shared.note_code(*code);
                self.again(OnCpu::Damaged)
            }
            Trouble::Code(code) => {
                self.shared.note_code(*code);
                if let (Code::OutFull, Some(flight)) = (code, self.flights.front()) {
                    let stored = flight.set.bytes();
                    self.shared.note_room(|room| room.output.note(stored, None));
                }
                self.fall_back(OnCpu::Code)
            }
            Trouble::Damaged(error) => {
                self.shared.note(error);
                self.again(OnCpu::Damaged)
            }
            Trouble::Hung => self.fall_back(OnCpu::Hung),
            Trouble::Quarantined => self.fall_back(OnCpu::Quarantine),
        }
    }

    /// The first set is tried once more on another slot; if there is none, or it was tried before, the
    /// kernel has it.
    fn again(&mut self, why: OnCpu) -> Result<()> {
        let Some(flight) = self.flights.front_mut() else { return Err(lost()) };
        if flight.again {
            return self.fall_back(why);
        }
        let Stage::Started(old, mut staged, _) =
            std::mem::replace(&mut flight.at, Stage::Refused(why))
        else {
            return self.fall_back(why);
        };
        let mut sched = self.shared.sched.lock();
        let other = sched.acquire(self.no);
        let areas = sched.areas_back(old);
        if areas.bytes().len() == staged.areas_len {
            staged.areas = areas;
            let slot = match other {
                Some((slot, buffer)) => {
                    sched.give_back(old, buffer);
                    slot
                }
                // The only one: nothing runs on it any more.
                None => old,
            };
            if sched.load(slot, &mut staged) {
                (flight.at, flight.again) = (Stage::Loaded(slot, staged), true);
                flight.leaves = None;
                self.shared.retried();
                return Ok(());
            }
            sched.release(slot);
            drop(sched);
            return self.give_to_kernel(why);
        }
        if let Some((slot, buffer)) = other {
            sched.give_back(slot, buffer);
        }
        sched.release(old);
        drop(sched);
        self.give_to_kernel(why)
    }

    /// Gives the first set's slot back, and the set to the kernel.
    fn fall_back(&mut self, why: OnCpu) -> Result<()> {
        if let Some(flight) = self.flights.front()
            && let Stage::Loaded(slot, _) | Stage::Started(slot, ..) = &flight.at
        {
            self.shared.sched.lock().release(*slot);
        }
        self.give_to_kernel(why)
    }

    /// The kernel merges the first set, from the last carry.
    fn give_to_kernel(&mut self, why: OnCpu) -> Result<()> {
        // Others go on while the CPU works on this one.
        if self.shared.sched.lock().others_wait(self.no) {
            self.ground_later();
        }
        let Some(flight) = self.flights.pop_front() else { return Err(lost()) };
        let Machine::Units(offload) = &self.machine else { return Err(lost()) };
        self.shared.count(Some(why), &flight.set);
        self.not_suited += u32::from(why.is_of_input());
        let mut kernel = Kernel::resume(self.recipe.clone(), offload.carry().clone())?;
        kernel.begin(flight.set)?;
        self.machine = Machine::Kernel(Box::new(kernel));
        Ok(())
    }
}

impl Flight {
    /// Sends what depends on the carry, which is `standing`.
    fn start(
        &mut self,
        shared: &Shared,
        recipe: &Recipe,
        offload: &Offload,
        standing: Standing,
        known_at: f64,
    ) {
        let nowhere = Stage::Refused(OnCpu::Wrong);
        let Stage::Loaded(slot, staged) = std::mem::replace(&mut self.at, nowhere) else { return };
        let mut sched = shared.sched.lock();
        let (tag, size) = (sched.tag(slot), sched.size());
        let slot_bytes = (size.input, size.output);
        self.at = match staged.head(recipe, offload.tables(), &standing, tag, slot_bytes) {
            Ok(head) => {
                sched.start(slot, head, known_at);
                Stage::Started(slot, staged, standing)
            }
            Err(why) => {
                sched.release(slot);
                Stage::Refused(why)
            }
        };
    }
}

/// The payloads of a set that came back.
fn parts(ended: &Ended) -> Result<(Vec<&[u8]>, &[u8])> {
    let Ended { output, payloads, open } = ended;
    let finished = output.blocks.iter().map(|record| Output::placed(record, payloads.bytes()));
    let open = open.bytes().get(..output.open.bytes as usize);
    Ok((finished.collect::<Result<_>>()?, open.ok_or_else(lost)?))
}

/// What a unit says became of the entries.
fn drops(output: &Output) -> Drops {
    let s = &output.status;
    let mut drops = Drops {
        entries_in: s.entries_in.iter().map(|&n| u64::from(n)).sum(),
        bytes_in: s.bytes_in,
        sum_in: s.sum_in,
        sum_dropped: s.sum_dropped,
        zeroed: s.zeroed,
        sum_zeroed: s.sum_zeroed,
        ..Drops::default()
    };
    drops.dropped[Rule::Hidden as usize] = s.hidden;
    drops.dropped[Rule::Elided as usize] = s.elided;
    drops
}

/// Our bug, which costs this session and no more.
#[cold]
fn lost() -> Error {
    Error::new(ErrorKind::Internal, "a session of the FPGA engine lost its way")
}

impl Session for FpgaSession {
    fn offer(&mut self, set: BlockSet) -> Offer {
        let held = self.waiting.len() + self.flights.len();
        if held > self.shared.options.in_flight || self.sealed {
            return Offer::Full(set);
        }
        self.shared.sched.lock().control.offered(set.bytes());
        self.waiting.push_back(set);
        Offer::Taken
    }
    fn seal(&mut self) {
        self.sealed = true;
    }
    fn poll(&mut self, out: &mut Products) -> Progress {
        out.clear();
        let advanced = self.advance(out);
        self.over |= advanced.is_err();
        // The CPU finds the true error, or none.
        Progress::or_fault(advanced.map_err(Fault::Engine), out)
    }
    fn cancel(self: Box<Self>) {}
    fn predicted(&self) -> Option<Duration> {
        let all = self.flights.iter().map(|flight| &flight.set).chain(&self.waiting);
        let bytes: u64 = all.map(BlockSet::bytes).sum();
        let by_host = Duration::from_nanos(bytes.saturating_mul(HOST_NS));
        match &self.machine {
            // Blocks are sent as they are without a codec.
            Machine::Units(_) => Some(by_host + self.shared.sched.lock().predicted(2 * bytes)),
            Machine::Kernel(_) | Machine::Settled(_) | Machine::None => Some(by_host),
        }
    }
}

impl Drop for FpgaSession {
    fn drop(&mut self) {
        self.shared.sched.lock().leave(self.no);
    }
}
