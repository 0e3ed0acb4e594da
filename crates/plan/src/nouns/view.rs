//! What a planner may see: one version, the jobs in flight over it, the memtables, the settings and
//! the free resources. Everything a decision depends on is in here, so a decision can be replayed.
//! It also keeps answers once they were asked for: the order of seeds, whether
//! writers wait; and what was worked out of level 0 (`nouns::stretch`).
//!
//! Locks are not stored anywhere else: a file is locked exactly when it is an input of a job in
//! flight (V12). While `plan` accepts jobs, its own copy of the view grows with them.

use std::cell::OnceCell;
use std::collections::BTreeSet;

use lithify_base::{Comparator, FileId, JobId, KeyRange, Level, MAX_LEVELS, Pos};
use lithify_lsm::index::{self, Interval};
use lithify_lsm::{FileRef, Run, Version};

use crate::nouns::levels::Targets;
use crate::nouns::load::Load;
use crate::nouns::options::PlanOptions;
use crate::nouns::request::ManualRequest;
use crate::nouns::spec::{InFlight, JobState, Kind};
use crate::nouns::stretch::Stretches;

/// The write buffers, as far as planning cares.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemState {
    /// Memtables that are frozen and not flushed yet. The active one does not count.
    pub frozen: u32,
    /// Their bytes.
    pub frozen_bytes: u64,
}

/// Resources that are free now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Jobs that may be started.
    pub slots_free: usize,
    /// Bytes that may be written to the disk: what it has free, or less by a budget.
    pub disk_free: u64,
    /// Bytes that the disk has free, whatever the budget.
    pub disk: u64,
    /// Writers wait for room to be freed (`measures::room`).
    pub short: bool,
    /// Number of the next job. The i-th spec of a plan must be issued as this number plus i,
    /// because later specs of the same plan may have to follow earlier ones.
    pub next_job: JobId,
}

impl Default for Limits {
    fn default() -> Limits {
        let (disk_free, disk) = (u64::MAX, u64::MAX);
        Limits { slots_free: 1, disk_free, disk, short: false, next_job: JobId(1) }
    }
}

/// A job in flight with its inputs resolved.
#[derive(Clone, Debug)]
pub struct Flight {
    /// Its number.
    pub id: JobId,
    /// Why it exists.
    pub kind: Kind,
    /// The position it promises to fill.
    pub out: Pos,
    /// Where it may put files.
    pub hull: KeyRange,
    /// The files it holds.
    pub inputs: Vec<FileRef>,
    /// How far it is.
    pub state: JobState,
}

impl Flight {
    /// Bytes of its inputs.
    pub fn bytes(&self) -> u64 {
        self.inputs.iter().fold(0, |s, f| s.saturating_add(f.bytes))
    }
    /// The level its newest input is at.
    pub fn from(&self) -> Level {
        self.inputs.iter().map(|f| f.pos.level).min().unwrap_or(self.out.level)
    }
}

/// All that a planner may see.
#[derive(Clone)]
pub struct View<'a> {
    /// The tree.
    pub version: &'a Version,
    /// The write buffers.
    pub mem: &'a MemState,
    /// The settings.
    pub options: &'a PlanOptions,
    /// Free resources.
    pub limits: Limits,
    /// The time, in seconds since 1970; 0 while it is not known.
    pub now: u64,
    /// What a user waits for, if anything.
    pub manual: Option<&'a ManualRequest>,
    /// Files that came out whole when they were to be cut in parts.
    pub uncut: Option<&'a BTreeSet<FileId>>,
    /// The load of the machine.
    pub load: Load,
    /// Base level and target sizes.
    pub targets: Targets,
    flights: Vec<Flight>,
    /// Locked files with their holders, sorted.
    held: Vec<(FileId, JobId)>,
    /// Per level, bytes and compensated bytes that are locked.
    held_bytes: [(u64, u64); MAX_LEVELS],
    /// Per level, seeds in priority order; found when first asked for.
    pub(crate) seeds: [OnceCell<Vec<FileRef>>; MAX_LEVELS],
    pub(crate) pressed: OnceCell<bool>,
    /// Level 0 by stretches of keys, as far as it was looked at.
    pub(crate) stretches: Stretches,
}

