//! Event in, commands out: whole lives of flushes and compactions without a file.

use std::sync::Arc;

use lithify_base::{CfId, ErrorKind, FileId, Key, KeyRange, Pos, bytewise};
use lithify_lsm::FileMeta;
use lithify_plan::{Cause, CompactionPri, Kind, ManualRequest, Prio};

use super::*;
use crate::event::MemId;
use crate::jobs;

mod life;
mod outside;
mod pace;
mod retry;
mod room;

struct World {
    core: Core,
    now: u64,
    next_file: u64,
    log: Vec<Command>,
}

impl World {
    fn new(slots: usize) -> World {
        let plan = PlanOptions {
            l0_trigger: 2,
            l0_slowdown: 8,
            l0_stop: 12,
            dynamic_levels: false,
            ..PlanOptions::default()
        };
        let options =
            Options { plan, compaction_slots: slots, flush_slots: 2, delayed_write_rate: 1 << 20 };
        let core = Core::new(options, Version::empty(bytewise()), 1);
        World { core, now: 0, next_file: 1, log: Vec::new() }
    }
    /// A world whose tree has `files`: positions with first and last key, 1 MiB each.
    fn with_tree(slots: usize, files: &[(Pos, &str, &str)]) -> World {
        let mut w = World::new(slots);
        let mut edit = Edit::new(CfId(0));
        edit.adds = files.iter().map(|(pos, lo, hi)| w.file(*pos, lo, hi)).collect();
        let version = Version::empty(bytewise()).apply(&edit).unwrap();
        w.core = Core::new(w.core.options.clone(), version, 100);
        w
    }
    fn on(&mut self, event: Event) {
        self.now += 1;
        let commands = self.core.on(event, self.now);
        self.log.extend(commands);
    }
    fn take<T>(&mut self, pick: impl Fn(&Command) -> Option<T>) -> Option<T> {
        let at = self.log.iter().position(|c| pick(c).is_some())?;
        let found = pick(&self.log[at]);
        self.log.remove(at);
        found
    }
    fn freeze(&mut self, mem: u64) {
        self.on(Event::Frozen {
            mem: MemId(mem),
            bytes: 1 << 20,
            written: 1 << 20,
            log_number: mem + 1,
        });
    }
    fn flush_job(&mut self) -> Option<(JobId, MemId, Pos)> {
        self.take(|c| match c {
            Command::StartFlush { job, mem, out, .. } => Some((*job, *mem, *out)),
            _ => None,
        })
    }
    fn compaction(&mut self) -> Option<(JobId, Arc<lithify_plan::JobSpec>)> {
        self.take(|c| match c {
            Command::StartCompaction { job, spec, .. } => Some((*job, spec.clone())),
            _ => None,
        })
    }
    /// The batch handed out.
    fn batch(&mut self) -> Vec<Edit> {
        let found = self.take(|c| match c {
            Command::Commit { edits } => Some(edits.iter().map(|new| new.edit.clone()).collect()),
            _ => None,
        });
        found.unwrap_or_default()
    }
    /// The edit handed out, if one was: a batch of one.
    fn commit(&mut self) -> Option<Edit> {
        let mut batch = self.batch();
        assert!(batch.len() < 2, "a batch of {}", batch.len());
        batch.pop()
    }
    fn file(&mut self, pos: Pos, lo: &str, hi: &str) -> FileMeta {
        let id = FileId(self.next_file);
        self.next_file += 1;
        let mut f = FileMeta::new(id, pos, KeyRange::incl(lo.as_bytes(), hi.as_bytes()));
        f.bytes = 1 << 20;
        f.entries = 1000;
        f.seqs = (id.0 * 1000, id.0 * 1000 + 999);
        f.epoch = u64::from(pos.stratum.0);
        f
    }
    fn built(&mut self, job: JobId, pos: Pos, lo: &str, hi: &str) {
        let f = self.file(pos, lo, hi);
        self.on(Event::Built { job, adds: vec![f], flow: None });
    }
    /// A whole flush over [lo..hi].
    fn flush(&mut self, mem: u64, lo: &str, hi: &str) {
        self.freeze(mem);
        let (job, _, out) = self.flush_job().unwrap();
        self.built(job, out, lo, hi);
        self.commit().unwrap();
        self.on(Event::EditSynced);
    }
}

