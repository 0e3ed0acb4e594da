//! Names that users meet: each word of a public type's name is in the glossary, or means in it what it means
//! in std and in other stores, by the list `[words]` of `floors.toml`.
//!
//! Held to this are the types that the facade shows: its own, those that it takes from the rooms below by
//! `pub use`, and those of rooms that it shows whole. Users meet such a name in a signature or an error, with
//! nothing around it. A type of an inner room stands beside its docs, and there are some four hundred: rows for
//! them would make the glossary an index.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result};

use super::Finding;
use super::words::split;
use crate::repo::{self, Source};

const RULE: &str = "names";
const TABLE: &str = "floors.toml";
const GLOSSARY: &str = "docs/glossary.md";
const FACADE: &str = "crates/db";
/// Letters of the shortest word of a term: an article is none.
const WORD_MIN: usize = 2;

/// Checks the names that the facade shows.
pub(crate) fn check(sources: &[Source]) -> Result<Vec<Finding>> {
    let glossary = std::fs::read_to_string(repo::root().join(GLOSSARY))?;
    let table = std::fs::read_to_string(repo::root().join(TABLE))?;
    let field = field_words(&table).with_context(|| format!("reading [words] of {TABLE}"))?;
    Ok(judge(&shown(sources), &terms(&glossary), &field))
}

/// Words with a meaning in std or in other stores.
fn field_words(table: &str) -> Result<BTreeSet<String>> {
    let table: toml::Table = table.parse()?;
    let lists = table.get("words").and_then(|v| v.as_table()).context("no [words]")?;
    let mut words = BTreeSet::new();
    for list in lists.values() {
        words.extend(super::floors::names(Some(list))?);
    }
    Ok(words)
}

/// The words of the glossary's terms, which are its first column.
fn terms(glossary: &str) -> BTreeSet<String> {
    let rows = glossary.lines().filter_map(|line| line.strip_prefix("| ")?.split('|').next());
    let words = rows.flat_map(|term| term.split(|c: char| !c.is_alphanumeric()));
    words.filter(|w| w.len() >= WORD_MIN).map(str::to_lowercase).collect()
}

/// The types that the facade shows, each with the place that shows it.
fn shown(sources: &[Source]) -> BTreeMap<String, (String, usize)> {
    let mut rooms = BTreeSet::from([FACADE.to_owned()]);
    for source in sources.iter().filter(|s| s.package() == FACADE) {
        rooms.extend(whole_rooms(source));
    }
    let mut found = BTreeMap::new();
    for source in sources.iter().filter(|s| rooms.contains(s.package())) {
        if source.path[source.package().len()..].starts_with("/src/") && !source.is_test() {
            for (line, name) in declared(source).into_iter().chain(taken(source)) {
                found.entry(name).or_insert_with(|| (source.path.clone(), line));
            }
        }
    }
    found
}

/// Rooms of which all is shown: `pub use lithify_engine as engine;`.
fn whole_rooms(source: &Source) -> Vec<String> {
    let uses = source.product_lines().filter_map(|(_, line)| line.strip_prefix("pub use lithify_"));
    let rooms = uses.filter_map(|rest| rest.split_once(" as ").map(|(room, _)| room));
    rooms.map(|room| format!("crates/{room}")).collect()
}

/// The public types that a file declares.
fn declared(source: &Source) -> Vec<(usize, String)> {
    let lines = source.product_lines();
    lines.filter_map(|(number, line)| Some((number, public_type(line)?.to_owned()))).collect()
}

/// The public type that a line declares.
fn public_type(line: &str) -> Option<&str> {
    let rest = line.trim_start().strip_prefix("pub ")?;
    let (item, rest) = rest.strip_prefix("unsafe ").unwrap_or(rest).split_once(' ')?;
    let end = |c: char| !(c.is_alphanumeric() || c == '_');
    let name = rest.split(end).next()?;
    ["struct", "enum", "trait", "union"].contains(&item).then_some(name)
}

