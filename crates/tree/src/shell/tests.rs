//! What threads that overtake each other may and may not do, step by step.

#![allow(clippy::disallowed_methods, reason = "threads of the test's own")]

use std::time::Duration;

use lithify_compact::{JobWork, Outcome};
use lithify_control::Pressure;
use lithify_env::{Env, FaultFs, RtOptions};

use lithify_base::KeyRange;
use lithify_env::sync::atomic::AtomicBool;
use lithify_env::sync::{Mutex, MutexGuard};

use super::*;
use crate::open::{Opened, open as open_database};
use crate::options::{CompactOptions, WriteOptions};
use crate::settings::Settings;
use crate::write::Held;
use lithify_journal::wal::BatchBuilder;
use lithify_opening::{ColumnFamilyOptions, OpenOptions};
use lithify_plan::{Cause, ManualRequest};
use lithify_views::value::Value;

impl Opened {
    fn put(&self, key: &[u8], value: &[u8]) -> Result<()> {
        self.shell.put(key, value, &WriteOptions::default())
    }
    fn get(&self, key: &[u8]) -> Result<Option<Value>> {
        self.shell.get(key, None)
    }
    fn flush(&self) -> Result<()> {
        self.shell.flush()
    }
}

fn world() -> Env {
    Env::in_memory(RtOptions { upkeep_threads: 2, ..RtOptions::default() })
}

fn open() -> Opened {
    open_in(world())
}

fn open_in(env: Env) -> Opened {
    let mut settings = Settings::default();
    settings.auto_compaction = false;
    let with = OpenOptions { env: Some(env), ..OpenOptions::new(settings) };
    open_database(with, "db".as_ref()).unwrap()
}

/// Freezes the memtable; what to wait for.
fn freeze(db: &Opened) -> Option<MemId> {
    let mut held = Held::new(&db.shell, db.shell.take_turn().unwrap());
    db.shell.freeze_for_flush(held.log()).unwrap()
}

/// A memtable whose flush readers do not see yet, and the lock without which they won't. A flush that is shown before the
/// lock is taken is of no use: another one is tried.
fn flush_before_it_is_shown(db: &Opened) -> (Option<MemId>, MutexGuard<'_, ()>) {
    for _ in 0..1000 {
        db.put(b"a", b"1").unwrap();
        let mem = freeze(db);
        let nothing_is_shown = db.shell.family.views.lock.lock();
        if db.shell.family.views.current.load().mems.len() > 1 {
            while db.shell.core().frozen() > 0 {
                std::thread::yield_now();
            }
            return (mem, nothing_is_shown);
        }
    }
    panic!("every flush is shown at once");
}

/// A writer that has to wait long for its rate leaves the turn to those that are not to wait for it.
#[test]
fn a_long_wait_for_a_rate_holds_up_no_sync() {
    let db = open();
    let (shared, gate) = (&db.shell.shared, &db.shell.family.gate);
    let rt = &shared.resources.env.rt;
    let delay = Some((1 << 10, Cause::L0Files));
    gate.press(Pressure { delay, ..Pressure::default() }, rt.now(), &shared.events);
    // This one passes, and the next has to wait for a minute.
    db.put(b"a", &[0; 60 << 10]).unwrap();
    std::thread::scope(|threads| {
        let writer = threads.spawn(|| db.put(b"b", b"1"));
        std::thread::sleep(Duration::from_millis(200));
        let began = rt.now();
        db.shell.sync_log().unwrap();
        let no_wait = WriteOptions { no_wait: true, ..WriteOptions::default() };
        let refused = db.shell.put(b"c", b"1", &no_wait).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Stalled, "{refused}");
        assert!(rt.now().since(began) < Duration::from_secs(20));
        assert!(!writer.is_finished());
        gate.press(Pressure::default(), rt.now(), &shared.events);
        writer.join().unwrap().unwrap();
    });
}

/// A write counts once it is made, and for the memtable it is made in.
#[test]
fn a_write_counts_once_it_is_made() {
    let mut settings = Settings::default();
    (settings.auto_compaction, settings.memtable_bytes) = (false, 1 << 20);
    let with = OpenOptions { env: Some(world()), ..OpenOptions::new(settings) };
    let db = open_database(with, "db".as_ref()).unwrap();
    let (gate, options) = (&db.shell.family.gate, WriteOptions::default());
    let mut batch = BatchBuilder::new();
    batch.put(DEFAULT_CF, b"a", &[0; 700 << 10]);
    let conflict = || Err(Error::new(ErrorKind::Busy, "another was first"));
    db.shell.write_if(&batch, &options, conflict, || ()).unwrap_err();
    assert_eq!(gate.passed(), 0, "nothing was written");
    let write = || {
        db.shell.write_if(&batch, &options, || Ok(()), || ()).unwrap();
        gate.passed() as usize / batch.byte_len()
    };
    assert_eq!((write(), write()), (1, 2));
    assert_eq!((write(), write()), (1, 2), "the memtable was full, and the next one has the batch");
}

