/* Transactions of both kinds; backups, checkpoints, tables from outside. */
#include <dirent.h>
#include <pthread.h>

#include "check.h"

static void txn_put(rocksdb_transaction_t* txn, const char* key, const char* value) {
  char* err = NULL;
  rocksdb_transaction_put(txn, key, strlen(key), value, strlen(value), &err);
  GOOD(err);
}
static void txn_has(rocksdb_transaction_t* txn, const rocksdb_readoptions_t* ro, const char* key,
                    const char* value) {
  char* err = NULL;
  size_t len;
  char* got = rocksdb_transaction_get(txn, ro, key, strlen(key), &len, &err);
  GOOD(err);
  CHECK((got == NULL) == (value == NULL));
  if (got) CHECK(len == strlen(value) && memcmp(got, value, len) == 0);
  free(got);
}

/* Writes the same value to two keys, again and again. */
struct pair {
  rocksdb_transactiondb_t* db;
  int over;
};
static void* writes_pairs(void* at) {
  struct pair* pair = at;
  char *err = NULL, value[16];
  rocksdb_writeoptions_t* wo = rocksdb_writeoptions_create();
  for (int i = 0; !__atomic_load_n(&pair->over, __ATOMIC_SEQ_CST); i++) {
    rocksdb_writebatch_t* b = rocksdb_writebatch_create();
    int len = snprintf(value, sizeof value, "%08d", i);
    rocksdb_writebatch_put(b, "left", 4, value, (size_t)len);
    rocksdb_writebatch_put(b, "right", 5, value, (size_t)len);
    rocksdb_transactiondb_write(pair->db, wo, b, &err);
    GOOD(err);
    rocksdb_writebatch_destroy(b);
  }
  rocksdb_writeoptions_destroy(wo);
  return NULL;
}

/* Several keys are read as of one moment, whatever is written meanwhile. */
static void reads_pairs(rocksdb_transactiondb_t* db) {
  rocksdb_t* base = rocksdb_transactiondb_get_base_db(db);
  rocksdb_column_family_handle_t* cf = rocksdb_get_default_column_family_handle(base);
  const rocksdb_column_family_handle_t* both[2] = {cf, cf};
  const char* keys[2] = {"left", "right"};
  const size_t lens[2] = {4, 5};
  rocksdb_readoptions_t* ro = rocksdb_readoptions_create();
  struct pair pair = {db, 0};
  pthread_t writer;
  CHECK(pthread_create(&writer, NULL, writes_pairs, &pair) == 0);
  for (int i = 0; i < 20000; i++) {
    char *values[2], *errs[2];
    size_t got[2];
    if (i % 2) {
      rocksdb_transactiondb_multi_get(db, ro, 2, keys, lens, values, got, errs);
    } else {
      rocksdb_transactiondb_multi_get_cf(db, ro, both, 2, keys, lens, values, got, errs);
    }
    GOOD(errs[0]);
    GOOD(errs[1]);
    CHECK(got[0] == got[1] && (got[0] == 0 || memcmp(values[0], values[1], got[0]) == 0));
    free(values[0]);
    free(values[1]);
  }
  __atomic_store_n(&pair.over, 1, __ATOMIC_SEQ_CST);
  pthread_join(writer, NULL);
  rocksdb_readoptions_destroy(ro);
  rocksdb_column_family_handle_destroy(cf);
  rocksdb_transactiondb_close_base_db(base);
}

