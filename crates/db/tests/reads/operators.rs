//! Writes that are more than put and delete, against a model: single deletes of keys that were put
//! once and merges, among puts, deletes, range deletions, snapshots, flushes, compactions and reopens,
//! under every policy; and a compaction filter beside them.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::common::{eager, tiny};
use lithify::merge::{Add, Append, Max};
use lithify::{
    Builder, CompactionFilter, Db, Decision, ErrorKind, FilterContext, MergeOperator,
    MergeOperatorRef, Policy, ReadOptions, Result, Settings, Snapshot, WriteBatch,
};
use lithify_env::{Env, RtOptions};

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// What a write does to a key.
#[derive(Clone, Debug)]
enum Deed {
    Put(Vec<u8>, Vec<u8>),
    Delete(Vec<u8>),
    SingleDelete(Vec<u8>),
    Merge(Vec<u8>, Vec<u8>),
    DeleteRange(Vec<u8>, Vec<u8>),
}

impl Deed {
    fn add_to(&self, batch: &mut WriteBatch) {
        match self {
            Deed::Put(key, value) => batch.put(key, value),
            Deed::Delete(key) => batch.delete(key),
            Deed::SingleDelete(key) => batch.single_delete(key),
            Deed::Merge(key, operand) => batch.merge(key, operand),
            Deed::DeleteRange(from, to) => batch.delete_range(from, to),
        }
        .unwrap();
    }
    fn apply(&self, operator: &dyn MergeOperator, model: &mut Model) {
        match self {
            Deed::Put(key, value) => drop(model.insert(key.clone(), value.clone())),
            Deed::Delete(key) | Deed::SingleDelete(key) => drop(model.remove(key)),
            Deed::Merge(key, operand) => {
                let existing = model.get(key).map(Vec::as_slice);
                let value = operator.full_merge(key, existing, &[operand]).unwrap();
                model.insert(key.clone(), value);
            }
            Deed::DeleteRange(from, to) => model.retain(|key, _| key < from || key >= to),
        }
    }
}

struct World {
    rng: fastrand::Rng,
    env: Env,
    settings: Settings,
    operator: MergeOperatorRef,
    db: Option<Db>,
    model: Model,
    snapshots: Vec<(Snapshot, Model)>,
    written: u32,
}

