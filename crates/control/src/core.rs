//! The core itself: it takes in an event, changes its state and answers with commands. What it does
//! step by step is in the modules below: `schedule` starts jobs, `commit` hands out their edits,
//! `manual` and `outside` serve callers, `outlook` copies what it knows.

mod commit;
mod manual;
pub(crate) mod outlook;
mod outside;
mod schedule;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use lithify_base::{CfId, Error, ErrorKind, FileId, JobId, Key, Level};
use lithify_lsm::{Edit, Version};
use lithify_plan::stall::{l0_bytes_slowdown, stall_while};
use lithify_plan::{Cause, JobSpec, PlanOptions, Policy, PolicyKind, Stall};

use crate::buckets::{Buckets, Flow};
use crate::command::Command;
use crate::event::Event;
use crate::health::Health;
use crate::jobs::{Gone, Jobs};
use crate::life::{Life, Settled};
use crate::memory::Memory;
use crate::options::Options;
use crate::relief::is_deep;
use crate::requests::{Manuals, Outsiders, closing};
use crate::resources::Resources;
use crate::retry::{PATIENCE, Retry};
use crate::throttle::{Pressure, Throttle};

/// The core of one column family. A clone is another core in the same state.
#[derive(Clone)]
pub struct Core {
    options: Options,
    policies: Arc<[Box<dyn Policy>]>,
    version: Version,
    memory: Memory,
    jobs: Jobs,
    life: Life,
    health: Health,
    buckets: Buckets,
    manuals: Manuals,
    outsiders: Outsiders,
    resources: Resources,
    throttle: Throttle,
    next_job: u64,
    /// Trees installed so far.
    installs: u64,
    retry: Retry,
}

impl Core {
    /// The core over a tree, `version`. `next_epoch` is above every epoch in use.
    pub fn new(mut options: Options, version: Version, next_epoch: u32) -> Core {
        options.plan.l0_found_bytes = version.bytes(0);
        Core {
            policies: lithify_plan::policies(options.plan.policy).into(),
            throttle: Throttle::new(options.delayed_write_rate),
            memory: Memory::new(next_epoch),
            jobs: Jobs::default(),
            life: Life::new(),
            health: Health::default(),
            buckets: Buckets::default(),
            manuals: Manuals::default(),
            outsiders: Outsiders::default(),
            resources: Resources::new(version.buckets().map_or(0, |map| map.len())),
            next_job: 1,
            installs: 0,
            retry: Retry::default(),
            options,
            version,
        }
    }

    /// Takes in one event and says what to do. `now` is in nanoseconds and never decreases.
    pub fn on(&mut self, event: Event, now: u64) -> Vec<Command> {
        let mut out = Vec::new();
        if self.life.is_halted() {
            self.end_one(event, &mut out);
            return out;
        }
        let running = self.jobs.running().count();
        let (elsewhere, _) = self.resources.at_work_elsewhere();
        self.resources.meter.pass(running + elsewhere, now);
        if running == 0 {
            self.resources.reliefs.rest(now);
        }
        let time_only = matches!(event, Event::Tick | Event::WallTime { .. });
        match event {
            Event::Frozen { mem, bytes, written, log_number } => {
                self.took_frozen(mem, (bytes, written), log_number, now);
            }
            Event::Built { job, adds, flow } => self.built(job, adds, flow, &mut out),
            Event::Failed { job, error } => self.failed(job, error, now, &mut out),
            Event::EditSynced => self.settle(Settled::Durable, now, &mut out),
            Event::EditFailed { error } => {
                let is_full = error.kind() == ErrorKind::NoSpace;
                let how = if is_full { Settled::Postponed } else { Settled::Unknown };
                self.settle(how(error), now, &mut out);
            }
            Event::Manual { id, request } => self.manuals.add(id, request),
            Event::Outside { id, request } => self.take_outside(id, request, now, &mut out),
            Event::AutoCompaction { on } => self.options.plan.disable_auto = !on,
            Event::Paused { on } => self.life.pause(on),
            Event::CancelManual { id } => self.cancel_manual(id, now, &mut out),
            Event::Options(options) => self.set_options(*options),
            Event::DiskFree { bytes, disk } => self.resources.look(bytes, disk),
            Event::WallTime { seconds } => self.resources.wall = seconds,
            Event::Awaited { by } => self.resources.awaited = by,
            Event::Tick => {}
            // The next plan sees them; a tick comes with them.
            Event::Moved { bytes } => {
                self.resources.meter.moved(bytes, self.options.compaction_slots);
                let own =
                    u128::from(bytes) * running as u128 / (running + elsewhere).max(1) as u128;
                self.resources.reliefs.moved(own as u64, self.jobs.in_flight(), now);
                return out;
            }
            Event::Closing => self.close(&mut out),
        }
        self.start_flushes(now, &mut out);
        self.start_compactions(now, &mut out);
        self.commit_next(now, &mut out);
        if !time_only {
            self.inherit(now, &mut out);
        }
        self.look_for_room(now, &mut out);
        self.end_manuals(&mut out);
        self.end_outsiders(&mut out);
        self.judge_writes(&mut out);
        out
    }

