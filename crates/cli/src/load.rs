//! `load`: rows of a file as keys and values.
//!
//! A format yields [`Row`]s; here they become batches. A row that makes no entry (no key, too few
//! columns, broken JSON) is counted with its reason and skipped, and the load is a failure unless that was
//! allowed; a file that cannot be read any further ends the load, and what came before stays loaded. So does an interruption ([`Tell`]).

mod binary;
mod dumped;
mod json_lines;
mod lines;
mod paragraphs;
mod rows;
mod separated;
mod source;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use lithify::{
    ColumnFamily, ColumnFamilyOptions, Db, Durability, MAX_KEY_BYTES, MAX_VALUE_BYTES,
    ReverseBytewise, WriteBatch, WriteOptions,
};
use lithify_base::shown_path;
use lithify_lsm::picture::readable;
use serde_json::json;

use crate::dump::{Order, Style};
use crate::engines::{self, EngineArg};
use crate::failure::{stuck, usage, usage_with};
use crate::interrupt::Tell;
use crate::open::{CreateArg, TreeArg};
use crate::output;
use rows::{Choice, EMPTY_LINE, Entry, Row, Rows};
use source::Source;

/// Bytes of a batch: large enough that the log's cost per batch vanishes.
const BATCH_BYTES: usize = 1 << 20;

const EXAMPLES: &str = "\
Examples:
  Tab-separated with a header; the first column is the key, the row the value:
      lithify load --db fruit fruit.tsv
  Two columns of a CSV file make the key, one the value:
      lithify load --db fruit fruit.csv --key country,name --value price
  JSON lines, the field `id` is the key, the line the value:
      lithify load --db events events.jsonl --key id
  The Debian package index, keyed by name and version, the paragraph as value:
      apt-cache dumpavail | lithify load --db packages --format deb822 --key Package,Version -
      lithify scan --db packages --prefix bash/
  What `dump` or `scan` printed, byte for byte; a dump makes its column families, too:
      lithify load --db fruit-2 --escaped fruit.dump
      lithify scan --db fruit --prefix a | lithify load --db fruit-3 --escaped -
  Binary: u32 key length, u32 value length (little endian), key, value, again and again:
      lithify load --db blobs blobs.bin

A row has at most 1 GiB and 16 MiB, as much as a value and a key. A file that cannot be read to its
end, such as a CSV file with a quote that is not closed, ends the load with the line's number and
exit code 1; the rows before it are in, and the message says how many. So does Ctrl-C, with exit
code 130. Rows that make no entry, such as a line that is no JSON object, are skipped and listed; the
exit code is 1 then, unless --skip-bad allows so many. With --strict nothing is loaded if there is
one. Loading a file again writes the same keys anew.";

/// `lithify load`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Load {
    #[command(flatten)]
    db: TreeArg,
    /// The file, or - for standard input
    file: PathBuf,
    /// What the file is [default: by its extension]
    #[arg(long, value_enum, value_name = "FORMAT")]
    format: Option<Format>,
    /// The file is what `dump` or `scan` printed; where nothing says that it is JSON, add --format jsonl
    #[arg(long, conflicts_with_all = ["key", "value", "join", "no_header"])]
    escaped: bool,
    /// Columns or fields that make the key, separated by commas: names, or numbers from 1
    /// [default: the first column]
    #[arg(
        long,
        visible_aliases = ["key-column", "key-field"],
        value_name = "NAME|N,...",
        value_delimiter = ','
    )]
    key: Vec<String>,
    /// The column or field that is the value [default: the whole row, line or paragraph]
    #[arg(
        long,
        visible_aliases = ["value-column", "value-field"],
        value_name = "NAME|N"
    )]
    value: Option<String>,
    /// What stands between several parts of a key
    #[arg(long, value_name = "TEXT", default_value = "/")]
    join: String,
    /// The first row of TSV or CSV is data, not names
    #[arg(long)]
    no_header: bool,
    /// So many rows that make no entry, or `all`, are no failure; one more ends the load
    #[arg(long, value_name = "N|all", value_parser = allowed)]
    skip_bad: Option<u64>,
    /// Load nothing if a row makes no entry: a file is read once before; what comes from standard input or a pipe ends
    /// at the first such row
    #[arg(long, conflicts_with = "skip_bad")]
    strict: bool,
    /// Wait for stable storage at every batch, to survive a power cut
    #[arg(long)]
    sync: bool,
    /// Print the summary as a JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    create: CreateArg,
    #[command(flatten)]
    engine: EngineArg,
}

