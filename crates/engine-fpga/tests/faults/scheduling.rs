//! Several sessions on the slots and units of one card, and the card time that all of it takes.

use std::cmp::Ordering;
use std::collections::VecDeque;

use lithify_base::comparator::{Bytewise, Comparator};
use lithify_base::{Error, ErrorKind};
use lithify_engine::conformance::{Output, run};
use lithify_engine::{Engine, Offer, Progress, Session};
use lithify_engine_fpga::{Buffer, FpgaEngine, FpgaOptions, ModelCard, ModelOptions};
use lithify_env::sync::Arc;
use lithify_env::sync::atomic::{AtomicBool, Ordering as Order};
use lithify_format::compress::Codec;
use lithify_merge::workload::{BlockStyle, Case, Choices, Features};
use lithify_merge::{BlockSet, Item, Ledger, Products, naive};

use crate::common::*;

/// A part under way.
struct Part {
    session: Box<dyn Session>,
    sets: VecDeque<BlockSet>,
    output: Output,
    ledger: Option<Ledger>,
}

/// Merges all parts, a poll of each in turn, by one thread.
pub(crate) fn together(
    engine: &FpgaEngine,
    parts: &[(&Case, Vec<BlockSet>)],
) -> Vec<(Output, Ledger)> {
    let open = |(case, sets): &(&Case, Vec<BlockSet>)| Part {
        session: engine.open(case.recipe.clone()).expect("it suits"),
        sets: sets.clone().into(),
        output: Output::default(),
        ledger: None,
    };
    let mut parts: Vec<Part> = parts.iter().map(open).collect();
    let mut products = Products::default();
    let mut polls = 0;
    while let Some(part) = {
        let n = parts.len();
        polls += 1;
        (0..n).map(|i| (i + polls) % n).find(|&i| parts[i].ledger.is_none()).map(|i| &mut parts[i])
    } {
        assert!(polls < 5_000_000, "the parts do not end");
        while let Some(set) = part.sets.pop_front() {
            if let Offer::Full(set) = part.session.offer(set) {
                part.sets.push_front(set);
                break;
            }
        }
        if part.sets.is_empty() {
            part.session.seal();
        }
        match part.session.poll(&mut products) {
            Progress::Done(ledger) => part.ledger = Some(*ledger),
            Progress::Failed(fault) => panic!("{}", fault.error()),
            _ => {}
        }
        part.output.absorb(&products);
    }
    parts.into_iter().map(|part| (part.output, part.ledger.expect("it ended"))).collect()
}

/// A card at the paper's end of the estimates: 145 MHz, W = 32.
fn card(units: usize, set: u64) -> ModelOptions {
    let memory = units * 3 * (5 * set as usize + (128 << 10));
    ModelOptions { units, ways: 8, width: 32, mhz: 145.0, memory }
}

fn large(seed: u64) -> Case {
    Case::uniform(seed, 8, 12_000, 16, 1024).unwrap()
}

#[test]
fn a_part_keeps_a_unit_busy_and_two_parts_two() {
    let set = 1 << 20;
    let options = FpgaOptions { set_bytes: set, ..FpgaOptions::default() };
    let (a, b) = (large(1), large(2));
    let sets = |case: &Case| case.sets(set);
    let bytes =
        |case: &Case| case.entries().iter().map(|e| e.key.len() + 8 + e.value.len()).sum::<usize>();
    let expected = |case: &Case| naive::compact(&case.recipe, case.entries()).unwrap();

    let one = engine(card(1, set), options);
    assert_eq!(together(&one, &[(&a, sets(&a))]), [expected(&a)]);
    assert_eq!(figure(&one, "mispredicted"), 0);
    let (alone, busy) = (one.card_ns(), figure(&one, "units_ns") as f64);
    // Between two sets of a part the carry goes to the host and back: 30 us three times, and 20.
    assert!(busy > 0.6 * alone, "the unit was busy for {busy} ns of {alone}");
    let rate = bytes(&a) as f64 / busy;
    // 32 bytes a cycle, less what lengths and blocks take.
    assert!((4.0..4.64).contains(&rate), "{rate} GB/s");

    let two = engine(card(2, set), options);
    let parts = [(&a, sets(&a)), (&b, sets(&b))];
    assert_eq!(together(&two, &parts), [expected(&a), expected(&b)]);
    assert!(two.card_ns() < 1.35 * alone, "{} ns for two, {alone} for one", two.card_ns());

    let shared = engine(card(1, set), options);
    together(&shared, &parts);
    // The one unit works on either part while the carry of the other is under way.
    let (both, busy) = (shared.card_ns(), figure(&shared, "units_ns") as f64);
    assert!(busy > 0.8 * both && both < 1.6 * alone, "{both} ns for two, {alone} for one");
}

