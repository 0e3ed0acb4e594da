use super::*;
use crate::xxph3::xxph3_64;
use lithify_base::Kind;
use std::collections::BTreeSet;

fn bytes(n: usize) -> Vec<u8> {
    (0..n).map(|i| xxph3_64(&(i as u64).to_le_bytes()) as u8).collect()
}

/// These numbers are in files.
#[test]
fn the_weight_is_what_it_was() {
    let of = |n: usize| weigh(content(xxph3_64(b"key"), &bytes(n)), Tag::new(7, Kind::Value));
    assert_eq!(
        [0, 1, 7, 8, 16, 33, 100, 200, 600].map(of),
        [
            27_338_427_483_430_633,
            2_219_332_922_163_893_661,
            14_506_591_667_362_445_166,
            18_210_342_443_406_414_919,
            5_364_119_692_983_774_857,
            12_602_745_495_437_654_681,
            7_871_163_947_641_940_017,
            16_069_072_220_692_681_488,
            5_638_064_900_133_458_214,
        ],
    );
}

/// Every length about the ends of words, stripes and blocks: flips of one and of two bits, swapped
/// bytes and words, shifts, and values of zeros.
#[test]
fn changed_swapped_and_shifted_values_are_seen() {
    let of = |value: &[u8]| content(1, value);
    for n in (0..140).chain([255, 256, 257, 511, 512, 513, 1024, 1100]) {
        let value = bytes(n);
        let mut values = BTreeSet::from([value.clone()]);
        let mut seen = BTreeSet::from([of(&value)]);
        let mut is_new = |v: &[u8], what: &str| {
            let new = values.insert(v.to_vec());
            assert_eq!(seen.insert(of(v)), new, "{what} of {n} bytes");
        };
        for at in 0..n {
            for bit in 0..8 {
                let mut v = value.clone();
                v[at] ^= 1 << bit;
                is_new(&v, "a flip");
            }
            let mut v = value.clone();
            v.remove(at);
            v.push(0);
            is_new(&v, "a shift");
        }
        for i in 0..n / 8 {
            for j in 0..i {
                let mut v = value.clone();
                (v[8 * i + 7], v[8 * j + 7]) = (v[8 * i + 7] ^ 0x80, v[8 * j + 7] ^ 0x80);
                is_new(&v, "two signs");
                let mut v = value.clone();
                (0..8).for_each(|b| v.swap(8 * i + b, 8 * j + b));
                is_new(&v, "two words");
            }
        }
        is_new(&value[..n.saturating_sub(1)], "a shorter value");
        is_new(&[&value[..], &[0]].concat(), "a longer value");
    }
    let zeros: BTreeSet<u64> = (0..2000).map(|n| of(&vec![0; n])).collect();
    assert_eq!(zeros.len(), 2000);
}

/// A product ends with the zeros of both its factors, and its high half begins with more: nothing may be
/// lost on the way through many steps.
#[test]
fn what_begins_a_long_value_of_zeros_or_ones_is_seen() {
    for fill in [0, 0xff] {
        for n in [100, 250, 4096, 1 << 16] {
            let mut value = vec![fill; n];
            let mut seen = BTreeSet::from([content(1, &value)]);
            for at in 0..256.min(8 * n) {
                value[at / 8] ^= 1 << (at % 8);
                assert!(seen.insert(content(1, &value)), "bit {at} before {n} bytes {fill:#x}");
                value[at / 8] ^= 1 << (at % 8);
            }
            for key in 2..200u8 {
                assert!(seen.insert(content(xxph3_64(&[key]), &value)));
            }
        }
    }
}

/// Values, keys or tags of two entries exchanged, however alike they are: the sum differs.
#[test]
fn a_sum_sees_what_two_entries_exchange() {
    let tag = |n| Tag::new(n, Kind::Value);
    let sum = |list: [(&[u8], u64, u64); 2]| {
        let weigh = |(key, seq, value): (&[u8], u64, u64)| {
            weigh(content(xxph3_64(key), &value.to_le_bytes()), tag(seq))
        };
        list.map(weigh).into_iter().fold(0, u64::wrapping_add)
    };
    for n in 0..5000u64 {
        let (a, b) = (n, n + 1 + n % 3);
        let right = sum([(b"a", 8, a), (b"b", 9, b)]);
        assert_ne!(right, sum([(b"a", 8, b), (b"b", 9, a)]), "values {n}");
        assert_ne!(right, sum([(b"a", 9, a), (b"b", 8, b)]), "tags {n}");
        assert_ne!(right, sum([(b"a", 8, a), (b"a", 9, b)]), "keys {n}");
        assert_ne!(right, sum([(b"a", 8, a ^ 0x100), (b"b", 9, b)]), "a value {n}");
        assert_ne!(sum([(b"a", 8, n), (b"a", 9, n)]), sum([(b"a", 8, n ^ 0x100), (b"a", 8, n)]));
    }
}
