//! Damaged, foreign and missing files (reliability F10, F11, F12, contract P4, P5, P10): whatever
//! the bytes of a database directory become, a read returns what was written or a typed error
//! that names a file; it never panics, hangs, or returns something else.
//!
//! Two images of one small database are damaged. The *closed* one was closed in order: its log
//! is sealed, so everything in it was promised. The *running* one was copied while open: what
//! follows the last seal may be a torn tail, so a shorter prefix of the writes is a right answer.

#![allow(clippy::disallowed_methods, reason = "the test waits for background work")]

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::common::image::{self, Image, kind};
use crate::common::{Content, scan, tiny, within};
use lithify::{
    Builder, Compression, Db, Durability, Error, ErrorKind, Settings, WriteBatch, WriteOptions,
};
use lithify_base::bytewise;
use lithify_env::{EntryKind, Env, Fs, FsRef, MemFs, OpenOpts, OsRt, RtOptions, RtRef};
use lithify_tables::sst::{FullIndex, OpenTable, TableReader};

const DIRECTORY: &str = "/db";
const KEYS: u32 = 60;

fn settings() -> Settings {
    let mut s = tiny();
    s.auto_compaction = false;
    s.create_if_missing = false;
    s
}

fn runtime() -> RtRef {
    Arc::new(OsRt::new(RtOptions::default()))
}

fn env(fs: &MemFs, rt: &RtRef) -> Env {
    Env { fs: Arc::new(fs.clone()), rt: rt.clone() }
}

/// A small database and everything it ever was.
struct Past {
    /// Content after each write.
    states: Vec<Content>,
    /// How many writes are in tables.
    flushed: usize,
    closed: Image,
    running: Image,
}

impl Past {
    fn now(&self) -> &Content {
        self.states.last().unwrap()
    }
}

fn key(n: u32) -> Vec<u8> {
    format!("key{n:03}").into_bytes()
}

fn past(salt: u8, rt: &RtRef) -> Past {
    past_in(DIRECTORY, salt, rt)
}

/// Writes `salt`ed content: three levels of tables, range deletions, then a log.
fn past_in(directory: &str, salt: u8, rt: &RtRef) -> Past {
    let fs = MemFs::new();
    let mut s = settings();
    s.create_if_missing = true;
    let db = Builder::new(s).env(env(&fs, rt)).open(directory).unwrap();
    let mut rng = fastrand::Rng::with_seed(3);
    let mut states = vec![Content::new()];
    let mut step = |db: &Db, i: u32, durability| {
        let mut now = states.last().unwrap().clone();
        let options = WriteOptions::at(durability);
        let mut batch = WriteBatch::new();
        if i % 23 == 22 {
            let (from, to) = (key(i % KEYS), key(i % KEYS + 3));
            batch.delete_range(&from, &to).unwrap();
            now.retain(|k, _| !(&from..&to).contains(&k));
        }
        for part in 0..rng.u32(1..4) {
            let k = key(rng.u32(0..KEYS));
            if rng.u8(0..6) == 0 {
                batch.delete(&k).unwrap();
                now.remove(&k);
            } else {
                let len = rng.usize(0..150);
                let v: Vec<u8> = (0..len).map(|j| j as u8 ^ salt ^ (i + part) as u8).collect();
                batch.put(&k, &v).unwrap();
                now.insert(k, v);
            }
        }
        db.write_opt(&batch, &options).unwrap();
        states.push(now);
    };
    for i in 0..240 {
        step(&db, i, Durability::Os);
        match i {
            80 => db.compact_range(None, None).unwrap(),
            140 | 200 | 239 => db.flush().unwrap(),
            _ => {}
        }
    }
    let flushed = 240;
    for i in 240..300 {
        step(&db, i, if i % 9 == 0 { Durability::Sync } else { Durability::Os });
    }
    // Files that are not read any more would only dilute the damage.
    let mut running = image::take(&fs, directory);
    while names(&running, "log").iter().filter(|name| !running[*name].is_empty()).count() > 1 {
        std::thread::sleep(Duration::from_millis(5));
        running = image::take(&fs, directory);
    }
    db.close().unwrap();
    Past { states, flushed, closed: image::take(&fs, directory), running }
}

