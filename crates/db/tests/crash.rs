//! kill -9 at random moments over a mixed load, for each policy in one directory that lives
//! through all of it (reliability F1, contract P1, P2, P5).
//!
//! Each round a child process, which is this test binary again, works on the directory with
//! several threads while it notes what it begins and what is acknowledged in a journal beside it.
//! The parent kills it after a random number of notes (or some milliseconds, often while it still
//! opens), opens the directory without any repair, and asks
//! [`common::verdict`] whether what is there may be there. `LITHIFY_KILLS` sets the number of
//! rounds for all policies together (42; more until each has done what only it does),
//! `LITHIFY_SEED` the seed; a failure prints the round.
//!
//! A kill keeps what the operating system was handed, so this says nothing of power loss.
#![allow(
    clippy::disallowed_methods,
    reason = "a real process on real files, watched from the outside"
)]

mod common;

use std::collections::BTreeSet;
use std::fs::{self, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use common::deeds::Deeds;
use common::verdict::{Journal, Note, What, judge};
use common::{Content, eager, load, scan};
use lithify::{Compression, Db, Policy, Settings};
use lithify_env::PosixFs;
use lithify_format::files::FileName;
use lithify_store::dir::Dir;
use lithify_store::manifest;

const DIRECTORY: &str = "LITHIFY_CRASH_DIRECTORY";
const JOURNAL: &str = "LITHIFY_CRASH_JOURNAL";
const POLICY: &str = "LITHIFY_CRASH_POLICY";
const ROUND: &str = "LITHIFY_CRASH_ROUND";
const WRITERS: u8 = 3;
const SIGKILL: i32 = 9;
/// Beyond these a policy that has not done what only it does never will.
const EXTRA_KILLS: u64 = 60;

fn number_from(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().map_or(default, |text| {
        text.parse().unwrap_or_else(|_| panic!("{name} = `{text}` is not a number"))
    })
}

/// The shape of the database changes from round to round; its content does not depend on it.
fn settings(policy: Policy, round: u64) -> Settings {
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
    s
}

/// The child: works until it is killed. Alone, it does nothing.
#[test]
fn the_load() {
    let Ok(directory) = std::env::var(DIRECTORY) else { return };
    let round = number_from(ROUND, 0);
    let journal = std::env::var(JOURNAL).expect("the parent names a journal");
    let journal = OpenOptions::new().append(true).create(true).open(journal).unwrap();
    let policy = std::env::var(POLICY).ok().and_then(|name| Policy::from_name(&name));
    let policy = policy.expect("the parent names a policy");
    let db = Db::open(directory, settings(policy, round)).unwrap();
    std::thread::scope(|s| {
        for writer in 0..WRITERS {
            let (db, mut journal) = (&db, &journal);
            s.spawn(move || {
                for index in 0.. {
                    let mut note = Note { writer, index, what: What::Begun };
                    // One write(2) to a file opened for appending: atomic, and in order.
                    journal.write_all(&note.encode()).unwrap();
                    if let Err(e) = load::run(db, writer, &load::op(round, writer, index)) {
                        eprintln!("round {round}, writer {writer}, operation {index}: {e}");
                        std::process::abort();
                    }
                    note.what = What::Acknowledged;
                    journal.write_all(&note.encode()).unwrap();
                }
            });
        }
        s.spawn(|| {
            loop {
                // Iterators pin files that compactions would like to delete.
                if let Err(e) = scan(&db) {
                    eprintln!("round {round}: a scan failed: {e}");
                    std::process::abort();
                }
                std::thread::sleep(Duration::from_millis(5));
            }
        });
    });
}

/// How long a child lives: until it has made so many notes, and then some time. A busy machine
/// makes it slower, not idler.
#[derive(Clone, Copy)]
struct Life {
    notes: u64,
    more: Duration,
}

impl Life {
    fn any(rng: &mut fastrand::Rng) -> Life {
        // Some die while they open.
        let notes = if rng.u8(0..4) == 0 { 0 } else { rng.u64(0..3000) };
        Life { notes, more: Duration::from_micros(rng.u64(0..40_000)) }
    }
    fn wait(self, journal: &Path) {
        let begin = Instant::now();
        let noted = || fs::metadata(journal).map_or(0, |m| m.len()) / Note::LEN as u64;
        while noted() < self.notes && begin.elapsed() < Duration::from_secs(10) {
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::sleep(self.more);
    }
}

/// Runs the child for `life` and kills it.
fn live_and_die(
    directory: &Path,
    journal: &Path,
    policy: Policy,
    round: u64,
    life: Life,
) -> Journal {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "the_load", "--nocapture", "--test-threads=1"])
        .env(DIRECTORY, directory)
        .env(JOURNAL, journal)
        .env(POLICY, policy.name())
        .env(ROUND, round.to_string())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    life.wait(journal);
    child.kill().unwrap();
    let status = child.wait().unwrap();
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert_eq!(status.signal(), Some(SIGKILL), "round {round}: the load ended by itself: {said}");
    let bytes = fs::read(journal).unwrap_or_default();
    // Beside the database and not part of it.
    let _ = fs::remove_file(journal);
    Journal { round, notes: bytes.chunks(Note::LEN).map(Note::decode).collect() }
}

