//! A unit: one set on the device, from staged blocks to arrays of the output, with a queue of kernels and memory
//! of its own.
//!
//! ```text
//!  staged -- counts known? --no--> Count, its figures back --+
//!     |                                                      |
//!     +-- yes --> one copy up: blocks, tables <--------------+
//!                 front: (Decode) Unpack Order Trim (Partition Merge)* Judge Drop
//!     carry ----> a copy up
//!                 back: Blocks Files Sizes Table Pack (Encode Places Gather Check) Prove
//!                 status back --> blocks' table, keys, hashes, open block back: announced
//!                                 finished blocks back: made
//! ```
//! Keeps: the device is asked for no more memory than a set of its bounds can need, nor the host for more arenas
//! than there is room for; and nothing that the device says is used before it was held against those bounds. What
//! a copy may still read or write is not given back: a unit that is abandoned first waits for its queues.
//! Leaves to others: whether the output is right: K8 on the device, then `Offload`, the ledger and the
//! certifier.

use lithify_base::{Error, ErrorKind, Result};
use lithify_engine::memory::{EngineMemory, LentMemory, MemoryShare};
use lithify_env::sync::Arc;
use lithify_merge::offload::Tables;
use lithify_merge::{Carry, Lent, Recipe};

use crate::device::{Arena, Device, Event, Kernel, Memory, Queue};
use crate::gauge::Spans;
use crate::layout::{BlockIn, Carve, Params, Status};
use crate::plan::{self, Back, Front, Fronted, Image, per_warp};
use crate::returned::{Announced, Places, counts};
use crate::stage::{Staged, Way};

/// What stops a set.
#[derive(Clone, Debug)]
pub(crate) enum Trouble {
    /// The set does not suit the device, or its blocks are bad: the CPU finds out which.
    Set(Error),
    /// The device failed, or said what cannot be: it gets no more work.
    Device(Error),
}

impl Trouble {
    /// Whether the device is sound, and has no room for the set or does not merge what is in it.
    pub(crate) fn is_unsuitable(&self) -> bool {
        let kinds = [ErrorKind::LimitExceeded, ErrorKind::Unsupported];
        matches!(self, Trouble::Set(e) if kinds.contains(&e.kind()))
    }
}

/// Whose fault the error of a call is.
pub(crate) trait OnDevice<T> {
    /// The device's.
    fn on_device(self) -> Result<T, Trouble>;
    /// The device's, unless it only lacks room.
    fn with_room(self) -> Result<T, Trouble>;
}
impl<T> OnDevice<T> for Result<T> {
    fn on_device(self) -> Result<T, Trouble> {
        self.map_err(Trouble::Device)
    }
    fn with_room(self) -> Result<T, Trouble> {
        self.map_err(|e| match e.kind() {
            ErrorKind::LimitExceeded => Trouble::Set(e),
            _ => Trouble::Device(e),
        })
    }
}

/// A set for a unit.
pub(crate) struct Job {
    pub(crate) recipe: Arc<Recipe>,
    pub(crate) tables: Arc<Tables>,
    pub(crate) staged: Staged,
}

/// What a unit is allowed.
#[derive(Clone, Debug)]
pub(crate) struct Limits {
    /// Bytes of device memory of a unit.
    pub(crate) memory: u64,
    /// Bytes of the arenas of all units, those that are lent out included.
    pub(crate) arenas: u64,
    /// How many there are.
    pub(crate) held: Arc<EngineMemory>,
    /// It is noted where sets are, for their times.
    pub(crate) timed: bool,
}

impl Limits {
    /// Whether arenas of so many bytes have room now.
    ///
    /// # Errors
    /// If they never will.
    fn has_room(&self, bytes: usize) -> Result<bool, Trouble> {
        if bytes as u64 > self.arenas {
            let what = format!("a set needs {bytes} B of arenas, of {} B", self.arenas);
            return Err(Trouble::Set(Error::new(ErrorKind::LimitExceeded, what)));
        }
        Ok(self.held.now() + bytes as u64 <= self.arenas)
    }
}

/// An arena of a unit, which counts until it is given back.
struct Borrowed {
    arena: Arena,
    held: MemoryShare,
}

