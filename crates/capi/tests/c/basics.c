/* Opening and closing, errors, single keys, batches. */
#include "check.h"

void test_open(void) {
  char* err = NULL;
  const char* dir = fresh("open");
  rocksdb_options_t* o = rocksdb_options_create();
  CHECK(rocksdb_open(o, dir, &err) == NULL);
  FAILS(err, "Invalid argument: ");

  rocksdb_t* db = open_new(NULL, dir);
  put(db, "", "of the empty key");
  put(db, "apple", "red");
  CHECK(rocksdb_get_latest_sequence_number(db) == 2);
  /* One owner at a time. */
  CHECK(rocksdb_open(o, dir, &err) == NULL);
  FAILS(err, "IO error: ");
  rocksdb_destroy_db(o, dir, &err);
  FAILS(err, "IO error: ");
  rocksdb_close(db);

  rocksdb_options_set_error_if_exists(o, 1);
  CHECK(rocksdb_open(o, dir, &err) == NULL);
  FAILS(err, "Invalid argument: ");
  rocksdb_options_set_error_if_exists(o, 0);
  db = rocksdb_open(o, dir, &err);
  GOOD(err);
  has(db, "", "of the empty key");
  has(db, "apple", "red");
  rocksdb_close(db);

  rocksdb_t* reader = rocksdb_open_for_read_only(o, dir, 0, &err);
  GOOD(err);
  has(reader, "apple", "red");
  rocksdb_writeoptions_t* wo = rocksdb_writeoptions_create();
  rocksdb_put(reader, wo, "a", 1, "b", 1, &err);
  FAILS(err, "Not implemented: ");
  rocksdb_writeoptions_destroy(wo);
  rocksdb_close(reader);
  CHECK(rocksdb_open_for_read_only(o, dir, 1, &err) == NULL);
  FAILS(err, "Not implemented: ");

  rocksdb_repair_db(o, dir, &err);
  GOOD(err);
  rocksdb_destroy_db(o, dir, &err);
  GOOD(err);
  CHECK(rocksdb_open(o, dir, &err) == NULL);
  FAILS(err, "Invalid argument: ");
  rocksdb_destroy_db(o, dir, &err); /* None there: no error. */
  GOOD(err);
  rocksdb_options_destroy(o);
}

