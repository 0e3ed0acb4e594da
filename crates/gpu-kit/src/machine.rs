//! What the steps run on: a GPU, or the emulator, by what was asked.

use std::sync::Arc;

use anyhow::{Context, Result, bail};
use lithify_engine_gpu::card::Card;
use lithify_engine_gpu::choose::{GpuKind, GpuList, GpuWanted};
use lithify_engine_gpu::cuda::Cuda;
use lithify_engine_gpu::image::ImageFile;
use lithify_engine_gpu::{Device, GpuEngine, GpuOptions};
use lithify_env::{OsRt, RtOptions, RtRef};
use lithify_merge::certify::Mode;

use crate::Asked;

/// Memory of a GPU and of the host that the steps take at most.
const MEMORY: u64 = 16 << 30;
const PINNED: u64 = 4 << 30;

/// A GPU or the emulator.
pub(crate) struct Machine {
    /// What was asked.
    pub(crate) asked: Asked,
    /// Its clocks, and the thread for calls of a driver.
    pub(crate) rt: RtRef,
    image: Option<ImageFile>,
}

impl Machine {
    pub(crate) fn new(asked: &Asked) -> Result<Machine> {
        let read = |name: &String| -> Result<ImageFile> {
            let bytes = std::fs::read(name).with_context(|| name.clone())?;
            Ok(ImageFile { name: name.clone(), bytes: bytes.into() })
        };
        let image = asked.image.as_ref().map(read).transpose()?;
        let rt: RtRef = Arc::new(OsRt::new(RtOptions::default()));
        if asked.emulator && !cfg!(feature = "emu") {
            bail!("this gpu-check has no emulator; build it with the feature emu");
        }
        Ok(Machine { asked: asked.clone(), rt, image })
    }

    /// Whether it is a GPU.
    pub(crate) fn is_real(&self) -> bool {
        !self.asked.emulator
    }

    /// The GPU.
    ///
    /// # Errors
    /// Why there is none.
    pub(crate) fn card(&self) -> Result<Card<Cuda>> {
        let wanted = GpuWanted {
            machines: GpuList::These(vec![GpuKind::Card(self.asked.gpu)]),
            units: 3,
            set_bytes: None,
            memory: None,
            pinned: PINNED,
            certify: Mode::Full,
            prove: 64,
            always: true,
            image: self.image.clone(),
        };
        wanted.card(self.asked.gpu).map_err(|why| anyhow::anyhow!("{why}; {}", why.advice()))
    }

    /// The device, for calls of its own.
    pub(crate) fn device(&self) -> Result<Box<dyn Device>> {
        #[cfg(feature = "emu")]
        if self.asked.emulator {
            return Ok(Box::new(lithify_engine_gpu::Emu::new(1)));
        }
        Ok(Box::new(self.card()?))
    }

    /// An engine over a device: a pump apart for a GPU, none for the emulator.
    pub(crate) fn engine_over(
        &self,
        device: Box<dyn Device>,
        options: GpuOptions,
    ) -> Result<GpuEngine> {
        Ok(match self.is_real() {
            true => GpuEngine::on(&self.rt, device, options)?,
            false => GpuEngine::new(device, options)?,
        })
    }

    /// The same over its device.
    pub(crate) fn engine(&self, options: GpuOptions) -> Result<GpuEngine> {
        self.engine_over(self.device()?, options)
    }

    /// Options of an engine with so many units and sets of so many bytes.
    pub(crate) fn options(&self, units: u8, set_bytes: u64) -> GpuOptions {
        // Small values take more than eight times their bytes.
        let memory = (set_bytes * 16 * u64::from(units)).min(MEMORY);
        let name = if self.is_real() { "gpu" } else { "gpu-emulator" };
        let (prove, certify, always) = (64, Mode::Sums, true);
        GpuOptions {
            name,
            units,
            set_bytes,
            tuned: None,
            memory,
            arenas: PINNED,
            inputs: PINNED,
            prove,
            certify,
            always,
        }
    }

    /// Seconds since some moment.
    pub(crate) fn seconds(&self) -> f64 {
        self.rt.now().nanos() as f64 / 1e9
    }

    /// `full`, or `quick` where sizes are small.
    pub(crate) fn size<T>(&self, full: T, quick: T) -> T {
        if self.asked.quick { quick } else { full }
    }
}
