//! Memory that the system refuses (reliability F14): in a short life of a database with large values
//! one large allocation after the other is refused. Each time the call that needed it fails with a
//! typed error and has written nothing, or no caller notices; a job that needed it is tried again.
//!
//! Blocks that are built, read or scanned are not asked for, and end the process when they are refused;
//! so each life is a process of its own, and one that ended so must have left what it acknowledged:
//! that is no worse than a kill. How many do is counted, and no write may be among them.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "an allocator of its own, and processes that it may end"
)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::io::Write as _;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering::Relaxed};

use crate::common::child::number_from;
use crate::common::{Content, scan, tiny};
use lithify::{Db, Durability, Error, ErrorKind, Settings, WriteBatch, WriteOptions};

/// Allocations of this size and more are counted, and one of them is refused.
const LARGE: usize = 64 << 10;
const DIRECTORY: &str = "LITHIFY_MEMORY_DIRECTORY";
const NTH: &str = "LITHIFY_MEMORY_NTH";

/// Large allocations until one is refused; negative when none is.
static LEFT: AtomicI64 = AtomicI64::new(-1);
static REFUSED: AtomicBool = AtomicBool::new(false);

struct Refusing;

#[global_allocator]
static ALLOCATOR: Refusing = Refusing;

/// Whether this one is refused.
fn refuses(bytes: usize) -> bool {
    if bytes < LARGE || LEFT.load(Relaxed) < 0 || LEFT.fetch_sub(1, Relaxed) != 0 {
        return false;
    }
    REFUSED.store(true, Relaxed);
    if IS_CLIENT.get() {
        // Asks for no memory.
        let _ = std::io::stderr().write_all(CLIENT.as_bytes());
    }
    true
}

/// What is said when the refusal met the client's own thread, and not a job's.
const CLIENT: &str = "refused to the client\n";

thread_local! {
    static IS_CLIENT: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

// SAFETY: every call goes to `System` unchanged, or is answered by null, which an allocator may do.
unsafe impl GlobalAlloc for Refusing {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if refuses(layout.size()) {
            return std::ptr::null_mut();
        }
        // SAFETY: the caller's promises are those that `System` asks for.
        unsafe { System.alloc(layout) }
    }
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if refuses(layout.size()) {
            return std::ptr::null_mut();
        }
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }
    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(at, layout) }
    }
    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if refuses(size) {
            return std::ptr::null_mut();
        }
        // SAFETY: as above.
        unsafe { System.realloc(at, layout, size) }
    }
}

fn settings() -> Settings {
    let mut s = tiny();
    s.memtable_bytes = 512 << 10;
    s.file_bytes = 256 << 10;
    s
}

/// One step of a life; the same in each.
enum Deed {
    Put(u32, usize, Durability),
    Batch([u32; 3], usize),
    Delete(u32),
    Get(u32),
    Scan,
    Flush,
    Compact,
}

impl Deed {
    /// How the notes call it: a write, a get, a scan, or work for jobs.
    fn mark(&self) -> &'static str {
        match self {
            Deed::Put(..) | Deed::Batch(..) | Deed::Delete(_) => "w",
            Deed::Get(_) => "g",
            Deed::Scan => "s",
            Deed::Flush | Deed::Compact => "j",
        }
    }
}

fn deeds() -> Vec<Deed> {
    use Durability::{Buffered, Os, Sync};
    let mut all = Vec::new();
    for round in 0..3 {
        for n in 0..6 {
            let durability = [Buffered, Os, Sync][(n + round) as usize % 3];
            all.push(Deed::Put(n, 70_000 + 30_000 * n as usize, durability));
            all.push(Deed::Get(n));
        }
        all.push(Deed::Batch([round, round + 4, round + 7], 120_000));
        all.push(Deed::Delete(round + 1));
        all.push(Deed::Flush);
        all.push(Deed::Get(round + 4));
        all.push(Deed::Scan);
    }
    all.push(Deed::Compact);
    all.push(Deed::Get(5));
    all.push(Deed::Put(9, 300_000, Sync));
    all
}

fn key(n: u32) -> Vec<u8> {
    format!("key{n:03}").into_bytes()
}

/// Half compressible, so that reads decompress.
fn value(step: usize, len: usize) -> Vec<u8> {
    let mut rng = fastrand::Rng::with_seed(step as u64);
    (0..len).map(|i| if i % 2 == 0 { rng.u8(..) } else { step as u8 }).collect()
}

/// What a deed changes.
fn apply(step: usize, deed: &Deed, content: &mut Content) {
    match deed {
        Deed::Put(n, len, _) => drop(content.insert(key(*n), value(step, *len))),
        Deed::Batch(keys, len) => {
            keys.iter().for_each(|n| drop(content.insert(key(*n), value(step, *len))));
        }
        Deed::Delete(n) => drop(content.remove(&key(*n))),
        Deed::Get(_) | Deed::Scan | Deed::Flush | Deed::Compact => {}
    }
}

