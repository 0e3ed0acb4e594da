//! What the formula says of LZ4, beside figures made by hand. That of plain blocks is held against a paced device.

use lithify_engine_gpu::predict::{Assumed, Work, predict};

/// A job of 1 GB of entries with values of 128 bytes, encoded in 149, plain or stored in `lz4` of that.
fn work(lz4: Option<f64>) -> Work {
    let entries = 1e9 / 149.0;
    let stored = 1e9 * lz4.unwrap_or(1.0);
    let set_bytes = 32.0 * 1024.0 * 1024.0;
    Work { stored, entries, value: 128.0, kept: 0.9, units: 3.0, set_bytes, lz4 }
}

/// Less crosses the links, and the encoder takes longer than they do.
#[test]
fn with_lz4_the_encoder_is_the_limit() {
    let device = Assumed::default();
    let plain = predict(&work(None), &device);
    let lz4 = predict(&work(Some(0.6)), &device);
    assert_eq!((plain.bound_by(), lz4.bound_by()), ("link up", "kernels"));
    // Nanoseconds in kernels, by hand: memory, decoder, encoder, and the decoder again to prove it; 20 calls of each of
    // 18 sets besides.
    let entries = 1e9 / 149.0;
    let memory = (5.0 * 149.0 + 128.0 + 316.0) / 3000.0 * entries;
    let codec = 1e9 / 150.0 + 0.9e9 / 30.0 + 0.9e9 / 150.0;
    let by_hand = memory + codec + 18.0 * 20.0 * 7000.0;
    assert!((lz4.busy[1] * lz4.ns / by_hand - 1.0).abs() < 1e-9, "{lz4:?}, by hand {by_hand}");
    let gb_per_s = 1e9 / lz4.ns;
    assert!((18.0..22.0).contains(&gb_per_s), "{gb_per_s}");
}

/// With codecs that take no time only the links are left, and less crosses them.
#[test]
fn without_the_codecs_time_a_link_is_the_limit() {
    let device =
        Assumed { lz4_decode: f64::INFINITY, lz4_encode: f64::INFINITY, ..Assumed::default() };
    let (plain, lz4) = (predict(&work(None), &device), predict(&work(Some(0.6)), &device));
    assert!(lz4.bound_by().starts_with("link"), "{lz4:?}");
    assert!(lz4.ns < 0.75 * plain.ns, "{lz4:?} {plain:?}");
}
