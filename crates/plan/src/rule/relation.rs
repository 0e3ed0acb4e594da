//! How a wish relates to the tree and to the jobs in flight: the one admission rule (A0, A1, A2)
//! and its check at commit. Policy-free; every job of every kind passes through here.
//!
//! For an input g the **path** is the positions older than g's and newer than or equal to the
//! output: where g's entries travel. A job may not carry an entry past an older one of its key.
//!
//! - **A0** no input is locked, and the output is not newer than any input.
//! - **A1** a file that is no input but lies on the path of an overlapping input, or at the output
//!   inside the hull, must be held by a job K that takes it strictly below the output. Then K
//!   commits first: an after-edge.
//! - **A2** against each job K in flight whose hull overlaps ours: equal outputs are rejected; its
//!   output on the path of an input it overlaps is rejected; our output on the path of one of its
//!   inputs that our hull overlaps needs K's output strictly below ours, and then an after-edge.
//!
//! ```text
//!   L1.1  a----------m                 seed at L1.1: its path to L2.1 crosses L1.0[a..m],
//!   L1.0  a==========m n-----z         which job 1 takes to L2.0, strictly below L2.1:
//!   L2.0  a====f g=======p q---z       admitted as L1.1[a..m] -> L2.1 after job 1
//! ```
//!
//! **Every commit that passes [`validate_commit`] preserves the recency invariant R.** Take a moved
//! entry of input g and a file f that stays and has its key. If f is newer than g, it is newer than
//! the output, which is not newer than g (A0). If f is older than g, then by R its entries of the
//! key are older, and as it is not on g's path (A1), it lies below the output. Entries of one key
//! from two inputs end up in one file, by number.
//!
//! **What was admitted passes.** A file on a path at the commit was there at the issue: then A1 let
//! it pass because a job held it, and that job has committed since and took it strictly below. Or
//! it came since: as another job's output, which A2 rules out from either side; from a flush, which
//! is the newest of L0; or from outside, which [`place`] puts on top of every promise.
//!
//! A random world in `tests/planner/admission.rs` looks for a counterexample to both.

use std::collections::BTreeSet;
use std::fmt;

use lithify_base::zoo::{self, Bug};
use lithify_base::{Comparator, FileId, JobId, KeyRange, Pos};
use lithify_lsm::{FileRef, Run, Version, Violation, check};

use crate::nouns::files::{hull, sort_inputs};
use crate::nouns::options::PolicyKind;
use crate::nouns::spec::{Bounds, Candidate, JobSpec, Kind, Out};
use crate::nouns::view::{Flight, View};

/// Why a wish may not become a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rejection {
    /// It has no inputs, or one of them is not in the version.
    NoInput,
    /// An input belongs to a job in flight (A0).
    Locked {
        /// The input.
        file: FileId,
        /// Its holder.
        by: JobId,
    },
    /// The output would be newer than an input (A0), or at a level that does not exist.
    MovesUp {
        /// The output.
        out: Pos,
    },
    /// A file that stays would be overtaken or overlapped (A1).
    InTheWay {
        /// The file.
        file: FileId,
        /// Its position.
        pos: Pos,
        /// Its holder, if it is locked.
        by: Option<JobId>,
    },
    /// The output of a job in flight would be overtaken or overlapped, or would overtake (A2).
    Promised {
        /// That job.
        by: JobId,
        /// Its output.
        pos: Pos,
    },
    /// Files that overlap cannot become one run by moving.
    MoveOverlaps,
    /// A move or a drop has to wait for other jobs, so it would not be the quick thing it should be.
    MoveMustWait {
        /// The job it would follow.
        after: JobId,
    },
}

/// A wish that passed: what it needs to become a spec.
#[derive(Clone, Debug, PartialEq)]
pub struct Admitted {
    /// The output position, resolved.
    pub out: Pos,
    /// Range of all inputs.
    pub hull: KeyRange,
    /// Jobs that must commit first, in number order.
    pub after: Vec<JobId>,
}

