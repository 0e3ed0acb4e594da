//! `lithify-lab`: policies side by side in the modelled world.
#![forbid(unsafe_code)]
#![allow(clippy::disallowed_methods, reason = "the yard writes its results itself")]

use std::fmt::Write as _;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use clap::Parser;
use comfy_table::{CellAlignment, LineStyle, Table, TableStyle};
use lithify_base::MAX_LEVELS;
use lithify_lab::setup::entry_bytes;
use lithify_lab::tally::{KindTally, Span};
use lithify_lab::{Life, Load, Setup, live};
use lithify_plan::{CommitOrder, DfWhen, Kind, PolicyKind};

/// Lives of policies in a modelled world: the real planner and core in virtual time
///
/// Keys, sizes, threads, levels and the disk are settings with the names and defaults of
/// `lithify bench`; the result is the same for the same settings.
#[derive(Clone, Debug, Parser)]
struct Flags {
    /// Policies
    #[arg(long, value_delimiter = ',', default_value = "hybrid,df-leveled,bucket,bucket-df")]
    policies: Vec<String>,
    /// Compaction threads, one life for each
    #[arg(long, value_delimiter = ',', default_value = "8")]
    threads: Vec<u32>,
    /// Writes
    #[arg(long, default_value = "400K", value_parser = parse_count)]
    num: u64,
    /// Different keys [default: as many as writes]
    #[arg(long, value_parser = parse_count)]
    keys: Option<u64>,
    /// What is written: uniform, unique (every key once) or mixgraph
    #[arg(long, default_value = "uniform")]
    load: String,
    /// Key ranges of each phase of mixgraph
    #[arg(long, value_delimiter = ',', default_value = "10,20,30,40,50")]
    mix_ranges: Vec<u32>,
    /// Bytes of keys
    #[arg(long, default_value_t = 16)]
    key_size: u64,
    /// Bytes of values
    #[arg(long, default_value_t = 1024)]
    value_size: u64,
    /// Seed of keys
    #[arg(long, default_value_t = 1)]
    seed: u64,

    /// Bytes of one memtable
    #[arg(long, default_value = "4MiB", value_parser = parse_bytes, help_heading = "Store")]
    memtable: u64,
    /// Memtables
    #[arg(long, default_value_t = 2, help_heading = "Store")]
    memtables: u32,
    /// Target of L1
    #[arg(long, default_value = "16MiB", value_parser = parse_bytes, help_heading = "Store")]
    level_base: u64,
    /// Size ratio of neighbouring levels
    #[arg(long, default_value_t = 5, help_heading = "Store")]
    multiplier: u32,
    /// Target of files
    #[arg(long, default_value = "4MiB", value_parser = parse_bytes, help_heading = "Store")]
    file: u64,
    /// L0 runs: trigger, slow-down, stop
    #[arg(long, value_delimiter = ',', default_value = "4,20,36", help_heading = "Store")]
    l0: Vec<u32>,
    /// Flush threads
    #[arg(long, default_value_t = 1, help_heading = "Store")]
    flush_threads: u32,
    /// Derive level sizes from the last level
    #[arg(long, help_heading = "Store")]
    dynamic_levels: bool,

    /// Disk: bytes per second that reads and writes share; 0 for no limit
    #[arg(long, default_value = "300MiB", value_parser = parse_bytes, help_heading = "Machine")]
    bandwidth: u64,
    /// Disk: microseconds of each operation
    #[arg(long, default_value_t = 3000, help_heading = "Machine")]
    latency: u64,
    /// Disk: operations at once; 0 for no limit
    #[arg(long, default_value_t = 16, help_heading = "Machine")]
    channels: u32,
    /// Threads that transfer [default: as an opened database has]
    #[arg(long, help_heading = "Machine")]
    io_threads: Option<u32>,
    /// Processors
    #[arg(long, default_value_t = 2.0, help_heading = "Machine")]
    cores: f64,
    /// Processor time of a compaction per input byte
    #[arg(long, help_heading = "Machine")]
    cpu_ns_per_byte: Option<f64>,
    /// Processor time of a flush per memtable byte
    #[arg(long, help_heading = "Machine")]
    flush_ns_per_byte: Option<f64>,
    /// Processor time of a put
    #[arg(long, help_heading = "Machine")]
    client_ns: Option<f64>,
    /// Operations that a compaction waits for per input file
    #[arg(long, help_heading = "Machine")]
    opens: Option<u32>,

