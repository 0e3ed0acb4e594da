//! A card around a card, with a plan of faults: to prove that nothing that a link, a memory or a unit does
//! changes a byte or fails a job.
//!
//! Keeps: what happens is a function of the plan and of the calls. *Events* are counted from 0: each buffer
//! handed to a queue, each command, and each completion.
//! Leaves to others: the work, which the inner card does.

use lithify_env::sync::Arc;
use lithify_env::sync::atomic::{AtomicU64, Ordering};

use crate::card::{Card, Completion, Shape, Transfer};
use crate::stream::{self, ENDING, F64, RECORD, Record, Status, register};

/// What goes wrong at an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// One bit of what is sent, fetched or commanded is flipped.
    Flip,
    /// It does not happen, and no completion comes.
    Drop,
    /// It is said to have happened and has not.
    Skip,
    /// It happens twice.
    Double,
    /// It takes a million cycles more.
    Delay,
    /// From now on nothing ends.
    Hang,
    /// From now on there is no card.
    Die,
    /// A unit that gets its command here changes a byte of a payload, and sums it as if that were right.
    Forge,
}

impl Kind {
    /// All of them.
    pub const ALL: [Kind; 8] = [
        Kind::Flip,
        Kind::Drop,
        Kind::Skip,
        Kind::Double,
        Kind::Delay,
        Kind::Hang,
        Kind::Die,
        Kind::Forge,
    ];
}

/// One fault: at which event, what, and where in what is touched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The event.
    pub at: u64,
    /// What.
    pub kind: Kind,
    /// Chooses the bit.
    pub salt: u64,
}

/// Cycles that a delayed completion takes more.
const DELAY: u64 = 1_000_000;

/// The card.
pub struct FaultyCard {
    inner: Box<dyn Card>,
    plan: Vec<Fault>,
    events: Arc<AtomicU64>,
    /// Buffers as they were, of transfers whose bytes were flipped on the way.
    originals: Vec<(u64, Vec<u8>)>,
    /// Bits to flip in what is fetched by these transfers.
    flips: Vec<(u64, u64)>,
    doubles: Vec<u64>,
    held: Vec<(u64, Completion)>,
    forgeries: Vec<Forgery>,
    ring: Vec<Vec<u32>>,
    hangs: bool,
    dead: bool,
}

/// A command whose output is forged once it is done.
struct Forgery {
    unit: usize,
    no: u32,
    salt: u64,
    command: stream::Command,
}

impl FaultyCard {
    /// `inner`, with these faults.
    pub fn new(inner: Box<dyn Card>, plan: Vec<Fault>) -> FaultyCard {
        let ring = vec![vec![0; 256]; inner.shape().units];
        FaultyCard {
            inner,
            plan,
            events: Arc::new(AtomicU64::new(0)),
            originals: Vec::new(),
            flips: Vec::new(),
            doubles: Vec::new(),
            held: Vec::new(),
            forgeries: Vec::new(),
            ring,
            hangs: false,
            dead: false,
        }
    }

    /// How many events there were; grows while the card is used.
    pub fn events(&self) -> Arc<AtomicU64> {
        self.events.clone()
    }

    /// What is planned for the event that happens now.
    fn event(&mut self) -> Option<Fault> {
        let now = self.events.fetch_add(1, Ordering::Relaxed);
        let fault = self.plan.iter().find(|fault| fault.at == now).copied()?;
        match fault.kind {
            Kind::Hang => self.hangs = true,
            Kind::Die => self.dead = true,
            _ => {}
        }
        Some(fault)
    }

    /// Changes a byte of what a finished command left, and makes every sum right again.
    fn forge(&mut self, forgery: &Forgery) {
        let mut slot = vec![0; forgery.command.out_bytes as usize];
        self.move_now(forgery.command.output, &mut slot, Direction::Fetch);
        forge(&mut slot, forgery.salt);
        self.move_now(forgery.command.output, &mut slot, Direction::Send);
    }

