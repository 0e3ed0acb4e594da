//! Where commands meet the world: rows that are no rows, values that are files, databases that a program has
//! open, directories that other releases of RocksDB are to open, and tables that are not as the settings ask.
#![allow(clippy::disallowed_methods, reason = "a test sets up its world by itself")]

use std::io::Write as _;
use std::process::{Command, Stdio};

use lithify::{Db, Settings};
use serde_json::Value;

use crate::common::{lithify, ok};

struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Place {
        Place(tempfile::tempdir().unwrap())
    }
    fn path(&self, name: &str) -> String {
        self.0.path().join(name).to_str().unwrap().to_owned()
    }
    fn file(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        std::fs::write(self.path(name), content).unwrap();
        self.path(name)
    }
}

/// Runs a command that must fail with `code`; what it said.
#[track_caller]
fn fails(code: i32, args: &[&str]) -> String {
    let out = lithify(args);
    let said = String::from_utf8(out.stderr).unwrap();
    assert_eq!(out.status.code(), Some(code), "{args:?}: {said}");
    said
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

/// Rows of which those numbered by `bad` have no value.
fn rows(count: u32, bad: impl Fn(u32) -> bool) -> String {
    let row = |n| if bad(n) { format!("key{n:04}\n") } else { format!("key{n:04}\tvalue{n}\n") };
    (1..=count).map(row).collect()
}

#[test]
fn a_strict_load_loads_all_or_nothing() {
    let place = Place::new();
    let good = place.file("good.tsv", rows(300, |_| false));
    let bad = place.file("bad.tsv", rows(300, |n| n == 250));
    let db = place.path("db");
    let load = |file: &str| {
        vec![
            "load".to_owned(),
            "--db".into(),
            db.clone(),
            "--value".into(),
            "2".into(),
            "--no-header".into(),
            "--strict".into(),
            file.to_owned(),
        ]
    };
    fn strs(args: &[String]) -> Vec<&str> {
        args.iter().map(String::as_str).collect()
    }
    let said = fails(1, &strs(&load(&bad)));
    assert!(said.contains("row 250") && said.contains("nothing was loaded"), "{said}");
    assert!(!std::path::Path::new(&db).exists(), "not even the database was made");
    // A key that no database takes is found before, too.
    let long = place.file("long.tsv", rows(30, |_| false) + &"k".repeat((16 << 20) + 1) + "\tv\n");
    let said = fails(1, &strs(&load(&long)));
    assert!(said.contains("row 31") && said.contains("key above 16 MiB"), "{said}");
    assert!(!std::path::Path::new(&db).exists(), "not even the database was made");
    ok(&strs(&load(&good)));
    assert_eq!(ok(&["scan", "--db", &db, "--keys-only"]).lines().count(), 300);
    // What can't be read twice ends there.
    let mut child = Command::new(env!("CARGO_BIN_EXE_lithify"))
        .args(strs(&load("-")))
        .args(["--format", "tsv"])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"a\t1\nb\nc\t3\n").unwrap();
    let out = child.wait_with_output().unwrap();
    let said = String::from_utf8(out.stderr).unwrap();
    assert_eq!(out.status.code(), Some(1));
    assert!(said.contains("1 row loaded before this") && said.contains("row 2"), "{said}");
    fails(1, &["get", "--db", &db, "c"]);
    // Nor can a pipe that has a name.
    let args = load("/dev/stdin").join(" ");
    let line = format!("cat {good} | '{}' {args} --format tsv", env!("CARGO_BIN_EXE_lithify"));
    let out = Command::new("sh").args(["-c", &line]).output().unwrap();
    assert!(String::from_utf8_lossy(&out.stdout).contains("300 rows"), "{out:?}");
}

