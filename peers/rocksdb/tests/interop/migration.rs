//! Whole moves: from RocksDB and LevelDB to us by import, and back to RocksDB by settling; after clean
//! closes, and after each engine was killed in the middle of its writes.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use lithify::import::{ImportOptions, ImportReport, Maker};
use lithify::{Builder, Compression, Db, ErrorKind, Policy, Settings, TransactionOptions};
use rocksdb::{DB, Options, TransactionDB};

use crate::c_api;
use crate::our_tables::{fill, same_content, small};

type Content = BTreeMap<Vec<u8>, Vec<u8>>;

/// RocksDB with all of its own checks.
fn strict(more: &str) -> Options {
    c_api::options(&format!(
        "create_if_missing=true;paranoid_checks=true;force_consistency_checks=true;\
         paranoid_file_checks=true;track_and_verify_wals_in_manifest=true;\
         write_buffer_size=65536;target_file_size_base=65536;max_bytes_for_level_base=262144;{more}"
    ))
}

fn content(db: &Db) -> Content {
    let mut iter = db.iter().unwrap();
    let mut found = Content::new();
    iter.seek_to_first();
    while iter.valid() {
        found.insert(iter.key().to_vec(), iter.value().to_vec());
        iter.next();
    }
    iter.status().unwrap();
    found
}

fn import(from: &Path, to: &Path) -> lithify::Result<ImportReport> {
    let options = ImportOptions { verify: true, ..ImportOptions::default() };
    Builder::new(small()).import(from, to, options, &mut |_| {})
}

/// Settles our directory, has RocksDB check all of it, and compares.
fn back_to_rocksdb(dir: &Path, settings: Settings) -> usize {
    let db = Db::open(dir, settings.clone()).unwrap();
    let all = content(&db);
    db.settle().unwrap();
    assert_eq!(content(&db), all, "settling changes nothing");
    db.close().unwrap();
    let ours = Db::open_read_only(dir, settings).unwrap();
    let theirs = DB::open(&strict(""), dir).unwrap();
    c_api::verify_checksum(&theirs).unwrap();
    let keys = same_content(&ours, &theirs);
    assert_eq!(keys, all.len());
    drop(ours);
    // Reads and writes, and its own compactions.
    theirs.put("theirs", "1").unwrap();
    theirs.compact_range(None::<&[u8]>, None::<&[u8]>);
    theirs.delete("theirs").unwrap();
    c_api::verify_checksum(&theirs).unwrap();
    keys
}

/// There, written to, and back: RocksDB's directory stays what it was.
#[test]
fn from_rocksdb_and_back() {
    for more in ["", "compression=kLZ4Compression;recycle_log_file_num=4;"] {
        let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let theirs = DB::open(&strict(more), from.path()).unwrap();
        let mut rng = fastrand::Rng::with_seed(3);
        for n in 0..8000 {
            let key = format!("key{:05}", rng.u32(0..4000));
            match n % 7 {
                0 => theirs.delete(key).unwrap(),
                _ => theirs.put(key, vec![rng.u8(..); rng.usize(0..150)]).unwrap(),
            }
        }
        // Nothing else writes there meanwhile.
        assert_eq!(open_elsewhere(from.path()), "locked");
        drop(theirs);
        let report = import(from.path(), to.path()).unwrap();
        assert_eq!((report.maker, report.copied), (Maker::RocksDb, 0));
        assert!(report.tables > 0 && report.batches > 0, "{report:?}");
        let ours = Db::open(to.path(), small()).unwrap();
        let theirs = DB::open(&strict(more), from.path()).unwrap();
        let keys = same_content(&ours, &theirs);
        eprintln!("{keys} keys taken over, {} tables linked", report.linked);
        drop(fill(&ours, 3000, 5));
        ours.close().unwrap();
        back_to_rocksdb(to.path(), small());
        // Their own directory shares tables with ours, and is none the worse.
        c_api::verify_checksum(&theirs).unwrap();
    }
}

