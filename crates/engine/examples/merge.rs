//! How fast the CPU engine merges in memory: nanoseconds per entry and raw MB/s, next to the
//! naive twin. `cargo run --release -p lithify-engine --example merge [-- KEY VALUE RUNS]`.
//!
//! The fastest of several rounds on one thread. Input verification, decoding, drop rules, encoding,
//! checksums and filter hashes are in it, reading and writing are not.

use std::sync::Arc;

use lithify_engine::{CpuEngine, Engine, Offer, Products, Progress};
use lithify_merge::Kernel;
use lithify_merge::certify::{Certifier, Mode};
use lithify_merge::naive;
use lithify_merge::workload::Case;

/// Raw bytes of one case, about.
const BYTES: usize = 48 << 20;
/// Timed rounds; the fastest counts, since noise only adds.
const ROUNDS: usize = 7;

fn main() {
    let args: Vec<usize> = std::env::args().skip(1).filter_map(|a| a.parse().ok()).collect();
    println!(
        "key/value  runs  merge ns    MB/s  flush ns  certify ns: meta   full   naive ns  ratio"
    );
    if let [key, value, runs] = args[..] {
        return row(key, value, runs as u16, 60);
    }
    for (key, value) in [(16, 32), (16, 100), (16, 1024)] {
        for runs in [4, 11] {
            row(key, value, runs, ROUNDS);
        }
    }
}

fn row(key: usize, value: usize, runs: u16, rounds: usize) {
    let entries = BYTES / (key + value + 16);
    let case = Case::uniform(1, runs, entries, key, value).expect("a plain case");
    let mut sorted = case.entries();
    naive::sort(&case.recipe, &mut sorted);
    let mut best = [f64::MAX; 4];
    for _ in 0..rounds {
        let (merged, meta) = merge(&case, Mode::Meta);
        let (_, full) = merge(&case, Mode::Full);
        for (b, s) in best.iter_mut().zip([merged, flush(&case, &sorted), meta, full]) {
            *b = b.min(s);
        }
    }
    let [merge_ns, flush_ns, meta_ns, full_ns] = best.map(|s| s * 1e9 / entries as f64);
    let small = Case::uniform(2, runs, entries / 10, key, value).expect("a plain case");
    let input = small.entries();
    let n = input.len();
    let start = seconds();
    let out = naive::compact(&small.recipe, input).expect("the naive twin compacts");
    let naive_ns = (seconds() - start) * 1e9 / n as f64;
    assert_eq!(out.1.entries_out, n as u64);
    let mb = (entries * (key + value)) as f64 / best[0] / 1e6;
    println!(
        "{key:>3}/{value:<6} {runs:>4} {merge_ns:>9.1} {mb:>7.0} {flush_ns:>9.1} {meta_ns:>17.2} \
         {full_ns:>6.1} {naive_ns:>10.0} {:>6.1}",
        naive_ns / merge_ns
    );
}

/// Seconds for a flush of sorted entries.
fn flush(case: &Case, entries: &[naive::Entry]) -> f64 {
    let start = seconds();
    let mut products = Products::default();
    let mut kernel = Kernel::new(Arc::clone(&case.recipe)).expect("a plain recipe");
    for e in entries {
        kernel.push(&e.key, e.tag, &e.value, e.run).expect("sorted entries");
        if kernel.ready_bytes() > 1 << 20 {
            kernel.drain(&mut products);
        }
    }
    kernel.finish().expect("the ledger balances");
    kernel.drain(&mut products);
    seconds() - start
}

/// Seconds for merging, and for certifying.
fn merge(case: &Case, mode: Mode) -> (f64, f64) {
    let sets = case.sets(CpuEngine.caps().set_bytes);
    let mut products = Products::default();
    let mut certifier = Certifier::new(mode);
    let mut certify = 0.0;
    let start = seconds();
    let mut session = CpuEngine.open(Arc::clone(&case.recipe)).expect("the CPU takes it");
    let mut sets = sets.into_iter();
    let mut next = sets.next();
    let ledger = loop {
        match next.take() {
            Some(set) => match session.offer(set) {
                Offer::Taken => next = sets.next(),
                Offer::Full(set) => next = Some(set),
            },
            None => session.seal(),
        }
        match session.poll(&mut products) {
            Progress::Failed(fault) => panic!("{}", fault.error()),
            Progress::Done(ledger) => {
                break ledger;
            }
            _ => {}
        }
        let t = seconds();
        certifier.read(&case.recipe, &products).expect("sound output");
        certify += seconds() - t;
    };
    let total = seconds() - start;
    certifier.read(&case.recipe, &products).expect("sound output");
    certifier.finish(&ledger).expect("the ledger balances");
    (total - certify, certify)
}

/// Seconds since the first call.
#[allow(clippy::disallowed_methods, reason = "an example measures time outside of the store")]
fn seconds() -> f64 {
    static START: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
    START.get_or_init(std::time::Instant::now).elapsed().as_secs_f64()
}
