//! Replays every seed of every target: those that fuzzers grew from, and those that once failed (reliability F16). Whole
//! directories have a guard of their own, and a test beside this one.

#![allow(clippy::disallowed_methods, reason = "a test reads its seeds from the disk")]

use std::path::Path;

use lithify_hostile::{TARGETS, Target};

fn targets() -> impl Iterator<Item = &'static Target> {
    TARGETS.iter().filter(|target| target.name != "directory")
}

#[test]
fn every_seed_passes() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    let mut seeds = 0;
    for target in targets() {
        let mut files: Vec<_> = std::fs::read_dir(corpus.join(target.name))
            .unwrap_or_else(|e| panic!("{} has no seeds: {e}", target.name))
            .map(|entry| entry.unwrap().path())
            .collect();
        files.sort();
        assert!(!files.is_empty(), "{} has no seeds", target.name);
        for file in files {
            println!("{}", file.display());
            (target.run)(&std::fs::read(&file).unwrap());
            seeds += 1;
        }
    }
    println!("{seeds} seeds of {} targets", targets().count());
}

/// Any short bytes at all, for every target.
#[test]
fn short_and_uniform_bytes_pass() {
    for target in targets().filter(|t| !t.name.ends_with("_image")) {
        (target.run)(&[]);
        for byte in 0..=255 {
            for len in [1, 2, 3, 8, 40] {
                (target.run)(&vec![byte; len]);
            }
        }
    }
}

/// Every plan of a falsified recipe, in each mode, over random cases.
#[test]
fn no_falsified_recipe_is_proven() {
    let target = lithify_hostile::target("engine_reply").unwrap();
    for plan in 0..9 {
        for seed in 0..=255 {
            (target.run)(&[plan, seed % 8, seed]);
        }
    }
}
