//! One bound for the memtables of several databases.
#![allow(
    clippy::disallowed_methods,
    reason = "the tests wait for background work, and write beside it"
)]

use lithify::{Builder, Db, ErrorKind, Settings, SharedCache, SharedMemtables, WriteOptions};
use lithify_env::{Env, RtOptions};

use crate::common::clock::{LONGEST, until};
use crate::common::tiny;

const LIMIT: u64 = 512 << 10;

fn env() -> Env {
    Env::in_memory(RtOptions { upkeep_threads: 4, ..RtOptions::default() })
}

/// A database that of itself would have 3 MiB of memtables.
fn open(env: &Env, memtables: &SharedMemtables, name: &str) -> Db {
    let mut s: Settings = tiny();
    s.memtable_bytes = 1 << 20;
    s.memory_budget = 16 << 20;
    Builder::new(s).env(env.clone()).shared_memtables(memtables).open(name).unwrap()
}

fn put(db: &Db, key: u32, value: u8) {
    db.put(key.to_be_bytes(), [value; 1000]).unwrap();
}

fn flushes(db: &Db) -> u64 {
    db.stats().counts.flushes
}

/// Bytes in memtables that are not flushed.
fn held(db: &Db) -> u64 {
    db.stats().memtable_bytes
}

#[test]
fn databases_stay_within_one_bound() {
    let (env, memtables) = (env(), SharedMemtables::new(LIMIT, true));
    let all = ["a", "b", "c"].map(|name| open(&env, &memtables, name));
    for key in 0..2000 {
        for (value, db) in (1..).zip(&all) {
            put(db, key, value);
            // A write finds room and takes one more piece.
            assert!(memtables.usage() <= LIMIT + (64 << 10), "{memtables:?}");
        }
    }
    assert!(all.iter().all(|db| flushes(db) > 2), "each had the largest at times");
    for (value, db) in (1..).zip(&all) {
        for key in 0..2000u32 {
            assert_eq!(db.get(key.to_be_bytes()).unwrap().as_deref(), Some(&[value; 1000][..]));
        }
    }
    // With more room they keep more.
    memtables.set_limit(8 << 20);
    let before: u64 = all.iter().map(flushes).sum();
    for key in 0..600 {
        all.iter().for_each(|db| put(db, key, 9));
    }
    assert!(memtables.usage() > 1 << 20, "{memtables:?}");
    assert!(all.iter().map(flushes).sum::<u64>() <= before + 3, "those that were under way");
    let [a, b, c] = all;
    a.close().unwrap();
    b.close().unwrap();
    assert!(memtables.usage() >= held(&c), "{memtables:?}");
    c.close().unwrap();
    assert_eq!(memtables.usage(), 0, "closed databases have none, also while handles are about");
}

#[test]
fn the_largest_is_flushed_also_without_a_writer() {
    let (env, memtables) = (env(), SharedMemtables::new(LIMIT, false));
    let [idle, busy] = ["idle", "busy"].map(|name| open(&env, &memtables, name));
    for key in 0..300 {
        put(&idle, key, 1);
    }
    assert!(held(&idle) > 300_000 && flushes(&idle) == 0);
    for key in 0..200 {
        put(&busy, key, 2);
    }
    until("the idle one is flushed", || flushes(&idle) == 1 && held(&idle) < 10_000);
    assert!(flushes(&busy) == 0 && held(&busy) > 200_000, "not the one that is written to");
    // Of a database with several families, the largest.
    let family = busy.create_column_family("small", Default::default()).unwrap();
    family.put("key", [7; 1000]).unwrap();
    for key in 200..500 {
        put(&busy, key, 2);
    }
    until("the busy one is flushed", || flushes(&busy) == 1);
    assert!(family.stats().memtable_bytes > 1000, "its small family is not");
}

