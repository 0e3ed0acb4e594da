//! What comes back from damaged directories: everything in undamaged blocks, exactly; of the rest,
//! the report says what it was.
//!
//! The database has every version of its keys in one place only: each key was written once and a
//! few were deleted. So a key outside all lost stretches must come back as it was, and a key that
//! does come back has the one value it ever had.

#![allow(clippy::disallowed_methods, reason = "a watchdog shared with other tests")]

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::common::image::{self, Image, kind};
use crate::common::{Content, scan, tiny, within};
use lithify::salvage::{Lost, SalvageReport};
use lithify::{Builder, Compression, ErrorKind, IngestOptions, ReverseBytewise, Settings};
use lithify_env::{Env, Fs, MemFs, OsRt, RtOptions, RtRef};

const DIRECTORY: &str = "/db";
const TO: &str = "/new";
const KEYS: u32 = 400;

fn settings() -> Settings {
    let mut s = tiny();
    s.auto_compaction = false;
    s
}

fn env(fs: &MemFs, rt: &RtRef) -> Env {
    Env { fs: Arc::new(fs.clone()), rt: rt.clone() }
}

fn runtime() -> RtRef {
    Arc::new(OsRt::new(RtOptions::default()))
}

fn key(n: u32) -> Vec<u8> {
    format!("key{n:04}").into_bytes()
}

fn value(n: u32) -> Vec<u8> {
    (0..20 + n % 60).map(|i| (n * 7 + i) as u8).collect()
}

/// Which keys were deleted later, by point or range deletions.
fn deleted(n: u32) -> bool {
    n % 17 == 5 || (200..220).contains(&n)
}

fn truth() -> Content {
    let keys = (0..KEYS).filter(|&n| !deleted(n));
    keys.map(|n| (key(n), value(n))).collect()
}

/// Four generations of keys, scattered: two compacted to the bottom, one in level 0, the
/// deletions in level 0, the last in the log.
fn damaged(rt: &RtRef, change: impl FnOnce(&mut Settings)) -> Image {
    let fs = MemFs::new();
    let mut s = settings();
    change(&mut s);
    let db = Builder::new(s).env(env(&fs, rt)).open(DIRECTORY).unwrap();
    for generation in 0..4 {
        for n in (0..KEYS).filter(|n| n % 4 == generation) {
            db.put(key(n), value(n)).unwrap();
        }
        match generation {
            1 => db.compact_range(None, None).unwrap(),
            2 => db.flush().unwrap(),
            _ => {}
        }
    }
    (0..KEYS).filter(|&n| n % 17 == 5).for_each(|n| db.delete(key(n)).unwrap());
    db.delete_range(key(200), key(220)).unwrap();
    db.close().unwrap();
    let mut image = image::take(&fs, DIRECTORY);
    image.remove("EVENTS");
    image
}

/// Salvages `image`; the report and what the new database holds.
fn salvage(image: &Image, rt: &RtRef) -> (SalvageReport, Content) {
    let fs = image::put(image, DIRECTORY);
    let report = Builder::new(settings())
        .env(env(&fs, rt))
        .salvage(DIRECTORY, TO, &mut |_| {})
        .unwrap_or_else(|e| panic!("{e}"));
    assert!(image::take(&fs, DIRECTORY) == *image, "the damaged directory is as it was");
    let report_of_new =
        lithify::verify::verify(Arc::new(fs.clone()), TO, None, &mut |_| {}).unwrap();
    assert!(report_of_new.is_clean(), "{:?}", report_of_new.findings);
    let mut s = settings();
    s.create_if_missing = false;
    let db = Builder::new(s).env(env(&fs, rt)).open(TO).unwrap();
    let content = scan(&db).unwrap();
    db.close().unwrap();
    assert_eq!(content.len() as u64, report.keys);
    (report, content)
}

/// Whether the key may be affected by what is lost.
fn may_be_lost(lost: &[Lost], key: &[u8]) -> bool {
    lost.iter().any(|l| {
        l.from.as_deref().is_none_or(|from| from <= key)
            && l.up_to.as_deref().is_none_or(|up_to| key <= up_to)
    })
}

