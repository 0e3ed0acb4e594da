//! What Lithify does not have, for programs that ask for it: each call that can fail says so by name, and
//! each object makes the open that is given it fail.

use std::ffi::{c_char, c_void};

use lithify::Error;

use crate::callbacks::{CompareFn, CompareWithoutFn, CreateFilterFn, Destructor, NameFn};
use crate::db::{Database, Family};
use crate::iter::Iter;
use crate::options::Options;
use crate::raw::{Res, export, give};
use crate::small::{Compacts, WriteOpts};
use crate::transactions::{Txn, TxnDb};

fn no_timestamps<T>() -> Res<T> {
    Err(Error::unsupported("timestamps of users: there are none here; put the time into the key"))
}

fn no_log_reader<T>() -> Res<T> {
    Err(Error::unsupported(
        "updates since a number: logs are not archived; open a follower instead",
    ))
}

/// `rocksdb_wal_iterator_t`, of which there is none.
pub(crate) enum LogIter {}

/// `rocksdb_wal_readoptions_t`, of which there is none.
pub(crate) enum LogReads {}

/// `rocksdb_compactionfiltercontext_t`, of which there is none.
pub(crate) enum FilterAbout {}

/// `rocksdb_compactionfilterfactory_t`: its state is ended with it, and it makes no filter.
pub(crate) struct FilterFactory {
    _state: crate::callbacks::State,
}

/// `rocksdb_dbpath_t`.
pub(crate) struct DbPath;

fn no_ttl<T>() -> Res<T> {
    Err(Error::unsupported(
        "a time to live of a whole database; set the option `ttl` of its families",
    ))
}

fn no_secondary<T>() -> Res<T> {
    Err(Error::unsupported(
        "secondaries; open the database for reading only, and again to catch up",
    ))
}

fn refuse_paths(options: &mut Options, name: &'static str, n: usize) {
    let why = (n > 0)
        .then(|| format!("{n} paths: all files are in the database's directory; leave it out"));
    options.kept.refuse(name, why);
}

