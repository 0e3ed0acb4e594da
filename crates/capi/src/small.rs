//! Options of single calls: reads, writes, flushes, compactions, waits, ingestions.

use lithify::{
    CompactOptions, Durability, Error, IngestOptions, ReadOptions, Transfer, WriteOptions,
};

use crate::kept::{Kept, keeps, rows};
use crate::raw::{Res, SnapshotHandle, export, give};

/// `rocksdb_readoptions_t`.
#[derive(Clone, Default)]
pub(crate) struct Reads {
    inner: ReadOptions,
    pub(crate) tailing: bool,
    pub(crate) pins: bool,
    kept: Kept,
}
keeps!(Reads);

impl Reads {
    /// # Errors
    /// `Unsupported` naming an option that is refused.
    #[inline]
    pub(crate) fn checked(&self) -> Res<&ReadOptions> {
        self.kept.check().map(|()| &self.inner)
    }
    /// The same for a read that looks at memory alone.
    ///
    /// # Errors
    /// As [`checked`](Reads::checked).
    pub(crate) fn in_memory(&self) -> Res<ReadOptions> {
        Ok(ReadOptions { cache_only: true, ..self.checked()?.clone() })
    }
    /// Reads at a snapshot from here on, if there is none yet.
    ///
    /// # Errors
    /// As [`checked`](Reads::checked).
    pub(crate) fn pin_moment(&mut self, now: impl FnOnce(&mut ReadOptions)) -> Res<()> {
        self.kept.check()?;
        now(&mut self.inner);
        Ok(())
    }
}

rows! { Reads;
    exact rocksdb_readoptions_set_fill_cache rocksdb_readoptions_get_fill_cache: u8 = 1,
        |o, v| o.inner.skip_cache_fill = v == 0;
    exact rocksdb_readoptions_set_prefix_same_as_start rocksdb_readoptions_get_prefix_same_as_start: u8 = 0,
        |o, v| o.inner.prefix_same_as_start = v != 0;
    exact rocksdb_readoptions_set_tailing rocksdb_readoptions_get_tailing: u8 = 0, |o, v| o.tailing = v != 0;
    exact rocksdb_readoptions_set_pin_data rocksdb_readoptions_get_pin_data: u8 = 0, |o, v| o.pins = v != 0;
    // Iterators are in total order unless they keep to a prefix.
    noted rocksdb_readoptions_set_total_order_seek rocksdb_readoptions_get_total_order_seek: u8 = 0;
    // Checksums are always verified, unless the database is told not to.
    noted rocksdb_readoptions_set_verify_checksums rocksdb_readoptions_get_verify_checksums: u8 = 1;
    noted rocksdb_readoptions_set_async_io rocksdb_readoptions_get_async_io: u8 = 0;
    noted rocksdb_readoptions_set_readahead_size rocksdb_readoptions_get_readahead_size: usize = 0;
    noted rocksdb_readoptions_set_auto_readahead_size _: u8 = 1;
    noted rocksdb_readoptions_set_max_skippable_internal_keys
        rocksdb_readoptions_get_max_skippable_internal_keys: u64 = 0;
    noted rocksdb_readoptions_set_background_purge_on_iterator_cleanup
        rocksdb_readoptions_get_background_purge_on_iterator_cleanup: u8 = 0;
    noted rocksdb_readoptions_set_deadline rocksdb_readoptions_get_deadline: u64 = 0;
    noted rocksdb_readoptions_set_io_timeout rocksdb_readoptions_get_io_timeout: u64 = 0;
    exact rocksdb_readoptions_set_read_tier rocksdb_readoptions_get_read_tier: i32 = 0, |o, v| {
        o.inner.cache_only = v == 1;
        let why = (!(0..=1).contains(&v)).then(|| format!("{v}: there is no such tier; use 0 or 1"));
        o.kept.refuse("read_tier", why);
    };
    refused rocksdb_readoptions_set_ignore_range_deletions
        rocksdb_readoptions_get_ignore_range_deletions: u8 = 0, "reads see range deletions; leave it out";
}

