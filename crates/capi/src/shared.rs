//! Objects that several databases may share: caches, rate limiters, worlds, loggers.

use std::ffi::{c_char, c_uint, c_void};

use crate::callbacks::{LogCall, LogFn};
use crate::kept::{Kept, keeps, rows};
use crate::raw::{export, give};

/// `rocksdb_cache_t`: how large the block cache of a database that is given it will be.
#[derive(Clone)]
pub(crate) struct Cache {
    bytes: usize,
}

impl Cache {
    pub(crate) fn capacity(&self) -> usize {
        self.bytes
    }
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
        Ok(give(Cache { bytes: capacity }))
    }
    fn rocksdb_cache_create_lru_opts(options: &CacheOptions) -> *mut Cache {
        Ok(give(Cache { bytes: options.bytes }))
    }
    fn rocksdb_cache_create_hyper_clock(capacity: usize, estimated_entry_charge: usize) -> *mut Cache {
        let _ = estimated_entry_charge;
        Ok(give(Cache { bytes: capacity }))
    }
    fn rocksdb_cache_get_capacity(cache: &Cache) -> usize {
        Ok(cache.bytes)
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
