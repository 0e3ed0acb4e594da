//! Writing goes on while there is enough to drop, however little room is left: under every policy,
//! within a budget and on a disk that is nearly full.
#![allow(clippy::disallowed_methods, reason = "a test sets up its world by itself")]

use lithify::Policy;
use lithify_sim::shortage::{Figures, Short, live};

/// Lives of each policy, each with seeds of its own.
const LIVES: u64 = 1;

fn every_policy(short: Short) {
    for policy in Policy::EVERY {
        for seed in 1..=LIVES {
            let Figures { written, refused, longest, most_percent } = live(seed, policy, short)
                .unwrap_or_else(|e| panic!("{short:?}, {}, seed {seed}: {e}", policy.name()));
            println!(
                "{short:?} {} {seed}: {written} written, {refused} refused, {longest:?}, {most_percent}%",
                policy.name()
            );
        }
    }
}

#[test]
fn a_budget_full_of_garbage_takes_writes() {
    every_policy(Short::Budget);
}

#[test]
fn a_disk_full_of_garbage_takes_writes() {
    every_policy(Short::Disk);
}
