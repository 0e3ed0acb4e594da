//! Settings of a run: one list of flags that every engine's binary shares.
//!
//! Keeps: [`BenchSettings::to_flags`] and the parser are inverse, so `compare` hands exactly the
//! settings it was given to every engine.
//! Leaves to others: what a setting means inside an engine (its [`crate::StoreOpener`]).

use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use serde::{Deserialize, Serialize};

use crate::keys::distinct_keys;
use crate::mix::Mix;
use crate::place::check_can_write;
use crate::tour;
use crate::units::{parse_bytes, parse_count, parse_size, show_bytes, show_count};
use crate::usage::Usage;
use crate::workload::Workload;

/// The policy of an engine that may choose itself.
pub const OWN_POLICY: &str = "default";

/// When a write counts as done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum WalMode {
    /// No write-ahead log: what is not flushed is lost at a crash.
    Off,
    /// Logged in the process's memory: survives nothing before the next write-out.
    Buffered,
    /// Logged to the operating system: survives a killed process.
    Os,
    /// Logged and synced to the disk: survives a power cut.
    Sync,
}

/// Codec of data blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Compression {
    /// None.
    None,
    /// LZ4.
    Lz4,
    /// Zstandard at its default level.
    Zstd,
    /// Snappy.
    Snappy,
}

/// Which file of a level is compacted first (RocksDB's names).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum CompactionPri {
    /// Least overlap with the next level, relative to the file's size.
    MinOverlappingRatio,
    /// Largest, with deletions counted.
    ByCompensatedSize,
    /// The range whose newest update is oldest.
    OldestLargestSeqFirst,
    /// The range whose oldest update is oldest.
    OldestSmallestSeqFirst,
    /// Round-robin over the key space.
    RoundRobin,
}

