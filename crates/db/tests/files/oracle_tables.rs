//! Our tables before RocksDB's own tool: databases are filled, flushed and compacted at format
//! version 5, and for every table file `sst_dump` must verify it, check it, and dump the very
//! entries and range deletions that our reader yields.
//!
//! Without `sst_dump` on the path the tests say so and pass; with `LITHIFY_ORACLES=1` they fail
//! instead. `cargo xtask test` installs it (Debian's package `rocksdb-tools`).
// The tool needs real files; nothing here reaches the library.
#![allow(clippy::disallowed_methods, reason = "the test runs programs and reads files")]

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use lithify::{Compression, Db, Policy, Settings, Snapshot};
use lithify_base::bytewise;
use lithify_env::{Fs, OpenOpts, PosixFs};
use lithify_format::table::props::TWO_LEVEL;
use lithify_tables::sst::verify::verify;
use lithify_tables::sst::{OpenTable, TableIter, TableReader};

/// Most bytes of a key that the load writes.
const LONGEST_KEY: usize = 3000;

#[test]
fn plain_tables_read_the_same_there() {
    look_at_tables_of(&Load::new(1), small(Compression::None));
}

#[test]
fn lz4_tables_read_the_same_there() {
    look_at_tables_of(&Load::new(2), small(Compression::Lz4));
}

#[test]
fn snappy_tables_read_the_same_there() {
    look_at_tables_of(&Load::new(3), small(Compression::Snappy));
}

#[cfg(feature = "zstd")]
#[test]
fn zstd_tables_read_the_same_there() {
    look_at_tables_of(&Load::new(4), small(Compression::Zstd(3)));
}

#[test]
fn tables_without_filters_read_the_same_there() {
    let mut settings = small(Compression::Lz4);
    settings.bloom_bits = 0;
    settings.policy = Some(lithify::Policy::Leveled);
    look_at_tables_of(&Load::new(5), settings);
}

/// A table with an index of more than 1 MiB, which gets two levels.
#[test]
fn a_two_level_index_reads_the_same_there() {
    let mut settings = small(Compression::None);
    settings.memtable_bytes = 64 << 20;
    settings.memory_budget = 512 << 20;
    settings.file_bytes = 1 << 30;
    settings.block_bytes = 512;
    // Rules that do not cut a flush: one table is to have all.
    settings.policy = Some(Policy::Hybrid);
    let load = Load { writes: 24_000, wide_index: true, ..Load::new(6) };
    if let Some(seen) = look_at_tables_of(&load, settings) {
        assert!(seen.two_level > 0, "no index had two levels");
    }
}

fn small(compression: Compression) -> Settings {
    let mut s = Settings::default();
    s.format_version = 5;
    s.memtable_bytes = 128 << 10;
    s.memory_budget = 16 << 20;
    s.level_base_bytes = 512 << 10;
    s.file_bytes = 128 << 10;
    s.block_bytes = 1024;
    s.compaction_threads = 2;
    s.compression_upper = compression;
    s.compression_lower = compression;
    s
}

/// What is written into a database.
struct Load {
    seed: u64,
    writes: usize,
    /// One entry per block, and keys in pairs that differ in their last byte only, so that every
    /// other separator is as long as a key.
    wide_index: bool,
}

impl Load {
    fn new(seed: u64) -> Load {
        Load { seed, writes: 6_000, wide_index: false }
    }

    /// Fills `db`; the snapshots keep old versions alive.
    fn write(&self, db: &Db) -> Vec<Snapshot> {
        let mut rng = fastrand::Rng::with_seed(self.seed);
        let mut snapshots = Vec::new();
        for i in 0..self.writes {
            let key = self.key(&mut rng);
            match rng.u32(0..200) {
                0..16 => db.delete(&key).unwrap(),
                16..19 => {
                    let end = [&key[..key.len().min(8)], &[0xff; 2]].concat();
                    if key < end {
                        db.delete_range(&key, &end).unwrap();
                    }
                }
                _ => db.put(&key, self.value(&mut rng)).unwrap(),
            }
            if i % 97 == 0 && i > self.writes / 2 {
                snapshots.push(db.snapshot());
            }
        }
        // A key whose versions fill several blocks.
        for i in 0..200 {
            db.put(b"key of many versions", format!("{i} ").repeat(20)).unwrap();
            snapshots.push(db.snapshot());
        }
        snapshots
    }

