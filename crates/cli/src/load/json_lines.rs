//! JSON lines: one object a line. The value is the line as it stands, or one field.

use anyhow::Result;
use serde_json::{Map, Value};

use super::lines::{Lines, ROW_MAX};
use super::source::Source;
use super::{Choice, EMPTY_LINE, Entry, Row, Rows};

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
        let Ok(Value::Object(object)) = serde_json::from_slice(line) else {
            return Row::Skipped("not a JSON object");
        };
        entry.key.clear();
        for (i, name) in self.choice.key.iter().enumerate() {
            if i > 0 {
                entry.key.extend_from_slice(&self.choice.join);
            }
            if !field(&object, name, &mut entry.key) {
                return Row::Skipped("a field of the key is missing, null or not plain");
            }
        }
        entry.value.clear();
        match &self.choice.value {
            None => entry.value.extend_from_slice(line),
            Some(name) => match object.get(name) {
                Some(Value::String(text)) => entry.value.extend_from_slice(text.as_bytes()),
                Some(other) => entry.value.extend_from_slice(other.to_string().as_bytes()),
                None => return Row::Skipped("the field of the value is missing"),
            },
        }
        Row::Entry
    }
}

/// Appends a plain field's text; false if it is none.
fn field(object: &Map<String, Value>, name: &str, out: &mut Vec<u8>) -> bool {
    match object.get(name) {
        Some(Value::String(text)) => out.extend_from_slice(text.as_bytes()),
        Some(plain @ (Value::Number(_) | Value::Bool(_))) => {
            out.extend_from_slice(plain.to_string().as_bytes());
        }
        _ => return false,
    }
    true
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
