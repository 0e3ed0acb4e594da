//! Values that expire, under a clock that is set by hand.

// RocksDB's tool needs real files.
#![allow(clippy::disallowed_methods, reason = "one test runs a program")]

use std::collections::BTreeMap;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::common::clock::{NOW, world};
use crate::common::{Content, scan, tiny};
use lithify::import::ImportOptions;
use lithify::merge::Add;
use lithify::{
    BatchEntry, Builder, ColumnFamilyOptions, CompactionFilter, Db, Decision, ErrorKind,
    FilterContext, ReadOptions, TtlDb, WriteBatch,
};
use lithify_env::MemFs;

const TTL: Duration = Duration::from_secs(100);

/// A disk, a clock, and what is opened there.
struct World {
    fs: MemFs,
    clock: Arc<AtomicU64>,
}

impl World {
    fn new() -> World {
        World { fs: MemFs::new(), clock: Arc::new(AtomicU64::new(NOW)) }
    }
    fn builder(&self) -> Builder {
        Builder::new(tiny()).env(world(&self.fs, &self.clock))
    }
    fn open(&self) -> TtlDb {
        self.builder().open_ttl("/db", TTL).unwrap()
    }
    fn wait(&self, seconds: u64) {
        self.clock.fetch_add(seconds, SeqCst);
    }
}

/// All that an iterator shows, forward and backward the same, and what points show of it.
fn content(db: &TtlDb) -> Content {
    let mut iter = db.iter().unwrap();
    let mut forward = Content::new();
    iter.seek_to_first();
    while iter.valid() {
        forward.insert(iter.key().to_vec(), iter.value().to_vec());
        iter.next();
    }
    iter.status().unwrap();
    let mut backward = Content::new();
    iter.seek_to_last();
    while iter.valid() {
        backward.insert(iter.key().to_vec(), iter.value().to_vec());
        iter.prev();
    }
    iter.status().unwrap();
    assert_eq!(forward, backward);
    forward
}

/// A value with its time, as RocksDB's `DBWithTTL` stores it.
fn stored(value: &[u8], time: u64) -> Vec<u8> {
    [value, &(time as u32).to_le_bytes()].concat()
}

/// A machine without a battery begins in 1970. What it writes then can be read, and goes once its clock is set.
#[test]
fn a_clock_that_is_not_set_yet_writes_what_can_be_read() {
    let world = World::new();
    world.clock.store(40, SeqCst);
    let db = world.open();
    db.put("a", "1").unwrap();
    let mut batch = WriteBatch::new();
    batch.put("b", "2").unwrap();
    db.write(&batch).unwrap();
    let both = [("a", "1"), ("b", "2")].map(|(k, v)| (k.into(), v.into()));
    assert_eq!(content(&db), Content::from(both));
    db.db().flush().unwrap();
    db.db().compact_range(None, None).unwrap();
    assert_eq!(db.get("a").unwrap().as_deref(), Some(&b"1"[..]));
    world.clock.store(NOW, SeqCst);
    db.put("c", "3").unwrap();
    assert_eq!(content(&db), Content::from([("c".into(), "3".into())]));
    db.close().unwrap();
}

