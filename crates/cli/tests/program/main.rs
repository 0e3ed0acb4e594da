//! The program from outside: commands, input that is bad, and what it prints.

#[path = "../common/mod.rs"]
mod common;

mod backup;
mod bad_input;
#[cfg(any(feature = "fpga", feature = "gpu-emulator"))]
mod by_engine;
mod commands;
mod debian_index;
mod dump;
mod edges;
mod engines;
mod families;
mod family;
#[cfg(feature = "fpga")]
mod fpga;
#[cfg(feature = "gpu")]
mod gpu;
mod guide;
mod hostile_names;
mod import;
mod lab;
mod load_ends;
mod naming;
mod proportion;
mod readme;
mod serve;
mod settings;
mod table_dirs;
mod wrong_uses;
