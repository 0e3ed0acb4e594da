use super::*;
use crate::workload::{Case, Size};
use crate::{Kernel, Work};
use lithify_format::xxph3::xxph3_64;

fn products(case: &Case) -> (Products, Ledger) {
    let mut kernel = Kernel::new(case.recipe.clone()).unwrap();
    for set in case.sets(u64::MAX) {
        kernel.begin(set).unwrap();
        while kernel.work(u64::MAX).unwrap() == Work::More {}
    }
    let ledger = kernel.finish().unwrap();
    let mut out = Products::default();
    kernel.drain(&mut out);
    (out, ledger)
}

fn verdict(mode: Mode, case: &Case, out: &Products, ledger: &Ledger) -> Result<()> {
    let mut c = Certifier::new(mode);
    c.read(&case.recipe, out)?;
    c.finish(ledger)
}

/// Any single lie about any block is noticed.
#[test]
fn lies_are_refused() {
    let lies: [fn(&mut BlockMeta); 7] = [
        |b| b.entries += 1,
        |b| b.raw_key_bytes += 1,
        |b| b.raw_value_bytes -= 1,
        |b| b.min_seq += 1,
        |b| b.max_seq += 1,
        |b| (b.values, b.deletes) = (b.values - 1, b.deletes + 1),
        |b| b.hashes.end -= 1,
    ];
    let case = Case::uniform(3, 2, 400, 16, 32).unwrap();
    let (out, ledger) = products(&case);
    verdict(Mode::Full, &case, &out, &ledger).unwrap();
    verdict(Mode::Meta, &case, &out, &ledger).unwrap();
    for (i, lie) in lies.into_iter().enumerate() {
        let mut bad = out.clone();
        let Item::Block(b) = &mut bad.items[1] else { panic!("a block") };
        lie(b);
        assert!(verdict(Mode::Full, &case, &bad, &ledger).is_err(), "lie {i}");
    }
    let mut other = ledger.clone();
    other.sum_out ^= 1;
    other.sum_in ^= 1;
    assert!(verdict(Mode::Full, &case, &out, &other).is_err());
}

#[test]
fn every_byte_of_a_block_matters() {
    let case = Case::uniform(4, 1, 60, 16, 8).unwrap();
    let (out, ledger) = products(&case);
    for at in 0..out.arena().len() {
        let mut bad = out.clone();
        bad.arena[at] ^= 0x20;
        assert!(verdict(Mode::Full, &case, &bad, &ledger).is_err(), "byte {at}");
    }
}

#[test]
fn lost_doubled_and_swapped_blocks_are_refused_by_metadata_alone() {
    let case = Case::uniform(5, 2, 600, 16, 32).unwrap();
    let (out, ledger) = products(&case);
    let spoil = |f: &dyn Fn(&mut Vec<Item>)| {
        let mut bad = out.clone();
        f(&mut bad.items);
        verdict(Mode::Meta, &case, &bad, &ledger)
    };
    assert!(spoil(&|_| ()).is_ok());
    assert!(spoil(&|i| drop(i.remove(2))).is_err());
    assert!(spoil(&|i| i.insert(2, i[2].clone())).is_err());
    assert!(spoil(&|i| i.swap(1, 2)).is_err());
    assert!(spoil(&|i| drop(i.pop())).is_err(), "the last file cut");
}

#[test]
fn generated_outputs_pass_both_modes() {
    for seed in 0..50 {
        let case = Case::generate(seed, Size { entries: 80, value: 200 }).unwrap();
        let (out, ledger) = products(&case);
        verdict(Mode::Full, &case, &out, &ledger).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        verdict(Mode::Meta, &case, &out, &ledger).unwrap();
    }
}

#[test]
fn a_filter_that_misses_a_key_is_refused() {
    let case = Case::uniform(6, 1, 100, 16, 8).unwrap();
    let (out, _) = products(&case);
    let keys: Vec<u64> = case.entries().iter().map(|e| xxph3_64(&e.key)).collect();
    members(&out, |h| keys.contains(&h)).unwrap();
    assert!(members(&out, |h| h != keys[50] && keys.contains(&h)).is_err());
}
