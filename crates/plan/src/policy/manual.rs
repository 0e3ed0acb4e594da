//! What a user asks for: settle a range, so that it lies in one run at the bottom.
//!
//! Asked again after each commit, the policy proposes the next jobs until [`is_settled`]. Files
//! that hang together, because their ranges overlap in any level, form a **component**; components
//! are independent of each other.
//!
//! ```text
//!   L0.9  a--c      k--m            components: a..e, g..h, k..n; target L2
//!   L1.0  b----e          n
//!   L2.0     d--e g-h   l---n       g..h is done; a..e and k..n are two jobs, at the same time
//! ```
//!
//! A component goes to the target in one wide merge, however many runs it spans: each byte is
//! written once. Only where that is more than the request or the disk allows, it goes down level by
//! level in pieces. Components that lie in one run already just move.
//!
//! While a request waits for locks, [`holds_back`] keeps other jobs off its range, or it would wait
//! for ever.

use lithify_base::{FileId, KeyRange, Level, Pos, Seq};
use lithify_lsm::{FileRef, Version};

use crate::closure::close;
use crate::levels::Targets;
use crate::options::PlanOptions;
use crate::policy::Policy;
use crate::relation::hull;
use crate::spec::{Candidate, Kind, Prio, Reason};
use crate::view::View;

/// A range to settle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManualRequest {
    /// The keys; `None` for all.
    pub range: Option<KeyRange>,
    /// Only entries with sequence numbers up to this one must be settled: the last one published
    /// when the user asked. Without a bound, a request may never end while writers go on; with
    /// it, what it is about only ever moves down.
    pub up_to: Option<Seq>,
    /// Only files with smaller numbers must be settled: a bound for who knows no sequence number.
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
    fn covers(&self, version: &Version, f: &FileRef) -> bool {
        self.range.as_ref().is_none_or(|r| r.overlaps(&f.range, version.order()))
    }
    /// True if the request is about this file, and the file is not where it should be.
    fn wants(&self, version: &Version, f: &FileRef, target: Pos) -> bool {
        let old = self.up_to.is_none_or(|s| f.seqs.0 <= s) && self.before.is_none_or(|b| f.id < b);
        let stale = self.rewrite_before.is_some_and(|b| f.id < b);
        self.covers(version, f) && ((old && f.pos != target) || stale)
    }
}

/// The policy that serves [`View::manual`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Manual;

impl Policy for Manual {
    fn propose(&self, view: &View, out: &mut Vec<Candidate>) {
        let Some(request) = view.manual else { return };
        let Some(target) = target_level(view.version, view.options, request) else { return };
        let parts = components(view.version, request, Pos::base(target));
        let share = share_bytes(view, request, &parts);
        let mut group = Group::default();
        for part in parts {
            let free = part.work != Work::Done && view.all_idle(&part.files);
            if !free || !group.takes(&part, share) {
                group.flush(view, request, target, out);
            }
            if free {
                group.add(part);
            }
        }
        group.flush(view, request, target, out);
    }
}

/// True if nothing is left to do for the request. Jobs in flight are not looked at.
pub fn is_settled(version: &Version, options: &PlanOptions, request: &ManualRequest) -> bool {
    let Some(target) = target_level(version, options, request) else { return true };
    !version.files().any(|f| request.wants(version, f, Pos::base(target)))
}

/// True if an automatic job over `range` must not start: a request wants files there, none of its
/// jobs is in flight, and others are. With nothing in flight over its range the request has just
/// had its chance; if it could not use it (a full disk), others may.
pub fn holds_back(view: &View, range: &KeyRange) -> bool {
    let Some(request) = view.manual else { return false };
    let meets =
        |r: &KeyRange| request.range.as_ref().is_none_or(|mine| mine.overlaps(r, view.order()));
    let started = view.flights().iter().any(|k| k.kind == Kind::Manual);
    let waits = view.flights().iter().any(|k| meets(&k.hull));
    meets(range) && !started && waits && !is_settled(view.version, view.options, request)
}

/// Where the range ends up: the deepest level that has some of it, or deeper if it is too much for
/// that level's target, so that nothing has to move on afterwards. `None` without files.
fn target_level(
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

/// What a component needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Work {
    Done,
    Move,
    Merge,
}

/// Files whose ranges hang together.
struct Component {
    files: Vec<FileRef>,
    bytes: u64,
    work: Work,
    /// All that hangs together is in `files`, so the hull of two neighbours holds nothing else.
    whole: bool,
}

