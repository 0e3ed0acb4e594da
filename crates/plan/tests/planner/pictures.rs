//! Planner tests as pictures: each file in `pictures/` is a small world with its story. `REWRITE=1`
//! rewrites what is expected.
//!
//! | command | does | answers |
//! |---|---|---|
//! | `define key=value..` + picture + `job` lines | starts a new world | the picture |
//! | `set key=value..` | changes settings | |
//! | `plan` | asks the planner, changes nothing | its jobs |
//! | `issue` | takes what the planner wants | its jobs |
//! | `issue`, `admit` + wish lines | admits wishes (and takes them) | after-edges or rejection |
//! | `finish N` | job N is built | commits it and all that waited for it |
//! | `commit N` + picture of its files | the same, cut as drawn | |
//! | `fail N` | job N fails | the jobs aborted with it |
//! | `flush` + files | a new newest run of L0 | |
//! | `picture`, `cuts N`, `get KEY`, `score`, `stall`, `check` | | what they say |
//! | `needs`, `explain` | | need and rank of levels; what is wanted and blocked, and why |
//! | `built N` | job N is built, and waits | |
//! | `buckets [KEY.. \| create \| adapt]` | sets, makes or adapts the bucket map | the map |
//! | `flowed [times=N] [epoch=N]` + lines of bytes and keys | a flush reports | the map |
//! | `place LO HI` | | where files from outside go |
//! | `compact [LO HI] [max=..]` | sets (or with `off` clears) the user's request | |
//!
//! A wish is `Down L1.0[a..m] L2.0[a..f] -> L2.0`; `-> L2.+` stacks on top; a `job N` line in a
//! definition is a wish in flight already.

use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;

use lithify_base::{CfId, FileId, JobId, KeyRange, MAX_LEVELS, Pos, bytewise};
use lithify_lsm::{BucketMap, BucketStat, Edit, FileMeta, Version, Violation, check, picture};
use lithify_plan::check::jobs as jobs_check;
use lithify_plan::spec::Bounds;
use lithify_plan::{
    BucketFlow, Candidate, CompactionPri, Cost, CutPolicy, DfWhen, FlushReport, InFlight, JobSpec,
    JobState, Kind, Limits, Load, ManualRequest, MemState, Placement, PlanOptions, PolicyKind,
    Prio, Reason, Targets, View, adapt, admit, cursor_after, explain, inherited, is_settled, place,
    plan, policies, score, stall_while, validate_commit,
};
use lithify_testkit::datadriven::{self, Case};

struct World {
    version: Version,
    options: PlanOptions,
    mem: MemState,
    slots: usize,
    disk: u64,
    /// Bytes that the disk has free where a budget leaves fewer.
    real_disk: Option<u64>,
    short: bool,
    file_bytes: u64,
    flight: Vec<InFlight>,
    request: Option<ManualRequest>,
    now: u64,
    load: Load,
    /// When files are made.
    created: u64,
    /// Files of flushes have many deletions.
    marked: bool,
    done: Option<Arc<JobSpec>>,
    next_file: u64,
    next_job: u64,
    stratum: u32,
}

impl World {
    fn new() -> World {
        World {
            version: Version::empty(bytewise()),
            options: PlanOptions { dynamic_levels: false, ..PlanOptions::default() },
            mem: MemState::default(),
            slots: 1,
            disk: u64::MAX,
            real_disk: None,
            short: false,
            file_bytes: 64 << 20,
            flight: Vec::new(),
            request: None,
            now: 0,
            load: Load::default(),
            created: 0,
            marked: false,
            done: None,
            next_file: 1,
            next_job: 1,
            stratum: 0,
        }
    }

