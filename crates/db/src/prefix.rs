//! Prefix extractors of ours, for [`Builder::prefix_extractor`](crate::Builder::prefix_extractor). Others
//! implement [`PrefixExtractor`](crate::PrefixExtractor).

pub use lithify_base::prefix::{CappedPrefix, FixedPrefix, built_in};
