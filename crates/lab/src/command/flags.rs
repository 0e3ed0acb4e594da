//! The flags of a life, and the setup that they ask for. Names and defaults follow `lithify bench`.

use anyhow::{Result, bail};
use clap::{Arg, Args};
use lithify_bench::{parse_bytes, parse_count};
use lithify_plan::{DfWhen, PlanOptions, PolicyKind};

use super::limits;
use crate::card::CardOptions;
use crate::setup::{CommitOrder, Load, Setup, entry_bytes};

/// Writes of a life.
const NUM: u64 = 400_000;

/// GB/s of a unit of the modelled FPGA and nanoseconds a byte of its host, keys of 16 and values of 1024 bytes at the
/// estimated clock: what `lithify bench engines --only cpu,fpga --rounds 5 --threads 1 --fpga-units 1 --fpga-mhz est` says.
/// The former is modelled. The latter is measured as a multiple of what merging takes the CPU in the same rounds,
/// 0.726 and 0.533 s/GB, and so 1.36 times the lab's 0.75, which is of another machine.
const FPGA_RATE: f64 = 4.5;
const FPGA_HOST_NS: f64 = 1.02;

/// What is modelled.
#[derive(Clone, Debug, Args)]
#[command(mut_args(beside_a_grid))]
pub(super) struct Flags {
    /// Policies, one life or grid for each [default: adaptive,hybrid,df-leveled,bucket; of the
    /// grid, adaptive, which is a database's default]
    #[arg(long, value_delimiter = ',')]
    pub(super) policies: Vec<String>,
    /// Compaction threads, one life for each
    #[arg(long, value_delimiter = ',', default_value = "8")]
    pub(super) threads: Vec<u32>,
    /// Writes [default: 400K; 2M with --change or --offer]
    #[arg(long, value_parser = parse_count)]
    pub(super) num: Option<u64>,
    /// Different keys [default: as many as writes]
    #[arg(long, value_parser = parse_count)]
    pub(super) keys: Option<u64>,
    /// What is written: uniform, unique (every key once, in random order), sequential, zipf or
    /// mixgraph
    #[arg(long, default_value = "uniform")]
    pub(super) load: String,
    /// Key ranges of each phase of mixgraph
    #[arg(long, value_delimiter = ',', default_value = "10,20,30,40,50")]
    pub(super) mix_ranges: Vec<u32>,
    /// Writes after which the heat of mixgraph moves on to the next range; 0 for never [default: never]
    #[arg(long, value_parser = parse_count)]
    pub(super) mix_rotate: Option<u64>,
    /// Exponent of zipf
    #[arg(long, default_value_t = 0.99)]
    pub(super) zipf: f64,
    /// Seconds of writing and of rest between: ON,OFF [default: no rest]
    #[arg(long, value_delimiter = ',')]
    pub(super) bursts: Vec<f64>,
    /// Bytes of keys
    #[arg(long, default_value = "16", value_parser = parse_bytes)]
    pub(super) key_size: u64,
    /// Bytes of values
    #[arg(long, default_value = "1024", value_parser = parse_bytes)]
    pub(super) value_size: u64,
    /// Seed of keys
    #[arg(long, default_value_t = 1)]
    pub(super) seed: u64,

    /// Bytes of one memtable
    #[arg(long, default_value = "4MiB", value_parser = parse_bytes, help_heading = "Store")]
    pub(super) memtable: u64,
    /// Memtables, the active one included: 2 as in `lithify bench`; a database has 4 by default
    #[arg(long, default_value_t = 2, help_heading = "Store")]
    pub(super) memtables: u32,
    /// Target of L1
    #[arg(long, default_value = "16MiB", value_parser = parse_bytes, help_heading = "Store")]
    pub(super) level_base: u64,
    /// Size ratio of neighbouring levels
    #[arg(long, default_value_t = 10, help_heading = "Store")]
    pub(super) multiplier: u32,
    /// Target of files
    #[arg(long, default_value = "4MiB", value_parser = parse_bytes, help_heading = "Store")]
    pub(super) file: u64,
    /// L0 runs: trigger, slow-down, stop
    #[arg(long, value_delimiter = ',', default_value = "4,20,36", help_heading = "Store")]
    pub(super) l0: Vec<u32>,
    /// Flush threads
    #[arg(long, default_value_t = 1, help_heading = "Store")]
    pub(super) flush_threads: u32,
    /// Derive level sizes from the last level
    #[arg(long, help_heading = "Store")]
    pub(super) dynamic_levels: bool,

