//! Settings in OPTIONS files, ours and RocksDB's.

use lithify_journal::options::OptionsFile;
use lithify_settings::{Budget, Compression, Described, ROWS, Settings, options_text};

/// What the default budget gives on a machine with four processors.
fn plain() -> Settings {
    Settings::for_budget(Budget { memory: 512 << 20, threads: 4, disk: None })
}

/// Every setting is another one than that of its budget, but for `error_if_exists`, which contradicts
/// `create_if_missing`.
fn odd() -> Settings {
    let text = include_str!("../golden/odd.txt");
    let budget = Budget { memory: 300 << 20, threads: 6, disk: Some(200 << 30) };
    let mut s = Settings::for_budget(budget);
    for line in text.lines() {
        let (name, value) = line.split_once('=').unwrap();
        s.set(name, value).unwrap();
    }
    s
}

fn described(name: &str, settings: Settings) -> Described {
    Described {
        name: name.to_owned(),
        settings,
        comparator: "leveldb.BytewiseComparator".to_owned(),
        merge_operator: None,
        prefix_extractor: None,
    }
}

#[test]
fn the_odd_settings_are_all_odd() {
    let (odd, plain) = (odd(), Settings::for_budget(odd().budget()));
    for row in ROWS {
        let budget = ["memory_budget", "compaction_threads", "disk_budget"].contains(&row.name);
        let same = (row.show)(&odd) == (row.show)(&plain);
        let expected = budget || ["error_if_exists", "memtable_bytes"].contains(&row.name);
        assert_eq!(same, expected, "{}", row.name);
    }
}

/// Holds `text` against a file of `tests/golden`, or makes that of it, with `REWRITE=1`.
fn is_golden(name: &str, text: &str) {
    let path = format!("{}/tests/golden/{name}", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("REWRITE").is_some() {
        std::fs::write(&path, text).unwrap();
    }
    assert_eq!(text, std::fs::read_to_string(&path).unwrap(), "REWRITE=1 writes {path} anew");
}

#[test]
fn options_files_have_the_bytes_they_always_had() {
    is_golden("OPTIONS-plain", &options_text(&[described("default", plain())]));

    let named = Described {
        merge_operator: Some("uint64add".to_owned()),
        prefix_extractor: Some("rocksdb.FixedPrefix.4".to_owned()),
        ..described("odd \"one\": #2", odd())
    };
    let families = [described("default", plain()), named, described("same", plain())];
    is_golden("OPTIONS-families", &options_text(&families));

    let mut parts = odd();
    parts.bloom_bits = 12;
    parts.compression_lower = Compression::Zstd(3);
    parts.compression_upper = Compression::Bzip2;
    let named = Described { merge_operator: Some("a".to_owned()), ..described("default", odd()) };
    let text = options_text(&[named, described("p", parts)]);
    is_golden("OPTIONS-odd", &text);
}

/// The settings that are read from a directory with this OPTIONS file.
fn stored(text: &str) -> Settings {
    let place = tempfile::tempdir().unwrap();
    std::fs::write(place.path().join("OPTIONS-000007"), text).unwrap();
    Settings::stored_in(place.path()).unwrap().unwrap().0
}

#[test]
fn what_is_written_is_read_back() {
    for settings in [plain(), odd()] {
        assert_eq!(stored(&options_text(&[described("default", settings.clone())])), settings);
    }
}

/// Without the comments that RocksDB passes over, the file is one of RocksDB: what its options say is
/// what was set.
#[test]
fn rocksdb_is_told_the_same_as_the_next_open() {
    let text = options_text(&[described("default", odd())]);
    let foreign: String =
        text.lines().filter(|l| !l.trim().starts_with('#')).map(|l| format!("{l}\n")).collect();
    let (told, odd) = (stored(&foreign), odd());
    let mut both = 0;
    for (row, line) in ROWS.iter().filter_map(|row| Some((row, row.rocksdb()?))) {
        // Levels of codecs are no options of their own in what we write.
        let written = foreign.lines().any(|l| l.trim().starts_with(&format!("{line}=")));
        let apart = [
            "compaction_threads",
            "policy",
            "direct_background_io",
            "direct_reads",
            "mapped_reads",
        ]
        .contains(&row.name)
            || row.name.starts_with("compression_");
        if written && !apart {
            assert_eq!((row.show)(&told), (row.show)(&odd), "{}", row.name);
            both += 1;
        }
    }
    assert_eq!(both, 21, "as many rows are written and read");
    // `max_background_jobs` is both kinds of threads; RocksDB always flushes with one of them.
    assert_eq!(told.compaction_threads, odd.compaction_threads + odd.flush_threads - 1);
    assert_eq!(
        (told.compression_upper, told.compression_lower),
        (Compression::Snappy, Compression::Zlib(6))
    );
}

/// Names that we read or write in OPTIONS files are names that RocksDB writes there, in the same section.
/// RocksDB knows nothing between yes and no.
#[test]
fn what_is_left_to_the_store_is_off_there() {
    for (mapped, line) in [(Some(true), "true"), (Some(false), "false"), (None, "false")] {
        let mut s = plain();
        s.mapped_reads = mapped;
        let text = options_text(&[described("default", s.clone())]);
        assert!(text.contains(&format!("\n  allow_mmap_reads={line}\n")), "{text}");
        assert_eq!(stored(&text).mapped_reads, mapped, "it is as it was for us");
    }
}

#[test]
fn rocksdbs_names_are_those_of_its_own_files() {
    let text = include_str!("../../../db/tests/foreign/rocksdb-families/OPTIONS-000007");
    let file = OptionsFile::parse(text.as_bytes()).unwrap();
    let family = &file.families[0];
    let sections = [&file.db, &family.options, &family.table];
    for name in ROWS.iter().filter_map(|row| row.in_options()) {
        let (outer, inner) = name.split_once('.').unwrap_or((name, ""));
        let values: Vec<_> = sections.iter().filter_map(|section| section.get(outer)).collect();
        assert_eq!(values.len(), 1, "{name} is in one section");
        assert!(inner.is_empty() || values[0].contains(&format!("{inner}=")), "{name}");
    }
}

/// What directories of RocksDB give, as far as it is not the default. `REWRITE=1` writes it anew.
#[test]
fn foreign_directories_give_what_they_gave() {
    let mut text = String::new();
    let mut tell = |what: String, s: &Settings| {
        let base = Settings::for_budget(s.budget());
        let set = ROWS.iter().filter(|row| (row.show)(s) != (row.show)(&base));
        let set: Vec<String> =
            set.map(|row| format!("  {}={}\n", row.name, (row.show)(s))).collect();
        text += &format!("{what}: {} threads\n{}", s.compaction_threads, set.concat());
    };
    for name in ["rocksdb-families", "rocksdb-recycled", "rocksdb-versions"] {
        let dir = format!("{}/../db/tests/foreign/{name}", env!("CARGO_MANIFEST_DIR"));
        let (db, file) = Settings::stored_in(&dir).unwrap().unwrap();
        tell(format!("{name} {file}"), &db);
        for (family, own) in Settings::stored_families_in(&dir, &db).unwrap() {
            tell(format!("{name} {family}"), &own);
        }
    }
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/foreign.txt");
    if std::env::var_os("REWRITE").is_some() {
        std::fs::write(path, &text).unwrap();
    }
    assert_eq!(std::fs::read_to_string(path).unwrap(), text);
}
