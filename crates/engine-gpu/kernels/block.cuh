// Reading a restart-point block by a warp, twice. In the first pass a lane per restart group counts entries and key bytes,
// so the second one knows where each lane writes. There lanes share the groups, of which a block has few: all of a
// group's lanes read its headers, which go one after the other, each has some bytes of each key, and each has entries of
// its own for what takes longest, their hashes.
//
// Keeps: whatever the bytes are, no place outside of the payload is read and none outside of what was
// counted is written; what does not parse is a bit. K0 reads inputs with it and K8 outputs.
#pragma once
#include "layout.cuh"

// The end of a plain payload. Places in one have 31 bits, so that sums of two have room in 32: larger ones are the CPU's.
struct Tail {
    u32 entries_end;
    u32 restarts;
};

FN bool read_tail(const u8 *p, u64 len, Tail &t) {
    if (len < 4 || len >> 31) return false;
    u32 word = load32(p + len - 4);
    // Bit 29 is a hint; the host has taken blocks with other flags apart.
    t.restarts = word & 0x0fffffffu;
    if ((word & ~(0x0fffffffu | 1u << 29)) != 0 || 4ull * t.restarts > len - 4) return false;
    t.entries_end = (u32)len - 4 - 4 * t.restarts;
    return t.restarts > 0 || t.entries_end == 0;
}

// Where group `g` lies. False if it does not lie behind the group before it.
FN bool group_place(const u8 *p, const Tail &t, u32 g, u32 &from, u32 &to) {
    const u8 *restarts = p + t.entries_end;
    from = load32(restarts + 4ull * g);
    to = g + 1 < t.restarts ? load32(restarts + 4ull * (g + 1)) : t.entries_end;
    return from <= to && to <= t.entries_end && (g > 0 || from == 0);
}

// An encoded entry.
struct Entry {
    u32 shared, unshared, value;
    u32 delta_at, value_at;
};

// The three lengths of an entry.
FN bool read_lengths(const u8 *p, u32 &at, u32 end, Entry &e) {
    if (end - at >= 4) {
        // Most have one byte, or the last one two.
        u32 word = load32(p + at), more = word & 0x80808080u;
        if (!(more & 0x8080u) && (more >> 16) != 0x8080u) {
            e.shared = word & 0x7f;
            e.unshared = word >> 8 & 0x7f;
            e.value = word >> 16 & 0x7f;
            if (more & 0x800000u) e.value |= word >> 24 << 7;
            at += more & 0x800000u ? 4 : 3;
            return true;
        }
    }
    return varint32(p, at, end, e.shared) && varint32(p, at, end, e.unshared) && varint32(p, at, end, e.value);
}

// Takes the entry at `at` apart and moves behind it. The internal key before it has `before` bytes.
FN u32 read_entry(const u8 *p, u32 &at, u32 end, u32 before, Entry &e) {
    if (!read_lengths(p, at, end, e)) return FAULT_FORM;
    if (e.shared > before || (u64)e.unshared + e.value > end - at) return FAULT_FORM;
    u32 len = e.shared + e.unshared;
    if (len < 8) return FAULT_FORM;
    if (len - 8 > KEY_MOST || e.value >= VALUE_LIMIT) return FAULT_LARGE;
    e.delta_at = at;
    e.value_at = at + e.unshared;
    at = e.value_at + e.value;
    return 0;
}

// First pass over a group: its entries and the bytes of its user keys.
FN u32 count_group(const u8 *p, u32 at, u32 end, u32 &entries, u64 &bytes) {
    u32 before = 0;
    while (at < end) {
        Entry e = {};
        u32 fault = read_entry(p, at, end, before, e);
        if (fault) return fault;
        before = e.shared + e.unshared;
        entries++;
        bytes += before - 8;
    }
    return 0;
}

// A key as the second pass leaves it.
struct Seen {
    u32 at, len;  // of its user key, in `keys`
    u64 tag;  // as stored
    u32 value_at, value;
};

