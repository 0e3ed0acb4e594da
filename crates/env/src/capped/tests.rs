//! The cap over a file system that counts what is open.

use super::*;
use crate::{FaultFs, MemFs, write_all_at};

fn is_table(path: &Path) -> bool {
    path.extension().is_some_and(|e| e == "sst")
}

fn path(n: usize) -> PathBuf {
    format!("/{n}.sst").into()
}

/// `count` files with their number as content.
fn filled(count: usize) -> MemFs {
    let fs = MemFs::new();
    for n in 0..count {
        let file = fs.create(&path(n), OpenOpts::write()).unwrap();
        write_all_at(&*file, &[n as u8; 10], 0).unwrap();
    }
    fs
}

fn read(file: &dyn File) -> IoResult<u8> {
    let mut buf = [0; 4];
    assert_eq!(file.read_at(&mut buf, 3)?, 4);
    assert!(buf.iter().all(|b| *b == buf[0]));
    Ok(buf[0])
}

#[test]
fn many_files_are_read_through_few_descriptors() {
    let fs = CappedFs::new(Arc::new(filled(50)), 8, is_table);
    let files: Vec<FileRef> =
        (0..50).map(|n| fs.open(&path(n), OpenOpts::read()).unwrap()).collect();
    assert_eq!(fs.open_files(), 8);
    for round in 0..3 {
        for (n, file) in files.iter().enumerate() {
            assert_eq!(read(&**file).unwrap(), n as u8);
            assert!(fs.open_files() <= 8, "round {round}");
        }
    }
    assert!(fs.reopened() >= 100);
    drop(files);
    assert_eq!(fs.open_files(), 0);
}

#[test]
fn what_is_read_often_stays_open() {
    let fs = CappedFs::new(Arc::new(filled(40)), 8, is_table);
    let files: Vec<FileRef> =
        (0..40).map(|n| fs.open(&path(n), OpenOpts::read()).unwrap()).collect();
    for _ in 0..10 {
        for cold in &files[4..] {
            for hot in &files[..4] {
                read(&**hot).unwrap();
            }
            read(&**cold).unwrap();
        }
    }
    // Each of the 36 cold files is opened in each round; of the hot ones hardly any.
    let reopened = fs.reopened();
    assert!((300..450).contains(&reopened), "{reopened}");
}

#[test]
fn others_and_written_files_are_left_alone() {
    let inner = filled(3);
    drop(inner.create(Path::new("/log"), OpenOpts::write()).unwrap());
    let fs = CappedFs::new(Arc::new(inner), 1, is_table);
    let _log = fs.open(Path::new("/log"), OpenOpts::read()).unwrap();
    let table = fs.open(&path(0), OpenOpts::write()).unwrap();
    assert_eq!(fs.open_files(), 0);
    assert_eq!(table.write_at(b"x", 0).unwrap(), 1);
    let kept = fs.open(&path(1), OpenOpts::read()).unwrap();
    assert!(kept.write_at(b"x", 0).is_err(), "it was opened for reading");
    assert_eq!((fs.open_files(), kept.len().unwrap(), kept.path()), (1, 10, &*path(1)));
}

#[test]
fn files_give_way_when_the_system_has_no_descriptor_left() {
    let full = Arc::new(AtomicU64::new(0));
    let refused = full.clone();
    let fs = FaultFs::new(Arc::new(filled(20)), move |op| {
        let refuse = matches!(op.name, "open" | "create") && refused.load(Ordering::SeqCst) > 0;
        refuse.then(|| {
            refused.fetch_sub(1, Ordering::SeqCst);
            io::Error::from_raw_os_error(24).into()
        })
    });
    let fs = CappedFs::new(Arc::new(fs), 20, is_table);
    let files: Vec<FileRef> =
        (0..20).map(|n| fs.open(&path(n), OpenOpts::read()).unwrap()).collect();
    full.store(2, Ordering::SeqCst);
    drop(fs.create(Path::new("/log"), OpenOpts::write()).unwrap());
    assert_eq!(fs.open_files(), 11, "a quarter, twice");
    // Others take what is given up, and reads under way give theirs up late.
    full.store(40, Ordering::SeqCst);
    drop(fs.create(Path::new("/another log"), OpenOpts::write()).unwrap());
    assert_eq!(fs.open_files(), 0, "all gave way, and it was tried on");
    // Other files have them all: the error says so.
    full.store(1000, Ordering::SeqCst);
    let error = fs.open(Path::new("/log"), OpenOpts::read()).err().unwrap();
    assert!(error.is_out_of_descriptors(), "{error}");
    assert!(read(&*files[0]).is_err_and(|e| e.is_out_of_descriptors()));
    full.store(0, Ordering::SeqCst);
    assert_eq!(read(&*files[0]).unwrap(), 0);
}

#[test]
fn after_the_end_only_what_is_held_is_read() {
    let inner = filled(10);
    let fs = CappedFs::new(Arc::new(inner.clone()), 6, is_table);
    let files: Vec<FileRef> =
        (0..10).map(|n| fs.open(&path(n), OpenOpts::read()).unwrap()).collect();
    fs.hold(|p| [path(1), path(2), path(3)].contains(&p.to_path_buf()));
    (0..10).for_each(|n| inner.unlink(&path(n)).unwrap());
    for (n, file) in files.iter().enumerate() {
        match read(&**file) {
            Ok(seen) => assert_eq!(seen, n as u8),
            Err(e) => assert!(!(1..4).contains(&n) && e.to_string().contains("closed"), "{e}"),
        }
    }
    assert_eq!(files.iter().filter(|file| read(&***file).is_ok()).count(), 3);
}

#[test]
fn no_more_is_held_than_half_the_cap() {
    let fs = CappedFs::new(Arc::new(filled(20)), 8, is_table);
    let files: Vec<FileRef> =
        (0..20).map(|n| fs.open(&path(n), OpenOpts::read()).unwrap()).collect();
    fs.hold(|_| true);
    let read: Vec<bool> = files.iter().map(|file| read(&**file).is_ok()).collect();
    assert!(read[..4].iter().all(|ok| *ok), "the first are held");
    assert_eq!(read.iter().filter(|ok| **ok).count(), 4, "the rest is closed: {read:?}");
}

#[test]
fn another_file_under_the_same_name_is_refused() {
    let inner = filled(2);
    let fs = CappedFs::new(Arc::new(inner.clone()), 1, is_table);
    let first = fs.open(&path(0), OpenOpts::read()).unwrap();
    let _second = fs.open(&path(1), OpenOpts::read()).unwrap();
    inner.open(&path(0), OpenOpts::write()).unwrap().set_len(5).unwrap();
    assert!(read(&*first).unwrap_err().to_string().contains("length"));
}
