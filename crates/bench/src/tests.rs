//! The whole bench over a map in memory, right and wrong.

use std::collections::BTreeMap;
use std::path::Path;
#[expect(clippy::disallowed_types, reason = "the bench knows no room of the store")]
use std::sync::RwLock;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::Result;
use clap::Parser;

use crate::interrupt::Interrupt;
use crate::report::{EngineIdentity, RunReport};
use crate::run::run;
use crate::settings::{BenchArgs, BenchSettings, CompactionPri, Compression, OutputArgs, WalMode};
use crate::store::{BatchOp, EngineStats, Store, StoreIter, StoreOpener};
use crate::timeline::{Happening, Moment};
use crate::workload::Workload;

#[derive(Parser)]
struct Flags {
    #[command(flatten)]
    args: BenchArgs,
}

/// Settings that `flags` parse into.
pub(crate) fn settings(flags: &[&str]) -> BenchSettings {
    let flags = std::iter::once("bench").chain(flags.iter().copied());
    Flags::try_parse_from(flags).expect("the flags parse").args.settings
}

/// How a [`MapStore`] goes wrong.
#[derive(Clone, Copy, Default, PartialEq)]
enum Flaw {
    #[default]
    None,
    /// The 500th put is acknowledged and dropped.
    LosesOne,
    /// The 500th put stores a value with one bit flipped in its middle.
    FlipsOne,
    /// Deletes do nothing.
    KeepsDeleted,
    /// Scans skip every 100th key.
    SkipsInScans,
    /// The 500th put fails.
    Fails,
    /// Puts from the 101st on take 300 ms.
    Slow,
}

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

#[derive(Default)]
struct MapStore {
    #[expect(clippy::disallowed_types, reason = "as above")]
    map: RwLock<Map>,
    puts: AtomicU64,
    flaw: Flaw,
}

