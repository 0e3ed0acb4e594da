//! Wrong uses of the command line, as a person makes them, with what they are told: a picture test. Each ends with
//! a code that is not zero, a sentence that names the cause and one that names the way out, and nothing on disk is
//! another than before.
//!
//! Add a line `$ lithify ...` to `wrong_uses.txt`, run `REWRITE=1 cargo test -p lithify-cli --test program
//! wrong_uses`, and read what was written below it.
#![allow(clippy::disallowed_methods, reason = "a test sets up its world by itself")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use lithify::{Backups, ColumnFamilyOptions, Db, Settings};

/// How a way out begins, whether it is ours or of the parser of command lines.
const WAYS: [&str; 4] = ["hint: ", "Usage: ", "  tip: ", "For more information, try "];

/// A directory in which people err: a database, a backup of it, files and directories of other kinds.
fn world() -> tempfile::TempDir {
    let world = tempfile::tempdir().unwrap();
    let path = |name: &str| world.path().join(name);
    let db = Db::open(path("fruit"), Settings::default()).unwrap();
    let trees = db.create_column_family("trees", ColumnFamilyOptions::new()).unwrap();
    for (key, value) in [("apple", "red"), ("banana", "yellow"), ("cherry", "dark red")] {
        db.put(key, value).unwrap();
        trees.put(value, key).unwrap();
    }
    Backups::open(path("backups")).unwrap().create(&db, &mut |_| {}).unwrap();
    db.put("late", "in the log").unwrap();
    db.close().unwrap();
    for dir in ["empty", "full"] {
        std::fs::create_dir(path(dir)).unwrap();
    }
    for (name, text) in [
        ("full/photo.jpg", "a photo"),
        ("notes.txt", "some notes\n"),
        ("rows", "k\tv\na\t1\n"),
        ("rows.tsv", "k\tv\na\t1\nb\nc\t3\n"),
        ("open.csv", "k,v\na,\"1\nb,2\n"),
    ] {
        std::fs::write(path(name), text).unwrap();
    }
    world
}

/// Every file and directory below `dir`, with what it has.
fn content(dir: &Path) -> BTreeMap<PathBuf, Option<Vec<u8>>> {
    let mut all = BTreeMap::new();
    let mut left = vec![dir.to_owned()];
    while let Some(next) = left.pop() {
        for entry in std::fs::read_dir(&next).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => {
                    all.insert(path.clone(), None);
                    left.push(path);
                }
                false => drop(all.insert(path.clone(), Some(std::fs::read(&path).unwrap()))),
            }
        }
    }
    all
}

/// The words of a command line; single quotes hold a word together.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quoted) = (Vec::new(), None::<String>, false);
    for c in line.chars() {
        match c {
            '\'' => {
                quoted = !quoted;
                word.get_or_insert_default();
            }
            ' ' if !quoted => words.extend(word.take()),
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

fn run(dir: &Path, line: &str) -> Output {
    let words = words(line);
    assert_eq!(words[0], "lithify", "{line}");
    Command::new(env!("CARGO_BIN_EXE_lithify"))
        .args(&words[1..])
        .current_dir(dir)
        .env_remove("LITHIFY_DB")
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

/// A command with its code and what it said, as the file of pictures has it.
fn picture(line: &str, out: &Output) -> String {
    let said = String::from_utf8(out.stderr.clone()).unwrap();
    let code = out.status.code().map_or("killed".to_owned(), |code| code.to_string());
    let said: String =
        said.trim_end().lines().map(|l| format!("| {l}").trim_end().to_owned() + "\n").collect();
    format!("$ {line}\n{said}= {code}\n")
}

#[test]
fn wrong_uses_are_told_why_and_what_to_do() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/program/wrong_uses.txt");
    let text = std::fs::read_to_string(&file).unwrap();
    let head: String =
        text.lines().take_while(|l| !l.starts_with('$')).map(|l| l.to_owned() + "\n").collect();
    let lines: Vec<&str> = text.lines().filter_map(|l| l.strip_prefix("$ ")).collect();
    assert!(lines.len() >= 60, "{} wrong uses", lines.len());
    let world = world();
    let before = content(world.path());
    let (mut pictures, mut wrong) = (Vec::new(), Vec::new());
    for line in &lines {
        let out = run(world.path(), line);
        let shown = picture(line, &out);
        let said = String::from_utf8_lossy(&out.stderr);
        let cause = said.lines().any(|l| l.starts_with("error: ") && l.len() > "error: ".len());
        let way = said.lines().any(|l| WAYS.iter().any(|way| l.starts_with(way)));
        // Asked for nothing, the program prints its help.
        let help = *line == "lithify";
        if !matches!(out.status.code(), Some(1 | 2)) || !(help || (cause && way)) {
            wrong.push(shown.clone());
        }
        let after = content(world.path());
        if after != before {
            let changed: Vec<_> =
                after.iter().filter(|(k, v)| before.get(*k) != Some(v)).map(|(k, _)| k).collect();
            panic!("`{line}` changed {changed:?}");
        }
        pictures.push(shown);
    }
    let all = head + &pictures.join("\n");
    if std::env::var_os("REWRITE").is_some() {
        std::fs::write(&file, &all).unwrap();
    }
    assert!(wrong.is_empty(), "without a cause, a way out or a code:\n{}", wrong.join("\n"));
    assert_eq!(all, text, "REWRITE=1 writes it anew");
}
