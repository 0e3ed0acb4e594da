use std::collections::BTreeSet;

use lithify_base::{ErrorKind, MAX_SEQ};
use lithify_env::sync::atomic::{AtomicU64, Ordering};
use lithify_env::{Fault, FaultFs, MemFs};
use lithify_files::dir::{Dir, FileName};
use lithify_files::testing::{bytes_of, dir_on, mem_dir, overwrite};
use lithify_format::compress::Codec;
use lithify_format::filter::key_hash;
use lithify_format::table::props::WHOLE_KEY_FILTERING;

use super::*;
use crate::cache::BlockCache;
use crate::sst::verify::verify;
use crate::sst::{FullIndex, TableIter};
use crate::testing::{Entry, Make, blocks_in, edit_props, entries, model_get, open};

fn all(table: &TableReader, key: &[u8], at: Seq) -> Result<Vec<(Tag, Vec<u8>)>> {
    let mut found = Vec::new();
    table.get_all(key, key_hash(key), at, Fill::Cache, |tag, value| {
        assert_eq!(&*value.pin(), value.bytes());
        found.push((tag, value.bytes().to_vec()));
        ControlFlow::Continue(())
    })?;
    Ok(found)
}

/// Keys of the entries and keys around them.
fn probes(entries: &[Entry]) -> BTreeSet<Vec<u8>> {
    let mut keys: BTreeSet<Vec<u8>> = BTreeSet::from([vec![], b"zzz".to_vec()]);
    for (key, ..) in entries {
        keys.insert(key.clone());
        keys.insert([key, &b"\0"[..]].concat());
        keys.insert(key[..key.len() - 1].to_vec());
    }
    keys
}

#[test]
fn point_reads_agree_with_the_model_in_every_shape() {
    let entries = entries(250, 11);
    let last = entries.iter().map(|e| e.1.seq()).max().unwrap();
    for version in [5, 6] {
        for codec in [Codec::None, Codec::Lz4] {
            for index_cap in [0, 1 << 20] {
                let dir = mem_dir();
                // Small blocks: versions of one key span several.
                let make = Make { version, codec, index_cap, block_bytes: 128, ..Make::default() };
                make.write(&dir, 2, &entries, &[]).unwrap();
                let cache = BlockCache::new(1 << 20, 2);
                let table = open(&dir, 2, Some(cache.clone())).unwrap();
                for key in probes(&entries) {
                    for at in [0, 1, last / 3, last / 2, last, MAX_SEQ] {
                        let found = all(&table, &key, at).unwrap();
                        let model = model_get(&entries, &key, at);
                        assert_eq!(found, model, "{}@{at}", key.escape_ascii());
                        let newest = table.get(&key, key_hash(&key), at).unwrap();
                        let newest = newest.map(|(tag, value)| (tag, value.to_vec()));
                        assert_eq!(newest, model.into_iter().next());
                    }
                }
                let counts = cache.counts();
                // Parts of index and filter are cached, too.
                let kept = if index_cap == 0 { 3 } else { 1 } * blocks_in(&table) as u64;
                assert!(counts.hits > counts.misses && counts.misses <= kept, "{counts:?}");
            }
        }
    }
}

#[test]
fn versions_of_a_key_are_followed_into_the_next_block() {
    let dir = mem_dir();
    let entries: Vec<Entry> = (1..=40)
        .rev()
        .map(|seq| (b"k".to_vec(), Tag::new(seq, lithify_base::Kind::Value), vec![seq as u8; 50]))
        .collect();
    Make { block_bytes: 128, ..Make::default() }.write(&dir, 1, &entries, &[]).unwrap();
    let table = open(&dir, 1, None).unwrap();
    assert!(blocks_in(&table) > 5);
    assert_eq!(all(&table, b"k", MAX_SEQ).unwrap().len(), 40);
    assert_eq!(all(&table, b"k", 17).unwrap()[0].0.seq(), 17);
    assert!(all(&table, b"k", 0).unwrap().is_empty());
}

#[test]
fn long_keys_among_short_ones_are_found() {
    let dir = mem_dir();
    let tag = Tag::new(5, lithify_base::Kind::Value);
    let mut keys: Vec<Vec<u8>> = (0..40u8)
        .map(|i| vec![b'a' + i % 20; if i % 3 == 0 { 300 } else { usize::from(i) + 1 }])
        .collect();
    keys.sort();
    keys.dedup();
    let entries: Vec<Entry> = keys.into_iter().map(|k| (k.clone(), tag, k)).collect();
    Make { block_bytes: 4096, ..Make::default() }.write(&dir, 1, &entries, &[]).unwrap();
    let table = open(&dir, 1, None).unwrap();
    for key in probes(&entries) {
        assert_eq!(all(&table, &key, MAX_SEQ).unwrap(), model_get(&entries, &key, MAX_SEQ));
    }
}