    fn view(&self) -> View<'_> {
        let limits = Limits {
            slots_free: self.slots.saturating_sub(self.flight.len()),
            disk_free: self.disk,
            disk: self.real_disk.unwrap_or(self.disk),
            short: self.short,
            next_job: JobId(self.next_job),
        };
        View::new(&self.version, &self.flight, &self.mem, &self.options, limits)
            .with_manual(self.request.as_ref())
            .under(self.load)
            .at(self.now)
    }

    fn set(&mut self, case: &Case) {
        for (key, value) in &case.pairs {
            let n = || picture::parse_bytes(value).unwrap_or_else(|| panic!("{key}={value}"));
            let o = &mut self.options;
            match key.as_str() {
                "policy" => {
                    let named = PolicyKind::from_name(value);
                    o.policy = named.unwrap_or_else(|| panic!("policy {value}"));
                }
                "pri" => {
                    let named = CompactionPri::from_name(value);
                    o.pri = named.unwrap_or_else(|| panic!("pri {value}"));
                }
                "df.when" => {
                    o.df_when = if value == "always" { DfWhen::Always } else { DfWhen::Pressure }
                }
                "df.depth" => o.df_max_depth = n() as u32,
                "df.extra" => o.df_extra_percent = n() as u32,
                "read-amp" => o.max_read_amp = n() as u32,
                "waiting" => o.max_waiting_jobs = n() as u32,
                "runs" => o.tiered_runs = n() as u32,
                "amp" => o.size_amp_percent = n() as u32,
                "ratio" => o.universal_size_ratio = n() as u32,
                "min-width" => o.universal_min_merge_width = n() as u32,
                "max-width" => o.universal_max_merge_width = n() as u32,
                "incremental" => o.universal_incremental = value == "on",
                "fifo.max" => o.fifo_max_bytes = n(),
                "fifo.merge" => o.fifo_allow_compaction = value == "on",
                "ttl" => o.ttl_seconds = n(),
                "period" => o.periodic_seconds = n(),
                "space" => o.max_space_amp_percent = n() as u32,
                "marked" => self.marked = value == "on",
                "now" => self.now = n(),
                "price" => (self.load.price, self.load.written) = (n() as u32, n() > 0),
                "useful" => self.load.useful = n() as u32,
                "created" => self.created = n(),
                "stall.compacting" => o.stall_counts_compacting = value == "on",
                "by-bytes" => o.buckets.by_bytes = value == "on",
                "only-empty" => o.buckets.only_when_empty = value == "on",
                "initial" => o.buckets.initial = n() as u32,
                "buckets.useful" => o.buckets.useful = n() as u32,
                "window" => o.buckets.window = n() as u32,
                "min-bucket" => o.buckets.min_file_bytes = n(),
                "l0.trigger" => o.l0_trigger = n() as u32,
                "subcompactions" => o.max_subcompactions = n() as u32,
                "l0.slowdown" => o.l0_slowdown = n() as u32,
                "l0.stop" => o.l0_stop = n() as u32,
                "levels" => o.levels = n() as u8,
                "base" => o.level_base_bytes = n(),
                "multiplier" => o.multiplier = n() as u32,
                "target" => o.file_bytes = n(),
                "max" => o.max_compaction_bytes = n(),
                "dynamic" => o.dynamic_levels = value == "on",
                "auto" => o.disable_auto = value == "off",
                "memtables" => o.max_memtables = n() as u32,
                "memtable" => o.memtable_bytes = n(),
                "soft" => o.soft_debt = n(),
                "hard" => o.hard_debt = n(),
                "cursor" => {
                    let cursors = vec![(1, value.as_bytes().into())];
                    let edit = Edit { cursors, ..Edit::new(CfId(0)) };
                    self.version = self.version.apply(&edit).unwrap();
                }
                "frozen" => self.mem.frozen = n() as u32,
                "slots" => self.slots = n() as usize,
                "disk" => self.disk = n(),
                "disk.real" => self.real_disk = Some(n()),
                "short" => self.short = value == "on",
                "file" => self.file_bytes = n(),
                other => panic!("line {}: no setting {other}", case.line),
            }
        }
    }

    fn define(&mut self, case: &Case) -> String {
        *self = World::new();
        self.set(case);
        let lines = case.lines();
        let (jobs, rows): (Vec<&str>, Vec<&str>) =
            lines.into_iter().partition(|l| l.starts_with("job "));
        let drawn = picture::parse(&rows, self.file_bytes).unwrap();
        self.version = self.version.apply(&drawn.edit()).unwrap();
        self.next_file = drawn.files.len() as u64 + 1;
        self.stratum = drawn
            .files
            .iter()
            .filter(|f| f.pos.level == 0)
            .map(|f| f.pos.stratum.0)
            .max()
            .unwrap_or(0);
        for line in jobs {
            let (number, wish) = line[4..].split_once(' ').unwrap();
            self.next_job = number.parse().unwrap();
            let answer = self.issue_wish(wish);
            assert!(!answer.contains("rejected"), "{answer}");
        }
        let held: Vec<FileId> = self.flight.iter().flat_map(|j| j.spec.inputs.clone()).collect();
        for id in &drawn.locked {
            assert!(held.contains(id), "file {id} is drawn locked, but no job holds it");
        }
        self.picture()
    }

    fn wish(&self, text: &str) -> Candidate {
        let mut words = text.split_whitespace();
        let kind = match words.next().unwrap() {
            "Down" => Kind::Down,
            "Df" => Kind::Df,
            "IntraDf" => Kind::IntraDf,
            "IntraLevel" => Kind::IntraLevel,
            "IntraL0" => Kind::IntraL0,
            "L0Bucket" => Kind::L0Bucket,
            "Tier" => Kind::Tier,
            "Move" => Kind::Move,
            "Drop" => Kind::Drop,
            "Upkeep" => Kind::Upkeep,
            "Manual" => Kind::Manual,
            other => panic!("kind {other}"),
        };
        let mut inputs = Vec::new();
        for word in words.by_ref().take_while(|w| *w != "->") {
            let (pos, bounds) = word.split_once('[').unwrap();
            let (lo, hi) = bounds.trim_end_matches([']', ')']).split_once("..").unwrap();
            let pos = picture::parse_pos(pos).unwrap();
            let run = self.version.run(pos).unwrap_or_else(|| panic!("no run at {pos}"));
            let same = |f: &&Arc<FileMeta>| {
                &f.range.lo[..] == lo.as_bytes() && &f.range.hi.key[..] == hi.as_bytes()
            };
            inputs
                .push(run.files().iter().find(same).unwrap_or_else(|| panic!("no {word}")).clone());
        }
        let out = words.next().unwrap();
        let said = Reason::Said("a wish".into());
        match out.strip_suffix(".+") {
            Some(level) => Candidate::stack(kind, inputs, level[1..].parse().unwrap(), said),
            None => Candidate::merge(kind, inputs, picture::parse_pos(out).unwrap(), said),
        }
    }

    fn admit_wish(&self, text: &str) -> Result<JobSpec, String> {
        let wish = self.wish(text);
        let admitted = admit(&self.view(), &wish).map_err(|r| format!("rejected: {r}"))?;
        Ok(JobSpec {
            kind: wish.kind,
            inputs: wish.inputs.iter().map(|f| f.id).collect(),
            out: admitted.out,
            hull: admitted.hull,
            cuts: CutPolicy::default(),
            after: admitted.after,
            prio: Prio::Normal,
            est: Cost::default(),
            reason: wish.reason,
        })
    }

    fn issue_wish(&mut self, text: &str) -> String {
        match self.admit_wish(text) {
            Ok(spec) => {
                let line = format!("job {} {}\n", self.next_job, spec.describe(&self.version));
                self.take(spec);
                line
            }
            Err(e) => e + "\n",
        }
    }

    fn take(&mut self, spec: JobSpec) {
        let id = JobId(self.next_job);
        self.next_job += 1;
        self.flight.push(InFlight { id, spec: spec.into(), state: JobState::Running });
        check::inputs_are_disjoint(self.flight.iter().map(|j| &j.spec.inputs[..])).unwrap();
    }

    fn planned(&self) -> (Vec<JobSpec>, String) {
        let specs = plan(&self.view(), &policies(self.options.policy));
        let mut out = String::new();
        for (i, spec) in specs.iter().enumerate() {
            let n = self.next_job + i as u64;
            let _ =
                writeln!(out, "job {n} {}\n  why: {}", spec.describe(&self.version), spec.reason);
        }
        (specs, if out.is_empty() { "nothing\n".into() } else { out })
    }

    /// Files a job leaves if the case does not say: its inputs when moved, else one over its hull.
    fn outputs(&self, spec: &JobSpec) -> Vec<FileMeta> {
        let inputs: Vec<_> = spec.inputs.iter().map(|&id| self.version.file(id).unwrap()).collect();
        if spec.kind == Kind::Drop {
            return Vec::new();
        }
        if spec.kind == Kind::Move {
            return inputs.iter().map(|f| f.moved(spec.out)).collect();
        }
        let mut f = FileMeta::new(FileId(0), spec.out, spec.hull.clone());
        f.bytes = inputs.iter().map(|f| f.bytes).sum();
        f.entries = inputs.iter().map(|f| f.entries).sum();
        f.created = self.now;
        let born = inputs.iter().map(|f| f.oldest_ancestor).filter(|&t| t > 0);
        f.oldest_ancestor = born.min().unwrap_or(self.now);
        let seqs = inputs.iter().map(|f| f.seqs);
        f.seqs = seqs.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1))).unwrap();
        vec![f]
    }

    fn drawn_outputs(&self, spec: &JobSpec, case: &Case) -> Vec<FileMeta> {
        let mut all = Vec::new();
        for word in case.body.iter().flat_map(|l| l.split_whitespace()) {
            let (range, _, bytes) = picture::parse_file(word).unwrap();
            let mut f = FileMeta::new(FileId(0), spec.out, range);
            f.bytes = bytes.unwrap_or(self.file_bytes);
            all.push(f);
        }
        all
    }

    fn finish(&mut self, case: &Case) -> String {
        let id = number(case);
        let Some(job) = self.flight.iter_mut().find(|j| j.id == id) else { return "no job".into() };
        job.state = JobState::WaitDeps;
        let mut out = String::new();
        let mut again = true;
        while std::mem::take(&mut again) {
            for i in 0..self.flight.len() {
                let job = self.flight[i].clone();
                let waits: Vec<_> = self
                    .flight
                    .iter()
                    .map(|j| j.id)
                    .filter(|k| job.spec.after.contains(k))
                    .collect();
                if job.state != JobState::WaitDeps {
                    continue;
                }
                if let Some(k) = waits.first() {
                    if job.id == id {
                        let _ = writeln!(out, "job {id} waits for job {k}");
                    }
                    continue;
                }
                let outputs = match case.body.is_empty() || job.id != id {
                    true => self.outputs(&job.spec),
                    false => self.drawn_outputs(&job.spec, case),
                };
                self.commit(i, outputs).unwrap();
                let _ = writeln!(out, "job {} committed", job.id);
                again = true;
                break;
            }
        }
        out + &self.picture()
    }

    fn commit(&mut self, at: usize, outputs: Vec<FileMeta>) -> Result<(), Violation> {
        let job = self.flight[at].clone();
        validate_commit(&self.version, &job.spec)?;
        let mut edit = Edit { job: Some(job.id), ..Edit::new(CfId(0)) };
        for id in &job.spec.inputs {
            edit.deletes.push((self.version.file(*id).unwrap().pos, *id));
        }
        for mut f in outputs {
            if f.id == FileId(0) {
                f.id = FileId(self.next_file);
                self.next_file += 1;
            }
            edit.adds.push(f);
        }
        edit.cursors.extend(cursor_after(&self.version, &self.options, &job.spec));
        self.version = self.version.apply(&edit)?;
        self.flight.remove(at);
        self.done = Some(job.spec.clone());
        check::all(&self.version)
    }

    fn fail(&mut self, case: &Case) -> String {
        let (mut dead, mut out) = (vec![number(case)], String::new());
        while let Some(id) = dead.pop() {
            self.flight.retain(|j| j.id != id);
            let _ = writeln!(out, "job {id} aborted");
            dead.extend(self.flight.iter().filter(|j| j.spec.after.contains(&id)).map(|j| j.id));
        }
        out
    }

    fn flush(&mut self, case: &Case) -> String {
        for line in &case.body {
            self.stratum += 1;
            let mut edit = Edit { job: Some(JobId(0)), ..Edit::new(CfId(0)) };
            for word in line.split_whitespace() {
                let (range, _, bytes) = picture::parse_file(word).unwrap();
                let mut f = FileMeta::new(FileId(self.next_file), Pos::new(0, self.stratum), range);
                f.bytes = bytes.unwrap_or(self.file_bytes);
                (f.created, f.oldest_ancestor) = (self.created, self.created);
                f.marked = self.marked;
                f.seqs = (1000 + u64::from(self.stratum), 1000 + u64::from(self.stratum));
                self.next_file += 1;
                edit.adds.push(f);
            }
            self.version = self.version.apply(&edit).unwrap();
        }
        self.picture()
    }

    fn picture(&self) -> String {
        let held: Vec<FileId> = self.flight.iter().flat_map(|j| j.spec.inputs.clone()).collect();
        picture::print_bare(&self.version, |id| held.contains(&id))
    }

    fn compact(&mut self, case: &Case) -> String {
        let range = match &case.words[..] {
            [off] if off == "off" => {
                self.request = None;
                return String::new();
            }
            [lo, hi] => Some(KeyRange::incl(lo.as_bytes(), hi.as_bytes())),
            _ => None,
        };
        let mut request = ManualRequest::new(range);
        let number = |key| case.value(key).map(|v| v.parse::<u64>().unwrap());
        request.up_to = number("up-to");
        request.before = number("before").map(FileId);
        request.rewrite_before = number("rewrite").map(FileId);
        if let Some(max) = case.value("max") {
            request.max_job_bytes = picture::parse_bytes(max).unwrap();
        }
        let settled = is_settled(&self.version, &self.options, &request);
        self.request = Some(request);
        if settled { "settled".into() } else { "wanted".into() }
    }

    fn score(&self) -> String {
        let view = self.view();
        let mut out = String::new();
        for (level, score) in score::ranked(&view) {
            let _ = writeln!(out, "L{level} {score}");
        }
        let targets = Targets::of(&self.version, &self.options);
        let _ = write!(out, "base L{}", targets.base);
        for l in targets.base..self.options.levels {
            let _ = write!(
                out,
                "  L{l} {}",
                match targets.bytes(l) {
                    u64::MAX => "any".into(),
                    n => picture::readable(n),
                }
            );
        }
        let debt = picture::readable(score::debt(&self.version, &self.options));
        out + &format!("\ndebt {debt}")
    }

    fn get(&self, case: &Case) -> String {
        let files = self.version.runs_covering(case.words[0].as_bytes());
        let all: Vec<String> = files.map(|f| format!("{}{}", f.pos, Bounds(&f.range))).collect();
        if all.is_empty() { "nowhere".into() } else { all.join(" ") }
    }

    fn cuts(&self, case: &Case) -> String {
        let job = self.flight.iter().find(|j| j.id == number(case)).unwrap();
        let keys = |k: &[lithify_base::Key]| {
            k.iter().map(|k| k.escape_ascii().to_string()).collect::<Vec<_>>().join(" ")
        };
        let cuts = &job.spec.cuts;
        let soft_min = picture::readable(cuts.soft_min_bytes);
        format!("soft {} (from {soft_min})\nhard {}", keys(&cuts.soft), keys(&cuts.hard))
    }

    fn explain(&self) -> String {
        let all = explain(&self.view(), &policies(self.options.policy));
        let mut out: Vec<String> = all.iter().map(|b| format!("{b}\n")).collect();
        out.dedup();
        for (job, prio) in inherited(&self.flight, &all) {
            out.push(format!("job {job} is now {prio:?}\n"));
        }
        if out.is_empty() { "nothing is blocked".into() } else { out.concat() }
    }

    /// `buckets g p` gives the tree a map; `buckets` alone shows it, `buckets create` makes one.
    fn buckets(&mut self, case: &Case) -> String {
        let bounds: Vec<lithify_base::Key> =
            case.words.iter().map(|w| w.as_bytes().into()).collect();
        let window = self.options.buckets.window;
        match case.words.first().map(String::as_str) {
            None => {}
            Some("create") => {
                let sample = case.body.iter().flat_map(|l| l.split_whitespace());
                let sample: Vec<_> = sample.map(|k| (k.as_bytes().into(), 1)).collect();
                self.install(adapt::create(&self.version, &self.options, &sample));
            }
            Some("adapt") => {
                let map = self.version.buckets().unwrap();
                let done = self.done.as_deref();
                let Some(next) = adapt::adapt(map, &self.version, done, &self.options) else {
                    return "no change".into();
                };
                adapt::keeps_flow(map, &next).unwrap();
                self.install(next);
            }
            Some(_) => {
                let fresh = BucketStat { age: window, ..BucketStat::default() };
                let stats = vec![fresh; bounds.len() + 1];
                self.install(BucketMap { epoch: 0, bounds, stats });
            }
        }
        self.bucket_map()
    }

    fn bucket_map(&self) -> String {
        let Some(map) = self.version.buckets() else { return "none".into() };
        let mut out = format!("epoch {}", map.epoch);
        for i in 0..map.len() {
            let (lo, hi) = map.bounds_of(i);
            let name = |k: Option<&lithify_base::Key>| {
                k.map_or(String::new(), |k| k.escape_ascii().to_string())
            };
            let heat = adapt::temperature(map, i);
            let _ =
                write!(out, "  {}..{} {}.{}", name(lo), name(hi), heat / 1000, heat % 1000 / 100);
        }
        out
    }

    fn install(&mut self, map: BucketMap) {
        let edit = Edit { bucket_hint: Some(map.into()), ..Edit::new(CfId(0)) };
        self.version = self.version.apply(&edit).unwrap();
    }

    /// A flush reports its flows: lines of `bytes key key..`, one per bucket; `epoch=` of its map.
    fn flowed(&mut self, case: &Case) -> String {
        let map = self.version.buckets().unwrap().clone();
        let epoch = case.value("epoch").map_or(map.epoch, |e| e.parse().unwrap());
        let times: usize = case.value("times").map_or(1, |t| t.parse().unwrap());
        let flow = |line: &String| {
            let mut words = line.split_whitespace();
            let bytes = picture::parse_bytes(words.next().unwrap()).unwrap();
            BucketFlow { bytes, keys: words.map(|k| k.as_bytes().into()).collect() }
        };
        let report = FlushReport { epoch, buckets: case.body.iter().map(flow).collect() };
        for _ in 0..times {
            let map = self.version.buckets().unwrap().clone();
            self.install(adapt::on_flush(&map, &report, &self.options, self.version.order()));
        }
        self.bucket_map()
    }

    fn place(&self, case: &Case) -> String {
        let range = KeyRange::incl(case.words[0].as_bytes(), case.words[1].as_bytes());
        match place(&self.view(), &range) {
            Placement::At(pos) => pos.to_string(),
            Placement::NewestOfL0 => "newest of L0".into(),
        }
    }

    /// Job N is built and waits, whether or not it has to.
    fn built(&mut self, case: &Case) -> String {
        let id = number(case);
        self.flight.iter_mut().find(|j| j.id == id).unwrap().state = JobState::WaitDeps;
        String::new()
    }

    fn needs(&self) -> String {
        let view = self.view();
        let levels = 0..self.options.levels;
        let needs: Vec<String> =
            levels.map(|l| format!("L{l} {}", score::need(&view, l))).collect();
        let order: Vec<String> =
            score::by_rank(&view).iter().map(|(l, _)| format!("L{l}")).collect();
        format!("{}\nby rank {}", needs.join("  "), order.join(" "))
    }

    fn check(&self) -> String {
        if let Err(v) = jobs_check(&self.version, &self.flight) {
            return v.to_string();
        }
        for l in 0..MAX_LEVELS as u8 {
            check::depth_is_true(&self.version, l).unwrap();
        }
        match check::all(&self.version) {
            Ok(()) => "ok".into(),
            Err(v) => v.to_string(),
        }
    }

    fn answer(&mut self, case: &Case) -> String {
        match case.command.as_str() {
            "define" => self.define(case),
            "set" => {
                self.set(case);
                String::new()
            }
            "plan" => self.planned().1,
            "issue" if case.body.is_empty() => {
                let (specs, out) = self.planned();
                specs.into_iter().for_each(|s| self.take(s));
                out
            }
            "issue" => case.body.iter().map(|l| self.issue_wish(l)).collect(),
            "admit" => {
                let ask = |l: &String| match self.admit_wish(l) {
                    Ok(spec) => spec.describe(&self.version) + "\n",
                    Err(e) => e + "\n",
                };
                case.body.iter().map(ask).collect()
            }
            "finish" | "commit" => self.finish(case),
            "fail" => self.fail(case),
            "flush" => self.flush(case),
            "picture" => self.picture(),
            "cuts" => self.cuts(case),
            "get" => self.get(case),
            "score" => self.score(),
            "stall" => {
                stall_while(&self.version, &self.flight, &self.mem, &self.options).to_string()
            }
            "explain" => self.explain(),
            "buckets" => self.buckets(case),
            "flowed" => self.flowed(case),
            "place" => self.place(case),
            "built" => self.built(case),
            "needs" => self.needs(),
            "compact" => self.compact(case),
            "check" => self.check(),
            other => panic!("line {}: no command {other}", case.line),
        }
    }
}

fn number(case: &Case) -> JobId {
    JobId(case.words[0].parse().unwrap())
}

#[test]
fn pictures() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/pictures");
    let files = datadriven::for_each_file(&folder, |path| {
        let mut world = World::new();
        datadriven::run_file(path, |case| world.answer(case));
    });
    assert!(files >= 25, "only {files} pictures");
}
