//! The write turn: who may write now, and who waits. The holder owns the log and the memtable's
//! write handle; everybody else queues a batch and is either served by the holder (group
//! commit) or handed the turn.
//!
//! The turn is an owned token, not a lock: it is held across log writes and syncs while `queue`
//! below is held for a few instructions only.

use std::collections::VecDeque;

use lithify_base::{Error, ErrorKind, Result};
use lithify_env::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use lithify_env::sync::{Arc, Mutex, OnceLock};
use lithify_env::{Rt, Ticket};
use lithify_journal::wal::BatchBuilder;

use crate::parts::Part;
use lithify_settings::Durability;

/// Most bytes a holder takes over from others into one group.
const GROUP_BYTES: usize = 1 << 20;

/// A writer that spins and was overtaken by others so many times sleeps.
const OVERTAKEN: u32 = 16;

/// Writes after one that found the turn taken for which others are taken to be about.
const CROWD: usize = 64;

/// The turn of `T`.
pub struct Turn<T> {
    queue: Mutex<Queue<T>>,
    /// Whether the token is free, for writers that spin.
    free: AtomicBool,
    /// Length of the queue, for a holder that only wants to know whether anyone waits.
    waiting: AtomicUsize,
    /// So many more writes are made as if others waited.
    crowd: AtomicUsize,
}

struct Queue<T> {
    /// The token, when it is free.
    token: Option<Box<T>>,
    /// Set once the database is closed: the token is gone for good.
    closed: Option<Error>,
    waiting: VecDeque<Arc<Waiter<T>>>,
}

/// One queued writer.
pub struct Waiter<T> {
    /// What it wants written; empty for one that only wants the turn.
    pub batch: BatchBuilder,
    /// How far it must have travelled before it is served.
    pub durability: Durability,
    told: Mutex<Option<Told<T>>>,
    ticket: Ticket,
    /// Complete once it is served; made for one that is woken to insert its batch before.
    served: OnceLock<Ticket>,
}

/// How a wait ended.
pub enum Outcome<T> {
    /// The batch was written, or failed, with a holder's group.
    Served(Result<()>),
    /// The turn is yours; the batch is not written yet.
    Yours(Box<T>),
}

/// What a waiter is woken with.
enum Told<T> {
    /// The wait is over.
    Ended(Outcome<T>),
    /// Its batch is in the log and its own to insert; after that it waits on.
    Insert(Box<Part>),
}

impl<T> Waiter<T> {
    /// Tells it how its batch fared; its wait is over.
    pub fn serve(&self, result: Result<()>) {
        *self.told.lock() = Some(Told::Ended(Outcome::Served(result)));
        self.ticket.complete();
        if let Some(served) = self.served.get() {
            served.complete();
        }
    }
    /// Asks the waiter to insert its own batch. The holder serves it after that.
    pub fn ask(&self, part: Part) {
        self.served.get_or_init(Ticket::new);
        *self.told.lock() = Some(Told::Insert(Box::new(part)));
        self.ticket.complete();
    }
    /// Takes back what the waiter was asked for, unless it has begun.
    pub fn take_part(&self) -> Option<Box<Part>> {
        let mut told = self.told.lock();
        match told.take() {
            Some(Told::Insert(part)) => Some(part),
            other => {
                *told = other;
                None
            }
        }
    }
}

impl<T> Turn<T> {
    /// A turn that is free.
    pub fn new(token: Box<T>) -> Turn<T> {
        Turn {
            queue: Mutex::new(Queue { token: Some(token), closed: None, waiting: VecDeque::new() }),
            free: AtomicBool::new(true),
            waiting: AtomicUsize::new(0),
            crowd: AtomicUsize::new(0),
        }
    }

    /// The turn, if it is free, or if its holder leaves it free within some microseconds.
    #[inline]
    pub fn take_soon(&self, rt: &dyn Rt) -> Option<Box<T>> {
        self.try_take().or_else(|| self.spin(rt))
    }

    /// The turn, if it is free.
    pub fn try_take(&self) -> Option<Box<T>> {
        let mut queue = self.queue.lock();
        let token = queue.token.take();
        if token.is_some() {
            self.free.store(false, Ordering::Relaxed);
        }
        token
    }

