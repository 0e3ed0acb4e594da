//! Whole tables: sound ones with changes, their sums made right again, and bytes as they are.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use lithify::{Builder, Compression, Settings};
use lithify_base::prefix::FixedPrefix;
use lithify_base::{Bytewise, InternalKey, Kind, MAX_SEQ, Prefixes, Tag, bytewise};
use lithify_env::{Env, FileRef, Fs, MemFs, OpenOpts, OsRt, RtOptions, read_full_at, write_all_at};
use lithify_format::block::{BlockCheck, TRAILER_LEN};
use lithify_format::checksum::{context_modifier, whole_sum};
use lithify_format::filter::key_hash;
use lithify_format::table::footer::{FOOTER_LEN, Footer};
use lithify_format::table::index::IndexShape;
use lithify_format::table::naive::NaiveTableWriter;
use lithify_format::table::tail::TableSpec;
use lithify_tables::cache::BlockCache;
use lithify_tables::sst::verify::inspect;
use lithify_tables::sst::{OpenTable, Scope, TableIter, TableReader};

/// A sound table and where its blocks lie.
pub(super) struct Sound {
    pub(super) bytes: Vec<u8>,
    /// Starts and payload lengths of all blocks.
    blocks: Vec<(usize, usize)>,
    check: BlockCheck,
}

/// The first byte chooses the table (or none: the rest is one), the second whether sums are made
/// right; the rest says what to change.
pub(super) fn table(bytes: &[u8]) {
    let Some((&[which, fix], program)) = bytes.split_first_chunk() else { return };
    let sound = tables();
    match sound.get(usize::from(which)) {
        None => read(program.to_vec()),
        Some(sound) => {
            let mut changed = sound.bytes.clone();
            crate::change(&mut changed, program);
            if fix & 1 == 1 {
                sound.mend(&mut changed);
            }
            read(changed);
        }
    }
}

impl Sound {
    pub(super) fn new(bytes: Vec<u8>) -> Sound {
        let footer = Footer::read(&bytes, bytes.len() as u64).expect("a sound table");
        let mut sound = Sound { blocks: Vec::new(), check: footer.check, bytes };
        let mut at = 0;
        let end = sound.bytes.len() - footer.len();
        // Blocks follow each other, and each ends where its sum fits.
        while at < end {
            let fits = |len: &usize| {
                let stored = &sound.bytes[at..at + len + TRAILER_LEN];
                sound.check.verify(stored, at as u64).is_ok()
            };
            let len = (1..=end - at - TRAILER_LEN).find(fits).expect("a block begins here");
            sound.blocks.push((at, len));
            at += len + TRAILER_LEN;
        }
        sound
    }

    /// Makes the sums right of all blocks that are where they were, and of the footer.
    pub(super) fn mend(&self, bytes: &mut [u8]) {
        self.mend_blocks(bytes);
        self.mend_footer(bytes);
    }

    /// The sums of blocks alone: LevelDB's footer has none.
    pub(super) fn mend_blocks(&self, bytes: &mut [u8]) {
        for &(at, len) in &self.blocks {
            let Some(stored) = bytes.get_mut(at..at + len + TRAILER_LEN) else { break };
            let sum = self.check.stored_sum(&stored[..len], stored[len], at as u64);
            stored[len + 1..].copy_from_slice(&sum.to_le_bytes());
        }
    }

    fn mend_footer(&self, bytes: &mut [u8]) {
        let offset = bytes.len().saturating_sub(FOOTER_LEN) as u64;
        if let Some(footer) = bytes.last_chunk_mut::<FOOTER_LEN>()
            && footer[41] >= 6
        {
            let base = u32::from_le_bytes([footer[9], footer[10], footer[11], footer[12]]);
            footer[5..9].fill(0);
            let sum = whole_sum(self.check.kind, &footer[..]);
            let sum = sum.wrapping_add(context_modifier(base, offset));
            footer[5..9].copy_from_slice(&sum.to_le_bytes());
        }
    }
}

/// Reads a table in every way there is; with a cache, parts of its index and filter are read when they
/// are needed.
fn read(bytes: Vec<u8>) {
    for cache in [None, Some(BlockCache::new(1 << 20, 1))] {
        let spec = OpenTable { cache, ..OpenTable::new(file(&bytes), "table", bytewise()) };
        if let Ok(table) = TableReader::open(spec) {
            read_opened(&table);
        }
    }
}

