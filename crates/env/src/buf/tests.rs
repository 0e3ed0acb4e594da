use super::*;

const MIB: usize = 1 << 20;

#[test]
fn appends_like_a_vec_and_stays_aligned() {
    for pool in [None, Some(BufPool::new(4 * MIB))] {
        let mut buf = pool.as_ref().map_or_else(IoBuf::new, |pool| pool.get(1));
        let mut twin = Vec::new();
        let chunk: Vec<u8> = (0..=255).cycle().take(70_001).collect();
        // Miri is slow, and knows no huge pages.
        let rounds = if cfg!(miri) { 3 } else { 60 };
        for n in 0..rounds {
            buf.extend_from_slice(&chunk[n..]);
            twin.extend_from_slice(&chunk[n..]);
            assert_eq!(buf.as_ptr().addr() % 4096, 0);
        }
        assert_eq!(&buf[..], &twin[..]);
        let huge = buf.capacity() >= 2 * MIB && buf.as_ptr().addr().is_multiple_of(2 * MIB);
        assert!(huge || cfg!(miri));
        buf.truncate(10);
        buf.as_mut()[9] = 200;
        assert_eq!(&buf[..], [&twin[..9], &[200]].concat());
        buf.clear();
        assert!(buf.is_empty());
        drop(buf);
        assert!(pool.is_none_or(|pool| pool.in_use() == 0 && pool.idle() <= 4 * MIB));
    }
}

#[test]
fn padding_is_zero_even_in_recycled_memory() {
    let pool = BufPool::new(MIB);
    let mut dirty = pool.get(8192);
    dirty.spare_mut().fill(0xee);
    drop(dirty);
    let mut buf = pool.get(8192);
    buf.extend_from_slice(b"abc");
    assert_eq!(buf.pad_to(4096), 4093);
    assert_eq!(&buf[..4], b"abc\0");
    assert!(buf[3..].iter().all(|&byte| byte == 0));
    assert_eq!(buf.pad_to(4096), 0, "aligned already");
    buf.set_len(8192);
    assert_eq!(buf[8191], 0xee, "the rest is as the last user left it");
}

#[test]
#[should_panic(expected = "exceeds capacity")]
fn a_length_beyond_the_capacity_is_refused() {
    IoBuf::with_capacity(10).set_len(4097);
}

#[test]
#[cfg_attr(miri, ignore = "maps memory")]
fn no_memory_is_an_error_where_asked_for() {
    assert!(IoBuf::try_with_capacity(1 << 56).is_err());
    assert!(BufPool::new(0).try_get(usize::MAX).is_err());
    let mut buf = IoBuf::from(&b"kept"[..]);
    assert!(buf.try_reserve(usize::MAX).is_err());
    assert_eq!(&buf[..], b"kept");
}
