//! Column families: against a model of several maps, over reopens, kills and drops; and what they
//! share and do not share.

#![allow(clippy::disallowed_methods, reason = "threads of the test's own")]

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use crate::common::{Content, scan, tiny, within};
use lithify::{
    Builder, ColumnFamily, ColumnFamilyOptions, Db, Durability, ErrorKind, IngestOptions, Policy,
    ReadOptions, Settings, WriteBatch, WriteOptions,
};
use lithify_base::{Comparator, ReverseBytewise};
use lithify_env::{Env, Fault, FaultFs, Fs, RtOptions};

fn world() -> Env {
    Env::in_memory(RtOptions { upkeep_threads: 2, ..RtOptions::default() })
}

fn open(env: &Env) -> Db {
    Builder::new(tiny()).env(env.clone()).open("db").unwrap()
}

fn own() -> ColumnFamilyOptions {
    ColumnFamilyOptions::new()
}

/// Everything must be sound. What nothing needs any more the next open collects.
fn verified(env: &Env) {
    let report = lithify::verify::verify(env.fs.clone(), "db", None, &mut |_| ()).unwrap();
    assert!(report.findings.is_empty(), "{:?}", report.findings);
}

fn tables(env: &Env) -> usize {
    let listed = env.fs.list(Path::new("db")).unwrap();
    listed.iter().filter(|entry| entry.name.ends_with(".sst")).count()
}

