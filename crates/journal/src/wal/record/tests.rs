use proptest::prelude::*;

use super::*;
use crate::wal::{Found, RecordKind, RecordReader, Seal, SealReason};

/// All data payloads of a log, and the end of the good part.
fn read_all(bytes: &[u8]) -> (Vec<Vec<u8>>, u64) {
    let mut reader = RecordReader::new(bytes, Some(1));
    let mut payloads = Vec::new();
    loop {
        match reader.next_record() {
            Found::Record(r) if r.kind == RecordKind::Data => payloads.push(r.payload.into_owned()),
            Found::Record(_) => {}
            Found::End => return (payloads, reader.good_end()),
            other => panic!("{other:?}"),
        }
    }
}

/// A seal of version 2 that promises all that is before it.
fn seal(reason: SealReason, at: u64, last_seq: u64) -> Seal {
    Seal { reason, log_number: 1, offset: at, synced: at, last_seq, head: Some(7) }
}

fn patterned(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i * 31 % 251) as u8).collect()
}

#[test]
fn layout_is_header_then_payload() {
    let mut out = vec![9];
    RecordWriter::new().append(b"abc", &mut out);
    assert_eq!(out[0], 9, "bytes before are kept");
    assert_eq!(out[5..8], [3, 0, FULL]);
    assert_eq!(&out[8..], b"abc");
    let stored = u32::from_le_bytes(out[1..5].try_into().unwrap());
    assert_eq!(stored, masked_crc32c(b"\x01abc"));
}

#[test]
fn a_record_at_every_block_offset() {
    // Around the block's end at every offset; elsewhere one in 97.
    for start in (0..BLOCK_SIZE).filter(|s| *s > BLOCK_SIZE - 64 || s % 97 == 0) {
        let mut writer = RecordWriter::new();
        let mut out = Vec::new();
        if start >= HEADER_SIZE {
            writer.append(&patterned(start - HEADER_SIZE), &mut out);
            assert_eq!((writer.block_offset(), out.len()), (start, start));
        }
        let mut expected: Vec<Vec<u8>> = Vec::new();
        for len in [0, 1, 20, 40, BLOCK_SIZE - HEADER_SIZE, 2 * BLOCK_SIZE + 5] {
            let before = out.len();
            writer.append(&patterned(len), &mut out);
            assert!(out.len() - before <= RecordWriter::max_encoded_len(len));
            expected.push(patterned(len));
        }
        assert_eq!(RecordWriter::at(out.len() as u64), {
            let mut w = writer;
            w.block_offset %= BLOCK_SIZE;
            w
        });
        let (mut payloads, end) = read_all(&out);
        if start >= HEADER_SIZE {
            payloads.remove(0);
        }
        assert!(payloads == expected, "start {start}");
        assert_eq!(end, out.len() as u64);
    }
}

#[test]
fn seven_bytes_left_hold_an_empty_first_fragment() {
    let mut writer = RecordWriter::new();
    let mut out = Vec::new();
    writer.append(&patterned(BLOCK_SIZE - 2 * HEADER_SIZE), &mut out);
    writer.append(b"x", &mut out);
    assert_eq!(out[BLOCK_SIZE - 3..BLOCK_SIZE], [0, 0, FIRST]);
    assert_eq!(out[BLOCK_SIZE + 6], LAST);
}

#[test]
fn a_seal_never_splits_and_knows_its_offset() {
    for start in BLOCK_SIZE - 60..=BLOCK_SIZE {
        let mut writer = RecordWriter::new();
        let mut out = Vec::new();
        writer.append(&patterned(start - HEADER_SIZE), &mut out);
        let at = out.len() as u64;
        let seal = seal(SealReason::Group, at, 7).append(&mut writer, &mut out);
        assert_eq!(out.len() as u64, seal.offset + (HEADER_SIZE + Seal::ENCODED_LEN) as u64);
        let mut reader = RecordReader::new(&out, Some(1));
        assert!(matches!(reader.next_record(), Found::Record(_)));
        let Found::Record(r) = reader.next_record() else { panic!("no seal at {start}") };
        assert_eq!((r.kind, r.offset), (RecordKind::Seal, seal.offset));
        assert_eq!(Seal::decode(&r.payload).unwrap(), seal);
        assert!(matches!(reader.next_record(), Found::End));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_payloads_round_trip(
        lens in prop::collection::vec(
            prop_oneof![4 => 0usize..200, 1 => 32_700usize..32_800, 1 => 0usize..150_000], 1..30),
        seal_every in 1usize..8,
    ) {
        let mut writer = RecordWriter::new();
        let mut out = Vec::new();
        for (i, len) in lens.iter().enumerate() {
            writer.append(&patterned(*len), &mut out);
            if i % seal_every == 0 {
                let at = out.len() as u64;
                seal(SealReason::Idle, at, 0).append(&mut writer, &mut out);
            }
        }
        let (payloads, end) = read_all(&out);
        prop_assert_eq!(end, out.len() as u64);
        prop_assert!(payloads.iter().map(Vec::len).eq(lens.iter().copied()));
        prop_assert!(payloads.iter().all(|p| *p == patterned(p.len())));
    }
}