// Byte `i` of the internal key.
FN u8 internal_byte(const u8 *user, u32 len, u64 tag, u32 i) {
    return i < len ? user[i] : (u8)(tag >> (8 * (i - len)));
}

// The next entry of a group that was counted. `seen` is the one before it, or has length 0 and `first`
// set; its user key goes to `keys + key_at`. By `of` lanes side by side, of which this is the `me`-th: it writes the
// bytes `me`, `me + of`, ..., so what it needs of the key before was mostly written by itself.
FN void next_entry(const u8 *p, u32 &at, u32 end, u8 *keys, u32 key_at, bool first, Seen &seen, u32 me, u32 of) {
    Entry e = {};
    read_entry(p, at, end, first ? 0 : seen.len + 8, e);
    u32 user = e.shared + e.unshared - 8;
    const u8 *before = keys + seen.at, *delta = p + e.delta_at;
    u64 tag = 0;
    if (e.shared <= user && e.shared <= seen.len) {
        u8 *key = keys + key_at;
        for (u32 i = me; i < user; i += of) key[i] = i < e.shared ? before[i] : delta[i - e.shared];
        tag = load64(delta + e.unshared - 8);
    } else {
        // Keys share bytes of their tags.
        for (u32 i = 0; i < user + 8; i++) {
            u8 b = i < e.shared ? internal_byte(before, seen.len, seen.tag, i) : delta[i - e.shared];
            if (i >= user)
                tag |= (u64)b << (8 * (i - user));
            else if (i % of == me)
                keys[key_at + i] = b;
        }
    }
    seen.at = key_at;
    seen.len = user;
    seen.tag = tag;
    seen.value_at = e.value_at;
    seen.value = e.value;
}

// Order of user keys: negative, 0 or positive. They have `known` bytes in common.
FN int compare_keys(const u8 *a, u32 a_len, const u8 *b, u32 b_len, u32 known) {
    u32 n = a_len < b_len ? a_len : b_len, i = known;
    for (; i + 8 <= n; i += 8) {
        u64 x = load64(a + i), y = load64(b + i);
        if (x != y) return swap64(x) < swap64(y) ? -1 : 1;
    }
    for (; i < n; i++)
        if (a[i] != b[i]) return a[i] < b[i] ? -1 : 1;
    return a_len < b_len ? -1 : a_len > b_len ? 1 : 0;
}

// How many lanes have each of so many groups: a power of two.
FN u32 lanes_each(u32 groups) {
    u32 each = WARP;
    while (each * groups > WARP) each /= 2;
    return each;
}

// Second pass over up to 32 groups, by a warp: lane g comes with where group g lies, with the number of its first entry
// and with where its user keys go, behind `keys`. `f` is called by all lanes together, for an entry each or for none: whether there is
// one, the entry, the one before it, whether there is one before it in its group, and its number. Says the last entry
// of the group that a lane has a part of.
template <class F> FN Seen each_entry(const u8 *p, u32 groups, u32 at, u32 end, u32 no, u8 *keys, u32 key_at, F f) {
    u32 each = lanes_each(groups), g = lane() / each, me = lane() % each;
    at = __shfl_sync(ALL, at, g);
    end = __shfl_sync(ALL, end, g);
    no = __shfl_sync(ALL, no, g);
    key_at = __shfl_sync(ALL, key_at, g);
    if (g >= groups) at = end;
    Seen s = {}, mine = {}, left = {};
    bool first = true;
    while (warp_any(at < end)) {
        bool has = false, has_left = false;
        u32 my_no = 0;
        for (u32 turn = 0; turn < each; turn++) {
            if (at < end) {
                if (turn == me) left = s, has = true, has_left = !first, my_no = no;
                next_entry(p, at, end, keys, key_at, first, s, me, each);
                if (turn == me) mine = s;
                first = false;
                key_at += s.len;
                no++;
            }
            // The key is whole for all lanes.
            __syncwarp(ALL);
            if (!warp_any(at < end)) break;
        }
        f(has, mine, left, has_left, my_no);
    }
    return s;
}
