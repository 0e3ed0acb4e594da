//! Orders under which different bytes are one key, as RocksDB's comparators may have them.
#![allow(clippy::disallowed_methods, reason = "a thread of the test's own")]

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use lithify::merge::Append;
use lithify::{
    Builder, Comparator, Db, ErrorKind, ReadOptions, Snapshot, TransactionOptions, WriteBatch,
};
use lithify_env::{Env, RtOptions};

use crate::common::tiny;

/// Upper and lower case are one.
struct AnyCase;

impl Comparator for AnyCase {
    fn name(&self) -> &'static str {
        "any case"
    }
    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        a.to_ascii_lowercase().cmp(&b.to_ascii_lowercase())
    }
}

fn open(env: &Env) -> Db {
    let mut s = tiny();
    s.bloom_bits = 20;
    Builder::new(s)
        .comparator(Arc::new(AnyCase))
        .merge_operator(Arc::new(Append::default()))
        .env(env.clone())
        .open("db")
        .unwrap()
}

/// Key `n` with the letters that `bits` says in upper case.
fn spelled(n: u32, bits: u32) -> Vec<u8> {
    let plain = format!("key-{n:03}-longer");
    let flip =
        |(i, c): (usize, u8)| if bits >> (i % 32) & 1 == 1 { c.to_ascii_uppercase() } else { c };
    plain.bytes().enumerate().map(flip).collect()
}

/// By number: how the newest write spelled the key, and its value.
type Content = BTreeMap<u32, (Vec<u8>, Vec<u8>)>;

fn check(db: &Db, at: Option<&Snapshot>, expected: &Content, rng: &mut fastrand::Rng) {
    let options = at.map_or_else(ReadOptions::default, ReadOptions::at);
    let pairs: Vec<(Vec<u8>, Vec<u8>)> = expected.values().cloned().collect();
    let mut iter = db.iter_opt(&options).unwrap();
    let (mut forward, mut back) = (Vec::new(), Vec::new());
    iter.seek_to_first();
    while iter.valid() {
        forward.push((iter.key().to_vec(), iter.value().to_vec()));
        iter.next();
    }
    iter.seek_to_last();
    while iter.valid() {
        back.push((iter.key().to_vec(), iter.value().to_vec()));
        iter.prev();
    }
    iter.status().unwrap();
    back.reverse();
    let shown = |all: &[(Vec<u8>, Vec<u8>)]| -> Vec<String> {
        all.iter().map(|(k, v)| format!("{}={}", k.escape_ascii(), v.escape_ascii())).collect()
    };
    assert_eq!(shown(&forward), shown(&pairs));
    assert_eq!(shown(&back), shown(&pairs), "backward");
    let keys: Vec<Vec<u8>> = (0..KEYS).map(|n| spelled(n, rng.u32(..))).collect();
    let many = db.multi_get_opt(&keys, &options).unwrap();
    for (n, key) in (0..).zip(&keys) {
        let value = expected.get(&n).map(|(_, value)| &value[..]);
        assert_eq!(db.get_opt(key, &options).unwrap().as_deref(), value, "{}", key.escape_ascii());
        assert_eq!(many[n as usize].as_deref(), value, "{}", key.escape_ascii());
        iter.seek(key);
        let next = expected.range(n..).next().map(|(_, (key, _))| &key[..]);
        assert_eq!(iter.valid().then(|| iter.key()), next);
    }
}

const KEYS: u32 = 60;

