//! Faults at every event of a fixed job, and random plans of several: no wrong byte and no failed job.

use lithify_engine::Engine;
use lithify_engine::conformance::{Output, run};
use lithify_engine_fpga::faulty::{Fault, FaultyCard, Kind};
use lithify_engine_fpga::stream::register;
use lithify_engine_fpga::{FpgaEngine, FpgaOptions, ModelCard};
use lithify_env::sync::Arc;
use lithify_env::sync::atomic::{AtomicU64, Ordering};
use lithify_merge::workload::{Case, Choices, Features, Size};
use lithify_merge::{BlockSet, Ledger, naive};

use crate::common::*;

/// The fixed job: 40 sets of what devices take.
struct FixedJob {
    case: Case,
    sets: Vec<BlockSet>,
    output: Output,
    ledger: Ledger,
}

fn fixed_job() -> FixedJob {
    let size = Size { entries: 60, value: 60 };
    let suits = |case: &Case| {
        case.recipe.tombstones.is_empty()
            && case.recipe.runs <= 8
            && case.recipe.snapshots.len() > 1
            && case.sets(1).len() >= 40
    };
    let mut cases = (0..).map(|seed| Case::with(seed, size, Features::Device).unwrap());
    let case = cases.find(suits).unwrap();
    let mut sets = case.sets(1);
    let mut budget = 2;
    while sets.len() > 44 {
        sets = case.sets(budget);
        budget += 1;
    }
    let (output, ledger) = naive::compact(&case.recipe, case.entries()).unwrap();
    FixedJob { case, sets, output, ledger }
}

/// What one job came to: how many events there were, and the figures of the engine.
struct Came {
    events: u64,
    on_units: u64,
    retries: u64,
    wrong: u64,
    hangs: u64,
    quarantine: u64,
}

/// Runs the job over a card with faults, and compares every byte.
fn attempt(job: &FixedJob, plan: Vec<Fault>) -> Came {
    let what = format!("{plan:?}");
    let lies = plan.iter().any(|fault| fault.kind == Kind::Lie);
    let options = FpgaOptions { set_bytes: 16 << 10, ..options() };
    let card = ModelCard::new(lithify_engine_fpga::ModelOptions {
        memory: 2 * 3 * (192 << 10),
        ..model(2, 8, 32)
    });
    let card = FaultyCard::new(Box::new(card), plan);
    let events: Arc<AtomicU64> = card.events();
    let engine = over(Box::new(card), options);
    let mut ran = run(&engine, &FixedRt, &job.case.recipe, job.sets.clone(), true)
        .unwrap_or_else(|e| panic!("{what}: {e}"));
    assert_eq!(ran.output, job.output, "{what}");
    if lies {
        // Bounded, but for a set that is proven not balanced: the sums of weights catch what it counts.
        ran.ledger.zeroed = job.ledger.zeroed;
    }
    assert_eq!(ran.ledger, job.ledger, "{what}");
    assert_eq!(ran.here, job.sets.len() as u64, "{what}");
    // Ten seconds: a unit's own figure of its cycles moves card time no further than a hang would.
    assert!(engine.card_ns() < 1e10, "{what}: {} ns", engine.card_ns());
    Came {
        events: events.load(Ordering::Relaxed),
        on_units: figure(&engine, "unit_sets"),
        retries: figure(&engine, "retries"),
        wrong: figure(&engine, "cpu_wrong"),
        hangs: figure(&engine, "hangs"),
        quarantine: figure(&engine, "quarantine"),
    }
}

