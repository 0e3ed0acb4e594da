//! Iterators.
//!
//! Keeps: what a key or value points to stays until the next move, or with `pin_data` until the iterator
//! is destroyed. An error ends an iteration and is told by `get_error`; after the close of the database
//! that is what every move gives. A move notes where key and value are, so that the calls which ask for them, three
//! an entry in a usual loop, look at nothing else.

use std::ffi::c_char;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use lithify::{Error, ErrorKind, ReadOptions};

use crate::db::{Database, Family};
use crate::face::{Face, Walk};
use crate::perf::{self, By};
use crate::raw::{Outs, Res, export, give};
use crate::small::Reads;

/// Bytes as C is given them.
#[derive(Clone, Copy)]
struct Bytes {
    at: *const c_char,
    len: usize,
}

impl From<&[u8]> for Bytes {
    #[inline]
    fn from(bytes: &[u8]) -> Bytes {
        Bytes { at: bytes.as_ptr().cast(), len: bytes.len() }
    }
}

/// Where the current entry is. It is of the last move, as the bytes are there until the next one.
#[derive(Clone, Copy)]
struct Here {
    key: Bytes,
    value: Bytes,
}

/// `rocksdb_iterator_t`.
pub(crate) struct Iter {
    inner: Res<Walk>,
    /// The entry that `inner` is at; none where it is not valid.
    here: Option<Here>,
    /// What it is made of again: at a refresh, and at each seek if it follows what is written.
    from: Option<(Face, ReadOptions)>,
    follows: bool,
    /// What was handed out, if it is to stay.
    pins: Option<Vec<Box<[u8]>>>,
    closed: Arc<AtomicBool>,
    /// Bytes of the entries that it came to.
    read: usize,
}

impl Drop for Iter {
    /// As RocksDB's, it is counted by the thread that lets go of it.
    fn drop(&mut self) {
        perf::read(By::Iter, self.read);
    }
}

impl Iter {
    /// Over `face`, which is a family's or the database itself.
    pub(crate) fn over(face: &Face, of: &Database, options: &Reads) -> *mut Iter {
        let checked = options.checked();
        give(Iter {
            inner: checked.clone().and_then(|options| face.iter(options)),
            here: None,
            from: checked.ok().map(|options| (face.clone(), options.clone())),
            follows: options.tailing,
            pins: options.pins.then(Vec::new),
            closed: of.closed.clone(),
            read: 0,
        })
    }
    /// One that was made elsewhere, as by a transaction.
    pub(crate) fn made(inner: Res<Walk>, of: &Database, options: &Reads) -> *mut Iter {
        let pins = options.pins.then(Vec::new);
        let closed = of.closed.clone();
        give(Iter { inner, here: None, from: None, follows: false, pins, closed, read: 0 })
    }

    fn seek(&mut self, seek: impl FnOnce(&mut Walk)) {
        if self.follows {
            self.again();
        }
        self.step(seek);
    }
    /// The same to a key, which may be the one that the iterator stands on: its memory goes with the move.
    fn seek_to(&mut self, key: &[u8], seek: impl FnOnce(&mut Walk, &[u8])) {
        match self.here {
            None => self.seek(|inner| seek(inner, key)),
            Some(_) => {
                let key = key.to_vec();
                self.seek(|inner| seek(inner, &key));
            }
        }
    }
    #[inline]
    fn step(&mut self, step: impl FnOnce(&mut Walk)) {
        // What is there now goes with the move, or with the iterator.
        self.here = None;
        if self.closed.load(Ordering::SeqCst) {
            self.inner = Err(Error::new(ErrorKind::ShuttingDown, "the database is closed"));
        }
        if let Ok(inner) = &mut self.inner {
            step(inner);
            if let Some((key, value)) = inner.entry() {
                self.here = Some(Here { key: key.into(), value: value.into() });
                self.read += key.len() + value.len();
            }
        }
    }
    #[inline]
    fn next(&mut self) {
        match self.follows {
            false => self.step(Walk::next),
            true => self.follow(),
        }
    }
    /// A step forward of one that follows what is written, which looks for more at its end.
    #[cold]
    fn follow(&mut self) {
        let last = self.inner.as_ref().ok().filter(|inner| inner.valid());
        let last = last.map(|inner| inner.key().to_vec());
        self.step(Walk::next);
        let Some(last) = last else { return };
        if self.inner.as_ref().is_ok_and(|inner| !inner.valid() && inner.status().is_ok()) {
            self.again();
            self.step(|inner| {
                inner.seek(&last);
                if inner.valid() && inner.key() == last {
                    inner.next();
                }
            });
        }
    }
    fn again(&mut self) {
        if let Some((face, options)) = &self.from {
            self.here = None;
            self.inner = face.iter(options);
        }
    }
    /// Gives a part of the current entry out, or NULL.
    #[inline]
    fn out(
        &mut self,
        len: &Outs<usize>,
        part: impl Fn(&Here) -> Bytes,
        of: impl Fn(&Walk) -> &[u8],
    ) -> *const c_char {
        let Some(here) = &self.here else {
            len.set(0);
            return std::ptr::null();
        };
        let bytes = part(here);
        len.set(bytes.len);
        if self.pins.is_some() {
            return self.pinned(of);
        }
        bytes.at
    }
    /// A copy that stays as long as the iterator.
    #[cold]
    fn pinned(&mut self, of: impl Fn(&Walk) -> &[u8]) -> *const c_char {
        let (Ok(inner), Some(pins)) = (&self.inner, &mut self.pins) else {
            return std::ptr::null();
        };
        pins.push(of(inner).into());
        pins.last().map_or(std::ptr::null(), |kept| kept.as_ptr().cast())
    }
}

