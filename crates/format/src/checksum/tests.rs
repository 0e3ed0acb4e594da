use super::*;

#[test]
fn crc32c_of_the_standard_check_string() {
    assert_eq!(crc32c(b"123456789"), 0xe306_9283);
    assert_eq!(crc32c(&[0; 32]), 0x8a91_36aa, "RFC 3720, 32 zeros");
    assert_eq!(crc32c(b""), 0);
}

#[test]
fn extending_equals_summing_at_once() {
    let all: Vec<u8> = (0..600u32).map(|i| (i * 7) as u8).collect();
    for cut in [0, 1, 15, 16, 255, 599, 600] {
        let (a, b) = all.split_at(cut);
        assert_eq!(crc32c_extend(crc32c(a), b), crc32c(&all), "cut {cut}");
    }
}

#[test]
fn masks_are_inverse_and_change_the_value() {
    for crc in [0, 1, u32::MAX, crc32c(b"foo")] {
        assert_eq!(unmask(mask(crc)), crc);
        assert_ne!(mask(crc), crc);
    }
}

#[test]
fn type_byte_counts_as_the_last_byte_for_every_kind() {
    let kinds =
        [ChecksumKind::Crc32c, ChecksumKind::XxHash32, ChecksumKind::XxHash64, ChecksumKind::Xxh3];
    for kind in kinds {
        assert_eq!(ChecksumKind::from_u8(kind as u8), Some(kind));
        assert_eq!(raw_sum(kind, b"payload", b'!'), whole_sum(kind, b"payload!"));
        assert_ne!(raw_sum(kind, b"payload", 0), raw_sum(kind, b"payload", 4));
    }
    assert_eq!(whole_sum(ChecksumKind::XxHash32, b"payload!"), XxHash32::oneshot(0, b"payload!"));
    assert_eq!(whole_sum(ChecksumKind::Xxh3, b""), 0);
    assert_eq!(raw_sum(ChecksumKind::None, b"x", 1), 0);
    assert_eq!(ChecksumKind::from_u8(5), None);
}

#[test]
fn the_context_ties_a_sum_to_file_and_offset() {
    assert_eq!(context_modifier(0, 12345), 0);
    assert_eq!(context_modifier(7, 0), 7);
    assert_eq!(context_modifier(7, 0x1_0000_0002), 7 ^ 3);
    assert_ne!(base_context("db", 1), base_context("db", 2));
    assert_ne!(base_context("db", 1), base_context("dc", 1));
    assert_eq!(base_context("db", 1), XxHash3_64::oneshot(b"db\x01\0\0\0\0\0\0\0") as u32);
}
