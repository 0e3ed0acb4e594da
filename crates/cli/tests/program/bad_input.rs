//! Bad input to the command line: each mistake gives exit code 1 or 2 and a sentence that helps,
//! never a panic, and never harm to what is stored.
#![allow(clippy::disallowed_methods, reason = "a test sets up its world by itself")]

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use lithify::{Db, Settings};

use crate::common::lithify;

/// Runs the binary, which must fail with `code` and say each of `words`.
#[track_caller]
fn fails(code: i32, args: &[&str], words: &[&str]) {
    let out = lithify(args);
    let mut err = String::from_utf8_lossy(&out.stderr).into_owned();
    if args[0] == "bench" {
        // Why a run is not valid is part of its report.
        let report = String::from_utf8_lossy(&out.stdout);
        err.extend(report.lines().filter(|line| line.contains("INVALID")));
    }
    assert_eq!(out.status.code(), Some(code), "lithify {args:?}: {err}");
    assert!(!err.contains("panicked"), "lithify {args:?} panicked: {err}");
    for word in words {
        assert!(err.contains(word), "lithify {args:?} does not say `{word}`: {err}");
    }
    // A sentence, a hint, clap's usage: not a page, and no traces of code.
    assert!(err.lines().count() <= 12 && !err.contains(".rs:"), "lithify {args:?}: {err}");
}

struct Place {
    scratch: tempfile::TempDir,
}

impl Place {
    /// A directory with a database `db` of a few hundred keys in a table, and some in the log.
    fn new() -> Place {
        let place = Place { scratch: tempfile::tempdir().unwrap() };
        let db = Db::open(place.path("db"), Settings::default()).unwrap();
        for i in 0..500 {
            db.put(format!("key{i:05}"), format!("value of {i}").repeat(20)).unwrap();
        }
        db.flush().unwrap();
        db.put("late", "in the log").unwrap();
        db.close().unwrap();
        place
    }
    fn path(&self, name: &str) -> PathBuf {
        self.scratch.path().join(name)
    }
    fn text(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }
    fn file(&self, name: &str, content: &[u8]) -> String {
        std::fs::write(self.path(name), content).unwrap();
        self.text(name)
    }
    fn db(&self) -> String {
        self.text("db")
    }
    fn table(&self) -> PathBuf {
        table_in(&self.path("db"))
    }
}

fn table_in(dir: &Path) -> PathBuf {
    let mut files = std::fs::read_dir(dir).unwrap().map(|e| e.unwrap().path());
    files.find(|p| p.extension().is_some_and(|e| e == "sst")).expect("the database has a table")
}

/// True if this process may read and write whatever it likes, so that permissions mean nothing.
fn is_root() -> bool {
    let out = Command::new("id").arg("-u").output();
    out.is_ok_and(|out| out.stdout == b"0\n")
}

#[test]
fn what_is_not_understood() {
    fails(2, &["frobnicate"], &["frobnicate", "--help"]);
    fails(2, &["get", "--db"], &["--db"]);
    fails(2, &["get", "--db", "x"], &["KEY"]);
    fails(2, &["get", "--db", "x", "--colour", "key"], &["--colour"]);
    fails(2, &["scan", "--db", "x", "--limit", "many"], &["many", "--limit"]);
    fails(2, &["scan", "--db", "x", "--limit", "-1"], &["-1"]);
    fails(2, &["scan", "--db", "x", "--hex", "--raw"], &["--hex", "--raw"]);
    fails(2, &["delete", "--db", "x", "--from", "a"], &["--to"]);
    fails(2, &["delete", "--db", "x"], &["keys"]);
    fails(2, &["put", "--db", "x", "a\\q", "v"], &["a\\q", "backslash"]);
    fails(2, &["put", "--db", "x", "--hex", "abc", "00"], &["abc", "hexadecimal"]);
    fails(2, &["bench", "--workloads", "fillwrong"], &["fillwrong"]);
    fails(2, &["table"], &["dump", "verify"]);
    assert!(!Path::new("x").exists(), "a misunderstood command made a database");
}

