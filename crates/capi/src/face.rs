//! What a handle reads and writes through: the database itself, one whose values expire, or one that follows
//! another process.
//!
//! Keeps: a database that follows shows what it saw when it last caught up, in all its families.
//! Leaves to others: what a time to live and a follower are (`lithify`).

use std::ops::Deref;
use std::sync::Arc;

use lithify::{
    Db, DbIter, Error, ErrorKind, Follower, ReadOptions, TtlDb, TtlIter, Value, WriteBatch,
    WriteOptions,
};

use crate::raw::Res;

/// The family that every database has.
pub(crate) const DEFAULT: &str = "default";

/// One family of a database, or the database for its default one.
#[derive(Clone)]
pub(crate) enum Face {
    Plain(Db),
    /// Its values have times.
    Timed(TtlDb),
    /// It follows, and this is the family's name.
    Follows(Arc<Follower>, Arc<str>),
}

/// A database to ask for what is not about values.
pub(crate) enum Seen<'a> {
    Own(&'a Db),
    View(Db),
}

impl Deref for Seen<'_> {
    type Target = Db;
    fn deref(&self) -> &Db {
        match self {
            Seen::Own(db) => db,
            Seen::View(db) => db,
        }
    }
}

impl Face {
    /// The database as it is seen now.
    ///
    /// # Errors
    /// `NotFound` if the family is gone from a database that is followed.
    pub(crate) fn seen(&self) -> Res<Seen<'_>> {
        Ok(match self {
            Face::Plain(db) => Seen::Own(db),
            Face::Timed(timed) => Seen::Own(timed.db()),
            Face::Follows(follower, name) if &**name == DEFAULT => Seen::View(follower.view()),
            Face::Follows(follower, name) => {
                Seen::View(Db::clone(&*follower.view().column_family(name)?))
            }
        })
    }
    /// The same for another family of the database, which has this name.
    pub(crate) fn family(&self, name: &str, plain: &Db) -> Res<Face> {
        Ok(match self {
            Face::Plain(_) => Face::Plain(plain.clone()),
            Face::Follows(follower, _) => Face::Follows(follower.clone(), name.into()),
            Face::Timed(timed) if name == DEFAULT => Face::Timed(timed.clone()),
            Face::Timed(timed) => Face::Timed(timed.column_family(name)?),
        })
    }
    /// Sees what the one that writes has written since.
    ///
    /// # Errors
    /// `Unsupported` if it follows none; as `Follower::catch_up`.
    pub(crate) fn catch_up(&self) -> Res<()> {
        match self {
            Face::Follows(follower, _) => follower.catch_up().map(drop),
            _ => Err(Error::unsupported("try_catch_up_with_primary: this is no secondary")),
        }
    }

    pub(crate) fn put(&self, key: &[u8], value: &[u8], options: &WriteOptions) -> Res<()> {
        match self {
            Face::Plain(db) => db.put_opt(key, value, options),
            Face::Timed(timed) => timed.put_opt(key, value, options),
            Face::Follows(..) => Err(only_reads()),
        }
    }
    pub(crate) fn merge(&self, key: &[u8], operand: &[u8], options: &WriteOptions) -> Res<()> {
        match self {
            Face::Plain(db) => db.merge_opt(key, operand, options),
            Face::Timed(timed) => timed.merge_opt(key, operand, options),
            Face::Follows(..) => Err(only_reads()),
        }
    }
    pub(crate) fn write(&self, batch: &WriteBatch, options: &WriteOptions) -> Res<()> {
        match self {
            Face::Plain(db) => db.write_opt(batch, options),
            Face::Timed(timed) => timed.write_opt(batch, options),
            Face::Follows(..) => Err(only_reads()),
        }
    }
    pub(crate) fn get(&self, key: &[u8], options: &ReadOptions) -> Res<Option<Value>> {
        match self {
            Face::Plain(db) => db.get_opt(key, options),
            Face::Timed(timed) => timed.get_opt(key, options),
            Face::Follows(..) => self.seen()?.get_opt(key, options),
        }
    }
    /// The value as `take` makes it of the bytes, which are where they lie if nothing else is needed.
    #[inline]
    pub(crate) fn get_with<T>(
        &self,
        key: &[u8],
        options: &ReadOptions,
        take: impl FnOnce(&[u8]) -> T,
    ) -> Res<Option<T>> {
        match self {
            Face::Plain(db) => db.get_with(key, options, take),
            Face::Timed(_) | Face::Follows(..) => {
                Ok(self.get(key, options)?.map(|value| take(&value)))
            }
        }
    }
    pub(crate) fn multi_get(
        &self,
        keys: &[&[u8]],
        options: &ReadOptions,
    ) -> Res<Vec<Option<Value>>> {
        match self {
            Face::Plain(db) => db.multi_get_opt(keys, options),
            Face::Timed(timed) => timed.multi_get_opt(keys, options),
            Face::Follows(..) => self.seen()?.multi_get_opt(keys, options),
        }
    }
    pub(crate) fn iter(&self, options: &ReadOptions) -> Res<Walk> {
        Ok(match self {
            Face::Plain(db) => Walk::Plain(db.iter_opt(options)?),
            Face::Timed(timed) => Walk::Timed(timed.iter_opt(options)?),
            Face::Follows(..) => {
                let view = Db::clone(&*self.seen()?);
                Walk::Viewed { iter: view.iter_opt(options)?, _view: view }
            }
        })
    }
}

fn only_reads() -> Error {
    Error::new(ErrorKind::ReadOnly, "a secondary only reads; write where the primary is open")
}

/// An iterator.
pub(crate) enum Walk {
    Plain(DbIter),
    Timed(TtlIter),
    /// Over a view of a database that is followed, which is held meanwhile.
    Viewed {
        iter: DbIter,
        _view: Db,
    },
}

macro_rules! each {
    ($self:ident, $iter:ident => $do:expr) => {
        match $self {
            Walk::Plain($iter) | Walk::Viewed { iter: $iter, .. } => $do,
            Walk::Timed($iter) => $do,
        }
    };
}

impl Walk {
    pub(crate) fn seek(&mut self, key: &[u8]) {
        each!(self, iter => iter.seek(key));
    }
    pub(crate) fn seek_for_prev(&mut self, key: &[u8]) {
        each!(self, iter => iter.seek_for_prev(key));
    }
    pub(crate) fn seek_to_first(&mut self) {
        each!(self, iter => iter.seek_to_first());
    }
    pub(crate) fn seek_to_last(&mut self) {
        each!(self, iter => iter.seek_to_last());
    }
    pub(crate) fn next(&mut self) {
        each!(self, iter => iter.next());
    }
    pub(crate) fn prev(&mut self) {
        each!(self, iter => iter.prev());
    }
    pub(crate) fn valid(&self) -> bool {
        each!(self, iter => iter.valid())
    }
    pub(crate) fn key(&self) -> &[u8] {
        each!(self, iter => iter.key())
    }
    pub(crate) fn value(&self) -> &[u8] {
        each!(self, iter => iter.value())
    }
    /// The current key and value, where it is valid.
    #[inline]
    pub(crate) fn entry(&self) -> Option<(&[u8], &[u8])> {
        match self {
            Walk::Plain(iter) | Walk::Viewed { iter, .. } => iter.entry(),
            Walk::Timed(iter) => iter.valid().then(|| (iter.key(), iter.value())),
        }
    }
    pub(crate) fn status(&self) -> Res<()> {
        each!(self, iter => iter.status())
    }
}
