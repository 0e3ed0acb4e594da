//! The command line of the sweeps: flags in, progress and a table out.

use std::time::Duration;

use anyhow::{Result, anyhow, bail};
use clap::Args;
use lithify_env::{OsRt, Rt, RtOptions};
use lithify_sim::sweep::{Count, Part, sweep};
use lithify_sim::workloads::{Workload, all};

/// Crashes and disturbs every step of the canonical workloads.
///
/// Each workload is a short life about one thing the engine does. Every position of its log is
/// crashed, every position of the openings after three of these crashes as well; every sync fails
/// in each of six ways (the bytes stay readable and are never written; they go back; they are
/// still on their way; some pages are written; there is said to be no space; all later syncs fail,
/// too), followed by crashes; and every call fails once and for good, with EIO, ENOSPC, EINTR, with
/// transfers cut short, and with EIO though it was done.
#[derive(Args)]
pub(crate) struct Flags {
    /// Only these workloads, as often as given.
    #[arg(long, value_name = "NAME")]
    workload: Vec<String>,
    /// Kinds of crash at each position, of eleven.
    #[arg(long, default_value_t = 11, value_parser = clap::value_parser!(u8).range(1..=11))]
    kinds: u8,
    /// Crashes after each sync that failed.
    #[arg(long, default_value_t = 16)]
    after_sync: usize,
    /// Let one call in so many fail.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    every_call: u64,
    /// Which of them: another number, other calls.
    #[arg(long, default_value_t = 0)]
    first_call: u64,
    /// Name the workloads and do nothing.
    #[arg(long)]
    list: bool,
}

pub(crate) fn run(flags: &Flags) -> Result<()> {
    if flags.list {
        all().for_each(|w| println!("{}", w.name));
        return Ok(());
    }
    let named = |name: &String| {
        Workload::named(name)
            .ok_or_else(|| anyhow!("there is no workload `{name}`; --list names them"))
    };
    let chosen: Vec<&Workload> = match flags.workload.is_empty() {
        true => all().collect(),
        false => flags.workload.iter().map(named).collect::<Result<_>>()?,
    };
    let part = Part {
        kinds: flags.kinds.into(),
        after_sync: flags.after_sync,
        every_call: flags.every_call,
        first_call: flags.first_call,
    };
    let rt = OsRt::new(RtOptions::default());
    let mut count = Count::default();
    let mut told = Duration::ZERO;
    for workload in chosen {
        let before = count.images;
        if let Err(violation) = sweep(workload, &part, &mut count) {
            bail!("{violation}\n  see it again: lithify-sim sweep --workload {}", workload.name);
        }
        let now = rt.thread_cpu();
        let (images, spent) = (count.images - before, (now - told).as_secs_f64());
        told = now;
        eprintln!("{:<24}{images:>9} images {spent:>7.1} s", workload.name);
    }
    print!("{}", table(&count, rt.thread_cpu()));
    Ok(())
}

fn table(count: &Count, spent: Duration) -> String {
    let rows = [
        ("workloads", count.workloads),
        ("positions crashed", count.positions),
        ("positions of openings crashed", count.reopenings),
        ("images opened and checked", count.images),
        ("images seen before", count.twins),
        ("sync sites, each in 6 ways", count.sync_sites),
        ("call sites, each in 10 ways", count.call_sites),
        ("lives with a failure", count.disturbed),
        ("of these, failure met", count.struck),
        ("core-seconds", spent.as_secs()),
    ];
    let rows: String = rows.iter().map(|(name, n)| format!("  {name:<32}{n:>10}\n")).collect();
    format!("{rows}no violation\n")
}
