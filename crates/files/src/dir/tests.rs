use std::sync::Arc;

use lithify_env::sync::Mutex;
use lithify_env::{Fault, FaultFs, MemFs, PosixFs};

use super::*;
use crate::testing::{dir_on, mem_dir, overwrite};

fn eio() -> Fault {
    Fault::from(std::io::Error::from_raw_os_error(5))
}

/// A power loss must not take a whole directory away because the one above it was new, too.
#[test]
fn names_of_new_directories_are_durable_from_the_top_down() {
    let log = Arc::new(Mutex::new(Vec::new()));
    let seen = log.clone();
    let fs = FaultFs::new(Arc::new(MemFs::new()), move |op| {
        let changes = ["create_dir_all", "sync_dir"].contains(&op.name);
        seen.lock().extend(changes.then(|| format!("{} {}", op.name, op.path.display())));
        None
    });
    let fs: FsRef = Arc::new(fs);
    let made = |path: &str| {
        log.lock().clear();
        Dir::new(fs.clone(), path).create(0).unwrap();
        log.lock().join(", ")
    };
    assert_eq!(
        made("/a/b/c"),
        "create_dir_all /a, sync_dir /, create_dir_all /a/b, sync_dir /a, create_dir_all /a/b/c, \
         sync_dir /a/b"
    );
    assert_eq!(made("/a/b/d"), "create_dir_all /a/b/d, sync_dir /a/b");
    assert_eq!(made("e"), "create_dir_all ./e, sync_dir .");
}

#[test]
fn current_is_replaced_in_the_only_safe_order() {
    let log = Arc::new(Mutex::new(Vec::new()));
    let seen = log.clone();
    let fs = FaultFs::new(Arc::new(MemFs::new()), move |op| {
        let file = op.path.file_name().map(|n| n.to_string_lossy().into_owned());
        seen.lock().push(format!("{} {}", op.name, file.unwrap_or_default()));
        None
    });
    let dir = dir_on(Arc::new(fs));
    log.lock().clear();
    dir.point_current(12).unwrap();
    assert_eq!(
        *log.lock(),
        [
            "create 000012.dbtmp",
            "write_at 000012.dbtmp",
            "sync_all 000012.dbtmp",
            "rename 000012.dbtmp",
            "sync_dir db",
        ]
    );
}

/// Whichever call fails, CURRENT names the old manifest or the new one.
#[test]
fn a_failed_switch_leaves_a_whole_pointer() {
    for fail in 0..5 {
        let inner = Arc::new(MemFs::new());
        dir_on(inner.clone()).point_current(1).unwrap();
        let fs = FaultFs::new(inner.clone(), move |op| (op.index == fail).then(eio));
        let e = Dir::new(Arc::new(fs), "/db").point_current(2).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::Io);
        let named = Dir::new(inner, "/db").read_current().unwrap();
        assert_eq!(named, Some(if fail == 4 { 2 } else { 1 }), "call {fail}");
    }
}

#[test]
fn a_leftover_temp_file_is_no_obstacle() {
    let dir = mem_dir();
    overwrite(&dir, FileName::Temp(3), &[b'x'; 100]);
    dir.point_current(3).unwrap();
    assert_eq!(dir.read_current().unwrap(), Some(3));
}

#[test]
fn hostile_pointers_are_corruption_with_their_name() {
    let dir = mem_dir();
    assert_eq!(dir.read_current().unwrap(), None);
    assert_eq!(dir.read_identity().unwrap(), None);
    for bad in
        [&b""[..], b"\n", b"MANIFEST-1\n", b"../MANIFEST-000001\n", &[0xff; 20], &[b'a'; 9999]]
    {
        overwrite(&dir, FileName::Current, bad);
        let e = dir.read_current().unwrap_err();
        assert!(e.is_corruption() && e.file() == Some("/db/CURRENT"), "{e}");
    }
    for bad in [&b""[..], b"\n\n", &[0xff; 20], &[b'a'; 9999]] {
        overwrite(&dir, FileName::Identity, bad);
        let e = dir.read_identity().unwrap_err();
        assert!(e.is_corruption() && e.file() == Some("/db/IDENTITY"), "{e}");
    }
    dir.write_identity("0f3a").unwrap();
    assert_eq!(dir.read_identity().unwrap().as_deref(), Some("0f3a"));
}

