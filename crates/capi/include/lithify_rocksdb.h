/* Made by `cargo xtask capi header` of symbols.txt: RocksDB's C interface as Lithify exports it.
   What the functions do: RocksDB's own header, and docs/c.md for what differs. */
#ifndef LITHIFY_ROCKSDB_H
#define LITHIFY_ROCKSDB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rocksdb_backup_engine_info_t rocksdb_backup_engine_info_t;
typedef struct rocksdb_backup_engine_options_t rocksdb_backup_engine_options_t;
typedef struct rocksdb_backup_engine_t rocksdb_backup_engine_t;
typedef struct rocksdb_block_based_table_options_t rocksdb_block_based_table_options_t;
typedef struct rocksdb_cache_t rocksdb_cache_t;
typedef struct rocksdb_checkpoint_t rocksdb_checkpoint_t;
typedef struct rocksdb_column_family_handle_t rocksdb_column_family_handle_t;
typedef struct rocksdb_column_family_metadata_t rocksdb_column_family_metadata_t;
typedef struct rocksdb_compactionfilter_t rocksdb_compactionfilter_t;
typedef struct rocksdb_compactionfiltercontext_t rocksdb_compactionfiltercontext_t;
typedef struct rocksdb_compactionfilterfactory_t rocksdb_compactionfilterfactory_t;
typedef struct rocksdb_compactoptions_t rocksdb_compactoptions_t;
typedef struct rocksdb_comparator_t rocksdb_comparator_t;
typedef struct rocksdb_cuckoo_table_options_t rocksdb_cuckoo_table_options_t;
typedef struct rocksdb_dbpath_t rocksdb_dbpath_t;
typedef struct rocksdb_env_t rocksdb_env_t;
typedef struct rocksdb_envoptions_t rocksdb_envoptions_t;
typedef struct rocksdb_fifo_compaction_options_t rocksdb_fifo_compaction_options_t;
typedef struct rocksdb_filterpolicy_t rocksdb_filterpolicy_t;
typedef struct rocksdb_flushoptions_t rocksdb_flushoptions_t;
typedef struct rocksdb_ingestexternalfileoptions_t rocksdb_ingestexternalfileoptions_t;
typedef struct rocksdb_iterator_t rocksdb_iterator_t;
typedef struct rocksdb_livefiles_t rocksdb_livefiles_t;
typedef struct rocksdb_logger_t rocksdb_logger_t;
typedef struct rocksdb_lru_cache_options_t rocksdb_lru_cache_options_t;
typedef struct rocksdb_memory_consumers_t rocksdb_memory_consumers_t;
typedef struct rocksdb_memory_usage_t rocksdb_memory_usage_t;
typedef struct rocksdb_mergeoperator_t rocksdb_mergeoperator_t;
typedef struct rocksdb_optimistictransaction_options_t rocksdb_optimistictransaction_options_t;
typedef struct rocksdb_optimistictransactiondb_t rocksdb_optimistictransactiondb_t;
typedef struct rocksdb_options_t rocksdb_options_t;
typedef struct rocksdb_perfcontext_t rocksdb_perfcontext_t;
typedef struct rocksdb_pinnableslice_t rocksdb_pinnableslice_t;
typedef struct rocksdb_ratelimiter_t rocksdb_ratelimiter_t;
typedef struct rocksdb_readoptions_t rocksdb_readoptions_t;
typedef struct rocksdb_restore_options_t rocksdb_restore_options_t;
typedef struct rocksdb_slicetransform_t rocksdb_slicetransform_t;
typedef struct rocksdb_snapshot_t rocksdb_snapshot_t;
typedef struct rocksdb_sstfilewriter_t rocksdb_sstfilewriter_t;
typedef struct rocksdb_statistics_histogram_data_t rocksdb_statistics_histogram_data_t;
typedef struct rocksdb_t rocksdb_t;
typedef struct rocksdb_transaction_options_t rocksdb_transaction_options_t;
typedef struct rocksdb_transaction_t rocksdb_transaction_t;
typedef struct rocksdb_transactiondb_options_t rocksdb_transactiondb_options_t;
typedef struct rocksdb_transactiondb_t rocksdb_transactiondb_t;
typedef struct rocksdb_universal_compaction_options_t rocksdb_universal_compaction_options_t;
typedef struct rocksdb_wait_for_compact_options_t rocksdb_wait_for_compact_options_t;
typedef struct rocksdb_wal_iterator_t rocksdb_wal_iterator_t;
typedef struct rocksdb_wal_readoptions_t rocksdb_wal_readoptions_t;
typedef struct rocksdb_write_buffer_manager_t rocksdb_write_buffer_manager_t;
typedef struct rocksdb_writebatch_t rocksdb_writebatch_t;
typedef struct rocksdb_writeoptions_t rocksdb_writeoptions_t;

