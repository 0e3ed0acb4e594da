//! The engine over the emulator makes what the naive twin makes: same blocks, files, carries and ledger.

use lithify_engine::conformance::*;
use lithify_engine::{CpuEngine, Engine};

use crate::common::*;

/// All that the profile of devices has runs on the device.
#[test]
fn what_devices_take_runs_there() {
    let engine = engine();
    let n = seeds(200);
    let report = suite(&engine, &FixedRt, 0..n, Profile::device(SMALL)).unwrap();
    assert_eq!((report.equal, report.refused, report.on_cpu), (n, 0, 0), "{:?}", engine.evidence());
    assert_eq!(figure(&engine, "device_sets"), report.here);
    assert!(figure(&engine, "normalised_blocks") > 0, "codecs and checksums of all kinds");
    println!("{n} device cases of {} sets: 0 differences", report.here);
}

/// Blocks that are compressed with LZ4 are decoded on the device, and made there.
#[test]
fn lz4_both_ways() {
    let engine = engine();
    let n = seeds(100);
    let report = suite(&engine, &FixedRt, 0..n, Profile::lz4(SMALL)).unwrap();
    assert_eq!((report.equal, report.refused, report.on_cpu), (n, 0, 0), "{:?}", engine.evidence());
    let [decoded, encoded] = ["decoded_blocks", "encoded_blocks"].map(|of| figure(&engine, of));
    assert!(decoded > 10 * n && encoded > 10 * n, "{decoded} {encoded}");
    println!(
        "{n} cases of {} sets, {decoded} blocks decoded, {encoded} compressed: 0 differences",
        report.here
    );
}

#[test]
fn keys_that_spell_tags() {
    let engine = engine();
    let n = seeds(60);
    let report = suite(&engine, &FixedRt, 0..n, Profile::tag_keys(SMALL)).unwrap();
    assert_eq!((report.equal, report.refused, report.on_cpu), (n, 0, 0), "{:?}", engine.evidence());
    println!("{n} cases whose keys spell tags, of {} sets: 0 differences", report.here);
}

/// Most recipes are refused, and most sets of the others hold operands or single deletes.
#[test]
fn everything_there_is() {
    let engine = engine();
    let n = seeds(150);
    let report = suite(&engine, &FixedRt, 0..n, Profile::everything(SMALL)).unwrap();
    assert_eq!(report.equal + report.refused, n);
    assert!(report.equal > n / 8 && report.here > n / 8, "{report:?}");
    assert_eq!(figure(&engine, "device_lost"), 0, "{:?}", engine.evidence());
    println!("{n} general cases: {report:?}");
}

#[test]
fn a_handover_after_every_set_leaves_no_trace() {
    let engine = engine();
    let n = seeds(40);
    for first in [true, false] {
        let (a, b): (&dyn Engine, &dyn Engine) =
            if first { (&engine, &CpuEngine) } else { (&CpuEngine, &engine) };
        handover(a, b, &FixedRt, 0..n / 2, Profile::device(SMALL)).unwrap();
        handover(a, b, &FixedRt, 0..n.div_ceil(2), Profile::lz4(SMALL)).unwrap();
    }
    assert!(figure(&engine, "device_sets") > n);
    println!(
        "{} handovers, {} sets on the emulator: 0 differences",
        2 * n,
        figure(&engine, "device_sets")
    );
}

#[test]
fn values_of_any_size() {
    let engine = engine();
    let large = Size { entries: 30, value: 100 << 10 };
    for profile in [Profile::device(large), Profile::lz4(large)] {
        let report = suite(&engine, &FixedRt, 1000..1004, profile).unwrap();
        assert_eq!((report.refused, report.on_cpu), (0, 0), "{:?}", engine.evidence());
    }
}
