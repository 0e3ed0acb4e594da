//! A directory whose names, keys and values try to act on the terminal: no command lets any of it through.
#![allow(clippy::disallowed_methods, reason = "a test sets up its world by itself")]

use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::Arc;

use lithify::merge::Append;
use lithify::{Builder, ColumnFamilyOptions, Comparator, Db, MergeOperator, ReadOptions, Settings};

/// Sets the title, clears the screen, turns the direction of writing, feigns a line, hides and is no text.
const EVIL: &str =
    "a\u{1b}]0;owned\u{7}\u{1b}[2J\u{9b}31m\u{202e}\u{2066}\u{200b}\u{2028}\u{7f}\r\\x41";
const EVIL_BYTES: &[u8] = b"k\x1b[2J\x9b\xff\x00\x08\xc2\x9b\xe2\x80\xae\n";

struct EvilOrder;

impl Comparator for EvilOrder {
    fn name(&self) -> &'static str {
        "order\u{1b}[2J\u{202e}"
    }
    fn compare(&self, a: &[u8], b: &[u8]) -> std::cmp::Ordering {
        a.cmp(b)
    }
}

struct EvilOperator;

impl MergeOperator for EvilOperator {
    fn name(&self) -> &'static str {
        "operator\u{1b}[2J\u{202e}"
    }
    fn full_merge(&self, _: &[u8], _: Option<&[u8]>, ops: &[&[u8]]) -> lithify::Result<Vec<u8>> {
        Ok(ops.concat())
    }
}

/// Runs a command; all that it printed, on both outputs.
fn run(args: &[&[u8]]) -> (Output, Vec<u8>) {
    let args = args.iter().map(|arg| std::ffi::OsStr::from_bytes(arg));
    let mut command = Command::new(env!("CARGO_BIN_EXE_lithify"));
    let out = command.args(args).stdin(Stdio::null()).output().unwrap();
    let all = [&out.stdout[..], &out.stderr[..]].concat();
    (out, all)
}

/// What acts on a terminal, or cannot be seen, in `text`.
fn acts(text: &[u8]) -> Option<String> {
    let Ok(text) = std::str::from_utf8(text) else { return Some("no UTF-8".to_owned()) };
    let hidden = |c: char| match c {
        '\n' | '\t' => false,
        '\0'..='\x1f' | '\x7f'..='\u{9f}' => true,
        '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => true,
        _ => false,
    };
    text.find(hidden).map(|at| {
        let before: Vec<char> = text[..at].chars().rev().take(60).collect();
        let around = before.into_iter().rev().chain(text[at..].chars().take(20));
        format!("{:?}", around.collect::<String>())
    })
}

/// A database in which everything that has a name has a hostile one; its components, too, if `strange`: then
/// the command line cannot open it, and says why.
fn hostile(dir: &Path, strange: bool) {
    let db = Builder::new(Settings::default()).create_among_files().open(dir).unwrap();
    let own = || ColumnFamilyOptions::new();
    let mut families = vec![(EVIL, own()), ("line\nbreak", own())];
    if strange {
        families.push(("ordered\u{1b}[2J", own().comparator(Arc::new(EvilOrder))));
        families.push(("merged\u{1b}[2J", own().merge_operator(Arc::new(Append::new(b",")))));
        families.push(("operated\u{1b}[2J", own().merge_operator(Arc::new(EvilOperator))));
    }
    for (name, options) in families {
        let family = db.create_column_family(name, options).unwrap();
        family.put(EVIL_BYTES, EVIL_BYTES).unwrap();
        family.put(EVIL, EVIL).unwrap();
        family.delete_range(b"z\x1b[2J", b"z\xff").unwrap();
        family.flush().unwrap();
    }
    if strange {
        let merged = db.column_family("merged\u{1b}[2J").unwrap();
        merged.merge(EVIL_BYTES, EVIL).unwrap();
        merged.flush().unwrap();
    }
    for (key, value) in [(EVIL_BYTES, EVIL.as_bytes()), (EVIL.as_bytes(), EVIL_BYTES)] {
        db.put(key, value).unwrap();
    }
    db.flush().unwrap();
    db.close().unwrap();
}