#[test]
fn what_only_iterators_hold_stops_no_writer() {
    let (env, memtables) = (env(), SharedMemtables::new(LIMIT, true));
    let db = open(&env, &memtables, "held");
    let mut walks = Vec::new();
    for key in 0..1500 {
        put(&db, key, 1);
        if key % 300 == 299 {
            let mut walk = db.iter().unwrap();
            walk.seek_to_first();
            walks.push(walk);
        }
    }
    assert!(memtables.usage() > LIMIT, "iterators hold more than there is: {memtables:?}");
    drop(walks);
    assert!(db.wait_idle(Some(LONGEST)).unwrap());
    until("it is given back", || memtables.usage() < LIMIT);
}

#[test]
fn writers_wait_for_a_flush_if_they_are_to() {
    for stalls in [false, true] {
        let (env, memtables) = (env(), SharedMemtables::new(LIMIT, stalls));
        let [full, other] = ["full", "other"].map(|name| open(&env, &memtables, name));
        let pause = full.pause_background().unwrap();
        let hasty = WriteOptions { no_wait: true, ..WriteOptions::default() };
        let fill =
            || (0..800u32).find_map(|key| full.put_opt(key.to_be_bytes(), [1; 1000], &hasty).err());
        // Of itself it has room for 3 MiB.
        match fill() {
            None => assert!(!stalls && memtables.usage() > LIMIT, "{memtables:?}"),
            Some(error) => {
                assert!(stalls && error.kind() == ErrorKind::Stalled, "{error}");
                assert!(memtables.usage() <= LIMIT + (64 << 10), "{memtables:?}");
                let error = other.put_opt("key", "value", &hasty).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Stalled, "it is one bound for all");
                std::thread::scope(|scope| {
                    let writes = scope.spawn(|| other.put("key", "value"));
                    std::thread::sleep(std::time::Duration::from_millis(60));
                    assert!(!writes.is_finished(), "it waits");
                    drop(pause);
                    writes.join().unwrap().unwrap();
                });
                assert!(other.get("key").unwrap().is_some());
                continue;
            }
        }
        drop(pause);
    }
}

#[test]
fn a_close_and_a_new_bound_end_the_wait() {
    for closes in [false, true] {
        let (env, memtables) = (env(), SharedMemtables::new(LIMIT, true));
        let [full, other] = ["full", "other"].map(|name| open(&env, &memtables, name));
        let pause = full.pause_background().unwrap();
        let hasty = WriteOptions { no_wait: true, ..WriteOptions::default() };
        while full.put_opt("key", [1; 1000], &hasty).is_ok() {}
        std::thread::scope(|scope| {
            let writes = scope.spawn(|| other.put("key", "value"));
            std::thread::sleep(std::time::Duration::from_millis(60));
            assert!(!writes.is_finished(), "it waits");
            match closes {
                true => other.clone().close().unwrap(),
                false => memtables.set_stalls(false),
            }
            let wrote = writes.join().unwrap();
            assert_eq!(wrote.err().map(|e| e.kind()), closes.then_some(ErrorKind::ShuttingDown));
        });
        drop(pause);
    }
}

#[test]
fn they_may_count_against_a_cache() {
    let env = env();
    let cache = SharedCache::new(1 << 20);
    let memtables = SharedMemtables::within_cache(LIMIT, false, &cache);
    let db = {
        let mut s = tiny();
        s.memtable_bytes = 1 << 20;
        s.memory_budget = 16 << 20;
        let builder = Builder::new(s).env(env.clone()).shared_memtables(&memtables);
        builder.shared_cache(&cache).open("db").unwrap()
    };
    for key in 0..3000 {
        put(&db, key, 1);
    }
    db.flush().unwrap();
    db.compact_range(None, None).unwrap();
    let read = |key: u32| assert!(db.get(key.to_be_bytes()).unwrap().is_some());
    until("it is full of blocks", || {
        (0..3000).for_each(read);
        cache.usage() > 900 << 10
    });
    for key in 0..380 {
        put(&db, key, 2);
    }
    let blocks = || db.stats().cache_bytes;
    assert!(memtables.usage() > 380 << 10);
    until("blocks make room", || blocks() + memtables.usage() <= 1 << 20);
    assert_eq!(cache.usage(), blocks() + memtables.usage());
    db.close().unwrap();
    assert_eq!(memtables.usage(), 0);
}
