use lithify_base::{End, Key};

use super::*;
use crate::certify::{Certifier, Mode};
use crate::cleancut::{BlockFence, within};
use crate::naive::{self, Output};
use crate::set::JobRange;
use crate::workload::{Case, Choices, InputBlock, Size};

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

/// A compaction cut at some keys, each part merged from the blocks that may concern it: together the
/// parts read, drop and keep what one kernel would have.
#[test]
fn parts_are_the_whole() {
    for seed in 600..800 {
        let mut case = Case::generate(seed, SMALL).unwrap();
        let dice = &mut Choices::new(seed);
        let mut recipe = Recipe::clone(&case.recipe);
        recipe.range = JobRange::default();
        let order = recipe.order.clone();
        let (_, whole) = naive::compact(&recipe, case.entries()).unwrap();
        let entries = case.entries();
        let mut cuts: Vec<Key> = match entries.is_empty() {
            true => vec![b"m"[..].into()],
            false => (0..1 + dice.below(4))
                .map(|_| entries[dice.below(entries.len())].key[..].into())
                .collect(),
        };
        cuts.sort_by(|a, b| order.compare(a, b));
        cuts.dedup();
        let blocks = std::mem::take(&mut case.blocks);
        let mut sum = Ledger::default();
        for no in 0..=cuts.len() {
            let lo = no.checked_sub(1).map(|i| cuts[i].clone());
            let hi = cuts.get(no).map(|key| End { key: key.clone(), inclusive: false });
            let range = JobRange { lo, hi };
            case.recipe = Arc::new(recipe.part(range.clone()));
            let fences = |run: &Vec<InputBlock>| run.iter().map(|b| b.fence.clone()).collect();
            let index: Vec<Vec<BlockFence>> = blocks.iter().map(fences).collect();
            let of = |(no, run): (usize, &Vec<InputBlock>)| {
                run[within(&index, no, &range, &*order)].to_vec()
            };
            case.blocks = blocks.iter().enumerate().map(of).collect();
            let (expected, ledger) = naive::compact(&case.recipe, entries.clone()).unwrap();
            let (out, seen) = merge(&case.recipe, case.sets(2000), dice)
                .unwrap_or_else(|e| panic!("seed {seed} part {no}: {e}\n{:?}", case.recipe));
            same(&out, &expected, &format!("seed {seed} part {no}"));
            assert_eq!(seen, ledger, "seed {seed} part {no}");
            for t in out.files.iter().flat_map(|f| &f.tombstones) {
                let above = range.lo.as_ref().is_none_or(|lo| order.compare(lo, &t.lo).is_le());
                let below =
                    range.hi.as_ref().is_none_or(|hi| order.compare(&t.hi, &hi.key).is_le());
                assert!(above && below, "seed {seed} part {no}: {t:?} reaches over its end");
                let of = recipe.tombstones.find(&t.lo, &*order).unwrap();
                assert!(of.tombs.iter().any(|o| o.seq == t.seq), "seed {seed} part {no}: {t:?}");
            }
            sum.entries_in += seen.entries_in;
            sum.entries_out += seen.entries_out;
            sum.sum_in = sum.sum_in.wrapping_add(seen.sum_in);
            sum.sum_dropped = sum.sum_dropped.wrapping_add(seen.sum_dropped);
            sum.bytes_in += seen.bytes_in;
            (0..sum.dropped.len()).for_each(|i| sum.dropped[i] += seen.dropped[i]);
        }
        assert_eq!((sum.entries_in, sum.entries_out), (whole.entries_in, whole.entries_out));
        assert_eq!((sum.sum_in, sum.bytes_in), (whole.sum_in, whole.bytes_in), "seed {seed}");
        assert_eq!((sum.dropped, sum.sum_dropped), (whole.dropped, whole.sum_dropped));
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
