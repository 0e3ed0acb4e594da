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

/// Memory of a unit is kept from one set to the next, and each half of it as large as a set wanted it once: a set that fits has
/// room behind one whose front was larger and whose back was smaller.
#[test]
fn a_set_has_room_behind_one_of_another_kind() {
    let rt = OsRt::new(RtOptions::default());
    let mut case = Case::uniform(6, 4, 14_000, 16, 90).unwrap();
    for entry in case.runs.iter_mut().flatten() {
        // First many small entries, then fewer of which little is stored.
        entry.value = if entry.key[0] < 165 { Vec::new() } else { vec![7; 90] };
    }
    let style = BlockStyle { codec: Codec::Lz4, ..BlockStyle::default() };
    case.blocks = case.runs.iter().map(|run| style.encode(run).unwrap()).collect();
    let small = case.runs.iter().map(|run| {
        let small: Vec<_> = run.iter().filter(|e| e.value.is_empty()).cloned().collect();
        let blocks = style.encode(&small).unwrap();
        blocks.iter().map(|block| block.slice.bytes.len() as u64).sum::<u64>()
    });
    let mut budgets = [small.sum(), u64::MAX].into_iter();
    let sets = case.sets_by(|| budgets.next().unwrap_or(u64::MAX));
    assert_eq!(sets.len(), 2);
    let recipe = Arc::new(Recipe { codec: Codec::Lz4, ..Recipe::clone(&case.recipe) });
    // What sets take of so much memory, or why they have no room.
    let took = |memory: u64, sets: &[BlockSet]| {
        let rates =
            Rates { up: 1e3, down: 1e3, kernels: 1e3, call_ns: 0.0, with_commands: 64 << 10 };
        let device = Paced::new(Emu::new(2), rates, Box::new(|| u64::MAX / 2));
        let usage = device.usage();
        let options = GpuOptions { units: 1, set_bytes: 1, memory, ..GpuOptions::default() };
        let engine = GpuEngine::new(Box::new(device), options).unwrap();
        match run(&engine, &rt, &recipe, sets.to_vec(), true) {
            Ok(_) => Ok(usage.lock().memory[1]),
            Err(e) => Err(format!("{e}: {:?}", engine.evidence())),
        }
    };
    let alone = [&sets[..1], &sets[1..]].map(|set| took(64 << 20, set).unwrap());
    let most = alone[0].max(alone[1]);
    assert!(took(64 << 20, &sets).unwrap() > most, "they take the same: {alone:?}");
    assert!(took(most - 1, &sets).is_err(), "one of them has no room by itself");
    let both = took(most + (64 << 10), &sets).unwrap_or_else(|why| panic!("{alone:?}: {why}"));
    assert!(both <= most + (64 << 10), "{both}");
}
