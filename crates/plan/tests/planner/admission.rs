//! The random world: flushes, compactions, snapshots, aborts, out-of-order commits, files from
//! outside and crashes over a few keys with puts, deletions, merge operands and range tombstones,
//! admitted and validated by the real code, with every key read at every snapshot after every
//! step (reliability F20). A port of the design's `admission_model.py`, and more.
//!
//! Each broken variant leaves out one rule and must be caught, or the world would prove nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fastrand::Rng;
use lithify_base::{CfId, FileId, JobId, KeyRange, Pos, bytewise};
use lithify_lsm::{Edit, FileMeta, FileRef, Version};
use lithify_plan::closure::close;
use lithify_plan::{
    Candidate, Cost, CutPolicy, InFlight, JobSpec, JobState, Kind, Limits, MemState, Placement,
    PlanOptions, Prio, Reason, View, admit, place, validate_commit,
};

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
    /// An entry is zeroed although the same job keeps a range tombstone over it.
    ZeroUnderTombstone,
    /// A merge operand becomes a value where older data may lie below.
    OperandAsValue,
    /// Files from outside are placed without a look at jobs in flight.
    PlacedBlindly,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Op {
    /// A range tombstone, as one key sees it. Kept apart from the other entries.
    Cover,
    Delete,
    /// Adds to what is older.
    Merge(u64),
    Put(u64),
}

/// Sequence number (0 once zeroed) and what happened.
type Entry = (u64, Op);
type Entries = BTreeMap<u8, Vec<Entry>>;

/// What a file or memtable holds. A range tombstone deletes keys from its first up to before its
/// second.
#[derive(Clone, Default, Debug)]
struct Contents {
    entries: Entries,
    tombstones: Vec<(u8, u8, u64)>,
}

impl Contents {
    fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.tombstones.is_empty()
    }
    /// All that `key` sees, tombstones included, the newest first.
    fn of(&self, key: u8) -> Vec<Entry> {
        let covers = self.tombstones.iter().filter(|t| t.0 <= key && key < t.1);
        let mut all: Vec<Entry> = covers.map(|t| (t.2, Op::Cover)).collect();
        all.extend(self.entries.get(&key).into_iter().flatten());
        all.sort_by(|a, b| b.cmp(a));
        all
    }
    /// The part with keys from `lo` up to before `hi`.
    fn clamped(&self, lo: u8, hi: u8) -> Contents {
        let entries = self.entries.range(lo..hi).map(|(k, e)| (*k, e.clone())).collect();
        let cut = self.tombstones.iter().map(|t| (t.0.max(lo), t.1.min(hi), t.2));
        Contents { entries, tombstones: cut.filter(|t| t.0 < t.1).collect() }
    }
}

/// What a reader makes of entries, the newest first: the value, or 0; and whether it need not look
/// at older ones.
fn fold(entries: impl IntoIterator<Item = Entry>) -> (u64, bool) {
    let mut sum = 0;
    for (_, op) in entries {
        match op {
            Op::Merge(n) => sum += n,
            Op::Put(n) => return (sum + n, true),
            Op::Delete | Op::Cover => return (sum, true),
        }
    }
    (sum, false)
}

struct Job {
    id: JobId,
    spec: Arc<JobSpec>,
    outputs: Vec<Contents>,
}

/// What a world is like.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Land {
    keys: u8,
    /// Writes go to every so manyth key, so that files leave gaps between them; those from outside
    /// fall into the gaps.
    stride: u8,
    levels: u8,
    steps: u32,
}

/// Four keys that are written, gaps of two between them, and one level below L0, which soon fills
/// up.
const GAPS: Land = Land { keys: 12, stride: 3, levels: 2, steps: 60 };

/// Keys without gaps.
fn dense(keys: u8) -> Land {
    Land { keys, stride: 1, levels: 4, steps: 400 }
}

struct World {
    random: Rng,
    variant: Variant,
    land: Land,
    version: Version,
    contents: BTreeMap<FileId, Contents>,
    flight: Vec<Job>,
    next_file: u64,
    next_job: u64,
    seq: u64,
    stratum: u32,
    history: Vec<Vec<Entry>>,
    mem: Contents,
    snapshots: Vec<u64>,
    options: PlanOptions,
    edges: u64,
    commits: u64,
    rejected: u64,
    dropped: u64,
    zeroed: u64,
    refused_commits: u64,
    placed: u64,
}

