//! A dump as text. Escapes are resolved while a line is read, so what is in memory is never longer
//! than a key and a value, however long the line is.

use std::io::{BufRead, BufReader};

use anyhow::{Context, Result, bail};
use lithify::{MAX_KEY_BYTES, MAX_VALUE_BYTES};
use lithify_lsm::picture::readable;

use super::{Line, Reader};
use crate::dump::{Order, TEXT_START};
use crate::load::lines;
use crate::load::rows::Entry;
use crate::load::source::Source;
use crate::text::escaped;

/// Lines of text.
pub(super) struct Text {
    bytes: BufReader<Source>,
    /// The line that was begun last.
    number: u64,
}

/// What a part of a line ends with.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Tab,
    Line,
    File,
}

impl Text {
    pub(super) fn new(source: Source) -> Text {
        Text { bytes: source.buffered(), number: 0 }
    }

    fn read(&mut self, entry: &mut Entry) -> Result<Line> {
        let (key, value) = match cfg!(test) {
            true => (lines::ROW_MAX, lines::ROW_MAX),
            false => (MAX_KEY_BYTES, MAX_VALUE_BYTES),
        };
        if self.part("key", key, &mut entry.key)? != End::Tab {
            return said(&entry.key);
        }
        match self.part("value", value, &mut entry.value)? {
            End::Tab => bail!("there is a second tab; a tab in a value is written as \\t"),
            End::Line | End::File => Ok(Line::Entry),
        }
    }

    /// Reads what stands for a key or value, with its end.
    fn part(&mut self, what: &str, max: usize, out: &mut Vec<u8>) -> Result<End> {
        out.clear();
        loop {
            let chunk = self.bytes.fill_buf()?;
            let plain = chunk.iter().position(|b| matches!(b, b'\\' | b'\t' | b'\n' | b'\r'));
            let count = plain.unwrap_or(chunk.len());
            if out.len() + count > max {
                bail!(
                    "the {what} is longer than {}, the most that one can have; is this a dump?",
                    readable(max as u64)
                );
            }
            out.extend_from_slice(&chunk[..count]);
            let Some(at) = plain else {
                if chunk.is_empty() {
                    return Ok(End::File);
                }
                self.bytes.consume(count);
                continue;
            };
            let special = chunk[at];
            self.bytes.consume(count + 1);
            match special {
                b'\t' => return Ok(End::Tab),
                b'\n' => return Ok(End::Line),
                b'\r' => bail!(
                    "there is a carriage return; one in a key or value is written as \\r, and lines end \
                     without"
                ),
                _ => out.push(self.escape()?),
            }
        }
    }

    /// The byte of an escape, after its backslash.
    fn escape(&mut self) -> Result<u8> {
        let mut text = vec![self.byte()?];
        if text[0] == b'x' {
            text.extend([self.byte()?, self.byte()?]);
        }
        let found = escaped(&text).map(|(byte, _)| byte);
        found.with_context(|| {
            format!(
                "`\\{}` is no escape; there are \\n \\t \\r \\0 \\\\ and \\x00 to \\xff",
                String::from_utf8_lossy(&text)
            )
        })
    }

    fn byte(&mut self) -> Result<u8> {
        let byte = self.bytes.fill_buf()?.first().copied();
        let byte =
            byte.context("the file ends in an escape; the dump was cut short, make it anew")?;
        self.bytes.consume(1);
        Ok(byte)
    }
}

/// What a line without a tab says.
fn said(line: &[u8]) -> Result<Line> {
    let text = std::str::from_utf8(line).unwrap_or_default();
    let number = |text: &str| text.parse::<u64>().ok();
    let family = |name: &str, order| Line::Family(name.to_owned(), order);
    let found = if line.is_empty() {
        Some(Line::Empty)
    } else if let Some(version) = text.strip_prefix(TEXT_START) {
        number(version).map(Line::Begin)
    } else if let Some(name) = text.strip_prefix("family ") {
        Some(family(name, Order::Bytewise))
    } else if let Some(name) = text.strip_prefix("reverse family ") {
        Some(family(name, Order::Reverse))
    } else {
        text.strip_prefix("end ").and_then(number).map(Line::End)
    };
    found.with_context(|| {
        let start = &line[..line.len().min(40)];
        format!("`{}` is no entry; an entry is a key, a tab and a value", start.escape_ascii())
    })
}

impl Reader for Text {
    fn next(&mut self, entry: &mut Entry) -> Result<Option<Line>> {
        if self.bytes.fill_buf()?.is_empty() {
            return Ok(None);
        }
        self.number += 1;
        self.read(entry).map(Some).with_context(|| format!("line {}", self.number))
    }
    fn number(&self) -> u64 {
        self.number
    }
}
