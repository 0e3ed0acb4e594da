//! What the thread of a part has to do beside a GPU: nanoseconds of its processor time an entry, next to the CPU
//! engine's. `cargo run --release -p lithify-engine-gpu --features emu --example replay [-- VALUE...]`.
//!
//! The device answers at once with what the emulator made before (`replay`), so nothing is said of a GPU's speed.
//! On this side are normalising, taking what comes back into the output, and certifying by sums; on the other
//! the merge, and certifying by metadata as in a store. Reading and writing files is on neither, nor is the thread of
//! the pump, which copies blocks for their way up. Medians of alternating rounds.

use std::sync::Arc;

use lithify_engine::stream::{Stream, StreamShape};
use lithify_engine::{BlockSet, CpuEngine, Engine, Offer, Products, Progress, Recipe};
use lithify_engine_gpu::replay::{Recorder, Replay, Tape};
use lithify_engine_gpu::{Device, Emu, GpuEngine, GpuOptions};
use lithify_env::{OsRt, Rt, RtOptions, RtRef};
use lithify_format::xxph3::xxph3_64;
use lithify_merge::Item;
use lithify_merge::certify::{Certifier, Mode};

/// Bytes of a job, about, and of a set.
const BYTES: u64 = 24 << 20;
const SET: u64 = 4 << 20;
const ROUNDS: usize = 5;

/// What a run came to.
struct Ran {
    /// Nanoseconds of the thread's processor time.
    ns: u64,
    entries: u64,
    hash: u64,
}

fn main() {
    let args: Vec<usize> = std::env::args().skip(1).filter_map(|a| a.parse().ok()).collect();
    let values = if args.is_empty() { vec![32, 64, 128, 256] } else { args };
    println!("value   cpu ns   beside a GPU ns   ratio   wanted");
    for value in values {
        row(value);
    }
}

fn row(value: usize) {
    let shape = StreamShape { runs: 8, key: 16, value, bytes: BYTES, seed: 1 };
    let mut stream = Stream::new(shape);
    let recipe = Arc::new(Recipe { filter: true, ..Recipe::clone(&stream.recipe) });
    let cut = || stream.next_set(SET, u16::MAX).expect("a stream has sets");
    let sets: Vec<BlockSet> = std::iter::from_fn(cut).collect();
    let rt: RtRef = Arc::new(OsRt::new(RtOptions::default()));
    let options = GpuOptions { units: 1, set_bytes: SET, ..GpuOptions::default() };
    let device = Recorder::new(Emu::new(1));
    let (shape, tape) = (device.shape(), device.tape());
    let engine = GpuEngine::new(Box::new(device), options).expect("options that make sense");
    let made = run(&engine, &*rt, &recipe, sets.clone(), Mode::Full);
    let tape: Tape = tape.lock().clone();
    let mut ns = [const { Vec::new() }; 2];
    for _ in 0..ROUNDS {
        let cpu = run(&CpuEngine, &*rt, &recipe, sets.clone(), Mode::Meta);
        let device = Box::new(Replay::new(shape, tape.clone()));
        let engine = GpuEngine::on(&rt, device, options).expect("options that make sense");
        let gpu = run(&engine, &*rt, &recipe, sets.clone(), Mode::Sums);
        assert!(cpu.hash == made.hash && gpu.hash == made.hash, "outputs differ");
        for (all, ran) in ns.iter_mut().zip([cpu, gpu]) {
            all.push(ran.ns as f64 / ran.entries as f64);
        }
    }
    let [cpu, gpu] = ns.map(|mut ns| {
        ns.sort_by(f64::total_cmp);
        ns[ROUNDS / 2]
    });
    let wanted = match value {
        32 => "3.61",
        64 => "3.28",
        128 => "2.76",
        256 => "2.30",
        _ => "-",
    };
    println!("{value:>5} {cpu:>8.1} {gpu:>17.1} {:>7.2} {wanted:>8}", cpu / gpu);
}

/// Merges the sets on this thread, and certifies what comes out.
fn run(
    engine: &dyn Engine,
    rt: &dyn Rt,
    recipe: &Arc<Recipe>,
    sets: Vec<BlockSet>,
    mode: Mode,
) -> Ran {
    let mut sets = sets.into_iter();
    let mut session = engine.open(recipe.clone()).unwrap_or_else(|e| panic!("{e}"));
    let (mut certifier, mut products) = (Certifier::new(mode), Products::default());
    let (mut ran, mut held) = (Ran { ns: 0, entries: 0, hash: 0 }, None);
    loop {
        let start = rt.thread_cpu();
        match held.take().or_else(|| sets.next()) {
            None => session.seal(),
            Some(set) => {
                if let Offer::Full(set) = session.offer(set) {
                    held = Some(set);
                }
            }
        }
        let progress = session.poll(&mut products);
        certifier.read(recipe, &products).expect("what comes out is sound");
        ran.ns += (rt.thread_cpu() - start).as_nanos() as u64;
        for item in products.items() {
            if let Item::Block(block) = item {
                let next = xxph3_64(products.block(block));
                ran.hash = (ran.hash ^ next).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
            }
        }
        match progress {
            Progress::Done(ledger) => {
                ran.entries = ledger.entries_in;
                return ran;
            }
            Progress::Failed(fault) => panic!("{}", fault.error()),
            Progress::Pending(ticket) => drop(rt.park(&ticket, None)),
            Progress::More | Progress::Starved => {}
        }
    }
}
