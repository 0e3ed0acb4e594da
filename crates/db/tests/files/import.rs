//! Directories of RocksDB and LevelDB: opened for reading, taken over into a new directory, and in
//! place; what cannot be taken over is refused by name, with nothing written.
//!
//! `foreign/` has directories as the other engines left them, and beside each the keys and values that
//! the engine itself showed. `foreign/make_leveldb.py` writes those of LevelDB, the interop tests of
//! `peers/rocksdb` those of RocksDB.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a test of bytes in files reads and writes files"
)]

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::common::image::{self, Image};
use crate::common::{Content, scan, tiny};
use lithify::import::{ImportOptions, ImportProgress, ImportReport, ImportStage, Maker};
use lithify::merge::built_in;
use lithify::{
    Backups, Builder, CheckpointOptions, ColumnFamilyOptions, Db, ErrorKind, ReverseBytewise,
    Settings, TransactionOptions,
};
use lithify_base::CfId;
use lithify_env::{Env, FaultFs, Fs, FsRef, MemFs, OpenOpts, OsRt, RtOptions, RtRef};
use lithify_journal::wal::{BatchBuilder, Found, RecordReader, RecordWriter};

const FROM: &str = "/theirs";
const TO: &str = "/new";

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/foreign")
}

fn load(name: &str) -> Image {
    let files = std::fs::read_dir(folder().join(name)).unwrap().map(|entry| entry.unwrap());
    let file = |e: std::fs::DirEntry| {
        (e.file_name().into_string().unwrap(), std::fs::read(e.path()).unwrap())
    };
    files.map(file).collect()
}

fn bytes(hex: &str) -> Vec<u8> {
    let digits = |i| u8::from_str_radix(&hex[i..i + 2], 16).unwrap();
    (0..hex.len()).step_by(2).map(digits).collect()
}

/// What the engine that made it shows.
fn content(name: &str) -> Content {
    let text = std::fs::read_to_string(folder().join(format!("{name}.content"))).unwrap();
    let pair = |line: &str| {
        let (key, value) = line.split_once(' ').unwrap();
        (bytes(key), bytes(value))
    };
    text.lines().map(pair).collect()
}

/// Those that can be taken over.
fn directories() -> Vec<(&'static str, Maker)> {
    vec![
        ("leveldb-filter", Maker::LevelDb),
        ("leveldb-log", Maker::LevelDb),
        ("leveldb-neighbours", Maker::LevelDb),
        ("leveldb-snappy", Maker::LevelDb),
        ("rocksdb-versions", Maker::RocksDb),
        ("rocksdb-recycled", Maker::RocksDb),
        ("rocksdb-prepared", Maker::RocksDb),
    ]
}

fn runtime() -> RtRef {
    Arc::new(OsRt::new(RtOptions { seed: Some(1), ..RtOptions::default() }))
}

fn builder(fs: FsRef, rt: &RtRef) -> Builder {
    let mut settings: Settings = tiny();
    settings.event_log = false;
    Builder::new(settings).env(Env { fs, rt: rt.clone() })
}

fn on(fs: &MemFs, rt: &RtRef) -> Builder {
    builder(Arc::new(fs.clone()), rt)
}

fn take_over(builder: Builder, options: ImportOptions) -> lithify::Result<ImportReport> {
    builder.import(FROM, TO, options, &mut |_| {})
}

fn shown(db: lithify::Result<Db>) -> lithify::Result<Content> {
    let db = db?;
    let content = scan(&db)?;
    for (key, value) in &content {
        assert_eq!(db.get(key)?.as_deref(), Some(&value[..]), "{}", key.escape_ascii());
    }
    db.close()?;
    Ok(content)
}

#[test]
fn they_open_for_reading() {
    let rt = runtime();
    for (name, _) in directories() {
        let before = load(name);
        let fs = image::put(&before, FROM);
        assert_eq!(shown(on(&fs, &rt).open_read_only(FROM)).unwrap(), content(name), "{name}");
        assert_eq!(image::take(&fs, FROM), before, "{name}");
    }
}

