//! Lives of trees under each policy ([`life`]): every one is sound throughout, and left alone the
//! tree comes to rest. Plans are fast in large trees.

use std::sync::Arc;

use lithify_base::{CfId, FileId, JobId, KeyRange, Pos, bytewise};
use lithify_lsm::{BucketMap, Edit, FileMeta, Version};
use lithify_plan::check::jobs as jobs_check;
use lithify_plan::{
    CompactionPri, DfWhen, InFlight, JobState, Kind, Limits, Load, ManualRequest, MemState,
    PlanOptions, Policy, PolicyKind, Score, View, is_settled, plan, policies, score,
};

use crate::life::{Life, key, options};

/// Nothing is due in a tree that was left alone, and extra runs are gone.
fn is_at_rest(life: &Life) {
    let mem = MemState::default();
    let view = View::new(&life.version, &[], &mem, &life.options, Limits::default());
    let kind = life.options.policy;
    if matches!(kind, PolicyKind::Leveled | PolicyKind::Hybrid) {
        let due = score::ranked(&view)[0];
        assert!(due.1 < Score::ONE, "at rest with L{} at {}", due.0, due.1);
        return;
    }
    let runs = (0..5).map(|l| life.version.level(l).runs());
    if kind == PolicyKind::Universal {
        let (runs, bytes) = runs.fold((0, Vec::new()), |(n, mut bytes), runs| {
            bytes.extend(runs.iter().map(|r| r.bytes()));
            (n + runs.len(), bytes)
        });
        let most = life.options.universal_trigger();
        assert!(runs <= most, "{runs} runs");
        let (base, extra) = bytes.split_last().unwrap();
        let amplified = extra.iter().sum::<u64>() > base * 4;
        assert!(runs < most || !amplified, "{bytes:?}");
        return;
    }
    if kind == PolicyKind::Fifo {
        let bytes: u64 = runs.flatten().map(|r| r.bytes()).sum();
        assert!(bytes <= life.options.fifo_max_bytes, "{bytes} bytes are kept");
        return;
    }
    for level in 0..5 {
        let depth = life.version.max_depth(level);
        match kind.is_tiered() {
            true => assert!(depth < life.options.tiered_runs, "L{level} has depth {depth}"),
            false if level > 0 => assert!(depth <= 1, "L{level} has depth {depth}"),
            false => assert!(depth < life.options.l0_trigger, "L0 has depth {depth}"),
        }
    }
    if !kind.is_tiered() {
        assert_eq!(score::by_rank(&view), []);
    }
}

#[test]
fn trees_stay_sound_and_come_to_rest() {
    let (mut kinds, mut edges, mut changes) = (Vec::new(), 0, 0);
    for seed in 0..lives(40) {
        for policy in PolicyKind::EVERY {
            let pri = CompactionPri::ALL[seed as usize % CompactionPri::ALL.len()];
            let mut options = options(policy, seed % 2 == 0, pri);
            if seed % 4 == 1 {
                options.df_when = DfWhen::Always;
                (options.df_max_depth, options.df_extra_percent) = (8, u32::MAX);
            }
            if policy.is_tiered() {
                options.levels = 3;
            }
            if seed % 8 == 3 {
                options.max_waiting_jobs = 1;
            }
            if seed % 8 == 5 {
                options.buckets.only_when_empty = true;
                options.buckets.by_bytes = false;
            }
            let mut life = Life::new(seed, options);
            life.live();
            is_at_rest(&life);
            edges += life.edges;
            changes += life.changes;
            kinds.extend(life.kinds.into_iter().map(|k| (policy, k)));
        }
    }
    let seen = |policy, kind| kinds.contains(&(policy, kind));
    for (policy, kind) in [
        (PolicyKind::Hybrid, Kind::Down),
        (PolicyKind::Hybrid, Kind::Move),
        (PolicyKind::Hybrid, Kind::IntraL0),
        (PolicyKind::Tiered, Kind::Tier),
        (PolicyKind::Tiered, Kind::IntraLevel),
        (PolicyKind::DfTiered, Kind::Tier),
        (PolicyKind::DfLeveled, Kind::Df),
        (PolicyKind::DfLeveled, Kind::IntraDf),
        (PolicyKind::DfLeveled, Kind::IntraLevel),
        (PolicyKind::Bucket, Kind::L0Bucket),
        (PolicyKind::Bucket, Kind::IntraL0),
        (PolicyKind::BucketDf, Kind::Df),
        (PolicyKind::BucketDf, Kind::L0Bucket),
        (PolicyKind::Universal, Kind::Tier),
        (PolicyKind::Universal, Kind::IntraL0),
        (PolicyKind::Universal, Kind::Move),
        (PolicyKind::Fifo, Kind::Drop),
        (PolicyKind::Fifo, Kind::IntraL0),
    ] {
        assert!(seen(policy, kind), "no {kind:?} in all lives of {}", policy.name());
    }
    assert!(!seen(PolicyKind::Bucket, Kind::Df) && !seen(PolicyKind::Tiered, Kind::IntraDf));
    assert!(edges > 50 && changes > 50, "{edges} edges, {changes} changes of bucket maps");
}

