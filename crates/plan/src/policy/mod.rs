//! Rule sets. A policy turns a view into ordered wishes; it takes no locks and proves nothing.

pub mod bucket;
pub mod composed;
pub mod downforce;
pub mod fifo;
pub mod hybrid;
pub mod intra;
pub mod leveled;
pub mod manual;
pub mod narrow;
pub mod tiered;
pub mod universal;
pub mod upkeep;

use crate::options::PolicyKind;
use crate::spec::Candidate;
use crate::view::View;

/// A rule set.
pub trait Policy: Send + Sync {
    /// Appends wishes, the dearest first. Only the first that is admitted becomes a job; then the
    /// policy is asked again with the grown view. It should leave out what is plainly locked, for
    /// speed, and need not look further.
    fn propose(&self, view: &View, out: &mut Vec<Candidate>);
}

/// The rule sets that make up `kind`, in the order in which they are asked.
pub fn policies(kind: PolicyKind) -> Vec<Box<dyn Policy>> {
    let shape: Box<dyn Policy> = match kind {
        PolicyKind::Leveled => Box::new(leveled::Leveled),
        PolicyKind::Hybrid => Box::new(hybrid::Hybrid),
        PolicyKind::Tiered => Box::new(tiered::Tiered { stacks: false }),
        PolicyKind::DfTiered => Box::new(tiered::Tiered { stacks: true }),
        PolicyKind::DfLeveled => Box::new(composed::Composed { buckets: false, stacks: true }),
        PolicyKind::Bucket => Box::new(composed::Composed { buckets: true, stacks: false }),
        PolicyKind::BucketDf => Box::new(composed::Composed { buckets: true, stacks: true }),
        PolicyKind::Universal => Box::new(universal::Universal),
        PolicyKind::Fifo => Box::new(fifo::Fifo),
    };
    let mut all: Vec<Box<dyn Policy>> = vec![Box::new(manual::Manual), shape];
    if kind != PolicyKind::Fifo {
        all.push(Box::new(upkeep::Upkeep));
    }
    all
}
