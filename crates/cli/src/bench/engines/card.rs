//! Rows of `bench engines` for FPGAs: the model of a card, its hardware as a program where this build has that,
//! and the prediction by formula.

use std::sync::Arc;

use anyhow::Result;
use lithify_bench::{
    CardFigures, EngineRow as Row, JobKind, Prediction, Predictions, Ran, parse_bytes,
};
use lithify_engine::Engine;
use lithify_engine_fpga::pipeline::{self, LEVELS, Pipeline};
use lithify_engine_fpga::{Buffer, Card, FpgaEngine, FpgaOptions};

use super::Bench;
use super::drive::together;
use crate::engines::CardArgs;
use crate::failure::usage;

/// Bytes that the hardware as a program merges at most: some MB take a second.
#[cfg(feature = "verilated")]
const SAMPLE: u64 = 16 << 20;

/// Rows for cards.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "FPGA (simulated)")]
pub(super) struct CardRows {
    /// Units of the card, a row for each; as many parts are merged side by side
    #[arg(long, value_name = "LIST", default_value = "1,2", value_delimiter = ',', value_parser = clap::value_parser!(u64).range(1..=16))]
    fpga_units: Vec<u64>,
    /// Clocks of the units, a row for each: MHz, or `est`, the estimate from --fpga-levels
    #[arg(long, value_name = "LIST", default_value = "est,200", value_delimiter = ',')]
    fpga_mhz: Vec<String>,
    /// Levels of logic between two registers of the unit, of which `est` is made: a period of
    /// 0.12 n + 0.35 (n + 1) ns
    #[arg(long, value_name = "N", default_value_t = LEVELS, value_parser = clap::value_parser!(u32).range(1..=40))]
    fpga_levels: u32,
    /// Who decides how large sets are, a row for each: static, adaptive, stem or stem-raw
    #[arg(long, value_name = "LIST", default_value = "adaptive", value_delimiter = ',', value_parser = ["static", "adaptive", "stem", "stem-raw"])]
    fpga_buffer: Vec<String>,
    /// Jobs to predict by formula
    #[arg(long, value_name = "LIST", default_value = "1.2GB,2.4GB,3.6GB,4.8GB,30GB", value_delimiter = ',', value_parser = parse_bytes)]
    fpga_predict: Vec<u64>,
    #[command(flatten)]
    card: CardArgs,
}

/// A row that is to be.
#[derive(Clone, Debug)]
struct Plan {
    units: usize,
    mhz: f64,
    is_estimate: bool,
    buffer: Buffer,
}

impl CardRows {
    pub(super) fn check(&self) -> Result<()> {
        for plan in self.plans()? {
            self.card.options(plan.units, plan.buffer)?;
        }
        Ok(())
    }

    fn plans(&self) -> Result<Vec<Plan>> {
        let mut plans = Vec::new();
        for buffer in self.fpga_buffer.iter().filter_map(|name| Buffer::from_name(name)) {
            for &units in &self.fpga_units {
                for clock in &self.fpga_mhz {
                    let is_estimate = clock == "est";
                    let mhz = match (is_estimate, clock.parse()) {
                        (true, _) => pipeline::estimated_mhz(self.fpga_levels),
                        (_, Ok(mhz)) if (1.0..=2000.0).contains(&mhz) => mhz,
                        _ => return usage(format!("--fpga-mhz {clock}: take est, or 1 to 2000")),
                    };
                    plans.push(Plan { units: units as usize, mhz, is_estimate, buffer });
                }
            }
        }
        Ok(plans)
    }

