//! What `verify` says of directories whose every byte passes its sum and whose files still do not
//! fit together, and of a database at work (reliability F10, F12).

#![allow(clippy::disallowed_methods, reason = "a watchdog shared with other tests")]

use std::cmp::Ordering;
use std::sync::Arc;

use crate::common::image::{self, Image, kind};
use crate::common::{scan, tiny};
use lithify::verify::{Grade, Report, verify};
use lithify::{
    Builder, ColumnFamilyOptions, Comparator, ComparatorRef, ErrorKind, ReverseBytewise,
};
use lithify_base::CfId;
use lithify_env::{Env, MemFs, OsRt, RtOptions};
use lithify_files::Dir;
use lithify_format::table::footer::Footer;
use lithify_format::table::metaindex::{MetaIndex, PROPERTIES};
use lithify_format::table::props::TableProps;
use lithify_format::weight::WEIGHT;
use lithify_journal::manifest::{FamilyState, ManifestState, WireFile};
use lithify_store::manifest::{ManifestLog, recover};

const DIRECTORY: &str = "/db";

fn world(fs: &MemFs) -> Env {
    Env { fs: Arc::new(fs.clone()), rt: Arc::new(OsRt::new(RtOptions::default())) }
}

fn check(fs: &MemFs) -> Report {
    verify(Arc::new(fs.clone()), DIRECTORY, None, &mut |_| {}).unwrap()
}

/// Two tables in level 0 over the same keys, one of them with a range deletion, and a log.
fn database() -> MemFs {
    let fs = MemFs::new();
    let mut s = tiny();
    s.auto_compaction = false;
    let db = Builder::new(s).env(world(&fs)).open(DIRECTORY).unwrap();
    for round in 0..2u8 {
        for n in 0..50 {
            db.put(format!("key{n:02}"), [round; 10]).unwrap();
        }
        if round == 1 {
            db.delete_range("key10", "key20").unwrap();
        }
        db.delete("key30").unwrap();
        db.flush().unwrap();
    }
    db.put("key00", "logged").unwrap();
    db.close().unwrap();
    assert!(check(&fs).is_clean());
    fs
}

/// The database with another manifest: `change` is what is wrong with it.
fn with_manifest(change: impl FnOnce(&mut ManifestState)) -> Report {
    let fs = database();
    let dir = Dir::new(Arc::new(fs.clone()), DIRECTORY);
    let mut state = recover(&dir).unwrap().unwrap().state;
    state.next_file += 1;
    let number = state.next_file - 1;
    change(&mut state);
    ManifestLog::create(&dir, number, state).unwrap();
    check(&fs)
}

fn family(state: &mut ManifestState) -> &mut FamilyState {
    state.families.get_mut(&CfId(0)).unwrap()
}

fn newest(state: &mut ManifestState) -> &mut WireFile {
    family(state).files.values_mut().next_back().unwrap()
}

fn finds(report: &Report, what: &str) {
    let found = report.findings.iter().find(|f| f.error.to_string().contains(what));
    let found = found.unwrap_or_else(|| panic!("`{what}` is not in {:?}", report.findings));
    assert_eq!(found.grade, Grade::Damage);
    assert!(found.error.file().is_some());
}

#[test]
fn an_unchanged_manifest_is_clean() {
    let report = with_manifest(|_| {});
    assert!(report.is_clean(), "{:?}", report.findings);
    assert_eq!((report.tables, report.logs, report.keys), (2, 1, 39));
}

/// RocksDB leaves a manifest without counts when it had a settled directory open. The next open counts what
/// the tables hold, one of which has a range deletion.
#[test]
fn what_is_counted_anew_is_what_the_tables_hold() {
    let fs = database();
    let dir = Dir::new(Arc::new(fs.clone()), DIRECTORY);
    let mut state = recover(&dir).unwrap().unwrap().state;
    let counted: Vec<_> = family(&mut state).files.values().map(|file| file.counts).collect();
    family(&mut state).files.values_mut().for_each(|file| file.counts = None);
    state.next_file += 1;
    let number = state.next_file - 1;
    ManifestLog::create(&dir, number, state).unwrap();
    let mut s = tiny();
    s.auto_compaction = false;
    Builder::new(s).env(world(&fs)).open(DIRECTORY).unwrap().close().unwrap();
    let mut state = recover(&dir).unwrap().unwrap().state;
    let anew = family(&mut state).files.values().map(|file| file.counts);
    assert_eq!(anew.take(counted.len()).collect::<Vec<_>>(), counted);
    let report = check(&fs);
    assert!(report.is_clean(), "{:?}", report.findings);
}

