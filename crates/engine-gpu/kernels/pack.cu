// K4, K7, K5: where blocks and files start, where every byte goes, and the bytes.
//
// The grid cut is `merge::cut`: a block starts where S leaves its grid cell or a split is passed; a file
// starts at such a place if its key is new and the cell of F changed, or at a split. The block that
// was open before the set is the first one, its encoded entries go before all others; the last one stays open.
#include "block.cuh"
#include "hash.cuh"

// The internal key of survivor `j`, or the last one of the output so far for j = -1.
struct Internal {
    const u8 *user;
    u32 len;
    u64 tag;
};
FN Internal survivor(const Params &p, u64 j) {
    Internal k;
    u32 rec = at<u32>(p.sid)[j];
    k.user = at<u8>(p.heap) + at<u64>(p.koff)[rec];
    k.len = at<u32>(p.klen)[rec];
    k.tag = at<u64>(p.stag)[j];
    return k;
}
FN Internal last_before(const Params &p) {
    Internal k;
    k.user = at<u8>(p.last_key);
    k.len = (u32)p.last_len - 8;
    k.tag = load64(k.user + k.len);
    return k;
}
// Bytes that two internal keys have in common.
FN u32 common(const Internal &a, const Internal &b) {
    u32 n = (a.len < b.len ? a.len : b.len) + 8, i = 0;
    for (; i + 16 <= n; i += 8) {
        u64 difference = load64(a.user + i) ^ load64(b.user + i);
        if (difference) return i + first_byte(difference);
    }
    while (i < n && internal_byte(a.user, a.len, a.tag, i) == internal_byte(b.user, b.len, b.tag, i)) i++;
    return i;
}

FN void splits_before(const Params &p, u64 j, u64 &hard, u64 &soft) {
    if (j == 0) {
        hard = p.hard, soft = p.soft;
        return;
    }
    const Zone &z = at<Zone>(p.zones)[at<u32>(p.szone)[j - 1]];
    hard = z.hard, soft = z.soft;
}

// S at survivor `j`: logical bytes of the output before it.
FN u64 logical(const Params &p, u64 j) {
    return p.s + at<u64>(p.s_at)[j];
}

// What a block start is to files: K4 leaves it where K7 puts whether it starts one.
enum Form : u8 { CANDIDATE = 1, HARD = 2, SOFT = 4, FIRST = 8 };

// Blocks: which survivors start one.
KERNEL(k4_blocks) {
    Tile tile = take_tile(p.ticks);
    Status *status = at<Status>(p.status);
    u64 m = status->faults ? 0 : status->survivors;
    u64 j0 = tile.first;
    u32 *bstart = at<u32>(p.bstart);
    Sums<1> mine = zero_sums<1>();
    bool starts[SCAN_ITEMS];
    u8 form[SCAN_ITEMS];
    for (u32 k = 0; k < SCAN_ITEMS && j0 + k < m; k++) {
        u64 j = j0 + k;
        u64 hard, soft;
        splits_before(p, j, hard, soft);
        const Zone &z = at<Zone>(p.zones)[at<u32>(p.szone)[j]];
        bool grid = j == 0 ? p.is_ended : logical(p, j) >> p.block_shift != logical(p, j - 1) >> p.block_shift;
        starts[k] = (j == 0 && !p.started) || grid || z.hard != hard || z.soft != soft;
        mine.v[0] += starts[k];
        form[k] = 0;
        if (starts[k]) {
            if (z.hard != hard) form[k] |= HARD;
            if (z.soft != soft) form[k] |= SOFT;
            // No user key is in two sets.
            bool new_key = j == 0 || at<u32>(p.sgroup)[j] != at<u32>(p.sgroup)[j - 1];
            if (j == 0 && !p.started)
                form[k] |= FIRST;
            else if (new_key)
                form[k] |= CANDIDATE;
        }
        if (j == 0 && p.started) {
            Internal a = last_before(p), b = survivor(p, 0);
            int c = compare_keys(a.user, a.len, b.user, b.len, 0);
            if (c > 0 || (c == 0 && a.tag <= b.tag)) or64(&status->faults, FAULT_ORDER);
        }
    }
    Sums<1> sum = grid_before(tile, mine);
    u64 seg = sum.v[0] + p.has_open;
    for (u32 k = 0; k < SCAN_ITEMS && j0 + k < m; k++) {
        u64 j = j0 + k;
        if (j == 0 && p.has_open) bstart[0] = 0;
        if (starts[k]) {
            at<u8>(p.bfile)[seg] = form[k];
            bstart[seg++] = (u32)j;
        }
        at<u32>(p.bid)[j] = (u32)(seg - 1);
        if (j + 1 == m) {
            bstart[seg] = (u32)m;
            status->segments = seg;
        }
    }
}

