use crate::recipe::{InUse, Recipe, UserFilter};
use crate::view::View;
use crate::{Fragments, Item, Kernel, Products, RangeTombstone};
use lithify_base::{
    CompactionFilter, Decision, FilterContext, KeyRange, Kind, MergeOperator, Result, Tag,
};
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
        let value = if kind.is_delete() { "" } else { seq };
        kernel.push(b"k", Tag::new(seq.parse().unwrap(), kind), value.as_bytes(), 0).unwrap();
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
            let (seq, value) = (view.tag(i).seq(), view.entry(i, stored).value);
            let value = String::from_utf8_lossy(value);
            // What is written as it came needs no words.
            let told = value.contains('+') || value.contains('x');
            words.push(if told { format!("{kind}{seq}={value}") } else { format!("{kind}{seq}") });
        }
    }
    words.join(" ")
}

/// As [`judge`], with an operator: values are numbers of their entries, and operands sum them up.
fn summed(recipe: Recipe, entries: &str) -> String {
    judge(Recipe { operator: Some(Arc::new(Sum)), ..recipe }, entries)
}

struct Sum;
impl MergeOperator for Sum {
    fn name(&self) -> &str {
        "sum"
    }
    fn full_merge(&self, _: &[u8], base: Option<&[u8]>, operands: &[&[u8]]) -> Result<Vec<u8>> {
        assert!(base != Some(b"1"), "told to panic");
        let parts: Vec<&[u8]> = [&b"0"[..]].iter().chain(&base).chain(operands).copied().collect();
        Ok(parts.join(&b'+'))
    }
    fn partial_merge(&self, _: &[u8], older: &[u8], newer: &[u8]) -> Option<Vec<u8>> {
        Some([older, newer].join(&b'+'))
    }
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
    assert_eq!(judge(middle(&[]), "s9 v8 s7"), "s7", "D1 spares a single delete under a value");
    assert_eq!(judge(middle(&[]), "v8 s7"), "v8 s7", "which may go with a later one");
    assert_eq!(judge(middle(&[6]), "s9 v8 s7 v6"), "s7 v6", "and leave an older value");
    assert_eq!(judge(bottom(&[]), "v8 s7"), "v0", "D3: there is none");
    assert_eq!(judge(middle(&[]), "v9 s8 v7 v6"), "v9", "D7 below a value");
    assert_eq!(judge(middle(&[]), "s9 v8 s7 v6"), "", "two pairs");
    assert_eq!(judge(middle(&[]), "s9 v8 v7"), "", "but values");
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
    let elsewhere = InUse::Ranges(vec![KeyRange::incl(&b"m"[..], &b"n"[..])]);
    let kept = with(recipe(elsewhere, &[]), &[5]);
    assert_eq!(judge(kept, "v7"), "v7", "D4: a kept tombstone at 5 would hide seq 0");
}

#[test]
fn operands_are_combined_within_their_stripe() {
    let bottom = |s: &[u64]| recipe(InUse::none(), s);
    let middle = |s: &[u64]| recipe(InUse::All, s);
    assert_eq!(summed(middle(&[]), "m9 m8 v7 v6"), "v9=0+7+8+9", "a value below");
    assert_eq!(summed(bottom(&[]), "m9 m8 v7 v6"), "v0=0+7+8+9", "D4 after D6");
    assert_eq!(summed(middle(&[]), "m9 m8 d7 v6"), "v9=0+8+9", "a deletion below goes, too");
    assert_eq!(summed(middle(&[]), "m9 m8 s7 v6"), "v9=0+8+9", "as does a single one");
    assert_eq!(
        summed(bottom(&[]), "m9 s8 v7 s6"),
        "v0=0+9",
        "which hides all below as the value does"
    );
    assert_eq!(summed(bottom(&[]), "m9 m8"), "v0=0+8+9", "nothing below");
    assert_eq!(summed(middle(&[]), "m9 m8"), "m9=8+9", "something below, it is not known what");
    assert_eq!(summed(bottom(&[8]), "m9 m8 v7"), "m9 v0=0+7+8", "each stripe by itself");
    assert_eq!(summed(bottom(&[6, 8]), "m9 m8 m7 v6"), "m9 m8=7+8 v0", "nothing across a snapshot");
    assert_eq!(
        summed(bottom(&[10]), "d12 m9 m8"),
        "d12 v0=0+8+9",
        "operands keep a delete over them"
    );
    assert_eq!(summed(middle(&[]), "m9 v1"), "m9 v1", "a panic keeps everything");
    let big: Vec<String> = (10..40).rev().map(|n| format!("m{n}")).collect();
    let big = big.join(" ");
    let halves = summed(bottom(&[]), &big);
    assert!(halves.starts_with("m39=") && halves.contains(" v"), "a long chain is cut: {halves}");
}

