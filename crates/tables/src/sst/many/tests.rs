use lithify_base::MAX_SEQ;
use lithify_env::sync::Arc;
use lithify_env::sync::atomic::{AtomicU64, Ordering};
use lithify_env::{FaultFs, MemFs};
use lithify_files::testing::{dir_on, mem_dir};
use lithify_format::compress::Codec;
use lithify_format::filter::key_hash;
use lithify_merge::workload::Choices;

use super::*;
use crate::cache::BlockCache;
use crate::testing::{Make, blocks_in, entries, open};

/// What [`TableReader::get`] finds, key by key.
fn one_by_one(table: &TableReader, keys: &[Vec<u8>], at: Seq) -> Vec<Option<(Tag, Vec<u8>)>> {
    let get = |key: &Vec<u8>| table.get(key, key_hash(key), at).unwrap();
    keys.iter().map(|key| get(key).map(|(tag, value)| (tag, value.to_vec()))).collect()
}

fn together(table: &TableReader, keys: &[Vec<u8>], at: Seq) -> Vec<Option<(Tag, Vec<u8>)>> {
    let wanted: Vec<Wanted<'_>> =
        keys.iter().map(|key| Wanted { key, hash: key_hash(key) }).collect();
    let mut all = vec![None; keys.len()];
    let tell = |i: usize, tag, value: PinnedSlice| {
        assert!(all[i].replace((tag, value.to_vec())).is_none(), "told twice");
    };
    table.get_many(&wanted, at, tell).unwrap();
    all
}

#[test]
fn many_keys_are_found_as_each_alone() {
    let entries = entries(250, 11);
    let last = entries.iter().map(|e| e.1.seq()).max().unwrap();
    let mut choices = Choices::new(3);
    for (version, codec, index_cap) in
        [(5, Codec::None, 0), (6, Codec::Lz4, 1 << 20), (6, Codec::None, 1 << 20)]
    {
        let dir = mem_dir();
        // Small blocks: versions of one key span several.
        let make = Make { version, codec, index_cap, block_bytes: 128, ..Make::default() };
        make.write(&dir, 2, &entries, &[]).unwrap();
        for round in 0..40 {
            let cache = (round % 3 > 0).then(|| BlockCache::new(1 << 20, 2));
            let table = open(&dir, 2, cache).unwrap();
            for _ in 0..4 {
                let share = 1 + choices.below(99);
                let mut keys = Vec::new();
                for (key, ..) in &entries {
                    if choices.below(100) < share {
                        keys.push(key.clone());
                    }
                    if choices.below(100) < share {
                        keys.push([key, &b"\0"[..]].concat());
                    }
                }
                keys.sort();
                let at = [0, last / 2, last, MAX_SEQ][choices.below(4)];
                assert_eq!(together(&table, &keys, at), one_by_one(&table, &keys, at));
            }
        }
    }
}

/// Neighbours are read with one call, and what is cached is not read.
#[test]
fn neighbours_share_a_read() {
    let reads = Arc::new(AtomicU64::new(0));
    let counted = {
        let reads = reads.clone();
        FaultFs::new(Arc::new(MemFs::new()), move |op| {
            reads.fetch_add(u64::from(op.name == "read_at"), Ordering::Relaxed);
            None
        })
    };
    let dir = dir_on(Arc::new(counted));
    let entries = entries(2000, 5);
    Make { block_bytes: 512, ..Make::default() }.write(&dir, 2, &entries, &[]).unwrap();
    let mut keys: Vec<Vec<u8>> = entries.iter().map(|e| e.0.clone()).collect();
    keys.dedup();
    let table = open(&dir, 2, Some(BlockCache::new(8 << 20, 2))).unwrap();
    let blocks = blocks_in(&table) as u64;
    assert!(blocks > 100, "{blocks} blocks");
    let spent = |work: &dyn Fn()| {
        let before = reads.load(Ordering::Relaxed);
        work();
        reads.load(Ordering::Relaxed) - before
    };
    let first = spent(&|| drop(together(&table, &keys, MAX_SEQ)));
    let bytes = table.data_bytes();
    assert!(first <= bytes / READ_MAX + 1, "{first} reads for {blocks} blocks");
    assert_eq!(spent(&|| drop(together(&table, &keys, MAX_SEQ))), 0, "all is cached");
    let cold = open(&dir, 2, Some(BlockCache::new(8 << 20, 2))).unwrap();
    assert_eq!(spent(&|| drop(one_by_one(&cold, &keys, MAX_SEQ))), blocks);
}
