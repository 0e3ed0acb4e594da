//! Databases with transactions of both kinds. In one with locks each single write is a transaction, too,
//! so that it waits for those that hold its key.
//!
//! Keeps: reads of a transaction are of what was committed last, or of the snapshot in the read options, as
//! RocksDB's are; the transaction's own snapshot is what its claims are held against.
//! Where the last handle of a prepared transaction goes, the database keeps it, and gives a new one if asked.

use std::ffi::c_char;
use std::time::Duration;

use lithify::{
    BatchEntry, ColumnFamily, Error, ReadOptions, Snapshot, Transaction, TransactionOptions,
    WriteBatch,
};

use crate::batch::Batch;
use crate::db::{
    Database, Family, LockWaits, Opens, count, family_handle, open_families, property,
};
use crate::face::{DEFAULT, Walk};
use crate::iter::Iter;
use crate::kept::{Kept, keeps, rows};
use crate::options::Options;
use crate::points::{Answers, Found, copied, keys_of, pinned, read_in_families, read_together};
use crate::raw::{Many, Outs, Res, SnapshotHandle, c_array, c_bytes, export, give};
use crate::small::{Flushes, Reads, WriteOpts};
use crate::users::{Named, Names};

/// `rocksdb_transactiondb_t`, and `rocksdb_optimistictransactiondb_t`.
/// Programs pass it as a `rocksdb_t*` as well, since RocksDB's handles allow that: `base` lies at its beginning, and
/// what is written through it takes locks as these handles' own functions do.
#[repr(C)]
pub(crate) struct TxnDb {
    base: Database,
    /// Those of its transactions that are under way.
    names: Names,
}

/// `rocksdb_transactiondb_options_t`.
#[derive(Clone)]
pub(crate) struct TxnDbOptions {
    waits: LockWaits,
    kept: Kept,
}
keeps!(TxnDbOptions);

rows! { TxnDbOptions;
    exact rocksdb_transactiondb_options_set_transaction_lock_timeout
        rocksdb_transactiondb_options_get_transaction_lock_timeout: i64 = 1000,
        |o, v| o.waits.transactions = v;
    exact rocksdb_transactiondb_options_set_default_lock_timeout
        rocksdb_transactiondb_options_get_default_lock_timeout: i64 = 1000, |o, v| o.waits.writes = v;
    exact rocksdb_transactiondb_options_set_max_num_locks
        rocksdb_transactiondb_options_get_max_num_locks: i64 = -1, |o, v| o.waits.max_keys = v;
    noted rocksdb_transactiondb_options_set_num_stripes
        rocksdb_transactiondb_options_get_num_stripes: usize = 16;
}

/// `rocksdb_transaction_options_t`, and `rocksdb_optimistictransaction_options_t`.
#[derive(Clone)]
pub(crate) struct TxnOptions {
    snapshot: bool,
    /// Milliseconds; below 0 as the database says.
    wait: i64,
    /// Its transactions are prepared before they are committed.
    prepares: bool,
    kept: Kept,
}
keeps!(TxnOptions);

rows! { TxnOptions;
    exact rocksdb_transaction_options_set_set_snapshot
        rocksdb_transaction_options_get_set_snapshot: u8 = 0, |o, v| o.snapshot = v != 0;
    exact rocksdb_optimistictransaction_options_set_set_snapshot
        rocksdb_optimistictransaction_options_get_set_snapshot: u8 = 0, |o, v| o.snapshot = v != 0;
    exact rocksdb_transaction_options_set_lock_timeout
        rocksdb_transaction_options_get_lock_timeout: i64 = -1, |o, v| o.wait = v;
    // A circle of waits is always found.
    noted rocksdb_transaction_options_set_deadlock_detect
        rocksdb_transaction_options_get_deadlock_detect: u8 = 0;
    noted rocksdb_transaction_options_set_deadlock_detect_depth
        rocksdb_transaction_options_get_deadlock_detect_depth: i64 = 50;
    noted rocksdb_transaction_options_set_expiration
        rocksdb_transaction_options_get_expiration: i64 = -1;
    noted rocksdb_transaction_options_set_max_write_batch_size
        rocksdb_transaction_options_get_max_write_batch_size: usize = 0;
    exact rocksdb_transaction_options_set_skip_prepare
        rocksdb_transaction_options_get_skip_prepare: u8 = 1, |o, v| o.prepares = v == 0;
}

