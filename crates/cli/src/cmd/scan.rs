//! `scan`: keys and values in order, within bounds.

use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;

use anyhow::Result;
use lithify::{Db, DbIter, ReadOptions};
use serde_json::{Map, Value};

use crate::open::{TreeArg, check_range};
use crate::output;
use crate::text::FormArgs;

const EXAMPLES: &str = "\
Examples:
  lithify scan --db fruit
  lithify scan --db fruit --prefix app --limit 10
  lithify scan --db fruit --from a --to c --reverse      c not included
  lithify scan --db fruit --keys-only | wc -l
  lithify scan --db fruit --json                         one object a line, for a program

A line is the key, a tab and the value, both escaped, so a line is always one entry. With --json, bytes
that are no UTF-8, and those that are shorter so, are hexadecimal digits in `key_hex` or `value_hex`.
`lithify load --escaped` reads both back, but not what --hex and --raw print; `lithify dump` prints all
families.";

/// `lithify scan`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Scan {
    /// Directory of the database, in place of --db
    #[arg(value_name = "DIR", conflicts_with = "db")]
    dir: Option<PathBuf>,
    #[command(flatten)]
    db: TreeArg,
    /// Only keys that start with this
    #[arg(long, value_name = "BYTES", conflicts_with_all = ["from", "to"])]
    prefix: Option<OsString>,
    /// Only keys from this one on
    #[arg(long, value_name = "KEY")]
    from: Option<OsString>,
    /// Only keys below this one
    #[arg(long, value_name = "KEY")]
    to: Option<OsString>,
    /// Stop after this many entries
    #[arg(long, value_name = "N", value_parser = crate::text::number)]
    limit: Option<u64>,
    /// From the last key to the first
    #[arg(long)]
    reverse: bool,
    /// No values
    #[arg(long)]
    keys_only: bool,
    /// Print a JSON object for each entry, one a line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    form: FormArgs,
}

impl Scan {
    pub(crate) fn run(self) -> Result<()> {
        let db = self.db.clone().at(self.dir.clone()).for_reading()?;
        let options = self.options(&db)?;
        let mut iter = db.iter_opt(&options)?;
        if self.reverse {
            iter.seek_to_last();
        } else {
            iter.seek_to_first();
        }
        let mut out = output::out();
        let mut line = Vec::new();
        let mut left = self.limit.unwrap_or(u64::MAX);
        while left > 0 && iter.valid() {
            line.clear();
            self.entry(&iter, &mut line);
            out.write_all(&line)?;
            left -= 1;
            if self.reverse {
                iter.prev();
            } else {
                iter.next();
            }
        }
        out.flush()?;
        Ok(iter.status()?)
    }

    fn options(&self, db: &Db) -> Result<ReadOptions> {
        let form = self.form.form();
        let options = ReadOptions { skip_cache_fill: true, ..ReadOptions::default() };
        if let Some(prefix) = &self.prefix {
            return Ok(options.with_prefix(form.parse(prefix)?));
        }
        let bound = |key: &Option<OsString>| key.as_ref().map(|key| form.parse(key)).transpose();
        let (from, to) = (bound(&self.from)?, bound(&self.to)?);
        if let (Some(from), Some(to)) = (&from, &to) {
            check_range(db, from, to)?;
        }
        Ok(options.with_bounds(from, to))
    }

    fn entry(&self, iter: &DbIter, line: &mut Vec<u8>) {
        let form = self.form.form();
        if self.json {
            let mut object = Map::new();
            form.put_json("key", iter.key(), &mut object);
            if !self.keys_only {
                form.put_json("value", iter.value(), &mut object);
            }
            line.extend_from_slice(output::json_line(&Value::Object(object)).as_bytes());
        } else {
            form.write(iter.key(), line);
            if !self.keys_only {
                line.push(b'\t');
                form.write(iter.value(), line);
            }
        }
        line.push(b'\n');
    }
}
