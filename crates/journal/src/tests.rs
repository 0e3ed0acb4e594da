//! Golden bytes of the log, manifest and options formats. A change here is a format change.
//! `REWRITE=1 cargo test -p lithify-journal tests::` writes them anew.
//!
//! With `LITHIFY_ORACLES=1` RocksDB's `ldb` (Debian package `rocksdb-tools`) reads the same bytes.

#![allow(clippy::disallowed_methods, reason = "a test of bytes in files reads and writes files")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::files::{FileName, current_content};
use crate::manifest::{ManifestState, WalAddition, WireEdit, WireFile, read_manifest};
use crate::options::{self, FamilyOptions, Lines, OptionsFile};
use crate::wal::seal::head_of;
use crate::wal::{
    BatchBuilder, Predecessor, Promise, RecordWriter, Seal, SealReason, SeqRule, Verdict, WalWalk,
};
use lithify_base::{CfId, Kind, Seq, Tag};

const LOG: u64 = 12;
const COMPARATOR: &str = "leveldb.BytewiseComparator";

/// A log with everything we write: predecessor, batches of all kinds, a fragmented record, seals.
fn wal() -> Vec<u8> {
    let (mut out, mut writer) = (Vec::new(), RecordWriter::new());
    Predecessor { log_number: 9, size: 4096, last_seq: 100 }.append(&mut writer, &mut out);
    let mut next: Seq = 101;
    let mut batch = BatchBuilder::new();
    let mut add = |batch: &mut BatchBuilder, writer: &mut RecordWriter, out: &mut Vec<u8>| {
        batch.set_sequence(next);
        next += u64::from(batch.count());
        writer.append(batch.as_bytes(), out);
        batch.clear();
        next - 1
    };
    batch.put(CfId(0), b"apple", b"red");
    batch.delete(CfId(0), b"banana");
    batch.single_delete(CfId(0), b"cherry");
    batch.merge(CfId(3), b"count", b"\x01");
    batch.delete_range(CfId(0), b"d", b"f");
    batch.log_data(b"note");
    let last = add(&mut batch, &mut writer, &mut out);
    let at = out.len() as u64;
    seal(SealReason::Group, at, last, &out).append(&mut writer, &mut out);
    batch.put(CfId(3), b"long", &[b'x'; 40_000]);
    let last = add(&mut batch, &mut writer, &mut out);
    // Fill the block until a seal no longer fits.
    let left = 32_768 - writer.block_offset();
    batch.put(CfId(0), b"fill", &vec![b'y'; left - 7 - 12 - 6 - 3 - 30]);
    let last = add(&mut batch, &mut writer, &mut out).max(last);
    let at = out.len() as u64;
    seal(SealReason::Close, at, last, &out).append(&mut writer, &mut out);
    out
}

/// A seal that promises all that is in `log`, `at` bytes.
fn seal(reason: SealReason, at: u64, last_seq: Seq, log: &[u8]) -> Seal {
    let head = Some(head_of(log));
    Seal { reason, log_number: LOG, offset: at, synced: at, last_seq, head }
}

fn state() -> ManifestState {
    let bound = |user: &[u8], seq| [user, &Tag::new(seq, Kind::Value).0.to_le_bytes()].concat();
    let file = |level, number, epoch| WireFile {
        level,
        number,
        epoch,
        size: 1234,
        smallest: bound(b"a", 90),
        largest: bound(b"k", 80),
        smallest_seq: 80,
        largest_seq: 90,
        creation_time: 1_700_000_000,
        oldest_ancestor_time: 1_700_000_000,
        unique_id: Some([1, 2]),
        tail_size: 400,
        base_context: 0xabcd_ef01,
        ..WireFile::default()
    };
    let mut state = ManifestState::default();
    let edits = [
        WireEdit {
            db_id: Some("11111111-2222-3333-4444-555555555555".to_owned()),
            comparator: Some(COMPARATOR.to_owned()),
            log_number: Some(LOG),
            next_file: Some(20),
            last_seq: Some(106),
            min_log_to_keep: Some(LOG),
            added: vec![file(0, 15, 5), file(1, 14, 2)],
            cursors: vec![(1, bound(b"c", 1))],
            ..WireEdit::default()
        },
        WireEdit {
            cf: CfId(3),
            cf_add: Some("metrics".to_owned()),
            comparator: Some(COMPARATOR.to_owned()),
            log_number: Some(LOG),
            wal_additions: vec![WalAddition { number: LOG, synced: Some(31) }],
            ..WireEdit::default()
        },
    ];
    for edit in &edits {
        state.apply(edit).unwrap();
    }
    state
}