    fn key(&self, rng: &mut fastrand::Rng) -> Vec<u8> {
        if self.wide_index {
            let n = rng.u64(0..40_000);
            let mut head = fastrand::Rng::with_seed(n / 2);
            let head = std::iter::repeat_with(|| head.u8(..)).take(150);
            return head.chain([n as u8 % 2]).collect();
        }
        let n = rng.u32(0..2000);
        match rng.u8(0..30) {
            0 => vec![b'k'; 1 + n as usize % LONGEST_KEY],
            1..5 => (0..1 + n % 12).map(|_| rng.u8(..)).collect(),
            5..10 => format!("a long common prefix of many keys {n:05}").into_bytes(),
            _ => format!("key{n:05}").into_bytes(),
        }
    }

    fn value(&self, rng: &mut fastrand::Rng) -> Vec<u8> {
        let len = match rng.u8(0..60) {
            _ if self.wide_index => 450,
            0 => 20_000,
            1..4 => 0,
            _ => rng.usize(0..160),
        };
        // Half of it compresses.
        (0..len).map(|i| if i % 2 == 0 { rng.u8(..) } else { b'=' }).collect()
    }
}

/// Fills a database and compares every table it holds: after flushes and compactions under
/// snapshots, and again after all of it was compacted into one run. `None` without the tool.
fn look_at_tables_of(load: &Load, settings: Settings) -> Option<Seen> {
    if !oracle_is_here() {
        return None;
    }
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open(dir.path().join("db"), settings).unwrap();
    let snapshots = load.write(&db);
    let mut seen = compare_all(&db, &dir.path().join("under snapshots"));
    // A table of range deletions alone.
    db.delete_range("x", "y").unwrap();
    seen.add(compare_all(&db, &dir.path().join("range deletion")));
    drop(snapshots);
    db.compact_range(None, None).unwrap();
    seen.add(compare_all(&db, &dir.path().join("compacted")));
    db.close().unwrap();
    eprintln!("{} tables, {} entries, {} range deletions", seen.tables, seen.points, seen.ranges);
    assert!(seen.points > load.writes as u64 && seen.ranges > 0, "too little was compared");
    Some(seen)
}

/// What was compared.
#[derive(Default)]
struct Seen {
    tables: u64,
    /// Those with an index of two levels.
    two_level: u64,
    points: u64,
    ranges: u64,
}

impl Seen {
    fn add(&mut self, other: Seen) {
        self.tables += other.tables;
        self.two_level += other.two_level;
        self.points += other.points;
        self.ranges += other.ranges;
    }
}

/// Compares the tables of `db` as they are now: those of a checkpoint, which stay.
fn compare_all(db: &Db, checkpoint: &Path) -> Seen {
    db.flush().unwrap();
    db.wait_idle(None).unwrap();
    db.checkpoint(checkpoint).unwrap();
    let mut seen = Seen::default();
    for path in tables_in(checkpoint) {
        seen.add(compare(&path));
    }
    seen
}

fn tables_in(dir: &Path) -> Vec<PathBuf> {
    let listed = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let mut tables: Vec<_> = listed.filter(|p| p.extension().is_some_and(|e| e == "sst")).collect();
    tables.sort();
    tables
}

