//! Merge operators of ours, for [`Builder::merge_operator`](crate::Builder::merge_operator). Others
//! implement [`MergeOperator`](crate::MergeOperator).

pub use lithify_base::operator::{Add, Append, MAX_MERGED_BYTES, Max, built_in};
