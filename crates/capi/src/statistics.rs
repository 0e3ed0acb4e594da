//! Statistics by RocksDB's numbers: those that are counted here, over all databases that were opened with the
//! same options object.
//!
//! Keeps: what is not counted is absent from the text; asked for by number it is the highest number, or for a
//! time not a number, as 0 would be an answer. Times are samples: one call in 61.

use std::ffi::c_char;

use lithify::{Latency, Stats};

use crate::db::Database;
use crate::options::Options;
use crate::perf::NOT_KEPT;
use crate::raw::{c_text, export, give};
use crate::users::Users;

/// A counter: RocksDB's number and name, and what it is here.
type Ticker = (u32, &'static str, fn(&Stats) -> u64);

/// Those of the database as a whole.
const TICKERS: &[Ticker] = &[
    (0, "block.cache.miss", |s| s.cache_misses),
    (1, "block.cache.hit", |s| s.cache_hits),
    (45, "memtable.hit", |s| s.counts.memtable_hits),
    (46, "memtable.miss", |s| s.counts.gets.saturating_sub(s.counts.memtable_hits)),
    (58, "number.keys.written", |s| s.counts.writes),
    (59, "number.keys.read", |s| s.counts.gets),
    (61, "bytes.written", |s| s.counts.write_bytes),
    (72, "num.iterator.created", |s| s.counts.iterators),
    (84, "wal.synced", |s| s.counts.wal_syncs),
    (85, "wal.bytes", |s| s.counts.wal_bytes),
    (91, "write.self", |s| s.counts.commit_groups),
    (94, "compact.read.bytes", |s| s.counts.compaction_read_bytes),
    (95, "compact.write.bytes", |s| s.counts.compaction_write_bytes),
    (96, "flush.write.bytes", |s| s.counts.flush_bytes),
    (119, "compaction.total.time.cpu_micros", |s| s.counts.compaction_cpu_nanos / 1000),
];

/// A histogram of times, the same way.
type Times = (u32, &'static str, fn(&Stats) -> Latency);

const HISTOGRAMS: &[Times] = &[
    (0, "db.get.micros", |s| s.get_latency),
    (1, "db.write.micros", |s| s.write_latency),
    (2, "compaction.times.micros", |s| s.compaction_duration),
    (50, "db.flush.micros", |s| s.flush_duration),
];

/// Of all databases that count for an options object.
fn all(users: &Users) -> Vec<Stats> {
    users.each(|database: &Database| database.db().stats())
}

fn ticker(users: &Users, number: u32) -> Option<u64> {
    let (_, _, of) = TICKERS.iter().find(|(known, ..)| *known == number)?;
    Some(all(users).iter().map(of).sum())
}

fn text(users: &Users) -> String {
    let all = all(users);
    let mut text = String::new();
    for (_, name, of) in TICKERS {
        text += &format!("rocksdb.{name} COUNT : {}\n", all.iter().map(of).sum::<u64>());
    }
    for (number, name, _) in HISTOGRAMS {
        let h = Histogram::numbered(users, *number);
        text += &format!(
            "rocksdb.{name} P50 : {:.6} P95 : {:.6} P99 : {:.6} P100 : {:.6} COUNT : {} SUM : {}\n",
            h.median, h.p95, h.p99, h.max, h.count, h.sum
        );
    }
    text
}

/// `rocksdb_statistics_histogram_data_t`: times in microseconds.
#[derive(Clone, Copy, Default)]
pub(crate) struct Histogram {
    median: f64,
    p95: f64,
    p99: f64,
    average: f64,
    deviation: f64,
    max: f64,
    min: f64,
    count: u64,
    sum: u64,
}

impl Histogram {
    /// That of the database with the most samples: quantiles of several cannot be added.
    fn numbered(users: &Users, number: u32) -> Histogram {
        let Some((_, _, of)) = HISTOGRAMS.iter().find(|(known, ..)| *known == number) else {
            return Histogram::not_kept();
        };
        let most = all(users).iter().map(of).max_by_key(|latency| latency.count);
        most.map_or_else(Histogram::default, |latency| Histogram::of(&latency))
    }
    fn of(l: &Latency) -> Histogram {
        let micros = |time: std::time::Duration| time.as_nanos() as f64 / 1000.0;
        Histogram {
            median: micros(l.p50),
            p95: micros(l.p95),
            p99: micros(l.p99),
            average: micros(l.mean),
            deviation: micros(l.deviation),
            max: micros(l.max),
            min: micros(l.min),
            count: l.count,
            sum: micros(l.sum).round() as u64,
        }
    }
    fn not_kept() -> Histogram {
        let none = f64::NAN;
        Histogram {
            median: none,
            p95: none,
            p99: none,
            average: none,
            deviation: none,
            max: none,
            min: none,
            count: NOT_KEPT,
            sum: NOT_KEPT,
        }
    }
}

export! {
    fn rocksdb_options_enable_statistics(options: &mut Options) {
        options.statistics.get_or_insert_default();
        Ok(())
    }
    fn rocksdb_options_statistics_get_string(options: &Options) -> *mut c_char {
        // As in RocksDB: NULL without statistics.
        let statistics = options.statistics.as_ref();
        Ok(statistics.map_or(std::ptr::null_mut(), |users| c_text(&text(users))))
    }
    fn rocksdb_options_statistics_get_ticker_count(options: &Options, number: u32) -> u64 {
        // As in RocksDB: 0 without statistics.
        let statistics = options.statistics.as_ref();
        Ok(statistics.map_or(0, |users| ticker(users, number).unwrap_or(NOT_KEPT)))
    }
    fn rocksdb_options_statistics_get_histogram_data(
        options: &Options, histogram: u32, data: out Histogram
    ) {
        if let Some(users) = &options.statistics {
            data.set(Histogram::numbered(users, histogram));
        }
        Ok(())
    }
    fn rocksdb_statistics_histogram_data_create() -> *mut Histogram {
        Ok(give(Histogram::default()))
    }
    fn rocksdb_statistics_histogram_data_destroy(data: own Histogram) {
        drop(data);
        Ok(())
    }
    fn rocksdb_statistics_histogram_data_get_median(data: &Histogram) -> f64 {
        Ok(data.median)
    }
    fn rocksdb_statistics_histogram_data_get_p95(data: &Histogram) -> f64 {
        Ok(data.p95)
    }
    fn rocksdb_statistics_histogram_data_get_p99(data: &Histogram) -> f64 {
        Ok(data.p99)
    }
    fn rocksdb_statistics_histogram_data_get_average(data: &Histogram) -> f64 {
        Ok(data.average)
    }
    fn rocksdb_statistics_histogram_data_get_std_dev(data: &Histogram) -> f64 {
        Ok(data.deviation)
    }
    fn rocksdb_statistics_histogram_data_get_max(data: &Histogram) -> f64 {
        Ok(data.max)
    }
    fn rocksdb_statistics_histogram_data_get_min(data: &Histogram) -> f64 {
        Ok(data.min)
    }
    fn rocksdb_statistics_histogram_data_get_count(data: &Histogram) -> u64 {
        Ok(data.count)
    }
    fn rocksdb_statistics_histogram_data_get_sum(data: &Histogram) -> u64 {
        Ok(data.sum)
    }
}
