/* Transactions of both kinds, three at once, so that they are in each other's way. */
#include "twin.h"

static rocksdb_transaction_t* open_ones[SLOTS];
static rocksdb_transaction_t* used_up; /* committed; begins again in place */
static int named[SLOTS], prepared[SLOTS];

/* A key that was not there when an optimistic transaction claimed it. */
enum { ABSENT_MOST = 64 };
typedef struct {
  Bytes key;
  int family;
  uint64_t tables;
} Absent;
static Absent absent[SLOTS][ABSENT_MOST];
static size_t absent_count[SLOTS];
static uint64_t tables_at_begin[SLOTS];

static int is_there(int f, const Bytes* key, const rocksdb_snapshot_t* at) {
  char* err = NULL;
  size_t len;
  rocksdb_readoptions_t* read = rocksdb_readoptions_create();
  if (at) rocksdb_readoptions_set_snapshot(read, at);
  char* got = rocksdb_get_cf(world.db, read, world.family[f], key->at, key->len, &len, &err);
  rocksdb_readoptions_destroy(read);
  free(got);
  return got != NULL;
}

/* A deletion that hides nothing may be gone once tables were made, so a key may be as it was, and RocksDB still
 * say that it was written. Whether that may be of this key since the snapshot of a transaction with locks; of an
 * optimistic one, what it claims is remembered until it is to commit. */
static int is_doubtful(int i, int f, const Bytes* key) {
  const rocksdb_snapshot_t* at = rocksdb_transaction_get_snapshot(open_ones[i]);
  int gone = !is_there(f, key, at), doubtful = 0;
  if (world.mode == LOCKS) {
    doubtful = at != NULL && gone && world.tables > tables_at_begin[i] && !is_there(f, key, NULL);
  } else if (gone) {
    doubtful = absent_count[i] == ABSENT_MOST;
    if (!doubtful)
      absent[i][absent_count[i]++] =
          (Absent){*key, f, at ? tables_at_begin[i] : world.tables};
  }
  rocksdb_free((void*)at);
  return doubtful;
}
static int is_commit_doubtful(int i) {
  for (size_t k = 0; k < absent_count[i]; k++) {
    const Absent* a = &absent[i][k];
    if (world.tables > a->tables && !(world.family[a->family] && is_there(a->family, &a->key, NULL))) return 1;
  }
  return 0;
}

/* One that is prepared is rolled back first: what is left of its handle's locks is not the same. */
static void drop(int i) {
  char* err = NULL;
  if (open_ones[i] && prepared[i]) {
    rocksdb_transaction_rollback(open_ones[i], &err);
    say_error(&err);
  }
  if (open_ones[i]) rocksdb_transaction_destroy(open_ones[i]);
  open_ones[i] = NULL;
  prepared[i] = named[i] = 0;
}
/* What is prepared outlives its handle and the database. */
void leave_prepared(void) {
  for (int i = 0; i < SLOTS; i++) {
    if (!open_ones[i] || !prepared[i]) continue;
    rocksdb_transaction_destroy(open_ones[i]);
    open_ones[i] = NULL;
    prepared[i] = named[i] = 0;
  }
}
typedef struct {
  rocksdb_transaction_t* of;
  size_t len;
  char* name;
} Found;
static int by_name(const void* a, const void* b) { return strcmp(((const Found*)a)->name, ((const Found*)b)->name); }
/* They come in any order, and are ended before anything else is written. */
void take_prepared(void) {
  char* err = NULL;
  size_t n = 0;
  Found found[SLOTS];
  if (world.mode != LOCKS) return;
  rocksdb_transaction_t** all = rocksdb_transactiondb_get_prepared_transactions(world.locks, &n);
  if (n > SLOTS) fprintf(stderr, "%zu prepared\n", n), exit(1);
  for (size_t i = 0; i < n; i++) {
    size_t len;
    char* name = rocksdb_transaction_get_name(all[i], &len);
    found[i] = (Found){all[i], len, strndup(name, len)};
    free(name);
  }
  free(all);
  qsort(found, n, sizeof *found, by_name);
  say(" %zu", n);
  for (size_t i = 0; i < n; i++) {
    say_bytes(found[i].name, found[i].len);
    free(found[i].name);
    int f = some_family(), commits = once_in(2);
    rocksdb_iterator_t* it = rocksdb_transaction_create_iterator_cf(found[i].of, world.read, world.family[f]);
    say_walk(it, 0);
    rocksdb_iter_destroy(it);
    say(" %d", commits);
    if (commits) rocksdb_transaction_commit(found[i].of, &err);
    else rocksdb_transaction_rollback(found[i].of, &err);
    say_error(&err);
    say_sequence();
    rocksdb_transaction_destroy(found[i].of);
  }
}
void drop_transactions(void) {
  for (int i = 0; i < SLOTS; i++) drop(i);
  if (used_up) rocksdb_transaction_destroy(used_up);
  used_up = NULL;
}
static int some_transaction(void) {
  int i = (int)below(SLOTS);
  if (open_ones[i]) say(" %d", i);
  return open_ones[i] ? i : -1;
}
/* One that may still change. */
static int some_open_transaction(void) {
  int i = some_transaction();
  return i >= 0 && !prepared[i] ? i : -1;
}

