//! What is predicted of a GPU, and in a build that has its emulator a sample that the kernels have to merge as the
//! CPU does.

use anyhow::Result;
use lithify_bench::GpuRow;
use lithify_engine_gpu::choose::GpuKind;
use lithify_engine_gpu::predict::{Assumed, Work, predict};

use super::drive::together;
use super::{Bench, CpuEngine};
use crate::engines::gpu::{runtime, wanted};

/// Bytes of a job that the emulator merges: some MB take a second.
const SAMPLE: u64 = 4 << 20;

/// A row of a job.
pub(super) fn row(bench: &mut Bench, kind: (u64, usize, usize)) -> Result<GpuRow> {
    let (job_bytes, key_bytes, value_bytes) = kind;
    let sample = (job_bytes.min(SAMPLE), key_bytes, value_bytes);
    let told = bench.told("gpu, a sample of the CPU's");
    let ran = together(&CpuEngine, bench.streams(sample, 1), &bench.clock, &told)?;
    drop(told);
    bench.compare("cpu", sample, 1, &ran)?;
    let mut wanted = wanted(&bench.args.gpu)?;
    let is_emulated = wanted.machine == GpuKind::Emulator;
    if is_emulated {
        let engine = wanted.engine(&runtime()).or_else(crate::engines::gpu::refused)?;
        let told = bench.told("gpu, emulated");
        let ran = together(&engine, bench.streams(sample, 1), &bench.clock, &told)?;
        drop(told);
        bench.compare("gpu-emulator", sample, 1, &ran)?;
        // Predicted is a GPU, not the emulator.
        wanted.machine = GpuKind::Card(0);
    }
    let set_bytes = wanted.sets().or_else(crate::engines::gpu::refused)?;
    let scale = job_bytes as f64 / ran.bytes as f64;
    let work = Work {
        stored: ran.stored as f64 * scale,
        entries: ran.entries as f64 * scale,
        value: value_bytes as f64,
        // An entry in ten is hidden, and one in twenty a delete, which stays.
        kept: 0.9,
        units: f64::from(wanted.units),
        set_bytes: set_bytes as f64,
    };
    let of = predict(&work, &Assumed::default());
    Ok(GpuRow {
        is_predicted: true,
        job_bytes,
        key_bytes,
        value_bytes,
        units: wanted.units,
        set_bytes,
        gb_per_s: job_bytes as f64 / of.ns,
        bound_by: of.bound_by(),
        busiest: of.busy.iter().fold(0.0, |a, b| a.max(*b)),
        emulated_bytes: if is_emulated { sample.0 } else { 0 },
    })
}
