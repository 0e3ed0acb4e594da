/* Bytes are calls: each says which function, which of 8 handles of its kind, and what with. A slot may be empty,
 * so every function gets NULL now and then; lengths may be wild where the pointer is NULL or the length is none
 * at all; handles go in any order, a database before what was made of it. What a caller may not do is not done:
 * a handle is destroyed once, and bytes have the length that is told.
 *
 *   calls SEED CALLS [SECONDS]   lives of random bytes, until so many calls were made and seconds are over
 *   calls FILE                   the life that the bytes of a file are */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lithify_rocksdb.h"

enum { SLOTS = 8, LIFE = 6000 };

static const uint8_t* bytes;
static size_t left;
static uint64_t calls, now; /* now: the seed of this life, told where it ends badly */
void __asan_on_error(void) { fprintf(stderr, "in the life of seed %llu\n", (unsigned long long)now); }

static unsigned byte(void) {
  if (left == 0) return 0;
  left--;
  return *bytes++;
}
static size_t small(size_t n) { return byte() % n; }

/* A pointer and a length as a call takes them: mostly bytes of ours, in a block of their own so that reading
 * past them is found; NULL with any length; a length that is none. */
typedef struct {
  char* at;
  size_t len;
  char* block;
} Slice;
static Slice slice(void) {
  unsigned kind = byte();
  if (kind < 6) return (Slice){NULL, kind == 0 ? 0 : kind == 1 ? SIZE_MAX : kind, NULL};
  size_t len = kind < 200 ? kind % 4 : kind < 250 ? kind % 64 : 700;
  char* block = malloc(len ? len : 1);
  unsigned mixed = byte();
  for (size_t i = 0; i < len; i++, mixed = mixed / 3 + i) block[i] = (char)(len < 4 ? 'a' + mixed % 4 : mixed);
  if (kind == 6) return (Slice){block, (size_t)1 << 63, block};
  return (Slice){block, len, block};
}
static void done(Slice s) { free(s.block); }

#define SLOT(type, name) static type* name[SLOTS]
SLOT(rocksdb_t, dbs);
SLOT(rocksdb_options_t, options);
SLOT(rocksdb_writeoptions_t, writes);
SLOT(rocksdb_readoptions_t, reads);
SLOT(rocksdb_writebatch_t, batches);
SLOT(rocksdb_iterator_t, iterators);
SLOT(const rocksdb_snapshot_t, snapshots);
SLOT(rocksdb_column_family_handle_t, families);
SLOT(rocksdb_pinnableslice_t, pinned);
SLOT(rocksdb_transactiondb_t, locks);
SLOT(rocksdb_optimistictransactiondb_t, optimists);
SLOT(rocksdb_transaction_t, transactions);
SLOT(rocksdb_sstfilewriter_t, writers);
SLOT(rocksdb_cache_t, caches);
SLOT(rocksdb_checkpoint_t, checkpoints);
static rocksdb_env_t* env; /* files in memory, anew for each life */
static rocksdb_transactiondb_options_t* waits;
static rocksdb_transaction_options_t* begins;
static rocksdb_optimistictransaction_options_t* begins_optimistic;

/* Mostly one of the first two, so that handles meet. */
static size_t some_slot(void) {
  unsigned at = byte();
  return at < 200 ? at % 2 : at % SLOTS;
}
/* Mostly a slot that has a handle. */
static size_t some_full(const void* const* slots) {
  size_t at = some_slot();
  if (byte() % 16 == 0) return at;
  for (size_t i = 0; i < SLOTS; i++)
    if (slots[(at + i) % SLOTS]) return (at + i) % SLOTS;
  return at;
}
#define ANY(name) name[some_full((const void* const*)name)]
static char* err;
static void failed(void) {
  if (err && strncmp(err, "Corruption: internal error", 26) == 0) {
    fprintf(stderr, "in the life of seed %llu: %s\n", (unsigned long long)now, err);
    abort();
  }
  if (byte() % 2) return; /* The next failure frees and replaces it. */
  free(err);
  err = NULL;
}
/* Puts a handle into a slot; what is in it is destroyed first. */
#define PUT(name, destroy, made)      \
  do {                                \
    size_t slot = some_slot();        \
    destroy(name[slot]);              \
    name[slot] = NULL;                \
    name[slot] = (made);              \
  } while (0)