/// Two trees are handed out in order, but by threads that may be held up: the second is shown
/// first, and the first must not undo it.
#[test]
fn a_tree_that_comes_late_changes_nothing() {
    let db = open();
    db.put(b"a", b"old").unwrap();
    db.flush().unwrap();
    let (no, late) = {
        let sv = db.shell.super_version();
        (sv.no, sv.tree.version.clone())
    };
    db.put(b"a", b"new").unwrap();
    db.put(b"b", b"new").unwrap();
    db.flush().unwrap();
    db.shell.install(no, late, Some(MemId(1)));
    assert_eq!(db.get(b"a").unwrap().as_deref(), Some(&b"new"[..]));
    assert_eq!(db.get(b"b").unwrap().as_deref(), Some(&b"new"[..]));
}

/// The second tree holds the memtable of the first, too, and with it gone the first's memtable
/// must not come before it.
#[test]
fn a_tree_that_comes_early_takes_older_memtables_along() {
    let db = open();
    db.put(b"a", b"old").unwrap();
    let old = db.shell.super_version().mems[0].clone();
    db.flush().unwrap();
    db.put(b"a", b"new").unwrap();
    db.flush().unwrap();
    let sv = db.shell.super_version();
    // As it was when the older memtable's own tree had not arrived.
    let mut behind = SuperVersion::clone(&sv);
    behind.mems.push(old);
    behind.no -= 1;
    db.shell.family.views.current.store(Arc::new(behind));
    db.shell.install(sv.no, sv.tree.version.clone(), Some(MemId(2)));
    assert_eq!(db.get(b"a").unwrap().as_deref(), Some(&b"new"[..]));
}

/// A flush is over when readers see it in the tree: a checkpoint reads the tree only.
#[test]
fn a_flush_ends_when_its_tree_is_shown() {
    let db = open();
    let (last, nothing_is_shown) = flush_before_it_is_shown(&db);
    let shell = db.shell.clone();
    let waiter = std::thread::spawn(move || shell.wait_flushed(last));
    std::thread::sleep(Duration::from_millis(20));
    assert!(!waiter.is_finished(), "the tree is not shown yet");
    drop(nothing_is_shown);
    waiter.join().unwrap().unwrap();
    let seen = db.shell.super_version();
    assert!(seen.mems.len() == 1 && seen.tree.version.files().count() > 0);
}

/// A panic while commands are carried out ends writes, not reads, and the database closes.
#[test]
fn a_panic_while_carrying_out_commands_halts() {
    let db = open();
    db.put(b"a", b"1").unwrap();
    // A memtable that is not known is to be flushed.
    db.shell.drive(Event::Frozen { mem: MemId(99), bytes: 1, written: 1, log_number: 1 });
    assert_eq!(db.put(b"b", b"1").unwrap_err().kind(), ErrorKind::ReadOnly);
    assert_eq!(db.flush().unwrap_err().kind(), ErrorKind::ReadOnly);
    assert_eq!(
        db.shell.compact(None, &CompactOptions::default()).unwrap_err().kind(),
        ErrorKind::ReadOnly
    );
    assert_eq!(db.get(b"a").unwrap().as_deref(), Some(&b"1"[..]));
    db.close().unwrap();
}

/// A job that followed one that failed was given up, and ends well all the same: a close that waits
/// for what is at work must not miss it.
#[test]
fn a_close_hears_of_jobs_that_were_given_up() {
    let db = open();
    let given_up = JobId(999);
    let control = Arc::new(lithify_compact::JobControl::flush(0));
    db.shell.set_to_work(given_up, control, None);
    let (told, heard) = std::sync::mpsc::channel();
    let shell = db.shell.clone();
    std::thread::spawn(move || told.send(shell.close()));
    std::thread::sleep(Duration::from_millis(50));
    assert!(heard.try_recv().is_err(), "a job is at work");
    let outcome = Outcome { result: Ok(Vec::new()), work: JobWork::default(), flow: None };
    db.shell.compaction_ended(given_up, 1, outcome);
    heard.recv_timeout(Duration::from_secs(10)).expect("the close ends").unwrap();
}

/// Commands are carried out without the core's lock, so a close may find nothing at work between
/// the answer of the core and the job it starts.
#[test]
fn a_close_waits_for_commands_under_way() {
    let db = open();
    let (_, nothing_is_shown) = flush_before_it_is_shown(&db);
    let (told, heard) = std::sync::mpsc::channel();
    let shell = db.shell.clone();
    std::thread::spawn(move || told.send(shell.close()));
    std::thread::sleep(Duration::from_millis(50));
    assert!(heard.try_recv().is_err(), "the flushed tree is not shown yet");
    drop(nothing_is_shown);
    heard.recv_timeout(Duration::from_secs(10)).expect("the close ends").unwrap();
}

