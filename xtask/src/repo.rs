//! The repository as chores see it: its root and its Rust sources.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

/// The repository's root: the parent of this package's folder.
pub(crate) fn root() -> &'static Path {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here)
}

/// The first 32 bits of the commit's name, 1 outside of a repository: what the tests draw from, so
/// that running them again changes nothing and another commit sees other cases.
pub(crate) fn commit() -> u64 {
    let head = Command::new("git").args(["rev-parse", "HEAD"]).current_dir(root()).output();
    let name = head.ok().filter(|out| out.status.success()).map(|out| out.stdout);
    let digits = name.as_ref().and_then(|n| n.get(..8)).and_then(|n| std::str::from_utf8(n).ok());
    digits.and_then(|d| u64::from_str_radix(d, 16).ok()).unwrap_or(1)
}

/// One Rust source file.
pub(crate) struct Source {
    /// Path from the root, with slashes.
    pub(crate) path: String,
    /// The text as it stands.
    pub(crate) text: String,
    /// The text with comments and literals blanked out: same length in lines.
    pub(crate) code: String,
}

impl Source {
    /// The file `path` with content `text`.
    pub(crate) fn new(path: impl Into<String>, text: impl Into<String>) -> Source {
        let text = text.into();
        Source { path: path.into(), code: blank(&text), text }
    }
    /// The package folder: `crates/plan`, `testkit`, `xtask`, `peers/rocksdb`.
    pub(crate) fn package(&self) -> &str {
        let folders =
            if self.path.starts_with("crates/") || self.path.starts_with("peers/") { 2 } else { 1 };
        match self.path.match_indices('/').nth(folders - 1) {
            Some((end, _)) => &self.path[..end],
            None => &self.path,
        }
    }
    /// True for files that hold only tests, examples or benches.
    pub(crate) fn is_test(&self) -> bool {
        let inside = &self.path[self.package().len()..];
        ["/tests/", "/examples/", "/benches/"].iter().any(|d| inside.contains(d))
            // The last two are for model checkers, which bring threads of their own.
            || ["/tests.rs", "/schedules.rs", "/models.rs"].iter().any(|f| inside.ends_with(f))
    }
    /// True for a build script, which talks to cargo and to the developer, and ships with nothing.
    pub(crate) fn is_build_script(&self) -> bool {
        self.path.ends_with("/build.rs")
    }
    /// Number and text of each line of code, up to an inline test module.
    pub(crate) fn product_lines(&self) -> impl Iterator<Item = (usize, &str)> {
        let lines = self.code.lines().enumerate().map(|(i, line)| (i + 1, line));
        let tests = self.code.find("#[cfg(test)]\nmod tests {");
        let end = tests.map_or(usize::MAX, |at| self.code[..at].lines().count());
        lines.take_while(move |(number, _)| *number <= end)
    }
}

/// All Rust sources of the repository, in path order.
pub(crate) fn sources() -> Result<Vec<Source>> {
    let mut found = Vec::new();
    for top in ["crates", "testkit", "xtask", "peers"] {
        collect(&root().join(top), &mut found)?;
    }
    found.sort();
    found
        .into_iter()
        .map(|path| {
            let text = std::fs::read_to_string(&path)
                .with_context(|| format!("reading {}", path.display()))?;
            let inside = path.strip_prefix(root()).unwrap_or(&path);
            Ok(Source::new(inside.to_string_lossy().replace('\\', "/"), text))
        })
        .collect()
}

fn collect(dir: &Path, found: &mut Vec<PathBuf>) -> Result<()> {
    for entry in std::fs::read_dir(dir).with_context(|| format!("listing {}", dir.display()))? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if path.is_dir() {
            if !name.starts_with("target") && !name.starts_with('.') {
                collect(&path, found)?;
            }
        } else if name.ends_with(".rs") {
            found.push(path);
        }
    }
    Ok(())
}

