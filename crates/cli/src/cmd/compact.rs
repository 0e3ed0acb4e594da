//! `compact`: a range of keys down to one run, or a directory into a form that RocksDB opens.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Instant;

use anyhow::Result;
use lithify::CompactOptions;
use lithify_lsm::picture::readable;
use serde_json::json;

use crate::engines::{self, EngineArg};
use crate::open::{DbArg, OperatorArg, SetArg, TreeArg};
use crate::output;
use crate::text::FormArgs;

const EXAMPLES: &str = "\
Examples:
  lithify compact --db fruit
  lithify compact --db fruit --from a --to c      only keys from a on and below c
  lithify compact --db fruit --rewrite --set compression_lower=zstd:3    all of it anew
  lithify compact --settle fruit                  leave `fruit` as a directory that RocksDB opens";

/// `lithify compact`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Compact {
    /// Directory of the database
    #[arg(long, value_name = "DIR", required_unless_present = "settle")]
    db: Option<PathBuf>,
    /// Compact only what keeps RocksDB from opening this directory: stacked runs below the topmost
    /// level, and tables of LevelDB
    #[arg(long, value_name = "DIR", conflicts_with_all = ["db", "from", "to"])]
    settle: Option<PathBuf>,
    /// Column family, if not the default one
    #[arg(long, value_name = "NAME", conflicts_with = "settle")]
    family: Option<String>,
    #[command(flatten)]
    set: SetArg,
    #[command(flatten)]
    operator: OperatorArg,
    /// Only keys from this one on
    #[arg(long, value_name = "KEY")]
    from: Option<OsString>,
    /// Only keys below this one
    #[arg(long, value_name = "KEY")]
    to: Option<OsString>,
    /// Rewrite what is one run already, too, so that other settings take effect on all of it
    #[arg(long, conflicts_with = "settle")]
    rewrite: bool,
    /// Print a JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    engine: EngineArg,
    #[command(flatten)]
    form: FormArgs,
}

impl Compact {
    pub(crate) fn run(self) -> Result<()> {
        let form = self.form.form();
        let bound = |key: &Option<OsString>| key.as_ref().map(|k| form.parse(k)).transpose();
        let (from, to) = (bound(&self.from)?, bound(&self.to)?);
        let dir = self.settle.clone().or(self.db).expect("clap asks for one");
        let db = DbArg { db: dir, set: self.set, operator: self.operator };
        let db = TreeArg { db, family: self.family }.for_writing_on(self.engine.engine()?)?;
        let (before, start) = (db.stats(), Instant::now());
        match self.settle {
            Some(_) => db.settle()?,
            None => {
                let options = CompactOptions { rewrite: self.rewrite, ..CompactOptions::default() };
                db.compact_range_opt(from.as_deref(), to.as_deref(), &options)?;
            }
        }
        let (after, time) = (db.stats(), start.elapsed());
        let picture = db.picture();
        db.close()?;
        let read = after.counts.compaction_read_bytes;
        let written = after.counts.compaction_write_bytes;
        if self.json {
            return output::json(&json!({
                "bytes_before": before.disk_bytes,
                "bytes_after": after.disk_bytes,
                "compactions": after.counts.compactions,
                "moves": after.counts.trivial_moves,
                "read_bytes": read,
                "written_bytes": written,
                "seconds": time.as_secs_f64(),
                "engines": engines::json(&after.engines),
            }));
        }
        output::line(&format!(
            "{} before, {} after; read {}, wrote {} in {:.2} s ({})",
            readable(before.disk_bytes),
            readable(after.disk_bytes),
            readable(read),
            readable(written),
            time.as_secs_f64(),
            output::rate(read, time),
        ))?;
        engines::lines(&after.engines).iter().try_for_each(|line| output::line(line))?;
        output::line(picture.trim_end())
    }
}