/// Waits until `done`, at most ten seconds.
fn soon(what: &str, done: impl Fn() -> bool) {
    let late = std::time::Instant::now() + Duration::from_secs(10);
    while !done() {
        assert!(std::time::Instant::now() < late, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A file system that syncs no file with `part` in its path while the gate is held, and how many of those syncs came to it.
fn with_gate(part: &'static str) -> (Arc<lithify_env::sync::Mutex<()>>, Arc<AtomicUsize>, Env) {
    let gate = Arc::new(lithify_env::sync::Mutex::new(()));
    let syncs = Arc::new(AtomicUsize::new(0));
    let Env { fs, rt } = world();
    let (held, count) = (gate.clone(), syncs.clone());
    let fs: Arc<dyn Fs> = Arc::new(FaultFs::new(fs, move |op| {
        if op.path.to_string_lossy().contains(part) && op.name.starts_with("sync") {
            count.fetch_add(1, SeqCst);
            drop(held.lock());
        }
        None
    }));
    (gate, syncs, Env { fs, rt })
}

type Model = BTreeMap<String, Content>;

fn compare(db: &Db, model: &Model) {
    let mut names = db.column_families();
    assert_eq!(names[0], "default");
    names.sort_unstable();
    assert_eq!(names, model.keys().cloned().collect::<Vec<_>>());
    for (name, content) in model {
        let family = db.column_family(name).unwrap();
        assert_eq!(scan(&family).unwrap(), *content, "{name}");
    }
}

/// Random writes to random families, atomic batches over several, makes and drops, flushes,
/// compactions and reopens.
#[test]
fn several_families_hold_what_several_maps_do() {
    for seed in 0..6 {
        let mut rng = fastrand::Rng::with_seed(seed);
        let env = world();
        let mut db = open(&env);
        let mut model = Model::from([("default".to_owned(), Content::new())]);
        let mut made = 0;
        let mut view = None;
        for step in 0..1500u32 {
            let names: Vec<String> = model.keys().cloned().collect();
            let name = names[rng.usize(..names.len())].clone();
            let family = db.column_family(&name).unwrap();
            let key = format!("{:03}", rng.u32(0..150)).into_bytes();
            let value = vec![rng.u8(..); rng.usize(0..900)];
            match rng.u32(0..200) {
                0..80 => {
                    family.put(&key, &value).unwrap();
                    model.get_mut(&name).unwrap().insert(key, value);
                }
                80..100 => {
                    family.delete(&key).unwrap();
                    model.get_mut(&name).unwrap().remove(&key);
                }
                100..160 => {
                    let mut batch = WriteBatch::new();
                    for name in &names {
                        let family = db.column_family(name).unwrap();
                        let map = model.get_mut(name).unwrap();
                        match rng.u8(0..4) {
                            0 => {}
                            1 => {
                                let to = [&key[..], b"~"].concat();
                                batch.delete_range_cf(&family, &key, &to).unwrap();
                                map.retain(|k, _| *k < key || *k >= to);
                            }
                            2 => {
                                batch.delete_cf(&family, &key).unwrap();
                                map.remove(&key);
                            }
                            _ => {
                                batch.put_cf(&family, &key, &value).unwrap();
                                map.insert(key.clone(), value.clone());
                            }
                        }
                    }
                    let durability =
                        *rng.choice(&[Durability::Buffered, Durability::Sync]).unwrap();
                    db.write_opt(&batch, &WriteOptions::at(durability)).unwrap();
                }
                160..175 => {
                    assert_eq!(
                        family.get(&key).unwrap().as_deref(),
                        model[&name].get(&key).map(Vec::as_slice)
                    );
                }
                175..185 => family.flush().unwrap(),
                185..188 => family.compact_range(None, None).unwrap(),
                188..192 if names.len() < 6 => {
                    made += 1;
                    let name = format!("family-{made}");
                    let mut settings = tiny();
                    settings.bloom_bits = rng.u32(0..12);
                    db.create_column_family(&name, own().settings(settings)).unwrap();
                    model.insert(name, Content::new());
                }
                192..194 if name != "default" => {
                    db.drop_column_family(&name).unwrap();
                    model.remove(&name);
                    assert_eq!(family.get(&key).unwrap_err().kind(), ErrorKind::NotFound);
                    assert_eq!(family.put(&key, b"").unwrap_err().kind(), ErrorKind::NotFound);
                }
                194..196 => view = Some((db.snapshot(), name.clone(), model[&name].clone())),
                196..198 => {
                    if let Some((at, name, content)) = view.take()
                        && let Ok(family) = db.column_family(&name)
                    {
                        let mut shown = family.iter_opt(&ReadOptions::at(&at)).unwrap();
                        shown.seek_to_first();
                        for (key, value) in &content {
                            assert_eq!((shown.key(), shown.value()), (&key[..], &value[..]));
                            shown.next();
                        }
                        assert!(!shown.valid());
                    }
                }
                198 if step % 3 == 0 => {
                    view = None;
                    drop(family);
                    db.close().unwrap();
                    verified(&env);
                    db = open(&env);
                    compare(&db, &model);
                }
                _ => {}
            }
        }
        compare(&db, &model);
        db.close().unwrap();
        let db = Builder::new(tiny()).env(env.clone()).open_read_only("db").unwrap();
        compare(&db, &model);
    }
}

#[test]
fn names_are_kept_and_checked() {
    let env = world();
    let db = open(&env);
    let a = db.create_column_family("a", own()).unwrap();
    assert_eq!((a.name(), a.id()), ("a", 1));
    for name in ["a", "default", ""] {
        let error = db.create_column_family(name, own()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    }
    let refused = |name: &str| db.drop_column_family(name).unwrap_err().kind();
    assert_eq!(refused("default"), ErrorKind::InvalidArgument);
    assert_eq!(refused("b"), ErrorKind::NotFound);
    assert_eq!(db.column_family("b").unwrap_err().kind(), ErrorKind::NotFound);
    db.drop_column_family("a").unwrap();
    // A name may come back, a number never does.
    assert_eq!(db.create_column_family("a", own()).unwrap().id(), 2);
    db.drop_column_family("a").unwrap();
    db.close().unwrap();
    let db = open(&env);
    assert_eq!(db.create_column_family("c", own()).unwrap().id(), 3);
    db.close().unwrap();
    let builder = Builder::new(Settings::default()).env(env);
    assert_eq!(builder.list_column_families("db").unwrap(), ["default", "c"]);
    let none = builder.list_column_families("elsewhere").unwrap_err();
    assert_eq!(none.kind(), ErrorKind::NotFound);
}

/// Each family has its own order, which has to be given unless it is one of ours.
#[test]
fn an_unknown_comparator_is_refused_by_name() {
    struct ByLength;
    impl Comparator for ByLength {
        fn name(&self) -> &'static str {
            "test.ByLength"
        }
        fn compare(&self, a: &[u8], b: &[u8]) -> std::cmp::Ordering {
            a.len().cmp(&b.len()).then(a.cmp(b))
        }
    }
    let env = world();
    let first = |family: &ColumnFamily| {
        let mut iter = family.iter().unwrap();
        iter.seek_to_first();
        iter.key().to_vec()
    };
    let by_length = || own().comparator(Arc::new(ByLength));
    {
        let db = open(&env);
        let reverse = own().comparator(Arc::new(ReverseBytewise));
        let reverse = db.create_column_family("reverse", reverse).unwrap();
        let length = db.create_column_family("length", by_length()).unwrap();
        for family in [&reverse, &length] {
            family.put(b"aaa", b"").unwrap();
            family.put(b"b", b"").unwrap();
        }
        assert_eq!((first(&reverse), first(&length)), (b"b".to_vec(), b"b".to_vec()));
        db.close().unwrap();
    }
    let error = Builder::new(tiny()).env(env.clone()).open("db").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    let text = format!("{error}");
    assert!(text.contains("`length`") && text.contains("test.ByLength"), "{text}");
    let builder = Builder::new(tiny()).env(env.clone()).column_family("length", by_length());
    let db = builder.open("db").unwrap();
    assert_eq!(first(&db.column_family("length").unwrap()), b"b");
    assert_eq!(first(&db.column_family("reverse").unwrap()), b"b");
    db.close().unwrap();
}

/// A dropped family shows nothing any more, but for iterators; its files go with the last of them.
#[test]
fn files_of_a_dropped_family_go_when_nothing_pins_them() {
    let env = world();
    let db = open(&env);
    let a = db.create_column_family("a", own()).unwrap();
    db.put(b"k", b"default").unwrap();
    a.put(b"k", b"a").unwrap();
    db.flush().unwrap();
    a.flush().unwrap();
    assert_eq!(tables(&env), 2);
    let mut shown = a.iter().unwrap();
    db.drop_column_family("a").unwrap();
    assert_eq!(a.flush().unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(a.iter().err().map(|e| e.kind()), Some(ErrorKind::NotFound));
    let mut batch = WriteBatch::new();
    batch.put(b"x", b"").unwrap();
    batch.put_cf(&a, b"x", b"").unwrap();
    assert_eq!(db.write(&batch).unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(db.get(b"x").unwrap(), None, "a batch is written whole or not at all");
    shown.seek_to_first();
    assert_eq!((shown.key(), shown.value()), (&b"k"[..], &b"a"[..]));
    std::thread::sleep(Duration::from_millis(200));
    assert_eq!(tables(&env), 2);
    drop(shown);
    soon("the table of the dropped family stays", || tables(&env) == 1);
    db.put(b"y", b"1").unwrap();
    db.close().unwrap();
    verified(&env);
}

/// Those who asked to read on read what was there at the drop, from memtables and tables, until the last one is done.
#[test]
fn a_dropped_family_is_read_on_by_those_who_asked() {
    let env = world();
    let db = open(&env);
    let a = db.create_column_family("a", own()).unwrap();
    db.put(b"k", b"default").unwrap();
    a.put(b"k", b"a").unwrap();
    db.flush().unwrap();
    a.flush().unwrap();
    a.put(b"young", b"b").unwrap();
    let reads = [a.keep_reads().unwrap(), a.keep_reads().unwrap()];
    assert!(!reads[0].is_dropped());
    db.drop_column_family("a").unwrap();
    // Another family has the name now.
    let other = db.create_column_family("a", own()).unwrap();
    for guard in reads {
        assert!(guard.is_dropped());
        db.delete_obsolete_files().unwrap();
        assert_eq!(a.get(b"k").unwrap().as_deref(), Some(&b"a"[..]));
        assert_eq!(a.multi_get(&[b"young"]).unwrap()[0].as_deref(), Some(&b"b"[..]));
        assert_eq!(a.range(..).count(), 2);
        assert_eq!(other.range(..).count(), 0);
        assert_eq!(a.put(b"k", b"").unwrap_err().kind(), ErrorKind::NotFound);
        assert_eq!(a.flush().unwrap_err().kind(), ErrorKind::NotFound);
        assert_eq!(tables(&env), 2);
        drop(guard);
    }
    assert_eq!(a.get(b"k").unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(a.keep_reads().unwrap_err().kind(), ErrorKind::NotFound);
    db.delete_obsolete_files().unwrap();
    assert_eq!(tables(&env), 1);
    let late = other.keep_reads().unwrap();
    db.drop_column_family("a").unwrap();
    db.close().unwrap();
    assert_eq!(other.get(b"k").unwrap_err().kind(), ErrorKind::NotFound);
    drop(late);
    verified(&env);
}

/// One family is stopped and the other is written to: only its own writers wait for it.
#[test]
fn a_stall_of_one_family_does_not_stall_another() {
    within(Duration::from_secs(60), "a write to the family that is free", || {
        // Compactions can't write, so a family with enough runs in level 0 stops.
        let full = Arc::new(std::sync::atomic::AtomicBool::new(false));
        let Env { fs, rt } = world();
        let is_full = full.clone();
        let fs: Arc<dyn Fs> = Arc::new(FaultFs::new(fs, move |op| {
            let held = is_full.load(std::sync::atomic::Ordering::SeqCst);
            if held && op.path.to_string_lossy().ends_with(".sst") && op.name == "create" {
                std::thread::sleep(Duration::from_millis(20));
                return Some(std::io::Error::from(std::io::ErrorKind::Interrupted).into());
            }
            None
        }));
        let env = Env { fs, rt };
        let db = open(&env);
        let mut few = tiny();
        few.memtable_count = 2;
        let stopped = db.create_column_family("stopped", own().settings(few)).unwrap();
        full.store(true, std::sync::atomic::Ordering::SeqCst);
        let no_wait = WriteOptions { no_wait: true, ..WriteOptions::default() };
        let mut n = 0u32;
        // Its flushes fail, so what is frozen stays in memory.
        let error = loop {
            n += 1;
            assert!(n < 100_000, "the family does not stop");
            if let Err(error) = stopped.put_opt(n.to_be_bytes(), [3; 1000], &no_wait) {
                break error;
            }
        };
        let held = [ErrorKind::Stalled, ErrorKind::NotCommitted, ErrorKind::NoSpace];
        assert!(held.contains(&error.kind()), "{error}");
        for n in 0..20u32 {
            db.put_opt(n.to_be_bytes(), [3; 100], &no_wait).unwrap();
            db.put(n.to_be_bytes(), [3; 100]).unwrap();
        }
        // A batch that touches the stopped one waits like its writers.
        let mut batch = WriteBatch::new();
        batch.put(b"both", b"").unwrap();
        batch.put_cf(&stopped, b"both", b"").unwrap();
        assert!(db.write_opt(&batch, &no_wait).is_err());
        assert_eq!(db.get(b"both").unwrap(), None);
        std::thread::scope(|scope| {
            full.store(false, std::sync::atomic::Ordering::SeqCst);
            let waits = scope.spawn(|| stopped.put(b"late", b""));
            db.put(b"k", b"v").unwrap();
            let _ = waits.join().unwrap();
        });
        stopped.flush().unwrap();
        db.close().unwrap();
    });
}

/// A family that is rarely written holds back the log of all; at the bound it is flushed.
#[test]
fn a_quiet_family_does_not_keep_logs_for_ever() {
    let env = world();
    let mut settings = tiny();
    settings.max_wal_bytes = 1 << 20;
    let db = Builder::new(settings).env(env.clone()).open("db").unwrap();
    let quiet = db.create_column_family("quiet", own()).unwrap();
    let logs = || {
        let listed = env.fs.list(Path::new("db")).unwrap();
        let logs = listed.iter().filter(|entry| entry.name.ends_with(".log"));
        logs.map(|entry| entry.len).sum::<u64>()
    };
    quiet.put(b"once", b"1").unwrap();
    for n in 0..6000u32 {
        db.put((n % 500).to_be_bytes(), [7; 1000]).unwrap();
    }
    db.flush().unwrap();
    assert!(quiet.stats().counts.flushes > 0);
    soon("the logs stay", || logs() < 2 << 20);
    let levels = quiet.stats().levels;
    assert_eq!(levels.iter().map(|l| l.files).sum::<usize>(), 1, "the quiet family was flushed");
    assert_eq!(quiet.get(b"once").unwrap().as_deref(), Some(&b"1"[..]));
    db.close().unwrap();
    verified(&env);
    let db = open(&env);
    let quiet = db.column_family("quiet").unwrap();
    assert_eq!(quiet.get(b"once").unwrap().as_deref(), Some(&b"1"[..]));
    db.close().unwrap();
}

/// All memtables together keep within what the memtables of the database may take.
#[test]
fn families_share_the_memory_of_memtables() {
    let env = world();
    let db = open(&env);
    let families: Vec<ColumnFamily> =
        (0..20).map(|n| db.create_column_family(&format!("f{n}"), own()).unwrap()).collect();
    let budget = 3 * (64 << 10);
    for n in 0..200u32 {
        for family in &families {
            family.put(n.to_be_bytes(), [1; 200]).unwrap();
        }
        let active: u64 = families.iter().map(|f| f.stats().memtable_bytes).sum();
        let slack = 2 * (64 << 10) + 20 * (16 << 10);
        assert!(active < budget + slack, "{active} bytes of memtables");
    }
    assert!(db.stats().counts.flushes > 4);
    db.close().unwrap();
}

/// A checkpoint has all families as of one moment.
#[test]
fn a_checkpoint_has_all_families_at_one_moment() {
    let env = world();
    let db = open(&env);
    let a = db.create_column_family("a", own()).unwrap();
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for n in 0u64.. {
                let mut batch = WriteBatch::new();
                batch.put(b"n", n.to_be_bytes()).unwrap();
                batch.put_cf(&a, b"n", n.to_be_bytes()).unwrap();
                db.write(&batch).unwrap();
                a.flush().unwrap();
                if stop.load(std::sync::atomic::Ordering::Relaxed) {
                    break;
                }
            }
        });
        for n in 0..10 {
            let path = format!("copy-{n}");
            db.checkpoint(&path).unwrap();
            let copy = Builder::new(tiny()).env(env.clone()).open(&path).unwrap();
            let value = |db: &Db| db.get(b"n").unwrap().map(Vec::from);
            assert_eq!(value(&copy), value(&copy.column_family("a").unwrap()));
            copy.close().unwrap();
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    db.close().unwrap();
}

/// The edit of a flush waits until the log below it is durable: otherwise a power cut could take the
/// other family's part of a batch away.
#[test]
fn a_flush_is_not_committed_before_its_log_is_durable() {
    let (gate, _, env) = with_gate(".log");
    let db = open(&env);
    let a = db.create_column_family("a", own()).unwrap();
    let mut batch = WriteBatch::new();
    batch.put(b"k", b"1").unwrap();
    batch.put_cf(&a, b"k", b"1").unwrap();
    let closed = gate.lock();
    db.write(&batch).unwrap();
    std::thread::scope(|scope| {
        let flush = scope.spawn(|| a.flush());
        soon("the table is not written", || tables(&env) == 1);
        std::thread::sleep(Duration::from_millis(100));
        assert!(!flush.is_finished(), "the log is not synced yet");
        assert_eq!(a.stats().levels.iter().map(|l| l.files).sum::<usize>(), 0);
        drop(closed);
        flush.join().unwrap().unwrap();
    });
    db.close().unwrap();
}

/// A log whose sync fails is replaced by flushes of all families at once, and writing goes on.
#[test]
fn a_lost_log_is_replaced_in_all_families_at_once() {
    let fails = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let Env { fs, rt } = world();
    let once = fails.clone();
    let fs: Arc<dyn Fs> = Arc::new(FaultFs::new(fs, move |op| {
        let sync = op.path.to_string_lossy().ends_with(".log") && op.name.starts_with("sync");
        (sync && once.swap(false, std::sync::atomic::Ordering::SeqCst))
            .then(|| Fault::Fail(std::io::Error::from_raw_os_error(5)))
    }));
    let env = Env { fs, rt };
    let db = open(&env);
    let a = db.create_column_family("a", own()).unwrap();
    let quiet = db.create_column_family("quiet", own()).unwrap();
    let mut model = Model::new();
    let batch_of = |n: u32, value: &[u8]| {
        let mut batch = WriteBatch::new();
        batch.put(n.to_be_bytes(), value).unwrap();
        batch.put_cf(&a, n.to_be_bytes(), value).unwrap();
        batch
    };
    for round in 0..3u32 {
        for n in 0..40 {
            let value = [round as u8; 200];
            db.write(&batch_of(n, &value)).unwrap();
            for name in ["default", "a"] {
                let map = model.entry(name.to_owned()).or_default();
                map.insert(n.to_be_bytes().to_vec(), value.to_vec());
            }
        }
        fails.store(true, std::sync::atomic::Ordering::SeqCst);
        let sync = WriteOptions::at(Durability::Sync);
        let error = db.write_opt(&batch_of(99, b"never"), &sync).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotCommitted, "{error}");
        let tables = |family: &Db| family.stats().levels.iter().map(|l| l.files).sum::<usize>();
        assert!(tables(&db) > 0 && tables(&a) > 0 && tables(&quiet) == 0);
    }
    model.insert("quiet".to_owned(), Content::new());
    compare(&db, &model);
    quiet.put_opt(b"k", b"v", &WriteOptions::at(Durability::Sync)).unwrap();
    model.get_mut("quiet").unwrap().insert(b"k".to_vec(), b"v".to_vec());
    db.close().unwrap();
    verified(&env);
    let db = open(&env);
    compare(&db, &model);
    db.close().unwrap();
}

/// An entry that names no family is the default one's, which a handle of another must not hide.
#[test]
fn a_batch_without_names_is_refused_by_a_family() {
    let env = world();
    let db = open(&env);
    let other = db.create_column_family("other", own()).unwrap();
    let mut batch = WriteBatch::new();
    batch.put_cf(&other, b"k", b"1").unwrap();
    other.write(&batch).unwrap();
    assert_eq!(other.get(b"k").unwrap().unwrap(), b"1");
    batch.put(b"k", b"2").unwrap();
    let refused = other.write(&batch).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InvalidArgument);
    assert_eq!(db.get(b"k").unwrap(), None);
    db.write(&batch).unwrap();
    assert_eq!(db.get(b"k").unwrap().unwrap(), b"2");
    db.close().unwrap();
}

/// Time for a thread to come to where it waits.
const A_WHILE: Duration = Duration::from_millis(100);

/// The edit of the deletion waits behind that of the drop, and is given up with it.
#[test]
fn who_deletes_files_of_a_family_that_is_dropped_is_told() {
    within(Duration::from_secs(20), "deleting files beside a drop", || {
        let (gate, syncs, env) = with_gate("MANIFEST");
        let db = open(&env);
        let x = db.create_column_family("x", own()).unwrap();
        x.put(b"k", b"1").unwrap();
        x.flush().unwrap();
        x.put(b"k", b"2").unwrap();
        let before = syncs.load(SeqCst);
        let closed = gate.lock();
        std::thread::scope(|scope| {
            let flush = scope.spawn(|| x.flush());
            let reached = || syncs.load(SeqCst) > before;
            soon("no edit is written", reached);
            let delete = scope.spawn(|| x.delete_files_in_range(None, None));
            std::thread::sleep(A_WHILE);
            let dropped = scope.spawn(|| db.drop_column_family("x"));
            std::thread::sleep(A_WHILE);
            drop(closed);
            dropped.join().unwrap().unwrap();
            delete.join().unwrap().ok();
            flush.join().unwrap().ok();
        });
        db.close().unwrap();
    });
}

/// A copy is of the families that there are once it has its turn.
#[test]
fn a_checkpoint_beside_a_drop_has_the_others() {
    let (gate, syncs, env) = with_gate("MANIFEST");
    let db = open(&env);
    db.create_column_family("x", own()).unwrap().put(b"k", b"1").unwrap();
    db.put(b"k", b"2").unwrap();
    let before = syncs.load(SeqCst);
    let closed = gate.lock();
    std::thread::scope(|scope| {
        let dropped = scope.spawn(|| db.drop_column_family("x"));
        soon("no edit is written", || syncs.load(SeqCst) > before);
        let copied = scope.spawn(|| db.checkpoint("copy"));
        std::thread::sleep(A_WHILE);
        drop(closed);
        dropped.join().unwrap().unwrap();
        copied.join().unwrap().unwrap();
    });
    let copy = Builder::new(tiny()).env(env).open("copy").unwrap();
    assert_eq!(copy.column_families(), ["default"]);
    assert_eq!(copy.get(b"k").unwrap().as_deref(), Some(&b"2"[..]));
}

/// What is set for the whole database is in force in a family that is made meanwhile, which can be set afterwards.
#[test]
fn a_family_made_beside_a_change_of_settings_has_it() {
    let (gate, syncs, env) = with_gate("MANIFEST");
    let db = open(&env);
    let before = syncs.load(SeqCst);
    let closed = gate.lock();
    std::thread::scope(|scope| {
        let made = scope.spawn(|| db.create_column_family("x", own()));
        soon("no edit is written", || syncs.load(SeqCst) > before);
        let set = scope.spawn(|| db.set_settings(&[("durability", "sync")]));
        std::thread::sleep(A_WHILE);
        drop(closed);
        let x = made.join().unwrap().unwrap();
        set.join().unwrap().unwrap();
        assert_eq!(x.settings().durability, Durability::Sync);
        x.set_settings(&[("l0_trigger", "3")]).unwrap();
    });
    db.close().unwrap();
}

/// A copy of the only family waits for its flush without the write turn, and has no log: what is taken in meanwhile is not
/// in it without the write before.
#[test]
fn a_checkpoint_beside_an_ingestion_has_what_was_written_before_it() {
    let gates = [(); 2].map(|()| Arc::new(lithify_env::sync::Mutex::new(())));
    let made = Arc::new(AtomicUsize::new(0));
    let Env { fs, rt } = world();
    let (held, count) = (gates.clone(), made.clone());
    let fs: Arc<dyn Fs> = Arc::new(FaultFs::new(fs, move |op| {
        let thread = std::thread::current();
        let flushes = thread.name().is_some_and(|name| name.ends_with("flush"));
        if flushes && op.name == "create" && op.path.extension().is_some_and(|e| e == "sst") {
            let nth = count.fetch_add(1, SeqCst);
            if let Some(gate) = held.get(nth) {
                drop(gate.lock());
            }
        }
        None
    }));
    let env = Env { fs, rt };
    let db = open(&env);
    let mut table = db.table_builder("z.sst").unwrap();
    table.put(b"z", b"1").unwrap();
    table.finish().unwrap();
    db.put(b"a", b"1").unwrap();
    let [first, second] = gates.each_ref().map(|gate| gate.lock());
    std::thread::scope(|scope| {
        let copied = scope.spawn(|| db.checkpoint("copy"));
        soon("no table is made", || made.load(SeqCst) == 1);
        db.put(b"k", b"1").unwrap();
        let taken = scope.spawn(|| db.ingest(&[Path::new("z.sst")], &IngestOptions::default()));
        std::thread::sleep(A_WHILE);
        drop(first);
        // Unless it waits for the second flush, too.
        (0..10).for_each(|_| {
            if !copied.is_finished() {
                std::thread::sleep(A_WHILE / 2)
            }
        });
        drop(second);
        copied.join().unwrap().unwrap();
        taken.join().unwrap().unwrap();
    });
    db.close().unwrap();
    let copy = Builder::new(tiny()).env(env).open("copy").unwrap();
    let there = |key: &[u8]| copy.get(key).unwrap().is_some();
    assert!(there(b"a") && there(b"z") <= there(b"k"));
}

/// What is set for the database is in force in its families, too, and has to go with what they have of their own.
#[test]
fn settings_of_the_database_go_with_those_of_all_families() {
    let db = open(&world());
    let (mut fifo, old) = (tiny(), db.settings());
    (fifo.policy, fifo.fifo_max_bytes) = (Some(Policy::Fifo), 10 << 30);
    let family = db.create_column_family("f", own().settings(fifo)).unwrap();
    let refused = db.set_settings(&[("disk_budget", "5GiB")]).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InvalidArgument);
    assert!(format!("{refused:#}{refused:?}").contains("`f`"), "{refused:?}");
    assert_eq!((db.settings(), family.settings().disk_budget), (old, None));
    db.set_settings(&[("disk_budget", "50GiB")]).unwrap();
    family.settings().check().unwrap();
    db.close().unwrap();
}
