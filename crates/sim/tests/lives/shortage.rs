//! Writing goes on while there is enough to drop, however little room is left: under every policy,
//! within a budget and on a disk that is nearly full (reliability F6).
#![allow(clippy::disallowed_methods, reason = "a test sets up its world by itself")]

use lithify::Policy;
use lithify_sim::shortage::{Figures, Short, live};

/// A life of each policy that does not take long: `lithify-sim short` lives all others.
const SEED: u64 = 3;

fn every_policy(short: Short) {
    for policy in Policy::EVERY {
        let Figures { written, refused, longest, most_percent } = live(SEED, policy, short)
            .unwrap_or_else(|e| panic!("{short:?}, {}: {e}", policy.name()));
        let name = policy.name();
        println!(
            "{short:?} {name}: {written} written, {refused} refused, {longest:?}, {most_percent}%"
        );
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
