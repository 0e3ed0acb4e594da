//! The watch over a file system that hangs on command, by a clock that is set by hand.

use super::*;
use crate::rt::{Class, Job, Rt, Wake};
use crate::ticket::Ticket;
use crate::{FaultFs, MemFs};

const LIMIT: Duration = Duration::from_secs(4);

/// A clock and nothing else.
#[derive(Default)]
struct Clock(AtomicU64);

impl Clock {
    fn pass(&self, seconds: u64) {
        self.0.fetch_add(seconds * 1_000_000_000, Ordering::Relaxed);
    }
}

impl Rt for Clock {
    fn now(&self) -> Mono {
        Mono(self.0.load(Ordering::Relaxed))
    }
    fn wall_seconds(&self) -> u64 {
        0
    }
    fn seed(&self, _who: &str) -> u64 {
        0
    }
    fn spawn(&self, _class: Class, _job: Box<dyn Job>) {
        unreachable!("a clock runs no jobs")
    }
    fn park(&self, _ticket: &Ticket, _deadline: Option<Mono>) -> Wake {
        unreachable!("no test waits for a clock")
    }
    fn thread_cpu(&self) -> Duration {
        Duration::ZERO
    }
    fn threads(&self, _class: Class) -> usize {
        1
    }
}

/// A call, its path, and for how long it had been under way.
type Seen = (&'static str, PathBuf, Duration);

/// What a look during each call named `op` shows, after `seconds`.
fn seen_during(op: &'static str, seconds: u64, act: impl FnOnce(&WatchedFs)) -> Vec<Seen> {
    let clock = Arc::new(Clock::default());
    let seen: Arc<Mutex<Vec<Seen>>> = Arc::default();
    let watched: Arc<Mutex<Option<WatchedFs>>> = Arc::default();
    let (clock2, seen2, watched2) = (clock.clone(), seen.clone(), watched.clone());
    let inner = FaultFs::new(Arc::new(MemFs::new()), move |call| {
        let fs = watched2.lock().clone();
        if let Some(fs) = fs.filter(|_| call.name == op) {
            assert!(fs.look(LIMIT).is_empty(), "{op} has only begun");
            clock2.pass(seconds);
            let now = clock2.now();
            seen2.lock().extend(fs.look(LIMIT).into_iter().map(|c| (c.op, c.path, now - c.since)));
        }
        None
    });
    let fs = WatchedFs::new(Arc::new(inner), clock.clone());
    *watched.lock() = Some(fs.clone());
    act(&fs);
    clock.pass(100);
    assert!(fs.look(LIMIT).is_empty(), "{op} has come back");
    std::mem::take(&mut seen.lock())
}

/// Some of everything on `f`.
fn life(fs: &WatchedFs) {
    let (f, dir) = (Path::new("f"), Path::new(""));
    let file = fs.create(f, OpenOpts::write()).unwrap();
    file.write_at(&[1; 10], 0).unwrap();
    file.allocate(0, LONG_READ as u64).unwrap();
    file.set_len(LONG_READ as u64).unwrap();
    file.sync_data().unwrap();
    file.sync_all().unwrap();
    file.read_at(&mut [0; LONG_READ], 0).unwrap();
    drop(file);
    drop(fs.open(f, OpenOpts::read()).unwrap());
    fs.link(f, Path::new("g")).unwrap();
    fs.rename(f, Path::new("h")).unwrap();
    fs.unlink(Path::new("g")).unwrap();
    fs.sync_dir(dir).unwrap();
    fs.list(dir).unwrap();
    fs.len(f).unwrap();
    fs.free_space(dir).unwrap();
    fs.create_dir_all(Path::new("d")).unwrap();
    fs.remove_dir(Path::new("d")).unwrap();
}

#[test]
fn every_call_that_hangs_is_named_while_it_does() {
    let calls = [
        ("create", "create", "f"),
        ("open", "open", "f"),
        ("write_at", "write_at", "f"),
        ("sync_data", "sync", "f"),
        ("sync_all", "sync", "f"),
        ("set_len", "resize", "f"),
        ("allocate", "resize", "f"),
        ("read_at", "read_at", "f"),
        ("rename", "rename", "f"),
        ("link", "link", "f"),
        ("unlink", "unlink", "g"),
        ("sync_dir", "sync_dir", ""),
        ("list", "list", ""),
        ("len", "len", "f"),
        ("free_space", "free_space", ""),
        ("create_dir_all", "create_dir_all", "d"),
        ("remove_dir", "remove_dir", "d"),
    ];
    for (op, told, path) in calls {
        let seen = seen_during(op, 7, life);
        assert_eq!(seen, [(told, PathBuf::from(path), Duration::from_secs(7))], "{op}");
        assert_eq!(seen_during(op, 3, life), [], "{op} is slow and does not hang");
    }
}

#[test]
fn a_short_read_is_not_watched() {
    let seen = seen_during("read_at", 7, |fs| {
        let file = fs.create(Path::new("f"), OpenOpts::write()).unwrap();
        file.read_at(&mut [0; 4096], 0).unwrap();
    });
    assert_eq!(seen, []);
}

#[test]
fn what_is_closed_is_forgotten() {
    let fs = WatchedFs::new(Arc::new(MemFs::new()), Arc::new(Clock::default()));
    for n in 0..100 {
        drop(fs.create(Path::new(&n.to_string()), OpenOpts::write()).unwrap());
    }
    fs.look(LIMIT);
    assert_eq!(fs.shared.slots.lock().all.len(), 1, "one for calls by name");
}
