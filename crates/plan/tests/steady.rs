//! Whole lives of a tree under each policy: flushes come, the planner fills its slots, jobs end in
//! any order or fail, and at every moment the plan must be sound, keep to its policy, and have
//! something to do whenever writers are stopped. Left alone, the tree comes to rest.

use std::sync::Arc;

use fastrand::Rng;
use lithify_base::{CfId, FileId, JobId, KeyRange, Pos, bytewise};
use lithify_lsm::{BucketMap, Edit, FileMeta, Version, check};
use lithify_plan::adapt::{create, flush_is_cut, keeps_flow};
use lithify_plan::check::jobs as jobs_check;
use lithify_plan::{
    BucketFlow, BucketOptions, Candidate, CommitOrder, DfWhen, FlushReport, InFlight, JobSpec,
    JobState, Kind, Limits, ManualRequest, MemState, Out, PlanOptions, Policy, PolicyKind, Pri,
    Reason, Score, Verdict, View, adapt, admit, cursor_after, is_settled, on_flush, plan, policies,
    score, stall, validate_commit,
};

/// A small tree: a memtable is 64 bytes, a key two.
fn options(policy: PolicyKind, dynamic_levels: bool, pri: Pri) -> PlanOptions {
    PlanOptions {
        policy,
        dynamic_levels,
        pri,
        levels: 5,
        level_base_bytes: 256,
        multiplier: 4,
        file_bytes: 64,
        memtable_bytes: 64,
        l0_slowdown: 8,
        l0_stop: 12,
        soft_debt: 1 << 12,
        hard_debt: 1 << 13,
        buckets: BucketOptions { initial: 4, min_file_bytes: 4, ..BucketOptions::default() },
        ..PlanOptions::default()
    }
}

struct Life {
    random: Rng,
    version: Version,
    options: PlanOptions,
    policies: Vec<Box<dyn Policy>>,
    flight: Vec<InFlight>,
    request: Option<ManualRequest>,
    next_file: u64,
    next_job: u64,
    stratum: u32,
    kinds: Vec<Kind>,
    edges: usize,
    changes: usize,
}

fn key(n: u16) -> [u8; 2] {
    n.to_be_bytes()
}

fn number(key: &[u8]) -> u16 {
    u16::from_be_bytes([key[0], key[1]])
}

impl Life {
    fn new(seed: u64, options: PlanOptions) -> Life {
        Life {
            random: Rng::with_seed(seed),
            version: Version::empty(bytewise()),
            policies: policies(options.policy),
            options,
            flight: Vec::new(),
            request: None,
            next_file: 1,
            next_job: 1,
            stratum: 0,
            kinds: Vec::new(),
            edges: 0,
            changes: 0,
        }
    }

    fn file(&mut self, pos: Pos, lo: u16, hi: u16, bytes: u64) -> FileMeta {
        let id = FileId(self.next_file);
        self.next_file += 1;
        let mut f = FileMeta::new(id, pos, KeyRange::incl(&key(lo)[..], &key(hi)[..]));
        f.bytes = bytes;
        f.entries = bytes;
        f.raw_value_bytes = bytes;
        f.deletes = self.random.u64(..=bytes);
        f
    }

    fn flush(&mut self) {
        if self.options.policy.has_buckets() {
            return self.bucket_flush();
        }
        self.stratum += 1;
        let wide = self.random.u8(..4) > 0;
        let lo = self.random.u16(..if wide { 1000 } else { 60_000 });
        let hi = if wide { 60_000 + self.random.u16(..1000) } else { lo + self.random.u16(..2000) };
        let f = self.file(Pos::new(0, self.stratum), lo, hi, 64);
        let edit = Edit { job: Some(JobId(0)), adds: vec![f], ..Edit::new(CfId(0)) };
        self.version = self.version.apply(&edit).unwrap();
    }