/// Every key outside the lost stretches is as it was, and no value was ever another.
fn is_right(story: &str, report: &SalvageReport, content: &Content) {
    let truth = truth();
    for n in 0..KEYS {
        let (k, found) = (key(n), content.get(&key(n)));
        if let Some(found) = found {
            assert!(*found == value(n), "{story}: key {n} has a value that never was");
        }
        if !may_be_lost(&report.lost, &k) {
            assert_eq!(found, truth.get(&k), "{story}: key {n} is not lost; {:?}", report.lost);
        }
    }
}

fn names(image: &Image, of: &str) -> Vec<String> {
    image.keys().filter(|n| kind(n) == of).cloned().collect()
}

#[test]
fn an_undamaged_database_comes_back_whole() {
    let rt = runtime();
    for codec in [Compression::None, Compression::Lz4] {
        let image = damaged(&rt, |s| (s.compression_upper, s.compression_lower) = (codec, codec));
        let (report, content) = salvage(&image, &rt);
        assert!(report.lost.is_empty() && report.notes.is_empty(), "{report:?}");
        assert!(content == truth());
        assert!(report.tables >= 2 && report.batches > 100 && report.blocks > 20, "{report:?}");
    }
}

/// Bytes each of which could end a block keep a salvage busy for seconds, and not until all were tried.
#[test]
fn a_table_of_possible_ends_is_given_up() {
    let rt = runtime();
    let mut image = damaged(&rt, |_| {});
    let table = names(&image, "table").remove(0);
    image.insert(table.clone(), vec![1; (2 << 20) + 100]);
    let (report, content) =
        within(Duration::from_secs(100), "the search", move || salvage(&image, &runtime()));
    assert!(report.lost.iter().any(|lost| lost.file == table), "{:?}", report.lost);
    is_right("possible ends", &report, &content);
}

/// Each block of each table damaged by itself: the report names its keys and its entries, and
/// nothing else is missing.
#[test]
fn a_damaged_block_costs_its_own_keys() {
    let rt = runtime();
    let image = damaged(&rt, |_| {});
    let whole = salvage(&image, &rt).0;
    let mut blocks = 0;
    for table in names(&image, "table") {
        let mut at = 0;
        while at < image[&table].len() {
            let mut broken = image.clone();
            broken.get_mut(&table).unwrap()[at] ^= 0x20;
            let (report, content) = salvage(&broken, &rt);
            let story = format!("{table}, byte {at}");
            is_right(&story, &report, &content);
            let Some(lost) = report.lost.first() else {
                // Counts per block are nothing that reading needs.
                assert!(content == truth() && report.entries == whole.entries, "{story}");
                at += 37;
                continue;
            };
            assert_eq!(lost.file, table);
            if let Some(entries) = lost.entries {
                assert_eq!(report.lost.len(), 1, "{story}: {:?}", report.lost);
                assert_eq!(report.entries + entries, whole.entries, "{story}");
                blocks += 1;
                at = (lost.offset.unwrap() + lost.bytes) as usize;
            } else {
                // Behind the data: every entry is still found, block by block.
                assert_eq!(report.entries, whole.entries, "{story}: {:?}", report.lost);
                at += 37;
            }
        }
    }
    assert!(blocks > 20, "{blocks} blocks");
}

#[test]
fn a_table_cut_anywhere_keeps_its_first_blocks() {
    let rt = runtime();
    for codec in [Compression::None, Compression::Lz4] {
        let image = damaged(&rt, |s| (s.compression_upper, s.compression_lower) = (codec, codec));
        let whole = salvage(&image, &rt).0;
        for table in names(&image, "table") {
            let len = image[&table].len();
            let mut most = 0;
            for cut in (0..len).step_by(len / 12) {
                let mut broken = image.clone();
                broken.get_mut(&table).unwrap().truncate(cut);
                let (report, content) = salvage(&broken, &rt);
                is_right(&format!("{table} cut to {cut} of {len}"), &report, &content);
                assert!(!report.lost.is_empty());
                assert!(report.entries >= most, "a longer rest holds more");
                most = report.entries;
            }
            assert!(whole.entries - most < whole.entries / 2, "most of {table} came back");
        }
    }
}

