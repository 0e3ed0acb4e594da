//! What all jobs of a column family share: the world, its directory, its tables, buffers, file
//! numbers, and how output files look.

use std::time::Duration;

use lithify_base::zoo::{self, Bug};
use lithify_base::{
    CfId, CompactionFilterRef, ComparatorRef, FileId, MAX_LEVELS, MergeOperatorRef, Prefixes,
};
use lithify_env::sync::Arc;
use lithify_env::sync::atomic::{AtomicU64, Ordering};
use lithify_env::{BufPool, Env, Lane, RateLimiter, Step, Ticket, Tuning};
use lithify_files::dir::Dir;
use lithify_format::compress::Codec;
use lithify_format::table::index::IndexShape;
use lithify_format::table::tail::{TableIdentity, TableSpec};
use lithify_merge::Recipe;
use lithify_plan::Places;
use lithify_tables::cache::TableCache;
use lithify_tables::sst::DeletionTrigger;

use crate::order::OutputOrder;

/// How tables of a level are encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LevelFormat {
    /// Codec of data blocks.
    pub codec: Codec,
    /// Its level, where it has levels.
    pub effort: i32,
}

/// Smallest and largest size of an output write.
const WRITE_BYTES: std::ops::RangeInclusive<usize> = 64 << 10..=2 << 20;

/// Writes whose bytes a job has in buffers at once, at most: six sets of two writes each that are
/// read, wait or are merged (their buffers are up to a third larger), a file with three writes under
/// way and one being filled, and three times that in files being closed.
const WRITES_OF_JOB: u64 = 32;

/// The size of writes to files of `file_bytes` by a job that may have `buffers` bytes: a 32nd of the
/// file, so that a job of small files, too, is merged while it is read and written, and takes
/// buffers in proportion; less if the buffers of all its writes would be too much.
pub fn write_bytes(file_bytes: u64, buffers: u64) -> usize {
    let small = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX).min(*WRITE_BYTES.end());
    let part = small(file_bytes / 32).next_power_of_two();
    let share = small(buffers / WRITES_OF_JOB);
    part.min((share + 1).next_power_of_two() / 2).max(*WRITE_BYTES.start())
}

/// What `buffers` leave for the sets of engines other than the CPU, beside the buffers of `jobs` that run at once,
/// whatever the size of their files; in bytes.
pub fn set_bytes(buffers: u64, jobs: u64) -> u64 {
    let write = write_bytes(u64::MAX, buffers / jobs.max(1)) as u64;
    buffers.saturating_sub(write.saturating_mul(WRITES_OF_JOB).saturating_mul(jobs))
}

/// How long a job that is too fast waits before it looks again.
const PACE_LOOK: Duration = Duration::from_millis(100);

/// The directories of a family's tables, and which of them each level has.
#[derive(Clone, Debug)]
pub struct TableDirs {
    /// One at least.
    dirs: Vec<Dir>,
    of_level: Places,
}

impl TableDirs {
    /// All of them go home.
    pub fn home(home: &Dir) -> TableDirs {
        TableDirs { dirs: vec![home.clone()], of_level: [0; MAX_LEVELS] }
    }
    /// They go to `dirs`, those of each level as `of_level` says; home if there are none.
    pub fn new(home: &Dir, dirs: Vec<Dir>, of_level: Places) -> TableDirs {
        match dirs.is_empty() {
            true => TableDirs::home(home),
            false => TableDirs { dirs, of_level },
        }
    }
    /// Where flushes go, and what comes from outside.
    pub fn first(&self) -> &Dir {
        &self.dirs[0]
    }
    /// The number of the directory to which compactions into `level` write.
    pub(crate) fn of_level(&self, level: u8) -> u8 {
        self.of_level[usize::from(level)]
    }
    /// The directory with this number.
    pub(crate) fn at(&self, place: u8) -> &Dir {
        self.dirs.get(usize::from(place)).unwrap_or(&self.dirs[0])
    }
}

