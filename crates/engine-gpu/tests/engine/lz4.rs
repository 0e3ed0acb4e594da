//! LZ4 on the device: what the host's decoder takes is decoded to the same bytes, and what it refuses is refused; a set with
//! a block that is refused is the CPU's. What the kernels compress has the bytes of the host's encoder.

use std::sync::Arc;

use lithify_base::ErrorKind;
use lithify_engine::conformance::run;
use lithify_engine::{CpuEngine, Engine};
use lithify_engine_gpu::emu;
use lithify_format::checksum::{ChecksumKind, raw_sum};
use lithify_format::compress::{Codec, Compressor, decompress};
use lithify_format::varint;
use lithify_merge::workload::{BlockStyle, Case, Choices, Features, InputBlock};
use lithify_merge::{Recipe, naive};

use crate::common::*;

/// Most bytes that a block of these tests announces.
const MOST: usize = 1 << 20;

/// The kernels decode `stored` as the host does, or refuse it as the host does. Says which.
fn agrees(stored: &[u8], seed: u64) -> bool {
    let host = decompress(Codec::Lz4 as u8, stored, MOST).ok();
    let size = varint::get_u32(stored).map_or(0, |(size, _)| size as usize);
    let here = emu::lz4_decode(stored, size.min(MOST), seed).unwrap();
    assert!(here == host, "{stored:02x?}: the host says {:?}", host.map(|bytes| bytes.len()));
    here.is_some()
}

/// A stored payload: the size, then the sequences.
fn stored(size: u32, sequences: &[&[u8]]) -> Vec<u8> {
    let mut bytes = Vec::new();
    varint::put_u32(&mut bytes, size);
    bytes.extend(sequences.concat());
    bytes
}

/// Each way in which a block can be wrong, beside one that is right in the same way.
#[test]
fn every_fault_of_a_block_is_found() {
    let literals = &[0xab; 300][..];
    let right: [Vec<u8>; 10] = [
        stored(0, &[&[0x00]]),
        stored(8, &[&[0x30], b"abc", &[3, 0, 0x10], b"d"]),
        // A match over its own end, of one byte, and of the most that a token says.
        stored(6, &[&[0x10, 7, 1, 0, 0x10, 8]]),
        stored(20, &[&[0x1e, 7, 1, 0, 0x10, 8]]),
        // Lengths that go on: literals of 15 and of 300, a match of 19 and of 19 + 255.
        stored(15, &[&[0xf0, 0], &literals[..15]]),
        stored(300, &[&[0xf0, 255, 30], literals]),
        stored(21, &[&[0x1f, 7, 1, 0, 0, 0x10, 8]]),
        stored(276, &[&[0x1f, 7, 1, 0, 255, 0, 0x10, 8]]),
        // A match that reaches back to the first byte; two matches that touch.
        stored(305, &[&[0xf0, 255, 30], literals, &[0x2c, 1, 0x10, 9]]),
        stored(11, &[&[0x10, 7, 1, 0, 0x01, 2, 0, 0x10, 8]]),
    ];
    for (i, block) in right.iter().enumerate() {
        assert!(agrees(block, 1), "{i}: {block:02x?}");
    }
    let wrong: [(&str, Vec<u8>); 20] = [
        ("nothing", vec![]),
        ("no size", vec![0x80]),
        ("a size of six bytes", vec![0x80, 0x80, 0x80, 0x80, 0x80, 0x01, 0x00]),
        ("a size from 4 GiB", vec![0xff, 0xff, 0xff, 0xff, 0x7f, 0x00]),
        ("no sequence", stored(0, &[])),
        ("literals cut short", stored(3, &[&[0x30], b"ab"])),
        ("literals beyond the size", stored(2, &[&[0x30], b"abc"])),
        ("fewer literals than announced", stored(4, &[&[0x30], b"abc"])),
        ("length of literals cut short", stored(270, &[&[0xf0, 255]])),
        ("length of literals beyond all", stored(999, &[&[0xf0, 255, 255, 255, 255, 9], literals])),
        ("offset cut short", stored(8, &[&[0x30], b"abc", &[3]])),
        ("offset 0", stored(8, &[&[0x30], b"abc", &[0, 0, 0x10], b"d"])),
        ("offset before the first byte", stored(8, &[&[0x30], b"abc", &[4, 0, 0x10], b"d"])),
        ("offset far before it", stored(8, &[&[0x30], b"abc", &[255, 255, 0x10], b"d"])),
        ("a match before all literals", stored(5, &[&[0x00, 1, 0, 0x10], b"d"])),
        ("a match beyond the size", stored(6, &[&[0x30], b"abc", &[3, 0, 0x00]])),
        ("length of a match cut short", stored(99, &[&[0x1f, 7, 1, 0, 255]])),
        (
            "length of a match beyond all",
            stored(99, &[&[0x1f, 7, 1, 0, 255, 255, 255, 1, 0x10, 8]]),
        ),
        ("no literals behind a match", stored(5, &[&[0x10, 7, 1, 0]])),
        ("bytes behind the end", stored(4, &[&[0x30], b"abc", &[0x10], b"d", &[0x10]])),
    ];
    for (what, block) in wrong {
        assert!(!agrees(&block, 2), "{what}: {block:02x?}");
    }
}

