//! What a run must have reached to count: rare states of the engine, found in its event log, in the
//! log of the disk, and by the client.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use lithify_format::table::metaindex::COMPRESSION_DICT;

use crate::disk::{Entry, Ino};

/// What the runs of the tests must reach: else the policies are not what is being tested. Of engines, each thing
/// that goes wrong has a workload of its own, which must reach it.
pub const REQUIRED: [&str; 30] = [
    "bucket split",
    "buckets merged",
    "commit_failed",
    "committed after older jobs",
    "dictionary",
    "engine: Falsified",
    "engine: Refuses",
    "expired, and dropped",
    "expired, and there",
    "family_created",
    "family_dropped",
    "flush_end",
    "inserted beside others",
    "job_failed",
    "log begun",
    "manifest begun",
    "moved",
    "part_end",
    "read_only",
    "stall_begin",
    "started Df",
    "started Down",
    "started IntraLevel",
    "started L0Bucket",
    "started Manual",
    "started Tier",
    "table deleted",
    "table left out",
    "tables dropped",
    "taken in",
];

/// How often each mark was hit.
#[derive(Clone, Debug, Default)]
pub struct Marks(BTreeMap<String, u64>);

impl Marks {
    /// Notes one.
    pub fn hit(&mut self, mark: &str) {
        *self.0.entry(mark.to_owned()).or_insert(0) += 1;
    }

    /// Takes in what others hit.
    pub fn add(&mut self, others: &Marks) {
        for (mark, count) in &others.0 {
            *self.0.entry(mark.clone()).or_insert(0) += count;
        }
    }

    /// How often this one was hit.
    pub fn count(&self, mark: &str) -> u64 {
        self.0.get(mark).copied().unwrap_or(0)
    }

    /// Those of [`REQUIRED`] that were not hit.
    pub fn missed(&self) -> Vec<&'static str> {
        REQUIRED.into_iter().filter(|mark| self.count(mark) == 0).collect()
    }

    /// Takes in what a log shows.
    pub fn read(&mut self, log: &[Entry]) {
        let (mut events, mut tables): (BTreeSet<Ino>, BTreeSet<Ino>) = Default::default();
        let mut text = Vec::new();
        for entry in log {
            match entry {
                Entry::Create(_, name, ino) if name == "EVENTS" => drop(events.insert(*ino)),
                Entry::Create(_, name, _) if name.ends_with(".log") => self.hit("log begun"),
                Entry::Create(_, name, _) if name.starts_with("MANIFEST") => {
                    self.hit("manifest begun");
                }
                Entry::Create(_, name, ino) if name.ends_with(".sst") => drop(tables.insert(*ino)),
                Entry::Write(ino, _, bytes) if tables.contains(ino) && names_dictionary(bytes) => {
                    self.hit("dictionary");
                }
                Entry::Remove(_, name) if name.ends_with(".sst") => self.hit("table deleted"),
                Entry::Write(ino, _, bytes) if events.contains(ino) => {
                    text.extend_from_slice(bytes);
                }
                _ => {}
            }
        }
        for line in String::from_utf8_lossy(&text).lines() {
            self.event(line);
        }
    }

    fn committed(&mut self, what: &str) {
        self.hit("committed");
        for (words, mark) in
            [("a bucket was split", "bucket split"), ("a bucket was merged", "buckets merged")]
        {
            if what.contains(words) {
                self.hit(mark);
            }
        }
        if what.contains("after=") && !what.contains("after=none") {
            self.hit("committed after older jobs");
        }
        for (kind, mark) in [("Move", "moved"), ("Ingest", "taken in"), ("Drop", "tables dropped")]
        {
            if what.starts_with(kind) {
                self.hit(mark);
            }
        }
    }

    fn event(&mut self, line: &str) {
        let Some(name) = field(line, "event") else { return };
        match (name, field(line, "kind")) {
            ("compaction_start", Some(kind)) => self.hit(&format!("started {kind}")),
            ("opened", _) => {}
            ("committed", _) => self.committed(field(line, "what").unwrap_or_default()),
            (name, _) => self.hit(name),
        }
    }
}

/// Whether what is written to a table ends it and says that it has a dictionary: the names of its parts are
/// near its end.
fn names_dictionary(bytes: &[u8]) -> bool {
    let end = &bytes[bytes.len().saturating_sub(1 << 10)..];
    end.windows(COMPRESSION_DICT.len()).any(|name| name == COMPRESSION_DICT)
}

/// The text value of a field in a line of the event log.
fn field<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = line.split_once(&format!("\"{name}\":\""))?;
    rest.split('"').next()
}

impl fmt::Display for Marks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (mark, count) in &self.0 {
            writeln!(f, "  {mark:<28}{count:>10}")?;
        }
        Ok(())
    }
}
