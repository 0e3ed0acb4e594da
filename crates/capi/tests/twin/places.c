/* The database as a whole: open and close in all ways, families, flush and compaction, copies, tables made
 * elsewhere. */
#include "twin.h"

static const char* const names[FAMILIES] = {"default", "counts", "reversed", "filtered", "letters"};
static rocksdb_comparator_t* comparator;
static rocksdb_compactionfilter_t* compaction_filter;
static rocksdb_cache_t* cache;

int some_family(void) {
  int f = (int)below(FAMILIES);
  return world.family[f] ? f : 0;
}

static const char* below_dir(const char* name) {
  static char path[4][1024];
  static unsigned next;
  char* at = path[next++ % 4];
  snprintf(at, 1024, "%s/%s", world.dir, name);
  return at;
}

void start_world(const char* dir) {
  world.dir = dir;
  snprintf(world.path, sizeof world.path, "%s/db", dir);
  comparator = reversed_order();
  compaction_filter = dropping();
  cache = rocksdb_cache_create_lru(4 << 20);
  for (int f = 0; f < FAMILIES; f++) {
    rocksdb_options_t* o = world.options[f] = rocksdb_options_create();
    rocksdb_options_set_create_if_missing(o, 1);
    rocksdb_options_set_create_missing_column_families(o, 1);
    rocksdb_options_set_write_buffer_size(o, 256 << 10);
    rocksdb_options_set_max_background_jobs(o, 2);
    rocksdb_options_set_compression(o, 0);
    rocksdb_block_based_table_options_t* table = rocksdb_block_based_options_create();
    rocksdb_block_based_options_set_block_cache(table, cache);
    rocksdb_block_based_options_set_block_size(table, 1024);
    if (f == 0) rocksdb_block_based_options_set_filter_policy(table, rocksdb_filterpolicy_create_bloom(10));
    rocksdb_options_set_block_based_table_factory(o, table);
    rocksdb_block_based_options_destroy(table);
  }
  rocksdb_options_set_merge_operator(world.options[0], appending(1));
  rocksdb_options_set_uint64add_merge_operator(world.options[1]);
  rocksdb_options_set_prefix_extractor(world.options[1], rocksdb_slicetransform_create_fixed_prefix(2));
  rocksdb_options_set_comparator(world.options[REVERSED], comparator);
  rocksdb_options_set_compaction_filter(world.options[FILTERED], compaction_filter);
  rocksdb_options_set_disable_auto_compactions(world.options[FILTERED], 1);
  rocksdb_options_set_merge_operator(world.options[4], appending(0));
  rocksdb_options_set_prefix_extractor(world.options[4], first_letter());
  world.write = rocksdb_writeoptions_create();
  world.write_unlogged = rocksdb_writeoptions_create();
  rocksdb_writeoptions_disable_WAL(world.write_unlogged, 1);
  world.read = rocksdb_readoptions_create();
  open_world(PLAIN);
}

void end_world(void) {
  for (int f = 0; f < FAMILIES; f++) rocksdb_options_destroy(world.options[f]);
  rocksdb_comparator_destroy(comparator);
  rocksdb_compactionfilter_destroy(compaction_filter);
  rocksdb_cache_destroy(cache);
  rocksdb_writeoptions_destroy(world.write);
  rocksdb_writeoptions_destroy(world.write_unlogged);
  rocksdb_readoptions_destroy(world.read);
}

static int kind_of(const char* name) {
  for (int f = 0; f < FAMILIES; f++)
    if (strcmp(name, names[f]) == 0) return f;
  abort();
}

/* The families that the database has, in the order of their numbers. */
static int families_there(int* of) {
  char* err = NULL;
  size_t n = 0;
  char** list = rocksdb_list_column_families(world.options[0], world.path, &n, &err);
  if (err) { /* There is no database yet. */
    free(err);
    of[0] = 0;
    return 1;
  }
  for (size_t i = 0; i < n; i++) of[i] = kind_of(list[i]);
  rocksdb_list_column_families_destroy(list, n);
  return (int)n;
}

