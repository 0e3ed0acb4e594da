//! RocksDB's options as settings of ours, for a directory that RocksDB was last opened on.
//!
//! Keeps: what shapes the tree and its tables is taken where both mean the same by it; what only
//! says how RocksDB was tuned to its machine (caches, threads but for jobs, direct IO) is not.
//! Leaves to others: whether the result is sound ([`Settings::check`]).

use std::collections::BTreeMap;

use lithify_format::options::FamilySection;

use crate::settings::{CENTURY, CompactionPri, Compression, Policy, Settings};

type Options = BTreeMap<String, String>;

/// The settings of a family of a database with options `db`.
pub(super) fn settings_of(db: &Options, family: &FamilySection) -> Settings {
    let mut s = Settings::default();
    of_database(&mut s, db);
    of_tree(&mut s, &family.options);
    of_policy(&mut s, &family.options);
    of_codecs(&mut s, &family.options);
    of_tables(&mut s, &family.table);
    let memtables = s.memtable_bytes.saturating_mul(s.memtable_count.into());
    s.memory_budget = s.memory_budget.max(memtables.saturating_add(64 << 20));
    s
}

fn of_database(s: &mut Settings, db: &Options) {
    let jobs = number(db, "max_background_jobs").map(|n: u32| n.saturating_sub(1).max(1));
    set(&mut s.compaction_threads, jobs);
    set(&mut s.max_subcompactions, number(db, "max_subcompactions"));
    set(&mut s.max_wal_bytes, number(db, "max_total_wal_size"));
    set(&mut s.delayed_write_rate, number(db, "delayed_write_rate").filter(|n: &u64| *n > 0));
    // -1 is all of them.
    s.max_open_files = number(db, "max_open_files");
}

fn of_tree(s: &mut Settings, family: &Options) {
    set(&mut s.l0_trigger, number(family, "level0_file_num_compaction_trigger"));
    set(&mut s.l0_slowdown, number(family, "level0_slowdown_writes_trigger"));
    set(&mut s.l0_stop, number(family, "level0_stop_writes_trigger"));
    set(&mut s.memtable_bytes, number(family, "write_buffer_size"));
    set(&mut s.memtable_count, number(family, "max_write_buffer_number"));
    set(&mut s.level_base_bytes, number(family, "max_bytes_for_level_base"));
    let multiplier = family.get("max_bytes_for_level_multiplier");
    let multiplier = multiplier.and_then(|v| v.parse::<f64>().ok());
    set(&mut s.level_multiplier, multiplier.map(|n| n.round() as u32));
    set(&mut s.dynamic_levels, flag(family, "level_compaction_dynamic_level_bytes"));
    set(&mut s.file_bytes, number(family, "target_file_size_base"));
    set(&mut s.soft_debt_bytes, number(family, "soft_pending_compaction_bytes_limit"));
    set(&mut s.hard_debt_bytes, number(family, "hard_pending_compaction_bytes_limit"));
    set(&mut s.auto_compaction, flag(family, "disable_auto_compactions").map(|off| !off));
}

fn of_policy(s: &mut Settings, family: &Options) {
    let is = |name: &str, value: &str| family.get(name).is_some_and(|v| v == value);
    // RocksDB writes numbers beyond all time where it has a default of its own.
    let age = |name| number(family, name).filter(|&n| n <= CENTURY);
    if is("compaction_style", "kCompactionStyleUniversal") {
        s.policy = Some(Policy::Universal);
        let of = |name| within(family, "compaction_options_universal", name);
        set(&mut s.universal_size_ratio, of("size_ratio"));
        set(&mut s.universal_min_merge_width, of("min_merge_width"));
        set(&mut s.universal_max_merge_width, of("max_merge_width"));
        set(&mut s.max_size_amplification_percent, of("max_size_amplification_percent"));
        set(&mut s.periodic_compaction_seconds, age("periodic_compaction_seconds"));
        return;
    }
    set(&mut s.ttl_seconds, age("ttl"));
    if is("compaction_style", "kCompactionStyleFIFO") {
        s.policy = Some(Policy::Fifo);
        set(
            &mut s.fifo_max_bytes,
            within(family, "compaction_options_fifo", "max_table_files_size"),
        );
        let merges: Option<String> = within(family, "compaction_options_fifo", "allow_compaction");
        set(&mut s.fifo_allow_compaction, merges.map(|v| v == "true"));
        return;
    }
    set(&mut s.periodic_compaction_seconds, age("periodic_compaction_seconds"));
    let named = |p: &CompactionPri| is("compaction_pri", p.rocksdb_name());
    s.compaction_pri = CompactionPri::ALL.into_iter().find(named).unwrap_or_default();
}