/// A unit and the set on it.
pub(crate) struct Unit {
    no: u8,
    limits: Limits,
    /// Memory of the front and of the back, kept from one set to the next.
    memory: [Option<Memory>; 2],
    /// Arenas that copies go up from, with what they wait for.
    up: Vec<(Borrowed, Event)>,
    /// Arenas that copies come down to; what a step leaves behind, whatever stopped it, is given back when the
    /// unit is idle.
    down: Vec<Borrowed>,
    at: At,
    /// Stored bytes of the set, and where it was.
    bytes: u64,
    spans: Spans,
}

/// How far the set is.
enum At {
    Idle,
    /// Blocks are counted whose files do not say how many entries they have.
    Counting {
        job: Job,
        event: Event,
    },
    /// The front is under way; the back waits for the carry.
    Fronted {
        recipe: Arc<Recipe>,
        front: Box<Fronted>,
    },
    /// The back is under way.
    Backed {
        told: Box<Params>,
        event: Event,
    },
    /// What comes back has no room yet.
    Waiting {
        status: Status,
        places: Places,
        told: Box<Params>,
    },
    /// Tables come to the first arena, blocks to the second one if there is any.
    Fetching {
        announced: Option<(Status, Places)>,
        tables: Event,
        blocks: Event,
    },
    /// The set was given up.
    Draining(Event),
}

/// What is new of a set.
pub(crate) enum News {
    /// All of its output but the finished blocks.
    Announced(Box<Announced>),
    /// The finished blocks; the unit is idle.
    Blocks(Box<dyn Lent>),
    /// Something moved on.
    Moved,
}

impl Unit {
    /// An idle unit, the `no`-th of its device.
    pub(crate) fn new(no: u8, limits: Limits) -> Unit {
        let memory = [None, None];
        let (up, down, spans) = (Vec::new(), Vec::new(), Spans::default());
        Unit { no, limits, memory, up, down, at: At::Idle, bytes: 0, spans }
    }

    pub(crate) fn is_idle(&self) -> bool {
        matches!(self.at, At::Idle) && self.up.is_empty()
    }

    /// Whether it waits for the carry of its set.
    pub(crate) fn wants_carry(&self) -> bool {
        matches!(self.at, At::Fronted { .. })
    }

    /// Whether its output has no room.
    pub(crate) fn is_short(&self) -> bool {
        matches!(self.at, At::Waiting { .. })
    }

    /// Whether the arena of a set with so many bytes has room. More than there ever is has: starting it says why not.
    pub(crate) fn has_room(&self, bytes: usize) -> bool {
        self.limits.has_room(bytes).unwrap_or(true)
    }

    /// Gives its memory back; it is idle.
    pub(crate) fn close(&mut self, device: &mut dyn Device) -> bool {
        let memory = std::mem::take(&mut self.memory).into_iter().flatten();
        memory.map(|memory| device.free(memory)).count() > 0
    }

    /// Starts a set.
    pub(crate) fn start(&mut self, device: &mut dyn Device, job: Job) -> Result<(), Trouble> {
        (self.bytes, self.spans) = (job.staged.bytes as u64, Spans::default());
        self.at = match job.staged.uncounted {
            true => self.count(device, job)?,
            false => self.front(device, job)?,
        };
        Ok(())
    }

    /// Goes on from `carry`.
    pub(crate) fn go_on(&mut self, device: &mut dyn Device, carry: &Carry) -> Result<(), Trouble> {
        let At::Fronted { recipe, front } = std::mem::replace(&mut self.at, At::Idle) else {
            return Err(Trouble::Device(lost_way()));
        };
        let Some(back) = Back::new(&front, &recipe, carry) else {
            let what = "the block that was open has more bytes of keys than kernels have room for";
            return Err(Trouble::Set(Error::new(ErrorKind::LimitExceeded, what)));
        };
        let base = self.memory(device, 1, back.bytes)?;
        // With the kernels, so that it waits for no set that is on its way up.
        self.upload(device, self.queue(), &back.image, None, base)?;
        let began = self.mark(device, self.queue())?;
        let told = Box::new(back.launch(device, self.queue(), base)?);
        // Before the status comes down, which may wait for others' blocks.
        let ended = self.mark(device, self.queue())?;
        let to = self.arena(device, Status::BYTES)?;
        device.download(self.queue(), told.status, &to.arena, 0..Status::BYTES).on_device()?;
        self.down.push(to);
        let event = device.record(self.queue()).on_device()?;
        self.spans.back = began.zip(ended);
        self.at = At::Backed { told, event };
        Ok(())
    }