rocksdb_memory_usage_t* rocksdb_approximate_memory_usage_create(rocksdb_memory_consumers_t*, char**);
void rocksdb_approximate_memory_usage_destroy(rocksdb_memory_usage_t*);
uint64_t rocksdb_approximate_memory_usage_get_cache_total(rocksdb_memory_usage_t*);
uint64_t rocksdb_approximate_memory_usage_get_mem_table_readers_total(rocksdb_memory_usage_t*);
uint64_t rocksdb_approximate_memory_usage_get_mem_table_total(rocksdb_memory_usage_t*);
uint64_t rocksdb_approximate_memory_usage_get_mem_table_unflushed(rocksdb_memory_usage_t*);
void rocksdb_approximate_sizes(rocksdb_t*, int, const char* const*, const size_t*, const char* const*, const size_t*, uint64_t*, char**);
void rocksdb_approximate_sizes_cf(rocksdb_t*, rocksdb_column_family_handle_t*, int, const char* const*, const size_t*, const char* const*, const size_t*, uint64_t*, char**);
void rocksdb_backup_engine_close(rocksdb_backup_engine_t*);
void rocksdb_backup_engine_create_new_backup(rocksdb_backup_engine_t*, rocksdb_t*, char**);
void rocksdb_backup_engine_create_new_backup_flush(rocksdb_backup_engine_t*, rocksdb_t*, unsigned char, char**);
const rocksdb_backup_engine_info_t* rocksdb_backup_engine_get_backup_info(rocksdb_backup_engine_t*);
uint32_t rocksdb_backup_engine_info_backup_id(const rocksdb_backup_engine_info_t*, int);
int rocksdb_backup_engine_info_count(const rocksdb_backup_engine_info_t*);
void rocksdb_backup_engine_info_destroy(const rocksdb_backup_engine_info_t*);
uint32_t rocksdb_backup_engine_info_number_files(const rocksdb_backup_engine_info_t*, int);
uint64_t rocksdb_backup_engine_info_size(const rocksdb_backup_engine_info_t*, int);
int64_t rocksdb_backup_engine_info_timestamp(const rocksdb_backup_engine_info_t*, int);
rocksdb_backup_engine_t* rocksdb_backup_engine_open(const rocksdb_options_t*, const char*, char**);
rocksdb_backup_engine_t* rocksdb_backup_engine_open_opts(const rocksdb_backup_engine_options_t*, rocksdb_env_t*, char**);
rocksdb_backup_engine_options_t* rocksdb_backup_engine_options_create(const char*);
void rocksdb_backup_engine_options_destroy(rocksdb_backup_engine_options_t*);
int rocksdb_backup_engine_options_get_max_background_operations(rocksdb_backup_engine_options_t*);
unsigned char rocksdb_backup_engine_options_get_sync(rocksdb_backup_engine_options_t*);
void rocksdb_backup_engine_options_set_max_background_operations(rocksdb_backup_engine_options_t*, int); /* noted */
void rocksdb_backup_engine_options_set_sync(rocksdb_backup_engine_options_t*, unsigned char); /* noted */
void rocksdb_backup_engine_purge_old_backups(rocksdb_backup_engine_t*, uint32_t, char**);
void rocksdb_backup_engine_restore_db_from_backup(rocksdb_backup_engine_t*, const char*, const char*, const rocksdb_restore_options_t*, uint32_t, char**);
void rocksdb_backup_engine_restore_db_from_latest_backup(rocksdb_backup_engine_t*, const char*, const char*, const rocksdb_restore_options_t*, char**);
void rocksdb_backup_engine_verify_backup(rocksdb_backup_engine_t*, uint32_t, char**);
void rocksdb_batched_multi_get_cf(rocksdb_t*, const rocksdb_readoptions_t*, rocksdb_column_family_handle_t*, size_t, const char* const*, const size_t*, rocksdb_pinnableslice_t**, char**, bool);
rocksdb_block_based_table_options_t* rocksdb_block_based_options_create(void);
void rocksdb_block_based_options_destroy(rocksdb_block_based_table_options_t*);
void rocksdb_block_based_options_set_block_cache(rocksdb_block_based_table_options_t*, rocksdb_cache_t*);
void rocksdb_block_based_options_set_block_restart_interval(rocksdb_block_based_table_options_t*, int); /* noted */
void rocksdb_block_based_options_set_block_size(rocksdb_block_based_table_options_t*, size_t);
void rocksdb_block_based_options_set_block_size_deviation(rocksdb_block_based_table_options_t*, int); /* noted */
void rocksdb_block_based_options_set_cache_index_and_filter_blocks(rocksdb_block_based_table_options_t*, unsigned char); /* noted */
void rocksdb_block_based_options_set_cache_index_and_filter_blocks_with_high_priority(rocksdb_block_based_table_options_t*, unsigned char); /* noted */
void rocksdb_block_based_options_set_checksum(rocksdb_block_based_table_options_t*, char); /* noted */
void rocksdb_block_based_options_set_data_block_hash_ratio(rocksdb_block_based_table_options_t*, double); /* noted */
void rocksdb_block_based_options_set_data_block_index_type(rocksdb_block_based_table_options_t*, int); /* noted */
void rocksdb_block_based_options_set_filter_policy(rocksdb_block_based_table_options_t*, rocksdb_filterpolicy_t*);
void rocksdb_block_based_options_set_format_version(rocksdb_block_based_table_options_t*, int);
void rocksdb_block_based_options_set_index_block_restart_interval(rocksdb_block_based_table_options_t*, int); /* noted */
void rocksdb_block_based_options_set_index_type(rocksdb_block_based_table_options_t*, int);
void rocksdb_block_based_options_set_metadata_block_size(rocksdb_block_based_table_options_t*, uint64_t);
void rocksdb_block_based_options_set_no_block_cache(rocksdb_block_based_table_options_t*, unsigned char);
void rocksdb_block_based_options_set_optimize_filters_for_memory(rocksdb_block_based_table_options_t*, unsigned char); /* noted */
void rocksdb_block_based_options_set_partition_filters(rocksdb_block_based_table_options_t*, unsigned char); /* noted */
void rocksdb_block_based_options_set_partition_pinning_tier(rocksdb_block_based_table_options_t*, int); /* noted */
void rocksdb_block_based_options_set_pin_l0_filter_and_index_blocks_in_cache(rocksdb_block_based_table_options_t*, unsigned char); /* noted */
void rocksdb_block_based_options_set_pin_top_level_index_and_filter(rocksdb_block_based_table_options_t*, unsigned char); /* noted */
void rocksdb_block_based_options_set_top_level_index_pinning_tier(rocksdb_block_based_table_options_t*, int); /* noted */
void rocksdb_block_based_options_set_unpartitioned_pinning_tier(rocksdb_block_based_table_options_t*, int); /* noted */
void rocksdb_block_based_options_set_use_delta_encoding(rocksdb_block_based_table_options_t*, unsigned char); /* noted */
void rocksdb_block_based_options_set_whole_key_filtering(rocksdb_block_based_table_options_t*, unsigned char);
rocksdb_cache_t* rocksdb_cache_create_hyper_clock(size_t, size_t);
rocksdb_cache_t* rocksdb_cache_create_lru(size_t);
rocksdb_cache_t* rocksdb_cache_create_lru_opts(const rocksdb_lru_cache_options_t*);
void rocksdb_cache_destroy(rocksdb_cache_t*);
size_t rocksdb_cache_get_capacity(const rocksdb_cache_t*);
size_t rocksdb_cache_get_usage(const rocksdb_cache_t*);
void rocksdb_cache_set_capacity(rocksdb_cache_t*, size_t);
void rocksdb_cancel_all_background_work(rocksdb_t*, unsigned char); /* noted */
void rocksdb_checkpoint_create(rocksdb_checkpoint_t*, const char*, uint64_t, char**);
rocksdb_checkpoint_t* rocksdb_checkpoint_object_create(rocksdb_t*, char**);
void rocksdb_checkpoint_object_destroy(rocksdb_checkpoint_t*);
void rocksdb_close(rocksdb_t*);
void rocksdb_column_family_handle_destroy(rocksdb_column_family_handle_t*);
uint32_t rocksdb_column_family_handle_get_id(rocksdb_column_family_handle_t*);
char* rocksdb_column_family_handle_get_name(rocksdb_column_family_handle_t*, size_t*);
void rocksdb_column_family_metadata_destroy(rocksdb_column_family_metadata_t*);
size_t rocksdb_column_family_metadata_get_file_count(rocksdb_column_family_metadata_t*);
char* rocksdb_column_family_metadata_get_name(rocksdb_column_family_metadata_t*);
uint64_t rocksdb_column_family_metadata_get_size(rocksdb_column_family_metadata_t*);
void rocksdb_compact_range(rocksdb_t*, const char*, size_t, const char*, size_t);
void rocksdb_compact_range_cf(rocksdb_t*, rocksdb_column_family_handle_t*, const char*, size_t, const char*, size_t);
void rocksdb_compact_range_cf_opt(rocksdb_t*, rocksdb_column_family_handle_t*, rocksdb_compactoptions_t*, const char*, size_t, const char*, size_t);
void rocksdb_compact_range_opt(rocksdb_t*, rocksdb_compactoptions_t*, const char*, size_t, const char*, size_t);
rocksdb_compactionfilter_t* rocksdb_compactionfilter_create(void*, void (*)(void*), unsigned char (*)(void*, int, const char*, size_t, const char*, size_t, char**, size_t*, unsigned char*), const char* (*)(void*));
void rocksdb_compactionfilter_destroy(rocksdb_compactionfilter_t*);
unsigned char rocksdb_compactionfiltercontext_is_full_compaction(rocksdb_compactionfiltercontext_t*);
unsigned char rocksdb_compactionfiltercontext_is_manual_compaction(rocksdb_compactionfiltercontext_t*);
rocksdb_compactionfilterfactory_t* rocksdb_compactionfilterfactory_create(void*, void (*)(void*), rocksdb_compactionfilter_t* (*)(void*, rocksdb_compactionfiltercontext_t*), const char* (*)(void*));
void rocksdb_compactionfilterfactory_destroy(rocksdb_compactionfilterfactory_t*);
rocksdb_compactoptions_t* rocksdb_compactoptions_create(void);
void rocksdb_compactoptions_destroy(rocksdb_compactoptions_t*);
unsigned char rocksdb_compactoptions_get_bottommost_level_compaction(rocksdb_compactoptions_t*);
unsigned char rocksdb_compactoptions_get_change_level(rocksdb_compactoptions_t*);
unsigned char rocksdb_compactoptions_get_exclusive_manual_compaction(rocksdb_compactoptions_t*);
int rocksdb_compactoptions_get_target_level(rocksdb_compactoptions_t*);
void rocksdb_compactoptions_set_bottommost_level_compaction(rocksdb_compactoptions_t*, unsigned char);
void rocksdb_compactoptions_set_change_level(rocksdb_compactoptions_t*, unsigned char); /* noted */
void rocksdb_compactoptions_set_exclusive_manual_compaction(rocksdb_compactoptions_t*, unsigned char); /* noted */
void rocksdb_compactoptions_set_full_history_ts_low(rocksdb_compactoptions_t*, char*, size_t); /* refused */
void rocksdb_compactoptions_set_target_level(rocksdb_compactoptions_t*, int); /* noted */
rocksdb_comparator_t* rocksdb_comparator_create(void*, void (*)(void*), int (*)(void*, const char*, size_t, const char*, size_t), const char* (*)(void*));
void rocksdb_comparator_destroy(rocksdb_comparator_t*);
rocksdb_comparator_t* rocksdb_comparator_with_ts_create(void*, void (*)(void*), int (*)(void*, const char*, size_t, const char*, size_t), int (*)(void*, const char*, size_t, const char*, size_t), int (*)(void*, const char*, size_t, unsigned char, const char*, size_t, unsigned char), const char* (*)(void*), size_t); /* refused */
rocksdb_column_family_handle_t* rocksdb_create_column_family(rocksdb_t*, const rocksdb_options_t*, const char*, char**);
rocksdb_env_t* rocksdb_create_default_env(void);
rocksdb_iterator_t* rocksdb_create_iterator(rocksdb_t*, const rocksdb_readoptions_t*);
rocksdb_iterator_t* rocksdb_create_iterator_cf(rocksdb_t*, const rocksdb_readoptions_t*, rocksdb_column_family_handle_t*);
void rocksdb_create_iterators(rocksdb_t*, rocksdb_readoptions_t*, rocksdb_column_family_handle_t**, rocksdb_iterator_t**, size_t, char**);
rocksdb_env_t* rocksdb_create_mem_env(void);
const rocksdb_snapshot_t* rocksdb_create_snapshot(rocksdb_t*);
rocksdb_cuckoo_table_options_t* rocksdb_cuckoo_options_create(void);
void rocksdb_cuckoo_options_destroy(rocksdb_cuckoo_table_options_t*);
void rocksdb_cuckoo_options_set_cuckoo_block_size(rocksdb_cuckoo_table_options_t*, uint32_t); /* noted */
void rocksdb_cuckoo_options_set_hash_ratio(rocksdb_cuckoo_table_options_t*, double); /* noted */
void rocksdb_cuckoo_options_set_identity_as_first_hash(rocksdb_cuckoo_table_options_t*, unsigned char); /* noted */
void rocksdb_cuckoo_options_set_max_search_depth(rocksdb_cuckoo_table_options_t*, uint32_t); /* noted */
void rocksdb_cuckoo_options_set_use_module_hash(rocksdb_cuckoo_table_options_t*, unsigned char); /* noted */
rocksdb_dbpath_t* rocksdb_dbpath_create(const char*, uint64_t);
void rocksdb_dbpath_destroy(rocksdb_dbpath_t*);
void rocksdb_delete(rocksdb_t*, const rocksdb_writeoptions_t*, const char*, size_t, char**);
void rocksdb_delete_cf(rocksdb_t*, const rocksdb_writeoptions_t*, rocksdb_column_family_handle_t*, const char*, size_t, char**);
void rocksdb_delete_cf_with_ts(rocksdb_t*, const rocksdb_writeoptions_t*, rocksdb_column_family_handle_t*, const char*, size_t, const char*, size_t, char**); /* refused */
void rocksdb_delete_file_in_range(rocksdb_t*, const char*, size_t, const char*, size_t, char**);
void rocksdb_delete_file_in_range_cf(rocksdb_t*, rocksdb_column_family_handle_t*, const char*, size_t, const char*, size_t, char**);
void rocksdb_delete_range_cf(rocksdb_t*, const rocksdb_writeoptions_t*, rocksdb_column_family_handle_t*, const char*, size_t, const char*, size_t, char**);
void rocksdb_delete_with_ts(rocksdb_t*, const rocksdb_writeoptions_t*, const char*, size_t, const char*, size_t, char**); /* refused */
void rocksdb_destroy_db(const rocksdb_options_t*, const char*, char**);
void rocksdb_disable_file_deletions(rocksdb_t*, char**);
void rocksdb_drop_column_family(rocksdb_t*, rocksdb_column_family_handle_t*, char**);
void rocksdb_enable_file_deletions(rocksdb_t*, char**);
void rocksdb_env_destroy(rocksdb_env_t*);
int rocksdb_env_get_background_threads(rocksdb_env_t*);
int rocksdb_env_get_bottom_priority_background_threads(rocksdb_env_t*);
int rocksdb_env_get_high_priority_background_threads(rocksdb_env_t*);
int rocksdb_env_get_low_priority_background_threads(rocksdb_env_t*);
void rocksdb_env_join_all_threads(rocksdb_env_t*); /* noted */
void rocksdb_env_lower_high_priority_thread_pool_cpu_priority(rocksdb_env_t*); /* noted */
void rocksdb_env_lower_high_priority_thread_pool_io_priority(rocksdb_env_t*); /* noted */
void rocksdb_env_lower_thread_pool_cpu_priority(rocksdb_env_t*); /* noted */
void rocksdb_env_lower_thread_pool_io_priority(rocksdb_env_t*); /* noted */
void rocksdb_env_set_background_threads(rocksdb_env_t*, int); /* noted */
void rocksdb_env_set_bottom_priority_background_threads(rocksdb_env_t*, int); /* noted */
void rocksdb_env_set_high_priority_background_threads(rocksdb_env_t*, int); /* noted */
void rocksdb_env_set_low_priority_background_threads(rocksdb_env_t*, int); /* noted */
rocksdb_envoptions_t* rocksdb_envoptions_create(void);
void rocksdb_envoptions_destroy(rocksdb_envoptions_t*);
rocksdb_fifo_compaction_options_t* rocksdb_fifo_compaction_options_create(void);
void rocksdb_fifo_compaction_options_destroy(rocksdb_fifo_compaction_options_t*);
unsigned char rocksdb_fifo_compaction_options_get_allow_compaction(rocksdb_fifo_compaction_options_t*);
uint64_t rocksdb_fifo_compaction_options_get_max_table_files_size(rocksdb_fifo_compaction_options_t*);
void rocksdb_fifo_compaction_options_set_allow_compaction(rocksdb_fifo_compaction_options_t*, unsigned char);
void rocksdb_fifo_compaction_options_set_max_table_files_size(rocksdb_fifo_compaction_options_t*, uint64_t);
rocksdb_filterpolicy_t* rocksdb_filterpolicy_create_bloom(double);
rocksdb_filterpolicy_t* rocksdb_filterpolicy_create_bloom_full(double);
rocksdb_filterpolicy_t* rocksdb_filterpolicy_create_ribbon(double);
rocksdb_filterpolicy_t* rocksdb_filterpolicy_create_ribbon_hybrid(double, int);
void rocksdb_filterpolicy_destroy(rocksdb_filterpolicy_t*);
void rocksdb_flush(rocksdb_t*, const rocksdb_flushoptions_t*, char**);
void rocksdb_flush_cf(rocksdb_t*, const rocksdb_flushoptions_t*, rocksdb_column_family_handle_t*, char**);
void rocksdb_flush_cfs(rocksdb_t*, const rocksdb_flushoptions_t*, rocksdb_column_family_handle_t**, int, char**);
void rocksdb_flush_wal(rocksdb_t*, unsigned char, char**);
rocksdb_flushoptions_t* rocksdb_flushoptions_create(void);
void rocksdb_flushoptions_destroy(rocksdb_flushoptions_t*);
unsigned char rocksdb_flushoptions_get_wait(rocksdb_flushoptions_t*);
void rocksdb_flushoptions_set_wait(rocksdb_flushoptions_t*, unsigned char); /* noted */
void rocksdb_free(void*);
char* rocksdb_get(rocksdb_t*, const rocksdb_readoptions_t*, const char*, size_t, size_t*, char**);
char* rocksdb_get_cf(rocksdb_t*, const rocksdb_readoptions_t*, rocksdb_column_family_handle_t*, const char*, size_t, size_t*, char**);
rocksdb_column_family_metadata_t* rocksdb_get_column_family_metadata(rocksdb_t*);
rocksdb_column_family_metadata_t* rocksdb_get_column_family_metadata_cf(rocksdb_t*, rocksdb_column_family_handle_t*);
char* rocksdb_get_db_identity(rocksdb_t*, size_t*);
rocksdb_column_family_handle_t* rocksdb_get_default_column_family_handle(rocksdb_t*);
char* rocksdb_get_full_history_ts_low(rocksdb_t*, rocksdb_column_family_handle_t*, size_t*, char**); /* refused */
uint64_t rocksdb_get_latest_sequence_number(rocksdb_t*);
void rocksdb_get_options_from_string(const rocksdb_options_t*, const char*, rocksdb_options_t*, char**);
rocksdb_pinnableslice_t* rocksdb_get_pinned(rocksdb_t*, const rocksdb_readoptions_t*, const char*, size_t, char**);
rocksdb_pinnableslice_t* rocksdb_get_pinned_cf(rocksdb_t*, const rocksdb_readoptions_t*, rocksdb_column_family_handle_t*, const char*, size_t, char**);
rocksdb_wal_iterator_t* rocksdb_get_updates_since(rocksdb_t*, uint64_t, const rocksdb_wal_readoptions_t*, char**);
void rocksdb_increase_full_history_ts_low(rocksdb_t*, rocksdb_column_family_handle_t*, const char*, size_t, char**); /* refused */
void rocksdb_ingest_external_file(rocksdb_t*, const char* const*, size_t, const rocksdb_ingestexternalfileoptions_t*, char**);
void rocksdb_ingest_external_file_cf(rocksdb_t*, rocksdb_column_family_handle_t*, const char* const*, size_t, const rocksdb_ingestexternalfileoptions_t*, char**);
rocksdb_ingestexternalfileoptions_t* rocksdb_ingestexternalfileoptions_create(void);
void rocksdb_ingestexternalfileoptions_destroy(rocksdb_ingestexternalfileoptions_t*);
void rocksdb_ingestexternalfileoptions_set_allow_blocking_flush(rocksdb_ingestexternalfileoptions_t*, unsigned char); /* refused */
void rocksdb_ingestexternalfileoptions_set_allow_global_seqno(rocksdb_ingestexternalfileoptions_t*, unsigned char); /* refused */
void rocksdb_ingestexternalfileoptions_set_ingest_behind(rocksdb_ingestexternalfileoptions_t*, unsigned char); /* refused */
void rocksdb_ingestexternalfileoptions_set_move_files(rocksdb_ingestexternalfileoptions_t*, unsigned char);
void rocksdb_ingestexternalfileoptions_set_snapshot_consistency(rocksdb_ingestexternalfileoptions_t*, unsigned char); /* noted */
void rocksdb_iter_destroy(rocksdb_iterator_t*);
void rocksdb_iter_get_error(const rocksdb_iterator_t*, char**);
const char* rocksdb_iter_key(const rocksdb_iterator_t*, size_t*);
void rocksdb_iter_next(rocksdb_iterator_t*);
void rocksdb_iter_prev(rocksdb_iterator_t*);
void rocksdb_iter_refresh(const rocksdb_iterator_t*, char**);
void rocksdb_iter_seek(rocksdb_iterator_t*, const char*, size_t);
void rocksdb_iter_seek_for_prev(rocksdb_iterator_t*, const char*, size_t);
void rocksdb_iter_seek_to_first(rocksdb_iterator_t*);
void rocksdb_iter_seek_to_last(rocksdb_iterator_t*);
const char* rocksdb_iter_timestamp(const rocksdb_iterator_t*, size_t*); /* refused */
unsigned char rocksdb_iter_valid(const rocksdb_iterator_t*);
const char* rocksdb_iter_value(const rocksdb_iterator_t*, size_t*);
unsigned char rocksdb_key_may_exist(rocksdb_t*, const rocksdb_readoptions_t*, const char*, size_t, char**, size_t*, const char*, size_t, unsigned char*);
unsigned char rocksdb_key_may_exist_cf(rocksdb_t*, const rocksdb_readoptions_t*, rocksdb_column_family_handle_t*, const char*, size_t, char**, size_t*, const char*, size_t, unsigned char*);
char** rocksdb_list_column_families(const rocksdb_options_t*, const char*, size_t*, char**);
void rocksdb_list_column_families_destroy(char**, size_t);
const rocksdb_livefiles_t* rocksdb_livefiles(rocksdb_t*);
const char* rocksdb_livefiles_column_family_name(const rocksdb_livefiles_t*, int);
int rocksdb_livefiles_count(const rocksdb_livefiles_t*);
uint64_t rocksdb_livefiles_deletions(const rocksdb_livefiles_t*, int);
void rocksdb_livefiles_destroy(const rocksdb_livefiles_t*);
uint64_t rocksdb_livefiles_entries(const rocksdb_livefiles_t*, int);
const char* rocksdb_livefiles_largestkey(const rocksdb_livefiles_t*, int, size_t*);
int rocksdb_livefiles_level(const rocksdb_livefiles_t*, int);
const char* rocksdb_livefiles_name(const rocksdb_livefiles_t*, int);
size_t rocksdb_livefiles_size(const rocksdb_livefiles_t*, int);
const char* rocksdb_livefiles_smallestkey(const rocksdb_livefiles_t*, int, size_t*);
void rocksdb_load_latest_options(const char*, rocksdb_env_t*, bool, rocksdb_cache_t*, rocksdb_options_t**, size_t*, char***, rocksdb_options_t***, char**);
rocksdb_logger_t* rocksdb_logger_create_callback_logger(int, void (*)(void*, unsigned lev, char*, size_t), void*);
rocksdb_logger_t* rocksdb_logger_create_stderr_logger(int, const char*);
void rocksdb_logger_destroy(rocksdb_logger_t*);
rocksdb_lru_cache_options_t* rocksdb_lru_cache_options_create(void);
void rocksdb_lru_cache_options_destroy(rocksdb_lru_cache_options_t*);
void rocksdb_lru_cache_options_set_capacity(rocksdb_lru_cache_options_t*, size_t);
void rocksdb_lru_cache_options_set_num_shard_bits(rocksdb_lru_cache_options_t*, int); /* noted */
void rocksdb_memory_consumers_add_cache(rocksdb_memory_consumers_t*, rocksdb_cache_t*);
void rocksdb_memory_consumers_add_db(rocksdb_memory_consumers_t*, rocksdb_t*);
rocksdb_memory_consumers_t* rocksdb_memory_consumers_create(void);
void rocksdb_memory_consumers_destroy(rocksdb_memory_consumers_t*);
void rocksdb_merge(rocksdb_t*, const rocksdb_writeoptions_t*, const char*, size_t, const char*, size_t, char**);
void rocksdb_merge_cf(rocksdb_t*, const rocksdb_writeoptions_t*, rocksdb_column_family_handle_t*, const char*, size_t, const char*, size_t, char**);
rocksdb_mergeoperator_t* rocksdb_mergeoperator_create(void*, void (*)(void*), char* (*)(void*, const char*, size_t, const char*, size_t, const char* const*, const size_t*, int, unsigned char*, size_t*), char* (*)(void*, const char*, size_t, const char* const*, const size_t*, int, unsigned char*, size_t*), void (*)(void*, const char*, size_t), const char* (*)(void*));
void rocksdb_mergeoperator_destroy(rocksdb_mergeoperator_t*);
void rocksdb_multi_get(rocksdb_t*, const rocksdb_readoptions_t*, size_t, const char* const*, const size_t*, char**, size_t*, char**);
void rocksdb_multi_get_cf(rocksdb_t*, const rocksdb_readoptions_t*, const rocksdb_column_family_handle_t* const*, size_t, const char* const*, const size_t*, char**, size_t*, char**);
rocksdb_t* rocksdb_open(const rocksdb_options_t*, const char*, char**);
rocksdb_t* rocksdb_open_as_secondary(const rocksdb_options_t*, const char*, const char*, char**);
rocksdb_t* rocksdb_open_as_secondary_column_families(const rocksdb_options_t*, const char*, const char*, int, const char* const*, const rocksdb_options_t* const*, rocksdb_column_family_handle_t**, char**);
rocksdb_t* rocksdb_open_column_families(const rocksdb_options_t*, const char*, int, const char* const*, const rocksdb_options_t* const*, rocksdb_column_family_handle_t**, char**);
rocksdb_t* rocksdb_open_column_families_with_ttl(const rocksdb_options_t*, const char*, int, const char* const*, const rocksdb_options_t* const*, rocksdb_column_family_handle_t**, const int*, char**);
rocksdb_t* rocksdb_open_for_read_only(const rocksdb_options_t*, const char*, unsigned char, char**);
rocksdb_t* rocksdb_open_for_read_only_column_families(const rocksdb_options_t*, const char*, int, const char* const*, const rocksdb_options_t* const*, rocksdb_column_family_handle_t**, unsigned char, char**);
rocksdb_t* rocksdb_open_with_ttl(const rocksdb_options_t*, const char*, int, char**);
rocksdb_transaction_t* rocksdb_optimistictransaction_begin(rocksdb_optimistictransactiondb_t*, const rocksdb_writeoptions_t*, const rocksdb_optimistictransaction_options_t*, rocksdb_transaction_t*);
rocksdb_optimistictransaction_options_t* rocksdb_optimistictransaction_options_create(void);
void rocksdb_optimistictransaction_options_destroy(rocksdb_optimistictransaction_options_t*);
unsigned char rocksdb_optimistictransaction_options_get_set_snapshot(rocksdb_optimistictransaction_options_t*);
void rocksdb_optimistictransaction_options_set_set_snapshot(rocksdb_optimistictransaction_options_t*, unsigned char);
rocksdb_checkpoint_t* rocksdb_optimistictransactiondb_checkpoint_object_create(rocksdb_optimistictransactiondb_t*, char**);
void rocksdb_optimistictransactiondb_close(rocksdb_optimistictransactiondb_t*);
void rocksdb_optimistictransactiondb_close_base_db(rocksdb_t*);
rocksdb_t* rocksdb_optimistictransactiondb_get_base_db(rocksdb_optimistictransactiondb_t*);
rocksdb_optimistictransactiondb_t* rocksdb_optimistictransactiondb_open(const rocksdb_options_t*, const char*, char**);
rocksdb_optimistictransactiondb_t* rocksdb_optimistictransactiondb_open_column_families(const rocksdb_options_t*, const char*, int, const char* const*, const rocksdb_options_t* const*, rocksdb_column_family_handle_t**, char**);
int rocksdb_optimistictransactiondb_property_int(rocksdb_optimistictransactiondb_t*, const char*, uint64_t*);
char* rocksdb_optimistictransactiondb_property_value(rocksdb_optimistictransactiondb_t*, const char*);
void rocksdb_optimistictransactiondb_write(rocksdb_optimistictransactiondb_t*, const rocksdb_writeoptions_t*, rocksdb_writebatch_t*, char**);
void rocksdb_options_add_compact_on_deletion_collector_factory(rocksdb_options_t*, size_t, size_t);
void rocksdb_options_add_compact_on_deletion_collector_factory_del_ratio(rocksdb_options_t*, size_t, size_t, double);
void rocksdb_options_compaction_readahead_size(rocksdb_options_t*, size_t); /* noted */
rocksdb_options_t* rocksdb_options_create(void);
rocksdb_options_t* rocksdb_options_create_copy(rocksdb_options_t*);
void rocksdb_options_destroy(rocksdb_options_t*);
void rocksdb_options_enable_statistics(rocksdb_options_t*);
uint64_t rocksdb_options_get_WAL_size_limit_MB(rocksdb_options_t*);
uint64_t rocksdb_options_get_WAL_ttl_seconds(rocksdb_options_t*);
unsigned char rocksdb_options_get_advise_random_on_open(rocksdb_options_t*);
unsigned char rocksdb_options_get_allow_concurrent_memtable_write(rocksdb_options_t*);
unsigned char rocksdb_options_get_allow_ingest_behind(rocksdb_options_t*);
unsigned char rocksdb_options_get_allow_mmap_reads(rocksdb_options_t*);
unsigned char rocksdb_options_get_allow_mmap_writes(rocksdb_options_t*);
size_t rocksdb_options_get_arena_block_size(rocksdb_options_t*);
unsigned char rocksdb_options_get_atomic_flush(rocksdb_options_t*);
unsigned char rocksdb_options_get_avoid_unnecessary_blocking_io(rocksdb_options_t*);
uint64_t rocksdb_options_get_blob_compaction_readahead_size(rocksdb_options_t*);
int rocksdb_options_get_blob_compression_type(rocksdb_options_t*);
uint64_t rocksdb_options_get_blob_file_size(rocksdb_options_t*);
double rocksdb_options_get_blob_gc_age_cutoff(rocksdb_options_t*);
double rocksdb_options_get_blob_gc_force_threshold(rocksdb_options_t*);
uint32_t rocksdb_options_get_bloom_locality(rocksdb_options_t*);
int rocksdb_options_get_bottommost_compression(rocksdb_options_t*);
uint64_t rocksdb_options_get_bytes_per_sync(rocksdb_options_t*);
int rocksdb_options_get_compaction_pri(rocksdb_options_t*);
size_t rocksdb_options_get_compaction_readahead_size(rocksdb_options_t*);
int rocksdb_options_get_compaction_style(rocksdb_options_t*);
int rocksdb_options_get_compression(rocksdb_options_t*);
unsigned char rocksdb_options_get_create_if_missing(rocksdb_options_t*);
unsigned char rocksdb_options_get_create_missing_column_families(rocksdb_options_t*);
size_t rocksdb_options_get_db_write_buffer_size(rocksdb_options_t*);
uint64_t rocksdb_options_get_delete_obsolete_files_period_micros(rocksdb_options_t*);
unsigned char rocksdb_options_get_enable_blob_files(rocksdb_options_t*);
unsigned char rocksdb_options_get_enable_blob_gc(rocksdb_options_t*);
unsigned char rocksdb_options_get_enable_pipelined_write(rocksdb_options_t*);
unsigned char rocksdb_options_get_enable_write_thread_adaptive_yield(rocksdb_options_t*);
unsigned char rocksdb_options_get_error_if_exists(rocksdb_options_t*);
double rocksdb_options_get_experimental_mempurge_threshold(rocksdb_options_t*);
size_t rocksdb_options_get_hard_pending_compaction_bytes_limit(rocksdb_options_t*);
rocksdb_logger_t* rocksdb_options_get_info_log(rocksdb_options_t*);
int rocksdb_options_get_info_log_level(rocksdb_options_t*);
size_t rocksdb_options_get_inplace_update_num_locks(rocksdb_options_t*);
unsigned char rocksdb_options_get_inplace_update_support(rocksdb_options_t*);
unsigned char rocksdb_options_get_is_fd_close_on_exec(rocksdb_options_t*);
size_t rocksdb_options_get_keep_log_file_num(rocksdb_options_t*);
int rocksdb_options_get_level0_file_num_compaction_trigger(rocksdb_options_t*);
int rocksdb_options_get_level0_slowdown_writes_trigger(rocksdb_options_t*);
int rocksdb_options_get_level0_stop_writes_trigger(rocksdb_options_t*);
unsigned char rocksdb_options_get_level_compaction_dynamic_level_bytes(rocksdb_options_t*);
size_t rocksdb_options_get_log_file_time_to_roll(rocksdb_options_t*);
size_t rocksdb_options_get_manifest_preallocation_size(rocksdb_options_t*);
unsigned char rocksdb_options_get_manual_wal_flush(rocksdb_options_t*);
int rocksdb_options_get_max_background_compactions(rocksdb_options_t*);
int rocksdb_options_get_max_background_flushes(rocksdb_options_t*);
int rocksdb_options_get_max_background_jobs(rocksdb_options_t*);
uint64_t rocksdb_options_get_max_bytes_for_level_base(rocksdb_options_t*);
double rocksdb_options_get_max_bytes_for_level_multiplier(rocksdb_options_t*);
uint64_t rocksdb_options_get_max_compaction_bytes(rocksdb_options_t*);
int rocksdb_options_get_max_file_opening_threads(rocksdb_options_t*);
size_t rocksdb_options_get_max_log_file_size(rocksdb_options_t*);
size_t rocksdb_options_get_max_manifest_file_size(rocksdb_options_t*);
int rocksdb_options_get_max_open_files(rocksdb_options_t*);
uint64_t rocksdb_options_get_max_sequential_skip_in_iterations(rocksdb_options_t*);
uint32_t rocksdb_options_get_max_subcompactions(rocksdb_options_t*);
size_t rocksdb_options_get_max_successive_merges(rocksdb_options_t*);
uint64_t rocksdb_options_get_max_total_wal_size(rocksdb_options_t*);
int rocksdb_options_get_max_write_buffer_number(rocksdb_options_t*);
int64_t rocksdb_options_get_max_write_buffer_size_to_maintain(rocksdb_options_t*);
size_t rocksdb_options_get_memtable_huge_page_size(rocksdb_options_t*);
double rocksdb_options_get_memtable_prefix_bloom_size_ratio(rocksdb_options_t*);
uint64_t rocksdb_options_get_min_blob_size(rocksdb_options_t*);
int rocksdb_options_get_min_write_buffer_number_to_merge(rocksdb_options_t*);
int rocksdb_options_get_num_levels(rocksdb_options_t*);
unsigned char rocksdb_options_get_paranoid_checks(rocksdb_options_t*);
uint64_t rocksdb_options_get_periodic_compaction_seconds(rocksdb_options_t*);
size_t rocksdb_options_get_recycle_log_file_num(rocksdb_options_t*);
unsigned char rocksdb_options_get_skip_stats_update_on_db_open(rocksdb_options_t*);
size_t rocksdb_options_get_soft_pending_compaction_bytes_limit(rocksdb_options_t*);
int rocksdb_options_get_statistics_level(rocksdb_options_t*);
unsigned int rocksdb_options_get_stats_dump_period_sec(rocksdb_options_t*);
unsigned int rocksdb_options_get_stats_persist_period_sec(rocksdb_options_t*);
int rocksdb_options_get_table_cache_numshardbits(rocksdb_options_t*);
uint64_t rocksdb_options_get_target_file_size_base(rocksdb_options_t*);
int rocksdb_options_get_target_file_size_multiplier(rocksdb_options_t*);
unsigned char rocksdb_options_get_track_and_verify_wals_in_manifest(rocksdb_options_t*);
uint64_t rocksdb_options_get_ttl(rocksdb_options_t*);
unsigned char rocksdb_options_get_unordered_write(rocksdb_options_t*);
unsigned char rocksdb_options_get_use_adaptive_mutex(rocksdb_options_t*);
unsigned char rocksdb_options_get_use_direct_io_for_flush_and_compaction(rocksdb_options_t*);
unsigned char rocksdb_options_get_use_direct_reads(rocksdb_options_t*);
int rocksdb_options_get_use_fsync(rocksdb_options_t*);
uint64_t rocksdb_options_get_wal_bytes_per_sync(rocksdb_options_t*);
int rocksdb_options_get_wal_compression(rocksdb_options_t*);
int rocksdb_options_get_wal_recovery_mode(rocksdb_options_t*);
uint64_t rocksdb_options_get_writable_file_max_buffer_size(rocksdb_options_t*);
size_t rocksdb_options_get_write_buffer_size(rocksdb_options_t*);
unsigned char rocksdb_options_get_write_dbid_to_manifest(rocksdb_options_t*);
void rocksdb_options_increase_parallelism(rocksdb_options_t*, int);
void rocksdb_options_optimize_for_point_lookup(rocksdb_options_t*, uint64_t);
void rocksdb_options_optimize_level_style_compaction(rocksdb_options_t*, uint64_t);
void rocksdb_options_optimize_universal_style_compaction(rocksdb_options_t*, uint64_t);
void rocksdb_options_prepare_for_bulk_load(rocksdb_options_t*);
void rocksdb_options_set_WAL_size_limit_MB(rocksdb_options_t*, uint64_t); /* refused */
void rocksdb_options_set_WAL_ttl_seconds(rocksdb_options_t*, uint64_t); /* refused */
void rocksdb_options_set_advise_random_on_open(rocksdb_options_t*, unsigned char); /* noted */
void rocksdb_options_set_allow_concurrent_memtable_write(rocksdb_options_t*, unsigned char);
void rocksdb_options_set_allow_ingest_behind(rocksdb_options_t*, unsigned char); /* refused */
void rocksdb_options_set_allow_mmap_reads(rocksdb_options_t*, unsigned char);
void rocksdb_options_set_allow_mmap_writes(rocksdb_options_t*, unsigned char); /* noted */
void rocksdb_options_set_arena_block_size(rocksdb_options_t*, size_t); /* noted */
void rocksdb_options_set_atomic_flush(rocksdb_options_t*, unsigned char);
void rocksdb_options_set_avoid_unnecessary_blocking_io(rocksdb_options_t*, unsigned char); /* noted */
void rocksdb_options_set_blob_cache(rocksdb_options_t*, rocksdb_cache_t*); /* noted */
void rocksdb_options_set_blob_compaction_readahead_size(rocksdb_options_t*, uint64_t); /* noted */
void rocksdb_options_set_blob_compression_type(rocksdb_options_t*, int); /* noted */
void rocksdb_options_set_blob_file_size(rocksdb_options_t*, uint64_t); /* noted */
void rocksdb_options_set_blob_gc_age_cutoff(rocksdb_options_t*, double); /* noted */
void rocksdb_options_set_blob_gc_force_threshold(rocksdb_options_t*, double); /* noted */
void rocksdb_options_set_block_based_table_factory(rocksdb_options_t*, rocksdb_block_based_table_options_t*);
void rocksdb_options_set_bloom_locality(rocksdb_options_t*, uint32_t); /* noted */
void rocksdb_options_set_bottommost_compression(rocksdb_options_t*, int);
void rocksdb_options_set_bottommost_compression_options(rocksdb_options_t*, int, int, int, int, unsigned char);
void rocksdb_options_set_bottommost_compression_options_zstd_max_train_bytes(rocksdb_options_t*, int, unsigned char); /* noted */
void rocksdb_options_set_bytes_per_sync(rocksdb_options_t*, uint64_t); /* noted */
void rocksdb_options_set_cf_paths(rocksdb_options_t*, const rocksdb_dbpath_t**, size_t);
void rocksdb_options_set_compaction_filter(rocksdb_options_t*, rocksdb_compactionfilter_t*);
void rocksdb_options_set_compaction_filter_factory(rocksdb_options_t*, rocksdb_compactionfilterfactory_t*);
void rocksdb_options_set_compaction_pri(rocksdb_options_t*, int);
void rocksdb_options_set_compaction_style(rocksdb_options_t*, int);
void rocksdb_options_set_comparator(rocksdb_options_t*, rocksdb_comparator_t*);
void rocksdb_options_set_compression(rocksdb_options_t*, int);
void rocksdb_options_set_compression_options(rocksdb_options_t*, int, int, int, int);
void rocksdb_options_set_compression_options_parallel_threads(rocksdb_options_t*, int); /* noted */
void rocksdb_options_set_compression_options_zstd_max_train_bytes(rocksdb_options_t*, int); /* noted */
void rocksdb_options_set_compression_per_level(rocksdb_options_t*, const int*, size_t);
void rocksdb_options_set_create_if_missing(rocksdb_options_t*, unsigned char);
void rocksdb_options_set_create_missing_column_families(rocksdb_options_t*, unsigned char);
void rocksdb_options_set_cuckoo_table_factory(rocksdb_options_t*, rocksdb_cuckoo_table_options_t*); /* noted */
void rocksdb_options_set_db_log_dir(rocksdb_options_t*, const char*); /* noted */
void rocksdb_options_set_db_paths(rocksdb_options_t*, const rocksdb_dbpath_t**, size_t);
void rocksdb_options_set_db_write_buffer_size(rocksdb_options_t*, size_t);
void rocksdb_options_set_delete_obsolete_files_period_micros(rocksdb_options_t*, uint64_t); /* noted */
void rocksdb_options_set_disable_auto_compactions(rocksdb_options_t*, int);
void rocksdb_options_set_dump_malloc_stats(rocksdb_options_t*, unsigned char); /* noted */
void rocksdb_options_set_enable_blob_files(rocksdb_options_t*, unsigned char); /* noted */
void rocksdb_options_set_enable_blob_gc(rocksdb_options_t*, unsigned char); /* noted */
void rocksdb_options_set_enable_pipelined_write(rocksdb_options_t*, unsigned char); /* noted */
void rocksdb_options_set_enable_write_thread_adaptive_yield(rocksdb_options_t*, unsigned char); /* noted */
void rocksdb_options_set_env(rocksdb_options_t*, rocksdb_env_t*);
void rocksdb_options_set_error_if_exists(rocksdb_options_t*, unsigned char);
void rocksdb_options_set_experimental_mempurge_threshold(rocksdb_options_t*, double); /* noted */
void rocksdb_options_set_fifo_compaction_options(rocksdb_options_t*, rocksdb_fifo_compaction_options_t*);
void rocksdb_options_set_hard_pending_compaction_bytes_limit(rocksdb_options_t*, size_t);
void rocksdb_options_set_hash_link_list_rep(rocksdb_options_t*, size_t); /* noted */
void rocksdb_options_set_hash_skip_list_rep(rocksdb_options_t*, size_t, int32_t, int32_t); /* noted */
void rocksdb_options_set_info_log(rocksdb_options_t*, rocksdb_logger_t*);
void rocksdb_options_set_info_log_level(rocksdb_options_t*, int); /* noted */
void rocksdb_options_set_inplace_update_num_locks(rocksdb_options_t*, size_t); /* noted */
void rocksdb_options_set_inplace_update_support(rocksdb_options_t*, unsigned char); /* noted */
void rocksdb_options_set_is_fd_close_on_exec(rocksdb_options_t*, unsigned char); /* noted */
void rocksdb_options_set_keep_log_file_num(rocksdb_options_t*, size_t); /* noted */
void rocksdb_options_set_level0_file_num_compaction_trigger(rocksdb_options_t*, int);
void rocksdb_options_set_level0_slowdown_writes_trigger(rocksdb_options_t*, int);
void rocksdb_options_set_level0_stop_writes_trigger(rocksdb_options_t*, int);
void rocksdb_options_set_level_compaction_dynamic_level_bytes(rocksdb_options_t*, unsigned char);
void rocksdb_options_set_log_file_time_to_roll(rocksdb_options_t*, size_t); /* noted */
void rocksdb_options_set_manifest_preallocation_size(rocksdb_options_t*, size_t); /* noted */
void rocksdb_options_set_manual_wal_flush(rocksdb_options_t*, unsigned char);
void rocksdb_options_set_max_background_compactions(rocksdb_options_t*, int);
void rocksdb_options_set_max_background_flushes(rocksdb_options_t*, int);
void rocksdb_options_set_max_background_jobs(rocksdb_options_t*, int);
void rocksdb_options_set_max_bytes_for_level_base(rocksdb_options_t*, uint64_t);
void rocksdb_options_set_max_bytes_for_level_multiplier(rocksdb_options_t*, double);
void rocksdb_options_set_max_bytes_for_level_multiplier_additional(rocksdb_options_t*, int*, size_t); /* noted */
void rocksdb_options_set_max_compaction_bytes(rocksdb_options_t*, uint64_t); /* noted */
void rocksdb_options_set_max_file_opening_threads(rocksdb_options_t*, int); /* noted */
void rocksdb_options_set_max_log_file_size(rocksdb_options_t*, size_t); /* noted */
void rocksdb_options_set_max_manifest_file_size(rocksdb_options_t*, size_t); /* noted */
void rocksdb_options_set_max_open_files(rocksdb_options_t*, int);
void rocksdb_options_set_max_sequential_skip_in_iterations(rocksdb_options_t*, uint64_t); /* noted */
void rocksdb_options_set_max_subcompactions(rocksdb_options_t*, uint32_t);
void rocksdb_options_set_max_successive_merges(rocksdb_options_t*, size_t); /* noted */
void rocksdb_options_set_max_total_wal_size(rocksdb_options_t*, uint64_t);
void rocksdb_options_set_max_write_buffer_number(rocksdb_options_t*, int);
void rocksdb_options_set_max_write_buffer_size_to_maintain(rocksdb_options_t*, int64_t); /* noted */
void rocksdb_options_set_memtable_huge_page_size(rocksdb_options_t*, size_t); /* noted */
void rocksdb_options_set_memtable_prefix_bloom_size_ratio(rocksdb_options_t*, double); /* noted */
void rocksdb_options_set_memtable_vector_rep(rocksdb_options_t*); /* noted */
void rocksdb_options_set_memtable_whole_key_filtering(rocksdb_options_t*, unsigned char); /* noted */
void rocksdb_options_set_merge_operator(rocksdb_options_t*, rocksdb_mergeoperator_t*);
void rocksdb_options_set_min_blob_size(rocksdb_options_t*, uint64_t); /* noted */
void rocksdb_options_set_min_level_to_compress(rocksdb_options_t*, int); /* noted */
void rocksdb_options_set_min_write_buffer_number_to_merge(rocksdb_options_t*, int); /* noted */
void rocksdb_options_set_num_levels(rocksdb_options_t*, int); /* noted */
void rocksdb_options_set_optimize_filters_for_hits(rocksdb_options_t*, int); /* noted */
void rocksdb_options_set_paranoid_checks(rocksdb_options_t*, unsigned char); /* noted */
void rocksdb_options_set_periodic_compaction_seconds(rocksdb_options_t*, uint64_t);
void rocksdb_options_set_plain_table_factory(rocksdb_options_t*, uint32_t, int, double, size_t, size_t, char, unsigned char, unsigned char); /* noted */
void rocksdb_options_set_prefix_extractor(rocksdb_options_t*, rocksdb_slicetransform_t*);
void rocksdb_options_set_ratelimiter(rocksdb_options_t*, rocksdb_ratelimiter_t*);
void rocksdb_options_set_recycle_log_file_num(rocksdb_options_t*, size_t); /* noted */
void rocksdb_options_set_report_bg_io_stats(rocksdb_options_t*, int); /* noted */
void rocksdb_options_set_row_cache(rocksdb_options_t*, rocksdb_cache_t*); /* noted */
void rocksdb_options_set_skip_stats_update_on_db_open(rocksdb_options_t*, unsigned char); /* noted */
void rocksdb_options_set_soft_pending_compaction_bytes_limit(rocksdb_options_t*, size_t);
void rocksdb_options_set_statistics_level(rocksdb_options_t*, int); /* noted */
void rocksdb_options_set_stats_dump_period_sec(rocksdb_options_t*, unsigned int); /* noted */
void rocksdb_options_set_stats_persist_period_sec(rocksdb_options_t*, unsigned int); /* noted */
void rocksdb_options_set_table_cache_numshardbits(rocksdb_options_t*, int); /* noted */
void rocksdb_options_set_target_file_size_base(rocksdb_options_t*, uint64_t);
void rocksdb_options_set_target_file_size_multiplier(rocksdb_options_t*, int); /* noted */
void rocksdb_options_set_track_and_verify_wals_in_manifest(rocksdb_options_t*, unsigned char); /* noted */
void rocksdb_options_set_ttl(rocksdb_options_t*, uint64_t);
void rocksdb_options_set_uint64add_merge_operator(rocksdb_options_t*);
void rocksdb_options_set_universal_compaction_options(rocksdb_options_t*, rocksdb_universal_compaction_options_t*);
void rocksdb_options_set_unordered_write(rocksdb_options_t*, unsigned char); /* noted */
void rocksdb_options_set_use_adaptive_mutex(rocksdb_options_t*, unsigned char); /* noted */
void rocksdb_options_set_use_direct_io_for_flush_and_compaction(rocksdb_options_t*, unsigned char);
void rocksdb_options_set_use_direct_reads(rocksdb_options_t*, unsigned char);
void rocksdb_options_set_use_fsync(rocksdb_options_t*, int); /* noted */
void rocksdb_options_set_wal_bytes_per_sync(rocksdb_options_t*, uint64_t); /* noted */
void rocksdb_options_set_wal_compression(rocksdb_options_t*, int); /* noted */
void rocksdb_options_set_wal_dir(rocksdb_options_t*, const char*); /* refused */
void rocksdb_options_set_wal_recovery_mode(rocksdb_options_t*, int);
void rocksdb_options_set_writable_file_max_buffer_size(rocksdb_options_t*, uint64_t); /* noted */
void rocksdb_options_set_write_buffer_manager(rocksdb_options_t*, rocksdb_write_buffer_manager_t*);
void rocksdb_options_set_write_buffer_size(rocksdb_options_t*, size_t);
void rocksdb_options_set_write_dbid_to_manifest(rocksdb_options_t*, unsigned char); /* noted */
void rocksdb_options_statistics_get_histogram_data(rocksdb_options_t*, uint32_t, rocksdb_statistics_histogram_data_t*);
char* rocksdb_options_statistics_get_string(rocksdb_options_t*);
uint64_t rocksdb_options_statistics_get_ticker_count(rocksdb_options_t*, uint32_t);
rocksdb_perfcontext_t* rocksdb_perfcontext_create(void);
void rocksdb_perfcontext_destroy(rocksdb_perfcontext_t*);
uint64_t rocksdb_perfcontext_metric(rocksdb_perfcontext_t*, int);
char* rocksdb_perfcontext_report(rocksdb_perfcontext_t*, unsigned char);
void rocksdb_perfcontext_reset(rocksdb_perfcontext_t*);
void rocksdb_pinnableslice_destroy(rocksdb_pinnableslice_t*);
const char* rocksdb_pinnableslice_value(const rocksdb_pinnableslice_t*, size_t*);
int rocksdb_property_int(rocksdb_t*, const char*, uint64_t*);
int rocksdb_property_int_cf(rocksdb_t*, rocksdb_column_family_handle_t*, const char*, uint64_t*);
char* rocksdb_property_value(rocksdb_t*, const char*);
char* rocksdb_property_value_cf(rocksdb_t*, rocksdb_column_family_handle_t*, const char*);
void rocksdb_put(rocksdb_t*, const rocksdb_writeoptions_t*, const char*, size_t, const char*, size_t, char**);
void rocksdb_put_cf(rocksdb_t*, const rocksdb_writeoptions_t*, rocksdb_column_family_handle_t*, const char*, size_t, const char*, size_t, char**);
void rocksdb_put_cf_with_ts(rocksdb_t*, const rocksdb_writeoptions_t*, rocksdb_column_family_handle_t*, const char*, size_t, const char*, size_t, const char*, size_t, char**); /* refused */
void rocksdb_put_with_ts(rocksdb_t*, const rocksdb_writeoptions_t*, const char*, size_t, const char*, size_t, const char*, size_t, char**); /* refused */
rocksdb_ratelimiter_t* rocksdb_ratelimiter_create(int64_t, int64_t, int32_t);
rocksdb_ratelimiter_t* rocksdb_ratelimiter_create_auto_tuned(int64_t, int64_t, int32_t);
void rocksdb_ratelimiter_destroy(rocksdb_ratelimiter_t*);
rocksdb_readoptions_t* rocksdb_readoptions_create(void);
void rocksdb_readoptions_destroy(rocksdb_readoptions_t*);
unsigned char rocksdb_readoptions_get_async_io(rocksdb_readoptions_t*);
unsigned char rocksdb_readoptions_get_background_purge_on_iterator_cleanup(rocksdb_readoptions_t*);
uint64_t rocksdb_readoptions_get_deadline(rocksdb_readoptions_t*);
unsigned char rocksdb_readoptions_get_fill_cache(rocksdb_readoptions_t*);
unsigned char rocksdb_readoptions_get_ignore_range_deletions(rocksdb_readoptions_t*);
uint64_t rocksdb_readoptions_get_io_timeout(rocksdb_readoptions_t*);
uint64_t rocksdb_readoptions_get_max_skippable_internal_keys(rocksdb_readoptions_t*);
unsigned char rocksdb_readoptions_get_pin_data(rocksdb_readoptions_t*);
unsigned char rocksdb_readoptions_get_prefix_same_as_start(rocksdb_readoptions_t*);
int rocksdb_readoptions_get_read_tier(rocksdb_readoptions_t*);
size_t rocksdb_readoptions_get_readahead_size(rocksdb_readoptions_t*);
unsigned char rocksdb_readoptions_get_tailing(rocksdb_readoptions_t*);
unsigned char rocksdb_readoptions_get_total_order_seek(rocksdb_readoptions_t*);
unsigned char rocksdb_readoptions_get_verify_checksums(rocksdb_readoptions_t*);
void rocksdb_readoptions_set_async_io(rocksdb_readoptions_t*, unsigned char); /* noted */
void rocksdb_readoptions_set_auto_readahead_size(rocksdb_readoptions_t*, unsigned char); /* noted */
void rocksdb_readoptions_set_background_purge_on_iterator_cleanup(rocksdb_readoptions_t*, unsigned char); /* noted */
void rocksdb_readoptions_set_deadline(rocksdb_readoptions_t*, uint64_t); /* noted */
void rocksdb_readoptions_set_fill_cache(rocksdb_readoptions_t*, unsigned char);
void rocksdb_readoptions_set_ignore_range_deletions(rocksdb_readoptions_t*, unsigned char); /* refused */
void rocksdb_readoptions_set_io_timeout(rocksdb_readoptions_t*, uint64_t); /* noted */
void rocksdb_readoptions_set_iter_start_ts(rocksdb_readoptions_t*, const char*, size_t); /* refused */
void rocksdb_readoptions_set_iterate_lower_bound(rocksdb_readoptions_t*, const char*, size_t);
void rocksdb_readoptions_set_iterate_upper_bound(rocksdb_readoptions_t*, const char*, size_t);
void rocksdb_readoptions_set_max_skippable_internal_keys(rocksdb_readoptions_t*, uint64_t); /* noted */
void rocksdb_readoptions_set_pin_data(rocksdb_readoptions_t*, unsigned char);
void rocksdb_readoptions_set_prefix_same_as_start(rocksdb_readoptions_t*, unsigned char);
void rocksdb_readoptions_set_read_tier(rocksdb_readoptions_t*, int);
void rocksdb_readoptions_set_readahead_size(rocksdb_readoptions_t*, size_t); /* noted */
void rocksdb_readoptions_set_snapshot(rocksdb_readoptions_t*, const rocksdb_snapshot_t*);
void rocksdb_readoptions_set_tailing(rocksdb_readoptions_t*, unsigned char);
void rocksdb_readoptions_set_timestamp(rocksdb_readoptions_t*, const char*, size_t); /* refused */
void rocksdb_readoptions_set_total_order_seek(rocksdb_readoptions_t*, unsigned char); /* noted */
void rocksdb_readoptions_set_verify_checksums(rocksdb_readoptions_t*, unsigned char); /* noted */
void rocksdb_release_snapshot(rocksdb_t*, const rocksdb_snapshot_t*);
void rocksdb_repair_db(const rocksdb_options_t*, const char*, char**);
rocksdb_restore_options_t* rocksdb_restore_options_create(void);
void rocksdb_restore_options_destroy(rocksdb_restore_options_t*);
void rocksdb_restore_options_set_keep_log_files(rocksdb_restore_options_t*, int);
void rocksdb_set_options(rocksdb_t*, int, const char* const*, const char* const*, char**);
void rocksdb_set_options_cf(rocksdb_t*, rocksdb_column_family_handle_t*, int, const char* const*, const char* const*, char**);
void rocksdb_set_perf_level(int);
void rocksdb_singledelete(rocksdb_t*, const rocksdb_writeoptions_t*, const char*, size_t, char**);
void rocksdb_singledelete_cf(rocksdb_t*, const rocksdb_writeoptions_t*, rocksdb_column_family_handle_t*, const char*, size_t, char**);
rocksdb_slicetransform_t* rocksdb_slicetransform_create(void*, void (*)(void*), char* (*)(void*, const char*, size_t, size_t*), unsigned char (*)(void*, const char*, size_t), const char* (*)(void*));
rocksdb_slicetransform_t* rocksdb_slicetransform_create_fixed_prefix(size_t);
rocksdb_slicetransform_t* rocksdb_slicetransform_create_noop(void);
void rocksdb_slicetransform_destroy(rocksdb_slicetransform_t*);
uint64_t rocksdb_snapshot_get_sequence_number(const rocksdb_snapshot_t*);
void rocksdb_sstfilewriter_add(rocksdb_sstfilewriter_t*, const char*, size_t, const char*, size_t, char**);
rocksdb_sstfilewriter_t* rocksdb_sstfilewriter_create(const rocksdb_envoptions_t*, const rocksdb_options_t*);
void rocksdb_sstfilewriter_delete(rocksdb_sstfilewriter_t*, const char*, size_t, char**);
void rocksdb_sstfilewriter_delete_range(rocksdb_sstfilewriter_t*, const char*, size_t, const char*, size_t, char**);
void rocksdb_sstfilewriter_delete_with_ts(rocksdb_sstfilewriter_t*, const char*, size_t, const char*, size_t, char**); /* refused */
void rocksdb_sstfilewriter_destroy(rocksdb_sstfilewriter_t*);
void rocksdb_sstfilewriter_file_size(rocksdb_sstfilewriter_t*, uint64_t*);
void rocksdb_sstfilewriter_finish(rocksdb_sstfilewriter_t*, char**);
void rocksdb_sstfilewriter_merge(rocksdb_sstfilewriter_t*, const char*, size_t, const char*, size_t, char**);
void rocksdb_sstfilewriter_open(rocksdb_sstfilewriter_t*, const char*, char**);
void rocksdb_sstfilewriter_put(rocksdb_sstfilewriter_t*, const char*, size_t, const char*, size_t, char**);
void rocksdb_sstfilewriter_put_with_ts(rocksdb_sstfilewriter_t*, const char*, size_t, const char*, size_t, const char*, size_t, char**); /* refused */
rocksdb_statistics_histogram_data_t* rocksdb_statistics_histogram_data_create(void);
void rocksdb_statistics_histogram_data_destroy(rocksdb_statistics_histogram_data_t*);
double rocksdb_statistics_histogram_data_get_average(rocksdb_statistics_histogram_data_t*);
uint64_t rocksdb_statistics_histogram_data_get_count(rocksdb_statistics_histogram_data_t*);
double rocksdb_statistics_histogram_data_get_max(rocksdb_statistics_histogram_data_t*);
double rocksdb_statistics_histogram_data_get_median(rocksdb_statistics_histogram_data_t*);
double rocksdb_statistics_histogram_data_get_min(rocksdb_statistics_histogram_data_t*);
double rocksdb_statistics_histogram_data_get_p95(rocksdb_statistics_histogram_data_t*);
double rocksdb_statistics_histogram_data_get_p99(rocksdb_statistics_histogram_data_t*);
double rocksdb_statistics_histogram_data_get_std_dev(rocksdb_statistics_histogram_data_t*);
uint64_t rocksdb_statistics_histogram_data_get_sum(rocksdb_statistics_histogram_data_t*);
rocksdb_transaction_t* rocksdb_transaction_begin(rocksdb_transactiondb_t*, const rocksdb_writeoptions_t*, const rocksdb_transaction_options_t*, rocksdb_transaction_t*);
void rocksdb_transaction_commit(rocksdb_transaction_t*, char**);
rocksdb_iterator_t* rocksdb_transaction_create_iterator(rocksdb_transaction_t*, const rocksdb_readoptions_t*);
rocksdb_iterator_t* rocksdb_transaction_create_iterator_cf(rocksdb_transaction_t*, const rocksdb_readoptions_t*, rocksdb_column_family_handle_t*);
void rocksdb_transaction_delete(rocksdb_transaction_t*, const char*, size_t, char**);
void rocksdb_transaction_delete_cf(rocksdb_transaction_t*, rocksdb_column_family_handle_t*, const char*, size_t, char**);
void rocksdb_transaction_destroy(rocksdb_transaction_t*);
char* rocksdb_transaction_get(rocksdb_transaction_t*, const rocksdb_readoptions_t*, const char*, size_t, size_t*, char**);
char* rocksdb_transaction_get_cf(rocksdb_transaction_t*, const rocksdb_readoptions_t*, rocksdb_column_family_handle_t*, const char*, size_t, size_t*, char**);
char* rocksdb_transaction_get_for_update(rocksdb_transaction_t*, const rocksdb_readoptions_t*, const char*, size_t, size_t*, unsigned char, char**);
char* rocksdb_transaction_get_for_update_cf(rocksdb_transaction_t*, const rocksdb_readoptions_t*, rocksdb_column_family_handle_t*, const char*, size_t, size_t*, unsigned char, char**);
char* rocksdb_transaction_get_name(rocksdb_transaction_t*, size_t*);
rocksdb_pinnableslice_t* rocksdb_transaction_get_pinned(rocksdb_transaction_t*, const rocksdb_readoptions_t*, const char*, size_t, char**);
rocksdb_pinnableslice_t* rocksdb_transaction_get_pinned_cf(rocksdb_transaction_t*, const rocksdb_readoptions_t*, rocksdb_column_family_handle_t*, const char*, size_t, char**);
rocksdb_pinnableslice_t* rocksdb_transaction_get_pinned_for_update(rocksdb_transaction_t*, const rocksdb_readoptions_t*, const char*, size_t, unsigned char, char**);
rocksdb_pinnableslice_t* rocksdb_transaction_get_pinned_for_update_cf(rocksdb_transaction_t*, const rocksdb_readoptions_t*, rocksdb_column_family_handle_t*, const char*, size_t, unsigned char, char**);
const rocksdb_snapshot_t* rocksdb_transaction_get_snapshot(rocksdb_transaction_t*);
void rocksdb_transaction_merge(rocksdb_transaction_t*, const char*, size_t, const char*, size_t, char**);
void rocksdb_transaction_merge_cf(rocksdb_transaction_t*, rocksdb_column_family_handle_t*, const char*, size_t, const char*, size_t, char**);
void rocksdb_transaction_multi_get(rocksdb_transaction_t*, const rocksdb_readoptions_t*, size_t, const char* const*, const size_t*, char**, size_t*, char**);
void rocksdb_transaction_multi_get_cf(rocksdb_transaction_t*, const rocksdb_readoptions_t*, const rocksdb_column_family_handle_t* const*, size_t, const char* const*, const size_t*, char**, size_t*, char**);
rocksdb_transaction_options_t* rocksdb_transaction_options_create(void);
void rocksdb_transaction_options_destroy(rocksdb_transaction_options_t*);
unsigned char rocksdb_transaction_options_get_deadlock_detect(rocksdb_transaction_options_t*);
int64_t rocksdb_transaction_options_get_deadlock_detect_depth(rocksdb_transaction_options_t*);
int64_t rocksdb_transaction_options_get_expiration(rocksdb_transaction_options_t*);
int64_t rocksdb_transaction_options_get_lock_timeout(rocksdb_transaction_options_t*);
size_t rocksdb_transaction_options_get_max_write_batch_size(rocksdb_transaction_options_t*);
unsigned char rocksdb_transaction_options_get_set_snapshot(rocksdb_transaction_options_t*);
unsigned char rocksdb_transaction_options_get_skip_prepare(rocksdb_transaction_options_t*);
void rocksdb_transaction_options_set_deadlock_detect(rocksdb_transaction_options_t*, unsigned char); /* noted */
void rocksdb_transaction_options_set_deadlock_detect_depth(rocksdb_transaction_options_t*, int64_t); /* noted */
void rocksdb_transaction_options_set_expiration(rocksdb_transaction_options_t*, int64_t); /* noted */
void rocksdb_transaction_options_set_lock_timeout(rocksdb_transaction_options_t*, int64_t);
void rocksdb_transaction_options_set_max_write_batch_size(rocksdb_transaction_options_t*, size_t); /* noted */
void rocksdb_transaction_options_set_set_snapshot(rocksdb_transaction_options_t*, unsigned char);
void rocksdb_transaction_options_set_skip_prepare(rocksdb_transaction_options_t*, unsigned char);
void rocksdb_transaction_prepare(rocksdb_transaction_t*, char**);
void rocksdb_transaction_put(rocksdb_transaction_t*, const char*, size_t, const char*, size_t, char**);
void rocksdb_transaction_put_cf(rocksdb_transaction_t*, rocksdb_column_family_handle_t*, const char*, size_t, const char*, size_t, char**);
void rocksdb_transaction_rollback(rocksdb_transaction_t*, char**);
void rocksdb_transaction_rollback_to_savepoint(rocksdb_transaction_t*, char**);
void rocksdb_transaction_set_name(rocksdb_transaction_t*, const char*, size_t, char**);
void rocksdb_transaction_set_savepoint(rocksdb_transaction_t*);
rocksdb_checkpoint_t* rocksdb_transactiondb_checkpoint_object_create(rocksdb_transactiondb_t*, char**);
void rocksdb_transactiondb_close(rocksdb_transactiondb_t*);
void rocksdb_transactiondb_close_base_db(rocksdb_t*);
rocksdb_column_family_handle_t* rocksdb_transactiondb_create_column_family(rocksdb_transactiondb_t*, const rocksdb_options_t*, const char*, char**);
rocksdb_iterator_t* rocksdb_transactiondb_create_iterator(rocksdb_transactiondb_t*, const rocksdb_readoptions_t*);
rocksdb_iterator_t* rocksdb_transactiondb_create_iterator_cf(rocksdb_transactiondb_t*, const rocksdb_readoptions_t*, rocksdb_column_family_handle_t*);
const rocksdb_snapshot_t* rocksdb_transactiondb_create_snapshot(rocksdb_transactiondb_t*);
void rocksdb_transactiondb_delete(rocksdb_transactiondb_t*, const rocksdb_writeoptions_t*, const char*, size_t, char**);
void rocksdb_transactiondb_delete_cf(rocksdb_transactiondb_t*, const rocksdb_writeoptions_t*, rocksdb_column_family_handle_t*, const char*, size_t, char**);
void rocksdb_transactiondb_flush(rocksdb_transactiondb_t*, const rocksdb_flushoptions_t*, char**);
void rocksdb_transactiondb_flush_cf(rocksdb_transactiondb_t*, const rocksdb_flushoptions_t*, rocksdb_column_family_handle_t*, char**);
void rocksdb_transactiondb_flush_cfs(rocksdb_transactiondb_t*, const rocksdb_flushoptions_t*, rocksdb_column_family_handle_t**, int, char**);
void rocksdb_transactiondb_flush_wal(rocksdb_transactiondb_t*, unsigned char, char**);
char* rocksdb_transactiondb_get(rocksdb_transactiondb_t*, const rocksdb_readoptions_t*, const char*, size_t, size_t*, char**);
rocksdb_t* rocksdb_transactiondb_get_base_db(rocksdb_transactiondb_t*);
char* rocksdb_transactiondb_get_cf(rocksdb_transactiondb_t*, const rocksdb_readoptions_t*, rocksdb_column_family_handle_t*, const char*, size_t, size_t*, char**);
rocksdb_pinnableslice_t* rocksdb_transactiondb_get_pinned(rocksdb_transactiondb_t*, const rocksdb_readoptions_t*, const char*, size_t, char**);
rocksdb_pinnableslice_t* rocksdb_transactiondb_get_pinned_cf(rocksdb_transactiondb_t*, const rocksdb_readoptions_t*, rocksdb_column_family_handle_t*, const char*, size_t, char**);
rocksdb_transaction_t** rocksdb_transactiondb_get_prepared_transactions(rocksdb_transactiondb_t*, size_t*);
void rocksdb_transactiondb_merge(rocksdb_transactiondb_t*, const rocksdb_writeoptions_t*, const char*, size_t, const char*, size_t, char**);
void rocksdb_transactiondb_merge_cf(rocksdb_transactiondb_t*, const rocksdb_writeoptions_t*, rocksdb_column_family_handle_t*, const char*, size_t, const char*, size_t, char**);
void rocksdb_transactiondb_multi_get(rocksdb_transactiondb_t*, const rocksdb_readoptions_t*, size_t, const char* const*, const size_t*, char**, size_t*, char**);
void rocksdb_transactiondb_multi_get_cf(rocksdb_transactiondb_t*, const rocksdb_readoptions_t*, const rocksdb_column_family_handle_t* const*, size_t, const char* const*, const size_t*, char**, size_t*, char**);
rocksdb_transactiondb_t* rocksdb_transactiondb_open(const rocksdb_options_t*, const rocksdb_transactiondb_options_t*, const char*, char**);
rocksdb_transactiondb_t* rocksdb_transactiondb_open_column_families(const rocksdb_options_t*, const rocksdb_transactiondb_options_t*, const char*, int, const char* const*, const rocksdb_options_t* const*, rocksdb_column_family_handle_t**, char**);
rocksdb_transactiondb_options_t* rocksdb_transactiondb_options_create(void);
void rocksdb_transactiondb_options_destroy(rocksdb_transactiondb_options_t*);
int64_t rocksdb_transactiondb_options_get_default_lock_timeout(rocksdb_transactiondb_options_t*);
int64_t rocksdb_transactiondb_options_get_max_num_locks(rocksdb_transactiondb_options_t*);
size_t rocksdb_transactiondb_options_get_num_stripes(rocksdb_transactiondb_options_t*);
int64_t rocksdb_transactiondb_options_get_transaction_lock_timeout(rocksdb_transactiondb_options_t*);
void rocksdb_transactiondb_options_set_default_lock_timeout(rocksdb_transactiondb_options_t*, int64_t);
void rocksdb_transactiondb_options_set_max_num_locks(rocksdb_transactiondb_options_t*, int64_t);
void rocksdb_transactiondb_options_set_num_stripes(rocksdb_transactiondb_options_t*, size_t); /* noted */
void rocksdb_transactiondb_options_set_transaction_lock_timeout(rocksdb_transactiondb_options_t*, int64_t);
int rocksdb_transactiondb_property_int(rocksdb_transactiondb_t*, const char*, uint64_t*);
char* rocksdb_transactiondb_property_value(rocksdb_transactiondb_t*, const char*);
void rocksdb_transactiondb_put(rocksdb_transactiondb_t*, const rocksdb_writeoptions_t*, const char*, size_t, const char*, size_t, char**);
void rocksdb_transactiondb_put_cf(rocksdb_transactiondb_t*, const rocksdb_writeoptions_t*, rocksdb_column_family_handle_t*, const char*, size_t, const char*, size_t, char**);
void rocksdb_transactiondb_release_snapshot(rocksdb_transactiondb_t*, const rocksdb_snapshot_t*);
void rocksdb_transactiondb_write(rocksdb_transactiondb_t*, const rocksdb_writeoptions_t*, rocksdb_writebatch_t*, char**);
void rocksdb_try_catch_up_with_primary(rocksdb_t*, char**);
rocksdb_universal_compaction_options_t* rocksdb_universal_compaction_options_create(void);
void rocksdb_universal_compaction_options_destroy(rocksdb_universal_compaction_options_t*);
int rocksdb_universal_compaction_options_get_compression_size_percent(rocksdb_universal_compaction_options_t*);
int rocksdb_universal_compaction_options_get_max_merge_width(rocksdb_universal_compaction_options_t*);
int rocksdb_universal_compaction_options_get_max_size_amplification_percent(rocksdb_universal_compaction_options_t*);
int rocksdb_universal_compaction_options_get_min_merge_width(rocksdb_universal_compaction_options_t*);
int rocksdb_universal_compaction_options_get_size_ratio(rocksdb_universal_compaction_options_t*);
int rocksdb_universal_compaction_options_get_stop_style(rocksdb_universal_compaction_options_t*);
void rocksdb_universal_compaction_options_set_compression_size_percent(rocksdb_universal_compaction_options_t*, int); /* noted */
void rocksdb_universal_compaction_options_set_max_merge_width(rocksdb_universal_compaction_options_t*, int);
void rocksdb_universal_compaction_options_set_max_size_amplification_percent(rocksdb_universal_compaction_options_t*, int);
void rocksdb_universal_compaction_options_set_min_merge_width(rocksdb_universal_compaction_options_t*, int);
void rocksdb_universal_compaction_options_set_size_ratio(rocksdb_universal_compaction_options_t*, int);
void rocksdb_universal_compaction_options_set_stop_style(rocksdb_universal_compaction_options_t*, int); /* noted */
void rocksdb_wait_for_compact(rocksdb_t*, rocksdb_wait_for_compact_options_t*, char**);
rocksdb_wait_for_compact_options_t* rocksdb_wait_for_compact_options_create(void);
void rocksdb_wait_for_compact_options_destroy(rocksdb_wait_for_compact_options_t*);
unsigned char rocksdb_wait_for_compact_options_get_abort_on_pause(rocksdb_wait_for_compact_options_t*);
unsigned char rocksdb_wait_for_compact_options_get_flush(rocksdb_wait_for_compact_options_t*);
uint64_t rocksdb_wait_for_compact_options_get_timeout(rocksdb_wait_for_compact_options_t*);
void rocksdb_wait_for_compact_options_set_abort_on_pause(rocksdb_wait_for_compact_options_t*, unsigned char); /* noted */
void rocksdb_wait_for_compact_options_set_flush(rocksdb_wait_for_compact_options_t*, unsigned char);
void rocksdb_wait_for_compact_options_set_timeout(rocksdb_wait_for_compact_options_t*, uint64_t);
void rocksdb_wal_iter_destroy(const rocksdb_wal_iterator_t*);
rocksdb_writebatch_t* rocksdb_wal_iter_get_batch(const rocksdb_wal_iterator_t*, uint64_t*);
void rocksdb_wal_iter_next(rocksdb_wal_iterator_t*);
void rocksdb_wal_iter_status(const rocksdb_wal_iterator_t*, char**);
unsigned char rocksdb_wal_iter_valid(const rocksdb_wal_iterator_t*);
void rocksdb_write(rocksdb_t*, const rocksdb_writeoptions_t*, rocksdb_writebatch_t*, char**);
size_t rocksdb_write_buffer_manager_buffer_size(rocksdb_write_buffer_manager_t*);
rocksdb_write_buffer_manager_t* rocksdb_write_buffer_manager_create(size_t, bool);
rocksdb_write_buffer_manager_t* rocksdb_write_buffer_manager_create_with_cache(size_t, const rocksdb_cache_t*, bool);
void rocksdb_write_buffer_manager_destroy(rocksdb_write_buffer_manager_t*);
bool rocksdb_write_buffer_manager_enabled(rocksdb_write_buffer_manager_t*);
size_t rocksdb_write_buffer_manager_memory_usage(rocksdb_write_buffer_manager_t*);
void rocksdb_write_buffer_manager_set_allow_stall(rocksdb_write_buffer_manager_t*, bool);
void rocksdb_write_buffer_manager_set_buffer_size(rocksdb_write_buffer_manager_t*, size_t);
void rocksdb_writebatch_clear(rocksdb_writebatch_t*);
int rocksdb_writebatch_count(rocksdb_writebatch_t*);
rocksdb_writebatch_t* rocksdb_writebatch_create(void);
rocksdb_writebatch_t* rocksdb_writebatch_create_from(const char*, size_t);
rocksdb_writebatch_t* rocksdb_writebatch_create_with_params(size_t, size_t, size_t, size_t);
const char* rocksdb_writebatch_data(rocksdb_writebatch_t*, size_t*);
void rocksdb_writebatch_delete(rocksdb_writebatch_t*, const char*, size_t);
void rocksdb_writebatch_delete_cf(rocksdb_writebatch_t*, rocksdb_column_family_handle_t*, const char*, size_t);
void rocksdb_writebatch_delete_range(rocksdb_writebatch_t*, const char*, size_t, const char*, size_t);
void rocksdb_writebatch_delete_range_cf(rocksdb_writebatch_t*, rocksdb_column_family_handle_t*, const char*, size_t, const char*, size_t);
void rocksdb_writebatch_destroy(rocksdb_writebatch_t*);
void rocksdb_writebatch_iterate(rocksdb_writebatch_t*, void*, void (*)(void*, const char*, size_t, const char*, size_t), void (*)(void*, const char*, size_t));
void rocksdb_writebatch_iterate_cf(rocksdb_writebatch_t*, void*, void (*)(void*, uint32_t, const char*, size_t, const char*, size_t), void (*)(void*, uint32_t, const char*, size_t), void (*)(void*, uint32_t, const char*, size_t, const char*, size_t));
void rocksdb_writebatch_merge(rocksdb_writebatch_t*, const char*, size_t, const char*, size_t);
void rocksdb_writebatch_merge_cf(rocksdb_writebatch_t*, rocksdb_column_family_handle_t*, const char*, size_t, const char*, size_t);
void rocksdb_writebatch_pop_save_point(rocksdb_writebatch_t*, char**);
void rocksdb_writebatch_put(rocksdb_writebatch_t*, const char*, size_t, const char*, size_t);
void rocksdb_writebatch_put_cf(rocksdb_writebatch_t*, rocksdb_column_family_handle_t*, const char*, size_t, const char*, size_t);
void rocksdb_writebatch_put_log_data(rocksdb_writebatch_t*, const char*, size_t);
void rocksdb_writebatch_rollback_to_save_point(rocksdb_writebatch_t*, char**);
void rocksdb_writebatch_set_save_point(rocksdb_writebatch_t*);
void rocksdb_writebatch_singledelete(rocksdb_writebatch_t*, const char*, size_t);
void rocksdb_writebatch_singledelete_cf(rocksdb_writebatch_t*, rocksdb_column_family_handle_t*, const char*, size_t);
rocksdb_writeoptions_t* rocksdb_writeoptions_create(void);
void rocksdb_writeoptions_destroy(rocksdb_writeoptions_t*);
void rocksdb_writeoptions_disable_WAL(rocksdb_writeoptions_t*, int);
unsigned char rocksdb_writeoptions_get_disable_WAL(rocksdb_writeoptions_t*);
unsigned char rocksdb_writeoptions_get_ignore_missing_column_families(rocksdb_writeoptions_t*);
unsigned char rocksdb_writeoptions_get_low_pri(rocksdb_writeoptions_t*);
unsigned char rocksdb_writeoptions_get_memtable_insert_hint_per_batch(rocksdb_writeoptions_t*);
unsigned char rocksdb_writeoptions_get_no_slowdown(rocksdb_writeoptions_t*);
unsigned char rocksdb_writeoptions_get_sync(rocksdb_writeoptions_t*);
void rocksdb_writeoptions_set_ignore_missing_column_families(rocksdb_writeoptions_t*, unsigned char); /* refused */
void rocksdb_writeoptions_set_low_pri(rocksdb_writeoptions_t*, unsigned char); /* noted */
void rocksdb_writeoptions_set_memtable_insert_hint_per_batch(rocksdb_writeoptions_t*, unsigned char); /* noted */
void rocksdb_writeoptions_set_no_slowdown(rocksdb_writeoptions_t*, unsigned char);
void rocksdb_writeoptions_set_sync(rocksdb_writeoptions_t*, unsigned char);

#ifdef __cplusplus
}
#endif

#endif
