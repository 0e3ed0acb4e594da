//! Compaction engines: the seam every machine plugs into, and the reference engine on the CPU.
//!
//! Keeps: an engine is a pure function from a recipe and block sets to products; it knows no
//! files, jobs or policies, and nothing it returns is trusted (`merge::certify`). Every engine
//! passes `conformance`: the same bytes as the naive twin. That suite, and `mock`, an engine that fails as
//! it is told, are built with the cargo feature `testing` only, and generated inputs for benches (`stream`)
//! with `streams`.
//! Leaves to others: cutting and reading sets, writing products, choosing an engine, and going on with
//! the CPU where another machine fails.
//!
//! ```text
//! open(recipe) -> session;  offer(set)*  seal();  poll(products)* until Done(ledger) | Failed
//! ```
//!
//! # What the host relies on
//! [`CpuEngine`] runs inside of the program, and a bad input is all that can go wrong with it. Every other
//! engine may fail at any moment, and must leave output that the host can use. So **every batch of products
//! that such an engine hands out ends with an [`Item::SetDone`]**, or is the last one, handed out with
//! [`Progress::Done`]. The host then knows, for all it has taken, the carry from which the CPU goes on. A
//! batch that ends in the middle of a set counts as a lie.
//!
//! The host keeps the sets that it offered since the last carry. It goes on with the CPU if the engine
//! refuses, answers [`Progress::Failed`], hands out a batch that certification refuses, or stays silent for
//! longer than ten times its own prediction ([`Session::predicted`], else [`Cost`]) and two seconds. None of these
//! fails a compaction.
#![forbid(unsafe_code)]

#[cfg(feature = "testing")]
pub mod conformance;
pub mod cpu;
pub mod memory;
#[cfg(feature = "testing")]
pub mod mock;
#[cfg(feature = "streams")]
pub mod stream;
#[cfg(feature = "testing")]
pub mod testing;
pub mod tune;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use lithify_base::Error;
use lithify_merge::certify;

pub use cpu::CpuEngine;
use lithify_env::IoBuf;
pub use lithify_env::Ticket;
pub use lithify_merge::{
    BlockMeta, BlockSet, BlockSlice, Bytes, Carry, CleanRange, FileCut, Item, JobRange, Ledger,
    Products, Recipe, RunSlice, SetDone,
};

/// What an engine can do and what it costs. The host routes by it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Caps {
    /// Short name for logs and statistics; two engines of one database have different names.
    pub name: &'static str,
    /// Bytes of a set that suit it best.
    pub set_bytes: u64,
    /// What sets may shrink to as the end of a part comes near ([`Caps::next_bytes`]); from `set_bytes` on all are alike.
    pub last_bytes: u64,
    /// Largest set it takes; beyond it the CPU takes over.
    pub max_set_bytes: u64,
    /// Sets it likes to hold at once, so that reading overlaps merging.
    pub sets_in_flight: usize,
    /// Runs of which a set should have blocks at most, at least 1; `u16::MAX` where their number does not
    /// matter. Sets are cut to keep it where keys allow that.
    pub ways: u16,
    /// Most runs of a set that it takes; beyond it the CPU takes over.
    pub max_ways: u16,
    /// How much of its output is looked at before it is written: [`certify::Mode::Meta`] for the kernel in
    /// this process, [`certify::Mode::Sums`] for a device that has proven itself, and
    /// [`certify::Mode::Full`] for all that runs elsewhere, or on memory that others can reach.
    pub certify: certify::Mode,
    /// One in this many sets is checked by merging it again on the CPU, before its output counts. 1 checks
    /// every set; so does 0, as the host trusts no engine that does not say. The kernel in this process says
    /// 0, and is not checked so.
    pub prove: u32,
    /// Cost of a session, in nanoseconds: fixed, and per byte of input. The host chooses an engine by it,
    /// and takes one for hung that is silent for much longer, unless a session predicts more
    /// ([`Session::predicted`]).
    pub cost: Cost,
}

