//! A unit: one set on the device, from staged blocks to arrays of the output.
//!
//! ```text
//!  staged -- counts known? --no--> Count, its figures back --+
//!     |                                                      |
//!     +-- yes --> one copy up: blocks, tables, carry <-------+
//!                 Unpack Order Trim (Partition Merge)* Judge Drop Blocks Files Sizes Table Pack Prove
//!                 status back --> blocks, keys, hashes, bytes back --> Made
//! ```
//! Keeps: the device is asked for no more memory than a set of its bounds can need, and nothing
//! that it says is used before it was held against those bounds.
//! Leaves to others: whether the output is right: K8 on the device, then `Offload`, the ledger and the
//! certifier.

use lithify_base::{Error, ErrorKind, Result};
use lithify_merge::offload::Made;
use lithify_merge::{BlockSet, Offload, Recipe};

use crate::device::{Arena, Device, Event, Kernel, Memory, Queue};
use crate::layout::{BlockIn, Params, Status};
use crate::plan::{Image, Laid, per_warp};
use crate::returned::{Places, counts, made};
use crate::stage::Staged;

/// What stops a set.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// The set does not suit the device, or its blocks are bad: the CPU finds out which.
    Set(Error),
    /// The device failed, or said what cannot be: it gets no more work.
    Device(Error),
}

