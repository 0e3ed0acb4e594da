//! The tables of a database, one by one.

pub use lithify_store::live_file::LiveFile;

use crate::shell::Shell;

impl Shell {
    /// The tables of this family as of now.
    pub fn live_files(&self) -> Vec<LiveFile> {
        let sv = self.super_version();
        let files = sv.tree.version.files();
        files.map(|file| LiveFile::new(&self.context().dir, self.name(), file)).collect()
    }
}
