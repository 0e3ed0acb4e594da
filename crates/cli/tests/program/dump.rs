//! `dump` and `load --escaped`: every byte of every family comes back, as text and as JSON lines, and
//! what is no whole dump is refused.
#![allow(clippy::disallowed_methods, reason = "a test sets up its world by itself")]

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::Arc;

use lithify::{Builder, ColumnFamilyOptions, Db, ReverseBytewise, Settings};

use crate::common::{lithify, ok};

/// What is in each family.
type Content = BTreeMap<String, BTreeMap<Vec<u8>, Vec<u8>>>;

const FAMILIES: [&str; 4] = ["default", "gr\u{fc}n \\ \"two words\"", "reversed", "empty"];

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

/// Runs `load` with this input; it must end with `code` and say each of `words`.
#[track_caller]
fn load(code: i32, args: &[&str], input: &[u8], words: &[&str]) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_lithify"))
        .arg("load")
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // It may end before it has read all.
    let _ = child.stdin.take().unwrap().write_all(input);
    let out = child.wait_with_output().unwrap();
    let err = String::from_utf8_lossy(&out.stderr);
    assert_eq!(out.status.code(), Some(code), "load {args:?}: {err}");
    words.iter().for_each(|word| assert!(err.contains(word), "no `{word}`: {err}"));
    assert!(!err.contains("panicked"), "{err}");
    out
}

fn content(dir: &str) -> Content {
    let db = Db::open_read_only(dir, Settings::default()).unwrap();
    let of = |name: String| {
        let family = db.column_family(&name).unwrap();
        let (mut found, mut iter) = (BTreeMap::new(), family.iter().unwrap());
        iter.seek_to_first();
        while iter.valid() {
            found.insert(iter.key().to_vec(), iter.value().to_vec());
            iter.next();
        }
        iter.status().unwrap();
        (name, found)
    };
    db.column_families().into_iter().map(of).collect()
}

fn order_of(dir: &str, family: &str) -> String {
    let db = Db::open_read_only(dir, Settings::default()).unwrap();
    db.column_family(family).unwrap().comparator_name().to_owned()
}

/// Bytes of many kinds: any, text, escapes, what separates, and now and then many.
fn bytes(rng: &mut fastrand::Rng) -> Vec<u8> {
    let len = match rng.u8(0..20) {
        0 => 0,
        1 => rng.usize(1000..20_000),
        2..6 => rng.usize(0..200),
        _ => rng.usize(1..12),
    };
    let odd: &[&[u8]] = &[
        b"\n",
        b"\t",
        b"\r",
        b"\r\n",
        b"\"",
        b"\\",
        b"\\n",
        b"\\x41",
        b"\\u0041",
        b"\0",
        b"\x7f",
        b"\xff",
        b"\xc3\x28",
        b"\xed\xa0\x80",
        b"\xf4\x90\x80\x80",
        "\u{85}\u{2028}\u{feff}".as_bytes(),
        "\u{fc}\u{1f34e}".as_bytes(),
        b"family ",
        b"end 3",
        b"lithify-dump 1",
        b"{\"key\":\"a\"}",
        b" ",
        b"#",
    ];
    let mut out = Vec::with_capacity(len);
    let kind = rng.u8(0..4);
    while out.len() < len {
        match kind {
            0 => out.push(rng.u8(..)),
            1 => out.push(rng.u8(b' '..b'~')),
            2 => out.push(rng.u8(..32)),
            _ => out.extend_from_slice(odd[rng.usize(..odd.len())]),
        }
    }
    out
}

