//! A whole life of a tree under one policy: flushes come, the planner fills its slots, jobs end in
//! any order or fail, and at every moment the plan must be sound, keep to its policy, and have
//! something to do whenever writers are stopped.
#![allow(dead_code, unreachable_pub, reason = "each test binary uses its own part")]

use fastrand::Rng;
use lithify_base::{CfId, FileId, JobId, KeyRange, Pos, bytewise};
use lithify_lsm::{BucketMap, Edit, FileMeta, Version, check};
use lithify_plan::adapt::{create, flush_is_cut, keeps_flow};
use lithify_plan::check::jobs as jobs_check;
use lithify_plan::{
    BucketFlow, BucketOptions, Candidate, CompactionPri, FlushReport, InFlight, JobSpec, JobState,
    Kind, Limits, Load, ManualRequest, MemState, Out, PlanOptions, Policy, PolicyKind, Reason,
    Verdict, View, adapt, admit, cursor_after, on_flush, plan, policies, stall, validate_commit,
};

/// A small tree: a memtable is 64 bytes, a key two.
pub fn options(policy: PolicyKind, dynamic_levels: bool, pri: CompactionPri) -> PlanOptions {
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
        fifo_max_bytes: 1 << 10,
        fifo_allow_compaction: dynamic_levels,
        ..PlanOptions::default()
    }
}

pub struct Life {
    pub random: Rng,
    pub version: Version,
    pub options: PlanOptions,
    pub policies: Vec<Box<dyn Policy>>,
    pub flight: Vec<InFlight>,
    pub request: Option<ManualRequest>,
    pub load: Load,
    pub next_file: u64,
    pub next_job: u64,
    pub stratum: u32,
    /// The time of day: new files are of it.
    pub now: u64,
    pub kinds: Vec<Kind>,
    pub edges: usize,
    pub changes: usize,
}

pub fn key(n: u16) -> [u8; 2] {
    n.to_be_bytes()
}

pub fn number(key: &[u8]) -> u16 {
    u16::from_be_bytes([key[0], key[1]])
}

impl Life {
    pub fn new(seed: u64, options: PlanOptions) -> Life {
        Life {
            random: Rng::with_seed(seed),
            version: Version::empty(bytewise()),
            policies: policies(options.policy),
            options,
            flight: Vec::new(),
            request: None,
            load: Load::default(),
            next_file: 1,
            next_job: 1,
            stratum: 0,
            now: 1,
            kinds: Vec::new(),
            edges: 0,
            changes: 0,
        }
    }

    pub fn file(&mut self, pos: Pos, lo: u16, hi: u16, bytes: u64) -> FileMeta {
        let id = FileId(self.next_file);
        self.next_file += 1;
        let mut f = FileMeta::new(id, pos, KeyRange::incl(&key(lo)[..], &key(hi)[..]));
        f.bytes = bytes;
        f.entries = bytes;
        f.raw_value_bytes = bytes;
        f.deletes = self.random.u64(..=bytes);
        (f.created, f.oldest_ancestor) = (self.now, self.now);
        f
    }

    pub fn flush(&mut self) {
        if self.options.policy.has_buckets() {
            return self.bucket_flush();
        }
        let wide = self.random.u8(..4) > 0;
        let lo = self.random.u16(..if wide { 1000 } else { 60_000 });
        let hi = if wide { 60_000 + self.random.u16(..1000) } else { lo + self.random.u16(..2000) };
        self.flush_over(lo, hi);
    }

    /// A memtable over these keys, in one file whatever the policy.
    pub fn flush_over(&mut self, lo: u16, hi: u16) {
        self.stratum += 1;
        let f = self.file(Pos::new(0, self.stratum), lo, hi, 64);
        let edit = Edit { job: Some(JobId(0)), adds: vec![f], ..Edit::new(CfId(0)) };
        self.version = self.version.apply(&edit).unwrap();
    }

    pub fn start_jobs(&mut self, slots: usize) {
        let mem = MemState::default();
        let limits = Limits {
            slots_free: slots.saturating_sub(self.flight.len()),
            next_job: JobId(self.next_job),
            ..Limits::default()
        };
        let view = View::new(&self.version, &self.flight, &mem, &self.options, limits)
            .with_manual(self.request.as_ref())
            .under(self.load)
            .at(self.now);
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
            assert_eq!(admitted.after, spec.after);
            assert_eq!(admitted.hull, spec.hull);
            self.edges += spec.after.len();
            self.kinds.push(spec.kind);
            let id = JobId(self.next_job);
            self.next_job += 1;
            self.flight.push(InFlight { id, spec: spec.into(), state: JobState::Running });
        }
        jobs_check(&self.version, &self.flight).unwrap();
        let stalled = stall(&self.version, &mem, &self.options).verdict == Verdict::Stop;
        assert!(!stalled || !self.flight.is_empty(), "writers wait and no job is at work");
    }

    /// A job ends: its outputs cover its hull in pieces of a file each.
    pub fn finish(&mut self, at: usize) {
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
        if job.spec.kind == Kind::Drop {
            // Nothing comes of it.
        } else if job.spec.kind == Kind::Move {
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
                let mut f = self.file(job.spec.out, bound(i), last, bytes / pieces);
                f.oldest_ancestor = inputs.iter().map(|f| f.oldest_ancestor).min().unwrap();
                edit.adds.push(f);
            }
        }
        let runs = |version: &Version, level| version.level(level).runs().len();
        let before = self.version.clone();
        self.version = self.version.apply(&edit).unwrap();
        self.flight.remove(at);
        self.adapt(&job.spec);
        check::all(&self.version).unwrap();
        let stacks = self.options.policy.stacks() || self.options.policy.is_tiered();
        for level in 1..if stacks { 1 } else { 5 } {
            let most = runs(&before, level).max(1);
            assert!(runs(&self.version, level) <= most, "L{level} has one more extra run");
        }
    }

    /// A job fails, and all that follow it.
    pub fn fail(&mut self, at: usize) {
        let mut dead = vec![self.flight.remove(at).id];
        while let Some(id) = dead.pop() {
            let after = |j: &InFlight| j.spec.after.contains(&id);
            dead.extend(self.flight.iter().filter(|j| after(j)).map(|j| j.id));
            self.flight.retain(|j| !after(j));
        }
    }

    /// What the engine does with the bucket map after a commit.
    pub fn adapt(&mut self, done: &JobSpec) {
        let Some(map) = self.version.buckets() else { return };
        if let Some(next) = adapt(map, &self.version, Some(done), &self.options) {
            keeps_flow(map, &next).unwrap();
            self.changes += 1;
            self.install(next);
        }
    }
    pub fn install(&mut self, map: BucketMap) {
        let edit = Edit { bucket_hint: Some(map.into()), ..Edit::new(CfId(0)) };
        self.version = self.version.apply(&edit).unwrap();
    }

    /// A memtable over one to sixty thousand keys, cut at bucket bounds. The report may come from
    /// an older map than the one of now.
    pub fn bucket_flush(&mut self) {
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
    pub fn rest(&mut self) {
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

    pub fn live(&mut self) {
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
