//! Inputs that the generated cases hardly have: many runs, long keys, blocks without counts, blocks that lie,
//! and the kernels' hashes.

use std::sync::Arc;

use lithify_base::{Kind, Tag};
use lithify_engine::conformance::{Ran, run};
use lithify_engine::{CpuEngine, Engine, Fault, Products, Progress};
use lithify_engine_gpu::{Emu, GpuEngine, GpuOptions, emu};
use lithify_format::checksum::{ChecksumKind, raw_sum};
use lithify_format::weight::{content, weigh};
use lithify_format::xxph3::xxph3_64;
use lithify_merge::naive::Entry;
use lithify_merge::workload::{BlockStyle, Case, Choices, Features};
use lithify_merge::{Recipe, naive};

use crate::common::*;

/// The whole case by the engine alone.
fn alone(engine: &dyn Engine, case: &Case, budget: u64) -> lithify_base::Result<Ran> {
    run(engine, &FixedRt, &case.recipe, case.sets(budget), true)
}

/// What ends a session over the whole case as one set.
fn fault(engine: &dyn Engine, case: &Case) -> Fault {
    let mut session = engine.open(case.recipe.clone()).unwrap_or_else(|why| panic!("{why}"));
    case.sets(u64::MAX).into_iter().for_each(|set| drop(session.offer(set)));
    session.seal();
    let mut products = Products::default();
    loop {
        match session.poll(&mut products) {
            Progress::Failed(fault) => return fault,
            Progress::Done(_) => panic!("the engine took it"),
            _ => {}
        }
    }
}

/// The set does not suit the device, and that is all.
fn does_not_suit(engine: &GpuEngine, case: &Case, why: &str) {
    let before = figure(engine, "unsuitable_sets");
    let fault = fault(engine, case);
    let said = fault.error().to_string();
    assert!(matches!(fault, Fault::Unsuitable(_)) && said.contains(why), "{fault:?}");
    assert_eq!(figure(engine, "unsuitable_sets"), before + 1);
    assert_eq!(figure(engine, "device_lost"), 0);
}

/// The engine's output is that of the naive twin.
fn check(engine: &GpuEngine, case: &Case, budget: u64) {
    let ran =
        alone(engine, case, budget).unwrap_or_else(|e| panic!("{e}: {:?}", engine.evidence()));
    let (output, ledger) = naive::compact(&case.recipe, case.entries()).unwrap();
    assert!(ran.output == output && ran.ledger == ledger);
}

/// A case of these runs, each sorted here, in blocks of `style`.
fn case_of(recipe: Recipe, mut runs: Vec<Vec<Entry>>, style: BlockStyle) -> Case {
    for run in &mut runs {
        naive::sort(&recipe, run);
    }
    let blocks = runs.iter().map(|run| style.encode(run).unwrap()).collect();
    Case { recipe: Arc::new(recipe), runs, blocks }
}

#[test]
fn the_kernels_hash_as_the_format_does() {
    let bytes = Choices::new(7).bytes(4096 + 64);
    for n in 0..=4096 {
        // At every alignment.
        let bytes = &bytes[n % 8..][..n];
        let [sum, key, held, weight] = emu::hashes(bytes).unwrap();
        assert_eq!(sum as u32, raw_sum(ChecksumKind::Xxh3, bytes, 0), "XXH3 of {n} bytes");
        assert_eq!(key, xxph3_64(bytes), "XXPH3 of {n} bytes");
        assert_eq!(held, content(key, bytes), "content of {n} bytes");
        assert_eq!(weight, weigh(held, Tag(n as u64)), "weight of {n} bytes");
    }
}

/// Up to 64 runs take one round of merges, more take two.
#[test]
fn many_runs() {
    let engine = engine();
    for runs in [1, 2, 63, 64, 65, 129, 1024] {
        let case = Case::uniform(3, runs, 1500, 12, 20).unwrap();
        check(&engine, &case, u64::MAX);
    }
    let reason = refusal(engine.open(Arc::new(Recipe::new(1025))));
    assert!(reason.contains("1025"), "{reason}");
}

