//! `backup`: copies of a database that share their tables; to make, list, check, restore and thin out.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail};
use clap::Subcommand;
use comfy_table::{CellAlignment, Table, TableStyle};
use indicatif::HumanDuration;
use lithify::{BackupSummary, Backups};
use lithify_base::shown_path;
use lithify_env::PosixFs;
use lithify_lsm::picture::readable;
use lithify_store::backup::BackupDir;
use serde_json::json;

use crate::engines::{self, EngineArg};
use crate::failure::{stuck, usage_with};
use crate::open::{DbArg, no_file};
use crate::output;
use crate::progress::Progress;
use crate::text::quoted;
use lithify_watch::tree::dir_of;

const EXAMPLES: &str = "\
Examples:
  lithify backup create --db fruit backups     tables that are there already are not copied
  lithify backup list backups
  lithify backup verify backups                every byte of the newest
  lithify backup restore backups fruit-again   the newest, or --id N
  lithify backup purge backups --keep 7        or --all, which deletes every one

The directory of backups must be outside of the database's. While a program has the database open,
only that program can back it up: `Backups::open(\"backups\")?.create(&db, &mut |_| {})?`.";

/// `lithify backup`.
#[derive(Subcommand)]
#[command(after_help = EXAMPLES)]
pub(crate) enum Backup {
    /// Back up a database as it is now
    Create {
        #[command(flatten)]
        db: DbArg,
        #[command(flatten)]
        place: Place,
        #[command(flatten)]
        engine: EngineArg,
    },
    /// List the backups
    List {
        #[command(flatten)]
        place: Place,
        /// Print a JSON array
        #[arg(long)]
        json: bool,
    },
    /// Read a backup and check every byte
    Verify {
        #[command(flatten)]
        place: Place,
        #[command(flatten)]
        which: Which,
    },
    /// Make a database of a backup
    Restore {
        #[command(flatten)]
        place: Place,
        /// Directory of the new database: absent or empty
        #[arg(value_name = "NEW-DIR")]
        target: PathBuf,
        #[command(flatten)]
        which: Which,
    },
    /// Delete all but the newest backups
    Purge {
        #[command(flatten)]
        place: Place,
        /// How many to keep, at least 1
        #[arg(
            long,
            value_name = "N",
            required_unless_present = "all",
            value_parser = crate::text::number
        )]
        keep: Option<u64>,
        /// Delete every backup
        #[arg(long, conflicts_with = "keep")]
        all: bool,
    },
}

/// Where the backups are.
#[derive(clap::Args)]
pub(crate) struct Place {
    /// Directory of the backups
    #[arg(value_name = "BACKUPS")]
    dir: PathBuf,
}

impl Place {
    fn is_no_file(&self) -> Result<()> {
        no_file(&self.dir, "backups are in a directory; name that")
    }
    fn open(&self) -> Result<Backups> {
        self.is_no_file()?;
        if !self.dir.join("meta").is_dir() {
            return stuck(
                format!("{} holds no backups", shown_path(&self.dir)),
                format!(
                    "`lithify backup create --db DIR {}` makes one there",
                    shown_path(&self.dir)
                ),
            );
        }
        Ok(Backups::open(&self.dir)?)
    }
}

/// `--id N`.
#[derive(clap::Args)]
pub(crate) struct Which {
    /// Number of the backup; without, the newest
    #[arg(long, value_name = "N", value_parser = crate::text::number)]
    id: Option<u64>,
}

impl Which {
    fn of(&self, backups: &Backups) -> Result<u64> {
        let Some(id) = self.id else {
            let all = backups.list()?;
            let newest = all.last().map(|backup| backup.id);
            return newest.context("there is no backup yet; `lithify backup create` makes one");
        };
        // A list that is damaged keeps no other backup from being used.
        match backups.list() {
            Ok(all) if !all.iter().any(|backup| backup.id == id) => {
                let there: Vec<String> = all.iter().map(|backup| backup.id.to_string()).collect();
                let way = match &there[..] {
                    [] => "there is none yet; `lithify backup create` makes one".to_owned(),
                    there => {
                        format!("there are {}; `lithify backup list` says more", there.join(", "))
                    }
                };
                stuck(format!("there is no backup {id}"), way)
            }
            _ => Ok(id),
        }
    }
}

