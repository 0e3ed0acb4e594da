//! The manifest under test: single faults, torn tails, the order in which CURRENT changes, and
//! translation both ways.

use std::io;
use std::path::Path;

use lithify_base::{
    CfId, ComparatorRef, End, ErrorKind, FileId, InternalKey, JobId, Key, KeyRange, Kind, Pos, Tag,
    bytewise,
};
use lithify_env::sync::{Arc, Mutex};
use lithify_env::{Fault, FaultFs, FsRef, MemFs, OpenOpts, write_all_at};
use lithify_files::dir::{Dir, FileName};
use lithify_journal::manifest::{FamilyState, ManifestState, WireEdit, WireFile};
use lithify_lsm::{BucketMap, BucketStat, Edit, FileMeta};
use lithify_merge::tombstone::RangeTombstone;
use lithify_merge::workload::Choices;
use lithify_tables::testing;

use super::translate::{
    decode_hint, encode_hint, file_meta, order_foreign, renumber, wire_edit, wire_file,
};
use super::*;

fn order() -> ComparatorRef {
    bytewise()
}

fn dir_on(fs: FsRef) -> Dir {
    fs.create_dir_all(Path::new("/db")).unwrap();
    Dir::new(fs, "/db")
}

fn meta(id: u64, pos: Pos, lo: &str, hi: &str) -> FileMeta {
    let mut file = FileMeta::new(FileId(id), pos, KeyRange::incl(lo.as_bytes(), hi.as_bytes()));
    file.bytes = 1000 + id;
    file.entries = 10;
    file.seqs = (1, 9);
    file.epoch = u64::from(pos.stratum.0);
    file
}

fn empty() -> ManifestState {
    let mut state =
        ManifestState { db_id: Some("db".to_owned()), next_file: 2, ..Default::default() };
    let family = state.families.get_mut(&CfId(0)).unwrap();
    family.comparator = Some(order().name().to_owned());
    state
}

/// The edit of flush `n`: one file of its own stratum.
fn flush(n: u64) -> WireEdit {
    let mut edit = Edit::new(CfId(0));
    edit.job = Some(JobId(n));
    edit.adds = vec![meta(100 + n, Pos::new(0, 2 + n as u32), "a", "m")];
    edit.log_number = Some(50 + n);
    WireEdit { next_file: Some(200 + n), last_seq: Some(10 * n), ..wire_edit(&edit) }
}

/// Numbers of the files that a reopen finds; `None` if there is no database.
fn found(fs: &MemFs) -> lithify_base::Result<Option<Vec<u64>>> {
    let dir = Dir::new(Arc::new(fs.clone()), "/db");
    let Some(found) = recover(&dir)? else { return Ok(None) };
    let version = family_version(&found.state, CfId(0), order())?;
    let mut ids: Vec<u64> = version.files().map(|f| f.id.0).collect();
    ids.sort_unstable();
    Ok(Some(ids))
}

#[test]
fn a_manifest_round_trips() {
    let fs = MemFs::new();
    let dir = dir_on(Arc::new(fs.clone()));
    assert!(recover(&dir).unwrap().is_none());
    let mut log = ManifestLog::create(&dir, 1, empty()).unwrap();
    log.commit(&[flush(1), flush(2)]).unwrap();
    let mut moved = Edit::new(CfId(0));
    let mut file = meta(101, Pos::new(1, 0), "a", "m");
    file.epoch = 3;
    moved.adds = vec![file];
    moved.deletes = vec![(Pos::new(0, 3), FileId(101))];
    moved.cursors = vec![(1, Key::from(&b"g"[..]))];
    moved.bucket_hint = Some(std::sync::Arc::new(BucketMap::single()));
    log.commit(&[wire_edit(&moved)]).unwrap();
    let read = recover(&dir).unwrap().unwrap();
    assert_eq!((&read.state, read.manifest, read.torn), (log.state(), 1, false));
    assert_eq!(read.good_end, log.bytes());
    let version = family_version(&read.state, CfId(0), order()).unwrap();
    let placed: Vec<(u64, Pos)> = version.files().map(|f| (f.id.0, f.pos)).collect();
    assert_eq!(placed, [(102, Pos::new(0, 4)), (101, Pos::new(1, 0))]);
    assert_eq!(
        (version.log_number(), version.cursor(1).unwrap()[..].to_vec()),
        (52, b"g".to_vec())
    );
    assert_eq!(version.buckets().unwrap().len(), 1);
    assert_eq!((read.state.next_file, read.state.last_seq), (202, 20));
    log.roll(202, 203).unwrap();
    let rolled = recover(&dir).unwrap().unwrap();
    assert_eq!((&rolled.state, rolled.manifest), (log.state(), 202));
    assert_eq!(rolled.state.families, read.state.families);
}

