//! The database says what limits writing: jobs with their progress, the verdict with its figures,
//! what a tree at rest would need; and writers who wait for work that fails are told.
#![allow(clippy::disallowed_methods, reason = "the tests wait for background work")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::common::{scan, tiny, within};
use lithify::{Builder, Db, ErrorKind, JobStage, Policy, Writes};
use lithify_env::{Env, FaultFs, MemFs, OsRt, RtOptions};
use lithify_slow::{Bandwidth, Throttle, ThrottledFs};

const LONGEST: Duration = Duration::from_secs(60);

fn key(i: u32) -> [u8; 4] {
    i.wrapping_mul(2_654_435_761).to_be_bytes()
}

/// `count` keys all over the place, with values of 200 bytes.
fn put_some(db: &Db, from: u32, count: u32) -> lithify::Result<()> {
    (from..from + count).try_for_each(|i| db.put(key(i), [i as u8; 200]))
}

/// A directory with `runs` runs in level 0, none of them compacted.
fn shallow(fs: &MemFs, runs: u32) {
    let env = Env { fs: Arc::new(fs.clone()), rt: Arc::new(OsRt::new(RtOptions::default())) };
    let mut settings = tiny();
    settings.auto_compaction = false;
    let db = Builder::new(settings).env(env).open("db").unwrap();
    for run in 0..runs {
        put_some(&db, run * 100, 100).unwrap();
        db.flush().unwrap();
    }
    db.close().unwrap();
}

#[test]
fn a_tree_at_rest() {
    let fs = MemFs::new();
    shallow(&fs, 5);
    let open = |slowdown: u32, stop: u32| {
        let mut settings = tiny();
        settings.policy = Some(Policy::Hybrid);
        (settings.l0_slowdown, settings.l0_stop) = (slowdown, stop);
        let rt = Arc::new(OsRt::new(RtOptions::default()));
        let env = Env { fs: Arc::new(fs.clone()), rt };
        Builder::new(settings).env(env).open_read_only("db").unwrap().explain()
    };
    let told = open(3, 5);
    assert_eq!(told.writes, Writes::Stopped { cause: "l0_files" });
    assert!(!told.live && told.jobs.is_empty() && told.lasts.is_none());
    assert_eq!((told.levels.len(), told.levels[0].depth, told.levels[0].need), (1, 5, 2500));
    assert_eq!(told.due.len(), 1, "{told}");
    let l0 = told.bounds.iter().find(|b| b.cause == "l0_files").unwrap();
    assert_eq!((l0.now, l0.slows_at, l0.stops_at), (5, Some(3), Some(5)));
    let text = told.to_string();
    let first = "Writes would be stopped: 5 runs of level 0 over one key (slowed at 3, stopped at \
                 5).\n";
    assert!(text.starts_with(first), "{text}");
    assert!(text.contains("Due, once the database is opened for writing:\n  Down to L"), "{text}");

    let told = open(5, 6);
    let slowed = Writes::Slowed { cause: "l0_files", bytes_per_second: None };
    assert_eq!(told.writes, slowed);
    let told = open(6, 7);
    assert_eq!(told.writes, Writes::Free);
    assert!(told.to_string().starts_with("Nothing would hold writes back.\n"), "{told}");
}

/// From outside no memtable is seen, and what was just compacted needs nothing: other targets follow from the size of
/// the last level. Without automatic compaction that is said, and nothing is due.
#[test]
fn a_tree_at_rest_needs_only_what_would_be_done() {
    let fs = MemFs::new();
    shallow(&fs, 5);
    let env = || Env { fs: Arc::new(fs.clone()), rt: Arc::new(OsRt::new(RtOptions::default())) };
    let look = |auto_compaction: bool| {
        let settings = lithify::Settings { auto_compaction, ..tiny() };
        Builder::new(settings).env(env()).open_read_only("db").unwrap().explain()
    };
    let told = look(false);
    let text = told.to_string();
    assert!(!told.automatic && told.due.is_empty() && !text.contains("  due"), "{text}");
    assert!(text.contains("\nAutomatic compaction is off"), "{text}");
    assert!(told.bounds.iter().all(|b| b.cause != "memtable_limit"), "{text}");
    assert!(look(true).levels[0].need >= 1000);

    let db = Builder::new(tiny()).env(env()).open("db").unwrap();
    assert!(db.explain().bounds.iter().any(|b| b.cause == "memtable_limit"));
    db.compact_range(None, None).unwrap();
    db.close().unwrap();
    let told = look(true);
    assert!(told.automatic && told.due.is_empty(), "{told}");
    let last = told.levels.last().unwrap();
    assert_eq!((told.levels.len(), last.level, last.need, last.target_bytes), (1, 6, 0, None));
    assert!(!told.to_string().contains("  due"), "{told}");
}

