//! `--engine gpu` and `auto`: flags to what the engine's room takes.

use std::sync::Arc;

use anyhow::Result;
use lithify::EngineReport;
use lithify::engine::Engine;
use lithify_bench::GpuFlags;
use lithify_engine_gpu::choose::{GpuKind, GpuWanted, NoGpu, told};
use lithify_merge::certify::Mode;

use crate::failure::{stuck, usage};

/// What the flags ask for.
pub(crate) fn wanted(flags: &GpuFlags) -> Result<GpuWanted> {
    let machine = match GpuKind::parse(&flags.gpu_device) {
        Ok(machine) => machine,
        Err(hint) => return usage(format!("--gpu-device {}: {hint}", flags.gpu_device)),
    };
    Ok(GpuWanted {
        machine,
        units: flags.gpu_units,
        set_bytes: flags.gpu_set,
        memory: flags.gpu_memory,
        pinned: flags.gpu_pinned,
        certify: if flags.gpu_verify == "sums" { Mode::Sums } else { Mode::Full },
        prove: flags.gpu_prove,
        always: flags.gpu_route == "always",
    })
}

/// The engine over a GPU; with `auto` where there is none what says so.
pub(crate) fn engine(flags: &GpuFlags, auto: bool) -> Result<Arc<dyn Engine>> {
    let wanted = wanted(flags)?;
    let made = match auto {
        true => wanted.engine_or_none(),
        false => wanted.engine().map(|engine| Arc::new(engine) as _),
    };
    made.or_else(refused)
}

/// Says why there is no GPU, and what to do.
pub(crate) fn refused<T>(why: NoGpu) -> Result<T> {
    match why.is_usage() {
        true => usage(format!("--engine gpu: {why}; {}", why.advice())),
        false => stuck(format!("--engine gpu: {why}"), why.advice()),
    }
}

/// What it did.
pub(super) fn lines(of: &EngineReport) -> Vec<String> {
    let trouble = of.trouble.as_ref().map(|why| format!("{}: {why}", of.name));
    let did = (of.parts > 0 || trouble.is_none()).then(|| told(of.name, &of.machine));
    did.into_iter().chain(super::lost(of)).chain(trouble).collect()
}
