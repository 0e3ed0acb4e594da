//! The settings that a directory was last opened with, out of its newest OPTIONS file: exactly, if
//! it was written here, and as far as the names mean the same, if RocksDB wrote it.

use std::path::Path;

use lithify_base::{Error, Result};
use lithify_env::PosixFs;
use lithify_env::sync::Arc;
use lithify_format::files::FileName;
use lithify_format::options::OptionsFile;
use lithify_store::dir::Dir;

use super::table::ROWS;
use super::{CompactionPri, Settings};

impl Settings {
    /// The settings that the database in `path` was last opened with or changed to, and the name of
    /// the file that says so; `None` if there is none. They need not be sound on this machine: ask
    /// [`check`](Settings::check). An open does not look at them.
    ///
    /// # Errors
    /// Io; Corruption if the file is no OPTIONS file; InvalidArgument if it has a value that this
    /// version does not take.
    pub fn stored_in(path: impl AsRef<Path>) -> Result<Option<(Settings, String)>> {
        let dir = Dir::new(Arc::new(PosixFs::new()), path.as_ref());
        let Some((number, text)) = dir.read_options()? else { return Ok(None) };
        let name = FileName::Options(number);
        let within = |e: Error| e.in_file(dir.path_of(name).display());
        let file = OptionsFile::parse(&text).map_err(within)?;
        let settings = match file.own.is_empty() {
            true => of_rocksdb(&file),
            false => of_ours(&file).map_err(within)?,
        };
        Ok(Some((settings, name.to_string())))
    }
}

/// Names that a later version wrote down are passed over.
fn of_ours(file: &OptionsFile) -> Result<Settings> {
    let mut settings = Settings::default();
    // The budgets come first: they move what follows from them.
    for row in ROWS {
        if let Some(value) = file.own.get(row.name) {
            settings.set(row.name, value)?;
        }
    }
    Ok(settings)
}

fn of_rocksdb(file: &OptionsFile) -> Settings {
    let mut s = Settings::default();
    let Some(family) = file.families.first().map(|f| &f.options) else { return s };
    let number = |name: &str| family.get(name).and_then(|v| v.parse::<f64>().ok());
    let long = |name: &str, old: u64| number(name).map_or(old, |n| n as u64);
    let short = |name: &str, old: u32| number(name).map_or(old, |n| n as u32);
    let flag = |name: &str, old: bool| family.get(name).map_or(old, |v| v == "true");
    s.l0_trigger = short("level0_file_num_compaction_trigger", s.l0_trigger);
    s.l0_slowdown = short("level0_slowdown_writes_trigger", s.l0_slowdown);
    s.l0_stop = short("level0_stop_writes_trigger", s.l0_stop);
    s.memtable_bytes = long("write_buffer_size", s.memtable_bytes);
    s.memtable_count = short("max_write_buffer_number", s.memtable_count);
    s.level_base_bytes = long("max_bytes_for_level_base", s.level_base_bytes);
    s.level_multiplier = short("max_bytes_for_level_multiplier", s.level_multiplier);
    s.dynamic_levels = flag("level_compaction_dynamic_level_bytes", s.dynamic_levels);
    s.file_bytes = long("target_file_size_base", s.file_bytes);
    s.soft_debt_bytes = long("soft_pending_compaction_bytes_limit", s.soft_debt_bytes);
    s.hard_debt_bytes = long("hard_pending_compaction_bytes_limit", s.hard_debt_bytes);
    s.auto_compaction = !flag("disable_auto_compactions", !s.auto_compaction);
    let jobs = file.db.get("max_background_jobs").and_then(|v| v.parse::<u32>().ok());
    s.compaction_threads = jobs.map_or(s.compaction_threads, |n| n.saturating_sub(1).max(1));
    let named =
        |p: &CompactionPri| family.get("compaction_pri").is_some_and(|v| v == p.rocksdb_name());
    s.compaction_pri = CompactionPri::ALL.into_iter().find(named).unwrap_or_default();
    let parts = file.db.get("max_subcompactions").and_then(|v| v.parse().ok());
    s.max_subcompactions = parts.unwrap_or(s.max_subcompactions);
    let memtables = s.memtable_bytes.saturating_mul(s.memtable_count.into());
    s.memory_budget = s.memory_budget.max(memtables.saturating_add(64 << 20));
    s
}
