use std::io;

use lithify_base::{CfId, ErrorKind, FileId, KeyRange, Pos, bytewise};
use lithify_env::sync::Arc;
use lithify_env::{FaultFs, FsRef, MemFs};
use lithify_files::testing::{bytes_of, dir_on, overwrite};
use lithify_lsm::FileMeta;
use lithify_tables::testing::{Make, entries, open};

use super::*;
use crate::manifest::{family_version, recover, translate};

/// A source with two tables, a log and options.
fn source(fs: FsRef) -> Dir {
    let dir = dir_on(fs);
    for number in [5, 6] {
        Make::default().write(&dir, number, &entries(30, number), &[]).unwrap();
    }
    overwrite(&dir, FileName::Wal(8), b"0123456789");
    overwrite(&dir, FileName::Options(7), b"[Version]\n");
    dir
}

fn copy_of(dir: &Dir) -> Checkpoint {
    let mut state = ManifestState { next_file: 20, ..ManifestState::default() };
    let family = state.families.get_mut(&CfId(0)).unwrap();
    for number in [5, 6] {
        let pos = Pos::new(0, number as u32);
        let mut file = FileMeta::new(FileId(number), pos, KeyRange::incl(&b"a"[..], &b"z"[..]));
        file.bytes = dir.len_of(FileName::Table(number)).unwrap().unwrap();
        file.epoch = number;
        family.files.insert(number, translate::wire_file(&file));
    }
    let db_id = "the id".to_owned();
    Checkpoint {
        state,
        manifest: 9,
        logs: vec![(8, 6)],
        sections: None,
        options: Some(7),
        db_id,
        unsynced: false,
    }
}

fn target(fs: FsRef) -> Dir {
    Dir::new(fs, "/copies/one")
}

fn check_whole(from: &Dir, to: &Dir) {
    let found = recover(to).unwrap().unwrap();
    assert_eq!((found.manifest, found.state.next_file), (9, 20));
    let version = family_version(&found.state, CfId(0), bytewise()).unwrap();
    assert_eq!(version.file_count(), 2);
    for file in version.files() {
        let name = FileName::Table(file.id.0);
        assert_eq!(bytes_of(to, name), bytes_of(from, name));
        open(to, file.id.0, None).unwrap();
    }
    assert_eq!(bytes_of(to, FileName::Wal(8)), b"012345");
    assert_eq!(bytes_of(to, FileName::Options(7)), b"[Version]\n");
    assert_eq!(to.read_identity().unwrap().unwrap(), "the id");
}

#[test]
fn a_checkpoint_is_a_database() {
    let mem = MemFs::new();
    let from = source(Arc::new(mem.clone()));
    let to = target(Arc::new(mem.clone()));
    let used = mem.used();
    let mut told = Vec::new();
    let (_, placed) = copy_of(&from).write(&from, &to, &mut |bytes| told.push(bytes)).unwrap();
    assert_eq!((placed, told.len()), (Placed { linked: 2, copied: 0 }, 2));
    check_whole(&from, &to);
    assert!(mem.used() - used < 1000, "tables are linked, not copied");
    let e = copy_of(&from).write(&from, &to, &mut |_| {}).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::InvalidArgument);
    check_whole(&from, &to);
}

#[test]
fn another_file_system_gets_copies() {
    let mem = MemFs::new();
    let fs: FsRef = Arc::new(FaultFs::new(Arc::new(mem), |op| {
        (op.name == "link").then(|| io::Error::from(io::ErrorKind::CrossesDevices).into())
    }));
    let from = source(fs.clone());
    let to = target(fs);
    let (_, placed) = copy_of(&from).write(&from, &to, &mut |_| {}).unwrap();
    assert_eq!(placed, Placed { linked: 0, copied: 2 });
    check_whole(&from, &to);
}

/// A log shorter than it was says that someone else changed the source.
#[test]
fn a_short_source_is_corruption() {
    let fs: FsRef = Arc::new(MemFs::new());
    let from = source(fs.clone());
    let copy = Checkpoint { logs: vec![(8, 11)], ..copy_of(&from) };
    assert!(copy.write(&from, &target(fs), &mut |_| {}).unwrap_err().is_corruption());
}

/// Each call fails once: an unfinished checkpoint opens as no database, a finished one is whole,
/// and the source is as before.
#[test]
fn every_call_fails_once() {
    let counted = Arc::new(FaultFs::new(Arc::new(MemFs::new()), |_| None));
    let from = source(counted.clone());
    let copy = copy_of(&from);
    let begin = counted.count();
    copy.clone().write(&from, &target(counted.clone()), &mut |_| {}).unwrap();
    let end = counted.count();
    assert!(end - begin > 25);
    let mut failed = 0;
    for at in begin..end {
        let mem = MemFs::new();
        let fs: FsRef = Arc::new(FaultFs::new(Arc::new(mem.clone()), move |op| {
            (op.index == at).then(|| io::Error::from_raw_os_error(5).into())
        }));
        let from = source(fs.clone());
        let _ = copy_of(&from);
        let result = copy.clone().write(&from, &target(fs), &mut |_| {});
        if let Err(error) = &result {
            assert_eq!(error.kind(), ErrorKind::Io, "call {at}: nothing is damaged: {error}");
        }
        let (from, to) = (source_view(&mem), target(Arc::new(mem.clone())));
        match (result, to.read_current()) {
            (Ok(_), _) | (Err(_), Ok(Some(9))) => check_whole(&from, &to),
            // Before anything is there.
            (Err(_), Ok(None)) => assert_eq!(to.list_if_there().unwrap().unwrap_or_default(), []),
            (Err(_), Err(e)) if e.kind() == ErrorKind::NotFound => {
                failed += 1;
                assert!(recover(&to).is_err(), "call {at}");
            }
            (Err(_), other) => panic!("call {at}: {other:?}"),
        }
        for number in [5, 6] {
            open(&from, number, None).unwrap();
        }
    }
    assert!(failed > 20, "{failed} of {} calls failed", end - begin);
}

fn source_view(mem: &MemFs) -> Dir {
    Dir::new(Arc::new(mem.clone()), "/db")
}

/// CURRENT appears when everything it leads to is durable: contents, then names.
#[test]
fn current_comes_last() {
    let calls = Arc::new(lithify_env::sync::Mutex::new(Vec::new()));
    let noted = Arc::clone(&calls);
    let fs: FsRef = Arc::new(FaultFs::new(Arc::new(MemFs::new()), move |op| {
        if op.name == "link" {
            return Some(io::Error::from(io::ErrorKind::CrossesDevices).into());
        }
        noted.lock().push((op.name, op.path.to_path_buf()));
        None
    }));
    let (from, to) = (source(fs.clone()), target(fs));
    let copy = copy_of(&from);
    calls.lock().clear();
    copy.write(&from, &to, &mut |_| {}).unwrap();
    let calls = calls.lock().clone();
    let last =
        |name, path: &std::path::Path| calls.iter().rposition(|c| c.0 == name && c.1 == path);
    let renamed = last("rename", &to.path_of(FileName::Temp(9))).unwrap();
    for file in [
        FileName::Table(5),
        FileName::Table(6),
        FileName::Wal(8),
        FileName::Options(7),
        FileName::Manifest(9),
    ] {
        let path = to.path_of(file);
        let (written, synced) = (last("write_at", &path), last("sync_all", &path));
        assert!(written < synced && synced < Some(renamed), "{file}");
    }
    let named = calls[..renamed].iter().rposition(|c| c.0 == "sync_dir" && c.1 == to.path());
    assert!(named > last("sync_all", &to.path_of(FileName::Manifest(9))));
}
