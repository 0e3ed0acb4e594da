use lithify_base::{ErrorKind, FileId, KeyRange, Pos};
use lithify_env::sync::Arc;
use lithify_env::{FsRef, MemFs};
use lithify_files::testing::overwrite;
use lithify_lsm::FileMeta;
use lithify_tables::testing::{DB, Make, entries};

use super::*;
use crate::checkpoint::Checkpoint;
use crate::janitor::{Live, sweep};
use crate::manifest::{recover, translate};

fn fs() -> FsRef {
    Arc::new(MemFs::new())
}

fn home(fs: &FsRef, path: &str) -> Dir {
    let home = Dir::new(fs.clone(), path).create(0).unwrap();
    home.write_identity(DB).unwrap();
    home
}

fn paths(of: &[&str]) -> Vec<PathBuf> {
    of.iter().map(PathBuf::from).collect()
}

fn owned(home: &Dir, wanted: &[&str], named: &[u64]) -> Result<()> {
    let named = named.iter().copied().collect();
    own(home, &paths(wanted), (DB, &named), &mut Random::from_seed(7), 0)
}

fn names(fs: &FsRef, path: &str) -> Vec<String> {
    let listed = Dir::new(fs.clone(), path).list_if_there().unwrap();
    listed.unwrap_or_default().into_iter().map(|entry| entry.name).collect()
}

fn refusal(result: Result<()>, says: &str) {
    let e = result.unwrap_err();
    assert_eq!(e.kind(), ErrorKind::InvalidArgument, "{e}");
    assert!(e.to_string().contains(says), "{e}");
}

/// A state whose family has these tables of home's, at these places.
fn state(home: &Dir, files: &[(u64, u8)]) -> ManifestState {
    let mut state = ManifestState { next_file: 40, ..ManifestState::default() };
    let family = state.families.get_mut(&CfId(0)).unwrap();
    for &(number, place) in files {
        let pos = Pos::new(0, number as u32);
        let mut file = FileMeta::new(FileId(number), pos, KeyRange::incl(&b"a"[..], &b"z"[..]));
        file.bytes = home.find_table(number).unwrap().map_or(1, |found| found.len);
        file.place = place;
        family.files.insert(number, translate::wire_file(&file));
    }
    state
}

fn dirs(of: &[&str]) -> Vec<TableDir> {
    of.iter().map(|path| TableDir { path: path.into(), target_bytes: 1 << 20 }).collect()
}

#[test]
fn directories_are_taken_once_and_known_again() {
    let fs = fs();
    let db = home(&fs, "/db");
    owned(&db, &["/db"], &[]).unwrap();
    assert!(db.read_deed().unwrap().is_none(), "home needs no deed");
    owned(&db, &["/fast", "/db", "/db/slow"], &[]).unwrap();
    assert_eq!(names(&fs, "/fast"), ["OWNER"]);
    assert_eq!(names(&fs, "/db/slow"), ["OWNER"]);
    assert_eq!(db.places().len(), 2);
    let owner = db.places()[0].read_owner().unwrap().unwrap();
    let deed = Deed { name: owner.deed, dirs: 2 };
    assert_eq!((Some(deed), &*owner.db_id), (db.read_deed().unwrap(), DB));
    // Another handle, later, with one more.
    let again = Dir::new(fs.clone(), "/db");
    attach(&again, &paths(&["/fast", "/db", "/db/slow", "/more"])).unwrap();
    assert_eq!(again.places().len(), 2, "one that is not there is made when it is taken");
    owned(&again, &["/fast", "/db/slow", "/more"], &[]).unwrap();
    assert_eq!((again.places().len(), again.read_deed().unwrap().unwrap().dirs), (3, 3));
}

#[test]
fn taking_that_was_cut_short_is_gone_on_with() {
    let fs = fs();
    let db = home(&fs, "/db");
    db.write_deed(&Deed { name: "the-deed".to_owned(), dirs: 2 }).unwrap();
    let fast = Dir::new(fs.clone(), "/fast").create(0).unwrap();
    overwrite(&fast, FileName::Temp(0), b"the-cl");
    owned(&db, &["/fast", "/slow"], &[]).unwrap();
    for place in db.places() {
        assert_eq!(place.read_owner().unwrap().unwrap().deed, "the-deed");
    }
}

