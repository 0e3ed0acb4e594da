// Primitives: unaligned loads, varints, sums over a warp, a CTA and a grid.
//
// Keeps: one source for nvcc and for g++ with the fiber emulator (`emu/fiber.h`), which gives the words
// of CUDA their meaning. Every warp operation names all 32 lanes.
// The scan over a grid is a single pass with look-back (Merrill and Garland, "Single-pass parallel
// prefix scan with decoupled look-back", 2016): a CTA takes a ticket, so those before it have begun,
// states its own sum, and walks back until it meets a whole prefix. It is the only place where CTAs
// speak to each other; publishing is release, reading is acquire.
#pragma once

#ifdef __CUDACC__
#include <stdint.h>
typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
// Not static: nvcc would put a number into their names that differs from folder to folder.
#define FN __device__ inline
#define CONSTANT static __constant__
#define ALIGNED8 __align__(8)
#define UNROLL _Pragma("unroll")
#define ALIGNED16 __align__(16)
// What is called seldom, or is too large to be in a kernel twice; not static either.
#define APART __device__ __noinline__
#define KERNEL(name) extern "C" __global__ void __launch_bounds__(THREADS) name(const Params p)
// With registers for so many CTAs on a multiprocessor.
#define KERNEL_OF(name, ctas) extern "C" __global__ void __launch_bounds__(THREADS, ctas) name(const Params p)
#define SHARED __shared__
#else
#include "fiber.h"
#define FN static inline
#define APART static
#define CONSTANT static const
#define ALIGNED8 __attribute__((aligned(8)))
#define UNROLL
#define ALIGNED16 __attribute__((aligned(16)))
#define KERNEL(name) void name(const Params p)
#define KERNEL_OF(name, ctas) KERNEL(name)
#define SHARED static thread_local
#endif

// Threads of a CTA, entries of a thread of the merge, and of one in a scan: few, as a scan waits for memory more than it
// computes, and small sets have few tiles. The emulator takes small ones, so that small cases cross tiles.
#ifndef THREADS
#define THREADS 256
#endif
#ifndef ITEMS
#define ITEMS 8
#endif
#ifndef SCAN_ITEMS
#define SCAN_ITEMS 2
#endif
constexpr u32 TILE = THREADS * ITEMS;
constexpr u32 SCAN_TILE = THREADS * SCAN_ITEMS;
constexpr u32 WARP = 32;
constexpr u32 WARPS = THREADS / WARP;
constexpr u32 ALL = 0xffffffffu;

template <class T> FN T *at(u64 address) {
    return reinterpret_cast<T *>(address);
}
FN u32 lane() {
    return threadIdx.x % WARP;
}
FN u64 min64(u64 a, u64 b) {
    return a < b ? a : b;
}
FN u64 max64(u64 a, u64 b) {
    return a > b ? a : b;
}

// Little-endian words at any address. A GPU reads the aligned words that they lie in, all of which hold a byte that is asked
// for: as memory is taken in multiples of such a word, none reaches out of it.
FN u32 load32(const u8 *p) {
#ifdef __CUDACC__
    const u32 *word = (const u32 *)((u64)p & ~3ull);
    u32 shift = ((u32)(u64)p & 3) * 8;
    return __funnelshift_r(word[0], word[shift != 0], shift);
#else
    return (u32)p[0] | (u32)p[1] << 8 | (u32)p[2] << 16 | (u32)p[3] << 24;
#endif
}
FN u64 load64(const u8 *p) {
#ifdef __CUDACC__
    const u64 *word = (const u64 *)((u64)p & ~7ull);
    u32 shift = ((u32)(u64)p & 7) * 8;
    // Without a branch, so that both are on their way at once; a shift by 64 has no meaning.
    return word[0] >> shift | word[shift != 0] << 1 << (63 - shift);
#else
    return (u64)load32(p) | (u64)load32(p + 4) << 32;
#endif
}
FN u64 swap64(u64 v) {
#ifdef __CUDACC__
    u32 low = __byte_perm((u32)v, 0, 0x0123), high = __byte_perm((u32)(v >> 32), 0, 0x0123);
    return (u64)low << 32 | high;
#else
    return __builtin_bswap64(v);
#endif
}
// Which byte of two words that differ is the first to differ.
FN u32 first_byte(u64 difference) {
#ifdef __CUDACC__
    return (__ffsll((long long)difference) - 1) / 8;
#else
    return __builtin_ctzll(difference) / 8;
#endif
}
FN void store32(u8 *p, u32 v) {
    for (u32 i = 0; i < 4; i++) p[i] = (u8)(v >> (8 * i));
}
FN u64 high64(u64 a, u64 b) {
#ifdef __CUDACC__
    return __umul64hi(a, b);
#else
    return (u64)(((unsigned __int128)a * b) >> 64);
#endif
}
// Both halves of a product, folded.
FN u64 fold64(u64 a, u64 b) {
    return a * b ^ high64(a, b);
}