impl Default for TxnOptions {
    fn default() -> TxnOptions {
        TxnOptions { snapshot: false, wait: -1, prepares: false, kept: Kept::default() }
    }
}

/// `rocksdb_transaction_t`. Over once it is committed.
pub(crate) struct Txn {
    inner: Option<Transaction>,
    of: Database,
    /// What it was named, also after it is over.
    name: Vec<u8>,
    /// None other has the name until it is over.
    named: Option<Named>,
    /// What is kept by the database; `None` in an optimistic one, which names none.
    names: Option<Names>,
    /// It must be prepared before it is committed.
    prepares: bool,
    /// The snapshot that a handle was given for. As in RocksDB it outlives the commit, until this is destroyed or
    /// begun anew.
    shown: Option<Box<Snapshot>>,
}

fn over() -> Error {
    Error::invalid("the transaction is over: it was committed")
}

impl Txn {
    fn open(&self) -> Res<&Transaction> {
        self.inner.as_ref().ok_or_else(over)
    }
    fn open_mut(&mut self) -> Res<&mut Transaction> {
        self.inner.as_mut().ok_or_else(over)
    }

    /// Reads as RocksDB's transactions do: at the snapshot of the options, or what is there now; a
    /// snapshot of its own does not count.
    fn read(
        &self,
        options: &Reads,
        family: Option<&ColumnFamily>,
        key: &[u8],
    ) -> Res<Option<Found>> {
        let (inner, options) = (self.open()?, options.checked()?);
        if options.snapshot.is_none() && inner.snapshot().is_none() {
            let found = match family {
                None => inner.get(key)?,
                Some(family) => inner.get_cf(family, key)?,
            };
            return Ok(found.map(Found::Pinned));
        }
        let snapshot = options.snapshot.clone().unwrap_or_else(|| self.of.db().snapshot());
        let options = ReadOptions { lower_bound: Some(key.into()), ..ReadOptions::at(&snapshot) };
        let mut iter = match family {
            None => inner.iter_opt(&options)?,
            Some(family) => inner.iter_cf_opt(family, &options)?,
        };
        iter.seek(key);
        iter.status()?;
        let found = iter.valid() && iter.key() == key;
        Ok(found.then(|| Found::Copied(iter.value().to_vec())))
    }
    /// The same, and the key is claimed first.
    fn claim(
        &mut self,
        options: &Reads,
        family: Option<&ColumnFamily>,
        key: &[u8],
    ) -> Res<Option<Found>> {
        options.checked()?;
        match family {
            None => self.open_mut()?.get_for_update(key)?,
            Some(family) => self.open_mut()?.get_for_update_cf(family, key)?,
        };
        self.read(options, family, key)
    }
    fn iter(&self, options: &Reads, family: Option<&ColumnFamily>) -> *mut Iter {
        let made = options.checked().and_then(|read| {
            let snapshot = read.snapshot.clone().unwrap_or_else(|| self.of.db().snapshot());
            let read = ReadOptions { snapshot: Some(snapshot), ..read.clone() };
            match family {
                None => self.open()?.iter_opt(&read),
                Some(family) => self.open()?.iter_cf_opt(family, &read),
            }
            .map(Walk::Plain)
        });
        Iter::made(made, &self.of, options)
    }
}

fn wait_of(millis: i64) -> Duration {
    u64::try_from(millis).map_or(Duration::MAX, Duration::from_millis)
}

