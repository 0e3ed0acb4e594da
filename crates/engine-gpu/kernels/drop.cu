// K3: the drop rules D1 to D4 over the merged order.
//
// D1 and D2 look at the entry before and at the zone. For D3 a delete must know whether a later survivor of
// its key is a value: survivors that are values are counted along the whole order, and the count at a delete
// is compared with that at the end of its key.
#include "block.cuh"
#include "hash.cuh"

constexpr u8 NEW_KEY = 1, HIDDEN = 2, COVERED = 4;

// Stripe of a number: snapshots below it.
FN u32 stripe(const Params &p, u64 seq) {
    const u64 *s = at<u64>(p.snapshots);
    u32 lo = 0, hi = (u32)p.n_snapshots;
    while (lo < hi) {
        u32 mid = (lo + hi) / 2;
        if (s[mid] < seq)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

// Zone of a key: the last one that starts at or below it.
FN u32 zone_of(const Params &p, const u8 *key, u32 len) {
    const Zone *zones = at<Zone>(p.zones);
    u32 lo = 1, hi = (u32)p.n_zones;
    while (lo < hi) {
        u32 mid = (lo + hi) / 2;
        int c = compare_keys(at<u8>(p.zone_keys) + zones[mid].key_at, (u32)zones[mid].key_len, key, len, 0);
        if (c < 0 || (c == 0 && zones[mid].form == 1))
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo - 1;
}

FN bool is_free(const Params &p, u32 zone, u32 run) {
    return at<u64>(p.free)[zone * p.words + run / 64] >> (run % 64) & 1;
}

// D2: the smallest number above `seq` of the tombstones over the zone lies in its stripe.
FN bool is_covered(const Params &p, u32 zone, u64 seq, u32 of) {
    u64 f = at<Zone>(p.zones)[zone].fragment;
    if (f == ~0ull) return false;
    const u64 *tombs = at<u64>(p.tombs);
    u32 from = at<u32>(p.fragments)[f], lo = from, hi = at<u32>(p.fragments)[f + 1];
    while (lo < hi) {
        u32 mid = (lo + hi) / 2;
        if (tombs[mid] > seq)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo > from && stripe(p, tombs[lo - 1]) == of;
}

FN bool same_key(const Params &p, u32 a, u32 b) {
    if (at<u64>(p.hash)[a] != at<u64>(p.hash)[b]) return false;
    const u8 *keys = at<u8>(p.heap);
    return compare_keys(keys + at<u64>(p.koff)[a], at<u32>(p.klen)[a], keys + at<u64>(p.koff)[b],
                        at<u32>(p.klen)[b], 0) == 0;
}

// D1 and D2; what comes in is counted.
KERNEL(k3_judge) {
    Tile tile = take_tile(p.ticks);
    Status *status = at<Status>(p.status);
    const u32 *ord = at<u32>(p.m_in);
    u64 total = status->faults ? 0 : status->total;
    u64 i0 = tile.first;
    Sums<2> mine = zero_sums<2>();
    Sums<3> in = zero_sums<3>();
    // Of each of this thread's entries four bits.
    u32 bits = 0;
    static_assert(4 * SCAN_ITEMS <= 32, "the entries of a thread have their bits in a word");
    for (u32 k = 0; k < SCAN_ITEMS && i0 + k < total; k++) {
        u64 i = i0 + k;
        u32 rec = ord[i];
        const u8 *key = at<u8>(p.heap) + at<u64>(p.koff)[rec];
        u32 len = at<u32>(p.klen)[rec];
        u64 tag = at<u64>(p.tag)[rec], seq = tag >> 8;
        u32 of = stripe(p, seq), zone = zone_of(p, key, len);
        bool is_new = i == 0 || !same_key(p, ord[i - 1], rec);
        u8 b = is_new ? NEW_KEY : 0;
        if (!is_new && stripe(p, at<u64>(p.tag)[ord[i - 1]] >> 8) == of)
            b |= HIDDEN;
        else if (is_covered(p, zone, seq, of))
            b |= COVERED;
        bits |= (u32)b << (4 * k);
        at<u32>(p.zone)[i] = zone;
        mine.v[0] += is_new;
        mine.v[1] += (tag & 0xff) == 1 && !(b & (HIDDEN | COVERED));
        in.v[0] += 1;
        in.v[1] += len + 8ull + at<u32>(p.vlen)[rec];
        in.v[2] += weigh(at<u64>(p.content)[rec], tag);
    }
    Sums<2> sum = grid_before(tile, mine);
    for (u32 k = 0; k < SCAN_ITEMS && i0 + k < total; k++) {
        u64 i = i0 + k;
        u32 rec = ord[i];
        u64 tag = at<u64>(p.tag)[rec];
        u8 b = bits >> (4 * k) & 15;
        if (b & NEW_KEY) {
            at<u32>(p.segv)[sum.v[0]] = (u32)sum.v[1];
            sum.v[0]++;
        }
        sum.v[1] += (tag & 0xff) == 1 && !(b & (HIDDEN | COVERED));
        at<u32>(p.group)[i] = (u32)(sum.v[0] - 1);
        at<u32>(p.vseen)[i] = (u32)sum.v[1];
        at<u8>(p.bits)[i] = b;
        if (i + 1 == total) at<u32>(p.segv)[sum.v[0]] = (u32)sum.v[1];
    }
    Sums<3> all;
    cta_before(in, all);
    if (threadIdx.x == 0) {
        add64(&status->entries_in, all.v[0]);
        add64(&status->bytes_in, all.v[1]);
        add64(&status->sum_in, all.v[2]);
    }
}

// D3 and D4; survivors move together, each with the logical bytes before it in the set.
KERNEL(k3_drop) {
    Tile tile = take_tile(p.ticks);
    Status *status = at<Status>(p.status);
    const u32 *ord = at<u32>(p.m_in);
    u64 total = status->faults ? 0 : status->total;
    u64 i0 = tile.first;
    Sums<2> mine = zero_sums<2>();
    Sums<6> ledger = zero_sums<6>();
    // Which of this thread's entries stay, and which of those get the number 0.
    u32 stays = 0, zeroed = 0;
    for (u32 k = 0; k < SCAN_ITEMS && i0 + k < total; k++) {
        u64 i = i0 + k;
        u32 rec = ord[i], zone = at<u32>(p.zone)[i], run = at<u32>(p.run)[rec];
        u64 tag = at<u64>(p.tag)[rec], seq = tag >> 8, content = at<u64>(p.content)[rec];
        u64 weight = weigh(content, tag);
        u8 b = at<u8>(p.bits)[i];
        u32 why = b & HIDDEN ? 1 : b & COVERED ? 2 : 0;
        if (!why && (tag & 0xff) == 0 && p.drop && is_free(p, zone, run)) {
            // D3: no value of the key survives behind it.
            if (at<u32>(p.segv)[at<u32>(p.group)[i] + 1] == at<u32>(p.vseen)[i]) why = 3;
        }
        if (why) {
            // By constants: an index that is computed would put all sums into memory.
            for (u32 rule = 0; rule < 3; rule++) ledger.v[rule] += why == rule + 1;
            ledger.v[3] += weight;
            continue;
        }
        stays |= 1u << k;
        if ((tag & 0xff) == 1 && seq != 0 && p.zero && p.drop && stripe(p, seq) == 0 &&
            is_free(p, zone, run)) {
            u64 f = at<Zone>(p.zones)[zone].fragment;
            u64 kept = f == ~0ull ? ~0ull : at<u64>(p.kept_min)[f];
            // D4: no tombstone that stays would hide the number 0.
            if (kept > seq) {
                zeroed |= 1u << k;
                ledger.v[4] += 1;
                ledger.v[5] += weigh(content, tag & 0xff) - weight;
            }
        }
        mine.v[0] += 1;
        mine.v[1] += at<u32>(p.klen)[rec] + 12ull + at<u32>(p.vlen)[rec];
    }
    Sums<2> sum = grid_before(tile, mine);
    for (u32 k = 0; k < SCAN_ITEMS && i0 + k < total; k++) {
        u64 i = i0 + k;
        u32 rec = ord[i];
        if (stays >> k & 1) {
            u64 j = sum.v[0]++, tag = at<u64>(p.tag)[rec];
            at<u32>(p.sid)[j] = rec;
            at<u64>(p.stag)[j] = zeroed >> k & 1 ? tag & 0xff : tag;
            at<u64>(p.s_at)[j] = sum.v[1];
            at<u32>(p.szone)[j] = at<u32>(p.zone)[i];
            at<u32>(p.sgroup)[j] = at<u32>(p.group)[i];
            sum.v[1] += at<u32>(p.klen)[rec] + 12ull + at<u32>(p.vlen)[rec];
        }
        if (i + 1 == total) status->survivors = sum.v[0];
    }
    Sums<6> all;
    cta_before(ledger, all);
    if (threadIdx.x == 0) {
        add64(&status->hidden, all.v[0]);
        add64(&status->covered, all.v[1]);
        add64(&status->elided, all.v[2]);
        add64(&status->sum_dropped, all.v[3]);
        add64(&status->zeroed, all.v[4]);
        add64(&status->sum_zeroed, all.v[5]);
    }
}
