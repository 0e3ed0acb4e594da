//! Every order of events in small lives: memtables freeze, jobs are built, fail, commit or are
//! postponed, the process crashes before or after an edit is durable, and flushes begin to be cut.
//! After every event every key is read, and the invariants of the tree and of the jobs must hold.
//!
//! States that look alike are visited once. `EVERY_ORDER=n` looks at lives with `n` memtables and
//! `n` compactions (2 if not set; 3 takes ten seconds, 4 some minutes), `EVERY_POLICY=name` at one policy.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use lithify_base::{Error, ErrorKind, FileId, JobId, KeyRange, Pos, bytewise};
use lithify_control::{Command, Core, Event, MemId, Options};
use lithify_lsm::{Edit, FileMeta, FileRef, Version, check};
use lithify_plan::{DfWhen, Kind, PlanOptions, PolicyKind, check::jobs as jobs_check};

/// Keys of the world.
const KEYS: u8 = 4;
/// What the memtables write, in order: first and last key. The third deletes.
const BATCHES: [(u8, u8); 5] = [(0, 3), (1, 2), (0, 1), (2, 3), (0, 3)];
const DELETES: usize = 3;

/// Sequence number, and whether it is a value or a deletion.
type Entry = (u64, bool);
type Entries = BTreeMap<u8, Entry>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    Freeze,
    Built(JobId),
    Failed(JobId),
    Synced,
    Postponed,
    /// The edit being written, if any, is durable or not.
    Crash {
        durable: bool,
    },
    /// Flushes are cut in the middle from now on.
    Split,
}

enum Work {
    Flush { mem: MemId, out: Pos },
    Compaction { out: Pos, merged: Entries },
}

struct World {
    options: Options,
    core: Core,
    now: u64,
    next_file: u64,
    contents: BTreeMap<FileId, Entries>,
    running: BTreeMap<JobId, Work>,
    /// The edit being written, with the memtable it flushes.
    writing: Option<(Edit, Option<MemId>)>,
    flushing: BTreeMap<JobId, MemId>,
    /// What recovery would find.
    durable: Version,
    mems: BTreeMap<MemId, Entries>,
    next_mem: u64,
    frozen: usize,
    compactions: usize,
    failures: usize,
    crashed: bool,
    split: bool,
}