#[test]
fn the_filter_spares_reads_of_absent_keys() {
    let dir = mem_dir();
    let entries = entries(500, 12);
    Make::default().write(&dir, 1, &entries, &[]).unwrap();
    let cache = BlockCache::new(1 << 20, 1);
    let table = open(&dir, 1, Some(cache.clone())).unwrap();
    for i in 0..1000 {
        let key = format!("key{:05}q", i).into_bytes();
        assert!(all(&table, &key, MAX_SEQ).unwrap().is_empty());
    }
    let counts = cache.counts();
    assert!(counts.hits + counts.misses < 60, "{counts:?}: about 1 % pass the filter");
}

#[test]
fn a_table_of_another_number_or_maker_is_noticed() {
    let dir = mem_dir();
    Make::default().write(&dir, 1, &entries(20, 13), &[]).unwrap();
    let (name, file) = dir.open_table(1, lithify_env::OpenOpts::read()).unwrap();
    let spec = |base_context, bytes| {
        let mut s =
            super::super::OpenTable::new(file.clone(), name.to_string(), lithify_base::bytewise());
        (s.base_context, s.bytes) = (base_context, bytes);
        TableReader::open(s)
    };
    let own = spec(0, None).unwrap();
    assert!(spec(own.check().base, Some(own.file_bytes())).is_ok());
    assert!(spec(own.check().base ^ 1, None).unwrap_err().is_corruption());
    assert!(spec(0, Some(own.file_bytes() - 1)).unwrap_err().is_corruption());
    let reverse =
        super::super::OpenTable::new(file, "t", std::sync::Arc::new(lithify_base::ReverseBytewise));
    assert_eq!(TableReader::open(reverse).unwrap_err().kind(), ErrorKind::Unsupported);
}

/// Whether the filter passes keys that are not in the table.
fn passes_absent_keys(table: &TableReader) -> bool {
    (0..200).map(|i| format!("absent{i}")).all(|k| {
        let k = k.as_bytes();
        table.may_contain(k, key_hash(k)).unwrap()
    })
}

/// RocksDB with a prefix extractor and without `whole_key_filtering`.
#[test]
fn a_filter_of_prefixes_is_not_asked_for_keys() {
    let dir = mem_dir();
    Make { version: 5, ..Make::default() }.write(&dir, 1, &entries(200, 17), &[]).unwrap();
    assert!(!passes_absent_keys(&open(&dir, 1, None).unwrap()));
    edit_props(&dir, 1, |p| {
        p.other.insert(WHOLE_KEY_FILTERING.into(), b"0".to_vec()).unwrap();
    });
    assert!(passes_absent_keys(&open(&dir, 1, None).unwrap()));
}

/// RocksDB does not count the data blocks that it held back to train a compression dictionary.
#[test]
fn uncounted_data_blocks_are_no_damage() {
    let dir = mem_dir();
    let entries = entries(100, 18);
    Make { version: 5, ..Make::default() }.write(&dir, 1, &entries, &[]).unwrap();
    let wrong = |n| edit_props(&dir, 1, |p| p.num_data_blocks = n);
    for fewer in [0, 1] {
        wrong(fewer);
        assert_eq!(verify(&open(&dir, 1, None).unwrap()).unwrap().entries, entries.len() as u64);
    }
    wrong(127);
    assert!(open(&dir, 1, None).unwrap_err().is_corruption());
}

/// Footers before version 6 have no sum: one bit of them could say that no block has one, and nothing was checked.
#[test]
fn a_footer_does_not_deny_sums_that_are_there() {
    let dir = mem_dir();
    Make { version: 5, ..Make::default() }.write(&dir, 1, &entries(100, 18), &[]).unwrap();
    let mut bytes = bytes_of(&dir, FileName::Table(1));
    let kind = bytes.len() - lithify_format::table::footer::FOOTER_LEN;
    assert_eq!(bytes[kind], 4, "the kind of its sums");
    bytes[kind] = 0;
    overwrite(&dir, FileName::Table(1), &bytes);
    let refused = open(&dir, 1, None).unwrap_err();
    assert!(refused.is_corruption() && refused.to_string().contains("no sums"), "{refused}");
}

#[test]
fn offsets_and_fences_describe_the_blocks() {
    let dir = mem_dir();
    let entries = entries(200, 14);
    Make::default().write(&dir, 1, &entries, &[]).unwrap();
    let table = open(&dir, 1, None).unwrap();
    let full = FullIndex::of(table.clone()).unwrap();
    let fences: Vec<_> = full.block_fences().collect();
    let counted: u64 = fences.iter().map(|f| f.counts.unwrap().entries).sum();
    assert_eq!(counted, entries.len() as u64);
    assert!(fences.windows(2).all(|w| w[0].separator <= w[1].separator));
    assert_eq!(table.approximate_offset_of(b""), 0);
    assert_eq!(table.approximate_offset_of(b"zz"), table.data_bytes());
    let offsets: Vec<u64> = entries.iter().map(|e| table.approximate_offset_of(&e.0)).collect();
    assert!(offsets.is_sorted() && offsets[entries.len() / 2] > 0);
    assert!(table.memory() > 200);
}

