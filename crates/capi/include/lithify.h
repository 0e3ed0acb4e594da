/* Made by `cargo xtask capi header` of symbols.txt: what Lithify has beyond RocksDB's C interface,
   over the same handles. Stands beside RocksDB's header or lithify_rocksdb.h; docs/c.md says what the
   functions do. */
#ifndef LITHIFY_H
#define LITHIFY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rocksdb_options_t rocksdb_options_t;
typedef struct rocksdb_t rocksdb_t;
typedef struct rocksdb_writeoptions_t rocksdb_writeoptions_t;

char* lithify_explain(rocksdb_t*);
uint64_t lithify_import(const rocksdb_options_t*, const char*, const char*, void (*)(void*, uint64_t, uint64_t), void*, char**);
char* lithify_last_error_advice(void);
int lithify_last_error_errno(void);
char* lithify_last_error_file(void);
const char* lithify_last_error_kind(void);
int64_t lithify_last_error_offset(void);
char* lithify_options_get(const rocksdb_options_t*, const char*, char**);
void lithify_options_set(rocksdb_options_t*, const char*, const char*, char**);
char* lithify_picture(rocksdb_t*);
uint64_t lithify_salvage(const rocksdb_options_t*, const char*, const char*, void (*)(void*, uint64_t, uint64_t), void*, char**);
void lithify_set_setting(rocksdb_t*, const char*, const char*, char**);
char* lithify_settings(rocksdb_t*);
void lithify_settle(rocksdb_t*, char**);
const char* lithify_symbol_class(const char*);
char* lithify_verify(const rocksdb_options_t*, const char*, void (*)(void*, uint64_t, uint64_t), void*, char**);
const char* lithify_version(void);
void lithify_writeoptions_set_durability(rocksdb_writeoptions_t*, const char*, char**);

#ifdef __cplusplus
}
#endif

#endif
