//! What a user sees: each key once, at one sequence number, without what was deleted.
//!
//! Forward, the newest visible entry of a key comes first and decides; the older ones are
//! skipped. Backward they come oldest first, so the last visible one met before the key changes
//! decides, and its value is kept aside. `cursor` then stands before the key's entries. Merge operands
//! are combined when their key is met, and the result is kept aside, too.

use std::ops::ControlFlow;

use lithify_base::key::unknown_kind;
use lithify_base::{
    Comparator, ComparatorRef, Error, Key, Kind, MergeOperatorRef, Prefixes, Result, Seq, Tag,
};
use lithify_tables::sst::Passed;

use super::Cursor;
use super::tombstones::Tombstones;
use crate::operands::Operands;
use crate::value::{Repr, Value};

/// Entries of one key stepped over before a forward move seeks past the key instead.
const STEPS_BEFORE_SEEK: u32 = 8;

enum Place {
    /// Not at an entry.
    Nowhere,
    /// At `cursor`'s entry.
    AtCursor,
    /// At `key` and `value`; `cursor` stands at the last entry before them, if any.
    Aside,
    /// At `key` and `value`; `cursor` stands among the entries of `key` or behind them.
    Combined,
}

/// A user's view over an internal cursor.
pub(crate) struct User<C> {
    cursor: C,
    order: ComparatorRef,
    /// Equal keys have the same bytes.
    identical: bool,
    at: Seq,
    tombstones: Tombstones,
    bounds: Bounds,
    place: Place,
    key: Value,
    /// Key of the last leap on the way forward.
    leapt: Option<Vec<u8>>,
    value: Value,
    error: Option<Error>,
    operator: Option<MergeOperatorRef>,
    operands: Operands,
    /// How prefixes are taken, if a move to a key shows only those of its prefix.
    limited: Option<Prefixes>,
    /// That prefix.
    prefix: Option<Key>,
}

/// The first key that is shown, and the first one beyond.
struct Bounds {
    lower: Option<Key>,
    upper: Option<Key>,
}

impl<C: Cursor> User<C> {
    pub(crate) fn new(
        cursor: C,
        order: ComparatorRef,
        at: Seq,
        tombstones: Tombstones,
        bounds: (Option<Key>, Option<Key>),
        operator: Option<MergeOperatorRef>,
        limited: Option<Prefixes>,
    ) -> User<C> {
        User {
            cursor,
            identical: order.equal_is_identical(),
            order,
            at,
            tombstones,
            bounds: Bounds { lower: bounds.0, upper: bounds.1 },
            place: Place::Nowhere,
            key: Value::EMPTY,
            leapt: None,
            value: Value::EMPTY,
            error: None,
            operator,
            operands: Operands::default(),
            limited,
            prefix: None,
        }
    }

    /// Before a move to `key`: what it shows from then on.
    fn limit_to(&mut self, key: Option<&[u8]>) {
        let Some(by) = &self.limited else { return };
        self.prefix = key.and_then(|key| by.of(key)).map(Key::from);
        self.cursor.narrow(self.prefix.as_deref());
    }
    /// After a move to the first or last key.
    fn limit_here(&mut self) {
        if let Some(by) = &self.limited
            && self.valid()
        {
            self.prefix = by.of(self.key()).map(Key::from);
        }
    }
    /// True if `key` is one of those to be shown.
    #[inline]
    fn is_within(&self, key: &[u8]) -> bool {
        match (&self.limited, &self.prefix) {
            (Some(by), Some(prefix)) => by.of(key) == Some(prefix),
            _ => true,
        }
    }

    /// True if `user` is the key of `self.key`.
    #[inline]
    fn is_same(&self, user: &[u8]) -> bool {
        match self.identical {
            true => user == &self.key[..],
            false => self.order.compare(user, &self.key).is_eq(),
        }
    }

