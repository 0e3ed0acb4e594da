//! `bench`: the store under the bench.
//!
//! | setting | Lithify |
//! |---|---|
//! | `policy` | [`Policy`] of that name; `hybrid:unchecked` is `hybrid` without the checks that are on by default, to measure them |
//! | `background-threads` N | `compaction_threads` N |
//! | `subcompactions` N | `max_subcompactions` N |
//! | `flush-threads` N | `flush_threads` N |
//! | `memtable-bytes`, `memtables` | `memtable_bytes`, `memtable_count` |
//! | `cache-bytes` | `memory_budget` less the memtables, the buffers of jobs and what indexes and filters will take, because other stores keep those outside their cache |
//! | `compression` | `compression_upper` and `compression_lower` |
//! | `wal` off, buffered, os, sync | [`Durability`] of each write: `NoWal`, `Buffered`, `Os`, `Sync` |
//! | `direct-io-compaction`, `direct-reads`, `mapped-reads` | `direct_background_io`, `direct_reads`, `mapped_reads` |
//! | `throttle-bandwidth`, `-latency`, `-channels` | a [`ThrottledFs`] in front of this machine's files; a sync takes the same latency |
//! | `set` | the setting of that name |
//! | `dilate` | a [`DilatedRt`] in front of this machine's threads |
//!
//! All others have the same name on both sides. Equal everywhere and not a setting: format version
//! 6, checksums verified on every read.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use lithify::{
    Builder, Db, DbIter, Durability, Policy, Settings, SharedCache, WriteBatch, WriteOptions,
};
use lithify_bench::compare::EngineCommand;
use lithify_bench::{
    BatchOp, BenchArgs, BenchSettings, BenchSub, CompactionPri, Compression, EngineIdentity,
    EngineStats, Moment, OWN_POLICY, StallStat, Store, StoreIter, StoreOpener, WalMode, bench_main,
};
use lithify_slow::{Bandwidth, DilatedRt, Throttle, ThrottledFs};

use crate::engines::{EngineArg, lines as lines_of};
use crate::failure::of_usage;
use crate::open::SetArg;

mod engines;
mod history;

/// What is checked by default is left out, to see what it costs.
const UNCHECKED: &str = "hybrid:unchecked";

/// `lithify bench`: a store's, and what this program alone has.
#[derive(Clone, Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true, after_help = lithify_bench::EXAMPLES)]
pub(crate) struct BenchCommand {
    #[command(subcommand)]
    sub: Option<Sub>,
    #[command(flatten)]
    args: BenchArgs,
    #[command(flatten)]
    engine: EngineArg,
}

#[derive(Clone, Debug, clap::Subcommand)]
#[expect(
    clippy::large_enum_variant,
    reason = "a flattened one cannot be in a box, and is parsed once"
)]
enum Sub {
    #[command(flatten)]
    Store(BenchSub),
    /// What merges a compaction how fast, without a store around it: the CPU, and a simulated FPGA if this
    /// build has one
    Engines(Box<engines::EnginesBench>),
}

