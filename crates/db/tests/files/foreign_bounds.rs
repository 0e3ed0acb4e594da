//! Tables of RocksDB whose range deletions reach beyond the bounds of the file, where they do not
//! count: read, checked, compacted in every way, and salvaged. In byte order, in reverse, and in an
//! order of the user's.
//!
//! The directories are made by hand, as RocksDB leaves them after long lives: values in the last level
//! have lost their sequence numbers, and the versions of one key may lie in two tables of a level.
#![allow(clippy::disallowed_methods, reason = "a watchdog shared with other tests")]

use std::cmp::Ordering;
use std::path::Path;
use std::sync::Arc;

use crate::common::{Content, scan, tiny};
use lithify::{
    Builder, Bytewise, CompactOptions, Comparator, ComparatorRef, Db, Policy, ReverseBytewise,
};
use lithify_base::{InternalKey, Kind, Tag};
use lithify_env::{BufPool, Env, Fs, FsRef, MemFs, OsRt, RtOptions};
use lithify_files::Dir;
use lithify_format::table::tail::{TableIdentity, TableSpec};
use lithify_journal::manifest::{ManifestState, WireFile};
use lithify_lsm::FileMeta;
use lithify_merge::kernel::Kernel;
use lithify_merge::products::{Item, Products};
use lithify_merge::tombstone::RangeTombstone;
use lithify_merge::{Fragments, Recipe};
use lithify_store::manifest::ManifestLog;
use lithify_store::manifest::translate::wire_file;
use lithify_tables::sst::{Assembler, AssemblerOptions, DeletionTrigger, WriteMode};

const PATH: &str = "/db";
/// Last byte first: an order that only the program knows.
#[derive(Debug)]
struct Backwards;

impl Comparator for Backwards {
    fn name(&self) -> &'static str {
        "test.Backwards"
    }
    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        a.iter().rev().cmp(b.iter().rev())
    }
}

/// An order of keys, and the names of the keys 0, 0.5, 1, 1.5 ... that ascend in it.
struct Keys {
    order: ComparatorRef,
    named: fn(u32, bool) -> String,
}

fn orders() -> [Keys; 3] {
    [
        Keys { order: Arc::new(Bytewise), named: |n, half| text(n, half, "5") },
        Keys {
            order: Arc::new(ReverseBytewise),
            // Below k090 in bytes, and so behind it in this order, come the keys that begin with k089.
            named: |n, half| if half { text(98 - n, true, "5") } else { text(99 - n, false, "") },
        },
        Keys {
            order: Arc::new(Backwards),
            named: |n, half| text(n, half, "5").chars().rev().collect(),
        },
    ]
}

fn text(n: u32, half: bool, more: &str) -> String {
    format!("k{n:03}{}", if half { more } else { "" })
}

impl Keys {
    fn key(&self, n: u32) -> Vec<u8> {
        (self.named)(n, false).into_bytes()
    }
    /// Between `n` and `n + 1`.
    fn half(&self, n: u32) -> Vec<u8> {
        (self.named)(n, true).into_bytes()
    }
}

/// An entry: key, sequence number, value.
type Entry = (Vec<u8>, u64, &'static str);

/// Where the bounds of a table end.
enum Hi {
    /// At its last entry.
    Last,
    /// Just before a key.
    Before(Vec<u8>),
}

/// A foreign directory in the making.
struct Theirs<'a> {
    dir: Dir,
    keys: &'a Keys,
    state: ManifestState,
}