/// More lives for more time: `LIFE_FACTOR` times as many.
fn lives(n: u64) -> u64 {
    n * std::env::var("LIFE_FACTOR").map_or(1, |f| f.parse().expect("LIFE_FACTOR is a number"))
}

#[test]
fn requests_settle_while_others_work() {
    for seed in 0..70 {
        let policy = PolicyKind::ALL[seed as usize % PolicyKind::ALL.len()];
        let mut life = Life::new(seed, options(policy, seed % 4 < 2, CompactionPri::default()));
        for _ in 0..25 {
            life.flush();
        }
        life.start_jobs(2);
        let lo = life.random.u16(..40_000);
        let range = KeyRange::incl(&key(lo)[..], &key(lo + 20_000)[..]);
        let mut request = ManualRequest::new((seed % 3 > 0).then_some(range));
        request.max_job_bytes = if seed % 5 == 0 { 400 } else { u64::MAX };
        life.request = Some(request.clone());
        life.rest();
        assert!(is_settled(&life.version, &life.options, &request), "seed {seed}");
        let files: Vec<_> = life
            .version
            .files()
            .filter(|f| {
                request.range.as_ref().is_none_or(|r| r.overlaps(&f.range, life.version.order()))
            })
            .map(|f| f.pos)
            .collect();
        assert!(files.windows(2).all(|w| w[0] == w[1]), "seed {seed}: {files:?}");
    }
}

/// 20,000 files: 8 in L0, the rest in a pyramid whose levels are all over target.
fn large() -> Version {
    let mut adds = Vec::new();
    let mut id = 0;
    for stratum in 1..=8u32 {
        id += 1;
        let range = KeyRange::incl(&0u64.to_be_bytes()[..], &u64::MAX.to_be_bytes()[..]);
        adds.push(FileMeta::new(FileId(id), Pos::new(0, stratum), range));
    }
    for (level, files) in [(3u8, 60u64), (4, 400), (5, 2500), (6, 17_032)] {
        let width = u64::MAX / files;
        for i in 0..files {
            id += 1;
            let (lo, hi) = (i * width, i * width + width - 1 - i % 7 * (width / 8));
            let range = KeyRange::incl(&lo.to_be_bytes()[..], &hi.to_be_bytes()[..]);
            adds.push(FileMeta::new(FileId(id), Pos::base(level), range));
        }
    }
    for f in &mut adds {
        f.bytes = (64 << 20) - f.id.0 % 1000;
        f.entries = 60_000;
    }
    Version::empty(bytewise()).apply(&Edit { adds, ..Edit::new(CfId(0)) }).unwrap()
}

