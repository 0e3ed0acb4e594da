/* Iterators, families, options, callbacks. */
#include "check.h"

void test_iterators(void) {
  char* err = NULL;
  size_t len;
  rocksdb_t* db = open_new(NULL, fresh("iterators"));
  const char* pairs[] = {"", "0", "a", "1", "b", "2", "c", "3"};
  for (int i = 3; i >= 0; i--) put(db, pairs[2 * i], pairs[2 * i + 1]);
  rocksdb_readoptions_t* ro = rocksdb_readoptions_create();
  rocksdb_iterator_t* it = rocksdb_create_iterator(db, ro);
  CHECK(!rocksdb_iter_valid(it));
  CHECK(rocksdb_iter_key(it, &len) == NULL && len == 0);
  shows(it, pairs, 4);
  rocksdb_iter_seek(it, "aa", 2);
  CHECK(rocksdb_iter_valid(it) && *rocksdb_iter_key(it, &len) == 'b');
  rocksdb_iter_seek_for_prev(it, "bz", 2);
  CHECK(rocksdb_iter_valid(it) && *rocksdb_iter_key(it, &len) == 'b');
  rocksdb_iter_seek(it, "d", 1);
  CHECK(!rocksdb_iter_valid(it));
  rocksdb_iter_next(it);
  CHECK(!rocksdb_iter_valid(it));

  /* It shows what was there when it was made, until it is refreshed. */
  put(db, "d", "4");
  shows(it, pairs, 4);
  rocksdb_iter_refresh(it, &err);
  GOOD(err);
  const char* more[] = {"", "0", "a", "1", "b", "2", "c", "3", "d", "4"};
  shows(it, more, 5);
  rocksdb_iter_destroy(it);
  const rocksdb_snapshot_t* s = rocksdb_create_snapshot(db);
  rocksdb_readoptions_set_snapshot(ro, s);
  it = rocksdb_create_iterator(db, ro);
  put(db, "d", "later");
  shows(it, more, 5);
  rocksdb_iter_refresh(it, &err); /* Lets go of the snapshot, too. */
  GOOD(err);
  more[9] = "later";
  shows(it, more, 5);
  rocksdb_iter_destroy(it);
  rocksdb_readoptions_set_snapshot(ro, NULL);
  rocksdb_release_snapshot(db, s);

  /* Bounds are copied; the upper one is left out. */
  char low[] = "a", high[] = "c";
  rocksdb_readoptions_set_iterate_lower_bound(ro, low, 1);
  rocksdb_readoptions_set_iterate_upper_bound(ro, high, 1);
  low[0] = high[0] = 'x';
  it = rocksdb_create_iterator(db, ro);
  shows(it, pairs + 2, 2);
  rocksdb_iter_destroy(it);
  rocksdb_readoptions_set_iterate_lower_bound(ro, NULL, 0);
  rocksdb_readoptions_set_iterate_upper_bound(ro, NULL, 0);

  /* With pin_data everything that was handed out stays. */
  rocksdb_readoptions_set_pin_data(ro, 1);
  it = rocksdb_create_iterator(db, ro);
  const char* keys[5];
  rocksdb_iter_seek_to_first(it);
  for (int i = 0; i < 5; i++, rocksdb_iter_next(it)) keys[i] = rocksdb_iter_key(it, &len);
  for (int i = 0; i < 5; i++) CHECK(memcmp(keys[i], more[2 * i], strlen(more[2 * i])) == 0);
  rocksdb_iter_destroy(it);
  rocksdb_readoptions_set_pin_data(ro, 0);

  /* One that follows what is written sees it at the next seek, and beyond its end. */
  rocksdb_readoptions_set_tailing(ro, 1);
  it = rocksdb_create_iterator(db, ro);
  rocksdb_iter_seek(it, "e", 1);
  CHECK(!rocksdb_iter_valid(it));
  put(db, "e", "5");
  rocksdb_iter_seek(it, "e", 1);
  CHECK(rocksdb_iter_valid(it));
  put(db, "f", "6");
  rocksdb_iter_next(it);
  CHECK(rocksdb_iter_valid(it) && memcmp(rocksdb_iter_key(it, &len), "f", 1) == 0);
  rocksdb_iter_next(it);
  CHECK(!rocksdb_iter_valid(it));

  /* It may be sent to the key that it stands on, whose memory goes with the move. */
  rocksdb_flushoptions_t* fo = rocksdb_flushoptions_create();
  rocksdb_flush(db, fo, &err);
  GOOD(err);
  rocksdb_flushoptions_destroy(fo);
  rocksdb_iter_seek(it, "e", 1);
  for (int i = 0; i < 4; i++) {
    const char* own = rocksdb_iter_key(it, &len);
    if (i % 2) rocksdb_iter_seek_for_prev(it, own, len);
    else rocksdb_iter_seek(it, own, len);
    CHECK(rocksdb_iter_valid(it) && memcmp(rocksdb_iter_key(it, &len), "e", 1) == 0);
  }
  rocksdb_iter_destroy(it);
  rocksdb_readoptions_destroy(ro);
  rocksdb_close(db);
}

