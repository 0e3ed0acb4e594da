//! The database against a model: random writes, deletes, range deletes, batches, snapshots,
//! flushes, compactions, reopens; every read is compared.
//!
//! The model orders its keys bytewise. A database with another comparator holds each key in another
//! form, chosen so that the forms stand in the same order.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::common::deeds::Deeds;
use crate::common::eager;
use lithify::{
    Builder, CompactionPri, Db, Durability, Policy, ReadOptions, Settings, Snapshot, WriteBatch,
    WriteOptions,
};
use lithify_base::{Comparator, ComparatorRef, ReverseBytewise, bytewise};
use lithify_env::{Env, OpenOpts, RtOptions, read_full_at};

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

fn small() -> Settings {
    let mut s = Settings::default();
    s.memtable_bytes = 64 << 10;
    s.memory_budget = 16 << 20;
    s.level_base_bytes = 256 << 10;
    s.file_bytes = 64 << 10;
    s.block_bytes = 512;
    s.compaction_threads = 2;
    s
}

/// How a database holds the keys of the model, and in which order.
#[derive(Clone)]
struct Keys {
    order: ComparatorRef,
    form: fn(&[u8]) -> Vec<u8>,
    /// Keys are numbers of eight bytes.
    numbers: bool,
}

impl Keys {
    fn plain() -> Keys {
        Keys { order: bytewise(), form: <[u8]>::to_vec, numbers: false }
    }
    /// Each byte is inverted behind a zero; the end is a one, which is above all that could follow.
    fn reverse() -> Keys {
        let form = |key: &[u8]| key.iter().flat_map(|b| [0, !b]).chain([1]).collect();
        Keys { order: Arc::new(ReverseBytewise), form, numbers: false }
    }
    /// Little-endian, so that byte order would be wrong.
    fn numbers() -> Keys {
        let form = |key: &[u8]| key.iter().rev().copied().collect();
        Keys { order: Arc::new(Numbers), form, numbers: true }
    }
}

struct World {
    rng: fastrand::Rng,
    env: Env,
    directory: PathBuf,
    settings: Settings,
    keys: Keys,
    db: Option<Db>,
    model: Model,
    snapshots: Vec<(Snapshot, Model)>,
}

/// Orders keys of eight bytes as little-endian numbers.
struct Numbers;

impl Comparator for Numbers {
    fn name(&self) -> &'static str {
        "test.Numbers"
    }
    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        let number = |k: &[u8]| u64::from_le_bytes(k.try_into().expect("eight bytes"));
        number(a).cmp(&number(b))
    }
}