    /// Stops for good after a panic, in the core or while one of its commands was carried out: which of
    /// them took effect is not known. Nothing is started or committed from now on, so what is on disk
    /// stays as it is, and writes are refused.
    pub fn halt(&mut self, error: Error) -> Vec<Command> {
        let mut out = Vec::new();
        self.life.halt();
        self.jobs.give_up_finished();
        self.health.stop_writes(error, &mut out);
        self.end_manuals(&mut out);
        self.end_outsiders(&mut out);
        out
    }

    /// All that happens once the core was halted: jobs that were at work end.
    fn end_one(&mut self, event: Event, out: &mut Vec<Command>) {
        match event {
            Event::Built { job, .. } | Event::Failed { job, .. } => self.jobs.forget(job),
            Event::Manual { id, request } => self.manuals.add(id, request),
            Event::Outside { id, request } => self.take_outside(id, request, 0, out),
            Event::Closing => self.close(out),
            _ => {}
        }
        self.end_manuals(out);
    }

    /// True after [`halt`](Core::halt).
    pub fn is_halted(&self) -> bool {
        self.life.is_halted()
    }
    /// Number of the last tree handed out to be installed.
    pub fn installs(&self) -> u64 {
        self.installs
    }
    /// Replaces the bucket map, at any moment: it is a hint on which nothing may depend. For tests.
    #[doc(hidden)]
    pub fn force_buckets(&mut self, map: lithify_lsm::BucketMap) {
        let edit = Edit { bucket_hint: Some(map.into()), ..Edit::new(CfId(0)) };
        let next = self.life.writing_mut().map(|w| &mut w.next);
        for version in [Some(&mut self.version), next].into_iter().flatten() {
            *version = version.apply(&edit).expect("a sound map");
        }
    }
    /// The tree as last installed.
    pub fn version(&self) -> &Version {
        &self.version
    }
    /// Jobs that run or wait to commit.
    pub fn jobs(&self) -> usize {
        self.jobs.len()
    }
    /// True if a worker is busy, or about to be.
    pub fn is_working(&self) -> bool {
        self.jobs.any_running()
    }
    /// What is running, for pictures and reports.
    pub fn in_flight(&self) -> &[lithify_plan::InFlight] {
        self.jobs.in_flight()
    }
    /// Memtables frozen and not yet flushed.
    pub fn frozen(&self) -> usize {
        self.memory.len()
    }
    /// True if nothing runs and there is nothing to do.
    pub fn is_idle(&self) -> bool {
        self.jobs.len() == 0 && self.memory.len() == 0 && self.is_content()
    }
    /// Bytes of compaction work outstanding.
    pub fn debt(&self) -> u64 {
        lithify_plan::score::debt(&self.version, &self.options.plan)
    }
    /// How often a flush failed since the open, and why the last try failed unless one has
    /// succeeded since.
    pub fn failed_flushes(&self) -> (u64, Option<&Error>) {
        self.health.flushes()
    }
    /// Compactions that failed since the open.
    pub fn failed_compactions(&self) -> u64 {
        self.health.failed_compactions()
    }
    /// Why compactions get nowhere, if they do not: the last failed, several times in a row, or none
    /// fits on the disk.
    pub fn compaction_failure(&self) -> Option<&Error> {
        self.health.compactions()
    }
    /// The error that stopped writes, if one did.
    pub fn read_only(&self) -> Option<&Error> {
        self.health.read_only()
    }

    /// True if there is nothing to plan: the last planning found nothing, or none is done any more.
    fn is_content(&self) -> bool {
        match &self.life {
            Life::Open { content, .. } => *content,
            Life::Paused { .. } => self.health.read_only().is_some(),
            Life::Closing { .. } | Life::Sealed | Life::Halted => true,
        }
    }

    /// Why a request can't be met any more, if so.
    fn ended(&self) -> Option<Error> {
        self.health.read_only().cloned().or_else(|| self.life.is_ending().then(closing))
    }

    fn job_id(&mut self) -> JobId {
        let id = JobId(self.next_job);
        self.next_job += 1;
        id
    }

    fn built(
        &mut self,
        job: JobId,
        adds: Vec<lithify_lsm::FileMeta>,
        flow: Option<Box<Flow>>,
        out: &mut Vec<Command>,
    ) {
        // A job that was aborted meanwhile says nothing new.
        match self.jobs.flushed_mem(job) {
            Some(_) => self.retry.flushes.succeeded(),
            None if self.jobs.has(job) => self.retry.compactions.succeeded(),
            None => {}
        }
        if let Some(flow) = flow {
            self.buckets.built(job, *flow);
        }
        let mut edit = Edit::new(CfId(0));
        edit.job = Some(job);
        edit.adds = adds;
        edit.cursors.extend(self.cursor_after(self.jobs.spec(job)));
        if let Some(mem) = self.jobs.flushed_mem(job) {
            edit.log_number = self.memory.log_number(mem);
        }
        self.note_uncut(job, &edit);
        discard(self.jobs.built(job, edit), out);
        if self.life.is_sealed() {
            self.jobs.give_up_finished();
        }
    }