    pub(crate) fn order(&self) -> &dyn Comparator {
        &*self.order
    }
    pub(crate) fn valid(&self) -> bool {
        !matches!(self.place, Place::Nowhere)
    }
    pub(crate) fn key(&self) -> &[u8] {
        match self.place {
            Place::AtCursor => self.cursor.user_key(),
            _ => &self.key,
        }
    }
    pub(crate) fn value(&self) -> &[u8] {
        match self.place {
            Place::AtCursor => self.cursor.value(),
            _ => &self.value,
        }
    }
    /// The current key and value, to be kept; it must be at an entry. Those that were put aside are given away: from
    /// there only [`prev`](User::prev) and moves to a place that is named make sense.
    ///
    /// # Errors
    /// `LimitExceeded` if there is no memory.
    #[inline]
    pub(crate) fn take(&mut self) -> Result<(Value, Value)> {
        match self.place {
            Place::Aside if self.key.is_snug() && self.value.is_snug() => {
                let taken = |value: &mut Value| std::mem::replace(value, Value::EMPTY);
                Ok((taken(&mut self.key), taken(&mut self.value)))
            }
            _ => Ok((Value::copy(self.key(), "a key")?, Value::copy(self.value(), "a value")?)),
        }
    }
    /// The current key and value, if it is at an entry.
    #[inline]
    pub(crate) fn entry(&self) -> Option<(&[u8], &[u8])> {
        match self.place {
            Place::Nowhere => None,
            Place::AtCursor => Some(self.cursor.entry()),
            Place::Aside | Place::Combined => Some((&self.key, &self.value)),
        }
    }
    pub(crate) fn status(&self) -> Result<()> {
        match &self.error {
            Some(e) => Err(e.clone()),
            None => self.cursor.status(),
        }
    }

    pub(crate) fn seek(&mut self, key: &[u8]) {
        self.limit_to(Some(key));
        self.seek_from(key);
    }
    fn seek_from(&mut self, key: &[u8]) {
        let start = match &self.bounds.lower {
            Some(lower) if self.order.compare(key, lower).is_lt() => lower.clone(),
            _ => key.into(),
        };
        (self.error, self.leapt) = (None, None);
        self.cursor.seek(&start, Tag::seek(self.at));
        self.find_forward(false);
    }
    pub(crate) fn seek_to_first(&mut self) {
        self.limit_to(None);
        match self.bounds.lower.clone() {
            Some(lower) => self.seek_from(&lower),
            None => {
                (self.error, self.leapt) = (None, None);
                self.cursor.seek_to_first();
                self.find_forward(false);
            }
        }
        self.limit_here();
    }
    pub(crate) fn seek_for_prev(&mut self, key: &[u8]) {
        self.limit_to(Some(key));
        if let Some(upper) = self.bounds.upper.clone()
            && self.order.compare(key, &upper).is_ge()
        {
            return self.seek_before(&upper);
        }
        self.error = None;
        // Tag 0 sorts after every entry of `key`.
        self.cursor.seek_for_prev(key, Tag(0));
        self.find_backward();
    }
    pub(crate) fn seek_to_last(&mut self) {
        self.limit_to(None);
        match self.bounds.upper.clone() {
            Some(upper) => self.seek_before(&upper),
            None => {
                self.error = None;
                self.cursor.seek_to_last();
                self.find_backward();
            }
        }
        self.limit_here();
    }
    /// The last key below `end`.
    fn seek_before(&mut self, end: &[u8]) {
        self.error = None;
        // The largest tag sorts before every entry of `end`.
        self.cursor.seek_for_prev(end, Tag(u64::MAX));
        self.find_backward();
    }

    pub(crate) fn next(&mut self) {
        match self.place {
            Place::Nowhere => {}
            Place::AtCursor if self.identical => self.next_key(),
            Place::AtCursor => {
                self.key.assign(self.cursor.user_key());
                self.cursor.next();
                self.find_forward(true);
            }
            Place::Aside => {
                let key = std::mem::replace(&mut self.key, Value::EMPTY);
                self.cursor.seek(&key, Tag(0));
                self.key = key;
                self.find_forward(true);
            }
            Place::Combined => self.find_forward(true),
        }
    }
    /// From the entry at `cursor` to the next key, where equal keys have the same bytes.
    fn next_key(&mut self) {
        let mut steps = 0;
        while self.cursor.next_of_same() {
            steps += 1;
            if steps == STEPS_BEFORE_SEEK {
                self.key.assign(self.cursor.user_key());
                self.place = Place::Nowhere;
                if self.leap() {
                    self.find_forward(true);
                }
                return;
            }
        }
        self.find_forward(false);
    }
    /// Gives the current entry and those after it to `take` until it breaks: stands at the entry that it broke at.
    pub(crate) fn walk(&mut self, take: &mut impl FnMut(&[u8], &[u8]) -> ControlFlow<()>) {
        let is_plain = self.tombstones.is_empty()
            && self.limited.is_none()
            && self.identical
            && self.order.is_bytewise();
        while self.valid() {
            if is_plain && matches!(self.place, Place::AtCursor) {
                if self.stretch(take).is_break() {
                    return;
                }
            } else if take(self.key(), self.value()).is_break() {
                return;
            } else {
                self.next();
            }
        }
    }

