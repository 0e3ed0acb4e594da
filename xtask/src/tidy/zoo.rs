//! The zoo's bugs are out of the way: each is switched at one place, and no package asks for them
//! but the simulation under its own feature.

use anyhow::Result;
use lithify_base::zoo::Bug;

use super::Finding;
use crate::repo::{self, Source};

/// Where the bugs are listed.
const LIST: &str = "crates/base/src/zoo.rs";

/// Checks the sources and the packages' manifests.
pub(crate) fn check(sources: &[Source]) -> Result<Vec<Finding>> {
    let mut findings = places(sources, Bug::ALL);
    for source in sources.iter().filter(|s| s.path.ends_with("/src/lib.rs")) {
        let path = format!("{}/Cargo.toml", source.package());
        let text = std::fs::read_to_string(repo::root().join(&path))?;
        findings.extend(features(&path, &text));
    }
    Ok(findings)
}

/// Each bug is asked for at exactly one place.
fn places(sources: &[Source], bugs: &[Bug]) -> Vec<Finding> {
    let lines: Vec<(&str, usize, &str)> = sources
        .iter()
        .filter(|s| s.path != LIST && !s.is_test() && !s.path.starts_with("xtask"))
        .flat_map(|s| s.product_lines().map(|(number, line)| (s.path.as_str(), number, line)))
        .collect();
    let mut findings = Vec::new();
    for bug in bugs {
        let asked = format!("zoo::on(Bug::{bug:?})");
        let found: Vec<_> = lines.iter().filter(|(_, _, line)| line.contains(&asked)).collect();
        match found[..] {
            [] => {
                let what = format!("nothing asks `{asked}`; put it where the bug was made");
                findings.push(Finding::new(LIST, 0, "zoo", what));
            }
            [_] => {}
            [_, ref more @ ..] => findings.extend(more.iter().map(|(path, number, _)| {
                let what = format!("`{asked}` is asked elsewhere, too; one place is enough");
                Finding::new(path, *number, "zoo", what)
            })),
        }
    }
    findings
}

/// The feature is off unless it is asked for: it is declared in two packages, and in no list
/// of defaults or of what a dependency is to have.
fn features(path: &str, text: &str) -> Vec<Finding> {
    let declared = match path {
        "crates/base/Cargo.toml" => "zoo = []",
        "crates/sim/Cargo.toml" => "zoo = [\"lithify-base/zoo\"]",
        _ => "",
    };
    let lines = text.lines().enumerate().map(|(i, line)| (i + 1, line));
    let asks = |line: &str| !line.starts_with('#') && line.contains("zoo") && line != declared;
    lines
        .filter(|(_, line)| asks(line))
        .map(|(number, _)| {
            let what = "the zoo's bugs are for `cargo xtask zoo` alone; leave the feature out";
            Finding::new(path, number, "zoo", what.to_owned())
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bug_is_asked_for_once() {
        let [bug, other] = [Bug::AckBeforeFsync, Bug::NoDirSync];
        let text = format!("if zoo::on(Bug::{bug:?}) {{}}\n");
        let source = |path: &str| Source::new(path, text.clone());
        let sources = [source("crates/a/src/lib.rs"), source("crates/a/tests/t.rs")];
        assert_eq!(places(&sources, &[bug]), []);
        assert_eq!(places(&sources, &[bug, other]).len(), 1);
        let sources = [source("crates/a/src/lib.rs"), source("crates/b/src/lib.rs")];
        assert_eq!(places(&sources, &[bug])[0].path, "crates/b/src/lib.rs");
    }

    #[test]
    fn no_list_asks_for_the_feature() {
        let text = "[features]\ndefault = [\"zoo\"]\n# zoo\nzoo = []\n";
        assert_eq!(features("crates/base/Cargo.toml", text)[0].line, 2);
        assert_eq!(features("crates/db/Cargo.toml", text).len(), 2);
        assert_eq!(features("crates/base/Cargo.toml", "zoo = []\n"), []);
    }
}