const DATABASE: &[(&str, &str)] = &[
    ("max_background_jobs", "2"),
    ("max_subcompactions", "1"),
    ("max_open_files", "-1"),
    ("max_total_wal_size", "0"),
    ("db_write_buffer_size", "0"),
    ("use_direct_reads", "false"),
    ("use_direct_io_for_flush_and_compaction", "true"),
];
const FAMILY: &[(&str, &str)] = &[
    ("write_buffer_size", "67108864"),
    ("max_write_buffer_number", "2"),
    ("compaction_style", "kCompactionStyleLevel"),
    ("compaction_pri", "kMinOverlappingRatio"),
    ("level0_file_num_compaction_trigger", "4"),
    ("level0_slowdown_writes_trigger", "20"),
    ("level0_stop_writes_trigger", "36"),
    ("num_levels", "7"),
    ("max_bytes_for_level_base", "268435456"),
    ("max_bytes_for_level_multiplier", "10.000000"),
    ("level_compaction_dynamic_level_bytes", "true"),
    ("target_file_size_base", "67108864"),
    ("target_file_size_multiplier", "1"),
    ("soft_pending_compaction_bytes_limit", "68719476736"),
    ("hard_pending_compaction_bytes_limit", "274877906944"),
    ("disable_auto_compactions", "false"),
    ("compression", "kLZ4Compression"),
    ("bottommost_compression", "kDisableCompressionOption"),
    ("table_factory", "BlockBasedTable"),
];
const TABLE: &[(&str, &str)] = &[
    ("block_size", "4096"),
    ("block_restart_interval", "16"),
    ("index_block_restart_interval", "16"),
    ("format_version", "5"),
    ("checksum", "kXXH3"),
    ("whole_key_filtering", "true"),
    ("filter_policy", "bloomfilter:10:false"),
];

fn options_text() -> String {
    let lines = |of: &[(&'static str, &str)]| -> Lines {
        of.iter().map(|(name, value)| (*name, (*value).to_owned())).collect()
    };
    let family = |name: &str| FamilyOptions {
        name: name.to_owned(),
        comparator: COMPARATOR.to_owned(),
        merge_operator: None,
        prefix_extractor: None,
        options: lines(FAMILY),
        table: lines(TABLE),
        own: Lines::new(),
    };
    options::write(&lines(DATABASE), &[family("default"), family("metrics")], &Lines::new())
}

fn golden(name: &str, bytes: &[u8]) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden-log").join(name);
    if std::env::var_os("REWRITE").is_some() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, bytes).unwrap();
    }
    let expected = fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    assert!(expected == bytes, "{name} changed: a format change needs its chapter and REWRITE=1");
}

#[test]
fn wal_bytes() {
    let bytes = wal();
    golden("000012.log", &bytes);
    reads_to_its_end(&bytes);
}

/// Logs from before seals repeated the checksum of the first record.
#[test]
fn wal_bytes_without_heads() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden-log");
    reads_to_its_end(&fs::read(dir.join("000012.log-without-heads")).unwrap());
}

fn reads_to_its_end(bytes: &[u8]) {
    let mut walk = WalWalk::new(bytes, LOG, SeqRule::Contiguous);
    let mut counts = Vec::new();
    while let Some(batch) = walk.next_batch().unwrap() {
        counts.push(batch.view().unwrap().iter().count());
    }
    assert_eq!(counts, [5, 1, 1]);
    let whole = Promise { synced: bytes.len() as u64, end: Some((bytes.len() as u64, 107)) };
    assert_eq!(walk.verdict(&whole), Verdict::Clean);
    assert!(walk.was_closed());
}

#[test]
fn manifest_bytes() {
    let (bytes, _) = state().to_manifest(13);
    golden("MANIFEST-000013", &bytes);
    assert_eq!(read_manifest(&bytes, bytes.len() as u64).unwrap().state, state());
}

/// Manifests from before edits said where they stand.
#[test]
fn manifest_bytes_without_places() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden-log");
    let bytes = fs::read(dir.join("MANIFEST-000013-without-places")).unwrap();
    assert_eq!(read_manifest(&bytes, bytes.len() as u64).unwrap().state, state());
}

#[test]
fn options_bytes() {
    let text = options_text();
    golden("OPTIONS-000011", text.as_bytes());
    assert_eq!(OptionsFile::parse(text.as_bytes()).unwrap().families.len(), 2);
}

/// `ldb` with `args`, or `None` where it is not asked for.
fn ldb(args: &[&str]) -> Option<String> {
    if std::env::var_os("LITHIFY_ORACLES").is_none() {
        eprintln!("skipped: set LITHIFY_ORACLES=1 and install rocksdb-tools");
        return None;
    }
    let out = Command::new("ldb").args(args).output().expect("ldb runs");
    let text = [out.stdout, out.stderr].concat();
    let text = String::from_utf8_lossy(&text).into_owned();
    assert!(out.status.success(), "ldb {args:?}: {text}");
    Some(text)
}

fn write_to(dir: &Path, file: FileName, bytes: &[u8]) -> PathBuf {
    let path = dir.join(file.to_string());
    fs::write(&path, bytes).unwrap();
    path
}

