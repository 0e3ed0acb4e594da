//! The random world: flushes, compactions, snapshots, aborts and out-of-order commits over a few
//! keys, admitted and validated by the real code, with every key read at every snapshot after
//! every step. A port of the design's `admission_model.py`.
//!
//! Each broken variant leaves out one rule and must be caught, or the world would prove nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fastrand::Rng;
use lithify_base::{CfId, FileId, JobId, KeyRange, Pos, bytewise};
use lithify_lsm::{Edit, FileMeta, FileRef, Version};
use lithify_plan::closure::close;
use lithify_plan::{
    Candidate, Cost, CutPolicy, InFlight, JobSpec, JobState, Kind, Limits, MemState, PlanOptions,
    Prio, Reason, View, admit, validate_commit,
};

/// Levels of the world.
const LEVELS: u8 = 4;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Variant {
    /// The rule as specified.
    Whole,
    /// An edge counts as a conflict: safe, but nothing overtakes.
    NoEdge,
    /// After-edges are found and then ignored.
    EdgesIgnored,
    /// The same, but a commit that fails its validation is aborted: safe again (theorem 1).
    EdgesIgnoredValidated,
    /// Outputs promised by jobs in flight are ignored (A2).
    PromisesIgnored,
    /// The same with validation at commit.
    PromisesIgnoredValidated,
    /// Locks are ignored too.
    LocksIgnored,
    /// Tombstones are dropped by the classic test: deeper levels only.
    DeeperLevelsOnly,
    /// Sequence numbers are zeroed on the last level without a look at other runs.
    ZeroAny,
}

/// Sequence number (0 once zeroed) and value (0 for a deletion).
type Entry = (u64, u64);
type Entries = BTreeMap<u8, Vec<Entry>>;

struct Job {
    id: JobId,
    spec: Arc<JobSpec>,
    outputs: Vec<Entries>,
}

struct World {
    random: Rng,
    variant: Variant,
    keys: u8,
    version: Version,
    contents: BTreeMap<FileId, Entries>,
    flight: Vec<Job>,
    next_file: u64,
    next_job: u64,
    seq: u64,
    stratum: u32,
    history: Vec<Vec<Entry>>,
    mem: Entries,
    snapshots: Vec<u64>,
    options: PlanOptions,
    edges: u64,
    commits: u64,
    rejected: u64,
    dropped: u64,
    zeroed: u64,
    refused_commits: u64,
}

impl World {
    fn new(seed: u64, variant: Variant, keys: u8) -> World {
        World {
            random: Rng::with_seed(seed),
            variant,
            keys,
            version: Version::empty(bytewise()),
            contents: BTreeMap::new(),
            flight: Vec::new(),
            next_file: 1,
            next_job: 1,
            seq: 0,
            stratum: 1,
            history: vec![Vec::new(); usize::from(keys)],
            mem: BTreeMap::new(),
            snapshots: Vec::new(),
            options: PlanOptions { levels: LEVELS, ..PlanOptions::default() },
            edges: 0,
            commits: 0,
            rejected: 0,
            dropped: 0,
            zeroed: 0,
            refused_commits: 0,
        }
    }

    // Truth and reads.

    fn truth(&self, key: u8, at: u64) -> u64 {
        let all = self.history[usize::from(key)].iter().rev();
        all.into_iter().find(|e| e.0 <= at).map_or(0, |e| e.1)
    }

    fn get(&self, key: u8, at: u64) -> u64 {
        let newest = |entries: &Entries| {
            let visible = entries.get(&key)?.iter().filter(|e| e.0 <= at).max()?;
            Some(visible.1)
        };
        let files = self.version.runs_covering(std::slice::from_ref(&key));
        let found = newest(&self.mem).or_else(|| {
            let mut all = files.map(|f| &self.contents[&f.id]);
            all.find_map(newest)
        });
        found.unwrap_or(0)
    }

    fn check(&self) -> Result<(), String> {
        for &at in self.snapshots.iter().chain([&self.seq]) {
            for key in 0..self.keys {
                let (want, got) = (self.truth(key, at), self.get(key, at));
                if want != got {
                    return Err(format!("key {key} at {at}: want {want}, got {got}"));
                }
            }
        }
        Ok(())
    }

    // Jobs.

