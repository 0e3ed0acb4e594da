//! The event log says enough to draw who worked when: every job's begin, levels and end.

use std::collections::BTreeSet;
use std::path::Path;

use lithify::{Builder, ColumnFamilyOptions, Policy, Settings};
use lithify_env::{Env, OpenOpts, RtOptions, read_full_at, write_all_at};

/// The number after `"name":` in a line.
fn number(line: &str, name: &str) -> u64 {
    let (_, rest) = line.split_once(&format!("\"{name}\":")).unwrap_or_else(|| panic!("{line}"));
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    rest[..end].parse().unwrap_or_else(|_| panic!("{name} in {line}"))
}

/// All of the log.
fn log(world: &Env) -> String {
    let file = world.fs.open(Path::new("db/EVENTS"), OpenOpts::read()).expect("a log");
    let mut text = vec![0; file.len().expect("a length") as usize];
    read_full_at(&*file, &mut text, 0).expect("read");
    String::from_utf8(text).expect("text")
}

#[test]
fn jobs_have_levels_and_ends() {
    let world = Env::in_memory(RtOptions::default());
    let mut settings = Settings::default();
    settings.memtable_bytes = 64 << 10;
    settings.level_base_bytes = 256 << 10;
    settings.file_bytes = 64 << 10;
    settings.memory_budget = 8 << 20;
    let db = Builder::new(settings).env(world.clone()).open("db").expect("a new database");
    for i in 0..20_000u64 {
        let key = (i * 7_919 % 20_000).to_be_bytes();
        db.put(key, [i as u8; 100]).expect("written");
    }
    db.wait_idle(None).expect("idle");
    db.close().expect("closed");

    let text = log(&world);
    let first = text.lines().next().expect("a line");
    assert!(first.contains("\"event\":\"opened\",\"policy\":\"adaptive\""), "{first}");

    let (mut running, mut levels, mut jobs) = (BTreeSet::new(), BTreeSet::new(), 0);
    let mut last = 0;
    for line in text.lines() {
        let at = number(line, "at_us");
        assert!(at >= last, "time runs forward: {line}");
        last = at;
        if line.contains("_start\"") {
            jobs += 1;
            assert!(running.insert(number(line, "job")), "{line}");
            let to = number(line, "to");
            if line.contains("flush_start") {
                assert_eq!(to, 0, "{line}");
            } else {
                let from = number(line, "from");
                assert!(from <= to && line.contains("\"kind\":\""), "{line}");
                levels.insert((from, to));
            }
        } else if ["flush_end", "compaction_end", "job_failed", "job_stopped"]
            .iter()
            .any(|end| line.contains(&format!("\"{end}\"")))
        {
            assert!(running.remove(&number(line, "job")), "{line}");
        }
    }
    assert!(running.is_empty(), "jobs without an end: {running:?}");
    assert!(jobs > 10 && levels.iter().any(|l| l.0 == 0), "{jobs} jobs, {levels:?}");
}

/// Before, the log of a database that was closed in a stall, or of a family that was dropped in one, had no end of it, and
/// who read it took the stall to last.
#[test]
fn stalls_end_with_what_they_hold_back() {
    let world = Env::in_memory(RtOptions::default());
    let mut settings = Settings::default();
    settings.auto_compaction = false;
    (settings.l0_trigger, settings.l0_slowdown, settings.l0_stop) = (2, 3, 50);
    let db = Builder::new(settings).env(world.clone()).open("db").expect("a new database");
    let trees = db.open_column_family("trees", ColumnFamilyOptions::new()).expect("a family");
    for _ in 0..5 {
        db.put("a", "1").expect("written");
        trees.put("a", "1").expect("written");
        db.flush().expect("flushed");
        trees.flush().expect("flushed");
    }
    // Level 0 is too deep from here on, and nothing takes it down.
    let pause = db.pause_background().expect("paused");
    db.set_auto_compaction(true);
    trees.set_auto_compaction(true);
    db.drop_column_family("trees").expect("dropped");
    db.close().expect("closed");
    drop(pause);
    let text = log(&world);
    let stalls = |of_trees: bool| -> Vec<&str> {
        let of = text.lines().filter(|line| line.contains("\"family\":\"trees\"") == of_trees);
        let names = of.filter_map(|line| Some(line.split_once("\"event\":\"")?.1));
        let names = names.map(|rest| rest.split('"').next().unwrap_or(rest));
        names.filter(|name| name.starts_with("stall_")).collect()
    };
    for of_trees in [true, false] {
        assert_eq!(stalls(of_trees), ["stall_begin", "stall_end"], "{text}");
    }
    let dropped = text.find("family_dropped").expect("it was");
    let end = text.find("stall_end").expect("checked above");
    assert!(end < dropped, "that of the family ends at its drop: {text}");
}

/// The log is begun anew when it is long, and what the opening told is gone with the second one after it.
#[test]
#[allow(clippy::disallowed_methods, reason = "the test waits in real time")]
fn a_log_that_is_begun_anew_says_what_the_opening_did() {
    let world = Env::in_memory(RtOptions::default());
    let open = || Builder::new(Settings::default()).env(world.clone()).open("db").expect("opened");
    open().close().expect("closed");
    let long = vec![b'\n'; 33 << 20];
    let file = world.fs.open(Path::new("db/EVENTS"), OpenOpts::write()).expect("a log");
    write_all_at(&*file, &long, file.len().expect("a length")).expect("written");
    drop(file);
    let db = open();
    let end = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while log(&world).matches("\"opened\"").count() < 2 {
        assert!(std::time::Instant::now() < end, "it says so soon");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    db.put("a", "1").expect("written");
    db.flush().expect("flushed");
    db.close().expect("closed");
    let text = log(&world);
    let [first, second] = [0, 1].map(|n| text.lines().nth(n).expect("a line"));
    assert!(first.contains("\"event\":\"goes_on\",\"policy\":\"adaptive\""), "{text}");
    let now = std::time::UNIX_EPOCH.elapsed().expect("after it").as_secs();
    assert!((now - 100..=now).contains(&number(first, "unix_seconds")), "{text}");
    assert!(number(first, "at_us") <= number(second, "at_us"), "{text}");
    assert_eq!(text.matches("goes_on").count(), 1, "{text}");
}

#[test]
fn policies_are_known_by_name() {
    for policy in Policy::ALL {
        assert_eq!(Policy::from_name(policy.name()), Some(policy));
    }
    assert_eq!(Policy::from_name("sideways"), None);
}
