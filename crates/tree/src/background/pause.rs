//! Holding background work back for a while: no flush and no compaction runs, so that files do not
//! change under a backup of the file system, or the disk is left to others.

use lithify_base::{Result, shown_path};
use lithify_control::Event;
use lithify_env::sync::atomic::Ordering;

use crate::shell::Shell;

/// While it lives, no flush and no compaction starts. Pauses nest: work goes on when the last one is
/// dropped.
#[must_use = "the background work goes on when this is dropped"]
pub struct BackgroundPause {
    shell: Shell,
}

impl Drop for BackgroundPause {
    fn drop(&mut self) {
        self.shell.shared.background.pauses.fetch_sub(1, Ordering::SeqCst);
        self.shell.tell_from_anywhere(|shell| shell.tell_paused());
    }
}

impl std::fmt::Debug for BackgroundPause {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "BackgroundPause({})", shown_path(self.shell.path()))
    }
}

impl Shell {
    /// Starts no more jobs, and waits for those at work.
    pub fn pause(&self) -> Result<BackgroundPause> {
        self.check_caller()?;
        self.check_open()?;
        self.shared.background.pauses.fetch_add(1, Ordering::SeqCst);
        let pause = BackgroundPause { shell: self.clone() };
        self.tell_paused();
        self.wait_until(None, |shell| {
            // The core knows first of a job that begins, and is the first to forget one.
            let works = |f: &Shell| f.core().is_working() || !f.at_work().is_empty();
            // Jobs of a family that was dropped end by themselves, and take their files with them.
            let dropped = shell.shared.dropped_families();
            Ok((!shell.families().iter().chain(&dropped).any(works)).then_some(()))
        })?;
        Ok(pause)
    }

    /// A close is not held up: what no log holds has to be flushed.
    pub(crate) fn tell_paused(&self) {
        if !self.shared.is_read_only_handle() {
            for family in self.families() {
                family.drive_by(|| Event::Paused {
                    on: self.shared.background.pauses.load(Ordering::SeqCst) > 0
                        && family.check_open().is_ok(),
                });
            }
        }
    }
}
