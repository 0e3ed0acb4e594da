//! RocksDB's perf context: what the calling thread read, counted while its level asks for that.
//!
//! Keeps: only what is counted here is in the report; the metric of anything else is the highest number,
//! which no count reaches, as 0 would be an answer. Bytes that an iterator read count when it is destroyed, as RocksDB's.

use std::cell::Cell;
use std::ffi::c_char;

use crate::raw::{c_text, export, give};

/// What a count that is not kept gives where there is no place for an error: no count is that high, and 0
/// would be an answer.
pub(crate) const NOT_KEPT: u64 = u64::MAX;

/// `rocksdb_perfcontext_t`: a handle of the calling thread's counts.
pub(crate) struct PerfContext;

/// RocksDB's level that counts, and takes no times. It is what a thread begins with.
const COUNTS: i32 = 2;

/// What is counted, with RocksDB's numbers.
const METRICS: [(i32, &str); 4] = [
    (1, "block_cache_hit_count"),
    (7, "get_read_bytes"),
    (8, "multiget_read_bytes"),
    (9, "iter_read_bytes"),
];

/// Bytes that a thread read, by what read them.
#[derive(Clone, Copy)]
pub(crate) enum By {
    Get = 1,
    MultiGet = 2,
    Iter = 3,
}

thread_local! {
    static LEVEL: Cell<i32> = const { Cell::new(COUNTS) };
    /// Counts by their places in `METRICS`; that of block cache hits is what it was at the last reset.
    static COUNTED: Cell<[u64; METRICS.len()]> = const { Cell::new([0; METRICS.len()]) };
}

/// Counts bytes that the program was given, or that an iterator came to.
#[inline]
pub(crate) fn read(by: By, bytes: usize) {
    if LEVEL.get() >= COUNTS {
        let mut counted = COUNTED.get();
        counted[by as usize] += bytes as u64;
        COUNTED.set(counted);
    }
}

fn counted() -> [u64; METRICS.len()] {
    let mut counted = COUNTED.get();
    counted[0] = lithify::thread_cache_hits().wrapping_sub(counted[0]);
    counted
}

export! {
    fn rocksdb_set_perf_level(level: i32) {
        LEVEL.set(level);
        Ok(())
    }
    fn rocksdb_perfcontext_create() -> *mut PerfContext {
        Ok(give(PerfContext))
    }
    fn rocksdb_perfcontext_reset(context: &PerfContext) {
        let _ = context;
        let mut zero = [0; METRICS.len()];
        zero[0] = lithify::thread_cache_hits();
        COUNTED.set(zero);
        Ok(())
    }
    fn rocksdb_perfcontext_report(context: &PerfContext, exclude_zero: u8) -> *mut c_char {
        let _ = context;
        let all = METRICS.iter().zip(counted());
        let shown = all.filter(|(_, n)| exclude_zero == 0 || *n > 0);
        let text: Vec<String> = shown.map(|((_, name), n)| format!("{name} = {n}")).collect();
        Ok(c_text(&text.join(", ")))
    }
    fn rocksdb_perfcontext_metric(context: &PerfContext, metric: i32) -> u64 {
        let _ = context;
        let at = METRICS.iter().position(|(number, _)| *number == metric);
        Ok(at.map_or(NOT_KEPT, |at| counted()[at]))
    }
    fn rocksdb_perfcontext_destroy(context: own PerfContext) {
        drop(context);
        Ok(())
    }
}