void test_families(void) {
  char* err = NULL;
  size_t n, len;
  const char* dir = fresh("families");
  rocksdb_options_t* o = rocksdb_options_create();
  CHECK(rocksdb_list_column_families(o, dir, &n, &err) == NULL && n == 0);
  FAILS(err, "IO error: ");
  rocksdb_t* db = open_new(NULL, dir);
  rocksdb_column_family_handle_t* one = rocksdb_create_column_family(db, o, "one", &err);
  GOOD(err);
  CHECK(rocksdb_create_column_family(db, o, "one", &err) == NULL);
  FAILS(err, "Invalid argument: ");
  CHECK(rocksdb_column_family_handle_get_id(one) == 1);
  char* name = rocksdb_column_family_handle_get_name(one, &len);
  CHECK(len == 3 && strcmp(name, "one") == 0);
  rocksdb_free(name);
  rocksdb_writeoptions_t* wo = rocksdb_writeoptions_create();
  rocksdb_readoptions_t* ro = rocksdb_readoptions_create();
  rocksdb_put_cf(db, wo, one, "k", 1, "in one", 6, &err);
  GOOD(err);
  put(db, "k", "in default");
  char* value = rocksdb_get_cf(db, ro, one, "k", 1, &len, &err);
  GOOD(err);
  CHECK(len == 6 && memcmp(value, "in one", 6) == 0);
  free(value);
  rocksdb_iterator_t* it = rocksdb_create_iterator_cf(db, ro, one);
  const char* pairs[] = {"k", "in one"};
  shows(it, pairs, 1);
  rocksdb_iter_destroy(it);
  rocksdb_column_family_handle_t* both[2] = {one, rocksdb_get_default_column_family_handle(db)};
  rocksdb_flushoptions_t* fo = rocksdb_flushoptions_create();
  rocksdb_flush_cfs(db, fo, both, 2, &err);
  GOOD(err);
  rocksdb_flush_cf(db, fo, one, &err);
  GOOD(err);
  const char* keys[2] = {"k", "k"};
  size_t key_lens[2] = {1, 1}, lens[2];
  char *values[2], *errs[2];
  rocksdb_multi_get_cf(db, ro, (const rocksdb_column_family_handle_t* const*)both, 2, keys, key_lens,
                       values, lens, errs);
  CHECK(lens[0] == 6 && lens[1] == 10 && !errs[0] && !errs[1]);
  free(values[0]);
  free(values[1]);
  rocksdb_compact_range_cf(db, one, NULL, 0, NULL, 0);
  char* levels = rocksdb_property_value_cf(db, one, "rocksdb.levelstats");
  CHECK(levels != NULL);
  rocksdb_free(levels);
  /* A wait that flushes leaves nothing in the memtable of any family. */
  rocksdb_writeoptions_disable_WAL(wo, 1);
  rocksdb_put_cf(db, wo, one, "unlogged", 8, "value", 5, &err);
  GOOD(err);
  rocksdb_writeoptions_disable_WAL(wo, 0);
  rocksdb_wait_for_compact_options_t* wait = rocksdb_wait_for_compact_options_create();
  rocksdb_wait_for_compact_options_set_flush(wait, 1);
  rocksdb_wait_for_compact(db, wait, &err);
  GOOD(err);
  char* entries = rocksdb_property_value_cf(db, one, "rocksdb.num-entries-active-mem-table");
  CHECK(strcmp(entries, "0") == 0);
  rocksdb_free(entries);
  rocksdb_delete_cf(db, wo, one, "unlogged", 8, &err);
  GOOD(err);
  /* Once the background work is called off, no family is compacted by itself. */
  rocksdb_cancel_all_background_work(db, 1);
  for (int i = 0; i < 8; i++) {
    rocksdb_put_cf(db, wo, one, "k", 1, "in one", 6, &err);
    GOOD(err);
    rocksdb_flush_cf(db, fo, one, &err);
    GOOD(err);
  }
  rocksdb_wait_for_compact(db, wait, &err);
  GOOD(err);
  rocksdb_wait_for_compact_options_destroy(wait);
  uint64_t upper = 0;
  CHECK(rocksdb_property_int_cf(db, one, "rocksdb.num-files-at-level0", &upper) == 0 && upper >= 8);
  rocksdb_column_family_handle_destroy(both[1]);
  rocksdb_column_family_handle_destroy(one);
  rocksdb_close(db);

  char** names = rocksdb_list_column_families(o, dir, &n, &err);
  GOOD(err);
  CHECK(n == 2 && strcmp(names[0], "default") == 0 && strcmp(names[1], "one") == 0);
  rocksdb_list_column_families_destroy(names, n);

  /* All must be named, and those that are named must be there. */
  CHECK(rocksdb_open(o, dir, &err) == NULL);
  FAILS(err, "Invalid argument: Column families not opened: one");
  const char* asked[3] = {"default", "one", "two"};
  const rocksdb_options_t* of[3] = {o, o, o};
  rocksdb_column_family_handle_t* handles[3];
  CHECK(rocksdb_open_column_families(o, dir, 3, asked, of, handles, &err) == NULL);
  FAILS(err, "Invalid argument: Column family not found: two");
  CHECK(rocksdb_open_column_families(o, dir, 1, asked + 1, of, handles, &err) == NULL);
  FAILS(err, "Invalid argument: ");
  CHECK(rocksdb_open_column_families(o, dir, -1, asked, of, handles, &err) == NULL);
  FAILS(err, "Invalid argument: ");
  CHECK(rocksdb_open_column_families(o, dir, 2, asked, of, NULL, &err) == NULL);
  FAILS(err, "Invalid argument: ");
  rocksdb_options_set_create_missing_column_families(o, 1);
  rocksdb_options_t* wide = rocksdb_options_create(); /* More memtables than the database's own budget holds. */
  rocksdb_options_set_max_write_buffer_number(wide, 16);
  of[2] = wide;
  db = rocksdb_open_column_families(o, dir, 3, asked, of, handles, &err);
  GOOD(err);
  value = rocksdb_get_cf(db, ro, handles[1], "k", 1, &len, &err);
  CHECK(len == 6);
  free(value);
  rocksdb_delete_cf(db, wo, handles[1], "k", 1, &err);
  GOOD(err);
  rocksdb_pinnableslice_t* none = rocksdb_get_pinned_cf(db, ro, handles[1], "k", 1, &err);
  CHECK(none == NULL && err == NULL);
  rocksdb_put_cf(db, wo, handles[2], "in dropped", 10, "value", 5, &err);
  GOOD(err);
  rocksdb_drop_column_family(db, handles[2], &err);
  GOOD(err);
  rocksdb_put_cf(db, wo, handles[2], "k", 1, "v", 1, &err);
  CHECK(err != NULL);
  free(err);
  err = NULL;
  /* The handle reads on, until it is destroyed. */
  value = rocksdb_get_cf(db, ro, handles[2], "in dropped", 10, &len, &err);
  GOOD(err);
  CHECK(value != NULL && len == 5);
  free(value);
  rocksdb_iterator_t* on = rocksdb_create_iterator_cf(db, ro, handles[2]);
  rocksdb_iter_seek_to_first(on);
  CHECK(rocksdb_iter_valid(on));
  rocksdb_iter_destroy(on);
  /* It drops no other family: not one that has its name by now, and none of another database. */
  rocksdb_column_family_handle_t* again = rocksdb_create_column_family(db, o, "two", &err);
  GOOD(err);
  rocksdb_put_cf(db, wo, again, "k", 1, "v", 1, &err);
  GOOD(err);
  rocksdb_drop_column_family(db, handles[2], &err);
  FAILS(err, "Invalid argument: Column family already dropped!");
  rocksdb_t* other = open_new(NULL, fresh("families-other"));
  rocksdb_column_family_handle_t* theirs = rocksdb_create_column_family(other, o, "two", &err);
  GOOD(err);
  rocksdb_drop_column_family(db, theirs, &err);
  FAILS(err, "Invalid argument: ");
  rocksdb_column_family_handle_destroy(theirs);
  rocksdb_close(other);
  value = rocksdb_get_cf(db, ro, again, "k", 1, &len, &err);
  GOOD(err);
  CHECK(value != NULL && len == 1);
  free(value);
  rocksdb_drop_column_family(db, again, &err);
  GOOD(err);
  rocksdb_drop_column_family(db, again, &err);
  FAILS(err, "Invalid argument: Column family already dropped!");
  rocksdb_column_family_handle_destroy(again);
  for (int i = 0; i < 3; i++) rocksdb_column_family_handle_destroy(handles[i]);
  rocksdb_options_destroy(wide);
  rocksdb_close(db);

  db = rocksdb_open_for_read_only_column_families(o, dir, 1, asked, of, handles, 0, &err);
  GOOD(err);
  has(db, "k", "in default");
  rocksdb_column_family_handle_destroy(handles[0]);
  rocksdb_close(db);

  /* An open that fails half way, as there is no family without a name, leaves nothing open. */
  const char* half = fresh("families-half");
  const char* nameless[2] = {"default", ""};
  rocksdb_options_set_create_if_missing(o, 1);
  rocksdb_options_enable_statistics(o);
  CHECK(rocksdb_open_column_families(o, half, 2, nameless, of, handles, &err) == NULL);
  FAILS(err, "Invalid argument: ");
  db = rocksdb_open(o, half, &err);
  GOOD(err);
  rocksdb_close(db);
  rocksdb_flushoptions_destroy(fo);
  rocksdb_writeoptions_destroy(wo);
  rocksdb_readoptions_destroy(ro);
  rocksdb_options_destroy(o);
}

