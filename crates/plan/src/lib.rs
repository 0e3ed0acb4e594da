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
//! 2. levels by score ([`score::ranked`]), neediest first; in each, seeds by priority
//!    ([`seed`]); a blocked seed never hides the next one, nor a blocked level the next level;
//! 3. L0 among itself, where its way down is blocked ([`policy::hybrid`]).
//!
//! Left to others: who runs a job (`control`, `compact`), when its edit is written (`control`), and
//! what its bytes are (`merge`, `engine`).
#![forbid(unsafe_code)]

pub mod closure;
pub mod cuts;
pub mod levels;
pub mod options;
pub mod policy;
pub mod relation;
pub mod score;
pub mod seed;
pub mod spec;
pub mod stall;
pub mod view;

pub use levels::Targets;
pub use options::{PlanOptions, PolicyKind};
pub use policy::manual::{ManualRequest, is_settled};
pub use policy::{Policy, policies};
pub use relation::{Admitted, Rejection, admit, validate_commit};
pub use score::Score;
pub use seed::{Pri, cursor_after};
pub use spec::{Candidate, Cost, CutPolicy, InFlight, JobSpec, JobState, Kind, Out, Prio, Reason};
pub use stall::{Cause, Stall, Verdict, stall};
pub use view::{Limits, MemState, View};

use lithify_base::JobId;
use view::Flight;

/// The jobs to start now, in the order in which they must be issued; spec `i` becomes job
/// `view.limits.next_job + i`. At most as many as there are free slots. They are compatible with
/// each other and with everything in flight.
pub fn plan(view: &View, policies: &[Box<dyn Policy>]) -> Vec<JobSpec> {
    let mut view = view.clone();
    let mut specs = Vec::new();
    while view.limits.slots_free > 0 {
        let Some((spec, flight)) = next_job(&view, policies) else { break };
        view.limits.slots_free -= 1;
        view.limits.disk_free -= spec.est.write;
        view.limits.next_job = JobId(view.limits.next_job.0 + 1);
        view.hold(flight);
        specs.push(spec);
    }
    specs
}

/// The first wish of the first policy that is admitted.
fn next_job(view: &View, policies: &[Box<dyn Policy>]) -> Option<(JobSpec, Flight)> {
    let mut wishes = Vec::new();
    for policy in policies {
        wishes.clear();
        policy.propose(view, &mut wishes);
        for wish in wishes.drain(..) {
            let asked = matches!(wish.reason, Reason::Manual { .. });
            let Ok(admitted) = admit(view, &wish) else { continue };
            if !asked && policy::manual::holds_back(view, &admitted.hull) {
                continue;
            }
            let job = accept(view, wish, admitted);
            if job.0.est.write <= view.limits.disk_free {
                return Some(job);
            }
        }
    }
    None
}

/// Makes an admitted wish a spec.
fn accept(view: &View, wish: Candidate, admitted: Admitted) -> (JobSpec, Flight) {
    let Admitted { out, hull, after } = admitted;
    let mut inputs = wish.inputs;
    relation::sort_inputs(&mut inputs, view.order());
    assert!(inputs.windows(2).all(|w| w[0].id != w[1].id), "a file is an input twice");
    assert!(after.iter().all(|&k| k < view.limits.next_job), "an after-edge points forward (V8)");
    let mut est = Cost::default();
    if wish.kind != Kind::Move {
        est.read = inputs.iter().map(|f| f.bytes).sum();
        est.write = est.read;
        est.entries = inputs.iter().map(|f| f.entries).sum();
    }
    let spec = JobSpec {
        kind: wish.kind,
        inputs: inputs.iter().map(|f| f.id).collect(),
        out,
        hull: hull.clone(),
        cuts: cuts::cut_policy(view.version, view.options, out, &hull),
        after,
        prio: wish.prio,
        est,
        reason: wish.reason,
    };
    let flight = Flight { id: view.limits.next_job, kind: spec.kind, out, hull, inputs };
    (spec, flight)
}
