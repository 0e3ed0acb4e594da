// LZ4 blocks as RocksDB stores them: the size of the payload as a varint, then LZ4's block format.
//
// Keeps: whatever the bytes are, decoding reads nothing outside of them and writes nothing outside of the size that
// was announced. It takes what `lz4_flex` takes on the host, with the same bytes, and refuses the rest: every
// sequence fits, offsets are neither 0 nor before the first byte, literals end the block, and the size is met.
// Sequences follow one another, so all lanes of a warp read the same ones, and share the bytes to copy.
// Encoding makes the bytes of `lz4_flex` 0.14 on a machine of 64 bits, little-endian: a table of 4,096 positions by hash, of
// 16 bits with a hash of four bytes for blocks below 65,535 bytes, else of 32 bits with a hash of five; steps that grow
// after 32 misses; matches made longer backwards first. One lane encodes a block, many blocks go on side by side.
//
// Worked example: `30 61 62 63 03 00 10 64` is a token for three literals `abc` and a match of four, which lies
// three bytes back and so goes over its own end (`abca`), then a token for one literal, `d`: `abcabcad`.
#pragma once
#include "prim.cuh"

// Type bytes of blocks: the same format from a fast and from a slow encoder.
constexpr u64 LZ4 = 4, LZ4HC = 5;
constexpr u32 LZ4_MATCH = 4;

// What goes on behind a nibble of 15. False if it is cut short.
FN bool lz4_length(const u8 *p, u64 &at, u64 end, u64 &n) {
    for (;;) {
        if (at >= end) return false;
        u8 b = p[at++];
        n += b;
        if (b != 255) return true;
    }
}

// A sequence: literals, and a match unless it is the last one.
struct Sequence {
    u64 literals_at, literals, offset, match;
};

// Takes the sequence at `at` apart and moves behind it; the output has `made` of `size` bytes. False if it does not
// fit.
FN bool lz4_sequence(const u8 *p, u64 &at, u64 end, u64 made, u64 size, Sequence &s) {
    if (at >= end) return false;
    u8 token = p[at++];
    s.literals = token >> 4;
    s.offset = s.match = 0;
    if (s.literals == 15 && !lz4_length(p, at, end, s.literals)) return false;
    if (s.literals > end - at || s.literals > size - made) return false;
    s.literals_at = at;
    at += s.literals;
    if (at == end) return true;
    made += s.literals;
    if (end - at < 2) return false;
    s.offset = (u64)p[at] | (u64)p[at + 1] << 8;
    at += 2;
    s.match = LZ4_MATCH + (token & 15);
    if ((token & 15) == 15 && !lz4_length(p, at, end, s.match)) return false;
    return s.offset != 0 && s.offset <= made && s.match <= size - made;
}

// Decodes a stored payload of `n` bytes into `size` bytes, by a warp. False if it is no LZ4 block of that size.
FN bool lz4_decode(const u8 *p, u64 n, u8 *out, u64 size) {
    u64 at = 0, made = 0;
    u32 announced;
    if (!varint32(p, at, n, announced) || announced != size) return false;
    for (;;) {
        Sequence s;
        if (!lz4_sequence(p, at, n, made, size, s)) return false;
        copy_by_warp(out + made, p + s.literals_at, s.literals);
        made += s.literals;
        if (s.match == 0) return made == size;
        // What the match repeats, other lanes may just have written.
        __syncwarp(ALL);
        const u8 *from = out + made - s.offset;
        for (u64 i = lane(); i < s.match; i += WARP) out[made + i] = from[i < s.offset ? i : i % s.offset];
        made += s.match;
    }
}

constexpr u32 LZ4_SLOTS = 4096;
// Blocks from here on have the larger table.
constexpr u64 LZ4_LARGE = 65535;
// How far back a match may lie; bytes at the end in which none begins, and which none reaches; the shortest block that
// is searched.
constexpr u64 LZ4_FAR = 65535, LZ4_NO_START = 12, LZ4_NO_MATCH = 6, LZ4_LEAST = 13;
// Misses after which steps grow by one, and again after as many.
constexpr u32 LZ4_PATIENCE = 32;

