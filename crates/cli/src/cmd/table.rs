//! `table dump` and `table verify`: one table file by itself, ours or RocksDB's, without its
//! database.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Result, bail};
use lithify_base::{Bytewise, Error, ErrorKind, Kind, ReverseBytewise, shown_path};
use lithify_env::{Fs, OpenOpts, PosixFs};
use lithify_lsm::picture::readable;
use lithify_tables::sst::verify::verify;
use lithify_tables::sst::{OpenTable, TableIter, TableReader};
use serde_json::{Map, Value};

use crate::failure::stuck;
use crate::output;
use crate::text::{FormArgs, escape};

/// `lithify table`.
#[derive(clap::Subcommand)]
pub(crate) enum Table {
    /// Print the entries of a table, or its properties
    Dump(Dump),
    /// Read a whole table and check it
    Verify(Verify),
}

impl Table {
    pub(crate) fn run(self) -> Result<()> {
        match self {
            Table::Dump(dump) => dump.run(),
            Table::Verify(verify) => verify.run(),
        }
    }
}

const DUMP_EXAMPLES: &str = "\
Examples:
  lithify table dump fruit/000012.sst --limit 5
  lithify table dump fruit/000012.sst --properties
  lithify table dump fruit/000012.sst --json | jq -c 'select(.kind == \"delete\")'

A line is key, sequence number, kind and value, separated by tabs. Every version of a key that the
table holds is shown, newest first; deletions too.";

/// `lithify table dump`.
#[derive(clap::Args)]
#[command(after_help = DUMP_EXAMPLES)]
pub(crate) struct Dump {
    /// The table file
    file: PathBuf,
    /// Stop after this many entries
    #[arg(long, value_name = "N", value_parser = crate::text::number)]
    limit: Option<u64>,
    /// No values
    #[arg(long)]
    keys_only: bool,
    /// Print what the table says about itself instead of its entries
    #[arg(long)]
    properties: bool,
    /// Print JSON: an object for each entry, one a line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    form: FormArgs,
}

impl Dump {
    fn run(self) -> Result<()> {
        let table = open(&self.file)?;
        if self.properties {
            return properties(&table, self.json);
        }
        let mut out = output::out();
        let mut left = self.limit.unwrap_or(u64::MAX);
        let mut iter = TableIter::new(table.clone());
        let mut more = iter.seek_to_first();
        let mut line = Vec::new();
        while more && left > 0 {
            line.clear();
            let tag = iter.tag();
            let kind = tag.kind().map_or("unknown", kind_name);
            self.entry(&mut line, iter.user_key(), tag.seq(), kind, iter.value());
            out.write_all(&line)?;
            left -= 1;
            more = iter.next();
        }
        iter.status()?;
        let fragments = table.stored_tombstones().iter();
        let deletions = fragments.flat_map(|f| f.tombs.iter().map(move |tomb| (f, tomb.seq)));
        for (fragment, seq) in deletions.take(usize::try_from(left).unwrap_or(usize::MAX)) {
            line.clear();
            self.entry(&mut line, &fragment.lo.key, seq, "range_delete", &fragment.hi.key);
            out.write_all(&line)?;
        }
        Ok(out.flush()?)
    }

    fn entry(&self, line: &mut Vec<u8>, key: &[u8], seq: u64, kind: &str, value: &[u8]) {
        let form = self.form.form();
        if self.json {
            let mut object = Map::new();
            form.put_json("key", key, &mut object);
            object.insert("sequence".to_owned(), seq.into());
            object.insert("kind".to_owned(), kind.into());
            if !self.keys_only {
                form.put_json("value", value, &mut object);
            }
            line.extend_from_slice(output::json_line(&Value::Object(object)).as_bytes());
        } else {
            form.write(key, line);
            line.extend_from_slice(format!("\t{seq}\t{kind}").as_bytes());
            if !self.keys_only {
                line.push(b'\t');
                form.write(value, line);
            }
        }
        line.push(b'\n');
    }
}

