//! Short lives of every policy: the tree comes to rest, no level starves, nothing is lost, and a
//! life is a function of its setup. Invariants of trees and jobs are checked within each.

use crate::card::CardOptions;
use crate::tally::Step;
use crate::{CommitOrder, Life, Load, Setup, live};
use lithify_plan::{Cause, DfWhen, Kind, PolicyKind};

/// The bench's shape at 1/64: memtables of 1 MiB, L1 of 4 MiB, files of 1 MiB.
fn setup(policy: PolicyKind, num: u64) -> Setup {
    let mut s = Setup::new(policy, 8, 1024);
    s.plan.memtable_bytes = 1 << 20;
    s.plan.level_base_bytes = 4 << 20;
    s.plan.file_bytes = 1 << 20;
    s.plan.multiplier = 5;
    s.plan.buckets.min_file_bytes = 256 << 10;
    s.device.bandwidth = 300 << 20;
    s.device.latency = 1_000_000;
    s.device.channels = 16;
    s.cells = 512;
    (s.num, s.keys) = (num, num);
    s
}

fn lived(setup: &Setup) -> Life {
    let name = setup.plan.policy.name();
    live(setup).unwrap_or_else(|e| panic!("{name}: {e:#}"))
}

#[test]
fn every_policy_comes_to_rest() {
    for policy in PolicyKind::ALL {
        let setup = setup(policy, 60_000);
        let life = lived(&setup);
        let name = policy.name();
        let written = (life.load.all_written() + life.drain.all_written()) as f64;
        let amplification = written / life.user_bytes;
        assert!((1.5..15.0).contains(&amplification), "{name} writes {amplification} times");
        // Keys drawn with replacement: about 63% of them are there at the end, less what lies in
        // memory.
        let entries = life.at_end.bytes.iter().sum::<u64>() as f64 / setup.bytes.disk;
        let most = if policy.takes_runs() { 60_000.0 } else { 48_000.0 };
        assert!((34_000.0..most).contains(&entries), "{name} has {entries} entries");
        assert!(
            life.at_end.debt <= life.at_load_end.debt.max(8 << 20),
            "{name} owes more: {:?}, {:?}",
            life.at_end,
            life.at_load_end
        );
        assert!(
            life.worst_debt >= life.at_load_end.debt,
            "{name} owed {} at most",
            life.worst_debt
        );
        assert!(life.load.mean_active() <= 8.0 && life.installs > 50, "{name} does little");
    }
}

#[test]
fn no_level_starves_under_a_long_load() {
    // `leveled` does starve: one merge of the whole width of L1 after the other keeps it locked.
    for policy in PolicyKind::ALL.into_iter().filter(|&p| p != PolicyKind::Leveled) {
        let short = setup(policy, 60_000);
        let mut long = short.clone();
        long.num *= 10;
        let (short, long) = (lived(&short), lived(&long));
        let name = policy.name();
        let deep = |life: &Life| life.load.written[2..].iter().sum::<u64>();
        // The base level of `adaptive` may hold as much as level 0 does, and here that is all there is.
        let ends = &long.at_load_end.bytes;
        let all_above = policy == PolicyKind::Adaptive && ends[1] <= ends[0];
        assert!(
            all_above || deep(&long) > 8 * deep(&short),
            "{name}: {} MB below L1",
            deep(&long) >> 20
        );
        let halves = long.steps.split_at(long.steps.len() / 2);
        let worst = |steps: &[Step]| steps.iter().map(|s| s.debt).max();
        let (a, b) = (worst(halves.0).unwrap(), worst(halves.1).unwrap());
        let most = match policy {
            // A tiered level comes due as a whole, so debt has peaks as high as the levels are large.
            _ if policy.takes_runs() => 3 * a,
            // A level waits until enough lies above it, and the base level grows with level 0.
            PolicyKind::Adaptive => 2 * a,
            _ => 3 * a / 2,
        };
        assert!(b < most, "{name} owes {a} at most, then {b}");
        assert!(long.at_load_end.depth < 64, "{name} is {} deep", long.at_load_end.depth);
    }
}

#[test]
fn the_same_setup_gives_the_same_life() {
    for policy in [PolicyKind::Hybrid, PolicyKind::DfTiered, PolicyKind::BucketDf] {
        let mut s = setup(policy, 20_000);
        s.load = Load::Mix { ranges: vec![10, 50], rotate: Some(3_000) };
        let (a, b) = (lived(&s), lived(&s));
        assert_eq!(a, b, "{}", policy.name());
        s.seed = 2;
        assert_ne!(a.steps, lived(&s).steps, "{}: the seed matters", policy.name());
    }
}

#[test]
fn unique_keys_all_arrive() {
    let mut s = setup(PolicyKind::Bucket, 30_000);
    s.load = Load::Unique;
    let life = lived(&s);
    let entries = life.at_end.bytes.iter().sum::<u64>() as f64 / s.bytes.disk;
    let in_memory = s.plan.memtable_bytes as f64 / s.bytes.memory;
    assert!((30_000.0 - in_memory - 10.0..=30_001.0).contains(&entries), "{entries}");
}

