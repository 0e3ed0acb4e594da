//! `picture`: the tree as text, read from the manifest alone. No lock is taken and no table is
//! opened, so it works beside a process that has the database open, and for a database whose
//! tables are damaged.

use std::io::Write as _;

use anyhow::Result;
use lithify_lsm::picture;
use lithify_store::manifest::Recovered;
use lithify_watch::tree::{Trees, read};
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
