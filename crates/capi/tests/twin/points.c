/* Single keys: put, get and their kin, of all families, with and without a snapshot. */
#include "twin.h"

int by_bytes(const void* a, const void* b) {
  const Bytes *x = a, *y = b;
  int order = memcmp(x->at, y->at, x->len < y->len ? x->len : y->len);
  return order ? order : (x->len > y->len) - (x->len < y->len);
}
rocksdb_writeoptions_t* some_write(void) {
  if (!once_in(8)) return world.write;
  world.has_unlogged = 1;
  return world.write_unlogged;
}

static int op_put(void) {
  if (!writable()) return 0;
  char* err = NULL;
  int f = some_family();
  Bytes key = some_key(), value = value_for(f);
  say(" %d", f);
  say_bytes(key.at, key.len);
  say_bytes(value.at, value.len);
  if (world.mode == LOCKS) {
    if (f == 0) rocksdb_transactiondb_put(world.locks, world.write, key.at, key.len, value.at, value.len, &err);
    else
      rocksdb_transactiondb_put_cf(world.locks, world.write, world.family[f], key.at, key.len, value.at,
                                   value.len, &err);
  } else if (f == 0 && once_in(2)) {
    rocksdb_put(world.db, some_write(), key.at, key.len, value.at, value.len, &err);
  } else {
    rocksdb_put_cf(world.db, some_write(), world.family[f], key.at, key.len, value.at, value.len, &err);
  }
  say_error(&err);
  return 1;
}

static int op_merge(void) {
  int f = some_family();
  if (!writable() || f == REVERSED || f == FILTERED) return 0;
  char* err = NULL;
  Bytes key = some_key(), value = value_for(f);
  say(" %d", f);
  say_bytes(key.at, key.len);
  if (world.mode == LOCKS) {
    if (f == 0)
      rocksdb_transactiondb_merge(world.locks, world.write, key.at, key.len, value.at, value.len, &err);
    else
      rocksdb_transactiondb_merge_cf(world.locks, world.write, world.family[f], key.at, key.len, value.at,
                                     value.len, &err);
  } else if (f == 0 && once_in(2)) {
    rocksdb_merge(world.db, some_write(), key.at, key.len, value.at, value.len, &err);
  } else {
    rocksdb_merge_cf(world.db, some_write(), world.family[f], key.at, key.len, value.at, value.len, &err);
  }
  say_error(&err);
  return 1;
}

static int op_delete(void) {
  if (!writable()) return 0;
  char* err = NULL;
  int f = some_family();
  Bytes key = some_key();
  say(" %d", f);
  say_bytes(key.at, key.len);
  if (world.mode == LOCKS) {
    if (f == 0) rocksdb_transactiondb_delete(world.locks, world.write, key.at, key.len, &err);
    else rocksdb_transactiondb_delete_cf(world.locks, world.write, world.family[f], key.at, key.len, &err);
  } else if (f == 0 && once_in(2)) {
    rocksdb_delete(world.db, some_write(), key.at, key.len, &err);
  } else {
    rocksdb_delete_cf(world.db, some_write(), world.family[f], key.at, key.len, &err);
  }
  say_error(&err);
  return 1;
}

/* Keys that are put once and deleted once, as RocksDB asks for; no range deletion reaches them. */
static int op_single_delete(void) {
  if (!writable() || world.mode == LOCKS) return 0;
  char *err = NULL, key[8];
  static unsigned next;
  size_t len = (size_t)snprintf(key, sizeof key, "z%05u", next++ % 100000);
  int by_family = once_in(2);
  if (by_family) {
    rocksdb_put_cf(world.db, world.write, world.family[0], key, len, "once", 4, &err);
    say_error(&err);
    rocksdb_singledelete_cf(world.db, world.write, world.family[0], key, len, &err);
  } else {
    rocksdb_put(world.db, world.write, key, len, "once", 4, &err);
    say_error(&err);
    rocksdb_singledelete(world.db, world.write, key, len, &err);
  }
  say_error(&err);
  char* got = rocksdb_get(world.db, world.read, key, len, &len, &err);
  say_bytes(got, len);
  say_error(&err);
  free(got);
  return 1;
}

static int op_delete_range(void) {
  if (!writable() || world.mode != PLAIN) return 0;
  char* err = NULL;
  int f = some_family();
  /* Where iterators follow, as RocksDB's do not see range deletions; where the order is ours, as its backups
   * crash on them. */
  if (f == 1 || f == 4 || f == REVERSED) return 0;
  Bytes from = some_key(), to = some_key();
  if (by_bytes(&from, &to) > 0) { /* RocksDB stops all writes after a swapped one. */
    Bytes other = from;
    from = to, to = other;
  }
  say(" %d", f);
  say_bytes(from.at, from.len);
  say_bytes(to.at, to.len);
  rocksdb_delete_range_cf(world.db, some_write(), world.family[f], from.at, from.len, to.at, to.len, &err);
  say_error(&err);
  return 1;
}

static int op_get(void) {
  char* err = NULL;
  size_t len = 99;
  int f = some_family();
  Bytes key = some_key();
  rocksdb_readoptions_t* read = some_read();
  say(" %d", f);
  say_bytes(key.at, key.len);
  char* got;
  if (world.mode == LOCKS && once_in(2))
    got = f == 0 ? rocksdb_transactiondb_get(world.locks, read, key.at, key.len, &len, &err)
                 : rocksdb_transactiondb_get_cf(world.locks, read, world.family[f], key.at, key.len, &len, &err);
  else
    got = f == 0 ? rocksdb_get(world.db, read, key.at, key.len, &len, &err)
                 : rocksdb_get_cf(world.db, read, world.family[f], key.at, key.len, &len, &err);
  say_bytes(got, len);
  say(" %zu", len);
  say_error(&err);
  free(got);
  rocksdb_readoptions_destroy(read);
  return 1;
}

