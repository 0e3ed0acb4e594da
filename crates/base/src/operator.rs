//! Merge operators: what `merge` means. An *operand* is a change to a value that is not read when
//! it is written; reads, flushes and compactions combine operands with what lies below them.
//!
//! Keeps: an operator that fails or panics loses nothing. [`full_merge`] and [`partial_merge`] are
//! the only ways to call one; a reader that can't combine operands keeps them.
//! Leaves to others: which operands belong together (`lithify_merge`, and the readers).

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::{Error, ErrorKind, Result, shown};

/// Longest result of a merge, bytes: as long as the longest value that can be put.
pub const MAX_MERGED_BYTES: usize = 1 << 30;

/// What operands do to a value. Must be a pure function of its arguments, and must never change for
/// a database that holds operands: its [`name`](MergeOperator::name) is stored and checked when a
/// database is opened.
///
/// Operands may be combined in any grouping, so where [`partial_merge`](MergeOperator::partial_merge)
/// gives a result, that result must do to any value what the two operands would do one after the
/// other.
///
/// Reads, flushes and compactions call it. From within, the database can be read (a read of the same key
/// calls the operator once more); in flushes and compactions, what writes to it, waits for it or closes it
/// is refused as `InvalidArgument`. Other databases can be called.
pub trait MergeOperator: Send + Sync + 'static {
    /// Name written to the database, for example `UInt64AddOperator`.
    fn name(&self) -> &str;
    /// The value of `key` after `operands`, oldest first (there is at least one), were applied to
    /// `existing`; `None` if the key had no value.
    ///
    /// # Errors
    /// Whatever the operator has against its arguments. Reads of the key fail then, and the
    /// operands stay as they are.
    fn full_merge(
        &self,
        key: &[u8],
        existing: Option<&[u8]>,
        operands: &[&[u8]],
    ) -> Result<Vec<u8>>;
    /// One operand in the place of two neighbours, or `None` to keep both, as by default. Saves
    /// space where the value below is out of reach.
    fn partial_merge(&self, key: &[u8], older: &[u8], newer: &[u8]) -> Option<Vec<u8>> {
        let _ = (key, older, newer);
        None
    }
}

/// A shared merge operator.
pub type MergeOperatorRef = Arc<dyn MergeOperator>;

/// Calls [`MergeOperator::full_merge`].
///
/// # Errors
/// [`ErrorKind::MergeFailed`] if the operator fails or panics, or the result is longer than
/// [`MAX_MERGED_BYTES`].
pub fn full_merge(
    operator: &dyn MergeOperator,
    key: &[u8],
    existing: Option<&[u8]>,
    operands: &[&[u8]],
) -> Result<Vec<u8>> {
    let called = || operator.full_merge(key, existing, operands);
    let failed = |what: String| {
        Error::new(
            ErrorKind::MergeFailed,
            format!(
                "merge operator `{}` {what} key `{}` and its {} operands, which stay as they are; \
                 put or delete the key, or open the database with an operator that takes them",
                operator.name(),
                shown(key).short(),
                operands.len()
            ),
        )
    };
    match catch_unwind(AssertUnwindSafe(called)) {
        Ok(Ok(value)) if value.len() <= MAX_MERGED_BYTES => Ok(value),
        Ok(Ok(value)) => Err(failed(format!("gave {} bytes, which is too long, for", value.len()))),
        Ok(Err(cause)) => Err(failed("refused".to_owned()).caused_by(cause)),
        Err(_) => Err(failed("panicked over".to_owned())),
    }
}

/// Calls [`MergeOperator::partial_merge`]; `None` as well if the operator panics or the result is
/// longer than [`MAX_MERGED_BYTES`].
pub fn partial_merge(
    operator: &dyn MergeOperator,
    key: &[u8],
    older: &[u8],
    newer: &[u8],
) -> Option<Vec<u8>> {
    let called = || operator.partial_merge(key, older, newer);
    let merged = catch_unwind(AssertUnwindSafe(called)).ok().flatten();
    merged.filter(|operand| operand.len() <= MAX_MERGED_BYTES)
}

