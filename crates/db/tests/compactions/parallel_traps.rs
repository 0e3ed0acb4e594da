//! Traps of parallel compaction that need a moment held still: the write of one chosen table is held
//! up while everything else goes on.
//!
//! Other traps have their tests where they can be met: docs/internals/testing.md lists them all.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "real threads, real time")]

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::common::deeds::Deeds;
use crate::common::{eager, within};
use lithify::{Builder, Db, Policy, ReadOptions, Settings, Snapshot};
use lithify_env::{Env, FaultFs, Fs, MemFs, OpenOpts, OsRt, RtOptions, read_full_at};

const LONGEST: Duration = Duration::from_secs(60);
/// Longer than the event log takes to reach its file.
const LOG_DELAY: Duration = Duration::from_millis(150);
const KEYS: u32 = 40;

/// Which table is held up.
#[derive(Default)]
enum Hold {
    #[default]
    None,
    /// The next that is created.
    Next,
    This(PathBuf),
}

/// A machine in memory that can hold up one table.
struct Machine {
    files: Arc<MemFs>,
    env: Env,
    hold: Arc<Mutex<Hold>>,
}

impl Machine {
    fn new() -> Machine {
        let (files, hold) = (Arc::new(MemFs::new()), Arc::new(Mutex::new(Hold::None)));
        let held = hold.clone();
        let fs = FaultFs::new(files.clone(), move |op| {
            if op.name == "create" && op.path.extension().is_some_and(|e| e == "sst") {
                let mut hold = held.lock().unwrap();
                if matches!(*hold, Hold::Next) {
                    *hold = Hold::This(op.path.to_owned());
                }
            }
            let is_held = || matches!(&*held.lock().unwrap(), Hold::This(p) if p == op.path);
            while matches!(op.name, "write_at" | "sync_data" | "sync_all") && is_held() {
                std::thread::sleep(Duration::from_millis(1));
            }
            None
        });
        let options = RtOptions {
            flush_threads: 2,
            compact_threads: 4,
            io_threads: 8,
            upkeep_threads: 2,
            ..RtOptions::default()
        };
        let env = Env { fs: Arc::new(fs), rt: Arc::new(OsRt::new(options)) };
        Machine { files, env, hold }
    }
    fn open(&self, settings: &Settings) -> Db {
        Builder::new(settings.clone()).env(self.env.clone()).open("/db").unwrap()
    }
    fn hold_next(&self) {
        *self.hold.lock().unwrap() = Hold::Next;
    }
    fn release(&self) {
        *self.hold.lock().unwrap() = Hold::None;
    }
    fn holds_one(&self) -> bool {
        matches!(*self.hold.lock().unwrap(), Hold::This(_))
    }
    /// Holds up the first table of a compaction that starts in `level`; nothing else is at work.
    fn hold_level(&self, level: u32) {
        wait_for("a job of that level", || {
            wait_for("a job that is held up", || self.holds_one());
            std::thread::sleep(LOG_DELAY);
            let log = self.log();
            let last = log.lines().rev().find(|line| line.contains("compaction_start"));
            let is_it = last.is_some_and(|line| line.contains(&format!("\"from\":{level},")));
            if !is_it {
                self.hold_next();
            }
            is_it
        });
    }
    fn log(&self) -> String {
        let file = self.files.open("/db/EVENTS".as_ref(), OpenOpts::read()).unwrap();
        let mut text = vec![0; file.len().unwrap() as usize];
        let n = read_full_at(&*file, &mut text, 0).unwrap();
        String::from_utf8_lossy(&text[..n]).into_owned()
    }
    fn deeds(&self) -> Deeds {
        let mut deeds = Deeds::default();
        deeds.note(&self.log());
        deeds
    }
}

