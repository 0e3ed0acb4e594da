//! Wishes ([`Candidate`]) and accepted jobs ([`JobSpec`]): which files are merged or moved, where the
//! output goes, how urgent it is, and why it is wanted ([`Reason`], the `why:` line of a picture).
//!
//! A spec is fixed when it is made: inputs, output position, hull and after-edges never change,
//! whatever engine runs the job and however often it is tried.

use std::fmt;
use std::sync::Arc;

use lithify_base::{FileId, JobId, Key, KeyRange, Level, Pos};
use lithify_lsm::picture::readable;
use lithify_lsm::{FileRef, Version};

use crate::nouns::options::PlanOptions;
use crate::nouns::score::Score;

/// Why a job exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// The L0 files of one bucket go to the base level.
    L0Bucket,
    /// A level over its target gives files to the next one, merging with what lies there.
    Down,
    /// The same, stacked on top of a next level that is locked (DownForce).
    Df,
    /// Extra runs above a locked base are merged among themselves.
    IntraDf,
    /// Extra runs and their base are merged into one run.
    IntraLevel,
    /// L0 runs are merged among themselves because their way down is blocked, or not worth its bytes.
    IntraL0,
    /// Several runs of one level become one run of the next (tiering).
    Tier,
    /// Files change their level without being rewritten.
    Move,
    /// Files leave the tree, and what is in them is gone: the oldest (`fifo`), or those of a range.
    Drop,
    /// Rewrites that time, settings or a lack of room ask for: TTL, periodic, marked files, what frees
    /// most for the least.
    Upkeep,
    /// A user asked for it.
    Manual,
    /// Files from outside are taken in as they are; the job has no inputs.
    Ingest,
}

impl Kind {
    /// True if it changes which files are where, and no file: nothing is read or written but the
    /// manifest.
    pub const fn is_instant(self) -> bool {
        matches!(self, Kind::Move | Kind::Drop)
    }
}

/// How urgent a job is next to others that wait for a thread. Larger is sooner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Prio {
    /// No caller waits for it.
    Low,
    /// It merges extra runs into their base: reads profit, later.
    Settle,
    /// It takes a bucket of L0 down before writers feel it.
    Early,
    /// It keeps a level at its target.
    Normal,
    /// Reads look at as many runs as they may.
    Depth,
    /// Writers will soon wait for it.
    High,
}

/// What a job will cost, estimated from its inputs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Bytes read. 0 for a move or a drop.
    pub read: u64,
    /// Bytes written, if nothing is dropped. 0 for a move or a drop.
    pub write: u64,
    /// Point entries that go through the merge.
    pub entries: u64,
}

/// The cost of a job over these inputs.
pub(crate) fn cost(kind: Kind, inputs: &[FileRef]) -> Cost {
    if kind.is_instant() {
        return Cost::default();
    }
    let bytes = inputs.iter().map(|f| f.bytes).sum();
    Cost { read: bytes, write: bytes, entries: inputs.iter().map(|f| f.entries).sum() }
}

/// Where a job's output may or must be cut into files. A file never ends inside the versions of
/// one user key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CutPolicy {
    /// A file is closed when it has this many bytes.
    pub target_bytes: u64,
    /// A file with at least this many bytes is closed before a soft split key.
    pub soft_min_bytes: u64,
    /// First keys of the files below the output level, increasing. A file that ends there
    /// overlaps fewer of them when it is compacted itself.
    pub soft: Vec<Key>,
    /// Keys at which a file must begin, increasing: between two of them lie as many bytes below
    /// the output level as one later compaction may take.
    pub hard: Vec<Key>,
    /// Parts, side by side in key order, that the job may be merged in: 0 or 1 for as a whole. Each
    /// begins a file.
    pub parts: u32,
}

