//! L0 goes down to the base level: files that lie over nothing move, and files that hang together are
//! merged with what lies under them. One job at a time takes all of them (`leveled`, `hybrid`), or
//! several take a connected part each (`df-leveled`).

use std::ops::ControlFlow::{self, Continue};

use lithify_base::{KeyRange, Pos};
use lithify_lsm::FileRef;

use crate::measures::stall;
use crate::nouns::files::{bytes, hull};
use crate::nouns::spec::{Candidate, Kind, Prio, Reason};
use crate::nouns::view::View;
use crate::rule::closure::close;
use crate::rule::offers::Offers;
use crate::steps::descent::{is_move, light_below};

/// Connected parts of L0 that are tried in one round.
const PARTS_TRIED: usize = 8;

/// Why L0 should go down.
pub(crate) fn reason(view: &View) -> Reason {
    let (runs, trigger) = (view.idle_runs(0).count() as u32, view.options.l0_trigger());
    match runs >= trigger {
        true => Reason::L0Runs { runs, trigger },
        false => Reason::L0Bytes {
            bytes: view.idle_compensated(0),
            limit: view.options.level_base_bytes,
        },
    }
}

/// Why what lies in L0 over one stretch of keys, `runs` idle runs deep, should go down: its depth, or how much L0 is as a
/// whole. What is one run deep waits for twice the bytes.
pub(crate) fn stretch_reason(view: &View, runs: u32) -> Reason {
    let (options, trigger) = (view.options, view.options.l0_trigger());
    if runs >= trigger {
        return Reason::Bucket { runs, trigger };
    }
    let limit = options.level_base_bytes.saturating_mul(if runs > 1 { 1 } else { 2 });
    let (bytes, all) = (view.idle_compensated(0), view.idle_runs(0).count() as u32);
    let slowdown = stall::l0_bytes_slowdown(options);
    if bytes >= limit {
        Reason::L0Bytes { bytes, limit }
    } else if view.version.bytes(0) >= slowdown {
        Reason::L0Bytes { bytes: view.version.bytes(0), limit: slowdown }
    } else if all >= trigger {
        Reason::L0Runs { runs: all, trigger }
    } else {
        Reason::L0Files { files: view.version.level(0).file_count() }
    }
}

/// Offers the oldest files that can simply change their level.
pub(crate) fn offer_move(
    view: &View,
    reason: Reason,
    prio: Prio,
    offers: &mut Offers,
) -> ControlFlow<()> {
    let base = Pos::base(view.targets.base);
    match movable(view, base) {
        Some(files) => {
            offers.attempt(Candidate::merge(Kind::Move, files, base, reason).at_prio(prio))
        }
        None => Continue(()),
    }
}

/// Files of L0 with what must come along to the base level.
pub(crate) fn wish(view: &View, files: &[FileRef], reason: Reason, prio: Prio) -> Candidate {
    let base = Pos::base(view.targets.base);
    let inputs = close(view.version, files, base);
    let kind = if is_move(view, &inputs, base) { Kind::Move } else { Kind::Down };
    Candidate::merge(kind, inputs, base, reason).at_prio(prio)
}

/// Files of L0 that hang together, oldest first, and can go to the base level.
pub(crate) fn parts_down(view: &View, prio: Prio, offers: &mut Offers) -> ControlFlow<()> {
    let reason = reason(view);
    offer_move(view, reason.clone(), prio, offers)?;
    let mut parts = parts(view).into_iter();
    parts.try_for_each(|part| {
        offers.offer(wish(view, oldest_share(view, &part), reason.clone(), prio))
    })
}

/// As many of the oldest runs of a part as outweigh what they are merged with below. One job of a
/// deep L0 would hold all of L0 and the base level for as long as it takes, and nothing could be
/// stacked meanwhile; of two, the second is stacked while the first goes down. All of them if the
/// rest would not be due.
fn oldest_share<'p>(view: &View, part: &'p [FileRef]) -> &'p [FileRef] {
    let Some(range) = hull(part, view.order()) else { return part };
    let below = view.version.overlapping_bytes(view.targets.base, &range);
    let enough = below.max(view.options.level_base_bytes);
    let trigger = view.options.l0_trigger() as usize;
    let runs: Vec<&[FileRef]> = part.chunk_by(|a, b| a.pos == b.pos).collect();
    let (mut taken, mut files) = (0, 0);
    for (n, run) in runs.iter().rev().enumerate() {
        if taken >= enough && runs.len() - n >= trigger {
            return &part[part.len() - files..];
        }
        taken = bytes(run).saturating_add(taken);
        files += run.len();
    }
    part
}

/// The connected parts of L0 that have idle files, by their oldest idle file. A part is all files
/// that reach each other through overlaps.
pub(crate) fn parts(view: &View) -> Vec<Vec<FileRef>> {
    let order = view.order();
    let mut parts: Vec<(KeyRange, Vec<FileRef>)> = Vec::new();
    for run in view.version.level(0).runs().iter().rev() {
        for f in run.files().iter().filter(|f| view.is_idle(f)) {
            if parts.len() == PARTS_TRIED {
                break;
            }
            if parts.iter().all(|(range, _)| !range.overlaps(&f.range, order)) {
                parts.push(connected(view, f));
            }
        }
    }
    parts.into_iter().map(|(_, files)| files).collect()
}

/// Every file of L0 that the range of `seed` reaches, directly or through others, and their range.
pub(crate) fn connected(view: &View, seed: &FileRef) -> (KeyRange, Vec<FileRef>) {
    let mut range = seed.range.clone();
    loop {
        let files: Vec<FileRef> = view.version.overlapping(0, &range).cloned().collect();
        match hull(&files, view.order()) {
            Some(wider) if wider != range => range = wider,
            _ => return (range, files),
        }
    }
}

/// The oldest L0 files that can simply change their level: each extends the range of those before
/// it on one side, and nothing in the base level lies under them.
fn movable(view: &View, base: Pos) -> Option<Vec<FileRef>> {
    if view.version.level(base.level).is_empty() {
        return None;
    }
    let order = view.order();
    let mut files: Vec<FileRef> = Vec::new();
    let mut range: Option<KeyRange> = None;
    'files: for run in view.version.level(0).runs().iter().rev() {
        for f in run.files() {
            let wider = match &range {
                Some(r) if r.overlaps(&f.range, order) => break 'files,
                Some(r) => r.hull(&f.range, order),
                None => f.range.clone(),
            };
            let free = view.version.overlapping(base.level, &wider).next().is_none();
            if !free || !view.is_idle(f) || view.is_promised(base, &wider) {
                break 'files;
            }
            files.push(f.clone());
            range = Some(wider);
        }
    }
    // Levels between L0 and the base level must not be jumped over.
    let clear = |f: &FileRef| {
        (1..base.level).all(|l| view.version.overlapping(l, &f.range).next().is_none())
    };
    files.truncate(
        files
            .iter()
            .take_while(|f| clear(f) && light_below(view, f, base.level))
            .take_while(|f| view.options.may_stay(f.place, base.level))
            .count(),
    );
    (!files.is_empty()).then_some(files)
}
