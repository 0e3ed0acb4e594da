//! The steps, by number: what each is called, how long it may take, and what it found.

use std::process::ExitCode;

use anyhow::{Result, bail};
use serde::{Deserialize, Serialize};

use crate::machine::Machine;

mod calls;
mod cufile;
mod faults;
mod files;
pub(crate) mod host;
mod identity;
mod kernels;
mod links;
mod sessions;
mod start;

pub(crate) use sessions::How;

/// A step: number, name in `predictions.toml`, what it is about, and seconds that it may take.
pub(crate) const STEPS: [(u8, &str, &str, u64); 10] = [
    (1, "driver", "the driver, the image, the machine", 20),
    (2, "identity", "generated cases and handovers, byte by byte", 120),
    (3, "sanitizer", "memcheck, racecheck, synccheck over cases", 120),
    (4, "links", "copies to and from pinned memory, one way and both", 40),
    (5, "calls", "pinning, events, the calls of a set", 30),
    (6, "kernels", "kernels alone", 80),
    (7, "engine", "sets through a session, pinned to pinned", 250),
    (
        8,
        "files",
        "a compaction of a database on tmpfs, one part and all cores, against the CPU engine",
        200,
    ),
    (9, "faults", "too little memory, a wild address", 30),
    (10, "cufile", "reads through cuFile", 20),
];

/// What became of a step.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(crate) struct Found {
    /// Why it could not run, if so.
    pub(crate) not_run: Option<String>,
    /// What went wrong, if something did.
    pub(crate) failed: Option<String>,
    /// Figures, by name.
    pub(crate) figures: Vec<(String, f64)>,
    /// What else there is to say.
    pub(crate) notes: Vec<String>,
}

impl Found {
    pub(crate) fn not_run(why: impl Into<String>) -> Found {
        Found { not_run: Some(why.into()), ..Found::default() }
    }
    /// Keeps a figure, and prints it at once: a step that is ended has told what it found until then.
    pub(crate) fn figure(&mut self, name: impl Into<String>, value: f64) {
        let one = (name.into(), value);
        if let Ok(line) = serde_json::to_string(&one) {
            println!("{line}");
        }
        self.figures.push(one);
    }
    pub(crate) fn note(&mut self, what: impl Into<String>) {
        self.notes.push(what.into());
    }
}

/// Runs one step and prints what it found, as a line of JSON.
pub(crate) fn step(no: u8, machine: &Machine) -> Result<ExitCode> {
    // Without a device no step can run, and each says so.
    let found = match machine.device() {
        Err(why) => Ok(Found::not_run(format!("{why:#}"))),
        Ok(device) => match no {
            1 => start::run(machine),
            2 => identity::run(machine),
            3 => identity::sanitized(machine),
            4 => links::run(machine, device),
            5 => calls::run(machine, device),
            6 => kernels::run(machine),
            7 => sessions::run(machine),
            8 => files::run(machine),
            9 => faults::run(machine),
            10 => cufile::run(machine, device),
            _ => bail!("there are ten steps"),
        },
    };
    let found = found
        .unwrap_or_else(|error| Found { failed: Some(format!("{error:#}")), ..Found::default() });
    println!("{}", serde_json::to_string(&found)?);
    Ok(ExitCode::SUCCESS)
}