    /// Disk: bytes per second that reads and writes share; 0 for no limit
    #[arg(long, default_value = "300MiB", value_parser = parse_bytes, help_heading = "Machine")]
    pub(super) bandwidth: u64,
    /// Disk: microseconds of each operation
    #[arg(long, default_value_t = 3000, help_heading = "Machine")]
    pub(super) latency: u64,
    /// Disk: operations at once; 0 for no limit
    #[arg(long, default_value_t = 16, help_heading = "Machine")]
    pub(super) channels: u32,
    /// Threads that transfer [default: as an opened database has]
    #[arg(long, help_heading = "Machine")]
    pub(super) io_threads: Option<u32>,
    /// Processors
    #[arg(long, default_value_t = 2.0, help_heading = "Machine")]
    pub(super) cores: f64,
    /// Processor time of a compaction per input byte
    #[arg(long, help_heading = "Machine")]
    pub(super) cpu_ns_per_byte: Option<f64>,
    /// What merges: cpu, or fpga, a card whose rates `lithify bench engines` predicts; no byte of what is
    /// written differs
    #[arg(long, default_value = "cpu", value_parser = ["cpu", "fpga"], help_heading = "Machine")]
    pub(super) engine: String,
    /// Units of that card: compactions at once
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=64), help_heading = "Machine")]
    pub(super) fpga_units: u32,
    /// GB/s of a unit, with what sets cost besides their bytes
    #[arg(long, default_value_t = FPGA_RATE, help_heading = "Machine")]
    pub(super) fpga_rate: f64,
    /// GB/s to that card and from it: IN,OUT
    #[arg(long, value_delimiter = ',', default_value = "9.5,12", help_heading = "Machine")]
    pub(super) fpga_link: Vec<f64>,
    /// Processor time of the host for each byte that the card merges
    #[arg(long, default_value_t = FPGA_HOST_NS, help_heading = "Machine")]
    pub(super) fpga_host_ns_per_byte: f64,
    /// Processor time of a flush per memtable byte
    #[arg(long, help_heading = "Machine")]
    pub(super) flush_ns_per_byte: Option<f64>,
    /// Processor time of a put
    #[arg(long, help_heading = "Machine")]
    pub(super) client_ns: Option<f64>,
    /// Flushes, compactions and the client compute so many times slower, each on a core of its own
    #[arg(long, default_value_t = 1.0, help_heading = "Machine")]
    pub(super) dilate: f64,
    /// Processor time of a job for each transfer it asks for
    #[arg(long, help_heading = "Machine")]
    pub(super) ask_ns: Option<f64>,
    /// Processor time of a transfer
    #[arg(long, help_heading = "Machine")]
    pub(super) io_ns: Option<f64>,
    /// Processor time of a transfer per byte
    #[arg(long, help_heading = "Machine")]
    pub(super) io_ns_per_byte: Option<f64>,

    /// dependency or issue
    #[arg(long, default_value = "dependency", help_heading = "Planner")]
    pub(super) commit_order: String,
    /// pressure or always
    #[arg(long, default_value = "pressure", help_heading = "Planner")]
    pub(super) df_when: String,
    /// Runs of a level that may cover a key because of stacking
    #[arg(long, help_heading = "Planner")]
    pub(super) df_max_depth: Option<u32>,
    /// Extra bytes of a level in percent of its target
    #[arg(long, help_heading = "Planner")]
    pub(super) df_extra_percent: Option<u32>,
    /// Runs of all levels that may cover a key because of stacking
    #[arg(long, help_heading = "Planner")]
    pub(super) max_read_amp: Option<u32>,
    /// Built jobs that may wait for older ones
    #[arg(long, help_heading = "Planner")]
    pub(super) max_waiting_jobs: Option<u32>,
    /// Runs at which a tiered level goes down
    #[arg(long, help_heading = "Planner")]
    pub(super) tiered_runs: Option<u32>,
    /// Most bytes of a compaction
    #[arg(long, value_parser = parse_bytes, help_heading = "Planner")]
    pub(super) max_compaction: Option<u64>,
    /// The first bucket map stays
    #[arg(long, help_heading = "Planner")]
    pub(super) no_adapt: bool,
    /// Buckets to begin with
    #[arg(long, help_heading = "Planner")]
    pub(super) buckets: Option<u32>,
    /// Flushes of a bucket's window
    #[arg(long, help_heading = "Planner")]
    pub(super) window: Option<u32>,
    /// Least bytes of a bucket's file
    #[arg(long, value_parser = parse_bytes, help_heading = "Planner")]
    pub(super) min_bucket_file: Option<u64>,
    /// Only runs take a bucket down, never bytes
    #[arg(long, help_heading = "Planner")]
    pub(super) no_bucket_bytes: bool,
    /// L0 runs under compaction do not count for stalls
    #[arg(long, help_heading = "Planner")]
    pub(super) stall_ignores_compacting: bool,

    /// Cells of the histograms
    #[arg(long, default_value_t = 4096, help_heading = "Model")]
    pub(super) cells: u32,
    /// Seconds after which a drain is given up
    #[arg(long, default_value_t = 3600.0, help_heading = "Model")]
    pub(super) drain_limit: f64,
    /// Also tell about each job, commit and verdict on writes
    #[arg(long, help_heading = "Output", conflicts_with_all = ["change", "offer"])]
    pub(super) trace: bool,
}