fn read_opened(table: &Arc<TableReader>) {
    let (_, errors) = inspect(table, None, &mut |_| {});
    let mut iter = TableIter::new(table.clone());
    let (mut forward, mut keys) = (0u64, Vec::new());
    let mut more = iter.seek_to_first();
    while more {
        forward += 1;
        if keys.len() < 8 {
            keys.push((iter.user_key().to_vec(), iter.tag()));
        }
        more = iter.next();
    }
    let sound = iter.status().is_ok();
    let (mut backward, mut more) = (0u64, iter.seek_to_last());
    while more {
        backward += 1;
        more = iter.prev();
    }
    let both = sound && iter.status().is_ok();
    assert!(!both || forward == backward, "both ways show the same");
    for (key, tag) in keys {
        let found = table.get(&key, key_hash(&key), MAX_SEQ);
        if errors.is_empty() {
            let found = found.expect("a table that was verified reads");
            assert!(found.is_some_and(|(t, _)| t >= tag), "a verified table finds its keys");
        }
        // Whichever extractor the table names, if it is a built-in one.
        let scope = Scope { start: key[..].into(), by: Prefixes::default(), exact: false };
        let may = table.may_have(&scope);
        assert!(!errors.is_empty() || may.expect("a table that was verified reads"));
        iter.seek(&key, tag);
        iter.seek_for_prev(&key, tag);
    }
    let _ = (table.approximate_offset_of(b"key"), table.memory());
}

fn file(bytes: &[u8]) -> FileRef {
    let file = MemFs::new().create(Path::new("/table"), OpenOpts::write()).expect("memory");
    write_all_at(&*file, bytes, 0).expect("memory");
    file
}

/// Sound tables: version 6 and 5, plain and compressed, with range deletions; and one of each version
/// whose index and filter are in parts, and those of other codecs.
fn tables() -> &'static [Sound] {
    static TABLES: OnceLock<Vec<Sound>> = OnceLock::new();
    TABLES.get_or_init(|| {
        let kinds = [(6, Compression::None), (5, Compression::None), (6, Compression::Lz4)];
        let whole = kinds.into_iter().map(|(version, codec)| made(version, codec));
        let others = [Compression::Zlib(6), Compression::Bzip2].map(|codec| made(6, codec));
        whole.chain([6, 5].map(in_parts)).chain(others).map(Sound::new).collect()
    })
}

fn in_parts(version: u32) -> Vec<u8> {
    let index = IndexShape { restart_interval: 4, cap: 64, partition: 64 };
    let prefixes = Prefixes::by(Arc::new(FixedPrefix::new(5)));
    let plain = TableSpec { version, index, prefixes, ..TableSpec::default() };
    let spec = TableSpec { filter_partition: 64, ..plain };
    let mut table = NaiveTableWriter::new(spec, 128);
    for n in 0..60u64 {
        let key = format!("key{:03}", n / 3);
        let key = InternalKey { user: key.as_bytes(), tag: Tag::new(100 - n, Kind::Value) };
        table.add(key, &[n as u8; 24]);
    }
    table.finish(&Bytewise).expect("entries").0
}

fn made(version: u32, codec: Compression) -> Vec<u8> {
    let mut settings = Settings::default();
    settings.format_version = version;
    settings.compression_upper = codec;
    settings.block_bytes = 512;
    settings.auto_compaction = false;
    settings.event_log = false;
    let fs = MemFs::new();
    let rt = OsRt::new(RtOptions { seed: Some(1), ..RtOptions::default() });
    let env = Env { fs: Arc::new(fs.clone()), rt: Arc::new(rt) };
    let db = Builder::new(settings).env(env).open("/db").expect("a new database");
    for n in 0..60u32 {
        let value = [n as u8; 24];
        db.put(format!("key{:03}", n * 7 % 60), value).expect("memory");
        if n % 13 == 0 {
            db.delete(format!("key{n:03}")).expect("memory");
        }
    }
    db.delete_range("key020", "key030").expect("memory");
    db.flush().expect("memory");
    db.close().expect("memory");
    let listed = fs.list(Path::new("/db")).expect("memory");
    let table = listed.iter().find(|e| e.name.ends_with(".sst")).expect("one table");
    let path = Path::new("/db").join(&table.name);
    let file = fs.open(&path, OpenOpts::read()).expect("memory");
    let mut bytes = vec![0; table.len as usize];
    read_full_at(&*file, &mut bytes, 0).expect("memory");
    bytes
}
