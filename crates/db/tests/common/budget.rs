//! A life that shows what `memory_budget` bounds: fill, compaction, scan, 64 open iterators beside puts, gets
//! of several threads beside puts with the cache full, gets while nothing is written, for which the cache borrows,
//! and puts that take it back. Each phase's peak of resident memory is told.
//!
//! Keeps: the peak is the system's (`VmHWM`, begun anew for each phase), less what the process had before it
//! opened the database; so code, stacks, allocators and all that is kept of freed memory count.
//! Shared by the test that holds the figure and by the example `memory`, which prints it.
#![allow(dead_code, unreachable_pub, reason = "the test and the example each use a part")]
#![allow(clippy::disallowed_methods, reason = "a process is measured by itself")]

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use lithify::{Budget, Db, DbIter, Durability, Policy, Settings, WriteOptions};

/// Bytes of a key and a value together.
pub const ENTRY: u64 = 116;
/// Iterators open at once.
const ITERATORS: usize = 64;
/// Threads that get beside the one that puts.
const READERS: u64 = 4;
/// How long gets last while nothing is written: the cache borrows after a second.
const AT_REST: std::time::Duration = std::time::Duration::from_secs(4);
const MIB: f64 = (1 << 20) as f64;

/// One phase of the life, as it was measured.
pub struct Phase {
    /// What was done.
    pub name: &'static str,
    /// Greatest resident memory in it, less what the process had before, bytes.
    pub peak: u64,
    /// Bytes of metadata of open tables at its end.
    pub tables: u64,
    /// Bytes of cached blocks at its end.
    pub cached: u64,
}

/// Entries of so many bytes together.
pub fn entries(bytes: u64) -> u64 {
    bytes / ENTRY
}

/// A figure of `/proc/self/status`, bytes.
pub fn status(name: &str) -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = text.lines().find(|l| l.starts_with(name)).expect("Linux tells");
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() << 10
}

fn key(n: u64) -> [u8; 16] {
    let mut key = [0; 16];
    key[..8].copy_from_slice(&n.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes());
    key[8..].copy_from_slice(&n.to_be_bytes());
    key
}

/// The table of a life's phases.
pub fn table(budget: u64, phases: &[Phase]) -> String {
    let mut text = String::new();
    for phase in phases {
        let Phase { name, peak, tables, cached } = phase;
        let [peak, tables, cached] = [*peak, *tables, *cached].map(|n| n as f64 / MIB);
        let whole = budget as f64 / MIB;
        text += &format!(
            "{name:14} {peak:7.1} of {whole:4} MiB ({:3.0}%); tables {tables:6.1}, cached {cached:6.1}\n",
            100.0 * peak / whole
        );
    }
    text
}

struct Life {
    db: Db,
    before: u64,
    entries: u64,
    value: [u8; 100],
    no_wal: WriteOptions,
    phases: Vec<Phase>,
}

impl Life {
    /// Takes the peak down, and lets the next one begin.
    fn told(&mut self, name: &'static str) {
        let peak = status("VmHWM").saturating_sub(self.before);
        let stats = self.db.stats();
        let (tables, cached) = (stats.table_memory, stats.cache_bytes);
        self.phases.push(Phase { name, peak, tables, cached });
        std::fs::write("/proc/self/clear_refs", "5").unwrap();
    }

    fn put(&self, n: u64) {
        self.db.put_opt(key(n), self.value, &self.no_wal).unwrap();
    }

    fn iterators(&self) -> Vec<DbIter> {
        let mut open: Vec<DbIter> = (0..ITERATORS).map(|_| self.db.iter().unwrap()).collect();
        for (i, iter) in open.iter_mut().enumerate() {
            iter.seek(key(i as u64));
            (0..10_000).for_each(|_| iter.next());
            iter.status().unwrap();
        }
        open
    }

    /// Fills the cache, and what it borrows.
    fn gets_at_rest(&self) {
        let begun = std::time::Instant::now();
        let mut n = 0;
        while n < 4 * self.entries && begun.elapsed() < AT_REST {
            self.db.get(key(n * 7919 % self.entries)).unwrap();
            n += 1;
        }
    }

    /// Fills the cache, which scans pass by, beside writes that reach the log.
    fn gets_beside_puts(&self) {
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| {
                let mut n = 0;
                while !over.load(Ordering::Relaxed) && n < self.entries {
                    self.db.put(key(n * 7927 % self.entries), self.value).unwrap();
                    n += 1;
                }
            });
            let readers: Vec<_> = (0..READERS)
                .map(|reader| {
                    scope.spawn(move || {
                        for n in (reader..self.entries / 4).step_by(READERS as usize) {
                            let found = self.db.get(key(n * 7919 % self.entries)).unwrap();
                            assert_eq!(found.as_deref(), Some(&self.value[..]));
                        }
                    })
                })
                .collect();
            readers.into_iter().for_each(|reader| reader.join().unwrap());
            over.store(true, Ordering::Relaxed);
            writer.join().unwrap();
        });
    }
}

/// What a budget of so many bytes and threads is measured with.
pub fn settings(budget: u64, threads: u32) -> Settings {
    let settings = Settings::default().memory_budget(budget).compaction_threads(threads);
    assert_eq!(settings.budget(), Budget { memory: budget, threads, disk: None });
    Settings { policy: Some(Policy::Bucket), ..settings }
}

/// Lives it over `entries` entries of 16 + 100 bytes in `dir`, under `settings`.
pub fn live(dir: &Path, settings: Settings, entries: u64) -> Vec<Phase> {
    let before = status("VmRSS");
    std::fs::write("/proc/self/clear_refs", "5").unwrap();
    let db = Db::open(dir, settings).unwrap();
    let no_wal = WriteOptions::at(Durability::NoWal);
    let mut life = Life { db, before, entries, value: [7; 100], no_wal, phases: Vec::new() };
    (0..entries).for_each(|n| life.put(n));
    life.told("fill");
    life.db.compact_range(None, None).unwrap();
    life.told("compaction");
    let mut all = life.db.iter().unwrap();
    all.seek_to_first();
    let mut count = 0;
    while all.valid() {
        count += 1;
        all.next();
    }
    all.status().unwrap();
    assert_eq!(count, entries);
    drop(all);
    life.told("scan");
    let open = life.iterators();
    (0..entries / 4).for_each(|n| life.put(n));
    life.db.flush().unwrap();
    life.told("64 iterators");
    life.gets_beside_puts();
    life.told("gets and puts");
    drop(open);
    life.gets_at_rest();
    life.told("gets at rest");
    (0..entries / 4).for_each(|n| life.put(n));
    life.told("puts");
    life.db.close().unwrap();
    life.phases
}