#[test]
fn the_papers_options_live_too() {
    let mut s = setup(PolicyKind::DfLeveled, 40_000);
    s.plan.df_when = DfWhen::Always;
    s.commit_order = CommitOrder::Issue;
    s.plan.df_max_depth = 8;
    s.plan.df_extra_percent = u32::MAX;
    let life = lived(&s);
    assert!(life.load.kinds.contains_key(&Kind::Df), "{:?}", life.load.kinds.keys());
}

#[test]
fn more_disk_is_faster() {
    let slow = lived(&setup(PolicyKind::Hybrid, 40_000));
    let mut s = setup(PolicyKind::Hybrid, 40_000);
    (s.device.bandwidth, s.device.latency) = (3 << 30, 50_000);
    let fast = lived(&s);
    assert!(fast.load.seconds < slow.load.seconds * 0.7, "{} s", fast.load.seconds);
    let waits = |life: &Life| life.load.all_waits().0 + life.load.all_waits().1;
    assert!(waits(&fast) < waits(&slow), "{} and {} s", waits(&fast), waits(&slow));
}

/// Merges in place take the depth of level 0 away again and again while its bytes grow, and writers that were slowed for its
/// depth alone ran into the stop for its bytes: 23 of 62 seconds of this life.
#[test]
fn writers_do_not_run_into_the_stop_for_bytes_of_level_0() {
    let mut s = setup(PolicyKind::Adaptive, 900_000);
    (s.threads, s.cores, s.cells) = (4, 4.0, 128);
    (s.plan.multiplier, s.plan.buckets.min_file_bytes) = (10, 1 << 20);
    s.set_memtable(1 << 20);
    (s.device.bandwidth, s.merge_ns) = (100 << 20, 5.0);
    let waited = lived(&s).load.waited;
    let (slowed, stopped) = waited.get(&Cause::L0Bytes).copied().unwrap_or_default();
    assert!(slowed > 0.1, "a life that shows nothing: {waited:?}");
    assert!(stopped < slowed / 10.0, "slowed for {slowed} s, stopped for {stopped} s");
}

/// The lives of one load in both orders. In the order of issue a compaction waits for those from its level that
/// were issued before, and no commit gets ahead of one of them; otherwise none waits.
#[test]
fn jobs_of_a_level_commit_in_the_order_of_issue() {
    let mut s = setup(PolicyKind::DfLeveled, 40_000);
    s.plan.df_when = DfWhen::Always;
    s.trace = true;
    let waits = |life: &Life| life.trace.iter().filter(|l| l.contains(" waits for older")).count();
    let free = lived(&s);
    assert_eq!(waits(&free), 0);
    assert!(overtakings(&free) > 0, "a life in which the order makes no difference");
    s.commit_order = CommitOrder::Issue;
    let ordered = lived(&s);
    assert!(waits(&ordered) > 0);
    assert_eq!(overtakings(&ordered), 0);
}

/// How often a compaction was in the tree before one from its level that was issued before it; of those that build
/// something, as the life's trace tells: `0.5 job 7 Down L1.0[a..b] -> L2.0 ...  why: ...`, then
/// `0.9 commit Down L1.0[a..b] -> L2.0 ...`.
fn overtakings(life: &Life) -> usize {
    let mut at_work: Vec<(u8, &str)> = Vec::new();
    let mut overtaken = 0;
    for line in &life.trace {
        if let Some((_, done)) = line.split_once(" commit ") {
            let Some(at) = at_work.iter().position(|(_, job)| done.starts_with(job)) else {
                continue;
            };
            let (level, _) = at_work.remove(at);
            overtaken += at_work[..at].iter().filter(|older| older.0 == level).count();
        } else if let Some((job, _)) = line.split_once("  why: ") {
            let (_, job) = job.split_once(" job ").unwrap();
            let (_, job) = job.split_once(' ').unwrap();
            let inputs = job.split(' ').skip(1).take_while(|word| *word != "->");
            let level = inputs.map(|input| input.as_bytes()[1] - b'0').min().unwrap();
            at_work.push((level, job));
        }
    }
    overtaken
}

/// A card takes merging off processors that are the bottleneck; one that is slow, or whose host has as much to do,
/// does not, and a life without one is as it was.
#[test]
fn a_card_helps_where_merging_is_what_limits() {
    let mut busy = setup(PolicyKind::Hybrid, 60_000);
    (busy.cores, busy.merge_ns) = (1.0, 6.0);
    busy.device.bandwidth = 0;
    let with = |rate: f64, host_ns: f64| {
        let card = CardOptions { units: 2, rate, link: (9.5e9, 12e9), host_ns };
        lived(&Setup { card: Some(card), ..busy.clone() })
    };
    let (cpu, card) = (lived(&busy), with(4e9, 0.5));
    assert!(card.rate() > 1.3 * cpu.rate(), "{} with a card, {}", card.rate(), cpu.rate());
    assert!(card.cpu_seconds < 0.7 * cpu.cpu_seconds);
    assert!(with(20e6, 0.5).rate() < 0.8 * cpu.rate(), "a slow one");
    assert!(with(4e9, 6.0).rate() < 1.1 * cpu.rate(), "a host that does it all again");
}