#[test]
fn a_value_expires_to_the_second() {
    let world = World::new();
    let db = world.open();
    db.put("a", "1").unwrap();
    let mut batch = WriteBatch::new();
    batch.put("b", "2").unwrap();
    batch.put("c", "").unwrap();
    db.write(&batch).unwrap();
    let raw = scan(db.db()).unwrap();
    assert_eq!(raw[&b"a"[..]], stored(b"1", NOW), "RocksDB's form");
    assert_eq!(raw[&b"c"[..]], stored(b"", NOW));

    world.wait(60);
    db.put("b", "3").unwrap();
    world.wait(40);
    // A hundred seconds have passed, and not more than that.
    let snapshot = db.db().snapshot();
    assert_eq!(content(&db).len(), 3);
    world.wait(1);
    assert_eq!(content(&db), Content::from([(b"b".to_vec(), b"3".to_vec())]));
    assert!(db.get("a").unwrap().is_none());
    let at = ReadOptions::at(&snapshot);
    assert!(db.get_opt("a", &at).unwrap().is_none(), "a snapshot does not make it live longer");
    let values = db.multi_get(&["a", "b", "c", "d"]).unwrap();
    let values: Vec<_> = values.iter().map(Option::as_deref).collect();
    assert_eq!(values, [None, Some(&b"3"[..]), None, None]);
    let mut iter = db.iter().unwrap();
    iter.seek("a");
    assert_eq!((iter.key(), iter.value(), iter.written_at()), (&b"b"[..], &b"3"[..], NOW + 60));
    iter.seek_for_prev("c");
    assert_eq!(iter.key(), b"b");

    // It counts from the time of writing, whatever the time to live was then.
    db.set_ttl(Duration::from_secs(1_000));
    assert_eq!(content(&db).len(), 3);
    db.set_ttl(Duration::ZERO);
    world.wait(1_000_000_000);
    assert_eq!(content(&db).len(), 3, "zero is for ever");
    db.set_ttl(Duration::from_millis(1));
    assert!(content(&db).is_empty());
    db.close().unwrap();
}

/// Random writes, flushes, compactions, opens and hours, against a map of values and times.
#[test]
fn what_is_shown_is_what_has_not_expired() {
    for seed in 0..6 {
        let mut rng = fastrand::Rng::with_seed(seed);
        let world = World::new();
        let mut db = world.open();
        let mut model: BTreeMap<Vec<u8>, (Vec<u8>, u64)> = BTreeMap::new();
        for step in 0..400u32 {
            let key = vec![b'k', rng.u8(0..40)];
            let now = world.clock.load(SeqCst);
            match rng.u8(0..20) {
                0..12 => {
                    let value = vec![b'v'; rng.usize(0..600)];
                    db.put(&key, &value).unwrap();
                    model.insert(key, (value, now));
                }
                12 => {
                    db.delete(&key).unwrap();
                    model.remove(&key);
                }
                13 => {
                    let to = vec![b'k', key[1].saturating_add(5)];
                    db.delete_range(&key, &to).unwrap();
                    model.retain(|k, _| *k < key || *k >= to);
                }
                14 => db.db().flush().unwrap(),
                15 => db.db().compact_range(None, None).unwrap(),
                16 => {
                    db.close().unwrap();
                    db = world.open();
                }
                _ => world.wait(rng.u64(0..30)),
            }
            let now = world.clock.load(SeqCst);
            let live = model.iter().filter(|(_, (_, time))| time + TTL.as_secs() >= now);
            let live: Content = live.map(|(k, (v, _))| (k.clone(), v.clone())).collect();
            if step % 7 == 0 {
                assert_eq!(content(&db), live, "seed {seed}, step {step}");
            }
            let key = [b'k', rng.u8(0..40)];
            let read = db.get(key).unwrap().map(Vec::from);
            assert_eq!(read.as_ref(), live.get(&key[..]), "seed {seed}, step {step}");
        }
        db.close().unwrap();
    }
}

#[test]
fn a_compaction_drops_what_has_expired() {
    let world = World::new();
    let db = world.open();
    for round in 0..2 {
        for key in 0..100u8 {
            db.put([key], [round; 20]).unwrap();
        }
        db.db().flush().unwrap();
        world.wait(50);
    }
    // Around all the others, so that a compaction has to meet them.
    db.put([0], "new").unwrap();
    db.put([200], "new").unwrap();
    world.wait(50);
    db.db().compact_range(None, None).unwrap();
    assert_eq!(scan(db.db()).unwrap().len(), 101, "to the second, here too");
    world.wait(1);
    db.put([0], "new").unwrap();
    db.put([200], "new").unwrap();
    db.db().compact_range(None, None).unwrap();
    let raw = scan(db.db()).unwrap();
    assert_eq!(raw.keys().map(|k| k[0]).collect::<Vec<_>>(), [0, 200]);
    db.close().unwrap();
}

fn number(value: Option<lithify::Value>) -> Option<u64> {
    value.map(|v| u64::from_le_bytes((*v).try_into().unwrap()))
}