/// What a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Tab-separated values: .tsv, .tab
    Tsv,
    /// Comma-separated values: .csv
    Csv,
    /// One JSON object a line: .jsonl, .ndjson
    #[value(alias = "json", alias = "ndjson")]
    Jsonl,
    /// Paragraphs of `Field: value` lines, as Debian's package lists: .deb822
    Deb822,
    /// Length-prefixed binary: .bin
    Binary,
}

impl Format {
    fn of(path: &Path) -> Result<Format> {
        let extension = path.extension().map(|e| e.to_string_lossy().to_lowercase());
        match extension.as_deref() {
            Some("tsv" | "tab") => Ok(Format::Tsv),
            Some("csv") => Ok(Format::Csv),
            Some("jsonl" | "ndjson") => Ok(Format::Jsonl),
            Some("deb822") => Ok(Format::Deb822),
            Some("bin") => Ok(Format::Binary),
            _ => usage_with(
                format!("the name of {} does not say what it is", shown_path(path)),
                "say --format tsv, csv, jsonl, deb822 or binary",
            ),
        }
    }
}

impl Load {
    pub(crate) fn run(self) -> Result<()> {
        let mut rows = self.rows()?;
        // A pipe can't be read twice.
        if self.strict && self.file != Path::new("-") && self.file.is_file() {
            self.check(&mut *rows)?;
            rows = self.rows()?;
        }
        let db = self.db.for_filling(&self.create, &self.engine)?;
        let tell = Tell::new()?;
        let start = Instant::now();
        let mut filling = Filling::new(&self, &db, &tell)?;
        let loaded = filling.fill(&mut *rows);
        // And the bar with them.
        drop(rows);
        // Also after an error: what was read before it is loaded.
        let written = filling.write();
        let (tally, time) = (filling.tally, start.elapsed());
        let merged = engines::lines(&db.stats().engines);
        db.close()?;
        if let Err(error) = loaded.and(written) {
            let before = output::count(tally.rows, "row");
            return Err(error.context(format!("{before} loaded before this")));
        }
        let printed = tally.print(time, self.json);
        if !self.json {
            merged.iter().try_for_each(|line| output::line(line))?;
        }
        if tally.rows == 0 && !tally.skipped.is_empty() {
            bail!("no row of {} made an entry", shown_path(&self.file));
        }
        match tally.bad() {
            bad if bad > 0 && self.skip_bad.is_none() => bail!(
                "{} of {} made no entry and {} not loaded; mend that and load the file again, or allow it \
                 with --skip-bad {bad}",
                output::count(bad, "row"),
                shown_path(&self.file),
                if bad == 1 { "is" } else { "are" },
            ),
            _ => printed,
        }
    }

    /// Reads all rows and refuses the first that makes no entry.
    fn check(&self, rows: &mut dyn Rows) -> Result<()> {
        let (mut entry, mut number) = (Entry::default(), 0);
        loop {
            number += 1;
            match next(rows, &mut entry)? {
                Row::End => return Ok(()),
                Row::Family { .. } => number -= 1,
                Row::Skipped(reason) if reason != EMPTY_LINE => {
                    return stuck(
                        format!(
                            "row {number} of {} makes no entry: {reason}",
                            shown_path(&self.file)
                        ),
                        "nothing was loaded; mend the row, or leave out --strict",
                    );
                }
                Row::Entry | Row::Skipped(_) => {}
            }
        }
    }

    /// How many rows that make no entry end the load when one more comes.
    fn most_bad(&self) -> u64 {
        match self.strict {
            true => 0,
            false => self.skip_bad.unwrap_or(u64::MAX),
        }
    }

