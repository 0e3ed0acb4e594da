//! What is told of the parts of a compaction, for the event log.

/// What becomes of a part. A compaction that is merged as a whole has only the events of engines other
/// than the CPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PartEvent {
    /// A worker begins with it.
    Began {
        /// Its number, from 1, in key order.
        part: u32,
        /// Number of parts.
        of: u32,
        /// About how many bytes of the inputs it reads.
        bytes: u64,
    },
    /// It is built, or failed.
    Ended {
        /// Its number.
        part: u32,
    },
    /// An engine other than the CPU is to merge it.
    Routed {
        /// Its number.
        part: u32,
        /// The engine's name.
        engine: &'static str,
        /// Why this one.
        why: String,
    },
    /// The CPU merges it in the place of another engine, from the last point that both know.
    Replaced {
        /// Its number.
        part: u32,
        /// The other engine's name.
        engine: &'static str,
        /// What happened.
        why: String,
    },
    /// There is not enough memory for sets as large as the engine that merges it wants.
    SmallSets {
        /// Its number.
        part: u32,
        /// The engine's name.
        engine: &'static str,
        /// How large they are, and what would help.
        why: String,
    },
    /// Its worker gave it back, and left nothing of it: another one begins with it again.
    GivenBack {
        /// Its number.
        part: u32,
        /// Why, such as what a panic said.
        why: String,
    },
}
