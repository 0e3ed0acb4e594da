//! Compactions that are merged in several parts: whatever their number, the database reads the same at
//! every snapshot; they end as one, well or not; one thread is enough; and they are seen at work.
#![allow(clippy::disallowed_methods, reason = "the tests wait for background work")]

use std::cmp::Ordering;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};

use crate::common::clock::until;
use crate::common::{Content, eager, scan, shown, tiny, within};
use lithify::verify::verify;
use lithify::{Builder, Db, ErrorKind, PartStage, Policy, ReadOptions, Settings, Snapshot};
use lithify_base::Comparator;
use lithify_env::{Env, FaultFs, Fs, FsRef, MemFs, OpenOpts, OsRt, RtOptions, read_full_at};
use lithify_slow::{Bandwidth, Throttle, ThrottledFs};

const LONGEST: Duration = Duration::from_secs(120);

/// A database in memory, its files and its runtime with so many compaction threads.
fn env(fs: FsRef, threads: usize) -> Env {
    Env {
        fs,
        rt: Arc::new(OsRt::new(RtOptions { compact_threads: threads, ..RtOptions::default() })),
    }
}

/// Small files, so that there is much to cut, and nothing happens by itself.
fn by_hand(parts: u32) -> Settings {
    let mut s = tiny();
    s.policy = Some(Policy::Hybrid);
    s.auto_compaction = false;
    s.compaction_threads = 4;
    s.max_subcompactions = parts;
    s.file_bytes = 16 << 10;
    s
}

fn key(n: u32) -> Vec<u8> {
    format!("key{n:05}").into_bytes()
}

/// A database with a history: the model, and the model as it was at each snapshot.
struct World {
    db: Db,
    model: Content,
    snapshots: Vec<(Snapshot, Content)>,
    rng: fastrand::Rng,
}

impl World {
    fn new(db: Db, seed: u64) -> World {
        let rng = fastrand::Rng::with_seed(seed);
        World { db, model: Content::new(), snapshots: Vec::new(), rng }
    }

    /// Writes all over the keys, range deletions over long stretches among them, and a flush.
    fn round(&mut self) {
        for _ in 0..250 {
            let n = self.rng.u32(0..800);
            match self.rng.u8(0..40) {
                0..28 => {
                    let value = vec![self.rng.u8(..); self.rng.usize(0..900)];
                    self.db.put(key(n), &value).unwrap();
                    self.model.insert(key(n), value);
                }
                28..37 => {
                    self.db.delete(key(n)).unwrap();
                    self.model.remove(&key(n));
                }
                _ => {
                    let end = n + self.rng.u32(1..300);
                    self.db.delete_range(key(n), key(end)).unwrap();
                    self.model.retain(|k, _| *k < key(n) || *k >= key(end));
                }
            }
            if self.rng.u8(0..120) == 0 {
                self.snapshots.push((self.db.snapshot(), self.model.clone()));
            }
        }
        self.db.flush().unwrap();
    }

    fn check(&self, what: &str) {
        assert_eq!(scan(&self.db).unwrap(), self.model, "{what}");
        for (i, (snapshot, model)) in self.snapshots.iter().enumerate() {
            let mut iter = self.db.iter_opt(&ReadOptions::at(snapshot)).unwrap();
            assert_eq!(&shown(&mut iter).unwrap(), model, "{what}: snapshot {i}");
            for n in (0..800).step_by(7) {
                let found = self.db.get_opt(key(n), &ReadOptions::at(snapshot)).unwrap();
                assert_eq!(found.as_deref(), model.get(&key(n)).map(Vec::as_slice), "{what}: {n}");
            }
        }
    }

    fn close(self) {
        drop(self.snapshots);
        self.db.close().unwrap();
    }
}

/// The event log.
fn events(fs: &dyn Fs) -> String {
    let file = fs.open(Path::new("/db/EVENTS"), OpenOpts::read()).unwrap();
    let mut text = vec![0; file.len().unwrap() as usize];
    read_full_at(&*file, &mut text, 0).unwrap();
    String::from_utf8(text).unwrap()
}

