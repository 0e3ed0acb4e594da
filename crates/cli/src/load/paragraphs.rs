//! Paragraphs of `Field: value` lines, separated by blank lines: Debian's control format. A line
//! that starts with a blank goes on with the field before it. The value is the paragraph as it
//! stands, or one field.

use anyhow::Result;

use super::lines::{Lines, ROW_MAX};
use super::rows::{Choice, Entry, Row, Rows};
use super::source::Source;

/// Paragraphs.
pub(super) struct Paragraphs {
    lines: Lines,
    text: Vec<u8>,
    choice: Choice,
}

impl Paragraphs {
    pub(super) fn new(source: Source, choice: Choice) -> Result<Paragraphs> {
        choice.named_key("Package,Version")?;
        Ok(Paragraphs { lines: Lines::new(source, ROW_MAX), text: Vec::new(), choice })
    }

    /// Reads the next paragraph, without its last line's end; false at the end.
    fn read(&mut self) -> Result<bool> {
        self.text.clear();
        loop {
            let start = self.text.len();
            let more = self.lines.append(&mut self.text)?;
            let blank = self.text[start..].trim_ascii().is_empty();
            if blank {
                self.text.truncate(start);
            }
            // Blank lines before a paragraph are skipped, the one after it ends it.
            if !more || (blank && !self.text.is_empty()) {
                break;
            }
        }
        while self.text.last() == Some(&b'\n') {
            self.text.pop();
        }
        Ok(!self.text.is_empty())
    }
}

/// The value of a field of `paragraph`: the rest of its line and the lines that continue it.
fn field<'a>(paragraph: &'a [u8], name: &str) -> Option<&'a [u8]> {
    let mut start = 0;
    while start < paragraph.len() {
        let mut end = line_end(paragraph, start);
        let line = &paragraph[start..end];
        let colon = line.iter().position(|&b| b == b':');
        let found = colon.filter(|&at| line[..at].eq_ignore_ascii_case(name.as_bytes()));
        if let Some(at) = found {
            while end < paragraph.len()
                && matches!(paragraph[end + 1..].first(), Some(b' ' | b'\t'))
            {
                end = line_end(paragraph, end + 1);
            }
            return Some(paragraph[start + at + 1..end].trim_ascii());
        }
        start = end + 1;
    }
    None
}

/// Where the line that starts at `start` ends: at its newline, or at the end of the text.
fn line_end(text: &[u8], start: usize) -> usize {
    text[start..].iter().position(|&b| b == b'\n').map_or(text.len(), |at| start + at)
}

impl Rows for Paragraphs {
    fn next(&mut self, entry: &mut Entry) -> Result<Row> {
        if !self.read()? {
            return Ok(Row::End);
        }
        entry.key.clear();
        for (i, name) in self.choice.key.iter().enumerate() {
            let Some(part) = field(&self.text, name) else {
                return Ok(Row::Skipped("a field of the key is missing"));
            };
            if i > 0 {
                entry.key.extend_from_slice(&self.choice.join);
            }
            entry.key.extend_from_slice(part);
        }
        entry.value.clear();
        match &self.choice.value {
            None => entry.value.extend_from_slice(&self.text),
            Some(name) => match field(&self.text, name) {
                Some(value) => entry.value.extend_from_slice(value),
                None => return Ok(Row::Skipped("the field of the value is missing")),
            },
        }
        Ok(Row::Entry)
    }
}
