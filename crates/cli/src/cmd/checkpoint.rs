//! `checkpoint`: a second, independent database of the present state.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Result;
use lithify_env::PosixFs;
use lithify_files::Dir;

use crate::engines::{self, EngineArg};
use crate::open::DbArg;
use crate::output;
use crate::text::quoted;
use lithify_base::shown_path;
use lithify_watch::tree::dir_of;

const EXAMPLES: &str = "\
Examples:
  lithify checkpoint --db fruit fruit-monday
  lithify verify --db fruit-monday

Tables are hard links where the file system can, so a checkpoint on the same disk is quick and
takes no space until the two databases differ. While a program has the database open, only that
program can make one: `db.checkpoint(\"fruit-monday\")?`.";

/// `lithify checkpoint`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Checkpoint {
    #[command(flatten)]
    db: DbArg,
    /// Directory of the new database; it must not exist yet
    #[arg(value_name = "NEW-DIR")]
    target: PathBuf,
    #[command(flatten)]
    engine: EngineArg,
}

impl Checkpoint {
    pub(crate) fn run(self) -> Result<()> {
        // Before the open, which writes.
        self.db.is_there()?;
        let target = Dir::new(Arc::new(PosixFs::new()), &self.target);
        target.check_target(&dir_of(&self.db.dir()?)?, "a checkpoint")?;
        let line = format!("db.checkpoint({})?", quoted(&self.target));
        let db = self.db.for_copying(&line, &self.engine)?;
        db.checkpoint(&self.target)?;
        engines::close(db)?;
        output::line(&format!("{} is a database of its own now", shown_path(&self.target)))
    }
}
