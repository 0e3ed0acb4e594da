//! One owner of a directory at a time (reliability F15, contract P8): threads and processes that open
//! it at once, a forked child with its parent's handle, a lock file that someone removed, files of
//! another owner in the way.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "real processes on real files, watched from the outside"
)]

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use crate::common::child::number_from;
use crate::common::{image, scan, tiny, within};
use lithify::{Builder, Db, Durability, ErrorKind, Settings, WriteOptions};
use lithify_env::{Env, Fs, MemFs, OpenOpts, OsRt, RtOptions, write_all_at};

const LONGEST: Duration = Duration::from_secs(120);
const DIRECTORY: &str = "LITHIFY_OWNERS_DIRECTORY";
const DEED: &str = "LITHIFY_OWNERS_DEED";
/// Another process's verdicts.
const OPENED: i32 = 10;
const LOCKED: i32 = 11;

fn calm() -> Settings {
    let mut s = tiny();
    s.auto_compaction = false;
    s
}

/// The other process: opens, writes under its own name, and says how that went.
#[test]
fn the_other() {
    let Ok(directory) = std::env::var(DIRECTORY) else { return };
    let deed = std::env::var(DEED).expect("the parent names what is to be done");
    if deed == "race" {
        race(Path::new(&directory), 250, 0);
        std::process::exit(OPENED);
    }
    let code = match Db::open(directory, calm()) {
        Ok(db) => {
            db.put(deed, b"other").unwrap();
            db.close().unwrap();
            OPENED
        }
        Err(e) if e.kind() == ErrorKind::Locked => LOCKED,
        Err(e) => panic!("{e:?}"),
    };
    std::process::exit(code);
}

fn other(directory: &Path, deed: &str) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "one_owner::the_other", "--nocapture", "--test-threads=1"])
        .env(DIRECTORY, directory)
        .env(DEED, deed)
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

/// Opens again and again, `count` times and until it got in. An owner must be alone: it leaves a
/// mark in the file system that no other may find, and adds one to a count that no other may
/// change. How often it got in, and how often it was refused.
fn race(directory: &Path, count: u64, thread: u64) -> (u64, u64) {
    let mark = directory.with_extension("mark");
    let mut rng = fastrand::Rng::with_seed(u64::from(std::process::id()) << 8 | thread);
    let (mut wins, mut refused) = (0, 0);
    while wins == 0 || wins + refused < count {
        let begun = Instant::now();
        match Db::open(directory, calm()) {
            Ok(db) => {
                let options = std::fs::OpenOptions::new().write(true).create_new(true).open(&mark);
                options.expect("two owners at a time");
                let before = db
                    .get(b"wins")
                    .unwrap()
                    .map_or(0, |v| u64::from_be_bytes(v.to_vec().try_into().expect("eight bytes")));
                db.put(b"wins", (before + 1).to_be_bytes()).unwrap();
                wins += 1;
                std::fs::remove_file(&mark).unwrap();
                db.close().unwrap();
            }
            Err(e) => {
                assert_eq!(e.kind(), ErrorKind::Locked, "{e:?}");
                refused += 1;
                assert!(begun.elapsed() < Duration::from_secs(20), "a refusal takes no time");
                std::thread::sleep(Duration::from_micros(rng.u64(0..3000)));
            }
        }
    }
    (wins, refused)
}

/// `LITHIFY_RACES` opens in all (2,000), by threads of this process and of others.
#[test]
fn opens_race_and_one_wins() {
    let races = number_from("LITHIFY_RACES", 2000);
    within(LONGEST + Duration::from_millis(20 * races), "racing", move || {
        let scratch = tempfile::tempdir().unwrap();
        let directory = scratch.path().join("db");
        let others: Vec<Child> = (0..2).map(|_| other(&directory, "race")).collect();
        let threads = 4;
        let (wins, refused) = (AtomicU64::new(0), AtomicU64::new(0));
        let each = races.saturating_sub(500).div_ceil(threads);
        let start = Barrier::new(threads as usize);
        std::thread::scope(|s| {
            for thread in 0..threads {
                let (start, directory, wins, refused) = (&start, &directory, &wins, &refused);
                s.spawn(move || {
                    start.wait();
                    let (in_it, outside) = race(directory, each, thread);
                    wins.fetch_add(in_it, Ordering::Relaxed);
                    refused.fetch_add(outside, Ordering::Relaxed);
                });
            }
        });
        for mut process in others {
            assert_eq!(process.wait().unwrap().code(), Some(OPENED));
        }
        let db = Db::open(&directory, calm()).unwrap();
        let all = db.get(b"wins").unwrap().unwrap().to_vec();
        let all = u64::from_be_bytes(all.try_into().unwrap());
        let here = wins.into_inner();
        println!("{races} opens: {here} wins here, {} elsewhere", all - here);
        assert!(here > 0 && all > here, "both sides won: {here} of {all}");
        assert!(refused.into_inner() > 0, "someone was refused");
    });
}

