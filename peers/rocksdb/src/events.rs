//! Exact counters from RocksDB's event log.
//!
//! RocksDB's property texts round to 1 MB or 0.1 GB, and its tickers cost time on every
//! operation. Its information log, however, has a line per started and finished job, which costs
//! nothing between jobs; [`EventTally`] listens to that. Lines are JSON, but long ones may come
//! cut off, so single fields are looked up instead of the whole being parsed.
//!
//! ```text
//! EVENT_LOG_v1 {"time_micros": 17, "job": 3, "event": "compaction_finished", ...}
//! ```
//!
//! Relies on one flush running at a time (`options.rs` asks for one flush thread): the table
//! created by the job of the latest `flush_started` is that flush's output.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use lithify_bench::EngineStats;

const LEVELS: usize = 8;

/// Sums over all finished jobs since the store was opened.
#[derive(Default)]
pub(crate) struct EventTally {
    flush_job: AtomicU64,
    flush_started: AtomicU64,
    flush_micros: AtomicU64,
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
        let Some((_, event)) = line.split_once("EVENT_LOG_v1 ") else { return };
        let number = |name: &str| number(event, name).unwrap_or(0);
        match text(event, "event") {
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
            Some("flush_started") => {
                self.flush_job.store(number("job"), Relaxed);
                self.flush_started.store(number("time_micros"), Relaxed);
            }
            Some("table_file_creation") if number("job") == self.flush_job.load(Relaxed) => {
                self.flush_bytes.fetch_add(number("file_size"), Relaxed);
            }
            Some("flush_finished") => {
                let took = number("time_micros").saturating_sub(self.flush_started.load(Relaxed));
                self.flush_micros.fetch_add(took, Relaxed);
            }
            _ => {}
        }
    }

    /// Writes the sums into `stats`.
    pub(crate) fn fill(&self, stats: &mut EngineStats) {
        let mut levels: Vec<u64> = self.into_level.iter().map(|b| b.load(Relaxed)).collect();
        stats.compact_write_bytes = levels.iter().sum();
        stats.flush_write_bytes = self.flush_bytes.load(Relaxed);
        stats.flush_seconds = self.flush_micros.load(Relaxed) as f64 / 1e6;
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

/// What follows `"name": ` in `event`.
fn field<'a>(event: &'a str, name: &str) -> Option<&'a str> {
    let quoted = format!("\"{name}\": ");
    Some(&event[event.find(&quoted)? + quoted.len()..])
}

fn number(event: &str, name: &str) -> Option<u64> {
    let rest = field(event, name)?;
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    rest[..end].parse().ok()
}

fn text<'a>(event: &'a str, name: &str) -> Option<&'a str> {
    field(event, name)?.strip_prefix('"')?.split('"').next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_are_summed_by_level() {
        let tally = EventTally::default();
        for line in [
            r#"EVENT_LOG_v1 {"time_micros": 1000000, "job": 2, "event": "flush_started"}"#,
            r#"EVENT_LOG_v1 {"time_micros": 1, "cf_name": "default", "job": 2, "event": "table_file_creation", "file_number": 8, "file_size": 500, "table_prop"#,
            r#"(Original Log Time 1) EVENT_LOG_v1 {"time_micros": 1500000, "job": 2, "event": "flush_finished"}"#,
            r#"EVENT_LOG_v1 {"time_micros": 2, "job": 3, "event": "compaction_started", "files_L0": [1, 2], "score": 1, "input_data_size": 900}"#,
            r#"EVENT_LOG_v1 {"time_micros": 1, "cf_name": "default", "job": 3, "event": "table_file_creation", "file_number": 9, "file_size": 700}"#,
            r#"EVENT_LOG_v1 {"time_micros": 3, "job": 3, "event": "compaction_finished", "compaction_time_micros": 2000000, "compaction_time_cpu_micros": 1000000, "output_level": 1, "num_output_files": 1, "total_output_size": 700}"#,
            "[default] Stalling writes because of something else",
        ] {
            tally.hear(line);
        }
        let mut stats = EngineStats::default();
        tally.fill(&mut stats);
        let want = EngineStats {
            flush_write_bytes: 500,
            flush_seconds: 0.5,
            compact_read_bytes: 900,
            compact_write_bytes: 700,
            compact_jobs: 1,
            compact_seconds: 2.0,
            compact_cpu_seconds: 1.0,
            level_write_bytes: vec![500, 700],
            ..EngineStats::default()
        };
        assert_eq!(stats, want);
    }
}