/// What files do not say of their blocks the device counts.
#[test]
fn blocks_without_counts() {
    let engine = engine();
    for seed in 0..8 {
        let mut case = Case::with(seed, SMALL, Features::Device).unwrap();
        for (i, block) in case.blocks.iter_mut().flatten().enumerate() {
            if i % 3 > 0 {
                (block.slice.entries, block.slice.key_bytes) = (0, 0);
            }
        }
        check(&engine, &case, 2000);
    }
}

/// Counts that a file states wrongly are found, and so is a block whose bytes changed.
#[test]
fn blocks_that_lie_are_given_to_the_cpu() {
    let engine = engine();
    let case = Case::uniform(9, 2, 500, 16, 32).unwrap();
    let tried = |change: &dyn Fn(&mut Case)| {
        let mut case = case.clone();
        change(&mut case);
        let fault = fault(&engine, &case);
        assert!(matches!(fault, Fault::Engine(_)), "{fault:?}");
        engine.evidence().unwrap().to_string()
    };
    let said = tried(&|case| case.blocks[1][2].slice.entries += 1);
    assert!(said.contains("another number of entries"), "{said}");
    let said = tried(&|case| case.blocks[1][2].slice.key_bytes -= 1);
    assert!(said.contains("another number of entries"), "{said}");
    let said = tried(&|case| {
        let slice = &mut case.blocks[1][2].slice;
        let mut bytes = slice.bytes.as_slice().to_vec();
        bytes[17] ^= 1;
        slice.bytes = bytes.into();
    });
    assert!(said.contains("checksum"), "{said}");
    let said = tried(&|case| case.blocks[0].swap(1, 2));
    assert!(said.contains("not in order"), "{said}");
    assert_eq!((figure(&engine, "device_lost"), figure(&engine, "unsuitable_sets")), (0, 0));
    check(&engine, &case, u64::MAX);
}

/// A table from outside has one number for all of its entries.
#[test]
fn numbers_of_whole_blocks() {
    let engine = engine();
    let mut case = Case::uniform(11, 2, 300, 8, 16).unwrap();
    let recipe = case.recipe.clone();
    for entry in &mut case.runs[0] {
        entry.tag = Tag::new(0, Kind::Value);
    }
    let style = BlockStyle::default();
    case.blocks[0] = style.encode(&case.runs[0]).unwrap();
    for block in &mut case.blocks[0] {
        block.slice.seq = Some(5000);
    }
    for entry in &mut case.runs[0] {
        entry.tag = Tag::new(5000, Kind::Value);
    }
    case.recipe = recipe;
    check(&engine, &case, 3000);
}

/// Keys up to 64 KiB that differ late, early and by their length alone.
#[test]
fn long_keys() {
    let engine = engine();
    let c = &mut Choices::new(5);
    let mut runs = vec![Vec::new(); 3];
    for seq in 1..=90 {
        let run = c.below(3);
        let len = c.pick(&[0, 1, 15, 16, 17, 240, 241, 1000, 1024, 5000, 64 << 10]);
        let mut key = vec![b'k'; len];
        if len > 0 && c.one_in(2) {
            let at = c.below(len);
            key[at] = c.pick(&[0, b'j', 0xff]);
        }
        let tag = Tag::new(seq, if c.one_in(5) { Kind::Delete } else { Kind::Value });
        let value = if tag.kind() == Some(Kind::Delete) { Vec::new() } else { c.bytes(20) };
        runs[run].push(Entry { key, tag, value, run: run as u16 });
    }
    // Newer runs have larger numbers.
    for (run, entries) in runs.iter_mut().enumerate() {
        for e in entries {
            e.tag = Tag::new(e.tag.seq() + 100 * (2 - run as u64), e.tag.kind().unwrap());
        }
    }
    let mut recipe = Recipe::new(3);
    recipe.snapshots = vec![50, 120, 230];
    let case = case_of(recipe, runs, BlockStyle { bytes: 3000, ..BlockStyle::default() });
    check(&engine, &case, 100_000);
    check(&engine, &case, u64::MAX);
}

