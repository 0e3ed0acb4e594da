//! Which jobs start, and how soon: flushes first; compactions in as many slots as the moment wants; a
//! job that holds up a more urgent wish becomes as urgent as that wish; no job starts that the disk
//! has no room for.

use std::collections::BTreeMap;
use std::sync::Arc;

use lithify_base::zoo::{self, Bug};
use lithify_base::{Error, ErrorKind, JobId, Pos};
use lithify_lsm::{Edit, check};
use lithify_plan::{
    Blocked, Kind, Layers, Limits, Load, MemState, PolicyKind, Prio, Reason, Refusal, View,
    inherited, is_short, passed_over, slots_wanted,
};

use crate::buckets::Buckets;
use crate::command::Command;
use crate::core::Core;
use crate::event::MemId;
use crate::jobs;
use crate::life::Life;
use crate::resources::Taken;

/// Writers that fill a memtable in less time than this, nanoseconds, have all slots work for them:
/// with 64 MiB that is 6.4 MB/s and more. What is left undone while they write is done later, when
/// level 0 is deeper and more of it has to be rewritten: measured, a fill with two slots lost 3 to 20%
/// to a ramp that waited for pressure.
pub(crate) const BUSY: u64 = 10_000_000_000;

/// The target of the base level follows level 0 up to this many times what is set.
const STRETCH_MOST: u64 = 8;

/// Room on the disk for a manifest that is begun anew, with a tree of so many files.
fn manifest_room(files: usize) -> u64 {
    (16 << 10) + 512 * files as u64
}

impl Core {
    /// A memtable is full: its size, and bytes of writes.
    pub(crate) fn took_frozen(&mut self, mem: MemId, sizes: (u64, u64), log_number: u64, now: u64) {
        self.memory.freeze(mem, sizes, log_number);
        self.resources.frozen_at = Some(now);
        self.resources.meter.frozen(sizes.0, now);
        self.reshape();
    }

    pub(crate) fn start_flushes(&mut self, now: u64, out: &mut Vec<Command>) {
        while self.jobs.flushes() < self.options.flush_slots
            && self.life.is_open()
            && let Some((mem, stratum)) = self.memory.next_to_flush(now)
        {
            let job = self.job_id();
            self.memory.start(mem, job, now);
            self.jobs.add_flush(job, mem);
            let cutting =
                Buckets::cutting(&self.version, &self.options.plan, self.options.compaction_slots);
            out.push(Command::StartFlush { job, mem, out: Pos::new(0, stratum), cutting });
        }
    }

    pub(crate) fn start_compactions(&mut self, now: u64, out: &mut Vec<Command>) {
        let Life::Open { content, .. } = &mut self.life else { return };
        *content = self.health.read_only().is_some();
        if *content || !self.retry.compactions_may_start(now) {
            return;
        }
        let mem = self.memory.state();
        let view = self.view(&mem, now);
        // What is held back for its price is still to be done.
        let free = view.limits.slots_free > 0 && view.load.price == 0;
        let specs = lithify_plan::plan(&view, &self.policies);
        drop(view);
        let waits = free && specs.is_empty() && self.waits_for_room(now);
        if let Life::Open { content, .. } = &mut self.life {
            *content = free && specs.is_empty() && !waits;
        }
        let shown = match zoo::on(Bug::FlightsForgotten) {
            true => self.jobs.without_inputs(&self.version),
            false => self.version.clone(),
        };
        for spec in specs {
            let job = self.job_id();
            let spec = Arc::new(spec);
            let inputs = jobs::inputs(&self.version, &spec);
            if spec.kind.is_instant() {
                let mut edit = jobs::instant_edit(job, &spec, &inputs);
                edit.cursors.extend(self.cursor_after(Some(&spec)));
                self.jobs.add_built(job, spec, inputs, edit);
                continue;
            }
            if spec.kind == Kind::Manual {
                self.manuals.begun(job);
            }
            out.push(Command::StartCompaction {
                job,
                spec: spec.clone(),
                inputs: inputs.clone(),
                version: Box::new(shown.clone()),
            });
            self.jobs.add_compaction(job, spec, inputs);
        }
    }

    /// The tree's shape follows the load. The base level should hold four fifths of what level 0 holds: what goes down
    /// then is merged with a little less. It follows slowly, within eight times of what is set. And flushes may be cut
    /// into as many ranges as compactions are of use.
    fn reshape(&mut self) {
        let plan = &mut self.options.plan;
        if plan.policy != PolicyKind::Adaptive {
            return;
        }
        let set = *self.resources.base_bytes.get_or_insert(plan.level_base_bytes);
        let wanted = (self.version.bytes(0) / 5 * 4).clamp(set, set.saturating_mul(STRETCH_MOST));
        let now = plan.level_base_bytes;
        plan.level_base_bytes = match wanted > now {
            true => now + (wanted - now).div_ceil(4),
            false => now - (now - wanted) / 64,
        };
        plan.buckets.useful = self.resources.meter.usual();
    }

