//! In which of a family's table directories the files of a level go, where there are several: RocksDB's
//! `db_paths`. Each may hold so many bytes, the fast and small one first as a rule.
//!
//! The levels take directories in order, from 0 down, each with the size that the tree aims at: the base
//! size for levels 0 and 1, and `multiplier` times that of the level before for each further one. A
//! directory takes levels for as long as they fit whole into what is left of its target; then it is the
//! turn of the next. The last takes all that is left.
//!
//! ```text
//!   base 10, multiplier 10       level      0   1    2     3      4
//!                                size      10  10  100  1000  10000
//!   targets 25, 150, any         directory  0   0    1     2      2
//! ```
//! Leaves to others: which directories these are, and how full they are in fact.

use lithify_base::MAX_LEVELS;

use crate::nouns::options::PlanOptions;

/// The directory of each level, as an index into those of the family.
pub type Places = [u8; MAX_LEVELS];

/// Most table directories that a family may have: as many as RocksDB's.
pub const PLACES_MAX: usize = 4;

/// The directories of all levels, where each may hold the bytes of `targets`; without any, and with one, it
/// is the first.
pub fn places(targets: &[u64], base: u64, multiplier: u32) -> Places {
    let last = targets.len().saturating_sub(1);
    let (mut at, mut left) = (0, targets.first().copied().unwrap_or(0));
    let mut size = base;
    let mut places = [0; MAX_LEVELS];
    for (level, place) in places.iter_mut().enumerate() {
        while at < last && size > left {
            at += 1;
            left = targets[at];
        }
        left = left.saturating_sub(size);
        *place = u8::try_from(at).unwrap_or(u8::MAX);
        if level > 0 {
            size = size.saturating_mul(u64::from(multiplier));
        }
    }
    places
}

impl PlanOptions {
    /// Whether a file that is in directory `place` may stay there if it goes to `level`.
    pub(crate) fn may_stay(&self, place: u8, level: u8) -> bool {
        self.places[usize::from(level)] == place
    }
}
