//! A process that works on a directory until something ends it, and the look at what it left.
//!
//! The child is the test binary again, called with `--exact the_load`. Its writers note what they
//! begin and what is acknowledged in a journal beside the directory, one `write(2)` a note: what was
//! noted is known whenever the process ends. What is asked of the child travels in environment
//! variables ([`Order`]). The parent opens what was left without any repair ([`recover`]) and has it
//! judged by [`super::verdict`].

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use lithify::{Builder, CompactionPri, Compression, Db, Error, ErrorKind, Policy, Settings};
use lithify_env::{Env, FaultFs, PosixFs};
use lithify_files::dir::Dir;
use lithify_journal::files::FileName;
use lithify_store::manifest;

use super::verdict::{Journal, Note, What};
use super::{Content, TICK, eager, load, scan};

const WRITERS: u8 = 3;
const DIRECTORY: &str = "LITHIFY_CRASH_DIRECTORY";
const JOURNAL: &str = "LITHIFY_CRASH_JOURNAL";
const POLICY: &str = "LITHIFY_CRASH_POLICY";
const ROUND: &str = "LITHIFY_CRASH_ROUND";
const MOST: &str = "LITHIFY_CRASH_MOST";
const FAULT: &str = "LITHIFY_CRASH_FAULT";
/// A child that is still there after this long hangs.
const LONGEST: Duration = Duration::from_secs(60);

/// A number from the environment.
pub fn number_from(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().map_or(default, |text| {
        text.parse().unwrap_or_else(|_| panic!("{name} = `{text}` is not a number"))
    })
}

/// The shape of the database changes from round to round; its content does not depend on it.
pub fn settings(policy: Policy, round: u64) -> Settings {
    let mut rng = fastrand::Rng::with_seed(round);
    let mut s = eager(policy, &mut rng);
    s.level_base_bytes = 64 << 10;
    s.file_bytes = 16 << 10;
    s.compaction_threads = rng.u32(2..5);
    s.direct_background_io = rng.bool();
    s.dynamic_levels = rng.bool();
    s.format_version = 5 + u32::from(rng.bool());
    s.compression_upper = if rng.bool() { Compression::Lz4 } else { Compression::None };
    s.flush_threads = rng.u32(1..3);
    s.max_subcompactions = [1, 2, 4][rng.usize(0..3)];
    if !policy.takes_runs() {
        s.compaction_pri = CompactionPri::ALL[rng.usize(0..5)];
    }
    s
}

/// What a child is asked to do.
pub struct Order<'a> {
    pub directory: &'a Path,
    pub journal: &'a Path,
    pub policy: Policy,
    pub round: u64,
    /// Operations of each writer, after which the child ends by itself; then errors are expected,
    /// and noted. None: it works until it is killed, and an error is a failure.
    pub most: Option<u32>,
    /// What the child's own file system does wrong: see [`Disturbance::text`].
    pub fault: Option<String>,
}

impl Order<'_> {
    /// The child's command line and environment, under `wrapper` if there is one.
    pub fn command(&self, wrapper: &[String]) -> Command {
        let binary = std::env::current_exe().unwrap();
        let mut command = match wrapper.split_first() {
            None => Command::new(binary),
            Some((first, rest)) => {
                let mut command = Command::new(first);
                command.args(rest).arg(binary);
                command
            }
        };
        command
            .args(["--exact", "the_load", "--nocapture", "--test-threads=1"])
            .env(DIRECTORY, self.directory)
            .env(JOURNAL, self.journal)
            .env(POLICY, self.policy.name())
            .env(ROUND, self.round.to_string())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        if let Some(most) = self.most {
            command.env(MOST, most.to_string());
        }
        if let Some(fault) = &self.fault {
            command.env(FAULT, fault);
        }
        command
    }

    /// What the child noted. The journal is gone afterwards.
    pub fn journal(&self) -> Journal {
        let bytes = fs::read(self.journal).unwrap_or_default();
        let _ = fs::remove_file(self.journal);
        Journal { round: self.round, notes: bytes.chunks(Note::LEN).map(Note::decode).collect() }
    }
}

/// One call of the child's file system that goes wrong.
#[derive(Clone, Copy, Debug)]
pub struct Disturbance<'a> {
    /// The operation, as [`lithify_env::Op::name`] has it.
    pub op: &'a str,
    /// Which call of it, from 1.
    pub nth: u64,
    /// The error it gets; none: the process ends there.
    pub errno: Option<i32>,
}

impl Disturbance<'_> {
    /// As an environment variable.
    pub fn text(&self) -> String {
        format!("{} {} {}", self.op, self.nth, self.errno.unwrap_or(0))
    }
    /// A machine on which it happens.
    fn machine(text: &str, settings: &Settings) -> Env {
        let mut parts = text.split(' ');
        let mut part = || parts.next().expect("three parts").to_owned();
        let (op, nth, errno) = (part(), part(), part());
        let (nth, errno): (u64, i32) = (nth.parse().unwrap(), errno.parse().unwrap());
        let calls = AtomicU64::new(0);
        let rule = move |call: &lithify_env::Op<'_>| {
            let hit = call.name == op && calls.fetch_add(1, Ordering::Relaxed) + 1 == nth;
            if hit && errno == 0 {
                std::process::abort();
            }
            hit.then(|| std::io::Error::from_raw_os_error(errno).into())
        };
        let real = Builder::machine(settings);
        Env { fs: Arc::new(FaultFs::new(Arc::new(PosixFs::new()), rule)), rt: real.rt }
    }
}