/// The admission rule: whether `wish` may be issued now.
pub fn admit(view: &View, wish: &Candidate) -> Result<Admitted, Rejection> {
    let order = view.order();
    let inputs = Inputs::new(&wish.inputs, order).ok_or(Rejection::NoInput)?;
    let out = match wish.out {
        Out::At(pos) => pos,
        Out::OnTop(level) if view.has_level(level) => view.top(level, &inputs.hull),
        Out::OnTop(level) => return Err(Rejection::MovesUp { out: Pos::base(level) }),
    };
    admit_inputs_at_rest(view, wish, out)?;
    let mut after = Vec::new();
    admit_files(view, &inputs, out, &mut after)?;
    for k in view.flights() {
        admit_promise(k, &inputs, out, order, &mut after)?;
    }
    after.sort_unstable();
    after.dedup();
    if wish.kind.is_instant() {
        admit_instant(wish, &after, order)?;
    }
    Ok(Admitted { out, hull: inputs.hull, after })
}

/// A move installs its inputs as they are, and at once; a drop just takes them out.
fn admit_instant(
    wish: &Candidate,
    after: &[JobId],
    order: &dyn Comparator,
) -> Result<(), Rejection> {
    if let Some(&after) = after.first() {
        return Err(Rejection::MoveMustWait { after });
    }
    let mut ranges: Vec<&KeyRange> = wish.inputs.iter().map(|f| &f.range).collect();
    ranges.sort_by(|a, b| order.compare(&a.lo, &b.lo));
    match wish.kind == Kind::Drop || ranges.windows(2).all(|w| w[0].is_before(w[1], order)) {
        true => Ok(()),
        false => Err(Rejection::MoveOverlaps),
    }
}

/// A0: inputs are in the version, idle, and not older than the output.
fn admit_inputs_at_rest(view: &View, wish: &Candidate, out: Pos) -> Result<(), Rejection> {
    if !view.has_level(out.level) {
        return Err(Rejection::MovesUp { out });
    }
    for f in &wish.inputs {
        if let Some(by) = view.holder(f.id) {
            return Err(Rejection::Locked { file: f.id, by });
        }
        if out.is_newer_than(f.pos) {
            return Err(Rejection::MovesUp { out });
        }
        if view.version.run(f.pos).and_then(|r| r.file(f.id)).is_none() {
            return Err(Rejection::NoInput);
        }
    }
    Ok(())
}

/// A1: files in the way must be on their way to somewhere strictly below.
fn admit_files(
    view: &View,
    inputs: &Inputs,
    out: Pos,
    after: &mut Vec<JobId>,
) -> Result<(), Rejection> {
    inputs.files_in_the_way(view.version, out, |f| {
        let by = view.holder(f.id);
        let leaves = by.and_then(|id| view.flight(id)).filter(|k| k.out.is_older_than(out));
        match leaves {
            Some(k) => {
                after.push(k.id);
                Ok(())
            }
            None => Err(Rejection::InTheWay { file: f.id, pos: f.pos, by }),
        }
    })
}

/// A2: the promise of job `k` and ours must not meet, nor overtake each other.
fn admit_promise(
    k: &Flight,
    inputs: &Inputs,
    out: Pos,
    order: &dyn Comparator,
    after: &mut Vec<JobId>,
) -> Result<(), Rejection> {
    if !k.hull.overlaps(&inputs.hull, order) {
        return Ok(());
    }
    let clash = Err(Rejection::Promised { by: k.id, pos: k.out });
    let meets = k.out == out || inputs.any_passes(k.out, out, &k.hull, order);
    if meets && !zoo::on(Bug::SharedOutput) {
        return clash;
    }
    let passes_us =
        |h: &FileRef| on_path(out, h.pos, k.out) && h.range.overlaps(&inputs.hull, order);
    if k.inputs.iter().any(passes_us) {
        if !k.out.is_older_than(out) {
            return clash;
        }
        after.push(k.id);
    }
    Ok(())
}