FN u32 lz4_slot(const u8 *p, const u16 *) {
    return load32(p) * 2654435761u >> 20;
}
FN u32 lz4_slot(const u8 *p, const u32 *) {
    return (u32)((load64(p) << 24) * 889523592379ull >> 52);
}

// Bytes of what goes on behind a nibble.
FN u64 lz4_more(u64 n) {
    return n < 15 ? 0 : 1 + (n - 15) / 255;
}
FN void lz4_put_more(u8 *out, u64 &at, u64 n) {
    if (n < 15) return;
    for (n -= 15; n >= 255; n -= 255) out[at++] = 255;
    out[at++] = (u8)n;
}

// Writes a sequence to `out + at` and moves behind it; `match` counts from four, and an offset of 0 is for none. False
// if the output would have more than `most` bytes.
FN bool lz4_put(const u8 *literals, u64 n, u64 offset, u64 match, u8 *out, u64 &at, u64 most) {
    if (1 + lz4_more(n) + n + (offset ? 2 + lz4_more(match) : 0) > most - at) return false;
    out[at++] = (u8)((n < 15 ? n : 15) << 4 | (match < 15 ? match : 15));
    lz4_put_more(out, at, n);
    for (u64 i = 0; i < n; i++) out[at + i] = literals[i];
    at += n;
    if (!offset) return true;
    out[at++] = (u8)offset;
    out[at++] = (u8)(offset >> 8);
    lz4_put_more(out, at, match);
    return true;
}

// How many bytes are alike at both places, of `most`; `known` are.
FN u64 lz4_alike(const u8 *a, const u8 *b, u64 known, u64 most) {
    for (; known + 8 <= most; known += 8) {
        u64 difference = load64(a + known) ^ load64(b + known);
        if (difference) return known + first_byte(difference);
    }
    while (known < most && a[known] == b[known]) known++;
    return known;
}

// Encodes `n` bytes, with their size before them, by a thread; `seen` is zeroed. The bytes that takes, or 0 if they are more
// than `most`.
template <class T> FN u64 lz4_encode_by_one(const u8 *in, u64 n, u8 *out, u64 most, T *seen) {
    if (most < 5) return 0;
    u64 at = put_varint(out, (u32)n), start = 0, cur = 1;
    if (n >= LZ4_LEAST) seen[lz4_slot(in, seen)] = 0;
    while (n >= LZ4_LEAST) {
        u64 next = cur, before = 0;
        bool found = false;
        for (u32 tries = LZ4_PATIENCE; !found; tries++) {
            cur = next;
            next += tries / LZ4_PATIENCE;
            if (cur > n - LZ4_NO_START) break;
            T *slot = seen + lz4_slot(in + cur, seen);
            before = *slot;
            *slot = (T)cur;
            found = cur - before <= LZ4_FAR && load32(in + before) == load32(in + cur);
        }
        if (!found) break;
        u64 offset = cur - before, match = LZ4_MATCH;
        for (; before > 0 && cur > start && in[cur - 1] == in[before - 1]; before--) cur--;
        match = lz4_alike(in + cur, in + before, match, n - LZ4_NO_MATCH - cur);
        if (!lz4_put(in + start, cur - start, offset, match - LZ4_MATCH, out, at, most)) return 0;
        cur += match;
        seen[lz4_slot(in + cur - 2, seen)] = (T)(cur - 2);
        start = cur;
    }
    return lz4_put(in + start, n - start, 0, 0, out, at, most) ? at : 0;
}

// The same by a warp, whose first lane does it; every lane gets the result, and sees the bytes.
template <class T> FN u64 lz4_encode(const u8 *in, u64 n, u8 *out, u64 most, T *seen) {
    for (u32 i = lane(); i < LZ4_SLOTS; i += WARP) seen[i] = 0;
    __syncwarp(ALL);
    u64 len = lane() == 0 ? lz4_encode_by_one(in, n, out, most, seen) : 0;
    __syncwarp(ALL);
    return __shfl_sync(ALL, len, 0);
}
