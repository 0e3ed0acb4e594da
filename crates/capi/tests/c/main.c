/* Runs every group, or those that are named, in the directory given first. */
#include "check.h"

static const char* place;
static char paths[96][512];
static size_t used;

const char* fresh(const char* name) {
  CHECK(used < 96);
  snprintf(paths[used], sizeof paths[used], "%s/%s", place, name);
  return paths[used++];
}

static const struct {
  const char* name;
  void (*run)(void);
} groups[] = {
    {"open", test_open},           {"errors", test_errors},
    {"points", test_points},       {"batches", test_batches},
    {"iterators", test_iterators}, {"families", test_families},
    {"atomic flush", test_atomic_flush},
    {"options", test_options},     {"callbacks", test_callbacks},
    {"transactions", test_transactions}, {"backups", test_backups},
    {"shared", test_shared},       {"one_cache", test_one_cache}, {"one_bound", test_one_bound}, {"refused", test_refused},
    {"updates", test_updates},     {"followers", test_followers},
    {"times", test_times},         {"figures", test_figures},
    {"text", test_text},
    {"factories", test_factories}, {"memory_reads", test_memory_reads},
    {"noted", test_noted},         {"kinds", test_kinds},
    {"measures", test_measures},   {"kinds of transactions", test_kinds_of_transactions},
    {"prepared", test_prepared},   {"own", test_own},
    {"paths", test_paths},
    {"without", test_without},     {"panics", test_panics},
};

int main(int argc, char** argv) {
  CHECK(argc >= 2);
  place = argv[1];
  size_t ran = 0;
  for (size_t i = 0; i < sizeof groups / sizeof *groups; i++) {
    int wanted = argc == 2;
    for (int a = 2; a < argc; a++) wanted |= strcmp(argv[a], groups[i].name) == 0;
    if (!wanted) continue;
    groups[i].run();
    printf("%s: good\n", groups[i].name);
    ran++;
  }
  CHECK(ran > 0);
  return 0;
}
