/* What a database tells: its writes once more, its tables, figures and options; and databases that follow,
   or whose values expire. */
#include <dirent.h>
#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"

struct seen {
  int puts, deletes;
};
static void saw_put(void* s, const char* k, size_t kl, const char* v, size_t vl) {
  (void)k, (void)kl, (void)v, (void)vl;
  ((struct seen*)s)->puts++;
}
static void saw_delete(void* s, const char* k, size_t kl) {
  (void)k, (void)kl;
  ((struct seen*)s)->deletes++;
}

void test_updates(void) {
  char* err = NULL;
  rocksdb_t* db = open_new(NULL, fresh("updates"));
  CHECK(rocksdb_get_updates_since(db, 1, NULL, &err) == NULL);
  FAILS(err, "NotFound: ");
  rocksdb_wal_iterator_t* it = rocksdb_get_updates_since(db, 0, NULL, &err);
  GOOD(err);
  CHECK(!rocksdb_wal_iter_valid(it));
  uint64_t number = 9;
  CHECK(rocksdb_wal_iter_get_batch(it, &number) == NULL && number == 9);

  put(db, "a", "1");
  rocksdb_writebatch_t* batch = rocksdb_writebatch_create();
  rocksdb_writebatch_put(batch, "b", 1, "2", 1);
  rocksdb_writebatch_delete(batch, "a", 1);
  rocksdb_writebatch_put_log_data(batch, "note", 4);
  rocksdb_writeoptions_t* wo = rocksdb_writeoptions_create();
  rocksdb_write(db, wo, batch, &err);
  GOOD(err);
  rocksdb_writebatch_destroy(batch);

  /* The iterator goes on where it was. */
  struct seen seen = {0, 0};
  uint64_t firsts[2] = {1, 2};
  for (int i = 0; i < 2; i++) {
    rocksdb_wal_iter_next(it);
    rocksdb_wal_iter_status(it, &err);
    GOOD(err);
    CHECK(rocksdb_wal_iter_valid(it));
    batch = rocksdb_wal_iter_get_batch(it, &number);
    CHECK(batch != NULL && number == firsts[i]);
    CHECK(rocksdb_writebatch_count(batch) == i + 1);
    rocksdb_writebatch_iterate(batch, &seen, saw_put, saw_delete);
    rocksdb_writebatch_destroy(batch);
  }
  CHECK(seen.puts == 2 && seen.deletes == 1);
  rocksdb_wal_iter_next(it);
  CHECK(!rocksdb_wal_iter_valid(it));
  rocksdb_wal_iter_destroy(it);

  /* What is in tables is in no log any more: a gap, told at once. */
  rocksdb_flush(db, NULL, &err);
  GOOD(err);
  put(db, "c", "3");
  CHECK(rocksdb_get_updates_since(db, 1, NULL, &err) == NULL);
  FAILS(err, "NotFound: the logs hold write 1 no more");
  it = rocksdb_get_updates_since(db, 4, NULL, &err);
  GOOD(err);
  CHECK(rocksdb_wal_iter_valid(it));
  rocksdb_wal_iter_destroy(it);
  CHECK(!rocksdb_wal_iter_valid(NULL));
  rocksdb_wal_iter_next(NULL);
  rocksdb_wal_iter_destroy(NULL);
  rocksdb_writeoptions_destroy(wo);
  rocksdb_close(db);
}

/* Tables that are open and deleted. */
static int deleted_tables(void) {
  DIR* all = opendir("/proc/self/fd");
  CHECK(all != NULL);
  int n = 0;
  for (struct dirent* one; (one = readdir(all)) != NULL;) {
    char path[300], target[600] = "";
    snprintf(path, sizeof path, "/proc/self/fd/%s", one->d_name);
    if (readlink(path, target, sizeof target - 1) > 0) n += strstr(target, ".sst (deleted)") != NULL;
  }
  closedir(all);
  return n;
}

