//! Changes from outside: placed over promises, given up when they can't be written, and told once.

use std::sync::Arc;

use lithify_base::{Error, ErrorKind, KeyRange, Pos};
use lithify_lsm::{FileMeta, FileRef};
use lithify_plan::{Cost, CutPolicy, JobSpec, JobState, Kind, Prio, Reason};

use super::World;
use crate::{Command, Event, Outside};

fn done(w: &mut World, wanted: u64) -> Option<Option<ErrorKind>> {
    w.take(|c| match c {
        Command::RequestDone { id, result } if *id == wanted => {
            Some(result.as_ref().err().map(Error::kind))
        }
        _ => None,
    })
}

fn installed(w: &mut World) -> bool {
    w.take(|c| matches!(c, Command::Install { .. }).then_some(())).is_some()
}

/// The promise of each is part of the commit, not that of the first alone.
#[test]
fn several_tables_commit_together() {
    let mut w = World::new(0);
    let files = vec![w.file(Pos::base(6), "a", "c"), w.file(Pos::base(6), "m", "p")];
    w.on(Event::Outside { id: 1, request: Outside::Ingest { files } });
    let states: Vec<_> = w.core.in_flight().iter().map(|f| f.state).collect();
    assert_eq!(states, [JobState::Committing; 2]);
}

/// A table over a gap of a compaction's inputs goes on top of what that will write there.
#[test]
fn a_table_goes_on_top_of_a_promise() {
    let tree = [(Pos::new(0, 9), "a", "f"), (Pos::new(0, 8), "p", "z")];
    let mut w = World::with_tree(0, &tree);
    let inputs: Vec<_> = w.core.version().files().cloned().collect();
    let spec = JobSpec {
        kind: Kind::Down,
        inputs: inputs.iter().map(|f| f.id).collect(),
        out: Pos::base(1),
        hull: KeyRange::incl(&b"a"[..], &b"z"[..]),
        cuts: CutPolicy::default(),
        after: Vec::new(),
        prio: Prio::Normal,
        est: Cost::default(),
        reason: Reason::Said("for a test".to_owned()),
    };
    let job = w.core.job_id();
    w.core.jobs.add_compaction(job, Arc::new(spec), inputs);
    let table = w.file(Pos::new(0, 0), "h", "j");
    w.on(Event::Outside { id: 5, request: Outside::Ingest { files: vec![table] } });
    let edit = w.commit().expect("it has nothing to wait for");
    assert_eq!(edit.adds[0].pos, Pos::new(1, 1));
    assert_eq!(done(&mut w, 5), None, "not before it is in the tree");
    w.on(Event::EditSynced);
    assert!(installed(&mut w));
    assert_eq!(done(&mut w, 5), Some(None));
    w.built(job, Pos::base(1), "a", "z");
    w.commit().expect("the compaction commits below the table");
    w.on(Event::EditSynced);
    assert!(installed(&mut w));
}

/// In level 0 all tables of one call share a stratum, above every memtable frozen before.
#[test]
fn tables_over_level_0_are_its_newest() {
    let mut w = World::new(0);
    w.flush(1, "a", "z");
    w.freeze(2);
    let files = ["b", "d"].map(|k| w.file(Pos::new(0, 0), k, k)).to_vec();
    let (_, _, flushed) = w.flush_job().unwrap();
    w.on(Event::Outside { id: 1, request: Outside::Ingest { files } });
    let edit = w.commit().unwrap();
    assert_eq!(edit.adds[0].pos, edit.adds[1].pos);
    assert!(edit.adds[0].pos.level == 0 && edit.adds[0].pos.is_newer_than(flushed));
    w.on(Event::EditSynced);
    w.freeze(3);
    let (_, _, next) = w.flush_job().unwrap();
    assert!(next.is_newer_than(edit.adds[0].pos));
}

/// One that a full disk kept out of the manifest is not tried again, and its caller is told that
/// its outcome is not known.
#[test]
fn what_could_not_be_written_is_given_up() {
    let mut w = World::new(0);
    let files = vec![w.file(Pos::new(0, 0), "b", "c")];
    w.on(Event::Outside { id: 1, request: Outside::Ingest { files } });
    assert!(w.commit().is_some());
    w.on(Event::EditFailed { error: Error::new(ErrorKind::NoSpace, "full") });
    assert_eq!(done(&mut w, 1), Some(Some(ErrorKind::OutcomeUnknown)));
    w.now += crate::retry::LONGEST;
    w.on(Event::Tick);
    assert!(w.commit().is_none());
    assert_eq!((w.core.jobs(), w.core.in_flight().len()), (0, 0));
    // Nor is one that the manifest's end took along.
    let files = vec![w.file(Pos::new(0, 0), "b", "c")];
    w.on(Event::Outside { id: 2, request: Outside::Ingest { files } });
    w.commit().unwrap();
    w.on(Event::EditFailed { error: Error::new(ErrorKind::Io, "bad luck") });
    assert_eq!(done(&mut w, 2), Some(Some(ErrorKind::OutcomeUnknown)));
    let ranges = vec![KeyRange::excl(&b"a"[..], &b"z"[..])];
    w.on(Event::Outside { id: 3, request: Outside::Drop { ranges } });
    assert_eq!(done(&mut w, 3), Some(Some(ErrorKind::ReadOnly)));
}

