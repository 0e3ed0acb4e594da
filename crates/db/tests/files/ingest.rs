//! Tables from outside: against a model, over every policy, with snapshots and iterators held across,
//! through reopens; and what is refused. How it survives crashes is in the simulation.
#![allow(clippy::disallowed_methods, reason = "real files")]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::common::{Content, eager, scan, shown, tiny};
use lithify::{
    Builder, Compression, Db, DbIter, ErrorKind, IngestOptions, Policy, ReadOptions,
    ReverseBytewise, Settings, Snapshot, TableBuilder, Transfer,
};
use lithify_env::{Env, MemFs, OsRt, RtOptions};

fn key(n: u32) -> Vec<u8> {
    format!("{n:04}/key").into_bytes()
}

fn by(transfer: Transfer) -> IngestOptions {
    IngestOptions { transfer }
}

/// No finding of any grade.
fn verified(env: &Env, path: &Path) {
    let report = lithify::verify::verify(env.fs.clone(), path, None, &mut |_| {}).unwrap();
    assert!(report.findings.is_empty(), "{:?}", report.findings);
}

/// A random table, and what it does to a database.
struct Load {
    path: PathBuf,
    puts: Vec<(Vec<u8>, Option<Vec<u8>>)>,
    ranges: Vec<(Vec<u8>, Vec<u8>)>,
}

impl Load {
    /// Over keys from `lo` on below `hi`.
    fn any(path: PathBuf, keys: std::ops::Range<u32>, rng: &mut fastrand::Rng) -> Load {
        let mut load = Load { path, puts: Vec::new(), ranges: Vec::new() };
        let dense = rng.u8(1..100);
        for n in keys.clone() {
            if rng.u8(0..100) >= dense {
                continue;
            }
            let value = vec![rng.u8(..); rng.usize(0..400)];
            load.puts.push((key(n), (rng.u8(0..5) > 0).then_some(value)));
        }
        for _ in 0..rng.u32(0..3) {
            let from = rng.u32(keys.clone());
            load.ranges.push((key(from), key(rng.u32(from..keys.end))));
        }
        if load.puts.is_empty() {
            load.puts.push((key(keys.start), Some(b"one".to_vec())));
        }
        load
    }
    fn write(&self, mut table: TableBuilder) {
        for (i, (key, value)) in self.puts.iter().enumerate() {
            if let Some((from, to)) = self.ranges.get(i) {
                table.delete_range(from, to).unwrap();
            }
            match value {
                Some(value) => table.put(key, value).unwrap(),
                None => table.delete(key).unwrap(),
            }
        }
        for (from, to) in self.ranges.iter().skip(self.puts.len()) {
            table.delete_range(from, to).unwrap();
        }
        let built = table.finish().unwrap();
        assert_eq!(built.entries, self.puts.len() as u64);
    }
    /// Deletions of ranges hide none of the table's own entries.
    fn apply(&self, content: &mut Content) {
        for (from, to) in &self.ranges {
            content.retain(|k, _| !(from..to).contains(&k));
        }
        for (key, value) in &self.puts {
            match value {
                Some(value) => drop(content.insert(key.clone(), value.clone())),
                None => drop(content.remove(key)),
            }
        }
    }
}