/* With atomic_flush all families end at one moment after a crash, also if writes ask for no log and one family alone is
 * flushed, as it is by itself when its memtable is full. */
void test_atomic_flush(void) {
  char *err = NULL, copy[1200];
  size_t len;
  const char *dir = fresh("atomic"), *crashed = fresh("atomic-crashed");
  rocksdb_options_t* o = rocksdb_options_create();
  rocksdb_options_set_create_if_missing(o, 1);
  rocksdb_options_set_create_missing_column_families(o, 1);
  rocksdb_options_set_atomic_flush(o, 1);
  CHECK(rocksdb_options_get_atomic_flush(o) == 1);
  const char* names[2] = {"default", "more"};
  const rocksdb_options_t* of[2] = {o, o};
  rocksdb_column_family_handle_t* cf[2];
  rocksdb_t* db = rocksdb_open_column_families(o, dir, 2, names, of, cf, &err);
  GOOD(err);
  rocksdb_writeoptions_t* wo = rocksdb_writeoptions_create();
  rocksdb_writeoptions_disable_WAL(wo, 1);
  rocksdb_writebatch_t* b = rocksdb_writebatch_create();
  rocksdb_writebatch_put_cf(b, cf[0], "k", 1, "v", 1);
  rocksdb_writebatch_put_cf(b, cf[1], "k", 1, "v", 1);
  rocksdb_write(db, wo, b, &err);
  GOOD(err);
  rocksdb_writebatch_destroy(b);
  rocksdb_flush_cf(db, NULL, cf[1], &err);
  GOOD(err);
  lithify_set_setting(db, "durability", "no-wal", &err);
  FAILS(err, "Not implemented: durability=no-wal");
  /* What a kill would leave. */
  snprintf(copy, sizeof copy, "cp -r '%s' '%s'", dir, crashed);
  CHECK(system(copy) == 0);
  for (int i = 0; i < 2; i++) rocksdb_column_family_handle_destroy(cf[i]);
  rocksdb_close(db);
  db = rocksdb_open_column_families(o, crashed, 2, names, of, cf, &err);
  GOOD(err);
  rocksdb_readoptions_t* ro = rocksdb_readoptions_create();
  for (int i = 0; i < 2; i++) {
    char* value = rocksdb_get_cf(db, ro, cf[i], "k", 1, &len, &err);
    GOOD(err);
    CHECK(value != NULL && len == 1);
    free(value);
    rocksdb_column_family_handle_destroy(cf[i]);
  }
  rocksdb_close(db);
  rocksdb_readoptions_destroy(ro);
  rocksdb_writeoptions_destroy(wo);
  rocksdb_options_destroy(o);
}

