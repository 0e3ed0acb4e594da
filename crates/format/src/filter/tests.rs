use super::*;

fn hashes(n: usize) -> Vec<u64> {
    (0..n).map(|i| key_hash(format!("key{i}").as_bytes())).collect()
}

/// The filter of hashes that come in one slice.
fn built(hashes: &[u64], millibits: u32) -> Vec<u8> {
    build_filter([hashes].into_iter(), millibits).to_vec()
}

#[test]
fn no_false_negatives_and_few_false_positives() {
    for n in [1, 2, 50, 51, 52, 1000, 20_000] {
        let all = hashes(n);
        let block = built(&all, DEFAULT_MILLIBITS);
        assert_eq!(block.len(), filter_bytes(n as u64, DEFAULT_MILLIBITS));
        let filter = Filter::new(&block);
        assert!(filter.shape().is_known());
        assert!(all.iter().all(|&h| filter.may_contain(h)));
        let wrong = (0..20_000)
            .filter(|i| filter.may_contain(key_hash(format!("other{i}").as_bytes())))
            .count();
        assert!(wrong < 20_000 * 3 / 200, "{n} keys: {wrong} of 20000");
    }
}

#[test]
fn sizes_and_probes_follow_the_format() {
    assert_eq!(filter_bytes(0, 10_000), 0);
    assert_eq!(filter_bytes(1, 10_000), 64 + 5);
    assert_eq!(filter_bytes(51, 10_000), 64 + 5, "510 bits");
    assert_eq!(filter_bytes(52, 10_000), 128 + 5, "520 bits");
    assert_eq!(filter_bytes(u64::MAX, 10_000), 0xffff_ffc0 + 5);
    assert!(built(&[], 10_000).is_empty());
    assert_eq!(built(&[7], 10_000)[64..], [0xff, 0, 6, 0, 0]);
    let table = [
        (0, 1),
        (2080, 1),
        (2081, 2),
        (3580, 2),
        (5100, 3),
        (6640, 4),
        (8300, 5),
        (8301, 6),
        (10_000, 6),
        (10_070, 6),
        (10_071, 7),
        (11_720, 7),
        (14_001, 8),
        (16_050, 9),
        (18_300, 10),
        (22_001, 11),
        (25_501, 12),
        (25_502, 11),
        (28_001, 13),
        (50_000, 23),
        (50_001, 24),
        (u32::MAX, 24),
    ];
    for (millibits, want) in table {
        assert_eq!(probes(millibits), want, "{millibits}");
    }
}

#[test]
fn bits_do_not_depend_on_the_order_of_keys() {
    let mut all = hashes(500);
    let forward = built(&all, 12_000);
    all.reverse();
    assert_eq!(built(&all, 12_000), forward);
}

#[test]
fn unknown_and_damaged_filters_match_everything() {
    let good = built(&hashes(100), 10_000);
    let mut ribbon = good.clone();
    let n = ribbon.len();
    ribbon[n - 5] = 0xfe;
    let mut wide_line = good.clone();
    wide_line[n - 3] |= 0x20;
    let mut other = good.clone();
    other[n - 4] = 1;
    for bad in [&good[..0], &good[..4], &good[..5], &good[1..], &ribbon, &wide_line, &other] {
        let filter = Filter::new(bad);
        assert!(!filter.shape().is_known());
        assert!((0..1000).all(|i| filter.may_contain(key_hash(&[i as u8, 3]))));
    }
    assert!(FilterShape::parse(&good).may_contain(&good[..10], 1), "a shape with other bytes");
}

#[test]
fn filters_are_known_by_name() {
    use FilterLayout::{Full, Partitioned};
    let name = |s: &str| FilterLayout::of_name(s.as_bytes());
    assert_eq!(name("fullfilter.rocksdb.BuiltinBloomFilter"), Some(Full));
    assert_eq!(name("partitionedfilter.rocksdb.BuiltinBloomFilter"), Some(Partitioned));
    assert_eq!(name("filter.leveldb.BuiltinBloomFilter2"), None);
    assert_eq!(name("fullfilter.mine"), None);
}
