//! While nothing is written, the block cache borrows what memtables and buffers do not use, and it gives it back.
#![allow(clippy::disallowed_methods, reason = "the database runs on real threads and by the clock")]

use std::time::{Duration, Instant};

use lithify::env::Env;
use lithify::{Builder, Settings};

const ENTRIES: u64 = 40_000;

fn key(n: u64) -> [u8; 8] {
    n.to_be_bytes()
}

fn soon(what: &str, is: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is() {
        assert!(begun.elapsed() < Duration::from_secs(60), "{what}: not within a minute");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn the_cache_borrows_while_nothing_is_written() {
    let settings = Settings::default().memory_budget(16 << 20).compaction_threads(1);
    let memtables = settings.memtable_bytes * u64::from(settings.memtable_count);
    let db = Builder::new(settings).env(Env::in_memory(Default::default())).open("db").unwrap();
    let fill = || (0..ENTRIES).for_each(|n| db.put(key(n), [n as u8; 200]).unwrap());
    let capacity = || db.int_property("rocksdb.block-cache-capacity").unwrap();
    let own = capacity();
    fill();
    db.compact_range(None, None).unwrap();
    assert!(capacity() <= own, "nothing is lent while there are jobs");

    let read = |entries: u64| {
        for n in 0..entries {
            assert_eq!(db.get(key(n)).unwrap().unwrap(), [n as u8; 200]);
        }
    };
    // A tenth of the entries does not fill it.
    read(ENTRIES / 10);
    std::thread::sleep(Duration::from_millis(1500));
    assert!(capacity() <= own, "{} where {own} are enough", capacity());
    soon("it borrows", || {
        read(ENTRIES);
        capacity() > own + memtables / 2
    });
    soon("all it reads is cached", || {
        let misses = db.stats().cache_misses;
        read(ENTRIES);
        db.stats().cache_misses == misses
    });
    let held = db.stats().cache_bytes;
    assert!(held > own, "{held} of {own}");

    fill();
    soon("it has given all back", || capacity() <= own && db.stats().cache_bytes <= own);
    read(ENTRIES);
    db.close().unwrap();
}
