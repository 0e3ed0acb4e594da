//! One suite for every file system: the same random trace must give the same results, call by
//! call, on the machine's own file system and in memory, and leave the same tree behind.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lithify_env::{
    Advice, EntryKind, FileRef, Fs, FsRef, IoResult, LockGuard, MemFs, OpenOpts, OsRt, PosixFs,
    Random, RtOptions, WatchedFs, read_full_at,
};

/// Few enough names that calls meet: files, directories, a missing parent, a file as a parent.
const NAMES: [&str; 11] =
    ["a", "b", "c", "d", "e", "d/a", "d/b", "d/x", "d/x/a", "missing/a", "a/b"];
const SLOTS: usize = 3;

/// A file system under test with what the trace holds open.
struct Subject {
    fs: FsRef,
    root: PathBuf,
    files: [Option<FileRef>; SLOTS],
    locks: Vec<(usize, Box<dyn LockGuard>)>,
}

/// One call, with everything random about it decided.
#[derive(Clone, Debug)]
enum Call {
    Create { slot: usize, name: usize },
    Open { slot: usize, name: usize, opts: OpenOpts },
    Close { slot: usize },
    Write { slot: usize, offset: u64, bytes: Vec<u8> },
    Read { slot: usize, offset: u64, len: usize },
    SetLen { slot: usize, len: u64 },
    Allocate { slot: usize, offset: u64, len: u64 },
    Sync { slot: usize },
    Rename { from: usize, to: usize },
    Link { from: usize, to: usize },
    Unlink { name: usize },
    MakeDir { name: usize },
    RemoveDir { name: usize },
    List { name: usize },
    Len { name: usize },
    SyncDir { name: usize },
    Lock { name: usize },
    Unlock { name: usize },
    Owner { name: usize },
}

fn draw(random: &mut Random) -> Call {
    let name = random.below(NAMES.len() as u64) as usize;
    let to = random.below(NAMES.len() as u64) as usize;
    let slot = random.below(SLOTS as u64) as usize;
    let offset = random.below(5000);
    match random.below(26) {
        0 => Call::Create { slot, name },
        1..=3 => {
            let opts = [OpenOpts::read(), OpenOpts::write(), OpenOpts::read().or_create()];
            Call::Open { slot, name, opts: opts[random.below(3) as usize] }
        }
        4 => Call::Close { slot },
        5..=8 => {
            let mut bytes = vec![0; random.below(3000) as usize];
            random.fill(&mut bytes);
            Call::Write { slot, offset, bytes }
        }
        9..=11 => Call::Read { slot, offset, len: random.below(3000) as usize },
        12 => Call::SetLen { slot, len: offset },
        13 => Call::Allocate { slot, offset, len: random.below(3000) },
        // Rare, because a real disk takes its time.
        14 if random.one_in(25) => Call::Sync { slot },
        15 | 16 => Call::Rename { from: name, to },
        17 => Call::Link { from: name, to },
        18 => Call::Unlink { name },
        19 => Call::MakeDir { name },
        20 => Call::RemoveDir { name },
        21 => Call::List { name },
        22 => Call::Len { name },
        23 if random.one_in(5) => Call::SyncDir { name },
        24 => Call::Lock { name },
        _ if random.one_in(2) => Call::Unlock { name },
        _ => Call::Owner { name },
    }
}

/// What a caller can see of a result: the value, or the operation and the system's error code.
fn seen<T: std::fmt::Debug>(result: IoResult<T>) -> String {
    match result {
        Ok(value) => format!("{value:?}"),
        // That of the machine names the holder in place of the code.
        Err(error) if error.kind() == ErrorKind::WouldBlock => format!("{} is held", error.op),
        Err(error) => format!("{} {:?} {:?}", error.op, error.kind(), error.source.raw_os_error()),
    }
}

impl Subject {
    fn new(fs: impl Fs, root: &Path) -> Self {
        fs.create_dir_all(root).unwrap();
        Self::on(Arc::new(fs), root)
    }

    /// The same by a handle of the root.
    fn held(fs: impl Fs, root: &Path) -> Self {
        fs.create_dir_all(root).unwrap();
        Self::on(fs.beneath(root, 0).unwrap(), root)
    }

    fn on(fs: FsRef, root: &Path) -> Self {
        Self { fs, root: root.to_path_buf(), files: Default::default(), locks: Vec::new() }
    }

    fn path(&self, name: usize) -> PathBuf {
        self.root.join(NAMES[name])
    }

    fn hold(&mut self, slot: usize, result: IoResult<FileRef>) -> String {
        seen(result.map(|file| self.files[slot] = Some(file)))
    }

