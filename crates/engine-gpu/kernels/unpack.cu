// K0a, K0c, K0, K0b: blocks are verified, decoded and taken apart into records, and runs are trimmed.
#include "block.cuh"
#include "hash.cuh"
#include "lz4.cuh"

// Whether a block is stored as its trailer says, by a warp.
FN bool is_sound(const Params &p, const BlockIn &in, const Secrets &secret) {
    const u8 *stored = at<u8>(p.in) + in.stored_at;
    u32 sum = block_sum(stored, in.stored, in.codec, secret) + in.modifier;
    return stored[in.stored] == in.codec && load32(stored + in.stored + 1) == sum;
}
// Its payload.
FN u8 *payload_of(const Params &p, const BlockIn &in) {
    return at<u8>(in.codec ? p.plain : p.in) + in.at;
}

// A warp per block: compressed ones are verified and decoded.
KERNEL(k0a_decode) {
    const Secrets &secret = secrets();
    for (u64 b = blockIdx.x * (u64)WARPS + threadIdx.x / WARP; b < p.n_blocks; b += gridDim.x * (u64)WARPS) {
        const BlockIn in = at<BlockIn>(p.blocks)[b];
        if (!in.codec) continue;
        u64 fault = 0;
        if (!is_sound(p, in, secret))
            fault = FAULT_SUM;
        else if (!lz4_decode(at<u8>(p.in) + in.stored_at, in.stored, payload_of(p, in), in.len))
            fault = FAULT_DECODE;
        if (lane() == 0) or64(&at<Status>(p.status)->faults, fault);
    }
}

// Entries and user key bytes of a block, by a warp; every lane gets them.
FN u64 count_block(const u8 *p, u64 len, u64 &entries, u64 &bytes) {
    Tail t = {};
    entries = bytes = 0;
    if (!read_tail(p, len, t)) return FAULT_FORM;
    u64 fault = 0;
    for (u32 base = 0; base < t.restarts; base += WARP) {
        u32 g = base + lane();
        u32 n = 0, from, to;
        u64 b = 0;
        if (g < t.restarts) {
            if (!group_place(p, t, g, from, to))
                fault |= FAULT_FORM;
            else
                fault |= count_group(p, from, to, n, b);
        }
        entries += warp_sum(n);
        bytes += warp_sum(b);
    }
    return warp_or(fault);
}

// A warp per block: what the host does not know of it.
KERNEL(k0c_count) {
    if (warp_or(at<Status>(p.status)->faults)) return;
    for (u64 b = blockIdx.x * (u64)WARPS + threadIdx.x / WARP; b < p.n_blocks; b += gridDim.x * (u64)WARPS) {
        const BlockIn &in = at<BlockIn>(p.blocks)[b];
        u64 entries, bytes;
        u64 fault = count_block(payload_of(p, in), in.len, entries, bytes);
        if (lane() == 0) {
            at<u64>(p.counts)[2 * b] = fault ? 0 : entries;
            at<u64>(p.counts)[2 * b + 1] = fault ? 0 : bytes;
            or64(&at<Status>(p.status)->faults, fault);
        }
    }
}

// Eight bytes of the user key from `i` on, big-endian, padded with zeros.
FN u64 head(const u8 *key, u32 len, u64 i) {
    if (i + 8 <= len) return swap64(load64(key + i));
    u64 v = 0;
    for (u32 k = 0; k < 8; k++) v = v << 8 | (i + k < len ? key[i + k] : 0);
    return v;
}

// An entry of a block of the input into a record; its user key lies in the heap.
FN u64 put_record(const Params &p, const BlockIn &in, const u8 *payload, const Seen &s, u32 rec) {
    const u8 *key = at<u8>(p.heap) + in.heap_at + s.at;
    u64 kind = s.tag & 0xff, hash = xxph3<true>(key, s.len);
    at<u64>(p.hi)[rec] = head(key, s.len, p.prefix);
    at<u64>(p.lo)[rec] = head(key, s.len, p.prefix + 8);
    at<u64>(p.tag)[rec] = in.seq == NO_SEQ ? s.tag : in.seq << 8 | kind;
    at<u64>(p.hash)[rec] = hash;
    at<u64>(p.content)[rec] = content(hash, payload + s.value_at, s.value);
    at<u64>(p.src)[rec] = (u64)(payload + s.value_at);
    at<u32>(p.vlen)[rec] = s.value;
    at<u64>(p.koff)[rec] = in.heap_at + s.at;
    at<u32>(p.klen)[rec] = s.len;
    at<u32>(p.run)[rec] = in.run;
    return kind > 1 ? (u64)FAULT_KIND : 0;
}

// A block into records, by a warp. No more than was announced is written.
FN u64 unpack_block(const Params &p, const BlockIn &in, const u8 *payload) {
    Tail t = {};
    if (!read_tail(payload, in.len, t)) return FAULT_FORM;
    u64 entries = 0, bytes = 0, fault = 0;
    for (u32 base = 0; base < t.restarts; base += WARP) {
        u32 g = base + lane();
        u32 n = 0, from = 0, to = 0;
        u64 k = 0;
        if (g < t.restarts)
            fault |= group_place(payload, t, g, from, to) ? count_group(payload, from, to, n, k) : (u32)FAULT_FORM;
        fault = warp_or(fault);
        u64 all_n = warp_sum(n), all_k = warp_sum(k);
        bool beyond = entries + all_n > in.entries || bytes + all_k > in.key_bytes || (bytes + all_k) >> 32;
        if (!fault && beyond) fault = FAULT_COUNT;
        if (fault) return fault;
        u32 rec = (u32)(in.first + entries + warp_before(n)), key_at = (u32)(bytes + warp_before(k));
        u32 groups = t.restarts - base < WARP ? t.restarts - base : WARP;
        each_entry(payload, groups, from, to, rec, at<u8>(p.heap) + in.heap_at, key_at,
                   [&](bool has, const Seen &s, const Seen &, bool, u32 no) {
                       if (has) fault |= put_record(p, in, payload, s, no);
                   });
        entries += all_n;
        bytes += all_k;
    }
    return entries != in.entries || bytes != in.key_bytes ? fault | FAULT_COUNT : fault;
}

