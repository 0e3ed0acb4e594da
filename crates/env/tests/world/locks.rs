//! One owner at a time: between handles, threads and processes, and across a replaced lock file (reliability F15).

use std::io::ErrorKind;
use std::path::Path;
use std::process::Command;
use std::thread;

use lithify_env::sync::atomic::{AtomicU32, Ordering};
use lithify_env::{Fs, MemFs, OpenOpts, PosixFs};

/// Runs `test` on a real directory and in memory.
fn on_both(test: impl Fn(&dyn Fs, &Path)) {
    let scratch = tempfile::tempdir().unwrap();
    test(&PosixFs::new(), &scratch.path().join("LOCK"));
    test(&MemFs::new(), Path::new("LOCK"));
}

#[test]
fn a_second_handle_is_refused_until_the_first_is_gone() {
    on_both(|fs, path| {
        let guard = fs.lock(path).unwrap();
        assert!(guard.is_owner());
        assert_eq!(guard.path(), path);
        let error = fs.lock(path).err().unwrap();
        assert_eq!((error.op, error.kind()), ("lock", ErrorKind::WouldBlock));
        drop(guard);
        assert!(fs.lock(path).unwrap().is_owner());
    });
}

#[test]
fn the_lock_belongs_to_the_file_not_to_its_name() {
    on_both(|fs, path| {
        let guard = fs.lock(path).unwrap();
        let alias = path.with_extension("alias");
        fs.link(path, &alias).unwrap();
        assert_eq!(fs.lock(&alias).err().unwrap().kind(), ErrorKind::WouldBlock);
        assert!(guard.is_owner());
    });
}

#[test]
fn a_replaced_lock_file_ends_the_ownership() {
    on_both(|fs, path| {
        let old = fs.lock(path).unwrap();
        fs.unlink(path).unwrap();
        assert!(!old.is_owner());
        fs.create(path, OpenOpts::write()).unwrap();
        assert!(!old.is_owner());
        let new = fs.lock(path).unwrap();
        assert!(new.is_owner());
        drop(old);
        assert!(fs.lock(path).is_err(), "the stale guard takes nothing with it");
    });
}

#[test]
fn threads_never_own_together() {
    // Each winner removes the file before it lets go, so losers hold descriptors of dead inodes:
    // without the second look after locking, two of them would own two different files.
    on_both(|fs, path| {
        let (owners, wins) = (AtomicU32::new(0), AtomicU32::new(0));
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..2000 {
                        let Ok(guard) = fs.lock(path) else { continue };
                        assert_eq!(owners.fetch_add(1, Ordering::SeqCst), 0, "two owners");
                        wins.fetch_add(1, Ordering::Relaxed);
                        thread::yield_now();
                        owners.fetch_sub(1, Ordering::SeqCst);
                        fs.unlink(path).unwrap();
                        drop(guard);
                    }
                });
            }
        });
        assert!(wins.load(Ordering::Relaxed) > 0);
    });
}

/// Names the lock file to the child process of the next test.
const CHILD: &str = "LITHIFY_TEST_LOCK";

#[test]
fn another_process_is_refused() {
    if let Some(path) = std::env::var_os(CHILD) {
        let result = PosixFs::new().lock(Path::new(&path));
        std::process::exit(if result.is_ok() { 10 } else { 20 });
    }
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("LOCK");
    let verdict = || {
        let mut child = Command::new(std::env::current_exe().unwrap());
        child.args(["--exact", "locks::another_process_is_refused"]).env(CHILD, &path);
        child.output().unwrap().status.code()
    };
    let guard = PosixFs::new().lock(&path).unwrap();
    assert_eq!(verdict(), Some(20));
    drop(guard);
    assert_eq!(verdict(), Some(10));
}