    fn start_jobs(&mut self, slots: usize) {
        let mem = MemState::default();
        let limits = Limits {
            slots_free: slots.saturating_sub(self.flight.len()),
            next_job: JobId(self.next_job),
            ..Limits::default()
        };
        let view = View::new(&self.version, &self.flight, &mem, &self.options, limits)
            .with_manual(self.request.as_ref());
        let specs = plan(&view, &self.policies);
        assert!(specs.len() <= limits.slots_free);
        if self.flight.is_empty() && specs.is_empty() {
            let verdict = stall(&self.version, &mem, &self.options).verdict;
            assert!(verdict != Verdict::Stop, "writers wait and nothing can be planned");
        }
        assert_eq!(specs, plan(&view, &self.policies), "the same view, another plan");
        for spec in specs {
            // Admission again, one by one, against what is really in flight by then.
            let limits = Limits { next_job: JobId(self.next_job), ..limits };
            let view = View::new(&self.version, &self.flight, &mem, &self.options, limits);
            let inputs: Vec<_> =
                spec.inputs.iter().map(|&id| self.version.file(id).unwrap().clone()).collect();
            let said = Reason::Said(String::new());
            let wish = Candidate {
                out: Out::At(spec.out),
                ..Candidate::merge(spec.kind, inputs, spec.out, said)
            };
            let admitted = admit(&view, &wish).unwrap();
            if self.options.commit_order == CommitOrder::Dependency {
                assert_eq!(admitted.after, spec.after);
            }
            assert!(admitted.after.iter().all(|k| spec.after.contains(k)));
            assert_eq!(admitted.hull, spec.hull);
            self.edges += spec.after.len();
            self.kinds.push(spec.kind);
            let id = JobId(self.next_job);
            self.next_job += 1;
            self.flight.push(InFlight { id, spec: spec.into(), state: JobState::Running });
        }
        jobs_check(&self.version, &self.flight, self.options.commit_order).unwrap();
        let stalled = stall(&self.version, &mem, &self.options).verdict == Verdict::Stop;
        assert!(!stalled || !self.flight.is_empty(), "writers wait and nobody works");
    }

    /// A job ends: its outputs cover its hull in pieces of a file each.
    fn finish(&mut self, at: usize) {
        let job = self.flight[at].clone();
        if job.spec.after.iter().any(|k| self.flight.iter().any(|j| j.id == *k)) {
            self.flight[at].state = JobState::WaitDeps;
            return;
        }
        validate_commit(&self.version, &job.spec).unwrap();
        let inputs: Vec<_> =
            job.spec.inputs.iter().map(|&id| self.version.file(id).unwrap().clone()).collect();
        let mut edit = Edit { job: Some(job.id), ..Edit::new(CfId(0)) };
        edit.cursors.extend(cursor_after(&self.version, &self.options, &job.spec));
        edit.deletes = inputs.iter().map(|f| (f.pos, f.id)).collect();
        if job.spec.kind == Kind::Move {
            edit.adds = inputs.iter().map(|f| f.moved(job.spec.out)).collect();
        } else {
            let shrink = self.random.u64(70..=100);
            let bytes = inputs.iter().map(|f| f.bytes).sum::<u64>() * shrink / 100;
            let (lo, hi) = (number(&job.spec.hull.lo), number(&job.spec.hull.hi.key));
            let room = u64::from(hi - lo) + 1;
            let pieces = (bytes / job.spec.cuts.target_bytes).clamp(1, (room / 2).max(1));
            let bound = |i: u64| lo + (room * i / pieces) as u16;
            for i in 0..pieces {
                let last = if i + 1 == pieces { hi } else { bound(i + 1) - 1 };
                let f = self.file(job.spec.out, bound(i), last, bytes / pieces);
                edit.adds.push(f);
            }
        }
        self.version = self.version.apply(&edit).unwrap();
        self.flight.remove(at);
        self.adapt(&job.spec);
        check::all(&self.version).unwrap();
        let stacks = self.options.policy.stacks() || self.options.policy.is_tiered();
        for level in 1..if stacks { 1 } else { 5 } {
            assert!(self.version.level(level).runs().len() <= 1, "L{level} has extra runs");
        }
    }

    /// A job fails, and all that follow it.
    fn fail(&mut self, at: usize) {
        let mut dead = vec![self.flight.remove(at).id];
        while let Some(id) = dead.pop() {
            let after = |j: &InFlight| j.spec.after.contains(&id);
            dead.extend(self.flight.iter().filter(|j| after(j)).map(|j| j.id));
            self.flight.retain(|j| !after(j));
        }
    }

    /// What the engine does with the bucket map after a commit.
    fn adapt(&mut self, done: &JobSpec) {
        let Some(map) = self.version.buckets() else { return };
        if let Some(next) = adapt(map, &self.version, done, &self.options) {
            keeps_flow(map, &next).unwrap();
            self.changes += 1;
            self.install(next);
        }
    }
    fn install(&mut self, map: BucketMap) {
        let edit = Edit { bucket_hint: Some(map.into()), ..Edit::new(CfId(0)) };
        self.version = self.version.apply(&edit).unwrap();
    }