#[test]
fn they_are_taken_over_by_links() {
    let rt = runtime();
    for (name, maker) in directories() {
        for quick in [false, true] {
            let before = load(name);
            let tables =
                before.keys().filter(|f| f.ends_with(".sst") || f.ends_with(".ldb")).count();
            let fs = image::put(&before, FROM);
            let used = fs.used();
            let mut stages: Vec<ImportProgress> = Vec::new();
            let options = ImportOptions { quick, verify: true };
            let tell = &mut |p: ImportProgress| stages.push(p);
            let report = on(&fs, &rt).import(FROM, TO, options, tell).unwrap();
            assert_eq!((report.maker, report.copied), (maker, 0), "{name}");
            assert_eq!(report.linked, report.tables, "{name}");
            assert_eq!(report.linked > 0, tables > 0, "{name}");
            assert_eq!(report.keys, Some(content(name).len() as u64), "{name}");
            let logs: u64 =
                before.iter().filter(|f| f.0.ends_with(".log")).map(|f| f.1.len() as u64).sum();
            assert_eq!(report.batches > 0, logs > 0, "{name}");
            // Manifests, options, and a table of what the logs held.
            assert!(
                fs.used() - used < 10_240 + 2 * logs,
                "{name}: {} bytes more",
                fs.used() - used
            );
            assert!(stages.is_sorted_by_key(|p| p.stage as u8), "{stages:?}");
            for stage in [ImportStage::Survey, ImportStage::Link] {
                let last = stages.iter().rfind(|p| p.stage == stage);
                assert_eq!(last.map(|p| p.done), (tables > 0).then_some(report.bytes), "{name}");
            }
            assert_eq!(image::take(&fs, FROM), before, "{name}: the source stays as it was");

            // Read, written, compacted, and read again.
            let db = on(&fs, &rt).open(TO).unwrap();
            let mut all = content(name);
            assert_eq!(scan(&db).unwrap(), all, "{name}");
            db.put("ours", "1").unwrap();
            all.insert(b"ours".to_vec(), b"1".to_vec());
            db.compact_range(None, None).unwrap();
            assert_eq!(scan(&db).unwrap(), all, "{name}");
            db.close().unwrap();
            assert_eq!(shown(on(&fs, &rt).open_read_only(TO)).unwrap(), all, "{name}");
            let found =
                lithify::verify::verify(Arc::new(fs.clone()), TO, None, &mut |_| {}).unwrap();
            assert!(found.is_clean(), "{name}: {:?}", found.findings);
            assert_eq!(image::take(&fs, FROM), before, "{name}: the source stays as it was");
        }
    }
}

#[test]
fn they_are_taken_over_in_place() {
    const KEPT: &str = "/kept";
    let rt = runtime();
    for (name, maker) in directories() {
        let mut before = load(name);
        let fs = image::put(&before, FROM);
        let options = ImportOptions { verify: true, ..ImportOptions::default() };
        let kept = Some(Path::new(KEPT));
        let report = on(&fs, &rt).import_in_place(FROM, kept, options, &mut |_| {}).unwrap();
        assert_eq!((report.maker, report.keys), (maker, Some(content(name).len() as u64)));
        assert_eq!(shown(on(&fs, &rt).open(FROM)).unwrap(), content(name), "{name}");
        // The way back is what was there.
        before.remove("LOCK");
        assert_eq!(image::take(&fs, KEPT), before, "{name}");
        // A second time there is nothing to do, and that is said.
        let again = on(&fs, &rt).import_in_place(FROM, None, ImportOptions::default(), &mut |_| {});
        assert_eq!(again.unwrap_err().kind(), ErrorKind::InvalidArgument);
        let found = lithify::verify::verify(Arc::new(fs.clone()), FROM, None, &mut |_| {}).unwrap();
        assert!(found.is_clean(), "{name}: {:?}", found.findings);
    }
}

