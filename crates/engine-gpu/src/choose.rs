//! Which devices engines are made over, from what was asked for; and what stands for one where there is none.
//!
//! Keeps: a GPU that is asked for is there, or a reason with what to do ([`NoGpu`]); an emulator is used only where
//! it was asked for by name, and is called one. Each device has an engine of its own, with its own pump, units, memory and
//! arenas, so that one that fails takes no work with it but its own. Which machine merges never changes a byte of
//! the output.
//! Leaves to others: flags (the command line has them), and the choice between engines part by part (`compact`).

use std::fmt;

use lithify_engine::{Caps, Cost, Engine, Recipe, Refusal, Session};
use lithify_env::RtRef;
use lithify_env::sync::Arc;
use lithify_merge::certify::Mode;

use crate::card::{Card, DRIVER, count};
use crate::cuda::Cuda;
use crate::image::{ImageFile, image};
use crate::{GpuEngine, GpuOptions};

/// Name of an engine over the emulator, and how those of several begin.
pub const EMULATOR: &str = "gpu-emulator";
/// Name of an engine over a GPU.
const GPU: &str = "gpu";
/// Most devices that one database has.
const MOST: usize = 16;
/// Names of engines where there are several: of GPUs by their numbers, of emulators by their places.
const GPUS: [&str; MOST] = [
    "gpu0", "gpu1", "gpu2", "gpu3", "gpu4", "gpu5", "gpu6", "gpu7", "gpu8", "gpu9", "gpu10",
    "gpu11", "gpu12", "gpu13", "gpu14", "gpu15",
];
const EMULATORS: [&str; MOST] = [
    "gpu-emulator0",
    "gpu-emulator1",
    "gpu-emulator2",
    "gpu-emulator3",
    "gpu-emulator4",
    "gpu-emulator5",
    "gpu-emulator6",
    "gpu-emulator7",
    "gpu-emulator8",
    "gpu-emulator9",
    "gpu-emulator10",
    "gpu-emulator11",
    "gpu-emulator12",
    "gpu-emulator13",
    "gpu-emulator14",
    "gpu-emulator15",
];
/// Stored bytes of a set on a GPU unless it is said, and on the emulator, which takes a second for some MB.
const SETS: (u64, u64) = (8 << 20, 1 << 20);
/// Least and most bytes of sets whose size is not said, and follows what they take. On an H200 larger ones gain the device
/// nothing and cost the host its caches: a file of 256 MiB took 131 ns an entry with sets of 8 MiB, and 155 with sets
/// that were free to grow.
const TUNED: (u64, u64) = (4 << 20, 16 << 20);
/// Most device memory that is taken unless it is said.
const MEMORY: u64 = 4 << 30;

/// A machine that runs the kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GpuKind {
    /// The GPU of that number.
    Card(u32),
    /// The emulator of a device's threads: for tests.
    Emulator,
}

impl GpuKind {
    /// Reads one.
    ///
    /// # Errors
    /// A sentence with what it may be.
    fn parse(text: &str) -> Result<GpuKind, String> {
        match text.parse() {
            Ok(no) => Ok(GpuKind::Card(no)),
            Err(_) if text == "emulator" && cfg!(feature = "emu") => Ok(GpuKind::Emulator),
            Err(_) if cfg!(feature = "emu") => {
                Err("take the number of a GPU, or emulator; several with commas, or all".to_owned())
            }
            Err(_) => {
                Err("take the number of a GPU, such as 0; several with commas, or all".to_owned())
            }
        }
    }
}

/// The machines that run the kernels, side by side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GpuList {
    /// All GPUs that the driver sees.
    All,
    /// These, at least one.
    These(Vec<GpuKind>),
}