/// Content, directory entry, and only then what refers to it, read off the calls.
#[test]
fn current_names_a_manifest_that_is_there() {
    let calls = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&calls);
    let fs = FaultFs::new(Arc::new(MemFs::new()), move |op| {
        let name = op.path.file_name().map(|n| n.to_string_lossy().into_owned());
        noted.lock().push(format!("{} {}", op.name, name.unwrap_or_default()));
        None
    });
    let dir = dir_on(Arc::new(fs));
    let take = || {
        let changes = |c: &String| !c.starts_with("file_len") && !c.starts_with("set_len");
        std::mem::take(&mut *calls.lock()).into_iter().filter(changes).collect::<Vec<_>>()
    };
    take();
    let mut log = ManifestLog::create(&dir, 7, empty()).unwrap();
    let expected = [
        "create MANIFEST-000007",
        "write_at MANIFEST-000007",
        "sync_all MANIFEST-000007",
        "sync_dir db",
        "create 000007.dbtmp",
        "write_at 000007.dbtmp",
        "sync_all 000007.dbtmp",
        "rename 000007.dbtmp",
        "sync_dir db",
    ];
    assert_eq!(take(), expected);
    log.commit(&[flush(1)]).unwrap();
    assert_eq!(take(), ["write_at MANIFEST-000007", "sync_data MANIFEST-000007"]);
    log.roll(9, 10).unwrap();
    assert_eq!(take(), expected.map(|call| call.replace("000007", "000009")));
}

/// What the owner of the manifest does: on doubt, a new manifest without the edit settles it.
fn commit(log: &mut ManifestLog, edit: &WireEdit, next: &mut u64) -> lithify_base::Result<()> {
    if log.uncertain().is_some() {
        *next += 1;
        log.roll(*next, *next + 1)?;
    }
    log.commit(std::slice::from_ref(edit))
}

/// Each call of create, three commits and a roll fails once. What was acknowledged is found, what
/// was refused may be found only if it was the last thing tried, and nothing goes back in time.
#[test]
fn every_call_fails_once() {
    let run = |fs: FsRef| -> (Vec<u64>, Option<u64>) {
        let (mut acked, mut doubt, mut next) = (Vec::new(), None, 10);
        let dir = dir_on(fs);
        let Ok(mut log) = ManifestLog::create(&dir, 1, empty()) else { return (acked, None) };
        for n in 1..=4 {
            match commit(&mut log, &flush(n), &mut next) {
                Ok(()) => {
                    acked.push(100 + n);
                    doubt = None;
                }
                Err(e) => {
                    assert_ne!(e.kind(), ErrorKind::Internal, "{e}");
                    assert!(log.uncertain().is_some());
                    assert!(log.commit(&[flush(n)]).is_err(), "appended after a failure");
                    doubt = Some(100 + n);
                }
            }
            if n == 2 {
                next += 1;
                let _ = log.roll(next, next + 1);
            }
        }
        (acked, doubt)
    };
    let counted = Arc::new(FaultFs::new(Arc::new(MemFs::new()), |_| None));
    assert_eq!(run(counted.clone()), (vec![101, 102, 103, 104], None));
    let calls = counted.count();
    for at in 1..calls {
        for way in 0..3 {
            let mem = MemFs::new();
            let fs = FaultFs::new(Arc::new(mem.clone()), move |op| match way {
                0 if op.index == at => Some(io::Error::from_raw_os_error(5).into()),
                1 if op.index == at => Some(io::Error::from(io::ErrorKind::StorageFull).into()),
                2 if op.index == at && op.name == "write_at" => {
                    Some(Fault::Short(op.len as usize / 2))
                }
                2 if op.index == at + 1 => Some(io::Error::from_raw_os_error(5).into()),
                _ => None,
            });
            let (acked, doubt) = run(Arc::new(fs));
            let what = format!("call {at} of {calls}, way {way}");
            let seen = found(&mem).unwrap_or_else(|e| panic!("{what}: {e}"));
            let Some(seen) = seen else {
                assert_eq!(acked, [0; 0], "{what}");
                continue;
            };
            let (sure, rest) = seen.split_at(acked.len().min(seen.len()));
            assert_eq!(sure, acked, "{what}");
            assert!(
                rest.is_empty() || Some(rest) == doubt.as_ref().map(std::slice::from_ref),
                "{what}"
            );
        }
    }
}