/// Tables in the directory.
fn tables(fs: &dyn Fs) -> usize {
    let names = fs.list(Path::new("/db")).unwrap();
    names.iter().filter(|e| e.name.ends_with(".sst")).count()
}

/// Manual compactions of the same history in 1, 2, 3 and 8 parts: the same is read at every snapshot,
/// the same entries are dropped, and the tables hold what their invariants ask for.
#[test]
fn any_number_of_parts_reads_the_same() {
    for seed in 0..6 {
        let mut dropped = Vec::new();
        for (parts, threads) in [(1, 2), (2, 2), (3, 1), (8, 4)] {
            let what = format!("seed {seed}, {parts} parts");
            let fs = MemFs::new();
            let builder = Builder::new(by_hand(parts)).env(env(Arc::new(fs.clone()), threads));
            let mut w = World::new(builder.open("/db").unwrap(), seed);
            (0..4).for_each(|_| w.round());
            w.check(&what);
            w.db.compact_range(None, None).unwrap();
            w.check(&what);
            // Once more over what the parts have left, with fewer snapshots.
            w.round();
            w.snapshots.truncate(1);
            w.db.compact_range(None, None).unwrap();
            w.check(&what);
            let counts = w.db.stats().counts;
            dropped.push((counts.compaction_entries, counts.compaction_drops));
            w.close();
            let report = verify(Arc::new(fs.clone()), "/db", None, &mut |_| {}).unwrap();
            assert!(report.is_clean(), "{what}: {:?}", report.findings);
            let log = events(&fs);
            let cut = log.contains("part_start");
            assert_eq!(cut, parts > 1, "{what}");
            assert!(parts == 1 || log.contains(&format!("\"of\":{parts}")), "{what}: {log}");
            assert_eq!(log.matches("part_start").count(), log.matches("part_end").count());
        }
        assert!(dropped.windows(2).all(|w| w[0] == w[1]), "seed {seed}: {dropped:?}");
    }
}

/// Every policy by itself, with jobs in parts beside others, over strata that are stacked and merged.
#[test]
fn every_policy_in_parts() {
    for (i, policy) in (0..).zip(Policy::ALL) {
        let mut rng = fastrand::Rng::with_seed(i);
        let mut settings = eager(policy, &mut rng);
        settings.max_subcompactions = 3;
        settings.file_bytes = 16 << 10;
        let fs = MemFs::new();
        let db = Builder::new(settings).env(env(Arc::new(fs.clone()), 4)).open("/db").unwrap();
        let mut w = World::new(db, i);
        for round in 0..8 {
            w.round();
            if round % 3 == 2 {
                w.check(policy.name());
                w.snapshots.clear();
            }
        }
        assert!(w.db.wait_idle(Some(LONGEST)).unwrap());
        w.check(policy.name());
        w.close();
        let report = verify(Arc::new(fs.clone()), "/db", None, &mut |_| {}).unwrap();
        assert!(report.is_clean(), "{}: {:?}", policy.name(), report.findings);
        assert!(events(&fs).contains("part_start"), "{}", policy.name());
    }
}

