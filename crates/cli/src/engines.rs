//! Machines that compactions can be given to besides the CPU: which flags name them.
//!
//! Keeps: every command that opens a database for writing has these flags, as the open asks for them
//! ([`EngineArg::onto`]). Flags choose who does the work, never a byte of what is written, so they are in no OPTIONS
//! file. A machine that is simulated is used only where it was asked for by name, and its time is called card time.

use std::sync::Arc;

use anyhow::Result;
use lithify::engine::Engine;
use lithify::{Builder, Db, EngineReport};
#[cfg(feature = "fpga")]
use lithify_bench::parse_bytes;
#[cfg(feature = "fpga")]
use lithify_engine_fpga::{
    Buffer, Card, FpgaEngine, FpgaOptions, Link, ModelCard, ModelOptions, control,
};
use serde_json::{Value, json};

#[cfg(feature = "fpga")]
use crate::failure::usage;
use crate::output;

#[cfg(feature = "gpu")]
pub(crate) mod gpu;

/// What `--engine` may name in this build.
const ENGINES: &[&str] = match (cfg!(feature = "gpu"), cfg!(feature = "fpga")) {
    (false, false) => &["cpu"],
    (true, false) => &["cpu", "gpu", "auto"],
    (false, true) => &["cpu", "fpga-sim"],
    (true, true) => &["cpu", "gpu", "auto", "fpga-sim"],
};

/// `--engine` and what belongs to it.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Engine")]
pub(crate) struct EngineArg {
    /// What merges: `cpu`, or what else this build has: `gpu`; `auto`, a GPU where there is one and it is expected to
    /// be through first; `fpga-sim`, units of an FPGA as a program. The bytes written are the same
    #[arg(long, value_name = "NAME", default_value = "cpu", value_parser = ENGINES.to_vec(), hide = ENGINES.len() == 1)]
    engine: String,
    #[cfg(feature = "fpga")]
    #[command(flatten)]
    fpga: Box<FpgaArg>,
    #[cfg(feature = "gpu")]
    #[command(flatten)]
    gpu: Box<lithify_bench::GpuFlags>,
}

impl EngineArg {
    /// The database of this builder may merge on the engines asked for.
    pub(crate) fn onto(&self, builder: Builder) -> Result<Builder> {
        Ok(self.engines()?.into_iter().fold(builder, Builder::engine))
    }

    /// The engines asked for besides the CPU.
    pub(crate) fn engines(&self) -> Result<Vec<Arc<dyn Engine>>> {
        match &*self.engine {
            #[cfg(feature = "fpga")]
            "fpga-sim" => Ok(vec![self.fpga.engine()?]),
            #[cfg(feature = "gpu")]
            how @ ("gpu" | "auto") => gpu::engines(&self.gpu, how == "auto"),
            _ => Ok(Vec::new()),
        }
    }
}

/// What may stand for a card in this build.
#[cfg(all(feature = "fpga", not(feature = "verilated")))]
const CARDS: [&str; 1] = ["model"];
#[cfg(feature = "verilated")]
const CARDS: [&str; 2] = ["model", "verilated"];

/// Most memory of a simulated card: it is this program's.
#[cfg(feature = "fpga")]
const CARD_MAX: usize = 2 << 30;

