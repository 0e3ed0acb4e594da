/* Write batches: filled, taken back, read out, made of bytes, and written. */
#include "twin.h"

static rocksdb_writebatch_t* batches[2];
/* Families that entries of a batch name, so that none is written after its family went. */
static int save_points[2];

static int some_batch(void) {
  int b = (int)below(2);
  if (batches[b] == NULL) {
    batches[b] = once_in(2) ? rocksdb_writebatch_create() : rocksdb_writebatch_create_with_params(64, 0, 0, 0);
    save_points[b] = 0;
  }
  return b;
}
void drop_batches(void) {
  for (int b = 0; b < 2; b++) {
    if (batches[b]) rocksdb_writebatch_destroy(batches[b]);
    batches[b] = NULL;
  }
}

static int op_add(void) {
  int b = some_batch(), f = some_family();
  Bytes key = some_key(), value = value_for(f);
  rocksdb_writebatch_t* batch = batches[b];
  uint32_t kind = below(10);
  say(" %d %d %u", b, f, kind);
  if (kind < 4) {
    if (f == 0) rocksdb_writebatch_put(batch, key.at, key.len, value.at, value.len);
    else rocksdb_writebatch_put_cf(batch, world.family[f], key.at, key.len, value.at, value.len);
  } else if (kind < 6) {
    if (f == 0) rocksdb_writebatch_delete(batch, key.at, key.len);
    else rocksdb_writebatch_delete_cf(batch, world.family[f], key.at, key.len);
  } else if (kind < 8 && f != REVERSED && f != FILTERED) {
    if (f == 0) rocksdb_writebatch_merge(batch, key.at, key.len, value.at, value.len);
    else rocksdb_writebatch_merge_cf(batch, world.family[f], key.at, key.len, value.at, value.len);
  } else if (kind == 8 && world.mode == PLAIN) {
    /* Of one key, so that no order can be wrong. */
    Bytes to = key;
    to.at[to.len++] = 0;
    if (f == REVERSED || f == 1 || f == 4)
      rocksdb_writebatch_put_cf(batch, world.family[f], key.at, key.len, value.at, value.len);
    else if (f == 0) rocksdb_writebatch_delete_range(batch, key.at, key.len, to.at, to.len);
    else rocksdb_writebatch_delete_range_cf(batch, world.family[f], key.at, key.len, to.at, to.len);
  } else {
    rocksdb_writebatch_put_log_data(batch, value.at, value.len);
  }
  say(" %d", rocksdb_writebatch_count(batch));
  return 1;
}

static void say_data(rocksdb_writebatch_t* batch) {
  size_t len;
  const char* data = rocksdb_writebatch_data(batch, &len);
  /* The first eight bytes are the number, which is set when a batch is written. */
  Sum sum = {0, 0};
  add_bytes(&sum, data + 8, len - 8);
  say(" %zu", len);
  say_sum(sum);
}

static int op_save(void) {
  int b = some_batch();
  char* err = NULL;
  uint32_t kind = below(3);
  say(" %d %u", b, kind);
  if (kind == 0) {
    rocksdb_writebatch_set_save_point(batches[b]);
  } else if (kind == 1) {
    rocksdb_writebatch_rollback_to_save_point(batches[b], &err);
    say_error(&err);
  } else {
    rocksdb_writebatch_pop_save_point(batches[b], &err);
    say_error(&err);
  }
  say(" %d", rocksdb_writebatch_count(batches[b]));
  say_data(batches[b]);
  return 1;
}

static int op_clear(void) {
  int b = some_batch();
  rocksdb_writebatch_clear(batches[b]);
  say(" %d %d", b, rocksdb_writebatch_count(batches[b]));
  say_data(batches[b]);
  return 1;
}

static int op_data(void) {
  int b = some_batch();
  say_data(batches[b]);
  if (once_in(3)) {
    size_t len;
    const char* data = rocksdb_writebatch_data(batches[b], &len);
    rocksdb_writebatch_t* copy = rocksdb_writebatch_create_from(data, len);
    say(" %d", rocksdb_writebatch_count(copy));
    rocksdb_writebatch_destroy(batches[b]);
    batches[b] = copy;
  }
  return 1;
}

static void on_put(void* of, const char* k, size_t kl, const char* v, size_t vl) {
  add_bytes(of, "put", 3), add_bytes(of, k, kl), add_bytes(of, v, vl);
}
static void on_delete(void* of, const char* k, size_t kl) { add_bytes(of, "delete", 6), add_bytes(of, k, kl); }
static void on_put_in(void* of, uint32_t f, const char* k, size_t kl, const char* v, size_t vl) {
  add_bytes(of, (char*)&f, sizeof f), on_put(of, k, kl, v, vl);
}
static void on_delete_in(void* of, uint32_t f, const char* k, size_t kl) {
  add_bytes(of, (char*)&f, sizeof f), on_delete(of, k, kl);
}
static void on_merge_in(void* of, uint32_t f, const char* k, size_t kl, const char* v, size_t vl) {
  add_bytes(of, "merge", 5), on_put_in(of, f, k, kl, v, vl);
}

static int op_iterate(void) {
  int b = some_batch();
  Sum sum = {0, 0};
  if (once_in(2)) rocksdb_writebatch_iterate(batches[b], &sum, on_put, on_delete);
  else rocksdb_writebatch_iterate_cf(batches[b], &sum, on_put_in, on_delete_in, on_merge_in);
  say_sum(sum);
  return 1;
}

static int op_write(void) {
  if (!writable()) return 0;
  int b = (int)below(2);
  if (batches[b] == NULL) return 0;
  char* err = NULL;
  if (world.mode == LOCKS) rocksdb_transactiondb_write(world.locks, world.write, batches[b], &err);
  else if (world.mode == OPTIMISTIC)
    rocksdb_optimistictransactiondb_write(world.optimistic, some_write(), batches[b], &err);
  else rocksdb_write(world.db, some_write(), batches[b], &err);
  say_error(&err);
  say_sequence();
  rocksdb_writebatch_destroy(batches[b]);
  batches[b] = NULL;
  return 1;
}

const Entry batch_operations[] = {
    {"batch.add", 90, op_add},       {"batch.save", 12, op_save},        {"batch.clear", 2, op_clear},
    {"batch.data", 8, op_data},      {"batch.iterate", 8, op_iterate},   {"batch.write", 16, op_write},
    {NULL, 0, NULL},
};
