//! Directories of several column families, moved to the other engine after the one that wrote them was
//! killed: every acknowledged batch is there in all families, and none is there in a part of them.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use lithify::import::ImportOptions;
use lithify::{Builder, ColumnFamilyOptions, Db, ErrorKind};
use rocksdb::{ColumnFamilyDescriptor, DB, IteratorMode, Options, WriteBatch};

use crate::c_api;
use crate::our_tables::small;

const NAMES: [&str; 3] = ["default", "index", "rare"];
/// What the test binary does when it is started again, and where.
const STORY: &str = "LITHIFY_FAMILIES_STORY";

/// Families are flushed at different times: one gets ten times the bytes of the next.
fn theirs(dir: &Path) -> DB {
    let options = |more: &str| -> Options {
        c_api::options(&format!(
            "create_if_missing=true;create_missing_column_families=true;paranoid_checks=true;\
             force_consistency_checks=true;write_buffer_size=65536;target_file_size_base=65536;{more}"
        ))
    };
    let families = NAMES.map(|name| ColumnFamilyDescriptor::new(name, options("")));
    DB::open_cf_descriptors(&options("track_and_verify_wals_in_manifest=true"), dir, families)
        .unwrap()
}

fn ours(dir: &Path) -> Db {
    let db = Db::open(dir, small()).unwrap();
    for name in &NAMES[1..] {
        match db.create_column_family(name, ColumnFamilyOptions::new()) {
            Ok(_) => {}
            Err(e) => assert_eq!(e.kind(), ErrorKind::InvalidArgument, "{e}"),
        }
    }
    db
}

fn key(n: u32) -> Vec<u8> {
    format!("key{n:08}").into_bytes()
}

/// The value of a key in family `at`.
fn value(n: u32, at: usize) -> Vec<u8> {
    vec![n as u8; [300, 30, 3][at] + n as usize % 7]
}

/// The older key that a batch deletes besides.
fn deleted(n: u32) -> Option<u32> {
    (n > 0 && n % 5 == 0).then_some(n / 2)
}

#[test]
fn the_other_process() {
    let Ok(story) = std::env::var(STORY) else { return };
    let (engine, rest) = story.split_once(' ').unwrap();
    let (first, dir) = rest.split_once(' ').unwrap();
    let (first, dir) = (first.parse::<u32>().unwrap(), Path::new(dir));
    let say = |n: u32| {
        let mut out = std::io::stdout();
        writeln!(out, "wrote {n}").and_then(|()| out.flush()).unwrap();
    };
    match engine {
        "rocksdb" => {
            let db = theirs(dir);
            for n in first.. {
                let mut batch = WriteBatch::default();
                for (at, name) in NAMES.iter().enumerate() {
                    let family = db.cf_handle(name).unwrap();
                    batch.put_cf(&family, key(n), value(n, at));
                    if let Some(old) = deleted(n) {
                        batch.delete_cf(&family, key(old));
                    }
                }
                db.write(batch).unwrap();
                say(n);
            }
        }
        "lithify" => {
            let db = ours(dir);
            let all = NAMES.map(|name| db.column_family(name).unwrap());
            for n in first.. {
                let mut batch = lithify::WriteBatch::new();
                for (at, family) in all.iter().enumerate() {
                    batch.put_cf(family, key(n), value(n, at)).unwrap();
                    if let Some(old) = deleted(n) {
                        batch.delete_cf(family, key(old)).unwrap();
                    }
                }
                db.write(&batch).unwrap();
                say(n);
            }
        }
        other => panic!("no story {other}"),
    }
}

fn start(engine: &str, first: u32, dir: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "families_killed::the_other_process", "--nocapture"])
        .env(STORY, format!("{engine} {first} {}", dir.display()))
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// Has `engine` write from number `first` on, kills it once it acknowledged `last`, and says how far
/// it had come by then.
fn killed(engine: &str, first: u32, last: u32, dir: &Path) -> u32 {
    let mut child = start(engine, first, dir);
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let number = |line: String| line.strip_prefix("wrote ").and_then(|n| n.parse::<u32>().ok());
    let (mut said, mut alive) = (0, true);
    // What it said before the signal counts, too.
    for n in lines.filter_map(number) {
        said = n;
        if n >= last && alive {
            child.kill().unwrap();
            alive = false;
        }
    }
    child.wait().unwrap();
    assert!(said >= last, "it ended by itself, at {said}");
    said
}