// A warp per block.
KERNEL_OF(k0_unpack, 2) {
    // Before some of its warps may leave.
    const Secrets &secret = secrets();
    // Of blocks that were decoded, or not; other warps may set bits meanwhile, so all lanes go by the same word.
    if (warp_or(at<Status>(p.status)->faults)) return;
    for (u32 b = blockIdx.x * WARPS + threadIdx.x / WARP; b < p.n_blocks; b += gridDim.x * WARPS) {
        const BlockIn &in = at<BlockIn>(p.blocks)[b];
        u64 fault = in.codec || is_sound(p, in, secret) ? unpack_block(p, in, payload_of(p, in)) : FAULT_SUM;
        or64(&at<Status>(p.status)->faults, fault);
    }
}

FN int compare_records(const Params &p, u32 a, u32 b) {
    const u8 *keys = at<u8>(p.heap);
    return compare_keys(keys + at<u64>(p.koff)[a], at<u32>(p.klen)[a], keys + at<u64>(p.koff)[b],
                        at<u32>(p.klen)[b], 0);
}

// Each record comes after the one before it in its run; the merge begins with records as they are, and scans with
// lines that are empty.
KERNEL(k0b_order) {
    for (u64 i = blockIdx.x * (u64)THREADS + threadIdx.x; i < p.tick_words; i += gridDim.x * (u64)THREADS)
        at<u64>(p.ticks)[i] = 0;
    if (at<Status>(p.status)->faults) return;
    for (u64 i = blockIdx.x * (u64)THREADS + threadIdx.x; i < p.n_records; i += gridDim.x * (u64)THREADS) {
        at<u32>(p.ord)[i] = (u32)i;
        if (i == 0 || at<u32>(p.run)[i] != at<u32>(p.run)[i - 1]) continue;
        int c = compare_records(p, (u32)(i - 1), (u32)i);
        if (c > 0 || (c == 0 && at<u64>(p.tag)[i - 1] <= at<u64>(p.tag)[i]))
            or64(&at<Status>(p.status)->faults, FAULT_ORDER);
    }
}

// Whether a key lies below the lower ends.
FN bool is_below(const Params &p, const u8 *key, u32 len) {
    const Bound *bound = at<Bound>(p.bounds);
    for (u32 i = 0; i < 4; i += 2) {
        if (!bound[i].form) continue;
        int c = compare_keys(key, len, at<u8>(p.bound_keys) + bound[i].at, (u32)bound[i].len, 0);
        if (c < 0 || (c == 0 && bound[i].form == 1)) return true;
    }
    return false;
}
// Whether a key lies inside of the upper ends.
FN bool is_inside(const Params &p, const u8 *key, u32 len) {
    const Bound *bound = at<Bound>(p.bounds);
    for (u32 i = 1; i < 4; i += 2) {
        if (!bound[i].form) continue;
        int c = compare_keys(key, len, at<u8>(p.bound_keys) + bound[i].at, (u32)bound[i].len, 0);
        if (c > 0 || (c == 0 && bound[i].form == 1)) return false;
    }
    return true;
}

// A warp per run: the records inside both ranges. Then the lists of the merge: runs, and behind them
// groups of 64 runs, whose records are in a row after the first round.
KERNEL(k0b_trim) {
    if (at<Status>(p.status)->faults) return;
    RunIn *runs = at<RunIn>(p.runs);
    List *lists = at<List>(p.lists);
    const u8 *keys = at<u8>(p.heap);
    for (u64 r = threadIdx.x / WARP; r < p.n_runs; r += WARPS) {
        u64 first = runs[r].first, end = first + runs[r].count;
        u64 from = first_no(first, end, [&](u64 i) {
            return is_below(p, keys + at<u64>(p.koff)[i], at<u32>(p.klen)[i]);
        });
        u64 to = first_no(from, end, [&](u64 i) {
            return is_inside(p, keys + at<u64>(p.koff)[i], at<u32>(p.klen)[i]);
        });
        if (lane()) continue;
        runs[r].from = from;
        runs[r].to = to;
        lists[r].at = (u32)from;
        lists[r].count = (u32)(to - from);
    }
    __syncthreads();
    if (threadIdx.x) return;
    u32 *out = at<u32>(p.list_out);
    u32 sum = 0;
    for (u64 r = 0; r < p.n_runs; r++) {
        if (r % 64 == 0) lists[p.n_runs + r / 64].at = sum;
        out[r] = sum;
        sum += lists[r].count;
        lists[p.n_runs + r / 64].count = sum - lists[p.n_runs + r / 64].at;
    }
    out[p.n_runs] = sum;
    at<Status>(p.status)->total = sum;
}
