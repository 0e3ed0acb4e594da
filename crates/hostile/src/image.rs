//! A whole database with one file changed: opening, reading, verifying and salvaging it.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use lithify::merge::Append;
use lithify::verify::verify;
use lithify::{Builder, ColumnFamilyOptions, Db, ErrorKind, ReverseBytewise, Settings, WriteBatch};
use lithify_env::{Env, Fs, MemFs, OpenOpts, OsRt, RtOptions, RtRef, read_full_at, write_all_at};
use lithify_journal::wal::{Found, RecordKind, RecordReader, RecordWriter};

use crate::tables::Sound;

const DIRECTORY: &str = "/db";

/// Keys and values of the column families by name.
type Contents = BTreeMap<String, BTreeMap<Vec<u8>, Vec<u8>>>;

/// The sound database: files by name, and tables with the places of their blocks.
struct Image {
    files: BTreeMap<String, Vec<u8>>,
    tables: BTreeMap<String, Sound>,
    content: Contents,
    rt: RtRef,
}

/// The first byte chooses the file, the second whether sums are made right, whether the database is
/// opened without its merge operator, too, and whether it is salvaged; the rest says what to change.
pub(super) fn image(bytes: &[u8]) {
    let Some((&[which, how], program)) = bytes.split_first_chunk() else { return };
    let image = sound();
    let mut files = image.files.clone();
    let name = files.keys().nth(usize::from(which) % files.len()).cloned().unwrap_or_default();
    let mended = how & 1 == 1;
    if let Some(file) = files.get_mut(&name) {
        match (mended, image.tables.get(&name)) {
            (true, Some(table)) => {
                crate::change(file, program);
                table.mend(file);
            }
            (true, None) if name.ends_with(".log") || name.starts_with("MANIFEST") => {
                *file = reframed(file, program);
            }
            _ => crate::change(file, program),
        }
    }
    let fs = put_in(&files, DIRECTORY);
    let env = Env { fs: Arc::new(fs.clone()), rt: image.rt.clone() };
    let report = verify(Arc::new(fs.clone()), DIRECTORY, None, &mut |_| {});
    if let Ok(db) = builder(&env).open_read_only(DIRECTORY) {
        let content = scan_all(&db);
        // Sums that are right lie convincingly; without them nothing else may be shown, except
        // that a manifest or a log which is cut is what a crash leaves.
        if let (Ok(content), false) = (content, mended) {
            let may_be_cut = name.ends_with(".log") || name.starts_with("MANIFEST");
            let is_told = may_be_cut && !report.is_ok_and(|r| r.is_clean());
            assert!(content == image.content || is_told, "{name}");
        }
        let _ = db.close();
    }
    if how & 4 == 4 {
        // Without the operator there is no reading what has operands, which is no bug.
        let db = Builder::new(settings()).env(env.clone()).open_read_only(DIRECTORY);
        let refused = db.and_then(|db| scan(&db)).err();
        assert!(mended || refused.is_none_or(|e| e.kind() != ErrorKind::Internal), "{name}");
    }
    if how & 2 == 2 {
        let _ = builder(&env).salvage(DIRECTORY, "/new", &mut |_| {});
    }
}

fn scan_all(db: &Db) -> lithify::Result<Contents> {
    let of = |name: String| {
        let family = db.column_family(&name)?;
        Ok((name, scan(&family)?))
    };
    db.column_families().into_iter().map(of).collect()
}

pub(super) fn scan(db: &Db) -> lithify::Result<BTreeMap<Vec<u8>, Vec<u8>>> {
    let mut iter = db.iter()?;
    let mut content = BTreeMap::new();
    iter.seek_to_first();
    while iter.valid() {
        content.insert(iter.key().to_vec(), iter.value().to_vec());
        iter.next();
    }
    iter.status()?;
    iter.seek_to_last();
    while iter.valid() {
        iter.prev();
    }
    iter.status()?;
    Ok(content)
}

/// The records of a log or manifest with their payloads changed and their sums right.
pub(super) fn reframed(file: &[u8], program: &[u8]) -> Vec<u8> {
    let mut payloads = Vec::new();
    let mut reader = RecordReader::new(file, None);
    let mut kinds = Vec::new();
    while let Found::Record(record) = reader.next_record() {
        kinds.push((record.kind, record.payload.len()));
        payloads.extend_from_slice(&record.payload);
    }
    crate::change(&mut payloads, program);
    let (mut out, mut writer, mut rest) = (Vec::new(), RecordWriter::new(), &payloads[..]);
    for (kind, len) in kinds {
        let (payload, after) = rest.split_at(rest.len().min(len));
        match kind {
            RecordKind::Data => writer.append(payload, &mut out),
            RecordKind::Predecessor => writer.append_special(130, payload, &mut out),
            RecordKind::Seal => writer.append_special(0xC0, payload, &mut out),
            RecordKind::Ignorable(t) => writer.append_special(t, payload, &mut out),
        }
        rest = after;
    }
    out
}

