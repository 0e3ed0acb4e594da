use std::sync::Arc;

use lithify_base::MAX_SEQ;
use lithify_env::sync::atomic::{AtomicU64, Ordering};
use lithify_env::{Fault, FaultFs, MemFs};
use lithify_files::dir::{Dir, FileName};
use lithify_files::testing::{bytes_of, dir_on, mem_dir, overwrite};
use lithify_format::filter::key_hash;

use super::*;
use crate::cache::BlockCache;
use crate::sst::TableIter;
use crate::sst::verify::verify;
use crate::testing::{Entry, Make, entries, open};

/// A table whose index and filter are in parts.
fn in_parts(dir: &Dir) -> Vec<Entry> {
    let entries = entries(400, 31);
    let make = Make { version: 5, index_cap: 0, block_bytes: 128, ..Make::default() };
    make.write(dir, 1, &entries, &[]).unwrap();
    entries
}

fn cached(dir: &Dir) -> Arc<TableReader> {
    open(dir, 1, Some(BlockCache::new(1 << 20, 1))).unwrap()
}

#[test]
fn only_the_top_is_resident_and_walks_read_the_rest() {
    let dir = mem_dir();
    in_parts(&dir);
    let (parts, flat) = (cached(&dir), open(&dir, 1, None).unwrap());
    assert!(matches!((&parts.index, &flat.index), (Index::Parts { .. }, Index::Whole(_))));
    assert!(parts.memory() * 3 < flat.memory(), "{} of {}", parts.memory(), flat.memory());
    assert_eq!(parts.data_bytes(), flat.data_bytes());
    let (a, b) = (FullIndex::of(parts.clone()).unwrap(), FullIndex::of(flat.clone()).unwrap());
    assert!(a.block_fences().eq(b.block_fences()));
    for key in [&b""[..], b"key00300", b"key00900xx", b"zz"] {
        assert_eq!(parts.approximate_offset_of(key), flat.approximate_offset_of(key));
    }
    assert_eq!(verify(&parts).unwrap(), verify(&flat).unwrap());
}

/// Every read from the file fails in turn: never is a key of the table absent.
#[test]
fn a_part_that_cannot_be_read_is_an_error() {
    let mem: lithify_env::FsRef = Arc::new(MemFs::new());
    let entries = in_parts(&dir_on(mem.clone()));
    let fails_at = Arc::new(AtomicU64::new(u64::MAX));
    let fuse = fails_at.clone();
    let fs = FaultFs::new(mem, move |op| {
        let burnt = op.name == "read_at" && fuse.fetch_sub(1, Ordering::Relaxed) == 0;
        burnt.then(|| Fault::Fail(std::io::Error::from_raw_os_error(5)))
    });
    let dir = Dir::new(Arc::new(fs), "/db");
    let (key, ..) = &entries[entries.len() / 2];
    let mut failures = 0;
    loop {
        let table = cached(&dir);
        fails_at.store(failures, Ordering::Relaxed);
        let got = table.get(key, key_hash(key), MAX_SEQ);
        fails_at.store(u64::MAX, Ordering::Relaxed);
        match got {
            Ok(found) => {
                assert!(found.is_some());
                break;
            }
            Err(e) => assert_eq!(e.errno(), Some(5), "{e}"),
        }
        let mut iter = TableIter::new(cached(&dir));
        fails_at.store(failures, Ordering::Relaxed);
        let _ = iter.seek(key, Tag::seek(MAX_SEQ));
        fails_at.store(u64::MAX, Ordering::Relaxed);
        // What failed is read the next time.
        assert!(table.get(key, key_hash(key), MAX_SEQ).unwrap().is_some());
        assert!(iter.seek(key, Tag::seek(MAX_SEQ)) && iter.user_key() == &key[..]);
        failures += 1;
    }
    assert_eq!(failures, 3, "a part of the filter, one of the index, a data block");
}

/// Parts exchanged, their sums right: a search would be led astray.
#[test]
fn a_part_in_the_wrong_place_is_corruption() {
    let dir = mem_dir();
    let entries = in_parts(&dir);
    let table = cached(&dir);
    let Index::Parts { top, .. } = &table.index else { panic!("in parts") };
    let mut bytes = bytes_of(&dir, FileName::Table(1));
    let pairs = (0..top.len()).flat_map(|i| (0..i).map(move |j| (j, i)));
    let mut pairs = pairs.filter(|&(a, b)| top.block(a).size == top.block(b).size);
    let (place, other) = pairs.next().expect("two parts of one size");
    let (to, from) = (top.block(place), top.block(other));
    let part = bytes[from.offset as usize..][..from.size as usize].to_vec();
    let mut stored = Vec::new();
    table.check().append(&mut stored, &part, 0, to.offset);
    bytes[to.offset as usize..][..stored.len()].copy_from_slice(&stored);
    overwrite(&dir, FileName::Table(1), &bytes);
    assert!(open(&dir, 1, None).unwrap_err().is_corruption());
    let key = top.key(place).to_vec();
    let table = cached(&dir);
    let wrong = table.find(&key, Tag::seek(MAX_SEQ)).map(|place| place.is_some());
    assert!(wrong.unwrap_err().is_corruption());
    assert!(verify(&table).unwrap_err().is_corruption());
    let mut iter = TableIter::new(table);
    assert!(!iter.seek(&key, Tag::seek(MAX_SEQ)) && iter.status().unwrap_err().is_corruption());
    let (last, ..) = &entries[entries.len() - 1];
    assert!(iter.seek(last, Tag::seek(MAX_SEQ)), "{:?}", iter.status());
}