void test_followers(void) {
  char* err = NULL;
  const char* dir = fresh("primary");
  rocksdb_t* db = open_new(NULL, dir);
  put(db, "k", "1");
  rocksdb_options_t* o = rocksdb_options_create();
  CHECK(rocksdb_open_as_secondary(o, fresh("nowhere"), "unused", &err) == NULL);
  FAILS(err, "Invalid argument: ");
  const char* names[2] = {"default", "more"};
  const rocksdb_options_t* of[2] = {o, o};
  rocksdb_column_family_handle_t* more = rocksdb_create_column_family(db, o, "more", &err);
  GOOD(err);
  rocksdb_writeoptions_t* wo = rocksdb_writeoptions_create();
  rocksdb_put_cf(db, wo, more, "m", 1, "1", 1, &err);
  GOOD(err);
  rocksdb_column_family_handle_t* all[2] = {rocksdb_get_default_column_family_handle(db), more};
  rocksdb_flush_cfs(db, NULL, all, 2, &err);
  GOOD(err);
  rocksdb_t* one = rocksdb_open_as_secondary(o, dir, "unused", &err);
  GOOD(err);
  rocksdb_column_family_handle_t* seen[2];
  rocksdb_t* two = rocksdb_open_as_secondary_column_families(o, dir, "unused", 2, names, of, seen, &err);
  GOOD(err);
  has(one, "k", "1");
  put(db, "k", "2");
  rocksdb_put_cf(db, wo, more, "m", 1, "2", 1, &err);
  GOOD(err);
  rocksdb_readoptions_t* ro = rocksdb_readoptions_create();
  rocksdb_iterator_t* it = rocksdb_create_iterator_cf(two, ro, seen[1]);
  has(one, "k", "1");
  rocksdb_try_catch_up_with_primary(one, &err);
  GOOD(err);
  has(one, "k", "2");
  rocksdb_try_catch_up_with_primary(two, &err);
  GOOD(err);
  size_t len;
  char* got = rocksdb_get_cf(two, ro, seen[1], "m", 1, &len, &err);
  GOOD(err);
  CHECK(len == 1 && *got == '2');
  free(got);
  /* The iterator is of the moment before. */
  const char* then[] = {"m", "1"};
  shows(it, then, 1);
  rocksdb_iter_destroy(it);
  rocksdb_put(one, wo, "k", 1, "3", 1, &err);
  FAILS(err, "Not implemented: ");
  rocksdb_try_catch_up_with_primary(db, &err);
  FAILS(err, "Not implemented: try_catch_up_with_primary");
  /* What was seen first is let go of, as the primary has let go of it. */
  rocksdb_flush_cfs(db, NULL, all, 2, &err);
  GOOD(err);
  for (int i = 0; i < 2; i++) rocksdb_compact_range_cf(db, all[i], NULL, 0, NULL, 0);
  CHECK(deleted_tables() > 0);
  rocksdb_try_catch_up_with_primary(one, &err);
  GOOD(err);
  rocksdb_try_catch_up_with_primary(two, &err);
  GOOD(err);
  CHECK(deleted_tables() == 0);
  has(one, "k", "2");
  char* name = rocksdb_column_family_handle_get_name(seen[1], &len);
  CHECK(len == 4 && memcmp(name, "more", 4) == 0 && rocksdb_column_family_handle_get_id(seen[1]) == 1);
  free(name);
  rocksdb_put_cf(two, wo, seen[1], "m", 1, "3", 1, &err);
  FAILS(err, "Not implemented: ");
  rocksdb_delete_cf(two, wo, seen[1], "m", 1, &err);
  FAILS(err, "Not implemented: ");
  rocksdb_drop_column_family(two, seen[1], &err);
  FAILS(err, "Not implemented: ");
  rocksdb_column_family_handle_destroy(all[0]);
  rocksdb_readoptions_destroy(ro);
  rocksdb_writeoptions_destroy(wo);
  for (int i = 0; i < 2; i++) rocksdb_column_family_handle_destroy(seen[i]);
  rocksdb_column_family_handle_destroy(more);
  rocksdb_close(one);
  rocksdb_close(two);
  rocksdb_close(db);
  rocksdb_options_destroy(o);
}