    fn on_file<T: std::fmt::Debug>(
        &self,
        slot: usize,
        call: impl FnOnce(&FileRef) -> IoResult<T>,
    ) -> String {
        self.files[slot].as_ref().map_or_else(|| "closed".to_owned(), |file| seen(call(file)))
    }

    fn apply(&mut self, call: &Call) -> String {
        let fs = &*self.fs;
        match *call {
            Call::Create { slot, name } => {
                let result = fs.create(&self.path(name), OpenOpts::write());
                self.hold(slot, result)
            }
            Call::Open { slot, name, opts } => {
                let result = fs.open(&self.path(name), opts);
                self.hold(slot, result)
            }
            Call::Close { slot } => format!("{}", self.files[slot].take().is_some()),
            Call::Write { slot, offset, ref bytes } => {
                self.on_file(slot, |file| file.write_at(bytes, offset))
            }
            Call::Read { slot, offset, len } => self.on_file(slot, |file| {
                let mut buf = vec![0; len];
                let count = file.read_at(&mut buf, offset)?;
                buf.truncate(count);
                Ok(buf)
            }),
            Call::SetLen { slot, len } => {
                self.on_file(slot, |file| file.set_len(len).and_then(|()| file.len()))
            }
            Call::Allocate { slot, offset, len } => {
                self.on_file(slot, |file| file.allocate(offset, len).and_then(|()| file.len()))
            }
            Call::Sync { slot } => self.on_file(slot, |file| {
                file.advise(0, 0, Advice::Sequential);
                file.sync_data().and_then(|()| file.sync_all())
            }),
            Call::Rename { from, to } => seen(fs.rename(&self.path(from), &self.path(to))),
            Call::Link { from, to } => seen(fs.link(&self.path(from), &self.path(to))),
            Call::Unlink { name } => seen(fs.unlink(&self.path(name))),
            Call::MakeDir { name } => seen(fs.create_dir_all(&self.path(name))),
            Call::RemoveDir { name } => seen(fs.remove_dir(&self.path(name))),
            Call::List { name } => seen(fs.list(&self.path(name))),
            Call::Len { name } => seen(fs.len(&self.path(name))),
            Call::SyncDir { name } => seen(fs.sync_dir(&self.path(name))),
            Call::Lock { name } => {
                let result = fs.lock(&self.path(name));
                seen(result.map(|guard| self.locks.push((name, guard))))
            }
            Call::Unlock { name } => {
                self.locks.retain(|(held, _)| *held != name);
                String::new()
            }
            Call::Owner { name } => {
                let held = self.locks.iter().filter(|(held, _)| *held == name);
                format!("{:?}", held.map(|(_, guard)| guard.is_owner()).collect::<Vec<_>>())
            }
        }
    }

    /// Every name below the root with its content, in order.
    fn tree(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let mut tree = Vec::new();
        let mut dirs = vec![self.root.clone()];
        while let Some(dir) = dirs.pop() {
            for entry in self.fs.list(&dir).unwrap() {
                let path = dir.join(&entry.name);
                let name = path.strip_prefix(&self.root).unwrap().to_path_buf();
                let mut content = vec![0; entry.len as usize + 1];
                if entry.kind == EntryKind::Dir {
                    dirs.push(path);
                } else {
                    let file = self.fs.open(&path, OpenOpts::read()).unwrap();
                    let count = read_full_at(&*file, &mut content, 0).unwrap();
                    assert_eq!(count as u64, entry.len);
                }
                tree.push((name, content));
            }
        }
        tree
    }
}

#[test]
fn posix_and_memory_agree_on_random_traces() {
    let mut refused = 0;
    for seed in 0..40 {
        let scratch = tempfile::tempdir().unwrap();
        let mut posix = match seed % 2 {
            0 => Subject::new(PosixFs::new(), scratch.path()),
            _ => Subject::held(PosixFs::new(), scratch.path()),
        };
        let mut memory = Subject::held(MemFs::new(), Path::new("/some/where"));
        let mut random = Random::from_seed(seed);
        for step in 0..400 {
            let call = draw(&mut random);
            let (expected, got) = (posix.apply(&call), memory.apply(&call));
            assert_eq!(expected, got, "seed {seed} step {step}: {call:?}");
            refused += u64::from(expected.contains("Some("));
        }
        assert_eq!(posix.tree(), memory.tree(), "seed {seed}");
    }
    assert!(refused > 1000, "the traces must meet errors, not only successes: {refused}");
}