#[test]
fn flushes_commit_in_freeze_order() {
    let mut w = World::new(0);
    w.freeze(1);
    w.freeze(2);
    let (first, _, out1) = w.flush_job().unwrap();
    let (second, _, out2) = w.flush_job().unwrap();
    assert!(out2.is_newer_than(out1), "strata are reserved at the freeze");
    w.built(second, out2, "a", "m");
    assert!(w.commit().is_none(), "the older flush is not built yet");
    w.built(first, out1, "a", "z");
    let batch = w.batch();
    let order: Vec<_> = batch.iter().map(|e| (e.job, e.log_number)).collect();
    assert_eq!(order, [(Some(first), Some(2)), (Some(second), Some(3))], "both with one sync");
    w.on(Event::EditSynced);
    assert_eq!((w.core.frozen(), w.core.jobs()), (0, 0));
    assert_eq!(w.core.version().level(0).runs().len(), 2);
}

#[test]
fn what_is_built_meanwhile_waits_for_the_next_batch() {
    let mut w = World::new(0);
    w.freeze(1);
    w.freeze(2);
    let (first, _, out1) = w.flush_job().unwrap();
    let (second, _, out2) = w.flush_job().unwrap();
    w.built(first, out1, "a", "m");
    assert_eq!(w.commit().unwrap().job, Some(first));
    w.built(second, out2, "a", "m");
    assert!(w.commit().is_none(), "one batch at a time");
    w.on(Event::EditSynced);
    assert_eq!(w.commit().unwrap().job, Some(second));
}

#[test]
fn a_failed_flush_backs_off_and_keeps_its_age() {
    let mut w = World::new(0);
    w.freeze(1);
    let (job, _, out) = w.flush_job().unwrap();
    w.on(Event::Failed { job, error: Error::new(ErrorKind::NoSpace, "full") });
    assert!(w.flush_job().is_none(), "not at once");
    assert!(w.core.read_only().is_none());
    w.now += crate::retry::LONGEST;
    w.on(Event::Tick);
    let (_, mem, again) = w.flush_job().unwrap();
    assert_eq!((mem, again), (MemId(1), out));
}

#[test]
fn a_compaction_runs_from_plan_to_install() {
    let mut w = World::new(1);
    w.flush(1, "a", "m");
    assert!(w.compaction().is_none(), "one run is below the trigger");
    w.flush(2, "c", "z");
    let (job, spec) = w.compaction().unwrap();
    assert_eq!((spec.inputs.len(), spec.out), (2, Pos::base(1)));
    assert_eq!(w.core.in_flight().len(), 1);
    w.built(job, Pos::base(1), "a", "z");
    assert_eq!(w.commit().unwrap().deletes.len(), 2);
    w.on(Event::EditSynced);
    let obsolete = w.take(|c| match c {
        Command::Install { obsolete, .. } if !obsolete.is_empty() => Some(obsolete.len()),
        _ => None,
    });
    assert_eq!(obsolete, Some(2));
    assert!(w.core.is_idle());
    assert_eq!(w.core.version().file_count(), 1);
}

#[test]
fn a_failed_compaction_unlocks_its_inputs() {
    let mut w = World::new(1);
    w.flush(1, "a", "m");
    w.flush(2, "c", "z");
    let (job, _) = w.compaction().unwrap();
    let error = Error::new(ErrorKind::Io, "read failed");
    w.on(Event::Failed { job, error: error.clone() });
    assert!(w.core.in_flight().is_empty());
    w.on(Event::Failed { job, error }); // a late echo changes nothing
    w.now += crate::retry::LONGEST;
    w.on(Event::Tick);
    assert!(w.compaction().is_some(), "it is tried again");
}

