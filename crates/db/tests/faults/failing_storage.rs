//! Storage that fails (reliability F5, F6, F7, F8, F9, F15, F19, contract P3, P4, P7): a full disk, failing
//! writes, syncs, renames, deletions and reads, each call in turn and for good; a database in
//! use.
//!
//! Every story keeps the journal of [`crate::common::verdict`]: what was acknowledged is there after a
//! reopen, what was refused is not, and nothing is there that never was. A watchdog turns a hang
//! into a failure.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the tests wait for background work and start processes"
)]

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::common::verdict::{Journal, Note, What, judge};
use crate::common::{Content, eager, image, load, scan, tiny, within};
use lithify::{Builder, Db, Durability, Error, ErrorKind, Policy, Settings, WriteOptions};
use lithify_env::{Env, Fault, FaultFs, MemFs, Op, OsRt, RtOptions, RtRef};

const DIRECTORY: &str = "/db";
const LONGEST: Duration = Duration::from_secs(60);

fn runtime() -> RtRef {
    Arc::new(OsRt::new(RtOptions::default()))
}

fn env(fs: &MemFs, rt: &RtRef) -> Env {
    Env { fs: Arc::new(fs.clone()), rt: rt.clone() }
}

/// A file system over `fs` that obeys `rule`.
fn faulty(
    fs: &MemFs,
    rt: &RtRef,
    rule: impl Fn(&Op<'_>) -> Option<Fault> + Send + Sync + 'static,
) -> Env {
    Env { fs: Arc::new(FaultFs::new(Arc::new(fs.clone()), rule)), rt: rt.clone() }
}

fn open(env: Env, settings: Settings) -> lithify::Result<Db> {
    Builder::new(settings).env(env).open(DIRECTORY)
}

/// Operations that one writer has tried, and how they ended.
struct Story {
    journal: Journal,
    next: u32,
    /// How often each kind of error was met.
    errors: BTreeMap<String, u32>,
}

impl Story {
    fn new(round: u64) -> Story {
        let journal = Journal { round, notes: Vec::new() };
        Story { journal, next: 0, errors: BTreeMap::new() }
    }

    /// Tries the next operation. Its error, if any, is one a caller can act on.
    fn step(&mut self, db: &Db) -> lithify::Result<()> {
        let index = self.next;
        self.next += 1;
        let op = load::op(self.journal.round, 0, index);
        let mut note = Note { writer: 0, index, what: What::Begun };
        self.journal.notes.push(note);
        let result = load::run(db, 0, &op);
        match &result {
            Ok(()) => note.what = What::Acknowledged,
            Err(e) => {
                let is_write = op.durability().is_some();
                self.look_at(e, is_write);
                if is_write && e.kind() != ErrorKind::OutcomeUnknown {
                    note.what = What::Refused;
                }
            }
        }
        if note.what != What::Begun {
            self.journal.notes.push(note);
        }
        result
    }

    fn look_at(&mut self, e: &Error, is_write: bool) {
        use ErrorKind::{Io, NoSpace, NotCommitted, OutcomeUnknown, ReadOnly};
        let allowed: &[ErrorKind] = match is_write {
            true => &[NoSpace, NotCommitted, OutcomeUnknown, ReadOnly],
            false => &[NoSpace, NotCommitted, OutcomeUnknown, ReadOnly, Io],
        };
        assert!(allowed.contains(&e.kind()), "round {}: {e:?}", self.journal.round);
        *self.errors.entry(format!("{:?}", e.kind())).or_default() += 1;
    }

    /// Reopens on a sound disk and compares.
    fn check(&self, fs: &MemFs, rt: &RtRef, what: &str) -> Content {
        let db = open(env(fs, rt), tiny()).unwrap_or_else(|e| panic!("{what}: reopen: {e}"));
        let found = scan(&db).unwrap_or_else(|e| panic!("{what}: scan: {e}"));
        judge(&Content::new(), &self.journal, &found).unwrap_or_else(|e| panic!("{what}: {e}"));
        db.put(b"w0/after", b"all").unwrap();
        db.close().unwrap();
        found
    }
}

fn eio() -> Fault {
    io::Error::from_raw_os_error(5).into()
}

fn enospc() -> Fault {
    io::Error::from_raw_os_error(28).into()
}

/// Names of operations that tests let fail.
const NAMES: [&str; 11] = [
    "create",
    "open",
    "write_at",
    "sync_data",
    "sync_all",
    "sync_dir",
    "rename",
    "unlink",
    "read_at",
    "list",
    "set_len",
];

/// The small life that is disturbed: writes, flushes, compactions, a close.
fn life(story: &mut Story, db: &Db) {
    for i in 0..120 {
        let unknown = story.step(db).is_err_and(|e| e.kind() == ErrorKind::OutcomeUnknown);
        let end = i % 40 == 39;
        if end && let Err(e) = db.flush() {
            story.look_at(&e, false);
        }
        if i == 79
            && let Err(e) = db.compact_range(None, None)
        {
            story.look_at(&e, false);
        }
        if unknown {
            // Read-only from here on, or until there is space; reads go on.
            let later = db.put(b"w0/later", b"x").unwrap_err();
            let kinds = [ErrorKind::ReadOnly, ErrorKind::NoSpace];
            assert!(kinds.contains(&later.kind()), "{later:?}");
            break;
        }
    }
}

/// Lives under `policy`, reads, closes and reopens with `rule` in force from the first open on.
fn disturbed(
    round: u64,
    policy: Policy,
    what: &str,
    rule: impl Fn(&Op<'_>) -> Option<Fault> + Send + Sync + 'static,
) -> BTreeMap<String, u32> {
    let what2 = what.to_owned();
    within(LONGEST, what, move || {
        let (fs, rt) = (MemFs::new(), runtime());
        let mut story = Story::new(round);
        let mut settings = eager(policy, &mut fastrand::Rng::with_seed(round));
        // Little enough for the life above to freeze memtables by itself, too.
        settings.memtable_count = 2;
        match open(faulty(&fs, &rt, rule), settings) {
            Ok(db) => {
                life(&mut story, &db);
                match scan(&db) {
                    // There was no crash: what was acknowledged is there, at any durability.
                    Ok(found) => drop(
                        judge(&Content::new(), &story.journal, &found)
                            .unwrap_or_else(|e| panic!("{what2}, while open: {e}")),
                    ),
                    Err(e) => story.look_at(&e, false),
                }
                if let Err(e) = db.close() {
                    story.look_at(&e, false);
                }
            }
            Err(e) => story.look_at(&e, false),
        }
        story.check(&fs, &rt, &what2);
        story.errors
    })
}

/// How often an undisturbed life calls each operation.
fn counts() -> BTreeMap<&'static str, u64> {
    let counts: Arc<Mutex<BTreeMap<&'static str, u64>>> = Arc::default();
    let seen = counts.clone();
    let errors = disturbed(1, Policy::Hybrid, "undisturbed", move |op| {
        *seen.lock().unwrap().entry(op.name).or_default() += 1;
        None
    });
    assert!(errors.is_empty(), "{errors:?}");
    counts.lock().unwrap().clone()
}

fn number_from(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().map_or(default, |text| {
        text.parse().unwrap_or_else(|_| panic!("{name} = `{text}` is not a number"))
    })
}

/// Every n-th call of each operation fails once (or from then on), with at most `LITHIFY_FAULTS`
/// places per operation, evenly spread.
fn sweep(sticky: bool, fault: fn() -> Fault) {
    sweep_of(&NAMES, sticky, fault);
}

fn sweep_of(names: &[&'static str], sticky: bool, fault: fn() -> Fault) {
    let places = number_from("LITHIFY_FAULTS", 8);
    let counts = counts();
    let mut met: BTreeMap<String, u32> = BTreeMap::new();
    let mut lives = 0;
    for &name in names {
        let total = counts.get(name).copied().unwrap_or(0);
        for i in 0..places.min(total) {
            let at = if total <= places { i } else { i * total / places };
            let calls = AtomicU64::new(0);
            let how = if sticky { "and later" } else { "once" };
            // The policies by turns.
            let policy = Policy::EVERY[lives % Policy::EVERY.len()];
            let what = format!("{name} number {at} fails {how}, {}", policy.name());
            let errors = disturbed(1, policy, &what, move |op| {
                let hit = op.name == name && {
                    let n = calls.fetch_add(1, Ordering::Relaxed);
                    n == at || sticky && n > at
                };
                hit.then(fault)
            });
            lives += 1;
            errors.into_iter().for_each(|(kind, n)| *met.entry(kind).or_default() += n);
        }
    }
    println!("{lives} lives disturbed, errors met: {met:?}");
    assert!(lives >= 5 * names.len() && !met.is_empty());
}

#[test]
fn one_error_of_every_operation() {
    sweep(false, eio);
}

#[test]
fn operations_that_fail_for_good() {
    sweep(true, eio);
}

#[test]
fn one_full_disk_at_every_operation() {
    sweep(false, enospc);
}

/// No descriptors are left, for one call or for good.
#[test]
fn no_descriptors() {
    for sticky in [false, true] {
        sweep_of(&["create", "open", "sync_dir"], sticky, || {
            io::Error::from_raw_os_error(24).into()
        });
    }
}

/// A signal interrupts every third transfer: no caller hears of it.
#[test]
fn interrupted_transfers_change_nothing() {
    for policy in Policy::EVERY {
        let counter = AtomicU64::new(0);
        let errors = disturbed(3, policy, "interrupted transfers", move |op| {
            let transfer = matches!(op.name, "read_at" | "write_at");
            let hit = transfer && counter.fetch_add(1, Ordering::Relaxed).is_multiple_of(3);
            hit.then(|| io::Error::from_raw_os_error(4).into())
        });
        assert!(errors.is_empty(), "{}: {errors:?}", policy.name());
    }
}

#[test]
fn short_transfers_change_nothing() {
    for policy in Policy::EVERY {
        let counter = AtomicU64::new(0);
        let errors = disturbed(2, policy, "short transfers", move |op| {
            let n = counter.fetch_add(1, Ordering::Relaxed);
            let transfer = matches!(op.name, "read_at" | "write_at") && op.len > 1;
            (transfer && !n.is_multiple_of(3))
                .then(|| Fault::Short(1 + (n as usize * 37) % op.len as usize))
        });
        assert!(errors.is_empty(), "{}: {errors:?}", policy.name());
    }
}

/// The disk fills up, writes fail with the reason, reads go on; space returns, and writes go on
/// in the same handle; nothing that was acknowledged is lost.
#[test]
fn a_full_disk_is_survived_without_a_reopen() {
    for capacity in [120_000, 200_000, 333_333, 500_000] {
        within(LONGEST, "a full disk", move || {
            let (fs, rt) = (MemFs::with_capacity(capacity), runtime());
            let mut story = Story::new(capacity);
            let db = open(env(&fs, &rt), tiny()).unwrap();
            let mut failed = 0;
            while failed < 20 {
                if let Err(e) = story.step(&db) {
                    assert_eq!(e.kind(), ErrorKind::NoSpace, "{e:?}");
                    let text = e.to_string();
                    let told =
                        ["full", "No space", "free space"].iter().any(|words| text.contains(words));
                    assert!(told, "{text}");
                    failed += 1;
                }
                assert!(story.next < 100_000, "{capacity} bytes never fill up");
            }
            let found = scan(&db).unwrap();
            judge(&Content::new(), &story.journal, &found).unwrap();
            fs.set_capacity(u64::MAX);
            let freed = Instant::now();
            while let Err(e) = db.put(b"w0/resumed", b"yes").and_then(|()| db.flush()) {
                assert_eq!(e.kind(), ErrorKind::NoSpace, "{e:?}");
                assert!(freed.elapsed() < Duration::from_secs(15), "still full: {e}");
            }
            assert!(db.wait_idle(Some(Duration::from_secs(15))).unwrap());
            db.delete(b"w0/resumed").unwrap();
            for _ in 0..200 {
                story.step(&db).unwrap();
            }
            db.close().unwrap();
            story.check(&fs, &rt, &format!("a disk of {capacity} bytes"));
        });
    }
}

/// A database that was closed on a full disk opens again once there is space, and says so until
/// then.
#[test]
fn a_full_disk_at_the_open() {
    let (fs, rt) = (MemFs::new(), runtime());
    let mut story = Story::new(5);
    let db = open(env(&fs, &rt), tiny()).unwrap();
    while story.next < 150 {
        story.step(&db).unwrap();
    }
    db.close().unwrap();
    let used = fs.used();
    for spare in [0, 10, 100, 1000, 10_000] {
        fs.set_capacity(used + spare);
        match open(env(&fs, &rt), tiny()) {
            Ok(db) => db.close().unwrap_or_else(|e| assert_eq!(e.kind(), ErrorKind::NoSpace)),
            Err(e) => assert_eq!(e.kind(), ErrorKind::NoSpace, "{e:?}"),
        }
    }
    fs.set_capacity(u64::MAX);
    story.check(&fs, &rt, "a full disk at the open");
}

/// Syncs of files whose name ends with `.log` fail while the counter is not 0, and count it down.
fn failing_log_syncs(fs: &MemFs, rt: &RtRef) -> (Env, Arc<AtomicU64>) {
    let left = Arc::new(AtomicU64::new(0));
    let armed = left.clone();
    let env = faulty(fs, rt, move |op| {
        let log = op.path.extension().is_some_and(|e| e == "log");
        let count = |n: u64| n.checked_sub(1);
        let hit = log
            && op.name == "sync_data"
            && armed.fetch_update(Ordering::Relaxed, Ordering::Relaxed, count).is_ok();
        hit.then(eio)
    });
    (env, left)
}

/// A log whose sync failed is given up: what it held goes to tables, the write that met the
/// failure never appears, and the next one goes into a new log.
#[test]
fn a_failed_log_sync_is_outlived() {
    // With writes in the log before, and as the first write of all.
    for before in [0, 3] {
        let (fs, rt) = (MemFs::new(), runtime());
        let (env2, left) = failing_log_syncs(&fs, &rt);
        let db = open(env2, tiny()).unwrap();
        for i in 0..before {
            db.put_opt([b'a' + i], b"1", &WriteOptions::at(Durability::Buffered)).unwrap();
        }
        left.store(1, Ordering::Relaxed);
        let e = db.put_opt(b"refused", b"2", &WriteOptions::sync()).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::NotCommitted, "{e:?}");
        assert!(e.to_string().contains(".log"), "the cause is named: {e}");
        db.put_opt(b"later", b"3", &WriteOptions::sync()).unwrap();
        let expected = usize::from(before) + 1;
        assert_eq!(scan(&db).unwrap().len(), expected);
        // A sync alone has nothing to refuse.
        db.put_opt(b"last", b"4", &WriteOptions::at(Durability::Os)).unwrap();
        left.store(1, Ordering::Relaxed);
        db.sync().unwrap();
        assert_eq!(left.load(Ordering::Relaxed), 0);
        // Neither has a close.
        db.put_opt(b"end", b"5", &WriteOptions::at(Durability::Os)).unwrap();
        left.store(1, Ordering::Relaxed);
        db.close().unwrap();
        assert_eq!(left.load(Ordering::Relaxed), 0);
        let db = open(env(&fs, &rt), tiny()).unwrap();
        let found = scan(&db).unwrap();
        assert_eq!(found.len(), expected + 2);
        assert!(!found.contains_key(&b"refused"[..]));
        db.close().unwrap();
    }
}

/// What a kill of the process would leave now, as the next open shows it.
fn left_behind(fs: &MemFs, rt: &RtRef) -> Content {
    let copy = image::put(&image::take(fs, DIRECTORY), DIRECTORY);
    scan(&open(env(&copy, rt), tiny()).unwrap()).unwrap()
}

/// Where the log can't be replaced because the disk is full, its write's outcome is unknown, later
/// writes say what is missing, reads go on; and once there is space writes go on in the same handle.
/// From then on the write in doubt can never appear.
#[test]
fn a_lost_log_on_a_full_disk_heals_by_itself() {
    // The log of now fails, or the one before, whose sync runs in the background.
    for earlier in [false, true] {
        within(LONGEST, "a lost log on a full disk", move || {
            let (fs, rt) = (MemFs::new(), runtime());
            let (full, left) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
            let (full2, left2) = (full.clone(), left.clone());
            let env2 = faulty(&fs, &rt, move |op| {
                let is = |end: &str| op.path.extension().is_some_and(|e| e == end);
                let count = |n: u64| n.checked_sub(1);
                let fails = op.name == "sync_data"
                    && is("log")
                    && left2.fetch_update(Ordering::Relaxed, Ordering::Relaxed, count).is_ok();
                let no_room = op.name == "write_at" && is("sst") && full2.load(Ordering::Relaxed);
                if fails { Some(eio()) } else { no_room.then(enospc) }
            });
            let db = open(env2, tiny()).unwrap();
            db.put_opt(b"before", b"1", &WriteOptions::at(Durability::Os)).unwrap();
            full.store(true, Ordering::Relaxed);
            left.store(1, Ordering::Relaxed);
            if earlier {
                // Ends the log, whose close meets the failure; the next write goes to a new one.
                assert_eq!(db.flush().unwrap_err().kind(), ErrorKind::NoSpace);
            }
            let e = db.put_opt(b"unsure", b"2", &WriteOptions::sync()).unwrap_err();
            assert_eq!(e.kind(), ErrorKind::OutcomeUnknown, "{e:?}");
            assert!(e.to_string().contains(".log"), "the cause is named: {e}");
            assert_eq!(left.load(Ordering::Relaxed), 0, "the fault was met");
            for durability in [Durability::NoWal, Durability::Os, Durability::Sync] {
                let e = db.put_opt(b"refused", b"3", &WriteOptions::at(durability)).unwrap_err();
                assert_eq!(e.kind(), ErrorKind::NoSpace, "{e:?}");
                assert!(e.to_string().contains("free space"), "{e}");
            }
            assert_eq!(db.sync().unwrap_err().kind(), ErrorKind::NoSpace, "nothing is synced yet");
            assert_eq!(db.get(b"before").unwrap().unwrap(), b"1");
            assert_eq!(scan(&db).unwrap().len(), 1);
            // What a crash leaves now: the write in doubt may be there, what was refused is not.
            let crashed = left_behind(&fs, &rt);
            assert!(crashed.contains_key(&b"before"[..]) && !crashed.contains_key(&b"refused"[..]));
            full.store(false, Ordering::Relaxed);
            let freed = Instant::now();
            while let Err(e) = db.put_opt(b"later", b"4", &WriteOptions::sync()) {
                assert!(matches!(e.kind(), ErrorKind::NoSpace | ErrorKind::NotCommitted), "{e:?}");
                assert!(freed.elapsed() < Duration::from_secs(15), "still refused: {e}");
                std::thread::sleep(Duration::from_millis(20));
            }
            // After a kill and after a close, the same.
            let expected = Content::from([
                (b"before".to_vec(), b"1".to_vec()),
                (b"later".to_vec(), b"4".to_vec()),
            ]);
            let killed = left_behind(&fs, &rt);
            assert_eq!(killed, expected);
            db.close().unwrap();
            assert_eq!(scan(&open(env(&fs, &rt), tiny()).unwrap()).unwrap(), expected);
        });
    }
}

/// A close does not wait for space that nothing makes: it says that it could not keep what was not
/// synced, and the next open decides.
#[test]
fn a_close_after_a_lost_log_on_a_full_disk_says_so() {
    within(LONGEST, "a close on a full disk", || {
        let (fs, rt) = (MemFs::new(), runtime());
        let failing = Arc::new(AtomicBool::new(false));
        let armed = failing.clone();
        let env2 = faulty(&fs, &rt, move |op| {
            let is = |end: &str| op.path.extension().is_some_and(|e| e == end);
            let on = armed.load(Ordering::Relaxed);
            match op.name {
                "sync_data" if on && is("log") => Some(eio()),
                "write_at" if on && is("sst") => Some(enospc()),
                _ => None,
            }
        });
        let db = open(env2, tiny()).unwrap();
        db.put_opt(b"safe", b"1", &WriteOptions::sync()).unwrap();
        failing.store(true, Ordering::Relaxed);
        let e = db.put_opt(b"unsure", b"2", &WriteOptions::sync()).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::OutcomeUnknown, "{e:?}");
        assert_eq!(db.close().unwrap_err().kind(), ErrorKind::NoSpace);
        let found = scan(&open(env(&fs, &rt), tiny()).unwrap()).unwrap();
        assert_eq!(found[&b"safe"[..]], b"1");
    });
}

