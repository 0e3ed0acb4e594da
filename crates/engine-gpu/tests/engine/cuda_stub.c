/* A library with the interface of NVIDIA's driver, for tests: a "GPU's" addresses are the host's, and all is done at once. HOW
   says what it does: memory of the program's that it does not take, or keeps. What it holds counts as memory that is not free. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { OK = 0, INVALID = 1, NO_MEMORY = 2, NO_CONTEXT = 201, NOT_FOUND = 500, UNKNOWN = 999 };
enum { PIECES = 64 };

static int how(const char *name) { return !strcmp(HOW, name); }
static const size_t all = (size_t)1 << 40;
static size_t held;
static struct Piece { void *at; size_t bytes; int kind; } pieces[PIECES];
static _Thread_local void *current;
static int context, module, streams, events, modules, contexts;

static int keep(void *at, size_t bytes, int kind) {
    for (int i = 0; i < PIECES; i++)
        if (!pieces[i].at) {
            pieces[i] = (struct Piece){ at, bytes, kind };
            held += bytes;
            return OK;
        }
    return NO_MEMORY;
}
static int let_go(void *at, int kind) {
    for (int i = 0; i < PIECES; i++)
        if (pieces[i].at == at && at && pieces[i].kind == kind) {
            held -= pieces[i].bytes;
            pieces[i].at = NULL;
            return OK;
        }
    return INVALID;
}
/* Of which kind the memory is that a copy is about; 0 if it knows of none. */
static int knows(const void *at, size_t bytes) {
    for (int i = 0; i < PIECES; i++) {
        const char *from = pieces[i].at;
        if (from && (const char *)at >= from && (const char *)at + bytes <= from + pieces[i].bytes) return pieces[i].kind;
    }
    return 0;
}
static int make(void **out, size_t bytes, int kind) {
    void *at = aligned_alloc(256, (bytes + 255) / 256 * 256);
    if (!at) return NO_MEMORY;
    memset(at, 0xa5, bytes);
    *out = at;
    return keep(at, bytes, kind);
}

