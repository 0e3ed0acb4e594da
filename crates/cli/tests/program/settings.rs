//! `lithify settings` and `--set`: values, reasons, and what is said of a name that there is none of.

#![allow(clippy::disallowed_methods, reason = "a test of the program from outside")]

use crate::common::{lithify, ok};

fn refused(args: &[&str], code: i32) -> String {
    let out = lithify(args);
    assert_eq!(out.status.code(), Some(code), "{args:?}");
    String::from_utf8(out.stderr).unwrap()
}

/// The line of a setting.
fn line<'a>(text: &'a str, name: &str) -> &'a str {
    text.lines().find(|l| l.trim().starts_with(name)).unwrap_or_else(|| panic!("{name}: {text}"))
}

#[test]
fn what_was_set_is_told_from_what_follows() {
    let dir = tempfile::tempdir().unwrap();
    let db = dir.path().join("db").display().to_string();
    ok(&["put", "--db", &db, "--set", "memory_budget=64MiB", "--set", "l0-trigger=8", "a", "1"]);
    let told = ok(&["settings", "--explain", &db, "--set", "bloom_bits=12"]);
    let memtable = line(&told, "memtable_bytes");
    assert!(memtable.contains("6MiB") && memtable.contains("from memory_budget = 64MiB"));
    let trigger = line(&told, "l0_trigger");
    assert!(trigger.contains("OPTIONS-") && trigger.contains("set; the default is 4"), "{trigger}");
    assert!(line(&told, "bloom_bits").contains("--set: set; the default is 10"));
    assert!(line(&told, "l0_stop").contains("default: "));
    // An open that says nothing changes nothing.
    ok(&["put", "--db", &db, "b", "2"]);
    assert_eq!(line(&ok(&["settings", &db]), "l0_trigger").split_whitespace().last(), Some("8"));
    let json: serde_json::Value = serde_json::from_str(&ok(&["settings", "--json", &db])).unwrap();
    let budget = json.as_array().unwrap().iter().find(|s| s["name"] == "memory_budget").unwrap();
    assert_eq!((&budget["value"], &budget["derived"]), (&"64MiB".into(), &false.into()));
}

/// A value that this version does not know is told. Commands that read take this machine's settings then; one that
/// writes would put them in the place of the database's, and ends.
#[test]
fn stored_settings_that_are_not_understood_are_not_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let db = dir.path().join("db").display().to_string();
    ok(&["put", "--db", &db, "--set", "policy=tiered", "a", "1"]);
    let newest = || {
        let files = std::fs::read_dir(&db).unwrap().map(|file| file.unwrap().path());
        let named = |path: &std::path::Path| path.display().to_string().contains("/OPTIONS-");
        files.filter(|path| named(path)).max().unwrap()
    };
    let file = newest();
    let text = std::fs::read_to_string(&file).unwrap();
    let from_later = text.replace("mapped_log=on", "mapped_log=sometimes");
    assert_ne!(text, from_later);
    std::fs::write(&file, &from_later).unwrap();
    let told = refused(&["put", "--db", &db, "b", "2"], 1);
    let name = file.file_name().unwrap().to_str().unwrap();
    assert!(told.contains("`sometimes`") && told.contains(name), "{told}");
    assert!(told.contains("hint: use the program that wrote them"), "{told}");
    assert_eq!(std::fs::read_to_string(newest()).unwrap(), from_later, "nothing was written");
    for args in [&["get", "--db", &db, "a"][..], &["explain", &db]] {
        let out = lithify(args);
        let told = String::from_utf8(out.stderr).unwrap();
        assert!(
            out.status.success() && told.contains("this machine's settings are used"),
            "{args:?}: {told}"
        );
    }
    // Of a family, too.
    std::fs::write(&file, &text).unwrap();
    ok(&["family", "create", "--db", &db, "trees"]);
    let file = newest();
    let text = std::fs::read_to_string(&file).unwrap();
    let (first, rest) = text.split_once("trees").unwrap();
    let in_family = rest.replacen("policy=tiered", "policy=tidy", 1);
    assert_ne!(in_family, rest, "{text}");
    std::fs::write(&file, format!("{first}trees{in_family}")).unwrap();
    assert!(refused(&["put", "--db", &db, "b", "2"], 1).contains("`tidy`"));
    // Known values that are not sound together: a command that writes can be told others.
    std::fs::write(
        &file,
        text.replace("direct_reads=off", "direct_reads=on")
            .replace("mapped_reads=off", "mapped_reads=on"),
    )
    .unwrap();
    assert!(refused(&["put", "--db", &db, "b", "2"], 1).contains("turn one of the two off"));
    ok(&["put", "--db", &db, "--set", "mapped_reads=off", "b", "2"]);
    let told = ok(&["settings", &db]);
    assert_eq!(line(&told, "direct_reads").split_whitespace().last(), Some("on"));
    assert_eq!(line(&told, "policy").split_whitespace().last(), Some("tiered"));
}

