//! `explain`: what limits a database. The tree is explained as it lies, under the settings it was
//! last opened with; if a process has the database open, its event log tells the jobs in flight.
//!
//! Nothing is locked and nothing changes, so this works beside the process that is slow.

use std::path::Path;

use anyhow::Result;
use lithify::{CompactionPri, ErrorKind, Explanation, Policy, Settings, Writes};
use lithify_watch::events::{EventLog, Session};
use lithify_watch::tree::dir_of;
use lithify_watch::watch::{owner, unix_now};
use serde_json::{Value, json};

use crate::open::{DirArg, OperatorArg, stored_to_read};
use crate::output;

const EXAMPLES: &str = "\
Examples:
  lithify explain fruit
  lithify explain fruit --json | jq .blocked
  watch -n 1 lithify explain fruit          while another process writes

What it says, in this order:
  whether writes are held back, or would be, by what, and what would help;
  if a process has the database open: its jobs in flight, how long each has run, and when it will
  end if it goes as fast as those before it; and why the CPU went on in place of another engine;
  each figure that slows or stops writes, with where it stands;
  each level with its need for compaction: from 1.00 on it is due;
  what is due, and what waits for something else.

Figures are of the last commit. Beside a process that writes, what is due is what the files ask for:
that process may have reasons to wait. A program asks its own database for more with `Db::explain`:
memtables that wait for their flush, the progress of each job in percent, the rate to which writes
are slowed, and what is held back as it is not worth its bytes.";

/// How often a database that changes while it is being opened is tried again.
const TRIES: usize = 5;

/// `lithify explain`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Explain {
    #[command(flatten)]
    dir: DirArg,
    #[command(flatten)]
    operator: OperatorArg,
    /// Print a JSON object
    #[arg(long)]
    json: bool,
}

impl Explain {
    pub(crate) fn run(self) -> Result<()> {
        let path = self.dir.dir()?;
        let dir = dir_of(&path)?;
        let mut log = EventLog::default();
        let session = log.catch_up(&dir)?;
        let policy = session.and_then(|s| Policy::from_name(&s.policy));
        let told = explain(&path, &settings(&path, policy), &self.operator)?;
        let owner = owner(&dir);
        // The log is written a little later than things happen: a job that began meanwhile is in it now.
        let session = log.catch_up(&dir)?.filter(|_| owner.is_some());
        let told = match owner {
            Some(_) => told.beside(&session.map(busy).unwrap_or_default()),
            None => told,
        };
        if self.json {
            return as_json(&told, owner, session);
        }
        if let Some(owner) = owner {
            output::line(&live(owner, session))?;
        }
        output::line(told.to_string().trim())
    }
}

/// Files that jobs of the default column family take, which is the one that is explained.
fn busy(session: &Session) -> Vec<u64> {
    let jobs = session.jobs.values().filter(|job| job.family.is_empty());
    jobs.flat_map(|job| job.inputs.iter().copied()).collect()
}

/// The tree as it lies. A process that has the database open may delete a file between our look at
/// the manifest and at the file: the next look finds another manifest.
fn explain(dir: &Path, settings: &Settings, operator: &OperatorArg) -> Result<Explanation> {
    let mut tries = 1;
    loop {
        match operator.builder_of(dir, settings.clone())?.open_read_only(dir) {
            Ok(db) => return Ok(db.explain()),
            Err(e) if tries < TRIES && e.kind() != ErrorKind::NotFound => tries += 1,
            Err(e) => return Err(e.into()),
        }
    }
}

/// The settings that the database was last opened with, under the policy of who has it open.
fn settings(dir: &Path, policy: Option<Policy>) -> Settings {
    let mut settings = stored_to_read(dir);
    settings.policy = policy.or(settings.policy);
    if settings.check().is_err() {
        // The order in which files go down means nothing to another policy.
        settings.compaction_pri = CompactionPri::default();
    }
    settings
}

