//! A log is made before it is needed: no writer waits for its name, and none is left behind.

#![allow(clippy::disallowed_methods, reason = "the test waits for background work")]

use std::path::Path;
use std::sync::Arc;
use std::thread::ThreadId;
use std::time::Duration;

use crate::common::{image, tiny};
use lithify::{Builder, Db, Settings};
use lithify_env::sync::Mutex;
use lithify_env::{Env, Fault, FaultFs, Fs as _, MemFs, Op, OsRt, RtOptions};

/// Who made each log, in order.
type Makers = Arc<Mutex<Vec<ThreadId>>>;

fn settings() -> Settings {
    let mut s = tiny();
    s.auto_compaction = false;
    // A round does not fill it.
    s.memtable_bytes = 1 << 20;
    (s.l0_slowdown, s.l0_stop) = (1000, 2000);
    s
}

fn is_log(path: &Path) -> bool {
    path.extension().is_some_and(|end| end == "log")
}

fn open(fs: &Arc<MemFs>, rule: impl Fn(&Op<'_>) -> Option<Fault> + Send + Sync + 'static) -> Db {
    let env = Env {
        fs: Arc::new(FaultFs::new(fs.clone(), rule)),
        rt: Arc::new(OsRt::new(RtOptions::default())),
    };
    Builder::new(settings()).env(env).open("/db").unwrap()
}

fn logs(fs: &MemFs) -> Vec<(String, u64)> {
    let all = fs.list(Path::new("/db")).unwrap().into_iter();
    all.filter(|e| is_log(Path::new(&e.name))).map(|e| (e.name, e.len)).collect()
}

/// Fills a memtable and flushes it.
fn fill(db: &Db, round: u32) {
    for i in 0..20u32 {
        db.put([round.to_be_bytes(), i.to_be_bytes()].concat(), [7; 50]).unwrap();
    }
    db.flush().unwrap();
}

fn until(what: &str, mut so: impl FnMut() -> bool) {
    for _ in 0..1000 {
        if so() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("{what} has not come");
}

#[test]
fn writers_make_the_first_two_logs_and_no_other() {
    let (fs, makers) = (Arc::new(MemFs::new()), Makers::default());
    let seen = makers.clone();
    let db = open(&fs, move |op| {
        if op.name == "create" && is_log(op.path) {
            seen.lock().push(std::thread::current().id());
        }
        None
    });
    let me = std::thread::current().id();
    let by_me = || makers.lock().iter().filter(|who| **who == me).count();
    for round in 0..10 {
        fill(&db, round);
        let by_writer = (round as usize + 1).min(2);
        until("the log ahead", || makers.lock().len() == round as usize + 1 + by_writer);
        assert_eq!(by_me(), by_writer, "round {round}");
    }
    db.close().unwrap();
    assert!(logs(&fs).len() <= 1, "a log that was not begun stays: {:?}", logs(&fs));
}

/// What is left of it is an empty log with the largest number.
#[test]
fn a_crash_leaves_nothing_to_replay() {
    let fs = Arc::new(MemFs::new());
    let db = open(&fs, |_| None);
    for round in 0..3 {
        fill(&db, round);
    }
    db.put(b"last", b"1").unwrap();
    until("a log ahead", || logs(&fs).last().is_some_and(|(_, bytes)| *bytes == 0));
    // The directory as it is, as if the process had ended here.
    let mut image = image::take(&*fs, "/db");
    image.remove("LOCK");
    let copy = Arc::new(image::put(&image, "/db"));
    db.close().unwrap();
    let db = open(&copy, |_| None);
    assert_eq!(db.get(b"last").unwrap().unwrap(), b"1");
    fill(&db, 9);
    assert_eq!(db.get(b"last").unwrap().unwrap(), b"1");
    db.close().unwrap();
    assert!(logs(&copy).len() <= 1, "{:?}", logs(&copy));
}

/// Where none can be made ahead, writers make their own, as ever.
#[test]
fn writes_go_on_where_no_log_can_be_made_ahead() {
    let (fs, me) = (Arc::new(MemFs::new()), std::thread::current().id());
    let db = open(&fs, move |op| {
        let ahead = op.name == "create" && is_log(op.path) && std::thread::current().id() != me;
        ahead.then(|| std::io::Error::other("not here").into())
    });
    for round in 0..5 {
        fill(&db, round);
    }
    assert_eq!(
        db.get([4u32.to_be_bytes(), 3u32.to_be_bytes()].concat()).unwrap().unwrap(),
        [7; 50]
    );
    db.close().unwrap();
}
