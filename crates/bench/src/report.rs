//! Results: the [`RunReport`] that goes to JSON, and its table for people.

use comfy_table::{CellAlignment, LineStyle, Table, TableStyle};
use serde::{Deserialize, Serialize};

use crate::fold::to_terminal;
use crate::settings::BenchSettings;
use crate::store::EngineStats;
use crate::timeline::Activity;
use crate::units::{show_bytes, show_count, three_digits};

/// An engine's name and version.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EngineIdentity {
    /// Short name: `lithify`, `rocksdb`.
    pub name: String,
    /// Version as the engine states it.
    pub version: String,
}

/// The machine a run was made on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MachineNote {
    /// Logical CPUs.
    pub cpus: usize,
    /// CPU model.
    pub cpu_model: String,
    /// Memory in bytes.
    pub memory_bytes: u64,
    /// Load average over the last minute when the run began: other work disturbs results.
    pub load_average: f64,
}

/// A whole run of one engine.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RunReport {
    /// Which engine.
    pub engine: EngineIdentity,
    /// With which settings.
    pub settings: BenchSettings,
    /// On which machine.
    pub machine: MachineNote,
    /// False if an operation failed or a value was wrong: nothing here counts then.
    pub valid: bool,
    /// True if Ctrl-C ended it: the last workload is a part of one, and others may be missing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub interrupted: bool,
    /// What made it invalid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// One entry per workload that ran.
    pub workloads: Vec<WorkloadReport>,
}

impl RunReport {
    /// Why nothing in it counts, if so.
    pub(crate) fn fault(&self) -> Option<&str> {
        (!self.valid).then(|| self.error.as_deref().unwrap_or("no reason given"))
    }
}

/// Latency of operations (of whole batches with `--batch-size`), in microseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// Mean.
    pub mean: f64,
    /// Median.
    pub p50: f64,
    /// 99th percentile.
    pub p99: f64,
    /// 99.9th percentile.
    pub p999: f64,
    /// 99.99th percentile.
    pub p9999: f64,
    /// Slowest.
    pub max: f64,
}

/// Operations slower than 10 ms: stalls as the client feels them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SlowOps {
    /// How many.
    pub count: u64,
    /// Their time in sum over all threads.
    pub seconds: f64,
    /// Seconds of the run (counted whole) in which at least one ended.
    pub touched_seconds: u64,
}

/// One workload's results.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct WorkloadReport {
    /// Its name.
    pub workload: String,
    /// Client threads.
    pub threads: usize,
    /// Operations done (keys, not batches); 0 for workloads without any, such as `compact`.
    pub ops: u64,
    /// Reads that found their key, or entries read by scans.
    pub found: u64,
    /// Writes by the extra thread of `readwhilewriting`.
    pub side_ops: u64,
    /// Key and value bytes that the operations carried. For `compact`: input bytes.
    pub bytes: u64,
    /// Of these, bytes that writes carried.
    #[serde(default)]
    pub written_bytes: u64,
    /// Seconds from the opening of the store to the first operation.
    #[serde(default)]
    pub began_seconds: f64,
    /// Seconds from the first operation to the last.
    pub seconds: f64,
    /// Further seconds until no flush and no compaction was pending.
    pub quiesce_seconds: f64,
    /// Operations per second of `seconds`.
    pub ops_per_second: f64,
    /// Operations per second of `seconds + quiesce_seconds`: no work is hidden in debt.
    pub ops_per_second_quiesced: f64,
    /// `bytes` per `seconds`, in 10^6.
    pub mb_per_second: f64,
    /// Latency, for workloads that have operations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_us: Option<Latency>,
    /// Latency at many quantiles: (percent, microseconds), up to the slowest.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub distribution_us: Vec<(f64, f64)>,
    /// Operations that ended in each second.
    pub series: Vec<u64>,
    /// Latency of each second: median, 99th percentile and slowest, in microseconds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub latency_series_us: Vec<[f64; 3]>,
    /// The same as `series` in each tenth of a second.
    #[serde(skip)]
    pub tenths: Vec<u32>,
    /// Operations over 10 ms.
    pub slow: SlowOps,
    /// CPU-seconds of the whole process, quiescing included.
    pub cpu_seconds: f64,
    /// Greatest resident memory so far in bytes.
    pub rss_peak_bytes: u64,
    /// Disk space of the store at the end, in bytes.
    pub space_bytes: u64,
    /// Table bytes written by flushes and compactions per user byte written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_amplification: Option<f64>,
    /// The same by level, L0 first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub write_amplification_by_level: Vec<f64>,
    /// Compaction input per thread-second of compaction, in MB/s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compaction_mb_per_thread_second: Option<f64>,
    /// Compaction input per CPU-second of compaction, in MB/s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compaction_mb_per_cpu_second: Option<f64>,
    /// Bytes that compaction still had to rewrite when the last operation ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub debt_bytes: Option<u64>,
    /// Runs when the last operation ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runs: Option<u64>,
    /// How busy background jobs were under load, where the engine keeps a log of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub activity: Option<Activity>,
    /// What the engine counted during the workload and its quiescing.
    pub engine: EngineStats,
}

