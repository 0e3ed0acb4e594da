//! Bans: the world enters through `env` alone, maps have a fixed order, and `unsafe` stays in the
//! rooms that are registered for it.
//!
//! clippy.toml says the same where a type can be named; this rule also sees imports, functions
//! that clippy has no entry for, and code that is not compiled on this machine.

use super::Finding;
use crate::repo::Source;

/// What must not be named, and what to use instead.
const BANS: &[(&str, &str)] = &[
    ("std::fs", "use `lithify_env::Fs`"),
    ("Instant::now", "use `Rt::now`"),
    ("SystemTime", "use `Rt::wall_seconds`"),
    ("thread::spawn", "use `Rt::spawn`"),
    ("thread::Builder", "use `Rt::spawn`"),
    ("thread::sleep", "use `Rt::park` with a deadline"),
    ("sync::Mutex", "use `lithify_env::sync::Mutex`"),
    ("sync::RwLock", "use `lithify_env::sync::RwLock`"),
    ("sync::Condvar", "use `lithify_env::sync::Condvar`"),
    ("sync::mpsc", "use a queue under `lithify_env::sync::Mutex`"),
    ("HashMap", "use BTreeMap, or hashbrown with rustc-hash"),
    ("HashSet", "use BTreeSet, or hashbrown with rustc-hash"),
    ("RandomState", "use rustc-hash: order must not differ between runs"),
    ("fastrand::", "take seeds from `lithify_env::Random`"),
    ("println!", "libraries return text; only the roof prints"),
    ("eprintln!", "libraries return errors; only the roof prints"),
    ("dbg!", "remove it"),
    ("todo!", "write it"),
    ("unimplemented!", "write it"),
];

/// Packages that stand outside: the roof and the yard talk to the world themselves.
const OUTSIDE: &[&str] = &[
    "crates/cli",
    "crates/bench",
    "crates/capi",
    "crates/lab",
    "crates/sim",
    "crates/hostile",
    "crates/gpu-kit",
    "testkit",
    "xtask",
    "peers/fjall",
    "peers/lmdb",
    "peers/redb",
    "peers/rocksdb",
];

/// Packages that may contain `unsafe`, in files that SAFETY.md lists.
const UNSAFE_ROOMS: &[&str] =
    &["crates/memtable", "crates/env", "crates/capi", "crates/engine-fpga", "crates/engine-gpu"];

/// Checks one file.
pub(crate) fn check(source: &Source) -> Vec<Finding> {
    let mut findings = check_forbid(source);
    let outside = OUTSIDE.contains(&source.package()) || source.is_build_script();
    if outside || source.is_test() || source.path.starts_with("crates/env/src/os") {
        return findings;
    }
    for (number, line) in source.product_lines() {
        for (name, instead) in BANS {
            if names(line, name) && !allowed(source, name, line) {
                let what = format!("`{name}` is banned here; {instead}");
                findings.push(Finding::new(&source.path, number, "bans", what));
            }
        }
    }
    findings
}

/// True if `line` names `name` as a whole word.
fn names(line: &str, name: &str) -> bool {
    let word = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(name).any(|(at, _)| {
        let before = line[..at].chars().next_back().is_some_and(word);
        let after = line[at + name.len()..].chars().next().is_some_and(word);
        !before && (name.ends_with(':') || name.ends_with('!') || !after)
    })
}

/// `env` gives the locks and the seeds their names; hashbrown's maps are the ones to use.
fn allowed(source: &Source, name: &str, line: &str) -> bool {
    let env = source.package() == "crates/env";
    match name {
        "HashMap" | "HashSet" => !line.contains("std::collections") && uses_hashbrown(source),
        "sync::Mutex" | "sync::RwLock" | "sync::Condvar" => !line.contains("std::sync"),
        "fastrand::" => env,
        _ => false,
    }
}

fn uses_hashbrown(source: &Source) -> bool {
    source.code.contains("hashbrown::") && !source.code.contains("collections::Hash")
}