#[test]
fn bench_settings_that_make_no_sense() {
    let place = tempfile::tempdir().unwrap();
    let dir = place.path().join("b").to_str().unwrap().to_owned();
    let tiny = ["bench", "--workloads", "fillseq", "--num", "10", "--db", &dir, "--touch-memory=0"];
    let with = |more: &[&'static str]| [&tiny[..], more].concat();
    fails(2, &with(&["--policy", "magic"]), &["magic", "leveled"]);
    fails(1, &["bench", "--num", "10", "--db", "/dev/null"], &["/dev/null"]);
    fails(2, &with(&["--timeline", "jobs.png"]), &["jobs.png", ".svg"]);
    let compare = |more: &[&'static str]| [&["bench", "compare"], &tiny[1..], more].concat();
    fails(2, &compare(&["--presets", "hybrid,magic"]), &["magic", "bucket-df"]);
    fails(2, &compare(&["--throttle-latency", "9"]), &["--throttle-latency", "--presets"]);
    fails(2, &compare(&["--timeline", "jobs.svg"]), &["--timeline", "--presets"]);
    fails(2, &compare(&["--rounds", "0"]), &["--rounds 0"]);
    fails(2, &compare(&["--use-existing-db"]), &["--use-existing-db"]);
    fails(2, &compare(&["--also", "fillrandom:speed=3"]), &["--also", "speed"]);
    let matrix = |more: &[&'static str]| [&["bench", "matrix", "--no-peer"], more].concat();
    fails(2, &matrix(&["--workloads", "fillrandom"]), &["--loads", "--shapes"]);
    fails(2, &matrix(&["--rounds", "0"]), &["round"]);
    let tiered = with(&["--policy", "tiered", "--compaction-pri", "round-robin"]);
    fails(2, &tiered, &["compaction_pri = round-robin", "policy = tiered"]);
    fails(2, &with(&["--subcompactions", "0"]), &["--subcompactions", "at least 1"]);
    fails(2, &with(&["--subcompactions", "65"]), &["max_subcompactions = 65"]);
    fails(2, &compare(&["--presets", "hybrid,hybrid:sub"]), &["hybrid:sub", ":subN"]);
    fails(2, &with(&["--level-multiplier", "2.5"]), &["--level-multiplier 2.5", "whole"]);
    fails(2, &with(&["--memtables", "1"]), &["memtable_count = 1"]);
    fails(2, &with(&["--block-size", "5000"]), &["5000", "8192"]);
    fails(2, &with(&["--rate", "NaN"]), &["--rate", "positive"]);
    fails(2, &with(&["--key-size", "100MiB"]), &["--key-size", "1 to 1024"]);
    fails(2, &with(&["--set", "bloom_bits=51"]), &["bloom_bits = 51", "0 to 50"]);
    fails(2, &["put", "--db", &dir, "--set", "bloom_bits=51", "k", "v"], &["0 to 50"]);
    assert!(!Path::new(&dir).exists(), "a misunderstood command made a directory");
    for flag in ["--json", "--timeline"] {
        fails(1, &with(&[flag, "/nonexistent/x.svg"]), &[flag, "can't be written", "hint: "]);
        assert!(!Path::new(&dir).exists(), "{flag}: the run began");
    }
    let file = place.path().join("told.json");
    let file = file.to_str().unwrap();
    let units = with(&["--key-size", "16B", "--value-size", "1KiB", "--json", "told"]);
    let units: Vec<&str> = units.into_iter().map(|w| if w == "told" { file } else { w }).collect();
    assert!(lithify(&units).status.success());
    assert!(std::fs::read_to_string(file).unwrap().contains("\"value-size\": 1024"));
}

#[test]
fn no_database_there() {
    let place = tempfile::tempdir().unwrap();
    let missing = place.path().join("none").to_str().unwrap().to_owned();
    let empty = place.path().to_str().unwrap().to_owned();
    for dir in [&missing, &empty] {
        let (copy, told) = (format!("{dir}/copy"), [dir.as_str(), "no database", "hint: "]);
        for command in ["scan", "stats", "compact", "verify"] {
            fails(1, &[command, "--db", dir], &told);
        }
        fails(1, &["get", "--db", dir, "key"], &told);
        fails(1, &["delete", "--db", dir, "key"], &told);
        fails(1, &["picture", dir], &told);
        fails(1, &["explain", dir], &told);
        fails(1, &["salvage", dir, "--to", &copy], &told);
        fails(1, &["checkpoint", "--db", dir, &copy], &told);
    }
    assert!(!Path::new(&missing).exists(), "a command that only reads made a directory");
    let file = place.path().join("file");
    std::fs::write(&file, "not a directory").unwrap();
    fails(1, &["put", "--db", file.to_str().unwrap(), "k", "v"], &["file"]);
    fails(1, &["scan", "--db", file.to_str().unwrap()], &["file"]);
}

#[test]
fn keys_that_cannot_be() {
    let place = Place::new();
    let db = place.db();
    // The empty one can be.
    assert!(lithify(&["put", "--db", &db, "", "value"]).status.success());
    assert_eq!(lithify(&["get", "--db", &db, ""]).stdout, b"value\n");
    assert!(lithify(&["delete", "--db", &db, ""]).status.success());
    fails(2, &["delete", "--db", &db, "--from", "b", "--to", "a"], &["swap"]);
    fails(2, &["compact", "--db", &db, "--from", "b", "--to", "a"], &["swap"]);
    fails(2, &["scan", "--db", &db, "--from", "b", "--to", "a"], &["swap"]);
    fails(1, &["get", "--db", &db, "nothing"], &["no key `nothing`"]);
    fails(1, &["get", "--db", &db, "no", "none"], &["2 keys"]);
    assert_eq!(lithify(&["get", "--db", &db, "late"]).stdout, b"in the log\n");
}

#[test]
fn a_database_in_use() {
    let place = Place::new();
    let held = Db::open(place.path("db"), Settings::default()).unwrap();
    let db = place.db();
    fails(1, &["put", "--db", &db, "k", "v"], &["open in another handle or process", "hint: "]);
    fails(1, &["compact", "--db", &db], &["open in another"]);
    // Looking is allowed.
    assert!(lithify(&["picture", &db]).status.success());
    assert_eq!(lithify(&["get", "--db", &db, "late"]).stdout, b"in the log\n");
    held.put("k", "mine").unwrap();
    held.close().unwrap();
    assert_eq!(lithify(&["get", "--db", &db, "k"]).stdout, b"mine\n");
}

#[test]
fn without_permission() {
    use std::os::unix::fs::PermissionsExt;
    if is_root() {
        let _ = writeln!(std::io::stderr(), "bad_input: root may do anything: permissions skipped");
        return;
    }
    let place = Place::new();
    let lock = |mode| {
        std::fs::set_permissions(place.path("db"), std::fs::Permissions::from_mode(mode)).unwrap();
    };
    lock(0o000);
    fails(1, &["get", "--db", &place.db(), "late"], &["ermission", "hint: "]);
    lock(0o500);
    fails(1, &["put", "--db", &place.db(), "k", "v"], &["ermission"]);
    lock(0o700);
}

#[test]
fn foreign_and_broken_tables() {
    let place = Place::new();
    let table = std::fs::read(place.table()).unwrap();
    let cut = place.file("cut.sst", &table[..table.len() - 7]);
    let empty = place.file("empty.sst", b"");
    let text = place.file("text.sst", &b"this is no table. ".repeat(100));
    let mut flipped = table.clone();
    flipped[table.len() / 3] ^= 1;
    let flipped = place.file("flipped.sst", &flipped);
    for file in [&cut, &empty, &text] {
        fails(1, &["table", "verify", file], &[file]);
        fails(1, &["table", "dump", file], &[file]);
    }
    fails(1, &["table", "verify", &flipped], &[&flipped, "byte"]);
    fails(1, &["table", "verify", &place.text("absent.sst")], &["absent.sst"]);
    fails(1, &["table", "dump", &place.db()], &[&place.db(), "lithify verify"]);
    let good = place.table().to_str().unwrap().to_owned();
    assert!(lithify(&["table", "verify", &good]).status.success());
    // Each is looked at, whatever the others are like.
    let several = lithify(&["table", "verify", &cut, &good, &flipped]);
    let text = String::from_utf8_lossy(&several.stdout);
    let said: Vec<&str> = text.lines().filter_map(|l| l.split("; ").next()).collect();
    assert_eq!(said, [format!("{cut}: bad"), format!("{good}: good"), format!("{flipped}: bad")]);
    assert_eq!(several.status.code(), Some(1));
}

#[test]
fn many_flips_and_cuts_of_a_table() {
    let place = Place::new();
    let table = std::fs::read(place.table()).unwrap();
    let mut state = 7u64;
    for round in 0..40 {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        let at = (state >> 33) as usize % table.len();
        let mut broken = table.clone();
        if round % 2 == 0 {
            broken[at] ^= 1 << (state >> 61);
        } else {
            broken.truncate(at);
        }
        let file = place.file("broken.sst", &broken);
        let out = lithify(&["table", "verify", &file]);
        let err = String::from_utf8_lossy(&out.stderr);
        assert!(!err.contains("panicked"), "round {round}: {err}");
        assert_eq!(out.status.code(), Some(1), "round {round}: byte {at} went unnoticed");
    }
}

#[test]
fn broken_databases_name_the_file() {
    let broken = |name: &str, change: &dyn Fn(&mut Vec<u8>)| {
        let place = Place::new();
        let mut files = std::fs::read_dir(place.path("db")).unwrap().map(|e| e.unwrap().path());
        let file = files
            .find(|p| p.file_name().unwrap().to_str().unwrap().contains(name))
            .unwrap_or_else(|| panic!("the database has no {name}"));
        let mut content = std::fs::read(&file).unwrap();
        change(&mut content);
        std::fs::write(&file, content).unwrap();
        (place, file.file_name().unwrap().to_str().unwrap().to_owned())
    };
    let (place, file) = broken("CURRENT", &|c| *c = b"MANIFEST-x\n".to_vec());
    fails(1, &["scan", "--db", &place.db()], &[&file]);
    let (place, file) = broken("MANIFEST", &|c| c[20] ^= 0x40);
    fails(1, &["scan", "--db", &place.db()], &[&file]);
    let (place, file) = broken(".sst", &|c| c[1000] ^= 1);
    fails(1, &["scan", "--db", &place.db()], &[&file, "hint: "]);
    let out = lithify(&["verify", "--db", &place.db()]);
    assert_eq!(out.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&out.stdout).contains(&file), "verify names the table");
    let (place, file) = broken(".sst", &|c| c.truncate(100));
    fails(1, &["get", "--db", &place.db(), "key00001"], &[&file]);
    fails(1, &["put", "--db", "/dev/null/db", "k", "v"], &["/dev/null"]);
}

#[test]
fn input_that_cannot_be_loaded() {
    let place = Place::new();
    let db = place.db();
    let odd = place.file("rows.odd", b"a\tb\n");
    fails(2, &["load", "--db", &db, &odd], &["--format"]);
    fails(1, &["load", "--db", &db, &place.text("absent.tsv")], &["absent.tsv"]);
    fails(1, &["load", "--db", &db, "--format", "tsv", &place.db()], &["directory"]);
    let tsv = place.file("rows.tsv", b"name\tcolour\napple\tred\n");
    fails(2, &["load", "--db", &db, "--key", "taste", &tsv], &["taste", "name, colour"]);
    let json = place.file("rows.jsonl", b"{\"id\": 1}\n");
    fails(2, &["load", "--db", &db, &json], &["--key"]);
    fails(1, &["load", "--db", &db, "--key", "no", &json], &["no row"]);
    let text = place.file("text.bin", b"this is no length-prefixed file at all");
    fails(1, &["load", "--db", &db, &text], &["length-prefixed", "0 rows loaded"]);
    let half = place.file("half.bin", &[1, 0, 0, 0, 1, 0, 0, 0, b'k', b'v', 9, 0]);
    fails(1, &["load", "--db", &db, &half], &["ends inside", "1 row loaded"]);
    assert_eq!(lithify(&["get", "--db", &db, "k"]).stdout, b"v\n", "rows before the end are kept");
}

#[test]
fn a_checkpoint_never_overwrites() {
    let place = Place::new();
    std::fs::create_dir(place.path("there")).unwrap();
    std::fs::write(place.path("there/precious"), "x").unwrap();
    fails(1, &["checkpoint", "--db", &place.db(), &place.text("there")], &["there"]);
    assert_eq!(std::fs::read(place.path("there/precious")).unwrap(), b"x");
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let place = Place::new();
    let mut child = Command::new(env!("CARGO_BIN_EXE_lithify"))
        .args(["scan", "--db", &place.db()])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let out = child.wait_with_output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
}

/// Every path below the place, and the content of files.
fn everything(place: &Place) -> Vec<(PathBuf, Vec<u8>)> {
    let (mut found, mut todo) = (Vec::new(), vec![place.scratch.path().to_owned()]);
    while let Some(dir) = todo.pop() {
        for entry in std::fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() && !path.is_symlink() {
                todo.push(path.clone());
            }
            found.push((path.clone(), std::fs::read(&path).unwrap_or_default()));
        }
    }
    found.sort();
    found
}

#[test]
fn a_directory_of_other_files_is_no_place_for_a_database() {
    let place = Place::new();
    std::fs::create_dir(place.path("photos")).unwrap();
    std::fs::write(place.path("photos/beach.jpg"), "sand").unwrap();
    let (photos, rows) = (place.text("photos"), place.file("rows.tsv", b"k\tv\na\tb\n"));
    let before = everything(&place);
    let words = ["photos", "beach.jpg", "create_among_files"];
    fails(1, &["put", "--db", &photos, "k", "v"], &words);
    fails(1, &["load", "--db", &photos, &rows], &words);
    fails(1, &["family", "create", "--db", &photos, "trees"], &words);
    fails(1, &["backup", "create", "--db", &place.db(), &photos], &["photos", "beach.jpg"]);
    fails(1, &["checkpoint", "--db", &place.db(), &photos], &["photos", "beach.jpg"]);
    fails(1, &["salvage", &place.db(), "--to", &photos], &["photos", "beach.jpg"]);
    let without_db = |all: Vec<(PathBuf, Vec<u8>)>| {
        let db = place.path("db");
        all.into_iter().filter(|(path, _)| !path.starts_with(&db)).collect::<Vec<_>>()
    };
    assert!(without_db(everything(&place)) == without_db(before), "something was written");
    let insisting = ["put", "--db", &photos, "--create-among-files", "k", "v"];
    assert!(lithify(&insisting).status.success());
    assert_eq!(lithify(&["get", "--db", &photos, "k"]).stdout, b"v\n");
}

#[test]
fn a_copy_is_not_made_in_the_database() {
    let place = Place::new();
    std::os::unix::fs::symlink(place.path("db"), place.path("link")).unwrap();
    let relative = format!("{}/../db/sub", place.db());
    let (inside, linked) = (format!("{}/sub", place.db()), format!("{}/sub", place.text("link")));
    let names = |place: &Place| {
        let paths = everything(place).into_iter().map(|(path, _)| path);
        // Logs and manifests change with every opening.
        let folder_or_new = |path: &PathBuf| path.is_dir() || !path.starts_with(place.path("db"));
        paths.filter(folder_or_new).collect::<Vec<_>>()
    };
    let before = names(&place);
    for target in [&place.db(), &inside, &linked, &relative, &place.text("")] {
        fails(1, &["backup", "create", "--db", &place.db(), target], &["choose another"]);
        fails(1, &["checkpoint", "--db", &place.db(), target], &["choose another"]);
        fails(1, &["salvage", &place.db(), "--to", target], &["choose another"]);
    }
    assert_eq!(names(&place), before);
    assert!(lithify(&["backup", "create", "--db", &place.db(), &place.text("b")]).status.success());
    fails(1, &["backup", "restore", &place.text("b"), &place.text("b/new")], &["choose another"]);
    assert!(!place.path("b/new").exists());
}

#[test]
fn every_backup_goes_only_if_that_is_said() {
    let place = Place::new();
    let backups = place.text("backups");
    assert!(lithify(&["backup", "create", "--db", &place.db(), &backups]).status.success());
    fails(
        1,
        &["backup", "verify", &backups, "--id", "9"],
        &["no backup 9", "there are 1", "backup list"],
    );
    fails(2, &["backup", "purge", &backups, "--keep", "0"], &["--all"]);
    fails(2, &["backup", "purge", &backups], &["--keep"]);
    fails(2, &["backup", "purge", &backups, "--all", "--keep", "1"], &["--all"]);
    let list =
        || String::from_utf8(lithify(&["backup", "list", &backups, "--json"]).stdout).unwrap();
    assert!(list().contains("\"id\": 1"), "{}", list());
    assert_eq!(lithify(&["backup", "purge", &backups, "--all"]).stdout, b"1 backup deleted\n");
    assert_eq!(list(), "[]\n");
}

#[test]
fn rows_that_make_no_entry_are_a_failure_unless_that_is_allowed() {
    let place = Place::new();
    let db = place.db();
    let json = place.file("rows.jsonl", b"{\"id\": 1}\n\n{\"id\": \n{\"id\": 2}\n");
    fails(1, &["load", "--db", &db, "--key", "id", &json], &["1 row of", "is not", "--skip-bad"]);
    assert_eq!(lithify(&["get", "--db", &db, "2"]).stdout, b"{\"id\": 2}\n");
    assert!(
        lithify(&["load", "--db", &db, "--key", "id", "--skip-bad", "1", &json]).status.success()
    );
    let blank = place.file("blank.jsonl", b"\n{\"id\": 1}\n\n");
    assert!(lithify(&["load", "--db", &db, "--key", "id", &blank]).status.success());
    let short = place.file("short.csv", b"k,v\na,1\nb\n");
    fails(1, &["load", "--db", &db, "--value", "v", &short], &["1 row of", "--skip-bad"]);
}

#[test]
fn files_that_are_no_text_are_told_from_it() {
    let place = Place::new();
    for (start, word) in [
        (&b"\x1f\x8b\x08\0rest"[..], "zcat"),
        (b"\x28\xb5\x2f\xfdrest", "zstdcat"),
        (b"\xfd7zXZ\0rest", "xzcat"),
        (b"PK\x03\x04rest", "CSV"),
        (b"\xff\xfek\0", "iconv"),
        (b"\xfe\xff\0k", "iconv"),
    ] {
        let file = place.file("rows.csv", start);
        fails(2, &["load", "--db", &place.text("new"), &file], &["rows.csv", word]);
    }
    assert!(!place.path("new").exists());
}

#[test]
fn a_family_is_not_looked_for_in_a_database_that_is_not_there() {
    let place = Place::new();
    let (new, rows) = (place.text("new"), place.file("rows.tsv", b"k\tv\na\tb\n"));
    fails(1, &["put", "--db", &new, "--family", "trees", "k", "v"], &["no database"]);
    fails(1, &["load", "--db", &new, "--family", "trees", &rows], &["no database"]);
    assert!(!place.path("new").exists());
}

/// Where output goes is not where the database is.
#[cfg(target_os = "linux")]
#[test]
fn a_standard_output_that_is_full_is_named_and_a_closed_one_ends_quietly() {
    let place = Place::new();
    let db = place.db();
    let lab = ["lab", "--policies", "hybrid", "--num", "20K", "--memtable", "1MiB"];
    let bench = place.text("b");
    let bench = [
        "bench",
        "--workloads",
        "fillseq",
        "--num",
        "10",
        "--db",
        &bench,
        "-q",
        "--touch-memory=0",
    ];
    let commands: [&[&str]; 7] = [
        &["compact", &db],
        &["scan", "--db", &db],
        &["stats", &db],
        &["verify", &db],
        &["get", "--db", &db, "late"],
        &lab,
        &bench,
    ];
    for args in commands {
        let run = |to: Stdio| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_lithify"));
            command.args(args).stdin(Stdio::null()).stdout(to).stderr(Stdio::piped());
            let out = command.spawn().unwrap().wait_with_output().unwrap();
            (out.status.code(), String::from_utf8(out.stderr).unwrap())
        };
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let (code, said) = run(full.into());
        let named = said.starts_with("error: standard output can't be written: No space left");
        assert!(code == Some(1) && named && said.contains("hint: "), "{args:?}: {said}");
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        assert_eq!(run(writer.into()), (Some(0), String::new()), "{args:?}");
    }
}

