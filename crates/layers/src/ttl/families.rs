//! Values that expire in other column families than the default one, each with a time to live of its own.
//!
//! Keeps: the values of a family have times, all or none: those of a family that was opened or made with
//! a time to live, and of the default one. A family is known by its number, which is never used again.
//! Leaves to others: times themselves (`ttl`), families (`families`).

use std::collections::BTreeMap;
use std::time::Duration;

use lithify_base::zoo::{self, Bug};
use lithify_base::{CfId, Error, Result};
use lithify_env::sync::{Arc, Mutex};
use lithify_tree::{ColumnFamilyOptions, Components, DEFAULT_CF, OpenOptions};

use super::components::{Expiring, Stamped};
use super::{Lifetime, TtlDb};
use crate::store::Store;

/// The times to live of the families whose values have times.
#[derive(Clone)]
pub(super) struct Lifetimes(Arc<Mutex<Arc<BTreeMap<CfId, Lifetime>>>>);

impl Lifetimes {
    /// Those as of now.
    pub(super) fn all(&self) -> Arc<BTreeMap<CfId, Lifetime>> {
        self.0.lock().clone()
    }
    /// Adds that of a family that `make` makes. None is looked up meanwhile: a thread that
    /// finds the family by its name writes values with times from the first on.
    fn add(&self, lifetime: Lifetime, make: impl FnOnce() -> Result<CfId>) -> Result<()> {
        let mut all = self.0.lock();
        Arc::make_mut(&mut all).insert(make()?, lifetime);
        Ok(())
    }
}

impl std::fmt::Debug for Lifetimes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.all().fmt(f)
    }
}

/// Operator and filter see no times, and the filter drops what has expired.
fn timed(components: Components, lifetime: &Lifetime) -> Components {
    let Components { operator, filter, prefixes } = components;
    Components {
        operator: operator.map(|inner| Arc::new(Stamped::new(inner, lifetime)) as _),
        filter: Some(Arc::new(Expiring::new(filter, lifetime))),
        prefixes,
    }
}

/// The time to live of `options`, which see no times from now on.
fn take_ttl(options: &mut ColumnFamilyOptions) -> Option<Lifetime> {
    let lifetime = Lifetime::new(options.take_ttl()?);
    options.change_components(|components| timed(components, &lifetime));
    Some(lifetime)
}

/// Opens with `open` a database whose values expire `ttl` after they were written, and those of
/// families with a time to live of their own after that.
///
/// # Errors
/// Those of `open`.
pub fn open_with_times<D: Store>(
    mut with: OpenOptions,
    ttl: Duration,
    open: impl FnOnce(OpenOptions) -> Result<D>,
) -> Result<TtlDb<D>> {
    let lifetime = Lifetime::new(ttl);
    let Components { operator, filter, prefixes } = timed(
        Components { operator: with.operator, filter: with.filter, prefixes: with.prefixes },
        &lifetime,
    );
    (with.operator, with.filter, with.prefixes) = (operator, filter, prefixes);
    let named = |(name, options): (&String, &mut ColumnFamilyOptions)| {
        take_ttl(options).map(|lifetime| (name.clone(), lifetime))
    };
    let named: Vec<_> = with.families.iter_mut().filter_map(named).collect();
    let db = open(with)?;
    let mut lifetimes = BTreeMap::from([(DEFAULT_CF, lifetime.clone())]);
    for (name, lifetime) in named {
        if let Ok(family) = db.family(&name) {
            lifetimes.insert(family.tree().cf(), lifetime);
        }
    }
    let lifetimes = Lifetimes(Arc::new(Mutex::new(Arc::new(lifetimes))));
    Ok(TtlDb { db, lifetime, lifetimes })
}

impl<D: Store> TtlDb<D> {
    /// The column family of that name, with a time to live of its own.
    ///
    /// # Errors
    /// `NotFound` if there is none; `InvalidArgument` if it was opened without a time to live.
    pub fn column_family(&self, name: &str) -> Result<TtlDb<D>> {
        let family = self.db.family(name)?;
        let cf = if zoo::on(Bug::LifetimeOfDefault) { DEFAULT_CF } else { family.tree().cf() };
        let Some(lifetime) = self.lifetimes.all().get(&cf).cloned() else {
            return Err(Error::invalid(format!(
                "column family `{name}` was opened without a time to live; give it one with \
                 ColumnFamilyOptions::ttl, or use TtlDb::db if its values have no times"
            )));
        };
        Ok(TtlDb { db: D::clone(&family), lifetime, lifetimes: self.lifetimes.clone() })
    }
    /// Makes a column family whose values expire.
    ///
    /// # Errors
    /// Those of making a family; `InvalidArgument` if `options` have no time to live.
    pub fn create_column_family(
        &self,
        name: &str,
        mut options: ColumnFamilyOptions,
    ) -> Result<TtlDb<D>> {
        let Some(lifetime) = take_ttl(&mut options) else {
            return Err(Error::invalid(format!(
                "column family `{name}` has no time to live; give it one with \
                 ColumnFamilyOptions::ttl (zero is for ever), or make it with TtlDb::db"
            )));
        };
        let make = || Ok(self.db.create_family(name, options)?.tree().cf());
        self.lifetimes.add(lifetime, make)?;
        self.column_family(name)
    }
}