/// Where the log can't be replaced either, no caller is left guessing silently: the write's outcome
/// is unknown, the database is read-only, reads go on, and a reopen decides once.
#[test]
fn a_failed_log_sync_on_a_failing_disk_ends_writes_and_not_reads() {
    let (fs, rt) = (MemFs::new(), runtime());
    let failing = Arc::new(AtomicBool::new(false));
    let armed = failing.clone();
    let env2 = faulty(&fs, &rt, move |op| {
        let sync = op.name == "sync_data" || op.name == "sync_all";
        (armed.load(Ordering::Relaxed) && sync).then(eio)
    });
    let db = open(env2, tiny()).unwrap();
    db.put_opt(b"safe", b"1", &WriteOptions::sync()).unwrap();
    failing.store(true, Ordering::Relaxed);
    let e = db.put_opt(b"unsure", b"2", &WriteOptions::sync()).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::OutcomeUnknown, "{e:?}");
    assert!(e.to_string().contains(".log"), "{e}");
    failing.store(false, Ordering::Relaxed);
    for _ in 0..2 {
        let e = db.put(b"later", b"3").unwrap_err();
        assert_eq!(e.kind(), ErrorKind::ReadOnly, "{e:?}");
        assert!(e.to_string().contains("sync"), "the first cause is named: {e}");
    }
    assert_eq!(db.flush().unwrap_err().kind(), ErrorKind::ReadOnly);
    assert_eq!(db.compact_range(None, None).unwrap_err().kind(), ErrorKind::ReadOnly);
    assert_eq!(db.get(b"safe").unwrap().unwrap(), b"1");
    assert_eq!(db.get(b"unsure").unwrap().as_deref(), None, "unknown is not visible yet");
    assert_eq!(scan(&db).unwrap().len(), 1);
    drop(db);
    let reopen = || {
        let db = open(env(&fs, &rt), tiny()).unwrap();
        let content = scan(&db).unwrap();
        db.close().unwrap();
        content
    };
    let first = reopen();
    assert_eq!(first[&b"safe"[..]], b"1");
    assert!(!first.contains_key(&b"later"[..]));
    assert_eq!(first, reopen(), "decided once");
}