/// LevelDB would not read it again, so that is not done by mistake.
#[test]
fn leveldb_is_not_opened_for_writing_by_mistake() {
    let rt = runtime();
    let fs = image::put(&load("leveldb-snappy"), FROM);
    let before = without_lock(&fs, FROM);
    let error = on(&fs, &rt).open(FROM).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.to_string().contains("import --in-place"), "{error}");
    assert_eq!(without_lock(&fs, FROM), before);
}

fn without_lock(fs: &MemFs, directory: &str) -> Image {
    let mut image = image::take(fs, directory);
    image.remove("LOCK");
    image
}

/// A copy of what LevelDB wrote would be a database that opens for reading only.
#[test]
fn leveldb_is_not_copied_before_it_is_imported() {
    let rt = runtime();
    let fs = image::put(&load("leveldb-neighbours"), FROM);
    let env = Env { fs: Arc::new(fs.clone()), rt: rt.clone() };
    let db = on(&fs, &rt).open_read_only(FROM).unwrap();
    let backups = Backups::open_in("/backups", env).unwrap();
    for error in [
        db.checkpoint("/copy").unwrap_err(),
        db.checkpoint_opt("/copy", &CheckpointOptions { copy_logs_below: 1 << 20 }).unwrap_err(),
        backups.create(&db, &mut |_| {}).unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    }
    db.close().unwrap();
    assert_eq!(fs.list(Path::new("/")).unwrap().len(), 1);
    // What RocksDB wrote says enough.
    let fs = image::put(&load("rocksdb-families"), FROM);
    take_over(on(&fs, &rt), ImportOptions::default()).unwrap();
    let db = on(&fs, &rt).open_read_only(TO).unwrap();
    db.checkpoint("/copy").unwrap();
    db.close().unwrap();
    let copied = on(&fs, &rt).open("/copy").unwrap();
    assert_eq!(scan(&copied).unwrap(), content("rocksdb-families"));
    copied.close().unwrap();
}

/// Settled, a directory holds no table that RocksDB does not read, and is the same database.
#[test]
fn what_came_from_leveldb_settles() {
    let rt = runtime();
    let fs = image::put(&load("leveldb-snappy"), FROM);
    take_over(on(&fs, &rt), ImportOptions::default()).unwrap();
    let magic = |bytes: &Vec<u8>| bytes.ends_with(&0x88e2_41b7_85f4_cff7_u64.to_le_bytes());
    let tables = |fs: &MemFs| -> Vec<bool> {
        let mut image = image::take(fs, TO);
        // Those that were replaced may still be on their way out.
        let report = lithify::verify::verify(Arc::new(fs.clone()), TO, None, &mut |_| {}).unwrap();
        report.orphans.iter().for_each(|name| drop(image.remove(name)));
        let table = |f: &(&String, &Vec<u8>)| f.0.ends_with(".ldb") || f.0.ends_with(".sst");
        image.iter().filter(table).map(|f| magic(f.1)).collect()
    };
    assert!(tables(&fs).contains(&false));
    let db = on(&fs, &rt).open(TO).unwrap();
    db.settle().unwrap();
    db.close().unwrap();
    assert!(!tables(&fs).is_empty() && !tables(&fs).contains(&false), "{:?}", tables(&fs));
    assert_eq!(shown(on(&fs, &rt).open_read_only(TO)).unwrap(), content("leveldb-snappy"));
}

