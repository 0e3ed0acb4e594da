//! RocksDB's default: flushes pile up as runs in L0 until there are `l0_trigger` of them, then all
//! that overlap go to the base level in one job; below that, one run per level.
//!
//! While L0 cannot go down, because its last job still runs or the base level is locked from
//! below, its newest runs are merged among themselves, so that readers and the stall verdict see
//! fewer of them. That rewrites data without moving it down, so it needs two runs more than the
//! trigger and at least four to merge.
//!
//! ```text
//!   L0.9  a---z      job 1 takes L0.1 to L0.4 to L1. Five runs came in meanwhile: trigger + 2
//!   ...              are in L0 and four newest are idle, so L0.6 to L0.9 become one run at L0.6.
//!   L0.5  a---z      They stay newer than L0.5, which a later job takes down.
//!   L0.4  a===z
//! ```

use std::ops::ControlFlow;

use crate::nouns::view::View;
use crate::policies::leveled::{L0Rules, by_rank};
use crate::rule::offers::{Offers, Policy};
use crate::steps::among_l0;

/// The policy `hybrid`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Hybrid;

impl Policy for Hybrid {
    fn propose(&self, view: &View, offers: &mut Offers) -> ControlFlow<()> {
        let rules = L0Rules { instead: among_l0::small, when_blocked: among_l0::blocked };
        by_rank(view, &rules, offers)
    }
}
