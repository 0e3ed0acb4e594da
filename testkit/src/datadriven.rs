//! Data-driven test files: commands with their expected answers, in plain text that people read
//! and `REWRITE=1 cargo test` rewrites.
//!
//! ```text
//!   # Comments stay where they are.
//!   define policy=hybrid slots=2
//!   L1.0  a---m
//!   ----
//!
//!   plan
//!   ----
//!   job 1 Down L1.0[a..m] -> L2.0
//! ```
//!
//! A case is a command line (first word, then words and `key=value` pairs), a body up to `----`,
//! and the expected answer up to an empty line or the end. An answer must not hold an empty line.

use std::fmt::Write;
use std::path::Path;

/// One command of a file.
#[derive(Clone, Debug, Default)]
pub struct Case {
    /// Line of the command, from 1.
    pub line: usize,
    /// First word.
    pub command: String,
    /// Words after it without `=`.
    pub words: Vec<String>,
    /// Pairs after it, in order.
    pub pairs: Vec<(String, String)>,
    /// Lines between the command and `----`.
    pub body: Vec<String>,
    /// Text between `----` and the end of the case.
    pub expected: String,
    /// Text from the end of the case before up to and with the body.
    pub source: String,
}

impl Case {
    /// The value of a pair.
    pub fn value(&self, key: &str) -> Option<&str> {
        self.pairs.iter().find(|p| p.0 == key).map(|p| p.1.as_str())
    }
    /// The body as string slices.
    pub fn lines(&self) -> Vec<&str> {
        self.body.iter().map(String::as_str).collect()
    }
}

/// Reads the cases of a file's text. Panics on a case without `----`, naming its line.
pub fn parse(text: &str) -> Vec<Case> {
    let mut cases = Vec::new();
    let mut source = String::new();
    let mut lines = text.lines().enumerate();
    while let Some((i, line)) = lines.next() {
        let _ = writeln!(source, "{line}");
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        let mut case = Case { line: i + 1, ..command(line) };
        loop {
            let Some((_, l)) = lines.next() else { panic!("line {}: no `----` follows", i + 1) };
            let _ = writeln!(source, "{l}");
            if l == "----" {
                break;
            }
            case.body.push(l.into());
        }
        for (_, l) in lines.by_ref().take_while(|(_, l)| !l.is_empty()) {
            let _ = writeln!(case.expected, "{l}");
        }
        case.source = std::mem::take(&mut source);
        cases.push(case);
    }
    cases
}

fn command(line: &str) -> Case {
    let mut words = line.split_whitespace();
    let mut case = Case { command: words.next().unwrap_or_default().into(), ..Case::default() };
    for w in words {
        match w.split_once('=') {
            Some((k, v)) => case.pairs.push((k.into(), v.into())),
            None => case.words.push(w.into()),
        }
    }
    case
}

/// Runs every case of the file through `answer`, in order.
///
/// # Panics
/// If the file cannot be read or an answer differs from the expected one; all differences of the
/// file are shown. With `REWRITE=1` the file is rewritten instead.
pub fn run_file(path: &Path, mut answer: impl FnMut(&Case) -> String) {
    let text = std::fs::read_to_string(path)
        .unwrap_or_else(|e| panic!("cannot read {}: {e}", path.display()));
    let (mut rewritten, mut wrong) = (String::new(), String::new());
    for case in parse(&text) {
        let mut got = answer(&case).trim_end().to_string();
        if !got.is_empty() {
            got.push('\n');
        }
        assert!(!got.contains("\n\n"), "{}:{}: empty line in an answer", path.display(), case.line);
        let _ = writeln!(rewritten, "{}{got}", case.source);
        if got != case.expected {
            let at = format!("{}:{}: {}", path.display(), case.line, case.command);
            let _ = write!(wrong, "{at}\n--- expected\n{}--- got\n{got}\n", case.expected);
        }
    }
    if std::env::var_os("REWRITE").is_some() {
        let rewritten = format!("{}\n", rewritten.trim_end());
        if rewritten != text {
            write(path, &rewritten);
        }
        return;
    }
    assert!(wrong.is_empty(), "{wrong}REWRITE=1 rewrites what is expected");
}

/// Runs `run` for every `.txt` file of a folder, in name order, and returns how many there were.
pub fn for_each_file(folder: &Path, mut run: impl FnMut(&Path)) -> usize {
    let entries = std::fs::read_dir(folder)
        .unwrap_or_else(|e| panic!("cannot read {}: {e}", folder.display()));
    let mut paths: Vec<_> = entries.filter_map(|e| Some(e.ok()?.path())).collect();
    paths.retain(|p| p.extension().is_some_and(|e| e == "txt"));
    paths.sort();
    for p in &paths {
        run(p);
    }
    paths.len()
}

/// Tests rewrite their own sources here; nothing of this is part of a database.
#[allow(clippy::disallowed_methods, reason = "pictures are files of the source")]
fn write(path: &Path, text: &str) {
    std::fs::write(path, text).unwrap_or_else(|e| panic!("cannot write {}: {e}", path.display()));
}
