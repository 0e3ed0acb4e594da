//! Directories that broke something, made step by step.

use lithify::import::ImportOptions;
use lithify::{Builder, Policy, Settings};
use rocksdb::{BottommostLevelCompaction, CompactOptions, DB, WaitForCompactOptions, WriteBatch};

use crate::c_api;
use crate::our_tables::{same_content, small};

fn key(n: u32) -> String {
    format!("key{n:04}")
}

/// Compacts these keys into the last of three levels.
fn to_the_bottom(db: &DB, from: Option<u32>, to: Option<u32>) {
    let mut options = CompactOptions::default();
    options.set_bottommost_level_compaction(BottommostLevelCompaction::Force);
    if from.is_none() {
        options.set_change_level(true);
        options.set_target_level(2);
    }
    db.compact_range_opt(from.map(key), to.map(key), &options);
}

/// Compacts level 0 into level 1, and nothing further.
fn up_to_level_one(db: &DB) {
    db.set_options(&[("disable_auto_compactions", "false")]).unwrap();
    db.wait_for_compact(&WaitForCompactOptions::default()).unwrap();
    db.set_options(&[("disable_auto_compactions", "true")]).unwrap();
}

/// The keys that remain are in tables of level 1, each of which has the whole deletion; the first tenth of
/// the keys is in level 2, written after it, without numbers.
fn with_a_wide_deletion(db: &DB) {
    (0..1000).for_each(|n| db.put(key(n), "first, and hidden soon").unwrap());
    to_the_bottom(db, None, None);
    let mut batch = WriteBatch::default();
    batch.delete_range(key(0), key(1000));
    batch.put(key(0), "second");
    batch.put(key(999), "second");
    db.write(batch).unwrap();
    db.flush().unwrap();
    (0..1000).step_by(3).for_each(|n| db.put(key(n), "third").unwrap());
    db.flush().unwrap();
    up_to_level_one(db);
    let tables = |level| db.live_files().unwrap().iter().filter(|f| f.level == level).count();
    assert!(tables(0) == 0 && tables(1) > 3 && tables(2) > 3, "{:?}", [0, 1, 2].map(tables));
    to_the_bottom(db, Some(0), Some(99));
    (0..100).for_each(|n| db.put(key(n), "fourth").unwrap());
    db.flush().unwrap();
    to_the_bottom(db, Some(0), Some(99));
    assert!(tables(1) > 2, "tables with the deletion are left");
}

/// RocksDB stores a deletion of a range whole in every table that a compaction makes; what lies outside
/// of the table's bounds does not count. Keys there may be newer and have no number any more, because
/// they are in the last level: a compaction of ours must not take the deletion for theirs.
#[test]
fn keys_beside_a_table_with_a_wide_deletion_stay() {
    let options = c_api::options(
        "create_if_missing=true;disable_auto_compactions=true;target_file_size_base=1024;\
         level0_file_num_compaction_trigger=2;level_compaction_dynamic_level_bytes=false;\
         num_levels=3;compression=kNoCompression;block_based_table_factory={block_size=128}",
    );
    let place = tempfile::tempdir().unwrap();
    let (from, to) = (place.path().join("theirs"), place.path().join("ours"));
    let theirs = DB::open(&options, &from).unwrap();
    with_a_wide_deletion(&theirs);
    drop(theirs);
    let settings: Settings = small();
    let verify = ImportOptions { quick: false, verify: true };
    Builder::new(settings.clone()).import(&from, &to, verify, &mut |_| {}).unwrap();
    let theirs = DB::open(&options, &from).unwrap();
    let ours = Builder::new(settings).open(&to).unwrap();
    assert_eq!(same_content(&ours, &theirs), 400);
    let options = lithify::CompactOptions { rewrite: true, ..Default::default() };
    ours.compact_range_opt(None, None, &options).unwrap();
    assert_eq!(same_content(&ours, &theirs), 400);
    ours.close().unwrap();
}

/// Where snapshots were held, RocksDB spreads the versions of one key over several tables of a level, each
/// with every deletion of a range over it. Such a deletion, older than the key's value in one table, must not
/// end the operands in another: they belong to that value, whichever tables a compaction takes.
#[test]
fn a_key_in_several_tables_keeps_what_lies_below_an_older_deletion() {
    let options = c_api::options(
        "create_if_missing=true;disable_auto_compactions=true;target_file_size_base=1024;\
         level0_file_num_compaction_trigger=2;level_compaction_dynamic_level_bytes=false;\
         num_levels=3;compression=kNoCompression;merge_operator=stringappend;\
         block_based_table_factory={block_size=128}",
    );
    let place = tempfile::tempdir().unwrap();
    let from = place.path().join("theirs");
    let theirs = DB::open(&options, &from).unwrap();
    (0..9).for_each(|n| theirs.put(key(n), "first").unwrap());
    to_the_bottom(&theirs, None, None);
    let mut batch = WriteBatch::default();
    batch.delete_range(key(0), key(9));
    theirs.write(batch).unwrap();
    theirs.put(key(4), "value").unwrap();
    let mut snapshots = Vec::new();
    for n in 0..400 {
        snapshots.push(theirs.snapshot());
        theirs.merge(key(4), n.to_string()).unwrap();
        if n == 150 {
            theirs.flush().unwrap();
        }
    }
    theirs.flush().unwrap();
    up_to_level_one(&theirs);
    drop(snapshots);
    let tables = theirs.live_files().unwrap().iter().filter(|f| f.level == 1).count();
    assert!(tables > 2, "{tables}");
    let value = theirs.iterator(rocksdb::IteratorMode::Start).next().unwrap().unwrap().1;
    drop(theirs);

    for policy in Policy::ALL {
        let to = place.path().join(policy.name());
        let mut settings: Settings = small();
        settings.policy = Some(policy);
        (settings.l0_trigger, settings.universal_max_merge_width) = (2, 2);
        let operator = lithify::merge::built_in("stringappend").unwrap();
        let builder = Builder::new(settings).merge_operator(operator);
        let quick = ImportOptions::default();
        builder.clone().import(&from, &to, quick, &mut |_| {}).unwrap();
        let ours = builder.open(&to).unwrap();
        ours.wait_idle(None).unwrap();
        let found = ours.get(key(4)).unwrap().expect("the key is there");
        assert!(*found == *value, "{}: {} bytes of {}", policy.name(), found.len(), value.len());
        ours.close().unwrap();
    }
}