/// On a full disk a new manifest is tried again and again: what fails leaves nothing, wherever the room ends.
#[test]
fn manifests_that_fail_leave_no_files() {
    let fs = MemFs::new();
    let dir = dir_on(Arc::new(fs.clone()));
    let mut log = ManifestLog::create(&dir, 1, empty()).unwrap();
    let used = fs.used();
    fs.set_capacity(used);
    log.commit(&[flush(1)]).unwrap_err();
    let names = || dir.list().unwrap().into_iter().map(|e| e.name).collect::<Vec<_>>();
    let (mut number, mut failed) = (2, 0);
    for room in 0.. {
        fs.set_capacity(used + room);
        number += 1;
        if log.roll(number, number + 1).is_ok() {
            break;
        }
        failed += 1;
        assert_eq!((names(), fs.used()), (vec!["CURRENT".into(), "MANIFEST-000001".into()], used));
        assert_eq!(log.lost().unwrap(), None);
    }
    assert!(failed > 16, "{failed}");
    let made = format!("MANIFEST-{number:06}");
    assert_eq!(names(), ["CURRENT".into(), "MANIFEST-000001".into(), made]);
    fs.set_capacity(u64::MAX);
    log.commit(&[flush(1)]).unwrap();
}

/// CURRENT may name any manifest that was in doubt, and not only the last one. One that was not made is no one's.
#[test]
fn a_manifest_in_doubt_is_ours_until_the_next_one() {
    let failing = Arc::new(Mutex::new(Vec::<(&str, u32)>::new()));
    let rules = Arc::clone(&failing);
    let fs = FaultFs::new(Arc::new(MemFs::new()), move |op| {
        let mut rules = rules.lock();
        let rule = rules.first_mut().filter(|rule| rule.0 == op.name)?;
        rule.1 -= 1;
        if rule.1 > 0 {
            return None;
        }
        rules.remove(0);
        Some(io::Error::from(io::ErrorKind::StorageFull).into())
    });
    let dir = dir_on(Arc::new(fs));
    let mut log = ManifestLog::create(&dir, 1, empty()).unwrap();
    // The second sync is that of the directory behind the rename.
    *failing.lock() = vec![("sync_dir", 2), ("create", 1)];
    log.roll(2, 3).unwrap_err();
    assert_eq!(dir.read_current().unwrap(), Some(2));
    log.roll(3, 4).unwrap_err();
    assert!(failing.lock().is_empty());
    assert_eq!(log.lost().unwrap(), None);
    log.roll(4, 5).unwrap();
    assert_eq!((dir.read_current().unwrap(), log.lost().unwrap()), (Some(4), None));
    // What is named now was made by another: neither number is this log's any more.
    for other in [2, 3] {
        dir.point_current(other).unwrap();
        assert!(log.lost().unwrap().is_some(), "{other}");
    }
}

/// A tail that was never promised is cut at an edit; a cut into the head is an error.
#[test]
fn any_torn_tail_is_cut_at_an_edit() {
    let fs = MemFs::new();
    let dir = dir_on(Arc::new(fs.clone()));
    let mut log = ManifestLog::create(&dir, 1, empty()).unwrap();
    let mut ends = vec![log.bytes()];
    for n in 1..=3 {
        log.commit(&[flush(n)]).unwrap();
        ends.push(log.bytes());
    }
    let file = dir.open_file(FileName::Manifest(1), OpenOpts::write()).unwrap();
    for cut in (0..=log.bytes()).rev() {
        file.set_len(cut).unwrap();
        let edits = ends.iter().filter(|&&end| end <= cut).count();
        match found(&fs) {
            Ok(seen) => assert_eq!(seen.unwrap().len(), edits - 1, "cut at {cut}"),
            Err(e) => {
                assert!(e.is_corruption() && edits == 0, "cut at {cut}: {e}");
                assert!(e.file().unwrap().ends_with("MANIFEST-000001"));
            }
        }
    }
}

