//! Transactions over several column families: they show and commit to each family what they wrote to
//! it, in its own order and with its own operator; keys of different families never meet.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::common::{Content, scan, tiny, within};
use lithify::merge::Add;
use lithify::{
    Builder, ColumnFamily, ColumnFamilyOptions, Db, DbIter, ErrorKind, ReverseBytewise,
    Transaction, TransactionOptions,
};
use lithify_env::{Env, RtOptions};

/// `default` and `plain` are in byte order, `back` in the reverse of it, `sums` holds numbers.
const NAMES: [&str; 4] = ["default", "plain", "back", "sums"];

fn own(name: &str) -> ColumnFamilyOptions {
    let options = ColumnFamilyOptions::new().settings(tiny());
    match name {
        "back" => options.comparator(Arc::new(ReverseBytewise)),
        "sums" => options.merge_operator(Arc::new(Add)),
        _ => options,
    }
}

fn open(env: &Env) -> Db {
    let builder = Builder::new(tiny()).env(env.clone());
    let named = |b: Builder, name: &&str| b.column_family(name, own(name));
    NAMES[1..].iter().fold(builder, named).open("/db").unwrap()
}

fn world() -> Env {
    Env::in_memory(RtOptions::default())
}

/// A database with all four families.
fn made() -> (Env, Db) {
    let env = world();
    let db = open(&env);
    NAMES[1..].iter().for_each(|name| drop(db.create_column_family(name, own(name)).unwrap()));
    (env, db)
}

fn families(db: &Db) -> Vec<ColumnFamily> {
    NAMES.iter().map(|name| db.column_family(name).unwrap()).collect()
}

fn kind<T: std::fmt::Debug>(result: lithify::Result<T>) -> ErrorKind {
    result.unwrap_err().kind()
}

fn options(optimistic: bool) -> TransactionOptions {
    match optimistic {
        true => TransactionOptions::optimistic(),
        false => TransactionOptions::pessimistic().with_lock_timeout(Duration::ZERO),
    }
}

/// Each family's keys and values.
type Model = Vec<Content>;

/// Both ways, in the order of the family.
fn walk(mut iter: DbIter, content: &Content, reverse: bool) {
    let mut all: Vec<_> = content.iter().collect();
    if reverse {
        all.reverse();
    }
    iter.seek_to_first();
    for (key, value) in &all {
        assert_eq!((iter.key(), iter.value()), (&key[..], &value[..]));
        iter.next();
    }
    assert!(!iter.valid());
    iter.seek_to_last();
    for (key, value) in all.iter().rev() {
        assert_eq!((iter.key(), iter.value()), (&key[..], &value[..]));
        iter.prev();
    }
    assert!(!iter.valid());
    iter.status().unwrap();
}

/// One write of a transaction to family `at`, by the family's name or, if that is whose handle began
/// the transaction, sometimes without.
fn write(
    txn: &mut Transaction,
    at: usize,
    bare: bool,
    of: &ColumnFamily,
    model: &mut Model,
    n: u8,
) {
    let key = vec![b'k', n % 20];
    let value = u64::from(n).to_le_bytes();
    let content = &mut model[at];
    let sum = |content: &Content| {
        let old = content.get(&key).map_or(0, |v| u64::from_le_bytes(v[..].try_into().unwrap()));
        (old + u64::from(n)).to_le_bytes().to_vec()
    };
    match (n % 5, bare) {
        (0, true) => txn.delete(&key).unwrap(),
        (0, false) => txn.delete_cf(of, &key).unwrap(),
        (1, true) if NAMES[at] == "sums" => txn.merge(&key, value).unwrap(),
        (1, false) if NAMES[at] == "sums" => txn.merge_cf(of, &key, value).unwrap(),
        (_, true) => txn.put(&key, value).unwrap(),
        (_, false) => txn.put_cf(of, &key, value).unwrap(),
    }
    match n % 5 {
        0 => drop(content.remove(&key)),
        1 if NAMES[at] == "sums" => drop(content.insert(key.clone(), sum(content))),
        _ => drop(content.insert(key, value.to_vec())),
    }
}

