// K6: finished blocks are compressed with LZ4, and moved together.
//
// Pack has left them plain in the arena. Each goes to a slot of `packed` at the same place, compressed if that pays, else as
// it is; then all go back to the arena, side by side, and the block that stays open behind them. K8 decodes them to
// those slots again.
#include "hash.cuh"
#include "layout.cuh"
#include "lz4.cuh"

// Blocks that a CTA encodes at once: as many as tables of the smaller kind take 32 KiB of its memory.
constexpr u32 TABLES = WARPS < 4 ? WARPS : 4;
static_assert(TABLES % 2 == 0, "two tables make a large one");

// Most bytes that a block whose stored form has `n` may have: what readers allow.
FN u64 plain_most(u64 n) {
    return min64(max64(256 << 20, 256 * n), 0xffffffffull);
}

// A block of `n` bytes is worth its stored form if that saves an eighth.
FN u64 pays_most(u64 n) {
    return n - (n + 7) / 8;
}

// By a warp. An open block is moved only.
template <class T>
FN void encode_block(const Params &p, BlockOut *block, bool finished, T *seen, const Secrets &secret) {
    const BlockOut o = *block;
    const u8 *plain = at<u8>(p.arena) + o.at;
    u8 *out = at<u8>(p.packed) + o.at;
    u64 len = finished ? lz4_encode(plain, o.plain, out, pays_most(o.plain), seen) : 0;
    if (o.plain > plain_most(len)) len = 0;
    if (len) {
        u32 sum = block_sum(out, len, LZ4, secret);
        if (lane() == 0) {
            out[len] = (u8)LZ4;
            store32(out + len + 1, sum);
        }
    } else {
        copy_by_warp(out, plain, o.stored);
    }
    __syncwarp(ALL);
    if (lane() || !len) return;
    block->codec = LZ4;
    block->stored = len + 5;
}

// A warp per block: first those with small tables, then the others.
KERNEL_OF(k6_encode, 4) {
    SHARED union {
        u16 small[TABLES][LZ4_SLOTS];
        u32 large[TABLES / 2][LZ4_SLOTS];
    } seen;
    const Secrets &secret = secrets();
    Status *status = at<Status>(p.status);
    if (status->faults) return;
    u64 n = status->segments;
    u32 w = threadIdx.x / WARP;
    BlockOut *blocks = at<BlockOut>(p.blocks_out);
    for (u64 b = blockIdx.x * (u64)TABLES + w; w < TABLES && b < n; b += gridDim.x * (u64)TABLES) {
        bool finished = b + 1 < n;
        if (!finished || blocks[b].plain < LZ4_LARGE) encode_block(p, blocks + b, finished, seen.small[w], secret);
    }
    __syncthreads();
    u32 half = TABLES / 2;
    for (u64 b = blockIdx.x * (u64)half + w; w < half && b + 1 < n; b += gridDim.x * (u64)half)
        if (blocks[b].plain >= LZ4_LARGE) encode_block(p, blocks + b, true, seen.large[w], secret);
}

// Where stored blocks go: a thread per block.
KERNEL(k6_places) {
    Tile tile = take_tile(p.ticks);
    Status *status = at<Status>(p.status);
    u64 n = status->faults ? 0 : status->segments;
    u64 b0 = tile.first;
    BlockOut *blocks = at<BlockOut>(p.blocks_out);
    Sums<1> mine = zero_sums<1>();
    for (u32 k = 0; k < SCAN_ITEMS && b0 + k < n; k++) mine.v[0] += blocks[b0 + k].stored;
    Sums<1> sum = grid_before(tile, mine);
    for (u32 k = 0; k < SCAN_ITEMS && b0 + k < n; k++) {
        blocks[b0 + k].at = sum.v[0];
        sum.v[0] += blocks[b0 + k].stored;
        if (b0 + k + 1 == n) status->out_bytes = sum.v[0];
    }
}

// A warp per block.
KERNEL(k6_gather) {
    Status *status = at<Status>(p.status);
    if (status->faults) return;
    u64 w = blockIdx.x * (u64)WARPS + threadIdx.x / WARP;
    for (u64 b = w; b < status->segments; b += gridDim.x * (u64)WARPS) {
        const BlockOut &o = at<BlockOut>(p.blocks_out)[b];
        copy_by_warp(at<u8>(p.arena) + o.at, at<u8>(p.packed) + o.slot, o.stored);
    }
}
