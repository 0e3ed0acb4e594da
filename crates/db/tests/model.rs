//! The database against a model: random writes, deletes, range deletes, batches, snapshots,
//! flushes, compactions, reopens; every read is compared.

use std::collections::BTreeMap;
use std::ops::Bound;

use lithify::{Builder, Db, Durability, ReadOptions, Settings, Snapshot, WriteBatch, WriteOptions};
use lithify_env::{Env, RtOptions};

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

struct World {
    rng: fastrand::Rng,
    env: Env,
    settings: Settings,
    db: Option<Db>,
    model: Model,
    snapshots: Vec<(Snapshot, Model)>,
}

impl World {
    fn new(seed: u64, settings: Settings) -> World {
        let env = Env::in_memory(RtOptions::default());
        let db = Builder::new(settings.clone()).env(env.clone()).open("/db").unwrap();
        World {
            rng: fastrand::Rng::with_seed(seed),
            env,
            settings,
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
        match self.rng.u8(0..8) {
            0 => format!("a long common prefix of many keys {n:05}").into_bytes(),
            1 => vec![b'k'; n as usize % 40 + 1],
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
                self.db().put_opt(&k, &v, &o).unwrap();
                self.model.insert(k, v);
            }
            600..740 => {
                let (k, o) = (self.key(), self.options());
                self.db().delete_opt(&k, &o).unwrap();
                self.model.remove(&k);
            }
            740..770 => {
                let (mut a, mut b) = (self.key(), self.key());
                if a > b {
                    std::mem::swap(&mut a, &mut b);
                }
                self.db().delete_range(&a, &b).unwrap();
                let gone: Vec<_> = self.model.range(a..b).map(|e| e.0.clone()).collect();
                gone.iter().for_each(|k| drop(self.model.remove(k)));
            }
            770..830 => {
                let mut batch = WriteBatch::new();
                for _ in 0..self.rng.usize(0..20) {
                    let (k, v) = (self.key(), self.value());
                    if self.rng.bool() {
                        batch.put(&k, &v).unwrap();
                        self.model.insert(k, v);
                    } else {
                        batch.delete(&k).unwrap();
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
                self.db().compact_range(Some(&from), Some(&to)).unwrap();
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
        let builder = Builder::new(self.settings.clone()).env(self.env.clone());
        self.db = Some(builder.open("/db").unwrap());
    }
    fn look(&mut self) {
        let k = self.key();
        assert_eq!(
            self.db().get(&k).unwrap().as_deref(),
            self.model.get(&k).map(Vec::as_slice),
            "{}",
            k.escape_ascii()
        );
        if let Some(i) = self.rng.usize(..).checked_rem(self.snapshots.len()) {
            let (snapshot, then) = &self.snapshots[i];
            let found = self.db().get_opt(&k, &ReadOptions::at(snapshot)).unwrap();
            assert_eq!(found.as_deref(), then.get(&k).map(Vec::as_slice), "{}", k.escape_ascii());
        }
    }
    fn scan_everything(&mut self) {
        same_scan(self.db(), &ReadOptions::default(), &self.model);
        for (snapshot, then) in &self.snapshots {
            same_scan(self.db(), &ReadOptions::at(snapshot), then);
        }
        let (a, b) = (self.key(), self.key());
        let (from, to) = if a < b { (a, b) } else { (b, a) };
        let bounded = ReadOptions::default().with_bounds(Some(&from), Some(&to));
        let part: Model = self
            .model
            .range::<Vec<u8>, _>((Bound::Included(&from), Bound::Excluded(&to)))
            .map(|(k, v)| (k.clone(), v.clone()))
            .collect();
        same_scan(self.db(), &bounded, &part);
        self.walk_about();
    }
    /// Seeks and turns in random order against the model.
    fn walk_about(&mut self) {
        let mut iter = self.db().iter().unwrap();
        let keys: Vec<&Vec<u8>> = self.model.keys().collect();
        let mut at: Option<usize> = None;
        for _ in 0..60 {
            match self.rng.u8(0..6) {
                0 => {
                    let k = format!("key{:04}", self.rng.u32(0..420)).into_bytes();
                    iter.seek(&k);
                    let i = keys.partition_point(|x| **x < k);
                    at = (i < keys.len()).then_some(i);
                }
                1 => {
                    let k = format!("key{:04}", self.rng.u32(0..420)).into_bytes();
                    iter.seek_for_prev(&k);
                    at = keys.partition_point(|x| **x <= k).checked_sub(1);
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
                    assert_eq!((iter.key(), iter.value()), (&keys[i][..], &self.model[keys[i]][..]))
                }
                None => assert!(!iter.valid()),
            }
        }
    }
}

fn same_scan(db: &Db, options: &ReadOptions, model: &Model) {
    let mut iter = db.iter_opt(options).unwrap();
    iter.seek_to_first();
    for (k, v) in model {
        assert!(iter.valid(), "ended before {}", k.escape_ascii());
        assert_eq!((iter.key(), iter.value()), (&k[..], &v[..]), "{}", k.escape_ascii());
        iter.next();
    }
    assert!(!iter.valid(), "shows {} too many", iter.key().escape_ascii());
    iter.status().unwrap();
    iter.seek_to_last();
    for (k, v) in model.iter().rev() {
        assert!(iter.valid(), "ended before {} backward", k.escape_ascii());
        assert_eq!((iter.key(), iter.value()), (&k[..], &v[..]), "{}", k.escape_ascii());
        iter.prev();
    }
    assert!(!iter.valid());
    iter.status().unwrap();
}

fn live(seed: u64, settings: Settings, steps: usize) {
    let mut world = World::new(seed, settings);
    for _ in 0..steps {
        world.step();
    }
    world.scan_everything();
    world.reopen();
    world.scan_everything();
}

#[test]
fn a_random_life_matches_the_model() {
    for seed in 0..6 {
        live(seed, small(), 4000);
    }
}

#[test]
fn one_run_per_level_matches_the_model() {
    let mut s = small();
    s.policy = lithify::Policy::Leveled;
    live(100, s, 4000);
}

#[test]
fn every_parallel_policy_matches_the_model() {
    use lithify::Policy::{Bucket, BucketDf, DfLeveled, DfTiered, Tiered};
    for (i, policy) in [Tiered, DfLeveled, DfTiered, Bucket, BucketDf].into_iter().enumerate() {
        for round in 0..3 {
            let mut s = small();
            s.policy = policy;
            s.l0_trigger = 2;
            s.compaction_threads = 4;
            live(1000 + 10 * i as u64 + round, s, 3000);
        }
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
