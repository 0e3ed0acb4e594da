//! Reads and writes of single keys, and of several at once.

use std::ffi::c_char;

use lithify::{Error, ReadOptions, Transaction, Value, WriteOptions};

use crate::batch::Batch;
use crate::db::{Database, Family};
use crate::face::Face;
use crate::perf::{self, By};
use crate::raw::{Many, Outs, Res, c_bytes, c_text, export, give};
use crate::small::{Reads, WriteOpts};
use crate::status::status;

/// `rocksdb_pinnableslice_t`: a value that stays until it is let go.
pub(crate) enum Found {
    /// As it lies in the store.
    Pinned(Value),
    /// Its own bytes.
    Copied(Vec<u8>),
}

impl From<Value> for Found {
    fn from(value: Value) -> Found {
        Found::Pinned(value)
    }
}

impl std::ops::Deref for Found {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        match self {
            Found::Pinned(value) => value,
            Found::Copied(value) => value,
        }
    }
}

/// A value in memory of the C library, or NULL; its length goes out.
pub(crate) fn copied(value: Option<impl Into<Found>>, len: &Outs<usize>) -> *mut c_char {
    let value: Option<Found> = value.map(Into::into);
    let bytes = value.as_ref().map_or(0, |value| value.len());
    perf::read(By::Get, bytes);
    len.set(bytes);
    value.map_or(std::ptr::null_mut(), |value| c_bytes(&value))
}

/// The value of `key` in memory of the C library, or NULL; its length goes out.
fn copy_of(face: &Face, key: &[u8], options: &Reads, len: &Outs<usize>) -> Res<*mut c_char> {
    len.set(0);
    let found = face.get_with(key, options.checked()?, |value| (c_bytes(value), value.len()))?;
    let (copy, bytes) = found.unwrap_or((std::ptr::null_mut(), 0));
    perf::read(By::Get, bytes);
    len.set(bytes);
    Ok(copy)
}

/// A value that stays where it is.
pub(crate) fn pinned(value: Option<impl Into<Found>>) -> *mut Found {
    let value: Option<Found> = value.map(Into::into);
    perf::read(By::Get, value.as_ref().map_or(0, |value| value.len()));
    value.map_or(std::ptr::null_mut(), give)
}

/// Where the values of several keys go, and an error for each.
pub(crate) struct Answers {
    pub(crate) values: Outs<*mut c_char>,
    pub(crate) lens: Outs<usize>,
    pub(crate) errors: Outs<*mut c_char>,
}

impl Answers {
    /// Puts the answer for key `i`.
    pub(crate) fn put(&self, i: usize, read: Res<Option<impl Into<Found>>>) {
        let (value, error) = split(read);
        let value: Option<Found> = value.map(Into::into);
        perf::read(By::MultiGet, value.as_ref().map_or(0, |value| value.len()));
        self.lens.set_at(i, value.as_ref().map_or(0, |value| value.len()));
        self.values.set_at(i, value.map_or(std::ptr::null_mut(), |value| c_bytes(&value)));
        self.errors.set_at(i, error);
    }
}

fn split<T>(read: Res<Option<T>>) -> (Option<T>, *mut c_char) {
    match read {
        Ok(value) => (value, std::ptr::null_mut()),
        Err(error) => (None, c_text(&status(&error))),
    }
}

/// The values of several keys of one family, all of one moment; an error stands for each of them.
fn read_all(face: &Face, keys: &[&[u8]], options: Res<&ReadOptions>) -> Vec<Res<Option<Value>>> {
    match options.and_then(|options| face.multi_get(keys, options)) {
        Ok(values) => values.into_iter().map(Ok).collect(),
        Err(error) => keys.iter().map(|_| Err(error.clone())).collect(),
    }
}

/// The keys of a call for several. What is wrong with them is told for each key.
pub(crate) fn keys_of<'a>(
    n: usize,
    keys: Many<*const c_char>,
    lens: Many<usize>,
    answers: &Answers,
) -> Option<Vec<&'a [u8]>> {
    keys.bytes(lens, n, "keys_list").map_err(|error| all_failed(n, &error, answers)).ok()
}

