/* Directories for tables: db_paths of a database, cf_paths of a family. */
#include <dirent.h>
#include <unistd.h>

#include "check.h"

/* Tables in a directory, which may not be there. */
static int tables(const char* dir) {
  int n = 0;
  DIR* d = opendir(dir);
  if (d == NULL) return 0;
  for (struct dirent* e = readdir(d); e != NULL; e = readdir(d)) {
    const char* dot = strrchr(e->d_name, '.');
    n += dot != NULL && strcmp(dot, ".sst") == 0;
  }
  closedir(d);
  return n;
}

static void set_one(rocksdb_options_t* o, const char* dir, int of_family) {
  rocksdb_dbpath_t* path = rocksdb_dbpath_create(dir, 0);
  const rocksdb_dbpath_t* paths[1] = {path};
  if (of_family) {
    rocksdb_options_set_cf_paths(o, paths, 1);
  } else {
    rocksdb_options_set_db_paths(o, paths, 1);
  }
  rocksdb_dbpath_destroy(path);
}

static void flush(rocksdb_t* db, rocksdb_column_family_handle_t* family) {
  char* err = NULL;
  rocksdb_flushoptions_t* fo = rocksdb_flushoptions_create();
  if (family != NULL) {
    rocksdb_flush_cf(db, fo, family, &err);
  } else {
    rocksdb_flush(db, fo, &err);
  }
  GOOD(err);
  rocksdb_flushoptions_destroy(fo);
}

/* The test of the Rust binding: tables of one family in a directory of their own, inside the database's. */
static void of_a_family(void) {
  char* err = NULL;
  const char* dir = fresh("cf-paths");
  char inside[600];
  snprintf(inside, sizeof inside, "%s/cf1_sst", dir);
  rocksdb_options_t* o = rocksdb_options_create();
  rocksdb_options_set_create_if_missing(o, 1);
  rocksdb_options_set_create_missing_column_families(o, 1);
  rocksdb_options_t* own = rocksdb_options_create();
  set_one(own, inside, 1);
  const char* names[2] = {"default", "cf1"};
  const rocksdb_options_t* each[2] = {o, own};
  rocksdb_column_family_handle_t* handles[2];
  rocksdb_t* db = rocksdb_open_column_families(o, dir, 2, names, each, handles, &err);
  GOOD(err);
  rocksdb_writeoptions_t* wo = rocksdb_writeoptions_create();
  rocksdb_put_cf(db, wo, handles[1], "k1", 2, "v1", 2, &err);
  GOOD(err);
  flush(db, handles[1]);
  CHECK(tables(inside) == 1);
  CHECK(tables(dir) == 0);
  /* One made later, with and without. */
  rocksdb_column_family_handle_t* plain = rocksdb_create_column_family(db, o, "plain", &err);
  GOOD(err);
  rocksdb_put_cf(db, wo, plain, "k2", 2, "v2", 2, &err);
  GOOD(err);
  flush(db, plain);
  CHECK(tables(inside) == 1);
  CHECK(tables(dir) == 1);
  rocksdb_drop_column_family(db, plain, &err);
  GOOD(err);
  rocksdb_column_family_handle_destroy(plain);
  rocksdb_column_family_handle_destroy(handles[0]);
  rocksdb_column_family_handle_destroy(handles[1]);
  rocksdb_close(db);
  /* Without its directory the family is refused, and with it all is there. */
  const rocksdb_options_t* without[2] = {o, o};
  db = rocksdb_open_column_families(o, dir, 2, names, without, handles, &err);
  CHECK(db == NULL && strstr(err, "cf_paths") != NULL);
  FAILS(err, "Invalid argument: ");
  db = rocksdb_open_column_families(o, dir, 2, names, each, handles, &err);
  GOOD(err);
  rocksdb_readoptions_t* ro = rocksdb_readoptions_create();
  size_t len;
  char* got = rocksdb_get_cf(db, ro, handles[1], "k1", 2, &len, &err);
  GOOD(err);
  CHECK(len == 2 && memcmp(got, "v1", 2) == 0);
  free(got);
  rocksdb_readoptions_destroy(ro);
  rocksdb_writeoptions_destroy(wo);
  rocksdb_column_family_handle_destroy(handles[0]);
  rocksdb_column_family_handle_destroy(handles[1]);
  rocksdb_close(db);
  rocksdb_options_destroy(own);
  rocksdb_options_destroy(o);
}

void test_paths(void) {
  char* err = NULL;
  const char* dir = fresh("db-paths");
  const char* fast = fresh("db-paths-fast");
  const char* large = fresh("db-paths-large");
  rocksdb_options_t* o = rocksdb_options_create();
  rocksdb_options_set_create_if_missing(o, 1);
  rocksdb_dbpath_t* each[2] = {rocksdb_dbpath_create(fast, 20 << 20),
                               rocksdb_dbpath_create(large, 30 << 20)};
  rocksdb_options_set_db_paths(o, (const rocksdb_dbpath_t**)each, 2);
  rocksdb_dbpath_destroy(each[0]);
  rocksdb_dbpath_destroy(each[1]);
  rocksdb_t* db = rocksdb_open(o, dir, &err);
  GOOD(err);
  put(db, "k1", "v1");
  flush(db, NULL);
  CHECK(tables(fast) == 1 && tables(dir) == 0 && tables(large) == 0);
  /* Levels from 0 on are larger than the first directory is to be. */
  put(db, "k1", "v2");
  flush(db, NULL);
  rocksdb_compact_range(db, NULL, 0, NULL, 0);
  CHECK(tables(fast) == 0 && tables(dir) == 0 && tables(large) == 1);
  rocksdb_close(db);
  db = rocksdb_open(o, dir, &err);
  GOOD(err);
  has(db, "k1", "v2");
  rocksdb_close(db);
  /* Another database has no business there, and this one can't do without. */
  rocksdb_open(o, fresh("db-paths-other"), &err);
  FAILS(err, "Invalid argument: ");
  rocksdb_options_t* plain = rocksdb_options_create();
  rocksdb_open(plain, dir, &err);
  CHECK(strstr(err, "db_paths") != NULL);
  FAILS(err, "Invalid argument: ");
  rocksdb_destroy_db(plain, large, &err);
  GOOD(err);
  CHECK(tables(large) == 1);
  rocksdb_options_destroy(plain);
  rocksdb_destroy_db(o, dir, &err);
  GOOD(err);
  CHECK(access(dir, F_OK) != 0 && access(fast, F_OK) != 0 && access(large, F_OK) != 0);
  rocksdb_options_destroy(o);
  of_a_family();
}
