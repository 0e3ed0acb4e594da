//! `picture`: the tree as text, read from the manifest alone. No lock is taken and no table is
//! opened, so it works beside a process that has the database open, and for a database whose
//! tables are damaged.

use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};
use lithify_base::{CfId, Error, ErrorKind, shown_path};
use lithify_env::PosixFs;
use lithify_files::Dir;
use lithify_journal::manifest::ManifestState;
use lithify_lsm::{Version, picture};
use lithify_store::manifest::{Recovered, family_version, known_order, recover};
use serde_json::{Value, json};

use crate::open::DirArg;
use crate::output;
use crate::text::escape;

const EXAMPLES: &str = "\
Examples:
  lithify picture fruit
  lithify picture fruit --json | jq '.families[0].files[0]'

One line is one run, newest first: its level and stratum, then its files from first to last key.
      L0.8  a---------m               | 1 file, 64.0 MiB
      L1.0  a---------m  n-----z      | 2 files, 128.0 MiB
Keys are escaped as other commands take them. Trees with many files, or wider than the terminal, are
drawn to scale instead, each column an equal share of all file bounds.";

/// `lithify picture`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Picture {
    #[command(flatten)]
    dir: DirArg,
    /// Print a JSON object with every file
    #[arg(long)]
    json: bool,
}

impl Picture {
    pub(crate) fn run(self) -> Result<()> {
        let found = read(&self.dir.dir()?)?;
        let trees = Trees(&found.state);
        // All of them before anything is printed, and one at a time: a tree takes far more memory than
        // the name of a family in a manifest.
        trees.each(|_, _, _| Ok(()))?;
        if self.json { as_json(&found, &trees) } else { as_text(&trees) }
    }
}

/// The trees of all column families.
pub(crate) struct Trees<'a>(pub(crate) &'a ManifestState);

impl Trees<'_> {
    /// Shows each with the number and the name of its family.
    pub(crate) fn each(
        &self,
        mut show: impl FnMut(CfId, &str, &Version) -> Result<()>,
    ) -> Result<()> {
        for (&cf, family) in &self.0.families {
            let order = known_order(family.comparator.as_deref());
            let order = order
                .with_context(|| format!("column family `{}`", escape(family.name.as_bytes())))?;
            show(cf, &family.name, &family_version(self.0, cf, order)?)?;
        }
        Ok(())
    }
}

/// The manifest of the database in `path`.
pub(crate) fn read(path: &Path) -> Result<Recovered> {
    let dir = dir_of(path)?;
    let none = || {
        let what = "there is no database here (no file CURRENT)";
        Error::new(ErrorKind::NotFound, what).in_file(shown_path(path))
    };
    Ok(recover(&dir)?.ok_or_else(none)?)
}

/// The directory `path` on the real file system, held open if it is there.
pub(crate) fn dir_of(path: &Path) -> Result<Dir> {
    Ok(Dir::new(Arc::new(PosixFs::new()), path).hold_if_there()?)
}

fn as_text(trees: &Trees<'_>) -> Result<()> {
    let mut out = output::out();
    trees.each(|_, name, version| {
        if trees.0.families.len() > 1 {
            writeln!(out, "column family `{}`", escape(name.as_bytes()))?;
        }
        match version.file_count() {
            0 => writeln!(out, "no tables; what was written is in the log")?,
            _ => {
                let drawn = picture::print_within(version, output::columns(), |_| false);
                writeln!(out, "{}", drawn.trim_end())?;
            }
        }
        Ok(())
    })?;
    Ok(out.flush()?)
}

fn as_json(found: &Recovered, trees: &Trees<'_>) -> Result<()> {
    let mut families = Vec::new();
    trees.each(|cf, name, version| {
        let files: Vec<Value> = version.files().map(|f| file(f)).collect();
        families.push(json!({ "id": cf.0, "name": name, "files": files }));
        Ok(())
    })?;
    output::json(&json!({
        "manifest": found.manifest,
        "last_sequence": found.state.last_seq,
        "families": families,
    }))
}

fn file(f: &lithify_lsm::FileMeta) -> Value {
    json!({
        "file": f.id.0,
        "level": f.pos.level,
        "stratum": f.pos.stratum.0,
        "from": escape(&f.range.lo),
        "to": escape(&f.range.hi.key),
        "to_included": f.range.hi.inclusive,
        "bytes": f.bytes,
        "entries": f.entries,
        "deletes": f.deletes,
        "range_deletes": f.range_deletes,
        "sequences": [f.seqs.0, f.seqs.1],
    })
}
