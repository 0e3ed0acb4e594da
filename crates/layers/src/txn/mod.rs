//! Transactions: several reads and writes that commit whole, or not at all, and not if another writer
//! got in between.
//!
//! There are two ways to keep others out, as in RocksDB. A pessimistic transaction locks a key
//! before it writes it or reads it with `get_for_update`; others wait ([`locks`]). An optimistic
//! one takes no locks: it notes for each such key since when it relies on it, and its commit is
//! refused if one was written since (`Shell::is_newer`). That check is made under the write turn,
//! right before the batch is written, so that nothing comes in between; whatever needs a look at
//! tables was looked at before, and only what has been written meanwhile is left.
//!
//! A pessimistic transaction may be prepared before it is committed: what it would write is in the log then, so that
//! it can be committed whatever happens, and it is not over before it is committed or rolled back ([`prepared`]).
//!
//! Keeps: nothing of a transaction is in the database before its commit, which is one batch; its
//! reads see its own writes ([`pending`]); a claim (a lock, or a moment relied on) ends with the
//! transaction or with the rollback to a savepoint before it.
//! Leaves to others: writing the batch; the operations by the names that users know, with their docs, which are
//! those of the handle in `lithify`. There is one operation of a kind here, for any family.

mod locks;
mod pending;
mod prepared;

use std::collections::BTreeMap;
use std::time::Duration;

use lithify_base::zoo::{self, Bug};
use lithify_base::{Error, ErrorKind, Kind, Result, Seq};
use lithify_journal::wal::BatchMark;

use lithify_tree::{
    DEFAULT_CF, DbIter, ReadOptions, Shell, Snapshot, Value, WriteOptions, check_key, check_value,
};

use crate::store::Store;

pub use locks::Locks;
use locks::{FamilyKey, TxnId};
use pending::Pending;
use prepared::Waiting;
pub use prepared::prepared_transactions;

/// Longest name of a prepared transaction, bytes.
const MAX_NAME_BYTES: usize = 512;

/// How transactions keep out of each other's way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Concurrency {
    /// Keys are locked when they are first written or read for update, and others wait for them:
    /// best where transactions often meet. A commit meets no conflict.
    Pessimistic,
    /// None waits; a commit is refused with `Busy` if a key was written
    /// meanwhile, and the transaction is run again: best where they seldom meet.
    Optimistic,
}

/// Options of a transaction.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TransactionOptions {
    /// How it keeps out of others' way. Use one way for all transactions that share keys: the two
    /// do not see each other's locks.
    pub concurrency: Concurrency,
    /// Take a snapshot at the beginning, as [`Transaction::set_snapshot`] does. Default: false.
    pub snapshot: bool,
    /// How long a pessimistic transaction waits for a lock. Zero: not at all;
    /// [`Duration::MAX`]: as long as it takes. A circle of waits is found at once in any case.
    /// Default: 1 s.
    pub lock_timeout: Duration,
    /// Most keys that it may have locked, or may rely on, at a time; each takes its own length and
    /// about 100 bytes of memory. Default: 1,048,576.
    pub max_keys: usize,
    /// Options of the commit: durability, and whether it may wait.
    pub write: WriteOptions,
}

impl TransactionOptions {
    /// The defaults of a pessimistic transaction.
    pub fn pessimistic() -> TransactionOptions {
        TransactionOptions {
            concurrency: Concurrency::Pessimistic,
            snapshot: false,
            lock_timeout: Duration::from_secs(1),
            max_keys: 1 << 20,
            write: WriteOptions::default(),
        }
    }
    /// The defaults of an optimistic transaction.
    pub fn optimistic() -> TransactionOptions {
        let concurrency = Concurrency::Optimistic;
        TransactionOptions { concurrency, ..TransactionOptions::pessimistic() }
    }
    /// With a snapshot taken at the beginning.
    #[must_use]
    pub fn with_snapshot(self) -> TransactionOptions {
        TransactionOptions { snapshot: true, ..self }
    }
    /// With another [`lock_timeout`](TransactionOptions::lock_timeout).
    #[must_use]
    pub fn with_lock_timeout(self, lock_timeout: Duration) -> TransactionOptions {
        TransactionOptions { lock_timeout, ..self }
    }
    /// With another [`max_keys`](TransactionOptions::max_keys).
    #[must_use]
    pub fn with_max_keys(self, max_keys: usize) -> TransactionOptions {
        TransactionOptions { max_keys, ..self }
    }
    /// With other options of the commit.
    #[must_use]
    pub fn with_write(self, write: WriteOptions) -> TransactionOptions {
        TransactionOptions { write, ..self }
    }
}

