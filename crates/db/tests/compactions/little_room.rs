//! Little room, with real threads: a budget and a disk that are nearly full of overwritten values take
//! writes all the same (reliability F6). Lives of every kind, in simulated time, are in `crates/sim/tests/lives/shortage.rs`.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "real threads and time")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::common::{Content, scan, tiny, within};
use lithify::{
    Builder, ColumnFamilyOptions, CompactOptions, Db, Durability, ErrorKind, Policy, Settings,
    WriteOptions,
};
use lithify_env::{Env, Fs, MemFs, OsRt, RtOptions};

const LONGEST: Duration = Duration::from_secs(120);
const BUDGET: u64 = 4 << 20;
const KEYS: u64 = 600;

fn settings(policy: Policy, budget: Option<u64>) -> Settings {
    let mut s = tiny();
    s.policy = Some(policy);
    (s.l0_trigger, s.l0_slowdown, s.l0_stop) = (4, 20, 36);
    s.disk_budget = budget;
    // Room is what is to hold writers back here, not the debt that follows from so small a budget.
    (s.soft_debt_bytes, s.hard_debt_bytes) = (32 << 30, 128 << 30);
    s
}

fn open(fs: &MemFs, settings: Settings) -> Db {
    let env = Env { fs: Arc::new(fs.clone()), rt: Arc::new(OsRt::new(RtOptions::default())) };
    Builder::new(settings).env(env).open("/db").unwrap()
}

struct Writer {
    random: fastrand::Rng,
    model: Content,
}

impl Writer {
    fn new() -> Writer {
        Writer { random: fastrand::Rng::with_seed(13), model: Content::new() }
    }

    /// Overwrites `count` values of 1,000 bytes; each within 20 s.
    fn write(&mut self, db: &Db, count: u64) {
        for _ in 0..count {
            let key = format!("{:05}", self.random.u64(0..KEYS)).into_bytes();
            let value: Vec<u8> = std::iter::repeat_with(|| self.random.u8(..)).take(1000).collect();
            let began = Instant::now();
            while let Err(e) = db.put_opt(&key, &value, &WriteOptions::at(Durability::Os)) {
                assert_eq!(e.kind(), ErrorKind::NoSpace, "{e:?}");
                assert!(began.elapsed() < Duration::from_secs(20), "{e}\n{}", db.explain());
                std::thread::sleep(Duration::from_millis(10));
            }
            self.model.insert(key, value);
        }
    }

    /// Overwrites values until there are so many bytes of tables; nothing is compacted.
    fn fill(&mut self, db: &Db, bytes: u64) {
        db.set_auto_compaction(false);
        while db.stats().disk_bytes < bytes {
            self.write(db, 8);
        }
    }
}

/// 0.6 MB live in a budget of 4 MiB, and the rest of it is garbage.
#[test]
fn a_budget_full_of_garbage_takes_writes() {
    within(LONGEST, "a budget full of garbage", || {
        for policy in [Policy::Tiered, Policy::Hybrid, Policy::Universal, Policy::BucketDf] {
            let (fs, mut writer) = (MemFs::new(), Writer::new());
            let db = open(&fs, settings(policy, Some(BUDGET)));
            writer.fill(&db, BUDGET - (100 << 10));
            db.set_auto_compaction(true);
            writer.write(&db, 4000);
            assert!(scan(&db).unwrap() == writer.model, "{}", policy.name());
            writer.fill(&db, BUDGET);
            db.close().unwrap();
            // With less than the tables have already.
            let db = open(&fs, settings(policy, Some(BUDGET / 2)));
            writer.write(&db, 2000);
            assert!(scan(&db).unwrap() == writer.model, "{}", policy.name());
            db.close().unwrap();
        }
    });
}

/// The same on a disk that others have filled but for 400 KiB.
#[test]
fn a_disk_full_of_garbage_takes_writes() {
    within(LONGEST, "a disk full of garbage", || {
        for policy in [Policy::Tiered, Policy::Hybrid] {
            let (fs, mut writer) = (MemFs::new(), Writer::new());
            let db = open(&fs, settings(policy, None));
            writer.fill(&db, BUDGET);
            db.flush().unwrap();
            // Logs that are not needed any more go, and then the room that is left is seen.
            std::thread::sleep(Duration::from_millis(300));
            fs.set_capacity(fs.used() + (400 << 10));
            std::thread::sleep(Duration::from_millis(1200));
            assert!(fs.free_space("/db".as_ref()).unwrap() < 1 << 20);
            db.set_auto_compaction(true);
            writer.write(&db, 2000);
            assert!(scan(&db).unwrap() == writer.model, "{}", policy.name());
            db.close().unwrap();
        }
    });
}

/// Two families in a budget with room for a compaction of one: that of the other waits until the first has ended, and
/// is no error.
#[test]
fn families_are_not_promised_the_same_room() {
    within(LONGEST, "two families and room for one", || {
        let mut s = settings(Policy::Hybrid, None);
        (s.auto_compaction, s.file_bytes) = (false, 8 << 20);
        let db = open(&MemFs::new(), s);
        let other = db.create_column_family("other", ColumnFamilyOptions::new()).unwrap();
        for db in [&db, &other] {
            Writer::new().write(db, 1000);
            db.compact_range(None, None).unwrap();
            assert_eq!(db.stats().levels.iter().map(|l| l.files).sum::<usize>(), 1);
        }
        let each = other.stats().levels.iter().map(|l| l.bytes).sum::<u64>();
        assert!(each > 400 << 10, "the first budget is larger than this: {each}");
        let budget = (3 * each + each / 2).to_string();
        db.set_settings(&[("disk_budget", &budget), ("background_rate", "64KiB")]).unwrap();
        let anew = CompactOptions { rewrite: true, ..CompactOptions::default() };
        std::thread::scope(|scope| {
            let first = scope.spawn(|| db.compact_range_opt(None, None, &anew));
            while db.stats().running_compactions == 0 {
                std::thread::sleep(Duration::from_millis(1));
            }
            let second = scope.spawn(|| other.compact_range_opt(None, None, &anew));
            for _ in 0..50 {
                std::thread::sleep(Duration::from_millis(10));
                assert_eq!(other.stats().running_compactions, 0, "it has no room");
            }
            assert!(!second.is_finished() && db.stats().running_compactions == 1);
            db.set_settings(&[("background_rate", "0")]).unwrap();
            first.join().unwrap().unwrap();
            second.join().unwrap().unwrap();
        });
        db.close().unwrap();
    });
}
