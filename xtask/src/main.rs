//! `cargo xtask`: the project's own chores. `cargo xtask` alone lists them.
//!
//! Keeps: few dependencies, so that a chore starts within seconds of a fresh clone; whatever a
//! chore installs comes through the ordinary package managers.
#![forbid(unsafe_code)]
#![allow(clippy::disallowed_methods, reason = "a chore talks to the world itself")]

mod capi;
mod checkers;
mod ci;
mod fpga;
mod fpga_synth;
mod fuzz;
mod gpu;
mod gpu_image;
mod gpu_kit;
mod house;
mod interop;
mod peers;
mod plot;
mod programs;
mod python;
mod repo;
mod run;
mod sanitize;
mod sim;
mod test;
mod tidy;
mod watchers;
mod zoo;

use std::process::ExitCode;

use anyhow::{Result, bail};

const CHORES: &str = "\
The chores of this project:

  cargo xtask test    install what the tests need, then run all of them
                      (arguments go to `cargo test`: cargo xtask test -p lithify-plan)
  cargo xtask sim     crash a simulated database at every position of its disk log
                      (arguments go to it: cargo xtask sim --help)
  cargo xtask zoo     see that the tests find each bug of the zoo, within a minute each
                      (--bug Z7, --third N, --seconds N, --jobs N)
  cargo xtask shuttle run the scenarios of threads under 10,000 chosen schedules each
                      (--schedules N, --seconds S, --seed N; a scenario's name for only that)
  cargo xtask loom    run the models of the parts without locks in every order
  cargo xtask tidy    check floors, bans, names and openings of files
  cargo xtask house   print how large the rooms are and how much they hang together
  cargo xtask ci      format, clippy, tidy, docs, test, the compaction unit, some schedules and
                      fuzzing, a third of the zoo: what must pass before a merge
  cargo xtask fuzz    run the fuzzers over hostile bytes, 20 seconds for each target
                      (--seconds N for more; --seed N; names of targets for fewer)
  cargo xtask sanitize  stress under the address and the thread sanitizer, unsafe code under
                      Miri (address, thread or miri for one of them; --seconds N for more)
  cargo xtask fpga    look over the compaction unit of hw/, simulate it, hold it against its model
                      (lint, formal, check, mutants, cover, full, synth, cycles)
  cargo xtask gpu     run the kernels of engine-gpu on the emulator, as an engine
                      (check, sanitize, mutants), or compile them for GPUs (build)
  cargo xtask capi    the library with RocksDB's C interface
                      (build, header, test, suite)
  cargo xtask python  build the Python package in an environment of its own and run its tests
                      (--runs N and --kills N for more of the random ones)
  cargo xtask plot    draw the picture of README.md from the table below it
  cargo xtask watchers  what `lithify serve` and `lithify top` cost a program that writes
                      (a number of turns, 9 unless told, and of entries)
  cargo xtask peers   fetch and build the engines for `lithify bench compare`
  cargo xtask interop have RocksDB and Lithify read each other's files";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match chore(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn chore(args: &[String]) -> Result<()> {
    let Some((name, rest)) = args.split_first() else {
        println!("{CHORES}");
        return Ok(());
    };
    match name.as_str() {
        "test" => test::run(rest),
        "sim" => sim::run(rest),
        "zoo" => zoo::run(rest),
        "shuttle" => checkers::shuttle(rest),
        "loom" => checkers::loom(rest),
        "sanitize" => sanitize::run(rest),
        "house" => no_arguments(name, rest).and_then(|()| house::run()),
        "tidy" => no_arguments(name, rest).and_then(|()| tidy::run()),
        "ci" => no_arguments(name, rest).and_then(|()| ci::run()),
        "fpga" => fpga::run(rest),
        "gpu" => gpu::run(rest),
        "capi" => capi::run(rest),
        "fuzz" => fuzz::run(rest),
        "python" => python::run(rest),
        "plot" => no_arguments(name, rest).and_then(|()| plot::run()),
        "watchers" => watchers::run(rest),
        "peers" => no_arguments(name, rest).and_then(|()| peers::run()),
        "interop" => no_arguments(name, rest).and_then(|()| interop::run()),
        "help" | "--help" | "-h" => {
            println!("{CHORES}");
            Ok(())
        }
        other => bail!("there is no chore `{other}`\n\n{CHORES}"),
    }
}

fn no_arguments(chore: &str, rest: &[String]) -> Result<()> {
    match rest.first() {
        None => Ok(()),
        Some(arg) => bail!("`cargo xtask {chore}` takes no arguments, but got `{arg}`"),
    }
}
