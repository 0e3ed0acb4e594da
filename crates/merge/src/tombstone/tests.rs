use super::*;
use lithify_base::{Bytewise, ReverseBytewise};
use proptest::prelude::*;

fn raw(lo: &str, hi: &str, seq: Seq) -> RangeTombstone {
    RangeTombstone { lo: lo.as_bytes().into(), hi: hi.as_bytes().into(), seq, run: 0 }
}

fn show(f: &Fragments) -> String {
    let one = |f: &Fragment| {
        let seqs: Vec<String> = f.tombs.iter().map(|t| t.seq.to_string()).collect();
        let end =
            |e: &End| format!("{}{}", e.key.escape_ascii(), if e.inclusive { "+" } else { "" });
        format!("{}..{}:{}", end(&f.lo), end(&f.hi), seqs.join(","))
    };
    f.iter().map(one).collect::<Vec<_>>().join(" ")
}

#[test]
fn overlaps_are_cut_at_every_end() {
    let f = Fragments::from_raw([raw("a", "m", 9), raw("d", "z", 5)], &Bytewise);
    assert_eq!(show(&f), "a..d:9 d..m:9,5 m..z:5");
    assert_eq!(f.tombs(), 4);
    let gap =
        Fragments::from_raw([raw("x", "y", 1), raw("a", "b", 2), raw("q", "q", 3)], &Bytewise);
    assert_eq!(show(&gap), "a..b:2 x..y:1", "empty ranges vanish, gaps stay");
}

#[test]
fn a_read_sees_the_newest_tombstone_at_its_snapshot() {
    let f = Fragments::from_raw([raw("a", "m", 9), raw("d", "z", 5)], &Bytewise);
    let at = |k: &str, seq| f.covering_seq(k.as_bytes(), seq, &Bytewise);
    assert_eq!(
        (at("e", 20), at("e", 9), at("e", 8), at("e", 4)),
        (Some(9), Some(9), Some(5), None)
    );
    assert_eq!((at("m", 20), at("z", 20), at("", 20)), (Some(5), None, None));
}

#[test]
fn files_clamp_what_reaches_beyond_them() {
    let f = Fragments::from_raw([raw("a", "z", 9)], &Bytewise);
    let key = |s: &str| Key::from(s.as_bytes());
    assert_eq!(show(&f.clamp(&KeyRange::excl(key("c"), key("f")), 0, &Bytewise)), "c..f:9");
    assert_eq!(show(&f.clamp(&KeyRange::incl(key("c"), key("f")), 0, &Bytewise)), "c..f\\x00:9");
    assert_eq!(show(&f.between(None, Some(&key("b")), &Bytewise)), "a..b:9");
    assert!(f.between(Some(&key("z")), None, &Bytewise).is_empty());
}

/// No key follows another one at once in this order, so the end just after a key stays one.
#[test]
fn an_inclusive_end_bounds_in_any_order() {
    let key = |s: &str| Key::from(s.as_bytes());
    let f = Fragments::from_raw([raw("z", "b", 9), raw("p", "a", 5)], &ReverseBytewise);
    assert_eq!(show(&f), "z..p:9 p..b:9,5 b..a:5");
    let upper = f.clamp(&KeyRange::incl(key("x"), key("k")), 0, &ReverseBytewise);
    assert_eq!(show(&upper), "x..p:9 p..k+:9,5");
    let at = |f: &Fragments, k: &str| f.covering_seq(k.as_bytes(), 20, &ReverseBytewise);
    assert_eq!((at(&upper, "y"), at(&upper, "x")), (None, Some(9)));
    assert_eq!((at(&upper, "k"), at(&upper, "jzzzzz")), (Some(9), None));

    // The table that goes on behind the key has the same deletion, and of the two the newer counts.
    let lower = f.clamp(&KeyRange::incl(key("k"), key("a")), 0, &ReverseBytewise);
    let both = Fragments::union([(0, upper.clone()), (1, lower)], &ReverseBytewise);
    assert_eq!(show(&both), "x..p:9 p..k:9,5 k..k+:9,5 k+..b:9,5 b..a:5");
    let runs: Vec<u16> = both.iter().map(|f| f.tombs[0].run).collect();
    assert_eq!(runs, [0, 0, 0, 1, 1]);
    let mut cursor = both.cursor();
    let scanned = ["w", "k", "jz", "a"]
        .map(|k| cursor.at(k.as_bytes(), &ReverseBytewise).map(|f| f.tombs[0].seq));
    assert_eq!(scanned, [Some(9), Some(9), Some(9), None]);

    let e = upper.to_tombstones().unwrap_err();
    assert_eq!(e.kind(), lithify_base::ErrorKind::Unsupported);
    assert_eq!(
        upper.between(None, Some(&key("p")), &ReverseBytewise).to_tombstones().unwrap().len(),
        1
    );
}

