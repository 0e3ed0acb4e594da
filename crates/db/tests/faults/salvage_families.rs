//! Several column families come back from damaged directories: each with its own keys in its own order,
//! none with those of another, and the report says whose a loss is.
//!
//! Every value tells the family and the key that it was written to, so a mix-up shows.

#![allow(clippy::disallowed_methods, reason = "a watchdog shared with other tests")]

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use crate::common::image::{self, Image, kind};
use crate::common::{Content, scan, tiny};
use lithify::merge::Append;
use lithify::salvage::SalvageReport;
use lithify::{Builder, ColumnFamilyOptions, Db, ErrorKind, ReverseBytewise, Settings, WriteBatch};
use lithify_base::Comparator;
use lithify_env::{Env, Fs, MemFs, OsRt, RtOptions, RtRef};
use lithify_journal::wal::{BatchBuilder, RecordWriter};

const DIRECTORY: &str = "/db";
const TO: &str = "/new";
const KEYS: u32 = 120;

type Contents = BTreeMap<String, Content>;

fn settings() -> Settings {
    let mut s = tiny();
    s.auto_compaction = false;
    s.event_log = false;
    s
}

fn runtime() -> RtRef {
    Arc::new(OsRt::new(RtOptions::default()))
}

/// Who opens the database as its owner does.
fn builder(fs: &MemFs, rt: &RtRef) -> Builder {
    let operands = ColumnFamilyOptions::new().merge_operator(Arc::new(Append::default()));
    let env = Env { fs: Arc::new(fs.clone()), rt: rt.clone() };
    Builder::new(settings()).env(env).column_family("operands", operands)
}

fn key(n: u32) -> Vec<u8> {
    format!("key{n:04}").into_bytes()
}

fn value(family: &str, n: u32) -> Vec<u8> {
    format!("{family}, {n}, {}", ".".repeat(n as usize % 50)).into_bytes()
}

/// `reversed` has an order of its own, `operands` an operator, `logged` nothing in a table. The others
/// have two tables and a part in the log.
const FAMILIES: [&str; 4] = ["default", "reversed", "operands", "logged"];

fn sound(rt: &RtRef) -> (Image, Contents) {
    let fs = MemFs::new();
    let db = builder(&fs, rt).open(DIRECTORY).unwrap();
    for name in &FAMILIES[1..] {
        let options = match *name {
            "reversed" => ColumnFamilyOptions::new().comparator(Arc::new(ReverseBytewise)),
            "operands" => ColumnFamilyOptions::new().merge_operator(Arc::new(Append::default())),
            _ => ColumnFamilyOptions::new(),
        };
        db.create_column_family(name, options).unwrap();
    }
    let families = FAMILIES.map(|name| db.column_family(name).unwrap());
    let mut truth: Contents = FAMILIES.map(|name| (name.to_owned(), Content::new())).into();
    for n in 0..KEYS {
        let mut batch = WriteBatch::new();
        for (family, name) in families.iter().zip(FAMILIES) {
            if name == "logged" && n < 80 {
                continue;
            }
            let content = truth.get_mut(name).unwrap();
            batch.put_cf(family, key(n), value(name, n)).unwrap();
            content.insert(key(n), value(name, n));
            if n % 9 == 8 {
                batch.delete_cf(family, key(n / 2)).unwrap();
                content.remove(&key(n / 2));
            }
            if name == "operands" && n % 10 == 7 {
                batch.merge_cf(family, key(n), b"more").unwrap();
                content.get_mut(&key(n)).unwrap().extend_from_slice(b",more");
            }
        }
        db.write(&batch).unwrap();
        if n == 39 || n == 79 {
            families[..3].iter().for_each(|family| family.flush().unwrap());
        }
    }
    db.close().unwrap();
    (image::take(&fs, DIRECTORY), truth)
}

