/* A panic within the library, asked for by LITHIFY_CAPI_PANIC (builds with debug assertions alone): the call fails
 * or gives nothing, the process lives, and the database reads as before. */
#include "check.h"

static rocksdb_t* db;

static void panic_in(const char* name) {
  setenv("LITHIFY_CAPI_PANIC", name, 1);
}
static void still_there(void) {
  unsetenv("LITHIFY_CAPI_PANIC");
  has(db, "a", "1");
}
/* A call with a place for errors. */
#define FAILING(name, call)                                    \
  do {                                                         \
    panic_in(#name);                                           \
    call;                                                      \
    FAILS(err, "Corruption: internal error: " #name " panicked"); \
    still_there();                                             \
  } while (0)
/* One without: what it gives is nothing. */
#define EMPTY(name, call)                                      \
  do {                                                         \
    panic_in(#name);                                           \
    CHECK((call) == 0);                                        \
    still_there();                                             \
  } while (0)
#define SILENT(name, call)                                     \
  do {                                                         \
    panic_in(#name);                                           \
    call;                                                      \
    still_there();                                             \
  } while (0)

void test_panics(void) {
  char *err = NULL, *values[1], *errs[1];
  size_t len, lens[1] = {1};
  const char* keys[1] = {"a"};
  db = open_new(NULL, fresh("panics"));
  put(db, "a", "1");
  panic_in("rocksdb_get_latest_sequence_number");
  if (rocksdb_get_latest_sequence_number(db) != 0) { /* A release build does not ask. */
    still_there();
    rocksdb_close(db);
    return;
  }
  unsetenv("LITHIFY_CAPI_PANIC");
  rocksdb_options_t* o = rocksdb_options_create();
  rocksdb_writeoptions_t* w = rocksdb_writeoptions_create();
  rocksdb_readoptions_t* r = rocksdb_readoptions_create();
  rocksdb_column_family_handle_t* cf = rocksdb_get_default_column_family_handle(db);
  rocksdb_writebatch_t* b = rocksdb_writebatch_create();
  rocksdb_iterator_t* it = rocksdb_create_iterator(db, r);
  rocksdb_iter_seek_to_first(it);

  FAILING(rocksdb_open, CHECK(rocksdb_open(o, fresh("never-opened"), &err) == NULL));
  FAILING(rocksdb_list_column_families, CHECK(rocksdb_list_column_families(o, "x", &len, &err) == NULL));
  FAILING(rocksdb_create_column_family, CHECK(rocksdb_create_column_family(db, o, "f", &err) == NULL));
  FAILING(rocksdb_put, rocksdb_put(db, w, "a", 1, "2", 1, &err));
  FAILING(rocksdb_put_cf, rocksdb_put_cf(db, w, cf, "a", 1, "2", 1, &err));
  FAILING(rocksdb_delete, rocksdb_delete(db, w, "a", 1, &err));
  FAILING(rocksdb_merge, rocksdb_merge(db, w, "a", 1, "2", 1, &err));
  FAILING(rocksdb_delete_range_cf, rocksdb_delete_range_cf(db, w, cf, "a", 1, "b", 1, &err));
  FAILING(rocksdb_write, rocksdb_write(db, w, b, &err));
  FAILING(rocksdb_get, CHECK(rocksdb_get(db, r, "a", 1, &len, &err) == NULL));
  FAILING(rocksdb_get_pinned, CHECK(rocksdb_get_pinned(db, r, "a", 1, &err) == NULL));
  FAILING(rocksdb_flush, rocksdb_flush(db, NULL, &err));
  FAILING(rocksdb_flush_wal, rocksdb_flush_wal(db, 1, &err));
  FAILING(rocksdb_set_options, rocksdb_set_options(db, 1, keys, keys, &err));
  FAILING(rocksdb_iter_get_error, rocksdb_iter_get_error(it, &err));
  FAILING(rocksdb_iter_refresh, rocksdb_iter_refresh(it, &err));
  FAILING(rocksdb_checkpoint_object_create, CHECK(rocksdb_checkpoint_object_create(db, &err) == NULL));
  FAILING(rocksdb_backup_engine_open, CHECK(rocksdb_backup_engine_open(o, "x", &err) == NULL));
  FAILING(rocksdb_destroy_db, rocksdb_destroy_db(o, fresh("not-destroyed"), &err));
  FAILING(rocksdb_writebatch_pop_save_point, rocksdb_writebatch_pop_save_point(b, &err));

  EMPTY(rocksdb_options_create, rocksdb_options_create());
  EMPTY(rocksdb_create_iterator, rocksdb_create_iterator(db, r));
  EMPTY(rocksdb_iter_valid, rocksdb_iter_valid(it));
  EMPTY(rocksdb_iter_key, rocksdb_iter_key(it, &len));
  EMPTY(rocksdb_create_snapshot, rocksdb_create_snapshot(db));
  EMPTY(rocksdb_property_value, rocksdb_property_value(db, "rocksdb.stats"));
  EMPTY(rocksdb_writebatch_create, rocksdb_writebatch_create());
  EMPTY(rocksdb_cache_create_lru, rocksdb_cache_create_lru(1));
  SILENT(rocksdb_iter_next, rocksdb_iter_next(it));
  SILENT(rocksdb_writebatch_put, rocksdb_writebatch_put(b, "a", 1, "2", 1));
  SILENT(rocksdb_compact_range, rocksdb_compact_range(db, NULL, 0, NULL, 0));
  CHECK(rocksdb_iter_valid(it)); /* It did not move. */
  CHECK(rocksdb_writebatch_count(b) == 0);
  values[0] = errs[0] = NULL;
  SILENT(rocksdb_multi_get, rocksdb_multi_get(db, r, 1, keys, lens, values, lens, errs));

  /* What was written before is there after all this, and a write still works. */
  put(db, "b", "2");
  rocksdb_iter_destroy(it);
  rocksdb_writebatch_destroy(b);
  rocksdb_column_family_handle_destroy(cf);
  rocksdb_readoptions_destroy(r);
  rocksdb_writeoptions_destroy(w);
  rocksdb_options_destroy(o);
  rocksdb_close(db);
  db = open_new(NULL, fresh("panics-done"));
  put(db, "a", "1");
  still_there();
  rocksdb_close(db);
}