#define DROP(name, destroy)           \
  do {                                \
    size_t slot = small(SLOTS);       \
    destroy(name[slot]);              \
    name[slot] = NULL;                \
    destroy(name[slot]);              \
  } while (0)
static void release_snapshot(const rocksdb_snapshot_t* s) {
  if (s) rocksdb_release_snapshot(byte() % 2 ? ANY(dbs) : NULL, s);
}
static void end_transaction(rocksdb_transaction_t* t) { rocksdb_transaction_destroy(t); }

static const char* name_of(void* state) { return state ? state : NULL; }
static void ended(void* state) { (void)state; }
static int compare(void* state, const char* a, size_t al, const char* b, size_t bl) {
  (void)state;
  int order = memcmp(a, b, al < bl ? al : bl);
  return order ? order : (al > bl) - (al < bl);
}
static char* merge(void* state, const char* k, size_t kl, const char* old, size_t ol, const char* const* list,
                   const size_t* lens, int n, unsigned char* good, size_t* len) {
  (void)state, (void)k, (void)kl, (void)old, (void)list;
  *good = ol % 16 != 15;
  *len = *good && n ? lens[n - 1] % 64 : 0;
  char* out = calloc(1, *len + 1);
  return out;
}
static char* merge_some(void* state, const char* k, size_t kl, const char* const* list, const size_t* lens, int n,
                        unsigned char* good, size_t* len) {
  return merge(state, k, kl, NULL, 0, list, lens, n, good, len);
}
static unsigned char filter(void* state, int level, const char* k, size_t kl, const char* v, size_t vl, char** out,
                            size_t* len, unsigned char* changed) {
  (void)state, (void)level, (void)k, (void)v;
  *changed = vl > 8;
  *out = "short";
  *len = 5;
  return kl == 1;
}

static rocksdb_options_t* some_options(void) {
  rocksdb_options_t* o = rocksdb_options_create();
  unsigned which = byte();
  rocksdb_options_set_env(o, env);
  rocksdb_options_set_create_if_missing(o, which % 8 != 0);
  rocksdb_options_set_write_buffer_size(o, which & 8 ? 0 : 1 << 20);
  rocksdb_options_set_max_background_jobs(o, (int)(which & 3));
  if (which & 16)
    rocksdb_options_set_merge_operator(
        o, rocksdb_mergeoperator_create("m", byte() % 8 ? ended : NULL, byte() % 8 ? merge : NULL,
                                        byte() % 2 ? merge_some : NULL, NULL, byte() % 8 ? name_of : NULL));
  if (which & 32) {
    rocksdb_comparator_t* c = rocksdb_comparator_create(byte() % 8 ? "c" : NULL, ended,
                                                        byte() % 8 ? compare : NULL, name_of);
    rocksdb_options_set_comparator(o, c);
    rocksdb_comparator_destroy(c);
  }
  if (which & 64) {
    rocksdb_compactionfilter_t* f = rocksdb_compactionfilter_create("f", ended, filter, name_of);
    rocksdb_options_set_compaction_filter(o, f);
    rocksdb_compactionfilter_destroy(f);
  }
  if (which & 128)
    rocksdb_options_set_prefix_extractor(o, rocksdb_slicetransform_create_fixed_prefix(byte() % 4));
  rocksdb_block_based_table_options_t* t = rocksdb_block_based_options_create();
  rocksdb_block_based_options_set_block_cache(t, ANY(caches));
  rocksdb_block_based_options_set_block_size(t, byte() * 64);
  rocksdb_block_based_options_set_filter_policy(t, rocksdb_filterpolicy_create_bloom((double)byte() - 100));
  rocksdb_options_set_block_based_table_factory(o, t);
  rocksdb_block_based_options_destroy(t);
  rocksdb_options_set_compression(o, (int)byte() - 2);
  rocksdb_options_set_num_levels(o, (int)byte() - 100);
  rocksdb_options_set_level0_file_num_compaction_trigger(o, (int)byte() - 100);
  rocksdb_options_set_target_file_size_base(o, (uint64_t)byte() << (byte() % 64));
  return o;
}