    /// dependency or issue
    #[arg(long, default_value = "dependency", help_heading = "Planner")]
    commit_order: String,
    /// pressure or always
    #[arg(long, default_value = "pressure", help_heading = "Planner")]
    df_when: String,
    /// Runs of a level that may cover a key because of stacking
    #[arg(long, help_heading = "Planner")]
    df_max_depth: Option<u32>,
    /// Extra bytes of a level in percent of its target
    #[arg(long, help_heading = "Planner")]
    df_extra_percent: Option<u32>,
    /// Runs of all levels that may cover a key because of stacking
    #[arg(long, help_heading = "Planner")]
    max_read_amp: Option<u32>,
    /// Built jobs that may wait for older ones
    #[arg(long, help_heading = "Planner")]
    max_waiting_jobs: Option<u32>,
    /// Runs at which a tiered level goes down
    #[arg(long, help_heading = "Planner")]
    tiered_runs: Option<u32>,
    /// Most bytes of a compaction
    #[arg(long, value_parser = parse_bytes, help_heading = "Planner")]
    max_compaction: Option<u64>,
    /// The first bucket map stays
    #[arg(long, help_heading = "Planner")]
    no_adapt: bool,
    /// Buckets to begin with
    #[arg(long, help_heading = "Planner")]
    buckets: Option<u32>,
    /// Flushes of a bucket's window
    #[arg(long, help_heading = "Planner")]
    window: Option<u32>,
    /// Least bytes of a bucket's file
    #[arg(long, value_parser = parse_bytes, help_heading = "Planner")]
    min_bucket_file: Option<u64>,
    /// Only runs take a bucket down, never bytes
    #[arg(long, help_heading = "Planner")]
    no_bucket_bytes: bool,
    /// L0 runs under compaction do not count for stalls
    #[arg(long, help_heading = "Planner")]
    stall_ignores_compacting: bool,

    /// Cells of the histograms
    #[arg(long, default_value_t = 4096, help_heading = "Model")]
    cells: u32,
    /// Seconds after which a drain is given up
    #[arg(long, default_value_t = 3600.0, help_heading = "Model")]
    drain_limit: f64,
    /// Also tell about levels, kinds of jobs and pairs of levels
    #[arg(long, short, help_heading = "Output")]
    long: bool,
    /// Also tell about each job, commit and verdict on writes
    #[arg(long, help_heading = "Output")]
    trace: bool,
    /// Write every tenth of a second of every life to FILE
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    csv: Option<PathBuf>,
}

fn main() -> Result<()> {
    let flags = Flags::parse();
    let mut lives = Vec::new();
    for name in &flags.policies {
        let Some(policy) = PolicyKind::from_name(name) else {
            bail!("--policies {name}: there are {}", PolicyKind::names().join(", "));
        };
        for &threads in &flags.threads {
            let setup = setup(&flags, policy, threads)?;
            let life = live(&setup).with_context(|| format!("{name}, {threads} threads"))?;
            life.trace.iter().for_each(|line| println!("{line}"));
            lives.push((name.clone(), setup, life));
        }
    }
    println!("{}", summary(&lives));
    if flags.long {
        for (name, setup, life) in &lives {
            println!("{}", details(name, setup, life));
        }
    }
    if let Some(path) = &flags.csv {
        std::fs::write(path, csv(&lives)).with_context(|| format!("writing {}", path.display()))?;
    }
    Ok(())
}

