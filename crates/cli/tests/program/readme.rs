//! The README's program, as printed there, compiles and does what the README says; its commands are
//! commands that exist.
#![allow(clippy::disallowed_methods, reason = "a test sets up its world by itself")]

use std::process::Command;

use lithify::{Db, Settings, WriteBatch};

/// The program, between the marks that the test below looks for.
fn program() -> lithify::Result<()> {
    // README begins
    let db = Db::open("fruit", Settings::default())?;
    db.put("apple", "red")?;
    db.put("banana", "yellow")?;
    assert_eq!(db.get("apple")?.as_deref(), Some(&b"red"[..]));

    let mut batch = WriteBatch::new(); // all of it or nothing
    batch.put("cherry", "dark red")?;
    batch.delete("banana")?;
    db.write(&batch)?;

    for entry in db.range("b"..) {
        let (key, value) = entry?; // an error ends an iteration; it is never silent
        assert_eq!((&key[..], &value[..]), (&b"cherry"[..], &b"dark red"[..]));
    }
    db.close()
    // README ends
}

#[test]
fn the_program_is_the_one_in_the_readme() {
    let source = include_str!("readme.rs");
    let readme = include_str!("../../../../README.md");
    let between = |text: &str, from: &str, to: &str| {
        let start = text.find(from).expect(from) + from.len();
        let end = start + text[start..].find(to).expect(to);
        let lines: Vec<String> = text[start..end]
            .lines()
            .map(|l| l.trim().to_owned())
            .filter(|l| !l.is_empty())
            .collect();
        lines
    };
    let tested = between(source, "// README begins", "// README ends");
    let printed = between(readme, "fn main() -> lithify::Result<()> {", "\n}\n");
    assert_eq!(tested, printed);

    let scratch = tempfile::tempdir().unwrap();
    std::env::set_current_dir(scratch.path()).unwrap();
    program().unwrap();
    assert!(scratch.path().join("fruit/CURRENT").exists());
}

#[test]
fn the_commands_of_the_readme_exist() {
    let readme = include_str!("../../../../README.md");
    let mut found = 0;
    for line in readme.lines().filter_map(|l| l.trim().strip_prefix("lithify ")) {
        let name = line.split(' ').next().unwrap();
        let help = Command::new(env!("CARGO_BIN_EXE_lithify")).args([name, "--help"]).output();
        assert!(help.unwrap().status.success(), "lithify {name} is in the README only");
        found += 1;
    }
    assert!(found > 5, "the README shows {found} commands");
}
