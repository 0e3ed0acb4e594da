//! Values that no codec makes smaller, under every codec: flushes, compactions, opens over a log that a
//! crash left behind, and tables built outside.

use std::sync::Arc;

use crate::common::{Content, scan, tiny};
use lithify::verify::verify;
use lithify::{Builder, Compression, Db, IngestOptions, Settings};
use lithify_env::{Env, MemFs, OsRt, RtOptions};

const DIRECTORY: &str = "/db";

fn codecs() -> Vec<Compression> {
    let mut all =
        vec![Compression::None, Compression::Snappy, Compression::Lz4, Compression::Bzip2];
    all.extend([1, 6].map(Compression::Zlib));
    all.extend(cfg!(feature = "zstd").then_some(Compression::Zstd(3)));
    all
}

fn settings(codec: Compression) -> Settings {
    let mut s = tiny();
    // More than one flush needs to go wrong, and a log that holds some of it when the power goes.
    s.memtable_bytes = 512 << 10;
    s.block_bytes = 4096;
    (s.compression_upper, s.compression_lower) = (codec, codec);
    s
}

fn env(fs: &MemFs) -> Env {
    Env { fs: Arc::new(fs.clone()), rt: Arc::new(OsRt::new(RtOptions::default())) }
}

fn open(fs: &MemFs, codec: Compression) -> Db {
    Builder::new(settings(codec)).env(env(fs)).open(DIRECTORY).unwrap()
}

/// Mostly noise of 4 KiB; some of it text, so that codecs meet both.
fn value(rng: &mut fastrand::Rng) -> Vec<u8> {
    let mut bytes = vec![0; 4096];
    match rng.u8(0..16) {
        0 => bytes.fill(rng.u8(..)),
        _ => rng.fill(&mut bytes),
    }
    bytes
}

#[test]
fn values_that_do_not_shrink_live_on_under_every_codec() {
    for codec in codecs() {
        let fs = MemFs::new();
        let mut rng = fastrand::Rng::with_seed(13);
        let mut truth = Content::new();
        for life in 0..2 {
            let db = open(&fs, codec);
            assert!(scan(&db).unwrap() == truth, "{codec:?}, life {life}");
            let mut put = |n: u32| {
                let (key, value) =
                    (format!("{:05}", rng.u32(0..800)).into_bytes(), value(&mut rng));
                db.put(&key, &value).unwrap_or_else(|e| panic!("{codec:?}, {life}.{n}: {e}"));
                truth.insert(key, value);
            };
            (0..250).for_each(&mut put);
            db.flush().unwrap();
            // The log alone holds these: the next open flushes them in its own thread.
            (250..310).for_each(put);
            assert_eq!(db.stats().memtable_entries, 60, "{codec:?}");
            drop(db);
            let db = open(&fs, codec);
            assert!(scan(&db).unwrap() == truth, "{codec:?}, opened after life {life}");
            db.flush().unwrap();
            db.compact_range(None, None).unwrap();
            assert!(scan(&db).unwrap() == truth, "{codec:?}, compacted in life {life}");
            db.close().unwrap();
            let found = verify(Arc::new(fs.clone()), DIRECTORY, None, &mut |_| {}).unwrap();
            assert!(found.is_clean() && found.tables > 0, "{codec:?}: {:?}", found.findings);
        }
    }
}

#[test]
fn tables_of_values_that_do_not_shrink_are_built_and_taken_in() {
    for codec in codecs() {
        let fs = MemFs::new();
        let db = open(&fs, codec);
        let mut rng = fastrand::Rng::with_seed(14);
        let mut truth = Content::new();
        let mut table = db.table_builder("/outside.sst").unwrap();
        for n in 0..300 {
            let (key, value) = (format!("{n:05}").into_bytes(), value(&mut rng));
            table.put(&key, &value).unwrap();
            truth.insert(key, value);
        }
        let built = table.finish().unwrap();
        assert_eq!(built.entries, 300);
        db.ingest(&[built.path], &IngestOptions::default()).unwrap();
        assert!(scan(&db).unwrap() == truth, "{codec:?}");
        db.close().unwrap();
    }
}
