//! kill -9 at random moments over a mixed load, for each policy in one directory that lives
//! through all of it (reliability F1, F4, contract P1, P2, P5).
//!
//! Each round a child process ([`crate::common::child`]) works on the directory with several threads while
//! it notes what it begins and what is acknowledged in a journal beside it. The parent kills it
//! after a random number of notes (or some milliseconds, often while it still opens), opens the
//! directory without any repair, and asks [`crate::common::verdict`] whether what is there may be there. `LITHIFY_KILLS` sets the number of
//! rounds for all policies together (42; more until each has done what only it does),
//! `LITHIFY_SEED` the seed; a failure prints the round.
//!
//! A kill keeps what the operating system was handed, so this says nothing of power loss.
#![allow(
    clippy::disallowed_methods,
    reason = "a real process on real files, watched from the outside"
)]

use std::fs;
use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::common::child::{Order, number_from, recover, settings};
use crate::common::deeds::Deeds;
use crate::common::verdict::{Journal, Note, What, judge};
use crate::common::{Content, load, scan};
use lithify::{Db, Policy};

const SIGKILL: i32 = 9;
/// Beyond these a policy that has not done what only it does never will.
const EXTRA_KILLS: u64 = 60;

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
    let order = Order { directory, journal, policy, round, most: None, fault: None };
    let mut child = order.command(&[]).spawn().unwrap();
    life.wait(journal);
    child.kill().unwrap();
    let status = child.wait().unwrap();
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert_eq!(status.signal(), Some(SIGKILL), "round {round}: the load ended by itself: {said}");
    order.journal()
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
    let kills = number_from("LITHIFY_KILLS", 42).div_ceil(Policy::EVERY.len() as u64 + 1);
    let seed = number_from("LITHIFY_SEED", 1);
    let mut moves = 0;
    for policy in Policy::EVERY {
        print!("{:10} ", policy.name());
        let deeds = survive(seed, kills, |_| policy, |deeds| deeds.of(policy));
        moves += deeds.kinds.get("Move").unwrap_or(&0);
    }
    assert!(moves > 0, "no file ever moved as it was");
    print!("by turns   ");
    // Each finds what another policy left behind.
    survive(seed, kills, |rng| Policy::EVERY[rng.usize(0..Policy::EVERY.len())], |_| Vec::new());
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
