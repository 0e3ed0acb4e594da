//! `cost DIR ENTRIES ROUNDS`: what `tests/cost/cost.c` does, without C in between. `cargo xtask capi cost` runs
//! both in turns. A value that C gets is a copy that its caller frees, and so is one that is got here out of a memtable.

use lithify::{Db, Settings};
use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds that this thread had of a processor.
fn clock() -> f64 {
    let spent = clock_gettime(ClockId::ThreadCPUTime);
    spent.tv_sec as f64 * 1e9 + spent.tv_nsec as f64
}

fn key_of(i: u64, entries: u64) -> [u8; 16] {
    let n = i.wrapping_mul(0x9e37_79b9_7f4a_7c15) & (entries - 1);
    let mut key = [0; 16];
    for (at, byte) in key.iter_mut().enumerate() {
        let digit = (n >> (60 - 4 * at)) & 15;
        *byte = b"0123456789abcdef"[digit as usize];
    }
    key
}

fn open(dir: &str) -> lithify::Result<Db> {
    let settings = Settings {
        memtable_bytes: 1 << 30,
        memtable_count: 2,
        memory_budget: (2 << 30) + (8 << 20),
        ..Settings::default()
    };
    Db::open(dir, settings)
}

fn main() -> lithify::Result<()> {
    let args: Vec<String> = std::env::args().collect();
    let number = |i: usize| args.get(i).and_then(|n| n.parse::<u64>().ok()).expect("a number");
    let (entries, rounds) = (number(2), number(3));
    let db = open(&args[1])?;
    let value = [b'v'; 100];
    for _ in 0..rounds {
        let told = |what: &str, start: f64| {
            println!("{what} {}", (clock() - start) / entries as f64);
        };
        let start = clock();
        for i in 0..entries {
            db.put(key_of(i, entries), value)?;
        }
        told("put", start);
        let start = clock();
        let mut sum = 0;
        for i in 0..entries {
            let got = db.get(key_of(i, entries))?.expect("it was put");
            sum += got.len() as u64 + u64::from(got[0]);
        }
        told("get", start);
        assert_eq!(sum, entries * (100 + u64::from(b'v')));
        let start = clock();
        let (mut iter, mut seen) = (db.iter()?, 0);
        iter.seek_to_first();
        while iter.valid() {
            sum += u64::from(iter.key()[0]) + u64::from(iter.value()[0]);
            sum += (iter.key().len() + iter.value().len()) as u64;
            seen += 1;
            iter.next();
        }
        told("next", start);
        assert_eq!(seen, entries);
        std::hint::black_box(sum);
    }
    db.close()
}
