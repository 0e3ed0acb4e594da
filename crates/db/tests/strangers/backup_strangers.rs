//! Directories of backups that a stranger, another program or an earlier release prepared: nothing is
//! written where the backups of another program are, and nothing goes that no list of ours names (reliability F22).
#![allow(clippy::disallowed_methods, reason = "a test sets up its world by itself")]

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;
use std::sync::Arc;

use lithify::{Backups, Builder, Db, ErrorKind, Result, Settings};
use lithify_env::{
    EntryKind, Env, Fault, FaultFs, FsRef, OpenOpts, RtOptions, read_full_at, write_all_at,
};
use lithify_store::backup::Backup;

use crate::common::tiny;

fn world() -> (Env, Db) {
    let env = Env::in_memory(RtOptions { upkeep_threads: 2, ..RtOptions::default() });
    let db = Builder::new(quiet()).env(env.clone()).open("db").unwrap();
    put(&db, 1);
    (env, db)
}

fn quiet() -> Settings {
    let mut s = tiny();
    s.auto_compaction = false;
    s
}

fn put(db: &Db, round: u8) {
    (0..100u8).for_each(|n| db.put([n], [round; 100]).unwrap());
    db.flush().unwrap();
}

fn write(fs: &FsRef, path: &str, bytes: &[u8]) {
    let path = Path::new(path);
    fs.create_dir_all(path.parent().unwrap()).unwrap();
    let _ = fs.unlink(path);
    write_all_at(&*fs.create(path, OpenOpts::write()).unwrap(), bytes, 0).unwrap();
}

fn read(fs: &FsRef, path: &Path) -> Vec<u8> {
    let file = fs.open(path, OpenOpts::read()).unwrap();
    let mut bytes = vec![0; file.len().unwrap() as usize];
    read_full_at(&*file, &mut bytes, 0).unwrap();
    bytes
}

/// Every path below `dir`, folders included, with its content.
fn tree(fs: &FsRef, dir: &str) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut todo = vec![dir.to_owned()];
    while let Some(dir) = todo.pop() {
        for entry in fs.list(dir.as_ref()).unwrap_or_default() {
            let path = format!("{dir}/{}", entry.name);
            let is_dir = entry.kind == EntryKind::Dir;
            let bytes = match is_dir {
                true => Vec::new(),
                false => read(fs, path.as_ref()),
            };
            if is_dir {
                todo.push(path.clone());
            }
            found.insert(path, bytes);
        }
    }
    found
}

fn open(env: &Env) -> Result<Backups> {
    Backups::open_in("backups", env.clone())
}

fn create(env: &Env, db: &Db) -> u64 {
    open(env).unwrap().create(db, &mut |_| {}).unwrap().id
}

/// A list with its sum.
fn seal(body: &str) -> Vec<u8> {
    let sum = xxhash_rust::xxh3::xxh3_64(body.as_bytes());
    format!("{body}sum {sum:016x}\n").into_bytes()
}

const HEAD: &str = "lithify backup 1\nid 1\nunix_seconds 5\nlast_seq 6\nmanifest 7\n";
const SMALL: &str = "small MANIFEST-000007 3 0000000000000001\n";

const OF_ROCKS: [(&str, &str); 3] = [
    ("meta/1", "1600000000\n5\n2\nprivate/1/MANIFEST-000005 crc32 77\n"),
    ("private/1/MANIFEST-000005", "manifest"),
    ("private/1/CURRENT", "MANIFEST-000005\n"),
];

#[test]
fn backups_of_another_program_are_left_as_they_are() {
    let whole = OF_ROCKS.map(|(path, text)| (path, text.as_bytes()));
    let table = [("shared/000007.sst", &b"a table"[..])];
    let summed = [("shared_checksum/000007_2894567812_590.sst", &b"a table"[..])];
    let begun = [("private/1/MANIFEST-000005", &b"manifest"[..])];
    let temp = [("meta/.1.tmp", &b"16000"[..])];
    let ours_named = [("meta/3.unmade", &b"1600000000\n5\n"[..])];
    let (empty, other) = ([("meta/x", &b""[..])], [("shared/x", &b"photo"[..])]);
    let dirs: [&[(&str, &[u8])]; 10] = [
        &[&whole[..], &table].concat(),
        &[&whole[..], &summed].concat(),
        &whole,
        &table,
        &summed,
        &begun,
        &temp,
        &ours_named,
        &empty,
        &other,
    ];
    for (n, files) in dirs.iter().enumerate() {
        let (env, db) = world();
        // A handle from before they came, too.
        let early = open(&env).unwrap();
        for (path, bytes) in *files {
            write(&env.fs, &format!("backups/{path}"), bytes);
        }
        let before = tree(&env.fs, "backups");
        let refused = [
            open(&env).map(drop),
            early.create(&db, &mut |_| {}).map(drop),
            early.purge(0).map(drop),
            early.delete(1),
        ];
        for (call, refused) in refused.into_iter().enumerate() {
            // Where there is no list of that number, that may be said as well.
            let error = refused.expect_err(&format!("directory {n}, call {call}"));
            let missing = call == 3 && error.kind() == ErrorKind::NotFound;
            assert!(error.kind() == ErrorKind::InvalidArgument || missing, "{n}, {call}: {error}");
            assert!(
                missing || error.to_string().contains("choose another"),
                "{n}, {call}: {error}"
            );
        }
        assert!(tree(&env.fs, "backups") == before, "directory {n} was changed");
        db.close().unwrap();
    }
}