/// Every crate root forbids unsafe code, but for the rooms that have some.
fn check_forbid(source: &Source) -> Vec<Finding> {
    let inside = &source.path[source.package().len()..];
    let is_root = ["/src/lib.rs", "/src/main.rs"].contains(&inside);
    if !is_root || UNSAFE_ROOMS.contains(&source.package()) {
        return Vec::new();
    }
    if source.code.contains("#![forbid(unsafe_code)]") {
        return Vec::new();
    }
    let what = "add `#![forbid(unsafe_code)]`: unsafe code lives in memtable and env only";
    vec![Finding::new(&source.path, 0, "unsafe", what.to_owned())]
}

/// Files with unsafe code are exactly those that SAFETY.md lists in its register.
pub(crate) fn check_register(sources: &[Source], register: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    for source in sources {
        let line = source.code.lines().position(is_unsafe).map(|at| at + 1);
        let listed = lists(register, &source.path);
        match (line, listed) {
            (Some(line), false) => findings.push(Finding::new(
                &source.path,
                line,
                "unsafe",
                "has unsafe code; list the file in SAFETY.md with what keeps it sound".into(),
            )),
            (None, true) if UNSAFE_ROOMS.contains(&source.package()) => {
                findings.push(Finding::new(
                    "SAFETY.md",
                    0,
                    "unsafe",
                    format!("lists {}, which has no unsafe code; take it out", source.path),
                ));
            }
            _ => {}
        }
    }
    findings
}

/// True if `register` has a row for `path`.
fn lists(register: &str, path: &str) -> bool {
    let row = format!("| `{path}` |");
    register.lines().any(|line| line.starts_with(&row))
}

fn is_unsafe(line: &str) -> bool {
    names(line, "unsafe")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> Vec<String> {
        let source = Source::new(path, text);
        check(&source).into_iter().map(|f| format!("{}:{}", f.line, f.what)).collect()
    }

    #[test]
    fn the_world_is_banned_outside_env() {
        let text = "fn a() {}\nlet t = std::time::Instant::now();\n";
        assert_eq!(
            found("crates/plan/src/a.rs", text),
            ["2:`Instant::now` is banned here; use `Rt::now`"]
        );
        assert!(found("crates/env/src/os/rt.rs", text).is_empty());
        assert!(found("crates/plan/tests/a.rs", text).is_empty());
        assert!(found("crates/cli/src/a.rs", text).is_empty());
    }

    #[test]
    fn words_in_comments_and_strings_are_no_code() {
        let text = "// std::fs is banned\nlet a = \"std::fs\"; let my_std::fsx = 1;\n";
        assert!(found("crates/plan/src/a.rs", text).is_empty());
    }

    #[test]
    fn maps_need_a_fixed_order() {
        assert_eq!(found("crates/db/src/a.rs", "use std::collections::HashMap;").len(), 1);
        assert!(found("crates/db/src/a.rs", "use hashbrown::HashMap;").is_empty());
        assert!(found("crates/db/src/a.rs", "use lithify_env::sync::Mutex;").is_empty());
        assert_eq!(found("crates/db/src/a.rs", "use std::sync::Mutex;").len(), 1);
    }

    #[test]
    fn crate_roots_forbid_unsafe_code() {
        assert_eq!(found("crates/lsm/src/lib.rs", "//! Words.").len(), 1);
        assert!(found("crates/lsm/src/lib.rs", "#![forbid(unsafe_code)]").is_empty());
        assert!(found("crates/memtable/src/lib.rs", "//! Words.").is_empty());
    }

    #[test]
    fn the_register_and_the_code_agree() {
        let with = Source::new("crates/memtable/src/a.rs", "unsafe { x() }");
        let without = Source::new("crates/memtable/src/b.rs", "// unsafe\n");
        let rules = |register: &str| {
            let sources = [with_clone(&with), with_clone(&without)];
            check_register(&sources, register).len()
        };
        assert_eq!(rules("| `crates/memtable/src/a.rs` |"), 0);
        assert_eq!(rules(""), 1);
        assert_eq!(rules("| `crates/memtable/src/a.rs` |\n| `crates/memtable/src/b.rs` |"), 1);
    }

    fn with_clone(source: &Source) -> Source {
        Source::new(source.path.clone(), source.text.clone())
    }
}