/// Until the directory is locked its program may write it, and close it: what it left then counts.
#[test]
fn a_directory_that_is_closed_meanwhile_is_taken_over_as_it_was_left() {
    let rt = runtime();
    let (early, late) = (load("leveldb-log"), load("leveldb-snappy"));
    let mem = image::put(&early, FROM);
    touch(&mem, "LOCK", b"");
    let (now, last) = (mem.clone(), late.clone());
    let fs: FsRef = Arc::new(FaultFs::new(Arc::new(mem.clone()), move |op| {
        if op.name == "lock" && op.path.starts_with(FROM) {
            without_lock(&now, FROM).keys().for_each(|name| {
                now.unlink(&Path::new(FROM).join(name)).unwrap();
            });
            let left = last.iter().filter(|f| f.0 != "LOCK");
            left.for_each(|(name, bytes)| touch(&now, name, bytes));
        }
        None
    }));
    take_over(builder(fs, &rt), ImportOptions::default()).unwrap();
    assert_eq!(shown(on(&mem, &rt).open(TO)).unwrap(), content("leveldb-snappy"));
}

fn touch(fs: &MemFs, name: &str, bytes: &[u8]) {
    let file = fs.open(&Path::new(FROM).join(name), OpenOpts::write().or_create()).unwrap();
    lithify_env::write_all_at(&*file, bytes, 0).unwrap();
}

/// Another user's program holds locks that this one can't see. On a disk that is only read there is none.
#[test]
fn a_lock_that_is_denied_is_not_free() {
    let rt = runtime();
    for (errno, refused) in [(13, true), (1, true), (30, false)] {
        let mem = image::put(&load("leveldb-log"), FROM);
        touch(&mem, "LOCK", b"");
        let fs: FsRef = Arc::new(FaultFs::new(Arc::new(mem.clone()), move |op| {
            let theirs = op.name == "lock" && op.path.starts_with(FROM);
            theirs.then(|| io::Error::from_raw_os_error(errno).into())
        }));
        let result = take_over(builder(fs, &rt), ImportOptions::default());
        let kind = result.err().map(|e| e.kind());
        assert_eq!(kind, refused.then_some(ErrorKind::Locked), "{errno}");
    }
}

/// RocksDB ends its recovery at a log with writes missing behind it, and so does an import. It says so.
#[test]
fn logs_that_are_left_out_are_told() {
    let rt = runtime();
    let mut image = load("leveldb-log");
    let log = image.keys().rfind(|name| name.ends_with(".log")).unwrap().clone();
    let bytes = image.get_mut(&log).unwrap();
    bytes.truncate(bytes.len() - 1);
    let (mut batch, mut later) = (BatchBuilder::new(), Vec::new());
    batch.put(CfId(0), b"later", b"1");
    batch.set_sequence(1 << 40);
    RecordWriter::new().append(batch.as_bytes(), &mut later);
    let name = format!("{:06}.log", log[..6].parse::<u64>().unwrap() + 1);
    // One that had not begun holds nothing that could be left out.
    for (bytes, told) in [(later, true), (vec![], false)] {
        image.insert(name.clone(), bytes);
        let fs = image::put(&image, FROM);
        let report = take_over(on(&fs, &rt), ImportOptions::default()).unwrap();
        assert_eq!(report.notes.iter().any(|n| n.contains(&name)), told, "{:?}", report.notes);
    }
}

/// A file system whose links cross devices.
#[test]
fn another_file_system_gets_copies() {
    let rt = runtime();
    let mem = image::put(&load("rocksdb-versions"), FROM);
    let fs: FsRef = Arc::new(FaultFs::new(Arc::new(mem.clone()), |op| {
        (op.name == "link").then(|| io::Error::from(io::ErrorKind::CrossesDevices).into())
    }));
    let report = take_over(builder(fs, &rt), ImportOptions::default()).unwrap();
    assert_eq!((report.linked, report.copied), (0, report.tables));
    assert_eq!(shown(on(&mem, &rt).open(TO)).unwrap(), content("rocksdb-versions"));
}