/// A tree of stacked runs, which RocksDB would misread and refuses, is one that it opens once settled.
#[test]
fn stacked_runs_settle() {
    let dir = tempfile::tempdir().unwrap();
    let mut settings = small();
    settings.policy = Some(Policy::Tiered);
    settings.memtable_bytes = 64 << 10;
    settings.l0_trigger = 2;
    let db = Db::open(dir.path(), settings.clone()).unwrap();
    for round in 0..40 {
        drop(fill(&db, 1000, round));
        db.wait_idle(None).unwrap();
        let picture = db.picture();
        if picture.lines().any(is_stacked) {
            break;
        }
    }
    let picture = db.picture();
    assert!(picture.lines().any(is_stacked), "{picture}");
    db.close().unwrap();
    let error = DB::open(&strict(""), dir.path()).err().expect("it would misread the runs");
    eprintln!("{error}\n{picture}");
    let keys = back_to_rocksdb(dir.path(), settings);
    assert!(keys > 500, "{keys} keys");
}

/// Whether a line of a picture is of a run above its level's first.
fn is_stacked(line: &str) -> bool {
    let place = line.split_once(' ').map_or("", |(place, _)| place);
    place.starts_with('L') && !place.starts_with("L0") && !place.ends_with(".0")
}

/// RocksDB 7, as Debian has it, reads what we settle for it.
#[test]
fn an_older_rocksdb_reads_a_settled_directory() {
    let dir = tempfile::tempdir().unwrap();
    let mut settings = small();
    settings.format_version = 5;
    settings.compression_upper = Compression::Snappy;
    settings.compression_lower = Compression::Lz4;
    let db = Db::open(dir.path(), settings).unwrap();
    (0..3000).for_each(|n| db.put(format!("key{n:05}"), format!("value {n}")).unwrap());
    db.settle().unwrap();
    db.close().unwrap();
    let out = Command::new("ldb")
        .arg(format!("--db={}", dir.path().display()))
        .arg("scan")
        .output()
        .expect("`ldb` is on the path (package rocksdb-tools)");
    let text = String::from_utf8(out.stdout).unwrap();
    let expected = (0..3000).map(|n| format!("key{n:05} : value {n}\n")).collect::<String>();
    assert!(text == expected, "{} bytes: {}", text.len(), String::from_utf8_lossy(&out.stderr));
}

/// What the test binary does when it is started again: one of the stories below, in a directory.
const STORY: &str = "LITHIFY_STORY";

fn start(story: &str, dir: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "migration::the_other_process", "--nocapture"])
        .env(STORY, format!("{story} {}", dir.display()))
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// Reads what a child acknowledged until it has written `count` keys, kills it, and reads the rest.
fn kill_after(mut child: Child, count: u32) -> u32 {
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let number = |line: String| line.strip_prefix("wrote ").and_then(|n| n.parse::<u32>().ok());
    let mut last = 0;
    while last < count {
        let line = lines.next().expect("it goes on until it is killed").unwrap();
        last = number(line).unwrap_or(last);
    }
    child.kill().unwrap();
    // What it said before the signal counts, too.
    last = lines.map_while(Result::ok).filter_map(number).fold(last, u32::max);
    child.wait().unwrap();
    last
}

fn value(n: u32) -> Vec<u8> {
    vec![n as u8; 40 + n as usize % 90]
}

#[test]
fn the_other_process() {
    let Ok(story) = std::env::var(STORY) else { return };
    let (story, dir) = story.split_once(' ').unwrap();
    let say = |n: u32| {
        let mut out = std::io::stdout();
        writeln!(out, "wrote {n}").and_then(|()| out.flush()).unwrap();
    };
    match story {
        "open" => match DB::open(&strict(""), dir) {
            Ok(_) => println!("opened"),
            Err(_) => println!("locked"),
        },
        "rocksdb" => {
            let db = DB::open(&strict(""), dir).unwrap();
            for n in 0.. {
                db.put(format!("key{n:08}"), value(n)).unwrap();
                if n % 50 == 0 {
                    say(n);
                }
            }
        }
        "lithify" => {
            let mut settings = small();
            settings.policy = Some(Policy::Tiered);
            let db = Db::open(dir, settings).unwrap();
            for n in 0.. {
                db.put(format!("key{n:08}"), value(n)).unwrap();
                if n % 50 == 0 {
                    say(n);
                }
            }
        }
        other => panic!("no story {other}"),
    }
}

/// Whether RocksDB, in a process of its own, can open a directory.
fn open_elsewhere(dir: &Path) -> String {
    let out = start("open", dir).wait_with_output().unwrap();
    let text = String::from_utf8(out.stdout).unwrap();
    let said = text.lines().find(|l| ["opened", "locked"].contains(l));
    said.expect("it says one of two").to_owned()
}

