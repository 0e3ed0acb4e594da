//! Every single bit of a small reference image flipped, every file of it cut at every length,
//! removed and replaced (reliability F10, F11, F12, contract P4, P5): reading gives what was written or a
//! typed error, and `verify` finds every one of them.
//!
//! The image was closed in order, so all of it was promised. It has tables in three levels,
//! range deletions, a manifest with several edits, an options file and a log.

#![allow(clippy::disallowed_methods, reason = "a watchdog shared with other tests")]

use std::sync::Arc;

use crate::common::image::{self, Image, kind};
use crate::common::{Content, scan, tiny};
use lithify::verify::{Report, verify};
use lithify::{Builder, Db, Durability, ErrorKind, Settings, WriteBatch, WriteOptions};
use lithify_env::{Env, MemFs, OsRt, RtOptions, RtRef};

const DIRECTORY: &str = "/db";
const KEYS: u32 = 24;

fn settings() -> Settings {
    let mut s = tiny();
    s.auto_compaction = false;
    s.create_if_missing = false;
    s
}

fn env(fs: &MemFs, rt: &RtRef) -> Env {
    Env { fs: Arc::new(fs.clone()), rt: rt.clone() }
}

fn key(n: u32) -> Vec<u8> {
    format!("key{n:02}").into_bytes()
}

/// The image and what it holds. `seed` decides the content.
fn reference(seed: u64, rt: &RtRef) -> (Image, Content) {
    let fs = MemFs::new();
    let mut s = settings();
    s.create_if_missing = true;
    let db = Builder::new(s).env(env(&fs, rt)).open(DIRECTORY).unwrap();
    let mut now = Content::new();
    let mut rng = fastrand::Rng::with_seed(seed);
    for step in 0..44 {
        let mut batch = WriteBatch::new();
        let k = key(rng.u32(0..KEYS));
        match step % 11 {
            4 => {
                batch.delete(&k).unwrap();
                now.remove(&k);
            }
            8 => {
                let (from, to) = (k, key(rng.u32(KEYS / 2..KEYS)));
                if from < to {
                    batch.delete_range(&from, &to).unwrap();
                    now.retain(|k, _| !(&from..&to).contains(&k));
                }
            }
            _ => {
                let v: Vec<u8> = (0..rng.usize(0..40)).map(|_| rng.u8(..)).collect();
                batch.put(&k, &v).unwrap();
                now.insert(k, v);
            }
        }
        let sync = if step % 3 == 0 { Durability::Sync } else { Durability::Os };
        db.write_opt(&batch, &WriteOptions::at(sync)).unwrap();
        match step {
            12 => db.compact_range(None, None).unwrap(),
            22 | 33 => db.flush().unwrap(),
            _ => {}
        }
    }
    db.close().unwrap();
    let mut image = image::take(&fs, DIRECTORY);
    // Text for people, no part of the database, and without sums.
    image.remove("EVENTS");
    (image, now)
}

fn check(fs: &MemFs) -> lithify::Result<Report> {
    verify(Arc::new(fs.clone()), DIRECTORY, None, &mut |_| {})
}

/// Whether everything that can be read is right; a typed error is.
fn reads_right(fs: &MemFs, rt: &RtRef, truth: &Content, story: &str) {
    let builder = Builder::new(settings()).env(env(fs, rt));
    let db = match builder.open_read_only(DIRECTORY) {
        Ok(db) => db,
        Err(e) => return typed(&e, story),
    };
    match scan(&db) {
        Ok(content) => assert!(content == *truth, "{story}: a scan shows what never was"),
        Err(e) => {
            typed(&e, story);
            gets_right(&db, truth, story);
        }
    }
}

fn gets_right(db: &Db, truth: &Content, story: &str) {
    for n in 0..KEYS {
        match db.get(key(n)) {
            Ok(value) => {
                assert_eq!(value.as_deref(), truth.get(&key(n)).map(Vec::as_slice), "{story}");
            }
            Err(e) => typed(&e, story),
        }
    }
}