/// Invariant R: an older table is put where reads look first.
#[test]
fn older_values_above_newer_ones_are_found() {
    let report = with_manifest(|state| {
        let files = &mut family(state).files;
        let mut epochs: Vec<u64> = files.values().map(|f| f.epoch).collect();
        epochs.reverse();
        files.values_mut().zip(epochs).for_each(|(f, epoch)| f.epoch = epoch);
    });
    finds(&report, "R: key key00 has write");
    // Only the range deletion tells for this one, which has no point entry in the newer table.
    finds(&report, "R: key key15");
}

/// Sizes whose sum no counter holds are damage like any other.
#[test]
fn sizes_beyond_all_bounds_are_compared() {
    let report = with_manifest(|state| {
        family(state).files.values_mut().for_each(|file| file.size = u64::MAX - 1);
    });
    finds(&report, "000");
    assert!(report.findings.iter().filter(|f| f.grade == Grade::Damage).count() >= 2);
}

#[test]
fn counts_bounds_and_numbers_of_the_manifest_are_compared() {
    let report = with_manifest(|state| newest(state).counts.as_mut().unwrap().entries += 1);
    finds(&report, "the table has 40 entries, the manifest says 41");
    let report = with_manifest(|state| newest(state).counts.as_mut().unwrap().raw_key_bytes -= 1);
    finds(&report, "bytes of keys");
    let report = with_manifest(|state| {
        let largest = &mut newest(state).largest;
        largest[4] -= 1; // key49 becomes key39
    });
    finds(&report, "outside the bounds");
    let report = with_manifest(|state| newest(state).smallest_seq += 3);
    finds(&report, "outside those the manifest gives");
    let report = with_manifest(|state| state.last_seq = 7);
    finds(&report, "and the last one is 7");
    let report = with_manifest(|state| state.next_file = 3);
    finds(&report, "the next file number is 3");
    let report = with_manifest(|state| newest(state).base_context ^= 1);
    finds(&report, "another table lies under this name");
    let report = with_manifest(|state| newest(state).size += 1);
    finds(&report, "the manifest says");
    let report = with_manifest(|state| state.db_id = Some("another".to_owned()));
    finds(&report, "IDENTITY");
}

/// Files that form no tree are still checked one by one.
#[test]
fn overlapping_files_of_one_run_are_found() {
    let report = with_manifest(|state| family(state).files.values_mut().for_each(|f| f.epoch = 9));
    finds(&report, "V1");
    assert_eq!(report.tables, 2);
}

/// Flushed writes are in a log that counts again.
#[test]
fn a_log_that_was_flushed_is_not_replayed_twice() {
    let fs = database();
    let log = image::take(&fs, DIRECTORY).into_iter().find(|(n, _)| kind(n) == "log").unwrap();
    let number: u64 = log.0.trim_end_matches(".log").parse().unwrap();
    let report = with_manifest(|state| {
        state.families.values_mut().for_each(|f| f.log_number = number);
        let newest = newest(state);
        newest.largest_seq += 100;
        state.last_seq += 100;
    });
    finds(&report, "tables write");
}

#[test]
fn all_damage_is_listed() {
    let fs = database();
    let mut image = image::take(&fs, DIRECTORY);
    let tables: Vec<String> = image.keys().filter(|n| kind(n) == "table").cloned().collect();
    for table in &tables {
        image.get_mut(table).unwrap()[100] ^= 1;
    }
    let log = image.keys().find(|n| kind(n) == "log").unwrap().clone();
    image.get_mut(&log).unwrap()[60] ^= 1;
    image.get_mut("CURRENT").unwrap().clear();
    image.insert("notes.txt".to_owned(), b"mine".to_vec());
    image.insert("000001.sst".to_owned(), b"what a crash leaves".to_vec());
    let report = check(&image::put(&image, DIRECTORY));
    for name in tables.iter().chain([&log, &"CURRENT".to_owned()]) {
        let named = |f: &&lithify::verify::Finding| f.error.to_string().contains(name);
        assert_eq!(report.findings.iter().filter(named).count(), 1, "{name}: {report:?}");
    }
    assert!(report.orphans.contains(&"000001.sst".to_owned()));
    assert!(report.foreign.contains(&"notes.txt".to_owned()));
}

