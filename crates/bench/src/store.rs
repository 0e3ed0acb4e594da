//! What the bench asks of an engine: the [`Store`] trait and the counters it reports.
//!
//! Keeps: nothing here names an engine, so the same workloads drive all of them.
//! Leaves to others: opening with equal settings (each engine's [`StoreOpener`]).

use std::path::Path;

use anyhow::Result;
use serde::{Deserialize, Serialize};

use crate::report::EngineIdentity;
use crate::settings::{BenchSettings, WalMode};
use crate::timeline::Moment;

/// One operation of a batch.
#[derive(Clone, Copy, Debug)]
pub enum BatchOp<'a> {
    /// Sets `key` to `value`.
    Put(&'a [u8], &'a [u8]),
    /// Removes `key`.
    Delete(&'a [u8]),
}

/// An open store under test. All methods may be called from several threads at once.
pub trait Store: Send + Sync {
    /// Sets `key` to `value` with durability `wal`.
    fn put(&self, key: &[u8], value: &[u8], wal: WalMode) -> Result<()>;
    /// Removes `key`.
    fn delete(&self, key: &[u8], wal: WalMode) -> Result<()>;
    /// Applies all of `ops`, atomically and in order.
    fn write_batch(&self, ops: &[BatchOp<'_>], wal: WalMode) -> Result<()>;
    /// Copies the value of `key` into `value` (replacing its content); false when absent.
    fn get(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool>;
    /// Looks up all `keys`; `values` becomes one entry per key, in the same order.
    fn multi_get(&self, keys: &[&[u8]], values: &mut Vec<Option<Vec<u8>>>) -> Result<()>;
    /// An iterator over the present state of the store, positioned nowhere.
    fn iter(&self) -> Result<Box<dyn StoreIter + '_>>;
    /// Writes all memtables to tables and waits for that.
    fn flush(&self) -> Result<()>;
    /// Compacts the whole key space and waits for that. The runner has flushed before.
    fn compact_all(&self) -> Result<()>;
    /// Waits for quiescence: no flush and no compaction runs or is due. The active memtable stays
    /// as it is.
    fn wait_idle(&self) -> Result<()>;
    /// Counters since the store was opened.
    fn stats(&self) -> Result<EngineStats>;
    /// The engine's own statistics as text for people (workload `stats`).
    fn stats_text(&self) -> Result<String>;
    /// Closes the store; dropping it instead loses the error.
    fn close(self: Box<Self>) -> Result<()>;
}

/// A position in a store's key order. Methods that move report errors through [`valid`]
/// turning false and [`status`] returning the error, as storage engines commonly do.
///
/// [`valid`]: StoreIter::valid
/// [`status`]: StoreIter::status
pub trait StoreIter {
    /// Moves to the first key.
    fn seek_to_first(&mut self);
    /// Moves to the last key.
    fn seek_to_last(&mut self);
    /// Moves to the first key at or after `key`.
    fn seek(&mut self, key: &[u8]);
    /// Moves one key forward. Only called while valid.
    fn next(&mut self);
    /// Moves one key backward. Only called while valid.
    fn prev(&mut self);
    /// True while positioned on an entry.
    fn valid(&self) -> bool;
    /// The key here. Only called while valid.
    fn key(&self) -> &[u8];
    /// The value here. Only called while valid.
    fn value(&self) -> &[u8];
    /// The error that ended the iteration, if one did.
    fn status(&self) -> Result<()>;
}

/// Opens an engine's stores.
pub trait StoreOpener {
    /// The engine's name and version, for the report.
    fn identity(&self) -> EngineIdentity;
    /// Opens the store in `dir` with `settings`. `fresh` says that `dir` is new and empty;
    /// otherwise an existing store must be there.
    fn open(&self, settings: &BenchSettings, dir: &Path, fresh: bool) -> Result<Box<dyn Store>>;
    /// The values of `--policy` that the engine takes; none if it does not say.
    fn policies(&self) -> Vec<&'static str> {
        Vec::new()
    }
    /// The name of the policy that a store with `settings` works by.
    fn policy(&self, settings: &BenchSettings) -> String {
        settings.policy.clone()
    }
    /// What the store in `dir` noted from its last opening to its closing, in order of time, if
    /// the engine keeps a log of its jobs.
    fn history(&self, dir: &Path) -> Result<Option<Vec<Moment>>> {
        let _ = dir;
        Ok(None)
    }
}

/// Counters of an engine since it was opened. What an engine cannot tell stays zero or empty.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct EngineStats {
    /// Bytes of tables written by flushes.
    pub flush_write_bytes: u64,
    /// Thread-seconds spent in flushes.
    pub flush_seconds: f64,
    /// Input bytes of compactions (without trivial moves).
    pub compact_read_bytes: u64,
    /// Bytes of tables written by compactions.
    pub compact_write_bytes: u64,
    /// Finished compactions (without trivial moves).
    pub compact_jobs: u64,
    /// Thread-seconds spent in compactions (wall time of each job, summed).
    pub compact_seconds: f64,
    /// CPU-seconds spent in compactions.
    pub compact_cpu_seconds: f64,
    /// Bytes written into each level, L0 first: flushes and compactions.
    pub level_write_bytes: Vec<u64>,
    /// Bytes written to the write-ahead log.
    pub wal_bytes: u64,
    /// Seconds in which writes were delayed or stopped, all causes.
    pub stall_seconds: f64,
    /// The same by cause.
    pub stalls: Vec<StallStat>,
    /// Bytes that compaction still has to rewrite, as the engine estimates it now.
    pub debt_bytes: Option<u64>,
    /// Runs now: what a read may have to look at.
    pub runs: Option<u64>,
    /// Of these, the ones in level 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub l0_runs: Option<u64>,
}

/// Stalls of one cause.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StallStat {
    /// The cause, in the engine's own words.
    pub cause: String,
    /// How often it began.
    pub count: u64,
    /// How long it held, where the engine knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
}