/// Puts the values of several keys of the default family, all of one moment.
pub(crate) fn read_together(
    db: &Database,
    options: &Reads,
    n: usize,
    keys: (Many<*const c_char>, Many<usize>),
    answers: &Answers,
) {
    let Some(keys) = keys_of(n, keys.0, keys.1, answers) else { return };
    let read = read_all(&db.face, &keys, options.checked());
    read.into_iter().enumerate().for_each(|(i, read)| answers.put(i, read));
}

/// The same of keys of a family each.
pub(crate) fn read_in_families(
    db: &Database,
    options: &Reads,
    n: usize,
    families: Many<*const Family>,
    keys: (Many<*const c_char>, Many<usize>),
    answers: &Answers,
) {
    let families = match families.handles(n, "column_families") {
        Ok(families) => families,
        Err(error) => return all_failed(n, &error, answers),
    };
    let Some(keys) = keys_of(n, keys.0, keys.1, answers) else { return };
    let mut options = options.checked().cloned();
    if let Ok(options) = &mut options {
        db.at_one_moment(options);
    }
    for (i, (family, key)) in families.into_iter().zip(keys).enumerate() {
        let read = options.as_ref().map_err(Error::clone);
        answers.put(i, read.and_then(|options| family.face.get(key, options)));
    }
}

/// Writes by `plain`; where the database's transactions take locks, by `locked`, which waits for them.
#[inline]
fn write(
    db: &Database,
    options: &WriteOpts,
    plain: impl FnOnce(&WriteOptions) -> Res<()>,
    locked: impl FnOnce(&mut Transaction) -> Res<()>,
) -> Res<()> {
    match db.locks {
        None => db.told(plain(&db.level(options)?)),
        Some(_) => db.write_locked(options, locked),
    }
}

fn all_failed(n: usize, error: &Error, answers: &Answers) {
    (0..n).for_each(|i| answers.put(i, Err::<Option<Value>, _>(error.clone())));
}

/// A key that may be there: the value goes out if there is a place for it.
fn may_exist(
    read: Res<Option<Value>>,
    value: &Outs<*mut c_char>,
    len: &Outs<usize>,
    found: &Outs<u8>,
) -> u8 {
    found.set(0);
    match read {
        // What memory does not tell may be there.
        Err(_) => 1,
        Ok(None) => 0,
        Ok(Some(bytes)) => {
            if !value.is_null() {
                len.set(bytes.len());
                value.set(c_bytes(&bytes));
                found.set(1);
            }
            1
        }
    }
}