impl World {
    fn new(seed: u64, variant: Variant, land: Land) -> World {
        World {
            random: Rng::with_seed(seed),
            variant,
            land,
            version: Version::empty(bytewise()),
            contents: BTreeMap::new(),
            flight: Vec::new(),
            next_file: 1,
            next_job: 1,
            seq: 0,
            stratum: 1,
            history: vec![Vec::new(); usize::from(land.keys)],
            mem: Contents::default(),
            snapshots: Vec::new(),
            options: PlanOptions { levels: land.levels, ..PlanOptions::default() },
            edges: 0,
            commits: 0,
            rejected: 0,
            dropped: 0,
            zeroed: 0,
            refused_commits: 0,
            placed: 0,
        }
    }

    // Truth and reads.

    fn truth(&self, key: u8, at: u64) -> u64 {
        let all = self.history[usize::from(key)].iter().rev();
        fold(all.copied().filter(|e| e.0 <= at)).0
    }

    /// Memtable, then files from the newest position on. A tombstone met on the way hides what is
    /// below its sequence number.
    fn get(&self, key: u8, at: u64) -> u64 {
        let files = self.version.runs_covering(std::slice::from_ref(&key));
        let sources = [&self.mem].into_iter().chain(files.map(|f| &self.contents[&f.id]));
        let mut sum = 0;
        for source in sources {
            let (part, ends) = fold(source.of(key).into_iter().filter(|e| e.0 <= at));
            sum += part;
            if ends {
                break;
            }
        }
        sum
    }

