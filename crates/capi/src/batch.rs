//! Write batches. What a call has against its arguments is told when the batch is written, because these
//! functions have no place for an error.

use std::ffi::{c_char, c_void};

use lithify::{BatchEntry, Error};

use crate::callbacks::{Deleted, DeletedIn, Put, PutIn};
use crate::db::Family;
use crate::raw::{Res, export, give};

/// `rocksdb_writebatch_t`.
#[derive(Clone, Default)]
pub(crate) struct Batch {
    inner: lithify::WriteBatch,
    /// The first thing that went wrong with it.
    failed: Option<Error>,
}

impl Batch {
    /// One that was made elsewhere.
    pub(crate) fn of(inner: lithify::WriteBatch) -> Batch {
        Batch { inner, failed: None }
    }
    /// # Errors
    /// What went wrong while it was filled.
    pub(crate) fn sound(&self) -> Res<&lithify::WriteBatch> {
        self.failed.clone().map_or(Ok(&self.inner), Err)
    }
    /// Adds to it. What fails, an argument included, is kept, so that no part of it is written without the rest.
    fn add(&mut self, add: impl FnOnce(&mut lithify::WriteBatch) -> Res<()>) -> Res<()> {
        if let Err(error) = add(&mut self.inner) {
            self.failed.get_or_insert(error);
        }
        Ok(())
    }
}

export! {
    fn rocksdb_writebatch_create() -> *mut Batch {
        Ok(give(Batch::default()))
    }
    fn rocksdb_writebatch_create_from((rep, size): bytes) -> *mut Batch {
        let (inner, failed) = match lithify::WriteBatch::from_encoded(rep) {
            Ok(inner) => (inner, None),
            Err(error) => (lithify::WriteBatch::new(), Some(error)),
        };
        Ok(give(Batch { inner, failed }))
    }
    fn rocksdb_writebatch_create_with_params(
        reserved_bytes: usize, max_bytes: usize, protection_bytes_per_key: usize, default_cf_ts_sz: usize
    ) -> *mut Batch {
        let _ = (reserved_bytes, max_bytes, protection_bytes_per_key);
        let failed = (default_cf_ts_sz > 0)
            .then(|| Error::unsupported("default_cf_ts_sz: there are no timestamps of users here"));
        Ok(give(Batch { inner: lithify::WriteBatch::new(), failed }))
    }
    fn rocksdb_writebatch_destroy(batch: own Batch) {
        drop(batch);
        Ok(())
    }
    fn rocksdb_writebatch_clear(batch: &mut Batch) {
        batch.inner.clear();
        batch.failed = None;
        Ok(())
    }
    fn rocksdb_writebatch_count(batch: &Batch) -> i32 {
        Ok(i32::try_from(batch.inner.len()).unwrap_or(i32::MAX))
    }
    fn rocksdb_writebatch_put(batch: &mut Batch, told (key, klen): bytes, told (val, vlen): bytes) {
        batch.add(|inner| inner.put(key?, val?))
    }
    fn rocksdb_writebatch_put_cf(
        batch: &mut Batch, told family: &Family, told (key, klen): bytes, told (val, vlen): bytes
    ) {
        batch.add(|inner| inner.put_cf(&*family?.inner()?, key?, val?))
    }
    fn rocksdb_writebatch_merge(batch: &mut Batch, told (key, klen): bytes, told (val, vlen): bytes) {
        batch.add(|inner| inner.merge(key?, val?))
    }
    fn rocksdb_writebatch_merge_cf(
        batch: &mut Batch, told family: &Family, told (key, klen): bytes, told (val, vlen): bytes
    ) {
        batch.add(|inner| inner.merge_cf(&*family?.inner()?, key?, val?))
    }
    fn rocksdb_writebatch_delete(batch: &mut Batch, told (key, klen): bytes) {
        batch.add(|inner| inner.delete(key?))
    }
    fn rocksdb_writebatch_delete_cf(batch: &mut Batch, told family: &Family, told (key, klen): bytes) {
        batch.add(|inner| inner.delete_cf(&*family?.inner()?, key?))
    }
    fn rocksdb_writebatch_singledelete(batch: &mut Batch, told (key, klen): bytes) {
        batch.add(|inner| inner.single_delete(key?))
    }
    fn rocksdb_writebatch_singledelete_cf(batch: &mut Batch, told family: &Family, told (key, klen): bytes) {
        batch.add(|inner| inner.single_delete_cf(&*family?.inner()?, key?))
    }
    fn rocksdb_writebatch_delete_range(batch: &mut Batch, told (from, flen): bytes, told (to, tlen): bytes) {
        batch.add(|inner| inner.delete_range(from?, to?))
    }
    fn rocksdb_writebatch_delete_range_cf(
        batch: &mut Batch, told family: &Family, told (from, flen): bytes, told (to, tlen): bytes
    ) {
        batch.add(|inner| inner.delete_range_cf(&*family?.inner()?, from?, to?))
    }
    fn rocksdb_writebatch_put_log_data(batch: &mut Batch, told (blob, len): bytes) {
        batch.add(|inner| inner.log_data(blob?))
    }
    fn rocksdb_writebatch_set_save_point(batch: &mut Batch) {
        batch.inner.set_savepoint();
        Ok(())
    }
    fn rocksdb_writebatch_rollback_to_save_point(batch: &mut Batch, errptr) {
        batch.inner.rollback_to_savepoint()
    }
    fn rocksdb_writebatch_pop_save_point(batch: &mut Batch, errptr) {
        batch.inner.pop_savepoint()
    }
    fn rocksdb_writebatch_data(batch: &Batch, size: out usize) -> *const c_char {
        let encoded = batch.inner.encoded();
        size.set(encoded.len());
        Ok(encoded.as_ptr().cast())
    }
    fn rocksdb_writebatch_iterate(
        batch: &Batch, state: *mut c_void, put: Option<Put>, deleted: Option<Deleted>
    ) {
        for entry in batch.inner.entries() {
            match entry {
                BatchEntry::Put(0, key, value) => crate::callbacks::put(put, state, key, value),
                BatchEntry::Delete(0, key) => crate::callbacks::deleted(deleted, state, key),
                BatchEntry::Merge(0, ..) | BatchEntry::SingleDelete(0, _) | BatchEntry::LogData(_) => {}
                // As in RocksDB: it ends at what these two functions cannot tell.
                _ => break,
            }
        }
        Ok(())
    }
    fn rocksdb_writebatch_iterate_cf(
        batch: &Batch, state: *mut c_void, put: Option<PutIn>, deleted: Option<DeletedIn>, merge: Option<PutIn>
    ) {
        for entry in batch.inner.entries() {
            match entry {
                BatchEntry::Put(cf, key, value) => crate::callbacks::put_in(put, state, cf, key, value),
                BatchEntry::Delete(cf, key) => crate::callbacks::deleted_in(deleted, state, cf, key),
                BatchEntry::Merge(cf, key, value) => crate::callbacks::put_in(merge, state, cf, key, value),
                BatchEntry::SingleDelete(0, _) | BatchEntry::LogData(_) => {}
                _ => break,
            }
        }
        Ok(())
    }
}
