//! One whole compaction, small enough to count its instructions: 200,000 entries of 16 + 100 bytes in
//! five overlapping runs become one, on one thread.
//!
//! `compaction DIR none|lz4 load|compact` makes a database in the empty directory DIR. The difference
//! of two runs under `valgrind --tool=callgrind` is the compaction. Valgrind does not run what the
//! kernel maps into programs, so build with `RUSTFLAGS="--cfg rustix_use_libc"` for it.

use lithify::{Builder, Result, Settings};

const ENTRIES: u64 = 200_000;
const RUNS: u64 = 5;

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [dir, codec, what] = &args[..] else {
        panic!("usage: compaction DIR none|lz4 load|compact");
    };
    let mut settings = Settings::default();
    for (name, value) in [
        ("compression_upper", codec.as_str()),
        ("compression_lower", codec.as_str()),
        ("auto_compaction", "off"),
        ("compaction_threads", "1"),
        ("max_subcompactions", "1"),
        ("memtable_bytes", "64MiB"),
    ] {
        settings.set(name, value)?;
    }
    let db = Builder::new(settings).open(dir)?;
    let (mut key, mut value) = ([0; 16], [0; 100]);
    for run in 0..RUNS {
        for i in 0..ENTRIES / RUNS {
            // Runs interleave; half of a value is the same in all.
            let n = (i * RUNS + run).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            key[..8].copy_from_slice(&n.to_be_bytes());
            for (at, word) in value[..50].chunks_mut(8).enumerate() {
                let mixed = (n ^ at as u64).wrapping_mul(0xa076_1d64_78bd_642f).to_le_bytes();
                word.copy_from_slice(&mixed[..word.len()]);
            }
            db.put(key, value)?;
        }
        db.flush()?;
    }
    if what == "compact" {
        db.compact_range(None, None)?;
    }
    db.close()
}
