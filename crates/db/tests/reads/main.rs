//! What reads show: point reads, scans, snapshots, merge operands, transactions and expiry, against
//! models.

#[path = "../common/mod.rs"]
mod common;

mod batches;
mod borrowed_memory;
mod concurrent_inserts;
mod empty_key;
mod entries;
mod equal_keys;
mod examples;
mod filtered_snapshots;
mod follower;
mod model;
mod multi_get;
mod operators;
mod prefix;
mod prepared;
mod public_names;
mod ranges;
mod shared_cache;
mod table_identities;
mod traced;
mod traits;
mod transactions;
mod transactions_families;
mod ttl;
mod ttl_families;
mod walks;
