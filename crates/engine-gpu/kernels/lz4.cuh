// LZ4 blocks as RocksDB stores them: the size of the payload as a varint, then LZ4's block format.
//
// Keeps: whatever the bytes are, decoding reads nothing outside of them and writes nothing outside of the size that
// was announced. It takes what `lz4_flex` takes on the host, with the same bytes, and refuses the rest: every
// sequence fits, offsets are neither 0 nor before the first byte, literals end the block, and the size is met.
// Sequences follow one another, so all lanes of a warp read the same ones, and share the bytes to copy.
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
        for (u64 i = lane(); i < s.literals; i += WARP) out[made + i] = p[s.literals_at + i];
        made += s.literals;
        if (s.match == 0) return made == size;
        // What the match repeats, other lanes may just have written.
        __syncwarp(ALL);
        const u8 *from = out + made - s.offset;
        for (u64 i = lane(); i < s.match; i += WARP) out[made + i] = from[i < s.offset ? i : i % s.offset];
        made += s.match;
    }
}
