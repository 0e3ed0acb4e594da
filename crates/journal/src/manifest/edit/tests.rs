use lithify_base::{ErrorKind, Kind, MAX_SEQ, Tag};
use proptest::prelude::*;

use super::*;

fn key(user: &[u8], seq: Seq) -> Vec<u8> {
    [user, &Tag::new(seq, Kind::Value).0.to_le_bytes()].concat()
}

fn file(number: u64) -> WireFile {
    WireFile {
        level: 0,
        number,
        size: 1000,
        smallest: key(b"a", 9),
        largest: key(b"m", 3),
        smallest_seq: 3,
        largest_seq: 9,
        epoch: 2,
        ..WireFile::default()
    }
}

fn full_file() -> WireFile {
    WireFile {
        level: 3,
        stratum: 2,
        backing: Some(70),
        base_context: 0xdead_beef,
        oldest_ancestor_time: 1_700_000_000,
        creation_time: 1_700_000_001,
        checksum: Some((b"\x01\x02".to_vec(), "FileChecksumCrc32c".to_owned())),
        need_compaction: true,
        temperature: 4,
        unique_id: Some([1, u64::MAX]),
        range_deletion_size: 5,
        tail_size: 300,
        ..file(71)
    }
}

fn full_edit() -> WireEdit {
    WireEdit {
        db_id: Some("db".to_owned()),
        comparator: Some("leveldb.BytewiseComparator".to_owned()),
        timestamps_stored: Some(true),
        log_number: Some(8),
        prev_log: Some(0),
        next_file: Some(90),
        max_cf: Some(3),
        min_log_to_keep: Some(7),
        sections_from: Some(6),
        last_seq: Some(MAX_SEQ),
        cursors: vec![(1, key(b"c", 1))],
        deleted: vec![(0, 5), (2, 6)],
        added: vec![file(70), full_file()],
        wal_additions: vec![
            WalAddition { number: 8, synced: None },
            WalAddition { number: 7, synced: Some(4096) },
        ],
        wals_deleted_below: Some(7),
        cf: CfId(2),
        cf_add: Some("metrics".to_owned()),
        cf_drop: true,
        group_remaining: Some(1),
        bucket_hint: Some(vec![1, 2, 3]),
        job: Some(JobTag { job: 44, attempt: 1 }),
    }
}

#[test]
fn every_field_round_trips() {
    for edit in [WireEdit::default(), full_edit()] {
        let bytes = edit.to_vec();
        let read = WireEdit::decode(&bytes).unwrap();
        assert_eq!(read, edit);
        assert_eq!(read.to_vec(), bytes);
    }
}

/// The bytes that RocksDB's tools wrote for the same edit.
#[test]
fn bytes_are_rocksdbs() {
    let edit = WireEdit {
        prev_log: Some(0),
        next_file: Some(6),
        last_seq: Some(0),
        ..WireEdit::default()
    };
    assert_eq!(edit.to_vec(), [9, 0, 3, 6, 4, 0]);
    let edit = WireEdit { db_id: Some("x".to_owned()), ..WireEdit::default() };
    assert_eq!(edit.to_vec(), [0x81, 0x40, 1, b'x']);
}

#[test]
fn unknown_tags_are_skipped_or_refused_by_number() {
    let mut bytes = vec![0xff, 0x7f, 2, 1, 2]; // 16383 has bit 13
    bytes.extend([3, 6]);
    assert_eq!(WireEdit::decode(&bytes).unwrap().next_file, Some(6));
    for tag in [8u32, 11, 99, 4096] {
        let mut bytes = Vec::new();
        varint::put_u32(&mut bytes, tag);
        let e = WireEdit::decode(&bytes).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::Unsupported);
        assert!(e.to_string().contains(&format!("tag {tag},")), "{e}");
    }
    for tag in [400u32, 401, 8194, 8195] {
        let mut bytes = Vec::new();
        varint::put_u32(&mut bytes, tag);
        assert!(WireEdit::decode(&bytes).unwrap_err().to_string().contains("blob"));
    }
}