void test_times(void) {
  char* err = NULL;
  rocksdb_options_t* o = rocksdb_options_create();
  rocksdb_options_set_create_if_missing(o, 1);
  rocksdb_options_set_create_missing_column_families(o, 1);
  const char* dir = fresh("times");
  const char* names[2] = {"default", "ever"};
  const rocksdb_options_t* of[2] = {o, o};
  int ttls[2] = {1, 0};
  rocksdb_column_family_handle_t* cf[2];
  rocksdb_t* db = rocksdb_open_column_families_with_ttl(o, dir, 2, names, of, cf, ttls, &err);
  GOOD(err);
  rocksdb_writeoptions_t* wo = rocksdb_writeoptions_create();
  rocksdb_readoptions_t* ro = rocksdb_readoptions_create();
  put(db, "k", "v");
  rocksdb_put_cf(db, wo, cf[1], "e", 1, "w", 1, &err);
  GOOD(err);
  sleep(3);
  has(db, "k", NULL);
  size_t len;
  char* got = rocksdb_get_cf(db, ro, cf[1], "e", 1, &len, &err);
  GOOD(err);
  CHECK(len == 1 && *got == 'w');
  free(got);
  rocksdb_column_family_handle_destroy(cf[0]);
  rocksdb_column_family_handle_destroy(cf[1]);
  rocksdb_close(db);
  db = rocksdb_open_with_ttl(o, fresh("time"), 3600, &err);
  GOOD(err);
  put(db, "k", "v");
  has(db, "k", "v");
  rocksdb_iterator_t* it = rocksdb_create_iterator(db, ro);
  const char* all[] = {"k", "v"};
  shows(it, all, 1);
  rocksdb_iter_destroy(it);
  rocksdb_column_family_handle_t* made = rocksdb_create_column_family(db, o, "made", &err);
  GOOD(err);
  rocksdb_put_cf(db, wo, made, "e", 1, "w", 1, &err);
  GOOD(err);
  rocksdb_column_family_handle_destroy(made);
  rocksdb_close(db);
  rocksdb_writeoptions_destroy(wo);
  rocksdb_readoptions_destroy(ro);
  rocksdb_options_destroy(o);
}

static int tables(rocksdb_t* db) {
  const rocksdb_livefiles_t* files = rocksdb_livefiles(db);
  int n = rocksdb_livefiles_count(files);
  rocksdb_livefiles_destroy(files);
  return n;
}

static off_t bytes_of(const char* dir, const char* name) {
  char path[600];
  struct stat st;
  snprintf(path, sizeof path, "%s/%s", dir, name);
  return stat(path, &st) == 0 ? st.st_size : -1;
}

