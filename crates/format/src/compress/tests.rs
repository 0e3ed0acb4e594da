use lithify_base::ErrorKind;

use super::*;

fn text(n: usize) -> Vec<u8> {
    (0..n).map(|i| b"the quick brown fox "[(i * i / 7) % 20]).collect()
}

fn noise(n: usize) -> Vec<u8> {
    let mut x = 0x9e37_79b9_7f4a_7c15u64;
    std::iter::repeat_with(|| {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        (x >> 32) as u8
    })
    .take(n)
    .collect()
}

fn codecs() -> Vec<Codec> {
    let mut all = vec![Codec::None, Codec::Snappy, Codec::Lz4, Codec::Zlib, Codec::Bzip2];
    all.extend(cfg!(feature = "zstd").then_some(Codec::Zstd));
    all
}

/// The bytes that LZ4 leaves are part of what all engines agree on (R9), and the kernels for GPUs make the same: an
/// encoder that makes others fails here.
#[test]
fn the_bytes_of_lz4_stay_what_they_are() {
    let mixed = |n: usize| -> Vec<u8> {
        let (text, noise) = (text(n), noise(n));
        (0..n).map(|i| if i / 50 % 6 == 5 { noise[i] } else { text[i] }).collect()
    };
    let sum = |payload: &[u8]| {
        let mut out = Vec::new();
        assert!(Compressor::new(Codec::Lz4, 0).unwrap().compress(payload, &mut out));
        (out.len(), crate::xxph3::xxph3_64(&out))
    };
    // Below 65,535 bytes the table of the encoder has 16 bits a position, from there on 32.
    let sums = [1000, 4096, 65_534, 65_535, 200_000].map(|n| sum(&mixed(n)));
    let known = [
        (261, 0xc4f4_82f5_bd35_07f8),
        (860, 0x8baa_3e0b_d67c_d4c1),
        (13117, 0xf697_15a9_29d3_ae7a),
        (13124, 0xca45_28d6_6f6a_a3c3),
        (39604, 0xab08_8116_58fb_46b9),
    ];
    assert_eq!(sums, known, "{sums:#x?}");
}

#[test]
fn round_trips_and_the_one_eighth_rule() {
    for codec in codecs() {
        let mut c = Compressor::new(codec, 3).unwrap();
        for payload in [text(0), text(1), text(4096), text(70_000), noise(4096), text(4096)] {
            let mut out = b"before".to_vec();
            let type_byte = c.append(&payload, &mut out);
            let stored = &out[6..];
            assert_eq!(decompress(type_byte, stored, 1 << 20).unwrap(), payload);
            if type_byte == 0 {
                assert_eq!(stored, payload);
            } else {
                assert_eq!(type_byte, codec as u8);
                assert!(stored.len() * 8 <= payload.len() * 7);
            }
            let worth_it = codec != Codec::None && payload.len() >= 4096 && payload != noise(4096);
            assert_eq!(type_byte != 0, worth_it, "{codec:?} {} bytes", payload.len());
        }
    }
}

#[test]
fn bytes_do_not_depend_on_what_was_compressed_before() {
    for codec in codecs() {
        let mut used = Compressor::new(codec, 3).unwrap();
        used.compress(&text(100_000), &mut Vec::new());
        let (mut a, mut b) = (Vec::new(), Vec::new());
        used.compress(&text(5000), &mut a);
        Compressor::new(codec, 3).unwrap().compress(&text(5000), &mut b);
        assert_eq!(a, b, "{codec:?}");
    }
}

/// Every codec's panic: when it is made, compresses, reads, or takes a dictionary.
#[test]
fn no_panic_leaves_a_codec() {
    for codec in codecs() {
        wall::trap::set();
        let e = Compressor::new(codec, 3).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::InvalidArgument, "{e}");
        assert!(e.to_string().contains("the trap"), "{e}");

        let mut compressor = Compressor::new(codec, 3).unwrap();
        let mut good = Vec::new();
        let type_byte = compressor.append(&text(5000), &mut good);
        wall::trap::set();
        let mut stored = b"before".to_vec();
        assert_eq!(compressor.append(&text(5000), &mut stored), 0, "stored as it is");
        assert_eq!(stored[6..], text(5000));
        let mut again = Vec::new();
        assert_eq!(compressor.append(&text(5000), &mut again), type_byte);
        assert_eq!(again, good, "the next block meets a fresh one");

        wall::trap::set();
        let e = decompress(type_byte, &good, 5000).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::Corruption, "{e}");
        assert!(e.to_string().contains("the trap") && e.to_string().contains("salvage"), "{e}");
        assert_eq!(decompress(type_byte, &good, 5000).unwrap(), text(5000));
    }
}

