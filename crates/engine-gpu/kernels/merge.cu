// K1, K2: sorted lists of records become one. Keys ascend, tags descend, newer runs come first (R7).
//
// A round merges up to 64 lists. K1 finds for each tile of the output where it begins in every list (exact
// selection over several sorted lists: a pivot's rank shrinks every window); K2 merges the pieces in
// shared memory, over indices (merge path, Green, McColl and Bader 2012). Up to 64 runs take one round,
// up to 1,024 a second one over the groups of the first.
#include "block.cuh"

constexpr u32 LISTS_MOST = 64;

// Whether record `a` comes before record `b`.
FN bool before(const Params &p, u32 a, u32 b) {
    u64 x = at<u64>(p.hi)[a], y = at<u64>(p.hi)[b];
    if (x != y) return x < y;
    x = at<u64>(p.lo)[a], y = at<u64>(p.lo)[b];
    if (x != y) return x < y;
    // Padded heads are equal: bytes behind them decide, then lengths.
    u32 known = (u32)p.prefix + 16;
    const u8 *keys = at<u8>(p.heap);
    int c = compare_keys(keys + at<u64>(p.koff)[a], at<u32>(p.klen)[a], keys + at<u64>(p.koff)[b],
                         at<u32>(p.klen)[b], known);
    if (c) return c < 0;
    x = at<u64>(p.tag)[a], y = at<u64>(p.tag)[b];
    if (x != y) return x > y;
    return at<u32>(p.run)[a] < at<u32>(p.run)[b];
}

// The records of a round.
FN u32 round_total(const Params &p) {
    const List *lists = at<List>(p.lists) + p.list_first;
    u32 sum = 0;
    for (u32 i = 0; i < p.n_lists; i++) sum += lists[i].count;
    return sum;
}

// How many records of `list[from..to]` come before record `x`, by a warp.
FN u32 rank_in(const Params &p, const u32 *list, u32 from, u32 to, u32 x) {
    return (u32)first_no(from, to, [&](u64 i) { return before(p, list[i], x); });
}

// A CTA per tile boundary, a warp per list.
KERNEL(k1_partition) {
    SHARED u32 lo[LISTS_MOST], hi[LISTS_MOST], below[LISTS_MOST];
    SHARED u32 rank, pivot, widest;
    const List *lists = at<List>(p.lists) + p.list_first;
    const u32 *in = at<u32>(p.m_in);
    u32 *split = at<u32>(p.splits) + blockIdx.x * p.n_lists;
    if (at<Status>(p.status)->faults) return;
    u32 total = round_total(p);
    u32 target = (u32)min64(blockIdx.x * (u64)TILE, total);
    for (u32 i = threadIdx.x; i < p.n_lists; i += THREADS) lo[i] = 0, hi[i] = lists[i].count;
    __syncthreads();
    for (;;) {
        if (threadIdx.x == 0) {
            widest = 0;
            for (u32 i = 1; i < p.n_lists; i++)
                if (hi[i] - lo[i] > hi[widest] - lo[widest]) widest = i;
            rank = 0;
            pivot = lo[widest] + (hi[widest] - lo[widest]) / 2;
        }
        __syncthreads();
        u32 w = widest, mid = pivot;
        if (hi[w] == lo[w]) break;
        u32 x = in[lists[w].at + mid];
        // How many records of each list come before the pivot.
        for (u32 i = threadIdx.x / WARP; i < p.n_lists; i += WARPS) {
            u32 n = i == w ? mid : rank_in(p, in + lists[i].at, lo[i], hi[i], x);
            if (lane() == 0) {
                below[i] = n;
                atomicAdd(&rank, n);
            }
        }
        __syncthreads();
        bool inside = rank < target;
        for (u32 i = threadIdx.x; i < p.n_lists; i += THREADS) {
            if (inside)
                lo[i] = i == w ? mid + 1 : below[i];
            else
                hi[i] = below[i];
        }
        __syncthreads();
    }
    for (u32 i = threadIdx.x; i < p.n_lists; i += THREADS) split[i] = lo[i];
}

// A CTA per tile.
KERNEL(k2_merge) {
    SHARED u32 one[TILE], other[TILE];
    SHARED u32 off[LISTS_MOST + 1];
    SHARED u32 total_;
    if (at<Status>(p.status)->faults) return;
    const List *lists = at<List>(p.lists) + p.list_first;
    const u32 *in = at<u32>(p.m_in);
    u32 n_lists = (u32)p.n_lists;
    if (threadIdx.x == 0) total_ = round_total(p);
    const u32 *from = at<u32>(p.splits) + blockIdx.x * p.n_lists, *to = from + p.n_lists;
    u64 start = blockIdx.x * (u64)TILE;
    __syncthreads();
    if (start >= total_) return;
    u32 n = (u32)min64(TILE, total_ - start);
    if (threadIdx.x == 0) {
        off[0] = 0;
        for (u32 i = 0; i < n_lists; i++) off[i + 1] = off[i] + (to[i] - from[i]);
    }
    __syncthreads();
    for (u32 i = 0; i < n_lists; i++)
        for (u32 k = threadIdx.x; k < off[i + 1] - off[i]; k += THREADS)
            one[off[i] + k] = in[lists[i].at + from[i] + k];
    __syncthreads();
    u32 *src = one, *dst = other;
    for (u32 width = 1; width < n_lists; width *= 2) {
        u32 d = threadIdx.x * ITEMS, last = d + ITEMS < n ? d + ITEMS : n;
        u32 pair = 0;
        while (d < last) {
            // The pair of lists that output `d` falls into.
            while (off[pair + 2 * width < n_lists ? pair + 2 * width : n_lists] <= d) pair += 2 * width;
            u32 a0 = off[pair], a1 = off[pair + width < n_lists ? pair + width : n_lists];
            u32 b1 = off[pair + 2 * width < n_lists ? pair + 2 * width : n_lists];
            // How many of the first `d - a0` come from each.
            u32 k = d - a0, lo = k > b1 - a1 ? k - (b1 - a1) : 0, hi = k < a1 - a0 ? k : a1 - a0;
            while (lo < hi) {
                u32 m = lo + (hi - lo) / 2;
                if (before(p, src[a0 + m], src[a1 + k - 1 - m]))
                    lo = m + 1;
                else
                    hi = m;
            }
            u32 a = a0 + lo, b = a1 + k - lo;
            for (; d < last && d < b1; d++) {
                bool first = a < a1 && (b >= b1 || before(p, src[a], src[b]));
                dst[d] = first ? src[a++] : src[b++];
            }
        }
        __syncthreads();
        u32 *t = src;
        src = dst;
        dst = t;
    }
    u32 *out = at<u32>(p.m_out) + at<u32>(p.list_out)[p.list_first < p.n_runs ? p.list_first : 0] + start;
    for (u32 k = threadIdx.x; k < n; k += THREADS) out[k] = src[k];
}