impl GpuList {
    /// Reads what a flag says: numbers and `emulator` with commas between, or `all`.
    ///
    /// # Errors
    /// A sentence with what it may say.
    pub fn parse(text: &str) -> Result<GpuList, String> {
        if text == "all" {
            return Ok(GpuList::All);
        }
        let words = text.split(',').map(str::trim);
        let list = words.map(GpuKind::parse).collect::<Result<Vec<GpuKind>, String>>()?;
        let is_twice = |(at, kind): (usize, &GpuKind)| {
            matches!(kind, GpuKind::Card(_)) && list[..at].contains(kind)
        };
        if list.iter().enumerate().any(is_twice) {
            return Err("take each GPU once".to_owned());
        }
        named(&list).map_err(|why| why.to_string())?;
        Ok(GpuList::These(list))
    }
}

/// These machines, each with the name of its engine: one alone is called by its kind.
///
/// # Errors
/// If there is no name for one.
fn named(list: &[GpuKind]) -> Result<Vec<(GpuKind, &'static str)>, NoGpu> {
    let name = |(at, kind): (usize, &GpuKind)| match (kind, list.len()) {
        (GpuKind::Card(_), 1) => Some(GPU),
        (GpuKind::Emulator, 1) => Some(EMULATOR),
        (GpuKind::Card(no), _) => GPUS.get(*no as usize).copied(),
        (GpuKind::Emulator, _) => EMULATORS.get(at).copied(),
    };
    let names = list.iter().enumerate().map(|of| name(of).map(|name| (*of.1, name)));
    names.collect::<Option<Vec<_>>>().ok_or_else(|| {
        NoGpu::Wrong(format!(
            "take at most {MOST} at once, of GPUs those with numbers below {MOST}"
        ))
    })
}

/// What is asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct GpuWanted {
    /// Which machines. All that follows holds of each.
    pub machines: GpuList,
    /// Sets on it at once, 1 to 64.
    pub units: u8,
    /// Stored bytes of a set.
    pub set_bytes: Option<u64>,
    /// Most bytes of device memory.
    pub memory: Option<u64>,
    /// Most bytes of host memory that copies go from and to.
    pub pinned: u64,
    /// How much of what comes back is looked at.
    pub certify: Mode,
    /// One in so many sets is merged again by the host.
    pub prove: u32,
    /// Every part goes to it, whatever it costs.
    pub always: bool,
    /// Kernels in place of those of the build.
    pub image: Option<ImageFile>,
}

/// Why there is no engine over a GPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoGpu {
    /// There is no library of NVIDIA's driver.
    NoLibrary,
    /// The driver is older than what the kernels were made for; what it supports.
    OldDriver(u32),
    /// The driver sees fewer GPUs.
    NoCard {
        /// The number that was asked for.
        no: u32,
        /// How many there are.
        there: u32,
    },
    /// The GPU is older than what the kernels were made for.
    OldCard {
        /// Its name.
        name: String,
        /// Its generation, as 75 for 7.5.
        capability: u32,
    },
    /// This build has no kernels for a GPU.
    NoImage,
    /// What should be kernels is not, or is of another version.
    BadImage(String),
    /// The GPU has no memory for what was asked.
    NoMemory(String),
    /// This build has no emulator.
    NoEmulator,
    /// What was asked for makes no sense.
    Wrong(String),
    /// The device failed at once.
    Failed(String),
}

impl NoGpu {
    /// What to do about it.
    pub fn advice(&self) -> &'static str {
        match self {
            NoGpu::NoLibrary | NoGpu::OldDriver(_) => {
                "install NVIDIA's driver, version 580 or later; or take --engine cpu, or --engine auto, which \
                 uses a GPU where there is one"
            }
            NoGpu::NoCard { .. } | NoGpu::OldCard { .. } | NoGpu::Failed(_) => {
                "take --engine cpu, or --engine auto, which uses a GPU where there is one"
            }
            NoGpu::NoImage => {
                "make it with `cargo xtask gpu build` and build again, or name one in LITHIFY_GPU_IMAGE; or take \
                 --engine cpu"
            }
            NoGpu::BadImage(_) => {
                "make the image again with `cargo xtask gpu build` of this version, or take --engine cpu"
            }
            NoGpu::NoMemory(_) => {
                "take less with --gpu-memory and --gpu-pinned, or take --engine cpu"
            }
            NoGpu::NoEmulator => "build with the feature gpu-emulator, or take the number of a GPU",
            NoGpu::Wrong(_) => "take other sizes, or none",
        }
    }
    /// Whether what was asked for is wrong, rather than this machine.
    pub fn is_usage(&self) -> bool {
        matches!(self, NoGpu::NoEmulator | NoGpu::Wrong(_))
    }
}