void test_transactions(void) {
  char* err = NULL;
  size_t len;
  rocksdb_options_t* o = rocksdb_options_create();
  rocksdb_options_set_create_if_missing(o, 1);
  rocksdb_transactiondb_options_t* to = rocksdb_transactiondb_options_create();
  rocksdb_transactiondb_options_set_default_lock_timeout(to, 10);
  rocksdb_transactiondb_t* db = rocksdb_transactiondb_open(o, to, fresh("locks"), &err);
  GOOD(err);
  rocksdb_writeoptions_t* wo = rocksdb_writeoptions_create();
  rocksdb_readoptions_t* ro = rocksdb_readoptions_create();
  rocksdb_transaction_options_t* xo = rocksdb_transaction_options_create();
  rocksdb_transaction_options_set_lock_timeout(xo, 10);
  rocksdb_transactiondb_put(db, wo, "a", 1, "0", 1, &err);
  GOOD(err);

  rocksdb_transaction_t* one = rocksdb_transaction_begin(db, wo, xo, NULL);
  txn_put(one, "a", "1");
  txn_has(one, ro, "a", "1");
  char* got = rocksdb_transactiondb_get(db, ro, "a", 1, &len, &err);
  CHECK(len == 1 && *got == '0'); /* Not committed. */
  free(got);
  /* Another transaction and a single write wait for the lock, and give up. */
  rocksdb_transaction_t* two = rocksdb_transaction_begin(db, wo, xo, NULL);
  rocksdb_transaction_put(two, "a", 1, "2", 1, &err);
  FAILS(err, "Operation timed out: ");
  rocksdb_transactiondb_delete(db, wo, "a", 1, &err);
  FAILS(err, "Operation timed out: ");
  rocksdb_transaction_set_savepoint(one);
  txn_put(one, "b", "1");
  rocksdb_transaction_rollback_to_savepoint(one, &err);
  GOOD(err);
  rocksdb_transaction_rollback_to_savepoint(one, &err);
  FAILS(err, "NotFound: ");
  txn_has(one, ro, "b", NULL);
  /* Names are of one transaction each, until it is over. It is named before it is prepared. */
  rocksdb_transaction_prepare(one, &err);
  FAILS(err, "Invalid argument: ");
  rocksdb_transaction_set_name(one, "", 0, &err);
  FAILS(err, "Invalid argument: ");
  rocksdb_transaction_set_name(one, "x", 1, &err);
  GOOD(err);
  rocksdb_transaction_set_name(one, "y", 1, &err);
  FAILS(err, "Invalid argument: ");
  rocksdb_transaction_set_name(two, "x", 1, &err);
  FAILS(err, "Invalid argument: Duplicate txn name x");
  char* name = rocksdb_transaction_get_name(one, &len);
  CHECK(len == 1 && *name == 'x');
  free(name);
  rocksdb_transaction_prepare(one, &err);
  GOOD(err);
  rocksdb_transaction_prepare(one, &err);
  FAILS(err, "Invalid argument: ");
  rocksdb_transaction_put(one, "b", 1, "late", 4, &err);
  FAILS(err, "Invalid argument: ");
  rocksdb_iterator_t* it = rocksdb_transaction_create_iterator(one, ro);
  const char* pairs[] = {"a", "1"};
  shows(it, pairs, 1);
  rocksdb_iter_refresh(it, &err);
  FAILS(err, "Not implemented: ");
  rocksdb_iter_destroy(it);
  rocksdb_transaction_commit(one, &err);
  GOOD(err);
  rocksdb_transaction_set_name(two, "x", 1, &err);
  GOOD(err);
  rocksdb_transaction_set_name(one, "z", 1, &err);
  FAILS(err, "Invalid argument: ");
  rocksdb_transaction_put(one, "a", 1, "late", 4, &err);
  FAILS(err, "Invalid argument: ");
  rocksdb_transaction_commit(one, &err);
  FAILS(err, "Invalid argument: ");
  rocksdb_transaction_rollback(two, &err);
  GOOD(err);

  /* A snapshot is what claims are held against; reads see it only if they ask for it. */
  rocksdb_transaction_options_set_set_snapshot(xo, 1);
  CHECK(rocksdb_transaction_begin(db, wo, xo, one) == one); /* The old handle is used again. */
  rocksdb_transactiondb_put(db, wo, "a", 1, "9", 1, &err);
  GOOD(err);
  txn_has(one, ro, "a", "9");
  const rocksdb_snapshot_t* s = rocksdb_transaction_get_snapshot(one);
  rocksdb_readoptions_set_snapshot(ro, s);
  txn_has(one, ro, "a", "1");
  rocksdb_pinnableslice_t* p = rocksdb_transaction_get_pinned(one, ro, "a", 1, &err);
  CHECK(*rocksdb_pinnableslice_value(p, &len) == '1');
  rocksdb_pinnableslice_destroy(p);
  rocksdb_readoptions_set_snapshot(ro, NULL);
  rocksdb_free((void*)s);
  CHECK(rocksdb_transaction_get_for_update(one, ro, "a", 1, &len, 1, &err) == NULL);
  FAILS(err, "Resource busy: ");
  rocksdb_transaction_destroy(one);

  /* The snapshot that it showed stays after its commit, until it is destroyed, and so does what it shows. */
  rocksdb_transactiondb_put(db, wo, "shown", 5, "0", 1, &err);
  GOOD(err);
  one = rocksdb_transaction_begin(db, wo, xo, NULL);
  s = rocksdb_transaction_get_snapshot(one);
  const rocksdb_snapshot_t* same = rocksdb_transaction_get_snapshot(one);
  uint64_t number = rocksdb_snapshot_get_sequence_number(s);
  CHECK(number > 0);
  txn_put(one, "shown", "1");
  rocksdb_transaction_commit(one, &err);
  GOOD(err);
  CHECK(rocksdb_snapshot_get_sequence_number(s) == number && rocksdb_snapshot_get_sequence_number(same) == number);
  rocksdb_t* under = rocksdb_transactiondb_get_base_db(db);
  rocksdb_compact_range(under, NULL, 0, NULL, 0);
  rocksdb_transactiondb_close_base_db(under);
  rocksdb_readoptions_set_snapshot(ro, s);
  got = rocksdb_transactiondb_get(db, ro, "shown", 5, &len, &err);
  GOOD(err);
  CHECK(got != NULL && len == 1 && *got == '0');
  free(got);
  rocksdb_readoptions_set_snapshot(ro, NULL);
  rocksdb_free((void*)s);
  rocksdb_free((void*)same);
  rocksdb_transaction_destroy(one);
  reads_pairs(db);

  rocksdb_writebatch_t* b = rocksdb_writebatch_create();
  rocksdb_writebatch_put(b, "w", 1, "1", 1);
  rocksdb_writebatch_delete(b, "a", 1);
  rocksdb_transactiondb_write(db, wo, b, &err);
  GOOD(err);
  rocksdb_writebatch_delete_range(b, "a", 1, "b", 1);
  rocksdb_transactiondb_write(db, wo, b, &err);
  FAILS(err, "Invalid argument: a range deletion under locks");
  rocksdb_writebatch_destroy(b);
  rocksdb_t* base = rocksdb_transactiondb_get_base_db(db);
  has(base, "w", "1");
  has(base, "a", NULL);
  rocksdb_transactiondb_close_base_db(base);
  rocksdb_transaction_destroy(two);
  /* Its handle serves where a database's is asked for, as bindings cast it. */
  CHECK(rocksdb_get_latest_sequence_number((rocksdb_t*)db) > 0);
  /* What is written through it waits for locks, too; the database without transactions knows none. */
  one = rocksdb_transaction_begin(db, wo, xo, NULL);
  txn_put(one, "cast", "1");
  b = rocksdb_writebatch_create();
  rocksdb_writebatch_delete(b, "cast", 4);
  base = rocksdb_transactiondb_get_base_db(db);
  rocksdb_column_family_handle_t* of = rocksdb_get_default_column_family_handle(base);
  rocksdb_put((rocksdb_t*)db, wo, "cast", 4, "0", 1, &err);
  FAILS(err, "Operation timed out: ");
  rocksdb_put_cf((rocksdb_t*)db, wo, of, "cast", 4, "0", 1, &err);
  FAILS(err, "Operation timed out: ");
  rocksdb_singledelete_cf((rocksdb_t*)db, wo, of, "cast", 4, &err);
  FAILS(err, "Operation timed out: ");
  rocksdb_write((rocksdb_t*)db, wo, b, &err);
  FAILS(err, "Operation timed out: ");
  rocksdb_delete_range_cf((rocksdb_t*)db, wo, of, "c", 1, "d", 1, &err);
  FAILS(err, "Invalid argument: a range deletion under locks");
  rocksdb_put((rocksdb_t*)db, wo, "other", 5, "0", 1, &err);
  GOOD(err);
  has(base, "other", "0");
  rocksdb_put(base, wo, "cast", 4, "0", 1, &err);
  GOOD(err);
  rocksdb_column_family_handle_destroy(of);
  rocksdb_transactiondb_close_base_db(base);
  rocksdb_writebatch_destroy(b);
  rocksdb_transaction_destroy(one);
  rocksdb_transactiondb_close(db);
  rocksdb_transaction_options_destroy(xo);
  rocksdb_transactiondb_options_destroy(to);

  /* Optimistic: the second to commit is told. */
  rocksdb_optimistictransactiondb_t* od = rocksdb_optimistictransactiondb_open(o, fresh("optimistic"), &err);
  GOOD(err);
  rocksdb_optimistictransaction_options_t* oo = rocksdb_optimistictransaction_options_create();
  one = rocksdb_optimistictransaction_begin(od, wo, oo, NULL);
  two = rocksdb_optimistictransaction_begin(od, wo, oo, NULL);
  txn_put(one, "k", "1");
  txn_put(two, "k", "2");
  rocksdb_transaction_commit(one, &err);
  GOOD(err);
  rocksdb_transaction_commit(two, &err);
  FAILS(err, "Resource busy: ");
  rocksdb_transaction_rollback(two, &err);
  GOOD(err);
  rocksdb_transaction_destroy(one);
  rocksdb_transaction_destroy(two);
  base = rocksdb_optimistictransactiondb_get_base_db(od);
  has(base, "k", "1");
  rocksdb_optimistictransactiondb_close_base_db(base);
  rocksdb_optimistictransaction_options_destroy(oo);
  rocksdb_optimistictransactiondb_close(od);
  rocksdb_writeoptions_destroy(wo);
  rocksdb_readoptions_destroy(ro);
  rocksdb_options_destroy(o);
}

