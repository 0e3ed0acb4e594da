//! The sound directories that a program starts from: databases of ours, RocksDB's and LevelDB's, a
//! directory of backups, a table made by itself, nothing.
//!
//! Keeps: they are made once in a process and written anew for each program; seeds are fixed, so that
//! the same names and nearly the same bytes are there every time (some hold the time of day).

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use lithify::merge::Append;
use lithify::{Backups, Builder, ColumnFamilyOptions, Db, ReverseBytewise, Settings, WriteBatch};
use lithify_env::{Env, OsRt, PosixFs, RtOptions, RtRef};

use super::guard::walk;
use crate::tables::Sound;

/// A directory: its folders, and its files with what is in them.
pub(super) struct Image {
    /// Its name in what is told of a program.
    pub(super) name: &'static str,
    folders: Vec<PathBuf>,
    pub(super) files: Vec<(PathBuf, Vec<u8>)>,
    /// The tables among them, with the places of their blocks.
    tables: Vec<(PathBuf, Sound)>,
}

/// The number of the image that is a database of ours, and of that with backups.
pub(super) const DATABASE: usize = 0;
pub(super) const BACKUPS: usize = 1;
pub(super) const COUNT: usize = 8;

macro_rules! foreign {
    ($folder:literal: $($name:literal)+) => {
        ($folder, &[$(($name, include_bytes!(concat!(
            env!("CARGO_MANIFEST_DIR"), "/../db/tests/foreign/", $folder, "/", $name
        )))),+])
    };
}

/// Names, and what is in them.
type Files = &'static [(&'static str, &'static [u8])];

/// Databases that RocksDB and LevelDB made: part of the program, for whom they are not to be read.
const FOREIGN: [(&str, Files); 4] = [
    foreign!("rocksdb-families": "000008.log" "000009.sst" "000010.sst" "CURRENT" "IDENTITY"
        "MANIFEST-000005" "OPTIONS-000007"),
    foreign!("rocksdb-recycled": "000009.sst" "000011.sst" "000013.sst" "000014.log" "000015.sst"
        "000016.log" "000017.sst" "CURRENT" "IDENTITY" "MANIFEST-000005" "OPTIONS-000007"),
    foreign!("leveldb-filter": "000005.ldb" "000007.ldb" "000010.ldb" "000011.log" "CURRENT"
        "MANIFEST-000009"),
    foreign!("leveldb-log": "000003.log" "CURRENT" "MANIFEST-000002"),
];

impl Image {
    /// Writes it to `at`, which is not there.
    pub(super) fn write(&self, at: &Path) -> io::Result<()> {
        fs::create_dir(at)?;
        for folder in &self.folders {
            fs::create_dir(at.join(folder))?;
        }
        for (path, bytes) in &self.files {
            fs::write(at.join(path), bytes)?;
        }
        Ok(())
    }

    /// The table of that name, as it was.
    pub(super) fn table(&self, path: &Path) -> Option<&Sound> {
        self.tables.iter().find(|(name, _)| name == path).map(|(_, sound)| sound)
    }

    /// What is in `at` now.
    fn take(name: &'static str, at: &Path) -> io::Result<Image> {
        let (mut folders, mut files) = (Vec::new(), Vec::new());
        for path in walk(at)? {
            let inside = path.strip_prefix(at).unwrap_or(&path).to_owned();
            match path.is_dir() {
                true => folders.push(inside),
                false => files.push((inside, fs::read(&path)?)),
            }
        }
        Ok(Image::of(name, folders, files))
    }

    fn of(name: &'static str, folders: Vec<PathBuf>, files: Vec<(PathBuf, Vec<u8>)>) -> Image {
        let is_table = |path: &Path| path.extension().is_some_and(|e| e == "sst" || e == "ldb");
        let tables = files.iter().filter(|(path, _)| is_table(path));
        let tables = tables.map(|(p, bytes)| (p.clone(), Sound::new(bytes.clone()))).collect();
        Image { name, folders, files, tables }
    }
}

/// All images, made with the scratch directory `at`, which is not there.
pub(super) fn make(at: &Path) -> Vec<Image> {
    let made = || -> io::Result<Vec<Image>> {
        fs::create_dir(at)?;
        let (db, backups) = (at.join("db"), at.join("backups"));
        fill(&db, &backups).map_err(io::Error::other)?;
        let mut images = vec![Image::take("database", &db)?, Image::take("backups", &backups)?];
        images.push(Image::of("empty", Vec::new(), Vec::new()));
        for (name, files) in FOREIGN {
            let files = files.iter().map(|(n, bytes)| (PathBuf::from(n), bytes.to_vec())).collect();
            images.push(Image::of(name, Vec::new(), files));
        }
        fs::create_dir(at.join("tables"))?;
        build(&at.join("tables/000012.sst")).map_err(io::Error::other)?;
        images.push(Image::take("tables", &at.join("tables"))?);
        fs::remove_dir_all(at)?;
        Ok(images)
    };
    let images = made().expect("sound databases are made");
    assert_eq!(images.len(), COUNT);
    images
}

/// Small tables with indexes and filters in parts, and little memory.
fn settings() -> Settings {
    let mut s = crate::image::settings();
    s.partition_bytes = Some(1024);
    s.event_log = true;
    s
}

/// Threads, kept for all programs: to start them anew takes longer than most operations.
pub(super) fn env() -> Env {
    static RT: OnceLock<RtRef> = OnceLock::new();
    let rt =
        || -> RtRef { Arc::new(OsRt::new(RtOptions { seed: Some(1), ..RtOptions::default() })) };
    Env { fs: Arc::new(PosixFs::new()), rt: RT.get_or_init(rt).clone() }
}

/// Who opens a database as its owner does.
pub(super) fn builder() -> Builder {
    Builder::new(settings()).merge_operator(Arc::new(Append::default())).env(env())
}

/// A database with families, tables, range deletions, operands and a log, and two backups of it.
fn fill(db: &Path, backups: &Path) -> lithify::Result<()> {
    let db = builder().open(db)?;
    let reversed = ColumnFamilyOptions::new().comparator(Arc::new(ReverseBytewise));
    let other = db.create_column_family("other", reversed)?;
    let third = db.create_column_family("third", ColumnFamilyOptions::new())?;
    put(&db, 0..150)?;
    db.compact_range(None, None)?;
    put(&other, 0..40)?;
    other.flush()?;
    let backups = Backups::open_in(backups, env())?;
    backups.create(&db, &mut |_| {})?;
    put(&db, 100..200)?;
    db.delete_range("key0010", "key0030")?;
    db.merge("key0150", "operand")?;
    db.flush()?;
    put(&third, 0..10)?;
    backups.create(&db, &mut |_| {})?;
    let mut both = WriteBatch::new();
    both.put("key0500", "in the log")?;
    both.put_cf(&other, "key0500", "in the log")?;
    db.write(&both)?;
    drop((other, third));
    db.close()
}

/// A table that a database can take in.
fn build(at: &Path) -> lithify::Result<()> {
    let mut table = builder().table(at)?;
    (0..60).try_for_each(|n| table.put(format!("key{n:04}"), [n; 20]))?;
    table.delete_range("key0500", "key0600")?;
    table.finish().map(drop)
}

fn put(db: &Db, keys: std::ops::Range<u32>) -> lithify::Result<()> {
    keys.into_iter().try_for_each(|n| db.put(format!("key{n:04}"), [n as u8; 20]))
}
