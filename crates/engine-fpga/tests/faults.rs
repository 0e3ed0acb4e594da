//! The engine over the model, in health and over every fault of a catalogue: always the bytes of the CPU.

#[path = "faults/common.rs"]
mod common;
#[path = "faults/conformance.rs"]
mod conformance;
#[path = "faults/hostile.rs"]
mod hostile;
#[path = "faults/lies.rs"]
mod lies;
#[path = "faults/pace.rs"]
mod pace;
#[path = "faults/plans.rs"]
mod plans;
#[path = "faults/scheduling.rs"]
mod scheduling;
#[path = "faults/slots.rs"]
mod slots;
#[cfg(feature = "verilated")]
#[path = "faults/verilated.rs"]
mod verilated;
#[path = "faults/xdma.rs"]
mod xdma;
