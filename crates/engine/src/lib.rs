//! Compaction engines: the seam every machine plugs into, and the reference engine on the CPU.
//!
//! Keeps: an engine is a pure function from a recipe and block sets to products; it knows no
//! files, jobs or policies, and nothing it returns is trusted (`merge::certify`). Every engine
//! passes [`conformance`]: the same bytes as the naive twin.
//! Leaves to others: cutting and reading sets, writing products, choosing an engine.
//!
//! ```text
//! open(recipe) -> session;  offer(set)*  seal();  poll(products)* until Done(ledger) | Failed
//! ```
#![forbid(unsafe_code)]

pub mod conformance;
pub mod cpu;
pub mod mock;

use std::fmt;
use std::sync::Arc;

use lithify_base::Error;
use lithify_merge::{Ledger, Recipe};

pub use cpu::CpuEngine;
pub use lithify_merge::{
    BlockMeta, BlockSet, BlockSlice, Bytes, Carry, CleanRange, FileCut, Item, JobRange, Products,
    RunSlice, SetDone,
};

/// What an engine can do and what it costs. The host routes by it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Caps {
    /// Short name for logs and statistics.
    pub name: &'static str,
    /// Bytes of a set that suit it best.
    pub set_bytes: u64,
    /// Largest set it takes; beyond it the CPU takes over.
    pub max_set_bytes: u64,
    /// Sets it likes to hold at once, so that reading overlaps merging.
    pub sets_in_flight: usize,
    /// Most runs of which a set may have blocks, at least 1; `u16::MAX` where their number does not
    /// matter. Sets are cut to keep it where keys allow that; the CPU takes over those that exceed it.
    pub ways: u16,
    /// Whether its output needs [`lithify_merge::certify::Mode::Full`]: it runs elsewhere, or on
    /// memory that others can reach.
    pub certify_fully: bool,
    /// Cost of a session, in nanoseconds: fixed, and per byte of input.
    pub cost: Cost,
}

/// A linear cost model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cost {
    /// Nanoseconds for an empty session.
    pub fixed_ns: f64,
    /// Nanoseconds per input byte.
    pub ns_per_byte: f64,
}

impl Cost {
    /// Estimated nanoseconds for `bytes` of input.
    pub fn of(&self, bytes: u64) -> f64 {
        self.fixed_ns + self.ns_per_byte * bytes as f64
    }
}

/// Why an engine does not take a compaction. The job goes to the CPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// A sentence for the log.
    pub reason: String,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)
    }
}

/// What became of an offered set.
#[derive(Debug)]
pub enum Offer {
    /// The session has it.
    Taken,
    /// No room now; poll, then offer it again.
    Full(BlockSet),
}

/// How far a session is.
#[derive(Debug)]
pub enum Progress {
    /// More to do, or the next set is wanted: poll again, and offer a set if one is ready.
    More,
    /// Everything taken so far is merged: only an offer or a seal gets it further.
    Starved,
    /// Work goes on elsewhere; poll again in a while.
    Pending,
    /// The output is complete.
    Done(Box<Ledger>),
    /// The session is over; nothing it produced since the last taken `SetDone` may be used.
    Failed(Fault),
}

/// Why a session failed.
#[derive(Clone, Debug)]
pub enum Fault {
    /// The input is bad; another engine would find the same.
    Input(Error),
    /// The engine cannot do this input, or its machine failed: go on with another engine from the
    /// last carry.
    Engine(Error),
}

impl Fault {
    /// The error inside.
    pub fn error(&self) -> &Error {
        match self {
            Fault::Input(e) | Fault::Engine(e) => e,
        }
    }
}

/// A machine that compacts: the CPU, a device, another host.
pub trait Engine: Send + Sync {
    /// What it can do.
    fn caps(&self) -> Caps;
    /// Starts a compaction, at its beginning.
    ///
    /// # Errors
    /// A refusal if the engine cannot follow the recipe.
    fn open(&self, recipe: Arc<Recipe>) -> Result<Box<dyn Session>, Refusal>;
    /// Starts in the middle, after the set whose end gave `carry`. Engines that cannot refuse.
    ///
    /// # Errors
    /// A refusal, as for [`Engine::open`].
    fn resume(&self, recipe: Arc<Recipe>, carry: Carry) -> Result<Box<dyn Session>, Refusal> {
        let _ = (recipe, carry);
        Err(Refusal { reason: format!("{} cannot go on from a carry", self.caps().name) })
    }
}

/// One compaction on one engine: sets go in, and products come out, in key order.
pub trait Session: Send {
    /// Hands over the next set. Never blocks.
    fn offer(&mut self, set: BlockSet) -> Offer;
    /// No more sets will come.
    fn seal(&mut self);
    /// Does a bounded slice of work on the caller's thread (a few milliseconds) and replaces the
    /// content of `out` by what is finished. Never blocks.
    fn poll(&mut self, out: &mut Products) -> Progress;
    /// Gives up. Buffers of sets are released before it returns.
    fn cancel(self: Box<Self>);
}