impl fmt::Display for NoGpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoGpu::NoLibrary => f.write_str("there is no library of NVIDIA's driver (libcuda)"),
            NoGpu::OldDriver(version) => write!(
                f,
                "the GPU's driver supports CUDA {}.{}, and the kernels need {}.{}",
                version / 1000,
                version % 1000 / 10,
                DRIVER / 1000,
                DRIVER % 1000 / 10
            ),
            NoGpu::NoCard { no, there: 0 } => {
                write!(f, "GPU {no} is asked for, and the driver sees none")
            }
            NoGpu::NoCard { no, there } => {
                write!(f, "GPU {no} is asked for, and the driver sees {there}, numbered from 0 on")
            }
            NoGpu::OldCard { name, capability } => write!(
                f,
                "{name} is of generation {}.{}, and the kernels are made for 8.0 and later",
                capability / 10,
                capability % 10
            ),
            NoGpu::NoImage => f.write_str("this build has no kernels for a GPU"),
            NoGpu::BadImage(what) => f.write_str(what),
            NoGpu::NoEmulator => f.write_str("this build has no emulator of a GPU"),
            NoGpu::Wrong(what) | NoGpu::NoMemory(what) | NoGpu::Failed(what) => f.write_str(what),
        }
    }
}

impl GpuWanted {
    /// An engine for each machine that was asked for; a GPU's calls are made by a job of `rt`, one for each.
    ///
    /// # Errors
    /// Why one is missing.
    pub fn engines(&self, rt: &RtRef) -> Result<Vec<GpuEngine>, NoGpu> {
        self.list()?.into_iter().map(|(kind, name)| self.engine(kind, name, rt)).collect()
    }

    /// The same, with what says why there is none and takes no work in the place of those that are missing.
    ///
    /// # Errors
    /// If what was asked for is wrong, whatever the machine.
    pub fn engines_or_none(&self, rt: &RtRef) -> Result<Vec<Arc<dyn Engine>>, NoGpu> {
        let or_none = |name, made: Result<Arc<dyn Engine>, NoGpu>| match made {
            Err(why) if !why.is_usage() => Ok(Arc::new(Absent { name, why }) as _),
            made => made,
        };
        let list = match self.list() {
            Ok(list) => list,
            Err(why) => return Ok(vec![or_none(GPU, Err(why))?]),
        };
        let engine = |(kind, name)| {
            or_none(name, self.engine(kind, name, rt).map(|engine| Arc::new(engine) as _))
        };
        list.into_iter().map(engine).collect()
    }

    /// The machines that were asked for, with the names of their engines.
    fn list(&self) -> Result<Vec<(GpuKind, &'static str)>, NoGpu> {
        match &self.machines {
            GpuList::These(list) => named(list),
            GpuList::All => match count(&Cuda::default())? {
                0 => Err(NoGpu::NoCard { no: 0, there: 0 }),
                there => named(&(0..there).map(GpuKind::Card).collect::<Vec<_>>()),
            },
        }
    }

    fn engine(&self, kind: GpuKind, name: &'static str, rt: &RtRef) -> Result<GpuEngine, NoGpu> {
        match kind {
            GpuKind::Card(no) => {
                let card = self.card(no)?;
                let free = card.facts().free;
                let options = GpuOptions {
                    tuned: self.set_bytes.is_none().then_some(TUNED),
                    ..self.options(name, SETS.0, MEMORY.min(free / 4))?
                };
                GpuEngine::on(rt, Box::new(card), options).map_err(|e| NoGpu::Failed(e.to_string()))
            }
            GpuKind::Emulator => self.emulator(name),
        }
    }

