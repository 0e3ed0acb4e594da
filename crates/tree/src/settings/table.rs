//! Every setting by name: how it is written and read as text, why it has the value it has, and
//! whether a database that is open can change it.
//!
//! Keeps: no field of [`Settings`] is missing here; what is shown is read back as the same.
//! Leaves to others: what is sound ([`Settings::check`]), how values follow (`budget`).

use lithify_base::{Error, Result};

use super::text::{Bytes, Kind, Plain};
use super::{Settings, budget};

/// One setting.
pub(crate) struct Row {
    pub(crate) name: &'static str,
    /// What RocksDB's users know it as.
    rocksdb: &'static str,
    why: Why,
    /// A database that is open can change it.
    pub(crate) live: bool,
    pub(crate) show: fn(&Settings) -> String,
    read: fn(&mut Settings, &str) -> Result<(), String>,
    pub(crate) copy: fn(&Settings, &mut Settings),
}

/// What a value follows from.
enum Why {
    /// It is one of the three that others follow from.
    Budget(&'static str),
    Memory(&'static str),
    Threads(&'static str),
    Disk(&'static str),
    /// From nothing: measured or chosen once.
    Fixed(&'static str),
}

macro_rules! rows {
    ($($name:ident $kind:ident $live:ident $rocksdb:literal $why:ident $text:literal;)*) => {
        /// Every setting, those first from which others follow.
        pub(crate) const ROWS: &[Row] = &[$(Row {
            name: stringify!($name),
            rocksdb: $rocksdb,
            why: Why::$why($text),
            live: rows!(@live $live),
            show: |s| <$kind as Kind<_>>::show(&s.$name),
            read: |s, text| { s.$name = <$kind as Kind<_>>::read(text)?; Ok(()) },
            copy: |from, to| to.$name = from.$name.clone(),
        },)*];

        /// A field that is missing above does not compile here.
        const _: fn(Settings) = |s| {
            let Settings { $($name: _,)* plan: _, unchecked: _, as_rocksdb: _ } = s;
        };
    };
    (@live live) => { true };
    (@live fixed) => { false };
}

rows! {
    memory_budget Bytes fixed "" Budget "what the database may take of the memory";
    compaction_threads Plain fixed "max_background_compactions" Budget
        "what it may take of the processors";
    disk_budget Bytes live "max_allowed_space" Budget "what it may take of the disk";
    create_if_missing Plain fixed "create_if_missing" Fixed "an open makes what is not there";
    error_if_exists Plain fixed "error_if_exists" Fixed "an open takes what is there";
    private_files Plain fixed "" Fixed "the umask decides who may read new files";
    memtable_bytes Bytes fixed "write_buffer_size" Memory
        "an eighth of the memory, 64 KiB to 256 MiB";
    memtable_count Plain fixed "max_write_buffer_number" Fixed
        "one takes writes while others are flushed; half of the memory together";
    max_wal_bytes Bytes fixed "max_total_wal_size" Fixed
        "0: four times what the memtables of all families may take";
    concurrent_memtable_writes Plain live "allow_concurrent_memtable_write" Fixed
        "waking a writer costs more than two cores gain by it";
    durability Plain live "sync" Fixed "a write survives a crash of the process";
    buffer_bytes Bytes fixed "compaction_readahead_size" Memory
        "a quarter of what the memtables leave";
    max_subcompactions Plain live "max_subcompactions" Fixed
        "compactions that do not meet share the threads better than parts of one";
    flush_threads Plain fixed "max_background_flushes" Threads "one for eight compactions, 1 to 4";
    policy Plain fixed "compaction_style" Threads "hybrid below four, bucket from there on";
    compaction_pri Plain live "compaction_pri" Fixed "rewrites least for most loads";
    auto_compaction Plain live "disable_auto_compactions" Fixed "compaction runs by itself";
    l0_trigger Plain live "level0_file_num_compaction_trigger" Fixed
        "rewrites little and keeps reads short";
    l0_slowdown Plain live "level0_slowdown_writes_trigger" Fixed
        "writers are slowed before reads suffer";
    l0_stop Plain live "level0_stop_writes_trigger" Fixed "the most runs a read has to look into";
    level_base_bytes Bytes live "max_bytes_for_level_base" Memory "four memtables";
    level_multiplier Plain live "max_bytes_for_level_multiplier" Fixed
        "between rewriting and space";
    dynamic_levels Plain live "level_compaction_dynamic_level_bytes" Fixed
        "bounds what overwritten values take";
    file_bytes Bytes live "target_file_size_base" Memory "one memtable, 2 to 64 MiB";
    soft_debt_bytes Bytes live "soft_pending_compaction_bytes_limit" Disk
        "an eighth of the disk budget, at most 64 GiB";
    hard_debt_bytes Bytes live "hard_pending_compaction_bytes_limit" Disk
        "a quarter of the disk budget, at most 256 GiB";
    universal_size_ratio Plain live "compaction_options_universal.size_ratio" Fixed
        "runs of equal size are merged";
    universal_min_merge_width Plain live "compaction_options_universal.min_merge_width" Fixed
        "two runs are worth merging";
    universal_max_merge_width Plain live "compaction_options_universal.max_merge_width" Fixed
        "one wide merge rewrites less than several";
    universal_incremental Plain live "compaction_options_universal.incremental" Fixed
        "large merges take little spare disk";
    max_size_amplification_percent Plain live
        "compaction_options_universal.max_size_amplification_percent" Fixed
        "three times the data's space at most";
    fifo_max_bytes Bytes live "compaction_options_fifo.max_table_files_size" Disk
        "half of the disk budget, else 1 GiB";
    fifo_allow_compaction Plain live "compaction_options_fifo.allow_compaction" Fixed
        "nothing is rewritten";
    ttl_seconds Plain live "ttl" Fixed "data does not age";
    periodic_compaction_seconds Plain live "periodic_compaction_seconds" Fixed
        "nothing is rewritten for its age";
    max_space_amp_percent Plain live "" Fixed "the policy bounds space well enough";
    deletion_window Plain fixed "table_properties_collectors" Fixed
        "deletions leave with the data they hide";
    deletion_trigger Plain fixed "table_properties_collectors" Fixed
        "so many are slow to scan over";
    deletion_ratio_percent Plain fixed "table_properties_collectors" Fixed
        "deletions leave with the data they hide";
    delayed_write_rate Bytes live "delayed_write_rate" Fixed
        "slower than compaction on any disk of today";
    background_rate Bytes live "rate_limiter_bytes_per_sec" Fixed "as fast as the disk";
    auto_tuned_rate Plain live "rate_limiter_auto_tune" Fixed "the rate is the limit";
    block_bytes Bytes fixed "block_size" Fixed "what a disk reads at once";
    format_version Plain fixed "format_version" Fixed "RocksDB reads it from 8.6 on";
    compression_upper Plain fixed "compression" Fixed "what is rewritten soon is not worth it";
    compression_lower Plain fixed "bottommost_compression" Fixed
        "costs little and halves most data";
    max_dict_bytes Plain fixed "compression_opts.max_dict_bytes" Fixed
        "blocks are compressed each by itself";
    bloom_bits Plain fixed "filter_policy" Fixed "one lookup in a hundred reads in vain";
    whole_key_filtering Plain fixed "" Fixed "look-ups of absent keys read little in vain";
    partition_bytes Plain fixed "metadata_block_size" Fixed
        "indexes and filters are in memory while tables are open";
    direct_background_io Plain fixed "use_direct_io_for_flush_and_compaction" Fixed
        "compaction does not sweep the page cache";
    direct_reads Plain fixed "use_direct_reads" Fixed "the page cache is a second cache";
    max_open_files Plain fixed "max_open_files" Fixed
        "three quarters of what the process may open";
    verify_checksums Plain fixed "verify_checksums" Fixed "damage is an error, never a value";
    event_log Plain fixed "info_log" Fixed "tells afterwards what happened";
}

/// A setting as it is in force, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EffectiveSetting {
    /// Its name, as a field of [`Settings`].
    pub name: &'static str,
    /// Its value as [`Settings::set`] takes it; for one that was left open, what is in force.
    pub value: String,
    /// True if it follows from the budgets, or is the default; false if somebody set it.
    pub derived: bool,
    /// Why it has this value.
    pub reason: String,
    /// An open database can change it.
    pub live: bool,
}

impl Row {
    pub(super) fn is_budget(&self) -> bool {
        matches!(self.why, Why::Budget(_))
    }

    /// The value in force, where it was left open.
    fn in_force(&self, s: &Settings) -> String {
        match self.name {
            "policy" => s.effective_policy().name().to_owned(),
            "buffer_bytes" => <Bytes as Kind<u64>>::show(&s.effective_buffer_bytes()),
            _ => (self.show)(s),
        }
    }

    fn reason(&self, s: &Settings, derived: &Settings) -> String {
        let of = |name: &str| format!("{name} = {}", show(name, s));
        let default = (self.show)(derived) == (self.show)(s);
        match (&self.why, default) {
            (Why::Budget(what), _) => (*what).to_owned(),
            (Why::Fixed(why), true) => format!("default: {why}"),
            (Why::Fixed(_), false) => format!("set; the default is {}", (self.show)(derived)),
            (Why::Memory(rule), true) => format!("from {}: {rule}", of("memory_budget")),
            (Why::Threads(rule), true) => format!("from {}: {rule}", of("compaction_threads")),
            (Why::Disk(rule), true) => format!("from {}: {rule}", of("disk_budget")),
            (Why::Memory(_), false) => self.instead(&of("memory_budget"), derived),
            (Why::Threads(_), false) => self.instead(&of("compaction_threads"), derived),
            (Why::Disk(_), false) => self.instead(&of("disk_budget"), derived),
        }
    }

    fn instead(&self, of: &str, derived: &Settings) -> String {
        format!("set; {of} would give {}", self.in_force(derived))
    }
}

/// The text of the setting of that name.
fn show(name: &str, s: &Settings) -> String {
    ROWS.iter().find(|row| row.name == name).map(|row| (row.show)(s)).unwrap_or_default()
}

/// The row of a name.
///
/// # Errors
/// InvalidArgument with the name that was meant, most likely.
pub(crate) fn row(name: &str) -> Result<&'static Row> {
    let spelled = name.replace('-', "_");
    if let Some(row) = ROWS.iter().find(|row| row.name == spelled) {
        return Ok(row);
    }
    let known = ROWS.iter().find(|row| row.rocksdb == spelled);
    if let Some(row) = known {
        return Err(Error::invalid(format!(
            "there is no setting `{name}`; what RocksDB calls so is `{}` here",
            row.name
        )));
    }
    let near = ROWS.iter().map(|row| (distance(&spelled, row.name), row.name)).min();
    let (_, near) = near.unwrap_or_default();
    Err(Error::invalid(format!(
        "there is no setting `{name}`; did you mean `{near}`? `lithify settings` lists all"
    )))
}

/// Letters to add, drop or change to get from one word to the other.
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut left_above = row[0];
        row[0] = i + 1;
        for (j, y) in b.bytes().enumerate() {
            let above = row[j + 1];
            let change = left_above + usize::from(x != y);
            row[j + 1] = change.min(above + 1).min(row[j] + 1);
            left_above = above;
        }
    }
    row[b.len()]
}

impl Settings {
    /// Changes one setting by its name, as on a command line. Sizes take `KiB`, `MiB`, `GiB` and
    /// `TiB`; `auto` leaves a value to the store where that is possible. A budget takes along what
    /// follows from it and was not set. Whether the whole is sound is asked afterwards
    /// ([`check`](Settings::check)).
    ///
    /// ```
    /// let mut s = lithify::Settings::default();
    /// s.set("memory_budget", "64MiB")?;
    /// assert_eq!(s.memtable_bytes, 8 << 20);
    /// let error = s.set("memtable_byte", "1MiB").unwrap_err();
    /// assert!(error.to_string().contains("did you mean `memtable_bytes`?"));
    /// # Ok::<(), lithify::Error>(())
    /// ```
    ///
    /// # Errors
    /// InvalidArgument naming what was meant, or what the setting takes.
    pub fn set(&mut self, name: &str, value: &str) -> Result<()> {
        let row = row(name)?;
        let mut changed = self.clone();
        (row.read)(&mut changed, value.trim())
            .map_err(|what| Error::invalid(format!("{}: {what}", row.name)))?;
        *self = match row.is_budget() {
            true => self.clone().with_budget(changed.budget()),
            false => changed,
        };
        Ok(())
    }