#[test]
fn a_merge_renews_and_starts_anew_after_the_end() {
    for compacted in [false, true] {
        let world = World::new();
        let db = world.builder().merge_operator(Arc::new(Add)).open_ttl("/db", TTL).unwrap();
        let settle = || {
            if compacted {
                db.db().compact_range(None, None).unwrap();
            }
        };
        db.put("n", 1u64.to_le_bytes()).unwrap();
        settle();
        for _ in 0..3 {
            world.wait(80);
            db.merge("n", 10u64.to_le_bytes()).unwrap();
            db.merge("n", 10u64.to_le_bytes()).unwrap();
            settle();
        }
        assert_eq!(number(db.get("n").unwrap()), Some(61), "each renewed the one before");
        world.wait(101);
        assert_eq!(db.get("n").unwrap(), None::<lithify::Value>);
        db.merge("n", 5u64.to_le_bytes()).unwrap();
        settle();
        assert_eq!(number(db.get("n").unwrap()), Some(5), "nothing was there any more");
        assert_eq!(content(&db)[&b"n"[..]], 5u64.to_le_bytes());
        // The clock goes back: what is merged gets no older by that.
        world.clock.fetch_sub(50, SeqCst);
        db.merge("n", 1u64.to_le_bytes()).unwrap();
        settle();
        world.wait(150);
        assert_eq!(number(db.get("n").unwrap()), Some(6));
        let operand = db.merge("bad", "not a number");
        operand.unwrap();
        assert_eq!(db.get("bad").unwrap_err().kind(), ErrorKind::MergeFailed);
        db.close().unwrap();
    }
}

/// Changes values, and drops those that say so; panics if it is shown a time.
struct Shortens;
impl CompactionFilter for Shortens {
    fn name(&self) -> &str {
        "shortens"
    }
    fn filter<'a>(&self, _: &FilterContext, _: &[u8], value: &'a [u8]) -> Decision<'a> {
        match value {
            b"drop" => Decision::Remove,
            b"keep" => Decision::Keep,
            long => Decision::Change(long[..1].into()),
        }
    }
}

#[test]
fn a_filter_sees_no_times() {
    let world = World::new();
    let db = world.builder().compaction_filter(Arc::new(Shortens)).open_ttl("/db", TTL).unwrap();
    // Twice: a compaction leaves one run as it is.
    for last in ["dropped", "long"] {
        for (key, value) in [("a", "drop"), ("b", "keep"), ("c", last)] {
            db.put(key, value).unwrap();
        }
        db.db().flush().unwrap();
    }
    world.wait(30);
    db.db().compact_range(None, None).unwrap();
    let raw = scan(db.db()).unwrap();
    let kept = [(b"b", stored(b"keep", NOW)), (b"c", stored(b"l", NOW))];
    assert_eq!(raw, kept.map(|(k, v)| (k.to_vec(), v)).into());
    db.close().unwrap();
}

/// A database that was written without times, opened with them: nothing is shown, told wrongly or
/// dropped.
#[test]
fn values_without_times_are_told() {
    for value in ["", "abc", "four", "\0\0\0\x01"] {
        let world = World::new();
        let db = world.builder().open("/db").unwrap();
        db.put("m", value).unwrap();
        db.close().unwrap();
        let db = world.open();
        db.put("a", "1").unwrap();
        db.put("z", "1").unwrap();
        let kind = |e: lithify::Error| e.kind();
        let late = value == "four";
        // Four letters could be a time, one of the year 2030.
        assert_eq!(db.get("m").map(|v| v.is_some()).map_err(kind), expected(late));
        let all = db.multi_get(&["a", "m"]).map(|v| v[1].is_some()).map_err(kind);
        assert_eq!(all, expected(late));
        let mut iter = db.iter().unwrap();
        iter.seek_to_first();
        assert_eq!((iter.key(), iter.value()), (&b"a"[..], &b"1"[..]));
        iter.next();
        assert_eq!((iter.valid(), iter.status().is_err()), (late, !late));
        assert!(late || (iter.key().is_empty() && iter.value().is_empty()));
        iter.seek("n");
        assert_eq!(iter.key(), b"z", "and goes on behind it");
        db.db().compact_range(None, None).unwrap();
        assert_eq!(db.db().get("m").unwrap().as_deref(), Some(value.as_bytes()));
        db.close().unwrap();
    }
}