impl Backup {
    pub(crate) fn run(self) -> Result<()> {
        match self {
            Backup::Create { db, place, engine } => create(&db, &place, &engine),
            Backup::List { place, json } => list(&place.open()?.list()?, json),
            Backup::Verify { place, which } => verify(&place.open()?, &which),
            Backup::Restore { place, target, which } => {
                let backups = place.open()?;
                let (id, bar) = (which.of(&backups)?, Progress::bytes());
                let done = backups.restore(id, &target, &mut |p| bar.show(p.done, p.total))?;
                drop(bar);
                let from = done.id;
                output::line(&format!("{} is a database of backup {from} now", shown_path(&target)))
            }
            Backup::Purge { place, keep, .. } => {
                if keep == Some(0) {
                    return usage_with(
                        "--keep 0 would delete every backup",
                        "if that is meant, say --all",
                    );
                }
                let gone = place
                    .open()?
                    .purge(keep.map_or(0, |keep| usize::try_from(keep).unwrap_or(usize::MAX)))?;
                output::line(&format!("{} deleted", output::count(gone.len() as u64, "backup")))
            }
        }
    }
}

fn create(db: &DbArg, place: &Place, engine: &EngineArg) -> Result<()> {
    place.is_no_file()?;
    // Before the open, which writes.
    db.is_there()?;
    let backups = BackupDir::open(Arc::new(PosixFs::new()), &place.dir)?;
    backups.check_place(&dir_of(&db.dir()?)?)?;
    drop(backups);
    let line = format!("Backups::open({})?.create(&db, &mut |_| {{}})?", quoted(&place.dir));
    let db = db.for_copying(&line, engine)?;
    let backups = Backups::open(&place.dir)?;
    let bar = Progress::bytes();
    let made = backups.create(&db, &mut |p| bar.show(p.done, p.total))?;
    drop(bar);
    engines::close(db)?;
    output::line(&format!(
        "backup {}: {}, {} of them copied",
        made.id,
        readable(made.bytes),
        readable(made.copied)
    ))
}

fn list(all: &[BackupSummary], as_json: bool) -> Result<()> {
    if as_json {
        let all: Vec<_> = all
            .iter()
            .map(|b| {
                json!({
                    "id": b.id, "unix_seconds": b.unix_seconds, "tables": b.tables,
                    "bytes": b.bytes, "last_sequence": b.last_sequence,
                })
            })
            .collect();
        return output::json(&json!(all));
    }
    let mut table = Table::new();
    table.load_style(TableStyle::new());
    table.set_header(["backup", "made", "tables", "bytes"]);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    for b in all {
        let age = HumanDuration(now.saturating_sub(Duration::from_secs(b.unix_seconds)));
        let (id, made) = (b.id.to_string(), format!("{age} ago"));
        table.add_row([id, made, b.tables.to_string(), readable(b.bytes)]);
    }
    for column in table.column_iter_mut() {
        column.set_cell_alignment(CellAlignment::Right);
    }
    output::line(&table.to_string())
}

fn verify(backups: &Backups, which: &Which) -> Result<()> {
    let id = which.of(backups)?;
    let bar = Progress::bytes();
    let damage = backups.verify(id, &mut |p| bar.show(p.done, p.total))?;
    drop(bar);
    // Also if the reader of the list goes away: damage decides the exit code.
    let printed = damage.iter().try_for_each(|error| output::line(&error.to_string()));
    match damage.len() {
        0 => printed.and_then(|()| output::line(&format!("backup {id} is good"))),
        n => bail!("backup {id} is damaged: {}", output::count(n as u64, "file")),
    }
}
