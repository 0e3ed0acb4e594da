//! Files that come from elsewhere: a table gets a second name (a hard link), or where that is not
//! possible a copy, as every other file does.
//!
//! Keeps: what was copied is synced; a source that ends too early is corruption, never a shorter copy.
//! Leaves to others: syncing what was linked, and the directory.

use lithify_base::{Error, Result};
use lithify_env::{File, FileRef, OpenOpts, read_full_at, write_all_at};
use lithify_files::dir::{Dir, FileName, OrTyped, typed};

/// Bytes read at a time.
const CHUNK: usize = 1 << 20;

/// How tables came to their new names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Placed {
    /// Tables that share their bytes with the source.
    pub linked: u64,
    /// Tables that were copied, since they could not be linked.
    pub copied: u64,
}

/// Gives a table a second name, or copies it where that is not possible; the table.
pub(crate) fn link_table(
    from: &Dir,
    to: &Dir,
    number: u64,
    placed: &mut Placed,
) -> Result<FileRef> {
    let (from, name, opened) = from.open_table_there(number, OpenOpts::read())?;
    // A second name has the permissions of the first: where others may come to it, a copy has fewer.
    let linked = match to.is_more_open_than(&from)? {
        true => Ok(None),
        false => to.fs().link(&from.path_of(name), &to.path_of(name)).map(Some),
    };
    match linked {
        Ok(Some(())) => {
            // Between the two calls the name may have been given to something else.
            let same = to.open_file(name, OpenOpts::read()).and_then(|made| {
                let replaced = Error::corruption("the table was replaced while it was linked");
                match made.identity() == opened.identity() {
                    true => Ok(()),
                    false => Err(replaced.in_file(from.path_of(name).display())),
                }
            });
            if let Err(error) = same {
                to.remove(name)?;
                return Err(error);
            }
            placed.linked += 1;
        }
        // Two families, or two slices, may share a file.
        Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {}
        Err(e) if !cannot_link(e.kind()) => return Err(typed(e)),
        Ok(None) | Err(_) => match to.fs().create(&to.path_of(name), OpenOpts::write()) {
            Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {}
            out => {
                copy_bytes(&opened, &*out.or_typed()?, None)?;
                placed.copied += 1;
            }
        },
    }
    Ok(opened)
}

/// Another file system, or one without hard links.
pub(crate) fn cannot_link(kind: std::io::ErrorKind) -> bool {
    use std::io::ErrorKind::{CrossesDevices, PermissionDenied, TooManyLinks, Unsupported};
    matches!(kind, CrossesDevices | PermissionDenied | TooManyLinks | Unsupported)
}

/// Copies the first `bytes` of a file, or all of it, to a new one of that name.
pub(crate) fn copy(from: &Dir, to: &Dir, name: FileName, bytes: Option<u64>) -> Result<()> {
    let opened = from.open_file(name, OpenOpts::read())?;
    copy_bytes(&opened, &*to.create_file(name, OpenOpts::write())?, bytes)
}

/// Copies the first `bytes` of a file, or all of it, into `out`, which is empty, and syncs that.
pub(crate) fn copy_bytes(opened: &FileRef, out: &dyn File, bytes: Option<u64>) -> Result<()> {
    let total = match bytes {
        Some(bytes) => bytes,
        None => opened.len().or_typed()?,
    };
    in_chunks(opened, total, |chunk, at| write_all_at(out, chunk, at).or_typed())?;
    out.sync_all().or_typed()
}

/// Reads the first `bytes` of a file, and hands on each chunk with its offset.
///
/// # Errors
/// Io; Corruption if the file is shorter; what `take` gives.
pub(crate) fn in_chunks(
    file: &FileRef,
    bytes: u64,
    mut take: impl FnMut(&[u8], u64) -> Result<()>,
) -> Result<()> {
    let mut chunk = vec![0; CHUNK.min(usize::try_from(bytes).unwrap_or(CHUNK))];
    let mut at = 0;
    while at < bytes {
        let want = chunk.len().min(usize::try_from(bytes - at).unwrap_or(usize::MAX));
        let count = read_full_at(&**file, &mut chunk[..want], at).or_typed()?;
        if count < want {
            return Err(Error::corruption("the file is shorter than it was")
                .in_file(file.path().display())
                .at(at));
        }
        take(&chunk[..want], at)?;
        at += want as u64;
    }
    Ok(())
}
