//! TSV and CSV. In CSV a field may be quoted; in TSV quotes are characters like any other.
//!
//! A value that is the whole row is the row as this format writes it, without the line's end.

use anyhow::{Context, Result};
use csv::{ByteRecord, QuoteStyle, Reader, ReaderBuilder, WriterBuilder};

use super::source::Source;
use super::{Choice, Entry, Row, Rows};
use crate::failure::usage;

/// Rows of columns.
pub(super) struct Separated {
    reader: Reader<Source>,
    separator: u8,
    record: ByteRecord,
    key: Vec<usize>,
    value: Option<usize>,
    join: Vec<u8>,
}

impl Separated {
    pub(super) fn new(source: Source, separator: u8, choice: Choice) -> Result<Separated> {
        let mut reader = ReaderBuilder::new()
            .delimiter(separator)
            .quoting(separator != b'\t')
            .has_headers(choice.header)
            .flexible(true)
            .buffer_capacity(256 << 10)
            .from_reader(source);
        let names = match choice.header {
            true => reader.byte_headers().context("reading the first row")?.clone(),
            false => ByteRecord::new(),
        };
        let column = |name: &String| column(name, &names);
        let key: Vec<usize> = choice.key.iter().map(column).collect::<Result<_>>()?;
        let value = choice.value.as_ref().map(column).transpose()?;
        let key = if key.is_empty() { vec![0] } else { key };
        Ok(Separated {
            reader,
            separator,
            record: ByteRecord::new(),
            key,
            value,
            join: choice.join,
        })
    }
}

/// The column of this name, or of this number from 1.
fn column(name: &str, names: &ByteRecord) -> Result<usize> {
    if let Some(at) = names.iter().position(|n| n == name.as_bytes()) {
        return Ok(at);
    }
    match name.parse::<usize>() {
        Ok(number) if number > 0 => Ok(number - 1),
        _ if names.is_empty() => {
            usage(format!("without a header, columns have numbers from 1, not `{name}`"))
        }
        _ => {
            let known: Vec<_> = names.iter().map(String::from_utf8_lossy).collect();
            usage(format!("there is no column `{name}`; there are {}", known.join(", ")))
        }
    }
}

impl Rows for Separated {
    fn next(&mut self, entry: &mut Entry) -> Result<Row> {
        if !self.reader.read_byte_record(&mut self.record)? {
            return Ok(Row::End);
        }
        entry.key.clear();
        for (i, &at) in self.key.iter().enumerate() {
            let Some(part) = self.record.get(at) else {
                return Ok(Row::Skipped("too few columns for the key"));
            };
            if i > 0 {
                entry.key.extend_from_slice(&self.join);
            }
            entry.key.extend_from_slice(part);
        }
        entry.value.clear();
        match self.value.map(|at| self.record.get(at)) {
            Some(Some(value)) => entry.value.extend_from_slice(value),
            Some(None) => return Ok(Row::Skipped("too few columns for the value")),
            None => write_row(&self.record, self.separator, &mut entry.value)?,
        }
        Ok(Row::Entry)
    }
}

/// The row as text, without the line's end.
fn write_row(record: &ByteRecord, separator: u8, out: &mut Vec<u8>) -> Result<()> {
    let style = if separator == b'\t' { QuoteStyle::Never } else { QuoteStyle::Necessary };
    let mut writer =
        WriterBuilder::new().delimiter(separator).quote_style(style).from_writer(&mut *out);
    writer.write_byte_record(record)?;
    writer.flush()?;
    drop(writer);
    out.pop();
    Ok(())
}
