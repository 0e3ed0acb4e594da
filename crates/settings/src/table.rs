//! The table of settings. Each row is, in this order:
//!
//! ```text
//! /// Docs of the field; the first sentence stands in `docs/settings.md` too.
//! name: type, Unit(range), Group Scope live,
//! default(...),
//! rocksdb(...);
//! ```
//!
//! - **Unit(range)**: what a value counts, and the numbers it takes: `("1" to "9")`, `("1" up)` without an
//!   upper limit, `(zero or "1" to "9")` if zero switches something off, `()` if values are names.
//!   `Digits` are bytes that are shown without a unit.
//! - **Group**: `First` or `RocksDb`. **Scope**: of the `Database` or of each `Family`. **live**: an open
//!   database can change it; `fixed`: the next open can.
//! - **default**: `("value", "why it is right")`, or what it follows from, the formula, and the formula
//!   in words; a budget has its value, and what it is a budget of.
//! - **rocksdb**: RocksDB's name; other names of it; the section of an OPTIONS file that has it, the
//!   function that writes the value there and the one that reads it (`rocksdb.rs`). A name without a
//!   section is what users of RocksDB look for.
//!
//! Keeps: all texts are those of `NAME=VALUE`. Ranges say what one setting takes by itself; what holds
//! between settings is in `check.rs`.

use crate::budget::{self, Budget};
use crate::row::settings;
use crate::text::Kind;
use crate::{CompactionPri, Compression, Durability, Policy, memory};