/// Salvages `image`; the report and what the new database holds.
fn salvage(image: &Image, rt: &RtRef) -> (SalvageReport, Contents) {
    let fs = image::put(image, DIRECTORY);
    let report =
        builder(&fs, rt).salvage(DIRECTORY, TO, &mut |_| {}).unwrap_or_else(|e| panic!("{e}"));
    assert!(image::take(&fs, DIRECTORY) == *image, "the damaged directory is as it was");
    let checked = lithify::verify::verify(Arc::new(fs.clone()), TO, None, &mut |_| {}).unwrap();
    assert!(checked.is_clean(), "{:?}", checked.findings);
    let db = builder(&fs, rt).open(TO).unwrap();
    let names: Vec<_> = report.families.iter().map(|family| family.name.clone()).collect();
    assert_eq!(db.column_families(), names);
    let mut contents = Contents::new();
    for done in &report.families {
        let family = db.column_family(&done.name).unwrap();
        let reversed = family.name() == "reversed";
        assert!(!reversed || ascends_by(&family, &ReverseBytewise), "{}", done.name);
        let content = scan(&family).unwrap();
        assert_eq!(content.len() as u64, done.keys);
        contents.insert(done.name.clone(), content);
    }
    assert_eq!(report.keys, report.families.iter().map(|f| f.keys).sum::<u64>());
    db.close().unwrap();
    (report, contents)
}

fn ascends_by(db: &Db, order: &dyn Comparator) -> bool {
    let mut iter = db.iter().unwrap();
    iter.seek_to_first();
    let mut last: Option<Vec<u8>> = None;
    while iter.valid() {
        if last.is_some_and(|last| order.compare(&last, iter.key()).is_ge()) {
            return false;
        }
        last = Some(iter.key().to_vec());
        iter.next();
    }
    true
}

fn names(image: &Image, of: &str) -> Vec<String> {
    image.keys().filter(|n| kind(n) == of).cloned().collect()
}

/// Each value that came back was written to that key of that family.
fn nothing_is_mixed_up(story: &str, contents: &Contents) {
    for (name, content) in contents {
        let whose = if name.starts_with("unnamed-") { "logged" } else { name };
        for (key, value) in content {
            let n = std::str::from_utf8(&key[3..]).unwrap().parse().unwrap();
            let wrote = self::value(whose, n);
            assert!(value.starts_with(&wrote), "{story}: {name}: {}", value.escape_ascii());
        }
    }
}

#[test]
fn all_families_come_back_whole() {
    let rt = runtime();
    let (image, truth) = sound(&rt);
    let (report, contents) = salvage(&image, &rt);
    assert!(report.lost.is_empty() && report.notes.is_empty(), "{report:?}");
    assert!(contents == truth);
    let tables: Vec<_> = report.families.iter().map(|f| f.tables).collect();
    assert_eq!(tables, [2, 2, 2, 0]);
}

/// Without a manifest a family is called what its tables say; one that is in logs alone gets a name.
#[test]
fn without_a_manifest_tables_name_their_families() {
    let rt = runtime();
    let (image, mut truth) = sound(&rt);
    let mut broken = image.clone();
    broken.remove("CURRENT");
    let (report, contents) = salvage(&broken, &rt);
    assert!(contents == truth && report.manifest.is_some(), "{report:?}");
    broken.retain(|name, _| kind(name) != "MANIFEST");
    let (report, contents) = salvage(&broken, &rt);
    assert!(report.notes.iter().any(|n| n.contains("`unnamed-3` now")), "{report:?}");
    assert!(report.lost.is_empty(), "{report:?}");
    let logged = truth.remove("logged").unwrap();
    truth.insert("unnamed-3".to_owned(), logged);
    assert!(contents == truth, "{report:?}");
}

