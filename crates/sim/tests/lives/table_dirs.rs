//! A database with tables in three directories that loses power at every step, from its making on: what was
//! durable is there, each table in one directory, and nothing is left over once it has been opened.
#![allow(clippy::disallowed_methods, reason = "a test sets up its world by itself")]

use std::sync::Arc;
use std::time::Duration;

use lithify::{Builder, ColumnFamilyOptions, Db, Durability, Policy, Settings, WriteOptions};
use lithify_env::{Env, Fs, Rt};
use lithify_sim::choices::{Dice, Stream};
use lithify_sim::crash::{Kind, image};
use lithify_sim::disk::Disk;
use lithify_sim::pump::{Order, Pump};
use lithify_sim::simfs::SimFs;

use crate::numbered::{value, written};

const WRITES: u32 = 700;
const DIRS: [&str; 4] = ["db", "fast", "large", "db/cold"];

fn settings(policy: Policy) -> Settings {
    let mut s = Settings::default();
    s.policy = Some(policy);
    s.memtable_bytes = 64 << 10;
    s.memory_budget = 4 << 20;
    s.l0_trigger = 2;
    s.level_base_bytes = 64 << 10;
    s.level_multiplier = 2;
    s.file_bytes = 32 << 10;
    s.dynamic_levels = false;
    s.event_log = false;
    s.table_dirs([("fast", 128 << 10), ("large", 0)])
}

fn builder(policy: Policy, fs: &SimFs, order: Order) -> Builder {
    let dice = Dice::new(Stream::seeded(3, "order"));
    let rt: Arc<dyn Rt> = Arc::new(Pump::new(dice, 3, order));
    let cold = settings(policy).table_dirs([("db/cold", 0)]);
    Builder::new(settings(policy))
        .env(Env { fs: Arc::new(fs.clone()), rt })
        .column_family("cold", ColumnFamilyOptions::new().settings(cold))
        .create_missing_column_families()
}

/// Each table is in one directory, and none is left over.
fn tables_are_in_order(db: &Db, fs: &SimFs, what: &str) {
    let mut live = db.live_files();
    if let Ok(cold) = db.column_family("cold") {
        live.extend(cold.live_files());
    }
    let mut live: Vec<String> =
        live.iter().map(|f| format!("{}/{}", f.directory.display(), f.name)).collect();
    live.sort();
    let listed = DIRS.iter().flat_map(|dir| {
        let entries = fs.list(dir.as_ref()).unwrap_or_default();
        entries.into_iter().map(move |entry| format!("{dir}/{}", entry.name))
    });
    let mut there: Vec<String> = listed.filter(|name| name.ends_with(".sst")).collect();
    there.sort();
    assert_eq!(there, live, "{what}");
}

fn crashed_everywhere(policy: Policy, order: Order) {
    let fs = SimFs::new(Disk::default());
    let db = builder(policy, &fs, order).open("db").unwrap();
    let cold = db.column_family("cold").unwrap();
    // Positions of the disk's log, with the writes begun and durable from there on.
    let mut known = vec![(0, 0, 0)];
    let mut durable = 0;
    for n in 0..WRITES {
        known.push((fs.position(), n + 1, durable));
        let level = if n % 50 == 49 { Durability::Sync } else { Durability::Buffered };
        let mut batch = lithify::WriteBatch::new();
        batch.put(n.to_be_bytes(), value(n)).unwrap();
        batch.put_cf(&cold, n.to_be_bytes(), value(n)).unwrap();
        db.write_opt(&batch, &WriteOptions::at(level)).unwrap();
        if level == Durability::Sync {
            durable = n + 1;
            known.push((fs.position(), n + 1, durable));
        }
    }
    assert!(db.wait_idle(Some(Duration::from_secs(60))).unwrap());
    let met = |dir: &str| db.live_files().iter().any(|file| file.directory == *dir);
    assert!(met("large") && !met("db"), "{:?}", db.live_files());
    let end = fs.position();
    drop((cold, db));
    let log = fs.take_log();
    let dice = Dice::new(Stream::seeded(5, "directories"));
    let mut disk = Disk::default();
    for at in 0..=log.len().min(end) {
        let &(_, begun, durable) = known.iter().rfind(|(position, ..)| *position <= at).unwrap();
        let kinds =
            [Kind::Synced, Kind::Everything, Kind::FilePrefix, Kind::Names, Kind::Undeleted];
        // Making the database is looked at closely, the rest of its life at every third step.
        let looks = if at < 200 || at % 3 == 0 { 1 } else { 0 };
        for kind in kinds.into_iter().cycle().skip(at).take(looks) {
            let what = format!("{policy:?}, position {at}, {}", kind.name());
            let fs = SimFs::new(image(&disk, kind, &dice));
            // As often as it is opened.
            let mut last = None;
            for _ in 0..2 {
                let db = builder(policy, &fs, Order::Calm).open("db");
                let db = db.unwrap_or_else(|e| panic!("{what}: {e}"));
                let there = written(&db, &what);
                assert_eq!(written(&db.column_family("cold").unwrap(), &what), there, "{what}");
                assert!(durable <= there && there <= begun, "{what}: {there} writes");
                assert!(last.is_none_or(|last| last == there), "{what}");
                tables_are_in_order(&db, &fs, &what);
                last = Some(there);
                db.close().unwrap();
            }
        }
        log.get(at).into_iter().for_each(|entry| disk.apply(entry));
    }
}

#[test]
fn a_power_loss_leaves_all_directories_in_order() {
    crashed_everywhere(Policy::Leveled, Order::Chosen);
}

#[test]
fn a_power_loss_under_the_default_policy_leaves_all_directories_in_order() {
    crashed_everywhere(Policy::default(), Order::Latest);
}
