//! A world that is hard to live in: clocks that jump (reliability F13), little memory and short files
//! (F6, F14), a disk that hangs (F18), a directory that turns read-only, is forbidden or gone (F19).
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "real time, real processes, and watchdogs"
)]

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::common::child::{Order, recover};
use crate::common::clock::Clock;
use crate::common::verdict::judge;
use crate::common::{Content, eager, image, load, scan, tiny, within};
use lithify::{Builder, Db, Durability, ErrorKind, Policy, Settings, WriteOptions};
use lithify_env::{
    Class, Env, Fault, FaultFs, Job, MemFs, Mono, Op, OsRt, Rt, RtOptions, Step, Ticket, Urgency,
    Wake,
};

const ENOENT: i32 = 2;
const LONGEST: Duration = Duration::from_secs(120);

// ---- clocks

/// No time that a wall clock may show changes what is kept or read.
#[test]
fn clocks_that_jump_change_nothing() {
    const YEAR: u64 = 31_556_952;
    const NOW: u64 = 1_800_000_000;
    type Shows = fn(u64) -> u64;
    let clocks: [(&str, Shows); 5] = [
        ("frozen", |_| NOW),
        ("backwards", |n| NOW.saturating_sub(n * YEAR / 2)),
        ("ten years to and fro", |n| if n % 2 == 0 { NOW - 10 * YEAR } else { NOW + 10 * YEAR }),
        ("the beginning and the end of time", |n| if n % 2 == 0 { 0 } else { u64::MAX }),
        ("forwards by leaps", |n| NOW.saturating_add(n.saturating_mul(1 << 40))),
    ];
    within(LONGEST, "jumping clocks", move || {
        let mut contents: Vec<Content> = Vec::new();
        for (name, shows) in clocks {
            for policy in [Policy::Hybrid, Policy::DfTiered, Policy::BucketDf] {
                let real = OsRt::new(RtOptions::default());
                let looks = Arc::new(AtomicU64::new(0));
                let looked = looks.clone();
                let shows = move || shows(looked.fetch_add(1, Ordering::Relaxed));
                let rt = Arc::new(Clock { real, shows });
                let env = Env { fs: Arc::new(MemFs::new()), rt };
                let settings = eager(policy, &mut fastrand::Rng::with_seed(4));
                let open = || {
                    Builder::new(settings.clone()).env(env.clone()).open("/db").unwrap_or_else(
                        |e| {
                            panic!("a clock that shows {name}: {e:?}");
                        },
                    )
                };
                let mut db = open();
                for i in 0..1500 {
                    load::run(&db, 0, &load::op(4, 0, i)).unwrap();
                    if i % 400 == 399 {
                        db.close().unwrap();
                        db = open();
                    }
                }
                db.compact_range(None, None).unwrap();
                contents.push(scan(&db).unwrap());
                db.close().unwrap();
                assert!(looks.load(Ordering::Relaxed) > 20, "the clock was not looked at");
            }
        }
        assert!(contents.iter().all(|c| *c == contents[0]), "contents differ by clock");
    });
}

// ---- limits of the process

/// A child that may not have more than `limit` of something: whatever becomes of it, what it
/// acknowledged is there.
fn limited(limits: &[&str], mut ended: impl FnMut(&str, bool)) {
    let scratch = tempfile::tempdir().unwrap();
    let (directory, journal) = (scratch.path().join("db"), scratch.path().join("journal"));
    let mut content = Content::new();
    let mut rng = fastrand::Rng::with_seed(12);
    for limit in limits {
        let policy = Policy::EVERY[rng.usize(0..Policy::EVERY.len())];
        let round = rng.u64(..);
        let most = Some(400);
        let (directory, journal) = (&directory, &journal);
        let order = Order { directory, journal, policy, round, most, fault: None };
        // A file that may not grow is an error then, and not a signal.
        let script = format!("trap '' XFSZ; ulimit {limit}; exec \"$@\"");
        let wrapper = ["sh", "-c", &script, "sh"].map(str::to_owned);
        let mut child = order.command(&wrapper).spawn().unwrap();
        let mut said = String::new();
        io::Read::read_to_string(&mut child.stderr.take().unwrap(), &mut said).unwrap();
        let status = child.wait().unwrap();
        // Out of memory, Rust's allocator aborts, and threads find no room for their stacks: no worse
        // than a kill.
        let starved = limit.starts_with("-v")
            && ["memory", "spawn thread", "thread could be started"]
                .iter()
                .any(|w| said.contains(w));
        assert!(status.success() || starved, "{limit}: {status}: {said}");
        ended(limit, status.success());
        let notes = order.journal();
        let found = recover(directory, policy, round);
        judge(&content, &notes, &found).unwrap_or_else(|e| panic!("{limit}, {round}: {e}"));
        content = found;
    }
    assert!(!content.is_empty(), "no limit let anything be written");
}

