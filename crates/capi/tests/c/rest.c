/* What the other groups do not call: setters that are noted, shared objects of other kinds, figures of files,
 * and refused functions that have no error to tell it with. */
#include "check.h"

/* The event log of a database, to be freed. */
static char* log_of(const char* dir) {
  char path[600];
  snprintf(path, sizeof path, "%s/EVENTS", dir);
  FILE* file = fopen(path, "r");
  CHECK(file != NULL);
  char* text = calloc(1, 1 << 20);
  CHECK(fread(text, 1, (1 << 20) - 1, file) > 0);
  fclose(file);
  return text;
}

#define NOTED(text, name)                                                  \
  do {                                                                     \
    if (strstr((text), (name)) == NULL) {                                  \
      fprintf(stderr, "%s:%d: not noted: %s\n", __FILE__, __LINE__, name); \
      exit(1);                                                             \
    }                                                                      \
  } while (0)

void test_noted(void) {
  rocksdb_block_based_table_options_t* t = rocksdb_block_based_options_create();
  rocksdb_block_based_options_set_block_restart_interval(t, 8);
  rocksdb_block_based_options_set_block_size_deviation(t, 5);
  rocksdb_block_based_options_set_cache_index_and_filter_blocks(t, 1);
  rocksdb_block_based_options_set_cache_index_and_filter_blocks_with_high_priority(t, 0);
  rocksdb_block_based_options_set_checksum(t, 1);
  rocksdb_block_based_options_set_data_block_hash_ratio(t, 0.5);
  rocksdb_block_based_options_set_data_block_index_type(t, 1);
  rocksdb_block_based_options_set_index_block_restart_interval(t, 2);
  rocksdb_block_based_options_set_metadata_block_size(t, 8192);
  rocksdb_block_based_options_set_no_block_cache(t, 1);
  rocksdb_block_based_options_set_optimize_filters_for_memory(t, 0);
  rocksdb_block_based_options_set_partition_pinning_tier(t, 1);
  rocksdb_block_based_options_set_pin_l0_filter_and_index_blocks_in_cache(t, 1);
  rocksdb_block_based_options_set_pin_top_level_index_and_filter(t, 0);
  rocksdb_block_based_options_set_top_level_index_pinning_tier(t, 1);
  rocksdb_block_based_options_set_unpartitioned_pinning_tier(t, 1);
  rocksdb_block_based_options_set_use_delta_encoding(t, 0);
  rocksdb_block_based_options_set_whole_key_filtering(t, 0);
  rocksdb_block_based_options_set_filter_policy(t, rocksdb_filterpolicy_create_ribbon_hybrid(10, 1));
  rocksdb_filterpolicy_destroy(rocksdb_filterpolicy_create_bloom_full(10));

  rocksdb_options_t* o = rocksdb_options_create();
  rocksdb_options_set_block_based_table_factory(o, t);
  rocksdb_block_based_options_destroy(t);
  rocksdb_lru_cache_options_t* lru = rocksdb_lru_cache_options_create();
  rocksdb_lru_cache_options_set_capacity(lru, 2 << 20);
  rocksdb_lru_cache_options_set_num_shard_bits(lru, 2);
  rocksdb_cache_t* cache = rocksdb_cache_create_lru_opts(lru);
  rocksdb_lru_cache_options_destroy(lru);
  CHECK(rocksdb_cache_get_capacity(cache) == 2 << 20);
  rocksdb_options_set_row_cache(o, cache);
  rocksdb_options_set_blob_cache(o, cache);
  rocksdb_cache_destroy(cache);
  cache = rocksdb_cache_create_hyper_clock(3 << 20, 0);
  CHECK(rocksdb_cache_get_capacity(cache) == 3 << 20);
  rocksdb_cache_destroy(cache);
  int multipliers[2] = {1, 2};
  rocksdb_options_set_max_bytes_for_level_multiplier_additional(o, multipliers, 2);
  rocksdb_options_set_bottommost_compression_options(o, -14, 32767, 0, 0, 1);
  rocksdb_options_set_bottommost_compression_options_zstd_max_train_bytes(o, 100, 1);
  rocksdb_options_set_compression_options_parallel_threads(o, 2);
  rocksdb_options_set_compression_options_zstd_max_train_bytes(o, 100);
  rocksdb_options_set_db_log_dir(o, "/nowhere");
  rocksdb_options_set_dump_malloc_stats(o, 1);
  rocksdb_options_set_hash_link_list_rep(o, 10);
  rocksdb_options_set_hash_skip_list_rep(o, 10, 4, 4);
  rocksdb_options_set_memtable_whole_key_filtering(o, 1);
  rocksdb_options_set_min_level_to_compress(o, 2);
  rocksdb_options_set_optimize_filters_for_hits(o, 1);
  rocksdb_options_set_report_bg_io_stats(o, 1);
  rocksdb_options_add_compact_on_deletion_collector_factory_del_ratio(o, 100, 50, 0.5);
  rocksdb_options_optimize_level_style_compaction(o, 64 << 20);
  rocksdb_ratelimiter_t* rate = rocksdb_ratelimiter_create_auto_tuned(100 << 20, 100000, 10);
  rocksdb_options_set_ratelimiter(o, rate);
  rocksdb_ratelimiter_destroy(rate);
  rocksdb_logger_t* logger = rocksdb_logger_create_stderr_logger(4, "capi");
  rocksdb_options_set_info_log(o, logger);
  rocksdb_logger_destroy(logger);
  const char* dir = fresh("noted");
  rocksdb_t* db = open_new(o, dir);
  rocksdb_options_destroy(o);
  put(db, "a", "1");
  rocksdb_cancel_all_background_work(db, 0);
  has(db, "a", "1");
  rocksdb_close(db);
  char* text = log_of(dir);
  NOTED(text, "set_block_restart_interval=8");
  NOTED(text, "set_block_size_deviation=5");
  NOTED(text, "set_cache_index_and_filter_blocks=1");
  NOTED(text, "set_cache_index_and_filter_blocks_with_high_priority=0");
  NOTED(text, "set_checksum=1");
  NOTED(text, "set_data_block_hash_ratio=0.5");
  NOTED(text, "set_data_block_index_type=1");
  NOTED(text, "set_index_block_restart_interval=2");
  NOTED(text, "set_optimize_filters_for_memory=0");
  NOTED(text, "set_partition_pinning_tier=1");
  NOTED(text, "set_pin_l0_filter_and_index_blocks_in_cache=1");
  NOTED(text, "set_pin_top_level_index_and_filter=0");
  NOTED(text, "set_top_level_index_pinning_tier=1");
  NOTED(text, "set_unpartitioned_pinning_tier=1");
  NOTED(text, "set_use_delta_encoding=0");
  NOTED(text, "row_cache");
  NOTED(text, "blob_cache");
  NOTED(text, "max_bytes_for_level_multiplier_additional");
  NOTED(text, "zstd_max_train_bytes");
  NOTED(text, "parallel_threads=2");
  NOTED(text, "db_log_dir");
  NOTED(text, "dump_malloc_stats=1");
  NOTED(text, "memtable_whole_key_filtering=1");
  NOTED(text, "min_level_to_compress");
  NOTED(text, "optimize_filters_for_hits=1");
  NOTED(text, "report_bg_io_stats=1");
  free(text);
}

