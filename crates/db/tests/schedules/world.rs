//! A database in memory whose threads are the checker's, and what its content must be.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use lithify::{Builder, Db, ErrorKind, Policy, Settings};
use lithify_env::sync::Arc;
use lithify_env::{Env, Fault, FaultFs, FsRef, MemFs, Op, OsRt, RtOptions};
use lithify_testkit::schedules::thread;

pub const HOME: &str = "/db";
/// Five of these fill a memtable.
const VALUE: usize = 14 << 10;

/// The files of a database; each open of it has threads of its own.
pub struct World {
    pub fs: FsRef,
    pub settings: Settings,
}

impl World {
    pub fn new(policy: Policy) -> World {
        let mut s = Settings::default();
        s.policy = Some(policy);
        s.memtable_bytes = 64 << 10;
        s.memtable_count = 2;
        s.memory_budget = 4 << 20;
        s.level_base_bytes = 128 << 10;
        s.level_multiplier = 3;
        s.file_bytes = 64 << 10;
        s.l0_trigger = 2;
        s.compaction_threads = 2;
        s.event_log = false;
        s.direct_background_io = false;
        World { fs: Arc::new(MemFs::new()), settings: s }
    }

    /// The same files, of which some operations fail.
    pub fn failing(self, rule: impl Fn(&Op<'_>) -> Option<Fault> + Send + Sync + 'static) -> World {
        World { fs: Arc::new(FaultFs::new(self.fs, rule)), settings: self.settings }
    }

    fn builder(&self) -> Builder {
        let rt = OsRt::new(RtOptions {
            flush_threads: 1,
            compact_threads: 2,
            io_threads: 2,
            upkeep_threads: 2,
            background_nice: 0,
            seed: Some(1),
        });
        Builder::new(self.settings.clone()).env(Env { fs: self.fs.clone(), rt: Arc::new(rt) })
    }

    pub fn open(&self) -> Db {
        self.builder().open(HOME).expect("the database opens")
    }

    pub fn read(&self, path: &str) -> Db {
        self.builder().open_read_only(path).expect("the copy opens")
    }

    /// Table files in the directory.
    pub fn tables(&self) -> usize {
        let all = self.fs.list(Path::new(HOME)).expect("the directory is there");
        all.iter().filter(|entry| entry.name.ends_with(".sst")).count()
    }
}

/// The value that write number `n` of a key has.
pub fn value(n: u64) -> Vec<u8> {
    let mut bytes = vec![n as u8; VALUE];
    bytes[..8].copy_from_slice(&n.to_le_bytes());
    bytes
}

/// The number of the write that `value` comes from.
pub fn number(value: &[u8]) -> u64 {
    assert!(value.len() == VALUE && value[8..].iter().all(|b| *b == value[0]), "a torn value");
    u64::from_le_bytes(value[..8].try_into().expect("eight bytes"))
}

/// A key that one thread writes, counting up, and any thread reads.
#[derive(Default)]
pub struct Cell {
    begun: AtomicU64,
    acked: AtomicU64,
}

impl Cell {
    /// Writes the next number.
    pub fn write(&self, db: &Db, key: &str) -> Result<(), lithify::Error> {
        let n = self.begun.fetch_add(1, Ordering::SeqCst) + 1;
        db.put(key, value(n))?;
        self.acked.store(n, Ordering::SeqCst);
        Ok(())
    }

    /// What a read shows lies between what was acknowledged before and begun after it.
    pub fn read(&self, db: &Db, key: &str) -> u64 {
        let least = self.acked.load(Ordering::SeqCst);
        let found = db.get(key).expect("a read").map_or(0, |v| number(&v));
        let most = self.begun.load(Ordering::SeqCst);
        assert!((least..=most).contains(&found), "{key} is {found}, not {least} to {most}");
        found
    }

    pub fn acked(&self) -> u64 {
        self.acked.load(Ordering::SeqCst)
    }
}

/// Keys of [`two_writers`].
pub const KEYS: [&str; 2] = ["a", "b"];

/// Two threads that write a key each, `count` times or until the database is closed.
pub fn two_writers(db: &Db, count: u64) -> (Arc<[Cell; 2]>, Vec<thread::JoinHandle<()>>) {
    let cells: Arc<[Cell; 2]> = Arc::default();
    let writer = |w: usize| {
        let (db, cells) = (db.clone(), cells.clone());
        thread::spawn(move || {
            for _ in 0..count {
                if let Err(e) = cells[w].write(&db, KEYS[w]) {
                    assert!(is_closed(&e), "{e}");
                    break;
                }
            }
        })
    };
    let writers = [writer(0), writer(1)].into();
    (cells, writers)
}

/// An error that a write may end with, because the database closes.
pub fn is_closed(error: &lithify::Error) -> bool {
    error.kind() == ErrorKind::ShuttingDown
}