#[test]
fn corruption_stops_writes_and_manual_compactions() {
    let mut w = World::new(1);
    w.flush(1, "a", "m");
    w.flush(2, "c", "z");
    let (job, _) = w.compaction().unwrap();
    w.on(Event::Manual { id: 7, request: ManualRequest::new(None) });
    w.on(Event::Failed { job, error: Error::corruption("bad block") });
    assert!(w.core.read_only().is_some());
    assert!(w.log.iter().any(|c| matches!(c, Command::ReadOnly { .. })));
    let done = w.take(|c| match c {
        Command::RequestDone { id: 7, result } => Some(result.is_err()),
        _ => None,
    });
    assert_eq!(done, Some(true));
}

#[test]
fn an_edit_of_unknown_fate_keeps_everything() {
    let mut w = World::new(0);
    w.freeze(1);
    let (job, _, out) = w.flush_job().unwrap();
    w.built(job, out, "a", "z");
    w.commit().unwrap();
    w.on(Event::EditFailed { error: Error::new(ErrorKind::OutcomeUnknown, "fsync failed") });
    assert!(w.core.read_only().is_some());
    assert!(!w.log.iter().any(|c| matches!(c, Command::Install { .. })));
    assert_eq!(w.core.frozen(), 1, "the memtable still serves reads");
    assert_eq!(w.core.jobs(), 0, "nothing keeps a close waiting");
    w.on(Event::Tick);
    assert!(w.flush_job().is_none(), "no edit could make it count");
}

#[test]
fn an_edit_waits_for_space_and_is_handed_out_again() {
    let mut w = World::new(0);
    w.freeze(1);
    let (job, _, out) = w.flush_job().unwrap();
    w.built(job, out, "a", "z");
    let edit = w.commit().unwrap();
    w.on(Event::EditFailed { error: Error::new(ErrorKind::NoSpace, "full") });
    assert!(w.core.read_only().is_none());
    assert!(w.commit().is_none(), "not at once");
    let trouble = w.take(|c| match c {
        Command::FlushesFail(t) => Some(t.clone()),
        _ => None,
    });
    assert_eq!(trouble.unwrap().unwrap().kind(), ErrorKind::NoSpace);
    assert_eq!(w.core.failed_flushes().0, 1);
    w.now += crate::retry::LONGEST;
    w.on(Event::Tick);
    assert_eq!(w.commit().unwrap(), edit, "the same edit");
    assert!(w.flush_job().is_none(), "its files are there, nothing is flushed again");
    w.on(Event::EditSynced);
    assert_eq!(w.core.frozen(), 0);
    assert!(w.log.iter().any(|c| matches!(c, Command::FlushesFail(None))));
    assert!(w.core.failed_flushes().1.is_none());
}

#[test]
fn closing_does_not_wait_for_space() {
    let mut w = World::new(0);
    w.freeze(1);
    let (job, _, out) = w.flush_job().unwrap();
    w.built(job, out, "a", "z");
    w.on(Event::Closing);
    w.on(Event::EditFailed { error: Error::new(ErrorKind::NoSpace, "full") });
    assert_eq!(w.core.jobs(), 0);
    w.now += crate::retry::LONGEST;
    w.on(Event::Tick);
    assert!(w.flush_job().is_none());
}

#[test]
fn a_failed_manual_compaction_is_told() {
    let mut w = World::new(1);
    w.on(Event::AutoCompaction { on: false });
    w.flush(1, "a", "m");
    w.flush(2, "c", "z");
    w.on(Event::Manual { id: 7, request: ManualRequest::new(None) });
    let (job, _) = w.compaction().unwrap();
    w.on(Event::Failed { job, error: Error::new(ErrorKind::Io, "read failed") });
    let told = w.take(|c| match c {
        Command::RequestDone { id: 7, result } => Some(result.is_err()),
        _ => None,
    });
    assert_eq!(told, Some(true));
    assert!(w.core.read_only().is_none());
}