impl World {
    fn new(seed: u64, settings: Settings, operator: MergeOperatorRef) -> World {
        let mut world = World {
            rng: fastrand::Rng::with_seed(seed),
            env: Env::in_memory(RtOptions::default()),
            settings,
            operator,
            db: None,
            model: Model::new(),
            snapshots: Vec::new(),
            written: 0,
        };
        world.open();
        world
    }
    fn open(&mut self) {
        let builder = Builder::new(self.settings.clone()).merge_operator(self.operator.clone());
        let builder = builder.compaction_filter(Arc::new(Scrub)).env(self.env.clone());
        self.db = Some(builder.open("/db").unwrap());
    }
    fn db(&self) -> &Db {
        self.db.as_ref().unwrap()
    }
    fn value(&mut self) -> Vec<u8> {
        self.written += 1;
        if self.operator.name() == Add.name() {
            return u64::from(self.written).pow(5).to_le_bytes().to_vec();
        }
        let len = [4, 60, 400][self.rng.usize(0..3)];
        self.written.wrapping_mul(0x9e37_79b9).to_be_bytes().repeat(len / 4)
    }
    /// Each key is of one sort, by its number: a third is put once and deleted alone, a third is merged
    /// into.
    fn deed(&mut self) -> Deed {
        let n = self.rng.u32(0..150);
        let key = format!("key{n:04}").into_bytes();
        match (n % 3, self.rng.u8(0..40)) {
            (_, 0) => {
                let to = format!("key{:04}", n + self.rng.u32(0..60)).into_bytes();
                Deed::DeleteRange(key, to)
            }
            (0, _) if self.model.contains_key(&key) => Deed::SingleDelete(key),
            (1 | 2, 1..8) => Deed::Delete(key),
            (2, 8..30) => Deed::Merge(key, self.value()),
            _ => Deed::Put(key, self.value()),
        }
    }
    fn step(&mut self) {
        match self.rng.u32(0..1000) {
            0..800 => {
                let mut batch = WriteBatch::new();
                for _ in 0..[1, 1, 1, 7][self.rng.usize(0..4)] {
                    let deed = self.deed();
                    deed.add_to(&mut batch);
                    deed.apply(&*self.operator, &mut self.model);
                }
                self.db().write(&batch).unwrap();
            }
            800..830 if self.snapshots.len() < 3 => {
                self.snapshots.push((self.db().snapshot(), self.model.clone()));
            }
            800..830 => {
                let at = self.rng.usize(0..self.snapshots.len());
                self.snapshots.swap_remove(at);
            }
            830..850 => self.db().flush().unwrap(),
            850..855 => self.db().compact_range(None, None).unwrap(),
            855..860 => self.reopen(),
            860..880 => self.scan_everything(),
            _ => self.look(),
        }
    }
    fn reopen(&mut self) {
        self.snapshots.clear();
        self.db.take().unwrap().close().unwrap();
        self.open();
    }
    fn look(&mut self) {
        let keys: Vec<Vec<u8>> =
            (0..5).map(|_| format!("key{:04}", self.rng.u32(0..150)).into()).collect();
        let views = [(ReadOptions::default(), &self.model)].into_iter();
        let views = views.chain(self.snapshots.iter().map(|(s, m)| (ReadOptions::at(s), m)));
        for (options, model) in views {
            let found = self.db().multi_get_opt(&keys, &options).unwrap();
            for (key, value) in keys.iter().zip(&found) {
                let expected = model.get(key).map(Vec::as_slice);
                assert_eq!(value.as_deref(), expected, "{}", key.escape_ascii());
                assert_eq!(self.db().get_opt(key, &options).unwrap().as_deref(), expected);
                let seen = self.db().get_with(key, &options, <[u8]>::to_vec).unwrap();
                assert_eq!(seen.as_deref(), expected, "where it lies");
            }
        }
    }
    fn scan_everything(&mut self) {
        same_scan(self.db(), &ReadOptions::default(), &self.model);
        for (snapshot, then) in &self.snapshots {
            same_scan(self.db(), &ReadOptions::at(snapshot), then);
        }
        self.walk_about();
    }
    /// Seeks and turns in random order.
    fn walk_about(&mut self) {
        let mut iter = self.db().iter().unwrap();
        let keys: Vec<&Vec<u8>> = self.model.keys().collect();
        let mut at: Option<usize> = None;
        for _ in 0..40 {
            match self.rng.u8(0..6) {
                0 | 1 => {
                    let key = format!("key{:04}", self.rng.u32(0..150)).into_bytes();
                    if self.rng.bool() {
                        iter.seek(&key);
                        at = Some(keys.partition_point(|k| **k < key)).filter(|i| *i < keys.len());
                    } else {
                        iter.seek_for_prev(&key);
                        at = keys.partition_point(|k| **k <= key).checked_sub(1);
                    }
                }
                2 | 3 => {
                    iter.next();
                    at = at.map(|i| i + 1).filter(|i| *i < keys.len());
                }
                _ => {
                    iter.prev();
                    at = at.and_then(|i| i.checked_sub(1));
                }
            }
            iter.status().unwrap();
            let expected = at.map(|i| (keys[i].as_slice(), self.model[keys[i]].as_slice()));
            assert_eq!(iter.valid().then(|| (iter.key(), iter.value())), expected);
        }
    }
}

fn same_scan(db: &Db, options: &ReadOptions, model: &Model) {
    let mut iter = db.iter_opt(options).unwrap();
    iter.seek_to_first();
    for (key, value) in model {
        assert!(iter.valid(), "ended before {}: {:?}", key.escape_ascii(), iter.status());
        assert_eq!((iter.key(), iter.value()), (&key[..], &value[..]), "{}", key.escape_ascii());
        iter.next();
    }
    assert!(!iter.valid(), "shows {} too many", iter.key().escape_ascii());
    iter.seek_to_last();
    for (key, value) in model.iter().rev() {
        assert!(iter.valid(), "backward, ended before {}: {:?}", key.escape_ascii(), iter.status());
        assert_eq!((iter.key(), iter.value()), (&key[..], &value[..]), "{}", key.escape_ascii());
        iter.prev();
    }
    assert!(!iter.valid());
    iter.status().unwrap();
}

/// Changes nothing, by each of the ways there are.
struct Scrub;

