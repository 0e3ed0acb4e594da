//! A follower beside a primary that writes, flushes and compacts: what it shows is what the primary held
//! at one moment, and what it showed stays readable.
#![allow(clippy::disallowed_methods, reason = "threads of the test's own")]

mod common;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use lithify::{Builder, Db, Durability, ErrorKind, WriteBatch, WriteOptions};
use lithify_env::{Env, RtOptions};

use common::tiny;

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
    let mut batch = WriteBatch::new();
    for key in 0..KEYS {
        let value = [&round.to_be_bytes()[..], &[7; 100]].concat();
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