/// The components over the request's range, in key order.
fn components(version: &Version, request: &ManualRequest, target: Pos) -> Vec<Component> {
    let order = version.order();
    let mut files: Vec<&FileRef> =
        version.files().filter(|f| !f.pos.is_older_than(target)).collect();
    files.sort_by(|a, b| order.compare(&a.range.lo, &b.range.lo).then(a.pos.cmp(&b.pos)));
    let mut parts: Vec<Component> = Vec::new();
    let mut open: Vec<FileRef> = Vec::new();
    let mut range: Option<KeyRange> = None;
    for f in files {
        match &mut range {
            Some(r) if r.overlaps(&f.range, order) => *r = r.hull(&f.range, order),
            _ => {
                parts.extend(component(version, request, target, std::mem::take(&mut open)));
                range = Some(f.range.clone());
            }
        }
        open.push(f.clone());
    }
    parts.extend(component(version, request, target, open));
    parts
}

/// What has to be done with connected files; `None` if the request is not about them.
fn component(
    version: &Version,
    request: &ManualRequest,
    target: Pos,
    files: Vec<FileRef>,
) -> Option<Component> {
    let first = files.first()?.pos;
    let wanted: Vec<FileRef> =
        files.iter().filter(|f| request.wants(version, f, target)).cloned().collect();
    if wanted.is_empty() {
        return Some(Component { files, bytes: 0, work: Work::Done, whole: true });
    }
    // Only what the wanted files would overtake comes along, not all that hangs together.
    let connected = files.len();
    let files = close(version, &wanted, target);
    let whole = files.len() == connected;
    let stale = |f: &FileRef| request.rewrite_before.is_some_and(|b| f.id < b);
    let moves = first != target && files.iter().all(|f| f.pos == first && !stale(f));
    let work = if moves { Work::Move } else { Work::Merge };
    Some(Component { bytes: files.iter().map(|f| f.bytes).sum(), files, work, whole })
}

/// Bytes that one job should take so that all free slots get about the same.
fn share_bytes(view: &View, request: &ManualRequest, parts: &[Component]) -> u64 {
    let merges = parts.iter().filter(|p| p.work == Work::Merge);
    let total: u64 = merges.map(|p| p.bytes).sum();
    let share = total / view.limits.slots_free.max(1) as u64;
    share.max(view.options.file_bytes).min(request.max_job_bytes)
}

/// Neighbouring components that become one job.
#[derive(Default)]
struct Group {
    files: Vec<FileRef>,
    bytes: u64,
    work: Option<Work>,
    /// Takes no neighbour.
    closed: bool,
}

impl Group {
    fn takes(&self, part: &Component, share: u64) -> bool {
        self.work.is_none()
            || !self.closed
                && part.whole
                && self.work == Some(part.work)
                && (part.work == Work::Move || self.bytes.saturating_add(part.bytes) <= share)
    }
    fn add(&mut self, part: Component) {
        self.work = Some(part.work);
        self.closed = !part.whole;
        self.bytes += part.bytes;
        self.files.extend(part.files);
    }
    /// Wishes for the gathered components.
    fn flush(
        &mut self,
        view: &View,
        request: &ManualRequest,
        target: Level,
        out: &mut Vec<Candidate>,
    ) {
        let Group { files, bytes, work, .. } = std::mem::take(self);
        let Some(work) = work else { return };
        let reason = Reason::Manual { target };
        let to = Pos::base(target);
        let wish = match work {
            Work::Move => Some(Candidate::merge(Kind::Move, files, to, reason)),
            _ if bytes <= request.max_job_bytes && bytes <= view.limits.disk_free => {
                Some(Candidate::merge(Kind::Manual, files, to, reason))
            }
            _ => piece(view, request, files, target)
                .map(|(files, to)| Candidate::merge(Kind::Manual, files, to, reason)),
        };
        out.extend(wish.map(|w| w.at_prio(Prio::High)));
    }
}

/// A part of a component that is too large for one job: from its topmost level one level down, as
/// many files in key order as fit, at least one.
fn piece(
    view: &View,
    request: &ManualRequest,
    files: Vec<FileRef>,
    target: Level,
) -> Option<(Vec<FileRef>, Pos)> {
    let order = view.order();
    let top = files.iter().map(|f| f.pos.level).min()?;
    let below = if top == 0 { view.targets.base } else { top + 1 };
    let to = Pos::base(below.min(target));
    let mut seeds: Vec<FileRef> = files.into_iter().filter(|f| f.pos.level == top).collect();
    seeds.sort_by(|a, b| order.compare(&a.range.lo, &b.range.lo).then(a.pos.cmp(&b.pos)));
    let limit = request.max_job_bytes.min(view.limits.disk_free);
    let mut best = close(view.version, &seeds[..1], to);
    if top == 0 {
        // Runs of L0 cover each other nearly everywhere: all of them, or the next asks again.
        best = close(view.version, &seeds, to);
        return Some((best, to));
    }
    for n in 2..=seeds.len() {
        let more = close(view.version, &seeds[..n], to);
        if more.iter().map(|f| f.bytes).sum::<u64>() > limit {
            break;
        }
        best = more;
    }
    hull(&best, order).is_some().then_some((best, to))
}
