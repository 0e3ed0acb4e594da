//! Pure compaction decisions: which jobs should run, why, and how they relate.
//!
//! `plan(view)` is a function: no IO, no clock, no threads, no hidden state; the same view gives
//! the same specs. **Policies propose, admission decides**: a [`Policy`] lists wishes in its order
//! of preference and never checks conflicts for correctness; [`relation::admit`] is the one rule
//! that every wish must pass, and it knows no policy.
//!
//! ```text
//!   view -> policies propose -> admit, first that passes -> accept (view grows) -> again
//!                                                        -> no wish passes: done
//! ```
//!
//! The order of rules:
//! 1. what a user asked for ([`policy::manual`]);
//! 2. `leveled`, `hybrid`: levels by score ([`score::ranked`]), neediest first; in each, seeds by
//!    priority ([`seed`]); L0 among itself, where its way down is blocked ([`policy::hybrid`]);
//! 3. `df-leveled`, `bucket`, `bucket-df`: see [`policy::composed`];
//! 4. `tiered`, `df-tiered`: see [`policy::tiered`]; `universal`: see [`policy::universal`]; `fifo`: see
//!    [`policy::fifo`].
//! 5. what time and contents ask for: see [`policy::upkeep`];
//! 6. where none of these fits the room there is: the narrowest job that frees some ([`policy::narrow`]).
//!
//! A blocked seed never hides the next one, nor a blocked level the next level. What is blocked,
//! and by what, is told by [`explain()`].
//!
//! Left to others: who runs a job (`control`, `compact`), when its edit is written (`control`), and
//! what its bytes are (`merge`, `engine`).
#![forbid(unsafe_code)]

pub mod adapt;
pub mod check;
pub mod closure;
pub mod cuts;
pub mod explain;
pub mod levels;
pub mod options;
pub mod policy;
pub mod relation;
pub mod score;
pub mod seed;
pub mod spec;
pub mod stall;
pub mod view;

pub use adapt::{BucketFlow, FlushReport, adapt, on_flush};
pub use explain::{Blocked, Refusal, explain, inherited, passed_over};
pub use levels::Targets;
pub use options::{BucketOptions, CommitOrder, DfWhen, PlanOptions, PolicyKind};
pub use policy::downforce::Guard;
pub use policy::manual::{ManualRequest, is_settled};
pub use policy::narrow::{Layers, is_short};
pub use policy::{Policy, policies};
pub use relation::{Admitted, Placement, Rejection, admit, droppable, place, validate_commit};
pub use score::Score;
pub use seed::{CompactionPri, cursor_after};
pub use spec::{Candidate, Cost, CutPolicy, InFlight, JobSpec, JobState, Kind, Out, Prio, Reason};
pub use stall::{Cause, Stall, Verdict, slots_wanted, stall, stall_while};
pub use view::{Limits, MemState, View};

use lithify_base::JobId;
use lithify_base::zoo::{self, Bug};
use view::Flight;

/// The jobs to start now, in the order in which they must be issued; spec `i` becomes job
/// `view.limits.next_job + i`. At most as many as there are free slots. They are compatible with
/// each other and with everything in flight.
pub fn plan(view: &View, policies: &[Box<dyn Policy>]) -> Vec<JobSpec> {
    let mut view = view.clone();
    let mut specs = Vec::new();
    while view.limits.slots_free > 0 {
        let mut lacking = false;
        let mut refused = |b: Blocked| lacking |= matches!(b.why, Refusal::Disk { .. });
        let next = next_job(&view, policies, &mut refused);
        let next = next.or_else(|| narrow_job(&view, policies, lacking));
        let Some((spec, flight)) = next else { break };
        grow(&mut view, &spec, flight);
        specs.push(spec);
    }
    specs
}

