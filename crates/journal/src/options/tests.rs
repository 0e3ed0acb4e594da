use super::*;

fn lines(text: &[(&'static str, &str)]) -> Lines {
    text.iter().map(|(name, value)| (*name, (*value).to_owned())).collect()
}

fn db() -> Lines {
    lines(&[("max_background_jobs", "2"), ("max_open_files", "-1")])
}

fn family(name: &str) -> FamilyOptions {
    FamilyOptions {
        name: name.to_owned(),
        comparator: "leveldb.BytewiseComparator".to_owned(),
        merge_operator: None,
        prefix_extractor: Some("rocksdb.FixedPrefix.4".to_owned()),
        options: lines(&[
            ("write_buffer_size", "67108864"),
            ("max_bytes_for_level_multiplier", "10.000000"),
            ("compression", "kLZ4Compression"),
        ]),
        table: lines(&[("format_version", "6"), ("filter_policy", "bloomfilter:10:false")]),
        own: Lines::new(),
    }
}

#[test]
fn what_we_write_we_read() {
    let odd = "a\\b:c\nd # \"e\"";
    let text = write(&db(), &[family("default"), family(odd)], &Lines::new());
    let file = OptionsFile::parse(text.as_bytes()).unwrap();
    assert_eq!(file.rocksdb_version, ROCKSDB_VERSION);
    assert_eq!(file.db["max_background_jobs"], "2");
    let names: Vec<&str> = file.families.iter().map(|f| f.name.as_str()).collect();
    assert_eq!(names, ["default", odd]);
    let f = &file.families[1];
    assert_eq!(f.comparator(), Some("leveldb.BytewiseComparator"));
    assert_eq!(f.merge_operator(), None);
    assert_eq!(f.prefix_extractor(), Some("rocksdb.FixedPrefix.4"));
    assert_eq!(f.table["format_version"], "6");
    assert_eq!(f.table["filter_policy"], "bloomfilter:10:false");
    assert_eq!(f.options["max_bytes_for_level_multiplier"], "10.000000");
}

#[test]
fn rocksdbs_forms_of_names_comments_and_unknown_options() {
    let text = "# head\n[Version]\n rocksdb_version=11.9.0 # trailing\n[DBOptions]\n  new_thing=1\n\
                [CFOptions \"default\"]\n  merge_operator={delimiter=,;id=StringAppendOperator;}\n  \
                comparator=rocksdb.ReverseBytewiseComparator\n  name=with \\# and \\: signs\n\
                [TableOptions/PlainTable \"default\"]\n x=y\n";
    let file = OptionsFile::parse(text.as_bytes()).unwrap();
    assert_eq!(file.rocksdb_version, "11.9.0");
    assert_eq!(file.db["new_thing"], "1");
    let f = &file.families[0];
    assert_eq!(f.merge_operator(), Some("StringAppendOperator"));
    assert_eq!(f.comparator(), Some("rocksdb.ReverseBytewiseComparator"));
    assert_eq!(f.options["name"], "with # and : signs");
    assert_eq!(f.table["x"], "y");
}

#[test]
fn malformed_files_name_the_line() {
    for (text, says) in [
        ("", "lacks a section"),
        ("[DBOptions]\n", "lacks a section"),
        ("x=1\n", "line 1"),
        ("[DBOptions]\nnothing\n", "line 2"),
        ("[CFOptions \"other\"]\n", "default"),
        ("[CFOptions \"default\"]\n[CFOptions \"default\"]\n", "twice"),
        ("[TableOptions/BlockBasedTable \"default\"]\n", "unknown section"),
        ("[What]\n", "unknown section"),
        ("  # lithify.family-setting a=1\n", "line 1: a family's setting"),
    ] {
        let e = OptionsFile::parse(text.as_bytes()).unwrap_err();
        assert!(e.is_corruption() && e.to_string().contains(says), "{text:?}: {e}");
    }
    assert!(OptionsFile::parse(b"\xff").unwrap_err().is_corruption());
}

#[test]
fn truncations_never_panic() {
    let text = write(&db(), &[family("default")], &Lines::new());
    for cut in 0..text.len() {
        let _ = OptionsFile::parse(&text.as_bytes()[..cut]);
    }
}

#[test]
fn every_flipped_bit_breaks_the_sum_or_the_text() {
    let text = write(&db(), &[family("default")], &Lines::new()).into_bytes();
    assert!(check_sum(&text).unwrap());
    OptionsFile::parse(&text).unwrap();
    for bit in 0..text.len() * 8 {
        let mut bad = text.clone();
        bad[bit / 8] ^= 1 << (bit % 8);
        assert!(check_sum(&bad).is_err(), "bit {bit}");
    }
    for len in 0..text.len() {
        let cut = &text[..len];
        let told = check_sum(cut).is_err() || OptionsFile::parse(cut).is_err();
        assert!(told, "cut to {len} bytes");
    }
    let longer = [&text[..], b"\n"].concat();
    assert!(check_sum(&longer).is_err());
    assert!(
        !check_sum(b"[Version]\n  rocksdb_version=9.0.0\n").unwrap(),
        "foreign files have none"
    );
}

#[test]
fn settings_of_ours_are_comments_to_others() {
    let own = [("policy", "auto".to_owned()), ("memory_budget", "512MiB".to_owned())];
    let text = write(&db(), &[family("default")], &own.to_vec());
    assert!(check_sum(text.as_bytes()).unwrap());
    let file = OptionsFile::parse(text.as_bytes()).unwrap();
    assert_eq!(file.own["memory_budget"], "512MiB");
    assert_eq!(file.own.len(), 2);
    let plain =
        OptionsFile::parse(write(&db(), &[family("default")], &Lines::new()).as_bytes()).unwrap();
    assert_eq!((plain.own.len(), plain.families), (0, file.families));
}

#[test]
fn each_family_keeps_settings_of_its_own() {
    let with = |name: &str, value: &str| {
        let own = vec![("bloom_bits", value.to_owned()), ("policy", "fifo".to_owned())];
        FamilyOptions { own, ..family(name) }
    };
    let own = [("bloom_bits", "10".to_owned())];
    let text = write(&db(), &[family("default"), with("a", "12"), with("b", "0")], &own.to_vec());
    assert!(check_sum(text.as_bytes()).unwrap());
    let file = OptionsFile::parse(text.as_bytes()).unwrap();
    assert_eq!((file.own.len(), &*file.own["bloom_bits"]), (1, "10"));
    let of = |n: usize| file.families[n].own.get("bloom_bits").map(String::as_str);
    assert_eq!([of(0), of(1), of(2)], [None, Some("12"), Some("0")]);
    assert_eq!(file.families[1].own["policy"], "fifo");
}
