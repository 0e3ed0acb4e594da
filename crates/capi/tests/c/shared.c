/* Objects that databases share, settings of an open one, and all that is refused by name. */
#include "check.h"

void test_shared(void) {
  char* err = NULL;
  rocksdb_cache_t* cache = rocksdb_cache_create_lru(16 << 20);
  rocksdb_write_buffer_manager_t* buffers = rocksdb_write_buffer_manager_create_with_cache(1 << 20, cache, false);
  CHECK(rocksdb_write_buffer_manager_enabled(buffers));
  CHECK(rocksdb_write_buffer_manager_buffer_size(buffers) == 1 << 20);
  CHECK(rocksdb_write_buffer_manager_memory_usage(buffers) == 0 && rocksdb_cache_get_usage(cache) == 0);
  rocksdb_options_t* o = rocksdb_options_create();
  rocksdb_block_based_table_options_t* t = rocksdb_block_based_options_create();
  rocksdb_block_based_options_set_block_cache(t, cache);
  rocksdb_options_set_block_based_table_factory(o, t);
  rocksdb_block_based_options_destroy(t);
  rocksdb_options_set_write_buffer_manager(o, buffers);
  rocksdb_t* db = open_new(o, fresh("shared"));
  rocksdb_options_destroy(o);
  char key[16];
  for (int i = 0; i < 2000; i++) {
    snprintf(key, sizeof key, "%08d", i);
    put(db, key, "some value");
  }
  CHECK(rocksdb_write_buffer_manager_memory_usage(buffers) > 20000);
  rocksdb_memory_consumers_t* who = rocksdb_memory_consumers_create();
  rocksdb_memory_consumers_add_db(who, db);
  rocksdb_memory_consumers_add_cache(who, cache);
  rocksdb_memory_usage_t* usage = rocksdb_approximate_memory_usage_create(who, &err);
  GOOD(err);
  CHECK(rocksdb_approximate_memory_usage_get_mem_table_total(usage) > 20000);
  CHECK(rocksdb_approximate_memory_usage_get_mem_table_unflushed(usage) > 20000);
  rocksdb_approximate_memory_usage_destroy(usage);
  rocksdb_compact_range(db, NULL, 0, NULL, 0);
  has(db, "00000077", "some value");
  usage = rocksdb_approximate_memory_usage_create(who, &err);
  GOOD(err);
  CHECK(rocksdb_approximate_memory_usage_get_cache_total(usage) > 0);
  /* What the cache needs to find its blocks is memory, too. */
  CHECK(rocksdb_cache_get_usage(cache) > 0);
  CHECK(rocksdb_cache_get_usage(cache) < rocksdb_approximate_memory_usage_get_cache_total(usage));
  CHECK(rocksdb_approximate_memory_usage_get_mem_table_readers_total(usage) > 0);
  rocksdb_approximate_memory_usage_destroy(usage);

  const char *names[2] = {"level0_file_num_compaction_trigger", "disable_auto_compactions"};
  const char *values[2] = {"7", "true"}, *wrong[2] = {"7", "maybe"}, *unknown[1] = {"no_such_option"};
  rocksdb_set_options(db, 2, names, values, &err);
  GOOD(err);
  rocksdb_set_options(db, 2, names, wrong, &err);
  FAILS(err, "Invalid argument: ");
  rocksdb_set_options(db, 1, unknown, values, &err);
  FAILS(err, "Invalid argument: ");
  rocksdb_set_options(db, -1, names, values, &err);
  FAILS(err, "Invalid argument: ");

  rocksdb_close(db); /* A closed database has no memtables; its blocks stay until others need the room, as in RocksDB. */
  CHECK(rocksdb_write_buffer_manager_memory_usage(buffers) == 0);
  CHECK(rocksdb_cache_get_usage(cache) > 0 && rocksdb_cache_get_usage(cache) <= 16 << 20);
  usage = rocksdb_approximate_memory_usage_create(who, &err);
  GOOD(err);
  CHECK(rocksdb_approximate_memory_usage_get_mem_table_total(usage) == 0);
  rocksdb_approximate_memory_usage_destroy(usage);
  rocksdb_memory_consumers_destroy(who);
  rocksdb_write_buffer_manager_destroy(buffers);
  rocksdb_cache_destroy(cache);
}