    /// A short write is over before a thread that waits for it would be asleep, so this one looks on for
    /// a while. With others asleep in the queue it joins them: the turn is theirs next, and is not
    /// left free before all of them are served.
    #[cold]
    fn spin(&self, rt: &dyn Rt) -> Option<Box<T>> {
        let queued = || self.waiting.load(Ordering::Relaxed) > 0;
        let free = || self.free.load(Ordering::Relaxed);
        self.crowd.store(CROWD, Ordering::Relaxed);
        for _ in 0..OVERTAKEN {
            if !rt.spin(&|| free() || queued()) || queued() {
                break;
            }
            let token = self.try_take();
            if token.is_some() {
                return token;
            }
        }
        None
    }

    /// Queues `batch` and waits until it is served or the turn is ours.
    pub fn wait(
        &self,
        rt: &dyn Rt,
        batch: BatchBuilder,
        durability: Durability,
    ) -> (Arc<Waiter<T>>, Outcome<T>) {
        let waiter = Arc::new(Waiter {
            batch,
            durability,
            told: Mutex::new(None),
            ticket: Ticket::new(),
            served: OnceLock::new(),
        });
        {
            let mut queue = self.queue.lock();
            if let Some(token) = queue.token.take() {
                self.free.store(false, Ordering::Relaxed);
                return (waiter, Outcome::Yours(token));
            }
            if let Some(error) = &queue.closed {
                return (waiter, Outcome::Served(Err(error.clone())));
            }
            queue.waiting.push_back(waiter.clone());
            self.waiting.store(queue.waiting.len(), Ordering::Relaxed);
        }
        rt.park(&waiter.ticket, None);
        let mut told = waiter.told.lock().take();
        if let Some(Told::Insert(part)) = told {
            part.insert(&waiter.batch.view());
            told = None;
        }
        if let (None, Some(served)) = (&told, waiter.served.get()) {
            // Its part is done, by itself or by the holder, who waits for those of others.
            rt.park(served, None);
            told = waiter.told.lock().take();
        }
        let outcome = match told {
            Some(Told::Ended(outcome)) => outcome,
            _ => {
                let error = Error::new(ErrorKind::Internal, "a write was woken unserved");
                Outcome::Served(Err(error))
            }
        };
        (waiter, outcome)
    }

    /// Others whose batches the holder may write along, oldest first, up to the first that `may` not.
    /// The holder must [`serve`](Waiter::serve) each.
    #[inline]
    pub fn gather(&self, may: impl Fn(&BatchBuilder) -> bool) -> Vec<Arc<Waiter<T>>> {
        if self.waiting.load(Ordering::Relaxed) == 0 {
            return Vec::new();
        }
        let mut queue = self.queue.lock();
        let mut group = Vec::new();
        let mut bytes = 0;
        while let Some(w) = queue.waiting.front() {
            // One that only wants the turn ends the group: its turn comes next.
            let too_much = bytes + w.batch.byte_len() > GROUP_BYTES;
            if w.batch.is_empty() || too_much || !may(&w.batch) {
                break;
            }
            bytes += w.batch.byte_len();
            group.extend(queue.waiting.pop_front());
        }
        self.waiting.store(queue.waiting.len(), Ordering::Relaxed);
        group
    }

    /// Whether others want the turn, or lately did. Asked by the holder, once for each write.
    #[inline]
    pub fn is_crowded(&self) -> bool {
        let left = self.crowd.load(Ordering::Relaxed);
        if left > 0 {
            self.crowd.store(left - 1, Ordering::Relaxed);
        }
        left > 0
    }

    /// Passes the turn to the next in the queue, or leaves it free.
    pub fn pass_on(&self, token: Box<T>) {
        let mut queue = self.queue.lock();
        match queue.waiting.pop_front() {
            None => {
                queue.token = Some(token);
                self.free.store(true, Ordering::Relaxed);
            }
            Some(next) => {
                self.waiting.store(queue.waiting.len(), Ordering::Relaxed);
                drop(queue);
                *next.told.lock() = Some(Told::Ended(Outcome::Yours(token)));
                next.ticket.complete();
            }
        }
    }

    /// Ends all turns: the holder keeps the token, and a writer that waits or comes later gets
    /// `error`.
    pub fn close(&self, error: Error) {
        let waiting = {
            let mut queue = self.queue.lock();
            queue.closed = Some(error.clone());
            std::mem::take(&mut queue.waiting)
        };
        for w in waiting {
            w.serve(Err(error.clone()));
        }
    }
}

#[cfg(all(test, shuttle))]
mod schedules;
