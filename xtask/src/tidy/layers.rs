//! Layers: inside a room that has them, a module names only modules of its own layer and of those
//! below it. The table is `[layers]` of `floors.toml`; a layer is a module right under the root.
//!
//! Keeps: what stands in no layer (the root, and modules beside the layers) is above all of them. A
//! name that the root re-exports is named by its layer from inside, so that no path hides its way.

use std::collections::BTreeMap;

use anyhow::{Context, Result};

use super::Finding;
use crate::repo::{self, Source};

const RULE: &str = "layers";
const TABLE: &str = "floors.toml";

/// Of each room that has layers their names, lowest first.
type Layers = BTreeMap<String, Vec<String>>;

/// Checks the sources against the table.
pub(crate) fn check(sources: &[Source]) -> Result<Vec<Finding>> {
    let text = std::fs::read_to_string(repo::root().join(TABLE))?;
    let layers = parse(&text).with_context(|| format!("reading [layers] of {TABLE}"))?;
    Ok(sources.iter().flat_map(|source| judge(&layers, source)).collect())
}

fn parse(text: &str) -> Result<Layers> {
    let table: toml::Table = text.parse()?;
    let mut layers = Layers::new();
    for (room, list) in table.get("layers").and_then(|v| v.as_table()).into_iter().flatten() {
        layers.insert(room.clone(), super::floors::names(Some(list))?);
    }
    Ok(layers)
}

fn judge(layers: &Layers, source: &Source) -> Vec<Finding> {
    let Some((_, inside)) = source.path.split_once("/src/") else { return Vec::new() };
    let room = source.package().rsplit('/').next().unwrap_or_default();
    let Some(order) = layers.get(room) else { return Vec::new() };
    let module: Vec<&str> = inside.trim_end_matches(".rs").split('/').collect();
    let Some(own) = order.iter().position(|layer| layer == module[0]) else { return Vec::new() };
    let depth = module.iter().filter(|part| **part != "mod").count();
    let mut findings = Vec::new();
    for (number, line) in source.product_lines() {
        for name in named(line, depth) {
            let at = order.iter().position(|layer| *layer == name);
            if at.is_none_or(|at| at > own) {
                let below = order[..=own].join(", ");
                let what = format!(
                    "{} is a layer that may name {below}, and names {name}; move what is needed \
                     down, or pass it in",
                    module[0]
                );
                findings.push(Finding::new(&source.path, number, RULE, what));
            }
        }
    }
    findings
}

/// What a line names right under the root, of a module `depth` steps below it.
fn named(line: &str, depth: usize) -> Vec<String> {
    let to_root = "super::".repeat(depth);
    let mut found = Vec::new();
    for root in ["crate::", to_root.as_str()] {
        for (at, _) in line.match_indices(root) {
            let before = line[..at].chars().next_back();
            if before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == ':') {
                continue;
            }
            found.extend(heads(&line[at + root.len()..]));
        }
    }
    found
}

/// The first names of a path, or of the tree of paths in braces.
fn heads(path: &str) -> Vec<String> {
    let word = |text: &str| -> String {
        text.trim().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
    };
    let Some(tree) = path.strip_prefix('{') else { return vec![word(path)] };
    let mut depth = 0;
    let outer: String = tree
        .chars()
        .take_while(|c| {
            depth += i32::from(*c == '{') - i32::from(*c == '}');
            depth >= 0
        })
        .collect();
    outer.split(',').map(word).filter(|name| !name.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(path: &str, code: &str) -> usize {
        let layers = parse("[layers]\nplan = [\"nouns\", \"rule\"]\n").unwrap();
        judge(&layers, &Source::new(path, code)).len()
    }

    #[test]
    fn a_layer_names_no_higher_one() {
        let up = "use crate::rule::relation::admit;\n";
        assert_eq!(findings("crates/plan/src/nouns/view.rs", up), 1);
        assert_eq!(findings("crates/plan/src/rule/closure.rs", up), 0);
        assert_eq!(findings("crates/plan/src/rule/closure.rs", "use crate::nouns::view::View;"), 0);
        assert_eq!(findings("crates/plan/src/lib.rs", up), 0);
        assert_eq!(findings("crates/merge/src/nouns/view.rs", up), 0, "a room without layers");
    }

    #[test]
    fn other_ways_to_write_it_are_found() {
        for code in [
            "fn f() { crate::rule::admit() }",
            "use super::super::rule::admit;",
            "use crate::{nouns::spec::Kind, rule::admit};",
            "use crate::admit;",
        ] {
            assert_eq!(findings("crates/plan/src/nouns/view.rs", code), 1, "{code}");
        }
        let sibling = "use super::spec::Kind;\nuse crate::{nouns::spec::Kind};";
        assert_eq!(findings("crates/plan/src/nouns/view.rs", sibling), 0);
    }
}
