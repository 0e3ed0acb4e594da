use std::cmp::Ordering;
use std::ops::ControlFlow;

use lithify_base::{Bytewise, InternalKey, Kind, Tag};

use super::*;
use crate::checksum::ChecksumKind;
use crate::table::handle::BlockHandle;

/// Entries with long shared prefixes, several versions of some keys, and empty values.
fn entries(n: usize) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut all = Vec::new();
    for i in 0..n {
        let user = format!("user{:06}", i / 2 * 3);
        let seq = 1000 - i as u64 % 2;
        let kind = if i % 5 == 0 { Kind::Delete } else { Kind::Value };
        let key = InternalKey { user: user.as_bytes(), tag: Tag::new(seq, kind) }.to_vec();
        all.push((key, vec![b'v'; i * 7 % 200]));
    }
    all
}

fn build(entries: &[(Vec<u8>, Vec<u8>)], interval: u32) -> Vec<u8> {
    let mut whole = BlockBuilder::new(interval);
    let mut parts = BlockBuilder::new(interval);
    for (key, value) in entries {
        whole.add(key, value);
        parts.add_entry(InternalKey::decode(key).unwrap(), value);
    }
    let size = whole.size();
    let block = whole.finish().to_vec();
    assert_eq!(parts.finish(), block, "one form of the key or two");
    assert_eq!(block.len(), size);
    block
}

/// A block of short entries, each of which shares at most `most(i)` bytes with the one before:
/// writers may share less than they could.
fn build_sharing(
    entries: &[(Vec<u8>, Vec<u8>)],
    interval: usize,
    mut most: impl FnMut(usize) -> usize,
) -> Vec<u8> {
    let (mut block, mut restarts) = (Vec::new(), Vec::new());
    for (i, (key, value)) in entries.iter().enumerate() {
        let before = i.checked_sub(1).map_or(&[][..], |i| &entries[i].0);
        let mut shared = build::common_prefix(before, key).min(most(i));
        if i % interval == 0 {
            restarts.push(block.len() as u32);
            shared = 0;
        }
        block.extend([shared as u8, (key.len() - shared) as u8, value.len() as u8]);
        block.extend_from_slice(&key[shared..]);
        block.extend_from_slice(value);
    }
    let count = restarts.len() as u32;
    restarts.into_iter().chain([count]).for_each(|word| block.extend(word.to_le_bytes()));
    block
}

#[test]
fn the_worked_example() {
    let mut b = BlockBuilder::new(2);
    b.add(b"apple", b"1");
    b.add(b"apply", b"");
    b.add(b"bee", b"3");
    assert_eq!((b.entries(), b.raw_key_bytes(), b.last_key()), (3, 13, &b"bee"[..]));
    let want = b"\x00\x05\x01apple1\x04\x01\x00y\x00\x03\x01bee3\0\0\0\0\x0d\0\0\0\x02\0\0\0";
    assert_eq!(b.finish(), want);
    b.clear();
    assert!(b.is_empty());
    assert_eq!(b.finish(), b"\0\0\0\0\x01\0\0\0", "an empty block has one restart point");
}

#[test]
fn forward_backward_and_seeks_agree_with_the_entries() {
    for interval in [1, 2, 3, 16, 1000] {
        for n in [0, 1, 2, 15, 16, 17, 100] {
            let all = entries(n);
            let block = build(&all, interval);
            let mut it = BlockIter::new(&block).unwrap();
            let mut at = 0;
            let mut more = it.seek_to_first().unwrap();
            while more {
                assert_eq!((it.key(), it.value()), (&all[at].0[..], &all[at].1[..]));
                assert_eq!(&block[it.value_range()], it.value());
                at += 1;
                more = it.next().unwrap();
            }
            assert_eq!((at, it.valid(), it.key()), (n, false, &b""[..]));
            more = it.prev().unwrap();
            while more {
                at -= 1;
                assert_eq!((it.key(), it.value()), (&all[at].0[..], &all[at].1[..]));
                more = it.prev().unwrap();
            }
            assert_eq!(at, 0, "interval {interval}, {n} entries");
            assert_eq!(it.seek_to_last().unwrap(), n > 0);
            assert_eq!(it.key(), all.last().map_or(&b""[..], |e| &e.0));
            seeks_agree(&mut it, &all);
        }
    }
}

