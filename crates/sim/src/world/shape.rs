//! What one run is like: settings, keys and values, how much goes on in the background, what may fail.
//!
//! Leaves to others: what is done with it (`world`).

use lithify::engine::mock::FaultPlan;
use lithify::merge::Append;
use lithify::{ColumnFamilyOptions, CompactionPri, Compression, Policy, Settings};
use lithify_env::sync::Arc;
use lithify_plan::{BucketOptions, DfWhen, PlanOptions};

use super::engines::any_plan;
use super::families::NAMES;
use crate::choices::Dice;
use crate::model::{DEFAULT, Lifetimes};

/// What one run is like.
#[derive(Clone, Debug)]
pub struct Shape {
    /// How the database is set.
    pub settings: Settings,
    /// Keys there are.
    pub keys: u32,
    /// The longest value, bytes.
    pub value_max: u32,
    /// Writes skip the log.
    pub unlogged: bool,
    /// Weights of background work between operations: none, little, some, all there is.
    pub pump: [u32; 4],
    /// Storage fails now and then.
    pub faults: bool,
    /// Seed of transfers that are cut short, if they are.
    pub short: Option<u64>,
    /// Column families come and go; those that have settings of their own have these.
    pub families: Option<Box<Settings>>,
    /// The way in which prefixes of keys are taken at first; with 0 they never are.
    pub prefixes: u32,
    /// After how many seconds values expire. If any do, those of the default family do.
    pub lifetimes: Arc<Lifetimes>,
    /// What goes wrong with the engines that compactions use besides the CPU, one each.
    pub engines: Vec<FaultPlan>,
}

impl Shape {
    /// A shape for scripted lives, which choose by themselves.
    pub fn plain(settings: Settings) -> Shape {
        Shape {
            settings,
            keys: 64,
            value_max: 0,
            unlogged: false,
            pump: [1, 0, 0, 0],
            faults: false,
            short: None,
            families: None,
            prefixes: 0,
            lifetimes: Arc::default(),
            engines: Vec::new(),
        }
    }

    /// What the family of this name is like: one has the settings of the database.
    pub fn family_options(&self, name: &str) -> ColumnFamilyOptions {
        let options = ColumnFamilyOptions::new().merge_operator(Arc::new(Append::default()));
        match &self.families {
            Some(own) if name != NAMES[0] => options.settings(Settings::clone(own)),
            _ => options,
        }
    }

    /// A shape that the dice choose; the policy is their first choice.
    pub fn choose(dice: &Dice) -> Shape {
        let mut s = Settings::default();
        s.policy = Some(*dice.pick(&Policy::EVERY, "policy"));
        s.memtable_bytes = 64 << 10;
        s.memtable_count = 2 + dice.choose(3, "memtables");
        s.memory_budget = 4 << 20;
        s.level_base_bytes = 64 << 10;
        s.level_multiplier = 2 + dice.choose(3, "multiplier");
        s.file_bytes = *dice.pick(&[16 << 10, 24 << 10, 64 << 10], "file");
        s.block_bytes = *dice.pick(&[512, 1024, 4096], "block");
        s.l0_trigger = 1 + dice.choose(3, "l0 trigger");
        s.l0_slowdown = s.l0_trigger + 1 + dice.choose(4, "l0 slowdown");
        s.l0_stop = s.l0_slowdown + 1 + dice.choose(4, "l0 stop");
        s.compaction_threads = 1 + dice.choose(4, "compactions");
        s.flush_threads = 1 + dice.choose(2, "flushes");
        s.dynamic_levels = dice.choose(2, "dynamic") == 0;
        s.format_version = 6 - dice.choose(2, "format");
        let codecs = [Compression::None, Compression::Lz4, Compression::Snappy];
        s.compression_upper = *dice.pick(&codecs, "upper");
        s.compression_lower = *dice.pick(&codecs, "lower");
        s.bloom_bits = *dice.pick(&[10, 0], "bloom");
        s.event_log = true;
        if dice.choose(2, "eager") == 1 {
            s.plan = Some(Box::new(eager(dice)));
        }
        let mut shape = Shape {
            settings: s,
            keys: *dice.pick(&[40, 8, 150], "keys"),
            value_max: *dice.pick(&[2000, 40, 6000], "value"),
            unlogged: dice.one_in(12, "unlogged"),
            pump: *dice.pick(&[[6, 3, 2, 1], [12, 6, 1, 0], [2, 8, 1, 0]], "pump"),
            faults: dice.one_in(4, "faults"),
            short: dice.one_in(6, "short").then(|| u64::from(dice.choose(1 << 16, "short"))),
            families: None,
            prefixes: 0,
            lifetimes: Arc::default(),
            engines: Vec::new(),
        };
        // What was added later comes last, so that older plans mean what they did.
        shape.settings.max_subcompactions = *dice.pick(&[1, 2, 4], "subcompactions");
        let pri = *dice.pick(&CompactionPri::ALL, "priority");
        if !shape.settings.effective_policy().takes_runs() {
            shape.settings.compaction_pri = pri;
        }
        keep_up(&mut shape.settings, dice);
        shape.settings.partition_bytes = *dice.pick(&[None, Some(0), Some(1 << 10)], "partitions");
        if shape.settings.policy == Some(Policy::Fifo) {
            keep_all(&mut shape.settings, dice);
        }
        // Writes that no log holds have no order over families.
        if !shape.unlogged && dice.one_in(3, "families") {
            shape.families = Some(Box::new(of_families(&shape.settings, dice)));
        }
        shape.prefixes = *dice.pick(&[0, 0, 1, 2, 3], "prefixes");
        let whole_keys = shape.prefixes == 0 || dice.choose(2, "whole keys") == 0;
        let zlib = dice.one_in(12, "zlib");
        for s in shape.every_settings() {
            s.whole_key_filtering = whole_keys;
            if zlib {
                s.compression_lower = Compression::Zlib(1);
            }
            if s.policy == Some(Policy::Universal) {
                merge_widths(s, dice);
            }
        }
        shape.settings.concurrent_memtable_writes = dice.one_in(3, "side by side");
        if dice.one_in(8, "dictionaries") {
            let bytes = *dice.pick(&[256, 1024], "dictionary");
            for s in shape.every_settings() {
                with_dictionaries(s, bytes);
            }
        }
        if dice.one_in(6, "lifetimes") {
            shape.lifetimes = Arc::new(lifetimes(dice));
            // Compactions come while there is something to drop.
            let age = *dice.pick(&[0, 1, 2], "age");
            for s in shape.every_settings().filter(|s| s.policy != Some(Policy::Fifo)) {
                s.periodic_compaction_seconds = age;
            }
        }
        if dice.one_in(4, "as rocksdb") {
            shape.every_settings().for_each(|s| s.as_rocksdb = true);
        }
        if dice.one_in(5, "engine") {
            let engines = 1 + dice.choose(4, "engines");
            shape.engines = (0..engines).map(|_| any_plan(dice)).collect();
        }
        shape
    }

