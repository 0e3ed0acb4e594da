//! `family`: the column families of a database; to list, make and drop.

use std::sync::Arc;

use anyhow::Result;
use clap::Subcommand;
use lithify::{Builder, ColumnFamilyOptions, ReverseBytewise, Settings};
use serde_json::json;

use crate::engines::{self, EngineArg};
use crate::failure::usage_with;
use crate::open::{CreateArg, DbArg, DirArg};
use crate::output;
use crate::text::escape;

const EXAMPLES: &str = "\
Examples:
  lithify family create --db fruit trees             a second set of keys, with a tree of its own
  lithify put --db fruit --family trees apple malus
  lithify scan --db fruit --family trees
  lithify family list fruit
  lithify family drop --db fruit trees               with all its keys

Families share the log, so that a program's batch over several is written whole or not at all; each
has settings, compactions and stalls of its own. `default` is always there.";

/// `lithify family`.
#[derive(Subcommand)]
#[command(after_help = EXAMPLES)]
pub(crate) enum Family {
    /// Print the names, `default` first, the others by age; also while the database is in use
    List {
        #[command(flatten)]
        dir: DirArg,
        /// Print a JSON array
        #[arg(long)]
        json: bool,
    },
    /// Make a column family, and the database if there is none
    Create {
        #[command(flatten)]
        db: DbArg,
        /// Name of the new family
        name: String,
        /// Keys in descending order; the family remembers it
        #[arg(long)]
        reverse: bool,
        #[command(flatten)]
        create: CreateArg,
        #[command(flatten)]
        engine: EngineArg,
    },
    /// Drop a column family with all its keys; only a checkpoint or a backup brings them back
    Drop {
        #[command(flatten)]
        db: DbArg,
        /// Name of the family
        name: String,
        #[command(flatten)]
        engine: EngineArg,
    },
}

impl Family {
    pub(crate) fn run(self) -> Result<()> {
        match self {
            Family::List { dir, json: as_json } => {
                let names = Builder::new(Settings::default()).list_column_families(dir.dir()?)?;
                match as_json {
                    true => output::json(&json!(names)),
                    false => {
                        names.iter().try_for_each(|name| output::line(&escape(name.as_bytes())))
                    }
                }
            }
            Family::Create { db, name, reverse, create, engine } => {
                let there = Builder::new(Settings::default()).list_column_families(db.dir()?);
                if there.is_ok_and(|names| names.contains(&name)) {
                    let shown = escape(name.as_bytes());
                    return usage_with(
                        format!("the column family `{shown}` is there"),
                        format!("`--family {shown}` works on it"),
                    );
                }
                let db = db.for_filling(&create, &engine)?;
                let options = ColumnFamilyOptions::new();
                let options = match reverse {
                    true => options.comparator(Arc::new(ReverseBytewise)),
                    false => options,
                };
                db.create_column_family(&name, options)?;
                engines::close(db)
            }
            Family::Drop { db, name, engine } => {
                if name == "default" {
                    return usage_with(
                        "the column family `default` is always there",
                        "`lithify delete --from KEY --to KEY` deletes what it has",
                    );
                }
                db.has_family(&name)?;
                let db = db.for_writing(&engine)?;
                db.drop_column_family(&name)?;
                engines::close(db)
            }
        }
    }
}
