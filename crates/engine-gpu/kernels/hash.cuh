// Hashes: XXH3 of blocks by a warp, XXPH3 of keys and the content weight by a thread.
//
// Keeps: the digests of `format::checksum`, `format::xxph3` and `format::weight`, at every length.
// Sources: Yann Collet's XXH3 as in xxHash 0.8 (seed 0, its own secret); its preview of 2019 as RocksDB
// froze it (XXPH3: other constants, other short forms); wyhash's folded multiplication for the weight.
// Between two scrambles XXH3 is a plain sum, so 32 lanes take four stripes of eight words at a time.
#pragma once
#include "prim.cuh"

constexpr u64 P32_1 = 0x9E3779B1ull, P32_2 = 0x85EBCA77ull, P32_3 = 0xC2B2AE3Dull;
constexpr u64 P64_1 = 0x9E3779B185EBCA87ull, P64_2 = 0xC2B2AE3D27D4EB4Full;
constexpr u64 P64_3 = 0x165667B19E3779F9ull, P64_4 = 0x85EBCA77C2B2AE63ull;
constexpr u64 P64_5 = 0x27D4EB2F165667C5ull;

CONSTANT ALIGNED8 u8 SECRET[192] = {
    0xb8, 0xfe, 0x6c, 0x39, 0x23, 0xa4, 0x4b, 0xbe, 0x7c, 0x01, 0x81, 0x2c, 0xf7, 0x21, 0xad, 0x1c,
    0xde, 0xd4, 0x6d, 0xe9, 0x83, 0x90, 0x97, 0xdb, 0x72, 0x40, 0xa4, 0xa4, 0xb7, 0xb3, 0x67, 0x1f,
    0xcb, 0x79, 0xe6, 0x4e, 0xcc, 0xc0, 0xe5, 0x78, 0x82, 0x5a, 0xd0, 0x7d, 0xcc, 0xff, 0x72, 0x21,
    0xb8, 0x08, 0x46, 0x74, 0xf7, 0x43, 0x24, 0x8e, 0xe0, 0x35, 0x90, 0xe6, 0x81, 0x3a, 0x26, 0x4c,
    0x3c, 0x28, 0x52, 0xbb, 0x91, 0xc3, 0x00, 0xcb, 0x88, 0xd0, 0x65, 0x8b, 0x1b, 0x53, 0x2e, 0xa3,
    0x71, 0x64, 0x48, 0x97, 0xa2, 0x0d, 0xf9, 0x4e, 0x38, 0x19, 0xef, 0x46, 0xa9, 0xde, 0xac, 0xd8,
    0xa8, 0xfa, 0x76, 0x3f, 0xe3, 0x9c, 0x34, 0x3f, 0xf9, 0xdc, 0xbb, 0xc7, 0xc7, 0x0b, 0x4f, 0x1d,
    0x8a, 0x51, 0xe0, 0x4b, 0xcd, 0xb4, 0x59, 0x31, 0xc8, 0x9f, 0x7e, 0xc9, 0xd9, 0x78, 0x73, 0x64,
    0xea, 0xc5, 0xac, 0x83, 0x34, 0xd3, 0xeb, 0xc3, 0xc5, 0x81, 0xa0, 0xff, 0xfa, 0x13, 0x63, 0xeb,
    0x17, 0x0d, 0xdd, 0x51, 0xb7, 0xf0, 0xda, 0x49, 0xd3, 0x16, 0x55, 0x26, 0x29, 0xd4, 0x68, 0x9e,
    0x2b, 0x16, 0xbe, 0x58, 0x7d, 0x47, 0xa1, 0xfc, 0x8f, 0xf8, 0xb8, 0xd1, 0x7a, 0xd0, 0x31, 0xce,
    0x45, 0xcb, 0x3a, 0x8f, 0x95, 0x16, 0x04, 0x28, 0xaf, 0xd7, 0xfb, 0xca, 0xbb, 0x4b, 0x40, 0x7e,
};
constexpr u32 SECRET_LEN = 192, STRIPE = 64, STRIPES = 16;

