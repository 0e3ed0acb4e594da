//! Which open databases use a shared object, so that it can tell what they take.
#![allow(
    clippy::disallowed_types,
    reason = "a boundary without a world of its own; never held while waiting"
)]

use std::sync::{Arc, Mutex, PoisonError};

use crate::db::Database;

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
    /// The sum of a property over all of them, families included.
    pub(crate) fn sum(&self, property: &str, of: Of) -> u64 {
        let mut users = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        users.retain(Database::is_open);
        let users = users.clone();
        users.iter().map(|user| sum(user, property, of)).sum()
    }
}

/// Whether a property is of each family or of the database.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Of {
    Database,
    Families,
}

/// A property of a database, summed over its families if it is of each.
pub(crate) fn sum(database: &Database, property: &str, of: Of) -> u64 {
    let db = &database.db;
    if of == Of::Database {
        return db.int_property(property).unwrap_or(0);
    }
    let families = db.column_families();
    let families = families.iter().filter_map(|name| db.column_family(name).ok());
    families.filter_map(|family| family.int_property(property)).sum()
}
