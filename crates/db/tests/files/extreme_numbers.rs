//! Numbers that no counter has reached: names that anyone put into the directory, and manifests whose
//! counters are near their ends. The first never matter; the second are refused before anything is
//! written, and what the database holds can still be taken out.

#![allow(clippy::disallowed_methods, reason = "the watchdog of other tests")]

use std::sync::Arc;

use crate::common::image::{self, Image};
use crate::common::{Content, scan, tiny};
use lithify::verify::verify;
use lithify::{Builder, ColumnFamilyOptions, Db, ErrorKind, Settings};
use lithify_base::{CfId, FileId, MAX_SEQ};
use lithify_env::{Env, FsRef, MemFs, OsRt, RtOptions, RtRef};
use lithify_files::Dir;
use lithify_files::wal::{NewLog, WalWriter};
use lithify_journal::manifest::{FamilyState, ManifestState, WireFile};
use lithify_journal::wal::BatchBuilder;
use lithify_store::manifest::{ManifestLog, recover};

const DIRECTORY: &str = "/db";
const FAR: u64 = 1 << 40;
/// Numbers of stray names, relative to the counter and not.
const NEAR: [u64; 3] = [0, 1, 1000];
const HUGE: [u64; 8] =
    [2 * FAR, (1 << 62) - 1, 1 << 62, (1 << 62) + 1, 1 << 63, u64::MAX - 2, u64::MAX - 1, u64::MAX];

fn settings() -> Settings {
    let mut s = tiny();
    s.auto_compaction = false;
    s
}

fn world(fs: &MemFs, rt: &RtRef) -> Env {
    Env { fs: Arc::new(fs.clone()), rt: rt.clone() }
}

fn builder(fs: &MemFs, rt: &RtRef) -> Builder {
    Builder::new(settings()).env(world(fs, rt))
}

fn runtime() -> RtRef {
    Arc::new(OsRt::new(RtOptions::default()))
}

fn put(db: &Db, content: &mut Content, key: &str, value: &str) {
    db.put(key, value).unwrap();
    content.insert(key.into(), value.into());
}

/// A database with two tables and a log, as a crash leaves it, and what it holds.
fn base(rt: &RtRef) -> (Image, Content) {
    let (fs, mut content) = (MemFs::new(), Content::new());
    let db = builder(&fs, rt).open(DIRECTORY).unwrap();
    for round in 0..2 {
        for n in 0..20 {
            put(&db, &mut content, &format!("key{n:02}"), &format!("value {round}"));
        }
        db.flush().unwrap();
    }
    put(&db, &mut content, "logged", "in the log only");
    let image = image::take(&fs, DIRECTORY);
    db.close().unwrap();
    (image, content)
}

fn next_file(image: &Image) -> u64 {
    let dir = Dir::new(Arc::new(image::put(image, DIRECTORY)), DIRECTORY);
    recover(&dir).unwrap().unwrap().state.next_file
}

/// Three lives with writes, a flush, a compaction, a crash and a close; all values are there each time.
fn lives(image: &Image, mut content: Content, rt: &RtRef) -> Image {
    let mut image = image.clone();
    for life in 0..3 {
        let fs = image::put(&image, DIRECTORY);
        let db = builder(&fs, rt).open(DIRECTORY).unwrap();
        assert_eq!(scan(&db).unwrap(), content);
        put(&db, &mut content, &format!("first of life {life}"), "in a log");
        let crashed = image::put(&image::take(&fs, DIRECTORY), DIRECTORY);
        put(&db, &mut content, "key05", &format!("life {life}"));
        db.flush().unwrap();
        db.compact_range(None, None).unwrap();
        put(&db, &mut content, &format!("last of life {life}"), "in a log");
        db.close().unwrap();
        image = image::take(&fs, DIRECTORY);
        // As the crash left it: with what was written until then.
        let db = builder(&crashed, rt).open(DIRECTORY).unwrap();
        assert_eq!(db.get(format!("first of life {life}")).unwrap().unwrap(), b"in a log");
        db.close().unwrap();
    }
    let fs: FsRef = Arc::new(image::put(&image, DIRECTORY));
    let report = verify(fs, DIRECTORY, None, &mut |_| {}).unwrap();
    assert!(report.findings.is_empty(), "{:?}", report.findings);
    let db = builder(&image::put(&image, DIRECTORY), rt).open_read_only(DIRECTORY).unwrap();
    assert_eq!(scan(&db).unwrap(), content);
    image
}

