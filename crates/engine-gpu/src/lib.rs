//! Compaction on a GPU, behind the trait of `lithify-engine`: kernels verify, merge, drop and encode data
//! blocks; the host does the rest.
//!
//! Keeps: output is that of the CPU, byte for byte, and a device can cost time but nothing else. Nothing that
//! it returns is believed: places and counts are held against what the input can come to, finished blocks are
//! read again on the device, and `Offload`, the ledger and the certifier judge what comes out. A set that
//! does not suit the device goes to the CPU, from the carry before it.
//! Leaves to others: files, jobs and the choice of an engine.
//!
//! ```text
//!  session -- stage: plain blocks side by side --> unit -- copies, kernels --> Device: emulator
//!     |                                             |
//!  products, carry <-- Offload <-- arrays ----------+
//! ```
//!
//! The kernels are CUDA C++ of one source (`kernels`), which g++ compiles, too, against an emulator of a
//! device's threads (`emu`, cargo feature `emu`). The time of the emulator says nothing about a GPU. There is no
//! binding to a driver yet: what runs here runs on the emulator.
//!
//! # What is refused
//! At `open`, with a sentence: orders other than that of bytes, prefix extractors, filters of the user's (D8),
//! compressed output, checksums other than XXH3, and more than 1,024 runs. In a set, which then is the CPU's:
//! merge operands (D6) and single deletes (D7), keys above 64 KiB, values from 256 MiB.
#![cfg_attr(not(feature = "emu"), forbid(unsafe_code))]
#![deny(unsafe_code)]

pub mod device;
#[cfg(feature = "emu")]
#[allow(unsafe_code, reason = "calls the emulator, which is C++")]
pub mod emu;
mod layout;
mod plan;
mod returned;
mod session;
mod stage;
mod unit;

use lithify_base::{Error, ErrorKind};
use lithify_engine::{Caps, Carry, Cost, Engine, Recipe, Refusal, Session};
use lithify_env::sync::{Arc, Mutex, MutexGuard};
use lithify_format::checksum::ChecksumKind;
use lithify_format::compress::Codec;
use lithify_merge::certify::Mode;

pub use device::Device;
#[cfg(feature = "emu")]
pub use emu::Emu;

use layout::RUNS_MOST;
use session::GpuSession;
use unit::{Trouble, Unit};

/// How an engine uses its device.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GpuOptions {
    /// Name for logs and statistics.
    pub name: &'static str,
    /// Stored bytes of a set that suit it best.
    pub set_bytes: u64,
    /// Most bytes of device memory for one session. A set needs four to eight times its bytes.
    pub memory: u64,
    /// One in this many sets is merged again by the host and compared; 0 means each one, as 1 does.
    pub prove: u32,
}

impl Default for GpuOptions {
    fn default() -> GpuOptions {
        GpuOptions { name: "gpu", set_bytes: 32 << 20, memory: 1 << 30, prove: 64 }
    }
}

/// What all sessions of a device have in common.
pub(crate) struct Shared {
    pub(crate) options: GpuOptions,
    device: Mutex<Box<dyn Device>>,
    tally: Mutex<Tally>,
}

/// Counts, and why the device is lost.
#[derive(Default)]
struct Tally {
    sets: u64,
    bytes: u64,
    normalised: u64,
    unsuitable: u64,
    disowned: u64,
    lost: Option<Error>,
    evidence: Option<Error>,
}

impl Shared {
    /// The device, unless it is lost.
    pub(crate) fn device(&self) -> Result<MutexGuard<'_, Box<dyn Device>>, Trouble> {
        let lost = self.tally.lock().lost.clone();
        let Some(why) = lost else { return Ok(self.device.lock()) };
        let what = "the GPU gets no more work";
        Err(Trouble::Set(Error::new(ErrorKind::Internal, what).caused_by(why)))
    }
    /// A set was staged, and so many of its blocks were normalised.
    pub(crate) fn staged(&self, normalised: u64) {
        self.tally.lock().normalised += normalised;
    }
    /// A set was merged.
    pub(crate) fn merged(&self, bytes: u64) {
        let mut tally = self.tally.lock();
        tally.sets += 1;
        tally.bytes += bytes;
    }
    /// A session ends in trouble.
    pub(crate) fn failed(&self, trouble: &Trouble) {
        let mut tally = self.tally.lock();
        match trouble {
            Trouble::Set(e) => {
                tally.unsuitable += 1;
                tally.evidence = Some(e.clone());
            }
            Trouble::Device(e) => {
                tally.lost.get_or_insert_with(|| e.clone());
            }
        }
    }
    /// Takes back what a unit has. A device that is lost keeps it: copies may be under way.
    pub(crate) fn close(&self, unit: &mut Unit) {
        if let Ok(mut device) = self.device() {
            unit.close(&mut **device);
        }
    }
}