/// Above that the CPU has the set.
#[test]
fn longer_keys_are_refused() {
    let engine = engine();
    let tag = Tag::new(7, Kind::Value);
    let entry = Entry { key: vec![1; (64 << 10) + 1], tag, value: vec![2; 9], run: 0 };
    let case = case_of(Recipe::new(1), vec![vec![entry]], BlockStyle::default());
    does_not_suit(&engine, &case, "too large");
}

/// So are single deletes and operands, wherever they are, with or without counts; unless a block is bad as well.
#[test]
fn other_kinds_are_refused() {
    let engine = engine();
    for (kind, at) in [(Kind::SingleDelete, 0), (Kind::SingleDelete, 299), (Kind::Merge, 150)] {
        let entry = |n: u64| {
            let kind = if n == at { kind } else { Kind::Value };
            Entry {
                key: n.to_be_bytes().to_vec(),
                tag: Tag::new(1 + n, kind),
                value: vec![1; 9],
                run: 0,
            }
        };
        let mut case =
            case_of(Recipe::new(1), vec![(0..300).map(entry).collect()], BlockStyle::default());
        does_not_suit(&engine, &case, "neither a value nor a delete");
        case.blocks[0][0].slice.entries = 0;
        does_not_suit(&engine, &case, "neither a value nor a delete");
        let last = case.blocks[0].len() - 1;
        for bad in [0, last] {
            let mut case = case.clone();
            let slice = &mut case.blocks[0][bad].slice;
            let mut bytes = slice.bytes.as_slice().to_vec();
            bytes[17] ^= 1;
            slice.bytes = bytes.into();
            let fault = fault(&engine, &case);
            assert!(matches!(fault, Fault::Engine(_)), "{kind:?} {at} {bad}: {fault:?}");
        }
    }
}

/// A key with so many versions that they fill many tiles, deletes above values in every stripe.
#[test]
fn versions_over_many_tiles() {
    let engine = engine();
    let c = &mut Choices::new(8);
    for tries in 0..6 {
        let mut runs = vec![Vec::new(); 2];
        for seq in 1..=1200u64 {
            let kind = if c.one_in(3) { Kind::Value } else { Kind::Delete };
            let value = if kind == Kind::Value { c.bytes(4) } else { Vec::new() };
            let run = usize::from(seq <= 600);
            let key = if c.one_in(400) { b"other".to_vec() } else { b"hot".to_vec() };
            runs[run].push(Entry { key, tag: Tag::new(seq, kind), value, run: run as u16 });
        }
        let mut recipe = Recipe::new(2);
        recipe.in_use = vec![lithify_merge::InUse::none(); 2];
        recipe.snapshots =
            (0..1200).filter(|_| c.one_in(if tries < 3 { 3 } else { 200 })).collect();
        recipe.block_bytes = 512;
        let case = case_of(recipe, runs, BlockStyle::default());
        check(&engine, &case, u64::MAX);
    }
}

/// A set that needs more memory than the device may use is the CPU's.
#[test]
fn sets_beyond_the_memory() {
    let options = GpuOptions { set_bytes: 4 << 10, memory: 192 << 10, ..GpuOptions::default() };
    let engine = GpuEngine::new(Box::new(Emu::new(3)), options).unwrap();
    let case = Case::uniform(9, 2, 2000, 16, 32).unwrap();
    does_not_suit(&engine, &case, "a set needs");
    let cpu = alone(&CpuEngine, &case, u64::MAX);
    assert!(cpu.is_ok());
}

/// Of entries with one key and one number that of the newer run counts.
#[test]
fn equal_numbers_in_two_runs() {
    let engine = engine();
    let entries = |run: u16| {
        let value = |i: u64| Entry {
            key: i.to_be_bytes().to_vec(),
            tag: Tag::new(1 + i / 3, Kind::Value),
            value: vec![run as u8; 9],
            run,
        };
        (0..300).map(value).collect::<Vec<_>>()
    };
    let runs = (0..5).map(entries).collect();
    check(&engine, &case_of(Recipe::new(5), runs, BlockStyle::default()), u64::MAX);
}
