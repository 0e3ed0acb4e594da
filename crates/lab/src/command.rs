//! `lithify lab`: policies side by side in the modelled world, and the grid that judges them.

mod flags;
pub(crate) mod limits;
pub(crate) mod show;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::{ArgGroup, Args};
use lithify_bench::fold::columns_of_terminal;
use lithify_bench::{StandardOutput, Usage, check_can_write};
use lithify_plan::PolicyKind;

use crate::grid::{self, GridArgs};
use crate::offered;
use crate::setup::Setup;
use crate::sudden;
use crate::world::{Life, live};

const EXAMPLES: &str = "\
Examples:
  lithify lab --threads 1,4,16                   four policies on a common cloud volume
  lithify lab --load zipf --bursts 10,10 --long  hot keys in bursts; bytes by level, kinds of jobs
  lithify lab --bandwidth 0 --latency 0 --cores 16 --threads 1,2,4,8,16
                                                 no disk in the way: who uses many threads?
  lithify lab --grid                             the coarse grid: how far the default policy is from
                                                 the best one, machine by machine
  lithify lab --change --threads 4               the disk halved and doubled in mid-run, half of the
                                                 processors gone, overwrites of a tenth of the keys:
                                                 when is each policy what it would always have been?
  lithify lab --offer 95 --threads 2             writes that come at 95% of what each policy sustains:
                                                 how late are they?
  lithify lab --grid full --policies hybrid --svg grid.svg --csv grid.csv

Time is virtual, so the same flags give the same figures, on any machine. The planner and the core
are those of a database; files, keys, the disk and the processors are modelled.";

/// Writes of a life that changes, enough to see it recover, and of one that is offered writes at a rate.
const CHANGE_NUM: u64 = 2_000_000;

/// Flags of `lithify lab`; flatten them into a command line.
#[derive(Clone, Debug, Args)]
#[command(about = None, long_about = None, after_help = EXAMPLES)]
#[command(group(ArgGroup::new("beside").args(["grid", "change", "offer"])))]
pub struct LabCommand {
    #[command(flatten)]
    flags: flags::Flags,
    #[command(flatten)]
    grid: GridArgs,
    /// Change the disk, the processors or the keys in the middle of each life, and tell how long it
    /// takes to recover
    #[arg(long, help_heading = "Changes")]
    change: bool,
    /// Offer this percentage of what each policy sustains, at a steady rate, and tell how late writes are
    #[arg(long, value_name = "PERCENT", help_heading = "Changes")]
    // A client that rests would be late for its own rest.
    #[arg(conflicts_with = "bursts")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1000))]
    offer: Option<u32>,
    /// Also tell about levels, kinds of jobs and pairs of levels
    #[arg(long, short, help_heading = "Output", conflicts_with_all = ["grid", "change", "offer"])]
    long: bool,
    /// Write every tenth of a second of every life, or every cell of the grid, to FILE
    #[arg(long, value_name = "FILE", help_heading = "Output", conflicts_with_all = ["change", "offer"])]
    csv: Option<PathBuf>,
}

impl LabCommand {
    /// Lives and tells. The code is a failure if the grid found what it must not.
    ///
    /// # Errors
    /// A flag that makes no sense, a file that can't be written, a life that broke an invariant.
    pub fn run(&self) -> Result<ExitCode> {
        self.grid.check().map_err(Usage::of)?;
        self.csv.as_deref().map_or(Ok(()), |file| check_can_write("--csv", file))?;
        if self.grid.asked() {
            let chosen = self.chosen().map_err(Usage::of)?;
            return grid::run(&self.grid, &chosen, self.csv.as_deref());
        }
        let setups = self.setups().map_err(Usage::of)?;
        if self.change {
            let (tries, columns) = (self.grid.tries(), columns_of_terminal());
            tell(&sudden::report(&setups, tries, columns)?)?;
            return Ok(ExitCode::SUCCESS);
        }
        if let Some(percent) = self.offer {
            let share = f64::from(percent) / 100.0;
            let (tries, columns) = (self.grid.tries(), columns_of_terminal());
            tell(&offered::report(&setups, share, tries, columns)?)?;
            return Ok(ExitCode::SUCCESS);
        }
        let mut lives = Vec::new();
        for setup in setups {
            let name = setup.plan.policy.name();
            let life =
                live(&setup).with_context(|| format!("{name}, {} threads", setup.threads))?;
            life.trace.iter().try_for_each(|line| tell(line))?;
            lives.push((name.to_owned(), setup, life));
        }
        self.tell(&lives)
    }

