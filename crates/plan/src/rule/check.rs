//! Invariants of the jobs in flight, for tests and for installs in test builds: V5 (locks), V6, V7,
//! V8, V12 and B3. Those of a version alone are in `lsm::check`.

use lithify_base::Comparator;
use lithify_lsm::{FileRef, Version, Violation, check};

use crate::nouns::files::hull;
use crate::nouns::spec::{InFlight, Kind};

/// All of them, for the jobs in flight over `version`, oldest first.
///
/// # Errors
/// The first invariant that does not hold.
pub fn jobs(version: &Version, inflight: &[InFlight]) -> Result<(), Violation> {
    check::inputs_are_disjoint(inflight.iter().map(|j| &j.spec.inputs[..]))?;
    let order = version.order();
    for (i, job) in inflight.iter().enumerate() {
        let inputs = inputs_are_there(version, job)?;
        check::moves_down(job.spec.out, &inputs)?;
        // What comes from outside has no inputs.
        let has_inputs = job.spec.kind != Kind::Ingest;
        if has_inputs && hull(&inputs, order).as_ref() != Some(&job.spec.hull) {
            return Err(Violation::new("V12", format!("job {} has another hull", job.id)));
        }
        edges_point_back(inflight, job)?;
        for k in &inflight[..i] {
            promises_differ(k, job, order)?;
        }
    }
    Ok(())
}

/// V12: inputs stay in the version until their job ends.
fn inputs_are_there(version: &Version, job: &InFlight) -> Result<Vec<FileRef>, Violation> {
    let gone = |id| Violation::new("V12", format!("job {} lost its input {id}", job.id));
    let files = job.spec.inputs.iter().map(|&id| version.file(id).cloned().ok_or_else(|| gone(id)));
    files.collect()
}

/// V8: edges point to older jobs, so they are acyclic, and to ones that end strictly below.
fn edges_point_back(inflight: &[InFlight], job: &InFlight) -> Result<(), Violation> {
    for &k in &job.spec.after {
        let older = inflight.iter().find(|j| j.id == k);
        let below = older.is_none_or(|k| k.spec.out.is_older_than(job.spec.out));
        if k >= job.id || !below {
            return Err(Violation::new("V8", format!("job {} may not follow job {k}", job.id)));
        }
    }
    Ok(())
}

/// V7 and B3: no two jobs put files at one position over the same keys.
fn promises_differ(k: &InFlight, j: &InFlight, order: &dyn Comparator) -> Result<(), Violation> {
    let writes = |job: &InFlight| job.spec.kind != Kind::Drop;
    if k.spec.out != j.spec.out
        || !writes(k)
        || !writes(j)
        || !k.spec.hull.overlaps(&j.spec.hull, order)
    {
        return Ok(());
    }
    let both = k.spec.kind == Kind::L0Bucket && j.spec.kind == Kind::L0Bucket;
    let text = format!("jobs {} and {} both promise {}", k.id, j.id, j.spec.out);
    Err(Violation::new(if both { "B3" } else { "V7" }, text))
}
