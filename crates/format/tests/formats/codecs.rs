//! Every codec over blocks of mixed kinds, thousands in a row through one compressor: what was
//! compressed decompresses to the same bytes, and the bytes do not depend on the blocks before.
//!
//! `CODEC_BLOCKS=100000` says how many blocks each codec gets.

use lithify_format::compress::{Codec, Compressor, Decoder};
use lithify_format::limits::{MAX_BLOCK, plain_max};

/// Blocks that each codec gets unless `CODEC_BLOCKS` says otherwise.
const BLOCKS: usize = 5_000;
/// Every so many blocks a fresh compressor has to make the same bytes.
const FRESH: usize = 16;
/// More than any window, table or piece of a codec.
const HUGE: usize = (16 << 20) + 1;

/// A codec, its level and the dictionary of its table.
struct Case {
    codec: Codec,
    level: i32,
    dictionary: Vec<u8>,
}

impl Case {
    fn plain(codec: Codec, level: i32) -> Case {
        Case { codec, level, dictionary: Vec::new() }
    }

    fn compressor(&self) -> Compressor {
        Compressor::with_dictionary(self.codec, self.level, &self.dictionary).unwrap()
    }

    fn decoder(&self) -> Decoder {
        match &self.dictionary[..] {
            [] => Decoder::rocksdb(),
            dictionary => Decoder::rocksdb().with_dictionary(dictionary),
        }
    }
}

impl std::fmt::Display for Case {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Case { codec, level, dictionary } = self;
        write!(f, "{codec:?} at {level}, dictionary of {} bytes", dictionary.len())
    }
}

/// Each codec that this build writes once, with a dictionary where it takes one.
fn cases() -> Vec<Case> {
    let others = [Codec::None, Codec::Snappy, Codec::Lz4, Codec::Bzip2];
    let mut cases: Vec<Case> = others.into_iter().map(|codec| Case::plain(codec, 0)).collect();
    cases.extend([1, 6].map(|level| Case::plain(Codec::Zlib, level)));
    if cfg!(feature = "zstd") {
        cases.push(Case::plain(Codec::Zstd, 3));
        let mut rng = fastrand::Rng::with_seed(3);
        let raw = text(&mut rng, 3000);
        cases.push(Case { dictionary: raw, ..Case::plain(Codec::Zstd, 3) });
        let samples: Vec<Vec<u8>> = (0..400).map(|_| text(&mut rng, 300)).collect();
        let trained = lithify_format::compress::train(&samples, 4096).unwrap().unwrap();
        cases.push(Case { dictionary: trained.to_vec(), ..Case::plain(Codec::Zstd, 3) });
    }
    cases
}

fn noise(rng: &mut fastrand::Rng, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    rng.fill(&mut bytes);
    bytes
}

fn text(rng: &mut fastrand::Rng, len: usize) -> Vec<u8> {
    const WORDS: [&[u8]; 8] =
        [b"apple ", b"pear ", b"plum\n", b"quince ", b"medlar ", b"fig, ", b"0123", b"\0\0\0"];
    let mut bytes = Vec::with_capacity(len + 8);
    while bytes.len() < len {
        bytes.extend_from_slice(WORDS[rng.usize(0..WORDS.len())]);
    }
    bytes.truncate(len);
    bytes
}

/// What one run of blocks is made of.
#[derive(Clone, Copy)]
enum Kind {
    Empty,
    Tiny,
    Noise,
    Text,
    /// Just above or below what saves an eighth.
    Edge,
    /// Larger than the windows and small tables of the codecs.
    Large,
}