#[test]
fn a_list_of_another_program_among_ours_stops_changes_and_no_restore() {
    let (env, db) = world();
    assert_eq!(create(&env, &db), 1);
    write(&env.fs, "backups/meta/2", OF_ROCKS[0].1.as_bytes());
    let before = tree(&env.fs, "backups");
    let backups = open(&env).unwrap();
    let refused = [
        backups.create(&db, &mut |_| {}).map(drop),
        backups.purge(0).map(drop),
        backups.delete(1),
        backups.delete(2),
    ];
    for error in refused.map(Result::unwrap_err) {
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert!(error.to_string().contains("`meta/2`"), "{error}");
    }
    assert_eq!(backups.list().unwrap_err().kind(), ErrorKind::Corruption);
    assert!(backups.verify(1, &mut |_| {}).unwrap().is_empty());
    backups.restore(1, "restored", &mut |_| {}).unwrap();
    assert!(tree(&env.fs, "backups") == before);
    db.close().unwrap();
}

/// What earlier releases left when they were killed, and files of others: no list names them.
#[test]
fn what_no_list_names_stays_and_hinders_nothing() {
    let (env, db) = world();
    let litter = [
        "shared/000004_tmp",
        "shared/000004_00000000000000ff_5.sst",
        "shared/000004_2.tmp",
        "shared/photo.sst",
        "private/3/IDENTITY",
        "private/7/notes",
        "private/notes",
        "meta/tmp",
        "meta/notes",
        "meta/5.tmp",
    ];
    assert_eq!(create(&env, &db), 1);
    for path in litter {
        write(&env.fs, &format!("backups/{path}"), b"litter");
    }
    let before = tree(&env.fs, "backups");
    // 2, 3 and 5 are taken by others.
    assert_eq!(create(&env, &db), 4);
    assert_eq!(create(&env, &db), 6);
    let backups = open(&env).unwrap();
    backups.delete(6).unwrap();
    assert_eq!(backups.purge(1).unwrap(), [1]);
    assert_eq!(backups.purge(0).unwrap(), [4]);
    drop(backups);
    let mut left = before.clone();
    left.retain(|path, bytes| !path.ends_with("LOCK") && bytes == b"litter");
    let mut after = tree(&env.fs, "backups");
    after.retain(|path, bytes| !path.ends_with("LOCK") && !bytes.is_empty());
    assert!(after == left, "{:?}", after.keys());
    db.close().unwrap();
}

/// A first backup of an earlier release that was cut short left files and no list.
#[test]
fn what_a_first_backup_left_without_a_list_is_no_hindrance() {
    let (env, db) = world();
    for path in ["shared/000004_tmp", "private/1/IDENTITY", "LOCK", "meta/tmp"] {
        write(&env.fs, &format!("backups/{path}"), b"");
    }
    assert_eq!(create(&env, &db), 2);
    assert_eq!(open(&env).unwrap().purge(0).unwrap(), [2]);
    assert!(env.fs.len("backups/private/1/IDENTITY".as_ref()).unwrap().is_some());
    assert_eq!(create(&env, &db), 2);
    db.close().unwrap();
}