/// Everything that decides what a run does. Byte counts take `KiB`, `MiB`, `GiB`; other counts
/// take `K`, `M`, `G`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Args)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct BenchSettings {
    /// Workloads to run, in this order, separated by commas. Without any: a tour in under 90 s
    #[arg(long, value_delimiter = ',', value_name = "LIST", help_heading = "Load")]
    pub workloads: Vec<Workload>,
    /// Size of the key space, and operations per thread of writing workloads
    /// [default: 1M; the tour has its own]
    #[arg(long, value_parser = parse_count, value_name = "N", help_heading = "Load")]
    pub num: Option<u64>,
    /// Operations per thread of reading workloads [default: num]
    #[arg(long, value_parser = parse_count, value_name = "N", help_heading = "Load")]
    pub reads: Option<u64>,
    /// Bytes per key
    #[arg(long, default_value = "16", value_parser = parse_size, value_name = "BYTES", help_heading = "Load")]
    pub key_size: usize,
    /// Bytes per value
    #[arg(long, default_value = "100", value_parser = parse_size, value_name = "BYTES", help_heading = "Load")]
    pub value_size: usize,
    /// Size that values compress to, as a share: 1 is incompressible
    #[arg(long, default_value_t = 1.0, value_name = "SHARE", help_heading = "Load")]
    pub value_compressibility: f64,
    /// Client threads
    #[arg(long, default_value_t = 1, value_name = "N", help_heading = "Load")]
    pub threads: usize,
    /// Run each workload for this many seconds instead of by number of operations
    #[arg(long, value_name = "SECONDS", help_heading = "Load")]
    pub duration: Option<f64>,
    /// End a workload after this many seconds even if operations are left
    #[arg(long, value_name = "SECONDS", help_heading = "Load")]
    pub limit_seconds: Option<f64>,
    /// Offer operations at this rate in all, open loop: latency counts from the moment each was
    /// due [default: as fast as possible]
    #[arg(long, value_name = "OPS/S", help_heading = "Load")]
    pub rate: Option<f64>,
    /// Rate of readwhilewriting's writer [default: as fast as possible; the tour has its own]
    #[arg(long, value_name = "OPS/S", help_heading = "Load")]
    pub write_rate: Option<f64>,
    /// Seed of keys and values: the same seed gives the same operations
    #[arg(long, default_value_t = 1, value_name = "N", help_heading = "Load")]
    pub seed: u64,
    /// Operations per write batch or multi-get
    #[arg(long, default_value_t = 1, value_name = "N", help_heading = "Load")]
    pub batch_size: usize,
    /// Entries read after each seek of seekrandom
    #[arg(long, default_value_t = 10, value_name = "N", help_heading = "Load")]
    pub seek_nexts: u64,
    /// Reads of readrandomwriterandom
    #[arg(long, default_value_t = 90.0, value_name = "PERCENT", help_heading = "Load")]
    pub read_percent: f64,
    /// Deletions of overwritedelete
    #[arg(long, default_value_t = 30.0, value_name = "PERCENT", help_heading = "Load")]
    pub delete_percent: f64,
    /// Shares of puts, gets and seeks of mixgraph
    #[arg(long, default_value = "1:0:0", value_name = "PUT:GET:SEEK", help_heading = "Load")]
    pub mix: Mix,
    /// Key ranges of each phase of mixgraph; the phases are equally long
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "10,20,30,40,50",
        value_name = "LIST",
        help_heading = "Load"
    )]
    pub mix_ranges: Vec<u64>,
    /// Let mixgraph's hot range move on after so many operations; 0 for never
    #[arg(long, default_value = "0", value_parser = parse_count, value_name = "N", help_heading = "Load")]
    pub mix_rotate: u64,
    /// Draw mixgraph's keys uniformly, as db_bench's Prefix_random does by accident: it ignores
    /// the ranges whenever a constant of its distribution inside ranges is zero
    #[arg(long, help_heading = "Load")]
    pub db_bench_compat: bool,
    /// Skew of YCSB's requests and of overwritezipf
    #[arg(long, default_value_t = 0.99, value_name = "THETA", help_heading = "Load")]
    pub zipf: f64,
    /// Share of values compared byte by byte when read; owner, version and check word of every
    /// value are always checked
    #[arg(long, default_value_t = 1.0, value_name = "SHARE", help_heading = "Load")]
    pub verify_fraction: f64,
    /// Memory to touch and free beforehand, because a virtual machine's host may have taken it
    /// back: a byte count, `auto` (by the size of the run) or 0
    #[arg(long, default_value = "auto", value_name = "BYTES", help_heading = "Load")]
    pub touch_memory: String,

    /// Bench directory; the store lives in its folder `db`
    #[arg(long, default_value = "bench-data/run", value_name = "DIR", help_heading = "Store")]
    pub db: PathBuf,
    /// Keep what the store holds instead of starting fill workloads from an empty one
    #[arg(long, help_heading = "Store")]
    pub use_existing_db: bool,
    /// Compaction policy: leveled, hybrid, or whatever else the engine knows; `default` is what
    /// the engine chooses itself
    #[arg(long, default_value = OWN_POLICY, value_name = "NAME", help_heading = "Store")]
    pub policy: String,
    /// Compaction threads; the flush threads come on top
    #[arg(long, default_value_t = 2, value_name = "N", help_heading = "Store")]
    pub background_threads: usize,
    /// Parts into which a wide compaction may be cut, merged side by side on compaction threads
    #[arg(long, default_value_t = 1, value_name = "N", help_heading = "Store")]
    pub subcompactions: usize,
    /// Threads that write memtables to tables
    #[arg(long, default_value_t = 1, value_name = "N", help_heading = "Store")]
    pub flush_threads: usize,
    /// Leave compaction to the workload `compact`, so that runs pile up in L0
    #[arg(long, help_heading = "Store")]
    pub no_auto_compaction: bool,
    /// Bytes of one memtable
    #[arg(long, default_value = "64MiB", value_parser = parse_bytes, value_name = "BYTES", help_heading = "Store")]
    pub memtable_bytes: u64,
    /// Memtables, the active one included
    #[arg(long, default_value_t = 2, value_name = "N", help_heading = "Store")]
    pub memtables: usize,
    /// Target size of L1
    #[arg(long, default_value = "256MiB", value_parser = parse_bytes, value_name = "BYTES", help_heading = "Store")]
    pub level_base_bytes: u64,
    /// Size ratio of neighbouring levels
    #[arg(long, default_value_t = 10.0, value_name = "RATIO", help_heading = "Store")]
    pub level_multiplier: f64,
    /// Derive level sizes from the last level instead of from L1
    #[arg(long, help_heading = "Store")]
    pub dynamic_level_bytes: bool,
    /// Target size of table files
    #[arg(long, default_value = "64MiB", value_parser = parse_bytes, value_name = "BYTES", help_heading = "Store")]
    pub file_bytes: u64,
    /// L0 runs that start a compaction
    #[arg(long, default_value_t = 4, value_name = "N", help_heading = "Store")]
    pub l0_trigger: u32,
    /// L0 runs that slow writes down
    #[arg(long, default_value_t = 20, value_name = "N", help_heading = "Store")]
    pub l0_slowdown: u32,
    /// L0 runs that stop writes
    #[arg(long, default_value_t = 36, value_name = "N", help_heading = "Store")]
    pub l0_stop: u32,
    /// Which file of a level is compacted first
    #[arg(
        long,
        value_enum,
        default_value = "min-overlapping-ratio",
        value_name = "NAME",
        help_heading = "Store"
    )]
    pub compaction_pri: CompactionPri,
    /// When a write counts as done
    #[arg(long, value_enum, default_value = "os", value_name = "MODE", help_heading = "Store")]
    pub wal: WalMode,
    /// Codec of data blocks
    #[arg(long, value_enum, default_value = "none", value_name = "CODEC", help_heading = "Store")]
    pub compression: Compression,
    /// Bloom filter bits per key; 0 for no filters
    #[arg(long, default_value_t = 10.0, value_name = "BITS", help_heading = "Store")]
    pub bloom_bits: f64,
    /// Uncompressed bytes of a data block
    #[arg(long, default_value = "4KiB", value_parser = parse_bytes, value_name = "BYTES", help_heading = "Store")]
    pub block_size: u64,
    /// Block cache; 0 for none
    #[arg(long, default_value = "32MiB", value_parser = parse_bytes, value_name = "BYTES", help_heading = "Store")]
    pub cache_bytes: u64,
    /// Flush and compact past the page cache
    #[arg(long, help_heading = "Store")]
    pub direct_io_compaction: bool,
    /// Read for users past the page cache
    #[arg(long, help_heading = "Store")]
    pub direct_reads: bool,
    /// Read for users out of mappings of the tables
    #[arg(long, help_heading = "Store", conflicts_with = "direct_reads")]
    pub mapped_reads: bool,
    /// Settings of Lithify by their own names, above those that follow from other flags
    #[arg(long, value_delimiter = ',', value_name = "NAME=VALUE", help_heading = "Store")]
    pub set: Vec<String>,

    /// Put a slower disk under Lithify: bytes per second that its reads and writes share
    #[arg(long, value_parser = parse_bytes, value_name = "BYTES/S", help_heading = "Slower disk")]
    pub throttle_bandwidth: Option<u64>,
    /// The same: time that each operation takes besides its bytes. Buffered writes pay it too, so
    /// a log that is written for every put makes the client slow: --wal off, or buffered
    #[arg(long, value_name = "MICROS", help_heading = "Slower disk")]
    pub throttle_latency: Option<u64>,
    /// The same: operations under way at the same time, first come, first served
    #[arg(long, value_name = "N", help_heading = "Slower disk")]
    pub throttle_channels: Option<u32>,
    /// Put slower processors under Lithify: each client, flush and compaction thread sleeps FACTOR -
    /// 1 times the processor time it takes, so that threads run side by side as if each had a core
    /// of its own. Slow the disk by the same factor, and read ratios
    #[arg(long, value_name = "FACTOR", help_heading = "Slower disk")]
    pub dilate: Option<f64>,
}