void test_errors(void) {
  char* err = NULL;
  const char* dir = fresh("errors");
  rocksdb_t* db = open_new(NULL, dir);
  rocksdb_writeoptions_t* wo = rocksdb_writeoptions_create();
  rocksdb_readoptions_t* ro = rocksdb_readoptions_create();
  size_t len = 0;

  /* Untouched on success, freed and replaced on failure. */
  err = strdup("mine");
  rocksdb_put(db, wo, "a", 1, "1", 1, &err);
  CHECK(strcmp(err, "mine") == 0);
  rocksdb_put(NULL, wo, "a", 1, "1", 1, &err);
  CHECK(strstr(err, "mine") == NULL);
  FAILS(err, "Invalid argument: ");

  /* NULL where there is a place for an error, and where there is none. */
  rocksdb_put(db, NULL, "a", 1, "1", 1, &err);
  FAILS(err, "Invalid argument: ");
  rocksdb_put(db, wo, NULL, 3, "1", 1, &err);
  FAILS(err, "Invalid argument: ");
  rocksdb_put(db, wo, "a", (size_t)-1, "1", 1, &err);
  FAILS(err, "Invalid argument: ");
  CHECK(rocksdb_get(db, NULL, "a", 1, &len, &err) == NULL);
  FAILS(err, "Invalid argument: ");
  CHECK(rocksdb_open(NULL, dir, &err) == NULL);
  FAILS(err, "Invalid argument: ");
  rocksdb_options_t* o = rocksdb_options_create();
  CHECK(rocksdb_open(o, NULL, &err) == NULL);
  FAILS(err, "Invalid argument: ");
  rocksdb_options_destroy(o);
  rocksdb_put(NULL, wo, "a", 1, "1", 1, NULL);
  rocksdb_close(NULL);
  rocksdb_options_destroy(NULL);
  rocksdb_options_set_create_if_missing(NULL, 1);
  rocksdb_iter_destroy(NULL);
  rocksdb_iter_next(NULL);
  CHECK(!rocksdb_iter_valid(NULL));
  rocksdb_writebatch_put(NULL, "a", 1, "b", 1);
  rocksdb_free(NULL);
  CHECK(rocksdb_create_snapshot(NULL) == NULL);
  CHECK(rocksdb_property_value(db, NULL) == NULL);

  /* Two options that contradict each other. */
  rocksdb_writeoptions_set_sync(wo, 1);
  rocksdb_writeoptions_disable_WAL(wo, 1);
  rocksdb_put(db, wo, "a", 1, "2", 1, &err);
  FAILS(err, "Invalid argument: ");
  rocksdb_writeoptions_set_sync(wo, 0);
  rocksdb_put(db, wo, "a", 1, "2", 1, &err);
  GOOD(err);

  /* What is refused says so at the next call that can. */
  rocksdb_readoptions_set_ignore_range_deletions(ro, 1);
  CHECK(rocksdb_get(db, ro, "a", 1, &len, &err) == NULL);
  FAILS(err, "Not implemented: rocksdb_readoptions_set_ignore_range_deletions=1");
  rocksdb_iterator_t* it = rocksdb_create_iterator(db, ro);
  rocksdb_iter_seek_to_first(it);
  CHECK(!rocksdb_iter_valid(it));
  rocksdb_iter_get_error(it, &err);
  FAILS(err, "Not implemented: ");
  rocksdb_iter_destroy(it);
  rocksdb_readoptions_set_ignore_range_deletions(ro, 0);
  has_at(db, ro, "a", "2");

  /* A range whose ends are swapped is an error, an empty one is not. */
  rocksdb_column_family_handle_t* cf = rocksdb_get_default_column_family_handle(db);
  rocksdb_delete_range_cf(db, wo, cf, "b", 1, "a", 1, &err);
  FAILS(err, "Invalid argument: ");
  rocksdb_delete_range_cf(db, wo, cf, "b", 1, "b", 1, &err);
  GOOD(err);
  rocksdb_column_family_handle_destroy(cf);

  /* After the close, what is still about says so. */
  it = rocksdb_create_iterator(db, ro);
  rocksdb_iter_seek_to_first(it);
  CHECK(rocksdb_iter_valid(it));
  const rocksdb_snapshot_t* snapshot = rocksdb_create_snapshot(db);
  rocksdb_pinnableslice_t* pinned = rocksdb_get_pinned(db, ro, "a", 1, &err);
  GOOD(err);
  rocksdb_close(db);
  rocksdb_iter_next(it);
  CHECK(!rocksdb_iter_valid(it));
  rocksdb_iter_get_error(it, &err);
  FAILS(err, "Shutdown in progress: ");
  CHECK(memcmp(rocksdb_pinnableslice_value(pinned, &len), "2", 1) == 0 && len == 1);
  rocksdb_iter_destroy(it);
  rocksdb_pinnableslice_destroy(pinned);
  rocksdb_release_snapshot(NULL, snapshot);
  db = open_new(NULL, dir); /* The lock is free. */
  rocksdb_close(db);
  rocksdb_writeoptions_destroy(wo);
  rocksdb_readoptions_destroy(ro);
}