/// Flips a byte in the middle of every table: errors name keys and files.
fn damage(dir: &Path) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|e| e == "sst") {
            let mut bytes = std::fs::read(&path).unwrap();
            bytes.iter_mut().skip(10).take(1).for_each(|b| *b ^= 0x55);
            std::fs::write(&path, bytes).unwrap();
        }
    }
}

/// The commands that look at a database, or change it: each prints only what can be seen.
fn commands(dir: &[u8], place: &Path) -> Vec<Vec<Vec<u8>>> {
    let at = |name: &str| place.join(name).as_os_str().as_bytes().to_vec();
    let evil = EVIL.as_bytes();
    let mut all: Vec<Vec<Vec<u8>>> = Vec::new();
    let mut add = |args: &[&[u8]]| all.push(args.iter().map(|a| a.to_vec()).collect());
    for json in [&[][..], &[&b"--json"[..]]] {
        let mut add = |args: &[&[u8]]| add(&[args, json].concat());
        add(&[b"verify", dir]);
        add(&[b"explain", dir]);
        add(&[b"picture", dir]);
        add(&[b"family", b"list", dir]);
        add(&[b"stats", b"--db", dir]);
        add(&[b"stats", b"--db", dir, b"--family", evil]);
        add(&[b"scan", b"--db", dir]);
        add(&[b"scan", b"--db", dir, b"--family", evil]);
        add(&[b"dump", b"--db", dir, b"--family", evil, b"--family", b"default"]);
        add(&[b"dump", b"--db", dir]);
        add(&[b"settings", b"--explain", dir]);
        add(&[b"settings", b"--explain", dir, b"--family", evil]);
    }
    add(&[b"get", b"--db", dir, b"\\xff"]);
    add(&[b"get", b"--db", dir, &escaped(evil)]);
    add(&[b"get", b"--db", dir, b"--json", &escaped(evil)]);
    add(&[b"get", b"--db", dir, b"--family", b"\x1b[2J", b"k"]);
    add(&[b"put", b"--db", dir, b"--family", evil, b"--set", evil, b"k", b"v"]);
    add(&[b"put", b"--db", dir, b"\\q\x1b[2J", b"v"]);
    add(&[b"put", b"--db", dir, b"--hex", b"\x1b[2J", b"v"]);
    add(&[b"family", b"create", b"--db", dir, evil]);
    add(&[b"family", b"drop", b"--db", dir, b"none\x1b[2J"]);
    add(&[b"load", b"--db", dir, b"no\x1b[2J"]);
    add(&[b"compact", b"--db", dir, b"--family", evil]);
    add(&[b"compact", b"--settle", dir]);
    add(&[b"checkpoint", b"--db", dir, dir]);
    add(&[b"checkpoint", b"--db", dir, &at("copy\u{1b}[2J\u{202e}")]);
    add(&[b"backup", b"create", b"--db", dir, &at("backups\u{1b}[2J")]);
    add(&[b"backup", b"list", &at("backups\u{1b}[2J")]);
    add(&[b"backup", b"verify", &at("backups\u{1b}[2J")]);
    add(&[b"backup", b"restore", &at("backups\u{1b}[2J"), &at("back\u{1b}[2J")]);
    add(&[b"backup", b"restore", &at("none\u{1b}[2J"), &at("back\u{1b}[2J")]);
    add(&[b"backup", b"purge", &at("backups\u{1b}[2J"), b"--keep", b"1"]);
    add(&[b"import", dir, &at("imported\u{1b}[2J")]);
    add(&[b"salvage", dir, b"--to", &at("salvaged\u{1b}[2J")]);
    add(&[b"get", b"--db", &at("none\u{1b}[2J"), b"k"]);
    add(&[b"bench", b"--db", dir, b"--num", b"10"]);
    let tables = std::fs::read_dir(Path::new(std::ffi::OsStr::from_bytes(dir))).unwrap();
    for table in tables.map(|e| e.unwrap().path()) {
        if table.extension().is_some_and(|e| e == "sst") {
            let table = table.as_os_str().as_bytes();
            add(&[b"table", b"verify", table]);
            add(&[b"table", b"dump", table]);
            add(&[b"table", b"dump", b"--json", table]);
            add(&[b"table", b"dump", b"--properties", table]);
            add(&[b"table", b"dump", b"--properties", b"--json", table]);
        }
    }
    add(&[b"table", b"verify", dir]);
    add(&[b"table", b"verify", &at("no\u{1b}[2J.sst")]);
    all
}

