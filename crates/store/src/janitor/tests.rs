use lithify_base::{Comparator, ComparatorRef, Kind, Tag};
use lithify_env::sync::Arc;
use lithify_env::{BufPool, FaultFs, MemFs, OpenOpts, write_all_at};
use lithify_files::testing::{dir_on, mem_dir};
use lithify_merge::kernel::Kernel;
use lithify_merge::products::{Item, Products};
use lithify_merge::recipe::Recipe;
use lithify_tables::sst::{Assembler, AssemblerOptions, DeletionTrigger, WriteMode};
use lithify_tables::testing::{DB, Make, entries};

use super::*;

fn live() -> Live {
    Live {
        tables: BTreeSet::from([5, 8]),
        manifests: BTreeSet::from([7]),
        logs: 9..20,
        options: Some(6),
        next_file: 20,
    }
}

fn touch(dir: &Dir, name: &str, bytes: &[u8]) {
    let file = dir.fs().create(&dir.path().join(name), OpenOpts::write()).unwrap();
    write_all_at(&*file, bytes, 0).unwrap();
}

fn names(dir: &Dir) -> Vec<String> {
    dir.list().unwrap().into_iter().map(|entry| entry.name).collect()
}

#[test]
fn the_decision_as_a_table() {
    use Fate::{Delete, Doubt, Keep};
    let rows = [
        ("CURRENT", Keep),
        ("IDENTITY", Keep),
        ("LOCK", Keep),
        ("MANIFEST-000007", Keep),
        ("MANIFEST-000004", Delete),
        ("MANIFEST-000021", Doubt),
        ("000009.log", Keep),
        ("000019.log", Keep),
        ("000025.log", Doubt),
        ("18446744073709551615.log", Doubt),
        ("000008.log", Delete),
        ("000005.sst", Keep),
        ("000008.ldb", Keep),
        ("000006.sst", Delete),
        ("000006.ldb", Delete),
        ("000020.sst", Doubt),
        ("OPTIONS-000006", Keep),
        ("OPTIONS-000005", Delete),
        ("000003.dbtmp", Delete),
        ("000000.dbtmp", Delete),
        ("OPTIONS-000003.dbtmp", Delete),
    ];
    for (name, expected) in rows {
        assert_eq!(fate(FileName::parse(name).unwrap(), &live()), expected, "{name}");
    }
    let any = Live { options: None, ..live() };
    assert_eq!(fate(FileName::Options(1), &any), Keep);
}

#[test]
fn a_sweep_leaves_what_is_needed_and_what_is_foreign() {
    let dir = mem_dir();
    let kept = [
        "000005.sst",
        "000009.log",
        "000020.sst",
        "5.log",
        "CURRENT",
        "EVENTS",
        "LOST.DIR",
        "MANIFEST-000007",
        "OPTIONS-000004",
        "OPTIONS-000006",
        "notes.txt",
    ];
    let gone = ["000002.log", "000003.dbtmp", "000006.sst", "MANIFEST-000001", "OPTIONS-000003"];
    for name in kept.iter().chain(&gone).filter(|name| **name != "LOST.DIR") {
        touch(&dir, name, b"x");
    }
    dir.fs().create_dir_all(&dir.path().join("LOST.DIR")).unwrap();
    let (delete, doubt) = sort_out(&dir.list().unwrap(), &live());
    assert_eq!(delete.iter().map(ToString::to_string).collect::<Vec<_>>(), gone);
    assert_eq!(doubt, [FileName::Table(20)]);
    let swept = sweep(&dir, &live(), DB).unwrap();
    assert_eq!(names(&dir), kept);
    assert_eq!(swept.deleted.iter().map(|d| d.0).collect::<Vec<_>>(), delete);
    assert_eq!(swept.kept, [(FileName::Table(20), "its number was never handed out")]);
    assert_eq!(sweep(&dir, &live(), DB).unwrap().deleted, []);
}

/// Orphaned tables: ours go, torn ones go, those of another database stay.
#[test]
fn tables_of_another_database_stay() {
    for (db_id, stays) in [(DB, false), ("another", true)] {
        let dir = mem_dir();
        Make::default().write(&dir, 11, &entries(20, 1), &[]).unwrap();
        touch(&dir, "000012.sst", &[7; 500]);
        touch(&dir, "000013.sst", b"");
        let swept = sweep(&dir, &live(), db_id).unwrap();
        assert_eq!(names(&dir).contains(&"000011.sst".to_owned()), stays, "{db_id}");
        assert_eq!(swept.deleted.len(), if stays { 2 } else { 3 });
    }
}

/// Whose a table is does not depend on the order of its keys, which here is none of ours.
#[test]
fn orphans_in_any_order_go() {
    for (db_id, stays) in [(DB, false), ("another", true)] {
        let dir = mem_dir();
        let options = AssemblerOptions {
            pool: BufPool::new(1 << 20),
            buffer: 4096,
            mode: WriteMode::Sync,
            direct: false,
            reserve: 0,
            deletions: DeletionTrigger::default(),
        };
        let order: ComparatorRef = Arc::new(Theirs);
        let spec = Make::default().spec(11);
        let mut table = Assembler::create(&dir, spec, order.clone(), options).unwrap();
        let mut recipe = Recipe::new(1);
        recipe.order = order;
        let (mut kernel, mut products) =
            (Kernel::new(Arc::new(recipe)).unwrap(), Products::default());
        kernel.push(b"key", Tag::new(1, Kind::Value), b"value", 0).unwrap();
        kernel.finish().unwrap();
        kernel.drain(&mut products);
        for item in products.items() {
            if let Item::Block(block) = item {
                table.push_product(&products, block).unwrap();
            }
        }
        table.finish().unwrap();
        sweep(&dir, &live(), db_id).unwrap();
        assert_eq!(names(&dir).contains(&"000011.sst".to_owned()), stays, "{db_id}");
    }
}

/// An order of a program's own.
struct Theirs;

impl Comparator for Theirs {
    fn name(&self) -> &str {
        "theirs"
    }
    fn compare(&self, a: &[u8], b: &[u8]) -> std::cmp::Ordering {
        b.cmp(a)
    }
}

/// A table that cannot be read right now may be anybody's.
#[test]
fn doubt_keeps() {
    let mem = Arc::new(MemFs::new());
    Make::default().write(&dir_on(mem.clone()), 11, &entries(20, 1), &[]).unwrap();
    let failing = FaultFs::new(mem.clone(), |op| {
        (op.name == "read_at").then(|| std::io::Error::from_raw_os_error(5).into())
    });
    let swept = sweep(&dir_on(Arc::new(failing)), &live(), DB).unwrap();
    assert_eq!((swept.deleted.len(), swept.kept.len()), (0, 1));
    let stubborn = FaultFs::new(mem, |op| {
        (op.name == "unlink").then(|| std::io::Error::from_raw_os_error(13).into())
    });
    let swept = sweep(&dir_on(Arc::new(stubborn)), &live(), DB).unwrap();
    assert_eq!(swept.kept, [(FileName::Table(11), "it could not be deleted")]);
}
