// K8: the finished blocks are read again, from their bytes alone. Counts and weights of the output are what
// is found here, not what was planned.
#include "block.cuh"
#include "hash.cuh"
#include "lz4.cuh"

// A warp per finished block: compressed ones are decoded to where they were plain.
KERNEL(k8_decode) {
    Status *status = at<Status>(p.status);
    if (warp_or(status->faults)) return;
    u64 w = blockIdx.x * (u64)WARPS + threadIdx.x / WARP;
    for (u64 b = w; b + 1 < status->segments; b += gridDim.x * (u64)WARPS) {
        const BlockOut o = at<BlockOut>(p.blocks_out)[b];
        if (!o.codec) continue;
        const u8 *stored = at<u8>(p.arena) + o.at;
        u64 len = o.stored - 5;
        u32 sum = block_sum(stored, len, o.codec);
        bool is_sound = stored[len] == o.codec && load32(stored + len + 1) == sum;
        if (!lz4_decode(stored, len, at<u8>(p.packed) + o.slot, o.plain)) is_sound = false;
        if (lane() == 0 && !is_sound) or64(&status->faults, FAULT_PROVE);
    }
}

// A warp per finished block. User keys go where those of the input were.
KERNEL(k8_prove) {
    Status *status = at<Status>(p.status);
    // Other warps may set bits meanwhile: all lanes of one go by the same word.
    if (warp_or(status->faults)) return;
    u64 finished = status->segments - (status->segments ? 1 : 0);
    u8 *keys = at<u8>(p.heap);
    u64 w = blockIdx.x * (u64)WARPS + threadIdx.x / WARP;
    for (u64 b = w; b < finished; b += gridDim.x * (u64)WARPS) {
        BlockOut &o = at<BlockOut>(p.blocks_out)[b];
        const u8 *payload = o.codec ? at<u8>(p.packed) + o.slot : at<u8>(p.arena) + o.at;
        u64 len = o.plain, fault = 0;
        Tail t = {};
        bool reads = read_tail(payload, len, t);
        if (!o.codec) {
            u32 sum = block_sum(payload, len, 0);
            reads = reads && payload[len] == 0 && load32(payload + len + 1) == sum && o.stored == len + 5;
        }
        if (!reads) {
            if (lane() == 0) or64(&status->faults, FAULT_PROVE);
            continue;
        }
        u64 key_at = o.heap_at, room = o.heap_at + o.heap_len;
        u64 entries = 0, raw_key = 0, raw_value = 0, weight = 0, values = 0, deletes = 0;
        u64 min_seq = ~0ull, max_seq = 0;
        // The last key of the groups before these.
        Seen before;
        before.at = before.len = 0;
        before.tag = 0;
        bool any = false;
        for (u32 base = 0; base < t.restarts; base += WARP) {
            u32 g = base + lane();
            u64 n = 0, k = 0, from = 0, to = 0;
            if (g < t.restarts) {
                if (!group_place(payload, t, g, from, to) || from == to)
                    fault |= FAULT_PROVE, from = to = 0;
                else if (count_group(payload, from, to, n, k))
                    fault |= FAULT_PROVE;
                // Every group but the last is full.
                if (g + 1 < t.restarts ? n != p.interval : n > p.interval) fault |= FAULT_PROVE;
            }
            u64 my_key = key_at + warp_before(k);
            key_at += warp_sum(k);
            if (key_at > room) fault |= FAULT_PROVE;
            fault = warp_or(fault);
            if (fault) break;
            entries += n;
            Seen s, first;
            s.at = s.len = 0;
            s.tag = 0;
            first = s;
            for (bool is_first = true; from < to; is_first = false) {
                Seen last = s;
                next_entry(payload, from, to, keys, my_key, is_first, s);
                my_key += s.len;
                if (is_first) {
                    first = s;
                } else {
                    int c = compare_keys(keys + last.at, last.len, keys + s.at, s.len, 0);
                    if (c > 0 || (c == 0 && last.tag <= s.tag)) fault |= FAULT_PROVE;
                }
                u64 kind = s.tag & 0xff, seq = s.tag >> 8;
                if (kind > 1) fault |= FAULT_PROVE;
                values += kind == 1;
                deletes += kind == 0;
                raw_key += s.len + 8ull;
                raw_value += s.value;
                min_seq = min64(min_seq, seq);
                max_seq = max64(max_seq, seq);
                u64 hash = xxph3(keys + s.at, s.len);
                weight += weigh(content(hash, payload + s.value_at, s.value), s.tag);
            }
            __syncwarp(ALL);
            // The first key of a group against the last one of the group before.
            u64 left_at = __shfl_up_sync(ALL, s.at, 1), left_tag = __shfl_up_sync(ALL, s.tag, 1);
            u64 left_len = __shfl_up_sync(ALL, (u64)s.len, 1);
            bool has_left = true;
            if (lane() == 0) left_at = before.at, left_len = before.len, left_tag = before.tag, has_left = any;
            if (g < t.restarts && has_left) {
                int c = compare_keys(keys + left_at, (u32)left_len, keys + first.at, first.len, 0);
                if (c > 0 || (c == 0 && left_tag <= first.tag)) fault |= FAULT_PROVE;
            }
            u32 last_lane = min64(t.restarts - base, WARP) - 1;
            before.at = __shfl_sync(ALL, s.at, last_lane);
            before.len = (u32)__shfl_sync(ALL, (u64)s.len, last_lane);
            before.tag = __shfl_sync(ALL, s.tag, last_lane);
            any = true;
        }
        fault = warp_or(fault);
        entries = warp_sum(entries);
        raw_key = warp_sum(raw_key);
        raw_value = warp_sum(raw_value);
        weight = warp_sum(weight);
        values = warp_sum(values);
        deletes = warp_sum(deletes);
        for (u32 d = 16; d; d /= 2) {
            min_seq = min64(min_seq, __shfl_xor_sync(ALL, min_seq, d));
            max_seq = max64(max_seq, __shfl_xor_sync(ALL, max_seq, d));
        }
        if (lane() == 0) {
            if (entries != o.entries || key_at != room) fault |= FAULT_PROVE;
            or64(&status->faults, fault);
            o.seen_entries = entries;
            o.raw_key = raw_key;
            o.raw_value = raw_value;
            o.weight = weight;
            o.min_seq = min_seq;
            o.max_seq = max_seq;
            o.values = values;
            o.deletes = deletes;
            add64(&status->entries_out, entries);
            add64(&status->sum_out, weight);
        }
    }
}
