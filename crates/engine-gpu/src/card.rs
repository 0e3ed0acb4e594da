//! A GPU behind a driver, as a [`Device`]: what the driver is asked for, and what its answers mean.
//!
//! Keeps: a card is opened by steps, each of which ends in an error of its own ([`NoGpu`]); the image is asked how
//! it was compiled before one of its kernels runs. Copies stay inside of arenas and of memory that was handed out.
//! An arena is shown, lent or used again only when events tell that no copy of it is under way. After an answer
//! that is no lack of memory the driver is not called again, and nothing is given back that it may still write to.
//! Copies of a queue are asked for together (`copies`), before the next thing that is asked of the queue.
//! A card that ends at rest is closed once the last arena that it lent is back: streams, events, image and GPU are given back.
//! Leaves to others: the calls themselves (`cuda`), and what is computed (`unit`).
//!
//! What is under way is known by counts: each queue counts what was asked of it, an event remembers how far its
//! queue, and those that the queue waited for, had come, and when it has happened all of that has.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

use lithify_base::{Error, ErrorKind, Result};
use lithify_env::sync::{Arc, Mutex};
use lithify_merge::{Bytes, Lent};

use crate::arena::Pinned;
use crate::choose::NoGpu;
use crate::copies::{Asked, Waiting};
use crate::device::{Arena, Device, Event, Kernel, Memory, Queue, Shape};
use crate::driver::{CardFacts, Code, Driver, NO_MEMORY, NOT_READY, Signal, Stream, Transfer};
use crate::layout::{Params, sizes};

/// The oldest driver that is taken, as it counts: that of CUDA 13.0, version 580.
pub const DRIVER: u32 = 13_000;
/// The oldest generation of GPUs that the image has code for.
const CAPABILITY: u32 = 80;
/// The words in the image that say how it was compiled: threads, items, those in scans, then sizes of structs.
const SHAPE: &str = "lithify_shape";
/// CTAs for each multiprocessor, for kernels that loop.
const CTAS: u32 = 4;
/// Arenas are taken from the driver in multiples of this, so that they fit more than one set.
const GRAIN: usize = 64 << 10;
/// Alignment of memory that is assumed of the driver, which promises 256.
const ALIGN: u64 = 64;
/// Events that may be under way before those that happened are looked for.
const EVENTS: usize = 256;

/// Events that have happened whose times are still known.
const PAST: usize = 256;

/// How far queues have come: by [`place`], 0 behind the end.
#[derive(Clone, Debug, Default)]
struct Counts(Vec<u64>);

/// Where a queue has its count.
fn place(queue: Queue) -> usize {
    match queue {
        Queue::Up => 0,
        Queue::Down => 1,
        Queue::Work(no) => 2 + usize::from(no),
    }
}

impl Counts {
    fn of(&self, queue: Queue) -> u64 {
        self.0.get(place(queue)).copied().unwrap_or_default()
    }
    /// The queue's count, to be changed.
    fn at(&mut self, queue: Queue) -> &mut u64 {
        let at = place(queue);
        if self.0.len() <= at {
            self.0.resize(at + 1, 0);
        }
        &mut self.0[at]
    }
    /// Comes as far as `other`, where that has come further.
    fn reach(&mut self, other: &Counts) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        self.0.iter_mut().zip(&other.0).for_each(|(one, other)| *one = (*one).max(*other));
    }
    /// Whether it has come as far as `other`.
    fn has(&self, other: &Counts) -> bool {
        let known = self.0.iter().chain(std::iter::repeat(&0));
        other.0.iter().zip(known).all(|(n, done)| done >= n)
    }
}

/// A GPU.
pub struct Card<D: Driver> {
    facts: CardFacts,
    shape: Shape,
    pool: Arc<Pool<D>>,
    streams: BTreeMap<Queue, Stream>,
    queues: Queues,
    events: BTreeMap<u64, Under>,
    /// The last of those that have happened, for their times; and signals that are free.
    past: BTreeMap<u64, Signal>,
    signals: Vec<Signal>,
    next: u64,
    memory: BTreeMap<u64, u64>,
    arenas: BTreeMap<u64, Held>,
    /// Given back while copies were under way.
    limbo: Vec<Held>,
    /// Copies that the driver does not know of yet.
    waiting: Waiting,
    /// By queue, what is copied from where it was read, each with the number of its copy.
    sent: BTreeMap<Queue, VecDeque<(u64, Bytes)>>,
}