    /// The rows of the file.
    fn rows(&self) -> Result<Box<dyn Rows>> {
        let format = match self.format {
            None if self.escaped => None,
            None => Some(Format::of(&self.file)?),
            some => some,
        };
        let mut source = Source::open(&self.file)?;
        if format != Some(Format::Binary)
            && let Some(kind) = source.no_text()?
        {
            return usage(format!("{} is {kind}", shown_path(&self.file)));
        }
        let dump = dumped::style_of(&mut source)?;
        if !self.escaped {
            let choice = Choice {
                key: self.key.clone(),
                value: self.value.clone(),
                join: self.join.clone().into_bytes(),
                header: !self.no_header,
            };
            return match (format, dump) {
                (_, Some(_)) => {
                    usage(format!("{} is a dump; load it with --escaped", shown_path(&self.file)))
                }
                (Some(format), None) => choice.rows(format, source),
                (None, None) => unreachable!("it was found out above"),
            };
        }
        let style = match (format, dump) {
            (None | Some(Format::Tsv | Format::Jsonl), Some(style)) => style,
            (None, None) if matches!(Format::of(&self.file), Ok(Format::Jsonl)) => Style::Json,
            (None | Some(Format::Tsv), None) => Style::Text,
            (Some(Format::Jsonl), None) => Style::Json,
            (Some(_), _) => {
                return usage("--escaped reads text (--format tsv) or JSON lines (jsonl)");
            }
        };
        if dump.is_some() && self.db.family.is_some() {
            return usage("a dump says which family each entry is of; leave out --family");
        }
        Ok(Box::new(dumped::Dumped::new(source, style)))
    }
}

/// The next row; an empty key where that is none is a reason to leave it out.
fn next(rows: &mut dyn Rows, entry: &mut Entry) -> Result<Row> {
    Ok(match rows.next(entry)? {
        Row::Entry if entry.key.is_empty() && !rows.means_empty_keys() => Row::Skipped("empty key"),
        // The database would refuse it, once rows before it are loaded.
        Row::Entry if entry.key.len() > MAX_KEY_BYTES => Row::Skipped("key above 16 MiB"),
        Row::Entry if entry.value.len() > MAX_VALUE_BYTES => Row::Skipped("value above 1 GiB"),
        row => row,
    })
}

/// What `--skip-bad` says.
fn allowed(text: &str) -> Result<u64, String> {
    match text {
        "all" => Ok(u64::MAX),
        number => number.parse().map_err(|_| "write a number of rows, or `all`".to_owned()),
    }
}

/// Rows on their way into a database.
struct Filling<'a> {
    db: &'a Db,
    family: ColumnFamily,
    options: WriteOptions,
    tell: &'a Tell,
    batch: WriteBatch,
    /// Of the keys and values in the batch.
    bytes: u64,
    tally: Tally,
    /// Rows that may make no entry.
    most_bad: u64,
}

impl<'a> Filling<'a> {
    fn new(load: &Load, db: &'a Db, tell: &'a Tell) -> Result<Filling<'a>> {
        let options = match load.sync {
            true => WriteOptions::sync(),
            false => WriteOptions::at(Durability::Os),
        };
        let family = load.db.family(db)?;
        let (batch, tally) = (WriteBatch::new(), Tally::default());
        let most_bad = load.most_bad();
        Ok(Filling { db, family, options, tell, batch, bytes: 0, tally, most_bad })
    }

    /// Writes all rows but for the last batch.
    fn fill(&mut self, rows: &mut dyn Rows) -> Result<()> {
        let mut entry = Entry::default();
        let mut number = 0;
        loop {
            number += 1;
            let reason = match next(rows, &mut entry)? {
                Row::End => return Ok(()),
                Row::Family { name, order } => {
                    self.turn_to(&name, order)?;
                    number -= 1;
                    continue;
                }
                Row::Skipped(reason) => reason,
                Row::Entry => {
                    let put = self.batch.put_cf(&self.family, &entry.key, &entry.value);
                    put.with_context(|| format!("row {number}"))?;
                    self.bytes += (entry.key.len() + entry.value.len()) as u64;
                    if self.batch.byte_len() >= BATCH_BYTES {
                        self.write()?;
                    }
                    continue;
                }
            };
            self.tally.skip(reason, number);
            if self.tally.bad() > self.most_bad {
                let allowed = match self.most_bad {
                    0 => "no such row was".to_owned(),
                    1 => "1 such row was".to_owned(),
                    more => format!("{} were", output::count(more, "such row")),
                };
                return stuck(
                    format!("row {number} makes no entry: {reason}; {allowed} allowed"),
                    "mend the rows, or allow more with --skip-bad, and load the file again",
                );
            }
        }
    }

    /// The rows from here on are of this family.
    fn turn_to(&mut self, name: &str, order: Order) -> Result<()> {
        if !self.db.column_families().iter().any(|there| there == name) {
            let options = ColumnFamilyOptions::new();
            let options = match order {
                Order::Bytewise => options,
                Order::Reverse => options.comparator(Arc::new(ReverseBytewise)),
            };
            self.db.create_column_family(name, options)?;
        }
        self.family = self.db.column_family(name)?;
        let (here, there) = (self.family.comparator_name(), order.name());
        if here != there {
            bail!(
                "family `{name}` orders its keys by `{here}` here and by `{there}` in the dump; load it \
                 into a family that was made by the dump, or that has its order"
            );
        }
        Ok(())
    }

    /// Writes the batch.
    fn write(&mut self) -> Result<()> {
        let rows = self.batch.len() as u64;
        self.tell.writing(rows, || self.db.write_opt(&self.batch, &self.options))?;
        self.tally.rows += rows;
        self.tally.bytes += std::mem::take(&mut self.bytes);
        self.batch.clear();
        Ok(())
    }
}