/// Between two sets of a part lie three operations and the host, and nothing that grows with the set: blocks are small here,
/// so that their descriptors and records would be an eighth and a quarter of it.
#[test]
fn the_next_set_waits_for_the_open_block_alone() {
    let set = 512 << 10;
    let mut case = Case::uniform(12, 4, 24_000, 16, 200).unwrap();
    let style = BlockStyle { bytes: 256, ..BlockStyle::default() };
    case.blocks = case.runs.iter().map(|run| style.encode(run).unwrap()).collect();
    let mut recipe = (*case.recipe).clone();
    recipe.block_bytes = 256;
    case.recipe = recipe.into();
    let sets = case.sets(set);
    let gaps = sets.len() as f64 - 1.0;
    assert!(gaps > 8.0, "{gaps}");
    let [first, last] = [&sets[0], &sets[sets.len() - 1]].map(|set| set.bytes() as f64);

    let options = FpgaOptions { set_bytes: set, buffer: Buffer::Static, ..FpgaOptions::default() };
    let engine = engine(card(1, set), options);
    let expected = naive::compact(&case.recipe, case.entries()).unwrap();
    assert_eq!(together(&engine, &[(&case, sets)]), [expected]);
    assert_eq!((figure(&engine, "cpu_sets"), figure(&engine, "mispredicted")), (0, 0));
    let idle = engine.card_ns() - figure(&engine, "units_ns") as f64;
    // The first set's areas on their way to the unit, and the last one's three operations back.
    let link = options.link;
    let ends = 4.0 * link.operation_ns + 1.25 * first / link.to_card + 1.5 * last / link.from_card;
    let gap = (idle - ends) / gaps;
    let due = 3.0 * link.operation_ns + link.host_ns;
    assert!((0.97 * due..1.02 * due).contains(&gap), "{gap} ns, {due} for an empty set");
}

#[test]
fn card_time_is_the_same_each_time() {
    let case = large(3);
    let options = FpgaOptions { set_bytes: 300 << 10, ..FpgaOptions::default() };
    let time = || {
        let engine = engine(card(2, 300 << 10), options);
        together(&engine, &[(&case, case.sets(300 << 10)), (&case, case.sets(200 << 10))]);
        (engine.card_ns(), engine.report())
    };
    assert_eq!(time(), time());
}

/// More parts than slots: each gets its turn, and memory has its bound.
#[test]
fn many_parts_share_few_slots() {
    let cases: Vec<Case> = (0..12)
        .map(|seed| Case::with(100 + seed, SMALL, Features::Device).unwrap())
        .filter(|case| case.recipe.tombstones.is_empty())
        .collect();
    let dice = &mut Choices::new(5);
    let parts: Vec<(&Case, Vec<BlockSet>)> =
        cases.iter().map(|case| (case, case.sets_by(|| 1 + dice.bits() % 8000))).collect();
    for slots in [1, 2, 3] {
        let options = FpgaOptions { slots, set_bytes: 64 << 10, ..FpgaOptions::default() };
        let engine = engine(model(1, 16, 32), options);
        let ran = together(&engine, &parts);
        for ((case, _), ran) in parts.iter().zip(ran) {
            assert_eq!(ran, naive::compact(&case.recipe, case.entries()).unwrap(), "{slots} slots");
        }
        let all: usize = parts.iter().map(|(_, sets)| sets.len()).sum();
        assert_eq!(figure(&engine, "unit_sets"), all as u64, "{slots} slots");
        assert_eq!(figure(&engine, "slots_free"), slots as u64);
        // As much as on the card, and what one set is decoded to.
        let bound = slots as u64 * ((9 * (64 << 10)) / 2 + (64 << 10)) + 4 * (64 << 10);
        let most = figure(&engine, "host_bytes_most");
        assert!(most <= bound, "{most} of {bound}");
    }
}