/// What became of a damaged directory.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Fate {
    /// Everything is there.
    Whole,
    /// So many of the writes are there, in order.
    Prefix(usize),
    /// The open, or a read, says what is wrong.
    Told,
}

/// Opens and reads everything there is. Panics at any wrong answer.
fn examine(fs: &MemFs, rt: &RtRef, past: &Past, story: &str) -> Fate {
    let open = Builder::new(settings()).env(env(fs, rt)).open(DIRECTORY);
    let db = match open {
        Ok(db) => db,
        Err(e) => {
            typed(&e, story);
            return Fate::Told;
        }
    };
    let content = scan(&db);
    let state = match &content {
        Ok(content) => {
            let found = past.states.iter().rposition(|s| s == content);
            let at = found.unwrap_or_else(|| panic!("{story}: a scan shows what never was"));
            Some(at)
        }
        Err(e) => {
            typed(e, story);
            None
        }
    };
    // If the scan ended early, single reads still tell the truth or an error.
    let truth = state.map_or(past.now(), |at| &past.states[at]);
    for n in 0..KEYS + 2 {
        match db.get(key(n)) {
            Ok(value) => {
                let expected = truth.get(&key(n)).map(Vec::as_slice);
                assert_eq!(value.as_deref(), expected, "{story}: a wrong answer for key {n}");
            }
            Err(e) => typed(&e, story),
        }
    }
    partly(&db, truth, story);
    // Closing may fail, and must not hang.
    let _ = db.close();
    match state {
        Some(at) if at + 1 == past.states.len() => Fate::Whole,
        Some(at) => Fate::Prefix(at),
        None => Fate::Told,
    }
}

/// A scan that meets an error has shown only entries that are there, and skipped none.
fn partly(db: &Db, truth: &Content, story: &str) {
    let Ok(mut iter) = db.iter() else { return };
    iter.seek_to_first();
    for (k, v) in truth {
        if !iter.valid() {
            break;
        }
        assert_eq!((iter.key(), iter.value()), (&k[..], &v[..]), "{story}");
        iter.next();
    }
    iter.seek_to_last();
    for (k, v) in truth.iter().rev() {
        if !iter.valid() {
            break;
        }
        assert_eq!((iter.key(), iter.value()), (&k[..], &v[..]), "{story}, backward");
        iter.prev();
    }
}

/// An error a user can do something with: of a kind that damage can have, with the file's name.
fn typed(e: &Error, story: &str) {
    use ErrorKind::{Corruption, InvalidArgument, Io, NotFound, Unsupported};
    let kinds = [Corruption, InvalidArgument, Io, NotFound, Unsupported];
    assert!(kinds.contains(&e.kind()), "{story}: {e:?}");
    let text = e.to_string();
    assert!(text.contains(DIRECTORY) || text.contains(".sst"), "{story}: no file in `{text}`");
}

/// One random change; what was done, for people. Small files get as much as large ones.
fn damage(image: &mut Image, rng: &mut fastrand::Rng) -> (String, String) {
    let names: Vec<String> = image
        .iter()
        .filter(|(n, b)| !b.is_empty() && !["LOCK", "EVENTS"].contains(&kind(n)))
        .map(|(n, _)| n.clone())
        .collect();
    let name = names[rng.usize(0..names.len())].clone();
    let bytes = image.get_mut(&name).unwrap();
    let what = match rng.u8(0..10) {
        0..3 => {
            let len = rng.usize(0..bytes.len());
            bytes.truncate(len);
            format!("{name} cut to {len} bytes")
        }
        3 => {
            let len = rng.usize(1..=bytes.len().min(64));
            let at = rng.usize(0..=bytes.len() - len);
            bytes[at..at + len].fill(0);
            format!("{len} bytes of {name} from {at} zeroed")
        }
        4 => {
            let more = rng.usize(1..300);
            bytes.extend((0..more).map(|_| rng.u8(..)));
            format!("{more} bytes appended to {name}")
        }
        _ => {
            let (at, bit) = (rng.usize(0..bytes.len()), rng.u8(0..8));
            bytes[at] ^= 1 << bit;
            format!("bit {bit} of byte {at} of {name} flipped")
        }
    };
    (name, what)
}

