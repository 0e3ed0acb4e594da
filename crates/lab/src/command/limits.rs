//! What flags may be: one row for each that takes a number. A life under other numbers would not end, would say
//! nothing, or is one that no database has.
//!
//! Keeps: ranges of what a database has too are those of its settings.
//! Leaves to others: words, such as policies and loads (`flags`).

use anyhow::{Result, bail};

use super::flags::Flags;
use crate::setup::Setup;
use crate::space::{CELLS_MAX, KEYS_MAX};

/// Memtables that a life may fill: beyond, it takes hours of ours, as the tree has as many files.
const MEMTABLES_MAX: f64 = 20_000.0;
/// Files of their target size that a life may write.
const FILES_MAX: f64 = 1_000_000.0;
/// The slowest disk, bytes per second. On a slower one a life takes weeks of its own time.
const BANDWIDTH_MIN: f64 = 65_536.0;

const KIB: f64 = 1024.0;
const GIB: f64 = KIB * KIB * KIB;
const PIB: f64 = KIB * KIB * GIB;

/// A flag, what it was given, and the least and the most that it takes.
type Row = (&'static str, f64, f64, f64);

/// Refuses what is outside its range, and what fits nothing else that was given.
pub(super) fn check(f: &Flags) -> Result<()> {
    for (flag, given, least, most) in rows(f) {
        within(flag, given, least, most)?;
    }
    if f.bandwidth > 0 {
        let what = "--bandwidth (0 is no limit)";
        within(what, f.bandwidth as f64, BANDWIDTH_MIN, PIB)?;
    }
    if f.l0.len() != 3 || !f.l0.is_sorted() {
        let given: Vec<_> = f.l0.iter().map(u32::to_string).collect();
        let given = given.join(",");
        bail!("--l0 {given} is no order; give trigger, slow-down and stop, which rise, as 4,20,36");
    }
    Ok(())
}

/// Refuses a number outside its range; a number that is none, too.
pub(crate) fn within(flag: &str, given: f64, least: f64, most: f64) -> Result<()> {
    if !(least..=most).contains(&given) {
        bail!("{flag} {given} is out of range; give a number from {least} to {most}");
    }
    Ok(())
}

/// Refuses lives that are too long to wait for.
pub(super) fn check_length(s: &Setup) -> Result<()> {
    let memtables = s.num as f64 * s.bytes.memory / s.plan.memtable_bytes as f64;
    // An entry that is larger than a memtable has one of its own.
    let memtables = memtables.min(s.num as f64);
    if memtables > MEMTABLES_MAX {
        bail!(
            "--num {}: that fills {memtables:.0} memtables, and a life has {MEMTABLES_MAX} at most; give \
             fewer or smaller values, or a larger --memtable",
            s.num
        );
    }
    let files = s.num as f64 * s.bytes.disk / s.plan.file_bytes as f64;
    if files > FILES_MAX {
        bail!(
            "--file {}: that makes {files:.0} files, and a life has {FILES_MAX} at most; give larger files, \
             or fewer or smaller values",
            s.plan.file_bytes
        );
    }
    Ok(())
}

fn rows(f: &Flags) -> Vec<Row> {
    let mut rows = load(f);
    rows.extend(store(f));
    rows.extend(machine(f));
    rows.extend(planner(f));
    rows.extend([
        ("--cells", f64::from(f.cells), 1.0, f64::from(CELLS_MAX)),
        ("--drain-limit", f.drain_limit, 0.001, 1e6),
    ]);
    rows
}

fn load(f: &Flags) -> Vec<Row> {
    let mut rows = vec![
        ("--key-size", f.key_size as f64, 1.0, KIB),
        ("--value-size", f.value_size as f64, 0.0, 64.0 * KIB * KIB),
    ];
    rows.extend(f.num.map(|n| ("--num", n as f64, 1.0, KEYS_MAX as f64)));
    rows.extend(f.keys.map(|n| ("--keys", n as f64, 1.0, KEYS_MAX as f64)));
    rows.extend(f.mix_ranges.iter().map(|&n| ("--mix-ranges", f64::from(n), 1.0, 65_536.0)));
    rows
}

fn store(f: &Flags) -> Vec<Row> {
    let mut rows = vec![
        ("--memtable", f.memtable as f64, 64.0 * KIB, 2.0 * GIB),
        ("--memtables", f64::from(f.memtables), 2.0, 64.0),
        ("--level-base", f.level_base as f64, 64.0 * KIB, PIB),
        ("--multiplier", f64::from(f.multiplier), 2.0, 100.0),
        ("--file", f.file as f64, 16.0 * KIB, 64.0 * GIB),
        ("--flush-threads", f64::from(f.flush_threads), 1.0, 16.0),
    ];
    rows.extend(f.threads.iter().map(|&n| ("--threads", f64::from(n), 1.0, 256.0)));
    rows.extend(f.l0.iter().map(|&n| ("--l0", f64::from(n), 1.0, f64::from(u32::MAX))));
    rows
}

fn machine(f: &Flags) -> Vec<Row> {
    let mut rows = vec![
        ("--latency", f.latency as f64, 0.0, 1e6),
        ("--channels", f64::from(f.channels), 0.0, 65_536.0),
        ("--cores", f.cores, 0.1, 4096.0),
        ("--fpga-rate", f.fpga_rate, 0.001, 1000.0),
        ("--fpga-host-ns-per-byte", f.fpga_host_ns_per_byte, 0.0, 1000.0),
        ("--dilate", f.dilate, 1.0, 1000.0),
    ];
    rows.extend(f.fpga_link.iter().map(|&rate| ("--fpga-link", rate, 0.001, 1000.0)));
    rows.extend(f.io_threads.map(|n| ("--io-threads", f64::from(n), 1.0, 65_536.0)));
    let costs = [
        ("--cpu-ns-per-byte", f.cpu_ns_per_byte, 1000.0),
        ("--flush-ns-per-byte", f.flush_ns_per_byte, 1000.0),
        ("--client-ns", f.client_ns, 1e6),
        ("--ask-ns", f.ask_ns, 1e7),
        ("--io-ns", f.io_ns, 1e7),
        ("--io-ns-per-byte", f.io_ns_per_byte, 1000.0),
    ];
    rows.extend(costs.into_iter().filter_map(|(flag, ns, most)| Some((flag, ns?, 0.0, most))));
    rows
}

fn planner(f: &Flags) -> Vec<Row> {
    let many = f64::from(u32::MAX);
    let counts = [
        ("--df-max-depth", f.df_max_depth, 1.0, many),
        ("--df-extra-percent", f.df_extra_percent, 0.0, many),
        ("--max-read-amp", f.max_read_amp, 1.0, many),
        ("--max-waiting-jobs", f.max_waiting_jobs, 0.0, many),
        ("--tiered-runs", f.tiered_runs, 2.0, 1000.0),
        ("--buckets", f.buckets, 1.0, 65_536.0),
        ("--window", f.window, 1.0, 65_536.0),
    ];
    let given =
        |(flag, n, least, most): (_, Option<u32>, _, _)| Some((flag, n?.into(), least, most));
    let mut rows: Vec<Row> = counts.into_iter().filter_map(given).collect();
    // Of a compaction 0 is the default, of a file of a bucket no least one.
    let bytes = [("--max-compaction", f.max_compaction), ("--min-bucket-file", f.min_bucket_file)];
    rows.extend(bytes.into_iter().filter_map(|(flag, n)| Some((flag, n? as f64, 0.0, PIB))));
    rows
}

#[cfg(test)]
mod tests {
    use crate::command::setups_of;

    #[track_caller]
    fn refused(flags: &str, says: &str) {
        let told = setups_of(flags).expect_err(flags).to_string();
        let flag = flags.split([' ', '=']).next().unwrap();
        assert!(told.contains(flag) && told.contains(says), "{flags}: {told}");
    }

    #[test]
    fn numbers_outside_their_range_are_refused_with_it() {
        for (flags, range) in [
            ("--cores 0", "0.1 to 4096"),
            ("--cores NaN", "0.1 to 4096"),
            ("--memtable 0", "65536 to 2147483648"),
            ("--memtable 1", "65536 to"),
            ("--memtables 1", "2 to 64"),
            ("--threads 4,0", "1 to 256"),
            ("--flush-threads 0", "1 to 16"),
            ("--io-threads 0", "1 to 65536"),
            ("--value-size 65MiB", "0 to 67108864"),
            ("--key-size 0", "1 to 1024"),
            ("--num 0", "1 to 9999999999"),
            ("--keys 10G", "1 to 9999999999"),
            ("--cells 0", "1 to 1048576"),
            ("--mix-ranges 10,0", "1 to 65536"),
            ("--file 0", "16384 to"),
            ("--multiplier 0", "2 to 100"),
            ("--level-base 0", "65536 to"),
            ("--cpu-ns-per-byte NaN", "0 to 1000"),
            ("--cpu-ns-per-byte=-1", "0 to 1000"),
            ("--io-ns inf", "0 to 10000000"),
            ("--latency 18446744073709551615", "0 to 1000000"),
            ("--bandwidth 1", "65536 to"),
            ("--dilate 0.5", "1 to 1000"),
            ("--drain-limit NaN", "0.001 to"),
            ("--tiered-runs 0", "2 to"),
            ("--buckets 0", "1 to"),
            ("--window 0", "1 to"),
            ("--fpga-rate 0", "0.001 to 1000"),
            ("--l0 0,0,0", "1 to"),
        ] {
            refused(flags, range);
        }
    }

    #[test]
    fn numbers_that_do_not_fit_each_other_are_refused() {
        refused("--l0 10,5,1", "which rise, as 4,20,36");
        refused("--l0 4,20", "trigger, slow-down and stop");
        refused("--num 9G", "memtables");
        refused("--num 200K --value-size 64MiB", "larger --memtable");
        refused("--file 16KiB --num 60M", "larger files");
        refused("--bursts 1e-9,1", "0.001");
    }

    #[test]
    fn zeros_that_mean_no_limit_are_taken() {
        let zeros = "--bandwidth 0 --latency 0 --channels 0 --value-size 0 --cpu-ns-per-byte 0 --mix-rotate 0";
        assert!(setups_of(zeros).is_ok());
        assert!(setups_of("--key-size 1KiB --value-size 1KiB").is_ok(), "sizes have units");
    }

    #[test]
    fn without_policies_the_default_one_comes_first() {
        let setups = setups_of("").unwrap();
        let all: Vec<_> = setups.iter().map(|s| s.plan.policy.name()).collect();
        assert_eq!(all, ["adaptive", "hybrid", "df-leveled", "bucket"]);
    }
}
