//! Short copies without a call: most keys and many values are below 64 bytes, where the call
//! costs more than the bytes.
//!
//! Keeps: exactly `src.len()` bytes move; nothing is read or written beyond them. Two overlapping
//! moves of a fixed width cover any length between that width and its double.

/// Copies `src` to the start of `dst`, which must be at least as long.
#[inline(always)]
pub(crate) fn copy(dst: &mut [u8], src: &[u8]) {
    let n = src.len();
    let dst = &mut dst[..n];
    match n {
        9..=16 => ends::<8>(dst, src),
        17..=32 => ends::<16>(dst, src),
        33..=64 => ends::<32>(dst, src),
        4..=8 => ends::<4>(dst, src),
        0..=3 => {
            for (d, s) in dst.iter_mut().zip(src) {
                *d = *s;
            }
        }
        _ => dst.copy_from_slice(src),
    }
}

/// Copies the first and the last `N` bytes of equally long slices.
#[inline(always)]
fn ends<const N: usize>(dst: &mut [u8], src: &[u8]) {
    if let (Some(head), Some(tail)) = (src.first_chunk::<N>(), src.last_chunk::<N>()) {
        if let Some(d) = dst.first_chunk_mut::<N>() {
            *d = *head;
        }
        if let Some(d) = dst.last_chunk_mut::<N>() {
            *d = *tail;
        }
    }
}

/// As [`copy`], within one buffer: `buf[from..from + n]` to `buf[to..to + n]`, which lie apart.
#[inline(always)]
pub(crate) fn copy_within(buf: &mut [u8], from: usize, n: usize, to: usize) {
    let (before, after) = buf.split_at_mut(to);
    copy(after, &before[from..from + n]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_short_length_is_copied_and_nothing_more() {
        let src: Vec<u8> = (1..=200).collect();
        for n in 0..=200 {
            let mut dst = vec![0; 210];
            copy(&mut dst, &src[..n]);
            assert_eq!(dst[..n], src[..n]);
            assert!(dst[n..].iter().all(|&b| b == 0), "{n} bytes wrote further");
            let mut both = [&src[..n], &[0; 200]].concat();
            copy_within(&mut both, 0, n, n);
            assert_eq!(both[n..2 * n], src[..n]);
        }
    }
}
