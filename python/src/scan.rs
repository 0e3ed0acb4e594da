//! A walk over a range. It reads ahead of Python in strides, so that the interpreter is let go of once for many
//! entries; a walk shows one moment, so what was read ahead is never stale.

use std::sync::{Arc, Mutex, PoisonError, TryLockError};

use lithify::{Db, DbIter, ReadOptions};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};

use crate::bytes::Bytes;
use crate::database::Shared;
use crate::errors::OrRaise;

/// Entries of the first stride: a walk that is left early has read little in vain.
const FIRST: usize = 8;
/// Entries of a stride at most, and its bytes but for the last entry's.
const MOST: usize = 256;
const MOST_BYTES: usize = 256 << 10;

/// What a walk gives.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum What {
    Keys,
    Values,
    Items,
}

/// Which entries, in which direction, and how many at most.
#[derive(Default)]
pub(crate) struct Range {
    pub(crate) start: Option<Vec<u8>>,
    pub(crate) stop: Option<Vec<u8>>,
    pub(crate) prefix: Option<Vec<u8>>,
    pub(crate) reverse: bool,
    pub(crate) limit: Option<u64>,
}

impl Range {
    pub(crate) fn new(
        start: Option<Bytes<'_>>,
        stop: Option<Bytes<'_>>,
        prefix: Option<Bytes<'_>>,
    ) -> PyResult<Range> {
        if prefix.is_some() && (start.is_some() || stop.is_some()) {
            return Err(PyValueError::new_err("a scan takes start and stop, or prefix, not both"));
        }
        let owned = |bytes: Option<Bytes<'_>>| bytes.map(|b| b.to_vec());
        let (start, stop, prefix) = (owned(start), owned(stop), owned(prefix));
        Ok(Range { start, stop, prefix, ..Range::default() })
    }
    pub(crate) fn walked(self, reverse: bool, limit: Option<u64>) -> Range {
        Range { reverse, limit, ..self }
    }
    pub(crate) fn is_empty(&self) -> bool {
        matches!((&self.start, &self.stop), (Some(start), Some(stop)) if start >= stop)
    }
    pub(crate) fn bound(&self, options: ReadOptions) -> ReadOptions {
        match &self.prefix {
            Some(prefix) => options.with_prefix(prefix),
            None => options.with_bounds(self.start.as_ref(), self.stop.as_ref()),
        }
    }
}

/// An iterator over a range, which can be moved: `seek`.
#[pyclass(frozen, module = "lithify")]
pub(crate) struct Scan {
    walk: Mutex<Walk>,
    shared: Arc<Shared>,
    /// To walk again; `None` in a transaction.
    again: Option<(Db, ReadOptions)>,
    reverse: bool,
    limit: Option<u64>,
    what: What,
}

/// The cursor and what was read ahead of Python.
struct Walk {
    /// `None` once it is over.
    cursor: Option<DbIter>,
    /// Where the cursor has to go before it is read.
    next: Place,
    /// Entries still to be given.
    left: u64,
    stride: usize,
    /// Keys and values, one after another, and where each pair of them ends.
    bytes: Vec<u8>,
    ends: Vec<(usize, usize)>,
    given: usize,
}

enum Place {
    Beginning,
    At(Vec<u8>),
    /// It stands at the next entry.
    Here,
}

impl Scan {
    pub(crate) fn new(
        py: Python<'_>,
        db: &Db,
        shared: &Arc<Shared>,
        range: Range,
        options: ReadOptions,
        what: What,
    ) -> PyResult<Scan> {
        let options = range.bound(options);
        let cursor = py.detach(|| db.iter_opt(&options)).or_raise(py)?;
        let mut scan = Scan::over(cursor, shared, range, what);
        scan.again = Some((db.clone(), options));
        Ok(scan)
    }

    /// A walk with a cursor whose bounds are the range's.
    pub(crate) fn over(cursor: DbIter, shared: &Arc<Shared>, range: Range, what: What) -> Scan {
        let cursor = (!range.is_empty()).then_some(cursor);
        let walk = Walk {
            cursor,
            next: Place::Beginning,
            left: range.limit.unwrap_or(u64::MAX),
            stride: FIRST,
            bytes: Vec::new(),
            ends: Vec::new(),
            given: 0,
        };
        let Range { reverse, limit, .. } = range;
        let shared = shared.clone();
        Scan { walk: Mutex::new(walk), shared, again: None, reverse, limit, what }
    }

