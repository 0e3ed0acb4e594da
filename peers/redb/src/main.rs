//! redb under the bench: the same workloads, flags and report as `lithify bench`.
//!
//! | setting | redb |
//! |---|---|
//! | `cache-bytes`, `memtable-bytes`, `memtables` | `set_cache_size`: their sum, as it has no memtables |
//! | `wal` os | each write is a committed transaction; the file's syncs are left out, so that a crash of the process loses nothing and a power cut may lose or break it |
//! | `wal` sync | each write is a committed transaction with `Durability::Immediate`, its default |
//!
//! Everything else is redb's default; settings of LSM trees mean nothing to it.
//! Leaves to others: everything but redb's own interface (crate `lithify-bench`).
#![forbid(unsafe_code)]

use std::fs::OpenOptions;
use std::ops::Bound;
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use lithify_bench::{
    BatchOp, BenchSettings, EngineIdentity, EngineStats, RangeIter, Ranges, Store, StoreIter,
    StoreOpener, WalMode, Walk,
};
use redb::{Database, ReadOnlyTable, ReadableDatabase as _, TableDefinition};

mod unsynced;

const KEYS: TableDefinition<&[u8], &[u8]> = TableDefinition::new("keys");

fn main() -> std::process::ExitCode {
    lithify_bench::engine_main(&Opener)
}

struct Opener;

impl StoreOpener for Opener {
    fn identity(&self) -> EngineIdentity {
        EngineIdentity { name: "redb".into(), version: "4.6.0".into() }
    }

    fn open(&self, settings: &BenchSettings, dir: &Path, _: bool) -> Result<Box<dyn Store>> {
        std::fs::create_dir_all(dir)?;
        let path = dir.join("redb");
        let memory = settings.cache_bytes + settings.memtable_bytes * settings.memtables as u64;
        let mut builder = Database::builder();
        builder.set_cache_size(memory as usize);
        let db = match settings.wal {
            WalMode::Sync => builder.create(&path)?,
            WalMode::Os => {
                let mut how = OpenOptions::new();
                let file = how.read(true).write(true).create(true).truncate(false).open(&path)?;
                builder.create_with_backend(unsynced::Unsynced::new(file)?)?
            }
            other => bail!("--wal {other:?}: redb has os and sync"),
        };
        let write = db.begin_write()?;
        write.open_table(KEYS)?;
        write.commit()?;
        Ok(Box::new(RedbStore { db }))
    }
}

struct RedbStore {
    db: Database,
}

impl RedbStore {
    fn table(&self) -> Result<ReadOnlyTable<&'static [u8], &'static [u8]>> {
        self.db.begin_read()?.open_table(KEYS).context("opening the table")
    }
}

impl Store for RedbStore {
    fn put(&self, key: &[u8], value: &[u8], wal: WalMode) -> Result<()> {
        self.write_batch(&[BatchOp::Put(key, value)], wal)
    }
    fn delete(&self, key: &[u8], wal: WalMode) -> Result<()> {
        self.write_batch(&[BatchOp::Delete(key)], wal)
    }
    fn write_batch(&self, ops: &[BatchOp<'_>], _: WalMode) -> Result<()> {
        let write = self.db.begin_write()?;
        {
            let mut table = write.open_table(KEYS)?;
            for op in ops {
                match *op {
                    BatchOp::Put(key, value) => drop(table.insert(key, value)?),
                    BatchOp::Delete(key) => drop(table.remove(key)?),
                }
            }
        }
        Ok(write.commit()?)
    }
    fn get(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        let table = self.table()?;
        let Some(found) = table.get(key)? else { return Ok(false) };
        value.clear();
        value.extend_from_slice(found.value());
        Ok(true)
    }
    fn multi_get(&self, keys: &[&[u8]], values: &mut Vec<Option<Vec<u8>>>) -> Result<()> {
        let table = self.table()?;
        values.clear();
        for key in keys {
            values.push(table.get(*key)?.map(|found| found.value().to_vec()));
        }
        Ok(())
    }
    fn iter(&self) -> Result<Box<dyn StoreIter + '_>> {
        Ok(Box::new(RangeIter::new(View(self.table()?))))
    }
    fn flush(&self) -> Result<()> {
        Ok(())
    }
    fn compact_all(&self) -> Result<()> {
        bail!("redb compacts only a database that nothing else has; leave the workload out")
    }
    fn wait_idle(&self) -> Result<()> {
        Ok(())
    }
    fn stats(&self) -> Result<EngineStats> {
        Ok(EngineStats::default())
    }
    fn stats_text(&self) -> Result<String> {
        Ok(format!("{:?}", self.db.cache_stats()))
    }
    fn close(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}

struct View(ReadOnlyTable<&'static [u8], &'static [u8]>);

fn entry(
    found: redb::Result<(
        redb::AccessGuard<'static, &'static [u8]>,
        redb::AccessGuard<'static, &'static [u8]>,
    )>,
) -> Result<(Held, Held)> {
    let (key, value) = found?;
    Ok((Held(key), Held(value)))
}

/// Bytes of a page that stays.
struct Held(redb::AccessGuard<'static, &'static [u8]>);

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        self.0.value()
    }
}

impl Ranges for View {
    type Key = Held;
    type Value = Held;
    fn forward(&self, from: Bound<&[u8]>) -> Walk<Held, Held> {
        match self.0.range::<&[u8]>((from, Bound::Unbounded)) {
            Ok(range) => Box::new(range.map(entry)),
            Err(error) => Box::new(std::iter::once(Err(error.into()))),
        }
    }
    fn backward(&self, to: Bound<&[u8]>) -> Walk<Held, Held> {
        match self.0.range::<&[u8]>((Bound::Unbounded, to)) {
            Ok(range) => Box::new(range.rev().map(entry)),
            Err(error) => Box::new(std::iter::once(Err(error.into()))),
        }
    }
}