#[test]
fn what_is_of_others_is_refused_and_nothing_is_changed() {
    let fs = fs();
    let other = home(&fs, "/other");
    owned(&other, &["/others"], &[]).unwrap();
    let strange = Dir::new(fs.clone(), "/strange").create(0).unwrap();
    Make::default().write(&strange, 5, &entries(3, 5), &[]).unwrap();
    let db = home(&fs, "/db");
    for (path, says) in [
        ("/other", "there is a database here already: `DEED`"),
        ("/others", "tables of another database are kept here, whose id is "),
        ("/strange", "there are tables here, such as `000005.sst`"),
    ] {
        let before = names(&fs, path);
        refusal(owned(&db, &["/new", path], &[4]), says);
        match path {
            "/strange" => refusal(check_new(&db, &paths(&[path])), says),
            _ => refusal(attach(&db, &paths(&[path])), says),
        }
        assert_eq!(names(&fs, path), before);
    }
    assert_eq!(names(&fs, "/db"), ["IDENTITY"]);
    assert!(names(&fs, "/new").is_empty());
    refusal(check_new(&Dir::new(fs.clone(), "/others"), &[]), "choose another directory");
}

/// A copy that was made by hand has all that the original has, and must not come near its tables either. Where the
/// database was moved, its user says so.
#[test]
fn a_copy_made_by_hand_is_told_from_the_original() {
    let fs = fs();
    let db = home(&fs, "/db");
    owned(&db, &["/fast"], &[]).unwrap();
    Make::default().write(&db.places()[0], 5, &entries(30, 5), &[]).unwrap();
    let copy = home(&fs, "/copy");
    copy.write_deed(&db.read_deed().unwrap().unwrap()).unwrap();
    for refused in [attach(&copy, &paths(&["/fast"])), owned(&copy, &["/fast"], &[5])] {
        refusal(refused, "these are tables of the database in /db");
    }
    assert!(copy.places().is_empty());
    db.places()[0].remove(FileName::Owner).unwrap();
    attach(&copy, &paths(&["/fast"])).unwrap();
    owned(&copy, &["/fast"], &[5]).unwrap();
    let owner = copy.places()[0].read_owner().unwrap().unwrap();
    assert_eq!(owner.home, "/copy");
    refusal(attach(&db, &paths(&["/fast"])), "these are tables of the database in /copy");
}

/// A copy has the id of its origin, and must not come near its tables.
#[test]
fn a_checkpoint_has_no_deed_to_the_tables_of_its_origin() {
    let fs = fs();
    let db = home(&fs, "/db");
    owned(&db, &["/fast"], &[]).unwrap();
    Make::default().write(&db.places()[0], 5, &entries(30, 5), &[]).unwrap();
    Make::default().write(&db, 6, &entries(30, 6), &[]).unwrap();
    let copy = Checkpoint {
        state: state(&db, &[(5, 1), (6, 0)]),
        manifest: 9,
        logs: Vec::new(),
        sections: None,
        options: None,
        db_id: DB.to_owned(),
        unsynced: false,
    };
    let (made, placed) = copy.write(&db, &Dir::new(fs.clone(), "/copy"), &mut |_| {}).unwrap();
    assert_eq!(placed.linked + placed.copied, 2);
    let found = recover(&made).unwrap().unwrap();
    let files = found.state.families[&CfId(0)].files.values();
    assert_eq!(files.map(|file| (file.number, file.place)).collect::<Vec<_>>(), [(5, 0), (6, 0)]);
    assert!(made.len_of(FileName::Table(5)).unwrap().is_some());
    refusal(attach(&made, &paths(&["/fast"])), "or this one is a copy of it");
    refusal(owned(&made, &["/fast"], &[5]), "or this one is a copy of it");
}

