//! How a load ends that does not come to the end of its file: what is in is said, and is in.
#![allow(clippy::disallowed_methods, reason = "a test sets up its world by itself")]

use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::{lithify, ok};

fn start(args: &[&str]) -> Child {
    Command::new(env!("CARGO_BIN_EXE_lithify"))
        .arg("load")
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// How many rows a message says are in.
fn rows_said(err: &str) -> usize {
    let end = err.find(" row").expect(err);
    let number = err[..end].rsplit(' ').next().unwrap();
    number.replace(',', "").parse().expect(err)
}

#[test]
fn a_csv_file_with_a_quote_that_is_not_closed() {
    let scratch = tempfile::tempdir().unwrap();
    let (db, csv) = (scratch.path().join("db"), scratch.path().join("rows.csv"));
    let (db, csv) = (db.to_str().unwrap(), csv.to_str().unwrap());
    std::fs::write(csv, "name,note\na,1\nb,\"not closed\nc,3\nd,4\n").unwrap();
    let out = lithify(&["load", "--db", db, "--value", "note", csv]);
    let err = String::from_utf8_lossy(&out.stderr);
    assert_eq!(out.status.code(), Some(1), "{err}");
    assert!(err.contains("line 3: ") && err.contains("1 row loaded before this"), "{err}");
    assert_eq!(ok(&["scan", "--db", db]), "a\t1\n");
}

#[test]
fn ctrl_c_says_how_many_rows_are_in() {
    for (signal, code) in [("INT", 130), ("TERM", 143)] {
        let scratch = tempfile::tempdir().unwrap();
        let db = scratch.path().join("db");
        let db = db.to_str().unwrap();
        let mut child = start(&["--db", db, "--format", "tsv", "--no-header", "--value", "2", "-"]);
        let mut input = child.stdin.take().unwrap();
        // Some batches of 1 MiB, and a part of one that is in no batch yet.
        let value = "v".repeat(1000);
        for row in 0..3500 {
            writeln!(input, "key{row:06}\t{value}").unwrap();
        }
        input.flush().unwrap();
        // What came through the pipe is about to be written; wait until something is.
        let end = Instant::now() + Duration::from_secs(60);
        while ok_or_nothing(&["scan", "--db", db, "--limit", "1", "--keys-only"]).is_empty() {
            assert!(Instant::now() < end, "no batch is written");
            std::thread::sleep(Duration::from_millis(20));
        }
        // The input stays open: the load waits for more.
        let pid = child.id().to_string();
        assert!(Command::new("kill").args(["-s", signal, &pid]).status().unwrap().success());
        let end = Instant::now() + Duration::from_secs(60);
        let status = loop {
            match child.try_wait().unwrap() {
                Some(status) => break status,
                None => assert!(Instant::now() < end, "it goes on"),
            }
            std::thread::sleep(Duration::from_millis(20));
        };
        drop(input);
        let mut err = String::new();
        child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
        assert_eq!(status.code(), Some(code), "{err}");
        assert!(err.contains("interrupted") && err.contains("loaded before this"), "{err}");
        let rows = rows_said(&err);
        assert!(rows > 0 && rows < 3500, "{err}");
        let found = ok(&["scan", "--db", db, "--keys-only"]).lines().count();
        // A write that the disk held up is not counted, and may be in.
        assert!(found == rows || err.contains("at least") && found > rows, "{found}: {err}");
        assert!(ok(&["verify", db]).contains("all good"));
    }
}

fn ok_or_nothing(args: &[&str]) -> String {
    let out = lithify(args);
    if out.status.success() { String::from_utf8(out.stdout).unwrap() } else { String::new() }
}
