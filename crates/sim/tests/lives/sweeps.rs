//! Sweeps in small over what ordinary lives come to rarely: values that expire, dictionaries, large
//! batches that several clients insert. Each position is crashed in two ways, each sync fails.

use lithify_sim::sweep::{Count, Part, sweep};
use lithify_sim::workloads::Workload;

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