/// Opens what was left and reads it, twice: the second open must find what the first one did.
fn recover(directory: &Path, policy: Policy, round: u64) -> Content {
    let mut settings = settings(policy, round);
    settings.auto_compaction = false;
    let [first, second] = ["first", "second"].map(|which| {
        let db = Db::open(directory, settings.clone())
            .unwrap_or_else(|e| panic!("round {round}: the {which} open failed: {e}"));
        let files = strangers(directory);
        assert!(files.is_empty(), "round {round}: files nobody needs after the open: {files:?}");
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
    let dir = Dir::new(std::sync::Arc::new(PosixFs::new()), directory);
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

/// One directory, until `kills` are over and what is `wanted` has happened in it.
fn survive(
    seed: u64,
    kills: u64,
    policy: impl Fn(&mut fastrand::Rng) -> Policy,
    wanted: impl Fn(&Deeds) -> Vec<(&'static str, u64)>,
) -> Deeds {
    let mut rng = fastrand::Rng::with_seed(seed);
    let scratch = tempfile::tempdir().unwrap();
    let (directory, journal) = (scratch.path().join("db"), scratch.path().join("journal"));
    let mut content = Content::new();
    let (mut begun, mut kept, mut done, started) = (0, 0, 0, Instant::now());
    let deeds = loop {
        let (policy, round) = (policy(&mut rng), rng.u64(..));
        let life = Life::any(&mut rng);
        let notes = live_and_die(&directory, &journal, policy, round, life);
        let found = recover(&directory, policy, round);
        match judge(&content, &notes, &found) {
            Ok(counts) => {
                begun += counts.values().map(|c| c.0).sum::<usize>();
                kept += counts.values().map(|c| c.1).sum::<usize>();
            }
            Err(what) => {
                let kept = scratch.keep();
                let name = policy.name();
                let kept = kept.display();
                panic!("seed {seed}, kill {done}, {name} (round {round}): {what}; see {kept}");
            }
        }
        content = found;
        done += 1;
        let mut deeds = Deeds::default();
        deeds.note(&String::from_utf8_lossy(
            &fs::read(directory.join("EVENTS")).unwrap_or_default(),
        ));
        let mut missing = wanted(&deeds);
        missing.retain(|m| m.1 == 0);
        if done >= kills && missing.is_empty() {
            break deeds;
        }
        assert!(done < kills + EXTRA_KILLS, "never seen: {missing:?} in {deeds:?}");
    };
    println!(
        "{done} kills, seed {seed}: {begun} writes begun, {kept} kept, {} keys, {:.1} s; {} after \
         others, {} split, {} merged, {:?}",
        content.len(),
        started.elapsed().as_secs_f64(),
        deeds.edges,
        deeds.splits,
        deeds.merges,
        deeds.kinds
    );
    assert!(kept > 50 * done as usize, "the load hardly wrote anything: {kept}");
    deeds
}

#[test]
fn acknowledged_writes_survive_kill_9() {
    let kills = number_from("LITHIFY_KILLS", 42).div_ceil(Policy::ALL.len() as u64 + 1);
    let seed = number_from("LITHIFY_SEED", 1);
    let mut moves = 0;
    for policy in Policy::ALL {
        print!("{:10} ", policy.name());
        let deeds = survive(seed, kills, |_| policy, |deeds| deeds.of(policy));
        moves += deeds.kinds.get("Move").unwrap_or(&0);
    }
    assert!(moves > 0, "no file ever moved as it was");
    print!("by turns   ");
    // Each finds what another policy left behind.
    survive(seed, kills, |rng| Policy::ALL[rng.usize(0..Policy::ALL.len())], |_| Vec::new());
}

/// The judge must be able to find fault: the same round with one surviving write taken away, put
/// back to its old value, or invented, is refused.
#[test]
fn the_judge_finds_fault() {
    let scratch = tempfile::tempdir().unwrap();
    let round = 7;
    let db = Db::open(scratch.path(), settings(Policy::Hybrid, round)).unwrap();
    let mut notes = Vec::new();
    for index in 0..400 {
        notes.push(Note { writer: 0, index, what: What::Begun });
        load::run(&db, 0, &load::op(round, 0, index)).unwrap();
        notes.push(Note { writer: 0, index, what: What::Acknowledged });
    }
    db.flush().unwrap();
    let found = scan(&db).unwrap();
    let journal = Journal { round, notes };
    let before = Content::new();
    judge(&before, &journal, &found).unwrap();
    let durable = |key: &Vec<u8>| {
        // Its last change was acknowledged at Os or better: it can't be missing.
        let last = (0..400).rev().map(|i| load::op(round, 0, i)).find(|op| match op {
            load::Op::Write { changes, .. } => changes.iter().any(|(k, _)| k == key),
            load::Op::DeleteRange { from, to, .. } => from <= key && key < to,
            _ => false,
        });
        last.is_some_and(|op| op.keeps_on_kill())
    };
    let victim = found.keys().find(|k| durable(k)).unwrap().clone();
    let mut worse = found.clone();
    worse.remove(&victim);
    judge(&before, &journal, &worse).unwrap_err();
    worse.insert(victim.clone(), b"wrong".to_vec());
    judge(&before, &journal, &worse).unwrap_err();
    worse.insert(victim.clone(), found[&victim].clone());
    worse.insert(b"stranger".to_vec(), b"x".to_vec());
    judge(&before, &journal, &worse).unwrap_err();
}
