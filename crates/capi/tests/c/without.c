/* What is asked of objects that are not there: the least that can be answered. */
#include "check.h"

void test_without(void) {
  char* err = NULL;
  size_t len = 7;
  rocksdb_t* db = open_new(NULL, fresh("without"));
  rocksdb_options_t* o = rocksdb_options_create();
  CHECK(rocksdb_options_get_WAL_size_limit_MB(o) == 0 && rocksdb_options_get_WAL_ttl_seconds(o) == 0);
  CHECK(rocksdb_options_get_allow_ingest_behind(o) == 0);

  const rocksdb_livefiles_t* files = NULL;
  CHECK(rocksdb_livefiles_count(files) == 0);
  CHECK(rocksdb_livefiles_column_family_name(files, 0) == NULL && rocksdb_livefiles_name(files, 0) == NULL);
  CHECK(rocksdb_livefiles_level(files, 0) == 0 && rocksdb_livefiles_size(files, 0) == 0);
  CHECK(rocksdb_livefiles_entries(files, 0) == 0 && rocksdb_livefiles_deletions(files, 0) == 0);
  CHECK(rocksdb_livefiles_smallestkey(files, 0, &len) == NULL);
  CHECK(rocksdb_livefiles_largestkey(files, 0, &len) == NULL);
  rocksdb_livefiles_destroy(files);

  CHECK(rocksdb_get_db_identity(NULL, &len) == NULL);
  rocksdb_perfcontext_t* perf = NULL;
  CHECK(rocksdb_perfcontext_metric(perf, 0) == 0);
  CHECK(rocksdb_perfcontext_report(perf, 0) == NULL);
  rocksdb_perfcontext_reset(perf);
  rocksdb_perfcontext_destroy(perf);

  rocksdb_options_set_statistics_level(o, 1);
  CHECK(rocksdb_options_get_statistics_level(o) == 1);
  rocksdb_statistics_histogram_data_t* h = NULL;
  rocksdb_options_statistics_get_histogram_data(o, 0, h);
  CHECK(rocksdb_statistics_histogram_data_get_average(h) == 0 && rocksdb_statistics_histogram_data_get_max(h) == 0);
  CHECK(rocksdb_statistics_histogram_data_get_median(h) == 0 && rocksdb_statistics_histogram_data_get_min(h) == 0);
  CHECK(rocksdb_statistics_histogram_data_get_p95(h) == 0 && rocksdb_statistics_histogram_data_get_p99(h) == 0);
  CHECK(rocksdb_statistics_histogram_data_get_std_dev(h) == 0);
  CHECK(rocksdb_statistics_histogram_data_get_count(h) == 0 && rocksdb_statistics_histogram_data_get_sum(h) == 0);
  rocksdb_statistics_histogram_data_destroy(h);

  uint64_t number = 0;
  CHECK(rocksdb_wal_iter_get_batch(NULL, &number) == NULL);
  rocksdb_wal_iter_status(NULL, &err);
  FAILS(err, "Invalid argument: ");
  CHECK(rocksdb_compactionfiltercontext_is_full_compaction(NULL) == 0);
  CHECK(rocksdb_compactionfiltercontext_is_manual_compaction(NULL) == 0);
  rocksdb_compactionfilterfactory_destroy(NULL);

  rocksdb_options_t** of = NULL;
  char** names = NULL;
  rocksdb_options_t* loaded = o;
  rocksdb_load_latest_options("somewhere", NULL, false, NULL, &loaded, &len, &names, &of, &err);
  FAILS(err, "");
  CHECK(names == NULL && of == NULL);

  rocksdb_readoptions_t* ro = rocksdb_readoptions_create();
  rocksdb_iterator_t* it = rocksdb_create_iterator(db, ro);
  CHECK(rocksdb_iter_timestamp(it, &len) != NULL && len == 0);
  rocksdb_iter_destroy(it);
  rocksdb_readoptions_destroy(ro);
  /* A compaction has no error to tell, so nothing is compacted. */
  put(db, "a", "1");
  rocksdb_compactoptions_t* how = rocksdb_compactoptions_create();
  rocksdb_compactoptions_set_full_history_ts_low(how, "t", 1);
  rocksdb_compact_range_opt(db, how, NULL, 0, NULL, 0);
  char* n = rocksdb_property_value(db, "rocksdb.num-entries-active-mem-table");
  CHECK(n != NULL && strcmp(n, "1") == 0);
  free(n);
  rocksdb_compactoptions_destroy(how);
  rocksdb_options_destroy(o);
  rocksdb_close(db);
}