#[test]
fn who_waits_for_a_commit_that_finds_no_space_is_told() {
    let mut w = World::new(1);
    w.on(Event::AutoCompaction { on: false });
    w.flush(1, "a", "m");
    w.flush(2, "c", "z");
    w.on(Event::Manual { id: 7, request: ManualRequest::new(None) });
    let (job, spec) = w.compaction().unwrap();
    w.built(job, spec.out, "a", "z");
    let told = |c: &Command| match c {
        Command::RequestDone { id: 7, result } => Some(result.clone().unwrap_err().kind()),
        _ => None,
    };
    for tries in 1..=3 {
        assert_eq!(
            (w.take(told), w.core.compaction_failure().is_some()),
            (None, false),
            "after {tries} tries"
        );
        assert!(w.commit().is_some());
        w.on(Event::EditFailed { error: Error::new(ErrorKind::NoSpace, "full") });
        w.now += crate::retry::LONGEST;
        w.on(Event::Tick);
    }
    assert_eq!(w.take(told), Some(ErrorKind::NoSpace));
    assert_eq!(w.core.failed_compactions(), 3);
    assert!(
        w.core.compaction_failure().is_some(),
        "callers that wait for the work to end are told"
    );
    assert!(w.commit().is_some(), "it is tried on");
    w.on(Event::EditSynced);
    assert!(w.core.compaction_failure().is_none());
}

#[test]
fn pressure_is_told_when_it_changes() {
    let mut w = World::new(0);
    let told = |w: &mut World| {
        w.take(|c| match c {
            Command::Stall(p) => Some(p.clone()),
            _ => None,
        })
    };
    w.freeze(1);
    let slow = told(&mut w).unwrap();
    assert!(slow.memory.is_some() && slow.cause().is_none(), "one memtable is left");
    w.freeze(2);
    assert_eq!(told(&mut w).unwrap().stop, Some(Cause::MemtableLimit));
    let (job, _, out) = w.flush_job().unwrap();
    w.built(job, out, "a", "z");
    w.on(Event::EditSynced);
    let again = told(&mut w).unwrap();
    assert!(again.memory.is_some() && again.cause().is_none(), "the second is being flushed");
    let (job, _, out) = w.flush_job().unwrap();
    w.built(job, out, "a", "z");
    w.on(Event::EditSynced);
    assert_eq!(told(&mut w), Some(Pressure::default()));
}

#[test]
fn closing_aborts_what_runs_and_starts_nothing() {
    let mut w = World::new(1);
    w.flush(1, "a", "m");
    w.flush(2, "c", "z");
    let (job, _) = w.compaction().unwrap();
    w.on(Event::Closing);
    assert!(w.log.iter().any(|c| matches!(c, Command::Abort { job: j } if *j == job)));
    w.on(Event::Failed { job, error: Error::new(ErrorKind::ShuttingDown, "closing") });
    w.now += crate::retry::LONGEST;
    w.on(Event::Tick);
    assert!(w.compaction().is_none());
    assert!(w.core.is_idle());
}

/// A flush that is built waits for an older one; if that one failed and the database closes, it
/// will never be tried again.
#[test]
fn closing_gives_up_flushes_behind_a_failed_one() {
    let mut w = World::new(1);
    w.freeze(1);
    w.freeze(2);
    let (first, ..) = w.flush_job().unwrap();
    let (second, _, pos) = w.flush_job().unwrap();
    w.built(second, pos, "a", "m");
    w.on(Event::Failed { job: first, error: Error::new(ErrorKind::Io, "no luck") });
    assert_eq!(w.core.jobs(), 1, "the second waits for the first");
    w.on(Event::Closing);
    assert_eq!(w.core.jobs(), 0);
    assert!(w.commit().is_none());
}

