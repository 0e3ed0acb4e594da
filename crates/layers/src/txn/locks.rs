//! Locks on keys: who holds one, who waits for it in which order, and who would wait for ever.
//!
//! The table is cut into stripes by a hash of the key; each has a lock of its own over the keys
//! that are locked in it. A key that is released goes to the one who has waited longest, there and
//! then: none overtakes. A transaction waits for at most one key, so "waits for the holder of"
//! is a chain, and a wait that would close a chain to a circle is refused before it begins. Edges
//! change only when a key changes hands, and its new holder waits for none, so circles arise
//! nowhere else.
//!
//! Keeps: a key has at most one holder; every waiter is in one queue and has one edge, to the
//! holder of that key. `Stripe` locks are taken before `waits`.
//! Leaves to others: what is locked when, and how many keys a transaction may hold.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use lithify_base::{CfId, ComparatorRef, Error, ErrorKind, Key, Result};
use lithify_env::sync::atomic::{AtomicU64, Ordering};
use lithify_env::sync::{Arc, Mutex};
use lithify_env::{Rt, Ticket, Wake};
use lithify_format::filter::key_hash;

use super::prepared::Parked;

/// A key of a family. Two are equal if they are in the family's order.
#[derive(Clone)]
pub(crate) struct FamilyKey {
    pub(crate) cf: CfId,
    pub(crate) key: Key,
    /// Of the family, where different bytes may be equal.
    order: Option<ComparatorRef>,
}

impl FamilyKey {
    pub(crate) fn new(cf: CfId, key: &[u8], order: &ComparatorRef) -> FamilyKey {
        let order = (!order.equal_is_identical()).then(|| order.clone());
        FamilyKey { cf, key: key.into(), order }
    }

    /// Equal keys have equal hashes.
    fn hash(&self) -> u64 {
        match self.order {
            None => key_hash(&self.key),
            Some(_) => u64::from(self.cf.0),
        }
    }
}

impl Ord for FamilyKey {
    fn cmp(&self, other: &FamilyKey) -> std::cmp::Ordering {
        self.cf.cmp(&other.cf).then_with(|| match &self.order {
            None => self.key.cmp(&other.key),
            Some(order) => order.compare(&self.key, &other.key),
        })
    }
}