impl CompactionFilter for Scrub {
    fn name(&self) -> &str {
        "scrub"
    }
    fn filter<'a>(&self, _: &FilterContext, key: &[u8], value: &'a [u8]) -> Decision<'a> {
        match key.last().map_or(0, |b| b % 4) {
            0 => Decision::Change(value.into()),
            1 => Decision::Change(value.to_vec().into()),
            2 => std::panic::resume_unwind(Box::new("a panic that is not printed")),
            _ => Decision::Keep,
        }
    }
}

#[test]
fn every_policy_matches_the_model() {
    let operators: [MergeOperatorRef; 3] =
        [Arc::new(Append::default()), Arc::new(Add), Arc::new(Max)];
    for (i, policy) in Policy::ALL.into_iter().enumerate() {
        let seed = 70 + i as u64;
        let settings = eager(policy, &mut fastrand::Rng::with_seed(seed));
        let mut world = World::new(seed, settings, operators[i % 3].clone());
        for _ in 0..1500 {
            world.step();
        }
        world.scan_everything();
        world.reopen();
        world.scan_everything();
        world.db.take().unwrap().close().unwrap();
    }
}

/// A single delete and its value go together, although older levels hold other data.
#[test]
fn a_single_delete_goes_with_its_value() {
    let env = Env::in_memory(RtOptions::default());
    let db = Builder::new(calm()).env(env).open("/db").unwrap();
    db.put("a", "old").unwrap();
    db.put("z", "old").unwrap();
    db.compact_range(None, None).unwrap();
    db.put("job", "to do").unwrap();
    db.single_delete("job").unwrap();
    db.flush().unwrap();
    assert_eq!(db.get("job").unwrap(), None);
    assert_eq!(db.stats().levels[0].files, 0, "nothing is left to flush: {}", db.picture());
}

/// Nothing happens by itself.
fn calm() -> Settings {
    let mut settings = tiny();
    settings.auto_compaction = false;
    settings
}

fn adding(env: &Env) -> Builder {
    Builder::new(calm()).merge_operator(Arc::new(Add)).env(env.clone())
}

fn number(n: u64) -> [u8; 8] {
    n.to_le_bytes()
}

/// A database with operands opens with their operator and no other, whether they are in tables or in a
/// log; once they are values, it opens with any.
#[test]
fn operands_are_for_one_operator() {
    let env = Env::in_memory(RtOptions::default());
    let plain = || Builder::new(calm()).env(env.clone());
    let refused = |opened: Result<Db>| {
        let error = opened.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        for part in [Add.name(), "Builder::merge_operator"] {
            assert!(error.to_string().contains(part), "{error}");
        }
    };
    let refuses_others = || {
        refused(plain().open("/db"));
        refused(plain().open_read_only("/db"));
        refused(plain().merge_operator(Arc::new(Max)).open("/db"));
    };
    let db = plain().open("/db").unwrap();
    assert_eq!(db.merge("k", number(1)).unwrap_err().kind(), ErrorKind::InvalidArgument);
    db.put("k", number(5)).unwrap();
    db.compact_range(None, None).unwrap();
    db.close().unwrap();

    // In a log: the handle is dropped without a close by a crash of the machine.
    let db = adding(&env).open("/db").unwrap();
    db.merge("k", number(2)).unwrap();
    let copy = "/copy";
    for entry in env.fs.list("/db".as_ref()).unwrap() {
        let (from, to) = (format!("/db/{}", entry.name), format!("{copy}/{}", entry.name));
        if entry.name != "LOCK" {
            env.fs.create_dir_all(copy.as_ref()).unwrap();
            env.fs.link(from.as_ref(), to.as_ref()).unwrap();
        }
    }
    refused(plain().open(copy));
    db.flush().unwrap();
    db.close().unwrap();
    refuses_others();
    let db = adding(&env).open_read_only("/db").unwrap();
    assert_eq!(db.get("k").unwrap().as_deref(), Some(&number(7)[..]));
    drop(db);

    let db = adding(&env).open("/db").unwrap();
    db.checkpoint("/point").unwrap();
    refused(plain().open("/point"));
    db.compact_range(None, None).unwrap();
    db.close().unwrap();
    let db = plain().merge_operator(Arc::new(Max)).open("/db").unwrap();
    assert_eq!(db.get("k").unwrap().as_deref(), Some(&number(7)[..]));
    db.close().unwrap();
}

