//! Directories for tests, here and in the rooms above.

use std::path::Path;
use std::sync::Arc;

use lithify_env::{FsRef, MemFs, OpenOpts};

use crate::dir::{Dir, FileName};

/// A directory in memory.
pub fn mem_dir() -> Dir {
    dir_on(Arc::new(MemFs::new()))
}

/// The directory `/db` of a file system.
pub fn dir_on(fs: FsRef) -> Dir {
    let dir = Dir::new(fs, "/db");
    dir.fs().create_dir_all(Path::new("/db")).unwrap();
    dir
}

/// The bytes of a file.
pub fn bytes_of(dir: &Dir, name: FileName) -> Vec<u8> {
    dir.read_whole(name, u64::MAX).unwrap().unwrap()
}

/// Replaces the bytes of a file.
pub fn overwrite(dir: &Dir, name: FileName, bytes: &[u8]) {
    let file = dir.open_file(name, OpenOpts::write().or_create()).unwrap();
    file.set_len(0).unwrap();
    lithify_env::write_all_at(&*file, bytes, 0).unwrap();
}
