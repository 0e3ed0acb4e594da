//! How `memory_budget` is shared: memtables first; of what they leave, buffers of flushes and compactions
//! have a part, a quarter, and more of a small budget, is counted by none, and cached blocks get the rest.

use crate::table::Settings;

/// The part of what memtables leave of the memory that buffers of jobs get.
const BUFFER_SHARE: u64 = 4;
/// The part that is left for what is not counted: output of a merge, tables being built, which keep the keys of their
/// blocks and the hashes of their filters, cursors that read ahead, and what allocators keep beyond what they hand out.
const UNCOUNTED_SHARE: u64 = 4;
/// What that takes at least: so much for each job, and for code and stacks. Measured; see
/// `crates/db/examples/memory.rs`.
const UNCOUNTED_OF_JOB: u64 = 4 << 20;
const UNCOUNTED_OF_PROCESS: u64 = 8 << 20;
/// The part of what memtables leave that comes to that least, because allocators keep more, and cursors hold more
/// blocks, the more data there is. Where it takes more than the share, buffers give it: a read of a block that the
/// cache has no room for costs more than a merge that reads less at a time.
const UNCOUNTED_WITH_SIZE: u64 = 10;

/// Bytes of all memtables.
pub(crate) fn memtables(s: &Settings) -> u64 {
    s.memtable_bytes.saturating_mul(u64::from(s.memtable_count))
}

/// Bytes that memtables leave of the memory.
pub(crate) fn beside_memtables(s: &Settings) -> u64 {
    s.memory_budget.saturating_sub(memtables(s))
}

/// Bytes of buffers of flushes and compactions: as set, else the share they get, less what they give.
pub fn buffer_bytes(s: &Settings) -> u64 {
    let left = beside_memtables(s);
    let given = uncounted(s) - uncounted_beside(s, 0);
    s.buffer_bytes.unwrap_or((left / BUFFER_SHARE).saturating_sub(given))
}

/// Flushes and compactions that may be at work at once.
pub fn jobs(s: &Settings) -> u64 {
    u64::from(s.compaction_threads + s.flush_threads)
}

/// Bytes left for cached blocks and table metadata.
pub fn cache_bytes(s: &Settings) -> u64 {
    beside_memtables(s).saturating_sub(taken_of_cache(s))
}

/// Bytes beside the memtables that cached blocks do not get: buffers of jobs, and what is left for what is not counted.
pub(crate) fn taken_of_cache(s: &Settings) -> u64 {
    buffer_bytes(s).saturating_add(uncounted(s))
}

/// Bytes left for what is not counted.
fn uncounted(s: &Settings) -> u64 {
    uncounted_beside(s, beside_memtables(s) / UNCOUNTED_WITH_SIZE)
}

/// The same if so much comes to the least of it; no more than half of what is beside the memtables.
fn uncounted_beside(s: &Settings, more: u64) -> u64 {
    let left = beside_memtables(s);
    let least = UNCOUNTED_OF_PROCESS + jobs(s) * UNCOUNTED_OF_JOB + more;
    (left / UNCOUNTED_SHARE).max(least.min(left / 2))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Policy;

    /// The cache of a budget is what it was before more was left uncounted; buffers gave that.
    #[test]
    fn buffers_give_what_is_left_uncounted_beyond_the_share() {
        for (budget, buffers, cache) in
            [(64, 10, 10), (128, 12, 40), (256, 31, 64), (1024, 128, 256)]
        {
            let mut s = Settings::default();
            s.set("memory_budget", &format!("{budget}MiB")).unwrap();
            s.set("compaction_threads", "2").unwrap();
            assert_eq!(buffer_bytes(&s) >> 20, buffers, "{budget} MiB: {}", buffer_bytes(&s));
            assert_eq!(cache_bytes(&s) >> 20, cache, "{budget} MiB: {}", cache_bytes(&s));
        }
    }

    #[test]
    fn sizes_at_their_end_do_not_wrap_around() {
        for policy in Policy::ALL {
            let with = |name: &str| {
                let mut settings = Settings { policy: Some(policy), ..Settings::default() };
                settings.set(name, &u64::MAX.to_string()).unwrap();
                settings
            };
            let error = with("memtable_bytes").check().unwrap_err();
            assert_eq!(error.kind(), lithify_base::ErrorKind::InvalidArgument, "{error}");
            assert_eq!(buffer_bytes(&with("memtable_bytes")), 0, "memtables leave nothing");
            assert_eq!(cache_bytes(&with("buffer_bytes")), 0, "buffers leave nothing");
            let whole = cache_bytes(&with("memory_budget"));
            assert!(whole > u64::MAX / 4, "most of it is cache: {whole}");
        }
    }
}
