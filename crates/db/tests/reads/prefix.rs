//! Scans of the keys of one prefix, against a look at every key: with bounds, and by what a move was
//! to; with extractors that change from open to open; and that filters spare reads.
#![allow(clippy::disallowed_methods, reason = "counts what is read")]

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::common::{Content, tiny};
use lithify::prefix::{CappedPrefix, FixedPrefix};
use lithify::{Builder, Db, PrefixExtractor, PrefixExtractorRef, ReadOptions, Settings};
use lithify_env::{Env, FaultFs, Fs, MemFs, OsRt, RtOptions};

/// Up to the first `/`.
struct Folder;

impl PrefixExtractor for Folder {
    fn name(&self) -> &str {
        "folder"
    }
    fn prefix<'a>(&self, key: &'a [u8]) -> Option<&'a [u8]> {
        key.iter().position(|&b| b == b'/').map(|end| &key[..=end])
    }
}

/// Up to the last `/`, without it, so that a prefix has none itself.
struct Parent;

impl PrefixExtractor for Parent {
    fn name(&self) -> &str {
        "parent"
    }
    fn prefix<'a>(&self, key: &'a [u8]) -> Option<&'a [u8]> {
        key.iter().rposition(|&b| b == b'/').map(|end| &key[..end])
    }
}

fn env(fs: Arc<dyn Fs>, seed: u64) -> Env {
    let rt = OsRt::new(RtOptions { seed: Some(seed), ..RtOptions::default() });
    Env { fs, rt: Arc::new(rt) }
}

fn open(fs: &Arc<dyn Fs>, settings: Settings, by: Option<PrefixExtractorRef>) -> Db {
    let builder = Builder::new(settings).env(env(fs.clone(), 1));
    match by {
        Some(by) => builder.prefix_extractor(by),
        None => builder,
    }
    .open(Path::new("/db"))
    .unwrap()
}

fn any_key(rng: &mut fastrand::Rng) -> Vec<u8> {
    let folder: String = (0..rng.usize(1..4)).map(|_| rng.char('a'..='e')).collect();
    match rng.u8(0..8) {
        0 => folder.into_bytes(),
        _ => format!("{folder}/{:02}", rng.u8(0..40)).into_bytes(),
    }
}

/// An iterator whose moves to a key show its prefix only, and what it should show.
fn walk(db: &Db, model: &Content, by: &dyn PrefixExtractor, rng: &mut fastrand::Rng) {
    let options = ReadOptions { prefix_same_as_start: true, ..ReadOptions::default() };
    let mut iter = db.iter_opt(&options).unwrap();
    let keys: Vec<&Vec<u8>> = model.keys().collect();
    let (mut here, mut limit): (Option<usize>, Option<Vec<u8>>) = (None, None);
    for _ in 0..300 {
        let target = any_key(rng);
        let within = |at: Option<usize>, limit: &Option<Vec<u8>>| {
            at.filter(|&at| {
                let Some(key) = keys.get(at) else { return false };
                limit.is_none() || by.prefix(key) == limit.as_deref()
            })
        };
        let prefix = |key: &[u8]| by.prefix(key).map(<[u8]>::to_vec);
        let first_from = keys.partition_point(|k| k[..] < target[..]);
        match rng.u8(0..12) {
            0..3 => {
                iter.seek(&target);
                limit = prefix(&target);
                here = within(Some(first_from), &limit);
            }
            3 => {
                iter.seek_for_prev(&target);
                limit = prefix(&target);
                let behind = keys.partition_point(|k| k[..] <= target[..]);
                here = within(behind.checked_sub(1), &limit);
            }
            4 => {
                iter.seek_to_first();
                here = Some(0);
                limit = prefix(keys[0]);
            }
            5 => {
                iter.seek_to_last();
                here = Some(keys.len() - 1);
                limit = prefix(keys[keys.len() - 1]);
            }
            6..10 => {
                iter.next();
                here = within(here.map(|at| at + 1), &limit);
            }
            _ => {
                iter.prev();
                here = within(here.and_then(|at| at.checked_sub(1)), &limit);
            }
        }
        iter.status().unwrap();
        let shown = iter.valid().then(|| iter.key().to_vec());
        let wanted = here.map(|at| keys[at].clone());
        let show = |key: &Option<Vec<u8>>| key.as_ref().map(|k| k.escape_ascii().to_string());
        assert_eq!(show(&shown), show(&wanted), "by {}", by.name());
        if let Some(key) = wanted {
            assert_eq!(iter.value(), &model[&key][..]);
        }
    }
}