void test_figures(void) {
  char* err = NULL;
  const char* dir = fresh("figures");
  rocksdb_options_t* o = rocksdb_options_create();
  CHECK(rocksdb_options_statistics_get_ticker_count(o, 58) == 0);
  rocksdb_options_enable_statistics(o);
  rocksdb_t* db = open_new(o, dir);
  rocksdb_disable_file_deletions(db, &err);
  GOOD(err);
  CHECK(tables(db) == 0);
  put(db, "a", "1");
  put(db, "c", "3");
  rocksdb_flush(db, NULL, &err);
  GOOD(err);
  const rocksdb_livefiles_t* files = rocksdb_livefiles(db);
  CHECK(rocksdb_livefiles_count(files) == 1);
  char name[64];
  snprintf(name, sizeof name, "%s", rocksdb_livefiles_name(files, 0) + 1);
  CHECK(bytes_of(dir, name) == (off_t)rocksdb_livefiles_size(files, 0));
  CHECK(strcmp(rocksdb_livefiles_column_family_name(files, 0), "default") == 0);
  CHECK(rocksdb_livefiles_level(files, 0) == 0);
  CHECK(rocksdb_livefiles_entries(files, 0) == 2 && rocksdb_livefiles_deletions(files, 0) == 0);
  size_t len;
  CHECK(*rocksdb_livefiles_smallestkey(files, 0, &len) == 'a' && len == 1);
  CHECK(*rocksdb_livefiles_largestkey(files, 0, &len) == 'c' && len == 1);
  CHECK(rocksdb_livefiles_name(files, 1) == NULL && rocksdb_livefiles_name(files, -1) == NULL);
  rocksdb_livefiles_destroy(files);

  /* Kept files go when they are let go. */
  put(db, "b", "2");
  rocksdb_flush(db, NULL, &err);
  GOOD(err);
  rocksdb_compact_range(db, NULL, 0, NULL, 0);
  CHECK(tables(db) == 1 && bytes_of(dir, name) > 0);
  rocksdb_enable_file_deletions(db, &err);
  GOOD(err);
  CHECK(bytes_of(dir, name) == -1);

  char* id = rocksdb_get_db_identity(db, &len);
  CHECK(id != NULL && len > 0 && len == strlen(id));
  free(id);

  CHECK(rocksdb_options_statistics_get_ticker_count(o, 58) == 3);
  CHECK(rocksdb_options_statistics_get_ticker_count(o, 3) == UINT64_MAX);
  char* text = rocksdb_options_statistics_get_string(o);
  CHECK(strstr(text, "rocksdb.number.keys.written COUNT : 3\n"));
  CHECK(!strstr(text, "block.cache.add.failures"));
  free(text);
  rocksdb_statistics_histogram_data_t* h = rocksdb_statistics_histogram_data_create();
  CHECK(rocksdb_statistics_histogram_data_get_count(h) == 0);
  rocksdb_options_statistics_get_histogram_data(o, 50, h);
  CHECK(rocksdb_statistics_histogram_data_get_count(h) == 2);
  double least = rocksdb_statistics_histogram_data_get_min(h);
  double most = rocksdb_statistics_histogram_data_get_max(h);
  CHECK(least > 0 && rocksdb_statistics_histogram_data_get_sum(h) > 0);
  CHECK(rocksdb_statistics_histogram_data_get_median(h) <= most);
  CHECK(rocksdb_statistics_histogram_data_get_p95(h) <= most);
  CHECK(rocksdb_statistics_histogram_data_get_p99(h) <= most);
  CHECK(rocksdb_statistics_histogram_data_get_average(h) <= most);
  CHECK(rocksdb_statistics_histogram_data_get_std_dev(h) >= 0);
  rocksdb_options_statistics_get_histogram_data(o, 5, h);
  CHECK(isnan(rocksdb_statistics_histogram_data_get_median(h)));
  rocksdb_statistics_histogram_data_destroy(h);

  rocksdb_set_perf_level(2);
  rocksdb_perfcontext_t* perf = rocksdb_perfcontext_create();
  rocksdb_perfcontext_reset(perf);
  has(db, "a", "1");
  CHECK(rocksdb_perfcontext_metric(perf, 7) == 1);
  CHECK(rocksdb_perfcontext_metric(perf, 0) == UINT64_MAX);
  text = rocksdb_perfcontext_report(perf, 1);
  CHECK(strstr(text, "get_read_bytes = 1") && !strstr(text, "iter_read_bytes"));
  free(text);
  rocksdb_set_perf_level(1);
  has(db, "a", "1");
  CHECK(rocksdb_perfcontext_metric(perf, 7) == 1);
  rocksdb_set_perf_level(2);
  /* An iterator counts the entries that it comes to, whether they are asked for or not, once it goes. */
  rocksdb_perfcontext_reset(perf);
  rocksdb_readoptions_t* read = rocksdb_readoptions_create();
  rocksdb_iterator_t* it = rocksdb_create_iterator(db, read);
  size_t passed = 0;
  for (rocksdb_iter_seek_to_first(it); rocksdb_iter_valid(it); rocksdb_iter_next(it)) {
    size_t klen, vlen;
    rocksdb_iter_key(it, &klen);
    rocksdb_iter_key(it, &klen);
    rocksdb_iter_value(it, &vlen);
    passed += klen + vlen;
  }
  CHECK(passed > 0 && rocksdb_iter_key(it, &len) == NULL && len == 0);
  CHECK(rocksdb_iter_value(it, &len) == NULL && len == 0);
  rocksdb_iter_destroy(it);
  rocksdb_readoptions_destroy(read);
  CHECK(rocksdb_perfcontext_metric(perf, 9) == passed);
  rocksdb_perfcontext_destroy(perf);

  /* Small logs are copied, and nothing is flushed. */
  put(db, "d", "4");
  rocksdb_checkpoint_t* checkpoint = rocksdb_checkpoint_object_create(db, &err);
  GOOD(err);
  const char* copies[2] = {fresh("copied"), fresh("flushed")};
  rocksdb_checkpoint_create(checkpoint, copies[0], UINT64_MAX, &err);
  GOOD(err);
  CHECK(tables(db) == 1);
  rocksdb_checkpoint_create(checkpoint, copies[1], 0, &err);
  GOOD(err);
  CHECK(tables(db) == 2);
  rocksdb_checkpoint_object_destroy(checkpoint);
  for (int i = 0; i < 2; i++) {
    rocksdb_t* copy = open_new(NULL, copies[i]);
    has(copy, "a", "1");
    has(copy, "d", "4");
    rocksdb_close(copy);
  }
  rocksdb_close(db);
  rocksdb_options_destroy(o);
}

