//! What the database says about itself.

use std::fmt::Write as _;
use std::time::Duration;

use lithify_compact::EngineReport;

use crate::metrics::{Counts, Latency};

/// One level of the tree.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct LevelStats {
    /// Level number.
    pub level: u8,
    /// Runs (what a read may have to look at).
    pub runs: usize,
    /// Files.
    pub files: usize,
    /// Bytes on disk.
    pub bytes: u64,
    /// Bytes written into this level by flushes and compactions since the database was opened.
    pub written_bytes: u64,
    /// Bytes that compactions into this level read.
    pub read_bytes: u64,
    /// Compactions and flushes into this level.
    pub jobs: u64,
}

/// A snapshot of the database's statistics. Counters run from the open.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Stats {
    /// All counters.
    pub counts: Counts,
    /// Latency of writes (sampled).
    pub write_latency: Latency,
    /// Latency of point reads (sampled).
    pub get_latency: Latency,
    /// Durations of flushes.
    pub flush_duration: Latency,
    /// Durations of compactions.
    pub compaction_duration: Latency,
    /// The levels, 0 first.
    pub levels: Vec<LevelStats>,
    /// Time writers waited, by cause.
    pub stalls: Vec<(&'static str, Duration)>,
    /// Bytes of memory that memtables take: active and frozen, empty ones included.
    pub memtable_bytes: u64,
    /// Writes in memtables, which are in no table yet. A range deletion is one.
    pub memtable_entries: u64,
    /// Frozen memtables waiting to be flushed.
    pub frozen_memtables: usize,
    /// Bytes in the block cache.
    pub cache_bytes: u64,
    /// Block cache look-ups that found the block.
    pub cache_hits: u64,
    /// Block cache look-ups that did not.
    pub cache_misses: u64,
    /// How often an iterator left out a table because its filter has no key of the prefix that is
    /// looked for. Of this column family, since it was opened.
    pub prefix_filter_useful: u64,
    /// Bytes of indexes, filters and properties of open tables.
    pub table_memory: u64,
    /// Bytes of buffers of flushes and compactions: those in use, and those kept for the next.
    pub buffer_bytes: u64,
    /// Bytes of all tables on disk.
    pub disk_bytes: u64,
    /// Estimated bytes compaction still has to rewrite.
    pub debt_bytes: u64,
    /// Compactions running now.
    pub running_compactions: usize,
    /// Last sequence number readers can see.
    pub last_sequence: u64,
    /// Snapshots held.
    pub snapshots: usize,
    /// The engines that were named to the `Builder::engine`, in that order, and what
    /// they did for all column families.
    pub engines: Vec<EngineReport>,
}

impl Stats {
    /// Bytes written to tables for each byte users wrote; 0 before the first flush.
    pub fn write_amplification(&self) -> f64 {
        let written = self.counts.flush_bytes + self.counts.compaction_write_bytes;
        match self.counts.write_bytes {
            0 => 0.0,
            user => written as f64 / user as f64,
        }
    }
    /// Time writers waited, all causes together.
    pub fn stalled(&self) -> Duration {
        self.stalls.iter().map(|s| s.1).sum()
    }
}

fn mib(bytes: u64) -> f64 {
    bytes as f64 / (1 << 20) as f64
}

impl Stats {
    fn write_levels(&self, out: &mut String) {
        for l in self.levels.iter().filter(|l| l.files > 0 || l.jobs > 0) {
            let _ = writeln!(
                out,
                "L{:<5} {:>4} {:>6} {:>8.1} {:>12.1} {:>9.1} {:>5}",
                l.level,
                l.runs,
                l.files,
                mib(l.bytes),
                mib(l.written_bytes),
                mib(l.read_bytes),
                l.jobs
            );
        }
    }

    fn write_engines(&self, out: &mut String) {
        for e in &self.engines {
            let _ = write!(
                out,
                "engine {}: {} parts, {} sets, {:.1} MiB; refused {}, sets too large {}, unsuitable {}, \
                 failed {}, hung {}, disproved {}",
                e.name,
                e.parts,
                e.sets,
                mib(e.bytes),
                e.refusals,
                e.too_large,
                e.unsuitable,
                e.failures,
                e.hangs,
                e.disproved
            );
            if e.small_sets > 0 {
                let _ = write!(out, ", with small sets for want of memory {}", e.small_sets);
            }
            if e.passed > 0 {
                let _ = write!(out, ", let pass as they do not suit it {}", e.passed);
            }
            if e.unanswered > 0 {
                let (parts, held) = (e.unanswered, mib(e.held_bytes));
                let _ =
                    write!(out, "; gets no part: it has not let go of {parts} and {held:.1} MiB");
            }
            if let Some(why) = &e.last_lost {
                let _ = write!(out, "; why the CPU took over, the last time: {why}");
            }
            if let Some(why) = &e.trouble {
                let _ = write!(out, "; {why}");
            }
            e.machine.iter().for_each(|(name, figure)| {
                let _ = write!(out, "; {name} {figure:.3}");
            });
            out.push('\n');
        }
    }
}

impl std::fmt::Display for Stats {
    /// A report for people.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut out = String::new();
        let _ = writeln!(out, "level  runs  files      MiB  written MiB  read MiB  jobs");
        self.write_levels(&mut out);
        let _ = writeln!(
            out,
            "write amplification {:.2}; disk {:.1} MiB; debt {:.1} MiB; memtables {:.1} MiB",
            self.write_amplification(),
            mib(self.disk_bytes),
            mib(self.debt_bytes),
            mib(self.memtable_bytes)
        );
        let looked_up = self.cache_hits + self.cache_misses;
        let hit = 100.0 * self.cache_hits as f64 / (looked_up.max(1)) as f64;
        let _ = writeln!(
            out,
            "block cache {:.1} MiB, {hit:.1}% hits; table memory {:.1} MiB",
            mib(self.cache_bytes),
            mib(self.table_memory)
        );
        if self.prefix_filter_useful > 0 {
            let _ = writeln!(out, "prefix filters left out {} tables", self.prefix_filter_useful);
        }
        for (name, l) in [
            ("write", self.write_latency),
            ("get", self.get_latency),
            ("flush", self.flush_duration),
            ("compaction", self.compaction_duration),
        ] {
            if l.count > 0 {
                let _ = writeln!(
                    out,
                    "{name}: {} samples, p50 {:?}, p99 {:?}, p99.9 {:?}, max {:?}",
                    l.count, l.p50, l.p99, l.p999, l.max
                );
            }
        }
        self.write_engines(&mut out);
        for (cause, time) in self.stalls.iter().filter(|s| !s.1.is_zero()) {
            let _ = writeln!(out, "stalled {time:.2?} by {cause}");
        }
        for (name, value) in self.counts.list().into_iter().filter(|c| c.1 > 0) {
            let _ = writeln!(out, "{name} {value}");
        }
        f.write_str(&out)
    }
}
