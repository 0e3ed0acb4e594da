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
//!  session -- stage: blocks side by side --> line -- pump --> units -- copies, kernels --> Device
//!     |                                             |
//!  products, carry <-- Offload <-- arrays ----------+
//! ```
//!
//! The kernels are CUDA C++ of one source (`kernels`), which g++ compiles, too, against an emulator of a
//! device's threads (`emu`, cargo feature `emu`). The time of the emulator says nothing about a GPU. `card` is a GPU
//! behind NVIDIA's driver, which `cuda` loads when one is asked for. Tests run on the emulator, `card` over a driver
//! that they play, and `cuda` over a library of theirs; an H200 and an H100 have run the kit's steps (`docs/results/gpu`).
//!
//! # What is refused
//! At `open`, with a sentence: orders other than that of bytes, prefix extractors, filters of the user's (D8),
//! output with codecs other than LZ4, checksums other than XXH3, and more than 1,024 runs. In a set, which then is the CPU's:
//! merge operands (D6) and single deletes (D7), keys above 64 KiB, values from 256 MiB.
#![deny(unsafe_code)]

#[allow(unsafe_code, reason = "memory that a device copies from and to")]
pub mod arena;
pub mod card;
pub mod choose;
mod copies;
#[allow(unsafe_code, reason = "calls a GPU's driver, which is C")]
pub mod cuda;
#[allow(unsafe_code, reason = "calls NVIDIA's cuFile, which is C")]
pub mod cufile;
pub mod device;
pub mod driver;
#[cfg(feature = "emu")]
#[allow(unsafe_code, reason = "calls the emulator, which is C++")]
pub mod emu;
mod gauge;
pub mod gds;
pub mod image;
mod layout;
mod line;
#[cfg(feature = "testing")]
pub mod paced;
mod plan;
pub mod predict;
mod pump;
#[cfg(feature = "testing")]
pub mod replay;
mod returned;
mod session;
mod stage;
mod stock;
mod unit;

use std::time::Duration;

use lithify_base::{Error, ErrorKind};
use lithify_engine::memory::EngineMemory;
use lithify_engine::tune::{Exactness, Tuner};
use lithify_engine::{Caps, Carry, Cost, Engine, Recipe, Refusal, Session};
use lithify_env::sync::{Arc, Mutex};
use lithify_env::{IoBuf, RtRef, Ticket, Wake};
use lithify_format::checksum::ChecksumKind;
use lithify_format::compress::Codec;
use lithify_merge::certify::Mode;

pub use device::Device;
use device::Shape;
#[cfg(feature = "emu")]
pub use emu::Emu;

use layout::RUNS_MOST;
use line::Line;
use pump::{Pump, PumpJob};
use session::GpuSession;
use stock::Stock;
use unit::{Limits, Trouble};

/// How an engine uses its device.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GpuOptions {
    /// Name for logs and statistics.
    pub name: &'static str,
    /// Units of the device, each of which works on one set: 1 to 64. With three, copies in both directions and
    /// kernels go on at once.
    pub units: u8,
    /// Stored bytes of a set that suit it best: of all sets, or of the first ones if they may be `tuned`.
    pub set_bytes: u64,
    /// Least and most bytes of sets whose size follows what they take: the smallest ones with which no stage falls below
    /// 95% of what the slowest does. That takes a device with a clock.
    pub tuned: Option<(u64, u64)>,
    /// Most bytes of device memory for all units. A set needs three to eight times its bytes, more if entries are
    /// small or blocks compressed: sets of such inputs are smaller, as far as it takes.
    pub memory: u64,
    /// Most bytes of host memory that the device copies from and to, blocks that are handed out included. They count as
    /// large as the driver makes them. What it adds to the last ones, and small tables of each unit, may come on top.
    pub arenas: u64,
    /// Most bytes of host memory besides for inputs, which count alike: what is read into it needs no other copy of the host's.
    /// 0 for none.
    pub inputs: u64,
    /// One in this many sets is merged again by the host and compared; 0 means each one, as 1 does.
    pub prove: u32,
    /// How much of what comes back the host looks at before it counts.
    pub certify: Mode,
    /// Every part goes to the device, whatever it costs.
    pub always: bool,
}

impl Default for GpuOptions {
    fn default() -> GpuOptions {
        GpuOptions {
            name: "gpu",
            units: 3,
            set_bytes: 32 << 20,
            tuned: None,
            memory: 1 << 30,
            arenas: 512 << 20,
            inputs: 0,
            prove: 64,
            certify: Mode::Full,
            always: false,
        }
    }
}