void test_text(void) {
  char* err = NULL;
  rocksdb_options_t* base = rocksdb_options_create();
  rocksdb_options_t* o = rocksdb_options_create();
  rocksdb_get_options_from_string(
      base, "write_buffer_size=8M;use_fsync=true;compression=kNoCompression;"
            "block_based_table_factory={block_size=8k;filter_policy_unknown=1}", o, &err);
  FAILS(err, "Invalid argument: Unrecognized option: filter_policy_unknown");
  CHECK(rocksdb_options_get_write_buffer_size(o) == 64 << 20);
  rocksdb_get_options_from_string(base, "write_buffer_size=8M;use_fsync=true", o, &err);
  GOOD(err);
  CHECK(rocksdb_options_get_write_buffer_size(o) == 8 << 20 && rocksdb_options_get_use_fsync(o) == 1);
  rocksdb_get_options_from_string(base, "nonsense", o, &err);
  FAILS(err, "Invalid argument: Mismatched key value pair");
  const char* dir = fresh("text");
  rocksdb_t* db = open_new(o, dir);
  CHECK(bytes_of(dir, "LOG") > 0);
  const char* keys[1] = {"level0_file_num_compaction_trigger"};
  const char* values[1] = {"7"};
  rocksdb_set_options(db, 1, keys, values, &err);
  GOOD(err);
  keys[0] = "paranoid_file_checks";
  values[0] = "maybe";
  rocksdb_set_options(db, 1, keys, values, &err);
  FAILS(err, "Invalid argument: ");
  values[0] = "true";
  rocksdb_set_options(db, 1, keys, values, &err);
  GOOD(err);
  /* Memtables may become smaller and larger, within the memory that there is. */
  const char* memtables[2] = {"write_buffer_size", "max_write_buffer_number"};
  const char *small[2] = {"65536", "3"}, *huge[2] = {"1073741824", "3"};
  rocksdb_set_options(db, 2, memtables, small, &err);
  GOOD(err);
  rocksdb_set_options(db, 2, memtables, huge, &err);
  FAILS(err, "Invalid argument: memory_budget");
  for (int i = 0; i < 4000; i++) {
    char key[16];
    snprintf(key, sizeof key, "%08d", i);
    put(db, key, "a value that is one of many that fill a memtable");
  }
  uint64_t held = 0;
  CHECK(rocksdb_property_int(db, "rocksdb.cur-size-active-mem-table", &held) == 0 && held < 128 << 10);
  has(db, "00000000", "a value that is one of many that fill a memtable");
  rocksdb_column_family_handle_t* cf = rocksdb_create_column_family(db, base, "more", &err);
  GOOD(err);
  rocksdb_column_family_handle_destroy(cf);
  rocksdb_close(db);

  rocksdb_env_t* env = rocksdb_create_default_env();
  rocksdb_options_t* stored = NULL;
  size_t n = 0;
  char** names = NULL;
  rocksdb_options_t** of = NULL;
  rocksdb_load_latest_options(fresh("nothing"), env, 1, NULL, &stored, &n, &names, &of, &err);
  FAILS(err, "NotFound: ");
  rocksdb_load_latest_options(dir, env, 1, NULL, &stored, &n, &names, &of, &err);
  GOOD(err);
  CHECK(n == 2 && strcmp(names[0], "default") == 0 && strcmp(names[1], "more") == 0);
  CHECK(rocksdb_options_get_write_buffer_size(stored) == 64 << 10);
  CHECK(rocksdb_options_get_max_write_buffer_number(stored) == 3);
  CHECK(rocksdb_options_get_level0_file_num_compaction_trigger(of[0]) == 7);
  CHECK(rocksdb_options_get_level0_file_num_compaction_trigger(of[1]) == 4);
  for (size_t i = 0; i < n; i++) {
    rocksdb_options_destroy(of[i]);
    free(names[i]);
  }
  free(of);
  free(names);
  rocksdb_options_destroy(stored);
  rocksdb_env_destroy(env);
  rocksdb_options_destroy(o);
  rocksdb_options_destroy(base);
}