/// A dictionary that can't be made is none; one that can't be taken in is damaged.
#[cfg(feature = "zstd")]
#[test]
fn no_panic_leaves_a_dictionary() {
    let samples: Vec<Vec<u8>> = (0..400).map(|n| text(200 + n % 90)).collect();
    wall::trap::set();
    assert_eq!(train(&samples, 4096).unwrap(), None);
    let mut stored = Vec::new();
    let mut compressor = Compressor::with_dictionary(Codec::Zstd, 3, &text(500)).unwrap();
    assert!(compressor.compress(&text(4000), &mut stored));
    wall::trap::set();
    let decoder = Decoder::rocksdb().with_dictionary(&text(500));
    assert_eq!(decoder.decode(7, &stored, 4000).unwrap_err().kind(), ErrorKind::Corruption);
    let decoder = Decoder::rocksdb().with_dictionary(&text(500));
    assert_eq!(decoder.decode(7, &stored, 4000).unwrap(), text(4000));
    // The fresh one after a panic has the dictionary, too.
    wall::trap::set();
    assert!(!compressor.compress(&text(4000), &mut Vec::new()));
    let mut again = Vec::new();
    assert!(compressor.compress(&text(4000), &mut again));
    assert_eq!(again, stored);
}

#[test]
fn announced_sizes_meet_the_cap_before_allocation() {
    let huge = [0xff, 0xff, 0xff, 0xff, 0x0f, 0x00];
    for type_byte in [1, 2, 3, 4, 5] {
        let e = decompress(type_byte, &huge, 1 << 20).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::LimitExceeded, "{e}");
    }
    assert_eq!(decompress(0, &text(10), 9).unwrap_err().kind(), ErrorKind::LimitExceeded);
}

#[test]
fn codecs_without_a_decoder_are_refused_by_name() {
    for (type_byte, name) in [(0x80, "0x80"), (6, "0x06")] {
        let e = decompress(type_byte, b"", 10).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::Unsupported);
        assert!(e.to_string().contains(name), "{e}");
    }
    assert_eq!(Compressor::new(Codec::Lz4hc, 0).unwrap_err().kind(), ErrorKind::Unsupported);
    if cfg!(not(feature = "zstd")) {
        let e = decompress(7, b"\x01a", 10).unwrap_err();
        assert!(e.to_string().contains("feature `zstd`"), "{e}");
        assert!(Decoder::leveldb().decode(2, b"a", 10).is_err());
    }
}

#[test]
fn damaged_blocks_are_errors_or_bytes_of_the_announced_size() {
    for codec in codecs().into_iter().skip(1) {
        let payload = text(2000);
        let mut good = Vec::new();
        assert!(Compressor::new(codec, 3).unwrap().compress(&payload, &mut good));
        for cut in 0..good.len() {
            assert!(decompress(codec as u8, &good[..cut], 1 << 16).is_err(), "{codec:?} {cut}");
        }
        for bit in 0..good.len() * 8 {
            let mut bad = good.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            let _ = decompress(codec as u8, &bad, 1 << 16);
        }
    }
}

/// RocksDB inflates with a window of 16 KiB: nothing may refer farther back.
#[test]
fn deflate_stays_inside_rocksdbs_window() {
    let far: Vec<u8> = [noise(20_000), noise(20_000), text(20_000)].concat();
    let mut stored = Vec::new();
    assert!(Compressor::new(Codec::Zlib, 9).unwrap().compress(&far, &mut stored));
    let (size, body) = crate::varint::get_u32(&stored).unwrap();
    assert_eq!(size as usize, far.len());
    let mut out = vec![0; far.len()];
    let mut small = flate2::Decompress::new_with_window_bits(false, 14);
    let end = small.decompress(body, &mut out, flate2::FlushDecompress::Finish).unwrap();
    assert_eq!((end, out), (flate2::Status::StreamEnd, far));
    for level in [-1, 0, 1, 6, 10] {
        assert!(
            Compressor::new(Codec::Zlib, level).unwrap().compress(&text(4096), &mut Vec::new())
        );
    }
}

#[test]
fn zlib_dictionaries_are_read() {
    let dictionary = noise(500);
    let mut stored = Vec::new();
    crate::varint::put_u32(&mut stored, 400);
    let mut c = flate2::Compress::new_with_window_bits(flate2::Compression::new(6), false, 14);
    c.set_dictionary(&dictionary).unwrap();
    let mut body = vec![0; 1000];
    c.compress(&dictionary[..400], &mut body, flate2::FlushCompress::Finish).unwrap();
    stored.extend_from_slice(&body[..c.total_out() as usize]);
    assert!(stored.len() < 100, "the dictionary was used: {}", stored.len());
    let decoder = Decoder::rocksdb().with_dictionary(&dictionary);
    assert_eq!(decoder.decode(2, &stored, 1000).unwrap(), dictionary[..400]);
    assert!(decompress(2, &stored, 1000).is_err());
}