void test_points(void) {
  char* err = NULL;
  size_t len;
  rocksdb_t* db = open_new(NULL, fresh("points"));
  rocksdb_writeoptions_t* wo = rocksdb_writeoptions_create();
  rocksdb_readoptions_t* ro = rocksdb_readoptions_create();
  put(db, "a", "1");
  put(db, "b", "");
  put(db, "", "first");
  put(db, "z\xff", "last");
  has(db, "a", "1");
  has(db, "b", "");
  has(db, "", "first");
  has(db, "c", NULL);
  put(db, "a", "2");
  has(db, "a", "2");
  rocksdb_delete(db, wo, "a", 1, &err);
  GOOD(err);
  has(db, "a", NULL);
  rocksdb_delete(db, wo, "never", 5, &err);
  GOOD(err);
  put(db, "once", "1");
  rocksdb_singledelete(db, wo, "once", 4, &err);
  GOOD(err);
  has(db, "once", NULL);
  rocksdb_merge(db, wo, "a", 1, "x", 1, &err);
  FAILS(err, "Invalid argument: "); /* No operator. */

  rocksdb_pinnableslice_t* p = rocksdb_get_pinned(db, ro, "z\xff", 2, &err);
  GOOD(err);
  CHECK(memcmp(rocksdb_pinnableslice_value(p, &len), "last", 4) == 0 && len == 4);
  put(db, "z\xff", "newer");
  rocksdb_flushoptions_t* fo = rocksdb_flushoptions_create();
  rocksdb_flush(db, fo, &err);
  GOOD(err);
  rocksdb_flushoptions_destroy(fo);
  rocksdb_compact_range(db, NULL, 0, NULL, 0);
  CHECK(memcmp(rocksdb_pinnableslice_value(p, &len), "last", 4) == 0);
  rocksdb_pinnableslice_destroy(p);
  CHECK(rocksdb_get_pinned(db, ro, "gone", 4, &err) == NULL);
  GOOD(err);

  /* Several at once. */
  const char* keys[4] = {"b", "gone", "z\xff", ""};
  size_t key_lens[4] = {1, 4, 2, 0}, lens[4];
  char *values[4], *errs[4];
  rocksdb_multi_get(db, ro, 4, keys, key_lens, values, lens, errs);
  const char* expected[4] = {"", NULL, "newer", "first"};
  for (int i = 0; i < 4; i++) {
    GOOD(errs[i]);
    CHECK((values[i] == NULL) == (expected[i] == NULL));
    if (values[i]) CHECK(lens[i] == strlen(expected[i]) && !memcmp(values[i], expected[i], lens[i]));
    rocksdb_free(values[i]);
  }
  const char* broken[2] = {"b", NULL};
  size_t broken_lens[2] = {1, 9};
  rocksdb_multi_get(db, ro, 2, broken, broken_lens, values, lens, errs);
  for (int i = 0; i < 2; i++) {
    CHECK(values[i] == NULL);
    FAILS(errs[i], "Invalid argument: ");
  }
  rocksdb_column_family_handle_t* cf = rocksdb_get_default_column_family_handle(db);
  rocksdb_pinnableslice_t* slices[4];
  rocksdb_batched_multi_get_cf(db, ro, cf, 4, keys, key_lens, slices, errs, false);
  for (int i = 0; i < 4; i++) {
    GOOD(errs[i]);
    CHECK((slices[i] == NULL) == (expected[i] == NULL));
    rocksdb_pinnableslice_destroy(slices[i]);
  }

  unsigned char found = 7;
  char* value = NULL;
  CHECK(rocksdb_key_may_exist(db, ro, "b", 1, &value, &len, NULL, 0, &found) == 1 && found == 1 && len == 0);
  rocksdb_free(value);
  CHECK(rocksdb_key_may_exist(db, ro, "gone", 4, NULL, NULL, NULL, 0, NULL) == 0);

  /* A snapshot keeps what was there; one number for each entry. */
  uint64_t before = rocksdb_get_latest_sequence_number(db);
  const rocksdb_snapshot_t* s = rocksdb_create_snapshot(db);
  CHECK(rocksdb_snapshot_get_sequence_number(s) == before);
  put(db, "b", "changed");
  CHECK(rocksdb_get_latest_sequence_number(db) == before + 1);
  rocksdb_readoptions_set_snapshot(ro, s);
  has_at(db, ro, "b", "");
  rocksdb_readoptions_set_snapshot(ro, NULL);
  has_at(db, ro, "b", "changed");
  rocksdb_release_snapshot(db, s);

  rocksdb_delete_range_cf(db, wo, cf, "", 0, "c", 1, &err);
  GOOD(err);
  has(db, "", NULL);
  has(db, "b", NULL);
  has(db, "z\xff", "newer");

  char* text = rocksdb_property_value(db, "rocksdb.estimate-num-keys");
  CHECK(text != NULL);
  rocksdb_free(text);
  CHECK(rocksdb_property_value(db, "rocksdb.no-such-thing") == NULL);
  uint64_t number = 0;
  CHECK(rocksdb_property_int(db, "rocksdb.num-snapshots", &number) == 0 && number == 0);
  CHECK(rocksdb_property_int(db, "rocksdb.no-such-thing", &number) == -1);
  const char *starts[1] = {""}, *limits[1] = {"zz"};
  size_t start_lens[1] = {0}, limit_lens[1] = {2};
  uint64_t sizes[1] = {7};
  rocksdb_approximate_sizes(db, 1, starts, start_lens, limits, limit_lens, sizes, &err);
  GOOD(err);
  rocksdb_approximate_sizes(db, -1, starts, start_lens, limits, limit_lens, sizes, &err);
  FAILS(err, "Invalid argument: ");
  rocksdb_flush_wal(db, 1, &err);
  GOOD(err);
  rocksdb_delete_file_in_range(db, "a", 1, "z", 1, &err);
  GOOD(err);
  rocksdb_wait_for_compact_options_t* waits = rocksdb_wait_for_compact_options_create();
  rocksdb_wait_for_compact_options_set_flush(waits, 1);
  rocksdb_wait_for_compact(db, waits, &err);
  GOOD(err);
  rocksdb_wait_for_compact_options_destroy(waits);
  rocksdb_column_family_handle_destroy(cf);
  rocksdb_writeoptions_destroy(wo);
  rocksdb_readoptions_destroy(ro);
  rocksdb_close(db);
}

