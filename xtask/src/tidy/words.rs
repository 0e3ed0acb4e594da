//! Words: file and type names use the glossary, and never a word that says nothing.

use super::Finding;
use crate::repo::Source;

/// Words that name nothing, and what to ask instead.
const BANNED: &[(&str, &str)] = &[
    ("manager", "say what it keeps or decides"),
    ("handler", "say what it does with what it gets"),
    ("helper", "say what it does"),
    ("helpers", "say what they do"),
    ("util", "put it where it belongs"),
    ("utils", "put them where they belong"),
    ("info", "say which facts"),
    ("data", "say which bytes or values"),
    ("process", "say what happens"),
    ("processor", "say what happens"),
    ("perform", "use the verb itself"),
    ("sstable", "say table"),
    ("groove", "say run or level"),
];

/// Keywords before the name of an item.
const ITEMS: [&str; 6] = ["struct", "enum", "trait", "union", "type", "mod"];

/// Checks one file's name and the items it declares.
pub(crate) fn check(source: &Source) -> Vec<Finding> {
    let inside = source.path[source.package().len()..].trim_end_matches(".rs");
    let mut findings = object(source, 0, inside);
    for (i, line) in source.code.lines().enumerate() {
        if let Some(name) = declared(line) {
            findings.extend(object(source, i + 1, name));
        }
    }
    findings
}

/// The item that `line` declares.
fn declared(line: &str) -> Option<&str> {
    let mut words = line.split_whitespace().skip_while(|w| w.starts_with("pub") || *w == "in");
    if !ITEMS.contains(&words.next()?) {
        return None;
    }
    let end = |c: char| !(c.is_alphanumeric() || c == '_');
    words.next().map(|name| name.split(end).next().unwrap_or(name))
}

fn object(source: &Source, line: usize, name: &str) -> Vec<Finding> {
    let words = split(name);
    let banned = BANNED.iter().filter(|(word, _)| words.iter().any(|w| w == word));
    banned
        .map(|(word, instead)| {
            let what = format!("`{word}` in `{}`: {instead}", name.trim_matches('/'));
            Finding::new(&source.path, line, "words", what)
        })
        .collect()
}

/// The lower-case words of a path, a snake_case or a CamelCase name.
pub(super) fn split(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut small_before = false;
    for c in name.chars() {
        if !c.is_alphanumeric() || (c.is_uppercase() && small_before) {
            words.push(String::new());
        }
        small_before = c.is_lowercase() || c.is_ascii_digit();
        if c.is_alphanumeric() {
            words.last_mut().expect("never empty").extend(c.to_lowercase());
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(path: &str, text: &str) -> Vec<String> {
        check(&Source::new(path, text)).into_iter().map(|f| f.what).collect()
    }

    #[test]
    fn names_are_split_into_words() {
        assert_eq!(split("FileManager"), ["file", "manager"]);
        assert_eq!(split("/src/block_info"), ["", "src", "block", "info"]);
        assert_eq!(split("CRC32"), ["crc32"]);
    }

    #[test]
    fn empty_words_are_found_in_files_and_items() {
        assert_eq!(rules("crates/db/src/utils.rs", "").len(), 1);
        assert_eq!(rules("crates/db/src/a.rs", "pub(crate) struct JobHandler<T>(T);").len(), 1);
        assert_eq!(rules("crates/db/src/a.rs", "mod helpers {").len(), 1);
        assert!(rules("crates/db/src/a.rs", "struct DatabaseRun; // a Handler\n").is_empty());
        assert!(rules("crates/db/src/a.rs", "let data = informed();").is_empty());
    }
}