    /// A part of [`walk`](User::walk), over values that nothing but versions of their own keys hides, up to an operand.
    fn stretch(
        &mut self,
        take: &mut impl FnMut(&[u8], &[u8]) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let (at, upper) = (self.at, self.bounds.upper.as_deref());
        // Whether what there is to say about the key was said, and whether `take` broke.
        let (mut decided, mut refused) = (false, false);
        let walked = self.cursor.walk(&mut |entry: Passed<'_>| {
            decided &= entry.repeats;
            if decided {
                return ControlFlow::Continue(());
            }
            if upper.is_some_and(|upper| entry.user >= upper) {
                return ControlFlow::Break(());
            }
            if entry.tag.seq() > at {
                return ControlFlow::Continue(());
            }
            match entry.tag.kind() {
                Some(Kind::Value) => {
                    refused = take(entry.user, entry.value).is_break();
                    if refused {
                        return ControlFlow::Break(());
                    }
                }
                Some(Kind::Delete | Kind::SingleDelete) => {}
                _ => return ControlFlow::Break(()),
            }
            decided = true;
            ControlFlow::Continue(())
        });
        if walked.is_break() && refused {
            return ControlFlow::Break(());
        }
        // At an entry of whose key nothing was said yet, or at none.
        self.find_forward(false);
        ControlFlow::Continue(())
    }

    pub(crate) fn prev(&mut self) {
        match self.place {
            Place::Nowhere => {}
            Place::AtCursor | Place::Combined => {
                let key = self.key().to_vec();
                self.cursor.seek_for_prev(&key, Tag(u64::MAX));
                self.find_backward();
            }
            Place::Aside => self.find_backward(),
        }
    }

    /// Leaps over the entries of `key` that are left, on the way forward. A leap from a key no larger
    /// than that of the leap before is an error: only a table whose entries are out of order, with sums
    /// that are right, leads back there, and would be walked round for ever.
    fn leap(&mut self) -> bool {
        let again = |last: &Vec<u8>| self.order.compare(&self.key, last).is_le();
        if self.leapt.as_ref().is_some_and(again) {
            let what = "a table's entries are out of order; run `lithify verify` to see which";
            self.error = Some(Error::corruption(what));
            return false;
        }
        let mut key = self.leapt.take().unwrap_or_default();
        key.clear();
        key.extend_from_slice(&self.key);
        self.leapt = Some(key);
        self.cursor.seek(&self.key, Tag(0));
        true
    }

    /// From `cursor` on: the first key with a visible value. With `skip`, entries of `self.key`
    /// are passed over.
    fn find_forward(&mut self, mut skip: bool) {
        let mut steps = 0;
        self.place = Place::Nowhere;
        while self.cursor.valid() {
            if let Some(upper) = &self.bounds.upper
                && self.order.compare(self.cursor.user_key(), upper).is_ge()
            {
                return;
            }
            if self.limited.is_some() && !self.is_within(self.cursor.user_key()) {
                return;
            }
            if skip && self.is_same(self.cursor.user_key()) {
                steps += 1;
                if steps > STEPS_BEFORE_SEEK {
                    steps = 0;
                    if !self.leap() {
                        return;
                    }
                    // An entry at tag 0 itself may be left; the loop passes over it.
                    if self.cursor.valid() && self.is_same(self.cursor.user_key()) {
                        self.cursor.next();
                    }
                } else {
                    self.cursor.next();
                }
                continue;
            }
            let tag = self.cursor.tag();
            if tag.seq() > self.at {
                self.cursor.next();
                continue;
            }
            let found = match tag.kind() {
                // Most entries, where nothing else need be asked.
                Some(Kind::Value) if self.tombstones.is_empty() => Ok(Some(Place::AtCursor)),
                Some(Kind::Merge) => {
                    self.combine_forward().map(|some| some.then_some(Place::Combined))
                }
                _ => self
                    .visible(self.cursor.user_key(), tag)
                    .map(|some| some.then_some(Place::AtCursor)),
            };
            match found {
                Ok(Some(place)) => {
                    self.place = place;
                    return;
                }
                Ok(None) => {
                    self.key.assign(self.cursor.user_key());
                    skip = true;
                    self.cursor.next();
                }
                Err(e) => {
                    self.error = Some(e);
                    return;
                }
            }
        }
    }

    /// Combines the operand at `cursor` with what lies below it. False if a range deletion hides it;
    /// `cursor` has not moved then.
    fn combine_forward(&mut self) -> Result<bool> {
        self.key.assign(self.cursor.user_key());
        self.operands.clear();
        let hidden = self.tombstones.covering(&self.key, self.at)?;
        let mut base = None;
        while self.cursor.valid() && self.order.compare(self.cursor.user_key(), &self.key).is_eq() {
            let (tag, value) = (self.cursor.tag(), self.cursor.value());
            if let ControlFlow::Break(found) = self.operands.take(tag, value, hidden)? {
                base = found;
                break;
            }
            self.cursor.next();
        }
        // An error met on the way may hide what the operands are applied to.
        self.cursor.status()?;
        if self.operands.is_empty() {
            return Ok(false);
        }
        let all = self.operands.combine(self.operator.as_ref(), &self.key, base.as_deref())?;
        self.value = Value(Repr::Copied(all));
        Ok(true)
    }

    /// From `cursor` back: the first key with a visible value, kept aside.
    fn find_backward(&mut self) {
        self.place = Place::Nowhere;
        self.leapt = None;
        while self.cursor.valid() {
            self.key.assign(self.cursor.user_key());
            if let Some(lower) = &self.bounds.lower
                && self.order.compare(&self.key, lower).is_lt()
            {
                return;
            }
            if !self.is_within(&self.key) {
                return;
            }
            let mut decided = None;
            let mut lost = Ok(());
            self.operands.clear();
            while self.cursor.valid() && self.is_same(self.cursor.user_key()) {
                let tag = self.cursor.tag();
                if !self.identical && tag.seq() <= self.at {
                    // As the newest entry spells it.
                    self.key.assign(self.cursor.user_key());
                }
                if tag.seq() <= self.at && tag.kind() == Some(Kind::Merge) {
                    lost = lost.and(self.operands.push(tag.seq(), self.cursor.value()));
                } else if tag.seq() <= self.at {
                    decided = Some(tag);
                    self.operands.clear();
                    self.value.assign(self.cursor.value());
                }
                self.cursor.prev();
            }
            // An error met on the way may hide a newer entry of this very key.
            if self.cursor.status().is_err() {
                return;
            }
            let below = decided.map_or(Ok(false), |tag| self.visible(&self.key, tag));
            match lost.and(below).and_then(|below| self.combine_backward(below)) {
                Ok(true) => {
                    self.place = Place::Aside;
                    return;
                }
                Ok(false) => {}
                Err(e) => {
                    self.error = Some(e);
                    return;
                }
            }
        }
    }

    /// Combines the operands met on the way back with `value`, if that is there. False if there is
    /// nothing after all.
    fn combine_backward(&mut self, below: bool) -> Result<bool> {
        if !self.operands.is_empty() {
            self.operands.turn(self.tombstones.covering(&self.key, self.at)?);
        }
        if self.operands.is_empty() {
            return Ok(below);
        }
        let base = below.then_some(&self.value[..]);
        let all = self.operands.combine(self.operator.as_ref(), &self.key, base)?;
        self.value = Value(Repr::Copied(all));
        Ok(true)
    }

    /// Whether the newest entry of `key` at or below the snapshot is a value no range deletion
    /// hides.
    fn visible(&self, key: &[u8], tag: Tag) -> Result<bool> {
        match tag.kind() {
            Some(Kind::Value) => {}
            Some(Kind::Delete | Kind::SingleDelete) => return Ok(false),
            Some(Kind::Merge | Kind::RangeDelete) | None => {
                return Err(unknown_kind(tag.kind_byte()));
            }
        }
        if self.tombstones.is_empty() {
            return Ok(true);
        }
        Ok(self.tombstones.covering(key, self.at)?.is_none_or(|seq| seq <= tag.seq()))
    }
}