// A varint of 32 bits at `at`, before `end`. False if it is cut short or wider.
template <class Place> FN bool varint32(const u8 *p, Place &at, Place end, u32 &out) {
    u64 v = 0;
    for (u32 i = 0; i < 5; i++) {
        if (at >= end) return false;
        u8 b = p[at++];
        v |= (u64)(b & 0x7f) << (7 * i);
        if (b < 0x80) {
            out = (u32)v;
            return v <= 0xffffffffu;
        }
    }
    return false;
}
FN u32 varint_len(u32 v) {
    u32 n = 1;
    for (; v >= 0x80; v >>= 7) n++;
    return n;
}
FN u32 put_varint(u8 *p, u32 v) {
    u32 n = 0;
    for (; v >= 0x80; v >>= 7) p[n++] = (u8)(v | 0x80);
    p[n++] = (u8)v;
    return n;
}

FN void add64(u64 *to, u64 v) {
    if (v) atomicAdd((unsigned long long *)to, (unsigned long long)v);
}
FN void or64(u64 *to, u64 v) {
    if (v) atomicOr((unsigned long long *)to, (unsigned long long)v);
}

// Copies by `of` lanes side by side, of which this is the `me`-th.
FN void copy_by(u32 me, u32 of, u8 *to, const u8 *from, u64 n) {
#ifdef __CUDACC__
    // Whole words of the destination, and its ends byte by byte.
    u64 head = min64(n, -(u64)to & 3), words = (n - head) / 4;
    for (u64 i = me; i < head; i += of) to[i] = from[i];
    for (u64 i = me; i < words; i += of) ((u32 *)(to + head))[i] = load32(from + head + 4 * i);
    for (u64 i = head + 4 * words + me; i < n; i += of) to[i] = from[i];
#else
    for (u64 i = me; i < n; i += of) to[i] = from[i];
#endif
}
// Copies by a warp between places that lie alike to multiples of 16.
FN void copy_alike(u8 *to, const u8 *from, u64 n) {
#ifdef __CUDACC__
    u64 head = min64(n, -(u64)to & 15), words = (n - head) / 16, tail = head + 16 * words;
    if (lane() < head) to[lane()] = from[lane()];
    for (u64 i = lane(); i < words; i += WARP) ((uint4 *)(to + head))[i] = ((const uint4 *)(from + head))[i];
    if (tail + lane() < n) to[tail + lane()] = from[tail + lane()];
#else
    for (u64 i = lane(); i < n; i += WARP) to[i] = from[i];
#endif
}
FN void copy_by_warp(u8 *to, const u8 *from, u64 n) {
    copy_by(lane(), WARP, to, from, n);
}

// Sum over a warp, for every lane.
FN u64 warp_sum(u64 v) {
    for (u32 d = 16; d; d /= 2) v += __shfl_xor_sync(ALL, v, d);
    return v;
}
FN u64 warp_or(u64 v) {
    for (u32 d = 16; d; d /= 2) v |= __shfl_xor_sync(ALL, v, d);
    return v;
}
// Whether one of a warp's lanes says so, for every lane.
FN bool warp_any(bool v) {
#ifdef __CUDACC__
    return __any_sync(ALL, v);
#else
    return warp_or(v) != 0;
#endif
}
// Sum of the lanes before this one.
FN u64 warp_before(u64 v) {
    u64 sum = v;
    for (u32 d = 1; d < WARP; d *= 2) {
        u64 other = __shfl_up_sync(ALL, sum, d);
        if (lane() >= d) sum += other;
    }
    return sum - v;
}

// Several sums that are made together.
template <int K> struct Sums {
    u64 v[K];
};
template <int K> FN Sums<K> plus(Sums<K> a, const Sums<K> &b) {
    for (int k = 0; k < K; k++) a.v[k] += b.v[k];
    return a;
}
template <int K> FN Sums<K> zero_sums() {
    Sums<K> a;
    for (int k = 0; k < K; k++) a.v[k] = 0;
    return a;
}

// How many of the places from `from` on, before `to`, come first for which the answer is yes: it is for none behind one for
// which it is no. By a warp, whose lanes ask at 32 places at once.
template <class F> FN u64 first_no(u64 from, u64 to, F yes) {
    while (from < to) {
        u64 step = (to - from + WARP) / (WARP + 1), place = from + (lane() + 1) * step - 1;
        u64 n = warp_sum(place < to && yes(place));
        if (n < WARP) to = min64(to, from + (n + 1) * step - 1);
        from += n * step;
    }
    return from;
}