FN u64 secret64(u32 i) {
    return load64(SECRET + i);
}
FN u64 rotl64(u64 v, u32 n) {
    return v << n | v >> (64 - n);
}
// The last step of both functions.
FN u64 avalanche(u64 h) {
    h ^= h >> 37;
    h *= 0x165667919E3779F9ull;
    return h ^ h >> 32;
}
// That of XXPH3: another prime.
FN u64 avalanche_old(u64 h) {
    h ^= h >> 37;
    h *= P64_3;
    return h ^ h >> 32;
}
FN u64 avalanche_64(u64 h) {
    h ^= h >> 33;
    h *= P64_2;
    h ^= h >> 29;
    h *= P64_3;
    return h ^ h >> 32;
}
FN u64 mix16(const u8 *p, u32 s) {
    return fold64(load64(p) ^ secret64(s), load64(p + 8) ^ secret64(s + 8));
}

// XXH3 of up to 240 bytes.
APART u64 xxh3_short(const u8 *p, u32 n) {
    if (n == 0) return avalanche_64(secret64(56) ^ secret64(64));
    if (n < 4) {
        u32 v = (u32)p[0] << 16 | (u32)p[n / 2] << 24 | (u32)p[n - 1] | n << 8;
        return avalanche_64((u64)v ^ (u64)(load32(SECRET) ^ load32(SECRET + 4)));
    }
    if (n < 9) {
        u64 h = (u64)load32(p + n - 4) + ((u64)load32(p) << 32);
        h ^= secret64(8) ^ secret64(16);
        h ^= rotl64(h, 49) ^ rotl64(h, 24);
        h *= 0x9FB21C651E98DF25ull;
        h ^= (h >> 35) + n;
        h *= 0x9FB21C651E98DF25ull;
        return h ^ h >> 28;
    }
    if (n < 17) {
        u64 lo = load64(p) ^ (secret64(24) ^ secret64(32));
        u64 hi = load64(p + n - 8) ^ (secret64(40) ^ secret64(48));
        return avalanche(n + swap64(lo) + hi + fold64(lo, hi));
    }
    u64 acc = n * P64_1;
    if (n <= 128) {
        for (u32 i = 0; i == 0 || n > 32 * i; i++)
            acc += mix16(p + 16 * i, 32 * i) + mix16(p + n - 16 - 16 * i, 32 * i + 16);
        return avalanche(acc);
    }
    for (u32 i = 0; i < 8; i++) acc += mix16(p + 16 * i, 16 * i);
    acc = avalanche(acc);
    for (u32 i = 8; i < n / 16; i++) acc += mix16(p + 16 * i, 16 * (i - 8) + 3);
    return avalanche(acc + mix16(p + n - 16, 136 - 17));
}

FN u64 first_acc(u32 i) {
    return i == 0   ? P32_3
           : i == 1 ? P64_1
           : i == 2 ? P64_2
           : i == 3 ? P64_3
           : i == 4 ? P64_4
           : i == 5 ? P32_2
           : i == 6 ? P64_5
                    : P32_1;
}

// What each lane needs of the secret: for word `lane % 8` of the stripes `lane / 8`, and of each fourth behind it, of 1 KiB;
// for the scramble, and for the last stripe. Lanes that read different words of constants wait for one another,
// so a CTA reads them once for all its blocks.
constexpr u32 FOURTHS = STRIPES / 4;
struct Secrets {
    u64 stripe[FOURTHS][WARP], scramble[WARP], last[WARP];
};
// Every thread of the CTA calls it.
FN const Secrets &secrets() {
    SHARED Secrets s;
    u32 l = threadIdx.x, word = l % 8, four = l / 8;
    if (l < WARP) {
        for (u32 i = 0; i < FOURTHS; i++) s.stripe[i][l] = secret64(8 * (four + 4 * i + word));
        s.scramble[l] = secret64(SECRET_LEN - STRIPE + 8 * word);
        s.last[l] = secret64(SECRET_LEN - STRIPE - 7 + 8 * word);
    }
    __syncthreads();
    return s;
}