/* One cache given to three databases is one of its size, and as large as it is told to be while they are open. */
void test_one_cache(void) {
  rocksdb_cache_t* cache = rocksdb_cache_create_lru(1 << 20);
  rocksdb_t* all[3];
  static const char* const names[3] = {"one-cache-a", "one-cache-b", "one-cache-c"};
  char key[16], value[512];
  for (int d = 0; d < 3; d++) {
    rocksdb_options_t* o = rocksdb_options_create();
    rocksdb_block_based_table_options_t* t = rocksdb_block_based_options_create();
    rocksdb_block_based_options_set_block_cache(t, cache);
    rocksdb_options_set_block_based_table_factory(o, t);
    rocksdb_block_based_options_destroy(t);
    rocksdb_options_set_compression(o, 0);
    all[d] = open_new(o, fresh(names[d]));
    rocksdb_options_destroy(o);
    memset(value, 'a' + d, sizeof value);
    value[sizeof value - 1] = 0;
    for (int i = 0; i < 2000; i++) {
      snprintf(key, sizeof key, "%08d", i);
      put(all[d], key, value);
    }
    rocksdb_compact_range(all[d], NULL, 0, NULL, 0);
  }
  for (int round = 0; round < 2; round++) {
    for (int d = 0; d < 3; d++) {
      memset(value, 'a' + d, sizeof value - 1);
      for (int i = 0; i < 2000; i++) {
        snprintf(key, sizeof key, "%08d", i);
        has(all[d], key, value);
      }
      CHECK(rocksdb_cache_get_usage(cache) > 512 << 10 && rocksdb_cache_get_usage(cache) <= 1 << 20);
    }
    rocksdb_cache_set_capacity(cache, 256 << 10);
    CHECK(rocksdb_cache_get_capacity(cache) == 256 << 10 && rocksdb_cache_get_usage(cache) <= 256 << 10);
    rocksdb_cache_set_capacity(cache, 1 << 20);
  }
  uint64_t capacity = 0;
  CHECK(rocksdb_property_int(all[1], "rocksdb.block-cache-capacity", &capacity) == 0);
  CHECK(capacity > 512 << 10 && capacity <= 1 << 20);
  rocksdb_cache_destroy(cache); /* The databases have it still. */
  for (int d = 0; d < 3; d++) {
    memset(value, 'a' + d, sizeof value - 1);
    has(all[d], "00000007", value);
    rocksdb_close(all[d]);
  }
}

/* One manager given to three databases, or `db_write_buffer_size` given to one, is one bound for all their memtables. */
void test_one_bound(void) {
  const size_t most = 256 << 10, piece = 64 << 10;
  rocksdb_write_buffer_manager_t* buffers = rocksdb_write_buffer_manager_create(1 << 20, false);
  rocksdb_write_buffer_manager_set_buffer_size(buffers, most);
  rocksdb_write_buffer_manager_set_allow_stall(buffers, true);
  rocksdb_t* all[4];
  static const char* const names[4] = {"one-bound-a", "one-bound-b", "one-bound-c", "one-bound-d"};
  char key[16], value[512];
  for (int d = 0; d < 4; d++) {
    rocksdb_options_t* o = rocksdb_options_create();
    if (d < 3) {
      rocksdb_options_set_write_buffer_manager(o, buffers);
    } else {
      rocksdb_options_set_db_write_buffer_size(o, most);
    }
    all[d] = open_new(o, fresh(names[d]));
    rocksdb_options_destroy(o);
  }
  memset(value, 'v', sizeof value);
  value[sizeof value - 1] = 0;
  uint64_t bytes, files;
  for (int i = 0; i < 2000; i++) {
    snprintf(key, sizeof key, "%08d", i);
    for (int d = 0; d < 4; d++) put(all[d], key, value);
    CHECK(rocksdb_write_buffer_manager_memory_usage(buffers) <= most + piece);
    /* Without a stall the flushed ones may come on top. */
    CHECK(rocksdb_property_int(all[3], "rocksdb.cur-size-active-mem-table", &bytes) == 0);
    CHECK(bytes <= most);
  }
  CHECK(rocksdb_write_buffer_manager_memory_usage(buffers) > piece);
  for (int d = 0; d < 4; d++) {
    CHECK(rocksdb_property_int(all[d], "rocksdb.total-sst-files-size", &files) == 0 && files > 0);
    has(all[d], "00000007", value);
    has(all[d], "00001999", value);
  }
  rocksdb_close(all[3]);
  rocksdb_close(all[0]);
  rocksdb_write_buffer_manager_set_buffer_size(buffers, 64 << 20);
  for (int i = 0; i < 2000; i++) {
    snprintf(key, sizeof key, "%08d", i);
    put(all[1], key, value);
  }
  CHECK(rocksdb_write_buffer_manager_memory_usage(buffers) > 1 << 20); /* There is room now. */
  rocksdb_close(all[1]);
  rocksdb_close(all[2]);
  CHECK(rocksdb_write_buffer_manager_memory_usage(buffers) == 0);
  rocksdb_write_buffer_manager_destroy(buffers);
}

static int ends;
static void ended(void* state) {
  CHECK(state == &ends);
  ends++;
}
static const char* called(void* state) {
  (void)state;
  return "refused";
}
static int compared(void* state, const char* a, size_t al, const char* b, size_t bl) {
  (void)state, (void)a, (void)b;
  return (al > bl) - (al < bl);
}

