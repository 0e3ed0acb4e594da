//! Shape of the tree: heads that tell, order of records, fences.

use std::sync::Arc;

use lithify_base::Kind;

use super::*;
use crate::arena::HeapPool;

const RECORDS: u64 = if cfg!(miri) { 250 } else { 30_000 };

/// Grows an index from `keys` and lets `check` look at all its leaves.
fn grown(keys: impl Iterator<Item = Vec<u8>>, check: impl FnOnce(&[NodeRef<'_>])) {
    let arena = Arena::new(Arc::new(HeapPool), 0);
    // SAFETY: this thread is the one writer, and the arena outlives the index.
    let index = unsafe { Index::new(&arena) };
    // SAFETY: as above.
    let growth = unsafe { Growth::new(&index, &arena, Order::Bytewise) };
    for (seq, key) in keys.enumerate() {
        // SAFETY: as above.
        growth.insert(unsafe { arena.append(Tag::new(seq as u64, Kind::Value), &key, b"") });
    }
    let first = index.locate(&First, |leaf, _, _| leaf);
    let leaves: Vec<_> = std::iter::successors(Some(first), |leaf| leaf.next()).collect();
    check(&leaves);
}

fn scattered(i: u64) -> u64 {
    i.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

#[test]
fn heads_leave_out_what_all_keys_of_a_leaf_share() {
    let key = |i| format!("/warehouse/eu/orders/{:020}", scattered(i)).into_bytes();
    grown((0..RECORDS).map(key), |leaves| {
        assert!(leaves.len() as u64 > RECORDS / 100);
        for leaf in &leaves[1..leaves.len() - 1] {
            assert!(leaf.skip() >= "/warehouse/eu/orders/".len(), "skip {}", leaf.skip());
            let distinct = (1..leaf.len()).filter(|&i| leaf.head(i) != leaf.head(i - 1)).count();
            assert_eq!(distinct + 1, leaf.len());
        }
    });
}

#[test]
fn records_lie_in_order_between_the_fences_of_their_leaf() {
    let key = |i| scattered(i).to_be_bytes()[..(i % 9) as usize].to_vec();
    grown((0..RECORDS).map(key), |leaves| {
        let mut records = 0;
        for (i, leaf) in leaves.iter().enumerate() {
            let all: Vec<_> = (0..leaf.len()).map(|i| leaf.rec(i).unwrap()).collect();
            let before =
                |a: Rec<'_>, b: Rec<'_>| a.user().cmp(b.user()).then(b.tag().cmp(&a.tag())).is_lt();
            assert!(all.is_sorted_by(|&a, &b| before(a, b)));
            assert!(leaf.hi().is_none_or(|hi| before(all[all.len() - 1], hi)));
            // The lower fence is the first record of its leaf for ever.
            assert_eq!(leaf.lo().map(Rec::as_ptr), (i > 0).then(|| all[0].as_ptr()));
            assert_eq!(
                leaf.hi().map(Rec::as_ptr),
                leaves.get(i + 1).map(|next| next.rec(0).unwrap().as_ptr())
            );
            for (i, rec) in all.iter().enumerate() {
                assert_eq!(leaf.head(i), head_at(rec.user(), leaf.skip()));
            }
            records += all.len();
        }
        assert_eq!(records, RECORDS as usize);
    });
}

/// The leaf that is asked for before an insertion is the one that it goes to.
#[test]
fn the_leaf_ahead_is_the_one_that_takes_the_record() {
    let arena = Arena::new(Arc::new(HeapPool), 0);
    // SAFETY: this thread is the one writer, and the arena outlives the index.
    let index = unsafe { Index::new(&arena) };
    // SAFETY: as above.
    let growth = unsafe { Growth::new(&index, &arena, Order::Bytewise) };
    let mut ahead = 0;
    for i in 0..RECORDS {
        let (key, tag) = (scattered(i % (RECORDS / 2)).to_be_bytes(), Tag::new(i, Kind::Value));
        let probe = |tag, behind| At { order: Order::Bytewise, user: &key, tag, behind };
        if let Some(leaf) = index.leaf_ahead(&probe(Tag(u64::MAX), false)) {
            let landing = index.approach(&probe(tag, true)).expect("there is no other writer");
            assert!(leaf.is(landing.leaf), "record {i}");
            ahead += 1;
        }
        // SAFETY: as above.
        growth.insert(unsafe { arena.append(tag, &key, b"") });
    }
    assert!(ahead > RECORDS / 2, "{ahead} of {RECORDS}");
}