    /// A memtable over one to sixty thousand keys, cut at bucket bounds. The report may come from
    /// an older map than the one of now.
    fn bucket_flush(&mut self) {
        if self.version.buckets().is_none() {
            let sample: Vec<_> = (0..60u16).map(|i| ((&key(i * 1000)[..]).into(), 1)).collect();
            self.install(create(&self.version, &self.options, &sample));
        }
        let map = self.version.buckets().unwrap().clone();
        self.stratum += 1;
        let hot = self.random.u8(..3) > 0;
        let lo = if hot { 20_000 } else { self.random.u16(..2000) };
        let hi = if hot { 23_000 } else { 60_000 + self.random.u16(..1000) };
        let order = bytewise();
        let mut cuts: Vec<u16> = vec![lo];
        let bounds = map.bounds.iter().map(|b| number(b));
        cuts.extend(bounds.filter(|&b| b > lo && b <= hi));
        cuts.push(hi + 1);
        let mut edit = Edit { job: Some(JobId(0)), ..Edit::new(CfId(0)) };
        let mut report = FlushReport { epoch: map.epoch, buckets: Vec::new() };
        report.buckets.resize(map.len(), BucketFlow::default());
        for pair in cuts.windows(2) {
            let (lo, hi) = (pair[0], pair[1] - 1);
            let bytes =
                (64 * u64::from(hi - lo + 1) / u64::from(cuts[cuts.len() - 1] - cuts[0])).max(1);
            let f = self.file(Pos::new(0, self.stratum), lo, hi, bytes);
            let i = map.bucket_of(&key(lo), &*order);
            let step = (hi - lo) / 4;
            report.buckets[i].bytes += bytes;
            report.buckets[i].keys.extend((1..=3).map(|n| (&key(lo + n * step)[..]).into()));
            edit.adds.push(f);
        }
        flush_is_cut(&map, &edit.adds, &*order).unwrap();
        self.version = self.version.apply(&edit).unwrap();
        if self.random.u8(..8) == 0 {
            report.epoch = u64::MAX; // as if the map had changed during the flush
        }
        let total = report.buckets.iter().map(|b| b.bytes).sum::<u64>();
        let next = on_flush(&map, &report, &self.options, &*order);
        let newest: u64 = next.stats.iter().map(|s| s.flushed.last().unwrap()).sum();
        assert_eq!(newest, total, "B2");
        self.install(next);
    }

    /// Until nothing is planned and nothing runs.
    fn rest(&mut self) {
        for _ in 0..2000 {
            self.start_jobs(4);
            if self.flight.is_empty() {
                return;
            }
            let at = self.random.usize(..self.flight.len());
            self.finish(at);
        }
        panic!("the tree never comes to rest");
    }

    fn live(&mut self) {
        for _ in 0..250 {
            match self.random.u8(..10) {
                0..=3
                    if stall(&self.version, &MemState::default(), &self.options).verdict
                        != Verdict::Stop =>
                {
                    self.flush();
                }
                4 if self.random.u8(..5) == 0 && !self.flight.is_empty() => {
                    let at = self.random.usize(..self.flight.len());
                    self.fail(at);
                }
                _ if !self.flight.is_empty() => {
                    let at = self.random.usize(..self.flight.len());
                    self.finish(at);
                }
                _ => {}
            }
            self.start_jobs(4);
        }
        self.rest();
    }
}

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
    let pris = [
        Pri::MinOverlappingRatio,
        Pri::ByCompensatedSize,
        Pri::OldestLargestSeqFirst,
        Pri::OldestSmallestSeqFirst,
        Pri::RoundRobin,
    ];
    let (mut kinds, mut edges, mut changes) = (Vec::new(), 0, 0);
    for seed in 0..lives(40) {
        for policy in PolicyKind::ALL {
            let pri = pris[seed as usize % pris.len()];
            let mut options = options(policy, seed % 2 == 0, pri);
            if seed % 4 == 1 {
                options.df_when = DfWhen::Always;
                (options.df_max_depth, options.df_extra_percent) = (8, u32::MAX);
            }
            if policy.is_tiered() {
                options.levels = 3;
            }
            if seed % 8 == 3 {
                options.commit_order = CommitOrder::Issue;
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
        let mut life = Life::new(seed, options(policy, seed % 4 < 2, Pri::default()));
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
        jobs_check(&version, &flight, options.commit_order).unwrap();
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
        println!(
            "{name}: {files} files, {} jobs in flight: {one} more in {first} us, {full} in {four} us",
            flight.len()
        );
        assert!(files >= 19_900 && first < 20_000, "{name}: {first} us");
    }
}

/// The least time of several tries. The one clock of this room, and only in its tests.
#[allow(clippy::disallowed_methods)]
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
