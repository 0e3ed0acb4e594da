//! Fields of structs.
//!
//! A struct all of whose fields are public is a record: a row of facts, such as settings or the
//! metadata of a table, as wide as its facts are many. What is bounded is the struct that keeps
//! fields to itself or to its room, because each of its methods sees each of its fields.

use crate::repo::Source;

/// Name and number of fields of each struct that is no record.
pub(crate) fn fields(source: &Source) -> Vec<(String, usize)> {
    let lines: Vec<&str> = source.product_lines().map(|(_, line)| line).collect();
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let Some(name) = declared(line) else { continue };
        let body = lines[at + 1..].iter().take_while(|line| line.trim() != "}");
        let fields: Vec<&str> = body.filter_map(|line| field(line, line.trim())).collect();
        if !fields.iter().all(|f| f.starts_with("pub ")) {
            found.push((name.to_owned(), fields.len()));
        }
    }
    found
}

/// The struct with named fields that `line` opens.
fn declared(line: &str) -> Option<&str> {
    let inside = line.trim_end().strip_suffix('{')?;
    let mut words = inside.split_whitespace().skip_while(|w| w.starts_with("pub"));
    if words.next()? != "struct" {
        return None;
    }
    let end = |c: char| !(c.is_alphanumeric() || c == '_');
    words.next()?.split(end).next()
}

/// The field that a line of a struct's body declares, one indentation below it.
fn field<'a>(line: &str, trimmed: &'a str) -> Option<&'a str> {
    let indented = line.len() - line.trim_start().len();
    let name = trimmed.split(':').next()?;
    let plain = name.split_whitespace().last()?;
    let named = plain.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '#');
    (indented == 4 && trimmed.contains(':') && named && !trimmed.starts_with('#'))
        .then_some(trimmed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_no_object() {
        let text = "pub struct Row {\n    pub a: u8,\n    pub b: Vec<u8>,\n}\n\
                    struct Works<T> {\n    /// Words: a.\n    pub a: u8,\n    b: T,\n}\n\
                    pub struct Room {\n    pub(crate) a: u8,\n}\n";
        let found = fields(&Source::new("crates/a/src/a.rs", text));
        assert_eq!(found, [("Works".to_owned(), 2), ("Room".to_owned(), 1)]);
    }
}
