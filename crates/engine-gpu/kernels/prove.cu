// K8: the finished blocks are read again, from their bytes alone. Counts and weights of the output are what
// is found here, not what was planned.
#include "block.cuh"
#include "hash.cuh"
#include "lz4.cuh"

// A warp per finished block: compressed ones are decoded to where they were plain.
KERNEL(k8_decode) {
    // Before some of its warps may leave.
    const Secrets &secret = secrets();
    Status *status = at<Status>(p.status);
    if (warp_or(status->faults)) return;
    u64 w = blockIdx.x * (u64)WARPS + threadIdx.x / WARP;
    for (u64 b = w; b + 1 < status->segments; b += gridDim.x * (u64)WARPS) {
        const BlockOut o = at<BlockOut>(p.blocks_out)[b];
        if (!o.codec) continue;
        const u8 *stored = at<u8>(p.arena) + o.at;
        u64 len = o.stored - 5;
        u32 sum = block_sum(stored, len, o.codec, secret);
        bool is_sound = stored[len] == o.codec && load32(stored + len + 1) == sum;
        if (!lz4_decode(stored, len, at<u8>(p.packed) + o.slot, o.plain)) is_sound = false;
        if (lane() == 0 && !is_sound) or64(&status->faults, FAULT_PROVE);
    }
}

// What was found in a block by one lane.
struct Found {
    u64 weight, min_seq, max_seq;
    // Bytes of user keys, and of values: a block has less than 4 GiB of either.
    u32 keys, values;
    u32 fault, entries, deletes;
};
FN Found nothing_found() {
    Found f = {};
    f.min_seq = ~0ull;
    return f;
}

// Whether an entry does not come behind the one before it.
FN bool is_unordered(const u8 *keys, const Seen &before, const Seen &s) {
    int c = compare_keys(keys + before.at, before.len, keys + s.at, s.len, 0);
    return c > 0 || (c == 0 && before.tag <= s.tag);
}

FN void found_entry(const u8 *payload, const u8 *keys, const Seen &s, Found &f) {
    u64 kind = s.tag & 0xff, seq = s.tag >> 8;
    if (kind > 1) f.fault |= FAULT_PROVE;
    f.entries++;
    f.deletes += kind == 0;
    f.keys += s.len;
    f.values += s.value;
    f.min_seq = min64(f.min_seq, seq);
    f.max_seq = max64(f.max_seq, seq);
    f.weight += weigh(content(xxph3<false>(keys + s.at, s.len), payload + s.value_at, s.value), s.tag);
}

// A finished block, by a warp. User keys go where those of the input were, no more of them than were planned.
FN Found prove_block(const Params &p, const BlockOut &o, const u8 *payload) {
    u8 *keys = at<u8>(p.heap) + o.heap_at;
    Found f = nothing_found();
    Tail t = {};
    if (!read_tail(payload, o.plain, t)) f.fault = FAULT_PROVE;
    if (f.fault) return f;
    u64 key_at = 0, room = o.heap_len;
    // The last entry of the groups before these.
    Seen before = {};
    for (u32 base = 0; base < t.restarts; base += WARP) {
        u32 g = base + lane(), groups = t.restarts - base < WARP ? t.restarts - base : WARP;
        u32 n = 0, from = 0, to = 0;
        u64 k = 0;
        if (g < t.restarts) {
            if (!group_place(payload, t, g, from, to) || from == to || count_group(payload, from, to, n, k))
                f.fault |= FAULT_PROVE;
            // Every group but the last is full.
            if (g + 1 < t.restarts ? n != p.interval : n > p.interval) f.fault |= FAULT_PROVE;
        }
        u32 my_key = (u32)(key_at + warp_before(k));
        key_at += warp_sum(k);
        if (key_at > room || key_at >> 32) f.fault |= FAULT_PROVE;
        f.fault = (u32)warp_or(f.fault);
        if (f.fault) return f;
        Seen first = {};
        Seen last = each_entry(payload, groups, from, to, 0, keys, my_key,
                               [&](bool has, const Seen &s, const Seen &left, bool has_left, u32) {
                                   if (!has) return;
                                   found_entry(payload, keys, s, f);
                                   if (!has_left)
                                       first = s;
                                   else if (is_unordered(keys, left, s))
                                       f.fault |= FAULT_PROVE;
                               });
        // The first entry of a group, which its first lane has, against the last one of the group before.
        u32 each = lanes_each(groups), last_lane = (groups - 1) * each;
        Seen left;
        left.at = __shfl_up_sync(ALL, last.at, each);
        left.len = __shfl_up_sync(ALL, last.len, each);
        left.tag = __shfl_up_sync(ALL, last.tag, each);
        if (lane() == 0) left = before;
        bool has_left = base + lane() / each > 0;
        if (lane() % each == 0 && lane() / each < groups && has_left && is_unordered(keys, left, first))
            f.fault |= FAULT_PROVE;
        before.at = __shfl_sync(ALL, last.at, last_lane);
        before.len = __shfl_sync(ALL, last.len, last_lane);
        before.tag = __shfl_sync(ALL, last.tag, last_lane);
    }
    if (key_at != room) f.fault |= FAULT_PROVE;
    return f;
}

// A warp per finished block.
KERNEL_OF(k8_prove, 2) {
    const Secrets &secret = secrets();
    Status *status = at<Status>(p.status);
    // Other warps may set bits meanwhile: all lanes of one go by the same word.
    if (warp_or(status->faults)) return;
    u32 finished = (u32)status->segments - (status->segments ? 1 : 0);
    for (u32 b = blockIdx.x * WARPS + threadIdx.x / WARP; b < finished; b += gridDim.x * WARPS) {
        const BlockOut o = at<BlockOut>(p.blocks_out)[b];
        const u8 *payload = o.codec ? at<u8>(p.packed) + o.slot : at<u8>(p.arena) + o.at;
        u64 len = o.plain;
        // The sum of a compressed one is read with what is stored.
        bool is_sound = o.codec || (block_sum(payload, len, 0, secret) == load32(payload + len + 1) &&
                                    payload[len] == 0 && o.stored == len + 5);
        Found f = nothing_found();
        f.fault = FAULT_PROVE;
        if (is_sound) f = prove_block(p, o, payload);
        f.fault = (u32)warp_or(f.fault);
        f.entries = (u32)warp_sum(f.entries);
        f.keys = (u32)warp_sum(f.keys);
        f.values = (u32)warp_sum(f.values);
        f.weight = warp_sum(f.weight);
        f.deletes = (u32)warp_sum(f.deletes);
        for (u32 d = 16; d; d /= 2) {
            f.min_seq = min64(f.min_seq, __shfl_xor_sync(ALL, f.min_seq, d));
            f.max_seq = max64(f.max_seq, __shfl_xor_sync(ALL, f.max_seq, d));
        }
        if (lane()) continue;
        if (f.entries != o.entries) f.fault |= FAULT_PROVE;
        or64(&status->faults, f.fault);
        BlockOut &out = at<BlockOut>(p.blocks_out)[b];
        out.seen_entries = f.entries;
        out.raw_key = f.keys + 8ull * f.entries;
        out.raw_value = f.values;
        out.weight = f.weight;
        out.min_seq = f.min_seq;
        out.max_seq = f.max_seq;
        out.values = f.entries - f.deletes;
        out.deletes = f.deletes;
        add64(&status->entries_out, f.entries);
        add64(&status->sum_out, f.weight);
    }
}