fn block(kind: Kind, rng: &mut fastrand::Rng) -> Vec<u8> {
    match kind {
        Kind::Empty => Vec::new(),
        Kind::Tiny => {
            let len = rng.usize(1..20);
            if rng.bool() { noise(rng, len) } else { vec![rng.u8(..); len] }
        }
        Kind::Noise => {
            let len = if rng.bool() { 4096 } else { rng.usize(20..2000) };
            noise(rng, len)
        }
        Kind::Text => {
            let len = rng.usize(20..4200);
            text(rng, len)
        }
        Kind::Edge => {
            let (loud, dull) = (rng.usize(700..900), rng.usize(60..200));
            [noise(rng, loud), vec![7; dull]].concat()
        }
        Kind::Large => {
            let len = rng.usize(60_000..140_000);
            if rng.u8(0..4) == 0 { noise(rng, len) } else { text(rng, len) }
        }
    }
}

/// Runs of blocks of one kind: what one block leaves behind in a codec may show only after many.
fn runs(seed: u64) -> impl Iterator<Item = Vec<u8>> {
    let mut rng = fastrand::Rng::with_seed(seed);
    let (mut kind, mut left) = (Kind::Empty, 0);
    std::iter::repeat_with(move || {
        if left == 0 {
            left = if rng.u8(0..3) == 0 { 1 } else { rng.usize(1..50) };
            kind = match rng.u8(0..32) {
                0 => Kind::Empty,
                1..8 => Kind::Tiny,
                8..16 => Kind::Noise,
                16..24 => Kind::Text,
                24..31 => Kind::Edge,
                _ => Kind::Large,
            };
            if let Kind::Large = kind {
                left = left.min(2);
            }
        }
        left -= 1;
        block(kind, &mut rng)
    })
}

/// Compresses `block` and reads it back; the bytes stored and their type.
fn there_and_back(
    case: &Case,
    compressor: &mut Compressor,
    decoder: &Decoder,
    block: &[u8],
) -> (u8, Vec<u8>) {
    let mut stored = Vec::new();
    let type_byte = compressor.append(block, &mut stored);
    assert!(stored.len() <= block.len(), "{case}: {} bytes grew", block.len());
    let read = decoder.decode(type_byte, &stored, block.len()).unwrap();
    assert!(read == block, "{case}: {} bytes came back changed", block.len());
    (type_byte, stored)
}

#[test]
fn mixed_blocks_come_back_through_one_compressor() {
    let blocks = std::env::var("CODEC_BLOCKS").map_or(BLOCKS, |n| n.parse().expect("a number"));
    for case in cases() {
        let (mut compressor, decoder) = (case.compressor(), case.decoder());
        let (mut shrunk, mut bytes) = (0, 0);
        for (n, block) in runs(1).take(blocks).enumerate() {
            let stored = there_and_back(&case, &mut compressor, &decoder, &block);
            if n % FRESH == 0 {
                let fresh = there_and_back(&case, &mut case.compressor(), &decoder, &block);
                assert!(fresh == stored, "{case}: block {n} depends on those before");
            }
            shrunk += usize::from(stored.0 != 0);
            bytes += block.len();
        }
        println!("{case}: {blocks} blocks of {bytes} bytes, {shrunk} of them compressed");
        let expected = if case.codec == Codec::None { 0 } else { blocks / 6 };
        assert!(shrunk >= expected && shrunk < blocks * 3 / 4, "{case}: {shrunk} of {blocks}");
    }
}

/// The deflater went on where output that did not fit had left it, and the 16th such block
/// panicked.
#[test]
fn zlib_takes_any_number_of_blocks_that_do_not_shrink() {
    let mut rng = fastrand::Rng::with_seed(9);
    for level in 1..=9 {
        let case = Case::plain(Codec::Zlib, level);
        let (mut compressor, decoder) = (case.compressor(), case.decoder());
        for _ in 0..200 {
            let stored = there_and_back(&case, &mut compressor, &decoder, &noise(&mut rng, 4096));
            assert_eq!(stored.0, 0, "noise does not shrink");
        }
        let block = text(&mut rng, 4096);
        let stored = there_and_back(&case, &mut compressor, &decoder, &block);
        assert_eq!(stored.0, Codec::Zlib as u8);
        assert!(stored == there_and_back(&case, &mut case.compressor(), &decoder, &block));
    }
}

