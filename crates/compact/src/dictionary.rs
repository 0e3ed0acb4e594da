//! The dictionary of a compaction: trained before the merge from blocks of its inputs, so that it is part
//! of the recipe and blocks leave the engine as they will lie in the file. All output files of a job
//! have the same one.
//!
//! A flush has none: what it writes is rewritten soon, and its entries are not in blocks yet.

use lithify_base::Result;
use lithify_env::sync::Arc;
use lithify_format::compress::{self, Codec};

use crate::context::OutputOptions;

/// Samples are so many times as large as the dictionary: with fewer, training finds what they have in
/// common by chance.
const SAMPLES: u64 = 100;
/// More than this is neither read nor held for it, bytes.
const SAMPLES_MAX: u64 = 8 << 20;

/// Bytes of blocks, as they are before compression, to take as samples for tables of `level`; 0 if
/// they have no dictionary.
pub(crate) fn sampled(output: &OutputOptions, level: u8) -> u64 {
    match output.levels[usize::from(level)].codec {
        Codec::Zstd => (u64::from(output.dict_bytes) * SAMPLES).min(SAMPLES_MAX),
        _ => 0,
    }
}

/// What is trained from `samples`; `None` if there are none, or too few.
pub(crate) fn of(samples: &[Vec<u8>], output: &OutputOptions) -> Result<Option<Arc<[u8]>>> {
    match samples {
        [] => Ok(None),
        samples => compress::train(samples, output.dict_bytes as usize),
    }
}
