//! Keeping files: no table, log or manifest of a database is deleted for a while, so that another program
//! can copy them; and deleting at once what nothing reads any more.

use std::time::Duration;

use lithify_base::{Result, shown_path};
use lithify_env::sync::Arc;
use lithify_env::sync::atomic::Ordering;

use crate::shared::Shared;
use crate::shell::Shell;

/// How long a look for files that nothing reads waits for jobs that are about to end, which let go of some.
const JOBS_END: Duration = Duration::from_secs(5);
/// How long it waits without such a job: what is left then, readers hold.
const SOON: Duration = Duration::from_millis(100);
/// How often it looks meanwhile.
const LOOK_EVERY: Duration = Duration::from_millis(1);

/// While it lives, no file of the database is deleted. Such guards nest: what has become obsolete goes
/// when the last one is dropped, and what is left at a close with the next open.
#[must_use = "files are deleted again when this is dropped"]
pub struct KeptFiles {
    shell: Shell,
}

impl Drop for KeptFiles {
    fn drop(&mut self) {
        self.shell.shared.background.keeps.fetch_sub(1, Ordering::SeqCst);
        self.shell.tell_from_anywhere(|shell| shell.shared.sweep());
    }
}

impl std::fmt::Debug for KeptFiles {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "KeptFiles({})", shown_path(self.shell.path()))
    }
}

impl Shared {
    /// True while a caller keeps files.
    pub(crate) fn keeps_files(&self) -> bool {
        self.background.keeps.load(Ordering::SeqCst) > 0
    }

    /// Deletes what nothing reads any more, unless files are to stay.
    pub(crate) fn sweep(self: &Arc<Shared>) {
        if self.life.read_only_handle || self.background.pauses.load(Ordering::SeqCst) > 0 {
            return;
        }
        self.sweep_logs();
        for family in self.families() {
            family.sweep_tables();
            family.sweep_litter();
        }
        self.sweep_dropped();
    }
}

impl Shell {
    /// Deletes no file until the guard is dropped.
    ///
    /// # Errors
    /// `ShuttingDown` if the database is closed.
    pub fn keep_files(&self) -> Result<KeptFiles> {
        self.check_open()?;
        self.shared.background.keeps.fetch_add(1, Ordering::SeqCst);
        Ok(KeptFiles { shell: self.clone() })
    }

    /// Deletes files that are not needed any more, of all families, dropped ones included, and waits a
    /// moment for jobs that are about to let go of some. What readers pin stays.
    ///
    /// # Errors
    /// `ShuttingDown` if the database is closed.
    pub fn delete_obsolete_files(&self) -> Result<()> {
        self.check_caller()?;
        self.check_open()?;
        let start = self.shared.resources.env.rt.now();
        let mut idle_since = start;
        loop {
            self.shared.sweep();
            let dropped = self.shared.dropped_families();
            let all = self.families().into_iter().chain(dropped);
            let left: Vec<Shell> = all.filter(|family| family.obsolete_bytes() > 0).collect();
            let now = self.shared.resources.env.rt.now();
            if self.shared.resources.alive.any() {
                idle_since = now;
            }
            let over = now >= start + JOBS_END || now >= idle_since + SOON;
            if left.is_empty() || self.shared.keeps_files() || over {
                return Ok(());
            }
            let never = lithify_env::Ticket::new();
            self.shared.resources.env.rt.park(&never, Some(now + LOOK_EVERY));
        }
    }
}