/// The engine: one device and all sessions on it.
pub struct GpuEngine {
    shared: Arc<Shared>,
}

impl GpuEngine {
    /// An engine over a device.
    ///
    /// # Errors
    /// InvalidArgument for options that make no sense, Unsupported for a device whose kernels have a shape
    /// that the host does not know.
    pub fn new(device: Box<dyn Device>, options: GpuOptions) -> Result<GpuEngine, Error> {
        if options.set_bytes == 0 || options.memory / 8 < options.set_bytes {
            let what =
                "set_bytes of a GPU engine is at least 1, and its memory eight times as much";
            return Err(Error::invalid(what));
        }
        let shape = device.shape();
        let warps = shape.threads > 0 && shape.threads.is_multiple_of(32);
        if !warps || shape.items == 0 || shape.ctas == 0 {
            let what = format!("{}: kernels of an unknown shape: {shape:?}", device.name());
            return Err(Error::new(ErrorKind::Unsupported, what));
        }
        let (device, tally) = (Mutex::new(device), Mutex::default());
        Ok(GpuEngine { shared: Arc::new(Shared { options, device, tally }) })
    }

    /// The last set that did not suit the device, or why it is lost.
    pub fn evidence(&self) -> Option<Error> {
        let tally = self.shared.tally.lock();
        tally.lost.clone().or_else(|| tally.evidence.clone())
    }

    fn start(
        &self,
        recipe: Arc<Recipe>,
        carry: Option<Carry>,
    ) -> Result<Box<dyn Session>, Refusal> {
        let refused = |reason: String| Refusal { reason };
        suits(&recipe).map_err(refused)?;
        if let Some(why) = &self.shared.tally.lock().lost {
            return Err(refused(format!("the GPU gets no more work: {why}")));
        }
        match GpuSession::new(self.shared.clone(), recipe, carry) {
            Ok(session) => Ok(Box::new(session)),
            Err(e) => Err(refused(e.to_string())),
        }
    }
}

/// Why the kernels cannot follow a recipe, if so; it names the field.
fn suits(recipe: &Recipe) -> Result<(), String> {
    if !recipe.order.is_bytewise() {
        let name = recipe.order.name();
        return Err(format!("order: kernels compare bytes, and keys are ordered by {name}"));
    }
    if let Some(name) = recipe.prefixes.name() {
        return Err(format!("prefixes: kernels hash whole keys only, not prefixes by {name}"));
    }
    if let Some(user) = &recipe.user_filter {
        let name = user.filter.name();
        return Err(format!("user_filter: kernels cannot call the compaction filter {name}"));
    }
    if recipe.codec != Codec::None {
        return Err(format!(
            "codec: kernels do not compress, and blocks are to be {:?}",
            recipe.codec
        ));
    }
    if recipe.checksum != ChecksumKind::Xxh3 {
        return Err(format!("checksum: kernels write XXH3, not {:?}", recipe.checksum));
    }
    if recipe.runs > RUNS_MOST {
        return Err(format!("runs: {}, and kernels merge up to {RUNS_MOST}", recipe.runs));
    }
    Ok(())
}

impl Engine for GpuEngine {
    fn caps(&self) -> Caps {
        let options = &self.shared.options;
        Caps {
            name: options.name,
            set_bytes: options.set_bytes,
            max_set_bytes: options.memory / 8,
            sets_in_flight: 2,
            ways: RUNS_MOST,
            certify: Mode::Full,
            prove: options.prove.max(1),
            // As the design expects of a device: not measured, as there is none here.
            cost: Cost { fixed_ns: 1e6, ns_per_byte: 0.1 },
        }
    }
    fn open(&self, recipe: Arc<Recipe>) -> Result<Box<dyn Session>, Refusal> {
        self.start(recipe, None)
    }
    fn resume(&self, recipe: Arc<Recipe>, carry: Carry) -> Result<Box<dyn Session>, Refusal> {
        self.start(recipe, Some(carry))
    }
    fn disown(&self, error: &Error) {
        let mut tally = self.shared.tally.lock();
        tally.disowned += 1;
        tally.lost.get_or_insert_with(|| error.clone());
    }
    fn report(&self) -> Vec<(&'static str, f64)> {
        let tally = self.shared.tally.lock();
        vec![
            ("device_sets", tally.sets as f64),
            ("device_bytes", tally.bytes as f64),
            ("normalised_blocks", tally.normalised as f64),
            ("unsuitable_sets", tally.unsuitable as f64),
            ("disowned", tally.disowned as f64),
            ("device_lost", f64::from(u8::from(tally.lost.is_some()))),
        ]
    }
}