void open_world(enum mode mode) {
  char* err = NULL;
  int of[FAMILIES], n = families_there(of);
  const char* named[FAMILIES];
  const rocksdb_options_t* options[FAMILIES];
  rocksdb_column_family_handle_t* handles[FAMILIES];
  for (int i = 0; i < n; i++) named[i] = names[of[i]], options[i] = world.options[of[i]];
  const rocksdb_options_t* o = world.options[0];
  world.mode = mode;
  world.db = NULL;
  world.has_unlogged = 0;
  switch (mode) {
    case PLAIN: world.db = rocksdb_open_column_families(o, world.path, n, named, options, handles, &err); break;
    case READ_ONLY:
      world.db =
          rocksdb_open_for_read_only_column_families(o, world.path, n, named, options, handles, 0, &err);
      break;
    case LOCKS: {
      rocksdb_transactiondb_options_t* waits = rocksdb_transactiondb_options_create();
      rocksdb_transactiondb_options_set_default_lock_timeout(waits, 0);
      rocksdb_transactiondb_options_set_transaction_lock_timeout(waits, 1);
      world.locks = rocksdb_transactiondb_open_column_families(o, waits, world.path, n, named, options, handles,
                                                               &err);
      rocksdb_transactiondb_options_destroy(waits);
      if (world.locks) world.db = rocksdb_transactiondb_get_base_db(world.locks);
      break;
    }
    case OPTIMISTIC:
      world.optimistic =
          rocksdb_optimistictransactiondb_open_column_families(o, world.path, n, named, options, handles, &err);
      if (world.optimistic) world.db = rocksdb_optimistictransactiondb_get_base_db(world.optimistic);
      break;
  }
  if (world.db == NULL) {
    fprintf(stderr, "open: %s\n", err);
    exit(1);
  }
  memset(world.family, 0, sizeof world.family);
  for (int i = 0; i < n; i++) world.family[of[i]] = handles[i];
  forget_sequence();
}

/* Ends what is prepared, and has the log that tells of it deleted. */
static void end_prepared(void) {
  char* err = NULL;
  rocksdb_flushoptions_t* flush = rocksdb_flushoptions_create();
  drop_transactions();
  for (int f = 0; f < FAMILIES; f++) {
    if (!world.family[f]) continue;
    Bytes key = some_key(), value = value_for(f);
    rocksdb_transactiondb_put_cf(world.locks, world.write, world.family[f], key.at, key.len, value.at, value.len,
                                 &err);
    say_error(&err);
    rocksdb_flush_cf(world.db, flush, world.family[f], &err);
    say_error(&err);
  }
  rocksdb_flushoptions_destroy(flush);
  world.tables++;
  world.has_prepared = 0;
}

void close_world(void) {
  drop_transactions();
  drop_walks();
  drop_snapshots();
  drop_batches();
  for (int f = 0; f < FAMILIES; f++)
    if (world.family[f]) rocksdb_column_family_handle_destroy(world.family[f]);
  switch (world.mode) {
    case LOCKS:
      rocksdb_transactiondb_close_base_db(world.db);
      rocksdb_transactiondb_close(world.locks);
      break;
    case OPTIMISTIC:
      rocksdb_optimistictransactiondb_close_base_db(world.db);
      rocksdb_optimistictransactiondb_close(world.optimistic);
      break;
    default: rocksdb_close(world.db);
  }
}

void forget_sequence(void) { world.sequence = rocksdb_get_latest_sequence_number(world.db); }
void say_sequence(void) {
  uint64_t now = rocksdb_get_latest_sequence_number(world.db);
  say(" +%" PRIu64, now - world.sequence);
  world.sequence = now;
}

/* All of every family. */
static void say_all(rocksdb_t* db, rocksdb_column_family_handle_t** of, int n) {
  rocksdb_readoptions_t* read = rocksdb_readoptions_create();
  for (int i = 0; i < n; i++) {
    rocksdb_iterator_t* it = rocksdb_create_iterator_cf(db, read, of[i]);
    say_walk(it, 0);
    rocksdb_iter_destroy(it);
  }
  rocksdb_readoptions_destroy(read);
}

static int op_reopen(void) {
  static const enum mode modes[] = {PLAIN, PLAIN, PLAIN, LOCKS, LOCKS, OPTIMISTIC, OPTIMISTIC, READ_ONLY};
  enum mode mode = modes[below(8)];
  if (mode == LOCKS) leave_prepared();
  else if (world.has_prepared) end_prepared();
  close_world();
  open_world(mode);
  say(" %d", mode);
  take_prepared();
  rocksdb_column_family_handle_t* of[FAMILIES];
  int n = 0;
  for (int f = 0; f < FAMILIES; f++)
    if (world.family[f]) of[n++] = world.family[f], say(" %d", f);
  say_all(world.db, of, n);
  return 1;
}