static void on_put(void* state, const char* k, size_t kl, const char* v, size_t vl) {
  char** at = state;
  *at += sprintf(*at, "+%.*s=%.*s", (int)kl, k, (int)vl, v);
}
static void on_delete(void* state, const char* k, size_t kl) {
  char** at = state;
  *at += sprintf(*at, "-%.*s", (int)kl, k);
}
static void on_put_cf(void* state, uint32_t cf, const char* k, size_t kl, const char* v, size_t vl) {
  char** at = state;
  *at += sprintf(*at, "%u+%.*s=%.*s", cf, (int)kl, k, (int)vl, v);
}
static void on_delete_cf(void* state, uint32_t cf, const char* k, size_t kl) {
  char** at = state;
  *at += sprintf(*at, "%u-%.*s", cf, (int)kl, k);
}
static void on_merge_cf(void* state, uint32_t cf, const char* k, size_t kl, const char* v, size_t vl) {
  char** at = state;
  *at += sprintf(*at, "%u&%.*s=%.*s", cf, (int)kl, k, (int)vl, v);
}

void test_batches(void) {
  char* err = NULL;
  size_t len;
  rocksdb_options_t* o = rocksdb_options_create();
  rocksdb_options_set_uint64add_merge_operator(o);
  rocksdb_t* db = open_new(o, fresh("batches"));
  rocksdb_options_destroy(o);
  rocksdb_writeoptions_t* wo = rocksdb_writeoptions_create();
  rocksdb_writebatch_t* b = rocksdb_writebatch_create();
  rocksdb_writebatch_put(b, "a", 1, "1", 1);
  rocksdb_writebatch_put_log_data(b, "note", 4);
  rocksdb_writebatch_delete(b, "b", 1);
  CHECK(rocksdb_writebatch_count(b) == 2);
  const char* data = rocksdb_writebatch_data(b, &len);
  CHECK(len == 12 + 5 + 6 + 3 && memcmp(data + 12, "\1\1a\0011\3\4note\0\1b", 14) == 0);
  rocksdb_writebatch_t* copy = rocksdb_writebatch_create_from(data, len);
  char seen[256] = "", *at = seen;
  rocksdb_writebatch_iterate(copy, &at, on_put, on_delete);
  CHECK(strcmp(seen, "+a=1-b") == 0);
  put(db, "b", "old");
  rocksdb_write(db, wo, copy, &err);
  GOOD(err);
  has(db, "a", "1");
  has(db, "b", NULL);
  rocksdb_writebatch_destroy(copy);

  /* What can't be added keeps the rest from being written, too. */
  rocksdb_column_family_handle_t* family = rocksdb_get_default_column_family_handle(db);
  for (int i = 0; i < 3; i++) {
    copy = rocksdb_writebatch_create();
    rocksdb_writebatch_put(copy, "half", 4, "1", 1);
    if (i == 0) rocksdb_writebatch_put_cf(copy, NULL, "k", 1, "v", 1);
    if (i == 1) rocksdb_writebatch_delete(copy, NULL, 1);
    if (i == 2) rocksdb_writebatch_merge_cf(copy, family, "k", 1, NULL, 8);
    rocksdb_write(db, wo, copy, &err);
    FAILS(err, "Invalid argument: ");
    has(db, "half", NULL);
    rocksdb_writebatch_clear(copy);
    rocksdb_write(db, wo, copy, &err);
    GOOD(err);
    rocksdb_writebatch_destroy(copy);
  }
  rocksdb_column_family_handle_destroy(family);

  /* Every cut of it is refused, at the write. */
  for (size_t cut = 0; cut < len; cut++) {
    copy = rocksdb_writebatch_create_from(data, cut);
    rocksdb_write(db, wo, copy, &err);
    FAILS(err, "Corruption: ");
    rocksdb_writebatch_destroy(copy);
  }

  rocksdb_writebatch_set_save_point(b);
  rocksdb_writebatch_delete_range(b, "a", 1, "b", 1);
  rocksdb_writebatch_rollback_to_save_point(b, &err);
  GOOD(err);
  CHECK(rocksdb_writebatch_count(b) == 2);
  rocksdb_writebatch_rollback_to_save_point(b, &err);
  FAILS(err, "NotFound: ");
  rocksdb_writebatch_pop_save_point(b, &err);
  FAILS(err, "NotFound: ");

  rocksdb_writebatch_clear(b);
  CHECK(rocksdb_writebatch_count(b) == 0);
  rocksdb_write(db, wo, b, &err); /* Nothing to do. */
  GOOD(err);
  rocksdb_column_family_handle_t* cf = rocksdb_get_default_column_family_handle(db);
  rocksdb_writebatch_put_cf(b, cf, "n", 1, "\1\0\0\0\0\0\0\0", 8);
  rocksdb_writebatch_merge(b, "n", 1, "\2\0\0\0\0\0\0\0", 8);
  rocksdb_writebatch_merge_cf(b, cf, "n", 1, "\3\0\0\0\0\0\0\0", 8);
  rocksdb_writebatch_singledelete(b, "s", 1);
  rocksdb_writebatch_singledelete_cf(b, cf, "s", 1);
  rocksdb_writebatch_delete_cf(b, cf, "d", 1);
  at = seen;
  rocksdb_writebatch_iterate_cf(b, &at, on_put_cf, on_delete_cf, on_merge_cf);
  CHECK(strncmp(seen, "0+n=\1", 5) == 0 && strcmp(at - 3, "0-d") == 0);
  rocksdb_writebatch_delete_range_cf(b, cf, "a", 1, "b", 1);
  CHECK(rocksdb_writebatch_count(b) == 7);
  rocksdb_write(db, wo, b, &err);
  GOOD(err);
  rocksdb_readoptions_t* ro = rocksdb_readoptions_create();
  char* six = rocksdb_get(db, ro, "n", 1, &len, &err);
  GOOD(err);
  CHECK(len == 8 && six[0] == 6);
  free(six);
  has(db, "a", NULL);

  /* What a batch could not take is told when it is written. */
  rocksdb_writebatch_clear(b);
  rocksdb_writebatch_put(b, NULL, 5, "v", 1);
  CHECK(rocksdb_writebatch_count(b) == 0);
  char* huge = calloc(1, (16 << 20) + 1);
  rocksdb_writebatch_put(b, huge, (16 << 20) + 1, "v", 1);
  free(huge);
  rocksdb_writebatch_put(b, "late", 4, "v", 1);
  rocksdb_write(db, wo, b, &err);
  FAILS(err, "Invalid argument: ");
  has(db, "late", NULL);
  rocksdb_writebatch_destroy(b);
  b = rocksdb_writebatch_create_with_params(100, 0, 0, 8);
  rocksdb_write(db, wo, b, &err);
  FAILS(err, "Not implemented: ");
  rocksdb_writebatch_destroy(b);
  rocksdb_column_family_handle_destroy(cf);
  rocksdb_readoptions_destroy(ro);
  rocksdb_writeoptions_destroy(wo);
  rocksdb_close(db);
}