#[test]
fn a_directory_has_one_owner() {
    let scratch = tempfile::tempdir().unwrap();
    for dir in [mem_dir(), Dir::new(Arc::new(PosixFs::new()), scratch.path())] {
        let held = dir.lock().unwrap();
        let e = dir.lock().err().unwrap();
        assert_eq!(e.kind(), ErrorKind::Locked);
        assert!(e.file().is_some_and(|f| f.ends_with("LOCK")) && held.is_owner());
        drop(held);
        dir.lock().unwrap();
    }
}

#[test]
fn listings_tell_ours_from_foreign() {
    let dir = mem_dir();
    for name in [FileName::Table(7), FileName::Wal(8)] {
        overwrite(&dir, name, b"abc");
    }
    let path = dir.path().join("7.sst");
    dir.fs().create(&path, OpenOpts::write()).unwrap();
    dir.fs().create_dir_all(&dir.path().join("000009.sst")).unwrap();
    let listed: Vec<_> = dir.list().unwrap().into_iter().map(|l| (l.name, l.file, l.len)).collect();
    let of = |name: &str, file, len| (name.to_owned(), file, len);
    assert_eq!(
        listed,
        [
            of("000007.sst", Some(FileName::Table(7)), 3),
            of("000008.log", Some(FileName::Wal(8)), 3),
            of("000009.sst", None, 0),
            of("7.sst", None, 0),
        ]
    );
}

#[test]
fn missing_files_are_told_apart() {
    let dir = mem_dir();
    assert_eq!(dir.len_of(FileName::Table(1)).unwrap(), None);
    assert_eq!(dir.read_whole(FileName::Table(1), 9).unwrap(), None);
    dir.remove(FileName::Table(1)).unwrap();
    assert!(dir.open_table(1, OpenOpts::read()).err().unwrap().is_corruption());
    overwrite(&dir, FileName::LevelDbTable(1), b"t");
    let (name, _) = dir.open_table(1, OpenOpts::read()).unwrap();
    assert_eq!(name, FileName::LevelDbTable(1));
    assert_eq!(
        dir.read_whole(FileName::LevelDbTable(1), 0).unwrap_err().kind(),
        ErrorKind::Corruption
    );
}

#[test]
fn storage_errors_keep_what_matters() {
    let io = |e: std::io::Error| typed(IoError::new("read_at", Path::new("/db/x"), e));
    let full = io(std::io::Error::from_raw_os_error(28));
    assert_eq!(
        (full.kind(), full.errno(), full.file()),
        (ErrorKind::NoSpace, Some(28), Some("/db/x"))
    );
    assert_eq!(io(std::io::ErrorKind::UnexpectedEof.into()).kind(), ErrorKind::Corruption);
    assert_eq!(io(std::io::ErrorKind::PermissionDenied.into()).kind(), ErrorKind::Io);
}

#[test]
fn identities_are_version_4_uuids() {
    let mut random = Random::from_seed(1);
    let (a, b) = (fresh_identity(&mut random), fresh_identity(&mut random));
    assert_ne!(a, b);
    assert_eq!(a.len(), 36);
    assert_eq!(a.as_bytes()[14], b'4');
    assert!(a.split('-').map(str::len).eq([8, 4, 4, 4, 12]));
}

#[test]
fn sessions_are_20_digits_in_base_36() {
    let mut random = Random::from_seed(1);
    let (a, b) = (fresh_session(&mut random), fresh_session(&mut random));
    assert_ne!(a, b);
    for id in [a, b] {
        assert_eq!(id.len(), 20);
        assert!(id.bytes().all(|b| b.is_ascii_digit() || b.is_ascii_uppercase()), "{id}");
        // RocksDB takes 62 bits from the last twelve.
        assert!(u64::from_str_radix(&id[8..], 36).unwrap() < 1 << 62, "{id}");
    }
    assert_eq!(base_36(36 * 36 + 35, 4), "010Z");
    assert_eq!(base_36(u64::MAX, 12), "W5E11264SGSF");
}