void test_kinds(void) {
  rocksdb_options_t* o = rocksdb_options_create();
  rocksdb_options_optimize_universal_style_compaction(o, 64 << 20);
  CHECK(rocksdb_options_get_compaction_style(o) == 1);
  rocksdb_options_prepare_for_bulk_load(o);
  rocksdb_options_set_create_if_missing(o, 1);
  rocksdb_env_t* env = rocksdb_create_default_env();
  rocksdb_env_set_background_threads(env, 3);
  rocksdb_env_set_bottom_priority_background_threads(env, 1);
  rocksdb_env_set_high_priority_background_threads(env, 2);
  rocksdb_env_set_low_priority_background_threads(env, 3);
  CHECK(rocksdb_env_get_background_threads(env) == 3);
  CHECK(rocksdb_env_get_bottom_priority_background_threads(env) == 1);
  CHECK(rocksdb_env_get_high_priority_background_threads(env) == 2);
  CHECK(rocksdb_env_get_low_priority_background_threads(env) == 3);
  rocksdb_env_join_all_threads(env);
  rocksdb_env_lower_high_priority_thread_pool_cpu_priority(env);
  rocksdb_env_lower_high_priority_thread_pool_io_priority(env);
  rocksdb_env_lower_thread_pool_cpu_priority(env);
  rocksdb_env_lower_thread_pool_io_priority(env);
  rocksdb_options_set_env(o, env);
  rocksdb_t* db = open_new(o, fresh("kinds"));
  put(db, "a", "1");
  rocksdb_close(db);
  rocksdb_env_destroy(env);
  rocksdb_options_destroy(o);

  rocksdb_slicetransform_destroy(rocksdb_slicetransform_create_fixed_prefix(3));
  rocksdb_write_buffer_manager_t* buffers = rocksdb_write_buffer_manager_create(1 << 20, false);
  rocksdb_write_buffer_manager_set_buffer_size(buffers, 2 << 20);
  CHECK(rocksdb_write_buffer_manager_buffer_size(buffers) == 2 << 20);
  rocksdb_write_buffer_manager_set_allow_stall(buffers, true);
  rocksdb_write_buffer_manager_destroy(buffers);
  rocksdb_backup_engine_options_t* backups = rocksdb_backup_engine_options_create("x");
  rocksdb_backup_engine_options_set_sync(backups, 0);
  CHECK(rocksdb_backup_engine_options_get_sync(backups) == 0);
  rocksdb_backup_engine_options_set_max_background_operations(backups, 4);
  CHECK(rocksdb_backup_engine_options_get_max_background_operations(backups) == 4);
  rocksdb_backup_engine_options_destroy(backups);
  rocksdb_cuckoo_table_options_t* cuckoo = rocksdb_cuckoo_options_create();
  rocksdb_cuckoo_options_set_cuckoo_block_size(cuckoo, 5);
  rocksdb_cuckoo_options_set_identity_as_first_hash(cuckoo, 1);
  rocksdb_cuckoo_options_set_max_search_depth(cuckoo, 100);
  rocksdb_cuckoo_options_set_use_module_hash(cuckoo, 0);
  rocksdb_cuckoo_options_destroy(cuckoo);
  rocksdb_readoptions_t* ro = rocksdb_readoptions_create();
  rocksdb_readoptions_set_auto_readahead_size(ro, 0);
  CHECK(rocksdb_readoptions_get_read_tier(ro) == 0 && rocksdb_readoptions_get_ignore_range_deletions(ro) == 0);
  rocksdb_readoptions_destroy(ro);
  rocksdb_writeoptions_t* wo = rocksdb_writeoptions_create();
  CHECK(rocksdb_writeoptions_get_ignore_missing_column_families(wo) == 0);
  rocksdb_writeoptions_destroy(wo);
  rocksdb_set_perf_level(2);
}