fn holds_all(db: &Content, acknowledged: u32) {
    for n in 0..=acknowledged {
        let key = format!("key{n:08}").into_bytes();
        assert_eq!(db.get(&key), Some(&value(n)), "{n} of {acknowledged}");
    }
    // The rest continues without a hole.
    assert!(db.len() as u32 > acknowledged);
    let last = format!("key{:08}", db.len() - 1).into_bytes();
    assert_eq!(db.last_key_value().unwrap().0, &last);
}

/// Killed while it writes, RocksDB leaves logs, tables on their way and a manifest: all that it
/// acknowledged is read, taken over, and goes back.
#[test]
fn rocksdb_killed() {
    for count in [500, 9000] {
        let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let acknowledged = kill_after(start("rocksdb", from.path()), count);
        let read_only = Db::open_read_only(from.path(), small()).unwrap();
        holds_all(&content(&read_only), acknowledged);
        drop(read_only);
        import(from.path(), to.path()).unwrap();
        let ours = Db::open(to.path(), small()).unwrap();
        holds_all(&content(&ours), acknowledged);
        ours.close().unwrap();
        back_to_rocksdb(to.path(), small());
        // Ours, settled, and now written by RocksDB until it is killed: the same once more.
        let again = kill_after(start("rocksdb", to.path()), count);
        let ours = Db::open(to.path(), small()).unwrap();
        let mut all = content(&ours);
        all.remove(&b"theirs"[..]);
        holds_all(&all, again.max(acknowledged));
        ours.close().unwrap();
    }
}

/// Killed while it writes and compacts, ours settles as if it had been closed.
#[test]
fn ours_killed() {
    for count in [500, 20_000] {
        let dir = tempfile::tempdir().unwrap();
        let acknowledged = kill_after(start("lithify", dir.path()), count);
        back_to_rocksdb(dir.path(), small());
        let theirs = DB::open_for_read_only(&strict(""), dir.path(), false).unwrap();
        for n in 0..=acknowledged {
            assert_eq!(theirs.get(format!("key{n:08}")).unwrap(), Some(value(n)), "{n}");
        }
    }
}

/// While ours has a directory open, RocksDB is kept out, and the other way round.
#[test]
fn one_engine_at_a_time() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open(dir.path(), small()).unwrap();
    db.put("key", "value").unwrap();
    db.settle().unwrap();
    assert_eq!(open_elsewhere(dir.path()), "locked");
    db.close().unwrap();
    assert_eq!(open_elsewhere(dir.path()), "opened");
    let mut child = start("rocksdb", dir.path());
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    lines.find(|line| line.as_ref().unwrap().starts_with("wrote")).unwrap().unwrap();
    let refused = Db::open(dir.path(), small()).err().map(|e| e.kind());
    assert_eq!(refused, Some(ErrorKind::Locked));
    child.kill().unwrap();
    child.wait().unwrap();
    Db::open(dir.path(), small()).unwrap().close().unwrap();
}

/// A transaction that RocksDB prepared, and neither committed nor rolled back before it was killed, is prepared here.
#[test]
fn what_rocksdb_prepared_is_prepared_here() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    c_api::prepare(from.path(), || {
        let (killed, new) = (to.path().join("killed"), to.path().join("new"));
        copy_dir(from.path(), &killed);
        import(&killed, &new).unwrap();
        for dir in [killed, new] {
            let db = Db::open(&dir, small()).unwrap();
            let before = content(&db);
            let all = db.prepared_transactions().unwrap();
            assert_eq!(all.len(), 1);
            for txn in all {
                assert!(!txn.is_empty());
                txn.commit().unwrap();
            }
            assert!(content(&db).len() > before.len());
            db.close().unwrap();
        }
    });
}

/// And the other way round: RocksDB commits what was prepared here, or rolls it back.
#[test]
fn what_is_prepared_here_rocksdb_ends() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open(dir.path(), small()).unwrap();
    fill(&db, 3000, 7);
    let prepare = |name: &str, key: &str| {
        let mut txn = db.begin_transaction(TransactionOptions::pessimistic());
        txn.put(key, "1").unwrap();
        txn.prepare(name).unwrap();
        txn
    };
    for (name, key) in [("pay", "~pay"), ("ship", "~ship")] {
        drop(prepare(name, key));
    }
    prepare("bill", "~bill").commit().unwrap();
    prepare("send", "~send").rollback().unwrap();
    fill(&db, 3000, 8);
    db.settle().unwrap();
    db.close().unwrap();
    let there: TransactionDB = TransactionDB::open_default(dir.path()).unwrap();
    for txn in there.prepared_transactions() {
        match &txn.get_name().unwrap()[..] {
            b"pay" => txn.commit().unwrap(),
            b"ship" => txn.rollback().unwrap(),
            other => panic!("{}", other.escape_ascii()),
        }
    }
    let has = |key: &str| there.get(key).unwrap().is_some();
    assert_eq!(["~pay", "~ship", "~bill", "~send"].map(has), [true, false, true, false]);
    drop(there);
    let db = Db::open(dir.path(), small()).unwrap();
    let has = |key: &str| db.get(key).unwrap().is_some();
    assert_eq!(["~pay", "~ship", "~bill", "~send"].map(has), [true, false, true, false]);
    assert!(db.prepared_transactions().unwrap().is_empty());
    db.close().unwrap();
}