#[test]
fn ldb_reads_our_log() {
    let dir = tempfile::tempdir().unwrap();
    // RocksDB 7.8 does not know the ignorable record types yet and stops at them, so the log it
    // reads here has batches only.
    let (mut out, mut writer) = (Vec::new(), RecordWriter::new());
    let mut batch = BatchBuilder::new();
    batch.put(CfId(0), b"apple", b"red");
    batch.delete(CfId(0), b"banana");
    batch.set_sequence(101);
    writer.append(batch.as_bytes(), &mut out);
    batch.clear();
    batch.put(CfId(0), b"long", &[b'x'; 70_000]);
    batch.set_sequence(103);
    writer.append(batch.as_bytes(), &mut out);
    let path = write_to(dir.path(), FileName::Wal(LOG), &out);
    let arg = format!("--walfile={}", path.display());
    let Some(text) = ldb(&["dump_wal", &arg, "--header"]) else { return };
    assert!(text.contains("101,2,") && text.contains("PUT(0) : 0x6170706C65"), "{text}");
    assert!(text.contains("DELETE(0) : 0x62616E616E61"), "{text}");
    assert!(text.contains("103,1,") && text.contains("PUT(0) : 0x6C6F6E67"), "{text}");
}

#[test]
fn ldb_reads_our_manifest() {
    let dir = tempfile::tempdir().unwrap();
    let path = write_to(dir.path(), FileName::Manifest(13), &state().to_manifest(13).0);
    let arg = format!("--path={}", path.display());
    let Some(text) = ldb(&["manifest_dump", "--verbose", &arg]) else { return };
    for says in
        ["15:1234[80 .. 90]", "14:1234[80 .. 90]", "\"metrics\"", "LastSeq: 106", COMPARATOR]
    {
        assert!(text.contains(says), "no `{says}` in {text}");
    }
}

/// RocksDB opens a directory of ours read-write: manifest, log, options, CURRENT and identity.
#[test]
fn rocksdb_opens_our_directory() {
    let dir = tempfile::tempdir().unwrap();
    let mut state = ManifestState::default();
    state
        .apply(&WireEdit {
            db_id: Some("11111111-2222-3333-4444-555555555555".to_owned()),
            comparator: Some(COMPARATOR.to_owned()),
            log_number: Some(LOG),
            next_file: Some(14),
            last_seq: Some(0),
            ..WireEdit::default()
        })
        .unwrap();
    let mut metrics =
        WireEdit { cf: CfId(3), cf_add: Some("metrics".to_owned()), ..WireEdit::default() };
    metrics.comparator = Some(COMPARATOR.to_owned());
    metrics.log_number = Some(LOG);
    state.apply(&metrics).unwrap();
    let mut log = Vec::new();
    let mut batch = BatchBuilder::new();
    batch.put(CfId(0), b"apple", b"red");
    batch.put(CfId(3), b"cpu", b"42");
    batch.set_sequence(1);
    RecordWriter::new().append(batch.as_bytes(), &mut log);
    write_to(dir.path(), FileName::Manifest(13), &state.to_manifest(13).0);
    write_to(dir.path(), FileName::Wal(LOG), &log);
    write_to(dir.path(), FileName::Options(11), options_text().as_bytes());
    write_to(dir.path(), FileName::Current, current_content(13).as_bytes());
    write_to(dir.path(), FileName::Identity, b"11111111-2222-3333-4444-555555555555");
    let db = format!("--db={}", dir.path().display());
    let Some(text) = ldb(&[&db, "--try_load_options", "put", "banana", "yellow"]) else { return };
    assert!(text.contains("OK"), "{text}");
    let text = ldb(&[&db, "--try_load_options", "scan"]).unwrap();
    assert!(text.contains("apple : red") && text.contains("banana : yellow"), "{text}");
    let text = ldb(&[&db, "--column_family=metrics", "get", "cpu"]).unwrap();
    assert!(text.contains("42"), "{text}");
    // And back: we read what RocksDB made of it.
    let current = fs::read(dir.path().join("CURRENT")).unwrap();
    let number = crate::files::parse_current(&current).unwrap();
    let bytes = fs::read(dir.path().join(FileName::Manifest(number).to_string())).unwrap();
    let read = read_manifest(&bytes, 0).unwrap();
    assert_eq!(read.state.families[&CfId(3)].name, "metrics");
    let files = read.state.families.values().map(|f| f.files.len()).sum::<usize>();
    assert!(files >= 2, "RocksDB flushed both families on recovery: {read:?}");
    let written = fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().file_name());
    for name in written.filter_map(|n| n.into_string().ok()).filter(|n| n.starts_with("OPTIONS-")) {
        let file = OptionsFile::parse(&fs::read(dir.path().join(&name)).unwrap()).unwrap();
        assert_eq!(file.families[0].comparator(), Some(COMPARATOR), "{name}");
    }
}
