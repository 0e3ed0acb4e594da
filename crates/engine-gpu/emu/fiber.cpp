// The scheduler of the fibers, and the kernels by number.
//
// Switching saves what a call has to keep, in ten lines of assembly for each of two machines; elsewhere
// `ucontext` could take its place, at about ten times the cost.
#include <stdio.h>
#include <stdlib.h>
#include <vector>

#include "fiber.h"
#include "layout.cuh"

// Stacks are used again while frames of fibers that never returned are still marked on them.
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#define UNMARK(stacks) ASAN_UNPOISON_MEMORY_REGION((stacks).data(), (stacks).size())
#else
#define UNMARK(stacks)
#endif

extern "C" void lithify_fiber_switch(void **save, void *load);

#if defined(__x86_64__)
asm(R"(
.text
.globl lithify_fiber_switch
.type lithify_fiber_switch,@function
lithify_fiber_switch:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
.section .note.GNU-stack,"",@progbits
.text
)");
#elif defined(__aarch64__)
asm(R"(
.text
.globl lithify_fiber_switch
.type lithify_fiber_switch,%function
lithify_fiber_switch:
    stp x29, x30, [sp, #-160]!
    stp x19, x20, [sp, #16]
    stp x21, x22, [sp, #32]
    stp x23, x24, [sp, #48]
    stp x25, x26, [sp, #64]
    stp x27, x28, [sp, #80]
    stp d8, d9, [sp, #96]
    stp d10, d11, [sp, #112]
    stp d12, d13, [sp, #128]
    stp d14, d15, [sp, #144]
    mov x9, sp
    str x9, [x0]
    mov sp, x1
    ldp x19, x20, [sp, #16]
    ldp x21, x22, [sp, #32]
    ldp x23, x24, [sp, #48]
    ldp x25, x26, [sp, #64]
    ldp x27, x28, [sp, #80]
    ldp d8, d9, [sp, #96]
    ldp d10, d11, [sp, #112]
    ldp d12, d13, [sp, #128]
    ldp d14, d15, [sp, #144]
    ldp x29, x30, [sp], #160
    ret
)");
#else
#error "the emulator switches fibers on x86-64 and on aarch64 only"
#endif

namespace emu {

thread_local Fiber *here;
thread_local Index block_index, grid_size;
thread_local u64 exchange[2][THREADS];

typedef void (*Kernel)(const Params);

namespace {

constexpr size_t STACK = 64 << 10;
constexpr u32 NO_THREAD = ~0u;

// A CTA at work.
struct Cta {
    Kernel kernel;
    const Params *params;
    u64 seed;
    void *outside;
    Fiber fibers[THREADS];
    u32 ready[THREADS];
    u32 n_ready, live, at_barrier;
    u32 in_warp[THREADS / 32];
    const char *op[THREADS / 32];
    const char *fault;
    std::vector<char> stacks;
};
thread_local Cta cta;

// SplitMix64.
u64 draw() {
    u64 z = cta.seed += 0x9e3779b97f4a7c15ull;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ z >> 27) * 0x94d049bb133111ebull;
    return z ^ z >> 31;
}

// Goes on with any fiber that can, or leaves the CTA.
void go_on(void **save) {
    if (cta.n_ready == 0) {
        if (cta.live) cta.fault = "threads of a CTA wait for others that do not come";
        void *to = cta.outside;
        here = nullptr;
        lithify_fiber_switch(save, to);
        return;
    }
    u32 i = (u32)(draw() % cta.n_ready), thread = cta.ready[i];
    cta.ready[i] = cta.ready[--cta.n_ready];
    here = &cta.fibers[thread];
    if (save == &here->stack) return;
    lithify_fiber_switch(save, here->stack);
}

void fail(const char *what) {
    cta.fault = what;
    void *unused;
    lithify_fiber_switch(&unused, cta.outside);
}

void enter() {
    cta.kernel(*cta.params);
    cta.live--;
    void *unused;
    go_on(&unused);
    abort();
}

void begin_fiber(u32 thread) {
    Fiber &f = cta.fibers[thread];
    f.thread = thread;
    f.turns = 0;
    uintptr_t top = (uintptr_t)(cta.stacks.data() + STACK * (thread + 1)) & ~(uintptr_t)15;
#if defined(__x86_64__)
    // Six registers, then where `ret` goes; a function begins with its stack 8 off a multiple of 16.
    void **frame = (void **)(top - 16) - 6;
    memset(frame, 0, 6 * sizeof *frame);
    frame[6] = (void *)enter;
#else
    void **frame = (void **)(top - 160);
    memset(frame, 0, 160);
    frame[1] = (void *)enter;
#endif
    f.stack = frame;
}

}  // namespace

void block_barrier() {
    Fiber *me = here;
    if (++cta.at_barrier == THREADS) {
        cta.at_barrier = 0;
        for (u32 t = 0; t < THREADS; t++) cta.ready[cta.n_ready++] = t;
    }
    go_on(&me->stack);
}

void warp_barrier(const char *what) {
    Fiber *me = here;
    u32 w = me->thread / 32;
    if (cta.in_warp[w]++ == 0)
        cta.op[w] = what;
    else if (cta.op[w] != what)
        fail("lanes of a warp meet over different operations");
    if (cta.in_warp[w] == 32) {
        cta.in_warp[w] = 0;
        for (u32 l = 0; l < 32; l++) cta.ready[cta.n_ready++] = 32 * w + l;
    }
    go_on(&me->stack);
}

// Runs a grid. Returns what went wrong, or null.
static const char *run(Kernel kernel, u32 grid, const Params &params, u64 seed) {
    cta.kernel = kernel;
    cta.params = &params;
    cta.seed = seed;
    cta.stacks.resize(STACK * THREADS);
    std::vector<u32> order(grid);
    for (u32 i = 0; i < grid; i++) order[i] = i;
    for (u32 i = grid; i > 1; i--) {
        u32 j = (u32)(draw() % i), t = order[i - 1];
        order[i - 1] = order[j];
        order[j] = t;
    }
    grid_size.x = grid;
    for (u32 block : order) {
        block_index.x = block;
        cta.fault = nullptr;
        cta.live = THREADS;
        cta.n_ready = cta.at_barrier = 0;
        memset(cta.in_warp, 0, sizeof cta.in_warp);
        UNMARK(cta.stacks);
        for (u32 t = 0; t < THREADS; t++) {
            begin_fiber(t);
            cta.ready[cta.n_ready++] = t;
        }
        go_on(&cta.outside);
        if (cta.fault) return cta.fault;
    }
    UNMARK(cta.stacks);
    return nullptr;
}

}  // namespace emu

#include "all.cu"

// In the order of `Kernel` in `src/device.rs`.
static const emu::Kernel KERNELS[] = {
    k0a_decode, k0c_count, k0_unpack, k0b_order, k0b_trim, k1_partition, k2_merge, k3_judge,
    k3_drop,    k4_blocks, k7_files,  k4_sizes,  k4_table, k5_pack,      k6_encode, k6_places,
    k6_gather,  k8_decode, k8_prove,
};

extern "C" const char *lithify_emu_launch(u32 kernel, u32 grid, const u64 *params, u64 seed) {
    Params p;
    memcpy(&p, params, sizeof p);
    if (kernel >= sizeof KERNELS / sizeof *KERNELS) return "there is no such kernel";
    return emu::run(KERNELS[kernel], grid, p, seed);
}

// Sizes of what Rust mirrors: parameters, input block, run, zone, bound, output block, status, tick.
extern "C" void lithify_emu_sizes(u64 *out) {
    const u64 sizes[] = {sizeof(Params), sizeof(BlockIn),  sizeof(RunIn),  sizeof(Zone),
                         sizeof(Bound),  sizeof(BlockOut), sizeof(Status), sizeof(Tick)};
    memcpy(out, sizes, sizeof sizes);
}
extern "C" void lithify_emu_shape(u64 *out) {
    out[0] = THREADS;
    out[1] = ITEMS;
    out[2] = SCAN_ITEMS;
}

// The hashes, for their tests: XXH3 by a warp, XXPH3, content and weight of bytes.
struct Hashed {
    const u8 *bytes;
    u64 n;
    u64 *out;
};
static thread_local Hashed hashed;
static void hash_kernel(const Params) {
    u64 sum = xxh3_warp(hashed.bytes, hashed.n, secrets());
    if (threadIdx.x == THREADS - 1) {
        hashed.out[0] = sum;
        u64 hash = xxph3<false>(hashed.bytes, (u32)hashed.n);
        hashed.out[1] = xxph3<true>(hashed.bytes, (u32)hashed.n) == hash ? hash : ~hash;
        hashed.out[2] = content(hashed.out[1], hashed.bytes, hashed.n);
        hashed.out[3] = weigh(hashed.out[2], hashed.n);
    }
}
extern "C" const char *lithify_emu_hash(const u8 *bytes, u64 n, u64 *out) {
    hashed = Hashed{bytes, n, out};
    Params p = {};
    return emu::run(hash_kernel, 1, p, n);
}

// The codec, for its tests: a stored payload of `n` bytes is decoded into `size` bytes.
struct Decoded {
    const u8 *bytes;
    u64 n;
    u8 *out;
    u64 size;
    u64 *taken;
};
static thread_local Decoded decoded;
static void decode_kernel(const Params) {
    if (threadIdx.x >= WARP) return;
    bool taken = lz4_decode(decoded.bytes, decoded.n, decoded.out, decoded.size);
    if (threadIdx.x == 0) *decoded.taken = taken;
}
extern "C" const char *lithify_emu_decode(const u8 *bytes, u64 n, u8 *out, u64 size, u64 seed, u64 *taken) {
    decoded = Decoded{bytes, n, out, size, taken};
    Params p = {};
    return emu::run(decode_kernel, 1, p, seed);
}

// `n` bytes are compressed into at most `most`; `len` is what that takes, or 0.
struct Encoded {
    const u8 *bytes;
    u64 n;
    u8 *out;
    u64 most;
    u64 *len;
};
static thread_local Encoded encoded;
static void encode_kernel(const Params) {
    SHARED u16 small[LZ4_SLOTS];
    SHARED u32 large[LZ4_SLOTS];
    if (threadIdx.x >= WARP) return;
    const Encoded &e = encoded;
    u64 len = e.n < LZ4_LARGE ? lz4_encode(e.bytes, e.n, e.out, e.most, small)
                              : lz4_encode(e.bytes, e.n, e.out, e.most, large);
    if (threadIdx.x == 0) *e.len = len;
}
extern "C" const char *lithify_emu_encode(const u8 *bytes, u64 n, u8 *out, u64 most, u64 *len) {
    encoded = Encoded{bytes, n, out, most, len};
    Params p = {};
    return emu::run(encode_kernel, 1, p, n);
}
