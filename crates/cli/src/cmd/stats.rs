//! `stats`: what a database holds and where, as it lies on disk.

use std::path::{Path, PathBuf};

use anyhow::Result;
use comfy_table::{CellAlignment, Table, TableStyle};
use lithify_base::FileId;
use lithify_files::wal::end_of_log;
use lithify_journal::files::FileName;
use lithify_lsm::picture::readable;
use lithify_watch::tree::dir_of;
use serde_json::json;

use crate::open::TreeArg;
use crate::output;

const EXAMPLES: &str = "\
Examples:
  lithify stats --db fruit
  lithify stats --db fruit --json | jq .disk_bytes

The database is opened for reading only, so counters of a running process are not here; see its
event log (the file EVENTS) for those.";

/// `lithify stats`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Stats {
    /// Directory of the database, in place of --db
    #[arg(value_name = "DIR", conflicts_with = "db")]
    dir: Option<PathBuf>,
    #[command(flatten)]
    db: TreeArg,
    /// Print a JSON object
    #[arg(long)]
    json: bool,
}

impl Stats {
    pub(crate) fn run(self) -> Result<()> {
        let db = self.db.at(self.dir);
        let logs = Logs::of(&db.db.dir()?)?;
        let stats = db.for_reading()?.stats();
        if self.json { as_json(&stats, &logs) } else { as_table(&stats, &logs) }
    }
}

/// The logs that are there, and their bytes. Those that a table has the writes of already go with the next open.
struct Logs {
    count: u64,
    bytes: u64,
}

impl Logs {
    fn of(dir: &Path) -> Result<Logs> {
        let mut logs = Logs { count: 0, bytes: 0 };
        // Of a directory that is not there the open says so.
        let dir = dir_of(dir)?;
        for entry in dir.list_if_there()?.unwrap_or_default() {
            if let Some(FileName::Wal(number)) = entry.file {
                logs.count += 1;
                // A log may be longer than what was written to it.
                logs.bytes += end_of_log(&dir, FileId(number))?;
            }
        }
        Ok(logs)
    }
}

fn as_json(stats: &lithify::Stats, logs: &Logs) -> Result<()> {
    let levels: Vec<_> = stats
        .levels
        .iter()
        .map(|l| json!({ "level": l.level, "runs": l.runs, "files": l.files, "bytes": l.bytes }))
        .collect();
    output::json(&json!({
        "levels": levels,
        "disk_bytes": stats.disk_bytes,
        "logs": logs.count,
        "log_bytes": logs.bytes,
        "debt_bytes": stats.debt_bytes,
        "writes_in_no_table": stats.memtable_entries,
        "table_memory_bytes": stats.table_memory,
        "last_sequence": stats.last_sequence,
    }))
}

fn as_table(stats: &lithify::Stats, logs: &Logs) -> Result<()> {
    let mut table = Table::new();
    table.load_style(TableStyle::new());
    table.set_header(["level", "runs", "files", "bytes"]);
    for l in stats.levels.iter().filter(|l| l.files > 0) {
        table.add_row([
            format!("L{}", l.level),
            l.runs.to_string(),
            l.files.to_string(),
            readable(l.bytes),
        ]);
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    if stats.disk_bytes > 0 {
        output::line(&table.to_string())?;
    }
    for (what, figure) in [
        ("tables on disk", readable(stats.disk_bytes)),
        ("logs", format!("{}, {}", output::count(logs.count, "file"), readable(logs.bytes))),
        ("compaction debt", readable(stats.debt_bytes)),
        ("writes not yet in tables", output::grouped(stats.memtable_entries)),
        ("last sequence number", stats.last_sequence.to_string()),
    ] {
        output::line(&format!("{what:<26} {figure}"))?;
    }
    Ok(())
}
