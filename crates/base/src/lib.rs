//! The words of the store: keys, sequence numbers, ids, ranges, comparators, errors.
//!
//! This room depends on no other and does nothing: no IO, no time, no randomness, no locks.
//! Every other room speaks in these types.
#![forbid(unsafe_code)]

pub mod compaction_filter;
pub mod comparator;
pub mod error;
pub mod foreign;
pub mod ids;
pub mod key;
pub mod memory;
pub mod operator;
pub mod prefix;
pub mod range;
pub mod zoo;

pub use compaction_filter::{
    CompactionFilter, CompactionFilterRef, Decision, FilterContext, FilterJob, filter_of,
};
pub use comparator::{Bytewise, Comparator, ComparatorRef, ReverseBytewise, bytewise};
pub use error::{Error, ErrorKind, Result};
pub use foreign::{shown, shown_path};
pub use ids::{CfId, FileId, JobId, Level, MAX_LEVELS, Pos, Stratum};
pub use key::{InternalKey, Key, Kind, MAX_SEQ, Seq, Tag};
pub use operator::{MergeOperator, MergeOperatorRef};
pub use prefix::{PrefixExtractor, PrefixExtractorRef, Prefixes};
pub use range::{End, KeyRange};

#[cfg(test)]
mod tests;