/// A manifest whose sync failed is replaced by a new one, and life goes on.
#[test]
fn a_failed_manifest_sync_is_healed() {
    let (fs, rt) = (MemFs::new(), runtime());
    let left = Arc::new(AtomicU64::new(0));
    let armed = left.clone();
    let env2 = faulty(&fs, &rt, move |op| {
        let manifest = op.path.file_name().is_some_and(|n| n.to_string_lossy().starts_with("MANI"));
        let hit = manifest
            && op.name == "sync_data"
            && armed
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1))
                .is_ok();
        hit.then(eio)
    });
    let db = open(env2, tiny()).unwrap();
    db.put(b"a", b"1").unwrap();
    left.store(1, Ordering::Relaxed);
    db.flush().unwrap();
    assert_eq!(left.load(Ordering::Relaxed), 0, "the fault was met");
    db.put(b"b", b"2").unwrap();
    db.compact_range(None, None).unwrap();
    db.close().unwrap();
    let db = open(env(&fs, &rt), tiny()).unwrap();
    assert_eq!(scan(&db).unwrap().len(), 2);
}

#[test]
fn no_permission_is_told() {
    let (fs, rt) = (MemFs::new(), runtime());
    open(env(&fs, &rt), tiny()).unwrap().close().unwrap();
    for name in ["beneath", "lock", "open", "create", "list", "rename"] {
        let denied = faulty(&fs, &rt, move |op| {
            (op.name == name).then(|| io::Error::from_raw_os_error(13).into())
        });
        let e = open(denied, tiny()).unwrap_err();
        assert_eq!((e.kind(), e.errno()), (ErrorKind::Io, Some(13)), "{name}: {e:?}");
        assert!(e.to_string().contains(DIRECTORY), "{e}");
        assert!(e.to_string().contains("ermission denied"), "{e}");
    }
    let e = Db::open("/proc/no/such/place", tiny()).unwrap_err();
    assert!(e.to_string().contains("/proc/no"), "{e}");
}