fn expected(is_time: bool) -> Result<bool, ErrorKind> {
    if is_time { Ok(true) } else { Err(ErrorKind::Corruption) }
}

#[test]
fn read_only_and_other_families() {
    let world = World::new();
    let db = world.open();
    let plain = db.db().create_column_family("plain", ColumnFamilyOptions::new()).unwrap();
    let mut batch = WriteBatch::new();
    batch.put("k", "v").unwrap();
    batch.put_cf(&plain, "k", "v").unwrap();
    batch.delete("gone").unwrap();
    batch.single_delete("gone too").unwrap();
    batch.delete_range("x", "y").unwrap();
    db.write(&batch).unwrap();
    assert_eq!(plain.get("k").unwrap().as_deref(), Some(&b"v"[..]));
    drop(plain);
    db.close().unwrap();
    let db = world.builder().open_ttl_read_only("/db", TTL).unwrap();
    assert_eq!(db.get("k").unwrap().as_deref(), Some(&b"v"[..]));
    world.wait(101);
    assert!(db.get("k").unwrap().is_none());
    let raw: Db = world.builder().open("/db").unwrap();
    assert_eq!(raw.get("k").unwrap().as_deref(), Some(&stored(b"v", NOW)[..]));
}

/// What RocksDB's tool wrote with a time to live is shown here, and the other way round. Skipped
/// without the tool, as `oracle_tables` says.
#[test]
fn rocksdb_and_we_read_each_others_times() {
    if Command::new("ldb").arg("--version").output().is_err() {
        let how = "ldb is not on the path (Debian's package rocksdb-tools has it)";
        assert!(std::env::var_os("LITHIFY_ORACLES").is_none(), "LITHIFY_ORACLES is set, but {how}");
        return eprintln!("skipped: {how}");
    }
    let scratch = tempfile::tempdir().unwrap();
    let dir = scratch.path().join("db");
    let ldb = |arguments: &[&str]| {
        let mut command = Command::new("ldb");
        command.arg(format!("--db={}", dir.display())).arg("--ttl").args(arguments);
        // Its status is a failure whenever it looks at a directory that has families to name, the
        // default one alone included; what it prints tells.
        String::from_utf8(command.output().unwrap().stdout).unwrap()
    };
    assert_eq!(ldb(&["--create_if_missing", "put", "theirs", "1"]).trim(), "OK");

    let mut settings = tiny();
    settings.format_version = 5;
    let builder = || Builder::new(settings.clone());
    builder().import_in_place(&dir, None, ImportOptions::default(), &mut |_| {}).unwrap();
    let open = || builder().open_ttl(&dir, Duration::from_secs(3600)).unwrap();
    let db = open();
    assert_eq!(db.get("theirs").unwrap().as_deref(), Some(&b"1"[..]));
    let mut iter = db.iter().unwrap();
    iter.seek_to_first();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    assert!(iter.written_at() <= now && now - iter.written_at() < 600);
    db.put("ours", "2").unwrap();
    db.db().settle().unwrap();
    db.close().unwrap();

    let shown = ldb(&["--timestamp", "scan"]);
    let lines: Vec<&str> = shown.lines().collect();
    assert!(lines.iter().any(|line| line.ends_with("ours : 2")), "{shown}");
    assert!(lines.iter().any(|line| line.ends_with("theirs : 1")), "{shown}");
}

#[test]
fn notes_of_a_batch_are_in_the_log() {
    let world = World::new();
    let db = world.open();
    let mut batch = WriteBatch::new();
    batch.put(b"k", b"1").unwrap();
    batch.log_data(b"note").unwrap();
    db.write(&batch).unwrap();
    let found = db.db().updates_since(1).unwrap().map(|update| update.unwrap().1);
    let is_note = |entry: BatchEntry<'_>| entry == BatchEntry::LogData(b"note");
    assert!(found.into_iter().any(|batch| batch.entries().any(is_note)));
}
