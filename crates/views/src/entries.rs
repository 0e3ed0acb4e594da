//! Entries of a range as std's iterators give them: from either end, each with what it owns.
//!
//! One cursor serves both ends. It stands at the entry that was given last; when the other end is asked, a limit is
//! set there and the cursor is moved. So a walk in one direction costs what the cursor's
//! does, and each turn of direction a seek. A long walk forward takes entries in batches, as
//! [`DbIter::walk`] comes past them for less than steps cost; short ones read nothing in vain.
//!
//! Keeps: each entry of the range is given once, whatever the ends take turns at; after the last one, and after
//! an error, nothing comes any more, and what the cursor kept alive is let go of.
//! Leaves to others: what a user sees (`iter`).

use std::collections::VecDeque;
use std::iter::FusedIterator;
use std::ops::{Bound, ControlFlow};

use lithify_base::{Error, Result};

use crate::iter::db::DbIter;
use crate::options::{KeyBounds, ReadOptions};
use crate::value::Value;

/// The entries of a range in the order of keys, each a key and its value, or the error that ends the walk. It
/// shows the database as it was when it was made (or its snapshot), may outlive the handle, and gives entries
/// from its end as well: [`rev`](Iterator::rev).
///
/// What it gives is copied, for about what a loop over the cursor ([`DbIter`]) that copies takes. Taking from both ends
/// in turn costs a seek at each turn.
pub struct Entries {
    /// `None` once it is over.
    cursor: Option<DbIter>,
    /// To be given in place of an entry.
    failed: Option<Error>,
    at: At,
    /// Entries before the front's next ones that the cursor has come past; it stands at the last of them, if it is valid.
    ahead: VecDeque<(Value, Value)>,
    /// Entries that the front was given one by one.
    singly: usize,
    /// Below these keys nothing is shown. `Included` only where the front had read ahead: a range's own such bound is
    /// the cursor's.
    low: Bound<Vec<u8>>,
    /// Nor above these.
    high: Bound<Vec<u8>>,
}

/// Entries that the front is given one by one before it takes batches: most ranges have no more.
const SINGLY: usize = 16;
/// Entries of a batch: as many allocations as glibc's allocator has at hand without a search (7 of a size), as those of
/// the batch before were let go of. And the bytes that end it sooner.
const BATCH: usize = 6;
const BATCH_BYTES: usize = 4 << 10;

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
        let ahead = VecDeque::new();
        Entries { cursor, failed, at: At::Neither, ahead, singly: 0, low, high }
    }

    /// Nothing comes any more, but for what went wrong.
    fn end(&mut self) -> Option<Result<(Value, Value)>> {
        self.ahead.clear();
        let cursor = self.cursor.take();
        let failed = cursor.and_then(|cursor| cursor.status().err());
        failed.or_else(|| self.failed.take()).map(Err)
    }

    /// The entry where the cursor is now; over if there is none, or the other end has been there.
    #[inline]
    fn give(&mut self) -> Option<Result<(Value, Value)>> {
        let cursor = self.cursor.as_mut()?;
        if !cursor.valid() {
            return self.end();
        }
        let beyond = match (self.at, &self.low, &self.high) {
            (At::Front, _, Bound::Unbounded) | (At::Back, Bound::Unbounded, _) => false,
            (At::Front, _, high) => !is_below(cursor, cursor.key(), high),
            (_, low, _) => !is_above(cursor, cursor.key(), low),
        };
        if beyond {
            self.cursor = None;
            return None;
        }
        let entry = cursor.user.take();
        if entry.is_err() {
            self.cursor = None;
        }
        Some(entry)
    }

    /// The front's next entry where it takes batches.
    #[inline]
    fn take_ahead(&mut self) -> Option<Result<(Value, Value)>> {
        if self.ahead.is_empty() && self.failed.is_none() {
            self.read_ahead();
        }
        let Some(entry) = self.ahead.pop_front() else { return self.end() };
        if !matches!(self.high, Bound::Unbounded)
            && !self.cursor.as_ref().is_some_and(|cursor| is_below(cursor, &entry.0, &self.high))
        {
            self.ahead.clear();
            self.cursor = None;
            return None;
        }
        Some(Ok(entry))
    }

    /// Takes a batch of those behind the cursor's entry, which was given.
    fn read_ahead(&mut self) {
        let Some(cursor) = &mut self.cursor else { return };
        let (ahead, failed) = (&mut self.ahead, &mut self.failed);
        ahead.reserve(BATCH);
        let (mut was_given, mut bytes) = (true, 0);
        cursor.walk(|key, value| {
            if std::mem::take(&mut was_given) {
                return ControlFlow::Continue(());
            }
            match (Value::copy(key, "a key"), Value::copy(value, "a value")) {
                (Ok(key), Ok(value)) => ahead.push_back((key, value)),
                (Err(e), _) | (_, Err(e)) => {
                    *failed = Some(e);
                    return ControlFlow::Break(());
                }
            }
            bytes += key.len() + value.len();
            match ahead.len() < BATCH && bytes < BATCH_BYTES {
                true => ControlFlow::Continue(()),
                false => ControlFlow::Break(()),
            }
        });
    }
}

