//! A device whose copies and kernels take the time that given rates say, on a clock from outside.
//!
//! Keeps: the work itself is done at once, by the device beneath; what is paced is when its events are ready and its
//! arenas are the host's again. There is one link up, one link down, and kernels run one after the other; what
//! is asked of them is done in the first gap in which its queue is through with what came before. Small copies up
//! travel with the commands, as drivers send them, and wait for no link. Nothing here is a measurement
//! of a GPU: rates are assumptions.
//! Leaves to others: the work.

use std::collections::BTreeMap;
use std::ops::Range;

use lithify_base::{Error, ErrorKind, Result};
use lithify_env::sync::{Arc, Mutex};
use lithify_merge::{Bytes, Lent};

use crate::device::{Arena, Device, Event, Kernel, Memory, Queue, Shape};

/// How fast the stages of a device are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rates {
    /// Bytes a nanosecond of each link: up, and down.
    pub up: f64,
    /// The same.
    pub down: f64,
    /// Bytes of input a nanosecond that all kernels of a set take together.
    pub kernels: f64,
    /// Nanoseconds that each copy and each kernel takes besides.
    pub call_ns: f64,
    /// Most bytes of a copy up that travels with the commands: 64 KiB, for sets that are not scaled down.
    pub with_commands: usize,
}

/// What was asked of a device so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Usage {
    /// Nanoseconds in which the link up, the kernels and the link down were at work.
    pub busy_ns: [f64; 3],
    /// Arenas that were given back while a copy was under way.
    pub early: u64,
    /// Bytes of device memory now, and at most.
    pub memory: [u64; 2],
}

/// Kernels that not all sets have.
const SELDOM: [Kernel; 6] =
    [Kernel::Decode, Kernel::Count, Kernel::Encode, Kernel::Places, Kernel::Gather, Kernel::Check];
/// Nanoseconds of the kernels of a set of 128 MiB, as the design predicts them: their shares count here.
const SHARES: [f64; Kernel::ALL.len()] = [
    60.0, 90.0, 85.0, 15.0, 10.0, 10.0, 70.0, 25.0, 25.0, 15.0, 5.0, 25.0, 10.0, 180.0, 300.0, 5.0,
    20.0, 30.0, 100.0,
];

/// Events of which it is known when they were ready.
const PAST: usize = 1024;

/// The paced device.
pub struct Paced<D> {
    device: D,
    rates: Rates,
    now: Box<dyn Fn() -> u64 + Send>,
    /// When each queue is through.
    queues: BTreeMap<Queue, f64>,
    /// When link up, kernels and link down are at work, from now on.
    work: [Vec<(f64, f64)>; 3],
    /// Of those that were recorded, so many, those that are not ready.
    recorded: u64,
    events: Vec<(Event, f64)>,
    /// The last of them, by number, with when they are ready.
    past: BTreeMap<u64, f64>,
    /// When the last copy from or to each arena ends.
    arenas: BTreeMap<u64, f64>,
    usage: Arc<Mutex<Usage>>,
}

impl<D: Device> Paced<D> {
    /// `device`, paced by `rates` on the clock `now`, in nanoseconds.
    pub fn new(device: D, rates: Rates, now: Box<dyn Fn() -> u64 + Send>) -> Paced<D> {
        let (queues, work) = (BTreeMap::new(), Default::default());
        let (past, arenas) = (BTreeMap::new(), BTreeMap::new());
        let (events, usage) = (Vec::new(), Arc::default());
        Paced { device, rates, now, queues, work, recorded: 0, events, past, arenas, usage }
    }

    /// What is asked of it.
    pub fn usage(&self) -> Arc<Mutex<Usage>> {
        self.usage.clone()
    }

    fn now(&self) -> f64 {
        (self.now)() as f64
    }

    /// Reserves a stage for what is asked of a queue; says when that is done.
    fn reserve(&mut self, queue: Queue, stage: usize, ns: f64) -> f64 {
        let (now, ns) = (self.now(), ns + self.rates.call_ns);
        let through = self.queues.entry(queue).or_insert(now);
        let work = &mut self.work[stage];
        work.retain(|(_, end)| *end > now);
        let mut start = through.max(now);
        let mut at = 0;
        for (i, (from, to)) in work.iter().enumerate() {
            if start + ns <= *from {
                break;
            }
            start = start.max(*to);
            at = i + 1;
        }
        work.insert(at, (start, start + ns));
        *through = start + ns;
        self.usage.lock().busy_ns[stage] += ns;
        *through
    }

    /// What needs no stage, only a call.
    fn pass(&mut self, queue: Queue) -> f64 {
        let now = self.now();
        let through = self.queues.entry(queue).or_insert(now);
        *through = through.max(now) + self.rates.call_ns;
        *through
    }