proptest! {
    /// Clamped to any bounds, in any order: what lies inside counts as before, and nothing else does.
    #[test]
    fn clamped_fragments_say_the_same_inside_the_bounds(
        list in prop::collection::vec((0u8..20, 0u8..20, 1u64..30), 0..12),
        (a, b, inclusive, reverse) in (0u8..20, 0u8..20, any::<bool>(), any::<bool>()),
        last in 0u64..20,
    ) {
        let order: &dyn Comparator = if reverse { &ReverseBytewise } else { &Bytewise };
        let raws = list.iter().map(|&(lo, hi, seq)| RangeTombstone {
            lo: [lo][..].into(), hi: [hi][..].into(), seq, run: 0,
        });
        let whole = Fragments::from_raw(raws.clone(), order);
        let bounds = KeyRange { lo: [a][..].into(), hi: End { key: [b][..].into(), inclusive } };
        let clamped = whole.clamp(&bounds, last, order);
        prop_assert!(clamped.as_slice().windows(2).all(|w| w[0].hi.cmp(&w[1].lo, order).is_le()));
        let again = Fragments::union([(0, clamped.clone()), (1, clamped.clone())], order);
        for k in 0u8..20 {
            for key in [&[k][..], &[k, 0], &[k, 9]] {
                let inside = bounds.contains(key, order);
                let counts = |t: &RangeTombstone| inside && (*key != bounds.hi.key[..] || t.seq > last);
                let expected = raws.clone().filter(|t| counts(t)).filter(|t| {
                    order.compare(&t.lo, key).is_le() && order.compare(key, &t.hi).is_lt()
                });
                let expected = expected.map(|t| t.seq).max();
                prop_assert_eq!(whole.covering_seq_in((&bounds, last), key, 40, order), expected);
                prop_assert_eq!(clamped.covering_seq(key, 40, order), expected);
                prop_assert_eq!(again.covering_seq(key, 40, order), expected);
            }
        }
    }

    #[test]
    fn fragments_say_what_the_tombstones_say(
        list in prop::collection::vec((0u8..20, 0u8..20, 1u64..30), 0..12),
        at in 0u64..32,
    ) {
        let raws = list.iter().map(|&(lo, hi, seq)| RangeTombstone {
            lo: [lo][..].into(), hi: [hi][..].into(), seq, run: 0,
        });
        let f = Fragments::from_raw(raws, &Bytewise);
        prop_assert!(f.as_slice().windows(2).all(|w| w[0].hi.cmp(&w[1].lo, &Bytewise).is_le()));
        let mut cursor = f.cursor();
        for k in 0u8..21 {
            let naive = list.iter()
                .filter(|&&(lo, hi, seq)| lo <= k && k < hi && seq <= at)
                .map(|&(_, _, seq)| seq).max();
            prop_assert_eq!(f.covering_seq(&[k], at, &Bytewise), naive);
            let scanned = cursor.at(&[k], &Bytewise).and_then(|f| f.newest_at(at)).map(|t| t.seq);
            prop_assert_eq!(scanned, naive);
        }
    }
}

/// As of a log that is cut at its beginning again and again.
fn nested(count: u64) -> Vec<RangeTombstone> {
    (1..=count).map(|n| raw("a", &format!("b{n:06}"), n)).collect()
}

#[test]
fn deletions_within_each_other_take_no_more_than_they_are() {
    let count = 100_000;
    assert_eq!(show(&Fragments::newest(nested(count), &Bytewise)), "a..b100000:100000");
    let snapshots: Vec<Seq> = (1..=10).map(|s| s * 9_000).collect();
    let some = Fragments::for_snapshots(nested(count), &snapshots, &Bytewise);
    assert_eq!(some.len(), 11, "as far as each of them reaches");
    assert_eq!(some.tombs(), 66);
    let same = nested(count).into_iter().map(|t| RangeTombstone { seq: 7, ..t });
    assert_eq!(Fragments::of_table(same, &Bytewise).unwrap().tombs(), count, "an external table's");
    let refused = Fragments::of_table(nested(count), &Bytewise).unwrap_err();
    assert_eq!(refused.kind(), lithify_base::ErrorKind::LimitExceeded);
    // What a flush writes for many snapshots can be read again, however much it is.
    let snapshots: Vec<Seq> = (1..400).collect();
    let many = Fragments::for_snapshots(nested(400), &snapshots, &Bytewise);
    assert!(many.tombs() > PAIRS_MAX);
    let stored = many.to_tombstones().unwrap();
    assert_eq!(Fragments::of_table(stored, &Bytewise).unwrap().tombs(), many.tombs());
}

proptest! {
    /// What is left out for want of a snapshot that tells it apart hides nothing, and the merge's own choice is the same.
    #[test]
    fn what_no_snapshot_tells_apart_is_not_missed(
        all in proptest::collection::vec((0u8..12, 0u8..12, 1u64..40), 0..30),
        snapshots in proptest::collection::btree_set(1u64..40, 0..5),
    ) {
        let key = |k: u8| format!("{}", char::from(b'a' + k));
        // Numbers are told out once.
        let mut seen = std::collections::BTreeSet::new();
        let raws: Vec<RangeTombstone> = all
            .iter()
            .filter(|(_, _, seq)| seen.insert(*seq))
            .map(|(lo, hi, seq)| raw(&key(*lo), &key(*hi), *seq))
            .collect();
        let snapshots: Vec<Seq> = snapshots.into_iter().collect();
        let whole = Fragments::from_raw(raws.clone(), &Bytewise);
        let some = Fragments::for_snapshots(raws, &snapshots, &Bytewise);
        let stripe = |seq: Seq| snapshots.partition_point(|&s| s < seq);
        for k in 0..12 {
            let key = key(k);
            let of = |f: &Fragments| f.find(key.as_bytes(), &Bytewise).map(|f| f.tombs.clone());
            let mut kept: Vec<Tomb> = of(&whole).unwrap_or_default();
            kept.dedup_by_key(|t| stripe(t.seq));
            prop_assert_eq!(of(&some).unwrap_or_default(), kept);
            for at in snapshots.iter().copied().chain([lithify_base::MAX_SEQ]) {
                let seen = |f: &Fragments| f.covering_seq(key.as_bytes(), at, &Bytewise);
                prop_assert_eq!(seen(&whole), seen(&some));
            }
        }
    }
}
