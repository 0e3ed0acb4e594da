//! Engines that panic anywhere, take without end, claim what makes no sense, or lie now and then: each ends
//! in the CPU's files.

use lithify_base::Key;
use lithify_env::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use lithify_env::{RateLimiter, Ticket, Tuning};
use lithify_merge::tombstone::RangeTombstone;

use std::time::Duration;

use super::*;

/// What is wrong with an engine, besides its plan.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Flaw {
    None,
    /// It takes every set and makes nothing of any.
    Greedy,
    /// Its first polls wait for tickets that are complete already.
    Stages,
    /// Its first polls wait for tickets that are never complete, five seconds in all; it predicts one second, or
    /// nothing.
    Slow {
        predicted: bool,
    },
    /// One bit of a block of the ninth batch is flipped.
    LateBit,
    /// Every file but the last gets a range deletion that no input has.
    ForgedTombstones,
    CapsPanic,
    DisownPanics,
    DropPanics,
}

struct Bad {
    inner: Arc<Device>,
    flaw: Flaw,
    caps: fn(Caps) -> Caps,
    polled: Arc<AtomicBool>,
    /// Sets that it holds, and runs of one, at most.
    most: Arc<(AtomicUsize, AtomicUsize)>,
}

fn bad(plan: FaultPlan, prove: u32, flaw: Flaw) -> Bad {
    let inner = Device::proven(plan, prove);
    Bad { inner, flaw, caps: |caps| caps, polled: Arc::default(), most: Arc::default() }
}

impl Engine for Bad {
    fn caps(&self) -> Caps {
        if self.flaw == Flaw::CapsPanic && self.polled.load(SeqCst) {
            std::panic::resume_unwind(Box::new("caps"));
        }
        (self.caps)(self.inner.caps())
    }
    fn open(&self, recipe: Arc<Recipe>) -> Result<Box<dyn Session>, Refusal> {
        let (polled, most) = (self.polled.clone(), self.most.clone());
        let inner = self.inner.open(recipe)?;
        Ok(Box::new(BadSession {
            inner,
            flaw: self.flaw,
            polled,
            most,
            held: Vec::new(),
            polls: 0,
        }))
    }
    fn disown(&self, error: &Error) {
        if self.flaw == Flaw::DisownPanics {
            std::panic::resume_unwind(Box::new("disown"));
        }
        self.inner.disown(error);
    }
}

struct BadSession {
    inner: Box<dyn Session>,
    flaw: Flaw,
    polled: Arc<AtomicBool>,
    most: Arc<(AtomicUsize, AtomicUsize)>,
    held: Vec<BlockSet>,
    polls: u32,
}

impl Drop for BadSession {
    fn drop(&mut self) {
        if self.flaw == Flaw::DropPanics {
            std::panic::resume_unwind(Box::new("drop of a session"));
        }
    }
}

impl Session for BadSession {
    fn offer(&mut self, set: BlockSet) -> Offer {
        self.most.1.fetch_max(set.runs.len(), SeqCst);
        if self.flaw != Flaw::Greedy {
            return self.inner.offer(set);
        }
        self.held.push(set);
        self.most.0.fetch_max(self.held.len(), SeqCst);
        Offer::Taken
    }
    fn seal(&mut self) {
        self.inner.seal();
    }
    fn poll(&mut self, out: &mut Products) -> Progress {
        self.polled.store(true, SeqCst);
        self.polls += 1;
        out.clear();
        match self.flaw {
            Flaw::Greedy => return Progress::Pending(Ticket::new()),
            Flaw::Slow { .. } if self.polls <= 20 => return Progress::Pending(Ticket::new()),
            Flaw::Stages if self.polls <= 4 => return Progress::Pending(Ticket::completed()),
            _ => {}
        }
        let progress = self.inner.poll(out);
        match self.flaw {
            Flaw::LateBit if self.polls == 9 => flip(out),
            Flaw::ForgedTombstones if !matches!(progress, Progress::Done(_)) => forge(out),
            _ => {}
        }
        progress
    }
    fn predicted(&self) -> Option<Duration> {
        (self.flaw == Flaw::Slow { predicted: true }).then_some(Duration::from_secs(1))
    }
    fn cancel(self: Box<Self>) {}
}

fn flip(out: &mut Products) {
    let block = out.items().iter().find_map(|item| match item {
        Item::Block(block) => Some(block.clone()),
        _ => None,
    });
    if let Some(block) = block {
        let bytes = out.block_mut(&block);
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
    }
}

fn forge(out: &mut Products) {
    let (lo, hi) = (Key::from(&b"key00000"[..]), Key::from(&b"key00600"[..]));
    let forged = RangeTombstone { lo, hi, seq: 5000, run: 0 };
    let mut items = out.items().to_vec();
    for item in &mut items {
        if let Item::FileCut(cut) = item {
            cut.tombstones = vec![forged.clone()];
        }
    }
    out.set_items(items);
}

