use super::*;
use crate::workload::{Case, Choices, Size};

const SIZE: Size = Size { entries: 40, value: 300 };

#[test]
fn views_give_back_every_entry() {
    for seed in 0..60 {
        let case = Case::generate(seed, SIZE).unwrap();
        for (entries, blocks) in case.runs.iter().zip(&case.blocks) {
            let mut seen = Vec::new();
            let mut view = View::default();
            for b in blocks {
                view.load(&b.slice, &[]).unwrap();
                let values = view.values();
                for i in 0..view.len() {
                    let e = view.entry(i, values);
                    assert_eq!(e.hash, xxph3_64(e.key));
                    assert_eq!(view.heads()[i], head(e.key, 0));
                    seen.push((e.key.to_vec(), e.tag, e.value.to_vec()));
                }
            }
            let expected: Vec<_> =
                entries.iter().map(|e| (e.key.clone(), e.tag, e.value.clone())).collect();
            assert_eq!(seen, expected, "seed {seed}");
        }
    }
}

#[test]
fn heads_order_keys_behind_their_prefix() {
    let (a, b) = (head(b"user17", 4), head(b"user3", 4));
    assert_eq!(a, 0x3137_0000_0000_0000);
    assert!(a < b);
    assert_eq!(head(b"us", 4), 0, "a stray short key is no reason to panic");
}

#[test]
fn a_flipped_bit_is_corruption_that_names_the_block() {
    let case = Case::uniform(1, 1, 200, 16, 32).unwrap();
    let block = &case.blocks[0][1].slice;
    for at in [0, 1, 100, block.bytes.len() - 1] {
        let mut bytes = block.bytes.as_slice().to_vec();
        bytes[at] ^= 4;
        let bad = BlockSlice { bytes: bytes.into(), ..block.clone() };
        let e = View::default().load(&bad, &[]).unwrap_err();
        assert!(e.is_corruption() && e.offset() == Some(block.offset), "{e}");
    }
    let short = BlockSlice { bytes: vec![1, 2].into(), ..block.clone() };
    assert!(View::default().load(&short, &[]).unwrap_err().is_corruption());
}

#[test]
fn hostile_blocks_with_good_checksums_never_panic() {
    let dice = &mut Choices::new(7);
    let mut refused = 0;
    for seed in 0..40 {
        let case = Case::generate(seed, SIZE).unwrap();
        for b in case.blocks.iter().flatten().take(6) {
            for _ in 0..20 {
                let bytes = b.slice.bytes.as_slice();
                let mut payload = bytes[..bytes.len() - TRAILER].to_vec();
                for _ in 0..1 + dice.below(4) {
                    let at = dice.below(payload.len());
                    payload[at] = dice.pick(&[0, 1, 0x7f, 0x80, 0xff, dice.clone().bits() as u8]);
                }
                payload.truncate(payload.len() - dice.below(3));
                let sum = raw_sum(ChecksumKind::Xxh3, &payload, bytes[bytes.len() - TRAILER]);
                payload.push(bytes[bytes.len() - TRAILER]);
                payload.extend_from_slice(&sum.to_le_bytes());
                let bad = BlockSlice {
                    bytes: payload.into(),
                    checksum: ChecksumKind::Xxh3,
                    modifier: 0,
                    ..b.slice.clone()
                };
                let mut view = View::default();
                match view.load(&bad, b"pre") {
                    Err(e) => {
                        refused += 1;
                        assert_eq!(e.offset(), Some(b.slice.offset));
                    }
                    Ok(()) => {
                        let values = view.values();
                        (0..view.len()).for_each(|i| drop(view.entry(i, values).value.to_vec()));
                    }
                }
            }
        }
    }
    assert!(refused > 100, "mutations that go unnoticed prove nothing: {refused}");
}