    fn in_flight(&self) -> Vec<InFlight> {
        let jobs = self.flight.iter().filter(|_| self.variant != Variant::LocksIgnored);
        jobs.map(|j| {
            let mut spec = (*j.spec).clone();
            if matches!(self.variant, Variant::PromisesIgnored | Variant::PromisesIgnoredValidated)
            {
                // A hull where no key is: locks hold, promises bind nobody.
                spec.hull = KeyRange::incl(&b"\xff"[..], &b"\xff"[..]);
            }
            InFlight { id: j.id, spec: spec.into(), state: JobState::Running }
        })
        .collect()
    }

    fn issue(&mut self, wish: Candidate) {
        let mem = MemState::default();
        let flights = self.in_flight();
        let limits = Limits { next_job: JobId(self.next_job), ..Limits::default() };
        let view = View::new(&self.version, &flights, &mem, &self.options, limits);
        let Ok(admitted) = admit(&view, &wish) else {
            self.rejected += 1;
            return;
        };
        let mut after = admitted.after;
        match self.variant {
            Variant::NoEdge if !after.is_empty() => return,
            Variant::EdgesIgnored | Variant::EdgesIgnoredValidated => after.clear(),
            _ => {}
        }
        self.edges += u64::from(!after.is_empty());
        let outputs = self.run(&wish.inputs, admitted.out);
        let spec = JobSpec {
            kind: wish.kind,
            inputs: wish.inputs.iter().map(|f| f.id).collect(),
            out: admitted.out,
            hull: admitted.hull,
            cuts: CutPolicy::default(),
            after,
            prio: Prio::Normal,
            est: Cost::default(),
            reason: wish.reason,
        };
        self.flight.push(Job { id: JobId(self.next_job), spec: spec.into(), outputs });
        self.next_job += 1;
    }

    /// The merge, with the snapshots and the version of now, as a job captures them at issue.
    fn run(&mut self, inputs: &[FileRef], out: Pos) -> Vec<Entries> {
        let mut all: BTreeMap<u8, Vec<(Entry, Pos)>> = BTreeMap::new();
        for f in inputs {
            for (&k, entries) in &self.contents[&f.id] {
                all.entry(k).or_default().extend(entries.iter().map(|&e| (e, f.pos)));
            }
        }
        let mut merged = Entries::new();
        for (key, entries) in all {
            let kept = self.keep(key, entries, inputs, out);
            if !kept.is_empty() {
                merged.insert(key, kept);
            }
        }
        self.cut(merged)
    }

    /// What remains of the entries of one key.
    fn keep(
        &mut self,
        key: u8,
        mut entries: Vec<(Entry, Pos)>,
        inputs: &[FileRef],
        out: Pos,
    ) -> Vec<Entry> {
        self.snapshots.sort_unstable();
        entries.sort_by_key(|e| std::cmp::Reverse(e.0.0));
        let stripe = |seq: u64| self.snapshots.partition_point(|&s| s < seq);
        let mut kept: Vec<(Entry, Pos)> = Vec::new();
        for e in entries {
            if kept.last().is_none_or(|l| stripe(l.0.0) != stripe(e.0.0)) {
                kept.push(e);
            }
        }
        let Some(&((seq, value), pos)) = kept.last() else { return Vec::new() };
        let in_use = self.version.files().any(|f| {
            let stays = inputs.iter().all(|i| i.id != f.id);
            let older = match self.variant {
                Variant::DeeperLevelsOnly => f.pos.level > out.level,
                _ => f.pos.is_older_than(pos),
            };
            stays && older && f.range.contains(&[key], self.version.order())
        });
        let last = kept.len() - 1;
        if stripe(seq) == 0 && !in_use {
            if value == 0 {
                kept.pop();
                self.dropped += 1;
            } else if seq > 0 {
                kept[last].0.0 = 0;
                self.zeroed += 1;
            }
        } else if self.variant == Variant::ZeroAny && stripe(seq) == 0 && out.level == LEVELS - 1 {
            kept[last].0.0 = 0;
        }
        kept.into_iter().map(|e| e.0).collect()
    }

