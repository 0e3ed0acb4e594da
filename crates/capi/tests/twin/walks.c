/* Snapshots and iterators: some that stay open while the database changes, some for one walk. */
#include "twin.h"

const rocksdb_snapshot_t* snapshots[SLOTS];
static struct {
  rocksdb_iterator_t* it;
  rocksdb_readoptions_t* read;
  const rocksdb_snapshot_t* at;
} open_walks[SLOTS];

static void drop_walk(int i) {
  if (open_walks[i].it == NULL) return;
  rocksdb_iter_destroy(open_walks[i].it);
  rocksdb_readoptions_destroy(open_walks[i].read);
  open_walks[i].it = NULL;
}
void drop_walks(void) {
  for (int i = 0; i < SLOTS; i++) drop_walk(i);
}
static void drop_snapshot(int s) {
  if (snapshots[s] == NULL) return;
  /* What reads at it goes first. */
  for (int i = 0; i < SLOTS; i++)
    if (open_walks[i].it && open_walks[i].at == snapshots[s]) drop_walk(i);
  if (world.mode == LOCKS) rocksdb_transactiondb_release_snapshot(world.locks, snapshots[s]);
  else rocksdb_release_snapshot(world.db, snapshots[s]);
  snapshots[s] = NULL;
}
void drop_snapshots(void) {
  for (int s = 0; s < SLOTS; s++) drop_snapshot(s);
}

static const rocksdb_snapshot_t* some_snapshot(void) { return once_in(2) ? NULL : snapshots[below(SLOTS)]; }
rocksdb_readoptions_t* some_read(void) {
  rocksdb_readoptions_t* read = rocksdb_readoptions_create();
  const rocksdb_snapshot_t* at = some_snapshot();
  if (at) rocksdb_readoptions_set_snapshot(read, at);
  if (once_in(4)) rocksdb_readoptions_set_fill_cache(read, 0);
  if (once_in(4)) rocksdb_readoptions_set_verify_checksums(read, 1);
  return read;
}

static int op_snapshot(void) {
  int s = (int)below(SLOTS);
  if (snapshots[s]) {
    drop_snapshot(s);
    say(" %d released", s);
    return 1;
  }
  snapshots[s] = world.mode == LOCKS ? rocksdb_transactiondb_create_snapshot(world.locks)
                                     : rocksdb_create_snapshot(world.db);
  uint64_t latest = rocksdb_get_latest_sequence_number(world.db);
  say(" %d %d", s, rocksdb_snapshot_get_sequence_number(snapshots[s]) == latest);
  return 1;
}

static void say_place(rocksdb_iterator_t* it) {
  char* err = NULL;
  if (rocksdb_iter_valid(it)) {
    size_t len;
    const char* key = rocksdb_iter_key(it, &len);
    say_bytes(key, len);
    const char* value = rocksdb_iter_value(it, &len);
    say_bytes(value, len);
  } else {
    say(" end");
    rocksdb_iter_get_error(it, &err);
    say_error(&err);
  }
}

static void seek(rocksdb_iterator_t* it) {
  Bytes key = some_key();
  uint32_t kind = below(6);
  say(" %u", kind);
  if (kind == 0) rocksdb_iter_seek_to_first(it);
  else if (kind == 1) rocksdb_iter_seek_to_last(it);
  else {
    say_bytes(key.at, key.len);
    if (kind < 5) rocksdb_iter_seek(it, key.at, key.len);
    else rocksdb_iter_seek_for_prev(it, key.at, key.len);
  }
  say_place(it);
}

static int op_open_walk(void) {
  int i = (int)below(SLOTS), f = some_family();
  drop_walk(i);
  rocksdb_readoptions_t* read = rocksdb_readoptions_create();
  open_walks[i].read = read;
  open_walks[i].at = some_snapshot();
  if (open_walks[i].at) rocksdb_readoptions_set_snapshot(read, open_walks[i].at);
  static Bytes low[SLOTS], high[SLOTS]; /* RocksDB borrows them. */
  low[i] = some_key(), high[i] = some_key();
  if ((by_bytes(&low[i], &high[i]) > 0) != (f == REVERSED)) { /* RocksDB may crash on swapped ones. */
    Bytes other = low[i];
    low[i] = high[i], high[i] = other;
  }
  if (once_in(4)) {
    rocksdb_readoptions_set_iterate_lower_bound(read, low[i].at, low[i].len);
    say(" from");
    say_bytes(low[i].at, low[i].len);
  }
  if (once_in(4)) {
    rocksdb_readoptions_set_iterate_upper_bound(read, high[i].at, high[i].len);
    say(" to");
    say_bytes(high[i].at, high[i].len);
  }
  if (once_in(4)) rocksdb_readoptions_set_total_order_seek(read, 1);
  if (once_in(8)) rocksdb_readoptions_set_pin_data(read, 1);
  say(" %d %d", i, f);
  rocksdb_iterator_t* it;
  if (world.mode == LOCKS && once_in(2))
    it = f == 0 ? rocksdb_transactiondb_create_iterator(world.locks, read)
                : rocksdb_transactiondb_create_iterator_cf(world.locks, read, world.family[f]);
  else
    it = f == 0 ? rocksdb_create_iterator(world.db, read)
                : rocksdb_create_iterator_cf(world.db, read, world.family[f]);
  open_walks[i].it = it;
  seek(it);
  return 1;
}

