//! Step 1: the driver, the image, and the machine around them.

use anyhow::Result;

use super::Found;
use crate::machine::Machine;

pub(crate) fn run(machine: &Machine) -> Result<Found> {
    let mut found = Found::default();
    if machine.is_real() {
        let start = machine.seconds();
        let card = machine.card()?;
        found.figure("load_ms", 1e3 * (machine.seconds() - start));
        let facts = card.facts();
        found.figure("driver", f64::from(facts.driver));
        found.note(format!("{facts:?}"));
    } else {
        found.note("the emulator; no driver is called");
    }
    let built_in = lithify_engine_gpu::image::is_built_in();
    found.note(format!(
        "image: {}",
        match (&machine.asked.image, built_in) {
            (Some(file), _) => file.as_str(),
            (None, true) => "in this program",
            (None, false) => "none in this program",
        }
    ));
    found.figure("processors", lithify_env::processors().unwrap_or(1) as f64);
    for (what, file) in [
        ("memory", "/proc/meminfo"),
        ("nodes", "/sys/devices/system/node/online"),
        ("pressure", "/proc/loadavg"),
    ] {
        let text = std::fs::read_to_string(file).unwrap_or_default();
        found.note(format!("{what}: {}", text.lines().next().unwrap_or("not known")));
    }
    Ok(found)
}
