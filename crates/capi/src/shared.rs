//! Objects that several databases may share: caches, rate limiters, worlds, loggers.

use std::ffi::{c_char, c_uint, c_void};

use lithify::{SharedCache, SharedMemtables};

use crate::callbacks::{LogCall, LogFn};
use crate::db::Database;
use crate::kept::{Kept, keeps, rows};
use crate::raw::{export, give};
use crate::users::sum;

/// `rocksdb_cache_t`: the block cache of all databases that are given it.
#[derive(Clone)]
pub(crate) struct Cache(SharedCache);

impl Cache {
    fn new(bytes: usize) -> *mut Cache {
        give(Cache(SharedCache::new(bytes as u64)))
    }
    pub(crate) fn blocks(&self) -> &SharedCache {
        &self.0
    }
}

fn size(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

/// `rocksdb_lru_cache_options_t`.
#[derive(Clone, Default)]
pub(crate) struct CacheOptions {
    bytes: usize,
    kept: Kept,
}
keeps!(CacheOptions);

rows! { CacheOptions;
    exact rocksdb_lru_cache_options_set_capacity _: usize = 0, |o, v| o.bytes = v;
    noted rocksdb_lru_cache_options_set_num_shard_bits _: i32 = -1;
}

export! {
    fn rocksdb_lru_cache_options_create() -> *mut CacheOptions {
        Ok(give(CacheOptions::default()))
    }
    fn rocksdb_lru_cache_options_destroy(options: own CacheOptions) {
        drop(options);
        Ok(())
    }
    fn rocksdb_cache_create_lru(capacity: usize) -> *mut Cache {
        Ok(Cache::new(capacity))
    }
    fn rocksdb_cache_create_lru_opts(options: &CacheOptions) -> *mut Cache {
        Ok(Cache::new(options.bytes))
    }
    fn rocksdb_cache_create_hyper_clock(capacity: usize, estimated_entry_charge: usize) -> *mut Cache {
        let _ = estimated_entry_charge;
        Ok(Cache::new(capacity))
    }
    fn rocksdb_cache_get_capacity(cache: &Cache) -> usize {
        Ok(size(cache.0.capacity()))
    }
    fn rocksdb_cache_set_capacity(cache: &Cache, capacity: usize) {
        cache.0.set_capacity(capacity as u64);
        Ok(())
    }
    fn rocksdb_cache_get_usage(cache: &Cache) -> usize {
        Ok(size(cache.0.usage()))
    }
    fn rocksdb_cache_destroy(cache: own Cache) {
        drop(cache);
        Ok(())
    }
}

/// `rocksdb_ratelimiter_t`: bytes a second for flushes and compactions, 0 for no limit.
#[derive(Clone)]
pub(crate) struct RateLimiter {
    bytes: u64,
    tunes: bool,
}

impl RateLimiter {
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }
    pub(crate) fn tunes(&self) -> bool {
        self.tunes
    }
}

fn limiter(bytes: i64, tunes: bool) -> *mut RateLimiter {
    let bytes = u64::try_from(bytes).unwrap_or(0);
    let bytes = if bytes == 0 { 0 } else { bytes.clamp(16 << 10, 1 << 50) };
    give(RateLimiter { bytes, tunes: tunes && bytes > 0 })
}

export! {
    fn rocksdb_ratelimiter_create(bytes: i64, refill_period_us: i64, fairness: i32) -> *mut RateLimiter {
        let _ = (refill_period_us, fairness);
        Ok(limiter(bytes, false))
    }
    fn rocksdb_ratelimiter_create_auto_tuned(bytes: i64, refill_period_us: i64, fairness: i32) -> *mut RateLimiter {
        let _ = (refill_period_us, fairness);
        Ok(limiter(bytes, true))
    }
    fn rocksdb_ratelimiter_destroy(limiter: own RateLimiter) {
        drop(limiter);
        Ok(())
    }
}

/// `rocksdb_env_t`: this machine, or files in memory.
pub(crate) struct Env {
    memory: Option<lithify::env::Env>,
    kept: Kept,
}
keeps!(Env);

impl Env {
    /// The world to open in, if it is not this machine.
    pub(crate) fn world(&self) -> Option<lithify::env::Env> {
        self.memory.clone()
    }
}

rows! { Env;
    noted rocksdb_env_set_background_threads rocksdb_env_get_background_threads: i32 = 1;
    noted rocksdb_env_set_high_priority_background_threads
        rocksdb_env_get_high_priority_background_threads: i32 = 1;
    noted rocksdb_env_set_low_priority_background_threads
        rocksdb_env_get_low_priority_background_threads: i32 = 1;
    noted rocksdb_env_set_bottom_priority_background_threads
        rocksdb_env_get_bottom_priority_background_threads: i32 = 0;
}

export! {
    fn rocksdb_create_default_env() -> *mut Env {
        Ok(give(Env { memory: None, kept: Kept::default() }))
    }
    fn rocksdb_create_mem_env() -> *mut Env {
        let memory = lithify::env::Env::in_memory(lithify::env::RtOptions::default());
        Ok(give(Env { memory: Some(memory), kept: Kept::default() }))
    }
    fn rocksdb_env_destroy(env: own Env) {
        drop(env);
        Ok(())
    }
    // Background threads belong to databases and end with them; they give way by themselves.
    fn rocksdb_env_join_all_threads(env: maybe Env) {
        let _ = env;
        Ok(())
    }
    fn rocksdb_env_lower_thread_pool_io_priority(env: maybe Env) {
        let _ = env;
        Ok(())
    }
    fn rocksdb_env_lower_high_priority_thread_pool_io_priority(env: maybe Env) {
        let _ = env;
        Ok(())
    }
    fn rocksdb_env_lower_thread_pool_cpu_priority(env: maybe Env) {
        let _ = env;
        Ok(())
    }
    fn rocksdb_env_lower_high_priority_thread_pool_cpu_priority(env: maybe Env) {
        let _ = env;
        Ok(())
    }
}

