//! `lithify-lab`: `lithify lab` by itself, which builds in a fraction of the time.
#![forbid(unsafe_code)]

use clap::Parser;
use lithify_lab::LabCommand;

/// Judge compaction policies in a modelled world, in virtual time
#[derive(Parser)]
struct Cli {
    #[command(flatten)]
    lab: LabCommand,
}

fn main() -> anyhow::Result<std::process::ExitCode> {
    Cli::parse().lab.run()
}
