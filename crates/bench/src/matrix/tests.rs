//! What the matrix runs, and what it makes of reports.

use clap::Parser;

use super::*;
use crate::report::{Latency, WorkloadReport};

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    args: MatrixArgs,
}

fn args(flags: &str) -> MatrixArgs {
    Line::parse_from(std::iter::once("matrix").chain(flags.split_whitespace())).args
}

fn names(cases: &[Case]) -> Vec<String> {
    cases.iter().map(|c| format!("{} {} {}", c.load.name(), c.shape, c.variant)).collect()
}

#[test]
fn every_priority_meets_every_shape_that_has_them() {
    let cases = cases(&["hybrid", "tiered", "universal"], &args("")).unwrap();
    // Five priorities at three ratios, two shapes without; and tuning of the two that all have.
    assert_eq!(cases.len(), 4 * (5 * 3 + 2) + 2 * 2);
    let uniform: Vec<_> = cases.iter().filter(|c| c.load == Load::Uniform).collect();
    let pair = |c: &Case| (c.shape.clone(), c.variant.clone());
    let mut distinct: Vec<_> = uniform.iter().map(|c| pair(c)).collect();
    distinct.sort();
    distinct.dedup();
    assert_eq!(distinct.len(), uniform.len());
    for case in &cases {
        assert_eq!(case.common, case.shape != "tiered", "{}", case.shape);
        let check = case.settings.workloads.last();
        assert_eq!(check, Some(&Workload::Verify), "a run without a check");
        case.settings.clone().resolve().unwrap();
    }
}

#[test]
fn settings_are_those_of_the_case() {
    let flags = "--loads deletes,tuning --shapes leveled:4,leveled:10,tiered \
                 --priorities round-robin --memtable-bytes 1MiB --num 5000";
    let cases = cases(&[], &args(flags)).unwrap();
    assert_eq!(
        names(&cases),
        [
            "deletes leveled T=4 round-robin",
            "deletes leveled T=10 round-robin",
            "deletes tiered ",
            "tuning leveled before",
            "tuning leveled after",
        ]
    );
    let s = &cases[0].settings;
    assert_eq!((s.level_multiplier, s.compaction_pri), (4.0, CompactionPri::RoundRobin));
    assert_eq!((s.policy.as_str(), s.num), ("leveled", Some(5000)));
    assert!(s.workloads.contains(&Workload::OverwriteDelete));
    // Engines refuse a priority where nothing is chosen by it.
    assert_eq!(cases[2].settings.compaction_pri, CompactionPri::MinOverlappingRatio);
    let (before, after) = (&cases[3].settings, &cases[4].settings);
    assert_eq!((before.key_size, before.value_size), (20, 400));
    assert_eq!((before.memtable_bytes, after.memtable_bytes), (1 << 20, 2 << 20));
    assert_eq!((before.level_multiplier, after.level_multiplier), (10.0, 8.0));
    assert_eq!((before.bloom_bits, after.bloom_bits), (0.0, 10.0));
}

#[test]
fn what_cannot_be_is_refused_with_a_hint() {
    let refused = |flags: &str| cases(&["leveled"], &args(flags)).err().unwrap().to_string();
    let own = "--shapes leveled:4 ";
    assert!(refused("--shapes universal").contains("there are leveled"));
    assert!(refused(&(own.to_owned() + "--policy leveled")).contains("--shapes"));
    assert!(refused(&(own.to_owned() + "--workloads fillseq")).contains("--loads"));
    assert!(refused(&(own.to_owned() + "--throttle-latency 5")).contains("--throttle-latency"));
    assert!(refused(&(own.to_owned() + "--rounds 0")).contains("at least one round"));
    let shape = "leveled:1".parse::<Shape>().unwrap_err();
    assert!(shape.contains("2 to 100"), "{shape}");
}

/// A report of a load of 1,000 entries of 116 bytes, of which 700 are left.
fn report(valid: bool) -> RunReport {
    let workload = |name: &str| WorkloadReport { workload: name.to_owned(), ..Default::default() };
    let load = WorkloadReport {
        ops: 1_000,
        bytes: 116_000,
        seconds: 0.5,
        quiesce_seconds: 0.5,
        ops_per_second: 2_000.0,
        mb_per_second: 0.232,
        latency_us: Some(Latency { p99: 7.0, ..Latency::default() }),
        write_amplification: Some(4.5),
        ..workload("overwrite")
    };
    let reads = WorkloadReport { mb_per_second: 50.0, ..workload("readrandom") };
    let check = WorkloadReport { found: 700, space_bytes: 162_400, ..workload("verify") };
    RunReport {
        engine: crate::report::EngineIdentity::default(),
        settings: crate::tests::settings(&[]),
        machine: crate::report::MachineNote::default(),
        valid,
        interrupted: false,
        error: None,
        workloads: vec![workload("filluniquerandom"), load, reads, check],
    }
}

#[test]
fn figures_are_of_the_load_the_reads_and_the_check() {
    let mut r = report(true);
    (r.settings.key_size, r.settings.value_size) = (16, 100);
    let expected = Figures {
        write_amplification: 4.5,
        kops_per_second: 2.0,
        write_mb_per_second: 0.232,
        quiesced_mb_per_second: 0.116,
        p99_us: 7.0,
        read_mb_per_second: 50.0,
        space_amplification: 2.0,
    };
    assert_eq!(figures(&r).unwrap(), expected);
    assert!(figures(&report(false)).is_err(), "an invalid run has figures");
    r.workloads.truncate(2);
    assert!(figures(&r).is_err());
    let other = Figures { p99_us: 9.0, ..expected };
    assert_eq!(Figures::median(&[expected, other]).unwrap().p99_us, 8.0);
    assert_eq!(Figures::median(&[other, expected, expected]).unwrap().p99_us, 7.0);
    assert_eq!(Figures::median(&[]), None);
}

#[test]
fn tables_have_a_line_for_each_case() {
    let figures = figures(&report(true)).unwrap();
    let row = |load, shape: &str, figures: [Option<Figures>; 2]| Row {
        load,
        shape: shape.to_owned(),
        variant: "round-robin".to_owned(),
        figures: figures.to_vec(),
    };
    let matrix = Matrix {
        engines: vec!["ours".to_owned(), "theirs".to_owned()],
        rows: vec![
            row("uniform", "leveled T=4", [Some(figures), Some(figures)]),
            row("uniform", "tiered", [Some(figures), None]),
            row("zipf", "tiered", [None, None]),
        ],
        errors: vec!["zipf tiered: ours: a wrong value".to_owned()],
    };
    let markdown = show::markdown(&matrix);
    assert_eq!(markdown.matches("|---|---|---:|").count(), 2, "{markdown}");
    assert!(markdown.contains("| tiered | round-robin | 4.50 | 2.00 |"), "{markdown}");
    assert!(markdown.contains("INVALID RUN, left out: zipf tiered"), "{markdown}");
    let csv = show::csv(&matrix);
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!(lines.len(), 1 + 3);
    assert!(lines[2].starts_with("uniform,leveled T=4,round-robin,theirs,4.5,2,"), "{csv}");
    let width = |line: &str| line.split(',').count();
    assert!(lines.iter().all(|line| width(line) == width(lines[0])));
    let mut text = Vec::new();
    show::print(&matrix, &mut text).unwrap();
    assert!(String::from_utf8(text).unwrap().contains("INVALID RUN"));
}