impl GpuOptions {
    /// Stored bytes of the largest set that a unit may have memory for.
    fn set_most(&self) -> u64 {
        self.set_that_needs(8.0)
    }
    /// The same if a stored byte needs `need` bytes.
    fn set_that_needs(&self, need: f64) -> u64 {
        ((self.memory / u64::from(self.units.max(1))) as f64 / need) as u64
    }
}

/// What all sessions of a device have in common.
pub(crate) struct Shared {
    pub(crate) options: GpuOptions,
    pub(crate) line: Mutex<Line>,
    tally: Mutex<Tally>,
    /// How large sets are to be.
    tuner: Mutex<Tuner>,
    arenas: Arc<EngineMemory>,
    /// Memory for inputs.
    pub(crate) stock: Stock,
    shape: Shape,
    /// Unless it is a job.
    pump: Option<Mutex<Pump>>,
}

/// Counts, and why the device is lost.
#[derive(Default)]
struct Tally {
    sets: u64,
    bytes: u64,
    decoded: u64,
    encoded: u64,
    normalised: u64,
    unsuitable: u64,
    disowned: u64,
    /// Nanoseconds in which the link up, kernels and the link down were at work, where times are noted.
    busy_ns: [f64; 3],
    /// Bytes of the sets whose times these are, as they went up.
    timed_bytes: f64,
    lost: Option<Error>,
    evidence: Option<Error>,
}

impl Shared {
    fn new(
        options: GpuOptions,
        arenas: Arc<EngineMemory>,
        shape: Shape,
        pump: Option<Mutex<Pump>>,
    ) -> Shared {
        let (line, tally) = (Mutex::default(), Mutex::default());
        let first = options.set_bytes;
        let (least, most) = options.tuned.unwrap_or((first, first));
        let bounds = (least, most.min(options.set_most()));
        let tuner = Mutex::new(Tuner::new(bounds, first, Exactness::CLOCKED));
        let stock = Stock::new(options.inputs);
        Shared { options, line, tally, tuner, arenas, stock, shape, pump }
    }
    /// Why the device gets no more work, if so.
    pub(crate) fn lost(&self) -> Option<Error> {
        self.tally.lock().lost.clone()
    }
    /// Turns the pump, unless it is a job; says whether something moved.
    pub(crate) fn turn(&self) -> Option<bool> {
        self.pump.as_ref().map(|pump| {
            let mut pump = pump.lock();
            pump.turn(self) | pump.close(self)
        })
    }
    /// A set of so many stored bytes was staged, and so many of its blocks were normalised.
    pub(crate) fn staged(&self, bytes: u64, normalised: u64) {
        self.tuner.lock().sent(bytes);
        self.tally.lock().normalised += normalised;
    }
    /// A set with so many stored bytes was merged; of its blocks so many were decoded on the device, and of those that it
    /// made so many are compressed.
    pub(crate) fn merged(&self, bytes: u64, decoded: u64, encoded: u64) {
        let mut tally = self.tally.lock();
        tally.sets += 1;
        tally.bytes += bytes;
        tally.decoded += decoded;
        tally.encoded += encoded;
    }
    /// A set of so many bytes came back, and took so many nanoseconds for link up, kernels, link down.
    pub(crate) fn learn(&self, bytes: u64, ns: [f64; 3]) {
        self.tuner.lock().learn(bytes, ns);
        let mut tally = self.tally.lock();
        tally.busy_ns.iter_mut().zip(ns).for_each(|(busy, ns)| *busy += ns);
        tally.timed_bytes += bytes as f64;
    }
    /// A session ends in trouble, or the device fails.
    pub(crate) fn failed(&self, trouble: &Trouble) {
        let mut tally = self.tally.lock();
        match trouble {
            Trouble::Set(e) => {
                tally.unsuitable += u64::from(trouble.is_unsuitable());
                tally.evidence = Some(e.clone());
            }
            Trouble::Device(e) => {
                tally.lost.get_or_insert_with(|| e.clone());
            }
        }
    }
}

/// The engine: one device and all sessions on it.
pub struct GpuEngine {
    shared: Arc<Shared>,
    /// The runtime of the pump, and what completes once the pump is gone.
    on: Option<(RtRef, Ticket)>,
}

/// Nanoseconds that a byte of entries takes more with LZ4 both ways: on an H200 the kernels do 11.3 GB/s then, 66 without.
const LZ4_NS_PER_BYTE: f64 = 0.073;

/// How long an engine that ends waits for its pump, which a call of the device may hold.
const PATIENCE: Duration = Duration::from_secs(2);

