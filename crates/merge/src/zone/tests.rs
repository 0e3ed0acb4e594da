use super::*;
use lithify_base::KeyRange;

#[test]
fn zones_answer_as_the_lists_do() {
    let key = |s: &str| Key::from(s.as_bytes());
    let mut recipe = Recipe::new(2);
    recipe.in_use = vec![InUse::Ranges(vec![KeyRange::incl(key("c"), key("f"))]), InUse::none()];
    recipe.tombstones = Fragments::from_raw(
        [crate::RangeTombstone { lo: key("e"), hi: key("k"), seq: 7, run: 0 }],
        &*recipe.order,
    );
    recipe.hard_splits = vec![key("k")];
    let (kept, counts) = keep_tombstones(&recipe);
    assert_eq!((kept.tombs(), counts.elided), (1, 0), "part of the fragment is in use");
    let mut zones = Zones::new(&recipe, &kept);
    let mut splits = Vec::new();
    for k in ["a", "b", "c", "d", "e", "f", "fa", "j", "k", "z"] {
        if !zones.holds(k.as_bytes(), &*recipe.order) && zones.enter(k.as_bytes(), &*recipe.order) {
            splits.push(k);
        }
        assert_eq!(zones.is_free(0), !("c"..="f").contains(&k), "{k}");
        assert!(zones.is_free(1));
        assert_eq!(zones.is_bare(), !("e".."k").contains(&k), "{k}");
        assert_eq!(zones.keeps_at_most(7), ("e".."k").contains(&k), "{k}");
        assert!(!zones.keeps_at_most(6), "{k}");
    }
    assert_eq!(splits, ["k"]);
}

#[test]
fn a_tombstone_that_hides_nothing_goes() {
    let key = |s: &str| Key::from(s.as_bytes());
    let mut recipe = Recipe::new(1);
    recipe.in_use = vec![InUse::none()];
    recipe.snapshots = vec![10, 20];
    let seqs = [25, 22, 15, 9, 3];
    recipe.tombstones = Fragments::from_raw(
        seqs.map(|seq| crate::RangeTombstone { lo: key("a"), hi: key("b"), seq, run: 0 }),
        &*recipe.order,
    );
    let left = |r: &Recipe| -> Vec<Seq> {
        keep_tombstones(r).0.to_tombstones().unwrap().iter().map(|t| t.seq).collect()
    };
    assert_eq!(left(&recipe), [25, 15], "newest of each stripe, and none of the oldest");
    recipe.drop_tombstones = false;
    assert_eq!(left(&recipe), [25, 15, 9]);
}
