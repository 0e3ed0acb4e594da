//! What is seen from outside, in the text form that Prometheus reads.
//!
//! Keeps: with one column family a name that `Stats::prometheus` has, too, means the same here, but for two. Write
//! amplification is per byte that was flushed, as what users wrote is not seen; the last sequence number is the
//! manifest's, which those of writes that are in no table yet are beyond. With several families these figures are of all
//! of them, and those of levels of the first [`TREES_MAX`](crate::tree::TREES_MAX). Counters count since the database was
//! opened where the event log knows them, or since the first line that is left of a log that was begun anew twice before
//! the first look; and since the first look where sizes of files are what is known.

use std::fmt::Display;

use lithify_reports::prometheus::Text;

use crate::events::{Done, Session};
use crate::tree::Drawn;
use crate::watch::Watch;

/// The family of a metric, its kind and what it says, and the figure of a session.
type Counter = (&'static str, &'static str, fn(&Session) -> u64);

const COUNTERS: [Counter; 5] = [
    ("flushes_total", "Flushes that ended", |s| s.flushes.jobs),
    ("flush_bytes_total", "Bytes that flushes wrote", |s| s.flushes.written),
    ("compactions_total", "Compactions that ended", |s| s.compactions.jobs),
    ("compaction_write_bytes_total", "Bytes that compactions wrote", |s| s.compactions.written),
    ("failed_jobs_total", "Jobs that failed", |s| s.failed.0),
];

impl Watch {
    /// All figures as Prometheus reads them; `is_seen` says whether the newest look went well.
    pub fn prometheus(&self, is_seen: bool) -> String {
        let mut text = Text::default();
        text.gauge("seen", "1 if the newest look at the database went well", u8::from(is_seen));
        text.gauge("open", "1 if a program has it open", u8::from(self.last.owner.is_some()));
        let (logs, tables, grown) = (self.growth().logs(), self.tables(), self.growth().total());
        for (name, help, value) in [
            ("log_files", "Logs", logs.files),
            ("log_bytes", "Logs on disk", logs.bytes),
            ("table_files", "Tables", tables.files),
            ("disk_bytes", "Tables on disk", tables.bytes),
            (
                "last_sequence",
                "The last sequence number that the manifest has",
                self.last_sequence(),
            ),
        ] {
            text.gauge(name, help, value);
        }
        for (name, help, value) in [
            ("log_grown_bytes_total", "Bytes that logs grew by since the first look", grown[0]),
            ("table_grown_bytes_total", "Bytes that tables grew by since the first look", grown[1]),
        ] {
            text.head(name, "counter", help);
            text.sample(name, &[], value);
        }
        if let Some(amplification) = self.write_amplification() {
            let help = "Bytes written to tables for each byte that came in";
            text.gauge("write_amplification", help, amplification);
        }
        if let Some(session) = &self.last.session {
            of_session(session, self.last.held, &mut text);
        }
        of_trees(self.drawn(), &mut text);
        text.into_string()
    }
}

fn of_session(session: &Session, held: [u64; 2], text: &mut Text) {
    text.gauge("running_jobs", "Flushes and compactions at work", session.jobs.len());
    for (name, help, figure) in COUNTERS {
        text.head(name, "counter", help);
        text.sample(name, &[], figure(session));
    }
    let seconds = |done: Done| done.micros as f64 / 1e6;
    for (name, help, value) in [
        ("flush_seconds_total", "Time of flushes that ended", seconds(session.flushes)),
        (
            "compaction_seconds_total",
            "Time of compactions that ended",
            seconds(session.compactions),
        ),
    ] {
        text.head(name, "counter", help);
        text.sample(name, &[], value);
    }
    text.head("held_back_seconds_total", "counter", "Time that writes were held back, by how");
    for (kind, micros) in ["stop", "delay"].iter().zip(held) {
        text.sample("held_back_seconds_total", &[("kind", kind)], micros as f64 / 1e6);
    }
    text.head("stalls_total", "counter", "Stalls that ended, by cause");
    for (cause, (times, _)) in &session.stalled {
        text.sample("stalls_total", &[("cause", cause)], times);
    }
    text.head("stalled", "gauge", "1 for what holds writes of a family back now");
    for (family, stall) in &session.stalls {
        let family = if family.is_empty() { "default" } else { family };
        let labels: [(&str, &dyn Display); 3] =
            [("family", &family), ("cause", &stall.cause), ("kind", &stall.kind)];
        text.sample("stalled", &labels, 1);
    }
}

fn of_trees(trees: &[Drawn], text: &mut Text) {
    for (name, help) in [
        ("level_runs", "Runs of a level"),
        ("level_files", "Files of a level"),
        ("level_bytes", "Bytes of a level on disk"),
    ] {
        text.head(name, "gauge", help);
        for tree in trees {
            for level in 0..=u8::MAX {
                let mut runs = tree.runs.iter().filter(|run| run.level == level).peekable();
                if runs.peek().is_none() {
                    continue;
                }
                let value = match name {
                    "level_runs" => runs.count() as u64,
                    "level_files" => runs.map(|run| run.files as u64).sum(),
                    _ => runs.map(|run| run.bytes).sum(),
                };
                text.sample(name, &[("family", &tree.family), ("level", &level)], value);
            }
        }
    }
    text.head("read_amplification", "gauge", "Most tables that a read of one key looks into");
    for tree in trees {
        text.sample("read_amplification", &[("family", &tree.family)], tree.reads);
    }
    text.head("space_amplification", "gauge", "Bytes on disk for each byte of the deepest level");
    for tree in trees {
        text.sample("space_amplification", &[("family", &tree.family)], tree.space as f64 / 100.0);
    }
}
