//! `lithify lab`: lives, changes and a grid from the command line. Few and short ones: what they say is
//! tested in the lab's own room.
#![allow(clippy::disallowed_methods, reason = "a test sets up its world by itself")]

use crate::common::{lithify, ok};

const SMALL: [&str; 6] = ["--num", "20K", "--memtable", "1MiB", "--file", "1MiB"];

#[test]
fn lives_are_told_side_by_side_and_always_the_same() {
    let args = [&["lab", "--policies", "hybrid,bucket", "--threads", "2,4"], &SMALL[..]].concat();
    let told = ok(&args);
    let rows = told.lines().filter(|l| l.contains("hybrid") || l.contains("bucket")).count();
    assert_eq!(rows, 4, "{told}");
    assert_eq!(told, ok(&args));
}

#[test]
fn a_change_says_when_a_policy_was_back() {
    let args = [&["lab", "--change", "--policies", "hybrid"], &SMALL[..]].concat();
    let told = ok(&args);
    for change in ["disk halved", "disk doubled", "cores halved", "overwrites a tenth"] {
        assert!(told.contains(change), "{told}");
    }
}

#[test]
fn a_grid_prints_the_regret_of_every_cell_and_draws_it() {
    let scratch = tempfile::tempdir().unwrap();
    let path = |name: &str| scratch.path().join(name).to_str().unwrap().to_owned();
    let (svg, csv) = (path("grid.svg"), path("grid.csv"));
    let short =
        ["lab", "--grid", "--every", "50", "--flushes", "12", "--opponents", "hybrid,tiered"];
    let told = ok(&[&short[..], &["--svg", &svg, "--csv", &csv]].concat());
    for what in ["regret of every cell", "worst 20 cells", "where more is less", "median"] {
        assert!(told.contains(what), "{what}: {told}");
    }
    assert!(std::fs::read_to_string(svg).unwrap().contains("<svg"));
    let lines = std::fs::read_to_string(csv).unwrap();
    assert!(lines.lines().any(|l| l.contains("hybrid 8x")), "{lines}");
}

#[test]
fn what_makes_no_sense_is_refused_with_what_there_is() {
    for (args, hint) in [
        (&["--policies", "best"][..], "hybrid"),
        (&["--load", "odd"], "mixgraph"),
        (&["--bursts", "10"], "10,10"),
        (&["--dilate", "0.5"], "from 1"),
        (&["--cores", "0"], "from 0.1"),
        (&["--threads", "0"], "from 1"),
        (&["--memtable", "0"], "from 65536"),
        (&["--l0", "10,5,1"], "4,20,36"),
        (&["--cpu-ns-per-byte", "-1"], "from 0"),
        (&["--grid", "--hold", "NaN"], "from 0"),
        (&["--hold", "0.9"], "--grid"),
        (&["--grid", "--threads", "4"], "--threads"),
    ] {
        let output = lithify(&[&["lab"], args].concat());
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(2) && said.contains(hint), "{args:?}: {said}");
    }
}