impl Store for MapStore {
    fn put(&self, key: &[u8], value: &[u8], _: WalMode) -> Result<()> {
        let mut value = value.to_vec();
        let before = self.puts.fetch_add(1, Ordering::Relaxed);
        if before >= 100 && self.flaw == Flaw::Slow {
            std::thread::park_timeout(std::time::Duration::from_millis(300));
        }
        if before == 500 {
            match self.flaw {
                Flaw::LosesOne => return Ok(()),
                Flaw::FlipsOne => value[50] ^= 4,
                Flaw::Fails => anyhow::bail!("the disk is on fire"),
                _ => {}
            }
        }
        self.map.write().unwrap().insert(key.to_vec(), value);
        Ok(())
    }
    fn delete(&self, key: &[u8], _: WalMode) -> Result<()> {
        if self.flaw != Flaw::KeepsDeleted {
            self.map.write().unwrap().remove(key);
        }
        Ok(())
    }
    fn write_batch(&self, ops: &[BatchOp<'_>], wal: WalMode) -> Result<()> {
        ops.iter().try_for_each(|op| match op {
            BatchOp::Put(key, value) => self.put(key, value, wal),
            BatchOp::Delete(key) => self.delete(key, wal),
        })
    }
    fn get(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        let map = self.map.read().unwrap();
        let Some(found) = map.get(key) else { return Ok(false) };
        value.clone_from(found);
        Ok(true)
    }
    fn multi_get(&self, keys: &[&[u8]], values: &mut Vec<Option<Vec<u8>>>) -> Result<()> {
        let map = self.map.read().unwrap();
        *values = keys.iter().map(|&key| map.get(key).cloned()).collect();
        Ok(())
    }
    fn iter(&self) -> Result<Box<dyn StoreIter + '_>> {
        let skip = self.flaw == Flaw::SkipsInScans;
        let kept = |(i, (k, v)): (usize, (&Vec<u8>, &Vec<u8>))| {
            (!skip || i % 100 != 99).then(|| (k.clone(), v.clone()))
        };
        let entries = self.map.read().unwrap().iter().enumerate().filter_map(kept).collect();
        Ok(Box::new(MapIter { entries, at: usize::MAX }))
    }
    fn flush(&self) -> Result<()> {
        Ok(())
    }
    fn compact_all(&self) -> Result<()> {
        Ok(())
    }
    fn wait_idle(&self) -> Result<()> {
        Ok(())
    }
    fn stats(&self) -> Result<EngineStats> {
        let bytes = self.puts.load(Ordering::Relaxed) * 116;
        Ok(EngineStats {
            flush_write_bytes: bytes,
            compact_write_bytes: bytes * 2,
            level_write_bytes: vec![bytes, bytes * 2],
            ..EngineStats::default()
        })
    }
    fn stats_text(&self) -> Result<String> {
        Ok("a map".into())
    }
    fn close(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}

struct MapIter {
    entries: Vec<(Vec<u8>, Vec<u8>)>,
    at: usize,
}

impl StoreIter for MapIter {
    fn seek_to_first(&mut self) {
        self.at = 0;
    }
    fn seek_to_last(&mut self) {
        self.at = self.entries.len().wrapping_sub(1);
    }
    fn seek(&mut self, key: &[u8]) {
        self.at = self.entries.partition_point(|(k, _)| k.as_slice() < key);
    }
    fn next(&mut self) {
        self.at += 1;
    }
    fn prev(&mut self) {
        self.at = self.at.wrapping_sub(1);
    }
    fn valid(&self) -> bool {
        self.at < self.entries.len()
    }
    fn key(&self) -> &[u8] {
        &self.entries[self.at].0
    }
    fn value(&self) -> &[u8] {
        &self.entries[self.at].1
    }
    fn status(&self) -> Result<()> {
        Ok(())
    }
}

struct MapOpener(Flaw);

impl StoreOpener for MapOpener {
    fn identity(&self) -> EngineIdentity {
        EngineIdentity { name: "map".into(), version: "1".into() }
    }
    fn open(&self, _: &BenchSettings, _: &Path, _: bool) -> Result<Box<dyn Store>> {
        Ok(Box::new(MapStore { flaw: self.0, ..MapStore::default() }))
    }
}

fn play(flaw: Flaw, flags: &[&str]) -> RunReport {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let mut settings = settings(flags);
    settings.db = dir.path().join("bench");
    settings.touch_memory = "0".into();
    run(
        &MapOpener(flaw),
        settings,
        &OutputArgs { quiet: true, ..OutputArgs::default() },
        &Interrupt::default(),
    )
    .expect("the run begins")
}

#[test]
fn an_interrupted_run_reports_what_it_did() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let mut settings = settings(&["--workloads=fillseq,readseq", "--num=500"]);
    settings.db = dir.path().join("bench");
    settings.touch_memory = "0".into();
    let interrupt = Interrupt::default();
    interrupt.press();
    let output = OutputArgs { quiet: true, ..OutputArgs::default() };
    let report =
        run(&MapOpener(Flaw::None), settings, &output, &interrupt).expect("the run begins");
    assert!(report.interrupted && report.valid && report.workloads.is_empty(), "{report:?}");
    let mut text = Vec::new();
    crate::print_report(&report, &mut text).expect("memory takes everything");
    assert!(String::from_utf8_lossy(&text).contains("INTERRUPTED"));
}

/// A sum of nothing was told as -0.00.
#[test]
fn no_figure_is_a_negative_nothing() {
    let nothing: f64 = [0.0f64; 0].iter().sum();
    assert_eq!(crate::units::three_digits(nothing), "0.00");
    assert_eq!(crate::units::three_digits(-0.0), "0.00");
    assert_eq!(crate::units::three_digits(-2.0), "-2.00");
}

const ALL: &str = "fillseq,fillrandom,filluniquerandom,overwrite,readrandom,readmissing,\
    multireadrandom,readseq,readreverse,seekrandom,readwhilewriting,deleterandom,compact,waitidle,\
    readrandomwriterandom,mixgraph,overwritezipf,overwritedelete,verify";

