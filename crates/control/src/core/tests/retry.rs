//! When what failed is tried again: each kind of work by its own failures.

use super::*;

const MS: u64 = 1_000_000;

impl World {
    fn fail(&mut self, job: JobId) {
        self.on(Event::Failed { job, error: Error::new(ErrorKind::Io, "bad luck") });
    }
    /// Lets so many milliseconds pass.
    fn pass(&mut self, ms: u64) {
        self.now += ms * MS;
        self.on(Event::Tick);
    }
}

/// A world in which a caller wants what is rewritten for ever, and a memtable is being flushed; with the
/// jobs of both.
fn with_both() -> (World, JobId, JobId) {
    let mut w = World::with_tree(1, &[(Pos::base(1), "a", "z")]);
    let anew = ManualRequest { rewrite_before: Some(FileId(1 << 20)), ..ManualRequest::new(None) };
    w.on(Event::Manual { id: 7, request: anew });
    let (compaction, _) = w.compaction().expect("the caller wants it");
    w.freeze(1);
    let (flush, ..) = w.flush_job().expect("a memtable waits");
    (w, compaction, flush)
}

/// Flushes between them, and their edits, say nothing of compactions that fail.
#[test]
fn a_flush_that_works_does_not_hasten_compactions_that_fail() {
    let mut w = World::new(1);
    w.flush(1, "a", "m");
    w.flush(2, "c", "z");
    let mut waits = Vec::new();
    for mem in 3..7 {
        let (job, _) = w.compaction().expect("it is tried again");
        w.fail(job);
        w.flush(mem, "a", "z");
        let mut waited = 0;
        while w.core.in_flight().is_empty() {
            w.pass(100);
            waited += 100;
        }
        waits.push(waited);
    }
    assert_eq!(waits, [200, 400, 800, 1600]);
}

/// Nor does one that works hasten flushes, and those that fail are no reason for compactions to wait, or for
/// their callers to be told.
#[test]
fn compactions_and_flushes_that_fail_go_their_own_ways() {
    let (mut w, mut compaction, mut flush) = with_both();
    for wait in [100, 200, 400, 800, 1600] {
        w.fail(flush);
        w.built(compaction, Pos::base(1), "a", "z");
        w.commit().expect("the compaction commits");
        w.on(Event::EditSynced);
        (compaction, _) = w.compaction().expect("the next one begins at once");
        w.pass(wait - 1);
        assert!(w.flush_job().is_none(), "{wait} ms are not over");
        w.pass(1);
        (flush, ..) = w.flush_job().expect("it is tried again");
    }
    let told = w.log.iter().any(|c| matches!(c, Command::RequestDone { .. }));
    assert!(!told, "the compaction gets on");
}

/// A report of a job that was given up says nothing of those that follow.
#[test]
fn what_was_called_off_hastens_nothing() {
    let (mut w, compaction, _) = with_both();
    w.fail(compaction);
    let failed = w.core.retry.compactions.failures();
    w.built(compaction, Pos::base(1), "a", "z");
    assert_eq!((failed, w.core.retry.compactions.failures()), (1, 1));
}

/// Tables that can be written do not show that the manifest has room.
#[test]
fn a_flush_that_works_does_not_hasten_edits_that_find_no_room() {
    let mut w = World::new(0);
    w.freeze(0);
    let (job, _, out) = w.flush_job().unwrap();
    w.built(job, out, "a", "z");
    for (mem, wait) in (1..).zip([200, 400, 800]) {
        assert!(!w.batch().is_empty());
        w.on(Event::EditFailed { error: Error::new(ErrorKind::NoSpace, "full") });
        w.freeze(mem);
        let (job, _, out) = w.flush_job().unwrap();
        w.built(job, out, "a", "z");
        w.pass(wait - 1);
        assert!(w.batch().is_empty(), "{wait} ms are not over");
        w.pass(1);
    }
    assert!(!w.batch().is_empty(), "they are handed out again");
}
