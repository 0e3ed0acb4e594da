//! `compact --engine fpga-sim` from outside: a database of 64 MiB is compacted by the simulated hardware in a build
//! that has it (feature `verilated`), else by its model, and has the tables that the CPU makes.
#![allow(clippy::disallowed_methods, reason = "a test sets up its world by itself")]

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use lithify::{Builder, Policy, Settings};
use lithify_base::Bytewise;
use lithify_env::{Fs, OpenOpts, PosixFs};
use lithify_format::table::footer::Footer;
use lithify_format::table::handle::BlockHandle;
use lithify_format::table::metaindex::MetaIndex;
use lithify_tables::sst::{FullIndex, OpenTable, TableReader};
use serde_json::Value;

use crate::common::{lithify, ok};

/// What stands for the card, and megabytes of the database: simulated hardware does about 10 a second.
const CARD: &str = if cfg!(feature = "verilated") { "verilated" } else { "model" };
const BYTES: u64 = 64 << 20;
/// Bytes of a value.
const VALUE: usize = 1000;

/// A database of `runs` runs over the same keys, in which each run hides and deletes some of the others' entries.
fn database(dir: &Path, bytes: u64, runs: u64) {
    let mut settings = Settings::default();
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

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}

/// The tables in a directory, in the order of their keys.
fn tables(dir: &Path) -> Vec<PathBuf> {
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
fn compact(dir: &Path, args: &[&str]) -> Value {
    let dir = dir.to_str().unwrap();
    let printed = ok(&[&["compact", "--db", dir, "--json"], args].concat());
    serde_json::from_str(&printed).unwrap()
}

fn figure(printed: &Value, name: &str) -> u64 {
    printed["engines"][0]["machine"][name].as_f64().unwrap_or_else(|| panic!("{name}: {printed}"))
        as u64
}

/// On the unit go nine sets in ten at least, the tables are those of the CPU, and the database is sound.
#[test]
fn the_units_make_the_tables_of_the_cpu() {
    let scratch = tempfile::tempdir().unwrap();
    let (by_unit, by_cpu) = (scratch.path().join("unit"), scratch.path().join("cpu"));
    database(&by_unit, BYTES, 4);
    copy(&by_unit, &by_cpu);
    let before = tables(&by_unit);
    let began = Instant::now();
    let engine = ["--engine", "fpga-sim", "--fpga-card", CARD, "--fpga-units", "1"];
    let printed = compact(&by_unit, &engine);
    let took = began.elapsed();
    compact(&by_cpu, &["--engine", "cpu"]);

    let (on_units, on_cpu) = (figure(&printed, "unit_sets"), figure(&printed, "cpu_sets"));
    println!(
        "{CARD}: {on_units} sets on the unit, {on_cpu} on the CPU, {:.1} s",
        took.as_secs_f64()
    );
    assert!(on_units >= 9 * on_cpu && on_units > 10, "{printed}");
    assert!(figure(&printed, "unit_bytes") > BYTES / 10 * 9, "{printed}");
    let (units, cpu) = (tables(&by_unit), tables(&by_cpu));
    assert_eq!(units.len(), cpu.len());
    for (a, b) in units.iter().zip(&cpu) {
        assert_eq!(properties(a), properties(b), "{a:?}");
        assert!(without_its_maker(a) == without_its_maker(b), "{a:?} and {b:?} differ");
    }
    // Those that were merged are gone.
    assert!(before.iter().all(|path| !path.exists()), "{before:?}");
    ok(&["verify", by_unit.to_str().unwrap()]);
}

/// More runs than the unit has ways: the CPU does the part, and what is printed says why and what helps.
#[test]
fn what_the_cpu_did_instead_is_printed_with_why() {
    let scratch = tempfile::tempdir().unwrap();
    let dir = scratch.path().join("db");
    database(&dir, 2 << 20, 12);
    let dir = dir.to_str().unwrap();
    let printed = ok(&["compact", "--db", dir, "--engine", "fpga-sim"]);
    let why = "fpga-sim: the CPU did 1 of 1 parts (1 with a set that it does not take); at last: set too \
               large: a set of 12 runs, and it takes 8 at most";
    assert!(printed.contains(why), "{printed}");
    assert!(printed.contains("--fpga-ways"), "{printed}");
    // A card that the program has no memory for is not made.
    let out = lithify(&[
        "compact",
        "--db",
        dir,
        "--engine",
        "fpga-sim",
        "--fpga-units",
        "16",
        "--fpga-slots",
        "16",
        "--fpga-set",
        "268435456",
    ]);
    let said = String::from_utf8_lossy(&out.stderr);
    assert_eq!(out.status.code(), Some(2), "{said}");
    assert!(said.contains("--fpga-slots") && said.contains("smaller sets"), "{said}");
}