#[test]
fn every_workload_runs() {
    for threads in ["1", "3"] {
        for batch in ["1", "7"] {
            let threads = format!("--threads={threads}");
            let batch = format!("--batch-size={batch}");
            let flags =
                ["--workloads", ALL, "--num=500", "--reads=20", threads.as_str(), batch.as_str()];
            let report = play(Flaw::None, &flags);
            assert_eq!(report.error, None);
            assert!(report.valid);
            assert_eq!(report.workloads.len(), ALL.split(',').count());
            let json = serde_json::to_string(&report).expect("plain values");
            let again: RunReport = serde_json::from_str(&json).expect("as written");
            assert_eq!((&again.settings, &again.engine), (&report.settings, &report.engine));
            for (a, b) in again.workloads.iter().zip(&report.workloads) {
                assert_eq!((a.ops, &a.series, &a.engine), (b.ops, &b.series, &b.engine));
            }
        }
    }
}

#[test]
fn mixed_loads_are_judged_too() {
    for threads in ["--threads=1", "--threads=3"] {
        let workloads = "--workloads=mixgraph,readrandomwriterandom,mixgraph,verify";
        let flags = [workloads, "--num=600", "--mix=2:1:1", "--mix-rotate=100", threads];
        let report = play(Flaw::None, &flags);
        assert_eq!(report.error, None, "{threads}");
        let mix = &report.workloads[0];
        assert!(mix.found > 0 && mix.written_bytes > 0 && mix.written_bytes < mix.bytes);
        assert!(mix.write_amplification.is_some_and(|w| w > 0.0));
    }
    for workload in ["mixgraph", "readrandomwriterandom"] {
        let workloads = format!("{workload},verify");
        let flags =
            ["--workloads", &workloads, "--num=520", "--read-percent=0", "--db-bench-compat"];
        let error = play(Flaw::LosesOne, &flags).error.unwrap_or_default();
        assert!(error.contains("is missing") || error.contains("is wrong"), "{workload}: {error}");
    }
}

#[test]
fn a_mix_of_puts_fills_an_empty_store() {
    let report = play(Flaw::None, &["--workloads=mixgraph,verify", "--num=4000"]);
    assert_eq!(report.error, None);
    let [mix, verify] = &report.workloads[..] else { panic!("two workloads") };
    assert_eq!((mix.ops, mix.found, mix.bytes), (4_000, 0, 4_000 * 116));
    assert_eq!(mix.written_bytes, mix.bytes);
    // Most writes go to a hot range, so that far fewer keys are there than with uniform ones.
    let uniform = ["--workloads=mixgraph,verify", "--num=4000", "--db-bench-compat"];
    let uniform = play(Flaw::None, &uniform);
    let (hot, flat) = (verify.found, uniform.workloads[1].found);
    assert!(hot < 1_900, "{hot} keys");
    assert!((2_400..2_650).contains(&flat), "{flat} keys; (1 - 1/e) of all are expected");
}

#[test]
fn updates_may_be_skewed_or_delete() {
    for threads in ["--threads=1", "--threads=3"] {
        let flags = |update: &str| format!("--workloads=filluniquerandom,{update},verify");
        let report = play(Flaw::None, &[&flags("overwritedelete"), "--num=3000", threads]);
        assert_eq!(report.error, None, "{threads}");
        let [_, updates, verify] = &report.workloads[..] else { panic!("three workloads") };
        // Of 116 bytes a deletion carries 16.
        let deletes = (updates.ops * 116 - updates.written_bytes) as f64 / 100.0;
        let share = deletes / updates.ops as f64;
        assert!((0.27..0.33).contains(&share), "{share}");
        assert!(verify.found < 3_000, "nothing was deleted");
        let none = [&flags("overwritedelete"), "--num=3000", "--delete-percent=0", threads];
        assert_eq!(play(Flaw::None, &none).workloads[2].found, 3_000);
        let all = [&flags("overwritezipf"), "--num=3000", threads];
        assert_eq!(play(Flaw::None, &all).error, None, "{threads}");
    }
    // Of a store that is emptied first, skewed updates bring fewer keys back.
    let distinct = |update: &str| {
        let flags = format!("--workloads=fillrandom,deleterandom,{update},verify");
        play(Flaw::None, &[&flags, "--num=3000"]).workloads[3].found
    };
    let (hot, flat) = (distinct("overwritezipf"), distinct("overwrite"));
    assert!(hot + 300 < flat, "{hot} keys with skew, {flat} without");
}