pub(super) fn settings() -> Settings {
    let mut s = Settings::default();
    s.memtable_bytes = 64 << 10;
    s.memory_budget = 8 << 20;
    s.block_bytes = 512;
    s.compaction_threads = 1;
    s.auto_compaction = false;
    s.event_log = false;
    s
}

/// Who opens the database as its owner does.
fn builder(env: &Env) -> Builder {
    Builder::new(settings()).merge_operator(Arc::new(Append::default())).env(env.clone())
}

fn sound() -> &'static Image {
    static IMAGE: OnceLock<Image> = OnceLock::new();
    IMAGE.get_or_init(|| {
        let rt: RtRef = Arc::new(OsRt::new(RtOptions { seed: Some(1), ..RtOptions::default() }));
        let fs = MemFs::new();
        let env = Env { fs: Arc::new(fs.clone()), rt: rt.clone() };
        let db = builder(&env).open(DIRECTORY).expect("a new database");
        let options = ColumnFamilyOptions::new().comparator(Arc::new(ReverseBytewise));
        let other = db.create_column_family("other", options).expect("memory");
        let (mut content, mut of_other) = (BTreeMap::new(), BTreeMap::new());
        for n in 0..40u32 {
            let key = format!("key{:02}", n * 7 % 30).into_bytes();
            db.put(&key, [n as u8; 12]).expect("memory");
            content.insert(key.clone(), vec![n as u8; 12]);
            // In the batches of both; in a table and in the log.
            if n % 5 == 2 {
                let mut batch = WriteBatch::new();
                batch.put(&key, b"both").expect("a short key");
                batch.put_cf(&other, &key, [n as u8; 7]).expect("a short key");
                db.write(&batch).expect("memory");
                content.insert(key.clone(), b"both".to_vec());
                of_other.insert(key, vec![n as u8; 7]);
            }
            // Operands over values, over nothing and over each other; in tables and in the log.
            if n % 6 == 1 {
                let key = format!("key{:02}", n % 40).into_bytes();
                db.merge(&key, [n as u8]).expect("memory");
                let value: &mut Vec<u8> = content.entry(key).or_default();
                if !value.is_empty() {
                    value.push(b',');
                }
                value.push(n as u8);
            }
            match n {
                11 => db.compact_range(None, None).expect("memory"),
                21 | 30 => db.flush().expect("memory"),
                23 => other.flush().expect("memory"),
                25 => {
                    db.delete_range("key03", "key09").expect("memory");
                    content.retain(|k, _| !(&b"key03"[..]..&b"key09"[..]).contains(&&k[..]));
                }
                _ => {}
            }
        }
        drop(other);
        db.close().expect("memory");
        let content = [("default", content), ("other", of_other)];
        let content = content.map(|(name, content)| (name.to_owned(), content)).into();
        let files = take(&fs, Path::new(DIRECTORY));
        let is_table = |(name, _): &(&String, &Vec<u8>)| name.ends_with(".sst");
        let tables = files.iter().filter(is_table);
        let tables = tables.map(|(n, bytes)| (n.clone(), Sound::new(bytes.clone()))).collect();
        Image { files, tables, content, rt }
    })
}

/// The files of `directory`.
pub(super) fn take(fs: &dyn Fs, directory: &Path) -> BTreeMap<String, Vec<u8>> {
    let listed = fs.list(directory).expect("a directory");
    let read = |entry: &lithify_env::DirEnt| {
        let path = directory.join(&entry.name);
        let file = fs.open(&path, OpenOpts::read()).expect("a file");
        let mut bytes = vec![0; entry.len as usize];
        read_full_at(&*file, &mut bytes, 0).expect("a file that reads");
        bytes
    };
    listed.iter().map(|entry| (entry.name.clone(), read(entry))).collect()
}

/// A file system with these files in `directory`.
pub(super) fn put_in(files: &BTreeMap<String, Vec<u8>>, directory: &str) -> MemFs {
    let fs = MemFs::new();
    fs.create_dir_all(Path::new(directory)).expect("memory");
    for (name, bytes) in files {
        let path = Path::new(directory).join(name);
        let file = fs.create(&path, OpenOpts::write()).expect("memory");
        write_all_at(&*file, bytes, 0).expect("memory");
    }
    fs
}
