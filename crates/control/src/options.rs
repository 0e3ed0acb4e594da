//! What the core needs to know of the settings.

use lithify_plan::PlanOptions;

/// What the core needs to know of the settings.
#[derive(Clone, Debug)]
pub struct Options {
    /// The planner's options.
    pub plan: PlanOptions,
    /// Compactions that may run at once.
    pub compaction_slots: usize,
    /// Flushes that may run at once.
    pub flush_slots: usize,
    /// Slowest rate to which writes are slowed down, bytes per second.
    pub delayed_write_rate: u64,
}
