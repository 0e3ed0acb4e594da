//! Foreign text: what others named may act on a terminal, so it reaches one in few places only.
//!
//! The command line prints in one file, which spells out what is hidden. A path's `display` shows the bytes
//! of its name as they are, so a message takes it through `lithify_base::shown_path`. In the rooms of files
//! it may stand: what it is for there are errors, and an error spells out all that it is made of.

use super::Finding;
use crate::repo::Source;

/// The rooms whose text leaves them in errors alone.
const ERRORS_ONLY: &[&str] = &["crates/files", "crates/tables", "crates/store"];
/// The one file that prints for the command line.
const PRINTER: &str = "crates/cli/src/output.rs";
/// Rooms that know no foreign directories but those that a developer names.
const YARD: &[&str] = &["crates/lab", "crates/sim", "crates/hostile", "testkit", "xtask"];

/// Checks one file.
pub(crate) fn check(source: &Source) -> Vec<Finding> {
    let package = source.package();
    let outside = source.is_test() || source.is_build_script() || YARD.contains(&package);
    if outside || !package.starts_with("crates/") {
        return Vec::new();
    }
    let mut findings = Vec::new();
    for (number, line) in source.product_lines() {
        let mut add = |what: &str| {
            findings.push(Finding::new(&source.path, number, "foreign", what.to_owned()));
        };
        if !ERRORS_ONLY.contains(&package) && line.contains(".display()") {
            add(
                "`display` prints a path's bytes as they are; use `lithify_base::shown_path`, or `{:?}`",
            );
        }
        let prints = ["print!(", "println!(", "stdout()", "stderr()", "serde_json::to_string"];
        if package == "crates/cli"
            && source.path != PRINTER
            && prints.iter().any(|p| line.contains(p))
        {
            add(
                "prints past `output`, which spells out what acts on a terminal; use a function of its",
            );
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> usize {
        check(&Source::new(path, text)).len()
    }

    #[test]
    fn foreign_text_reaches_a_terminal_in_one_place() {
        assert_eq!(
            found("crates/cli/src/cmd/a.rs", "println!(\"{name}\");\nlet a = io::stdout();"),
            2
        );
        assert_eq!(found("crates/cli/src/cmd/a.rs", "eprintln!(\"{name}\");"), 1);
        assert_eq!(found("crates/cli/src/cmd/a.rs", "serde_json::to_string(&object)"), 1);
        assert_eq!(found("crates/cli/src/output.rs", "let a = io::stdout();"), 0);
        assert_eq!(found("crates/cli/tests/a.rs", "println!()"), 0);
    }

    #[test]
    fn paths_are_shown() {
        assert_eq!(found("crates/db/src/a.rs", "let a = path.display();"), 1);
        assert_eq!(found("crates/env/src/a.rs", "let a = path.display();"), 1);
        assert_eq!(found("crates/env/build.rs", "let a = path.display();"), 0);
        assert_eq!(found("crates/db/src/a.rs", "let a = shown_path(path);"), 0);
        assert_eq!(found("crates/store/src/a.rs", "e.in_file(path.display())"), 0);
        assert_eq!(found("crates/sim/src/a.rs", "let a = path.display();"), 0);
    }
}