/// The calls that a fork takes. The child may only do what needs no other thread.
mod forked {
    unsafe extern "C" {
        fn fork() -> i32;
        fn waitpid(pid: i32, status: *mut i32, options: i32) -> i32;
        fn _exit(code: i32) -> !;
        fn alarm(seconds: u32) -> u32;
    }

    /// What is told of a child that did not end by itself.
    const HUNG: i32 = 255;
    /// Children in a row that may hang. A thread of the parent that begins at that moment, of this test or another,
    /// may hold a lock that std takes at the begin of each thread, for guard pages: that child waits for ever, which
    /// is std's, and happens to one in hundreds.
    const TRIES: usize = 3;
    /// Seconds after which the system ends a child.
    const CHILD_SECONDS: u32 = 20;

    /// Runs `deed` in a forked child; its exit code, or [`HUNG`] if none of three children ended by itself.
    pub(super) fn in_a_child(deed: impl Fn() -> i32) -> i32 {
        (0..TRIES).map(|_| in_one_child(&deed)).find(|&code| code != HUNG).unwrap_or(HUNG)
    }

    fn in_one_child(deed: impl FnOnce() -> i32) -> i32 {
        // SAFETY: the child has this thread only. It calls the database, whose answers must not
        // need others, and the allocator, which glibc makes usable in children; then it ends
        // without unwinding into the parent's frames.
        match unsafe { fork() } {
            0 => {
                // SAFETY: a number; no handler of the signal is set, so it ends the child.
                unsafe { alarm(CHILD_SECONDS) };
                let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(deed));
                // SAFETY: ends the process at once.
                unsafe { _exit(done.unwrap_or(99)) }
            }
            pid => {
                assert!(pid > 0, "a fork failed");
                let mut status = 0;
                // SAFETY: a child of ours, and a status that outlives the call.
                let ended = unsafe { waitpid(pid, &mut status, 0) };
                let exited = ended == pid && status & 0x7f == 0;
                if exited { status >> 8 & 0xff } else { HUNG }
            }
        }
    }
}

/// What a forked child tries with its parent's handle: 0 if it is fenced off each time.
fn trespass(db: Db) -> i32 {
    let sync = WriteOptions::sync();
    let unlogged = WriteOptions::at(Durability::NoWal);
    let tries = [
        db.put(b"child", b"1"),
        db.put_opt(b"child", b"1", &sync),
        db.put_opt(b"child", b"1", &unlogged),
        db.delete(b"parent"),
        db.delete_range(b"a", b"z"),
        db.sync(),
        db.flush(),
        db.compact_range(None, None),
        db.wait_idle(None).map(drop),
        db.clone().close(),
    ];
    db.set_auto_compaction(true);
    let fenced = |r: &lithify::Result<()>| {
        r.as_ref().is_err_and(|e| e.kind() == ErrorKind::Fenced && e.to_string().contains("fork"))
    };
    let wrong = tries.iter().position(|r| !fenced(r));
    drop(db);
    wrong.map_or(0, |at| at as i32 + 1)
}

#[test]
fn a_forked_child_is_fenced_off() {
    within(LONGEST, "forking", || {
        let scratch = tempfile::tempdir().unwrap();
        let db = Db::open(scratch.path(), calm()).unwrap();
        db.put(b"parent", b"1").unwrap();
        let path = scratch.path().to_owned();
        let (inside, theirs) = (db.clone(), path.clone());
        let code = forked::in_a_child(|| match trespass(inside.clone()) {
            // What it opens is locked, too, and another directory is its own.
            0 => {
                let locked =
                    Db::open(&theirs, calm()).is_err_and(|e| e.kind() == ErrorKind::Locked);
                let own = Db::open(theirs.with_extension("own"), calm()).and_then(|db| {
                    db.put(b"own", b"1")?;
                    db.close()
                });
                if locked && own.is_ok() { 0 } else { 98 }
            }
            wrong => wrong,
        });
        drop(inside);
        assert_eq!(code, 0, "what the child tried, counted from 1");
        let _ = std::fs::remove_dir_all(path.with_extension("own"));
        db.put(b"after", b"2").unwrap();
        db.flush().unwrap();
        db.compact_range(None, None).unwrap();
        db.close().unwrap();
        let content = scan(&Db::open(scratch.path(), calm()).unwrap()).unwrap();
        let keys: Vec<&[u8]> = content.keys().map(Vec::as_slice).collect();
        assert_eq!(keys, [&b"after"[..], b"parent"]);
    });
}

