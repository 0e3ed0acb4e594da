//! Transactions that are prepared, through power losses at every step of a life: what was acknowledged is there, what
//! was under way is there whole or not at all, and nothing is committed twice.
//!
//! The life prepares, commits and rolls back between flushes, over two families, and opens the database anew in the
//! middle, which writes what is prepared into a log of its own.
#![allow(clippy::disallowed_methods, reason = "a test sets up its world by itself")]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use lithify::merge::Add;
use lithify::{
    Builder, ColumnFamilyOptions, Db, Durability, Settings, Transaction, TransactionOptions,
    WriteOptions,
};
use lithify_env::{Env, OsRt, Rt, RtOptions};
use lithify_sim::choices::{Dice, Stream};
use lithify_sim::crash::{Kind, image};
use lithify_sim::disk::{Disk, Entry};
use lithify_sim::simfs::SimFs;

/// Sums by key, and the names of what is prepared.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct State {
    sums: BTreeMap<u8, u64>,
    prepared: BTreeSet<u8>,
}

/// What a life does.
#[derive(Clone, Copy, Debug)]
enum Deed {
    /// Adds 1 to the sum of a key.
    Add(u8),
    /// Prepares a transaction that adds to two sums of its own, in two families.
    Prepare(u8),
    Commit(u8),
    Rollback(u8),
    Flush,
    Reopen,
    /// Makes a column family: an edit of the manifest that flushes nothing.
    Family(u8),
}
use Deed::{Add as Plus, Commit, Family, Flush, Prepare, Reopen, Rollback};

const LIFE: [Deed; 33] = [
    Plus(0),
    Prepare(10),
    Plus(0),
    Flush,
    Prepare(20),
    Commit(10),
    Family(0),
    Plus(1),
    Prepare(30),
    Flush,
    Rollback(20),
    Plus(0),
    Reopen,
    Plus(2),
    Prepare(10),
    Flush,
    Commit(30),
    Family(1),
    Plus(0),
    Flush,
    Flush,
    Prepare(20),
    Reopen,
    Commit(20),
    Plus(1),
    Rollback(10),
    Family(2),
    Prepare(40),
    Flush,
    Commit(40),
    Plus(2),
    Prepare(50),
    Plus(0),
];

fn settings() -> Settings {
    let mut s = Settings::default();
    s.memtable_bytes = 64 << 10;
    s.memory_budget = 4 << 20;
    s.compaction_threads = 1;
    s.event_log = false;
    s.durability = Durability::Sync;
    s
}

fn world(disk: Disk, rt: &Arc<dyn Rt>) -> (SimFs, Env) {
    let fs = SimFs::new(disk);
    (fs.clone(), Env { fs: Arc::new(fs), rt: rt.clone() })
}

/// With one family, or with a second one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Families {
    One,
    Two,
}

fn open(env: &Env, families: Families) -> Db {
    let with_add = |builder: Builder| builder.merge_operator(Arc::new(Add));
    let family = ColumnFamilyOptions::new().merge_operator(Arc::new(Add));
    let builder = with_add(Builder::new(settings())).env(env.clone());
    match families {
        Families::One => builder.open("db").unwrap(),
        Families::Two => builder.column_family("cf", family).open("db").unwrap(),
    }
}

fn one() -> [u8; 8] {
    1u64.to_le_bytes()
}

fn begin(db: &Db, durability: Durability) -> Transaction {
    let write = WriteOptions { durability: Some(durability), ..WriteOptions::default() };
    let options = TransactionOptions::pessimistic().with_write(write);
    db.begin_transaction(options.with_lock_timeout(Duration::ZERO))
}

fn take(db: &Db, name: u8, durability: Durability) -> Transaction {
    let all = db.prepared_transactions().unwrap();
    let found = all.into_iter().find(|txn| txn.name() == Some(&[name][..]));
    let mut found = found.expect("it is prepared");
    found.set_write_options(WriteOptions {
        durability: Some(durability),
        ..WriteOptions::default()
    });
    found
}

impl State {
    fn after(&self, deed: Deed) -> State {
        let mut next = self.clone();
        match deed {
            Plus(key) => *next.sums.entry(key).or_default() += 1,
            Prepare(name) => drop(next.prepared.insert(name)),
            Rollback(name) => drop(next.prepared.remove(&name)),
            Commit(name) => {
                next.prepared.remove(&name);
                *next.sums.entry(name).or_default() += 1;
                *next.sums.entry(name + 1).or_default() += 1;
            }
            Flush | Reopen | Family(_) => {}
        }
        next
    }

    /// What the database has.
    fn of(db: &Db) -> State {
        let cf = db.column_family("cf").ok();
        let number = |value: &[u8]| u64::from_le_bytes(value.try_into().unwrap());
        let mut state = State::default();
        for entry in db.range(..).chain(cf.iter().flat_map(|cf| cf.range(..))) {
            let (key, value) = entry.unwrap();
            state.sums.insert(key[0], number(&value));
        }
        let all = db.prepared_transactions().unwrap();
        state.prepared = all.iter().map(|txn| txn.name().unwrap()[0]).collect();
        state
    }
}

/// How far a deed is brought before it is acknowledged.
type Care = fn(Deed) -> Durability;

