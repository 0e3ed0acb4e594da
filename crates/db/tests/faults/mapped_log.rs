//! Logs that are written through a mapping: longer than what was written, and as good (reliability F1).
#![cfg(all(target_os = "linux", target_pointer_width = "64"))]
#![allow(clippy::disallowed_methods, reason = "real files, looked at from outside")]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::common::{image, tiny};
use lithify::verify::verify;
use lithify::{Builder, Db, Settings, WriteOptions};
use lithify_env::{Env, OsRt, PosixFs, RtOptions};

/// With a memtable that all of a test fits into: files that jobs delete meanwhile could not be copied.
fn settings(mapped: bool) -> Settings {
    tiny().mapped_log(mapped).memory_budget(64 << 20).memtable_bytes(8 << 20)
}

/// The newest log.
fn log(directory: &Path) -> PathBuf {
    let files = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let is_log = |path: &PathBuf| {
        path.extension().is_some_and(|e| e == "log") && path.metadata().unwrap().len() > 0
    };
    files.filter(is_log).max().unwrap()
}

fn is_mapped(log: &Path) -> bool {
    fs::read_to_string("/proc/self/maps").unwrap().contains(log.to_str().unwrap())
}

/// Values that end in zeros, as long as `n` says.
fn value(n: usize) -> Vec<u8> {
    let mut value = vec![7; n % 3];
    value.resize(n, 0);
    value
}

#[test]
fn the_log_is_mapped_unless_the_setting_says_no() {
    for mapped in [true, false] {
        let scratch = tempfile::tempdir().unwrap();
        let db = Db::open(scratch.path(), settings(mapped)).unwrap();
        db.put("key", "value").unwrap();
        let log = log(scratch.path());
        assert_eq!(is_mapped(&log), mapped);
        assert_eq!(log.metadata().unwrap().len() == 1 << 20, mapped);
        db.close().unwrap();
        assert!(!is_mapped(&log));
        assert!(log.metadata().unwrap().len() < 1000, "what is closed ends where its writes do");
    }
}

/// All that was acknowledged is there, and the zeros are no damage to tell of.
#[test]
fn a_killed_process_leaves_zeros_that_mean_nothing() {
    let scratch = tempfile::tempdir().unwrap();
    let db = Db::open(scratch.path(), settings(true)).unwrap();
    for n in 0..2000 {
        let key = format!("{:03}", n % 700);
        let how = if n % 100 == 0 { WriteOptions::sync() } else { WriteOptions::default() };
        db.put_opt(key, value(n * 3), &how).unwrap();
        if n % 400 != 399 {
            continue;
        }
        // What the files have while they are open is what a killed process leaves behind.
        let mut image = image::take(&PosixFs::new(), scratch.path().to_str().unwrap());
        image.remove("LOCK");
        let left = Arc::new(image::put(&image, "/db"));
        let report = verify(left.clone(), Path::new("/db"), None, &mut |_| {}).unwrap();
        assert!(report.is_clean(), "{report:?}");
        let rt = Arc::new(OsRt::new(RtOptions::default()));
        let env = Env { fs: left, rt };
        let again = Builder::new(settings(true)).env(env).open("/db").unwrap();
        for key in 0..700.min(n + 1) {
            let last = (n - key) / 700 * 700 + key;
            let got = again.get(format!("{key:03}")).unwrap();
            assert_eq!(got.unwrap(), value(last * 3), "{key} after {n}");
        }
        again.close().unwrap();
    }
    db.close().unwrap();
}

/// A follower sees each write, though the file's length stays as it is and the write may end in zeros.
#[test]
fn a_follower_sees_each_write() {
    let scratch = tempfile::tempdir().unwrap();
    let db = Db::open(scratch.path(), settings(true)).unwrap();
    db.put("key", "before").unwrap();
    let follower = Builder::new(settings(true)).open_follower(scratch.path()).unwrap();
    for n in 0..400 {
        assert!(!follower.catch_up().unwrap(), "{n}: nothing new");
        db.put("key", value(n * 7)).unwrap();
        assert!(follower.catch_up().unwrap(), "{n}: one write is new");
        assert_eq!(follower.view().get("key").unwrap().unwrap(), value(n * 7), "{n}");
    }
    db.close().unwrap();
}

/// A checkpoint takes of the log what was written.
#[test]
fn a_checkpoint_takes_what_was_written() {
    let scratch = tempfile::tempdir().unwrap();
    let db = Db::open(scratch.path().join("db"), settings(true)).unwrap();
    db.put("key", value(1000)).unwrap();
    let options = lithify::CheckpointOptions { copy_logs_below: 10_000 };
    let copy = scratch.path().join("copy");
    db.checkpoint_opt(&copy, &options).unwrap();
    assert!((1000..2000).contains(&log(&copy).metadata().unwrap().len()));
    let copy = Db::open(&copy, settings(true)).unwrap();
    assert_eq!(copy.get("key").unwrap().unwrap(), value(1000));
    copy.close().unwrap();
    db.close().unwrap();
}
