//! Entries of a range as std's iterators give them: from either end, each with what it owns.
//!
//! One cursor serves both ends. It stands at the entry that was given last; when the other end is asked, that
//! entry's key becomes a limit and the cursor is moved there. So a walk in one direction costs what the cursor's
//! does, and each turn of direction a seek.
//!
//! Keeps: each entry of the range is given once, whatever the ends take turns at; after the last one, and after
//! an error, nothing comes any more, and what the cursor kept alive is let go of.
//! Leaves to others: what a user sees (`iter`).

use std::iter::FusedIterator;
use std::ops::Bound;

use lithify_base::{Error, Result};

use crate::iter::db::DbIter;
use crate::options::{KeyBounds, ReadOptions};
use crate::value::Value;

/// The entries of a range in the order of keys, each a key and its value, or the error that ends the walk. It
/// shows the database as it was when it was made (or its snapshot), may outlive the handle, and gives entries
/// from its end as well: [`rev`](Iterator::rev).
///
/// What it gives is copied. A loop that only looks is longer to write with the cursor ([`DbIter`]), and half as
/// fast again over values of 100 bytes in memory. Taking from both ends in turn costs a seek at each turn.
pub struct Entries {
    /// `None` once it is over.
    cursor: Option<DbIter>,
    /// To be given in place of an entry.
    failed: Option<Error>,
    at: At,
    /// Below these keys nothing is shown. Never `Included`: that is the cursor's own bound.
    low: Bound<Vec<u8>>,
    /// Nor above these.
    high: Bound<Vec<u8>>,
}

/// The end whose last entry the cursor stands at.
#[derive(Clone, Copy, PartialEq, Eq)]
enum At {
    Neither,
    Front,
    Back,
}

impl Entries {
    /// The entries in `range`, of a cursor that `open` makes with `options` and the bounds of the range. An
    /// error of `open` is the first and last thing that is given.
    pub fn new(
        range: &(impl KeyBounds + ?Sized),
        options: &ReadOptions,
        open: impl FnOnce(&ReadOptions) -> Result<DbIter>,
    ) -> Entries {
        let mut options = options.clone();
        options.prefix_same_as_start = false;
        let (mut low, mut high) = (Bound::Unbounded, Bound::Unbounded);
        match range.first() {
            Bound::Unbounded => {}
            Bound::Included(key) => options.lower_bound = Some(key.into()),
            Bound::Excluded(key) => {
                options.lower_bound = Some(key.into());
                low = Bound::Excluded(key.to_vec());
            }
        }
        match range.last() {
            Bound::Unbounded => {}
            Bound::Excluded(key) => options.upper_bound = Some(key.into()),
            Bound::Included(key) => {
                options.upper_bound = None;
                high = Bound::Included(key.to_vec());
            }
        }
        let (cursor, failed) = match open(&options) {
            Ok(cursor) => (Some(cursor), None),
            Err(e) => (None, Some(e)),
        };
        Entries { cursor, failed, at: At::Neither, low, high }
    }

    /// The entry where the cursor is now; over if there is none, or the other end has been there.
    #[inline]
    fn give(&mut self) -> Option<Result<(Value, Value)>> {
        let cursor = self.cursor.as_ref()?;
        if !cursor.valid() {
            let failed = cursor.status().err();
            self.cursor = None;
            return failed.map(Err);
        }
        let beyond = match (self.at, &self.low, &self.high) {
            (At::Front, _, Bound::Unbounded) | (At::Back, Bound::Unbounded, _) => false,
            (At::Front, _, high) => !is_below(cursor, high),
            (_, low, _) => !is_above(cursor, low),
        };
        if beyond {
            self.cursor = None;
            return None;
        }
        let entry = Value::copy(cursor.user.key(), "a key")
            .and_then(|key| Ok((key, Value::copy(cursor.user.value(), "a value")?)));
        if entry.is_err() {
            self.cursor = None;
        }
        Some(entry)
    }
}

impl Iterator for Entries {
    type Item = Result<(Value, Value)>;

    #[inline]
    fn next(&mut self) -> Option<Result<(Value, Value)>> {
        let Some(cursor) = &mut self.cursor else { return self.failed.take().map(Err) };
        if self.at == At::Front {
            cursor.next();
            return self.give();
        }
        if self.at == At::Back {
            self.high = Bound::Excluded(cursor.key().to_vec());
        }
        match &self.low {
            Bound::Excluded(key) => {
                cursor.seek(key);
                if cursor.valid() && !is_above(cursor, &self.low) {
                    cursor.next();
                }
            }
            _ => cursor.seek_to_first(),
        }
        self.at = At::Front;
        self.give()
    }
}

impl DoubleEndedIterator for Entries {
    #[inline]
    fn next_back(&mut self) -> Option<Result<(Value, Value)>> {
        let Some(cursor) = &mut self.cursor else { return self.failed.take().map(Err) };
        if self.at == At::Back {
            cursor.prev();
            return self.give();
        }
        if self.at == At::Front {
            self.low = Bound::Excluded(cursor.key().to_vec());
        }
        match &self.high {
            Bound::Included(key) | Bound::Excluded(key) => {
                cursor.seek_for_prev(key);
                if cursor.valid() && !is_below(cursor, &self.high) {
                    cursor.prev();
                }
            }
            Bound::Unbounded => cursor.seek_to_last(),
        }
        self.at = At::Back;
        self.give()
    }
}

impl FusedIterator for Entries {}

/// Whether the cursor's key is one that `high` lets through.
fn is_below(cursor: &DbIter, high: &Bound<Vec<u8>>) -> bool {
    match high {
        Bound::Unbounded => true,
        Bound::Included(high) => cursor.user.order().compare(cursor.key(), high).is_le(),
        Bound::Excluded(high) => cursor.user.order().compare(cursor.key(), high).is_lt(),
    }
}

/// Whether the cursor's key is one that `low` lets through.
fn is_above(cursor: &DbIter, low: &Bound<Vec<u8>>) -> bool {
    match low {
        Bound::Excluded(low) => cursor.user.order().compare(cursor.key(), low).is_gt(),
        // The cursor's own bound, or none.
        Bound::Included(_) | Bound::Unbounded => true,
    }
}

impl std::fmt::Debug for Entries {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.cursor {
            Some(cursor) => write!(f, "Entries({cursor:?})"),
            None => write!(f, "Entries(over)"),
        }
    }
}
