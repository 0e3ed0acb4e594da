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

/// An output of more than two samples.
fn many_blocks() -> (Case, Products, Ledger, Vec<usize>) {
    let case = Case::uniform(6, 2, 6000, 16, 100).unwrap();
    let (out, ledger) = products(&case);
    let is_block = |&i: &usize| matches!(out.items[i], Item::Block(_));
    let blocks: Vec<usize> = (0..out.items.len()).filter(is_block).collect();
    assert!(blocks.len() > 2 * SAMPLE as usize + 1, "{} blocks", blocks.len());
    (case, out, ledger, blocks)
}

/// Flips a bit of a block's stored bytes; `at` counts from its end.
fn flip(out: &mut Products, item: usize, at: usize) -> std::ops::Range<usize> {
    let Item::Block(b) = &out.items[item] else { panic!("a block") };
    let range = b.at.clone();
    out.arena[range.end - at] ^= 1;
    range
}

#[test]
fn sums_accept_what_the_kernel_makes() {
    let (case, out, ledger, _) = many_blocks();
    verdict(Mode::Sums, &case, &out, &ledger).unwrap();
    for seed in 0..200 {
        let case = Case::generate(seed, Size { entries: 80, value: 200 }).unwrap();
        let (out, ledger) = products(&case);
        verdict(Mode::Sums, &case, &out, &ledger).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
    }
}

#[test]
fn sums_find_a_wrong_sum_in_every_block() {
    let (case, out, ledger, blocks) = many_blocks();
    for (no, &item) in blocks.iter().enumerate() {
        // The sum itself, the type byte, and the payload.
        for at in [1, TRAILER, TRAILER + 40] {
            let mut bad = out.clone();
            flip(&mut bad, item, at);
            let error = verdict(Mode::Sums, &case, &bad, &ledger).unwrap_err();
            assert!(error.to_string().contains("checksum"), "block {no}, byte {at}: {error}");
            verdict(Mode::Meta, &case, &bad, &ledger).expect("metadata does not show it");
        }
    }
}

/// A value changed under a right sum: found in the sample, as is a filter hash that is missing.
#[test]
fn sums_find_a_wrong_entry_in_one_block_of_a_sample() {
    let (case, out, ledger, blocks) = many_blocks();
    let spoil: [fn(&Recipe, &mut Products, usize); 2] = [
        |recipe, bad, item| {
            // The last value ends where the restart points begin, of which there is one at least.
            let Item::Block(b) = &bad.items[item] else { panic!("a block") };
            let payload = &bad.arena[b.at.start..b.at.end - TRAILER];
            let restarts = u32::from_le_bytes(*payload.last_chunk().unwrap()) as usize;
            let range = flip(bad, item, TRAILER + 4 * (restarts + 1) + 1);
            let end = range.end - TRAILER;
            let sum = raw_sum(recipe.checksum, &bad.arena[range.start..end], bad.arena[end]);
            bad.arena[end + 1..range.end].copy_from_slice(&sum.to_le_bytes());
        },
        |_, bad, item| {
            let Item::Block(b) = &mut bad.items[item] else { panic!("a block") };
            b.hashes.end -= 1;
        },
    ];
    for (no, &item) in blocks.iter().enumerate() {
        for (what, spoil) in spoil.iter().enumerate() {
            let mut bad = out.clone();
            spoil(&case.recipe, &mut bad, item);
            let found = verdict(Mode::Sums, &case, &bad, &ledger).is_err();
            assert_eq!(found, (no as u64).is_multiple_of(SAMPLE), "block {no}, change {what}");
            assert!(verdict(Mode::Full, &case, &bad, &ledger).is_err(), "block {no}, {what}");
        }
    }
}

/// A few bytes announce hundreds of MiB under some codecs.
#[test]
fn a_block_under_a_codec_that_was_not_asked_for_is_refused() {
    let (case, mut out, ledger, blocks) = many_blocks();
    let Item::Block(b) = &out.items[blocks[0]] else { panic!("a block") };
    let range = b.at.clone();
    let end = range.end - TRAILER;
    out.arena[end] = lithify_format::compress::Codec::Lz4 as u8;
    let sum = raw_sum(case.recipe.checksum, &out.arena[range.start..end], out.arena[end]);
    out.arena[end + 1..range.end].copy_from_slice(&sum.to_le_bytes());
    let error = verdict(Mode::Full, &case, &out, &ledger).unwrap_err();
    assert!(error.to_string().contains("another way than was asked for"), "{error}");
}

/// Searches begin at restart points, a walk does not: two that are swapped hide keys from reads.
#[test]
fn swapped_restart_points_are_found() {
    let mut case = Case::uniform(5, 2, 600, 16, 32).unwrap();
    let mut recipe = Recipe::clone(&case.recipe);
    recipe.restart_interval = 2;
    case.recipe = recipe.into();
    let (out, ledger) = products(&case);
    verdict(Mode::Full, &case, &out, &ledger).unwrap();
    let mut tried = 0;
    for item in 0..out.items.len() {
        let mut bad = out.clone();
        let Item::Block(b) = &bad.items[item] else { continue };
        let (range, end) = (b.at.clone(), b.at.end - TRAILER);
        let restarts = u32::from_le_bytes(*bad.arena[range.start..end].last_chunk().unwrap());
        if restarts < 3 {
            continue;
        }
        let second = end - 4 * restarts as usize;
        let (one, two) = bad.arena[second..second + 8].split_at_mut(4);
        one.swap_with_slice(two);
        let sum = raw_sum(case.recipe.checksum, &bad.arena[range.start..end], bad.arena[end]);
        bad.arena[end + 1..range.end].copy_from_slice(&sum.to_le_bytes());
        assert!(verdict(Mode::Full, &case, &bad, &ledger).is_err(), "block {item}");
        tried += 1;
    }
    assert!(tried > 0);
}

/// A file that is cut behind a split key, at the next block, and not at it.
#[test]
fn a_block_over_a_split_key_is_refused() {
    let mut case = Case::uniform(5, 2, 600, 16, 32).unwrap();
    let (out, ledger) = products(&case);
    verdict(Mode::Meta, &case, &out, &ledger).unwrap();
    let Item::Block(b) = &out.items[1] else { panic!("a block") };
    let mut recipe = Recipe::clone(&case.recipe);
    recipe.hard_splits = vec![out.last_key(b).user.into()];
    case.recipe = recipe.into();
    let mut late = out.clone();
    late.items.insert(2, out.items.last().unwrap().clone());
    let refused = verdict(Mode::Meta, &case, &late, &ledger).unwrap_err();
    assert!(refused.to_string().contains("over a split key"), "{refused}");
}
