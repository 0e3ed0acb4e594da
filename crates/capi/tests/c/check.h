/* What the groups of tests share: checks that name their line, errors, keys and values as strings. */
#ifndef CHECK_H
#define CHECK_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lithify_rocksdb.h"
#include "lithify.h"

#define CHECK(what)                                                        \
  do {                                                                     \
    if (!(what)) {                                                         \
      fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #what);   \
      exit(1);                                                             \
    }                                                                      \
  } while (0)

/* The last call succeeded. */
#define GOOD(err)                                                          \
  do {                                                                     \
    if ((err) != NULL) {                                                   \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, (err));           \
      exit(1);                                                             \
    }                                                                      \
  } while (0)

/* The last call failed with a message that begins so; the message is freed. */
#define FAILS(err, prefix)                                                 \
  do {                                                                     \
    if ((err) == NULL || strncmp((err), (prefix), strlen(prefix)) != 0) {  \
      fprintf(stderr, "%s:%d: expected %s, got %s\n", __FILE__, __LINE__,  \
              (prefix), (err) ? (err) : "no error");                       \
      exit(1);                                                             \
    }                                                                      \
    free(err);                                                             \
    (err) = NULL;                                                          \
  } while (0)

/* A directory for one test, which is not there yet. */
const char* fresh(const char* name);

static inline void put(rocksdb_t* db, const char* key, const char* value) {
  char* err = NULL;
  rocksdb_writeoptions_t* wo = rocksdb_writeoptions_create();
  rocksdb_put(db, wo, key, strlen(key), value, strlen(value), &err);
  GOOD(err);
  rocksdb_writeoptions_destroy(wo);
}

/* The key has this value; NULL for none. */
static inline void has_at(rocksdb_t* db, const rocksdb_readoptions_t* ro, const char* key,
                          const char* value) {
  char* err = NULL;
  size_t len = 77;
  char* got = rocksdb_get(db, ro, key, strlen(key), &len, &err);
  GOOD(err);
  if (value == NULL) {
    CHECK(got == NULL && len == 0);
  } else {
    CHECK(got != NULL && len == strlen(value) && memcmp(got, value, len) == 0);
  }
  free(got);
}

static inline void has(rocksdb_t* db, const char* key, const char* value) {
  rocksdb_readoptions_t* ro = rocksdb_readoptions_create();
  has_at(db, ro, key, value);
  rocksdb_readoptions_destroy(ro);
}

static inline rocksdb_t* open_new(const rocksdb_options_t* base, const char* dir) {
  char* err = NULL;
  rocksdb_options_t* o = base ? rocksdb_options_create_copy((rocksdb_options_t*)base)
                              : rocksdb_options_create();
  rocksdb_options_set_create_if_missing(o, 1);
  rocksdb_t* db = rocksdb_open(o, dir, &err);
  GOOD(err);
  CHECK(db != NULL);
  rocksdb_options_destroy(o);
  return db;
}

/* Iterators show these keys and values, in this order, and back again. */
static inline void shows(rocksdb_iterator_t* it, const char* const* pairs, size_t n) {
  char* err = NULL;
  size_t len;
  rocksdb_iter_seek_to_first(it);
  for (size_t i = 0; i < n; i++, rocksdb_iter_next(it)) {
    CHECK(rocksdb_iter_valid(it));
    const char* key = rocksdb_iter_key(it, &len);
    CHECK(len == strlen(pairs[2 * i]) && memcmp(key, pairs[2 * i], len) == 0);
    const char* value = rocksdb_iter_value(it, &len);
    CHECK(len == strlen(pairs[2 * i + 1]) && memcmp(value, pairs[2 * i + 1], len) == 0);
  }
  CHECK(!rocksdb_iter_valid(it));
  rocksdb_iter_seek_to_last(it);
  for (size_t i = n; i-- > 0; rocksdb_iter_prev(it)) {
    CHECK(rocksdb_iter_valid(it));
    const char* key = rocksdb_iter_key(it, &len);
    CHECK(len == strlen(pairs[2 * i]) && memcmp(key, pairs[2 * i], len) == 0);
  }
  CHECK(!rocksdb_iter_valid(it));
  rocksdb_iter_get_error(it, &err);
  GOOD(err);
}

void test_open(void);
void test_own(void);
void test_paths(void);
void test_panics(void);
void test_noted(void);
void test_kinds(void);
void test_measures(void);
void test_kinds_of_transactions(void);
void test_prepared(void);
void test_without(void);
void test_errors(void);
void test_points(void);
void test_batches(void);
void test_iterators(void);
void test_families(void);
void test_atomic_flush(void);
void test_options(void);
void test_callbacks(void);
void test_transactions(void);
void test_backups(void);
void test_shared(void);
void test_one_cache(void);
void test_one_bound(void);
void test_refused(void);
void test_updates(void);
void test_followers(void);
void test_times(void);
void test_figures(void);
void test_text(void);
void test_factories(void);
void test_memory_reads(void);

#endif