/// What the log of the process that has the database open says.
pub(crate) fn live(owner: u32, session: Option<&Session>) -> String {
    let mut text = match owner {
        0 => "Another process has the database open".to_owned(),
        n => format!("Process {n} has the database open"),
    };
    let Some(session) = session else {
        return text + "; it writes no event log, so its jobs are not known.\n";
    };
    text += &format!(", with policy {}", session.policy);
    let of = |family: &str| match family {
        "" => String::new(),
        family => format!(" in column family `{family}`"),
    };
    let held = session
        .stalls
        .iter()
        .map(|(family, stall)| format!("{} ({}){}", stall.cause, stall.kind, of(family)));
    text += &match held.collect::<Vec<_>>() {
        held if held.is_empty() => "; its writes are not held back.".to_owned(),
        held => format!("; its writes are held back: {}.", held.join(", ")),
    };
    let now = session.now(unix_now());
    for job in session.jobs.values() {
        let spent = now.saturating_sub(job.began);
        let (in_family, seconds) = (of(&job.family), spent as f64 / 1e6);
        text +=
            &format!("\n  job {}  {}{in_family}, running for {seconds:.1} s", job.job, job.what);
        if let Some(left) = session.left(job, now) {
            text += &match left {
                0 => ", should end any moment".to_owned(),
                left => format!(", about {:.1} s left", left as f64 / 1e6),
            };
        }
    }
    if session.jobs.is_empty() {
        text += "\n  no job is in flight";
    }
    for (engine, (times, why)) in &session.replaced {
        text += &format!(
            "\n  the CPU went on in place of engine {engine} {times} times, at last: {why}"
        );
    }
    text + "\n"
}

/// How writes fare, and the cause: as the files would have it, or as the log of the process says that writes.
fn fare<'a>(
    told: &'a Explanation,
    session: Option<&'a Session>,
) -> (Option<&'static str>, Option<&'a str>) {
    match &told.writes {
        Writes::Slowed { cause, .. } => (Some("slowed"), Some(*cause)),
        Writes::Stopped { cause } => (Some("stopped"), Some(*cause)),
        Writes::Paced { .. } => (Some("paced"), None),
        Writes::Unknown => match session.map(|s| s.stalls.get("")) {
            None => (None, None),
            Some(None) => (Some("free"), None),
            Some(Some(stall)) => {
                let stopped = stall.kind == "stop";
                (Some(if stopped { "stopped" } else { "slowed" }), Some(&stall.cause))
            }
        },
        _ => (Some("free"), None),
    }
}

fn as_json(told: &Explanation, owner: Option<u32>, session: Option<&Session>) -> Result<()> {
    let (writes, cause) = fare(told, session);
    let bounds = told.bounds.iter().map(|b| {
        json!({
            "cause": b.cause, "what": b.what, "now": b.now,
            "slows_at": b.slows_at, "stops_at": b.stops_at,
        })
    });
    let levels = told.levels.iter().map(|l| {
        json!({
            "level": l.level, "depth": l.depth, "files": l.files, "bytes": l.bytes,
            "target_bytes": l.target_bytes, "need": l.need as f64 / 1000.0,
        })
    });
    let wish = |w: &lithify::Wish| json!({ "kind": w.kind, "why": w.why, "because": w.because, "bytes": w.bytes });
    let family = |name: &str| if name.is_empty() { "default" } else { name }.to_owned();
    let live = session.map(|s| {
        let now = s.now(unix_now());
        let jobs = s.jobs.values().map(|job| {
            json!({
                "job": job.job, "family": family(&job.family), "what": job.what,
                "bytes": job.bytes,
                "running_us": now.saturating_sub(job.began), "left_us": s.left(job, now),
            })
        });
        json!({
            "policy": s.policy,
            "stalls": s.stalls.iter().map(|(name, stall)| {
                json!({ "family": family(name), "cause": stall.cause, "kind": stall.kind })
            }).collect::<Vec<Value>>(),
            "jobs": jobs.collect::<Vec<Value>>(),
            "engines_replaced": s.replaced.iter().map(|(engine, (times, why))| {
                json!({ "engine": engine, "times": times, "why": why })
            }).collect::<Vec<Value>>(),
        })
    });
    output::json(&json!({
        "writes": writes,
        "cause": cause,
        "auto_compaction": told.automatic,
        "bounds": bounds.collect::<Vec<Value>>(),
        "levels": levels.collect::<Vec<Value>>(),
        "blocked": told.blocked.iter().map(wish).collect::<Vec<Value>>(),
        "due": told.due.iter().map(wish).collect::<Vec<Value>>(),
        "open_in_process": owner,
        "live": live,
    }))
}
