//! Compaction on an FPGA, behind the trait of `lithify-engine`: units on a card merge, drop and encode; the host
//! does the rest.
//!
//! Keeps: output is that of the CPU, byte for byte, and a card can cost time but nothing else. A set that a unit
//! does not take, gets wrong or does not finish is merged by the kernel in this process, from the carry
//! before it. Memory on the card and for staging on the host has a bound, whatever the jobs.
//! Leaves to others: files, jobs and the choice of an engine; the host's own proofs of what comes out.
//!
//! ```text
//!  session ---- stage: verify, decompress, trim, markers --> sched: slots, units, card time
//!     |                                                        |
//!  Made::decode, Offload <---- returned: sums, places --------  Card: model | simulation | hardware
//!     |
//!  products, carry                     kernel, for what no unit takes
//! ```
//!
//! What lies in the card's memory and registers is `docs/formats/hw-stream.md` (`stream`). Time on a card that is
//! simulated is *card time*: computed from cycles and from the rates of a link, and never measured.
//!
//! ```
//! use lithify_engine::Engine;
//! use lithify_engine_fpga::{FpgaEngine, FpgaOptions, ModelCard, ModelOptions};
//!
//! let card = ModelCard::new(ModelOptions { units: 1, ..ModelOptions::default() });
//! let engine = FpgaEngine::new(Box::new(card), FpgaOptions::default()).unwrap();
//! assert_eq!(engine.caps().ways, 8);
//! ```
#![cfg_attr(not(feature = "verilated"), forbid(unsafe_code))]
#![deny(unsafe_code)]

mod area;
pub mod card;
pub mod control;
#[cfg(feature = "testing")]
pub mod faulty;
mod growth;
mod memory;
pub mod model;
pub mod pipeline;
mod returned;
mod sched;
mod session;
mod stage;
pub mod stream;
#[cfg(feature = "verilated")]
#[allow(unsafe_code, reason = "calls the simulation, which is C++")]
pub mod verilated;
#[cfg(feature = "fpga-card")]
pub mod xdma;

use std::collections::BTreeMap;

use lithify_base::Error;
use lithify_engine::{Caps, Carry, Cost, Engine, Recipe, Refusal, Session};
use lithify_env::sync::{Arc, Mutex};
use lithify_merge::BlockSet;
use lithify_merge::certify::Mode;

pub use card::{Card, Shape};
pub use control::Buffer;
pub use model::{ModelCard, ModelOptions};
pub use sched::Link;

use control::Controller;
use growth::Room;
use sched::{Sched, SlotSize};
use session::FpgaSession;
use stage::OnCpu;
use stream::{Code, RESTARTS_MAX, SNAPSHOTS_MAX, STALLS, WAYS_MAX};

/// Why the CPU merges a set within a session: the name of the count in [`Engine::report`], and for people what such a
/// set is.
pub fn reasons() -> impl Iterator<Item = (&'static str, &'static str)> {
    OnCpu::ALL.into_iter().map(OnCpu::told)
}

/// How an engine uses its card.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FpgaOptions {
    /// Name for logs and statistics.
    pub name: &'static str,
    /// Slots for each unit: one that runs, one that is loaded, one that is read back.
    pub slots: usize,
    /// Stored bytes of a set, or of the first one where `buffer` decides about the others.
    pub set_bytes: u64,
    /// Stored bytes of the largest set, which slots are made for: blocks of twice so many without their codecs fit them. None:
    /// `set_bytes`. [`Buffer::Adaptive`] has larger ones of data of which more fits.
    pub set_max: Option<u64>,
    /// Who decides how large sets are.
    pub buffer: Buffer,
    /// Sets of one session on the card at once, one of which runs.
    pub in_flight: usize,
    /// One in this many sets is merged again by the host and compared; 0 means each one, as 1 does.
    pub prove: u32,
    /// How the card is attached; decides card time alone.
    pub link: Link,
    /// It takes every part that it can. Else parts go where they are through first, by card time.
    pub always: bool,
    /// Where the tags of sets begin. For a card that keeps its memory from one process to the next this has to be
    /// a random number: an old record in that memory must not bear a tag of now. Any number suits a card that
    /// is simulated, as it begins with zeros.
    pub first_tag: u64,
}