#[test]
fn a_stray_name_with_any_number_locks_no_owner_out() {
    let rt = runtime();
    let (image, content) = base(&rt);
    let next = next_file(&image);
    let numbers = NEAR.map(|n| (next + n, true)).into_iter().chain(HUGE.map(|n| (n, false)));
    for (n, near) in numbers {
        let kinds = ["{}.log", "{}.sst", "{}.ldb", "MANIFEST-{}", "OPTIONS-{}"];
        for kind in kinds.into_iter().chain(["{}.dbtmp", "OPTIONS-{}.dbtmp"]) {
            for bytes in [&b""[..], b"x"] {
                let name = kind.replace("{}", &format!("{n:06}"));
                let mut stray = image.clone();
                stray.insert(name.clone(), bytes.to_vec());
                println!("{name} of {} bytes", bytes.len());
                let after = lives(&stray, content.clone(), &rt);
                if !near {
                    assert_eq!(after.get(&name).map(Vec::as_slice), Some(bytes), "not ours");
                    // It left the counter where it was.
                    assert!(next_file(&after) < next + 1000);
                }
            }
        }
    }
}

/// A directory without a database, where one was begun or a stranger put a name.
#[test]
fn a_stray_name_is_no_start_for_a_new_database() {
    let rt = runtime();
    for n in HUGE {
        let all = [format!("MANIFEST-{n}"), format!("OPTIONS-{n}"), format!("{n}.dbtmp")];
        let image: Image = all.into_iter().map(|name| (name, b"x".to_vec())).collect();
        let after = lives(&image, Content::new(), &rt);
        assert!(next_file(&after) < 1000);
        assert!(image.iter().all(|(name, bytes)| after.get(name) == Some(bytes)));
    }
}

fn family(state: &mut ManifestState) -> &mut FamilyState {
    state.families.get_mut(&CfId(0)).unwrap()
}

fn first(state: &mut ManifestState) -> &mut WireFile {
    family(state).files.values_mut().next().unwrap()
}

/// The database with a manifest that is changed.
fn forged(image: &Image, change: impl FnOnce(&mut ManifestState)) -> Image {
    let fs = image::put(image, DIRECTORY);
    let dir = Dir::new(Arc::new(fs.clone()), DIRECTORY);
    let mut state = recover(&dir).unwrap().unwrap().state;
    let number = state.next_file;
    state.next_file += 1;
    change(&mut state);
    ManifestLog::create(&dir, number, state).unwrap();
    image::take(&fs, DIRECTORY)
}

/// Every way to write into it is refused with a way out, and leaves it as it is.
fn refused(what: &str, image: &Image, content: &Content, rt: &RtRef) {
    println!("{what}");
    let fs = image::put(image, DIRECTORY);
    let error = builder(&fs, rt).open(DIRECTORY).unwrap_err();
    assert!(error.is_corruption() && error.to_string().contains("salvage"), "{what}: {error}");
    assert!(error.file().is_some(), "{what}: {error}");
    assert_eq!(&image::take(&fs, DIRECTORY), image, "{what}: not as it was");
    // The way out that the error names.
    builder(&fs, rt).salvage(DIRECTORY, "/out", &mut |_| {}).unwrap();
    let db = builder(&fs, rt).open("/out").unwrap();
    assert_eq!(&scan(&db).unwrap(), content, "{what}");
    db.close().unwrap();
    assert_eq!(&image::take(&fs, DIRECTORY), image, "{what}: salvage wrote there");
}