    fn goes_up(&mut self, queue: Queue, bytes: usize) -> f64 {
        match bytes <= self.rates.with_commands {
            true => self.pass(queue),
            false => self.reserve(queue, 0, bytes as f64 / self.rates.up),
        }
    }

    fn copied(&mut self, arena: &Arena, end: f64) {
        let last = self.arenas.entry(arena.0).or_insert(end);
        *last = last.max(end);
    }

    fn in_flight(&self, arena: &Arena) -> bool {
        self.arenas.get(&arena.0).is_some_and(|end| *end > self.now())
    }
}

fn in_flight() -> Error {
    Error::new(ErrorKind::Internal, "a copy from or to this arena is under way")
}

impl<D: Device> Device for Paced<D> {
    fn name(&self) -> String {
        format!("{}, paced", self.device.name())
    }
    fn shape(&self) -> Shape {
        self.device.shape()
    }
    fn alloc(&mut self, bytes: u64) -> Result<Memory> {
        let memory = self.device.alloc(bytes)?;
        let mut usage = self.usage.lock();
        usage.memory[0] += memory.bytes;
        usage.memory[1] = usage.memory[1].max(usage.memory[0]);
        Ok(memory)
    }
    fn free(&mut self, memory: Memory) {
        self.usage.lock().memory[0] -= memory.bytes;
        self.device.free(memory);
    }
    fn arena(&mut self, bytes: usize) -> Result<Arena> {
        self.device.arena(bytes)
    }
    fn takes(&self, arena: &Arena, asked: usize) -> usize {
        self.device.takes(arena, asked)
    }
    fn bytes(&mut self, arena: &Arena) -> Result<&mut [u8]> {
        if self.in_flight(arena) {
            return Err(in_flight());
        }
        self.device.bytes(arena)
    }
    fn drop_arena(&mut self, arena: Arena) {
        self.usage.lock().early += u64::from(self.in_flight(&arena));
        self.arenas.remove(&arena.0);
        self.device.drop_arena(arena);
    }
    fn lend(&mut self, arena: Arena) -> Result<Box<dyn Lent>> {
        if self.in_flight(&arena) {
            return Err(in_flight());
        }
        self.arenas.remove(&arena.0);
        self.device.lend(arena)
    }
    fn upload(&mut self, queue: Queue, from: &Arena, part: Range<usize>, to: u64) -> Result<()> {
        let end = self.goes_up(queue, part.len());
        self.copied(from, end);
        self.device.upload(queue, from, part, to)
    }
    fn send(&mut self, queue: Queue, from: Bytes, to: u64) -> Result<()> {
        self.goes_up(queue, from.len());
        self.device.send(queue, from, to)
    }
    fn download(&mut self, queue: Queue, from: u64, to: &Arena, part: Range<usize>) -> Result<()> {
        let end = self.reserve(queue, 2, part.len() as f64 / self.rates.down);
        self.copied(to, end);
        self.device.download(queue, from, to, part)
    }
    fn launch(&mut self, queue: Queue, kernel: Kernel, ctas: u32, params: &[u64]) -> Result<()> {
        // The blocks lie first, their table behind them.
        let input = match params {
            [input, blocks, ..] => blocks.saturating_sub(*input) as f64,
            _ => 0.0,
        };
        let usual = Kernel::ALL.iter().filter(|kernel| !SELDOM.contains(kernel));
        let all: f64 = usual.map(|kernel| SHARES[*kernel as usize]).sum();
        let share = SHARES[kernel as usize] / all;
        self.reserve(queue, 1, share * input / self.rates.kernels);
        self.device.launch(queue, kernel, ctas, params)
    }
    fn record(&mut self, queue: Queue) -> Result<Event> {
        self.device.record(queue)?;
        let now = self.now();
        // In a queue that is idle it happens at once.
        let end = self.queues.get(&queue).map_or(now, |through| through.max(now));
        self.recorded += 1;
        let event = Event(self.recorded);
        self.events.retain(|(_, end)| *end > now);
        self.events.push((event, end));
        self.past.insert(event.0, end);
        if self.past.len() > PAST {
            self.past.pop_first();
        }
        Ok(event)
    }
    fn ready(&mut self, event: Event) -> Result<bool> {
        let now = self.now();
        Ok(self.events.iter().all(|(of, end)| *of != event || *end <= now))
    }
    fn after(&mut self, queue: Queue, event: Event) -> Result<()> {
        let end = self.events.iter().find(|(of, _)| *of == event).map_or(0.0, |(_, end)| *end);
        let through = self.queues.entry(queue).or_insert(end);
        *through = through.max(end);
        Ok(())
    }
    fn between(&mut self, from: Event, to: Event) -> Result<Option<f64>> {
        let now = self.now();
        let at = |event: Event| self.past.get(&event.0).copied().filter(|end| *end <= now);
        Ok(at(from).zip(at(to)).map(|(from, to)| to - from))
    }
}