impl World {
    fn new(options: &Options) -> World {
        let empty = Version::empty(bytewise());
        World {
            options: options.clone(),
            core: Core::new(options.clone(), empty.clone(), 1),
            now: 0,
            next_file: 1,
            contents: BTreeMap::new(),
            running: BTreeMap::new(),
            writing: None,
            flushing: BTreeMap::new(),
            durable: empty,
            mems: BTreeMap::new(),
            next_mem: 1,
            frozen: 0,
            compactions: 0,
            failures: 0,
            crashed: false,
            split: false,
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
                self.running.insert(job, Work::Flush { mem, out });
                self.flushing.insert(job, mem);
            }
            Command::StartCompaction { job, spec, inputs, version } => {
                self.compactions += 1;
                let merged = self.merge(&inputs, &version);
                self.running.insert(job, Work::Compaction { out: spec.out, merged });
            }
            Command::Abort { job } => {
                self.running.remove(&job);
            }
            Command::Commit { edit, .. } => {
                let mem = edit.job.and_then(|j| self.flushing.get(&j).copied());
                assert!(self.writing.is_none(), "one edit at a time");
                self.writing = Some((*edit, mem));
            }
            Command::Install { flushed: Some(mem), .. } => {
                self.mems.remove(&mem);
            }
            _ => {}
        }
    }

    /// All versions of a key but the newest go; so does a deletion under which nothing can lie.
    fn merge(&self, inputs: &[FileRef], version: &Version) -> Entries {
        let mut merged = Entries::new();
        for key in 0..KEYS {
            let all = inputs.iter().filter_map(|f| Some((*self.contents[&f.id].get(&key)?, f.pos)));
            let Some((entry, pos)) = all.max_by_key(|e| e.0) else { continue };
            let below = version.files().any(|f| {
                inputs.iter().all(|i| i.id != f.id)
                    && f.pos.is_older_than(pos)
                    && f.range.contains(&[key], version.order())
            });
            if entry.1 || below {
                merged.insert(key, entry);
            }
        }
        merged
    }

    fn file(&mut self, pos: Pos, entries: Entries) -> FileMeta {
        let id = FileId(self.next_file);
        self.next_file += 1;
        let (lo, hi) = (*entries.keys().next().unwrap(), *entries.keys().next_back().unwrap());
        let mut f = FileMeta::new(id, pos, KeyRange::incl(&[lo][..], &[hi][..]));
        f.bytes = 100;
        f.entries = entries.len() as u64;
        self.contents.insert(id, entries);
        f
    }

    fn build(&mut self, job: JobId) {
        let (out, entries, cut) = match self.running.remove(&job).unwrap() {
            Work::Flush { mem, out } => (out, self.mems[&mem].clone(), self.split),
            Work::Compaction { out, merged } => (out, merged, out.level > 0),
        };
        let mut low = entries;
        let high = if cut { low.split_off(&(KEYS / 2)) } else { Entries::new() };
        let parts = [low, high].into_iter().filter(|e| !e.is_empty());
        let adds = parts.map(|e| self.file(out, e)).collect();
        self.on(Event::Built { job, adds, flow: None });
    }

    fn freeze(&mut self, entries: Entries) {
        let mem = MemId(self.next_mem);
        self.next_mem += 1;
        self.mems.insert(mem, entries);
        self.on(Event::Frozen { mem, bytes: 100, log_number: mem.0 + 1 });
    }

    fn crash(&mut self, durable: bool) {
        if let Some((edit, mem)) = self.writing.take()
            && durable
        {
            self.durable = self.durable.apply(&edit).unwrap();
            self.mems.retain(|m, _| Some(*m) != mem);
        }
        self.crashed = true;
        self.running.clear();
        self.flushing.clear();
        let newest = self.durable.level(0).runs().first().map_or(0, |r| r.pos.stratum.0);
        self.core = Core::new(self.options.clone(), self.durable.clone(), newest + 1);
        // The logs give back what was not flushed, in order.
        for entries in std::mem::take(&mut self.mems).into_values() {
            self.freeze(entries);
        }
        self.on(Event::Tick);
    }

    fn act(&mut self, action: Action) {
        match action {
            Action::Freeze => {
                let (lo, hi) = BATCHES[self.frozen];
                self.frozen += 1;
                let entry = (self.frozen as u64, self.frozen != DELETES);
                self.freeze((lo..=hi).map(|k| (k, entry)).collect());
            }
            Action::Built(job) => self.build(job),
            Action::Failed(job) => {
                self.failures += 1;
                self.running.remove(&job);
                let error = Error::new(ErrorKind::Io, "cancelled, or the disk said no");
                self.on(Event::Failed { job, error });
                self.on(Event::Tick);
            }
            Action::Synced => {
                let (edit, _) = self.writing.take().unwrap();
                self.durable = self.durable.apply(&edit).unwrap();
                self.on(Event::EditSynced);
            }
            Action::Postponed => {
                self.failures += 1;
                self.writing = None;
                let error = Error::new(ErrorKind::NoSpace, "full");
                self.on(Event::EditFailed { error });
                self.on(Event::Tick);
            }
            Action::Crash { durable } => self.crash(durable),
            Action::Split => self.split = true,
        }
    }

    fn actions(&self, most: usize) -> Vec<Action> {
        let mut all = Vec::new();
        if self.frozen < most.min(BATCHES.len()) {
            all.push(Action::Freeze);
        }
        for &job in self.running.keys() {
            all.push(Action::Built(job));
            if self.failures == 0 {
                all.push(Action::Failed(job));
            }
        }
        if self.writing.is_some() {
            all.push(Action::Synced);
            if self.failures == 0 {
                all.push(Action::Postponed);
            }
        }
        if !self.crashed && self.frozen > 1 {
            all.push(Action::Crash { durable: false });
            if self.writing.is_some() {
                all.push(Action::Crash { durable: true });
            }
        }
        if !self.split && self.frozen == 1 {
            all.push(Action::Split);
        }
        all
    }

    fn get(&self, key: u8) -> Option<u64> {
        let files = self.core.version().runs_covering(std::slice::from_ref(&key));
        let files = files.map(|f| &self.contents[&f.id]);
        let newest = self.mems.values().rev().chain(files).find_map(|e| e.get(&key));
        newest.filter(|e| e.1).map(|e| e.0)
    }
    fn truth(&self, key: u8) -> Option<u64> {
        let newest = (1..=self.frozen).rev().find(|&n| {
            let (lo, hi) = BATCHES[n - 1];
            (lo..=hi).contains(&key)
        });
        newest.filter(|&n| n != DELETES).map(|n| n as u64)
    }

    fn check(&self) -> Result<(), String> {
        for key in 0..KEYS {
            let (got, want) = (self.get(key), self.truth(key));
            if got != want {
                return Err(format!("key {key}: got {got:?}, want {want:?}"));
            }
        }
        let version = self.core.version();
        let order = self.options.plan.commit_order;
        check::all(version).map_err(|v| v.to_string())?;
        jobs_check(version, self.core.in_flight(), order).map_err(|v| v.to_string())?;
        match self.core.read_only() {
            Some(error) => Err(format!("writes ended: {error}")),
            None => Ok(()),
        }
    }

    /// Everything that the future depends on, but for the numbers of files, jobs and time.
    fn shape(&self) -> String {
        let version = self.core.version();
        let name = |f: &FileMeta| {
            format!("{}{}-{:?}{:?}", f.pos, f.range.lo[0], f.range.hi, self.contents[&f.id])
        };
        let mut s: String = version.files().map(|f| name(f) + ";").collect();
        let jobs = self.core.in_flight();
        let rank = |id: &JobId| jobs.iter().position(|j| j.id == *id);
        for j in jobs {
            let spec = &j.spec;
            let files = spec.inputs.iter().map(|&id| version.file(id));
            let inputs: Vec<_> = files.map(|f| f.map(|f| name(f))).collect();
            let after: Vec<_> = spec.after.iter().map(rank).collect();
            let _ = write!(s, "{:?}{inputs:?}{}{after:?}{:?};", spec.kind, spec.out, j.state);
        }
        for work in self.running.values() {
            let _ = match work {
                Work::Flush { mem, out } => write!(s, "f{out}{:?};", self.mems.get(mem)),
                Work::Compaction { merged, .. } => write!(s, "c{merged:?};"),
            };
        }
        let writing = self.writing.as_ref().map(|(e, m)| {
            let adds: Vec<String> = e.adds.iter().map(name).collect();
            (adds, e.deletes.len(), m.is_some())
        });
        let counts = (self.frozen, self.compactions, self.failures, self.crashed, self.split);
        let mems: Vec<_> = self.mems.values().collect();
        let _ = write!(s, "{writing:?}{mems:?}{counts:?}");
        s
    }
}

