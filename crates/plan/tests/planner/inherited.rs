//! Trees that no policy of ours made so: tables from outside over a large last level, runs that another policy left, and
//! triggers that are never reached. Writers go on, and what lies there comes to its place.

use lithify_base::{CfId, JobId, Pos};
use lithify_lsm::Edit;
use lithify_plan::{
    CompactionPri, Kind, Limits, MemState, PlanOptions, PolicyKind, Verdict, View, plan, stall,
};

use crate::life::{Life, options};

/// The last level of these lives.
const LAST: u8 = 4;

/// A life whose tree has these files: position, first and last key, bytes.
fn with(options: PlanOptions, files: impl IntoIterator<Item = (Pos, u16, u16, u64)>) -> Life {
    let mut life = Life::new(1, options);
    for (pos, lo, hi, bytes) in files {
        let mut file = life.file(pos, lo, hi, bytes);
        file.deletes = 0;
        let edit = Edit { job: Some(JobId(0)), adds: vec![file], ..Edit::new(CfId(0)) };
        life.version = life.version.apply(&edit).unwrap();
    }
    life
}

/// The last level, in so many files of so many bytes.
fn last(files: u16, bytes: u64) -> impl Iterator<Item = (Pos, u16, u16, u64)> {
    (0..files).map(move |n| (Pos::base(LAST), 100 * n, 100 * n + 99, bytes))
}

fn verdict(life: &Life) -> Verdict {
    stall(&life.version, &MemState::default(), &life.options).verdict
}

/// What is planned with four free slots.
fn planned(life: &Life) -> Vec<lithify_plan::JobSpec> {
    let mem = MemState::default();
    let limits = Limits { slots_free: 4, ..Limits::default() };
    let view = View::new(&life.version, &[], &mem, &life.options, limits);
    plan(&view, &life.policies)
}

/// A table came in over all keys of the last level, which has more bytes than may be outstanding.
#[test]
fn a_table_over_the_last_level_stops_no_writer_for_good() {
    for (policy, bytes) in PolicyKind::EVERY.into_iter().flat_map(|p| [(p, 1), (p, 300)]) {
        let mut options = options(policy, false, CompactionPri::default());
        (options.soft_debt, options.hard_debt) = (1 << 10, 1 << 11);
        let over = [(Pos::new(LAST, 1), 0, 5999, bytes)];
        let mut life = with(options, last(60, 64).chain(over));
        let few = verdict(&life);
        assert!(bytes > 1 || few < Verdict::Stop, "{}: a few keys stop writers", policy.name());
        life.rest();
        assert!(verdict(&life) < Verdict::Stop, "{}", policy.name());
        let levels = matches!(policy, PolicyKind::Leveled | PolicyKind::Hybrid);
        let runs = life.version.level(LAST).runs().len();
        assert!(!levels || runs == 1, "{}: {runs} runs in the last level", policy.name());
    }
}

/// Level 0 has the bytes that the base level should hold, and is two runs deep where there are few.
#[test]
fn what_no_bucket_is_due_for_is_no_debt() {
    for policy in [PolicyKind::Bucket, PolicyKind::BucketDf] {
        let mut options = options(policy, false, CompactionPri::default());
        (options.soft_debt, options.hard_debt) = (500, 1000);
        let l0 = |stratum, lo, bytes| (Pos::new(0, stratum), lo, lo + 99, bytes);
        let below = [(Pos::base(1), 0, 999, 200), (Pos::base(2), 0, 999, 2500)];
        let files = [l0(1, 0, 250), l0(2, 500, 5), l0(3, 500, 5)].into_iter().chain(below);
        let life = with(options, files);
        assert!(verdict(&life) < Verdict::Stop || !planned(&life).is_empty(), "{}", policy.name());
    }
}

/// A large level of runs has one more of them over a few keys than it may: that is its rhythm.
#[test]
fn a_large_level_that_is_due_stops_no_writer() {
    for policy in [PolicyKind::Tiered, PolicyKind::DfTiered] {
        let mut options = options(policy, false, CompactionPri::default());
        (options.soft_debt, options.hard_debt) = (1 << 10, 1 << 11);
        let due = options.tier_runs(LAST);
        let over = (1..due).map(|stratum| (Pos::new(LAST, stratum), 0, 9, 10));
        let life = with(options, last(60, 64).chain(over));
        assert!(!planned(&life).is_empty(), "{}: it is due", policy.name());
        assert_eq!(verdict(&life), Verdict::None, "{}", policy.name());
    }
}

/// The trigger is above the number of runs that stops writers at any depth.
#[test]
fn a_trigger_out_of_reach_stops_no_writer_for_good() {
    let mut runs = Life::new(1, options(PolicyKind::Hybrid, false, CompactionPri::default()));
    (0..2000).for_each(|n| runs.flush_over(29 * n, 29 * n + 28));
    for policy in PolicyKind::EVERY {
        let mut options = options(policy, false, CompactionPri::default());
        (options.soft_debt, options.hard_debt) = (0, 0);
        (options.l0_trigger, options.l0_slowdown, options.l0_stop) = (5000, 5000, 5000);
        options.level_base_bytes = 1 << 23;
        let mut life = Life::new(1, options);
        life.version = runs.version.clone();
        (life.stratum, life.next_file) = (runs.stratum, runs.next_file);
        let takes_writes = (0..50).any(|_| {
            life.start_jobs(2);
            if !life.flight.is_empty() {
                life.finish(0);
            }
            verdict(&life) < Verdict::Stop
        });
        assert!(takes_writes, "{}", policy.name());
    }
}

/// The second oldest run is an extra run of the last level, whose base has more files than are sorted out of a level.
#[test]
fn universal_merges_an_extra_run_of_the_last_level() {
    let mut options = options(PolicyKind::Universal, false, CompactionPri::default());
    (options.universal_incremental, options.max_compaction_bytes) = (true, 100);
    options.l0_trigger = 2;
    let over = (0..10).map(|n| (Pos::new(LAST, 1), 2000 * n, 2000 * n + 1999, 600));
    let life = with(options, last(200, 10).chain(over));
    let jobs = planned(&life);
    assert!(jobs.iter().any(|job| job.out == Pos::base(LAST)), "{jobs:?}");
}

/// The newer bytes all are an extra run of the last level.
#[test]
fn extra_runs_of_the_last_level_are_space_too() {
    let mut options = options(PolicyKind::Tiered, false, CompactionPri::default());
    options.max_space_amp_percent = 50;
    let over = (0..54).map(|n| (Pos::new(LAST, 1), 100 * n, 100 * n + 99, 64));
    let life = with(options, last(60, 64).chain(over));
    let jobs = planned(&life);
    assert!(jobs.iter().any(|job| job.kind == Kind::Upkeep), "{jobs:?}");
}