/* Names of which two slots have the same, and a third none. What has no name is not prepared. */
static void name_it(int i) {
  static const char* const names[] = {"one", "two", "one", ""};
  const char* name = names[i % 4];
  char* err = NULL;
  rocksdb_transaction_set_name(open_ones[i], name, strlen(name), &err);
  say_error(&err);
  size_t len;
  char* got = rocksdb_transaction_get_name(open_ones[i], &len);
  say_bytes(got, len);
  free(got);
  named[i] = len > 0;
  if (len == 0) {
    rocksdb_transaction_prepare(open_ones[i], &err);
    say_error(&err);
  }
}

static int op_begin(void) {
  int i = (int)below(SLOTS), with_snapshot = once_in(3);
  if (open_ones[i] || (world.mode != LOCKS && world.mode != OPTIMISTIC)) return 0;
  rocksdb_transaction_t* old = once_in(2) ? used_up : NULL;
  say(" %d %d %d", i, with_snapshot, old != NULL);
  if (world.mode == LOCKS) {
    rocksdb_transaction_options_t* options = rocksdb_transaction_options_create();
    rocksdb_transaction_options_set_set_snapshot(options, (unsigned char)with_snapshot);
    if (once_in(2)) rocksdb_transaction_options_set_lock_timeout(options, 0);
    if (once_in(4)) rocksdb_transaction_options_set_deadlock_detect(options, 1);
    open_ones[i] = rocksdb_transaction_begin(world.locks, world.write, options, old);
    rocksdb_transaction_options_destroy(options);
  } else {
    rocksdb_optimistictransaction_options_t* options = rocksdb_optimistictransaction_options_create();
    rocksdb_optimistictransaction_options_set_set_snapshot(options, (unsigned char)with_snapshot);
    open_ones[i] = rocksdb_optimistictransaction_begin(world.optimistic, world.write, options, old);
    rocksdb_optimistictransaction_options_destroy(options);
  }
  if (old) used_up = NULL;
  name_it(i);
  absent_count[i] = 0;
  tables_at_begin[i] = world.tables;
  return 1;
}

static int op_change(void) {
  int i = some_open_transaction();
  if (i < 0) return 0;
  char* err = NULL;
  rocksdb_transaction_t* t = open_ones[i];
  int f = some_family();
  Bytes key = some_key(), value = value_for(f);
  uint32_t kind = below(6);
  if (is_doubtful(i, f, &key)) return 0;
  say(" %d %u", f, kind);
  say_bytes(key.at, key.len);
  if (kind < 3) {
    if (f == 0) rocksdb_transaction_put(t, key.at, key.len, value.at, value.len, &err);
    else rocksdb_transaction_put_cf(t, world.family[f], key.at, key.len, value.at, value.len, &err);
  } else if (kind < 5 || f == REVERSED || f == FILTERED) {
    if (f == 0) rocksdb_transaction_delete(t, key.at, key.len, &err);
    else rocksdb_transaction_delete_cf(t, world.family[f], key.at, key.len, &err);
  } else {
    if (f == 0) rocksdb_transaction_merge(t, key.at, key.len, value.at, value.len, &err);
    else rocksdb_transaction_merge_cf(t, world.family[f], key.at, key.len, value.at, value.len, &err);
  }
  say_error(&err);
  return 1;
}

static int op_read(void) {
  int i = some_transaction();
  if (i < 0) return 0;
  char *err = NULL, *got = NULL;
  size_t len = 0;
  rocksdb_transaction_t* t = open_ones[i];
  rocksdb_pinnableslice_t* pinned = NULL;
  int f = some_family();
  Bytes key = some_key();
  uint32_t kind = below(8);
  int for_update = kind == 3 || kind == 4 || kind == 7;
  if (for_update && prepared[i]) return 0;
  if (for_update && is_doubtful(i, kind == 3 ? 0 : f, &key)) return 0;
  rocksdb_readoptions_t* read = rocksdb_readoptions_create();
  say(" %d %u", f, kind);
  say_bytes(key.at, key.len);
  rocksdb_column_family_handle_t* family = world.family[f];
  switch (kind) {
    case 0: got = rocksdb_transaction_get(t, read, key.at, key.len, &len, &err); break;
    case 1:
    case 2: got = rocksdb_transaction_get_cf(t, read, family, key.at, key.len, &len, &err); break;
    case 3: got = rocksdb_transaction_get_for_update(t, read, key.at, key.len, &len, 1, &err); break;
    case 4:
      got = rocksdb_transaction_get_for_update_cf(t, read, family, key.at, key.len, &len, 1, &err);
      break;
    case 5: pinned = rocksdb_transaction_get_pinned(t, read, key.at, key.len, &err); break;
    case 6: pinned = rocksdb_transaction_get_pinned_cf(t, read, family, key.at, key.len, &err); break;
    default:
      pinned = rocksdb_transaction_get_pinned_for_update_cf(t, read, family, key.at, key.len, 1, &err);
  }
  if (pinned) say_bytes(rocksdb_pinnableslice_value(pinned, &len), len), rocksdb_pinnableslice_destroy(pinned);
  else say_bytes(got, len);
  say_error(&err);
  free(got);
  rocksdb_readoptions_destroy(read);
  return 1;
}