/// The types that a file takes from elsewhere by `pub use`: names in CamelCase, without those that it gives
/// another name.
fn taken(source: &Source) -> Vec<(usize, String)> {
    let mut names = Vec::new();
    let mut inside = false;
    for (number, line) in source.product_lines() {
        inside |= line.trim_start().starts_with("pub use ");
        if inside {
            let words = line.split(|c: char| !(c.is_alphanumeric() || c == '_'));
            let words: Vec<&str> = words.filter(|w| !w.is_empty()).collect();
            for (i, word) in words.iter().enumerate() {
                let camel =
                    word.starts_with(char::is_uppercase) && word.contains(char::is_lowercase);
                if camel && words.get(i + 1) != Some(&"as") {
                    names.push((number, (*word).to_owned()));
                }
            }
        }
        inside &= !line.contains(';');
    }
    names
}

fn judge(
    shown: &BTreeMap<String, (String, usize)>,
    terms: &BTreeSet<String>,
    field: &BTreeSet<String>,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut needed = BTreeSet::new();
    for (name, (path, line)) in shown {
        for word in split(name) {
            if entry(&word, terms).is_some() {
                continue;
            }
            if let Some(listed) = entry(&word, field) {
                needed.insert(listed.to_owned());
                continue;
            }
            let what = format!(
                "`{word}` in `{name}` is not in {GLOSSARY}; take a word that is, or give it a row (a \
                 word of std or of other stores: [words] of {TABLE})"
            );
            findings.push(Finding::new(path, *line, RULE, what));
        }
    }
    let idle = field.difference(&needed).map(|word| {
        let what = format!("no public name needs `{word}` of [words]; take it out");
        Finding::new(TABLE, 0, RULE, what)
    });
    findings.extend(idle);
    findings
}

/// The word as a list has it: as one or as many.
fn entry<'a>(word: &str, list: &'a BTreeSet<String>) -> Option<&'a str> {
    let one = word.strip_suffix('s').unwrap_or(word);
    let forms = [word, one, &format!("{word}s")];
    forms.iter().find_map(|form| list.get(*form)).map(String::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GLOSSARY: &str = "| word | means | elsewhere |\n|---|---|---|\n\
                            | table, block | bytes of an outfit | - |\n| job control | what is held | - |\n";

    fn whats(files: &[(&str, &str)], field: &[&str]) -> Vec<String> {
        let sources: Vec<Source> =
            files.iter().map(|(path, text)| Source::new(*path, *text)).collect();
        let field = field.iter().map(|w| (*w).to_owned()).collect();
        let found = judge(&shown(&sources), &terms(GLOSSARY), &field);
        found.into_iter().map(|f| format!("{}:{} {}", f.path, f.line, f.what)).collect()
    }

    #[test]
    fn a_coined_name_is_refused_where_the_facade_shows_it() {
        let outfit = "pub struct Outfit;\n";
        assert!(whats(&[("crates/db/src/a.rs", outfit)], &[])[0].contains("`outfit` in `Outfit`"));
        assert!(whats(&[("crates/compact/src/a.rs", outfit)], &[]).is_empty(), "an inner room");
        let shown = [("crates/db/src/lib.rs", "pub use lithify_compact as compact;\n")];
        let whole = [&shown[..], &[("crates/compact/src/a.rs", outfit)]].concat();
        assert!(whats(&whole, &[])[0].starts_with("crates/compact/src/a.rs:1 "));
        let by_name = "pub use lithify_compact::{\n    Table, Outfit as Blocks,\n    MOST_BLOCKS, Reins,\n};\n";
        let found = whats(&[("crates/db/src/lib.rs", by_name)], &[]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("crates/db/src/lib.rs:3 `reins` in `Reins`"), "{found:?}");
    }

    #[test]
    fn words_of_the_glossary_and_of_the_field_pass() {
        let text = "pub struct TableBlocks;\npub enum JobError {}\npub(crate) struct Outfit;\n";
        assert!(whats(&[("crates/db/src/a.rs", text)], &["error"]).is_empty());
        assert_eq!(whats(&[("crates/db/src/a.rs", text)], &[]).len(), 1);
    }

    #[test]
    fn a_word_that_no_name_needs_leaves_the_list() {
        let text = "pub struct Table;\n";
        let found = whats(&[("crates/db/src/a.rs", text)], &["table", "error"]);
        assert_eq!(found.len(), 2, "one is in the glossary, one is in no name: {found:?}");
    }
}