fn setup(f: &Flags, policy: PolicyKind, threads: u32) -> Result<Setup> {
    let mut s = Setup::new(policy, threads, f.value_size);
    s.bytes = entry_bytes(f.key_size, f.value_size);
    (s.num, s.keys) = (f.num, f.keys.unwrap_or(f.num));
    if s.num == 0 || !(1..=9_999_999_999).contains(&s.keys) {
        bail!("--num {}, --keys {}: give 1 to 10^10 - 1", s.num, s.keys);
    }
    if f.load == "unique" && s.keys < s.num {
        bail!("--keys {}: --load unique writes every key once, so give at least --num", s.keys);
    }
    s.seed = f.seed;
    s.cells = f.cells;
    s.drain_limit = f.drain_limit;
    s.trace = f.trace;
    s.flush_threads = f.flush_threads.max(1);
    s.load = match f.load.as_str() {
        "uniform" => Load::Uniform,
        "unique" => Load::Unique,
        "mixgraph" => Load::Mix(f.mix_ranges.clone()),
        other => bail!("--load {other}: there are uniform, unique, mixgraph"),
    };
    s.device.bandwidth = f.bandwidth;
    s.device.latency = f.latency * 1000;
    s.device.channels = f.channels;
    set(&mut s.device.threads, f.io_threads);
    s.cores = f.cores;
    set(&mut s.merge_ns, f.cpu_ns_per_byte);
    set(&mut s.flush_ns, f.flush_ns_per_byte);
    set(&mut s.client_ns, f.client_ns);
    set(&mut s.opens, f.opens);
    let &[trigger, slowdown, stop] = f.l0.as_slice() else {
        bail!("--l0: give trigger, slow-down and stop");
    };
    let p = &mut s.plan;
    (p.l0_trigger, p.l0_slowdown, p.l0_stop) = (trigger, slowdown, stop);
    p.memtable_bytes = f.memtable;
    p.max_memtables = f.memtables;
    p.level_base_bytes = f.level_base;
    p.multiplier = f.multiplier;
    p.file_bytes = f.file;
    p.dynamic_levels = f.dynamic_levels;
    p.commit_order = match f.commit_order.as_str() {
        "dependency" => CommitOrder::Dependency,
        "issue" => CommitOrder::Issue,
        other => bail!("--commit-order {other}: there are dependency, issue"),
    };
    p.df_when = match f.df_when.as_str() {
        "pressure" => DfWhen::Pressure,
        "always" => DfWhen::Always,
        other => bail!("--df-when {other}: there are pressure, always"),
    };
    set(&mut p.df_max_depth, f.df_max_depth);
    set(&mut p.df_extra_percent, f.df_extra_percent);
    set(&mut p.max_read_amp, f.max_read_amp);
    set(&mut p.max_waiting_jobs, f.max_waiting_jobs);
    set(&mut p.tiered_runs, f.tiered_runs);
    set(&mut p.max_compaction_bytes, f.max_compaction);
    set(&mut p.buckets.initial, f.buckets);
    set(&mut p.buckets.window, f.window);
    set(&mut p.buckets.min_file_bytes, f.min_bucket_file);
    p.buckets.adapt = !f.no_adapt;
    p.buckets.by_bytes = !f.no_bucket_bytes;
    p.stall_counts_compacting = !f.stall_ignores_compacting;
    Ok(s)
}

fn set<T>(field: &mut T, given: Option<T>) {
    if let Some(value) = given {
        *field = value;
    }
}

fn table(head: Vec<String>) -> Table {
    let mut table = Table::new();
    let rule = LineStyle::none().fill('─').junction('─');
    table.load_style(TableStyle::new().header_separator(rule)).set_header(head);
    table.column_iter_mut().skip(1).for_each(|c| c.set_cell_alignment(CellAlignment::Right));
    table
}

const MB: f64 = 1e6;

fn summary(lives: &[(String, Setup, Life)]) -> String {
    let head = [
        "policy",
        "T",
        "load s",
        "drain s",
        "MB/s",
        "quiesced",
        "active",
        ">half",
        "drain act",
        "delay s",
        "stop s",
        "WA",
        "WA end",
        "debt MB",
        "worst",
        "extra MB",
        "L0",
        "depth",
        "L0->L0",
    ];
    let mut t = table(head.map(str::to_owned).to_vec());
    for (name, setup, life) in lives {
        let (delay, stop) = life.load.all_waits();
        let rate = |seconds: f64| life.user_bytes / MB / seconds.max(1e-9);
        let written = life.load.all_written() as f64;
        let all = written + life.drain.all_written() as f64;
        t.add_row([
            name.clone(),
            setup.threads.to_string(),
            format!("{:.2}", life.load.seconds),
            format!("{:.2}", life.drain.seconds),
            format!("{:.1}", rate(life.load.seconds)),
            format!("{:.1}", rate(life.load.seconds + life.drain.seconds)),
            format!("{:.2}", life.load.mean_active()),
            format!("{:.0}%", 100.0 * life.load.more_than_half(setup.threads as usize)),
            format!("{:.2}", life.drain.mean_active()),
            format!("{delay:.2}"),
            format!("{stop:.2}"),
            format!("{:.2}", written / life.user_bytes),
            format!("{:.2}", all / life.user_bytes),
            format!("{:.0}", life.at_load_end.debt as f64 / MB),
            format!("{:.0}", life.worst_debt as f64 / MB),
            format!("{:.0}", life.at_load_end.extra as f64 / MB),
            life.at_load_end.l0_depth.to_string(),
            life.at_load_end.depth.to_string(),
            format!("{:.0}%", 100.0 * share(life, Kind::IntraL0)),
        ]);
    }
    t.to_string()
}