FN u64 warp_max(u64 v) {
    for (u32 d = 16; d; d /= 2) v = max64(v, __shfl_xor_sync(ALL, v, d));
    return v;
}

// Sums over the CTA's threads before this one, and over all. Every thread calls it.
template <int K> FN Sums<K> cta_before(Sums<K> v, Sums<K> &all) {
    SHARED u64 of_warp[K][WARPS];
    u32 w = threadIdx.x / WARP;
    Sums<K> before;
    for (int k = 0; k < K; k++) {
        before.v[k] = warp_before(v.v[k]);
        if (lane() == WARP - 1) of_warp[k][w] = before.v[k] + v.v[k];
    }
    __syncthreads();
    for (int k = 0; k < K; k++) {
        u64 sum = 0, mine = 0;
        for (u32 i = 0; i < WARPS; i++) {
            if (i == w) mine = sum;
            sum += of_warp[k][i];
        }
        all.v[k] = sum;
        before.v[k] += mine;
    }
    __syncthreads();
    return before;
}

// A CTA's line in a scan over the grid: what it summed, and what all before and itself did.
constexpr int SUMS_MOST = 3;
struct Tick {
    u64 state;  // 0 nothing, 1 `own` is there, 2 `whole` too
    u64 own[SUMS_MOST];
    u64 whole[SUMS_MOST];
};
// Before the first tick of a scan lies the ticket.
struct Ticks {
    u64 next;
    u64 _pad[6];
    Tick tick[1];
};

FN void publish(u64 *state, u64 v) {
#ifdef __CUDACC__
    asm volatile("st.release.gpu.global.u64 [%0], %1;" ::"l"(state), "l"(v) : "memory");
#else
    *state = v;
#endif
}
FN u64 look(u64 *state) {
#ifdef __CUDACC__
    u64 v;
    asm volatile("ld.acquire.gpu.global.u64 %0, [%1];" : "=l"(v) : "l"(state) : "memory");
    return v;
#else
    return *state;
#endif
}

// What a CTA works on: a tile of a scan, and the first item of this thread in it.
struct Tile {
    Ticks *ticks;
    u32 no;
    u64 first;
};

// The next tile. Tiles are given out in order, so those before it are under way.
FN Tile take_tile(u64 ticks) {
    SHARED u32 next;
    Tile tile;
    tile.ticks = at<Ticks>(ticks);
    if (threadIdx.x == 0) next = (u32)atomicAdd((unsigned long long *)&tile.ticks->next, 1ull);
    __syncthreads();
    tile.no = next;
    tile.first = (u64)tile.no * SCAN_TILE + threadIdx.x * SCAN_ITEMS;
    __syncthreads();
    return tile;
}

// Sums over all threads of all tiles before this one. Every thread of every CTA calls it once, with the
// tile it took.
template <int K> FN Sums<K> grid_before(const Tile &tile, Sums<K> v) {
    SHARED u64 base[K];
    Sums<K> all;
    Sums<K> before = cta_before(v, all);
    // A warp looks back at 32 tiles at once.
    if (threadIdx.x < WARP) {
        Tick *mine = &tile.ticks->tick[tile.no];
        Sums<K> sum = zero_sums<K>();
        if (tile.no > 0 && lane() == 0) {
            for (int k = 0; k < K; k++) mine->own[k] = all.v[k];
            publish(&mine->state, 1);
        }
        for (u32 end = tile.no; end > 0;) {
            bool has = lane() < end;
            Tick *one = &tile.ticks->tick[has ? end - 1 - lane() : 0];
            u64 state = 0;
            if (has) do state = look(&one->state);
                while (state == 0);
            // The nearest tile whose whole prefix is there ends the way.
            u32 last = WARP - (u32)warp_max(state == 2 ? WARP - lane() : 0);
            for (int k = 0; k < K; k++) {
                u64 v = lane() > last || !has ? 0 : state == 2 ? one->whole[k] : one->own[k];
                sum.v[k] += warp_sum(v);
            }
            end = last < WARP || end < WARP ? 0 : end - WARP;
        }
        if (lane() == 0) {
            for (int k = 0; k < K; k++) {
                mine->whole[k] = sum.v[k] + all.v[k];
                base[k] = sum.v[k];
            }
            publish(&mine->state, 2);
        }
    }
    __syncthreads();
    for (int k = 0; k < K; k++) before.v[k] += base[k];
    __syncthreads();
    return before;
}
