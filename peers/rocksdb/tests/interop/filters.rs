//! Every filter that RocksDB writes, at every version of its tables: directories with them are sound to
//! `verify`, before and after our own compactions, and answer as RocksDB does.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use lithify::Builder;
use lithify::import::ImportOptions;
use lithify::verify::verify;
use lithify_env::PosixFs;
use lithify_format::filter::FilterLayout;
use lithify_format::table::footer::Footer;
use lithify_format::table::metaindex::MetaIndex;
use rocksdb::DB;

use crate::c_api;
use crate::our_tables::small;
use crate::read::tables_in;

/// Ribbon alone, and for all but flushes; the names at the end are those of RocksDB's own tests, which take
/// no look at the version.
const POLICIES: [&str; 6] = [
    "bloomfilter:10:false",
    "ribbonfilter:10",
    "ribbonfilter:10:-1",
    "rocksdb.internal.LegacyBloomFilter:10",
    "rocksdb.internal.FastLocalBloomFilter:10",
    "rocksdb.internal.Standard128RibbonFilter:10",
];
const PARTITIONED: &str = "index_type=kTwoLevelIndexSearch;partition_filters=true;";
const KEYS: u32 = 3000;

fn key(n: u32) -> String {
    format!("key{n:05}")
}

/// A directory with tables of a compaction and of a flush, and what it holds.
fn written(dir: &Path, version: u32, policy: &str, table: &str) -> BTreeMap<String, String> {
    let options = c_api::options(&format!(
        "create_if_missing=true;disable_auto_compactions=true;compression=kLZ4Compression;\
         block_based_table_factory={{block_size=512;metadata_block_size=400;{table}\
         filter_policy={policy};format_version={version}}}"
    ));
    let db = DB::open(&options, dir).unwrap();
    let mut truth = BTreeMap::new();
    let mut rng = fastrand::Rng::with_seed(u64::from(version));
    for life in 0..3 {
        for _ in 0..KEYS / 2 {
            // Odd numbers stay absent.
            let key = key(rng.u32(0..KEYS) & !1);
            let value = format!("{life} {}", rng.u32(..));
            db.put(&key, &value).unwrap();
            truth.insert(key, value);
        }
        db.flush().unwrap();
        if life == 1 {
            db.compact_range(None::<&[u8]>, None::<&[u8]>);
        }
    }
    truth
}

/// What the full filters of a directory say that they are.
fn kinds(dir: &Path) -> BTreeSet<u8> {
    let kind = |path: &Path| {
        let bytes = std::fs::read(path).unwrap();
        let tail = &bytes[bytes.len().saturating_sub(100)..];
        let footer = Footer::read(tail, bytes.len() as u64).unwrap();
        let payload = |at: u64, len: u64| &bytes[at as usize..(at + len) as usize];
        let names = MetaIndex::decode(payload(footer.metaindex.offset, footer.metaindex.size));
        match names.unwrap().filter() {
            Some((FilterLayout::Full, at)) => {
                Some(payload(at.offset, at.size)[at.size as usize - 5])
            }
            _ => None,
        }
    };
    tables_in(dir).iter().filter_map(|path| kind(path)).collect()
}

fn sound(dir: &Path, story: &str) {
    let report = verify(Arc::new(PosixFs::new()), dir, None, &mut |_| {}).unwrap();
    assert!(report.is_clean() && report.tables > 0, "{story}: {:?}", report.findings);
}

#[test]
fn every_filter_at_every_version_is_sound_and_answers() {
    let mut seen: BTreeMap<u32, BTreeSet<u8>> = BTreeMap::new();
    for version in 2..=7 {
        for policy in POLICIES {
            for table in ["", PARTITIONED] {
                let story = format!("version {version}, {policy}, {table}");
                let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
                let truth = written(from.path(), version, policy, table);
                seen.entry(version).or_default().extend(kinds(from.path()));

                let options = ImportOptions { verify: true, ..ImportOptions::default() };
                let builder = || Builder::new(small());
                let import = builder().import(from.path(), to.path(), options, &mut |_| {});
                import.unwrap_or_else(|e| panic!("{story}: {e}"));
                sound(to.path(), &story);
                let db = builder().open(to.path()).unwrap();
                for compacted in [false, true] {
                    if compacted {
                        db.compact_range(None, None).unwrap();
                    }
                    for n in 0..KEYS {
                        let value = db.get(key(n)).unwrap();
                        let value = value.map(|v| String::from_utf8(v.to_vec()).unwrap());
                        assert_eq!(value.as_ref(), truth.get(&key(n)), "{story}, {}", key(n));
                    }
                }
                db.close().unwrap();
                sound(to.path(), &story);
            }
        }
    }
    // The old Bloom filter has 6 probes.
    for (version, kinds) in seen {
        assert_eq!(Vec::from_iter(kinds), [6, 0xfe, 0xff], "version {version}");
    }
}