impl Choice {
    fn rows(self, format: Format, source: Source) -> Result<Box<dyn Rows>> {
        Ok(match format {
            Format::Tsv => Box::new(separated::Separated::new(source, b'\t', self)?),
            Format::Csv => Box::new(separated::Separated::new(source, b',', self)?),
            Format::Jsonl => Box::new(json_lines::JsonLines::new(source, self)?),
            Format::Deb822 => Box::new(paragraphs::Paragraphs::new(source, self)?),
            Format::Binary => Box::new(binary::Binary::new(source, &self)?),
        })
    }

    /// The key's fields, which a format without columns must be told.
    fn named_key(&self, example: &str) -> Result<()> {
        match self.key.is_empty() {
            true => usage_with(
                "no field is named as the key",
                format!("say which it is, for example --key {example}"),
            ),
            false => Ok(()),
        }
    }
}

/// What was loaded and what was not.
#[derive(Default)]
struct Tally {
    rows: u64,
    bytes: u64,
    /// By reason.
    skipped: BTreeMap<&'static str, Left>,
}

/// Rows that were left out for one reason.
#[derive(Default)]
struct Left {
    rows: u64,
    /// The numbers of the first of them.
    first: Vec<u64>,
}

/// So many rows are named.
const NAMED: usize = 10;

impl Tally {
    /// Rows that were to make an entry and did not.
    fn bad(&self) -> u64 {
        let bad = self.skipped.iter().filter(|(reason, _)| **reason != EMPTY_LINE);
        bad.map(|(_, left)| left.rows).sum()
    }

    fn skip(&mut self, reason: &'static str, number: u64) {
        let left = self.skipped.entry(reason).or_default();
        left.rows += 1;
        if left.first.len() < NAMED {
            left.first.push(number);
        }
    }

    fn print(&self, time: Duration, as_json: bool) -> Result<()> {
        if as_json {
            let skipped: Vec<_> = self
                .skipped
                .iter()
                .map(|(reason, left)| {
                    json!({ "reason": reason, "rows": left.rows, "first_rows": &left.first })
                })
                .collect();
            return output::json(&json!({
                "rows": self.rows,
                "bytes": self.bytes,
                "seconds": time.as_secs_f64(),
                "skipped": skipped,
            }));
        }
        output::line(&format!(
            "{} loaded, {} in {:.2} s ({})",
            output::count(self.rows, "row"),
            readable(self.bytes),
            time.as_secs_f64(),
            output::rate(self.bytes, time),
        ))?;
        for (reason, left) in &self.skipped {
            let rows = output::count(left.rows, "row");
            output::line(&format!("{rows} skipped: {reason} ({left})"))?;
        }
        Ok(())
    }
}

impl std::fmt::Display for Left {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let named: Vec<String> = self.first.iter().map(u64::to_string).collect();
        write!(f, "row{} {}", if self.rows == 1 { "" } else { "s" }, named.join(", "))?;
        match self.rows - named.len() as u64 {
            0 => Ok(()),
            more => write!(f, " and {} more", output::grouped(more)),
        }
    }
}

#[cfg(test)]
mod tests;
