use super::*;
use crate::certify::{Certifier, Mode};
use crate::naive::{self, Output};
use crate::workload::{Case, Choices, Size};

const SMALL: Size = Size { entries: 60, value: 600 };

/// Merges sets, drains whenever the dice say so, and certifies everything.
fn merge(
    recipe: &Arc<Recipe>,
    sets: Vec<BlockSet>,
    dice: &mut Choices,
) -> Result<(Output, Ledger)> {
    let mut kernel = Kernel::new(recipe.clone())?;
    let mut certifier = Certifier::new(Mode::Full);
    let (mut out, mut products) = (Output::default(), Products::default());
    let mut take = |kernel: &mut Kernel, out: &mut Output, certifier: &mut Certifier| {
        kernel.drain(&mut products);
        out.absorb(&products);
        certifier.read(recipe, &products)
    };
    for set in sets {
        kernel.begin(set)?;
        while kernel.work(1 + dice.below(5000) as u64)? == Work::More {
            if dice.one_in(2) {
                take(&mut kernel, &mut out, &mut certifier)?;
            }
        }
    }
    let ledger = kernel.finish()?;
    take(&mut kernel, &mut out, &mut certifier)?;
    certifier.finish(&ledger)?;
    Ok((out, ledger))
}

/// Fails with the first difference between two outputs.
fn same(seen: &Output, expected: &Output, what: &str) {
    for (i, (a, b)) in seen.files.iter().zip(&expected.files).enumerate() {
        assert_eq!(a.tombstones, b.tombstones, "{what}: tombstones of file {i}");
        assert_eq!(a.hashes, b.hashes, "{what}: hashes of file {i}");
        for (j, (a, b)) in a.blocks.iter().zip(&b.blocks).enumerate() {
            assert!(a == b, "{what}: block {j} of file {i}\n{a:?}\n{b:?}");
        }
        assert_eq!(a.blocks.len(), b.blocks.len(), "{what}: blocks of file {i}");
    }
    assert_eq!(seen.files.len(), expected.files.len(), "{what}: files");
}

#[test]
fn kernel_equals_its_naive_twin_for_every_set_budget() {
    for seed in 0..400 {
        let case = Case::generate(seed, SMALL).unwrap();
        let (expected, ledger) = naive::compact(&case.recipe, case.entries()).unwrap();
        let dice = &mut Choices::new(seed);
        for budget in [1, 300, 5000, u64::MAX] {
            let (out, seen) = merge(&case.recipe, case.sets(budget), dice)
                .unwrap_or_else(|e| panic!("seed {seed} budget {budget}: {e}\n{:?}", case.recipe));
            same(&out, &expected, &format!("seed {seed} budget {budget}"));
            assert_eq!(seen, ledger, "seed {seed} budget {budget}");
            assert!(out.is_closed());
        }
    }
}

#[test]
fn sorted_entries_give_the_same_bytes_as_blocks() {
    for seed in 400..500 {
        let case = Case::generate(seed, SMALL).unwrap();
        let (expected, ledger) = naive::compact(&case.recipe, case.entries()).unwrap();
        let mut entries = case.entries();
        entries.retain(|e| case.recipe.range.contains(&e.key, &*case.recipe.order));
        naive::sort(&case.recipe, &mut entries);
        let mut kernel = Kernel::new(case.recipe.clone()).unwrap();
        for e in &entries {
            kernel.push(&e.key, e.tag, &e.value, e.run).unwrap();
        }
        assert_eq!(kernel.finish().unwrap(), ledger);
        let (mut out, mut products) = (Output::default(), Products::default());
        kernel.drain(&mut products);
        out.absorb(&products);
        same(&out, &expected, &format!("seed {seed}"));
    }
}

#[test]
fn another_kernel_goes_on_from_any_carry() {
    for seed in 500..600 {
        let case = Case::generate(seed, SMALL).unwrap();
        let (expected, ledger) = naive::compact(&case.recipe, case.entries()).unwrap();
        let (mut out, mut products) = (Output::default(), Products::default());
        let mut kernel = Kernel::new(case.recipe.clone()).unwrap();
        for set in case.sets(2000) {
            kernel.begin(set).unwrap();
            assert_eq!(kernel.work(u64::MAX).unwrap(), Work::SetDone);
            kernel.drain(&mut products);
            out.absorb(&products);
            let Some(Item::SetDone(done)) = products.items().last() else { panic!("no carry") };
            kernel = Kernel::resume(case.recipe.clone(), (*done.carry).clone()).unwrap();
        }
        assert_eq!(kernel.finish().unwrap(), ledger, "seed {seed}");
        kernel.drain(&mut products);
        out.absorb(&products);
        same(&out, &expected, &format!("seed {seed}"));
    }
}

/// A rule that no case reaches is a rule without a test.
#[test]
fn the_cases_reach_every_rule() {
    let (mut sum, mut files, mut reversed) = (Ledger::default(), 0, 0);
    for seed in 0..400 {
        let case = Case::generate(seed, SMALL).unwrap();
        let (out, l) = naive::compact(&case.recipe, case.entries()).unwrap();
        sum.dropped.iter_mut().zip(l.dropped).for_each(|(a, b)| *a += b);
        sum.zeroed += l.zeroed;
        sum.tombs_hidden += l.tombs_hidden;
        sum.tombs_elided += l.tombs_elided;
        sum.tombs_out += l.tombs_out;
        files += out.files.len();
        reversed += u64::from(!case.recipe.order.is_bytewise());
    }
    let reached = [sum.zeroed, sum.tombs_hidden, sum.tombs_elided, sum.tombs_out, reversed];
    assert!(sum.dropped.iter().chain(&reached).all(|&n| n >= 30), "{sum:?} {reversed}");
    assert!(files > 1000, "{files} files");
}

#[test]
fn entries_out_of_order_are_refused() {
    use lithify_base::Kind;
    let mut kernel = Kernel::new(Arc::new(Recipe::new(1))).unwrap();
    let value = |seq| Tag::new(seq, Kind::Value);
    kernel.push(b"b", value(5), b"", 0).unwrap();
    assert!(kernel.push(b"a", value(6), b"", 0).unwrap_err().is_corruption());
    let mut kernel = Kernel::new(Arc::new(Recipe::new(1))).unwrap();
    kernel.push(b"b", value(5), b"", 0).unwrap();
    let e = kernel.push(b"b", value(6), b"", 0).unwrap_err();
    assert!(e.is_corruption(), "dropping the newer one would lose it");
    let mut kernel = Kernel::new(Arc::new(Recipe::new(1))).unwrap();
    let e = kernel.push(b"b", Tag(0x10), b"", 0).unwrap_err();
    assert_eq!(e.kind(), lithify_base::ErrorKind::Unsupported);
}