/// Adds: values and operands are unsigned 64-bit numbers, little-endian, and sums wrap around. A key
/// without a value counts from 0. RocksDB's `uint64add`, but for values of another length, which it
/// takes for 0 and this one refuses.
#[derive(Clone, Copy, Debug, Default)]
pub struct Add;

/// Appends operands to the value, with a delimiter between any two. A key without a value begins
/// with the first operand. RocksDB's `stringappend`.
#[derive(Clone, Debug)]
pub struct Append {
    delimiter: Vec<u8>,
}

impl Append {
    /// With `delimiter` between any two; it may be empty. Must never change for a database that
    /// holds operands: the stored name does not tell it.
    pub fn new(delimiter: impl Into<Vec<u8>>) -> Append {
        Append { delimiter: delimiter.into() }
    }
    fn join(&self, parts: &[&[u8]]) -> Vec<u8> {
        parts.join(&self.delimiter[..])
    }
}

impl Default for Append {
    /// With a comma, as RocksDB.
    fn default() -> Append {
        Append::new(b",")
    }
}

/// Keeps the largest of value and operands, in byte order. RocksDB's `max`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Max;

/// The operator of ours that is called `name`, which is the stored name or RocksDB's short one:
/// `UInt64AddOperator` or `uint64add`, `StringAppendOperator` or `stringappend` (with a comma),
/// `MaxOperator` or `max`.
pub fn built_in(name: &str) -> Option<MergeOperatorRef> {
    Some(match name {
        "UInt64AddOperator" | "uint64add" => Arc::new(Add),
        "StringAppendOperator" | "stringappend" => Arc::new(Append::default()),
        "MaxOperator" | "max" => Arc::new(Max),
        _ => return None,
    })
}

fn number(bytes: &[u8]) -> Option<u64> {
    bytes.try_into().ok().map(u64::from_le_bytes)
}

impl MergeOperator for Add {
    fn name(&self) -> &str {
        "UInt64AddOperator"
    }
    fn full_merge(
        &self,
        _key: &[u8],
        existing: Option<&[u8]>,
        operands: &[&[u8]],
    ) -> Result<Vec<u8>> {
        let mut sum = 0u64;
        for bytes in existing.iter().chain(operands) {
            let n = number(bytes).ok_or_else(|| {
                Error::invalid(format!("a number has 8 bytes, and this one {}", bytes.len()))
            })?;
            sum = sum.wrapping_add(n);
        }
        Ok(sum.to_le_bytes().to_vec())
    }
    fn partial_merge(&self, _key: &[u8], older: &[u8], newer: &[u8]) -> Option<Vec<u8>> {
        Some(number(older)?.wrapping_add(number(newer)?).to_le_bytes().to_vec())
    }
}

impl MergeOperator for Append {
    fn name(&self) -> &str {
        "StringAppendOperator"
    }
    fn full_merge(
        &self,
        _key: &[u8],
        existing: Option<&[u8]>,
        operands: &[&[u8]],
    ) -> Result<Vec<u8>> {
        let parts: Vec<&[u8]> = existing.iter().chain(operands).copied().collect();
        Ok(self.join(&parts))
    }
    fn partial_merge(&self, _key: &[u8], older: &[u8], newer: &[u8]) -> Option<Vec<u8>> {
        Some(self.join(&[older, newer]))
    }
}

impl MergeOperator for Max {
    fn name(&self) -> &str {
        "MaxOperator"
    }
    fn full_merge(
        &self,
        _key: &[u8],
        existing: Option<&[u8]>,
        operands: &[&[u8]],
    ) -> Result<Vec<u8>> {
        Ok(existing.iter().chain(operands).max().map_or_else(Vec::new, |v| v.to_vec()))
    }
    fn partial_merge(&self, _key: &[u8], older: &[u8], newer: &[u8]) -> Option<Vec<u8>> {
        Some(older.max(newer).to_vec())
    }
}

#[cfg(test)]
mod tests;
