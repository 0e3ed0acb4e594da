// The words of CUDA for g++: the threads of a CTA are fibers, which switch at barriers only.
//
// Keeps: after each barrier fibers go on in an order drawn from a seed, and CTAs run one after the other in a
// drawn order. A barrier that not all threads reach, or that lanes of a warp reach over different
// operations, ends the launch with a message. What this does not show: weak memory ordering between
// CTAs, lanes that run in lockstep without `__syncwarp`, and speed.
#pragma once
#include <stdint.h>
#include <string.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;

#ifndef THREADS
#define THREADS 64
#endif

namespace emu {

struct Index {
    u32 x;
};

struct Fiber {
    void *stack;  // where it goes on
    u32 thread;
    u32 turns;  // warp operations so far
};

// The fiber that runs, and what it is part of. One launch per thread of the host at a time.
extern thread_local Fiber *here;
extern thread_local Index block_index, grid_size;
extern thread_local u64 exchange[2][THREADS];

// Waits for all threads of the CTA, or of the warp; `what` names the operation.
void block_barrier();
void warp_barrier(const char *what);

inline Index thread_index() {
    return Index{here->thread};
}

// Hands a value to the other lanes and takes lane `from`'s.
template <class T> inline T trade(T v, u32 from, const char *what) {
    u64 *slots = exchange[here->turns++ % 2] + here->thread / 32 * 32;
    u64 word = 0;
    memcpy(&word, &v, sizeof v);
    slots[here->thread % 32] = word;
    warp_barrier(what);
    memcpy(&v, &slots[from % 32], sizeof v);
    return v;
}

}  // namespace emu

#define threadIdx (emu::thread_index())
#define blockIdx (emu::block_index)
#define gridDim (emu::grid_size)

inline void __syncthreads() {
    emu::block_barrier();
}
inline void __syncwarp(u32) {
    emu::warp_barrier("syncwarp");
}
template <class T> inline T __shfl_xor_sync(u32, T v, u32 d) {
    return emu::trade(v, emu::here->thread % 32 ^ d, "shfl_xor");
}
template <class T> inline T __shfl_up_sync(u32, T v, u32 d) {
    u32 lane = emu::here->thread % 32;
    return emu::trade(v, lane >= d ? lane - d : lane, "shfl_up");
}
template <class T> inline T __shfl_sync(u32, T v, u32 from) {
    return emu::trade(v, from, "shfl");
}
// One host thread runs all fibers of a launch.
template <class T, class U> inline T atomicAdd(T *to, U v) {
    T old = *to;
    *to += (T)v;
    return old;
}
template <class T, class U> inline T atomicMax(T *to, U v) {
    T old = *to;
    if (*to < (T)v) *to = (T)v;
    return old;
}
template <class T, class U> inline T atomicOr(T *to, U v) {
    T old = *to;
    *to |= (T)v;
    return old;
}
