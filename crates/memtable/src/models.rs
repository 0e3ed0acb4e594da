//! Writers and readers in every order, weak memory included (`cargo xtask loom`).
//!
//! Nodes are four records wide here, so that a few entries split leaves and roots. Loom knows of the
//! bytes of a record through [`Traced`](crate::sync::Traced): a reader that meets a record which is
//! not published to it fails the model.

use std::sync::Arc;

use lithify_base::{Kind, bytewise};
use loom::sync::atomic::{AtomicU64, Ordering};
use loom::thread;

use crate::arena::Arena;
use crate::bloom::Bloom;
use crate::{HeapPool, MemTable, MemTableOptions, MemWriter, SharedWriter};

/// A table with `keys`, numbered from 1, and its writer.
fn table(keys: &[&str]) -> (Arc<MemTable>, MemWriter) {
    let options = MemTableOptions { order: bytewise(), arena_bytes: 0, bloom: false };
    let (table, mut writer) = MemTable::new(options, Arc::new(HeapPool));
    add(&mut writer, keys, 1);
    (table, writer)
}

fn add(writer: &mut MemWriter, keys: &[&str], from: u64) {
    for (seq, key) in (from..).zip(keys) {
        writer.add(seq, Kind::Value, key.as_bytes(), key.as_bytes());
    }
}

/// A writer adds `new` to a table of `old` and publishes each; meanwhile `read` looks, and is told
/// how many of `new` are published for it.
fn beside(
    old: &'static [&'static str],
    new: &'static [&'static str],
    read: fn(&Arc<MemTable>, usize),
) {
    loom::model(move || {
        let (table, mut writer) = table(old);
        let published = Arc::new(AtomicU64::new(0));
        let reader = {
            let (table, published) = (table.clone(), published.clone());
            thread::spawn(move || read(&table, published.load(Ordering::Acquire) as usize))
        };
        for (n, key) in new.iter().enumerate() {
            add(&mut writer, &[key], (old.len() + n + 1) as u64);
            published.store(n as u64 + 1, Ordering::Release);
        }
        reader.join().unwrap();
    });
}

fn find(table: &MemTable, key: &str) -> bool {
    let found = table.get_newest(key.as_bytes(), u64::MAX >> 8);
    assert!(found.is_none_or(|(_, value)| value == key.as_bytes()), "another key's value");
    found.is_some()
}

#[test]
fn an_insertion_moves_no_entry_out_of_sight() {
    beside(&["b", "d"], &["a"], |table, published| {
        assert!(find(table, "d"), "an old entry is lost");
        assert!(published == 0 || find(table, "a"), "a published entry is not there");
    });
}

#[test]
fn entries_at_the_end_come_in_order() {
    beside(&["a"], &["b", "c"], |table, published| {
        let new = [find(table, "b"), find(table, "c")];
        assert!(published < 1 || new[0]);
        assert!(published < 2 || new[1]);
    });
}

#[test]
fn a_split_root_loses_no_entry() {
    beside(&["a", "b", "d", "e"], &["c"], |table, published| {
        assert!(find(table, "e"), "an entry that moves is lost");
        assert!(published == 0 || find(table, "c"), "a published entry is not there");
    });
}

#[test]
fn a_split_leaf_loses_no_entry() {
    beside(&["a", "b", "d", "e", "c", "f"], &["g", "h"], |table, _| {
        assert!(find(table, "f"), "an entry that moves is lost");
    });
}

#[test]
fn a_walk_meets_every_old_entry_in_order() {
    beside(&["a", "b", "d", "e"], &["c"], |table, published| {
        let met: Vec<u8> = table.walk().map(|(key, _, _)| key[0]).collect();
        let without: Vec<u8> = met.iter().copied().filter(|key| *key != b'c').collect();
        assert_eq!(without, b"abde");
        assert!(met.is_sorted() && (published == 0 || met.len() == 5));
    });
}

#[test]
fn an_iterator_turns_round_beside_a_split() {
    beside(&["a", "b", "d", "e"], &["c"], |table, _| {
        let mut iter = table.iter();
        iter.seek_to_last();
        assert_eq!(iter.user_key(), b"e");
        iter.prev();
        assert_eq!(iter.user_key(), b"d");
    });
}