    /// Moves bytes between the inner card and here, at once; needs a card that completes at its next poll.
    fn move_now(&mut self, at: u64, bytes: &mut [u8], direction: Direction) {
        let transfer = Transfer { id: u64::MAX, at, buffer: bytes.to_vec() };
        match direction {
            Direction::Fetch => self.inner.fetch(transfer),
            Direction::Send => self.inner.send(transfer),
        }
        let mut ended = Vec::new();
        self.inner.poll(0, &mut ended);
        for completion in ended {
            if completion.id == u64::MAX {
                bytes.copy_from_slice(&completion.buffer);
            } else {
                self.held.push((0, completion));
            }
        }
    }

    fn queue(&mut self, mut transfer: Transfer, direction: Direction) {
        let fault = self.event();
        if self.hangs || self.dead {
            return;
        }
        match fault.map(|fault| (fault.kind, fault.salt)) {
            Some((Kind::Drop, _)) => return,
            Some((Kind::Skip, _)) => {
                let Transfer { id, buffer, .. } = transfer;
                return self.held.push((0, Completion { id, buffer, arrived: true }));
            }
            Some((Kind::Flip, salt)) if direction == Direction::Send => {
                self.originals.push((transfer.id, transfer.buffer.clone()));
                flip(&mut transfer.buffer, salt);
            }
            Some((Kind::Flip, salt)) => self.flips.push((transfer.id, salt)),
            Some((Kind::Double, _)) => self.doubles.push(transfer.id),
            _ => {}
        }
        match direction {
            Direction::Send => self.inner.send(transfer),
            Direction::Fetch => self.inner.fetch(transfer),
        }
    }

    /// A completion of the inner card.
    fn complete(&mut self, mut completion: Completion, ended: &mut Vec<Completion>) {
        let id = completion.id;
        if let Some(at) = self.originals.iter().position(|(of, _)| *of == id) {
            completion.buffer = self.originals.swap_remove(at).1;
        }
        if let Some(at) = self.flips.iter().position(|(of, _)| *of == id) {
            flip(&mut completion.buffer, self.flips.swap_remove(at).1);
        }
        if let Some(at) = self.doubles.iter().position(|of| *of == id) {
            self.doubles.swap_remove(at);
            let Completion { buffer, arrived, .. } = &completion;
            ended.push(Completion { id, buffer: buffer.clone(), arrived: *arrived });
        }
        match self.event().map(|fault| (fault.kind, fault.salt)) {
            Some((Kind::Drop, _)) => {}
            Some((Kind::Delay, _)) => {
                let until = self.inner.now() + (DELAY as f64 * self.shape().cycle_ns) as u64;
                self.held.push((until, completion));
            }
            Some((Kind::Skip, _)) => {
                completion.arrived = false;
                ended.push(completion);
            }
            Some((Kind::Flip, salt)) => {
                flip(&mut completion.buffer, salt);
                ended.push(completion);
            }
            Some((Kind::Double, _)) => {
                let Completion { id, buffer, arrived } = &completion;
                ended.push(Completion { id: *id, buffer: buffer.clone(), arrived: *arrived });
                ended.push(completion);
            }
            _ => ended.push(completion),
        }
    }

