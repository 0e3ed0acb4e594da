//! TSV and CSV. In CSV a field may be quoted; in TSV quotes are characters like any other.
//!
//! A value that is the whole row is the row as this format writes it, without the line's end.
//!
//! Keeps: a quote that is not closed takes no other rows into its value, unless what it encloses reads as a
//! whole field by chance. The file may end before the quote does. Or the next quote, which was to open
//! a field, closes it; then something other than a separator follows, or the rest of that field has a
//! quote in the middle of it, and either is refused with its line. Rows have as many columns as the first
//! one, and a carriage return is only the end of a row before a line feed or at the end of the file.
//!
//! ```text
//!   1  "a,b"        one row; a line's end in quotes belongs to the field
//!   2  x,"not closed
//!   3  y,"z"        the quote of line 2 ends before z: refused, naming line 2
//!   3  y,",z"       the same, and z" has a quote in the middle: refused, naming line 3
//! ```

use std::io::{BufRead, BufReader};

use anyhow::{Context, Result, bail};

use super::lines::{ROW_MAX, too_long};
use super::rows::{Choice, Entry, Row, Rows};
use super::source::Source;
use crate::failure::usage;

/// What may stand at the beginning of a text in UTF-8 and is no part of it.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Rows of columns.
pub(super) struct Separated {
    reader: Reader,
    record: Record,
    key: Vec<usize>,
    value: Option<usize>,
    join: Vec<u8>,
    /// Columns of the first row.
    columns: Option<usize>,
}

/// The fields of a row.
#[derive(Default)]
struct Record {
    /// One after the other.
    bytes: Vec<u8>,
    /// Where each ends.
    ends: Vec<usize>,
}

impl Record {
    fn get(&self, at: usize) -> Option<&[u8]> {
        let end = *self.ends.get(at)?;
        let start = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        Some(&self.bytes[start..end])
    }
    fn fields(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.ends.len()).filter_map(|at| self.get(at))
    }
    fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }
    /// Appends the first byte of `rest` and those after it up to one that ends the run; how many.
    fn run(&mut self, rest: &[u8], ends: impl Fn(u8) -> bool) -> usize {
        let more = rest[1..].iter().position(|&b| ends(b));
        let count = more.map_or(rest.len(), |more| more + 1);
        self.bytes.extend_from_slice(&rest[..count]);
        count
    }
    fn end_field(&mut self) {
        self.ends.push(self.bytes.len());
    }
}

impl Separated {
    pub(super) fn new(source: Source, separator: u8, choice: Choice) -> Result<Separated> {
        let mut reader = Reader::new(source, separator);
        let mut names = Record::default();
        if choice.header {
            reader.read(&mut names).context("reading the first row")?;
        }
        let columns = Some(names.ends.len()).filter(|&count| count > 0);
        let column = |name: &String| column(name, &names);
        let key: Vec<usize> = choice.key.iter().map(column).collect::<Result<_>>()?;
        let value = choice.value.as_ref().map(column).transpose()?;
        let key = if key.is_empty() { vec![0] } else { key };
        let (record, join) = (Record::default(), choice.join);
        Ok(Separated { reader, record, key, value, join, columns })
    }
}

/// The column of this name, or of this number from 1.
fn column(name: &str, names: &Record) -> Result<usize> {
    if let Some(at) = names.fields().position(|n| n == name.as_bytes()) {
        return Ok(at);
    }
    match name.parse::<usize>() {
        Ok(number) if number > 0 => Ok(number - 1),
        _ if names.ends.is_empty() => {
            usage(format!("without a header, columns have numbers from 1, not `{name}`"))
        }
        _ => {
            let known: Vec<_> = names.fields().map(String::from_utf8_lossy).collect();
            usage(format!("there is no column `{name}`; there are {}", known.join(", ")))
        }
    }
}

impl Rows for Separated {
    fn next(&mut self, entry: &mut Entry) -> Result<Row> {
        if !self.reader.read(&mut self.record)? {
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
            None => self.reader.rules.write(&self.record, &mut entry.value),
        }
        let count = self.record.ends.len();
        // The whole row as the value loses nothing, however many columns it has. Quotes must pair up.
        let counted = self.value.is_some() || self.reader.rules.quotes == Quotes::Enclose;
        if *self.columns.get_or_insert(count) != count && counted {
            return Ok(Row::Skipped("not as many columns as the first row has"));
        }
        Ok(Row::Entry)
    }
}

/// What quotes are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Quotes {
    /// They enclose fields.
    Enclose,
    /// Letters like any other.
    Letters,
}

/// Where in a row the reader is.
#[derive(Clone, Copy)]
enum State {
    /// Before the first byte of a row: empty lines are no rows.
    Between,
    /// Before the first byte of a field.
    Field,
    /// In a field without quotes.
    Plain,
    /// In one whose quote was opened in this line.
    Quoted(u64),
    /// After a quote in it: the field's end, or the first of two that stand for one.
    Quote(u64),
    /// After a carriage return that ends a row: a line feed must follow.
    Return,
    /// After a row.
    Done,
}

/// Reads rows.
struct Reader {
    bytes: BufReader<Source>,
    rules: Rules,
    /// Nothing was read yet.
    start: bool,
}

impl Reader {
    fn new(source: Source, separator: u8) -> Reader {
        Reader { bytes: source.buffered(), rules: Rules::new(separator), start: true }
    }

