//! The commands do what their help says: bytes go in and come out as they were, bounds and limits
//! hold, and what is printed for programs parses.
#![allow(clippy::disallowed_methods, reason = "a test sets up its world by itself")]

use std::process::{Command, Stdio};

use lithify::merge::built_in;
use lithify::{Builder, ColumnFamilyOptions, Db, Settings};
use serde_json::Value;

use crate::common::{lithify, ok};

struct Place {
    scratch: tempfile::TempDir,
}

impl Place {
    fn new() -> Place {
        Place { scratch: tempfile::tempdir().unwrap() }
    }
    fn db(&self) -> String {
        self.file("db")
    }
    fn file(&self, name: &str) -> String {
        self.scratch.path().join(name).to_str().unwrap().to_owned()
    }
    /// Runs a command on the database and returns what it printed.
    #[track_caller]
    fn run(&self, command: &str, args: &[&str]) -> String {
        let db = self.db();
        ok(&[&[command, "--db", &db], args].concat())
    }
}

fn fruit() -> Place {
    let place = Place::new();
    let rows = "name\tcolour\napple\tred\nbanana\tyellow\ncherry\tdark red\napricot\torange\n";
    std::fs::write(place.file("fruit.tsv"), rows).unwrap();
    let file = place.file("fruit.tsv");
    let summary = place.run("load", &["--value", "colour", "--json", &file]);
    let summary: Value = serde_json::from_str(&summary).unwrap();
    assert_eq!((&summary["rows"], &summary["bytes"]), (&4.into(), &47.into()));
    place
}

#[test]
fn bytes_go_in_and_come_out() {
    let place = Place::new();
    place.run("put", &["k\\x00\\xff", "line\\nline\\\\"]);
    assert_eq!(place.run("get", &["k\\x00\\xff"]), "line\\nline\\\\\n");
    assert_eq!(place.run("get", &["--hex", "6b00ff"]), "6c696e650a6c696e655c\n");
    place.run("put", &["--hex", "6b00ff", "00"]);
    assert_eq!(place.run("scan", &[]), "k\\x00\\xff\t\\x00\n");
    place.run("put", &["--raw", "grün", "a\\tb"]);
    assert_eq!(place.run("get", &["--raw", "grün"]), "a\\tb");
    assert_eq!(place.run("get", &["grün"]), "a\\\\tb\n");
    place.run("put", &["--sync", "empty", ""]);
    assert_eq!(place.run("get", &["empty"]), "\n");
}