/// Where results go.
#[derive(Clone, Debug, Default, Args)]
pub struct OutputArgs {
    /// Write the whole report as JSON to FILE, or to standard output with `-`
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub json: Option<PathBuf>,
    /// No tables
    #[arg(long, help_heading = "Output")]
    pub no_table: bool,
    /// Print the latency distribution of each workload
    #[arg(long, help_heading = "Output")]
    pub histogram: bool,
    /// Write who worked when to FILE: a picture (.svg), or the figures of every tenth of a second
    /// (.csv, .json). Covers the last store of the run
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub timeline: Option<PathBuf>,
    /// No progress display
    #[arg(long, short, help_heading = "Output")]
    pub quiet: bool,
}

/// All flags of one run.
#[derive(Clone, Debug, Args)]
#[command(about = None, long_about = None)]
pub struct BenchArgs {
    /// What to run.
    #[command(flatten)]
    pub settings: BenchSettings,
    /// Where results go.
    #[command(flatten)]
    pub output: OutputArgs,
}

/// Examples shown under `--help`.
pub const EXAMPLES: &str = "\
Examples:
  A tour of everything, under 90 s:
      lithify bench
  Fill a store with 6 million values of 1 KiB, read it back, check every byte:
      lithify bench --workloads fillrandom,readrandom,verify --num 6M --value-size 1024
  Sustained random writes without a log, direct IO, two compaction threads:
      lithify bench --workloads fillrandom --num 6M --value-size 1024 --wal off \\
            --level-multiplier 5 --direct-io-compaction --background-threads 2
  How fast is compaction alone, on one thread:
      lithify bench --workloads fillrandom,compact --num 20M --value-size 32 --wal off \\
            --no-auto-compaction --background-threads 1 --direct-io-compaction
  Readers beside a writer for a minute, four readers, results as JSON:
      lithify bench --workloads fillseq,readwhilewriting --threads 4 --duration 60 --json -";