    fn every_settings(&mut self) -> impl Iterator<Item = &mut Settings> {
        [Some(&mut self.settings), self.families.as_deref_mut()].into_iter().flatten()
    }
}

/// Zstandard with dictionaries of `bytes`, if this build has it.
fn with_dictionaries(s: &mut Settings, bytes: u32) {
    if cfg!(feature = "zstd") {
        s.compression_lower = Compression::Zstd(1);
        s.max_dict_bytes = bytes;
    }
}

/// After how many seconds values expire: one family has no times, and values of others may have times and
/// last for ever.
fn lifetimes(dice: &Dice) -> Lifetimes {
    let [_, timed @ ..] = NAMES;
    let default = *dice.pick(&[2, 5, 0, 1], "lifetime");
    let others = *dice.pick(&[0, 3, 12], "lifetime of families");
    let others = timed.into_iter().map(|name| (name.to_owned(), others));
    others.chain([(DEFAULT.to_owned(), default)]).collect()
}

/// Which runs [`Policy::Universal`] merges.
fn merge_widths(s: &mut Settings, dice: &Dice) {
    s.universal_size_ratio = *dice.pick(&[1, 0, 60], "size ratio");
    (s.universal_min_merge_width, s.universal_max_merge_width) =
        *dice.pick(&[(2, u32::MAX), (2, 2), (3, 4)], "widths");
    s.max_size_amplification_percent = *dice.pick(&[200, 25, 5000], "amplification");
    s.universal_incremental = dice.choose(2, "slices") == 0;
}

/// What time and contents ask for, where it comes soon: a second is long here.
fn keep_up(s: &mut Settings, dice: &Dice) {
    (s.ttl_seconds, s.periodic_compaction_seconds) =
        *dice.pick(&[(0, 0), (0, 0), (1, 0), (0, 2), (3, 5)], "ages");
    s.max_space_amp_percent = *dice.pick(&[0, 0, 20, 60], "space");
    (s.deletion_window, s.deletion_trigger) =
        *dice.pick(&[(0, 1), (0, 1), (20, 5), (100, 40)], "deletions");
}

/// A store that forgets has its bound far away and nothing ages, so that nothing is forgotten: that has a
/// test of its own.
fn keep_all(s: &mut Settings, dice: &Dice) {
    (s.ttl_seconds, s.periodic_compaction_seconds) = (0, 0);
    s.fifo_allow_compaction = dice.choose(2, "small tables") == 0;
}

/// Settings of families, in a database with settings `db`.
fn of_families(db: &Settings, dice: &Dice) -> Settings {
    let mut s = db.clone();
    s.policy = Some(*dice.pick(&Policy::EVERY, "policy"));
    s.plan = None;
    s.compaction_pri = Settings::default().compaction_pri;
    s.memtable_bytes = *dice.pick(&[64 << 10, 128 << 10], "memtable");
    s.block_bytes = *dice.pick(&[512, 2048], "block");
    s.bloom_bits = *dice.pick(&[10, 0], "bloom");
    s.l0_trigger = 1 + dice.choose(2, "l0 trigger");
    if s.policy == Some(Policy::Fifo) {
        keep_all(&mut s, dice);
    }
    s
}

/// Options of the planner under which all that a policy can do is due soon.
fn eager(dice: &Dice) -> PlanOptions {
    let buckets = BucketOptions {
        initial: 3 + dice.choose(6, "buckets"),
        window: 3,
        split_percent: 150,
        merge_percent: 60,
        min_file_bytes: 1 << 10,
        only_when_empty: dice.one_in(6, "empty"),
        by_bytes: dice.choose(2, "by bytes") == 0,
        ..BucketOptions::default()
    };
    let few_wait = dice.one_in(5, "waiting jobs");
    PlanOptions {
        df_when: DfWhen::Always,
        df_max_depth: 2 + dice.choose(5, "depth"),
        df_extra_percent: u32::MAX,
        tiered_runs: 2 + dice.choose(2, "runs"),
        max_waiting_jobs: if few_wait { 1 } else { 8 },
        buckets,
        ..PlanOptions::default()
    }
}