static int op_get_pinned(void) {
  char* err = NULL;
  size_t len;
  int f = some_family();
  Bytes key = some_key();
  rocksdb_readoptions_t* read = some_read();
  say(" %d", f);
  say_bytes(key.at, key.len);
  rocksdb_pinnableslice_t* got;
  if (world.mode == LOCKS && once_in(2))
    got = f == 0
              ? rocksdb_transactiondb_get_pinned(world.locks, read, key.at, key.len, &err)
              : rocksdb_transactiondb_get_pinned_cf(world.locks, read, world.family[f], key.at, key.len, &err);
  else
    got = f == 0 ? rocksdb_get_pinned(world.db, read, key.at, key.len, &err)
                 : rocksdb_get_pinned_cf(world.db, read, world.family[f], key.at, key.len, &err);
  const char* value = rocksdb_pinnableslice_value(got, &len);
  say_bytes(value, len);
  say_error(&err);
  rocksdb_pinnableslice_destroy(got);
  rocksdb_readoptions_destroy(read);
  return 1;
}

enum { MANY = 6 };
static int op_multi_get(void) {
  Bytes keys[MANY];
  const char* at[MANY];
  const rocksdb_column_family_handle_t* families[MANY];
  size_t lens[MANY], value_lens[MANY];
  char *values[MANY], *errors[MANY];
  int of_locks = world.mode == LOCKS && once_in(2), by_family = once_in(2);
  rocksdb_readoptions_t* read = some_read();
  size_t n = below(MANY + 1);
  say(" %zu", n);
  for (size_t i = 0; i < n; i++) {
    keys[i] = some_key();
    at[i] = keys[i].at;
    lens[i] = keys[i].len;
    families[i] = world.family[some_family()];
  }
  if (of_locks && by_family)
    rocksdb_transactiondb_multi_get_cf(world.locks, read, families, n, at, lens, values, value_lens, errors);
  else if (of_locks)
    rocksdb_transactiondb_multi_get(world.locks, read, n, at, lens, values, value_lens, errors);
  else if (by_family)
    rocksdb_multi_get_cf(world.db, read, families, n, at, lens, values, value_lens, errors);
  else
    rocksdb_multi_get(world.db, read, n, at, lens, values, value_lens, errors);
  for (size_t i = 0; i < n; i++) {
    say_bytes(values[i], value_lens[i]);
    if (errors[i]) say_error(&errors[i]);
    free(values[i]);
  }
  rocksdb_readoptions_destroy(read);
  return 1;
}

static int op_batched_multi_get(void) {
  Bytes keys[MANY];
  const char* at[MANY];
  size_t lens[MANY];
  char* errors[MANY];
  rocksdb_pinnableslice_t* values[MANY];
  rocksdb_readoptions_t* read = some_read();
  int f = some_family();
  size_t n = below(MANY + 1);
  for (size_t i = 0; i < n; i++) {
    keys[i] = some_key();
    at[i] = keys[i].at;
    lens[i] = keys[i].len;
  }
  say(" %d", f);
  rocksdb_batched_multi_get_cf(world.db, read, world.family[f], n, at, lens, values, errors, 0);
  for (size_t i = 0; i < n; i++) {
    size_t len = 0;
    const char* value = values[i] ? rocksdb_pinnableslice_value(values[i], &len) : NULL;
    say_bytes(value, len);
    if (errors[i]) say_error(&errors[i]);
    if (values[i]) rocksdb_pinnableslice_destroy(values[i]);
  }
  rocksdb_readoptions_destroy(read);
  return 1;
}

/* What is there may be there. Of what is not, the answer may be either. */
static int op_may_exist(void) {
  char *err = NULL, *value = NULL;
  size_t len = 0, got_len;
  unsigned char found = 0, may;
  int f = some_family();
  Bytes key = some_key();
  say_bytes(key.at, key.len);
  if (f == 0)
    may = rocksdb_key_may_exist(world.db, world.read, key.at, key.len, &value, &len, NULL, 0, &found);
  else
    may = rocksdb_key_may_exist_cf(world.db, world.read, world.family[f], key.at, key.len, &value, &len, NULL,
                                   0, &found);
  char* got = rocksdb_get_cf(world.db, world.read, world.family[f], key.at, key.len, &got_len, &err);
  if (got) say(" %d", may);
  /* A value that comes with the answer is the value. */
  if (found) say_bytes(got, got != NULL && got_len == len && memcmp(got, value, len) == 0 ? got_len : 0);
  else say_bytes(got, got_len);
  say_error(&err);
  free(value);
  free(got);
  return 1;
}

static int op_sequence(void) {
  say_sequence();
  return 1;
}

const Entry point_operations[] = {
    {"put", 160, op_put},
    {"merge", 60, op_merge},
    {"delete", 50, op_delete},
    {"single_delete", 5, op_single_delete},
    {"delete_range", 6, op_delete_range},
    {"get", 100, op_get},
    {"get_pinned", 40, op_get_pinned},
    {"multi_get", 20, op_multi_get},
    {"batched_multi_get", 15, op_batched_multi_get},
    {"may_exist", 15, op_may_exist},
    {"sequence", 10, op_sequence},
    {NULL, 0, NULL},
};