/// A session that has nothing to do, or whose part the CPU has for good, asks for no slot: another one has all of
/// them, and takes as long as alone.
#[test]
fn a_session_that_only_waits_keeps_no_slot_from_others() {
    let set = 256 << 10;
    let options = FpgaOptions { slots: 2, set_bytes: set, ..FpgaOptions::default() };
    let case = large(8);
    let parts = [(&case, case.sets(set))];
    let expected = [naive::compact(&case.recipe, case.entries()).unwrap()];
    let alone = engine(card(1, set), options);
    assert_eq!(together(&alone, &parts), expected);

    let shared = engine(card(1, set), options);
    let idle = shared.open(case.recipe.clone()).unwrap();
    let many = Case::uniform(9, 12, 2400, 16, 100).unwrap();
    let mut settled = shared.open(many.recipe.clone()).unwrap();
    for set in many.sets(48 << 10).into_iter().take(3) {
        assert!(matches!(settled.offer(set), Offer::Taken));
    }
    loop {
        match settled.poll(&mut Products::default()) {
            Progress::Starved => break,
            Progress::Failed(fault) => panic!("{}", fault.error()),
            _ => {}
        }
    }
    assert_eq!((figure(&shared, "cpu_runs"), figure(&shared, "cpu_settled")), (2, 1));
    assert_eq!(together(&shared, &parts), expected);
    assert_eq!((shared.card_ns(), figure(&shared, "cpu_busy")), (alone.card_ns(), 0));
    drop((idle, settled));
}

/// Two parts and one slot: when one is through, the other is not far behind.
#[test]
fn sessions_take_turns_for_a_slot() {
    let set = 64 << 10;
    let options = FpgaOptions { slots: 1, set_bytes: set, ..FpgaOptions::default() };
    let case = Case::uniform(10, 4, 3_000, 16, 400).unwrap();
    let engine = engine(card(1, set), options);
    let mut parts: Vec<_> = (0..2)
        .map(|_| (engine.open(case.recipe.clone()).unwrap(), VecDeque::from(case.sets(set)), 0))
        .collect();
    let (all, mut products) = (case.sets(set).len(), Products::default());
    assert!(all > 10, "{all}");
    // The first is asked three times as often.
    for i in [0, 0, 0, 1].into_iter().cycle().take(1_000_000) {
        let (session, sets, ended) = &mut parts[i];
        while let Some(set) = sets.pop_front() {
            if let Offer::Full(set) = session.offer(set) {
                sets.push_front(set);
                break;
            }
        }
        session.poll(&mut products);
        let done = |item: &&Item| matches!(item, Item::SetDone(_));
        *ended += products.items().iter().filter(done).count();
        if *ended == all {
            break;
        }
    }
    let [a, b] = [&parts[0], &parts[1]].map(|part| part.2);
    assert!(a.max(b) == all && a.abs_diff(b) <= 2, "{a} and {b} of {all} sets");
}

/// Several threads drive the card at once.
#[test]
fn threads_share_a_card() {
    let cases: Vec<Case> =
        (20..24).map(|seed| Case::uniform(seed, 4, 1_500, 16, 200).unwrap()).collect();
    let set = 16 << 10;
    let options = FpgaOptions { slots: 2, set_bytes: set, ..FpgaOptions::default() };
    let shared = engine(card(2, set), options);
    std::thread::scope(|scope| {
        for case in &cases {
            let engine = &shared;
            scope.spawn(move || {
                let ran = run(engine, &FixedRt, &case.recipe, case.sets(set), true).unwrap();
                let expected = naive::compact(&case.recipe, case.entries()).unwrap();
                assert_eq!((ran.output, ran.ledger), expected);
            });
        }
    });
    let all: usize = cases.iter().map(|case| case.sets(set).len()).sum();
    assert_eq!(figure(&shared, "unit_sets") + figure(&shared, "cpu_sets"), all as u64);
    assert_eq!((figure(&shared, "slots_free"), figure(&shared, "hangs")), (4, 0));
    assert!(figure(&shared, "unit_sets") > all as u64 / 2, "{:?}", shared.report());
}

