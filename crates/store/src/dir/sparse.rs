//! Files that take less of the disk than their length says: reading only what is there.
//!
//! Keeps: memory in proportion to what a file takes on disk, whatever its length. Leaves to others:
//! what zeros mean.

use lithify_base::{Error, Result, memory};
use lithify_env::{File, FileRef, OpenOpts, read_full_at};
use lithify_format::wal::record::BLOCK_SIZE;
use lithify_format::wal::{LogBytes, Stretch};

use super::{Dir, FileName, OrTyped};

/// Up to this length, in bytes, a part of a file may be all holes: files of zeros are legal, and this
/// much of them costs nothing.
pub(crate) const HOLES_FREE: u64 = 1 << 20;
/// Beyond that at least one byte in so many must be on disk.
const HOLES_SHARE: u64 = 4;
/// Shorter holes in logs are read like everything else, bytes.
const HOLE_MIN: u64 = 2 * BLOCK_SIZE as u64;

/// Refuses to read `len` bytes from `offset` at once if most of them are not on disk.
///
/// # Errors
/// Corruption, with the way out.
pub(crate) fn check_holes(file: &dyn File, offset: u64, len: u64) -> Result<()> {
    if len <= HOLES_FREE {
        return Ok(());
    }
    let end = offset.saturating_add(len);
    let (mut at, mut there) = (offset, 0);
    while at < end && there < len / HOLES_SHARE {
        let Some(data) = file.next_data(at).or_typed()? else { break };
        there += data.end.min(end).saturating_sub(data.start.min(end));
        at = data.end;
    }
    if there >= len / HOLES_SHARE {
        return Ok(());
    }
    Err(Error::corruption(format!(
        "of {len} bytes that are to be read at once only {there} are on disk, the rest are holes: no file \
         of a database is like that; if they are right, make a copy without holes \
         (`cp --sparse=never`) and use that"
    ))
    .at(offset))
}

/// The content of a log or manifest, with long holes left out.
#[derive(Debug, Default)]
pub(crate) struct Sparse {
    front: Vec<u8>,
    behind: Vec<Stretch>,
    len: u64,
}

impl Sparse {
    /// All of it.
    pub(crate) fn bytes(&self) -> LogBytes<'_> {
        LogBytes::sparse(&self.front, &self.behind, self.len)
    }
    /// Length of the file.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }
}

impl Dir {
    /// What a file takes of the disk, in bytes, as far as holes are known; 0 if it is absent.
    ///
    /// # Errors
    /// Io.
    pub fn bytes_on_disk(&self, file: FileName) -> Result<u64> {
        let opened = match self.fs().open(&self.path_of(file), OpenOpts::read()) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(0),
            other => other.or_typed()?,
        };
        let (mut at, mut bytes) = (0, 0);
        while let Some(data) = opened.next_data(at).or_typed()? {
            bytes += data.end - data.start;
            at = data.end;
        }
        Ok(bytes)
    }

    /// The whole content of a log or manifest; `None` if it is absent.
    ///
    /// # Errors
    /// Corruption if it has more than `limit` bytes on disk, `LimitExceeded` if there is no memory for
    /// them, Io.
    pub(crate) fn read_sparse(&self, file: FileName, limit: u64) -> Result<Option<Sparse>> {
        let path = self.path_of(file);
        let opened = match self.fs().open(&path, OpenOpts::read()) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            other => other.or_typed()?,
        };
        read(&opened, limit).map(Some).map_err(|e| e.in_file(path.display()))
    }
}

fn read(file: &FileRef, limit: u64) -> Result<Sparse> {
    let len = file.len().or_typed()?;
    let mut stretches: Vec<(u64, u64)> = Vec::new();
    let (mut at, mut bytes) = (0, 0);
    while at < len {
        let Some(data) = file.next_data(at).or_typed()? else { break };
        at = data.end;
        let block = BLOCK_SIZE as u64;
        let (start, end) = (data.start / block * block, data.end.next_multiple_of(block).min(len));
        match stretches.last_mut() {
            Some((_, last)) if start < *last + HOLE_MIN => *last = end.max(*last),
            None if start < HOLE_MIN => stretches.push((0, end)),
            _ => stretches.push((start, end)),
        }
        bytes = stretches.iter().map(|(start, end)| end - start).sum();
        if bytes > limit {
            break;
        }
    }
    if bytes > limit {
        let what = format!("has {bytes} bytes or more, expected at most {limit}");
        return Err(Error::corruption(what));
    }
    let mut out = Sparse { len, ..Sparse::default() };
    for (start, end) in stretches {
        let mut bytes = memory::zeroed((end - start) as usize, "a file")?;
        let count = read_full_at(&**file, &mut bytes, start).or_typed()?;
        if count < bytes.len() {
            // Cut meanwhile.
            bytes.truncate(count);
            out.len = start + count as u64;
        }
        match start {
            0 => out.front = bytes,
            start => out.behind.push(Stretch { start, bytes }),
        }
    }
    Ok(out)
}
