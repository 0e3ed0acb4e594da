use lithify_base::{KeyRange, Pos, bytewise};
use lithify_env::sync::atomic::{AtomicU64, Ordering};
use lithify_env::{FaultFs, Mapped, MemFs};
use lithify_files::dir::FileName;
use lithify_files::testing::{dir_on, overwrite};

use super::*;
use crate::testing::{Make, entries};

fn options() -> TableOptions {
    TableOptions {
        order: bytewise(),
        prefixes: lithify_base::Prefixes::default(),
        blocks: Some(BlockCache::new(1 << 20, 1)),
        verify: Verify::Always,
        direct: false,
        mapped: Mapped::No,
    }
}

#[test]
fn tables_are_opened_once_and_let_go() {
    let opens = Arc::new(AtomicU64::new(0));
    let seen = opens.clone();
    let fs = FaultFs::new(Arc::new(MemFs::new()), move |op| {
        seen.fetch_add(u64::from(op.name == "open"), Ordering::Relaxed);
        None
    });
    let dir = dir_on(Arc::new(fs));
    let metas: Vec<FileMeta> = (1..=8)
        .map(|n| Make::default().write(&dir, n, &entries(20, n), &[]).unwrap().meta)
        .collect();
    let tables = TableCache::new(dir, options(), 4);
    for _ in 0..3 {
        tables.open(&metas[0]).unwrap();
    }
    assert_eq!(opens.load(Ordering::Relaxed), 1);
    let held = tables.open(&metas[0]).unwrap();
    for meta in &metas {
        tables.open(meta).unwrap();
    }
    assert!(tables.len() <= 4 && !tables.is_empty() && tables.memory() > 0);
    tables.forget(FileId(8));
    assert!(held.properties().num_entries > 0);
}

#[test]
fn the_description_must_fit_the_file() {
    let dir = dir_on(Arc::new(MemFs::new()));
    let meta = Make::default().write(&dir, 1, &entries(20, 1), &[]).unwrap().meta;
    let other = Make::default().write(&dir, 2, &entries(20, 1), &[]).unwrap().meta;
    let tables = TableCache::new(dir.clone(), options(), 4);
    assert!(tables.open(&meta).is_ok());
    tables.forget(meta.id);
    // Another table of the same length lies under its name: the base context tells.
    let bytes = lithify_files::testing::bytes_of(&dir, FileName::Table(2));
    overwrite(&dir, FileName::Table(1), &bytes);
    let e = tables.open(&FileMeta { bytes: other.bytes, ..meta.clone() }).unwrap_err();
    assert!(e.is_corruption() && e.file() == Some("000001.sst"), "{e}");
    let missing = FileMeta::new(FileId(9), Pos::base(1), KeyRange::incl(&b"a"[..], &b"b"[..]));
    assert!(tables.open(&missing).unwrap_err().is_corruption());
}