#[test]
fn without_a_manifest_tables_are_checked_alone() {
    let mut image: Image = image::take(&database(), DIRECTORY);
    image.retain(|name, _| kind(name) != "MANIFEST");
    let table = image.keys().find(|n| kind(n) == "table").unwrap().clone();
    image.get_mut(&table).unwrap()[100] ^= 1;
    let report = check(&image::put(&image, DIRECTORY));
    finds(&report, "CURRENT names this manifest, which is missing");
    finds(&report, &table);
    assert_eq!(report.tables, 2);
}

/// Gives a table a content weight that it does not have, under a right checksum. Returns the table's name
/// and the weights: of its entries, and by the property.
fn misstate_weight(image: &mut Image) -> (String, [u64; 2]) {
    let table = image.keys().find(|n| kind(n) == "table").unwrap().clone();
    let bytes = image.get_mut(&table).unwrap();
    let footer = Footer::read(bytes, bytes.len() as u64).unwrap();
    let range = |start: u64, size: u64| start as usize..(start + size) as usize;
    let index = &bytes[range(footer.metaindex.offset, footer.metaindex.size)];
    let at = MetaIndex::decode(index).unwrap().get(PROPERTIES).unwrap();
    let mut payload = bytes[range(at.offset, at.size)].to_vec();
    let mut props = TableProps::decode(&payload).unwrap();
    let weight = props.weight().unwrap();
    props.other.insert(WEIGHT.into(), (weight ^ 1).to_le_bytes().into());
    payload.copy_from_slice(&props.encode());
    let mut block = Vec::new();
    footer.check.append(&mut block, &payload, 0, at.offset);
    bytes[at.offset as usize..][..block.len()].copy_from_slice(&block);
    (table, [weight, weight ^ 1])
}

/// The error of the compaction names the way out, and this is it: `verify` says which table is wrong, and
/// with that table from a backup the compaction runs.
#[test]
fn a_wrong_weight_stops_compactions_until_the_table_is_restored() {
    let sound = image::take(&database(), DIRECTORY);
    let mut wrong = sound.clone();
    let (table, weights) = misstate_weight(&mut wrong);
    let fs = image::put(&wrong, DIRECTORY);
    let mut settings = tiny();
    settings.auto_compaction = false;
    let open = |fs: &MemFs| Builder::new(settings.clone()).env(world(fs)).open(DIRECTORY).unwrap();

    let db = open(&fs);
    let content = scan(&db).unwrap();
    let error = db.compact_range(None, None).unwrap_err().to_string();
    for part in [WEIGHT, "lithify verify", "restore a table that it finds wrong from a backup"] {
        assert!(error.contains(part), "{part}: {error}");
    }
    assert_eq!(scan(&db).unwrap(), content, "nothing was changed");
    db.close().ok();

    let report = check(&fs);
    finds(&report, &table);
    for weight in weights {
        finds(&report, &format!("{weight:#x}"));
    }
    let mut restored = image::take(&fs, DIRECTORY);
    restored.insert(table.clone(), sound[&table].clone());
    let fs = image::put(&restored, DIRECTORY);
    assert!(check(&fs).is_clean());
    let db = open(&fs);
    db.compact_range(None, None).unwrap();
    assert_eq!(scan(&db).unwrap(), content);
    db.close().unwrap();
    assert!(check(&fs).is_clean());
}

#[test]
fn no_database_is_an_error() {
    let fs = MemFs::new();
    let e = verify(Arc::new(fs.clone()), "/nowhere", None, &mut |_| {}).unwrap_err();
    assert!(matches!(e.kind(), ErrorKind::Io | ErrorKind::NotFound), "{e:?}");
}

