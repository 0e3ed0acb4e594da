use super::*;

fn told(s: &Settings) -> String {
    s.check().unwrap_err().to_string()
}

#[test]
fn a_priority_needs_files_to_choose_from() {
    let mut s = Settings { compaction_pri: CompactionPri::RoundRobin, ..Settings::default() };
    for policy in Policy::ALL {
        s.policy = Some(policy);
        match policy {
            p if p.takes_runs() => {
                let error = told(&s);
                assert!(error.contains("compaction_pri = round-robin"), "{error}");
                assert!(error.contains(policy.name()), "{error}");
            }
            _ => s.check().unwrap(),
        }
    }
    for pri in CompactionPri::ALL {
        assert_eq!(CompactionPri::from_name(pri.name()), Some(pri));
    }
}

#[test]
fn what_cannot_hold_together_is_refused_with_its_fix() {
    let nothing =
        Settings { create_if_missing: false, error_if_exists: true, ..Settings::default() };
    assert!(told(&nothing).contains("clear one of the two"));
    let (mut full, gib) = (Settings::default(), 1 << 30);
    full.policy = Some(Policy::Fifo);
    (full.fifo_max_bytes, full.disk_budget) = (8 * gib, Some(4 * gib));
    let what = told(&full);
    assert!(what.contains("fifo_max_bytes = 8589934592") && what.contains("2147483648"), "{what}");
    full.fifo_max_bytes = 2 * gib;
    full.check().unwrap();
    // To another policy the bound means nothing.
    (full.fifo_max_bytes, full.policy) = (8 * gib, Some(Policy::Leveled));
    full.check().unwrap();
}

/// A refused budget is told the least that is not: that one opens, and a byte less does not.
#[test]
fn the_budget_that_a_refusal_names_is_the_least_that_opens() {
    let cases: &[&[(&str, &str)]] = &[
        &[("memory_budget", "1MiB")],
        &[("memory_budget", "1500KiB"), ("compaction_threads", "64")],
        &[("memtable_bytes", "1GiB")],
        &[("memory_budget", "1MiB"), ("memtable_bytes", "1MiB")],
        &[("memory_budget", "1MiB"), ("memtable_count", "2")],
        &[("memory_budget", "64MiB"), ("memtable_count", "11")],
        &[("buffer_bytes", "1GiB")],
        &[("memory_budget", "1MiB"), ("buffer_bytes", "64MiB")],
        &[("memory_budget", "8MiB"), ("buffer_bytes", "7MiB"), ("memtable_bytes", "512KiB")],
    ];
    for set in cases {
        let mut s = Settings::default();
        set.iter().for_each(|(name, value)| s.set(name, value).unwrap());
        let what = told(&s);
        let (_, after) = what.rsplit_once("to ").unwrap_or_default();
        let (_, after) = what.split_once("raise it to ").unwrap_or(("", after));
        let digits: String = after.chars().take_while(char::is_ascii_digit).collect();
        let least: u64 = digits.parse().unwrap_or_else(|e| panic!("{set:?}: {what}: {e}"));
        let with = |memory| s.clone().with_budget(Budget { memory, ..s.budget() }).check();
        with(least).unwrap_or_else(|e| panic!("{set:?}: {least}: {e}"));
        let error = with(least - 1).expect_err("a byte less is refused").to_string();
        assert!(error.contains(&digits), "{set:?}: a byte less is told the same: {error}");
    }
    let mut none = Settings::default();
    none.set("memtable_bytes", &u64::MAX.to_string()).unwrap();
    assert!(told(&none).contains(&u64::MAX.to_string()), "what no budget holds ends all the same");
}

/// Each case breaks one rule; the error names the settings of that rule.
#[test]
fn every_rule_between_settings_can_be_broken() {
    let cases: &[(&[(&str, &str)], &str)] = &[
        (&[("max_dict_bytes", "16KiB")], "for Zstandard alone"),
        (
            &[("universal_min_merge_width", "9"), ("universal_max_merge_width", "8")],
            "universal_min_merge_width = 9 is above universal_max_merge_width = 8",
        ),
        (&[("deletion_window", "10")], "deletion_trigger = 1000 is not in 1 to 10"),
        (&[("deletion_window", "10"), ("deletion_trigger", "0")], "deletion_trigger = 0 is not in"),
        (&[("auto_tuned_rate", "on")], "set background_rate"),
        (&[("create_if_missing", "off"), ("error_if_exists", "on")], "clear one of the two"),
        (&[("direct_reads", "on"), ("mapped_reads", "on")], "turn one of the two off"),
        (&[("block_bytes", "5000")], "block_bytes = 5000 is not a power of two; try 8192"),
        (&[("l0_trigger", "21")], "must rise in this order"),
        (&[("l0_slowdown", "37")], "must rise in this order"),
        (&[("policy", "fifo"), ("compaction_pri", "round-robin")], "takes whole runs"),
        (&[("policy", "fifo"), ("fifo_max_bytes", "1MiB")], "soon after it is flushed"),
        (
            &[("policy", "fifo"), ("disk_budget", "4GiB"), ("fifo_max_bytes", "8GiB")],
            "nothing would be forgotten",
        ),
        (&[("soft_debt_bytes", "2GiB"), ("hard_debt_bytes", "1GiB")], "is above hard_debt_bytes"),
        (&[("memtable_bytes", "1GiB")], "raise it to 4296015872"),
        (&[("buffer_bytes", "1GiB")], "buffer_bytes = 1073741824 leaves less than 1 MiB"),
        (&[("disk_budget", "64MiB")], "disk_budget = 67108864 is below 16 memtables"),
        (&[("compression_upper", "zlib:10")], "compression_upper: Zlib level 10"),
        (&[("compression_lower", "zstd:20")], "compression_lower: Zstandard level 20"),
    ];
    for (set, says) in cases {
        let mut s = Settings::default();
        set.iter().for_each(|(name, value)| s.set(name, value).unwrap());
        let what = told(&s);
        assert!(what.contains(says), "{set:?}: {what}");
    }
    let broken = |rule: &Rule| {
        cases.iter().any(|(set, _)| {
            let mut s = Settings::default();
            set.iter().for_each(|(name, value)| s.set(name, value).unwrap());
            rule(&s).is_some()
        })
    };
    let many = Settings::default().table_dirs((0..5).map(|n| (format!("/{n}"), 0)));
    assert!(told(&many).contains("table_dirs has 5 directories"));
    let broken = |rule: &Rule| broken(rule) || rule(&many).is_some();
    assert!(RULES.iter().all(broken), "a rule without a case");
}

#[test]
fn the_range_of_one_setting_is_looked_at_alone() {
    let mut s = Settings::default();
    s.set("bloom_bits", "51").unwrap();
    assert!(s.check_range("bloom-bits").unwrap_err().to_string().contains("0 to 50"));
    assert!(s.check_range("l0_stop").is_ok(), "another one is wrong");
    assert!(s.check_range("l0_stops").is_err());
}