export! {
    fn rocksdb_put(
        db: &Database, options: &WriteOpts, (key, keylen): bytes, (val, vallen): bytes, errptr
    ) {
        write(db, options, |at| db.face.put(key, val, at), |txn| txn.put(key, val))
    }
    fn rocksdb_put_cf(
        db: &Database, options: &WriteOpts, family: &Family, (key, keylen): bytes, (val, vallen): bytes, errptr
    ) {
        let of = &*family.inner()?;
        write(db, options, |at| family.face.put(key, val, at), |txn| txn.put_cf(of, key, val))
    }
    fn rocksdb_delete(db: &Database, options: &WriteOpts, (key, keylen): bytes, errptr) {
        write(db, options, |at| db.db().delete_opt(key, at), |txn| txn.delete(key))
    }
    fn rocksdb_delete_cf(
        db: &Database, options: &WriteOpts, family: &Family, (key, keylen): bytes, errptr
    ) {
        let of = &*family.inner()?;
        write(db, options, |at| of.delete_opt(key, at), |txn| txn.delete_cf(of, key))
    }
    fn rocksdb_singledelete(db: &Database, options: &WriteOpts, (key, keylen): bytes, errptr) {
        write(db, options, |at| db.db().single_delete_opt(key, at), |txn| txn.single_delete(key))
    }
    fn rocksdb_singledelete_cf(
        db: &Database, options: &WriteOpts, family: &Family, (key, keylen): bytes, errptr
    ) {
        let of = &*family.inner()?;
        write(db, options, |at| of.single_delete_opt(key, at), |txn| txn.single_delete_cf(of, key))
    }
    fn rocksdb_merge(
        db: &Database, options: &WriteOpts, (key, keylen): bytes, (val, vallen): bytes, errptr
    ) {
        write(db, options, |at| db.face.merge(key, val, at), |txn| txn.merge(key, val))
    }
    fn rocksdb_merge_cf(
        db: &Database, options: &WriteOpts, family: &Family, (key, keylen): bytes, (val, vallen): bytes, errptr
    ) {
        let of = &*family.inner()?;
        write(db, options, |at| family.face.merge(key, val, at), |txn| txn.merge_cf(of, key, val))
    }
    fn rocksdb_delete_range_cf(
        db: &Database, options: &WriteOpts, family: &Family, (from, flen): bytes, (to, tlen): bytes, errptr
    ) {
        write(db, options, |at| family.inner()?.delete_range_opt(from, to, at), |_| Database::no_range())
    }
    fn rocksdb_write(db: &Database, options: &WriteOpts, batch: &Batch, errptr) {
        let batch = batch.sound()?;
        write(db, options, |at| db.face.write(batch, at), |txn| db.add_all(batch, txn))
    }
    fn rocksdb_get(
        db: &Database, options: &Reads, (key, keylen): bytes, vallen: out usize, errptr
    ) -> *mut c_char {
        copy_of(&db.face, key, options, &vallen)
    }
    fn rocksdb_get_cf(
        db: &Database, options: &Reads, family: &Family, (key, keylen): bytes, vallen: out usize, errptr
    ) -> *mut c_char {
        let _ = db;
        copy_of(&family.face, key, options, &vallen)
    }
    fn rocksdb_get_pinned(db: &Database, options: &Reads, (key, keylen): bytes, errptr) -> *mut Found {
        Ok(pinned(db.face.get(key, options.checked()?)?))
    }
    fn rocksdb_get_pinned_cf(
        db: &Database, options: &Reads, family: &Family, (key, keylen): bytes, errptr
    ) -> *mut Found {
        let _ = db;
        Ok(pinned(family.face.get(key, options.checked()?)?))
    }
    fn rocksdb_pinnableslice_value(value: maybe Found, len: out usize) -> *const c_char {
        len.set(value.map_or(0, |value| value.len()));
        Ok(value.map_or(std::ptr::null(), |value| value.as_ptr().cast()))
    }
    fn rocksdb_pinnableslice_destroy(value: own Found) {
        drop(value);
        Ok(())
    }
    fn rocksdb_multi_get(
        db: &Database, options: &Reads, n: usize, keys: many *const c_char, key_lens: many usize,
        values: outs *mut c_char, value_lens: outs usize, errs: outs *mut c_char
    ) {
        let answers = Answers { values, lens: value_lens, errors: errs };
        read_together(db, options, n, (keys, key_lens), &answers);
        Ok(())
    }
    fn rocksdb_multi_get_cf(
        db: &Database, options: &Reads, families: many *const Family, n: usize, keys: many *const c_char,
        key_lens: many usize, values: outs *mut c_char, value_lens: outs usize, errs: outs *mut c_char
    ) {
        let answers = Answers { values, lens: value_lens, errors: errs };
        read_in_families(db, options, n, families, (keys, key_lens), &answers);
        Ok(())
    }
    fn rocksdb_batched_multi_get_cf(
        db: &Database, options: &Reads, family: &Family, n: usize, keys: many *const c_char,
        key_lens: many usize, values: outs *mut Found, errs: outs *mut c_char, sorted_input: bool
    ) {
        let _ = (db, sorted_input);
        let read = match keys.bytes(key_lens, n, "keys_list") {
            Ok(keys) => read_all(&family.face, &keys, options.checked()),
            Err(error) => (0..n).map(|_| Err(error.clone())).collect(),
        };
        for (i, read) in read.into_iter().enumerate() {
            let (value, error) = split(read);
            values.set_at(i, pinned(value));
            errs.set_at(i, error);
        }
        Ok(())
    }
    fn rocksdb_key_may_exist(
        db: &Database, options: &Reads, (key, keylen): bytes, value: out *mut c_char, len: out usize,
        (ts, tslen): bound, found: out u8
    ) -> u8 {
        let _ = ts;
        let read = options.in_memory().and_then(|options| db.face.get(key, &options));
        Ok(may_exist(read, &value, &len, &found))
    }
    fn rocksdb_key_may_exist_cf(
        db: &Database, options: &Reads, family: &Family, (key, keylen): bytes, value: out *mut c_char,
        len: out usize, (ts, tslen): bound, found: out u8
    ) -> u8 {
        let _ = (db, ts);
        let read = options.in_memory().and_then(|options| family.face.get(key, &options));
        Ok(may_exist(read, &value, &len, &found))
    }
}
