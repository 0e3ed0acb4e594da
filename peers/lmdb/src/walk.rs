//! A cursor of LMDB, with the transaction that it borrows from.

use anyhow::Result;
use lithify_bench::StoreIter;
use lmdb::{Cursor as _, Database, Environment, RoCursor, RoTransaction, Transaction as _};
use self_cell::self_cell;

// LMDB's numbers of its cursor's moves (`MDB_cursor_op` in lmdb.h).
const FIRST: u32 = 0;
const LAST: u32 = 6;
const NEXT: u32 = 8;
const PREV: u32 = 12;
const SET_RANGE: u32 = 17;

struct Position<'t> {
    cursor: RoCursor<'t>,
    here: Option<(&'t [u8], &'t [u8])>,
    error: Option<lmdb::Error>,
}

self_cell!(
    struct Cell<'e> {
        owner: RoTransaction<'e>,
        #[not_covariant]
        dependent: Position,
    }
);

fn position<'t>(read: &'t RoTransaction<'_>, keys: Database) -> Result<Position<'t>> {
    Ok(Position { cursor: read.open_ro_cursor(keys)?, here: None, error: None })
}

/// A position in one state of the database.
pub(crate) struct Walk<'e>(Cell<'e>);

impl<'e> Walk<'e> {
    pub(crate) fn begin(env: &'e Environment, keys: Database) -> Result<Walk<'e>> {
        Ok(Walk(Cell::try_new(env.begin_ro_txn()?, |read| position(read, keys))?))
    }

    fn go(&mut self, key: Option<&[u8]>, to: u32) {
        self.0.with_dependent_mut(|_, at| {
            at.here = match at.cursor.get(key, None, to) {
                // The key is missing if LMDB left the one that was asked for, which it never does here.
                Ok((found, value)) => found.map(|found| (found, value)),
                Err(lmdb::Error::NotFound) => None,
                Err(error) => {
                    at.error = Some(error);
                    None
                }
            };
        });
    }
}

impl StoreIter for Walk<'_> {
    fn seek_to_first(&mut self) {
        self.go(None, FIRST);
    }
    fn seek_to_last(&mut self) {
        self.go(None, LAST);
    }
    fn seek(&mut self, key: &[u8]) {
        self.go(Some(key), SET_RANGE);
    }
    fn next(&mut self) {
        self.go(None, NEXT);
    }
    fn prev(&mut self) {
        self.go(None, PREV);
    }
    fn valid(&self) -> bool {
        self.0.with_dependent(|_, at| at.here.is_some())
    }
    fn key(&self) -> &[u8] {
        self.0.with_dependent(|_, at| at.here.map_or(&[][..], |(key, _)| key))
    }
    fn value(&self) -> &[u8] {
        self.0.with_dependent(|_, at| at.here.map_or(&[][..], |(_, value)| value))
    }
    fn status(&self) -> Result<()> {
        self.0.with_dependent(|_, at| at.error.map_or(Ok(()), |error| Err(error.into())))
    }
}