    /// One to three files.
    fn cut(&mut self, merged: Entries) -> Vec<Entries> {
        let cuts: BTreeSet<u8> =
            (0..self.random.usize(..3)).map(|_| self.random.u8(..self.keys)).collect();
        let mut files: Vec<Entries> = Vec::new();
        let mut last = usize::MAX;
        for (k, e) in merged {
            let piece = cuts.range(..=k).count();
            if piece != last {
                files.push(Entries::new());
                last = piece;
            }
            files.last_mut().unwrap().insert(k, e);
        }
        files
    }

    fn file(&mut self, pos: Pos, entries: Entries) -> FileMeta {
        let id = FileId(self.next_file);
        self.next_file += 1;
        let (lo, hi) = (*entries.keys().next().unwrap(), *entries.keys().next_back().unwrap());
        let f = FileMeta::new(id, pos, KeyRange::incl(&[lo][..], &[hi][..]));
        self.contents.insert(id, entries);
        f
    }

    fn commit(&mut self, at: usize) -> Result<(), String> {
        let waits = |k: &JobId| self.flight.iter().any(|j| j.id == *k);
        if self.flight[at].spec.after.iter().any(waits) {
            return Ok(());
        }
        if let Err(v) = validate_commit(&self.version, &self.flight[at].spec) {
            match self.variant {
                Variant::Whole | Variant::NoEdge => return Err(format!("theorem 2: {v}")),
                Variant::EdgesIgnoredValidated | Variant::PromisesIgnoredValidated => {
                    self.refused_commits += 1;
                    self.abort(self.flight[at].id);
                    return Ok(());
                }
                _ => {}
            }
        }
        let job = self.flight.remove(at);
        let mut edit = Edit { job: Some(job.id), ..Edit::new(CfId(0)) };
        for id in &job.spec.inputs {
            let Some(f) = self.version.file(*id) else { return Err(format!("input {id} is gone")) };
            edit.deletes.push((f.pos, *id));
        }
        for entries in job.outputs {
            let f = self.file(job.spec.out, entries);
            edit.adds.push(f);
        }
        self.version = self.version.apply(&edit).map_err(|v| v.to_string())?;
        self.commits += 1;
        Ok(())
    }

    /// Aborts a job and every job that follows it.
    fn abort(&mut self, id: JobId) {
        let mut dead = vec![id];
        while let Some(id) = dead.pop() {
            self.flight.retain(|j| j.id != id);
            dead.extend(self.flight.iter().filter(|j| j.spec.after.contains(&id)).map(|j| j.id));
        }
    }

    // Random actions.

    fn write(&mut self) {
        for _ in 0..self.random.u32(1..=3) {
            self.seq += 1;
            let key = self.random.u8(..self.keys);
            let entry = (self.seq, if self.random.f64() < 0.35 { 0 } else { self.seq });
            self.history[usize::from(key)].push(entry);
            self.mem.entry(key).or_default().push(entry);
        }
    }

    /// Cut in two at a random key: one stratum, one edit.
    fn flush(&mut self) -> Result<(), String> {
        self.stratum += 1;
        let mut low = std::mem::take(&mut self.mem);
        let high = low.split_off(&self.random.u8(1..self.keys));
        let mut edit = Edit { job: Some(JobId(0)), ..Edit::new(CfId(0)) };
        for half in [low, high].into_iter().filter(|h| !h.is_empty()) {
            let f = self.file(Pos::new(0, self.stratum), half);
            edit.adds.push(f);
        }
        self.version = self.version.apply(&edit).map_err(|v| v.to_string())?;
        Ok(())
    }

    fn compact(&mut self) {
        let held: BTreeSet<FileId> =
            self.flight.iter().flat_map(|j| j.spec.inputs.iter().copied()).collect();
        let idle: Vec<FileRef> =
            self.version.files().filter(|f| !held.contains(&f.id)).cloned().collect();
        let Some(seed) = self.random.choice(&idle).cloned() else { return };
        let (level, kind) = (seed.pos.level, self.random.f64());
        let order = bytewise();
        let said = Reason::Said("by the random world".into());
        let wish = if kind < 0.3 && level < LEVELS - 1 {
            let to = Pos::base(level + 1);
            Candidate::merge(Kind::Down, close(&self.version, &[seed], to), to, said)
        } else if kind < 0.65 && level < LEVELS - 1 {
            let mut inputs = close(&self.version, &[seed], Pos::base(level));
            inputs.retain(|f| !held.contains(&f.id));
            Candidate::stack(Kind::Df, inputs, level + 1, said)
        } else if kind < 0.8 {
            let near =
                |f: &&FileRef| f.pos.level == level && f.range.overlaps(&seed.range, &*order);
            let inputs: Vec<FileRef> = idle.iter().filter(near).cloned().collect();
            let to = inputs.iter().map(|f| f.pos).max().unwrap();
            Candidate::merge(Kind::IntraLevel, inputs, to, said)
        } else {
            // Any wish at all: soundness comes from admission alone.
            let n = self.random.usize(1..=4).min(idle.len());
            let mut inputs = idle;
            self.random.shuffle(&mut inputs);
            inputs.truncate(n);
            let deepest = inputs.iter().map(|f| f.pos.level).max().unwrap();
            let level = (deepest + self.random.u8(..2)).min(LEVELS - 1);
            let to = Pos::new(level, self.random.u32(..5));
            Candidate::merge(Kind::Manual, inputs, to, said)
        };
        self.issue(wish);
    }