/// Steps in any order, in stretches longer and shorter than the trail that steps back leave: each stands where the
/// entries say, and knows whether a key repeats.
#[test]
fn steps_back_and_forth_agree_with_the_entries() {
    let all: Vec<_> =
        entries(700).into_iter().map(|(k, v)| (k, v[..v.len() % 9].to_vec())).collect();
    let user = |i: usize| &all[i].0[..all[i].0.len() - 8];
    for (interval, most) in [(1, 99), (3, 99), (16, 99), (16, 2), (700, 99), (700, 5)] {
        let block = build_sharing(&all, interval, |i| (i + 1) * most);
        let mut it = BlockIter::new(&block).unwrap();
        let mut rng = fastrand::Rng::with_seed((interval + most) as u64);
        let mut at = None;
        for _ in 0..400 {
            if rng.u8(0..4) == 0 || at.is_none() {
                let i = rng.usize(0..all.len());
                assert!(it.seek(InternalKey::decode(&all[i].0).unwrap(), &Bytewise).unwrap());
                at = Some(i);
            }
            let back = rng.bool();
            for _ in 0..rng.usize(0..40) {
                let Some(i) = at else { break };
                match back {
                    true => {
                        at = i.checked_sub(1);
                        assert_eq!(it.prev().unwrap(), at.is_some());
                    }
                    false if i + 1 < all.len() => {
                        at = Some(i + 1);
                        let repeats = user(i) == user(i + 1);
                        assert_eq!(it.next_of_same().unwrap(), Some(repeats));
                    }
                    false => assert_eq!(it.next_of_same().unwrap(), None),
                }
                let Some(i) = at else { break };
                assert_eq!((it.key(), it.value()), (&all[i].0[..], &all[i].1[..]), "entry {i}");
            }
        }
    }
}

/// A walk gives what steps give, from any entry on, and stops where it is told to; whether a key repeats is known
/// however much of it the writer shared.
#[test]
fn walks_agree_with_the_entries() {
    let all: Vec<_> =
        entries(60).into_iter().map(|(k, v)| (k, v[..v.len().min(90)].to_vec())).collect();
    let user = |i: usize| &all[i].0[..all[i].0.len() - 8];
    for (interval, most) in [(1, 99), (4, 99), (16, 99), (16, 3), (16, 0), (1000, 12)] {
        let block = build_sharing(&all, interval, |i| (i + 1) * most);
        let mut it = BlockIter::new(&block).unwrap();
        assert!(it.walk(&mut |_| unreachable!("it stands nowhere")).unwrap().is_continue());
        for from in 0..all.len() {
            for stop in [from, from + 1, from + 7, all.len()] {
                let key = InternalKey::decode(&all[from].0).unwrap();
                assert!(it.seek(key, &Bytewise).unwrap());
                let mut at = from;
                let broke = it.walk(&mut |entry| {
                    if at == stop {
                        return ControlFlow::Break(());
                    }
                    let repeats = at > from && user(at) == user(at - 1);
                    assert_eq!((entry.key, entry.value), (&all[at].0[..], &all[at].1[..]));
                    assert_eq!(entry.repeats, repeats, "entry {at}");
                    at += 1;
                    ControlFlow::Continue(())
                });
                assert_eq!(
                    (at, broke.unwrap().is_break()),
                    (stop.min(all.len()), stop < all.len())
                );
                let stands = stop.min(all.len() - 1);
                assert_eq!((it.key(), it.value()), (&all[stands].0[..], &all[stands].1[..]));
            }
        }
    }
}