/// The same if the older one still runs when the close begins.
#[test]
fn closing_gives_up_flushes_behind_one_that_fails() {
    let mut w = World::new(1);
    w.freeze(1);
    w.freeze(2);
    let (first, ..) = w.flush_job().unwrap();
    let (second, _, pos) = w.flush_job().unwrap();
    w.built(second, pos, "a", "m");
    w.on(Event::Closing);
    assert_eq!(w.core.jobs(), 2);
    w.on(Event::Failed { job: first, error: Error::new(ErrorKind::Io, "no luck") });
    assert_eq!(w.core.jobs(), 0);
}

/// Callers of manual compactions are told that none of it will happen.
#[test]
fn closing_ends_manual_compactions_that_have_not_begun() {
    let done = |c: &Command| match c {
        Command::RequestDone { id, result } => Some((*id, result.clone())),
        _ => None,
    };
    let mut w = World::new(1);
    w.flush(1, "a", "m");
    w.flush(2, "a", "m");
    let (job, _) = w.compaction().expect("two runs trigger a compaction");
    w.on(Event::Manual { id: 7, request: ManualRequest::new(None) });
    assert!(w.take(done).is_none());
    w.on(Event::Closing);
    w.on(Event::Failed { job, error: Error::new(ErrorKind::ShuttingDown, "called off") });
    let (id, result) = w.take(done).expect("told");
    assert_eq!((id, result.unwrap_err().kind()), (7, ErrorKind::ShuttingDown));
    w.on(Event::Manual { id: 8, request: ManualRequest::new(None) });
    assert_eq!(w.take(done).expect("told at once").0, 8);
}

/// After a panic nothing is started or committed, jobs at work may end, and callers that wait are told.
#[test]
fn a_halted_core_only_lets_jobs_end() {
    let mut w = World::new(1);
    w.freeze(1);
    w.freeze(2);
    let (first, _, pos) = w.flush_job().unwrap();
    let (second, ..) = w.flush_job().unwrap();
    w.built(first, pos, "a", "m");
    assert!(w.commit().is_some());
    let told = w.core.halt(Error::new(ErrorKind::Internal, "a panic"));
    assert!(matches!(told[..], [Command::ReadOnly { .. }]));
    assert_eq!(w.core.jobs(), 1, "the second flush is at work");
    w.on(Event::EditSynced);
    w.freeze(3);
    w.on(Event::Tick);
    w.built(second, pos, "a", "m");
    assert_eq!(w.core.jobs(), 0);
    assert!(w.commit().is_none() && w.flush_job().is_none());
    w.on(Event::Manual { id: 1, request: ManualRequest::new(None) });
    assert!(matches!(w.log.pop(), Some(Command::RequestDone { id: 1, result: Err(_) })));
}

/// One slot while nothing presses, all of them for L0 that grows, for memtables that wait and for
/// anyone who waits for the work to end.
#[test]
fn slots_follow_the_pressure() {
    let mut w = World::new(4);
    let slots = |w: &World| w.core.limits(w.now).slots_free;
    assert_eq!(slots(&w), 4, "a caller may wait");
    w.on(Event::Awaited { by: 0 });
    assert_eq!(slots(&w), 1);
    w.on(Event::Awaited { by: 2 });
    assert_eq!(slots(&w), 4);
    w.on(Event::Awaited { by: 0 });
    w.on(Event::AutoCompaction { on: false });
    for mem in 1..=3 {
        assert_eq!(slots(&w), 1);
        w.flush(mem, "a", "m");
        if mem == 1 {
            assert_eq!(slots(&w), 4, "a memtable was filled just now");
        }
        w.now += schedule::BUSY;
    }
    assert_eq!(slots(&w), 4, "L0 is three deep, between its trigger and a slow-down");
    let mut w = World::new(4);
    w.on(Event::Awaited { by: 0 });
    w.freeze(1);
    w.freeze(2);
    w.now += schedule::BUSY;
    assert_eq!(slots(&w), 4, "writers wait for memtables");
    let mut w = World::with_tree(4, &[(Pos::base(1), "a", "m"), (Pos::base(2), "c", "z")]);
    w.on(Event::Awaited { by: 0 });
    w.on(Event::Manual { id: 1, request: ManualRequest::new(None) });
    w.compaction().expect("the manual one");
    assert_eq!(slots(&w), 3, "a caller waits for a manual compaction");
}