impl<'a> View<'a> {
    /// A view of `version` while `inflight` runs over it.
    pub fn new(
        version: &'a Version,
        inflight: &[InFlight],
        mem: &'a MemState,
        options: &'a PlanOptions,
        limits: Limits,
    ) -> View<'a> {
        let mut view = View {
            version,
            mem,
            options,
            limits,
            now: 0,
            manual: None,
            uncut: None,
            load: Load::default(),
            targets: Targets::of(version, options),
            flights: Vec::with_capacity(inflight.len()),
            held: Vec::new(),
            held_bytes: Default::default(),
            seeds: Default::default(),
            pressed: OnceCell::new(),
            stretches: Stretches::default(),
        };
        for job in inflight {
            let spec = &job.spec;
            let inputs: Vec<_> =
                spec.inputs.iter().filter_map(|&id| version.file(id).cloned()).collect();
            // V12: inputs stay in the version until their job commits.
            debug_assert_eq!(inputs.len(), spec.inputs.len(), "job {} lost inputs", job.id);
            let (id, kind, out, hull) = (job.id, spec.kind, spec.out, spec.hull.clone());
            view.add(Flight { id, kind, out, hull, inputs, state: job.state });
        }
        view.held.sort_unstable();
        view
    }

    /// The same with a user's request.
    pub fn with_manual(self, manual: Option<&'a ManualRequest>) -> View<'a> {
        View { manual, ..self }
    }

    /// The same with files that can't be cut in parts.
    pub fn with_uncut(self, uncut: &'a BTreeSet<FileId>) -> View<'a> {
        View { uncut: Some(uncut), ..self }
    }

    /// The same under a load.
    pub fn under(self, load: Load) -> View<'a> {
        View { load, ..self }
    }

    /// The same at a time, in seconds since 1970.
    pub fn at(self, now: u64) -> View<'a> {
        View { now, ..self }
    }

    /// Adds a job, whose inputs become locked.
    pub(crate) fn hold(&mut self, flight: Flight) {
        self.stretches.lock(&flight.inputs, self.version.order());
        self.add(flight);
        self.held.sort_unstable();
        debug_assert!(*self.l0_intervals() == self.find_intervals());
    }

    /// Adds a job and leaves its locks to be sorted in.
    fn add(&mut self, flight: Flight) {
        for f in &flight.inputs {
            let sum = &mut self.held_bytes[usize::from(f.pos.level)];
            sum.0 += f.bytes;
            sum.1 += f.compensated_bytes();
            self.held.push((f.id, flight.id));
        }
        self.flights.push(flight);
    }

    /// The order of user keys.
    pub fn order(&self) -> &'a dyn Comparator {
        self.version.order()
    }
    /// Jobs in flight, oldest first, those accepted by the running plan included.
    pub fn flights(&self) -> &[Flight] {
        &self.flights
    }
    /// The job that holds a file.
    pub fn holder(&self, id: FileId) -> Option<JobId> {
        let i = self.held.binary_search_by_key(&id, |h| h.0).ok()?;
        Some(self.held[i].1)
    }
    /// The job in flight with this number.
    pub fn flight(&self, id: JobId) -> Option<&Flight> {
        self.flights.iter().find(|f| f.id == id)
    }
    /// True if no job holds the file.
    pub fn is_idle(&self, f: &FileRef) -> bool {
        self.holder(f.id).is_none()
    }
    /// True if no job holds any of the files.
    pub fn all_idle<'f>(&self, files: impl IntoIterator<Item = &'f FileRef>) -> bool {
        files.into_iter().all(|f| self.is_idle(f))
    }
    /// Compensated bytes of `level` that no job holds.
    pub fn idle_compensated(&self, level: Level) -> u64 {
        let all = self.version.level(level).compensated_bytes();
        all.saturating_sub(self.held_bytes[usize::from(level)].1)
    }
    /// Bytes of `level` that no job holds.
    pub fn idle_bytes(&self, level: Level) -> u64 {
        self.version.bytes(level).saturating_sub(self.held_bytes[usize::from(level)].0)
    }
    /// Bytes of `level` over its target that no job holds.
    pub fn spare_bytes(&self, level: Level) -> u64 {
        let drains = self.targets.unnecessary.is_some_and(|u| level <= u);
        let target = if drains { 0 } else { self.targets.bytes(level) };
        self.idle_bytes(level).saturating_sub(target)
    }
    /// Runs of `level` with a file that no job holds.
    pub fn idle_runs(&self, level: Level) -> impl DoubleEndedIterator<Item = &'a Run> + '_ {
        self.version
            .level(level)
            .runs()
            .iter()
            .filter(|r| r.files().iter().any(|f| self.is_idle(f)))
    }
    /// True if a job in flight promised to fill `out` somewhere inside `range`.
    pub fn is_promised(&self, out: Pos, range: &KeyRange) -> bool {
        self.promise(out, range).is_some()
    }
    /// The first job in flight that promised to fill `out` somewhere inside `range`.
    pub fn promise(&self, out: Pos, range: &KeyRange) -> Option<&Flight> {
        self.flights.iter().find(|k| k.out == out && k.hull.overlaps(range, self.order()))
    }
    /// The stratum above everything present or promised at `level` over `hull`. In level 0 a flush
    /// may have reserved a higher one, which is newer and stays so.
    pub fn top(&self, level: Level, hull: &KeyRange) -> Pos {
        let order = self.order();
        let runs = self.version.level(level).runs().iter();
        let present = runs.filter(|r| !r.overlapping(hull, order).is_empty()).map(|r| r.pos);
        let promised = self.flights.iter().filter(|k| k.hull.overlaps(hull, order)).map(|k| k.out);
        let strata = present.chain(promised).filter(|p| p.level == level).map(|p| p.stratum.0);
        Pos::new(level, strata.max().unwrap_or(0) + 1)
    }
    /// The elementary intervals of L0.
    pub fn l0_intervals(&self) -> &[Interval] {
        self.stretches.intervals.get_or_init(|| self.find_intervals())
    }
    fn find_intervals(&self) -> Vec<Interval> {
        let locked = |id| self.holder(id).is_some();
        index::intervals(self.version.level(0).runs(), self.order(), locked)
    }
    /// Bytes at strata above the base of `level`, and those that jobs in flight will add there.
    pub fn extra_bytes(&self, level: Level) -> u64 {
        let present = self.version.level(level).runs().iter().filter(|r| r.pos.stratum.0 > 0);
        let promised = self
            .flights
            .iter()
            .filter(|k| k.out.level == level && k.out.stratum.0 > 0 && k.from() != level);
        let present: u64 = present.map(Run::bytes).fold(0, u64::saturating_add);
        promised.map(Flight::bytes).fold(present, u64::saturating_add)
    }
    /// At most how many runs of `level` cover a key of `range`, those promised included.
    pub fn depth_over(&self, level: Level, range: &KeyRange) -> u32 {
        let runs = self.version.level(level).runs();
        let base = runs.last().filter(|r| level > 0 && r.pos.stratum.0 == 0);
        let over_base = base.is_some_and(|r| !r.overlapping(range, self.order()).is_empty());
        let extras = &runs[..runs.len() - usize::from(base.is_some())];
        let promised = self.flights.iter().filter(|k| {
            k.out.level == level && k.out.stratum.0 > 0 && k.hull.overlaps(range, self.order())
        });
        u32::from(over_base)
            + index::max_depth_within(extras, range, self.order())
            + promised.count() as u32
    }
    /// True if `level` is one the settings use.
    pub fn has_level(&self, level: Level) -> bool {
        level <= self.options.last_level()
    }
}
