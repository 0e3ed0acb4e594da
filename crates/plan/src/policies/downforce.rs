//! The policy `df-leveled` (DownForce): levels as in `hybrid`; where the way down is locked, data is
//! stacked on top of the next level as an extra run instead of waiting, and merged into its base
//! later.
//!
//! ```text
//!   L1.0  a=====m n-----z     job 1 merges L1.0[a..m] with L2.0[a..p]; L1 is over target again, so
//!   L2.1        n-----z       L1.0[n..z] goes to L2.1, above what job 1 will leave at L2.0
//!   L2.0  a========p q--z
//! ```

use std::ops::ControlFlow;

use crate::nouns::view::View;
use crate::policies::composed::{self, Shape};
use crate::rule::offers::{Offers, Policy};

/// The policy `df-leveled`.
#[derive(Clone, Copy, Debug, Default)]
pub struct DownForce;

impl Policy for DownForce {
    fn propose(&self, view: &View, offers: &mut Offers) -> ControlFlow<()> {
        composed::propose(Shape { buckets: false, stacks: true }, view, offers)
    }
}