/// Bytes have a price while writers keep compactions busy, and none for a caller who waits for all work.
#[test]
fn nothing_is_held_back_from_a_caller_who_waits() {
    let mut w = World::new(2);
    w.core.options.plan.policy = lithify_plan::PolicyKind::Adaptive;
    w.on(Event::Awaited { by: 0 });
    let now = 1_000_000_000;
    w.core.resources.meter.pass(2, now);
    w.core.resources.meter.frozen(1 << 20, now);
    assert!(w.core.load(now).price > 0);
    w.core.resources.awaited = 1;
    assert_eq!(w.core.load(now).price, 0);
}

/// Two levels go down beside each other; then L0 wants to and can't, because one of them holds a
/// file of L1. That one becomes as urgent, and is so no longer when nothing waits for it.
#[test]
fn a_job_in_the_way_inherits_urgency() {
    let hurried = |c: &Command| match c {
        Command::Hurry { job, prio } => Some((*job, *prio)),
        _ => None,
    };
    let tree = [
        (Pos::base(1), "a", "f"),
        (Pos::base(1), "g", "m"),
        (Pos::base(2), "a", "f"),
        (Pos::base(2), "g", "m"),
    ];
    let mut w = World::with_tree(2, &tree);
    w.core.options.plan.level_base_bytes = 1 << 18;
    w.on(Event::Tick);
    let (one, spec) = w.compaction().expect("L1 is over target");
    let (two, _) = w.compaction().expect("both its files are");
    assert_eq!(
        (spec.kind, spec.prio, spec.hull.lo.to_vec()),
        (Kind::Down, Prio::Normal, b"a".to_vec())
    );
    assert!(w.take(hurried).is_none(), "nothing is in anyone's way");
    w.flush(1, "b", "c");
    assert_eq!(w.take(hurried), Some((one, Prio::High)));
    assert!(w.take(hurried).is_none(), "the other one is not in the way");
    w.built(two, Pos::base(2), "g", "m");
    assert!(w.commit().is_some());
    assert_eq!(
        w.take(hurried),
        Some((one, Prio::Normal)),
        "it runs alone, with no other to overtake"
    );
}

/// Under the round-robin priority each commit says where the next one goes on; it is part of the tree,
/// and so of what the next open finds. Others say nothing.
#[test]
fn round_robin_goes_on_where_it_ended() {
    for pri in [CompactionPri::RoundRobin, CompactionPri::MinOverlappingRatio] {
        let files = [("a", "c"), ("f", "h"), ("m", "p"), ("s", "t")];
        let tree: Vec<(Pos, &str, &str)> = files
            .iter()
            .flat_map(|&(lo, hi)| [(Pos::base(1), lo, hi), (Pos::base(2), lo, hi)])
            .collect();
        let mut w = World::with_tree(1, &tree);
        w.core.options.plan.pri = pri;
        // Two files too many; the least below a file is the same everywhere.
        w.core.options.plan.level_base_bytes = 3 << 20;
        w.core.options.plan.max_compaction_bytes = 1;
        w.on(Event::Tick);
        let (job, spec) = w.compaction().expect("L1 is over target");
        assert_eq!(&*spec.hull.lo, b"a");
        let made = w.file(Pos::base(2), "a", "c");
        w.on(Event::Built { job, adds: vec![made], flow: None });
        let edits = w.batch();
        let cursors =
            if pri == CompactionPri::RoundRobin { vec![(1, Key::from(&b"f"[..]))] } else { vec![] };
        assert_eq!(edits[0].cursors, cursors);
        w.on(Event::EditSynced);
        assert_eq!(w.core.version().cursor(1).is_some(), pri == CompactionPri::RoundRobin);
        // What is left is read by any planner, here the next one over the same tree.
        let again = Core::new(w.core.options.clone(), w.core.version().clone(), 200);
        let mut w = World { core: again, ..w };
        w.core.options.plan.level_base_bytes = 1 << 20;
        w.on(Event::Tick);
        let (_, spec) = w.compaction().expect("L1 is over target again");
        assert_eq!(&*spec.hull.lo, b"f", "{pri:?}");
    }
}

