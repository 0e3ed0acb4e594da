//! What stands between a database and its file system: few tables open at a time, and a watch on calls
//! that hang.

use std::path::Path;

use lithify_env::sync::Arc;
use lithify_env::{CappedFs, Env, FsRef, SharedFs, WatchedFs};
use lithify_journal::files::FileName;

use lithify_settings::Settings;

/// Fewest table files that are kept open, however few the process may have.
const OPEN_FILES_MIN: u64 = 16;

/// What stands between a database and its file system.
#[derive(Clone, Default)]
pub struct Files {
    /// Keeps few tables open, if anything limits them.
    pub capped: Option<CappedFs>,
    /// Knows which calls hang; not for a handle that only reads, which has no log to tell it in.
    pub watched: Option<WatchedFs>,
}

/// What is done with the files of a directory.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Handle {
    /// They are read.
    Reads,
    /// Another process deletes what is read: no table can be closed and opened again. Its file system
    /// sees to that ([`follower_fs`]).
    Follows,
    /// They are read and written.
    Writes,
}

/// `env` with few tables open at a time, and watched.
pub fn layered(mut env: Env, s: &Settings, handle: Handle) -> (Env, Files) {
    let mut files = Files::default();
    if handle == Handle::Writes {
        let watched = WatchedFs::new(env.fs, env.rt.clone());
        env.fs = Arc::new(watched.clone());
        files.watched = Some(watched);
    }
    let own = || s.max_open_files.map(|most| most as usize);
    if let Some(most) = own().or_else(|| share_of_process(&env.fs))
        && handle != Handle::Follows
    {
        let capped = CappedFs::new(env.fs, most, is_table);
        env.fs = Arc::new(capped.clone());
        files.capped = Some(capped);
    }
    (env, files)
}

/// How many tables may be open if nothing else is said: most of what the process may open.
fn share_of_process(fs: &FsRef) -> Option<usize> {
    let most = (fs.open_files_max()? / 4 * 3).max(OPEN_FILES_MIN);
    Some(usize::try_from(most).unwrap_or(usize::MAX))
}

/// `fs` with each table open once, and for as long as a view has it.
pub fn follower_fs(fs: FsRef) -> SharedFs {
    let most = share_of_process(&fs).unwrap_or(usize::MAX);
    SharedFs::new(fs, most, is_table)
}

/// Tables are closed and opened again: they never change, and their names stay while they are needed.
fn is_table(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).and_then(FileName::parse);
    matches!(name, Some(FileName::Table(_) | FileName::LevelDbTable(_)))
}