#[test]
fn counters_near_their_ends_are_refused_before_anything_is_written() {
    let rt = runtime();
    let (image, content) = base(&rt);
    for n in [(1 << 62) + 1, 1 << 63, u64::MAX - 1, u64::MAX] {
        let forge = |what: &str, change: &dyn Fn(&mut ManifestState)| {
            refused(&format!("{what} {n}"), &forged(&image, change), &content, &rt);
        };
        forge("next file", &|state| state.next_file = n);
        forge("log number", &|state| family(state).log_number = n);
        forge("logs to keep", &|state| state.min_log_to_keep = n);
        forge("a log", &|state| {
            state.wals.insert(n, None);
        });
    }
    let last_write = |n| forged(&image, |state| state.last_seq = n);
    for n in [MAX_SEQ - 1000, MAX_SEQ - 1, MAX_SEQ] {
        refused(&format!("last write {n}"), &last_write(n), &content, &rt);
    }
    // Those are no numbers of writes, and the manifest cannot be read.
    for n in [MAX_SEQ + 1, 1 << 63, u64::MAX] {
        refused_to_write(&format!("last write {n}"), &last_write(n), &rt);
    }
}

/// As [`refused`], where the manifest is damaged besides.
fn refused_to_write(what: &str, image: &Image, rt: &RtRef) {
    println!("{what}");
    let fs = image::put(image, DIRECTORY);
    let error = builder(&fs, rt).open(DIRECTORY).unwrap_err();
    assert!(error.is_corruption(), "{what}: {error}");
    assert_eq!(&image::take(&fs, DIRECTORY), image, "{what}: not as it was");
}

/// A table's number is its name.
#[test]
fn a_table_with_a_number_at_the_end_is_refused() {
    let rt = runtime();
    let (base, content) = base(&rt);
    for n in [1 << 63, u64::MAX - 1, u64::MAX] {
        let backed = forged(&base, |state| first(state).backing = Some(n));
        refused_to_write(&format!("backing {n}"), &backed, &rt);
        let mut old = 0;
        let mut image = forged(&base, |state| {
            let files = &mut family(state).files;
            let mut file = files.pop_first().unwrap().1;
            old = std::mem::replace(&mut file.number, n);
            files.insert(n, file);
        });
        let bytes = image.remove(&format!("{old:06}.sst")).unwrap();
        image.insert(format!("{n:06}.sst"), bytes);
        refused(&format!("table {n}"), &image, &content, &rt);
    }
}

/// What orders nothing that is to come, or can be numbered anew, is no reason to refuse.
#[test]
fn ages_and_families_at_the_end_of_their_numbers_do_no_harm() {
    let rt = runtime();
    let (image, content) = base(&rt);
    let last = u64::from(u32::MAX);
    for epoch in [last, last - 1, 1 << 31, 1 << 32, u64::MAX - 1, u64::MAX] {
        println!("epoch {epoch}");
        let newest = |state: &mut ManifestState| {
            family(state).files.values_mut().next_back().unwrap().epoch = epoch;
        };
        lives(&forged(&image, newest), content.clone(), &rt);
    }
    for n in [u64::MAX, u64::MAX - 1] {
        lives(&forged(&image, |state| state.prev_log = n), content.clone(), &rt);
    }
    let image = forged(&image, |state| state.max_cf = u32::MAX);
    lives(&image, content, &rt);
    let fs = image::put(&image, DIRECTORY);
    let db = builder(&fs, &rt).open(DIRECTORY).unwrap();
    let error = db.create_column_family("more", ColumnFamilyOptions::new()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::LimitExceeded);
    assert_eq!(db.column_families(), ["default"]);
    db.close().unwrap();
}

/// A log states numbers of writes, too, and what follows it would get those behind them.
#[test]
fn a_log_that_uses_up_the_numbers_of_writes_is_refused() {
    let rt = runtime();
    let (image, _) = base(&rt);
    for last in [MAX_SEQ - 1000, MAX_SEQ] {
        let fs = image::put(&image, DIRECTORY);
        let dir = Dir::new(Arc::new(fs.clone()), DIRECTORY);
        let mut batch = BatchBuilder::new();
        batch.put(CfId(0), b"far", b"away");
        batch.set_sequence(last);
        let number = FileId(next_file(&image));
        let mut log = WalWriter::begin(NewLog::make(&dir, number, true).unwrap(), None, last - 1);
        log.append(batch.as_bytes(), last).unwrap();
        log.sync().unwrap();
        drop(log);
        let image = image::take(&fs, DIRECTORY);
        refused_to_write(&format!("a log up to {last}"), &image, &rt);
        let db = builder(&fs, &rt).open_read_only(DIRECTORY).unwrap();
        assert_eq!(db.get("far").unwrap().unwrap(), b"away");
    }
}