#[test]
fn dictionaries_are_used() {
    let dictionary = text(500);
    let mut lz4 = Vec::new();
    crate::varint::put_u32(&mut lz4, 400);
    lz4.extend(lz4_flex::block::compress_with_dict(&dictionary[..400], &dictionary));
    let decoder = Decoder::rocksdb().with_dictionary(&dictionary);
    assert_eq!(decoder.decode(4, &lz4, 1000).unwrap(), dictionary[..400]);
    assert_ne!(decompress(4, &lz4, 1000).ok().as_deref(), Some(&dictionary[..400]));
}

#[cfg(feature = "zstd")]
#[test]
fn trained_dictionaries_make_small_blocks_smaller() {
    let block = |n: u32| {
        let line = |i: u32| format!("customer {:05} of {} street\n", n * i % 99_991, n % 17 + i);
        (0..12).map(line).collect::<String>().into_bytes()
    };
    let samples: Vec<Vec<u8>> = (0..400).map(block).collect();
    let dictionary = train(&samples, 4096).unwrap().expect("enough samples");
    assert!(dictionary.len() <= 4096);
    assert_eq!(train(&samples, 4096).unwrap().as_ref(), Some(&dictionary), "deterministic");
    assert_eq!(train(&samples[..1], 4096).unwrap(), None);
    assert_eq!(train(&[], 4096).unwrap(), None);
    let mut with = Compressor::with_dictionary(Codec::Zstd, 3, &dictionary).unwrap();
    let mut without = Compressor::new(Codec::Zstd, 3).unwrap();
    let decoder = Decoder::rocksdb().with_dictionary(&dictionary);
    assert_eq!(decoder.dictionary_bytes(), dictionary.len());
    for n in 1000..1020 {
        let (mut a, mut b) = (Vec::new(), Vec::new());
        assert!(with.compress(&block(n), &mut a));
        let _ = without.compress(&block(n), &mut b);
        assert!(a.len() * 4 < b.len() * 3, "{} and {}", a.len(), b.len());
        assert_eq!(decoder.decode(7, &a, 4096).unwrap(), block(n));
        assert!(decompress(7, &a, 4096).is_err(), "not without the dictionary");
        // Nor with another one that is damaged: an error, or bytes of the announced size.
        for bit in 0..64 {
            let mut bad = dictionary.to_vec();
            bad[bit * 7 % dictionary.len()] ^= 1 << (bit % 8);
            let _ = Decoder::rocksdb().with_dictionary(&bad).decode(7, &a, 4096);
        }
    }
}

#[cfg(feature = "zstd")]
#[test]
fn zstd_dictionaries_and_leveldb_blocks() {
    let dictionary = noise(500);
    let mut stored = Vec::new();
    crate::varint::put_u32(&mut stored, 400);
    let mut c = zstd::bulk::Compressor::with_dictionary(3, &dictionary).unwrap();
    stored.extend(c.compress(&dictionary[..400]).unwrap());
    assert!(stored.len() < 100, "the dictionary was used: {}", stored.len());
    let decoder = Decoder::rocksdb().with_dictionary(&dictionary);
    assert_eq!(decoder.decode(7, &stored, 1000).unwrap(), dictionary[..400]);
    assert!(decompress(7, &stored, 1000).is_err());

    let frame = zstd::bulk::compress(&text(3000), 1).unwrap();
    assert_eq!(Decoder::leveldb().decode(2, &frame, 4000).unwrap(), text(3000));
    assert!(Decoder::leveldb().decode(2, &frame, 2999).is_err());
}

#[test]
fn a_block_that_announces_more_than_it_can_hold_gets_no_memory() {
    for (codec, ratio) in [(Codec::Lz4, 255), (Codec::Snappy, 22)] {
        let mut stored = Vec::new();
        crate::varint::put_u32(&mut stored, (ratio + 1) * 103);
        stored.extend_from_slice(&[0xff; 100]);
        let error = decompress(codec as u8, &stored, 1 << 30).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corruption);
        assert!(error.to_string().contains("more than it can hold"), "{error}");

        // What repeats itself throughout comes near it, and is read.
        let plain = vec![7; 4 << 20];
        let mut stored = Vec::new();
        let type_byte = Compressor::new(codec, 0).unwrap().append(&plain, &mut stored);
        assert!(type_byte == codec as u8 && plain.len() / stored.len() >= ratio as usize - 1);
        assert_eq!(decompress(type_byte, &stored, 1 << 30).unwrap(), plain);
    }
}
