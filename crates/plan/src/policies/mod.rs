//! Policies: the rule sets that a user chooses from, and those that run beside each of them. A policy
//! offers wishes in its order; it takes no locks and proves nothing.

pub mod adaptive;
pub mod bucket;
pub mod composed;
pub mod downforce;
pub mod fifo;
pub mod hybrid;
pub mod leveled;
pub mod manual;
pub mod narrow;
pub mod tiered;
pub mod universal;
pub mod upkeep;

use crate::nouns::options::PolicyKind;
use crate::rule::offers::Policy;

/// The rule sets that make up `kind`, in the order in which they are asked.
pub fn policies(kind: PolicyKind) -> Vec<Box<dyn Policy>> {
    let shape: Box<dyn Policy> = match kind {
        PolicyKind::Leveled => Box::new(leveled::Leveled),
        PolicyKind::Hybrid => Box::new(hybrid::Hybrid),
        PolicyKind::Tiered => Box::new(tiered::Tiered { stacks: false }),
        PolicyKind::DfTiered => Box::new(tiered::Tiered { stacks: true }),
        PolicyKind::DfLeveled => Box::new(downforce::DownForce),
        PolicyKind::Bucket => Box::new(bucket::Bucket { stacks: false }),
        PolicyKind::BucketDf => Box::new(bucket::Bucket { stacks: true }),
        PolicyKind::Adaptive => Box::new(adaptive::Adaptive),
        PolicyKind::Universal => Box::new(universal::Universal),
        PolicyKind::Fifo => Box::new(fifo::Fifo),
    };
    let mut all: Vec<Box<dyn Policy>> = vec![Box::new(manual::Manual), shape];
    if kind != PolicyKind::Fifo {
        all.push(Box::new(upkeep::Upkeep));
    }
    all
}
