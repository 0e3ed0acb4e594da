//! `checkpoint`: a second, independent database of the present state.

use std::path::PathBuf;

use anyhow::Result;

use crate::open::DbArg;
use crate::output;
use lithify_base::shown_path;

const EXAMPLES: &str = "\
Examples:
  lithify checkpoint --db fruit fruit-monday
  lithify verify --db fruit-monday

Tables are hard links where the file system can, so a checkpoint on the same disk is quick and
takes no space until the two databases differ.";

/// `lithify checkpoint`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Checkpoint {
    #[command(flatten)]
    db: DbArg,
    /// Directory of the new database; it must not exist yet
    #[arg(value_name = "NEW-DIR")]
    target: PathBuf,
}

impl Checkpoint {
    pub(crate) fn run(self) -> Result<()> {
        let db = self.db.for_writing()?;
        db.checkpoint(&self.target)?;
        db.close()?;
        output::line(&format!("{} is a database of its own now", shown_path(&self.target)))
    }
}