/// Bytes that jobs of `kind` wrote during the load, of those of all compactions.
fn share(life: &Life, kind: Kind) -> f64 {
    let all: u64 = life.load.kinds.values().map(|k| k.written).sum();
    let of = life.load.kinds.get(&kind).map_or(0, |k| k.written);
    of as f64 / all.max(1) as f64
}

fn details(name: &str, setup: &Setup, life: &Life) -> String {
    let mut out = format!(
        "{name}, {} threads: {:.1} core s of {:.1}; disk {:.0} MB/s; {} trees; {} buckets\n",
        setup.threads,
        life.cpu_seconds,
        (life.load.seconds + life.drain.seconds) * setup.cores,
        life.disk_bytes as f64 / MB / life.load.seconds.max(1e-9),
        life.installs,
        life.at_end.buckets,
    );
    for (what, span) in [("load", &life.load), ("drain", &life.drain)] {
        span_details(&mut out, what, span, life);
    }
    let mut t =
        table(["MB at", "L0", "L1", "L2", "L3", "L4", "L5", "L6"].map(str::to_owned).into());
    for (when, shape) in [("load end", &life.at_load_end), ("end", &life.at_end)] {
        let bytes = shape.bytes.iter().map(|&b| format!("{:.0}", b as f64 / MB));
        t.add_row(std::iter::once(when.to_owned()).chain(bytes));
    }
    out + &t.to_string() + "\n"
}

fn span_details(out: &mut String, what: &str, span: &Span, life: &Life) {
    let seconds = span.seconds.max(1e-9);
    let _ = write!(out, "  {what} {seconds:.2} s; flushes {:.2} active;", span.flushing / seconds);
    for ((from, to), area) in &span.active {
        let _ = write!(out, " L{from}->L{to} {:.2}", area / seconds);
    }
    out.push('\n');
    let written = (0..MAX_LEVELS).filter(|&l| span.written[l] > 0);
    let by_level: Vec<String> =
        written.map(|l| format!("L{l} {:.2}", span.written[l] as f64 / life.user_bytes)).collect();
    let _ = writeln!(out, "  {what} written / user: {}", by_level.join("  "));
    for (cause, (delay, stop)) in &span.waited {
        let _ =
            writeln!(out, "  {what} waits {}: delay {delay:.2} s, stop {stop:.2} s", cause.name());
    }
    for (kind, KindTally { jobs, read, written, seconds }) in &span.kinds {
        let _ = writeln!(
            out,
            "  {what} {kind:?}: {jobs} jobs, read {:.0} MB ({:.1} each), wrote {:.0} MB, {:.2} s each",
            *read as f64 / MB,
            *read as f64 / MB / (*jobs).max(1) as f64,
            *written as f64 / MB,
            seconds / (*jobs).max(1) as f64,
        );
    }
}

fn csv(lives: &[(String, Setup, Life)]) -> String {
    let mut out = String::from("policy,threads,second,series,value\n");
    for (name, setup, life) in lives {
        for (i, step) in life.steps.iter().enumerate() {
            let mut row = |series: String, value: f64| {
                let second = i as f64 / 10.0;
                let _ = writeln!(out, "{name},{},{second:.1},{series},{value:.4}", setup.threads);
            };
            for ((from, to), active) in &step.active {
                row(format!("L{from}->L{to}"), *active);
            }
            row("flush".into(), step.flushes);
            row("l0_depth".into(), f64::from(step.l0_depth));
            row("debt_mb".into(), step.debt as f64 / MB);
            row("mb_per_s".into(), step.bytes / MB * 10.0);
            row("stalled".into(), step.stalled);
        }
    }
    out
}

fn parse_bytes(text: &str) -> Result<u64, String> {
    let units = [("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30), ("B", 1), ("", 1)];
    parse(text, &units)
}

fn parse_count(text: &str) -> Result<u64, String> {
    parse(text, &[("K", 1_000), ("M", 1_000_000), ("G", 1_000_000_000), ("", 1)])
}

fn parse(text: &str, units: &[(&str, u64)]) -> Result<u64, String> {
    let number = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = &text[number.len()..];
    let scale = units.iter().find(|u| u.0 == unit);
    let Some((_, scale)) = scale else {
        let names: Vec<_> = units.iter().map(|u| u.0).collect();
        return Err(format!("`{unit}` is no unit here; use {}", names.join(" ").trim_end()));
    };
    match number.parse::<f64>() {
        Ok(x) if x >= 0.0 && x * (*scale as f64) < 1e18 => Ok((x * *scale as f64) as u64),
        _ => Err(format!("`{number}` is no number")),
    }
}