impl GpuEngine {
    /// An engine over a device whose calls the sessions make themselves: for one that is simulated.
    ///
    /// # Errors
    /// InvalidArgument for options that make no sense, Unsupported for a device whose kernels have a shape
    /// that the host does not know.
    pub fn new(device: Box<dyn Device>, options: GpuOptions) -> Result<GpuEngine, Error> {
        let shape = device.shape();
        let (pump, arenas) = pump(device, options)?;
        let pump = Some(Mutex::new(pump));
        let shared = Arc::new(Shared::new(options, arenas, shape, pump));
        Ok(GpuEngine { shared, on: None })
    }

    /// An engine over a device whose calls are made by a job of `rt`, on a thread of its own
    /// ([`spawn_apart`](lithify_env::Rt::spawn_apart)): sessions never wait inside of a poll.
    ///
    /// # Errors
    /// As [`GpuEngine::new`].
    pub fn on(
        rt: &RtRef,
        device: Box<dyn Device>,
        options: GpuOptions,
    ) -> Result<GpuEngine, Error> {
        let shape = device.shape();
        let (pump, arenas) = pump(device, options)?;
        let shared = Arc::new(Shared::new(options, arenas, shape, None));
        let (job, over) = PumpJob::new(pump, shared.clone(), rt.clone());
        rt.spawn_apart(Box::new(job));
        Ok(GpuEngine { shared, on: Some((rt.clone(), over)) })
    }

    /// The last set that did not suit the device, or why it is lost.
    pub fn evidence(&self) -> Option<Error> {
        let tally = self.shared.tally.lock();
        tally.lost.clone().or_else(|| tally.evidence.clone())
    }

    /// Bytes of arenas that there were at once, at most, those that were lent out included.
    pub fn arenas_most(&self) -> u64 {
        self.shared.arenas.most()
    }

    fn start(
        &self,
        recipe: Arc<Recipe>,
        carry: Option<Carry>,
    ) -> Result<Box<dyn Session>, Refusal> {
        suits(&recipe)?;
        if let Some(why) = self.shared.lost() {
            return Err(format!("the GPU gets no more work: {why}").into());
        }
        let sessions = self.shared.line.lock().sessions();
        if sessions >= usize::from(self.shared.options.units) {
            return Err(format!("the GPU is busy with {sessions} parts").into());
        }
        Ok(Box::new(GpuSession::new(self.shared.clone(), recipe, carry)?))
    }
}

/// The pump of a device, and the counter of its arenas.
fn pump(device: Box<dyn Device>, options: GpuOptions) -> Result<(Pump, Arc<EngineMemory>), Error> {
    if !(1..=64).contains(&options.units)
        || options.set_bytes == 0
        || options.set_most() < options.set_bytes
    {
        return Err(Error::invalid(
            "a GPU engine has 1 to 64 units, set_bytes of at least 1, and memory for eight times as much in each \
             unit",
        ));
    }
    let shape = device.shape();
    let warps = shape.threads > 0 && shape.threads.is_multiple_of(32);
    if !warps || [shape.items, shape.scan_items, shape.ctas].contains(&0) {
        let what = format!("{}: kernels of an unknown shape: {shape:?}", device.name());
        return Err(Error::new(ErrorKind::Unsupported, what));
    }
    let held = Arc::new(EngineMemory::default());
    let memory = options.memory / u64::from(options.units);
    let timed = options.tuned.is_some();
    let limits = Limits { memory, arenas: options.arenas, held: held.clone(), timed };
    Ok((Pump::new(device, options.units, &limits), held))
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
    if !matches!(recipe.codec, Codec::None | Codec::Lz4) {
        let name = recipe.codec.name();
        return Err(format!("codec: kernels compress with LZ4, and blocks are to be {name}"));
    }
    if recipe.checksum != ChecksumKind::Xxh3 {
        return Err(format!("checksum: kernels write XXH3, not {:?}", recipe.checksum));
    }
    if recipe.runs > RUNS_MOST {
        return Err(format!("runs: {}, and kernels merge up to {RUNS_MOST}", recipe.runs));
    }
    Ok(())
}

impl Drop for GpuEngine {
    fn drop(&mut self) {
        self.shared.stock.close();
        self.shared.line.lock().close();
        let Some((rt, over)) = &self.on else { return };
        if rt.park(over, Some(rt.now() + PATIENCE)) == Wake::TimedOut {
            // The pump is not to be the last that has its runtime.
            std::mem::forget(rt.clone());
        }
    }
}

