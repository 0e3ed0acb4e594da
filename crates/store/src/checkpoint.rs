//! A consistent copy of a database at one moment, in a new directory.
//!
//! Tables are immutable, so they get a second name (a hard link) or, on another file system, a
//! copy; logs grow, so their first bytes are copied; the manifest is written anew. The id stays
//! the same, because block sums are bound to it through the files' base contexts.
//!
//! Keeps: CURRENT appears last. A checkpoint that was interrupted has none, opens as no database,
//! and is refused as a target until someone removes it.
//! Leaves to others: keeping the files alive meanwhile, and writing out the logs before.

use lithify_base::{Error, ErrorKind, Result};
use lithify_env::{File, FileRef, OpenOpts, read_full_at, write_all_at};
use lithify_format::manifest::ManifestState;

use crate::dir::{Dir, FileName, OrTyped};
use crate::manifest::ManifestLog;

/// Bytes copied at a time.
const CHUNK: usize = 1 << 20;

/// What goes into a checkpoint.
#[derive(Clone, Debug)]
pub struct Checkpoint {
    /// The tree and the counters. Every file it names must be pinned.
    pub state: ManifestState,
    /// Number of the new manifest.
    pub manifest: u64,
    /// Logs to copy, with the number of bytes of each that count.
    pub logs: Vec<(u64, u64)>,
    /// The options file to copy, if there is one.
    pub options: Option<u64>,
    /// The database id.
    pub db_id: String,
    /// The tables may never have been synced: someone copied them here. Ours always were.
    pub unsynced: bool,
}

impl Checkpoint {
    /// Writes the checkpoint to `to`, which must be absent or empty. `watch` is told of the bytes of
    /// each table that is there.
    ///
    /// # Errors
    /// InvalidArgument if `to` has something in it; Io and NoSpace. What was written stays.
    pub fn write(self, from: &Dir, to: &Dir, watch: &mut dyn FnMut(u64)) -> Result<Placed> {
        to.create()?;
        if let Some(entry) = to.list()?.first() {
            return Err(Error::invalid(format!(
                "a checkpoint needs a new directory, and this one has `{}` in it",
                entry.name
            ))
            .in_file(to.path().display()));
        }
        let mut placed = Placed::default();
        for file in self.state.families.values().flat_map(|f| f.files.values()) {
            let table = link_table(from, to, file.backing.unwrap_or(file.number), &mut placed)?;
            if self.unsynced {
                table.sync_all().or_typed()?;
            }
            watch(file.size);
        }
        for &(number, bytes) in &self.logs {
            copy(from, to, FileName::Wal(number), Some(bytes))?;
        }
        if let Some(number) = self.options {
            copy(from, to, FileName::Options(number), None)?;
        }
        to.write_identity(&self.db_id)?;
        // Syncs the directory, and so the names of everything above, before CURRENT appears.
        ManifestLog::create(to, self.manifest, self.state).map(|_| placed)
    }
}

/// How the tables came to their new names.
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
    let (name, opened) = from.open_table(number, OpenOpts::read())?;
    match from.fs().link(&from.path_of(name), &to.path_of(name)) {
        Ok(()) => placed.linked += 1,
        // Two families, or two slices, may share a file.
        Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {}
        Err(e) if cannot_link(e.kind()) => {
            copy_bytes(&opened, &*to.create_file(name, OpenOpts::write())?, None)?;
            placed.copied += 1;
        }
        Err(e) => return Err(crate::dir::typed(e)),
    }
    Ok(opened)
}

/// Another file system, or one without hard links.
pub(crate) fn cannot_link(kind: std::io::ErrorKind) -> bool {
    use std::io::ErrorKind::{CrossesDevices, PermissionDenied, TooManyLinks, Unsupported};
    matches!(kind, CrossesDevices | PermissionDenied | TooManyLinks | Unsupported)
}

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
    let mut chunk = vec![0; CHUNK];
    let mut at = 0;
    while at < total {
        let want = chunk.len().min(usize::try_from(total - at).unwrap_or(usize::MAX));
        let count = read_full_at(&**opened, &mut chunk[..want], at).or_typed()?;
        if count < want {
            return Err(Error::new(ErrorKind::Corruption, "the file is shorter than it was")
                .in_file(opened.path().display())
                .at(at));
        }
        write_all_at(out, &chunk[..want], at).or_typed()?;
        at += want as u64;
    }
    out.sync_all().or_typed()
}

#[cfg(test)]
mod tests;