/// A session that ends in the middle gives everything back.
#[test]
fn a_session_that_is_called_off_leaves_its_slots() {
    let case = large(4);
    let options = FpgaOptions { set_bytes: 256 << 10, ..FpgaOptions::default() };
    let engine = engine(card(1, 256 << 10), options);
    for polls in 0..12 {
        let mut session = engine.open(case.recipe.clone()).unwrap();
        let mut products = Products::default();
        for set in case.sets(256 << 10).into_iter().take(3) {
            assert!(matches!(session.offer(set), Offer::Taken));
        }
        for _ in 0..polls {
            assert!(matches!(session.poll(&mut products), Progress::More | Progress::Starved));
        }
        session.cancel();
    }
    let sets = case.sets(256 << 10);
    let expected = naive::compact(&case.recipe, case.entries()).unwrap();
    assert_eq!(together(&engine, &[(&case, sets)]), [expected]);
    assert_eq!(figure(&engine, "slots_free"), 3);
    assert_eq!(figure(&engine, "cpu_sets"), 0);
}

/// Bytewise order that does something once, in the middle of staging: a slot is taken, the lock is not.
struct Meanwhile {
    engine: Arc<FpgaEngine>,
    armed: AtomicBool,
    act: fn(&FpgaEngine),
}

impl Comparator for Meanwhile {
    fn name(&self) -> &'static str {
        Bytewise.name()
    }
    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        if self.armed.load(Order::Relaxed)
            && figure(&*self.engine, "slots_free") < 3
            && self.armed.swap(false, Order::Relaxed)
        {
            (self.act)(&self.engine);
        }
        a.cmp(b)
    }
    fn is_bytewise(&self) -> bool {
        true
    }
}

/// An engine, and a case during whose first staging something happens.
fn meanwhile(act: fn(&FpgaEngine)) -> (Arc<FpgaEngine>, Case) {
    let options = FpgaOptions { set_bytes: 256 << 10, ..FpgaOptions::default() };
    let engine = Arc::new(engine(card(1, 256 << 10), options));
    let mut case = large(6);
    let order = Meanwhile { engine: engine.clone(), armed: AtomicBool::new(true), act };
    let mut recipe = (*case.recipe).clone();
    recipe.order = std::sync::Arc::new(order);
    case.recipe = recipe.into();
    (engine, case)
}

/// A card that is given up while a set is staged for it: the set is started in vain, and ends nevertheless.
#[test]
fn a_set_that_is_staged_for_a_card_given_up_meanwhile_ends() {
    let (engine, case) =
        meanwhile(|engine| engine.disown(&Error::new(ErrorKind::Internal, "a test gives it up")));
    let expected = naive::compact(&case.recipe, case.entries()).unwrap();
    assert_eq!(together(&engine, &[(&case, case.sets(256 << 10))]), [expected]);
    assert_eq!(figure(&*engine, "cpu_quarantine"), 1);
    assert_eq!(figure(&*engine, "slots_free"), 3);
}

/// A panic in the middle of staging costs its session, and no slot.
#[test]
fn a_panic_while_a_set_is_staged_leaves_its_slot() {
    let (engine, case) = meanwhile(|_| panic!("a comparator that panics, for a test"));
    let mut session = engine.open(case.recipe.clone()).unwrap();
    let first = case.sets(256 << 10).swap_remove(0);
    assert!(matches!(session.offer(first), Offer::Taken));
    let poll = || {
        session.poll(&mut Products::default());
    };
    assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(poll)).is_err());
    assert_eq!(figure(&*engine, "slots_free"), 2);
    drop(session);
    assert_eq!(figure(&*engine, "slots_free"), 3);
}