void test_measures(void) {
  char* err = NULL;
  rocksdb_options_t* adds = rocksdb_options_create();
  rocksdb_options_set_uint64add_merge_operator(adds);
  rocksdb_t* db = open_new(adds, fresh("measures"));
  rocksdb_options_destroy(adds);
  rocksdb_column_family_handle_t* cf = rocksdb_get_default_column_family_handle(db);
  put(db, "a", "1");
  put(db, "b", "2");
  rocksdb_compact_range(db, NULL, 0, NULL, 0);
  rocksdb_column_family_metadata_t* about = rocksdb_get_column_family_metadata(db);
  CHECK(rocksdb_column_family_metadata_get_file_count(about) == 1);
  CHECK(rocksdb_column_family_metadata_get_size(about) > 100);
  char* name = rocksdb_column_family_metadata_get_name(about);
  CHECK(strcmp(name, "default") == 0);
  free(name);
  rocksdb_column_family_metadata_destroy(about);
  about = rocksdb_get_column_family_metadata_cf(db, cf);
  CHECK(rocksdb_column_family_metadata_get_file_count(about) == 1);
  rocksdb_column_family_metadata_destroy(about);
  uint64_t n = 99;
  CHECK(rocksdb_property_int_cf(db, cf, "rocksdb.num-snapshots", &n) == 0 && n == 0);
  const char *from[1] = {"a"}, *to[1] = {"z"};
  size_t lens[1] = {1};
  uint64_t sizes[1] = {0};
  rocksdb_approximate_sizes_cf(db, cf, 1, from, lens, to, lens, sizes, &err);
  GOOD(err);
  CHECK(sizes[0] > 0);
  const char *names[1] = {"disable_auto_compactions"}, *values[1] = {"true"};
  rocksdb_set_options_cf(db, cf, 1, names, values, &err);
  GOOD(err);
  /* No file lies whole in this range. */
  rocksdb_delete_file_in_range_cf(db, cf, "a", 1, "a", 1, &err);
  GOOD(err);

  /* Tables made elsewhere: a merge is an operand, a range deletion hides what is older. */
  rocksdb_options_t* o = rocksdb_options_create();
  rocksdb_envoptions_t* env = rocksdb_envoptions_create();
  rocksdb_sstfilewriter_t* writer = rocksdb_sstfilewriter_create(env, o);
  const char* path = fresh("made.sst");
  rocksdb_sstfilewriter_open(writer, path, &err);
  GOOD(err);
  rocksdb_sstfilewriter_add(writer, "c", 1, "3", 1, &err);
  GOOD(err);
  rocksdb_sstfilewriter_put_with_ts(writer, "d", 1, "t", 1, "v", 1, &err);
  FAILS(err, "Not implemented: timestamps");
  rocksdb_sstfilewriter_delete_with_ts(writer, "d", 1, "t", 1, &err);
  FAILS(err, "Not implemented: timestamps");
  rocksdb_sstfilewriter_merge(writer, "e", 1, "5\0\0\0\0\0\0", 8, &err);
  GOOD(err);
  rocksdb_sstfilewriter_delete_range(writer, "a", 1, "b", 1, &err);
  GOOD(err);
  rocksdb_sstfilewriter_finish(writer, &err);
  GOOD(err);
  rocksdb_sstfilewriter_destroy(writer);
  rocksdb_envoptions_destroy(env);
  rocksdb_options_destroy(o);
  rocksdb_ingestexternalfileoptions_t* how = rocksdb_ingestexternalfileoptions_create();
  rocksdb_ingestexternalfileoptions_set_snapshot_consistency(how, 1);
  rocksdb_ingestexternalfileoptions_set_allow_global_seqno(how, 0);
  rocksdb_ingest_external_file(db, &path, 1, how, &err);
  FAILS(err, "Not implemented: rocksdb_ingestexternalfileoptions_set_allow_global_seqno=0");
  rocksdb_ingestexternalfileoptions_set_allow_global_seqno(how, 1);
  rocksdb_ingestexternalfileoptions_set_allow_blocking_flush(how, 0);
  rocksdb_ingest_external_file(db, &path, 1, how, &err);
  FAILS(err, "Not implemented: rocksdb_ingestexternalfileoptions_set_allow_blocking_flush=0");
  rocksdb_ingestexternalfileoptions_set_allow_blocking_flush(how, 1);
  rocksdb_ingest_external_file(db, &path, 1, how, &err);
  GOOD(err);
  rocksdb_ingestexternalfileoptions_destroy(how);
  has(db, "a", NULL);
  has(db, "b", "2");
  has(db, "c", "3");
  rocksdb_column_family_handle_destroy(cf);
  rocksdb_close(db);
}

