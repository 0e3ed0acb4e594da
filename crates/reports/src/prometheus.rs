//! Statistics in the text form that Prometheus and its like read.
//!
//! Keeps: each name stands once with its type, before its samples; counters end in `_total` and only grow while a
//! database is open; times are in seconds and sizes in bytes, as the form asks for.
//! Leaves to others: serving it.

use std::fmt::{Display, Write as _};
use std::time::Duration;

use crate::metrics::Latency;
use crate::stats::Stats;

/// What stands before every name.
const PREFIX: &str = "lithify";

/// Families of samples in that form. Each is to have its head once, before its samples.
#[derive(Debug, Default)]
pub struct Text(String);

impl Text {
    /// Begins the family `name`, a `counter`, `gauge` or `summary`.
    pub fn head(&mut self, name: &str, kind: &str, help: &str) {
        let _ = writeln!(self.0, "# HELP {PREFIX}_{name} {help}\n# TYPE {PREFIX}_{name} {kind}");
    }
    /// A sample of it.
    pub fn sample(&mut self, name: &str, labels: &[(&str, &dyn Display)], value: impl Display) {
        let _ = write!(self.0, "{PREFIX}_{name}");
        for (i, (label, is)) in labels.iter().enumerate() {
            let is = is.to_string().replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            let _ = write!(self.0, "{}{label}=\"{is}\"", if i == 0 { '{' } else { ',' });
        }
        let _ = writeln!(self.0, "{} {value}", if labels.is_empty() { "" } else { "}" });
    }
    /// A family of one gauge.
    pub fn gauge(&mut self, name: &str, help: &str, value: impl Display) {
        self.head(name, "gauge", help);
        self.sample(name, &[], value);
    }
    /// All that was added.
    pub fn into_string(self) -> String {
        self.0
    }
    fn latency(&mut self, name: &str, help: &str, of: &Latency) {
        self.head(name, "summary", help);
        for (quantile, time) in [("0.5", of.p50), ("0.99", of.p99), ("0.999", of.p999)] {
            self.sample(name, &[("quantile", &quantile)], time.as_secs_f64());
        }
        self.sample(&format!("{name}_sum"), &[], of.sum.as_secs_f64());
        self.sample(&format!("{name}_count"), &[], of.count);
    }
}

impl Stats {
    /// These statistics as Prometheus reads them, for a page `/metrics` of the program. Of several column families
    /// or databases label what each gives, or give it on a page of its own.
    ///
    /// ```
    /// let text = lithify_reports::stats::Stats::default().prometheus();
    /// assert!(text.contains("# TYPE lithify_writes_total counter\nlithify_writes_total 0\n"));
    /// ```
    pub fn prometheus(&self) -> String {
        let mut text = Text::default();
        for (name, value) in self.counts.list() {
            match name.strip_suffix("_nanos") {
                Some(name) => {
                    let name = format!("{name}_seconds_total");
                    text.head(&name, "counter", "Seconds of work since the open");
                    text.sample(&name, &[], Duration::from_nanos(value).as_secs_f64());
                }
                None => {
                    let name = format!("{name}_total");
                    text.head(&name, "counter", "Since the open");
                    text.sample(&name, &[], value);
                }
            }
        }
        text.latency("write_seconds", "Time of writes, sampled", &self.write_latency);
        text.latency("get_seconds", "Time of point reads, sampled", &self.get_latency);
        text.latency("flush_seconds", "Time of flushes", &self.flush_duration);
        text.latency("compaction_job_seconds", "Time of compactions", &self.compaction_duration);
        self.gauges(&mut text);
        self.levels(&mut text);
        self.stalls_and_engines(&mut text);
        text.into_string()
    }