static const char* some_path(void) {
  static const char* const paths[] = {"/a", "/b", "/c", "", "/a/b", "/\xff"};
  unsigned which = byte();
  return which < 4 ? NULL : paths[which < 160 ? 0 : which % 6];
}
static const char* const family_names[] = {"default", "one", "two", "\xff"};

static void open_some(void) {
  rocksdb_options_t* o = ANY(options);
  const char* path = some_path();
  const char* names[3] = {"default", family_names[small(4)], family_names[small(4)]};
  const rocksdb_options_t* of[3] = {ANY(options), ANY(options), ANY(options)};
  rocksdb_column_family_handle_t* handles[3] = {NULL, NULL, NULL};
  int n = (int)small(5) - 1;
  if (n > 3) n = 3;
  switch (small(8)) {
    case 0: PUT(dbs, rocksdb_close, rocksdb_open(o, path, &err)); break;
    case 1: PUT(dbs, rocksdb_close, rocksdb_open_for_read_only(o, path, (unsigned char)small(8) == 0, &err)); break;
    case 2: PUT(locks, rocksdb_transactiondb_close, rocksdb_transactiondb_open(o, waits, path, &err)); break;
    case 3:
      PUT(optimists, rocksdb_optimistictransactiondb_close, rocksdb_optimistictransactiondb_open(o, path, &err));
      break;
    case 4:
      PUT(locks, rocksdb_transactiondb_close,
          rocksdb_transactiondb_open_column_families(o, waits, path, n, names, of, handles, &err));
      break;
    default: PUT(dbs, rocksdb_close, rocksdb_open_column_families(o, path, n, names, of, handles, &err));
  }
  for (int i = 0; i < 3; i++) PUT(families, rocksdb_column_family_handle_destroy, handles[i]);
}

static void write_some(void) {
  rocksdb_t* db = ANY(dbs);
  rocksdb_column_family_handle_t* f = ANY(families);
  rocksdb_writeoptions_t* w = ANY(writes);
  Slice a = slice(), b = slice();
  switch (small(10)) {
    case 0: rocksdb_put_cf(db, w, f, a.at, a.len, b.at, b.len, &err); break;
    case 1: rocksdb_merge(db, w, a.at, a.len, b.at, b.len, &err); break;
    case 2: rocksdb_merge_cf(db, w, f, a.at, a.len, b.at, b.len, &err); break;
    case 3: rocksdb_delete(db, w, a.at, a.len, &err); break;
    case 4: rocksdb_singledelete_cf(db, w, f, a.at, a.len, &err); break;
    case 5: rocksdb_delete_range_cf(db, w, f, a.at, a.len, b.at, b.len, &err); break;
    case 6: rocksdb_transactiondb_put(ANY(locks), w, a.at, a.len, b.at, b.len, &err); break;
    case 7: rocksdb_transactiondb_write(ANY(locks), w, ANY(batches), &err); break;
    default: rocksdb_put(db, w, a.at, a.len, b.at, b.len, &err);
  }
  done(a), done(b);
}

