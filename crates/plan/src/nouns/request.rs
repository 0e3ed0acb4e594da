//! What a user asks for: a range to settle, and when it is settled. How it gets there is the policy
//! `manual`.

use lithify_base::{FileId, KeyRange, Level, Pos, Seq};
use lithify_lsm::{FileRef, Version};

use crate::nouns::levels::Targets;
use crate::nouns::options::PlanOptions;

/// A range to settle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManualRequest {
    /// The keys; `None` for all.
    pub range: Option<KeyRange>,
    /// Only entries with sequence numbers up to this one must be settled: the last one published
    /// when the user asked. Without a bound, a request may never end while writers go on; with
    /// it, what it is about only ever moves down.
    pub up_to: Option<Seq>,
    /// Only files with smaller numbers must be settled: a bound for callers that know no sequence number.
    /// Weaker than `up_to`, as the output of an automatic job gets a new number whatever is in it.
    pub before: Option<FileId>,
    /// Files with smaller numbers are rewritten even where they are settled already, to drop what
    /// newer settings or released snapshots allow to drop.
    pub rewrite_before: Option<FileId>,
    /// Most bytes in one job, as far as components can be divided.
    pub max_job_bytes: u64,
}

impl ManualRequest {
    /// A request for `range` without any limit.
    pub fn new(range: Option<KeyRange>) -> ManualRequest {
        ManualRequest {
            range,
            up_to: None,
            before: None,
            rewrite_before: None,
            max_job_bytes: u64::MAX,
        }
    }
    /// True if the request is about keys of this file.
    fn covers(&self, version: &Version, f: &FileRef) -> bool {
        self.range.as_ref().is_none_or(|r| r.overlaps(&f.range, version.order()))
    }
    /// True if the request is about this file, and the file is not where it should be.
    pub(crate) fn wants(&self, version: &Version, f: &FileRef, target: Pos) -> bool {
        let old = self.up_to.is_none_or(|s| f.seqs.0 <= s) && self.before.is_none_or(|b| f.id < b);
        let stale = self.rewrite_before.is_some_and(|b| f.id < b);
        self.covers(version, f) && ((old && f.pos != target) || stale)
    }
}

/// True if nothing is left to do for the request. Jobs in flight are not looked at.
pub fn is_settled(version: &Version, options: &PlanOptions, request: &ManualRequest) -> bool {
    let Some(target) = target_level(version, options, request) else { return true };
    !version.files().any(|f| request.wants(version, f, Pos::base(target)))
}

/// The level where the range ends up: the deepest that has some of it, or deeper if it is too much for
/// that level's target, so that nothing has to move on afterwards. `None` without files.
pub(crate) fn target_level(
    version: &Version,
    options: &PlanOptions,
    request: &ManualRequest,
) -> Option<Level> {
    let targets = Targets::of(version, options);
    let files = version.files().filter(|f| request.covers(version, f));
    let (mut deepest, mut bytes) = (None, 0u64);
    for f in files {
        deepest = deepest.max(Some(f.pos.level));
        bytes = bytes.saturating_add(f.bytes);
    }
    let mut level = deepest?.max(targets.base);
    if deepest == Some(0) {
        while level < options.last_level() && targets.bytes(level) < bytes {
            level += 1;
        }
    }
    Some(level)
}
