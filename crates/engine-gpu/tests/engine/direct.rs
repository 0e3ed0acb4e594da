//! Inputs that lie in memory which the device lends: they go to it from there, in as few copies as may be, and what
//! is made of them is what the CPU makes.

use std::sync::Arc;

use lithify_engine::{BlockSet, Bytes, Engine, RunSlice};
use lithify_engine_gpu::device::Queue;
use lithify_engine_gpu::{Device, Emu, GpuEngine, GpuOptions};
use lithify_env::sync::Mutex;
use lithify_merge::naive;
use lithify_merge::workload::{Case, Features};

use crate::common::*;
use crate::faulty::{Asked, CALLS, Call, Faulty, Mishap, job};
use crate::relay::part;

/// Has the device lend buffers, which takes a turn of its pump.
fn turn(engine: &GpuEngine, case: &Case) {
    drop(engine.open(case.recipe.clone()));
}

/// The same sets with all blocks but those of every `others`-th run in memory that the engine lends, as far as there is
/// some: one buffer for each run, as the feed reads them.
fn in_place(
    engine: &GpuEngine,
    case: &Case,
    mut sets: Vec<BlockSet>,
    others: usize,
) -> Vec<BlockSet> {
    for set in &mut sets {
        for (no, run) in set.runs.iter_mut().enumerate().filter(|(no, _)| no % others != others - 1)
        {
            let all: usize = run.blocks.iter().map(|block| block.bytes.len()).sum();
            let buffer = engine.input_buffer(all).or_else(|| {
                turn(engine, case);
                engine.input_buffer(all)
            });
            let Some(mut buffer) = buffer else { continue };
            // Every third run has a gap, as a file may.
            let gap = if no % 3 == 2 { 3 } else { 0 };
            buffer.clear();
            let mut places = Vec::new();
            for block in &*run.blocks {
                let from = buffer.len();
                if from + block.bytes.len() + gap > buffer.capacity() {
                    break;
                }
                buffer.extend_from_slice(block.bytes.as_slice());
                places.push(from..buffer.len());
                buffer.extend_from_slice(&[0xee; 3][..gap]);
            }
            let bytes = Bytes::new(Arc::new(buffer));
            let mut blocks = run.blocks.to_vec();
            for (block, place) in blocks.iter_mut().zip(places) {
                block.bytes = bytes.slice(place).unwrap();
            }
            *run = RunSlice { run: run.run, blocks: blocks.into() };
        }
    }
    sets
}

fn over(plan: Option<(Call, u64, Mishap)>, inputs: u64) -> (GpuEngine, Arc<Mutex<Asked>>) {
    let asked = Arc::new(Mutex::new(Asked::default()));
    let device = Faulty { emu: Emu::new(9), plan, asked: asked.clone() };
    let options = GpuOptions { inputs, ..GpuOptions::default() };
    (GpuEngine::new(Box::new(device), options).unwrap(), asked)
}

/// All forms of blocks, in place, copied, and both in one set.
#[test]
fn inputs_in_place_make_the_same_bytes() {
    let (engine, asked) = over(None, 16 << 20);
    let mut sent = 0;
    for seed in 0..seeds(120) {
        let features = if seed % 2 == 0 { Features::Device } else { Features::Lz4 };
        let case = Case::with(7000 + seed, SMALL, features).unwrap();
        let sets = case.sets([700, 2500, 100_000][seed as usize % 3]);
        let sets = in_place(&engine, &case, sets, [1 << 20, 2, 3][seed as usize / 3 % 3]);
        let done = part(&engine, &case, sets);
        let (output, ledger) = naive::compact(&case.recipe, case.entries()).unwrap();
        assert!(done.output == output && done.ledger == ledger, "{seed}");
        assert!(!done.gave_up && done.disproved.is_none(), "{seed}: {:?}", engine.evidence());
        let now = asked.lock().calls[Call::Send as usize];
        sent += u64::from(now > sent);
    }
    assert!(sent > 0 && figure(&engine, "inputs_in_place") > 100);
    assert!(figure(&engine, "input_bytes") <= 16 << 20);
    println!("{} buffers in place", figure(&engine, "inputs_in_place"));
}

