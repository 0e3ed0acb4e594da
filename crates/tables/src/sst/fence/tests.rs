use lithify_base::{Bytewise, Kind, ReverseBytewise};

use super::*;

fn finish(b: FencesBuilder<'_>) -> Fences {
    b.finish(|len| Ok(SharedBytes::zeroed(len).unwrap())).unwrap()
}

fn build(keys: &[&[u8]], order: &dyn Comparator) -> Fences {
    let mut b = FencesBuilder::new(order, u64::MAX);
    for (i, k) in keys.iter().enumerate() {
        b.push(k, None, (i as u64 * 105, 100), 5).unwrap();
    }
    finish(b)
}

fn naive(keys: &[&[u8]], user: &[u8], order: &dyn Comparator) -> usize {
    keys.iter().position(|k| order.compare(k, user).is_ge()).unwrap_or(keys.len())
}

#[test]
fn search_agrees_with_a_scan() {
    let mut keys: Vec<Vec<u8>> = Vec::new();
    for i in 0..200u32 {
        // Long equal heads, short keys, keys that differ only by trailing zero bytes.
        keys.push(format!("pre{:03}", i * 3).into_bytes());
        keys.push(format!("pre{:03}\0", i * 3).into_bytes());
        keys.push(format!("pre{:03}-tail-{}", i * 3, i % 7).into_bytes());
    }
    keys.sort();
    let mut probes = keys.clone();
    for i in 0..700u32 {
        probes.push(format!("pre{i:03}").into_bytes());
        probes.push(format!("pre{i:03}-tail-3x").into_bytes());
    }
    for p in ["", "p", "pre", "prd\u{7f}zzzzzzzz", "prf", "z", "pre0"] {
        probes.push(p.as_bytes().to_vec());
    }
    let refs: Vec<&[u8]> = keys.iter().map(|k| k.as_slice()).collect();
    let reversed: Vec<&[u8]> = refs.iter().rev().copied().collect();
    let (forward, backward) = (build(&refs, &Bytewise), build(&reversed, &ReverseBytewise));
    for p in &probes {
        let t = Tag::seek(7);
        assert_eq!(forward.find(p, t, &Bytewise), naive(&refs, p, &Bytewise), "{p:?}");
        assert_eq!(
            backward.find(p, t, &ReverseBytewise),
            naive(&reversed, p, &ReverseBytewise),
            "{p:?}"
        );
    }
}

#[test]
fn internal_separators_split_one_user_key() {
    let mut b = FencesBuilder::new(&Bytewise, u64::MAX);
    let t = |s| Tag::new(s, Kind::Value);
    b.push(b"k", Some(t(90)), (0, 10), 5).unwrap();
    b.push(b"k", Some(t(50)), (15, 10), 5).unwrap();
    b.push(b"m", Some(t(10)), (30, 10), 5).unwrap();
    let f = finish(b);
    let find = |k: &[u8], s| f.find(k, Tag::seek(s), &Bytewise);
    assert_eq!(find(b"k", 100), 0);
    assert_eq!(find(b"k", 89), 1, "newer versions end at tag 90");
    assert_eq!(find(b"k", 50), 1);
    assert_eq!(find(b"k", 49), 2);
    assert_eq!((find(b"j", 0), find(b"l", 5), find(b"z", 5)), (0, 2, 3));
}

#[test]
fn a_broken_index_is_refused() {
    let push = |entries: &[(&[u8], (u64, u64))]| {
        let mut b = FencesBuilder::new(&Bytewise, 1000);
        entries.iter().try_for_each(|(k, h)| b.push(k, None, *h, 5))
    };
    assert!(push(&[(b"a", (0, 10)), (b"b", (15, 10))]).is_ok());
    for bad in [
        &[(&b"b"[..], (0, 10)), (&b"a"[..], (15, 10))][..],
        &[(&b"a"[..], (0, 10)), (&b"a"[..], (15, 10))][..],
        &[(&b"a"[..], (0, 10)), (&b"b"[..], (14, 10))][..],
        &[(&b"a"[..], (0, 996))][..],
        &[(&b"a"[..], (u64::MAX, 10))][..],
        &[(&b"a"[..], (0, u64::MAX))][..],
    ] {
        assert!(push(bad).unwrap_err().is_corruption());
    }
}

#[test]
fn integer_lower_bound_is_exact_at_every_length() {
    for n in 0..40u64 {
        let heads: Vec<u64> = (0..n).map(|i| i * 2 + 1).collect();
        for h in 0..=2 * n + 2 {
            let words: Vec<_> = heads.iter().map(|head| head.to_ne_bytes()).collect();
            assert_eq!(lower_bound_u64(&words, h), heads.partition_point(|&x| x < h));
        }
    }
}