impl World {
    fn new(seed: u64, mut settings: Settings, keys: Keys, env: Env, directory: &Path) -> World {
        settings.max_subcompactions = [1, 4, 2][(seed % 3) as usize];
        if !settings.effective_policy().takes_runs() {
            settings.compaction_pri = CompactionPri::ALL[(seed % 5) as usize];
        }
        let builder = Builder::new(settings.clone()).comparator(keys.order.clone());
        let db = builder.env(env.clone()).open(directory).unwrap();
        World {
            rng: fastrand::Rng::with_seed(seed),
            env,
            directory: directory.to_owned(),
            settings,
            keys,
            db: Some(db),
            model: Model::new(),
            snapshots: Vec::new(),
        }
    }
    fn db(&self) -> &Db {
        self.db.as_ref().unwrap()
    }
    fn key(&mut self) -> Vec<u8> {
        let n = self.rng.u32(0..400);
        if self.keys.numbers {
            return (u64::from(n) * 0x0123_4567_89ab).to_be_bytes().to_vec();
        }
        match self.rng.u8(0..8) {
            0 => format!("a long common prefix of many keys {n:05}").into_bytes(),
            // The empty one among them.
            1 => vec![b'k'; n as usize % 40],
            _ => format!("key{n:04}").into_bytes(),
        }
    }
    fn value(&mut self) -> Vec<u8> {
        let len = match self.rng.u8(0..20) {
            0 => 5000,
            1 => 0,
            _ => self.rng.usize(0..120),
        };
        let first = self.rng.u8(..);
        (0..len).map(|i| first.wrapping_add(i as u8)).collect()
    }
    fn options(&mut self) -> WriteOptions {
        // Without a log a write may be lost by a reopen after a crash, not by a clean close.
        let all = [Durability::Os, Durability::Buffered, Durability::Sync, Durability::NoWal];
        WriteOptions::at(all[self.rng.usize(0..all.len())])
    }
    fn step(&mut self) {
        match self.rng.u32(0..1000) {
            0..600 => {
                let (k, v, o) = (self.key(), self.value(), self.options());
                self.db().put_opt(self.form(&k), &v, &o).unwrap();
                self.model.insert(k, v);
            }
            600..740 => {
                let (k, o) = (self.key(), self.options());
                self.db().delete_opt(self.form(&k), &o).unwrap();
                self.model.remove(&k);
            }
            740..770 => {
                let (mut a, mut b) = (self.key(), self.key());
                if a > b {
                    std::mem::swap(&mut a, &mut b);
                }
                self.db().delete_range(self.form(&a), self.form(&b)).unwrap();
                let gone: Vec<_> = self.model.range(a..b).map(|e| e.0.clone()).collect();
                gone.iter().for_each(|k| drop(self.model.remove(k)));
            }
            770..830 => {
                let mut batch = WriteBatch::new();
                for _ in 0..self.rng.usize(0..20) {
                    let (k, v) = (self.key(), self.value());
                    if self.rng.bool() {
                        batch.put(self.form(&k), &v).unwrap();
                        self.model.insert(k, v);
                    } else {
                        batch.delete(self.form(&k)).unwrap();
                        self.model.remove(&k);
                    }
                }
                self.db().write(&batch).unwrap();
            }
            830..850 => {
                if self.snapshots.len() < 4 {
                    self.snapshots.push((self.db().snapshot(), self.model.clone()));
                } else {
                    let at = self.rng.usize(0..self.snapshots.len());
                    self.snapshots.swap_remove(at);
                }
            }
            850..858 => self.db().flush().unwrap(),
            858..862 => {
                let (a, b) = (self.key(), self.key());
                let (from, to) = if a < b { (a, b) } else { (b, a) };
                self.db().compact_range(Some(&self.form(&from)), Some(&self.form(&to))).unwrap();
            }
            862..863 => self.db().compact_range(None, None).unwrap(),
            863..866 => self.reopen(),
            866..870 => self.scan_everything(),
            _ => self.look(),
        }
    }
    fn reopen(&mut self) {
        self.snapshots.clear();
        self.db.take().unwrap().close().unwrap();
        let order = self.keys.order.clone();
        let builder = Builder::new(self.settings.clone()).comparator(order).env(self.env.clone());
        self.db = Some(builder.open(&self.directory).unwrap());
    }
    fn look(&mut self) {
        let k = self.key();
        assert_eq!(
            self.db().get(self.form(&k)).unwrap().as_deref(),
            self.model.get(&k).map(Vec::as_slice),
            "{}",
            k.escape_ascii()
        );
        if let Some(i) = self.rng.usize(..).checked_rem(self.snapshots.len()) {
            let (snapshot, then) = &self.snapshots[i];
            let found = self.db().get_opt(self.form(&k), &ReadOptions::at(snapshot)).unwrap();
            assert_eq!(found.as_deref(), then.get(&k).map(Vec::as_slice), "{}", k.escape_ascii());
            let options = ReadOptions::at(snapshot);
            let seen = self.db().get_with(self.form(&k), &options, <[u8]>::to_vec).unwrap();
            assert_eq!(seen.as_deref(), found.as_deref(), "where it lies");
        }
    }
    fn scan_everything(&mut self) {
        self.same_scan(&ReadOptions::default(), &self.model);
        for (snapshot, then) in &self.snapshots {
            self.same_scan(&ReadOptions::at(snapshot), then);
        }
        let (a, b) = (self.key(), self.key());
        let (from, to) = if a < b { (a, b) } else { (b, a) };
        let (lower, upper) = (self.form(&from), self.form(&to));
        let bounded = ReadOptions::default().with_bounds(Some(lower), Some(upper));
        let part: Model = self
            .model
            .range::<Vec<u8>, _>((Bound::Included(&from), Bound::Excluded(&to)))
            .map(|(k, v)| (k.clone(), v.clone()))
            .collect();
        self.same_scan(&bounded, &part);
        self.walk_about();
    }
    fn form(&self, key: &[u8]) -> Vec<u8> {
        (self.keys.form)(key)
    }
    /// Somewhere to seek, which need not be there.
    fn place(&mut self) -> Vec<u8> {
        match self.keys.numbers {
            true => {
                (self.rng.u64(0..420) * 0x0123_4567_89ab + self.rng.u64(0..2)).to_be_bytes().into()
            }
            false => format!("key{:04}", self.rng.u32(0..420)).into_bytes(),
        }
    }
    fn same_scan(&self, options: &ReadOptions, model: &Model) {
        let mut iter = self.db().iter_opt(options).unwrap();
        iter.seek_to_first();
        for (k, v) in model {
            assert!(iter.valid(), "ended before {}", k.escape_ascii());
            let shown = (iter.key(), iter.value());
            assert_eq!(shown, (&self.form(k)[..], &v[..]), "{}", k.escape_ascii());
            iter.next();
        }
        assert!(!iter.valid(), "shows {} too many", iter.key().escape_ascii());
        iter.status().unwrap();
        iter.seek_to_last();
        for (k, v) in model.iter().rev() {
            assert!(iter.valid(), "ended before {} backward", k.escape_ascii());
            let shown = (iter.key(), iter.value());
            assert_eq!(shown, (&self.form(k)[..], &v[..]), "{}", k.escape_ascii());
            iter.prev();
        }
        assert!(!iter.valid());
        iter.status().unwrap();
    }
    /// Seeks and turns in random order against the model.
    fn walk_about(&mut self) {
        let mut iter = self.db().iter().unwrap();
        let keys: Vec<Vec<u8>> = self.model.keys().cloned().collect();
        let mut at: Option<usize> = None;
        for _ in 0..60 {
            match self.rng.u8(0..6) {
                0 => {
                    let k = self.place();
                    iter.seek((self.keys.form)(&k));
                    let i = keys.partition_point(|x| *x < k);
                    at = (i < keys.len()).then_some(i);
                }
                1 => {
                    let k = self.place();
                    iter.seek_for_prev((self.keys.form)(&k));
                    at = keys.partition_point(|x| *x <= k).checked_sub(1);
                }
                2 | 3 if at.is_some() => {
                    iter.next();
                    at = at.map(|i| i + 1).filter(|i| *i < keys.len());
                }
                _ if at.is_some() => {
                    iter.prev();
                    at = at.and_then(|i| i.checked_sub(1));
                }
                _ => {}
            }
            iter.status().unwrap();
            match at {
                Some(i) => {
                    let key = (self.keys.form)(&keys[i]);
                    assert_eq!((iter.key(), iter.value()), (&key[..], &self.model[&keys[i]][..]));
                    assert_eq!(iter.entry(), Some((iter.key(), iter.value())));
                }
                None => assert!(!iter.valid() && iter.entry().is_none()),
            }
        }
    }
}