/// Each write, sync and creation of the parts fails in turn: the compaction fails as a whole or is done
/// after all, nothing is lost, and no table is left that the tree does not have.
#[test]
fn a_part_that_fails_takes_all_along() {
    let mut failures = 0;
    for at in (0..60).step_by(3) {
        let (armed, count) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let (on, seen) = (armed.clone(), count.clone());
        let rule = move |op: &lithify_env::Op<'_>| {
            let table = op.path.extension().is_some_and(|e| e == "sst");
            let counts = matches!(op.name, "write_at" | "sync_data" | "create" | "read_at");
            let hit = table && counts && on.load(SeqCst) && seen.fetch_add(1, SeqCst) == at;
            hit.then(|| std::io::Error::from_raw_os_error(5).into())
        };
        let fs = MemFs::new();
        let faulty = FaultFs::new(Arc::new(fs.clone()), rule);
        let db = Builder::new(by_hand(4)).env(env(Arc::new(faulty), 3)).open("/db").unwrap();
        let mut w = World::new(db, at);
        (0..4).for_each(|_| w.round());
        armed.store(true, SeqCst);
        let failed = w.db.compact_range(None, None).is_err();
        failures += u32::from(failed);
        armed.store(false, SeqCst);
        w.check(&format!("failure {at}"));
        assert!(w.db.wait_idle(Some(LONGEST)).is_ok());
        let live: usize = w.db.stats().levels.iter().map(|l| l.files).sum();
        if failed {
            assert_eq!(tables(&fs), live, "failure {at}: tables are left over");
        }
        w.db.compact_range(None, None).unwrap();
        w.check(&format!("after failure {at}"));
        w.close();
    }
    assert!(failures > 5, "{failures} of 20 compactions failed");
}

/// Bytewise; panics in a compaction thread when it has compared so often: once, or from then on.
#[derive(Default)]
struct Fussy {
    left: AtomicU64,
    once: bool,
}

impl Comparator for Fussy {
    fn name(&self) -> &'static str {
        "test.Fussy"
    }
    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        let merges = std::thread::current().name().is_some_and(|n| n == "lithify-compact");
        if merges && self.left.load(SeqCst) > 0 {
            let least = if self.once { 0 } else { 1 };
            let count = |left: u64| (left > 0).then(|| (left - 1).max(least));
            if self.left.fetch_update(SeqCst, SeqCst, count) == Ok(1) {
                panic!("too many comparisons");
            }
        }
        a.cmp(b)
    }
}

/// What a manual compaction in four parts says, with a comparator that panics after `at` comparisons, and
/// the event log. The database reads the same after it, and no table is left over.
fn panicking(at: u64, once: bool) -> (lithify::Result<()>, String) {
    let fs = MemFs::new();
    let order = Arc::new(Fussy { once, ..Fussy::default() });
    let builder = Builder::new(by_hand(4)).comparator(order.clone());
    let db = builder.env(env(Arc::new(fs.clone()), 2)).open("/db").unwrap();
    let mut w = World::new(db, at);
    (0..4).for_each(|_| w.round());
    order.left.store(at, SeqCst);
    let db = w.db.clone();
    let told = within(LONGEST, "a panicking part", move || db.compact_range(None, None));
    order.left.store(0, SeqCst);
    w.check("after the panic");
    // Where it was the core that compared, when the job was to commit, nothing is done any more, and what is on disk stays.
    let stays = |error: &lithify::Error| error.to_string().contains("the core panicked");
    if told.as_ref().is_err_and(|error| !stays(error)) {
        let live: usize = w.db.stats().levels.iter().map(|l| l.files).sum();
        // Inputs of a job that ended well before the one that panicked go in the background.
        until(&format!("{at}: no table is left over"), || tables(&fs) == live);
    }
    within(LONGEST, "a close", move || w.close());
    (told, events(&fs))
}

/// Where every worker panics the compaction ends: the caller is told, nothing is left of the parts that
/// were done, and the database closes.
#[test]
fn a_part_that_panics_for_every_worker_takes_all_along() {
    let mut panics = 0;
    for at in [40, 2_000, 5_000, 9_000, 13_000] {
        if let (Err(error), _) = panicking(at, false) {
            panics += 1;
            assert_eq!(error.kind(), ErrorKind::Internal, "{error}");
            assert!(error.to_string().contains("too many comparisons"), "{error}");
        }
    }
    assert!(panics > 2, "{panics} compactions panicked");
}