/// The machines and loads of a grid are its own; it takes policies only.
fn beside_a_grid(flag: Arg) -> Arg {
    if flag.get_id() == "policies" { flag } else { flag.conflicts_with("grid") }
}

pub(super) fn setup(f: &Flags, policy: PolicyKind, threads: u32) -> Result<Setup> {
    limits::check(f)?;
    let mut s = Setup::new(policy, threads, f.value_size);
    s.bytes = entry_bytes(f.key_size, f.value_size);
    s.num = f.num.unwrap_or(NUM);
    s.keys = f.keys.unwrap_or(s.num);
    s.seed = f.seed;
    s.cells = f.cells;
    s.drain_limit = f.drain_limit;
    s.trace = f.trace;
    s.flush_threads = f.flush_threads;
    s.load = load(f)?;
    if s.load.is_unique() && s.keys < s.num {
        bail!("--keys {}: --load {} writes every key once; give at least --num", s.keys, f.load);
    }
    s.bursts = bursts(f)?;
    s.device.bandwidth = f.bandwidth;
    s.device.latency = f.latency * 1000;
    s.device.channels = f.channels;
    s.io_threads = f.io_threads;
    s.cores = f.cores;
    set(&mut s.merge_ns, f.cpu_ns_per_byte);
    s.card = card(f)?;
    set(&mut s.flush_ns, f.flush_ns_per_byte);
    set(&mut s.client_ns, f.client_ns);
    set(&mut s.ask_ns, f.ask_ns);
    set(&mut s.io_ns.0, f.io_ns);
    set(&mut s.io_ns.1, f.io_ns_per_byte);
    s.dilate(f.dilate);
    s.commit_order = match f.commit_order.as_str() {
        "dependency" => CommitOrder::Dependency,
        "issue" => CommitOrder::Issue,
        other => {
            bail!("--commit-order {other}: there is no such order; there are dependency, issue")
        }
    };
    s.set_memtable(f.memtable);
    levels(f, &mut s.plan);
    planner(f, &mut s.plan)?;
    Ok(s)
}

fn load(f: &Flags) -> Result<Load> {
    Ok(match f.load.as_str() {
        "uniform" => Load::Uniform,
        "unique" => Load::Unique,
        "sequential" => Load::Sequential,
        "zipf" if f.zipf > 0.0 && f.zipf < 5.0 => Load::Zipf(f.zipf),
        "zipf" => bail!("--zipf {} is out of range; give an exponent above 0 and below 5", f.zipf),
        "mixgraph" => {
            Load::Mix { ranges: f.mix_ranges.clone(), rotate: f.mix_rotate.filter(|&n| n > 0) }
        }
        other => bail!(
            "--load {other}: there is no such load; there are uniform, unique, sequential, zipf, mixgraph"
        ),
    })
}

fn card(f: &Flags) -> Result<Option<CardOptions>> {
    if f.engine == "cpu" {
        return Ok(None);
    }
    let &[to_card, from_card] = f.fpga_link.as_slice() else {
        bail!("--fpga-link takes two numbers; give GB/s to the card and from it, such as 9.5,12");
    };
    Ok(Some(CardOptions {
        units: f.fpga_units as usize,
        rate: f.fpga_rate * 1e9,
        link: (to_card * 1e9, from_card * 1e9),
        host_ns: f.fpga_host_ns_per_byte,
    }))
}

fn bursts(f: &Flags) -> Result<Option<(u64, u64)>> {
    match f.bursts.as_slice() {
        [] => Ok(None),
        &[on, off] if (0.001..1e5).contains(&on) && (0.0..1e5).contains(&off) => {
            Ok(Some(((on * 1e9) as u64, (off * 1e9) as u64)))
        }
        _ => bail!(
            "--bursts takes two numbers; give seconds of writing, 0.001 or more, and of rest, such as 10,10, below 10^5"
        ),
    }
}

fn levels(f: &Flags, p: &mut PlanOptions) {
    if let &[trigger, slowdown, stop] = f.l0.as_slice() {
        (p.l0_trigger, p.l0_slowdown, p.l0_stop) = (trigger, slowdown, stop);
    }
    p.max_memtables = f.memtables;
    p.level_base_bytes = f.level_base;
    p.multiplier = f.multiplier;
    p.file_bytes = f.file;
    p.dynamic_levels = f.dynamic_levels;
}

fn planner(f: &Flags, p: &mut PlanOptions) -> Result<()> {
    p.df_when = match f.df_when.as_str() {
        "pressure" => DfWhen::Pressure,
        "always" => DfWhen::Always,
        other => bail!("--df-when {other}: there is no such time; there are pressure, always"),
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
    Ok(())
}

fn set<T>(field: &mut T, given: Option<T>) {
    if let Some(value) = given {
        *field = value;
    }
}
