//! The form of a dump, as it is written; `load::dumped` reads it.
//!
//! ```text
//!   lithify-dump 1              {"lithify_dump":1}
//!   family default              {"family":"default"}
//!   apple<TAB>red               {"key":"apple","value":"red"}
//!   a\tb<TAB>\xff\x00           {"key":"a\tb","value_hex":"ff00"}
//!   reverse family trees        {"family":"trees","reverse":true}
//!   end 2                       {"end":2}
//! ```
//!
//! As text, a line with a tab is an entry, in the form of `scan`: escaped key, tab, escaped value. A line
//! without one says something about those after it. As JSON, bytes are as [`Form::put_json`] puts them,
//! so no line is longer than [`LINE_MAX`].
//! Keeps: what follows a family's line is that family's. The last line counts all entries, so a dump
//! that was cut short is known for one.

use lithify::{Bytewise, Comparator, MAX_KEY_BYTES, MAX_VALUE_BYTES, ReverseBytewise};
use serde_json::{Map, Value, json};

use crate::output;
use crate::text::{Form, escape, write_escaped};

/// The version that is written, and the only one that is read.
pub(crate) const VERSION: u64 = 1;
/// How a dump as text begins.
pub(crate) const TEXT_START: &str = "lithify-dump ";
/// How a dump as JSON lines begins.
pub(crate) const JSON_START: &str = "{\"lithify_dump\":";
/// Longest line of a dump as JSON: two digits for each byte of an entry, and the fields' names.
/// Small in tests, which reach it.
pub(crate) const LINE_MAX: usize =
    if cfg!(test) { 1 << 20 } else { 2 * (MAX_KEY_BYTES + MAX_VALUE_BYTES) + 64 };

/// How a dump is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    Text,
    Json,
}

/// One line of a dump.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Line<'a> {
    /// The first one.
    Begin,
    /// What follows is of this family.
    Family {
        name: &'a str,
        order: Order,
    },
    Entry {
        key: &'a [u8],
        value: &'a [u8],
    },
    /// The last one: so many entries.
    End(u64),
}

/// The order of a family's keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    Bytewise,
    Reverse,
}

impl Order {
    /// The name that its comparator has in a database.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Order::Bytewise => Bytewise.name(),
            Order::Reverse => ReverseBytewise.name(),
        }
    }
}

impl Style {
    /// Appends `line` with its end.
    pub(crate) fn write(self, line: Line<'_>, out: &mut Vec<u8>) {
        match (self, line) {
            (Style::Text, Line::Entry { key, value }) => {
                write_escaped(key, out);
                out.push(b'\t');
                write_escaped(value, out);
            }
            (Style::Text, other) => out.extend_from_slice(text(other).as_bytes()),
            (Style::Json, other) => {
                out.extend_from_slice(output::json_line(&object(other)).as_bytes())
            }
        }
        out.push(b'\n');
    }
}

fn text(line: Line<'_>) -> String {
    match line {
        Line::Begin => format!("{TEXT_START}{VERSION}"),
        Line::Family { name, order } => {
            let reverse = if order == Order::Reverse { "reverse " } else { "" };
            format!("{reverse}family {}", escape(name.as_bytes()))
        }
        Line::Entry { key, value } => format!("{}\t{}", escape(key), escape(value)),
        Line::End(entries) => format!("end {entries}"),
    }
}

fn object(line: Line<'_>) -> Value {
    match line {
        Line::Begin => json!({ "lithify_dump": VERSION }),
        Line::Family { name, order: Order::Bytewise } => json!({ "family": name }),
        Line::Family { name, order: Order::Reverse } => json!({ "family": name, "reverse": true }),
        Line::Entry { key, value } => {
            let mut object = Map::new();
            Form::Escaped.put_json("key", key, &mut object);
            Form::Escaped.put_json("value", value, &mut object);
            Value::Object(object)
        }
        Line::End(entries) => json!({ "end": entries }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_as_text_and_as_json() {
        let lines = [
            Line::Begin,
            Line::Family { name: "default", order: Order::Bytewise },
            Line::Entry { key: b"a\tb", value: b"\xff\x00" },
            Line::Family { name: "the trees", order: Order::Reverse },
            Line::Entry { key: b"k", value: b"" },
            Line::End(2),
        ];
        let all = |style: Style| {
            let mut out = Vec::new();
            lines.iter().for_each(|line| style.write(*line, &mut out));
            String::from_utf8(out).unwrap()
        };
        assert_eq!(
            all(Style::Text),
            "lithify-dump 1\nfamily default\na\\tb\t\\xff\\x00\nreverse family the trees\nk\t\nend 2\n"
        );
        assert_eq!(
            all(Style::Json),
            "{\"lithify_dump\":1}\n{\"family\":\"default\"}\n{\"key\":\"a\\tb\",\"value_hex\":\"ff00\"}\n\
             {\"family\":\"the trees\",\"reverse\":true}\n{\"key\":\"k\",\"value\":\"\"}\n{\"end\":2}\n"
        );
        assert!(all(Style::Text).starts_with(TEXT_START));
        assert!(all(Style::Json).starts_with(JSON_START));
    }
}
