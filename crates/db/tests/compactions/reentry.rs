//! User code that calls the database which is calling it: every kind of callback with every call ends at
//! once, with an answer or with `InvalidArgument`, and what it may not do harms nothing.
#![allow(clippy::disallowed_methods, reason = "threads and clocks of the test's own")]

use std::cell::Cell;
use std::cmp::Ordering;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use lithify::{
    Builder, CancelToken, ColumnFamilyOptions, CompactOptions, CompactionFilter, Comparator, Db,
    DbEvent, Decision, ErrorKind, EventListener, FilterContext, MergeOperator, PrefixExtractor,
    ReadOptions, Result, Settings, TransactionOptions, WriteBatch,
};
use lithify_env::sync::Mutex;
use lithify_env::{Env, RtOptions};

/// Longest that a cell may take; one that hangs takes for ever.
const LIMIT: Duration = Duration::from_secs(20);
/// Most calls of one cell.
const CALLS: usize = 60;

/// What user code does when it is called, and what came of it.
type Told = Vec<std::result::Result<(), ErrorKind>>;
type Call = Arc<dyn Fn(&Db) -> Result<()> + Send + Sync>;

#[derive(Default)]
struct State {
    armed: Option<(Db, Call)>,
    told: Told,
}

/// Does the call while it is armed; not while a call of its own is under way.
#[derive(Clone, Default)]
struct Hook(Arc<Mutex<State>>);

thread_local!(static BUSY: Cell<bool> = const { Cell::new(false) });

impl Hook {
    fn fire(&self) {
        if BUSY.get() {
            return;
        }
        let Some((db, call)) = self.0.lock().armed.clone() else { return };
        if self.0.lock().told.len() >= CALLS {
            return;
        }
        BUSY.set(true);
        // What can't answer with an error says it by a panic.
        let told = catch_unwind(AssertUnwindSafe(|| call(&db)));
        let told = told.map_or(Err(ErrorKind::InvalidArgument), |told| told.map_err(|e| e.kind()));
        self.0.lock().told.push(told);
        drop(db);
        BUSY.set(false);
    }
    fn arm(&self, db: &Db, call: &Call) {
        self.0.lock().armed = Some((db.clone(), call.clone()));
    }
    fn disarm(&self) -> Told {
        let mut state = self.0.lock();
        let (armed, told) = (state.armed.take(), std::mem::take(&mut state.told));
        drop(state);
        drop(armed);
        told
    }
}

struct Order(Hook);
impl Comparator for Order {
    fn name(&self) -> &'static str {
        "reentry.order"
    }
    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        self.0.fire();
        a.cmp(b)
    }
    fn equal_is_identical(&self) -> bool {
        true
    }
}

struct Join(Hook);
impl MergeOperator for Join {
    fn name(&self) -> &'static str {
        "reentry.join"
    }
    fn full_merge(&self, _: &[u8], base: Option<&[u8]>, all: &[&[u8]]) -> Result<Vec<u8>> {
        self.0.fire();
        Ok([base.unwrap_or_default(), &all.concat()].concat())
    }
    fn partial_merge(&self, _: &[u8], older: &[u8], newer: &[u8]) -> Option<Vec<u8>> {
        self.0.fire();
        Some([older, newer].concat())
    }
}

struct Sieve(Hook);
impl CompactionFilter for Sieve {
    fn name(&self) -> &str {
        "reentry.sieve"
    }
    fn filter<'a>(&self, _: &FilterContext, _: &[u8], _: &'a [u8]) -> Decision<'a> {
        self.0.fire();
        Decision::Keep
    }
}

struct Front(Hook);
impl PrefixExtractor for Front {
    fn name(&self) -> &str {
        "reentry.front"
    }
    fn prefix<'a>(&self, key: &'a [u8]) -> Option<&'a [u8]> {
        self.0.fire();
        key.get(..1)
    }
}

struct Ear(Hook);
impl EventListener for Ear {
    fn on_event(&self, _: &DbEvent) {
        self.0.fire();
    }
}

/// One kind of callback, where it is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Where {
    OrderInWrite,
    OrderInWork,
    OrderInOpen,
    MergeInRead,
    MergeInFlush,
    MergeInCompaction,
    Filter,
    PrefixInFlush,
    Listener,
}

const WHERE: [Where; 9] = [
    Where::OrderInWrite,
    Where::OrderInWork,
    Where::OrderInOpen,
    Where::MergeInRead,
    Where::MergeInFlush,
    Where::MergeInCompaction,
    Where::Filter,
    Where::PrefixInFlush,
    Where::Listener,
];