/// `text` with the content of comments, strings and characters replaced by blanks, so that a rule
/// about code never trips over words. Newlines stay where they are.
fn blank(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let length = literal_length(rest, out.chars().next_back());
        if length == 0 {
            out.push(c);
            rest = &rest[c.len_utf8()..];
            continue;
        }
        let (literal, after) = rest.split_at(length);
        out.extend(literal.chars().map(|c| if c == '\n' { '\n' } else { ' ' }));
        rest = after;
    }
    out
}

/// Bytes of the comment or literal that `rest` starts with, 0 if it starts with code. `before` is
/// the character before it: an identifier may end in `r` or `b` without starting a string.
fn literal_length(rest: &str, before: Option<char>) -> usize {
    if rest.starts_with("//") {
        return rest.find('\n').unwrap_or(rest.len());
    }
    if rest.starts_with("/*") {
        return block_comment_length(rest);
    }
    if rest.starts_with('"') {
        return string_length(rest);
    }
    let word_before = before.is_some_and(|c| c.is_alphanumeric() || c == '_');
    if rest.starts_with('\'') {
        return character_length(rest);
    }
    let raw = rest.trim_start_matches('b');
    if !word_before && rest.len() - raw.len() <= 1 && raw.starts_with('r') {
        let hashes = raw[1..].len() - raw[1..].trim_start_matches('#').len();
        if raw[1 + hashes..].starts_with('"') {
            let end = format!("\"{}", "#".repeat(hashes));
            let open = rest.len() - raw.len() + 2 + hashes;
            return rest[open..].find(&end).map_or(rest.len(), |at| open + at + end.len());
        }
    }
    0
}

fn block_comment_length(rest: &str) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < rest.len() {
        if rest[at..].starts_with("/*") {
            (depth, at) = (depth + 1, at + 2);
        } else if rest[at..].starts_with("*/") {
            (depth, at) = (depth - 1, at + 2);
            if depth == 0 {
                return at;
            }
        } else {
            at += rest[at..].chars().next().map_or(1, char::len_utf8);
        }
    }
    rest.len()
}

fn string_length(rest: &str) -> usize {
    let mut escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    rest.len()
}

/// A character literal; 0 for a lifetime.
fn character_length(rest: &str) -> usize {
    let mut chars = rest.char_indices().skip(1);
    match chars.next() {
        Some((_, '\\')) => {
            chars.next();
            chars.find(|(_, c)| *c == '\'').map_or(0, |(at, _)| at + 1)
        }
        Some(_) => match chars.next() {
            Some((at, '\'')) => at + 1,
            _ => 0,
        },
        None => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_literals_are_blanked_and_code_stays() {
        let text = "let a = \"std::fs \\\" x\"; // std::fs\nlet c = '\"'; let l: &'a str; fs\n\
                    /* a /* b */ c */ let r = r#\"x\"y\"#; let b = b\"q\"; end";
        let code = Source::new("x.rs", text).code;
        assert!(!code.contains("std::fs") && !code.contains('x') && !code.contains('q'));
        assert!(code.contains("let l: &'a str; fs\n") && code.ends_with("; end"), "{code}");
        assert_eq!(code.lines().count(), text.lines().count());
    }

    #[test]
    fn a_package_is_its_folder() {
        let of = |path: &str| Source::new(path, "").package().to_owned();
        assert_eq!(of("crates/plan/src/lib.rs"), "crates/plan");
        assert_eq!(of("xtask/src/main.rs"), "xtask");
        assert!(Source::new("crates/plan/src/view/tests.rs", "").is_test());
        assert!(!Source::new("crates/plan/src/view.rs", "").is_test());
    }

    #[test]
    fn product_code_ends_where_inline_tests_start() {
        let source = Source::new("a.rs", "fn a() {}\n#[cfg(test)]\nmod tests {\n  fn b() {}\n}\n");
        assert_eq!(source.product_lines().map(|(n, _)| n).collect::<Vec<_>>(), [1]);
    }
}
