//! Last handles that go away in user code which the database waits for: it is closed all the same.
#![allow(clippy::disallowed_methods, reason = "threads and clocks of the test's own")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;

use crate::common::within;
use crate::lingers::Lingers;
use lithify::{
    Builder, CompactionFilter, Db, DbEvent, Decision, Durability, EventListener, FilterContext,
    Result, Settings, WriteOptions,
};
use lithify_env::sync::Mutex;
use lithify_env::{Class, Env, Fs, MemFs, RtOptions};

/// Longest that a test may take; one that hangs takes for ever.
const LIMIT: Duration = Duration::from_secs(20);

fn puts(db: &Db, from: u32) -> Result<()> {
    (from..from + 20).try_for_each(|n| db.put(n.to_be_bytes(), b"v"))
}

/// Opens what another handle is closing.
fn open_again(env: &Env, name: &str) -> Db {
    let again = (0..1000).find_map(|_| {
        std::thread::sleep(Duration::from_millis(5));
        Builder::new(Settings::default()).env(env.clone()).open(name).ok()
    });
    again.expect("the database was closed and opens again")
}

/// Drops the handle that it is given.
#[derive(Default)]
struct Dropper {
    slot: Mutex<Option<Db>>,
    inside: AtomicBool,
    alone: AtomicBool,
}

impl CompactionFilter for Dropper {
    fn name(&self) -> &str {
        "reentry.dropper"
    }
    fn filter<'a>(&self, _: &FilterContext, _: &[u8], _: &'a [u8]) -> Decision<'a> {
        self.inside.store(true, SeqCst);
        while !self.alone.load(SeqCst) {
            std::thread::sleep(Duration::from_millis(1));
        }
        drop(self.slot.lock().take());
        Decision::Keep
    }
}

/// The last handle goes away in a filter, on the thread of a compaction: the database is closed all the
/// same, and opens again. A close flushes and ends logs, and keeps none of the threads that do so.
#[test]
fn the_last_handle_may_go_in_a_filter() {
    for (threads, databases) in [(2, 1), (1, 1), (2, 2)] {
        within(
            LIMIT,
            &format!("{databases} last handles in filters, {threads} threads"),
            move || {
                let env = Env::in_memory(RtOptions {
                    io_threads: threads,
                    compact_threads: 8,
                    ..RtOptions::default()
                });
                let open = |n: usize| {
                    let dropper = Arc::new(Dropper::default());
                    let builder = Builder::new(Settings::default()).env(env.clone());
                    let db =
                        builder.compaction_filter(dropper.clone()).open(n.to_string()).unwrap();
                    // Enough for a compaction, and not so much that writers would wait for it.
                    for _ in 0..Settings::default().l0_trigger + 2 {
                        puts(&db, 0).unwrap();
                        db.flush().unwrap();
                    }
                    while !dropper.inside.load(SeqCst) {
                        std::thread::sleep(Duration::from_millis(1));
                    }
                    // The close has this to flush.
                    db.put_opt(b"late", b"v", &WriteOptions::at(Durability::NoWal)).unwrap();
                    *dropper.slot.lock() = Some(db);
                    dropper
                };
                let droppers: Vec<Arc<Dropper>> = (0..databases).map(open).collect();
                droppers.iter().for_each(|dropper| dropper.alone.store(true, SeqCst));
                for (n, dropper) in droppers.iter().enumerate() {
                    let again = open_again(&env, &n.to_string());
                    assert!(dropper.slot.lock().is_none());
                    assert!(again.get(5u32.to_be_bytes()).unwrap().is_some());
                    assert!(again.get(b"late").unwrap().is_some());
                    again.close().unwrap();
                }
            },
        );
    }
}

/// What a listener drops last is closed by another thread.
#[test]
fn a_listener_may_drop_the_last_handle() {
    within(LIMIT, "a listener that drops the last handle", || {
        struct Dropper(Mutex<Option<Db>>);
        impl EventListener for Dropper {
            fn on_event(&self, event: &DbEvent) {
                if event.name() == "flush_end" {
                    // The other handle is dropped meanwhile.
                    std::thread::sleep(Duration::from_millis(50));
                    drop(self.0.lock().take());
                }
            }
        }
        let env = Env::in_memory(RtOptions::default());
        let dropper = Arc::new(Dropper(Mutex::default()));
        let builder = Builder::new(Settings::default()).env(env.clone()).listener(dropper.clone());
        let db = builder.open("db").unwrap();
        *dropper.0.lock() = Some(db.clone());
        db.put(b"a", b"1").unwrap();
        db.flush().unwrap();
        drop(db);
        let again = open_again(&env, "db");
        assert_eq!(again.get(b"a").unwrap().as_deref(), Some(&b"1"[..]));
    });
}

/// A database that is closed right after a compaction leaves no table behind that is not in its tree, although the
/// job still holds its inputs for a while.
#[test]
fn a_close_right_after_a_compaction_leaves_no_input_behind() {
    let fs = MemFs::new();
    let rt = Lingers::new(RtOptions::default(), &[Class::Compact], Duration::from_millis(200));
    let env = Env { fs: Arc::new(fs.clone()), rt: Arc::new(rt) };
    let mut settings = Settings::default();
    settings.auto_compaction = false;
    let db = Builder::new(settings).env(env).open("/db").unwrap();
    for from in [0, 10] {
        puts(&db, from).unwrap();
        db.flush().unwrap();
    }
    db.compact_range(None, None).unwrap();
    db.close().unwrap();
    let names = fs.list(std::path::Path::new("/db")).unwrap();
    let tables: Vec<_> = names.iter().filter(|entry| entry.name.ends_with(".sst")).collect();
    assert_eq!(tables.len(), 1, "{tables:?}");
}
