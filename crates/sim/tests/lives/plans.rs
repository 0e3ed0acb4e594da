//! Every failure that was ever found, again; a few seeds; and that the same seed does the same.

use std::path::Path;

use lithify::Policy;
use lithify_env::{Fs, OpenOpts, PosixFs, read_full_at};
use lithify_sim::explore::{Reach, Tally, explore, replay};
use lithify_sim::plan::Plan;

#[test]
fn plans_that_failed_once() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("plans");
    let fs = PosixFs::new();
    let listed = fs.list(&dir).unwrap();
    let plans: Vec<_> = listed.iter().filter(|e| e.name.ends_with(".plan")).collect();
    assert!(!plans.is_empty(), "there are plans in {}", dir.display());
    for entry in plans {
        let file = fs.open(&dir.join(&entry.name), OpenOpts::read()).unwrap();
        let mut bytes = vec![0; entry.len as usize];
        read_full_at(&*file, &mut bytes, 0).unwrap();
        let plan = Plan::parse(&String::from_utf8(bytes).unwrap()).unwrap();
        if let Err(violation) = replay(&plan) {
            panic!("{}: {violation}", entry.name);
        }
    }
}

fn tally(seed: u64, policy: Option<Policy>) -> Tally {
    let mut tally = Tally::default();
    let reach = Reach { policy, variants: 1, ..Reach::default() };
    if let Err(failure) = explore(seed, &reach, &mut tally) {
        panic!("seed {seed}: {}\n{}", failure.violation, failure.plan.print());
    }
    tally
}

#[test]
fn a_seed_of_each_policy() {
    for (seed, policy) in Policy::EVERY.into_iter().enumerate() {
        let tally = tally(1000 + seed as u64, Some(policy));
        assert!(tally.recoveries > 20, "{}: {tally:?}", policy.name());
    }
}

#[test]
fn the_same_seed_does_the_same() {
    let (a, b) = (tally(7, None), tally(7, None));
    assert_eq!(format!("{a:?}"), format!("{b:?}"));
}