/// What is known of the queues.
#[derive(Default)]
struct Queues {
    /// What was asked of each, and what each is behind of; what has happened of all.
    asked: Counts,
    behind: BTreeMap<Queue, Counts>,
    happened: Counts,
    /// How far each had not come when it was last asked; none if each event is asked for, as nothing [looks](Device::look).
    unready: Option<BTreeMap<Queue, u64>>,
}

/// An event that has not happened yet.
#[derive(Clone)]
struct Under {
    signal: Signal,
    queue: Queue,
    /// What has happened when it has.
    counts: Counts,
}

/// An arena, and the copies of it.
struct Held {
    pinned: Pinned,
    bytes: usize,
    copies: Counts,
}

/// The driver, and memory for arenas that is free.
struct Pool<D: Driver> {
    driver: D,
    spare: Mutex<Spare>,
}

struct Spare {
    free: Vec<Pinned>,
    /// Bytes that were taken from the driver and not given back to it.
    taken: usize,
    /// Most of it, as long as what is in use is not more.
    most: usize,
    /// The driver gets no more calls.
    is_lost: bool,
}

/// How many GPUs a driver sees.
///
/// # Errors
/// Why it can't be asked.
pub fn count(driver: &dyn Driver) -> Result<u32, NoGpu> {
    if !driver.is_there() {
        return Err(NoGpu::NoLibrary);
    }
    let failed = |call: &str, code: Code| NoGpu::Failed(code.error(driver, call).to_string());
    let version = driver.version().map_err(|code| failed("start", code))?;
    if version < DRIVER {
        return Err(NoGpu::OldDriver(version));
    }
    driver.count().map_err(|code| failed("count GPUs", code))
}

/// Why GPU `no` is not opened, by what the driver answered.
fn failed(driver: &dyn Driver, no: u32, call: &str, code: Code) -> NoGpu {
    match code {
        NO_MEMORY => NoGpu::NoMemory(format!("GPU {no} has no memory to {call}")),
        code => NoGpu::Failed(code.error(driver, call).to_string()),
    }
}

/// What GPU `no`, which was taken, is, and how the kernels of `image` were made that it has loaded.
fn known<'a>(
    driver: &dyn Driver,
    no: u32,
    image: impl FnOnce() -> Result<&'a [u8], NoGpu>,
) -> Result<(CardFacts, Shape), NoGpu> {
    let step = |call: &'static str| move |code: Code| failed(driver, no, call, code);
    let facts = driver.facts().map_err(step("say what it is"))?;
    if facts.capability < CAPABILITY {
        return Err(NoGpu::OldCard { name: facts.name, capability: facts.capability });
    }
    driver.load(image()?).map_err(step("load the image of the kernels"))?;
    let names = Kernel::ALL.map(Kernel::symbol);
    driver.kernels(&names).map_err(step("find the kernels in their image"))?;
    let mut words = [0; 3 + sizes().len()];
    driver.words(SHAPE, &mut words).map_err(step("read the image's layout"))?;
    let [threads, items, scan_items, rest @ ..] = words;
    let [threads, items, scan_items] =
        [threads, items, scan_items].map(|n| u32::try_from(n).unwrap_or(0));
    let are_some = [items, scan_items].iter().all(|items| (1..=64).contains(items));
    if rest != sizes() || !(32..=1024).contains(&threads) || !are_some {
        return Err(NoGpu::BadImage(format!(
            "the image of the kernels was made for another version: its layout is {words:?}"
        )));
    }
    let ctas = facts.processors.clamp(1, 4096) * CTAS;
    Ok((facts, Shape { threads, items, scan_items, ctas }))
}