/// Text with repetitions of all kinds.
fn text(c: &mut Choices) -> Vec<u8> {
    let len = c.pick(&[10, 100, 1000, 5000]);
    let mut bytes = Vec::new();
    while bytes.len() < len {
        let n = 1 + c.below(c.clone().pick(&[3, 20, 600]));
        match c.below(4) {
            0 => bytes.extend(c.bytes(n)),
            1 => bytes.extend(vec![c.bits() as u8; n]),
            _ if bytes.is_empty() => {}
            _ => {
                let from = c.below(bytes.len());
                let again: Vec<u8> = bytes[from..].iter().copied().take(n).collect();
                bytes.extend(again);
            }
        }
    }
    bytes
}

/// What the host compresses, and what becomes of it when bytes change: the same answer, and the same bytes.
#[test]
fn changed_blocks_are_judged_as_the_host_judges_them() {
    let mut taken = [0u32; 2];
    for seed in 0..seeds(60) {
        let c = &mut Choices::new(seed);
        let bytes = text(c);
        let mut block = Vec::new();
        let mut compressor = Compressor::new(Codec::Lz4, 0).unwrap();
        compressor.compress(&bytes, &mut block);
        assert!(agrees(&block, seed), "{seed}");
        for _ in 0..12 {
            let mut block = block.clone();
            for _ in 0..1 + c.below(3) {
                let at = c.below(block.len().min(c.clone().pick(&[4, 40, 9999])));
                match c.below(4) {
                    0 => block.truncate(at.max(1)),
                    1 => block[at] = c.pick(&[0, 1, 0x0f, 0xf0, 0xff]),
                    2 => block.insert(at, c.bits() as u8),
                    _ => block[at] ^= 1 << c.below(8),
                }
            }
            taken[usize::from(agrees(&block, seed))] += 1;
        }
    }
    println!("{} changed blocks are refused, {} are taken", taken[0], taken[1]);
    assert!(taken[0] > 100 && taken[1] > 20, "{taken:?}");
}

/// The kernels compress as the host does, and keep a block as it is where the host does.
fn compresses(plain: &[u8]) -> bool {
    let mut host = Vec::new();
    let pays = Compressor::new(Codec::Lz4, 0).unwrap().compress(plain, &mut host);
    let most = plain.len() - plain.len().div_ceil(8);
    let here = emu::lz4_encode(plain, most).unwrap();
    assert_eq!(here.is_some(), pays, "{} bytes", plain.len());
    assert!(here.is_none_or(|here| here == host), "{} bytes: {plain:02x?}", plain.len());
    pays
}

/// Blocks of all lengths, and from 65,535 bytes on those with the larger table.
#[test]
fn the_kernels_compress_as_the_host_does() {
    let mut kept = [0; 2];
    let mut of = |plain: &[u8]| kept[usize::from(compresses(plain))] += 1;
    let c = &mut Choices::new(4);
    for seed in 0..seeds(200) {
        of(&text(&mut Choices::new(seed)));
    }
    for n in 0..=300 {
        of(&vec![7; n]);
        let period = 1 + c.below(40);
        let cycle: Vec<u8> = c.bytes(period).into_iter().cycle().take(n).collect();
        of(&cycle);
    }
    for n in [65_533, 65_534, 65_535, 65_536, 200_000] {
        let mut plain = Vec::new();
        while plain.len() < n {
            plain.extend(text(c));
        }
        of(&plain[..n]);
        // The same bytes again, just as far back as a match reaches, and one more; and bytes without any.
        for far in [65_535, 65_536] {
            let once = c.bytes(far);
            of(&[&once[..], &once[..far.min(n - 65_000)]].concat());
        }
        of(&c.bytes(n));
    }
    println!("{} blocks are kept as they are, {} are compressed", kept[0], kept[1]);
    assert!(kept.iter().all(|n| *n > 30), "{kept:?}");
}

/// A case whose blocks are all compressed.
fn packed(seed: u64) -> Case {
    let sized = |seed| Case::with(seed, SMALL, Features::Lz4).unwrap();
    let many = |case: &Case| case.runs.iter().flatten().count() > 100;
    let mut case = (seed..).map(sized).find(many).expect("some case has so many entries");
    let style = BlockStyle { codec: Codec::Lz4, bytes: 2000, ..BlockStyle::default() };
    case.recipe = Arc::new(Recipe { codec: Codec::None, ..Recipe::clone(&case.recipe) });
    let made = |run: &Vec<naive::Entry>| {
        let mut run = run.clone();
        run.iter_mut().filter(|e| e.value.len() > 9).for_each(|e| e.value.fill(7));
        run
    };
    case.runs = case.runs.iter().map(made).collect();
    case.blocks = case.runs.iter().map(|run| style.encode(run).unwrap()).collect();
    case
}

