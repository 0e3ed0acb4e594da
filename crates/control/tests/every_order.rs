//! Every order of events in small lives: memtables freeze, jobs are built, fail, commit or are
//! postponed, compaction is switched off and on, the process crashes at any point with any first
//! part of the edits being written durable, and the bucket map is split and merged at any point. After
//! every event every key is read, and the invariants of the tree and of the jobs must hold.
//!
//! A life has at most so many compactions and memtables (one more where runs pile up at every
//! level), three levels, three slots for compactions and two for flushes, one failure, one crash,
//! one split, one merge and one pause. States that look alike are visited once. `EVERY_ORDER=n` looks
//! at lives with `n` compactions (2 if not set, which takes seconds; 4 takes minutes for each
//! policy), and `EVERY_POLICY=name` at the policies whose names begin so.
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "a hash without a seed, time for reports"
)]

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::rc::Rc;
use std::time::Instant;

use lithify_base::{Error, ErrorKind, FileId, JobId, KeyRange, Pos, bytewise};
use lithify_control::{Command, Core, Event, MemId, NewEdit, Options};
use lithify_lsm::{BucketMap, BucketStat, Edit, FileMeta, FileRef, Version, check};
use lithify_plan::{DfWhen, Kind, PlanOptions, PolicyKind, check::jobs as jobs_check};

/// Keys of the world.
const KEYS: usize = 4;
/// What the memtables write, in order: first and last key. The third deletes.
const BATCHES: [(usize, usize); 5] = [(0, 3), (1, 2), (0, 1), (2, 3), (0, 3)];
const DELETES: u8 = 3;

/// Number of the memtable that wrote, and whether it is a value or a deletion.
type Entry = (u8, bool);
type Entries = [Option<Entry>; KEYS];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    Freeze,
    Built(JobId),
    Failed(JobId),
    Synced,
    Postponed,
    /// So many of the edits being written are durable.
    Crash {
        kept: usize,
    },
    /// Buckets are cut in the middle from now on.
    Split,
    /// There is one bucket from now on.
    Merge,
    /// No compaction is started any more.
    Pause,
    /// They are again.
    Resume,
}

#[derive(Clone)]
enum Work {
    Flush { mem: MemId, out: Pos, cut: bool },
    Compaction { out: Pos, merged: Entries },
}

/// What happens at most once and is in a state's name.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
struct Done {
    failure: bool,
    crash: bool,
    split: bool,
    merge: bool,
    pause: bool,
    resume: bool,
}

#[derive(Clone)]
struct World {
    options: Rc<Options>,
    core: Core,
    now: u64,
    next_file: u64,
    contents: BTreeMap<FileId, Entries>,
    running: BTreeMap<JobId, Work>,
    /// What jobs have built that did not commit yet.
    built: BTreeMap<JobId, Vec<FileId>>,
    /// The batch being written, each edit with the memtable it flushes.
    writing: Vec<(Option<MemId>, Edit)>,
    flushing: BTreeMap<JobId, MemId>,
    /// What recovery would find.
    durable: Version,
    mems: BTreeMap<MemId, Entries>,
    next_mem: u64,
    frozen: usize,
    compactions: usize,
    /// Jobs taken out because they followed one that failed.
    aborts: usize,
    done: Done,
}

impl World {
    fn new(options: &Options) -> World {
        let empty = Version::empty(bytewise());
        World {
            options: Rc::new(options.clone()),
            core: Core::new(options.clone(), empty.clone(), 1),
            now: 0,
            next_file: 1,
            contents: BTreeMap::new(),
            running: BTreeMap::new(),
            built: BTreeMap::new(),
            writing: Vec::new(),
            flushing: BTreeMap::new(),
            durable: empty,
            mems: BTreeMap::new(),
            next_mem: 1,
            frozen: 0,
            compactions: 0,
            aborts: 0,
            done: Done::default(),
        }
    }

    fn on(&mut self, event: Event) {
        self.now += 100_000_000_000;
        for command in self.core.on(event, self.now) {
            self.obey(command);
        }
    }

