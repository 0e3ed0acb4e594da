// Reading a restart-point block by a warp: a lane per restart group, twice. The first pass counts
// entries and key bytes, so the second knows where each lane writes.
//
// Keeps: whatever the bytes are, no place outside of the payload is read and none outside of what was
// counted is written; what does not parse is a bit. K0 reads inputs with it and K8 outputs.
#pragma once
#include "layout.cuh"

// The end of a plain payload.
struct Tail {
    u64 entries_end;
    u32 restarts;
};

FN bool read_tail(const u8 *p, u64 len, Tail &t) {
    if (len < 4) return false;
    u32 word = load32(p + len - 4);
    // Bit 29 is a hint; the host has taken blocks with other flags apart.
    t.restarts = word & 0x0fffffffu;
    if ((word & ~(0x0fffffffu | 1u << 29)) != 0 || 4ull * t.restarts > len - 4) return false;
    t.entries_end = len - 4 - 4ull * t.restarts;
    return t.restarts > 0 || t.entries_end == 0;
}

// Where group `g` lies. False if it does not lie behind the group before it.
FN bool group_place(const u8 *p, const Tail &t, u32 g, u64 &from, u64 &to) {
    const u8 *restarts = p + t.entries_end;
    from = load32(restarts + 4ull * g);
    to = g + 1 < t.restarts ? load32(restarts + 4ull * (g + 1)) : t.entries_end;
    return from <= to && to <= t.entries_end && (g > 0 || from == 0);
}

// An encoded entry.
struct Entry {
    u32 shared, unshared, value;
    u64 delta_at, value_at;
};

// Takes the entry at `at` apart and moves behind it. The internal key before it has `before` bytes.
FN u64 read_entry(const u8 *p, u64 &at, u64 end, u64 before, Entry &e) {
    if (!varint32(p, at, end, e.shared) || !varint32(p, at, end, e.unshared) ||
        !varint32(p, at, end, e.value))
        return FAULT_FORM;
    u64 len = (u64)e.shared + e.unshared;
    if (e.shared > before || len < 8 || (u64)e.unshared + e.value > end - at) return FAULT_FORM;
    if (len - 8 > KEY_MOST || e.value >= VALUE_LIMIT) return FAULT_LARGE;
    e.delta_at = at;
    e.value_at = at + e.unshared;
    at = e.value_at + e.value;
    return 0;
}

// First pass over a group: its entries and the bytes of its user keys.
FN u64 count_group(const u8 *p, u64 at, u64 end, u64 &entries, u64 &bytes) {
    u64 before = 0;
    while (at < end) {
        Entry e = {};
        u64 fault = read_entry(p, at, end, before, e);
        if (fault) return fault;
        before = (u64)e.shared + e.unshared;
        entries++;
        bytes += before - 8;
    }
    return 0;
}

// A key as the second pass leaves it.
struct Seen {
    u64 at;  // of its user key, in `keys`
    u32 len;
    u64 tag;  // as stored
    u64 value_at;
    u32 value;
};

// Byte `i` of the internal key.
FN u8 internal_byte(const u8 *user, u32 len, u64 tag, u32 i) {
    return i < len ? user[i] : (u8)(tag >> (8 * (i - len)));
}

// The next entry of a group that was counted. `seen` is the one before it, or has length 0 and `first`
// set; its user key goes to `keys + key_at`.
FN void next_entry(const u8 *p, u64 &at, u64 end, u8 *keys, u64 key_at, bool first, Seen &seen) {
    Entry e = {};
    read_entry(p, at, end, first ? 0 : (u64)seen.len + 8, e);
    u32 user = e.shared + e.unshared - 8;
    u64 tag = 0;
    for (u32 i = 0; i < user + 8; i++) {
        u8 b = i < e.shared ? internal_byte(keys + seen.at, seen.len, seen.tag, i)
                            : p[e.delta_at + i - e.shared];
        if (i < user)
            keys[key_at + i] = b;
        else
            tag |= (u64)b << (8 * (i - user));
    }
    seen.at = key_at;
    seen.len = user;
    seen.tag = tag;
    seen.value_at = e.value_at;
    seen.value = e.value;
}

// Order of user keys: negative, 0 or positive. They have `known` bytes in common.
FN int compare_keys(const u8 *a, u32 a_len, const u8 *b, u32 b_len, u32 known) {
    u32 n = a_len < b_len ? a_len : b_len;
    for (u32 i = known; i < n; i++)
        if (a[i] != b[i]) return a[i] < b[i] ? -1 : 1;
    return a_len < b_len ? -1 : a_len > b_len ? 1 : 0;
}