#[test]
fn without_current_or_manifest_everything_comes_back() {
    let rt = runtime();
    let image = damaged(&rt, |_| {});
    let story = |what: &str, change: &dyn Fn(&mut Image)| {
        let mut broken = image.clone();
        change(&mut broken);
        let (report, content) = salvage(&broken, &rt);
        assert!(content == truth(), "{what}: {report:?}");
        report
    };
    let report = story("CURRENT removed", &|image| drop(image.remove("CURRENT")));
    assert!(report.manifest.is_some() && !report.notes.is_empty());
    story("CURRENT damaged", &|image| image.get_mut("CURRENT").unwrap()[3] ^= 1);
    let manifest = names(&image, "MANIFEST").remove(0);
    let report = story("no manifest", &|image| drop(image.remove(&manifest)));
    assert!(report.manifest.is_none());
    assert!(report.notes.iter().any(|n| n.contains("no manifest can be read")), "{report:?}");
    for at in (0..image[&manifest].len()).step_by(5) {
        let what = format!("{manifest}, byte {at}");
        story(&what, &|image| image.get_mut(&manifest).unwrap()[at] ^= 1);
        story(&what, &|image| image.get_mut(&manifest).unwrap().truncate(at));
    }
    story("only tables and logs", &|image| {
        image.retain(|name, _| ["table", "log"].contains(&kind(name)));
    });
}

#[test]
fn a_missing_table_is_named_with_its_keys() {
    let rt = runtime();
    let image = damaged(&rt, |_| {});
    for table in names(&image, "table") {
        let mut broken = image.clone();
        broken.remove(&table);
        let (report, content) = salvage(&broken, &rt);
        is_right(&format!("{table} removed"), &report, &content);
        assert_eq!(report.lost.len(), 1, "{:?}", report.lost);
        let lost = &report.lost[0];
        assert!(lost.file == table && lost.entries.unwrap() > 50 && lost.up_to.is_some());
        assert!(report.notes.iter().any(|n| n.contains("back although they were deleted")));
    }
}

/// The log was closed, so all of it was promised: writes behind a hole count.
#[test]
fn writes_behind_a_hole_in_a_sealed_log_count() {
    let rt = runtime();
    let image = damaged(&rt, |_| {});
    let log = names(&image, "log").remove(0);
    let whole = salvage(&image, &rt).0;
    let len = image[&log].len();
    for at in (100..len - 60).step_by(131) {
        let mut broken = image.clone();
        broken.get_mut(&log).unwrap()[at] ^= 1;
        let (report, content) = salvage(&broken, &rt);
        let missing = whole.batches - report.batches;
        assert_eq!(report.lost.len(), 1, "byte {at}: {:?}", report.lost);
        // A damaged length costs the rest of its 32 KiB, which is the rest of this log.
        let lost = &report.lost[0];
        assert_eq!(lost.file, log);
        assert!(missing == 1 || lost.offset.unwrap() + lost.bytes == len as u64, "{missing}");
        assert!(content.values().all(|v| !v.is_empty()));
        for n in (0..KEYS).filter(|n| n % 4 != 3 && !deleted(*n)) {
            assert_eq!(content.get(&key(n)), Some(&value(n)), "byte {at}: key {n} is in a table");
        }
    }
}

/// Nothing promised the end of a log that was never synced: behind damage it does not count, as
/// after any crash.
#[test]
fn writes_behind_a_hole_that_nothing_promised_are_left_out() {
    let rt = runtime();
    let fs = MemFs::new();
    let db = Builder::new(settings()).env(env(&fs, &rt)).open(DIRECTORY).unwrap();
    for n in 0..20 {
        db.put(key(n), value(n)).unwrap();
    }
    let mut image = image::take(&fs, DIRECTORY);
    let log = names(&image, "log").remove(0);
    let bytes = image.get_mut(&log).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    let (report, content) = salvage(&image, &rt);
    assert!((5..15).contains(&content.len()), "{} keys", content.len());
    let last = content.len() as u32;
    assert!((0..last).all(|n| content[&key(n)] == value(n)), "a prefix");
    assert_eq!(report.lost.len(), 1, "{:?}", report.lost);
    db.close().unwrap();
}

