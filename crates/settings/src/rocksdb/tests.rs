use lithify_journal::options::OptionsFile;

use super::*;

const HEAD: &str = "[Version]\n  rocksdb_version=11.8.1\n[DBOptions]\n  max_open_files=-1\n  \
    max_background_jobs=5\n";

fn read(family: &str, table: &str) -> Settings {
    let text = format!(
        "{HEAD}[CFOptions \"default\"]\n{family}\n[TableOptions/BlockBasedTable \"default\"]\n{table}\n"
    );
    let file = OptionsFile::parse(text.as_bytes()).unwrap();
    let settings = settings_of(&Options { db: &file.db, family: &file.families[0] });
    settings.check().unwrap();
    settings
}

#[test]
fn what_says_nothing_changes_nothing() {
    let expected = Settings { compaction_threads: 4, bloom_bits: 0, ..Settings::default() };
    assert_eq!(read("", "  filter_policy=nullptr"), expected.settled());
}

/// A value that is the default one under another budget is set all the same: RocksDB's defaults are such values.
#[test]
fn what_is_said_stays_under_the_budget_that_it_needs() {
    let s = read("  write_buffer_size=67108864\n  max_write_buffer_number=8", "").settled();
    s.check().unwrap();
    assert_eq!((s.memtable_bytes, s.memtable_count, s.memory_budget), (64 << 20, 8, 576 << 20));
    let large = "  write_buffer_size=134217728\n  max_write_buffer_number=4\n  \
                 max_bytes_for_level_base=268435456";
    let s = read(large, "").settled();
    assert_eq!((s.memtable_bytes, s.level_base_bytes), (128 << 20, 256 << 20));
}

#[test]
fn policies_come_with_their_bounds() {
    let fifo = read(
        "  compaction_style=kCompactionStyleFIFO\n  ttl=3600\n  compaction_options_fifo=\
         {age_for_warm=0;allow_compaction=true;max_table_files_size=536870912;}",
        "",
    );
    assert_eq!((fifo.policy, fifo.ttl_seconds), (Some(Policy::Fifo), 3600));
    assert_eq!((fifo.fifo_max_bytes, fifo.fifo_allow_compaction), (512 << 20, true));
    let universal = read(
        "  compaction_style=kCompactionStyleUniversal\n  ttl=3600\n  compaction_options_universal=\
         {incremental=false;max_size_amplification_percent=50;max_merge_width=9;\
         min_merge_width=3;size_ratio=7;}",
        "",
    );
    assert_eq!((universal.policy, universal.ttl_seconds), (Some(Policy::Universal), 0));
    let widths = (universal.universal_min_merge_width, universal.universal_max_merge_width);
    assert_eq!(widths, (3, 9));
    let sizes = (universal.universal_size_ratio, universal.max_size_amplification_percent);
    assert_eq!(sizes, (7, 50));
    // The mark of a default of RocksDB's own is no age.
    let leveled = read(
        "  compaction_style=kCompactionStyleLevel\n  compaction_pri=kRoundRobin\n  ttl=86400\n  \
         periodic_compaction_seconds=18446744073709551614",
        "",
    );
    assert_eq!((leveled.policy, leveled.compaction_pri), (None, CompactionPri::RoundRobin));
    assert_eq!((leveled.ttl_seconds, leveled.periodic_compaction_seconds), (86_400, 0));
}

#[test]
fn codecs_and_filters_are_those_of_the_tables() {
    let codecs = |family: &str| {
        let s = read(family, "");
        (s.compression_upper, s.compression_lower)
    };
    let disabled =
        "  compression=kSnappyCompression\n  bottommost_compression=kDisableCompressionOption";
    assert_eq!(codecs(disabled), (Compression::Snappy, Compression::Snappy));
    let zlib = "  compression=kNoCompression\n  bottommost_compression=kZlibCompression\n  \
                bottommost_compression_opts={level=9;}";
    assert_eq!(codecs(zlib), (Compression::None, Compression::Zlib(9)));
    let zlib = zlib.replace("level=9", "level=32767");
    assert_eq!(codecs(&zlib), (Compression::None, Compression::Zlib(6)));
    // Without the codec what was the default stays.
    let zstd = codecs("  compression=kZSTD");
    assert_eq!(zstd.1 == Compression::Zstd(3), cfg!(feature = "zstd"));

    for (policy, bits) in [
        ("bloomfilter:12:false", 12),
        ("{id=ribbonfilter:9.9:0;bloom_before_level=0;}", 10),
        ("nullptr", 0),
        ("another.policy", 0),
        ("rocksdb.BuiltinBloomFilter", 10),
    ] {
        assert_eq!(read("", &format!("  filter_policy={policy}")).bloom_bits, bits, "{policy}");
    }
    let s = read(
        "",
        "  block_size=5000\n  format_version=2\n  index_type=kTwoLevelIndexSearch\n  \
         metadata_block_size=4096\n  whole_key_filtering=false",
    );
    assert_eq!((s.block_bytes, s.format_version), (8192, 5));
    assert_eq!((s.partition_bytes, s.whole_key_filtering), (Some(4096), false));
    assert_eq!(
        read("", "  index_type=kBinarySearch\n  metadata_block_size=4096").partition_bytes,
        None
    );
}

/// Text that is no number changes nothing; a number beyond the machine is told by the check.
#[test]
fn odd_numbers_change_nothing() {
    let s = read("  write_buffer_size=many\n  level0_stop_writes_trigger=-1", "  block_size=");
    assert_eq!((s.memtable_bytes, s.l0_stop), (64 << 20, 36));
    assert_eq!(s.block_bytes, 4096);
}