/// A life of writes in random spelling, held against a map of numbers.
#[test]
fn keys_that_are_spelled_differently_are_one_key() {
    for seed in 0..12 {
        let mut rng = fastrand::Rng::with_seed(seed);
        let env = Env::in_memory(RtOptions::default());
        let mut db = open(&env);
        let mut now = Content::new();
        let mut held: Vec<(Snapshot, Content)> = Vec::new();
        for step in 0..1_500 {
            let (n, spelling) = (rng.u32(0..KEYS), rng.u32(..));
            let key = spelled(n, spelling);
            let value = format!("{step}").repeat(rng.usize(1..20)).into_bytes();
            match rng.u32(0..100) {
                0..50 => {
                    db.put(&key, &value).unwrap();
                    now.insert(n, (key, value));
                }
                50..65 => {
                    db.delete(&key).unwrap();
                    now.remove(&n);
                }
                65..85 => {
                    db.merge(&key, &value).unwrap();
                    let old = now.remove(&n).map(|(_, old)| old);
                    let merged =
                        old.map_or_else(|| value.clone(), |old| [&old[..], b",", &value].concat());
                    now.insert(n, (key, merged));
                }
                85..88 => {
                    let to = n + rng.u32(0..8);
                    let mut batch = WriteBatch::new();
                    batch.delete_range(&key, spelled(to, rng.u32(..))).unwrap();
                    db.write(&batch).unwrap();
                    now.retain(|m, _| !(n..to).contains(m));
                }
                88..94 => db.flush().unwrap(),
                94..96 => db.compact_range(None, None).unwrap(),
                96 if held.len() < 4 => held.push((db.snapshot(), now.clone())),
                97 if !held.is_empty() => drop(held.swap_remove(rng.usize(..held.len()))),
                98 if held.is_empty() => {
                    db.close().unwrap();
                    db = open(&env);
                }
                _ => {}
            }
            if step % 150 == 0 {
                check(&db, None, &now, &mut rng);
                held.iter().for_each(|(at, then)| check(&db, Some(at), then, &mut rng));
            }
        }
        db.compact_range(None, None).unwrap();
        check(&db, None, &now, &mut rng);
        db.close().unwrap();
        let found =
            Builder::new(tiny()).comparator(Arc::new(AnyCase)).env(env).verify("db", &mut |_| {});
        assert!(found.as_ref().unwrap().is_clean(), "{found:?}");
    }
}

/// Filters are of bytes: with an order that calls different bytes equal they would hide keys.
#[test]
fn filters_hide_no_key_that_is_spelled_differently() {
    let env = Env::in_memory(RtOptions::default());
    let db = open(&env);
    (0..KEYS).for_each(|n| db.put(spelled(n, 0), "1").unwrap());
    db.flush().unwrap();
    let found = |db: &Db| (0..KEYS).filter(|n| db.get(spelled(*n, !0)).unwrap().is_some()).count();
    assert_eq!(found(&db), KEYS as usize);
    db.compact_range(None, None).unwrap();
    assert_eq!(found(&db), KEYS as usize);
    db.close().unwrap();
}

/// A single deletion meets its value however it is spelled.
#[test]
fn a_single_deletion_meets_its_value_in_any_spelling() {
    let env = Env::in_memory(RtOptions::default());
    let db = open(&env);
    for round in 0..3 {
        (0..KEYS).for_each(|n| db.put(spelled(n, 0), "1").unwrap());
        if round > 0 {
            db.flush().unwrap();
        }
        (0..KEYS).for_each(|n| db.single_delete(spelled(n, !0)).unwrap());
        if round > 1 {
            db.flush().unwrap();
        }
        db.compact_range(None, None).unwrap();
        let mut iter = db.iter().unwrap();
        iter.seek_to_first();
        assert!(!iter.valid());
        assert_eq!(db.stats().levels.iter().map(|l| l.files).sum::<usize>(), 0, "round {round}");
    }
    db.close().unwrap();
}

/// Locks and the look for conflicts know keys by the order, too.
#[test]
fn transactions_meet_on_keys_that_are_spelled_differently() {
    let env = Env::in_memory(RtOptions::default());
    let db = open(&env);
    let options = || {
        let mut options = TransactionOptions::pessimistic();
        options.lock_timeout = Duration::from_millis(20);
        options
    };
    let (mut one, mut two) = (db.begin_transaction(options()), db.begin_transaction(options()));
    one.put("key", "one").unwrap();
    assert_eq!(two.put("KEY", "two").unwrap_err().kind(), ErrorKind::TimedOut);
    one.put("Key", "one again").unwrap();
    assert_eq!(one.get("kEY").unwrap().unwrap(), "one again");
    one.commit().unwrap();
    two.put("KEY", "two").unwrap();
    two.commit().unwrap();
    let mut late = db.begin_transaction(TransactionOptions::optimistic());
    late.get_for_update("key").unwrap();
    db.put("kEy", "between").unwrap();
    late.put("other", "1").unwrap();
    assert_eq!(late.commit().unwrap_err().kind(), ErrorKind::Busy);
    db.close().unwrap();
}