/// That a report is not read on makes no measurement valid, and does not keep it from its file.
#[test]
fn a_bench_without_a_reader_tells_its_faults() {
    let place = Place::new();
    let (db, json) = (place.text("none"), place.text("r.json"));
    let args =
        ["bench", "--workloads", "readrandom", "--db", &db, "--touch-memory", "0", "--json", &json];
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = Command::new(env!("CARGO_BIN_EXE_lithify"));
    command.args(args).stdin(Stdio::null()).stdout(writer).stderr(Stdio::null());
    assert_eq!(command.status().unwrap().code(), Some(1), "there is no store to read");
    assert!(std::fs::read_to_string(json).unwrap().contains("\"valid\": false"));
}

#[test]
fn a_salvage_is_refused_beside_a_writer() {
    let place = Place::new();
    let (from, to) = (place.db(), place.text("new"));
    let db = Db::open(&from, Settings::default()).unwrap();
    fails(1, &["salvage", &from, "--to", &to], &["open in another handle or process"]);
    assert!(!place.path("new").exists());
    db.close().unwrap();
    assert!(lithify(&["salvage", &from, "--to", &to]).status.success());
    let salvaged = Settings::stored_in(&to).unwrap().unwrap().0;
    assert!(!salvaged.error_if_exists, "the next open with the stored settings would be refused");
}

