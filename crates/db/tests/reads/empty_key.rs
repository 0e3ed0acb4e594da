//! The empty key is a key like any other: the first in byte order, the last in reverse.

use std::collections::BTreeMap;
use std::sync::Arc;

use lithify::merge::Append;
use lithify::{
    Builder, Bytewise, CompactOptions, ComparatorRef, Db, IngestOptions, Policy, ReadOptions,
    ReverseBytewise, Snapshot, TransactionOptions, WriteBatch,
};
use lithify_env::{Env, RtOptions};

use crate::common::eager;

/// Few keys, so that the empty one is met often, and what begins as it ends.
const KEYS: [&[u8]; 7] = [b"", b"\0", b"\0\0", b"a", b"ab", b"b", b"\xff"];

type Content = BTreeMap<Vec<u8>, Vec<u8>>;

struct Life {
    env: Env,
    builder: Builder,
    db: Db,
    order: ComparatorRef,
    now: Content,
    held: Vec<(Snapshot, Content)>,
    rng: fastrand::Rng,
    tables: usize,
}

impl Life {
    fn new(policy: Policy, order: ComparatorRef, seed: u64) -> Life {
        let mut rng = fastrand::Rng::with_seed(seed);
        let env = Env::in_memory(RtOptions::default());
        let builder = Builder::new(eager(policy, &mut rng))
            .comparator(order.clone())
            .merge_operator(Arc::new(Append::default()))
            .env(env.clone());
        let db = builder.clone().open("db").unwrap();
        Life { env, builder, db, order, now: Content::new(), held: Vec::new(), rng, tables: 0 }
    }

    fn key(&mut self) -> Vec<u8> {
        KEYS[self.rng.usize(..KEYS.len())].to_vec()
    }

    /// Two keys in order.
    fn range(&mut self) -> (Vec<u8>, Vec<u8>) {
        let (a, b) = (self.key(), self.key());
        if self.order.compare(&a, &b).is_gt() { (b, a) } else { (a, b) }
    }

    fn forget(&mut self, from: &[u8], to: &[u8]) {
        let order = &self.order;
        let inside =
            |key: &[u8]| order.compare(from, key).is_le() && order.compare(key, to).is_lt();
        self.now.retain(|key, _| !inside(key));
    }

    fn step(&mut self, step: u32) {
        let (key, value) = (self.key(), format!("{step}").repeat(40).into_bytes());
        match self.rng.u32(0..100) {
            0..35 => {
                self.db.put(&key, &value).unwrap();
                self.now.insert(key, value);
            }
            35..50 => {
                self.db.delete(&key).unwrap();
                self.now.remove(&key);
            }
            50..62 => {
                self.db.merge(&key, &value).unwrap();
                let old = self.now.remove(&key);
                let merged =
                    old.map_or_else(|| value.clone(), |old| [&old[..], b",", &value].concat());
                self.now.insert(key, merged);
            }
            62..70 => {
                let (from, to) = self.range();
                self.db.delete_range(&from, &to).unwrap();
                self.forget(&from, &to);
            }
            70..74 => {
                let mut batch = WriteBatch::new();
                batch.put(&key, &value).unwrap();
                batch.delete_range(&key, &key).unwrap();
                self.db.write(&batch).unwrap();
                self.now.insert(key, value);
            }
            74..78 => self.transaction(&key, &value),
            78..80 => self.ingest(&value),
            80..90 => self.db.flush().unwrap(),
            90..94 => self.db.compact_range(None, None).unwrap(),
            94..97 if self.held.len() < 3 => {
                self.held.push((self.db.snapshot(), self.now.clone()));
            }
            97..99 if !self.held.is_empty() => drop(self.held.remove(0)),
            _ if self.held.is_empty() => {
                self.db.clone().close().unwrap();
                self.db = self.builder.clone().open("db").unwrap();
            }
            _ => {}
        }
    }

    fn transaction(&mut self, key: &[u8], value: &[u8]) {
        let mut transaction = self.db.begin_transaction(TransactionOptions::pessimistic());
        let before = transaction.get_for_update(key).unwrap();
        assert_eq!(before.as_deref(), self.now.get(key).map(|v| &v[..]));
        transaction.put(key, value).unwrap();
        transaction.delete("b").unwrap();
        transaction.commit().unwrap();
        self.now.insert(key.to_vec(), value.to_vec());
        self.now.remove(&b"b"[..]);
    }

    fn ingest(&mut self, value: &[u8]) {
        self.tables += 1;
        let path = format!("outside-{}", self.tables);
        let mut table = self.db.table_builder(&path).unwrap();
        let mut keys = [&b""[..], b"a"];
        keys.sort_by(|a, b| self.order.compare(a, b));
        for key in keys {
            table.put(key, value).unwrap();
            self.now.insert(key.to_vec(), value.to_vec());
        }
        table.finish().unwrap();
        self.db.ingest(&[path], &IngestOptions::default()).unwrap();
    }