#[test]
fn a_manifest_damaged_anywhere_costs_no_more_than_names() {
    let rt = runtime();
    let (image, truth) = sound(&rt);
    let manifest = names(&image, "MANIFEST").remove(0);
    let (mut unnamed, mut named) = (0, 0);
    let mut story = |what: &str, image: &Image| {
        let (report, mut contents) = salvage(image, &rt);
        match contents.remove("unnamed-3") {
            Some(logged) => {
                unnamed += 1;
                assert!(!contents.contains_key("logged") && logged == truth["logged"], "{what}");
                contents.insert("logged".to_owned(), logged);
            }
            None => named += 1,
        }
        assert!(contents == truth, "{what}: {report:?}");
    };
    for at in (0..image[&manifest].len()).step_by(11) {
        let mut broken = image.clone();
        broken.get_mut(&manifest).unwrap()[at] ^= 1;
        story(&format!("byte {at}"), &broken);
        let mut cut = image.clone();
        cut.get_mut(&manifest).unwrap().truncate(at);
        story(&format!("cut at {at}"), &cut);
    }
    assert!(unnamed > 5 && named > 5, "{unnamed} {named}");
}

#[test]
fn a_lost_table_costs_its_own_family() {
    let rt = runtime();
    let (image, truth) = sound(&rt);
    let mut met = BTreeMap::new();
    for table in names(&image, "table") {
        let mut broken = image.clone();
        broken.remove(&table);
        let (report, contents) = salvage(&broken, &rt);
        assert_eq!(report.lost.len(), 1, "{:?}", report.lost);
        let lost = &report.lost[0];
        let whose = lost.family.clone().unwrap();
        assert!(lost.file == table && lost.entries.unwrap() > 30, "{lost}");
        assert_eq!(lost.to_string().contains("of column family"), whose != "default", "{lost}");
        nothing_is_mixed_up(&table, &contents);
        for name in FAMILIES {
            assert_eq!(contents[name] == truth[name], name != whose, "{name} without {table}");
        }
        *met.entry(whose).or_insert(0) += 1;
    }
    assert!(met.values().eq(&[2, 2, 2]) && met.len() == 3, "{met:?}");
}

/// Two faults at once: no manifest, and a table that is damaged anywhere. What cannot be told apart is
/// left out, and said.
#[test]
fn a_table_damaged_without_a_manifest_is_taken_for_no_other_family() {
    let rt = runtime();
    let (mut image, mut truth) = sound(&rt);
    image.retain(|name, _| kind(name) != "MANIFEST");
    let logged = truth.remove("logged").unwrap();
    truth.insert("unnamed-3".to_owned(), logged);
    let (mut unknown, mut known) = (0, 0);
    for table in names(&image, "table") {
        let len = image[&table].len();
        for at in (0..len).step_by(len / 9).chain(len - 60..len) {
            let mut broken = image.clone();
            broken.get_mut(&table).unwrap()[at] ^= 4;
            let (report, contents) = salvage(&broken, &rt);
            let story = format!("{table}, byte {at}: {:?}", report.lost);
            nothing_is_mixed_up(&story, &contents);
            let differ =
                truth.iter().filter(|(name, content)| contents.get(*name) != Some(*content));
            let differ: Vec<_> = differ.map(|(name, _)| name.as_str()).collect();
            assert!(differ.len() <= 1, "{story}: {differ:?}");
            match report.lost.first() {
                None => assert!(differ.is_empty(), "{story}: {differ:?}"),
                Some(lost) if lost.cause.contains("which column family") => unknown += 1,
                Some(lost) => {
                    let whose = lost.family.as_deref();
                    assert!(differ.iter().all(|name| whose == Some(name)), "{story}: {differ:?}");
                    known += 1;
                }
            }
        }
    }
    assert!(unknown > 5 && known > 5, "{unknown} {known}");
}

