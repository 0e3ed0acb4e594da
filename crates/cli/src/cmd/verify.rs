//! `verify`: every table byte by byte, then the whole database through the reader that users get,
//! logs included.
//!
//! Goes on after damage, so that one run lists all of it. A table that a running process deleted
//! meanwhile is no damage: the manifest is asked again before one is reported.

use std::sync::Arc;

use anyhow::{Result, bail};
use indicatif::{ProgressBar, ProgressStyle};
use lithify::ReadOptions;
use lithify_base::{ComparatorRef, Error, FileId};
use lithify_env::OpenOpts;
use lithify_lsm::FileRef;
use lithify_lsm::picture::readable;
use lithify_store::Dir;
use lithify_store::manifest::family_version;
use lithify_store::sst::verify::verify;
use lithify_store::sst::{OpenTable, TableReader};
use serde_json::json;

use super::picture::{dir_of, order_named, read};
use crate::open::DbArg;
use crate::output;

const EXAMPLES: &str = "\
Examples:
  lithify verify --db fruit
  lithify verify --db fruit --json

Checked: the manifest; of every table each block's sum, the order of entries, index, filter and
counts; the logs; and that a scan from first to last key succeeds. Exit code 1 if anything is wrong;
all damage is listed, nothing is changed.";

/// `lithify verify`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Verify {
    #[command(flatten)]
    db: DbArg,
    /// Print a JSON object
    #[arg(long)]
    json: bool,
}

/// What was found.
#[derive(Default)]
struct Findings {
    tables: u64,
    blocks: u64,
    entries: u64,
    bytes: u64,
    keys: u64,
    damage: Vec<Error>,
}

impl Verify {
    pub(crate) fn run(self) -> Result<()> {
        let mut found = Findings::default();
        self.tables(&mut found)?;
        if found.damage.is_empty()
            && let Err(error) = self.scan(&mut found)
        {
            found.damage.push(error);
        }
        if self.json {
            let damage: Vec<_> = found.damage.iter().map(ToString::to_string).collect();
            output::json(&json!({
                "good": damage.is_empty(),
                "tables": found.tables,
                "blocks": found.blocks,
                "entries": found.entries,
                "bytes": found.bytes,
                "keys": found.keys,
                "damage": damage,
            }))?;
        } else {
            found.print()?;
        }
        match found.damage.len() {
            0 => Ok(()),
            1 => bail!("1 fault in {}", self.db.db.display()),
            n => bail!("{n} faults in {}", self.db.db.display()),
        }
    }

    /// Checks each table that the manifest names.
    fn tables(&self, found: &mut Findings) -> Result<()> {
        let dir = dir_of(&self.db.db);
        for (file, order) in self.files()? {
            match check(&dir, &file, &order, found) {
                Ok(()) => {}
                Err(_) if !self.is_live(file.id)? => {}
                Err(error) => found.damage.push(error),
            }
        }
        Ok(())
    }

    fn files(&self) -> Result<Vec<(FileRef, ComparatorRef)>> {
        let recovered = read(&self.db.db)?;
        let mut files = Vec::new();
        for (&cf, family) in &recovered.state.families {
            let order = order_named(family.comparator.as_deref())?;
            let version = family_version(&recovered.state, cf, order.clone())?;
            files.extend(version.files().map(|f| (f.clone(), order.clone())));
        }
        Ok(files)
    }

    fn is_live(&self, id: FileId) -> Result<bool> {
        Ok(self.files()?.iter().any(|(f, _)| f.id == id))
    }

    /// Reads everything as a user would.
    fn scan(&self, found: &mut Findings) -> lithify::Result<()> {
        let db = lithify::Db::open_read_only(&self.db.db, lithify::Settings::default())?;
        let options = ReadOptions { skip_cache_fill: true, ..ReadOptions::default() };
        let mut iter = db.iter_opt(&options)?;
        let bar = progress("keys");
        iter.seek_to_first();
        while iter.valid() {
            found.keys += 1;
            if found.keys.is_multiple_of(1 << 16) {
                bar.set_position(found.keys);
            }
            iter.next();
        }
        bar.finish_and_clear();
        iter.status()
    }
}

fn check(
    dir: &Dir,
    file: &FileRef,
    order: &ComparatorRef,
    found: &mut Findings,
) -> lithify::Result<()> {
    let (name, opened) = dir.open_table(file.id.0, OpenOpts::read())?;
    let spec = OpenTable {
        bytes: Some(file.bytes),
        base_context: file.base_context,
        largest_seq: Some(file.seqs.1),
        tail_bytes: file.tail_bytes,
        ..OpenTable::new(opened, dir.path_of(name).display().to_string(), order.clone())
    };
    let table: Arc<TableReader> = TableReader::open(spec)?;
    let checked = verify(&table)?;
    found.tables += 1;
    found.blocks += checked.blocks;
    found.entries += checked.entries;
    found.bytes += table.file_bytes();
    Ok(())
}

impl Findings {
    fn print(&self) -> Result<()> {
        for error in &self.damage {
            output::line(&format!("damaged: {error}"))?;
        }
        output::line(&format!(
            "{} good: {}, {}, {}",
            output::count(self.tables, "table"),
            output::count(self.blocks, "block"),
            output::count(self.entries, "entry"),
            readable(self.bytes),
        ))?;
        if self.damage.is_empty() {
            output::line(&format!("{} found by a scan", output::count(self.keys, "key")))?;
        }
        Ok(())
    }
}

/// A counter on a terminal; nothing elsewhere.
fn progress(what: &'static str) -> ProgressBar {
    let style = ProgressStyle::with_template("{spinner} {human_pos} {msg}, {per_sec}");
    let bar = ProgressBar::new_spinner().with_message(what);
    match style {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}
