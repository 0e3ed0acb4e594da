//! Prepared transactions that no handle stands for: found in the logs by the open, or dropped.
//!
//! Keeps: each has the locks on what it would write, from the open on, before any other transaction begins. What it
//! read for update before a close is free.
//! Leaves to others: what they would write, which the tree knows by their names.

use std::collections::BTreeMap;

use lithify_base::Result;
use lithify_env::sync::Mutex;
use lithify_tree::Shell;

use super::locks::{FamilyKey, Locks, TxnId};
use super::pending::Pending;
use super::{Transaction, TransactionOptions};
use crate::store::Store;

/// Those of one database, by name.
#[derive(Default)]
pub(super) struct Parked(Mutex<BTreeMap<Vec<u8>, Waiting>>);

/// What its next handle takes over.
pub(super) struct Waiting {
    pub(super) id: TxnId,
    pub(super) claims: Vec<FamilyKey>,
}

impl Parked {
    pub(super) fn put(&self, name: Vec<u8>, waiting: Waiting) {
        self.0.lock().insert(name, waiting);
    }
    fn names(&self) -> Vec<Vec<u8>> {
        self.0.lock().keys().cloned().collect()
    }
    fn take(&self, name: &[u8]) -> Option<Waiting> {
        self.0.lock().remove(name)
    }
}

impl Locks {
    /// The locks of a database that was just opened: those of what is prepared are held.
    pub fn of(tree: &Shell) -> Locks {
        let locks = Locks::default();
        tree.each_prepared(|name, writes| {
            let (id, mut claims) = (locks.enrol(), Vec::new());
            for op in writes.iter() {
                // What was written to a family that was dropped concerns none.
                let Ok(family) = tree.family_of(op.cf) else { continue };
                let key = FamilyKey::new(op.cf, op.key, family.comparator());
                if locks.hold(id, &key) {
                    claims.push(key);
                }
            }
            locks.parked.put(name.to_vec(), Waiting { id, claims });
        });
        locks
    }
}

/// The prepared transactions of `db` that no handle stands for, each under a handle.
///
/// # Errors
/// `LimitExceeded` without memory for what one would write; those that are not handed out stay.
pub fn prepared_transactions<D: Store>(db: &D) -> Result<Vec<Transaction<D>>> {
    let mut all = Vec::new();
    let families = db.tree().families();
    let order = |cf| families.iter().find(|f| f.cf() == cf).map(|f| f.comparator().clone());
    let parked = &db.locks().parked;
    for name in parked.names() {
        // None but this call ends it from here on.
        let Some(waiting) = parked.take(&name) else { continue };
        let pending = match db.tree().prepared(&name).and_then(|batch| Pending::of(batch, order)) {
            Ok(pending) => pending,
            Err(e) => {
                parked.put(name, waiting);
                return Err(e);
            }
        };
        let Waiting { id, claims } = waiting;
        all.push(Transaction {
            db: db.clone(),
            id,
            options: TransactionOptions::pessimistic(),
            snapshot: None,
            moment: None,
            pending,
            claims: claims.into_iter().map(|key| (key, None)).collect(),
            savepoints: Vec::new(),
            prepared: Some(name),
        });
    }
    Ok(all)
}