    /// Stored bytes of its last set, and where that was.
    pub(crate) fn spans(&self) -> (u64, Spans) {
        (self.bytes, self.spans)
    }

    /// Gives the set up: the unit is idle once its queues are through.
    pub(crate) fn abandon(&mut self, device: &mut dyn Device) -> Result<(), Trouble> {
        if matches!(self.at, At::Draining(_)) {
            return Ok(());
        }
        let worked = device.record(self.queue()).on_device()?;
        device.after(Queue::Down, worked).on_device()?;
        self.at = At::Draining(device.record(Queue::Down).on_device()?);
        Ok(())
    }

    /// Moves on, as far as the device is; none if it is not.
    pub(crate) fn turn(&mut self, device: &mut dyn Device) -> Result<Option<News>, Trouble> {
        let mut gone = false;
        while let Some((_, event)) = self.up.first()
            && device.ready(*event).on_device()?
        {
            device.drop_arena(self.up.remove(0).0.arena);
            gone = true;
        }
        let event = match &self.at {
            At::Idle | At::Fronted { .. } => return Ok(gone.then_some(News::Moved)),
            At::Counting { event, .. } | At::Backed { event, .. } | At::Draining(event) => {
                Some(*event)
            }
            At::Fetching { announced: Some(_), tables, .. } => Some(*tables),
            At::Fetching { blocks, .. } => Some(*blocks),
            At::Waiting { .. } => None,
        };
        if let Some(event) = event
            && !device.ready(event).on_device()?
        {
            return Ok(gone.then_some(News::Moved));
        }
        match std::mem::replace(&mut self.at, At::Idle) {
            At::Idle | At::Fronted { .. } => Ok(None),
            At::Draining(_) => {
                self.up.drain(..).for_each(|(up, _)| device.drop_arena(up.arena));
                self.drop_down(device);
                Ok(Some(News::Moved))
            }
            At::Counting { mut job, .. } => {
                let down = self.down.first().ok_or_else(|| Trouble::Device(lost_way()))?;
                let counted = counts(device.bytes(&down.arena).on_device()?, &job.staged)?;
                job.staged.take_counts(&counted);
                self.drop_down(device);
                self.at = self.front(device, job)?;
                // It went up twice, and its counting is in no span: its times would say too little.
                self.spans.up = None;
                Ok(Some(News::Moved))
            }
            At::Backed { told, .. } => {
                let down = self.down.first().ok_or_else(|| Trouble::Device(lost_way()))?;
                let status = Status::read(device.bytes(&down.arena).on_device()?);
                self.drop_down(device);
                let places = Places::of(&status, &told)?;
                self.fetch(device, status, places, told)
            }
            At::Waiting { status, places, told } => self.fetch(device, status, places, told),
            At::Fetching { announced: Some((status, places)), tables, blocks } => {
                let lent = self.lend(device)?;
                self.at = At::Fetching { announced: None, tables, blocks };
                Ok(Some(News::Announced(Box::new(Announced { status, places, tables: lent }))))
            }
            At::Fetching { announced: None, .. } => match self.down.is_empty() {
                true => Ok(Some(News::Blocks(Box::new(Vec::new())))),
                false => Ok(Some(News::Blocks(self.lend(device)?))),
            },
        }
    }

    fn queue(&self) -> Queue {
        Queue::Work(self.no)
    }

    /// Notes a moment in a queue, if times are wanted.
    fn mark(&self, device: &mut dyn Device, queue: Queue) -> Result<Option<Event>, Trouble> {
        Ok(if self.limits.timed { Some(device.record(queue).on_device()?) } else { None })
    }

    /// An arena for the set.
    fn arena(&mut self, device: &mut dyn Device, bytes: usize) -> Result<Borrowed, Trouble> {
        let arena = device.arena(bytes).with_room()?;
        let held = self.limits.held.hold(device.takes(&arena, bytes));
        Ok(Borrowed { arena, held })
    }

