//! What a directory made by a stranger may take: 64 MiB of memory or four times its bytes on disk,
//! whichever is more (reliability F23). Each command runs under a process limit, and ends with an exit code and, if it
//! fails, a sentence: never by a signal, and within ten seconds.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "files that no database makes"
)]

use std::fs::{self, File};
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use lithify_base::{Bytewise, CfId, Comparator as _, InternalKey, Kind, Tag};
use lithify_format::block::BlockBuilder;
use lithify_format::compress::{Codec, Compressor};
use lithify_format::table::footer::Footer;
use lithify_format::table::handle::BlockHandle;
use lithify_format::table::metaindex::{self, MetaIndex};
use lithify_format::table::tail::{BlockMeta, TableSpec, TailBuilder};
use lithify_journal::manifest::{FamilyState, ManifestState};

const MIB: u64 = 1 << 20;
const TIME_MAX: Duration = Duration::from_secs(10);

/// Bytes that the files of a directory take on disk.
fn on_disk(dir: &Path) -> u64 {
    let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().metadata().unwrap());
    entries.filter(|meta| meta.is_file()).map(|meta| meta.blocks() * 512).sum()
}

/// Runs a command that may use `bytes` of memory.
fn limited(bytes: u64, args: &[&str]) -> Output {
    let kib = (bytes >> 10).to_string();
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -d \"$0\" && exec \"$@\"", &kib, env!("CARGO_BIN_EXE_lithify")]);
    command.args(args).stdin(Stdio::null()).output().unwrap()
}

/// Runs a command over `dir` with the memory that it may use; its exit code and all that it said.
#[track_caller]
fn bounded(dir: &Path, args: &[&str]) -> (i32, String) {
    let begun = Instant::now();
    let out = limited((4 * on_disk(dir)).max(64 * MIB), args);
    let took = begun.elapsed();
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    let code = out.status.code().unwrap_or_else(|| panic!("{args:?}: {}: {said}", out.status));
    assert!(code == 0 || !said.trim().is_empty(), "{args:?} fails without a word");
    assert!(!said.contains("panicked") && !said.contains("this is a bug"), "{args:?}: {said}");
    assert!(took < TIME_MAX, "{args:?} took {took:?}");
    (code, said + &String::from_utf8_lossy(&out.stdout))
}

/// All that only looks at a directory, and then what opens it for writing.
#[track_caller]
fn every_way(dir: &Path) -> Vec<(i32, String)> {
    let at = dir.to_str().unwrap();
    let saved = dir.with_extension("saved");
    let into = saved.to_str().unwrap();
    let ways: [&[&str]; 9] = [
        &["get", "--db", at, "k"],
        &["scan", "--db", at],
        &["verify", at],
        &["stats", "--db", at],
        &["picture", at],
        &["explain", at],
        &["family", "list", at],
        &["salvage", at, "--to", into],
        &["put", "--db", at, "k", "v"],
    ];
    let told: Vec<_> = ways.iter().map(|args| bounded(dir, args)).collect();
    for (args, (code, said)) in ways.iter().zip(&told) {
        assert_ne!(*code, 2, "{args:?} is no command: {said}");
    }
    told
}

/// A database whose manifest is `state`'s.
fn with_manifest(dir: &Path, state: &ManifestState) {
    fs::create_dir_all(dir).unwrap();
    fs::write(dir.join("MANIFEST-000005"), state.to_manifest(5).0).unwrap();
    fs::write(dir.join("CURRENT"), "MANIFEST-000005\n").unwrap();
    fs::write(dir.join("IDENTITY"), "0f3a").unwrap();
}

fn many_families(count: u32) -> ManifestState {
    let mut state = ManifestState {
        db_id: Some("0f3a".to_owned()),
        next_file: 9,
        max_cf: count,
        ..ManifestState::default()
    };
    for n in 1..count {
        let family = FamilyState { name: n.to_string(), ..FamilyState::default() };
        state.families.insert(CfId(n), family);
    }
    state
}

/// A database with one key, made by the command itself.
fn small(dir: &Path) {
    crate::common::ok(&["put", "--db", dir.to_str().unwrap(), "k", "v"]);
}

/// The one file of `dir` whose name ends in `end`.
fn file_of(dir: &Path, end: &str) -> std::path::PathBuf {
    let names = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    names.filter(|path| path.to_str().unwrap().ends_with(end)).max().unwrap()
}

#[test]
fn families_that_are_only_opened_take_next_to_nothing() {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join("db");
    with_manifest(&dir, &many_families(60));
    every_way(&dir);
    // Each family of a salvage is made by itself, which takes its time; the rest is quick.
    let dir = home.path().join("more");
    with_manifest(&dir, &many_families(400));
    assert!(on_disk(&dir) < 64 << 10);
    let at = dir.to_str().unwrap();
    let (code, said) = bounded(&dir, &["put", "--db", at, "k", "v"]);
    assert_eq!(code, 0, "{said}");
    let (code, said) = bounded(&dir, &["verify", at]);
    assert_eq!(code, 0, "{said}");
    assert_eq!(bounded(&dir, &["get", "--db", at, "k"]), (0, "v\n".to_owned()));
    // And more than there may be.
    let dir = home.path().join("crowd");
    with_manifest(&dir, &many_families(20_000));
    for (args, (_, said)) in ["get", "scan"].iter().zip(every_way(&dir)) {
        assert!(said.contains("memory_budget"), "{args}: {said}");
    }
}