/// Who makes tables. With a table's number it tells the table apart from all others.
#[derive(Clone, Debug)]
pub struct Maker {
    /// Identity of the database.
    pub db_id: String,
    /// Which opening of it: copies of a database have its identity, and use the same numbers.
    pub session: String,
}

/// Size of the parts of indexes and filters where the store chooses it: RocksDB's default.
const AUTO_PART: u32 = 4 << 10;

/// How output files look.
#[derive(Clone, Debug)]
pub struct OutputOptions {
    /// RocksDB's format_version, 5 or 6.
    pub format_version: u32,
    /// Logical bytes of a block; a power of two.
    pub block_bytes: u32,
    /// Entries per restart point.
    pub restart_interval: u16,
    /// Filter bits per key, in thousandths; 0 = none.
    pub millibits: u32,
    /// Size of the parts into which indexes and filters are cut, in bytes; 0 = filters are whole, and
    /// so are indexes of everyday size. `None`: whole, or in parts of 4 KiB while tables would crowd the memory.
    pub partition_bytes: Option<u32>,
    /// Largest dictionary of a table whose codec has them, in bytes; 0 = none.
    pub dict_bytes: u32,
    /// Whether filters hold whole keys.
    pub whole_keys: bool,
    /// The prefixes of keys that filters hold.
    pub prefixes: Prefixes,
    /// Encoding by level.
    pub levels: [LevelFormat; MAX_LEVELS],
    /// Which outputs are marked, to be compacted soon.
    pub deletions: DeletionTrigger,
    /// Read inputs and write outputs with direct IO.
    pub direct_io: bool,
    /// Size of an output write, a multiple of 4 KiB. Half of what is read of all inputs at once.
    pub write_bytes: usize,
    /// For measuring: neither what engines return nor what memtables give back is checked.
    pub unchecked: bool,
    /// For tests: tables are written as RocksDB writes them, without counts of their blocks, and with range
    /// deletions that reach beyond the bounds of the table, where they do not count.
    pub as_rocksdb: bool,
    /// Name of the column family.
    pub cf_name: String,
    /// Number of the column family.
    pub cf: CfId,
}

impl OutputOptions {
    /// Has the blocks of `recipe` look as those of `level` do.
    pub(crate) fn encode(&self, recipe: &mut Recipe, level: u8) {
        recipe.block_bytes = self.block_bytes;
        recipe.restart_interval = self.restart_interval;
        recipe.codec = self.levels[usize::from(level)].codec;
        recipe.codec_level = self.levels[usize::from(level)].effort;
        let filters = self.millibits > 0 && recipe.order.equal_is_identical();
        recipe.filter = filters && self.whole_keys;
        recipe.prefixes = if filters { self.prefixes.clone() } else { Prefixes::default() };
    }

    /// How `maker` writes its table `number` of `level`, without operands in it. `crowded`: indexes and filters have
    /// less memory than they would take.
    pub(crate) fn table_spec(
        &self,
        maker: Maker,
        number: FileId,
        level: u8,
        times: Times,
        crowded: bool,
    ) -> TableSpec {
        let plain = TableSpec::default();
        let part = self.partition_bytes.unwrap_or(if crowded { AUTO_PART } else { 0 }) as usize;
        let index = match part {
            0 => plain.index,
            _ => IndexShape { cap: part, partition: part, ..plain.index },
        };
        TableSpec {
            version: self.format_version,
            restart_interval: u32::from(self.restart_interval),
            index,
            millibits: self.millibits,
            filter_partition: part,
            whole_keys: self.whole_keys,
            prefixes: self.prefixes.clone(),
            compression: self.levels[usize::from(level)].codec.name(),
            as_rocksdb: self.as_rocksdb,
            identity: TableIdentity {
                db_id: maker.db_id,
                session: maker.session,
                file_number: number.0,
                cf_id: self.cf.0,
                cf_name: self.cf_name.clone(),
                creation_time: times.oldest_ancestor,
                oldest_key_time: times.oldest_ancestor,
                newest_key_time: 0,
                file_creation_time: times.now,
            },
            ..plain
        }
    }
}

