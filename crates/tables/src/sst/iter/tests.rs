use lithify_env::sync::atomic::{AtomicU64, Ordering};
use lithify_env::{FaultFs, MemFs};
use lithify_files::dir::Dir;
use lithify_files::testing::{dir_on, mem_dir};
use lithify_merge::workload::Choices;

use super::*;
use crate::cache::BlockCache;
use crate::testing::{Entry, Make, blocks_in, entries, model_seek, open};

fn at(iter: &TableIter) -> Option<Entry> {
    iter.status().unwrap();
    iter.valid().then(|| (iter.user_key().to_vec(), iter.tag(), iter.value().to_vec()))
}

#[test]
fn a_random_walk_agrees_with_the_model() {
    let entries = entries(150, 21);
    // The last two have an index in parts; no part stays in the last one's cache.
    for (block_bytes, readahead, cache) in [
        (128, 1 << 20, None),
        (512, 0, None),
        (512, 600, None),
        (4096, 1 << 20, None),
        (128, 600, Some(1 << 20)),
        (128, 1 << 20, Some(0)),
    ] {
        let dir = mem_dir();
        let index_cap = if cache.is_some() { 0 } else { 1 << 20 };
        let make = Make { block_bytes, index_cap, ..Make::default() };
        make.write(&dir, 1, &entries, &[]).unwrap();
        let table = open(&dir, 1, cache.map(|bytes| BlockCache::new(bytes, 1))).unwrap();
        assert_eq!(table.index.parts() > 3, cache.is_some());
        let mut iter = TableIter::new(table);
        iter.set_readahead(readahead);
        let mut choices = Choices::new(u64::from(block_bytes));
        // Position in the model; `None` is off either end.
        let mut here: Option<usize> = None;
        for _ in 0..4000 {
            let (key, tag, _) = &entries[choices.below(entries.len())];
            let tag = Tag(tag.0.wrapping_add(choices.below(3) as u64 * 256).wrapping_sub(256));
            match choices.below(8) {
                0 => {
                    iter.seek(key, tag);
                    here = Some(model_seek(&entries, key, tag)).filter(|&i| i < entries.len());
                }
                1 => {
                    iter.seek_for_prev(key, tag);
                    let i = model_seek(&entries, key, tag);
                    let exact = entries.get(i).is_some_and(|e| e.0 == *key && e.1 == tag);
                    here = if exact { Some(i) } else { i.checked_sub(1) };
                }
                2 if choices.one_in(10) => {
                    iter.seek_to_first();
                    here = Some(0);
                }
                2 if choices.one_in(10) => {
                    iter.seek_to_last();
                    here = Some(entries.len() - 1);
                }
                3 if here.is_some() => {
                    let i = here.unwrap_or_default();
                    here = Some(i + 1).filter(|&i| i < entries.len());
                    let same = here.is_some_and(|now| entries[now].0 == entries[i].0);
                    assert_eq!(iter.next_of_same(), same);
                }
                3..=5 => {
                    iter.next();
                    here = here.map(|i| i + 1).filter(|&i| i < entries.len());
                }
                _ => {
                    iter.prev();
                    here = here.and_then(|i| i.checked_sub(1));
                }
            }
            assert_eq!(at(&iter), here.map(|i| entries[i].clone()));
        }
    }
}

#[test]
fn seeks_before_and_behind_everything() {
    let dir = mem_dir();
    let entries = entries(30, 22);
    Make::default().write(&dir, 1, &entries, &[]).unwrap();
    let mut iter = TableIter::new(open(&dir, 1, None).unwrap());
    assert!(!iter.valid() && iter.user_key().is_empty());
    assert!(iter.seek(b"", Tag::seek(0)));
    assert_eq!(at(&iter).unwrap(), entries[0]);
    assert!(!iter.seek_for_prev(b"", Tag::seek(0)));
    assert!(!iter.seek(b"zz", Tag::seek(0)) && !iter.next() && !iter.prev());
    assert!(iter.seek_for_prev(b"zz", Tag::seek(0)));
    assert_eq!(at(&iter).unwrap(), entries[entries.len() - 1]);
}

#[test]
fn a_table_of_tombstones_only_has_no_entries() {
    let dir = mem_dir();
    let tombstone = lithify_merge::tombstone::RangeTombstone {
        lo: b"a".as_slice().into(),
        hi: b"b".as_slice().into(),
        seq: 3,
        run: 0,
    };
    Make::default().write(&dir, 1, &[], &[tombstone]).unwrap();
    let mut iter = TableIter::new(open(&dir, 1, None).unwrap());
    assert!(!iter.seek_to_first() && !iter.seek_to_last() && !iter.seek(b"a", Tag::seek(9)));
    assert!(!iter.seek_for_prev(b"a", Tag::seek(9)));
    iter.status().unwrap();
}