#[test]
fn a_database_without_its_pointers_is_no_new_one() {
    let fs = MemFs::new();
    let dir = dir_on(Arc::new(fs.clone()));
    ManifestLog::create(&dir, 1, empty()).unwrap();
    dir.create_file(FileName::Table(5), OpenOpts::write()).unwrap();
    assert_eq!(recover(&dir).unwrap().unwrap().state.next_file, 6, "orphans use up numbers");
    dir.remove(FileName::Current).unwrap();
    let e = recover(&dir).unwrap_err();
    assert!(e.is_corruption() && e.file().unwrap().ends_with("CURRENT"), "{e}");
    dir.remove(FileName::Table(5)).unwrap();
    assert!(recover(&dir).unwrap().is_none(), "an interrupted creation");
    dir.point_current(3).unwrap();
    let e = recover(&dir).unwrap_err();
    assert!(e.is_corruption() && e.file().unwrap().ends_with("MANIFEST-000003"), "{e}");
}

#[test]
fn a_foreign_order_is_named() {
    let state = empty();
    let e = family_version(&state, CfId(0), Arc::new(lithify_base::ReverseBytewise)).unwrap_err();
    let text = e.to_string();
    assert_eq!(e.kind(), ErrorKind::InvalidArgument);
    assert!(
        text.contains("leveldb.BytewiseComparator") && text.contains("rocksdb.Reverse"),
        "{text}"
    );
    assert!(family_version(&state, CfId(7), order()).is_err());
}

/// RocksDB's manifest does not say that a table holds range deletions; readers must know.
#[test]
fn tables_of_a_foreign_manifest_are_counted() {
    let dir = lithify_files::testing::mem_dir();
    let hidden =
        [RangeTombstone { lo: (*b"key1").into(), hi: (*b"key2").into(), seq: 900, run: 0 }];
    let table = testing::Make::default();
    let written = table.write(&dir, 5, &testing::entries(50, 3), &hidden).unwrap();
    let mut known = wire_file(&written.at(Pos::new(1, 0), 7));
    let counts = known.counts.take().unwrap();
    assert_eq!(counts.range_deletes, 1);
    let missing = WireFile { number: 6, ..known.clone() };
    let mut state = empty();
    let family = state.families.get_mut(&CfId(0)).unwrap();
    family.files = [(5, known), (6, missing)].into();
    count_tables(&dir, &mut state, CfId(0), &order()).unwrap();
    let files = &state.families[&CfId(0)].files;
    let found = files[&5].counts.unwrap();
    assert_eq!((found.entries, found.deletes), (counts.entries, counts.deletes));
    assert_eq!(found.range_deletes, counts.range_deletes);
    assert_eq!(files[&6].counts, None, "a check of files reports it");
}

/// Edits that contradict the state are our bug: refused before a byte is written.
#[test]
fn contradicting_edits_are_refused() {
    let dir = dir_on(Arc::new(MemFs::new()));
    let mut log = ManifestLog::create(&dir, 1, empty()).unwrap();
    log.commit(&[flush(1)]).unwrap();
    let (bytes, state) = (log.bytes(), log.state().clone());
    let gone = WireEdit { deleted: vec![(0, 99)], ..WireEdit::default() };
    let elsewhere = WireEdit { deleted: vec![(1, 101)], ..WireEdit::default() };
    let family = WireEdit { cf: CfId(9), ..flush(2) };
    for edits in
        [vec![flush(1)], vec![gone], vec![elsewhere], vec![family], vec![flush(2), flush(2)]]
    {
        assert_eq!(log.commit(&edits).unwrap_err().kind(), ErrorKind::Internal);
    }
    assert_eq!((log.bytes(), log.state(), log.uncertain().is_none()), (bytes, &state, true));
    log.commit(&[flush(2)]).unwrap();
}

#[test]
fn edits_beyond_the_snapshot_ask_for_a_new_manifest() {
    let dir = dir_on(Arc::new(MemFs::new()));
    let mut log = ManifestLog::create(&dir, 1, empty()).unwrap();
    let hint = WireEdit { bucket_hint: Some(vec![0; 1 << 20]), ..WireEdit::default() };
    for _ in 0..4 {
        assert!(!log.wants_roll());
        log.commit(std::slice::from_ref(&hint)).unwrap();
    }
    assert!(log.wants_roll());
    log.roll(2, 3).unwrap();
    assert!(!log.wants_roll() && log.bytes() < 2 << 20);
}

