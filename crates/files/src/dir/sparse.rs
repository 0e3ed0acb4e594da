//! Files that take less of the disk than their length says: reading only what is there.
//!
//! Keeps: what is read at once is at most what a block of the bytes on disk may decompress to: a hole
//! is one more compression ([`Allowance`]). A log or manifest takes [`WHOLE_MAX`] of memory or
//! [`WIDENED_MAX`] times what it takes on disk, whichever is more, whatever its length. What a copy
//! with holes (`cp --sparse=always`) makes of a sound file stays readable within these bounds.
//! Leaves to others: what zeros mean.

use std::ops::Range;

use lithify_base::{Error, Result, memory};
use lithify_env::{File, FileRef, OpenOpts, read_full_at};
use lithify_format::limits::{MAX_BLOCK, MAX_META};
use lithify_journal::wal::record::BLOCK_SIZE;
use lithify_journal::wal::{LogBytes, Stretch};

use super::{Dir, FileName, OrTyped};

/// Up to this length, in bytes, a log or manifest is read as it is. Nothing is asked about holes: some
/// file systems (OpenZFS up to 2.2.1) may call a hole what was written a moment ago.
const WHOLE_MAX: u64 = 32 << 20;
/// Longer ones take so many times their bytes on disk. A block of a log that has a record begins with
/// its header, so that at least a page of 4 KiB of 32 KiB is on disk: no sound log takes more.
const WIDENED_MAX: u64 = BLOCK_SIZE as u64 / 4096;

/// How much of a read may be holes.
#[derive(Clone, Copy, Debug)]
pub struct Allowance {
    /// Up to this length, in bytes, all of it.
    free: u64,
    /// Beyond that at least one byte in so many must be on disk.
    share: u64,
}

impl Allowance {
    /// For data: as much as a data block may decompress to. Worst case: a block of 256 MiB of holes is
    /// read where a few KiB are on disk, as it could be of a compressed one.
    pub const DATA: Allowance = Allowance { free: MAX_BLOCK as u64, share: 256 };
    /// For what is kept, and small files: as much as a block of an index may decompress to. Worst case:
    /// 32 MiB where a few KiB are on disk.
    pub const META: Allowance = Allowance { free: MAX_META as u64, share: 64 };
    /// For what only streams by, and takes time instead of memory. Worst case: a file of 4 GiB of
    /// holes is read, which takes a few seconds, and written by a restore.
    pub const STREAMED: Allowance = Allowance { free: 4 << 30, share: 4 };

    /// Refuses to read `len` bytes from `offset` if too few of them are on disk.
    ///
    /// # Errors
    /// Corruption, with the way out; Io.
    pub fn check(self, file: &dyn File, offset: u64, len: u64) -> Result<()> {
        if len <= self.free {
            return Ok(());
        }
        let mut there = 0;
        for data in stretches(file, offset..offset.saturating_add(len)) {
            let data = data?;
            there += data.end - data.start;
            if there >= len / self.share {
                return Ok(());
            }
        }
        Err(Error::corruption(format!(
            "of {len} bytes that are to be read at once only {there} are on disk, the rest are holes, \
             which is out of all proportion; {WAY_OUT}"
        ))
        .at(offset))
    }
}

/// What makes a file with holes readable whatever their share.
const WAY_OUT: &str =
    "if the zeros are right, make a copy without holes (`cp --sparse=never`) and use that";

/// The parts of `range` that may hold anything but zeros, ascending.
fn stretches(file: &dyn File, range: Range<u64>) -> impl Iterator<Item = Result<Range<u64>>> {
    let mut at = range.start;
    std::iter::from_fn(move || {
        if at >= range.end {
            return None;
        }
        let data = match file.next_data(at).or_typed() {
            Ok(data) => data.filter(|data| data.start < range.end),
            Err(e) => {
                at = range.end;
                return Some(Err(e));
            }
        };
        at = data.as_ref().map_or(range.end, |data| data.end);
        data.map(|data| Ok(data.start..data.end.min(range.end)))
    })
}

/// The content of a log or manifest, with holes left out.
#[derive(Debug, Default)]
pub struct Sparse {
    front: Vec<u8>,
    behind: Vec<Stretch>,
    len: u64,
}

