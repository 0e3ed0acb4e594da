//! One block cache of several databases.

use lithify::{Builder, Db, SharedCache};
use lithify_env::{Env, RtOptions};

use crate::common::tiny;

const KEYS: u32 = 4000;

fn open(env: &Env, cache: &SharedCache, name: &str) -> Db {
    Builder::new(tiny()).env(env.clone()).shared_cache(cache).open(name).unwrap()
}

/// Tables that are equal to the byte but for their values, so that blocks of all lie at the same places of files of the
/// same numbers.
fn fill(db: &Db, value: u8) {
    for key in 0..KEYS {
        db.put(key.to_be_bytes(), [value; 200]).unwrap();
    }
    db.flush().unwrap();
    db.compact_range(None, None).unwrap();
}

fn check(db: &Db, value: u8) {
    for key in 0..KEYS {
        let found = db.get(key.to_be_bytes()).unwrap();
        assert_eq!(found.as_deref(), Some(&[value; 200][..]), "{key}");
    }
}

#[test]
fn databases_share_one_bound_and_never_blocks() {
    let env = Env::in_memory(RtOptions { upkeep_threads: 3, ..RtOptions::default() });
    let cache = SharedCache::new(512 << 10);
    let names = ["a", "b", "c"];
    let all = names.map(|name| open(&env, &cache, name));
    for (value, db) in (1..).zip(&all) {
        fill(db, value);
    }
    for _ in 0..2 {
        for (value, db) in (1..).zip(&all) {
            check(db, value);
            assert!(cache.usage() <= 512 << 10, "{}", cache.usage());
        }
    }
    assert!(cache.usage() > 256 << 10, "it is used: {cache:?}");
    for db in &all {
        assert_eq!(db.stats().cache_bytes, cache.usage(), "each tells of the one that there is");
    }

    cache.set_capacity(128 << 10);
    assert!(cache.usage() <= 128 << 10 && cache.capacity() == 128 << 10, "at once: {cache:?}");
    cache.set_capacity(8 << 20);
    assert!(all.iter().all(|db| db.wait_idle(None).unwrap()));
    for (value, db) in (1..).zip(&all) {
        check(db, value);
    }
    // 2.4 MB, where the memory of each has room for less.
    assert!(cache.usage() > 2 << 20, "all of it fits: {cache:?}");
    assert!(cache.memory() > cache.usage(), "and takes memory itself");

    // Another database in the place of one whose blocks are still there.
    let [a, b, c] = all;
    a.close().unwrap();
    Builder::new(tiny()).env(env.clone()).destroy("a").unwrap();
    let a = open(&env, &cache, "a");
    fill(&a, 9);
    check(&a, 9);
    check(&b, 2);
    drop(cache);
    check(&c, 3);
    for db in [a, b, c] {
        db.close().unwrap();
    }
}
