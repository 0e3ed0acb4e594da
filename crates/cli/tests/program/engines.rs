//! `bench engines` from the command line: small jobs, whose outputs have to be equal whatever merges them.
#![allow(clippy::disallowed_methods, reason = "a test sets up its world by itself")]

use serde_json::Value;

use crate::common::{lithify, ok};

/// What a command that must not be understood says.
fn refused(args: &str) -> String {
    let args: Vec<&str> = ["bench", "engines"].into_iter().chain(args.split(' ')).collect();
    let out = lithify(&args);
    assert_eq!(out.status.code(), Some(2), "{args:?}");
    String::from_utf8(out.stderr).unwrap()
}

fn figures(args: &str) -> Value {
    let args: Vec<&str> = ["bench", "engines", "--json", "--rounds", "1"]
        .into_iter()
        .chain(args.split_whitespace())
        .collect();
    serde_json::from_str(&ok(&args)).unwrap()
}

#[test]
fn the_cpu_has_a_row_for_each_size_and_number_of_threads() {
    let told = figures("--only cpu --jobs 2MiB,4MiB --value-size 100,1024 --threads 2");
    let rows = told["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 8, "{told}");
    for row in rows {
        assert_eq!(row["engine"], "cpu");
        let (job, bytes) =
            (row["job_bytes"].as_f64().unwrap(), row["entry_bytes"].as_f64().unwrap());
        assert!((bytes / job - 1.0).abs() < 0.01, "{row}");
        assert!(row["gb_per_s"].as_f64().unwrap() > 0.0, "{row}");
        let hashes = row["output_hashes"].as_array().unwrap();
        assert_eq!(hashes.len() as u64, row["parts"].as_u64().unwrap(), "{row}");
    }
}

#[test]
fn sizes_that_make_no_sense_are_refused_with_those_that_do() {
    for (args, hint) in [
        ("--key-size 7", "take 8 to 240"),
        ("--value-size 65537", "take 0 to 65536"),
        ("--jobs 3", "take 1MiB to"),
        ("--only abacus", "cpu"),
    ] {
        let told = refused(args);
        assert!(told.contains(hint), "{args}: {told}");
    }
}

#[cfg(feature = "fpga")]
mod fpga {
    use super::*;

    #[test]
    fn a_modelled_card_makes_the_same_and_says_that_it_is_simulated() {
        let told = figures(
            "--only fpga --jobs 6MiB --fpga-units 1,2 --fpga-mhz est,200 --fpga-set 1MiB \
             --fpga-predict 1GB,30GB",
        );
        let rows = told["rows"].as_array().unwrap();
        assert_eq!(rows.len(), 4, "{told}");
        for row in rows {
            let card = &row["fpga"];
            assert_eq!(card["is_simulated"], true);
            assert_eq!(card["share_on_the_cpu"], 0.0, "{row}");
            assert!(
                row["gb_per_s"].as_f64()
                    < card["unit_gb_per_s_at_its_clock"].as_f64().map(|r| 2.0 * r)
            );
        }
        // Computed, so the same again.
        let times = |told: &Value| {
            let rows = told["rows"].as_array().unwrap();
            rows.iter().map(|row| row["fpga"]["card_ns"].clone()).collect::<Vec<_>>()
        };
        let again =
            figures("--only fpga --jobs 6MiB --fpga-units 1,2 --fpga-mhz est,200 --fpga-set 1MiB");
        assert_eq!(times(&told), times(&again));
        let predicted = told["predicted"].as_array().unwrap();
        assert_eq!(predicted.len(), 8, "{told}");
        assert!(predicted.iter().all(|row| row["is_predicted"] == true), "{told}");
    }

    #[test]
    fn flags_of_a_card_that_make_no_sense_say_what_does() {
        for (args, hint) in [
            ("--fpga-link gen9", "gen3x8, gen3x16, gen4x16, stem"),
            ("--fpga-buffer vast", "static, adaptive, stem, stem-raw"),
            ("--fpga-mhz fast", "take est, or 1 to 2000"),
            ("--fpga-units 17", "1..=16"),
            ("--fpga-set 1", "take 4KiB to 256MiB"),
            ("--fpga-memory 1MiB", "raise the former or lower the latter"),
        ] {
            let told = refused(args);
            assert!(told.contains(hint), "{args}: {told}");
        }
    }
}
