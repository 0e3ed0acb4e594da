//! Our tables before RocksDB's tools, and foreign tables before our reader.
//!
//! Off in the plain suite. `LITHIFY_ORACLES=1` runs the tools (`sst_dump` of RocksDB 7 or later
//! must be on the path); `LITHIFY_FOREIGN_TABLES=DIR` reads every `NAME.sst` of DIR and compares
//! it with `NAME.expect`, one line per entry: internal key and value in hex.
// The tools need real files; nothing here reaches the library.
#![allow(clippy::disallowed_methods, reason = "the test runs programs and reads files")]

use std::process::Command;

use lithify_base::{Bytewise, InternalKey, Kind, Tag};
use lithify_format::compress::{Codec, Compressor};
use lithify_format::table::index::IndexShape;
use lithify_format::table::naive::NaiveTableReader;
use lithify_format::table::naive::NaiveTableWriter;
use lithify_format::table::range_del::RangeTombstone;
use lithify_format::table::tail::{TableIdentity, TableSpec};

fn spec(version: u32) -> TableSpec {
    TableSpec {
        version,
        identity: TableIdentity {
            db_id: "a database".to_owned(),
            file_number: 7,
            cf_name: "default".to_owned(),
            ..TableIdentity::default()
        },
        ..TableSpec::default()
    }
}

/// A table of 2000 entries; every key in `versions` versions.
fn table(spec: TableSpec, codec: Codec, versions: u64, ranges: bool) -> Vec<u8> {
    let mut w = NaiveTableWriter::new(spec, 1024).with_codec(Compressor::new(codec, 3).unwrap());
    for i in 0..2000u64 {
        let user = format!("key{:06}", i / versions);
        let kind = if i % 9 == 0 { Kind::Delete } else { Kind::Value };
        let tag = Tag::new(5000 - i % versions, kind);
        let value = match kind {
            Kind::Value => format!("value {i} ").repeat(1 + i as usize % 9),
            _ => String::new(),
        };
        w.add(InternalKey { user: user.as_bytes(), tag }, value.as_bytes());
    }
    if ranges {
        for (start, end) in [("key000100", "key000200"), ("key000500", "key000600")] {
            w.add_tombstone(RangeTombstone { start: start.into(), end: end.into(), seq: 4999 });
        }
    }
    w.finish(&Bytewise).unwrap().0
}

#[test]
fn sst_dump_verifies_and_scans_our_tables() {
    if std::env::var_os("LITHIFY_ORACLES").is_none() {
        eprintln!("skipped: set LITHIFY_ORACLES=1 to run RocksDB's sst_dump on our tables");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let small = IndexShape { restart_interval: 1, ..IndexShape::default() };
    let two = IndexShape { restart_interval: 16, cap: 512, partition: 256 };
    // Format version 5: the tools of Debian (7.8) read no later one.
    for (index, filter_partition) in
        [(IndexShape::default(), 0), (small, 0), (two, 0), (two, 256), (small, 256)]
    {
        for codec in [Codec::None, Codec::Snappy, Codec::Lz4] {
            for versions in [1, 50] {
                for ranges in [false, true] {
                    let file = table(
                        TableSpec { index, filter_partition, ..spec(5) },
                        codec,
                        versions,
                        ranges,
                    );
                    let path = dir.path().join("000007.sst");
                    std::fs::write(&path, file).unwrap();
                    let scan = sst_dump(&path, "scan");
                    let found = scan.matches("' seq:").count();
                    assert_eq!(found, 2000, "{index:?} {codec:?} {versions}: {scan:.300}");
                    for command in ["check", "verify"] {
                        let said = sst_dump(&path, command);
                        assert!(!said.contains("orruption"), "{said}");
                    }
                }
            }
        }
    }
}

fn sst_dump(path: &std::path::Path, command: &str) -> String {
    let out = Command::new("sst_dump")
        .arg(format!("--file={}", path.display()))
        .args([&format!("--command={command}"), "--verify_checksum"])
        .output()
        .expect("sst_dump is on the path");
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    let errors = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(out.status.success(), "{command}: {text} {errors}");
    text + &errors
}

#[test]
fn foreign_tables_are_read() {
    let Some(dir) = std::env::var_os("LITHIFY_FOREIGN_TABLES") else {
        eprintln!("skipped: set LITHIFY_FOREIGN_TABLES=DIR to read foreign tables");
        return;
    };
    let (mut read, mut refused) = (0, Vec::new());
    let mut paths: Vec<_> =
        std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    for path in paths.iter().filter(|p| p.extension().is_some_and(|e| e == "sst")) {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let file = std::fs::read(path).unwrap();
        let expect = std::fs::read_to_string(path.with_extension("expect")).unwrap();
        let entries = NaiveTableReader::open(&file).and_then(|t| t.entries());
        match entries {
            Err(e) if e.kind() == lithify_base::ErrorKind::Unsupported => {
                refused.push(format!("{name}: {e}"));
                continue;
            }
            Err(e) => panic!("{name}: {e}"),
            Ok(entries) => {
                let lines: Vec<String> =
                    entries.iter().map(|(k, v)| format!("{} {}", hex(k), hex(v))).collect();
                assert!(lines.iter().map(String::as_str).eq(expect.lines()), "{name}");
                look_up(&name, &file, &entries);
                read += 1;
            }
        }
    }
    eprintln!("{read} foreign tables read, {} refused by type:", refused.len());
    refused.iter().for_each(|r| eprintln!("  {r}"));
    assert!(read > 0, "no table was read");
}

fn look_up(name: &str, file: &[u8], entries: &[(Vec<u8>, Vec<u8>)]) {
    let table = NaiveTableReader::open(file).unwrap();
    let mut absent = 0;
    for (key, value) in entries {
        let target = InternalKey::decode(key).unwrap();
        let found = table.get(target, &Bytewise).unwrap().unwrap_or_else(|| panic!("{name}"));
        assert_eq!((&found.0, &found.1), (key, value), "{name}");
        let may = table.may_contain(target.user, &Bytewise).unwrap();
        assert!(may, "{name}: filter denies {}", hex(key));
        let other = [target.user, b"?"].concat();
        absent += usize::from(!table.may_contain(&other, &Bytewise).unwrap());
    }
    let filtered = table.names().filter().is_some() && !name.contains("ribbon");
    if filtered && table.footer().version >= 5 {
        assert!(absent * 10 > entries.len() * 9, "{name}: filter says no {absent} times");
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}