/// What frees room where no wish fits; alone, as it may take what room there is.
fn narrow_job(
    view: &View,
    policies: &[Box<dyn Policy>],
    lacking: bool,
) -> Option<(JobSpec, Flight)> {
    // Some policies wish for nothing that does not fit, and no refusal tells.
    let with_room = || {
        let mut roomy = view.clone();
        (roomy.limits.disk_free, roomy.limits.disk) = (u64::MAX, u64::MAX);
        next_job(&roomy, policies, &mut |_| {}).is_some()
    };
    if zoo::on(Bug::NothingNarrower) || !policy::narrow::is_wanted(view, lacking, with_room) {
        return None;
    }
    let wish = policy::narrow::wish(view)?;
    let admitted = policy::narrow::admitted(view, &wish)?;
    Some(accept(view, wish, admitted))
}

/// A spec is accepted: the view has it in flight.
fn grow(view: &mut View, spec: &JobSpec, flight: Flight) {
    view.limits.slots_free = view.limits.slots_free.saturating_sub(1);
    view.limits.disk_free = view.limits.disk_free.saturating_sub(spec.est.write);
    view.limits.next_job = JobId(view.limits.next_job.0 + 1);
    view.hold(flight);
}

/// The first wish of the first policy that is allowed. Tells what was refused on the way.
fn next_job(
    view: &View,
    policies: &[Box<dyn Policy>],
    refused: &mut dyn FnMut(Blocked),
) -> Option<(JobSpec, Flight)> {
    let mut wishes = Vec::new();
    for policy in policies {
        wishes.clear();
        policy.propose(view, &mut wishes);
        for wish in wishes.drain(..) {
            match allow(view, &wish) {
                Ok(admitted) => return Some(accept(view, wish, admitted)),
                Err(why) => refused(Blocked::new(view, wish, why)),
            }
        }
    }
    None
}

/// Whether a wish may become a job now: the rule, and what a user waits for, and the disk.
pub(crate) fn allow(view: &View, wish: &Candidate) -> Result<Admitted, Refusal> {
    if let Some(guard) = &wish.held_back {
        return Err(Refusal::Guard(guard.clone()));
    }
    let admitted = admit(view, wish).map_err(Refusal::Rejected)?;
    let asked = matches!(wish.reason, Reason::Manual { .. });
    if !asked && policy::manual::holds_back(view, &admitted.hull) {
        return Err(Refusal::Manual);
    }
    let write = spec::cost(wish.kind, &wish.inputs).write;
    match write <= view.limits.disk_free || zoo::on(Bug::ReserveEaten) {
        true => Ok(admitted),
        false => Err(Refusal::Disk { needed: write }),
    }
}

/// Makes an admitted wish a spec.
fn accept(view: &View, wish: Candidate, admitted: Admitted) -> (JobSpec, Flight) {
    let Admitted { out, hull, mut after } = admitted;
    let mut inputs = wish.inputs;
    relation::sort_inputs(&mut inputs, view.order());
    assert!(inputs.windows(2).all(|w| w[0].id != w[1].id), "a file is an input twice");
    assert!(after.iter().all(|&k| k < view.limits.next_job), "an after-edge points forward (V8)");
    let est = spec::cost(wish.kind, &inputs);
    if view.options.commit_order == CommitOrder::Issue {
        relation::order_by_issue(view, &inputs, &mut after);
    }
    let mut cuts = cuts::cut_policy(view.version, view.options, out, &hull);
    cuts.parts = cuts::parts(view.options, wish.kind, out, est);
    if matches!(wish.reason, Reason::ShortOfRoom { .. }) {
        policy::narrow::cuts(view, &inputs, &mut cuts);
    }
    let spec = JobSpec {
        kind: wish.kind,
        inputs: inputs.iter().map(|f| f.id).collect(),
        out,
        hull: hull.clone(),
        cuts,
        after,
        prio: wish.prio,
        est,
        reason: wish.reason,
    };
    let (id, state) = (view.limits.next_job, JobState::Issued);
    let flight = Flight { id, kind: spec.kind, out, hull, inputs, state };
    (spec, flight)
}
