//! Places for databases and for what is made of them: a directory of other files is refused before
//! anything is written, and so is a target in the directory that it is made of.
#![allow(clippy::disallowed_methods, reason = "a test sets up its world by itself")]

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lithify::import::ImportOptions;
use lithify::{Backups, Builder, Db, ErrorKind, Result, Settings};
use lithify_env::{Env, Fault, FaultFs, OpenOpts, RtOptions};

use crate::common::tiny;

/// Every file and directory below `root` with its content.
fn tree(root: &Path) -> BTreeMap<PathBuf, Option<Vec<u8>>> {
    let mut found = BTreeMap::new();
    let mut todo = vec![root.to_path_buf()];
    while let Some(dir) = todo.pop() {
        for entry in std::fs::read_dir(&dir).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() && !path.is_symlink() {
                true => {
                    todo.push(path.clone());
                    found.insert(path, None);
                }
                false => drop(found.insert(path.clone(), std::fs::read(&path).ok())),
            }
        }
    }
    found
}

/// The names of the directory's entries.
fn names(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<String> = entries.map(|name| name.into_string().unwrap()).collect();
    names.sort_unstable();
    names
}

#[test]
fn a_directory_of_other_files_is_refused_and_stays_as_it_is() {
    let scratch = tempfile::tempdir().unwrap();
    let photos = scratch.path().join("photos");
    std::fs::create_dir_all(photos.join("2024")).unwrap();
    std::fs::write(photos.join("LOCK"), "another program's").unwrap();
    let before = tree(scratch.path());
    let refused = Db::open(&photos, tiny()).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InvalidArgument);
    let said = refused.to_string();
    assert!(["photos", "`2024`", "create_among_files"].iter().all(|w| said.contains(w)), "{said}");
    assert!(tree(scratch.path()) == before, "something was written");

    std::fs::remove_file(photos.join("LOCK")).unwrap();
    let db = Builder::new(tiny()).create_among_files().open(&photos).unwrap();
    db.put(b"a", b"1").unwrap();
    db.close().unwrap();
    // It is a database now, and no one has to insist any more.
    let db = Db::open(&photos, tiny()).unwrap();
    assert_eq!(db.get(b"a").unwrap().as_deref(), Some(&b"1"[..]));
    db.close().unwrap();
    assert!(photos.join("2024").is_dir());
}

#[test]
fn tables_and_logs_without_a_manifest_are_refused_before_anything_is_written() {
    let scratch = tempfile::tempdir().unwrap();
    for name in ["000012.sst", "000007.log", "000003.ldb"] {
        let dir = scratch.path().join(name.replace('.', "-"));
        std::fs::create_dir(&dir).unwrap();
        std::fs::write(dir.join(name), "x").unwrap();
        let refused = Db::open(&dir, tiny()).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Corruption, "{name}");
        assert_eq!(names(&dir), [name]);
    }
}

#[test]
fn a_newly_mounted_disk_is_empty() {
    let scratch = tempfile::tempdir().unwrap();
    let mounted = |name: &str| {
        let dir = scratch.path().join(name);
        std::fs::create_dir_all(dir.join("lost+found")).unwrap();
        dir
    };
    let db = Db::open(mounted("disk"), tiny()).unwrap();
    db.put(b"a", b"1").unwrap();
    db.checkpoint(mounted("second")).unwrap();
    let backups = Backups::open(mounted("third")).unwrap();
    backups.create(&db, &mut |_| {}).unwrap();
    backups.restore(1, mounted("fourth"), &mut |_| {}).unwrap();
    db.close().unwrap();
    for name in ["disk", "second", "fourth"] {
        let db = Db::open(scratch.path().join(name), tiny()).unwrap();
        assert_eq!(db.get(b"a").unwrap().as_deref(), Some(&b"1"[..]), "{name}");
        db.close().unwrap();
    }
}

/// A creation that fails at any call is gone on with by the next open, which need not insist; in a
/// directory with other files it must, until something of a database is there.
#[test]
fn what_an_interrupted_creation_left_is_gone_on_with() {
    let mut failed = 0;
    for at in 0u64.. {
        let env = Env::in_memory(RtOptions::default());
        env.fs.create_dir_all("among".as_ref()).unwrap();
        env.fs.create("among/notes".as_ref(), OpenOpts::write()).unwrap();
        let faulty = FaultFs::new(env.fs.clone(), move |op| {
            (op.index >= at).then(|| Fault::from(io::Error::from_raw_os_error(5)))
        });
        let faulty = Env { fs: Arc::new(faulty), rt: env.rt.clone() };
        let first = Builder::new(tiny()).env(faulty.clone()).open("alone").map(Db::close);
        let _ = Builder::new(tiny()).env(faulty).create_among_files().open("among").map(Db::close);
        let again = Builder::new(tiny()).env(env.clone()).open("alone");
        again.unwrap_or_else(|e| panic!("call {at}: {e}")).close().unwrap();
        let insisting = Builder::new(tiny()).env(env.clone()).create_among_files().open("among");
        insisting.unwrap_or_else(|e| panic!("call {at}: {e}")).close().unwrap();
        match first {
            Ok(Ok(())) => break,
            _ => failed += 1,
        }
    }
    assert!(failed > 20, "{failed} calls");
}