/// What an FPGA card is like, wherever one is simulated.
#[cfg(feature = "fpga")]
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct CardArgs {
    /// Slots for each unit: sets that are loaded, run or come back at once
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=16))]
    fpga_slots: u64,
    /// Sets of one part on the card at once; 1 is no pipeline
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=16))]
    fpga_in_flight: u64,
    /// Runs that a unit merges at once
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u64).range(2..=16))]
    fpga_ways: u64,
    /// Bytes that a unit takes in a cycle: 16, 32 or 64
    #[arg(long, value_name = "BYTES", default_value = "32", value_parser = ["16", "32", "64"])]
    fpga_width: String,
    /// Stored bytes of a block set, or of the first one where --fpga-buffer decides about the others
    #[arg(long, value_name = "BYTES", default_value = "4MiB", value_parser = parse_bytes)]
    fpga_set: u64,
    /// Memory of the card for slots, and as much on the host for their buffers, on top of the setting memory_budget (a
    /// simulated card lies on the host as well). It is what bounds the sets of all but `static` [default: 110MiB, or what --fpga-set needs]
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    fpga_memory: Option<u64>,
    /// How the card is attached, for card time: gen3x8, gen3x16, gen4x16, `stem` (what that paper's times
    /// imply), or IN,OUT[,US[,LOSS]]: GB/s to and from the card, microseconds an operation (30), percent lost
    /// because both directions are at work (0)
    #[arg(long, value_name = "LINK", default_value = "gen3x16", value_parser = named_link)]
    fpga_link: (String, Link),
}

/// A link with what was typed for it.
#[cfg(feature = "fpga")]
fn named_link(text: &str) -> std::result::Result<(String, Link), String> {
    Link::parse(text).map(|link| (text.to_owned(), link))
}

/// Memory of a card unless it is said.
#[cfg(feature = "fpga")]
const CARD_MEMORY: u64 = 110 << 20;

#[cfg(feature = "fpga")]
impl CardArgs {
    /// Options of an engine over a card with so many units.
    pub(crate) fn options(&self, units: usize, buffer: Buffer) -> Result<FpgaOptions> {
        if !(4096..=1 << 28).contains(&self.fpga_set) {
            return usage(format!("--fpga-set {}: take 4KiB to 256MiB", self.fpga_set));
        }
        let slots = self.fpga_slots as usize;
        let fits = FpgaOptions::set_within(self.fpga_memory.unwrap_or(CARD_MEMORY), units, slots);
        let (set, fits) = match (buffer, self.fpga_memory) {
            (Buffer::Static, None) => (self.fpga_set, self.fpga_set),
            (Buffer::Static, Some(_)) => (self.fpga_set, fits.min(self.fpga_set)),
            (Buffer::Adaptive, None) => (self.fpga_set, fits.max(self.fpga_set)),
            (Buffer::Adaptive, Some(_)) => (self.fpga_set, fits.min(control::ADAPTIVE.1)),
            (Buffer::Stem | Buffer::StemRaw, None) => (self.fpga_set, fits.max(self.fpga_set)),
            (Buffer::Stem | Buffer::StemRaw, Some(_)) => (self.fpga_set, fits.min(1 << 29)),
        };
        if fits < set {
            return usage(format!(
                "--fpga-memory: {units} units with {slots} slots have room for sets of {fits} bytes then, and \
                 --fpga-set is {set}; raise the former or lower the latter"
            ));
        }
        let options = FpgaOptions {
            name: "fpga-sim",
            slots,
            in_flight: self.fpga_in_flight as usize,
            set_bytes: set,
            set_max: Some(fits),
            buffer,
            link: self.fpga_link.1,
            ..FpgaOptions::default()
        };
        let bytes = options.card_bytes(units);
        if bytes > CARD_MAX {
            return usage(format!(
                "{units} units with --fpga-slots {slots}, for sets of {fits} bytes: a card of {bytes} bytes, and a \
                 simulated one has at most {CARD_MAX}; take fewer slots or units, smaller sets (--fpga-set) or \
                 less --fpga-memory"
            ));
        }
        Ok(options)
    }

    /// How the card is attached, as it was typed.
    pub(crate) fn link_text(&self) -> String {
        self.fpga_link.0.clone()
    }

    /// The model of a card.
    pub(crate) fn model(
        &self,
        options: &FpgaOptions,
        units: usize,
        mhz: f64,
    ) -> Result<Box<dyn Card>> {
        Ok(Box::new(ModelCard::new(ModelOptions {
            units,
            ways: self.fpga_ways as usize,
            width: self.fpga_width.parse()?,
            mhz,
            memory: options.card_bytes(units),
        })))
    }

