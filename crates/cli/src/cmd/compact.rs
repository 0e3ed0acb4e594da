//! `compact`: a range of keys down to one run, or a directory into a form that RocksDB opens.

mod tables;

use std::ffi::OsString;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Result;
use lithify::{CompactOptions, Db, Stats};
use lithify_base::shown_path;
use lithify_files::Dir;
use lithify_lsm::picture::readable;
use serde_json::json;

use crate::engines::{self, EngineArg};
use crate::failure::stuck;
use crate::open::{DbArg, DirArg, OperatorArg, SetArg, TreeArg, check_range};
use crate::output;
use crate::text::FormArgs;
use tables::{OtherCodec, Release};

const EXAMPLES: &str = "\
Examples:
  lithify compact --db fruit
  lithify compact --db fruit --from a --to c      only keys from a on and below c
  lithify compact --db fruit --rewrite --set compression_lower=zstd:3    all of it anew
  lithify compact --settle fruit                  leave `fruit` as a directory that RocksDB opens
  lithify compact --settle fruit --for rocksdb-7  one that this release opens, too

Settling says which releases open the result: RocksDB 8.6 and later those of the default format 6, RocksDB
6.6 and later those of format 5. With --for an older one, column families with younger tables are
rewritten in format 5, which later opens go on with.";

/// `lithify compact`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Compact {
    #[command(flatten)]
    dir: DirArg,
    /// Compact only what keeps RocksDB from opening the directory: stacked runs below the topmost
    /// level, and tables of LevelDB
    #[arg(long, conflicts_with_all = ["from", "to"])]
    settle: bool,
    /// Rewrite what this release of RocksDB does not open, such as rocksdb-7 or rocksdb-8.5
    #[arg(long = "for", value_name = "RELEASE", requires = "settle", value_parser = tables::release)]
    release: Option<Release>,
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
        let dir = self.dir.dir()?;
        let dirs = self.operator.dirs.clone();
        let mut set = self.set;
        // Before the open, which writes what the log holds to a table.
        set.prefer(self.release.map(|release| format!("format_version={}", release.format())));
        let younger = match self.release {
            Some(release) => {
                tables::younger(&dirs.attached(&dir)?, release.format()).unwrap_or_default()
            }
            None => Vec::new(),
        };
        let db = DbArg { db: Some(dir.clone()), set, operator: self.operator };
        let family = self.family.clone().unwrap_or_else(|| "default".to_owned());
        let db = TreeArg { db, family: self.family };
        if let (Some(from), Some(to)) = (&from, &to) {
            check_range(&db.for_reading()?, from, to)?;
        }
        let db = db.for_writing(&self.engine)?;
        let (before, start) = (db.stats(), Instant::now());
        match self.settle {
            true => settle(&db, &younger)?,
            false => {
                let options = CompactOptions { rewrite: self.rewrite, ..CompactOptions::default() };
                db.compact_range_opt(from.as_deref(), to.as_deref(), &options)?;
            }
        }
        let done = Done { before: before.disk_bytes, after: db.stats(), time: start.elapsed() };
        let (picture, wanted) = (db.picture(), db.settings().compression_lower);
        db.close()?;
        let place = dirs.attached(&dir)?;
        let left = match self.settle {
            true => Left::settled(&place, self.release)?,
            false => Left::Compacted(tables::of_another_codec(&place, &family, wanted)?),
        };
        if self.json {
            return done.json(&left);
        }
        done.lines()?;
        output::line(picture.trim_end())?;
        left.told(&dir).map_or(Ok(()), |told| output::line(&told))
    }
}

/// Settles, and writes all tables of these families anew.
fn settle(db: &Db, families: &[String]) -> Result<()> {
    let anew = CompactOptions { rewrite: true, ..CompactOptions::default() };
    for family in families {
        db.column_family(family)?.compact_range_opt(None, None, &anew)?;
    }
    Ok(db.settle()?)
}

/// What was done.
struct Done {
    /// Bytes on disk.
    before: u64,
    after: Stats,
    time: Duration,
}

impl Done {
    fn json(&self, left: &Left) -> Result<()> {
        let counts = &self.after.counts;
        output::json(&json!({
            "bytes_before": self.before,
            "bytes_after": self.after.disk_bytes,
            "compactions": counts.compactions,
            "moves": counts.trivial_moves,
            "read_bytes": counts.compaction_read_bytes,
            "written_bytes": counts.compaction_write_bytes,
            "seconds": self.time.as_secs_f64(),
            "engines": engines::json(&self.after.engines),
            "opens_with": left.opens_with(),
            "other_codec_bytes": left.other_codec_bytes(),
        }))
    }
    fn lines(&self) -> Result<()> {
        let counts = &self.after.counts;
        output::line(&format!(
            "{} before, {} after; read {}, wrote {} in {:.2} s ({})",
            readable(self.before),
            readable(self.after.disk_bytes),
            readable(counts.compaction_read_bytes),
            readable(counts.compaction_write_bytes),
            self.time.as_secs_f64(),
            output::rate(counts.compaction_read_bytes, self.time),
        ))?;
        engines::lines(&self.after.engines).iter().try_for_each(|line| output::line(line))
    }
}

/// What a compaction leaves that a person should know of.
enum Left {
    /// The directory is one that RocksDB opens, from this release on.
    Settled(Release),
    /// So many tables, of so many bytes, lie in deeper levels in another codec than the settings ask for, and
    /// this one.
    Compacted(OtherCodec),
}

impl Left {
    /// What settling left in `dir`, which is to be opened by `release`.
    fn settled(dir: &Dir, release: Option<Release>) -> Result<Left> {
        let opens = Release::that_opens(tables::newest_format(dir)?);
        match release.filter(|release| *release < opens) {
            None => Ok(Left::Settled(opens)),
            Some(release) => stuck(
                format!("tables are left that {release} does not open: {opens} and later do"),
                "a column family, or --set, asks for format_version=6; set it to 5",
            ),
        }
    }
    fn opens_with(&self) -> Option<String> {
        match self {
            Left::Settled(release) => Some(release.to_string()),
            Left::Compacted(_) => None,
        }
    }
    fn other_codec_bytes(&self) -> Option<u64> {
        match self {
            Left::Settled(_) => None,
            Left::Compacted(other) => Some(other.bytes),
        }
    }
    fn told(&self, dir: &Path) -> Option<String> {
        match self {
            Left::Settled(release) => {
                let dir = shown_path(dir);
                Some(match release.format() {
                    6 => format!(
                        "{release} and later open {dir}; for older ones: `lithify compact --settle {dir} --for rocksdb-7`"
                    ),
                    _ => format!("{release} and later open {dir}"),
                })
            }
            Left::Compacted(other) if other.tables > 0 => Some(format!(
                "{}, {}, are as they were written, without the compression that compression_lower = {} asks \
                 for; `lithify compact --db {} --rewrite` writes them anew",
                output::count(other.tables, "table"),
                readable(other.bytes),
                other.wanted,
                shown_path(dir),
            )),
            Left::Compacted(_) => None,
        }
    }
}
