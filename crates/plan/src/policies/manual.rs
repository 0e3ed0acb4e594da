//! Manual compaction: a user asks to settle a range, so that it lies in one run at the bottom.
//!
//! Asked again after each commit, the policy proposes the next jobs until the request is settled
//! ([`is_settled`](crate::is_settled)). Files that hang together, because their ranges overlap in any
//! level, form a **component**; components are independent of each other.
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
//! While a request waits for locks, the rule keeps other jobs off its range (`rule::offers`), or it would wait
//! for ever.

use std::ops::ControlFlow::{self, Continue};

use lithify_base::{KeyRange, Level, Pos};
use lithify_lsm::FileRef;

use crate::nouns::request::{ManualRequest, target_level};
use crate::nouns::spec::{Candidate, Kind, Prio, Reason};
use crate::nouns::view::View;
use crate::rule::closure::close;
use crate::rule::offers::{Offers, Policy};

/// The policy that serves [`View::manual`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Manual;

impl Policy for Manual {
    fn propose(&self, view: &View, offers: &mut Offers) -> ControlFlow<()> {
        let target = view.manual.and_then(|r| target_level(view.version, view.options, r));
        let (Some(request), Some(target)) = (view.manual, target) else { return Continue(()) };
        let parts = components(view, request, Pos::base(target));
        let share = share_bytes(view, request, &parts);
        let mut group = Group::default();
        for part in parts {
            let free = part.work != Work::Done && view.all_idle(&part.files);
            if !free || !group.takes(&part, share) {
                offers.offer_all(group.wish(view, request, target))?;
            }
            if free {
                group.add(part);
            }
        }
        offers.offer_all(group.wish(view, request, target))
    }
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
fn components(view: &View, request: &ManualRequest, target: Pos) -> Vec<Component> {
    let version = view.version;
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
                parts.extend(component(view, request, target, std::mem::take(&mut open)));
                range = Some(f.range.clone());
            }
        }
        open.push(f.clone());
    }
    parts.extend(component(view, request, target, open));
    parts
}

/// What has to be done with connected files; `None` if the request is not about them.
fn component(
    view: &View,
    request: &ManualRequest,
    target: Pos,
    files: Vec<FileRef>,
) -> Option<Component> {
    let first = files.first()?.pos;
    let version = view.version;
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
    let stays = |f: &FileRef| view.options.may_stay(f.place, target.level);
    let moves = first != target && files.iter().all(|f| f.pos == first && !stale(f) && stays(f));
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
    /// The wish for the gathered components, which leave the group.
    fn wish(&mut self, view: &View, request: &ManualRequest, target: Level) -> Option<Candidate> {
        let Group { files, bytes, work, .. } = std::mem::take(self);
        let reason = Reason::Manual { target };
        let to = Pos::base(target);
        let wish = match work? {
            Work::Move => Candidate::merge(Kind::Move, files, to, reason),
            _ if bytes <= request.max_job_bytes && bytes <= view.limits.disk_free => {
                Candidate::merge(Kind::Manual, files, to, reason)
            }
            _ => {
                let (files, to) = piece(view, request, files, target)?;
                Candidate::merge(Kind::Manual, files, to, reason)
            }
        };
        Some(wish.at_prio(Prio::High))
    }
}

/// A part of a component that is too large for one job: from its topmost level one level down, or from the extra
/// runs of the last one into their base, as many files in key order as fit, at least one.
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
    // What is there already goes nowhere by itself: with that alone the same job would come again and again.
    if seeds.iter().any(|f| f.pos != to) {
        seeds.retain(|f| f.pos != to);
    }
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
    (!best.is_empty()).then_some((best, to))
}