impl Default for FpgaOptions {
    fn default() -> FpgaOptions {
        FpgaOptions {
            name: "fpga",
            slots: 3,
            set_bytes: 4 << 20,
            set_max: None,
            buffer: Buffer::Adaptive,
            in_flight: 3,
            prove: 64,
            link: Link::GEN3_X16,
            always: true,
            first_tag: 1,
        }
    }
}

impl FpgaOptions {
    /// Bytes of memory that a card of so many units needs for the slots. Buffers on the host have as
    /// much, and those of the blocks that sessions hand out.
    pub fn card_bytes(&self, units: usize) -> usize {
        units.saturating_mul(self.slots).saturating_mul(SlotSize::of(self.most()).bytes())
    }

    /// Stored bytes of the largest set with which the slots of so many units fit `memory` bytes.
    pub fn set_within(memory: u64, units: usize, slots: usize) -> u64 {
        let slot = memory / (units * slots).max(1) as u64;
        // Two whole beats may go to rounding.
        let set = slot.saturating_sub(SlotSize::of(0).bytes() as u64 + 2 * stream::BEAT as u64);
        set * 2 / 9
    }

    /// Stored bytes of the largest set.
    fn most(&self) -> u64 {
        self.set_max.unwrap_or(self.set_bytes)
    }
}

/// What all sessions of a card have in common.
pub(crate) struct Shared {
    pub(crate) options: FpgaOptions,
    pub(crate) sched: Mutex<Sched>,
    tally: Mutex<Tally>,
    clock: Option<Clock>,
}

/// Nanoseconds of processor time of the thread that asks, from any beginning.
pub type Clock = Arc<dyn Fn() -> u64 + Send + Sync>;

/// What the host does for a set.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Chore {
    Staging,
    Decoding,
}

/// Counts of sets by where they were merged.
#[derive(Default)]
struct Tally {
    on_units: (u64, u64),
    on_cpu: BTreeMap<OnCpu, (u64, u64)>,
    codes: BTreeMap<u8, u64>,
    retries: u64,
    mispredicted: u64,
    disowned: u64,
    /// Nanoseconds of the host for chores.
    host_ns: [u64; 2],
    room: Room,
    /// The last thing that went wrong, for people.
    evidence: Option<Error>,
}

impl Shared {
    /// A set was merged on a unit, or by the CPU within a session, and why.
    pub(crate) fn count(&self, why: Option<OnCpu>, set: &BlockSet) {
        let mut tally = self.tally.lock();
        let (sets, bytes) = match why {
            None => &mut tally.on_units,
            Some(why) => tally.on_cpu.entry(why).or_default(),
        };
        *sets += 1;
        *bytes += set.bytes();
    }
    /// Does a chore, and counts the time that it takes if there is a clock.
    pub(crate) fn during<T>(&self, chore: Chore, work: impl FnOnce() -> T) -> T {
        let Some(clock) = &self.clock else { return work() };
        let start = clock();
        let done = work();
        let spent = clock().saturating_sub(start);
        self.tally.lock().host_ns[chore as usize] += spent;
        done
    }
    /// Learns what sets take of a slot.
    pub(crate) fn note_room(&self, learn: impl FnOnce(&mut Room)) {
        learn(&mut self.tally.lock().room);
    }
    /// A set is tried once more.
    pub(crate) fn retried(&self) {
        self.tally.lock().retries += 1;
    }
    /// A set was started on another carry than came to be.
    pub(crate) fn mispredicted(&self) {
        self.tally.lock().mispredicted += 1;
    }
    /// A unit answered with a code.
    pub(crate) fn note_code(&self, code: Code) {
        *self.tally.lock().codes.entry(code as u8).or_default() += 1;
    }
    /// Something went wrong.
    pub(crate) fn note(&self, error: &Error) {
        self.tally.lock().evidence = Some(error.clone());
    }
}

/// The engine: one card and all sessions on it.
pub struct FpgaEngine {
    shared: Arc<Shared>,
    ways: usize,
    cycle_ns: f64,
}