#[test]
fn pinned_values_outlive_the_cursor_and_the_cache() {
    let dir = mem_dir();
    let entries = entries(300, 23);
    Make::default().write(&dir, 1, &entries, &[]).unwrap();
    let cache = BlockCache::new(2048, 1);
    let mut iter = TableIter::new(open(&dir, 1, Some(cache)).unwrap());
    let mut pinned = Vec::new();
    iter.seek_to_first();
    while iter.valid() {
        pinned.push(iter.pinned_value().unwrap());
        iter.next();
    }
    drop(iter);
    assert_eq!(pinned.len(), entries.len());
    assert!(pinned.iter().zip(&entries).all(|(p, e)| **p == e.2[..]));
}

#[test]
fn a_scan_reads_ahead_in_growing_chunks_and_spares_the_cache() {
    let mem: lithify_env::FsRef = Arc::new(MemFs::new());
    let entries = entries(6000, 24);
    Make { block_bytes: 4096, buffer: 1 << 20, ..Make::default() }
        .write(&dir_on(mem.clone()), 1, &entries, &[])
        .unwrap();
    let sizes = Arc::new(lithify_env::sync::Mutex::new(Vec::new()));
    let seen = sizes.clone();
    let fs = FaultFs::new(mem, move |op| {
        if op.name == "read_at" {
            seen.lock().push(op.len);
        }
        None
    });
    let dir = Dir::new(Arc::new(fs), "/db");
    let cache = BlockCache::new(64 << 20, 1);
    let table = open(&dir, 1, Some(cache.clone())).unwrap();
    sizes.lock().clear();
    let mut iter = TableIter::new(table.clone());
    let count = AtomicU64::new(0);
    iter.seek_to_first();
    while iter.valid() {
        count.fetch_add(1, Ordering::Relaxed);
        iter.next();
    }
    assert_eq!(count.into_inner(), entries.len() as u64);
    let sizes = sizes.lock().clone();
    let blocks = blocks_in(&table);
    assert!(blocks > 60 && sizes.len() < blocks / 4, "{} reads, {blocks} blocks", sizes.len());
    assert!(
        sizes.windows(2).take(4).all(|w| w[0] < 3 * w[1]) && sizes.iter().any(|&s| s >= 64 << 10)
    );
    assert_eq!(cache.counts().blocks, u64::from(SEQUENTIAL_AFTER));
}

/// A walk over tables that follow each other reads ahead in one memory, and grows once.
#[test]
fn a_walk_goes_on_in_the_next_table() {
    let dir = mem_dir();
    let all: Vec<Entry> =
        (0..80_000).map(|n: u32| (n.to_be_bytes().to_vec(), Tag(256 + 1), vec![7; 100])).collect();
    let cache = BlockCache::new(256 << 20, 1);
    let made = |n: usize| {
        let part = &all[n * 40_000..][..40_000];
        Make::default().write(&dir, n as u64 + 1, part, &[]).unwrap();
        open(&dir, n as u64 + 1, Some(cache.clone())).unwrap()
    };
    let (first, second) = (made(0), made(1));
    let mut iter = TableIter::new(first.clone());
    iter.seek_to_first();
    while iter.next() {}
    let chunks = |iter: &TableIter| {
        let both = [&iter.ahead.bytes, &iter.ahead.spare];
        both.map(|chunk| chunk.as_ref().map(|chunk| (chunk.as_ptr(), chunk.len())))
    };
    let (mut before, counted) = (chunks(&iter), iter.ahead.counted);
    assert!(before.iter().all(|chunk| chunk.is_some_and(|(_, len)| len > 256 << 10)), "{before:?}");
    let mut next = TableIter::new(second.clone());
    next.go_on_from(iter);
    next.seek_to_first();
    for (key, tag, value) in &all[40_000..] {
        assert_eq!((next.user_key(), next.tag(), next.value()), (&key[..], *tag, &value[..]));
        next.next();
    }
    assert!(!next.valid() && next.status().is_ok());
    let mut after = chunks(&next);
    before.sort();
    after.sort();
    assert_eq!((before, counted), (after, next.ahead.counted), "the same memory");
    // The first chunk of the second table was a large one: no block of its was read alone.
    assert_eq!(cache.counts().blocks, u64::from(SEQUENTIAL_AFTER));
    drop(next);
    assert_eq!(cache.ahead_bytes(), 0);
    // From one that did not read ahead nothing is taken over, and what is held as a view is not written over.
    let mut short = TableIter::new(first.clone());
    short.seek_to_first();
    let mut fresh = TableIter::new(second.clone());
    fresh.go_on_from(short);
    assert_eq!(chunks(&fresh), [None, None]);
    let mut held = TableIter::new(first);
    held.seek_to_first();
    while held.valid() && held.user_key() != all[39_999].0 {
        held.next();
    }
    let value = held.pinned_value().unwrap();
    let mut next = TableIter::new(second);
    next.go_on_from(held);
    next.seek_to_first();
    while next.next() {}
    assert!(value.iter().all(|&byte| byte == 7) && value.len() == 100);
}