/// Whether data that goes from `from` to `to` travels over `p`.
fn on_path(p: Pos, from: Pos, to: Pos) -> bool {
    p.is_older_than(from) && !p.is_older_than(to)
}

/// The check at commit: A1 against the version of now, with no lock honoured. A failure is a
/// defect of the planner; the job must be aborted.
pub fn validate_commit(version: &Version, spec: &JobSpec) -> Result<(), Violation> {
    if zoo::on(Bug::CommitUnchecked) {
        return Ok(());
    }
    if spec.kind == Kind::Ingest {
        return nothing_stands_over(version, spec);
    }
    let mut files = Vec::with_capacity(spec.inputs.len());
    for &id in &spec.inputs {
        let gone = || Violation::new("A0", format!("input {id} is no longer in the tree"));
        files.push(version.file(id).cloned().ok_or_else(gone)?);
    }
    // A drop puts nothing anywhere.
    if spec.kind == Kind::Drop {
        return Ok(());
    }
    check::moves_down(spec.out, &files)?;
    let none = || Violation::new("A0", "a job without inputs");
    let inputs = Inputs::new(&files, version.order()).ok_or_else(none)?;
    inputs.files_in_the_way(version, spec.out, |f| {
        let (pos, range) = (f.pos, Bounds(&f.range));
        let text = format!("{pos}{range} is in the way of a job to {}", spec.out);
        Err(Violation::new("A1", text))
    })
}

/// What comes from outside is the newest there is: no run at its place or above it has its keys.
fn nothing_stands_over(version: &Version, spec: &JobSpec) -> Result<(), Violation> {
    let above = version.runs_newest_first().take_while(|run| !run.pos.is_older_than(spec.out));
    for run in above {
        if let Some(f) = run.overlapping(&spec.hull, version.order()).first() {
            let text = format!("{} at {} stands over a placement at {}", f.id, f.pos, spec.out);
            return Err(Violation::new("A1", text));
        }
    }
    Ok(())
}

/// Where data that is newer than everything it overlaps may be placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// At this position.
    At(Pos),
    /// In L0, as the next flush would be: some of its keys are there, or on their way inside it.
    NewestOfL0,
}

/// Where files from outside may be placed: on top of what they overlap at the shallowest level that
/// has, or is promised, any of their range; at the bottom if no level has. The memtables must not
/// overlap them any more. A store that forgets by age drops the bottom first: there they are the newest of L0.
///
/// ```text
///   L0.7   a--c        p--r         files over j..n: nothing in L0 overlaps, but job 1 takes
///   L1.0   a======f    p======z     both runs of L1 down and may write its output over the gap:
///   L2.0   (job 1, hull a..z)       so they go to L2.1, on top of its promise at L2.0
/// ```
pub fn place(view: &View, range: &KeyRange) -> Placement {
    let order = view.order();
    let meets = |level: u8| {
        view.version.overlapping(level, range).next().is_some()
            || !zoo::on(Bug::PlacedBlindly)
                && view
                    .flights()
                    .iter()
                    .any(|k| k.out.level == level && k.hull.overlaps(range, order))
    };
    if view.options.policy == PolicyKind::Fifo {
        return Placement::NewestOfL0;
    }
    match (0..=view.options.last_level()).find(|&l| meets(l)) {
        Some(0) => Placement::NewestOfL0,
        Some(level) => Placement::At(view.top(level, range)),
        None => Placement::At(Pos::base(view.options.last_level())),
    }
}