/// How long an engine may be silent follows from what its session predicts, not from what it claims to cost.
#[test]
fn an_engine_that_costs_nothing_is_given_the_time_that_it_predicts() {
    let expected = by_cpu(1);
    for predicted in [true, false] {
        let slow = bad(FaultPlan::None, 1, Flaw::Slow { predicted });
        let free = Bad {
            caps: |caps| Caps { cost: Cost { fixed_ns: 0.0, ns_per_byte: 0.0 }, ..caps },
            ..slow
        };
        let ended = with(Arc::new(free), &expected, "slow");
        assert_eq!(ended.reports[0].hangs, u64::from(!predicted), "{:?}", ended.replaced());
        let last = ended.reports[0].last_lost.as_deref().unwrap_or_default();
        assert_eq!(last.starts_with("hangs: silent"), !predicted, "{last}");
    }
}

/// All that an engine may do, panics included, stays inside the relay.
#[test]
fn a_panic_anywhere_ends_in_the_cpus_files() {
    let expected = by_cpu(1);
    for flaw in [Flaw::CapsPanic, Flaw::DropPanics] {
        with(Arc::new(bad(FaultPlan::None, 1, flaw)), &expected, &format!("{flaw:?}"));
    }
    let disproved = bad(FaultPlan::WrongByte(9), 1, Flaw::DisownPanics);
    let ended = with(Arc::new(disproved), &expected, "disown");
    assert_eq!(ended.reports[0].disproved, 1);
}

/// What an engine holds has a bound, however much it would take.
#[test]
fn an_engine_that_takes_everything_gets_what_it_said_it_holds() {
    let greedy = bad(FaultPlan::None, 1, Flaw::Greedy);
    let most = greedy.most.clone();
    let said = greedy.caps().sets_in_flight;
    let ended = with(Arc::new(greedy), &by_cpu(1), "greedy");
    assert_eq!((ended.reports[0].hangs, most.0.load(SeqCst)), (1, said));
}

#[test]
fn claims_that_make_no_sense_do_no_harm() {
    let expected = by_cpu(1);
    let claims: [fn(Caps) -> Caps; 5] = [
        |caps| Caps { sets_in_flight: usize::MAX, ..caps },
        |caps| Caps { set_bytes: 0, sets_in_flight: 0, ways: 0, max_ways: 0, ..caps },
        |caps| Caps { last_bytes: 0, ..caps },
        |caps| Caps {
            set_bytes: 0,
            max_set_bytes: 0,
            sets_in_flight: 0,
            ways: 0,
            max_ways: 0,
            ..caps
        },
        |caps| Caps { set_bytes: u64::MAX, max_set_bytes: u64::MAX, ways: u16::MAX, ..caps },
    ];
    for (no, caps) in claims.into_iter().enumerate() {
        let engine = Bad { caps, ..bad(FaultPlan::None, 1, Flaw::None) };
        with(Arc::new(engine), &expected, &format!("claim {no}"));
    }
}

/// An engine of one way is not given sets of two runs.
#[test]
fn sets_of_too_many_runs_go_to_the_cpu() {
    let engine = Bad {
        caps: |caps| Caps { ways: 1, max_ways: 1, ..caps },
        ..bad(FaultPlan::None, 1, Flaw::None)
    };
    let most = engine.most.clone();
    let ended = with(Arc::new(engine), &by_cpu(1), "one way");
    assert_eq!(ended.reports[0].too_large, 1);
    assert!(most.1.load(SeqCst) <= 1);
}

/// What an engine would rather not have it takes nevertheless, and the part stays with it.
#[test]
fn sets_of_more_runs_than_suit_an_engine_stay_with_it() {
    let caps = |caps| Caps { ways: 1, ..caps };
    let engine = Bad { caps, ..bad(FaultPlan::None, 1, Flaw::None) };
    let most = engine.most.clone();
    let ended = with(Arc::new(engine), &by_cpu(1), "one way is best");
    assert_eq!((ended.reports[0].too_large, ended.replaced().len()), (0, 0));
    assert!(most.1.load(SeqCst) > 1);
}

/// A part that waits for its turn to move bytes, or for a thread, says nothing about its engine.
#[test]
fn a_slow_disk_is_no_fault_of_the_engine() {
    for rate in [0, 5_000] {
        let mut world = World::new();
        let context = Arc::get_mut(&mut world.context).expect("its own");
        context.limiter = Arc::new(RateLimiter::new(rate, Tuning::Fixed));
        let ended = world.compact(vec![Arc::new(bad(FaultPlan::None, 1, Flaw::Stages))], 1);
        assert!(ended.outcome.result.is_ok());
        assert_eq!(ended.reports[0].hangs, 0, "{rate} bytes a second: {:?}", ended.reports);
    }
}

/// One lie that shows says nothing good of the sets before it, which were not proven.
#[test]
fn a_liar_that_is_caught_late_has_the_part_done_anew() {
    let expected = by_cpu(1);
    let mut disproved = 0;
    for lie in Lie::RECIPES {
        let engine = bad(FaultPlan::Falsified(lie), u32::MAX, Flaw::LateBit);
        disproved += with(Arc::new(engine), &expected, &format!("{lie:?}")).reports[0].disproved;
    }
    assert_eq!(disproved, Lie::RECIPES.len() as u64);
}

/// The range deletions of each file follow from the recipe, so an engine's are compared, proven or not.
#[test]
fn forged_range_deletions_end_in_the_cpus_files() {
    let engine = bad(FaultPlan::None, u32::MAX, Flaw::ForgedTombstones);
    let ended = with(Arc::new(engine), &by_cpu(1), "forged");
    assert_eq!(ended.reports[0].disproved, 1);
}