/// The keys that begin with something, and of those the ones below a bound.
fn scans(db: &Db, model: &Content, by: &dyn PrefixExtractor, rng: &mut fastrand::Rng) {
    for _ in 0..40 {
        let mut start = any_key(rng);
        start.truncate(rng.usize(1..6));
        let wanted: Vec<_> = model.iter().filter(|(k, _)| k.starts_with(&start)).collect();
        let mut iter = db.prefix_iter(&start).unwrap();
        let mut shown = Vec::new();
        iter.seek_to_first();
        while iter.valid() {
            shown.push((iter.key().to_vec(), iter.value().to_vec()));
            iter.next();
        }
        iter.status().unwrap();
        assert!(shown.iter().map(|(k, v)| (k, v)).eq(wanted.iter().copied()), "{start:?}");
        iter.seek_to_last();
        for (key, _) in wanted.iter().rev() {
            assert_eq!(iter.key(), &key[..]);
            iter.prev();
        }
        assert!(!iter.valid());
        // Bounds inside of a prefix, with a limit by prefix on top.
        let mut end = start.clone();
        end.push(rng.u8(b'/'..b'5'));
        let same = rng.bool();
        let options = ReadOptions { prefix_same_as_start: same, ..ReadOptions::default() };
        let mut iter = db.iter_opt(&options.with_bounds(Some(&start), Some(&end))).unwrap();
        let limit = by.prefix(&start).filter(|_| same);
        let shown = |k: &&Vec<u8>| limit.is_none() || by.prefix(k) == limit;
        let mut wanted = model.range(start.clone()..end).map(|(k, _)| k).take_while(shown);
        iter.seek(&start);
        while iter.valid() {
            assert_eq!(Some(iter.key()), wanted.next().map(|k| &k[..]), "{start:?}");
            iter.next();
        }
        iter.status().unwrap();
        assert_eq!(wanted.next(), None, "{start:?}");
    }
}

#[test]
fn prefix_scans_agree_with_a_look_at_every_key() {
    let all: [Option<PrefixExtractorRef>; 6] = [
        Some(Arc::new(FixedPrefix::new(2))),
        Some(Arc::new(CappedPrefix::new(3))),
        Some(Arc::new(Folder)),
        Some(Arc::new(Parent)),
        None,
        Some(Arc::new(FixedPrefix::new(4))),
    ];
    for seed in 0..3u64 {
        let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut model = Content::new();
        // Tables of all extractors come to lie beside each other.
        for by in all.iter().cycle().skip(seed as usize).take(8) {
            let mut settings = tiny();
            settings.partition_bytes = Some(if rng.bool() { 1 << 10 } else { 0 });
            settings.whole_key_filtering = rng.bool();
            settings.auto_compaction = rng.bool();
            settings.event_log = false;
            let db = open(&fs, settings, by.clone());
            for _ in 0..3 {
                for _ in 0..rng.usize(1..200) {
                    let key = any_key(&mut rng);
                    match rng.u8(0..10) {
                        0 | 1 => {
                            db.delete(&key).unwrap();
                            model.remove(&key);
                        }
                        2 if rng.u8(0..4) == 0 => {
                            let end = [&key[..], b"zz"].concat();
                            db.delete_range(&key, &end).unwrap();
                            model.retain(|k, _| !(key <= *k && *k < end));
                        }
                        _ => {
                            let value = vec![rng.u8(..); rng.usize(0..50)];
                            db.put(&key, &value).unwrap();
                            model.insert(key, value);
                        }
                    }
                }
                if rng.u8(0..4) > 0 {
                    db.flush().unwrap();
                }
                let none = FixedPrefix::new(usize::MAX);
                let by = by.as_deref().unwrap_or(&none);
                if !model.is_empty() {
                    walk(&db, &model, by, &mut rng);
                }
                scans(&db, &model, by, &mut rng);
            }
            db.close().unwrap();
        }
    }
}

/// A scan of a prefix that hardly any table has reads hardly anything.
#[test]
fn tables_without_the_prefix_are_not_read() {
    let reads = Arc::new(AtomicU64::new(0));
    let counted = {
        let reads = reads.clone();
        FaultFs::new(Arc::new(MemFs::new()), move |op| {
            reads.fetch_add(u64::from(op.name == "read_at"), Ordering::Relaxed);
            None
        })
    };
    let fs: Arc<dyn Fs> = Arc::new(counted);
    let mut settings = tiny();
    settings.auto_compaction = false;
    let spent = |by: Option<PrefixExtractorRef>, options: &dyn Fn(&str) -> ReadOptions| {
        let db = open(&fs, settings.clone(), by);
        // Opens every table.
        let mut iter = db.iter().unwrap();
        iter.seek_to_first();
        drop(iter);
        let before = reads.load(Ordering::Relaxed);
        for n in 0..12 {
            // Far from each other, so that no block is asked for twice.
            let start = format!("{:04}", 100 + 389 * n);
            let mut iter = db.iter_opt(&options(&start)).unwrap();
            iter.seek(&start);
            assert!(iter.valid() && iter.key().starts_with(start.as_bytes()));
        }
        let spent = reads.load(Ordering::Relaxed) - before;
        db.close().unwrap();
        spent
    };
    {
        let db = open(&fs, settings.clone(), Some(Arc::new(FixedPrefix::new(4))));
        // Each run has all prefixes of its own, between those of the others.
        for run in 0..12 {
            for n in 0..400 {
                db.put(format!("{:04}/{n}", run + 12 * n), vec![run as u8; 40]).unwrap();
            }
            db.flush().unwrap();
        }
        db.close().unwrap();
    }
    let fixed = || -> PrefixExtractorRef { Arc::new(FixedPrefix::new(4)) };
    let bounded = |start: &str| ReadOptions::default().with_prefix(start);
    let by_start = |_: &str| ReadOptions { prefix_same_as_start: true, ..ReadOptions::default() };
    let plain = |_: &str| ReadOptions::default();
    let all = spent(Some(fixed()), &plain);
    let (few, same) = (spent(Some(fixed()), &bounded), spent(Some(fixed()), &by_start));
    assert!(few * 4 < all && same * 4 < all, "{few} and {same} reads instead of {all}");
    // The tables say with what they were written, so bounds spare the same without an extractor.
    assert_eq!(spent(None, &bounded), few);
    assert_eq!(spent(None, &by_start), all);
}