impl TxnDb {
    fn over(mut base: Database, waits: Option<LockWaits>) -> TxnDb {
        base.locks = waits;
        TxnDb { base, names: Names::default() }
    }
    pub(crate) fn database(&self) -> &Database {
        &self.base
    }
    /// The database without the locks: what is written through it does not wait for them.
    fn without_locks(&self) -> Database {
        let mut base = self.base.clone();
        base.locks = None;
        base
    }
    fn begin(
        &self,
        write: &WriteOpts,
        options: &TxnOptions,
        mut old: Option<Box<Txn>>,
    ) -> Res<*mut Txn> {
        let prepares = options.prepares && self.base.locks.is_some();
        let options = self.base.transaction_options(options, write).inspect_err(|_| {
            // Nothing began, so it stays the caller's.
            old.take().map(Box::leak);
        })?;
        let inner = Some(self.base.db().begin_transaction(options));
        let names = self.base.locks.map(|_| self.names.clone());
        let (of, name) = (self.base.clone(), Vec::new());
        let begun = Txn { inner, of, name, named: None, names, prepares, shown: None };
        let Some(mut old) = old else { return Ok(give(begun)) };
        *old = begun;
        Ok(Box::into_raw(old))
    }
}

impl Database {
    fn transaction_options(
        &self,
        options: &TxnOptions,
        write: &WriteOpts,
    ) -> Res<TransactionOptions> {
        options.kept.check()?;
        let begun = match self.locks {
            None => TransactionOptions::optimistic(),
            Some(waits) => {
                let wait = if options.wait < 0 { waits.transactions } else { options.wait };
                let begun = TransactionOptions::pessimistic().with_lock_timeout(wait_of(wait));
                match usize::try_from(waits.max_keys) {
                    Ok(most) if most > 0 => begun.with_max_keys(most),
                    _ => begun,
                }
            }
        };
        let begun = begun.with_write(self.level(write)?);
        Ok(if options.snapshot { begun.with_snapshot() } else { begun })
    }
    /// Writes outside of transactions: one that waits for the locks of the others.
    pub(crate) fn write_locked(
        &self,
        write: &WriteOpts,
        inside: impl FnOnce(&mut Transaction) -> Res<()>,
    ) -> Res<()> {
        let wait = self.locks.map_or(-1, |waits| waits.writes);
        let options = TxnOptions { wait, ..TxnOptions::default() };
        let mut options = self.transaction_options(&options, write)?;
        options.lock_timeout = wait_of(wait);
        let mut transaction = self.db().begin_transaction(options);
        inside(&mut transaction)?;
        transaction.commit()
    }
    /// Makes the writes of a batch in such a transaction.
    pub(crate) fn add_all(&self, batch: &WriteBatch, txn: &mut Transaction) -> Res<()> {
        let families = self.families();
        let of = |id: u32| {
            let found = families.iter().find(|family| family.id() == id);
            found.ok_or_else(|| Error::invalid(format!("there is no column family {id}")))
        };
        for entry in batch.entries() {
            match entry {
                BatchEntry::Put(cf, key, value) => txn.put_cf(of(cf)?, key, value)?,
                BatchEntry::Merge(cf, key, value) => txn.merge_cf(of(cf)?, key, value)?,
                BatchEntry::Delete(cf, key) => txn.delete_cf(of(cf)?, key)?,
                BatchEntry::SingleDelete(cf, key) => txn.single_delete_cf(of(cf)?, key)?,
                BatchEntry::LogData(_) => {}
                _ => return Database::no_range(),
            }
        }
        Ok(())
    }
    /// What a range deletion is told where writes take locks.
    pub(crate) fn no_range() -> Res<()> {
        Err(Error::invalid("a range deletion under locks; delete key by key"))
    }
}

fn read_each<'a, V: Into<Found>>(
    n: usize,
    keys: (Many<*const c_char>, Many<usize>),
    answers: &Answers,
    mut read: impl FnMut(usize, &'a [u8]) -> Res<Option<V>>,
) {
    let Some(keys) = keys_of(n, keys.0, keys.1, answers) else { return };
    keys.into_iter().enumerate().for_each(|(i, key)| answers.put(i, read(i, key)));
}

fn family_at<'a>(families: &Res<Vec<&'a Family>>, i: usize) -> Res<&'a Family> {
    families.as_ref().map(|families| families[i]).map_err(Error::clone)
}

