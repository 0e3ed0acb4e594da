//! What is done to a tree as a whole, in column families: tables taken in and dropped, sizes, compactions
//! and properties are of the family whose handle is asked, and of no other.

use std::sync::Arc;

use crate::common::{Content, scan, tiny};
use lithify::{
    Builder, ColumnFamily, ColumnFamilyOptions, CompactOptions, Db, ErrorKind, IngestOptions,
    ReverseBytewise, SizeOptions,
};
use lithify_env::{Env, RtOptions};

const NAMES: [&str; 3] = ["default", "plain", "back"];

fn open(env: &Env) -> (Db, Vec<ColumnFamily>) {
    let back = || ColumnFamilyOptions::new().comparator(Arc::new(ReverseBytewise));
    let mut settings = tiny();
    settings.auto_compaction = false;
    let builder = Builder::new(settings).env(env.clone()).column_family("back", back());
    let db = builder.open("db").unwrap();
    if db.column_families().len() == 1 {
        db.create_column_family("plain", ColumnFamilyOptions::new()).unwrap();
        db.create_column_family("back", back()).unwrap();
    }
    let all = NAMES.iter().map(|name| db.column_family(name).unwrap()).collect();
    (db, all)
}

fn key(n: u32) -> Vec<u8> {
    format!("key{n:05}").into_bytes()
}

/// A table of keys in the order of the family, made by its handle.
fn table(family: &ColumnFamily, path: &str, keys: impl DoubleEndedIterator<Item = u32>, value: u8) {
    let mut table = family.table_builder(path).unwrap();
    let mut put = |n| table.put(key(n), [value; 100]).unwrap();
    match family.name() {
        "back" => keys.rev().for_each(&mut put),
        _ => keys.for_each(&mut put),
    }
    table.finish().unwrap();
}

fn same(all: &[ColumnFamily], model: &[Content]) {
    for (family, content) in all.iter().zip(model) {
        assert_eq!(scan(family).unwrap(), *content, "{}", family.name());
    }
}

#[test]
fn tables_come_into_one_family_and_go() {
    let env = Env::in_memory(RtOptions::default());
    let (db, all) = open(&env);
    let mut model = vec![Content::new(); NAMES.len()];
    for (at, family) in all.iter().enumerate() {
        for n in 0..200 {
            family.put(key(n * 7), [at as u8; 50]).unwrap();
            model[at].insert(key(n * 7), vec![at as u8; 50]);
        }
        let path = format!("{}.sst", family.name());
        table(family, &path, (500..1000).step_by(at + 1), 100 + at as u8);
        let before = db.snapshot();
        family.ingest(&[&path], &IngestOptions::default()).unwrap();
        let at_before = lithify::ReadOptions::at(&before);
        let old = family.get_opt(key(500), &at_before).unwrap();
        assert_eq!(old.as_deref(), model[at].get(&key(500)).map(Vec::as_slice));
        model[at].extend((500..1000).step_by(at + 1).map(|n| (key(n), vec![100 + at as u8; 100])));
        same(&all, &model);
    }
    // In the order of another family it is no table of this one.
    let error = all[1].ingest(&["back.sst"], &IngestOptions::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    let error = all[2].ingest(&["plain.sst"], &IngestOptions::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");

    // Sizes and properties are the family's.
    let memory = SizeOptions { tables: true, memtables: true };
    let sizes: Vec<u64> = all[..2]
        .iter()
        .map(|family| family.approximate_sizes(&[(key(0), key(9999))], &memory).unwrap()[0])
        .collect();
    assert!(sizes[0] > sizes[1] && sizes[1] > 0, "{sizes:?}");
    let files =
        |family: &ColumnFamily| family.stats().levels.iter().map(|l| l.files).sum::<usize>();
    let entries = |family: &ColumnFamily| family.int_property("rocksdb.estimate-num-keys").unwrap();
    assert!(entries(&all[0]) > entries(&all[1]) && entries(&all[1]) > entries(&all[2]));

    drop(all);
    db.close().unwrap();
    let (db, all) = open(&env);
    same(&all, &model);
    // One family is compacted and rewritten, then another loses its tables.
    let before = [files(&all[0]), files(&all[2])];
    let anew = CompactOptions { rewrite: true, ..CompactOptions::default() };
    all[1].compact_range_opt(None, None, &anew).unwrap();
    assert_eq!([files(&all[0]), files(&all[2])], before);
    same(&all, &model);
    all[2].compact_range(None, None).unwrap();
    all[2].delete_files_in_range(None, None).unwrap();
    model[2].clear();
    same(&all, &model);
    assert_eq!(files(&all[2]), 0);
    drop(all);
    db.close().unwrap();
    let (db, all) = open(&env);
    same(&all, &model);
    drop(all);
    db.close().unwrap();
    let found = lithify::verify::verify(env.fs.clone(), "db", None, &mut |_| {}).unwrap();
    assert!(found.is_clean(), "{:?}", found.findings);
}