impl<D: Driver> Card<D> {
    /// Opens the GPU of this number, with the kernels of `image`, which is asked for once there is a GPU. It keeps
    /// memory of the host for later use, up to `pinned` bytes.
    ///
    /// # Errors
    /// Why not.
    pub fn open<'a>(
        driver: D,
        no: u32,
        image: impl FnOnce() -> Result<&'a [u8], NoGpu>,
        pinned: u64,
    ) -> Result<Card<D>, NoGpu> {
        let there = count(&driver)?;
        if no >= there {
            return Err(NoGpu::NoCard { no, there });
        }
        driver.take(no).map_err(|code| failed(&driver, no, "open it", code))?;
        let (facts, shape) = known(&driver, no, image).inspect_err(|why| {
            // Unless an answer was the driver's last.
            if !matches!(why, NoGpu::Failed(_)) {
                let _ = driver.close();
            }
        })?;
        let most = usize::try_from(pinned).unwrap_or(usize::MAX);
        let spare = Spare { free: Vec::new(), taken: 0, most, is_lost: false };
        Ok(Card {
            facts,
            shape,
            pool: Arc::new(Pool { driver, spare: Mutex::new(spare) }),
            streams: BTreeMap::new(),
            queues: Queues::default(),
            events: BTreeMap::new(),
            past: BTreeMap::new(),
            signals: Vec::new(),
            next: 0,
            memory: BTreeMap::new(),
            arenas: BTreeMap::new(),
            limbo: Vec::new(),
            waiting: Waiting::default(),
            sent: BTreeMap::new(),
        })
    }

    /// What it is.
    pub fn facts(&self) -> &CardFacts {
        &self.facts
    }

    /// Makes a call, unless the driver gets none any more; an answer other than a lack of memory is its last.
    fn call<T>(&self, what: &str, of: impl FnOnce(&D) -> Result<T, Code>) -> Result<T> {
        self.pool.call(what, of)
    }

    fn stream(&mut self, queue: Queue) -> Result<Stream> {
        if let Some(stream) = self.streams.get(&queue) {
            return Ok(*stream);
        }
        let stream = self.call("make a stream", |driver| driver.stream())?;
        self.streams.insert(queue, stream);
        Ok(stream)
    }

    /// Counts what is asked of a queue.
    fn count(&mut self, queue: Queue) -> u64 {
        let asked = self.queues.asked.at(queue);
        *asked += 1;
        *asked
    }

    /// The part of an arena that a copy is about, which counts from now on; the other end lies in memory of the
    /// GPU.
    fn copy(&mut self, queue: Queue, arena: &Arena, part: &Range<usize>, at: u64) -> Result<()> {
        let held = self.arenas.get(&arena.0).ok_or_else(no_arena)?;
        if part.start > part.end || part.end > held.bytes || !self.has(at, part.len()) {
            return Err(out_of_memory());
        }
        let n = self.count(queue);
        if let Some(held) = self.arenas.get_mut(&arena.0) {
            *held.copies.at(queue) = n;
        }
        Ok(())
    }

    /// A copy waits for others of its queue.
    fn wait(&mut self, queue: Queue, one: Asked) -> Result<()> {
        if !self.waiting.suits(queue, &one) {
            self.copy_all(queue)?;
        }
        self.waiting.add(queue, one);
        Ok(())
    }

    /// Asks the driver for the copies of a queue that wait.
    fn copy_all(&mut self, queue: Queue) -> Result<()> {
        let waiting = self.waiting.take(queue);
        let Some(first) = waiting.first() else { return Ok(()) };
        let what = if first.is_down() { "copy from the GPU" } else { "copy to the GPU" };
        let stream = self.stream(queue)?;
        let pinned = |arena: &u64| Ok(&self.arenas.get(arena).ok_or_else(no_arena)?.pinned);
        let copies: Vec<Transfer<'_>> = waiting
            .iter()
            .map(|one| {
                Ok(match one {
                    Asked::Up { arena, part, to } => {
                        Transfer::Up(pinned(arena)?, part.clone(), *to)
                    }
                    Asked::Sent { bytes, to } => Transfer::Send(bytes.as_slice(), *to),
                    Asked::Down { from, arena, part } => {
                        Transfer::Down(*from, pinned(arena)?, part.clone())
                    }
                })
            })
            .collect::<Result<_>>()?;
        self.call(what, |driver| driver.copy(stream, &copies))
    }

    /// The same of each queue, or of those with a copy of this arena. A failure is the card's last call, and shows in the next one.
    fn copy_now(&mut self, arena: Option<u64>) {
        while let Some(queue) = self.waiting.queue(arena) {
            let _ = self.copy_all(queue);
        }
    }

    /// Whether so many bytes from an address on lie in memory that was handed out.
    fn has(&self, at: u64, len: usize) -> bool {
        let room = self.memory.range(..=at).next_back();
        room.is_some_and(|(from, bytes)| {
            (at - from).checked_add(len as u64).is_some_and(|end| end <= *bytes)
        })
    }

    fn at_rest(&self, copies: &Counts) -> bool {
        self.queues.happened.has(copies)
    }

    /// An event has happened.
    fn take_event(&mut self, no: u64) {
        let Some(Under { signal, counts, .. }) = self.events.remove(&no) else { return };
        self.past.insert(no, signal);
        if self.past.len() > PAST
            && let Some((_, oldest)) = self.past.pop_first()
        {
            self.signals.push(oldest);
        }
        self.queues.happened.reach(&counts);
        if !self.limbo.is_empty() {
            let limbo = std::mem::take(&mut self.limbo).into_iter();
            let (at_rest, limbo): (Vec<_>, _) = limbo.partition(|held| self.at_rest(&held.copies));
            self.limbo = limbo;
            at_rest.into_iter().for_each(|held| self.pool.give_back(held.pinned));
        }
        for (queue, sent) in &mut self.sent {
            let done = self.queues.happened.of(*queue);
            while sent.front().is_some_and(|(no, _)| *no <= done) {
                sent.pop_front();
            }
        }
    }

    /// Asks for an event that is under way.
    fn ask(&mut self, no: u64) -> Result<bool> {
        let Some(Under { signal, queue, counts }) = self.events.get(&no) else { return Ok(true) };
        let (signal, queue, n) = (*signal, *queue, counts.of(*queue));
        let unready = self.queues.unready.as_ref().and_then(|unready| unready.get(&queue));
        if unready.is_some_and(|first| *first <= n) {
            return Ok(false);
        }
        let done =
            self.call("finish what it was asked for", |driver| match driver.query(signal) {
                Ok(()) => Ok(true),
                Err(NOT_READY) => Ok(false),
                Err(code) => Err(code),
            })?;
        if done {
            self.take_event(no);
        } else if let Some(unready) = &mut self.queues.unready {
            unready.insert(queue, n);
        }
        Ok(done)
    }
}

