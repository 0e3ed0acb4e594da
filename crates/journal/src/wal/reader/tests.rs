use super::*;
use crate::wal::RecordWriter;
use lithify_format::checksum;

/// A physical record with a right checksum and any type.
fn physical(type_byte: u8, body: &[u8], len: u16) -> Vec<u8> {
    let mut summed = vec![type_byte];
    summed.extend_from_slice(body);
    let mut out = checksum::mask(checksum::crc32c(&summed)).to_le_bytes().to_vec();
    out.extend_from_slice(&len.to_le_bytes());
    out.extend_from_slice(&summed);
    out
}

fn plain(type_byte: u8, payload: &[u8]) -> Vec<u8> {
    physical(type_byte, payload, payload.len() as u16)
}

fn recyclable(type_byte: u8, log: u32, payload: &[u8]) -> Vec<u8> {
    let body = [&log.to_le_bytes()[..], payload].concat();
    physical(type_byte, &body, payload.len() as u16)
}

fn what(bytes: &[u8]) -> (u64, What) {
    let mut reader = RecordReader::new(bytes, Some(7));
    loop {
        match reader.next_record() {
            Found::Record(_) => {}
            Found::Damage(d) => {
                assert!(matches!(reader.next_record(), Found::Damage(again) if again == d));
                return (d.offset, d.what);
            }
            other => panic!("{other:?}"),
        }
    }
}

