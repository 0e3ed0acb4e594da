//! `prepared`: transactions that were prepared and are neither committed nor rolled back; to list and to end.

use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::Result;
use clap::Subcommand;
use lithify::{Db, Transaction};
use serde_json::json;

use crate::engines::{self, EngineArg};
use crate::failure::usage_with;
use crate::open::DbArg;
use crate::output;
use crate::text::{Form, escape};

const EXAMPLES: &str = "\
Examples:
  lithify prepared list fruit                      names, and how many writes each would make
  lithify prepared commit --db fruit order-17      its writes are visible from now on
  lithify prepared rollback --db fruit order-18    they never will be

A transaction is prepared as a part of a decision over several databases. The program that makes the
decision ends it; end it here only if that program is gone and you know what it decided. Until then
its keys are locked, and no log from its own on is deleted.";

/// `lithify prepared`.
#[derive(Subcommand)]
#[command(after_help = EXAMPLES)]
pub(crate) enum Prepared {
    /// Print the names and how many writes each would make; also while the database is in use
    List {
        #[command(flatten)]
        db: DbArg,
        /// Directory of the database, in place of --db
        #[arg(value_name = "DIR", conflicts_with = "db")]
        dir: Option<PathBuf>,
        /// Print a JSON array
        #[arg(long)]
        json: bool,
    },
    /// Commit one
    Commit(End),
    /// Roll one back: nothing of it will ever be visible
    Rollback(End),
}

/// Which one is ended.
#[derive(clap::Args)]
pub(crate) struct End {
    #[command(flatten)]
    db: DbArg,
    /// Name that it was prepared under
    name: OsString,
    #[command(flatten)]
    engine: EngineArg,
}

impl Prepared {
    pub(crate) fn run(self) -> Result<()> {
        match self {
            Prepared::List { db, dir, json } => list(&db.at(dir).for_reading()?, json),
            Prepared::Commit(end) => end.run(Transaction::commit),
            Prepared::Rollback(end) => end.run(|mut txn| txn.rollback()),
        }
    }
}

fn list(db: &Db, as_json: bool) -> Result<()> {
    let all = db.prepared_transactions()?;
    let name = |txn: &Transaction| escape(txn.name().unwrap_or_default());
    if as_json {
        let all = all.iter().map(|txn| json!({"name": name(txn), "writes": txn.len()}));
        return output::json(&all.collect());
    }
    all.iter().try_for_each(|txn| output::line(&format!("{}\t{} writes", name(txn), txn.len())))
}

impl End {
    fn run(self, end: impl Fn(Transaction) -> lithify::Result<()>) -> Result<()> {
        let name = Form::Escaped.parse(&self.name)?;
        let is_it = |txn: &Transaction| txn.name() == Some(&name[..]);
        // Before the open, which writes.
        if !self.db.for_reading()?.prepared_transactions()?.iter().any(is_it) {
            return usage_with(
                format!("no transaction is prepared as `{}`", escape(&name)),
                "`lithify prepared list` has those that are",
            );
        }
        let db = self.db.for_writing(&self.engine)?;
        db.prepared_transactions()?.into_iter().filter(is_it).try_for_each(end)?;
        engines::close(db)
    }
}
