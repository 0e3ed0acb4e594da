//! A directory of RocksDB or LevelDB with one file changed: reading it, and taking it over.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use lithify::import::ImportOptions;
use lithify::{Builder, ErrorKind};
use lithify_env::{Env, OsRt, PosixFs, RtOptions, RtRef};

use crate::image::{put_in, reframed, scan, settings, take};
use crate::tables::Sound;

const FROM: &str = "/theirs";
const TO: &str = "/new";
const NAMES: [&str; 6] = [
    "leveldb-filter",
    "leveldb-log",
    "leveldb-snappy",
    "rocksdb-families",
    "rocksdb-recycled",
    "rocksdb-versions",
];

struct Sounds {
    directories: Vec<Directory>,
    rt: RtRef,
}

struct Directory {
    files: BTreeMap<String, Vec<u8>>,
    tables: BTreeMap<String, Sound>,
    /// `None` if it cannot be taken over.
    content: Option<BTreeMap<Vec<u8>, Vec<u8>>>,
}

/// The first byte chooses the directory, the second the file, the third whether sums are made right and
/// whether the import believes properties; the rest says what to change.
pub(super) fn image(bytes: &[u8]) {
    let Some((&[which, file, how], program)) = bytes.split_first_chunk() else { return };
    let sounds = sounds();
    let directory = &sounds.directories[usize::from(which) % sounds.directories.len()];
    let mut files = directory.files.clone();
    let name = files.keys().nth(usize::from(file) % files.len()).cloned().unwrap_or_default();
    let mended = how & 1 == 1;
    if let Some(file) = files.get_mut(&name) {
        match (mended, directory.tables.get(&name)) {
            (true, Some(table)) => {
                crate::change(file, program);
                table.mend_blocks(file);
            }
            (true, None) if name.ends_with(".log") || name.starts_with("MANIFEST") => {
                *file = reframed(file, program);
            }
            _ => crate::change(file, program),
        }
    }
    let is_table = directory.tables.contains_key(&name);
    let fs = put_in(&files, FROM);
    let env = Env { fs: Arc::new(fs), rt: sounds.rt.clone() };
    let builder = || Builder::new(settings()).env(env.clone());
    if let Ok(db) = builder().open_read_only(FROM) {
        let content = scan(&db);
        // Blocks are checked: what a changed table shows is what it showed, or an error.
        if let (Ok(content), Some(sound), true, false) =
            (content, &directory.content, is_table, mended)
        {
            assert!(content == *sound, "{name}");
        }
        let _ = db.close();
    }
    let quick = how & 2 == 2;
    match builder().import(FROM, TO, ImportOptions { quick, verify: false }, &mut |_| {}) {
        Ok(_) => {
            let db = builder().open_read_only(TO).expect("what was taken over opens");
            let content = scan(&db);
            // Whatever a whole survey lets pass can be read.
            assert!(quick || content.is_ok(), "{name}: {:?}", content.err());
            let _ = db.close();
        }
        // Refused before anything is there.
        Err(_) => {
            let there = builder().open_read_only(TO);
            assert_eq!(there.err().map(|e| e.kind()), Some(ErrorKind::NotFound), "{name}");
        }
    }
}

fn sounds() -> &'static Sounds {
    static SOUNDS: OnceLock<Sounds> = OnceLock::new();
    SOUNDS.get_or_init(|| {
        let rt: RtRef = Arc::new(OsRt::new(RtOptions { seed: Some(1), ..RtOptions::default() }));
        let directories = NAMES.iter().map(|name| directory(name, &rt)).collect();
        Sounds { directories, rt }
    })
}

fn directory(name: &str, rt: &RtRef) -> Directory {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../db/tests/foreign").join(name);
    let files = take(&PosixFs::new(), &folder);
    let is_table = |name: &str| name.ends_with(".sst") || name.ends_with(".ldb");
    let tables = files.iter().filter(|(name, _)| is_table(name));
    let tables = tables.map(|(n, bytes)| (n.clone(), Sound::new(bytes.clone()))).collect();
    let env = Env { fs: Arc::new(put_in(&files, FROM)), rt: rt.clone() };
    let db = Builder::new(settings()).env(env).open_read_only(FROM);
    let content = db.ok().map(|db| scan(&db).expect("it is sound"));
    Directory { files, tables, content }
}
