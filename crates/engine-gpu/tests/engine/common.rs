//! What the tests of this room share: an engine over the emulator, and what all tests of engines share.

pub(crate) use lithify_engine::testing::*;

/// How many cases: `few` by default, as many as `LITHIFY_SEEDS` says in a deep run.
#[cfg(feature = "emu")]
pub(crate) fn seeds(few: u64) -> u64 {
    lithify_engine::testing::seeds("LITHIFY_SEEDS", few)
}

/// An engine over the emulator.
#[cfg(feature = "emu")]
pub(crate) fn engine() -> lithify_engine_gpu::GpuEngine {
    use lithify_engine_gpu::{Emu, GpuEngine, GpuOptions};
    GpuEngine::new(Box::new(Emu::new(1)), GpuOptions::default()).expect("the options make sense")
}