/// What a session is expected to cost: what an H200 took, 7.6 GB/s with the host's half of one session; or what its stages took,
/// if that was more.
fn cost(learnt: Option<Cost>) -> Cost {
    let expected = Cost { fixed_ns: 1e6, ns_per_byte: 0.13 };
    let learnt = learnt.unwrap_or(expected);
    Cost {
        fixed_ns: learnt.fixed_ns.max(expected.fixed_ns),
        ns_per_byte: learnt.ns_per_byte.max(expected.ns_per_byte),
    }
}

impl Engine for GpuEngine {
    fn caps(&self) -> Caps {
        let options = &self.shared.options;
        let tuner = self.shared.tuner.lock();
        Caps {
            name: options.name,
            set_bytes: tuner.set_bytes(),
            last_bytes: u64::MAX,
            max_set_bytes: options.set_most(),
            sets_in_flight: usize::from(options.units) + 1,
            ways: RUNS_MOST,
            max_ways: RUNS_MOST,
            certify: options.certify,
            prove: options.prove.max(1),
            cost: match options.always {
                true => Cost { fixed_ns: 0.0, ns_per_byte: 0.0 },
                false => cost(tuner.cost()),
            },
        }
    }
    fn caps_for(&self, recipe: &Recipe) -> Caps {
        let options = &self.shared.options;
        let most = options.set_that_needs(plan::need(self.shared.shape, recipe)).max(1);
        let mut caps = self.caps();
        if recipe.codec == Codec::Lz4 && !options.always {
            let plain = recipe.density.map_or(1.0, |of| of.plain_bytes);
            caps.cost.ns_per_byte += LZ4_NS_PER_BYTE * plain;
        }
        Caps { set_bytes: caps.set_bytes.min(most), max_set_bytes: most, ..caps }
    }
    fn open(&self, recipe: Arc<Recipe>) -> Result<Box<dyn Session>, Refusal> {
        self.start(recipe, None)
    }
    fn resume(&self, recipe: Arc<Recipe>, carry: Carry) -> Result<Box<dyn Session>, Refusal> {
        self.start(recipe, Some(carry))
    }
    fn input_buffer(&self, bytes: usize) -> Option<IoBuf> {
        let (buffer, is_wished) = self.shared.stock.take(bytes);
        if is_wished {
            self.shared.line.lock().call();
        }
        buffer
    }
    fn disown(&self, error: &Error) {
        let mut tally = self.shared.tally.lock();
        tally.disowned += 1;
        tally.lost.get_or_insert_with(|| error.clone());
    }
    fn trouble(&self) -> Option<String> {
        let why = self.shared.lost()?;
        Some(format!(
            "the GPU gets no more work: {why}. The CPU does its work, and nothing is lost. Open the database again \
             to try the GPU once more; if that ends the same way, test it and its driver, or open without it"
        ))
    }
    fn report(&self) -> Vec<(&'static str, f64)> {
        let set_bytes = self.shared.tuner.lock().set_bytes();
        let [input_bytes, inputs, copied] = self.shared.stock.figures();
        let units_free = self.shared.line.lock().free_of(usize::from(self.shared.options.units));
        let tally = self.shared.tally.lock();
        // Bytes a nanosecond are GB a second.
        let rate = |busy_ns: f64| if busy_ns > 0.0 { tally.timed_bytes / busy_ns } else { 0.0 };
        vec![
            ("set_bytes", set_bytes as f64),
            ("units_free", units_free as f64),
            ("device_sets", tally.sets as f64),
            ("device_bytes", tally.bytes as f64),
            ("decoded_blocks", tally.decoded as f64),
            ("encoded_blocks", tally.encoded as f64),
            ("normalised_blocks", tally.normalised as f64),
            ("unsuitable_sets", tally.unsuitable as f64),
            ("disowned", tally.disowned as f64),
            ("up_seconds", tally.busy_ns[0] / 1e9),
            ("kernels_seconds", tally.busy_ns[1] / 1e9),
            ("down_seconds", tally.busy_ns[2] / 1e9),
            ("up_gb_per_s", rate(tally.busy_ns[0])),
            ("kernels_gb_per_s", rate(tally.busy_ns[1])),
            ("down_gb_per_s", rate(tally.busy_ns[2])),
            ("input_bytes", input_bytes),
            ("inputs_in_place", inputs),
            ("inputs_copied", copied),
            ("arena_bytes", self.shared.arenas.now() as f64),
            ("arena_bytes_most", self.shared.arenas.most() as f64),
            ("device_lost", f64::from(u8::from(tally.lost.is_some()))),
        ]
    }
}
