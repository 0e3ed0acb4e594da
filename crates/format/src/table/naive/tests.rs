use lithify_base::{Bytewise, InternalKey, Kind, Tag};

use super::*;
use crate::compress::{Codec, Compressor};
use crate::table::index::IndexShape;
use crate::table::metaindex;
use crate::table::range_del::RangeTombstone;
use crate::table::tail::{TableIdentity, TableSpec};

fn spec(version: u32) -> TableSpec {
    TableSpec {
        version,
        identity: TableIdentity {
            db_id: "5ca1ab1e-0000-4000-8000-000000000001".to_owned(),
            file_number: 12,
            cf_id: 3,
            cf_name: "default".to_owned(),
            creation_time: 1_700_000_000,
            ..TableIdentity::default()
        },
        ..TableSpec::default()
    }
}

/// `n` entries over about `n / versions` keys.
fn entries(n: u64, versions: u64) -> Vec<Entry> {
    (0..n)
        .map(|i| {
            let user = format!("key{:07}", i / versions * 7);
            let kind = match i % 11 {
                0 => Kind::Delete,
                1 => Kind::Merge,
                2 => Kind::SingleDelete,
                _ => Kind::Value,
            };
            let seq = 10_000 + n - i;
            let key = InternalKey { user: user.as_bytes(), tag: Tag::new(seq, kind) }.to_vec();
            (key, vec![b'a' + (i % 26) as u8; (i * 13 % 150) as usize])
        })
        .collect()
}

fn write(spec: TableSpec, entries: &[Entry], codec: Codec) -> Vec<u8> {
    let mut w = NaiveTableWriter::new(spec, 1024).with_codec(Compressor::new(codec, 3).unwrap());
    for (key, value) in entries {
        w.add(InternalKey::decode(key).unwrap(), value);
    }
    w.finish(&Bytewise).unwrap().0
}

fn check(file: &[u8], entries: &[Entry]) {
    let table = NaiveTableReader::open(file).unwrap();
    assert_eq!(table.entries().unwrap(), entries);
    let counts = table.counts().unwrap();
    let version = file[file.len() - 12];
    assert_eq!(counts.is_some(), version != 5, "5 is for old readers");
    let counts = counts.unwrap_or_default();
    if counts.is_empty() {
        return point_reads(&table, entries);
    }
    assert_eq!(counts.iter().map(|c| c.entries).sum::<u64>(), entries.len() as u64);
    assert_eq!(
        counts.iter().map(|c| c.raw_key_bytes).sum::<u64>(),
        table.props().raw_key_size - table.tombstones().unwrap().len() as u64 * 10
    );
    point_reads(&table, entries);
}

fn point_reads(table: &NaiveTableReader<'_>, entries: &[Entry]) {
    for (key, value) in entries {
        let target = InternalKey::decode(key).unwrap();
        let found = table.get(target, &Bytewise).unwrap().unwrap();
        assert_eq!((&found.0, &found.1), (key, value));
        assert!(table.may_contain(target.user, &Bytewise).unwrap());
        let missing = [target.user, b"!"].concat();
        let missing = InternalKey { user: &missing, tag: Tag::seek(u64::MAX >> 8) };
        assert_eq!(table.get(missing, &Bytewise).unwrap(), None);
    }
}

#[test]
fn tables_round_trip_in_every_shape() {
    for version in [5, 6] {
        for versions in [1, 40] {
            let all = entries(700, versions);
            for codec in [Codec::None, Codec::Snappy, Codec::Lz4] {
                let file = write(spec(version), &all, codec);
                check(&file, &all);
                let user_keys =
                    NaiveTableReader::open(&file).unwrap().props().index_key_is_user_key;
                assert_eq!(user_keys == 1, versions == 1, "40 versions of 100 bytes span blocks");
            }
            for restart_interval in [1, 4] {
                let index = IndexShape { restart_interval, cap: 200, partition: 128 };
                let whole = TableSpec { index, ..spec(version) };
                for spec in [TableSpec { filter_partition: 60, ..whole.clone() }, whole] {
                    let (cut, absent) = (spec.filter_partition > 0, b"key0000000!");
                    let file = write(spec, &all, Codec::None);
                    check(&file, &all);
                    let table = NaiveTableReader::open(&file).unwrap();
                    let props = table.props();
                    assert!(props.index_partitions > 2 && props.index_type() == 2);
                    assert_eq!(table.names().get(metaindex::PARTITIONED_FILTER).is_some(), cut);
                    assert_eq!(table.names().get(metaindex::FULL_FILTER).is_none(), cut);
                    assert!(!table.may_contain(absent, &Bytewise).unwrap());
                    walk_back(&table);
                }
            }
        }
    }
}

fn walk_back(table: &NaiveTableReader<'_>) {
    let mut forward = Vec::new();
    let mut index = table.index().unwrap();
    let mut more = index.seek_to_first().unwrap();
    while more {
        forward.push(index.handle());
        more = index.next().unwrap();
    }
    assert!(!index.valid());
    let mut more = index.prev().unwrap();
    while more {
        assert_eq!(forward.pop(), Some(index.handle()));
        more = index.prev().unwrap();
    }
    assert!(forward.is_empty());
    assert!(index.seek_to_last().unwrap());
}