fn seeks_agree(it: &mut BlockIter<&Vec<u8>>, all: &[(Vec<u8>, Vec<u8>)]) {
    for i in 0..all.len() + 3 {
        for seq in [0, 999, 1000, 1001] {
            let user = format!("user{i:06}");
            let target = InternalKey { user: user.as_bytes(), tag: Tag::seek(seq) };
            let want = all.iter().find(|(key, _)| {
                InternalKey::decode(key).unwrap().cmp(target, &Bytewise) != Ordering::Less
            });
            assert_eq!(it.seek(target, &Bytewise).unwrap(), want.is_some());
            assert_eq!(it.key(), want.map_or(&b""[..], |e| &e.0));
            if let Some(want) = want {
                assert_eq!(it.internal_key().to_vec(), want.0);
            }
        }
    }
}

/// Byte order that does not say so, which takes the plain path: the twin of the fast one.
struct Plain;

impl lithify_base::Comparator for Plain {
    fn name(&self) -> &'static str {
        "plain"
    }
    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        a.cmp(b)
    }
}

/// Keys over a tiny alphabet that holds tag bytes, so that prefixes, equal users and shared tags
/// occur all the time.
#[test]
fn the_fast_seek_agrees_with_its_plain_twin() {
    let mut rng = 0x2545_f491_4f6c_dd1du64;
    let mut next = move |n: u64| {
        rng ^= rng << 13;
        rng ^= rng >> 7;
        rng ^= rng << 17;
        rng % n
    };
    for round in 0..200 {
        let key = |next: &mut dyn FnMut(u64) -> u64| {
            let len = next(6) as usize;
            let user: Vec<u8> = (0..len).map(|_| [0, 1, 2, b'a', 0xff][next(5) as usize]).collect();
            let tag = Tag::new([0, 1, 2, 256, 0x101_0101, 1 << 40][next(6) as usize], Kind::Value);
            (user, tag)
        };
        let mut all: Vec<_> = (0..1 + next(60)).map(|_| key(&mut next)).collect();
        let order = |a: &(Vec<u8>, Tag), b: &(Vec<u8>, Tag)| a.0.cmp(&b.0).then(b.1.cmp(&a.1));
        all.sort_by(order);
        all.dedup();
        let mut data = BlockBuilder::new(1 + round % 17);
        let mut index = BlockBuilder::new(1 + round % 17);
        let mut users = all.iter().map(|e| &e.0).collect::<Vec<_>>();
        users.dedup();
        let mut handle = BlockHandle::new(0, 10);
        for (user, tag) in &all {
            data.add_entry(InternalKey { user, tag: *tag }, user);
        }
        for user in users {
            index.add_handle(user, handle);
            handle = BlockHandle::new(handle.end(), user.len() as u64);
        }
        let (data, index) = (data.finish(), index.finish());
        let form = IndexForm::delta(IndexKeys::User);
        let (mut fast, mut plain) = (BlockIter::new(data).unwrap(), BlockIter::new(data).unwrap());
        let mut fast_index = IndexIter::new(index, form).unwrap();
        let mut plain_index = fast_index.clone();
        for _ in 0..100 {
            let (user, tag) = key(&mut next);
            let target = InternalKey { user: &user, tag };
            let found = fast.seek(target, &Bytewise).unwrap();
            assert_eq!(found, plain.seek(target, &Plain).unwrap());
            assert_eq!((fast.key(), fast.value()), (plain.key(), plain.value()), "{target:?}");
            assert_eq!(fast.next().unwrap(), plain.next().unwrap());
            assert_eq!((fast.key(), fast.value()), (plain.key(), plain.value()), "{target:?}");
            let found = fast_index.seek(target, &Bytewise).unwrap();
            assert_eq!(found, plain_index.seek(target, &Plain).unwrap());
            assert_eq!(fast_index.separator(), plain_index.separator());
            assert!(!found || fast_index.handle() == plain_index.handle());
        }
        // RocksDB without `use_delta_encoding` shares nothing between restart points.
        let entries: Vec<_> = all
            .iter()
            .map(|(user, tag)| (InternalKey { user, tag: *tag }.to_vec(), user.clone()))
            .collect();
        let cap = next(10) as usize;
        let less =
            build_sharing(&entries, 1 + round as usize % 17, |_| next(1 + cap as u64) as usize);
        let (mut fast, mut plain) =
            (BlockIter::new(&less).unwrap(), BlockIter::new(&less).unwrap());
        for _ in 0..100 {
            let (user, tag) = key(&mut next);
            let target = InternalKey { user: &user, tag };
            let found = fast.seek(target, &Bytewise).unwrap();
            assert_eq!(found, plain.seek(target, &Plain).unwrap());
            assert_eq!((fast.key(), fast.value()), (plain.key(), plain.value()), "{target:?}");
        }
    }
}