fn settings() -> Settings {
    let mut settings = Settings::default();
    settings.l0_trigger = 16;
    settings
}

fn open(at: Where, hook: &Hook, env: &Env) -> Result<Db> {
    let (h, none) = (hook.clone(), Hook::default);
    let of = |wheres: &[Where]| if wheres.contains(&at) { h.clone() } else { none() };
    let merges = [Where::MergeInRead, Where::MergeInFlush, Where::MergeInCompaction];
    let orders = [Where::OrderInWrite, Where::OrderInWork, Where::OrderInOpen];
    Builder::new(settings())
        .comparator(Arc::new(Order(of(&orders))))
        .merge_operator(Arc::new(Join(of(&merges))))
        .compaction_filter(Arc::new(Sieve(of(&[Where::Filter]))))
        .prefix_extractor(Arc::new(Front(of(&[Where::PrefixInFlush]))))
        .listener(Arc::new(Ear(of(&[Where::Listener]))))
        .env(env.clone())
        .open("db")
}

fn puts(db: &Db, from: u32) -> Result<()> {
    (from..from + 20).try_for_each(|n| db.put(n.to_be_bytes(), b"v"))
}

fn merges(db: &Db) -> Result<()> {
    (0..20u32).try_for_each(|n| db.merge((n % 3).to_be_bytes(), b"+"))
}

