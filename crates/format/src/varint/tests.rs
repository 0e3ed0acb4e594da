use super::*;

#[test]
fn every_width_round_trips() {
    for shift in 0..64 {
        for v in [1u64 << shift, (1u64 << shift) - 1, (1u64 << shift) | 1] {
            let mut out = Vec::new();
            put_u64(&mut out, v);
            assert_eq!(out.len(), len_u64(v), "{v}");
            assert_eq!(get_u64(&out), Some((v, &[][..])));
            assert_eq!(get_u32(&out), u32::try_from(v).ok().map(|v| (v, &[][..])));
            for cut in 0..out.len() {
                assert_eq!(get_u64(&out[..cut]), None);
            }
        }
    }
    let mut out = Vec::new();
    put_u64(&mut out, u64::MAX);
    assert_eq!((out.len(), get_u64(&out)), (10, Some((u64::MAX, &[][..]))));
}

#[test]
fn known_bytes_and_overlong_forms() {
    let mut out = Vec::new();
    put_u32(&mut out, 300);
    assert_eq!(out, [0xac, 0x02]);
    assert_eq!(get_u32(&[0x80, 0x00, 9]), Some((0, &[9][..])));
    assert_eq!(get_u32(&[0xff, 0xff, 0xff, 0xff, 0x10]), None, "33 bits");
    assert_eq!(get_u32(&[0x80; 6]), None);
    let mut over = [0xff; 10];
    over[9] = 2;
    assert_eq!(get_u64(&over), None, "65 bits");
}

#[test]
fn zigzag_is_a_bijection_near_zero_and_the_ends() {
    for v in [0, -1, 1, -2, 2, i64::MIN, i64::MAX, -12345] {
        assert_eq!(unzigzag(zigzag(v)), v);
    }
    assert_eq!([0, -1, 1, -2].map(zigzag), [0, 1, 2, 3]);
}

#[test]
fn a_failed_read_leaves_the_cursor_in_place() {
    let mut r = Reader::new(&[1, 2, 0, 3, 0, 0, 0, 5, b'a']);
    assert_eq!(r.u8().unwrap(), 1);
    assert_eq!(r.u16().unwrap(), 2);
    assert_eq!(r.u32().unwrap(), 3);
    assert_eq!(r.offset(), 7);
    let e = r.length_prefixed().unwrap_err();
    assert!(e.is_corruption());
    assert_eq!((r.offset(), r.remaining()), (7, 2));
    assert!(r.u64().is_err() && r.bytes(3).is_err());
    assert_eq!(r.bytes(2).unwrap(), [5, b'a']);
    assert!(r.is_empty() && r.u8().is_err() && r.var32().is_err() && r.var64().is_err());
}