impl Trouble {
    pub(crate) fn error(self) -> Error {
        match self {
            Trouble::Set(e) | Trouble::Device(e) => e,
        }
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

/// A unit and the set on it.
pub(crate) struct Unit {
    memory: Option<Memory>,
    /// Most bytes of device memory.
    most: u64,
    /// Of the set; what a step leaves behind, whatever stopped it, is given back with the unit.
    arenas: Vec<Arena>,
    at: At,
}

/// How far the set is.
enum At {
    Idle,
    /// Copies are from the first arena, and to the second one.
    Counting {
        staged: Staged,
        event: Event,
    },
    /// The same.
    Running {
        no: u32,
        told: Box<Params>,
        event: Event,
    },
    /// Tables come to the first arena, blocks to the second one.
    Fetching {
        no: u32,
        status: Status,
        places: Places,
        event: Event,
    },
}

/// What a set on the unit came to.
pub(crate) enum Turn {
    /// The device is at work.
    Busy,
    /// It moved on.
    Moved,
    /// The output.
    Made(Box<Made>),
}

impl Unit {
    /// An idle unit that takes at most so much memory of the device.
    pub(crate) fn new(most: u64) -> Unit {
        Unit { memory: None, most, arenas: Vec::new(), at: At::Idle }
    }

    pub(crate) fn is_idle(&self) -> bool {
        matches!(self.at, At::Idle)
    }

    /// Gives everything back that the device lent.
    pub(crate) fn close(&mut self, device: &mut dyn Device) {
        self.at = At::Idle;
        self.drop_arenas(device);
        if let Some(memory) = self.memory.take() {
            device.free(memory);
        }
    }

    /// An arena for the set.
    fn arena(&mut self, device: &mut dyn Device, bytes: usize) -> Result<&Arena, Trouble> {
        let arena = device.arena(bytes).with_room()?;
        self.arenas.push(arena);
        self.arenas.last().ok_or_else(|| Trouble::Device(no_arena()))
    }

    fn drop_arenas(&mut self, device: &mut dyn Device) {
        self.arenas.drain(..).for_each(|arena| device.drop_arena(arena));
    }

    /// Starts a set.
    pub(crate) fn start(
        &mut self,
        device: &mut dyn Device,
        recipe: &Recipe,
        offload: &Offload,
        set: &BlockSet,
        staged: Staged,
    ) -> Result<(), Trouble> {
        self.at = match staged.uncounted {
            true => self.count(device, staged)?,
            false => self.run(device, recipe, offload, set, staged)?,
        };
        Ok(())
    }

    /// Moves on, as far as the device is.
    pub(crate) fn turn(
        &mut self,
        device: &mut dyn Device,
        recipe: &Recipe,
        offload: &Offload,
        set: &BlockSet,
    ) -> Result<Turn, Trouble> {
        let event = match &self.at {
            At::Idle => return Ok(Turn::Moved),
            At::Counting { event, .. } | At::Running { event, .. } | At::Fetching { event, .. } => {
                *event
            }
        };
        if !device.ready(event).on_device()? {
            return Ok(Turn::Busy);
        }
        match std::mem::replace(&mut self.at, At::Idle) {
            At::Idle => {}
            At::Counting { mut staged, .. } => {
                let down = self.arenas.get(1).ok_or_else(|| Trouble::Device(no_arena()))?;
                staged.take_counts(&counts(device.bytes(down).on_device()?, &staged)?);
                self.drop_arenas(device);
                self.at = self.run(device, recipe, offload, set, staged)?;
            }
            At::Running { no, told, .. } => {
                let down = self.arenas.get(1).ok_or_else(|| Trouble::Device(no_arena()))?;
                let status = Status::read(device.bytes(down).on_device()?);
                self.drop_arenas(device);
                self.at = self.fetch(device, no, status, &told)?;
            }
            At::Fetching { no, status, places, .. } => {
                let made = self.made(device, recipe, offload, no, (&status, &places))?;
                self.drop_arenas(device);
                return Ok(Turn::Made(Box::new(made)));
            }
        }
        Ok(Turn::Moved)
    }

    /// Memory of so many bytes; the same as before if that suffices.
    fn memory(&mut self, device: &mut dyn Device, bytes: u64) -> Result<u64, Trouble> {
        if bytes > self.most {
            let what = format!("a set needs {bytes} B of the device, of {} B", self.most);
            return Err(Trouble::Set(Error::new(ErrorKind::LimitExceeded, what)));
        }
        if let Some(memory) = self.memory.take_if(|memory| memory.bytes < bytes) {
            device.free(memory);
        }
        if self.memory.is_none() {
            self.memory = Some(device.alloc(bytes).with_room()?);
        }
        Ok(self.memory.as_ref().map_or(0, |memory| memory.address))
    }

    /// Has blocks counted whose files do not say how many entries they have.
    fn count(&mut self, device: &mut dyn Device, staged: Staged) -> Result<At, Trouble> {
        let n = staged.blocks.len();
        let mut image = Image::new(staged.bytes);
        let blocks = image.put_all(staged.blocks.iter().map(BlockIn::words));
        let status = image.put_zeros(Status::BYTES);
        // Counts and status come back together.
        let counts = image.put_zeros(16 * n);
        let base = self.memory(device, image.bytes())?;
        let params = Params {
            input: base,
            blocks: base + blocks,
            n_blocks: n as u64,
            status: base + status,
            counts: base + counts,
            ..Params::default()
        };
        self.upload(device, &image, &staged, base)?;
        let ctas = per_warp(device, n as u64);
        device.launch(Queue::Work, Kernel::Count, ctas, &params.words()).on_device()?;
        let part = Status::BYTES..Status::BYTES + 16 * n;
        let down = self.arena(device, part.end)?;
        device.download(Queue::Work, params.status, down, 0..Status::BYTES).on_device()?;
        device.download(Queue::Work, params.counts, down, part).on_device()?;
        let event = device.record(Queue::Work).on_device()?;
        Ok(At::Counting { staged, event })
    }

    /// Copies a set up and starts all kernels over it.
    fn run(
        &mut self,
        device: &mut dyn Device,
        recipe: &Recipe,
        offload: &Offload,
        set: &BlockSet,
        mut staged: Staged,
    ) -> Result<At, Trouble> {
        let totals = staged.place().map_err(Trouble::Set)?;
        let laid = Laid::new(device.shape(), recipe, offload, set, &staged, totals);
        let base = self.memory(device, laid.bytes)?;
        self.upload(device, &laid.image, &staged, base)?;
        let told = Box::new(laid.launch(device, base, &staged, totals)?);
        let down = self.arena(device, Status::BYTES)?;
        device.download(Queue::Work, told.status, down, 0..Status::BYTES).on_device()?;
        let event = device.record(Queue::Work).on_device()?;
        Ok(At::Running { no: staged.no, told, event })
    }

    /// Copies an image and the blocks of a set to `base`, before all kernels that follow.
    fn upload(
        &mut self,
        device: &mut dyn Device,
        image: &Image,
        staged: &Staged,
        base: u64,
    ) -> Result<(), Trouble> {
        let all = image.blocks + image.small.len();
        let arena = self.arena(device, all)?;
        let bytes = device.bytes(arena).on_device()?;
        let (blocks, small) = bytes.split_at_mut(image.blocks.min(all));
        staged.fill(blocks);
        small.copy_from_slice(&image.small);
        device.upload(Queue::Up, arena, 0..all, base).on_device()?;
        let event = device.record(Queue::Up).on_device()?;
        device.after(Queue::Work, event).on_device()
    }

    /// Reads back what the status announces.
    fn fetch(
        &mut self,
        device: &mut dyn Device,
        no: u32,
        status: Status,
        told: &Params,
    ) -> Result<At, Trouble> {
        let places = Places::of(&status, told)?;
        let tables = self.arena(device, places.hashes.end)?;
        for (at, part) in [
            (told.blocks_out, &places.blocks),
            (told.keys_out, &places.keys),
            (told.hashes_out, &places.hashes),
        ] {
            if !part.is_empty() {
                device.download(Queue::Down, at, tables, part.clone()).on_device()?;
            }
        }
        let arena = self.arena(device, places.arena)?;
        if places.arena > 0 {
            device.download(Queue::Down, told.arena, arena, 0..places.arena).on_device()?;
        }
        let event = device.record(Queue::Down).on_device()?;
        Ok(At::Fetching { no, status, places, event })
    }

    /// The output, in the arena that it came to.
    fn made(
        &mut self,
        device: &mut dyn Device,
        recipe: &Recipe,
        offload: &Offload,
        no: u32,
        (status, places): (&Status, &Places),
    ) -> Result<Made, Trouble> {
        let [tables, _] = &self.arenas[..] else { return Err(Trouble::Device(no_arena())) };
        let tables = device.bytes(tables).on_device()?;
        let mut made = made(recipe, &offload.open(), no, status, places, tables)?;
        if status.segments > 0 {
            let arena = self.arenas.pop().ok_or_else(|| Trouble::Device(no_arena()))?;
            made.arena = device.lend(arena).on_device()?;
        }
        Ok(made)
    }
}

fn no_arena() -> Error {
    Error::new(ErrorKind::Internal, "a set on the GPU has lost an arena")
}
