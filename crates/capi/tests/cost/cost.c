/* cost DIR ENTRIES ROUNDS: puts, gets and a walk of 16 B + 100 B, each in one line as nanoseconds of this thread's
 * processor time per operation: what other programs are at meanwhile is none of it.
 * Its twin in Rust is crates/capi/examples/cost.rs: the same keys in the same order. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lithify_rocksdb.h"

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}
static void good(char* err) {
  if (err) fprintf(stderr, "%s\n", err), exit(1);
}
/* The keys in an order that is not theirs: 0x9e37... is odd, so all of a power of two come once. */
static void key_of(uint64_t i, uint64_t entries, char* key) {
  uint64_t n = (i * 0x9e3779b97f4a7c15u) & (entries - 1);
  for (int at = 0; at < 16; at++) key[at] = "0123456789abcdef"[(n >> (60 - 4 * at)) & 15];
}

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  uint64_t entries = strtoull(argv[2], NULL, 10), rounds = strtoull(argv[3], NULL, 10);
  char *err = NULL, key[17], value[100];
  memset(value, 'v', sizeof value);
  rocksdb_options_t* options = rocksdb_options_create();
  rocksdb_options_set_create_if_missing(options, 1);
  rocksdb_options_set_compression(options, 0);
  rocksdb_options_set_write_buffer_size(options, 1 << 30);
  rocksdb_t* db = rocksdb_open(options, argv[1], &err);
  good(err);
  rocksdb_writeoptions_t* write = rocksdb_writeoptions_create();
  rocksdb_readoptions_t* read = rocksdb_readoptions_create();
  for (uint64_t round = 0; round < rounds; round++) {
    double start = now();
    for (uint64_t i = 0; i < entries; i++) {
      key_of(i, entries, key);
      rocksdb_put(db, write, key, 16, value, 100, &err);
      good(err);
    }
    printf("put %f\n", (now() - start) / (double)entries);
    start = now();
    size_t len, sum = 0;
    for (uint64_t i = 0; i < entries; i++) {
      key_of(i, entries, key);
      char* got = rocksdb_get(db, read, key, 16, &len, &err);
      good(err);
      sum += len + (size_t)got[0];
      rocksdb_free(got);
    }
    printf("get %f\n", (now() - start) / (double)entries);
    if (sum != entries * (100 + 'v')) return 1;
    start = now();
    rocksdb_iterator_t* it = rocksdb_create_iterator(db, read);
    uint64_t seen = 0;
    for (rocksdb_iter_seek_to_first(it); rocksdb_iter_valid(it); rocksdb_iter_next(it)) {
      size_t klen;
      sum += (size_t)rocksdb_iter_key(it, &klen)[0] + (size_t)rocksdb_iter_value(it, &len)[0];
      sum += klen + len;
      seen++;
    }
    printf("next %f\n", (now() - start) / (double)entries);
    if (seen != entries) return 1;
    rocksdb_iter_destroy(it);
  }
  rocksdb_readoptions_destroy(read);
  rocksdb_writeoptions_destroy(write);
  rocksdb_close(db);
  rocksdb_options_destroy(options);
  return 0;
}