fn compressed(case: &mut Case) -> impl Iterator<Item = &mut InputBlock> {
    let is = |block: &&mut InputBlock| {
        let bytes = block.slice.bytes.as_slice();
        bytes[bytes.len() - 5] == Codec::Lz4 as u8
    };
    case.blocks.iter_mut().flatten().filter(is)
}

/// Other bytes for a block, with the sum that belongs to them.
fn replace(block: &mut InputBlock, change: impl FnOnce(&mut Vec<u8>, &mut u8)) {
    let stored = block.slice.bytes.as_slice();
    let (payload, trailer) = stored.split_at(stored.len() - 5);
    let (mut bytes, mut type_byte) = (payload.to_vec(), trailer[0]);
    change(&mut bytes, &mut type_byte);
    let sum = raw_sum(ChecksumKind::Xxh3, &bytes, type_byte).wrapping_add(block.slice.modifier);
    bytes.push(type_byte);
    bytes.extend_from_slice(&sum.to_le_bytes());
    block.slice.bytes = bytes.into();
}

/// A block that is no LZ4 block goes to the CPU, which says so; one whose checksum differs, too.
#[test]
fn blocks_that_do_not_decode_are_given_to_the_cpu() {
    let engine = engine();
    let tried = |change: &dyn Fn(&mut Vec<u8>, &mut u8)| {
        let mut case = packed(3);
        replace(compressed(&mut case).nth(2).unwrap(), change);
        let by = |engine: &dyn Engine| {
            let sets = case.sets(u64::MAX);
            run(engine, &FixedRt, &case.recipe, sets, false).unwrap_err()
        };
        assert!(matches!(by(&CpuEngine).kind(), ErrorKind::Corruption | ErrorKind::LimitExceeded));
        by(&engine);
        assert_eq!(figure(&engine, "device_lost"), 0);
        engine.evidence().unwrap().to_string()
    };
    let said = tried(&|bytes, _| bytes.push(0));
    assert!(said.contains("does not decode"), "{said}");
    let said = tried(&|bytes, _| bytes.truncate(bytes.len() - 20));
    assert!(said.contains("bad LZ4 block") || said.contains("does not decode"), "{said}");
    // Announced sizes that cannot be are refused before there is memory for them.
    let said = tried(&|bytes, _| {
        bytes.splice(..2, [0xff, 0xff, 0xff, 0x7f]);
    });
    assert!(said.contains("block"), "{said}");
    let mut case = packed(3);
    let block = compressed(&mut case).next().unwrap();
    let mut bytes = block.slice.bytes.as_slice().to_vec();
    bytes[20] ^= 4;
    block.slice.bytes = bytes.into();
    assert!(run(&engine, &FixedRt, &case.recipe, case.sets(u64::MAX), false).is_err());
    let said = engine.evidence().unwrap().to_string();
    assert!(said.contains("a checksum differs"), "{said}");
}

/// Blocks of the slower encoder have a type byte of their own, and blocks without counts are decoded to be counted.
#[test]
fn other_blocks_of_the_format() {
    let engine = engine();
    for seed in 0..6 {
        let mut case = packed(seed);
        for (i, block) in compressed(&mut case).enumerate() {
            if i % 2 == 0 {
                replace(block, |_, type_byte| *type_byte = Codec::Lz4hc as u8);
            }
            if i % 3 == 0 {
                (block.slice.entries, block.slice.key_bytes) = (0, 0);
            }
        }
        let ran = run(&engine, &FixedRt, &case.recipe, case.sets(3000), true)
            .unwrap_or_else(|e| panic!("{e}: {:?}", engine.evidence()));
        let (output, ledger) = naive::compact(&case.recipe, case.entries()).unwrap();
        assert!(ran.output == output && ran.ledger == ledger);
    }
    assert_eq!(figure(&engine, "normalised_blocks"), 0);
    assert!(figure(&engine, "decoded_blocks") > 20);
}

/// Compressed blocks of a table with a dictionary, and those with another form, are the host's to decode.
#[test]
fn dictionaries_are_decoded_by_the_host() {
    let engine = engine();
    let mut case = packed(1);
    let decoder = lithify_format::compress::Decoder::rocksdb().with_dictionary(b"a dictionary");
    let decoder = Arc::new(decoder);
    let mut n = 0;
    for block in compressed(&mut case) {
        block.slice.decoder = decoder.clone();
        n += 1;
    }
    let ran = run(&engine, &FixedRt, &case.recipe, case.sets(u64::MAX), true).unwrap();
    let (output, _) = naive::compact(&case.recipe, case.entries()).unwrap();
    assert!(ran.output == output);
    assert_eq!((figure(&engine, "normalised_blocks"), figure(&engine, "decoded_blocks")), (n, 0));
}