#[test]
fn cursors_read_ahead_little_together() {
    let dir = mem_dir();
    let entries: Vec<Entry> =
        (0..40_000).map(|n: u32| (n.to_be_bytes().to_vec(), Tag(256 + 1), vec![7; 100])).collect();
    Make::default().write(&dir, 1, &entries, &[]).unwrap();
    let capacity = 8 << 20;
    let cache = BlockCache::new(capacity, 1);
    let table = open(&dir, 1, Some(cache.clone())).unwrap();
    let mut iters: Vec<TableIter> = (0..64).map(|_| TableIter::new(table.clone())).collect();
    let mut most = Vec::new();
    for iter in &mut iters {
        iter.set_fill_cache(false);
        iter.seek_to_first();
        assert!((0..30_000).all(|_| iter.next()));
        most.push(iter.ahead.bytes.as_ref().map_or(0, |chunk| chunk.len()));
    }
    assert!(most[0] > 128 << 10, "the first may have a quarter of the share");
    assert!(most.is_sorted_by(|a, b| a >= b), "{most:?}");
    assert_eq!(most[63], AHEAD_MIN, "the last get little");
    let floor = 64 * 2 * AHEAD_MIN as u64;
    assert!(cache.ahead_bytes() <= capacity / 8 + floor, "{}", cache.ahead_bytes());
    drop(iters);
    assert_eq!(cache.ahead_bytes(), 0);
}

/// The block behind the open one is looked for ahead: once, and whatever the walk breaks off at.
#[test]
fn a_walk_through_the_cache_asks_for_each_block_once() {
    let dir = mem_dir();
    let entries = entries(6000, 25);
    Make::default().write(&dir, 1, &entries, &[]).unwrap();
    let cache = BlockCache::new(64 << 20, 1);
    let table = open(&dir, 1, Some(cache.clone())).unwrap();
    let mut iter = TableIter::new(table.clone());
    for (key, tag, _) in &entries {
        assert!(TableIter::new(table.clone()).seek(key, *tag));
    }
    let before = cache.counts();
    let mut seen: Vec<Entry> = Vec::new();
    iter.seek_to_first();
    while iter.valid() {
        let most = seen.len() + 7;
        let _ = iter.walk(&mut |entry: Passed<'_>| {
            if seen.len() == most {
                return ControlFlow::Break(());
            }
            seen.push((entry.user.to_vec(), entry.tag, entry.value.to_vec()));
            ControlFlow::Continue(())
        });
    }
    assert!(iter.status().is_ok() && seen == entries);
    let after = cache.counts();
    assert_eq!(after.hits - before.hits, blocks_in(&table) as u64);
    assert_eq!(after.misses, before.misses);
}

/// What is not cached is asked for once, however often a walk breaks off before it, and is missed once.
#[test]
fn a_walk_misses_what_is_not_cached_as_often_as_steps_do() {
    let dir = mem_dir();
    let entries = entries(6000, 26);
    Make::default().write(&dir, 1, &entries, &[]).unwrap();
    let misses = |of_steps: bool| {
        let cache = BlockCache::new(64 << 20, 1);
        let table = open(&dir, 1, Some(cache.clone())).unwrap();
        let firsts = entries.iter().step_by(entries.len() / 3);
        firsts.for_each(|(key, tag, _)| assert!(TableIter::new(table.clone()).seek(key, *tag)));
        let mut iter = TableIter::new(table.clone());
        iter.set_readahead(0);
        iter.set_fill_cache(false);
        let (before, mut seen) = (cache.counts(), 0);
        iter.seek_to_first();
        while iter.valid() {
            if of_steps {
                iter.next();
                seen += 1;
                continue;
            }
            let most = seen + 1;
            let _ = iter.walk(&mut |_| {
                if seen == most {
                    return ControlFlow::Break(());
                }
                seen += 1;
                ControlFlow::Continue(())
            });
        }
        assert!(iter.status().is_ok() && seen == entries.len());
        let after = cache.counts();
        (after.hits - before.hits, after.misses - before.misses)
    };
    let of_steps = misses(true);
    assert!(of_steps.0 >= 3 && of_steps.1 > 20, "{of_steps:?}");
    assert_eq!(misses(false), of_steps);
}
