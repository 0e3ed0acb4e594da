//! System calls of a real process that end it or fail (reliability F1, F5, F6, F7, F8, F9, contract P1 to P3):
//! `strace` kills the child at its n-th write, sync, rename or unlink, or lets that call fail, while
//! the child works on a directory that lives through all of it.
//!
//! The child is [`crate::common::child`], which notes what it begins and how that ended; afterwards the
//! directory is opened without any repair and [`crate::common::verdict`] says whether what is there may be
//! there: everything acknowledged, nothing refused, and one or the other of what is unknown. Calls
//! are counted by thread, so it is the n-th of whichever thread gets there first.
//!
//! `LITHIFY_INJECTIONS` is the number of rounds (30), `LITHIFY_SEED` the seed. Where no process may be
//! traced, the child's own file system wrapper does the same to the same calls; how many rounds went
//! which way is printed. `LITHIFY_TRACED=0` asks for that.
#![allow(
    clippy::disallowed_methods,
    reason = "a real process on real files, watched from the outside"
)]

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::common::Content;
use crate::common::child::{Disturbance, Order, number_from, recover};
use crate::common::verdict::{What, judge};
use lithify::Policy;

/// Operations of each writer in a round.
const OPERATIONS: u32 = 500;

/// A kind of call.
struct Call {
    /// Names for `strace`; which of them there are depends on the machine.
    system: &'static str,
    /// The same in [`lithify_env::Op::name`].
    env: &'static str,
    /// What it may fail with: name and number.
    errors: &'static [(&'static str, i32)],
    /// The n-th call is among the first so many.
    reach: u64,
}

const EIO: (&str, i32) = ("EIO", 5);
const EINTR: (&str, i32) = ("EINTR", 4);
const ENOSPC: (&str, i32) = ("ENOSPC", 28);

const CALLS: [Call; 8] = [
    Call { system: "pwrite64", env: "write_at", errors: &[EIO, ENOSPC, EINTR], reach: 400 },
    Call { system: "fdatasync", env: "sync_data", errors: &[EIO, ENOSPC, EINTR], reach: 20 },
    Call { system: "fsync", env: "sync_dir", errors: &[EIO], reach: 10 },
    Call {
        system: "?rename,?renameat,?renameat2",
        env: "rename",
        errors: &[EIO, ENOSPC],
        reach: 3,
    },
    Call { system: "?unlink,unlinkat", env: "unlink", errors: &[EIO], reach: 12 },
    Call {
        system: "?open,openat",
        env: "create",
        errors: &[("EMFILE", 24), EIO, EINTR],
        reach: 40,
    },
    Call { system: "pread64", env: "read_at", errors: &[EIO, EINTR], reach: 60 },
    Call { system: "ftruncate", env: "set_len", errors: &[EIO], reach: 3 },
];

/// Whether processes may be traced here.
fn may_trace() -> Result<(), String> {
    if number_from("LITHIFY_TRACED", 1) == 0 {
        return Err("LITHIFY_TRACED=0".to_owned());
    }
    let tried = Command::new("strace")
        .args(["-f", "-qq", "-e", "trace=none", "true"])
        .stdin(Stdio::null())
        .output()
        .map_err(|e| format!("strace can't be run: {e}"))?;
    match tried.status.success() {
        true => Ok(()),
        false => Err(String::from_utf8_lossy(&tried.stderr).trim().to_owned()),
    }
}

/// What is done to one call of a round.
#[derive(Clone, Copy)]
struct Injection {
    call: &'static Call,
    nth: u64,
    /// None kills.
    error: Option<(&'static str, i32)>,
}

impl Injection {
    fn any(rng: &mut fastrand::Rng, at: u64) -> Injection {
        // Every call is met, killed and failed alike.
        let call = &CALLS[(at / 2) as usize % CALLS.len()];
        let error = (at % 2 == 1).then(|| call.errors[rng.usize(0..call.errors.len())]);
        // Small numbers as often as large ones.
        let most = rng.u64(1..=call.reach);
        Injection { call, nth: rng.u64(1..=most), error }
    }

    /// `strace` and its arguments, which note in `log` what they did.
    fn tracer(&self, log: &Path) -> Vec<String> {
        let what = match self.error {
            None => "signal=SIGKILL".to_owned(),
            Some((name, _)) => format!("error={name}"),
        };
        let calls = self.call.system;
        let inject = format!("inject={calls}:{what}:when={}", self.nth);
        let trace = format!("trace={calls}");
        let log = log.to_str().expect("scratch directories have plain names");
        ["strace", "-f", "-qq", "-o", log, "-e", &trace, "-e", &inject].map(str::to_owned).into()
    }