#[test]
fn ycsb_runs_and_is_judged() {
    let letters = "ycsbload,ycsba,ycsbb,ycsbc,ycsbd,ycsbe,ycsbf,verify";
    for threads in ["--threads=1", "--threads=3"] {
        let flags = ["--workloads", letters, "--num=700", "--reads=300", threads];
        let report = play(Flaw::None, &flags);
        assert_eq!(report.error, None, "{threads}");
        let by_name = |name: &str| {
            let found = report.workloads.iter().find(|w| w.workload == name);
            found.unwrap_or_else(|| panic!("no {name}"))
        };
        assert_eq!(by_name("ycsbload").ops, 700);
        let reads = by_name("ycsbc");
        assert_eq!((reads.found, reads.written_bytes), (reads.ops, 0));
        let inserted = (by_name("ycsbd").written_bytes + by_name("ycsbe").written_bytes) / 116;
        assert_eq!(by_name("verify").found, 700 + inserted);
        assert!(by_name("ycsbe").found > 10 * by_name("ycsbe").ops, "scans are long");
        let updates = by_name("ycsbf").written_bytes as f64 / 116.0 / by_name("ycsbf").ops as f64;
        assert!((0.35..0.65).contains(&updates), "{updates}");
    }
    let error = play(Flaw::LosesOne, &["--workloads=ycsbload,ycsbc,verify", "--num=700"]).error;
    assert!(error.is_some_and(|e| e.contains("is missing")));
    let error = play(Flaw::None, &["--workloads=fillseq,ycsba", "--num=700"]).error;
    assert!(error.is_some_and(|e| e.contains("begin with ycsbload")));
}

#[test]
fn a_log_of_jobs_becomes_activity_and_a_file() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let path = dir.path().join("jobs.csv");
    let settings = BenchSettings {
        db: dir.path().join("bench"),
        touch_memory: "0".into(),
        background_threads: 1,
        ..settings(&["--workloads=fillseq,fillrandom,readrandom", "--num=2000"])
    };
    let output = OutputArgs { quiet: true, timeline: Some(path.clone()), ..OutputArgs::default() };
    let report =
        run(&LoggingOpener, settings.clone(), &output, &Interrupt::default()).expect("a run");
    assert_eq!(report.error, None);
    for w in &report.workloads {
        let activity = w.activity.as_ref().expect("the engine keeps a log");
        assert!((activity.mean_compactions - 1.0).abs() < 1e-6, "{activity:?}");
        assert!((activity.over_half - 1.0).abs() < 1e-6, "{activity:?}");
    }
    let csv = std::fs::read_to_string(&path).expect("written");
    assert!(csv.starts_with("seconds,L2->L3,compactions,"), "{csv}");
    let mut text = Vec::new();
    crate::print_report(&report, &mut text).expect("memory takes everything");
    let text = String::from_utf8(text).expect("tables are text");
    assert!(
        text.contains("1.00 of 1 compactions active") && text.contains("L2->L3 1.00"),
        "{text}"
    );

    let error = run(&MapOpener(Flaw::None), settings.clone(), &output, &Interrupt::default())
        .expect_err("no log");
    assert!(error.to_string().contains("keeps no log"), "{error}");
    let wrong = OutputArgs { timeline: Some("jobs.png".into()), ..output };
    let error =
        run(&LoggingOpener, settings, &wrong, &Interrupt::default()).expect_err("no such form");
    assert!(error.to_string().contains(".svg"), "{error}");
}

