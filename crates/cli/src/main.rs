//! `lithify`: the store from the command line.
//!
//! Keeps: exit code 0 if the command did what it says, 1 if it could not, 2 if it was not
//! understood; every failure is one sentence on standard error, with a hint where one helps. Keys
//! and values are arbitrary bytes in and out ([`text`]). Nothing is written but through the
//! library.
//! Leaves to others: everything about storing (`lithify`), measuring (`lithify_bench`), modelling
//! (`lithify_lab`).
#![forbid(unsafe_code)]
#![allow(clippy::disallowed_methods, reason = "the roof talks to the world itself")]

mod bench;
mod cmd;
mod dirs;
mod dump;
mod engines;
mod failure;
mod interrupt;
mod load;
mod open;
mod output;
mod progress;
mod text;

use std::process::ExitCode;

use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

const EXAMPLES: &str = "\
Examples:
  lithify put --db fruit apple red          store a value (the database is made if need be)
  lithify get --db fruit apple              print it
  lithify scan --db fruit --prefix a        all keys that start with a
  lithify load --db fruit fruit.tsv         many rows at once
  lithify bench                             how fast is it here? a tour in under 90 s
  lithify help scan                         what a command does, with examples

The database is named by --db DIR; by DIR alone where a command takes no other argument, as `lithify
stats fruit`; or once for all by the variable LITHIFY_DB. Sizes are written as 64MiB, 10GB or 4096.

A database is opened with the settings it was last opened with, but for those that --set names.
Keys and values are bytes. What is not printable is written and read as \\n, \\t, \\\\ or \\x00 to
\\xff; --hex and --raw change that. `lithify COMMAND --help` shows examples of each command.

Exit codes: 0 done, 1 failed (or: the key is not there), 2 not understood; 130 after Ctrl-C.";

/// An embedded, durable, ordered key-value store, from the command line
#[derive(Parser)]
#[command(name = "lithify", version, after_help = EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Measure: fill, read, scan and compact a store, and say how fast that was
    Bench(Box<bench::BenchCommand>),
    /// Judge compaction policies on modelled machines, in virtual time: minutes of theirs in a
    /// second of ours
    Lab(Box<lithify_lab::LabCommand>),
    /// Set a key to a value
    Put(cmd::point::Put),
    /// Print the value of a key
    Get(cmd::point::Get),
    /// Delete a key, or all keys of a range
    Delete(cmd::point::Delete),
    /// Print keys and values in order
    Scan(cmd::scan::Scan),
    /// Print everything, of all column families, in a form that `load --escaped` reads back
    Dump(cmd::dump::Dump),
    /// Load rows from a file: TSV, CSV, JSON lines, paragraphs, length-prefixed binary
    Load(Box<load::Load>),
    /// Take over a directory of RocksDB or LevelDB
    Import(cmd::import::Import),
    /// Print what the database says about itself
    Stats(cmd::stats::Stats),
    /// Compact all keys or a range of them down to one run, or all into a form that RocksDB opens
    Compact(Box<cmd::compact::Compact>),
    /// Read everything and check it
    Verify(cmd::verify::Verify),
    /// Take out what is readable of a damaged database into a new one
    Salvage(cmd::salvage::Salvage),
    /// Make a second, independent database of the present state
    Checkpoint(cmd::checkpoint::Checkpoint),
    /// Column families: list, make and drop them
    #[command(subcommand)]
    Family(cmd::family::Family),
    /// Back up a database, incrementally; list, check, restore and purge backups
    #[command(subcommand)]
    Backup(cmd::backup::Backup),
    /// Transactions that are prepared: list, commit and roll them back
    #[command(subcommand)]
    Prepared(cmd::prepared::Prepared),
    /// Say what limits a database: what slows or stops writes, what is due, what is in the way
    Explain(cmd::explain::Explain),
    /// Say which settings are in force and why
    Settings(cmd::settings::Settings),
    /// Draw the tree of a database: which run has which files
    Picture(cmd::picture::Picture),
    /// Watch a database beside the program that writes it: jobs, stalls, growth, and the tree
    Top(cmd::top::Top),
    /// Show the same as a page for a browser on this machine, with history, and figures for Prometheus
    Serve(cmd::serve::Serve),
    /// Look into one table file
    #[command(subcommand)]
    Table(cmd::table::Table),
    /// Print what a shell needs to complete command lines
    Completions(cmd::manual::Completions),
    /// Print the manual page of a command, or write those of all
    Man(cmd::manual::Man),
}

/// The command line as it is parsed, documented and completed.
fn command() -> clap::Command {
    with_negative_numbers(Cli::command())
}

/// Where a value is due, `-5` is one, which the value's own check judges, and no flag.
fn with_negative_numbers(command: clap::Command) -> clap::Command {
    let value = |arg: clap::Arg| match arg.get_action().takes_values() {
        true => arg.allow_negative_numbers(true),
        false => arg,
    };
    command.mut_args(value).mut_subcommands(with_negative_numbers)
}

fn main() -> ExitCode {
    // Large databases have more tables than the usual soft limit allows to be open.
    lithify_env::PosixFs::raise_open_files_max();
    let matches = command().try_get_matches();
    let understood = match matches.and_then(|matches| Cli::from_arg_matches(&matches)) {
        Ok(understood) => understood,
        // It repeats what it did not understand.
        Err(e) if e.exit_code() != 0 => {
            output::error_line(e.render().to_string().trim_end(), false);
            return ExitCode::from(2);
        }
        Err(help) => help.exit(),
    };
    match run(understood.command) {
        Ok(code) => code,
        Err(error) => failure::report(&error),
    }
}

fn run(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Bench(bench) => return bench::run(*bench),
        Command::Lab(lab) => return lab.run(),
        Command::Put(put) => put.run()?,
        Command::Get(get) => get.run()?,
        Command::Delete(delete) => delete.run()?,
        Command::Scan(scan) => scan.run()?,
        Command::Dump(dump) => dump.run()?,
        Command::Load(load) => load.run()?,
        Command::Import(import) => import.run()?,
        Command::Stats(stats) => stats.run()?,
        Command::Compact(compact) => compact.run()?,
        Command::Verify(verify) => verify.run()?,
        Command::Salvage(salvage) => salvage.run()?,
        Command::Checkpoint(checkpoint) => checkpoint.run()?,
        Command::Family(family) => family.run()?,
        Command::Backup(backup) => backup.run()?,
        Command::Prepared(prepared) => prepared.run()?,
        Command::Explain(explain) => explain.run()?,
        Command::Settings(settings) => settings.run()?,
        Command::Picture(picture) => picture.run()?,
        Command::Top(top) => top.run()?,
        Command::Serve(serve) => serve.run()?,
        Command::Table(table) => table.run()?,
        Command::Completions(completions) => completions.run()?,
        Command::Man(man) => man.run()?,
    }
    Ok(ExitCode::SUCCESS)
}