/// A name is used again: what the family had that was dropped stays away, though its table is there.
#[test]
fn of_two_families_with_one_name_the_newer_counts() {
    let rt = runtime();
    let fs = MemFs::new();
    let db = builder(&fs, &rt).open(DIRECTORY).unwrap();
    let mut old = Image::new();
    for round in ["old", "new"] {
        let family = db.create_column_family("a", ColumnFamilyOptions::new()).unwrap();
        family.put(round, round).unwrap();
        family.flush().unwrap();
        if round == "old" {
            old = image::take(&fs, DIRECTORY);
            db.drop_column_family("a").unwrap();
        }
    }
    db.close().unwrap();
    let mut image = image::take(&fs, DIRECTORY);
    let (report, contents) = salvage(&image, &rt);
    assert!(report.notes.is_empty() && contents["a"].keys().eq([b"new"]), "{report:?}");
    let tables = old.into_iter().filter(|(name, _)| kind(name) == "table");
    image.extend(tables);
    image.retain(|name, _| kind(name) == "table");
    let (report, contents) = salvage(&image, &rt);
    assert!(contents["a"].keys().eq([b"new"]), "{report:?}");
    assert!(report.notes.iter().any(|n| n.contains("number 1 was dropped")), "{report:?}");
}

struct Shortest;

impl Comparator for Shortest {
    fn name(&self) -> &'static str {
        "shortest"
    }
    fn compare(&self, a: &[u8], b: &[u8]) -> std::cmp::Ordering {
        a.len().cmp(&b.len()).then(a.cmp(b))
    }
}

/// An order that only the program knows is asked for, whether a manifest or a table names it.
#[test]
fn an_unknown_order_is_asked_for_by_the_name_of_its_family() {
    let rt = runtime();
    let fs = MemFs::new();
    let given = |builder: Builder| {
        builder.column_family("odd", ColumnFamilyOptions::new().comparator(Arc::new(Shortest)))
    };
    let db = builder(&fs, &rt).open(DIRECTORY).unwrap();
    let odd = ColumnFamilyOptions::new().comparator(Arc::new(Shortest));
    let family = db.create_column_family("odd", odd).unwrap();
    family.put("b", "1").unwrap();
    family.put("aa", "2").unwrap();
    family.flush().unwrap();
    db.close().unwrap();
    let whole = image::take(&fs, DIRECTORY);
    let mut bare = whole.clone();
    bare.retain(|name, _| kind(name) != "MANIFEST");
    for image in [whole, bare] {
        let fs = image::put(&image, DIRECTORY);
        let error = builder(&fs, &rt).salvage(DIRECTORY, TO, &mut |_| {}).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(error.to_string().contains("`odd`"), "{error}");
        assert_eq!(fs.list(Path::new("/")).unwrap().len(), 1, "nothing was made");
        given(builder(&fs, &rt)).salvage(DIRECTORY, TO, &mut |_| {}).unwrap();
        let db = given(builder(&fs, &rt)).open(TO).unwrap();
        assert!(ascends_by(&db.column_family("odd").unwrap(), &Shortest));
        assert_eq!(scan(&db.column_family("odd").unwrap()).unwrap().len(), 2);
        db.close().unwrap();
    }
}

/// A log may tell of any number of families: so many get a name, of the others the report knows.
#[test]
fn families_without_a_name_have_a_limit() {
    let rt = runtime();
    let (mut batch, mut log) = (BatchBuilder::new(), Vec::new());
    batch.set_sequence(1);
    for cf in 1..=20 {
        batch.put(lithify_base::CfId(cf), &key(cf), b"v");
    }
    RecordWriter::new().append(batch.as_bytes(), &mut log);
    let image = Image::from([("000005.log".to_owned(), log)]);
    let (report, contents) = salvage(&image, &rt);
    assert_eq!((report.families.len(), report.lost.len()), (17, 4), "{report:?}");
    for cf in 1..=16 {
        assert!(contents[&format!("unnamed-{cf}")].keys().eq([&key(cf)]));
    }
    assert!(report.lost.iter().all(|l| l.file == "000005.log" && l.entries == Some(1)));
}