#[test]
fn a_peer_refuses_by_name_what_it_cannot_do() {
    let given = |flags: &[&str]| {
        let flags = std::iter::once("peer").chain(flags.iter().copied());
        let args = Flags::try_parse_from(flags).expect("the flags parse").args;
        crate::command::refuse_foreign(&MapOpener(Flaw::None), &args)
    };
    assert!(given(&["--num=5"]).is_ok());
    let throttles = ["--throttle-bandwidth", "--throttle-latency", "--throttle-channels"];
    for flag in throttles.into_iter().chain(["--set", "--timeline"]) {
        let error = given(&[flag, "9"]).expect_err("refused").to_string();
        assert!(error.contains(flag) && error.contains("map"), "{error}");
    }
}

/// An engine that claims one compaction from its opening on.
struct LoggingOpener;

impl StoreOpener for LoggingOpener {
    fn identity(&self) -> EngineIdentity {
        MapOpener(Flaw::None).identity()
    }
    fn open(&self, settings: &BenchSettings, dir: &Path, fresh: bool) -> Result<Box<dyn Store>> {
        MapOpener(Flaw::None).open(settings, dir, fresh)
    }
    fn history(&self, _: &Path) -> Result<Option<Vec<Moment>>> {
        let what = Happening::CompactionBegan { job: 1, from: 2, to: 3 };
        Ok(Some(vec![Moment { seconds: 0.0, what }]))
    }
}

#[test]
fn what_is_counted() {
    let flags = ["--workloads=filluniquerandom,readrandom,readseq,seekrandom,verify", "--num=1000"];
    let report = play(Flaw::None, &flags);
    assert_eq!(report.error, None);
    let [fill, read, scan, seek, verify] = &report.workloads[..] else { panic!("five workloads") };
    assert_eq!((fill.ops, fill.bytes), (1000, 116_000));
    assert_eq!(fill.series.iter().sum::<u64>(), 1000);
    assert_eq!(fill.write_amplification, Some(3.0));
    assert_eq!(fill.write_amplification_by_level, [1.0, 2.0]);
    assert_eq!((read.ops, read.found, read.write_amplification), (1000, 1000, None));
    assert_eq!((scan.ops, scan.found, scan.bytes), (1000, 1000, 116_000));
    assert_eq!(seek.ops, 1000);
    assert_eq!((verify.ops, verify.found), (1000, 1000));
    let latency = read.latency_us.as_ref().expect("reads are timed");
    assert!(latency.p50 > 0.0 && latency.p50 <= latency.p99 && latency.p99 <= latency.max);
}

#[test]
fn wrong_stores_make_invalid_runs() {
    let cases = [
        (Flaw::LosesOne, "filluniquerandom,verify", "is missing"),
        (Flaw::LosesOne, "filluniquerandom,readseq,readrandom", "is missing"),
        (Flaw::FlipsOne, "filluniquerandom,verify", "byte 50 differs"),
        (Flaw::FlipsOne, "filluniquerandom,readreverse", "byte 50 differs"),
        (Flaw::KeepsDeleted, "fillseq,deleterandom,verify", "version 0 is due"),
        (Flaw::SkipsInScans, "fillseq,verify", "is missing"),
        (Flaw::SkipsInScans, "fillseq,seekrandom", "is missing"),
        (Flaw::Fails, "fillseq", "the disk is on fire"),
    ];
    for (flaw, workloads, want) in cases {
        let report = play(flaw, &["--workloads", workloads, "--num=1000", "--reads=20000"]);
        let error = report.error.unwrap_or_default();
        assert!(!report.valid && error.contains(want), "{workloads}: `{error}`, not `{want}`");
    }
}

#[test]
fn an_old_version_is_no_answer() {
    // The 240th overwrite is lost: the value found is whole, but of an older version.
    let report = play(Flaw::LosesOne, &["--workloads=fillseq,overwrite,verify", "--num=260"]);
    let error = report.error.unwrap_or_default();
    assert!(error.contains("is wrong: it is version"), "{error}");
}