/// A part whose co-worker panicked is done by another worker, and the compaction ends well. Which worker
/// it is that panics is up to the threads.
#[test]
fn a_part_whose_co_worker_panics_is_done_again() {
    let mut made_good = 0;
    // Some thousands of comparisons are made before the parts begin.
    for at in (9_000..40_000).step_by(700) {
        let (told, log) = panicking(at, true);
        match (told, log.contains("part_back")) {
            (Ok(()), true) => {
                assert!(log.contains("too many comparisons"), "{log}");
                made_good += 1;
            }
            (Ok(()), false) => {}
            (Err(error), _) => assert!(error.to_string().contains("too many comparisons")),
        }
        if made_good > 2 {
            return;
        }
    }
    assert!(made_good > 0, "no co-worker panicked");
}

/// On a slow disk the parts are seen at work, each with its progress; a close calls them off, and
/// nothing is left of them.
#[test]
fn parts_are_seen_and_called_off() {
    let fs = MemFs::new();
    let fast = Builder::new(by_hand(4)).env(env(Arc::new(fs.clone()), 4)).open("/db").unwrap();
    let mut w = World::new(fast, 1);
    (0..6).for_each(|_| w.round());
    let model = w.model.clone();
    w.close();

    let machine = env(Arc::new(fs.clone()), 4);
    let slow = Throttle { bandwidth: Bandwidth::Shared(300_000), ..Throttle::default() };
    let slow = ThrottledFs::new(machine.fs, machine.rt.clone(), slow);
    let machine = Env { fs: Arc::new(slow), rt: machine.rt };
    let db = Builder::new(by_hand(4)).env(machine).open("/db").unwrap();
    let compacting = {
        let db = db.clone();
        std::thread::spawn(move || db.compact_range(None, None))
    };
    let late = Instant::now() + LONGEST;
    let told = loop {
        let told = db.explain();
        let busy = |j: &lithify::JobReport| {
            j.parts.iter().filter(|p| p.stage == PartStage::Working && p.done > 0).count()
        };
        if told.jobs.first().is_some_and(|j| busy(j) > 1) {
            break told;
        }
        assert!(Instant::now() < late, "no two parts were seen at work: {told}");
        std::thread::sleep(Duration::from_millis(1));
    };
    let job = &told.jobs[0];
    assert_eq!((job.parts.len(), told.running), (4, 1), "{told}");
    let bytes: u64 = job.parts.iter().map(|p| p.bytes).sum();
    assert!(bytes <= job.bytes && bytes > job.bytes / 2, "the blocks of the tables: {told}");
    assert!(job.parts.iter().all(|p| p.done <= p.bytes && p.percent() <= 100), "{told}");
    assert!(told.to_string().contains("% in 4 parts ("), "{told}");
    within(LONGEST, "a close", move || db.close().unwrap());
    assert!(compacting.join().unwrap().is_err());

    let db =
        Builder::new(by_hand(4)).env(env(Arc::new(fs.clone()), 4)).open_read_only("/db").unwrap();
    let live: usize = db.stats().levels.iter().map(|l| l.files).sum();
    assert_eq!(tables(&fs), live, "tables are left over");
    assert_eq!(scan(&db).unwrap(), model);
}

/// With one thread for compactions a job in eight parts ends, and so do those beside it.
#[test]
fn one_thread_is_enough() {
    within(LONGEST, "compactions on one thread", || {
        let mut settings = tiny();
        settings.compaction_threads = 2;
        settings.max_subcompactions = 8;
        settings.file_bytes = 16 << 10;
        let fs = MemFs::new();
        let db = Builder::new(settings).env(env(Arc::new(fs.clone()), 1)).open("/db").unwrap();
        let mut w = World::new(db, 7);
        (0..8).for_each(|_| w.round());
        w.db.compact_range(None, None).unwrap();
        assert!(w.db.wait_idle(Some(LONGEST)).unwrap());
        w.check("one thread");
        w.close();
        assert!(events(&fs).contains("part_start"));
    });
}

/// Wrong numbers of parts are refused by name.
#[test]
fn wrong_numbers_are_refused() {
    for parts in [0, 65] {
        let settings = by_hand(parts);
        let error = settings.check().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        let text = format!("max_subcompactions = {parts} is not in 1 to 64");
        assert!(error.to_string().contains(&text), "{error}");
    }
    by_hand(64).check().unwrap();
}
