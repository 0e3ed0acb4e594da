use super::*;
use crate::mock::{FaultPlan, MockEngine};
use crate::{CpuEngine, Fault};
use lithify_format::checksum::raw_sum;

const SMALL: Size = Size { entries: 80, value: 500 };

/// Cases of the long test: few by default, as many as `LITHIFY_SEEDS` says in a deep run.
fn seeds() -> u64 {
    std::env::var("LITHIFY_SEEDS").ok().and_then(|s| s.parse().ok()).unwrap_or(150)
}

#[test]
fn the_cpu_engine_conforms() {
    let report = suite(&CpuEngine, 0..seeds(), SMALL).unwrap();
    assert_eq!(report, Report { equal: seeds(), refused: 0 });
}

#[test]
fn the_cpu_engine_conforms_on_large_values() {
    suite(&CpuEngine, 1000..1004, Size { entries: 30, value: 100 << 10 }).unwrap();
}

#[test]
fn a_relay_of_engines_leaves_no_trace() {
    let late = MockEngine { plan: FaultPlan::Late(3) };
    handover(&CpuEngine, &late, 0..60, SMALL).unwrap();
}

#[test]
fn an_empty_compaction_is_done_at_once() {
    let (output, ledger) = run(&CpuEngine, &Arc::new(Recipe::new(1)), Vec::new()).unwrap();
    assert_eq!((output, ledger), (Output::default(), Ledger::default()));
}

/// The suite must be able to fail: every fault of the catalogue is noticed.
#[test]
fn every_fault_is_noticed() {
    let case = Case::uniform(9, 3, 2000, 16, 32).unwrap();
    let attempt = |plan| run(&MockEngine { plan }, &case.recipe, case.sets(20_000)).map(drop);
    attempt(FaultPlan::None).unwrap();
    attempt(FaultPlan::Late(100)).unwrap();
    let broken = [
        FaultPlan::WrongByte(3),
        FaultPlan::LostBlock(0),
        FaultPlan::LostBlock(3),
        FaultPlan::TwiceBlock(3),
        FaultPlan::LostFileCut,
        FaultPlan::Hangs,
        FaultPlan::Breaks(2),
        FaultPlan::Refuses,
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
    assert!(run(&CpuEngine, &case.recipe, sets.split_off(0)).unwrap_err().is_corruption());
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
        match run(&CpuEngine, &case.recipe, sets) {
            Err(e) => {
                refused += 1;
                assert_ne!(e.kind(), ErrorKind::Internal, "seed {seed}: {e}");
            }
            Ok((_, ledger)) => assert!(ledger.balances()),
        }
    }
    assert!(refused > 50, "{refused}");
}
