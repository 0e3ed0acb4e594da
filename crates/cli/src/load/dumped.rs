//! What `dump` and `scan` print, read back byte for byte: as text, or as JSON lines.
//!
//! Keeps: every line counts. One that cannot be read ends the load with its number, and so does a dump
//! that ends without its last line, or whose last line counts other entries than came. What `scan`
//! prints has neither first nor last line, and its entries are of one family.
//! Leaves to others: the form itself (`dump`), making families.

mod json;
mod text;

use anyhow::{Context, Result, bail};

use super::lines::Lines;
use super::rows::{Entry, Row, Rows};
use super::source::Source;
use crate::dump::{JSON_START, LINE_MAX, Order, Style, TEXT_START, VERSION};

/// What a line says.
enum Line {
    /// An entry, which is in the buffer.
    Entry,
    /// A dump of this version begins.
    Begin(u64),
    /// What follows is of this family.
    Family(String, Order),
    /// The dump had so many entries.
    End(u64),
    /// Nothing.
    Empty,
}

/// Reads lines of one style.
trait Reader {
    /// The next line, whose entry goes to `entry`; `None` at the end of the file.
    fn next(&mut self, entry: &mut Entry) -> Result<Option<Line>>;
    /// The number of the line that was read last, from 1.
    fn number(&self) -> u64;
}

/// Rows of a dump.
pub(super) struct Dumped {
    lines: Box<dyn Reader>,
    /// Entries since the dump's first line, if it had one.
    dump: Option<u64>,
}

/// The style of the dump that begins here; `None` if none does.
pub(super) fn style_of(source: &mut Source) -> Result<Option<Style>> {
    let starts = [(TEXT_START, Style::Text), (JSON_START, Style::Json)];
    for (start, style) in starts {
        if source.peek(start.len())? == start.as_bytes() {
            return Ok(Some(style));
        }
    }
    Ok(None)
}

impl Dumped {
    pub(super) fn new(source: Source, style: Style) -> Dumped {
        let lines: Box<dyn Reader> = match style {
            Style::Text => Box::new(text::Text::new(source)),
            Style::Json => Box::new(json::Json::new(Lines::new(source, LINE_MAX))),
        };
        Dumped { lines, dump: None }
    }

    /// What `line` says of the dump: a row, or nothing.
    fn take(&mut self, line: Line) -> Result<Option<Row>> {
        match (line, &mut self.dump) {
            (Line::Entry, entries) => {
                entries.iter_mut().for_each(|entries| *entries += 1);
                return Ok(Some(Row::Entry));
            }
            (Line::Empty, _) => {}
            (Line::Begin(VERSION), entries @ None) => *entries = Some(0),
            (Line::Begin(VERSION), Some(_)) => {
                bail!(
                    "a dump begins before the last one ended; that one was cut short, make it anew"
                )
            }
            (Line::Begin(other), _) => {
                bail!("a dump of version {other}; this program reads version {VERSION}")
            }
            (Line::Family(name, order), Some(_)) => return Ok(Some(Row::Family { name, order })),
            (Line::End(said), Some(entries)) if said == *entries => self.dump = None,
            (Line::End(said), Some(entries)) => bail!(
                "the dump has {entries} entries up to here and says that it has {said}; make it anew"
            ),
            (Line::Family(..) | Line::End(_), None) => {
                bail!("this belongs into a dump, and none has begun; make it anew")
            }
        }
        Ok(None)
    }
}

impl Rows for Dumped {
    fn means_empty_keys(&self) -> bool {
        true
    }
    fn next(&mut self, entry: &mut Entry) -> Result<Row> {
        while let Some(line) = self.lines.next(entry)? {
            let row = self.take(line);
            if let Some(row) = row.with_context(|| format!("line {}", self.lines.number()))? {
                return Ok(row);
            }
        }
        match self.dump {
            None => Ok(Row::End),
            Some(entries) => bail!(
                "the dump ends after {entries} entries, without the line that says so; it was cut short, \
                 make it anew"
            ),
        }
    }
}