fn number_from(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().map_or(default, |text| {
        text.parse().unwrap_or_else(|_| panic!("{name} = `{text}` is not a number"))
    })
}

#[test]
fn random_damage_is_told_or_harmless() {
    let count = number_from("LITHIFY_DAMAGES", 1000);
    let seed = number_from("LITHIFY_SEED", 1);
    let rt = runtime();
    let past = Arc::new(past(0, &rt));
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut fates: BTreeMap<&str, [u64; 3]> = BTreeMap::new();
    for i in 0..count {
        let closed = rng.bool();
        let mut image = if closed { past.closed.clone() } else { past.running.clone() };
        let (name, what) = damage(&mut image, &mut rng);
        let which = if closed { "closed" } else { "running" };
        let story = format!("seed {seed}, damage {i}: {what} ({which})");
        let (fs, rt, past2) = (image::put(&image, DIRECTORY), rt.clone(), past.clone());
        let fate = {
            let story = story.clone();
            within(Duration::from_secs(20), &story.clone(), move || {
                examine(&fs, &rt, &past2, &story)
            })
        };
        let fates = fates.entry(kind(&name)).or_default();
        match (fate, kind(&name)) {
            (Fate::Told, _) => fates[0] += 1,
            (Fate::Whole, _) => fates[1] += 1,
            (Fate::Prefix(at), "log") => {
                assert!(!closed, "{story}: the log was sealed, and {at} writes are left");
                assert!(at >= past.flushed, "{story}: writes in tables are gone");
                fates[2] += 1;
            }
            (Fate::Prefix(_), "MANIFEST") => fates[2] += 1,
            (Fate::Prefix(at), _) => panic!("{story}: only {at} writes are left"),
        }
    }
    println!("{count} damages, seed {seed}: [told, harmless, torn tail] {fates:?}");
    // Every byte of a table is under some check and read here; zeros may be zeroed.
    let [told, harmless, _] = fates["table"];
    assert!(told > 3 * harmless, "most damage to tables is told");
}

/// What one does to a directory by hand.
fn with(past: &Past, rt: &RtRef, story: &str, change: impl FnOnce(&mut Image, &mut MemFs)) -> Fate {
    let mut image = past.closed.clone();
    let mut fs = MemFs::new();
    change(&mut image, &mut fs);
    let full = image::put(&image, DIRECTORY);
    for entry in fs.list(Path::new("/")).unwrap().into_iter().filter(|e| e.kind == EntryKind::Dir) {
        full.create_dir_all(&Path::new(DIRECTORY).join(entry.name)).unwrap();
    }
    examine(&full, rt, past, story)
}

fn names(image: &Image, of: &str) -> Vec<String> {
    image.keys().filter(|n| kind(n) == of).cloned().collect()
}

#[test]
fn missing_empty_and_misplaced_files_are_told() {
    let rt = runtime();
    let past = past(0, &rt);
    for name in past.closed.keys() {
        let expected = match kind(name) {
            // The manifest knows the database's id; the lock and the event log hold nothing.
            "IDENTITY" | "LOCK" | "EVENTS" | "OPTIONS" => Fate::Whole,
            _ => Fate::Told,
        };
        let gone = with(&past, &rt, &format!("{name} removed"), |image, _| {
            image.remove(name);
        });
        assert_eq!(gone, expected, "{name} removed");
        let empty = with(&past, &rt, &format!("{name} emptied"), |image, _| {
            image.get_mut(name).unwrap().clear();
        });
        let expected =
            if kind(name) == "IDENTITY" { vec![Fate::Whole, Fate::Told] } else { vec![expected] };
        assert!(expected.contains(&empty), "{name} emptied: {empty:?}");
        let directory = with(&past, &rt, &format!("{name} a directory"), |image, fs| {
            image.remove(name);
            fs.create_dir_all(&Path::new("/").join(name)).unwrap();
        });
        if !["EVENTS", "OPTIONS", "IDENTITY"].contains(&kind(name)) {
            assert_eq!(directory, Fate::Told, "{name} a directory");
        }
    }
}