#[test]
fn huge_blocks_come_back_between_small_ones() {
    let mut rng = fastrand::Rng::with_seed(4);
    let even = vec![5; HUGE];
    // Bzip2 takes seconds for the same block of text or noise.
    let half = [text(&mut rng, 1 << 20), noise(&mut rng, 1 << 20)].concat();
    for case in cases() {
        let (mut compressor, decoder) = (case.compressor(), case.decoder());
        let mut small = Vec::new();
        for block in [&even[..], &half, &even[..300], &half[..4096], &even] {
            small.push(there_and_back(&case, &mut compressor, &decoder, block));
        }
        assert!(small[0] == small[4], "{case}");
        assert_eq!(small[0].0, case.codec as u8, "{case}");
    }
    // Those that are quick enough for it get one that does not shrink at all.
    let loud = noise(&mut rng, HUGE);
    for codec in [Codec::None, Codec::Snappy, Codec::Lz4] {
        let case = Case::plain(codec, 0);
        let stored = there_and_back(&case, &mut case.compressor(), &case.decoder(), &loud);
        assert_eq!(stored.0, 0, "{case}");
    }
}

/// Values may be larger than `MAX_BLOCK`; those that compressed could not be read.
#[test]
fn the_largest_blocks_are_stored_so_that_they_read() {
    let block = vec![7; MAX_BLOCK + 1];
    let mut stored = Vec::new();
    let mut codecs = vec![(Codec::Lz4, true)];
    // 20,000 times smaller: no reader makes that much room for so little.
    codecs.extend(cfg!(feature = "zstd").then_some((Codec::Zstd, false)));
    for (codec, compressed) in codecs {
        stored.clear();
        let type_byte = Compressor::new(codec, 1).unwrap().append(&block, &mut stored);
        assert_eq!(type_byte != 0, compressed, "{codec:?}: {} bytes", stored.len());
        let read = Decoder::rocksdb().decode(type_byte, &stored, plain_max(stored.len()));
        assert!(if compressed { read.unwrap() } else { stored.clone() } == block, "{codec:?}");
    }
    assert_eq!(plain_max(5), MAX_BLOCK);
    assert_eq!(plain_max(usize::MAX), u32::MAX as usize);
}

/// LZ4 and Zlib get dictionaries only when tables of RocksDB are read: one decoder, many blocks.
#[test]
fn blocks_with_dictionaries_of_others_come_back() {
    let mut rng = fastrand::Rng::with_seed(6);
    let dictionary = text(&mut rng, 5000);
    let decoder = Decoder::rocksdb().with_dictionary(&dictionary);
    let mut shrunk = 0;
    for block in runs(5).filter(|block| !block.is_empty()).take(1000) {
        let size = u32::try_from(block.len()).unwrap();
        let mut lz4 = Vec::new();
        lithify_format::varint::put_u32(&mut lz4, size);
        let mut zlib = lz4.clone();
        lz4.extend(lz4_flex::block::compress_with_dict(&block, &dictionary));
        assert!(decoder.decode(Codec::Lz4 as u8, &lz4, block.len()).unwrap() == block);

        let level = flate2::Compression::new(6);
        let mut stream = flate2::Compress::new_with_window_bits(level, false, 14);
        stream.set_dictionary(&dictionary).unwrap();
        let mut out = vec![0; 2 * block.len() + 100];
        let end = stream.compress(&block, &mut out, flate2::FlushCompress::Finish).unwrap();
        assert_eq!(end, flate2::Status::StreamEnd);
        zlib.extend_from_slice(&out[..stream.total_out() as usize]);
        assert!(decoder.decode(Codec::Zlib as u8, &zlib, block.len()).unwrap() == block);
        shrunk += usize::from(zlib.len() < block.len());
    }
    assert!(shrunk > 300, "{shrunk}");
}
