//! Directories of backups on a real file system, as root and as an ordinary user: links in them lead
//! nowhere, and copies are no more readable than what they are made of (reliability F22).
#![allow(clippy::disallowed_methods, reason = "a test sets up its world by itself")]

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use lithify::{Backups, Builder, Db, ErrorKind};

use crate::common::tiny;
use crate::common::users::as_both;

struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Place {
        Place(tempfile::tempdir().unwrap())
    }
    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }
    fn db(&self, name: &str) -> Db {
        let db = Builder::new(tiny()).open(self.at(name)).unwrap();
        (0..100u8).for_each(|n| db.put([n], [n; 100]).unwrap());
        db.flush().unwrap();
        db
    }
}

/// Every file below `dir` with its content, permissions and number of names.
fn everything(dir: &Path) -> BTreeMap<PathBuf, (Vec<u8>, u32, u64)> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let meta = fs::symlink_metadata(&path).unwrap();
        if meta.is_dir() {
            found.extend(everything(&path));
        }
        let bytes = fs::read(&path).unwrap_or_default();
        // The number of names of a folder is that of the folders in it.
        found.insert(path, (bytes, meta.mode(), meta.nlink()));
    }
    found
}

#[test]
fn links_among_backups_lead_to_nothing() {
    as_both("backup_links::links_among_backups_lead_to_nothing", || {
        let links =
            ["shared", "private", "meta", "private/1", "meta/1", "shared/*", "meta/2.unmade"];
        for link in links {
            let place = Place::new();
            let mine = place.db("mine");
            place.db("theirs").close().unwrap();
            let backups = place.at("backups");
            Backups::open(&backups).unwrap().create(&mine, &mut |_| {}).unwrap();
            let tables = fs::read_dir(backups.join("shared")).unwrap();
            let table = tables.map(|entry| entry.unwrap().path()).next().unwrap();
            let (name, target) = match link {
                "shared/*" => (table, "theirs/CURRENT"),
                "meta/1" | "meta/2.unmade" => (backups.join(link), "theirs/CURRENT"),
                _ => (backups.join(link), "theirs"),
            };
            // What they have has the names that backups have, too.
            for name in [table_name(&backups), "1".to_owned()] {
                fs::write(place.at("theirs").join(name), "theirs").unwrap();
            }
            if fs::symlink_metadata(&name).is_ok() {
                fs::rename(&name, place.at("aside")).unwrap();
            }
            symlink(place.at(target), &name).unwrap();
            let before = everything(&place.at("theirs"));
            let unchanged = |call: &str| {
                assert!(everything(&place.at("theirs")) == before, "{link}: {call}");
            };
            let opened = Backups::open(&backups);
            unchanged("open");
            if let Ok(opened) = opened {
                for (call, refused) in [
                    ("create", opened.create(&mine, &mut |_| {}).map(drop)),
                    ("purge", opened.purge(0).map(drop)),
                    ("delete", opened.delete(1)),
                ] {
                    let error = refused.expect_err(&format!("{link}: {call}"));
                    assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{link}: {call}: {error}");
                    unchanged(call);
                }
                let verified = opened.verify(1, &mut |_| {});
                let restored = opened.restore(1, place.at("restored"), &mut |_| {});
                if link == "meta/2.unmade" {
                    // Nothing of the backup itself is behind it.
                    assert!(verified.unwrap().is_empty() && restored.is_ok());
                } else {
                    assert!(verified.is_ok_and(|damage| !damage.is_empty()) || link == "meta/1");
                    assert!(restored.is_err(), "{link}");
                }
                let listed = opened.list();
                assert!(listed.is_err() || link != "meta/1", "{link}: {listed:?}");
                unchanged("reading");
            } else {
                assert!(matches!(link, "meta" | "meta/1"), "{link}: {opened:?}");
            }
            mine.close().unwrap();
        }
    });
}

/// The name of the one table of a directory of backups.
fn table_name(backups: &Path) -> String {
    let meta = fs::read_to_string(backups.join("meta/1")).unwrap();
    let table = meta.lines().find_map(|line| line.strip_prefix("table ")).unwrap().to_owned();
    let [name, bytes, sum] = table.split(' ').collect::<Vec<_>>()[..] else { panic!("{table}") };
    format!("{}_{sum}_{bytes}.sst", name.trim_end_matches(".sst"))
}

/// A handle that was opened before: the folder becomes a link while it is at work.
#[test]
fn a_link_that_comes_later_leads_to_nothing() {
    as_both("backup_links::a_link_that_comes_later_leads_to_nothing", || {
        let place = Place::new();
        let (mine, theirs) = (place.db("mine"), place.at("theirs"));
        place.db("theirs").close().unwrap();
        let backups = Backups::open(place.at("backups")).unwrap();
        backups.create(&mine, &mut |_| {}).unwrap();
        let before = everything(&theirs);
        fs::rename(place.at("backups/shared"), place.at("aside")).unwrap();
        symlink(&theirs, place.at("backups/shared")).unwrap();
        mine.put(b"more", b"1").unwrap();
        assert!(backups.create(&mine, &mut |_| {}).is_err() && backups.purge(0).is_err());
        assert!(backups.restore(1, place.at("restored"), &mut |_| {}).is_err());
        assert!(everything(&theirs) == before);
        // The directory itself is the one that was opened, whatever has its path by now.
        fs::remove_file(place.at("backups/shared")).unwrap();
        fs::rename(place.at("aside"), place.at("backups/shared")).unwrap();
        fs::rename(place.at("backups"), place.at("moved")).unwrap();
        symlink(&theirs, place.at("backups")).unwrap();
        backups.purge(0).unwrap();
        assert!(everything(&theirs) == before);
        assert_eq!(fs::read_dir(place.at("moved/meta")).unwrap().count(), 0);
        mine.close().unwrap();
    });
}

