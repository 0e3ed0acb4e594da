//! Directories that a stranger prepared: links, FIFOs and permissions. Whatever lies in one, nothing
//! outside is read, made, changed or deleted, and no call waits for ever (reliability F22).
#![allow(clippy::disallowed_methods, reason = "a test sets up its world by itself")]

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{LazyLock, mpsc};
use std::time::Duration;

use lithify::import::ImportOptions;
use lithify::{Backups, Builder, Db, ErrorKind, Result, Settings};

use crate::common::tiny;
use crate::common::users::as_both;

/// The files of a sound database.
static SOUND: LazyLock<BTreeMap<String, Vec<u8>>> = LazyLock::new(|| {
    let scratch = tempfile::tempdir().unwrap();
    let db = Db::open(scratch.path(), tiny()).unwrap();
    for n in 0..100 {
        db.put(format!("key{n}").as_bytes(), [7; 100]).unwrap();
    }
    db.flush().unwrap();
    db.put(b"in the log", b"1").unwrap();
    db.close().unwrap();
    let files = names(scratch.path()).into_iter();
    files.map(|name| (name.clone(), fs::read(scratch.path().join(name)).unwrap())).collect()
});

/// A database, and beside it what must not change.
struct Place {
    scratch: tempfile::TempDir,
}

impl Place {
    fn new() -> Place {
        let place = Place { scratch: tempfile::tempdir().unwrap() };
        fs::create_dir(place.db("")).unwrap();
        for (name, content) in SOUND.iter() {
            fs::write(place.db(name), content).unwrap();
        }
        fs::create_dir(place.outside("")).unwrap();
        chmod(place.scratch.path(), 0o755);
        for name in ["kept", "taken.sst"] {
            fs::write(place.outside(name), "what a stranger wants").unwrap();
        }
        place
    }

    fn db(&self, name: &str) -> PathBuf {
        self.scratch.path().join("db").join(name)
    }

    fn outside(&self, name: &str) -> PathBuf {
        self.scratch.path().join("outside").join(name)
    }

    fn new_place(&self, name: &str) -> PathBuf {
        self.scratch.path().join(name)
    }

    /// The first of the database's files whose name begins and ends so.
    fn file(&self, begin: &str, end: &str) -> PathBuf {
        let names = names(&self.db(""));
        let name = names.iter().find(|n| n.starts_with(begin) && n.ends_with(end)).unwrap();
        self.db(name)
    }
}

fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<String> = entries.map(|name| name.into_string().unwrap()).collect();
    names.sort_unstable();
    names
}

/// All that can be seen of a directory's files, times of access aside.
fn facts(dir: &Path) -> BTreeMap<String, (Vec<u8>, u64, u64, u32, i64)> {
    let fact = |name: String| {
        let path = dir.join(&name);
        let meta = fs::symlink_metadata(&path).unwrap();
        let seen = (meta.ino(), meta.nlink(), meta.mode(), meta.mtime_nsec());
        (name, (fs::read(&path).unwrap(), seen.0, seen.1, seen.2, seen.3))
    };
    names(dir).into_iter().map(fact).collect()
}

/// What can be asked of a directory, with a place for what is made of it; each with a name.
type Ask = fn(&Path, &Path) -> Result<()>;

const ASKED: [(&str, Ask); 11] = [
    ("open", |dir, _| {
        let db = Db::open(dir, tiny())?;
        db.put(b"another", b"2")?;
        db.flush()?;
        db.compact_range(None, None)?;
        db.close()
    }),
    ("open for reading", |dir, _| {
        let db = Builder::new(tiny()).open_read_only(dir)?;
        db.get(b"key7").map(drop)
    }),
    ("follow", |dir, _| Builder::new(tiny()).open_follower(dir).map(drop)),
    ("verify", |dir, _| {
        let report = Builder::new(tiny()).verify(dir, &mut |_| {})?;
        report.findings.into_iter().next().map_or(Ok(()), |finding| Err(finding.error))
    }),
    ("list families", |dir, _| Db::list_column_families(dir).map(drop)),
    ("read settings", |dir, _| Settings::stored_in(dir).map(drop)),
    ("salvage", |dir, to| Builder::new(tiny()).salvage(dir, to, &mut |_| {}).map(drop)),
    ("import", |dir, to| {
        Builder::new(tiny()).import(dir, to, ImportOptions::default(), &mut |_| {}).map(drop)
    }),
    ("import in place", |dir, kept| {
        let options = ImportOptions::default();
        Builder::new(tiny()).import_in_place(dir, Some(kept), options, &mut |_| {}).map(drop)
    }),
    ("checkpoint", |dir, to| Builder::new(tiny()).open_read_only(dir)?.checkpoint(to)),
    ("back up", |dir, to| {
        let db = Db::open(dir, tiny())?;
        Backups::open(to)?.create(&db, &mut |_| {})?;
        db.close()
    }),
];