export! {
    fn rocksdb_readoptions_create() -> *mut Reads {
        Ok(give(Reads::default()))
    }
    fn rocksdb_readoptions_destroy(options: own Reads) {
        drop(options);
        Ok(())
    }
    fn rocksdb_readoptions_set_snapshot(options: &mut Reads, snapshot: maybe SnapshotHandle) {
        options.inner.snapshot = snapshot.and_then(SnapshotHandle::get).cloned();
        Ok(())
    }
    fn rocksdb_readoptions_set_iterate_upper_bound(options: &mut Reads, (key, keylen): bound) {
        options.inner.upper_bound = key.map(Into::into);
        Ok(())
    }
    fn rocksdb_readoptions_set_iterate_lower_bound(options: &mut Reads, (key, keylen): bound) {
        options.inner.lower_bound = key.map(Into::into);
        Ok(())
    }
    fn rocksdb_readoptions_set_timestamp(options: &mut Reads, (ts, tslen): bound) {
        refuse_time(options, "timestamp", ts);
        Ok(())
    }
    fn rocksdb_readoptions_set_iter_start_ts(options: &mut Reads, (ts, tslen): bound) {
        refuse_time(options, "iter_start_ts", ts);
        Ok(())
    }
}

fn refuse_time(options: &mut Reads, name: &'static str, time: Option<&[u8]>) {
    let why = time.map(|_| "set: there are no timestamps of users here; leave it out".to_owned());
    options.kept.refuse(name, why);
}

/// `rocksdb_writeoptions_t`.
#[derive(Clone, Default)]
pub(crate) struct WriteOpts {
    sync: bool,
    no_log: bool,
    /// As `lithify.h` sets it, in place of the flags.
    level: Option<Durability>,
    /// What they come to: made when one of them is set, and not with each write.
    inner: WriteOptions,
    /// The flags contradict each other.
    contradicts: bool,
    kept: Kept,
}
keeps!(WriteOpts);

impl WriteOpts {
    /// # Errors
    /// `Unsupported` naming an option that is refused, `InvalidArgument` for two that contradict.
    #[inline]
    pub(crate) fn checked(&self) -> Res<&WriteOptions> {
        self.kept.check()?;
        match self.contradicts {
            true => Err(contradicting()),
            false => Ok(&self.inner),
        }
    }
    /// Writes are this safe from here on, whatever the flags say.
    pub(crate) fn set_durability(&mut self, level: Durability) {
        self.level = Some(level);
        self.settle();
    }
    /// After a change of what decides about the log.
    fn settle(&mut self) {
        let of_flags = match (self.no_log, self.sync) {
            (true, _) => Some(Durability::NoWal),
            (false, true) => Some(Durability::Sync),
            (false, false) => None,
        };
        self.inner.durability = self.level.or(of_flags);
        self.contradicts = self.level.is_none() && self.no_log && self.sync;
    }
}

#[cold]
fn contradicting() -> Error {
    Error::invalid("a write without the log cannot be synced; clear sync, or disableWAL")
}

rows! { WriteOpts;
    exact rocksdb_writeoptions_set_sync rocksdb_writeoptions_get_sync: u8 = 0, |o, v| {
        o.sync = v != 0;
        o.settle();
    };
    exact rocksdb_writeoptions_disable_WAL _: i32 = 0, |o, v| {
        o.no_log = v != 0;
        o.settle();
    };
    exact rocksdb_writeoptions_set_no_slowdown rocksdb_writeoptions_get_no_slowdown: u8 = 0,
        |o, v| o.inner.no_wait = v != 0;
    noted rocksdb_writeoptions_set_low_pri rocksdb_writeoptions_get_low_pri: u8 = 0;
    noted rocksdb_writeoptions_set_memtable_insert_hint_per_batch
        rocksdb_writeoptions_get_memtable_insert_hint_per_batch: u8 = 0;
    refused rocksdb_writeoptions_set_ignore_missing_column_families
        rocksdb_writeoptions_get_ignore_missing_column_families: u8 = 0,
        "a write to a family that is gone is an error; leave it out";
}

export! {
    fn rocksdb_writeoptions_create() -> *mut WriteOpts {
        Ok(give(WriteOpts::default()))
    }
    fn rocksdb_writeoptions_destroy(options: own WriteOpts) {
        drop(options);
        Ok(())
    }
    fn rocksdb_writeoptions_get_disable_WAL(options: &WriteOpts) -> u8 {
        Ok(u8::from(options.no_log))
    }
}

/// `rocksdb_compactoptions_t`.
#[derive(Clone, Default)]
pub(crate) struct Compacts {
    inner: CompactOptions,
    /// The last level stays as it is even if there is a filter.
    skips_last: bool,
    kept: Kept,
}
keeps!(Compacts);

impl Compacts {
    pub(crate) fn refuse_timestamp(&mut self, given: bool) {
        let why =
            given.then(|| "set: there are no timestamps of users here; leave it out".to_owned());
        self.kept.refuse("full_history_ts_low", why);
    }
    /// # Errors
    /// `Unsupported` naming an option that is refused.
    pub(crate) fn checked(&self, has_filter: bool) -> Res<CompactOptions> {
        self.kept.check()?;
        let rewrite = self.inner.rewrite || (has_filter && !self.skips_last);
        Ok(CompactOptions { rewrite, ..self.inner.clone() })
    }
}