#[test]
fn tables_are_located_and_what_is_lost_is_told() {
    let fs = fs();
    let db = home(&fs, "/db");
    owned(&db, &["/fast", "/slow"], &[]).unwrap();
    Make::default().write(&db.places()[0], 5, &entries(30, 5), &[]).unwrap();
    Make::default().write(&db.places()[1], 6, &entries(30, 6), &[]).unwrap();
    Make::default().write(&db, 7, &entries(30, 7), &[]).unwrap();
    let mut found = state(&db, &[(5, 0), (6, 0), (7, 1)]);
    locate(&db, &mut found, CfId(0), &dirs(&["/fast", "/slow"])).unwrap();
    let places = |state: &ManifestState| -> Vec<u8> {
        state.families[&CfId(0)].files.values().map(|file| file.place).collect()
    };
    assert_eq!(places(&found), [0, 1, 1], "one at home keeps what is recorded");
    // In another order.
    locate(&db, &mut found, CfId(0), &dirs(&["/slow", "/db", "/fast"])).unwrap();
    assert_eq!(places(&found), [2, 0, 1]);
    let bare = Dir::new(fs.clone(), "/db");
    attach(&bare, &paths(&["/slow"])).unwrap();
    refusal(
        locate(&bare, &mut found.clone(), CfId(0), &dirs(&["/slow"])),
        "is in directory number 2 of those that it had for tables, counted from 0, and 1 were named",
    );
    let none = Dir::new(fs.clone(), "/db");
    let mut first = state(&db, &[(5, 0)]);
    refusal(locate(&none, &mut first, CfId(0), &[]), "the database had more of them");
    db.places()[0].remove(FileName::Table(5)).unwrap();
    let gone = locate(&db, &mut first, CfId(0), &dirs(&["/fast", "/slow"])).unwrap_err();
    assert!(gone.is_corruption(), "{gone}");
    let mut longer = state(&db, &[(6, 0)]);
    longer.families.get_mut(&CfId(0)).unwrap().files.get_mut(&6).unwrap().size += 1;
    assert!(locate(&db, &mut longer, CfId(0), &dirs(&["/fast"])).unwrap_err().is_corruption());
}

#[test]
fn tables_of_rocksdb_are_a_reason_to_take_their_directory() {
    let fs = fs();
    let db = home(&fs, "/db");
    let fast = Dir::new(fs.clone(), "/fast").create(0).unwrap();
    Make::default().write(&fast, 5, &entries(30, 5), &[]).unwrap();
    attach(&db, &paths(&["/fast"])).unwrap();
    refusal(owned(&db, &["/fast"], &[6]), "none is of this database");
    owned(&db, &["/fast"], &[5, 6]).unwrap();
    assert!(fast.read_owner().unwrap().is_some());
}

#[test]
fn orphans_go_from_every_directory_and_nothing_else_does() {
    let fs = fs();
    let db = home(&fs, "/db");
    owned(&db, &["/fast"], &[]).unwrap();
    let fast = db.places().swap_remove(0);
    for dir in [&db, &fast] {
        let first = if dir.path() == db.path() { 10 } else { 20 };
        Make::default().write(dir, first, &entries(30, 5), &[]).unwrap();
        Make::default().write(dir, first + 1, &entries(30, 5), &[]).unwrap();
    }
    for name in [FileName::Wal(3), FileName::Manifest(4), FileName::Temp(5), FileName::Table(50)] {
        overwrite(&fast, name, b"short");
    }
    let live = Live { tables: [10, 20].into(), next_file: 40, ..Live::default() };
    let swept = sweep(&db, &live, DB).unwrap();
    let gone: Vec<_> = swept.deleted.iter().map(|(name, _)| name.to_string()).collect();
    assert_eq!(gone, ["000011.sst", "000005.dbtmp", "000021.sst"]);
    assert_eq!(
        names(&fs, "/fast"),
        ["000003.log", "000020.sst", "000050.sst", "MANIFEST-000004", "OWNER"]
    );
}
