//! What is counted, gathered from the parts of a database.

use lithify_env::sync::atomic::Ordering;
use lithify_lsm::picture;
use lithify_reports::stats::{LevelStats, Stats};

use crate::shell::Shell;

impl Shell {
    /// Statistics.
    pub fn stats(&self) -> Stats {
        let sv = self.super_version();
        let cache = self.shared.resources.blocks.counts();
        let (debt_bytes, running_compactions, frozen_memtables) = {
            let core = self.core();
            (core.debt(), core.in_flight().len(), core.frozen())
        };
        let tally = self.tally();
        let levels = (0..lithify_base::MAX_LEVELS as u8)
            .map(|level| {
                let l = sv.tree.version.level(level);
                let at = usize::from(level);
                let mut stats = LevelStats::default();
                stats.level = level;
                stats.runs = l.runs().len();
                stats.files = l.file_count();
                stats.bytes = l.bytes();
                stats.written_bytes = tally.written[at];
                stats.read_bytes = tally.read[at];
                stats.jobs = tally.jobs[at];
                stats
            })
            .collect();
        drop(tally);
        let mut stats = Stats::default();
        stats.counts = self.shared.metrics.counts();
        stats.write_latency = self.shared.metrics.write.latency();
        stats.get_latency = self.shared.metrics.get.latency();
        stats.flush_duration = self.shared.metrics.flush.latency();
        stats.compaction_duration = self.shared.metrics.compaction.latency();
        stats.levels = levels;
        stats.stalls = self.family.gate.waited();
        stats.memtable_bytes = sv.mems.iter().map(|m| m.table.bytes() as u64).sum();
        stats.memtable_entries =
            sv.mems.iter().map(|m| m.table.entry_count() + m.table.range_deletes()).sum();
        stats.frozen_memtables = frozen_memtables;
        stats.cache_bytes = cache.bytes;
        stats.cache_hits = cache.hits;
        stats.cache_misses = cache.misses;
        stats.prefix_filter_useful = self.family.tables.left_out();
        stats.table_memory = self.shared.resources.blocks.resident();
        stats.buffer_bytes =
            (self.context().buffers.in_use() + self.context().buffers.idle()) as u64;
        stats.disk_bytes = sv.tree.version.all_bytes();
        stats.debt_bytes = debt_bytes;
        stats.running_compactions = running_compactions;
        stats.last_sequence = self.shared.writes.published.load(Ordering::Acquire);
        stats.snapshots = self.shared.snapshots.list().len();
        stats.engines = self.shared.resources.engines.reports();
        stats
    }

    /// The tree as the text picture of the documentation.
    pub fn picture(&self) -> String {
        let sv = self.super_version();
        let core = self.core();
        let locked: Vec<_> = core.in_flight().iter().flat_map(|f| &f.spec.inputs).collect();
        picture::print(&sv.tree.version, |id| locked.contains(&&id))
    }
}