fn shows(txn: &Transaction, all: &[ColumnFamily], model: &Model) {
    for ((name, family), content) in NAMES.iter().zip(all).zip(model) {
        walk(txn.iter_cf(family).unwrap(), content, *name == "back");
        for n in 0..20 {
            let key = [b'k', n];
            let read = txn.get_cf(family, key).unwrap();
            assert_eq!(read.as_deref(), content.get(&key[..]).map(Vec::as_slice), "{name}");
        }
    }
}

/// Random transactions of both kinds, begun by the handle of any family, with savepoints, rollbacks and
/// reopens between them; what is committed is in all families.
#[test]
fn a_transaction_over_families_is_what_several_maps_say() {
    for seed in 0..8 {
        let mut rng = fastrand::Rng::with_seed(seed);
        let (env, mut db) = made();
        let mut model: Model = vec![Content::new(); NAMES.len()];
        let mut commits = 0;
        for _ in 0..40 {
            let all = families(&db);
            let home = rng.usize(..NAMES.len());
            let mut now = model.clone();
            let mut saved: Vec<Model> = Vec::new();
            let kind_of = options(rng.bool());
            let mut txn = all[home].begin_transaction(match rng.bool() {
                true => kind_of.with_snapshot(),
                false => kind_of,
            });
            for _ in 0..rng.usize(1..30) {
                match rng.u8(0..20) {
                    0 => {
                        txn.set_savepoint();
                        saved.push(now.clone());
                    }
                    1 if !saved.is_empty() => {
                        txn.rollback_to_savepoint().unwrap();
                        now = saved.pop().unwrap();
                    }
                    2 if !saved.is_empty() => {
                        txn.pop_savepoint().unwrap();
                        saved.pop();
                    }
                    3 => shows(&txn, &all, &now),
                    4 => {
                        let at = rng.usize(..NAMES.len());
                        let key = [b'k', rng.u8(..20)];
                        let read = txn.get_for_update_cf(&all[at], key).unwrap();
                        assert_eq!(read.as_deref(), now[at].get(&key[..]).map(Vec::as_slice));
                    }
                    5 => all[rng.usize(..NAMES.len())].flush().unwrap(),
                    _ => {
                        let at = rng.usize(..NAMES.len());
                        let bare = at == home && rng.bool();
                        write(&mut txn, at, bare, &all[at], &mut now, rng.u8(..));
                    }
                }
            }
            shows(&txn, &all, &now);
            match rng.u8(0..4) {
                0 => drop(txn),
                1 => {
                    txn.rollback().unwrap();
                    shows(&txn, &all, &model);
                    txn.commit().unwrap();
                }
                _ => {
                    txn.commit().unwrap();
                    model = now;
                    commits += 1;
                }
            }
            for (family, content) in all.iter().zip(&model) {
                assert_eq!(scan(family).unwrap(), *content, "seed {seed}, {}", family.name());
            }
            drop(all);
            if rng.u8(0..8) == 0 {
                db.close().unwrap();
                db = open(&env);
            }
        }
        assert!(commits > 10, "{commits} commits");
        db.close().unwrap();
    }
}