#[test]
fn a_filter_knows_what_is_published() {
    loom::model(|| {
        let options = MemTableOptions { order: bytewise(), arena_bytes: 0, bloom: true };
        let (table, mut writer) = MemTable::new(options, Arc::new(HeapPool));
        let published = Arc::new(AtomicU64::new(0));
        let reader = {
            let (table, published) = (table.clone(), published.clone());
            thread::spawn(move || {
                let least = published.load(Ordering::Acquire);
                assert!(least < 1 || table.may_contain(b"a"), "the filter denies an entry");
            })
        };
        add(&mut writer, &["a"], 1);
        published.store(1, Ordering::Release);
        add(&mut writer, &["b"], 2);
        reader.join().unwrap();
    });
}

#[test]
fn a_range_tombstone_is_seen_once_published() {
    loom::model(|| {
        let (table, mut writer) = table(&["a"]);
        let published = Arc::new(AtomicU64::new(0));
        let readers: Vec<_> = (0..2)
            .map(|_| {
                let (table, published) = (table.clone(), published.clone());
                thread::spawn(move || {
                    let least = published.load(Ordering::Acquire);
                    let seen = table.covering(b"b", 9);
                    assert!(least == 0 || seen == Some(5), "{seen:?}");
                })
            })
            .collect();
        writer.add_range_delete(5, b"a", b"c");
        published.store(1, Ordering::Release);
        readers.into_iter().for_each(|r| r.join().unwrap());
    });
}

/// A model that is longer than most: nodes split in it.
fn long_model(model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.max_branches = 8_000;
    builder.check(model);
}

/// Two writers add `new` to a table of `old` at once; meanwhile `read` looks. In the end all entries
/// are there, in order, in leaves and tree.
fn together(
    old: &'static [&'static str],
    new: [&'static [&'static str]; 2],
    read: impl Fn(&MemTable) + Copy + Send + Sync + 'static,
) {
    long_model(move || {
        let (table, mut writer) = table(old);
        let fill = |mut share: SharedWriter, keys: &[&str], from: usize| {
            for (seq, key) in (from as u64..).zip(keys) {
                share.add(seq, Kind::Value, key.as_bytes(), key.as_bytes());
            }
            share
        };
        let [here, there] = new.map(|keys| writer.share(keys.len(), 4 * keys.len()).unwrap());
        let other = thread::spawn(move || fill(there, new[1], 1 + old.len() + new[0].len()));
        let here = fill(here, new[0], 1 + old.len());
        read(&table);
        writer.take_back(here);
        writer.take_back(other.join().unwrap());

        let mut all = [old, new[0], new[1]].concat();
        all.sort_unstable();
        let met: Vec<&[u8]> = table.walk().map(|(key, _, _)| key).collect();
        assert!(met.iter().copied().eq(all.iter().map(|key| key.as_bytes())), "{met:?}");
        assert!(all.iter().all(|key| find(&table, key)), "the way to an entry is lost");
        assert_eq!(table.entry_count(), all.len() as u64);
        // And the one writer goes on.
        add(&mut writer, &["zz"], 99);
        assert!(find(&table, "zz"));
    });
}

#[test]
fn two_writers_share_a_filter() {
    loom::model(|| {
        let arena = Arc::new(Arena::new(Arc::new(HeapPool), 0));
        // SAFETY: no other thread knows the arena yet, and it outlives the filter.
        let bloom = Arc::new(unsafe { Bloom::new(&arena, 1) });
        let [one, two] = [3, 7];
        let other = {
            let bloom = bloom.clone();
            thread::spawn(move || bloom.add_shared(two))
        };
        bloom.add_shared(one);
        other.join().unwrap();
        assert!(bloom.may_contain(one) && bloom.may_contain(two));
    });
}

#[test]
fn two_writers_meet_in_a_leaf() {
    together(&["b"], [&["a"], &["c"]], |table| {
        assert!(find(table, "b"), "an old entry is lost");
        assert!(find(table, "a"), "an own entry is lost");
    });
}

#[test]
fn two_writers_meet_at_the_end() {
    together(&["a", "b"], [&["c"], &["d"]], |table| {
        assert!(find(table, "c"), "an own entry is lost");
    });
}

#[test]
fn two_writers_split_one_leaf() {
    together(&["a", "c", "e", "g"], [&["b"], &["f"]], |table| {
        assert!(find(table, "g"), "an entry that moves is lost");
    });
}

#[test]
fn two_writers_ascend_through_a_split() {
    together(&["a", "b", "c"], [&["d"], &["e", "f"]], |table| {
        assert!(find(table, "d"), "an own entry is lost");
    });
}

#[test]
fn a_writer_meets_a_split_below_the_root() {
    together(&["a", "b", "d", "e", "c", "ca", "f"], [&["cc"], &["ba"]], |table| {
        assert!(find(table, "d"), "an entry that moves is lost");
    });
}