    /// Reads the next row; false at the end of the file.
    fn read(&mut self, record: &mut Record) -> Result<bool> {
        record.clear();
        if std::mem::take(&mut self.start)
            && self.bytes.get_mut().peek(BYTE_ORDER_MARK.len())? == BYTE_ORDER_MARK
        {
            self.bytes.fill_buf()?;
            self.bytes.consume(BYTE_ORDER_MARK.len());
        }
        let mut state = State::Between;
        loop {
            let chunk = self.bytes.fill_buf()?;
            if chunk.is_empty() {
                return at_the_end(state, record);
            }
            let mut used = 0;
            while used < chunk.len() && !matches!(state, State::Done) {
                let (next, count) = self.rules.step(state, &chunk[used..], record)?;
                (state, used) = (next, used + count);
                if record.bytes.len() + record.ends.len() > ROW_MAX {
                    let line = if let State::Quoted(line) = state { line } else { self.rules.line };
                    return too_long(line, ROW_MAX);
                }
            }
            self.bytes.consume(used);
            if matches!(state, State::Done) {
                return Ok(true);
            }
        }
    }
}

/// How rows are told apart, and their fields.
struct Rules {
    separator: u8,
    quotes: Quotes,
    /// The line that is being read, from 1.
    line: u64,
}

impl Rules {
    fn new(separator: u8) -> Rules {
        let quotes = if separator == b'\t' { Quotes::Letters } else { Quotes::Enclose };
        Rules { separator, quotes, line: 1 }
    }

    /// Takes the first byte of `rest`, or more of the same kind: the state after it, and how many.
    fn step(&mut self, state: State, rest: &[u8], record: &mut Record) -> Result<(State, usize)> {
        let (separator, byte) = (self.separator, rest[0]);
        if byte == b'\n' {
            self.line += 1;
        }
        let next = match (state, byte) {
            (State::Quoted(line), b'"') => State::Quote(line),
            (State::Quoted(line), _) => {
                let count = record.run(rest, |b| b == b'"' || b == b'\n');
                return Ok((State::Quoted(line), count));
            }
            (State::Quote(line), b'"') => {
                record.bytes.push(b'"');
                State::Quoted(line)
            }
            (State::Between, b'\n' | b'\r') => State::Between,
            (State::Return, b'\n') => State::Done,
            (State::Return, _) => bail!(
                "line {}: a carriage return stands in the middle of a line; {}",
                self.line,
                match self.quotes {
                    Quotes::Enclose => "put the field into quotes, or end rows with line feeds",
                    Quotes::Letters => "take it out, or end rows with line feeds",
                }
            ),
            (_, b'\n' | b'\r') => {
                record.end_field();
                if byte == b'\n' { State::Done } else { State::Return }
            }
            (_, byte) if byte == separator => {
                record.end_field();
                State::Field
            }
            (State::Between | State::Field, b'"') if self.quotes == Quotes::Enclose => {
                State::Quoted(self.line)
            }
            (State::Plain, b'"') if self.quotes == Quotes::Enclose => bail!(
                "line {}: a quote stands in the middle of a field, or one before it is not closed; put the \
                 field into quotes, and write a quote inside of quotes twice",
                self.line
            ),
            (State::Quote(line), _) => bail!(
                "line {line}: the quote that opens here is not closed before the field's end; close it, \
                 and write a quote inside of quotes twice"
            ),
            _ => {
                let quote = (self.quotes == Quotes::Enclose).then_some(b'"');
                let ends = |b| b == separator || b == b'\n' || b == b'\r' || Some(b) == quote;
                return Ok((State::Plain, record.run(rest, ends)));
            }
        };
        Ok((next, 1))
    }

    /// Appends the row as text, without the line's end.
    fn write(&self, record: &Record, out: &mut Vec<u8>) {
        let special = |&b: &u8| b == self.separator || matches!(b, b'"' | b'\n' | b'\r');
        let alone = record.ends.len() == 1;
        for (i, field) in record.fields().enumerate() {
            if i > 0 {
                out.push(self.separator);
            }
            let quoted = field.iter().any(special) || (alone && field.is_empty());
            if self.quotes == Quotes::Letters || !quoted {
                out.extend_from_slice(field);
                continue;
            }
            out.push(b'"');
            for part in field.split_inclusive(|&b| b == b'"') {
                out.extend_from_slice(part);
                out.extend(part.ends_with(b"\"").then_some(b'"'));
            }
            out.push(b'"');
        }
    }
}

/// The file ends; true if there is a last row, which has no line's end.
fn at_the_end(state: State, record: &mut Record) -> Result<bool> {
    match state {
        State::Between => return Ok(false),
        State::Return => {}
        State::Quoted(line) => bail!(
            "line {line}: the quote that opens here is never closed, so the rows after it cannot be told \
             apart; close it, and write a quote inside of quotes twice"
        ),
        State::Field | State::Plain | State::Quote(_) | State::Done => record.end_field(),
    }
    Ok(true)
}

/// The row of these fields as text, for tests.
#[cfg(test)]
pub(super) fn text_of(fields: &[Vec<u8>], separator: u8) -> Vec<u8> {
    let (mut record, mut out) = (Record::default(), Vec::new());
    for field in fields {
        record.bytes.extend_from_slice(field);
        record.end_field();
    }
    Rules::new(separator).write(&record, &mut out);
    out
}

/// The fields of each row of a text, for tests.
#[cfg(test)]
pub(super) fn fields_of(text: &[u8], separator: u8) -> Result<Vec<Vec<Vec<u8>>>> {
    let mut reader = Reader::new(Source::from_bytes(text), separator);
    let (mut record, mut rows) = (Record::default(), Vec::new());
    while reader.read(&mut record)? {
        rows.push(record.fields().map(<[u8]>::to_vec).collect());
    }
    Ok(rows)
}