static void read_some(void) {
  enum { N = 3 };
  rocksdb_t* db = ANY(dbs);
  rocksdb_column_family_handle_t* f = ANY(families);
  rocksdb_readoptions_t* r = ANY(reads);
  Slice a = slice(), b = slice();
  size_t len = 0, lens[N] = {a.len, b.len, 0}, outs[N];
  const char* keys[N] = {a.at, b.at, NULL};
  char *values[N] = {NULL, NULL, NULL}, *errs[N] = {NULL, NULL, NULL}, *value = NULL;
  unsigned char found = 0;
  size_t n = small(N + 1);
  switch (small(8)) {
    case 0: free(rocksdb_get(db, r, a.at, a.len, byte() % 8 ? &len : NULL, &err)); break;
    case 1: free(rocksdb_get_cf(db, r, f, a.at, a.len, &len, &err)); break;
    case 2: PUT(pinned, rocksdb_pinnableslice_destroy, rocksdb_get_pinned(db, r, a.at, a.len, &err)); break;
    case 3: PUT(pinned, rocksdb_pinnableslice_destroy, rocksdb_get_pinned_cf(db, r, f, a.at, a.len, &err)); break;
    case 4:
      rocksdb_multi_get(db, r, n, keys, lens, values, outs, errs);
      for (size_t i = 0; i < N; i++) free(values[i]), free(errs[i]);
      break;
    case 5:
      rocksdb_key_may_exist_cf(db, r, f, a.at, a.len, &value, &len, NULL, 0, &found);
      free(value);
      break;
    case 6: free(rocksdb_property_value(db, byte() % 2 ? "rocksdb.stats" : NULL)); break;
    default: {
      const char* at = rocksdb_pinnableslice_value(ANY(pinned), &len);
      for (size_t i = 0; i < len; i++) found ^= (unsigned char)at[i];
    }
  }
  done(a), done(b);
}

static void on_put(void* of, const char* k, size_t kl, const char* v, size_t vl) {
  unsigned char* sum = of;
  for (size_t i = 0; i < kl; i++) *sum ^= (unsigned char)k[i];
  for (size_t i = 0; i < vl; i++) *sum ^= (unsigned char)v[i];
}
static void on_delete(void* of, const char* k, size_t kl) { on_put(of, k, kl, NULL, 0); }

static void batch_some(void) {
  rocksdb_writebatch_t* b = ANY(batches);
  rocksdb_column_family_handle_t* f = ANY(families);
  Slice k = slice(), v = slice();
  size_t len = 0;
  unsigned char sum = 0;
  switch (small(14)) {
    case 0: PUT(batches, rocksdb_writebatch_destroy, rocksdb_writebatch_create()); break;
    case 1:
    case 2: PUT(batches, rocksdb_writebatch_destroy, rocksdb_writebatch_create_from(k.at, k.len)); break;
    case 3: { /* Its own bytes, one of them changed. */
      const char* data = rocksdb_writebatch_data(b, &len);
      char* copy = malloc(len ? len : 1);
      if (len) memcpy(copy, data, len), copy[byte() * 7 % len] ^= (char)byte();
      PUT(batches, rocksdb_writebatch_destroy, rocksdb_writebatch_create_from(copy, len));
      free(copy);
      break;
    }
    case 4: rocksdb_writebatch_put_cf(b, f, k.at, k.len, v.at, v.len); break;
    case 5: rocksdb_writebatch_delete_range(b, k.at, k.len, v.at, v.len); break;
    case 6: rocksdb_writebatch_set_save_point(b); break;
    case 7: rocksdb_writebatch_rollback_to_save_point(b, &err); break;
    case 8: rocksdb_writebatch_iterate(b, &sum, byte() % 8 ? on_put : NULL, byte() % 8 ? on_delete : NULL); break;
    case 9: rocksdb_writebatch_clear(b); break;
    case 10: rocksdb_writebatch_put_log_data(b, k.at, k.len); break;
    case 11: DROP(batches, rocksdb_writebatch_destroy); break;
    case 12: rocksdb_writebatch_merge(b, k.at, k.len, v.at, v.len); break;
    default: rocksdb_write(ANY(dbs), ANY(writes), b, &err);
  }
  done(k), done(v);
}

