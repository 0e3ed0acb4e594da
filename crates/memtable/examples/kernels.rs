//! Times the memtable against its naive twin: `cargo run --release -p lithify-memtable --example
//! kernels [entries [shapes [alone]]]`: the first so many shapes only, and without the twin. Prints ns per operation and the ratio to the twin. One thread, best of
//! three rounds; between rounds the memory comes back from the pool, as in a running database.

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use lithify_base::{Kind, MAX_SEQ, Tag, bytewise};
use lithify_env::RegionPool;
use lithify_memtable::naive::Naive;
use lithify_memtable::{MemTable, MemTableOptions, MemWriter};

const ROUNDS: usize = 3;

#[allow(clippy::disallowed_methods, reason = "a bench measures the real clock")]
fn clock() -> std::time::Instant {
    std::time::Instant::now()
}

/// Runs `f` and answers ns per operation.
fn time(ops: usize, f: impl FnOnce()) -> f64 {
    let start = clock();
    f();
    start.elapsed().as_nanos() as f64 / ops as f64
}

struct Shape {
    name: &'static str,
    value: usize,
    /// Key number `i` of a table, in the order of insertion.
    key: fn(u64) -> Vec<u8>,
}

/// A bijection that scatters numbers (the finaliser of MurmurHash3).
fn scatter(i: u64) -> u64 {
    let mut h = i.wrapping_add(0x9e37_79b9_7f4a_7c15);
    h = (h ^ h >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
    h = (h ^ h >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    h ^ h >> 33
}

fn random(i: u64) -> Vec<u8> {
    [scatter(i).to_be_bytes(), i.to_be_bytes()].concat()
}
fn ascending(i: u64) -> Vec<u8> {
    [i.to_be_bytes(), [0; 8]].concat()
}
fn user(i: u64) -> Vec<u8> {
    format!("user{:020}", scatter(i)).into_bytes()
}
fn path(i: u64) -> Vec<u8> {
    format!("/warehouse/eu-central/orders/{:020}", scatter(i)).into_bytes()
}

const SHAPES: [Shape; 5] = [
    Shape { name: "16 B random, 100 B value", value: 100, key: random },
    Shape { name: "16 B ascending, 100 B value", value: 100, key: ascending },
    Shape { name: "user + 20 digits, 100 B value", value: 100, key: user },
    Shape { name: "29 B prefix + 20 digits, 100 B value", value: 100, key: path },
    Shape { name: "16 B random, 1 KiB value", value: 1024, key: random },
];

fn fresh(pool: &RegionPool, bytes: usize) -> (Arc<MemTable>, MemWriter) {
    let options = MemTableOptions { order: bytewise(), arena_bytes: bytes, bloom: true };
    MemTable::new(options, Arc::new(pool.clone()))
}

/// Insert, get of a present key, get of an absent key, walk, iterator step; ns each.
fn fast(pool: &RegionPool, shape: &Shape, keys: &[Vec<u8>], probes: &[Vec<u8>]) -> [f64; 5] {
    let n = keys.len();
    let value = vec![b'v'; shape.value];
    let (table, mut writer) = fresh(pool, n * (shape.value + 64));
    let insert = time(n, || {
        for (seq, key) in keys.iter().enumerate() {
            writer.add(seq as u64 + 1, Kind::Value, key, &value);
        }
    });
    let table_bytes = table.bytes();
    let hit = time(n, || {
        for key in probes {
            black_box(table.get_newest(key, MAX_SEQ).expect("present").1[0]);
        }
    });
    let absent: Vec<_> = (0..n as u64).map(|i| (shape.key)(i + (1 << 40))).collect();
    let miss = time(n, || {
        for key in &absent {
            black_box(table.get_newest(key, MAX_SEQ));
        }
    });
    let walk = time(n, || {
        let sum = table.walk().map(|(k, tag, v)| touch(k, tag, v)).fold(0, u64::wrapping_add);
        black_box(sum);
    });
    let iter = time(n, || {
        let mut iter = table.iter();
        iter.seek_to_first();
        while iter.valid() {
            black_box(touch(iter.user_key(), iter.tag(), iter.value()));
            iter.next();
        }
    });
    assert!(table_bytes > n * shape.value);
    [insert, hit, miss, walk, iter]
}

/// Reads a byte of key and value, as a flush would.
fn touch(key: &[u8], tag: Tag, value: &[u8]) -> u64 {
    tag.0 + u64::from(key[key.len() - 1]) + u64::from(value[value.len() - 1])
}

/// Insert while another thread looks up keys all the time; ns per insert and lookups per insert.
fn beside_reader(pool: &RegionPool, shape: &Shape, keys: &[Vec<u8>]) -> (f64, f64) {
    let value = vec![b'v'; shape.value];
    let (table, mut writer) = fresh(pool, keys.len() * (shape.value + 64));
    let (inserted, lookups) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let insert = std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut rng = fastrand::Rng::with_seed(2);
            loop {
                let n = inserted.load(Ordering::Acquire);
                if n == keys.len() {
                    break;
                }
                if n > 0 {
                    black_box(table.get_newest(&keys[rng.usize(..n)], MAX_SEQ).expect("present"));
                    lookups.fetch_add(1, Ordering::Relaxed);
                }
            }
        });
        time(keys.len(), || {
            for (seq, key) in keys.iter().enumerate() {
                writer.add(seq as u64 + 1, Kind::Value, key, &value);
                inserted.store(seq + 1, Ordering::Release);
            }
        })
    });
    (insert, lookups.into_inner() as f64 / keys.len() as f64)
}

