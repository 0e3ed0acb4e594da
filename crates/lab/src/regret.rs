//! What `adaptive` loses to the best of the static policies, machine by machine, on short lives.

use lithify_plan::PolicyKind;

use crate::Setup;
use crate::grid::median;

/// Lives of each policy on each machine. One alone is chance: a put that costs a hundredth more may change
/// which job comes first, and whether a large one is still to come when the load ends.
const TRIES: u32 = 3;

/// Name, bytes per second and microseconds of the disk, nanoseconds of a merged byte.
const MACHINES: [(&str, u64, u64, f64); 5] = [
    ("a slow disk", 100 << 20, 5_000, 0.68),
    ("a common volume", 300 << 20, 3_000, 0.68),
    ("an SSD", 1 << 30, 1_000, 0.68),
    ("a fast SSD", 4 << 30, 100, 0.68),
    ("slow processors", 20 << 30, 100, 4.0),
];

/// User bytes per second until the tree is quiet.
fn rate(policy: PolicyKind, threads: u32, machine: (&str, u64, u64, f64)) -> f64 {
    let mut s = Setup::new(policy, threads, 1024);
    (s.device.bandwidth, s.device.latency, s.merge_ns) = (machine.1, machine.2 * 1000, machine.3);
    s.device.channels = 16;
    s.plan.memtable_bytes = 4 << 20;
    s.plan.file_bytes = 4 << 20;
    s.plan.level_base_bytes = 16 << 20;
    s.cores = 16.0;
    s.cells = 256;
    (s.num, s.keys) = (400_000, 400_000);
    let score =
        median(&s, TRIES).unwrap_or_else(|e| panic!("{} on {}: {e:#}", policy.name(), machine.0));
    score.rate
}

#[test]
fn adaptive_is_nowhere_far_from_the_best_and_mostly_the_best() {
    let opponents = [PolicyKind::Hybrid, PolicyKind::DfLeveled, PolicyKind::Bucket];
    let mut cells = Vec::new();
    for machine in MACHINES {
        for threads in [2, 4, 16] {
            let best = opponents.map(|p| rate(p, threads, machine)).into_iter().fold(0.0, f64::max);
            let mine = rate(PolicyKind::Adaptive, threads, machine);
            cells.push((mine / best, machine.0, threads));
        }
    }
    cells.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (worst, median) = (cells[0].0, cells[cells.len() / 2].0);
    assert!(worst > 0.7, "{cells:?}");
    assert!(median > 1.0, "median {median}: {cells:?}");
}
