/* Options: what each getter tells of a new object, and after its setter. The pairs are those of symbols.txt. */
#include "twin.h"

#define WHOLE(name, type, create, destroy, set, get, most)                 \
  static void name(void) {                                                 \
    type* o = create();                                                    \
    say(" %lld", (long long)get(o));                                       \
    uint32_t value = below(most);                                          \
    set(o, value);                                                         \
    say(" %u %lld", value, (long long)get(o));                             \
    destroy(o);                                                            \
  }
#define REAL(name, type, create, destroy, set, get)                        \
  static void name(void) {                                                 \
    type* o = create();                                                    \
    say(" %g", get(o));                                                    \
    double value = below(1000) / 100.0;                                    \
    set(o, value);                                                         \
    say(" %g %g", value, get(o));                                          \
    destroy(o);                                                            \
  }
#include "pairs.inc"

static int op_pair(void) {
  uint32_t which = below(sizeof pairs / sizeof *pairs);
  say(" %s", pairs[which].name);
  pairs[which].run();
  return 1;
}

/* Setters of many options at once. */
static int op_several(void) {
  rocksdb_options_t* o = rocksdb_options_create();
  uint32_t kind = below(5);
  say(" %u", kind);
  uint64_t budget = (uint64_t)(1 + below(64)) << 20;
  if (kind == 0) rocksdb_options_increase_parallelism(o, 3);
  else if (kind == 1) rocksdb_options_optimize_for_point_lookup(o, 8);
  else if (kind == 2) rocksdb_options_optimize_level_style_compaction(o, budget);
  else if (kind == 3) rocksdb_options_optimize_universal_style_compaction(o, budget);
  else rocksdb_options_prepare_for_bulk_load(o);
  say_options(o);
  rocksdb_options_destroy(o);
  return 1;
}

/* A copy has what the original had, and lives on its own. */
static int op_copy(void) {
  rocksdb_options_t* o = rocksdb_options_create();
  int level0 = 1 + (int)below(20);
  rocksdb_options_set_level0_file_num_compaction_trigger(o, level0);
  rocksdb_options_t* copy = rocksdb_options_create_copy(o);
  rocksdb_options_set_level0_file_num_compaction_trigger(o, 77);
  rocksdb_options_destroy(o);
  say(" %d %d", level0, rocksdb_options_get_level0_file_num_compaction_trigger(copy));
  rocksdb_options_destroy(copy);
  return 1;
}

static int op_shared(void) {
  size_t size = (1u + below(64)) << 20;
  rocksdb_cache_t* cache = rocksdb_cache_create_lru(size);
  say(" %zu", rocksdb_cache_get_capacity(cache));
  rocksdb_cache_set_capacity(cache, size * 2);
  say(" %zu", rocksdb_cache_get_capacity(cache));
  rocksdb_write_buffer_manager_t* buffers = rocksdb_write_buffer_manager_create(size, 0);
  say(" %d %zu %zu", rocksdb_write_buffer_manager_enabled(buffers),
      rocksdb_write_buffer_manager_buffer_size(buffers), rocksdb_write_buffer_manager_memory_usage(buffers));
  rocksdb_write_buffer_manager_destroy(buffers);
  rocksdb_cache_destroy(cache);
  rocksdb_slicetransform_t* noop = rocksdb_slicetransform_create_noop();
  rocksdb_options_t* o = rocksdb_options_create();
  rocksdb_options_set_prefix_extractor(o, noop);
  rocksdb_options_increase_parallelism(o, 3);
  rocksdb_options_optimize_for_point_lookup(o, 8);
  rocksdb_ratelimiter_t* rate = rocksdb_ratelimiter_create(10 << 20, 100000, 10);
  rocksdb_options_set_ratelimiter(o, rate);
  rocksdb_ratelimiter_destroy(rate);
  say(" %d", rocksdb_options_get_max_background_jobs(o));
  rocksdb_options_destroy(o);
  return 1;
}

const Entry option_operations[] = {
    {"options.pair", 12, op_pair},
    {"options.several", 3, op_several},
    {"options.copy", 2, op_copy},
    {"options.shared", 2, op_shared},
    {NULL, 0, NULL},
};