fn typed(e: &lithify::Error, story: &str) {
    use ErrorKind::{Corruption, InvalidArgument, Io, NotFound, Unsupported};
    let kinds = [Corruption, InvalidArgument, Io, NotFound, Unsupported];
    assert!(kinds.contains(&e.kind()), "{story}: {e:?}");
}

fn runtime() -> RtRef {
    Arc::new(OsRt::new(RtOptions::default()))
}

#[test]
fn the_reference_image_is_clean() {
    let rt = runtime();
    for seed in 0..20 {
        let (image, truth) = reference(seed, &rt);
        let report = check(&image::put(&image, DIRECTORY)).unwrap();
        assert!(report.is_clean(), "seed {seed}: {:?}", report.findings);
        assert_eq!(report.keys, truth.len() as u64, "seed {seed}");
        assert!(report.tables >= 3 && report.logs == 1 && report.batches > 3, "{report:?}");
        assert!(report.foreign.is_empty() && report.orphans.is_empty(), "{report:?}");
        let bytes: usize = image.values().map(Vec::len).sum();
        assert!((6 << 10..12 << 10).contains(&bytes), "{bytes} bytes are about 8 KiB");
    }
}

#[test]
fn every_flipped_bit_is_told_or_harmless_and_found() {
    let rt = runtime();
    let (image, truth) = reference(1, &rt);
    let (mut flips, mut missed) = (0, Vec::new());
    for (name, bytes) in &image {
        for bit in 0..bytes.len() * 8 {
            let story = format!("{name}, byte {}, bit {}", bit / 8, bit % 8);
            let mut damaged = image.clone();
            damaged.get_mut(name).unwrap()[bit / 8] ^= 1 << (bit % 8);
            let fs = image::put(&damaged, DIRECTORY);
            reads_right(&fs, &rt, &truth, &story);
            let report = check(&fs).unwrap();
            if report.is_clean() {
                missed.push(story.clone());
            }
            let named = |file: &str| file.starts_with(DIRECTORY);
            for finding in &report.findings {
                let file = finding.error.file();
                assert!(file.is_some_and(named), "{story}: {:?} names no file", finding.error);
            }
            flips += 1;
        }
    }
    println!("{flips} flips");
    assert!(missed.is_empty(), "{} of {flips} not found: {:?}", missed.len(), missed);
}

/// An image whose last write was flushed, so that no log is needed, written at a table version
/// whose footer has no sum.
fn flushed(rt: &RtRef, format_version: u32) -> (Image, Content) {
    let fs = MemFs::new();
    let mut s = settings();
    s.create_if_missing = true;
    s.format_version = format_version;
    let db = Builder::new(s).env(env(&fs, rt)).open(DIRECTORY).unwrap();
    let mut now = Content::new();
    for n in 0..KEYS {
        db.put(key(n), [n as u8; 30]).unwrap();
        now.insert(key(n), vec![n as u8; 30]);
        if n == KEYS / 2 {
            db.flush().unwrap();
        }
    }
    db.flush().unwrap();
    db.close().unwrap();
    let mut image = image::take(&fs, DIRECTORY);
    image.remove("EVENTS");
    (image, now)
}

/// What both ways of opening read, and whether `verify` finds something.
fn examine(image: &Image, rt: &RtRef, truth: &Content, story: &str) -> Option<Report> {
    reads_right(&image::put(image, DIRECTORY), rt, truth, story);
    let fs = image::put(image, DIRECTORY);
    if let Ok(db) = Builder::new(settings()).env(env(&fs, rt)).open(DIRECTORY) {
        match scan(&db) {
            Ok(content) => assert!(content == *truth, "{story}: opened for writing"),
            Err(e) => typed(&e, story),
        }
        let _ = db.close();
    }
    check(&image::put(image, DIRECTORY)).ok().filter(Report::is_clean)
}

