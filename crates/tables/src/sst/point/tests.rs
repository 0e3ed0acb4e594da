use lithify_base::{Bytewise, Kind};
use lithify_format::block::{BlockBuilder, BlockIter};
use lithify_merge::workload::Choices;

use super::*;
use crate::testing::{Entry, entries};

fn build(entries: &[Entry], interval: u32) -> Vec<u8> {
    let mut block = BlockBuilder::new(interval);
    for (user, tag, value) in entries {
        block.add_entry(InternalKey { user, tag: *tag }, value);
    }
    block.finish().to_vec()
}

/// What the plain iterator finds from a target on, and what the scan finds.
fn both(block: &[u8], user: &[u8], tag: Tag) -> [Vec<Entry>; 2] {
    let mut plain = Vec::new();
    let mut iter = BlockIter::new(block).unwrap();
    let mut more = iter.seek(InternalKey { user, tag }, &Bytewise).unwrap();
    while more {
        let key = iter.internal_key();
        plain.push((key.user.to_vec(), key.tag, iter.value().to_vec()));
        more = iter.next().unwrap();
    }
    let mut bytes = [0; SKETCH];
    sketch(block, &mut bytes);
    let mut scan = PointScan::new(&bytes, block, user).expect("a plain block has a sketch");
    let mut quick = Vec::new();
    let mut stands = scan.seek(InternalKey { user, tag }).unwrap();
    while stands == Stands::Entry {
        quick.push((scan.key().user.to_vec(), scan.key().tag, block[scan.value()].to_vec()));
        stands = scan.next().unwrap();
    }
    assert_eq!(stands, Stands::End);
    [plain, quick]
}

#[test]
fn scans_find_what_the_plain_iterator_finds() {
    for (seed, interval) in [(31, 1), (32, 2), (33, 16), (34, 3)] {
        let entries = entries(90, seed);
        let mut choices = Choices::new(seed);
        for len in [1, 2, 17, 60, entries.len()] {
            let block = build(&entries[..len], interval);
            for _ in 0..200 {
                let (mut user, tag, _) = entries[choices.below(entries.len())].clone();
                match choices.below(6) {
                    0 => user.truncate(choices.below(user.len())),
                    1 => user.push(0),
                    2 => user[choices.below(8)] = choices.below(256) as u8,
                    _ => {}
                }
                let tag = Tag(tag.0.wrapping_add(choices.below(3) as u64).wrapping_sub(1));
                let [plain, quick] = both(&block, &user, tag);
                assert_eq!(plain, quick, "{}", user.escape_ascii());
            }
        }
    }
}

#[test]
fn versions_of_one_key_and_keys_of_zeros_tie_and_are_found() {
    let tag = |seq| Tag::new(seq, Kind::Value);
    let mut entries: Vec<Entry> = Vec::new();
    for len in 0..12 {
        for seq in (1..30).rev() {
            entries.push((vec![0; len], tag(seq), vec![len as u8, seq as u8]));
        }
    }
    let block = build(&entries, 4);
    for len in 0..13 {
        for seq in [0, 1, 7, 29, 40] {
            let [plain, quick] = both(&block, &vec![0; len], tag(seq));
            assert_eq!(plain, quick, "{len} zeros at {seq}");
        }
    }
}

#[test]
fn long_keys_fall_back() {
    let entry = |n: usize| (vec![b'k'; n], Tag::new(1, Kind::Value), vec![]);
    let block = build(&[entry(10), entry(300)], 16);
    let mut bytes = [0; SKETCH];
    sketch(&block, &mut bytes);
    let user = vec![b'k'; 300];
    let mut scan = PointScan::new(&bytes, &block, &user).unwrap();
    let target = InternalKey { user: &user, tag: Tag::seek(9) };
    assert_eq!(scan.seek(target).unwrap(), Stands::TooLong);
}

/// Damaged blocks get no sketch, a sketch that still leads to sound answers, or an error: never
/// a panic.
#[test]
fn damaged_blocks_never_panic() {
    let good = build(&entries(20, 35), 4);
    for bit in 0..good.len() * 8 {
        let mut bad = good.clone();
        bad[bit / 8] ^= 1 << (bit % 8);
        let mut bytes = [0; SKETCH];
        sketch(&bad, &mut bytes);
        if let Some(mut scan) = PointScan::new(&bytes, &bad, b"key00030") {
            while let Ok(Stands::Entry) = scan.next() {
                assert!(scan.value().end <= bad.len());
            }
        }
    }
    for len in 0..good.len() {
        let mut bytes = [0; SKETCH];
        sketch(&good[..len], &mut bytes);
        drop(PointScan::new(&bytes, &good[..len], b"key").map(|mut s| s.next()));
    }
}