    /// Compactions that may run at once: where the policy goes by the load, no more than are of use.
    fn slots(&self) -> usize {
        let all = self.options.compaction_slots;
        match self.options.plan.policy {
            PolicyKind::Adaptive => {
                self.resources.meter.share(all, self.resources.at_work_elsewhere())
            }
            _ => all,
        }
    }

    /// The load, for policies that go by it.
    pub(crate) fn load(&self, now: u64) -> Load {
        match self.options.plan.policy {
            PolicyKind::Adaptive => {
                let held = self.throttle.holds_writers();
                let (all, elsewhere) =
                    (self.options.compaction_slots, self.resources.at_work_elsewhere());
                let load = self.resources.meter.load(all, elsewhere, held, now);
                // A caller who waits for all work to end would wait for jobs that are held back, too.
                match self.resources.awaited {
                    0 => load,
                    _ => {
                        let written = self.resources.meter.is_written(false, now);
                        Load { price: 0, written, ..load }
                    }
                }
            }
            _ => Load::default(),
        }
    }

    /// What is free for compactions now. While nothing presses one at a time is enough, and leaves
    /// the machine to its users; writers in full flow, and callers that wait for the work to end, want
    /// all of it.
    pub(crate) fn limits(&self, now: u64) -> Limits {
        self.limits_beside(self.resources.promised_to_others(), now)
    }

    /// The same if others over the same disk may still write so many bytes.
    fn limits_beside(&self, others: u64, now: u64) -> Limits {
        let all = self.slots();
        let busy = self.resources.frozen_at.is_some_and(|at| now.saturating_sub(at) < BUSY);
        let hurry = busy || self.resources.awaited > 0 || self.manuals.wanted().is_some();
        let slots = match hurry {
            true => all,
            false => slots_wanted(&self.version, &self.memory.state(), &self.options.plan, all),
        };
        let taken = self.promised().saturating_add(others);
        // What the manifest and memtables need of the disk must not be filled by what then can't
        // commit: those that are frozen in any case, and the next one where that can be had.
        let mem = self.memory.state();
        let kept = manifest_room(self.version.file_count()).saturating_add(mem.frozen_bytes);
        let disk = self.resources.disk.saturating_sub(kept);
        let left = self.resources.disk_free;
        // What a caller asks for may take that as well.
        let next = match self.manuals.wanted() {
            Some(_) => 0,
            None => self.options.plan.memtable_bytes,
        };
        let disk_free = left.min(disk.saturating_sub(next));
        Limits {
            slots_free: slots.saturating_sub(self.jobs.running().count()),
            disk_free: disk_free.saturating_sub(taken),
            disk: disk.saturating_sub(taken),
            short: self.is_short(),
            next_job: JobId(self.next_job),
        }
    }

    /// Those at work will still take what they have not written yet: at most this.
    fn promised(&self) -> u64 {
        self.jobs.running().map(|f| f.spec.est.write).fold(0, u64::saturating_add)
    }

    /// Before an event, where other cores share the disk: what `all` of them took, this one included. Until
    /// [`tell_taken`](Core::tell_taken) after that event no other may start jobs if the room is to be promised once.
    pub fn know_taken(&mut self, all: &Taken) {
        self.resources.know_all(*all);
    }

    /// Takes the place of `other` among the cores that share the disk. The next [`tell_taken`](Core::tell_taken) gives back what
    /// `other` took of it.
    pub fn take_place_of(&mut self, other: &Core) {
        self.resources.share = other.resources.share;
    }

    /// After an event: brings this core's part of `all` up to date.
    pub fn tell_taken(&mut self, all: &mut Taken) {
        let promised = self.promised();
        let running = self.jobs.running().count() as u64;
        self.resources.tell(promised, running, all);
    }

    /// True if a compaction is wanted that will have room, or may have: once those of others over the same disk have
    /// ended, or once it was seen what is free by now.
    fn waits_for_room(&self, now: u64) -> bool {
        let stale = self.resources.stale;
        if !stale && self.resources.promised_to_others() == 0 || !self.lacks_room(now) {
            return false;
        }
        let alone = self.limits_beside(0, now).disk_free;
        let may =
            |b: &Blocked| matches!(b.why, Refusal::Disk { needed } if stale || needed <= alone);
        self.passed_over(now).iter().any(may)
    }

    /// True if some job might not fit: none writes more than the whole tree has.
    fn lacks_room(&self, now: u64) -> bool {
        self.limits(now).disk_free < self.version.all_bytes()
    }

    /// What room there is, before the first event: bytes that tables may still take, and those that
    /// the disk has free.
    pub fn know_room(&mut self, left: u64, disk: u64) {
        self.resources.look(left, disk);
    }

    /// True if writers have to wait for room to be freed.
    pub(crate) fn is_short(&self) -> bool {
        let (left, disk) = (self.resources.disk_free, self.resources.disk);
        let layers = || match self.resources.layers.get() {
            Some((at, layers)) if at == self.installs => layers,
            _ => {
                let layers = Layers::of(&self.version);
                self.resources.layers.set(Some((self.installs, layers)));
                layers
            }
        };
        let disk = disk.saturating_sub(manifest_room(self.version.file_count()));
        is_short(&self.options.plan, &self.memory.state(), left.min(disk), disk, layers)
    }

