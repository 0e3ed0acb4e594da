use super::*;

#[test]
fn positions_sort_newest_first() {
    let mut p = [Pos::base(2), Pos::new(1, 0), Pos::new(0, 7), Pos::new(1, 3), Pos::new(0, 8)];
    p.sort();
    assert_eq!(p.map(|p| p.to_string()), ["L0.8", "L0.7", "L1.3", "L1.0", "L2.0"]);
    assert!(p[0].is_newer_than(p[1]) && p[4].is_older_than(p[3]));
}

#[test]
fn internal_keys_order_newest_entry_first() {
    let k = |u: &'static [u8], s, kind| InternalKey { user: u, tag: Tag::new(s, kind) };
    let a5 = k(b"a", 5, Kind::Value);
    let a3 = k(b"a", 3, Kind::Delete);
    assert!(a5.cmp(a3, &Bytewise).is_lt());
    assert!(a3.cmp(k(b"b", 9, Kind::Value), &Bytewise).is_lt());
    assert_eq!(InternalKey::decode(&a5.to_vec()).unwrap(), a5);
    assert!(InternalKey::decode(b"1234567").is_none());
    let seek = InternalKey { user: b"a", tag: Tag::seek(5) };
    assert!(seek.cmp(a5, &Bytewise).is_lt(), "a seek lands before the entry it looks for");
}

#[test]
fn ranges_know_their_ends() {
    let r = |lo: &str, hi: &str| KeyRange::incl(lo.as_bytes(), hi.as_bytes());
    let x = |lo: &str, hi: &str| KeyRange::excl(lo.as_bytes(), hi.as_bytes());
    let o = &Bytewise;
    assert!(r("a", "c").overlaps(&r("c", "d"), o));
    assert!(!x("a", "c").overlaps(&r("c", "d"), o));
    assert!(x("a", "c").is_before(&r("c", "d"), o));
    assert!(r("a", "c").covers(&x("a", "c"), o) && !x("a", "c").covers(&r("a", "c"), o));
    assert_eq!(r("a", "c").hull(&x("b", "f"), o), x("a", "f"));
    assert_eq!(r("a", "e").clamp(&x("b", "f"), o), Some(r("b", "e")));
    assert_eq!(x("a", "b").clamp(&r("b", "f"), o), None);
}

#[test]
fn separators_lie_between() {
    let keys: [&[u8]; 8] = [b"", b"a", b"a\xff", b"ab", b"abc", b"abd", b"b", b"\xff\xff"];
    for a in keys {
        assert!(Bytewise.successor(a).as_slice() >= a);
        for b in keys {
            if a < b {
                let s = Bytewise.separator(a, b);
                assert!(a <= s.as_slice() && s.as_slice() < b, "{a:?} {s:?} {b:?}");
            }
        }
    }
    assert_eq!(Bytewise.separator(b"abcdef", b"abzz"), b"abd");
}

#[test]
fn errors_read_as_sentences() {
    let e = Error::corruption("block checksum mismatch").in_file("000007.sst").at(4096);
    assert_eq!(e.to_string(), "000007.sst at byte 4096: block checksum mismatch");
    let full = Error::io("write", "x.log", std::io::Error::from_raw_os_error(28));
    assert_eq!((full.kind(), full.errno()), (ErrorKind::NoSpace, Some(28)));
}
