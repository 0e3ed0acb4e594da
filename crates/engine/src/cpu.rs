//! The reference engine: the merge kernel on the caller's thread.
//!
//! Keeps: one poll reads about [`SLICE_BYTES`] of input, so its caller can stop, write or
//! yield several times a millisecond. Takes every recipe that makes sense.
//! Leaves to others: threads; several sessions on several threads share nothing.

use std::collections::VecDeque;
use std::sync::Arc;

use lithify_base::{Error, ErrorKind, Result};
use lithify_merge::certify::Mode;
use lithify_merge::{BlockSet, Carry, Kernel, Products, Recipe, SLICE_BYTES, Work};

use crate::{Caps, Cost, Engine, Fault, Offer, Progress, Refusal, Session};

/// Sets a session holds, the one in work included.
const SETS: usize = 2;

/// The engine. Stateless.
#[derive(Clone, Copy, Debug, Default)]
pub struct CpuEngine;

impl Engine for CpuEngine {
    fn caps(&self) -> Caps {
        Caps {
            name: "cpu",
            set_bytes: 4 << 20,
            last_bytes: u64::MAX,
            max_set_bytes: u64::MAX,
            sets_in_flight: SETS,
            ways: u16::MAX,
            max_ways: u16::MAX,
            certify: Mode::Meta,
            prove: 0,
            cost: Cost { fixed_ns: 20_000.0, ns_per_byte: 0.8 },
        }
    }
    fn open(&self, recipe: Arc<Recipe>) -> Result<Box<dyn Session>, Refusal> {
        CpuSession::start(Kernel::new(recipe), SLICE_BYTES as u64)
    }
    fn resume(&self, recipe: Arc<Recipe>, carry: Carry) -> Result<Box<dyn Session>, Refusal> {
        CpuSession::start(Kernel::resume(recipe, carry), SLICE_BYTES as u64)
    }
}

/// A session of the same kernel that hands out whole sets, as engines do that may fail: for the mock.
#[cfg(feature = "testing")]
pub(crate) fn whole_sets(
    recipe: Arc<Recipe>,
    carry: Option<Carry>,
) -> Result<Box<dyn Session>, Refusal> {
    let kernel = match carry {
        None => Kernel::new(recipe),
        Some(carry) => Kernel::resume(recipe, carry),
    };
    CpuSession::start(kernel, u64::MAX)
}

/// A session: the kernel and the sets that wait for it.
struct CpuSession {
    kernel: Kernel,
    /// Input bytes merged per poll.
    slice: u64,
    waiting: VecDeque<BlockSet>,
    busy: bool,
    sealed: bool,
    over: bool,
}

impl CpuSession {
    fn start(kernel: Result<Kernel>, slice: u64) -> Result<Box<dyn Session>, Refusal> {
        let waiting = VecDeque::new();
        Ok(Box::new(CpuSession {
            kernel: kernel?,
            slice,
            waiting,
            busy: false,
            sealed: false,
            over: false,
        }))
    }

    fn advance(&mut self) -> Result<Progress> {
        if self.over {
            return Err(Error::new(ErrorKind::InvalidArgument, "this session is over"));
        }
        if !self.busy {
            let Some(set) = self.waiting.pop_front() else {
                if !self.sealed {
                    return Ok(Progress::Starved);
                }
                self.over = true;
                return Ok(Progress::Done(Box::new(self.kernel.finish()?)));
            };
            self.kernel.begin(set)?;
            self.busy = true;
        }
        self.busy = self.kernel.work(self.slice)? == Work::More;
        Ok(Progress::More)
    }
}

impl Session for CpuSession {
    fn offer(&mut self, set: BlockSet) -> Offer {
        if self.waiting.len() + usize::from(self.busy) >= SETS || self.sealed {
            return Offer::Full(set);
        }
        self.waiting.push_back(set);
        Offer::Taken
    }
    fn seal(&mut self) {
        self.sealed = true;
    }
    fn poll(&mut self, out: &mut Products) -> Progress {
        out.clear();
        match self.advance() {
            Ok(progress) => {
                self.kernel.drain(out);
                progress
            }
            Err(e) => {
                self.over = true;
                Progress::Failed(Fault::Input(e))
            }
        }
    }
    fn cancel(self: Box<Self>) {}
}
