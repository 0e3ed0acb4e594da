//! A device that answers at once with what another one made of the same sets: for what the host's half costs.
//!
//! Keeps: the calls of a job are those that were recorded, in the same order, which takes an engine with one unit;
//! another call is an error of the device. What comes down was recorded beforehand and is moved, not copied, as a
//! copy of a device costs the host nothing; memory for copies up is used again, as pinned memory is.
//! Leaves to others: making it.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

use lithify_base::{Error, ErrorKind, Result};
use lithify_env::sync::{Arc, Mutex};
use lithify_merge::{Bytes, Lent};

use crate::device::{Arena, Device, Event, Kernel, Memory, Queue, Shape};

/// What came down, copy by copy.
#[derive(Clone, Debug, Default)]
pub struct Tape(VecDeque<Vec<u8>>);

/// A device at work, whose copies down are recorded.
pub struct Recorder<D> {
    device: D,
    tape: Arc<Mutex<Tape>>,
}

impl<D: Device> Recorder<D> {
    /// Over `device`.
    pub fn new(device: D) -> Recorder<D> {
        Recorder { device, tape: Arc::default() }
    }
    /// What it records.
    pub fn tape(&self) -> Arc<Mutex<Tape>> {
        self.tape.clone()
    }
}

impl<D: Device> Device for Recorder<D> {
    fn name(&self) -> String {
        format!("{}, recorded", self.device.name())
    }
    fn shape(&self) -> Shape {
        self.device.shape()
    }
    fn alloc(&mut self, bytes: u64) -> Result<Memory> {
        self.device.alloc(bytes)
    }
    fn free(&mut self, memory: Memory) {
        self.device.free(memory);
    }
    fn arena(&mut self, bytes: usize) -> Result<Arena> {
        self.device.arena(bytes)
    }
    fn bytes(&mut self, arena: &Arena) -> Result<&mut [u8]> {
        self.device.bytes(arena)
    }
    fn drop_arena(&mut self, arena: Arena) {
        self.device.drop_arena(arena);
    }
    fn lend(&mut self, arena: Arena) -> Result<Box<dyn Lent>> {
        self.device.lend(arena)
    }
    fn upload(&mut self, queue: Queue, from: &Arena, part: Range<usize>, to: u64) -> Result<()> {
        self.device.upload(queue, from, part, to)
    }
    fn send(&mut self, queue: Queue, from: Bytes, to: u64) -> Result<()> {
        self.device.send(queue, from, to)
    }
    fn download(&mut self, queue: Queue, from: u64, to: &Arena, part: Range<usize>) -> Result<()> {
        self.device.download(queue, from, to, part.clone())?;
        let bytes = self.device.bytes(to)?.get(part).unwrap_or_default().to_vec();
        self.tape.lock().0.push_back(bytes);
        Ok(())
    }
    fn launch(&mut self, queue: Queue, kernel: Kernel, ctas: u32, params: &[u64]) -> Result<()> {
        self.device.launch(queue, kernel, ctas, params)
    }
    fn record(&mut self, queue: Queue) -> Result<Event> {
        self.device.record(queue)
    }
    fn ready(&mut self, event: Event) -> Result<bool> {
        self.device.ready(event)
    }
    fn after(&mut self, queue: Queue, event: Event) -> Result<()> {
        self.device.after(queue, event)
    }
}

/// A device that plays a tape.
pub struct Replay {
    shape: Shape,
    tape: Tape,
    next: u64,
    arenas: BTreeMap<u64, Vec<u8>>,
    /// Arenas that were given back.
    spare: Vec<Vec<u8>>,
}

impl Replay {
    /// Plays what a device of this shape made.
    pub fn new(shape: Shape, tape: Tape) -> Replay {
        Replay { shape, tape, next: 0, arenas: BTreeMap::new(), spare: Vec::new() }
    }
}

fn other_job() -> Error {
    Error::new(ErrorKind::Internal, "this is not the job that was recorded")
}

impl Device for Replay {
    fn name(&self) -> String {
        "replay".to_owned()
    }
    fn shape(&self) -> Shape {
        self.shape
    }
    fn alloc(&mut self, bytes: u64) -> Result<Memory> {
        // Nothing is ever there.
        Ok(Memory { address: 64, bytes })
    }
    fn free(&mut self, _memory: Memory) {}
    fn arena(&mut self, bytes: usize) -> Result<Arena> {
        let mut arena = match self.spare.iter().position(|spare| spare.capacity() >= bytes) {
            Some(at) => self.spare.swap_remove(at),
            None => Vec::new(),
        };
        arena.resize(bytes, 0);
        self.next += 1;
        self.arenas.insert(self.next, arena);
        Ok(Arena(self.next))
    }
    fn bytes(&mut self, arena: &Arena) -> Result<&mut [u8]> {
        self.arenas.get_mut(&arena.0).map(Vec::as_mut_slice).ok_or_else(other_job)
    }
    fn drop_arena(&mut self, arena: Arena) {
        self.spare.extend(self.arenas.remove(&arena.0));
    }
    fn lend(&mut self, arena: Arena) -> Result<Box<dyn Lent>> {
        Ok(Box::new(self.arenas.remove(&arena.0).ok_or_else(other_job)?))
    }
    fn upload(&mut self, _: Queue, _: &Arena, _: Range<usize>, _: u64) -> Result<()> {
        Ok(())
    }
    fn send(&mut self, _: Queue, _: Bytes, _: u64) -> Result<()> {
        Ok(())
    }
    fn download(&mut self, _: Queue, _: u64, to: &Arena, part: Range<usize>) -> Result<()> {
        let bytes = self.tape.0.pop_front().ok_or_else(other_job)?;
        let arena = self.arenas.get_mut(&to.0).ok_or_else(other_job)?;
        if bytes.len() != part.len() {
            return Err(other_job());
        }
        if part == (0..arena.len()) {
            self.spare.push(std::mem::replace(arena, bytes));
            return Ok(());
        }
        arena.get_mut(part).ok_or_else(other_job)?.copy_from_slice(&bytes);
        Ok(())
    }
    fn launch(&mut self, _: Queue, _: Kernel, _: u32, _: &[u64]) -> Result<()> {
        Ok(())
    }
    fn record(&mut self, _queue: Queue) -> Result<Event> {
        Ok(Event(0))
    }
    fn ready(&mut self, _event: Event) -> Result<bool> {
        Ok(true)
    }
    fn after(&mut self, _queue: Queue, _event: Event) -> Result<()> {
        Ok(())
    }
}