/// Has the callback called, with `call` in it; what the calls gave.
fn cell(at: Where, call: &Call) -> Told {
    let env = Env::in_memory(RtOptions::default());
    let hook = Hook::default();
    let db = open(at, &hook, &env).unwrap();
    puts(&db, 0).unwrap();
    db.flush().unwrap();
    puts(&db, 10).unwrap();
    merges(&db).unwrap();
    let snapshot = db.snapshot();
    merges(&db).unwrap();
    drop(snapshot);
    if !matches!(
        at,
        Where::OrderInWrite | Where::MergeInFlush | Where::MergeInRead | Where::PrefixInFlush
    ) {
        db.flush().unwrap();
    }
    if at == Where::OrderInOpen {
        // A table of many blocks: as it opens, their keys are compared.
        (0..200u32).try_for_each(|n| db.put(n.to_be_bytes(), [b'v'; 1000])).unwrap();
        db.put(5u32.to_be_bytes(), b"v").unwrap();
        db.flush().unwrap();
    }
    hook.arm(&db, call);
    // What the call has closed ends with errors: they are the cell's business, not ours.
    let _ = match at {
        Where::OrderInWrite => puts(&db, 1000),
        Where::OrderInWork | Where::MergeInCompaction | Where::Filter => {
            db.compact_range(None, None)
        }
        Where::OrderInOpen => db.iter().map(|mut iter| iter.seek_to_first()),
        Where::MergeInRead => db.get(0u32.to_be_bytes()).map(drop),
        Where::MergeInFlush | Where::PrefixInFlush => db.flush(),
        Where::Listener => puts(&db, 50).and_then(|()| db.flush()),
    };
    if at == Where::Listener {
        // Events are delivered a moment later.
        for _ in 0..500 {
            if !hook.0.lock().told.is_empty() {
                break;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }
    let told = hook.disarm();
    let closed = db.put(b"", b"after").err().map(|e| e.kind());
    if closed.is_none() {
        // It is whole, and goes on.
        db.flush().unwrap();
        db.compact_range(None, None).unwrap();
        assert!(db.wait_idle(Some(LIMIT / 2)).unwrap());
        assert_eq!(db.get(b"").unwrap().as_deref(), Some(&b"after"[..]));
        assert_eq!(db.get(5u32.to_be_bytes()).unwrap().as_deref(), Some(&b"v"[..]));
    }
    let _ = db.close();
    told
}

/// Runs `what` on another thread, which must end in time.
#[track_caller]
fn in_time<T: Send + 'static>(name: &str, what: impl FnOnce() -> T + Send + 'static) -> T {
    let (tell, told) = channel();
    std::thread::spawn(move || tell.send(what()));
    match told.recv_timeout(LIMIT) {
        Ok(told) => told,
        Err(RecvTimeoutError::Timeout) => panic!("{name} hangs"),
        Err(RecvTimeoutError::Disconnected) => panic!("{name} panicked"),
    }
}

fn call(of: impl Fn(&Db) -> Result<()> + Send + Sync + 'static) -> Call {
    Arc::new(of)
}

/// Runs a call in each kind of callback; what is none of `fine` is an error.
#[track_caller]
fn row(name: &str, call: &Call, refused: bool) {
    for at in WHERE {
        let (what, call) = (format!("{name} from {at:?}"), call.clone());
        let told = in_time(&what, move || cell(at, &call));
        println!(
            "{what}: {} calls, {} refused",
            told.len(),
            told.iter().filter(|t| t.is_err()).count()
        );
        assert!(!told.is_empty(), "{what}: the callback was never called");
        for one in &told {
            let fine = matches!(one, Ok(()) | Err(ErrorKind::InvalidArgument));
            assert!(fine, "{what}: {one:?}");
        }
        let of_reads = [Where::MergeInRead, Where::OrderInOpen];
        let within = !of_reads.contains(&at) && at != Where::Listener;
        match (refused, within) {
            // Some comparisons are the caller's own, before anything is held.
            (true, true) => {
                assert!(told.contains(&Err(ErrorKind::InvalidArgument)), "{what}: {told:?}")
            }
            // What a read does itself may have jobs call the same operator.
            (true, false) => assert!(told.contains(&Ok(())), "{what}: {told:?}"),
            (false, _) => assert!(told.iter().all(|one| one.is_ok()), "{what}: {told:?}"),
        }
    }
}

#[test]
fn reads_work_from_anywhere() {
    row("get", &call(|db| db.get(7u32.to_be_bytes()).map(drop)), false);
    row("multi_get", &call(|db| db.multi_get(&[b"a", b"b"]).map(drop)), false);
    let scan = |db: &Db| {
        let snapshot = db.snapshot();
        let mut iter = db.iter_opt(&ReadOptions::at(&snapshot))?;
        iter.seek_to_first();
        while iter.valid() {
            iter.next();
        }
        iter.status()
    };
    row("a scan of a snapshot", &call(scan), false);
    let looks = |db: &Db| {
        drop((db.settings(), db.column_families(), db.clone(), WriteBatch::new()));
        db.column_family("default").map(drop)
    };
    row("a look at settings and families", &call(looks), false);
    let read = |db: &Db| {
        let txn = db.begin_transaction(TransactionOptions::optimistic());
        txn.get(7u32.to_be_bytes()).map(drop)
    };
    row("a transaction's read", &call(read), false);
}

#[test]
fn writes_are_refused_at_once() {
    row("put", &call(|db| db.put(b"x", b"y")), true);
    row("delete_range", &call(|db| db.delete_range(b"x", b"y")), true);
    row("merge", &call(|db| db.merge(b"x", b"y")), true);
    let batch = |db: &Db| {
        let mut batch = WriteBatch::new();
        batch.put(b"x", b"y")?;
        db.write(&batch)
    };
    row("write", &call(batch), true);
    for options in [TransactionOptions::optimistic, TransactionOptions::pessimistic] {
        let commit = move |db: &Db| {
            let mut txn = db.begin_transaction(options());
            txn.put(b"x", b"y")?;
            txn.commit()
        };
        row("commit", &call(commit), true);
    }
    row("sync", &call(Db::sync), true);
}

#[test]
fn what_waits_for_background_work_is_refused_at_once() {
    row("flush", &call(Db::flush), true);
    row("compact_range", &call(|db| db.compact_range(None, None)), true);
    row("wait_idle", &call(|db| db.wait_idle(Some(Duration::from_millis(1))).map(drop)), true);
    row("pause_background", &call(|db| db.pause_background().map(drop)), true);
    row("delete_files", &call(|db| db.delete_files_in_range(Some(b"zz"), Some(b"zzz"))), true);
}

#[test]
fn changes_of_the_whole_are_refused_at_once() {
    row("set_settings", &call(|db| db.set_settings(&[("l0_trigger", "18")])), true);
    let family = |db: &Db| {
        db.create_column_family("f", ColumnFamilyOptions::new())?;
        db.drop_column_family("f")
    };
    row("create and drop a family", &call(family), true);
    // The tests' callbacks run one at a time, so names do not meet.
    let copies = AtomicU64::new(0);
    let checkpoint = move |db: &Db| {
        let n = copies.fetch_add(1, SeqCst);
        db.checkpoint(format!("copy-{n}"))
    };
    row("checkpoint", &call(checkpoint), true);
    row("settle", &call(Db::settle), true);
}

/// Figures can't be refused: they are told, or, where only the core knows them and it is asking, panic.
#[test]
fn figures_never_hang() {
    let figures = |db: &Db| {
        drop((db.stats(), db.explain(), db.picture(), db.property("rocksdb.stats")));
        db.set_auto_compaction(true);
        Ok(())
    };
    for at in WHERE {
        let figures = call(figures);
        let told = in_time(&format!("figures from {at:?}"), move || cell(at, &figures));
        let panics = told.iter().any(|one| one.is_err());
        assert!(
            !panics || matches!(at, Where::OrderInWrite | Where::OrderInWork),
            "{at:?}: {told:?}"
        );
    }
}

/// A close from within is refused, and from a listener; from a read it is none of our business.
#[test]
fn a_close_from_within_is_refused() {
    let of_reads = [Where::MergeInRead, Where::OrderInOpen];
    for at in WHERE.into_iter().filter(|at| !of_reads.contains(at)) {
        let close = call(|db| db.clone().close());
        let told = in_time(&format!("close from {at:?}"), move || cell(at, &close));
        // The caller's own comparisons, before anything is held, may close.
        let refused = told.contains(&Err(ErrorKind::InvalidArgument));
        assert!(refused || at == Where::OrderInWork, "{at:?}: {told:?}");
    }
}

/// Calling off a compaction and ending a pause have no error to give. Where the core itself compares, it is
/// told of them a moment later.
#[test]
fn the_mind_hears_later_of_what_its_own_comparator_ends() {
    in_time("a comparator that calls off", || {
        let env = Env::in_memory(RtOptions::default());
        let hook = Hook::default();
        let db = open(Where::OrderInWork, &hook, &env).unwrap();
        for from in [0, 10] {
            puts(&db, from).unwrap();
            db.flush().unwrap();
        }
        db.compact_range(None, None).unwrap();
        puts(&db, 5).unwrap();
        db.flush().unwrap();
        let token = CancelToken::new();
        let slot = Arc::new(Mutex::new(Some((token.clone(), db.pause_background().unwrap()))));
        let other = db.clone();
        let compaction = std::thread::spawn(move || {
            let options = CompactOptions { cancel: Some(token), ..CompactOptions::default() };
            other.compact_range_opt(None, None, &options)
        });
        // It waits for the pause to end.
        std::thread::sleep(Duration::from_millis(100));
        let left = slot.clone();
        let ends = call(move |db| {
            // Figures are refused under the core's lock alone.
            if catch_unwind(AssertUnwindSafe(|| db.stats())).is_ok() {
                return Ok(());
            }
            let taken = left.lock().take();
            if let Some((token, pause)) = taken {
                token.cancel();
                drop(pause);
            }
            Ok(())
        });
        hook.arm(&db, &ends);
        // No table lies in this range as a whole.
        db.delete_files_in_range(Some(&5u32.to_be_bytes()), Some(&8u32.to_be_bytes())).unwrap();
        let told = hook.disarm();
        assert!(slot.lock().is_none(), "the core never compared: {told:?}");
        assert!(told.iter().all(|one| one.is_ok()), "{told:?}");
        let cancelled = compaction.join().unwrap().unwrap_err();
        assert_eq!(cancelled.kind(), ErrorKind::Cancelled, "{cancelled}");
        // It is whole, and its background work goes on.
        puts(&db, 20).unwrap();
        db.flush().unwrap();
        db.compact_range(None, None).unwrap();
        db.close().unwrap();
    });
}

/// A filter of one database may write to another, flush it and compact it; and back into its own it may not,
/// however deep it is called.
#[test]
fn callbacks_reach_other_databases() {
    in_time("two databases", || {
        let (env_a, env_b) =
            (Env::in_memory(RtOptions::default()), Env::in_memory(RtOptions::default()));
        let (hook_a, hook_b) = (Hook::default(), Hook::default());
        let a = open(Where::Filter, &hook_a, &env_a).unwrap();
        let b = open(Where::OrderInWrite, &hook_b, &env_b).unwrap();
        puts(&a, 0).unwrap();
        a.flush().unwrap();
        puts(&a, 10).unwrap();
        a.flush().unwrap();
        let writes = call(|b| {
            puts(b, 0)?;
            b.flush()?;
            b.compact_range(None, None)?;
            b.get(0u32.to_be_bytes()).map(drop)
        });
        hook_a.arm(&b, &writes);
        a.compact_range(None, None).unwrap();
        let told = hook_a.disarm();
        assert!(!told.is_empty() && told.iter().all(|one| one.is_ok()), "{told:?}");
        // A's filter puts into B, whose comparator puts into A: that is from within.
        let inner = Arc::new(Mutex::new(Vec::new()));
        let (seen, into_a) = (inner.clone(), a.clone());
        let deep = call(move |b| {
            BUSY.set(false);
            let put = b.put(b"deep", b"v");
            BUSY.set(true);
            put
        });
        let back = call(move |_| {
            seen.lock().push(into_a.put(b"back", b"v").map_err(|e| e.kind()));
            Ok(())
        });
        hook_a.arm(&b, &deep);
        hook_b.arm(&b, &back);
        a.compact_range_opt(
            None,
            None,
            &lithify::CompactOptions { rewrite: true, ..Default::default() },
        )
        .unwrap();
        hook_a.disarm();
        hook_b.disarm();
        let inner = std::mem::take(&mut *inner.lock());
        assert!(!inner.is_empty());
        assert!(inner.iter().all(|one| *one == Err(ErrorKind::InvalidArgument)), "{inner:?}");
    });
}

/// While several threads write, each one's comparator puts into the database: all are refused, none waits
/// for another.
#[test]
fn comparators_of_a_group_are_refused() {
    in_time("a group of writers", || {
        let env = Env::in_memory(RtOptions::default());
        let hook = Hook::default();
        let db = open(Where::OrderInWrite, &hook, &env).unwrap();
        puts(&db, 0).unwrap();
        hook.arm(&db, &call(|db| db.put(b"x", b"y")));
        let threads: Vec<_> = (0..4u32)
            .map(|t| {
                let db = db.clone();
                std::thread::spawn(move || {
                    for round in 0..20u32 {
                        let mut batch = WriteBatch::new();
                        for n in 0..100u32 {
                            batch.put([t, round, n].map(u32::to_be_bytes).concat(), b"v").unwrap();
                        }
                        db.write(&batch).unwrap();
                    }
                })
            })
            .collect();
        threads.into_iter().for_each(|t| t.join().unwrap());
        let told = hook.disarm();
        assert!(told.iter().all(|one| *one == Err(ErrorKind::InvalidArgument)), "{told:?}");
        assert!(!told.is_empty());
        db.close().unwrap();
    });
}

/// Watchers of copies and checks may call the database: nothing is held that they could want.
#[test]
fn watchers_may_call() {
    in_time("watchers", || {
        let env = Env::in_memory(RtOptions::default());
        let db = open(Where::Filter, &Hook::default(), &env).unwrap();
        puts(&db, 0).unwrap();
        let backups = lithify::Backups::open_in("backups", env.clone()).unwrap();
        let mut watched = 0;
        let made = backups.create(&db, &mut |_| {
            watched += 1;
            puts(&db, 100).unwrap();
            db.get(5u32.to_be_bytes()).unwrap();
            db.flush().unwrap();
            db.compact_range(None, None).unwrap();
        });
        backups.verify(made.unwrap().id, &mut |_| puts(&db, 200).unwrap()).unwrap();
        assert!(watched > 0);
        db.close().unwrap();
    });
}

/// Spans as long as can be said are no overflow: they mean for ever.
#[test]
fn the_longest_spans_mean_for_ever() {
    in_time("the longest spans", || {
        for span in [Duration::MAX, Duration::from_secs(u64::MAX), Duration::from_nanos(1)] {
            let env = Env::in_memory(RtOptions::default());
            let db = Builder::new(Settings::default()).env(env).open_ttl("db", span).unwrap();
            db.put(b"a", b"1").unwrap();
            assert_eq!(db.get(b"a").unwrap().as_deref(), Some(&b"1"[..]));
            db.set_ttl(span);
            assert_eq!(db.get(b"a").unwrap().as_deref(), Some(&b"1"[..]));
            db.close().unwrap();
            let env = Env::in_memory(RtOptions::default());
            let own = ColumnFamilyOptions::new().ttl(span);
            let db = Builder::new(Settings::default()).env(env).open("db").unwrap();
            drop(db.create_column_family("f", own));
            let options = TransactionOptions::pessimistic().with_lock_timeout(span);
            let mut txn = db.begin_transaction(options);
            txn.put(b"a", b"1").unwrap();
            txn.commit().unwrap();
            assert!(db.wait_idle(Some(Duration::MAX)).unwrap());
            db.close().unwrap();
        }
    });
}
