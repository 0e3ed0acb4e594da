//! `lithify-lab`: `lithify lab` by itself, which builds in a fraction of the time.
//!
//! Keeps: it ends as `lithify lab` does, with 2 where arguments make no sense, and quietly where the reader of its
//! output has seen enough.
#![forbid(unsafe_code)]

use std::io::Write as _;
use std::process::ExitCode;

use clap::Parser;
use lithify_bench::{Usage, is_closed_pipe};
use lithify_lab::LabCommand;

/// Judge compaction policies in a modelled world, in virtual time
#[derive(Parser)]
struct Cli {
    #[command(flatten)]
    lab: LabCommand,
}

fn main() -> ExitCode {
    let error = match Cli::parse().lab.run() {
        Ok(code) => return code,
        Err(error) if is_closed_pipe(&error) => return ExitCode::SUCCESS,
        Err(error) => error,
    };
    // Nothing can be done about a closed standard error.
    let _ = writeln!(std::io::stderr(), "error: {error:#}");
    match error.is::<Usage>() {
        true => ExitCode::from(2),
        false => ExitCode::FAILURE,
    }
}