    /// One for each policy and number of threads.
    fn setups(&self) -> Result<Vec<Setup>> {
        let side_by_side =
            [PolicyKind::default(), PolicyKind::Hybrid, PolicyKind::DfLeveled, PolicyKind::Bucket];
        let policies = match self.flags.policies.as_slice() {
            [] => side_by_side.to_vec(),
            _ => self.policies()?,
        };
        let mut setups = Vec::new();
        for policy in policies {
            for &threads in &self.flags.threads {
                let mut setup = flags::setup(&self.flags, policy, threads)?;
                if (self.change || self.offer.is_some()) && self.flags.num.is_none() {
                    (setup.num, setup.keys) = (CHANGE_NUM, self.flags.keys.unwrap_or(CHANGE_NUM));
                }
                limits::check_length(&setup)?;
                setups.push(setup);
            }
        }
        Ok(setups)
    }

    fn tell(&self, lives: &[(String, Setup, Life)]) -> Result<ExitCode> {
        let columns = columns_of_terminal();
        tell(&show::summary(lives, columns))?;
        if self.long {
            for (name, setup, life) in lives {
                tell(&show::details(name, setup, life, columns))?;
            }
        }
        if let Some(path) = &self.csv {
            let text = show::csv(lives);
            std::fs::write(path, text).with_context(|| format!("writing {}", path.display()))?;
        }
        Ok(ExitCode::SUCCESS)
    }

    fn policies(&self) -> Result<Vec<PolicyKind>> {
        let named = |name: &String| match PolicyKind::from_name(name) {
            Some(policy) => Ok(policy),
            None => bail!(
                "--policies {name}: there is no such policy; there are {}",
                PolicyKind::names().join(", ")
            ),
        };
        self.flags.policies.iter().map(named).collect()
    }

    /// The policies that a grid judges: those that were named, or the default one.
    fn chosen(&self) -> Result<Vec<PolicyKind>> {
        match self.flags.policies.as_slice() {
            [] => Ok(vec![PolicyKind::default()]),
            _ => self.policies(),
        }
    }
}

/// Prints text and the end of its line.
fn tell(text: &str) -> Result<()> {
    Ok(StandardOutput::tell(&format!("{text}\n"))?)
}

#[cfg(test)]
pub(crate) use tests::setups_of;

#[cfg(test)]
mod tests {
    use super::*;

    fn lab(flags: &str) -> Result<LabCommand> {
        #[derive(clap::Parser)]
        struct Line {
            #[command(flatten)]
            lab: LabCommand,
        }
        let words = std::iter::once("lab").chain(flags.split_whitespace());
        Ok(<Line as clap::Parser>::try_parse_from(words)?.lab)
    }

    /// The setups that a line of flags asks for.
    pub(crate) fn setups_of(flags: &str) -> Result<Vec<Setup>> {
        lab(flags)?.setups()
    }

    #[track_caller]
    fn refused(flags: &str, says: &str) {
        let command = lab(flags).and_then(|lab| lab.grid.check());
        let told = command.expect_err(flags).to_string();
        assert!(told.contains(says), "{flags}: {told}");
    }

    #[test]
    fn what_one_form_would_not_look_at_is_refused_beside_it() {
        let grid = "--grid [<SIZE>]";
        for flag in ["--threads 4", "--value-size 64", "--cores 8", "--load zipf", "--trace"] {
            refused(&format!("--grid {flag}"), flag.split(' ').next().unwrap());
            refused(&format!("{flag} --grid"), grid);
        }
        for flag in ["--hold 0.9", "--hold-most 0.9", "--svg a.svg", "--every 2", "--jobs 1"] {
            refused(flag, grid);
            refused(&format!("--change {flag}"), "--change");
        }
        refused("--tries 3", "--offer <PERCENT>");
        for form in ["--change", "--offer 95"] {
            for flag in ["--csv a.csv", "--long", "--trace", "--grid"] {
                refused(&format!("{form} {flag}"), form.split(' ').next().unwrap());
            }
        }
        refused("--offer 95 --change", "--change");
        refused("--offer 95 --bursts 10,10", "--bursts");
    }

    #[test]
    fn without_opponents_a_grid_is_not_held_against_them_and_not_drawn() {
        for flag in ["--hold 0.9", "--hold-most 0.9", "--svg a.svg"] {
            refused(&format!("--grid --opponents none {flag}"), "give opponents");
        }
        assert!(lab("--grid --opponents none --csv a.csv").unwrap().grid.check().is_ok());
    }

    #[test]
    fn what_each_form_looks_at_is_taken() {
        for flags in [
            "--grid full --policies hybrid --svg a.svg --csv a.csv --tries 3",
            "--grid --hold 0.9 --hold-most 0.95",
            "--change --threads 4 --tries 7 --seed 2",
            "--offer 95 --tries 3 --num 1M",
            "--long --trace --csv a.csv --bursts 10,10",
        ] {
            assert!(lab(flags).is_ok_and(|lab| lab.grid.check().is_ok()), "{flags}");
        }
    }
}
