//! Steps 2 and 3: generated cases against the naive twin, handovers to the CPU engine and back; and the same few under
//! NVIDIA's sanitizer.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;
use lithify_engine::CpuEngine;
use lithify_engine::conformance::{Profile, handover, suite};
use lithify_engine::testing::SMALL;

use super::Found;
use crate::machine::Machine;

pub(crate) fn run(machine: &Machine) -> Result<Found> {
    let mut found = Found::default();
    let seeds = machine.asked.seeds.unwrap_or(machine.size(300, 20));
    let engine = machine.engine(machine.options(3, 1 << 20))?;
    let report = suite(&engine, &*machine.rt, 0..seeds, Profile::device(SMALL))?;
    found.figure("cases", report.equal as f64);
    found.figure("sets", report.here as f64);
    found.figure("refused", (report.refused + report.on_cpu) as f64);
    let lz4 = suite(&engine, &*machine.rt, 0..seeds.div_ceil(3), Profile::lz4(SMALL))?;
    found.figure("cases_lz4", lz4.equal as f64);
    found.figure("refused_lz4", (lz4.refused + lz4.on_cpu) as f64);
    handover(&engine, &CpuEngine, &*machine.rt, 0..seeds.div_ceil(5), Profile::device(SMALL))?;
    handover(&engine, &CpuEngine, &*machine.rt, 0..seeds.div_ceil(10), Profile::lz4(SMALL))?;
    found.figure("handovers", seeds.div_ceil(5) as f64);
    // The first difference ends the step.
    found.figure("differences", 0.0);
    Ok(found)
}

/// NVIDIA's sanitizer, beside this program or in the path.
const SANITIZER: &str = "compute-sanitizer";
/// Most lines of a complaint that are kept.
const COMPLAINTS: usize = 12;

pub(crate) fn sanitized(machine: &Machine) -> Result<Found> {
    if !machine.is_real() {
        return Ok(Found::not_run(
            "NVIDIA's sanitizer watches GPUs; `cargo xtask gpu sanitize` watches the emulator",
        ));
    }
    let this = std::env::current_exe()?;
    let beside = this.with_file_name("sanitizer").join(SANITIZER);
    // That of the machine fits its driver; one of the two may not start.
    let sanitizers = [PathBuf::from(SANITIZER), beside];
    let mut found = Found::default();
    let mut complain = 0;
    for tool in ["memcheck", "racecheck", "synccheck"] {
        let run = |sanitizer: &PathBuf| {
            let mut command = Command::new(sanitizer);
            command.args(["--tool", tool, "--error-exitcode", "9"]).arg(&this);
            command.args(["step", "2"]).args(machine.asked.flags()).args(["--seeds", "3"]);
            let out = command.output().map_err(|error| format!("{sanitizer:?}: {error}"))?;
            let said = String::from_utf8_lossy(&out.stdout).into_owned();
            let summary = said.lines().rev().find(|line| line.contains("SUMMARY"));
            match summary.map(str::to_owned) {
                Some(summary) => Ok((out.status.success(), said, summary)),
                None => {
                    let told = said.lines().filter(|line| line.starts_with("========="));
                    let told: Vec<&str> = told.take(COMPLAINTS).collect();
                    Err(format!("{sanitizer:?}: {}", told.join(" ")))
                }
            }
        };
        let mut why = Vec::new();
        let ran = sanitizers.iter().find_map(|one| run(one).map_err(|e| why.push(e)).ok());
        let Some((is_well, said, summary)) = ran else {
            return Ok(Found::not_run(format!("{tool} did not run: {}", why.join("; "))));
        };
        let is_clean = is_well && said.contains("\"failed\":null");
        complain += u32::from(!is_clean);
        found.note(format!("{tool}: {summary}"));
        let told = said.lines().filter(|line| line.starts_with("=========") && !is_clean);
        told.take(COMPLAINTS).for_each(|line| found.note(line));
    }
    found.figure("tools_that_complain", f64::from(complain));
    Ok(found)
}
