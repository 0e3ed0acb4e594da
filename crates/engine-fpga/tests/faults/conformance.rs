//! The engine over the model makes what the naive twin makes: same blocks, files, carries and ledger.

use lithify_engine::conformance::*;
use lithify_engine::{CpuEngine, Engine};
use lithify_merge::workload::Case;

use crate::common::*;

/// Nothing but range tombstones takes sets of what devices take from the units: without them all sets run
/// there, with them those that lie under none.
#[test]
fn what_devices_take_runs_on_the_units() {
    let n = seeds("LITHIFY_FPGA_DEVICE", 1000);
    let (bare, covered) =
        (engine(model(2, 16, 32), options()), engine(model(1, 16, 32), options()));
    let mut equal = 0;
    for seed in 0..n {
        let profile = Profile::device(SMALL);
        let case = Case::with(seed, profile.size, profile.features).unwrap();
        let engine = if case.recipe.tombstones.is_empty() { &bare } else { &covered };
        let report = suite(engine, &FixedRt, seed..seed + 1, profile).unwrap();
        assert_eq!((report.refused, report.on_cpu), (0, 0));
        equal += report.equal;
    }
    assert_eq!(equal, n);
    let (units, kernel) = (figure(&bare, "unit_sets"), figure(&bare, "cpu_sets"));
    assert!(units > 5 * n && 95 * kernel <= 5 * units, "{units} on units, {kernel} on the kernel");
    let (units, kernel) = (figure(&covered, "unit_sets"), figure(&covered, "cpu_sets"));
    let why = figure(&covered, "cpu_tombstones") + figure(&covered, "cpu_settled");
    assert!(
        units > n / 3 && why == kernel,
        "{units} on units, {kernel} on the kernel, {why} of tombstones"
    );
}

#[test]
fn keys_that_spell_tags() {
    let engine = engine(model(1, 16, 16), options());
    let n = seeds("LITHIFY_FPGA_TAGS", 200);
    let report = suite(&engine, &FixedRt, 0..n, Profile::tag_keys(SMALL)).unwrap();
    assert_eq!((report.equal, report.refused, report.on_cpu), (n, 0, 0));
    assert!(figure(&engine, "unit_sets") > n, "{}", figure(&engine, "unit_sets"));
}

#[test]
fn everything_there_is() {
    let engine = engine(model(1, 8, 32), options());
    let n = seeds("LITHIFY_FPGA_GENERAL", 300);
    let report = suite(&engine, &FixedRt, 0..n, Profile::everything(SMALL)).unwrap();
    assert_eq!(report.equal + report.refused, n);
    assert_eq!(report.on_cpu, 0);
    assert!(figure(&engine, "unit_sets") > n / 10, "{}", figure(&engine, "unit_sets"));
}

#[test]
fn a_handover_after_every_set_leaves_no_trace() {
    let engine = engine(model(1, 16, 32), options());
    let n = seeds("LITHIFY_FPGA_HANDOVERS", 100);
    for first in [true, false] {
        let (a, b): (&dyn Engine, &dyn Engine) =
            if first { (&engine, &CpuEngine) } else { (&CpuEngine, &engine) };
        handover(a, b, &FixedRt, 0..n, Profile::device(SMALL)).unwrap();
    }
    assert!(figure(&engine, "unit_sets") > 100);
}