    /// The GPU of that number, opened.
    ///
    /// # Errors
    /// Why not.
    pub fn card(&self, no: u32) -> Result<Card<Cuda>, NoGpu> {
        Card::open(Cuda::default(), no, || image(self.image.as_ref()), self.pinned)
    }

    #[cfg(feature = "emu")]
    fn emulator(&self, name: &'static str) -> Result<GpuEngine, NoGpu> {
        let options = self.options(name, SETS.1, MEMORY)?;
        let device = Box::new(crate::Emu::new(1));
        GpuEngine::new(device, options).map_err(|e| NoGpu::Failed(e.to_string()))
    }
    #[cfg(not(feature = "emu"))]
    fn emulator(&self, _: &'static str) -> Result<GpuEngine, NoGpu> {
        Err(NoGpu::NoEmulator)
    }

    /// Stored bytes of a set on a GPU with room for them.
    ///
    /// # Errors
    /// If they do not fit.
    pub fn sets(&self) -> Result<u64, NoGpu> {
        Ok(self.options(GPU, SETS.0, MEMORY)?.set_bytes)
    }

    /// Options of an engine with that name, whose sets have `sets` bytes and that takes `memory` unless it is said.
    fn options(&self, name: &'static str, sets: u64, memory: u64) -> Result<GpuOptions, NoGpu> {
        let units = u64::from(self.units.clamp(1, 64));
        let memory = self.memory.unwrap_or(memory);
        let fits = memory / units / 8;
        let set_bytes = self.set_bytes.unwrap_or(sets.min(fits));
        if set_bytes == 0 || set_bytes > fits {
            return Err(NoGpu::Wrong(format!(
                "{units} units with sets of {set_bytes} bytes want {} bytes of device memory, eight times the \
                 sets, and {memory} are allowed: sets of {fits} bytes would fit",
                units.saturating_mul(set_bytes).saturating_mul(8).max(8 * units)
            )));
        }
        Ok(GpuOptions {
            name,
            units: self.units,
            set_bytes,
            tuned: None,
            memory,
            arenas: self.pinned - self.pinned / 3,
            inputs: self.pinned / 3,
            prove: self.prove,
            certify: self.certify,
            always: self.always,
        })
    }
}

/// In the place of an engine where there is no GPU: it takes nothing and says why.
struct Absent {
    name: &'static str,
    why: NoGpu,
}

impl Engine for Absent {
    fn caps(&self) -> Caps {
        Caps {
            name: self.name,
            set_bytes: 1,
            last_bytes: u64::MAX,
            max_set_bytes: 0,
            sets_in_flight: 1,
            ways: 1,
            max_ways: 1,
            certify: Mode::Full,
            prove: 1,
            // Never the cheapest: routing gives it nothing, so nothing is tried in vain.
            cost: Cost { fixed_ns: f64::INFINITY, ns_per_byte: 0.0 },
        }
    }
    fn open(&self, _: Arc<Recipe>) -> Result<Box<dyn Session>, Refusal> {
        Err(self.why.to_string().into())
    }
    fn trouble(&self) -> Option<String> {
        Some(format!("no GPU is used, as {}; the CPU merges everything", self.why))
    }
}

/// What a GPU engine did, for people, from its figures.
pub fn told(name: &str, machine: &[(&'static str, f64)]) -> String {
    let figure = |of: &str| machine.iter().find(|(row, _)| *row == of).map_or(0.0, |row| row.1);
    let what = match name.starts_with(EMULATOR) {
        true => " (an emulator on the CPU; its time says nothing of a GPU)",
        false => "",
    };
    format!(
        "{name}: {} sets of {} bytes on the device{what}; {} blocks decoded and {} compressed there, {} made plain \
         for it, {} sets that did not suit it",
        figure("device_sets"),
        figure("device_bytes"),
        figure("decoded_blocks"),
        figure("encoded_blocks"),
        figure("normalised_blocks"),
        figure("unsuitable_sets"),
    )
}
