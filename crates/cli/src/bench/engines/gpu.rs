//! What is predicted of a GPU, and in a build that has its emulator a sample that the kernels have to merge as the
//! CPU does.

use anyhow::{Result, bail};
use lithify_bench::{GpuRow, Ran};
use lithify_engine::Engine;
use lithify_engine::stream::Stream;
use lithify_engine_gpu::choose::{GpuKind, GpuList, GpuWanted};
use lithify_engine_gpu::predict::{Assumed, Work, predict};

use super::drive::together;
use super::{Bench, CpuEngine};
use crate::engines::gpu::{runtime, wanted};

/// Bytes of a job that the emulator merges: some MB take a second.
const SAMPLE: u64 = 4 << 20;

/// The rows of a job: plain, and with LZ4 both ways.
pub(super) fn rows(bench: &mut Bench, kind: (u64, usize, usize)) -> Result<[GpuRow; 2]> {
    let plain = sampled(bench, kind, false)?;
    let lz4 = sampled(bench, kind, true)?;
    // Both have the same entries in the same blocks.
    let share = lz4.stored as f64 / plain.stored as f64;
    Ok([row(bench, kind, &plain, None)?, row(bench, kind, &lz4, Some(share))?])
}

/// Has the CPU merge a sample of a job, and the emulator, if it is asked for, which has to make the same of it.
fn sampled(bench: &Bench, (job, key, value): (u64, usize, usize), is_lz4: bool) -> Result<Ran> {
    let shape = bench.shape((job.min(SAMPLE), key, value), 0, 1);
    let stream = || match is_lz4 {
        true => Stream::lz4(shape),
        false => Ok(Stream::new(shape)),
    };
    let told = bench.told("gpu, a sample of the CPU's");
    let by_cpu = together(&CpuEngine, vec![stream()?], &bench.clock, &told)?;
    drop(told);
    let wanted = wanted(&bench.args.gpu)?;
    if is_emulated(&wanted) {
        let engines = wanted.engines(&runtime()).or_else(crate::engines::gpu::refused)?;
        let told = bench.told("gpu, emulated");
        for engine in &engines {
            let ran = together(engine, vec![stream()?], &bench.clock, &told)?;
            if ran.hashes != by_cpu.hashes {
                bail!(
                    "{} made other bytes than the CPU of {shape:?}, LZ4: {is_lz4}; this is a bug in Lithify",
                    engine.caps().name
                );
            }
        }
    }
    Ok(by_cpu)
}

fn is_emulated(wanted: &GpuWanted) -> bool {
    matches!(&wanted.machines, GpuList::These(list) if list.contains(&GpuKind::Emulator))
}

/// What is predicted of a job, of which this is a sample.
fn row(
    bench: &Bench,
    (job_bytes, key_bytes, value_bytes): (u64, usize, usize),
    sample: &Ran,
    lz4: Option<f64>,
) -> Result<GpuRow> {
    // Predicted is a GPU, not the emulator.
    let wanted = wanted(&bench.args.gpu)?;
    let set_bytes = wanted.sets().or_else(crate::engines::gpu::refused)?;
    let scale = job_bytes as f64 / sample.bytes as f64;
    let work = Work {
        stored: sample.stored as f64 * scale,
        entries: sample.entries as f64 * scale,
        value: value_bytes as f64,
        // An entry in ten is hidden, and one in twenty a delete, which stays.
        kept: 0.9,
        units: f64::from(wanted.units),
        set_bytes: set_bytes as f64,
        lz4,
    };
    let of = predict(&work, &Assumed::default());
    Ok(GpuRow {
        is_predicted: true,
        job_bytes,
        key_bytes,
        value_bytes,
        codec: if lz4.is_some() { "lz4" } else { "none" },
        stored_share: lz4.unwrap_or(1.0),
        units: wanted.units,
        set_bytes,
        gb_per_s: job_bytes as f64 / of.ns,
        bound_by: of.bound_by(),
        busiest: of.busy.iter().fold(0.0, |a, b| a.max(*b)),
        emulated_bytes: if is_emulated(&wanted) { job_bytes.min(SAMPLE) } else { 0 },
    })
}
