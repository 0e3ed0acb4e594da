//! The engine at work, other than the CPU: what is kept for the CPU to go on from, which of its sets are proven,
//! and how long it may be silent.

use std::collections::VecDeque;
use std::time::Duration;

use lithify_base::Result;
use lithify_base::zoo::{self, Bug};
use lithify_engine::{Progress, Ticket};
use lithify_env::Mono;
use lithify_env::sync::Arc;
use lithify_merge::prove::{self, Claim, Prover};
use lithify_merge::{BlockSet, Carry, Item, Products, Recipe};

use super::LOOK;
use crate::route::{Place, nanos};

/// An engine hangs that is silent for so many times its own prediction,
const SLOWER: u64 = 10;
/// and this much more.
pub(super) const GRACE: Duration = Duration::from_secs(2);
/// A poll without products counts for at least so much, so that an engine does not keep a thread busy with
/// nothing for ever.
const POLL_MIN: Duration = Duration::from_micros(100);
/// The longest prediction that is believed.
const PREDICTION_MAX: Duration = Duration::from_secs(3600);

/// An engine other than the CPU at work.
pub(super) struct Machine {
    pub(super) place: Place,
    /// The end of the last set whose products were taken.
    pub(super) carry: Option<Box<Carry>>,
    /// Sets that it has taken since, in order.
    pub(super) kept: VecDeque<BlockSet>,
    /// Chooses the sets that are proven.
    prover: Prover,
    /// How long it has been at work without a sign of life.
    pub(super) silent: Duration,
    /// What it last said that it waits for, and when.
    pub(super) asked: Option<(Ticket, Mono)>,
}

impl Machine {
    pub(super) fn new(place: Place, prover: Prover) -> Machine {
        let (kept, silent) = (VecDeque::new(), Duration::ZERO);
        Machine { place, carry: None, kept, prover, silent, asked: None }
    }

    /// Whether the last carry can be relied on: it is the beginning, or all before it was proven.
    pub(super) fn holds(&self) -> bool {
        self.carry.is_none() || self.place.is_proven()
    }

    /// Products are taken in which so many sets end.
    pub(super) fn take(&mut self, sets: usize, out: &Products) {
        for set in self.kept.drain(..sets) {
            self.place.took(set.bytes());
        }
        let last = out.items().iter().rev().find_map(|item| match item {
            Item::SetDone(ended) => Some(ended.carry.clone()),
            _ => None,
        });
        let stays = zoo::on(Bug::FirstCarryKept) && self.carry.is_some();
        self.carry = last.filter(|_| !stays).or(self.carry.take());
    }

    /// Proves the sets of a batch that the dice choose, and the end of the output, before they are taken.
    pub(super) fn prove(
        &mut self,
        recipe: &Arc<Recipe>,
        out: &Products,
        progress: &Progress,
    ) -> Result<()> {
        let mut before = self.carry.as_deref();
        let (mut sets, mut from) = (self.kept.iter(), 0);
        for (at, item) in out.items().iter().enumerate() {
            let Item::SetDone(ended) = item else { continue };
            let claim = Claim { of: out, items: &out.items()[from..=at] };
            if let Some(set) = sets.next().filter(|_| self.prover.picks()) {
                prove::set(recipe, before, set.clone(), &[claim])?;
            }
            (before, from) = (Some(&*ended.carry), at + 1);
        }
        match progress {
            Progress::Done(ledger) if self.prover.is_on() => {
                let claim = Claim { of: out, items: &out.items()[from..] };
                prove::end(recipe, before, &[claim], ledger)
            }
            _ => Ok(()),
        }
    }

    /// Notes how long the engine has been silent: while the part waited for the engine's ticket and for
    /// nothing else, or the engine worked on the caller's thread. It is not if it is `heard`: it brought
    /// products, or has nothing to do.
    pub(super) fn listen(&mut self, progress: &Progress, heard: bool, began: Mono, now: Mono) {
        let waited = match self.asked.take() {
            // Longer than one look the part waited for something else, such as a thread.
            Some((ticket, asked)) if !ticket.is_done() => began.since(asked).min(LOOK),
            _ => Duration::ZERO,
        };
        self.silent += waited + now.since(began).max(POLL_MIN);
        if heard {
            self.silent = Duration::ZERO;
        }
        if let Progress::Pending(ticket) = progress {
            self.asked = Some((ticket.clone(), now));
        }
    }

    /// How long it may be silent over the sets that it has, for which its session predicts `predicted`. That is
    /// not what they cost: an engine that is to take all work may claim to cost nothing.
    pub(super) fn patience(&self, predicted: Option<Duration>) -> Duration {
        let bytes = self.kept.iter().map(BlockSet::bytes).sum();
        let cost = Duration::from_nanos(nanos(self.place.caps().cost, bytes));
        let predicted = predicted.map_or(cost, |predicted| predicted.max(cost));
        predicted.min(PREDICTION_MAX) * SLOWER as u32 + GRACE
    }
}