#[test]
fn blocks_are_cut_on_the_grid_whatever_the_codec() {
    let all = entries(500, 1);
    let counts = |codec| {
        let file = write(spec(6), &all, codec);
        NaiveTableReader::open(&file).unwrap().counts().unwrap().unwrap()
    };
    let plain = counts(Codec::None);
    assert_eq!(plain, counts(Codec::Lz4));
    let mut cuts = Vec::new();
    let (mut s, mut slot, mut n) = (0u64, 0, 0);
    for (key, value) in &all {
        if s / 1024 != slot {
            cuts.push(std::mem::take(&mut n));
            slot = s / 1024;
        }
        n += 1;
        s += key.len() as u64 + value.len() as u64 + 4;
    }
    cuts.push(n);
    assert_eq!(plain.iter().map(|c| c.entries).collect::<Vec<_>>(), cuts);
}

#[test]
fn range_tombstones_travel_with_or_without_entries() {
    let tombstones = vec![
        RangeTombstone { start: b"aa".to_vec(), end: b"cc".to_vec(), seq: 9 },
        RangeTombstone { start: b"aa".to_vec(), end: b"cc".to_vec(), seq: 4 },
        RangeTombstone { start: b"cc".to_vec(), end: b"zz".to_vec(), seq: 7 },
    ];
    for all in [entries(0, 1), entries(100, 1)] {
        let mut w = NaiveTableWriter::new(spec(6), 1024);
        all.iter().for_each(|(k, v)| w.add(InternalKey::decode(k).unwrap(), v));
        tombstones.iter().for_each(|t| w.add_tombstone(t.clone()));
        let (file, tail) = w.finish(&Bytewise).unwrap();
        assert_eq!(tail.file_size, file.len() as u64);
        let table = NaiveTableReader::open(&file).unwrap();
        assert_eq!(table.tombstones().unwrap(), tombstones);
        assert_eq!(*table.props(), tail.props);
        assert_eq!(
            (table.props().num_range_deletions, table.props().points()),
            (3, all.len() as u64)
        );
        assert_eq!(table.names().filter().is_some(), !all.is_empty(), "no keys, no filter");
        assert_eq!(table.props().key_smallest_seqno, Some(4));
        check(&file, &all);
    }
    assert!(NaiveTableWriter::new(spec(6), 1024).finish(&Bytewise).is_err(), "an empty table");
}

#[test]
fn properties_are_what_was_written() {
    let all = entries(300, 3);
    let file = write(spec(6), &all, Codec::Lz4);
    let table = NaiveTableReader::open(&file).unwrap();
    let p = table.props();
    assert_eq!((p.num_entries, p.points(), p.num_filter_entries), (300, 300, 100));
    assert_eq!(p.raw_value_size, all.iter().map(|e| e.1.len() as u64).sum::<u64>());
    let kinds = |b: &[u8]| all.iter().filter(|e| b.contains(&e.0[e.0.len() - 8])).count() as u64;
    assert_eq!((p.deleted_keys, p.merge_operands), (kinds(&[0, 7]), kinds(&[2])));
    assert_eq!((p.key_smallest_seqno, p.key_largest_seqno), (Some(10_001), Some(10_300)));
    assert_eq!(
        (p.compression.as_str(), p.comparator.as_str()),
        ("LZ4", "leveldb.BytewiseComparator")
    );
    assert_eq!((p.data_size, p.tail_start_offset), (p.data_size, p.data_size));
    assert_eq!(p.original_file_number, 12);
}

/// A block moved to another place, a swapped file, a wrong base: version 6 notices, 5 cannot.
#[test]
fn version_6_ties_blocks_to_their_file_and_place() {
    let all = entries(300, 1);
    let mut other = spec(6);
    other.identity.file_number = 13;
    let (a, b) = (write(spec(6), &all, Codec::None), write(other, &all, Codec::None));
    assert_eq!(a.len(), b.len());
    let data_end = NaiveTableReader::open(&a).unwrap().props().data_size as usize;
    let spliced = [&a[..data_end], &b[data_end..]].concat();
    let table = NaiveTableReader::open(&spliced).unwrap();
    assert!(table.entries().unwrap_err().is_corruption(), "data blocks of another file");
}

/// Damage anywhere in a table: typed errors or, where nothing is checked, wrong entries; never a
/// panic, and never an allocation beyond the cap.
#[test]
fn hostile_tables_never_panic() {
    let all = entries(60, 2);
    let mut rng = 0x0bad_cafe_dead_beefu64;
    let mut next = move |n: usize| {
        rng ^= rng << 13;
        rng ^= rng >> 7;
        rng ^= rng << 17;
        (rng % n as u64) as usize
    };
    for version in [5, 6] {
        let index = IndexShape { restart_interval: 4, cap: 64, partition: 64 };
        let good = write(TableSpec { index, ..spec(version) }, &all, Codec::Lz4);
        let mut unchecked = good.clone();
        let kind_at = good.len() - 53;
        unchecked[kind_at] = 0;
        for cut in 0..good.len() {
            read_all(&good[..cut]).expect_err("a table cut short");
            let _ = read_all(&good[cut..]);
        }
        for round in 0..4000 {
            let checked = round % 2 == 0;
            let mut bad = if checked { good.clone() } else { unchecked.clone() };
            for _ in 0..1 + round % 3 {
                let at = next(bad.len());
                bad[at] ^= 1 << next(8);
            }
            let outcome = read_all(&bad);
            if checked && version == 6 && bad[kind_at] == 4 && bad[..kind_at] != good[..kind_at] {
                assert!(outcome.is_err(), "a flipped bit below the footer went unnoticed");
            }
        }
    }
}

fn read_all(file: &[u8]) -> lithify_base::Result<usize> {
    let table = NaiveTableReader::open(file)?;
    let n = table.entries()?.len();
    table.tombstones()?;
    table.counts()?;
    table.may_contain(b"key0000007", &Bytewise)?;
    let target = InternalKey { user: b"key0000021", tag: Tag(u64::MAX) };
    table.get(target, &Bytewise)?;
    Ok(n)
}