/// Makes something at a path out of the database.
type Make<'a> = &'a dyn Fn(&Path) -> Result<()>;

/// A database `db` with a link to it, and a directory `rocks` of RocksDB.
struct Place {
    scratch: tempfile::TempDir,
    db: Db,
}

impl Place {
    fn new() -> Place {
        let scratch = tempfile::tempdir().unwrap();
        let db = Db::open(scratch.path().join("db"), tiny()).unwrap();
        db.put(b"a", b"1").unwrap();
        db.flush().unwrap();
        std::os::unix::fs::symlink(scratch.path().join("db"), scratch.path().join("link")).unwrap();
        Place { scratch, db }
    }
    fn at(&self, name: &str) -> PathBuf {
        self.scratch.path().join(name)
    }
    /// The targets that `make` must refuse without a trace, if `from` is what it reads.
    #[track_caller]
    fn refuses(&self, what: &str, from: &str, make: Make<'_>) {
        let roundabout = format!("none/../{from}/./x");
        let inside = [format!("{from}/x"), format!("{from}/x/y"), roundabout, from.to_owned()];
        let linked = inside.iter().map(|path| path.replace(from, "link"));
        let linked = linked.filter(|_| from == "db");
        let around = [".".to_owned(), String::new()];
        for target in inside.iter().cloned().chain(linked.collect::<Vec<_>>()).chain(around) {
            let before = names_below(self.scratch.path());
            let refused = make(&self.at(&target)).expect_err(&format!("{what} at `{target}`"));
            assert_eq!(refused.kind(), ErrorKind::InvalidArgument, "{what} at {target}: {refused}");
            assert!(refused.to_string().contains("choose another"), "{what}: {refused}");
            let after = names_below(self.scratch.path());
            assert!(after == before, "{what} at {target} left {after:?}");
        }
    }
}

/// All paths but that of the event log, which comes with its first line.
fn names_below(root: &Path) -> Vec<PathBuf> {
    tree(root).into_keys().filter(|path| !path.ends_with("EVENTS")).collect()
}

#[test]
fn a_copy_is_never_made_in_what_it_is_made_of() {
    let place = Place::new();
    let db = &place.db;
    place.refuses("a checkpoint", "db", &|to| db.checkpoint(to));
    place.refuses("a backup", "db", &|to| Backups::open(to)?.create(db, &mut |_| {}).map(drop));
    let backups = Backups::open(place.at("backups")).unwrap();
    backups.create(db, &mut |_| {}).unwrap();
    place.refuses("a restore", "backups", &|to| backups.restore(1, to, &mut |_| {}).map(drop));
    db.clone().close().unwrap();
    let builder = || Builder::new(Settings::default());
    place.refuses("a salvage", "db", &|to| {
        builder().salvage(place.at("db"), to, &mut |_| {}).map(drop)
    });
    let rocks = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/foreign/leveldb-log");
    std::fs::create_dir(place.at("rocks")).unwrap();
    for entry in std::fs::read_dir(rocks).unwrap().map(|entry| entry.unwrap()) {
        std::fs::copy(entry.path(), place.at("rocks").join(entry.file_name())).unwrap();
    }
    let options = ImportOptions::default();
    place.refuses("an import", "rocks", &|to| {
        builder().import(place.at("rocks"), to, options, &mut |_| {}).map(drop)
    });
    place.refuses("what is kept", "rocks", &|to| {
        builder().import_in_place(place.at("rocks"), Some(to), options, &mut |_| {}).map(drop)
    });
}

#[test]
fn backups_need_a_place_of_their_own_and_write_nothing_before_the_first() {
    let place = Place::new();
    std::fs::create_dir(place.at("photos")).unwrap();
    std::fs::write(place.at("photos/beach"), "sand").unwrap();
    let backups = Backups::open(place.at("photos")).unwrap();
    let refused = backups.create(&place.db, &mut |_| {}).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InvalidArgument);
    assert!(refused.to_string().contains("`beach`"), "{refused}");
    assert_eq!(names(&place.at("photos")), ["beach"]);
    let none = Backups::open(place.at("none")).unwrap();
    assert_eq!(none.list().unwrap(), []);
    assert_eq!(none.purge(1).unwrap(), [0; 0]);
    assert_eq!(none.verify(1, &mut |_| {}).unwrap_err().kind(), ErrorKind::NotFound);
    assert!(!place.at("none").exists(), "looking for backups made a directory");
    none.create(&place.db, &mut |_| {}).unwrap();
    let second = Backups::open(place.at("none")).unwrap_err();
    assert_eq!(second.kind(), ErrorKind::Locked);
    // A first backup that was cut short left some of the folders.
    std::fs::create_dir_all(place.at("begun/shared")).unwrap();
    Backups::open(place.at("begun")).unwrap().create(&place.db, &mut |_| {}).unwrap();
}