/// Refused by name, and neither directory is touched.
fn refused(image: &Image, word: &str) {
    let rt = runtime();
    for quick in [false, true] {
        let fs = image::put(image, FROM);
        let error = take_over(on(&fs, &rt), ImportOptions { quick, verify: false }).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
        assert!(error.to_string().contains(word), "`{word}` is not in: {error}");
        assert_eq!(fs.list(Path::new("/")).unwrap().len(), 1, "{error}: {TO} was made");
        assert_eq!(without_lock(&fs, FROM), *image, "{error}");
        let error = on(&fs, &rt)
            .import_in_place(FROM, None, ImportOptions { quick, verify: false }, &mut |_| {})
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
        assert_eq!(without_lock(&fs, FROM), *image, "{error}");
    }
}

/// A directory with a batch more in its log.
fn logging(name: &str, record: &[u8]) -> Image {
    let mut image = load(name);
    let log = image.keys().rfind(|name| name.ends_with(".log")).unwrap().clone();
    let log = image.get_mut(&log).unwrap();
    let mut batch = BatchBuilder::new();
    batch.set_sequence(1 << 40);
    let mut bytes = batch.as_bytes().to_vec();
    bytes[8] = 1;
    bytes.extend_from_slice(record);
    RecordWriter::at(log.len() as u64).append(&bytes, log);
    image
}

/// A transaction that RocksDB prepared and did not end is prepared here, and the keys that it would write are locked.
#[test]
fn what_is_prepared_there_is_prepared_here() {
    let rt = runtime();
    let fs = image::put(&load("rocksdb-prepared"), FROM);
    take_over(on(&fs, &rt), ImportOptions::default()).unwrap();
    for (dir, opens) in [(FROM, 0), (TO, 1), (FROM, 2)] {
        let db = on(&fs, &rt).open(dir).unwrap();
        let options = TransactionOptions::pessimistic().with_lock_timeout(Duration::ZERO);
        assert!(db.begin_transaction(options).put("k-bill", "").is_err());
        let mut all = db.prepared_transactions().unwrap();
        assert_eq!(all.len(), 1, "{dir}");
        let bill = all.remove(0);
        assert_eq!(bill.name(), Some(&b"bill"[..]));
        if opens == 0 {
            drop(bill);
        } else {
            bill.commit().unwrap();
            assert_eq!(db.get("k-bill").unwrap().as_deref(), Some(&b"billed"[..]));
        }
        db.close().unwrap();
    }
}

#[test]
fn features_of_a_log_are_refused_by_name() {
    refused(&logging("rocksdb-versions", b"\x02\x03key\x01v"), "merge operands");
    refused(&logging("rocksdb-versions", b"\x16\x03key\x01v"), "wide columns");
    refused(&logging("rocksdb-versions", b"\x11\x03key\x01v"), "blob");
    refused(&logging("rocksdb-versions", b"\x13\x03xid"), "two-phase commit");
    refused(&logging("rocksdb-versions", b"\x18\x03key"), "timestamps");
}

/// `rocksdb-versions` with other options.
fn saying(from: &str, to: &str) -> Image {
    let mut image = load("rocksdb-versions");
    let options = image.iter_mut().find(|f| f.0.starts_with("OPTIONS-")).unwrap().1;
    let text = String::from_utf8(options.clone()).unwrap();
    assert!(text.contains(from), "{text}");
    *options = text.replace(from, to).into_bytes();
    image
}

#[test]
fn options_that_change_what_is_here_are_refused_by_name() {
    refused(&saying("table_factory=BlockBasedTable", "table_factory=PlainTable"), "PlainTable");
    refused(
        &saying("use_udi_as_primary_index=false", "use_udi_as_primary_index=true"),
        "user-defined index",
    );
    refused(
        &saying("comparator=leveldb.BytewiseComparator", "comparator=leveldb.Bytewise.u64ts"),
        "timestamps",
    );
    // An operator that was not used is no hindrance.
    let rt = runtime();
    let fs = image::put(&saying("merge_operator=nullptr", "merge_operator=theirs"), FROM);
    let report = take_over(on(&fs, &rt), ImportOptions::default()).unwrap();
    assert!(report.notes.iter().any(|n| n.contains("theirs")), "{:?}", report.notes);
}