    /// The next entry of those that were read ahead.
    fn give<'py>(&self, py: Python<'py>, walk: &mut Walk) -> PyResult<Option<Bound<'py, PyAny>>> {
        let Some(&(key_end, end)) = walk.ends.get(walk.given) else { return Ok(None) };
        let begin = walk.given.checked_sub(1).map_or(0, |before| walk.ends[before].1);
        walk.given += 1;
        let key = || PyBytes::new(py, &walk.bytes[begin..key_end]);
        let value = || PyBytes::new(py, &walk.bytes[key_end..end]);
        Ok(Some(match self.what {
            What::Keys => key().into_any(),
            What::Values => value().into_any(),
            What::Items => PyTuple::new(py, [key(), value()])?.into_any(),
        }))
    }
}

impl Walk {
    /// Reads the next stride, unless another thread has done so.
    fn fill(&mut self, reverse: bool, what: What) -> lithify::Result<()> {
        if self.given < self.ends.len() {
            return Ok(());
        }
        self.bytes.clear();
        self.ends.clear();
        self.given = 0;
        if self.left == 0 {
            self.cursor = None;
        }
        let Some(cursor) = &mut self.cursor else { return Ok(()) };
        match (std::mem::replace(&mut self.next, Place::Here), reverse) {
            (Place::Here, _) => {}
            (Place::Beginning, false) => cursor.seek_to_first(),
            (Place::Beginning, true) => cursor.seek_to_last(),
            (Place::At(key), false) => cursor.seek(key),
            (Place::At(key), true) => cursor.seek_for_prev(key),
        }
        let most = self.left.min(self.stride as u64) as usize;
        while self.ends.len() < most && self.bytes.len() < MOST_BYTES && cursor.valid() {
            if what != What::Values {
                self.bytes.extend_from_slice(cursor.key());
            }
            let key_end = self.bytes.len();
            if what != What::Keys {
                self.bytes.extend_from_slice(cursor.value());
            }
            self.ends.push((key_end, self.bytes.len()));
            if reverse { cursor.prev() } else { cursor.next() }
        }
        self.left -= self.ends.len() as u64;
        self.stride = (self.stride * 4).min(MOST);
        // What was read before an error is given first; the cursor keeps the error.
        if !self.ends.is_empty() {
            return Ok(());
        }
        let status = cursor.status();
        self.cursor = None;
        self.next = Place::Here;
        status
    }
}

#[pymethods]
impl Scan {
    fn __iter__(this: Py<Self>) -> Py<Self> {
        this
    }
    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.shared.check(py)?;
        match self.walk.try_lock() {
            Ok(mut walk) => {
                if let Some(entry) = self.give(py, &mut walk)? {
                    return Ok(Some(entry));
                }
            }
            Err(TryLockError::WouldBlock | TryLockError::Poisoned(_)) => {}
        }
        loop {
            let over = py.detach(|| -> lithify::Result<bool> {
                let mut walk = self.walk.lock().unwrap_or_else(PoisonError::into_inner);
                walk.fill(self.reverse, self.what)?;
                Ok(walk.ends.is_empty())
            });
            if over.or_raise(py)? {
                return Ok(None);
            }
            // Another thread may have taken all of it in between.
            if let Ok(mut walk) = self.walk.try_lock()
                && let Some(entry) = self.give(py, &mut walk)?
            {
                return Ok(Some(entry));
            }
        }
    }
    /// The same range from its other end, as the database is now.
    fn __reversed__(&self, py: Python<'_>) -> PyResult<Scan> {
        let Some((db, options)) = &self.again else {
            return Err(PyTypeError::new_err("in a transaction, pass reverse=True to scan"));
        };
        self.shared.check(py)?;
        let cursor = py.detach(|| db.iter_opt(options)).or_raise(py)?;
        let range = Range { reverse: !self.reverse, limit: self.limit, ..Range::default() };
        let mut scan = Scan::over(cursor, &self.shared, range, self.what);
        scan.again = Some((db.clone(), options.clone()));
        Ok(scan)
    }
    /// Goes on at `key`, or at the entry after it in the direction of the scan. After its end, a scan without a
    /// snapshot goes on with the database as it is then.
    fn seek(&self, py: Python<'_>, key: Bytes<'_>) -> PyResult<()> {
        self.shared.check(py)?;
        let key = key.to_vec();
        let again = self.again.as_ref();
        py.detach(|| {
            let mut walk = self.walk.lock().unwrap_or_else(PoisonError::into_inner);
            let ahead = (walk.ends.len() - walk.given) as u64;
            walk.left = walk.left.saturating_add(ahead);
            walk.ends.clear();
            walk.given = 0;
            walk.next = Place::At(key);
            if walk.cursor.is_none()
                && let Some((db, options)) = again
            {
                walk.cursor = Some(db.iter_opt(options)?);
            }
            Ok(())
        })
        .or_raise(py)
    }
}