static int op_read_several(void) {
  enum { N = 4 };
  int i = some_transaction(), by_family = once_in(2);
  if (i < 0) return 0;
  Bytes keys[N];
  const char* at[N];
  const rocksdb_column_family_handle_t* families[N];
  size_t lens[N], value_lens[N];
  char *values[N], *errors[N];
  for (size_t k = 0; k < N; k++) {
    keys[k] = some_key();
    at[k] = keys[k].at;
    lens[k] = keys[k].len;
    families[k] = world.family[some_family()];
  }
  if (by_family)
    rocksdb_transaction_multi_get_cf(open_ones[i], world.read, families, N, at, lens, values, value_lens, errors);
  else
    rocksdb_transaction_multi_get(open_ones[i], world.read, N, at, lens, values, value_lens, errors);
  for (size_t k = 0; k < N; k++) {
    say_bytes(values[k], value_lens[k]);
    if (errors[k]) say_error(&errors[k]);
    free(values[k]);
  }
  return 1;
}

static int op_walk(void) {
  int i = some_transaction();
  if (i < 0) return 0;
  int f = some_family();
  say(" %d", f);
  rocksdb_readoptions_t* read = rocksdb_readoptions_create();
  rocksdb_iterator_t* it = f == 0 && once_in(2)
                               ? rocksdb_transaction_create_iterator(open_ones[i], read)
                               : rocksdb_transaction_create_iterator_cf(open_ones[i], read, world.family[f]);
  say_walk(it, once_in(2));
  rocksdb_iter_destroy(it);
  rocksdb_readoptions_destroy(read);
  return 1;
}

static int op_snapshot(void) {
  int i = some_transaction();
  if (i < 0) return 0;
  const rocksdb_snapshot_t* at = rocksdb_transaction_get_snapshot(open_ones[i]);
  say(" %d", at != NULL);
  rocksdb_free((void*)at);
  return 1;
}

static int op_save(void) {
  int i = some_open_transaction();
  if (i < 0) return 0;
  char* err = NULL;
  if (once_in(2)) {
    rocksdb_transaction_set_savepoint(open_ones[i]);
  } else {
    rocksdb_transaction_rollback_to_savepoint(open_ones[i], &err);
    say_error(&err);
  }
  return 1;
}

static int op_prepare(void) {
  int i = some_open_transaction();
  if (i < 0 || world.mode != LOCKS || !named[i]) return 0;
  char* err = NULL;
  rocksdb_transaction_prepare(open_ones[i], &err);
  if (say_error(&err)) prepared[i] = world.has_prepared = 1;
  say_sequence();
  rocksdb_transaction_prepare(open_ones[i], &err);
  say_error(&err);
  return 1;
}

static int op_end(void) {
  int i = some_transaction();
  if (i < 0) return 0;
  char* err = NULL;
  uint32_t kind = below(6);
  if (kind < 4 && is_commit_doubtful(i)) kind = 4;
  say(" %u", kind);
  if (kind < 4) {
    rocksdb_transaction_commit(open_ones[i], &err);
    int good = say_error(&err);
    say_sequence();
    prepared[i] = 0;
    if (good && used_up == NULL) {
      used_up = open_ones[i];
      open_ones[i] = NULL;
    } else {
      drop(i);
    }
  } else if (kind == 4) {
    rocksdb_transaction_rollback(open_ones[i], &err);
    say_error(&err);
    prepared[i] = 0;
    drop(i);
  } else {
    drop(i);
  }
  return 1;
}

const Entry transaction_operations[] = {
    {"transaction.begin", 50, op_begin},     {"transaction.change", 150, op_change},
    {"transaction.read", 110, op_read},      {"transaction.read_several", 20, op_read_several},
    {"transaction.walk", 12, op_walk},       {"transaction.snapshot", 10, op_snapshot},
    {"transaction.save", 30, op_save},       {"transaction.prepare", 12, op_prepare},
    {"transaction.end", 30, op_end},
    {NULL, 0, NULL},
};
