//! Openings and loose ends: a file opens with what it is, and unfinished work has a number.

use super::Finding;
use crate::repo::Source;

/// Marks of unfinished work. Written apart, so that this file does not find itself.
const MARKS: [&str; 3] = [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X")];

/// Checks one file.
pub(crate) fn check(source: &Source) -> Vec<Finding> {
    let mut findings = Vec::new();
    // A sibling `tests.rs` is opened by the module it tests.
    let sibling = source.path.ends_with("/tests.rs") && source.path.contains("/src/");
    if !sibling && !source.text.starts_with("//!") {
        let what = "opens without `//!`: say what it is, what it keeps, what it leaves to others";
        findings.push(Finding::new(&source.path, 0, "opening", what.to_owned()));
    }
    for (i, line) in source.text.lines().enumerate() {
        for mark in MARKS {
            if marks(line, mark) && !has_number(line) {
                let what =
                    format!("`{mark}` without an issue's number; do it, or write {mark}(#n)");
                findings.push(Finding::new(&source.path, i + 1, "loose-end", what));
            }
        }
    }
    findings
}

fn marks(line: &str, mark: &str) -> bool {
    let word = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(mark).any(|(at, _)| {
        let before = line[..at].chars().next_back().is_some_and(word);
        let after = line[at + mark.len()..].chars().next().is_some_and(word);
        !before && !after
    })
}

fn has_number(line: &str) -> bool {
    line.match_indices('#').any(|(at, _)| line[at + 1..].starts_with(|c: char| c.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(path: &str, text: &str) -> Vec<&'static str> {
        check(&Source::new(path, text)).into_iter().map(|f| f.rule).collect()
    }

    #[test]
    fn files_open_with_what_they_are() {
        assert_eq!(rules("crates/lsm/src/a.rs", "use x;\n"), ["opening"]);
        assert!(rules("crates/lsm/src/a.rs", "//! A thing.\n").is_empty());
        assert!(rules("crates/lsm/src/a/tests.rs", "use super::*;\n").is_empty());
        assert_eq!(rules("crates/lsm/tests/a.rs", "use x;\n"), ["opening"]);
    }

    #[test]
    fn loose_ends_have_numbers() {
        let with = |words: &str| format!("//! A thing.\n// {}{words}\n", MARKS[0]);
        assert_eq!(rules("crates/lsm/src/a.rs", &with(": later")), ["loose-end"]);
        assert!(rules("crates/lsm/src/a.rs", &with("(#12): later")).is_empty());
    }
}
