//! Indexes and filters in parts: a database whose tables have them so reads as a model does, whatever
//! the size of its cache, and so do the tables it writes for others.
#![allow(clippy::disallowed_methods, reason = "real files")]

use crate::common::{Content, scan, tiny};
use lithify::{Compression, Db, ErrorKind, ReadOptions, Settings, TableBuilder};
use lithify_base::bytewise;
use lithify_env::{Fs, OpenOpts, PosixFs};
use lithify_format::table::props::TWO_LEVEL;
use lithify_tables::sst::{OpenTable, TableReader, verify};

fn in_parts() -> Settings {
    let mut s = tiny();
    s.partition_bytes = Some(1 << 10);
    s.memtable_bytes = 256 << 10;
    s.file_bytes = 256 << 10;
    s
}

fn key(n: u32) -> Vec<u8> {
    format!("{:08}/{n:05}", n.wrapping_mul(2_654_435_761) >> 8).into_bytes()
}

/// How many of the tables in `dir` have an index of two levels; all are sound.
fn tables_in_parts(dir: &std::path::Path) -> (usize, usize) {
    let (mut two, mut all) = (0, 0);
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|e| e == "sst") {
            let file = PosixFs::new().open(&path, OpenOpts::read()).unwrap();
            let spec = OpenTable::new(file, path.display().to_string(), bytewise());
            let table = TableReader::open(spec).unwrap();
            verify::verify(&table).unwrap();
            two += usize::from(table.properties().index_type() == TWO_LEVEL);
            all += 1;
        }
    }
    (two, all)
}

#[test]
fn a_database_in_parts_reads_as_the_model() {
    for (version, codec, cache) in
        [(6, Compression::None, 8 << 20), (5, Compression::Lz4, 8 << 20), (6, Compression::Lz4, 0)]
    {
        let home = tempfile::tempdir().unwrap();
        let mut settings = in_parts();
        (settings.format_version, settings.compression_lower) = (version, codec);
        // Without a cache every part is read each time it is asked for.
        settings.memory_budget =
            cache.max(u64::from(settings.memtable_count) * (256 << 10) + (1 << 20));
        let db = Db::open(home.path(), settings.clone()).unwrap();
        let mut model = Content::new();
        let mut rng = fastrand::Rng::with_seed(u64::from(version));
        let mut held = Vec::new();
        for round in 0..12_000u32 {
            let key = key(rng.u32(0..4000));
            if rng.u8(0..10) == 0 {
                db.delete(&key).unwrap();
                model.remove(&key);
            } else {
                let value = vec![round as u8; rng.usize(0..120)];
                db.put(&key, &value).unwrap();
                model.insert(key, value);
            }
            if round % 4000 == 2500 {
                held.push((db.snapshot(), model.clone()));
            }
        }
        db.flush().unwrap();
        db.wait_idle(None).unwrap();
        assert!(scan(&db).unwrap() == model);
        for (snapshot, model) in &held {
            for n in (0..4000).step_by(7) {
                let got = db.get_opt(key(n), &ReadOptions::at(snapshot)).unwrap();
                assert_eq!(got.as_deref(), model.get(&key(n)).map(|v| &v[..]));
            }
        }
        let keys: Vec<Vec<u8>> = (0..4200).step_by(3).map(key).collect();
        for (key, got) in keys.iter().zip(db.multi_get(&keys).unwrap()) {
            assert_eq!(got.as_deref(), model.get(key).map(|v| &v[..]));
        }
        let mut iter = db.iter().unwrap();
        for n in (0..4200).step_by(13) {
            iter.seek(key(n));
            let next = model.range(key(n)..).next();
            assert_eq!(
                iter.valid().then(|| (iter.key(), iter.value())),
                next.map(|(k, v)| (&k[..], &v[..]))
            );
        }
        iter.status().unwrap();
        drop((iter, held));
        db.close().unwrap();
        let (two, all) = tables_in_parts(home.path());
        assert!(two * 2 > all, "{two} of {all} tables are in parts");
        // Other settings read them, too, and write their own tables beside them.
        settings.partition_bytes = Some(0);
        let db = Db::open(home.path(), settings).unwrap();
        assert!(scan(&db).unwrap() == model);
        db.compact_range(None, None).unwrap();
        assert!(scan(&db).unwrap() == model);
        for n in (0..4000).step_by(3) {
            db.put(key(n), b"anew").unwrap();
            model.insert(key(n), b"anew".to_vec());
        }
        db.flush().unwrap();
        assert!(scan(&db).unwrap() == model);
        db.close().unwrap();
        let (two, all) = tables_in_parts(home.path());
        assert!(two < all, "{two} of {all}: what is written now is whole");
    }
}

/// Many keys under a small budget: left alone, indexes and filters take more than there is for them and for
/// cached blocks. By default tables are cut into parts before that.
#[test]
fn tables_that_crowd_the_memory_are_cut() {
    let life = |partition_bytes: Option<u32>| {
        let home = tempfile::tempdir().unwrap();
        let mut s = Settings { partition_bytes, bloom_bits: 50, memory_budget: 4 << 20, ..tiny() };
        (s.memtable_bytes, s.file_bytes, s.block_bytes) = (256 << 10, 1 << 20, 1 << 10);
        let db = Db::open(home.path(), s.clone()).unwrap();
        for n in 0..400_000u32 {
            db.put(n.wrapping_mul(2_654_435_761).to_be_bytes(), b"v").unwrap();
        }
        db.compact_range(None, None).unwrap();
        db.close().unwrap();
        let db = Db::open(home.path(), s).unwrap();
        for n in (0..400_000u32).step_by(997) {
            let key = n.wrapping_mul(2_654_435_761).to_be_bytes();
            assert_eq!(db.get(key).unwrap().as_deref(), Some(&b"v"[..]), "{n}");
        }
        let taken = db.stats().table_memory;
        db.close().unwrap();
        let (two, all) = tables_in_parts(home.path());
        (taken, two, all)
    };
    let (whole, none, all) = life(Some(0));
    assert!(none == 0 && all > 5, "{none} of {all}");
    let (auto, two, all) = life(None);
    // The last one may be too small for an index of two levels.
    assert!(two + 1 >= all, "{two} of {all}: the last compaction met tables that crowd the memory");
    assert!(auto * 8 < whole, "{auto} of {whole}");
}

#[test]
fn a_built_table_in_parts_is_taken_in() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("outside.sst");
    let mut table = TableBuilder::create(&path, &in_parts()).unwrap();
    let mut model = Content::new();
    let mut keys: Vec<Vec<u8>> = (0..3000).map(key).collect();
    keys.sort();
    for key in keys {
        table.put(&key, &key[..4]).unwrap();
        let value = key[..4].to_vec();
        model.insert(key, value);
    }
    table.finish().unwrap();
    assert_eq!(tables_in_parts(home.path()), (1, 1));
    let db = Db::open(home.path().join("db"), tiny()).unwrap();
    db.ingest(&[path], &Default::default()).unwrap();
    assert!(scan(&db).unwrap() == model);
}

#[test]
fn a_part_has_a_sensible_size() {
    for bytes in [1, 1023, (1 << 20) + 1] {
        let mut s = in_parts();
        s.partition_bytes = Some(bytes);
        let e = s.check().unwrap_err();
        assert!(
            e.kind() == ErrorKind::InvalidArgument && e.to_string().contains("partition_bytes")
        );
    }
    in_parts().check().unwrap();
}
