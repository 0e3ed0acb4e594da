//! What Lithify does not have, for programs that ask for it: each call that can fail says so by name, and
//! each object makes the open that is given it fail.

use std::ffi::{c_char, c_void};
use std::path::PathBuf;

use lithify::Error;

use crate::callbacks::{CompareFn, CompareWithoutFn, Destructor, NameFn};
use crate::db::{Database, Family};
use crate::iter::Iter;
use crate::options::Options;
use crate::raw::{Res, export};
use crate::small::{Compacts, WriteOpts};

fn no_timestamps<T>() -> Res<T> {
    Err(Error::unsupported("timestamps of users: there are none here; put the time into the key"))
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
        // No bytes, but a place: callers make slices of it.
        len.set(0);
        Ok(c"".as_ptr())
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
    fn rocksdb_options_set_wal_dir(options: &mut Options, dir: text) {
        options.places.wal_dir = Some(dir).filter(|dir| !dir.is_empty()).map(PathBuf::from);
        Ok(())
    }
}