// K7: files. One CTA, a tile of block starts at a time. Whether one starts a file is found side by side: all but soft
// splits depend on the candidate before, which is the block start before unless a key goes on over it. Where a file has
// begun matters for soft splits alone, and tiles that have one are walked by one thread.
KERNEL(k7_files) {
    SHARED u64 cell[TILE], s_of[TILE];
    SHARED u8 form[TILE];
    SHARED u64 candidate, file;
    // In the tile, the last candidate and the last one that starts a file, counted from 1; and whether a split is soft.
    SHARED u32 last_candidate, last_start, soft_ones;
    Status *status = at<Status>(p.status);
    if (status->faults) return;
    u64 n = status->segments;
    if (threadIdx.x == 0) candidate = p.candidate, file = p.file;
    for (u64 base = p.has_open; base < n; base += TILE) {
        u32 m = (u32)min64(TILE, n - base);
        __syncthreads();
        if (threadIdx.x == 0) last_candidate = last_start = soft_ones = 0;
        UNROLL
        for (u32 k = 0; k < ITEMS; k++) {
            u32 i = threadIdx.x + k * THREADS;
            if (i >= m) continue;
            s_of[i] = logical(p, at<u32>(p.bstart)[base + i]);
            cell[i] = s_of[i] / p.file_bytes;
            form[i] = at<u8>(p.bfile)[base + i];
        }
        __syncthreads();
        u64 cell_before = candidate / p.file_bytes;
        for (u32 i = threadIdx.x; i < m; i += THREADS) {
            u8 f = form[i];
            bool starts = f & FIRST;
            if (f & CANDIDATE) {
                u32 last = i;
                while (last > 0 && !(form[last - 1] & CANDIDATE)) last--;
                starts = (f & HARD) || cell[i] != (last ? cell[last - 1] : cell_before);
                atomicMax(&last_candidate, i + 1);
                if (starts)
                    atomicMax(&last_start, i + 1);
                else if (f & SOFT)
                    soft_ones = 1;
            }
            at<u8>(p.bfile)[base + i] = starts;
        }
        __syncthreads();
        if (threadIdx.x) continue;
        for (u32 i = 0; soft_ones && i < m; i++) {
            if (!(form[i] & CANDIDATE)) continue;
            u8 *starts = at<u8>(p.bfile) + base + i;
            if ((form[i] & SOFT) && s_of[i] - file >= p.file_bytes / 8) *starts = 1;
            if (*starts) file = s_of[i];
        }
        if (last_candidate) candidate = s_of[last_candidate - 1];
        if (last_start && !soft_ones) file = s_of[last_start - 1];
    }
    if (threadIdx.x == 0 && p.has_open) at<u8>(p.bfile)[0] = 0;
}

// Sizes of encoded entries, filter hashes, key bytes; and where they add up to.
KERNEL(k4_sizes) {
    Tile tile = take_tile(p.ticks);
    Status *status = at<Status>(p.status);
    u64 m = status->faults ? 0 : status->survivors;
    u64 j0 = tile.first;
    Sums<3> mine = zero_sums<3>();
    u32 size[SCAN_ITEMS];
    bool hashed[SCAN_ITEMS];
    for (u32 k = 0; k < SCAN_ITEMS && j0 + k < m; k++) {
        u64 j = j0 + k;
        u32 b = at<u32>(p.bid)[j], start = at<u32>(p.bstart)[b], rec = at<u32>(p.sid)[j];
        u64 ordinal = j - start + (b == 0 ? p.open_entries : 0);
        Internal key = survivor(p, j);
        u32 shared = 0;
        if (ordinal % p.interval) shared = common(j == 0 ? last_before(p) : survivor(p, j - 1), key);
        u32 value = at<u32>(p.vlen)[rec], unshared = key.len + 8 - shared;
        size[k] = varint_len(shared) + varint_len(unshared) + varint_len(value) + unshared + value;
        at<u32>(p.shared)[j] = shared;
        bool fresh = j == start && at<u8>(p.bfile)[b] && ordinal == 0;
        bool has = j == 0 ? p.has_last_hash : true;
        u64 last = j == 0 ? p.last_hash : at<u64>(p.hash)[at<u32>(p.sid)[j - 1]];
        hashed[k] = p.filter && (fresh || !has || last != at<u64>(p.hash)[rec]);
        mine.v[0] += size[k];
        mine.v[1] += hashed[k];
        mine.v[2] += key.len;
    }
    Sums<3> sum = grid_before(tile, mine);
    for (u32 k = 0; k < SCAN_ITEMS && j0 + k < m; k++) {
        u64 j = j0 + k;
        u32 rec = at<u32>(p.sid)[j];
        at<u64>(p.place)[j] = sum.v[0];
        at<u32>(p.hpos)[j] = (u32)sum.v[1];
        at<u64>(p.kpos)[j] = sum.v[2];
        if (hashed[k]) at<u64>(p.hashes_out)[sum.v[1]] = at<u64>(p.hash)[rec];
        sum.v[0] += size[k];
        sum.v[1] += hashed[k];
        sum.v[2] += at<u32>(p.klen)[rec];
        if (j + 1 == m) {
            at<u64>(p.place)[m] = sum.v[0];
            at<u32>(p.hpos)[m] = (u32)sum.v[1];
            at<u64>(p.kpos)[m] = sum.v[2];
            status->hashes = sum.v[1];
        }
    }
}

