use std::sync::Arc;
use std::time::{Duration, Instant};

use lithify_env::{MemFs, PosixFs};

use super::*;
use crate::testing::{bytes_of, dir_on};

const PAGE: u64 = 4096;
const BLOCK: u64 = BLOCK_SIZE as u64;

/// Pages of data, so many bytes apart.
fn pages(count: u64, apart: u64) -> impl Iterator<Item = Result<Range<u64>>> {
    (0..count).map(move |n| Ok(n * apart..n * apart + PAGE))
}

/// A log on a real file system, of `len` bytes, with a 1 at each of `at`.
fn log_with(at: &[u64], len: u64) -> (tempfile::TempDir, Dir) {
    let home = tempfile::tempdir().unwrap();
    let dir = Dir::new(Arc::new(PosixFs::new()), home.path());
    let file = dir.open_file(FileName::Wal(1), OpenOpts::write().or_create()).unwrap();
    file.set_len(len).unwrap();
    for &at in at {
        file.write_at(&[1], at).unwrap();
    }
    (home, dir)
}

/// What a block may decompress to is what it may have been before its zeros became holes.
#[test]
fn a_hole_is_one_more_compression() {
    use lithify_format::limits::{meta_plain_max, plain_max};
    for stored in [0usize, 4096, 1 << 20, 3 << 20] {
        let most = |a: Allowance| a.free.max(stored as u64 * a.share);
        assert_eq!(most(Allowance::DATA), plain_max(stored) as u64);
        assert_eq!(most(Allowance::META), meta_plain_max(stored) as u64);
    }
}

#[test]
fn holes_are_refused_beyond_their_allowance_only() {
    let len = 1 << 40;
    let (_home, dir) = log_with(&[0, 1 << 30], len);
    let file = dir.open_file(FileName::Wal(1), OpenOpts::read()).unwrap();
    for allowed in [Allowance::DATA, Allowance::META, Allowance::STREAMED] {
        allowed.check(&*file, 0, allowed.free).unwrap();
        // The data before and behind what is to be read does not count.
        for (at, len) in [(0, len), (1 << 31, allowed.free + 1), (1 << 20, (1 << 29) * 10)] {
            let e = allowed.check(&*file, at, len).unwrap_err();
            assert!(e.is_corruption() && e.to_string().contains("cp --sparse=never"), "{e}");
        }
    }
    let dense = MemFs::new();
    let dense = dir_on(Arc::new(dense));
    let file = dense.open_file(FileName::Wal(1), OpenOpts::write().or_create()).unwrap();
    file.set_len(33 << 20).unwrap();
    Allowance::META.check(&*file, 0, 33 << 20).unwrap();
}

/// A running sum: what took the square of the pieces before.
#[test]
#[allow(clippy::disallowed_methods, reason = "a test measures how long it takes")]
fn many_pieces_take_no_time() {
    let begun = Instant::now();
    let count = 200_000;
    let found = placed(pages(count, 92 << 10), count * (92 << 10), u64::MAX).unwrap();
    assert_eq!(found.len() as u64, count);
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
}

#[test]
fn pieces_are_widened_to_their_blocks_and_no_more() {
    for apart in [5000, 8 << 10, 33_000, 92 << 10, 1 << 20] {
        let (count, len) = (20_000, 20_000 * apart);
        let found = placed(pages(count, apart / PAGE * PAGE), len, u64::MAX).unwrap();
        let bytes: u64 = found.iter().map(|part| part.end - part.start).sum();
        assert!(bytes <= WHOLE_MAX.max(count * PAGE * WIDENED_MAX), "{apart}: {bytes}");
        assert!(found.windows(2).all(|w| w[0].end < w[1].start), "{apart}");
    }
    // Bytes that no page of a sound log is like.
    let bytes = (0..2000).map(|n| Ok(n * (92 << 10)..n * (92 << 10) + 512));
    let e = placed(bytes, 2000 * (92 << 10), u64::MAX).unwrap_err();
    assert!(e.is_corruption() && e.to_string().contains("cp --sparse=never"), "{e}");
}

/// The page of each block that has a record's header is on disk: the worst that holes can do to a log.
#[test]
fn a_log_whose_blocks_are_zeros_behind_their_headers_is_read() {
    let blocks = 2 * WHOLE_MAX / BLOCK;
    let at: Vec<u64> = (0..blocks).map(|n| n * BLOCK).collect();
    let (_home, dir) = log_with(&at, blocks * BLOCK);
    let read = dir.read_sparse(FileName::Wal(1), u64::MAX).unwrap().unwrap();
    assert!(read.behind.is_empty());
    assert_eq!(read.front, bytes_of(&dir, FileName::Wal(1)));
}