    fn drop_down(&mut self, device: &mut dyn Device) {
        self.down.drain(..).for_each(|down| device.drop_arena(down.arena));
    }

    /// Lends the host the first arena that copies came down to.
    fn lend(&mut self, device: &mut dyn Device) -> Result<Box<dyn Lent>, Trouble> {
        if self.down.is_empty() {
            return Err(Trouble::Device(lost_way()));
        }
        let Borrowed { arena, held } = self.down.remove(0);
        Ok(Box::new(LentMemory::new(device.lend(arena).on_device()?, held)))
    }

    /// Gives the memory of the front back if it is larger than this one and leaves too little for its back.
    fn make_room(&mut self, device: &mut dyn Device, front: &Front) {
        let most = self.limits.memory;
        let is_in_the_way = |memory: &mut Memory| {
            memory.bytes > front.bytes && memory.bytes.saturating_add(front.back) > most
        };
        if let Some(memory) = self.memory[0].take_if(is_in_the_way) {
            device.free(memory);
        }
    }

    /// Memory of so many bytes for the front or the back; the same as before if that suffices.
    fn memory(&mut self, device: &mut dyn Device, half: usize, bytes: u64) -> Result<u64, Trouble> {
        let other = self.memory[1 - half].as_ref().map_or(0, |memory| memory.bytes);
        let memory = &mut self.memory[half];
        if let Some(memory) = memory.take_if(|memory| memory.bytes < bytes) {
            device.free(memory);
        }
        let most = self.limits.memory.saturating_sub(other);
        if memory.is_none() && bytes > most {
            // Of the back only its own set can need what is there, and a front begins a set.
            if half == 0
                && let Some(back) = self.memory[1].take()
            {
                device.free(back);
                return self.memory(device, half, bytes);
            }
            return Err(no_room(bytes, most));
        }
        let memory = match memory.take() {
            Some(memory) => memory,
            None => device.alloc(bytes).with_room()?,
        };
        Ok(self.memory[half].insert(memory).address)
    }

    /// Has blocks counted whose files do not say how many entries they have.
    fn count(&mut self, device: &mut dyn Device, job: Job) -> Result<At, Trouble> {
        let n = job.staged.blocks.len();
        let mut image = Image::new(job.staged.bytes);
        let blocks = image.put_all(job.staged.blocks.iter().map(BlockIn::words));
        let status = image.put_zeros(Status::BYTES);
        // Counts and status come back together.
        let counts = image.put_zeros(16 * n);
        let mut carve = Carve::new(0, image.bytes());
        let plain = carve.take(job.staged.plain, 1);
        let base = self.memory(device, 0, carve.bytes())?;
        let params = Params {
            input: base,
            plain: base + plain,
            blocks: base + blocks,
            n_blocks: n as u64,
            status: base + status,
            counts: base + counts,
            ..Params::default()
        };
        self.upload(device, Queue::Up, &image, Some(&job.staged), base)?;
        let ctas = per_warp(device, n as u64);
        if job.staged.decoded > 0 {
            device.launch(self.queue(), Kernel::Decode, ctas, &params.words()).on_device()?;
        }
        device.launch(self.queue(), Kernel::Count, ctas, &params.words()).on_device()?;
        let part = Status::BYTES..Status::BYTES + 16 * n;
        let to = self.arena(device, part.end)?;
        let whole = 0..Status::BYTES;
        device.download(self.queue(), params.status, &to.arena, whole).on_device()?;
        device.download(self.queue(), params.counts, &to.arena, part).on_device()?;
        self.down.push(to);
        let event = device.record(self.queue()).on_device()?;
        Ok(At::Counting { job, event })
    }

    /// Copies a set up and starts the kernels that need no carry.
    fn front(&mut self, device: &mut dyn Device, job: Job) -> Result<At, Trouble> {
        let Job { recipe, tables, mut staged } = job;
        let totals = staged.place().map_err(Trouble::Set)?;
        let least = plan::least(totals);
        if least > self.limits.memory {
            return Err(no_room(least, self.limits.memory));
        }
        let front = Front::new(device.shape(), &recipe, &tables, &staged, totals);
        self.make_room(device, &front);
        let base = self.memory(device, 0, front.bytes)?;
        self.upload(device, Queue::Up, &front.image, Some(&staged), base)?;
        staged.forget();
        let began = self.mark(device, self.queue())?;
        let front = Box::new(front.launch(device, self.queue(), base, &staged, totals)?);
        self.spans.front = began.zip(self.mark(device, self.queue())?);
        Ok(At::Fronted { recipe, front })
    }

