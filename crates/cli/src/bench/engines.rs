//! `bench engines`: what merges a compaction how fast, on generated streams, without a store around it.
//!
//! Keeps: all engines get the same streams, in alternating rounds, and their outputs are compared by hash: one
//! difference fails the command. Figures of a simulated card are card time, computed and never measured, and
//! say so; figures of the host are processor time of this machine.
//! Leaves to others: streams (`engine`), their way through an engine (`drive`), cards (`card`), the tables
//! (`lithify_bench`).

use std::collections::BTreeMap;
use std::process::ExitCode;

use anyhow::{Result, bail};
use lithify_bench::fold::columns_of_terminal;
use lithify_bench::{
    EngineRow as Row, JobKind, Ran, engines_json, engines_text, parse_bytes, parse_size,
};
use lithify_engine::CpuEngine;
use lithify_engine::stream::{NUMBER, Stream, StreamShape};

use crate::failure::usage;
use crate::output;
use crate::progress::Progress;

#[cfg(feature = "fpga")]
mod card;
mod drive;
#[cfg(feature = "gpu")]
mod gpu;

use drive::{Clock, side_by_side, together};

const EXAMPLES: &str = "\
Examples:
  lithify bench engines                              the CPU, and an FPGA if this build has its model
  lithify bench engines --value-size 64,256,1024     a row for each size
  lithify bench engines --jobs 4GiB --rounds 1       streams of any size; memory stays as it is
  lithify bench engines --fpga-units 1,2,4 --fpga-mhz est,200,167
  lithify bench engines --fpga-buffer static,adaptive,stem,stem-raw --fpga-memory 512MiB
  lithify bench engines --fpga-link 1.29,1.29        GB/s to and from the card
  lithify bench engines --only cpu,gpu --gpu-device emulator    what is predicted of a GPU, kernels emulated

What is merged: sorted runs in blocks of 4 KiB, uncompressed; keys begin with a number and go on at random. One
entry in ten is hidden by a newer one, one in twenty is a delete.

GB/s are 10^9 bytes of entries (key, value, 8 for the tag) a second: of processor time for the CPU, of card time for
an FPGA. Card time is a model: cycles of the unit over its clock, and reservations of links and units. `est` is the clock
estimated from levels of logic in a synthesis without a vendor's tools; 200 MHz is that of the STEM paper. Host CPU is
measured here: staging (verify, trim, copy), decoding (look at all that came back, checksums, filter hashes) and
certifying. The second table is a prediction by formula, without any data; so is that of a GPU, which no GPU has run.";

/// `lithify bench engines`.
#[derive(Clone, Debug, clap::Args)]
#[command(about = None, long_about = None, after_help = EXAMPLES)]
pub(crate) struct EnginesBench {
    /// Bytes of a job, a row of each engine for each
    #[arg(long, value_name = "LIST", default_value = "256MB", value_delimiter = ',', value_parser = parse_bytes)]
    jobs: Vec<u64>,
    /// Sorted runs that a job merges
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..=16))]
    runs: u16,
    /// Bytes of keys, 8 to 240
    #[arg(long, value_name = "LIST", default_value = "16", value_delimiter = ',', value_parser = parse_size)]
    key_size: Vec<usize>,
    /// Bytes of values, 0 to 65536
    #[arg(long, value_name = "LIST", default_value = "1024", value_delimiter = ',', value_parser = parse_size)]
    value_size: Vec<usize>,
    /// Rounds, in which engines take turns; processor times are medians
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=99))]
    rounds: u64,
    /// Threads of the row of all processors [default: as many as there are]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=256))]
    threads: Option<u64>,
    /// Engines to run, of those that this build has [default: all]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = engines())]
    only: Vec<String>,
    /// Print a JSON object
    #[arg(long)]
    json: bool,
    #[cfg(feature = "fpga")]
    #[command(flatten)]
    cards: card::CardRows,
    #[cfg(feature = "gpu")]
    #[command(flatten)]
    gpu: lithify_bench::GpuFlags,
}

/// Engines that this build has.
fn engines() -> Vec<&'static str> {
    let has = [("cpu", true), ("fpga", cfg!(feature = "fpga")), ("gpu", cfg!(feature = "gpu"))];
    let all = has.into_iter().chain([("verilated", cfg!(feature = "verilated"))]);
    all.filter(|(_, has)| *has).map(|(name, _)| name).collect()
}

/// The bench at work.
struct Bench {
    args: EnginesBench,
    clock: Clock,
    progress: Progress,
    /// What the CPU made of each kind of job.
    hashes: BTreeMap<JobKind, Vec<u64>>,
    rows: Vec<Row>,
    gpu: Vec<lithify_bench::GpuRow>,
}

