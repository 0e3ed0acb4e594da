//! Machines whose wall clock shows what a test wants.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use lithify::{Builder, Db, Settings};
use lithify_env::{Class, Env, Fs, Job, MemFs, Mono, OsRt, Rt, RtOptions, Ticket, Wake};

pub const LONGEST: Duration = Duration::from_secs(120);
pub const NOW: u64 = 1_800_000_000;

/// A machine whose wall clock shows what `shows` says.
pub struct Clock<F> {
    pub real: OsRt,
    pub shows: F,
}

impl<F: Fn() -> u64 + Send + Sync + 'static> Rt for Clock<F> {
    fn now(&self) -> Mono {
        self.real.now()
    }
    fn wall_seconds(&self) -> u64 {
        (self.shows)()
    }
    fn seed(&self, who: &str) -> u64 {
        self.real.seed(who)
    }
    fn spawn(&self, class: Class, job: Box<dyn Job>) {
        self.real.spawn(class, job);
    }
    fn park(&self, ticket: &Ticket, deadline: Option<Mono>) -> Wake {
        self.real.park(ticket, deadline)
    }
    fn thread_cpu(&self) -> Duration {
        self.real.thread_cpu()
    }
    fn threads(&self, class: Class) -> usize {
        self.real.threads(class)
    }
}

/// A world in memory with a clock that shows what is set.
pub fn world(fs: &MemFs, shows: &Arc<AtomicU64>) -> Env {
    let real = OsRt::new(RtOptions { compact_threads: 2, ..RtOptions::default() });
    let shows = shows.clone();
    let rt = Arc::new(Clock { real, shows: move || shows.load(Ordering::Relaxed) });
    Env { fs: Arc::new(fs.clone()), rt }
}

/// Opens the database in such a world.
pub fn open(fs: &MemFs, settings: Settings, shows: &Arc<AtomicU64>) -> Db {
    Builder::new(settings).env(world(fs, shows)).open("/db").unwrap()
}

/// Table files that are there.
pub fn tables(fs: &MemFs) -> usize {
    let names = fs.list(Path::new("/db")).unwrap();
    names.iter().filter(|n| n.name.ends_with(".sst")).count()
}

/// Waits until something holds, for as long as a slow machine may take.
pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !holds() {
        assert!(begin.elapsed() < LONGEST, "{what}: not in time");
        std::thread::sleep(Duration::from_millis(5));
    }
}