#[test]
fn index_blocks_round_trip_in_every_form() {
    let handles: Vec<BlockHandle> = (0..50u64)
        .scan(0, |at, i| {
            let h = BlockHandle::new(*at, 4000 + i * 37 % 300);
            *at = h.end();
            Some(h)
        })
        .collect();
    for interval in [1, 4, 16] {
        for keys in [IndexKeys::User, IndexKeys::Internal] {
            let key = |i: usize| {
                let user = format!("k{i:03}").into_bytes();
                match keys {
                    IndexKeys::User => user,
                    IndexKeys::Internal => {
                        InternalKey { user: &user, tag: Tag::seek(u64::MAX >> 8) }.to_vec()
                    }
                }
            };
            let mut delta = BlockBuilder::new(interval);
            let mut plain = BlockBuilder::new(interval);
            for (i, h) in handles.iter().enumerate() {
                delta.add_handle(&key(i), *h);
                let mut value = Vec::new();
                h.encode_into(&mut value);
                plain.add(&key(i), &value);
            }
            let form = IndexForm::delta(keys);
            check_index(delta.finish(), form, &handles, key);
            check_index(plain.finish(), IndexForm { delta_handles: false, ..form }, &handles, key);
        }
    }
}

fn check_index(
    block: &[u8],
    form: IndexForm,
    handles: &[BlockHandle],
    key: impl Fn(usize) -> Vec<u8>,
) {
    let mut it = IndexIter::new(block, form).unwrap();
    for (i, h) in handles.iter().enumerate() {
        let moved = if i == 0 { it.seek_to_first() } else { it.next() };
        assert!(moved.unwrap());
        assert_eq!((it.separator(), it.handle()), (&key(i)[..], *h));
        assert_eq!(it.separator_user_key(), format!("k{i:03}").as_bytes());
    }
    assert!(!it.next().unwrap());
    for (i, h) in handles.iter().enumerate().rev() {
        assert!(it.prev().unwrap());
        assert_eq!((it.separator(), it.handle()), (&key(i)[..], *h));
        let target = InternalKey { user: it.separator_user_key(), tag: Tag::seek(5) };
        let target = target.to_vec();
        // An older version than the separator's tag lies in the next block.
        let found = if form.keys == IndexKeys::User { i } else { i + 1 };
        let hit = it.seek(InternalKey::decode(&target).unwrap(), &Bytewise).unwrap();
        assert_eq!(hit.then(|| it.handle()), handles.get(found).copied());
        it.seek_to_first().unwrap();
        (0..i).for_each(|_| assert!(it.next().unwrap()));
    }
    assert!(!it.prev().unwrap());
}

