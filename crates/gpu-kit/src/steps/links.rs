//! Step 4: copies from and to pinned memory.

use anyhow::Result;
use lithify_engine_gpu::Device;
use lithify_engine_gpu::device::Queue;

use super::Found;
use crate::machine::Machine;

const ROUNDS: usize = 5;

pub(crate) fn run(machine: &Machine, mut device: Box<dyn Device>) -> Result<Found> {
    let mut found = Found::default();
    let sizes = machine.size(vec![4, 16, 64, 256], vec![1]);
    for mib in sizes {
        let bytes = mib << 20;
        let suffix =
            if mib == 64 || machine.asked.quick { String::new() } else { format!("_{mib}mib") };
        let memory = [device.alloc(bytes as u64)?, device.alloc(bytes as u64)?];
        let arenas = [device.arena(bytes)?, device.arena(bytes)?];
        for arena in &arenas {
            device.bytes(arena)?.fill(7);
        }
        let mut best = [f64::INFINITY; 3];
        for _ in 0..ROUNDS {
            for (best, ways) in best.iter_mut().zip([[true, false], [false, true], [true, true]]) {
                let start = machine.seconds();
                if ways[0] {
                    device.upload(Queue::Up, &arenas[0], 0..bytes, memory[0].address)?;
                }
                if ways[1] {
                    device.download(Queue::Down, memory[1].address, &arenas[1], 0..bytes)?;
                }
                let events = [device.record(Queue::Up)?, device.record(Queue::Down)?];
                for event in events {
                    while !device.ready(event)? {}
                }
                *best = best.min(machine.seconds() - start);
            }
        }
        let rate = |seconds: f64| bytes as f64 / seconds / 1e9;
        found.figure(format!("up{suffix}"), rate(best[0]));
        found.figure(format!("down{suffix}"), rate(best[1]));
        found.figure(format!("up_of_both{suffix}"), rate(best[2]));
        found.figure(format!("down_of_both{suffix}"), rate(best[2]));
        arenas.into_iter().for_each(|arena| device.drop_arena(arena));
        memory.into_iter().for_each(|memory| device.free(memory));
    }
    Ok(found)
}
