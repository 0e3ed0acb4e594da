//! Scans by cursor and by `range`, in turns: `cargo run --release -p lithify --example scans -- DIR [entries [value
//! bytes]]` makes a database in the empty directory DIR, compacts it, and prints ns per entry of each way to read all
//! of it, best and median of the rounds, and the ratio to the cursor. One thread, by its processor time, so that
//! what else the machine does counts little; what is read fits the cache.

use std::error::Error;
use std::hint::black_box;
use std::time::Duration;

use lithify::env::{OsRt, Rt as _, RtOptions};
use lithify::{Db, Settings};

const ROUNDS: usize = 41;

/// A way to read everything; it returns how many entries there were.
type Way = fn(&Db) -> lithify::Result<u64>;

const WAYS: [(&str, Way); 6] = [
    ("cursor, looking", cursor),
    ("cursor, copying", copying),
    ("range", range),
    ("cursor, backward", backward),
    ("backward, copying", backward_copying),
    ("range, rev", rev),
];

fn cursor(db: &Db) -> lithify::Result<u64> {
    let (mut iter, mut count) = (db.iter()?, 0);
    iter.seek_to_first();
    while iter.valid() {
        black_box((iter.key(), iter.value()));
        count += 1;
        iter.next();
    }
    iter.status().map(|()| count)
}

fn copying(db: &Db) -> lithify::Result<u64> {
    let (mut iter, mut count) = (db.iter()?, 0);
    iter.seek_to_first();
    while iter.valid() {
        black_box((iter.key().to_vec(), iter.value().to_vec()));
        count += 1;
        iter.next();
    }
    iter.status().map(|()| count)
}

fn range(db: &Db) -> lithify::Result<u64> {
    let mut count = 0;
    for entry in db.range(..) {
        let (key, value) = entry?;
        black_box((&key[..], &value[..]));
        count += 1;
    }
    Ok(count)
}

fn backward(db: &Db) -> lithify::Result<u64> {
    let (mut iter, mut count) = (db.iter()?, 0);
    iter.seek_to_last();
    while iter.valid() {
        black_box((iter.key(), iter.value()));
        count += 1;
        iter.prev();
    }
    iter.status().map(|()| count)
}

fn backward_copying(db: &Db) -> lithify::Result<u64> {
    let (mut iter, mut count) = (db.iter()?, 0);
    iter.seek_to_last();
    while iter.valid() {
        black_box((iter.key().to_vec(), iter.value().to_vec()));
        count += 1;
        iter.prev();
    }
    iter.status().map(|()| count)
}

fn rev(db: &Db) -> lithify::Result<u64> {
    let mut count = 0;
    for entry in db.range(..).rev() {
        let (key, value) = entry?;
        black_box((&key[..], &value[..]));
        count += 1;
    }
    Ok(count)
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args_os().skip(1);
    let dir = args.next().ok_or("usage: scans DIR [entries [value bytes]]")?;
    let mut number = |usual: u64| match args.next() {
        Some(text) => text.to_string_lossy().parse().map_err(|e| format!("{text:?}: {e}")),
        None => Ok(usual),
    };
    let (entries, bytes) = (number(1_000_000)?, number(100)? as usize);
    let db = Db::open(dir, Settings::default().memory_budget(1 << 30))?;
    for n in 0..entries {
        let mixed = n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let key = [mixed.to_be_bytes(), n.to_be_bytes()].concat();
        db.put(key, vec![mixed as u8; bytes])?;
    }
    db.compact_range(None, None)?;

    let clock = OsRt::new(RtOptions::default());
    let mut times = vec![Vec::new(); WAYS.len()];
    for _ in 0..ROUNDS {
        for ((name, way), times) in WAYS.iter().zip(&mut times) {
            let start = clock.thread_cpu();
            let count = way(&db)?;
            times.push(clock.thread_cpu() - start);
            assert_eq!(count, entries, "{name}");
        }
    }
    let ns = |time: Duration| time.as_nanos() as f64 / entries as f64;
    for ((name, _), times) in WAYS.iter().zip(&mut times) {
        times.sort_unstable();
        println!("{name:18} best {:6.1}  median {:6.1} ns", ns(times[0]), ns(times[ROUNDS / 2]));
    }
    for (one, other) in [(2, 0), (2, 1), (5, 3), (5, 4)] {
        let ratio = |at: usize| ns(times[other][at]) / ns(times[one][at]);
        println!(
            "{} at {:.3} (best) and {:.3} (median) times the speed of {}",
            WAYS[one].0,
            ratio(0),
            ratio(ROUNDS / 2),
            WAYS[other].0
        );
    }
    db.close()?;
    Ok(())
}