/// A database of 10,000 entries of random keys and values in several families.
fn random(dir: &str, seed: u64) -> Content {
    let mut rng = fastrand::Rng::with_seed(seed);
    let db = Db::open(dir, Settings::default()).unwrap();
    let mut entries = 0;
    for name in &FAMILIES[1..] {
        let options = ColumnFamilyOptions::new();
        let options = match *name {
            "reversed" => options.comparator(Arc::new(ReverseBytewise)),
            _ => options,
        };
        db.create_column_family(name, options).unwrap();
    }
    let mut keys = BTreeSet::from([("default", Vec::new())]);
    db.put("", "under the empty key").unwrap();
    entries += 1;
    while entries < 10_000 {
        let name = FAMILIES[rng.usize(..3)];
        let (key, value) = (bytes(&mut rng), bytes(&mut rng));
        if keys.insert((name, key.clone())) {
            db.column_family(name).unwrap().put(key, value).unwrap();
            entries += 1;
        }
    }
    db.close().unwrap();
    let content = content(dir);
    assert_eq!(content.values().map(BTreeMap::len).sum::<usize>(), entries);
    content
}

#[test]
fn ten_thousand_random_entries_of_several_families_come_back() {
    let place = Place::new();
    let (from, text, json) = (place.path("from"), place.path("text"), place.path("json"));
    let made = random(&from, 13);
    let dumped = lithify(&["dump", "--db", &from]).stdout;
    std::str::from_utf8(&dumped).expect("text is text");
    let out = load(0, &["--db", &text, "--escaped", "-"], &dumped, &[]);
    assert!(String::from_utf8_lossy(&out.stdout).starts_with("10,000 rows loaded"), "{out:?}");
    assert!(content(&text) == made);
    let dumped = lithify(&["dump", "--db", &from, "--json"]).stdout;
    for line in std::str::from_utf8(&dumped).expect("JSON is UTF-8").lines() {
        serde_json::from_str::<serde_json::Value>(line).expect(line);
    }
    load(0, &["--db", &json, "--escaped", "-"], &dumped, &[]);
    assert!(content(&json) == made);
    for dir in [&text, &json] {
        assert_eq!(order_of(dir, "reversed"), order_of(&from, "reversed"));
        assert_ne!(order_of(dir, "reversed"), order_of(dir, "default"));
        // And nothing is lost on the way there and back again.
        assert!(lithify(&["dump", "--db", dir, "--json"]).stdout == dumped);
    }
}

#[test]
fn what_scan_prints_is_loaded_as_it_was() {
    let place = Place::new();
    let from = place.path("from");
    let made = random(&from, 14);
    for name in &FAMILIES[..3] {
        for (style, format) in [("", "tsv"), ("--json", "jsonl")] {
            let to = place.path(&format!("to-{format}"));
            let mut scan = vec!["scan", "--db", &from, "--family", name];
            scan.extend((!style.is_empty()).then_some(style));
            let printed = lithify(&scan).stdout;
            load(0, &["--db", &to, "--escaped", "--format", format, "-"], &printed, &[]);
            assert!(content(&to)["default"] == made[*name], "{name}, {format}");
            std::fs::remove_dir_all(to).unwrap();
        }
    }
}

#[test]
fn a_dump_that_was_cut_short_or_changed_is_refused() {
    let place = Place::new();
    let from = place.path("from");
    for (key, value) in [("apple", "red"), ("pear", "a\tb"), ("plum", "")] {
        ok(&["put", "--db", &from, key, value]);
    }
    for style in [&["--json"][..], &[]] {
        let dump = ok(&[&["dump", "--db", &from][..], style].concat());
        for cut in 1..dump.len() - 1 {
            // Every third: each is a run of the program.
            if cut % 3 == 0 {
                let to = place.path(&format!("cut-{}-{cut}", style.len()));
                let args = ["--db", &to, "--escaped", "-"];
                let out = load(1, &args, &dump.as_bytes()[..cut], &["loaded before this"]);
                assert!(out.stdout.is_empty());
            }
        }
    }
    let to = place.path("to");
    let refused = |text: &str, words: &[&str]| {
        load(1, &["--db", &to, "--escaped", "-"], text.as_bytes(), words);
    };
    refused(
        "lithify-dump 1\nfamily default\na\tb\nend 2\n",
        &["line 4", "1 entries", "says", "1 row"],
    );
    refused("lithify-dump 1\na\tb\nlithify-dump 1\n", &["line 3", "cut short"]);
    refused("lithify-dump 2\n", &["line 1", "version 2"]);
    refused("a\tb\nend 1\n", &["line 2", "none has begun", "1 row loaded"]);
    refused("a\tb\nkey only\n", &["line 2", "`key only` is no entry"]);
    refused("a\tb\nc\td\te\n", &["line 2", "second tab"]);
    refused("a\tb\nc\t\\q\n", &["line 2", "`\\q` is no escape"]);
    refused("a\tb\r\n", &["line 1", "carriage return"]);
    let json = |line: &str, words: &[&str]| {
        load(1, &["--db", &to, "--escaped", "--format", "jsonl", "-"], line.as_bytes(), words);
    };
    json(
        "{\"key\":\"a\",\"value\":\"b\"}\n{\"key\":\"a\"}\n",
        &["line 2", "`value` or `value_hex`"],
    );
    json("{\"key\":\"a\",\"key_hex\":\"61\",\"value\":\"b\"}\n", &["line 1", "`key` or `key_hex`"]);
    json("{\"key\":\"a\",\"value_hex\":\"0\"}\n", &["line 1", "hexadecimal"]);
    json("{\"key\":\"a\",\"value\":\"b\",\"more\":1}\n", &["line 1", "more"]);
    json("{\"key\":\"a\",\"value\":\"\\ud800\"}\n", &["line 1"]);
    json("\"a\"\n", &["line 1"]);
}