static void walk_some(void) {
  rocksdb_iterator_t* it = ANY(iterators);
  Slice k = slice();
  size_t len = 0;
  unsigned char sum = 0;
  switch (small(12)) {
    case 0: PUT(iterators, rocksdb_iter_destroy, rocksdb_create_iterator(ANY(dbs), ANY(reads))); break;
    case 1: PUT(iterators, rocksdb_iter_destroy, rocksdb_create_iterator_cf(ANY(dbs), ANY(reads), ANY(families))); break;
    case 2: PUT(iterators, rocksdb_iter_destroy, rocksdb_transaction_create_iterator(ANY(transactions), ANY(reads))); break;
    case 3: rocksdb_iter_seek(it, k.at, k.len); break;
    case 4: rocksdb_iter_seek_for_prev(it, k.at, k.len); break;
    case 5: rocksdb_iter_seek_to_first(it); break;
    case 6: rocksdb_iter_seek_to_last(it); break;
    case 7: rocksdb_iter_prev(it); break;
    case 8: rocksdb_iter_refresh(it, &err); break;
    case 9: DROP(iterators, rocksdb_iter_destroy); break;
    default: rocksdb_iter_next(it);
  }
  it = ANY(iterators);
  if (rocksdb_iter_valid(it)) {
    const char* at = rocksdb_iter_key(it, &len);
    on_put(&sum, at, len, NULL, 0);
    at = rocksdb_iter_value(it, &len);
    on_put(&sum, at, len, NULL, 0);
  } else {
    rocksdb_iter_get_error(it, &err);
  }
  done(k);
}

static void transact_some(void) {
  rocksdb_transaction_t* t = ANY(transactions);
  Slice k = slice(), v = slice();
  size_t len = 0, slot = small(SLOTS);
  rocksdb_transaction_t* old = byte() % 2 ? transactions[slot] : NULL;
  switch (small(13)) {
    case 0:
    case 1: {
      rocksdb_transaction_t* made =
          byte() % 2 ? rocksdb_transaction_begin(ANY(locks), ANY(writes), begins, old)
                     : rocksdb_optimistictransaction_begin(ANY(optimists), ANY(writes), begins_optimistic, old);
      if (old == NULL) rocksdb_transaction_destroy(transactions[slot]);
      if (old == NULL || made != NULL) transactions[slot] = made; /* Or the old one stays. */
      break;
    }
    case 2: rocksdb_transaction_put(t, k.at, k.len, v.at, v.len, &err); break;
    case 3: rocksdb_transaction_delete(t, k.at, k.len, &err); break;
    case 4: free(rocksdb_transaction_get(t, ANY(reads), k.at, k.len, &len, &err)); break;
    case 5: free(rocksdb_transaction_get_for_update(t, ANY(reads), k.at, k.len, &len, 1, &err)); break;
    case 6: rocksdb_transaction_merge(t, k.at, k.len, v.at, v.len, &err); break;
    case 7: rocksdb_transaction_commit(t, &err); break;
    case 8: rocksdb_transaction_rollback(t, &err); break;
    case 9: rocksdb_transaction_set_savepoint(t); break;
    case 10: rocksdb_transaction_rollback_to_savepoint(t, &err); break;
    case 11: rocksdb_free((void*)rocksdb_transaction_get_snapshot(t)); break;
    default: DROP(transactions, end_transaction);
  }
  done(k), done(v);
}

