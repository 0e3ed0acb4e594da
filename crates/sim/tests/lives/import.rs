//! Power is lost at every step of an import: what is left opens as no database, or is the whole one,
//! and the source is what it was.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the directories to be imported are files"
)]

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use lithify::import::ImportOptions;
use lithify::{Builder, ErrorKind, Settings};
use lithify_env::{Env, Fs, OpenOpts, OsRt, RtOptions, RtRef, write_all_at};
use lithify_sim::choices::{Dice, Stream};
use lithify_sim::crash::{Kind, image};
use lithify_sim::disk::Disk;
use lithify_sim::model::Map;
use lithify_sim::simfs::SimFs;
use lithify_sim::world::whole;

const FROM: &str = "/theirs";
const TO: &str = "/new";

fn builder(fs: &SimFs, rt: &RtRef) -> Builder {
    let mut settings = Settings::default();
    settings.memtable_bytes = 64 << 10;
    settings.memory_budget = 8 << 20;
    settings.event_log = false;
    settings.auto_compaction = false;
    Builder::new(settings).env(Env { fs: Arc::new(fs.clone()), rt: rt.clone() })
}

/// What the column families hold, by name.
fn content(fs: &SimFs, rt: &RtRef, path: &str) -> lithify::Result<BTreeMap<String, Map>> {
    let db = builder(fs, rt).open_read_only(path)?;
    let of = |name: String| {
        let family = db.column_family(&name)?;
        Ok((name, whole(&family).expect("what opens reads")))
    };
    db.column_families().into_iter().map(of).collect()
}

/// The directory `name` of the tests of the facade, on a disk: names durable, bytes not, as the program
/// that copied it there left them.
fn source(name: &str) -> SimFs {
    let fs = SimFs::new(Disk::default());
    fs.create_dir_all(Path::new(FROM)).unwrap();
    fs.sync_dir(Path::new("/")).unwrap();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../db/tests/foreign").join(name);
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let to = Path::new(FROM).join(path.file_name().unwrap());
        let file = fs.create(&to, OpenOpts::write()).unwrap();
        write_all_at(&*file, &std::fs::read(path).unwrap(), 0).unwrap();
    }
    fs.sync_dir(Path::new(FROM)).unwrap();
    fs
}

#[test]
fn an_import_leaves_nothing_or_all() {
    let rt: RtRef = Arc::new(OsRt::new(RtOptions { seed: Some(1), ..RtOptions::default() }));
    for name in ["rocksdb-recycled", "leveldb-snappy", "rocksdb-families"] {
        let fs = source(name);
        let all = content(&fs, &rt, FROM).unwrap();
        let begun = fs.position();
        builder(&fs, &rt).import(FROM, TO, ImportOptions::default(), &mut |_| {}).unwrap();
        let done = fs.position();
        let log = fs.take_log();
        let mut disk = Disk::default();
        let (mut nothing, mut whole) = (0, 0);
        for (position, entry) in (1..).zip(&log) {
            disk.apply(entry);
            if position < begun {
                continue;
            }
            for kind in Kind::ALL {
                let dice = Dice::new(Stream::seeded(position as u64, kind.name()));
                let left = SimFs::new(image(&disk, kind, &dice));
                let at = format!("{name}, position {position}, {}", kind.name());
                match content(&left, &rt, TO) {
                    Ok(found) => {
                        assert!(found == all, "{at}: {found:?}");
                        whole += 1;
                    }
                    Err(e) => {
                        assert_eq!(e.kind(), ErrorKind::NotFound, "{at}: {e}");
                        assert!(position < done, "{at}: it was done: {e}");
                        nothing += 1;
                    }
                }
                if kind == Kind::Everything {
                    assert!(content(&left, &rt, FROM).unwrap() == all, "{at}: the source");
                }
            }
        }
        assert!(nothing > 100 && whole > 100, "{nothing} times nothing, {whole} times all");
    }
}