const VERIFY_EXAMPLES: &str = "\
Examples:
  lithify table verify fruit/000012.sst
  lithify table verify copied/*.sst      several, one line each

Checked: every block's sum, the order of entries, that index and filter find each of them, and that
the properties count them right.";

/// `lithify table verify`.
#[derive(clap::Args)]
#[command(after_help = VERIFY_EXAMPLES)]
pub(crate) struct Verify {
    /// The table files
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
}

impl Verify {
    fn run(self) -> Result<()> {
        let (mut bad, mut printed) = (0, Ok(()));
        for file in &self.files {
            let line = match check(file) {
                Ok(good) => format!("{}: good; {good}", shown_path(file)),
                Err(e) if self.files.len() == 1 => return Err(e),
                Err(e) => {
                    bad += 1;
                    format!("{}: bad; {e}", shown_path(file))
                }
            };
            // Also if the reader of the list goes away: tables that are bad decide the exit code.
            printed = printed.and_then(|()| output::line(&line));
        }
        match bad {
            0 => printed,
            n => bail!("{n} of {} tables are bad", self.files.len()),
        }
    }
}

/// Reads a whole table; what is in it.
fn check(file: &Path) -> Result<String> {
    let table = open(file)?;
    let checked = verify(&table)?;
    Ok(format!(
        "{} in {}, {}, format version {}",
        output::count(checked.entries, "entry"),
        output::count(checked.blocks, "block"),
        readable(table.file_bytes()),
        table.format_version(),
    ))
}

/// Opens a table whatever order it has, as long as this program knows it.
pub(crate) fn open(path: &Path) -> Result<Arc<TableReader>> {
    if path.is_dir() {
        return stuck(
            format!("{} is a directory", shown_path(path)),
            format!(
                "name one of its tables (.sst), or `lithify verify {}` checks all",
                shown_path(path)
            ),
        );
    }
    let file = PosixFs::new()
        .open(path, OpenOpts::read())
        .map_err(|e| Error::io(e.op, shown_path(path), e.source))?;
    let name = shown_path(path).to_string();
    let bytewise = OpenTable::new(file.clone(), name.clone(), Arc::new(Bytewise));
    match TableReader::open(bytewise) {
        Err(e) if e.is_corruption() && !is_named_as_table(path) => stuck(
            format!("{} is no table", shown_path(path)),
            "tables are the files of a database that end in .sst; `lithify picture --json DIR` lists them",
        ),
        Err(e) if e.kind() == ErrorKind::Unsupported => {
            let reversed = OpenTable::new(file, name, Arc::new(ReverseBytewise));
            // If that is not it either, the first answer is the one that helps.
            TableReader::open(reversed).map_err(|_| e.into())
        }
        other => Ok(other?),
    }
}

/// Whether the name is one that tables have: then what is in it is damage.
fn is_named_as_table(path: &Path) -> bool {
    path.extension().is_some_and(|e| e == "sst" || e == "ldb")
}

fn kind_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Delete => "delete",
        Kind::Value => "value",
        Kind::Merge => "merge",
        Kind::SingleDelete => "single_delete",
        Kind::RangeDelete => "range_delete",
    }
}

fn properties(table: &TableReader, as_json: bool) -> Result<()> {
    let p = table.properties();
    let fields: [(&str, Value); 16] = [
        ("format_version", table.format_version().into()),
        ("file_bytes", table.file_bytes().into()),
        ("data_blocks", p.num_data_blocks.into()),
        ("entries", p.num_entries.into()),
        ("deletions", p.deleted_keys.into()),
        ("range_deletions", p.num_range_deletions.into()),
        ("key_bytes", p.raw_key_size.into()),
        ("value_bytes", p.raw_value_size.into()),
        ("data_bytes", p.data_size.into()),
        ("index_bytes", p.index_size.into()),
        ("filter_bytes", p.filter_size.into()),
        ("filter", p.filter_policy.as_str().into()),
        ("comparator", p.comparator.as_str().into()),
        ("compression", p.compression.as_str().into()),
        ("column_family", p.column_family_name.as_str().into()),
        ("created", p.file_creation_time.into()),
    ];
    if as_json {
        return output::json(&fields.into_iter().map(|(k, v)| (k.to_owned(), v)).collect());
    }
    for (name, value) in fields {
        let text = value.as_str().map_or_else(|| value.to_string(), |text| escape(text.as_bytes()));
        output::line(&format!("{name:<16} {text}"))?;
    }
    // Keys of other programs' own properties may be any bytes.
    for (name, value) in &p.other {
        output::line(&format!("{} = {}", escape(name), escape(value)))?;
    }
    Ok(())
}