#[test]
fn separated_values_and_hash_index_are_read() {
    // Two restarts: (a, ab) and (b); values "1", "22", "" after the keys.
    let mut block =
        b"\x00\x09\x01\x00aTTTTTTTT\x01\x09\x02bTTTTTTTT\x00\x09\x00\x03bTTTTTTTT".to_vec();
    let second = (4 + 9 + 3 + 9) as u32;
    let values_at = block.len() as u32;
    block.extend_from_slice(b"122");
    for word in [0, second] {
        block.extend_from_slice(&word.to_le_bytes());
    }
    block.extend_from_slice(b"\x00\xff\x01\x03\x00"); // three buckets
    block.extend_from_slice(&values_at.to_le_bytes());
    block.extend_from_slice(&(2u32 | 1 << 28 | 1 << 29 | 1 << 31).to_le_bytes());
    let mut it = BlockIter::new(&block).unwrap();
    assert!(it.layout().has_separated_values());
    let want = [("aTTTTTTTT", "1"), ("abTTTTTTTT", "22"), ("bTTTTTTTT", "")];
    let mut more = it.seek_to_first().unwrap();
    for (key, value) in want {
        assert!(more);
        assert_eq!((it.key(), it.value()), (key.as_bytes(), value.as_bytes()));
        more = it.next().unwrap();
    }
    assert!(!more);
    for (key, value) in want.into_iter().rev() {
        assert!(it.prev().unwrap());
        assert_eq!((it.key(), it.value()), (key.as_bytes(), value.as_bytes()));
    }
    let target = InternalKey { user: b"b", tag: Tag(u64::MAX) };
    assert!(it.seek(target, &Bytewise).unwrap());
    assert_eq!(it.key(), b"bTTTTTTTT");

    let at = values_at as usize + 3 + 4;
    for other in [0, values_at + 1, u32::MAX] {
        block[at..at + 4].copy_from_slice(&other.to_le_bytes());
        assert!(BlockIter::new(&block).is_err(), "a second restart point at {other}");
    }
}

#[test]
fn unknown_flags_and_bad_tails_are_refused() {
    assert!(Layout::parse(b"").is_err() && Layout::parse(b"\x01\0\0").is_err());
    assert!(Layout::parse(&(1u32 << 30).to_le_bytes()).is_err(), "bit 30");
    assert!(Layout::parse(b"\x01\0\0\0").is_err(), "no room for one restart");
    assert!(Layout::parse(b"xxxx\0\0\0\0").is_err(), "entries without a restart");
    for (first, sound) in [(0, true), (4, false), (1, false)] {
        let block = [&b"\0\x01\0a"[..], &[first, 0, 0, 0], b"\x01\0\0\0"].concat();
        assert_eq!(Layout::parse(&block).is_ok(), sound, "a first restart at {first}");
    }
    assert!(Layout::parse(&(1u32 << 31).to_le_bytes()).is_err(), "no room for buckets");
}

/// A block whose restart points pass the check reads alike in both directions.
#[test]
fn restart_points_that_lead_astray_are_found() {
    let all = entries(20);
    let sound = build(&all, 4);
    let layout = *BlockIter::new(&sound).unwrap().layout();
    BlockIter::new(&sound).unwrap().check_restarts().unwrap();
    let (mut passed, mut refused) = (0, 0);
    for restart in 1..layout.restarts() as usize {
        for offset in 0..=layout.keys_end() as u32 + 1 {
            let mut block = sound.clone();
            let at = layout.keys_end() + 4 * restart;
            block[at..at + 4].copy_from_slice(&offset.to_le_bytes());
            let Ok(mut it) = BlockIter::new(&block) else { continue };
            if it.check_restarts().is_err() {
                refused += 1;
                continue;
            }
            passed += 1;
            let mut more = it.seek_to_last().unwrap();
            for (key, _) in all.iter().rev() {
                assert!(more && it.key() == key, "restart point {restart} at {offset}");
                more = it.prev().unwrap();
            }
            assert!(!more);
        }
    }
    assert!(passed >= layout.restarts() as usize - 1 && refused > 50 * passed);
}