/// Logs that lie elsewhere are not forgotten.
#[test]
fn logs_in_another_directory_are_asked_for() {
    let rt = runtime();
    let elsewhere = saying("[DBOptions]", "[DBOptions]\n  wal_dir=/logs");
    // There is no such directory, and the logs are here: the directory was moved.
    let fs = image::put(&elsewhere, FROM);
    take_over(on(&fs, &rt), ImportOptions::default()).unwrap();
    // The logs are there.
    let mut split = elsewhere.clone();
    let log = elsewhere.keys().rfind(|name| name.ends_with(".log")).unwrap();
    let bytes = split.remove(log).unwrap();
    refused(&split, "wal_dir");
    let fs = image::put(&elsewhere, FROM);
    fs.create_dir_all(Path::new("/logs")).unwrap();
    let file = fs.create(&Path::new("/logs").join(log), OpenOpts::write()).unwrap();
    lithify_env::write_all_at(&*file, &bytes, 0).unwrap();
    let error = take_over(on(&fs, &rt), ImportOptions::default()).unwrap_err();
    assert!(error.to_string().contains("wal_dir"), "{error}");
}

#[test]
fn families_are_taken_over() {
    let rt = runtime();
    let families = [("default", "rocksdb-families"), ("other", "rocksdb-families.other")];
    let holds_all = |db: Db| {
        assert_eq!(db.column_families(), families.map(|(name, _)| name));
        for (name, file) in families {
            let family = db.column_family(name).unwrap();
            assert_eq!(scan(&family).unwrap(), content(file), "{name}");
        }
        db.close().unwrap();
    };
    let fs = image::put(&load("rocksdb-families"), FROM);
    let keys = families.map(|(_, file)| content(file).len() as u64).iter().sum();
    let options = ImportOptions { verify: true, ..ImportOptions::default() };
    let report = take_over(on(&fs, &rt), options).unwrap();
    assert_eq!((report.maker, report.keys), (Maker::RocksDb, Some(keys)));
    holds_all(on(&fs, &rt).open(TO).unwrap());
    holds_all(on(&fs, &rt).open_read_only(FROM).unwrap());
    holds_all(on(&fs, &rt).open(FROM).unwrap());
}

/// A directory whose manifest says `to` where it says `from` for the `nth` time.
fn restated(name: &str, from: &[u8], to: &[u8], nth: usize) -> Image {
    let mut image = load(name);
    let manifest = image.iter_mut().find(|f| f.0.starts_with("MANIFEST-")).unwrap().1;
    let (mut records, mut out, mut met) = (RecordReader::new(manifest, None), Vec::new(), 0);
    let mut writer = RecordWriter::new();
    while let Found::Record(record) = records.next_record() {
        let mut payload = record.payload.to_vec();
        if let Some(at) = payload.windows(from.len()).position(|bytes| bytes == from) {
            met += 1;
            if met == nth {
                payload.splice(at..at + from.len(), to.iter().copied());
            }
        }
        writer.append(&payload, &mut out);
    }
    assert!(met >= nth, "{met}");
    *manifest = out;
    image
}

