//! Pure compaction decisions: which jobs should run, why, and how they relate.
//!
//! `plan(view)` is a function: no IO, no clock, no threads, no hidden state; the same view gives
//! the same specs. **Policies propose, admission decides**: a [`Policy`] offers wishes in its order
//! of preference and checks no conflicts; [`relation::admit`] is the one rule that every wish must
//! pass, and it knows no policy. It is asked once for each wish ([`Offers`]).
//!
//! ```text
//!   view -> policies offer wishes -> the rule admits one -> a job (view grows) -> again
//!                                 -> it admits none      -> done
//! ```
//!
//! The layers, lowest first; a module names only modules of its own layer and of those before it
//! (`cargo xtask tidy` holds that):
//!
//! ```text
//!   nouns     views, wishes, jobs, settings, requests, guards, scores
//!   rule      what may become a job: relation, closure, offers
//!   measures  what a tree needs: scores, seeds, stalls, cuts, room, buckets
//!   steps     kinds of jobs that several policies use: descent, stacking, merging in place
//!   policies  in which order to want what
//! ```
//!
//! [`planner`] and [`explain()`] stand above all of them.
//!
//! The order of rules:
//! 1. what a user asked for ([`policies::manual`]);
//! 2. `leveled`, `hybrid`: levels by score ([`score::ranked`]), neediest first; in each, seeds by
//!    priority ([`seed`]); L0 among itself, where its way down is blocked ([`policies::hybrid`]);
//! 3. `df-leveled`: [`policies::downforce`]; `bucket`, `bucket-df`: [`policies::bucket`]; both in the
//!    order of [`policies::composed`]; `adaptive`: what is worth its bytes ([`policies::adaptive`]);
//! 4. `tiered`, `df-tiered`: [`policies::tiered`]; `universal`: [`policies::universal`]; `fifo`:
//!    [`policies::fifo`];
//! 5. what time and contents ask for: [`policies::upkeep`];
//! 6. where none of these fits the room there is: the narrowest job that frees some
//!    ([`policies::narrow`]).
//!
//! A blocked seed never hides the next one, nor a blocked level the next level (but under `leveled`
//! and `hybrid` the base level waits while L0 is due and blocked). What is blocked, and by what, is
//! told by [`explain()`].
//!
//! Left to others: who runs a job (`control`, `compact`), when its edit is written (`control`), and
//! what its bytes are (`merge`, `engine`).
#![forbid(unsafe_code)]

pub mod explain;
pub mod measures;
pub mod nouns;
pub mod planner;
pub mod policies;
pub mod rule;
mod steps;

pub use measures::{adapt, cuts, score, seed, stall};
pub use nouns::{levels, options, spec, view};
pub use rule::{check, closure, relation};

pub use explain::{explain, inherited, passed_over};
pub use measures::adapt::{BucketFlow, FlushReport, adapt, on_flush};
pub use measures::room::{Layers, is_short};
pub use measures::seed::cursor_after;
pub use measures::stall::{Cause, Stall, Verdict, slots_wanted, stall, stall_while};
pub use nouns::files::hull;
pub use nouns::guard::Guard;
pub use nouns::levels::Targets;
pub use nouns::load::Load;
pub use nouns::options::{BucketOptions, DfWhen, PlanOptions, PolicyKind};
pub use nouns::places::{PLACES_MAX, Places, places};
pub use nouns::pri::CompactionPri;
pub use nouns::request::{ManualRequest, is_settled};
pub use nouns::score::Score;
pub use nouns::spec::{
    Candidate, Cost, CutPolicy, InFlight, JobSpec, JobState, Kind, Out, Prio, Reason,
};
pub use nouns::view::{Limits, MemState, View};
pub use planner::plan;
pub use policies::policies;
pub use rule::offers::{Blocked, Offers, Policy, Refusal};
pub use rule::relation::{
    Admitted, Placement, Rejection, admit, droppable, place, validate_commit,
};