/// A user sees first what most need. What is there for RocksDB's sake is seen once it is set, or asked for.
#[test]
fn settings_for_rocksdbs_sake_are_seen_when_they_are_set_or_asked_for() {
    let names = |args: &[&str]| -> Vec<String> {
        let told = ok(args);
        let first = |line: &str| line.split_whitespace().next().map(str::to_owned);
        told.lines().filter_map(first).filter(|name| name.contains('_')).collect()
    };
    let has = |names: &[String], name: &str| names.iter().any(|n| n == name);
    let plain = names(&["settings"]);
    assert!(has(&plain, "l0_trigger") && !has(&plain, "universal_size_ratio"), "{plain:?}");
    assert!(plain.len() <= 40, "{plain:?}");
    let all = names(&["settings", "--all", "--explain"]);
    assert!(has(&all, "universal_size_ratio") && has(&all, "fifo_max_bytes"), "{all:?}");
    let set = names(&["settings", "--set", "universal_size_ratio=7"]);
    assert!(has(&set, "universal_size_ratio") && !has(&set, "fifo_max_bytes"), "{set:?}");
    let more = all.len() - plain.len();
    assert!(ok(&["settings"]).contains(&format!("{more} more are there for RocksDB's sake")));
    assert!(!ok(&["settings", "--all"]).contains("more are there"));
    // Programs that read JSON get all of them, in one order.
    let json: serde_json::Value = serde_json::from_str(&ok(&["settings", "--json"])).unwrap();
    let json = json.as_array().unwrap();
    let ratio = json.iter().find(|s| s["name"] == "universal_size_ratio").unwrap();
    assert_eq!((&ratio["for_rocksdb"], &ratio["takes"]), (&true.into(), &"0 to 10000".into()));
    assert_eq!(ratio["rocksdb"], "compaction_options_universal.size_ratio");
    let seen = |s: &&serde_json::Value| s["for_rocksdb"] == false;
    assert!(json.len() > json.iter().filter(seen).count());
}

#[test]
fn what_is_not_understood_names_the_fix() {
    let wrong = refused(&["settings", "--set", "memtabel_bytes=1MiB"], 2);
    assert!(wrong.contains("did you mean `memtable_bytes`?"), "{wrong}");
    let wrong = refused(&["put", "--db", "nowhere", "--set", "durability=paper", "a", "1"], 2);
    assert!(wrong.contains("no-wal, buffered, os, sync"), "{wrong}");
    let wrong = refused(&["settings", "--set", "memtable_bytes=1GiB"], 1);
    assert!(wrong.contains("memory_budget = ") && wrong.contains("raise it to"), "{wrong}");
    assert!(!std::path::Path::new("nowhere").exists());
}

/// Settings of tables take effect on what is there already once it is rewritten.
#[test]
fn a_rewrite_takes_other_settings_everywhere() {
    let place = tempfile::tempdir().unwrap();
    let db = place.path().join("db").display().to_string();
    ok(&["put", "--db", &db, "--set", "compression_lower=none", "key", &"value ".repeat(5000)]);
    let bytes = |more: &[&str]| -> u64 {
        let told = ok(&[&["compact", "--db", &db, "--json"], more].concat());
        let json: serde_json::Value = serde_json::from_str(&told).unwrap();
        json["bytes_after"].as_u64().unwrap()
    };
    let plain = bytes(&[]);
    assert_eq!(bytes(&["--set", "compression_lower=lz4"]), plain, "it is one run already");
    assert!(bytes(&["--rewrite"]) < plain / 4);
}

/// What a family was given stays with it at each open of the database: a log that forgets does not make
/// its neighbours forget, nor the other way round.
#[test]
fn families_keep_their_settings() {
    use lithify::{ColumnFamilyOptions, Db, Policy, Settings};
    let place = tempfile::tempdir().unwrap();
    let dir = place.path().join("db").display().to_string();
    let mut forgets = Settings::default();
    forgets.policy = Some(Policy::Fifo);
    forgets.bloom_bits = 3;
    let db = Db::open(&dir, forgets.clone()).unwrap();
    let mut keeps = forgets.clone();
    keeps.policy = Some(Policy::Leveled);
    let users = ColumnFamilyOptions::new().settings(keeps);
    drop(db.create_column_family("users", users).unwrap());
    drop(db.create_column_family("more", ColumnFamilyOptions::new()).unwrap());
    db.close().unwrap();
    let policy = |family: &str| {
        let told = ok(&["settings", "--explain", &dir, "--family", family]);
        assert!(line(&told, "bloom_bits").contains("OPTIONS-"), "{told}");
        line(&told, "policy").split_whitespace().nth(1).unwrap().to_owned()
    };
    for _ in 0..2 {
        assert_eq!(["default", "users", "more"].map(policy), ["fifo", "leveled", "fifo"]);
        // An open for writing leaves all of that as it is.
        ok(&["put", "--db", &dir, "--family", "users", "--set", "l0_trigger=6", "ann", "1"]);
    }
    let l0 = line(&ok(&["settings", &dir, "--family", "users"]), "l0_trigger").to_owned();
    assert!(l0.ends_with(" 6") || l0.trim_end().ends_with(" 6"), "{l0}");
    let wrong = refused(&["settings", "--explain", &dir, "--family", "user"], 2);
    assert!(wrong.contains("the database has default, more, users"), "{wrong}");
    let wrong = refused(&["settings", "--family", "users"], 2);
    assert!(wrong.contains("name the directory"), "{wrong}");
}
