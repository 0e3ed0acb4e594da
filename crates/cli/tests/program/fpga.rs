//! `compact --engine fpga-sim` from outside: a database of 64 MiB is compacted by the simulated hardware in a build
//! that has it (feature `verilated`), else by its model, and has the tables that the CPU makes.
#![allow(clippy::disallowed_methods, reason = "a test sets up its world by itself")]

use std::time::Instant;

use lithify::Settings;

use crate::by_engine::{assert_same_tables, compact, copy, database, figure, tables};
use crate::common::{lithify, ok};
use crate::import::copied;

/// What stands for the card, and megabytes of the database: simulated hardware does about 10 a second.
const CARD: &str = if cfg!(feature = "verilated") { "verilated" } else { "model" };
const BYTES: u64 = 64 << 20;
/// On the unit go nine sets in ten at least, the tables are those of the CPU, and the database is sound.
#[test]
fn the_units_make_the_tables_of_the_cpu() {
    let scratch = tempfile::tempdir().unwrap();
    let (by_unit, by_cpu) = (scratch.path().join("unit"), scratch.path().join("cpu"));
    database(&by_unit, Settings::default(), BYTES, 4);
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
    assert_same_tables(&by_unit, &by_cpu);
    // Those that were merged are gone.
    assert!(before.iter().all(|path| !path.exists()), "{before:?}");
    ok(&["verify", by_unit.to_str().unwrap()]);
}

/// More runs than the unit has ways: the CPU merges such sets, and what is printed says why and what helps.
#[test]
fn what_the_cpu_did_instead_is_printed_with_why() {
    let scratch = tempfile::tempdir().unwrap();
    let dir = scratch.path().join("db");
    database(&dir, Settings::default(), 2 << 20, 12);
    let dir = dir.to_str().unwrap();
    let printed = ok(&["compact", "--db", dir, "--engine", "fpga-sim"]);
    assert!(printed.contains("of more runs than a unit has ways"), "{printed}");
    assert!(!printed.contains("the CPU did"), "{printed}");
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

/// A bench and a load merge on units as well, and say how many sets were merged there.
#[test]
fn what_fills_a_database_may_merge_on_units() {
    let scratch = tempfile::tempdir().unwrap();
    let at = |name: &str| scratch.path().join(name).to_str().unwrap().to_owned();
    let (bench, loaded, rows) = (at("bench"), at("loaded"), at("rows"));
    let small = ["--memtable-bytes", "256KiB", "--file-bytes", "256KiB"];
    let mut args = vec!["bench", "--db", &bench, "--engine", "fpga-sim"];
    args.extend(["--workloads", "fillrandom,compact,stats,verify", "--num", "20K"]);
    args.extend(small);
    // Statistics are printed beside the table, not in it.
    let out = lithify(&args);
    let printed = String::from_utf8(out.stderr).unwrap();
    assert!(out.status.success(), "{printed}");
    let on_units = |printed: &str| {
        let line = printed.lines().find(|line| line.starts_with("fpga-sim: ")).map(str::to_owned);
        line.unwrap_or_else(|| panic!("units are not told about: {printed}"))
    };
    assert!(!on_units(&printed).starts_with("fpga-sim: 0 sets"), "{printed}");

    // So little is loaded before compactions begin; that units were there to be given work is told.
    let row = |n: u32| format!("{n:08}\tvalue\n");
    std::fs::write(&rows, (0..1000).map(row).collect::<String>()).unwrap();
    let load = ["load", &rows, "--format", "tsv", "--no-header", "--db", &loaded];
    assert!(ok(&[&load[..], &["--engine", "fpga-sim"]].concat()).contains("fpga-sim: "));
    assert!(!ok(&load).contains("fpga-sim: "));
    ok(&["verify", &loaded]);
}

/// Everything else that opens a database for writing gives its compactions to units as well, and says so where it has the
/// database open itself.
#[test]
fn what_writes_a_little_may_merge_on_units() {
    let scratch = tempfile::tempdir().unwrap();
    let at = |name: &str| scratch.path().join(name).to_str().unwrap().to_owned();
    let (db, copy, backups, saved) = (at("db"), at("copy"), at("backups"), at("saved"));
    let foreign = copied("leveldb-snappy", &scratch.path().join("level"));
    let imported = at("imported");
    let telling: [&[&str]; 6] = [
        &["put", "--db", &db, "a", "1"],
        &["delete", "--db", &db, "b"],
        &["family", "create", "--db", &db, "trees"],
        &["family", "drop", "--db", &db, "trees"],
        &["checkpoint", "--db", &db, &copy],
        &["backup", "create", "--db", &db, &backups],
    ];
    let silent: [&[&str]; 2] =
        [&["import", &foreign, &imported], &["salvage", &db, "--to", &saved]];
    let units = ["--engine", "fpga-sim"];
    let impossible = ["--fpga-units", "16", "--fpga-slots", "16", "--fpga-set", "256MiB"];
    for (command, tells) in
        telling.iter().map(|of| (of, true)).chain(silent.iter().map(|of| (of, false)))
    {
        // Before anything is written.
        let out = lithify(&[command, &units[..], &impossible[..]].concat());
        assert_eq!(out.status.code(), Some(2), "{command:?}");
        let said = ok(&[command, &units[..]].concat());
        assert_eq!(said.contains("fpga-sim: 0 sets on units"), tells, "{command:?}: {said}");
    }
    ok(&["put", "--db", &db, "a", "2", "--engine", "cpu"]);
    assert_eq!(ok(&["get", "--db", &db, "a"]).trim(), "2");
    for made in [&db, &copy, &saved, &imported] {
        ok(&["verify", made]);
    }
}