    fn obey(&mut self, command: Command) {
        match command {
            Command::StartFlush { job, mem, out, .. } => {
                // Pinned for the whole flush, whatever becomes of the map.
                let cut = self.core.version().buckets().is_some_and(|map| map.len() > 1);
                self.running.insert(job, Work::Flush { mem, out, cut });
                self.flushing.insert(job, mem);
            }
            Command::StartCompaction { job, spec, inputs, version } => {
                self.compactions += 1;
                let merged = self.merge(&inputs, &version);
                self.running.insert(job, Work::Compaction { out: spec.out, merged });
            }
            Command::Abort { job } => {
                self.aborts += 1;
                self.running.remove(&job);
                self.built.remove(&job);
            }
            Command::Commit { edits } => {
                assert!(self.writing.is_empty() && !edits.is_empty(), "one batch at a time");
                for NewEdit { edit, .. } in edits {
                    let mem = edit.job.and_then(|j| self.flushing.get(&j).copied());
                    edit.job.and_then(|j| self.built.remove(&j));
                    self.writing.push((mem, edit));
                }
            }
            Command::Discard { files } => {
                for file in files {
                    // Neither now nor after a crash does anything name it.
                    let is_named = |v: &Version| v.file(file).is_some();
                    assert!(!is_named(self.core.version()) && !is_named(&self.durable));
                    assert!(self.writing.iter().all(|(_, e)| e.adds.iter().all(|f| f.id != file)));
                    self.contents.remove(&file);
                }
            }
            Command::Install { flushed: Some(mem), .. } => {
                self.mems.retain(|m, _| *m > mem);
            }
            _ => {}
        }
    }

    /// All versions of a key but the newest go; so does a deletion under which nothing can lie.
    fn merge(&self, inputs: &[FileRef], version: &Version) -> Entries {
        std::array::from_fn(|key| {
            let all = inputs.iter().filter_map(|f| Some((self.contents[&f.id][key]?, f.pos)));
            let (entry, pos) = all.max_by_key(|e| e.0)?;
            let below = version.files().any(|f| {
                inputs.iter().all(|i| i.id != f.id)
                    && f.pos.is_older_than(pos)
                    && f.range.contains(&[key as u8], version.order())
            });
            (entry.1 || below).then_some(entry)
        })
    }

    fn file(&mut self, pos: Pos, entries: Entries) -> FileMeta {
        let id = FileId(self.next_file);
        self.next_file += 1;
        let lo = entries.iter().position(Option::is_some).unwrap() as u8;
        let hi = entries.iter().rposition(Option::is_some).unwrap() as u8;
        let mut f = FileMeta::new(id, pos, KeyRange::incl(&[lo][..], &[hi][..]));
        f.bytes = 100;
        f.entries = entries.iter().flatten().count() as u64;
        self.contents.insert(id, entries);
        f
    }

    fn build(&mut self, job: JobId) {
        let (out, entries, cut) = match self.running.remove(&job).unwrap() {
            Work::Flush { mem, out, cut } => (out, self.mems[&mem], cut),
            Work::Compaction { out, merged } => (out, merged, out.level > 0),
        };
        let (mut low, mut high) = (entries, [None; KEYS]);
        if cut {
            let (_, above) = low.split_at_mut(KEYS / 2);
            high[KEYS / 2..].swap_with_slice(above);
        }
        let parts = [low, high].into_iter().filter(|e| e.iter().any(Option::is_some));
        let adds: Vec<FileMeta> = parts.map(|e| self.file(out, e)).collect();
        self.built.insert(job, adds.iter().map(|f| f.id).collect());
        self.on(Event::Built { job, adds, flow: None });
    }

    fn freeze(&mut self, entries: Entries) {
        let mem = MemId(self.next_mem);
        self.next_mem += 1;
        self.mems.insert(mem, entries);
        self.on(Event::Frozen { mem, bytes: 100, written: 100, log_number: mem.0 + 1 });
    }

    /// Of the batch being written, a crash keeps any first part.
    fn crash(&mut self, kept: usize) {
        for (mem, edit) in std::mem::take(&mut self.writing).into_iter().take(kept) {
            self.durable = self.durable.apply(&edit).unwrap();
            self.mems.retain(|m, _| Some(*m) != mem);
        }
        self.running.clear();
        self.built.clear();
        self.flushing.clear();
        let newest = self.durable.level(0).runs().first().map_or(0, |r| r.pos.stratum.0);
        // The bucket map is gone with the rest: nothing ever wrote it.
        self.core = Core::new(Options::clone(&self.options), self.durable.clone(), newest + 1);
        // The logs give back what was not flushed, in order.
        for entries in std::mem::take(&mut self.mems).into_values() {
            self.freeze(entries);
        }
        self.on(Event::Tick);
    }

    fn buckets(&mut self, bounds: &[u8]) {
        self.core.force_buckets(BucketMap {
            epoch: 0,
            stats: vec![BucketStat::default(); bounds.len() + 1],
            bounds: bounds.iter().map(|b| (&[*b][..]).into()).collect(),
        });
        self.on(Event::Tick);
    }