int cuInit(unsigned flags) { return flags ? INVALID : OK; }
int cuDriverGetVersion(int *out) { *out = 13000; return OK; }
int cuDeviceGetCount(int *out) { *out = 1; return OK; }
int cuDeviceGet(int *out, int no) { *out = 7; return no ? INVALID : OK; }
int cuDevicePrimaryCtxRetain(void **out, int device) { *out = &context, contexts++; return device == 7 ? OK : INVALID; }
/* The last release ends all that was made, so nothing may be left. */
int cuDevicePrimaryCtxRelease_v2(int device) {
    if (device != 7 || current || contexts < 1) return INVALID;
    return --contexts || !(streams || events || modules) ? OK : UNKNOWN;
}
int cuCtxSetCurrent(void *of) { current = of; return !of || (of == &context && contexts) ? OK : NO_CONTEXT; }
int cuDeviceGetName(char *out, int len, int device) { strncpy(out, "a stub", (size_t)len); return device == 7 ? OK : INVALID; }
int cuDeviceGetAttribute(int *out, int which, int device) {
    *out = which == 75 ? 9 : which == 76 ? 0 : which == 16 ? 3 : which == 40 ? 2 : -1;
    return device == 7 ? OK : INVALID;
}
/* Streams, events, modules, and contexts but the one that asks, count as 1 GiB each. */
int cuMemGetInfo_v2(size_t *left, size_t *total) {
    size_t things = (size_t)(streams + events + modules + contexts - 1);
    *left = all - held - (things << 30), *total = all;
    return current ? OK : NO_CONTEXT;
}
int cuModuleLoadData(void **out, const void *image) { *out = &module, modules++; return *(const char *)image == 'i' ? OK : INVALID; }
int cuModuleUnload(void *of) { return of == &module && modules-- > 0 && current ? OK : INVALID; }
int cuModuleGetFunction(void **out, void *of, const char *name) { *out = (void *)name; return of == &module && *name == 'k' ? OK : NOT_FOUND; }
int cuModuleGetGlobal_v2(uint64_t *at, size_t *bytes, void *of, const char *name) {
    static const uint64_t words[] = { WORDS };
    *at = (uint64_t)(uintptr_t)words, *bytes = sizeof words;
    return of == &module && !strcmp(name, "lithify_shape") ? OK : NOT_FOUND;
}
int cuMemcpyDtoH_v2(void *to, uint64_t from, size_t bytes) { memcpy(to, (void *)(uintptr_t)from, bytes); return OK; }
int cuStreamCreate(void **out, unsigned flags) { *out = (char *)&streams + 1, streams++; return flags == 1 ? OK : INVALID; }
int cuStreamDestroy_v2(void *of) { return of == (char *)&streams + 1 && streams-- > 0 && current ? OK : INVALID; }
int cuEventDestroy_v2(void *of) { return of == (char *)&events + 1 && events-- > 0 && current ? OK : INVALID; }
int cuEventCreate(void **out, unsigned flags) { *out = (char *)&events + 1, events++; return flags ? INVALID : OK; }
int cuMemAlloc_v2(uint64_t *out, size_t bytes) {
    void *at = NULL;
    int made = make(&at, bytes, 'd');
    *out = (uint64_t)(uintptr_t)at;
    return made;
}
int cuMemFree_v2(uint64_t at) { return let_go((void *)(uintptr_t)at, 'd'); }
int cuMemHostAlloc(void **out, size_t bytes, unsigned flags) { return flags == 1 ? make(out, bytes, 'h') : INVALID; }
int cuMemFreeHost(void *at) { return let_go(at, 'h'); }
int cuMemHostRegister_v2(void *at, size_t bytes, unsigned flags) {
    return how("refuses") || flags != 1 ? UNKNOWN : keep(at, bytes, 'r');
}
int cuMemHostUnregister(void *at) { return how("keeps") ? UNKNOWN : let_go(at, 'r'); }
int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t bytes, void *stream) {
    if (!stream || !knows(from, bytes)) return INVALID;
    memcpy((void *)(uintptr_t)to, from, bytes);
    return OK;
}
int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t bytes, void *stream) {
    if (!stream || !knows(to, bytes)) return INVALID;
    memcpy(to, (void *)(uintptr_t)from, bytes);
    return OK;
}
/* As if each was asked for by itself, the last one first: the order is the driver's. */
struct Place { int type, id; };
struct How { int order; struct Place from, to; unsigned flags; };
int cuMemcpyBatchAsync_v2(uint64_t *to, uint64_t *from, size_t *bytes, size_t n, struct How *how, size_t *first, size_t hows, void *stream) {
    if (n < 2 || hows != 1 || *first || how->order != 1 || how->flags) return INVALID;
    for (size_t i = n; i-- > 0;) {
        int up = knows((void *)(uintptr_t)from[i], bytes[i]) != 'd';
        int done = up ? cuMemcpyHtoDAsync_v2(to[i], (void *)(uintptr_t)from[i], bytes[i], stream)
                      : cuMemcpyDtoHAsync_v2((void *)(uintptr_t)to[i], from[i], bytes[i], stream);
        if (done || !bytes[i]) return INVALID;
    }
    return OK;
}
int cuLaunchKernel(void *kernel, unsigned x, unsigned y, unsigned z, unsigned threads, unsigned b, unsigned c, unsigned shared, void *stream, void **params, void **extra) {
    return kernel && x == 5 && y == 1 && z == 1 && threads == 64 && b == 1 && c == 1 && !shared && stream && params && params[0] && !extra ? OK : INVALID;
}
int cuEventRecord(void *event, void *stream) { return event && stream ? OK : INVALID; }
int cuEventQuery(void *event) { return event ? OK : INVALID; }
int cuEventElapsedTime_v2(float *out, void *from, void *to) { *out = 1.5f; return from && to ? OK : INVALID; }
int cuStreamWaitEvent(void *stream, void *event, unsigned flags) { return stream && event && !flags ? OK : INVALID; }