/// Runs `lithify bench`.
pub(crate) fn run(command: BenchCommand) -> Result<ExitCode> {
    let sub = match command.sub {
        Some(Sub::Engines(bench)) => return bench.run(),
        Some(Sub::Store(sub)) => Some(sub),
        None => None,
    };
    if sub.is_none() {
        check(&command.args.settings).map_err(of_usage)?;
    }
    let own = EngineCommand {
        name: "lithify".into(),
        program: std::env::current_exe().context("finding this program")?,
        prefix: vec!["bench".into()],
        preset: None,
    };
    let opener = Opener { engine: command.engine };
    let valid = bench_main(&opener, own, sub, command.args)?;
    Ok(if valid { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Refuses settings that no store opens with, before anything is made.
fn check(settings: &BenchSettings) -> Result<()> {
    let resolved = settings.clone().resolve()?;
    Ok(store_settings(&resolved)?.check()?)
}

/// Opens stores for the bench.
struct Opener {
    /// What merges in them.
    engine: EngineArg,
}

impl Opener {
    /// What opens a store with the settings `own`, which those of the bench come to.
    fn builder(&self, settings: &BenchSettings, own: &Settings) -> Result<Builder> {
        // A cache of its own would take what memtables and jobs leave of their memory, which other stores' caches do not.
        let cache = SharedCache::new(settings.cache_bytes.max(1 << 20) + table_memory(settings));
        let mut builder = Builder::new(own.clone()).shared_cache(&cache);
        if settings.throttle_flag().is_some() {
            let mut world = Builder::machine(own);
            world.fs = Arc::new(ThrottledFs::new(world.fs, world.rt.clone(), throttle(settings)));
            if let Some(factor) = settings.dilate {
                world.rt = Arc::new(DilatedRt::new(world.rt, factor));
            }
            builder = builder.env(world);
        }
        self.engine.onto(builder)
    }
}

impl StoreOpener for Opener {
    fn identity(&self) -> EngineIdentity {
        EngineIdentity { name: "lithify".into(), version: env!("CARGO_PKG_VERSION").into() }
    }

    fn open(&self, settings: &BenchSettings, dir: &Path, fresh: bool) -> Result<Box<dyn Store>> {
        let mut own = store_settings(settings)?;
        own.create_if_missing = fresh;
        own.error_if_exists = fresh;
        Ok(Box::new(Bench { db: self.builder(settings, &own)?.open(dir)? }))
    }

    fn policies(&self) -> Vec<&'static str> {
        Policy::names().into_iter().chain([UNCHECKED]).collect()
    }

    fn policy(&self, settings: &BenchSettings) -> String {
        match settings.policy.as_str() {
            OWN_POLICY => store_settings(settings)
                .map_or(OWN_POLICY, |own| own.effective_policy().name())
                .to_owned(),
            name => name.to_owned(),
        }
    }

    fn history(&self, dir: &Path) -> Result<Option<Vec<Moment>>> {
        history::read(dir)
    }
}

/// The slower disk that the settings ask for.
fn throttle(b: &BenchSettings) -> Throttle {
    let latency = Duration::from_micros(b.throttle_latency.unwrap_or(0));
    Throttle {
        bandwidth: b.throttle_bandwidth.map_or(Bandwidth::Unlimited, Bandwidth::Shared),
        latency,
        sync_latency: latency,
        ops_per_second: 0,
        channels: b.throttle_channels.unwrap_or(0),
    }
}

/// The bench's settings as the store's.
fn store_settings(b: &BenchSettings) -> Result<Settings> {
    let mut s = Settings::default();
    s.unchecked = b.policy == UNCHECKED;
    s.policy = match b.policy.as_str() {
        OWN_POLICY => None,
        UNCHECKED => Some(Policy::Hybrid),
        name => Some(Policy::from_name(name).ok_or_else(|| {
            let names = Policy::names().join(", ");
            anyhow!("--policy {name}: Lithify has {OWN_POLICY}, {names}")
        })?),
    };
    s.compaction_pri = match b.compaction_pri {
        CompactionPri::MinOverlappingRatio => lithify::CompactionPri::MinOverlappingRatio,
        CompactionPri::ByCompensatedSize => lithify::CompactionPri::ByCompensatedSize,
        CompactionPri::OldestLargestSeqFirst => lithify::CompactionPri::OldestLargestSeqFirst,
        CompactionPri::OldestSmallestSeqFirst => lithify::CompactionPri::OldestSmallestSeqFirst,
        CompactionPri::RoundRobin => lithify::CompactionPri::RoundRobin,
    };
    s.compaction_threads = b.background_threads as u32;
    s.max_subcompactions =
        u32::try_from(b.subcompactions).context("--subcompactions is too large")?;
    s.flush_threads = b.flush_threads as u32;
    s.auto_compaction = !b.no_auto_compaction;
    s.memtable_bytes = b.memtable_bytes;
    s.memtable_count = b.memtables as u32;
    // Other stores do not count the buffers of their jobs.
    let buffers = (b.background_threads + b.flush_threads) as u64 * BUFFERS_OF_JOB;
    s.buffer_bytes = Some(buffers);
    let beside = buffers + b.cache_bytes.max(1 << 20) + table_memory(b);
    // Nor a quarter for what is not counted.
    s.memory_budget = b.memtable_bytes * b.memtables as u64 + beside / 3 * 4 + 4;
    // And they keep indexes and filters whole.
    s.partition_bytes = Some(0);
    s.durability = durability(b.wal);
    s.level_base_bytes = b.level_base_bytes;
    s.level_multiplier = whole("--level-multiplier", b.level_multiplier)?;
    s.dynamic_levels = b.dynamic_level_bytes;
    s.file_bytes = b.file_bytes;
    s.l0_trigger = b.l0_trigger;
    s.l0_slowdown = b.l0_slowdown;
    s.l0_stop = b.l0_stop;
    s.compression_upper = codec(b.compression);
    s.compression_lower = codec(b.compression);
    s.bloom_bits = whole("--bloom-bits", b.bloom_bits)?;
    s.block_bytes = u32::try_from(b.block_size).context("--block-size is too large")?;
    s.direct_background_io = b.direct_io_compaction;
    s.direct_reads = b.direct_reads;
    s.mapped_reads = Some(b.mapped_reads);
    SetArg::new(b.set.clone()).apply(&mut s)?;
    Ok(s)
}

/// What a flush or compaction takes at its largest reads and writes.
const BUFFERS_OF_JOB: u64 = 64 << 20;

/// Bytes that indexes and filters of all tables take at most, all keys being live twice.
fn table_memory(b: &BenchSettings) -> u64 {
    let keys = b.num() as f64;
    let entry = (b.key_size + b.value_size) as f64;
    let filters = keys * b.bloom_bits / 8.0;
    let blocks = keys * (entry / b.block_size as f64).min(1.0);
    (2.0 * (filters + blocks * (b.key_size + 40) as f64)) as u64
}

fn whole(flag: &str, number: f64) -> Result<u32> {
    if number.fract() != 0.0 || !(0.0..=1e9).contains(&number) {
        bail!("{flag} {number}: Lithify takes a whole number");
    }
    Ok(number as u32)
}

fn codec(compression: Compression) -> lithify::Compression {
    match compression {
        Compression::None => lithify::Compression::None,
        Compression::Lz4 => lithify::Compression::Lz4,
        Compression::Snappy => lithify::Compression::Snappy,
        // RocksDB's default level of Zstandard.
        Compression::Zstd => lithify::Compression::Zstd(3),
    }
}

fn durability(wal: WalMode) -> Durability {
    match wal {
        WalMode::Off => Durability::NoWal,
        WalMode::Buffered => Durability::Buffered,
        WalMode::Os => Durability::Os,
        WalMode::Sync => Durability::Sync,
    }
}

/// An open store under the bench.
struct Bench {
    db: Db,
}

fn at(wal: WalMode) -> WriteOptions {
    WriteOptions::at(durability(wal))
}

impl Store for Bench {
    fn put(&self, key: &[u8], value: &[u8], wal: WalMode) -> Result<()> {
        Ok(self.db.put_opt(key, value, &at(wal))?)
    }

    fn delete(&self, key: &[u8], wal: WalMode) -> Result<()> {
        Ok(self.db.delete_opt(key, &at(wal))?)
    }

    fn write_batch(&self, ops: &[BatchOp<'_>], wal: WalMode) -> Result<()> {
        let mut batch = WriteBatch::new();
        for op in ops {
            match *op {
                BatchOp::Put(key, value) => batch.put(key, value)?,
                BatchOp::Delete(key) => batch.delete(key)?,
            }
        }
        Ok(self.db.write_opt(&batch, &at(wal))?)
    }

    fn get(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        let Some(found) = self.db.get(key)? else { return Ok(false) };
        value.clear();
        value.extend_from_slice(&found);
        Ok(true)
    }

    fn multi_get(&self, keys: &[&[u8]], values: &mut Vec<Option<Vec<u8>>>) -> Result<()> {
        values.clear();
        values.extend(self.db.multi_get(keys)?.into_iter().map(|value| value.map(Vec::from)));
        Ok(())
    }

    fn iter(&self) -> Result<Box<dyn StoreIter + '_>> {
        Ok(Box::new(Iter(self.db.iter()?)))
    }

    fn flush(&self) -> Result<()> {
        Ok(self.db.flush()?)
    }

    fn compact_all(&self) -> Result<()> {
        Ok(self.db.compact_range(None, None)?)
    }

    fn wait_idle(&self) -> Result<()> {
        self.db.wait_idle(None)?;
        Ok(())
    }

    fn stats(&self) -> Result<EngineStats> {
        let stats = self.db.stats();
        let c = &stats.counts;
        let seconds = |nanos: u64| nanos as f64 / 1e9;
        Ok(EngineStats {
            flush_write_bytes: c.flush_bytes,
            flush_seconds: seconds(c.flush_nanos),
            compact_read_bytes: c.compaction_read_bytes,
            compact_write_bytes: c.compaction_write_bytes,
            compact_jobs: c.compactions,
            compact_seconds: seconds(c.compaction_nanos),
            compact_cpu_seconds: seconds(c.compaction_cpu_nanos),
            level_write_bytes: stats.levels.iter().map(|l| l.written_bytes).collect(),
            wal_bytes: c.wal_bytes,
            stall_seconds: stats.stalled().as_secs_f64(),
            stalls: stats
                .stalls
                .iter()
                .map(|(cause, time)| StallStat {
                    cause: (*cause).to_owned(),
                    // Only the time of a cause is kept.
                    count: 0,
                    seconds: Some(time.as_secs_f64()),
                })
                .collect(),
            debt_bytes: Some(stats.debt_bytes),
            runs: Some(stats.levels.iter().map(|l| l.runs as u64).sum()),
            l0_runs: stats.levels.first().map(|l| l.runs as u64),
        })
    }

    fn stats_text(&self) -> Result<String> {
        let stats = self.db.stats();
        let counts = stats.counts.list();
        let mut lines: Vec<String> =
            counts.iter().map(|(name, n)| format!("{name:<24} {n}")).collect();
        lines.extend(lines_of(&stats.engines));
        Ok(format!("{}\n\n{}", self.db.picture().trim_end(), lines.join("\n")))
    }

    fn close(self: Box<Self>) -> Result<()> {
        Ok(self.db.close()?)
    }
}

struct Iter(DbIter);

impl StoreIter for Iter {
    fn seek_to_first(&mut self) {
        self.0.seek_to_first();
    }
    fn seek_to_last(&mut self) {
        self.0.seek_to_last();
    }
    fn seek(&mut self, key: &[u8]) {
        self.0.seek(key);
    }
    fn next(&mut self) {
        self.0.next();
    }
    fn prev(&mut self) {
        self.0.prev();
    }
    fn valid(&self) -> bool {
        self.0.valid()
    }
    fn key(&self) -> &[u8] {
        self.0.key()
    }
    fn value(&self) -> &[u8] {
        self.0.value()
    }
    fn status(&self) -> Result<()> {
        Ok(self.0.status()?)
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Flags {
        #[command(flatten)]
        bench: BenchArgs,
        #[command(flatten)]
        engine: EngineArg,
    }

    /// The cache has what was asked for, as those of other stores have, and not what memtables and jobs leave.
    #[test]
    fn the_cache_is_as_large_as_was_asked_for() {
        let place = tempfile::tempdir().unwrap();
        let flags = ["bench", "--num=20000", "--cache-bytes=1MiB", "--memtable-bytes=8MiB"];
        let Flags { bench, engine } = Flags::parse_from(flags);
        let settings = bench.settings.resolve().unwrap();
        let allowed = settings.cache_bytes + table_memory(&settings);
        let own = store_settings(&settings).unwrap();
        let opener = Opener { engine };
        let db = opener.builder(&settings, &own).unwrap().open(place.path()).unwrap();
        for n in 0..8000u32 {
            db.put(n.to_be_bytes(), [n as u8; 1000]).unwrap();
        }
        db.flush().unwrap();
        db.wait_idle(None).unwrap();
        let until = std::time::Instant::now() + Duration::from_millis(2500);
        while std::time::Instant::now() < until {
            for n in 0..8000u32 {
                db.get(n.to_be_bytes()).unwrap().unwrap();
            }
            let has = db.int_property("rocksdb.block-cache-capacity").unwrap();
            assert!(
                has <= allowed + allowed / 50,
                "{has} bytes of cache, and {allowed} were asked for"
            );
        }
        db.close().unwrap();
    }
}
