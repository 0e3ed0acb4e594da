use crate::recipe::{InUse, Recipe};
use crate::view::View;
use crate::{Fragments, Item, Kernel, Products, RangeTombstone};
use lithify_base::{Kind, Tag};
use std::sync::Arc;

/// Runs `kind seq` entries of the key `k` through the rules; what is left, in the same words.
fn judge(recipe: Recipe, entries: &str) -> String {
    let mut kernel = Kernel::new(Arc::new(recipe)).unwrap();
    for word in entries.split(' ') {
        let (kind, seq) = word.split_at(1);
        let kind = match kind {
            "v" => Kind::Value,
            "d" => Kind::Delete,
            "s" => Kind::SingleDelete,
            _ => Kind::Merge,
        };
        kernel.push(b"k", Tag::new(seq.parse().unwrap(), kind), b"", 0).unwrap();
    }
    kernel.finish().unwrap();
    let mut out = Products::default();
    kernel.drain(&mut out);
    let mut words = Vec::new();
    for item in out.items() {
        let Item::Block(b) = item else { continue };
        let (mut view, stored) = (View::default(), out.block(b));
        view.decode(&stored[..stored.len() - 5], &[]).unwrap();
        for i in 0..view.len() {
            let kind = match view.tag(i).kind().unwrap() {
                Kind::Value => 'v',
                Kind::Delete => 'd',
                Kind::SingleDelete => 's',
                _ => 'm',
            };
            words.push(format!("{kind}{}", view.tag(i).seq()));
        }
    }
    words.join(" ")
}

fn recipe(in_use: InUse, snapshots: &[u64]) -> Recipe {
    Recipe { in_use: vec![in_use], snapshots: snapshots.to_vec(), ..Recipe::new(1) }
}

#[test]
fn the_rules_one_by_one() {
    let bottom = |s: &[u64]| recipe(InUse::none(), s);
    let middle = |s: &[u64]| recipe(InUse::All, s);
    assert_eq!(judge(bottom(&[10]), "v12 d11 v9 v7"), "v12 v0", "the example of the header");
    assert_eq!(judge(middle(&[]), "v9 v7 d3"), "v9", "D1");
    assert_eq!(judge(middle(&[5, 8]), "v9 v7 d3"), "v9 v7 d3", "D1 keeps one per stripe");
    assert_eq!(judge(bottom(&[]), "d9 v7"), "", "D3");
    assert_eq!(judge(middle(&[]), "d9 v7"), "d9", "D3 needs nothing in use");
    assert_eq!(judge(bottom(&[8]), "d9 v7"), "d9 v0", "D3 spares a delete that hides a survivor");
    assert_eq!(judge(bottom(&[5, 8]), "v9 d7 d3"), "v9", "D3 takes all trailing deletes");
    assert_eq!(judge(bottom(&[]), "m9 m8 v7 v6"), "m9 m8 v0", "D6");
    assert_eq!(
        judge(bottom(&[]), "m9 d8 v7"),
        "m9",
        "D6: a delete under operands hides, then goes"
    );
    assert_eq!(judge(middle(&[]), "s9 v8"), "", "D7 whatever is in use");
    assert_eq!(judge(middle(&[8]), "s9 v8"), "s9 v8", "D7 needs one stripe");
    assert_eq!(judge(middle(&[]), "s9 d8"), "s9", "D7 needs a value");
}

#[test]
fn tombstones_cover_within_their_stripe_and_block_zeroing() {
    let with = |mut r: Recipe, seqs: &[u64]| {
        let raw = seqs.iter().map(|&seq| RangeTombstone {
            lo: b"a"[..].into(),
            hi: b"z"[..].into(),
            seq,
            run: 0,
        });
        r.tombstones = Fragments::from_raw(raw, &*r.order);
        r
    };
    assert_eq!(
        judge(with(recipe(InUse::none(), &[]), &[8]), "v9 v7"),
        "v0",
        "D5 elides, D4 zeroes"
    );
    assert_eq!(judge(with(recipe(InUse::none(), &[]), &[8]), "v7"), "", "D2");
    assert_eq!(
        judge(with(recipe(InUse::none(), &[7]), &[8]), "v7"),
        "v0",
        "D2 keeps other stripes"
    );
    let mut kept = with(recipe(InUse::none(), &[]), &[5]);
    kept.drop_tombstones = false;
    assert_eq!(judge(kept, "v7"), "v7", "D4: a kept tombstone at 5 would hide seq 0");
}