impl FpgaEngine {
    /// An engine over a card, whose units are reset.
    ///
    /// # Errors
    /// InvalidArgument for options that make no sense, Unsupported for a card that this driver does not know
    /// or that has too little memory for the slots.
    pub fn new(card: Box<dyn Card>, options: FpgaOptions) -> Result<FpgaEngine, Error> {
        if options.in_flight == 0 || options.set_bytes == 0 {
            return Err(Error::invalid("in_flight and set_bytes of an FPGA engine are at least 1"));
        }
        if options.most() > 1 << 30 || options.most() < options.set_bytes {
            return Err(Error::invalid("set_max of an FPGA engine is from set_bytes to 1 GiB"));
        }
        let units = card.shape().units;
        let slots = options.slots.saturating_mul(units);
        let size = SlotSize::of(options.most());
        let most = options.buffer.most(options.most(), size.input);
        let control = Controller::new(options.buffer, slots, units, options.set_bytes, most);
        let sched = Sched::new(card, slots, size, options.link, control, options.first_tag)?;
        let (ways, cycle_ns) = (sched.ways(), sched.cycle_ns());
        let (sched, tally) = (Mutex::new(sched), Mutex::default());
        let shared = Shared { options, sched, tally, clock: None };
        Ok(FpgaEngine { shared: Arc::new(shared), ways, cycle_ns })
    }

    /// The engine with a clock, by which it counts what its chores on the host take. No decision depends on it.
    pub fn with_clock(mut self, clock: Clock) -> FpgaEngine {
        if let Some(shared) = Arc::get_mut(&mut self.shared) {
            shared.clock = Some(clock);
        }
        self
    }

    /// Nanoseconds of card time in which everything until now would have been done.
    pub fn card_ns(&self) -> f64 {
        self.shared.sched.lock().times().end
    }

    /// Stored bytes of the next set: what is worth it, as far as there is room for it.
    fn set_bytes(&self) -> u64 {
        let sched = self.shared.sched.lock();
        let (wanted, slot) = (sched.control.set_bytes(), sched.size());
        drop(sched);
        self.shared.tally.lock().room.fitting(wanted, slot)
    }

    /// The last thing that went wrong with the card, if something did.
    pub fn evidence(&self) -> Option<Error> {
        self.shared.tally.lock().evidence.clone()
    }

    fn start(
        &self,
        recipe: Arc<Recipe>,
        carry: Option<Carry>,
    ) -> Result<Box<dyn Session>, Refusal> {
        suits(&recipe)?;
        if let Some(why) = self.shared.sched.lock().quarantine() {
            return Err(format!("the card gets no more work: {why}").into());
        }
        Ok(Box::new(FpgaSession::new(self.shared.clone(), recipe, carry)?))
    }
}

/// Why a unit cannot follow a recipe, if so; it names the field.
fn suits(recipe: &Recipe) -> Result<(), String> {
    let restarts =
        u64::from(recipe.block_bytes) / (12 * u64::from(recipe.restart_interval.max(1))) + 2;
    if !recipe.order.is_bytewise() {
        return Err(format!(
            "order: units compare bytes, and keys are ordered by {}",
            recipe.order.name()
        ));
    }
    if let Some(user) = &recipe.user_filter {
        let name = user.filter.name();
        return Err(format!("user_filter: units cannot call the compaction filter {name}"));
    }
    if usize::from(recipe.runs) > WAYS_MAX {
        return Err(format!("runs: {}, and units take up to {WAYS_MAX}", recipe.runs));
    }
    if recipe.snapshots.len() > SNAPSHOTS_MAX {
        let n = recipe.snapshots.len();
        return Err(format!("snapshots: {n}, and units take up to {SNAPSHOTS_MAX}"));
    }
    if !(64..=64 << 10).contains(&recipe.block_bytes) {
        let n = recipe.block_bytes;
        return Err(format!("block_bytes: {n}, and units make blocks of 64 B to 64 KiB"));
    }
    if restarts > RESTARTS_MAX as u64 {
        return Err(format!(
            "restart_interval: {} gives blocks of {} bytes up to {restarts} restart points, and units have \
             room for {RESTARTS_MAX}",
            recipe.restart_interval, recipe.block_bytes
        ));
    }
    Ok(())
}