impl PartialOrd for FamilyKey {
    fn partial_cmp(&self, other: &FamilyKey) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for FamilyKey {
    fn eq(&self, other: &FamilyKey) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for FamilyKey {}

/// Number of a transaction, unique while the database is open.
pub(crate) type TxnId = u64;

const STRIPES: usize = 32;

/// The locks of one database.
pub struct Locks {
    stripes: [Mutex<Stripe>; STRIPES],
    /// A transaction that waits -> the holder of what it waits for.
    waits: Mutex<BTreeMap<TxnId, TxnId>>,
    last: AtomicU64,
    /// Prepared transactions that no handle stands for.
    pub(super) parked: Parked,
}

type Stripe = BTreeMap<FamilyKey, Lock>;

struct Lock {
    holder: TxnId,
    /// Longest waiting first.
    queue: VecDeque<Arc<Waiter>>,
}

struct Waiter {
    who: TxnId,
    /// Completed when the key is handed over.
    ticket: Ticket,
}

impl Default for Locks {
    fn default() -> Locks {
        Locks {
            stripes: std::array::from_fn(|_| Mutex::default()),
            waits: Mutex::default(),
            last: AtomicU64::new(0),
            parked: Parked::default(),
        }
    }
}

impl Locks {
    /// A number for a new transaction.
    pub(crate) fn enrol(&self) -> TxnId {
        self.last.fetch_add(1, Ordering::Relaxed) + 1
    }

    fn stripe(&self, key: &FamilyKey) -> &Mutex<Stripe> {
        &self.stripes[key.hash() as usize % STRIPES]
    }

    /// Locks `key` for `who`, which does not hold it, waiting at most `limit`,
    /// or for as long as it takes if that is [`Duration::MAX`].
    ///
    /// # Errors
    /// `Deadlock` if its holder waits, over any number of others, for `who`; `TimedOut`.
    pub(crate) fn lock(
        &self,
        who: TxnId,
        key: &FamilyKey,
        limit: Duration,
        rt: &dyn Rt,
    ) -> Result<()> {
        let waiter = {
            let mut stripe = self.stripe(key).lock();
            let lock = match stripe.entry(key.clone()) {
                Entry::Vacant(free) => {
                    free.insert(Lock { holder: who, queue: VecDeque::new() });
                    return Ok(());
                }
                Entry::Occupied(taken) => taken.into_mut(),
            };
            assert!(lock.holder != who, "transaction {who} locks a key twice");
            if limit.is_zero() {
                return Err(timed_out(lock.holder, limit));
            }
            begin_wait(&mut self.waits.lock(), who, lock.holder)?;
            let waiter = Arc::new(Waiter { who, ticket: Ticket::new() });
            lock.queue.push_back(waiter.clone());
            waiter
        };
        let until = (limit < Duration::MAX).then(|| rt.now() + limit);
        if rt.park(&waiter.ticket, until) == Wake::Done {
            return Ok(());
        }
        let mut stripe = self.stripe(key).lock();
        let lock = stripe.get_mut(key).expect("a key that is waited for is locked");
        if lock.holder == who {
            // It was handed over at the last moment.
            return Ok(());
        }
        lock.queue.retain(|w| w.who != who);
        self.waits.lock().remove(&who);
        Err(timed_out(lock.holder, limit))
    }

    /// Locks `key` for `who` if it is free; whether it was.
    pub(super) fn hold(&self, who: TxnId, key: &FamilyKey) -> bool {
        match self.stripe(key).lock().entry(key.clone()) {
            Entry::Vacant(free) => {
                free.insert(Lock { holder: who, queue: VecDeque::new() });
                true
            }
            Entry::Occupied(_) => false,
        }
    }

    /// Unlocks `key`, which `who` holds, or hands it to the next.
    pub(crate) fn unlock(&self, who: TxnId, key: &FamilyKey) {
        let mut stripe = self.stripe(key).lock();
        let lock = stripe.get_mut(key).expect("what a transaction holds is locked");
        assert!(lock.holder == who, "transaction {who} unlocks a key of {}", lock.holder);
        let Some(next) = lock.queue.pop_front() else {
            stripe.remove(key);
            return;
        };
        lock.holder = next.who;
        {
            let mut waits = self.waits.lock();
            waits.remove(&next.who);
            waits.extend(lock.queue.iter().map(|w| (w.who, next.who)));
        }
        next.ticket.complete();
    }

    /// Keys that are locked, and transactions that wait for one.
    #[cfg(test)]
    pub(crate) fn in_use(&self) -> (usize, usize) {
        (self.stripes.iter().map(|s| s.lock().len()).sum(), self.waits.lock().len())
    }
}

/// Notes that `who` waits for `holder`, unless that closes a circle.
fn begin_wait(waits: &mut BTreeMap<TxnId, TxnId>, who: TxnId, holder: TxnId) -> Result<()> {
    let mut circle = vec![who, holder];
    // Ends, because what is noted has no circle.
    while let Some(&next) = circle.last().and_then(|last| waits.get(last)) {
        if next == who {
            let names: Vec<String> = circle.iter().map(u64::to_string).collect();
            return Err(Error::new(
                ErrorKind::Deadlock,
                format!(
                    "transactions {} -> {who} wait for each other's locks; roll this one back and \
                     run it again",
                    names.join(" -> ")
                ),
            ));
        }
        circle.push(next);
    }
    waits.insert(who, holder);
    Ok(())
}

fn timed_out(holder: TxnId, limit: Duration) -> Error {
    Error::new(
        ErrorKind::TimedOut,
        format!(
            "transaction {holder} held the key's lock for longer than {limit:?}; ask again, roll \
             back and run the transaction again, or raise lock_timeout"
        ),
    )
}

#[cfg(all(test, shuttle))]
mod schedules;
#[cfg(all(test, not(shuttle)))]
mod tests;