impl Caps {
    /// Bytes of the next set of a part with `left` bytes: a quarter of them at most, if that is not below `last_bytes`. What comes
    /// before a machine and behind it rests while its last sets pass, and for less long if these are small.
    ///
    /// ```
    /// use lithify_engine::{Caps, CpuEngine, Engine};
    /// let caps = Caps { set_bytes: 8, last_bytes: 4, ..CpuEngine.caps() };
    /// assert_eq!([100, 32, 24, 8].map(|left| caps.next_bytes(left)), [8, 8, 6, 4]);
    /// ```
    pub fn next_bytes(&self, left: u64) -> u64 {
        self.set_bytes.min((left / 4).max(self.last_bytes)).max(1)
    }
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
    /// Estimated nanoseconds for a session with `bytes` of input.
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

impl From<String> for Refusal {
    fn from(reason: String) -> Refusal {
        Refusal { reason }
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Refusal {
        Refusal { reason: error.to_string() }
    }
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
    /// Work goes on elsewhere, and nothing is to be done before the ticket completes. The host polls again
    /// then, or a quarter of a second later if the ticket is not complete by that time.
    Pending(Ticket),
    /// The output is complete. The products of this batch are the last.
    Done(Box<Ledger>),
    /// The session is over. Products of this batch do not count.
    Failed(Fault),
}

impl Progress {
    /// What a session answers whose machine may fail: how far it is, or why the host has to go on with the CPU.
    /// `out` is cleared then, as nothing in it counts.
    pub fn or_fault(advanced: Result<Progress, Fault>, out: &mut Products) -> Progress {
        advanced.unwrap_or_else(|fault| {
            out.clear();
            Progress::Failed(fault)
        })
    }
}

/// Why a session failed.
#[derive(Clone, Debug)]
pub enum Fault {
    /// The input is bad: a block does not read, or entries are not in order. From an engine other than the
    /// CPU it is a hint only: the CPU tries the same sets, and names the block.
    Input(Error),
    /// The machine failed: go on with another engine from the last carry, and let this one rest.
    Engine(Error),
    /// The machine is sound, and this input is not for it: entries of a kind that it does not merge, a key that is too
    /// long, no room for a set. Go on with another engine from the last carry. It is no reason to rest; an engine
    /// that says so over most of what it gets is left out for some parts.
    Unsuitable(Error),
}

impl Fault {
    /// The error inside.
    pub fn error(&self) -> &Error {
        match self {
            Fault::Input(e) | Fault::Engine(e) | Fault::Unsuitable(e) => e,
        }
    }
}

/// A machine that compacts: the CPU, a device, another host.
pub trait Engine: Send + Sync {
    /// What it can do.
    fn caps(&self) -> Caps;
    /// The same for a compaction by `recipe`: sizes of sets and what they cost may depend on what its inputs hold, and on
    /// its codec. The host sizes sets and chooses an engine by this.
    fn caps_for(&self, recipe: &Recipe) -> Caps {
        let _ = recipe;
        self.caps()
    }
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
    /// Memory for so many bytes of an input, from which its machine copies without another copy of the host's. None if
    /// there is none at this moment: the host then takes memory of its own, which does as well. Never blocks.
    fn input_buffer(&self, bytes: usize) -> Option<IoBuf> {
        let _ = bytes;
        None
    }
    /// Tells the engine that what it returned was disproved by `error`. The database gives it no more work;
    /// the engine may keep evidence, or give its machine up for other databases, too.
    fn disown(&self, error: &Error) {
        let _ = error;
    }
    /// Why its machine gets no work any more, if so, and what the user can do: a sentence or two for people.
    fn trouble(&self) -> Option<String> {
        None
    }
    /// Figures about its machine, by name, for statistics: for instance how much of it is in use.
    fn report(&self) -> Vec<(&'static str, f64)> {
        Vec::new()
    }
}

/// One compaction on one engine: sets go in, and products come out, in key order.
pub trait Session: Send {
    /// Hands over the next set. Never blocks.
    fn offer(&mut self, set: BlockSet) -> Offer;
    /// No more sets will come.
    fn seal(&mut self);
    /// Does a bounded slice of work on the caller's thread (a millisecond or less, but for a long chain of merge operands)
    /// and replaces the
    /// content of `out` by what is finished: whole sets, unless this is the CPU engine. Never blocks.
    fn poll(&mut self, out: &mut Products) -> Progress;
    /// How long it expects to be silent over the sets that it has, in the time of the caller's clock; none if
    /// that is what [`Caps::cost`] says. An engine whose cost is not the time that it takes, such as one
    /// that is simulated, or whose machine has others' work as well, says so here: the host takes it for hung
    /// after ten times the longer of the two, and two seconds.
    fn predicted(&self) -> Option<Duration> {
        None
    }
    /// Gives up. Buffers of sets are released before it returns, but for those that a machine may still
    /// write to.
    fn cancel(self: Box<Self>);
}
