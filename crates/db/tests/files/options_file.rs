//! What the OPTIONS file keeps of the settings of each column family, and who reads it back.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::common::tiny;
use lithify::{Builder, ColumnFamilyOptions, Compression, Db, ErrorKind, Policy, Settings};
use lithify_env::sync::Mutex;
use lithify_env::{Env, FaultFs, Fs, RtOptions};

fn families(dir: &Path, db: &Settings) -> BTreeMap<String, Settings> {
    Settings::stored_families_in(dir, db).unwrap()
}

/// Opens it as it was left.
fn as_left(dir: &Path) -> Db {
    let (settings, _) = Settings::stored_in(dir).unwrap().unwrap();
    let named = |builder: Builder, (name, own): (String, Settings)| {
        builder.column_family(&name, ColumnFamilyOptions::new().settings(own))
    };
    let all = families(dir, &settings).into_iter();
    all.fold(Builder::new(settings), named).open(dir).unwrap()
}

#[test]
fn each_family_is_opened_as_it_was_left() {
    let place = tempfile::tempdir().unwrap();
    let dir = place.path().join("db");
    let db = Db::open(&dir, tiny()).unwrap();
    let mut own = tiny();
    own.policy = Some(Policy::Universal);
    own.compression_lower = Compression::Snappy;
    own.bloom_bits = 14;
    own.universal_size_ratio = 20;
    let own = ColumnFamilyOptions::new().settings(own);
    let a = db.create_column_family("a \"b\"", own).unwrap();
    let plain = db.create_column_family("plain", ColumnFamilyOptions::new()).unwrap();
    a.set_settings(&[("l0_trigger", "3"), ("max_size_amplification_percent", "60")]).unwrap();
    db.set_settings(&[("l0_stop", "40"), ("delayed_write_rate", "2MiB")]).unwrap();
    let in_force = [db.settings(), a.settings(), plain.settings()];
    db.close().unwrap();
    for _ in 0..2 {
        let stored = Settings::stored_in(&dir).unwrap().unwrap().0;
        assert_eq!(stored, in_force[0]);
        let all = families(&dir, &stored);
        assert_eq!(all.keys().collect::<Vec<_>>(), ["a \"b\"", "plain"]);
        assert_eq!([&all["a \"b\""], &all["plain"]], [&in_force[1], &in_force[2]]);
        // The next open writes a file of its own.
        as_left(&dir).close().unwrap();
    }
    // What a family has in common with the database follows the one that is given.
    let mut other = in_force[0].clone();
    other.set("bloom_bits", "9").unwrap();
    other.set("block_bytes", "1KiB").unwrap();
    let all = families(&dir, &other);
    assert_eq!(all["plain"].bloom_bits, 9);
    assert_eq!((all["a \"b\""].bloom_bits, all["a \"b\""].block_bytes), (14, 1024));
}

/// A dropped family is written down no more; without a file there is nothing.
#[test]
fn what_is_gone_is_not_written_down() {
    let place = tempfile::tempdir().unwrap();
    assert!(families(place.path(), &tiny()).is_empty());
    let dir = place.path().join("db");
    let db = Db::open(&dir, tiny()).unwrap();
    for name in ["a", "b"] {
        db.create_column_family(name, ColumnFamilyOptions::new()).unwrap();
    }
    db.drop_column_family("a").unwrap();
    assert_eq!(families(&dir, &tiny()).into_keys().collect::<Vec<_>>(), ["b"]);
    db.close().unwrap();
}

/// Of a directory of RocksDB the options of each family are taken as far as they mean the same.
#[test]
fn a_family_of_rocksdb_has_its_options() {
    let place = tempfile::tempdir().unwrap();
    let text = "[Version]\n  rocksdb_version=11.8.1\n[DBOptions]\n  max_background_jobs=3\n\
                [CFOptions \"default\"]\n  compaction_style=kCompactionStyleLevel\n\
                [CFOptions \"log\"]\n  compaction_style=kCompactionStyleFIFO\n  \
                compaction_options_fifo={max_table_files_size=2147483648;}\n  \
                write_buffer_size=1048576\n";
    let path = place.path().join("OPTIONS-000007");
    write(&path, text);
    let (db, file) = Settings::stored_in(place.path()).unwrap().unwrap();
    assert_eq!((db.policy, file.as_str()), (None, "OPTIONS-000007"));
    let all = families(place.path(), &db);
    let log = &all["log"];
    assert_eq!((log.policy, log.fifo_max_bytes), (Some(Policy::Fifo), 2 << 30));
    assert_eq!((log.memtable_bytes, log.compaction_threads), (1 << 20, 2));
    log.check().unwrap();
    write(&path, "[CFOptions");
    assert!(Settings::stored_families_in(place.path(), &db).unwrap_err().is_corruption());
}

#[allow(clippy::disallowed_methods, reason = "the file of another program")]
fn write(path: &Path, text: &str) {
    std::fs::write(path, text).unwrap();
}

/// A close waits for settings that are being written: behind it the directory may be another owner's.
#[test]
#[allow(clippy::disallowed_methods, reason = "a test waits for what must not happen")]
fn a_close_waits_for_settings_under_way() {
    let (held, reached) = (Arc::new(Mutex::new(())), Arc::new(AtomicBool::new(false)));
    let (gate, at, env) = (held.clone(), reached.clone(), Env::in_memory(RtOptions::default()));
    let fs: Arc<dyn Fs> = Arc::new(FaultFs::new(env.fs, move |op| {
        if op.name == "rename" && op.path.to_string_lossy().contains("OPTIONS") {
            at.store(true, Ordering::SeqCst);
            drop(gate.lock());
        }
        None
    }));
    let db = Builder::new(tiny()).env(Env { fs, rt: env.rt }).open("/db").unwrap();
    let closed = held.lock();
    reached.store(false, Ordering::SeqCst);
    std::thread::scope(|scope| {
        let (setting, closing) = (db.clone(), db.clone());
        let set = scope.spawn(move || setting.set_settings(&[("l0_stop", "40")]));
        while !reached.load(Ordering::SeqCst) {
            std::thread::yield_now();
        }
        let close = scope.spawn(|| closing.close());
        // As long as that takes many times over.
        std::thread::sleep(Duration::from_millis(300));
        assert!(!close.is_finished(), "the settings are not written yet");
        drop(closed);
        set.join().unwrap().unwrap();
        close.join().unwrap().unwrap();
    });
    let refused = db.set_settings(&[("l0_stop", "41")]).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::ShuttingDown, "{refused}");
}