/// Bytes in the form that the command line reads.
fn escaped(bytes: &[u8]) -> Vec<u8> {
    bytes.iter().flat_map(|b| format!("\\x{b:02x}").into_bytes()).collect()
}

/// Each command over a hostile directory, whole and damaged: nothing that acts on a terminal comes out.
/// (`--raw` is for what does: it is asked for.)
#[test]
fn nothing_hostile_reaches_the_terminal() {
    let mut found = Vec::new();
    let mut well = Vec::new();
    for strange in [false, true] {
        let place = tempfile::tempdir().unwrap();
        let dir = place.path().join("db\u{1b}]0;title\u{7}\u{202e}");
        std::fs::create_dir(&dir).unwrap();
        hostile(&dir, strange);
        std::fs::write(dir.join("stray\u{1b}[2J\n\u{202e}.txt"), "").unwrap();
        std::fs::write(dir.join(std::ffi::OsStr::from_bytes(b"stray\xff\x9b.sst")), "").unwrap();
        for round in ["whole", "damaged"] {
            std::fs::create_dir(place.path().join(round)).unwrap();
            let commands = commands(dir.as_os_str().as_bytes(), &place.path().join(round));
            let mut done = 0;
            for args in &commands {
                let args: Vec<&[u8]> = args.iter().map(Vec::as_slice).collect();
                let (out, all) = run(&args);
                let text: Vec<_> = args.iter().map(|a| String::from_utf8_lossy(a)).collect();
                let code = out.status.code();
                assert!(code.is_some_and(|code| code <= 2), "{text:?} ended with {code:?}");
                assert!(!String::from_utf8_lossy(&all).contains("panicked"), "{text:?}");
                done += usize::from(code == Some(0));
                found.extend(acts(&all).map(|what| format!("{text:?}: {what}")));
            }
            well.push(done);
            damage(&dir);
        }
    }
    assert!(well[0] >= 45, "a whole directory opens: {well:?} commands did what they say");
    assert!(found.is_empty(), "{} commands let it through:\n{}", found.len(), found.join("\n"));
}

/// The event log, too: it is text that people look at.
#[test]
fn the_event_log_is_fit_for_a_terminal() {
    let place = tempfile::tempdir().unwrap();
    let dir = place.path().join("db\u{1b}[2J");
    hostile(&dir, true);
    let log = std::fs::read(dir.join("EVENTS")).unwrap();
    assert!(log.len() > 1000);
    assert_eq!(acts(&log), None);
    for line in String::from_utf8(log).unwrap().lines() {
        let event: serde_json::Value = serde_json::from_str(line).unwrap();
        assert!(event["at_us"].is_u64());
    }
}

/// What is escaped means the same: a dump loads into what was dumped.
#[test]
fn escaped_bytes_come_back_as_they_were() {
    let place = tempfile::tempdir().unwrap();
    let path = |name: &str| place.path().join(name).to_str().unwrap().to_owned();
    let db = Db::open(path("one"), Settings::default()).unwrap();
    for key in [EVIL_BYTES, EVIL.as_bytes(), "\u{e0041}\u{9b}".as_bytes()] {
        db.put(key, key).unwrap();
    }
    db.close().unwrap();
    for (json, to) in [(&[][..], "text"), (&["--json"], "lines")] {
        let one = path("one");
        let args = [&["dump", "--db", &one], json].concat();
        let dump = crate::common::ok(&args);
        assert_eq!(acts(dump.as_bytes()), None);
        std::fs::write(path("dump"), &dump).unwrap();
        crate::common::ok(&["load", "--db", &path(to), "--escaped", &path("dump")]);
        let db = Db::open_read_only(path(to), Settings::default()).unwrap();
        let mut iter = db.iter_opt(&ReadOptions::default()).unwrap();
        let mut count = 0;
        iter.seek_to_first();
        while iter.valid() {
            assert_eq!(iter.key(), iter.value());
            assert!(
                [EVIL_BYTES, EVIL.as_bytes(), "\u{e0041}\u{9b}".as_bytes()].contains(&iter.key())
            );
            count += 1;
            iter.next();
        }
        assert_eq!(count, 3);
    }
}