/// What a job made that is given up with the one it followed is deleted, unless a crash may have put
/// its edit into effect; so is what a job makes that was given up while it ran.
#[test]
fn what_given_up_jobs_made_is_deleted() {
    let discarded = |c: &Command| match c {
        Command::Discard { files } => Some(files.clone()),
        _ => None,
    };
    let tree = [(Pos::base(1), "a", "f"), (Pos::base(2), "a", "f"), (Pos::base(2), "g", "m")];
    let mut w = World::with_tree(1, &tree);
    w.core.options.plan.level_base_bytes = 1 << 18;
    w.on(Event::Tick);
    let (job, spec) = w.compaction().expect("L1 is over target");
    let follower = |n: u64| {
        let spec = lithify_plan::JobSpec { after: vec![job], ..(*spec).clone() };
        (JobId(n), Arc::new(spec))
    };
    let moved = w.core.version().files().last().unwrap().clone();
    let (made, known) = (w.file(Pos::base(3), "g", "m"), w.file(Pos::base(3), "n", "z"));
    let edit = Edit {
        adds: vec![made.clone(), moved.moved(Pos::base(3))],
        deletes: vec![(moved.pos, moved.id)],
        ..Edit::new(CfId(0))
    };
    let (built, follows) = follower(90);
    w.core.jobs.add_built(built, follows, vec![moved], edit);
    let (handed_out, follows) = follower(91);
    let edit = Edit { adds: vec![known], ..Edit::new(CfId(0)) };
    w.core.jobs.add_built(handed_out, follows, Vec::new(), edit);
    let edit = w.core.jobs.commit(handed_out);
    w.core.jobs.uncommit(handed_out, edit);
    let (running, follows) = follower(92);
    w.core.jobs.add_compaction(running, follows, Vec::new());

    w.on(Event::Failed { job, error: Error::new(ErrorKind::Io, "the disk said no") });
    assert_eq!(w.core.jobs(), 0);
    assert_eq!(w.take(discarded), Some(vec![made.id]));
    let late = w.file(Pos::base(3), "n", "z");
    w.on(Event::Built { job: running, adds: vec![late.clone()], flow: None });
    assert_eq!(w.take(discarded), Some(vec![late.id]));
    assert_eq!(w.take(discarded), None);
}

/// Why compactions get nowhere, or that they get on again.
fn stuck(c: &Command) -> Option<Option<ErrorKind>> {
    match c {
        Command::CompactionsFail(error) => Some(error.as_ref().map(Error::kind)),
        _ => None,
    }
}

/// Writers who wait for a compaction that fails again and again are told, and told when it works.
#[test]
fn compactions_that_get_nowhere_are_told() {
    let mut w = World::new(1);
    w.flush(1, "a", "m");
    w.flush(2, "c", "z");
    for attempt in 1..=3 {
        assert!(w.take(stuck).is_none(), "{attempt} attempts are no habit");
        let (job, _) = w.compaction().unwrap();
        w.on(Event::Failed { job, error: Error::new(ErrorKind::Io, "bad luck") });
        w.now += crate::retry::LONGEST;
        w.on(Event::Tick);
    }
    assert_eq!(w.take(stuck), Some(Some(ErrorKind::Io)));
    w.flush(3, "a", "m");
    assert!(w.take(stuck).is_none(), "a flush proves nothing");
    let (job, _) = w.compaction().unwrap();
    w.built(job, Pos::base(1), "a", "z");
    w.commit().unwrap();
    w.on(Event::EditSynced);
    assert_eq!(w.take(stuck), Some(None));
}

