//! Simulated lives: sweeps of crashes and failures, plans, and little room (reliability F1, F2, F3, F4, F6, F8, F11).

mod backup;
mod checkpoint;
mod fifo;
mod import;
mod numbered;
mod plans;
mod prepared;
mod shortage;
mod sweeps;
mod table_dirs;