    fn doorbell(&mut self, unit: usize, value: u32) {
        let fault = self.event();
        let no = value.wrapping_sub(1);
        let at = stream::Command::register(no);
        match fault.map(|fault| (fault.kind, fault.salt)) {
            Some((Kind::Drop | Kind::Skip | Kind::Delay, _)) => return,
            Some((Kind::Flip, salt)) => {
                let word = at + 4 * (salt % 8) as u32;
                let before = self.inner.read(unit, word);
                self.inner.write(unit, word, before ^ 1 << (salt / 8 % 32));
            }
            Some((Kind::Double, _)) => {
                self.inner.write(unit, register::DOORBELL, value.wrapping_add(1));
                return;
            }
            Some((Kind::Forge, salt)) => {
                let word = ((at - register::COMMANDS) / 4) as usize;
                let words =
                    self.ring.get(unit).and_then(|ring| ring.get(word..)).unwrap_or_default();
                let command = stream::Command::read(words);
                self.forgeries.push(Forgery { unit, no, salt, command });
            }
            _ => {}
        }
        self.inner.write(unit, register::DOORBELL, value);
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    Send,
    Fetch,
}

fn flip(bytes: &mut [u8], salt: u64) {
    let bits = (8 * bytes.len() as u64).max(1);
    let bit = salt % bits;
    if let Some(byte) = bytes.get_mut((bit / 8) as usize) {
        *byte ^= 1 << (bit % 8);
    }
}

/// Flips a bit of some payload in an output slot and makes the sums of it right. False if there is none.
pub fn forge(slot: &mut [u8], salt: u64) -> bool {
    let end = slot.len();
    let Some(status) =
        end.checked_sub(stream::STATUS).and_then(|at| Status::read(&slot[at..]).ok())
    else {
        return false;
    };
    let blocks = u64::from(status.blocks) + 1;
    let no = (salt % blocks) as usize;
    let record_at = |no: usize| match no == status.blocks as usize {
        true => end - ENDING,
        false => end - ENDING - RECORD * (no + 1),
    };
    let at = record_at(no);
    let Some(mut record) = Record::read(&slot[at..]).filter(|r| r.bytes > 0) else { return false };
    let payload = record.at as usize..record.at as usize + record.bytes as usize;
    flip(&mut slot[payload.clone()], salt / blocks);
    let padded = payload.start..payload.start + stream::beats(payload.len());
    record.sum = F64::of(&slot[padded]);
    slot[at..at + RECORD].copy_from_slice(&record.to_bytes());
    let mut sum = F64::default();
    (0..blocks as usize).for_each(|no| sum.add(&slot[record_at(no)..][..RECORD]));
    slot[end - stream::STATUS..].copy_from_slice(&status.to_bytes(sum));
    true
}

impl Card for FaultyCard {
    fn shape(&self) -> Shape {
        self.inner.shape()
    }

    fn read(&mut self, unit: usize, at: u32) -> u32 {
        if self.dead {
            return register::NO_CARD;
        }
        let value = self.inner.read(unit, at);
        if at == register::DONE {
            let due = |f: &Forgery| f.unit == unit && value.wrapping_sub(f.no) as i32 > 0;
            while let Some(i) = self.forgeries.iter().position(due) {
                let forgery = self.forgeries.swap_remove(i);
                self.forge(&forgery);
            }
        }
        value
    }

    fn write(&mut self, unit: usize, at: u32, value: u32) {
        if let Some(word) = at.checked_sub(register::COMMANDS)
            && let Some(word) = self.ring.get_mut(unit).and_then(|r| r.get_mut(word as usize / 4))
        {
            *word = value;
        }
        match at {
            register::DOORBELL => self.doorbell(unit, value),
            _ if self.dead => {}
            _ => self.inner.write(unit, at, value),
        }
    }

    fn send(&mut self, transfer: Transfer) {
        self.queue(transfer, Direction::Send);
    }

    fn fetch(&mut self, transfer: Transfer) {
        self.queue(transfer, Direction::Fetch);
    }

    fn poll(&mut self, cycles: u64, ended: &mut Vec<Completion>) {
        let mut inner = Vec::new();
        self.inner.poll(cycles, &mut inner);
        if self.hangs || self.dead {
            return;
        }
        let now = self.inner.now();
        let (due, held) =
            std::mem::take(&mut self.held).into_iter().partition(|(at, _)| *at <= now);
        self.held = held;
        ended.extend(Vec::into_iter(due).map(|(_, completion)| completion));
        for completion in inner {
            self.complete(completion, ended);
        }
    }

    fn now(&self) -> u64 {
        self.inner.now()
    }
}