    /// What the formula says of the jobs asked for, with the units of the first rows of each number of them.
    pub(super) fn predict(&self, rows: &[Row]) -> Result<Predictions> {
        let mut all = Vec::new();
        for plan in self.plans()? {
            let like = |row: &&Row| row.card.as_ref().is_some_and(|c| c.units == plan.units);
            let Some(row) = rows.iter().find(like) else { continue };
            let Some(card) = &row.card else { continue };
            let options = self.card.options(plan.units, plan.buffer)?;
            let stored = row.ran.stored as f64;
            let cycles = card.cycles - pipeline::FIXED_CYCLES * row.ran.sets as f64;
            let pipeline = Pipeline {
                link: options.link,
                units: plan.units,
                slots: options.slots,
                in_flight: options.in_flight,
                parts: plan.units,
                unit_fixed_ns: pipeline::FIXED_CYCLES * 1000.0 / plan.mhz,
                unit_ns_per_byte: cycles / stored * 1000.0 / plan.mhz,
                kept: card.bytes_from / card.bytes_to,
                buffer: plan.buffer,
                set_bytes: options.set_bytes,
                set_max: options.set_max.unwrap_or(options.set_bytes),
                ..Pipeline::default()
            };
            for &job in &self.fpga_predict {
                let of = pipeline.stream((job as f64 * stored / row.ran.bytes as f64) as u64);
                all.push(Prediction {
                    job,
                    units: plan.units,
                    mhz: plan.mhz,
                    is_estimate: plan.is_estimate,
                    buffer: plan.buffer.name(),
                    ns: of.ns,
                    busy: busy(of.busy, of.ns, plan.units),
                    set_bytes: of.set_bytes as f64,
                });
            }
        }
        Ok(Predictions { rows: all, link: self.card.link_text() })
    }
}

/// Shares of the time that the link in, the units and the link out were at work.
fn busy(busy: [f64; 3], ns: f64, units: usize) -> [f64; 3] {
    [busy[0] / ns, busy[1] / (ns * units as f64), busy[2] / ns]
}

/// Runs all cards once.
pub(super) fn measure(
    bench: &mut Bench,
    kind: (u64, usize, usize),
    keep: &mut dyn FnMut(Row, Ran),
) -> Result<()> {
    let rows = bench.args.cards.clone();
    if bench.args.has("fpga") {
        for plan in rows.plans()? {
            let options = rows.card.options(plan.units, plan.buffer)?;
            let card = rows.card.model(&options, plan.units, plan.mhz)?;
            let (row, ran) = merge(bench, kind, &plan, options, card, "model")?;
            keep(row, ran);
        }
    }
    #[cfg(feature = "verilated")]
    if bench.args.has("verilated") {
        for plan in rows.plans()? {
            let options = rows.card.options(plan.units, plan.buffer)?;
            let card = rows.card.verilated(&options, plan.units, plan.mhz)?;
            let kind = (kind.0.min(SAMPLE), kind.1, kind.2);
            let (row, ran) = merge(bench, kind, &plan, options, card, "verilated")?;
            keep(row, ran);
        }
    }
    Ok(())
}

fn merge(
    bench: &mut Bench,
    kind: (u64, usize, usize),
    plan: &Plan,
    options: FpgaOptions,
    card: Box<dyn Card>,
    what: &'static str,
) -> Result<(Row, Ran)> {
    let parts = plan.units;
    bench.reference(kind, parts)?;
    let clock = bench.clock.clone();
    let engine = FpgaEngine::new(card, options)?.with_clock(Arc::new(move || clock.ns()));
    let told = bench.told(what);
    let ran = together(&engine, bench.streams(kind, parts), &bench.clock, &told)?;
    drop(told);
    bench.compare(what, kind, parts, &ran)?;
    let report = engine.report();
    let figure = |name: &str| report.iter().find(|(row, _)| *row == name).map_or(0.0, |row| row.1);
    let ns = figure("card_ns");
    let links = ["link_to_card_ns", "units_ns", "link_from_card_ns"].map(figure);
    let figures = CardFigures {
        what,
        units: plan.units,
        mhz: plan.mhz,
        is_estimate: plan.is_estimate,
        buffer: plan.buffer.name(),
        link: bench.args.cards.card.link_text(),
        ns,
        cycles: figure("cycles"),
        bytes_to: figure("bytes_to_card"),
        bytes_from: figure("bytes_from_card"),
        busy: busy(links, ns, plan.units),
        set_bytes: figure("set_bytes"),
        fell_back: figure("cpu_sets") / (figure("cpu_sets") + figure("unit_sets")).max(1.0),
        memory: ["card_bytes", "host_bytes_most"].map(figure),
        host_ns: vec![["host_staging_ns", "host_decoding_ns"].map(figure)],
    };
    let (job, key, value) = kind;
    let kind: JobKind = (job, key, value, parts);
    Ok((Row { kind, ran: Ran::default(), card: Some(figures) }, ran))
}
