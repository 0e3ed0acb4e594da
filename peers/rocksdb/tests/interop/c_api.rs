//! The calls of RocksDB's C interface that its Rust crate does not wrap.
//!
//! Keeps: all `unsafe` of these tests. Errors come back as RocksDB words them.

use std::ffi::{CStr, CString, c_char};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::ptr;

use librocksdb_sys as ffi;
use rocksdb::{AsRawPtr, DB, Options};

/// Default options with those of `text` set, in the language of RocksDB's OPTIONS files.
///
/// # Panics
/// If RocksDB does not understand it.
pub fn options(text: &str) -> Options {
    let (base, new) = (Options::default(), Options::default());
    let text_c = CString::new(text).unwrap();
    let mut error = ptr::null_mut();
    // SAFETY: both options live to the end of the call, the text ends with a zero byte, and
    // `error` is a place for one message.
    unsafe {
        ffi::rocksdb_get_options_from_string(
            base.as_raw_ptr(),
            text_c.as_ptr(),
            new.as_raw_ptr(),
            &raw mut error,
        );
    }
    taken(error).unwrap_or_else(|e| panic!("{text}: {e}"));
    new
}

/// Verifies the checksum of every block of every table.
pub fn verify_checksum(db: &DB) -> Result<(), String> {
    let mut error = ptr::null_mut();
    // SAFETY: the database is open, and `error` is a place for one message.
    unsafe { ffi::rocksdb_verify_checksum(db.as_raw_ptr(), &raw mut error) };
    taken(error)
}

/// Ingests tables that a database (ours) wrote, with their sequence numbers: those of deeper
/// levels first. Blocks are verified before.
pub fn ingest(db: &DB, tables: &[PathBuf]) -> Result<(), String> {
    let names: Vec<CString> =
        tables.iter().map(|t| CString::new(t.as_os_str().as_bytes()).unwrap()).collect();
    let list: Vec<*const c_char> = names.iter().map(|n| n.as_ptr()).collect();
    let mut error = ptr::null_mut();
    // SAFETY: the database is open, the list holds as many strings as it says, all of which end
    // with a zero byte and live to the end of the call; the options are freed once.
    unsafe {
        let how = ffi::rocksdb_ingestexternalfileoptions_create();
        ffi::rocksdb_ingestexternalfileoptions_set_allow_db_generated_files(how, 1);
        ffi::rocksdb_ingestexternalfileoptions_set_snapshot_consistency(how, 0);
        ffi::rocksdb_ingestexternalfileoptions_set_allow_blocking_flush(how, 0);
        ffi::rocksdb_ingestexternalfileoptions_set_verify_checksums_before_ingest(how, 1);
        let db = db.as_raw_ptr();
        ffi::rocksdb_ingest_external_file(db, list.as_ptr(), list.len(), how, &raw mut error);
        ffi::rocksdb_ingestexternalfileoptions_destroy(how);
    }
    taken(error)
}

/// Runs `meanwhile` while a transaction of the database in `dir` is prepared and not committed.
pub fn prepare(dir: &Path, meanwhile: impl FnOnce()) {
    let name = CString::new(dir.as_os_str().as_bytes()).unwrap();
    let options = options("create_if_missing=true");
    let mut error = ptr::null_mut();
    // SAFETY: everything made here lives to the end of the block and is freed once; texts are
    // given with their lengths, or end with a zero byte; `error` is a place for one message.
    unsafe {
        let how = ffi::rocksdb_transactiondb_options_create();
        let db = ffi::rocksdb_transactiondb_open(
            options.as_raw_ptr(),
            how,
            name.as_ptr(),
            &raw mut error,
        );
        taken(error).unwrap();
        let write = ffi::rocksdb_writeoptions_create();
        let of_one = ffi::rocksdb_transaction_options_create();
        let one = ffi::rocksdb_transaction_begin(db, write, of_one, ptr::null_mut());
        ffi::rocksdb_transaction_set_name(one, c"one".as_ptr(), 3, &raw mut error);
        taken(error).unwrap();
        let (key, value) = (c"key".as_ptr(), c"value".as_ptr());
        ffi::rocksdb_transaction_put(one, key, 3, value, 5, &raw mut error);
        taken(error).unwrap();
        ffi::rocksdb_transaction_prepare(one, &raw mut error);
        taken(error).unwrap();
        meanwhile();
        ffi::rocksdb_transaction_rollback(one, &raw mut error);
        taken(error).unwrap();
        ffi::rocksdb_transaction_destroy(one);
        ffi::rocksdb_transaction_options_destroy(of_one);
        ffi::rocksdb_writeoptions_destroy(write);
        ffi::rocksdb_transactiondb_close(db);
        ffi::rocksdb_transactiondb_options_destroy(how);
    }
}

/// An error message, if there is one, freed.
fn taken(error: *mut c_char) -> Result<(), String> {
    if error.is_null() {
        return Ok(());
    }
    // SAFETY: RocksDB's messages end with a zero byte, and are the caller's to free.
    unsafe {
        let text = CStr::from_ptr(error).to_string_lossy().into_owned();
        ffi::rocksdb_free(error.cast());
        Err(text)
    }
}
