//! `load`: rows of a file as keys and values.
//!
//! A format yields [`Row`]s; here they become batches. A row that makes no entry (no key, too few
//! columns, broken JSON) is counted with its reason and skipped; a file that cannot be read any
//! further ends the load, and what came before stays loaded.

mod binary;
mod json_lines;
mod paragraphs;
mod separated;
mod source;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use lithify::{Db, Durability, WriteBatch, WriteOptions};
use lithify_lsm::picture::readable;
use serde_json::json;

use crate::failure::usage;
use crate::open::TreeArg;
use crate::output;
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
  Binary: u32 key length, u32 value length (little endian), key, value, again and again:
      lithify load --db blobs blobs.bin";

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
    /// Wait for stable storage at every batch, to survive a power cut
    #[arg(long)]
    sync: bool,
    /// Print the summary as a JSON object
    #[arg(long)]
    json: bool,
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
            _ => usage(format!(
                "what is {}? say --format tsv, csv, jsonl, deb822 or binary",
                path.display()
            )),
        }
    }
}

/// What a format makes of the next row.
enum Row {
    /// The entry is in the buffer.
    Entry,
    /// No entry, and why.
    Skipped(&'static str),
    /// Nothing is left.
    End,
}

/// A key and a value being made; the memory is reused.
#[derive(Default)]
struct Entry {
    key: Vec<u8>,
    value: Vec<u8>,
}

/// The rows of a file.
trait Rows {
    /// Reads the next row into `entry`.
    ///
    /// # Errors
    /// If the file cannot be read any further.
    fn next(&mut self, entry: &mut Entry) -> Result<Row>;
}

/// Which parts of a row become what.
struct Choice {
    key: Vec<String>,
    value: Option<String>,
    join: Vec<u8>,
    header: bool,
}

impl Load {
    pub(crate) fn run(self) -> Result<()> {
        let format = match self.format {
            Some(format) => format,
            None => Format::of(&self.file)?,
        };
        let choice = Choice {
            key: self.key.clone(),
            value: self.value.clone(),
            join: self.join.clone().into_bytes(),
            header: !self.no_header,
        };
        let source = Source::open(&self.file)?;
        let mut rows = choice.rows(format, source)?;
        let db = self.db.for_filling()?;
        let start = Instant::now();
        let mut tally = Tally::default();
        let loaded = self.fill(&db, &mut *rows, &mut tally);
        // And the bar with them.
        drop(rows);
        let time = start.elapsed();
        db.close()?;
        if let Err(error) = loaded {
            let before = output::count(tally.rows, "row");
            return Err(error.context(format!("{before} loaded before this")));
        }
        tally.print(time, self.json)?;
        if tally.rows == 0 && !tally.skipped.is_empty() {
            bail!("no row of {} made an entry", self.file.display());
        }
        Ok(())
    }

    /// Writes all rows in batches.
    fn fill(&self, db: &Db, rows: &mut dyn Rows, tally: &mut Tally) -> Result<()> {
        let options = match self.sync {
            true => WriteOptions::sync(),
            false => WriteOptions::at(Durability::Os),
        };
        let family = self.db.family(db)?;
        let (mut batch, mut entry, mut bytes) = (WriteBatch::new(), Entry::default(), 0);
        for number in 1.. {
            let reason = match rows.next(&mut entry) {
                Ok(Row::End) => break,
                Ok(Row::Skipped(reason)) => Some(reason),
                Ok(Row::Entry) if entry.key.is_empty() => Some("empty key"),
                Ok(Row::Entry) => None,
                Err(error) => {
                    tally.write(db, &mut batch, &mut bytes, &options)?;
                    return Err(error);
                }
            };
            if let Some(reason) = reason {
                tally.skip(reason, number);
                continue;
            }
            batch
                .put_cf(&family, &entry.key, &entry.value)
                .with_context(|| format!("row {number}"))?;
            bytes += (entry.key.len() + entry.value.len()) as u64;
            if batch.byte_len() >= BATCH_BYTES {
                tally.write(db, &mut batch, &mut bytes, &options)?;
            }
        }
        tally.write(db, &mut batch, &mut bytes, &options)
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
            true => usage(format!("say which field is the key, for example --key {example}")),
            false => Ok(()),
        }
    }
}

/// What was loaded and what was not.
#[derive(Default)]
struct Tally {
    rows: u64,
    bytes: u64,
    /// By reason: how many, and the number of the first such row.
    skipped: BTreeMap<&'static str, (u64, u64)>,
}

impl Tally {
    fn write(
        &mut self,
        db: &Db,
        batch: &mut WriteBatch,
        bytes: &mut u64,
        options: &WriteOptions,
    ) -> Result<()> {
        db.write_opt(batch, options)?;
        self.rows += batch.len() as u64;
        self.bytes += std::mem::take(bytes);
        batch.clear();
        Ok(())
    }

    fn skip(&mut self, reason: &'static str, number: u64) {
        self.skipped.entry(reason).or_insert((0, number)).0 += 1;
    }

    fn print(&self, time: Duration, as_json: bool) -> Result<()> {
        if as_json {
            let skipped: Vec<_> = self
                .skipped
                .iter()
                .map(|(reason, (rows, first))| {
                    json!({ "reason": reason, "rows": rows, "first_row": first })
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
        for (reason, (rows, first)) in &self.skipped {
            let rows = output::count(*rows, "row");
            output::line(&format!("{rows} skipped: {reason} (the first is row {first})"))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