#[test]
fn a_fault_at_any_event_changes_no_byte_and_fails_no_job() {
    let job = fixed_job();
    let healthy = attempt(&job, Vec::new());
    let sets = job.sets.len() as u64;
    assert!((35..=60).contains(&sets), "{sets}");
    assert_eq!((healthy.on_units, healthy.retries, healthy.hangs), (sets, 0, 0));
    let step = seeds("LITHIFY_FPGA_EVENT_STEP", 1);
    let mut seen = [0; Kind::ALL.len()];
    let (mut wrong, mut retries, mut quarantined) = (0, 0, 0);
    for (k, kind) in (0u64..).zip(Kind::ALL) {
        for at in (k % step..healthy.events).step_by(step as usize) {
            let salt = at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 7;
            let came = attempt(&job, vec![Fault { at, kind, salt }]);
            let noticed = came.retries + came.hangs + came.wrong + came.quarantine > 0
                || came.on_units < sets;
            seen[k as usize] += u64::from(noticed);
            wrong += came.wrong;
            retries += came.retries;
            quarantined += came.quarantine;
        }
    }
    // A plan that touches nothing proves nothing.
    assert!(
        seen.iter().zip(Kind::ALL).all(|(&n, kind)| n > 10 || kind == Kind::Double),
        "{seen:?}"
    );
    assert!(wrong > 10 && retries > 100 && quarantined > 100, "{wrong} {retries} {quarantined}");
}

#[test]
fn plans_of_many_faults_change_no_byte_and_fail_no_job() {
    let job = fixed_job();
    let events = attempt(&job, Vec::new()).events as usize;
    let (mut on_units, plans) = (0, seeds("LITHIFY_FPGA_PLANS", 2000));
    for seed in 0..plans {
        let dice = &mut Choices::new(seed);
        let most = dice.pick(&[2, 5, 20]);
        let n = 1 + dice.below(most);
        // What ends all work stands in few plans, or most would be over after a few events.
        let kinds = if dice.one_in(4) { &Kind::ALL[..] } else { &Kind::ALL[..5] };
        let mut fault =
            || Fault { at: dice.below(events) as u64, kind: dice.pick(kinds), salt: dice.bits() };
        let plan = (0..n).map(|_| fault()).collect();
        on_units += attempt(&job, plan).on_units;
    }
    assert!(on_units > plans * 5, "{on_units}");
}

#[test]
fn a_dead_card_is_refused_from_then_on() {
    let job = fixed_job();
    let plan = vec![Fault { at: 30, kind: Kind::Die, salt: 0 }];
    let card = FaultyCard::new(Box::new(ModelCard::new(model(1, 8, 32))), plan);
    let engine = over(Box::new(card), options());
    let ran = run(&engine, &FixedRt, &job.case.recipe, job.sets.clone(), true).unwrap();
    assert_eq!(ran.output, job.output);
    assert!(figure(&engine, "cpu_quarantine") > 0 && figure(&engine, "cpu_settled") > 0);
    let why = refusal(engine.open(job.case.recipe.clone()));
    assert!(why.contains("the card is gone"), "{why}");
}

/// A card whose registers are of another kind is not taken over.
#[test]
fn a_card_with_other_registers_is_refused() {
    let open = |register: u32, value: u32| {
        let card = FaultyCard::new(Box::new(ModelCard::new(model(1, 8, 32))), Vec::new());
        FpgaEngine::new(Box::new(card.saying(register, value)), options()).map(|_| ())
    };
    assert!(open(register::WAYS, 16).is_ok());
    for (register, value) in [
        (register::IDENTITY, 1),
        (register::VERSION, 9),
        (register::WAYS, 0),
        (register::WAYS, 17),
        (register::WAYS, u32::MAX),
        (register::RING, 8),
        (register::KEY_MAX, 120),
        (register::VALUE_LG, 20),
        (register::RESTARTS_MAX, 512),
    ] {
        assert!(open(register, value).is_err(), "{register:#x} {value}");
    }
}

/// A unit that says that it is in reset for ever: the card is given up, and the job is the kernel's.
#[test]
fn a_reset_that_does_not_end_gives_the_card_up() {
    let job = fixed_job();
    let card = FaultyCard::new(Box::new(ModelCard::new(model(1, 8, 32))), Vec::new());
    let card = card.saying(register::STATE, register::IS_RESETTING);
    let engine = over(Box::new(card), options());
    let ran = run(&engine, &FixedRt, &job.case.recipe, job.sets.clone(), true).unwrap();
    assert_eq!((ran.output, figure(&engine, "unit_sets")), (job.output, 0));
    let why = refusal(engine.open(job.case.recipe.clone()));
    assert!(why.contains("reset"), "{why}");
}