/// What failed again and again is not wanted any more: compactions no longer get nowhere.
#[test]
fn compactions_that_are_not_wanted_any_more_do_not_fail() {
    let mut w = World::new(1);
    w.flush(1, "a", "m");
    w.flush(2, "c", "z");
    for _ in 0..3 {
        w.now += crate::retry::LONGEST;
        w.on(Event::Tick);
        let (job, _) = w.compaction().unwrap();
        w.on(Event::Failed { job, error: Error::new(ErrorKind::Io, "bad luck") });
    }
    assert_eq!(w.take(stuck), Some(Some(ErrorKind::Io)));
    w.on(Event::AutoCompaction { on: false });
    w.now += crate::retry::LONGEST;
    w.on(Event::Tick);
    assert_eq!(w.take(stuck), Some(None));
}

/// Flushes that fail still do once the edit of something else is durable.
#[test]
fn a_commit_does_not_make_flushes_work() {
    let told = |c: &Command| match c {
        Command::FlushesFail(error) => Some(error.as_ref().map(Error::kind)),
        _ => None,
    };
    let mut w = World::new(1);
    w.flush(1, "a", "m");
    w.flush(2, "c", "z");
    let (compaction, _) = w.compaction().unwrap();
    w.freeze(3);
    let (flush, ..) = w.flush_job().unwrap();
    w.on(Event::Failed { job: flush, error: Error::new(ErrorKind::Io, "bad luck") });
    assert_eq!(w.take(told), Some(Some(ErrorKind::Io)));
    w.built(compaction, Pos::base(1), "a", "z");
    w.commit().expect("the compaction commits");
    w.on(Event::EditSynced);
    assert_eq!(w.take(told), None);
    w.now += crate::retry::LONGEST;
    w.on(Event::Tick);
    let (flush, _, pos) = w.flush_job().expect("it is tried again");
    w.built(flush, pos, "a", "b");
    w.commit().expect("the flush commits");
    w.on(Event::EditSynced);
    assert_eq!(w.take(told), Some(None));
}

/// A second job of a request that has failed does not fail the next one.
#[test]
fn each_manual_compaction_fails_by_its_own_jobs() {
    let told = |c: &Command| match c {
        Command::RequestDone { id, result } => Some((*id, result.is_ok())),
        _ => None,
    };
    let mut w = World::with_tree(2, &[(Pos::base(1), "a", "c"), (Pos::base(1), "m", "p")]);
    let anew = ManualRequest {
        rewrite_before: Some(FileId(1 << 20)),
        max_job_bytes: 1,
        ..ManualRequest::new(None)
    };
    w.on(Event::Manual { id: 1, request: anew.clone() });
    w.on(Event::Manual { id: 2, request: anew });
    let jobs = [w.compaction().expect("one").0, w.compaction().expect("the other").0];
    for job in jobs {
        w.on(Event::Failed { job, error: Error::new(ErrorKind::Io, "bad luck") });
    }
    assert_eq!(w.take(told), Some((1, false)));
    assert_eq!(w.take(told), None, "nothing was begun for the second");
}

/// A defect in how edits are applied shows at the install that makes it.
#[test]
#[should_panic(expected = "after an install")]
fn an_install_is_checked() {
    let mut w = World::new(1);
    w.flush(1, "a", "m");
    w.flush(2, "c", "z");
    let (job, spec) = w.compaction().unwrap();
    // A second job over the same inputs: both hold them.
    let inputs = jobs::inputs(w.core.version(), &spec);
    w.core.jobs.add_compaction(JobId(job.0 + 1), spec, inputs);
    w.core.next_job += 1;
    w.flush(3, "c", "d");
}
