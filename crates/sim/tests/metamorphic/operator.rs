//! Merge operators of a plan: ours, and one that a user might write. Each has a twin for the map that
//! takes one operand at a time.

use lithify::merge::{Add, Append, Max};
use lithify::{MergeOperator, MergeOperatorRef, Result};
use lithify_env::sync::Arc;
use lithify_env::sync::atomic::{AtomicU64, Ordering};

/// What `merge` means in a family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    Append,
    Max,
    Roll,
    /// Values have to be numbers.
    Add,
}

impl Operator {
    /// Those that take any value.
    pub const OF_BYTES: [Operator; 3] = [Operator::Append, Operator::Max, Operator::Roll];

    pub fn name(self) -> &'static str {
        match self {
            Operator::Append => "append",
            Operator::Max => "max",
            Operator::Roll => "a user's operator",
            Operator::Add => "add",
        }
    }

    /// The operator for a database; one of a user's counts its calls.
    pub fn make(self, calls: &Arc<Calls>) -> MergeOperatorRef {
        match self {
            Operator::Append => Arc::new(Append::default()),
            Operator::Max => Arc::new(Max),
            Operator::Roll => Arc::new(Roll { calls: calls.clone() }),
            Operator::Add => Arc::new(Add),
        }
    }

    /// The value of `key` after one operand more.
    pub fn after(self, key: &[u8], value: Option<&[u8]>, operand: &[u8]) -> Vec<u8> {
        match (self, value) {
            (Operator::Append, Some(value)) => [value, b",", operand].concat(),
            (Operator::Max, Some(value)) => value.max(operand).to_vec(),
            (Operator::Append | Operator::Max, None) => operand.to_vec(),
            (Operator::Roll, value) => roll(start(key, value), operand).to_le_bytes().to_vec(),
            (Operator::Add, value) => {
                let number = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("a number"));
                value.map_or(0, number).wrapping_add(number(operand)).to_le_bytes().to_vec()
            }
        }
    }
}

/// How often a user's operator was called.
#[derive(Default)]
pub struct Calls {
    pub full: AtomicU64,
    pub partial: AtomicU64,
}

/// A sum over bytes that depends on their order and on the key. A value of 8 bytes is the sum so far.
/// Two operands are one behind the other, and now and then nothing in the place of both.
struct Roll {
    calls: Arc<Calls>,
}

fn roll(sum: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(sum, |sum, &b| {
        (sum.rotate_left(9) ^ u64::from(b)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    })
}

fn start(key: &[u8], value: Option<&[u8]>) -> u64 {
    match value {
        None => roll(1, key),
        Some(value) => value.try_into().map_or_else(|_| roll(2, value), u64::from_le_bytes),
    }
}

impl MergeOperator for Roll {
    fn name(&self) -> &str {
        "roll"
    }
    fn full_merge(
        &self,
        key: &[u8],
        existing: Option<&[u8]>,
        operands: &[&[u8]],
    ) -> Result<Vec<u8>> {
        self.calls.full.fetch_add(1, Ordering::Relaxed);
        let sum = operands.iter().fold(start(key, existing), |sum, bytes| roll(sum, bytes));
        Ok(sum.to_le_bytes().to_vec())
    }
    fn partial_merge(&self, _key: &[u8], older: &[u8], newer: &[u8]) -> Option<Vec<u8>> {
        let both = [older, newer].concat();
        let given = !both.len().is_multiple_of(3);
        self.calls.partial.fetch_add(u64::from(given), Ordering::Relaxed);
        given.then_some(both)
    }
}