#[test]
fn far_pieces_are_read_where_they_lie() {
    let at = [100, 40 << 20, (40 << 20) + BLOCK, 1 << 40];
    let (_home, dir) = log_with(&at, (1 << 40) + 5);
    let read = dir.read_sparse(FileName::Wal(1), 1 << 20).unwrap().unwrap();
    assert_eq!((read.len(), read.front.len() as u64), ((1 << 40) + 5, BLOCK));
    let behind: Vec<_> = read.behind.iter().map(|s| (s.start, s.bytes.len() as u64)).collect();
    assert_eq!(behind, [(40 << 20, 2 * BLOCK), (1 << 40, 5)]);
    let pages = dir.bytes_on_disk(FileName::Wal(1)).unwrap();
    assert!(pages < 1 << 20, "{pages}");
    let e = dir.read_sparse(FileName::Wal(1), 2 * BLOCK).unwrap_err();
    assert!(e.is_corruption() && e.to_string().contains("expected at most"), "{e}");
}

/// A file system that calls all holes.
struct Forgetful(FileRef);

impl File for Forgetful {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> lithify_env::IoResult<usize> {
        self.0.read_at(buf, offset)
    }
    fn write_at(&self, bytes: &[u8], offset: u64) -> lithify_env::IoResult<usize> {
        self.0.write_at(bytes, offset)
    }
    fn sync_data(&self) -> lithify_env::IoResult<()> {
        self.0.sync_data()
    }
    fn sync_all(&self) -> lithify_env::IoResult<()> {
        self.0.sync_all()
    }
    fn set_len(&self, len: u64) -> lithify_env::IoResult<()> {
        self.0.set_len(len)
    }
    fn len(&self) -> lithify_env::IoResult<u64> {
        self.0.len()
    }
    fn allocate(&self, offset: u64, len: u64) -> lithify_env::IoResult<()> {
        self.0.allocate(offset, len)
    }
    fn alignment(&self) -> usize {
        self.0.alignment()
    }
    fn advise(&self, offset: u64, len: u64, advice: lithify_env::Advice) {
        self.0.advise(offset, len, advice);
    }
    fn path(&self) -> &std::path::Path {
        self.0.path()
    }
    fn links(&self) -> lithify_env::IoResult<u64> {
        self.0.links()
    }
    fn next_data(&self, _: u64) -> lithify_env::IoResult<Option<Range<u64>>> {
        Ok(None)
    }
}

/// OpenZFS up to 2.2.1 may call a hole what is not yet on disk: acknowledged writes are not zeros.
#[test]
fn logs_of_usual_length_do_not_depend_on_what_is_said_of_holes() {
    let dir = dir_on(Arc::new(MemFs::new()));
    let file = dir.open_file(FileName::Wal(1), OpenOpts::write().or_create()).unwrap();
    file.write_at(b"acknowledged", 90_000).unwrap();
    file.set_len(WHOLE_MAX).unwrap();
    let forgetful: FileRef = Arc::new(Forgetful(file));
    let read = read(&forgetful, u64::MAX, u64::MAX).unwrap();
    assert_eq!(&read.front[90_000..90_012], b"acknowledged");
}

#[test]
fn a_file_that_is_cut_meanwhile_ends_there() {
    let parts = || vec![0..2 * BLOCK, 9 * BLOCK..10 * BLOCK, 20 * BLOCK..21 * BLOCK];
    for (cut, front, behind) in [
        (0, 0, vec![]),
        (BLOCK + 7, BLOCK + 7, vec![]),
        (5 * BLOCK, 2 * BLOCK, vec![0]),
        (9 * BLOCK + 7, 2 * BLOCK, vec![7]),
        (20 * BLOCK, 2 * BLOCK, vec![BLOCK, 0]),
    ] {
        let dir = dir_on(Arc::new(MemFs::new()));
        let file = dir.open_file(FileName::Wal(1), OpenOpts::write().or_create()).unwrap();
        file.set_len(cut).unwrap();
        let read = load(&file, parts(), 30 * BLOCK).unwrap();
        assert_eq!((read.len(), read.front.len() as u64), (cut, front), "cut at {cut}");
        let lengths: Vec<_> = read.behind.iter().map(|s| s.bytes.len() as u64).collect();
        assert_eq!(lengths, behind, "cut at {cut}");
    }
}