static void on_log(void* state, unsigned level, char* text, size_t len) {
  CHECK(level == 1 && strlen(text) == len);
  /* What happens later is told, too: as much as there is room for. */
  if (strlen(state) + len < 4096) strcat(state, text);
}

static void open_fails(const rocksdb_options_t* o, const char* name) {
  char* err = NULL;
  CHECK(rocksdb_open(o, fresh("refused"), &err) == NULL);
  CHECK(err != NULL && strstr(err, name) != NULL && strchr(err, '=') != NULL);
  FAILS(err, "Not implemented: ");
}

void test_options(void) {
  char* err = NULL;
  rocksdb_options_t* o = rocksdb_options_create();
  rocksdb_options_set_create_if_missing(o, 1);
  CHECK(rocksdb_options_get_create_if_missing(o) == 1);
  CHECK(rocksdb_options_get_max_bytes_for_level_multiplier(o) == 10.0);
  rocksdb_options_set_write_buffer_size(o, 1); /* Below the least: taken as that, and noted. */
  CHECK(rocksdb_options_get_write_buffer_size(o) == 1);
  rocksdb_options_set_max_write_buffer_number(o, 3);
  rocksdb_options_set_max_background_jobs(o, 6);
  rocksdb_options_set_arena_block_size(o, 4096);
  rocksdb_options_set_memtable_vector_rep(o);
  rocksdb_options_set_level0_file_num_compaction_trigger(o, 30);
  rocksdb_options_set_level0_slowdown_writes_trigger(o, 10);
  rocksdb_options_set_compression(o, 4);
  int levels[3] = {0, 1, 4};
  rocksdb_options_set_compression_per_level(o, levels, 3);
  rocksdb_options_set_compression_options(o, -14, 32767, 0, 0);
  rocksdb_options_set_max_open_files(o, 100);
  rocksdb_options_add_compact_on_deletion_collector_factory(o, 100, 50);
  rocksdb_ratelimiter_t* limiter = rocksdb_ratelimiter_create(100 << 20, 100000, 10);
  rocksdb_options_set_ratelimiter(o, limiter);
  rocksdb_ratelimiter_destroy(limiter);

  rocksdb_cache_t* cache = rocksdb_cache_create_lru(16 << 20);
  CHECK(rocksdb_cache_get_capacity(cache) == 16 << 20);
  rocksdb_block_based_table_options_t* t = rocksdb_block_based_options_create();
  rocksdb_block_based_options_set_block_cache(t, cache);
  rocksdb_block_based_options_set_block_size(t, 5000);
  rocksdb_block_based_options_set_filter_policy(t, rocksdb_filterpolicy_create_ribbon(9.9));
  rocksdb_block_based_options_set_index_type(t, 2);
  rocksdb_block_based_options_set_partition_filters(t, 1);
  rocksdb_block_based_options_set_format_version(t, 4);
  rocksdb_options_set_block_based_table_factory(o, t);
  rocksdb_block_based_options_destroy(t);
  rocksdb_cache_destroy(cache);

  char said[4096] = "";
  rocksdb_logger_t* logger = rocksdb_logger_create_callback_logger(0, on_log, said);
  rocksdb_options_set_info_log(o, logger);
  rocksdb_logger_destroy(logger);
  rocksdb_t* db = rocksdb_open(o, fresh("options"), &err);
  GOOD(err);
  CHECK(strstr(said, "opened "));
  CHECK(strstr(said, "write_buffer_size=1 (taken as 65536)"));
  CHECK(strstr(said, "rocksdb_options_set_arena_block_size=4096"));
  CHECK(strstr(said, "format_version=4 (taken as 5)"));
  CHECK(strstr(said, "block_size=5000 (taken as 8192)"));
  char key[16];
  for (int i = 0; i < 5000; i++) {
    snprintf(key, sizeof key, "key%07d", i);
    put(db, key, "a value that is not so short");
  }
  rocksdb_compact_range(db, NULL, 0, NULL, 0);
  has(db, "key0004999", "a value that is not so short");
  rocksdb_close(db);
  rocksdb_options_destroy(o);

  /* Universal and FIFO. */
  o = rocksdb_options_create();
  rocksdb_universal_compaction_options_t* u = rocksdb_universal_compaction_options_create();
  rocksdb_universal_compaction_options_set_size_ratio(u, 5);
  CHECK(rocksdb_universal_compaction_options_get_size_ratio(u) == 5);
  rocksdb_options_set_universal_compaction_options(o, u);
  rocksdb_universal_compaction_options_destroy(u);
  rocksdb_options_set_compaction_style(o, 1);
  db = open_new(o, fresh("universal"));
  put(db, "a", "1");
  rocksdb_close(db);
  rocksdb_fifo_compaction_options_t* f = rocksdb_fifo_compaction_options_create();
  rocksdb_fifo_compaction_options_set_max_table_files_size(f, 1);
  rocksdb_options_set_fifo_compaction_options(o, f);
  rocksdb_fifo_compaction_options_destroy(f);
  rocksdb_options_set_compaction_style(o, 2);
  rocksdb_options_set_compaction_pri(o, 1);
  db = open_new(o, fresh("fifo"));
  rocksdb_close(db);
  rocksdb_options_destroy(o);

  /* Mapped tables; with reads that go past them the open is refused, as RocksDB's is. */
  o = rocksdb_options_create();
  CHECK(rocksdb_options_get_allow_mmap_reads(o) == 0);
  rocksdb_options_set_allow_mmap_reads(o, 1);
  CHECK(rocksdb_options_get_allow_mmap_reads(o) == 1);
  const char* mapped = fresh("mapped");
  db = open_new(o, mapped);
  for (int i = 0; i < 5000; i++) {
    snprintf(key, sizeof key, "key%07d", i);
    put(db, key, "a value that is not so short");
  }
  rocksdb_compact_range(db, NULL, 0, NULL, 0);
  has(db, "key0000000", "a value that is not so short");
  has(db, "key0004999", "a value that is not so short");
  rocksdb_close(db);
  rocksdb_options_set_use_direct_reads(o, 1);
  rocksdb_open(o, mapped, &err);
  FAILS(err, "Not implemented: allow_mmap_reads=1: ");
  rocksdb_options_set_allow_mmap_reads(o, 0);
  rocksdb_close(open_new(o, mapped));
  rocksdb_options_destroy(o);

  /* Refused, each with its name. */
  o = rocksdb_options_create();
  rocksdb_options_set_create_if_missing(o, 1);
  rocksdb_options_set_wal_dir(o, "/elsewhere");
  open_fails(o, "wal_dir");
  /* The database's own directory, however it is spelled, before and after it is made. */
  char same[300];
  const char* own = fresh("own-wal-dir");
  snprintf(same, sizeof same, "%s/../%s/", own, strrchr(own, '/') + 1);
  const char* spelled[3] = {own, same, same};
  rocksdb_dbpath_t* path = rocksdb_dbpath_create(own, 1 << 30);
  const rocksdb_dbpath_t* paths[1] = {path};
  rocksdb_options_set_db_paths(o, paths, 1);
  for (int i = 0; i < 3; i++) {
    rocksdb_options_set_wal_dir(o, spelled[i]);
    db = rocksdb_open(o, own, &err);
    GOOD(err);
    put(db, "a", "1");
    rocksdb_close(db);
  }
  rocksdb_options_set_wal_dir(o, "/elsewhere");
  rocksdb_destroy_db(o, own, &err);
  FAILS(err, "Not implemented: wal_dir=\"/elsewhere\"");
  rocksdb_options_set_wal_dir(o, "");
  rocksdb_destroy_db(o, own, &err);
  GOOD(err);
  rocksdb_options_set_db_paths(o, NULL, 0);
  rocksdb_dbpath_destroy(path);
  rocksdb_options_set_wal_recovery_mode(o, 3);
  open_fails(o, "wal_recovery_mode");
  rocksdb_options_set_wal_recovery_mode(o, 1); /* It wants a torn end refused, and that is cut. */
  CHECK(rocksdb_options_get_wal_recovery_mode(o) == 1);
  open_fails(o, "wal_recovery_mode");
  rocksdb_options_set_wal_recovery_mode(o, 0);
  rocksdb_options_set_compression(o, 6);
  open_fails(o, "compression");
  rocksdb_options_set_compression(o, 0);
  rocksdb_options_set_compaction_style(o, 9);
  open_fails(o, "compaction_style");
  rocksdb_options_set_compaction_style(o, 0);
  rocksdb_options_set_WAL_ttl_seconds(o, 1);
  open_fails(o, "WAL_ttl_seconds");
  rocksdb_options_set_WAL_ttl_seconds(o, 0);
  rocksdb_options_set_WAL_size_limit_MB(o, 1);
  open_fails(o, "WAL_size_limit_MB");
  rocksdb_options_set_WAL_size_limit_MB(o, 0);

  /* Files in memory. */
  rocksdb_env_t* env = rocksdb_create_mem_env();
  rocksdb_options_set_env(o, env);
  db = rocksdb_open(o, "/not/there", &err);
  GOOD(err);
  put(db, "a", "1");
  rocksdb_close(db);
  db = rocksdb_open(o, "/not/there", &err);
  GOOD(err);
  has(db, "a", "1");
  rocksdb_close(db);
  rocksdb_env_destroy(env);
  rocksdb_options_destroy(o);
}