#[test]
fn tables_of_another_database_are_told() {
    let rt = runtime();
    let (ours, theirs) = (past(0, &rt), past_in("/other", 1, &rt));
    for name in names(&ours.closed, "table") {
        let fate = with(&ours, &rt, &format!("a foreign {name}"), |image, _| {
            image.insert(name.clone(), theirs.closed[&name].clone());
        });
        assert_eq!(fate, Fate::Told, "a foreign {name}");
    }
    let fate = with(&ours, &rt, "a foreign manifest", |image, _| {
        let name = names(image, "MANIFEST").remove(0);
        image.insert(name.clone(), theirs.closed[&name].clone());
    });
    assert_eq!(fate, Fate::Told, "a foreign manifest");
}

#[test]
fn swapped_tables_are_told() {
    let rt = runtime();
    let past = past(0, &rt);
    let tables = names(&past.closed, "table");
    assert!(tables.len() >= 3, "{tables:?}");
    for pair in tables.windows(2) {
        let fate = with(&past, &rt, &format!("{pair:?} swapped"), |image, _| {
            let (a, b) = (image[&pair[0]].clone(), image[&pair[1]].clone());
            image.insert(pair[0].clone(), b);
            image.insert(pair[1].clone(), a);
        });
        assert_eq!(fate, Fate::Told, "{pair:?} swapped");
    }
}

/// Equal keys, equal sizes: only what is inside tells such tables apart.
#[test]
fn swapped_twins_are_told() {
    let rt = runtime();
    let fs = MemFs::new();
    let mut s = settings();
    s.create_if_missing = true;
    let db = Builder::new(s).env(env(&fs, &rt)).open(DIRECTORY).unwrap();
    let mut now = Content::new();
    for generation in [b'a', b'b'] {
        for n in 0..50 {
            db.put(key(n), [generation; 20]).unwrap();
            now.insert(key(n), vec![generation; 20]);
        }
        db.flush().unwrap();
    }
    db.close().unwrap();
    let closed = image::take(&fs, DIRECTORY);
    let past = Past { states: vec![now], flushed: 0, running: closed.clone(), closed };
    let tables = names(&past.closed, "table");
    let [a, b] = &tables[..] else { panic!("two tables, not {tables:?}") };
    assert_eq!(past.closed[a].len(), past.closed[b].len(), "twins");
    let fate = with(&past, &rt, "twins swapped", |image, _| {
        let (x, y) = (image[a].clone(), image[b].clone());
        image.insert(a.clone(), y);
        image.insert(b.clone(), x);
    });
    assert_eq!(fate, Fate::Told);
}