#[test]
fn as_many_bad_rows_as_are_allowed_are_listed_and_one_more_ends_the_load() {
    let place = Place::new();
    let file = place.file("rows.tsv", rows(300, |n| n % 20 == 0));
    let (db, allowed) = (place.path("db"), place.path("allowed"));
    let load = |db: &str, more: &[&str]| {
        let args = ["load", "--db", db, "--value", "2", "--no-header", &file];
        lithify(&[&args, more].concat())
    };
    let out = load(&allowed, &["--skip-bad", "15"]);
    let told = String::from_utf8(out.stdout).unwrap();
    assert!(out.status.success());
    assert!(told.contains("15 rows skipped"), "{told}");
    assert!(
        told.contains("(rows 20, 40, 60, 80, 100, 120, 140, 160, 180, 200 and 5 more)"),
        "{told}"
    );
    let out = load(&allowed, &["--skip-bad", "all", "--json"]);
    let told = json(&String::from_utf8(out.stdout).unwrap());
    assert_eq!((&told["rows"], &told["skipped"][0]["rows"]), (&285.into(), &15.into()));
    assert_eq!(told["skipped"][0]["first_rows"][1], 40);
    let out = load(&db, &["--skip-bad", "3"]);
    let said = String::from_utf8(out.stderr).unwrap();
    assert_eq!(out.status.code(), Some(1));
    assert!(said.contains("row 80 ") && said.contains("3 such rows were allowed"), "{said}");
    assert_eq!(ok(&["scan", "--db", &db, "--keys-only"]).lines().count(), 76, "up to there");
    let out = load(&db, &[]);
    let said = String::from_utf8(out.stderr).unwrap();
    assert!(said.contains("15 rows") && said.contains("--skip-bad 15"), "{said}");
    assert_eq!(out.status.code(), Some(1));
    let said = fails(2, &["load", "--db", &db, "--skip-bad", &file]);
    assert!(said.contains("--skip-bad"), "{said}");
}

#[test]
fn a_value_comes_from_a_file_or_standard_input() {
    let place = Place::new();
    let (db, bytes) = (place.path("db"), b"\x00\xff\\n and a newline\n");
    let file = place.file("value.bin", bytes);
    ok(&["put", "--db", &db, "file", "--value-file", &file]);
    let mut child = Command::new(env!("CARGO_BIN_EXE_lithify"))
        .args(["put", "--db", &db, "--hex", "6b", "--value-file", "-"])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(bytes).unwrap();
    assert!(child.wait().unwrap().success());
    for key in ["file", "k"] {
        assert_eq!(lithify(&["get", "--db", &db, "--raw", key]).stdout, bytes);
    }
    let said = fails(1, &["put", "--db", &db, "k", "--value-file", &place.path("nothing")]);
    assert!(said.contains("nothing"), "{said}");
    fails(2, &["put", "--db", &db, "k"]);
    fails(2, &["put", "--db", &db, "k", "v", "--value-file", &file]);
}

#[test]
fn a_database_that_a_program_has_open_is_copied_by_that_program() {
    let place = Place::new();
    let (dir, copy, backups) = (place.path("db"), place.path("copy"), place.path("backups"));
    let db = Db::open(&dir, Settings::default()).unwrap();
    db.put("a", "1").unwrap();
    let said = fails(1, &["checkpoint", "--db", &dir, &copy]);
    assert!(said.contains(&format!("db.checkpoint(\"{copy}\")?")), "{said}");
    let said = fails(1, &["backup", "create", "--db", &dir, &backups]);
    assert!(said.contains(&format!("Backups::open(\"{backups}\")?.create(&db")), "{said}");
    assert!(std::fs::read_dir(&copy).is_err() && std::fs::read_dir(&backups).is_err());
    // The lines do it.
    db.checkpoint(&copy).unwrap();
    lithify::Backups::open(&backups).unwrap().create(&db, &mut |_| {}).unwrap();
    db.close().unwrap();
    assert_eq!(ok(&["get", "--db", &copy, "a"]), "1\n");
    assert_eq!(ok(&["backup", "verify", &backups]), "backup 1 is good\n");
}

/// What RocksDB's own tool of release 7 says of a directory; `None` where there is none.
fn rocksdb_7(dir: &str) -> Option<(bool, String)> {
    let out = Command::new("ldb").args([&format!("--db={dir}"), "scan"]).output().ok()?;
    let text = [out.stdout, out.stderr].concat();
    Some((out.status.success(), String::from_utf8_lossy(&text).into_owned()))
}