// What one word of a stripe adds: to its own accumulator, and to its neighbour's in `cross`.
FN u64 stripe_word(const u8 *at, u64 secret, u64 &cross) {
    u64 v = load64(at), key = v ^ secret;
    cross += v;
    return (key & 0xffffffffu) * (key >> 32);
}

// XXH3 of `n` bytes by a warp; every lane gets it. Lane l has word l % 8 of every fourth stripe.
FN u64 xxh3_warp(const u8 *p, u64 n, const Secrets &secret) {
    if (n <= 240) return xxh3_short(p, (u32)n);
    u32 word = lane() % 8, four = lane() / 8;
    u64 acc = first_acc(word), whole = (n - 1) / 1024;
    for (u64 block = 0; block <= whole; block++) {
        const u8 *from = p + 1024 * block + STRIPE * four + 8 * word;
        u32 stripes = block < whole ? STRIPES : (u32)((n - 1 - 1024 * whole) / STRIPE);
        u64 own = 0, cross = 0;
        UNROLL
        for (u32 i = 0; i < FOURTHS; i++)
            if (four + 4 * i < stripes) own += stripe_word(from + 4 * STRIPE * i, secret.stripe[i][lane()], cross);
        if (block == whole && four == 3) own += stripe_word(p + n - STRIPE + 8 * word, secret.last[lane()], cross);
        own += __shfl_xor_sync(ALL, cross, 1);
        own += __shfl_xor_sync(ALL, own, 8);
        own += __shfl_xor_sync(ALL, own, 16);
        acc += own;
        if (block < whole) acc = (acc ^ acc >> 47 ^ secret.scramble[lane()]) * P32_1;
    }
    // Pairs of accumulators: lane 2i has both.
    u64 other = __shfl_xor_sync(ALL, acc, 1);
    u64 part = 0;
    if (lane() < 8 && lane() % 2 == 0)
        part = fold64(acc ^ secret64(11 + 8 * lane()), other ^ secret64(19 + 8 * lane()));
    return avalanche(n * P64_1 + warp_sum(part));
}
// As RocksDB stores it for a block with this type byte, 0 for one that is not compressed.
FN u32 block_sum(const u8 *payload, u64 n, u64 type, const Secrets &secret) {
    return (u32)xxh3_warp(payload, n, secret) ^ (u32)type * 0x6b9083d9u;
}

APART u64 xxph3_tiny(u32 a, u32 b, u32 c, u32 n) {
    u64 v = a | b << 8 | c << 16 | n << 24;
    return avalanche_old((v ^ (secret64(0) & 0xffffffffu)) * P64_1);
}
APART u64 xxph3_long(const u8 *p, u32 n) {
    u64 acc[8];
    for (u32 i = 0; i < 8; i++) acc[i] = first_acc(i);
    for (u32 s = 0; s < n / STRIPE; s++) {
        for (u32 i = 0; i < 8; i++) {
            u64 v = load64(p + STRIPE * s + 8 * i), key = v ^ secret64(8 * (s % STRIPES) + 8 * i);
            acc[i] += v + (key & 0xffffffffu) * (key >> 32);
        }
        if (s % STRIPES == STRIPES - 1)
            for (u32 i = 0; i < 8; i++)
                acc[i] = (acc[i] ^ acc[i] >> 47 ^ secret64(SECRET_LEN - STRIPE + 8 * i)) * P32_1;
    }
    // The last stripe ends with the input and may overlap the one before it.
    if (n % STRIPE)
        for (u32 i = 0; i < 8; i++) {
            u64 v = load64(p + n - STRIPE + 8 * i);
            u64 key = v ^ secret64(SECRET_LEN - STRIPE - 7 + 8 * i);
            acc[i] += v + (key & 0xffffffffu) * (key >> 32);
        }
    u64 h = n * P64_1;
    for (u32 i = 0; i < 4; i++)
        h += fold64(acc[2 * i] ^ secret64(11 + 16 * i), acc[2 * i + 1] ^ secret64(19 + 16 * i));
    return avalanche_old(h);
}
// Hash of a filter key that has not 9 to 16 bytes.
FN u64 xxph3_other(const u8 *p, u32 n) {
    if (n == 0) return fold64(secret64(0), P64_2);
    if (n == 1) return xxph3_tiny(p[0], p[0], p[0], 1);
    if (n == 2) return xxph3_tiny(p[0], p[1], p[1], 2);
    if (n == 3) return xxph3_tiny(p[0], p[1], p[2], 3);
    if (n <= 8) {
        u64 key = ((u64)load32(p) | (u64)load32(p + n - 4) << 32) ^ secret64(0);
        u64 h = n + (key ^ key >> 51) * P32_1;
        return avalanche_old((h ^ h >> 47) * P64_2);
    }
    u64 acc = n * P64_1;
    if (n <= 128) {
        for (u32 i = 0; i == 0 || n > 32 * i; i++)
            acc += mix16(p + 16 * i, 32 * i) + mix16(p + n - 16 - 16 * i, 32 * i + 16);
        return avalanche_old(acc);
    }
    if (n <= 240) {
        for (u32 i = 0; i < 8; i++) acc += mix16(p + 16 * i, 16 * i);
        acc = avalanche_old(acc);
        for (u32 i = 8; i < n / 16; i++) acc += mix16(p + 16 * i, 16 * (i - 8) + 3);
        return avalanche_old(acc + mix16(p + n - 16, 136 - 17));
    }
    return xxph3_long(p, n);
}
APART u64 xxph3_apart(const u8 *p, u32 n) {
    return xxph3_other(p, n);
}
// Hash of any filter key; those of 9 to 16 bytes, as most have, without a call. Others are hashed apart, or where they are:
// a kernel has registers to spare for one of the two.
template <bool is_apart> FN u64 xxph3(const u8 *p, u32 n) {
    if (n < 9 || n > 16) return is_apart ? xxph3_apart(p, n) : xxph3_other(p, n);
    u64 lo = load64(p) ^ secret64(0), hi = load64(p + n - 8) ^ secret64(8);
    return avalanche_old(n + lo + hi + fold64(lo, hi));
}