fn open(options: &Options, path: &std::path::Path, waits: Option<LockWaits>) -> Res<*mut TxnDb> {
    let opened = Database::open(options, path, &[(DEFAULT, options)], Opens::ToWrite)?;
    Ok(give(TxnDb::over(opened.database, waits)))
}

fn int_property(db: &TxnDb, name: &str, value: &Outs<u64>) -> i32 {
    db.base.db().int_property(name).map_or(-1, |n| {
        value.set(n);
        0
    })
}

impl TxnDb {
    /// A handle for a prepared transaction that had none.
    fn prepared(&self, inner: Transaction) -> Res<Txn> {
        let name = inner.name().unwrap_or_default().to_vec();
        Ok(Txn {
            inner: Some(inner),
            of: self.base.clone(),
            named: Some(self.names.take(&name)?),
            name,
            names: Some(self.names.clone()),
            prepares: true,
            shown: None,
        })
    }
}

impl Txn {
    fn commit(&mut self) -> Res<()> {
        let inner = self.open()?;
        let prepared = inner.name().map(<[u8]>::to_vec);
        if self.prepares && prepared.is_none() {
            let what = "the transaction is not prepared, and its options want that first";
            return Err(Error::invalid(what));
        }
        let ended = self.inner.take().ok_or_else(over)?.commit();
        match (&ended, prepared) {
            // It is as it was.
            (Err(_), Some(name)) => {
                let all = self.of.db().prepared_transactions().unwrap_or_default();
                self.inner = all.into_iter().find(|one| one.name() == Some(&name[..]));
            }
            _ => self.named = None,
        }
        ended
    }
    fn rollback(&mut self) -> Res<()> {
        // A failed commit has undone everything already.
        let Some(inner) = &mut self.inner else { return Ok(()) };
        let was_prepared = inner.name().is_some();
        inner.rollback()?;
        if was_prepared {
            self.named = None;
        }
        Ok(())
    }
    fn prepare(&mut self) -> Res<()> {
        if self.names.is_none() {
            return Err(Error::invalid(
                "Two phase commit not supported for optimistic transactions.",
            ));
        }
        if self.name.is_empty() {
            return Err(Error::invalid("Cannot prepare a transaction that has not been named."));
        }
        let inner = self.inner.as_mut().ok_or_else(over)?;
        inner.prepare(&self.name)
    }
    /// Its snapshot, if it has one, where a handle may show it until this is destroyed.
    fn show(&mut self) -> Res<Option<&Snapshot>> {
        if self.shown.is_none() {
            self.shown = self.open()?.snapshot().cloned().map(Box::new);
        }
        Ok(self.shown.as_deref())
    }
}