    fn act(&mut self, action: Action) {
        match action {
            Action::Freeze => {
                let (lo, hi) = BATCHES[self.frozen];
                self.frozen += 1;
                let entry = (self.frozen as u8, self.frozen as u8 != DELETES);
                self.freeze(std::array::from_fn(|k| (lo..=hi).contains(&k).then_some(entry)));
            }
            Action::Built(job) => self.build(job),
            Action::Failed(job) => {
                self.done.failure = true;
                self.running.remove(&job);
                let error = Error::new(ErrorKind::Io, "cancelled, or the disk said no");
                self.on(Event::Failed { job, error });
                self.on(Event::Tick);
            }
            Action::Synced => {
                for (_, edit) in std::mem::take(&mut self.writing) {
                    self.durable = self.durable.apply(&edit).unwrap();
                }
                self.on(Event::EditSynced);
            }
            Action::Postponed => {
                self.done.failure = true;
                for (_, edit) in std::mem::take(&mut self.writing) {
                    let adds = edit.adds.iter().map(|f| f.id).collect();
                    self.built.insert(edit.job.expect("a job's edit"), adds);
                }
                let error = Error::new(ErrorKind::NoSpace, "full");
                self.on(Event::EditFailed { error });
                self.on(Event::Tick);
            }
            Action::Crash { kept } => {
                self.done.crash = true;
                // What comes up compacts again.
                self.done.resume |= self.done.pause;
                self.crash(kept);
            }
            Action::Split => {
                self.done.split = true;
                self.buckets(&[(KEYS / 2) as u8]);
            }
            Action::Merge => {
                self.done.merge = true;
                self.buckets(&[]);
            }
            Action::Pause => {
                self.done.pause = true;
                self.on(Event::AutoCompaction { on: false });
            }
            Action::Resume => {
                self.done.resume = true;
                self.on(Event::AutoCompaction { on: true });
            }
        }
    }

    fn actions(&self, bounds: Bounds) -> Vec<Action> {
        let mut all = Vec::new();
        let done = self.done;
        if self.frozen < bounds.memtables {
            all.push(Action::Freeze);
        }
        for &job in self.running.keys() {
            all.push(Action::Built(job));
            if !done.failure {
                all.push(Action::Failed(job));
            }
        }
        if !self.writing.is_empty() {
            all.push(Action::Synced);
            if !done.failure {
                all.push(Action::Postponed);
            }
        }
        if !done.crash && self.frozen > 0 {
            all.extend((0..=self.writing.len()).map(|kept| Action::Crash { kept }));
        }
        let once = [
            (!done.split, Action::Split),
            (done.split && !done.merge, Action::Merge),
            (!done.pause && self.frozen > 0, Action::Pause),
            (done.pause && !done.resume, Action::Resume),
        ];
        all.extend(once.into_iter().filter_map(|(may, action)| may.then_some(action)));
        all
    }

    fn get(&self, key: usize) -> Option<u8> {
        let name = [key as u8];
        let files = self.core.version().runs_covering(&name).map(|f| &self.contents[&f.id]);
        let newest = self.mems.values().rev().chain(files).find_map(|e| e[key]);
        newest.filter(|e| e.1).map(|e| e.0)
    }
    fn truth(&self, key: usize) -> Option<u8> {
        let newest = (1..=self.frozen).rev().find(|&n| {
            let (lo, hi) = BATCHES[n - 1];
            (lo..=hi).contains(&key)
        });
        newest.map(|n| n as u8).filter(|&n| n != DELETES)
    }

    fn check(&self) -> Result<(), String> {
        for key in 0..KEYS {
            let (got, want) = (self.get(key), self.truth(key));
            if got != want {
                return Err(format!("key {key}: got {got:?}, want {want:?}"));
            }
        }
        let version = self.core.version();
        check::all(version).map_err(|v| v.to_string())?;
        jobs_check(version, self.core.in_flight()).map_err(|v| v.to_string())?;
        match self.core.read_only() {
            Some(error) => Err(format!("writes ended: {error}")),
            None => Ok(()),
        }
    }