/// Reads and writes that become visible together, by [`commit`](Transaction::commit), or never.
///
/// What it is isolated from, the handle over it in `lithify` says. A family is `None` for the one whose handle
/// began the transaction; others are of the same open database, or refused as `InvalidArgument`.
pub struct Transaction<D: Store> {
    db: D,
    id: TxnId,
    options: TransactionOptions,
    snapshot: Option<Snapshot>,
    /// The last moment that was relied on without a snapshot.
    moment: Option<Snapshot>,
    pending: Pending,
    /// Keys that are locked; or, of an optimistic transaction, relied on since a moment.
    claims: BTreeMap<FamilyKey, Option<Snapshot>>,
    savepoints: Vec<Savepoint>,
    /// The name that it is prepared under.
    prepared: Option<Vec<u8>>,
}

struct Savepoint {
    mark: BatchMark,
    /// What was claimed since.
    claims: Vec<FamilyKey>,
}

impl<D: Store> Transaction<D> {
    /// Begins one over `db`.
    pub fn begin(db: D, options: TransactionOptions) -> Transaction<D> {
        let mut transaction = Transaction {
            id: db.locks().enrol(),
            pending: Pending::default(),
            db,
            options,
            snapshot: None,
            moment: None,
            claims: BTreeMap::new(),
            savepoints: Vec::new(),
            prepared: None,
        };
        if transaction.options.snapshot {
            transaction.set_snapshot();
        }
        transaction
    }

    /// Its number, as in errors of transactions that wait for it.
    pub fn id(&self) -> u64 {
        self.id
    }
    /// The snapshot it reads at, if it has one.
    pub fn snapshot(&self) -> Option<&Snapshot> {
        self.snapshot.as_ref()
    }
    /// Takes a snapshot.
    pub fn set_snapshot(&mut self) {
        self.snapshot = Some(self.db.tree().snapshot());
    }
    /// Lets go of the snapshot.
    pub fn clear_snapshot(&mut self) {
        self.snapshot = None;
    }
    /// Sets the options of the writes to come: of what prepares, commits or rolls it back.
    pub fn set_write_options(&mut self, options: WriteOptions) {
        self.options.write = options;
    }
    /// The name that it is prepared under, if it is.
    pub fn name(&self) -> Option<&[u8]> {
        self.prepared.as_deref()
    }
    /// Number of writes it has made.
    pub fn len(&self) -> usize {
        self.pending.batch().len()
    }
    /// True if it has made none.
    pub fn is_empty(&self) -> bool {
        self.pending.batch().is_empty()
    }

    /// Reads a key without a claim.
    ///
    /// # Errors
    /// Those of a get.
    pub fn get(&self, family: Option<&D::Family>, key: &[u8]) -> Result<Option<Value>> {
        self.read(self.tree_of(family)?, key, self.snapshot.as_ref())
    }
    /// Claims a key and reads it.
    ///
    /// # Errors
    /// Those of a claim; and those of a get, where the key is claimed.
    pub fn get_for_update(
        &mut self,
        family: Option<&D::Family>,
        key: &[u8],
    ) -> Result<Option<Value>> {
        self.check_not_prepared()?;
        let of = self.tree_of(family)?.clone();
        check_key(key)?;
        let since = self.claim(&of, key)?;
        self.read(&of, key, since.as_ref().or(self.snapshot.as_ref()))
    }
    /// An iterator over a family with this transaction's writes to it, as both are now.
    ///
    /// # Errors
    /// Those of an iterator over the family.
    pub fn iter(&self, family: Option<&D::Family>, options: &ReadOptions) -> Result<DbIter> {
        let of = self.tree_of(family)?;
        let mut options = options.clone();
        options.snapshot = options.snapshot.or_else(|| self.snapshot.clone());
        of.iter_under(self.pending.cursor(of.cf()), &options)
    }
    /// Claims a key and adds a write of it: `kind` is one that a batch takes for a key, and `value` empty for
    /// deletions.
    ///
    /// # Errors
    /// Those of a claim, and of what is too long. Nothing was written, but the key may be claimed.
    pub fn write(
        &mut self,
        family: Option<&D::Family>,
        kind: Kind,
        key: &[u8],
        value: &[u8],
    ) -> Result<()> {
        self.check_not_prepared()?;
        let of = self.tree_of(family)?.clone();
        check_key(key)?;
        check_value(value)?;
        self.claim(&of, key)?;
        let order = || of.comparator().clone();
        self.pending.add(of.cf(), order, kind, key, value)
    }

