//! kill -9 over a load of batches and transactions that span column families, which are flushed one by
//! one, come and go: after each kill all families show the same batch, none older than the last one that was
//! acknowledged (reliability F1).
#![allow(
    clippy::disallowed_methods,
    reason = "a real process on real files, watched from the outside"
)]

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::common::{scan, tiny};
use lithify::{
    ColumnFamily, ColumnFamilyOptions, Db, Durability, TransactionOptions, WriteBatch, WriteOptions,
};

const LASTING: [&str; 3] = ["default", "a", "b"];
const WHERE: &str = "LITHIFY_FAMILIES_DIR";

fn open(dir: &Path) -> Db {
    let mut settings = tiny();
    // Which the first family that is flushed must not take away from the others.
    settings.max_wal_bytes = 1 << 20;
    Db::open(dir, settings).unwrap()
}

fn families(db: &Db) -> Vec<ColumnFamily> {
    let there = db.column_families();
    let family = |name: &&str| match there.iter().any(|other| other == name) {
        true => db.column_family(name).unwrap(),
        false => db.create_column_family(name, ColumnFamilyOptions::new()).unwrap(),
    };
    LASTING.iter().map(family).collect()
}

/// The number of the last batch that a family holds.
fn last(family: &Db) -> u64 {
    let value = family.get(b"last").unwrap();
    value.map_or(0, |value| u64::from_be_bytes(value[..8].try_into().unwrap()))
}

fn key(n: u64) -> Vec<u8> {
    (n % 300).to_be_bytes().to_vec()
}

/// Each family with each entry.
fn pairs<'a, E>(
    families: &'a [ColumnFamily],
    entries: &'a [E],
) -> impl Iterator<Item = (&'a ColumnFamily, &'a E)> {
    families.iter().flat_map(move |family| entries.iter().map(move |entry| (family, entry)))
}

/// The child: works until it is killed. Alone, it does nothing.
#[test]
fn the_load() {
    let Some(dir) = std::env::var_os(WHERE) else { return };
    let db = open(Path::new(&dir));
    let families = families(&db);
    let mut said = std::io::stdout();
    for n in last(&db) + 1.. {
        let entries = [(b"last".to_vec(), n.to_be_bytes().to_vec()), (key(n), vec![n as u8; 700])];
        let durability = if n % 16 == 0 { Durability::Sync } else { Durability::Os };
        let options = WriteOptions::at(durability);
        if n % 3 == 0 {
            // Begun by any of them.
            let home = &families[(n % 2) as usize];
            let mut txn =
                home.begin_transaction(TransactionOptions::optimistic().with_write(options));
            for (family, (key, value)) in pairs(&families, &entries) {
                txn.get_for_update_cf(family, key).unwrap();
                txn.put_cf(family, key, value).unwrap();
            }
            txn.commit().unwrap();
        } else {
            let mut batch = WriteBatch::new();
            for (family, (key, value)) in pairs(&families, &entries) {
                batch.put_cf(family, key, value).unwrap();
            }
            db.write_opt(&batch, &options).unwrap();
        }
        writeln!(said, "acknowledged {n}").unwrap();
        match n % 40 {
            7 | 21 => families[(n % 3) as usize].flush().unwrap(),
            30 => {
                let passing = ColumnFamilyOptions::new();
                if let Ok(family) = db.create_column_family("passing", passing) {
                    family.put(b"k", n.to_be_bytes()).unwrap();
                }
            }
            39 => drop(db.drop_column_family("passing")),
            _ => {}
        }
    }
}

#[test]
fn a_kill_tears_no_batch_over_families() {
    let place = tempfile::tempdir().unwrap();
    let dir = place.path().join("db");
    let mut rng = fastrand::Rng::with_seed(1);
    let mut all = 0;
    for round in 0..12 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "families_killed::the_load", "--nocapture"])
            .env(WHERE, &dir)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut told = BufReader::new(child.stdout.take().unwrap()).lines();
        let count = rng.u32(1..120);
        // The last line may be cut off, and tells less then.
        let of_line = |line: String| line.split_once("acknowledged ")?.1.parse().ok();
        let mut acknowledged = told.by_ref().filter_map(|line| of_line(line.unwrap()));
        let mut newest: u64 = acknowledged.by_ref().take(count as usize).last().unwrap();
        std::thread::sleep(Duration::from_micros(rng.u64(0..3000)));
        child.kill().unwrap();
        child.wait().unwrap();
        newest = acknowledged.last().unwrap_or(newest);
        let db = open(&dir);
        let shown = families(&db).iter().map(|family| last(family)).collect::<Vec<u64>>();
        assert!(shown.iter().all(|n| *n == shown[0]), "round {round}: {shown:?}");
        assert!(
            shown[0] >= newest,
            "round {round}: {newest} was acknowledged, {shown:?} are there"
        );
        let contents = families(&db).iter().map(|family| scan(family).unwrap()).collect::<Vec<_>>();
        assert!(contents.iter().all(|content| *content == contents[0]), "round {round}");
        all = newest;
        db.close().unwrap();
    }
    assert!(all > 100);
}
