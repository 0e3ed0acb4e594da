//! A directory that is held: what a stranger puts into it, or does to it, leads nowhere else (reliability F22).
#![allow(clippy::disallowed_methods, reason = "a test sets up its world by itself")]

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::Command;

use lithify_env::{EntryKind, Fs, FsRef, IoError, OpenOpts, PosixFs, write_all_at};

/// A held directory, and beside it one that must stay as it is.
struct Place {
    scratch: tempfile::TempDir,
    held: FsRef,
}

impl Place {
    fn new() -> Self {
        let scratch = tempfile::tempdir().unwrap();
        fs::create_dir(scratch.path().join("db")).unwrap();
        fs::create_dir(scratch.path().join("outside")).unwrap();
        fs::write(scratch.path().join("outside/kept"), "kept").unwrap();
        let held = PosixFs::new().beneath(&scratch.path().join("db"), 0).unwrap();
        Self { scratch, held }
    }

    fn db(&self, name: &str) -> PathBuf {
        self.scratch.path().join("db").join(name)
    }

    fn outside(&self, name: &str) -> PathBuf {
        self.scratch.path().join("outside").join(name)
    }

    fn check_outside(&self) {
        let names: Vec<_> =
            fs::read_dir(self.outside("")).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert_eq!(names, ["kept"]);
        assert_eq!(fs::read_to_string(self.outside("kept")).unwrap(), "kept");
        assert_eq!(fs::metadata(self.outside("kept")).unwrap().nlink(), 1);
    }
}

fn refused<T>(result: Result<T, IoError>) -> IoError {
    result.err().expect("it must be refused")
}

#[test]
fn links_are_not_followed_by_any_call() {
    let place = Place::new();
    for (name, to) in [
        ("file", place.outside("kept")),
        ("dangling", place.outside("new")),
        ("dir", place.outside("")),
    ] {
        symlink(to, place.db(name)).unwrap();
    }
    let held = &place.held;
    for name in ["file", "dangling", "dir"] {
        let path = place.db(name);
        let error = refused(held.open(&path, OpenOpts::read()));
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
        assert!(error.to_string().contains("symbolic link"), "{error}");
        assert!(held.open(&path, OpenOpts::write().or_create()).is_err(), "{name}");
        assert_eq!(refused(held.create(&path, OpenOpts::write())).kind(), ErrorKind::AlreadyExists);
        assert!(held.len(&path).is_err() && held.lock(&path).is_err(), "{name}");
    }
    for (dir, name) in [("dir", "kept"), ("dir", "new")] {
        let path = place.db(dir).join(name);
        assert!(held.open(&path, OpenOpts::write().or_create()).is_err());
        assert!(held.create(&path, OpenOpts::write()).is_err());
        assert!(held.unlink(&path).is_err() && held.len(&path).is_err());
        assert!(held.rename(&path, &place.db("taken")).is_err());
        assert!(held.link(&path, &place.db("taken")).is_err());
    }
    assert!(held.list(&place.db("dir")).is_err() && held.sync_dir(&place.db("dir")).is_err());
    assert!(held.create_dir_all(&place.db("dir/deep")).is_err());
    assert!(
        held.beneath(&place.db("dir"), 0).is_err() && held.free_space(&place.db("dir")).is_err()
    );
    let kinds: Vec<_> =
        held.list(&place.db("")).unwrap().into_iter().map(|e| (e.name, e.kind, e.len)).collect();
    let link = |name: &str| (name.to_owned(), EntryKind::Other, 0);
    assert_eq!(kinds, [link("dangling"), link("dir"), link("file")]);
    // The names are ours to move and remove; what they lead to is not.
    held.rename(&place.db("file"), &place.db("moved")).unwrap();
    for name in ["moved", "dangling", "dir"] {
        held.unlink(&place.db(name)).unwrap();
    }
    place.check_outside();
}

#[test]
fn what_is_no_regular_file_is_refused_at_once() {
    let place = Place::new();
    assert!(Command::new("mkfifo").arg(place.db("fifo")).status().unwrap().success());
    let _socket = UnixListener::bind(place.db("socket")).unwrap();
    for fs in [&place.held, &(std::sync::Arc::new(PosixFs::new()) as FsRef)] {
        for (name, word) in [("fifo", "FIFO"), ("socket", "socket")] {
            for opts in [OpenOpts::read(), OpenOpts::write()] {
                let error = refused(fs.open(&place.db(name), opts));
                assert!(
                    error.kind() == ErrorKind::InvalidInput && error.to_string().contains(word),
                    "{error}"
                );
            }
            assert!(fs.len(&place.db(name)).is_err() && fs.lock(&place.db(name)).is_err());
        }
        let device = refused(fs.open(Path::new("/dev/zero"), OpenOpts::read()));
        assert!(device.to_string().contains("device"), "{device}");
    }
}

#[test]
fn a_directory_that_is_moved_away_stays_the_one_that_is_held() {
    let place = Place::new();
    let moved = place.scratch.path().join("moved");
    fs::write(place.db("before"), "1").unwrap();
    let lock = place.held.lock(&place.db("LOCK")).unwrap();
    fs::rename(place.db(""), &moved).unwrap();
    symlink(place.outside(""), place.scratch.path().join("db")).unwrap();
    let file = place.held.create(&place.db("after"), OpenOpts::write()).unwrap();
    write_all_at(&*file, b"2", 0).unwrap();
    assert_eq!(place.held.len(&place.db("before")).unwrap(), Some(1));
    place.held.unlink(&place.db("before")).unwrap();
    place.held.sync_dir(&place.db("")).unwrap();
    assert!(lock.is_owner());
    assert!(moved.join("after").exists() && !moved.join("before").exists());
    place.check_outside();
}

#[test]
fn of_two_directories_that_are_held_each_name_goes_to_its_own() {
    let place = Place::new();
    let both = place.held.beneath(&place.outside(""), 0).unwrap();
    fs::write(place.db("table"), "t").unwrap();
    both.link(&place.db("table"), &place.outside("table")).unwrap();
    assert_eq!(fs::read_to_string(place.outside("table")).unwrap(), "t");
    assert_eq!(both.open(&place.db("table"), OpenOpts::read()).unwrap().links().unwrap(), 2);
    // A path that leads out of it by its letters is the user's, and not a name in it.
    let out = place.db("../outside/kept");
    assert_eq!(both.len(&out).unwrap(), Some(4));
}

#[test]
fn what_is_made_gets_no_permission_that_is_denied() {
    let place = Place::new();
    let private = PosixFs::new().beneath(&place.db(""), 0o077).unwrap();
    private.create(&place.db("file"), OpenOpts::write()).unwrap();
    private.create_dir_all(&place.db("a/b")).unwrap();
    drop(private.lock(&place.db("LOCK")).unwrap());
    let inner = private.beneath(&place.db("a"), 0).unwrap();
    inner.create(&place.db("a/file"), OpenOpts::write()).unwrap();
    for (name, mode) in
        [("file", 0o600), ("a/file", 0o600), ("a", 0o700), ("a/b", 0o700), ("LOCK", 0o600)]
    {
        assert_eq!(
            fs::metadata(place.db(name)).unwrap().permissions().mode() & 0o777,
            mode,
            "{name}"
        );
        assert_eq!(private.permissions(&place.db(name)).unwrap(), mode);
    }
}
