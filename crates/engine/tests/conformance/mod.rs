//! The suite over the engines of this room: those that keep the contract pass, and each fault is noticed.

use std::sync::Arc;

use lithify_base::{ErrorKind, Result};
use lithify_engine::conformance::*;
use lithify_engine::mock::{FaultPlan, MockEngine};
use lithify_engine::*;
use lithify_env::sync::atomic::{AtomicU64, Ordering};
use lithify_env::{Class, Job, Ticket, Wake};
use lithify_env::{Mono, Rt};
use lithify_format::block::BlockIter;
use lithify_format::checksum::raw_sum;
use lithify_merge::naive;
use lithify_merge::workload::{Case, Choices};
use std::time::Duration;

const SMALL: Size = Size { entries: 80, value: 500 };

/// A clock that jumps: a wait for what does not come takes no real time.
#[derive(Default)]
struct Jumps(AtomicU64);

impl Rt for Jumps {
    fn now(&self) -> Mono {
        Mono(self.0.load(Ordering::Relaxed))
    }
    fn wall_seconds(&self) -> u64 {
        0
    }
    fn seed(&self, _who: &str) -> u64 {
        0
    }
    fn spawn(&self, _class: Class, _job: Box<dyn Job>) {
        unreachable!("engines of these tests have no jobs")
    }
    fn park(&self, ticket: &Ticket, deadline: Option<Mono>) -> Wake {
        if ticket.is_done() {
            return Wake::Done;
        }
        self.0.store(deadline.expect("there is a limit to every wait").0, Ordering::Relaxed);
        Wake::TimedOut
    }
    fn thread_cpu(&self) -> Duration {
        Duration::ZERO
    }
    fn threads(&self, _class: Class) -> usize {
        1
    }
}

/// A plan over one case, by the mock alone.
fn alone(plan: FaultPlan, case: &Case) -> Result<Ran> {
    run(&MockEngine { plan }, &Jumps::default(), &case.recipe, case.sets(20_000), true)
}

/// Cases of the long test: few by default, as many as `LITHIFY_SEEDS` says in a deep run.
fn seeds() -> u64 {
    std::env::var("LITHIFY_SEEDS").ok().and_then(|s| s.parse().ok()).unwrap_or(150)
}

#[test]
fn the_cpu_engine_conforms() {
    let report =
        suite(&CpuEngine, &Jumps::default(), 0..seeds(), Profile::reference(SMALL)).unwrap();
    assert_eq!((report.equal, report.refused, report.on_cpu), (seeds(), 0, 0));
}

#[test]
fn the_cpu_engine_conforms_on_large_values() {
    let large = Profile::reference(Size { entries: 30, value: 100 << 10 });
    suite(&CpuEngine, &Jumps::default(), 1000..1004, large).unwrap();
}

#[test]
fn the_mock_conforms_as_an_engine_that_may_fail() {
    let mock = MockEngine { plan: FaultPlan::None };
    for profile in [Profile::everything(SMALL), Profile::device(SMALL), Profile::tag_keys(SMALL)] {
        let report = suite(&mock, &Jumps::default(), 0..60, profile).unwrap();
        assert_eq!((report.equal, report.refused, report.on_cpu), (60, 0, 0));
    }
}

/// The CPU engine hands out slices of sets, so it can fail the profile of engines that may fail.
#[test]
fn slices_of_sets_are_noticed() {
    let case = Case::uniform(9, 3, 20_000, 16, 100).unwrap();
    let sets = || case.sets(u64::MAX);
    run(&CpuEngine, &Jumps::default(), &case.recipe, sets(), false).unwrap();
    let e = run(&CpuEngine, &Jumps::default(), &case.recipe, sets(), true).unwrap_err();
    assert!(e.to_string().contains("in the middle of a set"), "{e}");
}

/// What the engine gives up the CPU goes on with, and the report says who merged how many sets.
#[test]
fn sets_are_counted_by_where_they_ran() {
    let breaks = |n| MockEngine { plan: FaultPlan::Breaks(n) };
    let size = Profile::device(SMALL);
    let report = |n| suite(&breaks(n), &Jumps::default(), 0..20, size).unwrap();
    let whole = report(u32::MAX);
    assert_eq!((whole.equal, whole.on_cpu), (20, 0));
    for n in [0, 1, 2, 3] {
        let broken = report(n);
        assert_eq!(broken.equal, 20);
        assert_eq!(broken.here + broken.on_cpu, whole.here, "after {n} polls");
        assert_eq!(broken.here == 0, n == 0);
        assert!(broken.on_cpu > 0);
    }
}

/// What devices take is all that the device profile has, or most of its seeds would be refused.
#[test]
fn the_device_profile_has_what_devices_take() {
    use lithify_base::Kind;
    let (mut entries, mut tombstones) = (0, 0);
    for seed in 0..100 {
        let case = Case::with(seed, SMALL, Features::Device).unwrap();
        let recipe = &case.recipe;
        assert!(recipe.order.is_bytewise());
        assert!(recipe.operator.is_none() && recipe.user_filter.is_none());
        for e in case.entries() {
            assert!(e.key.len() <= 240);
            assert!(matches!(e.tag.kind(), Some(Kind::Value | Kind::Delete)));
            entries += 1;
        }
        tombstones += recipe.tombstones.tombs();
    }
    assert!(entries > 2000 && tombstones > 10, "{entries} {tombstones}");
}