fn refusal(bytes: &[u8]) -> String {
    match RecordReader::new(bytes, Some(7)).next_record() {
        Found::Refused(e) => {
            assert_eq!(e.kind(), lithify_base::ErrorKind::Unsupported);
            e.to_string()
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn recyclable_records_are_read_and_leftovers_stop() {
    let mut log = recyclable(6, 7, b"ab");
    log.extend(recyclable(7, 7, b"cd"));
    log.extend(recyclable(8, 7, b"ef"));
    log.extend(recyclable(5, 7, b"whole"));
    let good = log.len() as u64;
    log.extend(recyclable(5, 6, b"old"));
    let mut reader = RecordReader::new(&log, Some(7 | 1 << 40));
    let Found::Record(r) = reader.next_record() else { panic!() };
    assert_eq!(&*r.payload, b"abcdef");
    let Found::Record(r) = reader.next_record() else { panic!() };
    assert_eq!(&*r.payload, b"whole");
    assert_eq!(what(&log), (good, What::Leftover));
}

#[test]
fn features_are_refused_by_name() {
    assert!(refusal(&plain(9, &[1, 0, 0, 0])).contains("compress"));
    assert!(refusal(&plain(10, &[1, 0, 0, 0, 8, 0])).contains("timestamp"));
    assert!(refusal(&recyclable(11, 7, &[1, 0, 0, 0, 8, 0])).contains("timestamp"));
    assert!(refusal(&plain(77, b"")).contains("77"));
}

#[test]
fn empty_timestamp_sizes_and_ignorable_types_are_passed_over() {
    let log = [plain(10, b""), plain(0x99, b"?"), plain(1, b"x")].concat();
    let mut reader = RecordReader::new(&log, None);
    let Found::Record(r) = reader.next_record() else { panic!() };
    assert_eq!(r.kind, RecordKind::Ignorable(0x99));
    let Found::Record(r) = reader.next_record() else { panic!() };
    assert_eq!((r.kind, &*r.payload), (RecordKind::Data, &b"x"[..]));
    assert!(matches!(reader.next_record(), Found::End));
}

#[test]
fn broken_chains_of_fragments() {
    assert_eq!(what(&plain(3, b"m")), (0, What::Orphan));
    assert_eq!(what(&plain(4, b"l")), (0, What::Orphan));
    assert_eq!(what(&plain(2, b"f")), (0, What::CutShort));
    for interrupting in [plain(1, b"x"), plain(2, b"x"), plain(TYPE_SEAL, b"x"), plain(130, b"x")] {
        let log = [plain(1, b"ok"), plain(2, b"f"), interrupting, plain(4, b"l")].concat();
        assert_eq!(what(&log), (9, What::CutShort));
    }
}

#[test]
fn zeros_longer_than_any_fill_are_damage() {
    let mut log = plain(1, b"ok");
    log.resize(BLOCK_SIZE * 2, 0);
    assert_eq!(what(&log), (9, What::Zeros));
    // What a seal leaves behind; one byte more would have held it.
    for (fill, good) in [(MAX_FILL, true), (MAX_FILL + 1, false)] {
        let mut log = Vec::new();
        RecordWriter::new().append(&vec![1; BLOCK_SIZE - HEADER_SIZE - fill], &mut log);
        log.resize(BLOCK_SIZE, 0);
        log.extend(plain(1, b"next"));
        if good {
            let mut reader = RecordReader::new(&log, None);
            assert!(matches!(reader.next_record(), Found::Record(_)));
            assert!(matches!(reader.next_record(), Found::Record(_)));
        } else {
            assert_eq!(what(&log), ((BLOCK_SIZE - fill) as u64, What::Zeros));
        }
    }
}

#[test]
fn lengths_past_the_block_and_trailer_bytes() {
    let mut log = plain(1, b"ok");
    log[4..6].copy_from_slice(&u16::MAX.to_le_bytes());
    assert_eq!(what(&log), (0, What::Length));
    let mut log = Vec::new();
    RecordWriter::new().append(&vec![1; BLOCK_SIZE - HEADER_SIZE - 3], &mut log);
    log.extend_from_slice(&[0, 5, 0]);
    assert_eq!(what(&log), (BLOCK_SIZE as u64 - 3, What::Trailer));
}

/// Truncation at every length keeps a prefix of the records and never panics.
#[test]
fn every_truncation_keeps_a_prefix() {
    let mut writer = RecordWriter::new();
    let mut log = Vec::new();
    let mut ends = vec![0];
    for len in [3, 500, 0, 40_000, 10] {
        writer.append(&vec![len as u8; len], &mut log);
        ends.push(log.len());
    }
    let cuts = (0..log.len()).filter(|c| *c < 600 || c % 61 == 0 || *c > BLOCK_SIZE - 20);
    for cut in cuts {
        let mut reader = RecordReader::new(&log[..cut], None);
        let mut n = 0;
        let clean = loop {
            match reader.next_record() {
                Found::Record(_) => n += 1,
                Found::End => break true,
                Found::Damage(_) => break false,
                Found::Refused(e) => panic!("{e}"),
            }
        };
        let whole = ends.iter().filter(|e| **e <= cut).count() - 1;
        assert_eq!((n, reader.good_end() as usize), (whole, ends[whole]), "cut {cut}");
        assert_eq!(clean, ends.contains(&cut), "cut {cut}");
    }
}

/// Every single flipped bit of a small log is noticed.
#[test]
fn every_flipped_bit_is_noticed() {
    let mut writer = RecordWriter::new();
    let mut log = Vec::new();
    for payload in [&b"first"[..], b"", b"third record"] {
        writer.append(payload, &mut log);
    }
    for bit in 0..log.len() * 8 {
        let mut bad = log.clone();
        bad[bit / 8] ^= 1 << (bit % 8);
        let mut reader = RecordReader::new(&bad, None);
        while let Found::Record(_) = reader.next_record() {}
        assert!(reader.stopped.is_some(), "bit {bit} passed unnoticed");
        assert!(reader.good_end() as usize <= bit / 8);
    }
}

/// Every record that lies behind damage in one of them is found again.
#[test]
fn reading_resumes_behind_damage() {
    let mut log = Vec::new();
    let mut writer = RecordWriter::new();
    let mut ends = Vec::new();
    for i in 0..40u8 {
        writer.append(&vec![i; 100 + 60 * usize::from(i)], &mut log);
        ends.push(log.len());
    }
    let starts = || std::iter::once(0).chain(ends.iter().copied());
    for (bad, start) in starts().take(40).enumerate() {
        let mut damaged = log.clone();
        damaged[start + 20] ^= 4;
        let mut reader = RecordReader::new(&damaged, Some(7));
        let (mut found, mut holes) = (Vec::new(), 0);
        loop {
            match reader.next_record() {
                Found::Record(record) => found.push(record.payload[0] as usize),
                Found::Damage(_) => {
                    holes += 1;
                    if !reader.resume() {
                        break;
                    }
                }
                _ => break,
            }
        }
        let expected: Vec<usize> = (0..40).filter(|&i| i != bad).collect();
        assert_eq!(found, expected, "record {bad} was damaged");
        assert!(holes >= 1);
    }
    // A damaged length costs the rest of its block.
    log[4] ^= 1;
    let mut reader = RecordReader::new(&log, Some(7));
    assert!(matches!(reader.next_record(), Found::Damage(_)));
    assert!(reader.resume());
    while let Found::Damage(_) = reader.next_record() {
        assert!(reader.resume());
    }
    assert!(reader.good_end() as usize > BLOCK_SIZE);
    assert!(!reader.resume(), "nothing is wrong here");
}
