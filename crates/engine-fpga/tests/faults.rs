//! The engine over the model, in health and over every fault of a catalogue: always the bytes of the CPU (reliability F17).
//!
//! With `--cfg shuttle` the sessions of a card under chosen schedules, and nothing else.

#[path = "faults/common.rs"]
mod common;
#[cfg(not(shuttle))]
#[path = "faults/conformance.rs"]
mod conformance;
#[cfg(not(shuttle))]
#[path = "faults/hostile.rs"]
mod hostile;
#[cfg(not(shuttle))]
#[path = "faults/lies.rs"]
mod lies;
#[cfg(not(shuttle))]
#[path = "faults/pace.rs"]
mod pace;
#[cfg(not(shuttle))]
#[path = "faults/plans.rs"]
mod plans;
#[cfg(shuttle)]
#[path = "faults/schedules.rs"]
mod schedules;
#[cfg(not(shuttle))]
#[path = "faults/scheduling.rs"]
mod scheduling;
#[cfg(not(shuttle))]
#[path = "faults/slots.rs"]
mod slots;
#[cfg(all(feature = "verilated", not(shuttle)))]
#[path = "faults/verilated.rs"]
mod verilated;
#[cfg(not(shuttle))]
#[path = "faults/xdma.rs"]
mod xdma;