    /// The value of one setting as text.
    ///
    /// # Errors
    /// As [`set`](Settings::set) for an unknown name.
    pub fn get(&self, name: &str) -> Result<String> {
        Ok((row(name)?.show)(self))
    }

    /// Every setting as it is in force, with its reason: what it follows from, or that it was set
    /// and what it would be otherwise.
    pub fn explain(&self) -> Vec<EffectiveSetting> {
        let derived = Settings::for_budget(self.budget());
        let of_machine = Settings::for_budget(budget::Budget::default());
        let all = ROWS.iter().map(|row| {
            let base = if row.is_budget() { &of_machine } else { &derived };
            EffectiveSetting {
                name: row.name,
                value: row.in_force(self),
                derived: (row.show)(self) == (row.show)(base),
                reason: row.reason(self, &derived),
                live: row.live,
            }
        });
        all.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::{Budget, Compression, Durability, Policy};

    #[test]
    fn what_is_shown_is_read_back() {
        let mut s = Settings::for_budget(Budget { memory: 100_000_007, threads: 3, disk: Some(7) });
        s.policy = Some(Policy::BucketDf);
        s.compression_lower = Compression::Zstd(7);
        s.durability = Durability::NoWal;
        s.max_open_files = Some(99);
        let mut copy = Settings::default();
        for row in ROWS {
            copy.set(row.name, &(row.show)(&s)).unwrap();
        }
        assert_eq!(copy, s);
        assert_ne!(copy, Settings::default());
    }

    #[test]
    fn the_budget_moves_what_was_not_set() {
        let mut s = Settings::default();
        s.set("l0-trigger", "8").unwrap();
        s.set("file_bytes", "3MiB").unwrap();
        s.set("memory_budget", "64 MiB").unwrap();
        assert_eq!((s.memtable_bytes, s.file_bytes, s.l0_trigger), (8 << 20, 3 << 20, 8));
        let told = s.explain();
        let of = |name: &str| told.iter().find(|t| t.name == name).unwrap();
        assert!(of("memtable_bytes").derived && !of("file_bytes").derived);
        assert_eq!(of("file_bytes").reason, "set; memory_budget = 64MiB would give 8MiB");
        assert_eq!(of("l0_trigger").reason, "set; the default is 4");
        assert!(of("memtable_bytes").reason.starts_with("from memory_budget = 64MiB:"));
        assert_eq!(of("policy").value, s.effective_policy().name());
    }

    #[test]
    fn every_budget_gives_sound_settings() {
        for memory in [2 << 20, 3 << 20, 16 << 20, 1 << 30, 1 << 40] {
            for threads in [1, 2, 8, 64, 256] {
                for disk in [None, Some(64 << 30)] {
                    let s = Settings::for_budget(Budget { memory, threads, disk });
                    s.check().unwrap();
                }
            }
        }
    }

    #[test]
    fn an_unknown_name_is_told_the_one_that_was_meant() {
        let told = |name: &str| Settings::default().set(name, "1").unwrap_err().to_string();
        assert!(told("bloom_bit").contains("did you mean `bloom_bits`?"));
        assert!(told("l0_stops").contains("did you mean `l0_stop`?"));
        assert!(told("write_buffer_size").contains("`memtable_bytes` here"));
        let mut s = Settings::default();
        let wrong = s.set("policy", "levelled").unwrap_err().to_string();
        assert!(wrong.contains("policy: ") && wrong.contains("leveled"), "{wrong}");
        let wrong = s.set("memtable_bytes", "64 parsecs").unwrap_err().to_string();
        assert!(wrong.contains("KiB"), "{wrong}");
        assert_eq!(s, Settings::default(), "what failed changed nothing");
    }
}