    fn gauges(&self, text: &mut Text) {
        for (name, help, value) in [
            ("memtable_bytes", "Memory of memtables", self.memtable_bytes),
            ("memtable_entries", "Writes in no table yet", self.memtable_entries),
            ("frozen_memtables", "Memtables that wait for a flush", self.frozen_memtables as u64),
            ("cache_bytes", "Blocks in the cache", self.cache_bytes),
            ("table_memory_bytes", "Indexes and filters of open tables", self.table_memory),
            ("buffer_bytes", "Buffers of flushes and compactions", self.buffer_bytes),
            ("disk_bytes", "Tables on disk", self.disk_bytes),
            ("debt_bytes", "What compaction still has to rewrite", self.debt_bytes),
            ("running_compactions", "Compactions at work", self.running_compactions as u64),
            ("last_sequence", "The last sequence number that readers see", self.last_sequence),
            ("snapshots", "Snapshots held", self.snapshots as u64),
        ] {
            text.gauge(name, help, value);
        }
        text.gauge(
            "write_amplification",
            "Bytes written to tables for each byte written by users",
            self.write_amplification(),
        );
        for (name, help, value) in [
            ("cache_hits_total", "Look-ups that the block cache answered", self.cache_hits),
            ("cache_misses_total", "Look-ups that it did not answer", self.cache_misses),
            (
                "prefix_filter_useful_total",
                "Tables that a prefix filter left out of a scan",
                self.prefix_filter_useful,
            ),
        ] {
            text.head(name, "counter", help);
            text.sample(name, &[], value);
        }
    }

    fn levels(&self, text: &mut Text) {
        for (name, kind, help) in [
            ("level_runs", "gauge", "Runs of a level"),
            ("level_files", "gauge", "Files of a level"),
            ("level_bytes", "gauge", "Bytes of a level on disk"),
            ("level_written_bytes_total", "counter", "Bytes that jobs wrote into a level"),
            ("level_read_bytes_total", "counter", "Bytes that jobs into a level read"),
            ("level_jobs_total", "counter", "Flushes and compactions into a level"),
        ] {
            text.head(name, kind, help);
            for level in &self.levels {
                let value = match name {
                    "level_runs" => level.runs as u64,
                    "level_files" => level.files as u64,
                    "level_bytes" => level.bytes,
                    "level_written_bytes_total" => level.written_bytes,
                    "level_read_bytes_total" => level.read_bytes,
                    _ => level.jobs,
                };
                text.sample(name, &[("level", &level.level)], value);
            }
        }
    }