/// Custom fields of a file: unknown ones are skipped, binding ones refused, features named.
#[test]
fn custom_fields_of_files() {
    let with = |tag: u32, field: &[u8]| {
        let edit = WireEdit { added: vec![file(1)], ..WireEdit::default() };
        let mut bytes = edit.to_vec();
        assert_eq!(bytes.pop(), Some(1));
        varint::put_u32(&mut bytes, tag);
        varint::put_length_prefixed(&mut bytes, field);
        bytes.push(1);
        WireEdit::decode(&bytes)
    };
    assert_eq!(with(17, b"open").unwrap().added[0], file(1));
    assert_eq!(with(3, &9u64.to_le_bytes()).unwrap().min_log_to_keep, Some(9));
    assert_eq!(with(65, &[0]).unwrap().added[0], file(1));
    assert_eq!(with(65, &[3]).unwrap().added[0], WireFile { place: 3, ..file(1) });
    assert!(with(65, &[1, 0]).unwrap_err().is_corruption());
    for (tag, field, says) in [
        (66, &b""[..], "field 66"),
        (0x4C42 | 0x40, b"", "field"),
        (4, &[5], "blob"),
        (10, b"ts", "timestamp"),
        (16, &[0], "timestamp"),
    ] {
        let e = with(tag, field).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::Unsupported, "{tag}");
        assert!(e.to_string().contains(says), "{e}");
    }
    assert!(with(0x4C40, &[1]).unwrap_err().is_corruption(), "no stratum at level 0");
    assert!(with(12, &[0; 15]).unwrap_err().is_corruption());
    assert!(with(13, &[2, 0]).unwrap_err().is_corruption(), "a field is read whole");
}

#[test]
fn old_forms_are_read() {
    let (small, large) = (key(b"a", 1), key(b"b", 2));
    for tag in [7u32, 100, 102] {
        let mut bytes = Vec::new();
        varint::put_u32(&mut bytes, tag);
        bytes.extend([1, 33]);
        if tag == 102 {
            bytes.push(2);
        }
        bytes.push(99);
        varint::put_length_prefixed(&mut bytes, &small);
        varint::put_length_prefixed(&mut bytes, &large);
        let seqs = if tag == 7 { (0, MAX_SEQ) } else { (1, 2) };
        if tag != 7 {
            bytes.extend([1, 2]);
        }
        let expected = WireFile {
            level: 1,
            number: 33,
            size: 99,
            smallest: small.clone(),
            largest: large.clone(),
            smallest_seq: seqs.0,
            largest_seq: seqs.1,
            place: if tag == 102 { 2 } else { 0 },
            ..WireFile::default()
        };
        assert_eq!(WireEdit::decode(&bytes).unwrap().added, [expected], "{tag}");
    }
}

#[test]
fn positions() {
    assert_eq!(full_file().pos().unwrap().to_string(), "L3.2");
    assert_eq!(file(1).pos().unwrap().to_string(), "L0.2");
    let far = WireFile { epoch: 1 << 32, ..file(1) };
    assert_eq!(far.pos().unwrap_err().kind(), ErrorKind::Unsupported);
}

#[test]
fn truncations_and_flips_never_panic() {
    let bytes = full_edit().to_vec();
    for cut in 0..bytes.len() {
        let _ = WireEdit::decode(&bytes[..cut]);
    }
    for bit in 0..bytes.len() * 8 {
        let mut bad = bytes.clone();
        bad[bit / 8] ^= 1 << (bit % 8);
        if let Ok(edit) = WireEdit::decode(&bad) {
            assert_eq!(WireEdit::decode(&edit.to_vec()).unwrap(), edit, "bit {bit}");
        }
    }
}

proptest! {
    #[test]
    fn hostile_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        if let Ok(edit) = WireEdit::decode(&bytes) {
            prop_assert_eq!(WireEdit::decode(&edit.to_vec()).unwrap(), edit);
        }
    }

    #[test]
    fn files_round_trip(
        (level, number, size, epoch) in (0u8..7, any::<u64>(), any::<u64>(), any::<u64>()),
        (stratum, backing, base) in (any::<u32>(), any::<Option<u64>>(), any::<u32>()),
        (lo, hi) in (0u64..=MAX_SEQ, 0u64..=MAX_SEQ),
        user in prop::collection::vec(any::<u8>(), 0..300),
    ) {
        let file = WireFile {
            level, number, size, epoch, backing,
            stratum: if level == 0 { 0 } else { stratum },
            base_context: base,
            smallest: key(&user, hi),
            largest: key(&user, lo),
            smallest_seq: lo,
            largest_seq: hi,
            ..WireFile::default()
        };
        let edit = WireEdit { added: vec![file], ..WireEdit::default() };
        prop_assert_eq!(WireEdit::decode(&edit.to_vec()).unwrap(), edit);
    }
}
