//! LMDB under the bench: the same workloads, flags and report as `lithify bench`.
//!
//! | setting | LMDB |
//! |---|---|
//! | `wal` os | `MDB_NOSYNC`: each write is a committed transaction in the system's cache, so that a crash of the process loses nothing and a power cut may lose or break it |
//! | `wal` sync | its default: each write is a committed transaction, synced |
//!
//! Its cache is the system's page cache; settings of LSM trees mean nothing to it. The map is
//! [`MAP_BYTES`] long. Everything else is LMDB's default.
//! Leaves to others: everything but LMDB's own interface (crate `lithify-bench`).
#![forbid(unsafe_code)]

use std::path::Path;

use anyhow::{Result, bail};
use lithify_bench::{
    BatchOp, BenchSettings, EngineIdentity, EngineStats, Store, StoreIter, StoreOpener, WalMode,
};
use lmdb::{Database, DatabaseFlags, Environment, EnvironmentFlags, Transaction as _, WriteFlags};

mod walk;

/// Room for what a bench writes; only what is used is taken of the disk.
const MAP_BYTES: usize = 64 << 30;

fn main() -> std::process::ExitCode {
    lithify_bench::engine_main(&Opener)
}

struct Opener;

impl StoreOpener for Opener {
    fn identity(&self) -> EngineIdentity {
        EngineIdentity { name: "lmdb".into(), version: "0.9.24".into() }
    }

    fn open(&self, settings: &BenchSettings, dir: &Path, _: bool) -> Result<Box<dyn Store>> {
        std::fs::create_dir_all(dir)?;
        let flags = match settings.wal {
            WalMode::Os => EnvironmentFlags::NO_SYNC,
            WalMode::Sync => EnvironmentFlags::empty(),
            other => bail!("--wal {other:?}: LMDB has os and sync"),
        };
        let env = Environment::new()
            .set_flags(flags)
            .set_map_size(MAP_BYTES)
            .set_max_readers(2048)
            .open(dir)?;
        let keys = env.create_db(None, DatabaseFlags::empty())?;
        Ok(Box::new(LmdbStore { env, keys }))
    }
}

struct LmdbStore {
    env: Environment,
    keys: Database,
}

impl Store for LmdbStore {
    fn put(&self, key: &[u8], value: &[u8], wal: WalMode) -> Result<()> {
        self.write_batch(&[BatchOp::Put(key, value)], wal)
    }
    fn delete(&self, key: &[u8], wal: WalMode) -> Result<()> {
        self.write_batch(&[BatchOp::Delete(key)], wal)
    }
    fn write_batch(&self, ops: &[BatchOp<'_>], _: WalMode) -> Result<()> {
        let mut write = self.env.begin_rw_txn()?;
        for op in ops {
            match *op {
                BatchOp::Put(key, value) => {
                    write.put(self.keys, &key, &value, WriteFlags::empty())?;
                }
                BatchOp::Delete(key) => match write.del(self.keys, &key, None) {
                    Ok(()) | Err(lmdb::Error::NotFound) => {}
                    Err(error) => return Err(error.into()),
                },
            }
        }
        Ok(write.commit()?)
    }
    fn get(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        let read = self.env.begin_ro_txn()?;
        let found = match read.get(self.keys, &key) {
            Ok(found) => found,
            Err(lmdb::Error::NotFound) => return Ok(false),
            Err(error) => return Err(error.into()),
        };
        value.clear();
        value.extend_from_slice(found);
        Ok(true)
    }
    fn multi_get(&self, keys: &[&[u8]], values: &mut Vec<Option<Vec<u8>>>) -> Result<()> {
        let read = self.env.begin_ro_txn()?;
        values.clear();
        for key in keys {
            values.push(match read.get(self.keys, key) {
                Ok(found) => Some(found.to_vec()),
                Err(lmdb::Error::NotFound) => None,
                Err(error) => return Err(error.into()),
            });
        }
        Ok(())
    }
    fn iter(&self) -> Result<Box<dyn StoreIter + '_>> {
        Ok(Box::new(walk::Walk::begin(&self.env, self.keys)?))
    }
    fn flush(&self) -> Result<()> {
        Ok(())
    }
    fn compact_all(&self) -> Result<()> {
        bail!("LMDB compacts only into a copy; leave the workload out")
    }
    fn wait_idle(&self) -> Result<()> {
        Ok(())
    }
    fn stats(&self) -> Result<EngineStats> {
        Ok(EngineStats::default())
    }
    fn stats_text(&self) -> Result<String> {
        let stat = self.env.stat()?;
        Ok(format!("{} entries, {} levels, {} leaves", stat.entries(), stat.depth(), stat.leaf_pages()))
    }
    fn close(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}
