//! What the page asks for, as JSON.

use std::time::Duration;

use lithify_base::shown_path;
use serde_json::{Value, json};

use crate::events::Session;
use crate::history::Sample;
use crate::tree::{Drawn, SCALE};
use crate::watch::Watch;

/// Stalls that are told, the latest first.
const STALLS_TOLD: usize = 12;

impl Watch {
    /// The state at the last look, and the history since `after`; `trouble` is why the newest look failed.
    pub fn state(&self, after: Duration, trouble: Option<&str>) -> Value {
        let session = self.last.session.as_ref();
        let busy = session.map(Session::busy).unwrap_or_default();
        let (logs, tables, span) = (self.growth().logs(), self.tables(), self.growth().span());
        let rate = self.growth().added().map(|n| n as f64 / span.as_secs_f64().max(1e-3));
        let drawn = self.drawn();
        json!({
            "dir": shown_path(self.path()).to_string(),
            "trouble": trouble,
            "at_ms": millis(self.last.at),
            "owner": self.last.owner,
            "session": session.map(|session| told(session, self.last.now)),
            "logs": { "files": logs.files, "bytes": logs.bytes, "rate": rate[0] },
            "tables": { "files": tables.files, "bytes": tables.bytes, "rate": rate[1] },
            "amplification": {
                "write": self.write_amplification(),
                "read": drawn.iter().map(|tree| tree.reads).max(),
                "space": drawn.iter().map(|tree| tree.space as f64 / 100.0).reduce(f64::max),
            },
            "scale": SCALE,
            "families": self.families(),
            "trees": drawn.iter().map(|tree| bars(tree, &busy)).collect::<Vec<Value>>(),
            "history": self.since(after).iter().map(sample).collect::<Vec<Value>>(),
        })
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

fn sample(s: &Sample) -> Value {
    json!([
        millis(s.at),
        millis(s.span),
        s.grown[0],
        s.grown[1],
        s.held[0],
        s.held[1],
        s.l0,
        s.jobs,
        s.disk
    ])
}

fn told(session: &Session, now: u64) -> Value {
    let jobs = session.jobs.values().map(|job| {
        json!({
            "job": job.job, "family": job.family, "what": job.what, "bytes": job.bytes,
            "running_us": now.saturating_sub(job.began), "left_us": session.left(job, now),
        })
    });
    let stalls = session.stalls.iter().map(|(family, stall)| {
        json!({
            "family": family, "cause": stall.cause, "kind": stall.kind,
            "us": now.saturating_sub(stall.began),
        })
    });
    let past = session.past.iter().rev().take(STALLS_TOLD).map(|past| {
        json!({
            "cause": past.stall.cause, "kind": past.stall.kind, "us": past.micros,
            "ago_us": now.saturating_sub(past.stall.began.saturating_add(past.micros)),
        })
    });
    let causes = session
        .stalled
        .iter()
        .map(|(cause, (times, micros))| json!({ "cause": cause, "times": times, "us": micros }));
    json!({
        "policy": session.policy,
        "jobs": jobs.collect::<Vec<Value>>(),
        "stalls": stalls.collect::<Vec<Value>>(),
        "past": past.collect::<Vec<Value>>(),
        "causes": causes.collect::<Vec<Value>>(),
        "flushes": session.flushes.jobs,
        "compactions": session.compactions.jobs,
        "failed": { "times": session.failed.0, "why": session.failed.1 },
        "replaced": session.replaced.iter().map(|(engine, (times, why))| {
            json!({ "engine": engine, "times": times, "why": why })
        }).collect::<Vec<Value>>(),
    })
}

/// A tree; of a bar where it is, its bytes, how many files it is, the newest of them, and whether a job has one.
fn bars(tree: &Drawn, busy: &[u64]) -> Value {
    let runs = tree.runs.iter().map(|run| {
        let bars = run.bars.iter().map(|bar| {
            let is_busy = bar.files.iter().any(|file| busy.binary_search(file).is_ok());
            let newest = bar.files.iter().max();
            json!([bar.span[0], bar.span[1], bar.bytes, bar.files.len(), newest, u8::from(is_busy)])
        });
        json!({
            "level": run.level, "stratum": run.stratum, "files": run.files, "bytes": run.bytes,
            "bars": bars.collect::<Vec<Value>>(),
        })
    });
    json!({
        "family": tree.family, "first": tree.ends[0], "last": tree.ends[1],
        "runs": runs.collect::<Vec<Value>>(),
    })
}
