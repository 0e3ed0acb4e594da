//! `--engine gpu` and `auto`: flags to what the engine's room takes.

use std::sync::Arc;

use anyhow::{Context, Result};
use lithify::EngineReport;
use lithify::engine::Engine;
use lithify_bench::GpuFlags;
use lithify_engine_gpu::choose::{GpuList, GpuWanted, NoGpu, told};
use lithify_engine_gpu::image::{IMAGE, ImageFile};
use lithify_env::{OsRt, RtOptions, RtRef};
use lithify_merge::certify::Mode;

use crate::failure::{stuck, usage};

/// What the flags ask for.
pub(crate) fn wanted(flags: &GpuFlags) -> Result<GpuWanted> {
    let machines = match GpuList::parse(&flags.gpu_devices) {
        Ok(machines) => machines,
        Err(hint) => return usage(format!("--gpu-devices {}: {hint}", flags.gpu_devices)),
    };
    Ok(GpuWanted {
        machines,
        units: flags.gpu_units,
        set_bytes: flags.gpu_set,
        memory: flags.gpu_memory,
        pinned: flags.gpu_pinned,
        certify: if flags.gpu_verify == "sums" { Mode::Sums } else { Mode::Full },
        prove: flags.gpu_prove,
        always: flags.gpu_route == "always",
        image: image_file()?,
    })
}

/// The file of kernels that the environment names, if it does.
fn image_file() -> Result<Option<ImageFile>> {
    let Some(path) = std::env::var_os(IMAGE) else { return Ok(None) };
    let name = path.to_string_lossy().into_owned();
    let bytes = std::fs::read(&path).with_context(|| format!("{IMAGE} names {name}"))?;
    Ok(Some(ImageFile { name, bytes: bytes.into() }))
}

/// A runtime for the calls of GPUs' drivers: a thread apart for each, whatever the store has. Its others never have work.
pub(crate) fn runtime() -> RtRef {
    let one = RtOptions { compact_threads: 1, io_threads: 1, ..RtOptions::default() };
    Arc::new(OsRt::new(one))
}

/// An engine over each GPU; with `auto` where there is none what says so.
pub(crate) fn engines(flags: &GpuFlags, auto: bool) -> Result<Vec<Arc<dyn Engine>>> {
    let wanted = wanted(flags)?;
    let rt = runtime();
    let made = match auto {
        true => wanted.engines_or_none(&rt),
        false => wanted
            .engines(&rt)
            .map(|engines| engines.into_iter().map(|engine| Arc::new(engine) as _).collect()),
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
