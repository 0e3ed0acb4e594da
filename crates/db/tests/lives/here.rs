//! A directory's life on our side: random writes under a policy, snapshots, and compactions of every
//! kind, each step compared with the twin.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use fastrand::Rng;
use lithify::merge::built_in;
use lithify::verify::verify;
use lithify::{
    Builder, ColumnFamily, ColumnFamilyOptions, Compression, Db, Policy, ReverseBytewise, Settings,
    Snapshot,
};
use lithify_env::{Env, FsRef, PosixFs};

use super::small::eager;
use super::twin::{Family, State, Twin};

/// Policies under which jobs work on the same keys at once.
pub const PARALLEL: [Policy; 4] =
    [Policy::Bucket, Policy::BucketDf, Policy::DfLeveled, Policy::DfTiered];

/// The policy of a life. Of fifteen in a row, ten have a parallel one and five each of the others.
pub fn policy(seed: u64) -> Policy {
    const OTHERS: [Policy; 5] =
        [Policy::Leveled, Policy::Hybrid, Policy::Universal, Policy::Tiered, Policy::Fifo];
    let at = (seed % 15) as usize;
    if at % 3 == 2 { OTHERS[at / 3] } else { PARALLEL[(at - at / 3) % 4] }
}

/// Small settings by dice under which all that a policy can do is due at once.
pub fn settings(policy: Policy, zstd: bool, rng: &mut Rng) -> Settings {
    let mut s: Settings = eager(policy, rng);
    s.compaction_threads = rng.u32(2..5);
    s.max_subcompactions = [1, 1, 3][rng.usize(0..3)];
    s.flush_threads = rng.u32(1..3);
    s.memory_budget = 4 << 20;
    s.file_bytes = 16 << 10;
    s.level_base_bytes = 64 << 10;
    s.level_multiplier = rng.u32(2..5);
    s.l0_trigger = rng.u32(1..5);
    // A step waits for what it asked for; no write has to.
    (s.l0_slowdown, s.l0_stop) = (100_000, 100_000);
    s.dynamic_levels = rng.bool();
    s.format_version = rng.u32(5..7);
    s.bloom_bits = [0, 10][rng.usize(0..2)];
    s.partition_bytes = [None, Some(0), Some(1 << 10)][rng.usize(0..3)];
    s.fifo_allow_compaction = rng.bool();
    s.event_log = false;
    for codec in [&mut s.compression_upper, &mut s.compression_lower] {
        *codec = match rng.u8(0..12) {
            0 => Compression::Zlib(6),
            1 => Compression::Bzip2,
            2 if zstd => Compression::Zstd(1),
            3..6 => Compression::Snappy,
            6..9 => Compression::Lz4,
            _ => Compression::None,
        };
    }
    s
}

/// What opens a directory of these families.
pub fn builder(settings: Settings, families: &[Family], env: Option<Env>) -> Builder {
    let mut builder = Builder::new(settings);
    for family in families {
        let operator = family.operator.map(|name| built_in(name).expect("it is built in"));
        if family.name == "default" {
            if family.reverse {
                builder = builder.comparator(Arc::new(ReverseBytewise));
            }
            builder = operator.into_iter().fold(builder, Builder::merge_operator);
            continue;
        }
        let mut options = ColumnFamilyOptions::new();
        if family.reverse {
            options = options.comparator(Arc::new(ReverseBytewise));
        }
        options = operator.into_iter().fold(options, ColumnFamilyOptions::merge_operator);
        builder = builder.column_family(&family.name, options);
    }
    env.into_iter().fold(builder, Builder::env)
}

/// A directory that lives on here.
pub struct Here {
    path: PathBuf,
    zstd: bool,
    policy: Policy,
    env: Option<Env>,
    pub(super) rng: Rng,
    pub(super) open: Option<Open>,
    /// What was done, to be read after a failure.
    pub story: Vec<String>,
}

/// It is open, with what is held.
pub(super) struct Open {
    pub(super) db: Db,
    /// In the twin's order.
    pub(super) families: Vec<ColumnFamily>,
    pub(super) snapshots: Vec<(Snapshot, State)>,
}

impl Here {
    /// A life in `path` under the policy; `zstd` if that codec is compiled in.
    pub fn new(path: &Path, zstd: bool, policy: Policy, env: Option<Env>, rng: Rng) -> Here {
        Here { path: path.to_owned(), zstd, policy, env, rng, open: None, story: Vec::new() }
    }

    /// A builder with settings by dice.
    pub fn builder(&mut self, families: &[Family]) -> Builder {
        let settings = settings(self.policy, self.zstd, &mut self.rng);
        self.story.push(format!(
            "settings: {:?}, {:?} and {:?}, {} threads, {} parts",
            self.policy,
            settings.compression_upper,
            settings.compression_lower,
            settings.compaction_threads,
            settings.max_subcompactions
        ));
        builder(settings, families, self.env.clone())
    }

    /// Opens it, takes so many steps, settles it and closes it; after each step everything is
    /// compared. The count of comparisons.
    pub fn live(&mut self, twin: &mut Twin, steps: usize) -> usize {
        self.reopen(twin);
        self.compare(twin);
        self.verify();
        for _ in 0..steps {
            self.step(twin);
            self.compare(twin);
        }
        self.story.push("settle, and close".into());
        let open = self.open();
        open.db.settle().unwrap();
        self.compare(twin);
        self.close();
        self.verify();
        steps + 2
    }

    pub(super) fn open(&mut self) -> &mut Open {
        self.open.as_mut().expect("it is open")
    }

    pub(super) fn reopen(&mut self, twin: &Twin) {
        let db = self.builder(&twin.families).open(&self.path).unwrap();
        let all = twin.families.iter();
        let families = all.map(|family| db.column_family(&family.name).unwrap()).collect();
        self.open = Some(Open { db, families, snapshots: Vec::new() });
    }

    pub(super) fn close(&mut self) {
        let Open { db, families, snapshots } = self.open.take().expect("it is open");
        drop((families, snapshots));
        db.close().unwrap();
    }

    /// Every byte and every invariant of the directory, which may be open.
    pub(super) fn verify(&self) {
        let fs =
            self.env.as_ref().map_or_else(|| Arc::new(PosixFs::new()) as FsRef, |e| e.fs.clone());
        let report = verify(fs, &self.path, None, &mut |_| {}).unwrap();
        let found: Vec<String> = report.findings.iter().map(|f| f.error.to_string()).collect();
        assert!(found.is_empty(), "verify finds damage: {}", found.join("\n"));
    }
}