/// Files come and go and logs grow while `verify` reads: none of that is damage.
#[test]
fn a_database_at_work_is_clean() {
    let fs = MemFs::new();
    let mut s = tiny();
    s.memtable_bytes = 64 << 10;
    let db = Builder::new(s).env(world(&fs)).open(DIRECTORY).unwrap();
    let mut rng = fastrand::Rng::with_seed(5);
    for round in 0..40 {
        for _ in 0..200 {
            db.put(rng.u32(0..5000).to_be_bytes(), [7; 100]).unwrap();
        }
        let writer = db.clone();
        let done = std::thread::spawn(move || {
            for n in 0..600u32 {
                writer.put(n.to_be_bytes(), [n as u8; 100]).unwrap();
            }
        });
        let report = check(&fs);
        assert!(report.is_clean(), "round {round}: {:?}", report.findings);
        done.join().unwrap();
    }
    db.close().unwrap();
    assert!(check(&fs).is_clean());
}

/// The order of numbers as text: 9 before 10.
struct Numbers(&'static str);

impl Comparator for Numbers {
    fn name(&self) -> &'static str {
        self.0
    }
    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        (a.len(), a).cmp(&(b.len(), b))
    }
}

/// Families in three orders: one of ours, and two that only the program knows.
#[test]
fn every_family_is_checked_in_its_own_order_and_named() {
    let fs = MemFs::new();
    let (short, other): (ComparatorRef, ComparatorRef) =
        (Arc::new(Numbers("numbers")), Arc::new(Numbers("other numbers")));
    let mut s = tiny();
    s.auto_compaction = false;
    let builder = |fs: &MemFs| {
        let family = |order: &ComparatorRef| ColumnFamilyOptions::new().comparator(order.clone());
        Builder::new(s.clone())
            .env(world(fs))
            .column_family("short", family(&short))
            .column_family("other", family(&other))
            .column_family("back", family(&(Arc::new(ReverseBytewise) as ComparatorRef)))
    };
    let db = builder(&fs).open(DIRECTORY).unwrap();
    let order = |order: &ComparatorRef| ColumnFamilyOptions::new().comparator(order.clone());
    let families = [
        db.create_column_family("short", order(&short)).unwrap(),
        db.create_column_family("other", order(&other)).unwrap(),
        db.create_column_family("back", order(&(Arc::new(ReverseBytewise) as _))).unwrap(),
    ];
    for n in 0..120 {
        db.put(n.to_string(), [1; 40]).unwrap();
        families.iter().for_each(|family| family.put(n.to_string(), [2; 40]).unwrap());
    }
    db.flush().unwrap();
    families.iter().for_each(|family| family.flush().unwrap());
    drop(families);
    db.close().unwrap();
    let report = builder(&fs).verify(DIRECTORY, &mut |_| {}).unwrap();
    assert!(report.is_clean(), "{:?}", report.findings);
    assert_eq!((report.tables, report.keys), (4, 480));
    // Without the comparators, what needs them is not called damaged, and all else is checked.
    let report = check(&fs);
    let named: Vec<_> = report.findings.iter().map(|f| (f.grade, f.family.as_deref())).collect();
    let unchecked = |family| (Grade::Unchecked, Some(family));
    assert_eq!(named, [unchecked("short"), unchecked("other")], "{:?}", report.findings);
    assert!(report.findings[0].to_string().contains("`short`"));
    assert!(report.findings[0].to_string().contains("`numbers`"));
    assert_eq!((report.tables, report.keys), (2, 240));
    // Damage in one family names it.
    let mut image = image::take(&fs, DIRECTORY);
    let tables: Vec<String> = image.keys().filter(|n| kind(n) == "table").cloned().collect();
    let mut damaged = Vec::new();
    for table in &tables {
        image.get_mut(table).unwrap()[30] ^= 1;
        let report = builder(&image::put(&image, DIRECTORY)).verify(DIRECTORY, &mut |_| {});
        image.get_mut(table).unwrap()[30] ^= 1;
        let findings = report.unwrap().findings;
        assert_eq!(findings.len(), 1, "{findings:?}");
        damaged.extend(findings[0].family.clone());
    }
    damaged.sort();
    assert_eq!(damaged, ["back", "default", "other", "short"]);
    // Without the manifest each table is checked in the order that it records.
    image.retain(|name, _| kind(name) != "MANIFEST");
    let report = builder(&image::put(&image, DIRECTORY)).verify(DIRECTORY, &mut |_| {}).unwrap();
    assert_eq!((report.findings.len(), report.tables), (1, 4), "{:?}", report.findings);
}