/// Puts, deletions, ingestions, compactions, snapshots and iterators, in any order.
fn life(policy: Policy, seed: u64) {
    const KEYS: u32 = 600;
    let mut rng = fastrand::Rng::with_seed(seed);
    let rt = Arc::new(OsRt::new(RtOptions { compact_threads: 4, ..RtOptions::default() }));
    let env = Env { fs: Arc::new(MemFs::new()), rt };
    let home = PathBuf::from("db");
    let mut settings = eager(policy, &mut rng);
    settings.format_version = 5 + rng.u32(0..2);
    settings.compression_lower = Compression::Lz4;
    let builder = || Builder::new(settings.clone()).env(env.clone());
    let mut db = builder().open(&home).unwrap();
    let mut content = Content::new();
    let mut snapshots: Vec<(Snapshot, Content)> = Vec::new();
    let mut iterators: Vec<(DbIter, Content)> = Vec::new();
    for step in 0..160u32 {
        match rng.u8(0..20) {
            0..8 => {
                for _ in 0..rng.u32(1..40) {
                    let (k, v) = (key(rng.u32(0..KEYS)), vec![rng.u8(..); rng.usize(0..400)]);
                    db.put(&k, &v).unwrap();
                    content.insert(k, v);
                }
            }
            8 => {
                let from = rng.u32(0..KEYS);
                let (from, to) = (key(from), key(rng.u32(from..KEYS)));
                db.delete_range(&from, &to).unwrap();
                content.retain(|k, _| !(&from..&to).contains(&k));
            }
            9..15 => {
                // Several in one call, one beside the other.
                let mut bounds: Vec<u32> = (0..rng.u32(2..5)).map(|_| rng.u32(0..KEYS)).collect();
                bounds.sort_unstable();
                bounds.dedup();
                let loads: Vec<Load> = bounds
                    .windows(2)
                    .map(|w| {
                        let path = PathBuf::from(format!("{step}-{}.sst", w[0]));
                        Load::any(path, w[0]..w[1], &mut rng)
                    })
                    .collect();
                let transfer = [Transfer::Copy, Transfer::Link, Transfer::Move][rng.usize(0..3)];
                let mut paths: Vec<&Path> = Vec::new();
                for load in &loads {
                    load.write(match rng.bool() {
                        true => builder().table(&load.path).unwrap(),
                        false => db.table_builder(&load.path).unwrap(),
                    });
                    load.apply(&mut content);
                    paths.push(&load.path);
                }
                rng.shuffle(&mut paths);
                if !paths.is_empty() {
                    db.ingest(&paths, &by(transfer)).unwrap();
                }
                let left = paths.iter().filter(|p| env.fs.len(p).unwrap().is_some()).count();
                assert_eq!(left, if transfer == Transfer::Move { 0 } else { paths.len() });
            }
            15 => db.flush().unwrap(),
            16 => db.compact_range(None, None).unwrap(),
            17 => snapshots.push((db.snapshot(), content.clone())),
            18 => iterators.push((db.iter().unwrap(), content.clone())),
            _ => {
                snapshots.clear();
                iterators.clear();
                db.close().unwrap();
                verified(&env, &home);
                db = builder().open(&home).unwrap();
            }
        }
        let k = key(rng.u32(0..KEYS));
        assert_eq!(db.get(&k).unwrap().as_deref(), content.get(&k).map(Vec::as_slice));
    }
    same(&scan(&db).unwrap(), &content, "the database");
    for (snapshot, then) in &snapshots {
        let mut iter = db.iter_opt(&ReadOptions::at(snapshot)).unwrap();
        same(&shown(&mut iter).unwrap(), then, "a snapshot shows what it showed");
    }
    for (mut iter, then) in iterators {
        same(&shown(&mut iter).unwrap(), &then, "an iterator shows what it showed");
    }
    drop(snapshots);
    db.compact_range(None, None).unwrap();
    same(&scan(&db).unwrap(), &content, "the compacted database");
    let copy = PathBuf::from("copy");
    db.checkpoint(&copy).unwrap();
    db.close().unwrap();
    verified(&env, &copy);
    verified(&env, &home);
    let left = env.fs.list(&home).unwrap();
    assert!(!left.iter().any(|e| e.name.ends_with("dbtmp")), "{left:?}");
}

/// Fails at the first key that differs.
fn same(shown: &Content, wanted: &Content, what: &str) {
    let keys: std::collections::BTreeSet<_> = shown.keys().chain(wanted.keys()).collect();
    for key in keys {
        let (a, b) = (shown.get(key), wanted.get(key));
        assert_eq!(a, b, "{what}: {}", key.escape_ascii());
    }
}

#[test]
fn a_database_with_tables_from_outside_is_what_the_model_says() {
    for (i, policy) in Policy::ALL.into_iter().enumerate() {
        for seed in 0..2 {
            life(policy, 10 * i as u64 + seed);
        }
    }
}

fn table(path: &Path, keys: std::ops::Range<u32>, value: &[u8]) -> PathBuf {
    let mut table = TableBuilder::create(path, &Settings::default()).unwrap();
    for n in keys {
        table.put(key(n), value).unwrap();
    }
    table.finish().unwrap().path
}

/// Into an empty range a table goes down to the last level at once, and stays there as it is.
#[test]
fn a_load_into_an_empty_range_goes_to_the_bottom() {
    let scratch = tempfile::tempdir().unwrap();
    let db = Db::open(scratch.path().join("db"), tiny()).unwrap();
    db.put(key(5000), b"elsewhere").unwrap();
    db.flush().unwrap();
    let one = table(&scratch.path().join("one"), 0..1000, b"1");
    db.ingest(&[one], &IngestOptions::default()).unwrap();
    assert!(db.picture().contains("L6.0"), "{}", db.picture());
    // Over its keys the next one is stacked on top, without any level above.
    let two = table(&scratch.path().join("two"), 500..1500, b"2");
    db.ingest(&[two], &IngestOptions::default()).unwrap();
    assert!(db.picture().contains("L6.1"), "{}", db.picture());
    assert_eq!(db.get(key(499)).unwrap().as_deref(), Some(&b"1"[..]));
    assert_eq!(db.get(key(500)).unwrap().as_deref(), Some(&b"2"[..]));
    db.close().unwrap();
}

#[test]
fn a_memtable_is_flushed_only_if_it_has_keys_of_the_tables() {
    let scratch = tempfile::tempdir().unwrap();
    let mut settings = tiny();
    settings.auto_compaction = false;
    let db = Db::open(scratch.path().join("db"), settings).unwrap();
    // What is in the memtable counts, and so does what a range deletion there covers.
    db.put(key(10), b"old").unwrap();
    db.put(key(90), b"old").unwrap();
    db.delete_range(key(40), key(60)).unwrap();
    let path = table(&scratch.path().join("over"), 45..50, b"new");
    db.ingest(&[path], &IngestOptions::default()).unwrap();
    assert_eq!(db.get(key(47)).unwrap().as_deref(), Some(&b"new"[..]));
    db.put(key(47), b"newer").unwrap();
    assert_eq!(db.get(key(47)).unwrap().as_deref(), Some(&b"newer"[..]));
    db.close().unwrap();
    let db = Db::open(scratch.path().join("db"), tiny()).unwrap();
    assert_eq!(db.get(key(47)).unwrap().as_deref(), Some(&b"newer"[..]));
    assert_eq!(db.get(key(46)).unwrap().as_deref(), Some(&b"new"[..]));
    db.close().unwrap();
}