FN u64 restarts_of(const Params &p, u64 entries) {
    return (entries + p.interval - 1) / p.interval;
}

// The table of blocks: a thread per block.
KERNEL(k4_table) {
    Tile tile = take_tile(p.ticks);
    Status *status = at<Status>(p.status);
    u64 n = status->faults ? 0 : status->segments;
    if (n > p.blocks_room) {
        or64(&status->faults, FAULT_ROOM);
        n = 0;
    }
    u64 b0 = tile.first;
    BlockOut *blocks = at<BlockOut>(p.blocks_out);
    Sums<2> mine = zero_sums<2>();
    for (u32 k = 0; k < SCAN_ITEMS && b0 + k < n; k++) {
        u64 b = b0 + k, from = at<u32>(p.bstart)[b], to = at<u32>(p.bstart)[b + 1];
        bool resumed = b == 0 && p.has_open, finished = b + 1 < n;
        BlockOut o = {};
        o.entry_bytes = at<u64>(p.place)[to] - at<u64>(p.place)[from] + (resumed ? p.open_len : 0);
        o.entries = to - from + (resumed ? p.open_entries : 0);
        o.stored = o.entry_bytes;
        if (finished) {
            o.stored += 4 * restarts_of(p, o.entries) + 9;
            o.plain = o.stored - 5;
            if (!resumed) o.first_len = survivor(p, from).len + 8;
            if (to > from) o.last_len = survivor(p, to - 1).len + 8;
        }
        if (o.stored > 0xffffffffull) or64(&status->faults, FAULT_LARGE);
        o.hash_from = at<u32>(p.hpos)[from];
        o.hash_to = at<u32>(p.hpos)[to];
        o.heap_at = at<u64>(p.kpos)[from] + (b ? p.open_key_bytes : 0);
        o.heap_len = at<u64>(p.kpos)[to] - at<u64>(p.kpos)[from] + (resumed ? p.open_key_bytes : 0);
        o.file = at<u8>(p.bfile)[b];
        blocks[b] = o;
        mine.v[0] += o.stored;
        mine.v[1] += o.first_len + o.last_len;
    }
    Sums<2> sum = grid_before(tile, mine);
    for (u32 k = 0; k < SCAN_ITEMS && b0 + k < n; k++) {
        BlockOut &o = blocks[b0 + k];
        o.at = o.slot = sum.v[0];
        o.keys_at = sum.v[1];
        sum.v[0] += o.stored;
        sum.v[1] += o.first_len + o.last_len;
        if (b0 + k + 1 == n) {
            status->out_bytes = sum.v[0];
            status->open_bytes = o.stored;
            status->key_bytes = sum.v[1];
        }
        if (sum.v[0] > p.arena_room || sum.v[1] > p.keys_room) or64(&status->faults, FAULT_ROOM);
    }
}

FN void put_internal(u8 *to, const Internal &k) {
    for (u32 i = lane(); i < k.len + 8; i += WARP) to[i] = internal_byte(k.user, k.len, k.tag, i);
}

// The most bytes of a block that is put together in shared memory.
constexpr u32 SLOT = 5 << 10;

// A value that is still to be copied.
struct Value {
    u64 to, from;
    u32 len;
};