impl EnginesBench {
    pub(crate) fn run(self) -> Result<ExitCode> {
        self.check()?;
        let json = self.json;
        let mut bench = Bench {
            clock: Clock::new(),
            progress: Progress::stages(),
            hashes: BTreeMap::new(),
            rows: Vec::new(),
            gpu: Vec::new(),
            args: self,
        };
        bench.measure()?;
        let Bench { args, progress, rows, gpu, .. } = bench;
        drop(progress);
        #[cfg(feature = "fpga")]
        let predicted = args.cards.predict(&rows)?;
        #[cfg(not(feature = "fpga"))]
        let predicted = lithify_bench::Predictions::default();
        drop(args);
        match json {
            true => output::json(&engines_json(&rows, &predicted, &gpu))?,
            false => output::line(&engines_text(&rows, &predicted, &gpu, columns_of_terminal()))?,
        }
        Ok(ExitCode::SUCCESS)
    }

    fn check(&self) -> Result<()> {
        if let Some(n) = self.key_size.iter().find(|n| !(NUMBER..=240).contains(n)) {
            return usage(format!("--key-size {n}: take 8 to 240"));
        }
        if let Some(n) = self.value_size.iter().find(|n| **n > 65_536) {
            return usage(format!("--value-size {n}: take 0 to 65536"));
        }
        if let Some(n) = self.jobs.iter().find(|n| !((1 << 20)..=1 << 40).contains(*n)) {
            return usage(format!("--jobs {n}: take 1MiB to 1024GiB"));
        }
        #[cfg(feature = "fpga")]
        self.cards.check()?;
        Ok(())
    }

    fn has(&self, engine: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|only| only == engine)
    }
}

impl Bench {
    fn measure(&mut self) -> Result<()> {
        let args = self.args.clone();
        let there = lithify_env::processors().unwrap_or(1);
        let threads = args.threads.map_or(there, |n| n as usize);
        for &job in &args.jobs {
            for &key in &args.key_size {
                for &value in &args.value_size {
                    let mut rows: Vec<(Row, Vec<Ran>)> = Vec::new();
                    for round in 0..args.rounds {
                        let mut at = 0;
                        let mut keep = |row: Row, ran: Ran| {
                            match round {
                                0 => rows.push((row, vec![ran])),
                                _ => {
                                    rows[at].0.again(row);
                                    rows[at].1.push(ran);
                                }
                            }
                            at += 1;
                        };
                        let kind = (job, key, value);
                        if args.has("cpu") {
                            keep(Row::cpu(kind, 1), self.cpu(kind, 1)?);
                            if threads > 1 {
                                keep(Row::cpu(kind, threads), self.cpu(kind, threads)?);
                            }
                        }
                        #[cfg(feature = "fpga")]
                        card::measure(self, kind, &mut keep)?;
                    }
                    #[cfg(feature = "gpu")]
                    if args.has("gpu") {
                        let rows = gpu::rows(self, (job, key, value))?;
                        self.gpu.extend(rows);
                    }
                    self.rows.extend(rows.into_iter().map(|(row, rounds)| row.of(rounds)));
                }
            }
        }
        Ok(())
    }

    /// The streams of a job.
    fn streams(&self, kind: (u64, usize, usize), parts: usize) -> Vec<Stream> {
        (0..parts).map(|part| Stream::new(self.shape(kind, part, parts))).collect()
    }

    /// What one of `parts` streams of a job looks like.
    fn shape(
        &self,
        (job, key, value): (u64, usize, usize),
        part: usize,
        parts: usize,
    ) -> StreamShape {
        let (runs, bytes) = (self.args.runs, job / parts as u64);
        StreamShape { runs, key, value, bytes, seed: part as u64 + 1 }
    }

    /// Tells of a row in work.
    fn told(&self, row: &'static str) -> impl Fn(u64, u64) + '_ {
        self.progress.stage(row);
        move |done, all| self.progress.show(done, all)
    }

    /// Has the CPU do a job that it has not done yet, so that there is something to compare with.
    #[cfg(feature = "fpga")]
    fn reference(&mut self, kind: (u64, usize, usize), parts: usize) -> Result<()> {
        if !self.hashes.contains_key(&(kind.0, kind.1, kind.2, parts)) {
            let told = self.told("reference");
            let ran = together(&CpuEngine, self.streams(kind, parts), &self.clock, &told)?;
            drop(told);
            self.compare("cpu", kind, parts, &ran)?;
        }
        Ok(())
    }

    fn cpu(&mut self, kind: (u64, usize, usize), threads: usize) -> Result<Ran> {
        let streams = self.streams(kind, threads);
        let told = self.told("cpu");
        let ran = match threads {
            1 => together(&CpuEngine, streams, &self.clock, &told)?,
            _ => side_by_side(&CpuEngine, streams, &self.clock)?,
        };
        drop(told);
        self.compare("cpu", kind, threads, &ran)?;
        Ok(ran)
    }

    /// Compares the outputs of a job with those that were made before.
    fn compare(
        &mut self,
        name: &str,
        (job, key, value): (u64, usize, usize),
        parts: usize,
        ran: &Ran,
    ) -> Result<()> {
        match self.hashes.insert((job, key, value, parts), ran.hashes.clone()) {
            Some(known) if known != ran.hashes => bail!(
                "{name} made other bytes than the CPU of {job} bytes in {parts} parts, keys of {key} and \
                 values of {value} bytes; this is a bug in Lithify"
            ),
            _ => Ok(()),
        }
    }
}