/// Blocks of one size in one table: only their sums know where each belongs.
#[test]
fn swapped_blocks_are_told() {
    let rt = runtime();
    let fs = MemFs::new();
    let mut s = settings();
    s.create_if_missing = true;
    s.compression_upper = Compression::None;
    let db = Builder::new(s).env(env(&fs, &rt)).open(DIRECTORY).unwrap();
    let mut now = Content::new();
    for n in 0..KEYS {
        db.put(key(n), [n as u8; 46]).unwrap();
        now.insert(key(n), vec![n as u8; 46]);
    }
    db.flush().unwrap();
    db.close().unwrap();
    let closed = image::take(&fs, DIRECTORY);
    let past = Past { states: vec![now], flushed: 0, running: closed.clone(), closed };
    let tables = names(&past.closed, "table");
    let [name] = &tables[..] else { panic!("one table, not {tables:?}") };
    let file = fs.open(&Path::new(DIRECTORY).join(name), OpenOpts::read()).unwrap();
    let table = TableReader::open(OpenTable::new(file, name.clone(), bytewise())).unwrap();
    let full = FullIndex::of(table).unwrap();
    let places: Vec<_> = full.block_fences().map(|f| (f.at.offset as usize, f.at.size)).collect();
    let mut swapped = 0;
    for (i, &(a, size)) in places.iter().enumerate() {
        for &(b, _) in places[..i].iter().filter(|p| p.1 == size) {
            let story = format!("blocks at {a} and {b} swapped");
            let fate = with(&past, &rt, &story, |image, _| {
                let bytes = image.get_mut(name).unwrap();
                // With their sums, five bytes behind each.
                (0..size as usize + 5).for_each(|i| bytes.swap(a + i, b + i));
            });
            assert_eq!(fate, Fate::Told, "{story}");
            swapped += 1;
        }
    }
    assert!(swapped > 0, "no two blocks of one size: {places:?}");
}

#[test]
fn a_current_that_leads_nowhere_is_told() {
    let rt = runtime();
    let past = past(0, &rt);
    let contents: [&[u8]; 7] = [
        b"MANIFEST-999999\n",
        b"MANIFEST-000001",
        b"\n",
        b"../../etc/passwd\n",
        b"MANIFEST-99999999999999999999999\n",
        b"\xff\xfe\x00\x00",
        &[b'x'; 10_000],
    ];
    for content in contents {
        let story = format!("CURRENT = {}", content[..content.len().min(40)].escape_ascii());
        let fate = with(&past, &rt, &story, |image, _| {
            image.insert("CURRENT".to_owned(), content.to_vec());
        });
        assert_eq!(fate, Fate::Told, "{story}");
    }
}

#[test]
fn foreign_files_stay_and_do_no_harm() {
    let rt = runtime();
    let past = past(0, &rt);
    let foreign = ["notes.txt", "lost+found", "12.sst.bak", "MANIFEST-", "a.log", "0001234.sst"];
    let mut image = past.closed.clone();
    for name in foreign {
        image.insert(name.to_owned(), b"mine".to_vec());
    }
    // Like ours, but made by another database.
    let other = past_in("/other", 1, &rt).closed;
    let table = names(&other, "table").remove(0);
    image.insert("987654.sst".to_owned(), other[&table].clone());
    let fs = image::put(&image, DIRECTORY);
    assert_eq!(examine(&fs, &rt, &past, "foreign files"), Fate::Whole);
    let after = image::take(&fs, DIRECTORY);
    for name in foreign {
        assert!(after.contains_key(name), "{name} is gone");
    }
    assert!(after.contains_key("987654.sst"));
    // And it does not stand in the way of what is written later.
    let env = env(&fs, &rt);
    let db = Builder::new(settings()).env(env).open(DIRECTORY).unwrap();
    db.put(key(0), b"new").unwrap();
    db.flush().unwrap();
    db.close().unwrap();
    assert!(image::take(&fs, DIRECTORY).contains_key("987654.sst"));
}

#[test]
fn a_directory_that_is_none_is_told() {
    let rt = runtime();
    let fs = MemFs::new();
    let fs_ref: FsRef = Arc::new(fs.clone());
    fs_ref.create(Path::new("/file"), OpenOpts::write()).unwrap();
    let open = |path: &str, create| {
        let mut s = settings();
        s.create_if_missing = create;
        Builder::new(s).env(env(&fs, &rt)).open(path).unwrap_err()
    };
    assert_eq!(open("/nowhere", false).kind(), ErrorKind::NotFound);
    assert!(fs_ref.list(Path::new("/")).unwrap().iter().all(|e| e.name != "nowhere"));
    assert_eq!(open("/file", true).kind(), ErrorKind::Io);
    assert_eq!(open("/file/db", true).kind(), ErrorKind::Io);
    assert!(open("/file/db", true).to_string().contains("/file"));
}
