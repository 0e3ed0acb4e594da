//! What host and device agree on, as `kernels/layout.cuh` has it: structs of 64-bit words, and a bump
//! allocator for the arrays of a set.
//!
//! Keeps: every field is one word, or half of one that is whole, so there is nothing to pad; the emulator's sizes are compared with
//! these when a device of it is made.

/// A struct whose fields are 64-bit words, in order.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident: $($field:ident)*) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub(crate) struct $name {
            $(pub(crate) $field: u64,)*
        }
        impl $name {
            /// Its size in words.
            pub(crate) const WORDS: usize = [$(stringify!($field)),*].len();
            /// Its size in bytes.
            #[allow(dead_code, reason = "of some it is known to the emulator's check alone")]
            pub(crate) const BYTES: usize = 8 * $name::WORDS;
            /// Its words, in order.
            #[allow(dead_code, reason = "what only the device writes is only read here")]
            pub(crate) fn words(&self) -> [u64; $name::WORDS] {
                [$(self.$field),*]
            }
            /// Reads it; zeros stand for what is missing.
            #[allow(dead_code, reason = "what only the host writes is only written here")]
            pub(crate) fn read(bytes: &[u8]) -> $name {
                let mut words = bytes.chunks_exact(8).map(|word| {
                    word.first_chunk::<8>().map_or(0, |word| u64::from_le_bytes(*word))
                });
                $name { $($field: words.next().unwrap_or_default(),)* }
            }
        }
    };
}

/// An input block. Its row goes up with it, so fields are as narrow as they may be; two narrow ones share a word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct BlockIn {
    pub(crate) at: u64,
    pub(crate) stored_at: u64,
    pub(crate) heap_at: u64,
    pub(crate) seq: u64,
    pub(crate) len: u32,
    pub(crate) stored: u32,
    pub(crate) modifier: u32,
    pub(crate) entries: u32,
    pub(crate) key_bytes: u32,
    pub(crate) first: u32,
    pub(crate) run: u32,
    pub(crate) codec: u32,
}

impl BlockIn {
    /// Its size in bytes.
    pub(crate) const BYTES: usize = 64;
    /// Its words, in order; of two fields of a word the first one is the lower half.
    pub(crate) fn words(&self) -> [u64; BlockIn::BYTES / 8] {
        let word = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
        [
            self.at,
            self.stored_at,
            self.heap_at,
            self.seq,
            word(self.len, self.stored),
            word(self.modifier, self.entries),
            word(self.key_bytes, self.first),
            word(self.run, self.codec),
        ]
    }
}

words! {
    /// A run of the set.
    RunIn: run first count from to
}
words! {
    /// A zone of keys.
    Zone: key_at key_len form fragment hard soft
}
words! {
    /// One end of a range: 0 absent, 1 excluded, 2 included.
    Bound: at len form
}
words! {
    /// A block of the output; the last one stays open.
    BlockOut: at stored entry_bytes entries keys_at first_len last_len hash_from hash_to heap_at
        heap_len file slot plain codec seen_entries raw_key raw_value weight min_seq max_seq values deletes
}
words! {
    /// What became of a set.
    Status: faults entries_in bytes_in sum_in hidden covered elided sum_dropped zeroed sum_zeroed
        total survivors segments out_bytes key_bytes hashes open_bytes entries_out sum_out
}
words! {
    /// A tile's line in a scan; as large as what lies before the first one.
    Tick: state own_0 own_1 own_2 whole_0 whole_1 whole_2
}
words! {
    /// What every kernel is given.
    Params: input blocks n_blocks counts plain
        n_records heap heap_bytes prefix
        runs n_runs bound_keys bounds
        hi lo tag hash content src vlen koff klen run
        lists list_out n_lists list_first m_in m_out splits ord
        snapshots n_snapshots zones n_zones zone_keys free words fragments tombs kept_min
        drop zero filter block_shift file_bytes interval
        started has_open is_ended s candidate file hard soft
        open_bytes open_len open_entries open_key_bytes open_restarts n_open_restarts
        last_key last_len has_last_hash last_hash
        group vseen segv zone bits
        sid stag s_at szone sgroup
        bid bstart bfile shared place hpos kpos
        hashes_out keys_out keys_room blocks_out blocks_room arena arena_room packed
        ticks tick_words status
}

/// Sizes in bytes of all structs that host and device share, as `lithify_shape` in the image has them.
pub(crate) const fn sizes() -> [u64; 8] {
    [
        Params::BYTES as u64,
        BlockIn::BYTES as u64,
        RunIn::BYTES as u64,
        Zone::BYTES as u64,
        Bound::BYTES as u64,
        BlockOut::BYTES as u64,
        Status::BYTES as u64,
        Tick::BYTES as u64,
    ]
}

/// Bytes of the longest user key that kernels take.
pub(crate) const KEY_MOST: u64 = 64 << 10;
/// The sequence number of a block that keeps those of its entries.
pub(crate) const NO_SEQ: u64 = u64::MAX;
/// Bytes of a list: place and count.
pub(crate) const LIST: u64 = 8;
/// Lists that one round merges.
pub(crate) const LISTS_MOST: u64 = 64;
/// Runs that two rounds merge, with room to spare: what the engine takes.
pub(crate) const RUNS_MOST: u16 = 1024;

/// Names of the bits of [`Status::faults`], lowest first.
const FAULTS: [&str; 9] = [
    "a checksum differs",
    "a block does not parse",
    "a block has another number of entries than its file says",
    "an entry is neither a value nor a delete",
    "entries are not in order",
    "a key, value or block is too large for the device",
    "the output is larger than it can be",
    "what was written does not read back",
    "a compressed block does not decode",
];

/// Those that say nothing against the input, nor against the device: kinds of entries, and sizes.
pub(crate) const UNSUITABLE: u64 = 1 << 3 | 1 << 5;

/// What the bits of a status say.
pub(crate) fn faults(bits: u64) -> String {
    let named =
        FAULTS.iter().enumerate().filter(|(i, _)| bits >> i & 1 == 1).map(|(_, name)| *name);
    let list: Vec<&str> = named.collect();
    if list.is_empty() { format!("unknown bits {bits:#x}") } else { list.join(", ") }
}

/// Places in one stretch of memory, each a multiple of 64.
#[derive(Debug)]
pub(crate) struct Carve {
    base: u64,
    end: u64,
}

impl Carve {
    /// Behind the first `used` bytes from `base` on.
    pub(crate) fn new(base: u64, used: u64) -> Carve {
        Carve { base, end: used }
    }
    /// Takes `count` items of `size` bytes and says their address. Saturates, so that an absurd sum is
    /// refused as too large.
    pub(crate) fn take(&mut self, count: u64, size: u64) -> u64 {
        let at = self.end.saturating_add(63) & !63;
        self.end = at.saturating_add(count.saturating_mul(size));
        self.base.wrapping_add(at)
    }
    /// Bytes taken so far.
    pub(crate) fn bytes(&self) -> u64 {
        self.end
    }
}