/// Prints `report` as tables to standard output's stand-in `out`.
pub fn print_report(report: &RunReport, out: &mut dyn std::io::Write) -> std::io::Result<()> {
    let e = &report.engine;
    let s = &report.settings;
    writeln!(
        out,
        "{} {}: {} keys of {} B with values of {} B; client threads: {}, \
         compaction threads: {}, WAL: {:?}, compression: {:?}",
        e.name,
        e.version,
        show_count(s.num() as f64),
        s.key_size,
        s.value_size,
        s.threads,
        s.background_threads,
        s.wal,
        s.compression
    )?;
    writeln!(out, "{}\n", to_terminal(&speed_table(report).to_string(), 1))?;
    if report.workloads.iter().any(|w| w.engine != EngineStats::default()) {
        writeln!(out, "{}\n", to_terminal(&tree_table(report).to_string(), 1))?;
    }
    for w in &report.workloads {
        for stall in &w.engine.stalls {
            let time = stall.seconds.map_or_else(String::new, |s| format!(", {s:.2} s"));
            writeln!(out, "stall in {}: {} x {}{time}", w.workload, stall.count, stall.cause)?;
        }
    }
    for w in &report.workloads {
        let busy = w.activity.as_ref().filter(|a| a.mean_compactions + a.mean_flushes > 0.0);
        if let Some(activity) = busy {
            print_activity(w, activity, out)?;
        }
    }
    let m = &report.machine;
    if m.load_average > m.cpus as f64 / 2.0 {
        writeln!(
            out,
            "the machine was busy when the run began (load {:.1} on {} CPUs): expect noise",
            m.load_average, m.cpus
        )?;
    }
    if report.interrupted {
        let what = "INTERRUPTED: the last workload above is a part of one, and was not waited for";
        writeln!(out, "{what}")?;
    }
    match &report.error {
        Some(error) => writeln!(out, "INVALID RUN: {error}"),
        None => Ok(()),
    }
}

/// Prints who worked while `w` loaded the store.
fn print_activity(
    w: &WorkloadReport,
    activity: &Activity,
    out: &mut dyn std::io::Write,
) -> std::io::Result<()> {
    let jobs: Vec<_> = activity
        .by_level
        .iter()
        .map(|(name, mean)| format!("{name} {}", three_digits(*mean)))
        .collect();
    let debt =
        w.debt_bytes.map_or_else(String::new, |b| format!("; debt after it {}", show_bytes(b)));
    writeln!(
        out,
        "jobs in {}: {} of {} compactions active on average, more than half for {:.0}% of the time \
         ({}){debt}",
        w.workload,
        three_digits(activity.mean_compactions),
        activity.slots,
        activity.over_half * 100.0,
        jobs.join(", ")
    )
}

/// Prints the latency distribution of each workload.
pub(crate) fn print_distributions(
    report: &RunReport,
    out: &mut dyn std::io::Write,
) -> std::io::Result<()> {
    for w in report.workloads.iter().filter(|w| !w.distribution_us.is_empty()) {
        let mut table = table(vec![w.workload.as_str(), "us"]);
        for (percent, us) in &w.distribution_us {
            table.add_row(vec![format!("{percent:.4} %"), three_digits(*us)]);
        }
        align_right(&mut table);
        writeln!(out, "{table}\n")?;
    }
    Ok(())
}

fn speed_table(report: &RunReport) -> Table {
    let mut table = table(vec![
        "workload",
        "ops/s",
        "MB/s",
        "p50 us",
        "p99",
        "p99.9",
        "max ms",
        "found",
        "load s",
        "quiesce s",
        "CPU s",
    ]);
    for w in &report.workloads {
        let latency = |f: fn(&Latency) -> f64| {
            w.latency_us.as_ref().map_or_else(String::new, |l| three_digits(f(l)))
        };
        table.add_row(vec![
            w.workload.clone(),
            if w.ops > 0 { show_count(w.ops_per_second) } else { String::new() },
            three_digits(w.mb_per_second),
            latency(|l| l.p50),
            latency(|l| l.p99),
            latency(|l| l.p999),
            latency(|l| l.max / 1e3),
            if w.found > 0 { show_count(w.found as f64) } else { String::new() },
            three_digits(w.seconds),
            three_digits(w.quiesce_seconds),
            three_digits(w.cpu_seconds),
        ]);
    }
    align_right(&mut table);
    table
}

fn tree_table(report: &RunReport) -> Table {
    let mut table = table(vec![
        "workload",
        "write amp",
        "by level",
        "stall s",
        ">10 ms s",
        "comp. in",
        "MB/s/thread",
        "MB/s/CPU",
        "disk",
        "RSS peak",
    ]);
    let option = |x: Option<f64>| x.map_or_else(String::new, three_digits);
    for w in &report.workloads {
        let levels: Vec<String> =
            w.write_amplification_by_level.iter().map(|&x| three_digits(x)).collect();
        table.add_row(vec![
            w.workload.clone(),
            option(w.write_amplification),
            levels.join(" "),
            three_digits(w.engine.stall_seconds),
            three_digits(w.slow.seconds),
            show_bytes(w.engine.compact_read_bytes),
            option(w.compaction_mb_per_thread_second),
            option(w.compaction_mb_per_cpu_second),
            show_bytes(w.space_bytes),
            show_bytes(w.rss_peak_bytes),
        ]);
    }
    align_right(&mut table);
    table
}

/// An empty table with a heading.
pub(crate) fn table<T: Into<comfy_table::Row>>(heading: T) -> Table {
    let mut table = Table::new();
    let rule = LineStyle::none().fill('─').junction('─');
    table.load_style(TableStyle::new().header_separator(rule)).set_header(heading);
    table
}

/// Aligns all columns but the first to the right, as numbers are.
pub(crate) fn align_right(table: &mut Table) {
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
}
