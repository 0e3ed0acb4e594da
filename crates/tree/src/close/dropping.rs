//! The end of one family while the database goes on.
//!
//! A family that was dropped is read no more, but for callers that asked before to read on ([`KeptReads`]): then what it
//! held stays as it was at the drop, until the last of them has let go of it.

use lithify_base::Result;
use lithify_control::{Core, Event};
use lithify_env::sync::Arc;
use lithify_env::sync::atomic::Ordering;
use lithify_lsm::{FileRef, Version};
use lithify_store::manifest::translate;

use crate::family::{Afterlife, OpenFamily};
use crate::settings::translate::core_options;
use crate::shell::Shell;
use lithify_views::super_version::{SuperVersion, Tree};

/// While it lives, its family may be read even after it was dropped.
#[must_use = "the family is read no more after its drop when this is dropped"]
pub struct KeptReads {
    shell: Shell,
}

impl KeptReads {
    /// Whether the family was dropped.
    pub fn is_dropped(&self) -> bool {
        self.shell.is_dropped()
    }
}

impl Drop for KeptReads {
    fn drop(&mut self) {
        let mut afterlife = self.shell.family.views.afterlife.lock();
        afterlife.readers -= 1;
        self.shell.let_go_of_dropped(&mut afterlife, false);
        let over = afterlife.over;
        drop(afterlife);
        if over && !self.shell.shared.background.progress.closed.load(Ordering::SeqCst) {
            self.shell.tell_from_anywhere(|shell| shell.shared.sweep());
        }
    }
}

impl std::fmt::Debug for KeptReads {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "KeptReads({})", self.shell.name())
    }
}

impl Shell {
    /// The edit that drops this family is durable: nothing of it is committed any more.
    pub(crate) fn set_dropped(&self) {
        self.family.gone.store(true, Ordering::SeqCst);
        self.set_over();
        self.family.gate.refuse(self.family.dropped_error());
        self.end_stalls();
        let is_me = |family: &mut Arc<OpenFamily>| Arc::ptr_eq(family, &self.family);
        let gone: Vec<_> = self.shared.families.lock().extract_if(.., is_me).collect();
        self.shared.dropped.lock().extend(gone);
    }

    /// Nothing is written to this family any more, so nothing is held back either.
    pub(crate) fn end_stalls(&self) {
        self.family.gate.end(self.shared.resources.env.rt.now(), &self.shared.events);
    }

    /// Ends the jobs of a dropped family, and lets go of all that it held, unless someone reads on.
    pub(crate) fn empty(&self) {
        self.drive(Event::Closing);
        // Callers wait for jobs whose edits the manifest no longer takes.
        self.tell(|core, _| core.halt(self.family.dropped_error()));
        let nothing = Version::empty(self.family.order.clone());
        let options = core_options(&self.family.settings.load());
        let mut core = Core::new(options, nothing, translate::FIRST_EPOCH);
        core.halt(self.family.dropped_error());
        let mut now = self.core();
        // Its jobs no longer take from the disk and the machine that all families share.
        core.take_place_of(&now);
        self.shared.background.disk.over(&mut core, |_| ());
        *now = core;
        drop(now);
        let mut afterlife = self.family.views.afterlife.lock();
        afterlife.begun = true;
        self.let_go_of_dropped(&mut afterlife, false);
        drop(afterlife);
        self.shared.progressed();
    }

    /// Lets go of what a dropped family held, if none reads on, or `in_any_case`: readers that come find nothing,
    /// and its files go once nothing pins them.
    fn let_go_of_dropped(&self, afterlife: &mut Afterlife, in_any_case: bool) {
        if afterlife.over || !(in_any_case || afterlife.begun && afterlife.readers == 0) {
            return;
        }
        afterlife.over = true;
        let sv = self.super_version();
        let files: Vec<FileRef> = sv.tree.version.files().cloned().collect();
        let nothing = Version::empty(self.family.order.clone());
        let tree = Arc::new(Tree::new(nothing, None));
        {
            let _one_at_a_time = self.family.views.lock.lock();
            self.family.views.current.store(Arc::new(SuperVersion {
                no: u64::MAX,
                mems: Vec::new(),
                tree,
            }));
        }
        drop(sv);
        self.family.work.obsolete.lock().extend(files);
    }

    /// The database is closed: nothing is read any more.
    pub(crate) fn end_reads_of_dropped(&self) {
        self.let_go_of_dropped(&mut self.family.views.afterlife.lock(), true);
    }
    /// True once a dropped family holds nothing but files that are on their way out.
    pub(crate) fn is_let_go(&self) -> bool {
        self.family.views.afterlife.lock().over
    }
    /// True if a dropped family is still read.
    pub(crate) fn reads_on(&self) -> bool {
        self.is_dropped()
            && !self.shared.background.progress.closed.load(Ordering::SeqCst)
            && self.family.views.afterlife.lock().readers > 0
    }

    /// From now on this family may be read after it was dropped, as it was then, until the guard is dropped or the
    /// database closed. Such guards nest.
    ///
    /// # Errors
    /// `NotFound` if it was dropped already, `ShuttingDown` if the database is closed.
    pub fn keep_reads(&self) -> Result<KeptReads> {
        let mut afterlife = self.family.views.afterlife.lock();
        self.check_open()?;
        afterlife.readers += 1;
        drop(afterlife);
        Ok(KeptReads { shell: self.clone() })
    }
}
