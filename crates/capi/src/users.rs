//! Which open databases use a shared object, so that it can tell what they take.
#![allow(
    clippy::disallowed_types,
    reason = "a boundary without a world of its own; never held while waiting"
)]

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use lithify::{DbEvent, Error, EventListener, KeptFiles};

use crate::db::Database;
use crate::raw::Res;
use crate::shared::Logger;

/// The databases that were opened with an object and are open.
#[derive(Clone, Default)]
pub(crate) struct Users(Arc<Mutex<Vec<Database>>>);

impl Users {
    /// One more.
    pub(crate) fn join(&self, database: &Database) {
        let mut users = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        users.retain(|user| user.is_open() && !user.is_same(database));
        users.push(database.clone());
    }
    /// What `of` gives for each of them.
    pub(crate) fn each<T>(&self, of: impl Fn(&Database) -> T) -> Vec<T> {
        let mut users = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        users.retain(Database::is_open);
        let users = users.clone();
        users.iter().map(of).collect()
    }
}

/// A property of the families of a database, summed.
pub(crate) fn sum(database: &Database, property: &str) -> u64 {
    database.families().iter().filter_map(|family| family.int_property(property)).sum()
}

/// Files of a database that are kept, once for each call that asked for it.
#[derive(Clone, Default)]
pub(crate) struct Keeping(Arc<Mutex<Vec<KeptFiles>>>);

impl Keeping {
    /// Keeps files once more.
    pub(crate) fn more(&self, kept: KeptFiles) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(kept);
    }
    /// Once less; at no more, files go.
    pub(crate) fn less(&self) {
        let last = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop();
        drop(last);
    }
    /// All of it ends.
    pub(crate) fn end(&self) {
        let all = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        drop(all);
    }
}

/// Names of transactions that are under way: none has that of another.
#[derive(Clone, Default)]
pub(crate) struct Names(Arc<Mutex<BTreeSet<Vec<u8>>>>);

/// A name that is taken while this lives.
pub(crate) struct Named {
    name: Vec<u8>,
    of: Names,
}

impl Names {
    /// Takes a name.
    ///
    /// # Errors
    /// `InvalidArgument` if another transaction has it.
    pub(crate) fn take(&self, name: &[u8]) -> Res<Named> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match all.insert(name.to_vec()) {
            true => Ok(Named { name: name.to_vec(), of: self.clone() }),
            false => Err(Error::invalid(format!("Duplicate txn name {}", name.escape_ascii()))),
        }
    }
}

impl Drop for Named {
    fn drop(&mut self) {
        self.of.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.name);
    }
}

/// One thread at a time.
#[derive(Default)]
pub(crate) struct Turn(Mutex<()>);

impl Turn {
    pub(crate) fn take<T>(&self, inside: impl FnOnce() -> T) -> T {
        let _mine = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        inside()
    }
}

/// Tells a logger what happens in a database, until the close: nothing calls it after that.
pub(crate) struct Telling {
    logger: Logger,
    over: Mutex<bool>,
}

impl Telling {
    pub(crate) fn new(logger: Logger) -> Telling {
        Telling { logger, over: Mutex::new(false) }
    }
    pub(crate) fn say(&self, text: &str) {
        let over = self.over.lock().unwrap_or_else(PoisonError::into_inner);
        if !*over {
            self.logger.say(text);
        }
    }
    /// Waits for a call that is under way; there is none from here on.
    pub(crate) fn end(&self) {
        *self.over.lock().unwrap_or_else(PoisonError::into_inner) = true;
    }
}

impl EventListener for Telling {
    fn on_event(&self, event: &DbEvent) {
        self.say(&event.to_string());
    }
}