/* A comparator that reads keys from the end, and counts its ends. */
static int ended;
static void end(void* state) {
  CHECK(state == &ended);
  ended++;
}
static const char* name_of(void* state) {
  (void)state;
  return "test.callback";
}
static const char* no_utf8_name(void* state) {
  (void)state;
  return "\xff";
}
static int backwards(void* state, const char* a, size_t al, const char* b, size_t bl) {
  (void)state;
  while (al && bl) {
    unsigned char x = (unsigned char)a[--al], y = (unsigned char)b[--bl];
    if (x != y) return x < y ? -1 : 1;
  }
  return al ? 1 : bl ? -1 : 0;
}
static char* joined(void* state, const char* key, size_t kl, const char* old, size_t ol,
                    const char* const* ops, const size_t* lens, int n, unsigned char* success, size_t* out) {
  (void)state, (void)key, (void)kl;
  size_t size = ol;
  for (int i = 0; i < n; i++) size += lens[i];
  char* all = malloc(size + 1);
  size_t at = ol;
  if (ol) memcpy(all, old, ol);
  for (int i = 0; i < n; i++, at += lens[i - 1]) memcpy(all + at, ops[i], lens[i]);
  *success = !(n > 0 && lens[0] == 3 && memcmp(ops[0], "bad", 3) == 0);
  *out = size;
  return all;
}
static char* partly(void* state, const char* key, size_t kl, const char* const* ops, const size_t* lens,
                    int n, unsigned char* success, size_t* out) {
  return joined(state, key, kl, NULL, 0, ops, lens, n, success, out);
}
static unsigned char drop_x(void* state, int level, const char* key, size_t kl, const char* value, size_t vl,
                            char** out, size_t* out_len, unsigned char* changed) {
  (void)state, (void)level, (void)value, (void)vl;
  if (kl && key[0] == 'x') return 1;
  if (kl && key[0] == 'y') {
    *out = "changed";
    *out_len = 7;
    *changed = 1;
  }
  return 0;
}
static char* first_byte(void* state, const char* key, size_t len, size_t* out) {
  (void)state, (void)len;
  *out = 1;
  return (char*)key;
}
static unsigned char has_byte(void* state, const char* key, size_t len) {
  (void)state, (void)key;
  return len > 0;
}