    /// Where the round-robin priority goes on once this job has committed.
    fn cursor_after(&self, spec: Option<&Arc<JobSpec>>) -> Option<(Level, Key)> {
        lithify_plan::cursor_after(&self.version, &self.options.plan, spec?)
    }

    /// A job failed: it and everything ordered after it leave the table, which unlocks their
    /// inputs. A flush is tried again, because its memtable is still there.
    fn failed(&mut self, job: JobId, error: Error, now: u64, out: &mut Vec<Command>) {
        let asked = self.manuals.jobs.get(&job).copied();
        let Some(gone) = self.jobs.remove_with_dependents(job) else {
            return; // it was aborted before, and its report says nothing new
        };
        let is_flush = gone.iter().any(|gone| gone.mem.is_some());
        match is_flush {
            true => self.health.flush_failed(error.clone(), out),
            false => self.health.compaction_failed(&error, out),
        }
        // The caller that asked for a compaction is told. Other compactions in its way are tried again
        // for a while first.
        match asked {
            Some(id) => self.fail_request(id, &error, out),
            None if !is_flush && self.retry.compactions.failures() >= PATIENCE => {
                self.fail_manual(&error, out);
            }
            None => {}
        }
        self.let_go(gone, Some(job), self.retry.flushes.next(now), out);
        match is_flush {
            true => self.retry.flushes.failed(),
            false => self.retry.compaction_failed(now),
        }
        if matches!(error.kind(), ErrorKind::Corruption | ErrorKind::Internal | ErrorKind::Fenced) {
            self.health.stop_writes(error, out);
        }
    }

    /// Jobs have left the table; all but `over` may still be at work. Memtables are flushed anew.
    fn let_go(
        &mut self,
        gone: Vec<Gone>,
        over: Option<JobId>,
        again_at: u64,
        out: &mut Vec<Command>,
    ) {
        for Gone { job, mem, litter } in gone {
            if Some(job) != over {
                out.push(Command::Abort { job });
            }
            if let Some(mem) = mem {
                self.memory.retry(mem, again_at);
            }
            discard(litter, out);
        }
    }

    /// Goes on under other settings.
    fn set_options(&mut self, options: Options) {
        self.throttle.set_least_rate(options.delayed_write_rate);
        let old = &self.options.plan;
        // Where the tables of a level go was settled by the open, whose writers go by that.
        let mut plan = PlanOptions { policy: old.policy, places: old.places, ..options.plan };
        // What was learnt of the load holds under other settings, too: a tree that was shaped for another target would
        // have to be written anew.
        plan.buckets.useful = old.buckets.useful;
        // No more than before: however often settings come, writers do not get further than once.
        plan.l0_found_bytes = self.version.bytes(0).min(l0_bytes_slowdown(old));
        match self.resources.base_bytes == Some(plan.level_base_bytes) {
            true => plan.level_base_bytes = old.level_base_bytes,
            false => self.resources.base_bytes = None,
        }
        self.options = Options {
            plan,
            compaction_slots: self.options.compaction_slots,
            flush_slots: self.options.flush_slots,
            delayed_write_rate: options.delayed_write_rate,
        };
    }

    fn close(&mut self, out: &mut Vec<Command>) {
        self.life.close();
        // Flushes must finish.
        out.extend(self.jobs.running().map(|f| Command::Abort { job: f.id }));
    }

    /// The rate at which level 0 does not reach its stop before it is shorter. A full memtable has so many bytes of writes.
    fn sustained(&mut self, stall: &Stall, writes: u64) -> Option<u64> {
        let plan = &self.options.plan;
        let goes_down = !plan.disable_auto && plan.policy != PolicyKind::Fifo;
        if !goes_down || !is_deep(stall.l0_depth, plan) {
            return None;
        }
        let (coming, flights) = (self.memory.len() as u32 + 1, self.jobs.in_flight());
        let tree = (self.installs, &self.version);
        self.resources.reliefs.rate(tree, flights, plan, (coming, writes))
    }

    fn judge_writes(&mut self, out: &mut Vec<Command>) {
        let found = &mut self.options.plan.l0_found_bytes;
        *found = (*found).min(self.version.bytes(0));
        let mem = self.memory.state();
        let flights = self.jobs.in_flight();
        let stall = stall_while(&self.version, flights, &mem, &self.options.plan);
        let writes = self.throttle.writes(self.options.plan.memtable_bytes);
        let ends = writes.and_then(|writes| self.sustained(&stall, writes));
        let plan = &self.options.plan;
        let memory = self.memory.room(plan.max_memtables, plan.memtable_bytes, writes);
        let mut pressure = self.throttle.judge(&stall, plan, ends, self.version.bytes(0), memory);
        if pressure.stop.is_none() && self.is_short() {
            pressure = Pressure { stop: Some(Cause::DiskSpace), ..Pressure::default() };
        }
        out.extend(self.throttle.tell(pressure).map(Command::Stall));
    }
}

fn discard(files: Vec<FileId>, out: &mut Vec<Command>) {
    if !files.is_empty() {
        out.push(Command::Discard { files });
    }
}