#[test]
fn time_ends_a_workload() {
    let flags = ["--workloads=fillseq,readrandom", "--num=1000", "--duration=0.2"];
    let report = play(Flaw::None, &flags);
    assert_eq!(report.error, None);
    for w in &report.workloads {
        assert!((0.15..5.0).contains(&w.seconds), "{}: {} s", w.workload, w.seconds);
    }
    assert!(report.workloads[1].ops > 1000, "reads went on past the key count");
}

#[test]
fn an_open_loop_keeps_its_rate() {
    let flags = ["--workloads=fillseq,readrandom", "--num=400", "--rate=2000", "--batch-size=2"];
    let report = play(Flaw::None, &flags);
    assert_eq!(report.error, None);
    let fill = &report.workloads[0];
    assert_eq!(fill.ops, 400);
    assert!((0.19..2.0).contains(&fill.seconds), "400 writes at 2000/s took {} s", fill.seconds);
    // Only fills write in batches, and a scan's steps are of many entries.
    let all = "--workloads=fillseq,readrandom,readseq";
    for threads in ["--threads=1", "--threads=2"] {
        let flags = [all, "--num=400", "--rate=2000", "--batch-size=20", threads];
        let report = play(Flaw::None, &flags);
        assert_eq!(report.error, None);
        for w in &report.workloads {
            let due = 0.6 * w.ops as f64 / 2000.0;
            assert!(
                (due..2.0).contains(&w.seconds),
                "{}: {} in {} s",
                w.workload,
                w.ops,
                w.seconds
            );
        }
    }
}

/// The readers are through when they are; the writer beside them may be held up.
#[test]
fn a_slow_writer_beside_readers_is_not_their_time() {
    let flags = ["--workloads=fillseq,readwhilewriting", "--num=100", "--reads=20"];
    let report = play(Flaw::Slow, &flags);
    assert_eq!(report.error, None);
    let beside = &report.workloads[1];
    assert!(beside.seconds < 0.2, "20 reads took {} s", beside.seconds);
}

/// What hot keys are is found out before the clock runs: at a million keys that takes as long as a stall.
#[test]
fn the_ranks_of_keys_are_no_operation() {
    let settings = settings(&["--num=1000"]).resolve().unwrap();
    assert!(crate::ycsb::ranks(Workload::OverwriteZipf, 0, &settings).is_some());
    let report = play(Flaw::None, &["--workloads=fillseq,overwritezipf", "--num=1000"]);
    assert_eq!((report.error, report.workloads[1].ops), (None, 1000));
}

#[test]
fn the_command_line_parses() {
    /// Something
    #[derive(Parser)]
    #[command(args_conflicts_with_subcommands = true, after_help = crate::EXAMPLES)]
    struct Line {
        #[command(subcommand)]
        sub: Option<crate::BenchSub>,
        #[command(flatten)]
        args: crate::BenchArgs,
    }
    for line in [
        "x --num 5K --workloads fillseq,verify",
        "x compare --peer rocksdb --rounds 5 --num 5K --wal off",
        "x compare --presets hybrid,leveled --throttle-latency 100",
        "x --workloads mixgraph --mix 8:1:1 --timeline jobs.svg",
        "x",
    ] {
        if let Err(error) = Line::try_parse_from(line.split(' ')) {
            panic!("{line}: {error}");
        }
    }
    for wrong in ["x --wal sometimes", "x --mix 1:2", "x compare --peer rocksdb --presets hybrid"] {
        assert!(Line::try_parse_from(wrong.split(' ')).is_err(), "{wrong}");
    }
    use clap::CommandFactory;
    let mut command = Line::command();
    command.clone().debug_assert();
    let help = command.render_long_help().to_string();
    assert!(help.contains("Something") && help.contains("Examples:"), "{help}");
    let compare = command.find_subcommand_mut("compare").expect("a subcommand");
    let help = compare.render_long_help().to_string();
    assert!(help.contains("alternately") && help.contains("bench compare --peer"), "{help}");
}