#[test]
fn what_is_meant_is_said_where_it_could_be_taken_wrong() {
    let place = Place::new();
    let (from, to) = (place.path("from"), place.path("to"));
    ok(&["put", "--db", &from, "a", "b"]);
    ok(&["family", "create", "--db", &from, "trees"]);
    ok(&["put", "--db", &from, "--family", "trees", "c", "d"]);
    let dump = ok(&["dump", "--db", &from]);
    // As rows of two columns it would lose its escapes.
    let file = place.file("all.tsv", &dump);
    load(2, &["--db", &to, &file], b"", &["is a dump", "--escaped"]);
    load(2, &["--db", &to, "--escaped", "--family", "trees", &file], b"", &["--family"]);
    load(2, &["--db", &to, "--escaped", "--format", "csv", &file], b"", &["--escaped"]);
    load(2, &["--db", &to, "--escaped", "--key", "1", &file], b"", &["--key"]);
    assert!(!Path::new(&to).exists(), "a misunderstood command made a database");
    assert!(lithify(&["dump", "--db", &from, "--family", "none"]).status.code() == Some(2));
    // One family alone, into a database that has others.
    let trees = ok(&["dump", "--db", &from, "--family", "trees"]);
    assert_eq!(trees, "lithify-dump 1\nfamily trees\nc\td\nend 1\n");
    ok(&["put", "--db", &to, "a", "mine"]);
    load(0, &["--db", &to, "--escaped", "-"], trees.as_bytes(), &[]);
    load(0, &["--db", &to, "--escaped", "-"], format!("{trees}{trees}").as_bytes(), &[]);
    assert_eq!(ok(&["get", "--db", &to, "a"]), "mine\n");
    assert_eq!(ok(&["get", "--db", &to, "--family", "trees", "c"]), "d\n");
}

/// What a dump does not carry, and what it makes of it.
#[test]
fn operands_are_combined_and_deletions_are_gone() {
    let place = Place::new();
    let (from, to) = (place.path("from"), place.path("to"));
    let builder = Builder::new(Settings::default());
    let db = builder.merge_operator(lithify::merge::built_in("max").unwrap()).open(&from).unwrap();
    db.merge(b"high", b"3").unwrap();
    db.merge(b"high", b"7").unwrap();
    db.put(b"gone", b"x").unwrap();
    db.delete(b"gone").unwrap();
    db.close().unwrap();
    assert!(!lithify(&["dump", "--db", &from]).status.success(), "operands need their operator");
    let dump = ok(&["dump", "--db", &from, "--merge-operator", "max"]);
    assert_eq!(dump, "lithify-dump 1\nfamily default\nhigh\t7\nend 1\n");
    load(0, &["--db", &to, "--escaped", "-"], dump.as_bytes(), &[]);
    assert_eq!(ok(&["scan", "--db", &to]), "high\t7\n");
}
