use super::*;
use lithify_base::Bytewise;
use proptest::prelude::*;

fn raw(lo: &str, hi: &str, seq: Seq) -> RangeTombstone {
    RangeTombstone { lo: lo.as_bytes().into(), hi: hi.as_bytes().into(), seq, run: 0 }
}

fn show(f: &Fragments) -> String {
    let one = |f: &Fragment| {
        let seqs: Vec<String> = f.tombs.iter().map(|t| t.seq.to_string()).collect();
        format!("{}..{}:{}", f.lo.escape_ascii(), f.hi.escape_ascii(), seqs.join(","))
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
    assert_eq!(show(&f.clamp(&KeyRange::excl(key("c"), key("f")), &Bytewise)), "c..f:9");
    assert_eq!(show(&f.clamp(&KeyRange::incl(key("c"), key("f")), &Bytewise)), "c..f\\x00:9");
    assert_eq!(show(&f.between(None, Some(&key("b")), &Bytewise)), "a..b:9");
    assert!(f.between(Some(&key("z")), None, &Bytewise).is_empty());
}

proptest! {
    #[test]
    fn fragments_say_what_the_tombstones_say(
        list in prop::collection::vec((0u8..20, 0u8..20, 1u64..30), 0..12),
        at in 0u64..32,
    ) {
        let raws = list.iter().map(|&(lo, hi, seq)| RangeTombstone {
            lo: [lo][..].into(), hi: [hi][..].into(), seq, run: 0,
        });
        let f = Fragments::from_raw(raws, &Bytewise);
        prop_assert!(f.as_slice().windows(2).all(|w| w[0].hi <= w[1].lo));
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