/// The files that may be dropped with all they hold, newest position first: those inside one of
/// `ranges` that no job holds, if all that is older over their keys may be dropped with them. So a
/// key that was in one of them has either a newer value, or none: nothing older comes up again.
/// Newer merge operands lose what they were to be combined with.
///
/// ```text
///   L0.7   a--c            range a..m: the file of L1 may go, and with it the one of L2 that it
///   L1.0   d------k        covers; L0 goes without either; L2.0[l..p] reaches out of the range, and
///   L2.0   e---j  l---p    so would stay in any case
/// ```
pub fn droppable(view: &View, ranges: &[KeyRange]) -> Vec<FileRef> {
    let (version, order) = (view.version, view.order());
    let runs: Vec<&Run> = version.runs_newest_first().collect();
    let (mut goes, mut ids) = (Vec::new(), BTreeSet::new());
    // Oldest first, as what is older decides.
    for (i, run) in runs.iter().enumerate().rev() {
        let older = &runs[i + 1..];
        for range in ranges {
            for f in run.overlapping(range, order) {
                let bare = || {
                    older
                        .iter()
                        .flat_map(|r| r.overlapping(&f.range, order))
                        .all(|o| ids.contains(&o.id))
                };
                if range.covers(&f.range, order) && view.is_idle(f) && bare() && ids.insert(f.id) {
                    goes.push(f.clone());
                }
            }
        }
    }
    sort_inputs(&mut goes, order);
    goes
}

/// Inputs of one job by position, each position in key order.
struct Inputs {
    /// Newest position first.
    runs: Vec<(Pos, Vec<FileRef>)>,
    /// Numbers of all of them, sorted.
    ids: Vec<FileId>,
    hull: KeyRange,
}

impl Inputs {
    fn new(files: &[FileRef], order: &dyn Comparator) -> Option<Inputs> {
        let hull = hull(files, order)?;
        let mut sorted = files.to_vec();
        sort_inputs(&mut sorted, order);
        let mut runs: Vec<(Pos, Vec<FileRef>)> = Vec::new();
        for f in sorted {
            match runs.last_mut() {
                Some((pos, run)) if *pos == f.pos => run.push(f),
                _ => runs.push((f.pos, vec![f])),
            }
        }
        let mut ids: Vec<_> = files.iter().map(|f| f.id).collect();
        ids.sort_unstable();
        Some(Inputs { runs, ids, hull })
    }

    /// Calls `found` for each file that is no input and lies on the path of an overlapping input
    /// or at `out` inside the hull. Asks each run between the newest input and `out` once.
    fn files_in_the_way<E>(
        &self,
        version: &Version,
        out: Pos,
        mut found: impl FnMut(&FileRef) -> Result<(), E>,
    ) -> Result<(), E> {
        let order = version.order();
        let newest = self.runs[0].0;
        for level in newest.level..=out.level {
            for run in version.level(level).runs() {
                if run.pos.is_newer_than(newest) || run.pos.is_older_than(out) {
                    continue;
                }
                for f in run.overlapping(&self.hull, order) {
                    if self.ids.binary_search(&f.id).is_ok() {
                        continue;
                    }
                    if run.pos == out || self.any_passes(f.pos, out, &f.range, order) {
                        found(f)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// True if an input that overlaps `range` travels over `p` on its way to `out`.
    fn any_passes(&self, p: Pos, out: Pos, range: &KeyRange, order: &dyn Comparator) -> bool {
        self.runs.iter().filter(|(from, _)| on_path(p, *from, out)).any(|(_, files)| {
            let first = files.partition_point(|f| f.range.is_before(range, order));
            files.get(first).is_some_and(|f| f.range.overlaps(range, order))
        })
    }
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Rejection::NoInput => f.write_str("A0: no such input"),
            Rejection::Locked { file, by } => {
                write!(f, "A0: file {} is locked by job {by}", file.0)
            }
            Rejection::MovesUp { out } => write!(f, "A0: {out} is newer than an input, or nowhere"),
            Rejection::InTheWay { file, pos, by: Some(job) } => {
                write!(f, "A1: file {} at {pos} is in the way, locked by job {job}", file.0)
            }
            Rejection::InTheWay { file, pos, by: None } => {
                write!(f, "A1: file {} at {pos} is in the way", file.0)
            }
            Rejection::Promised { by, pos } => write!(f, "A2: job {by} promised {pos}"),
            Rejection::MoveOverlaps => f.write_str("V1: the inputs of a move overlap"),
            Rejection::MoveMustWait { after } => write!(f, "a move would wait for job {after}"),
        }
    }
}