    fn check(&self) -> Result<(), String> {
        for &at in self.snapshots.iter().chain([&self.seq]) {
            for key in 0..self.land.keys {
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
                // A hull where no key is: locks hold, promises bind no job.
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
    fn run(&mut self, inputs: &[FileRef], out: Pos) -> Vec<Contents> {
        self.snapshots.sort_unstable();
        let mut merged = Contents::default();
        // A tombstone stays whole if older data may lie below any of its keys.
        for f in inputs {
            for &(lo, hi, seq) in &self.contents[&f.id].tombstones {
                let oldest = self.snapshots.iter().all(|&s| s >= seq);
                if !oldest || (lo..hi).any(|k| self.in_use(k, f.pos, inputs, out)) {
                    merged.tombstones.push((lo, hi, seq));
                }
            }
        }
        for key in 0..self.land.keys {
            let mut entries: Vec<(Entry, Pos)> = Vec::new();
            for f in inputs {
                entries.extend(self.contents[&f.id].of(key).into_iter().map(|e| (e, f.pos)));
            }
            entries.sort_by_key(|e| std::cmp::Reverse(e.0));
            let covered = merged.tombstones.iter().any(|t| t.0 <= key && key < t.1);
            let points = self.keep(key, entries, covered, inputs, out);
            if !points.is_empty() {
                merged.entries.insert(key, points);
            }
        }
        self.cut(merged)
    }

    /// Whether a file that is no input may hold data of `key` that is older than `pos`.
    fn in_use(&self, key: u8, pos: Pos, inputs: &[FileRef], out: Pos) -> bool {
        self.version.files().any(|f| {
            let stays = inputs.iter().all(|i| i.id != f.id);
            let older = match self.variant {
                Variant::DeeperLevelsOnly => f.pos.level > out.level,
                _ => f.pos.is_older_than(pos),
            };
            stays && older && f.range.contains(&[key], self.version.order())
        })
    }

    /// What remains of the points of one key, newest first; `covered` if a tombstone over it stays.
    fn keep(
        &mut self,
        key: u8,
        entries: Vec<(Entry, Pos)>,
        covered: bool,
        inputs: &[FileRef],
        out: Pos,
    ) -> Vec<Entry> {
        let stripe = |seq: u64| self.snapshots.partition_point(|&s| s < seq);
        // Per stripe at most one point, with the newest position that went into it.
        let mut kept: Vec<(Entry, Pos)> = Vec::new();
        let mut open = false;
        for &((seq, op), pos) in &entries {
            let same = kept.last().is_some_and(|l| stripe(l.0.0) == stripe(seq));
            match (kept.last_mut().filter(|_| same), op) {
                (_, Op::Cover) => {
                    match kept.last_mut().filter(|_| same && open) {
                        Some(l) => l.0.1 = ended(l.0.1, Op::Delete),
                        // Nothing in this stripe is newer: what is older in it is gone.
                        None if !same => kept.push(((seq, Op::Cover), pos)),
                        None => {}
                    }
                    open = false;
                }
                (Some(l), _) if open => {
                    l.0.1 = ended(l.0.1, op);
                    open = matches!(op, Op::Merge(_));
                }
                (Some(_), _) => {}
                (None, _) => {
                    kept.push(((seq, op), pos));
                    open = matches!(op, Op::Merge(_));
                }
            }
        }
        if let Some(&((seq, op), pos)) = kept.last()
            && stripe(seq) == 0
            && op != Op::Cover
        {
            let in_use = self.in_use(key, pos, inputs, out);
            let last = kept.len() - 1;
            let under = covered && self.variant != Variant::ZeroUnderTombstone;
            let any = self.variant == Variant::ZeroAny && out.level == self.land.levels - 1;
            if (!in_use || self.variant == Variant::OperandAsValue)
                && let Op::Merge(n) = op
            {
                kept[last].0.1 = Op::Put(n);
            }
            if !in_use && op == Op::Delete {
                kept.pop();
                self.dropped += 1;
            } else if (!in_use && !under && seq > 0) || any {
                kept[last].0.0 = 0;
                self.zeroed += 1;
            }
        }
        kept.into_iter().map(|e| e.0).filter(|e| e.1 != Op::Cover).collect()
    }

    /// One to three files, range tombstones clamped to them.
    fn cut(&mut self, merged: Contents) -> Vec<Contents> {
        let mut bounds: BTreeSet<u8> =
            (0..self.random.usize(..3)).map(|_| self.random.u8(..self.land.keys)).collect();
        bounds.extend([0, self.land.keys]);
        let bounds: Vec<u8> = bounds.into_iter().collect();
        let parts = bounds.windows(2).map(|w| merged.clamped(w[0], w[1]));
        parts.filter(|c| !c.is_empty()).collect()
    }

    fn file(&mut self, pos: Pos, contents: Contents) -> FileMeta {
        let id = FileId(self.next_file);
        self.next_file += 1;
        let points = contents.entries.keys().copied();
        let covers = contents.tombstones.iter();
        let lo = points.clone().chain(covers.clone().map(|t| t.0)).min().unwrap();
        let (last, end) = (points.max(), covers.map(|t| t.1).max());
        let range = match (last, end) {
            (Some(last), None) => KeyRange::incl(&[lo][..], &[last][..]),
            (Some(last), Some(end)) if last >= end => KeyRange::incl(&[lo][..], &[last][..]),
            (_, end) => KeyRange::excl(&[lo][..], &[end.unwrap()][..]),
        };
        let f = FileMeta::new(id, pos, range);
        self.contents.insert(id, contents);
        f
    }

    fn commit(&mut self, at: usize) -> Result<(), String> {
        let waits = |k: &JobId| self.flight.iter().any(|j| j.id == *k);
        if self.flight[at].spec.after.iter().any(waits) {
            return Ok(());
        }
        if let Err(v) = validate_commit(&self.version, &self.flight[at].spec) {
            match self.variant {
                Variant::Whole | Variant::NoEdge => {
                    return Err(format!("theorem 2: {v}"));
                }
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
            let (key, seq) =
                (self.random.u8(..self.land.keys) / self.land.stride * self.land.stride, self.seq);
            match self.random.u8(..20) {
                // They would fill the gaps.
                0..=1 if self.land.stride == 1 => {
                    let end = (key + self.random.u8(1..4)).min(self.land.keys);
                    for k in key..end {
                        self.history[usize::from(k)].push((seq, Op::Cover));
                    }
                    self.mem.tombstones.push((key, end, seq));
                }
                n => {
                    let op = match n {
                        2..=6 => Op::Delete,
                        7..=9 => Op::Merge(seq << 32),
                        _ => Op::Put(seq),
                    };
                    self.history[usize::from(key)].push((seq, op));
                    self.mem.entries.entry(key).or_default().push((seq, op));
                }
            }
        }
    }

    /// Cut in two at a random key: one stratum, one edit.
    fn flush(&mut self) -> Result<(), String> {
        self.stratum += 1;
        let mem = std::mem::take(&mut self.mem);
        let at = self.random.u8(1..self.land.keys);
        let mut edit = Edit { job: Some(JobId(0)), ..Edit::new(CfId(0)) };
        let halves = [mem.clamped(0, at), mem.clamped(at, self.land.keys)];
        for half in halves.into_iter().filter(|h| !h.is_empty()) {
            let f = self.file(Pos::new(0, self.stratum), half);
            edit.adds.push(f);
        }
        self.version = self.version.apply(&edit).map_err(|v| v.to_string())?;
        Ok(())
    }

    /// A file from outside, newer than everything: the memtable is flushed first.
    fn ingest(&mut self) -> Result<(), String> {
        if !self.mem.is_empty() {
            self.flush()?;
        }
        self.seq += 1;
        let lo = self.random.u8(..self.land.keys);
        let lo = if self.land.stride > 1 { self.promised_gap().unwrap_or(lo) } else { lo };
        let hi = match self.land.stride {
            1 => (lo + self.random.u8(..3) / 2).min(self.land.keys - 1),
            _ => lo,
        };
        let mut contents = Contents::default();
        for key in (lo..=hi).filter(|k| *k == lo || *k == hi || self.seq.is_multiple_of(2)) {
            contents.entries.insert(key, vec![(self.seq, Op::Put(self.seq))]);
            self.history[usize::from(key)].push((self.seq, Op::Put(self.seq)));
        }
        let mem = MemState::default();
        let mut flights = self.in_flight();
        if self.variant == Variant::PlacedBlindly {
            flights.clear();
        }
        let limits = Limits { next_job: JobId(self.next_job), ..Limits::default() };
        let view = View::new(&self.version, &flights, &mem, &self.options, limits);
        let pos = match place(&view, &KeyRange::incl(&[lo][..], &[hi][..])) {
            Placement::At(pos) => pos,
            Placement::NewestOfL0 => {
                self.stratum += 1;
                Pos::new(0, self.stratum)
            }
        };
        self.placed += u64::from(pos.level > 0);
        let f = self.file(pos, contents);
        let edit = Edit { adds: vec![f], ..Edit::new(CfId(0)) };
        self.version = self.version.apply(&edit).map_err(|v| v.to_string())?;
        Ok(())
    }

    /// A key that no file has, and on which a job in flight may put one.
    fn promised_gap(&mut self) -> Option<u8> {
        let order = bytewise();
        let gaps = (0..self.land.keys).filter(|k| {
            self.version.files().all(|f| !f.range.contains(&[*k], &*order))
                && self.flight.iter().any(|j| j.spec.hull.contains(&[*k], &*order))
        });
        let gaps: Vec<u8> = gaps.collect();
        self.random.choice(&gaps).copied()
    }

    /// Jobs and snapshots are gone; the tree and, by its log, the memtable are as they were.
    fn crash(&mut self) {
        self.flight.clear();
        self.snapshots.clear();
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
        let wish = if kind < 0.3 && level < self.land.levels - 1 {
            let to = Pos::base(level + 1);
            Candidate::merge(Kind::Down, close(&self.version, &[seed], to), to, said)
        } else if kind < 0.65 && level < self.land.levels - 1 {
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
            let level = (deepest + self.random.u8(..2)).min(self.land.levels - 1);
            let to = Pos::new(level, self.random.u32(..5));
            Candidate::merge(Kind::Manual, inputs, to, said)
        };
        self.issue(wish);
    }

    fn step(&mut self) -> Result<(), String> {
        if self.land.stride > 1 && self.random.u8(..3) == 0 && self.promised_gap().is_some() {
            return self.ingest();
        }
        let a = self.random.f64();
        if a < 0.26 {
            self.write();
        } else if a < 0.265 {
            self.crash();
        } else if a < 0.30 {
            self.ingest()?;
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

/// A merge operand with what is older.
fn ended(newer: Op, older: Op) -> Op {
    match (newer, older) {
        (Op::Merge(a), Op::Merge(b)) => Op::Merge(a + b),
        (Op::Merge(a), Op::Put(b)) => Op::Put(a + b),
        (Op::Merge(a), _) => Op::Put(a),
        (other, _) => other,
    }
}

/// Runs the world and returns the seeds that went wrong, with the first story.
fn violations(variant: Variant, land: Land, seeds: u64) -> (u64, String) {
    let (mut wrong, mut story) = (0, String::new());
    let mut sums = [0; 7];
    for seed in 0..seeds {
        let mut world = World::new(seed, variant, land);
        for step in 0..land.steps {
            if let Err(e) = world.step().and_then(|()| world.check()) {
                wrong += 1;
                if story.is_empty() {
                    story = format!("seed {seed}, step {step}: {e}");
                }
                break;
            }
        }
        let w = &world;
        let counts =
            [w.commits, w.edges, w.rejected, w.dropped, w.zeroed, w.refused_commits, w.placed];
        sums.iter_mut().zip(counts).for_each(|(s, c)| *s += c);
    }
    if matches!(variant, Variant::Whole) && land.stride > 1 {
        assert!(sums[6] * 10 > seeds, "too few files from outside went into gaps: {}", sums[6]);
    } else if matches!(variant, Variant::Whole) {
        let names = ["commits", "edges", "rejections", "drops", "zeroings"];
        for (name, sum) in names.iter().zip(sums) {
            assert!(sum > seeds, "the world saw too few {name}: {sum}");
        }
        assert!(sums[6] * 4 > seeds, "too few files from outside went below L0: {}", sums[6]);
    }
    if matches!(variant, Variant::EdgesIgnoredValidated | Variant::PromisesIgnoredValidated) {
        assert!(sums[5] > 0, "no commit was ever refused");
    }
    (wrong, story)
}

#[test]
fn the_whole_rule_is_sound() {
    let factor = std::env::var("WORLD_FACTOR").map_or(1, |f| f.parse().expect("a number"));
    for (land, seeds) in [(dense(12), 150), (dense(6), 150), (GAPS, 1000)] {
        assert_eq!(
            violations(Variant::Whole, land, seeds * factor),
            (0, String::new()),
            "{land:?}"
        );
    }
}

#[test]
fn edges_as_conflicts_are_sound() {
    assert_eq!(violations(Variant::NoEdge, dense(12), 60), (0, String::new()));
}

#[test]
fn validation_alone_keeps_recency() {
    assert_eq!(violations(Variant::EdgesIgnoredValidated, dense(12), 150), (0, String::new()));
    assert_eq!(violations(Variant::PromisesIgnoredValidated, dense(6), 150), (0, String::new()));
}

/// `WORLD_FACTOR` times as many seeds; the rates are in docs/internals/testing.md.
#[test]
fn every_broken_rule_is_caught() {
    let factor = std::env::var("WORLD_FACTOR").map_or(1, |f| f.parse().expect("a number"));
    let cases = [
        (Variant::EdgesIgnored, dense(12), 60),
        (Variant::DeeperLevelsOnly, dense(12), 60),
        (Variant::ZeroAny, dense(6), 200),
        (Variant::PromisesIgnored, dense(6), 1000),
        (Variant::LocksIgnored, dense(12), 20),
        (Variant::ZeroUnderTombstone, dense(6), 60),
        (Variant::OperandAsValue, dense(6), 60),
        (Variant::PlacedBlindly, GAPS, 1000),
    ];
    println!(
        "{:20} {:>4} {:>6} {:>7} {:>7}  the first",
        "broken", "keys", "seeds", "caught", "rate"
    );
    for (variant, land, seeds) in cases {
        let seeds = seeds * factor;
        let (wrong, story) = violations(variant, land, seeds);
        assert!(wrong > 0, "{variant:?} went unnoticed");
        let (name, rate) = (format!("{variant:?}"), 100.0 * wrong as f64 / seeds as f64);
        let keys = land.keys;
        println!("{name:20} {keys:>4} {seeds:>6} {wrong:>7} {rate:>6.1}%  {story}");
    }
}