    /// Marks a point.
    pub fn set_savepoint(&mut self) {
        let mark = self.pending.mark();
        self.savepoints.push(Savepoint { mark, claims: Vec::new() });
    }
    /// Undoes what was written and claimed since the last savepoint, and removes that.
    ///
    /// # Errors
    /// `NotFound` if there is none; `LimitExceeded` if there is no memory, and nothing was undone.
    pub fn rollback_to_savepoint(&mut self) -> Result<()> {
        self.check_not_prepared()?;
        let savepoint = self.savepoints.last().ok_or_else(no_savepoint)?;
        self.pending.cut(savepoint.mark)?;
        for key in self.savepoints.pop().into_iter().flat_map(|s| s.claims) {
            self.claims.remove(&key);
            self.release(&key);
        }
        Ok(())
    }
    /// Removes the last savepoint and keeps what was done since.
    ///
    /// # Errors
    /// `NotFound` if there is none.
    pub fn pop_savepoint(&mut self) -> Result<()> {
        let last = self.savepoints.pop().ok_or_else(no_savepoint)?;
        if let Some(before) = self.savepoints.last_mut() {
            before.claims.extend(last.claims);
        }
        Ok(())
    }

    /// Writes all of it into the log under `name`, of 1 to 512 bytes. It can only be committed or rolled back from
    /// then on, and stays as it is until that, whatever happens to this handle, the database or the machine.
    ///
    /// # Errors
    /// `InvalidArgument` if it is optimistic or prepared already, or another one has the name; else those of a
    /// write. It is not prepared then.
    pub fn prepare(&mut self, name: &[u8]) -> Result<()> {
        self.check_not_prepared()?;
        if self.options.concurrency == Concurrency::Optimistic {
            let what = "an optimistic transaction may be refused at its commit, so it can't be prepared; begin a \
                        pessimistic one";
            return Err(Error::invalid(what));
        }
        if name.is_empty() || name.len() > MAX_NAME_BYTES {
            return Err(Error::invalid(format!(
                "the name of a prepared transaction has 1 to {MAX_NAME_BYTES} bytes, and this one has {}",
                name.len()
            )));
        }
        self.writer()?.prepare(name, self.pending.batch(), &self.options.write)?;
        self.savepoints.clear();
        self.prepared = Some(name.to_vec());
        Ok(())
    }

    /// Undoes writes, claims and savepoints.
    ///
    /// # Errors
    /// Those of a write if it is prepared, and it stays so; none else.
    pub fn rollback(&mut self) -> Result<()> {
        if let Some(name) = &self.prepared {
            self.db.tree().end_prepared(name, None, &self.options.write)?;
            self.prepared = None;
        }
        self.forget();
        Ok(())
    }
    fn forget(&mut self) {
        self.pending.clear();
        self.savepoints.clear();
        self.moment = None;
        for key in std::mem::take(&mut self.claims).into_keys() {
            self.release(&key);
        }
    }
    /// Writes all of it in one batch; of an optimistic transaction, if what it relies on is as it was. What it
    /// has claimed it lets go of in any case.
    ///
    /// # Errors
    /// `Busy` if it is not as it was; else those of the write. `NotFound` if a family was dropped. One that is
    /// prepared stays so.
    pub fn commit(mut self) -> Result<()> {
        if zoo::on(Bug::UnlockedEarly) {
            std::mem::take(&mut self.claims).keys().for_each(|key| self.release(key));
            self.db.tree().dawdle();
        }
        let shell = self.writer()?;
        let (batch, options) = (self.pending.batch(), &self.options.write);
        if let Some(name) = &self.prepared {
            shell.end_prepared(name, Some(batch), options)?;
            self.prepared = None;
            return Ok(());
        }
        if self.options.concurrency == Concurrency::Pessimistic {
            return shell.write_batch(batch, options);
        }
        let published = shell.published();
        self.check(0)?;
        if batch.is_empty() {
            return Ok(());
        }
        if zoo::on(Bug::CheckedOnce) {
            shell.dawdle();
            return shell.write_batch(batch, options);
        }
        shell.write_batch_if(batch, options, || match shell.published() == published {
            true => Ok(()),
            false => self.check(published),
        })
    }

    /// Who writes the batch. The handle of another family takes no entries of the default one.
    fn writer(&self) -> Result<Shell> {
        let own = self.db.tree();
        match own.cf() != DEFAULT_CF && self.pending.names(DEFAULT_CF) {
            true => own.family_of(DEFAULT_CF),
            false => Ok(own.clone()),
        }
    }

    fn read(&self, of: &Shell, key: &[u8], at: Option<&Snapshot>) -> Result<Option<Value>> {
        of.get_under(|| self.pending.entries(of.cf(), key), key, at)
    }