    /// So many units of these ways and this width, which were compiled in.
    #[cfg(feature = "verilated")]
    pub(crate) fn verilated(
        &self,
        options: &FpgaOptions,
        units: usize,
        mhz: f64,
    ) -> Result<Box<dyn Card>> {
        use lithify_engine_fpga::verilated::{VerilatedCard, VerilatedOptions, VerilatedShape};

        let shape = match (self.fpga_ways, &*self.fpga_width) {
            (4, "16") => VerilatedShape::N4W16,
            (8, "32") => VerilatedShape::N8W32,
            _ => {
                return usage(
                    "--fpga-card verilated: there are --fpga-ways 4 --fpga-width 16, and 8 with 32",
                );
            }
        };
        Ok(Box::new(VerilatedCard::new(VerilatedOptions {
            shape,
            units,
            mhz,
            memory: options.card_bytes(units),
            seed: 0,
            latency: (20, 60),
            withheld: 0,
        })))
    }
}

/// What belongs to `--engine fpga-sim`.
#[cfg(feature = "fpga")]
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Engine")]
pub(crate) struct FpgaArg {
    /// What stands for the card: `model`, exact to every byte, with cycles by formula; or, in builds that have
    /// it, `verilated`, the hardware's own description cycle by cycle, with units of 4 ways and 16 bytes or of
    /// 8 and 32
    #[arg(long, value_name = "CARD", default_value = "model", value_parser = CARDS)]
    fpga_card: String,
    /// Units of the card
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=16))]
    fpga_units: u64,
    /// Clock of the units, for card time: 1 to 2000
    #[arg(long, value_name = "MHZ", default_value_t = 200.0)]
    fpga_mhz: f64,
    /// Who decides how large sets are: `static`, `adaptive` (by what was seen of each stage), `stem` or
    /// `stem-raw` (by that paper's rule, damped and as printed)
    #[arg(long, value_name = "HOW", default_value = "adaptive", value_parser = ["static", "adaptive", "stem", "stem-raw"])]
    fpga_buffer: String,
    #[command(flatten)]
    card: CardArgs,
    /// One in so many sets is merged again by the CPU and compared
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..))]
    fpga_prove: u32,
    /// `always`, or `cost`: only where card time is shorter than the CPU's
    #[arg(long, value_name = "HOW", default_value = "always", value_parser = ["always", "cost"])]
    fpga_route: String,
}

#[cfg(feature = "fpga")]
impl FpgaArg {
    fn engine(&self) -> Result<Arc<dyn Engine>> {
        if !(1.0..=2000.0).contains(&self.fpga_mhz) {
            return usage(format!("--fpga-mhz {}: take 1 to 2000", self.fpga_mhz));
        }
        let units = self.fpga_units as usize;
        let buffer = Buffer::from_name(&self.fpga_buffer).unwrap_or(Buffer::Adaptive);
        let options = FpgaOptions {
            prove: self.fpga_prove,
            always: self.fpga_route == "always",
            ..self.card.options(units, buffer)?
        };
        let card = match &*self.fpga_card {
            "verilated" => self.verilated(&options, units)?,
            _ => self.card.model(&options, units, self.fpga_mhz)?,
        };
        Ok(Arc::new(FpgaEngine::new(card, options)?))
    }

    #[cfg(not(feature = "verilated"))]
    fn verilated(&self, _: &FpgaOptions, _: usize) -> Result<Box<dyn Card>> {
        usage("--fpga-card verilated: this build has the model only")
    }

    #[cfg(feature = "verilated")]
    fn verilated(&self, options: &FpgaOptions, units: usize) -> Result<Box<dyn Card>> {
        self.card.verilated(options, units, self.fpga_mhz)
    }
}

/// A figure that an engine reports of its machine.
fn figure(of: &EngineReport, name: &str) -> f64 {
    of.machine.iter().find(|(row, _)| *row == name).map_or(0.0, |row| row.1)
}

/// What is wrong with these engines, for a command that does not have their database open itself.
pub(crate) fn troubles(engines: &[Arc<dyn Engine>]) -> impl Iterator<Item = String> {
    let told = |of: &Arc<dyn Engine>| Some(format!("{}: {}", of.caps().name, of.trouble()?));
    engines.iter().filter_map(told)
}