#[test]
fn scans_keep_to_their_bounds() {
    let place = fruit();
    let keys = |args: &[&str]| {
        let text = place.run("scan", &[&["--keys-only"], args].concat());
        text.split_whitespace().map(str::to_owned).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(keys(&[]), "apple apricot banana cherry");
    assert_eq!(keys(&["--prefix", "ap"]), "apple apricot");
    assert_eq!(keys(&["--prefix", "ap", "--reverse"]), "apricot apple");
    assert_eq!(keys(&["--from", "apricot", "--to", "cherry"]), "apricot banana");
    assert_eq!(keys(&["--reverse", "--limit", "1"]), "cherry");
    assert_eq!(keys(&["--limit", "0"]), "");
    assert_eq!(keys(&["--from", "d"]), "");
    let json = place.run("scan", &["--json", "--limit", "1"]);
    assert_eq!(json, "{\"key\":\"apple\",\"value\":\"red\"}\n");
}

#[test]
fn deletions_and_compaction() {
    let place = fruit();
    place.run("delete", &["apple", "nothing"]);
    place.run("delete", &["--from", "b", "--to", "c"]);
    assert_eq!(place.run("scan", &["--keys-only"]), "apricot\ncherry\n");
    let before: Value = serde_json::from_str(&place.run("stats", &["--json"])).unwrap();
    assert_eq!(before["last_sequence"], 7);
    assert_eq!(before["writes_in_no_table"], 1, "each open puts what the log holds into a table");
    let done: Value = serde_json::from_str(&place.run("compact", &["--json"])).unwrap();
    assert!(done["bytes_after"].as_u64().unwrap() > 0);
    assert_eq!(place.run("scan", &["--keys-only"]), "apricot\ncherry\n");
    let checked: Value = serde_json::from_str(&place.run("verify", &["--json"])).unwrap();
    assert_eq!((&checked["good"], &checked["keys"]), (&true.into(), &2.into()));
    assert_eq!(checked["not_ours"], Value::Array(Vec::new()), "the event log is ours");
    // Everything deleted is gone from the tables, too.
    assert_eq!(checked["entries"], 2);
}

#[test]
fn verify_names_damage_and_salvage_takes_the_rest() {
    let place = fruit();
    place.run("compact", &[]);
    let (db, new) = (place.db(), place.file("new"));
    assert!(ok(&["verify", &db]).contains("all good, 4 keys"));
    let table = std::fs::read_dir(&db)
        .unwrap()
        .map(|e| e.unwrap().path())
        .find(|p| p.extension().is_some_and(|e| e == "sst"))
        .unwrap();
    let mut bytes = std::fs::read(&table).unwrap();
    bytes[20] ^= 1;
    std::fs::write(&table, bytes).unwrap();
    place.run("put", &["plum", "blue"]);

    let out = lithify(&["verify", "--json", &db]);
    assert_eq!(out.status.code(), Some(1));
    let found: Value = serde_json::from_slice(&out.stdout).unwrap();
    // However little of it is read.
    for args in [&["verify", &db][..], &["salvage", &db, "--to", &place.file("unread")]] {
        let mut child = Command::new(env!("CARGO_BIN_EXE_lithify"))
            .args(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        assert_eq!(child.wait().unwrap().code(), Some(1), "{args:?}");
    }
    let finding = &found["findings"][0];
    assert_eq!((&found["good"], &finding["grade"]), (&false.into(), &"damaged".into()));
    assert_eq!((&finding["file"], &finding["offset"]), (&table.to_str().into(), &0.into()));

    let out = lithify(&["salvage", &db, "--to", &new, "--json"]);
    assert_eq!(out.status.code(), Some(1), "something was lost");
    let report: Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!((&report["keys"], &report["complete"]), (&1.into(), &false.into()));
    let lost = &report["lost"][0];
    assert_eq!((&lost["entries"], &lost["up_to"]), (&4.into(), &"cherry".into()));
    assert_eq!(ok(&["scan", "--db", &new]), "plum\tblue\n");
    let out = lithify(&["salvage", &db, "--to", &new]);
    assert!(String::from_utf8_lossy(&out.stderr).contains("new directory"));
    let whole = place.file("whole");
    let text = ok(&["salvage", &new, "--to", &whole]);
    assert!(text.contains("written: 1 key"), "{text}");
}

/// Without the operator they were written with operands can't be combined: what is left out is no complete database.
#[test]
fn a_salvage_that_leaves_keys_out_says_so() {
    let place = fruit();
    let (from, to) = (place.file("merged"), place.file("salvaged"));
    let builder = Builder::new(Settings::default());
    let db = builder.merge_operator(built_in("max").unwrap()).open(&from).unwrap();
    db.merge(b"n", b"1").unwrap();
    db.flush().unwrap();
    db.close().unwrap();
    let out = lithify(&["salvage", &from, "--to", &to, "--json"]);
    assert_eq!(out.status.code(), Some(1));
    let report: Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!((&report["complete"], &report["left_out"]), (&false.into(), &1.into()));
    assert!(String::from_utf8_lossy(&out.stderr).contains("--merge-operator"));
    let again = place.file("again");
    ok(&["salvage", &from, "--to", &again, "--merge-operator", "max"]);
    assert_eq!(ok(&["scan", "--db", &again, "--merge-operator", "max"]), "n\t1\n");
}

#[test]
fn pictures_and_tables() {
    let place = fruit();
    assert!(ok(&["picture", &place.db()]).contains("the log"));
    place.run("compact", &[]);
    assert!(ok(&["picture", &place.db()]).contains("apple"));
    let picture: Value = serde_json::from_str(&ok(&["picture", "--json", &place.db()])).unwrap();
    let file = &picture["families"][0]["files"][0];
    assert_eq!((&file["from"], &file["to"]), (&"apple".into(), &"cherry".into()));
    assert_eq!(file["entries"], 4);

    let table = format!("{}/{:06}.sst", place.db(), file["file"].as_u64().unwrap());
    let dump = ok(&["table", "dump", &table]);
    let columns: Vec<Vec<&str>> = dump.lines().map(|line| line.split('\t').collect()).collect();
    assert_eq!(columns.len(), 4);
    assert_eq!((columns[0][0], columns[0][2], columns[0][3]), ("apple", "value", "red"));
    let first = ok(&["table", "dump", "--json", "--limit", "1", "--keys-only", &table]);
    let first: Value = serde_json::from_str(&first).unwrap();
    assert_eq!((&first["key"], first.get("value")), (&"apple".into(), None));
    let properties = ok(&["table", "dump", "--properties", "--json", &table]);
    let properties: Value = serde_json::from_str(&properties).unwrap();
    assert_eq!((&properties["entries"], &properties["format_version"]), (&4.into(), &6.into()));
    assert!(ok(&["table", "verify", &table]).contains("4 entries in 1 block"));
}

#[test]
fn a_limited_dump_counts_range_deletions_too() {
    let place = fruit();
    place.run("delete", &["--from", "b", "--to", "c"]);
    place.run("delete", &["--from", "x", "--to", "y"]);
    // The open writes what the log holds to a table.
    place.run("put", &["k", "v"]);
    let tables = std::fs::read_dir(place.db()).unwrap().map(|e| e.unwrap().path());
    let tables = tables.filter(|p| p.extension().is_some_and(|e| e == "sst"));
    let lines = |table: &std::path::PathBuf, limit: &str| {
        let dump = ok(&["table", "dump", "--limit", limit, table.to_str().unwrap()]);
        dump.lines().count()
    };
    let most = tables.map(|t| [lines(&t, "9"), lines(&t, "1")]).max().unwrap();
    assert!(most[0] > 1 && most[1] == 1, "{most:?}");
}

#[test]
fn a_picture_to_scale_spans_its_keys() {
    let place = Place::new();
    let rows = place.file("rows.tsv");
    std::fs::write(&rows, "a long key at the start\t1\nanother key at the end\t2\n").unwrap();
    place.run("load", &["--no-header", &rows]);
    place.run("compact", &[]);
    let picture = ok(&["picture", &place.db()]);
    let run = picture.lines().last().unwrap();
    let drawn = run.split('|').next().unwrap().trim_end().trim_start_matches("L6.0").trim();
    assert_eq!(drawn, "-".repeat(drawn.len()), "the run's last column is its last key: {picture}");
    assert_eq!(run.len(), 80, "{picture}");
}

#[test]
fn several_keys_and_json() {
    let place = fruit();
    assert_eq!(place.run("get", &["cherry", "apple"]), "dark red\nred\n");
    let db = place.db();
    let out = lithify(&["get", "--db", &db, "--json", "apple", "pear"]);
    assert_eq!(out.status.code(), Some(1), "one of them is not there");
    let lines: Vec<Value> = String::from_utf8(out.stdout)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!((&lines[0]["value"], &lines[1]["value"]), (&"red".into(), &Value::Null));
}

#[test]
fn a_small_bench_verifies_and_reports() {
    let place = Place::new();
    let dir = place.file("bench");
    let workloads = "fillrandom,overwrite,readrandom,readseq,readreverse,seekrandom,compact,verify";
    let args = ["bench", "--workloads", workloads, "--num", "2000", "--touch-memory=0", "--quiet"];
    let text = ok(&[&args[..], &["--db", &dir, "--json", "-"]].concat());
    let report: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(report["valid"], true, "{text}");
    // Again, with every setting that the store maps away from its default.
    let odd = [
        "--policy=leveled",
        "--throttle-bandwidth=200MiB",
        "--throttle-latency=50",
        "--throttle-channels=8",
        "--wal=sync",
        "--compression=zstd",
        "--direct-reads",
        "--direct-io-compaction",
        "--dynamic-level-bytes",
        "--memtable-bytes=64KiB",
        "--file-bytes=64KiB",
        "--bloom-bits=0",
        "--cache-bytes=0",
        "--threads=2",
        "--num=500",
    ];
    let odd = [&args[..3], &odd[..], &["--touch-memory=0", "--quiet", "--db", &dir]].concat();
    ok(&odd);
    let mapped =
        ["--mapped-reads", "--cache-bytes=1MiB", "--touch-memory=0", "--quiet", "--db", &dir];
    ok(&[&args[..5], &mapped].concat());
}

/// Reads of another process do not follow the writes of the one before: some keys are not there. A store without an event
/// log has no history, and is measured all the same.
#[test]
fn a_bench_of_an_existing_store_draws_keys_of_its_own() {
    let place = Place::new();
    let dir = place.file("bench");
    let bench = |more: &[&str]| {
        let args = ["bench", "--num", "2000", "--touch-memory=0", "--quiet", "--db", &dir];
        let text = ok(&[&args[..], &["--json", "-", "--set", "event_log=off"], more].concat());
        let report: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(report["valid"], true, "{text}");
        report["workloads"][0].clone()
    };
    let filled = bench(&["--workloads", "fillrandom"]);
    assert_eq!(filled["activity"], Value::Null, "{filled}");
    let read = bench(&["--use-existing-db", "--workloads", "readrandom"]);
    let found = read["found"].as_u64().unwrap();
    assert!((1000..1600).contains(&found), "{found} of 2000 reads found their key");
}

#[test]
fn a_slower_disk_is_slower() {
    let place = Place::new();
    let dir = place.file("bench");
    // 2 MB are written at 4 MB/s at most: no sooner done than after half a second.
    let line = "bench --workloads fillseq,compact,verify --num 2000 --value-size 1024 --wal off \
                --memtable-bytes 64KiB --throttle-bandwidth 4MB --touch-memory=0 --quiet --json -";
    let args: Vec<&str> = line.split_whitespace().chain(["--db", &dir]).collect();
    let report: Value = serde_json::from_str(&ok(&args)).unwrap();
    let seconds = |name: &str| -> f64 {
        let of =
            |w: &Value| w["seconds"].as_f64().unwrap() + w["quiesce_seconds"].as_f64().unwrap();
        report["workloads"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|w| w["workload"] == name)
            .map(of)
            .sum()
    };
    assert!(seconds("fillseq") > 0.4, "{} s", seconds("fillseq"));
}

#[test]
fn a_timeline_shows_the_jobs_of_the_store() {
    let place = Place::new();
    let (dir, csv, svg) = (place.file("bench"), place.file("jobs.csv"), place.file("jobs.svg"));
    let line = "bench --workloads mixgraph,ycsbload,ycsba,verify --num 4000 --value-size 400 \
                --memtable-bytes 64KiB --level-base-bytes 256KiB --file-bytes 64KiB \
                --touch-memory=0 --quiet";
    let with = |path: &str| {
        let args = ["--db", &dir, "--timeline", path].map(str::to_owned);
        let words = line.split_whitespace().map(str::to_owned);
        ok(&words.chain(args).collect::<Vec<_>>().iter().map(String::as_str).collect::<Vec<_>>())
    };
    let text = with(&csv);
    assert!(text.contains("jobs in ycsbload:") && text.contains("L0->"), "{text}");
    let csv = std::fs::read_to_string(csv).unwrap();
    let heading: Vec<&str> = csv.lines().next().unwrap().split(',').collect();
    assert!(heading[0] == "seconds" && heading[1].starts_with("L0->"), "{heading:?}");
    let column = |name: &str| -> f64 {
        let at = heading.iter().position(|h| *h == name).unwrap_or_else(|| panic!("{heading:?}"));
        csv.lines().skip(1).map(|l| l.split(',').nth(at).unwrap().parse::<f64>().unwrap()).sum()
    };
    assert!(column("flush") > 0.0 && column("compactions") > 0.0);
    // 4000 records and 4000 operations of the last store, in steps of a tenth of a second.
    assert!((column("ops_per_second") / 10.0 - 12_000.0).abs() < 10.0, "load, updates, verify");
    with(&svg);
    let svg = std::fs::read_to_string(svg).unwrap();
    assert!(svg.starts_with("<svg") && svg.contains("ycsba") && svg.contains("policy adaptive"));
}

#[test]
fn policies_are_compared_by_name() {
    let place = Place::new();
    let (dir, jobs) = (place.file("bench"), place.file("jobs.svg"));
    let line = "bench compare --presets hybrid,leveled --rounds 1 --workloads fillrandom,verify \
                --num 3000 --memtable-bytes 64KiB --touch-memory=0 --quiet";
    let args: Vec<&str> =
        line.split_whitespace().chain(["--db", &dir, "--timeline", &jobs]).collect();
    let text = ok(&args);
    for part in ["hybrid 0", "leveled / hybrid", "mean active jobs", "write amp into L0"] {
        assert!(text.contains(part), "no `{part}` in\n{text}");
    }
    for policy in ["hybrid", "leveled"] {
        assert!(std::path::Path::new(&place.file(&format!("jobs-{policy}-1.svg"))).exists());
    }
}

#[test]
fn a_database_at_rest_is_explained() {
    let place = fruit();
    place.run("compact", &[]);
    let text = ok(&["explain", &place.db()]);
    assert!(text.starts_with("Nothing would hold writes back.\n"), "{text}");
    assert!(text.contains("runs of level 0 over one key"), "{text}");
    let told: Value = serde_json::from_str(&ok(&["explain", "--json", &place.db()])).unwrap();
    assert_eq!((&told["writes"], &told["open_in_process"]), (&"free".into(), &Value::Null));
    assert_eq!((&told["live"], &told["due"]), (&Value::Null, &Value::Array(Vec::new())));
    assert_eq!(told["levels"].as_array().unwrap().len(), 1);
    assert_eq!((&told["levels"][0]["need"], &told["auto_compaction"]), (&0.0.into(), &true.into()));

    let nothing = lithify(&["explain", &place.file("nothing")]);
    assert_eq!(nothing.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&nothing.stderr).contains("holds no database"));
}

/// Beside a process that has the database open: who that is, what it works on, under which settings.
#[test]
fn a_database_in_use_is_explained() {
    let place = Place::new();
    let mut settings = lithify::Settings::default();
    (settings.l0_trigger, settings.l0_slowdown, settings.l0_stop) = (9, 13, 17);
    settings.policy = Some(lithify::Policy::BucketDf);
    let db = lithify::Db::open(place.db(), settings).unwrap();
    db.put("apple", "red").unwrap();
    db.flush().unwrap();
    // The event log is written a little later than things happen.
    let late = std::time::Instant::now() + std::time::Duration::from_secs(30);
    let told = loop {
        let told: Value = serde_json::from_str(&ok(&["explain", "--json", &place.db()])).unwrap();
        if told["live"]["policy"] == "bucket-df" {
            break told;
        }
        assert!(std::time::Instant::now() < late, "{told}");
    };
    assert_eq!(told["open_in_process"], std::process::id());
    assert_eq!(told["live"]["stalls"], Value::Array(Vec::new()));
    let bounds = told["bounds"].as_array().unwrap();
    let l0 = bounds.iter().find(|b| b["cause"] == "l0_files").unwrap();
    assert_eq!((&l0["slows_at"], &l0["stops_at"]), (&13.into(), &17.into()), "its settings");
    assert!(bounds.iter().any(|b| b["cause"] == "read_amp"), "its policy");
    let text = ok(&["explain", &place.db()]);
    let first =
        format!("Process {} has the database open, with policy bucket-df", std::process::id());
    assert!(text.starts_with(&first), "{text}");
    // What only the process knows is not told by guess.
    assert_eq!((&told["writes"], &told["cause"]), (&"free".into(), &Value::Null));
    assert!(!text.contains("would") && !text.contains("memtables that wait"), "{text}");
    assert!(!text.contains("once the database is opened"), "{text}");
    db.close().unwrap();
    assert!(
        ok(&["explain", &place.db()]).starts_with("Nothing would hold"),
        "no process has it open"
    );
}

#[test]
fn a_column_family_is_looked_into_by_its_name() {
    let place = Place::new();
    let db = Db::open(place.db(), Settings::default()).unwrap();
    db.put("apple", "red").unwrap();
    db.create_column_family("trees", ColumnFamilyOptions::new()).unwrap();
    db.close().unwrap();
    place.run("put", &["--family", "trees", "apple", "malus"]);
    place.run("compact", &["--family", "trees"]);
    assert_eq!(place.run("scan", &["--family", "trees"]), "apple\tmalus\n");
    assert_eq!(place.run("scan", &[]), "apple\tred\n");
    let none = lithify(&["get", "--db", &place.db(), "--family", "shrubs", "apple"]);
    let said = String::from_utf8_lossy(&none.stderr).into_owned();
    assert!(none.status.code() == Some(2) && said.contains("default, trees"), "{said}");
}

/// What a program prepared and did not end can be seen and ended from outside.
#[test]
fn prepared_transactions_are_listed_and_ended() {
    let place = Place::new();
    {
        let db = lithify::Db::open(place.db(), lithify::Settings::default()).unwrap();
        for (name, key) in [("pay", "p"), ("ship\n", "s")] {
            let mut txn = db.begin_transaction(lithify::TransactionOptions::pessimistic());
            txn.put(key, "1").unwrap();
            txn.prepare(name).unwrap();
        }
        db.close().unwrap();
    }
    let said = |words: &[&str]| {
        let out = lithify(words);
        assert!(out.status.success(), "{words:?}: {}", String::from_utf8_lossy(&out.stderr));
        String::from_utf8(out.stdout).unwrap()
    };
    let db = place.db();
    assert_eq!(said(&["prepared", "list", &db]), "pay\t1 writes\nship\\n\t1 writes\n");
    assert!(said(&["explain", &db]).contains("2 transactions are prepared"));
    let none = lithify(&["prepared", "commit", "--db", &db, "bill"]);
    assert_eq!(none.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&none.stderr).contains("no transaction is prepared as `bill`"));
    said(&["prepared", "commit", "--db", &db, "pay"]);
    assert_eq!(said(&["prepared", "list", "--json", &db]).matches("name").count(), 1);
    said(&["prepared", "rollback", "--db", &db, "ship\\n"]);
    assert_eq!(said(&["prepared", "list", &db]), "");
    assert_eq!(said(&["scan", "--db", &db]), "p\t1\n");
}

/// What opens a database for writing says which engines there are.
#[test]
fn all_that_writes_takes_an_engine() {
    for command in [
        "put --db DB a 1",
        "delete --db DB a",
        "load --db DB rows",
        "import rocks DB",
        "compact DB",
        "family create --db DB trees",
        "family drop --db DB trees",
        "prepared commit --db DB pay",
        "prepared rollback --db DB pay",
        "checkpoint --db DB copy",
        "backup create --db DB backups",
        "salvage DB --to new",
        "bench --db DB",
    ] {
        let words: Vec<&str> = command.split(' ').chain(["--engine", "abacus"]).collect();
        let out = lithify(&words);
        let said = String::from_utf8(out.stderr).unwrap();
        assert_eq!(out.status.code(), Some(2), "{command}: {said}");
        assert!(
            said.contains("'abacus'") && said.contains("possible values: cpu"),
            "{command}: {said}"
        );
    }
}