/// `rocksdb_logger_t`: where notes go.
#[derive(Clone)]
pub(crate) struct Logger {
    call: Option<LogCall>,
    level: i32,
}

/// RocksDB's level of information.
const INFO: i32 = 1;

impl Logger {
    pub(crate) fn say(&self, text: &str) {
        if self.level > INFO {
            return;
        }
        match &self.call {
            Some(call) => call.say(INFO as c_uint, text),
            None => eprintln!("{text}"),
        }
    }
}

export! {
    fn rocksdb_logger_create_stderr_logger(level: i32, prefix: *const c_char) -> *mut Logger {
        let _ = prefix;
        Ok(give(Logger { call: None, level }))
    }
    fn rocksdb_logger_create_callback_logger(level: i32, log: Option<LogFn>, state: *mut c_void) -> *mut Logger {
        Ok(give(Logger { call: log.map(|log| LogCall::new(log, state)), level }))
    }
    fn rocksdb_logger_destroy(logger: own Logger) {
        drop(logger);
        Ok(())
    }
}

/// `rocksdb_write_buffer_manager_t`: one bound for the memtables of all databases that are given it.
#[derive(Clone)]
pub(crate) struct WriteBuffers(SharedMemtables);

impl WriteBuffers {
    pub(crate) fn memtables(&self) -> &SharedMemtables {
        &self.0
    }
}

/// All memtables of a family.
const MEMTABLES: &str = "rocksdb.size-all-mem-tables";

export! {
    fn rocksdb_write_buffer_manager_create(bytes: usize, allow_stall: bool) -> *mut WriteBuffers {
        Ok(give(WriteBuffers(SharedMemtables::new(bytes as u64, allow_stall))))
    }
    fn rocksdb_write_buffer_manager_create_with_cache(
        bytes: usize, cache: maybe Cache, allow_stall: bool
    ) -> *mut WriteBuffers {
        let bytes = bytes as u64;
        Ok(give(WriteBuffers(match cache {
            Some(Cache(cache)) => SharedMemtables::within_cache(bytes, allow_stall, cache),
            None => SharedMemtables::new(bytes, allow_stall),
        })))
    }
    fn rocksdb_write_buffer_manager_destroy(buffers: own WriteBuffers) {
        drop(buffers);
        Ok(())
    }
    fn rocksdb_write_buffer_manager_enabled(buffers: &WriteBuffers) -> bool {
        Ok(buffers.0.limit() > 0)
    }
    fn rocksdb_write_buffer_manager_buffer_size(buffers: &WriteBuffers) -> usize {
        Ok(size(buffers.0.limit()))
    }
    fn rocksdb_write_buffer_manager_set_buffer_size(buffers: &WriteBuffers, bytes: usize) {
        buffers.0.set_limit(bytes as u64);
        Ok(())
    }
    fn rocksdb_write_buffer_manager_set_allow_stall(buffers: &WriteBuffers, allow_stall: bool) {
        buffers.0.set_stalls(allow_stall);
        Ok(())
    }
    fn rocksdb_write_buffer_manager_memory_usage(buffers: &WriteBuffers) -> usize {
        Ok(size(buffers.0.usage()))
    }
}

/// `rocksdb_memory_consumers_t`.
#[derive(Default)]
pub(crate) struct Consumers {
    databases: Vec<Database>,
    caches: Vec<Cache>,
}

/// `rocksdb_memory_usage_t`.
#[derive(Default)]
pub(crate) struct Usage {
    memtables: u64,
    unflushed: u64,
    readers: u64,
    cache: u64,
}

export! {
    fn rocksdb_memory_consumers_create() -> *mut Consumers {
        Ok(give(Consumers::default()))
    }
    fn rocksdb_memory_consumers_destroy(consumers: own Consumers) {
        drop(consumers);
        Ok(())
    }
    fn rocksdb_memory_consumers_add_db(consumers: &mut Consumers, db: &Database) {
        consumers.databases.push(db.clone());
        Ok(())
    }
    fn rocksdb_memory_consumers_add_cache(consumers: &mut Consumers, cache: &Cache) {
        consumers.caches.push(cache.clone());
        Ok(())
    }
    fn rocksdb_approximate_memory_usage_create(consumers: &Consumers, errptr) -> *mut Usage {
        let open = || consumers.databases.iter().filter(|db| db.is_open());
        let all = |name: &str| open().map(|db| sum(db, name)).sum();
        Ok(give(Usage {
            memtables: all(MEMTABLES),
            unflushed: all("rocksdb.cur-size-all-mem-tables"),
            readers: all("rocksdb.estimate-table-readers-mem"),
            cache: consumers.caches.iter().map(|cache| cache.0.memory()).sum(),
        }))
    }
    fn rocksdb_approximate_memory_usage_destroy(usage: own Usage) {
        drop(usage);
        Ok(())
    }
    fn rocksdb_approximate_memory_usage_get_mem_table_total(usage: &Usage) -> u64 {
        Ok(usage.memtables)
    }
    fn rocksdb_approximate_memory_usage_get_mem_table_unflushed(usage: &Usage) -> u64 {
        Ok(usage.unflushed)
    }
    fn rocksdb_approximate_memory_usage_get_mem_table_readers_total(usage: &Usage) -> u64 {
        Ok(usage.readers)
    }
    fn rocksdb_approximate_memory_usage_get_cache_total(usage: &Usage) -> u64 {
        Ok(usage.cache)
    }
}