/// Asks in a thread of its own, which must be back in ten seconds.
fn ask(ask: Ask, dir: PathBuf, to: PathBuf) -> Result<()> {
    let (tell, told) = mpsc::channel();
    std::thread::spawn(move || tell.send(ask(&dir, &to)));
    told.recv_timeout(Duration::from_secs(10)).expect("it hangs")
}

/// The names of a database's files: begin and end.
const FILES: [(&str, &str); 8] = [
    ("CURRENT", ""),
    ("MANIFEST-", ""),
    ("0", ".sst"),
    ("0", ".log"),
    ("OPTIONS-", ""),
    ("IDENTITY", ""),
    ("LOCK", ""),
    ("EVENTS", ""),
];

/// Directories, each with what was done to one of its files, and whether that file is needed by all.
fn spoilt(spoil: impl Fn(&Place, &Path)) -> Vec<(String, Place)> {
    let of = |(begin, end): (&str, &str)| {
        let place = Place::new();
        let path = place.file(begin, end);
        spoil(&place, &path);
        (path.file_name().unwrap().to_string_lossy().into_owned(), place)
    };
    FILES.into_iter().map(of).collect()
}

#[test]
fn links_lead_nowhere() {
    as_both("directories::links_lead_nowhere", || {
        for (asked, question) in ASKED {
            let moved = spoilt(|place, path| {
                // A sound file, but elsewhere: reading it would be an answer, and is refused.
                fs::rename(path, place.outside("its own")).unwrap();
                symlink(place.outside("its own"), path).unwrap();
            });
            let strange = spoilt(|place, path| {
                fs::remove_file(path).unwrap();
                symlink(place.outside("taken.sst"), path).unwrap();
            });
            let dangling = spoilt(|place, path| {
                fs::remove_file(path).unwrap();
                symlink(place.outside("new"), path).unwrap();
            });
            for (name, place) in moved.into_iter().chain(strange).chain(dangling) {
                let before = facts(&place.outside(""));
                let answer = ask(question, place.db(""), place.new_place("to"));
                assert!(facts(&place.outside("")) == before, "{asked}, {name}: {answer:?}");
                let needed = name == "CURRENT" || name.starts_with("MANIFEST");
                let looks_elsewhere = matches!(asked, "read settings" | "salvage");
                assert!(!needed || looks_elsewhere || answer.is_err(), "{asked}, {name}");
                if place.new_place("to").exists() {
                    let to = place.new_place("to");
                    let links = names(&to).into_iter().filter(|n| to.join(n).is_symlink());
                    assert_eq!(links.collect::<Vec<_>>(), [""; 0], "{asked}, {name}");
                }
            }
        }
    });
}

#[test]
fn a_table_that_is_a_link_is_refused_by_its_name() {
    let place = Place::new();
    let table = place.file("0", ".sst");
    fs::rename(&table, place.outside("table")).unwrap();
    symlink(place.outside("table"), &table).unwrap();
    let refused = |asked: &str| {
        let question = ASKED.iter().find(|(name, _)| *name == asked).unwrap().1;
        ask(question, place.db(""), place.new_place(asked)).unwrap_err().to_string()
    };
    for asked in ["open", "open for reading", "checkpoint", "back up"] {
        let said = refused(asked);
        let name = table.file_name().unwrap().to_str().unwrap();
        assert!(said.contains(name) && said.contains("symbolic link"), "{asked}: {said}");
    }
}

#[test]
fn temporary_files_are_made_anew() {
    as_both("directories::temporary_files_are_made_anew", || {
        for hard in [false, true] {
            let place = Place::new();
            let bait = |name: String| match hard {
                true => fs::hard_link(place.outside("kept"), place.db(&name)).unwrap(),
                false => symlink(place.outside("kept"), place.db(&name)).unwrap(),
            };
            (0..60).for_each(|n| bait(format!("{n:06}.dbtmp")));
            (0..60).for_each(|n| bait(format!("OPTIONS-{n:06}.dbtmp")));
            for name in ["EVENTS", "EVENTS.old"] {
                let _ = fs::remove_file(place.db(name));
                bait(name.to_owned());
            }
            let content = fs::read(place.outside("kept")).unwrap();
            for _ in 0..3 {
                ask(ASKED[0].1, place.db(""), place.new_place("to")).unwrap();
            }
            assert_eq!(fs::read(place.outside("kept")).unwrap(), content);
            assert_eq!(names(&place.outside("")), ["kept", "taken.sst"]);
            assert!(!place.db("EVENTS").is_symlink());
            assert_eq!(fs::metadata(place.db("EVENTS")).unwrap().nlink(), 1);
        }
    });
}

