//! What a database tells of its families, and the figures of RocksDB that are not kept here: their objects
//! cannot be made, so that no getter has to answer.

use std::ffi::c_char;

use lithify::{Db, Error};

use crate::db::{Database, Family};
use crate::options::Options;
use crate::raw::{Outs, c_text, export, give};
use crate::shared::{Cache, Env};

/// `rocksdb_column_family_metadata_t`: the files of a family, taken together.
pub(crate) struct FamilyFigures {
    name: String,
    bytes: u64,
    files: u64,
}

impl FamilyFigures {
    fn of(db: &Db, name: &str) -> FamilyFigures {
        let stats = db.stats();
        let files = stats.levels.iter().map(|level| level.files as u64).sum();
        FamilyFigures { name: name.to_owned(), bytes: stats.disk_bytes, files }
    }
}

/// `rocksdb_livefiles_t`, of which there is none.
pub(crate) enum LiveFiles {}

/// `rocksdb_perfcontext_t`, of which there is none.
pub(crate) enum PerfContext {}

/// `rocksdb_statistics_histogram_data_t`, of which there is none.
pub(crate) enum Histogram {}

/// What a count that is not kept gives where there is no place for an error: no count is that high, and 0
/// would be an answer.
const NOT_KEPT: u64 = u64::MAX;

fn size(n: u64) -> usize {
    usize::try_from(n).unwrap_or(usize::MAX)
}

export! {
    fn rocksdb_get_column_family_metadata(db: &Database) -> *mut FamilyFigures {
        Ok(give(FamilyFigures::of(&db.db, crate::db::DEFAULT)))
    }
    fn rocksdb_get_column_family_metadata_cf(db: &Database, family: &Family) -> *mut FamilyFigures {
        let _ = db;
        Ok(give(FamilyFigures::of(&family.inner, family.inner.name())))
    }
    fn rocksdb_column_family_metadata_destroy(about: own FamilyFigures) {
        drop(about);
        Ok(())
    }
    fn rocksdb_column_family_metadata_get_size(about: &mut FamilyFigures) -> u64 {
        Ok(about.bytes)
    }
    fn rocksdb_column_family_metadata_get_file_count(about: &mut FamilyFigures) -> usize {
        Ok(size(about.files))
    }
    fn rocksdb_column_family_metadata_get_name(about: &mut FamilyFigures) -> *mut c_char {
        Ok(c_text(&about.name))
    }
    fn rocksdb_livefiles(db: &Database) -> *const LiveFiles {
        let _ = db;
        Ok(std::ptr::null())
    }
    fn rocksdb_livefiles_count(files: &LiveFiles) -> i32 {
        match *files {}
    }
    fn rocksdb_livefiles_column_family_name(files: &LiveFiles, index: i32) -> *const c_char {
        let _ = index;
        match *files {}
    }
    fn rocksdb_livefiles_name(files: &LiveFiles, index: i32) -> *const c_char {
        let _ = index;
        match *files {}
    }
    fn rocksdb_livefiles_level(files: &LiveFiles, index: i32) -> i32 {
        let _ = index;
        match *files {}
    }
    fn rocksdb_livefiles_size(files: &LiveFiles, index: i32) -> usize {
        let _ = index;
        match *files {}
    }
    fn rocksdb_livefiles_smallestkey(files: &LiveFiles, index: i32, len: out usize) -> *const c_char {
        let _ = (index, len);
        match *files {}
    }
    fn rocksdb_livefiles_largestkey(files: &LiveFiles, index: i32, len: out usize) -> *const c_char {
        let _ = (index, len);
        match *files {}
    }
    fn rocksdb_livefiles_entries(files: &LiveFiles, index: i32) -> u64 {
        let _ = index;
        match *files {}
    }
    fn rocksdb_livefiles_deletions(files: &LiveFiles, index: i32) -> u64 {
        let _ = index;
        match *files {}
    }
    fn rocksdb_livefiles_destroy(files: maybe LiveFiles) {
        let _ = files;
        Ok(())
    }
    fn rocksdb_get_db_identity(db: &Database, len: out usize) -> *mut c_char {
        let _ = db;
        len.set(0);
        Ok(std::ptr::null_mut())
    }
    fn rocksdb_set_perf_level(level: i32) {
        let _ = level;
        Ok(())
    }
    fn rocksdb_perfcontext_create() -> *mut PerfContext {
        Ok(std::ptr::null_mut())
    }
    fn rocksdb_perfcontext_reset(context: &mut PerfContext) {
        match *context {}
    }
    fn rocksdb_perfcontext_report(context: &mut PerfContext, exclude_zero: u8) -> *mut c_char {
        let _ = exclude_zero;
        match *context {}
    }
    fn rocksdb_perfcontext_metric(context: &mut PerfContext, metric: i32) -> u64 {
        let _ = metric;
        match *context {}
    }
    fn rocksdb_perfcontext_destroy(context: maybe PerfContext) {
        let _ = context;
        Ok(())
    }
    fn rocksdb_options_statistics_get_ticker_count(options: &Options, ticker: u32) -> u64 {
        let _ = (options, ticker);
        Ok(NOT_KEPT)
    }
    fn rocksdb_options_statistics_get_histogram_data(
        options: &Options, histogram: u32, data: maybe Histogram
    ) {
        let _ = (options, histogram, data);
        Ok(())
    }
    fn rocksdb_statistics_histogram_data_create() -> *mut Histogram {
        Ok(std::ptr::null_mut())
    }
    fn rocksdb_statistics_histogram_data_destroy(data: maybe Histogram) {
        let _ = data;
        Ok(())
    }
    fn rocksdb_statistics_histogram_data_get_median(data: &mut Histogram) -> f64 {
        match *data {}
    }
    fn rocksdb_statistics_histogram_data_get_p95(data: &mut Histogram) -> f64 {
        match *data {}
    }
    fn rocksdb_statistics_histogram_data_get_p99(data: &mut Histogram) -> f64 {
        match *data {}
    }
    fn rocksdb_statistics_histogram_data_get_average(data: &mut Histogram) -> f64 {
        match *data {}
    }
    fn rocksdb_statistics_histogram_data_get_std_dev(data: &mut Histogram) -> f64 {
        match *data {}
    }
    fn rocksdb_statistics_histogram_data_get_max(data: &mut Histogram) -> f64 {
        match *data {}
    }
    fn rocksdb_statistics_histogram_data_get_min(data: &mut Histogram) -> f64 {
        match *data {}
    }
    fn rocksdb_statistics_histogram_data_get_count(data: &mut Histogram) -> u64 {
        match *data {}
    }
    fn rocksdb_statistics_histogram_data_get_sum(data: &mut Histogram) -> u64 {
        match *data {}
    }
    fn rocksdb_get_options_from_string(
        base: &Options, text: text, options: &mut Options, errptr
    ) {
        let _ = (base, options);
        Err(Error::unsupported(format!("options from text, `{text}`; call their setters")))
    }
    fn rocksdb_load_latest_options(
        path: path, env: maybe Env, ignores_unknown: bool, cache: maybe Cache,
        options: out *mut Options, n: out usize, names: out *mut *mut c_char,
        of: out *mut *mut Options, errptr
    ) {
        let _ = (env, ignores_unknown, cache);
        n.set(0);
        put_null(&options);
        put_null(&names);
        put_null(&of);
        Err(Error::unsupported(format!(
            "load_latest_options of {path:?}: an open takes the options that it is given; set them"
        )))
    }
}

fn put_null<T>(out: &Outs<*mut T>) {
    out.set(std::ptr::null_mut());
}