settings! {
    /// Memory for all that grows: memtables, buffers of flushes and compactions, indexes and filters of open
    /// tables, and cached blocks; the more there is, the less is read from disk. Memtables take
    /// `memtable_bytes * memtable_count` of it and buffers `buffer_bytes`. Cached blocks get the rest, but for
    /// a quarter of what is beside the memtables, or more if that is little. At least 1 MiB more than the
    /// memtables. What a GPU or an FPGA has of the host's memory to copy from and to (`--gpu-pinned`,
    /// `--fpga-memory`) comes on top.
    memory_budget: u64, Bytes("1MiB" up), First Database fixed,
        default(budget |b| b.memory, "512MiB", "what the database may take of the memory"),
        rocksdb();
    /// Compactions that may run at once, each on a thread of its own: with more of them they keep up with
    /// faster writers, and leave less of processors and disk to the program.
    compaction_threads: u32, Number("1" to "256"), First Database fixed,
        default(budget |b| b.threads, "the processor's parallelism", "what it may take of the processors"),
        rocksdb("max_background_jobs" or "max_background_compactions" in Database reads jobs);
    /// Most bytes that tables may take on disk; `auto` is what the disk has. A compaction that would need more
    /// waits for space, as on a full disk. So do writes, while what is left is needed to flush the memtables
    /// and for a narrow compaction that frees some (`NoSpace` once nothing can be freed). One such compaction
    /// at a time, of each column family, may exceed the budget while it runs. At least 16 memtables.
    disk_budget: Option<u64>, Bytes("1MiB" up), First Database live,
        default(budget |b| b.disk, "auto", "what it may take of the disk"),
        rocksdb("max_allowed_space");
    /// An open where there is no database makes an empty one; if this is off, it fails.
    create_if_missing: bool, Choice(), First Database fixed,
        default("on", "an open makes what is not there"),
        rocksdb("create_if_missing");
    /// An open where there is a database fails, and changes nothing.
    error_if_exists: bool, Choice(), First Database fixed,
        default("off", "an open takes what is there"),
        rocksdb("error_if_exists");
    /// New files and directories are for their owner alone (0600, 0700), whatever the umask allows. Those
    /// that exist stay as they are. If it is off, the umask decides.
    private_files: bool, Choice(), First Database fixed,
        default("off", "the umask decides who may read new files"),
        rocksdb();
    /// Bytes of new writes, kept in memory, at which they are flushed to disk as a table: the larger, the
    /// fewer tables are merged later, and the longer an open after a crash reads the log.
    memtable_bytes: u64, Bytes("64KiB" to "2GiB"), First Family live,
        default(memory |b| budget::memtable_bytes(b.memory), "an eighth of the memory, 3/32 of less than 256 MiB; 64 KiB to 256 MiB"),
        rocksdb("write_buffer_size" in Family writes plain reads number);
    /// Most memtables in memory, with the one that takes writes: with more of them writers ride out longer
    /// bursts before they wait for a flush. The last one slows them down, if there are more than three.
    memtable_count: u32, Number("2" to "64"), First Family live,
        default("4", "one takes writes while others are flushed; half of the memory together, three eighths of less than 256 MiB"),
        rocksdb("max_write_buffer_number" in Family writes plain reads number);
    /// Bytes of all write-ahead logs at which memtables are flushed to let logs go, which bounds how long an
    /// open after a crash takes; 0 is four times what the memtables of all families may take. With several
    /// column families one that is rarely written holds back the log of all; with one, notes in batches fill logs
    /// and no memtable. RocksDB's bound counts with several families only.
    max_wal_bytes: u64, Bytes("0" up), First Database fixed,
        default("0", "0: four times what the memtables of all families may take"),
        rocksdb("max_total_wal_size" in Database writes plain reads number);
    /// Writers whose batches go to the log together insert them into the memtable side by side, instead of one
    /// for all. It takes large batches: 48 entries or more, all of one column family. For machines with idle
    /// cores; with two cores no gain was measured.
    concurrent_memtable_writes: bool, Choice(), RocksDb Database live,
        default("off", "waking a writer costs more than two cores gain by it"),
        rocksdb("allow_concurrent_memtable_write");
    /// What a write survives once its call has returned, unless the call says it: `sync` a loss of power, `os`
    /// a crash of the process, `buffered` and `no-wal` neither. The safer, the slower writes are. With
    /// `buffered` the last ones may be lost, as their log is still in the process; with `no-wal` all that were
    /// not flushed.
    durability: Durability, Choice(), First Database live,
        default("os", "a write survives a crash of the process"),
        rocksdb("sync");
    /// Memory for the buffers of all flushes and compactions together: the more there is, the larger are their
    /// reads and writes of the disk, from 64 KiB to 2 MiB each. What is left then is for the sets of engines
    /// other than the CPU.
    buffer_bytes: Option<u64>, Bytes("0" up), First Database fixed,
        default(memory |_b| None, "at most a quarter of what the memtables leave"),
        rocksdb("compaction_readahead_size"),
        in_force |s| <crate::text::Bytes as Kind<u64>>::show(&memory::buffer_bytes(s));
    /// Most parts of one wide compaction that threads merge side by side, so that it ends sooner; 1 merges it
    /// as a whole. It is cut at keys. Each part is merged by whichever compaction thread is free, so more than
    /// `compaction_threads` gains nothing. The parts commit as one, and each writes files of its own, so a
    /// compaction is cut into no more parts than it writes files. This shortens compactions that others wait
    /// for, as those of level 0 under [`Policy::Hybrid`].
    max_subcompactions: u32, Number("1" to "64"), RocksDb Family live,
        default("1", "compactions that do not meet share the threads better than parts of one"),
        rocksdb("max_subcompactions" in Database writes plain reads number);
    /// Flushes that may run at once, each on a thread of its own: writers wait where memtables fill faster
    /// than these write them to disk.
    flush_threads: u32, Number("1" to "16"), First Database fixed,
        default(threads |b| budget::flush_threads(b.threads), "one for eight compactions, 1 to 4"),
        rocksdb("max_background_flushes");
    /// How far the threads of flushes and compactions give way to the program's own, in steps of `nice`: with
    /// 19 the program waits least for a processor. With 0 they compete as equals, which gives writes more and
    /// reads less of processors that are all busy. Flushes, which writes wait for, give way half as far.
    background_nice: u32, Number("0" to "19"), First Database fixed,
        default("10", "operations over 10 ms are mostly a client that waits for a processor"),
        rocksdb();
    /// Rules by which tables are merged, which decide how much is written again and how many tables a read
    /// looks into; `fifo` deletes the oldest data instead. `auto` is `adaptive`. RocksDB's compaction styles
    /// are `hybrid` (leveled), `universal` and `fifo`. A directory may be opened with other rules each time.
    policy: Option<Policy>, Choice(), First Family fixed,
        default("auto", "auto is adaptive, the fastest or near it on every machine that was modelled or measured"),
        rocksdb("compaction_style" in Family reads style),
        in_force |s| s.effective_policy().name().to_owned();
    /// Which file of a level is compacted first, where several could be, which decides how much is written
    /// again. [`Policy::Tiered`], [`Policy::DfTiered`], [`Policy::Universal`] and [`Policy::Fifo`] take whole
    /// runs, so any but the default is refused with them.
    compaction_pri: CompactionPri, Choice(), RocksDb Family live,
        default("min-overlapping-ratio", "rewrites least for most loads"),
        rocksdb("compaction_pri" in Family writes pri reads pri_of_leveled);
    /// Tables are compacted in the background; if this is off, only calls compact them, reads look into one
    /// more table with each flush, and writers never wait for compactions.
    auto_compaction: bool, Choice(), First Family live,
        default("on", "compaction runs by itself"),
        rocksdb("disable_auto_compactions" in Family writes not reads not_flag);
    /// Runs of level 0 that cover one key at which they are compacted, or by default, once they have
    /// `level_base_bytes`, fewer: with a higher number reads look into more runs, and less is written again. More than 1,000
    /// count as 1,000. `leveled` takes each run at once, and the tiered policies go by `tiered_runs`.
    l0_trigger: u32, Number("1" up), First Family live,
        default("4", "rewrites little and keeps reads short"),
        rocksdb("level0_file_num_compaction_trigger" in Family writes plain reads number);
    /// Runs of level 0 that cover one key at which writes are slowed down, so that compactions catch up.
    l0_slowdown: u32, Number("1" up), First Family live,
        default("20", "writers are slowed before reads suffer"),
        rocksdb("level0_slowdown_writes_trigger" in Family writes plain reads number);
    /// Runs of level 0 that cover one key at which writes stop until compactions have caught up.
    l0_stop: u32, Number("1" up), First Family live,
        default("36", "the most runs a read has to look into"),
        rocksdb("level0_stop_writes_trigger" in Family writes plain reads number);
    /// Bytes that the first level below level 0 is to have: what is more goes down to the next one.
    level_base_bytes: u64, Bytes("64KiB" to "1024TiB"), First Family live,
        default(memory |b| budget::memtable_bytes(b.memory) * 4, "four memtables"),
        rocksdb("max_bytes_for_level_base" in Family writes plain reads number);
    /// How many times more bytes each level is to have than the one above: the more, the fewer levels a read
    /// looks into, and the more often data is written again.
    level_multiplier: u32, Number("2" to "100"), First Family live,
        default("10", "between rewriting and space"),
        rocksdb("max_bytes_for_level_multiplier" in Family writes factor reads rounded);
    /// What each level is to have follows from how large the last one is, so that overwritten and deleted data
    /// takes little beside the rest; if this is off, it counts up from `level_base_bytes`.
    dynamic_levels: bool, Choice(), First Family live,
        default("on", "bounds what overwritten values take"),
        rocksdb("level_compaction_dynamic_level_bytes" in Family writes plain reads flag);
    /// Bytes at which a table file ends and the next one begins: the smaller, the less a compaction has to
    /// merge at once, and the more files there are.
    file_bytes: u64, Bytes("16KiB" to "64GiB"), First Family live,
        default(memory |b| budget::file_bytes(b.memory), "one memtable, 2 to 64 MiB"),
        rocksdb("target_file_size_base" in Family writes plain reads number);
    /// Bytes that compactions still have to merge (their debt) at which writes are slowed down; 0 is never.
    soft_debt_bytes: u64, Bytes("0" up), First Family live,
        default(disk |b| budget::debt_bytes(b, 64 << 30, 8), "an eighth of the disk budget, at most 64 GiB"),
        rocksdb("soft_pending_compaction_bytes_limit" in Family writes plain reads number);
    /// Bytes that compactions still have to merge (their debt) at which writes stop until there are fewer; 0
    /// is never.
    hard_debt_bytes: u64, Bytes("0" up), First Family live,
        default(disk |b| budget::debt_bytes(b, 256 << 30, 4), "a quarter of the disk budget, at most 256 GiB"),
        rocksdb("hard_pending_compaction_bytes_limit" in Family writes plain reads number);
    /// [`Policy::Universal`]: a run is merged with the newer ones unless it is larger than they are together
    /// by more than this: the more, the fewer runs a read looks into, and the more is written again.
    universal_size_ratio: u32, Percent("0" to "10000"), RocksDb Family live,
        default("1", "runs of equal size are merged"),
        rocksdb("compaction_options_universal.size_ratio" in Family reads number_of_universal);
    /// [`Policy::Universal`]: fewest runs of similar size that are merged: with more of them less is written
    /// again, and reads look into more.
    universal_min_merge_width: u32, Number("2" up), RocksDb Family live,
        default("2", "two runs are worth merging"),
        rocksdb("compaction_options_universal.min_merge_width" in Family reads number_of_universal);
    /// [`Policy::Universal`]: most runs that are merged at once, unless it is to save space. The default is no
    /// limit.
    universal_max_merge_width: u32, Number("2" up), RocksDb Family live,
        default("4294967295", "one wide merge rewrites less than several"),
        rocksdb("compaction_options_universal.max_merge_width" in Family reads number_of_universal);
    /// [`Policy::Universal`]: a merge into the oldest run that is larger than 25 `file_bytes` goes in slices
    /// of that size, side by side, so that it takes little spare disk. Otherwise it is one job, and the disk
    /// needs room for all of it twice, as in RocksDB by default.
    universal_incremental: bool, Choice(), RocksDb Family live,
        default("on", "large merges take little spare disk"),
        rocksdb("compaction_options_universal.incremental");
    /// Bytes of all newer runs, in percent of the oldest one's, at which everything is merged into one run to
    /// free disk: with 200 the database takes up to three times the space of its data. For
    /// [`Policy::Universal`], and for the last level of [`Policy::Tiered`] and [`Policy::DfTiered`].
    max_size_amplification_percent: u32, Percent("1" to "100000"), RocksDb Family live,
        default("200", "three times the data's space at most"),
        rocksdb("compaction_options_universal.max_size_amplification_percent" in Family reads number_of_universal);
    /// [`Policy::Fifo`]: bytes of all tables above which the oldest ones are deleted with all that is in them.
    /// At least two memtables, and at most `disk_budget`.
    fifo_max_bytes: u64, Bytes("0" up), RocksDb Family live,
        default(disk |b| b.disk.map_or(1 << 30, |disk| disk / 2), "half of the disk budget, else 1 GiB"),
        rocksdb("compaction_options_fifo.max_table_files_size" in Family reads number_of_fifo);
    /// [`Policy::Fifo`]: small tables are merged with each other, so that reads look into fewer, and more is
    /// written.
    fifo_allow_compaction: bool, Choice(), RocksDb Family live,
        default("off", "nothing is rewritten"),
        rocksdb("compaction_options_fifo.allow_compaction" in Family reads flag_of_fifo);
    /// Age of data at which its table is compacted down to the last level, where deleted and overwritten data
    /// leaves the disk, or, with [`Policy::Fifo`], is dropped with all that is in it; 0 is never. The sizes of
    /// levels do not matter to it. The limit is a hundred years.
    ttl_seconds: u64, Seconds("0" to "3162240000"), First Family live,
        default("0", "data does not age"),
        rocksdb("ttl" in Family reads age_unless_universal);
    /// Age of a table at which it is written again or taken down a level, so that newer settings and released
    /// snapshots take effect on it; 0 is never. Not for [`Policy::Fifo`]. The limit is a hundred years.
    periodic_compaction_seconds: u64, Seconds("0" to "3162240000"), RocksDb Family live,
        default("0", "nothing is rewritten for its age"),
        rocksdb("periodic_compaction_seconds" in Family reads age_unless_fifo);
    /// Bytes of the newer runs, in percent of the oldest one's, above which compactions to the bottom come
    /// earlier: deleted data takes at most this share, and more is written again; 0 is never. The same holds
    /// of what was overwritten. For any policy but [`Policy::Fifo`].
    max_space_amp_percent: u32, Percent("0" to "100000"), First Family live,
        default("0", "the policy bounds space well enough"),
        rocksdb();
    /// Entries in a row of a new table among which deletions are counted, as many of them make scans slow:
    /// with `deletion_trigger` of them the table is compacted soon; 0 counts none. It is the sliding window of
    /// RocksDB's `CompactOnDeletionCollector`.
    deletion_window: u64, Number("0" to "1000000000"), RocksDb Family fixed,
        default("0", "deletions leave with the data they hide"),
        rocksdb("table_properties_collectors");
    /// Deletions among `deletion_window` entries in a row at which a table is compacted soon, so that scans do
    /// not step over them. At least 1, and at most `deletion_window`.
    deletion_trigger: u64, Number("0" up), RocksDb Family fixed,
        default("1000", "so many are slow to scan over"),
        rocksdb("table_properties_collectors");
    /// Deletions, in percent of a new table's entries, at which it is compacted soon, so that scans do not
    /// step over them; 0 is never.
    deletion_ratio_percent: u32, Percent("0" to "100"), RocksDb Family fixed,
        default("0", "deletions leave with the data they hide"),
        rocksdb("table_properties_collectors");
    /// Lowest rate that writers are slowed down to before they stop; with RocksDB it is the rate that slowing
    /// begins with.
    delayed_write_rate: u64, Rate("16KiB" to "1024TiB"), First Family live,
        default("1MiB", "slow enough that a compaction ends before writers have to stop"),
        rocksdb("delayed_write_rate" in Database reads chosen_write_rate);
    /// Most that flushes and compactions together read and write, so that the disk has time for the program's
    /// reads, flushes first; 0 is as fast as they can.
    background_rate: u64, Rate(zero or "16KiB" to "1024TiB"), First Database live,
        default("0", "as fast as the disk"),
        rocksdb("rate_limiter_bytes_per_sec");
    /// The rate of flushes and compactions follows how much of it they use, up to `background_rate`, so that
    /// work which could spread does not come in bursts that slow reads.
    auto_tuned_rate: bool, Choice(), RocksDb Database live,
        default("off", "the rate is the limit"),
        rocksdb("rate_limiter_auto_tune");
    /// Bytes that a read of a table fetches and the cache keeps at once (a data block), before compression:
    /// small ones suit single reads, large ones compress better. A power of two. The larger, the less memory
    /// indexes take.
    block_bytes: u32, Bytes("512" to "1MiB"), First Family fixed,
        default("4KiB", "what a disk reads at once"),
        rocksdb("block_size" in Table writes plain reads block);
    /// Format of new tables, which decides who else can read them: 5 is for RocksDB 6.6 and later, 6 for 8.6
    /// and later.
    format_version: u32, Number("5" to "6"), RocksDb Family fixed,
        default("6", "RocksDB reads it from 8.6 on"),
        rocksdb("format_version" in Table writes plain reads version);
    /// How blocks are compressed in levels 0 to 2, whose data is written again soonest: it saves disk and
    /// costs processor time of flushes, compactions and reads. Zstandard needs the cargo feature `zstd`; zlib
    /// and bzip2 are for RocksDB's sake.
    compression_upper: Compression, Choice(), First Family fixed,
        default("none", "what is rewritten soon is not worth it"),
        rocksdb("compression" in Family writes codec reads upper);
    /// How blocks are compressed in levels 3 and deeper, where most data is: it saves disk and costs processor
    /// time of compactions and reads. Zstandard needs the cargo feature `zstd`; zlib and bzip2 are for
    /// RocksDB's sake.
    compression_lower: Compression, Choice(), First Family fixed,
        default("lz4", "costs little and halves most data"),
        rocksdb("bottommost_compression" in Family writes codec reads lower);
    /// Largest dictionary that a table compressed with Zstandard has for what its blocks have in common, which
    /// makes small blocks of similar entries much smaller; 0 is none. Each compaction trains it from a sample
    /// of its inputs, a hundred times as large and at most 8 MiB. 16 KiB suits most. Tables of flushes and of
    /// `TableBuilder` have none.
    max_dict_bytes: u32, Digits(zero or "256" to "1MiB"), RocksDb Family fixed,
        default("0", "blocks are compressed each by itself"),
        rocksdb("compression_opts.max_dict_bytes" in Family reads dictionary);
    /// Memory for each key, in bits, by which look-ups skip tables that do not have their key (Bloom filters):
    /// with 10 one in a hundred such tables is read in vain, with more fewer; 0 is no filters.
    bloom_bits: u32, Bits("0" to "50"), First Family fixed,
        default("10", "one lookup in a hundred reads in vain"),
        rocksdb("filter_policy" in Table writes filter reads filter_bits);
    /// Bloom filters have whole keys besides the prefixes that a prefix extractor takes: without them they are
    /// smaller, and look-ups of absent keys read tables with others of their prefix. The extractor is
    /// `Builder::prefix_extractor`. Keys without a prefix are then in no filter. Without an extractor filters
    /// hold whole keys whatever this says.
    whole_key_filtering: bool, Choice(), RocksDb Family fixed,
        default("on", "look-ups of absent keys read little in vain"),
        rocksdb("whole_key_filtering" in Table writes plain reads flag);
    /// Bytes of the parts into which a table's index and filter are cut, so that memory has only those in use;
    /// 0 keeps both whole in memory while the table is open, but for an index over 1 MiB. Parts are read when
    /// they are needed and kept in the block cache as data blocks are, so that tables may be many more than
    /// there is memory for their indexes. Reads whose parts are not in the cache take up to two reads of the
    /// file more. It is RocksDB's two-level index with partitioned filters. `auto` has parts of 4 KiB in
    /// tables that are written while the indexes and filters of all tables, were they whole, would take a
    /// quarter more than all the memory for them and cached blocks: so `memory_budget` is kept however much
    /// there is.
    partition_bytes: Option<u32>, Digits(zero or "1KiB" to "1MiB"), First Family fixed,
        default("auto", "indexes and filters are in memory while they are small beside the budget"),
        rocksdb("metadata_block_size" in Table writes part reads part_of_two_levels);
    /// Flushes and compactions go past the system's page cache (direct IO), so that they do not push out of it
    /// what the program reads. Where the file system refuses, they fall back by themselves.
    direct_background_io: bool, Choice(), First Database fixed,
        default("on", "compaction does not sweep the page cache"),
        rocksdb("use_direct_io_for_flush_and_compaction" in Database writes plain);
    /// The program's reads go past the system's page cache too, so that only the block cache, which
    /// `memory_budget` bounds, keeps what was read.
    direct_reads: bool, Choice(), First Database fixed,
        default("off", "the page cache is a second cache"),
        rocksdb("use_direct_reads" in Database writes plain);
    /// Reads copy out of tables mapped into memory, faster where the data fits the machine's; the resident size
    /// then counts pages of the system's cache, which `memory_budget` does not bound. The system takes those
    /// pages back as it needs them. Where it has to read the disk, it reads around what is asked for; so `auto`
    /// maps a table, when it opens it, if all tables that the process has mapped are then at most half of the
    /// machine's memory, or of its control group's limit where that is less, and none where the address space
    /// is limited (`ulimit -v`). A disk's error, or a table that was cut, stays an error, and checksums are
    /// compared as ever. Linux only: elsewhere, and where the file system refuses, tables are read as they are
    /// without. Not with `direct_reads`, with which `auto` is off.
    mapped_reads: Option<bool>, Choice(), First Database fixed,
        default("off", "a resident size that is the program's own, and few page tables"),
        rocksdb("allow_mmap_reads" in Database writes chosen);
    /// Writes copy into a mapping of the log in place of a system call each, which is faster and survives no less. The log
    /// is up to a MiB longer than what was written, with zeros behind. A full or failing disk is an error as ever: the
    /// store takes the SIGBUS that it causes, and hands on those of others. Linux only: elsewhere, and where the file system
    /// refuses, the log is written by calls.
    mapped_log: bool, Choice(), First Database fixed,
        default("on", "a write costs a copy and no call"),
        rocksdb("allow_mmap_writes");
    /// Most table files that are held open; a read of another one opens it first, and `auto` is three quarters
    /// of what the process may open (`ulimit -n`) when the database is opened. Files that were not read lately
    /// are closed then. Indexes and filters stay in memory. Transfers under way, logs and files being written
    /// come on top, a few dozen at most. A `Follower` keeps all tables of its views open whatever this says.
    max_open_files: Option<u32>, Number("16" to "1048576"), First Database fixed,
        default("auto", "three quarters of what the process may open"),
        rocksdb("max_open_files" in Database writes files reads open_files);
    /// The checksum of every block that is read from a table is compared, so that damage on disk is an error
    /// and never a wrong value.
    verify_checksums: bool, Choice(), First Database fixed,
        default("on", "damage is an error, never a value"),
        rocksdb("verify_checksums");
    /// What the database does (flushes, compactions, stalls, errors) is written as lines of JSON to `EVENTS`
    /// in its directory, which takes about 64 MiB with `EVENTS.old` at most.
    event_log: bool, Choice(), First Database fixed,
        default("on", "tells afterwards what happened"),
        rocksdb("info_log");
}
