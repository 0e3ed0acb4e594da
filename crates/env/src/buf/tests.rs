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

#[test]
fn lent_memory_is_used_in_whole_pages_and_given_back() {
    use crate::sync::atomic::{AtomicUsize, Ordering};

    struct Lent(Vec<u8>, Arc<AtomicUsize>);
    impl AsMut<[u8]> for Lent {
        fn as_mut(&mut self) -> &mut [u8] {
            &mut self.0
        }
    }
    impl Drop for Lent {
        fn drop(&mut self) {
            // Its bytes are what the buffer's last user left.
            self.1
                .fetch_add(1 + self.0.iter().filter(|byte| **byte == 7).count(), Ordering::Relaxed);
        }
    }
    let gone = Arc::new(AtomicUsize::new(0));
    let lent = |bytes| IoBuf::lent(Box::new(Lent(vec![0; bytes], gone.clone())));
    let mut buf = lent(3 * 4096);
    assert!(buf.capacity() >= 2 * 4096 && buf.capacity().is_multiple_of(4096));
    assert_eq!(buf.as_ptr().addr() % 4096, 0);
    buf.extend_from_slice(&[7; 5000]);
    assert_eq!(buf[..], [7; 5000]);
    drop(buf);
    assert_eq!(gone.swap(0, Ordering::Relaxed), 5001);
    // What it has no room for moves it to memory of its own.
    let mut buf = lent(2 * 4096);
    buf.extend_from_slice(&[7; 100]);
    buf.extend_from_slice(&[8; 9000]);
    assert_eq!((buf[..100].to_vec(), buf.len()), (vec![7; 100], 9100));
    assert_eq!(gone.swap(0, Ordering::Relaxed), 101);
    drop(buf);
    // Less than a page is of no use, and is given back all the same.
    assert_eq!(lent(100).capacity(), 0);
    assert_eq!(gone.load(Ordering::Relaxed), 1);
}

#[test]
fn parts_are_filled_by_several_threads_and_are_a_buffer_again() {
    let pool = BufPool::new(1 << 20);
    let mut buf = pool.get(10_000);
    buf.extend_from_slice(&[9; 10_000]);
    let (whole, parts) = buf.parts(&[4000, 0, 5000]);
    let whole = whole.whole().expect_err("there are parts");
    std::thread::scope(|scope| {
        for (no, mut part) in parts.into_iter().enumerate() {
            scope.spawn(move || part.as_mut().fill(no as u8));
        }
    });
    let buf = whole.whole().expect("they are gone");
    assert_eq!(buf[..4000], [0; 4000]);
    assert_eq!(buf[4000..9000], [2; 5000]);
    assert_eq!(buf[9000..], [9; 1000]);
    drop(buf);
    assert_eq!(pool.in_use(), 0);
}

#[test]
#[should_panic(expected = "more bytes than there are")]
fn parts_lie_within_the_buffer() {
    let _ = IoBuf::with_capacity(4096).parts(&[usize::MAX, 2]);
}