    /// A job is built: what was to be cut in parts and came out whole is not tried again.
    pub(crate) fn note_uncut(&mut self, job: JobId, edit: &Edit) {
        let cut = self.jobs.spec(job).is_some_and(|spec| {
            spec.inputs.len() == 1 && matches!(spec.reason, Reason::ShortOfRoom { .. })
        });
        if let [whole] = &edit.adds[..]
            && cut
        {
            let version = &self.version;
            self.resources.uncut.retain(|id| version.file(*id).is_some());
            self.resources.uncut.insert(whole.id);
        }
    }

    /// Wishes that can't start now, of those ahead of the best one that could.
    fn passed_over(&self, now: u64) -> Vec<Blocked> {
        let mem = self.memory.state();
        passed_over(&self.view(&mem, now), &self.policies)
    }

    /// What a planner may see now; `mem` is the state of the memtables.
    pub(crate) fn view<'a>(&'a self, mem: &'a MemState, now: u64) -> View<'a> {
        let flights = self.jobs.in_flight();
        View::new(&self.version, flights, mem, &self.options.plan, self.limits(now))
            .with_manual(self.manuals.wanted())
            .with_uncut(&self.resources.uncut)
            .under(self.load(now))
            .at(self.resources.wall)
    }

    /// Makes jobs as urgent as what they hold up. Looked at when the jobs or the tree have changed.
    pub(crate) fn inherit(&mut self, now: u64, out: &mut Vec<Command>) {
        // One compaction has no other to overtake.
        let raised: BTreeMap<JobId, Prio> = match self.jobs.running().count() > 1 {
            true => inherited(self.jobs.in_flight(), &self.passed_over(now)).into_iter().collect(),
            false => BTreeMap::new(),
        };
        for f in self.jobs.running() {
            let of = |all: &BTreeMap<JobId, Prio>| all.get(&f.id).copied().unwrap_or(f.spec.prio);
            if of(&raised) != of(&self.resources.raised) {
                out.push(Command::Hurry { job: f.id, prio: of(&raised) });
            }
        }
        self.resources.raised = raised;
    }

    /// Jobs that are more urgent than they were made.
    pub(crate) fn raised(&self) -> impl Iterator<Item = (JobId, Prio)> + '_ {
        self.resources.raised.iter().map(|(job, prio)| (*job, *prio))
    }

    /// Tells callers if compactions get nowhere because the disk has no room for any: only a user can
    /// change that.
    pub(crate) fn look_for_room(&mut self, now: u64, out: &mut Vec<Command>) {
        // What is at work may free some, and so may what has just ended, and what is held back.
        let unclear = !self.jobs.in_flight().is_empty() || self.resources.stale;
        if unclear || !self.life.is_open() || self.health.read_only().is_some() {
            return;
        }
        // What others have begun does not last.
        if self.waits_for_room(now) {
            return;
        }
        let left = self.limits(now).disk_free;
        let wishes = match self.lacks_room(now) {
            true => self.passed_over(now),
            false => Vec::new(),
        };
        let lacking = wishes.iter().filter_map(|b| match b.why {
            Refusal::Disk { needed } => Some((b.kind == Kind::Manual, needed)),
            _ => None,
        });
        let (manual, what) = match lacking.max() {
            Some((manual, needed)) => {
                let what = format!(
                    "the next compaction may write {needed} bytes and the disk, or its budget, has \
                     {left} left for it; free space, or raise disk_budget, and it starts by itself"
                );
                (manual, what)
            }
            // What is tried again may free some.
            None if !self.retry.compactions_may_start(now) => return,
            // A flush at work may, too, and what others have at work.
            None if self.is_short()
                && self.memory.len() == 0
                && self.resources.at_work_elsewhere().0 == 0 =>
            {
                let left = self.resources.disk_free;
                let what = format!(
                    "the disk, or its budget, has {left} bytes left, and no compaction can free \
                     more; free space, or raise disk_budget, and writes go on by themselves"
                );
                (false, what)
            }
            // What failed is not wanted any more, or would have been begun again.
            None => return self.health.compaction_succeeded(out),
        };
        let error = Error::new(ErrorKind::NoSpace, what);
        if manual {
            self.fail_manual(&error, out);
        }
        if self.health.compactions().is_none() {
            self.health.compactions_stuck(error, out);
        }
    }

    /// A compaction is in the tree.
    pub(crate) fn advanced(&mut self, out: &mut Vec<Command>) {
        self.resources.stale = self.resources.disk < u64::MAX;
        self.health.compaction_succeeded(out);
    }

    /// Every invariant of the tree and of the jobs over it (V1 to V8, V12, V14, B3), in builds for
    /// tests: a defect shows where it is made and not where it hurts.
    pub(crate) fn check(&self) {
        if cfg!(debug_assertions) {
            let tree = check::all(&self.version);
            let jobs = lithify_plan::check::jobs(&self.version, self.jobs.in_flight());
            assert!(tree.is_ok() && jobs.is_ok(), "after an install: {tree:?} {jobs:?}");
        }
    }
}