/// A copy that is not finished is told as such by every command that names it.
#[test]
fn what_is_not_finished_is_no_database() {
    let place = Place::new();
    let db = place.db();
    std::fs::rename(place.path("db/CURRENT"), place.path("db/CURRENT.unfinished")).unwrap();
    let words = ["not finished", "remove", "make it again"];
    let new = place.text("new");
    for command in [
        &["get", "--db", &db, "a"][..],
        &["put", "--db", &db, "a", "b"],
        &["compact", &db],
        &["verify", &db],
    ] {
        fails(1, command, &words);
    }
    fails(1, &["salvage", &db, "--to", &new], &words);
    fails(1, &["backup", "create", "--db", &db, &new], &words);
    let again = ["unfinished", "remove", "try again"];
    let other = Place::new();
    fails(1, &["salvage", &other.db(), "--to", &db], &again);
}

#[test]
fn a_command_leaves_the_stored_settings_alone() {
    let scratch = tempfile::tempdir().unwrap();
    let db = scratch.path().join("db").to_str().unwrap().to_owned();
    let works = |args: &[&str]| assert!(lithify(args).status.success(), "{args:?}");
    let stored = || Settings::stored_in(&db).unwrap().unwrap().0;
    works(&["put", "--db", &db, "a", "b"]);
    let before = stored();
    works(&["compact", &db]);
    assert_eq!(stored(), before);
    works(&["delete", "--db", &db, "a"]);
    assert_eq!(stored(), before);
}

#[test]
fn flags_of_a_salvage_are_not_among_those_of_engines() {
    let out = lithify(&["salvage", "--help"]);
    let help = String::from_utf8(out.stdout).unwrap();
    // Without a flag of an engine in this build there is no such heading.
    let of_engines = help.find("Engine:").unwrap_or(help.len());
    assert!(help.find("  --json").unwrap() < of_engines, "{help}");
}
