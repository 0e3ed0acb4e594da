//! The command line of lives that are short of room: flags in, progress and a table out.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use anyhow::{Result, bail};
use clap::Args;
use lithify::Policy;
use lithify_env::panic_message;
use lithify_sim::shortage::{Short, live};

/// Lives within a budget, and on a disk, that are nearly full of overwritten values.
///
/// Each seed is two lives of one policy, the next seed's of the next one: one under a budget and one on
/// a small disk. Writing has to go on in both, and reads have to show what was written.
#[derive(Args)]
pub(crate) struct Flags {
    /// The first seed.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Seeds to live, one after the other.
    #[arg(long, default_value_t = 9)]
    runs: u64,
    /// Compaction policy of all lives; without it they take turns.
    #[arg(long, value_parser = crate::policy)]
    policy: Option<Policy>,
}

pub(crate) fn run(flags: &Flags) -> Result<()> {
    let (mut written, mut refused, mut longest, mut most) = (0, 0, Duration::ZERO, 0);
    for seed in flags.seed..flags.seed + flags.runs {
        let turn = (seed % Policy::EVERY.len() as u64) as usize;
        let policy = flags.policy.unwrap_or(Policy::EVERY[turn]);
        for short in [Short::Budget, Short::Disk] {
            let lived = catch_unwind(AssertUnwindSafe(|| live(seed, policy, short)));
            let figures = match lived {
                Ok(Ok(figures)) => figures,
                Ok(Err(violation)) => {
                    bail!("seed {seed}: {short:?}, {}: {violation}", policy.name())
                }
                Err(payload) => {
                    let message = panic_message(&*payload);
                    bail!("seed {seed}: {short:?}, {}: a panic: {message}", policy.name())
                }
            };
            written += figures.written;
            refused += figures.refused;
            longest = longest.max(figures.longest);
            if short == Short::Budget {
                most = most.max(figures.most_percent);
            }
        }
    }
    println!(
        "{} lives, {written} writes, {refused} refused at first, the longest took {longest:?}; tables had at most \
         {most}% of a budget\n\
         no violation",
        2 * flags.runs
    );
    Ok(())
}
