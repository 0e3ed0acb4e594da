//! Ten small directories by long lives of RocksDB, in an archive each (`crates/db/tests/foreign/lives`),
//! which the plain tests live on with: `cargo test -p lithify --test lives`.
//!
//! `REWRITE=1 cargo test --test interop golden_lives` in `peers/rocksdb`, after `cargo xtask peers`, makes
//! them anew; else RocksDB opens copies of them and must show what they say.

use std::path::{Path, PathBuf};

use fastrand::Rng;
use rocksdb::DB;
use tempfile::TempDir;

use super::archive::Archive;
use super::theirs::{self, plain};
use super::twin::Twin;
use super::{begin, place};

/// Seeds of the lives that are kept: of some hundred, those in which mistakes showed most often.
const SEEDS: [u64; 10] = [7, 12, 16, 21, 34, 48, 64, 70, 97, 99];
/// Largest archive, bytes.
const MOST: usize = 60 << 10;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crates/db/tests/foreign/lives")
}

/// What counts of the files: options only the newest.
fn files(dir: &Path) -> impl Iterator<Item = (String, Vec<u8>)> {
    let names = std::fs::read_dir(dir).unwrap().map(|e| e.unwrap().file_name());
    let mut names: Vec<String> = names.map(|n| n.into_string().unwrap()).collect();
    names.sort();
    let newest = names.iter().rfind(|n| n.starts_with("OPTIONS-")).cloned();
    names.retain(|name| {
        ["CURRENT", "IDENTITY"].contains(&name.as_str())
            || name.starts_with("MANIFEST-")
            || name.ends_with(".sst")
            || name.ends_with(".log")
            || Some(name) == newest.as_ref()
    });
    let read =
        |dir: PathBuf| move |name: String| (name.clone(), std::fs::read(dir.join(name)).unwrap());
    names.into_iter().map(read(dir.to_owned()))
}

/// A directory by a life of this seed.
fn made(seed: u64) -> Archive {
    let (dir, mut rng) = (place(), Rng::with_seed(seed));
    let (mut twin, kind) = begin(true, &mut rng);
    let path = dir.path().join("theirs");
    for _ in 0..rng.usize(2..4) {
        theirs::session(&path, &mut twin, &kind, &mut rng);
    }
    let mut made =
        Archive { families: twin.families, content: vec![], files: files(&path).collect() };
    let (_copy, db) = opened(&made);
    made.content = theirs::view(&db, &made.families);
    made
}

/// A copy of its files, opened by RocksDB.
fn opened(archive: &Archive) -> (TempDir, DB) {
    let dir = place();
    for (name, bytes) in &archive.files {
        std::fs::write(dir.path().join(name), bytes).unwrap();
    }
    let db = theirs::open(dir.path(), &archive.families, |family| plain(family, ""), "");
    (dir, db)
}

#[test]
fn golden_lives() {
    if std::env::var_os("REWRITE").is_some() {
        let _ = std::fs::remove_dir_all(folder());
        std::fs::create_dir_all(folder()).unwrap();
        for (number, seed) in SEEDS.into_iter().enumerate() {
            let packed = made(seed).pack();
            std::fs::write(folder().join(format!("{number}.life")), packed).unwrap();
        }
    }
    let mut keys = 0;
    for number in 0..SEEDS.len() {
        let packed = std::fs::read(folder().join(format!("{number}.life"))).unwrap();
        assert!(packed.len() < MOST, "life {number} has {} bytes", packed.len());
        let archive = Archive::unpack(&packed);
        let (_copy, db) = opened(&archive);
        let twin = Twin::of(archive.families, archive.content);
        theirs::agrees(&db, &twin);
        keys += twin.state().iter().map(|held| held.len()).sum::<usize>();
    }
    assert!(keys > 500, "{keys} keys");
}
