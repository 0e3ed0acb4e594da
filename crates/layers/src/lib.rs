//! What stands over a database and needs no more of it than its operations: values that expire
//! ([`TtlDb`]) and transactions ([`Transaction`]).
//!
//! Both are made for any [`Store`], something with get, put and iterate; the handles of `lithify` are
//! one.
#![forbid(unsafe_code)]

mod store;
mod ttl;
mod txn;

pub use store::Store;
pub use ttl::{TtlDb, TtlEntries, TtlIter, open_with_times};
pub use txn::{Concurrency, Locks, Transaction, TransactionOptions, prepared_transactions};
