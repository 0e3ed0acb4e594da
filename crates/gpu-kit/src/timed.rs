//! A device that notes what its calls and its kernels take.
//!
//! Keeps: each kernel runs alone: the next call waits until it is through. So a kernel's time has a launch and an event
//! in it, which step 5 measures by themselves.

use std::ops::Range;

use lithify_base::Result;
use lithify_engine_gpu::Device;
use lithify_engine_gpu::device::{Arena, Event, Kernel, Memory, Queue, Shape};
use lithify_env::RtRef;
use lithify_env::sync::{Arc, Mutex};
use lithify_merge::{Bytes, Lent};

/// What was noted.
#[derive(Clone, Debug, Default)]
pub(crate) struct Notes {
    /// Nanoseconds of each kernel, in the order of `Kernel::ALL`.
    pub(crate) kernels: [f64; Kernel::ALL.len()],
    /// Calls that ask for something, and what they took of the thread that made them.
    pub(crate) calls: u64,
    /// The same.
    pub(crate) calls_ns: f64,
}

/// The device.
pub(crate) struct Timed {
    device: Box<dyn Device>,
    rt: RtRef,
    alone: bool,
    notes: Arc<Mutex<Notes>>,
}

impl Timed {
    /// Over `device`; with `alone` kernels are waited for.
    pub(crate) fn new(device: Box<dyn Device>, rt: RtRef, alone: bool) -> Timed {
        Timed { device, rt, alone, notes: Arc::default() }
    }
    /// What it notes.
    pub(crate) fn notes(&self) -> Arc<Mutex<Notes>> {
        self.notes.clone()
    }
    /// Waits for an event.
    fn through(&mut self, event: Event) -> Result<()> {
        while !self.device.ready(event)? {
            self.device.look();
        }
        Ok(())
    }
    fn note<T>(&mut self, call: impl FnOnce(&mut dyn Device) -> T) -> T {
        let start = self.rt.now().nanos();
        let answer = call(&mut *self.device);
        let took = (self.rt.now().nanos() - start) as f64;
        let mut notes = self.notes.lock();
        notes.calls += 1;
        notes.calls_ns += took;
        answer
    }
}

impl Device for Timed {
    fn name(&self) -> String {
        self.device.name()
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
    fn takes(&self, arena: &Arena, asked: usize) -> usize {
        self.device.takes(arena, asked)
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
        self.note(|device| device.upload(queue, from, part, to))
    }
    fn send(&mut self, queue: Queue, from: Bytes, to: u64) -> Result<()> {
        self.note(|device| device.send(queue, from, to))
    }
    fn download(&mut self, queue: Queue, from: u64, to: &Arena, part: Range<usize>) -> Result<()> {
        self.note(|device| device.download(queue, from, to, part))
    }
    fn launch(&mut self, queue: Queue, kernel: Kernel, ctas: u32, params: &[u64]) -> Result<()> {
        if !self.alone {
            return self.note(|device| device.launch(queue, kernel, ctas, params));
        }
        let before = self.device.record(queue)?;
        self.through(before)?;
        let start = self.rt.now().nanos();
        self.device.launch(queue, kernel, ctas, params)?;
        let after = self.device.record(queue)?;
        self.through(after)?;
        let took = (self.rt.now().nanos() - start) as f64;
        let mut notes = self.notes.lock();
        notes.kernels[kernel as usize] += took;
        Ok(())
    }
    fn record(&mut self, queue: Queue) -> Result<Event> {
        self.note(|device| device.record(queue))
    }
    fn look(&mut self) {
        self.device.look();
    }
    fn ready(&mut self, event: Event) -> Result<bool> {
        self.device.ready(event)
    }
    fn after(&mut self, queue: Queue, event: Event) -> Result<()> {
        self.note(|device| device.after(queue, event))
    }
}