// Packs survivor `j` but for its value, by a thread.
FN Value pack_entry(const Params &p, u64 j, u8 *e) {
    u32 rec = at<u32>(p.sid)[j], shared = at<u32>(p.shared)[j];
    Value value;
    value.len = at<u32>(p.vlen)[rec];
    value.from = at<u64>(p.src)[rec];
    Internal key = survivor(p, j);
    e += put_varint(e, shared);
    e += put_varint(e, key.len + 8 - shared);
    e += put_varint(e, value.len);
    for (; shared < key.len; shared++) *e++ = key.user[shared];
    for (; shared < key.len + 8; shared++) *e++ = (u8)(key.tag >> (8 * (shared - key.len)));
    value.to = (u64)e;
    return value;
}

// Copies up to 32 values by a warp, as many at once as have lanes enough for 16 bytes each.
FN void pack_values(const Value &mine, u32 count) {
    u64 most = warp_max(mine.len);
    u32 each = 1;
    while (each < WARP && 16ull * each < most) each *= 2;
    for (u32 turn = 0; turn < count; turn += WARP / each) {
        u32 of = turn + lane() / each;
        u64 to = __shfl_sync(ALL, mine.to, of), from = __shfl_sync(ALL, mine.from, of);
        u32 len = __shfl_sync(ALL, mine.len, of);
        copy_by(lane() % each, each, at<u8>(to), at<u8>(from), len);
    }
}

// What follows the entries of a finished block at `out`, its sum included, by a warp.
FN void finish_block(const Params &p, u8 *out, const BlockOut &o, u64 from, u64 before, u64 base, const Secrets &secret) {
    u64 restarts = restarts_of(p, o.entries);
    u8 *point = out + o.entry_bytes;
    for (u64 r = lane(); r < restarts; r += WARP) {
        u64 ordinal = r * p.interval;
        u32 place = ordinal < before ? at<u32>(p.open_restarts)[r]
                                     : (u32)(base + at<u64>(p.place)[from + ordinal - before]);
        store32(point + 4 * r, place);
    }
    if (lane() == 0) {
        store32(point + 4 * restarts, (u32)restarts);
        point[4 * restarts + 4] = 0;
    }
    __syncwarp(ALL);
    u32 sum = block_sum(out, o.stored - 5, 0, secret);
    // The word that holds the last bytes was read whole.
    __syncwarp(ALL);
    if (lane() == 0) store32(out + o.stored - 4, sum);
}

// Packs block `b`, by a warp; in `slot` if it has room there.
FN void pack_block(const Params &p, u64 b, bool finished, u8 *slot, const Secrets &secret) {
    const BlockOut o = at<BlockOut>(p.blocks_out)[b];
    u8 *place = at<u8>(p.arena) + o.at;
    // Both lie alike, so that it goes to its place by whole words.
    u8 *out = o.stored <= SLOT ? slot + ((u64)place & 15) : place;
    u64 from = at<u32>(p.bstart)[b], to = at<u32>(p.bstart)[b + 1];
    bool resumed = b == 0 && p.has_open;
    u64 open = resumed ? p.open_len : 0, base = open - at<u64>(p.place)[from];
    copy_by_warp(out, at<u8>(p.open_bytes), open);
    for (u64 j = from; j < to; j += WARP) {
        Value value = {};
        if (j + lane() < to) value = pack_entry(p, j + lane(), out + base + at<u64>(p.place)[j + lane()]);
        pack_values(value, (u32)min64(WARP, to - j));
    }
    if (finished) {
        finish_block(p, out, o, from, resumed ? p.open_entries : 0, base, secret);
        u8 *keys = at<u8>(p.keys_out) + o.keys_at;
        if (o.first_len) put_internal(keys, survivor(p, from));
        if (o.last_len) put_internal(keys + o.first_len, survivor(p, to - 1));
    }
    __syncwarp(ALL);
    if (out != place) copy_alike(place, out, o.stored);
    __syncwarp(ALL);
}

// K5: a warp per block, a thread per entry, and all of them for values.
KERNEL_OF(k5_pack, 4) {
    SHARED ALIGNED16 u8 slots[WARPS][SLOT + 16];
    const Secrets &secret = secrets();
    Status *status = at<Status>(p.status);
    if (status->faults) return;
    u64 n = status->segments;
    u32 w = threadIdx.x / WARP;
    for (u64 b = blockIdx.x * (u64)WARPS + w; b < n; b += gridDim.x * (u64)WARPS)
        pack_block(p, b, b + 1 < n, slots[w], secret);
}
