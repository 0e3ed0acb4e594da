//! Whether the directory is still ours, which is asked before anything reaches stable storage.

use std::path::Path;

use lithify_base::{Error, ErrorKind, Result, shown_path};
use lithify_env::sync::Arc;
use lithify_journal::files::FileName;
use lithify_store::manifest::ManifestLog;

use crate::shared::Shared;

impl Shared {
    /// Whether the directory is still ours: asked before every commit and before whatever reaches
    /// stable storage. A database that has lost it never writes again.
    pub(crate) fn check_owner(self: &Arc<Shared>) -> Result<()> {
        let lock = self.life.lock.lock().clone();
        let Some(lock) = lock.filter(|lock| !lock.is_owner()) else { return Ok(()) };
        let what = "the lock file is not the one this handle took: it was removed, and another may \
                    have the database open by now; nothing more is written here";
        Err(self.fence(what, lock.path()))
    }

    /// The same where the lock can't tell, because its file was put back or the file system has no
    /// identities to compare: every open leaves a manifest of its own in CURRENT.
    pub(crate) fn check_epoch(self: &Arc<Shared>, manifest: &ManifestLog) -> Result<()> {
        // If that is unknown, the lock's word stands.
        match manifest.lost().unwrap_or(None) {
            Some(what) => Err(self.fence(what, &self.resources.dir.path_of(FileName::Current))),
            None => Ok(()),
        }
    }

    fn fence(self: &Arc<Shared>, what: &str, path: &Path) -> Error {
        let error = Error::new(ErrorKind::Fenced, what).in_file(shown_path(path));
        self.go_read_only(error.clone());
        error
    }
}
