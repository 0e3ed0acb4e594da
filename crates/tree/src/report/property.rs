//! Figures by the names that RocksDB's users ask for them, where the figure exists here.

use lithify_base::MAX_LEVELS;
use lithify_env::sync::atomic::Ordering;
use lithify_lsm::FileMeta;

use crate::shell::Shell;
use lithify_reports::stats::Stats;
use lithify_views::super_version::Mem;

/// What every name begins with.
const PREFIX: &str = "rocksdb.";

impl Shell {
    /// The property of that name as text; `None` if there is none of that name.
    pub fn property(&self, name: &str) -> Option<String> {
        let stats = self.stats();
        match name.strip_prefix(PREFIX)? {
            "stats" => Some(stats.to_string()),
            "levelstats" => Some(level_stats(&stats)),
            "sstables" => Some(self.picture()),
            "dbstats" | "cfstats" => Some(stats.to_string()),
            name => self.number(name, &stats).map(|n| n.to_string()),
        }
    }

    /// The same for those that are numbers.
    pub fn int_property(&self, name: &str) -> Option<u64> {
        self.number(name.strip_prefix(PREFIX)?, &self.stats())
    }

    fn number(&self, name: &str, stats: &Stats) -> Option<u64> {
        if let Some(level) = name.strip_prefix("num-files-at-level") {
            let level: usize = level.parse().ok().filter(|&level| level < MAX_LEVELS)?;
            return Some(stats.levels[level].files as u64);
        }
        let sv = self.super_version();
        let (active, frozen) = sv.mems.split_first()?;
        let pressure = self.family.gate.report().pressure;
        let entries = |mem: &Mem| mem.table.entry_count();
        let sum =
            |of: fn(&FileMeta) -> u64| -> u64 { sv.tree.version.files().map(|f| of(f)).sum() };
        Some(match name {
            "num-immutable-mem-table" => stats.frozen_memtables as u64,
            "mem-table-flush-pending" => u64::from(stats.frozen_memtables > 0),
            "num-running-flushes" => self.running_flushes() as u64,
            "num-running-compactions" => stats.running_compactions as u64,
            "compaction-pending" => u64::from(stats.debt_bytes > 0),
            "background-errors" => stats.counts.job_failures,
            "cur-size-active-mem-table" => active.table.bytes() as u64,
            "cur-size-all-mem-tables" | "size-all-mem-tables" => stats.memtable_bytes,
            "num-entries-active-mem-table" => entries(active),
            "num-entries-imm-mem-tables" => frozen.iter().map(entries).sum(),
            "estimate-num-keys" => {
                // A deletion hides one entry and is one itself.
                let points = sum(|f| f.entries).saturating_sub(2 * sum(|f| f.deletes));
                points + sv.mems.iter().map(entries).sum::<u64>()
            }
            "estimate-table-readers-mem" => stats.table_memory,
            "estimate-live-data-size" | "live-sst-files-size" => stats.disk_bytes,
            "total-sst-files-size" => stats.disk_bytes + self.obsolete_bytes(),
            "estimate-pending-compaction-bytes" => stats.debt_bytes,
            "num-snapshots" => stats.snapshots as u64,
            "oldest-snapshot-sequence" => {
                self.shared.snapshots.list().first().copied().unwrap_or(0)
            }
            "num-live-versions" => self.live_trees() as u64,
            "current-super-version-number" => sv.no,
            "min-log-number-to-keep" => self.shared.first_log(),
            "is-file-deletions-enabled" => {
                let paused = self.shared.background.pauses.load(Ordering::SeqCst) > 0;
                u64::from(!paused && !self.shared.keeps_files())
            }
            "actual-delayed-write-rate" => pressure.delay.map_or(0, |(rate, _)| rate),
            "is-write-stopped" => u64::from(pressure.stop.is_some()),
            "block-cache-capacity" => self.shared.resources.blocks.capacity(),
            "block-cache-usage" => stats.cache_bytes + self.shared.resources.blocks.counts().tables,
            "estimate-oldest-key-time" => {
                let times = sv.tree.version.files().map(|f| f.oldest_ancestor);
                times.filter(|&time| time > 0).min().unwrap_or(0)
            }
            "latest-sequence-number" => self.shared.writes.published.load(Ordering::Acquire),
            _ => return None,
        })
    }
}

fn level_stats(stats: &Stats) -> String {
    let mut text = String::from("Level Files Size(MB)\n--------------------\n");
    for l in &stats.levels {
        text += &format!("{:3} {:8} {:8.0}\n", l.level, l.files, l.bytes as f64 / 1_048_576.0);
    }
    text
}