/* An open with these options is refused; they are destroyed. */
static void refuses(rocksdb_options_t* o, const char* text) {
  char* err = NULL;
  rocksdb_options_set_create_if_missing(o, 1);
  CHECK(rocksdb_open(o, fresh("never"), &err) == NULL);
  FAILS(err, text);
  rocksdb_options_destroy(o);
}

void test_refused(void) {
  char* err = NULL;
  size_t len = 7;
  rocksdb_t* db = open_new(NULL, fresh("refusing"));
  rocksdb_writeoptions_t* wo = rocksdb_writeoptions_create();
  rocksdb_column_family_handle_t* cf = rocksdb_get_default_column_family_handle(db);
  rocksdb_put_with_ts(db, wo, "k", 1, "t", 1, "v", 1, &err);
  FAILS(err, "Not implemented: timestamps");
  rocksdb_put_cf_with_ts(db, wo, cf, "k", 1, "t", 1, "v", 1, &err);
  FAILS(err, "Not implemented: timestamps");
  rocksdb_delete_with_ts(db, wo, "k", 1, "t", 1, &err);
  FAILS(err, "Not implemented: timestamps");
  rocksdb_delete_cf_with_ts(db, wo, cf, "k", 1, "t", 1, &err);
  FAILS(err, "Not implemented: timestamps");
  rocksdb_increase_full_history_ts_low(db, cf, "t", 1, &err);
  FAILS(err, "Not implemented: timestamps");
  CHECK(rocksdb_get_full_history_ts_low(db, cf, &len, &err) == NULL && len == 0);
  FAILS(err, "Not implemented: timestamps");
  rocksdb_writeoptions_set_ignore_missing_column_families(wo, 1);
  rocksdb_put(db, wo, "k", 1, "v", 1, &err);
  FAILS(err, "Not implemented: rocksdb_writeoptions_set_ignore_missing_column_families=1");

  rocksdb_readoptions_t* ro = rocksdb_readoptions_create();
  rocksdb_readoptions_set_timestamp(ro, "t", 1);
  CHECK(rocksdb_get(db, ro, "k", 1, &len, &err) == NULL);
  FAILS(err, "Not implemented: timestamp=");
  rocksdb_readoptions_set_timestamp(ro, NULL, 0);
  rocksdb_readoptions_set_iter_start_ts(ro, "t", 1);
  CHECK(rocksdb_get(db, ro, "k", 1, &len, &err) == NULL);
  FAILS(err, "Not implemented: iter_start_ts=");
  rocksdb_readoptions_set_iter_start_ts(ro, NULL, 0);
  rocksdb_readoptions_set_ignore_range_deletions(ro, 1);
  CHECK(rocksdb_get(db, ro, "k", 1, &len, &err) == NULL);
  FAILS(err, "Not implemented: rocksdb_readoptions_set_ignore_range_deletions=1");
  rocksdb_readoptions_destroy(ro);
  rocksdb_column_family_handle_destroy(cf);
  rocksdb_writeoptions_destroy(wo);
  rocksdb_close(db);

  rocksdb_options_t* o = rocksdb_options_create();
  CHECK(rocksdb_options_statistics_get_string(o) == NULL);
  CHECK(rocksdb_options_get_info_log(o) == NULL);
  rocksdb_options_destroy(o);
  o = rocksdb_options_create();
  rocksdb_comparator_t* c =
      rocksdb_comparator_with_ts_create(&ends, ended, compared, compared, NULL, called, 8);
  rocksdb_options_set_comparator(o, c);
  rocksdb_comparator_destroy(c);
  refuses(o, "Not implemented: comparator=with timestamps");
  CHECK(ends == 1);
  o = rocksdb_options_create();
  rocksdb_options_set_compaction_filter_factory(
      o, rocksdb_compactionfilterfactory_create(&ends, ended, NULL, called));
  /* Without its function there is no factory, and its state is ended. */
  CHECK(ends == 2);
  rocksdb_options_destroy(o);
  o = rocksdb_options_create();
  rocksdb_options_set_allow_ingest_behind(o, 1);
  refuses(o, "Not implemented: rocksdb_options_set_allow_ingest_behind=1");

  /* Other kinds of tables are ordinary ones here. */
  o = rocksdb_options_create();
  rocksdb_cuckoo_table_options_t* cuckoo = rocksdb_cuckoo_options_create();
  rocksdb_cuckoo_options_set_hash_ratio(cuckoo, 0.5);
  rocksdb_options_set_cuckoo_table_factory(o, cuckoo);
  rocksdb_cuckoo_options_destroy(cuckoo);
  rocksdb_options_set_plain_table_factory(o, 8, 10, 0.75, 16, 0, 0, 0, 0);
  rocksdb_options_enable_statistics(o);
  db = open_new(o, fresh("plain"));
  rocksdb_options_destroy(o);
  put(db, "a", "1");
  has(db, "a", "1");
  rocksdb_close(db);
}
