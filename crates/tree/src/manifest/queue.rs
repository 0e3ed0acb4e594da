//! The queue of edits on their way into the manifest. The manifest is taken along by the job that
//! writes to it, so no lock is held meanwhile.

use std::collections::{BTreeSet, VecDeque};

use lithify_base::{CfId, Result};
use lithify_control::NewEdit;
use lithify_env::Ticket;
use lithify_env::sync::{Arc, Mutex};
use lithify_journal::manifest::WireEdit;
use lithify_store::manifest::ManifestLog;

use crate::family::OpenFamily;
use lithify_reports::progress::UnderWay;

/// The manifest, while no job writes to it, and the edits that wait.
pub(crate) struct ManifestQueue {
    pub(crate) manifest: Option<Box<ManifestLog>>,
    pub(crate) waiting: VecDeque<Batch>,
    pub(crate) group: Option<Group>,
}

/// The edits of all families that give up a lost log. One of them alone would take away its family's
/// part of a batch that the others wait to replay.
pub(crate) struct Group {
    /// The log.
    pub(crate) lost: u64,
    pub(crate) families: BTreeSet<CfId>,
    /// Those that are here already.
    pub(crate) come: Vec<Change>,
    /// The database is closed: there will be no more.
    pub(crate) over: bool,
}

impl Group {
    pub(crate) fn takes(&self, change: &Change) -> bool {
        let gives_up = |new: &NewEdit| new.edit.log_number.is_some_and(|from| from > self.lost);
        self.families.contains(&change.family.cf) && change.edits.iter().any(gives_up)
    }
}

/// What jobs of one family did.
pub(crate) struct Change {
    pub(crate) family: Arc<OpenFamily>,
    pub(crate) edits: Vec<NewEdit>,
    /// A close waits for them.
    pub(crate) _under_way: UnderWay,
}

impl ManifestQueue {
    pub(crate) fn new(manifest: Option<Box<ManifestLog>>) -> ManifestQueue {
        ManifestQueue { manifest, waiting: VecDeque::new(), group: None }
    }
    /// What is written next, with one sync: edits of trees, a group, or one about a family.
    pub(crate) fn next(&mut self) -> Vec<Batch> {
        let is_tree = |batch: &Batch| matches!(batch, Batch::Tree(_));
        let trees = self.waiting.iter().take_while(|batch| is_tree(batch)).count();
        let count = match trees {
            0 => self.waiting.len().min(1),
            trees => trees,
        };
        self.waiting.drain(..count).collect()
    }
}

/// Edits that belong together.
pub(crate) enum Batch {
    Tree(Change),
    /// All or none of it takes effect.
    Group(Vec<Change>),
    /// A family comes or goes.
    Family(FamilyEdit),
}

/// An edit that makes or drops a family, and who waits for it.
pub(crate) struct FamilyEdit {
    pub(crate) family: Arc<OpenFamily>,
    /// A close waits for it.
    pub(crate) _under_way: UnderWay,
    pub(crate) edit: Box<WireEdit>,
    pub(crate) told: Arc<Told>,
}

/// How an edit ended.
#[derive(Default)]
pub(crate) struct Told {
    pub(crate) done: Ticket,
    pub(crate) result: Mutex<Option<Result<()>>>,
}

impl Told {
    pub(crate) fn tell(&self, result: Result<()>) {
        *self.result.lock() = Some(result);
        self.done.complete();
    }
}