    fn step(&mut self) -> Result<(), String> {
        let a = self.random.f64();
        if a < 0.30 {
            self.write();
        } else if a < 0.45 && !self.mem.is_empty() {
            self.flush()?;
        } else if a < 0.50 {
            if !self.snapshots.is_empty() && self.random.bool() {
                let i = self.random.usize(..self.snapshots.len());
                self.snapshots.swap_remove(i);
            } else if self.snapshots.len() < 2 {
                self.snapshots.push(self.seq);
            }
        } else if a < 0.80 && self.flight.len() < 6 {
            self.compact();
        } else if !self.flight.is_empty() {
            let at = self.random.usize(..self.flight.len());
            if self.random.f64() < 0.08 {
                self.abort(self.flight[at].id);
            } else {
                self.commit(at)?;
            }
        }
        Ok(())
    }
}

/// Runs the world and returns the seeds that went wrong, with the first story.
fn violations(variant: Variant, keys: u8, seeds: u64) -> (u64, String) {
    let (mut wrong, mut story) = (0, String::new());
    let mut sums = [0; 6];
    for seed in 0..seeds {
        let mut world = World::new(seed, variant, keys);
        for step in 0..400 {
            if let Err(e) = world.step().and_then(|()| world.check()) {
                wrong += 1;
                if story.is_empty() {
                    story = format!("seed {seed}, step {step}: {e}");
                }
                break;
            }
        }
        let w = &world;
        let counts = [w.commits, w.edges, w.rejected, w.dropped, w.zeroed, w.refused_commits];
        sums.iter_mut().zip(counts).for_each(|(s, c)| *s += c);
    }
    if matches!(variant, Variant::Whole) {
        let names = ["commits", "edges", "rejections", "drops", "zeroings"];
        for (name, sum) in names.iter().zip(sums) {
            assert!(sum > seeds, "the world saw too few {name}: {sum}");
        }
    }
    if matches!(variant, Variant::EdgesIgnoredValidated | Variant::PromisesIgnoredValidated) {
        assert!(sums[5] > 0, "no commit was ever refused");
    }
    (wrong, story)
}

#[test]
fn the_whole_rule_is_sound() {
    for keys in [12, 6] {
        assert_eq!(violations(Variant::Whole, keys, 300), (0, String::new()));
    }
}

#[test]
fn edges_as_conflicts_are_sound() {
    assert_eq!(violations(Variant::NoEdge, 12, 100), (0, String::new()));
}

#[test]
fn validation_alone_keeps_recency() {
    assert_eq!(violations(Variant::EdgesIgnoredValidated, 12, 300), (0, String::new()));
    assert_eq!(violations(Variant::PromisesIgnoredValidated, 6, 300), (0, String::new()));
}

#[test]
fn every_broken_rule_is_caught() {
    let cases = [
        (Variant::EdgesIgnored, 12, 300),
        (Variant::DeeperLevelsOnly, 12, 300),
        (Variant::ZeroAny, 6, 600),
        (Variant::PromisesIgnored, 6, 1000),
        (Variant::LocksIgnored, 12, 50),
    ];
    for (variant, keys, seeds) in cases {
        let (wrong, story) = violations(variant, keys, seeds);
        assert!(wrong > 0, "{variant:?} went unnoticed");
        println!("{variant:?}: {wrong} of {seeds} seeds, first {story}");
    }
}