/// RocksDB's number for rewriting the last level, too.
const FORCE: u8 = 2;

rows! { Compacts;
    exact rocksdb_compactoptions_set_bottommost_level_compaction
        rocksdb_compactoptions_get_bottommost_level_compaction: u8 = 1, |o, v| {
        o.inner.rewrite = v >= FORCE;
        o.skips_last = v == 0;
    };
    noted rocksdb_compactoptions_set_exclusive_manual_compaction
        rocksdb_compactoptions_get_exclusive_manual_compaction: u8 = 0;
    noted rocksdb_compactoptions_set_change_level rocksdb_compactoptions_get_change_level: u8 = 0;
    noted rocksdb_compactoptions_set_target_level rocksdb_compactoptions_get_target_level: i32 = -1;
}

export! {
    fn rocksdb_compactoptions_create() -> *mut Compacts {
        Ok(give(Compacts::default()))
    }
    fn rocksdb_compactoptions_destroy(options: own Compacts) {
        drop(options);
        Ok(())
    }
}

/// `rocksdb_flushoptions_t`. A flush is always waited for.
#[derive(Clone, Default)]
pub(crate) struct Flushes {
    kept: Kept,
}
keeps!(Flushes);

rows! { Flushes;
    noted rocksdb_flushoptions_set_wait rocksdb_flushoptions_get_wait: u8 = 1;
}

export! {
    fn rocksdb_flushoptions_create() -> *mut Flushes {
        Ok(give(Flushes::default()))
    }
    fn rocksdb_flushoptions_destroy(options: own Flushes) {
        drop(options);
        Ok(())
    }
}

/// `rocksdb_wait_for_compact_options_t`.
#[derive(Clone, Default)]
pub(crate) struct Waits {
    pub(crate) flush: bool,
    pub(crate) micros: u64,
    kept: Kept,
}
keeps!(Waits);

rows! { Waits;
    exact rocksdb_wait_for_compact_options_set_flush
        rocksdb_wait_for_compact_options_get_flush: u8 = 0, |o, v| o.flush = v != 0;
    exact rocksdb_wait_for_compact_options_set_timeout
        rocksdb_wait_for_compact_options_get_timeout: u64 = 0, |o, v| o.micros = v;
    noted rocksdb_wait_for_compact_options_set_abort_on_pause
        rocksdb_wait_for_compact_options_get_abort_on_pause: u8 = 0;
}

export! {
    fn rocksdb_wait_for_compact_options_create() -> *mut Waits {
        Ok(give(Waits::default()))
    }
    fn rocksdb_wait_for_compact_options_destroy(options: own Waits) {
        drop(options);
        Ok(())
    }
}

/// `rocksdb_ingestexternalfileoptions_t`.
#[derive(Clone, Default)]
pub(crate) struct Ingests {
    moves: bool,
    kept: Kept,
}
keeps!(Ingests);

impl Ingests {
    /// # Errors
    /// `Unsupported` naming an option that is refused.
    pub(crate) fn checked(&self) -> Res<IngestOptions> {
        self.kept.check()?;
        let mut options = IngestOptions::default();
        if self.moves {
            options.transfer = Transfer::Move;
        }
        Ok(options)
    }
}

rows! { Ingests;
    exact rocksdb_ingestexternalfileoptions_set_move_files _: u8 = 0, |o, v| o.moves = v != 0;
    // Snapshots never see what is taken in after them.
    noted rocksdb_ingestexternalfileoptions_set_snapshot_consistency _: u8 = 1;
    refused rocksdb_ingestexternalfileoptions_set_allow_global_seqno _: u8 = 1,
        "tables are taken in as one write, with a number of its own; leave it out";
    refused rocksdb_ingestexternalfileoptions_set_allow_blocking_flush _: u8 = 1,
        "memtables that overlap are flushed first; leave it out";
    refused rocksdb_ingestexternalfileoptions_set_ingest_behind _: u8 = 0,
        "what is taken in is newer than what is there; leave it out";
}

export! {
    fn rocksdb_ingestexternalfileoptions_create() -> *mut Ingests {
        Ok(give(Ingests::default()))
    }
    fn rocksdb_ingestexternalfileoptions_destroy(options: own Ingests) {
        drop(options);
        Ok(())
    }
}