/// Truncations, bit flips and wild bytes: every answer is an entry or an error, in bounded steps.
#[test]
fn hostile_blocks_never_panic() {
    let all = entries(60);
    let block = build(&all, 4);
    let mut rng = 0x1234_5678_9abc_def1u64;
    let mut next = move || {
        rng ^= rng << 13;
        rng ^= rng >> 7;
        rng ^= rng << 17;
        rng
    };
    let mut errors = 0;
    for round in 0..3000u64 {
        let mut bad = block.clone();
        if round % 3 == 0 {
            bad.truncate(next() as usize % bad.len());
        }
        for _ in 0..1 + round % 4 {
            if !bad.is_empty() {
                let at = next() as usize % bad.len();
                bad[at] ^= 1 << (next() % 8);
            }
        }
        errors += usize::from(walk_data(&bad).is_err());
        for delta_handles in [true, false] {
            for first_keys in [true, false] {
                for keys in [IndexKeys::User, IndexKeys::Internal] {
                    let _ = walk_index(&bad, IndexForm { keys, delta_handles, first_keys });
                }
            }
        }
    }
    assert!(errors > 500, "most damage is noticed even without a checksum: {errors}");
}

fn walk_data(block: &[u8]) -> lithify_base::Result<()> {
    let mut it = BlockIter::new(block)?;
    let limit = block.len() + 1;
    it.seek(InternalKey { user: b"user000050", tag: Tag(7) }, &Bytewise)?;
    let mut more = it.seek_to_first()?;
    for _ in 0..limit {
        if !more {
            break;
        }
        let _ = (it.internal_key(), it.value());
        more = it.next()?;
    }
    assert!(!more, "an iterator that does not end");
    if it.seek_to_first()? {
        let mut left = limit;
        let _ = it.walk(&mut |_| {
            left -= 1;
            ControlFlow::Continue(())
        })?;
    }
    let mut more = it.seek_to_last()?;
    for _ in 0..50 {
        if !more {
            break;
        }
        more = it.prev()?;
    }
    Ok(())
}

fn walk_index(block: &[u8], form: IndexForm) -> lithify_base::Result<()> {
    let mut it = IndexIter::new(block, form)?;
    it.seek(InternalKey { user: b"user000050", tag: Tag(7) }, &Bytewise)?;
    let mut more = it.seek_to_first()?;
    for _ in 0..block.len() {
        if !more {
            break;
        }
        let _ = (it.separator_user_key(), it.first_key(), it.handle().end());
        more = it.next()?;
    }
    it.seek_to_last().map(drop)
}

#[test]
fn trailers_verify_and_notice_damage_and_moves() {
    for kind in [ChecksumKind::Crc32c, ChecksumKind::Xxh3] {
        let check = BlockCheck { kind, base: 77 };
        let mut file = vec![0; 100];
        check.append(&mut file, b"payload", 4, 100);
        assert_eq!(check.verify(&file[100..], 100).unwrap(), (&b"payload"[..], 4));
        assert!(check.verify(&file[100..], 101).unwrap_err().is_corruption(), "another place");
        assert!(
            BlockCheck { base: 78, ..check }.verify(&file[100..], 100).is_err(),
            "another file"
        );
        assert!(check.verify(&file[100..104], 100).is_err(), "shorter than a trailer");
        for bit in 0..8 * 12 {
            let mut bad = file[100..].to_vec();
            bad[bit / 8] ^= 1 << (bit % 8);
            assert!(check.verify(&bad, 100).is_err(), "bit {bit}");
        }
    }
    let none = BlockCheck { kind: ChecksumKind::None, base: 0 };
    assert!(none.verify(b"abc\x00????", 5).is_ok());
}

#[test]
fn common_prefixes() {
    let a: Vec<u8> = (0..40).collect();
    for n in 0..40 {
        let mut b = a.clone();
        b[n] ^= 0x80;
        assert_eq!(common_prefix(&a, &b), n);
        assert_eq!(common_prefix(&a, &a[..n]), n);
    }
    assert_eq!(common_prefix(&a, &a), 40);
}
