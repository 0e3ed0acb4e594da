/* What the parts of the twin program share: one random source, one way to say results, and the database that
 * all calls are about. The program is built twice, with RocksDB's header and library and with ours; what it
 * prints must be the same. So it prints nothing that depends on files, sizes, times or wording: of an error
 * the status alone, of a sequence number how much it rose. */
#ifndef TWIN_H
#define TWIN_H

#include <inttypes.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include TWIN_HEADER

/* ---- chance */
uint64_t chance(void);
uint32_t below(uint32_t n);
static inline int once_in(uint32_t n) { return below(n) == 0; }

typedef struct {
  char at[6000];
  size_t len;
} Bytes;
/* A key of the ordinary ones: two or three letters, so that calls meet. */
Bytes some_key(void);
Bytes some_value(void);
/* The order of bytes, for qsort. */
int by_bytes(const void* a, const void* b);
/* A value for a family, which its merge operator takes. */
Bytes value_for(int family);

/* ---- results: a line is `number operation = results` */
void say(const char* format, ...) __attribute__((format(printf, 1, 2)));
void say_bytes(const char* at, size_t len);
void say_if_whole(const char* at, size_t len);
/* The status of an error, which is freed; `ok` for none. Gives whether there was none. */
int say_error(char** err);
/* From here to the end of the line the two may differ, by the line TAG of allowed.txt. */
void may_differ(const char* tag);

/* A sum over what was walked through, with how many entries there were. */
typedef struct {
  uint64_t sum;
  size_t count;
} Sum;
void add_bytes(Sum* sum, const char* at, size_t len);
void say_sum(Sum sum);
/* Walks through all of an iterator, forward or back, and says its sum and its error. */
void say_walk(rocksdb_iterator_t* it, int backward);

/* ---- the database */
enum mode { PLAIN, LOCKS, OPTIMISTIC, READ_ONLY };
enum {
  FAMILIES = 5, /* 0 is the default one */
  REVERSED = 2, /* its order is a callback of ours */
  FILTERED = 3, /* with a compaction filter, compacted by hand alone */
};

typedef struct {
  enum mode mode;
  const char* dir; /* all that the program writes is below it */
  char path[1024];
  rocksdb_t* db; /* of the database with transactions: its base */
  rocksdb_transactiondb_t* locks;
  rocksdb_optimistictransactiondb_t* optimistic;
  rocksdb_options_t* options[FAMILIES];
  rocksdb_column_family_handle_t* family[FAMILIES]; /* NULL if it is not there */
  rocksdb_writeoptions_t* write;
  rocksdb_writeoptions_t* write_unlogged;
  rocksdb_readoptions_t* read;
  uint64_t sequence;
  uint64_t tables;  /* how often a call made tables, or made them anew */
  int has_unlogged; /* writes that a copy without a flush may lack */
  int has_prepared; /* the log may tell of prepared transactions, so RocksDB opens it with transactions only */
} World;
extern World world;

static inline int writable(void) { return world.mode != READ_ONLY; }
/* One of the families that are there. */
int some_family(void);
rocksdb_writeoptions_t* some_write(void);
void start_world(const char* dir);
void open_world(enum mode mode);
void close_world(void);
void end_world(void);
/* The number rises by one for each entry; what takes numbers otherwise starts the count anew. */
void say_sequence(void);
void forget_sequence(void);

/* ---- what stands over the database and goes before its close */
enum { SLOTS = 3 };
extern const rocksdb_snapshot_t* snapshots[SLOTS];
void drop_walks(void);
void drop_snapshots(void);
void drop_transactions(void);
void leave_prepared(void);
void take_prepared(void);
void drop_batches(void);
/* Read options at one of the snapshots, if there is one; the caller destroys them. */
rocksdb_readoptions_t* some_read(void);

/* ---- the program's own functions */
rocksdb_comparator_t* reversed_order(void);
rocksdb_mergeoperator_t* appending(int with_partial);
rocksdb_compactionfilter_t* dropping(void);
rocksdb_slicetransform_t* first_letter(void);
extern int destructors;

/* ---- operations: each makes one call or a few and says what came; 0 if it cannot be done now */
typedef int Operation(void);
typedef struct {
  const char* name;
  int weight;
  Operation* run;
} Entry;
extern const Entry point_operations[], batch_operations[], walk_operations[], transaction_operations[],
    place_operations[], option_operations[];

#endif