    fn check(&self) {
        self.check_at(&ReadOptions::default(), &self.now);
        for (at, then) in &self.held {
            self.check_at(&ReadOptions::at(at), then);
        }
    }

    fn check_at(&self, options: &ReadOptions, expected: &Content) {
        let mut pairs: Vec<_> = expected.clone().into_iter().collect();
        pairs.sort_by(|a, b| self.order.compare(&a.0, &b.0));
        for key in KEYS {
            let found = self.db.get_opt(key, options).unwrap();
            assert_eq!(found.as_deref(), expected.get(key).map(|v| &v[..]), "{key:?}");
        }
        let many = self.db.multi_get_opt(&KEYS, options).unwrap();
        assert!(
            KEYS.iter().zip(&many).all(|(k, v)| v.as_deref() == expected.get(*k).map(|v| &v[..]))
        );
        let bounds = KEYS.iter().map(|key| Some(*key)).chain([None]);
        for lower in bounds.clone() {
            for upper in bounds.clone() {
                let inside = |key: &[u8]| {
                    lower.is_none_or(|lower| self.order.compare(lower, key).is_le())
                        && upper.is_none_or(|upper| self.order.compare(key, upper).is_lt())
                };
                let expected: Vec<_> = pairs.iter().filter(|(k, _)| inside(k)).cloned().collect();
                let mut iter =
                    self.db.iter_opt(&options.clone().with_bounds(lower, upper)).unwrap();
                let (mut forward, mut back) = (Vec::new(), Vec::new());
                iter.seek_to_first();
                while iter.valid() {
                    forward.push((iter.key().to_vec(), iter.value().to_vec()));
                    iter.next();
                }
                iter.seek_to_last();
                while iter.valid() {
                    back.push((iter.key().to_vec(), iter.value().to_vec()));
                    iter.prev();
                }
                back.reverse();
                assert_eq!((&forward, &back), (&expected, &expected), "{lower:?} to {upper:?}");
                for key in KEYS {
                    iter.seek(key);
                    let next = expected.iter().find(|(k, _)| self.order.compare(k, key).is_ge());
                    assert_eq!(iter.valid().then(|| iter.key()), next.map(|(k, _)| &k[..]));
                    iter.seek_for_prev(key);
                    let last = expected.iter().rfind(|(k, _)| self.order.compare(k, key).is_le());
                    assert_eq!(iter.valid().then(|| iter.key()), last.map(|(k, _)| &k[..]));
                }
                iter.status().unwrap();
            }
        }
    }
}

#[test]
fn the_empty_key_lives_as_others_do_under_every_policy() {
    let orders: [ComparatorRef; 2] = [Arc::new(Bytewise), Arc::new(ReverseBytewise)];
    for (seed, policy) in (0..).zip(Policy::ALL) {
        for order in &orders {
            let mut life = Life::new(policy, order.clone(), seed);
            for step in 0..500 {
                life.step(step);
                if step % 25 == 0 {
                    life.check();
                }
            }
            life.held.clear();
            life.db.compact_range(None, None).unwrap();
            life.check();
            life.db.close().unwrap();
            let report = life.builder.verify("db", &mut |_| {}).unwrap();
            assert!(report.is_clean(), "{policy:?}: {:?}", report.findings);
            // Read by others: a follower, and a copy.
            let follower = life.builder.clone().open_follower("db").unwrap();
            let found = follower.view().get("").unwrap();
            assert_eq!(found.as_deref(), life.now.get(&b""[..]).map(|v| &v[..]));
            drop(life.env);
        }
    }
}

#[test]
fn every_kind_of_deletion_takes_the_empty_key() {
    let env = Env::in_memory(RtOptions::default());
    let db = Builder::new(crate::common::tiny()).env(env).open("db").unwrap();
    let deletions: [fn(&Db); 4] = [
        |db| db.delete("").unwrap(),
        |db| db.single_delete("").unwrap(),
        |db| db.delete_range("", "\0").unwrap(),
        |db| db.delete_range("", "z").unwrap(),
    ];
    for delete in deletions {
        for flushes in 0..4 {
            db.put("", "first").unwrap();
            if flushes & 1 > 0 {
                db.flush().unwrap();
            }
            assert_eq!(db.get("").unwrap().unwrap(), "first");
            delete(&db);
            if flushes & 2 > 0 {
                db.flush().unwrap();
            }
            assert!(db.get("").unwrap().is_none());
            let mut iter = db.iter().unwrap();
            iter.seek_to_first();
            assert!(!iter.valid());
            drop(iter);
            let rewrite = CompactOptions { rewrite: true, ..CompactOptions::default() };
            db.compact_range_opt(None, None, &rewrite).unwrap();
            assert_eq!(db.stats().levels.iter().map(|l| l.files).sum::<usize>(), 0);
        }
    }
    db.close().unwrap();
}