/// Why a planner wants a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// L0 has as many idle runs as its trigger.
    L0Runs {
        /// Idle runs.
        runs: u32,
        /// The trigger.
        trigger: u32,
    },
    /// L0 has few runs but many bytes.
    L0Bytes {
        /// Its bytes that no job takes.
        bytes: u64,
        /// From how many on it goes down.
        limit: u64,
    },
    /// L0 is in so many files that it goes down whatever else it is.
    L0Files {
        /// How many.
        files: usize,
    },
    /// A level is over its target.
    LevelBytes {
        /// The level.
        level: Level,
        /// Its score.
        score: Score,
    },
    /// A level above the dynamic base level still holds data.
    Drain {
        /// The level.
        level: Level,
    },
    /// L0 cannot go down now, so its runs are merged in place.
    L0Blocked {
        /// Runs in L0.
        runs: u32,
        /// The job that blocks, if it is one job.
        by: Option<JobId>,
    },
    /// So many runs of L0 cover a key that they are merged in place, as going down is not worth its bytes yet.
    L0Deep {
        /// Runs over the key.
        runs: u32,
        /// From how many on that is done.
        limit: u32,
    },
    /// L0 is so small next to the base level that merging it down would mostly rewrite the base.
    L0Small,
    /// A user asked to settle a range.
    Manual {
        /// Where the range ends up.
        target: Level,
    },
    /// So many runs cover one key that it is time to take them to the next level (tiering).
    Runs {
        /// The level.
        level: Level,
        /// Idle runs over the key.
        runs: u32,
        /// The trigger.
        trigger: u32,
    },
    /// L0 runs over the keys of one bucket reach the trigger.
    Bucket {
        /// Idle runs over the worst key.
        runs: u32,
        /// The trigger.
        trigger: u32,
    },
    /// L0 runs over the keys of one bucket have their share of the base level's target in bytes.
    BucketBytes {
        /// Their bytes.
        bytes: u64,
        /// The share.
        limit: u64,
    },
    /// A level is over target and its way down is locked, so its data is stacked on top of what
    /// will leave the next level.
    Stacked {
        /// The level it comes from.
        level: Level,
        /// Its need.
        need: Score,
    },
    /// Extra runs of a level are merged among themselves or into their base.
    Extras {
        /// The level.
        level: Level,
        /// Runs over the worst key of the range.
        depth: u32,
    },
    /// The runs above the oldest take too much space next to it.
    SizeAmp {
        /// Their bytes in percent of its bytes.
        percent: u64,
        /// The limit.
        limit: u32,
    },
    /// Neighbours in age are of similar size, so merging them costs each byte little.
    SimilarRuns {
        /// How many.
        runs: u32,
    },
    /// A read looks at too many runs (universal).
    ManyRuns {
        /// Runs of the tree that are not at work.
        runs: u32,
        /// The trigger.
        trigger: u32,
    },
    /// Data above the bottom is older than its time to live.
    Old {
        /// That time.
        seconds: u64,
    },
    /// The file was marked when it was made, as it has many deletions.
    Marked,
    /// Every file is rewritten after a time.
    Periodic {
        /// That time.
        seconds: u64,
    },
    /// The files are older than data is kept (fifo).
    Expired {
        /// How long it is kept.
        seconds: u64,
    },
    /// All files together are larger than they may be (fifo).
    TooLarge {
        /// Their bytes.
        bytes: u64,
        /// The limit.
        limit: u64,
    },
    /// The disk, or the budget, is short of room, and nothing else fits.
    ShortOfRoom {
        /// Bytes that tables may still take.
        left: u64,
    },
    /// Said in words, by tests and by policies with a story of their own.
    Said(String),
}

/// Where a candidate's output goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Out {
    /// To exactly this position.
    At(Pos),
    /// On top of everything that is present or promised over the hull at this level.
    OnTop(Level),
}

/// A wish: unchecked. The rule of admission (`rule::relation`) says whether it may become a job.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// Why the job would exist.
    pub kind: Kind,
    /// Its inputs, in any order.
    pub inputs: Vec<FileRef>,
    /// Its output position.
    pub out: Out,
    /// How urgent it is.
    pub prio: Prio,
    /// What made the policy want it.
    pub reason: Reason,
}

impl Candidate {
    /// A merge of `inputs` into `out`.
    pub fn merge(kind: Kind, inputs: Vec<FileRef>, out: Pos, reason: Reason) -> Candidate {
        Candidate { kind, inputs, out: Out::At(out), prio: Prio::Normal, reason }
    }
    /// A merge of `inputs` that becomes the newest run of `level` over its hull.
    pub fn stack(kind: Kind, inputs: Vec<FileRef>, level: Level, reason: Reason) -> Candidate {
        Candidate { kind, inputs, out: Out::OnTop(level), prio: Prio::Normal, reason }
    }
    /// The same, but a move that would leave a file in a directory of another level is a merge: only so
    /// does it get where it belongs.
    pub(crate) fn where_it_belongs(mut self, options: &PlanOptions) -> Candidate {
        let level = match self.out {
            Out::At(pos) => pos.level,
            Out::OnTop(level) => level,
        };
        let stay = |f: &FileRef| options.may_stay(f.place, level);
        if self.kind == Kind::Move && !self.inputs.iter().all(stay) {
            let down = self.inputs.iter().any(|f| f.pos.level != level);
            self.kind = if down { Kind::Down } else { Kind::IntraLevel };
        }
        self
    }
    /// The same at another priority.
    pub fn at_prio(self, prio: Prio) -> Candidate {
        Candidate { prio, ..self }
    }
}

/// An accepted job.
#[derive(Clone, Debug, PartialEq)]
pub struct JobSpec {
    /// Why it exists.
    pub kind: Kind,
    /// Its inputs, newest position first, each position in key order. Locked while it is in flight.
    pub inputs: Vec<FileId>,
    /// Its output position, promised to it while it is in flight.
    pub out: Pos,
    /// Range of all inputs. No other job in flight puts files at `out` inside it.
    pub hull: KeyRange,
    /// Where to cut the output.
    pub cuts: CutPolicy,
    /// Jobs that must commit first (A1, A2). If one of them fails, so does this one.
    pub after: Vec<JobId>,
    /// How urgent it is.
    pub prio: Prio,
    /// What it will cost.
    pub est: Cost,
    /// Why it was wanted.
    pub reason: Reason,
}

