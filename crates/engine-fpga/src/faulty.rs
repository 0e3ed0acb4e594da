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
    /// A unit that gets its command here writes a wrong figure in its status or in a record, rightly summed.
    Lie,
}

impl Kind {
    /// All of them.
    pub const ALL: [Kind; 9] = [
        Kind::Flip,
        Kind::Drop,
        Kind::Skip,
        Kind::Double,
        Kind::Delay,
        Kind::Hang,
        Kind::Die,
        Kind::Forge,
        Kind::Lie,
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
    says: Option<(u32, u32)>,
}

/// A command whose output is forged once it is done.
struct Forgery {
    unit: usize,
    no: u32,
    salt: u64,
    command: stream::Command,
    change: fn(&mut [u8], u64) -> bool,
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
            says: None,
        }
    }

    /// A register reads as this value, whatever is in it.
    #[must_use]
    pub fn saying(self, register: u32, value: u32) -> FaultyCard {
        FaultyCard { says: Some((register, value)), ..self }
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

    /// Changes what a finished command left, and makes every sum right again.
    fn forge(&mut self, forgery: &Forgery) {
        let mut slot = vec![0; forgery.command.out_bytes as usize];
        self.move_now(forgery.command.output, &mut slot, Direction::Fetch);
        (forgery.change)(&mut slot, forgery.salt);
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
            Some((kind @ (Kind::Forge | Kind::Lie), salt)) => {
                let word = ((at - register::COMMANDS) / 4) as usize;
                let words =
                    self.ring.get(unit).and_then(|ring| ring.get(word..)).unwrap_or_default();
                let command = stream::Command::read(words);
                let change = if kind == Kind::Lie { lie } else { forge };
                self.forgeries.push(Forgery { unit, no, salt, command, change });
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
    let at = record_at(slot, &status, no);
    let Some(mut record) = Record::read(&slot[at..]).filter(|r| r.bytes > 0) else { return false };
    let payload = record.at as usize..record.at as usize + record.bytes as usize;
    flip(&mut slot[payload.clone()], salt / blocks);
    let padded = payload.start..payload.start + stream::beats(payload.len());
    record.sum = F64::of(&slot[padded]);
    slot[at..at + RECORD].copy_from_slice(&record.to_bytes());
    sum_up(slot, &status)
}

/// Writes a wrong figure into the status or a record of an output slot, and makes the sums of it right. False if
/// there is none.
pub fn lie(slot: &mut [u8], salt: u64) -> bool {
    let Some(status_at) = slot.len().checked_sub(stream::STATUS) else { return false };
    let Ok(status) = Status::read(&slot[status_at..]) else { return false };
    let (choice, how) = (salt as usize / 64, salt >> 32);
    // Blocks and payload bytes, the sums, entries by way, cycles, stalls.
    let of_status = [24, 32, 40, 48, 56, 64, 72, 80, 88, 128, 136, 208, 208, 216, 224];
    let of_record = [4, 8, 12, 40, 44, 48, 52];
    let (at, bytes) = match salt % 3 {
        0 => {
            let no = choice / of_record.len() % (status.blocks as usize + 1);
            (record_at(slot, &status, no) + of_record[choice % of_record.len()], 4)
        }
        _ => (status_at + of_status[choice % of_status.len()], 8),
    };
    let mut word = [0; 8];
    word[..bytes].copy_from_slice(&slot[at..at + bytes]);
    let was = u64::from_le_bytes(word);
    let is = match how % 4 {
        0 => u64::MAX,
        1 => 0,
        2 => was.wrapping_add(1),
        _ => was ^ 1 << (how / 4 % (8 * bytes as u64)),
    };
    slot[at..at + bytes].copy_from_slice(&is.to_le_bytes()[..bytes]);
    let Ok(status) = Status::read(&slot[status_at..]) else { return false };
    sum_up(slot, &status)
}

/// Where a record lies, the open one behind all others.
fn record_at(slot: &[u8], status: &Status, no: usize) -> usize {
    match no == status.blocks as usize {
        true => slot.len() - ENDING,
        false => slot.len() - ENDING - RECORD * (no + 1),
    }
}

/// Writes the status with the sum of all records that it counts. False if those have no room.
fn sum_up(slot: &mut [u8], status: &Status) -> bool {
    let end = slot.len();
    let blocks = status.blocks as usize;
    if blocks > (end - ENDING) / RECORD {
        return false;
    }
    let mut sum = F64::default();
    (0..=blocks).for_each(|no| sum.add(&slot[record_at(slot, status, no)..][..RECORD]));
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
        if let Some((_, value)) = self.says.filter(|(register, _)| *register == at) {
            return value;
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
