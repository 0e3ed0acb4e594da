//! Many threads, every policy, and a disk that is late and fails: every read is checked.
//!
//! Writers put, delete, delete ranges and write batches; readers get, walk both ways and hold
//! snapshots; flushes and manual compactions come at any time; the planner is set to stack, split
//! and merge all the time; jobs fail and take those that follow them along. The database is closed
//! and opened again between lives. [`board`] says what a read may show.
//!
//! `STRESS_SECONDS` is the time for each policy (2 if not set; it goes on until the policy has done
//! what only it does), `STRESS_SEED` the seed of the first life, `STRESS_POLICY` one policy by name.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "real time, real threads")]
#![allow(unreachable_pub, reason = "modules of a test")]

mod board;
#[path = "../common/mod.rs"]
mod common;
mod threads;
mod world;

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use board::{Board, WRITERS};
use common::deeds::Deeds;
use common::within;
use lithify::{Db, Policy};
use threads::{Eyes, Lie};
use world::{World, settings};

/// Beyond this a policy that has not done what only it does never will.
const PATIENCE: Duration = Duration::from_secs(90);
/// Longer than this no thread waits at the end of a life.
const HANG: Duration = Duration::from_secs(45);
/// A life between two opens.
const LIFE: Duration = Duration::from_millis(1000);

/// What all threads share.
struct Stage {
    world: World,
    board: Board,
    eyes: Eyes,
    end: AtomicBool,
    /// No writes for a while.
    lull: AtomicBool,
    /// The first thing that was wrong.
    fault: Mutex<Option<String>>,
    snapshots: AtomicU64,
    /// Batches that their writers inserted beside others.
    side_by_side: AtomicU64,
    /// Threads that have not come to their end.
    working: AtomicU64,
}

impl Stage {
    /// Runs `one` until the end of the life or until it finds fault.
    fn work(&self, seed: u64, mut one: impl FnMut(&mut fastrand::Rng) -> Result<(), String>) {
        let mut rng = fastrand::Rng::with_seed(seed);
        self.working.fetch_add(1, Ordering::SeqCst);
        while !self.end.load(Ordering::Relaxed) {
            if let Err(what) = one(&mut rng) {
                self.fault.lock().unwrap().get_or_insert(what);
                self.end.store(true, Ordering::Relaxed);
            }
        }
        self.working.fetch_sub(1, Ordering::SeqCst);
    }

    /// Tells what is known if the threads do not come to their ends.
    fn watch(&self, db: &Db) {
        let begin = Instant::now();
        while self.working.load(Ordering::SeqCst) > 0 {
            if begin.elapsed() > HANG {
                eprintln!("a hang:\n{}{}", db.picture(), db.stats());
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// One life of the database.
    fn live(&self, db: &Db, seed: u64, length: Duration) -> Result<(), String> {
        self.end.store(false, Ordering::Relaxed);
        std::thread::scope(|s| {
            for writer in 0..WRITERS {
                s.spawn(move || {
                    let mut held = Vec::new();
                    self.work(seed + writer as u64, |rng| self.write(db, writer, &mut held, rng));
                });
            }
            for reader in 0..2 {
                s.spawn(move || self.work(seed + 10 + reader, |rng| self.read(db, rng)));
            }
            s.spawn(move || {
                let mut held = Vec::new();
                self.work(seed + 20, |rng| self.look_back(db, &mut held, rng));
            });
            s.spawn(move || self.work(seed + 30, |rng| self.meddle(db, rng)));
            let over = Instant::now() + length;
            while Instant::now() < over && !self.end.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(5));
            }
            self.end.store(true, Ordering::Relaxed);
            s.spawn(move || self.watch(db));
        });
        match self.fault.lock().unwrap().take() {
            Some(what) => Err(what),
            None => Ok(()),
        }
    }
}

/// Lives of one policy until `length` is over and it has done what only it does.
fn stress(policy: Policy, seed: u64, length: Duration, lie: Option<Lie>) -> Result<Deeds, String> {
    let stage = Stage {
        world: World::new(settings(policy, seed), seed),
        board: Board::new(),
        eyes: Eyes::new(lie),
        end: AtomicBool::new(false),
        lull: AtomicBool::new(false),
        fault: Mutex::new(None),
        snapshots: AtomicU64::new(0),
        side_by_side: AtomicU64::new(0),
        working: AtomicU64::new(0),
    };
    let (started, mut deeds, mut lives) = (Instant::now(), Deeds::default(), 0);
    loop {
        let db = stage.world.open()?;
        stage.look_at_all(&db)?;
        stage.live(&db, seed.wrapping_add(lives * 1000), LIFE.min(length))?;
        stage.look_at_all(&db)?;
        stage.side_by_side.fetch_add(db.stats().counts.own_inserts, Ordering::Relaxed);
        stage.world.close(db)?;
        stage.world.harvest(&mut deeds);
        lives += 1;
        let spent = started.elapsed();
        let mut missing = deeds.of(policy);
        missing.extend(deeds.of_buckets(policy));
        missing.push(("failed job", deeds.failed));
        missing.retain(|m| m.1 == 0);
        if spent >= length && missing.is_empty() {
            break;
        }
        if spent >= length + PATIENCE {
            return Err(format!("never seen: {missing:?} in {deeds:?}"));
        }
    }
    let count = |n: &AtomicU64| n.load(Ordering::Relaxed);
    let (reads, unjudged) = (count(&stage.board.reads), count(&stage.board.unjudged));
    println!(
        "{:10} seed {seed}, {:.1} s, {lives} lives: {} writes, {} side by side, {reads} reads \
         checked, {unjudged} not, {} snapshots; {} split, {} merged, {} failed, {} stopped, {} after others; {:?}",
        policy.name(),
        started.elapsed().as_secs_f64(),
        stage.board.begun().iter().sum::<u64>(),
        count(&stage.side_by_side),
        count(&stage.snapshots),
        deeds.splits,
        deeds.merges,
        deeds.failed,
        deeds.stopped,
        deeds.edges,
        deeds.kinds,
    );
    if reads < 1000 || unjudged > reads / 100 {
        return Err(format!("only {reads} reads checked, {unjudged} not"));
    }
    Ok(deeds)
}

fn number_from(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |n| n.parse().expect("a number"))
}

#[test]
fn every_read_of_every_policy_shows_what_was_written() {
    let length = Duration::from_secs(number_from("STRESS_SECONDS", 2));
    let seed = number_from("STRESS_SEED", 1);
    let only = std::env::var("STRESS_POLICY").ok();
    for policy in Policy::EVERY {
        if only.as_ref().is_none_or(|name| name == policy.name()) {
            let story = move || stress(policy, seed, length, None);
            let result = within(length + 2 * PATIENCE, policy.name(), story);
            result.unwrap_or_else(|e| panic!("{}, STRESS_SEED={seed}: {e}", policy.name()));
        }
    }
}

/// The test must be able to find fault: a reader that is lied to now and then notices.
#[test]
fn wrong_reads_are_noticed() {
    for lie in Lie::ALL {
        let story = move || stress(Policy::BucketDf, 7, Duration::from_secs(20), Some(lie));
        let found = within(PATIENCE, "a lie", story).expect_err("the lie went unnoticed");
        println!("{lie:?}: {found}");
        assert!(found.contains("fits no moment") || found.contains("snapshot"), "{found}");
    }
}