/* What a factory and its filters were asked. */
struct makes {
  int made, ended, full, manual, factory_ended;
};
static void factory_ended(void* s) { ((struct makes*)s)->factory_ended++; }
static const char* makes_name(void* s) {
  (void)s;
  return "makes";
}
static void filter_ended(void* s) { ((struct makes*)s)->ended++; }
static unsigned char drops_x(void* s, int level, const char* k, size_t kl, const char* v, size_t vl,
                             char** nv, size_t* nvl, unsigned char* changed) {
  (void)s, (void)level, (void)v, (void)vl, (void)nv, (void)nvl, (void)changed;
  return kl == 1 && *k == 'x';
}
static rocksdb_compactionfilter_t* make_filter(void* s, rocksdb_compactionfiltercontext_t* about) {
  struct makes* makes = s;
  makes->made++;
  makes->full += rocksdb_compactionfiltercontext_is_full_compaction(about);
  makes->manual += rocksdb_compactionfiltercontext_is_manual_compaction(about);
  return rocksdb_compactionfilter_create(s, filter_ended, drops_x, makes_name);
}

void test_factories(void) {
  char* err = NULL;
  struct makes makes = {0, 0, 0, 0, 0};
  rocksdb_options_t* o = rocksdb_options_create();
  rocksdb_options_set_disable_auto_compactions(o, 1);
  rocksdb_options_set_compaction_filter_factory(
      o, rocksdb_compactionfilterfactory_create(&makes, factory_ended, make_filter, makes_name));
  rocksdb_t* db = open_new(o, fresh("factories"));
  rocksdb_options_destroy(o);
  for (int round = 1; round <= 2; round++) {
    put(db, "x", "1");
    put(db, "y", "2");
    rocksdb_flush(db, NULL, &err);
    GOOD(err);
    CHECK(makes.made == round - 1);
    rocksdb_compact_range(db, NULL, 0, NULL, 0);
    /* One object for each compaction, which ends with it. */
    CHECK(makes.made == round && makes.full == round && makes.manual == round);
    has(db, "x", NULL);
    has(db, "y", "2");
  }
  CHECK(makes.factory_ended == 0);
  rocksdb_close(db);
  CHECK(makes.ended == 2 && makes.factory_ended == 1);
  rocksdb_compactionfilterfactory_destroy(
      rocksdb_compactionfilterfactory_create(&makes, factory_ended, make_filter, makes_name));
  CHECK(makes.factory_ended == 2);
}

void test_memory_reads(void) {
  char* err = NULL;
  const char* dir = fresh("memory");
  rocksdb_t* db = open_new(NULL, dir);
  put(db, "k", "v");
  rocksdb_flush(db, NULL, &err);
  GOOD(err);
  rocksdb_close(db);
  db = open_new(NULL, dir);
  put(db, "m", "w");
  rocksdb_readoptions_t* ro = rocksdb_readoptions_create();
  rocksdb_readoptions_set_read_tier(ro, 1);
  CHECK(rocksdb_readoptions_get_read_tier(ro) == 1);
  has_at(db, ro, "m", "w");
  size_t len;
  CHECK(rocksdb_get(db, ro, "k", 1, &len, &err) == NULL);
  FAILS(err, "Result incomplete: ");
  rocksdb_iterator_t* it = rocksdb_create_iterator(db, ro);
  rocksdb_iter_seek_to_first(it);
  CHECK(!rocksdb_iter_valid(it));
  rocksdb_iter_get_error(it, &err);
  FAILS(err, "Result incomplete: ");
  rocksdb_iter_destroy(it);
  /* It may be there, as memory does not tell. */
  unsigned char found = 7;
  CHECK(rocksdb_key_may_exist(db, ro, "k", 1, NULL, NULL, NULL, 0, &found) == 1 && found == 0);
  has(db, "k", "v");
  has_at(db, ro, "k", "v");
  rocksdb_readoptions_set_read_tier(ro, 9);
  CHECK(rocksdb_get(db, ro, "k", 1, &len, &err) == NULL);
  FAILS(err, "Not implemented: read_tier=9");
  rocksdb_readoptions_destroy(ro);
  rocksdb_close(db);
}