fn set_bits(dir: &Path, bits: u32) {
    for (path, (_, mode, _)) in everything(dir) {
        if mode & 0o170_000 == 0o100_000 {
            fs::set_permissions(path, fs::Permissions::from_mode(bits)).unwrap();
        }
    }
}

fn most_bits(dir: &Path) -> u32 {
    let copies = everything(dir).into_iter().filter(|(path, (_, mode, _))| {
        // LOCK is empty, and no copy.
        mode & 0o170_000 == 0o100_000 && !path.ends_with("LOCK")
    });
    copies.fold(0, |most, (_, (_, mode, _))| most | mode & 0o777)
}

#[test]
fn copies_are_no_more_readable_than_what_they_are_made_of() {
    as_both("backup_links::copies_are_no_more_readable_than_what_they_are_made_of", || {
        let place = Place::new();
        let db = place.db("db");
        let backups = |name: &str| Backups::open(place.at(name)).unwrap();
        set_bits(&place.at("db"), 0o644);
        backups("open").create(&db, &mut |_| {}).unwrap();
        backups("open").restore(1, place.at("open-again"), &mut |_| {}).unwrap();
        assert!(most_bits(&place.at("open")) & 0o044 == most_bits(&place.at("open-again")) & 0o044);
        set_bits(&place.at("db"), 0o600);
        backups("closed").create(&db, &mut |_| {}).unwrap();
        assert_eq!(most_bits(&place.at("closed")), 0o600);
        backups("closed").restore(1, place.at("closed-again"), &mut |_| {}).unwrap();
        assert_eq!(most_bits(&place.at("closed-again")), 0o600);
        // A table of a backup that was closed later.
        set_bits(&place.at("open/shared"), 0o600);
        backups("open").restore(1, place.at("later"), &mut |_| {}).unwrap();
        assert_eq!(most_bits(&place.at("later")), 0o600);
        // In a directory of backups that was made for a database that all may read.
        db.put(b"more", b"1").unwrap();
        backups("open").create(&db, &mut |_| {}).unwrap();
        let private = place.at("open/private/2");
        assert_eq!(most_bits(&private), 0o600);
        db.close().unwrap();
    });
}

/// A list and a table that are next to nothing on disk, and 2^42 bytes long.
#[test]
fn holes_are_not_read() {
    let place = Place::new();
    let db = place.db("db");
    let backups = place.at("backups");
    Backups::open(&backups).unwrap().create(&db, &mut |_| {}).unwrap();
    db.close().unwrap();
    let (long, sum) = (1u64 << 42, 0xabc);
    let body = format!(
        "lithify backup 1\nid 2\nunix_seconds 5\nlast_seq 6\nmanifest 7\n\
         table 000077.sst {long} {sum:016x}\nsmall MANIFEST-000007 3 0000000000000001\n"
    );
    let list = format!("{body}sum {:016x}\n", xxhash_rust::xxh3::xxh3_64(body.as_bytes()));
    fs::write(backups.join("meta/2"), &list).unwrap();
    let table = backups.join(format!("shared/000077_{sum:016x}_{long}.sst"));
    fs::File::create(&table).unwrap().set_len(long).unwrap();
    let opened = Backups::open(&backups).unwrap();
    let damage = opened.verify(2, &mut |_| {}).unwrap();
    assert_eq!(damage.len(), 2, "{damage:?}");
    assert!(damage[0].to_string().contains("000077"), "{damage:?}");
    let refused = opened.restore(2, place.at("restored"), &mut |_| {}).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Corruption, "{refused}");
    let list = fs::File::options().write(true).open(backups.join("meta/2")).unwrap();
    list.set_len(100 << 20).unwrap();
    assert_eq!(opened.list().unwrap_err().kind(), ErrorKind::Corruption);
}

/// Gives every file below `dir`, and `dir` itself, these permissions.
fn chmod_all(dir: &Path, files: u32, dirs: u32) {
    fs::set_permissions(dir, fs::Permissions::from_mode(0o755)).unwrap();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => chmod_all(&path, files, dirs),
            false => fs::set_permissions(&path, fs::Permissions::from_mode(files)).unwrap(),
        }
    }
    fs::set_permissions(dir, fs::Permissions::from_mode(dirs)).unwrap();
}

#[test]
fn backups_that_may_only_be_read_are_restored() {
    as_both("backup_links::backups_that_may_only_be_read_are_restored", || {
        let place = Place::new();
        let mine = place.db("mine");
        let backups = place.at("backups");
        Backups::open(&backups).unwrap().create(&mine, &mut |_| {}).unwrap();
        chmod_all(&backups, 0o444, 0o555);
        let opened = Backups::open(&backups).unwrap();
        assert_eq!(opened.list().unwrap().len(), 1);
        assert!(opened.verify(1, &mut |_| {}).unwrap().is_empty());
        opened.restore(1, place.at("back"), &mut |_| {}).unwrap();
        assert_eq!(
            Db::open(place.at("back"), tiny()).unwrap().get([7]).unwrap().unwrap(),
            [7; 100]
        );
        drop(opened);
        chmod_all(&backups, 0o644, 0o755);
    });
}
