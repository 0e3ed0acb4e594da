//! Step 6: kernels, each alone.

use anyhow::Result;
use lithify_engine_gpu::device::Kernel;

use super::Found;
use super::sessions::{Job, Ran, through};
use crate::machine::Machine;
use crate::timed::{Notes, Timed};

/// Kernels that are told of together.
const GROUPS: [(&str, &[Kernel]); 8] = [
    ("us_unpack", &[Kernel::Decode, Kernel::Count, Kernel::Unpack]),
    ("us_order", &[Kernel::Order, Kernel::Trim]),
    ("us_partition_and_merge", &[Kernel::Partition, Kernel::Merge]),
    ("us_judge_and_drop", &[Kernel::Judge, Kernel::Drop]),
    ("us_layout", &[Kernel::Blocks, Kernel::Files, Kernel::Sizes, Kernel::Table]),
    ("us_pack", &[Kernel::Pack]),
    ("us_encode", &[Kernel::Encode, Kernel::Places, Kernel::Gather]),
    ("us_prove", &[Kernel::Check, Kernel::Prove]),
];
/// The paper's shares, of unpack, sort and pack.
const SHARES: [(&str, &[usize]); 3] =
    [("share_unpack", &[0, 1]), ("share_sort", &[2, 3]), ("share_pack", &[4, 5, 6, 7])];

pub(crate) fn run(machine: &Machine) -> Result<Found> {
    let mut found = Found::default();
    let set = machine.size(128 << 20, 256 << 10);
    for value in machine.asked.values(&[32, 64, 128, 256, 1024]) {
        let (ran, notes) = alone(machine, value, set)?;
        let all: f64 = notes.kernels.iter().sum();
        found.figure(format!("gb_per_s_{value}"), ran.stored as f64 / all);
        let groups: Vec<f64> = GROUPS
            .iter()
            .map(|(_, of)| of.iter().map(|kernel| notes.kernels[*kernel as usize]).sum())
            .collect();
        for (name, of) in SHARES {
            let share: f64 = of.iter().map(|at| groups[*at]).sum();
            found.figure(format!("{name}_{value}"), share / all);
        }
        if value == 128 {
            let sets = ran.stored as f64 / (128 << 20) as f64;
            for ((name, _), ns) in GROUPS.iter().zip(&groups) {
                found.figure(*name, ns / 1e3 / sets);
            }
            for (kernel, ns) in Kernel::ALL.iter().zip(notes.kernels).filter(|(_, ns)| *ns > 0.0) {
                found.figure(format!("us_{}", kernel.symbol()), ns / 1e3 / sets);
            }
        }
    }
    // Launches weigh more in sets of the size that links like best.
    let small = machine.size(8 << 20, 256 << 10);
    let (ran, notes) = alone(machine, 128, small)?;
    found.figure("us_set_8mib", notes.kernels.iter().sum::<f64>() / 1e3 / ran.sets as f64);
    lz4(machine, &mut found)?;
    found.note("a launch and two events are in each kernel's time");
    Ok(found)
}

/// What three sets of so many bytes take, each kernel alone.
fn alone(machine: &Machine, value: usize, set: u64) -> Result<(Ran, Notes)> {
    let device = Timed::new(machine.device()?, machine.rt.clone(), true);
    let notes = device.notes();
    let engine = machine.engine_over(Box::new(device), machine.options(1, set))?;
    let job = Job::new(value, 3 * set, set)?;
    // The first time a driver loads each kernel, and the clock is low.
    through(machine, &engine, &job)?;
    *notes.lock() = Notes::default();
    let ran = through(machine, &engine, &job)?;
    let notes = notes.lock().clone();
    Ok((ran, notes))
}

/// Bytes of entries a nanosecond of all kernels with LZ4 both ways, and of the two codecs alone.
fn lz4(machine: &Machine, found: &mut Found) -> Result<()> {
    let bytes = machine.size(64 << 20, 256 << 10);
    let device = Timed::new(machine.device()?, machine.rt.clone(), true);
    let notes = device.notes();
    let engine = machine.engine_over(Box::new(device), machine.options(1, bytes))?;
    let (job, logical) = Job::lz4(bytes)?;
    through(machine, &engine, &job)?;
    *notes.lock() = Notes::default();
    through(machine, &engine, &job)?;
    let kernels = notes.lock().kernels;
    let rate = |of: &[Kernel]| {
        logical as f64 / of.iter().map(|kernel| kernels[*kernel as usize]).sum::<f64>()
    };
    found.figure("gb_per_s_lz4", rate(&Kernel::ALL));
    found.figure("gb_per_s_lz4_decode", rate(&[Kernel::Decode]));
    found.figure("gb_per_s_lz4_encode", rate(&[Kernel::Encode, Kernel::Places, Kernel::Gather]));
    Ok(())
}
