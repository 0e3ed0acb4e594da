//! `put`, `get`, `delete`: one key at a time, and deletion of a range.

use std::ffi::OsString;
use std::fs::File;
use std::io::{Read as _, Write};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use lithify::{MAX_VALUE_BYTES, WriteBatch, WriteOptions};
use lithify_base::{shown, shown_path};
use lithify_lsm::picture::readable;
use serde_json::{Map, Value};

use crate::engines::{self, EngineArg};
use crate::failure::{stuck, usage_with};
use crate::open::{CreateArg, TreeArg, check_range};
use crate::output;
use crate::text::FormArgs;

const PUT_EXAMPLES: &str = "\
Examples:
  lithify put --db fruit apple red
  lithify put --db fruit --sync apple 'dark red'     on disk before the command ends
  lithify put --db fruit --hex 00ff 0102             a binary key and value
  lithify put --db fruit logo --value-file logo.png  what a file has, byte for byte
  date | lithify put --db fruit now --value-file -   what a program says

A directory that holds no database and other files is refused, unless --create-among-files says that
it is the right one.";

/// `lithify put`.
#[derive(clap::Args)]
#[command(after_help = PUT_EXAMPLES)]
pub(crate) struct Put {
    #[command(flatten)]
    db: TreeArg,
    /// The key
    key: OsString,
    /// Its value
    #[arg(required_unless_present = "value_file")]
    value: Option<OsString>,
    #[arg(hide = true)]
    left_over: Vec<OsString>,
    /// Take the value from this file, byte for byte; from standard input if it is -
    #[arg(long, value_name = "FILE", conflicts_with = "value")]
    value_file: Option<PathBuf>,
    /// Wait until the write is on stable storage, to survive a power cut
    #[arg(long)]
    sync: bool,
    #[command(flatten)]
    form: FormArgs,
    #[command(flatten)]
    create: CreateArg,
    #[command(flatten)]
    engine: EngineArg,
}

impl Put {
    pub(crate) fn run(self) -> Result<()> {
        if let Some(first) = self.left_over.first() {
            let what = format!(
                "a key and a value are all that put takes, and `{}` comes after",
                shown(first.as_bytes())
            );
            return usage_with(what, "quote a value that has blanks, as 'dark red'");
        }
        let form = self.form.form();
        let key = form.parse(&self.key)?;
        let value = match (&self.value, &self.value_file) {
            (Some(value), _) => form.parse(value)?,
            (None, Some(file)) => read_value(file)?,
            (None, None) => unreachable!("clap asks for one"),
        };
        let db = self.db.for_filling(&self.create, &self.engine)?;
        db.put_opt(key, value, &durability(self.sync))?;
        engines::close(db)
    }
}

/// How to find the right key.
const OTHER_KEYS: &str = "`lithify scan --keys-only --prefix ...` lists those that there are";

/// All of a file, or of standard input, that is no longer than a value may be.
fn read_value(path: &Path) -> Result<Vec<u8>> {
    let mut value = Vec::new();
    let most = MAX_VALUE_BYTES as u64;
    let read = match path == Path::new("-") {
        true => std::io::stdin().lock().take(most + 1).read_to_end(&mut value),
        false => File::open(path).and_then(|file| file.take(most + 1).read_to_end(&mut value)),
    };
    read.with_context(|| format!("reading the value from {}", shown_path(path)))?;
    match value.len() > MAX_VALUE_BYTES {
        true => stuck(
            format!("{} is longer than a value may be", shown_path(path)),
            format!("a value has at most {}; cut it into several", readable(most)),
        ),
        false => Ok(value),
    }
}

const GET_EXAMPLES: &str = "\
Examples:
  lithify get --db fruit apple
  lithify get --db fruit --raw apple > apple.bin     the bytes as they are, no newline
  lithify get --db fruit --json apple pear           several keys, for a program

Exit code 1 says that a key is not there. In JSON, bytes that are no UTF-8, and those that are shorter
so, are hexadecimal digits in `key_hex` or `value_hex`.";