export! {
    fn rocksdb_create_iterator(db: &Database, options: &Reads) -> *mut Iter {
        Ok(Iter::over(&db.face, db, options))
    }
    fn rocksdb_create_iterator_cf(db: &Database, options: &Reads, family: &Family) -> *mut Iter {
        Ok(Iter::over(&family.face, db, options))
    }
    fn rocksdb_create_iterators(
        db: &Database, options: &Reads, families: many *const Family, iterators: outs *mut Iter, n: usize, errptr
    ) {
        let families = families.handles(n, "column_families")?;
        // All as of one moment.
        let mut options = options.clone();
        options.pin_moment(|read| db.at_one_moment(read))?;
        for (i, family) in families.into_iter().enumerate() {
            iterators.set_at(i, Iter::over(&family.face, db, &options));
        }
        Ok(())
    }
    fn rocksdb_iter_destroy(iter: own Iter) {
        drop(iter);
        Ok(())
    }
    fn rocksdb_iter_valid(iter: &Iter) -> u8 {
        Ok(u8::from(iter.here.is_some()))
    }
    fn rocksdb_iter_seek_to_first(iter: &mut Iter) {
        iter.seek(Walk::seek_to_first);
        Ok(())
    }
    fn rocksdb_iter_seek_to_last(iter: &mut Iter) {
        iter.seek(Walk::seek_to_last);
        Ok(())
    }
    fn rocksdb_iter_seek(iter: &mut Iter, (key, klen): bytes) {
        iter.seek_to(key, |inner, key| inner.seek(key));
        Ok(())
    }
    fn rocksdb_iter_seek_for_prev(iter: &mut Iter, (key, klen): bytes) {
        iter.seek_to(key, |inner, key| inner.seek_for_prev(key));
        Ok(())
    }
    fn rocksdb_iter_next(iter: &mut Iter) {
        iter.next();
        Ok(())
    }
    fn rocksdb_iter_prev(iter: &mut Iter) {
        iter.step(Walk::prev);
        Ok(())
    }
    fn rocksdb_iter_key(iter: &mut Iter, len: out usize) -> *const c_char {
        Ok(iter.out(&len, |here| here.key, Walk::key))
    }
    fn rocksdb_iter_value(iter: &mut Iter, len: out usize) -> *const c_char {
        Ok(iter.out(&len, |here| here.value, Walk::value))
    }
    fn rocksdb_iter_get_error(iter: &Iter, errptr) {
        iter.inner.as_ref().map_err(Error::clone).and_then(Walk::status)
    }
    fn rocksdb_iter_refresh(iter: &mut Iter, errptr) {
        if iter.from.is_none() {
            return Err(Error::unsupported("an iterator of a transaction is not refreshed; make another one"));
        }
        // From here on it shows what is there now, whatever it was made at.
        if let Some((_, options)) = &mut iter.from {
            options.snapshot = None;
        }
        iter.again();
        iter.inner.as_ref().map(drop).map_err(Error::clone)
    }
}