    fn stalls_and_engines(&self, text: &mut Text) {
        text.head("stalled_seconds_total", "counter", "Time that writers waited, by cause");
        for (cause, time) in &self.stalls {
            text.sample("stalled_seconds_total", &[("cause", cause)], time.as_secs_f64());
        }
        for (name, help) in [
            ("engine_parts_total", "Parts of compactions that an engine merged"),
            ("engine_bytes_total", "Bytes that an engine merged"),
            ("engine_failures_total", "Failures of an engine"),
            ("engine_unsuitable_total", "Parts that an engine gave up as they do not suit it"),
            (
                "engine_passed_total",
                "Parts that an engine let pass as those before did not suit it",
            ),
        ] {
            text.head(name, "counter", help);
            for engine in &self.engines {
                let value = match name {
                    "engine_parts_total" => engine.parts,
                    "engine_bytes_total" => engine.bytes,
                    "engine_failures_total" => engine.failures,
                    "engine_unsuitable_total" => engine.unsuitable,
                    _ => engine.passed,
                };
                text.sample(name, &[("engine", &engine.name)], value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;
    use crate::metrics::Metrics;
    use crate::stats::LevelStats;
    use lithify_compact::EngineReport;

    /// Reads the form strictly: the type of each name, and the samples of it.
    fn read(text: &str) -> BTreeMap<String, (String, Vec<(String, f64)>)> {
        let mut all: BTreeMap<String, (String, Vec<(String, f64)>)> = BTreeMap::new();
        let mut now = String::new();
        let mut seen = BTreeSet::new();
        for line in text.lines() {
            if let Some(help) = line.strip_prefix("# HELP ") {
                now = help.split_once(' ').unwrap().0.to_owned();
                assert!(!all.contains_key(&now), "{now} has one head");
            } else if let Some(kind) = line.strip_prefix("# TYPE ") {
                let (name, kind) = kind.split_once(' ').unwrap();
                assert_eq!(name, now);
                all.insert(now.clone(), (kind.to_owned(), Vec::new()));
            } else {
                let (what, value) = line.rsplit_once(' ').unwrap();
                let name = what.split('{').next().unwrap();
                let (kind, samples) = all.get_mut(&now).unwrap();
                let parts = ["_sum", "_count"].map(|part| format!("{now}{part}"));
                let own = name == now || (kind == "summary" && parts.contains(&name.to_owned()));
                assert!(own, "{line} stands below {now}");
                assert!(name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'), "{name}");
                assert!(seen.insert(what.to_owned()), "{what} stands once");
                samples.push((what.to_owned(), value.parse().unwrap()));
            }
        }
        all
    }

    /// A rate over a counter that falls is that of one that began again.
    #[test]
    fn sums_of_times_only_grow() {
        let metrics = Metrics::new();
        let mut last = 0.0;
        for nanos in [1_000_999, 1, 1, 1] {
            metrics.get.record(nanos);
            let stats = Stats { get_latency: metrics.get.latency(), ..Stats::default() };
            let all = read(&stats.prometheus());
            let samples = &all["lithify_get_seconds"].1;
            let sum = samples.iter().find(|s| s.0 == "lithify_get_seconds_sum").unwrap().1;
            assert!(sum > last, "{sum} after {last}");
            last = sum;
        }
        assert_eq!(last, 0.001_001_002);
    }

    #[test]
    fn every_figure_stands_there_once_with_its_type() {
        let mut stats = Stats { disk_bytes: 7, ..Stats::default() };
        stats.counts.writes = 3;
        stats.counts.compaction_nanos = 1_500_000_000;
        stats.levels =
            (0..7).map(|level| LevelStats { level, files: 2, ..Default::default() }).collect();
        stats.stalls = vec![("odd \"cause\"\\", Duration::from_millis(250))];
        stats.write_latency =
            Latency { count: 4, sum: Duration::from_secs(8), ..Latency::default() };
        let mut engine = EngineReport::default();
        (engine.name, engine.parts, engine.bytes) = ("gpu", 1, 2);
        (engine.failures, engine.unsuitable, engine.passed) = (3, 4, 5);
        stats.engines = vec![engine];
        let all = read(&stats.prometheus());
        let of = |name: &str| &all[&format!("lithify_{name}")];
        for (what, n) in [
            ("parts", 1.0),
            ("bytes", 2.0),
            ("failures", 3.0),
            ("unsuitable", 4.0),
            ("passed", 5.0),
        ] {
            let sample = format!("lithify_engine_{what}_total{{engine=\"gpu\"}}");
            assert_eq!(of(&format!("engine_{what}_total")).1, [(sample, n)]);
        }
        assert_eq!(
            of("writes_total"),
            &("counter".into(), vec![("lithify_writes_total".into(), 3.0)])
        );
        assert_eq!(of("compaction_seconds_total").1[0].1, 1.5);
        assert_eq!(of("disk_bytes").1[0].1, 7.0);
        assert_eq!(of("level_files").1.len(), 7);
        assert_eq!(of("level_files").1[3], ("lithify_level_files{level=\"3\"}".into(), 2.0));
        assert_eq!(
            of("stalled_seconds_total").1[0],
            ("lithify_stalled_seconds_total{cause=\"odd \\\"cause\\\"\\\\\"}".into(), 0.25)
        );
        let writes = &of("write_seconds").1;
        assert!(writes.contains(&("lithify_write_seconds_sum".into(), 8.0)), "{writes:?}");
        // No counter is forgotten.
        for (name, _) in stats.counts.list() {
            let name = name.replace("_nanos", "_seconds");
            assert!(all.contains_key(&format!("lithify_{name}_total")), "{name}");
        }
        for (name, (kind, _)) in &all {
            assert_eq!(name.ends_with("_total"), kind == "counter", "{name}");
        }
    }
}