/// On a slow disk a compaction is seen at work: its levels, its keys, its progress and its end.
#[test]
fn jobs_tell_how_far_they_are() {
    let fs = MemFs::new();
    shallow(&fs, 12);
    let rt = Arc::new(OsRt::new(RtOptions::default()));
    let slow = Throttle { bandwidth: Bandwidth::Shared(400_000), ..Throttle::default() };
    let slow = ThrottledFs::new(Arc::new(fs), rt.clone(), slow);
    // Sets of blocks are larger than this tree; small reads come from one run each.
    let mut settings = tiny();
    settings.policy = Some(Policy::Hybrid);
    let db = Builder::new(settings).env(Env { fs: Arc::new(slow), rt }).open("db").unwrap();
    let late = Instant::now() + LONGEST;
    let told = loop {
        let told = db.explain();
        if told.jobs.first().is_some_and(|j| j.running.is_some_and(|t| t.as_millis() > 50)) {
            break told;
        }
        assert!(Instant::now() < late, "no job was seen at work: {told}");
        std::thread::sleep(Duration::from_millis(1));
    };
    let job = &told.jobs[0];
    assert_eq!((job.kind.as_str(), job.from, &job.stage), ("Down", Some(0), &JobStage::Working));
    assert!(job.bytes > 100_000 && job.done <= job.bytes && job.percent() <= 100, "{told}");
    let (lo, hi) = job.keys.as_ref().expect("a compaction has keys");
    assert!(lo < hi && job.why.starts_with("L0 has"), "{told}");
    assert_eq!((told.writes.clone(), told.running), (Writes::Free, 1), "{told}");
    let text = told.to_string();
    assert!(text.contains(&format!("  job {}  Down L0 -> L", job.job)), "{text}");

    assert!(db.wait_idle(Some(LONGEST)).unwrap());
    let told = db.explain();
    assert!(told.jobs.is_empty() && told.due.is_empty() && told.running == 0, "{told}");
    assert!(told.to_string().starts_with("Nothing holds writes back.\n"), "{told}");
    db.close().unwrap();
}

/// Under `adaptive`, while a writer keeps the disk busy, the price of a byte is told, which is why slots are
/// empty; soon after all is at rest bytes are free, and no price is told.
#[test]
fn the_price_of_bytes_is_told() {
    let rt = Arc::new(OsRt::new(RtOptions::default()));
    let slow = Throttle { bandwidth: Bandwidth::Shared(4_000_000), ..Throttle::default() };
    let slow = ThrottledFs::new(Arc::new(MemFs::new()), rt.clone(), slow);
    let mut settings = tiny();
    settings.policy = Some(Policy::Adaptive);
    let db = Builder::new(settings).env(Env { fs: Arc::new(slow), rt }).open("db").unwrap();
    let late = Instant::now() + LONGEST;
    let told = (0..).find_map(|i| {
        put_some(&db, i * 100, 100).unwrap();
        assert!(Instant::now() < late, "bytes were always free: {}", db.explain());
        Some(db.explain()).filter(|told| told.price > 0.0)
    });
    let told = told.expect("an endless search ends with what it looks for");
    assert!(told.to_string().contains(" bytes one level down for each byte "), "{told}");
    assert!(db.wait_idle(Some(LONGEST)).unwrap());
    // How busy compactions were is remembered for a moment longer.
    let told = loop {
        let told = db.explain();
        if told.price == 0.0 {
            break told;
        }
        assert!(Instant::now() < late, "bytes are never free again: {told}");
        std::thread::sleep(Duration::from_millis(10));
    };
    assert!(!told.to_string().contains("one level down"), "{told}");
    db.close().unwrap();
}

/// Level 0 is full and no compaction succeeds: writers get an error that names the cause instead of
/// waiting for ever, and writes go on by themselves once it is mended.
#[test]
fn writers_are_told_when_compactions_get_nowhere() {
    let broken = Arc::new(AtomicBool::new(true));
    let seen = broken.clone();
    let rule = move |op: &lithify_env::Op<'_>| {
        let table = op.path.extension().is_some_and(|e| e == "sst");
        (op.name == "read_at" && table && seen.load(Ordering::Relaxed))
            .then(|| std::io::Error::from_raw_os_error(5).into())
    };
    let fs = FaultFs::new(Arc::new(MemFs::new()), rule);
    let env = Env { fs: Arc::new(fs), rt: Arc::new(OsRt::new(RtOptions::default())) };
    let mut settings = tiny();
    (settings.l0_slowdown, settings.l0_stop) = (4, 6);
    let db = Builder::new(settings).env(env).open("db").unwrap();

    let (error, written) = within(LONGEST, "writes over a full level 0", {
        let db = db.clone();
        move || {
            let mut written = 0;
            loop {
                match put_some(&db, written, 1) {
                    Ok(()) => written += 1,
                    Err(error) => return (error, written),
                }
            }
        }
    });
    assert_eq!(error.kind(), ErrorKind::NotCommitted);
    assert!(error.to_string().contains("can't be compacted"), "{error}");
    let told = db.explain();
    assert_eq!(told.writes, Writes::Stopped { cause: "l0_files" }, "{told}");
    assert!(told.to_string().contains("\nCompactions fail: "), "{told}");
    assert!(db.wait_idle(None).is_err(), "a wait for what fails is refused");

    broken.store(false, Ordering::Relaxed);
    within(LONGEST, "writes after the mending", {
        let db = db.clone();
        move || {
            while put_some(&db, written, 1).is_err() {
                std::thread::sleep(Duration::from_millis(10));
            }
        }
    });
    assert!(db.wait_idle(Some(LONGEST)).unwrap());
    assert!(db.explain().compaction_trouble.is_none());
    assert_eq!(scan(&db).unwrap().len(), written as usize + 1, "no write was lost or made up");
    db.close().unwrap();
}