const USED: &str = "LITHIFY_FAULTS_DIRECTORY";

/// The other process: says how its open ended.
#[test]
fn the_other_opener() {
    let Ok(directory) = std::env::var(USED) else { return };
    let code = match Db::open(directory, tiny()) {
        Ok(_) => 10,
        Err(e) if e.kind() == ErrorKind::Locked => 11,
        Err(_) => 12,
    };
    std::process::exit(code);
}

#[test]
fn a_database_in_use_is_locked() {
    let scratch = tempfile::tempdir().unwrap();
    let db = Db::open(scratch.path(), tiny()).unwrap();
    db.put(b"k", b"v").unwrap();
    let second = Db::open(scratch.path(), tiny()).unwrap_err();
    assert_eq!(second.kind(), ErrorKind::Locked, "{second:?}");
    assert!(second.to_string().contains("LOCK"), "{second}");
    let elsewhere = || {
        Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "failing_storage::the_other_opener", "--test-threads=1"])
            .env(USED, scratch.path())
            .output()
            .unwrap()
            .status
            .code()
    };
    assert_eq!(elsewhere(), Some(11), "another process finds it locked");
    assert_eq!(db.get(b"k").unwrap().unwrap(), b"v", "nothing was touched");
    db.close().unwrap();
    assert_eq!(elsewhere(), Some(10), "and may open it afterwards");
    let db = Db::open(scratch.path(), tiny()).unwrap();
    assert_eq!(db.get(b"k").unwrap().unwrap(), b"v");
}