/// A halted core knows of no edit that is being written, and the manifest is another owner's once the
/// lock is free.
#[test]
fn a_close_waits_for_edits_being_written() {
    let gate = Arc::new(Mutex::new(()));
    let written = Arc::new(AtomicBool::new(false));
    let Env { fs, rt } = world();
    let fs = {
        let (gate, written) = (gate.clone(), written.clone());
        FaultFs::new(fs, move |op| {
            let manifest = op.path.to_string_lossy().contains("MANIFEST");
            if manifest && op.name == "sync_data" {
                drop(gate.lock());
                written.store(true, Ordering::SeqCst);
            }
            None
        })
    };
    let db = open_in(Env { fs: Arc::new(fs), rt });
    let (told, heard) = std::sync::mpsc::channel();
    {
        let _no_manifest_is_synced = gate.lock();
        db.put(b"a", b"1").unwrap();
        freeze(&db);
        while db.shell.shared.queue.lock().manifest.is_some() {
            std::thread::yield_now();
        }
        // A memtable that is not known.
        db.shell.drive(Event::Frozen { mem: MemId(99), bytes: 1, written: 1, log_number: 1 });
        assert!(db.shell.core().is_halted());
        let shell = db.shell.clone();
        std::thread::spawn(move || told.send(shell.close()));
        std::thread::sleep(Duration::from_millis(50));
        assert!(heard.try_recv().is_err(), "the manifest is being written");
    }
    heard.recv_timeout(Duration::from_secs(10)).expect("the close ends").unwrap();
    assert!(written.load(Ordering::SeqCst));
}

/// A job that followed one that failed was given up, and ends well all the same: what it made goes at
/// once, not with the next open.
#[test]
fn files_of_jobs_that_were_given_up_are_deleted() {
    let db = open();
    let id = db.shell.shared.next_file();
    let path = db.shell.shared.resources.dir.path_of(lithify_journal::files::FileName::Table(id.0));
    db.shell.shared.resources.env.fs.create(&path, lithify_env::OpenOpts::write()).unwrap();
    let given_up = JobId(999);
    db.shell.set_to_work(given_up, Arc::new(lithify_compact::JobControl::flush(0)), None);
    let keys = KeyRange::incl(&b"a"[..], &b"z"[..]);
    let made = lithify_lsm::FileMeta::new(id, lithify_base::Pos::base(1), keys);
    let outcome = Outcome { result: Ok(vec![made]), work: JobWork::default(), flow: None };
    db.shell.compaction_ended(given_up, 1, outcome);
    let late = std::time::Instant::now() + Duration::from_secs(10);
    while db.shell.shared.resources.env.fs.len(&path).unwrap().is_some() {
        assert!(std::time::Instant::now() < late, "the file stays");
        std::thread::sleep(Duration::from_millis(5));
    }
    db.close().unwrap();
}

/// A family is dropped while a compaction of it is at work.
#[test]
fn a_dropped_family_gives_back_what_it_took_of_the_disk() {
    let db = open();
    let a = db.shell.create_family("a", &ColumnFamilyOptions::default()).unwrap();
    a.put(b"k", b"1", &WriteOptions::default()).unwrap();
    a.flush().unwrap();
    let taken = || db.shell.shared.background.disk.taken();
    // The test itself is the worker.
    let request =
        ManualRequest { rewrite_before: Some(FileId(1 << 40)), ..ManualRequest::new(None) };
    let mut started = None;
    a.tell(|core, now| {
        let commands = core.on(Event::Manual { id: 1 << 50, request }, now);
        started = commands.iter().find_map(|c| match c {
            Command::StartCompaction { job, .. } => Some(*job),
            _ => None,
        });
        Vec::new()
    });
    let job = started.expect("a compaction began");
    assert_eq!(taken().running, 1);
    db.shell.drop_family("a").unwrap();
    assert_eq!(taken().running, 0);
    a.drive(Event::Failed { job, error: Error::new(ErrorKind::ShuttingDown, "stopped") });
    assert_eq!((taken().promised, taken().running, taken().busy), (0, 0, 0));
    db.close().unwrap();
}

/// It has the largest memtable, and keeps it.
#[test]
fn a_stopped_family_keeps_no_others_from_being_frozen() {
    let mut settings = Settings::default();
    (settings.memtable_bytes, settings.memtable_count) = (64 << 10, 3);
    let with = OpenOptions { env: Some(world()), ..OpenOptions::new(settings) };
    let db = open_database(with, "db".as_ref()).unwrap();
    let family = |n| db.shell.create_family(&format!("f{n}"), &ColumnFamilyOptions::default());
    let families: Vec<Shell> = (0..21).map(|n| family(n).unwrap()).collect();
    let write = |family: &Shell, n: u32| {
        family.put(&n.to_be_bytes(), &[1; 200], &WriteOptions::default()).unwrap();
    };
    let (stopped, others) = families.split_last().unwrap();
    (0..240).for_each(|n| write(stopped, n));
    let stop = Pressure { stop: Some(Cause::L0Files), ..Pressure::default() };
    let now = db.shell.shared.resources.env.rt.now();
    stopped.family.gate.press(stop, now, &db.shell.shared.events);
    let active = |family: &Shell| family.super_version().mems[0].table.bytes();
    let most = 5 * (64 << 10) + 21 * (16 << 10);
    for n in 0..220 {
        others.iter().for_each(|family| write(family, n));
        let all: usize = families.iter().map(active).sum();
        assert!(all < most, "{all} bytes of active memtables");
    }
    db.close().unwrap();
}