/// A table of two blocks and what reading all of it gives.
fn small(dir: &Dir) -> Vec<Entry> {
    let entries = entries(12, 15);
    let tombstone = lithify_merge::tombstone::RangeTombstone {
        lo: b"m".as_slice().into(),
        hi: b"n".as_slice().into(),
        seq: 500,
        run: 0,
    };
    Make::default().write(dir, 1, &entries, &[tombstone]).unwrap();
    entries
}

/// Reads everything there is in every way there is: entries forward and backward, every key.
fn read_all(dir: &Dir, entries: &[Entry]) -> Result<()> {
    let table = open(dir, 1, None)?;
    assert_eq!(table.stored_tombstones().len(), 1, "a tombstone went missing");
    for (key, tag, value) in entries {
        let found = table.get(key, key_hash(key), tag.seq())?;
        assert_eq!(found.map(|f| (f.0, f.1.to_vec())), Some((*tag, value.clone())));
    }
    let mut iter = TableIter::new(table.clone());
    let mut forward = Vec::new();
    iter.seek_to_first();
    while iter.valid() {
        forward.push((iter.user_key().to_vec(), iter.tag(), iter.value().to_vec()));
        iter.next();
    }
    iter.status()?;
    assert_eq!(forward, entries);
    let mut backward = Vec::new();
    iter.seek_to_last();
    while iter.valid() {
        backward.push((iter.user_key().to_vec(), iter.tag(), iter.value().to_vec()));
        iter.prev();
    }
    iter.status()?;
    backward.reverse();
    assert_eq!(backward, entries);
    Ok(())
}

/// Flips every bit of a table: reads give the truth or a typed error that names the file, and
/// `verify` overlooks none.
#[test]
fn no_flipped_bit_gives_wrong_data() {
    let dir = mem_dir();
    let entries = small(&dir);
    let good = bytes_of(&dir, FileName::Table(1));
    read_all(&dir, &entries).unwrap();
    for bit in 0..good.len() * 8 {
        let mut bad = good.clone();
        bad[bit / 8] ^= 1 << (bit % 8);
        overwrite(&dir, FileName::Table(1), &bad);
        let verified = open(&dir, 1, None).and_then(|t| verify(&t));
        match read_all(&dir, &entries) {
            Ok(()) => {}
            Err(e) => assert!(
                matches!(e.kind(), ErrorKind::Corruption | ErrorKind::Unsupported)
                    && e.file() == Some("000001.sst"),
                "bit {bit}: {e}"
            ),
        }
        assert!(verified.is_err(), "bit {bit} of {}", good.len() * 8);
    }
}

#[test]
fn no_truncation_opens() {
    let dir = mem_dir();
    let entries = small(&dir);
    let good = bytes_of(&dir, FileName::Table(1));
    for len in 0..good.len() {
        overwrite(&dir, FileName::Table(1), &good[..len]);
        let e = read_all(&dir, &entries).unwrap_err();
        assert!(matches!(e.kind(), ErrorKind::Corruption | ErrorKind::Unsupported), "{len}: {e}");
    }
}

/// Every read fails once: the answer is the model's or an error, never a shorter one.
#[test]
fn every_failed_read_is_an_error() {
    let inner = Arc::new(MemFs::new());
    let entries = entries(60, 16);
    Make { block_bytes: 256, ..Make::default() }
        .write(&dir_on(inner.clone()), 1, &entries, &[])
        .unwrap();
    let run = |fail: u64| -> (Result<usize>, u64) {
        let reads = Arc::new(AtomicU64::new(0));
        let seen = reads.clone();
        let fs = FaultFs::new(inner.clone(), move |op| {
            let hit = op.name == "read_at" && seen.fetch_add(1, Ordering::Relaxed) == fail;
            hit.then(|| Fault::from(std::io::Error::from_raw_os_error(5)))
        });
        let dir = Dir::new(Arc::new(fs), "/db");
        let scan = || {
            let mut iter = TableIter::new(open(&dir, 1, None)?);
            let mut count = 0;
            iter.seek_to_first();
            while iter.valid() {
                assert_eq!(iter.user_key(), entries[count].0);
                count += 1;
                iter.next();
            }
            iter.status()?;
            for (key, tag, _) in entries.iter().step_by(7) {
                let found = all(iter.table(), key, tag.seq())?;
                assert_eq!(found, model_get(&entries, key, tag.seq()));
            }
            Ok(count)
        };
        (scan(), reads.load(Ordering::Relaxed))
    };
    let (whole, reads) = run(u64::MAX);
    assert_eq!(whole.unwrap(), entries.len());
    assert!(reads > 10);
    for fail in 0..reads {
        assert_eq!(run(fail).0.unwrap_err().kind(), ErrorKind::Io, "read {fail}");
    }
}