/// A table of one entry, whose partitioned filter has `parts` parts that decompress to 8 MiB each.
fn swollen_table(parts: u32) -> Vec<u8> {
    let spec = TableSpec { version: 5, millibits: 0, ..TableSpec::default() };
    let check = spec.check();
    let mut block = BlockBuilder::new(16);
    let key = InternalKey { user: b"k", tag: Tag::new(1, Kind::Value) };
    block.add_entry(key, b"v");
    let mut stored = Vec::new();
    key.encode_into(&mut stored);
    let meta = BlockMeta {
        first_key: stored.clone(),
        last_key: stored,
        entries: 1,
        raw_key_bytes: 9,
        raw_value_bytes: 1,
        min_seq: 1,
        max_seq: 1,
        ..BlockMeta::default()
    };
    let mut file = Vec::new();
    let push = |file: &mut Vec<u8>, payload: &[u8], type_byte: u8| {
        let handle = BlockHandle::new(file.len() as u64, payload.len() as u64);
        check.append(file, payload, type_byte, handle.offset);
        handle
    };
    let data = push(&mut file, block.finish(), 0);
    let mut tail = TailBuilder::new();
    tail.push_block(BlockMeta { handle: data, ..meta });
    let tail = tail.finish(&spec, &Bytewise).unwrap();
    file.extend_from_slice(&tail.bytes);
    let old = Footer::read(&file[file.len() - 53..], file.len() as u64).unwrap();
    let names = &file[old.metaindex.offset as usize..][..old.metaindex.size as usize];
    let mut names = MetaIndex::decode(names).unwrap();

    let mut payload = Vec::new();
    let kind = Compressor::new(Codec::Lz4, 0).unwrap().append(&vec![0; 8 << 20], &mut payload);
    let mut top = BlockBuilder::new(1);
    for part in 0..parts {
        let separator = format!("k{part:03}");
        top.add_handle(separator.as_bytes(), push(&mut file, &payload, kind));
    }
    names.insert(metaindex::PARTITIONED_FILTER, push(&mut file, top.finish(), 0));
    let metaindex = push(&mut file, &names.encode(), 0);
    let footer = Footer { metaindex, ..old };
    let footer = footer.encode(file.len() as u64);
    file.extend_from_slice(&footer);
    file
}

#[test]
fn parts_of_a_filter_are_read_when_they_are_asked_for() {
    let home = tempfile::tempdir().unwrap();
    let table = home.path().join("000012.sst");
    fs::write(&table, swollen_table(40)).unwrap();
    let at = table.to_str().unwrap();
    let (code, said) = bounded(home.path(), &["table", "dump", at]);
    assert_eq!((code, said.as_str()), (0, "k\t1\tvalue\tv\n"));
    bounded(home.path(), &["table", "dump", "--properties", at]);
    bounded(home.path(), &["table", "verify", at]);
}

/// Makes `path` `len` bytes longer without writing them: its content lies at the end.
fn pushed_back(path: &Path, len: u64) {
    let content = fs::read(path).unwrap();
    let file = File::create(path).unwrap();
    file.write_all_at(&content, len).unwrap();
}

#[test]
fn a_table_of_holes_is_an_error() {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join("db");
    small(&dir);
    crate::common::ok(&["compact", "--db", dir.to_str().unwrap()]);
    let table = file_of(&dir, ".sst");
    // Blocks of 3 GiB: the index names one that ends where the tail begins.
    for len in [64 * MIB, 3 << 30, 1 << 40] {
        let (kept, spec) = (fs::read(&table).unwrap(), TableSpec::default());
        let spec = TableSpec { version: 5, millibits: 0, ..spec };
        let mut key = Vec::new();
        InternalKey { user: b"k", tag: Tag::new(1, Kind::Value) }.encode_into(&mut key);
        let mut tail = TailBuilder::new();
        let size = len - 5;
        tail.push_block(BlockMeta {
            handle: BlockHandle::new(0, size),
            first_key: key.clone(),
            last_key: key,
            entries: 1,
            raw_key_bytes: 9,
            raw_value_bytes: 1,
            ..BlockMeta::default()
        });
        let tail = tail.finish(&spec, &Bytewise).unwrap();
        let file = File::create(&table).unwrap();
        file.write_all_at(&tail.bytes, len).unwrap();
        let at = table.to_str().unwrap();
        for args in [["table", "dump", at], ["table", "verify", at]] {
            let (code, said) = bounded(home.path(), &args);
            assert_eq!(code, 1, "{said}");
        }
        every_way(&dir);
        fs::write(&table, kept).unwrap();
    }
    // All of it far behind a hole.
    pushed_back(&table, 1 << 40);
    every_way(&dir);
    bounded(home.path(), &["table", "dump", table.to_str().unwrap()]);
    bounded(home.path(), &["table", "verify", table.to_str().unwrap()]);
}