    fn check_not_prepared(&self) -> Result<()> {
        match self.prepared {
            None => Ok(()),
            Some(_) => {
                Err(Error::invalid("the transaction is prepared; commit it, or roll it back"))
            }
        }
    }

    /// The tree of a family of the database that the transaction is of.
    fn tree_of<'a>(&'a self, family: Option<&'a D::Family>) -> Result<&'a Shell> {
        let Some(family) = family else { return Ok(self.db.tree()) };
        match family.tree().is_of_same_database(self.db.tree()) {
            true => Ok(family.tree()),
            false => Err(Error::invalid(format!(
                "column family `{}` is another database's, or of an earlier open of this one; take \
                 the handle of the database that began the transaction",
                family.tree().name()
            ))),
        }
    }

    /// Claims the key of a family, if it is not claimed yet; the moment it is relied on since, if there
    /// is one.
    fn claim(&mut self, of: &Shell, key: &[u8]) -> Result<Option<Snapshot>> {
        let key = FamilyKey::new(of.cf(), key, of.comparator());
        if let Some(since) = self.claims.get(&key) {
            return Ok(since.clone());
        }
        if self.claims.len() >= self.options.max_keys {
            return Err(Error::new(
                ErrorKind::LimitExceeded,
                format!(
                    "the transaction has claimed {} keys; raise max_keys, or make it smaller",
                    self.claims.len()
                ),
            ));
        }
        let since = match self.options.concurrency {
            Concurrency::Optimistic => Some(self.now()),
            Concurrency::Pessimistic => {
                self.lock(of, &key)?;
                None
            }
        };
        if let Some(savepoint) = self.savepoints.last_mut() {
            savepoint.claims.push(key.clone());
        }
        self.claims.insert(key, since.clone());
        Ok(since)
    }

    /// The moment that a key is relied on since: of the snapshot, or now.
    fn now(&mut self) -> Snapshot {
        if let Some(snapshot) = &self.snapshot {
            return snapshot.clone();
        }
        let published = self.db.tree().published();
        let last = self.moment.take().filter(|last| last.sequence() == published);
        self.moment.insert(last.unwrap_or_else(|| self.db.tree().snapshot())).clone()
    }

    fn lock(&self, of: &Shell, key: &FamilyKey) -> Result<()> {
        self.db.locks().lock(self.id, key, self.options.lock_timeout, &*of.env().rt)?;
        let Some(snapshot) = &self.snapshot else { return Ok(()) };
        let newer = of.is_newer(&of.super_version(), &key.key, snapshot.sequence());
        let refused = match newer {
            Ok(false) => return Ok(()),
            Ok(true) => busy(&key.key, "this transaction's snapshot"),
            Err(e) => e,
        };
        self.db.locks().unlock(self.id, key);
        Err(refused)
    }
    /// Unlocks what is no longer claimed.
    fn release(&self, key: &FamilyKey) {
        if self.options.concurrency == Concurrency::Pessimistic {
            self.db.locks().unlock(self.id, key);
        }
    }

    /// Whether nothing was written, after number `after`, of what this transaction relies on.
    fn check(&self, after: Seq) -> Result<()> {
        let mut at = self.db.tree().clone();
        let mut sv = at.super_version();
        // By families: the keys of one follow each other.
        for (FamilyKey { cf, key, .. }, since) in &self.claims {
            if *cf != at.cf() {
                at = at.family_of(*cf)?;
                sv = at.super_version();
            }
            let since = since.as_ref().map_or(after, |s| s.sequence().max(after));
            if at.is_newer(&sv, key, since)? {
                return Err(busy(key, "this transaction relied on it"));
            }
        }
        Ok(())
    }
}

impl<D: Store> Drop for Transaction<D> {
    fn drop(&mut self) {
        let Some(name) = self.prepared.take() else { return self.forget() };
        let claims = std::mem::take(&mut self.claims).into_keys().collect();
        self.db.locks().parked.put(name, Waiting { id: self.id, claims });
    }
}

impl<D: Store> std::fmt::Debug for Transaction<D> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (writes, claims) = (self.len(), self.claims.len());
        write!(f, "Transaction {} ({writes} writes, {claims} keys)", self.id)
    }
}

fn busy(key: &[u8], since: &str) -> Error {
    // Enough of the key to know it by.
    let shown = key[..key.len().min(64)].escape_ascii();
    let what = format!(
        "key \"{shown}\" was written after {since}; roll back and run the transaction again"
    );
    Error::new(ErrorKind::Busy, what)
}

fn no_savepoint() -> Error {
    Error::new(ErrorKind::NotFound, "the transaction has no savepoint; set one first")
}