void test_callbacks(void) {
  char* err = NULL;
  ended = 0;
  const char* dir = fresh("comparator");
  rocksdb_options_t* o = rocksdb_options_create();
  rocksdb_comparator_t* c = rocksdb_comparator_create(&ended, end, backwards, name_of);
  rocksdb_options_set_comparator(o, c);
  rocksdb_t* db = open_new(o, dir);
  put(db, "ab", "2");
  put(db, "ba", "1");
  rocksdb_compact_range(db, NULL, 0, NULL, 0);
  rocksdb_readoptions_t* ro = rocksdb_readoptions_create();
  rocksdb_iterator_t* it = rocksdb_create_iterator(db, ro);
  const char* pairs[] = {"ba", "1", "ab", "2"};
  shows(it, pairs, 2);
  rocksdb_iter_destroy(it);
  rocksdb_comparator_destroy(c);
  rocksdb_options_destroy(o);
  CHECK(ended == 0); /* The database still uses it. */
  rocksdb_close(db);
  CHECK(ended == 1);
  o = rocksdb_options_create();
  CHECK(rocksdb_open(o, dir, &err) == NULL);
  FAILS(err, "Invalid argument: ");
  rocksdb_options_destroy(o);
  CHECK(rocksdb_comparator_create(&ended, end, NULL, name_of) == NULL);
  CHECK(ended == 2);
  /* Without an object that could not be made nothing is opened: keys would lie in another order. */
  o = rocksdb_options_create();
  rocksdb_options_set_create_if_missing(o, 1);
  CHECK(rocksdb_comparator_create(&ended, end, backwards, no_utf8_name) == NULL);
  rocksdb_options_set_comparator(o, NULL);
  open_fails(o, "comparator=NULL");
  rocksdb_comparator_t* good = rocksdb_comparator_create(&ended, end, backwards, name_of);
  rocksdb_options_set_comparator(o, good);
  rocksdb_comparator_destroy(good);
  rocksdb_options_set_merge_operator(o, rocksdb_mergeoperator_create(&ended, end, joined, partly, NULL, no_utf8_name));
  open_fails(o, "merge_operator=NULL");
  rocksdb_options_set_uint64add_merge_operator(o);
  rocksdb_options_set_prefix_extractor(o, rocksdb_slicetransform_create(&ended, end, first_byte, has_byte, no_utf8_name));
  open_fails(o, "prefix_extractor=NULL");
  rocksdb_options_set_prefix_extractor(o, rocksdb_slicetransform_create_noop());
  /* NULL that was meant is none. */
  rocksdb_mergeoperator_destroy(rocksdb_mergeoperator_create(&ended, end, joined, partly, NULL, name_of));
  rocksdb_options_set_merge_operator(o, NULL);
  rocksdb_options_set_compaction_filter_factory(o, NULL);
  rocksdb_close(open_new(o, fresh("comparator-good")));
  rocksdb_options_destroy(o);

  /* Merge operator: partial and full; one that fails. */
  ended = 0;
  o = rocksdb_options_create();
  rocksdb_options_set_merge_operator(
      o, rocksdb_mergeoperator_create(&ended, end, joined, partly, NULL, name_of));
  db = open_new(o, fresh("merge"));
  rocksdb_options_destroy(o);
  rocksdb_writeoptions_t* wo = rocksdb_writeoptions_create();
  put(db, "m", "a");
  rocksdb_merge(db, wo, "m", 1, "b", 1, &err);
  rocksdb_merge(db, wo, "m", 1, "c", 1, &err);
  rocksdb_merge(db, wo, "new", 3, "d", 1, &err);
  GOOD(err);
  has(db, "m", "abc");
  rocksdb_compact_range(db, NULL, 0, NULL, 0);
  has(db, "m", "abc");
  has(db, "new", "d");
  rocksdb_merge(db, wo, "no", 2, "bad", 3, &err);
  GOOD(err);
  size_t len;
  CHECK(rocksdb_get(db, ro, "no", 2, &len, &err) == NULL);
  FAILS(err, "Corruption: Merge operator failed: ");
  rocksdb_close(db);
  CHECK(ended == 1);

  /* Compaction filter. */
  ended = 0;
  o = rocksdb_options_create();
  rocksdb_compactionfilter_t* f = rocksdb_compactionfilter_create(&ended, end, drop_x, no_utf8_name);
  rocksdb_options_set_compaction_filter(o, f);
  db = open_new(o, fresh("filter"));
  put(db, "a", "1");
  put(db, "x", "1");
  put(db, "y", "1");
  rocksdb_compactoptions_t* co = rocksdb_compactoptions_create();
  rocksdb_compactoptions_set_bottommost_level_compaction(co, 0);
  rocksdb_compact_range_opt(db, co, NULL, 0, NULL, 0);
  has(db, "x", "1"); /* One table is where it should be, and stays. */
  rocksdb_compactoptions_destroy(co);
  rocksdb_compact_range(db, NULL, 0, NULL, 0); /* By itself it is rewritten for the filter. */
  has(db, "a", "1");
  has(db, "x", NULL);
  has(db, "y", "changed");
  rocksdb_close(db);
  /* A range has its last key in it. */
  db = open_new(o, fresh("filter-last"));
  rocksdb_compact_range(db, "a", 1, "x", 1);
  put(db, "x", "1");
  rocksdb_compact_range(db, "a", 1, "w", 1);
  has(db, "x", "1");
  rocksdb_compact_range(db, "a", 1, "x", 1);
  has(db, "x", NULL);
  rocksdb_close(db);
  rocksdb_options_destroy(o);
  rocksdb_compactionfilter_destroy(f);
  CHECK(ended == 1);

  /* Prefixes: the built-in ones and the program's. */
  for (int own = 0; own < 3; own++) {
    ended = 0;
    o = rocksdb_options_create();
    rocksdb_slicetransform_t* p =
        own == 0   ? rocksdb_slicetransform_create_fixed_prefix(1)
        : own == 1 ? rocksdb_slicetransform_create_noop()
                   : rocksdb_slicetransform_create(&ended, end, first_byte, has_byte, name_of);
    rocksdb_options_set_prefix_extractor(o, p);
    db = open_new(o, fresh(own == 0 ? "prefix0" : own == 1 ? "prefix1" : "prefix2"));
    rocksdb_options_destroy(o);
    put(db, "a1", "1");
    put(db, "a2", "2");
    put(db, "b1", "3");
    rocksdb_compact_range(db, NULL, 0, NULL, 0);
    rocksdb_readoptions_set_prefix_same_as_start(ro, own != 1);
    it = rocksdb_create_iterator(db, ro);
    int seen = 0;
    for (rocksdb_iter_seek(it, "a", 1); rocksdb_iter_valid(it); rocksdb_iter_next(it)) seen++;
    CHECK(seen == (own == 1 ? 3 : 2));
    rocksdb_iter_destroy(it);
    rocksdb_close(db);
    CHECK(ended == (own == 2));
  }
  rocksdb_readoptions_destroy(ro);
  rocksdb_writeoptions_destroy(wo);
}