    fn fault(&self) -> String {
        let errno = self.error.map(|(_, errno)| errno);
        Disturbance { op: self.call.env, nth: self.nth, errno }.text()
    }

    fn name(&self) -> String {
        let what = self.error.map_or("killed at", |(name, _)| name);
        format!("{what} {} {}", self.call.env, self.nth)
    }
}

/// Runs a child under an injection. Whether the call was met.
fn disturb(order: &Order<'_>, injection: &Injection, tracer: &[String], log: &Path) -> bool {
    let name = injection.name();
    let mut child = order.command(tracer).spawn().unwrap();
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    let status = child.wait().unwrap();
    let log = fs::read_to_string(log).unwrap_or_default();
    let met = match (injection.error, tracer.is_empty()) {
        // An abort is what the wrapper has for a kill.
        (None, true) => !status.success(),
        (None, false) => log.contains("+++ killed by SIGKILL +++"),
        (Some(_), true) => said.is_empty(),
        (Some(_), false) => log.contains("(INJECTED)"),
    };
    if !status.success() && !order.journal.exists() {
        // It met the loader of the process, before there was anything to disturb.
        return false;
    }
    let ended_well = status.success() || injection.error.is_none() && met;
    let lived = format!("{}, round {}", order.policy.name(), order.round);
    assert!(ended_well && !said.contains("panicked"), "{name}, {lived}: {status}: {said}");
    met
}

#[test]
fn system_calls_that_end_the_process_or_fail() {
    let rounds = number_from("LITHIFY_INJECTIONS", 30);
    let seed = number_from("LITHIFY_SEED", 1);
    let traced = may_trace();
    if let Err(why) = &traced {
        println!("no process may be traced here ({why}); the child's own calls are disturbed");
    }
    let mut rng = fastrand::Rng::with_seed(seed);
    let scratch = tempfile::tempdir().unwrap();
    let at = |name: &str| scratch.path().join(name);
    let (directory, journal, log) = (at("db"), at("journal"), at("strace"));
    let mut content = Content::new();
    let (mut kills, mut errors, mut kept) = (0, 0, 0);
    let mut passed_by: BTreeMap<&str, u64> = BTreeMap::new();
    let started = Instant::now();
    for done in 0..rounds {
        let injection = Injection::any(&mut rng, done);
        let policy = Policy::EVERY[rng.usize(0..Policy::EVERY.len())];
        let round = rng.u64(..);
        let tracer = if traced.is_ok() { injection.tracer(&log) } else { Vec::new() };
        let order = Order {
            directory: &directory,
            journal: &journal,
            policy,
            round,
            most: Some(OPERATIONS),
            fault: traced.is_err().then(|| injection.fault()),
        };
        let met = disturb(&order, &injection, &tracer, &log);
        match (met, injection.error) {
            (false, _) => *passed_by.entry(injection.call.env).or_default() += 1,
            (true, None) => kills += 1,
            (true, Some(_)) => errors += 1,
        }
        let notes = order.journal();
        if met && traced.is_ok() && injection.error == Some(EINTR) {
            // No caller hears of an interrupted call.
            let count = |what| notes.notes.iter().filter(|n| n.what == what).count();
            assert_eq!(count(What::Begun), count(What::Acknowledged), "{}", injection.name());
        }
        let found = recover(&directory, policy, round);
        match judge(&content, &notes, &found) {
            Ok(counts) => kept += counts.values().map(|c| c.1).sum::<usize>(),
            Err(what) => {
                let place = scratch.keep();
                let (place, name) = (place.display(), injection.name());
                let policy = policy.name();
                panic!("seed {seed}, round {done}: {name}, {policy}: {what}; see {place}");
            }
        }
        content = found;
    }
    println!(
        "{rounds} rounds, seed {seed}, {}: {kills} kills and {errors} errors met, not met \
         {passed_by:?}; {kept} writes kept, {} keys, {:.1} s",
        if traced.is_ok() { "by strace" } else { "by the wrapper" },
        content.len(),
        started.elapsed().as_secs_f64(),
    );
    assert!(2 * (kills + errors) > rounds, "most injections were not met");
    assert!(kills > 0 && errors > 0 && kept > 0);
}