#[test]
fn logs_and_manifests_of_holes_end_at_once() {
    let home = tempfile::tempdir().unwrap();
    for (name, end) in [("log", ".log"), ("manifest", "MANIFEST")] {
        for front in [0, 1 << 40] {
            let dir = home.path().join(format!("{name}-{front}"));
            small(&dir);
            let path = match end {
                ".log" => file_of(&dir, end),
                _ => dir.join(fs::read_to_string(dir.join("CURRENT")).unwrap().trim()),
            };
            if front > 0 {
                pushed_back(&path, front);
            }
            let file = File::options().write(true).open(&path).unwrap();
            file.set_len(front + (1 << 40)).unwrap();
            let told = every_way(&dir);
            if front == 0 {
                assert_eq!(told[0], (0, "v\n".to_owned()), "zeros behind the {name} are its end");
            }
        }
    }
}

/// What reads a log would make more of scattered pages than there is.
#[test]
fn scattered_logs_and_manifests_take_no_more_than_their_blocks() {
    let home = tempfile::tempdir().unwrap();
    for end in [".log", "MANIFEST"] {
        for count in [900, 4000] {
            let dir = home.path().join(format!("{end}-{count}"));
            small(&dir);
            let path = match end {
                ".log" => file_of(&dir, end),
                _ => dir.join(fs::read_to_string(dir.join("CURRENT")).unwrap().trim()),
            };
            let file = File::options().write(true).open(&path).unwrap();
            for n in 1..count {
                file.write_all_at(&[1], n * (92 << 10)).unwrap();
            }
            // The blocks of the shorter one are 28 MiB, all of it is 80.
            for (_, said) in every_way(&dir) {
                assert!(count > 900 || !said.contains("no memory"), "{end}: {said}");
            }
        }
    }
}

#[test]
fn small_files_of_holes_are_errors() {
    let home = tempfile::tempdir().unwrap();
    for name in ["CURRENT", "IDENTITY", "OPTIONS", "EVENTS", "LOCK"] {
        for len in [60 * MIB, 3 << 30, 1 << 40] {
            let dir = home.path().join(format!("{name}-{len}"));
            small(&dir);
            let path = match name {
                "OPTIONS" => {
                    let names = fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().path());
                    names.filter(|p| p.to_str().unwrap().contains("OPTIONS-")).max().unwrap()
                }
                name => dir.join(name),
            };
            File::options().write(true).open(&path).unwrap().set_len(len).unwrap();
            every_way(&dir);
        }
    }
}

#[test]
fn the_limit_is_one_that_ends_a_process() {
    // The measure itself: what is twice over the limit dies.
    let home = tempfile::tempdir().unwrap();
    small(&home.path().join("db"));
    let out =
        limited(8 * MIB, &["put", "--db", home.path().join("db").to_str().unwrap(), "a", "b"]);
    assert!(!out.status.success());
    assert_eq!(Bytewise.name(), "leveldb.BytewiseComparator");
}

#[test]
fn an_event_log_that_is_none_is_an_error_at_once() {
    let scratch = tempfile::tempdir().unwrap();
    let dir = scratch.path().join("db");
    let at = dir.to_str().unwrap().to_owned();
    assert_eq!(bounded(&dir_of_one(&dir), &["get", "--db", &at, "k"]).0, 0);
    let events = dir.join("EVENTS");
    let _ = fs::remove_file(&events);
    assert!(Command::new("mkfifo").arg(&events).status().unwrap().success());
    let (code, said) = bounded(&dir, &["explain", &at]);
    assert!(code == 1 && said.contains("FIFO"), "{said}");
    fs::remove_file(&events).unwrap();
    std::os::unix::fs::symlink("/dev/zero", &events).unwrap();
    let (code, said) = bounded(&dir, &["explain", &at]);
    assert!(code == 1 && said.contains("symbolic link"), "{said}");
    fs::remove_file(&events).unwrap();
    File::create(&events).unwrap().set_len(1 << 40).unwrap();
    assert_eq!(bounded(&dir, &["explain", &at]).0, 0);
}

/// Makes a database with one key in `dir`.
fn dir_of_one(dir: &Path) -> std::path::PathBuf {
    let args = ["put", "--db", dir.to_str().unwrap(), "k", "v"];
    let put = Command::new(env!("CARGO_BIN_EXE_lithify")).args(args).output().unwrap();
    assert!(put.status.success(), "{}", String::from_utf8_lossy(&put.stderr));
    dir.to_path_buf()
}
