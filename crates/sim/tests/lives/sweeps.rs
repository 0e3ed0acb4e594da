//! Sweeps in small over what ordinary lives come to rarely: values that expire, dictionaries, large
//! batches that several clients insert, engines that fail. Each position is crashed in two ways, each sync fails.

use lithify_sim::choices::{Dice, Stream};
use lithify_sim::explore::{Reach, Tally, explore};
use lithify_sim::sweep::{Count, Part, sweep};
use lithify_sim::workloads::Workload;
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

#[test]
fn engines_that_fail() {
    swept("engine-breaks", 1);
    swept("engine-found-out-late", 1);
}

/// Lives whose compactions use an engine, one for each thing that goes wrong with it.
#[test]
fn lives_with_an_engine() {
    let mut plans = Vec::new();
    let mut tally = Tally::default();
    for seed in 0..400 {
        let shape = Shape::choose(&Dice::new(Stream::seeded(seed, "settings")));
        let Some(plan) = shape.engine.filter(|plan| !plans.contains(plan)) else { continue };
        plans.push(plan);
        // Crashes are swept above; here jobs of many shapes meet the engine.
        let reach = Reach { variants: 0, ..Reach::default() };
        explore(seed, &reach, &mut tally)
            .unwrap_or_else(|f| panic!("seed {seed}, {plan:?}: {}", f.violation));
    }
    assert_eq!(plans.len(), 12);
    assert!(tally.marks.count("engine_replaced") > 5, "{}", tally.marks);
}
