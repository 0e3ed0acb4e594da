//! The process's memory against `memory_budget`: a fill, a compaction, a scan and 64 open iterators in a
//! process of their own, whose peak of resident memory the system keeps; then gets beside puts, with the
//! cache full and the iterators open. The budget is small, so that whatever is not taken out of it shows.
//!
//! The allocator has one arena here: with one for each thread, glibc keeps up to a quarter of this budget
//! more of what was freed, however the store counts.
#![allow(clippy::disallowed_methods, reason = "a process is measured from outside and by itself")]

use std::process::Command;

use lithify::{Budget, Db, DbIter, Durability, Policy, ReadOptions, Settings, WriteOptions};

const BUDGET: u64 = 128 << 20;
/// Entries of 16 + 100 bytes: several times the budget.
const ENTRIES: u64 = 2_500_000;
const PLACE: &str = "LITHIFY_BUDGET_TEST";

/// A figure of `/proc/self/status`, bytes.
fn status(name: &str) -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = text.lines().find(|l| l.starts_with(name)).expect("Linux tells");
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() << 10
}

/// Lets the peak begin anew.
fn forget_peak() {
    std::fs::write("/proc/self/clear_refs", "5").unwrap();
}

fn key(n: u64) -> [u8; 16] {
    let mut key = [0; 16];
    key[..8].copy_from_slice(&n.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes());
    key[8..].copy_from_slice(&n.to_be_bytes());
    key
}

/// Tells the peak of a phase, and fails if it is beyond the budget and a tenth.
fn phase(name: &str, before: u64, db: &Db) {
    let peak = status("VmHWM") - before;
    let stats = db.stats();
    println!(
        "{name}: {:.1} MiB of {} MiB; tables {:.1} MiB",
        peak as f64 / f64::from(1 << 20),
        BUDGET >> 20,
        stats.table_memory as f64 / f64::from(1 << 20),
    );
    assert!(peak <= BUDGET + BUDGET / 10, "{name} took {peak} bytes of {BUDGET}");
    forget_peak();
}

#[test]
#[ignore = "run by the test below, in a process of its own"]
fn life() {
    let Ok(dir) = std::env::var(PLACE) else { return };
    let before = status("VmRSS");
    let mut settings = Settings::for_budget(Budget { memory: BUDGET, threads: 4, disk: None });
    settings.policy = Some(Policy::Bucket);
    let db = Db::open(dir, settings).unwrap();
    let value = [7; 100];
    let options = WriteOptions::at(Durability::NoWal);
    for n in 0..ENTRIES {
        db.put_opt(key(n), value, &options).unwrap();
    }
    phase("fill", before, &db);
    db.compact_range(None, None).unwrap();
    phase("compact", before, &db);
    let count = |mut all: DbIter, most: u64| {
        let mut n = 0;
        all.seek_to_first();
        while all.valid() && n < most {
            n += 1;
            all.next();
        }
        all.status().unwrap();
        n
    };
    assert_eq!(count(db.iter().unwrap(), u64::MAX), ENTRIES);
    phase("scan", before, &db);
    let mut open: Vec<DbIter> = (0..64).map(|_| db.iter().unwrap()).collect();
    for (i, iter) in open.iter_mut().enumerate() {
        iter.seek(key(i as u64));
        (0..10_000).for_each(|_| iter.next());
    }
    for n in 0..ENTRIES / 4 {
        db.put_opt(key(n), value, &options).unwrap();
    }
    db.flush().unwrap();
    assert_eq!(count(db.iter_opt(&ReadOptions::default()).unwrap(), 1000), 1000);
    phase("64 iterators", before, &db);
    // Fills the cache, which scans pass by, beside writes.
    for n in 0..400_000 {
        let wanted = key(n * 7919 % ENTRIES);
        assert_eq!(db.get(wanted).unwrap().as_deref(), Some(&value[..]));
        if n % 4 == 0 {
            db.put_opt(wanted, value, &options).unwrap();
        }
    }
    let stats = db.stats();
    let cached = stats.cache_bytes + stats.table_memory;
    assert!(cached > BUDGET / 5, "the cache is full: {cached}");
    phase("gets and puts", before, &db);
    drop(open);
    db.close().unwrap();
}

#[test]
fn resident_memory_stays_within_a_tenth_of_the_budget() {
    let dir = tempfile::tempdir().unwrap();
    let done = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "memory_budget::life", "--ignored", "--nocapture", "--test-threads=1"])
        .env(PLACE, dir.path().join("db"))
        .env("MALLOC_ARENA_MAX", "1")
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&done.stdout);
    let errors = String::from_utf8_lossy(&done.stderr);
    println!("{told}");
    assert!(done.status.success(), "{told}{errors}");
    assert!(told.contains("gets and puts"), "the whole life was measured: {told}{errors}");
}