impl<D: Driver> Pool<D> {
    fn call<T>(&self, what: &str, of: impl FnOnce(&D) -> Result<T, Code>) -> Result<T> {
        if self.spare.lock().is_lost {
            return Err(Error::new(ErrorKind::Internal, "the GPU is lost"));
        }
        of(&self.driver).map_err(|code| {
            if code != NO_MEMORY {
                self.spare.lock().is_lost = true;
            }
            code.error(&self.driver, what)
        })
    }

    /// Memory of at least so many bytes.
    fn take(&self, bytes: usize) -> Result<Pinned> {
        let mut spare = self.spare.lock();
        let fits =
            |pinned: &Pinned| (bytes..=bytes.max(GRAIN).saturating_mul(2)).contains(&pinned.size());
        let found = spare.free.iter().enumerate().filter(|(_, pinned)| fits(pinned));
        if let Some((at, _)) = found.min_by_key(|(_, pinned)| pinned.size()) {
            return Ok(spare.free.swap_remove(at));
        }
        let bytes = bytes.max(1).checked_next_multiple_of(GRAIN).ok_or_else(|| {
            Error::new(ErrorKind::LimitExceeded, "an arena is larger than memory")
        })?;
        let mut old = Vec::new();
        while spare.taken.saturating_add(bytes) > spare.most
            && let Some(one) = spare.free.pop()
        {
            spare.taken -= one.size();
            old.push(one);
        }
        drop(spare);
        for one in old {
            self.call("unpin memory of the host", |driver| driver.unpin(one))?;
        }
        let pinned = self.call("pin memory of the host", |driver| driver.pin(bytes))?;
        self.spare.lock().taken += pinned.size();
        Ok(pinned)
    }

    /// Memory that no copy is about.
    fn give_back(&self, pinned: Pinned) {
        self.spare.lock().free.push(pinned);
    }
}

