//! The user guide: its commands, in its order, do what it says; its program compiles and is the one that is printed.
#![allow(clippy::disallowed_methods, reason = "a test sets up its world by itself")]

use std::process::Command;

use lithify::{Db, Settings};

const GUIDE: &str = include_str!("../../../../docs/guide.md");

/// The lines between marks of that language.
fn blocks(language: &str) -> Vec<&'static str> {
    let mut inside = false;
    let mut lines = Vec::new();
    for line in GUIDE.lines() {
        match line.strip_prefix("```") {
            Some(mark) => inside = mark == language,
            None if inside => lines.push(line),
            None => {}
        }
    }
    lines
}

#[test]
fn the_commands_of_the_guide_work_in_its_order() {
    let scratch = tempfile::tempdir().unwrap();
    let rows = "name\tcolour\ncherry\tdark red\npear\tgreen\n";
    std::fs::write(scratch.path().join("fruit.tsv"), rows).unwrap();
    let commands = blocks("sh");
    assert!(commands.len() > 15, "{commands:?}");
    let mut said = std::collections::BTreeMap::new();
    for line in commands {
        let words: Vec<&str> = line.split_whitespace().collect();
        assert_eq!(words[0], "lithify", "{line}");
        let out = Command::new(env!("CARGO_BIN_EXE_lithify"))
            .args(&words[1..])
            .current_dir(scratch.path())
            .env_remove("LITHIFY_DB")
            .output()
            .unwrap();
        assert!(out.status.success(), "{line}: {}", String::from_utf8_lossy(&out.stderr));
        said.insert(line, String::from_utf8(out.stdout).unwrap());
    }
    let of = |line: &str| &said[line];
    assert!(of("lithify settings --explain shop").contains("memory_budget = 256MiB"));
    assert!(of("lithify load --db shop --strict --value colour fruit.tsv").contains("2 rows"));
    assert!(of("lithify backup verify backups").contains("backup 2 is good"));
    assert!(of("lithify dump shop-now").contains("banana\tyellow"));
    assert!(of("lithify verify shop-yesterday").contains("all good, 3 keys"));
    assert!(of("lithify salvage shop --to shop-salvaged").contains("4 keys"));
    assert!(of("lithify compact --settle shop --for rocksdb-7").contains("RocksDB 6.6"));
}

/// The program, between the marks that the test below looks for.
fn program() -> lithify::Result<Db> {
    // guide begins
    let settings = Settings {
        memory_budget: 256 << 20, // bytes, for memtables, buffers, filters and cached blocks
        compaction_threads: 2,    // compactions that may run at once
        disk_budget: Some(20 << 30), // bytes of tables; None is what the disk has
        ..Settings::default()
    };
    let db = Db::open("shop", settings)?;
    // guide ends
    Ok(db)
}

#[test]
fn the_program_of_the_guide_is_one() {
    let source = include_str!("guide.rs");
    let begins = source.find("// guide begins\n").unwrap() + "// guide begins\n".len();
    let tested = &source[begins..begins + source[begins..].find("    // guide ends").unwrap()];
    let plain = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(plain(tested), plain(&blocks("rust").join("\n")));
    // It is compiled above; where it is run it would leave a database, so its settings alone are tried.
    let _: fn() -> lithify::Result<Db> = program;
    let settings = Settings { memory_budget: 256 << 20, ..Settings::default() };
    assert_eq!(settings.settled().memtable_bytes, 32 << 20);
}