#[test]
fn a_watched_file_system_is_the_one_below() {
    for seed in 0..30 {
        let mut plain = Subject::new(MemFs::new(), Path::new("/some/where"));
        let rt = Arc::new(OsRt::new(RtOptions::default()));
        let watched = WatchedFs::new(Arc::new(MemFs::new()), rt);
        let mut watched = Subject::new(watched, Path::new("/some/where"));
        let mut random = Random::from_seed(seed);
        for step in 0..400 {
            let call = draw(&mut random);
            let (expected, got) = (plain.apply(&call), watched.apply(&call));
            assert_eq!(expected, got, "seed {seed} step {step}: {call:?}");
        }
        assert_eq!(plain.tree(), watched.tree(), "seed {seed}");
    }
}

#[test]
fn a_full_memory_file_system_writes_what_fits() {
    let fs = MemFs::with_capacity(1000);
    let file = fs.create(Path::new("f"), OpenOpts::write()).unwrap();
    assert_eq!(file.write_at(&[1; 700], 0).unwrap(), 700);
    assert_eq!(file.write_at(&[2; 700], 700).unwrap(), 300);
    assert!(file.write_at(&[3; 1], 1000).unwrap_err().is_no_space());
    assert!(file.set_len(1001).unwrap_err().is_no_space());
    assert!(file.allocate(999, 2).unwrap_err().is_no_space());
    assert_eq!(file.write_at(&[4; 10], 990).unwrap(), 10, "overwriting needs no space");
    assert_eq!((fs.used(), fs.free_space(Path::new("")).unwrap()), (1000, 0));

    fs.unlink(Path::new("f")).unwrap();
    assert_eq!(fs.used(), 1000, "an open file keeps its space");
    drop(file);
    assert_eq!(fs.used(), 0);
    let file = fs.create(Path::new("g"), OpenOpts::write()).unwrap();
    assert!(file.write_at(&[1; 1], 1000).unwrap_err().is_no_space(), "the gap counts");
    assert_eq!((fs.used(), file.len().unwrap()), (0, 0), "a refused write leaves nothing");
    fs.set_capacity(2000);
    assert_eq!(file.write_at(&[1; 1], 1000).unwrap(), 1);
}

#[test]
fn offsets_beyond_any_file_are_errors() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("f");
    let files = [
        PosixFs::new().create(&path, OpenOpts::write()).unwrap(),
        MemFs::new().create(Path::new("f"), OpenOpts::write()).unwrap(),
    ];
    for file in files {
        assert!(file.read_at(&mut [0], u64::MAX).is_err());
        assert!(file.write_at(&[0], u64::MAX).is_err());
        assert!(file.set_len(u64::MAX).is_err());
        assert!(file.allocate(u64::MAX, 1).is_err());
        assert_eq!(file.len().unwrap(), 0);
    }
}

/// What a file system says of holes is true of any file system: outside of the stretches all is zeros.
fn stretches(file: &FileRef) -> Vec<std::ops::Range<u64>> {
    let (mut all, mut from) = (Vec::new(), 0);
    while let Some(stretch) = file.next_data(from).unwrap() {
        assert!(from <= stretch.start && stretch.start < stretch.end, "{stretch:?} after {from}");
        from = stretch.end;
        all.push(stretch);
    }
    all
}

#[test]
fn stretches_between_holes_hold_all_that_was_written() {
    let home = tempfile::tempdir().unwrap();
    let rt = OsRt::new(RtOptions::default());
    let watched = WatchedFs::new(Arc::new(PosixFs::new()), Arc::new(rt));
    let memory = MemFs::new();
    memory.create_dir_all(home.path()).unwrap();
    for (fs, knows) in [(&PosixFs::new() as &dyn Fs, true), (&watched, true), (&memory, false)] {
        let file = fs.open(&home.path().join("sparse"), OpenOpts::write().or_create()).unwrap();
        file.set_len(0).unwrap();
        assert_eq!(stretches(&file), []);
        file.write_at(b"one", 5).unwrap();
        file.write_at(b"two", 9 << 20).unwrap();
        file.set_len(20 << 20).unwrap();
        let found = stretches(&file);
        for at in [5, 9 << 20] {
            assert!(found.iter().any(|s| s.contains(&at) && s.contains(&(at + 2))), "{found:?}");
        }
        assert!(found.iter().all(|s| s.end <= 20 << 20), "{found:?}");
        assert_eq!(file.next_data(20 << 20).unwrap(), None);
        assert_eq!(file.next_data(1 << 40).unwrap(), None);
        let data: u64 = found.iter().map(|s| s.end - s.start).sum();
        assert!(!knows || data <= 1 << 20, "{found:?}");
    }
}