/// `lithify get`.
#[derive(clap::Args)]
#[command(after_help = GET_EXAMPLES)]
pub(crate) struct Get {
    #[command(flatten)]
    db: TreeArg,
    /// The keys
    #[arg(required = true, value_name = "KEY")]
    keys: Vec<OsString>,
    /// Print a JSON object for each key, one a line; a missing value is null
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    form: FormArgs,
}

impl Get {
    pub(crate) fn run(self) -> Result<()> {
        let form = self.form.form();
        let keys: Vec<Vec<u8>> =
            self.keys.iter().map(|key| form.parse(key)).collect::<Result<_>>()?;
        let db = self.db.for_reading()?;
        let mut out = output::out();
        let mut line = Vec::new();
        let mut missing = Vec::new();
        for (key, value) in keys.iter().zip(db.multi_get(&keys)?) {
            line.clear();
            if self.json {
                let mut object = Map::new();
                form.put_json("key", key, &mut object);
                match &value {
                    Some(value) => form.put_json("value", value, &mut object),
                    None => drop(object.insert("value".to_owned(), Value::Null)),
                }
                line.extend_from_slice(output::json_line(&Value::Object(object)).as_bytes());
            } else if let Some(value) = &value {
                form.write(value, &mut line);
            }
            if value.is_none() {
                missing.push(crate::text::escape(key));
            }
            // Raw output is the value and nothing else.
            if self.json || (value.is_some() && form != crate::text::Form::Raw) {
                line.push(b'\n');
            }
            out.write_all(&line)?;
        }
        out.flush()?;
        match missing.len() {
            0 => Ok(()),
            1 => stuck(format!("there is no key `{}`", missing[0]), OTHER_KEYS),
            n => {
                stuck(format!("{n} keys are not there, the first is `{}`", missing[0]), OTHER_KEYS)
            }
        }
    }
}

const DELETE_EXAMPLES: &str = "\
Examples:
  lithify delete --db fruit apple
  lithify delete --db fruit --from a --to c      every key from a on and below c

Deleting a key that is not there is no error.";

/// `lithify delete`.
#[derive(clap::Args)]
#[command(after_help = DELETE_EXAMPLES)]
pub(crate) struct Delete {
    #[command(flatten)]
    db: TreeArg,
    /// The keys
    #[arg(value_name = "KEY")]
    keys: Vec<OsString>,
    /// Delete every key from this one on; needs --to
    #[arg(long, value_name = "KEY", requires = "to", conflicts_with = "keys")]
    from: Option<OsString>,
    /// ... and below this one
    #[arg(long, value_name = "KEY", requires = "from")]
    to: Option<OsString>,
    /// Wait until the write is on stable storage, to survive a power cut
    #[arg(long)]
    sync: bool,
    #[command(flatten)]
    form: FormArgs,
    #[command(flatten)]
    engine: EngineArg,
}

impl Delete {
    pub(crate) fn run(self) -> Result<()> {
        let form = self.form.form();
        let range = match (&self.from, &self.to) {
            (Some(from), Some(to)) => Some((form.parse(from)?, form.parse(to)?)),
            _ if self.keys.is_empty() => {
                return usage_with("delete what?", "name keys, or a range with --from and --to");
            }
            _ => None,
        };
        let keys: Vec<Vec<u8>> =
            self.keys.iter().map(|key| form.parse(key)).collect::<Result<_>>()?;
        if let Some((from, to)) = &range {
            // Before the open, which writes.
            check_range(&self.db.for_reading()?, from, to)?;
        }
        let db = self.db.for_writing(&self.engine)?;
        let (mut batch, family) = (WriteBatch::new(), self.db.family(&db)?);
        if let Some((from, to)) = range {
            batch.delete_range_cf(&family, from, to)?;
        }
        keys.iter().try_for_each(|key| batch.delete_cf(&family, key))?;
        db.write_opt(&batch, &durability(self.sync))?;
        engines::close(db)
    }
}

fn durability(sync: bool) -> WriteOptions {
    if sync { WriteOptions::sync() } else { WriteOptions::default() }
}