fn naive(shape: &Shape, keys: &[Vec<u8>], probes: &[Vec<u8>]) -> [f64; 5] {
    let n = keys.len();
    let value = vec![b'v'; shape.value];
    let mut twin = Naive::new(bytewise());
    let insert = time(n, || {
        for (seq, key) in keys.iter().enumerate() {
            twin.add(seq as u64 + 1, Kind::Value, key, &value);
        }
    });
    let hit = time(n, || {
        for key in probes {
            black_box(twin.versions(key, MAX_SEQ).next().expect("present").1[0]);
        }
    });
    let absent: Vec<_> = (0..n as u64).map(|i| (shape.key)(i + (1 << 40))).collect();
    let miss = time(n, || {
        for key in &absent {
            black_box(twin.versions(key, MAX_SEQ).next());
        }
    });
    let walk = time(n, || {
        let sum = twin.all().map(|(k, tag, v)| touch(k, tag, v)).fold(0, u64::wrapping_add);
        black_box(sum);
    });
    [insert, hit, miss, walk, walk]
}

fn best(mut round: impl FnMut() -> [f64; 5]) -> [f64; 5] {
    let mut best = [f64::MAX; 5];
    for _ in 0..ROUNDS {
        best.iter_mut().zip(round()).for_each(|(best, now)| *best = best.min(now));
    }
    best
}

fn main() {
    let n: usize = std::env::args().nth(1).map_or(500_000, |n| n.parse().expect("a number"));
    let shapes = std::env::args().nth(2).map_or(SHAPES.len(), |n| n.parse().expect("a number"));
    let with_twin = std::env::args().nth(3).is_none();
    let pool = RegionPool::new(2 << 30);
    println!("{n} entries; ns per operation (naive twin / this)");
    println!("{:38}{:>16}{:>16}{:>16}{:>16}{:>16}", "", "insert", "get", "absent", "walk", "iter");
    for shape in SHAPES.iter().take(shapes) {
        let keys: Vec<_> = (0..n as u64).map(shape.key).collect();
        // Probed in another order than inserted, but laid out in the order of probing.
        let mut order: Vec<_> = (0..n as u64).collect();
        fastrand::Rng::with_seed(1).shuffle(&mut order);
        let probes: Vec<_> = order.into_iter().map(shape.key).collect();
        let this = best(|| fast(&pool, shape, &keys, &probes));
        let twin = if with_twin { naive(shape, &keys, &probes) } else { [f64::NAN; 5] };
        print!("{:38}", shape.name);
        for (ns, twin) in this.iter().zip(twin) {
            print!("{:>16}", format!("{ns:.0} ({:.1}x)", twin / ns));
        }
        println!();
    }
    let keys: Vec<_> = (0..n as u64).map(SHAPES[0].key).collect();
    let (insert, lookups) = beside_reader(&pool, &SHAPES[0], &keys);
    println!("insert beside a reader: {insert:.0} ns, {lookups:.2} lookups meanwhile");
}