impl EngineStats {
    /// What happened between `before` and `self`, two readings of the same open store.
    pub fn since(&self, before: &EngineStats) -> EngineStats {
        let levels = self.level_write_bytes.iter().enumerate();
        let stalls = self.stalls.iter().map(|now| {
            let then = before.stalls.iter().find(|s| s.cause == now.cause);
            StallStat {
                cause: now.cause.clone(),
                count: now.count.saturating_sub(then.map_or(0, |s| s.count)),
                seconds: now
                    .seconds
                    .map(|s| (s - then.and_then(|t| t.seconds).unwrap_or(0.0)).max(0.0)),
            }
        });
        EngineStats {
            flush_write_bytes: self.flush_write_bytes.saturating_sub(before.flush_write_bytes),
            flush_seconds: (self.flush_seconds - before.flush_seconds).max(0.0),
            compact_read_bytes: self.compact_read_bytes.saturating_sub(before.compact_read_bytes),
            compact_write_bytes: self
                .compact_write_bytes
                .saturating_sub(before.compact_write_bytes),
            compact_jobs: self.compact_jobs.saturating_sub(before.compact_jobs),
            compact_seconds: (self.compact_seconds - before.compact_seconds).max(0.0),
            compact_cpu_seconds: (self.compact_cpu_seconds - before.compact_cpu_seconds).max(0.0),
            level_write_bytes: levels
                .map(|(i, now)| {
                    now.saturating_sub(before.level_write_bytes.get(i).copied().unwrap_or(0))
                })
                .collect(),
            wal_bytes: self.wal_bytes.saturating_sub(before.wal_bytes),
            stall_seconds: (self.stall_seconds - before.stall_seconds).max(0.0),
            stalls: stalls.filter(|s| s.count > 0 || s.seconds.is_some_and(|x| x > 0.0)).collect(),
            debt_bytes: self.debt_bytes,
            runs: self.runs,
            l0_runs: self.l0_runs,
        }
    }
}