#[test]
fn what_does_not_fit_is_refused_and_leaves_nothing() {
    let scratch = tempfile::tempdir().unwrap();
    let home = scratch.path().join("db");
    let db = Db::open(&home, tiny()).unwrap();
    let is_table = |name: &str| name.ends_with("sst") || name.ends_with("dbtmp");
    let names = || std::fs::read_dir(&home).unwrap().map(|e| e.unwrap().file_name());
    let count = || names().filter(|name| is_table(&name.to_string_lossy())).count();
    let before = count();
    let refused = |paths: &[PathBuf], kind: ErrorKind| {
        for transfer in [Transfer::Copy, Transfer::Link, Transfer::Move] {
            let error = db.ingest(paths, &by(transfer)).unwrap_err();
            assert_eq!(error.kind(), kind, "{error:?}");
            assert_eq!(count(), before, "something is left in the directory");
        }
        assert!(scan(&db).unwrap().is_empty());
    };
    let at = |name: &str| scratch.path().join(name);
    refused(&[], ErrorKind::InvalidArgument);
    refused(&[at("absent")], ErrorKind::Io);
    let (a, b) = (table(&at("a"), 0..100, b"a"), table(&at("b"), 99..200, b"b"));
    refused(&[b.clone(), a.clone()], ErrorKind::InvalidArgument);
    let c = table(&at("c"), 300..310, b"c");
    // A byte of a block, of the index, of the properties: found before anything is taken in.
    let whole = std::fs::read(&a).unwrap();
    for i in (0..whole.len()).step_by(whole.len() / 40) {
        let mut bytes = whole.clone();
        bytes[i] ^= 0x10;
        std::fs::write(at("damaged"), bytes).unwrap();
        let error = db.ingest(&[&c, &at("damaged")], &by(Transfer::Link)).unwrap_err();
        // Some damage makes no sense before its sum is looked at.
        let known = matches!(error.kind(), ErrorKind::Corruption | ErrorKind::Unsupported);
        assert!(known, "byte {i}: {error:?}");
        assert_eq!(count(), before, "something is left in the directory");
    }
    // A table of a database is not for this.
    let other = Db::open(at("other"), tiny()).unwrap();
    other.put(b"k", b"v").unwrap();
    other.flush().unwrap();
    other.close().unwrap();
    let theirs = std::fs::read_dir(at("other")).unwrap().map(|e| e.unwrap().path());
    let theirs = theirs.into_iter().find(|p| p.extension().is_some_and(|e| e == "sst")).unwrap();
    refused(&[theirs], ErrorKind::Unsupported);
    // Nor is one in another order.
    let reverse = || Builder::new(Settings::default()).comparator(Arc::new(ReverseBytewise));
    let mut table = reverse().table(at("reverse")).unwrap();
    table.put(b"b", b"1").unwrap();
    table.put(b"a", b"1").unwrap();
    table.finish().unwrap();
    refused(&[at("reverse")], ErrorKind::Unsupported);
    let backward = reverse().open(at("backward")).unwrap();
    backward.ingest(&[at("reverse")], &IngestOptions::default()).unwrap();
    assert_eq!(scan(&backward).unwrap().len(), 2);
    backward.close().unwrap();
    db.close().unwrap();
}

#[test]
fn a_builder_refuses_what_is_out_of_order() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("t.sst");
    let mut table = TableBuilder::create(&path, &Settings::default()).unwrap();
    table.put(b"b", b"1").unwrap();
    for key in [&b"b"[..], b"a", b""] {
        assert_eq!(table.put(key, b"2").unwrap_err().kind(), ErrorKind::InvalidArgument);
    }
    assert_eq!(table.delete_range(b"z", b"a").unwrap_err().kind(), ErrorKind::InvalidArgument);
    table.delete_range(b"a", b"a").unwrap();
    table.put(b"c", b"3").unwrap();
    // A second builder does not touch the first one's file.
    assert_eq!(
        TableBuilder::create(&path, &Settings::default()).err().unwrap().kind(),
        ErrorKind::Io
    );
    let built = table.finish().unwrap();
    assert_eq!((built.entries, built.range_deletes), (2, 0));
    assert_eq!((&*built.smallest, &*built.largest), (&b"b"[..], &b"c"[..]));
    let empty = TableBuilder::create(scratch.path().join("e"), &Settings::default()).unwrap();
    assert_eq!(empty.finish().unwrap_err().kind(), ErrorKind::InvalidArgument);
    assert!(!scratch.path().join("e").exists());
}
