/* The functions of lithify.h. */
#include "check.h"

#include "lithify.h"

static void count(void* state, uint64_t done, uint64_t total) {
  (void)done, (void)total;
  ++*(int*)state;
}
/* Text that is handed out has this in it. */
static void tells(char* text, const char* what) {
  CHECK(text != NULL);
  if (strstr(text, what) == NULL) {
    fprintf(stderr, "%s is not in:\n%s\n", what, text);
    exit(1);
  }
  rocksdb_free(text);
}

void test_own(void) {
  char* err = NULL;
  int told = 0;
  CHECK(strcmp(lithify_version(), "0.1.0") == 0);
  CHECK(strcmp(lithify_symbol_class("rocksdb_put"), "exact") == 0);
  CHECK(strcmp(lithify_symbol_class("rocksdb_options_set_memtable_vector_rep"), "noted") == 0);
  CHECK(strcmp(lithify_symbol_class("rocksdb_put_with_ts"), "refused") == 0);
  CHECK(lithify_symbol_class("rocksdb_put_entity") == NULL && lithify_symbol_class("") == NULL);

  rocksdb_options_t* o = rocksdb_options_create();
  lithify_options_set(o, "l0_trigger", "7", &err);
  GOOD(err);
  tells(lithify_options_get(o, "l0_trigger", &err), "7");
  GOOD(err);
  lithify_options_set(o, "l0_triger", "7", &err);
  FAILS(err, "Invalid argument: ");
  CHECK(strcmp(lithify_last_error_kind(), "InvalidArgument") == 0);
  CHECK(lithify_last_error_file() == NULL && lithify_last_error_offset() == -1 && lithify_last_error_errno() == 0);
  tells(lithify_last_error_advice(), "change the call");
  CHECK(lithify_options_get(o, "l0_triger", &err) == NULL);
  FAILS(err, "Invalid argument: ");

  const char* dir = fresh("own");
  rocksdb_t* db = open_new(o, dir);
  tells(lithify_settings(db), "l0_trigger=7 # ");
  lithify_set_setting(db, "l0_trigger", "9", &err);
  GOOD(err);
  tells(lithify_settings(db), "l0_trigger=9 # ");
  rocksdb_writeoptions_t* wo = rocksdb_writeoptions_create();
  const char* levels[4] = {"no-wal", "buffered", "os", "sync"};
  for (int i = 0; i < 4; i++) {
    lithify_writeoptions_set_durability(wo, levels[i], &err);
    GOOD(err);
    rocksdb_put(db, wo, levels[i], strlen(levels[i]), "v", 1, &err);
    GOOD(err);
  }
  lithify_writeoptions_set_durability(wo, "surely", &err);
  FAILS(err, "Invalid argument: ");
  tells(lithify_explain(db), "write");
  lithify_settle(db, &err);
  GOOD(err);
  tells(lithify_picture(db), "L");
  rocksdb_close(db);

  tells(lithify_verify(o, dir, count, &told, &err), "");
  GOOD(err);
  CHECK(told > 0);
  CHECK(lithify_salvage(o, dir, fresh("salvaged"), NULL, NULL, &err) == 4);
  GOOD(err);
  /* Settled, it is a directory of RocksDB's format, which is taken over like one. */
  lithify_import(o, fresh("nothing there"), fresh("imported"), count, &told, &err);
  CHECK(err != NULL && lithify_last_error_kind() != NULL);
  free(err);
  rocksdb_writeoptions_destroy(wo);
  rocksdb_options_destroy(o);
}