void test_kinds_of_transactions(void) {
  char* err = NULL;
  rocksdb_options_t* o = rocksdb_options_create();
  rocksdb_options_set_create_if_missing(o, 1);
  rocksdb_transactiondb_options_t* waits = rocksdb_transactiondb_options_create();
  rocksdb_transactiondb_t* db = rocksdb_transactiondb_open(o, waits, fresh("kind-locks"), &err);
  GOOD(err);
  rocksdb_transactiondb_options_destroy(waits);
  rocksdb_t* base = rocksdb_transactiondb_get_base_db(db);
  rocksdb_column_family_handle_t* cf = rocksdb_get_default_column_family_handle(base);
  rocksdb_writeoptions_t* wo = rocksdb_writeoptions_create();
  rocksdb_readoptions_t* ro = rocksdb_readoptions_create();
  rocksdb_flushoptions_t* fo = rocksdb_flushoptions_create();
  rocksdb_transaction_options_t* to = rocksdb_transaction_options_create();
  rocksdb_transaction_t* t = rocksdb_transaction_begin(db, wo, to, NULL);
  size_t len = 7;
  char* name = rocksdb_transaction_get_name(t, &len);
  CHECK(name != NULL && len == 0);
  free(name);
  rocksdb_transaction_put(t, "a", 1, "1", 1, &err);
  GOOD(err);
  rocksdb_pinnableslice_t* p = rocksdb_transaction_get_pinned_for_update(t, ro, "a", 1, 1, &err);
  GOOD(err);
  CHECK(memcmp(rocksdb_pinnableslice_value(p, &len), "1", 1) == 0 && len == 1);
  rocksdb_pinnableslice_destroy(p);
  CHECK(rocksdb_transactiondb_get_prepared_transactions(db, &len) == NULL && len == 0);
  rocksdb_transaction_commit(t, &err);
  GOOD(err);
  rocksdb_transaction_destroy(t);
  /* One that is to be prepared first is not committed without. */
  rocksdb_transaction_options_set_skip_prepare(to, 0);
  t = rocksdb_transaction_begin(db, wo, to, NULL);
  rocksdb_transaction_put(t, "never", 5, "1", 1, &err);
  GOOD(err);
  rocksdb_transaction_commit(t, &err);
  FAILS(err, "Invalid argument: ");
  rocksdb_transaction_rollback(t, &err);
  GOOD(err);
  rocksdb_transaction_destroy(t);
  rocksdb_transaction_options_set_skip_prepare(to, 1);
  rocksdb_transactiondb_flush_wal(db, 1, &err);
  GOOD(err);
  rocksdb_transactiondb_flush(db, fo, &err);
  GOOD(err);
  rocksdb_transactiondb_flush_cfs(db, fo, &cf, 1, &err);
  GOOD(err);
  char* files = rocksdb_transactiondb_property_value(db, "rocksdb.num-files-at-level0");
  CHECK(files != NULL);
  free(files);
  CHECK(rocksdb_transactiondb_property_value(db, "rocksdb.no-such-thing") == NULL);
  rocksdb_column_family_handle_destroy(cf);
  rocksdb_transactiondb_close_base_db(base);
  rocksdb_transactiondb_close(db);

  rocksdb_optimistictransactiondb_t* od = rocksdb_optimistictransactiondb_open(o, fresh("kind-optimistic"), &err);
  GOOD(err);
  uint64_t n = 99;
  CHECK(rocksdb_optimistictransactiondb_property_int(od, "rocksdb.num-snapshots", &n) == 0 && n == 0);
  files = rocksdb_optimistictransactiondb_property_value(od, "rocksdb.num-files-at-level0");
  CHECK(files != NULL && strcmp(files, "0") == 0);
  free(files);
  rocksdb_optimistictransactiondb_close(od);
  rocksdb_transaction_options_destroy(to);
  rocksdb_flushoptions_destroy(fo);
  rocksdb_readoptions_destroy(ro);
  rocksdb_writeoptions_destroy(wo);
  rocksdb_options_destroy(o);
  rocksdb_mergeoperator_destroy(NULL);
}