/// The shared part of all jobs of a column family.
pub struct JobContext {
    /// Files and threads.
    pub env: Env,
    /// The database's directory.
    pub dir: Dir,
    /// Where in it, or elsewhere, its tables go.
    pub table_dirs: TableDirs,
    /// Its tables.
    pub tables: Arc<TableCache>,
    /// Buffers for reading and writing.
    pub buffers: BufPool,
    /// Who makes its tables.
    pub maker: Maker,
    /// Order of keys.
    pub order: ComparatorRef,
    /// How output looks.
    pub output: Arc<OutputOptions>,
    /// What combines merge operands; none unless it is set.
    pub operator: Option<MergeOperatorRef>,
    /// What decides which values compactions keep; none unless it is set.
    pub filter: Option<CompactionFilterRef>,
    /// How fast all jobs together may read and write; without limit until it is set.
    pub limiter: Arc<RateLimiter>,
    numbers: FileNumbers,
}

/// The counter of file numbers of a database. Clones are the same counter.
#[derive(Clone, Debug)]
pub struct FileNumbers(Arc<AtomicU64>);

impl FileNumbers {
    /// A counter whose next number is `next`.
    pub fn new(next: FileId) -> FileNumbers {
        FileNumbers(Arc::new(AtomicU64::new(next.0)))
    }
    /// A file number that was not used before.
    pub fn next(&self) -> FileId {
        // An address is another one in each run.
        let skip = zoo::on(Bug::AddressInOutput) && (&raw const *Box::new(0u64)).addr() & 32 > 0;
        FileId(self.0.fetch_add(1 + u64::from(skip), Ordering::Relaxed))
    }
    /// Every number in use is below this one.
    pub fn peek(&self) -> FileId {
        FileId(self.0.load(Ordering::Relaxed))
    }
}

impl JobContext {
    /// A context that numbers its files by `numbers`.
    #[expect(clippy::too_many_arguments, reason = "one place, and each is a component of its own")]
    pub fn new(
        env: Env,
        dir: Dir,
        tables: Arc<TableCache>,
        buffers: BufPool,
        maker: Maker,
        order: ComparatorRef,
        output: OutputOptions,
        numbers: FileNumbers,
    ) -> JobContext {
        let limiter = Arc::new(RateLimiter::new(0, Tuning::Fixed));
        let (operator, filter) = (None, None);
        JobContext {
            env,
            table_dirs: TableDirs::home(&dir),
            dir,
            tables,
            buffers,
            maker,
            order,
            output: Arc::new(output),
            operator,
            filter,
            limiter,
            numbers,
        }
    }
    /// A job has moved `bytes`: what it waits for before it moves more, if it has to. It looks again
    /// after a moment, as the rate may have changed, or the job may not be wanted any more.
    pub(crate) fn pace(&self, bytes: usize, lane: Lane) -> Option<Step> {
        let now = self.env.rt.now();
        let until = self.limiter.moved(now, bytes as u64, lane)?;
        Some(Step::WaitUntil(Ticket::new(), until.min(now + PACE_LOOK)))
    }
    /// A file number that was not used before.
    pub fn next_file(&self) -> FileId {
        self.numbers.next()
    }
    /// Every number in use is below this one.
    pub fn peek_next_file(&self) -> FileId {
        self.numbers.peek()
    }
    /// How table `number` of an output is written, with blocks that were compressed with `dictionary`.
    pub(crate) fn table_spec(
        &self,
        number: FileId,
        output: &OutputOrder,
        dictionary: Option<Arc<[u8]>>,
    ) -> TableSpec {
        let (level, times) = (output.pos.level, output.times);
        let (maker, crowded) = (self.maker.clone(), self.tables.is_crowded());
        let mut spec = output.shape.table_spec(maker, number, level, times, crowded);
        spec.dictionary = dictionary;
        if let Some(operator) = &self.operator {
            spec.merge_operator = operator.name().to_owned();
        }
        spec
    }
}

/// Times written into a table, seconds since 1970.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Times {
    /// When the job started.
    pub(crate) now: u64,
    /// When the oldest data in it was first written to a table.
    pub(crate) oldest_ancestor: u64,
}
