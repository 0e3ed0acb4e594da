//! `gpu-check`: what is checked and measured as soon as a GPU is at hand, in ten steps of under ten minutes together.
//!
//! ```text
//!  gpu-check run OUT [--emulator] [--quick] [--only 2,7] [--image FILE]
//!     |- step 1, 2, ... each a process of its own with a limit of time; what it says is a line of JSON
//!     '- OUT/results.json, OUT/table.txt: predicted | measured | ratio
//! ```
//! Keeps: predictions are in `predictions.toml`, committed before a run. A step that fails, hangs or takes the program
//! down stops no other one; a step that could not run says why, and has no figure. Figures of the emulator are called
//! that in every table: they try the kit, and say nothing of a GPU.
//! Leaves to others: what is done about a figure.
#![forbid(unsafe_code)]
#![allow(clippy::disallowed_methods, reason = "the yard talks to the world itself")]

use std::process::ExitCode;
use std::str::FromStr;

use anyhow::{Result, bail};

mod machine;
mod steps;
mod table;
mod timed;

use machine::Machine;
use steps::How;

const USAGE: &str = "\
gpu-check run OUT [--only 1,2,...] [flags]
gpu-check step N [flags]
gpu-check host [VALUE...]        the host's half on files, against the CPU engine (needs the emulator)
flags: --emulator  --quick  --gpu N  --image FILE  --seeds N  --values 32,128,...  (of steps 6, 7 and 8)
       --rows SESSIONS:UNITS:ENGINES:MIB,...  (of step 7, in place of its own)";

/// What the command line asks for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Asked {
    words: Vec<String>,
    /// On the emulator in place of a GPU.
    pub(crate) emulator: bool,
    /// Small sizes.
    pub(crate) quick: bool,
    /// Number of the GPU.
    pub(crate) gpu: u32,
    /// A file of kernels.
    pub(crate) image: Option<String>,
    /// Steps to run; all if empty.
    pub(crate) only: Vec<u8>,
    /// Cases of step 2.
    pub(crate) seeds: Option<u64>,
    /// Bytes of values in steps 6, 7 and 8; those of the tables if empty.
    values: Vec<usize>,
    /// What step 7 measures; its own rows if empty.
    pub(crate) rows: Vec<How>,
}

impl Asked {
    fn read() -> Result<Asked> {
        let mut asked = Asked::default();
        let mut args = std::env::args().skip(1);
        while let Some(arg) = args.next() {
            let mut value = || args.next().ok_or_else(|| anyhow::anyhow!("{arg} takes a value"));
            match &*arg {
                "--emulator" => asked.emulator = true,
                "--quick" => asked.quick = true,
                "--gpu" => asked.gpu = value()?.parse()?,
                "--image" => asked.image = Some(value()?),
                "--seeds" => asked.seeds = Some(value()?.parse()?),
                "--only" => asked.only = list(&value()?)?,
                "--values" => asked.values = list(&value()?)?,
                "--rows" => asked.rows = list(&value()?)?,
                flag if flag.starts_with('-') => bail!("{flag}: there is no such flag\n{USAGE}"),
                _ => asked.words.push(arg),
            }
        }
        asked.quick |= asked.emulator;
        Ok(asked)
    }

    /// Those of `all` that are asked for.
    pub(crate) fn values(&self, all: &[usize]) -> Vec<usize> {
        let is_asked = |value: &&usize| self.values.is_empty() || self.values.contains(value);
        all.iter().filter(is_asked).copied().collect()
    }

    /// The flags again, for a step in a process of its own.
    pub(crate) fn flags(&self) -> Vec<String> {
        let mut flags = Vec::new();
        let named = [("--emulator", self.emulator), ("--quick", self.quick)];
        flags.extend(named.iter().filter(|(_, on)| *on).map(|(flag, _)| (*flag).to_owned()));
        flags.extend(["--gpu".to_owned(), self.gpu.to_string()]);
        flags.extend(self.image.iter().flat_map(|of| ["--image".to_owned(), of.clone()]));
        flags.extend(self.seeds.iter().flat_map(|n| ["--seeds".to_owned(), n.to_string()]));
        if !self.values.is_empty() {
            let values: Vec<String> = self.values.iter().map(usize::to_string).collect();
            flags.extend(["--values".to_owned(), values.join(",")]);
        }
        if !self.rows.is_empty() {
            let rows: Vec<String> = self.rows.iter().map(How::to_string).collect();
            flags.extend(["--rows".to_owned(), rows.join(",")]);
        }
        flags
    }
}

/// Numbers with commas between them.
fn list<T: FromStr>(of: &str) -> Result<Vec<T>>
where
    anyhow::Error: From<T::Err>,
{
    of.split(',').map(|one| Ok(one.parse()?)).collect()
}

fn main() -> ExitCode {
    match asked() {
        Ok(code) => code,
        Err(error) => {
            eprintln!("gpu-check: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn asked() -> Result<ExitCode> {
    let asked = Asked::read()?;
    let words: Vec<&str> = asked.words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["run", out] => table::run(&asked, out.as_ref()),
        ["step", no] => steps::step(no.parse()?, &Machine::new(&asked)?),
        ["host", values @ ..] => steps::host::run(values),
        _ => bail!("{USAGE}"),
    }
}
