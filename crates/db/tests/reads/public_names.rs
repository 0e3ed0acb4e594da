//! A program that depends on this package alone can name every type that a public signature has. Each
//! name here was compiled with nothing else in scope; one that can't be named any more does not compile.
#![allow(clippy::type_complexity, reason = "signatures as they stand")]

use std::path::Path;
use std::sync::Arc;

use lithify::env::{
    Advice, Class, DirEnt, EntryKind, Env, File, FileRef, Fs, FsRef, IoError, IoResult, Job,
    LockGuard, MemFs, Mono, OpenOpts, OsRt, PosixFs, Rt, RtOptions, RtRef, SharedUrgency, Step,
    Ticket, Urgency, Wake,
};
use lithify::salvage::Lost;
use lithify::verify::{Finding, Grade, Progress, Report};
use lithify::{
    Backups, Builder, BuiltTable, Db, Key, ReadOptions, Result, Seq, Settings, Snapshot,
};

/// What was hidden: the type of each field, argument and result, written out.
#[test]
fn every_type_of_a_public_signature_has_a_name() {
    let _: fn(&Snapshot) -> Seq = Snapshot::sequence;
    let _: fn(Builder, Env) -> Builder = Builder::env;
    let _: fn(&Settings) -> Env = Builder::machine;
    let _: fn(&'static str, Env) -> Result<Backups> = Backups::open_in;
    let _: fn(&Backups) -> &Env = Backups::env;
    let _: fn(
        FsRef,
        &'static Path,
        Option<lithify::ComparatorRef>,
        &mut dyn FnMut(Progress),
    ) -> Result<Report> = lithify::verify::verify;
    let _: fn(&Builder, &'static Path, &mut dyn FnMut(Progress)) -> Result<Report> =
        Builder::verify;
    let _: fn(&DirEnt) -> EntryKind = |e| e.kind;
    let _: fn(&Finding) -> (Grade, Option<String>) = |f| (f.grade, f.family.clone());
    let _: fn(&BuiltTable) -> (Option<Key>, Option<Key>) =
        |t| (t.smallest.clone().into(), t.largest.clone().into());
    let _: fn(&Lost) -> (Option<Key>, Option<Key>) = |l| (l.from.clone(), l.up_to.clone());
    let bound: Option<Key> = Some(Key::from(&b"b"[..]));
    let options = ReadOptions { lower_bound: bound, ..ReadOptions::default() };
    assert_eq!(options.lower_bound.as_deref(), Some(&b"b"[..]));
}

/// Handles are types of this package, not names for types of another one: that is what error messages
/// and the pages of the docs show.
#[test]
fn handles_are_types_of_this_package() {
    let package = |name: &str| name.split("::").next().map(str::to_owned);
    for handle in [
        std::any::type_name::<Db>(),
        std::any::type_name::<lithify::ColumnFamily>(),
        std::any::type_name::<lithify::Follower>(),
        std::any::type_name::<lithify::Transaction>(),
        std::any::type_name::<lithify::TtlDb>(),
        std::any::type_name::<lithify::WriteBatch>(),
        std::any::type_name::<Builder>(),
    ] {
        assert_eq!(package(handle).as_deref(), Some("lithify"), "{handle}");
        assert!(!handle.contains('<'), "{handle}");
    }
}

/// A file system of one's own, in front of another: what a program needs for that has names.
struct Counted(FsRef, Arc<std::sync::atomic::AtomicU64>);

impl Fs for Counted {
    fn beneath(&self, dir: &Path, denied: u32) -> IoResult<FsRef> {
        Ok(Arc::new(Counted(self.0.beneath(dir, denied)?, self.1.clone())))
    }
    fn create(&self, path: &Path, opts: OpenOpts) -> IoResult<FileRef> {
        self.0.create(path, opts)
    }
    fn open(&self, path: &Path, opts: OpenOpts) -> IoResult<FileRef> {
        self.1.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        self.0.open(path, opts)
    }
    fn rename(&self, from: &Path, to: &Path) -> IoResult<()> {
        self.0.rename(from, to)
    }
    fn unlink(&self, path: &Path) -> IoResult<()> {
        self.0.unlink(path)
    }
    fn link(&self, from: &Path, to: &Path) -> IoResult<()> {
        self.0.link(from, to)
    }
    fn list(&self, dir: &Path) -> IoResult<Vec<DirEnt>> {
        self.0.list(dir)
    }
    fn len(&self, path: &Path) -> IoResult<Option<u64>> {
        self.0.len(path)
    }
    fn create_dir_all(&self, dir: &Path) -> IoResult<()> {
        self.0.create_dir_all(dir)
    }
    fn remove_dir(&self, dir: &Path) -> IoResult<()> {
        self.0.remove_dir(dir)
    }
    fn sync_dir(&self, dir: &Path) -> IoResult<()> {
        self.0.sync_dir(dir)
    }
    fn free_space(&self, dir: &Path) -> IoResult<u64> {
        self.0.free_space(dir)
    }
    fn lock(&self, path: &Path) -> IoResult<Box<dyn LockGuard>> {
        self.0.lock(path)
    }
}

#[test]
fn a_database_lives_in_a_world_of_ones_own() {
    let counted = Arc::new(Counted(Arc::new(MemFs::new()), Default::default()));
    let rt: RtRef = Arc::new(OsRt::new(RtOptions::default()));
    let env = Env { fs: counted.clone(), rt };
    let db: Db = Builder::new(Settings::default()).env(env).open("db").unwrap();
    db.put("a", "1").unwrap();
    db.flush().unwrap();
    db.close().unwrap();
    let fs: FsRef = counted.clone();
    assert!(lithify::verify::verify(fs, "db", None, &mut |_| {}).unwrap().is_clean());
    assert!(counted.1.load(std::sync::atomic::Ordering::Relaxed) > 0);
}

/// The rest of what the traits of a world speak of.
#[allow(dead_code, reason = "it is compiled, not run")]
struct Named<'a>(
    Advice,
    Class,
    &'a dyn File,
    IoError,
    Box<dyn Job>,
    Mono,
    PosixFs,
    &'a dyn Rt,
    SharedUrgency,
    Step,
    Ticket,
    Urgency,
    Wake,
);
