//! The writes of a database once more, out of its logs.

use lithify::{Error, Updates};

use crate::batch::Batch;
use crate::db::Database;
use crate::raw::{Res, export, give};

/// `rocksdb_wal_iterator_t`: at a batch, behind the last one, or at an error.
pub(crate) struct LogIter {
    updates: Updates,
    at: Option<Res<(u64, lithify::WriteBatch)>>,
}

/// `rocksdb_wal_readoptions_t`, of which there is none: checksums are always verified.
pub(crate) enum LogReads {}

impl LogIter {
    fn step(&mut self) {
        self.at = self.updates.next();
    }
}

export! {
    fn rocksdb_get_updates_since(
        db: &Database, number: u64, options: maybe LogReads, errptr
    ) -> *mut LogIter {
        let _ = options;
        let mut iter = LogIter { updates: db.db().updates_since(number)?, at: None };
        iter.step();
        Ok(give(iter))
    }
    fn rocksdb_wal_iter_next(iter: &mut LogIter) {
        iter.step();
        Ok(())
    }
    fn rocksdb_wal_iter_valid(iter: &LogIter) -> u8 {
        Ok(u8::from(matches!(iter.at, Some(Ok(_)))))
    }
    fn rocksdb_wal_iter_status(iter: &LogIter, errptr) {
        match &iter.at {
            Some(Err(error)) => Err(error.clone()),
            _ => Ok(()),
        }
    }
    fn rocksdb_wal_iter_get_batch(iter: &LogIter, number: out u64) -> *mut Batch {
        match &iter.at {
            Some(Ok((first, batch))) => {
                number.set(*first);
                Ok(give(Batch::of(batch.clone())))
            }
            Some(Err(error)) => Err(error.clone()),
            None => Err(Error::invalid("the iterator is at no batch")),
        }
    }
    fn rocksdb_wal_iter_destroy(iter: own LogIter) {
        drop(iter);
        Ok(())
    }
}