/// The same key in two families is two keys: to locks, and to the check of an optimistic commit, which
/// finds a write to its own family wherever that went.
#[test]
fn keys_of_different_families_do_not_meet() {
    for optimistic in [false, true] {
        for settled in [false, true] {
            let (_env, db) = made();
            let all = families(&db);
            let (plain, back) = (&all[1], &all[2]);
            let change = |family: &ColumnFamily| {
                let mut other = db.begin_transaction(options(optimistic));
                let put = other.put_cf(family, b"key", b"other").and_then(|()| other.commit());
                if settled {
                    family.compact_range(None, None).unwrap();
                }
                put
            };
            let mut txn = db.begin_transaction(options(optimistic));
            txn.put_cf(plain, b"key", b"mine").unwrap();
            txn.put(b"key", b"mine").unwrap();
            change(back).unwrap();
            txn.commit().unwrap();
            assert_eq!(plain.get(b"key").unwrap().unwrap(), b"mine");
            assert_eq!(back.get(b"key").unwrap().unwrap(), b"other");

            let mut txn = db.begin_transaction(options(optimistic));
            txn.get_for_update_cf(plain, b"key").unwrap();
            txn.put(b"key", b"more").unwrap();
            match (optimistic, change(plain)) {
                (true, Ok(())) => assert_eq!(kind(txn.commit()), ErrorKind::Busy),
                (false, Err(e)) => assert_eq!(e.kind(), ErrorKind::TimedOut),
                (_, other) => panic!("{other:?}"),
            }
            // A snapshot is of all families.
            let mut late = db.begin_transaction(options(optimistic).with_snapshot());
            back.put(b"key", b"newer").unwrap();
            assert_eq!(late.get_cf(back, b"key").unwrap().unwrap(), b"other");
            let end = late.put_cf(back, b"key", b"late").and_then(|()| late.commit());
            assert_eq!(kind(end), ErrorKind::Busy);
            assert_eq!(back.get(b"key").unwrap().unwrap(), b"newer");
        }
    }
}

/// Two transactions that hold what the other one wants, each in another family.
#[test]
fn a_deadlock_over_families_is_found() {
    let (_env, db) = made();
    let refused: usize = within(Duration::from_secs(30), "a deadlock", move || {
        let all = families(&db);
        let ready = std::sync::Barrier::new(2);
        let life = |first: &ColumnFamily, then: &ColumnFamily| {
            let patient = TransactionOptions::pessimistic().with_lock_timeout(Duration::MAX);
            let mut txn = db.begin_transaction(patient);
            txn.put_cf(first, b"key", b"1").unwrap();
            ready.wait();
            match txn.put_cf(then, b"key", b"2") {
                Ok(()) => txn.commit().map(|()| 0).unwrap(),
                Err(e) => {
                    assert_eq!(e.kind(), ErrorKind::Deadlock, "{e}");
                    1
                }
            }
        };
        std::thread::scope(|s| {
            let other = s.spawn(|| life(&all[1], &all[2]));
            life(&all[2], &all[1]) + other.join().unwrap()
        })
    });
    assert_eq!(refused, 1);
}

/// What a transaction relies on or writes to may be dropped, and handles may be another database's.
#[test]
fn a_family_that_is_gone_or_foreign_is_told() {
    for optimistic in [false, true] {
        let (_env, db) = made();
        let all = families(&db);
        let (_other_env, other) = made();
        let foreign = families(&other).remove(1);
        let mut txn = db.begin_transaction(options(optimistic));
        assert_eq!(kind(txn.put_cf(&foreign, b"key", b"")), ErrorKind::InvalidArgument);
        assert_eq!(kind(txn.get_cf(&foreign, b"key")), ErrorKind::InvalidArgument);
        assert_eq!(kind(txn.iter_cf(&foreign).map(drop)), ErrorKind::InvalidArgument);
        txn.put(b"key", b"kept").unwrap();
        txn.put_cf(&all[1], b"key", b"lost").unwrap();
        db.drop_column_family("plain").unwrap();
        assert_eq!(kind(txn.get_cf(&all[1], b"other")), ErrorKind::NotFound);
        assert_eq!(kind(txn.commit()), ErrorKind::NotFound);
        assert!(db.get(b"key").unwrap().is_none(), "all of it or nothing");
        // Its locks are free.
        let mut next = db.begin_transaction(options(optimistic));
        next.put(b"key", b"next").unwrap();
        next.commit().unwrap();
        assert_eq!(scan(&db).unwrap(), BTreeMap::from([(b"key".to_vec(), b"next".to_vec())]));
        db.close().unwrap();
        other.close().unwrap();
    }
}
