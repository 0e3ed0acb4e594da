//! One convention for naming a database: `--db` of every command, the directory alone where a command takes no other
//! argument, and the variable `LITHIFY_DB`. What is made from the same definitions: help, completions and manuals.
#![allow(clippy::disallowed_methods, reason = "a test sets up its world by itself")]

use std::process::{Command, Output};

use crate::common::{lithify, ok};

fn with_variable(db: &str, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lithify"));
    command.args(args).env("LITHIFY_DB", db).output().unwrap()
}

#[test]
fn a_database_is_named_three_ways() {
    let scratch = tempfile::tempdir().unwrap();
    let path = |name: &str| scratch.path().join(name).to_str().unwrap().to_owned();
    let (db, other) = (path("db"), path("other"));
    assert!(with_variable(&db, &["put", "apple", "red"]).status.success());
    ok(&["put", "--db", &other, "pear", "green"]);
    assert_eq!(with_variable(&db, &["get", "apple"]).stdout, b"red\n");
    for command in ["scan", "stats", "dump", "compact", "verify", "picture", "explain"] {
        let said = |out: Output| {
            assert!(out.status.success(), "{command}: {}", String::from_utf8_lossy(&out.stderr));
            // Times differ.
            String::from_utf8(out.stdout).unwrap().lines().count()
        };
        let plain = said(lithify(&[command, &db]));
        assert_eq!(said(lithify(&[command, "--db", &db])), plain, "{command}");
        assert_eq!(said(with_variable(&db, &[command])), plain, "{command}");
    }
    let both = with_variable(&db, &["scan", &other]);
    assert_eq!(both.stdout, b"pear\tgreen\n", "what is typed goes before the variable");
    assert_eq!(ok(&["family", "list", &db]), "default\n");
    assert_eq!(with_variable(&db, &["family", "list"]).stdout, b"default\n");
    let salvaged = path("salvaged");
    assert!(with_variable(&db, &["salvage", "--to", &salvaged]).status.success());
    assert!(ok(&["compact", "--settle", "--db", &db]).contains("and later open"));
}

#[test]
fn help_completions_and_manuals_come_from_the_same_definitions() {
    assert_eq!(ok(&["help", "scan"]), ok(&["scan", "--help"]));
    assert!(ok(&["help"]).contains("LITHIFY_DB"));
    for shell in ["bash", "zsh", "fish"] {
        let text = ok(&["completions", shell]);
        for word in ["lithify", "checkpoint", "skip-bad", "value-file"] {
            assert!(text.contains(word), "{shell}: {word}");
        }
    }
    if let Ok(bash) =
        Command::new("bash").args(["-n", "-c", &ok(&["completions", "bash"])]).status()
    {
        assert!(bash.success(), "bash reads its completions");
    }
    assert!(ok(&["man"]).starts_with(".ie"), "{}", ok(&["man"]));
    assert!(ok(&["man", "backup", "create"]).contains("lithify\\-backup\\-create"));
    let scratch = tempfile::tempdir().unwrap();
    ok(&["man", "--to", scratch.path().to_str().unwrap()]);
    let pages = std::fs::read_dir(scratch.path()).unwrap().count();
    assert!(pages > 25, "{pages} pages");
    assert!(scratch.path().join("lithify-scan.1").exists());
}

#[test]
fn sizes_are_written_as_people_write_them() {
    let budget = |text: &str| {
        let told = ok(&["settings", "--json", "--set", &format!("disk_budget={text}")]);
        let all: serde_json::Value = serde_json::from_str(&told).unwrap();
        let found = all.as_array().unwrap().iter().find(|s| s["name"] == "disk_budget").unwrap();
        found["value"].as_str().unwrap().to_owned()
    };
    assert_eq!(budget("10GB"), "10GB");
    assert_eq!(budget("10gb"), "10GB");
    assert_eq!(budget("10000000000"), "10GB");
    assert_eq!(budget("10 GiB"), "10GiB");
    assert_eq!(budget("10g"), "10GiB");
    assert_eq!(budget("2TB"), "2TB");
    assert_eq!(budget("5368709120B"), "5GiB");
    let out = lithify(&["settings", "--set", "disk_budget=10XB"]);
    assert_eq!(out.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&out.stderr).contains("powers of 1000"));
}

/// Beside a program that writes: who has it open, what grows, and the tree.
#[test]
fn top_shows_a_database_that_a_program_writes() {
    let scratch = tempfile::tempdir().unwrap();
    let dir = scratch.path().join("db").to_str().unwrap().to_owned();
    let settings = lithify::Settings::default().memtable_bytes(256 << 10);
    let db = lithify::Db::open(&dir, settings).unwrap();
    let child = Command::new(env!("CARGO_BIN_EXE_lithify"))
        .args(["top", &dir, "--count", "2"])
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    // For as long as it looks: what comes between two looks is told by the second.
    let out = std::thread::spawn(move || child.wait_with_output().unwrap());
    let mut n = 0u64;
    let out = loop {
        for _ in 0..1000 {
            n += 1;
            db.put(n.to_be_bytes(), [n as u8; 100]).unwrap();
        }
        if out.is_finished() {
            break out.join().unwrap();
        }
    };
    db.close().unwrap();
    assert!(out.status.success());
    let text = String::from_utf8(out.stdout).unwrap();
    let process = format!("Process {} has the database open", std::process::id());
    assert_eq!(text.matches(&process).count(), 2, "{text}");
    let second = &text[text.rfind(&process).unwrap()..];
    assert!(second.contains("logs    ") && second.contains("tables  "), "{second}");
    // Keys in order: what is in level 0 may just have been moved.
    let level = |line: &str| line.starts_with('L') && line.contains(" file");
    assert!(second.lines().any(level) && second.contains("write amplification"), "{second}");
    let after = ok(&["top", &dir, "--count", "1"]);
    assert!(after.contains("no program has it open"), "{after}");
}

#[test]
fn stats_count_logs_and_pictures_fit() {
    let scratch = tempfile::tempdir().unwrap();
    let db = scratch.path().join("db").to_str().unwrap().to_owned();
    ok(&["put", "--db", &db, "a key with-signs=in:it", "1"]);
    let stats: serde_json::Value = serde_json::from_str(&ok(&["stats", &db, "--json"])).unwrap();
    assert_eq!(stats["logs"], 1);
    assert!(stats["log_bytes"].as_u64().unwrap() > 20, "{stats}");
    assert!(ok(&["stats", &db]).contains("1 file"), "{}", ok(&["stats", &db]));
    ok(&["put", "--db", &db, &"k".repeat(60), "2"]);
    ok(&["compact", "--db", &db]);
    let picture = ok(&["picture", &db]);
    assert!(picture.lines().all(|line| line.len() <= 80), "{picture}");
    // The keys that it names are taken as they stand there.
    let first = picture.lines().next().unwrap().strip_prefix("first key").unwrap().trim();
    assert_eq!(ok(&["get", "--db", &db, first]), "1\n");
}