/// Blocks side by side are one copy, and what is sent is not copied by the host.
#[test]
fn neighbours_are_one_copy() {
    let case = Case::uniform(3, 4, 400, 16, 200).unwrap();
    let runs = |sets: &[BlockSet]| sets.iter().map(|set| set.runs.len() as u64).sum::<u64>();
    let (engine, asked) = over(None, 16 << 20);
    let sets = in_place(&engine, &case, case.sets(8 << 10), 1 << 20);
    let blocks: usize = sets.iter().flat_map(|set| &set.runs).map(|run| run.blocks.len()).sum();
    let n = runs(&sets);
    let gaps: usize =
        sets.iter().flat_map(|set| set.runs.get(2)).map(|run| run.blocks.len() - 1).sum();
    part(&engine, &case, sets);
    let calls = asked.lock().calls;
    assert_eq!(calls[Call::Send as usize], n + gaps as u64, "{blocks} blocks of {n} pieces");
    assert!((blocks as u64) > n + gaps as u64);
}

/// Whatever call fails, and whatever bit flips on its way, the bytes are the CPU's, and nothing is held in the end.
#[test]
fn every_call_with_inputs_in_place_may_fail() {
    let case = job();
    let under = |plan| {
        let (engine, asked) = over(plan, 1 << 20);
        let sets = in_place(&engine, &case, case.sets(2500), 3);
        let done = part(&engine, &case, sets);
        let (output, ledger) = naive::compact(&case.recipe, case.entries()).unwrap();
        assert!(done.output == output && done.ledger == ledger, "{plan:?}");
        assert_eq!(asked.lock().late, 0, "{plan:?}: a call of a device that is gone");
        let lost = figure(&engine, "device_lost") == 1;
        assert!(lost || asked.lock().held == 0, "{plan:?}");
        let noticed = lost || done.gave_up || done.disproved.is_some();
        let calls = asked.lock().calls;
        (calls, noticed)
    };
    let (calls, _) = under(None);
    assert!(calls[Call::Send as usize] >= 15, "{calls:?}");
    let (mut tried, mut unnoticed) = (0, 0);
    for call in CALLS {
        for n in 0..calls[call as usize] {
            assert!(under(Some((call, n, Mishap::Gone))).1, "{call:?} {n} was not noticed");
            if matches!(call, Call::Alloc | Call::Arena) {
                under(Some((call, n, Mishap::NoRoom)));
            }
            if call == Call::Send {
                let flip = Mishap::Flip(n as usize * 7919 + 13);
                unnoticed += u64::from(!under(Some((call, n, flip))).1);
            }
            tried += 1;
        }
    }
    println!("{tried} calls failed: 0 wrong bytes; {unnoticed} bits flipped that no one noticed");
    // One set goes up twice, the first time to be counted alone.
    assert!(unnoticed <= 3, "{unnoticed}");
}

/// A stock has a bound, lends what comes back again, and has nothing for those who ask for more or after its end.
#[test]
fn the_stock_has_a_bound() {
    let case = Case::uniform(3, 2, 10, 16, 100).unwrap();
    let (engine, _) = over(None, 256 << 10);
    assert!(engine.input_buffer(50_000).is_none(), "nothing is there yet");
    turn(&engine, &case);
    let one = engine.input_buffer(50_000).expect("it was wished for");
    assert!(one.capacity() >= 50_000);
    let at = one.as_slice().as_ptr();
    drop(one);
    let again = engine.input_buffer(49_000).expect("it came back");
    assert_eq!(again.as_slice().as_ptr(), at);
    // As many as there is room for, and what is out stays out.
    let mut out = vec![again];
    for _ in 0..20 {
        out.extend(engine.input_buffer(50_000));
        turn(&engine, &case);
    }
    assert!((3..=4).contains(&out.len()), "{}", out.len());
    assert!(figure(&engine, "input_bytes") <= 256 << 10);
    assert!(engine.input_buffer(300 << 10).is_none());
    // Another size takes the room of what is free.
    out.clear();
    assert!(engine.input_buffer(200_000).is_none());
    turn(&engine, &case);
    let large = engine.input_buffer(200_000).expect("there is room");
    drop(engine);
    assert_eq!(large.capacity() % 4096, 0, "what is out outlives the engine");
    let (engine, _) = over(None, 0);
    assert!(engine.input_buffer(1).is_none(), "none was asked for");
    assert_eq!(figure(&engine, "inputs_copied"), 0);
}

/// Bytes in memory of any owner's may be sent.
#[test]
fn what_is_sent_may_lie_anywhere() {
    let mut emu = Emu::new(1);
    let memory = emu.alloc(64).unwrap();
    emu.send(Queue::Up, Bytes::from(vec![7; 64]), memory.address).unwrap();
    let beyond = emu.send(Queue::Up, Bytes::from(vec![7; 65]), memory.address).unwrap_err();
    assert!(beyond.to_string().contains("out of the memory"), "{beyond}");
    let arena = emu.arena(64).unwrap();
    emu.download(Queue::Down, memory.address, &arena, 0..64).unwrap();
    assert_eq!(emu.bytes(&arena).unwrap(), [7; 64]);
}