/* Changes the last byte of a file, or of every file in a directory. */
static void damage(const char* path) {
  DIR* all = opendir(path);
  for (struct dirent* one; all != NULL && (one = readdir(all)) != NULL;) {
    if (one->d_name[0] == '.') continue;
    char inside[600];
    snprintf(inside, sizeof inside, "%s/%s", path, one->d_name);
    damage(inside);
  }
  if (all != NULL) {
    closedir(all);
    return;
  }
  FILE* file = fopen(path, "r+");
  CHECK(file != NULL && fseek(file, -1, SEEK_END) == 0);
  int byte = fgetc(file);
  CHECK(byte != EOF && fseek(file, -1, SEEK_END) == 0 && fputc(byte ^ 1, file) != EOF && fclose(file) == 0);
}

void test_backups(void) {
  char* err = NULL;
  const char *dir = fresh("backed"), *to = fresh("backups"), *back = fresh("restored");
  rocksdb_t* db = open_new(NULL, dir);
  put(db, "a", "1");
  rocksdb_backup_engine_options_t* bo = rocksdb_backup_engine_options_create(to);
  rocksdb_backup_engine_t* be = rocksdb_backup_engine_open_opts(bo, NULL, &err);
  GOOD(err);
  rocksdb_backup_engine_options_destroy(bo);
  rocksdb_restore_options_t* ropts = rocksdb_restore_options_create();
  rocksdb_backup_engine_restore_db_from_latest_backup(be, back, back, ropts, &err);
  FAILS(err, "NotFound: ");
  rocksdb_backup_engine_create_new_backup(be, db, &err);
  GOOD(err);
  put(db, "a", "2");
  rocksdb_backup_engine_create_new_backup_flush(be, db, 1, &err);
  GOOD(err);
  const rocksdb_backup_engine_info_t* list = rocksdb_backup_engine_get_backup_info(be);
  CHECK(rocksdb_backup_engine_info_count(list) == 2);
  uint32_t first = rocksdb_backup_engine_info_backup_id(list, 0);
  CHECK(rocksdb_backup_engine_info_timestamp(list, 0) > 0);
  CHECK(rocksdb_backup_engine_info_size(list, 1) > 0);
  CHECK(rocksdb_backup_engine_info_number_files(list, 1) >= 1);
  CHECK(rocksdb_backup_engine_info_backup_id(list, 2) == 0);
  CHECK(rocksdb_backup_engine_info_backup_id(list, -1) == 0);
  rocksdb_backup_engine_info_destroy(list);
  rocksdb_backup_engine_verify_backup(be, first, &err);
  GOOD(err);
  rocksdb_backup_engine_verify_backup(be, 999, &err);
  FAILS(err, "NotFound: ");
  rocksdb_backup_engine_restore_db_from_backup(be, back, back, ropts, first, &err);
  GOOD(err);
  rocksdb_t* restored = open_new(NULL, back);
  has(restored, "a", "1");
  rocksdb_close(restored);
  rocksdb_backup_engine_restore_db_from_latest_backup(be, back, "/elsewhere", ropts, &err);
  FAILS(err, "Not implemented: ");
  /* What is there gives way. */
  rocksdb_backup_engine_restore_db_from_latest_backup(be, back, back, ropts, &err);
  GOOD(err);
  restored = open_new(NULL, back);
  has(restored, "a", "2");
  put(restored, "log", "3");
  rocksdb_close(restored);
  /* What can't be restored costs nothing of what is there. */
  rocksdb_backup_engine_restore_db_from_backup(be, back, back, ropts, 999, &err);
  FAILS(err, "NotFound: ");
  char notes[600];
  snprintf(notes, sizeof notes, "%s/notes.txt", back);
  FILE* stray = fopen(notes, "w");
  CHECK(stray != NULL && fclose(stray) == 0);
  rocksdb_backup_engine_restore_db_from_backup(be, back, back, ropts, first, &err);
  FAILS(err, "Invalid argument: ");
  CHECK(remove(notes) == 0);
  restored = open_new(NULL, back);
  has(restored, "log", "3");
  put(restored, "log", "3"); /* As the open made a table of the first. */
  rocksdb_close(restored);
  rocksdb_restore_options_set_keep_log_files(ropts, 1);
  rocksdb_backup_engine_restore_db_from_latest_backup(be, back, back, ropts, &err);
  FAILS(err, "Not implemented: keep_log_files=1");
  restored = open_new(NULL, back); /* It is as it was. */
  has(restored, "log", "3");
  rocksdb_close(restored);
  /* Where there are no logs, none has to be kept. The logs' directory may be spelled otherwise. */
  const char* empty = fresh("restored-anew");
  char other[300];
  snprintf(other, sizeof other, "%s/", empty);
  rocksdb_backup_engine_restore_db_from_latest_backup(be, empty, other, ropts, &err);
  GOOD(err);
  restored = open_new(NULL, empty);
  has(restored, "a", "2");
  rocksdb_close(restored);
  rocksdb_restore_options_set_keep_log_files(ropts, 0);
  /* A restore among files in memory has nothing to do with a directory of that name on the machine. */
  rocksdb_env_t* env = rocksdb_create_mem_env();
  rocksdb_options_t* mo = rocksdb_options_create();
  rocksdb_options_set_env(mo, env);
  rocksdb_t* memory = open_new(mo, "/memory");
  put(memory, "a", "4");
  rocksdb_backup_engine_options_t* mb = rocksdb_backup_engine_options_create("/backups");
  rocksdb_backup_engine_t* me = rocksdb_backup_engine_open_opts(mb, env, &err);
  GOOD(err);
  rocksdb_backup_engine_create_new_backup(me, memory, &err);
  GOOD(err);
  rocksdb_close(memory);
  for (int i = 0; i < 2; i++) { /* The second gives way there. */
    rocksdb_backup_engine_restore_db_from_latest_backup(me, back, back, ropts, &err);
    GOOD(err);
    memory = open_new(mo, back);
    has(memory, "a", "4");
    rocksdb_close(memory);
  }
  restored = open_new(NULL, back);
  has(restored, "log", "3");
  rocksdb_close(restored);
  rocksdb_backup_engine_close(me);
  rocksdb_backup_engine_options_destroy(mb);
  rocksdb_options_destroy(mo);
  rocksdb_env_destroy(env);
  /* A list that is damaged hides no other backup. */
  char inside[600];
  snprintf(inside, sizeof inside, "%s/meta/%u", to, first);
  damage(inside);
  list = rocksdb_backup_engine_get_backup_info(be);
  CHECK(rocksdb_backup_engine_info_count(list) == 1);
  rocksdb_backup_engine_info_destroy(list);
  rocksdb_backup_engine_restore_db_from_backup(be, back, back, ropts, first, &err);
  FAILS(err, "Corruption: ");
  const char* latest = fresh("restored-latest");
  rocksdb_backup_engine_restore_db_from_latest_backup(be, latest, latest, ropts, &err);
  GOOD(err);
  restored = open_new(NULL, latest);
  has(restored, "a", "2");
  rocksdb_close(restored);
  snprintf(inside, sizeof inside, "%s/shared", to);
  damage(inside);
  rocksdb_backup_engine_restore_db_from_latest_backup(be, back, back, ropts, &err);
  FAILS(err, "Corruption: ");
  restored = open_new(NULL, back);
  has(restored, "log", "3");
  rocksdb_close(restored);
  rocksdb_restore_options_destroy(ropts);
  rocksdb_backup_engine_purge_old_backups(be, 1, &err);
  GOOD(err);
  rocksdb_backup_engine_close(be);

  const char* point = fresh("checkpoint");
  rocksdb_checkpoint_t* c = rocksdb_checkpoint_object_create(db, &err);
  GOOD(err);
  rocksdb_checkpoint_create(c, point, 0, &err);
  GOOD(err);
  rocksdb_checkpoint_create(c, point, 0, &err);
  FAILS(err, "Invalid argument: ");
  rocksdb_checkpoint_object_destroy(c);
  restored = open_new(NULL, point);
  has(restored, "a", "2");
  rocksdb_close(restored);

  /* A table from outside. */
  const char* table = fresh("outside.sst");
  rocksdb_options_t* o = rocksdb_options_create();
  rocksdb_envoptions_t* eo = rocksdb_envoptions_create();
  rocksdb_sstfilewriter_t* w = rocksdb_sstfilewriter_create(eo, o);
  rocksdb_sstfilewriter_put(w, "k", 1, "v", 1, &err);
  FAILS(err, "Invalid argument: "); /* Not open. */
  rocksdb_sstfilewriter_finish(w, &err);
  FAILS(err, "Invalid argument: ");
  rocksdb_sstfilewriter_open(w, table, &err);
  GOOD(err);
  rocksdb_sstfilewriter_put(w, "k", 1, "v", 1, &err);
  GOOD(err);
  rocksdb_sstfilewriter_put(w, "j", 1, "v", 1, &err);
  FAILS(err, "Invalid argument: "); /* Out of order. */
  rocksdb_sstfilewriter_delete(w, "l", 1, &err);
  GOOD(err);
  rocksdb_sstfilewriter_finish(w, &err);
  GOOD(err);
  uint64_t bytes = 0;
  rocksdb_sstfilewriter_file_size(w, &bytes);
  CHECK(bytes > 0);
  rocksdb_sstfilewriter_destroy(w);
  rocksdb_envoptions_destroy(eo);
  put(db, "l", "hidden");
  rocksdb_ingestexternalfileoptions_t* io = rocksdb_ingestexternalfileoptions_create();
  const char* files[1] = {table};
  rocksdb_ingestexternalfileoptions_set_ingest_behind(io, 1);
  rocksdb_ingest_external_file(db, files, 1, io, &err);
  FAILS(err, "Not implemented: ");
  rocksdb_ingestexternalfileoptions_set_ingest_behind(io, 0);
  rocksdb_ingestexternalfileoptions_set_move_files(io, 1);
  rocksdb_ingest_external_file(db, files, 1, io, &err);
  GOOD(err);
  has(db, "k", "v");
  has(db, "l", NULL);
  rocksdb_ingest_external_file(db, files, 1, io, &err);
  CHECK(err != NULL); /* It was moved away. */
  free(err);
  rocksdb_ingestexternalfileoptions_destroy(io);
  rocksdb_options_destroy(o);
  rocksdb_close(db);
}