/* Opens that must fail: there is nothing, or others have it open. */
static int op_open_refused(void) {
  char* err = NULL;
  rocksdb_options_t* o = rocksdb_options_create_copy(world.options[0]);
  uint32_t kind = below(2);
  say(" %u", kind);
  if (kind == 0) rocksdb_options_set_create_if_missing(o, 0);
  for (int f = 1; kind == 1 && f < FAMILIES; f++)
    if (world.family[f]) return rocksdb_options_destroy(o), 0; /* It would be wrong twice. */
  rocksdb_t* db = rocksdb_open(o, kind == 0 ? below_dir("nowhere") : world.path, &err);
  say(" %d", db != NULL);
  say_error(&err);
  rocksdb_options_destroy(o);
  return 1;
}

/* The same of a copy with these families: one of them unknown, none named, all there already. */
static void say_refused(const char* path, int n, const char** named, const rocksdb_options_t** options) {
  char* err = NULL;
  rocksdb_options_t* o = rocksdb_options_create_copy(world.options[0]);
  rocksdb_column_family_handle_t* handles[FAMILIES];
  rocksdb_options_set_create_missing_column_families(o, 0);
  const char* last = named[n - 1];
  named[n - 1] = "unknown";
  rocksdb_t* db = rocksdb_open_column_families(o, path, n, named, options, handles, &err);
  named[n - 1] = last;
  say(" %d", db != NULL);
  say_error(&err);
  if (n > 1) {
    db = rocksdb_open_column_families(o, path, n - 1, named, options, handles, &err);
    say(" %d", db != NULL);
    say_error(&err);
  }
  rocksdb_options_set_error_if_exists(o, 1);
  db = rocksdb_open_column_families(o, path, n, named, options, handles, &err);
  say(" %d", db != NULL);
  say_error(&err);
  rocksdb_options_destroy(o);
}

static int op_family(void) {
  world.tables++;
  if (!writable() || world.mode == OPTIMISTIC) return 0;
  int f = 1 + (int)below(FAMILIES - 1);
  char* err = NULL;
  /* Batches, iterators and transactions that name it go first. */
  drop_transactions();
  drop_walks();
  drop_batches();
  say(" %s", names[f]);
  if (world.family[f] == NULL) {
    world.family[f] = world.mode == LOCKS ? rocksdb_transactiondb_create_column_family(
                                                world.locks, world.options[f], names[f], &err)
                                          : rocksdb_create_column_family(world.db, world.options[f], names[f], &err);
    say(" made");
    say_error(&err);
    size_t len;
    char* name = rocksdb_column_family_handle_get_name(world.family[f], &len);
    say(" %u", rocksdb_column_family_handle_get_id(world.family[f]));
    say_bytes(name, len);
    free(name);
    rocksdb_column_family_handle_t* again = NULL;
    if (world.mode == PLAIN) {
      again = rocksdb_create_column_family(world.db, world.options[f], names[f], &err);
      say(" %d", again != NULL);
      say_error(&err);
    }
  } else if (world.mode == PLAIN && once_in(2)) {
    rocksdb_drop_column_family(world.db, world.family[f], &err);
    say(" dropped");
    say_error(&err);
    rocksdb_column_family_handle_destroy(world.family[f]);
    world.family[f] = NULL;
  }
  return 1;
}

static int op_flush(void) {
  world.tables++;
  if (!writable()) return 0;
  char* err = NULL;
  rocksdb_flushoptions_t* options = rocksdb_flushoptions_create();
  rocksdb_flushoptions_set_wait(options, 1);
  uint32_t kind = below(4);
  say(" %u", kind);
  int f = some_family(), g = some_family();
  rocksdb_column_family_handle_t* both[2] = {world.family[f], world.family[g]};
  if (kind == 0) rocksdb_flush(world.db, options, &err);
  else if (kind == 1 && world.mode == LOCKS) rocksdb_transactiondb_flush_cf(world.locks, options, both[0], &err);
  else if (kind == 1) rocksdb_flush_cf(world.db, options, both[0], &err);
  else if (kind == 2) rocksdb_flush_cfs(world.db, options, both, f == g ? 1 : 2, &err);
  else rocksdb_flush_wal(world.db, (unsigned char)below(2), &err);
  say_error(&err);
  rocksdb_flushoptions_destroy(options);
  return 1;
}