/// The name of a shared file says its sum: what is under it is looked at all the same.
#[test]
fn a_file_with_the_name_of_a_table_is_looked_at_and_never_written_to() {
    let (env, db) = world();
    assert_eq!(create(&env, &db), 1);
    let shared = Path::new("backups/shared");
    let name = env.fs.list(shared).unwrap().remove(0).name;
    let path = shared.join(name);
    let good = read(&env.fs, &path);
    let mut bad = good.clone();
    bad[50] ^= 1;
    // It has another name, in a database perhaps.
    write(&env.fs, "elsewhere/table", &bad);
    let replace = || {
        env.fs.unlink(&path).unwrap();
        env.fs.link("elsewhere/table".as_ref(), &path).unwrap();
    };
    replace();
    assert_eq!(open(&env).unwrap().verify(1, &mut |_| {}).unwrap().len(), 1);
    // A list names it, so a good one takes its place.
    assert_eq!(create(&env, &db), 2);
    for id in [1, 2] {
        assert!(open(&env).unwrap().verify(id, &mut |_| {}).unwrap().is_empty());
    }
    assert!(read(&env.fs, "elsewhere/table".as_ref()) == bad);
    // No list names it: it is none of ours.
    open(&env).unwrap().purge(0).unwrap();
    env.fs.link("elsewhere/table".as_ref(), &path).unwrap();
    let refused = open(&env).unwrap().create(&db, &mut |_| {}).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InvalidArgument, "{refused}");
    assert!(refused.to_string().contains("move it away"), "{refused}");
    assert!(read(&env.fs, "elsewhere/table".as_ref()) == bad);
    // A good one is as welcome as one of ours.
    write(&env.fs, &path.display().to_string(), &good);
    let again = open(&env).unwrap().create(&db, &mut |_| {}).unwrap();
    assert_eq!(again.copied, 0);
    db.close().unwrap();
}

#[test]
fn lists_that_make_no_sense_are_refused() {
    let table = |n: u64, bytes: u64| format!("table {n:06}.sst {bytes} 00000000000000aa\n");
    let good = format!("{HEAD}{}{SMALL}", table(4, 9));
    assert_eq!(Backup::parse(&seal(&good)).unwrap().bytes(), 12);
    // One of what is prepared is all that a backup has of logs.
    let log = "small 000003.log 5 00000000000000aa\n";
    Backup::parse(&seal(&format!("{HEAD}{SMALL}{log}"))).unwrap();
    let (three, nine) = (table(3, 1), table(9, u64::MAX));
    let bad = [
        HEAD.to_owned(),
        format!("{HEAD}{three}{three}{SMALL}"),
        format!("{HEAD}{three}table 000003.ldb 1 00000000000000aa\n{SMALL}"),
        format!("{HEAD}{}{three}{SMALL}", table(4, 9)),
        format!("{HEAD}{three}{nine}{SMALL}"),
        format!("{HEAD}{SMALL}{SMALL}"),
        format!("{HEAD}{SMALL}{three}"),
        format!("{HEAD}{SMALL}{log}{}", log.replace('3', "4")),
        format!("{HEAD}{SMALL}small CURRENT 5 00000000000000aa\n"),
        format!("{HEAD}{SMALL}small LOCK 0 00000000000000aa\n"),
        format!("{HEAD}{SMALL}making 000003.sst\n"),
        format!("{HEAD}{SMALL}small ../IDENTITY 5 00000000000000aa\n"),
        good.replace("unix_seconds 5", "unix_seconds +5"),
        good.replace("last_seq 6", "last_seq 18446744073709551616"),
        good.replace("000004.sst 9", "000004.sst 09"),
        good.replace("000004.sst", "18446744073709551616.sst"),
        good.replace("0000aa", "0000AA"),
        good.replace("00000000000000aa", "aa"),
        good.replace("00000000000000aa", "100000000000000aa"),
        good.replace("backup 1", "backup 2"),
        good.replace("manifest 7", "manifest 8"),
    ];
    for text in bad {
        let error = Backup::parse(&seal(&text)).expect_err(&text);
        assert_eq!(error.kind(), ErrorKind::Corruption, "{text}: {error}");
    }
}

#[test]
fn numbers_at_their_end_and_lists_under_other_names_are_errors() {
    let (env, db) = world();
    let last = HEAD.replace("id 1\n", "id 18446744073709551615\n");
    write(&env.fs, "backups/meta/18446744073709551615", &seal(&format!("{last}{SMALL}")));
    let backups = open(&env).unwrap();
    assert_eq!(backups.list().unwrap()[0].id, u64::MAX);
    let refused = backups.create(&db, &mut |_| {}).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::LimitExceeded, "{refused}");
    assert_eq!(backups.verify(u64::MAX, &mut |_| {}).unwrap().len(), 1);
    backups.delete(u64::MAX).unwrap();
    assert_eq!(backups.create(&db, &mut |_| {}).unwrap().id, 1);
    // The list of backup 1 as that of another, existing or not.
    let text = read(&env.fs, "backups/meta/1".as_ref());
    write(&env.fs, "backups/meta/5", &text);
    write(&env.fs, "backups/meta/6.unmade", &text);
    assert_eq!(backups.list().unwrap_err().kind(), ErrorKind::Corruption);
    backups.delete(5).unwrap();
    assert!(backups.verify(1, &mut |_| {}).unwrap().is_empty());
    // What is under 6 is passed by.
    assert_eq!(backups.create(&db, &mut |_| {}).unwrap().id, 7);
    db.close().unwrap();
}