fn any_file(choices: &mut Choices) -> FileMeta {
    let lo = choices.bytes(3);
    let mut hi = lo.clone();
    hi.extend(choices.bytes(2));
    let level = choices.below(7) as u8;
    let stratum = 1 + choices.below(1000) as u32;
    let range = match choices.one_in(3) {
        true => KeyRange::excl(lo, hi),
        false => KeyRange { lo: lo.into(), hi: End::incl(hi) },
    };
    let pos = Pos::new(level, stratum);
    let mut file = FileMeta::new(FileId(1 + choices.below(1 << 30) as u64), pos, range);
    let mut number = || choices.below(1 << 40) as u64;
    file.lo_tag = Tag::new(number(), Kind::Delete);
    if file.range.hi.inclusive {
        file.hi_tag = Tag::new(number(), Kind::Merge);
    }
    file.bytes = number();
    file.entries = number();
    file.deletes = number();
    file.range_deletes = number();
    file.raw_key_bytes = number();
    file.raw_value_bytes = number();
    file.seqs = (number(), number());
    file.base_context = number() as u32;
    file.tail_bytes = number();
    file.created = number();
    file.oldest_ancestor = number();
    file.place = number() as u8;
    file.epoch = if level == 0 { u64::from(stratum) } else { number() };
    file.marked = choices.one_in(2);
    file.backing = choices.one_in(4).then(|| FileId(choices.below(1 << 20) as u64));
    file
}

#[test]
fn files_round_trip() {
    let mut choices = Choices::new(7);
    for _ in 0..2000 {
        let file = any_file(&mut choices);
        let wire = wire_file(&file);
        assert_eq!(file_meta(&wire, &*order()).unwrap(), file);
        let edit = WireEdit { added: vec![wire.clone()], ..WireEdit::default() };
        assert_eq!(WireEdit::decode(&edit.to_vec()).unwrap().added, [wire]);
    }
}

#[test]
fn bounds_out_of_order_are_corruption() {
    let mut wire = wire_file(&meta(5, Pos::new(1, 0), "a", "m"));
    std::mem::swap(&mut wire.smallest, &mut wire.largest);
    assert!(file_meta(&wire, &*order()).unwrap_err().is_corruption());
    wire.smallest.truncate(3);
    assert!(file_meta(&wire, &*order()).unwrap_err().is_corruption());
}

#[test]
fn old_level0_files_get_strata_in_age_order() {
    let old = |number, epoch, largest_seq| {
        let file = meta(number, Pos::new(0, 2), "a", "m");
        WireFile { epoch, largest_seq, ..wire_file(&file) }
    };
    let renumbered = |files: Vec<WireFile>| {
        let files = files.into_iter().map(|f| (f.number, f)).collect();
        let mut family = FamilyState { files, ..FamilyState::default() };
        renumber(&mut family);
        family.files.values().map(|f| f.epoch).collect::<Vec<_>>()
    };
    assert_eq!(renumbered(vec![old(4, 0, 90), old(5, 0, 30), old(6, 0, 60)]), [4, 2, 3]);
    assert_eq!(renumbered(vec![old(4, 1 << 40, 9), old(5, 7, 9), old(6, 7, 9)]), [3, 2, 2]);
    assert_eq!(renumbered(vec![old(4, 9, 9), old(5, 7, 9)]), [9, 7]);
    let last = u64::from(u32::MAX);
    assert_eq!(renumbered(vec![old(4, last, 9), old(5, 7, 9), old(6, last - 1, 9)]), [4, 2, 3]);
}

/// Strata that leave no room for later ones keep their order, in level 0 and below it.
#[test]
fn strata_at_the_end_of_their_numbers_start_anew() {
    let at = |number, level, stratum: u32| {
        let file = meta(number, Pos::new(level, stratum), "a", "m");
        (number, wire_file(&file))
    };
    let last = u32::MAX;
    let files = [at(1, 0, last), at(2, 0, 70), at(3, 1, 70), at(4, 1, last - 1), at(5, 2, 0)];
    let mut family = FamilyState { files: files.into(), ..FamilyState::default() };
    renumber(&mut family);
    let strata: Vec<u32> = family.files.values().map(|f| f.pos().unwrap().stratum.0).collect();
    assert_eq!(strata, [4, 2, 2, 3, 0]);
    let again = family.clone();
    renumber(&mut family);
    assert_eq!(family, again);
}