static int op_compact(void) {
  world.tables++;
  if (!writable()) return 0;
  int f = some_family();
  Bytes from = some_key(), to = some_key();
  /* A filter works on all of its family, so that it does not matter where tables begin and end. */
  int whole = f == FILTERED || once_in(2);
  const char *a = whole ? NULL : from.at, *b = whole ? NULL : to.at;
  say(" %d %d", f, whole);
  uint32_t kind = below(2);
  rocksdb_column_family_handle_t* family = world.family[f];
  if (f == FILTERED) drop_transactions(), drop_walks(), drop_snapshots();
  if (kind == 0) {
    rocksdb_compact_range_cf(world.db, family, a, from.len, b, to.len);
  } else {
    rocksdb_compactoptions_t* options = rocksdb_compactoptions_create();
    rocksdb_compactoptions_set_bottommost_level_compaction(options, 2);
    rocksdb_compact_range_cf_opt(world.db, family, options, a, from.len, b, to.len);
    rocksdb_compactoptions_destroy(options);
  }
  say_all(world.db, &family, 1);
  return 1;
}

static int op_wait(void) {
  world.tables++;
  if (!writable()) return 0;
  char* err = NULL;
  rocksdb_wait_for_compact_options_t* options = rocksdb_wait_for_compact_options_create();
  rocksdb_wait_for_compact_options_set_flush(options, (unsigned char)below(2));
  rocksdb_wait_for_compact(world.db, options, &err);
  say_error(&err);
  rocksdb_wait_for_compact_options_destroy(options);
  return 1;
}

/* What a copy of the database has in it; the copy goes afterwards. */
static void say_copy(const char* path) {
  char* err = NULL;
  int of[FAMILIES], n;
  const char* named[FAMILIES];
  const rocksdb_options_t* options[FAMILIES];
  rocksdb_column_family_handle_t* handles[FAMILIES];
  n = families_there(of);
  for (int i = 0; i < n; i++) named[i] = names[of[i]], options[i] = world.options[of[i]];
  say_refused(path, n, named, options);
  rocksdb_t* db = rocksdb_open_column_families(world.options[0], path, n, named, options, handles, &err);
  if (say_error(&err)) {
    say_all(db, handles, n);
    for (int i = 0; i < n; i++) rocksdb_column_family_handle_destroy(handles[i]);
    rocksdb_close(db);
  }
  rocksdb_destroy_db(world.options[0], path, &err);
  say_error(&err);
}

static int op_checkpoint(void) {
  if (world.has_prepared) return 0; /* The copy is opened without transactions. */
  world.tables++;
  if (world.mode == READ_ONLY) return 0;
  char* err = NULL;
  const char* path = below_dir("checkpoint");
  rocksdb_checkpoint_t* checkpoint =
      world.mode == LOCKS        ? rocksdb_transactiondb_checkpoint_object_create(world.locks, &err)
      : world.mode == OPTIMISTIC ? rocksdb_optimistictransactiondb_checkpoint_object_create(world.optimistic, &err)
                                 : rocksdb_checkpoint_object_create(world.db, &err);
  say_error(&err);
  rocksdb_checkpoint_create(checkpoint, path, world.has_unlogged || once_in(2) ? 0 : 1u << 30, &err);
  say_error(&err);
  /* It is there now. */
  rocksdb_checkpoint_create(checkpoint, path, 0, &err);
  say_error(&err);
  rocksdb_checkpoint_object_destroy(checkpoint);
  say_copy(path);
  return 1;
}