    /// Everything that the future depends on, but for the numbers of files, jobs and time.
    fn shape(&self) -> u64 {
        let h = &mut DefaultHasher::new();
        let place = |f: &FileMeta| (f.pos.level, f.pos.stratum.0, f.range.lo[0]);
        let version = self.core.version();
        for f in version.files() {
            (place(f), f.range.hi.key[0], self.contents[&f.id]).hash(h);
        }
        version.buckets().map(|map| map.len()).hash(h);
        let jobs = self.core.in_flight();
        let rank = |id: &JobId| jobs.iter().position(|j| j.id == *id);
        for j in jobs {
            let files = j.spec.inputs.iter().map(|&id| version.file(id));
            files.for_each(|f| f.map(|f| place(f)).hash(h));
            let out = (j.spec.out.level, j.spec.out.stratum.0);
            (j.spec.kind as u8, out, j.state as u8, self.contents_of(j.id)).hash(h);
            j.spec.after.iter().for_each(|id| rank(id).hash(h));
        }
        for (id, work) in &self.running {
            match work {
                Work::Flush { mem, out, cut } => {
                    (self.mems.get(mem), out.level, out.stratum.0, *cut).hash(h);
                }
                Work::Compaction { merged, .. } => (rank(id), merged).hash(h),
            }
        }
        for (id, mem) in &self.flushing {
            (self.mems.get(mem), self.contents_of(*id)).hash(h);
        }
        for (mem, edit) in &self.writing {
            let job = edit.job.and_then(|id| rank(&id));
            (job, edit.deletes.len(), edit.bucket_hint.is_some(), mem.is_some()).hash(h);
            edit.adds.iter().for_each(|f| (place(f), self.contents[&f.id]).hash(h));
        }
        self.mems.values().for_each(|m| m.hash(h));
        (self.frozen, self.compactions, self.done).hash(h);
        h.finish()
    }
    /// What a job has built and not committed.
    fn contents_of(&self, job: JobId) -> Option<Vec<Entries>> {
        let files = self.built.get(&job)?;
        Some(files.iter().map(|id| self.contents[id]).collect())
    }
}

/// The way to a state, backwards.
struct Way {
    action: Action,
    before: Option<Rc<Way>>,
}

fn story(mut way: Option<&Rc<Way>>) -> Vec<Action> {
    let mut actions = Vec::new();
    while let Some(w) = way {
        actions.push(w.action);
        way = w.before.as_ref();
    }
    actions.reverse();
    actions
}

/// What was seen.
#[derive(Default)]
struct Seen {
    states: HashSet<u64>,
    kinds: BTreeSet<Kind>,
    /// States with an after-edge.
    edges: usize,
    /// States in which a job had been taken out with the one it followed.
    aborts: usize,
}

/// How much happens in a life.
#[derive(Clone, Copy)]
struct Bounds {
    compactions: usize,
    memtables: usize,
}

/// Visits every state within the bounds.
fn visit(options: &Options, bounds: Bounds) -> Seen {
    let mut seen = Seen::default();
    let mut todo: Vec<(World, Option<Rc<Way>>)> = vec![(World::new(options), None)];
    while let Some((world, way)) = todo.pop() {
        if world.compactions > bounds.compactions || !seen.states.insert(world.shape()) {
            continue;
        }
        if let Err(e) = world.check() {
            panic!("{e}\nafter {:?}\n{:?}", story(way.as_ref()), world.core.version());
        }
        let jobs = world.core.in_flight();
        seen.kinds.extend(jobs.iter().map(|j| j.spec.kind));
        seen.edges += usize::from(jobs.iter().any(|j| !j.spec.after.is_empty()));
        seen.aborts += usize::from(world.aborts > 0);
        for action in world.actions(bounds) {
            let mut next = world.clone();
            next.act(action);
            todo.push((next, Some(Rc::new(Way { action, before: way.clone() }))));
        }
    }
    seen
}

/// Every level is over target at once, so that whatever may go down does.
fn options(policy: PolicyKind) -> Options {
    let plan = PlanOptions {
        levels: 3,
        l0_trigger: 1,
        tiered_runs: 2,
        level_base_bytes: 1,
        multiplier: 2,
        file_bytes: 100,
        max_memtables: 9,
        dynamic_levels: false,
        df_when: DfWhen::Always,
        df_max_depth: 8,
        df_extra_percent: u32::MAX,
        ..PlanOptions::preset(policy)
    };
    Options { plan, compaction_slots: 3, flush_slots: 2, delayed_write_rate: 1 << 20 }
}

#[test]
fn every_order_of_events_reads_right() {
    let most = std::env::var("EVERY_ORDER").map_or(2, |n| n.parse().expect("a number"));
    let only = std::env::var("EVERY_POLICY").unwrap_or_default();
    let (mut edges, mut aborts) = (0, 0);
    for policy in PolicyKind::ALL.into_iter().filter(|p| p.name().starts_with(&only)) {
        let begin = Instant::now();
        let bounds = Bounds {
            compactions: most,
            memtables: (most + usize::from(policy.is_tiered())).min(BATCHES.len()),
        };
        let seen = visit(&options(policy), bounds);
        println!(
            "{}: {} states in {:.1} s, {} with after-edges, {} after jobs were taken along, {:?}",
            policy.name(),
            seen.states.len(),
            begin.elapsed().as_secs_f64(),
            seen.edges,
            seen.aborts,
            seen.kinds
        );
        assert!(seen.states.len() > 1000, "only {} states", seen.states.len());
        edges += seen.edges;
        aborts += seen.aborts;
    }
    assert!(edges > 0 || !only.is_empty(), "no job ever followed another");
    assert!(aborts > 0 || !only.is_empty(), "no job was ever taken along");
}
