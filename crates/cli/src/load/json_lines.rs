//! JSON lines: one object a line. The value is the line as it stands, or one field.

use std::collections::BTreeMap;

use anyhow::Result;
use serde_json::value::RawValue;

use super::lines::{Lines, ROW_MAX};
use super::rows::{Choice, EMPTY_LINE, Entry, Row, Rows};
use super::source::Source;

/// Lines of JSON.
pub(super) struct JsonLines {
    lines: Lines,
    line: Vec<u8>,
    choice: Choice,
}

impl JsonLines {
    pub(super) fn new(source: Source, choice: Choice) -> Result<JsonLines> {
        choice.named_key("id")?;
        Ok(JsonLines { lines: Lines::new(source, ROW_MAX), line: Vec::new(), choice })
    }

    fn parse(&self, line: &[u8], entry: &mut Entry) -> Row {
        let Ok(object) = serde_json::from_slice::<Object<'_>>(line) else {
            return Row::Skipped("not a JSON object");
        };
        entry.key.clear();
        for (i, name) in self.choice.key.iter().enumerate() {
            if i > 0 {
                entry.key.extend_from_slice(&self.choice.join);
            }
            let plain = object.get(name).filter(|field| is_plain(field));
            if plain.is_none_or(|field| append(field, &mut entry.key).is_err()) {
                return Row::Skipped("a field of the key is missing, null or not plain");
            }
        }
        entry.value.clear();
        match self.choice.value.as_ref().map(|name| object.get(name)) {
            None => entry.value.extend_from_slice(line),
            Some(Some(field)) if append(field, &mut entry.value).is_ok() => {}
            Some(Some(_)) => return Row::Skipped("not a JSON object"),
            Some(None) => return Row::Skipped("the field of the value is missing"),
        }
        Row::Entry
    }
}

/// The fields of a line, each as it stands there.
type Object<'a> = BTreeMap<String, &'a RawValue>;

/// True for text, a number, true and false.
fn is_plain(field: &RawValue) -> bool {
    !field.get().starts_with(['{', '[', 'n'])
}

/// Appends what a field says: text without its quotes and escapes, and all else as it stands, so that no
/// number is rounded.
fn append(field: &RawValue, out: &mut Vec<u8>) -> Result<()> {
    match field.get() {
        text if text.starts_with('"') => {
            out.extend_from_slice(serde_json::from_str::<String>(text)?.as_bytes());
        }
        other => out.extend_from_slice(other.as_bytes()),
    }
    Ok(())
}

impl Rows for JsonLines {
    fn next(&mut self, entry: &mut Entry) -> Result<Row> {
        self.line.clear();
        if !self.lines.append(&mut self.line)? {
            return Ok(Row::End);
        }
        let line = self.line.trim_ascii_end();
        match line {
            [] => Ok(Row::Skipped(EMPTY_LINE)),
            line => Ok(self.parse(line, entry)),
        }
    }
}