impl Iterator for Entries {
    type Item = Result<(Value, Value)>;

    #[inline]
    fn next(&mut self) -> Option<Result<(Value, Value)>> {
        if self.at == At::Front {
            if self.singly == SINGLY {
                return self.take_ahead();
            }
            let Some(cursor) = &mut self.cursor else { return self.end() };
            self.singly += 1;
            cursor.next();
            return self.give();
        }
        let Some(cursor) = &mut self.cursor else { return self.end() };
        if self.at == At::Back {
            // What was given last may be gone from the cursor; the one before it is the last that is left.
            cursor.prev();
            if !cursor.valid() {
                return self.end();
            }
            self.high = Bound::Included(cursor.key().to_vec());
        }
        match &self.low {
            Bound::Excluded(key) => {
                cursor.seek(key);
                if cursor.valid() && !is_above(cursor, cursor.key(), &self.low) {
                    cursor.next();
                }
            }
            Bound::Included(key) => cursor.seek(key),
            Bound::Unbounded => cursor.seek_to_first(),
        }
        (self.at, self.singly) = (At::Front, 0);
        self.give()
    }
}

impl DoubleEndedIterator for Entries {
    #[inline]
    fn next_back(&mut self) -> Option<Result<(Value, Value)>> {
        let Some(cursor) = &mut self.cursor else { return self.end() };
        if self.at == At::Back {
            cursor.prev();
            return self.give();
        }
        if self.at == At::Front {
            self.low = match self.ahead.pop_front() {
                Some((key, _)) => Bound::Included(key.into()),
                // The front came to the end.
                None if !cursor.valid() => return self.end(),
                // What there was no memory for was not given.
                None if self.failed.is_some() => Bound::Included(cursor.key().to_vec()),
                None => Bound::Excluded(cursor.key().to_vec()),
            };
            (self.ahead, self.failed) = (VecDeque::new(), None);
        }
        match &self.high {
            Bound::Included(key) | Bound::Excluded(key) => {
                cursor.seek_for_prev(key);
                if cursor.valid() && !is_below(cursor, cursor.key(), &self.high) {
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

/// Whether `high` lets `key` through.
fn is_below(cursor: &DbIter, key: &[u8], high: &Bound<Vec<u8>>) -> bool {
    match high {
        Bound::Unbounded => true,
        Bound::Included(high) => cursor.user.order().compare(key, high).is_le(),
        Bound::Excluded(high) => cursor.user.order().compare(key, high).is_lt(),
    }
}

/// Whether `low` lets `key` through.
fn is_above(cursor: &DbIter, key: &[u8], low: &Bound<Vec<u8>>) -> bool {
    match low {
        Bound::Unbounded => true,
        Bound::Included(low) => cursor.user.order().compare(key, low).is_ge(),
        Bound::Excluded(low) => cursor.user.order().compare(key, low).is_gt(),
    }
}

impl std::fmt::Debug for Entries {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.cursor {
            Some(_) => write!(f, "Entries(under way)"),
            None => write!(f, "Entries(over)"),
        }
    }
}
