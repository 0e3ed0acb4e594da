//! A hostile engine: the CPU's kernel with faults from a catalogue, to prove that hosts notice.
//!
//! Keeps: every fault but [`FaultPlan::None`] and [`FaultPlan::Late`] either fails the session, hangs it,
//! or makes output that `merge::certify` or the order of whole sets refuses;
//! [`FaultPlan::WrongInput`] shows only where the host counts what its inputs hold, and
//! [`FaultPlan::Falsified`] only where a set is merged again (`merge::prove`). Like every engine that may
//! fail it hands out whole sets, one a poll, and its blocks lie in memory that it lends.

use std::sync::Arc;

use lithify_base::{Error, ErrorKind};
use lithify_merge::certify::Mode;
use lithify_merge::{Carry, Products, Recipe};

use crate::{
    BlockSet, Caps, CpuEngine, Engine, Fault, Item, Offer, Progress, Refusal, Session, Ticket, cpu,
};

mod lie;

pub use lie::Lie;

/// What goes wrong. Counts are of blocks in output order, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultPlan {
    /// Nothing: a plain CPU engine.
    None,
    /// One bit of this block is flipped.
    WrongByte(u64),
    /// This block is missing.
    LostBlock(u64),
    /// This block comes twice.
    TwiceBlock(u64),
    /// A file cut is missing.
    LostFileCut,
    /// This many polls are answered with a pending ticket, which is complete, before anything happens.
    Late(u32),
    /// Never finishes.
    Hangs,
    /// Fails after this many polls as a machine would.
    Breaks(u32),
    /// Does not take any recipe.
    Refuses,
    /// Takes only sets of at most so many bytes, and breaks over larger ones.
    SmallSets(u64),
    /// Claims in its ledger that this many more entries were written.
    WrongLedger(u64),
    /// Claims in its ledger that it read this many more entries, and dropped them.
    WrongInput(u64),
    /// Hands out this set (from 0) without saying that it ends there.
    LostSetDone(u32),
    /// Says that the input is bad, after this many polls.
    Blames(u32),
    /// Says that the input does not suit it, after this many polls.
    Unsuitable(u32),
    /// Merges something else than it was told to, and says the truth of what came out.
    Falsified(Lie),
}

/// The engine.
#[derive(Clone, Copy, Debug)]
pub struct MockEngine {
    /// What goes wrong in every session.
    pub plan: FaultPlan,
}

impl Engine for MockEngine {
    fn caps(&self) -> Caps {
        let max_set_bytes = match self.plan {
            FaultPlan::SmallSets(most) => most,
            _ => u64::MAX,
        };
        Caps { name: "mock", certify: Mode::Full, prove: 1, max_set_bytes, ..CpuEngine.caps() }
    }
    fn open(&self, recipe: Arc<Recipe>) -> Result<Box<dyn Session>, Refusal> {
        self.wrap(cpu::whole_sets(self.heard(recipe), None))
    }
    fn resume(&self, recipe: Arc<Recipe>, carry: Carry) -> Result<Box<dyn Session>, Refusal> {
        self.wrap(cpu::whole_sets(self.heard(recipe), Some(carry)))
    }
}

impl MockEngine {
    /// The recipe that it follows.
    fn heard(&self, recipe: Arc<Recipe>) -> Arc<Recipe> {
        match self.plan {
            FaultPlan::Falsified(lie) => lie.falsify(&recipe),
            _ => recipe,
        }
    }
    fn wrap(&self, inner: Result<Box<dyn Session>, Refusal>) -> Result<Box<dyn Session>, Refusal> {
        if self.plan == FaultPlan::Refuses {
            return Err(Refusal { reason: "the mock refuses".into() });
        }
        Ok(Box::new(MockSession {
            inner: inner?,
            plan: self.plan,
            polls: 0,
            blocks: 0,
            lost: false,
            offered: 0,
            too_large: false,
        }))
    }
}

struct MockSession {
    inner: Box<dyn Session>,
    plan: FaultPlan,
    polls: u32,
    blocks: u64,
    lost: bool,
    /// Blocks of the input so far.
    offered: u64,
    too_large: bool,
}

impl Session for MockSession {
    fn offer(&mut self, set: BlockSet) -> Offer {
        if let FaultPlan::Falsified(lie) = self.plan {
            let mut set = set;
            let offered = lie.spoil(&mut set, self.offered);
            return match self.inner.offer(set) {
                Offer::Taken => {
                    self.offered = offered;
                    Offer::Taken
                }
                full => full,
            };
        }
        self.too_large |= matches!(self.plan, FaultPlan::SmallSets(most) if set.bytes() > most);
        self.inner.offer(set)
    }
    fn seal(&mut self) {
        self.inner.seal();
    }
    fn poll(&mut self, out: &mut Products) -> Progress {
        out.clear();
        self.polls += 1;
        match self.plan {
            FaultPlan::Hangs => return Progress::Pending(Ticket::new()),
            FaultPlan::Late(n) if self.polls <= n => return Progress::Pending(Ticket::completed()),
            FaultPlan::Breaks(n) if self.polls > n => return broke("the mock broke down"),
            FaultPlan::SmallSets(_) if self.too_large => return broke("the set is too large"),
            FaultPlan::Blames(n) if self.polls > n => {
                let e = Error::corruption("the mock says that a block is bad");
                return Progress::Failed(Fault::Input(e));
            }
            FaultPlan::Unsuitable(n) if self.polls > n => {
                let e = Error::unsupported("the mock does not merge such entries");
                return Progress::Failed(Fault::Unsuitable(e));
            }
            _ => {}
        }
        let mut progress = self.inner.poll(out);
        if let (Progress::Done(ledger), FaultPlan::WrongLedger(n)) = (&mut progress, self.plan) {
            ledger.entries_out += n;
        }
        if let (Progress::Done(ledger), FaultPlan::WrongInput(n)) = (&mut progress, self.plan) {
            ledger.entries_in += n;
            ledger.dropped[0] += n;
        }
        self.spoil(out);
        out.lend_own();
        progress
    }
    fn cancel(self: Box<Self>) {
        self.inner.cancel();
    }
}

fn broke(what: &str) -> Progress {
    Progress::Failed(Fault::Engine(Error::new(ErrorKind::Internal, what)))
}

impl MockSession {
    fn spoil(&mut self, out: &mut Products) {
        let mut items: Vec<Item> = Vec::new();
        for item in out.items().to_vec() {
            let no = self.blocks;
            match (&item, self.plan) {
                (Item::Block(_), FaultPlan::LostBlock(n)) if n == no => {}
                (Item::FileCut(_), FaultPlan::LostFileCut) if !self.lost => self.lost = true,
                (Item::Block(_), FaultPlan::TwiceBlock(n)) if n == no => {
                    items.extend([item.clone(), item.clone()]);
                }
                (Item::Block(b), FaultPlan::WrongByte(n)) if n == no => {
                    let bytes = out.block_mut(b);
                    let middle = bytes.len() / 2;
                    if let Some(byte) = bytes.get_mut(middle) {
                        *byte ^= 0x10;
                    }
                    items.push(item.clone());
                }
                (Item::SetDone(done), FaultPlan::LostSetDone(n)) if done.no == n => {}
                _ => items.push(item.clone()),
            }
            self.blocks += u64::from(matches!(item, Item::Block(_)));
        }
        out.set_items(items);
    }
}
