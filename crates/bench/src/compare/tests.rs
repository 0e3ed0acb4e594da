//! Comparison arithmetic on made-up reports.

use super::*;
use crate::report::Latency;

/// A report of `engine` as JSON would bring it: one `fillrandom` of 1,000 operations.
fn canned(engine: &str, load: f64, quiesce: f64, stall: f64) -> RunReport {
    let ops = 1_000.0;
    let text = serde_json::json!({
        "engine": {"name": engine, "version": "1"},
        "settings": serde_json::to_value(crate::tests::settings(&[])).expect("plain values"),
        "machine": {"cpus": 2, "cpu_model": "x", "memory_bytes": 1, "load_average": 0.0},
        "valid": true,
        "workloads": [{
            "workload": "fillrandom", "threads": 1, "ops": 1_000, "found": 0, "side_ops": 0,
            "bytes": 1_000_000, "seconds": load, "quiesce_seconds": quiesce,
            "ops_per_second": ops / load, "ops_per_second_quiesced": ops / (load + quiesce),
            "mb_per_second": 1.0 / load, "series": [1_000],
            "slow": {"count": 0, "seconds": 0.0, "touched_seconds": 0},
            "cpu_seconds": 2.0, "rss_peak_bytes": 1, "space_bytes": 1,
            "write_amplification": 3.0,
            "engine": {"stall_seconds": stall}
        }]
    });
    let mut report: RunReport = serde_json::from_value(text).expect("a report");
    report.workloads[0].latency_us = Some(Latency { p999: 50.0, ..Latency::default() });
    report
}

fn figure<'a>(comparison: &'a Comparison, name: &str) -> &'a Figure {
    let found = comparison.figures.iter().find(|f| f.figure == name);
    found.unwrap_or_else(|| panic!("no figure `{name}`"))
}