type Content = Vec<(Vec<u8>, Vec<u8>)>;

fn of_ours(db: &Db) -> [Content; 3] {
    NAMES.map(|name| {
        let mut iter = db.column_family(name).unwrap().iter().unwrap();
        let mut all = Content::new();
        iter.seek_to_first();
        while iter.valid() {
            all.push((iter.key().to_vec(), iter.value().to_vec()));
            iter.next();
        }
        iter.status().unwrap();
        all
    })
}

fn of_theirs(db: &DB) -> [Content; 3] {
    NAMES.map(|name| {
        let all = db.iterator_cf(&db.cf_handle(name).unwrap(), IteratorMode::Start);
        all.map(|entry| entry.map(|(k, v)| (k.into_vec(), v.into_vec())).unwrap()).collect()
    })
}

/// All families show the state after one and the same batch, which is `acknowledged` or a later one;
/// its number.
fn whole(all: &[Content; 3], acknowledged: u32) -> u32 {
    let last = |content: &Content| -> u32 {
        let (key, _) = content.last().expect("something was written");
        std::str::from_utf8(&key[3..]).unwrap().parse().unwrap()
    };
    let count = last(&all[0]);
    assert!(count >= acknowledged, "{acknowledged} was acknowledged, and {count} is the last");
    let gone: std::collections::BTreeSet<u32> = (0..=count).filter_map(deleted).collect();
    for (at, content) in all.iter().enumerate() {
        let expected: Content =
            (0..=count).filter(|n| !gone.contains(n)).map(|n| (key(n), value(n, at))).collect();
        assert!(*content == expected, "{} is not as after batch {count}", NAMES[at]);
    }
    count
}

fn into_ours(from: &Path, to: &Path) {
    let options = ImportOptions { verify: true, ..ImportOptions::default() };
    Builder::new(small()).import(from, to, options, &mut |_| {}).unwrap();
}

/// Settles ours, and has RocksDB check and read it; where it is then.
fn into_theirs(dir: &Path, acknowledged: u32) -> u32 {
    let db = ours(dir);
    let count = whole(&of_ours(&db), acknowledged);
    db.settle().unwrap();
    db.close().unwrap();
    let db = theirs(dir);
    c_api::verify_checksum(&db).unwrap();
    assert_eq!(whole(&of_theirs(&db), acknowledged), count);
    count
}

#[test]
fn rocksdb_killed_over_families() {
    for last in [150, 4000] {
        let place = tempfile::tempdir().unwrap();
        let (from, to) = (place.path().join("theirs"), place.path().join("ours"));
        std::fs::create_dir(&from).unwrap();
        let said = killed("rocksdb", 0, last, &from);
        let read_only = Db::open_read_only(&from, small()).unwrap();
        let count = whole(&of_ours(&read_only), said);
        drop(read_only);
        into_ours(&from, &to);
        assert_eq!(into_theirs(&to, said), count);
        // Once more, in what was ours; and taken over where it lies.
        let said = killed("rocksdb", count + 1, count + last, &to);
        let db = ours(&to);
        whole(&of_ours(&db), said);
        db.close().unwrap();
    }
}

#[test]
fn ours_killed_over_families() {
    for last in [150, 6000] {
        let place = tempfile::tempdir().unwrap();
        let dir = place.path().join("ours");
        let said = killed("lithify", 0, last, &dir);
        let count = into_theirs(&dir, said);
        // RocksDB goes on, and ours after it.
        let said = killed("rocksdb", count + 1, count + last, &dir);
        let db = ours(&dir);
        let count = whole(&of_ours(&db), said);
        db.close().unwrap();
        let said = killed("lithify", count + 1, count + last, &dir);
        into_theirs(&dir, said);
    }
}
