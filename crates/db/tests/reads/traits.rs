//! What users' code relies on without naming it: which handles may be cloned, sent to other threads, shared
//! between them and printed. What is not so any more does not compile.

use std::fmt::Debug;

use lithify::{
    Backups, Budget, Builder, CancelToken, ColumnFamily, ColumnFamilyOptions, CompactOptions, Db,
    DbIter, Entries, Error, Explanation, Follower, IngestOptions, ReadOptions, Settings, Snapshot,
    Stats, TableBuilder, Transaction, TransactionOptions, TtlDb, TtlEntries, TtlIter, Value,
    WriteBatch, WriteOptions,
};

fn shared<T: Send + Sync + Debug + 'static>() {}
fn cloned<T: Clone + Send + Sync + Debug + 'static>() {}
fn sent<T: Send + Debug + 'static>() {}
fn compared<T: Eq + Ord + std::hash::Hash + AsRef<[u8]> + std::borrow::Borrow<[u8]>>() {}
fn defaulted<T: Default + Clone + PartialEq>() {}
fn iterated<
    T: DoubleEndedIterator<Item = lithify::Result<(Value, Value)>> + std::iter::FusedIterator,
>() {
}

#[test]
fn handles_are_cloned_sent_shared_and_printed() {
    cloned::<Db>();
    cloned::<ColumnFamily>();
    cloned::<TtlDb>();
    cloned::<Snapshot>();
    cloned::<Value>();
    cloned::<WriteBatch>();
    cloned::<Builder>();
    cloned::<Settings>();
    cloned::<ColumnFamilyOptions>();
    cloned::<ReadOptions>();
    cloned::<WriteOptions>();
    cloned::<CompactOptions>();
    cloned::<IngestOptions>();
    cloned::<TransactionOptions>();
    cloned::<CancelToken>();
    cloned::<Budget>();
    cloned::<Stats>();
    cloned::<Explanation>();
    cloned::<Error>();
    shared::<Follower>();
    shared::<Backups>();
    sent::<DbIter>();
    sent::<TtlIter>();
    sent::<Entries>();
    sent::<TtlEntries>();
    sent::<Transaction>();
    sent::<TableBuilder>();
    compared::<Value>();
    defaulted::<Settings>();
    defaulted::<WriteOptions>();
    iterated::<Entries>();
    iterated::<TtlEntries>();
}

/// A literal that names what it changes, and the methods of the same names.
#[test]
fn settings_are_written_as_a_literal_or_by_methods() {
    let literal = Settings { memory_budget: 64 << 20, bloom_bits: 12, ..Settings::default() };
    let methods = Settings::default().memory_budget(64 << 20).bloom_bits(12);
    let dir = tempfile::tempdir().unwrap();
    for settings in [literal, methods] {
        let db = Db::open(dir.path(), settings).unwrap();
        let s = db.settings();
        assert_eq!((s.memory_budget, s.memtable_bytes, s.bloom_bits), (64 << 20, 6 << 20, 12));
        db.close().unwrap();
    }
}

/// A family's own settings follow the budget of its database.
#[test]
fn a_family_with_settings_of_its_own_fits_a_small_budget() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open(dir.path(), Settings::default().memory_budget(64 << 20)).unwrap();
    let own = ColumnFamilyOptions::new().settings(Settings::default().l0_trigger(8));
    let family = db.create_column_family("logs", own).unwrap();
    let s = family.settings();
    assert_eq!((s.l0_trigger, s.memory_budget, s.memtable_bytes), (8, 64 << 20, 6 << 20));
    db.close().unwrap();
}