impl OutputArgs {
    /// True if JSON takes standard output, so that tables go to standard error.
    pub fn json_on_stdout(&self) -> bool {
        self.json.as_ref().is_some_and(|path| path.as_os_str() == "-")
    }

    /// Refuses files that can't be written, before a run and not behind it.
    pub(crate) fn check_places(&self) -> Result<()> {
        let json = self.json.as_deref().filter(|_| !self.json_on_stdout());
        json.map_or(Ok(()), |file| check_can_write("--json", file))?;
        self.timeline.as_deref().map_or(Ok(()), |file| check_can_write("--timeline", file))
    }
}

impl BenchSettings {
    /// Fills in what depends on other settings and checks that all of them make sense.
    pub fn resolve(mut self) -> Result<BenchSettings> {
        if self.workloads.is_empty() {
            self = tour::apply(self);
        }
        let num = *self.num.get_or_insert(1_000_000);
        self.reads.get_or_insert(num);
        self.check().map_err(Usage::of)?;
        Ok(self)
    }

    /// Size of the key space (of resolved settings).
    pub fn num(&self) -> u64 {
        self.num.unwrap_or(1_000_000)
    }

    /// Operations per thread of reading workloads (of resolved settings).
    pub fn reads(&self) -> u64 {
        self.reads.unwrap_or(self.num())
    }

    /// Key numbers that workloads may come to use: YCSB inserts as many again as it loads.
    pub(crate) fn key_space(&self) -> u64 {
        let ycsb = self.workloads.iter().any(|w| w.is_ycsb() || *w == Workload::YcsbLoad);
        if ycsb { self.num() * 2 } else { self.num() }
    }