#[test]
fn settling_says_which_releases_open_the_result_and_rewrites_for_older_ones() {
    let place = Place::new();
    let db = place.path("db");
    let file = place.file("rows.tsv", rows(300, |_| false));
    ok(&["family", "create", "--db", &db, "trees"]);
    ok(&["load", "--db", &db, "--value", "2", "--no-header", &file]);
    ok(&["put", "--db", &db, "--family", "trees", "oak", "quercus"]);
    let told = ok(&["compact", "--settle", &db]);
    assert!(told.contains("RocksDB 8.6 and later open"), "{told}");
    assert!(told.contains("--for rocksdb-7"), "{told}");
    let told = json(&ok(&["compact", "--settle", &db, "--for", "rocksdb-9", "--json"]));
    assert_eq!(told["opens_with"], "RocksDB 8.6");
    assert_eq!(told["compactions"], 0, "what that opens anyway is not rewritten");
    let told = ok(&["compact", "--settle", &db, "--for", "rocksdb-7"]);
    assert!(told.contains("RocksDB 6.6 and later open"), "{told}");
    let told = json(&ok(&["compact", "--settle", &db, "--for", "rocksdb-8.5", "--json"]));
    assert_eq!((&told["opens_with"], &told["compactions"]), (&"RocksDB 6.6".into(), &0.into()));
    for wrong in ["7", "rocksdb-", "rocksdb-5", "rocksdb-6.5"] {
        fails(2, &["compact", "--settle", &db, "--for", wrong]);
    }
    fails(2, &["compact", "--db", &db, "--for", "rocksdb-7"]);
    match rocksdb_7(&db) {
        Some((opened, said)) => {
            assert!(opened && said.contains("key0300"), "{said}");
        }
        None => {
            let _ = writeln!(std::io::stderr(), "edges: no ldb here, RocksDB was not asked");
        }
    }
    assert_eq!(ok(&["get", "--db", &db, "--family", "trees", "oak"]), "quercus\n");
    assert!(ok(&["verify", &db]).contains("all good"));
}

#[test]
fn a_compaction_says_what_it_leaves_uncompressed() {
    let place = Place::new();
    let db = place.path("db");
    let file = place.file("rows.tsv", rows(2000, |_| false));
    ok(&["load", "--db", &db, "--value", "2", "--no-header", &file]);
    let told = ok(&["compact", "--db", &db]);
    let line = told.lines().last().unwrap();
    assert!(line.contains("compression_lower = lz4") && line.contains("--rewrite"), "{told}");
    let told = json(&ok(&["compact", "--db", &db, "--json"]));
    assert!(told["other_codec_bytes"].as_u64().unwrap() > 0, "{told}");
    let told = ok(&["compact", "--db", &db, "--rewrite"]);
    assert!(!told.contains("--rewrite"), "{told}");
    let told = json(&ok(&["compact", "--db", &db, "--json"]));
    assert_eq!(told["other_codec_bytes"], 0);
}

/// Before, Ctrl-C threw away what a long bench had measured.
#[test]
fn an_interrupted_bench_reports_what_it_measured() {
    let place = Place::new();
    let dir = place.path("bench");
    let child = Command::new(env!("CARGO_BIN_EXE_lithify"))
        .args(["bench", "--workloads", "fillrandom,readrandom", "--num", "1M", "--rate", "500"])
        .args(["--touch-memory", "0", "--db", &dir, "--json", "-"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let log = || {
        std::fs::read_dir(format!("{dir}/db")).ok().map(|entries| {
            let logs =
                entries.flatten().filter(|e| e.file_name().to_string_lossy().ends_with(".log"));
            logs.map(|e| e.metadata().map_or(0, |m| m.len())).sum::<u64>()
        })
    };
    let end = std::time::Instant::now() + std::time::Duration::from_secs(120);
    while log().is_none_or(|bytes| bytes < 5000) {
        assert!(std::time::Instant::now() < end, "it writes");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let kill = format!("kill -INT {}", child.id());
    assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
    let out = child.wait_with_output().unwrap();
    let (said, told) = (String::from_utf8_lossy(&out.stderr), String::from_utf8_lossy(&out.stdout));
    assert_eq!(out.status.code(), Some(130), "{said}");
    assert!(said.contains("INTERRUPTED"), "{said}");
    let report = json(&told);
    assert_eq!(report["interrupted"], true);
    assert_eq!(report["workloads"].as_array().unwrap().len(), 1, "{told}");
    assert!(report["workloads"][0]["ops"].as_u64() > Some(10), "{told}");
}

/// A picture says what load it is of, and the bench where the picture is.
#[test]
fn a_timeline_says_what_it_is_of_and_where_it_is() {
    let place = Place::new();
    let (dir, file) = (place.path("bench"), place.path("jobs.svg"));
    let out = lithify(&[
        "bench",
        "--workloads",
        "fillrandom",
        "--num",
        "20k",
        "--touch-memory",
        "0",
        "--db",
        &dir,
        "--timeline",
        &file,
    ]);
    let said = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success() && said.contains(&format!("timeline in {file}")), "{said}");
    let svg = std::fs::read_to_string(&file).unwrap();
    for text in ["20.0 k keys of", "client thread", "runs in L0", "debt", "latency", "slowest"] {
        assert!(svg.contains(text), "no {text}");
    }
    assert!(!svg.contains("-0.00"));
}