/// Neighbours of an output whose shared prefix reaches from a user key into the tag behind it, which the user
/// key after it spells: that is what the profile is for, and random keys hardly have it.
#[test]
fn tag_keys_share_prefixes_with_tags() {
    let reach = |features| {
        let mut long = 0;
        for seed in 0..40 {
            let case = Case::with(seed, SMALL, features).unwrap();
            let (output, _) = naive::compact(&case.recipe, case.entries()).unwrap();
            for block in output.files.iter().flat_map(|file| &file.blocks) {
                let mut it = BlockIter::new(&block[..block.len() - 5]).unwrap();
                let mut more = it.seek_to_first().unwrap();
                let mut last = Vec::new();
                while more {
                    let user = last.len().saturating_sub(8);
                    let shared = last.iter().zip(it.key()).take_while(|(a, b)| a == b).count();
                    long += usize::from(shared > user + 1 && it.key().len() > last.len());
                    last = it.key().to_vec();
                    more = it.next().unwrap();
                }
            }
        }
        long
    };
    let (spelled, random) = (reach(Features::TagKeys), reach(Features::Device));
    assert!(spelled > 100 && random * 10 < spelled, "{spelled} {random}");
}

#[test]
fn a_relay_of_engines_leaves_no_trace() {
    let late = MockEngine { plan: FaultPlan::Late(3) };
    let profile = Profile::everything(SMALL);
    handover(&CpuEngine, &late, &Jumps::default(), 0..60, profile).unwrap();
}

#[test]
fn an_empty_compaction_is_done_at_once() {
    let rt = Jumps::default();
    let ran = run(&CpuEngine, &rt, &Arc::new(Recipe::new(1)), Vec::new(), true).unwrap();
    assert_eq!((ran.output, ran.ledger), (Output::default(), Ledger::default()));
}

/// The suite must be able to fail: every fault of the catalogue is noticed.
#[test]
fn every_fault_is_noticed() {
    let case = Case::uniform(9, 3, 2000, 16, 32).unwrap();
    let attempt = |plan| alone(plan, &case).map(drop);
    attempt(FaultPlan::None).unwrap();
    attempt(FaultPlan::Late(100_000)).unwrap();
    let broken = [
        FaultPlan::WrongByte(3),
        FaultPlan::LostBlock(0),
        FaultPlan::LostBlock(3),
        FaultPlan::TwiceBlock(3),
        FaultPlan::LostFileCut,
        FaultPlan::Hangs,
        FaultPlan::Breaks(2),
        FaultPlan::Refuses,
        FaultPlan::SmallSets(1000),
        FaultPlan::WrongLedger(1),
        FaultPlan::LostSetDone(1),
        FaultPlan::Blames(1),
        FaultPlan::Unsuitable(1),
    ];
    for plan in broken {
        assert!(attempt(plan).is_err(), "{plan:?} went unnoticed");
    }
}

#[test]
fn bad_input_is_told_from_a_bad_engine() {
    let mut case = Case::uniform(9, 2, 500, 16, 32).unwrap();
    let slice = &mut case.blocks[1][2].slice;
    let mut bytes = slice.bytes.as_slice().to_vec();
    bytes[17] ^= 1;
    slice.bytes = bytes.into();
    let offset = slice.offset;
    let mut session = CpuEngine.open(case.recipe.clone()).unwrap();
    for set in case.sets(u64::MAX) {
        assert!(matches!(session.offer(set), Offer::Taken));
    }
    session.seal();
    let mut products = Products::default();
    let fault = loop {
        match session.poll(&mut products) {
            Progress::Failed(fault) => break fault,
            Progress::Done(_) => panic!("a flipped bit went unnoticed"),
            _ => {}
        }
    };
    let Fault::Input(e) = fault else { panic!("{fault:?}") };
    assert!(e.is_corruption());
    assert_eq!(e.offset(), Some(offset));
    assert!(matches!(session.poll(&mut products), Progress::Failed(_)), "it stays over");
}

#[test]
fn unsorted_runs_fail_instead_of_losing_data() {
    let mut case = Case::uniform(9, 2, 500, 16, 32).unwrap();
    case.blocks[0].swap(1, 2);
    let mut sets = case.sets(u64::MAX);
    assert_eq!(sets.len(), 1);
    let ran = run(&CpuEngine, &Jumps::default(), &case.recipe, sets.split_off(0), false);
    assert!(ran.unwrap_err().is_corruption());
}

/// Blocks whose checksum is right and whose content is not: an error or some output, no panic,
/// no hang, and never an output that fails certification unnoticed.
#[test]
fn hostile_blocks_never_panic() {
    let dice = &mut Choices::new(99);
    let mut refused = 0;
    for seed in 0..300 {
        let mut case = Case::generate(seed, SMALL).unwrap();
        for run in &mut case.blocks {
            for block in run.iter_mut() {
                if !dice.one_in(3) {
                    continue;
                }
                let bytes = block.slice.bytes.as_slice();
                let type_byte = bytes[bytes.len() - 5];
                let mut payload = bytes[..bytes.len() - 5].to_vec();
                let at = dice.below(payload.len());
                payload[at] ^= 1 << dice.below(8);
                let sum = raw_sum(block.slice.checksum, &payload, type_byte);
                let stored = sum.wrapping_add(block.slice.modifier);
                payload.push(type_byte);
                payload.extend_from_slice(&stored.to_le_bytes());
                block.slice.bytes = payload.into();
            }
        }
        let sets = case.sets_by(|| 1 + dice.bits() % 5000);
        match run(&CpuEngine, &Jumps::default(), &case.recipe, sets, false) {
            Err(e) => {
                refused += 1;
                assert_ne!(e.kind(), ErrorKind::Internal, "seed {seed}: {e}");
            }
            Ok(ran) => assert!(ran.ledger.balances()),
        }
    }
    assert!(refused > 50, "{refused}");
}
