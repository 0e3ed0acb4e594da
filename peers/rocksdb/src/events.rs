//! Exact counters from RocksDB's event log.
//!
//! RocksDB's property texts round to 1 MB or 0.1 GB, and its tickers cost time on every
//! operation. Its information log, however, has one JSON line per finished job, which costs
//! nothing between jobs; [`EventTally`] listens to that.
//!
//! ```text
//! EVENT_LOG_v1 {"job": 3, "event": "compaction_finished", "output_level": 1, ...}
//! ```

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use lithify_bench::EngineStats;
use serde_json::Value;

const LEVELS: usize = 8;

/// Sums over all finished jobs since the store was opened.
#[derive(Default)]
pub(crate) struct EventTally {
    flush_bytes: AtomicU64,
    compact_read: AtomicU64,
    compact_jobs: AtomicU64,
    compact_micros: AtomicU64,
    compact_cpu_micros: AtomicU64,
    into_level: [AtomicU64; LEVELS],
}

impl EventTally {
    /// Takes in one line of the information log.
    pub(crate) fn hear(&self, line: &str) {
        let Some((_, json)) = line.split_once("EVENT_LOG_v1 ") else { return };
        let Ok(event) = serde_json::from_str::<Value>(json.trim()) else { return };
        let number = |name: &str| event[name].as_u64().unwrap_or(0);
        match event["event"].as_str() {
            Some("compaction_started") => {
                self.compact_read.fetch_add(number("input_data_size"), Relaxed);
            }
            Some("compaction_finished") => {
                self.compact_jobs.fetch_add(1, Relaxed);
                self.compact_micros.fetch_add(number("compaction_time_micros"), Relaxed);
                self.compact_cpu_micros.fetch_add(number("compaction_time_cpu_micros"), Relaxed);
                let level = (number("output_level") as usize).min(LEVELS - 1);
                self.into_level[level].fetch_add(number("total_output_size"), Relaxed);
            }
            Some("flush_finished") => {
                self.flush_bytes.fetch_add(number("total_output_size"), Relaxed);
            }
            _ => {}
        }
    }

    /// Writes the sums into `stats`.
    pub(crate) fn fill(&self, stats: &mut EngineStats) {
        let mut levels: Vec<u64> = self.into_level.iter().map(|b| b.load(Relaxed)).collect();
        stats.compact_write_bytes = levels.iter().sum();
        stats.flush_write_bytes = self.flush_bytes.load(Relaxed);
        levels[0] += stats.flush_write_bytes;
        while levels.last() == Some(&0) {
            levels.pop();
        }
        stats.level_write_bytes = levels;
        stats.compact_read_bytes = self.compact_read.load(Relaxed);
        stats.compact_jobs = self.compact_jobs.load(Relaxed);
        stats.compact_seconds = self.compact_micros.load(Relaxed) as f64 / 1e6;
        stats.compact_cpu_seconds = self.compact_cpu_micros.load(Relaxed) as f64 / 1e6;
    }
}
