//! Sets are as large as the memory of a unit allows for what the inputs hold, and fit.

use std::sync::Arc;

use lithify_engine::conformance::run;
use lithify_engine::stream::{Stream, StreamShape};
use lithify_engine::{BlockSet, Engine, Recipe};
use lithify_engine_gpu::paced::{Paced, Rates};
use lithify_engine_gpu::{Emu, GpuEngine, GpuOptions};
use lithify_env::{OsRt, RtOptions};
use lithify_format::compress::Codec;
use lithify_merge::recipe::Density;
use lithify_merge::workload::{BlockStyle, Case};

/// Bytes of device memory of the one unit.
const MEMORY: u64 = 2 << 20;

fn shape(key: usize, value: usize) -> StreamShape {
    StreamShape { runs: 8, key, value, bytes: 2 << 20, seed: 5 }
}

/// What the inputs hold, as tables count it.
fn density(shape: StreamShape) -> Option<Density> {
    let mut stream = Stream::new(shape);
    let values = stream.bytes();
    let all = stream.next_set(u64::MAX, u16::MAX).unwrap().unwrap();
    let blocks = || all.runs.iter().flat_map(|run| &*run.blocks);
    let entries: u64 = blocks().map(|b| u64::from(b.entries)).sum();
    let keys: u64 = blocks().map(|b| b.key_bytes).sum::<u64>() - 8 * entries;
    Density::of(all.bytes(), entries, keys, values - keys - 8 * entries).map(Density::uncompressed)
}

#[test]
fn sets_fit_whatever_the_size_of_entries() {
    let rt = OsRt::new(RtOptions::default());
    for (key, value) in [(16, 0), (16, 8), (8, 32), (16, 32), (100, 32), (16, 128), (16, 1024)] {
        let rates =
            Rates { up: 1e3, down: 1e3, kernels: 1e3, call_ns: 0.0, with_commands: 64 << 10 };
        let device = Paced::new(Emu::new(2), rates, Box::new(|| u64::MAX / 2));
        let usage = device.usage();
        let set_bytes = MEMORY / 8;
        let options = GpuOptions { units: 1, set_bytes, memory: MEMORY, ..GpuOptions::default() };
        let engine = GpuEngine::new(Box::new(device), options).unwrap();
        let mut stream = Stream::new(shape(key, value));
        let mut recipe = Recipe::clone(&stream.recipe);
        let unknown = engine.caps_for(&recipe);
        assert_eq!(unknown.set_bytes, MEMORY / 16, "nothing is known");
        recipe.density = density(shape(key, value));
        let caps = engine.caps_for(&recipe);
        assert!(caps.set_bytes <= caps.max_set_bytes.min(set_bytes));
        let mut sets: Vec<BlockSet> = Vec::new();
        while let Some(set) = stream.next_set(caps.set_bytes, caps.ways).unwrap() {
            assert!(set.bytes() <= caps.max_set_bytes, "{key} {value}: {}", set.bytes());
            sets.push(set);
            if sets.len() == 3 {
                break;
            }
        }
        let ran = run(&engine, &rt, &Arc::new(recipe), sets, true);
        let most = usage.lock().memory[1];
        println!(
            "key {key}, value {value}: sets of {} B, {:.1} times as much on the device",
            caps.set_bytes,
            most as f64 / caps.set_bytes as f64
        );
        if let Err(e) = ran {
            panic!("key {key}, value {value}: {e}: {:?}", engine.evidence());
        }
        // Nor are they much smaller than they might be.
        assert!(most * 10 >= MEMORY * 6 || caps.set_bytes == set_bytes, "{most}");
    }
}

/// With LZ4 a set has its blocks on the device as they are stored and as they are decoded, and its output twice.
#[test]
fn compressed_sets_fit() {
    let rt = OsRt::new(RtOptions::default());
    for (value, period) in [(32, 4), (128, 50), (1024, 40)] {
        let rates =
            Rates { up: 1e3, down: 1e3, kernels: 1e3, call_ns: 0.0, with_commands: 64 << 10 };
        let device = Paced::new(Emu::new(2), rates, Box::new(|| u64::MAX / 2));
        let usage = device.usage();
        let options =
            GpuOptions { units: 1, set_bytes: MEMORY / 8, memory: MEMORY, ..GpuOptions::default() };
        let engine = GpuEngine::new(Box::new(device), options).unwrap();
        let mut case = Case::uniform(6, 8, (3 << 20) / (value + 24), 16, value).unwrap();
        for e in case.runs.iter_mut().flatten() {
            for i in period..value {
                e.value[i] = e.value[i - period];
            }
        }
        let style = BlockStyle { codec: Codec::Lz4, ..BlockStyle::default() };
        case.blocks = case.runs.iter().map(|run| style.encode(run).unwrap()).collect();
        let blocks = || case.blocks.iter().flatten().map(|block| &block.slice);
        let stored = blocks().map(|block| block.bytes.len() as u64).sum();
        let entries = case.runs.iter().flatten().count() as u64;
        let density = Density::of(stored, entries, 16 * entries, value as u64 * entries);
        let recipe = Recipe { codec: Codec::Lz4, density, ..Recipe::clone(&case.recipe) };
        let caps = engine.caps_for(&recipe);
        let sets: Vec<BlockSet> = case.sets(caps.set_bytes).into_iter().take(3).collect();
        assert_eq!(sets.len(), 3, "{} B, sets of {}", stored, caps.set_bytes);
        let ran = run(&engine, &rt, &Arc::new(recipe), sets, true);
        let most = usage.lock().memory[1];
        println!(
            "value {value}, stored {:.2} of it: sets of {} B, {:.1} times as much on the device",
            stored as f64 / (entries * (value as u64 + 16)) as f64,
            caps.set_bytes,
            most as f64 / caps.set_bytes as f64
        );
        if let Err(e) = ran {
            panic!("value {value}: {e}: {:?}", engine.evidence());
        }
        assert!(most * 10 >= MEMORY * 5 || caps.set_bytes == MEMORY / 8, "{most}");
    }
}