constexpr u64 K_0 = 0xa0761d6478bd642full, K_1 = 0xe7037ed1a0b428dbull;

FN u64 weigh_round(u64 state, const u8 *a, const u8 *b) {
    u64 x = state ^ load64(a), y = K_0 ^ load64(a + 8);
    return fold64(x * y ^ load64(b), high64(x, y) ^ load64(b + 8));
}
FN u64 weigh_ends(u64 state, const u8 *p, u64 n, u32 half) {
    for (u32 i = 0; i < half; i += 16) state = weigh_round(state, p + i, p + n - half + i);
    return state;
}
APART u64 weigh_long(u64 start, const u8 *p, u64 n) {
    u64 state = start, done = 0;
    if (n >= 256) {
        u64 l[4] = {start, start ^ K_0, start ^ K_1, start ^ K_0 ^ K_1};
        for (; done + 128 <= n; done += 128)
            for (u32 i = 0; i < 4; i++)
                l[i] = weigh_round(l[i], p + done + 32 * i, p + done + 32 * i + 16);
        state = fold64(l[0] ^ K_0, l[1]) ^ fold64(l[2], l[3] ^ K_1);
    }
    for (; done + 32 <= n; done += 32) state = weigh_round(state, p + done, p + done + 16);
    return weigh_round(state, p + n - 32, p + n - 16);
}
// What an entry holds but for its tag.
FN u64 content(u64 hash, const u8 *p, u64 n) {
    u64 start = hash ^ n * K_1;
    if (n < 16) {
        u64 a = 0, b = 0;
        if (n >= 8) {
            a = load64(p), b = load64(p + n - 8);
        } else if (n >= 4) {
            a = load32(p), b = load32(p + n - 4);
        } else {
            for (u64 i = 0; i < n; i++) a = a << 8 | p[i];
        }
        return fold64(start ^ a, K_0 ^ b);
    }
    if (n <= 32) return weigh_ends(start, p, n, 16);
    if (n <= 64) return weigh_ends(start, p, n, 32);
    if (n <= 128) return weigh_ends(start, p, n, 64);
    return weigh_long(start, p, n);
}
FN u64 weigh(u64 content, u64 tag) {
    return fold64(content ^ tag, K_1);
}