fn copy_dir(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
        std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}

/// Has LevelDB make a directory of `crates/db/tests/foreign/make_leveldb.py`; what it shows.
fn leveldb(folder: &Path, name: &str) -> (PathBuf, Content) {
    let script =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crates/db/tests/foreign/make_leveldb.py");
    let done = Command::new("python3").arg(script).arg(folder).arg(name).status().unwrap();
    assert!(done.success(), "plyvel is needed: `cargo xtask interop` installs it");
    let said = std::fs::read_to_string(folder.join(format!("{name}.content"))).unwrap();
    let bytes = |hex: &str| -> Vec<u8> {
        let digits = |i| u8::from_str_radix(&hex[i..i + 2], 16).unwrap();
        (0..hex.len()).step_by(2).map(digits).collect()
    };
    let pair = |line: &str| {
        let (key, value) = line.split_once(' ').unwrap();
        (bytes(key), bytes(value))
    };
    (folder.join(name), said.lines().map(pair).collect())
}

/// From LevelDB to us, and on to RocksDB; the directory itself, with LevelDB's way back.
#[test]
fn from_leveldb() {
    for name in ["leveldb-snappy", "leveldb-filter", "leveldb-log", "leveldb-shared"] {
        let scratch = tempfile::tempdir().unwrap();
        let (from, said) = leveldb(scratch.path(), name);
        let to = scratch.path().join("new");
        let read_only = Db::open_read_only(&from, small()).unwrap();
        assert_eq!(content(&read_only), said, "{name}");
        drop(read_only);
        let report = import(&from, &to).unwrap();
        assert_eq!((report.maker, report.keys), (Maker::LevelDb, Some(said.len() as u64)));
        let ours = Db::open(&to, small()).unwrap();
        assert_eq!(content(&ours), said, "{name}");
        for (key, value) in &said {
            assert_eq!(ours.get(key).unwrap().as_deref(), Some(&value[..]), "{name}");
        }
        ours.close().unwrap();
        assert_eq!(back_to_rocksdb(&to, small()), said.len(), "{name}");

        let kept = scratch.path().join("kept");
        let options = ImportOptions::default();
        let report = Builder::new(small())
            .import_in_place(&from, Some(&kept), options, &mut |_| {})
            .unwrap();
        assert_eq!(report.maker, Maker::LevelDb);
        let ours = Db::open(&from, small()).unwrap();
        ours.compact_range(None, None).unwrap();
        assert_eq!(content(&ours), said, "{name}");
        ours.close().unwrap();
        let shown = Command::new("python3")
            .args(["-c", "import plyvel, sys; print(sum(1 for _ in plyvel.DB(sys.argv[1])))"])
            .arg(&kept)
            .output()
            .unwrap();
        assert_eq!(String::from_utf8_lossy(&shown.stdout).trim(), said.len().to_string(), "{name}");
        eprintln!("{name}: {} keys", said.len());
    }
}

/// LevelDB has it open: nothing is taken over.
#[test]
fn leveldb_at_work_is_left_alone() {
    let scratch = tempfile::tempdir().unwrap();
    let (from, _) = leveldb(scratch.path(), "leveldb-log");
    let held = "import plyvel, sys; db = plyvel.DB(sys.argv[1]); print('open', flush=True); \
                sys.stdin.read()";
    let mut child = Command::new("python3")
        .args(["-c", held])
        .arg(&from)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let to = scratch.path().join("new");
    assert_eq!(import(&from, &to).unwrap_err().kind(), ErrorKind::Locked);
    assert!(!to.exists());
    drop(child.stdin.take());
    child.wait().unwrap();
    import(&from, &to).unwrap();
}