/// What the parent's threads wait for or hold when a child is forked off stays theirs: the child opens
/// a database of its own, with threads where theirs were.
#[test]
fn a_forked_child_may_open_another_database() {
    within(LONGEST, "forking among threads", || {
        let scratch = tempfile::tempdir().unwrap();
        let idle: Vec<Db> = (0..8)
            .map(|n| Db::open(scratch.path().join(format!("idle-{n}")), calm()).unwrap())
            .collect();
        let (busy, over) = (scratch.path().join("busy"), AtomicBool::new(false));
        std::thread::scope(|s| {
            s.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    Db::open(&busy, calm()).unwrap().close().unwrap();
                }
            });
            for n in 0..20 {
                let own = scratch.path().join(format!("child-{n}"));
                let code = forked::in_a_child(|| {
                    let lived = Db::open(&own, tiny()).and_then(|db| {
                        for key in 0..1000_u32 {
                            db.put(key.to_be_bytes(), [7; 100])?;
                        }
                        db.flush()?;
                        db.close()
                    });
                    i32::from(lived.is_err())
                });
                over.store(code != 0 || n == 19, Ordering::Relaxed);
                assert_eq!(code, 0, "child {n}");
            }
        });
        idle.into_iter().try_for_each(Db::close).unwrap();
    });
}

/// Children that come and go while the parent writes, flushes and compacts take nothing with them.
#[test]
fn forked_children_leave_running_jobs_alone() {
    within(LONGEST, "forking at work", || {
        let scratch = tempfile::tempdir().unwrap();
        let db = Db::open(scratch.path(), tiny()).unwrap();
        let over = AtomicBool::new(false);
        let written = std::thread::scope(|s| {
            let writer = s.spawn(|| {
                let mut n = 0u32;
                while !over.load(Ordering::Relaxed) || n < 5_000 {
                    db.put(n.to_be_bytes(), [n as u8; 200]).unwrap();
                    n += 1;
                }
                n
            });
            for _ in 0..40 {
                // Only what looks at nothing that another thread may hold.
                let code = forked::in_a_child(|| {
                    let inside = db.clone();
                    let refused = inside.put(b"child", b"1").is_err();
                    let closed = inside.clone().close().is_err();
                    drop(inside);
                    i32::from(!(refused && closed))
                });
                assert_eq!(code, 0);
            }
            over.store(true, Ordering::Relaxed);
            writer.join().unwrap()
        });
        assert!(db.wait_idle(Some(LONGEST)).unwrap());
        assert_eq!(db.stats().counts.job_failures, 0);
        assert_eq!(scan(&db).unwrap().len(), written as usize);
        db.close().unwrap();
        assert_eq!(
            scan(&Db::open(scratch.path(), tiny()).unwrap()).unwrap().len(),
            written as usize
        );
    });
}

/// A process that removes the lock file lets another in. The old owner notices before its next commit or
/// synced write, and what the new one did stays.
#[test]
fn an_owner_whose_lock_was_removed_is_fenced_off() {
    within(LONGEST, "a removed lock", || {
        for first in ["a synced write", "a flush"] {
            let scratch = tempfile::tempdir().unwrap();
            let db = Db::open(scratch.path(), calm()).unwrap();
            db.put_opt(b"before", b"1", &WriteOptions::sync()).unwrap();
            std::fs::remove_file(scratch.path().join("LOCK")).unwrap();
            assert_eq!(other(scratch.path(), "theirs").wait().unwrap().code(), Some(OPENED));
            let e = match first {
                "a flush" => db.flush().unwrap_err(),
                _ => db.put_opt(b"late", b"1", &WriteOptions::sync()).unwrap_err(),
            };
            let causes = format!("{e:?}");
            assert!(causes.contains("lock file"), "{first}: {causes}");
            let fenced = [ErrorKind::Fenced, ErrorKind::ReadOnly];
            assert!(fenced.contains(&e.kind()), "{first}: {e:?}");
            let e = db.put(b"later", b"1").unwrap_err();
            assert_eq!(e.kind(), ErrorKind::ReadOnly, "{e:?}");
            assert!(e.to_string().contains("lock file"), "the cause is named: {e}");
            assert_eq!(db.get(b"before").unwrap().as_deref(), Some(&b"1"[..]), "reads go on");
            let _ = db.close();
            let content = scan(&Db::open(scratch.path(), calm()).unwrap()).unwrap();
            let keys: Vec<&[u8]> = content.keys().map(Vec::as_slice).collect();
            assert_eq!(keys, [&b"before"[..], b"theirs"], "{first}");
        }
    });
}

