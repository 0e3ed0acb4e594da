//! Step 5: what calls cost the thread that makes them.

use anyhow::Result;
use lithify_engine_gpu::Device;
use lithify_engine_gpu::device::Queue;

use super::Found;
use super::sessions::{Job, through};
use crate::machine::Machine;
use crate::timed::Timed;

pub(crate) fn run(machine: &Machine, mut device: Box<dyn Device>) -> Result<Found> {
    let mut found = Found::default();
    let bytes = machine.size(1 << 30, 1 << 20);
    let start = machine.seconds();
    let arena = device.arena(bytes)?;
    found.figure("pin_1gib_s", (machine.seconds() - start) * (1 << 30) as f64 / bytes as f64);
    device.drop_arena(arena);
    let rounds = 1000;
    let start = machine.seconds();
    for _ in 0..rounds {
        let event = device.record(Queue::Up)?;
        while !device.ready(event)? {}
    }
    found.figure("event_us", 1e6 * (machine.seconds() - start) / f64::from(rounds));
    drop(device);
    let set = machine.size(32 << 20, 256 << 10);
    let device = Timed::new(machine.device()?, machine.rt.clone(), false);
    let notes = device.notes();
    let engine = machine.engine_over(Box::new(device), machine.options(3, set))?;
    let ran = through(machine, &engine, &Job::new(128, 16 * set, set)?)?;
    let notes = notes.lock();
    found.figure("calls_per_set", notes.calls as f64 / ran.sets as f64);
    found.figure("calls_us_per_set", notes.calls_ns / 1e3 / ran.sets as f64);
    Ok(found)
}
