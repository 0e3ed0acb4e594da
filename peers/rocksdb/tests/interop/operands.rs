//! Merge operands and single deletions that nothing has combined yet, because snapshots need them or
//! they are in a log: in tables and in directories, both ways, under RocksDB's own operators.

use std::path::PathBuf;

use lithify::import::ImportOptions;
use lithify::merge::built_in;
use lithify::{Builder, Db, Settings, Snapshot};
use lithify_base::Kind;
use rocksdb::{DB, Options, WriteBatch};

use crate::c_api;
use crate::our_tables::{same_content, small, tables_deepest_first};
use crate::read::{open, read_every_way};

/// Operators by RocksDB's name for them.
const OPERATORS: [&str; 3] = ["uint64add", "stringappend", "max"];

fn rocks(operator: &str) -> Options {
    c_api::options(&format!(
        "create_if_missing=true;disable_auto_compactions=true;write_buffer_size=65536;\
         avoid_flush_during_shutdown=true;merge_operator={operator}"
    ))
}

fn builder(operator: &str) -> Builder {
    Builder::new(small()).merge_operator(built_in(operator).unwrap())
}

fn key(n: u32) -> String {
    format!("key{n:05}")
}

/// What the operator takes.
fn value(operator: &str, rng: &mut fastrand::Rng) -> Vec<u8> {
    match operator {
        "uint64add" => rng.u64(0..1 << 40).to_le_bytes().to_vec(),
        _ => (0..rng.usize(1..30)).map(|_| rng.u8(b'a'..=b'z')).collect(),
    }
}

/// A deed on a key. Those of single deletions are put at most once before, and nothing else is done to
/// them.
enum Deed {
    Put(String, Vec<u8>),
    Delete(String),
    Merge(String, Vec<u8>),
    Single(String),
}

fn deeds(operator: &str, count: u32, seed: u64) -> impl Iterator<Item = Deed> {
    let mut rng = fastrand::Rng::with_seed(seed);
    (0..count).map(move |i| {
        let k = key(rng.u32(0..700));
        match rng.u8(0..20) {
            0 => Deed::Delete(k),
            1..4 => Deed::Put(k, value(operator, &mut rng)),
            4..7 => Deed::Put(format!("single {seed} {i:06}"), value(operator, &mut rng)),
            // It may be one that was never put.
            7 => Deed::Single(format!("single {seed} {:06}", i / 2)),
            _ => Deed::Merge(k, value(operator, &mut rng)),
        }
    })
}

fn ours_does(db: &Db, all: impl Iterator<Item = Deed>) -> Vec<Snapshot> {
    let mut snapshots = Vec::new();
    for (i, deed) in all.enumerate() {
        match deed {
            Deed::Put(k, v) => db.put(k, v).unwrap(),
            Deed::Delete(k) => db.delete(k).unwrap(),
            Deed::Merge(k, v) => db.merge(k, v).unwrap(),
            Deed::Single(k) => db.single_delete(k).unwrap(),
        }
        if i % 20 == 0 {
            snapshots.push(db.snapshot());
        }
    }
    snapshots
}

fn theirs_does(db: &DB, all: impl Iterator<Item = Deed>) {
    for deed in all {
        match deed {
            Deed::Put(k, v) => db.put(k, v).unwrap(),
            Deed::Delete(k) => db.delete(k).unwrap(),
            Deed::Merge(k, v) => db.merge(k, v).unwrap(),
            Deed::Single(k) => {
                let mut batch = WriteBatch::default();
                batch.single_delete(k);
                db.write(batch).unwrap();
            }
        }
    }
}

/// Entries of a kind in these tables.
fn count(tables: &[PathBuf], kind: Kind) -> usize {
    let of = |path: &PathBuf| read_every_way(&open(path).unwrap()).entries;
    tables.iter().flat_map(of).filter(|entry| entry.kind == kind).count()
}

/// Our tables, ingested with their sequence numbers: RocksDB combines our operands with each other and
/// with what lies below, at reads and in its compactions.
#[test]
fn our_operands_in_their_database() {
    for operator in OPERATORS {
        for version in [5, 6] {
            let dir = tempfile::tempdir().unwrap();
            let mut settings: Settings = small();
            settings.format_version = version;
            let ours = Builder::new(settings).merge_operator(built_in(operator).unwrap());
            let ours = ours.open(dir.path().join("ours")).unwrap();
            let snapshots = ours_does(&ours, deeds(operator, 8000, version.into()));
            ours.flush().unwrap();
            ours.wait_idle(None).unwrap();
            let tables = tables_deepest_first(&ours, &dir.path().join("checkpoint"));
            let operands = count(&tables, Kind::Merge);
            let singles = count(&tables, Kind::SingleDelete);
            assert!(operands > 1000 && singles > 10, "{operands} {singles}");
            let theirs = DB::open(&rocks(operator), dir.path().join("theirs")).unwrap();
            c_api::ingest(&theirs, &tables).unwrap();
            c_api::verify_checksum(&theirs).unwrap();
            let keys = same_content(&ours, &theirs);
            drop(snapshots);
            theirs.compact_range(None::<&[u8]>, None::<&[u8]>);
            assert_eq!(same_content(&ours, &theirs), keys);
            eprintln!("{operator}: {operands} operands of ours, {keys} keys read alike");
        }
    }
}

/// Directories with operands in tables and in the log go there, are written to, and come back.
#[test]
fn operands_move_both_ways() {
    for operator in OPERATORS {
        let place = tempfile::tempdir().unwrap();
        let (from, to) = (place.path().join("theirs"), place.path().join("ours"));
        let theirs = DB::open(&rocks(operator), &from).unwrap();
        // Each operand is an entry of its own as long as a snapshot might look.
        let snapshot = theirs.snapshot();
        theirs_does(&theirs, deeds(operator, 3000, 1));
        theirs.flush().unwrap();
        theirs_does(&theirs, deeds(operator, 300, 2));
        drop(snapshot);
        drop(theirs);
        let options = ImportOptions { verify: true, ..ImportOptions::default() };
        let report = builder(operator).import(&from, &to, options, &mut |_| {}).unwrap();
        assert!(report.tables > 0 && report.batches >= 300, "{report:?}");
        let ours = builder(operator).open(&to).unwrap();
        let theirs = DB::open(&rocks(operator), &from).unwrap();
        let keys = same_content(&ours, &theirs);
        assert!(keys > 300, "{keys} keys");
        // Both go on, and stay the same.
        drop(ours_does(&ours, deeds(operator, 2000, 3)));
        theirs_does(&theirs, deeds(operator, 2000, 3));
        same_content(&ours, &theirs);
        ours.settle().unwrap();
        ours.close().unwrap();
        let back = DB::open(&rocks(operator), &to).unwrap();
        c_api::verify_checksum(&back).unwrap();
        back.compact_range(None::<&[u8]>, None::<&[u8]>);
        theirs_does(&back, deeds(operator, 200, 4));
        theirs_does(&theirs, deeds(operator, 200, 4));
        drop(back);
        let ours = builder(operator).open(&to).unwrap();
        same_content(&ours, &theirs);
        ours.close().unwrap();
    }
}