/// Closes a database, and prints what the engines did in it, if there were any.
pub(crate) fn close(db: Db) -> Result<()> {
    let done = lines(&db.stats().engines);
    db.close()?;
    done.iter().try_for_each(|line| output::line(line))
}

/// What the engines did: sets by where they were merged, parts that the CPU went on with, and what is wrong.
pub(crate) fn lines(reports: &[EngineReport]) -> Vec<String> {
    let of_one = |of: &EngineReport| {
        let name = of.name;
        #[cfg(feature = "gpu")]
        if name.starts_with("gpu") {
            return gpu::lines(of);
        }
        let (units, cpu) = (figure(of, "unit_sets"), figure(of, "cpu_sets"));
        let time = figure(of, "card_ns") / 1e9;
        let mut lines = vec![format!(
            "{name}: {units} sets on units, {cpu} on the CPU within its sessions{}; {time:.3} s of card time \
             (simulated)",
            in_brackets(
                &reasons().map(|(row, what)| (figure(of, row) as u64, what)).collect::<Vec<_>>()
            ),
        )];
        lines.extend(lost(of));
        if figure(of, "cpu_runs") > 0.0 || of.too_large > 0 {
            lines.push(format!(
                "{name}: units with more ways (--fpga-ways, at most 16) merge more runs at once"
            ));
        }
        lines.extend(of.trouble.as_ref().map(|why| format!("{name}: {why}")));
        lines
    };
    reports.iter().flat_map(of_one).collect()
}

/// The parts that the CPU did in place of an engine, and why.
fn lost(of: &EngineReport) -> Option<String> {
    let why = of.last_lost.as_ref()?;
    let lost = [
        (of.refusals, "that it refused"),
        (of.too_large, "with a set that it does not take"),
        (of.unsuitable, "that did not suit it"),
        (of.failures, "over which it failed"),
        (of.hangs, "over which it was silent"),
        (of.disproved, "of which it made something wrong"),
    ];
    let parts: u64 = lost.iter().map(|(n, _)| n).sum();
    let lost = in_brackets(&lost);
    let passed = match of.passed {
        0 => String::new(),
        n => format!("; it let {n} more pass, as most before did not suit it"),
    };
    let (name, all) = (of.name, of.parts);
    Some(format!("{name}: the CPU did {parts} of {all} parts{lost}{passed}; at last: {why}"))
}

/// Why sets are merged by the CPU within a session: a figure's name, and what such sets are.
#[cfg(feature = "fpga")]
fn reasons() -> impl Iterator<Item = (&'static str, &'static str)> {
    lithify_engine_fpga::reasons()
}
#[cfg(not(feature = "fpga"))]
fn reasons() -> impl Iterator<Item = (&'static str, &'static str)> {
    std::iter::empty()
}

/// What there is any of: ` (3 of this kind, 1 of that)`.
fn in_brackets(counts: &[(u64, &str)]) -> String {
    let some = counts.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}"));
    let some: Vec<String> = some.collect();
    if some.is_empty() { String::new() } else { format!(" ({})", some.join(", ")) }
}

/// What the engines did, for programs.
pub(crate) fn json(reports: &[EngineReport]) -> Value {
    let one = |of: &EngineReport| {
        let machine: serde_json::Map<String, Value> =
            of.machine.iter().map(|(name, n)| ((*name).to_owned(), json!(n))).collect();
        json!({
            "name": of.name,
            "parts": of.parts,
            "sets": of.sets,
            "bytes": of.bytes,
            "refusals": of.refusals,
            "failures": of.failures,
            "hangs": of.hangs,
            "too_large": of.too_large,
            "unsuitable": of.unsuitable,
            "passed": of.passed,
            "disproved": of.disproved,
            "last_lost": of.last_lost,
            "trouble": of.trouble,
            "machine": machine,
        })
    };
    reports.iter().map(one).collect()
}