#[test]
fn the_tour_covers_the_paths() {
    let tour = settings(&[]).resolve().expect("the tour is sound");
    for w in ["fillseq", "fillrandom", "overwrite", "readrandom", "readwhilewriting", "compact"] {
        assert!(tour.workloads.iter().any(|x| x.name() == w), "{w} is not in the tour");
    }
    assert_eq!(settings(&["--num=5K"]).resolve().expect("sound").num(), 5_000);
    let own = settings(&["--workloads=fillseq"]).resolve().expect("sound");
    assert_eq!((own.num(), own.reads(), own.limit_seconds), (1_000_000, 1_000_000, None));
}

#[test]
fn settings_survive_flags_and_json() {
    let some = BenchSettings {
        workloads: vec![Workload::FillRandom, Workload::Compact],
        num: Some(6_000_000),
        value_size: 1024,
        value_compressibility: 0.5,
        duration: Some(1.5),
        use_existing_db: true,
        no_auto_compaction: true,
        policy: "leveled".into(),
        memtable_bytes: 123_456_789,
        level_multiplier: 5.0,
        compaction_pri: CompactionPri::OldestSmallestSeqFirst,
        wal: WalMode::Buffered,
        compression: Compression::Zstd,
        flush_threads: 2,
        subcompactions: 4,
        bloom_bits: 0.0,
        db: "a dir/with=odd,name".into(),
        direct_reads: true,
        mix: "8:1:1".parse().expect("a mix"),
        mix_ranges: vec![3, 7],
        mix_rotate: 1_000_000,
        db_bench_compat: true,
        read_percent: 12.5,
        throttle_bandwidth: Some(200 << 20),
        throttle_latency: Some(150),
        throttle_channels: Some(4),
        dilate: Some(10.0),
        set: vec!["durability=sync".into(), "l0_trigger=3".into()],
        ..settings(&[])
    };
    for original in [settings(&[]), some.clone(), some.resolve().expect("sound")] {
        let flags = original.to_flags();
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        assert_eq!(settings(&flags), original);
        let json = serde_json::to_string(&original).expect("plain values");
        assert_eq!(serde_json::from_str::<BenchSettings>(&json).expect("as written"), original);
    }
}

#[test]
fn senseless_settings_are_refused() {
    for (flags, want) in [
        (vec!["--num=0"], "--num"),
        (vec!["--num=300", "--key-size=1"], "--key-size"),
        (vec!["--threads=0"], "--threads"),
        (vec!["--threads=3", "--num=2"], "--threads"),
        (vec!["--rate=0"], "--rate"),
        (vec!["--verify-fraction=2"], "--verify-fraction"),
        (vec!["--duration=-1"], "--duration"),
        (vec!["--touch-memory=much"], "--touch-memory"),
        (vec!["--read-percent=101"], "--read-percent"),
        (vec!["--mix-ranges=10,0"], "--mix-ranges"),
        (vec!["--zipf=1"], "--zipf"),
        (vec!["--throttle-channels=0"], "--throttle-channels"),
        (vec!["--dilate=0.5"], "--dilate"),
        (vec!["--workloads=ycsbload", "--num=200", "--key-size=1"], "400 keys"),
    ] {
        let error = settings(&flags).resolve().expect_err("senseless").to_string();
        assert!(error.contains(want), "{flags:?}: {error}");
    }
}

#[test]
fn a_foreign_directory_is_left_alone() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    std::fs::create_dir(dir.path().join("photos")).expect("a directory");
    let mut settings = settings(&["--workloads=fillseq", "--num=10"]);
    settings.db = dir.path().into();
    let outcome =
        run(&MapOpener(Flaw::None), settings, &OutputArgs::default(), &Interrupt::default());
    let error = outcome.expect_err("it is not the bench's").to_string();
    assert!(error.contains("neither empty nor made by the bench"), "{error}");
    assert!(dir.path().join("photos").exists());
}

#[test]
fn reading_needs_a_store() {
    let report = play(Flaw::None, &["--workloads=readrandom"]);
    assert!(report.error.is_some_and(|e| e.contains("begin with a fill workload")));
}