#[test]
fn a_fifo_is_refused_at_once() {
    as_both("directories::a_fifo_is_refused_at_once", || {
        for (asked, question) in ASKED {
            let fifos = spoilt(|_, path| {
                fs::remove_file(path).unwrap();
                assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
            });
            for (name, place) in fifos {
                let answer = ask(question, place.db(""), place.new_place("to"));
                if matches!((asked, &*name), ("open" | "back up", "LOCK") | ("open", "CURRENT")) {
                    let said = answer.unwrap_err().to_string();
                    assert!(said.contains(&name) && said.contains("FIFO"), "{asked}: {said}");
                }
            }
        }
    });
}

#[test]
fn a_lock_that_a_reader_holds_is_named() {
    let place = Place::new();
    let lock = place.db("LOCK");
    let args = ["--shared", lock.to_str().unwrap(), "sleep", "20"];
    let mut reader = Command::new("flock").args(args).spawn().expect("util-linux has flock");
    let mut said = String::new();
    for _ in 0..100 {
        match Db::open(place.db(""), tiny()) {
            Ok(db) => db.close().unwrap(),
            Err(e) => {
                assert_eq!(e.kind(), ErrorKind::Locked);
                said = e.to_string();
                break;
            }
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    reader.kill().unwrap();
    reader.wait().unwrap();
    assert!(said.contains("process ") && said.contains("shared"), "{said}");
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

fn chmod(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// The permissions of a directory's files, all of them together.
fn modes(dir: &Path) -> u32 {
    names(dir)
        .iter()
        .map(|name| dir.join(name))
        .map(|path| match path.is_dir() {
            true => modes(&path),
            false => mode(&path),
        })
        .fold(0, |all, bits| all | bits)
}

#[test]
fn copies_are_no_more_readable_than_their_sources() {
    as_both("directories::copies_are_no_more_readable_than_their_sources", || {
        let makers = ["salvage", "checkpoint", "back up"];
        for (files, dir) in [(0o600, 0o755), (0o640, 0o750), (0o644, 0o700), (0o644, 0o755)] {
            for asked in makers {
                let place = Place::new();
                if asked == "checkpoint" {
                    // A handle that only reads copies none whose log holds writes.
                    Db::open(place.db(""), tiny()).unwrap().close().unwrap();
                }
                names(&place.db("")).iter().for_each(|name| chmod(&place.db(name), files));
                chmod(&place.db(""), dir);
                let to = place.new_place("to");
                // A place that is there already, open to all.
                fs::create_dir(&to).unwrap();
                chmod(&to, 0o755);
                let question = ASKED.iter().find(|(name, _)| *name == asked).unwrap().1;
                ask(question, place.db(""), to.clone()).unwrap();
                let allowed = if dir == 0o700 { 0o600 } else { files };
                assert_eq!(
                    modes(&to) & !allowed,
                    0,
                    "{asked} of {files:o} in {dir:o}: {:o}",
                    modes(&to)
                );
                if asked == "back up" {
                    let back = place.new_place("back");
                    Backups::open(&to).unwrap().restore(1, &back, &mut |_| {}).unwrap();
                    assert_eq!(modes(&back) & !allowed, 0, "restored: {:o}", modes(&back));
                    assert_eq!(
                        Db::open(&back, tiny()).unwrap().get(b"key7").unwrap().unwrap(),
                        [7; 100]
                    );
                }
            }
        }
    });
}

#[test]
fn private_files_are_for_their_owner_alone() {
    let scratch = tempfile::tempdir().unwrap();
    let dir = scratch.path().join("deep/db");
    let mut settings = tiny();
    settings.private_files = true;
    let db = Db::open(&dir, settings).unwrap();
    db.put(b"a", b"1").unwrap();
    db.flush().unwrap();
    db.checkpoint(scratch.path().join("copy")).unwrap();
    db.close().unwrap();
    for dir in [dir, scratch.path().join("copy")] {
        assert_eq!(modes(&dir) & 0o077, 0, "{:o}", modes(&dir));
        assert_eq!(mode(&dir), 0o700);
    }
}

/// A directory that RocksDB left.
fn foreign(place: &Place) -> PathBuf {
    let theirs = place.new_place("theirs");
    fs::create_dir(&theirs).unwrap();
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/foreign/rocksdb-versions");
    for name in names(&from) {
        fs::copy(from.join(&name), theirs.join(&name)).unwrap();
        chmod(&theirs.join(&name), 0o600);
    }
    theirs
}

#[test]
fn imports_take_no_links_and_give_no_permissions() {
    as_both("directories::imports_take_no_links_and_give_no_permissions", || {
        for asked in ["import", "import in place"] {
            let question = ASKED.iter().find(|(name, _)| *name == asked).unwrap().1;
            let place = Place::new();
            let theirs = foreign(&place);
            ask(question, theirs.clone(), place.new_place("to")).unwrap();
            assert_eq!(modes(&place.new_place("to")) & 0o077, 0, "{asked}");

            for (begin, end) in [("0", ".sst"), ("IDENTITY", ""), ("EVENTS.old", "")] {
                let place = Place::new();
                let theirs = foreign(&place);
                let name =
                    names(&theirs).into_iter().find(|n| n.starts_with(begin) && n.ends_with(end));
                let path = theirs.join(name.unwrap_or_else(|| begin.to_owned()));
                match path.exists() {
                    true => fs::rename(&path, place.outside("its own")).unwrap(),
                    false => fs::write(place.outside("its own"), "another").unwrap(),
                }
                symlink(place.outside("its own"), &path).unwrap();
                let before = facts(&place.outside(""));
                let answer = ask(question, theirs.clone(), place.new_place("to"));
                assert!(facts(&place.outside("")) == before, "{asked}, {}", path.display());
                if end == ".sst" {
                    let said = answer.unwrap_err().to_string();
                    assert!(said.contains("symbolic link"), "{asked}: {said}");
                }
                for made in [place.new_place("to"), theirs.clone()] {
                    let entries = if made.exists() { names(&made) } else { Vec::new() };
                    let link = |n: &&String| made.join(n).is_symlink() && made.join(n) != path;
                    assert_eq!(entries.iter().filter(link).count(), 0, "{asked}");
                }
            }
        }
    });
}

#[test]
fn a_log_that_is_no_file_is_refused_and_not_passed_over() {
    as_both("directories::a_log_that_is_no_file_is_refused_and_not_passed_over", || {
        let spoils: [fn(&Place, &Path); 4] = [
            |place, log| symlink(place.outside("taken.sst"), log).unwrap(),
            |place, log| symlink(place.outside("new"), log).unwrap(),
            |_, log| fs::create_dir(log).unwrap(),
            |_, log| assert!(Command::new("mkfifo").arg(log).status().unwrap().success()),
        ];
        for (asked, question) in ASKED {
            if matches!(asked, "list families" | "read settings" | "import" | "import in place") {
                continue;
            }
            for spoil in spoils {
                let place = Place::new();
                let log = place.file("0", ".log");
                fs::remove_file(&log).unwrap();
                spoil(&place, &log);
                let answer = ask(question, place.db(""), place.new_place("to"));
                if asked == "salvage" {
                    continue;
                }
                let said = answer.expect_err(asked).to_string();
                let name = log.file_name().unwrap().to_str().unwrap();
                assert!(said.contains(name) && said.contains("regular file"), "{asked}: {said}");
            }
        }
    });
}

/// Swaps two names over and over while `ask` runs.
fn while_swapped(one: PathBuf, other: PathBuf, ask: impl FnOnce()) {
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                let (cwd, flags) = (rustix::fs::CWD, rustix::fs::RenameFlags::EXCHANGE);
                let _ = rustix::fs::renameat_with(cwd, &one, cwd, &other, flags);
            }
        });
        ask();
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
    });
}

#[test]
fn a_link_in_the_place_of_a_new_directory_leads_nowhere() {
    for round in 0..40 {
        let place = Place::new();
        let victim = place.new_place("victim");
        let db = Db::open(&victim, tiny()).unwrap();
        db.put(b"precious", b"1").unwrap();
        db.close().unwrap();
        let (asked, question) = *ASKED
            .iter()
            .filter(|(name, _)| matches!(*name, "checkpoint" | "back up" | "salvage"))
            .nth(round % 3)
            .unwrap();
        let before = facts(&victim);
        let (to, link) = (place.new_place("to"), place.new_place("link"));
        symlink(&victim, &link).unwrap();
        while_swapped(to.clone(), link, || drop(ask(question, place.db(""), to.clone())));
        assert!(facts(&victim) == before, "{asked}, round {round}");
    }
}
