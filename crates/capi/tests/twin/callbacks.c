/* The program's own functions. How often they are called is the library's matter; what they make of their
 * arguments is not, so the results do not depend on it. */
#include "twin.h"

int destructors;
static void ended(void* of) {
  (void)of;
  destructors++;
}
static const char* name_of(void* of) { return of; }

static int compare_back(void* of, const char* a, size_t alen, const char* b, size_t blen) {
  (void)of;
  size_t least = alen < blen ? alen : blen;
  int order = least ? memcmp(a, b, least) : 0;
  if (order == 0) order = alen < blen ? -1 : alen > blen;
  return -order;
}
rocksdb_comparator_t* reversed_order(void) {
  return rocksdb_comparator_create("twin.reversed", ended, compare_back, name_of);
}

static char* joined(const char* old, size_t old_len, const char* const* list, const size_t* lens, int n,
                    size_t* len) {
  size_t total = old_len;
  for (int i = 0; i < n; i++) total += lens[i] + 1;
  char* out = malloc(total + 1);
  size_t at = 0;
  if (old_len) memcpy(out, old, old_len), at = old_len;
  for (int i = 0; i < n; i++) {
    if (i > 0 || old) out[at++] = ',';
    if (lens[i]) memcpy(out + at, list[i], lens[i]);
    at += lens[i];
  }
  /* Values stay short: the end counts, which is the same however operands were grouped. */
  if (at > 200) memmove(out, out + at - 200, 200), at = 200;
  *len = at;
  return out;
}
static char* merge_full(void* of, const char* key, size_t klen, const char* old, size_t old_len,
                        const char* const* list, const size_t* lens, int n, unsigned char* good, size_t* len) {
  (void)of, (void)key, (void)klen;
  *good = 1;
  return joined(old, old_len, list, lens, n, len);
}
static char* merge_partial(void* of, const char* key, size_t klen, const char* const* list, const size_t* lens,
                           int n, unsigned char* good, size_t* len) {
  (void)of, (void)key, (void)klen;
  *good = 1;
  return joined(NULL, 0, list, lens, n, len);
}
static char* merge_never(void* of, const char* key, size_t klen, const char* const* list, const size_t* lens,
                         int n, unsigned char* good, size_t* len) {
  (void)of, (void)key, (void)klen, (void)list, (void)lens, (void)n;
  *good = 0;
  *len = 0;
  return NULL;
}
static void release(void* of, const char* value, size_t len) {
  (void)of, (void)len;
  free((void*)value);
}
rocksdb_mergeoperator_t* appending(int with_partial) {
  return rocksdb_mergeoperator_create(with_partial ? "twin.append" : "twin.append.whole", ended, merge_full,
                                      with_partial ? merge_partial : merge_never, with_partial ? release : NULL,
                                      name_of);
}

/* Keys that begin with `a` go; values of those with `b` become their first letter. */
static unsigned char filter(void* of, int level, const char* key, size_t klen, const char* old, size_t old_len,
                            char** value, size_t* len, unsigned char* changed) {
  (void)of, (void)level;
  if (klen == 0) return 0;
  if (key[0] == 'a') return 1;
  if (key[0] == 'b' && old_len > 1) {
    static char letters[256];
    unsigned char first = (unsigned char)old[0];
    letters[first] = old[0];
    *value = &letters[first];
    *len = 1;
    *changed = 1;
  }
  return 0;
}
rocksdb_compactionfilter_t* dropping(void) {
  return rocksdb_compactionfilter_create("twin.filter", ended, filter, name_of);
}

static char* first_of(void* of, const char* key, size_t len, size_t* out) {
  (void)of;
  *out = len < 1 ? len : 1;
  return (char*)key;
}
static unsigned char has_first(void* of, const char* key, size_t len) {
  (void)of, (void)key;
  return len >= 1;
}
rocksdb_slicetransform_t* first_letter(void) {
  return rocksdb_slicetransform_create("twin.first", ended, first_of, has_first, name_of);
}
