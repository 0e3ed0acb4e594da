//! The event log says enough to draw who worked when: every job's begin, levels and end.

use std::collections::BTreeSet;
use std::path::Path;

use lithify::{Builder, Policy, Settings};
use lithify_env::{Env, RtOptions, read_full_at};

/// The number after `"name":` in a line.
fn number(line: &str, name: &str) -> u64 {
    let (_, rest) = line.split_once(&format!("\"{name}\":")).unwrap_or_else(|| panic!("{line}"));
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    rest[..end].parse().unwrap_or_else(|_| panic!("{name} in {line}"))
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

    let path = Path::new("db/EVENTS");
    let file = world.fs.open(path, lithify_env::OpenOpts::read()).expect("a log");
    let mut text = vec![0; file.len().expect("a length") as usize];
    read_full_at(&*file, &mut text, 0).expect("read");
    let text = String::from_utf8(text).expect("text");
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

#[test]
fn policies_are_known_by_name() {
    for policy in Policy::ALL {
        assert_eq!(Policy::from_name(policy.name()), Some(policy));
    }
    assert_eq!(Policy::from_name("sideways"), None);
}
