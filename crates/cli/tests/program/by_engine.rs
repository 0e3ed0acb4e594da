//! A database, its compaction by an engine, and all of what its tables hold but who made them, and when.
#![allow(clippy::disallowed_methods, reason = "a test sets up its world by itself")]

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lithify::{Builder, Policy, Settings};
use lithify_base::Bytewise;
use lithify_env::{Fs, OpenOpts, PosixFs};
use lithify_format::table::footer::Footer;
use lithify_format::table::handle::BlockHandle;
use lithify_format::table::metaindex::MetaIndex;
use lithify_tables::sst::{FullIndex, OpenTable, TableReader};
use serde_json::Value;

use crate::common::ok;

/// Bytes of a value.
const VALUE: usize = 1000;

/// A database of `runs` runs over the same keys, in which each run hides and deletes some of the others' entries.
pub(crate) fn database(dir: &Path, mut settings: Settings, bytes: u64, runs: u64) {
    settings.policy = Some(Policy::Leveled);
    settings.auto_compaction = false;
    let db = Builder::new(settings).open(dir).unwrap();
    let mut rng = fastrand::Rng::with_seed(5);
    let keys = bytes / (VALUE as u64 + 24);
    for run in 0..runs {
        for n in (run..keys).step_by(runs as usize) {
            let key = format!("key{:013}", if n % 16 == 0 { n / 2 } else { n });
            if rng.u8(..) < 8 {
                db.delete(key.as_bytes()).unwrap();
            } else {
                // It does not compress: a slot has room for twice the stored bytes of a set.
                let value: Vec<u8> = (0..VALUE).map(|_| rng.u8(..)).collect();
                db.put(key.as_bytes(), &value).unwrap();
            }
        }
        db.flush().unwrap();
    }
    db.close().unwrap();
}

pub(crate) fn copy(from: &Path, to: &Path) {
    std::fs::create_dir(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}

/// The tables in a directory, in the order of their keys.
pub(crate) fn tables(dir: &Path) -> Vec<PathBuf> {
    let paths = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let mut all: Vec<_> = paths
        .filter(|path| path.extension().is_some_and(|end| end == "sst"))
        .map(|path| (FullIndex::of(open(&path)).unwrap().fence(0).separator.to_vec(), path))
        .collect();
    all.sort();
    all.into_iter().map(|(_, path)| path).collect()
}

fn open(path: &Path) -> Arc<TableReader> {
    let file = PosixFs::new().open(path, OpenOpts::read()).unwrap();
    TableReader::open(OpenTable::new(file, path.display().to_string(), Arc::new(Bytewise))).unwrap()
}

fn payload(of: BlockHandle) -> Range<usize> {
    of.offset as usize..(of.offset + of.size) as usize
}

/// All bytes of a table but those that say who made it, and when: each opening of a database has an identity of its
/// own, which stands in the properties, and to which the sum of each block and the footer are bound.
fn without_its_maker(path: &Path) -> Vec<u8> {
    let mut bytes = std::fs::read(path).unwrap();
    let footer =
        Footer::read(&bytes[bytes.len().saturating_sub(64)..], bytes.len() as u64).unwrap();
    let index = FullIndex::of(open(path)).unwrap();
    let data = (0..index.block_fences().len()).map(|no| index.block(no));
    let mut sums: Vec<usize> = data.map(|at| (at.offset + u64::from(at.size)) as usize).collect();
    let meta = footer.metaindex;
    let of_meta = MetaIndex::decode(&bytes[payload(meta)]).unwrap();
    for (name, handle) in of_meta.iter() {
        sums.push(payload(handle).end);
        if name == b"rocksdb.properties" {
            bytes[payload(handle)].fill(0);
        }
    }
    sums.push(payload(meta).end);
    // Behind the type byte.
    sums.into_iter().for_each(|end| bytes[end + 1..end + 5].fill(0));
    let footer = bytes.len() - footer.len();
    bytes[footer..].fill(0);
    bytes
}

/// All properties of a table but those that say who made it, and when.
fn properties(path: &Path) -> String {
    let table = open(path);
    let mut p = table.properties().clone();
    (p.creation_time, p.file_creation_time, p.original_file_number) = (0, 0, 0);
    p.creating_session_identity.clear();
    format!("{p:?}")
}

/// Compacts a directory by the engine; what it printed for programs.
pub(crate) fn compact(dir: &Path, args: &[&str]) -> Value {
    let dir = dir.to_str().unwrap();
    let printed = ok(&[&["compact", "--db", dir, "--json"], args].concat());
    serde_json::from_str(&printed).unwrap()
}

pub(crate) fn figure(printed: &Value, name: &str) -> u64 {
    printed["engines"][0]["machine"][name].as_f64().unwrap_or_else(|| panic!("{name}: {printed}"))
        as u64
}

/// Both directories have the same tables, of another maker.
pub(crate) fn assert_same_tables(one: &Path, other: &Path) {
    let (one, other) = (tables(one), tables(other));
    assert_eq!(one.len(), other.len());
    for (a, b) in one.iter().zip(&other) {
        assert_eq!(properties(a), properties(b), "{a:?}");
        assert!(without_its_maker(a) == without_its_maker(b), "{a:?} and {b:?} differ");
    }
}