fn act(mut db: Db, env: &Env, deed: Deed, care: Care, families: Families) -> Db {
    let durability = care(deed);
    let write = WriteOptions { durability: Some(durability), ..WriteOptions::default() };
    match deed {
        Plus(key) => db.merge_opt([key], one(), &write).unwrap(),
        Prepare(name) => {
            let mut txn = begin(&db, durability);
            txn.merge([name], one()).unwrap();
            match db.column_family("cf") {
                Ok(cf) => txn.merge_cf(&cf, [name + 1], one()).unwrap(),
                Err(_) => txn.merge([name + 1], one()).unwrap(),
            }
            txn.prepare([name]).unwrap();
        }
        Commit(name) => take(&db, name, durability).commit().unwrap(),
        Rollback(name) => take(&db, name, durability).rollback().unwrap(),
        Flush => db.flush().unwrap(),
        Family(_) if families == Families::One => {}
        Family(n) => {
            drop(db.create_column_family(&format!("f{n}"), ColumnFamilyOptions::new()).unwrap());
        }
        Reopen => {
            db.close().unwrap();
            db = open(env, families);
        }
    }
    db
}

/// Lives; the disk before, what was done to it, the states that it went through, and where each was reached.
fn live(
    care: Care,
    families: Families,
    rt: &Arc<dyn Rt>,
) -> (Disk, Vec<Entry>, Vec<State>, Vec<usize>) {
    let (fs, env) = world(Disk::default(), rt);
    let mut settled = open_new(&env, families);
    let before = fs.disk();
    let from = fs.position();
    let (mut states, mut reached) = (vec![State::default()], vec![0]);
    for deed in LIFE {
        settled = act(settled, &env, deed, care, families);
        states.push(states[states.len() - 1].after(deed));
        reached.push(fs.position() - from);
        assert_eq!(State::of(&settled), states[states.len() - 1], "after {deed:?}");
    }
    let log = fs.log_from(from);
    fs.kill();
    drop(settled);
    (before, log, states, reached)
}

fn open_new(env: &Env, families: Families) -> Db {
    let db = Builder::new(settings()).merge_operator(Arc::new(Add)).env(env.clone());
    let db = db.open("db").unwrap();
    if families == Families::Two {
        let family = ColumnFamilyOptions::new().merge_operator(Arc::new(Add));
        drop(db.create_column_family("cf", family).unwrap());
    }
    db.close().unwrap();
    open(env, families)
}

/// All but those that bring back what was removed, or leave garbage in place of old sectors.
const KINDS: &[Kind] = Kind::ALL.split_at(8).0;

/// Opens what a crash left; it is in one of `states`, and what is prepared there can be ended, once.
fn check(crashed: Disk, rt: &Arc<dyn Rt>, states: &[State], families: Families, what: &str) {
    let (_, env) = world(crashed, rt);
    let db = open(&env, families);
    let found = State::of(&db);
    assert!(states.contains(&found), "{what}: {found:?} is none of {states:#?}");
    let mut expected = found.clone();
    for name in found.prepared {
        // Its keys are locked.
        assert!(begin(&db, Durability::Os).put([name], one()).is_err(), "{what}: {name}");
        let deed = if name % 20 == 0 { Rollback(name) } else { Commit(name) };
        expected = expected.after(deed);
        match deed {
            Commit(_) => take(&db, name, Durability::Sync).commit().unwrap(),
            _ => take(&db, name, Durability::Sync).rollback().unwrap(),
        }
    }
    assert_eq!(State::of(&db), expected, "{what}, once all is over");
    db.close().unwrap();
    let db = open(&env, families);
    assert_eq!(State::of(&db), expected, "{what}, opened again");
    db.close().unwrap();
}

/// Crashes a life before and after each entry of its log, in four ways each. What was acknowledged up to the last
/// deed that was synced is there, and nothing that was not begun.
fn sweep(name: &str, care: Care) {
    sweep_over(name, care, Families::One);
    sweep_over(name, care, Families::Two);
}

fn sweep_over(name: &str, care: Care, families: Families) {
    let rt: Arc<dyn Rt> = Arc::new(OsRt::new(RtOptions::default()));
    let (mut disk, log, states, reached) = live(care, families, &rt);
    let dice = Dice::new(Stream::seeded(5, "prepared"));
    for at in 0..=log.len() {
        let acknowledged = reached.iter().rposition(|reached| *reached <= at).unwrap();
        // A close syncs, too.
        let is_safe = |deed: &Deed| care(*deed) == Durability::Sync || matches!(deed, Reopen);
        let safe = LIFE[..acknowledged].iter().rposition(is_safe).map_or(0, |last| last + 1);
        let states = &states[safe..states.len().min(acknowledged + 2)];
        for kind in KINDS.iter().copied().skip(at % 2).step_by(2) {
            let count = if families == Families::One { "one family" } else { "two families" };
            let what = format!("{name}, {count}: step {at} of {}, {}", log.len(), kind.name());
            check(image(&disk, kind, &dice), &rt, states, families, &what);
        }
        log.get(at).into_iter().for_each(|entry| disk.apply(entry));
    }
}

/// What was acknowledged stays.
#[test]
fn what_is_synced_survives_a_power_loss_at_any_step() {
    sweep("all synced", |_| Durability::Sync);
}

/// What was not synced may be lost, from its end on: a transaction is never committed without what was before it.
#[test]
fn what_is_not_synced_is_lost_from_its_end_on() {
    sweep("none synced", |_| Durability::Os);
}

/// The end of a transaction that is prepared for good may be lost, and then it is prepared.
#[test]
fn a_lost_end_leaves_it_prepared() {
    let care: Care = |deed| match deed {
        Prepare(_) => Durability::Sync,
        _ => Durability::Os,
    };
    sweep("what is prepared is synced", care);
}
