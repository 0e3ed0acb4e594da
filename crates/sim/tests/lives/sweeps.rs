//! Sweeps in small over what ordinary lives come to rarely: values that expire, dictionaries, large
//! batches that several clients insert, engines that fail. Each position is crashed in two ways, each sync fails
//! (reliability F2, F3, F8, F17).

use lithify_sim::choices::{Dice, Stream};
use lithify_sim::explore::{Reach, Tally, explore};
use lithify_sim::sweep::{Count, Part, sweep};
use lithify_sim::workloads::{Workload, all};
use lithify_sim::world::Shape;

fn swept(name: &str, kinds: usize) {
    let workload = Workload::named(name).unwrap_or_else(|| panic!("no workload is `{name}`"));
    let part = Part { kinds, after_sync: 1, every_call: 1009, first_call: 7 };
    let mut count = Count::default();
    if let Err(violation) = sweep(workload, &part, &mut count) {
        panic!("{violation}");
    }
    assert!(count.positions > 50 && count.images > 100, "{count:?}");
}

#[test]
fn values_that_expire() {
    swept("values-expire", 2);
}

#[test]
fn large_batches_side_by_side() {
    swept("group-side-by-side", 2);
}

#[test]
#[cfg(feature = "zstd")]
fn dictionaries() {
    swept("dictionaries", 1);
}

/// Whatever goes wrong with an engine, a database that uses it loses nothing in a crash. Each life has marks
/// for the plans that really happened.
#[test]
fn engines_that_fail() {
    let about_engines = all().filter(|w| w.name.starts_with("engine-"));
    let names: Vec<&str> = about_engines.map(|w| w.name).collect();
    assert_eq!(names.len(), 7);
    names.into_iter().for_each(|name| swept(name, 1));
}

/// Lives whose compactions use engines: each thing that can go wrong does, in one of them.
#[test]
fn lives_with_an_engine() {
    let mut tally = Tally::default();
    for seed in 1..=400 {
        let shape = Shape::choose(&Dice::new(Stream::seeded(seed, "settings")));
        if shape.engines.is_empty() {
            continue;
        }
        // Crashes are swept above; here jobs of many shapes meet the engines.
        let reach = Reach { variants: 0, ..Reach::default() };
        explore(seed, &reach, &mut tally)
            .unwrap_or_else(|f| panic!("seed {seed}, {:?}: {}", shape.engines, f.violation));
    }
    let happened = |plan: &str| tally.marks.count(&format!("engine: {plan}")) > 0;
    for plan in [
        "Blames",
        "Breaks",
        "Falsified",
        "Hangs",
        "Late",
        "LostBlock",
        "LostFileCut",
        "LostSetDone",
        "None",
        "Refuses",
        "SmallSets",
        "TwiceBlock",
        "Unsuitable",
        "WrongByte",
        "WrongInput",
        "WrongLedger",
    ] {
        assert!(happened(plan), "no life with {plan}:\n{}", tally.marks);
    }
}
