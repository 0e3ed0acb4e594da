/* twin SEED CALLS DIR [FIRST]: so many random calls from the seed; from call FIRST on, walks in full. */
#include "twin.h"

World world;
static uint64_t state;
static int whole;
static char line[1 << 20];
static size_t used;

uint64_t chance(void) { /* SplitMix64 */
  uint64_t z = (state += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}
uint32_t below(uint32_t n) { return (uint32_t)(chance() % n); }

Bytes some_key(void) {
  Bytes key = {.len = 0};
  uint32_t kind = below(200);
  if (kind == 0) return key;
  if (kind == 1) {
    memcpy(key.at, "\0\xff\xff\0", 4);
    key.len = 1 + below(4);
    return key;
  }
  static const char letters[] = "abcdefgh";
  key.len = kind < 20 ? 3 : 2;
  for (size_t i = 0; i < key.len; i++) key.at[i] = letters[below(8)];
  return key;
}
Bytes some_value(void) {
  Bytes value = {.len = 0};
  uint32_t kind = below(100);
  value.len = kind == 0 ? 0 : kind == 1 ? 1000 + below(5000) : 1 + below(24);
  for (size_t i = 0; i < value.len; i++) value.at[i] = (char)('A' + below(26));
  return value;
}
Bytes value_for(int family) {
  if (family != 1) return some_value();
  Bytes value = {.len = 8};
  for (int i = 0; i < 8; i++) value.at[i] = (char)below(i < 2 ? 256 : 1);
  return value;
}

void say(const char* format, ...) {
  va_list rest;
  va_start(rest, format);
  used += (size_t)vsnprintf(line + used, sizeof line - used, format, rest);
  va_end(rest);
  if (used >= sizeof line) used = sizeof line - 1;
}
void say_bytes(const char* at, size_t len) {
  if (at == NULL) {
    say(" none");
    return;
  }
  Sum sum = {0, 0};
  if (len > 40 && !whole) {
    add_bytes(&sum, at, len);
    say(" [%zu %016" PRIx64 "]", len, sum.sum);
    return;
  }
  say(" \"");
  for (size_t i = 0; i < len; i++) {
    unsigned char c = (unsigned char)at[i];
    if (c > 32 && c < 127 && c != '"') say("%c", c);
    else say("\\%02x", c);
  }
  say("\"");
}
int say_error(char** err) {
  if (*err == NULL) {
    say(" ok");
    return 1;
  }
  const char* end = strstr(*err, ": ");
  int len = end ? (int)(end - *err) : (int)strlen(*err);
  say(" (%.*s)", len, *err);
  if (whole) say(" {%s}", *err);
  free(*err);
  *err = NULL;
  return 0;
}
void say_if_whole(const char* at, size_t len) {
  if (whole) say_bytes(at, len);
}
void may_differ(const char* tag) { say(" ~%s:", tag); }

void add_bytes(Sum* sum, const char* at, size_t len) { /* FNV-1a, with the length */
  uint64_t h = sum->sum ^ (len * 0x9e3779b97f4a7c15u) ^ 0xcbf29ce484222325u;
  for (size_t i = 0; i < len; i++) h = (h ^ (unsigned char)at[i]) * 0x100000001b3u;
  sum->sum = h;
  sum->count++;
}
void say_sum(Sum sum) { say(" [%zu %016" PRIx64 "]", sum.count, sum.sum); }

void say_walk(rocksdb_iterator_t* it, int backward) {
  Sum sum = {0, 0};
  char* err = NULL;
  if (backward) rocksdb_iter_seek_to_last(it);
  else rocksdb_iter_seek_to_first(it);
  while (rocksdb_iter_valid(it)) {
    size_t klen, vlen;
    const char* key = rocksdb_iter_key(it, &klen);
    const char* value = rocksdb_iter_value(it, &vlen);
    say_if_whole(key, klen), say_if_whole(value, vlen);
    add_bytes(&sum, key, klen);
    add_bytes(&sum, value, vlen);
    if (backward) rocksdb_iter_prev(it);
    else rocksdb_iter_next(it);
  }
  say_sum(sum);
  rocksdb_iter_get_error(it, &err);
  say_error(&err);
}

static const Entry* const parts[] = {point_operations,       batch_operations, walk_operations,
                                     transaction_operations, place_operations, option_operations};

static const Entry* some_operation(void) {
  static uint32_t total;
  if (total == 0)
    for (size_t p = 0; p < sizeof parts / sizeof *parts; p++)
      for (const Entry* e = parts[p]; e->name; e++) total += (uint32_t)e->weight;
  uint32_t at = below(total);
  for (size_t p = 0; p < sizeof parts / sizeof *parts; p++)
    for (const Entry* e = parts[p]; e->name; e++) {
      if (at < (uint32_t)e->weight) return e;
      at -= (uint32_t)e->weight;
    }
  abort();
}

int main(int argc, char** argv) {
  if (argc < 4) return fprintf(stderr, "twin SEED CALLS DIR [FIRST]\n"), 2;
  state = strtoull(argv[1], NULL, 10);
  uint64_t calls = strtoull(argv[2], NULL, 10), first = argc > 4 ? strtoull(argv[4], NULL, 10) : calls;
  setvbuf(stdout, NULL, _IOFBF, 1 << 16);
  start_world(argv[3]);
  for (uint64_t n = 0; n < calls;) {
    whole = n >= first;
    if (whole) fflush(stdout);
    used = 0;
    const Entry* operation = some_operation();
    say("%" PRIu64 " %s =", n, operation->name);
    if (!operation->run()) continue;
    fwrite(line, 1, used, stdout);
    putchar('\n');
    n++;
  }
  used = 0;
  close_world();
  end_world();
  say("end: %d destructors", destructors);
  printf("%.*s\n", (int)used, line);
  return fflush(stdout) == 0 ? 0 : 1;
}