#[test]
fn files_that_may_not_grow() {
    // Blocks of 512 bytes: the journal fits, a log and a large table do not.
    let mut whole = 0;
    limited(&["-f 60", "-f 80", "-f 100", "-f 130", "-f 200", "-f 1000000"], |_, ended| {
        whole += u32::from(ended);
    });
    assert_eq!(whole, 6, "a short file is an error and no end");
}

#[test]
fn little_memory() {
    let mut ends = BTreeMap::new();
    let limits = ["-v 60000", "-v 90000", "-v 130000", "-v 180000", "-v 260000", "-v 100000000"];
    limited(&limits, |limit, ended| {
        ends.insert(limit.to_owned(), ended);
    });
    println!("lived through it: {ends:?}");
    assert!(ends["-v 100000000"]);
}

// ---- a disk that hangs

/// A database on a disk whose calls that `hangs` chooses do not return while it is stuck.
struct Stuck {
    db: Db,
    stuck: Arc<AtomicBool>,
    /// Calls that are or were stuck.
    held: Arc<AtomicU64>,
}

fn on_a_disk(settings: Settings, hangs: impl Fn(&Op<'_>) -> bool + Send + Sync + 'static) -> Stuck {
    let (stuck, held) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let (is_stuck, count) = (stuck.clone(), held.clone());
    let fs = FaultFs::new(Arc::new(MemFs::new()), move |op| {
        if is_stuck.load(Ordering::Relaxed) && hangs(op) {
            count.fetch_add(1, Ordering::Relaxed);
            while is_stuck.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        None
    });
    let env = Env { fs: Arc::new(fs), rt: Arc::new(OsRt::new(RtOptions::default())) };
    let db = Builder::new(settings).env(env).open("/db").unwrap();
    for n in 0..600u32 {
        db.put(n.to_be_bytes(), [n as u8; 100]).unwrap();
    }
    db.compact_range(None, None).unwrap();
    for n in 600..700u32 {
        db.put(n.to_be_bytes(), [n as u8; 100]).unwrap();
    }
    Stuck { db, stuck, held }
}

impl Stuck {
    /// While the disk is stuck, whatever needs no stuck call is answered.
    fn everything_else_goes_on(&self, what: &str) {
        let begun = Instant::now();
        while self.held.load(Ordering::Relaxed) == 0 {
            assert!(begun.elapsed() < LONGEST, "{what}: nothing got stuck");
            std::thread::sleep(Duration::from_millis(1));
        }
        let begun = Instant::now();
        let db = &self.db;
        for n in (0..700u32).step_by(7) {
            assert_eq!(db.get(n.to_be_bytes()).unwrap().unwrap(), [n as u8; 100], "{what}");
        }
        assert!(scan(db).unwrap().len() >= 700, "{what}");
        let snapshot = db.snapshot();
        let at = lithify::ReadOptions::at(&snapshot);
        assert!(db.get_opt(0u32.to_be_bytes(), &at).unwrap().is_some(), "{what}");
        assert!(!db.picture().is_empty() && !db.explain().to_string().is_empty(), "{what}");
        drop(db.stats());
        // Far less than the disk is stuck for, on however busy a machine.
        assert!(begun.elapsed() < Duration::from_secs(30), "{what}: {:?}", begun.elapsed());
        assert!(self.stuck.load(Ordering::Relaxed));
    }

    fn free(&self) {
        self.stuck.store(false, Ordering::Relaxed);
    }
}

fn is(op: &Op<'_>, name: &str, kind: &str) -> bool {
    let file = op.path.file_name().and_then(|n| n.to_str()).unwrap_or_default();
    op.name == name && image::kind(file) == kind
}

/// One kind of call hangs; reads, snapshots and reports go on, and when it comes back so does all
/// else. No lock is held meanwhile, or they would not.
#[test]
fn a_call_that_hangs_holds_up_only_what_needs_it() {
    type Hangs = fn(&Op<'_>) -> bool;
    let calls: [(&str, Hangs); 7] = [
        ("a write of the log", |op| is(op, "write_at", "log")),
        ("a sync of the log", |op| is(op, "sync_data", "log")),
        ("a write of a table", |op| is(op, "write_at", "table")),
        ("a sync of a table", |op| is(op, "sync_data", "table") || is(op, "sync_all", "table")),
        ("an edit", |op| is(op, "write_at", "MANIFEST")),
        ("a sync of the manifest", |op| is(op, "sync_data", "MANIFEST")),
        ("a sync of the directory", |op| op.name == "sync_dir"),
    ];
    for (what, hangs) in calls {
        within(LONGEST / 2, what, move || {
            let disk = on_a_disk(tiny(), hangs);
            disk.stuck.store(true, Ordering::Relaxed);
            std::thread::scope(|s| {
                let worker = s.spawn(|| {
                    disk.db.put_opt(b"z1", b"1", &WriteOptions::sync())?;
                    disk.db.flush()
                });
                disk.everything_else_goes_on(what);
                assert!(!worker.is_finished(), "{what}: it waits");
                disk.free();
                worker.join().unwrap().unwrap();
            });
            disk.db.put(b"z2", b"2").unwrap();
            assert_eq!(scan(&disk.db).unwrap().len(), 702);
            disk.db.close().unwrap();
        });
    }
}

/// A machine whose clock can be put forward.
struct PutForward {
    real: OsRt,
    by: Arc<AtomicU64>,
}

/// What the real clock will show then.
fn real(at: Mono, by: &AtomicU64) -> Mono {
    Mono(at.0.saturating_sub(by.load(Ordering::Relaxed)))
}

impl Rt for PutForward {
    fn now(&self) -> Mono {
        self.real.now() + Duration::from_nanos(self.by.load(Ordering::Relaxed))
    }
    fn wall_seconds(&self) -> u64 {
        self.real.wall_seconds()
    }
    fn seed(&self, who: &str) -> u64 {
        self.real.seed(who)
    }
    fn spawn(&self, class: Class, job: Box<dyn Job>) {
        self.real.spawn(class, Box::new(Forward { job, by: self.by.clone() }));
    }
    fn park(&self, ticket: &Ticket, deadline: Option<Mono>) -> Wake {
        self.real.park(ticket, deadline.map(|at| real(at, &self.by)))
    }
    fn thread_cpu(&self) -> Duration {
        self.real.thread_cpu()
    }
    fn threads(&self, class: Class) -> usize {
        self.real.threads(class)
    }
}

/// A job that waits by that clock.
struct Forward {
    job: Box<dyn Job>,
    by: Arc<AtomicU64>,
}

impl Job for Forward {
    fn step(&mut self) -> Step {
        match self.job.step() {
            Step::WaitUntil(ticket, at) => Step::WaitUntil(ticket, real(at, &self.by)),
            other => other,
        }
    }
    fn urgency(&self) -> Urgency {
        self.job.urgency()
    }
    fn panicked(&mut self, message: String) {
        self.job.panicked(message);
    }
}

/// What the event log says of calls that hang, as (event, call, file).
fn told(fs: &MemFs) -> Vec<(String, String, String)> {
    let image = image::take(fs, "/db");
    let text = String::from_utf8_lossy(&image["EVENTS"]).into_owned();
    let field = |line: &str, name: &str| {
        let from = line.find(&format!("\"{name}\":\"")).map(|at| at + name.len() + 4);
        let value = from.and_then(|at| line[at..].split('"').next());
        value.unwrap_or_default().to_owned()
    };
    let lines = text.lines().filter(|l| l.contains("\"event\":\"disk_"));
    lines.map(|l| (field(l, "event"), field(l, "call"), field(l, "file"))).collect()
}

/// A call that hangs is in the event log and in the explanation before 5 s of it are over, and once
/// more when it has come back; one that is only slow is not. What needs other files goes on.
#[test]
fn a_call_that_hangs_is_told() {
    type Hangs = fn(&Op<'_>) -> bool;
    let calls: [(&str, &str, Hangs); 5] = [
        ("write_at", ".log", |op| is(op, "write_at", "log")),
        ("sync", ".log", |op| is(op, "sync_data", "log")),
        ("sync", ".sst", |op| is(op, "sync_data", "table") || is(op, "sync_all", "table")),
        ("sync", "MANIFEST", |op| is(op, "sync_data", "MANIFEST")),
        ("sync_dir", "db", |op| op.name == "sync_dir"),
    ];
    for (call, file, hangs) in calls {
        within(LONGEST, call, move || {
            let fs = MemFs::new();
            let (stuck, held) =
                (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
            let (stuck2, held2) = (stuck.clone(), held.clone());
            let faulty = FaultFs::new(Arc::new(fs.clone()), move |op| {
                // One call hangs and no second: the next log is made beside a flush, and both sync
                // the directory.
                let hung = stuck2.load(Ordering::Relaxed)
                    && hangs(op)
                    && !held2.swap(true, Ordering::Relaxed);
                while hung && stuck2.load(Ordering::Relaxed) {
                    std::thread::sleep(Duration::from_millis(1));
                }
                None
            });
            // As on a real machine, a thread is left when a commit hangs.
            let options = RtOptions { upkeep_threads: 2, ..RtOptions::default() };
            let by = Arc::new(AtomicU64::new(0));
            let rt = Arc::new(PutForward { real: OsRt::new(options), by: by.clone() });
            let env = Env { fs: Arc::new(faulty), rt };
            let db = Builder::new(tiny()).env(env).open("/db").unwrap();
            db.put(b"before", b"1").unwrap();
            stuck.store(true, Ordering::Relaxed);
            let wait = |what: &str, until: &dyn Fn() -> bool| {
                let begun = Instant::now();
                while !until() {
                    assert!(begun.elapsed() < LONGEST / 2, "{call} of {file}: {what}");
                    std::thread::sleep(Duration::from_millis(5));
                }
            };
            let pass = |millis: u64| by.fetch_add(millis * 1_000_000, Ordering::Relaxed);
            std::thread::scope(|s| {
                let worker = s.spawn(|| {
                    db.put_opt(b"x", b"2", &WriteOptions::sync())?;
                    db.flush()
                });
                wait("nothing hangs", &|| held.load(Ordering::Relaxed));
                pass(2000);
                // The upkeep looks every 50 ms.
                std::thread::sleep(Duration::from_millis(150));
                assert_eq!(told(&fs), [], "{call} of {file}: 2 s are slow and no more");
                assert_eq!(db.explain().hanging, []);
                // 4 s are over, and not 5 unless this machine hangs, too.
                pass(2000);
                wait("it is not told", &|| !told(&fs).is_empty());
                let hanging = db.explain().hanging;
                assert_eq!(hanging.len(), 1, "{hanging:?}");
                assert_eq!(hanging[0].call, call);
                assert!(hanging[0].path.to_string_lossy().contains(file), "{hanging:?}");
                assert!(hanging[0].lasts >= Duration::from_secs(4), "{hanging:?}");
                let text = db.explain().to_string();
                assert!(text.contains("The disk hangs: "), "{text}");
                assert_eq!(db.get(b"before").unwrap().unwrap(), b"1", "reads go on");
                stuck.store(false, Ordering::Relaxed);
                worker.join().unwrap().unwrap();
            });
            wait("its end is not told", &|| told(&fs).len() == 2);
            let told = told(&fs);
            let events: Vec<&str> = told.iter().map(|t| t.0.as_str()).collect();
            assert_eq!(events, ["disk_hangs", "disk_answers"]);
            assert!(told.iter().all(|t| t.1 == call && t.2.contains(file)), "{told:?}");
            assert_eq!(db.explain().hanging, []);
            db.close().unwrap();
        });
    }
}

/// One table can't be read: a reader of it waits; what other tables and the memtable hold is
/// read meanwhile.
#[test]
fn a_table_that_hangs_holds_up_only_its_readers() {
    within(LONGEST, "a table that hangs", || {
        let mut settings = tiny();
        settings.auto_compaction = false;
        // No cache to speak of, and no file that holds more than a few keys.
        settings.file_bytes = 16 << 10;
        let first = Arc::new(AtomicU64::new(0));
        let chosen = first.clone();
        let disk = on_a_disk(settings, move |op| {
            // The first table that is read while the disk is stuck.
            let name = op.path.file_stem().and_then(|n| n.to_str()?.parse::<u64>().ok());
            let Some(number) = name.filter(|_| is(op, "read_at", "table")) else { return false };
            let _ = chosen.compare_exchange(0, number, Ordering::Relaxed, Ordering::Relaxed);
            chosen.load(Ordering::Relaxed) == number
        });
        disk.stuck.store(true, Ordering::Relaxed);
        let options = lithify::ReadOptions { skip_cache_fill: true, ..Default::default() };
        std::thread::scope(|s| {
            let reader = s.spawn(|| disk.db.get_opt(3u32.to_be_bytes(), &options));
            let begun = Instant::now();
            while disk.held.load(Ordering::Relaxed) == 0 && !reader.is_finished() {
                assert!(begun.elapsed() < LONGEST, "nothing got stuck");
                std::thread::sleep(Duration::from_millis(1));
            }
            if disk.held.load(Ordering::Relaxed) > 0 {
                for n in (500..700u32).rev() {
                    let found = disk.db.get_opt(n.to_be_bytes(), &options).unwrap().unwrap();
                    assert_eq!(found, [n as u8; 100]);
                }
                disk.db.put(b"z1", b"1").unwrap();
                assert!(!reader.is_finished(), "it waits for its table");
            }
            disk.free();
            assert_eq!(reader.join().unwrap().unwrap().unwrap(), [3u8; 100]);
        });
        assert!(disk.held.load(Ordering::Relaxed) > 0, "nothing got stuck");
    });
}

// ---- a directory that turns away

/// Calls that change something.
fn changes(op: &Op<'_>) -> bool {
    let names = ["create", "write_at", "rename", "unlink", "link", "set_len", "allocate"];
    names.contains(&op.name)
}

/// Calls that need the directory.
fn names(op: &Op<'_>) -> bool {
    let by_name = ["create", "open", "rename", "unlink", "link", "list", "len", "sync_dir"];
    by_name.contains(&op.name)
}

/// From one moment on everything of a kind is refused, for good: writes say so in words that help,
/// reads go on, no job tries without a pause, and a later open on a sound disk has all that was
/// acknowledged.
#[test]
fn a_directory_that_turns_away_ends_writes_and_nothing_else() {
    type Refuses = fn(&Op<'_>) -> bool;
    let ways: [(&str, i32, Refuses); 4] = [
        ("a read-only disk", 30, changes),
        ("a forbidden disk", 13, changes),
        ("a forbidden directory", 13, names),
        ("a removed directory", ENOENT, names),
    ];
    let mut kinds: BTreeMap<String, u32> = BTreeMap::new();
    for (i, (what, errno, refuses)) in ways.into_iter().enumerate() {
        for (j, after) in [40, 150, 400].into_iter().enumerate() {
            let policy = Policy::EVERY[(i * 3 + j) % Policy::EVERY.len()];
            let met =
                within(LONGEST, what, move || turned_away(policy, what, errno, after, refuses));
            met.into_iter().for_each(|(kind, n)| *kinds.entry(kind).or_default() += n);
        }
    }
    println!("errors met: {kinds:?}");
    assert!(!kinds.is_empty());
}

fn probe(name: &'static str) -> Op<'static> {
    Op { index: 0, name, path: Path::new("/db/000001.sst"), offset: 0, len: 0 }
}

fn turned_away(
    policy: Policy,
    what: &'static str,
    errno: i32,
    after: u32,
    refuses: fn(&Op<'_>) -> bool,
) -> BTreeMap<String, u32> {
    let (fs, rt) = (MemFs::new(), Arc::new(OsRt::new(RtOptions::default())));
    let refusing = Arc::new(AtomicBool::new(false));
    let calls = Arc::new(AtomicU64::new(0));
    let (is_refusing, count) = (refusing.clone(), calls.clone());
    let rule = move |op: &Op<'_>| {
        let hit = is_refusing.load(Ordering::Relaxed) && refuses(op);
        hit.then(|| {
            count.fetch_add(1, Ordering::Relaxed);
            Fault::from(io::Error::from_raw_os_error(errno))
        })
    };
    let settings = eager(policy, &mut fastrand::Rng::with_seed(u64::from(after)));
    let env = Env { fs: Arc::new(FaultFs::new(Arc::new(fs.clone()), rule)), rt: rt.clone() };
    let db = Builder::new(settings.clone()).env(env).open("/db").unwrap();
    let mut model = Content::new();
    let mut unknown: Vec<Vec<u8>> = Vec::new();
    let mut kinds: BTreeMap<String, u32> = BTreeMap::new();
    let mut write = |n: u32, model: &mut Content| {
        let (key, value) = (format!("{:03}", n % 120).into_bytes(), vec![n as u8; 700]);
        match db.put_opt(&key, &value, &WriteOptions::at(Durability::Os)) {
            Ok(()) => drop(model.insert(key, value)),
            Err(e) => {
                use ErrorKind::{NotCommitted, OutcomeUnknown, ReadOnly};
                let honest = [NotCommitted, OutcomeUnknown, ReadOnly].contains(&e.kind());
                assert!(honest, "{what}: {e:?}");
                if e.kind() == OutcomeUnknown {
                    unknown.push(key);
                }
                *kinds.entry(format!("{:?}", e.kind())).or_default() += 1;
            }
        }
    };
    for n in 0..after {
        write(n, &mut model);
    }
    refusing.store(true, Ordering::Relaxed);
    // Enough to fill all memtables, if writes still go somewhere: then they wait, and are told.
    for n in after..after + 100 {
        write(n, &mut model);
    }
    // What failed tells why; the disk is not the only one to say so.
    let flushed = db.flush();
    let text = format!("{flushed:?}");
    assert!(flushed.is_err(), "{what}: a flush on it succeeded");
    let cause = io::Error::from_raw_os_error(errno).to_string();
    let told = text.contains(&cause) || errno == ENOENT && text.contains("missing");
    assert!(told, "{what}: {text}");
    // So does a caller that asks what is wrong.
    let explained = db.explain().to_string();
    let told = explained.contains(&cause) || explained.contains("lock file") || errno == ENOENT;
    assert!(told, "{what}: {explained}");
    let differs =
        |seen: &Content| model.iter().any(|(k, v)| seen.get(k) != Some(v) && !unknown.contains(k));
    match scan(&db) {
        Ok(seen) => assert!(!differs(&seen), "{what}: reads show what was acknowledged"),
        // A table that was not open yet can't be opened any more.
        Err(e) => {
            let missing = errno == ENOENT && e.to_string().contains("missing");
            let told = e.errno() == Some(errno) || missing;
            assert!(told && refuses(&probe("open")), "{what}: {e:?}");
        }
    }
    // No thread runs in circles.
    let before = calls.load(Ordering::Relaxed);
    std::thread::sleep(Duration::from_millis(400));
    let tries = calls.load(Ordering::Relaxed) - before;
    assert!(tries < 100, "{what}: {tries} tries in 0.4 s");
    let _ = db.close();
    refusing.store(false, Ordering::Relaxed);
    let env = Env { fs: Arc::new(fs), rt };
    let db = Builder::new(settings).env(env).open("/db").unwrap();
    let found = scan(&db).unwrap();
    let lost = model.iter().find(|(k, v)| found.get(*k) != Some(v) && !unknown.contains(k));
    assert!(lost.is_none(), "{what}, {}: {:?} is lost", policy.name(), lost);
    kinds
}

/// The real thing: the directory is removed under an open database. It says so, and goes on reading
/// what it holds open.
#[test]
fn a_directory_that_is_really_gone() {
    let scratch = tempfile::tempdir().unwrap();
    let home = scratch.path().join("db");
    let db = Db::open(&home, tiny()).unwrap();
    for n in 0..200u32 {
        db.put(n.to_be_bytes(), [1; 100]).unwrap();
    }
    db.compact_range(None, None).unwrap();
    std::fs::remove_dir_all(&home).unwrap();
    match scan(&db) {
        Ok(seen) => assert_eq!(seen.len(), 200, "tables that are open are read"),
        // One that was not open yet is missing, and that is said.
        Err(e) => assert!(e.to_string().contains(".sst"), "{e:?}"),
    }
    let e = db.put(b"z", b"nowhere").unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Fenced, "{e:?}");
    assert!(e.to_string().contains(home.to_str().unwrap()), "{e:?}");
    assert_eq!(db.flush().unwrap_err().kind(), ErrorKind::ReadOnly);
    let closed = within(LONGEST, "closing nowhere", move || db.close());
    drop(closed);
    assert!(!Path::new(&home).exists(), "nothing was made anew");
}
