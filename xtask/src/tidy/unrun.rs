//! Tests that no run reaches: a target that cargo does not test (`test = false`) holds none.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context, Result};
use toml::Value;

use super::Finding;
use crate::repo::{self, Source};

/// Checks every package of the repository.
pub(crate) fn check(sources: &[Source]) -> Result<Vec<Finding>> {
    let packages: BTreeSet<&str> = sources.iter().map(Source::package).collect();
    let mut findings = Vec::new();
    for package in packages {
        let path = format!("{package}/Cargo.toml");
        let file = repo::root().join(&path);
        if !file.exists() {
            continue;
        }
        let text = std::fs::read_to_string(file)?;
        findings.extend(judge(package, &text, sources).with_context(|| path)?);
    }
    Ok(findings)
}

/// The files with tests in those targets of `package` that are not tested.
fn judge(package: &str, manifest: &str, sources: &[Source]) -> Result<Vec<Finding>> {
    let manifest: Value = toml::from_str(manifest)?;
    let by_path: BTreeMap<&str, &Source> = sources.iter().map(|s| (s.path.as_str(), s)).collect();
    let lib = manifest.get("lib").map(|target| (target, "src/lib.rs"));
    let bins = manifest.get("bin").and_then(Value::as_array).into_iter().flatten();
    let mut findings = Vec::new();
    for (target, usual) in lib.into_iter().chain(bins.map(|target| (target, "src/main.rs"))) {
        if target.get("test").and_then(Value::as_bool) != Some(false) {
            continue;
        }
        let root = target.get("path").and_then(Value::as_str).unwrap_or(usual);
        for source in modules(&format!("{package}/{root}"), &by_path) {
            // Those for model checkers are named by the chores that run them.
            if ["/schedules.rs", "/models.rs"].iter().any(|name| source.path.ends_with(name)) {
                continue;
            }
            let Some(line) = source.code.lines().position(|line| line.trim() == "#[test]") else {
                continue;
            };
            let what = format!(
                "no run reaches this test: {package}/Cargo.toml says `test = false` for {root}; take \
                 that out, or move the test"
            );
            findings.push(Finding::new(&source.path, line + 1, "unrun", what));
        }
    }
    Ok(findings)
}

/// The file `root` and all modules that it declares, and they.
fn modules<'a>(root: &str, by_path: &BTreeMap<&str, &'a Source>) -> Vec<&'a Source> {
    let mut found: Vec<&Source> = by_path.get(root).copied().into_iter().collect();
    let mut next = 0;
    while let Some(source) = found.get(next).copied() {
        next += 1;
        let path = Path::new(&source.path);
        let folder = path.parent().unwrap_or(path).to_string_lossy();
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        let folder = match &*stem {
            "lib" | "main" | "mod" => folder.into_owned(),
            stem => format!("{folder}/{stem}"),
        };
        for name in source.code.lines().filter_map(declared) {
            let places = [format!("{folder}/{name}.rs"), format!("{folder}/{name}/mod.rs")];
            found.extend(places.iter().filter_map(|place| by_path.get(place.as_str())));
        }
    }
    found
}

/// The module that `line` declares to be in a file of its own.
fn declared(line: &str) -> Option<&str> {
    let (before, after) = line.trim().split_once("mod ")?;
    let visible = before.is_empty() || before.starts_with("pub");
    after.strip_suffix(';').filter(|_| visible)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(manifest: &str) -> Vec<String> {
        let test = "#[cfg(test)]\nmod tests {\n    #[test]\n    fn a() {}\n}\n";
        let sources = [
            Source::new("crates/a/src/lib.rs", "pub mod inside;\n"),
            Source::new("crates/a/src/inside.rs", "pub(crate) mod deep;\n// #[test]\n"),
            Source::new("crates/a/src/inside/deep/mod.rs", test),
            Source::new("crates/a/src/main.rs", "mod program;\n"),
            Source::new("crates/a/src/program.rs", test),
        ];
        let findings = judge("crates/a", manifest, &sources).unwrap();
        findings.into_iter().map(|f| f.path).collect()
    }

    #[test]
    fn a_test_in_a_target_that_is_not_tested_is_found() {
        assert_eq!(found("[lib]\ntest = false\n"), ["crates/a/src/inside/deep/mod.rs"]);
        let bin = "[[bin]]\nname = \"a\"\npath = \"src/main.rs\"\n";
        assert_eq!(found(&format!("{bin}test = false\n")), ["crates/a/src/program.rs"]);
        assert_eq!(found(bin), [""; 0]);
        assert_eq!(found("[[test]]\nname = \"b\"\ntest = false\n"), [""; 0]);
    }
}