#[test]
fn flushed_images_survive_every_flip_of_manifest_and_footers() {
    let rt = runtime();
    for version in [5, 6] {
        let (image, truth) = flushed(&rt, version);
        let report = check(&image::put(&image, DIRECTORY)).unwrap();
        assert!(report.is_clean(), "version {version}: {:?}", report.findings);
        for (name, bytes) in &image {
            let from = match kind(name) {
                "table" => bytes.len() - 53,
                // The largest file, and the same under both but for a digit.
                "OPTIONS" if version == 5 => continue,
                _ => 0,
            };
            for bit in from * 8..bytes.len() * 8 {
                let story = format!("{name}, byte {}, bit {}", bit / 8, bit % 8);
                let mut damaged = image.clone();
                damaged.get_mut(name).unwrap()[bit / 8] ^= 1 << (bit % 8);
                let clean = examine(&damaged, &rt, &truth, &story);
                assert!(clean.is_none(), "version {version}: {story} is not found");
            }
        }
    }
}

/// What is left after a cut may be what a crash leaves: then it opens with all data, and `verify`
/// finds nothing wrong, but names the files that the lost end of the manifest spoke of. A log that
/// was flushed, and is kept only until there is another one, is named as not needed.
#[test]
fn files_cut_at_every_length_are_told_or_harmless_and_found() {
    let rt = runtime();
    for (image, truth) in [reference(1, &rt), flushed(&rt, 6)] {
        for (name, bytes) in &image {
            for len in 0..bytes.len() {
                let story = format!("{name} cut to {len} of {} bytes", bytes.len());
                let mut damaged = image.clone();
                damaged.get_mut(name).unwrap().truncate(len);
                if let Some(report) = examine(&damaged, &rt, &truth, &story) {
                    let obsolete = report.orphans.contains(name);
                    let lost = kind(name) == "MANIFEST" && !report.orphans.is_empty();
                    // The edit that notes the last log is lost, and the log is there.
                    let noted = kind(name) == "MANIFEST" && report.keys == truth.len() as u64;
                    assert!(obsolete || lost || noted, "{story} is not found");
                }
            }
        }
    }
}

#[test]
fn removed_grown_and_replaced_files_are_told_or_harmless_and_found() {
    let rt = runtime();
    let (image, truth) = reference(1, &rt);
    let (other, _) = reference(2, &runtime());
    for name in image.keys() {
        let removed = Image::from_iter(image.clone().into_iter().filter(|(n, _)| n != name));
        let clean = examine(&removed, &rt, &truth, &format!("{name} removed"));
        // Nothing in them is needed, and copies made by a checkpoint have none.
        let needless = ["LOCK", "OPTIONS"].contains(&kind(name));
        assert_eq!(clean.is_some(), needless, "{name} removed");
        for more in [&b"\0"[..], b"\n", b"junk", &[0; 64]] {
            let mut grown = image.clone();
            grown.get_mut(name).unwrap().extend_from_slice(more);
            if kind(name) == "IDENTITY" && more == b"\n" {
                continue; // RocksDB's ends that way.
            }
            let story = format!("`{}` behind {name}", more.escape_ascii());
            // A log goes on with zeros where it is written through a mapping.
            let zeros = kind(name) == "log" && more.iter().all(|byte| *byte == 0);
            assert_eq!(examine(&grown, &rt, &truth, &story).is_some(), zeros, "{story}");
        }
        if kind(name) == "LOCK" || kind(name) == "CURRENT" {
            continue;
        }
        let twin = other.keys().find(|n| kind(n) == kind(name)).unwrap();
        let mut replaced = image.clone();
        replaced.insert(name.clone(), other[twin].clone());
        let clean = examine(&replaced, &rt, &truth, &format!("another {name}"));
        assert_eq!(clean.is_some(), kind(name) == "OPTIONS", "another {name}");
    }
}
