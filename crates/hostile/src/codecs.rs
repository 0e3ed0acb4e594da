//! Codecs over any blocks in any order, through one compressor: what goes in comes out, and no block
//! changes how the next one is written.

use lithify_format::compress::{Codec, Compressor, Decoder};

/// Most bytes of all blocks of one input, so that a second is enough for many.
const BYTES_MAX: usize = 1 << 17;

const CODECS: [Codec; 7] =
    [Codec::None, Codec::Snappy, Codec::Zlib, Codec::Bzip2, Codec::Lz4, Codec::Lz4hc, Codec::Zstd];

/// Codec, level, length of the dictionary, the dictionary; then four bytes for each block.
pub(super) fn sequence(bytes: &[u8]) {
    let Some((&[codec, level, len], rest)) = bytes.split_first_chunk() else { return };
    let codec = CODECS[usize::from(codec) % CODECS.len()];
    let (dictionary, steps) = rest.split_at(rest.len().min(usize::from(len)));
    let level = i32::from(level.cast_signed());
    let new = || Compressor::with_dictionary(codec, level, dictionary);
    // Not every build has every codec, nor every codec every level.
    let Ok(mut compressor) = new() else { return };
    let decoder = Decoder::rocksdb().with_dictionary(match codec {
        Codec::Zstd => dictionary,
        _ => &[],
    });
    let (mut left, mut last) = (BYTES_MAX, None);
    for step in steps.chunks_exact(4) {
        let block = block(step, bytes);
        let Some(rest) = left.checked_sub(block.len()) else { break };
        left = rest;
        let mut stored = Vec::new();
        let type_byte = compressor.append(&block, &mut stored);
        let read = decoder.decode(type_byte, &stored, block.len());
        assert!(read.expect("what was compressed decompresses") == block, "to the same bytes");
        last = Some((block, type_byte, stored));
    }
    // Every block is the last one of some input.
    if let Some((block, type_byte, stored)) = last {
        let mut fresh = Vec::new();
        let same = new().expect("as before").append(&block, &mut fresh) == type_byte;
        assert!(same && fresh == stored, "whatever was compressed before");
    }
}

/// A block of the kind and length that a step says.
fn block(step: &[u8], input: &[u8]) -> Vec<u8> {
    let (kind, seed) = (step[0], step[3]);
    let len = usize::from(u16::from_le_bytes([step[1], step[2]]));
    let noise = |len: usize| {
        let mut x = 0x9e37_79b9_7f4a_7c15 ^ (u64::from(seed) << 32);
        let next = move || {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            (x >> 32) as u8
        };
        std::iter::repeat_with(next).take(len)
    };
    let whole = usize::from(kind >> 3);
    match kind % 8 {
        0 => noise(len).collect(),
        1 => vec![seed; len],
        // Around what saves an eighth.
        2 => noise(len - len / 8).chain(std::iter::repeat_n(seed, len / 8 + whole)).collect(),
        3 => input.iter().copied().cycle().take(len).collect(),
        4 => input.iter().copied().skip(usize::from(seed)).take(len).collect(),
        5 => noise(whole).collect(),
        6 => noise(len).map(|byte| byte % (kind >> 3).max(1)).collect(),
        _ => noise(len.min(1000)).collect::<Vec<u8>>().repeat(whole % 8),
    }
}
