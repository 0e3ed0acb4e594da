//! What the background did, as the event log tells it.

use std::collections::BTreeMap;

use lithify::Policy;

/// Counts of a database's life, or of several.
#[derive(Clone, Debug, Default)]
pub struct Deeds {
    /// Committed jobs by kind.
    pub kinds: BTreeMap<String, u64>,
    /// Committed jobs that had to wait for others.
    pub edges: u64,
    pub splits: u64,
    pub merges: u64,
    /// Jobs that failed.
    pub failed: u64,
    /// Jobs that were stopped while they ran: they followed one that failed, or the close came.
    pub stopped: u64,
}

impl Deeds {
    /// Takes in a whole event log. A line that a crash tore says nothing.
    pub fn note(&mut self, log: &str) {
        for line in log.lines() {
            let _ = self.note_line(line);
        }
    }

    pub fn add(&mut self, other: &Deeds) {
        for (kind, n) in &other.kinds {
            *self.kinds.entry(kind.clone()).or_default() += n;
        }
        self.edges += other.edges;
        self.splits += other.splits;
        self.merges += other.merges;
        self.failed += other.failed;
        self.stopped += other.stopped;
    }

    fn note_line(&mut self, line: &str) -> Option<()> {
        let (_, rest) = line.split_once("\"event\":\"")?;
        let (event, rest) = rest.split_once('"')?;
        match event {
            "committed" => {
                let (_, what) = rest.split_once("\"what\":\"")?;
                let end = what.find([' ', ';', '"'])?;
                *self.kinds.entry(what[..end].to_owned()).or_default() += 1;
                self.edges += u64::from(what.contains(" after=") && !what.contains(" after=none"));
                self.splits += u64::from(what.contains("a bucket was split"));
                self.merges += u64::from(what.contains("a bucket was merged"));
            }
            "job_failed" => self.failed += 1,
            "job_stopped" => self.stopped += 1,
            _ => {}
        }
        Some(())
    }

    fn count(&self, kind: &str) -> u64 {
        self.kinds.get(kind).copied().unwrap_or(0)
    }

    /// How often the policy did what makes it what it is.
    pub fn of(&self, policy: Policy) -> Vec<(&'static str, u64)> {
        let stacked = [
            ("Df", self.count("Df")),
            ("IntraLevel or IntraDf", self.count("IntraLevel") + self.count("IntraDf")),
        ];
        let buckets = ("L0Bucket", self.count("L0Bucket"));
        let mut all = vec![("flush", self.count("flush"))];
        match policy {
            Policy::Leveled | Policy::Hybrid => all.push(("Down", self.count("Down"))),
            Policy::Fifo => {}
            Policy::Tiered | Policy::Universal => all.push(("Tier", self.count("Tier"))),
            Policy::DfLeveled => all.extend(stacked),
            Policy::DfTiered => all.extend([("Tier", self.count("Tier")), ("edge", self.edges)]),
            Policy::Bucket | Policy::Adaptive => all.push(buckets),
            Policy::BucketDf => {
                all.push(buckets);
                all.extend(stacked);
            }
        }
        all
    }

    /// How often buckets changed, for policies that have any.
    pub fn of_buckets(&self, policy: Policy) -> Vec<(&'static str, u64)> {
        match policy {
            Policy::Bucket | Policy::BucketDf => {
                vec![("split", self.splits), ("merge of buckets", self.merges)]
            }
            _ => Vec::new(),
        }
    }
}