/// A disk that is really full: a tmpfs of 8 MiB, where we may mount one.
#[test]
fn a_real_small_disk() {
    let scratch = tempfile::tempdir().unwrap();
    let disk = scratch.path();
    let mounted = Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=8m", "lithify-test"])
        .arg(disk)
        .output()
        .is_ok_and(|o| o.status.success());
    if !mounted {
        eprintln!("skipped: mounting a tmpfs needs root; MemFs stands in for it in other tests");
        return;
    }
    let disk2 = disk.to_owned();
    let lived =
        std::panic::catch_unwind(move || within(LONGEST, "a small disk", move || fill(&disk2)));
    let unmounted = Command::new("umount").arg("-l").arg(disk).status().unwrap();
    assert!(unmounted.success());
    lived.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
}

fn fill(disk: &Path) {
    let mut settings = tiny();
    settings.memtable_bytes = 256 << 10;
    let directory = disk.join("db");
    std::fs::write(disk.join("ballast"), vec![1; 3 << 20]).unwrap();
    let db = Db::open(&directory, settings.clone()).unwrap();
    let mut model = Content::new();
    let mut failed = 0;
    let mut n = 0u32;
    while failed < 20 {
        let (k, v) = (format!("{n:08}").into_bytes(), vec![n as u8; 1000]);
        match db.put_opt(&k, &v, &WriteOptions::at(Durability::Os)) {
            Ok(()) => drop(model.insert(k, v)),
            Err(e) => {
                assert_eq!(e.kind(), ErrorKind::NoSpace, "{e:?}");
                failed += 1;
            }
        }
        n += 1;
        assert!(n < 100_000, "8 MiB never fill up");
    }
    assert!(scan(&db).unwrap() == model, "reads go on, and nothing is missing");
    std::fs::remove_file(disk.join("ballast")).unwrap();
    let freed = Instant::now();
    while let Err(e) = db.put(b"resumed", b"yes") {
        assert!(freed.elapsed() < Duration::from_secs(15), "still full: {e}");
        std::thread::sleep(Duration::from_millis(20));
    }
    model.insert(b"resumed".to_vec(), b"yes".to_vec());
    db.close().unwrap();
    let db = Db::open(&directory, settings).unwrap();
    assert!(scan(&db).unwrap() == model, "and after a reopen");
}