/// Compares one table.
fn compare(path: &Path) -> Seen {
    for command in ["verify", "check"] {
        let said = sst_dump(path, command);
        assert!(!said.contains("orruption"), "{command}: {said}");
    }
    let file = PosixFs::new().open(path, OpenOpts::read()).unwrap();
    let name = path.file_name().unwrap().to_string_lossy();
    let table = TableReader::open(OpenTable::new(file, name, bytewise())).unwrap();
    assert_eq!(table.format_version(), 5);
    verify(&table).unwrap();

    let mut ours = String::new();
    let mut points = 0;
    let mut iter = TableIter::new(table.clone());
    let mut more = iter.seek_to_first();
    while more {
        let kind = iter.tag().kind().unwrap();
        let (key, value) = (hex(iter.user_key()), hex(iter.value()));
        let (seq, kind) = (iter.tag().seq(), kind as u8);
        writeln!(ours, "'{key}' seq:{seq}, type:{kind} => {value}").unwrap();
        points += 1;
        more = iter.next();
    }
    iter.status().unwrap();
    let scanned = sst_dump(path, "scan");
    let theirs = scanned.lines().filter(|line| line.contains("' seq:"));
    same_lines(path, ours.lines(), theirs);

    let ours = range_deletions(&table);
    let dumped = sst_dump(path, "raw");
    let text = path.with_file_name(format!("{}_dump.txt", path.file_stem().unwrap().display()));
    let theirs = std::fs::read(&text).unwrap_or_else(|e| panic!("{e}: {dumped}"));
    std::fs::remove_file(text).unwrap();
    let theirs = ranges_of_dump(&theirs);
    same_lines(path, ours.iter().map(String::as_str), theirs.iter().map(String::as_str));
    let two_level = u64::from(table.properties().index_type() == TWO_LEVEL);
    Seen { tables: 1, two_level, points, ranges: ours.len() as u64 }
}

fn same_lines<'a>(
    path: &Path,
    mut ours: impl Iterator<Item = &'a str>,
    mut theirs: impl Iterator<Item = &'a str>,
) {
    let mut at = 0;
    loop {
        at += 1;
        match (ours.next(), theirs.next()) {
            (None, None) => return,
            (a, b) => assert_eq!(a, b, "{} differs in line {at}", path.display()),
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    bytes.iter().for_each(|b| write!(text, "{b:02X}").unwrap());
    text
}
/// The fragments of a table as the dump prints them: bounds, without sequence numbers.
fn range_deletions(table: &TableReader) -> Vec<String> {
    let fragments = table.stored_tombstones().to_tombstones().unwrap();
    fragments.iter().map(|t| format!("{}: {}", hex(&t.lo), hex(&t.hi))).collect()
}

/// The same, from the text of a raw dump. Its keys are not all text, its heads are.
fn ranges_of_dump(text: &[u8]) -> Vec<String> {
    let lines = text.split(|&b| b == b'\n').map(String::from_utf8_lossy);
    lines
        .skip_while(|line| !line.starts_with("Range deletions:"))
        .take_while(|line| !line.starts_with("Data Block # 1"))
        .filter_map(|line| Some(line.strip_prefix("  HEX    ")?.to_owned()))
        .collect()
}

fn sst_dump(path: &Path, command: &str) -> String {
    let out = Command::new("sst_dump")
        .current_dir(path.parent().unwrap())
        .arg(format!("--file={}", path.display()))
        .args([&format!("--command={command}"), "--verify_checksum", "--output_hex"])
        .output()
        .expect("sst_dump is on the path");
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    let errors = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(out.status.success(), "{command} of {}: {text:.2000} {errors}", path.display());
    text + &errors
}

fn oracle_is_here() -> bool {
    if Command::new("sst_dump").arg("--help").output().is_ok() {
        return true;
    }
    let how = "sst_dump is not on the path (Debian's package rocksdb-tools has it)";
    assert!(std::env::var_os("LITHIFY_ORACLES").is_none(), "LITHIFY_ORACLES is set, but {how}");
    eprintln!("skipped: {how}");
    false
}