impl<'a> Theirs<'a> {
    fn new(fs: &MemFs, keys: &'a Keys) -> Theirs<'a> {
        let fs: FsRef = Arc::new(fs.clone());
        fs.create_dir_all(Path::new(PATH)).unwrap();
        let db_id = Some("theirs".to_owned());
        let mut state = ManifestState { db_id, next_file: 100, last_seq: 99, ..Default::default() };
        let family = state.families.values_mut().next().unwrap();
        family.comparator = Some(keys.order.name().to_owned());
        Theirs { dir: Dir::new(fs, PATH), keys, state }
    }

    /// Table `number`, which stores deletions of all keys with the numbers `deleted`, whole.
    fn table(&mut self, at: (u8, u32), number: u64, entries: &[Entry], deleted: &[u64], hi: Hi) {
        let order = self.keys.order.clone();
        let mut recipe = Recipe::new(1);
        recipe.order = order.clone();
        recipe.snapshots = (1..100).collect();
        (recipe.drop_tombstones, recipe.zero_seqs) = (false, false);
        let mut kernel = Kernel::new(Arc::new(recipe)).unwrap();
        for (key, seq, value) in entries {
            kernel.push(key, Tag::new(*seq, Kind::Value), value.as_bytes(), 0).unwrap();
        }
        kernel.finish().unwrap();
        let mut products = Products::default();
        kernel.drain(&mut products);
        let options = AssemblerOptions {
            pool: BufPool::new(1 << 20),
            buffer: 4096,
            mode: WriteMode::Sync,
            direct: false,
            reserve: 0,
            deletions: DeletionTrigger::default(),
        };
        let spec = TableSpec {
            as_rocksdb: true,
            identity: TableIdentity { file_number: number, ..TableIdentity::default() },
            ..TableSpec::default()
        };
        let mut table = Assembler::create(&self.dir, spec, order.clone(), options).unwrap();
        for item in products.items() {
            if let Item::Block(block) = item {
                table.push_product(&products, block).unwrap();
            }
        }
        let (lo, hi_key) = (self.keys.key(0), self.keys.key(99));
        let whole = |&seq: &u64| RangeTombstone {
            lo: lo.clone().into(),
            hi: hi_key.clone().into(),
            seq,
            run: 0,
        };
        let whole = Fragments::from_raw(deleted.iter().map(whole), &*order);
        table.push_tombstones(&whole.to_tombstones().unwrap());
        let file = wire_file(&table.finish().unwrap().meta);
        let (first, last) = (entries.first().unwrap(), entries.last().unwrap());
        let internal = |key: &[u8], tag| InternalKey { user: key, tag }.to_vec();
        let file = WireFile {
            level: at.0,
            stratum: at.1,
            epoch: 7,
            smallest: internal(&first.0, Tag::new(first.1, Kind::Value)),
            largest: match &hi {
                Hi::Last => internal(&last.0, Tag::new(last.1, Kind::Value)),
                Hi::Before(key) => internal(key, FileMeta::EXCLUSIVE_END),
            },
            counts: None,
            ..file
        };
        self.state.families.values_mut().next().unwrap().files.insert(number, file);
    }

    fn write(self) {
        self.dir.write_identity("theirs").unwrap();
        ManifestLog::create(&self.dir, 3, self.state).unwrap();
    }
}

fn all(keys: impl IntoIterator<Item = Vec<u8>>, seq: u64, value: &'static str) -> Vec<Entry> {
    keys.into_iter().map(|key| (key, seq, value)).collect()
}

/// A deletion of all keys, of which the first tenth was written anew and went to the last level without
/// its numbers, as did what lies behind the last table; beneath the deletion is older data.
///
/// ```text
///   L1.1         20-----------30]            deletion [0, 99)@50, whole, or two
///   L1.0                       30---------45)    with `lower` the same
///   L6    0---9  25.......30 30.5 31....44   46---60
///         new    old           x    old      new
/// ```
fn straddled(fs: &MemFs, keys: &Keys, shape: Shape) -> Content {
    let key = |n| keys.key(n);
    let deletions: &[u64] = if shape.again { &[50, 95] } else { &[50] };
    // What was written since the last deletion.
    let since = if shape.again { 96 } else { 60 };
    let mut db = Theirs::new(fs, keys);
    let mut upper = all((20..30).map(key), since, "upper");
    upper.push((key(30), 90, "newest"));
    db.table((1, 1), 10, &upper, deletions, Hi::Last);
    let mut below = vec![(key(30), if shape.lower { 80 } else { 40 }, "older")];
    below.extend(all((31..40).map(key), since, "lower"));
    let stored = if shape.lower { deletions } else { &[] };
    db.table((1, 0), 11, &below, stored, Hi::Before(key(45)));
    db.table((6, 0), 12, &all((0..10).map(key), 0, "new"), &[], Hi::Last);
    let mut old = all((25..=30).map(key), 0, "old");
    // Without the deletion in the lower table, this is newer than the deletion.
    old.push((keys.half(30), 0, "between"));
    old.extend(all((31..45).map(key), 0, "old"));
    db.table((6, 0), 13, &old, &[], Hi::Last);
    db.table((6, 0), 14, &all((46..60).map(key), 0, "new"), &[], Hi::Last);
    db.write();

    let mut content = Content::default();
    let mut put = |key: Vec<u8>, value: &str| content.insert(key, value.as_bytes().to_vec());
    (0..10).chain(46..60).for_each(|n| drop(put(key(n), "new")));
    (20..30).for_each(|n| drop(put(key(n), "upper")));
    if !shape.again {
        put(key(30), "newest");
    }
    (31..40).for_each(|n| drop(put(key(n), "lower")));
    if !shape.lower {
        put(keys.half(30), "between");
        (40..45).for_each(|n| drop(put(key(n), "old")));
    }
    content
}

/// What differs between such directories.
#[derive(Clone, Copy, Debug)]
struct Shape {
    /// The lower table of the two that share a key has the deletions, too.
    lower: bool,
    /// There is a second deletion, newer than all versions of the shared key.
    again: bool,
}

impl Shape {
    fn all() -> impl Iterator<Item = Shape> {
        let both = [true, false];
        both.into_iter().flat_map(move |lower| both.map(|again| Shape { lower, again }))
    }
}

fn world(fs: &MemFs) -> Env {
    Env { fs: Arc::new(fs.clone()), rt: Arc::new(OsRt::new(RtOptions::default())) }
}

fn builder(fs: &MemFs, keys: &Keys, policy: Policy) -> Builder {
    let mut s = tiny();
    s.auto_compaction = false;
    s.policy = Some(policy);
    Builder::new(s).env(world(fs)).comparator(keys.order.clone())
}

/// What gets and scans show, which must be the same.
fn shown(db: &Db, keys: &Keys) -> Content {
    let content = scan(db).unwrap();
    for n in 0..99 {
        for key in [keys.key(n), keys.half(n)] {
            let got = db.get(&key).unwrap().map(|v| v.to_vec());
            assert_eq!(got.as_ref(), content.get(&key), "{}", key.escape_ascii());
        }
    }
    content
}

fn clean(fs: &MemFs, keys: &Keys) {
    let order = Some(keys.order.clone());
    let report = lithify::verify::verify(Arc::new(fs.clone()), PATH, order, &mut |_| {}).unwrap();
    assert!(report.is_clean(), "{:?}", report.findings);
}

/// Reads, checks and compacts a directory under every policy.
fn lives(keys: &Keys, make: &dyn Fn(&MemFs) -> Content) {
    for policy in Policy::EVERY.into_iter().filter(|p| *p != Policy::Fifo) {
        let fs = MemFs::new();
        let content = make(&fs);
        clean(&fs, keys);
        {
            let db = builder(&fs, keys, policy).open_read_only(PATH).unwrap();
            assert_eq!(scan(&db).unwrap(), content, "read only");
        }
        let db = builder(&fs, keys, policy).open(PATH).unwrap();
        assert_eq!(shown(&db, keys), content, "opened under {}", policy.name());
        // First the upper table with what is newer, then ever more of it.
        for (from, to) in [(20, 26), (29, 31), (44, 50), (0, 98)] {
            db.compact_range(Some(&keys.key(from)), Some(&keys.key(to))).unwrap();
            assert_eq!(shown(&db, keys), content, "{from} to {to} under {}", policy.name());
        }
        let anew = CompactOptions { rewrite: true, ..CompactOptions::default() };
        db.compact_range_opt(None, None, &anew).unwrap();
        assert_eq!(shown(&db, keys), content, "rewritten under {}", policy.name());
        db.close().unwrap();
        clean(&fs, keys);
    }
}

#[test]
fn deletions_count_only_inside_the_bounds_of_their_table() {
    let [bytewise, ..] = orders();
    for shape in Shape::all() {
        lives(&bytewise, &|fs| straddled(fs, &bytewise, shape));
    }
}

#[test]
fn an_inclusive_end_bounds_deletions_in_reverse_order() {
    let [_, reverse, backwards] = orders();
    for keys in [reverse, backwards] {
        for shape in Shape::all() {
            lives(&keys, &|fs| straddled(fs, &keys, shape));
        }
    }
}

/// Salvage finds the same. Without a manifest nothing says where the deletions end: values that have no
/// number are kept, and the report says so.
#[test]
fn salvage_keeps_what_lies_outside_of_the_bounds() {
    for keys in orders().iter().take(2) {
        for shape in Shape::all() {
            let fs = MemFs::new();
            let content = straddled(&fs, keys, shape);
            let policy = Policy::Leveled;
            let report = builder(&fs, keys, policy).salvage(PATH, "/whole", &mut |_| {}).unwrap();
            assert!(report.lost.is_empty(), "{:?}", report.lost);
            let db = builder(&fs, keys, policy).open("/whole").unwrap();
            assert_eq!(shown(&db, keys), content);

            for name in ["CURRENT", "MANIFEST-000003"] {
                fs.unlink(&Path::new(PATH).join(name)).unwrap();
            }
            let report = builder(&fs, keys, policy).salvage(PATH, "/alone", &mut |_| {}).unwrap();
            let told = report.lost.iter().filter(|l| l.to_string().contains("no manifest says"));
            assert_eq!(told.count(), if shape.lower { 2 } else { 1 }, "{:?}", report.lost);
            let db = builder(&fs, keys, policy).open("/alone").unwrap();
            let found = shown(&db, keys);
            for (key, value) in &content {
                assert_eq!(found.get(key), Some(value), "{}", key.escape_ascii());
            }
        }
    }
}