fn live(seed: u64, settings: Settings, steps: usize) -> Deeds {
    live_with(seed, settings, steps, Keys::plain())
}

fn live_with(seed: u64, settings: Settings, steps: usize, keys: Keys) -> Deeds {
    let env = Env::in_memory(RtOptions::default());
    live_in(World::new(seed, settings, keys, env, Path::new("/db")), steps)
}

fn live_in(mut world: World, steps: usize) -> Deeds {
    for _ in 0..steps {
        world.step();
    }
    world.scan_everything();
    world.reopen();
    world.scan_everything();
    world.db.take().unwrap().close().unwrap();
    let events = world.directory.join("EVENTS");
    let file = world.env.fs.open(&events, OpenOpts::read()).unwrap();
    let mut text = vec![0; file.len().unwrap() as usize];
    read_full_at(&*file, &mut text, 0).unwrap();
    let mut deeds = Deeds::default();
    deeds.note(&String::from_utf8(text).unwrap());
    deeds
}

#[test]
fn a_random_life_matches_the_model() {
    for seed in 0..6 {
        live(seed, small(), 4000);
    }
}

/// Every policy with settings under which all it can do is due at once: data is stacked, buckets
/// are split and merged, range deletions lie over many of them, snapshots are held all the while.
#[test]
fn every_policy_matches_the_model() {
    for (i, policy) in Policy::ALL.into_iter().enumerate() {
        let mut deeds = Deeds::default();
        let missing = |deeds: &Deeds| -> Vec<_> {
            deeds.of(policy).into_iter().filter(|d| d.1 == 0).map(|d| d.0).collect()
        };
        for round in 0..15 {
            if round >= 3 && missing(&deeds).is_empty() {
                break;
            }
            let seed = 1000 + 100 * i as u64 + round;
            deeds.add(&live(seed, eager(policy, &mut fastrand::Rng::with_seed(seed)), 3000));
        }
        println!("{}: {deeds:?}", policy.name());
        assert!(missing(&deeds).is_empty(), "{}: never seen: {:?}", policy.name(), missing(&deeds));
    }
}

#[test]
fn keys_in_reverse_order_match_the_model() {
    other_orders_match_the_model(&Keys::reverse());
}

#[test]
fn numbers_as_keys_match_the_model() {
    other_orders_match_the_model(&Keys::numbers());
}

fn other_orders_match_the_model(keys: &Keys) {
    live_with(300, small(), 2000, keys.clone());
    for (i, policy) in Policy::ALL.into_iter().enumerate() {
        let seed = 301 + i as u64;
        let settings = eager(policy, &mut fastrand::Rng::with_seed(seed));
        live_with(seed, settings, 2000, keys.clone());
    }
}

/// Blocks are copied out of tables that are mapped, which only files of the machine are; few of them stay in the cache.
#[test]
fn mapped_tables_match_the_model() {
    for (i, policy) in [Policy::Hybrid, Policy::Adaptive, Policy::Tiered].into_iter().enumerate() {
        let seed = 400 + i as u64;
        let mut s = eager(policy, &mut fastrand::Rng::with_seed(seed));
        s.mapped_reads = [Some(true), None][i % 2];
        s.direct_background_io = i % 2 == 0;
        s.memory_budget = 2 << 20;
        let scratch = tempfile::tempdir().unwrap();
        let env = Env::os(RtOptions::default());
        live_in(World::new(seed, s, Keys::plain(), env, scratch.path()), 2000);
    }
}

#[test]
fn other_shapes_match_the_model() {
    let mut s = small();
    s.format_version = 5;
    s.compression_upper = lithify::Compression::Snappy;
    s.compression_lower = lithify::Compression::Lz4;
    s.bloom_bits = 0;
    s.dynamic_levels = false;
    live(200, s.clone(), 3000);
    s.auto_compaction = false;
    live(201, s, 3000);
}