/// Files of another engine that cut a level between two versions of one key.
#[test]
fn neighbours_that_share_a_key_are_stacked() {
    let key = |text: &str, seq| {
        InternalKey { user: text.as_bytes(), tag: Tag::new(seq, Kind::Value) }.to_vec()
    };
    let file = |number, level, (lo, a): (&str, u64), (hi, b): (&str, u64)| WireFile {
        number,
        level,
        smallest: key(lo, a),
        largest: key(hi, b),
        largest_seq: 99,
        epoch: 7,
        ..WireFile::default()
    };
    let strata = |files: &[WireFile]| {
        let files = files.iter().map(|f| (f.number, f.clone())).collect();
        let mut family = FamilyState { files, ..FamilyState::default() };
        order_foreign(&mut family);
        let mut state = empty();
        let strata: Vec<u32> = family.files.values().map(|f| f.stratum).collect();
        state.families.insert(CfId(0), FamilyState { name: "default".into(), ..family });
        (strata, family_version(&state, CfId(0), order()).map(|v| v.file_count()))
    };
    let chain = [
        file(1, 1, ("a", 5), ("k", 40)),
        file(2, 1, ("k", 30), ("k", 20)),
        file(3, 1, ("k", 10), ("m", 5)),
        file(4, 1, ("m", 3), ("p", 5)),
        // Apart from them: a key of its own, and the same keys in another level.
        file(5, 1, ("q", 3), ("z", 5)),
        file(6, 2, ("k", 4), ("m", 2)),
        file(7, 2, ("n", 4), ("o", 2)),
    ];
    let (found, count) = strata(&chain);
    assert_eq!((found, count.unwrap()), (vec![3, 2, 1, 0, 0, 0, 0], 7));
    // The order of keys may be another one than that of their bytes.
    let backward = [file(1, 1, ("z", 5), ("k", 40)), file(2, 1, ("k", 30), ("a", 1))];
    assert_eq!(strata(&backward).0, [1, 0]);
    // An end that does not hold its key shares nothing.
    let mut open = [file(1, 1, ("a", 5), ("k", 40)), file(2, 1, ("k", 30), ("m", 1))];
    open[0].largest = InternalKey { user: b"k", tag: FileMeta::EXCLUSIVE_END }.to_vec();
    assert_eq!(strata(&open).0, [0, 0]);
    // Older before newer is damage, and so are ends that lead in circles.
    let wrong = [file(1, 1, ("a", 5), ("k", 10)), file(2, 1, ("k", 30), ("m", 1))];
    assert!(strata(&wrong).1.unwrap_err().is_corruption());
    let circle = [file(1, 1, ("b", 5), ("a", 9)), file(2, 1, ("a", 7), ("b", 8))];
    assert!(strata(&circle).1.unwrap_err().is_corruption());
}

/// Below level 0 an epoch beyond our numbers says only that what comes is newer.
#[test]
fn epochs_beyond_our_numbers_are_given_anew() {
    let old = |number, level, epoch| {
        let lo = format!("{number}");
        let file = meta(number, Pos::new(level, 1), &lo, &lo);
        WireFile { epoch, level, stratum: 0, ..wire_file(&file) }
    };
    let files = [old(4, 0, 1 << 40), old(5, 0, (1 << 40) + 9), old(6, 3, 1 << 39), old(7, 3, 12)];
    let files = files.map(|f| (f.number, f)).into();
    let mut family = FamilyState { files, ..FamilyState::default() };
    order_foreign(&mut family);
    let epochs: Vec<u64> = family.files.values().map(|f| f.epoch).collect();
    assert_eq!(epochs, [2, 3, 1, 12]);
}

#[test]
fn bucket_hints_round_trip_or_are_dropped() {
    let stat = |age, flushed: &[u64]| BucketStat {
        age,
        flushed: flushed.to_vec(),
        ..BucketStat::default()
    };
    let map = BucketMap {
        epoch: 9,
        bounds: vec![Key::from(&b"g"[..]), Key::from(&b"p"[..])],
        stats: vec![stat(0, &[]), stat(3, &[5, 1 << 50]), stat(u32::MAX, &[0])],
    };
    let bytes = encode_hint(&map);
    assert_eq!(decode_hint(&bytes), Some(map));
    for cut in 0..bytes.len() {
        assert_eq!(decode_hint(&bytes[..cut]), None);
    }
    let mut choices = Choices::new(3);
    for _ in 0..20_000 {
        let at = choices.below(bytes.len());
        let mut other = bytes.clone();
        other[at] = choices.below(256) as u8;
        let _ = decode_hint(&other); // neither a panic nor an allocation beyond the input
    }
    let dir = dir_on(Arc::new(MemFs::new()));
    let file = dir.create_file(FileName::Current, OpenOpts::write()).unwrap();
    write_all_at(&*file, b"MANIFEST-5\n", 0).unwrap();
    assert!(recover(&dir).unwrap_err().file().unwrap().ends_with("CURRENT"));
}