/// A list of what may go, made by a stranger: only names of ours, only here, and none that a backup needs.
#[test]
fn an_unmade_list_takes_nothing_that_a_backup_needs() {
    let (env, db) = world();
    assert_eq!(create(&env, &db), 1);
    let before = tree(&env.fs, "backups");
    let all = String::from_utf8(read(&env.fs, "backups/meta/1".as_ref())).unwrap();
    let body = &all[..all.rfind("sum ").unwrap()];
    for id in [1, 2] {
        let hostile = body.replace("id 1\n", &format!("id {id}\n"));
        write(&env.fs, &format!("backups/meta/{id}.unmade"), &seal(&hostile));
    }
    write(&env.fs, "backups/private/2/notes", b"notes");
    write(&env.fs, "backups/private/2/IDENTITY", b"named");
    let backups = open(&env).unwrap();
    assert_eq!(backups.purge(1).unwrap(), [0; 0]);
    let mut after = tree(&env.fs, "backups");
    assert_eq!(after.remove("backups/private/2/notes").unwrap(), b"notes");
    after.remove("backups/private/2");
    assert!(after == before, "{:?}", after.keys());
    // With a list that can't be read, nothing goes.
    write(&env.fs, "backups/meta/4", &all.as_bytes()[..all.len() - 1]);
    write(&env.fs, "backups/meta/3.unmade", &seal(&body.replace("id 1\n", "id 3\n")));
    assert_eq!(backups.create(&db, &mut |_| {}).unwrap().id, 5);
    assert!(env.fs.len("backups/meta/3.unmade".as_ref()).unwrap().is_some());
    assert!(backups.verify(5, &mut |_| {}).unwrap().is_empty());
    drop(backups);
    db.close().unwrap();
}

/// What is in the folders, and what the lists say that should be.
fn there_and_named(env: &Env) -> [BTreeSet<String>; 2] {
    let there = tree(&env.fs, "backups");
    let mut named = BTreeSet::new();
    for (path, text) in there.iter().filter(|(path, _)| path.starts_with("backups/meta/")) {
        let backup = Backup::parse(text).unwrap_or_else(|e| panic!("{path}: {e}"));
        named.extend([format!("backups/private/{}", backup.id), path.clone()]);
        for table in &backup.tables {
            let number = table.name.number().unwrap();
            let name = format!("{number:06}_{:016x}_{}.sst", table.sum, table.bytes);
            named.insert(format!("backups/shared/{name}"));
        }
        let small = backup.small.iter();
        named.extend(small.map(|file| format!("backups/private/{}/{}", backup.id, file.name)));
    }
    let parts = ["shared", "private", "meta", "LOCK"].map(|name| format!("backups/{name}"));
    [there.into_keys().filter(|path| !parts.contains(path)).collect(), named]
}

/// Whichever call of a backup, a purge or a deletion fails, the next change clears up.
#[test]
fn every_failing_call_leaves_what_the_next_change_removes() {
    type Change<'a> = (&'a str, &'a dyn Fn(&Backups, &Db) -> Result<()>);
    let changes: [Change<'_>; 3] = [
        ("create", &|backups, db| backups.create(db, &mut |_| {}).map(drop)),
        ("purge", &|backups, _| backups.purge(1).map(drop)),
        ("delete", &|backups, _| backups.delete(2)),
    ];
    for (name, change) in changes {
        // Some calls are allowed to fail, so one that passes is not the end yet.
        let (mut fails, mut passed) = (0, 0);
        for at in 0u64.. {
            let (env, db) = world();
            create(&env, &db);
            put(&db, 2);
            create(&env, &db);
            put(&db, 3);
            let faulty = FaultFs::new(env.fs.clone(), move |op| {
                (op.index == at).then(|| Fault::from(io::Error::from(io::ErrorKind::StorageFull)))
            });
            let in_faulty = Env { fs: Arc::new(faulty), rt: env.rt.clone() };
            let changed =
                Backups::open_in("backups", in_faulty).and_then(|backups| change(&backups, &db));
            open(&env).unwrap().purge(usize::MAX).unwrap();
            let [there, named] = there_and_named(&env);
            assert_eq!(there, named, "{name}, call {at}");
            let backups = open(&env).unwrap();
            let made = backups.create(&db, &mut |_| {}).unwrap();
            for backup in backups.list().unwrap() {
                let damage = backups.verify(backup.id, &mut |_| {}).unwrap();
                assert!(damage.is_empty(), "{name}, call {at}, {}: {damage:?}", backup.id);
            }
            assert!(made.id >= 2, "{name}, call {at}");
            drop(backups);
            db.close().unwrap();
            match changed {
                Ok(()) if passed == 3 => break,
                Ok(()) => passed += 1,
                Err(_) => (fails, passed) = (fails + 1, 0),
            }
        }
        assert!(fails > 30, "{name}: {fails} calls");
    }
}