static void keep_house(void) {
  rocksdb_t* db = ANY(dbs);
  Slice a = slice(), b = slice();
  switch (small(16)) {
    case 0: PUT(snapshots, release_snapshot, rocksdb_create_snapshot(db)); break;
    case 1: DROP(snapshots, release_snapshot); break;
    case 2: PUT(families, rocksdb_column_family_handle_destroy,
                rocksdb_create_column_family(db, ANY(options), family_names[small(4)], &err)); break;
    case 3: rocksdb_drop_column_family(db, ANY(families), &err); break;
    case 4: DROP(families, rocksdb_column_family_handle_destroy); break;
    case 5: rocksdb_flush_cf(db, NULL, ANY(families), &err); break;
    case 6: rocksdb_compact_range(db, a.at, a.len, b.at, b.len); break;
    case 7: PUT(checkpoints, rocksdb_checkpoint_object_destroy, rocksdb_checkpoint_object_create(db, &err)); break;
    case 8: rocksdb_checkpoint_create(ANY(checkpoints), some_path(), 0, &err); break;
    case 9: {
      const char *names[1] = {"level0_file_num_compaction_trigger"}, *values[1] = {byte() % 2 ? "5" : "\xff"};
      rocksdb_set_options(db, (int)byte() % 3 - 1, names, values, &err);
      break;
    }
    case 10: rocksdb_sstfilewriter_put(ANY(writers), a.at, a.len, b.at, b.len, &err); break;
    case 11: rocksdb_sstfilewriter_finish(ANY(writers), &err); break;
    case 12: {
      const char* path = some_path();
      rocksdb_ingestexternalfileoptions_t* how = rocksdb_ingestexternalfileoptions_create();
      rocksdb_ingest_external_file(db, &path, 1, how, &err);
      rocksdb_ingestexternalfileoptions_destroy(how);
      break;
    }
    case 13: rocksdb_destroy_db(ANY(options), some_path(), &err); break;
    case 14: rocksdb_delete_file_in_range(db, a.at, a.len, b.at, b.len, &err); break;
    default: rocksdb_sstfilewriter_open(ANY(writers), some_path(), &err);
  }
  done(a), done(b);
}

static void set_some(void) {
  Slice k = slice();
  rocksdb_readoptions_t* r = ANY(reads);
  rocksdb_envoptions_t* e;
  switch (small(14)) {
    case 0: PUT(options, rocksdb_options_destroy, some_options()); break;
    case 1: PUT(writes, rocksdb_writeoptions_destroy, rocksdb_writeoptions_create()); break;
    case 2: PUT(reads, rocksdb_readoptions_destroy, rocksdb_readoptions_create()); break;
    case 3: rocksdb_readoptions_set_snapshot(r, ANY(snapshots)); break;
    case 4: rocksdb_readoptions_set_iterate_lower_bound(r, k.at, k.len); break;
    case 5: rocksdb_readoptions_set_iterate_upper_bound(r, k.at, k.len); break;
    case 6: rocksdb_readoptions_set_tailing(r, (unsigned char)byte() % 2); break;
    case 7: rocksdb_readoptions_set_pin_data(r, (unsigned char)byte() % 2); break;
    case 8: rocksdb_writeoptions_disable_WAL(ANY(writes), byte() % 2); break;
    case 9: rocksdb_readoptions_set_prefix_same_as_start(r, (unsigned char)byte() % 2); break;
    case 10: PUT(caches, rocksdb_cache_destroy, rocksdb_cache_create_lru((size_t)byte() << (byte() % 24))); break;
    case 11: DROP(options, rocksdb_options_destroy); break;
    case 12: DROP(reads, rocksdb_readoptions_destroy); break;
    default:
      e = rocksdb_envoptions_create();
      PUT(writers, rocksdb_sstfilewriter_destroy, rocksdb_sstfilewriter_create(e, ANY(options)));
      rocksdb_envoptions_destroy(e);
  }
  done(k);
}

#define END(name, destroy)                     \
  for (int i = 0; i < SLOTS; i++) {            \
    destroy(name[i]);                          \
    name[i] = NULL;                            \
  }