/// What stands in the way in one family is told with its name.
#[test]
fn families_that_cannot_be_taken_over_are_refused_by_name() {
    let operand = logging("rocksdb-families", b"\x06\x01\x03key\x01v");
    refused(&operand, "`other` holds merge operands");
    let order = b"leveldb.BytewiseComparator";
    refused(&restated("rocksdb-families", order, b"some.one.else's.comparator", 2), "`other`");
    // Given to the family, the operator is one that is known.
    let rt = runtime();
    let fs = image::put(&operand, FROM);
    let given = |builder: Builder| {
        let options = ColumnFamilyOptions::new().merge_operator(built_in("uint64add").unwrap());
        builder.column_family("other", options)
    };
    take_over(given(on(&fs, &rt)), ImportOptions::default()).unwrap();
    let error = on(&fs, &rt).open(TO).unwrap_err();
    assert!(error.to_string().contains("`other`"), "{error}");
    let db = given(on(&fs, &rt)).open(TO).unwrap();
    assert!(db.get("key").unwrap().is_none());
    // One byte is no number.
    assert!(db.column_family("other").unwrap().get("key").is_err());
    db.close().unwrap();
}

/// An order of ours that only the directory tells of.
#[test]
fn a_reverse_order_is_taken_over() {
    let rt = runtime();
    let (plain, reverse) =
        (b"\x1aleveldb.BytewiseComparator", b"\x21rocksdb.ReverseBytewiseComparator");
    let fs = image::put(&restated("leveldb-log", plain, reverse, 1), FROM);
    let options = ImportOptions { verify: true, ..ImportOptions::default() };
    take_over(on(&fs, &rt), options).unwrap();
    let db = on(&fs, &rt).comparator(Arc::new(ReverseBytewise)).open_read_only(TO).unwrap();
    let mut iter = db.iter().unwrap();
    iter.seek_to_first();
    let first = iter.key().to_vec();
    drop(iter);
    let all = scan(&db).unwrap();
    assert_eq!(all, content("leveldb-log"));
    assert_eq!(Some(&first), all.keys().next_back());
    db.close().unwrap();
}

#[test]
fn places_that_will_not_do_are_refused() {
    let rt = runtime();
    let fs = image::put(&load("leveldb-log"), FROM);
    let to = |to: &str| {
        on(&fs, &rt).import(FROM, to, ImportOptions::default(), &mut |_| {}).unwrap_err().kind()
    };
    assert_eq!(to("/theirs/inside"), ErrorKind::InvalidArgument);
    assert_eq!(to(FROM), ErrorKind::InvalidArgument);
    let taken = image::put(&load("leveldb-log"), TO);
    let error = take_over(on(&taken, &rt), ImportOptions::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    take_over(on(&fs, &rt), ImportOptions::default()).unwrap();
    assert_eq!(to(TO), ErrorKind::InvalidArgument, "there is something in it");
    let ours = on(&fs, &rt).import(TO, "/third", ImportOptions::default(), &mut |_| {});
    assert_eq!(ours.unwrap_err().kind(), ErrorKind::InvalidArgument, "it is ours already");
}

/// Every call fails once: what is left opens as no database, or is whole.
#[test]
fn a_call_that_fails_leaves_nothing_or_all() {
    let rt = runtime();
    let (image, all) = (load("leveldb-snappy"), content("leveldb-snappy"));
    let (mut nth, mut nothing, mut whole) = (0, 0, 0);
    loop {
        let mem = image::put(&image, FROM);
        let fs = Arc::new(FaultFs::new(Arc::new(mem.clone()), move |op| {
            (op.index == nth).then(|| io::Error::from_raw_os_error(5).into())
        }));
        let result = take_over(builder(fs.clone(), &rt), ImportOptions::default());
        match on(&mem, &rt).open_read_only(TO) {
            Ok(db) => {
                assert_eq!(scan(&db).unwrap(), all, "call {nth}");
                whole += 1;
            }
            Err(e) => {
                assert!(result.is_err(), "call {nth}: {e}");
                assert_eq!(e.kind(), ErrorKind::NotFound, "call {nth}: {e}");
                nothing += 1;
            }
        }
        assert_eq!(without_lock(&mem, FROM), image, "call {nth}");
        nth += 1;
        if nth > fs.count() {
            break;
        }
    }
    assert!(nothing > 20 && whole > 20, "{nothing} times nothing, {whole} times all");
}