export! {
    fn rocksdb_put_with_ts(
        db: &Database, options: &WriteOpts, (key, klen): bytes, (ts, tslen): bytes, (val, vlen): bytes, errptr
    ) {
        let _ = (db, options, key, ts, val);
        no_timestamps()
    }
    fn rocksdb_put_cf_with_ts(
        db: &Database, options: &WriteOpts, family: &Family, (key, klen): bytes, (ts, tslen): bytes,
        (val, vlen): bytes, errptr
    ) {
        let _ = (db, options, family, key, ts, val);
        no_timestamps()
    }
    fn rocksdb_delete_with_ts(
        db: &Database, options: &WriteOpts, (key, klen): bytes, (ts, tslen): bytes, errptr
    ) {
        let _ = (db, options, key, ts);
        no_timestamps()
    }
    fn rocksdb_delete_cf_with_ts(
        db: &Database, options: &WriteOpts, family: &Family, (key, klen): bytes, (ts, tslen): bytes, errptr
    ) {
        let _ = (db, options, family, key, ts);
        no_timestamps()
    }
    fn rocksdb_increase_full_history_ts_low(db: &Database, family: &Family, (ts, tslen): bytes, errptr) {
        let _ = (db, family, ts);
        no_timestamps()
    }
    fn rocksdb_get_full_history_ts_low(
        db: &Database, family: &Family, len: out usize, errptr
    ) -> *mut c_char {
        let _ = (db, family);
        len.set(0);
        no_timestamps()
    }
    fn rocksdb_iter_timestamp(iter: &Iter, len: out usize) -> *const c_char {
        let _ = iter;
        len.set(0);
        Ok(std::ptr::null())
    }
    fn rocksdb_compactoptions_set_full_history_ts_low(options: &mut Compacts, (ts, tslen): bytes) {
        options.refuse_timestamp(!ts.is_empty());
        Ok(())
    }
    fn rocksdb_comparator_with_ts_create(
        state: *mut c_void, destructor: Option<Destructor>, compare: Option<CompareFn>,
        compare_ts: Option<CompareFn>, compare_without_ts: Option<CompareWithoutFn>, name: Option<NameFn>,
        size: usize
    ) -> *mut crate::callbacks::Order {
        let _ = (compare_ts, compare_without_ts, size);
        crate::callbacks::order_with_times(state, destructor, compare, name)
    }
    fn rocksdb_sstfilewriter_put_with_ts(
        writer: &mut crate::backups::Writer, (key, klen): bytes, (ts, tslen): bytes, (val, vlen): bytes, errptr
    ) {
        let _ = (writer, key, ts, val);
        no_timestamps()
    }
    fn rocksdb_sstfilewriter_delete_with_ts(
        writer: &mut crate::backups::Writer, (key, klen): bytes, (ts, tslen): bytes, errptr
    ) {
        let _ = (writer, key, ts);
        no_timestamps()
    }
    fn rocksdb_get_updates_since(
        db: &Database, number: u64, options: maybe LogReads, errptr
    ) -> *mut LogIter {
        let _ = (db, number, options);
        no_log_reader()
    }
    fn rocksdb_wal_iter_next(iter: &LogIter) {
        match *iter {}
    }
    fn rocksdb_wal_iter_valid(iter: &LogIter) -> u8 {
        match *iter {}
    }
    fn rocksdb_wal_iter_status(iter: &LogIter, errptr) {
        match *iter {}
    }
    fn rocksdb_wal_iter_get_batch(iter: &LogIter, number: out u64) -> *mut crate::batch::Batch {
        let _ = number;
        match *iter {}
    }
    fn rocksdb_wal_iter_destroy(iter: maybe LogIter) {
        let _ = iter;
        Ok(())
    }
    fn rocksdb_open_with_ttl(options: &Options, name: path, ttl: i32, errptr) -> *mut Database {
        let _ = (options, name, ttl);
        no_ttl()
    }
    fn rocksdb_open_column_families_with_ttl(
        options: &Options, name: path, n: i32, names: many *const c_char, of: many *const Options,
        handles: outs *mut Family, ttls: many i32, errptr
    ) -> *mut Database {
        let _ = (options, name, n, names, of, handles, ttls);
        no_ttl()
    }
    fn rocksdb_open_as_secondary(options: &Options, name: path, own_dir: path, errptr) -> *mut Database {
        let _ = (options, name, own_dir);
        no_secondary()
    }
    fn rocksdb_open_as_secondary_column_families(
        options: &Options, name: path, own_dir: path, n: i32, names: many *const c_char, of: many *const Options,
        handles: outs *mut Family, errptr
    ) -> *mut Database {
        let _ = (options, name, own_dir, n, names, of, handles);
        no_secondary()
    }
    fn rocksdb_try_catch_up_with_primary(db: &Database, errptr) {
        let _ = db;
        no_secondary()
    }
    fn rocksdb_options_statistics_get_string(options: &Options) -> *mut c_char {
        // As in RocksDB for options without statistics.
        let _ = options;
        Ok(std::ptr::null_mut())
    }
    fn rocksdb_disable_file_deletions(db: &Database, errptr) {
        let _ = db;
        Err(Error::unsupported("disable_file_deletions: take a checkpoint or a backup instead"))
    }
    fn rocksdb_enable_file_deletions(db: &Database, errptr) {
        let _ = db;
        Err(Error::unsupported("enable_file_deletions: they are never disabled"))
    }
    fn rocksdb_compactionfilterfactory_create(
        state: *mut c_void, destructor: Option<Destructor>, create: Option<CreateFilterFn>, name: Option<NameFn>
    ) -> *mut FilterFactory {
        let _ = (create, name);
        Ok(give(FilterFactory { _state: crate::callbacks::State::new(state, destructor) }))
    }
    fn rocksdb_compactionfilterfactory_destroy(factory: own FilterFactory) {
        drop(factory);
        Ok(())
    }
    fn rocksdb_compactionfiltercontext_is_full_compaction(about: &FilterAbout) -> u8 {
        match *about {}
    }
    fn rocksdb_compactionfiltercontext_is_manual_compaction(about: &FilterAbout) -> u8 {
        match *about {}
    }
    fn rocksdb_options_set_compaction_filter_factory(options: &mut Options, factory: own FilterFactory) {
        let why = factory.map(|_| "set: filters are not made for each compaction; set a filter".to_owned());
        options.kept.refuse("compaction_filter_factory", why);
        Ok(())
    }
    fn rocksdb_dbpath_create(path: path, target_size: u64) -> *mut DbPath {
        let _ = (path, target_size);
        Ok(give(DbPath))
    }
    fn rocksdb_dbpath_destroy(path: own DbPath) {
        drop(path);
        Ok(())
    }
    fn rocksdb_options_set_db_paths(options: &mut Options, paths: many *const DbPath, n: usize) {
        let _ = paths;
        refuse_paths(options, "db_paths", n);
        Ok(())
    }
    fn rocksdb_options_set_cf_paths(options: &mut Options, paths: many *const DbPath, n: usize) {
        let _ = paths;
        refuse_paths(options, "cf_paths", n);
        Ok(())
    }
    fn rocksdb_transaction_get_name(txn: &Txn, len: out usize) -> *mut c_char {
        let _ = txn;
        len.set(0);
        Ok(std::ptr::null_mut())
    }
    fn rocksdb_transactiondb_get_prepared_transactions(db: &TxnDb, n: out usize) -> *mut *mut Txn {
        let _ = db;
        n.set(0);
        Ok(std::ptr::null_mut())
    }
}