/// Does it; reads are held against `content`.
fn run(db: &Db, step: usize, deed: &Deed, content: &Content) -> Result<(), Error> {
    match deed {
        Deed::Put(n, len, durability) => {
            let value = value(step, *len);
            armed(|| db.put_opt(key(*n), &value, &WriteOptions::at(*durability)))
        }
        Deed::Batch(keys, len) => {
            let value = value(step, *len);
            armed(|| {
                let mut batch = WriteBatch::new();
                keys.iter().try_for_each(|n| batch.put(key(*n), &value))?;
                db.write(&batch)
            })
        }
        Deed::Delete(n) => armed(|| db.delete(key(*n))),
        Deed::Get(n) => {
            let found = armed(|| db.get(key(*n)))?;
            assert_eq!(found.as_deref(), content.get(&key(*n)).map(Vec::as_slice), "step {step}");
            Ok(())
        }
        Deed::Scan => armed(|| {
            let mut iter = db.iter()?;
            let mut seen = 0;
            iter.seek_to_first();
            while iter.valid() {
                assert!(content.get(iter.key()).is_some_and(|v| v == iter.value()), "step {step}");
                seen += 1;
                iter.next();
            }
            iter.status()?;
            assert_eq!(seen, content.len(), "step {step}");
            Ok(())
        }),
        Deed::Flush => armed(|| db.flush()),
        Deed::Compact => armed(|| db.compact_range(None, None)),
    }
}

/// Lets the database alone be refused, and not the test.
fn armed<T>(act: impl FnOnce() -> T) -> T {
    let left = PAUSED.swap(-1, Relaxed);
    if left >= 0 {
        LEFT.store(left, Relaxed);
    }
    let result = act();
    PAUSED.store(LEFT.swap(-1, Relaxed), Relaxed);
    result
}

/// [`LEFT`] while the test itself is at work. Jobs that go on meanwhile are refused nothing.
static PAUSED: AtomicI64 = AtomicI64::new(-1);

/// The other process: a life in which allocation number n is refused. It notes how each deed begins
/// and ends.
#[test]
fn the_life() {
    let Ok(directory) = std::env::var(DIRECTORY) else { return };
    let directory = Path::new(&directory);
    let mut notes = std::fs::File::create(directory.join("notes")).unwrap();
    PAUSED.store(number_from(NTH, 0) as i64, Relaxed);
    IS_CLIENT.set(true);
    let mut note = |text: &str| notes.write_all(text.as_bytes()).unwrap();
    let home = directory.join("db");
    note("o");
    let db = match armed(|| Db::open(&home, settings())) {
        Ok(db) => db,
        Err(e) => {
            assert_eq!(e.kind(), ErrorKind::LimitExceeded, "{e:?}");
            std::process::exit(20);
        }
    };
    note(".");
    let mut content = Content::new();
    let mut refused = false;
    for (step, deed) in deeds().iter().enumerate() {
        note(deed.mark());
        match run(&db, step, deed, &content) {
            Ok(()) => {
                apply(step, deed, &mut content);
                note("+");
            }
            Err(e) => {
                assert_eq!(e.kind(), ErrorKind::LimitExceeded, "step {step}: {e:?}");
                refused = true;
                note("-");
            }
        }
    }
    note("c");
    db.wait_idle(None).unwrap();
    assert_eq!(scan(&db).unwrap(), content, "whatever was refused, this is what was written");
    armed(|| db.close()).unwrap();
    note(".");
    let hit = REFUSED.load(Relaxed);
    std::process::exit(if refused {
        20
    } else if hit {
        21
    } else {
        22
    });
}

/// What the notes say must be there: all that was acknowledged, and what the last deed may have done.
fn judge(notes: &str, found: &Content) -> bool {
    let marks: Vec<char> = notes.chars().skip(2).collect();
    let (mut content, mut step) = (Content::new(), 0);
    let deeds = deeds();
    for pair in marks.chunks(2) {
        match pair {
            ['w' | 'g' | 's' | 'j', '+'] => apply(step, &deeds[step], &mut content),
            ['w' | 'g' | 's' | 'j'] => {
                let mut after = content.clone();
                apply(step, &deeds[step], &mut after);
                return *found == content || *found == after;
            }
            _ => {}
        }
        step += 1;
    }
    *found == content
}

#[test]
fn each_large_allocation_is_refused_in_turn() {
    let every = number_from("LITHIFY_REFUSALS_EVERY", 12).max(1);
    let (mut typed, mut unnoticed, mut ended, mut during) = (0, 0, 0, String::new());
    let mut nth = 0;
    loop {
        let scratch = tempfile::tempdir().unwrap();
        let life = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "refused_memory::the_life", "--nocapture", "--test-threads=1"])
            .env(DIRECTORY, scratch.path())
            .env(NTH, nth.to_string())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&life.stderr);
        let notes = std::fs::read_to_string(scratch.path().join("notes")).unwrap();
        match life.status.code() {
            Some(20) => typed += 1,
            Some(21) => unnoticed += 1,
            Some(22) => break,
            _ => {
                assert!(said.contains("memory allocation of"), "{nth}: {notes}: {said}");
                ended += 1;
                let by_client = said.contains(CLIENT.trim());
                during.push(if by_client { notes.chars().last().unwrap_or('o') } else { 'j' });
            }
        }
        let db = Db::open(scratch.path().join("db"), settings()).unwrap();
        let found = scan(&db).unwrap();
        assert!(judge(&notes, &found), "{nth}: {notes} left {} keys", found.len());
        nth += every;
    }
    println!(
        "{typed} typed errors, {unnoticed} unnoticed, {ended} processes ended (during {during:?})"
    );
    assert!(typed >= 3, "only {typed} calls of a life were refused memory");
    assert!(!during.contains('w'), "a write ended the process: {during}");
}
