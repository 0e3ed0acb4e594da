//! Whether settings are sound: each by its range in the table, and then what has to hold between them.
//!
//! Keeps: a refusal names the setting, its value, and a way to mend it.

use lithify_base::{Error, Result};
use lithify_plan::PLACES_MAX;

use crate::budget::Budget;
use crate::memory::{beside_memtables, cache_bytes, memtables, taken_of_cache};
use crate::row::{Row, row};
use crate::table::{ROWS, Settings};
use crate::{CompactionPri, Compression, Policy};

/// Bytes of cache, and of memory beside the memtables, without which a database is not opened.
const CACHE_MIN: u64 = 1 << 20;

/// What a rule between settings says of those that break it.
type Rule = fn(&Settings) -> Option<String>;

/// Every rule between settings, in the order in which they are looked at.
const RULES: &[Rule] = &[
    dictionaries_need_zstandard,
    merge_widths_rise,
    deletions_fit_the_window,
    tuning_needs_a_limit,
    an_open_can_succeed,
    reads_go_one_way,
    blocks_are_a_power_of_two,
    triggers_rise,
    priorities_need_files,
    fifo_keeps_a_memtable,
    fifo_fits_the_disk,
    debts_rise,
    memory_holds_the_memtables,
    buffers_leave_a_cache,
    the_disk_holds_memtables,
    levels_of_codecs,
    table_dirs_are_few,
];

impl Settings {
    /// Checks ranges and contradictions.
    ///
    /// # Errors
    /// [`InvalidArgument`](lithify_base::ErrorKind::InvalidArgument) naming the setting, its
    /// value, and what would be accepted.
    pub fn check(&self) -> Result<()> {
        let settled = self.clone().settled();
        ROWS.iter().try_for_each(|row| within(row, &settled))?;
        match RULES.iter().find_map(|rule| rule(&settled)) {
            Some(what) => Err(Error::invalid(what)),
            None => Ok(()),
        }
    }

    /// Checks the range of one setting, whatever the others are.
    ///
    /// # Errors
    /// As [`check`](Settings::check), and for an unknown name.
    pub fn check_range(&self, name: &str) -> Result<()> {
        within(row(name)?, &self.clone().settled())
    }
}

fn within(row: &Row, s: &Settings) -> Result<()> {
    let (Some(number), Some(range)) = ((row.field.number)(s), row.range()) else { return Ok(()) };
    if range.holds(number) {
        return Ok(());
    }
    Err(Error::invalid(format!("{} = {} is not in {}", row.name, (row.show)(s), row.takes())))
}

fn dictionaries_need_zstandard(s: &Settings) -> Option<String> {
    let zstd = s.compression_upper.is_zstd() || s.compression_lower.is_zstd();
    let told = "max_dict_bytes is for Zstandard alone; set compression_lower to it, or max_dict_bytes to 0";
    (s.max_dict_bytes > 0 && !zstd).then(|| told.to_owned())
}

fn table_dirs_are_few(s: &Settings) -> Option<String> {
    let given = s.table_dirs.len();
    (given > PLACES_MAX).then(|| {
        format!("table_dirs has {given} directories, and a table can be in one of {PLACES_MAX}; name fewer")
    })
}

fn merge_widths_rise(s: &Settings) -> Option<String> {
    let (least, most) = (s.universal_min_merge_width, s.universal_max_merge_width);
    (least > most).then(|| {
        format!(
            "universal_min_merge_width = {least} is above universal_max_merge_width = {most}; lower the \
             one, or raise the other"
        )
    })
}

fn deletions_fit_the_window(s: &Settings) -> Option<String> {
    let (window, trigger) = (s.deletion_window, s.deletion_trigger);
    (window > 0 && !(1..=window).contains(&trigger)).then(|| {
        format!(
            "deletion_trigger = {trigger} is not in 1 to {window}; set it to no more than deletion_window, \
             or deletion_window to 0"
        )
    })
}

fn tuning_needs_a_limit(s: &Settings) -> Option<String> {
    let told = "auto_tuned_rate needs a limit: set background_rate, or leave both out";
    (s.auto_tuned_rate && s.background_rate == 0).then(|| told.to_owned())
}

fn an_open_can_succeed(s: &Settings) -> Option<String> {
    let told = "error_if_exists refuses a database that exists, and create_if_missing = off one that \
                does not; clear one of the two";
    (s.error_if_exists && !s.create_if_missing).then(|| told.to_owned())
}

fn reads_go_one_way(s: &Settings) -> Option<String> {
    let told = "direct_reads go past the system's page cache and mapped_reads into it; turn one of the two off";
    (s.direct_reads && s.mapped_reads == Some(true)).then(|| told.to_owned())
}

fn blocks_are_a_power_of_two(s: &Settings) -> Option<String> {
    (!s.block_bytes.is_power_of_two()).then(|| {
        let next = s.block_bytes.next_power_of_two();
        format!("block_bytes = {} is not a power of two; try {next}", s.block_bytes)
    })
}

