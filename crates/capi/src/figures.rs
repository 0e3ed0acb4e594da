//! What a database tells of itself: families, tables, its id.

use std::ffi::{CString, c_char};

use lithify::{Db, Error, LiveFile};

use crate::db::{Database, Family};
use crate::raw::{Outs, Res, c_bytes, c_text, export, give};

/// `rocksdb_column_family_metadata_t`: the files of a family, taken together.
pub(crate) struct FamilyFigures {
    name: String,
    bytes: u64,
    files: u64,
}

impl FamilyFigures {
    fn of(db: &Db, name: &str) -> FamilyFigures {
        let files = db.live_files();
        let bytes = files.iter().map(|file| file.bytes).sum();
        FamilyFigures { name: name.to_owned(), bytes, files: files.len() as u64 }
    }
}

/// `rocksdb_livefiles_t`: the tables of all families, with their texts as C has them.
pub(crate) struct LiveFiles(Vec<(LiveFile, CString, CString)>);

impl LiveFiles {
    fn of(db: &Db) -> Res<LiveFiles> {
        let mut all = Vec::new();
        for name in db.column_families() {
            for file in db.column_family(&name)?.live_files() {
                let text = |text: String| CString::new(text).unwrap_or_default();
                // As RocksDB has it, with a slash before the name.
                let at = text(format!("/{}", file.name));
                let family = text(file.family.clone());
                all.push((file, at, family));
            }
        }
        Ok(LiveFiles(all))
    }
    fn at(&self, index: i32) -> Res<&(LiveFile, CString, CString)> {
        let found = usize::try_from(index).ok().and_then(|index| self.0.get(index));
        found.ok_or_else(|| Error::invalid("there is no such file"))
    }
}

fn key_of(key: &[u8], len: &Outs<usize>) -> *const c_char {
    len.set(key.len());
    key.as_ptr().cast()
}

fn size(n: u64) -> usize {
    usize::try_from(n).unwrap_or(usize::MAX)
}

export! {
    fn rocksdb_get_column_family_metadata(db: &Database) -> *mut FamilyFigures {
        Ok(give(FamilyFigures::of(&*db.face.seen()?, crate::face::DEFAULT)))
    }
    fn rocksdb_get_column_family_metadata_cf(db: &Database, family: &Family) -> *mut FamilyFigures {
        let _ = db;
        Ok(give(FamilyFigures::of(&*family.face.seen()?, family.name())))
    }
    fn rocksdb_column_family_metadata_destroy(about: own FamilyFigures) {
        drop(about);
        Ok(())
    }
    fn rocksdb_column_family_metadata_get_size(about: &mut FamilyFigures) -> u64 {
        Ok(about.bytes)
    }
    fn rocksdb_column_family_metadata_get_file_count(about: &mut FamilyFigures) -> usize {
        Ok(size(about.files))
    }
    fn rocksdb_column_family_metadata_get_name(about: &mut FamilyFigures) -> *mut c_char {
        Ok(c_text(&about.name))
    }
    fn rocksdb_livefiles(db: &Database) -> *const LiveFiles {
        Ok(give(LiveFiles::of(&*db.face.seen()?)?))
    }
    fn rocksdb_livefiles_count(files: &LiveFiles) -> i32 {
        Ok(i32::try_from(files.0.len()).unwrap_or(i32::MAX))
    }
    fn rocksdb_livefiles_column_family_name(files: &LiveFiles, index: i32) -> *const c_char {
        Ok(files.at(index)?.2.as_ptr())
    }
    fn rocksdb_livefiles_name(files: &LiveFiles, index: i32) -> *const c_char {
        Ok(files.at(index)?.1.as_ptr())
    }
    fn rocksdb_livefiles_level(files: &LiveFiles, index: i32) -> i32 {
        Ok(i32::from(files.at(index)?.0.level))
    }
    fn rocksdb_livefiles_size(files: &LiveFiles, index: i32) -> usize {
        Ok(size(files.at(index)?.0.bytes))
    }
    fn rocksdb_livefiles_smallestkey(files: &LiveFiles, index: i32, len: out usize) -> *const c_char {
        len.set(0);
        Ok(key_of(&files.at(index)?.0.smallest, &len))
    }
    fn rocksdb_livefiles_largestkey(files: &LiveFiles, index: i32, len: out usize) -> *const c_char {
        len.set(0);
        Ok(key_of(&files.at(index)?.0.largest, &len))
    }
    fn rocksdb_livefiles_entries(files: &LiveFiles, index: i32) -> u64 {
        Ok(files.at(index)?.0.entries)
    }
    fn rocksdb_livefiles_deletions(files: &LiveFiles, index: i32) -> u64 {
        Ok(files.at(index)?.0.deletions)
    }
    fn rocksdb_livefiles_destroy(files: own LiveFiles) {
        drop(files);
        Ok(())
    }
    fn rocksdb_get_db_identity(db: &Database, len: out usize) -> *mut c_char {
        let id = db.face.seen()?.identity().to_owned();
        len.set(id.len());
        Ok(c_bytes(id.as_bytes()))
    }
}
