//! The bench's store interface over RocksDB.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};
use lithify_bench::{
    BatchOp, BenchSettings, EngineIdentity, EngineStats, StallStat, Store, StoreIter, StoreOpener,
    WalMode,
};
use rocksdb::{
    DB, DBRawIterator, LogLevel, ReadOptions, WaitForCompactOptions, WriteBatch, WriteOptions,
    properties,
};

use crate::events::EventTally;
use crate::options::{store_options, write_options};

/// The one column family used.
const FAMILY: &str = "default";

/// Opens RocksDB stores.
pub(crate) struct RocksPeer;

impl StoreOpener for RocksPeer {
    fn identity(&self) -> EngineIdentity {
        EngineIdentity { name: "rocksdb".into(), version: "11.8.1".into() }
    }

    fn open(&self, settings: &BenchSettings, dir: &Path, fresh: bool) -> Result<Box<dyn Store>> {
        let mut options = store_options(settings, fresh)?;
        let events = Arc::new(EventTally::default());
        let listener = events.clone();
        options.set_info_logger(rocksdb::InfoLogger::new_callback_logger(
            LogLevel::Info,
            move |_, line| listener.hear(line),
        ));
        // Named, so that there is a handle of the family, which batched look-ups ask for.
        let families = [(FAMILY, options.clone())];
        let db = DB::open_cf_with_opts(&options, dir, families)
            .with_context(|| format!("opening {}", dir.display()))?;
        let modes = [WalMode::Off, WalMode::Buffered, WalMode::Os, WalMode::Sync];
        let write = modes.map(write_options);
        let manual_wal = settings.wal == WalMode::Buffered;
        Ok(Box::new(RocksStore { db, events, write, manual_wal }))
    }
}

struct RocksStore {
    db: DB,
    events: Arc<EventTally>,
    /// Options by [`WalMode`], in the order of its variants.
    write: [WriteOptions; 4],
    manual_wal: bool,
}

impl RocksStore {
    fn mode(&self, wal: WalMode) -> &WriteOptions {
        &self.write[wal as usize]
    }

    fn text(&self, property: &properties::PropName) -> Result<String> {
        Ok(self.db.property_value(property)?.unwrap_or_default())
    }
}

impl Store for RocksStore {
    fn put(&self, key: &[u8], value: &[u8], wal: WalMode) -> Result<()> {
        Ok(self.db.put_opt(key, value, self.mode(wal))?)
    }

    fn delete(&self, key: &[u8], wal: WalMode) -> Result<()> {
        Ok(self.db.delete_opt(key, self.mode(wal))?)
    }

    fn write_batch(&self, ops: &[BatchOp<'_>], wal: WalMode) -> Result<()> {
        let mut batch = WriteBatch::default();
        for op in ops {
            match *op {
                BatchOp::Put(key, value) => batch.put(key, value),
                BatchOp::Delete(key) => batch.delete(key),
            }
        }
        Ok(self.db.write_opt(batch, self.mode(wal))?)
    }

    fn get(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        let Some(found) = self.db.get_pinned(key)? else { return Ok(false) };
        value.clear();
        value.extend_from_slice(&found);
        Ok(true)
    }

    fn multi_get(&self, keys: &[&[u8]], values: &mut Vec<Option<Vec<u8>>>) -> Result<()> {
        let family = self.db.cf_handle(FAMILY).context("the default column family")?;
        values.clear();
        for found in self.db.batched_multi_get_cf(family, keys.iter(), false) {
            values.push(found?.map(|slice| slice.to_vec()));
        }
        Ok(())
    }

    fn iter(&self) -> Result<Box<dyn StoreIter + '_>> {
        Ok(Box::new(RocksIter(self.db.raw_iterator_opt(ReadOptions::default()))))
    }

    fn flush(&self) -> Result<()> {
        Ok(self.db.flush()?)
    }

    fn compact_all(&self) -> Result<()> {
        self.db.compact_range(None::<&[u8]>, None::<&[u8]>);
        Ok(())
    }

    fn wait_idle(&self) -> Result<()> {
        Ok(self.db.wait_for_compact(&WaitForCompactOptions::default())?)
    }

    fn stats(&self) -> Result<EngineStats> {
        let mut stats = EngineStats::default();
        self.events.fill(&mut stats);
        let db_stats = self.text(properties::DBSTATS)?;
        stats.stall_seconds = stall_seconds(&db_stats).context("`Cumulative stall` in dbstats")?;
        stats.wal_bytes = wal_bytes(&db_stats);
        stats.stalls = stall_causes(&self.text(properties::CFSTATS_NO_FILE_HISTOGRAM)?);
        Ok(stats)
    }

    fn stats_text(&self) -> Result<String> {
        self.text(properties::STATS)
    }

    fn close(self: Box<Self>) -> Result<()> {
        if self.manual_wal {
            self.db.flush_wal(false)?;
        }
        self.db.cancel_all_background_work(true);
        Ok(())
    }
}

/// Reads `Cumulative stall: 00:01:2.345 H:M:S, 0.0 percent`.
fn stall_seconds(db_stats: &str) -> Option<f64> {
    let rest = db_stats.split_once("Cumulative stall: ")?.1;
    let clock = rest.split(' ').next()?;
    clock.split(':').try_fold(0.0, |sum, part| Some(sum * 60.0 + part.parse::<f64>().ok()?))
}

/// Reads `Cumulative WAL: ... written: 1.23 GB` (powers of 1024; precise to 0.01).
fn wal_bytes(db_stats: &str) -> u64 {
    let gb = db_stats.split_once("Cumulative WAL: ").and_then(|(_, rest)| {
        let (_, written) = rest.lines().next()?.split_once("written: ")?;
        written.split(' ').next()?.parse::<f64>().ok()
    });
    (gb.unwrap_or(0.0) * (1u64 << 30) as f64) as u64
}

/// Reads `Write Stall (count): cause: n, cause: n, ...`. RocksDB tells counts by cause, but time
/// only in sum. Causes that are part of another one, and totals, are left out.
fn stall_causes(cf_stats: &str) -> Vec<StallStat> {
    let Some((_, rest)) = cf_stats.split_once("Write Stall (count): ") else { return Vec::new() };
    let pairs = rest.lines().next().unwrap_or_default().split(", ");
    pairs
        .filter_map(|pair| {
            let (cause, count) = pair.split_once(": ")?;
            let count = count.trim().parse().ok()?;
            Some(StallStat { cause: cause.to_owned(), count, seconds: None })
        })
        .filter(|s| !s.cause.starts_with("total-") && !s.cause.starts_with("cf-"))
        .collect()
}

struct RocksIter<'a>(DBRawIterator<'a>);

impl StoreIter for RocksIter<'_> {
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
        self.0.key().unwrap_or_default()
    }
    fn value(&self) -> &[u8] {
        self.0.value().unwrap_or_default()
    }
    fn status(&self) -> Result<()> {
        Ok(self.0.status()?)
    }
}
