//! Reading a table with our reader, every way it can be read.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use lithify_base::{MAX_SEQ, Result, bytewise};
use lithify_env::{Fs, OpenOpts, PosixFs};
use lithify_format::filter::key_hash;
use lithify_tables::cache::BlockCache;
use lithify_tables::sst::verify::verify;
use lithify_tables::sst::{OpenTable, TableIter, TableReader};

use crate::history::{Entry, History, Range};

/// Opens a table by itself, without a manifest.
pub fn open(path: &Path) -> Result<Arc<TableReader>> {
    let file = PosixFs::new().open(path, OpenOpts::read()).unwrap();
    TableReader::open(OpenTable::new(file, path.display().to_string(), bytewise()))
}

/// The same, with a cache of blocks, in which points are searched in another way.
fn open_cached(path: &Path) -> Arc<TableReader> {
    let file = PosixFs::new().open(path, OpenOpts::read()).unwrap();
    let mut spec = OpenTable::new(file, path.display().to_string(), bytewise());
    spec.cache = Some(BlockCache::new(64 << 20, 1));
    TableReader::open(spec).unwrap()
}

/// The tables of a directory, by name.
pub fn tables_in(dir: &Path) -> Vec<PathBuf> {
    let listed = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let mut tables: Vec<_> = listed.filter(|p| p.extension().is_some_and(|e| e == "sst")).collect();
    tables.sort();
    tables
}

/// Everything in a table, read forward; the table is verified, and read backward and by single
/// look-ups too.
pub fn read_every_way(table: &Arc<TableReader>) -> History {
    verify(table).unwrap();
    let mut iter = TableIter::new(table.clone());
    let mut entries = Vec::new();
    let mut more = iter.seek_to_first();
    while more {
        entries.push(entry(&iter));
        more = iter.next();
    }
    iter.status().unwrap();
    let mut back = entries.iter().rev();
    let mut more = iter.seek_to_last();
    while more {
        assert_eq!(Some(&entry(&iter)), back.next());
        more = iter.prev();
    }
    iter.status().unwrap();
    assert_eq!(back.next(), None);
    look_up(table, &entries);
    look_up(&open_cached(Path::new(table.name())), &entries);
    let ranges = table.stored_tombstones().to_tombstones().unwrap();
    let ranges = ranges.iter().map(|t| Range { lo: t.lo.to_vec(), hi: t.hi.to_vec(), seq: t.seq });
    History { entries, ranges: ranges.collect() }
}

fn entry(iter: &TableIter) -> Entry {
    let (key, value) = (iter.user_key().to_vec(), iter.value().to_vec());
    Entry { key, seq: iter.tag().seq(), kind: iter.tag().kind().unwrap(), value }
}

/// Every key is found at every one of its sequence numbers; keys beside it are not.
fn look_up(table: &Arc<TableReader>, entries: &[Entry]) {
    let get = |key: &[u8], at| table.get(key, key_hash(key), at).unwrap();
    for versions in entries.chunk_by(|a, b| a.key == b.key) {
        let key = &versions[0].key;
        for (at, wanted) in versions.iter().map(|e| (e.seq, e)).chain([(MAX_SEQ, &versions[0])]) {
            let (tag, value) = get(key, at).unwrap_or_else(|| panic!("{wanted:?} is not found"));
            let found = (tag.seq(), tag.kind(), &value[..]);
            assert_eq!(found, (wanted.seq, Some(wanted.kind), &wanted.value[..]));
        }
        let oldest = versions.last().unwrap().seq;
        let older = oldest.checked_sub(1).and_then(|at| get(key, at));
        assert!(older.is_none(), "{older:?} is older than {oldest} of {}", key.escape_ascii());
        // No key of these tests ends like this.
        assert!(get(&[key, &b"\x00absent"[..]].concat(), MAX_SEQ).is_none());
    }
    assert!(get(b"", MAX_SEQ).is_none());
    assert!(get(&[0xff; 400], MAX_SEQ).is_none());
}

/// Of so many absent keys, how many the filter lets through.
pub fn false_positives(table: &TableReader, entries: &[Entry]) -> (usize, usize) {
    let passes = |e: &&Entry| {
        let absent = [&e.key, &b"\x00absent"[..]].concat();
        table.may_contain(&absent, key_hash(&absent)).unwrap()
    };
    (entries.iter().filter(passes).count(), entries.len())
}
