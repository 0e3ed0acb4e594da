//! Side by side: runs engines as processes, alternately, and prints medians and ratios.

use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::Args;

use crate::settings::BenchArgs;

/// How to start an engine's bench.
#[derive(Clone, Debug)]
pub struct EngineCommand {
    /// Short name for tables.
    pub name: String,
    /// Program.
    pub program: PathBuf,
    /// Arguments before the bench's flags.
    pub prefix: Vec<String>,
}

/// Flags of `compare`.
#[derive(Clone, Debug, Args)]
pub struct CompareArgs {
    /// Engines to compare with
    #[arg(long = "peer", value_name = "NAME", default_value = "rocksdb")]
    pub peers: Vec<String>,
    /// Rounds; every engine runs once in each
    #[arg(long, default_value_t = 3, value_name = "N")]
    pub rounds: usize,
    /// What each engine runs.
    #[command(flatten)]
    pub bench: BenchArgs,
}

/// Runs `own` and the peers alternately and prints the comparison. True if all runs were valid.
pub fn compare(_own: EngineCommand, _args: CompareArgs) -> Result<bool> {
    bail!("being built")
}
