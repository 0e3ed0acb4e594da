/* RocksDB's header and ours in one file, as C11 and as C++17: a prototype that differs is an error. With
 * LITHIFY_ALONE, ours stands for itself. */
#ifndef LITHIFY_ALONE
#include <rocksdb/c.h>
#endif
#include <lithify_rocksdb.h>
#include <lithify.h>

int main(void) { return 0; }