/// An operator that fails or panics costs a read, and nothing else: with a better one everything is
/// there.
#[test]
fn what_an_operator_refuses_is_kept() {
    struct Faulty(bool);
    impl MergeOperator for Faulty {
        fn name(&self) -> &str {
            Append::default().name().to_owned().leak()
        }
        fn full_merge(&self, _: &[u8], _: Option<&[u8]>, _: &[&[u8]]) -> Result<Vec<u8>> {
            if self.0 {
                std::panic::resume_unwind(Box::new("a panic that is not printed"));
            }
            Err(lithify::Error::invalid("not today"))
        }
    }
    let env = Env::in_memory(RtOptions::default());
    let open = |operator: MergeOperatorRef| {
        Builder::new(calm()).merge_operator(operator).env(env.clone()).open("/db").unwrap()
    };
    for (i, panics) in [false, true].into_iter().enumerate() {
        let db = open(Arc::new(Faulty(panics)));
        for round in 0..3 {
            db.put("a", "still read").unwrap();
            if round == 0 {
                db.put("k", "0").unwrap();
            }
            db.merge("k", format!("{i}{round}")).unwrap();
            assert_eq!(db.get("k").unwrap_err().kind(), ErrorKind::MergeFailed);
            db.flush().unwrap();
        }
        db.compact_range(None, None).unwrap();
        assert_eq!(db.get("k").unwrap_err().kind(), ErrorKind::MergeFailed);
        let mut iter = db.iter().unwrap();
        iter.seek_to_last();
        assert_eq!(iter.status().unwrap_err().kind(), ErrorKind::MergeFailed);
        iter.seek_to_first();
        assert_eq!(iter.value(), b"still read");
        iter.next();
        assert!(!iter.valid());
        assert_eq!(iter.status().unwrap_err().kind(), ErrorKind::MergeFailed);
        drop(iter);
        db.close().unwrap();
        let db = open(Arc::new(Append::default()));
        let expected = format!("0,{i}0,{i}1,{i}2");
        assert_eq!(db.get("k").unwrap().as_deref(), Some(expected.as_bytes()));
        db.close().unwrap();
    }
}

/// Removes and changes values by what they say, and tells what it was told.
#[derive(Default)]
struct ByWord(lithify_env::sync::Mutex<Vec<FilterContext>>);

impl CompactionFilter for ByWord {
    fn name(&self) -> &str {
        "by word"
    }
    fn filter<'a>(&self, context: &FilterContext, _: &[u8], value: &'a [u8]) -> Decision<'a> {
        self.0.lock().push(*context);
        match value {
            b"go" => Decision::Remove,
            b"old" => Decision::Change(b"new"[..].into()),
            _ => Decision::Keep,
        }
    }
}

#[test]
fn a_filter_spares_what_a_snapshot_needs_and_uncovers_nothing() {
    let env = Env::in_memory(RtOptions::default());
    let filter = Arc::new(ByWord::default());
    let builder = || {
        let builder = Builder::new(calm()).merge_operator(Arc::new(Append::default()));
        builder.compaction_filter(filter.clone()).env(env.clone())
    };
    let db = builder().open("/db").unwrap();
    for key in ["a", "b", "c", "d"] {
        db.put(key, "below").unwrap();
    }
    db.compact_range(None, None).unwrap();
    db.put("a", "go").unwrap();
    db.put("b", "go").unwrap();
    let snapshot = db.snapshot();
    db.put("c", "go").unwrap();
    db.put("d", "old").unwrap();
    db.merge("e", "go").unwrap();
    db.flush().unwrap();
    assert_eq!(db.get("c").unwrap().unwrap(), "go", "a flush asks no operator");
    let seen = |db: &Db| -> String {
        let read =
            |key: &str| db.get(key).unwrap().map_or("-".into(), |v| v.escape_ascii().to_string());
        ["a", "b", "c", "d", "e"].map(read).join(" ")
    };
    db.compact_range(None, None).unwrap();
    assert_eq!(seen(&db), "go go - new -");
    let then = ReadOptions::at(&snapshot);
    assert_eq!(db.get_opt("c", &then).unwrap().unwrap(), "below");
    drop((snapshot, then));
    for _ in 0..2 {
        // Something new for every key, so that everything is merged once more.
        db.put("0", "x").unwrap();
        db.delete("z").unwrap();
        db.compact_range(None, None).unwrap();
    }
    assert_eq!(seen(&db), "- - - new -");
    let told = filter.0.lock().clone();
    assert!(told.iter().all(|c| c.level > 0 && c.now > 0), "{told:?}");
    assert!(told.iter().any(|c| c.bottommost), "{told:?}");
    db.close().unwrap();
}