#[test]
fn ratios_are_of_medians() {
    let runs = vec![
        canned("a", 1.0, 1.0, 0.0),
        canned("b", 4.0, 1.0, 2.0),
        canned("a", 2.0, 0.0, 0.5),
        canned("b", 5.0, 5.0, 4.0),
        canned("a", 4.0, 4.0, 0.5),
        canned("b", 10.0, 10.0, 9.0),
    ];
    let c = conclude(runs, 3, Ratio::FirstOverOther);
    assert!(c.valid);
    assert_eq!(c.engines.iter().map(|e| e.name.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    let load = figure(&c, "kops/s");
    assert_eq!(load.spreads[0], Spread { median: 0.5, min: 0.25, max: 1.0 });
    assert_eq!(load.spreads[1], Spread { median: 0.2, min: 0.1, max: 0.25 });
    assert_eq!(load.ratios, [Some(1.0), Some(2.5)]);
    let quiesced = figure(&c, "kops/s to quiescence");
    assert_eq!(quiesced.spreads[0].median, 0.5, "1000 operations in 2 s, twice");
    assert_eq!(quiesced.spreads[1].median, 0.1, "1000 operations in 10 s");
    let stall = figure(&c, "stall s");
    assert_eq!(stall.ratios, [Some(1.0), Some(0.125)]);
}

#[test]
fn a_peer_that_could_not_run_may_be_older_than_this_program() {
    use std::os::unix::process::ExitStatusExt;
    let peer = EngineCommand {
        name: "rocksdb".into(),
        program: "/peer".into(),
        prefix: Vec::new(),
        preset: None,
    };
    let own = EngineCommand { prefix: vec!["bench".into()], ..peer.clone() };
    let [usage, other] = [2, 1].map(|code| ExitStatus::from_raw(code << 8));
    assert!(no_report(&peer, usage).contains("cargo xtask peers"));
    assert!(!no_report(&peer, other).contains("cargo xtask"));
    assert!(!no_report(&own, usage).contains("cargo xtask"));
}

#[test]
fn even_rounds_take_the_middle_of_two() {
    let mut values = [4.0, 1.0, 3.0, 2.0];
    assert_eq!(spread(&mut values), Some(Spread { median: 2.5, min: 1.0, max: 4.0 }));
    assert_eq!(spread(&mut []), None);
}

#[test]
fn a_zero_median_has_no_ratio() {
    let c = conclude(
        vec![canned("a", 1.0, 0.0, 1.0), canned("b", 1.0, 0.0, 0.0)],
        1,
        Ratio::FirstOverOther,
    );
    assert_eq!(figure(&c, "stall s").ratios, [Some(1.0), None]);
}

#[test]
fn presets_are_measured_against_the_first() {
    let mut base = canned("hybrid", 2.0, 0.0, 1.0);
    let mut other = canned("df-leveled", 1.0, 0.0, 0.0);
    for (run, mean) in [(&mut base, 2.0), (&mut other, 3.0)] {
        let w = &mut run.workloads[0];
        w.activity = Some(Activity { slots: 8, mean_compactions: mean, ..Activity::default() });
        w.write_amplification_by_level = vec![1.0, mean, 0.0];
        w.debt_bytes = Some(5_000_000);
    }
    let c = conclude(vec![base, other], 1, Ratio::OtherOverFirst);
    assert_eq!(figure(&c, "kops/s").ratios, [Some(1.0), Some(2.0)]);
    assert_eq!(figure(&c, "mean active jobs").ratios, [Some(1.0), Some(1.5)]);
    assert_eq!(figure(&c, "write amp into L1").ratios, [Some(1.0), Some(1.5)]);
    assert_eq!(figure(&c, "stall s").ratios, [Some(1.0), Some(0.0)]);
    assert_eq!(figure(&c, "debt after load, MB").spreads[1].median, 5.0);
    assert!(!c.figures.iter().any(|f| f.figure == "write amp into L2"), "nothing went there");
    let mut text = Vec::new();
    show::print(&c, &mut text).expect("memory takes everything");
    assert!(String::from_utf8_lossy(&text).contains("df-leveled / hybrid"));
}

#[test]
fn presets_are_checked_before_anything_runs() {
    let own = EngineCommand {
        name: "lithify".into(),
        program: "lithify".into(),
        prefix: Vec::new(),
        preset: None,
    };
    let presets = |names: &[&str]| {
        let names: Vec<String> = names.iter().map(|n| (*n).to_owned()).collect();
        presets_of(&["hybrid", "leveled"], &own, &names)
    };
    let engines = presets(&["leveled", "hybrid"]).expect("both are there");
    let names: Vec<_> = engines.iter().map(|e| (e.name.as_str(), e.preset.as_ref())).collect();
    let of = |name: &str| (name.to_owned(), Some(Preset::parse(name)));
    let seen: Vec<_> = names.iter().map(|(n, p)| ((*n).to_owned(), p.cloned())).collect();
    assert_eq!(seen, [of("leveled"), of("hybrid")]);
    for (wrong, want) in [
        (&["sideways"][..], "hybrid, leveled"),
        (&["hybrid", "hybrid"], "twice"),
        (&["sideways:sub2"], "hybrid, leveled"),
        (&["hybrid:sub"], ":subN"),
        (&["hybrid:subtle"], ":subN"),
    ] {
        let error = presets(wrong).expect_err("refused").to_string();
        assert!(error.contains(want), "{error}");
    }
    let engines = presets(&["hybrid", "hybrid:sub4"]).expect("one policy, two presets");
    let preset = engines[1].preset.clone().expect("a preset");
    assert_eq!((&preset.policy[..], preset.subcompactions), ("hybrid", Some(4)));
    assert_eq!(engines[1].name, "hybrid:sub4");
    let path = numbered(Path::new("out/jobs.svg"), "df-tiered", 2);
    assert_eq!(path, Path::new("out/jobs-df-tiered-2.svg"));
}

#[test]
fn invalid_runs_take_no_part_and_are_named() {
    let mut wrong = canned("a", 0.001, 0.0, 0.0);
    wrong.valid = false;
    wrong.error = Some("readrandom: key 5 is missing".into());
    let c = conclude(
        vec![canned("a", 1.0, 0.0, 0.0), canned("b", 2.0, 0.0, 0.0), wrong],
        2,
        Ratio::FirstOverOther,
    );
    assert!(!c.valid);
    assert_eq!(c.errors, ["a: readrandom: key 5 is missing"]);
    assert_eq!(figure(&c, "kops/s").spreads[0], Spread { median: 1.0, min: 1.0, max: 1.0 });
    let mut text = Vec::new();
    show::print(&c, &mut text).expect("memory takes everything");
    let text = String::from_utf8(text).expect("tables are text");
    assert!(text.contains("INVALID RUN") && text.contains("2.00"), "{text}");
}

#[test]
fn a_missing_peer_says_what_to_run() {
    let error = find_peer("nosuch").expect_err("there is no such peer").to_string();
    assert!(
        error.contains("cargo xtask peers") && error.contains("LITHIFY_PEER_NOSUCH"),
        "{error}"
    );
}

/// An engine that notes its flags in `log` and prints the report in `canned`.
#[expect(clippy::disallowed_methods, reason = "a test's own file")]
fn scripted(name: &str, dir: &std::path::Path, report: &RunReport) -> EngineCommand {
    let canned = dir.join(format!("{name}.json"));
    std::fs::write(&canned, serde_json::to_string(report).expect("plain values")).expect("written");
    let log = dir.join("log");
    let script = format!("echo {name} \"$@\" >> {}; cat {}", log.display(), canned.display());
    EngineCommand {
        name: name.to_owned(),
        program: "/bin/sh".into(),
        prefix: vec!["-c".into(), script, name.into()],
        preset: None,
    }
}

#[test]
fn engines_take_turns_with_the_same_flags() {
    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        args: CompareArgs,
    }
    let dir = tempfile::tempdir().expect("a temporary directory");
    let db = format!("--db={}", dir.path().join("runs").display());
    let line = ["x", "--rounds=2", "--workloads=fillrandom", "--num=7K", "--wal=off", "-q", &db];
    let args = <Line as clap::Parser>::try_parse_from(line).expect("the flags parse").args;
    let engines = [
        scripted("a", dir.path(), &canned("a", 1.0, 0.0, 0.0)),
        scripted("b", dir.path(), &canned("b", 2.0, 0.0, 0.0)),
    ];
    preset_runs_get_their_policy(&engines[0], dir.path(), &args);
    let comparison =
        side_by_side(&engines, &args, &Wanted::by(&args).unwrap()).expect("both engines report");
    assert_eq!(figure(&comparison, "kops/s").ratios, [Some(1.0), Some(2.0)]);
    let log = std::fs::read_to_string(dir.path().join("log")).expect("the engines ran");
    let names: Vec<_> = log.lines().filter_map(|l| l.split(' ').next()).collect();
    assert_eq!(names, ["a", "b", "a", "b"]);
    let flags = |line: &str| -> Vec<String> {
        let words = line.split(' ').skip(1).filter(|w| !w.starts_with("--db="));
        words.map(str::to_owned).collect()
    };
    let first = log.lines().next().expect("four lines");
    assert!(flags(first).contains(&"--num=7000".to_owned()), "{first}");
    for line in log.lines() {
        assert_eq!(flags(line), flags(first));
    }
    let dbs: std::collections::BTreeSet<_> =
        log.split(' ').filter(|w| w.starts_with("--db=")).collect();
    assert_eq!(dbs.len(), 4, "every run has a directory of its own: {dbs:?}");
}

/// The same engine with two policies: the flag differs, and so do the names in the report.
fn preset_runs_get_their_policy(engine: &EngineCommand, dir: &Path, args: &CompareArgs) {
    let preset = |name: &str| EngineCommand {
        name: name.into(),
        preset: Some(Preset::parse(name)),
        ..engine.clone()
    };
    let args = CompareArgs { rounds: 1, presets: vec!["x".into()], ..args.clone() };
    let comparison =
        side_by_side(&[preset("x"), preset("y:sub3")], &args, &Wanted::by(&args).unwrap())
            .expect("both report");
    let names: Vec<_> = comparison.engines.iter().map(|e| e.name.as_str()).collect();
    assert_eq!(names, ["x", "y:sub3"]);
    let log = std::fs::read_to_string(dir.join("log")).expect("the engine ran");
    let sets = [["--policy=x ", "--subcompactions=1 "], ["--policy=y ", "--subcompactions=3 "]];
    for (line, flags) in log.lines().zip(sets) {
        assert!(flags.iter().all(|flag| line.contains(flag)), "{line}");
    }
    #[expect(clippy::disallowed_methods, reason = "a test's own file")]
    std::fs::write(dir.join("log"), "").expect("emptied");
}

#[test]
fn an_engine_without_a_report_is_an_error() {
    let engine = EngineCommand {
        name: "mute".into(),
        program: "/bin/sh".into(),
        prefix: vec!["-c".into(), "exit 3".into()],
        preset: None,
    };
    let error = run_engine(&engine, &[], true).expect_err("it says nothing").to_string();
    assert!(error.contains("mute") && error.contains("exit status: 3"), "{error}");
}

#[test]
fn several_peers_have_a_brief_table_with_misses_in_bold() {
    let runs =
        vec![canned("a", 2.0, 0.0, 0.0), canned("b", 4.0, 0.0, 0.0), canned("c", 1.0, 0.0, 0.0)];
    let text = show::brief(&conclude(runs, 1, Ratio::FirstOverOther));
    let row = text.lines().nth(2).unwrap();
    assert_eq!(text.lines().next(), Some("| thousand operations/s | a | b | c |"));
    assert!(row.contains("(2.0)") && row.ends_with("(**0.50**) |"), "{row}");
}