impl Engine for FpgaEngine {
    fn caps(&self) -> Caps {
        let options = &self.shared.options;
        let per_byte = self.cycle_ns / 16.0 + 1.0 / options.link.to_card;
        let cost = match options.always {
            true => Cost { fixed_ns: 0.0, ns_per_byte: 0.0 },
            false => Cost { fixed_ns: 4.0 * options.link.operation_ns, ns_per_byte: per_byte },
        };
        let set_bytes = self.set_bytes();
        Caps {
            name: options.name,
            set_bytes,
            last_bytes: options.buffer.last_bytes(set_bytes),
            // What does not fit a slot is merged by the kernel of the session.
            max_set_bytes: u64::MAX,
            sets_in_flight: options.in_flight + 1,
            ways: self.ways as u16,
            // As are sets of more runs.
            max_ways: u16::MAX,
            certify: Mode::Full,
            prove: options.prove.max(1),
            cost,
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
        tally.evidence = Some(error.clone());
        drop(tally);
        self.shared.sched.lock().give_up("what a unit made was disproved");
    }
    fn trouble(&self) -> Option<String> {
        let sched = self.shared.sched.lock();
        let why = sched.quarantine()?.to_owned();
        drop(sched);
        let evidence = match self.evidence() {
            Some(error) => format!(" ({error})"),
            None => String::new(),
        };
        Some(format!(
            "the card gets no more work: {why}{evidence}. The CPU does its work, and nothing is lost. Open \
             the database again to try the card once more; if that ends the same way, test the card and its \
             bitstream, or open without it"
        ))
    }
    fn report(&self) -> Vec<(&'static str, f64)> {
        let mut rows = Vec::new();
        let tally = self.shared.tally.lock();
        let on_cpu = tally.on_cpu.values().fold((0, 0), |a, b| (a.0 + b.0, a.1 + b.1));
        rows.extend([
            ("unit_sets", tally.on_units.0 as f64),
            ("unit_bytes", tally.on_units.1 as f64),
            ("cpu_sets", on_cpu.0 as f64),
            ("cpu_bytes", on_cpu.1 as f64),
            ("retries", tally.retries as f64),
            ("mispredicted", tally.mispredicted as f64),
            ("disowned", tally.disowned as f64),
            ("host_staging_ns", tally.host_ns[Chore::Staging as usize] as f64),
            ("host_decoding_ns", tally.host_ns[Chore::Decoding as usize] as f64),
        ]);
        for why in OnCpu::ALL {
            let sets = tally.on_cpu.get(&why).map_or(0, |n| n.0);
            rows.push((why.told().0, sets as f64));
        }
        for code in Code::ALL.into_iter().filter(|&code| code != Code::Ok) {
            let n = tally.codes.get(&(code as u8)).copied().unwrap_or_default();
            rows.push((code.row(), n as f64));
        }
        drop(tally);
        let set_bytes = self.set_bytes();
        let sched = self.shared.sched.lock();
        let (counters, times) = (&sched.counters, sched.times());
        rows.extend([
            ("quarantine", f64::from(u8::from(sched.quarantine().is_some()))),
            ("hangs", f64::from(counters.hangs)),
            ("stale_completions", counters.stale as f64),
            ("slots_free", sched.free_slots() as f64),
            ("host_bytes", sched.host_bytes().now() as f64),
            ("host_bytes_most", sched.host_bytes().most() as f64),
            ("bytes_to_card", counters.bytes_to_card as f64),
            ("bytes_from_card", counters.bytes_from_card as f64),
            ("cycles", counters.cycles as f64),
            ("card_ns", times.end),
            ("link_to_card_ns", times.in_busy()),
            ("link_from_card_ns", times.out_busy()),
            ("units_ns", times.units_busy()),
            ("set_bytes", set_bytes as f64),
            ("card_bytes", sched.card_bytes() as f64),
        ]);
        rows.extend(STALLS.iter().zip(counters.stalls).map(|(name, n)| (*name, n as f64)));
        rows
    }
}