fn of_codecs(s: &mut Settings, family: &Options) {
    let codec = |name: &str, opts: &str| {
        // RocksDB writes a number out of range for a codec's own default.
        let level = |most| within(family, opts, "level").filter(|n| (1..=most).contains(n));
        Some(match family.get(name)?.as_str() {
            "kNoCompression" => Compression::None,
            "kSnappyCompression" => Compression::Snappy,
            "kLZ4Compression" | "kLZ4HCCompression" => Compression::Lz4,
            "kZlibCompression" => Compression::Zlib(level(9).unwrap_or(6)),
            "kBZip2Compression" => Compression::Bzip2,
            "kZSTD" if cfg!(feature = "zstd") => Compression::Zstd(level(19).unwrap_or(3)),
            _ => return None,
        })
    };
    if let Some(everywhere) = codec("compression", "compression_opts") {
        (s.compression_upper, s.compression_lower) = (everywhere, everywhere);
    }
    if let Some(lower) = codec("bottommost_compression", "bottommost_compression_opts") {
        s.compression_lower = lower;
    }
    let zstd = |c| matches!(c, Compression::Zstd(_));
    if zstd(s.compression_upper) || zstd(s.compression_lower) {
        let bytes = within(family, "compression_opts", "max_dict_bytes");
        let bytes = bytes.filter(|n: &u32| *n > 0).map(|n| n.clamp(256, 1 << 20));
        set(&mut s.max_dict_bytes, bytes);
    }
}

fn of_tables(s: &mut Settings, table: &Options) {
    let block = number(table, "block_size").map(|n: u32| n.clamp(512, 1 << 20));
    set(&mut s.block_bytes, block.map(u32::next_power_of_two));
    set(&mut s.format_version, number(table, "format_version").map(|n: u32| n.clamp(5, 6)));
    set(&mut s.whole_key_filtering, flag(table, "whole_key_filtering"));
    if let Some(filter) = table.get("filter_policy") {
        // `bloomfilter:10:false`, by itself or as the id of an object; `nullptr` for none.
        let bits = filter.split_once("filter:").map(|(_, after)| after.split([':', ';', '}']));
        let bits = bits.and_then(|mut parts| parts.next()?.parse::<f64>().ok());
        s.bloom_bits = bits.map_or(0, |bits| bits.round().clamp(0.0, 50.0) as u32);
    }
    if table.get("index_type").is_some_and(|v| v == "kTwoLevelIndexSearch") {
        let part = number(table, "metadata_block_size").map(|n: u32| n.clamp(1 << 10, 1 << 20));
        set(&mut s.partition_bytes, part);
    }
}

fn set<T>(field: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *field = value;
    }
}

/// A whole number; `None` for what is absent, negative or too large.
fn number<T: std::str::FromStr>(options: &Options, name: &str) -> Option<T> {
    options.get(name)?.parse().ok()
}

fn flag(options: &Options, name: &str) -> Option<bool> {
    options.get(name).map(|v| v == "true")
}

/// An option within another one, as `{size_ratio=1;min_merge_width=2;}` has them.
fn within<T: std::str::FromStr>(options: &Options, outer: &str, name: &str) -> Option<T> {
    let all = options.get(outer)?.trim_matches(['{', '}']);
    let value =
        |part: &str| part.split_once('=').filter(|(n, _)| *n == name).map(|(_, v)| v.to_owned());
    all.split(';').find_map(value)?.parse().ok()
}

#[cfg(test)]
mod tests;
