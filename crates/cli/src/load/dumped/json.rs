//! A dump as JSON lines: bytes are text in a field, or digits in one whose name ends in `_hex`.

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use super::{Line, Reader};
use crate::dump::Order;
use crate::load::lines::Lines;
use crate::load::rows::Entry;
use crate::text::bytes_of_hex;

/// Lines of JSON.
pub(super) struct Json {
    lines: Lines,
    line: Vec<u8>,
}

/// Everything that a line can have.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Object {
    lithify_dump: Option<u64>,
    family: Option<String>,
    reverse: Option<bool>,
    key: Option<String>,
    key_hex: Option<String>,
    value: Option<String>,
    value_hex: Option<String>,
    end: Option<u64>,
}

impl Json {
    pub(super) fn new(lines: Lines) -> Json {
        Json { lines, line: Vec::new() }
    }

    fn read(&self, entry: &mut Entry) -> Result<Line> {
        let Object { lithify_dump, family, reverse, key, key_hex, value, value_hex, end } =
            serde_json::from_slice(&self.line)?;
        let bytes = [&key, &key_hex, &value, &value_hex].iter().any(|field| field.is_some());
        match (lithify_dump, family, reverse, end) {
            (Some(version), None, None, None) if !bytes => Ok(Line::Begin(version)),
            (None, Some(name), reverse, None) if !bytes => {
                let order = if reverse == Some(true) { Order::Reverse } else { Order::Bytewise };
                Ok(Line::Family(name, order))
            }
            (None, None, None, Some(entries)) if !bytes => Ok(Line::End(entries)),
            (None, None, None, None) => {
                entry.key = take("key", key, key_hex)?;
                entry.value = take("value", value, value_hex)?;
                Ok(Line::Entry)
            }
            _ => bail!("the object says two things at once; make the dump anew"),
        }
    }
}

/// The bytes of one of two fields.
fn take(name: &str, text: Option<String>, digits: Option<String>) -> Result<Vec<u8>> {
    match (text, digits) {
        (Some(text), None) => Ok(text.into_bytes()),
        (None, Some(digits)) => bytes_of_hex(digits.as_bytes()).with_context(|| {
            format!("`{name}_hex` is not an even number of hexadecimal digits; make the dump anew")
        }),
        _ => bail!("an entry has either `{name}` or `{name}_hex`; is this a dump?"),
    }
}

impl Reader for Json {
    fn next(&mut self, entry: &mut Entry) -> Result<Option<Line>> {
        self.line.clear();
        if !self.lines.append(&mut self.line)? {
            return Ok(None);
        }
        if self.line.trim_ascii().is_empty() {
            return Ok(Some(Line::Empty));
        }
        self.read(entry).map(Some).with_context(|| format!("line {}", self.number()))
    }
    fn number(&self) -> u64 {
        self.lines.number()
    }
}
