//! The end of one family while the database goes on.

use lithify_control::{Core, Event};
use lithify_env::sync::Arc;
use lithify_env::sync::atomic::Ordering;
use lithify_lsm::{FileRef, Version};
use lithify_store::manifest::translate;

use crate::family::OpenFamily;
use crate::settings::translate::core_options;
use crate::shell::Shell;
use lithify_views::super_version::{SuperVersion, Tree};

impl Shell {
    /// The edit that drops this family is durable: nothing of it is committed any more.
    pub(crate) fn set_dropped(&self) {
        self.family.gone.store(true, Ordering::SeqCst);
        self.set_over();
        self.family.gate.refuse(self.family.dropped_error());
        let is_me = |family: &mut Arc<OpenFamily>| Arc::ptr_eq(family, &self.family);
        let gone: Vec<_> = self.shared.families.lock().extract_if(.., is_me).collect();
        self.shared.dropped.lock().extend(gone);
    }

    /// Lets go of all that a dropped family held. Its jobs end, readers that come find nothing, and its
    /// files go once nothing pins them.
    pub(crate) fn empty(&self) {
        self.drive(Event::Closing);
        let sv = self.super_version();
        let files: Vec<FileRef> = sv.tree.version.files().cloned().collect();
        let nothing = Version::empty(self.family.order.clone());
        let options = core_options(&self.family.settings.load());
        let mut core = Core::new(options, nothing.clone(), translate::FIRST_EPOCH);
        core.halt(self.family.dropped_error());
        *self.core() = core;
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
        self.shared.progressed();
    }
}