/// 20,000 files for policies with many runs: L0 cut at 64 bucket bounds, twelve runs deep; every
/// level over target, with three extra runs over parts of the upper ones. `tiered` levels have
/// five whole runs each.
fn large_with_extras(tiered: bool) -> Version {
    let mut adds = Vec::new();
    let row = |adds: &mut Vec<FileMeta>, pos: Pos, files: u64, skip: u64| {
        let width = u64::MAX / files;
        for i in (0..files).filter(|i| i % skip == 0) {
            let range = KeyRange::incl(
                &(i * width).to_be_bytes()[..],
                &(i * width + width - 1).to_be_bytes()[..],
            );
            let mut f = FileMeta::new(FileId(adds.len() as u64 + 1), pos, range);
            (f.bytes, f.entries) = ((64 << 20) - f.id.0 % 1000, 60_000);
            if pos.level == 0 {
                f.bytes = 1 << 20;
            }
            adds.push(f);
        }
    };
    for stratum in 1..=12 {
        row(&mut adds, Pos::new(0, stratum), 64, 1);
    }
    for (level, files) in [(3u8, 60u64), (4, 400), (5, 2500), (6, 16_200)] {
        match tiered {
            true => (0..5).for_each(|s| row(&mut adds, Pos::new(level, s), files / 5, 1)),
            false => row(&mut adds, Pos::base(level), files, 1),
        }
        if !tiered && level < 6 {
            (1..4).for_each(|s| row(&mut adds, Pos::new(level, s), files, 20 * u64::from(s)));
        }
    }
    let bounds: Vec<_> =
        (1..64u64).map(|i| (&(i * (u64::MAX / 64)).to_be_bytes()[..]).into()).collect();
    let map = BucketMap { stats: vec![Default::default(); bounds.len() + 1], bounds, epoch: 0 };
    let edit = Edit { adds, bucket_hint: Some(map.into()), ..Edit::new(CfId(0)) };
    Version::empty(bytewise()).apply(&edit).unwrap()
}

#[test]
fn plans_of_every_policy_are_fast_in_large_trees() {
    for kind in PolicyKind::ALL {
        let version = match kind {
            PolicyKind::Leveled | PolicyKind::Hybrid => large(),
            _ => large_with_extras(kind.is_tiered()),
        };
        let options = PlanOptions { max_read_amp: 100, ..PlanOptions::preset(kind) };
        let mem = MemState::default();
        let rules = policies(kind);
        let mut flight = Vec::new();
        while flight.len() < 16 {
            let n = flight.len() as u64 + 1;
            let limits = Limits { next_job: JobId(n), ..Limits::default() };
            let view = View::new(&version, &flight, &mem, &options, limits);
            let Some(spec) = plan(&view, &rules).pop() else { break };
            flight.push(InFlight { id: JobId(n), spec: Arc::new(spec), state: JobState::Running });
        }
        jobs_check(&version, &flight).unwrap();
        let next_job = JobId(flight.len() as u64 + 1);
        let (mut full, mut one) = (0, 0);
        let mut time = |slots_free| {
            let limits = Limits { slots_free, next_job, ..Limits::default() };
            let version = version.apply(&Edit::new(CfId(0))).unwrap();
            best_micros(|| {
                let view = View::new(&version, &flight, &mem, &options, limits);
                match slots_free {
                    1 => one = plan(&view, &rules).len(),
                    _ => full = plan(&view, &rules).len(),
                }
            })
        };
        let (first, four) = (time(1), time(4));
        let (files, name) = (version.file_count(), kind.name());
        at_once_as_one_by_one(&version, &options, flight.clone(), &rules);
        println!(
            "{name}: {files} files, {} jobs in flight: {one} more in {first} us, {full} in {four} us",
            flight.len()
        );
        assert!(files >= 19_900 && first < 20_000, "{name}: {first} us");
    }
}

/// What a plan keeps from one of its jobs to the next changes no decision.
fn at_once_as_one_by_one(
    version: &Version,
    options: &PlanOptions,
    mut flight: Vec<InFlight>,
    rules: &[Box<dyn Policy>],
) {
    let mem = MemState::default();
    let specs = |flight: &[InFlight], slots_free| {
        let limits =
            Limits { slots_free, next_job: JobId(flight.len() as u64 + 1), ..Limits::default() };
        plan(&View::new(version, flight, &mem, options, limits), rules)
    };
    for spec in specs(&flight, 8) {
        let one = specs(&flight, 1).pop().expect("as many one by one");
        assert_eq!(spec, one);
        let id = JobId(flight.len() as u64 + 1);
        flight.push(InFlight { id, spec: Arc::new(spec), state: JobState::Running });
    }
}

