//! What a GPU's driver is asked for, call by call, and what its answers mean.
//!
//! Keeps: a member of [`Driver`] makes the call and decides nothing; what an answer means is decided here and in
//! [`card`](crate::card), and so is tested without a driver.
//! Leaves to others: the driver itself (`cuda`).

use std::ops::Range;

use lithify_base::{Error, ErrorKind};

use crate::arena::Pinned;

/// What the driver answers when it does not succeed: its own number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Code(pub u32);

/// There is not so much memory.
pub const NO_MEMORY: Code = Code(2);
/// There is no such GPU.
const NO_DEVICE: Code = Code(100);
/// The image has no code for this GPU.
const NO_BINARY: Code = Code(209);
/// The image needs a newer driver.
const NEWER_PTX: Code = Code(222);
/// An event has not happened yet.
pub const NOT_READY: Code = Code(600);

impl Code {
    /// What to make of it, in a call that is named by what it does.
    pub fn error(self, driver: &dyn Driver, call: &str) -> Error {
        let what = format!("the GPU's driver could not {call}: {}", self.named(driver));
        let kind = if self == NO_MEMORY { ErrorKind::LimitExceeded } else { ErrorKind::Internal };
        Error::new(kind, what)
    }
    /// Its name by the driver, its number, and what to do where there is something.
    pub fn named(self, driver: &dyn Driver) -> String {
        let hint = match self {
            NO_DEVICE => "; the driver sees no GPU",
            NO_BINARY => "; the image of the kernels has no code for this GPU",
            NEWER_PTX => "; the image of the kernels is newer than the driver",
            _ => "",
        };
        format!("{} ({}){hint}", driver.name_of(self), self.0)
    }
}

/// A stream of the driver, by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stream(pub usize);
/// An event of the driver, by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signal(pub usize);

/// A copy between host and GPU.
#[derive(Debug)]
pub enum Transfer<'a> {
    /// To an address of the GPU from a part of an arena.
    Up(&'a Pinned, Range<usize>, u64),
    /// To an address of the GPU from bytes that stay as they are until the copy has been made.
    Send(&'a [u8], u64),
    /// From an address of the GPU to a part of an arena.
    Down(u64, &'a Pinned, Range<usize>),
}

/// What is known of a GPU before it is used.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CardFacts {
    /// Its name.
    pub name: String,
    /// What the driver supports: 13000 is CUDA 13.0, which drivers from 580 on have.
    pub driver: u32,
    /// Its generation, as 90 for 9.0.
    pub capability: u32,
    /// Its multiprocessors.
    pub processors: u32,
    /// Engines for copies.
    pub copiers: u32,
    /// Bytes of its memory, and of that what is free.
    pub memory: u64,
    /// The same.
    pub free: u64,
}

/// A driver with one GPU. Calls are made in the order of this list; those from `stream` on need a loaded image.
///
/// Addresses are those that `alloc` gave: a caller holds each range against what it has.
pub trait Driver: Send + Sync {
    /// Whether there is a library of a driver at all. Nothing else is called before.
    fn is_there(&self) -> bool;
    /// What the driver supports; makes it ready.
    fn version(&self) -> Result<u32, Code>;
    /// How many GPUs it sees.
    fn count(&self) -> Result<u32, Code>;
    /// Takes the GPU of this number, until it is closed.
    fn take(&self, no: u32) -> Result<(), Code>;
    /// What it is.
    fn facts(&self) -> Result<CardFacts, Code>;
    /// Loads an image of kernels, which is there until it is closed.
    fn load(&self, image: &[u8]) -> Result<(), Code>;
    /// Finds kernels by name; they are numbered in this order.
    fn kernels(&self, names: &[&str]) -> Result<(), Code>;
    /// Reads words of the image; as many as it has, zeros for what is missing.
    fn words(&self, name: &str, out: &mut [u64]) -> Result<(), Code>;
    /// A new stream.
    fn stream(&self) -> Result<Stream, Code>;
    /// A new event.
    fn signal(&self) -> Result<Signal, Code>;
    /// Memory of the GPU: its address.
    fn alloc(&self, bytes: u64) -> Result<u64, Code>;
    /// Gives it back.
    fn free(&self, address: u64) -> Result<(), Code>;
    /// Memory of the host that copies may go from and to.
    fn pin(&self, bytes: usize) -> Result<Pinned, Code>;
    /// Gives it back.
    fn unpin(&self, pinned: Pinned) -> Result<(), Code>;
    /// Makes copies that all go one way, in any order.
    fn copy(&self, stream: Stream, copies: &[Transfer<'_>]) -> Result<(), Code>;
    /// Starts a kernel.
    fn launch(
        &self,
        stream: Stream,
        kernel: u32,
        ctas: u32,
        threads: u32,
        params: &[u64],
    ) -> Result<(), Code>;
    /// Has an event happen once all before it in a stream has.
    fn record(&self, signal: Signal, stream: Stream) -> Result<(), Code>;
    /// Whether it has; `NOT_READY` if not, another code if what came before it went wrong.
    fn query(&self, signal: Signal) -> Result<(), Code>;
    /// Nanoseconds from one event to another; both have happened.
    fn elapsed(&self, from: Signal, to: Signal) -> Result<f64, Code>;
    /// Has a stream wait for an event.
    fn wait(&self, stream: Stream, signal: Signal) -> Result<(), Code>;
    /// Gives back all that is left of what it made here, and the GPU. All that it was asked for has been done; nothing else is
    /// called after it, and nothing of it after an answer that is no success.
    fn close(&self) -> Result<(), Code>;
    /// The driver's name for a code.
    fn name_of(&self, code: Code) -> String;
}