/// How far a job is. A planner cares only that it is in flight; pictures show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobState {
    /// It is being built, or about to be.
    Running,
    /// Built, and waiting for its after-edges without holding a thread.
    WaitDeps,
    /// Its edit is being written.
    Committing,
}

/// A job whose locks are held.
#[derive(Clone, Debug)]
pub struct InFlight {
    /// Its number. After-edges always point to smaller ones.
    pub id: JobId,
    /// What it does.
    pub spec: Arc<JobSpec>,
    /// How far it is.
    pub state: JobState,
}

impl JobSpec {
    /// The form of the pictures: `Down L1.0[a..m] L2.0[a..f] -> L2.0  hull=[a..m] after=1,2`, with
    /// ` parts=4` at the end where the job may be merged in parts.
    pub fn describe(&self, version: &Version) -> String {
        let mut s = format!("{:?}", self.kind);
        for &id in &self.inputs {
            match version.file(id) {
                Some(f) => s += &format!(" {}{}", f.pos, Bounds(&f.range)),
                None => s += &format!(" #{id}"),
            }
        }
        s += &format!(" -> {}  hull={} after=", self.out, Bounds(&self.hull));
        match self.after.is_empty() {
            true => s += "none",
            false => {
                let after: Vec<String> = self.after.iter().map(JobId::to_string).collect();
                s += &after.join(",");
            }
        }
        match self.cuts.parts {
            0 | 1 => s,
            parts => format!("{s} parts={parts}"),
        }
    }
}

/// A range as `[lo..hi]` or `[lo..hi)`.
pub struct Bounds<'a>(pub &'a KeyRange);

impl fmt::Display for Bounds<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let close = if self.0.hi.inclusive { ']' } else { ')' };
        let (lo, hi) = (self.0.lo.escape_ascii(), self.0.hi.key.escape_ascii());
        write!(f, "[{lo}..{hi}{close}")
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::L0Runs { runs, trigger } => write!(f, "L0 has {runs} runs, trigger {trigger}"),
            Reason::L0Bytes { bytes, limit } => {
                write!(f, "L0 has {}, trigger {}", readable(*bytes), readable(*limit))
            }
            Reason::L0Files { files } => write!(f, "L0 has {files} files"),
            Reason::LevelBytes { level, score } => {
                write!(f, "L{level} is over target, score {score}")
            }
            Reason::Drain { level } => write!(f, "L{level} lies above the base level"),
            Reason::L0Blocked { runs, by: Some(job) } => {
                write!(f, "L0 has {runs} runs and waits for job {job}")
            }
            Reason::L0Blocked { runs, by: None } => {
                write!(f, "L0 has {runs} runs and cannot go down")
            }
            Reason::L0Deep { runs, limit } => write!(
                f,
                "L0 has {runs} runs over a key, and going down is not worth its bytes yet: from {limit} runs on they \
                 are merged in place"
            ),
            Reason::L0Small => f.write_str("L0 is small next to the base level"),
            Reason::Runs { level, runs, trigger } => {
                write!(f, "L{level} has {runs} runs over a key, trigger {trigger}")
            }
            Reason::Bucket { runs, trigger } => {
                write!(f, "a range of keys has {runs} runs in L0, trigger {trigger}")
            }
            Reason::BucketBytes { bytes, limit } => {
                let (bytes, limit) = (readable(*bytes), readable(*limit));
                write!(f, "a range of keys has {bytes} in L0, trigger {limit}")
            }
            Reason::Stacked { level, need } => {
                write!(f, "L{level} is over target and its way is locked, need {need}")
            }
            Reason::Extras { level, depth } => write!(f, "L{level} has {depth} runs over a key"),
            Reason::Manual { target } => write!(f, "asked for, target L{target}"),
            Reason::SizeAmp { percent, limit } => {
                write!(f, "newer runs have {percent}% of the oldest one's bytes, limit {limit}%")
            }
            Reason::SimilarRuns { runs } => write!(f, "{runs} runs are of similar size"),
            Reason::ManyRuns { runs, trigger } => {
                write!(f, "the tree has {runs} runs, trigger {trigger}")
            }
            Reason::Old { seconds } => write!(f, "data of {seconds} s ago goes to the bottom"),
            Reason::Marked => f.write_str("the file has many deletions"),
            Reason::Periodic { seconds } => write!(f, "files are rewritten after {seconds} s"),
            Reason::Expired { seconds } => write!(f, "data is kept for {seconds} s"),
            Reason::TooLarge { bytes, limit } => {
                write!(f, "the files have {bytes} bytes, limit {limit}")
            }
            Reason::ShortOfRoom { left } => {
                write!(f, "there is room for {left} bytes, and nothing else fits")
            }
            Reason::Said(text) => f.write_str(text),
        }
    }
}