fn triggers_rise(s: &Settings) -> Option<String> {
    let [trigger, slowdown, stop] = [s.l0_trigger, s.l0_slowdown, s.l0_stop];
    (trigger > slowdown || slowdown > stop).then(|| {
        format!(
            "l0_trigger = {trigger}, l0_slowdown = {slowdown}, l0_stop = {stop} must rise in this order, \
             from 1"
        )
    })
}

fn priorities_need_files(s: &Settings) -> Option<String> {
    let policy = s.effective_policy();
    (policy.takes_runs() && s.compaction_pri != CompactionPri::default()).then(|| {
        format!(
            "compaction_pri = {} says which file goes down first, and policy = {} takes whole \
             runs; leave it out, or choose another policy, such as {}",
            s.compaction_pri.name(),
            policy.name(),
            Policy::Hybrid.name()
        )
    })
}

fn fifo_keeps_a_memtable(s: &Settings) -> Option<String> {
    let least = s.memtable_bytes.saturating_mul(2);
    (s.effective_policy() == Policy::Fifo && s.fifo_max_bytes < least).then(|| {
        format!(
            "fifo_max_bytes = {} would drop a memtable of {} soon after it is flushed; set it to \
             {least} or more, or memtable_bytes to less",
            s.fifo_max_bytes, s.memtable_bytes
        )
    })
}

fn fifo_fits_the_disk(s: &Settings) -> Option<String> {
    let disk = s.disk_budget.filter(|disk| *disk < s.fifo_max_bytes)?;
    (s.effective_policy() == Policy::Fifo).then(|| {
        format!(
            "fifo_max_bytes = {} is more than disk_budget = {disk}, so that nothing would be \
             forgotten before the disk is full; set it to {} or less, or raise disk_budget",
            s.fifo_max_bytes,
            disk / 2
        )
    })
}

fn debts_rise(s: &Settings) -> Option<String> {
    let (soft, hard) = (s.soft_debt_bytes, s.hard_debt_bytes);
    (hard != 0 && soft > hard).then(|| {
        format!("soft_debt_bytes = {soft} is above hard_debt_bytes = {hard}; lower it, or set 0 for never")
    })
}

fn memory_holds_the_memtables(s: &Settings) -> Option<String> {
    let memtables = memtables(s);
    (s.memory_budget < memtables.saturating_add(CACHE_MIN)).then(|| {
        format!(
            "memory_budget = {} leaves less than 1 MiB of cache beside {} memtables of {} \
             bytes; raise it to {}, lower memtable_bytes or memtable_count, or leave them out",
            s.memory_budget,
            s.memtable_count,
            s.memtable_bytes,
            least_memory(s)
        )
    })
}

fn buffers_leave_a_cache(s: &Settings) -> Option<String> {
    let buffers = s.buffer_bytes.filter(|_| cache_bytes(s) < CACHE_MIN)?;
    Some(format!(
        "buffer_bytes = {buffers} leaves less than 1 MiB of cache: memory_budget has {} beside the \
         memtables, and a quarter of that or more is for what is not counted; leave it out, or raise memory_budget \
         to {}",
        beside_memtables(s),
        least_memory(s)
    ))
}

/// The least `memory_budget` from the one of `s` on that the two rules above let pass. Memtables that were not
/// set grow with the budget, so that what is missing is asked for again and again; a budget that is short of `n`
/// bytes needs at least `n` more, so none that would do is passed over.
fn least_memory(s: &Settings) -> u64 {
    let mut at = s.clone();
    loop {
        let beside = i128::from(at.memory_budget) - i128::from(memtables(&at));
        let cache = at.buffer_bytes.map_or(beside, |_| beside - i128::from(taken_of_cache(&at)));
        let missing = u64::try_from(i128::from(CACHE_MIN) - cache).unwrap_or(0);
        let memory = at.memory_budget.saturating_add(missing);
        if memory == at.memory_budget {
            return memory;
        }
        let budget = at.budget();
        at = at.with_budget(Budget { memory, ..budget });
    }
}

fn the_disk_holds_memtables(s: &Settings) -> Option<String> {
    let least = s.memtable_bytes.saturating_mul(16);
    let disk = s.disk_budget.filter(|disk| *disk < least)?;
    Some(format!(
        "disk_budget = {disk} is below 16 memtables of {} bytes; raise it to {least}, or lower \
         memtable_bytes",
        s.memtable_bytes
    ))
}

fn levels_of_codecs(s: &Settings) -> Option<String> {
    let upper = level_of("upper", s.compression_upper);
    upper.or_else(|| level_of("lower", s.compression_lower))
}

fn level_of(name: &str, codec: Compression) -> Option<String> {
    match codec {
        Compression::Zlib(level) if !(1..=9).contains(&level) => {
            Some(format!("compression_{name}: Zlib level {level} is not in 1 to 9"))
        }
        Compression::Zstd(level) if !(1..=19).contains(&level) => {
            Some(format!("compression_{name}: Zstandard level {level} is not in 1 to 19"))
        }
        Compression::Zstd(_) if !cfg!(feature = "zstd") => Some(format!(
            "compression_{name} = Zstandard needs the cargo feature `zstd`; enable it, or use Lz4"
        )),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