/// FNV-1a.
fn hash(text: &str) -> u64 {
    let step = |h: u64, b: u8| (h ^ u64::from(b)).wrapping_mul(0x100_0000_01b3);
    text.bytes().fold(0xcbf2_9ce4_8422_2325, step)
}

/// Visits every state within the bounds; the number of states, the kinds of jobs seen, and the
/// number of states with an after-edge.
fn visit(options: &Options, most: usize) -> (usize, BTreeSet<Kind>, usize) {
    let (mut seen, mut kinds, mut edges) = (BTreeSet::new(), BTreeSet::new(), 0);
    let mut todo: Vec<Vec<Action>> = vec![Vec::new()];
    while let Some(path) = todo.pop() {
        let mut world = World::new(options);
        path.iter().for_each(|&action| world.act(action));
        if let Err(e) = world.check() {
            panic!("{e}\nafter {path:?}\n{:?}", world.core.version());
        }
        if world.compactions > most || !seen.insert(hash(&world.shape())) {
            continue;
        }
        let jobs = world.core.in_flight();
        kinds.extend(jobs.iter().map(|j| j.spec.kind));
        edges += usize::from(jobs.iter().any(|j| !j.spec.after.is_empty()));
        for action in world.actions(most) {
            todo.push(path.iter().copied().chain([action]).collect());
        }
    }
    (seen.len(), kinds, edges)
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
    let mut total_edges = 0;
    let only = std::env::var("EVERY_POLICY").unwrap_or_default();
    for policy in PolicyKind::ALL.into_iter().filter(|p| p.name().starts_with(&only)) {
        let (states, kinds, edges) = visit(&options(policy), most);
        println!("{}: {states} states, {edges} with after-edges, {kinds:?}", policy.name());
        assert!(states > 100, "only {states} states of {}", policy.name());
        total_edges += edges;
    }
    assert!(total_edges > 0 || !only.is_empty(), "no job ever followed another");
}
