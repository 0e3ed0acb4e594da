//! A follower beside a primary that writes, flushes and compacts: what it shows is what the primary held
//! at one moment, and what it showed stays readable.
#![allow(clippy::disallowed_methods, reason = "threads of the test's own")]

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use lithify::{Builder, Db, Durability, ErrorKind, ReadOptions, WriteBatch, WriteOptions};
use lithify_env::{Env, RtOptions};

use crate::common::tiny;

const KEYS: u64 = 40;

fn world() -> Env {
    Env::in_memory(RtOptions { upkeep_threads: 2, ..RtOptions::default() })
}

/// The round that every key is of: a batch writes all of them.
fn round_of(db: &Db) -> Option<u64> {
    let mut all = db.iter().unwrap();
    let mut rounds = Vec::new();
    all.seek_to_first();
    while all.valid() {
        rounds.push(u64::from_be_bytes(all.value()[..8].try_into().unwrap()));
        all.next();
    }
    all.status().unwrap();
    assert!(rounds.is_empty() || rounds.len() == KEYS as usize, "{} keys", rounds.len());
    assert!(rounds.windows(2).all(|two| two[0] == two[1]), "a batch is there in part");
    rounds.first().copied()
}

fn write(db: &Db, round: u64) {
    write_long(db, round, 100);
}

/// The same with so many bytes more in each value.
fn write_long(db: &Db, round: u64, bytes: usize) {
    let mut batch = WriteBatch::new();
    for key in 0..KEYS {
        let value = [&round.to_be_bytes()[..], &vec![7; bytes]].concat();
        batch.put(key.to_be_bytes(), value).unwrap();
    }
    db.write(&batch).unwrap();
}

#[test]
fn a_follower_shows_one_moment_after_the_other() {
    let env = world();
    let primary = Builder::new(tiny()).env(env.clone()).open("db").unwrap();
    write(&primary, 0);
    let follower = Builder::new(tiny()).env(env.clone()).open_follower("db").unwrap();
    assert_eq!(round_of(&follower.view()), Some(0));
    assert!(!follower.catch_up().unwrap(), "nothing is new");
    let stop = AtomicBool::new(false);
    let mut shown = 0;
    let mut old = Vec::new();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut round = 1;
            while !stop.load(Ordering::Relaxed) {
                write(&primary, round);
                round += 1;
                if round % 16 == 0 {
                    std::thread::sleep(Duration::from_millis(20));
                }
            }
        });
        // Another one looks at the same time: neither sees time run backwards for it.
        scope.spawn(|| {
            let mut shown = 0;
            while !stop.load(Ordering::Relaxed) {
                let _ = follower.catch_up();
                let round = round_of(&follower.view()).expect("there is a first round");
                assert!(round >= shown, "time runs forward: {round} after {shown}");
                shown = round;
            }
        });
        let mut looks = 0;
        while looks < 60 || (shown < 100 && looks < 10_000) {
            looks += 1;
            match follower.catch_up() {
                Ok(_) => {}
                Err(e) => assert_eq!(e.kind(), ErrorKind::Stalled, "{e}"),
            }
            let view = follower.view();
            let round = round_of(&view).expect("there is a first round");
            assert!(round >= shown, "time runs forward: {round} after {shown}");
            shown = round;
            old.push((round, view));
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert!(shown > 0);
    let stats = primary.stats().counts;
    assert!(stats.flushes > 3 && stats.compactions > 0, "files came and went: {stats:?}");
    primary.compact_range(None, None).unwrap();
    // Every file of the early views is gone by now.
    for (round, view) in old {
        assert_eq!(round_of(&view), Some(round), "an old view stays as it was");
    }
    assert!(follower.catch_up().unwrap());
    assert_eq!(round_of(&follower.view()), round_of(&primary));
    let refused = follower.view().put(b"a", b"1").unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::ReadOnly);
    primary.close().unwrap();
    follower.catch_up().unwrap();
    assert!(!follower.catch_up().unwrap());
}

#[test]
fn what_is_not_in_the_log_shows_once_it_is_flushed() {
    let env = world();
    let missing = Builder::new(tiny()).env(env.clone()).open_follower("db").unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::NotFound);
    let primary = Builder::new(tiny()).env(env.clone()).open("db").unwrap();
    let follower = Builder::new(tiny()).env(env).open_follower("db").unwrap();
    primary.put_opt(b"a", b"1", &WriteOptions::at(Durability::NoWal)).unwrap();
    assert!(!follower.catch_up().unwrap());
    primary.flush().unwrap();
    assert!(follower.catch_up().unwrap());
    assert_eq!(follower.view().get(b"a").unwrap().as_deref(), Some(&b"1"[..]));
    primary.close().unwrap();
}

/// A follower promises that what it showed stays readable. Its views have more tables here than
/// `max_open_files` keeps open, and the primary deletes all of them.
#[test]
fn views_with_more_tables_than_max_open_files_outlive_the_tables() {
    let env = world();
    let mut settings = tiny();
    settings.auto_compaction = false;
    settings.max_open_files = Some(16);
    // Nothing is read ahead of its reader into a cache.
    settings.memory_budget = 4 << 20;
    let primary = Builder::new(settings.clone()).env(env.clone()).open("db").unwrap();
    let many = |from: u64| {
        for round in from..from + 40 {
            write_long(&primary, round, 1 << 10);
            primary.flush().unwrap();
        }
    };
    many(0);
    let follower = Builder::new(settings).env(env.clone()).open_follower("db").unwrap();
    let first = follower.view();
    let snapshot = first.snapshot();
    let mut started = first.iter().unwrap();
    started.seek_to_first();
    many(40);
    assert!(follower.catch_up().unwrap());
    let second = follower.view();
    for (view, tables) in [(&first, 40), (&second, 80)] {
        assert_eq!(view.stats().levels.iter().map(|l| l.files).sum::<usize>(), tables);
    }
    write(&primary, 80);
    primary.compact_range(None, None).unwrap();
    primary.close().unwrap();
    Builder::new(tiny()).env(env.clone()).open("db").unwrap().close().unwrap();
    let names = env.fs.list(std::path::Path::new("db")).unwrap();
    let left = names.iter().filter(|entry| entry.name.ends_with(".sst")).count();
    assert!(left < 10, "{left} tables have a name still");
    assert_eq!((round_of(&first), round_of(&second)), (Some(39), Some(79)));
    let mut rest = 0;
    while started.valid() {
        rest += 1;
        started.next();
    }
    started.status().unwrap();
    assert_eq!(rest, KEYS);
    let at = ReadOptions::at(&snapshot);
    assert!(first.get_opt(0u64.to_be_bytes(), &at).unwrap().is_some());
}