export! {
    fn rocksdb_transactiondb_options_create() -> *mut TxnDbOptions {
        let waits = LockWaits { transactions: 1000, writes: 1000, max_keys: -1 };
        Ok(give(TxnDbOptions { waits, kept: Kept::default() }))
    }
    fn rocksdb_transactiondb_options_destroy(options: own TxnDbOptions) {
        drop(options);
        Ok(())
    }
    fn rocksdb_transaction_options_create() -> *mut TxnOptions {
        Ok(give(TxnOptions::default()))
    }
    fn rocksdb_transaction_options_destroy(options: own TxnOptions) {
        drop(options);
        Ok(())
    }
    fn rocksdb_optimistictransaction_options_create() -> *mut TxnOptions {
        Ok(give(TxnOptions::default()))
    }
    fn rocksdb_optimistictransaction_options_destroy(options: own TxnOptions) {
        drop(options);
        Ok(())
    }
    fn rocksdb_transactiondb_open(
        options: &Options, txn_options: &TxnDbOptions, name: path, errptr
    ) -> *mut TxnDb {
        open(options, name, Some(txn_options.waits))
    }
    fn rocksdb_transactiondb_open_column_families(
        options: &Options, txn_options: &TxnDbOptions, name: path, n: i32, names: many *const c_char,
        of: many *const Options, handles: outs *mut Family, errptr
    ) -> *mut TxnDb {
        let n = count(n, "num_column_families")?;
        let names = names.texts(n, "column_family_names")?;
        let of = of.handles(n, "column_family_options")?;
        let base = open_families(options, name, &names, &of, &handles, Opens::ToWrite)?;
        Ok(give(TxnDb::over(base, Some(txn_options.waits))))
    }
    fn rocksdb_transactiondb_close(db: own TxnDb) {
        if let Some(db) = db {
            db.base.close();
        }
        Ok(())
    }
    fn rocksdb_transactiondb_get_base_db(db: &TxnDb) -> *mut Database {
        Ok(give(db.without_locks()))
    }
    fn rocksdb_transactiondb_close_base_db(db: own Database) {
        drop(db);
        Ok(())
    }
    fn rocksdb_transactiondb_create_column_family(
        db: &TxnDb, options: &Options, name: text, errptr
    ) -> *mut Family {
        let (family, _) = db.base.family_options(options)?;
        let inner = db.base.db().create_column_family(name, family)?;
        family_handle(&db.base, inner, Some(options))
    }
    fn rocksdb_transactiondb_create_snapshot(db: &TxnDb) -> *mut SnapshotHandle {
        Ok(SnapshotHandle::owned(db.base.db().snapshot()))
    }
    fn rocksdb_transactiondb_release_snapshot(db: maybe TxnDb, snapshot: own SnapshotHandle) {
        let _ = db;
        if let Some(snapshot) = snapshot {
            snapshot.release();
        }
        Ok(())
    }
    fn rocksdb_transactiondb_property_value(db: &TxnDb, name: text) -> *mut c_char {
        Ok(property(&db.base.db(), name))
    }
    fn rocksdb_transactiondb_property_int(db: &TxnDb, name: text, value: out u64) -> i32 {
        Ok(int_property(db, name, &value))
    }
    fn rocksdb_transactiondb_put(
        db: &TxnDb, options: &WriteOpts, (key, klen): bytes, (val, vlen): bytes, errptr
    ) {
        db.base.write_locked(options, |txn| txn.put(key, val))
    }
    fn rocksdb_transactiondb_put_cf(
        db: &TxnDb, options: &WriteOpts, family: &Family, (key, klen): bytes, (val, vlen): bytes, errptr
    ) {
        db.base.write_locked(options, |txn| txn.put_cf(&*family.inner()?, key, val))
    }
    fn rocksdb_transactiondb_merge(
        db: &TxnDb, options: &WriteOpts, (key, klen): bytes, (val, vlen): bytes, errptr
    ) {
        db.base.write_locked(options, |txn| txn.merge(key, val))
    }
    fn rocksdb_transactiondb_merge_cf(
        db: &TxnDb, options: &WriteOpts, family: &Family, (key, klen): bytes, (val, vlen): bytes, errptr
    ) {
        db.base.write_locked(options, |txn| txn.merge_cf(&*family.inner()?, key, val))
    }
    fn rocksdb_transactiondb_delete(db: &TxnDb, options: &WriteOpts, (key, klen): bytes, errptr) {
        db.base.write_locked(options, |txn| txn.delete(key))
    }
    fn rocksdb_transactiondb_delete_cf(
        db: &TxnDb, options: &WriteOpts, family: &Family, (key, klen): bytes, errptr
    ) {
        db.base.write_locked(options, |txn| txn.delete_cf(&*family.inner()?, key))
    }
    fn rocksdb_transactiondb_write(db: &TxnDb, options: &WriteOpts, batch: &Batch, errptr) {
        let batch = batch.sound()?;
        db.base.write_locked(options, |txn| db.base.add_all(batch, txn))
    }
    fn rocksdb_transactiondb_get(
        db: &TxnDb, options: &Reads, (key, klen): bytes, vlen: out usize, errptr
    ) -> *mut c_char {
        vlen.set(0);
        Ok(copied(db.base.db().get_opt(key, options.checked()?)?, &vlen))
    }
    fn rocksdb_transactiondb_get_cf(
        db: &TxnDb, options: &Reads, family: &Family, (key, klen): bytes, vlen: out usize, errptr
    ) -> *mut c_char {
        let _ = db;
        vlen.set(0);
        Ok(copied(family.inner()?.get_opt(key, options.checked()?)?, &vlen))
    }
    fn rocksdb_transactiondb_get_pinned(db: &TxnDb, options: &Reads, (key, klen): bytes, errptr) -> *mut Found {
        Ok(pinned(db.base.db().get_opt(key, options.checked()?)?))
    }
    fn rocksdb_transactiondb_get_pinned_cf(
        db: &TxnDb, options: &Reads, family: &Family, (key, klen): bytes, errptr
    ) -> *mut Found {
        let _ = db;
        Ok(pinned(family.inner()?.get_opt(key, options.checked()?)?))
    }
    fn rocksdb_transactiondb_multi_get(
        db: &TxnDb, options: &Reads, n: usize, keys: many *const c_char, key_lens: many usize,
        values: outs *mut c_char, value_lens: outs usize, errs: outs *mut c_char
    ) {
        let answers = Answers { values, lens: value_lens, errors: errs };
        read_together(&db.base, options, n, (keys, key_lens), &answers);
        Ok(())
    }
    fn rocksdb_transactiondb_multi_get_cf(
        db: &TxnDb, options: &Reads, families: many *const Family, n: usize, keys: many *const c_char,
        key_lens: many usize, values: outs *mut c_char, value_lens: outs usize, errs: outs *mut c_char
    ) {
        let answers = Answers { values, lens: value_lens, errors: errs };
        read_in_families(&db.base, options, n, families, (keys, key_lens), &answers);
        Ok(())
    }
    fn rocksdb_transactiondb_create_iterator(db: &TxnDb, options: &Reads) -> *mut Iter {
        Ok(Iter::over(&db.base.face, &db.base, options))
    }
    fn rocksdb_transactiondb_create_iterator_cf(db: &TxnDb, options: &Reads, family: &Family) -> *mut Iter {
        Ok(Iter::over(&family.face, &db.base, options))
    }
    fn rocksdb_transactiondb_flush(db: &TxnDb, options: maybe Flushes, errptr) {
        let _ = options;
        db.base.db().flush()
    }
    fn rocksdb_transactiondb_flush_cf(db: &TxnDb, options: maybe Flushes, family: &Family, errptr) {
        let _ = (db, options);
        family.inner()?.flush()
    }
    fn rocksdb_transactiondb_flush_cfs(
        db: &TxnDb, options: maybe Flushes, families: many *const Family, n: i32, errptr
    ) {
        let _ = (db, options);
        let families = families.handles(count(n, "num_column_families")?, "column_families")?;
        families.iter().try_for_each(|family| family.inner()?.flush())
    }
    fn rocksdb_transactiondb_flush_wal(db: &TxnDb, sync: u8, errptr) {
        let _ = sync;
        db.base.db().sync()
    }
    fn rocksdb_transaction_begin(
        db: &TxnDb, write: &WriteOpts, options: &TxnOptions, old: own Txn
    ) -> *mut Txn {
        db.begin(write, options, old)
    }
    fn rocksdb_transaction_destroy(txn: own Txn) {
        drop(txn);
        Ok(())
    }
    fn rocksdb_transaction_commit(txn: &mut Txn, errptr) {
        txn.commit()
    }
    fn rocksdb_transaction_rollback(txn: &mut Txn, errptr) {
        txn.rollback()
    }
    fn rocksdb_transaction_set_savepoint(txn: &mut Txn) {
        txn.open_mut()?.set_savepoint();
        Ok(())
    }
    fn rocksdb_transaction_rollback_to_savepoint(txn: &mut Txn, errptr) {
        txn.open_mut()?.rollback_to_savepoint()
    }
    fn rocksdb_transaction_set_name(txn: &mut Txn, (name, len): bytes, errptr) {
        let Some(names) = &txn.names else {
            return Err(Error::invalid("Optimistic transactions cannot be named."));
        };
        txn.open()?;
        if !txn.name.is_empty() {
            return Err(Error::invalid("Transaction has already been named."));
        }
        if !(1..=512).contains(&name.len()) {
            return Err(Error::invalid("Transaction name length must be between 1 and 512 chars."));
        }
        txn.named = Some(names.take(name)?);
        txn.name = name.to_vec();
        Ok(())
    }
    fn rocksdb_transaction_get_name(txn: &Txn, len: out usize) -> *mut c_char {
        len.set(txn.name.len());
        Ok(c_bytes(&txn.name))
    }
    fn rocksdb_transaction_prepare(txn: &mut Txn, errptr) {
        txn.prepare()
    }
    fn rocksdb_transactiondb_get_prepared_transactions(db: &TxnDb, n: out usize) -> *mut *mut Txn {
        n.set(0);
        let all = db.base.db().prepared_transactions()?;
        let all: Res<Vec<Txn>> = all.into_iter().map(|inner| db.prepared(inner)).collect();
        let all = all?;
        if all.is_empty() {
            return Ok(std::ptr::null_mut());
        }
        n.set(all.len());
        Ok(c_array(all.into_iter().map(give)))
    }
    fn rocksdb_transaction_get_snapshot(txn: &mut Txn) -> *mut SnapshotHandle {
        Ok(SnapshotHandle::shown(txn.show()?))
    }
    fn rocksdb_transaction_put(txn: &mut Txn, (key, klen): bytes, (val, vlen): bytes, errptr) {
        txn.open_mut()?.put(key, val)
    }
    fn rocksdb_transaction_put_cf(
        txn: &mut Txn, family: &Family, (key, klen): bytes, (val, vlen): bytes, errptr
    ) {
        txn.open_mut()?.put_cf(&*family.inner()?, key, val)
    }
    fn rocksdb_transaction_merge(txn: &mut Txn, (key, klen): bytes, (val, vlen): bytes, errptr) {
        txn.open_mut()?.merge(key, val)
    }
    fn rocksdb_transaction_merge_cf(
        txn: &mut Txn, family: &Family, (key, klen): bytes, (val, vlen): bytes, errptr
    ) {
        txn.open_mut()?.merge_cf(&*family.inner()?, key, val)
    }
    fn rocksdb_transaction_delete(txn: &mut Txn, (key, klen): bytes, errptr) {
        txn.open_mut()?.delete(key)
    }
    fn rocksdb_transaction_delete_cf(txn: &mut Txn, family: &Family, (key, klen): bytes, errptr) {
        txn.open_mut()?.delete_cf(&*family.inner()?, key)
    }
    fn rocksdb_transaction_get(
        txn: &Txn, options: &Reads, (key, klen): bytes, vlen: out usize, errptr
    ) -> *mut c_char {
        vlen.set(0);
        Ok(copied(txn.read(options, None, key)?, &vlen))
    }
    fn rocksdb_transaction_get_cf(
        txn: &Txn, options: &Reads, family: &Family, (key, klen): bytes, vlen: out usize, errptr
    ) -> *mut c_char {
        vlen.set(0);
        Ok(copied(txn.read(options, Some(&*family.inner()?), key)?, &vlen))
    }
    fn rocksdb_transaction_get_pinned(txn: &Txn, options: &Reads, (key, klen): bytes, errptr) -> *mut Found {
        Ok(pinned(txn.read(options, None, key)?))
    }
    fn rocksdb_transaction_get_pinned_cf(
        txn: &Txn, options: &Reads, family: &Family, (key, klen): bytes, errptr
    ) -> *mut Found {
        Ok(pinned(txn.read(options, Some(&*family.inner()?), key)?))
    }
    fn rocksdb_transaction_get_for_update(
        txn: &mut Txn, options: &Reads, (key, klen): bytes, vlen: out usize, exclusive: u8, errptr
    ) -> *mut c_char {
        let _ = exclusive;
        vlen.set(0);
        Ok(copied(txn.claim(options, None, key)?, &vlen))
    }
    fn rocksdb_transaction_get_for_update_cf(
        txn: &mut Txn, options: &Reads, family: &Family, (key, klen): bytes, vlen: out usize, exclusive: u8, errptr
    ) -> *mut c_char {
        let _ = exclusive;
        vlen.set(0);
        Ok(copied(txn.claim(options, Some(&*family.inner()?), key)?, &vlen))
    }
    fn rocksdb_transaction_get_pinned_for_update(
        txn: &mut Txn, options: &Reads, (key, klen): bytes, exclusive: u8, errptr
    ) -> *mut Found {
        let _ = exclusive;
        Ok(pinned(txn.claim(options, None, key)?))
    }
    fn rocksdb_transaction_get_pinned_for_update_cf(
        txn: &mut Txn, options: &Reads, family: &Family, (key, klen): bytes, exclusive: u8, errptr
    ) -> *mut Found {
        let _ = exclusive;
        Ok(pinned(txn.claim(options, Some(&*family.inner()?), key)?))
    }
    fn rocksdb_transaction_multi_get(
        txn: &Txn, options: &Reads, n: usize, keys: many *const c_char, key_lens: many usize,
        values: outs *mut c_char, value_lens: outs usize, errs: outs *mut c_char
    ) {
        let answers = Answers { values, lens: value_lens, errors: errs };
        read_each(n, (keys, key_lens), &answers, |_, key| txn.read(options, None, key));
        Ok(())
    }
    fn rocksdb_transaction_multi_get_cf(
        txn: &Txn, options: &Reads, families: many *const Family, n: usize, keys: many *const c_char,
        key_lens: many usize, values: outs *mut c_char, value_lens: outs usize, errs: outs *mut c_char
    ) {
        let answers = Answers { values, lens: value_lens, errors: errs };
        let families = families.handles(n, "column_families");
        read_each(n, (keys, key_lens), &answers, |i, key| {
            txn.read(options, Some(&*family_at(&families, i)?.inner()?), key)
        });
        Ok(())
    }
    fn rocksdb_transaction_create_iterator(txn: &Txn, options: &Reads) -> *mut Iter {
        Ok(txn.iter(options, None))
    }
    fn rocksdb_transaction_create_iterator_cf(txn: &Txn, options: &Reads, family: &Family) -> *mut Iter {
        Ok(txn.iter(options, Some(&*family.inner()?)))
    }
    fn rocksdb_optimistictransactiondb_open(options: &Options, name: path, errptr) -> *mut TxnDb {
        open(options, name, None)
    }
    fn rocksdb_optimistictransactiondb_open_column_families(
        options: &Options, name: path, n: i32, names: many *const c_char, of: many *const Options,
        handles: outs *mut Family, errptr
    ) -> *mut TxnDb {
        let n = count(n, "num_column_families")?;
        let names = names.texts(n, "column_family_names")?;
        let of = of.handles(n, "column_family_options")?;
        let base = open_families(options, name, &names, &of, &handles, Opens::ToWrite)?;
        Ok(give(TxnDb::over(base, None)))
    }
    fn rocksdb_optimistictransactiondb_close(db: own TxnDb) {
        if let Some(db) = db {
            db.base.close();
        }
        Ok(())
    }
    fn rocksdb_optimistictransactiondb_get_base_db(db: &TxnDb) -> *mut Database {
        Ok(give(db.base.clone()))
    }
    fn rocksdb_optimistictransactiondb_close_base_db(db: own Database) {
        drop(db);
        Ok(())
    }
    fn rocksdb_optimistictransactiondb_write(db: &TxnDb, options: &WriteOpts, batch: &Batch, errptr) {
        db.base.db().write_opt(batch.sound()?, &db.base.level(options)?)
    }
    fn rocksdb_optimistictransactiondb_property_value(db: &TxnDb, name: text) -> *mut c_char {
        Ok(property(&db.base.db(), name))
    }
    fn rocksdb_optimistictransactiondb_property_int(db: &TxnDb, name: text, value: out u64) -> i32 {
        Ok(int_property(db, name, &value))
    }
    fn rocksdb_optimistictransaction_begin(
        db: &TxnDb, write: &WriteOpts, options: maybe TxnOptions, old: own Txn
    ) -> *mut Txn {
        db.begin(write, options.unwrap_or(&TxnOptions::default()), old)
    }
}
