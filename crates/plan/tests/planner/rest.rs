//! Level 0 comes to rest with the fewest bytes: what `adaptive` does at rest, against every other number of runs
//! that could go down.

use lithify_base::{CfId, FileId, KeyRange, Pos, bytewise};
use lithify_lsm::{Edit, FileMeta, Version};
use lithify_plan::{Limits, MemState, PlanOptions, PolicyKind, View, plan, policies};

/// Runs of these bytes over the same keys, the newest first, and files of the base level under them.
fn tree(runs: &[u64], below: &[u64]) -> Version {
    let mut adds = Vec::new();
    let mut add = |pos: Pos, lo: u8, hi: u8, bytes: u64| {
        let range = KeyRange::incl(&[lo][..], &[hi][..]);
        adds.push(FileMeta { bytes, ..FileMeta::new(FileId(adds.len() as u64 + 1), pos, range) });
    };
    for (i, &bytes) in runs.iter().rev().enumerate() {
        add(Pos::new(0, i as u32 + 1), 50, 150, bytes);
    }
    for (i, &bytes) in below.iter().enumerate() {
        add(Pos::base(1), 20 * i as u8, 20 * i as u8 + 19, bytes);
    }
    Version::empty(bytewise()).apply(&Edit { adds, ..Edit::new(CfId(0)) }).unwrap()
}

#[test]
fn no_other_number_of_runs_comes_to_rest_with_fewer_bytes() {
    let mut random = fastrand::Rng::with_seed(3);
    let (mem, rules) = (MemState::default(), policies(PolicyKind::Adaptive));
    let mut taken = std::collections::BTreeSet::new();
    for _ in 0..2_000 {
        let most = if random.bool() { 20 } else { 200 };
        let runs: Vec<u64> = (0..random.usize(2..9)).map(|_| random.u64(1..most)).collect();
        let below: Vec<u64> = (0..10).map(|_| random.u64(1..60)).collect();
        let version = tree(&runs, &below);
        let mut options = PlanOptions::preset(PolicyKind::Adaptive);
        options.dynamic_levels = false;
        options.level_base_bytes = random.u64(200..900);
        options.l0_trigger = random.u32(1..6);
        let view = View::new(&version, &[], &mem, &options, Limits::default());
        let Some(job) = plan(&view, &rules).pop() else { continue };
        let of_l0 = |id: &&FileId| version.file(**id).is_some_and(|f| f.pos.level == 0);
        let inputs = job.inputs.iter().filter(of_l0).count();
        if inputs == 0 {
            continue;
        }
        let (trigger, reached) = (options.l0_trigger as usize, below[2..8].iter().sum::<u64>());
        let cost = |down: usize| {
            let (stay, go) = runs.split_at(runs.len() - down);
            let (left, many) = (stay.iter().sum::<u64>(), stay.len() >= trigger);
            let may = left <= options.level_base_bytes * 95 / 100 && !(many && trigger < 2);
            let goes = if go.is_empty() { 0 } else { go.iter().sum::<u64>() + reached };
            (may || stay.is_empty()).then_some((goes + if many { left } else { 0 }, down))
        };
        let (_, best) = (0..=runs.len()).filter_map(cost).min().unwrap();
        let expected = if best == 0 { runs.len() } else { best };
        assert_eq!((inputs, job.out.level > 0), (expected, best > 0), "{runs:?} {options:?}");
        taken.insert((best > 0, runs.len() - inputs));
    }
    assert!(taken.len() > 4, "{taken:?}");
}