#[test]
fn a_range_tombstone_below_operands_is_what_they_are_applied_to() {
    let covered = |snapshots: &[u64], entries| {
        let mut r = recipe(InUse::All, snapshots);
        let (lo, hi) = (b"a"[..].into(), b"z"[..].into());
        r.tombstones = Fragments::from_raw([RangeTombstone { lo, hi, seq: 6, run: 0 }], &*r.order);
        summed(r, entries)
    };
    assert_eq!(covered(&[], "m9 m8 v5"), "v9=0+8+9");
    assert_eq!(covered(&[], "m9 m8"), "v9=0+8+9", "whatever it covers elsewhere");
    assert_eq!(covered(&[7], "m9 m8 v5"), "m9=8+9", "of another stripe, it is not");
}

struct Odd;
impl CompactionFilter for Odd {
    fn name(&self) -> &str {
        "odd"
    }
    fn filter<'a>(&self, context: &FilterContext, _: &[u8], value: &'a [u8]) -> Decision<'a> {
        let n: u64 = value
            .rsplit(|b| *b == b'+')
            .next()
            .map_or(0, |n| std::str::from_utf8(n).unwrap().parse().unwrap());
        assert!(n != 99, "told to panic");
        match n % context.now {
            0 => Decision::Keep,
            1 => Decision::Remove,
            _ => Decision::Change(b"x"[..].into()),
        }
    }
}

#[test]
fn the_filter_has_a_say_over_the_newest_value_that_no_snapshot_needs() {
    let context = FilterContext { level: 1, bottommost: false, now: 3 };
    let user_filter = Some(UserFilter { filter: Arc::new(Odd), context });
    let filtered = |r: Recipe, entries: &str| {
        summed(Recipe { user_filter: user_filter.clone(), ..r }, entries)
    };
    let bottom = |s: &[u64]| recipe(InUse::none(), s);
    let middle = |s: &[u64]| recipe(InUse::All, s);
    assert_eq!(filtered(middle(&[]), "v9 v7"), "v9", "it stays");
    assert_eq!(filtered(middle(&[]), "v7 v6"), "d7", "gone, and hides what lies below");
    assert_eq!(filtered(bottom(&[]), "v7 v6"), "", "gone for good: nothing lies below");
    assert_eq!(filtered(bottom(&[6]), "v7 v6"), "d7 v0", "an older version that a snapshot needs");
    assert_eq!(filtered(middle(&[]), "v8"), "v8=x", "changed");
    assert_eq!(filtered(bottom(&[]), "v8"), "v0=x", "and zeroed");
    assert_eq!(filtered(middle(&[7]), "v7"), "v7", "a snapshot needs it");
    assert_eq!(filtered(middle(&[7]), "v9 v7"), "v9 v7", "the older of two is not asked about");
    assert_eq!(filtered(middle(&[]), "d9 v7"), "d9", "nor are deletions");
    assert_eq!(filtered(middle(&[]), "m7"), "m7", "nor operands");
    assert_eq!(filtered(middle(&[]), "m7 v6"), "d7", "but what they make");
    assert_eq!(filtered(middle(&[]), "v99"), "v99", "a panic keeps it");
}
