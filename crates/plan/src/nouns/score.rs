//! A level's need for compaction as a number. How it is worked out is in `measures::score`.

use std::fmt;

/// A level's need for compaction, in thousandths. [`Score::ONE`] is the threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Score(pub u64);

impl Score {
    /// The threshold.
    pub const ONE: Score = Score(1000);

    /// `part / whole`.
    pub fn ratio(part: u64, whole: u64) -> Score {
        let s = u128::from(part) * 1000 / u128::from(whole.max(1));
        Score(u64::try_from(s).unwrap_or(u64::MAX))
    }
}

impl fmt::Display for Score {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:02}", self.0 / 1000, self.0 % 1000 / 10)
    }
}