/// The child, if this process is one: works as it was told and does not return.
pub fn work_if_asked() {
    let Ok(directory) = std::env::var(DIRECTORY) else { return };
    let round = number_from(ROUND, 0);
    let journal = std::env::var(JOURNAL).expect("the parent names a journal");
    let journal = OpenOptions::new().append(true).create(true).open(journal).unwrap();
    let policy = std::env::var(POLICY).ok().and_then(|name| Policy::from_name(&name));
    let settings = settings(policy.expect("the parent names a policy"), round);
    let most = std::env::var(MOST).ok().map(|text| text.parse::<u32>().unwrap());
    if most.is_some() {
        std::thread::spawn(|| {
            // In ticks, as in `within`.
            for _ in 0..LONGEST.as_millis() / TICK.as_millis() {
                std::thread::sleep(TICK);
            }
            eprintln!("still not over after {LONGEST:?}");
            std::process::abort();
        });
    }
    let mut builder = Builder::new(settings.clone());
    if let Ok(fault) = std::env::var(FAULT) {
        builder = builder.env(Disturbance::machine(&fault, &settings));
    }
    let expected = |what: &str, e: &Error| {
        use ErrorKind::{Io, NoSpace, NotCommitted, OutcomeUnknown, ReadOnly};
        let honest = [Io, NoSpace, NotCommitted, OutcomeUnknown, ReadOnly].contains(&e.kind());
        if most.is_none() || !honest {
            eprintln!("round {round}, {what}: {e:?}");
            std::process::abort();
        }
    };
    match builder.open(directory) {
        Ok(db) => live(&db, &journal, round, most, &expected),
        Err(e) => expected("the open", &e),
    }
    // As good as a kill: nothing is closed.
    std::process::exit(0);
}

/// Threads that write, and one that reads, until the writers are through.
fn live(
    db: &Db,
    journal: &File,
    round: u64,
    most: Option<u32>,
    expected: &(dyn Fn(&str, &Error) + Sync),
) {
    let over = AtomicBool::new(false);
    std::thread::scope(|s| {
        s.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                // Iterators pin files that compactions would like to delete.
                if let Err(e) = scan(db) {
                    expected("a scan", &e);
                }
                std::thread::sleep(Duration::from_millis(5));
            }
        });
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| s.spawn(move || write(db, journal, round, writer, most, expected)))
            .collect();
        let ended: Vec<_> = writers.into_iter().map(|writer| writer.join()).collect();
        over.store(true, Ordering::Relaxed);
        ended.into_iter().for_each(|end| end.unwrap());
    });
    if round.is_multiple_of(2)
        && let Err(e) = db.clone().close()
    {
        expected("the close", &e);
    }
}

fn write(
    db: &Db,
    mut journal: &File,
    round: u64,
    writer: u8,
    most: Option<u32>,
    expected: &(dyn Fn(&str, &Error) + Sync),
) {
    for index in 0..most.unwrap_or(u32::MAX) {
        let op = load::op(round, writer, index);
        let mut note = Note { writer, index, what: What::Begun };
        // One write(2) to a file opened for appending: atomic, and in order.
        journal.write_all(&note.encode()).unwrap();
        match load::run(db, writer, &op) {
            Ok(()) => note.what = What::Acknowledged,
            Err(e) => {
                expected(&format!("writer {writer}, operation {index}"), &e);
                // A write says whether it happened.
                assert!(op.durability().is_none() || e.kind() != ErrorKind::Io, "{e:?}");
                if e.kind() == ErrorKind::OutcomeUnknown {
                    return;
                }
                if op.durability().is_none() {
                    continue;
                }
                note.what = What::Refused;
            }
        }
        journal.write_all(&note.encode()).unwrap();
    }
}

/// Opens what was left and reads it, twice: the second open must find what the first one did.
pub fn recover(directory: &Path, policy: Policy, round: u64) -> Content {
    let mut settings = settings(policy, round);
    settings.auto_compaction = false;
    let [first, second] = ["first", "second"].map(|which| {
        let db = Db::open(directory, settings.clone())
            .unwrap_or_else(|e| panic!("round {round}: the {which} open failed: {e}"));
        let files = strangers(directory);
        assert!(files.is_empty(), "round {round}: files not needed after the open: {files:?}");
        let content = scan(&db).unwrap();
        for (key, value) in content.iter().step_by(7) {
            assert_eq!(db.get(key).unwrap().unwrap(), value, "round {round}");
        }
        db.close().unwrap();
        content
    });
    assert!(first == second, "round {round}: a second open shows another database");
    first
}

/// Files of the directory that neither the manifest nor the protocol names, and the other way
/// round.
fn strangers(directory: &Path) -> Vec<String> {
    let dir = Dir::new(Arc::new(PosixFs::new()), directory);
    let found = manifest::recover(&dir).unwrap().expect("there is a manifest");
    let family = &found.state.families[&lithify_base::CfId(0)];
    let mut needed: BTreeSet<String> =
        ["CURRENT", "IDENTITY", "LOCK", "EVENTS"].map(str::to_owned).into();
    needed.insert(FileName::Manifest(found.manifest).to_string());
    needed.extend(family.files.keys().map(|n| FileName::Table(*n).to_string()));
    let mut there: BTreeSet<String> = dir.list().unwrap().into_iter().map(|e| e.name).collect();
    // The newest options and those before, and logs that are still to be read.
    let options = there.iter().rev().filter(|n| n.starts_with("OPTIONS-")).take(2);
    needed.extend(options.cloned());
    there.retain(|name| match FileName::parse(name) {
        Some(FileName::Wal(n)) => n < family.log_number,
        _ => true,
    });
    // The event log is written when there is something to say.
    there.insert("EVENTS".to_owned());
    there.symmetric_difference(&needed).cloned().collect()
}
