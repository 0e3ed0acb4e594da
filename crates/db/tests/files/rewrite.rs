//! Manual compactions that rewrite what is in its place already: what changed since then takes effect on
//! all of it, and nothing else changes.

use std::sync::Arc;

use crate::common::{Content, scan, shown, tiny};
use lithify::{
    Builder, CompactOptions, CompactionFilter, Compression, Db, Decision, FilterContext,
    ReadOptions, Settings,
};
use lithify_env::{Env, RtOptions};

fn anew() -> CompactOptions {
    CompactOptions { rewrite: true, ..CompactOptions::default() }
}

/// Compactions that are asked for, and none besides.
fn by_hand(codec: Compression) -> Settings {
    let mut settings = tiny();
    settings.auto_compaction = false;
    settings.compression_lower = codec;
    settings
}

fn open(env: &Env, codec: Compression) -> Db {
    Builder::new(by_hand(codec)).env(env.clone()).open("db").unwrap()
}

fn key(n: u32) -> Vec<u8> {
    format!("key{n:05}").into_bytes()
}

/// Numbers of the tables in the directory.
fn tables(env: &Env) -> Vec<String> {
    let listed = env.fs.list("db".as_ref()).unwrap();
    listed.into_iter().map(|e| e.name).filter(|n| n.ends_with(".sst")).collect()
}

/// A database that is one run, and what it holds.
fn settled(env: &Env, codec: Compression) -> (Db, Content) {
    let db = open(env, codec);
    for n in 0..3000 {
        db.put(key(n), format!("value of {n} ").repeat(6)).unwrap();
    }
    db.compact_range(None, None).unwrap();
    let content = scan(&db).unwrap();
    assert_eq!(db.stats().levels.iter().map(|l| l.runs).sum::<usize>(), 1);
    (db, content)
}

/// Drops every second key.
struct Even;

impl CompactionFilter for Even {
    fn name(&self) -> &str {
        "even"
    }
    fn filter<'a>(&self, _: &FilterContext, key: &[u8], _: &'a [u8]) -> Decision<'a> {
        match key.last().is_some_and(|digit| digit % 2 == 1) {
            true => Decision::Remove,
            false => Decision::Keep,
        }
    }
}

#[test]
fn a_filter_takes_effect_on_all_keys() {
    let env = Env::in_memory(RtOptions::default());
    let (db, mut content) = settled(&env, Compression::None);
    db.close().unwrap();
    let builder = Builder::new(by_hand(Compression::None)).env(env);
    let db = builder.compaction_filter(Arc::new(Even)).open("db").unwrap();
    db.compact_range(None, None).unwrap();
    assert_eq!(scan(&db).unwrap(), content, "it is one run, and nothing is to be done");
    // What a snapshot needs stays.
    let snapshot = db.snapshot();
    db.compact_range_opt(None, None, &anew()).unwrap();
    let seen = shown(&mut db.iter_opt(&ReadOptions::at(&snapshot)).unwrap()).unwrap();
    assert_eq!(seen, content);
    drop(snapshot);
    db.compact_range_opt(None, None, &anew()).unwrap();
    content.retain(|key, _| key.last().unwrap() % 2 == 0);
    assert_eq!(scan(&db).unwrap(), content);
    db.close().unwrap();
}

#[test]
fn a_codec_takes_effect_on_all_tables() {
    let env = Env::in_memory(RtOptions::default());
    let (db, content) = settled(&env, Compression::None);
    let before = db.stats().disk_bytes;
    db.close().unwrap();
    let db = open(&env, Compression::Lz4);
    db.compact_range(None, None).unwrap();
    assert_eq!(db.stats().disk_bytes, before);
    db.compact_range_opt(None, None, &anew()).unwrap();
    assert!(db.stats().disk_bytes < before * 2 / 3, "{} of {before}", db.stats().disk_bytes);
    assert_eq!(scan(&db).unwrap(), content);
    db.close().unwrap();
}

/// Tables without a key of the range stay, and so does what is written meanwhile.
#[test]
fn only_the_range_is_rewritten() {
    let env = Env::in_memory(RtOptions::default());
    let (db, mut content) = settled(&env, Compression::None);
    // An open clears away what is of no use any more.
    db.close().unwrap();
    let db = open(&env, Compression::None);
    let before = tables(&env);
    db.put(key(1500), b"new").unwrap();
    content.insert(key(1500), b"new".to_vec());
    db.compact_range_opt(Some(&key(1400)), Some(&key(1600)), &anew()).unwrap();
    assert_eq!(scan(&db).unwrap(), content);
    db.close().unwrap();
    let db = open(&env, Compression::None);
    assert_eq!(scan(&db).unwrap(), content);
    let after = tables(&env);
    let stayed = before.iter().filter(|name| after.contains(name)).count();
    assert!(0 < stayed && stayed < before.len(), "{stayed} of {} stayed", before.len());
    db.close().unwrap();
}