/// Where bytes cost something, all files of the levels over their targets may be looked at, and none be
/// worth it.
#[test]
fn plans_of_adaptive_are_fast_at_any_price() {
    let mem = MemState::default();
    let rules = policies(PolicyKind::Adaptive);
    // Debt holds no writers up, for then nothing has a price.
    let (soft_debt, hard_debt) = (0, 0);
    let options = PlanOptions { soft_debt, hard_debt, ..PlanOptions::preset(PolicyKind::Adaptive) };
    let version = large();
    let gone = version.level(0).files().map(|f| (f.pos, f.id)).collect();
    let version = version.apply(&Edit { deletes: gone, ..Edit::new(CfId(0)) }).unwrap();
    let mut made = Vec::new();
    for price in [0, 130, 200, 300, 500] {
        let limits = Limits { slots_free: 4, ..Limits::default() };
        let mut jobs = 0;
        let took = best_micros(|| {
            let version = version.apply(&Edit::new(CfId(0))).unwrap();
            let view = View::new(&version, &[], &mem, &options, limits);
            jobs = plan(&view.under(Load { price, useful: 0, written: price > 0 }), &rules).len();
        });
        println!("adaptive, price {price}: {jobs} jobs in {took} us");
        assert!(took < 20_000, "price {price}: {took} us");
        made.push(jobs);
    }
    assert_eq!((made[0], made[4]), (4, 0), "{made:?}");
}

/// The least time of several tries. The one clock of this room, and only in its tests.
#[allow(clippy::disallowed_methods, reason = "the test measures real time")]
fn best_micros(mut work: impl FnMut()) -> u128 {
    let run = |_| {
        let start = std::time::Instant::now();
        work();
        start.elapsed().as_micros()
    };
    (0..20).map(run).min().unwrap_or(0)
}

#[test]
fn plans_are_fast_in_large_trees() {
    let version = large();
    let options = PlanOptions::default();
    let mem = MemState::default();
    let rules = policies(PolicyKind::Hybrid);
    let mut flight = Vec::new();
    for n in 1..=16 {
        let limits = Limits { next_job: JobId(n), ..Limits::default() };
        let view = View::new(&version, &flight, &mem, &options, limits);
        let spec = plan(&view, &rules).pop().expect("a large tree has work for 16 jobs");
        flight.push(InFlight { id: JobId(n), spec: Arc::new(spec), state: JobState::Running });
    }
    let limits = Limits { slots_free: 4, next_job: JobId(17), ..Limits::default() };
    let first = best_micros(|| {
        let version = version.apply(&Edit::new(CfId(0))).unwrap();
        let view = View::new(&version, &flight, &mem, &options, limits);
        assert_eq!(plan(&view, &rules).len(), 4);
    });
    // A commit into the last level makes what was derived from it stale.
    let f = version.level(6).files().last().unwrap();
    let (pos, moved) = (f.pos, f.moved(f.pos));
    let edit = Edit { adds: vec![moved], deletes: vec![(pos, f.id)], ..Edit::new(CfId(0)) };
    let mut next = version.clone();
    let apply = best_micros(|| next = version.apply(&edit).unwrap());
    let cold = best_micros(|| {
        let version = version.apply(&edit).unwrap();
        let view = View::new(&version, &flight, &mem, &options, limits);
        assert_eq!(plan(&view, &rules).len(), 4);
    });
    let request = ManualRequest::new(None);
    let whole = best_micros(|| {
        let view = View::new(&next, &[], &mem, &options, Limits::default());
        assert_eq!(plan(&view.with_manual(Some(&request)), &rules).len(), 1);
    });
    println!(
        "20,000 files, 16 jobs in flight, 4 free slots: plan {first} us; a commit {apply} us, \
         with the next plan {cold} us; plan of a full manual compaction {whole} us"
    );
    // A millisecond is the target of an optimised build; tests are neither that nor alone.
    assert!(first < 20_000 && cold < 60_000, "{first} us, {cold} us");
    assert!(whole < 1_000_000, "{whole} us");
}