/* What is prepared is there again after its handle and the database were closed, until it is ended. */
void test_prepared(void) {
  char* err = NULL;
  size_t len = 0, n = 7;
  const char* dir = fresh("prepared");
  rocksdb_options_t* o = rocksdb_options_create();
  rocksdb_options_set_create_if_missing(o, 1);
  rocksdb_transactiondb_options_t* waits = rocksdb_transactiondb_options_create();
  rocksdb_transactiondb_options_set_default_lock_timeout(waits, 1);
  rocksdb_writeoptions_t* wo = rocksdb_writeoptions_create();
  rocksdb_readoptions_t* ro = rocksdb_readoptions_create();
  rocksdb_transaction_options_t* to = rocksdb_transaction_options_create();
  rocksdb_transaction_options_set_skip_prepare(to, 0);
  rocksdb_transactiondb_t* db = rocksdb_transactiondb_open(o, waits, dir, &err);
  GOOD(err);
  const char* names[] = {"pay", "ship", "bill"};
  const char* keys[] = {"p", "s", "b"};
  for (int i = 0; i < 3; i++) {
    rocksdb_transaction_t* t = rocksdb_transaction_begin(db, wo, to, NULL);
    rocksdb_transaction_put(t, keys[i], 1, "1", 1, &err);
    GOOD(err);
    rocksdb_transaction_set_name(t, names[i], strlen(names[i]), &err);
    GOOD(err);
    rocksdb_transaction_prepare(t, &err);
    GOOD(err);
    if (i == 2) {
      rocksdb_transaction_commit(t, &err);
      GOOD(err);
      rocksdb_transaction_prepare(t, &err);
      FAILS(err, "Invalid argument: ");
    }
    rocksdb_transaction_destroy(t);
  }
  for (int round = 0; round < 2; round++) {
    rocksdb_transactiondb_close(db);
    db = rocksdb_transactiondb_open(o, waits, dir, &err);
    GOOD(err);
    rocksdb_transactiondb_put(db, wo, "p", 1, "2", 1, &err);
    if (round == 0) {
      FAILS(err, "Operation timed out: ");
    } else {
      GOOD(err);
    }
    rocksdb_transaction_t** all = rocksdb_transactiondb_get_prepared_transactions(db, &n);
    CHECK(round == 0 ? n == 2 : n == 0 && all == NULL);
    for (size_t i = 0; i < n; i++) {
      char* name = rocksdb_transaction_get_name(all[i], &len);
      rocksdb_transaction_t* other = rocksdb_transaction_begin(db, wo, to, NULL);
      rocksdb_transaction_set_name(other, name, len, &err);
      FAILS(err, "Invalid argument: Duplicate txn name ");
      rocksdb_transaction_destroy(other);
      if (len == 3 && memcmp(name, "pay", 3) == 0) {
        rocksdb_transaction_commit(all[i], &err);
      } else {
        CHECK(len == 4 && memcmp(name, "ship", 4) == 0);
        rocksdb_transaction_rollback(all[i], &err);
      }
      GOOD(err);
      free(name);
      rocksdb_transaction_destroy(all[i]);
    }
    free(all);
    char* got = rocksdb_transactiondb_get(db, ro, "s", 1, &len, &err);
    GOOD(err);
    CHECK(got == NULL);
    got = rocksdb_transactiondb_get(db, ro, "b", 1, &len, &err);
    GOOD(err);
    CHECK(len == 1 && *got == '1');
    free(got);
    got = rocksdb_transactiondb_get(db, ro, "p", 1, &len, &err);
    GOOD(err);
    CHECK(len == 1 && *got == (round == 0 ? '1' : '2'));
    free(got);
  }
  rocksdb_transactiondb_close(db);
  rocksdb_transaction_options_destroy(to);
  rocksdb_readoptions_destroy(ro);
  rocksdb_writeoptions_destroy(wo);
  rocksdb_transactiondb_options_destroy(waits);
  rocksdb_options_destroy(o);
}