/// Of several versions the newest that can be read counts.
#[test]
fn the_newest_readable_version_counts() {
    let rt = runtime();
    let fs = MemFs::new();
    let db = Builder::new(settings()).env(env(&fs, &rt)).open(DIRECTORY).unwrap();
    for generation in [b"old", b"new"] {
        for n in 0..30 {
            db.put(key(n), generation).unwrap();
        }
        db.flush().unwrap();
    }
    db.delete(key(0)).unwrap();
    db.flush().unwrap();
    db.close().unwrap();
    let image = image::take(&fs, DIRECTORY);
    let tables = names(&image, "table");
    let [_, newer, deletion] = &tables[..] else { panic!("{tables:?}") };
    let gone = |names: &[&String]| {
        let mut broken = image.clone();
        names.iter().for_each(|name| drop(broken.remove(*name)));
        broken.retain(|name, _| !["MANIFEST", "log"].contains(&kind(name)));
        salvage(&broken, &rt).1
    };
    assert!(gone(&[]).values().all(|v| v == b"new") && gone(&[]).len() == 29);
    let without_newer = gone(&[newer]);
    assert!(without_newer.values().all(|v| v == b"old") && without_newer.len() == 29);
    // The lost deletion brings its key back, as the report says.
    assert_eq!(gone(&[deletion]).len(), 30);
}

#[test]
fn other_orders_and_refusals() {
    let rt = runtime();
    let fs = MemFs::new();
    let reverse = || Builder::new(settings()).comparator(Arc::new(ReverseBytewise));
    let db = reverse().env(env(&fs, &rt)).open(DIRECTORY).unwrap();
    db.put("a", "1").unwrap();
    db.put("b", "2").unwrap();
    db.flush().unwrap();
    db.close().unwrap();
    let salvage = |from: &str, to: &str| {
        let builder = Builder::new(settings()).env(env(&fs, &rt));
        builder.salvage(from, to, &mut |_| {})
    };
    assert_eq!(salvage(DIRECTORY, TO).unwrap().keys, 2);
    let db = reverse().env(env(&fs, &rt)).open(TO).unwrap();
    let mut iter = db.iter().unwrap();
    iter.seek_to_first();
    assert_eq!(iter.key(), b"b");
    drop(iter);
    db.close().unwrap();
    assert_eq!(salvage(DIRECTORY, TO).unwrap_err().kind(), ErrorKind::InvalidArgument);
    assert_eq!(salvage(DIRECTORY, DIRECTORY).unwrap_err().kind(), ErrorKind::InvalidArgument);
    fs.create_dir_all(Path::new("/empty")).unwrap();
    assert_eq!(salvage("/empty", "/other").unwrap_err().kind(), ErrorKind::NotFound);
}

/// Its entries are stored without a number. They are newer than what was there, and so are its range deletions, but not
/// than its own entries; with the manifest and where the table no longer opens.
#[test]
fn an_ingested_table_is_as_new_as_its_ingestion() {
    let rt = runtime();
    let fs = MemFs::new();
    let db = Builder::new(settings()).env(env(&fs, &rt)).open(DIRECTORY).unwrap();
    for n in 0..4 {
        db.put(key(n), b"old").unwrap();
    }
    db.delete(key(1)).unwrap();
    db.flush().unwrap();
    let mut table = db.table_builder("/t.sst").unwrap();
    table.delete_range(key(0), key(3)).unwrap();
    for n in 0..2 {
        table.put(key(n), b"new").unwrap();
    }
    table.finish().unwrap();
    db.ingest(&[Path::new("/t.sst")], &IngestOptions::default()).unwrap();
    let truth = scan(&db).unwrap();
    assert_eq!(truth.len(), 3);
    db.close().unwrap();
    let image = image::take(&fs, DIRECTORY);
    let (report, content) = salvage(&image, &rt);
    assert!(report.lost.is_empty(), "{:?}", report.lost);
    assert_eq!(content, truth);

    // Its footer is cut off, so that it is searched for blocks.
    let newest = image.keys().filter(|name| kind(name) == "table").max().unwrap().clone();
    let mut cut = image.clone();
    let bytes = cut.get_mut(&newest).unwrap();
    bytes.truncate(bytes.len() - 20);
    let (report, content) = salvage(&cut, &rt);
    assert!(!report.lost.is_empty());
    let news = |content: &Content| content.iter().filter(|(_, v)| **v == *b"new").count();
    assert_eq!(news(&content), 2, "{content:?}");

    // Only the manifest knows its number.
    let mut orphaned = image;
    orphaned.retain(|name, _| !matches!(kind(name), "MANIFEST" | "CURRENT"));
    let (report, _) = salvage(&orphaned, &rt);
    assert!(report.lost.iter().any(|lost| lost.to_string().contains("taken in")), "{report:?}");
}
