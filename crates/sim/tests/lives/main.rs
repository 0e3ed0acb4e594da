//! Simulated lives: sweeps of crashes and failures, plans, and little room.

mod backup;
mod fifo;
mod import;
mod plans;
mod prepared;
mod shortage;
mod sweeps;
mod table_dirs;