/// With a clock that is none nothing would ever be late, or everything at once.
#[test]
fn a_card_or_options_that_make_no_sense_are_refused() {
    let refused = |model: ModelOptions, options: FpgaOptions| {
        let card = Box::new(ModelCard::new(model));
        FpgaEngine::new(card, options).err().expect("it is refused").to_string()
    };
    for mhz in [0.0, -200.0, f64::NAN, f64::INFINITY] {
        let why = refused(ModelOptions { mhz, ..model(1, 8, 32) }, options());
        assert!(why.contains("clock"), "{mhz}: {why}");
    }
    let slots = refused(model(2, 8, 32), FpgaOptions { slots: usize::MAX, ..options() });
    assert!(slots.contains("fewer slots"), "{slots}");
}

/// Tags may begin anywhere, and go round.
#[test]
fn tags_begin_where_the_options_say() {
    let case = Case::uniform(7, 4, 500, 16, 100).unwrap();
    let expected = naive::compact(&case.recipe, case.entries()).unwrap();
    for first_tag in [0, 1 << 63, u64::MAX - 5] {
        let engine = engine(model(1, 8, 32), FpgaOptions { first_tag, ..options() });
        assert_eq!(together(&engine, &[(&case, case.sets(8 << 10))])[0], expected);
        assert_eq!(figure(&engine, "cpu_sets"), 0);
    }
}

/// Data that compresses to less than half: the first sets have no room in a slot, and then smaller ones are wanted,
/// which have.
#[test]
fn sets_that_have_no_room_in_a_slot_are_wanted_smaller() {
    let set = 64 << 10;
    let mut case = Case::uniform(11, 4, 3_000, 16, 0).unwrap();
    case.runs.iter_mut().flatten().for_each(|entry| entry.value = vec![7; 400]);
    let style = BlockStyle { codec: Codec::Lz4, ..BlockStyle::default() };
    case.blocks = case.runs.iter().map(|run| style.encode(run).unwrap()).collect();
    let expected = [naive::compact(&case.recipe, case.entries()).unwrap()];
    let options = FpgaOptions { set_bytes: set, ..FpgaOptions::default() };
    let engine = engine(card(1, set), options);
    // Nothing is known yet: as much as the input part of a slot has room for, less a tenth.
    assert_eq!(engine.caps().set_bytes, 2 * set * 9 / 10);
    let round = || {
        let (large, units) = (figure(&engine, "cpu_large"), figure(&engine, "unit_sets"));
        assert_eq!(together(&engine, &[(&case, case.sets(engine.caps().set_bytes))]), expected);
        (figure(&engine, "cpu_large") - large, figure(&engine, "unit_sets") - units)
    };
    let first = round();
    assert!(first.0 > 0 && engine.caps().set_bytes < set, "{first:?}");
    let last = (0..6).fold(first, |_, _| round());
    assert!(last.0 == 0 && last.1 > 10, "{last:?}");
}

/// Data of which more comes out than goes in, as keys are not shortened any more: sets whose output has no room go to the CPU,
/// and then smaller ones are wanted.
#[test]
fn sets_whose_output_has_no_room_are_wanted_smaller() {
    let set = 64 << 10;
    let mut case = Case::uniform(13, 4, 8_000, 20, 8).unwrap();
    for entry in case.runs.iter_mut().flatten() {
        let mut key = vec![7; 180];
        key.extend_from_slice(&entry.key);
        entry.key = key;
    }
    let style = BlockStyle { restart_interval: 64, ..BlockStyle::default() };
    case.blocks = case.runs.iter().map(|run| style.encode(run).unwrap()).collect();
    let mut recipe = (*case.recipe).clone();
    recipe.restart_interval = 1;
    case.recipe = recipe.into();
    let expected = [naive::compact(&case.recipe, case.entries()).unwrap()];
    let options = FpgaOptions { set_bytes: set, ..FpgaOptions::default() };
    let engine = engine(card(1, set), options);
    let wanted = engine.caps().set_bytes;
    for _ in 0..6 {
        assert_eq!(together(&engine, &[(&case, case.sets(engine.caps().set_bytes))]), expected);
    }
    assert!(figure(&engine, "code_out_full") > 0);
    assert!(engine.caps().set_bytes < wanted / 2, "{}", engine.caps().set_bytes);
    let (units, cpu) = (figure(&engine, "unit_sets"), figure(&engine, "cpu_sets"));
    assert!(units > cpu, "{units} sets on units, {cpu} not");
}
