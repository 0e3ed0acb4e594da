//! `docs/settings.md` is what the table says. `REWRITE=1 cargo test -p lithify-settings --test table page`
//! writes it anew.

use std::collections::BTreeSet;
use std::fmt::Write;

use lithify_settings::{Group, ROWS, Row, Scope};

const HEAD: &str = "\
# Settings

Every setting has a default that is right for most. Three budgets say what a database may take of its machine:
`memory_budget`, `compaction_threads` and `disk_budget`. What is not set follows from them. `lithify settings --explain [DIR]`
prints the values in force, each with its reason.

In a program settings are fields of `Settings`, or `Settings::set(name, value)`; on the command line `--set NAME=VALUE`. An open takes those
that the program names and does not read those of the last open; `Settings::stored_in(directory)` gives these, and `lithify` commands take
them. `cargo doc -p lithify --open` says more about each setting. The directories for tables have no name here and are in no file: each open
names them anew (`Settings::table_dirs`, `--table-dir`).

The columns of the tables below:

| column | says |
|---|---|
| setting | the name |
| what it is | what a higher value, or the other choice, gives and costs |
| takes | the values. Sizes take `KiB` to `TiB` (powers of 1024) and `KB` to `TB` (of 1000); `auto` leaves the value to Lithify |
| default | a value, or the rule that gives it |
| changes | *live*: also while the database is open, by `Db::set_settings`; otherwise at an open. *family*: may differ between the column families of a database; otherwise it is one for all |
| RocksDB | the option that does the same, or most of it, there |

This page is made from the table in `crates/settings/src/table.rs`, and a test compares them.
";

/// The tables of the first group: a heading, what stands below it, and the settings.
const TABLES: [(&str, &str, &[&str]); 7] = [
    (
        "Budgets and opening",
        "\
What sizes the block cache: `memory_budget`. Memtables get `memtable_bytes` times `memtable_count` of it. A quarter of the rest, or more of a
small budget, stays free for what is not counted (output of merges, code, the allocator), `buffer_bytes` are for flushes and compactions, and
what is left is for cached blocks and for the indexes and filters of open tables: a quarter of a budget of 256 MiB to 2 GiB by default. While
next to nothing is written the cache borrows what memtables and buffers do not use. `Builder::shared_cache` takes a cache of its own size instead,
for one or several databases.
",
        &[
            "memory_budget",
            "compaction_threads",
            "disk_budget",
            "create_if_missing",
            "error_if_exists",
            "private_files",
        ],
    ),
    (
        "Memtables and log",
        "",
        &["memtable_bytes", "memtable_count", "flush_threads", "max_wal_bytes", "durability"],
    ),
    (
        "Compaction",
        "",
        &[
            "policy",
            "auto_compaction",
            "l0_trigger",
            "level_base_bytes",
            "level_multiplier",
            "dynamic_levels",
            "file_bytes",
            "ttl_seconds",
            "max_space_amp_percent",
        ],
    ),
    (
        "Stalls",
        "\
[guide.md](guide.md#when-writes-stall) says what each cause of a stall means and what helps.
",
        &["l0_slowdown", "l0_stop", "soft_debt_bytes", "hard_debt_bytes", "delayed_write_rate"],
    ),
    (
        "Tables",
        "",
        &[
            "block_bytes",
            "compression_upper",
            "compression_lower",
            "bloom_bits",
            "partition_bytes",
            "verify_checksums",
        ],
    ),
    (
        "Disk and files",
        "",
        &[
            "direct_background_io",
            "direct_reads",
            "mapped_reads",
            "mapped_log",
            "max_open_files",
            "event_log",
        ],
    ),
    ("Background work", "", &["background_nice", "background_rate", "buffer_bytes"]),
];

const SECOND: &str = "
## For RocksDB's sake

Programs and directories that come from RocksDB find here what they had there, and few others need it.
`lithify settings --all` prints them too. The codecs `zlib` and `bzip2` of the compression settings above belong here as well.
";

const POLICIES: &str = "
## Policies

RocksDB's leveled style is **`hybrid`**, not `leveled`. A directory may be opened with another policy each time; only `fifo` loses data by it.

| `policy` | what it does | RocksDB |
|---|---|---|
| `adaptive`, `auto` | levels below level 0; a compaction starts once it is worth its bytes, by how busy the machine is. The default | - |
| `hybrid` | runs gather in level 0 up to `l0_trigger`, then go down; one run in each level below | `kCompactionStyleLevel` |
| `leveled` | one run in each level; every flush is merged into the first level at once. Least space and read cost, most rewriting | - |
| `tiered` | several runs in each level; once enough of them cover one key, they become one run of the next level. Least rewriting, most space and read cost | - |
| `df-leveled` | `hybrid`; a level whose way down is locked by another job stacks its data there as a further run | - |
| `df-tiered` | `tiered`; newer runs may go down while older ones are on their way | - |
| `bucket` | flushes are cut into key ranges, and each range of level 0 goes down by itself | - |
| `bucket-df` | `bucket` and `df-leveled` together | - |
| `universal` | the tree is a sequence of runs by age, and neighbours of similar size are merged | `kCompactionStyleUniversal` |
| `fifo` | **deletes data by design**: nothing is rewritten (but with `fifo_allow_compaction`), and the oldest tables are dropped once all of them take more than `fifo_max_bytes`, or are older than `ttl_seconds` | `kCompactionStyleFIFO` |

`fifo` for a database is `fifo` for each of its families that is not named with settings of its own
(`Builder::column_family`). How the policies decide is in [internals/compaction.md](internals/compaction.md).

## RocksDB options that have no setting

