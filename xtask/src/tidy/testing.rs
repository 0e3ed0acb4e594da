//! What only tests use is no part of the product: naive twins, generated cases, engines that lie and the
//! suite that judges engines are built with the cargo feature `testing`, which cargo must not turn on for
//! the packages that ship. The truth it is held against is `cargo tree`, as cargo adds up the features
//! that any of those packages asks of another.

use anyhow::{Context, Result, ensure};

use super::Finding;
use crate::run::at_root;

const RULE: &str = "testing";
const FEATURE: &str = "testing";
/// What ships: the library and the command line.
const SHIPPED: [&str; 2] = ["lithify", "lithify-cli"];

/// Checks the features of what ships.
pub(crate) fn check() -> Result<Vec<Finding>> {
    let mut args = vec!["tree", "--locked", "--edges=normal,build", "--prefix=none"];
    args.extend(["--format={p}|{f}"]);
    args.extend(SHIPPED.iter().flat_map(|name| ["-p", name]));
    let output = at_root("cargo", &args).output().context("starting cargo tree")?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "cargo tree: {said}");
    Ok(judge(&String::from_utf8_lossy(&output.stdout)))
}

/// One finding for each package that has the feature, of lines `name version (place)|feature,feature`.
fn judge(tree: &str) -> Vec<Finding> {
    let with = tree.lines().filter_map(|line| {
        let (package, features) = line.split_once('|')?;
        // Cargo marks a package that it has listed before.
        let features = features.trim_end_matches("(*)").trim();
        let name = package.split(' ').next()?;
        features.split(',').any(|f| f == FEATURE).then_some(name)
    });
    let mut names: Vec<&str> = with.collect();
    names.sort_unstable();
    names.dedup();
    let what = |name| {
        format!(
            "{name} is built with the feature `{FEATURE}` in what ships ({}); ask for it under \
             [dev-dependencies], or in the yard",
            SHIPPED.join(", ")
        )
    };
    names.into_iter().map(|name| Finding::new("Cargo.toml", 0, RULE, what(name))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_that_ships_what_tests_use_is_found_once() {
        let clean = "lithify v0.1.0 (/x/crates/db)|default,zstd\nlithify-merge v0.1.0 (/x)|\n";
        assert_eq!(judge(clean), []);
        let tree = "lithify v0.1.0 (/x/crates/db)|default\n\
                    lithify-merge v0.1.0 (/x)|testing\n\
                    lithify-engine v0.1.0 (/x)|default,testing\n\
                    lithify-merge v0.1.0 (/x)|testing (*)\n\
                    other v1.0.0|testing-ground\n";
        let found = judge(tree);
        let names: Vec<&str> =
            found.iter().map(|f| f.what.split(' ').next().unwrap_or_default()).collect();
        assert_eq!(names, ["lithify-engine", "lithify-merge"]);
    }

    /// The features of this very workspace, so that a rename of a package or of the feature is noticed:
    /// what ships is found, and a package of the yard does ask for the feature.
    #[test]
    fn the_feature_is_there_and_what_ships_is_without() {
        assert_eq!(check().unwrap(), []);
        let args = ["tree", "--locked", "--edges=normal", "--prefix=none", "--format={p}|{f}"];
        let yard = [&args[..], &["-p", "lithify-hostile"]].concat();
        let output = at_root("cargo", &yard).output().unwrap();
        assert!(!judge(&String::from_utf8_lossy(&output.stdout)).is_empty());
    }
}
