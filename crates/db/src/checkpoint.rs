//! Checkpoints: a second, independent database of the present state.

use std::path::Path;

use lithify_base::Result;
use lithify_env::sync::atomic::Ordering;
use lithify_store::checkpoint::Checkpoint;
use lithify_store::dir::Dir;

use crate::open::manifest_state;
use crate::shell::Shell;

impl Shell {
    /// Makes a copy of the present state in `path`. The memtable is flushed first, so that the
    /// tables hold everything; they are pinned while they are linked.
    pub(crate) fn checkpoint(&self, path: &Path) -> Result<()> {
        self.flush()?;
        let sv = self.super_version();
        let last_seq = self.published.load(Ordering::Acquire);
        let manifest = self.next_file();
        let workshop = self.workshop();
        let state =
            manifest_state(&sv.tree.version, &workshop.db_id, workshop.peek_next_file(), last_seq);
        let copy = Checkpoint {
            state,
            manifest: manifest.0,
            logs: Vec::new(),
            options: None,
            db_id: workshop.db_id.clone(),
            unsynced: false,
        };
        copy.write(&self.dir, &Dir::new(self.env.fs.clone(), path), &mut |_| {}).map(drop)
    }
}