    /// Copies an image, and the blocks of a set, to `base`, before all kernels that follow.
    fn upload(
        &mut self,
        device: &mut dyn Device,
        queue: Queue,
        image: &Image,
        staged: Option<&Staged>,
        base: u64,
    ) -> Result<(), Trouble> {
        // Copies from the arena: where each begins there, how long it is, and where it goes; and what is sent.
        let (mut copies, mut sent, mut copied) = (Vec::new(), Vec::new(), 0);
        for (at, way) in staged.into_iter().flat_map(Staged::ways) {
            match way {
                Way::Sent(bytes) => sent.push((at, bytes)),
                Way::Arena(len) => {
                    copies.push((copied, len, at));
                    copied += len;
                }
            }
        }
        // The tables lie behind the blocks: one copy with those of the last stretch, if that is copied.
        let mut small = copied;
        match copies.last_mut() {
            Some((from, len, at)) if sent.last().is_none_or(|(of, _)| of < at) => {
                small = *from + image.blocks - *at;
                *len = small + image.small.len() - *from;
            }
            _ => copies.push((small, image.small.len(), image.blocks)),
        }
        let all = small + image.small.len();
        self.limits.has_room(all)?;
        let up = self.arena(device, all)?;
        let bytes = device.bytes(&up.arena).on_device()?;
        let (blocks, tables) = bytes.split_at_mut(small.min(all));
        if let Some(staged) = staged {
            staged.fill(blocks);
        }
        tables.copy_from_slice(&image.small);
        let is_up = queue == Queue::Up;
        let began = if is_up { self.mark(device, queue)? } else { None };
        for (at, bytes) in sent {
            device.send(queue, bytes, base + at as u64).on_device()?;
        }
        for (from, len, at) in copies {
            device.upload(queue, &up.arena, from..from + len, base + at as u64).on_device()?;
        }
        let event = device.record(queue).on_device()?;
        self.up.push((up, event));
        if !is_up {
            return Ok(());
        }
        self.spans.up = began.map(|began| (began, event));
        device.after(self.queue(), event).on_device()
    }

    /// Fetches what the status announces, once there is room for it.
    fn fetch(
        &mut self,
        device: &mut dyn Device,
        status: Status,
        places: Places,
        told: Box<Params>,
    ) -> Result<Option<News>, Trouble> {
        let small = places.open.end;
        if !self.limits.has_room(small + places.finished)? {
            self.at = At::Waiting { status, places, told };
            return Ok(None);
        }
        let to = self.arena(device, small)?;
        let began = self.mark(device, Queue::Down)?;
        for (at, part) in [
            (told.blocks_out, &places.blocks),
            (told.keys_out, &places.keys),
            (told.hashes_out, &places.hashes),
            (told.arena + places.finished as u64, &places.open),
        ] {
            if !part.is_empty() {
                device.download(Queue::Down, at, &to.arena, part.clone()).on_device()?;
            }
        }
        self.down.push(to);
        let tables = device.record(Queue::Down).on_device()?;
        let mut blocks = tables;
        if places.finished > 0 {
            let to = self.arena(device, places.finished)?;
            let part = 0..places.finished;
            device.download(Queue::Down, told.arena, &to.arena, part).on_device()?;
            self.down.push(to);
            blocks = device.record(Queue::Down).on_device()?;
        }
        self.spans.down = began.map(|began| (began, blocks));
        self.at = At::Fetching { announced: Some((status, places)), tables, blocks };
        Ok(Some(News::Moved))
    }
}

#[cold]
fn no_room(bytes: u64, most: u64) -> Trouble {
    let what = format!("a set needs {bytes} B of the device, of {most} B");
    Trouble::Set(Error::new(ErrorKind::LimitExceeded, what))
}

fn lost_way() -> Error {
    Error::new(ErrorKind::Internal, "a set on the GPU lost its way")
}