/// The lock file is moved away and back, so it tells nothing; another process had the database open
/// meanwhile.
#[test]
fn an_owner_whose_lock_tells_nothing_is_fenced_off_at_its_next_commit() {
    within(LONGEST, "a stale owner", || {
        let fs = MemFs::new();
        let env =
            || Env { fs: Arc::new(fs.clone()), rt: Arc::new(OsRt::new(RtOptions::default())) };
        let open = || Builder::new(calm()).env(env()).open("/db").unwrap();
        let (lock, aside) = (Path::new("/db/LOCK"), Path::new("/db/aside"));
        let stale = open();
        let empty_logs = || {
            let all = fs.list(Path::new("/db")).unwrap().into_iter();
            all.filter(|e| e.name.ends_with(".log") && e.len == 0).count()
        };
        for n in 0..3u8 {
            stale.put([n], b"old").unwrap();
            stale.flush().unwrap();
            // The log that is made ahead looks at the lock, which is moved away below.
            while empty_logs() < usize::from(n + 1).min(2) {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        fs.rename(lock, aside).unwrap();
        let owner = open();
        owner.put(b"new", b"1").unwrap();
        owner.close().unwrap();
        fs.rename(aside, lock).unwrap();
        let before = image::take(&fs, "/db");
        // It would delete what the directory's manifest names.
        let e = stale.compact_range(None, None).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::Fenced, "{e:?}");
        assert!(e.to_string().contains("CURRENT"), "{e}");
        assert_eq!(stale.put(b"x", b"y").unwrap_err().kind(), ErrorKind::ReadOnly);
        assert_eq!(stale.get([1]).unwrap().unwrap(), b"old");
        drop(stale);
        let after = image::take(&fs, "/db");
        for (name, bytes) in &before {
            assert!(name == "EVENTS" || after.get(name) == Some(bytes), "{name} was changed");
        }
        assert_eq!(scan(&open()).unwrap().len(), 4);
    });
}

/// No other owner has a directory whose CURRENT is gone: what is told is what happened.
#[test]
fn a_missing_current_is_told_as_that() {
    let fs = Arc::new(MemFs::new());
    let rt = Arc::new(OsRt::new(RtOptions::default()));
    let db = Builder::new(calm()).env(Env { fs: fs.clone(), rt }).open("/db").unwrap();
    db.put(b"k", b"v").unwrap();
    fs.unlink(Path::new("/db/CURRENT")).unwrap();
    let error = db.flush().unwrap_err().to_string();
    assert!(error.contains("CURRENT is missing"), "{error}");
    assert_eq!(db.put(b"k", b"w").unwrap_err().kind(), ErrorKind::ReadOnly);
    assert_eq!(db.get(b"k").unwrap().unwrap(), b"v");
    let _ = db.close();
}

/// A job finds a file where it wants to make its own: another owner's, whose table it would be to
/// remove. It takes the next number and leaves that alone.
#[test]
fn files_in_the_way_of_a_job_are_left_alone() {
    let fs = MemFs::new();
    let rt = std::sync::Arc::new(OsRt::new(RtOptions::default()));
    let env = Env { fs: std::sync::Arc::new(fs.clone()), rt };
    let db = Builder::new(calm()).env(env).open("/db").unwrap();
    db.put(b"a", b"1").unwrap();
    let numbers = image::take(&fs, "/db").into_keys();
    let digits = |name: String| name.chars().filter(char::is_ascii_digit).collect::<String>();
    let newest = numbers.filter_map(|n| digits(n).parse::<u64>().ok()).max().unwrap();
    let in_the_way: Vec<String> = (newest + 1..newest + 5).map(|n| format!("{n:06}.sst")).collect();
    for name in &in_the_way {
        let file = fs.create(&Path::new("/db").join(name), OpenOpts::write()).unwrap();
        write_all_at(&*file, b"theirs", 0).unwrap();
    }
    let mut refused = 0;
    while let Err(e) = db.flush() {
        assert!(e.to_string().contains("exist"), "{e:?}");
        refused += 1;
        assert!(refused < 10, "{e:?}");
    }
    assert!(refused > 0, "nothing was in the way of {:?}", image::take(&fs, "/db").keys());
    let after = image::take(&fs, "/db");
    for name in &in_the_way {
        assert_eq!(after.get(name).map(Vec::as_slice), Some(&b"theirs"[..]), "{name}");
    }
}