impl Sparse {
    /// All of it.
    pub fn bytes(&self) -> LogBytes<'_> {
        LogBytes::sparse(&self.front, &self.behind, self.len)
    }
    /// The content of an open file up to `end`, and zeros for the rest of the block that this lies in.
    pub(crate) fn read(file: &FileRef, limit: u64, end: u64) -> Result<Sparse> {
        let mut read = read(file, limit, end).map_err(|e| e.in_file(file.path().display()))?;
        let behind = read.behind.iter_mut().map(|s| (s.start, &mut s.bytes[..]));
        for (start, bytes) in std::iter::once((0, &mut read.front[..])).chain(behind) {
            let from = usize::try_from(end.saturating_sub(start)).unwrap_or(usize::MAX);
            if let Some(rest) = bytes.get_mut(from..) {
                rest.fill(0);
            }
        }
        Ok(read)
    }
    /// Length of the file, bytes.
    #[expect(clippy::len_without_is_empty, reason = "emptiness of a log is no question of its own")]
    pub fn len(&self) -> u64 {
        self.len
    }
}

impl Dir {
    /// What a file takes of the disk, in bytes, as far as holes are known; 0 if it is absent.
    ///
    /// # Errors
    /// Io.
    pub fn bytes_on_disk(&self, file: FileName) -> Result<u64> {
        let Some(opened) = self.open_if_there(file)? else { return Ok(0) };
        let lengths = stretches(&*opened, 0..u64::MAX).map(|data| data.map(|d| d.end - d.start));
        lengths.sum()
    }

    /// The whole content of a log or manifest; `None` if it is absent.
    ///
    /// # Errors
    /// Corruption if it has more than `limit` bytes on disk, or so scattered that they would take far
    /// more memory; `LimitExceeded` if there is no memory for them; Io.
    pub fn read_sparse(&self, file: FileName, limit: u64) -> Result<Option<Sparse>> {
        let Some(opened) = self.open_if_there(file)? else { return Ok(None) };
        Sparse::read(&opened, limit, u64::MAX).map(Some)
    }

    /// Opens a file to read it; `None` if it is absent.
    pub(crate) fn open_if_there(&self, file: FileName) -> Result<Option<FileRef>> {
        match self.fs().open(&self.path_of(file), OpenOpts::read()) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
            other => other.or_typed().map(Some),
        }
    }
}

fn read(file: &FileRef, limit: u64, end: u64) -> Result<Sparse> {
    let most = end.checked_next_multiple_of(BLOCK_SIZE as u64).unwrap_or(end);
    let len = file.len().or_typed()?.min(most);
    match len {
        0..=WHOLE_MAX => load(file, placed([Ok(0..len)], len, limit)?, len),
        _ => load(file, placed(stretches(&**file, 0..len), len, limit)?, len),
    }
}

/// What is to be read of a file of `len` bytes that has `data`: whole blocks, ascending.
fn placed(
    data: impl IntoIterator<Item = Result<Range<u64>>>,
    len: u64,
    limit: u64,
) -> Result<Vec<Range<u64>>> {
    let mut blocks: Vec<Range<u64>> = Vec::new();
    let (mut there, mut bytes) = (0u64, 0u64);
    for data in data {
        let data = data?;
        there += data.end - data.start;
        let block = BLOCK_SIZE as u64;
        let (start, end) = (data.start / block * block, data.end.next_multiple_of(block).min(len));
        match blocks.last_mut() {
            Some(last) if start <= last.end => {
                bytes += end.saturating_sub(last.end);
                last.end = last.end.max(end);
            }
            _ => {
                bytes += end - start;
                blocks.push(start..end);
            }
        }
        if bytes > limit {
            let what = format!("has {bytes} bytes or more, expected at most {limit}");
            return Err(Error::corruption(what));
        }
    }
    let most = WHOLE_MAX.max(there.saturating_mul(WIDENED_MAX));
    if len <= most.min(limit) {
        // Where it makes no difference, nothing depends on what is said of holes.
        return Ok(std::iter::once(0..len).collect());
    }
    if bytes > most {
        return Err(Error::corruption(format!(
            "its {there} bytes on disk are scattered over {bytes} bytes of blocks: no log is like that; \
             {WAY_OUT}"
        )));
    }
    Ok(blocks)
}

/// Reads these parts of a file of `len` bytes; fewer if it was cut meanwhile.
fn load(file: &FileRef, parts: Vec<Range<u64>>, len: u64) -> Result<Sparse> {
    let mut out = Sparse { len, ..Sparse::default() };
    for Range { start, end } in parts {
        let mut bytes = memory::zeroed((end - start) as usize, "a file")?;
        let count = read_full_at(&**file, &mut bytes, start).or_typed()?;
        let cut = count < bytes.len();
        if cut {
            bytes.truncate(count);
            out.len = match count {
                // It may end before the hole in front of this part.
                0 => file.len().or_typed()?.min(start),
                count => start + count as u64,
            };
        }
        match start {
            0 => out.front = bytes,
            start => out.behind.push(Stretch { start, bytes }),
        }
        if cut {
            // What follows is no longer there.
            break;
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests;