/// Tables go only with all that is older under them, and not from under a compaction.
#[test]
fn what_is_dropped_brings_nothing_back() {
    let tree = [
        (Pos::new(0, 9), "a", "c"),
        (Pos::base(1), "d", "k"),
        (Pos::base(1), "l", "m"),
        (Pos::base(2), "e", "j"),
        (Pos::base(2), "l", "q"),
    ];
    let drop_all = |w: &mut World, to: &str| {
        let ranges = vec![KeyRange::excl(&b"a"[..], to.as_bytes())];
        w.on(Event::Outside { id: 1, request: Outside::Drop { ranges } });
        w.commit().map_or(Vec::new(), |e| e.deletes.iter().map(|(_, id)| id.0).collect())
    };
    let mut w = World::with_tree(0, &tree);
    // L2[l..q] reaches out of the range, and so L1[l..m] stays over it.
    assert_eq!(drop_all(&mut w, "n"), [1, 2, 4]);
    w.on(Event::EditSynced);
    assert!(installed(&mut w));
    assert_eq!(done(&mut w, 1), Some(None));
    assert_eq!(drop_all(&mut w, "z"), [3, 5]);
    w.on(Event::EditSynced);
    assert_eq!(w.core.version().file_count(), 0);
    assert_eq!(drop_all(&mut w, "z"), [0; 0]);
}

/// What was to follow a drop that no manifest has room for is given up with it: it would pass what stays.
#[test]
fn what_follows_a_change_that_is_given_up_is_given_up() {
    let tree = [(Pos::new(0, 5), "m", "n"), (Pos::new(0, 4), "a", "z")];
    let mut w = World::with_tree(0, &tree);
    let dropped: Vec<_> = w.core.version().files().take(1).cloned().collect();
    let spec = |kind, inputs: &[FileRef], out, after| {
        Arc::new(JobSpec {
            kind,
            inputs: inputs.iter().map(|f| f.id).collect(),
            out,
            hull: KeyRange::incl(&b"a"[..], &b"z"[..]),
            cuts: CutPolicy::default(),
            after,
            prio: Prio::Normal,
            est: Cost::default(),
            reason: Reason::Said("for a test".to_owned()),
        })
    };
    let gone = w.core.job_id();
    let gone_spec = spec(Kind::Drop, &dropped, Pos::base(6), Vec::new());
    let edit = crate::jobs::instant_edit(gone, &gone_spec, &dropped);
    w.core.jobs.add_built(gone, gone_spec, dropped, edit);
    w.core.outsiders.asked.insert(gone, 1);
    let older: Vec<_> = w.core.version().files().skip(1).cloned().collect();
    let follower = w.core.job_id();
    w.core.jobs.add_compaction(follower, spec(Kind::Df, &older, Pos::base(1), vec![gone]), older);
    w.on(Event::Tick);
    w.commit().expect("the drop has nothing to wait for");
    w.on(Event::EditFailed { error: Error::new(ErrorKind::NoSpace, "full") });
    assert_eq!(done(&mut w, 1), Some(Some(ErrorKind::OutcomeUnknown)));
    let aborted = w.take(|c| matches!(c, Command::Abort { job } if *job == follower).then_some(()));
    assert!(aborted.is_some(), "it was to follow");
    w.built(follower, Pos::base(1), "a", "z");
    assert!(w.core.read_only().is_none() && w.core.in_flight().is_empty());
}

/// Tables of an ingestion that was refused, or whose outcome was unknown until another edit was durable, are deleted.
#[test]
fn tables_that_did_not_come_in_are_deleted() {
    let mut w = World::new(0);
    let ids = |files: &[FileMeta]| files.iter().map(|f| f.id).collect::<Vec<_>>();
    let deleted = |c: &Command| match c {
        Command::Discard { files } => Some(files.clone()),
        _ => None,
    };
    let files = vec![w.file(Pos::new(0, 0), "b", "c"), w.file(Pos::new(0, 0), "x", "y")];
    let given_up = ids(&files);
    w.on(Event::Outside { id: 1, request: Outside::Ingest { files } });
    w.commit().expect("it is placed");
    w.on(Event::EditFailed { error: Error::new(ErrorKind::NoSpace, "full") });
    assert_eq!(w.take(deleted), None, "the next open may find them in the tree");
    w.now += crate::retry::LONGEST;
    w.flush(1, "a", "b");
    assert_eq!(w.take(deleted), Some(given_up));
    w.on(Event::Closing);
    let files = vec![w.file(Pos::new(0, 0), "b", "c")];
    let refused = ids(&files);
    w.on(Event::Outside { id: 2, request: Outside::Ingest { files } });
    assert_eq!(done(&mut w, 2), Some(Some(ErrorKind::ShuttingDown)));
    assert_eq!(w.take(deleted), Some(refused));
}