static void live(const uint8_t* at, size_t len) {
  bytes = at, left = len;
  env = rocksdb_create_mem_env();
  for (int i = 0; i < 3; i++) { /* Not from nothing. */
    options[i] = rocksdb_options_create();
    rocksdb_options_set_env(options[i], env);
    rocksdb_options_set_create_if_missing(options[i], 1);
    rocksdb_options_set_create_missing_column_families(options[i], 1);
    writes[i] = rocksdb_writeoptions_create();
    reads[i] = rocksdb_readoptions_create();
    batches[i] = rocksdb_writebatch_create();
  }
  dbs[0] = rocksdb_open(options[0], "/a", &err);
  while (left > 0) {
    unsigned kind = byte();
    calls++;
    if (kind < 6) open_some();
    else if (kind < 7) {
      if (byte() % 2) DROP(dbs, rocksdb_close);
      else DROP(locks, rocksdb_transactiondb_close);
    } else if (kind < 70) write_some();
    else if (kind < 120) read_some();
    else if (kind < 150) batch_some();
    else if (kind < 190) walk_some();
    else if (kind < 215) transact_some();
    else if (kind < 225) keep_house();
    else set_some();
    failed();
  }
  /* In one of two orders: the databases first, or last. */
  int first = at[0] % 2;
  if (first) END(dbs, rocksdb_close);
  if (first) END(locks, rocksdb_transactiondb_close);
  END(pinned, rocksdb_pinnableslice_destroy);
  END(transactions, end_transaction);
  END(iterators, rocksdb_iter_destroy);
  END(snapshots, release_snapshot);
  END(families, rocksdb_column_family_handle_destroy);
  END(checkpoints, rocksdb_checkpoint_object_destroy);
  END(writers, rocksdb_sstfilewriter_destroy);
  END(batches, rocksdb_writebatch_destroy);
  END(dbs, rocksdb_close);
  END(locks, rocksdb_transactiondb_close);
  END(optimists, rocksdb_optimistictransactiondb_close);
  END(options, rocksdb_options_destroy);
  END(writes, rocksdb_writeoptions_destroy);
  END(reads, rocksdb_readoptions_destroy);
  END(caches, rocksdb_cache_destroy);
  rocksdb_env_destroy(env);
  free(err);
  err = NULL;
}

int main(int argc, char** argv) {
  if (argc < 2) return fprintf(stderr, "calls SEED CALLS | calls FILE\n"), 2;
  waits = rocksdb_transactiondb_options_create();
  rocksdb_transactiondb_options_set_default_lock_timeout(waits, 0);
  rocksdb_transactiondb_options_set_transaction_lock_timeout(waits, 0);
  begins = rocksdb_transaction_options_create();
  begins_optimistic = rocksdb_optimistictransaction_options_create();
  static uint8_t life[1 << 20];
  if (argc == 2) {
    FILE* file = fopen(argv[1], "r");
    if (!file) return perror(argv[1]), 2;
    live(life, fread(life, 1, sizeof life, file));
    fclose(file);
  } else {
    uint64_t state = strtoull(argv[1], NULL, 10), wanted = strtoull(argv[2], NULL, 10);
    time_t end = time(NULL) + (argc > 3 ? atoi(argv[3]) : 0);
    while (calls < wanted || time(NULL) < end) {
      uint64_t seed = state;
      now = seed;
      for (size_t i = 0; i < LIFE; i++) { /* xorshift of a mixed seed */
        seed = (seed + 0x9e3779b97f4a7c15u) * 0xbf58476d1ce4e5b9u;
        seed ^= seed >> 29;
        life[i] = (uint8_t)(seed >> 32);
      }
      live(life, LIFE);
      state++;
    }
  }
  rocksdb_transactiondb_options_destroy(waits);
  rocksdb_transaction_options_destroy(begins);
  rocksdb_optimistictransaction_options_destroy(begins_optimistic);
  fprintf(stderr, "%llu calls\n", (unsigned long long)calls);
  return 0;
}