static int op_move(void) {
  int i = (int)below(SLOTS);
  rocksdb_iterator_t* it = open_walks[i].it;
  if (it == NULL) return 0;
  say(" %d", i);
  if (!rocksdb_iter_valid(it) || once_in(5)) {
    seek(it);
    return 1;
  }
  int back = once_in(3);
  say(back ? " back" : " on");
  if (back) rocksdb_iter_prev(it);
  else rocksdb_iter_next(it);
  say_place(it);
  return 1;
}

static int op_refresh(void) {
  int i = (int)below(SLOTS);
  char* err = NULL;
  if (open_walks[i].it == NULL) return 0;
  /* A snapshot stays what it shows; see `avoided` in allowed.txt. */
  if (open_walks[i].at || world.mode == READ_ONLY) return 0;
  rocksdb_iter_refresh(open_walks[i].it, &err);
  say_error(&err);
  seek(open_walks[i].it);
  return 1;
}

static int op_walk_all(void) {
  int f = some_family();
  rocksdb_readoptions_t* read = some_read();
  rocksdb_iterator_t* it = rocksdb_create_iterator_cf(world.db, read, world.family[f]);
  say(" %d", f);
  say_walk(it, once_in(2));
  rocksdb_iter_destroy(it);
  rocksdb_readoptions_destroy(read);
  return 1;
}

/* Within one prefix: family 1 has prefixes of fixed length, family 4 the program's own. */
static int op_walk_prefix(void) {
  int f = once_in(2) ? 1 : 4;
  if (world.family[f] == NULL) return 0;
  char* err = NULL;
  rocksdb_readoptions_t* read = some_read();
  rocksdb_readoptions_set_prefix_same_as_start(read, 1);
  rocksdb_iterator_t* it = rocksdb_create_iterator_cf(world.db, read, world.family[f]);
  Bytes key = some_key();
  if (key.len < 2) key = (Bytes){.at = "cc", .len = 2};
  Sum sum = {0, 0};
  say(" %d", f);
  say_bytes(key.at, key.len);
  for (rocksdb_iter_seek(it, key.at, key.len); rocksdb_iter_valid(it); rocksdb_iter_next(it)) {
    size_t len;
    const char* at = rocksdb_iter_key(it, &len);
    add_bytes(&sum, at, len);
    at = rocksdb_iter_value(it, &len);
    add_bytes(&sum, at, len);
  }
  say_sum(sum);
  rocksdb_iter_get_error(it, &err);
  say_error(&err);
  rocksdb_iter_destroy(it);
  rocksdb_readoptions_destroy(read);
  return 1;
}

/* An iterator that follows what is written, forward as RocksDB's go. */
static int op_walk_tail(void) {
  int f = once_in(2) ? 1 : 4;
  if (world.family[f] == NULL) return 0;
  char* err = NULL;
  rocksdb_readoptions_t* read = rocksdb_readoptions_create();
  rocksdb_readoptions_set_tailing(read, 1);
  rocksdb_readoptions_set_total_order_seek(read, 1);
  rocksdb_iterator_t* it = rocksdb_create_iterator_cf(world.db, read, world.family[f]);
  Bytes key = some_key();
  Sum sum = {0, 0};
  say(" %d", f);
  if (world.mode == PLAIN) {
    rocksdb_put_cf(world.db, world.write, world.family[f], key.at, key.len, "\1\0\0\0\0\0\0\0", 8, &err);
    say_error(&err);
  }
  /* One seek: RocksDB's lose keys at a second one. */
  int steps = 0;
  for (rocksdb_iter_seek(it, key.at, key.len); rocksdb_iter_valid(it) && steps < 40; rocksdb_iter_next(it)) {
    size_t len;
    const char* at = rocksdb_iter_key(it, &len);
    say_if_whole(at, len);
    add_bytes(&sum, at, len);
    steps++;
  }
  say_sum(sum);
  rocksdb_iter_get_error(it, &err);
  say_error(&err);
  rocksdb_iter_destroy(it);
  rocksdb_readoptions_destroy(read);
  return 1;
}

static int op_walk_several(void) {
  char* err = NULL;
  rocksdb_column_family_handle_t* families[3];
  rocksdb_iterator_t* its[3];
  size_t n = 1 + below(3);
  for (size_t i = 0; i < n; i++) families[i] = world.family[some_family()];
  rocksdb_readoptions_t* read = some_read();
  rocksdb_create_iterators(world.db, read, families, its, n, &err);
  if (say_error(&err))
    for (size_t i = 0; i < n; i++) {
      say_walk(its[i], 0);
      rocksdb_iter_destroy(its[i]);
    }
  rocksdb_readoptions_destroy(read);
  return 1;
}

static int op_num_snapshots(void) {
  uint64_t n = 99;
  int found = world.mode == LOCKS
                  ? rocksdb_transactiondb_property_int(world.locks, "rocksdb.num-snapshots", &n)
                  : rocksdb_property_int(world.db, "rocksdb.num-snapshots", &n);
  char* text = rocksdb_property_value(world.db, "rocksdb.no-such-thing");
  say(" %d %d", found, text != NULL);
  /* We count what reads of transactions hold, and those of one number once. */
  may_differ("num_snapshots");
  say(" %" PRIu64, n);
  return 1;
}

const Entry walk_operations[] = {
    {"snapshot", 12, op_snapshot},      {"walk.open", 25, op_open_walk},
    {"walk.move", 130, op_move},        {"walk.refresh", 6, op_refresh},
    {"walk.all", 8, op_walk_all},       {"walk.prefix", 8, op_walk_prefix},
    {"walk.tail", 6, op_walk_tail},     {"walk.several", 3, op_walk_several},
    {"num_snapshots", 2, op_num_snapshots}, {NULL, 0, NULL},
};
