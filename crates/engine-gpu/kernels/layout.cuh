// What host and device agree on: parameters, block descriptors, the status of a set.
//
// Keeps: every field is a u64 (or a pair of u32), so both compilers lay it out alike; `src/layout.rs`
// mirrors each struct and checks its size.
#pragma once
#include "prim.cuh"

// Bits of Status::faults. Any of them gives the set to the CPU, which names what is wrong.
enum Fault : u64 {
    FAULT_SUM = 1,       // a block's checksum
    FAULT_FORM = 2,      // restart points, varints, lengths
    FAULT_COUNT = 4,     // entries or key bytes differ from what was announced
    FAULT_KIND = 8,      // neither a value nor a delete
    FAULT_ORDER = 16,    // entries of a run, or of a set behind the carry
    FAULT_LARGE = 32,    // a key above 64 KiB, a value from 256 MiB, a block from 4 GiB
    FAULT_ROOM = 64,     // more output than the arena has room for
    FAULT_PROVE = 128,   // the finished blocks do not read back as they were planned
    FAULT_DECODE = 256,  // a compressed block is none of the size that it announces
};

constexpr u32 KEY_MOST = 64 << 10;
constexpr u32 VALUE_LIMIT = 256 << 20;
constexpr u64 NO_SEQ = ~0ull;

// An input block: plain, or compressed with LZ4.
struct BlockIn {
    u64 at;         // where its payload starts: in the input, or among those that were decoded
    u64 stored_at;  // where it lies in the input
    u64 heap_at;    // where its user keys go
    u64 seq;        // number of all entries, or NO_SEQ
    u32 len;        // bytes of the payload
    u32 stored;     // bytes of it in the input; type byte and sum follow
    u32 modifier;   // added to the raw sum
    u32 entries;    // as announced
    u32 key_bytes;  // of its user keys, as announced
    u32 first;      // its first record
    u32 run;
    u32 codec;      // its type byte; 0 is plain
};

// A run: its records, and those inside both ranges.
struct RunIn {
    u64 run, first, count;
    u64 from, to;  // made by K0b
};

// Lists to be merged: runs after trimming, or groups of 64 runs.
struct List {
    u32 at, count;
};

// A zone of keys (`merge::offload::ZoneRow`).
struct Zone {
    u64 key_at, key_len;
    u64 form;      // 0 before every key, 1 at the key, 2 just after it
    u64 fragment;  // ~0 for none
    u64 hard, soft;
};

// One end of a range.
struct Bound {
    u64 at, len;
    u64 form;  // 0 absent, 1 excluded, 2 included
};

// A block of the output; the last one stays open.
struct BlockOut {
    u64 at, stored;        // place in the arena; bytes, with trailer if it is finished
    u64 entry_bytes;       // of its encoded entries
    u64 entries;           // with those that were open before
    u64 keys_at, first_len, last_len;  // internal keys; a length of 0 is for the host to know
    u64 hash_from, hash_to;
    u64 heap_at, heap_len;  // scratch of K8: its user keys
    u64 file;               // a file starts at it
    // Of a finished one: where it was plain, bytes of its plain payload, and its type byte.
    u64 slot, plain, codec;
    // By K8.
    u64 seen_entries, raw_key, raw_value, weight, min_seq, max_seq, values, deletes;
};

struct Status {
    u64 faults;
    u64 entries_in, bytes_in, sum_in;
    u64 hidden, covered, elided, sum_dropped;
    u64 zeroed, sum_zeroed;
    u64 total;      // entries merged
    u64 survivors;
    u64 segments;   // blocks, the open one included
    u64 out_bytes, key_bytes, hashes;
    u64 open_bytes;  // of the last block, which stays open
    u64 entries_out, sum_out;  // of finished blocks, by K8
};

struct Params {
    // Input.
    u64 in, blocks, n_blocks, counts, plain;
    u64 n_records, heap, heap_bytes, prefix;
    u64 runs, n_runs, bound_keys, bounds;
    // Records.
    u64 hi, lo, tag, hash, content, src, vlen, koff, klen, run;
    // The merge in hand.
    u64 lists, list_out, n_lists, list_first, m_in, m_out, splits, ord;
    // Recipe.
    u64 snapshots, n_snapshots, zones, n_zones, zone_keys, free, words, fragments, tombs, kept_min;
    u64 drop, zero, filter, block_shift, file_bytes, interval;
    // Carry.
    u64 started, has_open, is_ended, s, candidate, file, hard, soft;
    u64 open_bytes, open_len, open_entries, open_key_bytes, open_restarts, n_open_restarts;
    u64 last_key, last_len, has_last_hash, last_hash;
    // Drop.
    u64 group, vseen, segv, zone, bits;
    u64 sid, stag, s_at, szone, sgroup;
    // Layout.
    u64 bid, bstart, bfile, shared, place, hpos, kpos;
    u64 hashes_out, keys_out, keys_room, blocks_out, blocks_room, arena, arena_room, packed;
    u64 ticks, tick_words, status;
};
