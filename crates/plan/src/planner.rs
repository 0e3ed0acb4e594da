//! From wishes to jobs: policies are asked one after the other until the rule admits a wish, which
//! becomes a job; then the view has that job in flight, and they are asked again.
//!
//! Keeps: the jobs of one plan are compatible with each other and with everything in flight; the same
//! view gives the same plan.

use lithify_base::JobId;
use lithify_base::zoo::{self, Bug};

use crate::measures::cuts;
use crate::nouns::files::sort_inputs;
use crate::nouns::spec::{Candidate, JobSpec, JobState, Reason, cost};
use crate::nouns::view::{Flight, View};
use crate::policies::narrow;
use crate::rule::offers::{Blocked, Offers, Policy, Refusal};
use crate::rule::relation::{self, Admitted};

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
    if zoo::on(Bug::NothingNarrower) || !narrow::is_wanted(view, lacking, with_room) {
        return None;
    }
    let wish = narrow::wish(view)?;
    // With nothing in flight what is closed is in no job's way.
    let admitted = relation::admit(view, &wish);
    debug_assert!(admitted.is_ok(), "{admitted:?}");
    Some(accept(view, wish, admitted.ok()?))
}

/// A spec is accepted: the view has it in flight.
pub(crate) fn grow(view: &mut View, spec: &JobSpec, flight: Flight) {
    view.limits.slots_free = view.limits.slots_free.saturating_sub(1);
    view.limits.disk_free = view.limits.disk_free.saturating_sub(spec.est.write);
    view.limits.next_job = JobId(view.limits.next_job.0 + 1);
    view.hold(flight);
}

/// The first wish of the first policy that is admitted, as a job. Tells what was refused on the way.
pub(crate) fn next_job(
    view: &View,
    policies: &[Box<dyn Policy>],
    refused: &mut dyn FnMut(Blocked),
) -> Option<(JobSpec, Flight)> {
    let mut offers = Offers::new(view, refused);
    let _ = policies.iter().try_for_each(|policy| policy.propose(view, &mut offers));
    let (wish, admitted) = offers.into_taken()?;
    Some(accept(view, wish, admitted))
}

/// Makes an admitted wish a spec.
fn accept(view: &View, wish: Candidate, admitted: Admitted) -> (JobSpec, Flight) {
    let Admitted { out, hull, after } = admitted;
    let mut inputs = wish.inputs;
    sort_inputs(&mut inputs, view.order());
    assert!(inputs.windows(2).all(|w| w[0].id != w[1].id), "a file is an input twice");
    assert!(after.iter().all(|&k| k < view.limits.next_job), "an after-edge points forward (V8)");
    let est = cost(wish.kind, &inputs);
    let mut cuts = cuts::cut_policy(view.version, view.options, out, &hull);
    cuts.parts = cuts::parts(view.options, wish.kind, out, est);
    if matches!(wish.reason, Reason::ShortOfRoom { .. }) {
        narrow::cuts(view, &inputs, &mut cuts);
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
    let (id, state) = (view.limits.next_job, JobState::Running);
    let flight = Flight { id, kind: spec.kind, out, hull, inputs, state };
    (spec, flight)
}
