//! fjall under the bench: the same workloads, flags and report as `lithify bench`.
//!
//! | setting | fjall |
//! |---|---|
//! | `background-threads` and `flush-threads` | `worker_threads`, their sum |
//! | `memtable-bytes` | `max_memtable_size` |
//! | `cache-bytes` | `cache_size` |
//! | `block-size`, `bloom-bits` | data block size, Bloom filter of all levels |
//! | `wal` os, sync | each write in the journal of the system; `persist(SyncData)` behind each |
//!
//! Compression is off. Everything else is fjall's default. It has no writes without a journal.
//! Leaves to others: everything but fjall's own interface (crate `lithify-bench`).
#![forbid(unsafe_code)]

use std::ops::Bound;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use fjall::config::{
    BlockSizePolicy, BloomConstructionPolicy, CompressionPolicy, FilterPolicy, FilterPolicyEntry,
};
use fjall::{
    CompressionType, Database, Keyspace, KeyspaceCreateOptions, PersistMode, Readable as _, Slice,
    Snapshot,
};
use lithify_bench::{
    BatchOp, BenchSettings, Compression, EngineIdentity, EngineStats, RangeIter, Ranges, Store,
    StoreIter, StoreOpener, WalMode, Walk,
};

/// How long a look whether work is left waits for the next one.
const LOOK: Duration = Duration::from_millis(5);
/// Looks in a row without work, so that work that begins between two others is seen.
const QUIET: usize = 10;

fn main() -> std::process::ExitCode {
    lithify_bench::engine_main(&Opener)
}

struct Opener;

impl StoreOpener for Opener {
    fn identity(&self) -> EngineIdentity {
        EngineIdentity { name: "fjall".into(), version: "3.1.13".into() }
    }

    fn open(&self, settings: &BenchSettings, dir: &Path, _: bool) -> Result<Box<dyn Store>> {
        if settings.compression != Compression::None {
            bail!("--compression: this peer is built without codecs");
        }
        durable(settings.wal)?;
        let db = Database::builder(dir)
            .cache_size(settings.cache_bytes)
            .worker_threads(settings.background_threads + settings.flush_threads)
            .open()
            .with_context(|| format!("opening {}", dir.display()))?;
        let options = || {
            let bits = BloomConstructionPolicy::BitsPerKey(settings.bloom_bits as f32);
            let filter = match settings.bloom_bits > 0.0 {
                true => FilterPolicyEntry::Bloom(bits),
                false => FilterPolicyEntry::None,
            };
            KeyspaceCreateOptions::default()
                .max_memtable_size(settings.memtable_bytes)
                .data_block_size_policy(BlockSizePolicy::all(settings.block_size as u32))
                .data_block_compression_policy(CompressionPolicy::all(CompressionType::None))
                .filter_policy(FilterPolicy::all(filter))
        };
        let keys = db.keyspace("default", options)?;
        Ok(Box::new(FjallStore { db, keys }))
    }
}

/// What follows a write in the journal, if anything.
fn durable(wal: WalMode) -> Result<Option<PersistMode>> {
    match wal {
        WalMode::Os => Ok(None),
        WalMode::Sync => Ok(Some(PersistMode::SyncData)),
        WalMode::Off | WalMode::Buffered => bail!("--wal {wal:?}: fjall has os and sync"),
    }
}

struct FjallStore {
    db: Database,
    keys: Keyspace,
}

impl FjallStore {
    fn after(&self, wal: WalMode) -> Result<()> {
        Ok(durable(wal)?.map_or(Ok(()), |mode| self.db.persist(mode))?)
    }
}

impl Store for FjallStore {
    fn put(&self, key: &[u8], value: &[u8], wal: WalMode) -> Result<()> {
        self.keys.insert(key, value)?;
        self.after(wal)
    }
    fn delete(&self, key: &[u8], wal: WalMode) -> Result<()> {
        self.keys.remove(key)?;
        self.after(wal)
    }
    fn write_batch(&self, ops: &[BatchOp<'_>], wal: WalMode) -> Result<()> {
        let mut batch = self.db.batch().durability(Some(PersistMode::Buffer));
        for op in ops {
            match *op {
                BatchOp::Put(key, value) => batch.insert(&self.keys, key, value),
                BatchOp::Delete(key) => batch.remove(&self.keys, key),
            }
        }
        batch.commit()?;
        self.after(wal)
    }
    fn get(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        let Some(found) = self.keys.get(key)? else { return Ok(false) };
        value.clear();
        value.extend_from_slice(&found);
        Ok(true)
    }
    fn multi_get(&self, keys: &[&[u8]], values: &mut Vec<Option<Vec<u8>>>) -> Result<()> {
        let view = self.db.snapshot();
        values.clear();
        for key in keys {
            values.push(view.get(&self.keys, key)?.map(|found| found.to_vec()));
        }
        Ok(())
    }
    fn iter(&self) -> Result<Box<dyn StoreIter + '_>> {
        Ok(Box::new(RangeIter::new(View { at: self.db.snapshot(), keys: self.keys.clone() })))
    }
    fn flush(&self) -> Result<()> {
        Ok(self.keys.rotate_memtable_and_wait()?)
    }
    fn compact_all(&self) -> Result<()> {
        Ok(self.keys.major_compact()?)
    }
    fn wait_idle(&self) -> Result<()> {
        let mut quiet = 0;
        while quiet < QUIET {
            let busy = self.db.outstanding_flushes() > 0 || self.db.active_compactions() > 0;
            quiet = if busy { 0 } else { quiet + 1 };
            std::thread::sleep(LOOK);
        }
        Ok(())
    }
    fn stats(&self) -> Result<EngineStats> {
        Ok(EngineStats {
            compact_jobs: self.db.compactions_completed() as u64,
            compact_seconds: self.db.time_compacting().as_secs_f64(),
            ..EngineStats::default()
        })
    }
    fn stats_text(&self) -> Result<String> {
        Ok(format!("{} tables, {} in L0", self.keys.table_count(), self.keys.l0_table_count()))
    }
    fn close(self: Box<Self>) -> Result<()> {
        Ok(self.db.persist(PersistMode::Buffer)?)
    }
}

struct View {
    at: Snapshot,
    keys: Keyspace,
}

impl Ranges for View {
    type Key = Slice;
    type Value = Slice;
    fn forward(&self, from: Bound<&[u8]>) -> Walk<Slice, Slice> {
        let range = self.at.range::<&[u8], _>(&self.keys, (from, Bound::Unbounded));
        Box::new(range.map(|entry| Ok(entry.into_inner()?)))
    }
    fn backward(&self, to: Bound<&[u8]>) -> Walk<Slice, Slice> {
        let range = self.at.range::<&[u8], _>(&self.keys, (Bound::Unbounded, to));
        Box::new(range.rev().map(|entry| Ok(entry.into_inner()?)))
    }
}