impl<D: Driver> Drop for Pool<D> {
    fn drop(&mut self) {
        let free = std::mem::take(&mut self.spare.lock().free);
        for pinned in free {
            // What fails here is lost with the driver, and the memory with the program.
            let _ = self.call("unpin memory of the host", |driver| driver.unpin(pinned));
        }
        let _ = self.call("give the GPU back", |driver| driver.close());
    }
}

/// An arena that the host has.
struct LentArena<D: Driver> {
    pool: Arc<Pool<D>>,
    pinned: Option<Pinned>,
    bytes: usize,
}

impl<D: Driver> Lent for LentArena<D> {
    fn bytes(&self) -> &[u8] {
        let all = self.pinned.as_ref().map_or(&[][..], Pinned::bytes);
        all.get(..self.bytes).unwrap_or_default()
    }
    fn bytes_mut(&mut self) -> &mut [u8] {
        let all = self.pinned.as_mut().map_or(&mut [][..], Pinned::bytes_mut);
        all.get_mut(..self.bytes).unwrap_or_default()
    }
}

impl<D: Driver> Drop for LentArena<D> {
    fn drop(&mut self) {
        if let Some(pinned) = self.pinned.take() {
            self.pool.give_back(pinned);
        }
    }
}

impl<D: Driver + 'static> Device for Card<D> {
    fn name(&self) -> String {
        self.facts.name.clone()
    }
    fn shape(&self) -> Shape {
        self.shape
    }
    fn alloc(&mut self, bytes: u64) -> Result<Memory> {
        // Kernels read the whole words that their bytes lie in.
        let room = bytes.max(1).checked_next_multiple_of(ALIGN).ok_or_else(out_of_memory)?;
        let address = self.call("take memory of the GPU", |driver| driver.alloc(room))?;
        if address == 0 || !address.is_multiple_of(ALIGN) || address.checked_add(bytes).is_none() {
            let what = format!("the GPU's driver gave memory at {address:#x}, which cannot be");
            return Err(Error::new(ErrorKind::Internal, what));
        }
        self.memory.insert(address, bytes);
        Ok(Memory { address, bytes })
    }
    fn free(&mut self, memory: Memory) {
        self.copy_now(None);
        if self.memory.remove(&memory.address).is_some() {
            // A failure is the card's last call, and shows in the next one.
            let _ = self.call("give memory back", |driver| driver.free(memory.address));
        }
    }
    fn arena(&mut self, bytes: usize) -> Result<Arena> {
        let pinned = self.pool.take(bytes)?;
        self.next += 1;
        self.arenas.insert(self.next, Held { pinned, bytes, copies: Counts::default() });
        Ok(Arena(self.next))
    }
    fn takes(&self, arena: &Arena, asked: usize) -> usize {
        self.arenas.get(&arena.0).map_or(asked, |held| held.pinned.size())
    }
    fn bytes(&mut self, arena: &Arena) -> Result<&mut [u8]> {
        let held = self.arenas.get(&arena.0).ok_or_else(no_arena)?;
        if !self.at_rest(&held.copies) {
            return Err(in_flight());
        }
        let held = self.arenas.get_mut(&arena.0).ok_or_else(no_arena)?;
        held.pinned.bytes_mut().get_mut(..held.bytes).ok_or_else(no_arena)
    }
    fn drop_arena(&mut self, arena: Arena) {
        self.copy_now(Some(arena.0));
        let Some(held) = self.arenas.remove(&arena.0) else { return };
        match self.at_rest(&held.copies) {
            true => self.pool.give_back(held.pinned),
            false => self.limbo.push(held),
        }
    }
    fn lend(&mut self, arena: Arena) -> Result<Box<dyn Lent>> {
        let held = self.arenas.get(&arena.0).ok_or_else(no_arena)?;
        if !self.at_rest(&held.copies) {
            return Err(in_flight());
        }
        let held = self.arenas.remove(&arena.0).ok_or_else(no_arena)?;
        let (pool, pinned) = (self.pool.clone(), Some(held.pinned));
        Ok(Box::new(LentArena { pool, pinned, bytes: held.bytes }))
    }
    fn upload(&mut self, queue: Queue, from: &Arena, part: Range<usize>, to: u64) -> Result<()> {
        self.copy(queue, from, &part, to)?;
        self.wait(queue, Asked::Up { arena: from.0, part, to })
    }
    fn send(&mut self, queue: Queue, from: Bytes, to: u64) -> Result<()> {
        if !self.has(to, from.len()) {
            return Err(out_of_memory());
        }
        let n = self.count(queue);
        self.sent.entry(queue).or_default().push_back((n, from.clone()));
        self.wait(queue, Asked::Sent { bytes: from, to })
    }
    fn download(&mut self, queue: Queue, from: u64, to: &Arena, part: Range<usize>) -> Result<()> {
        self.copy(queue, to, &part, from)?;
        self.wait(queue, Asked::Down { from, arena: to.0, part })
    }
    fn launch(&mut self, queue: Queue, kernel: Kernel, ctas: u32, params: &[u64]) -> Result<()> {
        if params.len() != Params::WORDS {
            return Err(Error::new(
                ErrorKind::Internal,
                "a kernel gets other parameters than it has",
            ));
        }
        self.copy_all(queue)?;
        let stream = self.stream(queue)?;
        self.count(queue);
        let threads = self.shape.threads;
        self.call(kernel.symbol(), |driver| {
            driver.launch(stream, kernel as u32, ctas, threads, params)
        })
    }
    fn record(&mut self, queue: Queue) -> Result<Event> {
        self.copy_all(queue)?;
        let stream = self.stream(queue)?;
        if self.events.len() >= EVENTS {
            let under_way: Vec<u64> = self.events.keys().copied().collect();
            for no in under_way {
                self.ask(no)?;
            }
        }
        let signal = match self.signals.pop() {
            Some(signal) => signal,
            None => self.call("make an event", |driver| driver.signal())?,
        };
        self.call("record an event", |driver| driver.record(signal, stream))?;
        let mut counts = self.queues.behind.get(&queue).cloned().unwrap_or_default();
        *counts.at(queue) = self.queues.asked.of(queue);
        self.next += 1;
        self.events.insert(self.next, Under { signal, queue, counts });
        Ok(Event(self.next))
    }
    fn look(&mut self) {
        self.queues.unready.get_or_insert_default().clear();
    }
    fn ready(&mut self, event: Event) -> Result<bool> {
        self.ask(event.0)
    }
    fn after(&mut self, queue: Queue, event: Event) -> Result<()> {
        let Some(Under { signal, counts, .. }) = self.events.get(&event.0).cloned() else {
            return Ok(());
        };
        self.copy_all(queue)?;
        let stream = self.stream(queue)?;
        self.call("have a stream wait", |driver| driver.wait(stream, signal))?;
        self.queues.behind.entry(queue).or_default().reach(&counts);
        Ok(())
    }
    fn between(&mut self, from: Event, to: Event) -> Result<Option<f64>> {
        if !(self.ask(from.0)? && self.ask(to.0)?) {
            return Ok(None);
        }
        let (Some(from), Some(to)) = (self.past.get(&from.0), self.past.get(&to.0)) else {
            return Ok(None);
        };
        let (from, to) = (*from, *to);
        self.call("say how long it took", |driver| driver.elapsed(from, to)).map(Some)
    }
}

impl<D: Driver> Drop for Card<D> {
    fn drop(&mut self) {
        let is_idle = self.at_rest(&self.queues.asked);
        let lost = self.pool.spare.lock().is_lost;
        if lost || !is_idle {
            // The GPU may still write to arenas and memory: they stay as they are, with the program.
            self.pool.spare.lock().is_lost = true;
            std::mem::forget(std::mem::take(&mut self.sent));
            return;
        }
        for address in std::mem::take(&mut self.memory).into_keys() {
            let _ = self.call("give memory back", |driver| driver.free(address));
        }
        let arenas = std::mem::take(&mut self.arenas).into_values();
        arenas.for_each(|held| self.pool.give_back(held.pinned));
    }
}

#[cold]
fn no_arena() -> Error {
    Error::new(ErrorKind::Internal, "there is no such arena")
}
#[cold]
fn out_of_memory() -> Error {
    Error::new(ErrorKind::Internal, "a copy reaches out of its memory")
}
#[cold]
fn in_flight() -> Error {
    Error::new(ErrorKind::Internal, "a copy from or to this arena is under way")
}
