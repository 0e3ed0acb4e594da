//! The rule: what may become a job. One admission, asked once for each wish ([`offers`]); the relation
//! of a wish to the tree and to the jobs in flight ([`relation`]); what must move together
//! ([`closure`]); the invariants of jobs ([`check`]). Knows the nouns, and no policy.

pub mod check;
pub mod closure;
pub mod offers;
pub mod relation;