| option | what happens here | instead |
|---|---|---|
| block cache size (`block_cache`, `LRUCache`) | the cache gets what `memory_budget` leaves, see above | `memory_budget`, or `Builder::shared_cache` |
| `cache_index_and_filter_blocks` | indexes and filters are always inside of the memory budget. Whole ones stay in memory while their table is open | `partition_bytes`: their parts are then cached as data blocks are |
| `pin_l0_filter_and_index_blocks_in_cache` | as if on, in every level, where `partition_bytes` does not cut them; of cut ones the top levels stay | `partition_bytes=0` |
| `row_cache` | there is none | a larger `memory_budget` |
| `write_buffer_manager`, `db_write_buffer_size` | `memtable_bytes` times `memtable_count` bounds the memtables of all families of a database together | `Builder::shared_memtables` for several databases |
| `wal_recovery_mode` | one rule: the torn end of a log is cut, and damage to what was known to be on disk refuses the open. Damaged records are never skipped | `lithify salvage` takes out what is readable |
| `manual_wal_flush` | - | `durability=buffered`, and `Db::sync` |
| `wal_dir` | logs are in the database's directory. An import refuses a directory whose logs are elsewhere | - |
| `db_paths`, `cf_paths` | have no name, as no file of a directory may say where its tables are | `Settings::table_dirs`, also in `ColumnFamilyOptions::settings`; `--table-dir` |
| `unordered_write` | writes become visible in the order of the log | `concurrent_memtable_writes` |
| `max_compaction_bytes` | a compaction of a level below 0 takes 25 `file_bytes` at most, or one file with all that it overlaps; one out of level 0 takes all runs that are due over its keys | `file_bytes` |
| `WAL_ttl_seconds`, `WAL_size_limit_MB` | a log goes once all it held is in tables | `Db::updates_since` reads the logs that are there |
| `num_levels`, `target_file_size_multiplier` | 7 and 1 | `level_multiplier`, `file_bytes` |
| `compression_per_level` | two codecs: levels 0 to 2, and 3 and deeper | `compression_upper`, `compression_lower` |
| `optimize_filters_for_hits` | the last level has filters, too | `bloom_bits` |
| Ribbon filters | new tables have Bloom filters, with the bits for each key that an OPTIONS file gives its Ribbon filters. Tables of RocksDB with Ribbon filters are read without asking those | `bloom_bits` |
| `bytes_per_sync`, `wal_bytes_per_sync` | flushes and compactions go past the system's page cache (`direct_background_io`), so that little gathers there | `background_rate` |
| `use_fsync` | a sync is `fdatasync` or stronger | - |
| `comparator`, `merge_operator`, `prefix_extractor`, `compaction_filter` | are code, and no setting. The names of the first three are in the OPTIONS file | the methods of that name of `Builder`, and of `ColumnFamilyOptions` for one family |
| `listeners`, `statistics` | - | `Builder::listener`, `Db::stats` |
";

fn line(row: &Row) -> String {
    let unit = match (row.unit.name(), row.range()) {
        ("bytes", _) | (_, None) => String::new(),
        (unit, _) => format!(" {unit}").trim_end().to_owned(),
    };
    let kind = match (row.live, row.scope) {
        (true, Scope::Family) => "live, family",
        (true, Scope::Database) => "live",
        (false, Scope::Family) => "family",
        (false, Scope::Database) => "",
    };
    let rocksdb = row.rocksdb().map_or(String::new(), |name| format!("`{name}`"));
    let cells = [
        &format!("`{}`", row.name),
        &row.sentence(),
        &format!("{}{unit}", row.takes()),
        row.default,
        kind,
        &rocksdb,
    ];
    format!("| {} |", cells.map(|cell| cell.replace('|', "\\|")).join(" | "))
}

fn table(page: &mut String, rows: impl Iterator<Item = &'static Row>) {
    page.push_str(
        "\n| setting | what it is | takes | default | changes | RocksDB |\n|---|---|---|---|---|---|\n",
    );
    for row in rows {
        let _ = writeln!(page, "{}", line(row)); // writing to a String cannot fail
    }
}

#[test]
fn the_page_of_settings_is_that_of_the_table() {
    let mut page = HEAD.to_owned();
    for (title, text, names) in TABLES {
        let _ = write!(page, "\n## {title}\n"); // writing to a String cannot fail
        if !text.is_empty() {
            let _ = write!(page, "\n{text}"); // writing to a String cannot fail
        }
        table(&mut page, names.iter().map(|name| lithify_settings::row(name).unwrap()));
    }
    page.push_str(SECOND);
    table(&mut page, ROWS.iter().filter(|row| row.group == Group::RocksDb));
    page.push_str(POLICIES);
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/settings.md");
    if std::env::var_os("REWRITE").is_some() {
        std::fs::write(path, &page).unwrap();
    }
    let there = std::fs::read_to_string(path).unwrap_or_default();
    assert!(there == page, "docs/settings.md is not what the table says; REWRITE=1 writes it anew");
}

/// Each setting of the first group stands in one of the tables, and none of the second does.
#[test]
fn the_tables_have_every_setting_of_the_first_group_once() {
    let placed: Vec<&str> = TABLES.iter().flat_map(|(_, _, names)| names.iter().copied()).collect();
    let first = ROWS.iter().filter(|row| row.group == Group::First).map(|row| row.name);
    let first: BTreeSet<&str> = first.collect();
    assert_eq!(placed.len(), first.len());
    assert_eq!(placed.into_iter().collect::<BTreeSet<_>>(), first);
}

/// Each policy has its row.
#[test]
fn the_table_of_policies_has_all_of_them() {
    for policy in lithify_settings::Policy::EVERY {
        let row = format!("\n| `{}`", policy.name());
        assert!(POLICIES.contains(&row), "{row}");
    }
}