    /// The first flag of a slower disk, or of slower processors, that is given.
    pub fn throttle_flag(&self) -> Option<&'static str> {
        [
            ("--throttle-bandwidth", self.throttle_bandwidth.is_some()),
            ("--throttle-latency", self.throttle_latency.is_some()),
            ("--throttle-channels", self.throttle_channels.is_some()),
            ("--dilate", self.dilate.is_some()),
        ]
        .into_iter()
        .find_map(|(flag, given)| given.then_some(flag))
    }

    /// The first flag that only Lithify knows.
    pub(crate) fn own_flag(&self) -> Option<&'static str> {
        self.throttle_flag().or((!self.set.is_empty()).then_some("--set"))
    }

    fn check(&self) -> Result<()> {
        let (num, key_size) = (self.num(), self.key_size);
        if num == 0 || num > 1 << 40 {
            bail!("--num {num}: give a number of keys from 1 to 2^40");
        }
        if key_size == 0 || key_size > 1024 {
            bail!("--key-size {key_size}: keys have 1 to 1024 bytes");
        }
        if self.key_space() > distinct_keys(key_size) {
            let keys = self.key_space();
            bail!("--key-size {key_size} cannot tell {keys} keys apart; raise it to 8");
        }
        if self.db.to_str().is_none() {
            bail!("--db {:?}: give a path of valid UTF-8, as reports name it", self.db);
        }
        if self.mix_ranges.is_empty() || self.mix_ranges.iter().any(|r| !(1..=65_536).contains(r)) {
            bail!("--mix-ranges: give numbers of key ranges from 1 to 65536");
        }
        if !(self.zipf > 0.0 && self.zipf < 1.0) {
            bail!("--zipf {}: give a skew above 0 and below 1", self.zipf);
        }
        if self.throttle_bandwidth == Some(0) || self.throttle_channels == Some(0) {
            bail!("--throttle-bandwidth and --throttle-channels must be at least 1");
        }
        if self.dilate.is_some_and(|factor| !(1.0..=1000.0).contains(&factor)) {
            bail!("--dilate: give a factor from 1 to 1000");
        }
        if self.value_size > 64 << 20 {
            bail!("--value-size {}: values have at most 64 MiB", self.value_size);
        }
        if self.threads == 0 || self.threads > 1024 || self.threads as u64 > num {
            bail!("--threads {}: give 1 to 1024, and no more than keys", self.threads);
        }
        if self.batch_size == 0 || self.batch_size > 1 << 20 {
            bail!("--batch-size {}: give 1 to 1048576", self.batch_size);
        }
        let counts = [self.background_threads, self.subcompactions, self.flush_threads];
        if counts.contains(&0) || self.memtables == 0 {
            bail!(
                "--background-threads, --subcompactions, --flush-threads and --memtables must be \
                 at least 1"
            );
        }
        self.check_numbers()?;
        self.touch_bytes(0).map(|_| ())
    }

    /// Percentages, shares, times and rates.
    fn check_numbers(&self) -> Result<()> {
        for (flag, percent) in
            [("--read-percent", self.read_percent), ("--delete-percent", self.delete_percent)]
        {
            if !(0.0..=100.0).contains(&percent) {
                bail!("{flag} {percent}: give 0 to 100");
            }
        }
        for (flag, share) in [
            ("--value-compressibility", self.value_compressibility),
            ("--verify-fraction", self.verify_fraction),
        ] {
            if !(0.0..=1.0).contains(&share) {
                bail!("{flag} {share}: give a share from 0 to 1");
            }
        }
        for (flag, number) in [
            ("--duration", self.duration),
            ("--limit-seconds", self.limit_seconds),
            ("--rate", self.rate),
            ("--write-rate", self.write_rate),
        ] {
            if number.is_some_and(|x| !(x > 0.0 && x < 1e9)) {
                bail!("{flag}: give a positive number below 10^9");
            }
        }
        Ok(())
    }

    /// The load in words, for the title of a picture.
    pub(crate) fn in_words(&self) -> String {
        let plural = |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
        let named = |value: &dyn std::fmt::Debug| format!("{value:?}").to_lowercase();
        format!(
            "{} keys of {} B with values of {} B; {}, {}; WAL {}, compression {}, {} of {}",
            show_count(self.num() as f64),
            self.key_size,
            self.value_size,
            plural(self.threads, "client thread"),
            plural(self.background_threads, "compaction thread"),
            named(&self.wal),
            named(&self.compression),
            plural(self.memtables, "memtable"),
            show_bytes(self.memtable_bytes),
        )
    }

    /// Bytes to touch beforehand; `auto` stands for `automatic`.
    pub(crate) fn touch_bytes(&self, automatic: u64) -> Result<u64> {
        match self.touch_memory.as_str() {
            "auto" => Ok(automatic),
            other => parse_bytes(other)
                .map_err(|e| anyhow::anyhow!("--touch-memory {other}: {e}, or `auto`")),
        }
    }

    /// The flags that parse back into these settings.
    ///
    /// Field names are flag names (both kebab-case), so the JSON form is walked: true is a bare
    /// flag, false and null are left out, lists are joined by commas.
    pub fn to_flags(&self) -> Vec<String> {
        use serde_json::Value;
        let Ok(Value::Object(fields)) = serde_json::to_value(self) else {
            unreachable!("settings are a struct of plain values");
        };
        let mut flags = Vec::new();
        for (name, value) in fields {
            let text = match value {
                Value::Null | Value::Bool(false) => continue,
                Value::Bool(true) => {
                    flags.push(format!("--{name}"));
                    continue;
                }
                Value::String(text) => text,
                Value::Array(items) if items.is_empty() => continue,
                Value::Array(items) => {
                    let text = |item: &Value| {
                        item.as_str().map_or_else(|| item.to_string(), str::to_owned)
                    };
                    items.iter().map(text).collect::<Vec<_>>().join(",")
                }
                other => other.to_string(),
            };
            flags.push(format!("--{name}={text}"));
        }
        flags
    }
}