static int op_backup(void) {
  if (world.has_prepared) return 0; /* The copy is opened without transactions. */
  world.tables++;
  if (!writable()) return 0;
  char* err = NULL;
  rocksdb_backup_engine_t* engine = rocksdb_backup_engine_open(world.options[0], below_dir("backups"), &err);
  if (!say_error(&err)) return 1;
  rocksdb_backup_engine_create_new_backup_flush(engine, world.db, world.has_unlogged || once_in(2), &err);
  say_error(&err);
  rocksdb_backup_engine_purge_old_backups(engine, 2, &err);
  say_error(&err);
  const rocksdb_backup_engine_info_t* info = rocksdb_backup_engine_get_backup_info(engine);
  int n = rocksdb_backup_engine_info_count(info);
  for (int i = 0; i < n; i++) say(" %u", rocksdb_backup_engine_info_backup_id(info, i));
  rocksdb_backup_engine_verify_backup(engine, rocksdb_backup_engine_info_backup_id(info, n - 1), &err);
  say_error(&err);
  rocksdb_backup_engine_verify_backup(engine, 9999, &err);
  say_error(&err);
  rocksdb_restore_options_t* restore = rocksdb_restore_options_create();
  const char* path = below_dir("restored");
  rocksdb_backup_engine_restore_db_from_latest_backup(engine, path, path, restore, &err);
  say_error(&err);
  rocksdb_restore_options_destroy(restore);
  rocksdb_backup_engine_info_destroy(info);
  rocksdb_backup_engine_close(engine);
  say_copy(path);
  return 1;
}

static int op_ingest(void) {
  world.tables++;
  enum { MOST = 12 };
  if (world.mode != PLAIN) return 0;
  char* err = NULL;
  static Bytes keys[MOST];
  size_t n = below(MOST);
  int f = once_in(2) ? 0 : 4;
  if (world.family[f] == NULL) f = 0;
  for (size_t i = 0; i < n; i++) keys[i] = some_key();
  qsort(keys, n, sizeof *keys, by_bytes);
  const char* path = below_dir("made.sst");
  rocksdb_envoptions_t* env = rocksdb_envoptions_create();
  rocksdb_sstfilewriter_t* writer = rocksdb_sstfilewriter_create(env, world.options[f]);
  remove(path);
  rocksdb_sstfilewriter_open(writer, path, &err);
  say_error(&err);
  for (size_t i = 0; i < n; i++) { /* Two keys that are equal are refused. */
    if (once_in(6)) rocksdb_sstfilewriter_delete(writer, keys[i].at, keys[i].len, &err);
    else rocksdb_sstfilewriter_put(writer, keys[i].at, keys[i].len, "ingested", 8, &err);
    say_error(&err);
  }
  rocksdb_sstfilewriter_finish(writer, &err);
  int made = say_error(&err);
  rocksdb_sstfilewriter_destroy(writer);
  rocksdb_envoptions_destroy(env);
  if (made) {
    rocksdb_ingestexternalfileoptions_t* options = rocksdb_ingestexternalfileoptions_create();
    rocksdb_ingestexternalfileoptions_set_move_files(options, (unsigned char)below(2));
    rocksdb_ingest_external_file_cf(world.db, world.family[f], &path, 1, options, &err);
    say_error(&err);
    rocksdb_ingestexternalfileoptions_destroy(options);
    say_all(world.db, &world.family[f], 1);
    /* RocksDB takes a number where something overlaps, we always. */
    forget_sequence();
  }
  return 1;
}

static int op_set_options(void) {
  if (!writable()) return 0;
  char* err = NULL;
  static const char* const sets[][2] = {
      {"disable_auto_compactions", "false"}, {"level0_slowdown_writes_trigger", "30"},
      {"no_such_option", "1"},               {"level0_file_num_compaction_trigger", "4"},
      {"write_buffer_size", "a lot"},
  };
  uint32_t which = below(5);
  say(" %u", which);
  rocksdb_set_options(world.db, 1, &sets[which][0], &sets[which][1], &err);
  say_error(&err);
  return 1;
}

static int op_delete_files(void) {
  world.tables++;
  if (world.mode != PLAIN) return 0;
  char* err = NULL;
  /* Of no key: what goes depends on where tables begin and end. */
  rocksdb_delete_file_in_range(world.db, "zz", 2, "zzz", 3, &err);
  say_error(&err);
  return 1;
}

const Entry place_operations[] = {
    {"reopen", 2, op_reopen},           {"open_refused", 1, op_open_refused},
    {"family", 5, op_family},           {"flush", 3, op_flush},
    {"compact", 2, op_compact},         {"wait", 1, op_wait},
    {"checkpoint", 1, op_checkpoint},   {"backup", 1, op_backup},
    {"ingest", 3, op_ingest},           {"set_options", 3, op_set_options},
    {"delete_files", 1, op_delete_files}, {NULL, 0, NULL},
};