fn wait_for(what: &str, mut is: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !is() {
        assert!(begin.elapsed() < LONGEST / 2, "never seen: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn settings(policy: Policy) -> Settings {
    let mut s = eager(policy, &mut fastrand::Rng::with_seed(1));
    s.flush_threads = 2;
    s.memtable_bytes = 256 << 10;
    s.memtable_count = 8;
    s.memory_budget = 16 << 20;
    s.level_base_bytes = 64 << 10;
    s.l0_trigger = 2;
    s.dynamic_levels = false;
    let plan = s.plan.as_mut().expect("eager settings have a plan");
    plan.tiered_runs = 2;
    plan.max_waiting_jobs = 8;
    s
}

/// What a key shows after stage `n`: some are deleted, one by one or by range.
fn content(key: u32, stage: u32) -> Option<Vec<u8>> {
    let deleted = stage > 1 && (key % 7 == stage % 7 || stage.is_multiple_of(3) && key < 10);
    (!deleted).then(|| format!("{key} of {stage} {:03000}", 0).into_bytes())
}

/// Writes or deletes every key.
fn write_stage(db: &Db, stage: u32) {
    if stage.is_multiple_of(3) {
        db.delete_range(0u32.to_be_bytes(), 10u32.to_be_bytes()).unwrap();
    }
    for key in 0..KEYS {
        match content(key, stage) {
            Some(value) => db.put(key.to_be_bytes(), value).unwrap(),
            None if stage.is_multiple_of(3) && key < 10 => {}
            None => db.delete(key.to_be_bytes()).unwrap(),
        }
    }
}

fn check(db: &Db, options: &ReadOptions, stage: u32) {
    let mut iter = db.iter_opt(options).unwrap();
    iter.seek_to_first();
    for key in 0..KEYS {
        let want = content(key, stage);
        let found = db.get_opt(key.to_be_bytes(), options).unwrap();
        assert_eq!(found.as_deref(), want.as_deref(), "key {key} at stage {stage}");
        if let Some(want) = want {
            assert_eq!((iter.key(), iter.value()), (&key.to_be_bytes()[..], &want[..]));
            iter.next();
        }
    }
    assert!(!iter.valid());
    iter.status().unwrap();
}

fn check_all(db: &Db, snapshots: &[(u32, Snapshot)], stage: u32) {
    check(db, &ReadOptions::default(), stage);
    for (then, snapshot) in snapshots {
        check(db, &ReadOptions::at(snapshot), *then);
    }
}

/// The flush of an older memtable takes longer than that of a newer one: nothing of the newer one
/// is in the tree before it.
#[test]
fn flush_order_inversion() {
    within(LONGEST, "flush order", || {
        let machine = Machine::new();
        let mut settings = settings(Policy::Hybrid);
        settings.auto_compaction = false;
        let db = machine.open(&settings);
        write_stage(&db, 1);
        let mut snapshots = vec![(1, db.snapshot())];
        machine.hold_next();
        std::thread::scope(|s| {
            let older = s.spawn(|| db.flush());
            wait_for("a flush that is held up", || machine.holds_one());
            write_stage(&db, 2);
            snapshots.push((2, db.snapshot()));
            let newer = s.spawn(|| db.flush());
            // The newer flush is built when its counter says so.
            wait_for("the newer flush", || db.stats().counts.flushes == 1);
            std::thread::sleep(Duration::from_millis(50));
            assert!(!older.is_finished() && !newer.is_finished());
            assert_eq!(db.stats().levels[0].runs, 0, "{}", db.picture());
            check_all(&db, &snapshots, 2);
            machine.release();
            older.join().unwrap().unwrap();
            newer.join().unwrap().unwrap();
        });
        assert_eq!(db.stats().levels[0].runs, 2);
        check_all(&db, &snapshots, 2);
        drop(snapshots);
        db.close().unwrap();
        check(&machine.open(&settings), &ReadOptions::default(), 2);
    });
}

/// Runs one, two are on their way down and held up; newer ones follow them, are built, and wait.
/// Snapshots are taken, held and released all the while, and keys are overwritten and deleted.
#[test]
fn snapshots_across_jobs_that_wait_for_others() {
    within(LONGEST, "snapshots", || {
        let machine = Machine::new();
        let settings = settings(Policy::DfTiered);
        let db = machine.open(&settings);
        db.set_auto_compaction(false);
        let mut snapshots = Vec::new();
        let mut stage = 0;
        let mut flush_stages = |snapshots: &mut Vec<(u32, Snapshot)>, until: u32| {
            while stage < until {
                stage += 1;
                write_stage(&db, stage);
                snapshots.push((stage, db.snapshot()));
                db.flush().unwrap();
                check_all(&db, snapshots, stage);
            }
        };
        flush_stages(&mut snapshots, 2);
        machine.hold_next();
        db.set_auto_compaction(true);
        wait_for("a job that is held up", || machine.holds_one());
        // Released after the first job saw it, before the second does.
        snapshots.remove(0);
        flush_stages(&mut snapshots, 4);
        wait_for("a job that follows it", || db.stats().running_compactions > 1);
        wait_for("its output", || db.stats().counts.compactions > 0);
        check_all(&db, &snapshots, 4);
        snapshots.remove(0);
        snapshots.push((4, db.snapshot()));
        machine.release();
        assert!(db.wait_idle(Some(LONGEST / 2)).unwrap());
        check_all(&db, &snapshots, 4);
        flush_stages(&mut snapshots, 7);
        snapshots.truncate(2);
        db.compact_range(None, None).unwrap();
        check_all(&db, &snapshots, 7);
        snapshots.clear();
        db.compact_range(None, None).unwrap();
        check(&db, &ReadOptions::default(), 7);
        db.close().unwrap();
        assert!(machine.deeds().edges > 0, "no job followed another: {:?}", machine.deeds());
        check(&machine.open(&settings), &ReadOptions::default(), 7);
    });
}

/// While older data is on its way from L1 to L2 and held up, newer data is stacked over it and
/// committed: both are read, in the right order.
#[test]
fn newer_data_stacked_over_a_locked_way() {
    for policy in [Policy::DfLeveled, Policy::BucketDf] {
        within(LONGEST, policy.name(), move || {
            let machine = Machine::new();
            let settings = settings(policy);
            let db = machine.open(&settings);
            write_stage(&db, 1);
            let mut snapshots = vec![(1, db.snapshot())];
            // To L2: L1 is too small for it.
            db.compact_range(None, None).unwrap();
            db.set_auto_compaction(false);
            for stage in 2..=3 {
                write_stage(&db, stage);
                snapshots.push((stage, db.snapshot()));
                db.flush().unwrap();
            }
            machine.hold_next();
            db.set_auto_compaction(true);
            machine.hold_level(1);
            let mut stage = 3;
            wait_for("stacked data", || {
                stage += 1;
                write_stage(&db, stage);
                snapshots.push((stage, db.snapshot()));
                db.flush().unwrap();
                check_all(&db, &snapshots, stage);
                std::thread::sleep(LOG_DELAY);
                machine.deeds().kinds.contains_key("Df")
            });
            assert!(machine.holds_one(), "the older job is still held up");
            check_all(&db, &snapshots, stage);
            machine.release();
            assert!(db.wait_idle(Some(LONGEST / 2)).unwrap());
            check_all(&db, &snapshots, stage);
            drop(snapshots);
            db.compact_range(None, None).unwrap();
            db.close().unwrap();
            check(&machine.open(&settings), &ReadOptions::default(), stage);
        });
    }
}
